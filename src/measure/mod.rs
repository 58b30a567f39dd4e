//! Measurements: each turns a plan into a run of the result document.
//!
//! The input is a plan and settings. The output is a run in the document, and notifications to a [`Front`].
//! `Runner::measure` makes one measurement. Not here: the language, the command line, and the order of measurements
//! (`session`).

mod cache;
mod cpu;
mod direct;
mod doctor;
mod ending;
mod environment;
mod file_sets;
mod front;
mod live;
mod machine;
mod measurement;
mod named_dirs;
mod names;
mod option_values;
mod outputs;
mod programs;
mod rank_ticks;
mod ready;
mod record;
mod redaction;
mod replay;
mod required;
mod run_ranks;
mod runner;
mod series;
mod settings;
mod snapshots;
mod streams;
mod ticker;
mod time_limit;
mod trace;
mod usage;
mod warmup;
mod watch;

pub use crate::diag::Status;
pub(crate) use crate::learn::compared_values;
pub use crate::os::reading::read as read_regular;
pub(crate) use crate::util::hash::sha256;
pub(crate) use doctor::{Fitness, examine};
pub(crate) use environment::{environment, mount, predefined};
pub(crate) use environment::{file_system, hostname};
pub use file_sets::trees;
pub use front::Front;
pub(crate) use live::LiveProcesses;
pub(crate) use machine::{asynchronous, check_plan};
pub(crate) use measurement::{Description, Length, Measurement, Record};
pub(crate) use named_dirs::{NamedDirs, check_file_systems};
pub(crate) use option_values::{assignment, time};
pub(crate) use outputs::unwritable;
pub(crate) use outputs::{Outputs, form_of};
pub(crate) use record::{FIGURES, day_and_time, now};
pub(crate) use redaction::{ScriptOrigin, redact_script};
pub(crate) use replay::ReplayPlace;
pub(crate) use required::{Required, is_mounted_at};
pub(crate) use runner::Runner;
pub(crate) use series::Periodic;
pub use settings::{
    Completes, GivenBy, OPTIONS, OptionGroup, OptionScope, RunJudge, RunOption, RunsWith, Settings, Takes,
    WarmupLength, dialects,
};
pub(crate) use time_limit::with_timeout;
pub(crate) use watch::{Stage, Waiting, Watch};
