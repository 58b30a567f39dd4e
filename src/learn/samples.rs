//! What was seen of each place in a loop: sizes, offsets, counts, times.

use crate::streams::{CallStep, bits};
use crate::values::Drawn;
use std::collections::HashMap;

/// Values that are kept of each place.
const KEPT: usize = 4096;

/// Runs of which this share is one call are single calls.
const MOSTLY_ONE: f64 = 0.97;

/// Nanoseconds of a long sleep, and how many of them say how often there is one.
const LONG_SLEEP: u64 = 200_000;
const LEAST_SLEPT: u64 = 3;

/// Some of many values, each with the same chance; the same ones each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledValues {
    values: Vec<u64>,
    seen: u64,
    state: u64,
}

impl SampledValues {
    pub(crate) fn add(&mut self, value: u64) {
        self.seen += 1;
        if self.values.len() < KEPT {
            self.values.push(value);
            return;
        }
        // Any generator does: xorshift.
        self.state = if self.state == 0 { 0x9e37_79b9_7f4a_7c15 } else { self.state };
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = self.state % self.seen;
        if let Some(kept) = self.values.get_mut(at as usize) {
            *kept = value;
        }
    }

    /// True if there are different ones.
    pub(crate) fn is_drawn(&self) -> bool {
        self.values.windows(2).any(|pair| pair[0] != pair[1])
    }

    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut values = self.values.clone();
        values.sort_unstable();
        values
    }
}

/// A place in a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeafSamples {
    /// How often the place was reached.
    pub(crate) runs: u64,
    /// All calls, and those that do not find the end of the file.
    pub(crate) steps: u64,
    pub(crate) calls: u64,
    /// Calls in each run.
    pub(crate) counts: SampledValues,
    pub(crate) bytes: SampledValues,
    pub(crate) offsets: SampledValues,
    with_offset: u64,
    /// Bytes, of all calls.
    pub(crate) moved: u64,
    places: HashMap<u8, u64>,
    /// Runs that go from the start of a file to its end.
    pub(crate) whole: u64,
    /// Runs that find the end of the file, and the most that was asked for there.
    pub(crate) ends: u64,
    pub(crate) most_at_end: u64,
    /// Nanoseconds, over all runs.
    pub(crate) running: u64,
    pub(crate) asleep: u64,
    pub(crate) inside: u64,
    /// Runs with a long sleep before or in them, and nanoseconds of these sleeps.
    slept: u64,
    slept_for: u64,
}

impl LeafSamples {
    /// Adds a run of calls.
    pub(crate) fn add(&mut self, run: &[CallStep]) {
        self.runs += 1;
        self.steps += run.len() as u64;
        for step in run {
            self.running += u64::from(step.running);
            self.asleep += u64::from(step.asleep);
            self.inside += u64::from(step.duration);
        }
        let asleep = run.iter().map(|step| u64::from(step.asleep)).sum::<u64>();
        if asleep >= LONG_SLEEP {
            self.slept += 1;
            self.slept_for += asleep;
        }
        let moves = |step: &&CallStep| step.bits & bits::END == 0;
        let at_end = run.iter().filter(|step| !moves(step)).map(|step| u64::from(step.bytes)).max();
        self.ends += u64::from(at_end.is_some());
        self.most_at_end = self.most_at_end.max(at_end.unwrap_or(0));
        let run: Vec<CallStep> = run.iter().filter(moves).copied().collect();
        if run.is_empty() {
            // An empty file.
            return;
        }
        self.calls += run.len() as u64;
        self.counts.add(run.len() as u64);
        for step in &run {
            self.bytes.add(u64::from(step.bytes));
            self.moved += u64::from(step.bytes);
            if step.offset != u64::MAX {
                self.with_offset += 1;
                self.offsets.add(step.offset);
            }
            for bit in [bits::NEXT, bits::APPEND, bits::START, bits::DIRECT, bits::SYNC, bits::OVER] {
                *self.places.entry(bit).or_default() += u64::from(step.bits & bit != 0);
            }
        }
        let is_next = run.iter().all(|step| step.bits & bits::NEXT != 0);
        let [first, .., last] = run.as_slice() else {
            let only = run.first().map_or(0, |step| step.bits);
            self.whole += u64::from(is_next && only & bits::START != 0 && only & bits::TO_END != 0);
            return;
        };
        let is_whole = first.bits & bits::START != 0 && last.bits & bits::TO_END != 0;
        self.whole += u64::from(is_next && is_whole);
    }

    /// The share of runs with a long sleep and the nanoseconds of one, if few have such.
    pub(crate) fn rare_sleep(&self) -> Option<(f64, f64)> {
        let often = self.slept >= LEAST_SLEPT && self.slept * 5_000 >= self.runs;
        let is_rare = often && self.slept * 2 < self.runs && self.slept_for / self.runs >= LONG_SLEEP;
        is_rare.then(|| (self.slept as f64 / self.runs as f64, self.slept_for as f64 / self.slept as f64))
    }

    /// The share of calls with this bit of their place.
    pub(crate) fn share(&self, bit: u8) -> f64 {
        self.places.get(&bit).copied().unwrap_or(0) as f64 / self.calls.max(1) as f64
    }

    /// Calls in each run. A second one now and then, as behind a short read, is none of the program's.
    pub(crate) fn calls_of_runs(&self) -> Drawn {
        let sorted = self.counts.sorted();
        let one = sorted.partition_point(|count| *count <= 1);
        match one as f64 >= MOSTLY_ONE * sorted.len() as f64 {
            true => Drawn::Always(1),
            false => Drawn::of(&sorted),
        }
    }

    pub(crate) fn has_offsets(&self) -> bool {
        self.with_offset * 2 > self.calls
    }
}
