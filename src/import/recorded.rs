//! The figures of a run that an experiment records in its journal, beside the result of the run: the used space of the
//! file systems, the durations of commands, and the speed of the negative control.
//!
//! Input: what the events about a run say. Output: figures of its observation. Not in here: which events are about a
//! run that counts (`folder`, `experiment`).

use super::Observation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

crate::util::named! {
    /// When a command runs. The journal has it as a switch: whether it runs before. The names of hooks begin with the word.
    #[derive(Serialize, Deserialize)]
    #[serde(from = "bool", into = "bool")]
    pub enum HookTime {
        /// Before a run, or at the begin of a scope.
        Before = "before";
        /// After a run, or at the end of a scope.
        After = "after";
    }
}

impl HookTime {
    pub(crate) fn of_hook(name: &str) -> Self {
        if name.split('-').next() == Some(Self::Before.name()) { Self::Before } else { Self::After }
    }
}

impl From<bool> for HookTime {
    fn from(before: bool) -> Self {
        if before { Self::Before } else { Self::After }
    }
}

impl From<HookTime> for bool {
    fn from(time: HookTime) -> Self {
        time == HookTime::Before
    }
}

/// The times of a command in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandTimes {
    /// From its start to its end.
    pub seconds: f64,
    /// User time, with that of the processes that it has waited for; `None` in experiments of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<f64>,
    /// System time, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<f64>,
}

impl CommandTimes {
    /// Adds them to the figures of a run, under the name of the command.
    pub(crate) fn add_to(self, name: &str, figures: &mut BTreeMap<String, f64>) {
        let parts =
            self.user.zip(self.system).into_iter().flat_map(|(user, system)| [("user", user), ("system", system)]);
        let all = std::iter::once(("seconds", self.seconds)).chain(parts);
        figures.extend(all.map(|(kind, time)| (format!("{name}.{kind}"), time)));
    }
}

/// The times of the commands whose output is recorded after a run, in their order. See [`CommandTimes`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordTimes {
    seconds: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    user: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    system: Vec<f64>,
}

impl RecordTimes {
    /// Adds those of the next command.
    pub(crate) fn push(&mut self, times: CommandTimes) {
        self.seconds.push(times.seconds);
        self.user.extend(times.user);
        self.system.extend(times.system);
    }
}

/// The figures of a run that the experiment records beside those of its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedFigures {
    /// The used space of its file systems before and after it, in bytes; `None` where it was not recorded.
    space: [Option<u64>; 2],
    /// The times of commands, by their names.
    commands: BTreeMap<String, CommandTimes>,
    /// The speeds of the negative control before and after it; `None` where it was not measured.
    controls: [Option<f64>; 2],
}

impl RecordedFigures {
    /// Begins an attempt of the run: what was recorded after an earlier one is not about this one.
    pub(crate) fn begin_attempt(&mut self) {
        self.space[HookTime::After as usize] = None;
        self.controls = [None; 2];
        self.commands.retain(|name, _| HookTime::of_hook(name) == HookTime::Before);
    }

    /// Takes the used space of the file systems before or after the run, in bytes.
    pub(crate) fn take_space(&mut self, time: HookTime, used: u64) {
        self.space[time as usize] = Some(used);
    }

    /// Takes the times of a command before or after the run. The last one of a name counts.
    pub(crate) fn take_command(&mut self, name: &str, times: CommandTimes) {
        self.commands.insert(name.to_owned(), times);
    }

    /// Takes the times of the commands whose output is recorded after the run.
    pub(crate) fn take_records(&mut self, times: &RecordTimes) {
        for (n, seconds) in times.seconds.iter().enumerate() {
            let at = |times: &Vec<f64>| times.get(n).copied();
            let times = CommandTimes { seconds: *seconds, user: at(&times.user), system: at(&times.system) };
            self.take_command(&record_name(n + 1), times);
        }
    }

    /// Takes the speed of the negative control before or after the run.
    pub(crate) fn take_control(&mut self, time: HookTime, speed: Option<f64>) {
        self.controls[time as usize] = speed;
    }

    /// Returns the mean of the speeds of the negative control. Where one is unknown, it is the other.
    pub(crate) fn control(&self) -> Option<f64> {
        match self.controls {
            [Some(before), Some(after)] => Some(f64::midpoint(before, after)),
            [one, other] => one.or(other),
        }
    }

    /// True if the used space was recorded before the run and not after it.
    pub(crate) fn lacks_space(&self) -> bool {
        matches!(self.space, [Some(_), None])
    }

    /// Adds the figures to those of a run.
    pub(crate) fn add_to(&self, observation: &mut Observation) {
        let space = ["space.before", "space.after"].into_iter().zip(self.space);
        let space = space.filter_map(|(name, bytes)| Some((name.to_owned(), bytes? as f64)));
        observation.figures.extend(space);
        self.commands.iter().for_each(|(name, times)| times.add_to(name, &mut observation.figures));
        observation.control = self.control();
    }
}

/// Returns the name of a command whose output is recorded after each run. They are numbered from 1.
pub fn record_name(n: usize) -> String {
    format!("record-{n}")
}
