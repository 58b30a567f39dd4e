//! Tests that every function that docs/architecture.md names in its paths through the code exists.

use std::fs;
use std::path::Path;

/// A line such as ``3. `syntax/parse.rs`: `parse` makes …``: file and function.
fn hop(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (file, rest) = rest.split_once("`: `")?;
    Some((file, rest.split_once('`')?.0))
}

/// The hops below each heading of the section.
fn paths() -> Vec<(String, Vec<(String, String)>)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Two paths")).expect("no section of paths");
    let paths = section.split("\n### ").skip(1).map(|path| {
        let hops = path.lines().filter_map(hop).map(|(file, function)| (file.to_owned(), function.to_owned()));
        (path.lines().next().unwrap_or_default().to_owned(), hops.collect())
    });
    paths.collect()
}

#[test]
fn every_function_of_a_path_exists() {
    let paths = paths();
    assert_eq!(paths.len(), 2, "{paths:?}");
    for (path, hops) in &paths {
        assert!(!hops.is_empty(), "{path} lists no function");
        for (file, function) in hops {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file));
            let text = text.unwrap_or_else(|e| panic!("{path}: src/{file}: {e}"));
            let defined = [format!("fn {function}("), format!("fn {function}<")];
            assert!(defined.iter().any(|form| text.contains(form)), "{path}: src/{file} has no function {function}");
        }
    }
}

#[test]
fn paths_are_short() {
    for (path, hops) in paths() {
        let most = if path.contains("--runtime") { 6 } else { 16 };
        assert!(hops.len() <= most, "{path} takes {} functions", hops.len());
    }
}

#[test]
fn lines_of_a_path_are_parsed() {
    assert_eq!(hop("3. `a/b.rs`: `parse` makes a list."), Some(("a/b.rs", "parse")));
    assert_eq!(hop("A line of text with `code`: `more`"), None);
}
