//! The flowops: one file for each family, and the table of all families.
//!
//! A family file has an entry for each of its flowops ([`FlowopEntry`]: descriptor and constructor) and implements the
//! operations. A flowop of one system call on one file is a row in `calls`.
//!
//! A flowop has two stages: [`Op`] holds its parameters and is part of the plan, [`Step`] holds its state in one
//! thread. A step accesses its thread through [`OpCx`](crate::exec::OpCx). Most operations are two functions, which
//! `op::stateful` joins.
//!
//! Deliberately absent: threads, and the order in which flowops run.
//!
//! # To add a flowop
//!
//! Of one system call on one file: a row in `calls`, with the attributes that it uses, its roles (see `Role` in
//! `spec`), a line of documentation, an example, and one of the forms below the table, such as `on_slot`, with the
//! function of `os` that makes the call.
//!
//! Any other: a row of its family's `FLOWOPS`, or of a new file with a line in `FAMILIES`, and a constructor. That
//! evaluates the attributes and passes two functions to `op::stateful`, or one to `op::stateless`: the first makes the
//! state of a thread, the second is the operation. It selects the file, calls `cx.begin()`, makes the call, and calls
//! `cx.end(bytes)`; further calls are counted by `cx.cell().add_calls`. Its [`Effects`] say what it takes from file
//! sets and gives back, its buffer, the units of its sizes, and whether it changes a file.
//!
//! Both: a case `tests/cases/run/flowop_NAME.wml` that begins with `# covers = flowop NAME` and the figures that its
//! result must have, a row in `tests/it/calls.rs`, which counts the calls, and
//! `UPDATE_DOCS=1 cargo test --test it -- manual:: coverage::`.
//!
//! Calls that move data or the file position are methods of `io_engine::Engine`; all others are made by
//! `io_engine::call`. A new system call is a function in `os/fd.rs`, of a range in `os/range.rs`, of the attributes of a
//! file in `os/inode.rs`; name it in `call_file` of `os/blocked.rs` and in `TRACED` of `tests/it/strace.rs`. A resource
//! of a thread, such as a descriptor, is a field of [`Effects`], joined in `plan/lower.rs` and acquired in `runtime`
//! before the gate; `Sink` is an example.

pub mod args;

/// The attributes that select a file and an offset in it, followed by those that only this flowop has.
macro_rules! placed {
    ($($own:literal),*) => {
        &[
            "filesetname", "fd", "iosize", "random", "at", "shuffle", "workingset", "opennext", "indexed", "uniform",
            "recent" $(, $own)*
        ]
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
mod vectored;
mod whole;
mod working_set;
mod write;

pub use args::{Args, Resolver, SetInfo, TargetInfo};
pub use measure::{MEASURE, measure_start};
pub use op::{Build, BuiltOp, Effects, FlowopEntry, Op, Peer, SemPair, Step, StepInit, Unit, stateless};
pub use transaction::TRANSACTION;

use expected::ExpectedError;
use wml_language::diag::{Code, Diagnostic};
use wml_language::model::commands;
use wml_language::spec::SpecTable;

/// All families, in the order of the manual.
const FAMILIES: &[&[FlowopEntry]] = &[
    open::FLOWOPS,
    read::FLOWOPS,
    write::FLOWOPS,
    vectored::FLOWOPS,
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
        let incomplete = |spec: &wml_language::spec::Flowop| [spec.name, spec.doc, spec.example].contains(&"");
        let found: Vec<_> = super::entries().map(|entry| &entry.spec).filter(|spec| incomplete(spec)).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn calls_that_extend_a_file_take_space() {
        let takes_space = |name: &str| {
            super::entries().any(|entry| entry.spec.name == name && entry.spec.is(wml_language::spec::Role::TakesSpace))
        };
        assert!(takes_space("fallocate") && takes_space("truncate") && !takes_space("statfile"));
    }
}
