//! The front end of a rank other than 0: it collects the errors, which rank 0 prints, and shows only what rank 0 does not
//! have.

use super::console;
use super::rank_errors::RankErrors;
use crate::diag::Failure;
use crate::report::{Report, json};
use crate::result::Document;
use crate::session::Front;

/// Collects errors as text.
pub(super) struct RankFront {
    /// The number and the host of the rank.
    name: String,
    /// The errors so far.
    pub(super) errors: RankErrors,
}

impl RankFront {
    /// Creates the front end of a rank with this name and these errors.
    pub(super) fn new(name: String, errors: RankErrors) -> Self {
        Self { name, errors }
    }
}

impl Front for RankFront {
    fn result_kept(&mut self, text: &str) {
        console::notice(&format!("{}: {text}", self.name));
    }

    fn result_aside(&mut self, document: &Document) {
        let _ = json::Json.end(document, &mut std::io::stderr());
    }

    fn failed(&mut self, failure: &Failure) {
        self.errors.add(failure);
    }
}
