//! `wmlrun check`, `fmt` and `plan`: process a script up to a stage, without running it.

use super::choices::DumpStage;
use super::console::{self, Console, Verbosity, print_lines, print_wrapped};
use super::differences::FoundDifferences;
use super::stdout::Stdout;
use super::{find, is_profile};
use crate::batch;
use crate::diag::has_errors;
use crate::os::OFlags;
use crate::os::held_dir::HeldDir;
use crate::output;
use crate::plan;
use crate::report;
use crate::session::{Session, Settings, Status, library};
use crate::source::SourceMap;
use crate::spec::Dialect;
use crate::syntax;
use crate::util::printable;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Prints all errors and warnings of scripts, with the values of `sets` for variables. Returns the exit status: 2 if there
/// is an error.
pub(super) fn check(
    scripts: &[String],
    dump: Option<DumpStage>,
    shows_differences: bool,
    dialect: Option<Dialect>,
    sets: &[(String, String)],
) -> u8 {
    let (mut worst, mut differences) = (0, FoundDifferences::default());
    for script in scripts {
        let settings = Settings { sets: sets.to_vec(), dialect, ..Settings::default() };
        // The stages are those of one script.
        if is_profile(Path::new(script)) && dump.is_none() {
            let mut console = Console::new(report::TABLE[0], Verbosity::Normal);
            differences.leave_out(script);
            let mut checked = |map: &SourceMap, is_whole| {
                if shows_differences {
                    differences.add(map, None, is_whole);
                }
            };
            // A run needs the permission; as for a script, a warning says so.
            let settings = Settings { allow_system: true, ..settings };
            worst = worst.max(batch::check_profile(Path::new(script), &settings, &mut console, &mut checked));
            continue;
        }
        let Some(found) = find(script) else {
            worst = 2;
            continue;
        };
        let mut session = Session::new(settings, std::sync::Arc::default());
        let file = session.map.add(&found.name, &found.text);
        match dump {
            Some(DumpStage::Tokens) => {
                print_lines(&syntax::print_tokens(&session.map, &syntax::lex(file, &found.text)));
            }
            Some(DumpStage::Ast) => print_lines(&syntax::print(&syntax::parse(&session.map, file).0)),
            None => {}
        }
        let mut console = Console::new(report::TABLE[0], Verbosity::Normal);
        let (_, problems, status) = session.check_script(file, &mut console);
        if status != Status::Done {
            worst = status.code();
        }
        if !problems.is_empty() {
            console::diagnostics(&session.map, &problems);
        }
        if has_errors(&problems) {
            worst = 2;
        }
        if shows_differences {
            // A shipped script is asked for by its name.
            let is_whole = status == Status::Done && !has_errors(&problems);
            differences.add(&session.map, Some(file), is_whole);
        }
    }
    differences.print();
    worst
}

/// Formats scripts. Returns the exit status: 1 if `check` finds an unformatted script or a file can't be written, 2
/// after other errors.
pub(super) fn fmt(scripts: &[String], write: bool, check: bool) -> u8 {
    if write && scripts.iter().any(|script| script == "-") {
        console::error(
            "can't write the formatted script back to standard input",
            Some("leave out `-w` to print it to standard output"),
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
            let help = "convert the file first (`iconv -t UTF-8`), or formatting would lose the invalid bytes";
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
                print_lines(&format!("{} is not formatted", printable::line(script)));
                worst = worst.max(1);
            }
        } else if write {
            worst = worst.max(write_back(&found, &text));
        } else {
            // Escape control characters on a terminal only: a file or pipe gets the exact text.
            let shown = if std::io::stdout().is_terminal() { printable::lines(&text) } else { text.into() };
            let _ = Stdout.write_all(shown.as_bytes());
        }
    }
    worst
}

/// Replaces a script file atomically with its formatted text. Follows a symbolic link. Returns the exit status.
fn write_back(found: &library::FoundScript, text: &str) -> u8 {
    let Some(path) = &found.path else {
        let help = "`wmlrun show NAME > FILE` makes a copy that can be edited";
        console::error(&format!("{} is not a file", found.name), Some(help));
        return 2;
    };
    if text == found.text {
        return 0;
    }
    let refuse = |e: std::io::Error, status| {
        console::error(&format!("can't write {}: {e}", found.name), Some("the file was not changed"));
        status
    };
    let held = HeldDir::of_file(path).and_then(|(dir, name)| {
        // Replacing needs write access to the directory only. Refuse it if the file itself is not writable.
        dir.open_file(&name, OFlags::WRONLY)?;
        Ok((dir, name))
    });
    match held {
        Ok((dir, name)) => output::replace_in(&dir, &name, &mut |out| out.write_all(text.as_bytes()))
            .map_or_else(|e| refuse(e, 1), |()| 0),
        Err(e) => {
            // Not an error of the system: such as a link of another user.
            let status = if e.raw_os_error().is_none() { 3 } else { 1 };
            refuse(e, status)
        }
    }
}

/// Prints the plan of a script, or with `list` the path and size of every file. Returns the exit status.
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
        print_wrapped(plan::dump(&plan, &sets).trim_end());
        let script = &session.runner.document.script;
        print_wrapped(&format!("dialect {}: {}", script.dialect, script.dialect_reason));
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
                // The pipe is closed, or `stdout::finish` reports the error.
                let _ = out.into_parts();
                return 0;
            }
        }
    }
    // `Stdout` records the error.
    let _ = out.flush();
    let _ = out.into_parts();
    0
}
