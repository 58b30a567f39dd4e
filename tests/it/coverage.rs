//! Tests that `tests/cases/run` has a case for every word of the language.
//!
//! `UPDATE_DOCS=1 cargo test --test it coverage` writes the list with its counts, `tests/cases/COVERAGE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use wml::flowop;
use wml::model::commands;
use wml::random::DISTRIBUTIONS;
use wml::spec::predefined::PREDEFINED;
use wml::spec::{Attr, attrs};

/// All words by their kind, as the first line of a case names them.
fn words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let names = |list: &'static [Attr]| list.iter().map(|a| a.name).collect();
    vec![
        ("command", "commands", commands::specs().map(|c| c.name).collect()),
        ("flowop", "flowops", flowop::entries().map(|entry| &entry.spec).map(|f| f.name).collect()),
        ("attribute", "attributes of flowops", names(attrs::FLOWOP)),
        ("thread", "attributes of threads", names(attrs::THREAD)),
        ("process", "attributes of processes", names(attrs::PROCESS)),
        ("fileset", "attributes of file sets and files", names(attrs::FILESET)),
        ("composite", "attributes of composite flowops", names(attrs::COMPOSITE)),
        ("randvar", "attributes of `randvar`", names(attrs::RANDVAR)),
        ("cvar", "attributes of `cvar`", names(attrs::CVAR)),
        ("variable", "predefined variables", PREDEFINED.iter().map(|v| v.name).collect()),
        ("distribution", "distributions", DISTRIBUTIONS.iter().map(|d| d.name).collect()),
    ]
}

/// What the fuzzer puts into scripts besides the words of the tables, as its dictionary writes it.
#[rustfmt::skip]
const SHAPES: &[&str] = &[
    "define process name=", "define fileset name=", "define file name=", "define flowop name=", "thread name=",
    "flowop ", "{", "}", "=$", "randvar(", "cvar(", "randtable={{", "},{", "}}", "$dir", "set $", ",instances=",
    ",iters=", ",entries=", "thread", "filename", "filesize", "true", "false", "constant", "poisson", "fsl", "sun",
    "sync", "inf", "nan", "0.5", "1k", "1m", "1g", "1t", "18446744073709551615", "-9223372036854775808", "cvar-gama",
    "cvar-zipf", "unifrom", r"# dialect: sun\x0a", r"# dialect: fsl\x0a", r"# note: \x0a", r"\x0a", r#"\""#,
];

/// The words of the tables are those that the fuzzer mutates scripts with.
#[test]
fn the_dictionary_of_the_fuzzer_has_every_word() {
    let words: BTreeSet<&str> =
        words().iter().flat_map(|(.., names)| names.iter().flat_map(|n| n.split(' '))).collect();
    let mut text = "# Words of the language, for the mutations: `-dict=tests/fuzz/wml.dict`. Made by\n\
        # `UPDATE_DOCS=1 cargo test --test it coverage`.\n"
        .to_owned();
    for entry in words.iter().chain(SHAPES) {
        let _ = writeln!(text, "\"{entry}\"");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/wml.dict");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|old| old == text),
        "tests/fuzz/wml.dict is out of date: `UPDATE_DOCS=1 cargo test --test it coverage` writes it anew"
    );
}

/// Whether a script uses the word that it says it covers, not only says so.
fn uses(kind: &str, name: &str, body: &str) -> bool {
    let squeezed: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    match kind {
        "command" => squeezed.contains(name),
        "flowop" => squeezed.contains(&format!("flowop {name} name=")),
        "variable" => squeezed.contains(&format!("${name}")),
        "distribution" => squeezed.contains(&format!("type={name}")),
        _ => {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            squeezed.match_indices(name).any(|(at, _)| {
                let before = squeezed[..at].chars().next_back();
                let after = squeezed[at + name.len()..].chars().next();
                !before.is_some_and(word) && after.is_none_or(|c| !word(c))
            })
        }
    }
}

#[test]
fn every_word_has_a_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root.join("run")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(covers) = text.lines().next().and_then(|line| line.strip_prefix("# covers = ")) else {
            wrong.push(format!("{file} does not say in its first line what it covers"));
            continue;
        };
        let body: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let (kind, name) = covers.split_once(' ').unwrap();
        if !uses(kind, name, &body) {
            wrong.push(format!("{file} does not use `{name}`"));
        }
        cases.insert(covers.to_owned(), file);
    }
    let mut list = String::from(
        "# What the cases cover\n\nMade by `UPDATE_DOCS=1 cargo test --test it coverage` from the tables of the program and the cases in \
         `run/`; a word\nwithout a case fails the test.\n\n| Words | Covered | In the table |\n|---|---|---|\n",
    );
    let (mut all, mut covered) = (0, 0);
    let mut known = Vec::new();
    for (kind, title, names) in words() {
        let here = names.iter().filter(|name| cases.contains_key(&format!("{kind} {name}"))).count();
        let _ = writeln!(list, "| {title} | {here} | {} |", names.len());
        for name in &names {
            if !cases.contains_key(&format!("{kind} {name}")) {
                wrong.push(format!("no case covers {kind} `{name}`"));
            }
            known.push(format!("{kind} {name}"));
        }
        all += names.len();
        covered += here;
    }
    let _ = writeln!(list, "| **all** | **{covered}** | **{all}** |");
    wrong.extend(
        cases.iter().filter(|(covers, _)| !known.contains(covers)).map(|(covers, file)| format!("{file}: no {covers}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let page = root.join("COVERAGE.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, &list).unwrap();
    }
    assert!(
        fs::read_to_string(&page).is_ok_and(|old| old == list),
        "tests/cases/COVERAGE.md is out of date: `UPDATE_DOCS=1 cargo test --test it coverage` writes it anew"
    );
}

/// At least 25 wrong scripts have a corrected one, which a reader made with the message alone.
#[test]
fn corrected_scripts_are_not_lost() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/mended");
    let names: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.len() >= 25, "only {}: {names:?}", names.len());
}
