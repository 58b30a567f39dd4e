//! Fidelity: how far a script is from the program that it was learned from.
//!
//! Program and script run in pairs, each recorded. [`TracedRun`] is what a trace says of one run: its calls, bytes, syncs
//! and times in all, and for one *transaction*, which ends with a call that the script's header names
//! ([`TransactionEnd`]). A program without transactions, such as `tar`, is one as a whole. [`Fidelity`] compares
//! the pairs row by row: each row has a limit, and a verdict from the interval of its difference. A row is *outside* if
//! the interval that allows for the number of rows is wholly outside of the limit, *inside* if its own 95 % interval is inside.
//!
//! A new row is a line in `rows`. Not here: how the two are run and recorded.

mod figures;
mod header;
mod recordings;
mod rows;
mod sheet;
#[cfg(test)]
mod tests;
mod transaction;

pub(crate) use header::NOT_COMPARED;
pub use header::fidelity_in;

pub use figures::{TracedRun, TracedSide};
pub use header::compared_values;
pub use recordings::RecordingsCompared;
pub use rows::{Fidelity, FidelityRow, FidelityVerdict};
pub use sheet::FidelityDocument;
pub use transaction::TransactionEnd;
