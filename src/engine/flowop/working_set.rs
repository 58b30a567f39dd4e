//! `workingset=`: the part of a file in which the offsets of a flowop lie.

use super::args::Args;
use super::op::StepInit;
use crate::random::{self, Quantity};
use wml_language::diag::Diagnostic;

/// `workingset`, which is drawn once for each flowop and thread, as in Filebench.
#[derive(Clone, Debug)]
pub(super) struct WorkingSet {
    size: Quantity,
    /// Number of the flowop in the plan.
    flowop: usize,
}

impl WorkingSet {
    pub(super) fn new(args: &Args<'_>) -> Result<Self, Diagnostic> {
        Ok(Self { size: args.quantity_or("workingset", 0)?, flowop: args.id })
    }

    /// Returns the size in one thread, in bytes; 0: the whole file.
    pub(super) fn draw(&self, init: &StepInit<'_>) -> u64 {
        // The flowop's number is part of the path: two flowops of a thread draw different sizes.
        self.size.draw(&mut random::stream(init.seed, &[init.ordinal as u64, self.flowop as u64]))
    }

    /// True if the script gives it.
    pub(super) fn is_given(&self) -> bool {
        !matches!(self.size, Quantity::Const(0))
    }

    /// Returns its part of a description in a plan.
    pub(super) fn describe(&self) -> String {
        if self.is_given() { format!(" workingset={}", self.size) } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_flowop_of_a_thread_draws_its_own_size() {
        let init = StepInit { ordinal: 3, semaphores: &[], latches: &[], peers: &std::sync::Arc::default(), seed: 1 };
        let size: Quantity = random::cvar("cvar-uniform", "lower:0;upper:1000000000", None, None, None).unwrap().into();
        let draw = |flowop| WorkingSet { size: size.clone(), flowop }.draw(&init);
        assert_ne!(draw(0), draw(1));
        assert_eq!(draw(1), draw(1), "the seed determines it");
        assert_eq!(WorkingSet { size: Quantity::Const(4096), flowop: 1 }.draw(&init), 4096);
    }
}
