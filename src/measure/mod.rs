//! Measurements: each from a plan to an entry of the result.
//!
//! In: a plan and settings. Out: a run of the result document, and what is said of it to a [`Front`]. [`Runner::measure`] is one
//! measurement. Deliberately absent: the language, the command line, and in which order measurements are made (`session`).

mod bounded;
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
mod outputs;
mod preparation;
mod programs;
mod publish;
mod ready;
mod record;
mod redaction;
mod removal;
mod results;
mod run_notes;
mod runner;
mod series;
mod settings;
mod status;
mod streams;
mod ticker;
mod trees;
mod warmup;
mod watch;
mod writing;

pub(crate) use environment::{environment, mount, predefined};
pub use environment::{file_system, hostname};
pub use front::Front;
pub use measurement::{Description, Length, Measurement, Record};
pub use outputs::form_of;
pub use record::{FIGURES, day_and_time, now};
pub use redaction::{ENVIRONMENT, redact_script, secrets, sha256};
pub use runner::Runner;
pub use series::Periodic;
pub use settings::{Settings, WarmupLength};
pub use status::Status;
pub use trees::trees;
pub use watch::{Stage, Waiting, Watch};
