//! How long a run of each cell takes, and so a block of runs. The sums are kept, not made again for each run.

use super::order::StudyOrder;
use super::stop::look_at;
use std::time::Duration;

/// The times of a run of each cell. Those of a cell that has none are `others`.
#[derive(Clone, Debug)]
pub(super) struct CellTimes {
    of_cells: Vec<Option<Duration>>,
    others: Duration,
    /// The sum over a block of runs.
    block: TimeSum,
    /// The part of it that the block in progress has before it.
    rest: TimeSum,
    /// The number of runs of each cell that the block in progress has before it.
    pending: Vec<usize>,
    order: StudyOrder,
}

/// A sum of times in nanoseconds, some of which are those of the others.
#[derive(Clone, Copy, Debug, Default)]
struct TimeSum {
    known: u128,
    unknown: usize,
}

impl TimeSum {
    fn add(&mut self, time: Option<Duration>, runs: usize) {
        match time {
            Some(time) => self.known += time.as_nanos() * runs as u128,
            None => self.unknown += runs,
        }
    }

    fn take_off(&mut self, time: Option<Duration>, runs: usize) {
        match time {
            Some(time) => self.known -= time.as_nanos() * runs as u128,
            None => self.unknown -= runs,
        }
    }

    /// One that is too long, as a damaged journal may have, is the longest.
    fn total(self, others: Duration) -> Duration {
        let all = self.known.saturating_add(others.as_nanos().saturating_mul(self.unknown as u128));
        duration(all)
    }
}

fn duration(nanoseconds: u128) -> Duration {
    let seconds = u64::try_from(nanoseconds / 1_000_000_000);
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

impl CellTimes {
    pub(super) fn of(cells: usize, order: StudyOrder) -> Self {
        let block = TimeSum { known: 0, unknown: cells * order.per_block() };
        let pending = vec![order.per_block(); cells];
        Self { of_cells: vec![None; cells], others: Duration::ZERO, block, rest: block, pending, order }
    }

    /// The time of a run of a cell, if the cell has one.
    pub(super) fn known(&self, cell: usize) -> Option<Duration> {
        self.of_cells.get(cell).copied().flatten()
    }

    /// The time of a run of a cell.
    pub(super) fn of_cell(&self, cell: usize) -> Duration {
        self.known(cell).unwrap_or(self.others)
    }

    /// Takes a run of a cell: from now on one takes `time`, if that is known, and one of the others `others`.
    pub(super) fn take(&mut self, cell: usize, time: Option<Duration>, others: Duration) {
        self.others = others;
        let per_block = self.order.per_block();
        let Some(known) = self.of_cells.get_mut(cell) else { return };
        let left = self.pending[cell].saturating_sub(1);
        self.block.take_off(*known, per_block);
        self.rest.take_off(*known, self.pending[cell]);
        *known = time.or(*known);
        self.block.add(*known, per_block);
        self.rest.add(*known, left);
        self.pending[cell] = left;
    }

    pub(super) fn begin_block(&mut self) {
        look_at(self.pending.len());
        self.pending.fill(self.order.per_block());
        self.rest = self.block;
    }

    /// The time of a whole block. Without blocks it is that of one run of each cell.
    pub(super) fn of_block(&self) -> Duration {
        self.block.total(self.others)
    }

    /// The time of the runs that complete the block in progress.
    pub(super) fn of_rest(&self) -> Duration {
        self.rest.total(self.others)
    }
}
