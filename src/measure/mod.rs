//! One measurement: from a plan to a record of the result.
//!
//! In: a plan and settings. Out: an entry of the result document. Deliberately absent: the language, the command line, and in
//! which order measurements are made (`session`).

pub(crate) mod bounded;
pub(crate) mod collector;
pub(crate) mod environment;
mod front;
pub(crate) mod leftovers;
pub(crate) mod machine;
mod settings;
mod status;
pub(crate) mod ticker;
pub(crate) mod watch;

pub use environment::file_system;
pub use front::Front;
pub use settings::Settings;
pub use status::Status;
pub use watch::{Stage, Waiting, Watch};
