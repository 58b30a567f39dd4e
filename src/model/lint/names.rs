//! Flowops of a thread that have one name: `target=` means them all, and a reader of the results can't tell them apart.

use super::Subject;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use std::collections::HashMap;

pub(super) fn repeated(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let bodies = subject.threads().map(|(_, thread)| &thread.flowops);
    for flowops in bodies.chain(subject.composites.iter().map(|c| &c.flowops)) {
        let mut seen: HashMap<String, Span> = HashMap::new();
        for flowop in flowops {
            let Some(name) = super::text(&flowop.attrs, "name", &subject.scope) else { continue };
            let span = flowop.attrs.get("name").map_or(flowop.span, |used| used.value.span);
            if let Some(first) = seen.get(&name) {
                found.push(
                    Diagnostic::warning(
                        Code::RepeatedName,
                        span,
                        format!("a second flowop called `{name}` in one loop"),
                    )
                    .also(*first, "the first")
                    .help("give it another name: they stand apart in the results, and `target=` means both"),
                );
            } else {
                seen.insert(name, span);
            }
        }
    }
}
