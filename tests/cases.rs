//! Golden cases. A case is a file `tests/cases/STAGE/NAME.wml` (`.txt` for the shell, `.csv` for figures); what its stage makes of it stands beside it in `NAME.snap`.
//!
//! A new case is one file: run the tests, read the `.snap.new`, rename it. A case without a snapshot fails. A new stage is a folder,
//! a function from map and file to text, and a line at the end of this file.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[allow(dead_code, reason = "the other test binary uses all of it")]
#[path = "it/support.rs"]
mod support;

use std::fmt::Write as _;
use std::path::Path;

use wml::diag::{self, Diagnostic, Style};
use wml::model::{self, Known, Scope};
use wml::session::{Session, Settings};
use wml::source::{FileId, SourceMap};
use wml::syntax;

/// Compares a text with the snapshot beside a case.
fn snapshot(path: &Path, shown: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_string_lossy().into_owned(), shown));
}

/// Compares what a stage makes of a case with the snapshot beside it.
fn golden(path: &Path, stage: impl Fn(&SourceMap, FileId) -> String) -> datatest_stable::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut map = SourceMap::new();
    let file = map.add(path.file_name().unwrap().to_string_lossy(), std::fs::read_to_string(&path)?);
    let shown = stage(&map, file);
    snapshot(&path, &shown);
    Ok(())
}

/// The message says what is wrong; what to do about it must be said too.
fn every_error_helps(diagnostics: &[Diagnostic]) {
    for d in diagnostics {
        assert!(!d.help.is_empty(), "{} has no help: {}", d.code.number(), d.message);
    }
}

fn with_diagnostics(map: &SourceMap, mut out: String, diagnostics: &[Diagnostic]) -> String {
    every_error_helps(diagnostics);
    if !diagnostics.is_empty() {
        let _ = write!(out, "---\n{}", diag::render(map, diagnostics, Style::Plain));
    }
    out
}

fn lex(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| {
        let lexed = syntax::lex(file, &map.file(file).text);
        with_diagnostics(map, syntax::print_tokens(map, &lexed), &lexed.diagnostics)
    })
}

/// The tree, then all that is wrong with it up to here, then the dialect.
fn parse(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| {
        let (ast, mut diagnostics) = syntax::parse(map, file);
        let structure = syntax::nest(ast.clone()).1;
        diagnostics.extend(syntax::without_follow_ons(&ast.spans(), &diagnostics, structure));
        let detected = syntax::dialect::detect(map, &ast, &wml::flowop::spec_table());
        diagnostics.extend(detected.diagnostics);
        let out = format!("{}--- {} ({})\n", syntax::print(&ast), detected.dialect, detected.reason);
        with_diagnostics(map, out, &diagnostics)
    })
}

fn fmt(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| match syntax::format(map, file) {
        Ok(text) => text,
        Err(errors) => with_diagnostics(map, "not formatted\n".to_owned(), &errors),
    })
}

/// What a shell says to a file of commands: both its outputs in their order, and its exit status. The first line may give
/// options (`# options: --seed 5`); `# numbers vary` in the second one has every measured number shown as `N`.
fn repl(path: &Path) -> datatest_stable::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let script = std::fs::read_to_string(&path)?;
    let options = script.lines().next().and_then(|l| l.strip_prefix("# options: ")).unwrap_or("");
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let heard = dir.path().join("heard");
    let out = std::fs::File::create(&heard)?;
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_wmlrun"))
        .args(["repl", "--no-quiesce"])
        .args(options.split_whitespace())
        .current_dir(dir.path())
        .env("NO_COLOR", "1")
        .stdin(std::fs::File::open(&path)?)
        .stdout(out.try_clone()?)
        .stderr(out)
        .status()?;
    let mut shown = std::fs::read_to_string(&heard)?.replace(&dir.path().display().to_string(), "DIR");
    shown = shown.lines().map(steady).collect::<Vec<_>>().join("\n");
    if script.lines().nth(1) == Some("# numbers vary") {
        shown = shown.lines().map(without_numbers).collect::<Vec<_>>().join("\n");
    }
    std::fs::remove_file(&heard)?;
    let left: Vec<_> = std::fs::read_dir(dir.path())?.map(|e| e.unwrap()).filter(|e| e.path().is_dir()).collect();
    assert!(left.is_empty(), "directories stay behind: {left:?}");
    let shown = format!("{shown}\nexit {}\n", status.code().unwrap_or(-1));
    snapshot(&path, &shown);
    Ok(())
}

/// The script of the cases of experiments, which ends after some operations.
const EXPERIMENT_SCRIPT: &str = "define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    set $n=1\n\
    define process name=p { thread name=t,instances=$n {\n\
      flowop read name=rd,filesetname=data,iosize=4k\n\
      flowop finishoncount name=end,value=1000\n\
    } }\n";

/// An experiment file with a mistake: what `wmlrun experiment` says, its exit status, and what it leaves. The first line may
/// give options (`# options: --allow-system`).
fn experiment(path: &Path) -> datatest_stable::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path)?;
    let options = text.lines().next().and_then(|l| l.strip_prefix("# options: ")).unwrap_or("");
    let own = if options.contains("--results") { "" } else { "--results results" };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    std::fs::write(dir.path().join("x.toml"), &text)?;
    std::fs::write(dir.path().join("x.wml"), EXPERIMENT_SCRIPT)?;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_wmlrun"))
        .args(["experiment", "x.toml", "--engine", "null", "--no-quiesce", "--runtime", "60", "--quiet"])
        .args(own.split_whitespace())
        .args(options.split_whitespace())
        .current_dir(dir.path())
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::null())
        .output()?;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "a mistake has no result");
    let said = String::from_utf8_lossy(&output.stderr).replace(&dir.path().display().to_string(), "DIR");
    assert!(said.contains("help"), "{said}");
    let mut stays: Vec<String> = std::fs::read_dir(dir.path())?
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !["x.toml", "x.wml"].contains(&name.as_str()))
        .collect();
    stays.sort();
    let made = std::fs::read_dir(dir.path().join("results/runs")).map_or(0, |runs| {
        runs.filter(|run| run.as_ref().is_ok_and(|run| run.path().extension().is_some_and(|e| e == "json"))).count()
    });
    let code = output.status.code().unwrap_or(-1);
    let shown = format!("{said}\nexit {code}, {made} runs, stays: {}\n", stays.join(" "));
    snapshot(&path, &shown);
    Ok(())
}

/// The figures of tests: what `wmlrun compare --tests` prints with the options of the first line (`# options: --over a`), and
/// its exit status.
fn compare(path: &Path) -> datatest_stable::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path)?;
    let options = text.lines().next().and_then(|l| l.strip_prefix("# options: ")).unwrap_or("");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_wmlrun"))
        .args(["compare", "--tests", &path.file_name().unwrap().to_string_lossy()])
        .args(options.split_whitespace())
        .current_dir(path.parent().unwrap())
        .env("NO_COLOR", "1")
        .output()?;
    let [printed, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let code = output.status.code().unwrap_or(-1);
    assert!(code == 0 || said.contains("help"), "{said}");
    snapshot(&path, &format!("{printed}---\n{said}exit {code}\n"));
    Ok(())
}

/// A line without what differs from machine to machine and from call to call.
fn steady(line: &str) -> String {
    if let Some((head, _)) = line.split_once(" on ").filter(|_| line.starts_with("running ")) {
        return format!("{head} on …");
    }
    // The machine decides on most of them.
    let warnings = "note: warnings of the run, for `wmlrun explain`: ";
    if line.starts_with(warnings) {
        return format!("{warnings}…");
    }
    let mut line = line.to_owned();
    if let Some((before, after)) = line.split_once("wmlrun-")
        && after.starts_with(|c: char| c.is_ascii_digit())
    {
        line = format!("{before}wmlrun-PID{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    line.replace(concat!("wmlrun ", env!("CARGO_PKG_VERSION")), "wmlrun VERSION")
}

/// A line with `N` for each number that stands by itself, its sign and unit with it, and one blank for many.
fn without_numbers(line: &str) -> String {
    let named = |w: &str| w.starts_with(|c: char| c.is_ascii_alphabetic() || "<$`".contains(c));
    let number = |w: &str| !named(w) && w.contains(|c: char| c.is_ascii_digit());
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let unit = matches!(word, "ns" | "µs" | "ms" | "s" | "%" | "B" | "KiB" | "MiB" | "GiB");
        match words.last().map(String::as_str) {
            Some("N") if unit => {}
            _ if number(word) || word == "-" => words.push("N".to_owned()),
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// All that `wmlrun check` says.
fn check(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| {
        let found = findings(map, file);
        assert!(!found.is_empty(), "nothing is wrong with this script");
        every_error_helps(&found);
        diag::render(map, &found, Style::Plain)
    })
}

fn findings(map: &SourceMap, file: FileId) -> Vec<Diagnostic> {
    let mut map = map.clone();
    let known = Known { variables: vec!["dir".to_owned()], ..Known::default() };
    let (model, mut found) = model::check(&map, file, &wml::flowop::spec_table(), None, &known);
    if !diag::has_errors(&found) {
        let mut session = Session::new(Settings::default(), std::sync::Arc::default());
        std::mem::swap(&mut session.map, &mut map);
        found.extend(session.check_values(&model, "case"));
    }
    if !diag::has_errors(&found) {
        found.extend(model::lint::lint(&model, &Scope::default(), false));
    }
    found
}

/// What `wmlrun plan` shows of a script, in 80 columns.
fn outline(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| {
        let source = map.file(file);
        let outline = support::outline(&source.name, &source.text, Settings::default());
        assert!(outline.lines().all(|line| line.chars().count() <= 80), "{outline}");
        outline
    })
}

/// A script of either generation in an odd but valid form: the dialect that is told, all that is said, and the runs with their
/// threads and flowops. It is read, checked and run without a file system; how often each flowop ran is left to other tests.
fn old(path: &Path) -> datatest_stable::Result<()> {
    golden(path, |map, file| {
        let source = map.file(file);
        // What ends by itself is only bounded by the time, so that a slow machine sees the same end.
        let ends = ["alldone", "firstdone", "finishon"].iter().any(|word| source.text.contains(word));
        // On a busy machine a thread may get no processor in the shortest time, and a run without an operation fails.
        let (time, longer): (u64, &[u64]) = if ends { (60_000, &[]) } else { (150, &[2_000, 20_000]) };
        let run = |time: u64| support::run(&source.name, &source.text, support::null(time));
        let mut outcome = run(time);
        for time in longer {
            if outcome.status != wml::session::Status::Done {
                outcome = run(*time);
            }
        }
        assert_eq!(outcome.status, wml::session::Status::Done, "{}", outcome.said);
        let script = &outcome.document.script;
        let mut out = format!("{} ({})\n{}", script.dialect, script.dialect_reason, outcome.said);
        for run in &outcome.document.runs {
            let ops: u64 = run.flowops.iter().map(|f| f.ops).sum();
            let worked = if ops > 0 { "" } else { ", and did nothing" };
            let state = format!("{:?}", run.state).to_lowercase();
            let (by, processes, threads) = (&run.ended_by, run.processes, run.threads);
            let _ = writeln!(out, "--- {state} ({by}): {processes} processes, {threads} threads{worked}");
            for f in &run.flowops {
                let _ = writeln!(out, "{}/{}/{} {}", f.process, f.thread, f.name, f.kind);
            }
        }
        out
    })
}

/// What a reader made of a case in `check/` who saw only the script and the message: nothing is wrong with it any more, and it
/// differs in one stretch only, within the lines that the message marks.
fn mended(path: &Path) -> datatest_stable::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let wrong = std::fs::read_to_string(path.with_file_name("..").join("check").join(&name))?;
    let right = std::fs::read_to_string(&path)?;
    let mut map = SourceMap::new();
    let (before, after) = (map.add(name.as_str(), wrong.as_str()), map.add(name.as_str(), right.as_str()));
    let left = findings(&map, after);
    assert!(left.is_empty(), "{}", diag::render(&map, &left, Style::Plain));

    let found = findings(&map, before);
    let [one] = &found[..] else {
        panic!("not one mistake:\n{}", diag::render(&map, &found, Style::Plain));
    };
    assert!(!one.help.is_empty(), "the message does not say what to do");
    let marks: Vec<u32> = one.secondary.iter().chain([&one.primary]).map(|label| map.line(label.span)).collect();
    let (first, last) = (*marks.iter().min().unwrap() as usize, *marks.iter().max().unwrap() as usize);
    let (wrong, right): (Vec<&str>, Vec<&str>) = (wrong.lines().collect(), right.lines().collect());
    let same = wrong.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let rest = wrong.len().min(right.len()) - same;
    let tail = wrong.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (from, to) = (same + 1, wrong.len() - tail);
    assert!(from >= first && to <= last, "lines {from} to {to} are changed; marked are {first} to {last}");
    Ok(())
}

/// A script that runs without a file system. Its first lines say what is to come of it:
///
/// `covers = KIND NAME` is what the case is for; `seed`; `milliseconds`, for what does not end by itself; `status`, `state`, `ended`, `runs`, `processes`, `threads` of the (last)
/// run; `ops NAME`, `bytes`, `calls`, `opens`, `responses NAME` of a flowop, `least NAME` and `most NAME` bounds on its
/// operations and bytes; `says TEXT`, `silent TEXT` what is said and what never; `plan TEXT` a part of `wmlrun plan`.
fn run(path: &Path) -> datatest_stable::Result<()> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))?;
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let wanted: Vec<(&str, &str)> =
        text.lines().map_while(|line| line.strip_prefix("# ")).filter_map(|line| line.split_once(" = ")).collect();
    let seed = wanted.iter().find(|(key, _)| *key == "seed").map_or(Ok(0), |(_, n)| n.parse())?;
    // Nothing is measured: the time is a bound, so that a mistake does not hang.
    let bound = wanted.iter().find(|(key, _)| *key == "milliseconds").map_or(Ok(60_000), |(_, n)| n.parse())?;
    let settings = || Settings { seed, ..support::null(bound) };
    let outcome = support::run(&name, &text, settings());
    let status = wanted.iter().find(|(key, _)| *key == "status").map_or("done", |(_, word)| word);
    let mut wrong = Vec::new();
    let mut expect = |what: &str, wanted: &str, found: String| {
        if wanted != found {
            wrong.push(format!("{what} is {found}, not {wanted}"));
        }
    };
    expect("status", status, format!("{:?}", outcome.status).to_lowercase());
    let run = outcome.document.runs.last();
    let mut expectations = 0;
    for (key, value) in &wanted {
        expectations += usize::from(!["covers", "seed", "milliseconds"].contains(key));
        let (word, flowop) = key.split_once(' ').unwrap_or((key, ""));
        let found = run.and_then(|run| run.flowops.iter().find(|f| f.name == flowop));
        let figure = |pick: fn(&wml::result::FlowopResult) -> u64| {
            found.map_or_else(|| format!("no flowop `{flowop}`"), |f| pick(f).to_string())
        };
        let of_run = |pick: fn(&wml::result::Run) -> String| run.map_or_else(|| "no run".to_owned(), pick);
        match word {
            "covers" | "seed" | "milliseconds" | "status" => {}
            "ended" => expect(key, value, of_run(|run| run.ended_by.clone())),
            "state" => expect(key, value, of_run(|run| format!("{:?}", run.state).to_lowercase())),
            "runs" => expect(key, value, outcome.document.runs.len().to_string()),
            "processes" => expect(key, value, of_run(|run| run.processes.to_string())),
            "threads" => expect(key, value, of_run(|run| run.threads.to_string())),
            "ops" => expect(key, value, figure(|f| f.ops)),
            "bytes" => expect(key, value, figure(|f| f.bytes)),
            "calls" => expect(key, value, figure(|f| f.calls)),
            "opens" => expect(key, value, figure(|f| f.implicit_opens)),
            "responses" => expect(key, value, figure(|f| u64::from(f.response_ns.is_some()))),
            "least" if found.is_some_and(|f| f.ops >= value.parse().unwrap()) => {}
            "most" if found.is_some_and(|f| f.bytes <= value.parse().unwrap()) => {}
            "says" if outcome.said.contains(value) => {}
            "silent" if !outcome.said.contains(value) => {}
            "plan" => {
                let plan = support::plan(&name, &text, settings());
                if !plan.contains(value) {
                    expect(key, value, format!("not in\n{plan}"));
                }
            }
            _ => expect(key, value, "otherwise".to_owned()),
        }
    }
    assert!(expectations > 0, "the case expects nothing");
    assert!(wrong.is_empty(), "{}\n--- said\n{}", wrong.join("\n"), outcome.said);
    Ok(())
}

datatest_stable::harness! {
    { test = lex, root = "tests/cases/lex", pattern = r"\.wml$" },
    { test = parse, root = "tests/cases/parse", pattern = r"\.wml$" },
    { test = check, root = "tests/cases/check", pattern = r"\.wml$" },
    { test = outline, root = "tests/cases/outline", pattern = r"\.wml$" },
    { test = old, root = "tests/cases/old", pattern = r"\.f$" },
    { test = mended, root = "tests/cases/mended", pattern = r"\.wml$" },
    { test = run, root = "tests/cases/run", pattern = r"\.wml$" },
    { test = fmt, root = "tests/cases/fmt", pattern = r"\.wml$" },
    { test = experiment, root = "tests/cases/experiment", pattern = r"\.toml$" },
    { test = compare, root = "tests/cases/compare", pattern = r"\.csv$" },
    { test = repl, root = "tests/cases/repl", pattern = r"\.txt$" },
}
