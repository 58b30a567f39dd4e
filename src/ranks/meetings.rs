//! Meetings of ranks during a run: each rank reports a number at a point of the run, and gets the least and the largest
//! number of all ranks that take part.
//!
//! Rank 0 collects the numbers, and sends the result when the last rank has reported. A rank that has left the run, has
//! ended, or is lost takes part no more. A number belongs to one run of the script, so that a late message of an
//! earlier run has no effect. Not here: the waiting, and the points of a run (`runtime`).

use super::transport::Message;
use crate::runtime::{Meeting, MeetingPoint};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A message of a meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum MeetingNote {
    /// To rank 0: the sender's number at a point of a run.
    Arrive { run: u32, point: MeetingPoint, number: u64 },
    /// To rank 0: the sender's run is over.
    Leave { run: u32 },
    /// From rank 0: the numbers of all ranks.
    Met { run: u32, point: MeetingPoint, meeting: Meeting },
}

/// The meetings of a group, as one rank knows them.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    /// The number of the current run, from 1; 0 before the first.
    run: u32,
    /// On rank 0: the numbers of all ranks at each point of each run.
    arrived: HashMap<(u32, MeetingPoint), Vec<Option<u64>>>,
    /// On rank 0: the last run that each rank has left; 0 if it has left none.
    left_runs: Vec<u32>,
    /// The results that are known.
    met: HashMap<(u32, MeetingPoint), Meeting>,
}

impl Meetings {
    /// Returns the meetings of so many ranks before their first run.
    pub(super) fn new(size: usize) -> Self {
        Self { run: 0, arrived: HashMap::new(), left_runs: vec![0; size], met: HashMap::new() }
    }

    /// Begins a run. All ranks begin the same number of runs.
    pub(super) fn begin_run(&mut self) {
        self.run += 1;
        let run = self.run;
        self.arrived.retain(|(of, _), _| *of >= run);
        self.met.retain(|(of, _), _| *of >= run);
    }

    /// Returns the message with which this rank reports a number.
    pub(super) fn arrival(&self, point: MeetingPoint, number: u64) -> MeetingNote {
        MeetingNote::Arrive { run: self.run, point, number }
    }

    /// Returns the message with which this rank leaves its run.
    pub(super) fn leaving(&self) -> MeetingNote {
        MeetingNote::Leave { run: self.run }
    }

    /// Returns the result of a meeting of the current run, if it is known.
    pub(super) fn at(&self, point: MeetingPoint) -> Option<Meeting> {
        self.met.get(&(self.run, point)).copied()
    }

    /// Records a message of a rank, which may be this one.
    pub(super) fn put(&mut self, from: usize, note: MeetingNote) {
        match note {
            MeetingNote::Arrive { run, point, number } => {
                let size = self.left_runs.len();
                let numbers = self.arrived.entry((run, point)).or_insert_with(|| vec![None; size]);
                if let Some(own) = numbers.get_mut(from) {
                    *own = Some(number.max(own.unwrap_or_default()));
                }
            }
            MeetingNote::Leave { run } => {
                if let Some(last) = self.left_runs.get_mut(from) {
                    *last = run.max(*last);
                }
            }
            MeetingNote::Met { run, point, meeting } => {
                self.met.insert((run, point), meeting);
            }
        }
    }

    /// Concludes on rank 0 the meetings at which all ranks have arrived that take part: those that are `present` and
    /// have not left the run. Returns the messages to all other ranks.
    pub(super) fn conclude(&mut self, present: impl Fn(usize) -> bool) -> Vec<Message> {
        let mut messages = Vec::new();
        for (&(run, point), numbers) in &self.arrived {
            let takes_part = |rank: &usize| self.left_runs[*rank] < run && present(*rank);
            let least = (0..numbers.len()).filter(takes_part).map(|rank| numbers[rank]).min();
            // The minimum is `None` if a rank has not arrived.
            let (Some(Some(least)), Some(largest)) = (least, numbers.iter().flatten().max()) else { continue };
            let meeting = Meeting { least, largest: *largest };
            // Of the points only a phase is reached more than once.
            let may_rise = point == MeetingPoint::Phase;
            if self.met.get(&(run, point)).is_some_and(|before| !may_rise || before.least >= least) {
                continue;
            }
            self.met.insert((run, point), meeting);
            messages.push(Message::Meeting(MeetingNote::Met { run, point, meeting }));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Meeting, MeetingNote, MeetingPoint, Meetings};
    use crate::ranks::transport::Message;

    const POINT: MeetingPoint = MeetingPoint::Iterations(3);

    fn arrive(meetings: &mut Meetings, from: usize, number: u64) {
        let note = meetings.arrival(POINT, number);
        meetings.put(from, note);
    }

    #[test]
    fn a_meeting_ends_with_the_last_rank_that_takes_part() {
        let mut meetings = Meetings::new(3);
        meetings.begin_run();
        arrive(&mut meetings, 0, 7);
        arrive(&mut meetings, 2, 9);
        assert_eq!(meetings.conclude(|_| true), [], "rank 1 is missing");
        assert_eq!(meetings.at(POINT), None);
        let meeting = Meeting { least: 7, largest: 9 };
        let message = Message::Meeting(MeetingNote::Met { run: 1, point: POINT, meeting });
        assert_eq!(meetings.conclude(|rank| rank != 1), [message], "rank 1 is lost");
        assert_eq!(meetings.at(POINT), Some(meeting));
        assert_eq!(meetings.conclude(|_| true), [], "nothing is sent twice");
    }

    #[test]
    fn the_number_of_a_rank_that_has_left_counts_for_the_largest_only() {
        let mut meetings = Meetings::new(2);
        meetings.begin_run();
        arrive(&mut meetings, 1, 20);
        let note = meetings.leaving();
        meetings.put(1, note);
        assert_eq!(meetings.conclude(|_| true), [], "rank 0 has not arrived");
        arrive(&mut meetings, 0, 30);
        meetings.conclude(|_| true);
        assert_eq!(meetings.at(POINT), Some(Meeting { least: 30, largest: 30 }));
    }

    #[test]
    fn the_least_number_of_a_point_rises() {
        let mut meetings = Meetings::new(2);
        meetings.begin_run();
        for (numbers, least) in [([2, 2], 2), ([5, 3], 3), ([5, 5], 5)] {
            for (rank, number) in numbers.into_iter().enumerate() {
                let note = meetings.arrival(MeetingPoint::Phase, number);
                meetings.put(rank, note);
            }
            assert_eq!(meetings.conclude(|_| true).len(), 1);
            assert_eq!(meetings.at(MeetingPoint::Phase).unwrap().least, least);
        }
    }

    #[test]
    fn a_number_belongs_to_one_run() {
        let mut meetings = Meetings::new(2);
        meetings.begin_run();
        let late = meetings.arrival(POINT, 5);
        arrive(&mut meetings, 0, 5);
        meetings.begin_run();
        meetings.put(1, late);
        meetings.conclude(|_| true);
        assert_eq!(meetings.at(POINT), None);
        // The number of a rank that has begun the run earlier.
        meetings.put(1, MeetingNote::Arrive { run: 3, point: POINT, number: 4 });
        meetings.begin_run();
        arrive(&mut meetings, 0, 6);
        meetings.conclude(|_| true);
        assert_eq!(meetings.at(POINT), Some(Meeting { least: 4, largest: 6 }));
    }
}
