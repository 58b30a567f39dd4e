//! Tests the rules for the source code by reading it: imports, use of libraries, headers and lengths of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file, in lines.
const LONGEST: usize = 600;
/// Files that may be longer, each with the reason.
const MAY_BE_LONGER: &[&str] = &[];
/// Libraries that only some files may know: name as in code, and the start of the paths that may use it.
const WALLS: &[(&str, &[&str])] = &[
    ("annotate_snippets", &["language/diag/render.rs"]),
    ("lalrpop_util", &["language/syntax/parse.rs"]),
    ("mpi", &["ranks/"]),
    ("lsp_server", &["lsp/"]),
    ("lsp_types", &["lsp/"]),
    (
        "clap",
        &[
            "cli/args.rs",
            "cli/experiment_args.rs",
            "cli/compare_args.rs",
            "cli/history_args.rs",
            "cli/recording_args.rs",
            "cli/run_options.rs",
            "cli/program_help.rs",
            "cli/choices.rs",
            "cli/completion.rs",
            "cli/examples.rs",
            "cli/man.rs",
            "cli/usage.rs",
        ],
    ),
    ("aya", &["trace/bpf/"]),
    ("clap_complete", &["cli/completion.rs"]),
    ("clap_mangen", &["cli/man.rs"]),
    ("terminal", &["cli/screen.rs"]),
    ("rustyline", &["prompt/"]),
    ("indicatif", &["cli/", "report/"]),
    ("rustix", &["os/"]),
    ("libc", &["os/", "trace/"]),
    ("io_uring", &["os/uring.rs"]),
    ("statrs", &["statistics/distributions.rs", "engine/fileset/members_tests.rs", "engine/random/tests.rs"]),
    ("toml", &["experiment/folder.rs", "experiment/file_reader.rs", "import/folder.rs"]),
    ("flate2", &["result/hdr.rs", "trace/format.rs"]),
    ("hdrhistogram", &["result/hdr.rs", "result/hdr_export.rs"]),
    ("jiff", &["text/timestamp.rs"]),
    ("shell_words", &["cli/shell_text.rs", "cli/examples.rs"]),
    ("svg", &["sheet/chart.rs", "sheet/drawing.rs", "page/tests.rs"]),
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
    assert!(paths.len() > 20, "the sources were not found");
    let name = |path: &Path| path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
    let mut sources: Vec<_> = paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect();
    sources.sort();
    sources
}

/// The libraries below `src/`, by their folders.
fn libraries() -> BTreeSet<String> {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    members.iter().map(|member| member.as_str().unwrap().strip_prefix("src/").unwrap().to_owned()).collect()
}

/// The room of a source: a library, one of the rooms of a library in [`ORDERED`], or a module of the program.
fn room(path: &str) -> &str {
    let folders: Vec<(usize, &str)> = path.match_indices('/').collect();
    let is_first = |list: &str| list.trim_end_matches("lib.rs") == &path[..=folders[0].0];
    let depth = usize::from(ORDERED.iter().any(|(list, ..)| is_first(list)));
    folders.get(depth).or(folders.last()).map_or(path, |(end, _)| &path[..*end])
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
fn grouped_imports_are_found() {
    let seen = used("use crate::{diag::{self, Code}, source};\nlet x = crate::spec::f();");
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["diag", "source", "spec"]);
}

/// The files that list modules in import order, each with the first and the last module: that of the program, and those of
/// libraries that have several rooms. Between libraries Cargo allows no import of a later one.
const ORDERED: &[(&str, &str, &str)] =
    &[("lib.rs", "version", "cli"), ("language/lib.rs", "source", "model"), ("engine/lib.rs", "random", "runtime")];

/// Each module imports only from those before it in `lib.rs`.
#[test]
fn modules_import_only_earlier_modules() {
    let sources = sources();
    let mut wrong = Vec::new();
    for (list, first, last) in ORDERED {
        let (_, lib) = sources.iter().find(|(path, _)| path == list).expect("the list of modules is not where it was");
        let order: Vec<&str> = lib
            .lines()
            .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
            .collect();
        assert_eq!((order.first(), order.last()), (Some(first), Some(last)), "the modules in {list}");
        let place = |name: &str| order.iter().position(|module| *module == name);
        for (path, text) in &sources {
            let Some(inner) = path.strip_prefix(list.trim_end_matches("lib.rs")) else { continue };
            let module = inner.split(['/', '.']).next().unwrap();
            let Some(own) = place(module) else { continue };
            for name in used(&code(text)) {
                if place(&name).is_some_and(|other| other > own) {
                    wrong.push(format!("src/{path} uses {name}, which stands behind {module}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `cargo test` runs the unit tests of the default members only.
#[test]
fn every_library_is_a_default_member_with_the_same_rules() {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let default = manifest["workspace"]["default-members"].as_array().unwrap();
    let default: BTreeSet<&str> = default.iter().map(|member| member.as_str().unwrap()).collect();
    let libraries = libraries();
    let members: BTreeSet<String> = libraries.iter().map(|name| format!("src/{name}")).collect();
    assert_eq!(default, members.iter().map(String::as_str).chain(["."]).collect());
    for folder in fs::read_dir(root().join("src")).unwrap() {
        let (folder, name) = folder.map(|folder| (folder.path(), folder.file_name().into_string().unwrap())).unwrap();
        assert_eq!(
            folder.join("Cargo.toml").exists(),
            libraries.contains(&name),
            "src/{name} is a member, or it is none"
        );
    }
    for name in &libraries {
        let text = fs::read_to_string(root().join("src").join(name).join("Cargo.toml")).unwrap();
        let own: toml::Table = text.parse().unwrap();
        assert_eq!(own["package"]["name"].as_str(), Some(format!("wml-{name}").as_str()));
        assert_eq!(own["package"]["publish"].as_bool(), Some(false), "{name}");
        assert_eq!(own["lints"]["workspace"].as_bool(), Some(true), "{name}");
    }
}

/// A library can be moved: what it embeds is in its folder.
#[test]
fn libraries_embed_only_files_of_their_own() {
    let libraries = libraries();
    let (mut embedded, mut wrong) = (0, Vec::new());
    for (path, text) in sources().iter().filter(|(path, _)| !path.ends_with("tests.rs")) {
        let Some((name, inner)) = path.split_once('/').filter(|(name, _)| libraries.contains(*name)) else { continue };
        let depth = inner.matches('/').count();
        for (_, file) in program(text).split("include_str!(").skip(1).filter_map(|rest| rest.split_once('"')) {
            embedded += 1;
            if file.split('/').take_while(|part| *part == "..").count() > depth {
                wrong.push(format!("{path} embeds a file from outside src/{name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(embedded > 0 || !libraries.contains("sheet"), "nothing is embedded");
}

/// Rooms that `session` may import.
const MOST_IMPORTS: usize = 9;
/// Fields of its main type.
const MOST_FIELDS: usize = 10;

#[test]
fn a_session_imports_few_modules_and_has_few_fields() {
    let sources: Vec<_> = sources().into_iter().filter(|(path, _)| path.starts_with("session/")).collect();
    let rooms: BTreeSet<String> = sources.iter().flat_map(|(_, text)| used(&code(text))).collect();
    assert!(rooms.contains("measure") && rooms.len() <= MOST_IMPORTS, "session imports {rooms:?}");
    let texts: Vec<_> = sources.iter().filter_map(|(_, text)| text.split_once("pub struct Session {")).collect();
    assert_eq!(texts.len(), 1, "the session was not found");
    let body = code(texts[0].1.split_once("\n}").unwrap().0);
    let fields: Vec<&str> = body.lines().filter_map(|line| Some(line.split_once(": ")?.0.trim())).collect();
    assert!((1..=MOST_FIELDS).contains(&fields.len()), "a session has {} fields: {fields:?}", fields.len());
}

/// Files of a room that may need one another in a circle.
const LONGEST_CYCLE: usize = 4;

/// The paths of a `use` tree below a path.
fn spell_out(above: &mut Vec<String>, tree: &str, found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let inner = tree.strip_prefix('{').and_then(|tree| tree.strip_suffix('}'));
    if let Some(inner) = inner {
        let mut depth = 0;
        let parts = inner.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        parts.filter(|part| !part.trim().is_empty()).for_each(|part| spell_out(above, part, found));
    } else if let Some((first, rest)) = tree.split_once("::") {
        above.push(first.to_owned());
        spell_out(above, rest, found);
        above.pop();
    } else {
        let name = tree.split(" as ").next().unwrap_or(tree);
        found
            .push(above.iter().map(String::as_str).chain([name]).filter(|n| *n != "self").map(str::to_owned).collect());
    }
}

/// A source up to its module of tests. Single items that only tests have may stand before it.
pub(crate) fn program(text: &str) -> &str {
    let is_module = |at: &usize| {
        let item = text[*at..].lines().skip(2).find(|line| !line.starts_with("#[")).unwrap_or_default();
        item.starts_with("mod ") || item.starts_with("pub") && item.contains(" mod ")
    };
    let at = text.match_indices("\n#[cfg(test)]\n").map(|(at, _)| at).find(is_module);
    &text[..at.unwrap_or(text.len())]
}

#[test]
fn the_tests_of_a_source_are_left_out() {
    let item = "fn a() {}\n#[cfg(test)]\nuse x::Y;\nfn b() {}\n";
    for module in ["mod tests {}\n", "#[path = \"x.rs\"]\nmod tests;\n", "pub(super) mod shown {}\n"] {
        assert_eq!(program(&format!("{item}\n#[cfg(test)]\n{module}")).trim_end(), item.trim_end());
    }
    assert_eq!(program(item), item);
}

/// The names of a path, in order.
type Names = Vec<String>;

/// The paths that a piece of code names in `use` statements, each with whether that passes it on (`pub use`), and those
/// in all other code.
fn paths_named(code: &str) -> (Vec<(bool, Names)>, Vec<Names>) {
    let (mut used, mut others) = (Vec::new(), Vec::new());
    for statement in code.split(';') {
        let visible = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let starts = |line: &str| visible.iter().any(|start| line.trim_start().starts_with(start));
        let lines: Vec<&str> = statement.lines().collect();
        let at = lines.iter().position(|line| starts(line)).unwrap_or(lines.len());
        let tree = lines[at..].iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ");
        let mut paths = Vec::new();
        if let Some((visibility, tree)) = tree.split_once("use ") {
            spell_out(&mut Vec::new(), tree, &mut paths);
            used.extend(paths.into_iter().map(|path| (!visibility.is_empty(), path)));
        }
        let other = lines[..at].join("\n").replace("pub(in crate::", "");
        let words = other.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).map(str::to_owned);
        others.extend(words.filter_map(|word| {
            let path: Names = word.trim_end_matches(':').split("::").map(str::to_owned).collect();
            (path.len() > 1).then_some(path)
        }));
    }
    (used, others)
}

/// A path from `src/`, as a name of the file `file` means it. `None` if it is not of its room. A file below `library` says
/// `crate` and means that folder.
fn absolute(path: &[String], file: &str, library: bool, is_file: &dyn Fn(&str) -> bool) -> Option<Names> {
    let mut base: Names = file.split("::").map(str::to_owned).collect();
    let room = base[0].clone();
    let mut rest = path;
    match path[0].as_str() {
        "crate" => {
            base.truncate(usize::from(library));
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        first if is_file(&format!("{file}::{first}")) => {}
        _ => return None,
    }
    base.extend_from_slice(rest);
    (base.first() == Some(&room)).then_some(base)
}

/// Which file of a room uses which, by their paths. A name that a file passes on counts as that of the file that it is
/// from: a `mod.rs` that only gathers names stands in no circle.
fn uses_in_room(files: &BTreeMap<String, String>, library: bool) -> BTreeMap<String, BTreeSet<String>> {
    let is_file = |name: &str| files.contains_key(name);
    // The longest part of a path that is a file, and the name that follows it.
    let split = |path: &[String]| {
        let longest = (1..=path.len()).rev().find(|n| is_file(&path[..*n].join("::")))?;
        Some((path[..longest].join("::"), path.get(longest).cloned()))
    };
    let named: BTreeMap<&String, _> = files.iter().map(|(file, text)| (file, paths_named(&code(text)))).collect();
    let mut given: BTreeMap<(String, String), String> = BTreeMap::new();
    for (file, (used, _)) in &named {
        for (from, name) in used.iter().filter_map(|(_, path)| split(&absolute(path, file, library, &is_file)?)) {
            if let Some(name) = name.filter(|_| from != **file) {
                given.insert(((*file).clone(), name), from);
            }
        }
    }
    let mut edges = BTreeMap::new();
    for (file, (used, others)) in named {
        let own = used.iter().filter(|(passed_on, _)| !passed_on).map(|(_, path)| path).chain(&others);
        let to = own.filter_map(|path| {
            let (to, name) = split(&absolute(path, file, library, &is_file)?)?;
            Some(name.and_then(|name| given.get(&(to.clone(), name)).cloned()).unwrap_or(to))
        });
        edges.insert(file.clone(), to.filter(|to| to != file).collect());
    }
    edges
}

/// Groups of files that all need one another.
fn circles(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(edges.get(file).into_iter().flatten().filter(|to| seen.insert((*to).clone())));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &String| {
        all[file].iter().filter(|to| all.get(to).is_some_and(|back| back.contains(file))).cloned().collect()
    };
    edges.keys().map(circle).filter(|circle: &Vec<String>| circle.len() > 1).collect()
}

#[test]
fn cycles_are_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = BTreeMap::from([
        file("x", "mod a;\npub use b::{B, O};\npub struct Root;"),
        file("x::a", "use super::{Root, B};\nuse crate::y::c::{self, C};"),
        file("x::b", "use super::c::C;\nfn f() { g(Vec::new()) }"),
        file("x::c", "use super::{\n    d,\n    O,\n};"),
        file("x::d", "fn f() -> u8 { crate::x::e::f::g() }"),
        file("x::e", "use super::a::A;"),
        file("x::e::f", "use super::super::a::A;"),
    ]);
    let edges = uses_in_room(&files, false);
    let of = |file: &str| edges[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("x"), of("x::a"), of("x::b")), (vec![], vec!["x", "x::b"], vec!["x::c"]));
    assert_eq!((of("x::c"), of("x::d")), (vec!["x::b", "x::d"], vec!["x::e::f"]));
    assert_eq!(of("x::e::f"), ["x::a"]);
    let found = circles(&edges).into_iter().collect::<Vec<_>>();
    assert_eq!(found, [["x::a", "x::b", "x::c", "x::d", "x::e::f"]]);
    // A library says `crate` for its own folder.
    let files = BTreeMap::from([file("x", "mod a;\nmod b;"), file("x::a", "use crate::b::B;"), file("x::b", "")]);
    let of_a = |library: bool| uses_in_room(&files, library)["x::a"].iter().cloned().collect::<Vec<_>>();
    assert_eq!((of_a(true), of_a(false)), (vec!["x::b".to_owned()], vec![]));
}

/// Files of a room that need one another are read together: there must be few of them.
#[test]
fn no_module_has_a_long_import_cycle() {
    let mut rooms: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.contains('/') && !path.ends_with("tests.rs")) {
        let file = path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::");
        let room = room(&path).to_owned();
        // Tests see everything.
        let text = program(&text).to_owned();
        rooms.entry(room).or_default().insert(file, text);
    }
    let libraries = libraries();
    let mut longer = BTreeMap::new();
    for (room, files) in &rooms {
        let is_library = libraries.contains(room.split('/').next().unwrap());
        for circle in
            circles(&uses_in_room(files, is_library)).into_iter().filter(|circle| circle.len() > LONGEST_CYCLE)
        {
            longer.insert(room, format!("{} files need one another: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(longer.is_empty(), "{longer:#?}");
}

/// A terminal without UTF-8 shows ASCII: what the program itself writes has a form in it.
#[test]
fn characters_of_the_program_have_a_form_in_ascii() {
    // The quotes that the lexer skips are not written.
    let is_read = |path: &str| path.ends_with("syntax/skipped.rs") || path.contains("test");
    let mut without = BTreeSet::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_read(path)) {
        let program = text.split("#[cfg(test)]").next().unwrap_or("");
        let lacks = |c: &char| !wml::util::ascii::of(&c.to_string()).is_ascii();
        without.extend(code(program).chars().filter(lacks).map(|c| format!("{c} in src/{path}")));
    }
    assert!(without.is_empty(), "{without:#?}");
}

/// One file, or one room, knows a foreign library's types.
#[test]
fn libraries_are_used_only_in_their_modules() {
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
fn files_have_a_header_and_are_short() {
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
fn golden_cases_are_complete() {
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
    assert!(folders >= 3, "the golden cases were not found");
}

/// What stands before the index of the tests.
const ABOUT_TESTS: &str = "\
# Tests of the program

One binary; each file is a module. `cargo test --test it -- MODULE::` runs one of them.

To add a test:

- The output of a stage: `tests/cases/STAGE/NAME.wml`; run `cargo test --test cases`, read the new snapshot, accept it.
- A script with a mistake: `tests/cases/check/NAME.wml`, and the corrected one in `tests/cases/mended/`. An old script in
  an odd form: `tests/cases/old/NAME.f`.
- A behaviour of the program: a function here, with
  `Wml::new().file(\"x.wml\", \"…\").args([\"x.wml\"]).result().run().exits(0)`.
- A real file system: `Mount::new(Fs::Xfs, bytes)`, which is unmounted when it is dropped. A test that needs the whole
  machine uses `.alone()`. System calls: `strace::run(call)`, whose `log.of_steps()` has those of the steps of a thread.
- A command in a document: each `$ ` line of README.md and docs/ is run; comments before its block, such as
  `<!-- test: args=--runtime 1 -->`, say how (`documented`).
- A page of docs/: a line in docs/SUMMARY.md.

A random case is seeded, no test is ignored, and none asserts a speed. Where the machine lacks something, the test
reports that it was skipped (`needs!`, `cmd::skip`).
";

/// `tests/it/README.md` has a line for each file, with the first sentence of its header. `UPDATE_DOCS=1` writes it.
#[test]
fn the_index_of_the_tests_agrees_with_their_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut names: Vec<String> = fs::read_dir(&root)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok()?.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "main")
        .collect();
    names.sort();
    let mut index = format!("{ABOUT_TESTS}\n| module | what it tests |\n|---|---|\n");
    for name in names {
        let text = fs::read_to_string(root.join(format!("{name}.rs"))).unwrap();
        let head: Vec<_> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
        let first = head.iter().take_while(|line| !line.is_empty()).copied().collect::<Vec<_>>().join(" ");
        assert!(!first.is_empty(), "{name}.rs has no header");
        let first = first.split_once(". ").map_or(first.as_str(), |(sentence, _)| sentence).trim_end_matches('.');
        index += &format!("| `{name}` | {} |\n", first.replace('|', "\\|"));
    }
    let path = root.join("README.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, index).unwrap();
    } else {
        assert_eq!(fs::read_to_string(path).unwrap_or_default(), index, "run this test with UPDATE_DOCS=1");
    }
}
