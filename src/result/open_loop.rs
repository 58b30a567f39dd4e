//! The rates of a run with intended start times.

use serde::{Deserialize, Serialize};

/// Requested, arrived and achieved load of an open loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenLoop {
    /// The requests per second that the script asks for, over the same time as those below. Those that arrive differ
    /// from it by chance if they arrive at random. Null in results of earlier versions.
    pub requested_per_s: Option<f64>,
    /// Intended starts per second, over the time of the phases that have open loops.
    pub offered_per_s: f64,
    /// Completed requests per second, likewise.
    pub achieved_per_s: f64,
    /// Requests whose intended start had passed at the end, but that were not started.
    pub backlog: u64,
    /// Those of these requests whose threads had ended early.
    pub lost: u64,
    /// Delay of the oldest of these requests at the end.
    pub backlog_oldest_seconds: f64,
    /// Mean delay between the intended and the actual start of requests for which a thread slept; null without one.
    pub wakeup_latency_ns_mean: Option<f64>,
    /// The share of this wake-up latency in all response times, 0 to 1. Null if no request ended.
    pub wakeup_latency_share: Option<f64>,
    /// Time that threads spent busy-waiting for the next start, part of the program's processor time.
    pub spin_seconds: f64,
    /// The requests of each thread definition with an open loop, in order of definition. Absent in results of earlier
    /// versions.
    pub threads: Vec<ThreadRequests>,
}

impl OpenLoop {
    /// Mean time from the intended start of a request to its end, of all requests. `None` if it is not known of all.
    pub fn response_ns_mean(&self) -> Option<f64> {
        let done = || self.threads.iter().filter(|thread| thread.achieved_per_s > 0.0);
        let sum = done().map(|thread| Some(thread.achieved_per_s * thread.response_ns_mean?)).sum::<Option<f64>>()?;
        let rate: f64 = done().map(|thread| thread.achieved_per_s).sum();
        (rate > 0.0).then_some(sum / rate)
    }
}

/// The requests of a thread definition. The rates are over the time of its phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadRequests {
    /// Name of the process definition.
    pub process: String,
    /// Name of the thread definition.
    pub thread: String,
    /// Intended starts per second.
    pub offered_per_s: f64,
    /// Completed requests per second.
    pub achieved_per_s: f64,
    /// Requests whose intended start had passed at the end, but that were not started.
    pub backlog: u64,
    /// Those of these requests whose threads had ended early.
    pub lost: u64,
    /// Mean time from the intended start of a request to its end; null if none ended.
    pub response_ns_mean: Option<f64>,
    /// Whether requests take several ways (`mix`), so that no step is that of all.
    pub mixed: bool,
}
