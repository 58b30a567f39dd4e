//! `wml`: a workload modelling language for file systems, and its interpreter.
//!
//! Data flows one way:
//! text → tokens → AST → model (checked) → plan (flowop programs) → run (threads) → statistics → report.
//!
//! The folders of `src/` with a `Cargo.toml` are libraries, which this one passes on. The modules are listed in import order:
//! each may import only modules above it. `tests/it/tidy.rs` checks this. `docs/architecture.md` describes each of them.
//!
//! The library has no stable interface and is not meant for other programs: it exists for the binary, the tests, the
//! benchmarks and the fuzz targets, and any item may change in any version. Stable are the language, the command line,
//! the exit statuses and the schema of the result.

// The methods of `clippy.toml`: tests lay out files by path.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub use wml_engine::{disk, exec, fileset, flowop, io_engine, plan, random, runtime, stats, sync};
pub use wml_language::{diag, model, source, spec, syntax};
pub use wml_learn as learn;
pub use wml_os as os;
pub use wml_os::output;
pub use wml_replay as replay;
pub use wml_sheet as sheet;
pub use wml_statistics as analysis;
pub use wml_text as util;
pub use wml_trace as trace;

/// The library, and for tests its fixture: it has that in its own tests only.
pub mod result {
    pub use wml_result::*;

    #[cfg(test)]
    pub(crate) mod fixture;
}

mod version;
pub mod ranks;
pub mod report;
pub mod measure;
pub mod import;
pub mod comparison;
pub mod history;
pub mod experiment;
mod hosts;
pub mod page;
pub mod words;
pub mod session;
pub mod batch;
pub mod prompt;
mod lsp;
pub mod cli;
