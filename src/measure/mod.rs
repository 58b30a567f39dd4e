//! Measurements: each turns a plan into a run of the result document.
//!
//! The input is a plan and settings. The output is a run in the document, and notifications to a [`Front`].
//! [`Runner::measure`] makes one measurement. Not here: the language, the command line, and the order of measurements
//! (`session`).

mod agreement;
mod cache;
mod caches;
mod collector;
mod cpu;
mod direct;
mod environment;
mod front;
mod leftovers;
mod live;
mod machine;
mod measurement;
mod names;
mod option_values;
mod outputs;
mod preparation;
mod programs;
mod publish;
mod rank_runs;
mod rank_start;
mod rank_ticks;
mod ready;
mod record;
mod redaction;
mod removal;
mod required;
mod results;
mod run_notes;
mod runner;
mod series;
mod settings;
mod shared_sets;
mod snapshots;
mod streams;
mod ticker;
mod time_limit;
mod trees;
mod warmup;
mod watch;
mod writing;

pub use crate::diag::Status;
pub use crate::os::reading::read as read_regular;
pub(crate) use environment::{environment, mount, predefined};
pub use environment::{file_system, hostname};
pub use front::Front;
pub use measurement::{Description, Length, Measurement, Record};
pub use option_values::{assignment, time};
pub use outputs::form_of;
pub(crate) use preparation::NamedDirs;
pub use record::{FIGURES, day_and_time, now, seconds_of};
pub use redaction::{ScriptOrigin, redact_script, sha256};
pub use required::{Required, is_mounted_at};
pub use runner::Runner;
pub use series::Periodic;
pub use settings::{Completes, GivenBy, Group, OPTIONS, RunOption, Scope, Settings, Takes, WarmupLength, dialects};
pub(crate) use time_limit::with_timeout;
pub use trees::trees;
pub use watch::{Stage, Waiting, Watch};
