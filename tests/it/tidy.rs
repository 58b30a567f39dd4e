//! The rules of the house, held by reading the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file, in lines.
const LONGEST: usize = 600;
/// Files that may be longer, each with the reason beside it.
const MAY_BE_LONGER: &[&str] = &[];
/// Libraries that only some files may know: name as in code, and the start of the paths that may use it.
const WALLS: &[(&str, &[&str])] = &[
    ("annotate_snippets", &["diag/render.rs"]),
    ("lalrpop_util", &["syntax/parse.rs"]),
    ("clap", &["cli/args.rs"]),
    ("clap_complete", &["cli/args.rs"]),
    ("clap_mangen", &["cli/args.rs"]),
    ("terminal", &["cli/live.rs"]),
    ("rustyline", &["prompt/"]),
    ("indicatif", &["cli/", "report/"]),
    ("io_uring", &["os/uring.rs"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// All sources with their path below `src/`.
fn sources() -> Vec<(String, String)> {
    let src = root().join("src");
    let mut paths = Vec::new();
    walk(&src, &mut paths);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(paths.len() > 20, "the sources are not where this test looks");
    let name = |path: &Path| path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
    let mut sources: Vec<_> = paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect();
    sources.sort();
    sources
}

/// A source without comments and strings, as far as these rules need it.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The modules that a piece of code takes from the crate: `crate::NAME`, also in `crate::{a, b::c}`.
fn used(code: &str) -> BTreeSet<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(inner) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let (mut depth, mut fresh) = (0, true);
        for (i, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                c if fresh && !c.is_whitespace() => {
                    found.insert(name(&inner[i..]));
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn grouped_imports_are_seen() {
    let seen = used("use crate::{diag::{self, Code}, source};\nlet x = crate::spec::f();");
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["diag", "source", "spec"]);
}

/// Each module imports only from those before it in `lib.rs`.
#[test]
fn modules_import_only_to_their_left() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let order: Vec<&str> = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!((order.first(), order.last()), (Some(&"util"), Some(&"cli")), "the list of modules is not where it was");
    let place = |name: &str| order.iter().position(|module| *module == name);
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let module = path.split(['/', '.']).next().unwrap();
        let Some(own) = place(module) else { continue };
        for name in used(&code(&text)) {
            if place(&name).is_some_and(|other| other > own) {
                wrong.push(format!("src/{path} uses {name}, which stands behind {module}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One file, or one room, knows a foreign library's types.
#[test]
fn libraries_stay_behind_their_walls() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let code = code(&text);
        for (library, rooms) in WALLS {
            let known = [format!("{library}::"), format!("use {library};"), format!("{library}!")];
            if known.iter().any(|k| code.contains(k)) && !rooms.iter().any(|room| path.starts_with(room)) {
                wrong.push(format!("src/{path} knows {library}, which only {} may", rooms.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_say_what_they_are_for_and_stay_short() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//! ") {
            wrong.push(format!("src/{path} does not open with //!"));
        }
        let lines = text.lines().count();
        if lines > LONGEST && !MAY_BE_LONGER.contains(&path.as_str()) {
            wrong.push(format!("src/{path} has {lines} lines"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each folder of golden cases holds some, and no snapshot has lost its case. (A case without a snapshot fails by itself.)
#[test]
fn golden_cases_are_whole() {
    let cases = root().join("tests/cases");
    let mut folders = 0;
    for folder in fs::read_dir(&cases).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        folders += 1;
        let mut files = Vec::new();
        walk(&folder, &mut files);
        let stems = |snapshots: bool| -> BTreeSet<String> {
            let is = |path: &&PathBuf| (path.extension().is_some_and(|e| e == "snap")) == snapshots;
            files
                .iter()
                .filter(|path| path.extension().is_none_or(|e| e != "new"))
                .filter(is)
                .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        let (inputs, snapshots) = (stems(false), stems(true));
        assert!(!inputs.is_empty(), "{} holds no case", folder.display());
        let orphans: Vec<_> = snapshots.difference(&inputs).collect();
        assert!(orphans.is_empty(), "{}: snapshots without a case: {orphans:?}", folder.display());
    }
    assert!(folders >= 3, "the golden cases are not where this test looks");
}
