//! Values of environment variables that a script has read, which nothing that is published may contain.
//!
//! Results are masked field by field (`measure::redaction`). What is printed while its output is kept in a published
//! folder is masked as a whole, by [`hidden`]. Not in here: which variables a script reads.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The placeholder of values of environment variables.
pub const ENVIRONMENT: &str = "(environment)";

/// The values that were read. `None` unless what is printed is masked.
#[derive(Default)]
struct ReadValues(Option<BTreeSet<String>>);

static READ: Mutex<ReadValues> = Mutex::new(ReadValues(None));

impl ReadValues {
    fn hide(&mut self) {
        self.0.get_or_insert_default();
    }

    fn note(&mut self, value: &str) {
        if let Some(read) = &mut self.0 {
            read.insert(value.to_owned());
        }
    }

    fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(read) if !read.is_empty() => {
                Cow::Owned(without_environment(text, &secrets(read.iter().cloned().collect()), false))
            }
            _ => Cow::Borrowed(text),
        }
    }
}

/// Masks what is printed from now on.
pub fn hide() {
    READ.lock().hide();
}

/// True if what is printed is masked.
pub fn are_hidden() -> bool {
    READ.lock().0.is_some()
}

/// Records that a script has read a value.
pub fn note(value: &str) {
    READ.lock().note(value);
}

/// Returns a text that is to be printed, masked if that was asked for.
pub fn hidden(text: &str) -> Cow<'_, str> {
    READ.lock().hidden(text)
}

/// Replaces each value in a text. Values that may be ordinary text (short ones, numbers) are replaced only as whole
/// words, and in `prose` not at all.
pub fn without_environment(text: &str, values: &[String], prose: bool) -> String {
    let mut out = text.to_owned();
    for value in values {
        let common = value.chars().count() < 4 || value.parse::<f64>().is_ok();
        if !common {
            out = out.replace(value.as_str(), ENVIRONMENT);
        } else if !prose && value.chars().any(char::is_alphanumeric) {
            out = replace_words(&out, value, ENVIRONMENT);
        }
    }
    out
}

/// Returns the other forms of a value as a path: without repeated and trailing slashes and `.`, and also without `..`.
fn normalized_paths(value: &str) -> Vec<String> {
    if !value.contains('/') {
        return Vec::new();
    }
    let parts = Path::new(value).components();
    let mut resolved = PathBuf::new();
    for part in parts.clone() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    let clean: PathBuf = parts.collect();
    [clean, resolved].iter().map(|path| path.display().to_string()).filter(|path| path != value).collect()
}

/// Returns the values that must not be in a result in each form that may occur there, the longest first.
pub fn secrets(mut values: Vec<String>) -> Vec<String> {
    values.extend(values.clone().iter().flat_map(|value| normalized_paths(value)));
    values.retain(|value| !value.is_empty() && !ENVIRONMENT.contains(value.as_str()));
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// Replaces a word in a text. The word may consist of several words; no letter or digit may be adjacent to it.
pub fn replace_words(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back());
        let after = rest[at + word.len()..].chars().next();
        let adjacent = [before, after].into_iter().flatten().any(char::is_alphanumeric);
        out.push_str(&rest[..at]);
        out.push_str(if adjacent { word } else { by });
        rest = &rest[at + word.len()..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_in_what_is_printed_once_it_is_asked_for() {
        let mut read = ReadValues::default();
        read.note("unseen-token");
        assert_eq!(read.hidden("an unseen-token"), "an unseen-token");
        read.hide();
        for value in ["long-token", "42", "/a//b/"] {
            read.note(value);
        }
        for (text, masked) in [
            ("token is long-token!", "token is (environment)!"),
            ("a pin of 42, not 420", "a pin of (environment), not 420"),
            ("in /a/b/c", "in (environment)/c"),
            ("an unseen-token", "an unseen-token"),
        ] {
            assert_eq!(read.hidden(text), masked);
        }
    }

    #[test]
    fn values_of_the_environment_are_replaced() {
        let values = ["s3cr3t-token".to_owned(), "8080".to_owned(), "ab".to_owned()];
        assert_eq!(without_environment("x/s3cr3t-token/y", &values, true), "x/(environment)/y");
        assert_eq!(
            without_environment("p-8080 a8080 ab cab", &values, false),
            "p-(environment) a8080 (environment) cab"
        );
        assert_eq!(without_environment("8080 files of ab", &values, true), "8080 files of ab");
        assert_eq!(replace_words("aa a", "a", "b"), "aa b");
    }

    #[test]
    fn a_value_is_recognised_in_normalized_paths() {
        assert_eq!(normalized_paths("a//b/./c/"), ["a/b/c", "a/b/c"]);
        assert_eq!(normalized_paths("../a/../secret"), ["secret"]);
        assert_eq!(normalized_paths("/a/../secret/"), ["/a/../secret", "/secret"]);
        assert!(normalized_paths("/a/b").is_empty() && normalized_paths("..").is_empty());
    }
}
