//! Tests docs/architecture.md: every function of its walks through the code exists, and every file that it names.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).unwrap()
}

/// A line such as ``3. `syntax/parse.rs`: `parse` makes …``: file and function.
fn hop(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (file, rest) = rest.split_once("`: `")?;
    Some((file, rest.split_once('`')?.0))
}

/// The hops below each heading of the section.
fn walks() -> Vec<(String, Vec<(String, String)>)> {
    let text = page();
    let section = text.split("\n## ").find(|section| section.starts_with("Walks")).expect("no section of walks");
    let walks = section.split("\n### ").skip(1).map(|walk| {
        let hops = walk.lines().filter_map(hop).map(|(file, function)| (file.to_owned(), function.to_owned()));
        (walk.lines().next().unwrap_or_default().to_owned(), hops.collect())
    });
    walks.collect()
}

/// What stands between backquotes and is a path: of a file of Rust, or of a directory.
fn paths_named(text: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        let chars = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/.".contains(c));
        let is_rust = Path::new(word).extension().is_some_and(|end| end == "rs");
        chars && word.contains('/') && (is_rust || word.ends_with('/'))
    };
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_path).collect()
}

#[test]
fn every_function_of_a_walk_exists() {
    let walks = walks();
    assert_eq!(walks.len(), 3, "{walks:?}");
    for (walk, hops) in &walks {
        assert!(!hops.is_empty(), "{walk} lists no function");
        for (file, function) in hops {
            let text = fs::read_to_string(root().join("src").join(file));
            let text = text.unwrap_or_else(|e| panic!("{walk}: src/{file}: {e}"));
            let defined = [format!("fn {function}("), format!("fn {function}<")];
            assert!(defined.iter().any(|form| text.contains(form)), "{walk}: src/{file} has no function {function}");
        }
    }
}

#[test]
fn walks_are_short() {
    for (walk, hops) in walks() {
        let most = if walk.contains("--runtime") { 6 } else { 16 };
        assert!(hops.len() <= most, "{walk} takes {} functions", hops.len());
    }
}

#[test]
fn every_file_of_the_map_exists() {
    let text = page();
    let named = paths_named(&text);
    assert!(named.len() > 60, "{} files", named.len());
    let places = |path: &str| -> [PathBuf; 2] { [root().join("src").join(path), root().join(path)] };
    let missing: Vec<_> = named.iter().filter(|path| !places(path).iter().any(|place| place.exists())).collect();
    assert!(missing.is_empty(), "docs/architecture.md names {missing:?}");
}

#[test]
fn lines_of_a_walk_are_parsed() {
    assert_eq!(hop("3. `a/b.rs`: `parse` makes a list."), Some(("a/b.rs", "parse")));
    assert_eq!(hop("A line of text with `code`: `more`"), None);
    assert_eq!(paths_named("`a/b.rs` of `c`, `d/`, `b.rs`, `A/b.rs`"), ["a/b.rs", "d/"]);
}
