//! `wmlrun check`, `fmt` and `plan`: process a script up to a stage, without running it.

use super::choices::DumpStage;
use super::console::{self, Console, Verbosity, print_lines, print_wrapped};
use super::screen::stdout_width;
use super::script_input::{find, is_profile, write_back};
use super::stdout::Stdout;
use crate::batch::{self, FoundDifferences};
use crate::diag::{Failure, has_errors};
use crate::plan;
use crate::report;
use crate::session::{Front as _, Session, Settings, Status, library};
use crate::source::SourceMap;
use crate::spec::Dialect;
use crate::syntax;
use crate::util::{printable, wrap};
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
            let checked = batch::check_profile(Path::new(script), &settings, &mut console, &mut checked);
            worst = worst.max(console.status(checked).code());
            continue;
        }
        let found = match find(script) {
            Ok(found) => found,
            Err(failure) => {
                worst = worst.max(console::failure(&failure));
                continue;
            }
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
        let (_, problems, applied) = session.check_script(file, &mut console);
        let status = console.status(applied);
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
    let differences = differences.text();
    if !differences.is_empty() {
        print_lines(&differences);
    }
    worst
}

/// Formats scripts. Returns the exit status: 1 if `check` finds an unformatted script or a file can't be written, 2
/// after other errors.
pub(super) fn fmt(scripts: &[String], write: bool, check: bool) -> Result<u8, Failure> {
    if write && scripts.iter().any(|script| script == "-") {
        let help = "leave out `-w` to print it to standard output";
        return Err(Failure::wrong("can't write the formatted script back to standard input", help));
    }
    Ok(scripts.iter().map(|script| console::status(fmt_one(script, write, check))).max().unwrap_or_default())
}

fn fmt_one(script: &str, write: bool, check: bool) -> Result<u8, Failure> {
    let found = find(script)?;
    if !found.utf8 {
        let help = "convert the file first (`iconv -t UTF-8`), or formatting would lose the invalid bytes";
        return Err(Failure::wrong(format!("{} is not UTF-8", found.name), help));
    }
    let mut map = SourceMap::new();
    let file = map.add(&found.name, &found.text);
    let text = syntax::format(&map, file).map_err(|found| Failure::in_script(Status::Script, &map, found))?;
    if check {
        if text != found.text {
            print_lines(&format!("{} is not formatted", printable::line(script)));
            return Ok(1);
        }
    } else if write {
        write_back(&found, &text)?;
    } else {
        // Escape control characters on a terminal only: a file or pipe gets the exact text.
        let shown = if std::io::stdout().is_terminal() { printable::lines(&text) } else { text.into() };
        let _ = Stdout.write_all(shown.as_bytes());
    }
    Ok(0)
}

/// What `wmlrun plan` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlanForm {
    /// What people want to know before a run.
    Outline,
    /// Every step.
    Program,
    /// The path and size of every file.
    Files,
}

/// Prints the plan of a script.
pub(super) fn plan(
    session: &mut Session,
    found: &library::FoundScript,
    form: PlanForm,
    console: &mut Console,
) -> Result<u8, Failure> {
    let model = session.read(&found.name, &found.text, console)?;
    let plan = session.plan(console)?;
    let sets = crate::measure::trees(&plan, session.runner.settings.layout_seed)?;
    match form {
        PlanForm::Outline => {
            let wrong: Vec<String> = session.endless_phases(&plan).into_iter().map(|found| found.message).collect();
            let columns = stdout_width().unwrap_or(wrap::WIDTH);
            print_lines(&plan::outline(&plan, &sets, &session.run_lengths(&model), &wrong, columns));
            return Ok(0);
        }
        PlanForm::Program => {
            print_wrapped(plan::dump(&plan, &sets).trim_end());
            let script = &session.runner.outputs.document.script;
            print_wrapped(&format!("dialect {}: {}", script.dialect, script.dialect_reason));
            return Ok(0);
        }
        PlanForm::Files => {}
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
                // The pipe is closed, or the end of the program reports the error.
                let _ = out.into_parts();
                return Ok(0);
            }
        }
    }
    // `Stdout` records the error.
    let _ = out.flush();
    let _ = out.into_parts();
    Ok(0)
}
