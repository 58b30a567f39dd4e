//! Tests that definitions, keys of the result and headings of documents use the terms of the field, and that each type
//! name is defined once, so that "go to definition" finds it.
//!
//! The tests read the source as text: a line counts as a definition if it looks like one. A word counts only as a whole
//! name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words of our own, each with the field's word for it.
const OWN: &[(&str, &str)] = &[
    ("round", "iteration, request"),
    ("piece", "statement, interval, slice, work item"),
    ("stretch", "fast path, iteration"),
    ("once_each", "fast path, iteration"),
    ("turn", "iteration"),
    ("tell", "report, notify"),
    ("told", "report, message"),
    ("out", "in flight"),
    ("in_the_air", "in flight"),
    ("flight", "in flight"),
    ("landed", "completion"),
    ("back", "backend"),
    ("book", "account"),
    ("seat", "thread slot"),
    ("home", "process context"),
    ("lead", "process main"),
    ("goes_home", "exits"),
    ("presence", "drop guard"),
    ("bell", "notifier"),
    ("crowd", "sharded histogram"),
    ("crew", "thread pool"),
    ("hand", "worker"),
    ("pile", "queue"),
    ("manner", "mode"),
    ("mend", "repair"),
    ("settle", "quiesce"),
    ("settled", "quiesced"),
    ("weigh", "disk usage"),
    ("dry", "exhausted"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("brother", "sibling"),
    ("digress", "restamp"),
    ("awake", "spin"),
    ("awake_seconds", "spin_seconds"),
    ("to_spare", "spare CPUs"),
    ("woken_late", "wake-up latency"),
    ("law", "distribution"),
    ("at_hand", "cached, resident"),
    ("mark", "annotation, warning"),
    ("remark", "annotation, warning"),
    ("brief", "non-blocking"),
    ("blame", "provenance"),
    ("beat", "tick, heartbeat"),
    ("left", "leftovers"),
    ("place", "layout pass"),
];

/// Names that stay, as `file: name`, and why.
const STAY: &[(&str, &str, &str)] = &[
    ("src/engine/random/", "round", "the attribute of the language"),
    ("src/", "rounds", "the option of `wmlrun age`"),
    ("src/text/table.rs", "Left", "the side on which a column is aligned"),
    ("src/language/syntax/ast.rs", "left", "the left side of an operator"),
    ("src/engine/plan/program.rs", "left", "steps that the bound leaves"),
    ("src/language/syntax/fmt.rs", "out", "the text that is written"),
    ("src/language/syntax/layout.rs", "out", "the tokens that are written"),
    ("src/language/syntax/lexer.rs", "out", "the tokens that are written"),
    ("src/", "place", "a position, of a file, a flowop or an offset; what the layout pass was called is gone"),
    ("src/", "places", "positions, as `place`"),
    ("src/", "PLACES", "positions, as `place`"),
    ("src/", "PLACE", "positions, as `place`"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Every file with this ending below a directory, by its path from the root, with its text.
fn texts(dir: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![root().join(dir)];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The kind and the name that a line of Rust defines, if it looks like a definition.
fn definition(line: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod"];
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    };
    let name_of = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut rest = line;
    for word in ["const ", "async ", "unsafe ", "extern \"C\" "] {
        if let Some(after) = rest.strip_prefix(word).filter(|after| after.contains("fn ")) {
            rest = after;
        }
    }
    for kind in KINDS {
        if let Some(after) = rest.strip_prefix(kind).and_then(|after| after.strip_prefix(' ')) {
            return Some((kind, &after[..name_of(after)]));
        }
    }
    let name = &line[..name_of(line)];
    let after = &line[name.len()..];
    if name.is_empty() || !line.ends_with([',', '{', '(']) {
        return None;
    }
    let is_field = name.starts_with(char::is_lowercase) && after.starts_with(": ") && line.ends_with(',');
    let is_variant = name.starts_with(char::is_uppercase)
        && (after == "," || after == "(" || after == " {" || after.starts_with('(') && line.ends_with("),"));
    (is_field || is_variant).then_some((if is_field { "field" } else { "variant" }, name))
}

/// `ThreadSlot` as `thread_slot`, without a plural's ending.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut lower = false;
    for c in name.chars() {
        if lower && c.is_uppercase() {
            out.push('_');
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        out.extend(c.to_lowercase());
    }
    out
}

/// The field's term for a name in [`OWN`], in the singular or the plural.
fn better(name: &str) -> Option<&'static str> {
    let name = snake(name);
    let single = name.strip_suffix('s').unwrap_or(&name);
    OWN.iter().find(|(word, _)| *word == name || *word == single).map(|(_, better)| *better)
}

fn stays(file: &str, name: &str) -> bool {
    STAY.iter().any(|(of, stays, _)| file.starts_with(of) && *stays == name)
}

#[test]
fn definitions_use_the_terms_of_the_field() {
    let mut found = Vec::new();
    for (file, text) in texts("src", "rs") {
        let stem = Path::new(&file).file_stem().unwrap().to_str().unwrap();
        found.extend(better(stem).map(|word| format!("{file}: the file's own name; {word}")));
        let mut in_parameters = false;
        for (line, text) in (1..).zip(text.lines()) {
            in_parameters &= !text.trim_start().starts_with(')');
            let Some((kind, name)) = definition(text).filter(|_| !in_parameters) else { continue };
            in_parameters = kind == "fn" && text.ends_with('(');
            if let Some(word) = better(name).filter(|_| !stays(&file, name)) {
                found.push(format!("{file}:{line}: {kind} {name}; {word}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn definitions_are_recognised() {
    let cases = [
        ("    pub(super) fn tell(&self) {", Some(("fn", "tell"))),
        ("pub const fn seat() {", Some(("fn", "seat"))),
        ("struct Crowd<'a> {", Some(("struct", "Crowd"))),
        ("const AT_HAND: u64 = 1;", Some(("const", "AT_HAND"))),
        ("    seats: Vec<Seat>,", Some(("field", "seats"))),
        ("    pub(super) bell: Bell,", Some(("field", "bell"))),
        ("    Landed(u64),", Some(("variant", "Landed"))),
        ("    Fresh,", Some(("variant", "Fresh"))),
        ("        told(x),", None),
        ("let seat = 1;", None),
        ("// fn tell", None),
    ];
    for (line, expected) in cases {
        assert_eq!(definition(line), expected, "{line}");
    }
    assert!(better("Seats").is_some() && better("AT_HAND").is_some() && better("threshold").is_none());
}

#[test]
fn keys_of_the_result_use_the_terms_of_the_field() {
    fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
        if let Some(properties) = schema.get("properties").and_then(serde_json::Value::as_object) {
            found.extend(properties.keys().cloned());
        }
        match schema {
            serde_json::Value::Object(all) => all.values().for_each(|each| keys(each, found)),
            serde_json::Value::Array(all) => all.iter().for_each(|each| keys(each, found)),
            _ => {}
        }
    }
    let schema = std::fs::read_to_string(root().join("docs/result.schema.json")).unwrap();
    let mut found = Vec::new();
    keys(&serde_json::from_str(&schema).unwrap(), &mut found);
    assert!(found.len() > 100, "{} keys: the schema is not read", found.len());
    found.retain(|key| better(key).is_some() || key.starts_with("woken_late") || key.starts_with("mb_per"));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn headings_use_the_terms_of_the_field() {
    let readme = ("README.md".to_owned(), std::fs::read_to_string(root().join("README.md")).unwrap());
    let documents: Vec<_> = texts("docs", "md").into_iter().chain([readme]).collect();
    let mut headings = 0;
    for (file, text) in documents {
        for line in text.lines().filter(|line| line.starts_with('#')) {
            let heading = line.trim_start_matches('#').trim();
            headings += 1;
            assert!(better(&heading.to_lowercase().replace(' ', "_")).is_none(), "{file}: {heading}");
        }
    }
    assert!(headings > 20, "{headings} headings: the documents are not read");
}

#[test]
fn a_type_is_defined_once() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in texts("src", "rs") {
        for (line, text) in (1..).zip(text.lines()) {
            // What belongs to a trait or its implementation is indented.
            let is_own = !text.starts_with(' ') || !text.trim_start().starts_with("type ");
            if let Some(("struct" | "enum" | "union" | "trait" | "type", name)) = definition(text)
                && is_own
            {
                types.entry(name.to_owned()).or_default().push(format!("{file}:{line}"));
            }
        }
    }
    assert!(types.len() > 300, "{} types: the sources are not read", types.len());
    let twice: Vec<String> =
        types.iter().filter(|(_, at)| at.len() > 1).map(|(name, at)| format!("{name}: {}", at.join(" "))).collect();
    assert!(twice.is_empty(), "{}", twice.join("\n"));
}
