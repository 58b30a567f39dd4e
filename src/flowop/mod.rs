//! The flowops: one file for each family, and the table of all families.
//!
//! A family file has an entry for each of its flowops ([`FlowopEntry`]: descriptor and constructor) and implements the
//! operations. To add a flowop, add an entry to its family's file; to add a family, also add a line to `FAMILIES`. A
//! flowop of one system call on one file is a row in `calls`.
//!
//! A flowop has two stages: [`Op`] holds its parameters and is part of the plan, [`Step`] holds its state in one
//! thread. A step accesses its thread through [`OpCx`](crate::exec::OpCx). Most operations are two functions, which
//! `op::stateful` joins.
//!
//! Deliberately absent: threads, and the order in which flowops run.

pub mod args;

/// The attributes that select a file and an offset in it, followed by those that only this flowop has.
macro_rules! placed {
    ($($own:literal),*) => {
        &["filesetname", "fd", "iosize", "random", "shuffle", "workingset", "opennext", "indexed", "uniform", "recent" $(, $own)*]
    };
}

mod aio;
mod buffered;
mod by_name;
mod calls;
mod command;
mod copy;
mod cpu;
mod dir;
mod expected;
mod finish;
mod ipc;
mod limit;
mod mapped;
mod measure;
mod moves;
mod names;
mod op;
mod open;
mod pick_rule;
mod read;
mod transaction;
mod transfer;
mod whole;
mod working_set;
mod write;

pub use args::{Args, Resolver, SetInfo, TargetInfo};
pub use measure::{MEASURE, measure_start};
pub use op::{Build, BuiltOp, Effects, FlowopEntry, Op, Peer, SemPair, Step, StepInit, Unit, stateless};
pub use transaction::TRANSACTION;

use crate::diag::{Code, Diagnostic};
use crate::model::commands;
use crate::spec::SpecTable;
use expected::ExpectedError;

/// All families, in the order of the manual.
const FAMILIES: &[&[FlowopEntry]] = &[
    open::FLOWOPS,
    read::FLOWOPS,
    write::FLOWOPS,
    whole::FLOWOPS,
    buffered::FLOWOPS,
    mapped::FLOWOPS,
    aio::FLOWOPS,
    calls::FLOWOPS,
    names::FLOWOPS,
    copy::FLOWOPS,
    dir::FLOWOPS,
    ipc::FLOWOPS,
    limit::FLOWOPS,
    finish::FLOWOPS,
    cpu::FLOWOPS,
    command::FLOWOPS,
    transaction::FLOWOPS,
];

/// Returns the entries of all flowops, family by family.
pub fn entries() -> impl Iterator<Item = &'static FlowopEntry> {
    FAMILIES.iter().copied().flatten()
}

/// Returns the descriptors of all flowops and commands.
pub fn spec_table() -> SpecTable {
    SpecTable { flowops: entries().map(|entry| &entry.spec).collect(), commands: commands::specs().collect() }
}

/// Makes the operation of a flowop with these attributes. Returns an error if an attribute is missing or out of range.
/// `args.spec` must be a descriptor of [`spec_table`], or [`MEASURE`].
pub fn build(args: &Args<'_>) -> BuiltOp {
    if let Some(op) = ExpectedError::from_args(args)? {
        return Ok(op);
    }
    match entries().chain([&measure::ENTRY]).find(|entry| entry.spec.name == args.spec.name) {
        Some(entry) => (entry.build)(args),
        None => {
            let message = format!("flowop type `{}` has no constructor", args.spec.name);
            Err(Diagnostic::error(Code::Internal, args.span, message))
        }
    }
}

#[cfg(test)]
mod context_tests;

#[cfg(test)]
mod tests {
    #[test]
    fn every_flowop_has_a_name_a_description_and_an_example() {
        let incomplete = |spec: &crate::spec::Flowop| [spec.name, spec.doc, spec.example].contains(&"");
        let found: Vec<_> = super::entries().map(|entry| &entry.spec).filter(|spec| incomplete(spec)).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn calls_that_extend_a_file_take_space() {
        let takes_space = |name: &str| {
            super::entries().any(|entry| entry.spec.name == name && entry.spec.is(crate::spec::Role::TakesSpace))
        };
        assert!(takes_space("fallocate") && takes_space("truncate") && !takes_space("statfile"));
    }
}
