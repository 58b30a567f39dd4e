//! What is wanted of a replay, and why there is none.

use std::io;
use wml_trace::TraceError;

/// When calls begin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ReplaySpeed {
    /// As soon as what they wait for is done.
    #[default]
    Fast,
    /// At their times in the trace, or so many times as fast.
    Timed(f64),
}

/// What is wanted of a replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayWish {
    pub speed: ReplaySpeed,
    /// Threads wait for no other thread.
    pub is_by_thread: bool,
    /// With times: a thread sleeps as it slept, and the time that it computed is left out.
    pub leaves_out_thinking: bool,
    /// A trace that lacks calls is taken.
    pub takes_incomplete: bool,
    /// Of the content of files.
    pub seed: u64,
}

/// Why there is no replay.
#[derive(Debug)]
pub enum ReplayStop {
    Trace(TraceError),
    /// The trace lacks this.
    Incomplete(Vec<String>),
    /// What is there is not ours: in words.
    Foreign(String),
    /// The limit of open files, and how many are needed.
    Descriptors(u64, u64),
    /// The trace has no call that can be replayed.
    Nothing,
    /// It was broken off before its first call.
    BrokenOff,
    Io(io::Error),
}

impl From<TraceError> for ReplayStop {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl From<io::Error> for ReplayStop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<wml_os::Errno> for ReplayStop {
    fn from(error: wml_os::Errno) -> Self {
        Self::Io(error.into())
    }
}
