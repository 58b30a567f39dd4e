//! Words of commands as texts, by the rules of a shell.

/// Returns `--set ASSIGNMENT`, quoted for splitting by shell rules.
pub(super) fn set_option(assignment: &str) -> String {
    format!("--set {}", shell_words::quote(assignment))
}

/// Splits a text into words by the rules of a shell. The error is a message of one line.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|e| format!("can't be split into words: {e}"))
}

/// Joins words to a text that a shell splits into the same words.
pub(super) fn joined(words: &[String]) -> String {
    shell_words::join(words)
}
