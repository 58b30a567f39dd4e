//! What all ranks of a run do together: they agree on the run before anything is created, and on each step that can fail,
//! since a rank that fails alone would leave the others waiting. They start together, and their runs are merged on rank 0.
//!
//! Between the start and the end of a run the ranks send only their progress (`rank_ticks`), and what threads report at
//! the ends of phases and at stonewalls (`runtime`). Each ends at its own deadline, which is the same time after the common
//! start. Not here: what the steps do, and how the ranks reach one another (`ranks`).

use super::record::{RunFigures, status_of_state};
use super::settings::WarmupLength;
use super::watch::{Watch, WatchGuard};
use super::{Settings, Status};
use crate::diag::Failure;
use crate::model::ModelValue;
use crate::os::clock::{monotonic_ns, wait_until};
use crate::plan::{self, Plan};
use crate::random;
use crate::ranks::{Conditions, RanksLost};
use crate::result::ranks::{RankRun, merge_ranks};
use crate::result::{Environment, LostRank, Run, RunState};
use crate::runtime::{Ended, Fault, FaultKind, Running};
use crate::spec::Division;
use crate::spec::predefined::{self, Predefined};
use crate::util::bounded::{self, Budget};
use crate::util::duration;
use crate::version::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Why a rank is not ready, and a line of help.
type Unready = [String; 2];

/// The end of a run on one rank.
pub(crate) struct MergedRun {
    /// The run of all ranks on rank 0; the rank's own on the others.
    pub(crate) run: Run,
    pub(crate) status: Status,
    /// Whether all ranks have made this run, so that rank 0 has those of the others.
    pub(crate) of_all_ranks: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RankStart {
    /// Delay compared to the common start, in nanoseconds. `None` for a single rank.
    skew_ns: Option<i64>,
    /// The bound of the error of the delay.
    error_ns: u64,
}

/// The ranks of a session's runs, as one of them sees them.
#[derive(Clone)]
pub struct RunRanks {
    settings: Arc<Settings>,
    watch: Arc<Watch>,
}

impl RunRanks {
    pub(crate) fn new(settings: &Arc<Settings>, watch: &Arc<Watch>) -> Self {
        Self { settings: Arc::clone(settings), watch: Arc::clone(watch) }
    }

    /// Whether there is no other rank.
    pub(crate) fn is_alone(&self) -> bool {
        self.settings.together.is_alone()
    }

    /// Ends a step with the outcome of this rank: it fails on all ranks if it fails on any, and rank 0 says why. All ranks
    /// call this with the same name of the step.
    pub fn agree<T>(&self, step: &str, own: Result<T, Failure>) -> Result<T, Failure> {
        let _waiting = self.waiting();
        self.settings.together.agree(step, own)
    }

    /// The same, with data for all ranks. Returns the data of all ranks, in the order of their numbers.
    pub(crate) fn agree_with<T, M: Serialize + DeserializeOwned>(
        &self,
        step: &str,
        own: Result<(T, M), Failure>,
    ) -> Result<(T, Vec<M>), Failure> {
        let _waiting = self.waiting();
        self.settings.together.agree_with(step, own)
    }

    /// Interrupts what the watchdog sees: other ranks may come to a step much later, which says nothing about the file system.
    fn waiting(&self) -> Option<WatchGuard> {
        (!self.settings.together.is_alone()).then(|| self.watch.pause())
    }

    /// Compares the next run on this rank with that on rank 0. Every rank calls this before it creates anything, whatever the
    /// result of its own checks, `checked`, is. `script`: its digest. `own`: the conditions that the session knows. Returns
    /// the result of the checks, or an error if a rank differs.
    pub(crate) fn agree_on_run<T>(
        &self,
        checked: Result<T, Failure>,
        script: &str,
        own: impl FnOnce() -> Conditions,
    ) -> Result<T, Failure> {
        if self.settings.together.is_alone() {
            return checked;
        }
        let is_checked = if checked.is_ok() { "passed" } else { "failed" };
        let mut conditions = self.conditions(script);
        conditions.push(("the check before the run".to_owned(), is_checked.to_owned()));
        conditions.extend(own());
        let _waiting = self.waiting();
        let agreed = self.settings.together.compare(&conditions).and_then(|()| match self.settings.warmup {
            WarmupLength::Fixed(_) => Ok(()),
            WarmupLength::UntilSteady => {
                let message =
                    "the ranks of a run have one time of measurement, and `--warmup auto` ends on each at another";
                let failure = Failure::refused(message, "give the length of the warm-up");
                Err(self.settings.together.say_once(failure))
            }
        });
        match (agreed, checked) {
            (Ok(()), checked) => checked,
            (Err(differs), Ok(_)) => Err(differs),
            (Err(differs), Err(own)) => Err(Failure { status: differs.status, ..own.and(differs) }),
        }
    }

    /// The names and values of the options that all ranks must share.
    fn conditions(&self, script: &str) -> Conditions {
        let settings = &self.settings;
        let mut conditions = Conditions::new();
        let mut add = |name: &str, value: String| conditions.push((name.to_owned(), value));
        add("the version of wmlrun", VERSION.to_owned());
        add("the SHA-256 digest of the script", script.to_owned());
        add("the seed", settings.seed.to_string());
        add("the layout seed", settings.layout_seed.to_string());
        if let Some(length) = settings.runtime {
            add("`--runtime`", duration::format(length));
        }
        add("`--share`", settings.share.name().to_owned());
        add("`--ranks`", settings.division.name().to_owned());
        add("`--engine`", settings.engine.name().to_owned());
        add(
            "`--warmup`",
            match settings.warmup {
                WarmupLength::Fixed(length) => duration::format(length),
                WarmupLength::UntilSteady => "auto".to_owned(),
            },
        );
        add("`--interval`", duration::format(settings.interval));
        for (name, is_given) in [
            ("`--as-is`", settings.as_is),
            ("`--cold`", settings.cold),
            ("`--adopt`", settings.adopt),
            ("`--no-quiesce`", !settings.quiesce),
            ("`--keep`", settings.keep),
            ("`--clean`", settings.clean),
            ("`--pin`", settings.pin),
            ("`--on-error count`", settings.count_errors),
        ] {
            if is_given {
                add(name, "given".to_owned());
            }
        }
        conditions
    }

    /// Waits until all ranks have called this. An error if some do not answer.
    pub(crate) fn wait_for_ranks(&self) -> Result<(), Failure> {
        Ok(self.settings.together.wait()?)
    }

    pub(crate) fn own_part(&self, plan: Plan) -> Result<Plan, Failure> {
        let together = &self.settings.together;
        match self.settings.division {
            Division::Copy => Ok(plan),
            Division::Split => plan::split(plan, together.rank(), together.size())
                .map_err(|fault| Failure::wrong(fault.to_string(), fault.help())),
        }
    }

    /// Ends the making of a plan on all ranks. Returns it with this rank's share of the rates that they have together.
    pub fn share_rates(&self, plan: Result<Plan, Failure>) -> Result<Plan, Failure> {
        let own = plan.map(|plan| {
            let rates = plan.own_rates();
            (plan, rates)
        });
        let (mut plan, rates) = self.agree_with("the plan", own)?;
        let together = &self.settings.together;
        plan.share_rates(&rates, together.rank()).map_err(|difference| {
            let help = "it is the rate of all ranks together: give it a value that does not depend on the rank";
            together.say_once(Failure::wrong(difference, help))
        })?;
        Ok(plan)
    }

    /// Returns the predefined variables that differ between ranks, with their values on rank 0.
    pub(crate) fn variables_of_first(&self) -> [(Predefined, ModelValue); 2] {
        let host = self.settings.together.hosts().first().map_or("", String::as_str);
        [(predefined::RANK, 0.into()), (predefined::HOST, host.into())]
    }

    /// Returns the seed of this rank's random streams and data. Rank 0 has the seed of the run.
    pub(crate) fn stream_seed(&self) -> u64 {
        random::seed_of_rank(self.settings.seed, self.settings.together.rank() as u64)
    }

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
        match self.watch.signal() {
            0 => Ended::Fault(Fault::plain(FaultKind::Setup, lost.to_string(), RanksLost::HELP)),
            signal => Ended::Interrupted(usize::from(signal)),
        }
    }

    /// Tells the other ranks, which wait in [`RunRanks::open`], that this one could not start its threads.
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
    pub(crate) fn merge(
        &self,
        run: Run,
        environment: &Environment,
        plan: &Plan,
        start: RankStart,
        status: Status,
    ) -> MergedRun {
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
            environment: environment.clone(),
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
