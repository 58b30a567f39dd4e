//! Tests `wmlrun explain`: it knows every label, state and code that outputs show, wherever these are defined.

use crate::cmd::{Wml, binary, scratch};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use wml::words::{meanings, other_number};

/// The labels of an output: the headings of its tables, the first cells of its lists of facts, the codes of its warnings,
/// and the word that its last line begins with.
fn labels(text: &str) -> BTreeSet<String> {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let mut found = BTreeSet::new();
    for block in text.split("\n\n") {
        let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with([' ', '─', '-'])).collect();
        let Some(first) = lines.first() else { continue };
        for line in &lines {
            if let Some((code, _)) = line.strip_prefix("warning[").and_then(|rest| rest.split_once(']')) {
                found.insert(code.to_owned());
            }
        }
        if first.starts_with("warning[") || first.starts_with("note: ") {
            continue;
        }
        // Columns may be one blank apart; a list of facts has figures.
        let mut words = first.split_whitespace();
        let has_figures = first.split_whitespace().any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        match cells(first).len() {
            _ if !has_figures && words.any(|word| word.ends_with("/s")) => found.extend(cells(first)),
            0 | 1 => {}
            2 => {
                found
                    .extend(lines.iter().map(|line| cells(line)).filter(|cells| cells.len() > 1).map(|c| c[0].clone()));
            }
            _ => found.extend(cells(first)),
        }
    }
    if let Some((word, _)) = text.trim_end().lines().last().and_then(|line| line.split_once(": ")) {
        found.insert(word.to_owned());
    }
    // Variables are the script's, and the axis of a histogram has no name.
    found.retain(|label| !label.starts_with(['$', '╵']) && label != "n");
    found
}

/// Whether a label is known: as it stands, or each of its words, where columns are one blank apart.
fn is_known(label: &str) -> bool {
    let has_meaning = |word: &str| !meanings(word).is_empty() || other_number(word).is_some();
    has_meaning(label) || label.split(' ').filter(|part| !part.starts_with('╵')).all(has_meaning)
}

const OPEN: &str = "define fileset name=data,path=$dir,entries=100,dirwidth=10,size=4k,prealloc\n\
    set $n=1\n\
    define process name=p {\n\
      thread name=t,instances=$n,rate=200,measure=request {\n\
        flowop read name=rd,filesetname=data,iosize=4k,random\n\
      }\n\
    }\n";
const QUICK: [&str; 5] = ["--engine", "null", "--no-quiesce", "--runtime", "0.1"];

/// What a command prints, whatever its verdict.
fn said(dir: &Path, words: &[&str]) -> String {
    let output = Command::new(binary()).args(words).current_dir(dir).env("XDG_STATE_HOME", dir).output().unwrap();
    let code = output.status.code();
    assert!([Some(0), Some(10), Some(11), Some(12)].contains(&code), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn explain_knows_every_label_of_the_outputs() {
    let folder = tempfile::Builder::new().prefix("explained-").tempdir_in(scratch()).unwrap();
    let dir = folder.path();
    fs::write(dir.join("open.wml"), OPEN).unwrap();
    fs::write(dir.join("e.toml"), "script = \"open.wml\"\n[[factor]]\nname = \"n\"\nlevels = [1, 2]\n").unwrap();
    let commands: &[&[&str]] = &[
        &["open.wml", "-v"],
        &["varmail"],
        &["varmail", "-v"],
        &["ab", "varmail", "--blocks", "2", "--a", "--set nthreads=1", "--b", "--set nthreads=2", "--results", "ab"],
        &["repeat", "varmail", "--runs", "3", "--results", "repeat"],
        &["sweep", "open.wml", "--vary", "n=1,2", "--results", "sweep"],
        &["experiment", "e.toml", "--results", "experiment"],
    ];
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut examine = |of: String, text: &str| {
        let labels = labels(text);
        seen += labels.len();
        wrong.extend(labels.into_iter().filter(|label| !is_known(label)).map(|label| format!("{of}: `{label}`")));
    };
    for command in commands {
        examine(command.join(" "), &said(dir, &[*command, &QUICK].concat()));
    }
    for command in [&["compare", "ab/runs/0001.json", "ab/runs/0002.json"][..], &["list", "servers"]] {
        examine(command.join(" "), &said(dir, command));
    }
    assert!(wrong.is_empty(), "`src/words/terms.rs` lacks\n{}", wrong.join("\n"));
    assert!(seen > 60, "only {seen} labels were found");
}

/// The labels of lines such as `lost: 0`.
fn line_labels(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| !line.starts_with([' ', '/']) && !line.contains("differs: "));
    lines.filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).filter(|label| !label.contains([',', '.', '/']))
}

#[test]
fn explain_knows_the_reports_of_traces() {
    let folder = tempfile::Builder::new().prefix("explained-").tempdir_in(scratch()).unwrap();
    let dir = folder.path();
    for name in ["work", "d"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let program = "cd work; for n in 1 2 3 4 5 6 7 8; do echo $n >f$n; cat f$n >>all; chmod 600 f$n; rm f$n; done";
    let run = |words: &[&str]| {
        Command::new(binary()).args(words).current_dir(dir).env("XDG_STATE_HOME", dir).output().unwrap()
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let record = run(&["record", "--under", "work", "-o", "t.wtrace", "--", "sh", "-c", program]);
    let record = text(record.stderr);
    let replay = said(dir, &["replay", "t.wtrace", "--dir", "d"]);
    let whole = said(dir, &["replay", "t.wtrace", "--dir", "d", "-v", "--speed", "x100"]);
    let shown = said(dir, &["trace", "show", "t.wtrace"]);
    fs::write(dir.join("app.wml"), said(dir, &["learn", "t.wtrace"])).unwrap();
    let command = ["--json", "--dir", "work", "--pairs", "1", "--", "sh", "-c", &program[9..]];
    let program_of = format!("cd {} && {}", dir.join("work").display(), &program[9..]);
    let words = [&["fidelity", "app.wml"][..], &command[..command.len() - 1], &[&program_of]].concat();
    let rows: serde_json::Value = serde_json::from_str(&said(dir, &words)).unwrap();
    let rows = rows["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned());
    let mut all: Vec<String> = rows.collect();
    assert!(all.iter().any(|row| row == "share of write"), "{all:?}");
    all.extend([&record, &replay].into_iter().flat_map(|text| line_labels(text)));
    all.extend([&replay, &whole, &shown].into_iter().flat_map(|text| labels(text)));
    for label in ["lost", "own values", "names at end", "made by", "between calls"] {
        assert!(all.iter().any(|known| known == label), "no `{label}` in {all:?}");
    }
    // Columns are one blank apart.
    all.iter_mut().for_each(|label| *label = label.replace("calls of ", ""));
    all.retain(|label| !is_known(label) && !label.starts_with("recorded ") && label != "-");
    assert!(all.is_empty(), "`src/words/terms.rs` lacks {all:?}");
}

#[test]
fn the_words_of_plans_are_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/outline");
    let plans = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let plans: String = plans
        .filter(|path| path.extension().is_some_and(|end| end == "snap"))
        .map(|p| fs::read_to_string(p).unwrap())
        .collect();
    for word in ["file set", "closed loop", "open loop", "Poisson arrivals", "phase", "event rate", "threads"] {
        assert!(plans.contains(word), "no plan has `{word}`");
        assert!(!meanings(word).is_empty(), "{word}");
    }
}

#[test]
fn a_word_is_explained_in_lines_of_eighty_columns() {
    for (words, says) in [
        (&["lateness"][..], "intended and the actual start"),
        (&["detectable", "loss"], "the smallest loss"),
        (&["detectable loss"], "the smallest loss"),
        (&["fits_in_memory"], "Condition: "),
        (&["--runtime"], "--runtime TIME (of run, "),
        (&["runtime"], "--runtime TIME (of run, "),
        (&["p99.9"], "99.9 % of the operations"),
        (&["starved"], "What to do: "),
        (&["iosize"], "bytes of one read or write"),
        (&["distance"], "how far two distributions"),
        (&["failed", "alike"], "failed in the replay as they did"),
        (&["share of stat"], "that calls of a class"),
        (&["not_complete"], "or a replay"),
        (&["varmail"], "personality varmail"),
    ] {
        let said = Wml::new().args(["explain"]).args(words).run().exits(0).stdout;
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{words:?}: {said}");
    }
    for (word, near) in
        [("latness", "lateness"), ("lod", "load"), ("--runtim", "--runtime"), ("fits-in-memry", "fits_in_memory")]
    {
        let said = Wml::new().args(["explain", word]).run().exits(2).stderr;
        assert!(said.contains(&format!("did you mean `{near}`?")), "{word}: {said}");
    }
}
