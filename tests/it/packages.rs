//! Tests what is shipped: the Debian package and the image name files that exist, the manual pages are valid, a release is
//! complete, and the licences of all libraries are allowed.
//!
//! Nothing is built here: `.ci/full release` makes a release and runs a workload from each part of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::cmd::{binary, has, scratch, skip, tool};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fresh(prefix: &str) -> TempDir {
    tempfile::Builder::new().prefix(prefix).tempdir_in(scratch()).unwrap()
}

fn toml_of(file: &str) -> toml::Table {
    fs::read_to_string(root().join(file)).unwrap().parse().unwrap()
}

/// The texts in an array of a TOML file.
fn strings(value: &toml::Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// Runs a step of `.ci/release` on other directories than those below `target/`.
fn release(step: &str, stage: &Path, dist: &Path) -> Output {
    let mut command = Command::new(root().join(".ci/release"));
    command.arg(step).env("STAGE", stage).env("DIST", dist).stdin(Stdio::null()).output().unwrap()
}

/// The directory that a release is made from, with the binary under test in place of the static one.
fn stage() -> TempDir {
    let stage = fresh("stage-");
    std::os::unix::fs::symlink(binary().canonicalize().unwrap(), stage.path().join("wmlrun")).unwrap();
    let old = stage.path().join("man/old.1");
    fs::create_dir(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    let output = release("files", stage.path(), stage.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!old.exists(), "a file of an earlier version is in the release");
    let script = fs::read_to_string(root().join(".ci/release")).unwrap();
    // The step that builds with MPI writes these.
    fs::create_dir(stage.path().join("mpi")).unwrap();
    for name in ["wmlrun-mpi", "wmlrun-mpi.1"] {
        assert!(script.contains(&format!("\"$stage/mpi/{name}\"")), "{name}");
        fs::write(stage.path().join("mpi").join(name), "").unwrap();
    }
    // Only cargo-about writes the licences.
    assert!(script.contains("--output-file \"$stage/THIRD-PARTY.md\" about.hbs") && root().join("about.hbs").exists());
    fs::write(stage.path().join("THIRD-PARTY.md"), "").unwrap();
    stage
}

/// The files that a path with at most one `*`, in its last part, names.
fn matches(pattern: &Path) -> BTreeSet<PathBuf> {
    let name = pattern.file_name().unwrap().to_str().unwrap();
    let Some((start, end)) = name.split_once('*') else {
        return pattern.exists().then(|| pattern.to_owned()).into_iter().collect();
    };
    let folder = fs::read_dir(pattern.parent().unwrap()).into_iter().flatten();
    let is_named = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    folder.map(|entry| entry.unwrap().path()).filter(is_named).collect()
}

/// All files below a directory.
fn files_below(dir: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    folders.iter().flat_map(|folder| files_below(folder)).chain(files).collect()
}

#[test]
fn the_debian_package_names_files_that_exist() {
    let stage = stage();
    let manifest = toml_of("Cargo.toml");
    let deb = &manifest["package"]["metadata"]["deb"];
    let (mut shipped, mut targets) = (BTreeSet::new(), BTreeSet::new());
    let mpi = &deb["variants"]["mpi"];
    let depends = mpi["depends"].as_str().unwrap();
    assert!(depends.contains(&format!("wmlrun (= {}-1)", env!("CARGO_PKG_VERSION"))), "{depends}");
    for asset in deb["assets"].as_array().unwrap().iter().chain(mpi["assets"].as_array().unwrap()) {
        let [source, target, mode] = strings(asset).try_into().unwrap();
        assert!(targets.insert((source, target)), "{source} twice");
        assert!(target.starts_with("usr/") && !target.contains(".."), "{target}");
        assert_eq!(mode, if target == "usr/bin/" { "755" } else { "644" }, "{source}");
        if let Some(program) = source.strip_prefix("target/release/") {
            assert_eq!(manifest["bin"][0]["name"].as_str(), Some(program));
            continue;
        }
        let staged = source.strip_prefix("target/stage/").map(|path| stage.path().join(path));
        let found = matches(&staged.unwrap_or_else(|| root().join(source)));
        assert!(!found.is_empty(), "{source}");
        shipped.extend(found);
    }
    // The package has the binary of the build, and the licences of the clone.
    shipped.extend(["wmlrun", "LICENSE-MIT", "LICENSE-APACHE"].map(|file| stage.path().join(file)));
    let forgotten: Vec<_> = files_below(stage.path()).difference(&shipped).cloned().collect();
    assert!(forgotten.is_empty(), "the package lacks {forgotten:?}");
    let licence = strings(&deb["license-file"]);
    assert_eq!(licence[1], "0");
    // What this file says of the libraries is in another one, which the package has too.
    let copyright = fs::read_to_string(root().join(licence[0])).unwrap();
    assert!(copyright.contains("/usr/share/doc/wmlrun/THIRD-PARTY.md"), "{copyright}");
    let output = release("deb", stage.path(), stage.path());
    assert_eq!(output.status.code(), Some(1), "the package is made from another directory");
}

#[test]
fn the_image_names_files_that_exist() {
    let stage = stage();
    let text = fs::read_to_string(root().join("Containerfile")).unwrap();
    let mut copied = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let mut words: Vec<&str> = line.split(' ').collect();
        let target = words.pop().unwrap();
        assert!(target.starts_with('/') && !words.is_empty(), "{line}");
        for word in words {
            assert!(stage.path().join(word).is_file(), "{word}");
            copied.push(if target.ends_with('/') { format!("{target}{word}") } else { target.to_owned() });
        }
    }
    let program = text.lines().find_map(|line| line.strip_prefix("ENTRYPOINT [\"")?.strip_suffix("\"]")).unwrap();
    assert!(copied.iter().any(|file| file == program), "{program} is not among {copied:?}");
}

#[test]
fn documents_name_the_current_version() {
    let mut named = 0;
    for page in ["docs/install.md", "docs/containers.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for rest in ["wmlrun:", "wmlrun_", "wmlrun-"].iter().flat_map(|start| text.split(start).skip(1)) {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let version = rest[..end].trim_end_matches('.');
            if !version.is_empty() {
                assert_eq!(version, env!("CARGO_PKG_VERSION"), "{page}");
                named += 1;
            }
        }
    }
    assert!(named > 5, "{named} versions");
}

#[test]
fn manual_pages_are_valid() {
    let dir = fresh("man-");
    let pages = dir.path().join("man1");
    tool(binary().to_str().unwrap(), &["setup", "man", pages.to_str().unwrap()]);
    let pages: Vec<String> = files_below(&pages).iter().map(|page| page.display().to_string()).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    assert!(pages.len() > 20, "{pages:?}");
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).args(&pages).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(['\u{2010}', '\u{2212}'], "-");
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (mandoc, groff) = (has("mandoc"), has("groff"));
    if !mandoc && !groff {
        return skip("neither groff nor mandoc is installed");
    }
    if mandoc {
        let (valid, found, said) = run("mandoc", &["-Tlint", "-Werror"]);
        assert!(valid, "{found}{said}");
    }
    if groff {
        let (valid, text, warnings) = run("groff", &["-man", "-Tutf8", "-Kutf8", "-wmac", "-P-cbou"]);
        assert!(valid && warnings.is_empty(), "{warnings}");
        // The version is in the footer, and an example can be copied.
        assert!(text.contains(&format!("wmlrun {}", env!("CARGO_PKG_VERSION"))), "{text}");
        assert!(text.contains("wmlrun ab varmail --a '--dir /mnt/ext4'"), "{text}");
    }
}

#[test]
fn a_release_is_complete_or_fails() {
    let (stage, dist) = (fresh("stage-"), fresh("dist-"));
    let output = release("sums", stage.path(), dist.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let missing = said.lines().filter_map(|line| line.strip_prefix("missing: "));
    let missing: Vec<PathBuf> = missing.map(Into::into).collect();
    for (ending, count) in
        [(".tar.gz", 2), (".deb", 2), (".rpm", 1), (".oci.tar", 2), (".cdx.json", 1), ("THIRD-PARTY.md", 1)]
    {
        let of_kind = missing.iter().filter(|file| file.to_str().unwrap().ends_with(ending));
        assert_eq!(of_kind.count(), count, "{ending}: {said}");
    }
    // All but one: an empty file is missing too.
    for file in &missing[1..] {
        fs::write(file, "x").unwrap();
    }
    fs::write(&missing[0], "").unwrap();
    assert_eq!(release("sums", stage.path(), dist.path()).status.code(), Some(1));
    assert!(!dist.path().join("SHA256SUMS").exists());
    fs::write(&missing[0], "x").unwrap();
    let output = release("sums", stage.path(), dist.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sums = fs::read_to_string(dist.path().join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), missing.len(), "{sums}");
    assert_eq!(release("nothing", stage.path(), dist.path()).status.code(), Some(2));
}

/// Whether some of the licences satisfy an SPDX expression. `MIT/Apache-2.0` is an old form of `MIT OR Apache-2.0`.
fn is_satisfied(expression: &str, allowed: &[&str]) -> bool {
    fn either<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, allowed: &[&str]) -> bool {
        let mut satisfied = both(words, allowed);
        while words.next_if_eq(&"OR").is_some() {
            satisfied |= both(words, allowed);
        }
        satisfied
    }
    fn both<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, allowed: &[&str]) -> bool {
        let mut satisfied = one(words, allowed);
        while words.next_if_eq(&"AND").is_some() {
            satisfied &= one(words, allowed);
        }
        satisfied
    }
    fn one<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, allowed: &[&str]) -> bool {
        let mut name = words.next().unwrap_or_default().to_owned();
        if name == "(" {
            let satisfied = either(words, allowed);
            assert_eq!(words.next(), Some(")"));
            return satisfied;
        }
        if words.next_if_eq(&"WITH").is_some() {
            name = format!("{name} WITH {}", words.next().unwrap_or_default());
        }
        allowed.contains(&name.as_str())
    }
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let satisfied = either(&mut words, allowed);
    assert_eq!(words.next(), None, "{expression}");
    satisfied
}

#[test]
fn licence_expressions_are_evaluated() {
    let allowed = ["MIT", "Zlib"];
    for good in ["MIT", "MIT OR GPL-2.0", "GPL-2.0/MIT", "(GPL-2.0 OR MIT) AND Zlib", "A WITH b OR MIT"] {
        assert!(is_satisfied(good, &allowed), "{good}");
    }
    for bad in ["", "GPL-2.0", "MIT AND GPL-2.0", "(MIT OR Zlib) AND GPL-2.0", "MIT WITH b", "GPL-2.0 OR Zlib AND A"] {
        assert!(!is_satisfied(bad, &allowed), "{bad}");
    }
}

/// The rules of deny.toml on licences, which `cargo deny` checks in the full checks, and those of about.toml.
#[test]
fn the_licences_of_all_libraries_are_allowed() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = root().join("Cargo.toml").display().to_string();
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["--locked", "--offline", "--format-version", "1", "--filter-platform", &platform];
    let args: Vec<&str> = ["metadata", "--manifest-path", &manifest].into_iter().chain(args).collect();
    let metadata: Value = serde_json::from_str(&tool(&cargo, &args)).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let start = metadata["resolve"]["root"].as_str().unwrap();

    // What the binary contains: no libraries of build scripts and tests.
    let (mut linked, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(id) = next.pop() {
        if linked.insert(id) {
            let node = nodes.iter().find(|node| node["id"] == id).unwrap();
            let is_linked = |to: &&Value| to["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
            let libraries = node["deps"].as_array().unwrap().iter().filter(is_linked);
            next.extend(libraries.map(|to| to["pkg"].as_str().unwrap()));
        }
    }

    let (deny, about) = (toml_of("deny.toml"), toml_of("about.toml"));
    let allowed = strings(&deny["licenses"]["allow"]);
    let accepted = strings(&about["accepted"]);
    let exceptions = deny["licenses"]["exceptions"].as_array().unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for package in metadata["packages"].as_array().unwrap() {
        let (id, name) = (package["id"].as_str().unwrap(), package["name"].as_str().unwrap());
        if !nodes.iter().any(|node| node["id"] == id) {
            continue;
        }
        count += 1;
        let licence = package["license"].as_str().unwrap_or_default();
        let own = exceptions.iter().filter(|exception| exception["crate"].as_str() == Some(name));
        let allowed: Vec<&str> = own.flat_map(|own| strings(&own["allow"])).chain(allowed.iter().copied()).collect();
        if !is_satisfied(licence, &allowed) {
            wrong.push(format!("deny.toml does not allow {name}: {licence}"));
        }
        if linked.contains(id) && !is_satisfied(licence, &accepted) {
            wrong.push(format!("about.toml does not accept {name}: {licence}"));
        }
        if !package["source"].as_str().is_none_or(|from| from.contains("github.com/rust-lang/crates.io-index")) {
            wrong.push(format!("{name} is not from crates.io: {}", package["source"]));
        }
    }
    assert!(linked.len() > 50 && count > linked.len(), "{} of {count} libraries are linked", linked.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
