//! The words that begin a statement.

/// All of them.
pub const STATEMENT_WORDS: &[&str] = &[];
