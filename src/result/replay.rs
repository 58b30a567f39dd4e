//! What the run of a replay has besides: how the recording went, and what came out otherwise.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wml_text::count::count;

/// The replay of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayResult {
    /// The recorded command; empty if it is unknown.
    pub command: Vec<String>,
    /// Calls of the trace.
    pub calls: u64,
    /// Calls that were made again.
    pub replayed: u64,
    /// From the beginning of the first recorded call to the end of the last.
    pub recorded_seconds: f64,
    /// Time in the calls that were made again, of all threads, as recorded.
    pub recorded_call_seconds: f64,
    /// The same in the replay.
    pub call_seconds: f64,
    /// How long the recorded calls were ready without a processor, which is part of their time; `None` if it is unknown.
    pub recorded_runnable_seconds: Option<f64>,
    /// Calls that were left out, by their names.
    pub not_replayed: BTreeMap<String, u64>,
    /// Operations of `io_uring` that were made as plain calls.
    pub plain_calls: u64,
    /// Calls that were made with values of the replay, by their names: a trace lacks the names and sizes of extended
    /// attributes, the ranges of locks by `fcntl`, permissions, owners and times.
    pub own_values: BTreeMap<String, u64>,
    /// Calls that failed as they did in the recording, by their errors.
    pub failed_alike: BTreeMap<String, u64>,
    /// Calls whose result is not the recorded one, by their names.
    pub calls_differ: BTreeMap<String, u64>,
    /// Calls that found a name that nothing in the trace had made.
    pub unexplained: u64,
    /// Calls on files that no call of the trace opened.
    pub unopened: u64,
    /// Names at the end of the trace.
    pub names: u64,
    /// Names that are not as at the end of the trace.
    pub names_differ: u64,
    /// The first calls that differ, names that differ, and calls that are unexplained or unopened, in this order: at most ten
    /// of each.
    pub differences: Vec<ReplayDifference>,
}

/// Something that is not as it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayDifference {
    /// The call; empty for a name at the end.
    pub call: String,
    pub path: String,
    /// What differs, such as `0 instead of ENOENT`.
    pub how: String,
}

impl ReplayDifference {
    pub fn text(&self) -> String {
        match self.call.as_str() {
            "" => format!("{} {}", self.path, self.how),
            call => format!("{call} of {}: {}", self.path, self.how),
        }
    }
}

/// How a name or a call differs that nothing in the trace explains.
pub const NOTHING_MADE: &str = "nothing had made the name";

/// How a call is explained on a file that was open before the trace began; such a call is no difference.
pub const NEVER_OPENED: &str = "no call of the trace opened the file";

impl ReplayResult {
    /// What differs, in a sentence; `None` if nothing does.
    pub fn failure(&self) -> Option<String> {
        let first = |is: &dyn Fn(&ReplayDifference) -> bool| {
            self.differences.iter().find(|one| is(one)).map_or(String::new(), |one| format!(", first {}", one.text()))
        };
        let calls = self.calls_differ.values().sum();
        let mut parts = Vec::new();
        if calls > 0 {
            let first = first(&|one| !one.call.is_empty());
            parts.push(format!("{} ended differently{first}", count(calls, "call")));
        }
        if self.names_differ > 0 {
            let names = count(self.names_differ, "name");
            let first = first(&|one| one.call.is_empty());
            parts.push(format!("{names} not as at the end of the trace{first}"));
        }
        if self.unexplained > 0 {
            let calls = count(self.unexplained, "call");
            let first = first(&|one| one.how == NOTHING_MADE);
            parts.push(format!("{calls} found a name that nothing had made{first}"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
