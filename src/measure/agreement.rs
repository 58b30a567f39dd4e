//! What all ranks of a run do together: they agree on the run before anything is created, and on each step that can fail,
//! since a rank that fails alone would leave the others waiting.
//!
//! Not here: what the steps do, and how the ranks reach one another (`ranks`).

use super::Runner;
use super::settings::WarmupLength;
use super::watch::WatchGuard;
use crate::diag::Failure;
use crate::model::ModelValue;
use crate::plan::{self, Plan};
use crate::random;
use crate::ranks::Conditions;
use crate::spec::Division;
use crate::spec::predefined::{self, Predefined};
use crate::util::duration;
use crate::util::version::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl Runner {
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
    /// result of its own checks, `checked`, is. `own`: the conditions that the session knows. Returns the result of the
    /// checks, or an error if a rank differs.
    pub fn agree_on_run<T>(&self, checked: Result<T, Failure>, own: impl FnOnce() -> Conditions) -> Result<T, Failure> {
        if self.settings.together.is_alone() {
            return checked;
        }
        let is_checked = if checked.is_ok() { "passed" } else { "failed" };
        let mut conditions = self.conditions();
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
    fn conditions(&self) -> Conditions {
        let settings = &self.settings;
        let mut conditions = Conditions::new();
        let mut add = |name: &str, value: String| conditions.push((name.to_owned(), value));
        add("the version of wmlrun", VERSION.to_owned());
        add("the SHA-256 digest of the script", self.document.script.sha256.clone());
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
    pub fn wait_for_ranks(&self) -> Result<(), Failure> {
        Ok(self.settings.together.wait()?)
    }

    /// Returns what this rank runs of a plan.
    pub fn own_part(&self, plan: Plan) -> Result<Plan, Failure> {
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
    pub fn variables_of_first(&self) -> [(Predefined, ModelValue); 2] {
        let host = self.settings.together.hosts().first().map_or("", String::as_str);
        [(predefined::RANK, 0.into()), (predefined::HOST, host.into())]
    }

    /// Returns the seed of this rank's random streams and data. Rank 0 has the seed of the run.
    pub(crate) fn stream_seed(&self) -> u64 {
        random::seed_of_rank(self.settings.seed, self.settings.together.rank() as u64)
    }
}
