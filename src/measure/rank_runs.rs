//! A run of several ranks: their common start, and the merge of their runs on rank 0.
//!
//! Between the start and the end of a run the ranks send only their progress (`rank_ticks`), and what threads report at
//! the ends of phases and at stonewalls (`runtime`). Each ends at its own deadline, which is the same time after the common
//! start.

use super::measurement::RunFigures;
use super::rank_start::{MergedRun, RankStart};
use super::record::status_of_state;
use super::{Front, Runner, Status};
use crate::os::clock::{monotonic_ns, wait_until};
use crate::plan::Plan;
use crate::ranks::RanksLost;
use crate::result::ranks::{RankRun, merge_ranks};
use crate::result::{LostRank, Run, RunState};
use crate::runtime::{Ended, Fault, FaultKind, Running};
use crate::util::bounded::{self, Budget};
use std::time::Duration;

/// The time for writing a result that rank 0 does not have: a launcher may end this process a moment later.
const UNREPORTED: Duration = Duration::from_secs(5);

impl Runner {
    /// Waits until the threads of all ranks are ready, and opens the gate at the common start. The run ends after
    /// `limit`. `Err` when a thread of any rank could not be prepared, a signal arrived, or a rank is lost; then no
    /// thread of this rank begins an operation, and all of them end.
    pub(crate) fn open(&self, running: &mut Running, limit: Option<Duration>) -> Result<RankStart, Ended> {
        self.open_together(running, limit).inspect_err(|_| running.dismiss())
    }

    /// The same, and on `Err` the threads that are ready still wait at the gate.
    fn open_together(&self, running: &mut Running, limit: Option<Duration>) -> Result<RankStart, Ended> {
        let ready = running.wait_until_ready();
        let together = &self.settings.together;
        let own: Option<Unready> = match &ready {
            Err(Ended::Fault(fault)) => Some([fault.what.clone(), fault.help.clone()]),
            Err(_) => Some(Unready::default()),
            Ok(()) => None,
        };
        let unready = self.unready(own);
        ready?;
        if let Some((rank, [what, help])) = unready.map_err(|lost| self.ended_by(&lost))? {
            let why = if what.is_empty() { what } else { format!(": {what}") };
            let what = format!("{} could not start its threads{why}", together.name_of(rank));
            return Err(Ended::Fault(Fault::plain(FaultKind::Setup, what, &help)));
        }
        self.start_together(true, || running.open(limit)).map_err(|lost| self.ended_by(&lost))
    }

    /// Waits for the common start of all ranks, and calls `begin`. `is_first`: a run begins.
    fn start_together(&self, is_first: bool, begin: impl FnOnce()) -> Result<RankStart, RanksLost> {
        let start = self.settings.together.common_start(is_first)?;
        let Some((at, error_ns)) = start.and_then(|start| Some((start.at_ns?, start.clock_error_ns))) else {
            begin();
            return Ok(RankStart::default());
        };
        wait_until(at);
        // Read before the gate opens, since its threads may then need this processor.
        let began = monotonic_ns();
        begin();
        let skew_ns = Some(began.wrapping_sub(at).cast_signed());
        Ok(RankStart { skew_ns, error_ns })
    }

    /// Begins the measurement of running processes on all ranks together. A rank without the others begins alone, and
    /// its start is unknown.
    pub(crate) fn restart_together(&self, mut begin: impl FnMut()) -> RankStart {
        self.start_together(false, &mut begin).unwrap_or_else(|_| {
            begin();
            RankStart::default()
        })
    }

    /// Returns the end of a run for lack of ranks. After a signal they are not missing: they have ended too.
    fn ended_by(&self, lost: &RanksLost) -> Ended {
        match self.signal() {
            0 => Ended::Fault(Fault::plain(FaultKind::Setup, lost.to_string(), RanksLost::HELP)),
            signal => Ended::Interrupted(usize::from(signal)),
        }
    }

    /// Tells the other ranks, which wait in [`Runner::open`], that this one could not start its threads.
    pub(crate) fn report_unready(&self) {
        // This rank ends with its own error in any case.
        let _ = self.unready(Some([String::new(), "look at the error of that rank".to_owned()]));
    }

    /// Returns the lowest rank that is not ready, on every rank. Every rank calls this. `own`: why this one is not.
    fn unready(&self, own: Option<Unready>) -> Result<Option<(usize, Unready)>, RanksLost> {
        let lowest = |all: Vec<Option<Option<Unready>>>| {
            all.into_iter().map(Option::flatten).enumerate().find_map(|(rank, why)| Some((rank, why?)))
        };
        Ok(self.settings.together.exchange(own, lowest)?.flatten())
    }

    /// Returns the run of all ranks on rank 0, and its status; on the others their own run. Every rank calls this at the
    /// end of a run.
    pub(crate) fn merge_with_ranks(&self, run: Run, plan: &Plan, start: RankStart, status: Status) -> MergedRun {
        let together = &self.settings.together;
        if together.is_alone() {
            return MergedRun { run, status, of_all_ranks: true };
        }
        let own = RankRun {
            rank: together.rank() as u64,
            host: self.host_label(together.rank()),
            start_skew_ns: start.skew_ns,
            clock_error_ns: start.skew_ns.map(|_| start.error_ns),
            clock: None,
            environment: self.document.environment.clone(),
            rank_rates: plan.rank_rates.iter().map(|rates| rates.clone().into_iter().collect()).collect(),
            run,
        };
        let read = |bytes: &[u8]| bounded::from_str(std::str::from_utf8(bytes).ok()?, &Budget::unlimited()).ok();
        let Some((collected, lost)) = together.collect::<RankRun>(&own, read) else {
            return MergedRun { run: own.run, status, of_all_ranks: true };
        };
        let runs = collected.into_iter().map(|(run, clock)| RankRun { clock, ..run }).collect();
        let labelled = |rank: LostRank| LostRank { host: self.host_label(rank.rank as usize), ..rank };
        let lost = lost.into_iter().map(labelled).collect();
        let merged = merge_ranks(runs, lost);
        let of_state = if merged.state == RunState::Interrupted { status } else { status_of_state(merged.state) };
        MergedRun { run: merged, status: status.max(of_state), of_all_ranks: true }
    }

    /// Returns the figures of rank 0, which are those of all ranks. An error on a rank whose run rank 0 does not have.
    pub(crate) fn figures_of_rank_0(&self, own: RunFigures) -> Result<RunFigures, RanksLost> {
        let values: Vec<u64> = own.iter().map(|(_, value)| *value).collect();
        let values = self.settings.together.confirm(values)?;
        Ok(own.into_iter().zip(values).map(|((name, _), value)| (name, value)).collect())
    }

    /// Writes the result of a rank other than 0 to a file in the results directory, because rank 0 does not have it.
    /// Returns whether that succeeded.
    pub(crate) fn write_unreported(&self, front: &mut dyn Front) -> bool {
        let name = format!("rank-{}.json", self.settings.together.rank());
        let written = self.write_in_results(name.into(), |_| true, UNREPORTED);
        match &written {
            Some(path) => {
                front
                    .result_kept(&format!("rank 0 does not have the result of this rank; it is in {}", path.display()));
            }
            None => front.result_aside(&self.document),
        }
        written.is_some()
    }

    /// Returns the name of a rank's host for the result.
    pub(crate) fn host_label(&self, rank: usize) -> String {
        let hosts = self.settings.together.hosts();
        let Some(host) = hosts.get(rank) else { return String::new() };
        if !self.settings.redact {
            return host.clone();
        }
        // Hosts stay distinct: they are numbered in the order of their first ranks.
        let mut seen: Vec<&String> = Vec::new();
        for name in hosts {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        format!("(host {})", 1 + seen.iter().position(|name| *name == host).unwrap_or_default())
    }
}

/// Why a rank is not ready, and a line of help.
type Unready = [String; 2];
