//! Tests that every test that `tests/promises.md` names for a promise exists.

use std::fs;
use std::path::Path;

/// The `module::function` names in the tables of a document.
fn tests_named(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    quoted.filter_map(|word| word.split_once("::")).map(|(module, name)| (module.to_owned(), name.to_owned())).collect()
}

#[test]
fn each_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/promises.md")).unwrap();
    let named = tests_named(&text);
    assert!(named.len() > 20, "only {} tests are named", named.len());
    for (module, name) in named {
        let source = root.join(format!("tests/it/{module}.rs"));
        let source = fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        assert!(
            source.contains(&format!("fn {name}(")),
            "tests/promises.md names `{module}::{name}`, which does not exist"
        );
    }
}

#[test]
fn every_promise_names_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/promises.md")).unwrap();
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Promise")) {
        assert!(!tests_named(row).is_empty(), "no test in the row: {row}");
    }
}
