//! Warns of flowops of a thread, and threads of a process, that share a name: `target=` means all such flowops, and
//! they are hard to distinguish in results.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::model::Attrs;
use crate::source::Span;
use std::collections::HashMap;

pub(super) fn repeated(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let bodies = subject.threads().map(|(_, thread)| &thread.flowops);
    for flowops in bodies.chain(subject.composites.iter().map(|c| &c.flowops)) {
        let help = "give it another name: they are separate in the results, and `target=` means both";
        warn_duplicates(subject, "name", flowops.iter().map(|f| (&f.attrs, f.span)), ("flowop", "loop"), help, found);
    }
    // `measure=` of a thread and of the composites that it uses are rows of one table.
    let threads = subject.threads().map(|(_, thread)| (&thread.attrs, thread.span));
    let composites = subject.composites.iter().map(|composite| (&composite.attrs, composite.span));
    let help = "give it another name: in the results they are separate rows";
    warn_duplicates(subject, "measure", threads.chain(composites), ("`measure`", "script"), help, found);
    for process in &subject.processes {
        let help = "give it another name, or make them one with `instances=` if they are alike: in the results it gets a number";
        warn_duplicates(
            subject,
            "name",
            process.threads.iter().map(|t| (&t.attrs, t.span)),
            ("thread", "process"),
            help,
            found,
        );
    }
}

/// Reports each definition whose attribute `attr` has the value of an earlier one. `(what, of)`: the kind of definition, and what contains it.
fn warn_duplicates<'a>(
    subject: &Subject<'_>,
    attr: &str,
    all: impl Iterator<Item = (&'a Attrs, Span)>,
    (what, of): (&str, &str),
    help: &str,
    found: &mut Vec<Diagnostic>,
) {
    let mut seen: HashMap<String, Span> = HashMap::new();
    for (attrs, whole) in all {
        let Some(name) = super::text(attrs, attr, &subject.scope) else { continue };
        let span = attrs.get(attr).map_or(whole, |used| used.value.span);
        if let Some(first) = seen.get(&name) {
            let message = format!("a second {what} called `{name}` in one {of}");
            found.push(Diagnostic::warning(Code::RepeatedName, span, message).also(*first, "the first").help(help));
        } else {
            seen.insert(name, span);
        }
    }
}
