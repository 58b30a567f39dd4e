//! The table of the limits of a result (`--fail-if`).

use crate::report::checks::limit_checks;
use crate::result::{LimitOutcome, LimitVerdict};
use crate::sheet::{Answer, SheetBlock, SheetCheck, SheetColumn, SheetTable};

/// The checks of a result: its own, which the exit status decides, and its limits.
pub(super) fn checks(title: &str, code: u8, answer: &Answer, limits: &[LimitOutcome]) -> Vec<SheetCheck> {
    std::iter::once(SheetCheck::of_code(title, code, &answer.result)).chain(limit_checks(limits)).collect()
}

/// The table of limits; `None` without any.
pub fn limit_table(limits: &[LimitOutcome]) -> Option<SheetBlock> {
    let mut table = SheetTable::of("Limits", ["limit", "result"].map(SheetColumn::words));
    limits.iter().for_each(|limit| table.row([limit.title(), limit.text.clone()]));
    table.block()
}

/// Adds the limits that are not met or unclear to an answer, or else that all are met.
pub(super) fn add_to(answer: &mut Answer, limits: &[LimitOutcome]) {
    let is_told = |limit: &&LimitOutcome| limit.verdict != LimitVerdict::Met;
    let told = limits.iter().filter(is_told).map(|limit| format!("Limit {}: {}.", limit.title(), limit.text));
    answer.details.extend(told);
    if !limits.is_empty() && !limits.iter().any(|limit| is_told(&limit)) {
        answer.details.push(if limits.len() == 1 { "The limit is met." } else { "All limits are met." }.to_owned());
    }
}
