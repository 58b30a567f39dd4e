//! The checks of a sheet: what passed and what did not, for formats whose reader counts them.

use super::Sheet;

/// A part of a result that passes or not: a test, a limit, the result of an experiment.
#[derive(Clone, Debug)]
pub struct SheetCheck {
    pub name: String,
    pub outcome: CheckOutcome,
    /// The verdict with its figures.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    Passed,
    Failed,
    /// There is no verdict.
    Unclear,
}

impl SheetCheck {
    /// The exit status of a command tells the outcome.
    pub fn of_code(name: &str, code: u8, text: &str) -> Self {
        let outcome = match code {
            0 => CheckOutcome::Passed,
            11 => CheckOutcome::Unclear,
            _ => CheckOutcome::Failed,
        };
        Self { name: name.to_owned(), outcome, text: text.to_owned() }
    }
}

impl Sheet {
    /// The number of checks with this outcome.
    pub(super) fn count(&self, outcome: CheckOutcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}
