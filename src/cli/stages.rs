//! `wmlrun check`, `fmt` and `plan`: a script as far as a stage, without running it.

use super::args::DumpStage;
use super::console::{self, Console, say};
use super::find;
use super::stdout::Stdout;
use crate::diag::has_errors;
use crate::flowop;
use crate::model::lint::lint;
use crate::model::{self, Known, Scope};
use crate::os::OFlags;
use crate::output;
use crate::plan;
use crate::session::{Session, Status, library};
use crate::source::SourceMap;
use crate::spec::Dialect;
use crate::spec::predefined::predefined_names;
use crate::syntax;
use crate::util::printable;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;

/// A pipe in the place of a script is not waited for.
const NONBLOCK: i32 = OFlags::NONBLOCK.bits() as i32;

/// Shows all errors and warnings of scripts.
pub(super) fn check(scripts: &[String], dump: Option<DumpStage>, dialect: Option<Dialect>) -> u8 {
    let mut worst = 0;
    let table = flowop::spec_table();
    for script in scripts {
        let Some(found) = find(script) else {
            worst = 2;
            continue;
        };
        let mut map = SourceMap::new();
        let file = map.add(&found.name, &found.text);
        match dump {
            Some(DumpStage::Tokens) => say(&syntax::print_tokens(&map, &syntax::lex(file, &found.text))),
            Some(DumpStage::Ast) => say(&syntax::print(&syntax::parse(&map, file).0)),
            None => {}
        }
        // `$dir` is predefined.
        let known = Known { variables: predefined_names().collect(), ..Known::default() };
        let (model, mut problems) = model::check(&map, file, &table, dialect, &known);
        if !has_errors(&problems) {
            problems.extend(values(&model, &mut map, &found));
            if !has_errors(&problems) {
                problems.extend(lint(&model, &Scope::default(), false));
            }
            problems.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
        }
        if !problems.is_empty() {
            console::diagnostics(&map, &problems);
        }
        if has_errors(&problems) {
            worst = 2;
        }
    }
    worst
}

/// What the values of a script's own variables are not good for: known only once they are put in.
fn values(model: &model::Model, map: &mut SourceMap, found: &library::FoundScript) -> Vec<crate::diag::Diagnostic> {
    let mut session = Session::new(crate::session::Settings::default(), std::sync::Arc::default());
    std::mem::swap(&mut session.map, map);
    let problems = session.check_values(model, &found.name);
    std::mem::swap(&mut session.map, map);
    problems
}

/// Lays scripts out.
pub(super) fn fmt(scripts: &[String], write: bool, check: bool) -> u8 {
    if write && scripts.iter().any(|script| script == "-") {
        console::error(
            "standard input can't be written back",
            Some("leave out `-w`: the text goes to standard output"),
        );
        return 2;
    }
    let mut worst = 0;
    for script in scripts {
        let Some(found) = find(script) else {
            worst = 2;
            continue;
        };
        if !found.utf8 {
            let help = "the bytes that are none would be lost: convert the file first (`iconv -t UTF-8`)";
            console::error(&format!("{} is not UTF-8", found.name), Some(help));
            worst = 2;
            continue;
        }
        let mut map = SourceMap::new();
        let file = map.add(&found.name, &found.text);
        let text = match syntax::format(&map, file) {
            Ok(text) => text,
            Err(problems) => {
                console::diagnostics(&map, &problems);
                worst = 2;
                continue;
            }
        };
        if check {
            if text != found.text {
                say(&format!("{} would change", printable::line(script)));
                worst = worst.max(1);
            }
        } else if write {
            worst = worst.max(write_back(&found, &text));
        } else {
            // To a file it is the script; a terminal shows it.
            let shown = if std::io::stdout().is_terminal() { printable::lines(&text) } else { text.into() };
            let _ = Stdout.write_all(shown.as_bytes());
        }
    }
    worst
}

/// Replaces a script by its new text, as a whole; behind a symbolic link the file that it names.
fn write_back(found: &library::FoundScript, text: &str) -> u8 {
    let Some(path) = &found.path else {
        let help = "`wmlrun show NAME > FILE` makes a file of one's own";
        console::error(&format!("{} is no file", found.name), Some(help));
        return 2;
    };
    if text == found.text {
        return 0;
    }
    let written = std::fs::canonicalize(path).and_then(|path| {
        // What may not be written must not be replaced either, though the directory would allow it.
        let meta = std::fs::OpenOptions::new().write(true).custom_flags(NONBLOCK).open(&path)?.metadata()?;
        if !meta.is_file() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        output::replace(&path, &mut |out| out.write_all(text.as_bytes()))
    });
    match written {
        Ok(()) => 0,
        Err(e) => {
            console::error(&format!("{} can't be written: {e}", found.name), Some("it is as it was"));
            1
        }
    }
}

/// Shows what a script would run.
pub(super) fn plan(session: &mut Session, found: &library::FoundScript, list: bool, console: &mut Console) -> u8 {
    let status = session.read(&found.name, &found.text, console);
    if status != Status::Done {
        return status.code();
    }
    let Some(plan) = session.plan(console) else { return Status::Script.code() };
    let Some(sets) = crate::measure::trees(&plan, session.runner.settings.layout_seed, console) else {
        return Status::Refused.code();
    };
    if !list {
        let _ = Stdout.write_all(printable::lines(&plan::dump(&plan, &sets)).as_bytes());
        return 0;
    }
    let mut out = std::io::BufWriter::with_capacity(1 << 20, Stdout);
    for set in &sets {
        let root = set.spec.root().display().to_string();
        let root = printable::line(&root);
        let mut dir = (u64::MAX, String::new());
        for file in 0..set.tree.n_files() {
            let own = set.tree.dir_of(file);
            if dir.0 != own {
                dir = (own, set.tree.dir_rel_path(own));
            }
            let slash = if dir.1.is_empty() { "" } else { "/" };
            let name = set.tree.name(file);
            let name = name.as_c().to_string_lossy();
            if writeln!(out, "{root}/{}{slash}{name} {}", dir.1, set.tree.size_of(file)).is_err() {
                // Whoever read has seen enough, or the error is reported at the end.
                let _ = out.into_parts();
                return 0;
            }
        }
    }
    // The error is remembered.
    let _ = out.flush();
    let _ = out.into_parts();
    0
}
