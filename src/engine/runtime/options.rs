//! What a run is given besides its plan and its file sets.

use super::meeting::MeetingPlace;
use crate::exec::messages::Messages;
use crate::exec::trace::WantedStream;
use crate::io_engine::{Asynchronous, Engine};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Makes the system calls.
    pub engine: &'static dyn Engine,
    /// The execution of asynchronous operations.
    pub asynchronous: Asynchronous,
    /// The seed of all random streams.
    pub seed: u64,
    /// The seed that all ranks of the run have in common.
    pub run_seed: u64,
    /// Whether failed operations are only counted, so that the run continues.
    pub count_errors: bool,
    /// Whether threads are bound to processors, in round-robin order.
    pub pin: bool,
    /// The queue for the messages of `print`.
    pub messages: Option<Messages>,
    /// The stream of operations that every thread records.
    pub stream: Option<WantedStream>,
    /// Set by a signal handler to the number of the signal, then to that of a second one. Checked during waits.
    pub interrupt: Arc<AtomicUsize>,
    /// The names of the block devices on which the file systems of the sets are. Empty if they are not known, or a file
    /// system is on none.
    pub devices: Vec<String>,
    /// Where this process meets the others of the run, if there are any.
    pub meetings: Option<Arc<dyn MeetingPlace>>,
}
