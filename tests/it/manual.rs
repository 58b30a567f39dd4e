//! Tests that the manual agrees with the program: its tables are those of the program, and its scripts are valid.
//!
//! `UPDATE_DOCS=1 cargo test --test it manual` writes the tables.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use wml::experiment::{EXPERIMENT_KEYS, FACTOR_KEYS, HOOK_KEYS, LEVEL_KEYS, SUITES};
use wml::flowop;
use wml::model::commands;
use wml::random::{DISTRIBUTIONS, UsableIn};
use wml::session::library::{self, about};

use wml::spec::predefined::PREDEFINED;
use wml::spec::{Attr, Kind, Origin, attrs};
use wml::trace::{CALL_CLASSES, KINDS};
use wml::words::{REPORT_LINES, TERMS};

const START: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// A table of Markdown. Bars inside cells are written so that they do not end them.
pub(crate) fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

pub(crate) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn kind(attr: &Attr) -> String {
    let text = match attr.kind {
        Kind::Name => "name".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Int => "whole number".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Real => "number".to_owned(),
        Kind::Bool => "switch".to_owned(),
        Kind::BoolOr(words) => format!("switch, `{}`", words.join("`, `")),
        Kind::Percent => "0 to 100".to_owned(),
        Kind::Choice(words) => words.iter().map(|w| code(w)).collect::<Vec<_>>().join(", "),
        Kind::Random => "random variable".to_owned(),
        Kind::Fileset => "file set".to_owned(),
        Kind::Target => "flowop".to_owned(),
        Kind::Variable => "variable".to_owned(),
    };
    if attr.random { format!("{text}, drawn") } else { text }
}

/// The versions of Filebench that have a word; empty for all of them.
fn origin(origin: Origin) -> String {
    if matches!(origin, Origin::Both) { String::new() } else { origin.label().to_owned() }
}

fn attributes(list: &[Attr]) -> String {
    table(
        &["Attribute", "Value", "Default", "From", "What it says"],
        list.iter().map(|a| {
            let names: Vec<String> = std::iter::once(a.name).chain(a.aliases.iter().copied()).map(code).collect();
            vec![names.join(", "), kind(a), a.default.to_owned(), origin(a.origin), a.doc.to_owned()]
        }),
    )
}

/// Attributes that many flowops have in common, each list with the word that stands for it in their table.
const GROUPS: &[(&str, &[&str])] = &[
    ("*file*", &["filesetname", "fd"]),
    ("*pick*", &["indexed", "uniform", "recent", "maystarve"]),
    ("*place*", &["random", "at", "shuffle", "workingset", "align", "stride", "offset", "backward", "reoffset"]),
];

fn groups() -> String {
    table(
        &["Word", "Attributes"],
        GROUPS.iter().map(|(word, attributes)| {
            let names: Vec<String> = attributes.iter().map(|name| code(name)).collect();
            vec![(*word).to_owned(), names.join(" ")]
        }),
    )
}

fn flowops() -> String {
    table(
        &["Flowop", "Counts as", "From", "What it does", "Attributes besides `name` and `iters`"],
        flowop::entries().map(|entry| &entry.spec).map(|f| {
            let (mut words, mut rest): (Vec<String>, Vec<&str>) = (Vec::new(), f.attributes().collect());
            for (word, attributes) in GROUPS {
                if attributes.iter().all(|name| rest.contains(name)) {
                    words.push((*word).to_owned());
                    rest.retain(|name| !attributes.contains(name));
                }
            }
            words.extend(rest.into_iter().map(code));
            vec![code(f.name), f.class.name().to_owned(), origin(f.origin), f.doc.to_owned(), words.join(" ")]
        }),
    )
}

fn distributions() -> String {
    table(
        &["Distribution", "Values", "Parameters", "Example"],
        DISTRIBUTIONS.iter().map(|d| {
            let name = match d.usable_in {
                UsableIn::Both => format!("`{0}`, `cvar-{0}`", d.name),
                _ => code(d.name),
            };
            let parameters: Vec<String> = d
                .parameters
                .iter()
                .map(|p| {
                    let default = p.default.map_or(String::new(), |x| format!(" ({x})"));
                    format!("`{}`{default}: {}", p.name, p.doc)
                })
                .collect();
            vec![name, d.doc.to_owned(), parameters.join("; "), code(d.example)]
        }),
    )
}

/// The part of that name.
fn generated(part: &str) -> String {
    match part {
        "commands" => table(
            &["Command", "From", "What it does"],
            commands::specs().map(|c| vec![code(c.form), origin(c.origin), c.doc.to_owned()]),
        ),
        "predefined" => table(
            &["Variable", "What it is"],
            PREDEFINED.iter().map(|v| vec![format!("`${}`", v.name), v.doc.to_owned()]),
        ),
        "randvar" => attributes(attrs::RANDVAR),
        "cvar" => attributes(attrs::CVAR),
        "distributions" => distributions(),
        "fileset" => attributes(attrs::FILESET),
        "process" => attributes(attrs::PROCESS),
        "thread" => attributes(attrs::THREAD),
        "attributes" => attributes(attrs::FLOWOP),
        "composite" => attributes(attrs::COMPOSITE),
        "groups" => groups(),
        "flowops" => flowops(),
        other => panic!("the manual has a generated part `{other}`, which no table provides"),
    }
}

/// Checks that a page has so many generated parts, and that each is what `generated` makes of its name; with `UPDATE_DOCS`
/// writes them.
#[track_caller]
pub(crate) fn agrees(page: &str, count: usize, generated: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (mut fresh, mut rest, mut parts) = (String::new(), text.as_str(), 0);
    while let Some(at) = rest.find(START) {
        let head = &rest[at + START.len()..];
        let (part, _) = head.split_once(" -->").unwrap();
        let end = rest[at..].find(END).expect("a part without an end") + at;
        let _ = write!(fresh, "{}{START}{part} -->\n{}", &rest[..at], generated(part));
        rest = &rest[end..];
        parts += 1;
    }
    fresh.push_str(rest);
    assert_eq!(parts, count, "{page} has lost a generated part");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // At once: another test reads the page meanwhile.
        let part = path.with_extension("part");
        fs::write(&part, fresh).unwrap();
        fs::rename(part, path).unwrap();
    } else {
        assert!(
            fresh == text,
            "{page} is out of date: `UPDATE_DOCS=1 cargo test --test it -- manual:: pages::` writes its generated parts"
        );
    }
}

#[test]
fn the_tables_of_the_manual_agree_with_the_program() {
    agrees("docs/language.md", 12, generated);
}

/// How near each personality is to its program, from its header.
fn nearness(part: &str) -> String {
    assert_eq!(part, "nearness");
    let mut compared: Vec<Vec<String>> = library::PERSONALITIES
        .iter()
        .filter_map(|(name, text)| {
            let text = wml::learn::fidelity_in(text)?;
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.windows(2).position(|two| two[0] == "rows" && two[1].starts_with("inside"))?;
            let inside = words[at - 3..at].join(" ");
            let rows = text.lines().filter_map(|line| line.trim_end().strip_suffix("outside"));
            let outside: Vec<&str> = rows.filter_map(|row| row.split("  ").next()).collect();
            let outside = if outside.is_empty() { "none".to_owned() } else { outside.join(", ") };
            Some(vec![code(name), inside, outside])
        })
        .collect();
    compared.sort();
    table(&["Script", "Figures within their limits", "Outside"], compared)
}

#[test]
fn the_table_of_programs_agrees_with_the_headers() {
    agrees("docs/programs.md", 1, nearness);
}

/// The tables of words in the page on results.
fn words(part: &str) -> String {
    let (head, list) = match part {
        "lines" => (["Line", "Content"], REPORT_LINES),
        "terms" => (["Term", "Meaning here"], TERMS),
        other => panic!("the page has a generated part `{other}`, which no table provides"),
    };
    table(
        &head,
        list.iter().map(|entry| {
            let page = entry.page.split('#').next().unwrap_or_default();
            let more = if page.is_empty() { String::new() } else { format!(" ([{page}]({}))", entry.page) };
            vec![entry.words.to_owned(), format!("{}{more}", entry.meaning)]
        }),
    )
}

#[test]
fn the_words_of_results_agree_with_the_program() {
    agrees("docs/reading.md", 2, words);
}

/// The classes of calls in traces, each with its kinds.
fn classes(_: &str) -> String {
    let kinds = |class| KINDS.iter().filter(|kind| kind.class == class).map(|kind| code(kind.name)).collect::<Vec<_>>();
    let rows =
        CALL_CLASSES.iter().map(|(class, name, text)| vec![code(name), (*text).to_owned(), kinds(*class).join(" ")]);
    table(&["Class", "What it does", "Calls"], rows)
}

#[test]
fn the_classes_of_calls_agree_with_the_program() {
    agrees("docs/trace-format.md", 1, classes);
}

/// The tables of the manual of experiment files.
fn experiments(part: &str) -> String {
    let keys = match part {
        "experiment" => EXPERIMENT_KEYS,
        "factor" => FACTOR_KEYS,
        "level" => LEVEL_KEYS,
        "hook" => HOOK_KEYS,
        "suites" => {
            let rows = SUITES.iter().map(|(name, text)| vec![code(name), about(text).to_owned()]);
            return table(&["Experiment", "What it measures"], rows);
        }
        other => panic!("the manual has a generated part `{other}`, which no table provides"),
    };
    table(
        &["Key", "Value", "What it says"],
        keys.iter().map(|key| vec![code(key.name), key.form.to_owned(), key.about.to_owned()]),
    )
}

#[test]
fn the_keys_of_experiment_files_agree_with_the_program() {
    agrees("docs/experiment-keys.md", 5, experiments);
}

/// The `wml` blocks of a document, with their lines.
fn scripts(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut open): (Vec<(usize, String)>, bool) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        match line.trim() {
            "```wml" => {
                open = true;
                found.push((number + 1, String::new()));
            }
            "```" => open = false,
            _ if open => {
                let (_, text) = found.last_mut().unwrap();
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// Each script that a document shows is right, and nothing is to be said against it.
#[test]
fn the_scripts_in_the_documents_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents: Vec<PathBuf> = fs::read_dir(root.join("docs")).unwrap().map(|e| e.unwrap().path()).collect();
    documents.extend(["README.md", "CONTRIBUTING.md", "grammar/README.md"].map(|name| root.join(name)));
    let (mut seen, mut wrong) = (0, String::new());
    for path in documents.iter().filter(|p| p.extension().is_some_and(|e| e == "md") && p.exists()) {
        for (line, text) in scripts(&fs::read_to_string(path).unwrap()) {
            seen += 1;
            let said = crate::lints::check(&format!("{}:{line}", path.display()), &text);
            wrong.push_str(&said);
        }
    }
    assert!(seen >= 8, "the documents have lost their scripts");
    assert!(wrong.is_empty(), "{wrong}");
}
