//! Steps that all ranks take together: a step succeeds on all of them or on none, and rank 0 reports why.
//!
//! A rank that fails alone would leave the others waiting. So after each step that can fail, the ranks exchange their
//! outcomes, and all continue with the same one. Not here: what the steps do.

use super::agreement::lost_ranks;
use super::watch::Watch;
use super::{Front, Runner};
use crate::diag::{self, Diagnostics, Failure, Reason, Severity, Status, Style};
use crate::ranks::{Ranks, RanksLost, rank_on_host};
use crate::util::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most errors of other ranks that rank 0 shows after a step.
const SHOWN: usize = 5;

/// One reason of a failure, as a rank sends it: an error in a script is its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RankReport {
    code: Option<String>,
    text: String,
    help: Vec<String>,
}

/// The failure of a step, as a rank sends it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StepFailure {
    status: Status,
    reports: Vec<RankReport>,
}

impl StepFailure {
    fn of(failure: &Failure) -> Self {
        let mut reports = Vec::new();
        for reason in &failure.reasons {
            match reason {
                Reason::Stated { code, message, help } => {
                    reports.push(RankReport { code: code.clone(), text: message.clone(), help: help.clone() });
                }
                Reason::Script(Diagnostics { map, found }) => {
                    for error in found.iter().filter(|found| found.severity == Severity::Error) {
                        let text = diag::render(map, std::slice::from_ref(error), Style::Plain);
                        reports.push(RankReport { code: None, text: text.trim_end().to_owned(), help: Vec::new() });
                    }
                }
            }
        }
        Self { status: failure.status, reports }
    }
}

/// A step that all ranks take.
pub(crate) struct AllRanks<'a> {
    ranks: &'a dyn Ranks,
    watch: &'a Arc<Watch>,
    front: &'a mut dyn Front,
}

impl Runner {
    /// A step that all ranks take. [`AllRanks::agree`] or [`AllRanks::exchange`] ends it.
    pub(crate) fn all_ranks<'a>(&'a self, front: &'a mut dyn Front) -> AllRanks<'a> {
        AllRanks { ranks: self.settings.ranks.as_ref(), watch: &self.watch, front }
    }
}

impl AllRanks<'_> {
    /// Ends a step with the outcome of this rank. It fails on all ranks if it fails on any, and rank 0 says why.
    ///
    /// All ranks call this with the same name of the step.
    pub(crate) fn agree<T>(self, step: &str, own: Result<T, Failure>) -> Result<T, Failure> {
        self.exchange(step, own.map(|value| (value, ()))).map(|(value, _)| value)
    }

    /// The same, with a message to all ranks. Returns the messages of all ranks, in the order of their numbers.
    pub(crate) fn exchange<T, M: Serialize + DeserializeOwned>(
        self,
        step: &str,
        own: Result<(T, M), Failure>,
    ) -> Result<(T, Vec<M>), Failure> {
        if self.ranks.size() == 1 {
            return own.map(|(value, message)| (value, vec![message]));
        }
        let (own, message) = match own {
            Ok((value, message)) => (Ok(value), Ok(message)),
            Err(failure) => {
                let sent = StepFailure::of(&failure);
                (Err(failure), Err(sent))
            }
        };
        let outcomes = match self.outcomes(step, &message) {
            Ok(outcomes) => outcomes,
            Err(lost) => {
                let lost = lost_ranks(&lost);
                return Err(own.err().map_or_else(|| lost.clone(), |own| own.and(lost.clone())));
            }
        };
        let failures =
            || outcomes.iter().enumerate().filter_map(|(rank, outcome)| Some((rank, outcome.as_ref().err()?)));
        let Some(worst) = failures().map(|(_, failure)| failure.status).max() else {
            let messages = outcomes.into_iter().filter_map(Result::ok).collect();
            return own.map(|value| (value, messages));
        };
        let all = Failure::unexplained(worst);
        if self.ranks.rank() > 0 {
            return Err(all);
        }
        let own = own.err().map_or_else(|| all.clone(), |own| own.and(all.clone()));
        Err(self.with_others(own, failures()))
    }

    /// Returns the outcomes of all ranks.
    fn outcomes<M: Serialize + DeserializeOwned>(
        &self,
        step: &str,
        own: &Result<M, StepFailure>,
    ) -> Result<Vec<Result<M, StepFailure>>, RanksLost> {
        // The time until other ranks are ready says nothing of a file system.
        let _watch = self.watch.pause();
        let own = json::to_bytes(&(step, own));
        let texts = self.ranks.gather(own)?.map(|all| -> Vec<String> {
            all.into_iter().map(|message| String::from_utf8_lossy(&message).into_owned()).collect()
        });
        let all = texts.map_or_else(Vec::new, |texts| json::to_bytes(&texts));
        let texts: Vec<String> = json::from_bytes(&self.ranks.broadcast(all)?).unwrap_or_default();
        let outcome_of = |rank: usize| {
            let (at, outcome): (String, Result<M, StepFailure>) = serde_json::from_str(texts.get(rank)?).ok()?;
            (at == step).then_some(outcome)
        };
        let elsewhere = || {
            let text = "it has reached another step of the run".to_owned();
            let reports = vec![RankReport { code: None, text, help: Vec::new() }];
            Err(StepFailure { status: Status::Failed, reports })
        };
        Ok((0..self.ranks.size()).map(|rank| outcome_of(rank).unwrap_or_else(elsewhere)).collect())
    }

    /// Adds the failures of other ranks to that of rank 0, the same one only once.
    fn with_others<'f>(self, own: Failure, failures: impl Iterator<Item = (usize, &'f StepFailure)>) -> Failure {
        let mut seen: BTreeSet<String> = StepFailure::of(&own).reports.into_iter().map(|report| report.text).collect();
        let (mut all, mut shown, mut more) = (own, 0, BTreeSet::new());
        for (rank, failure) in failures.filter(|(rank, _)| *rank > 0) {
            let named = rank_on_host(rank, self.ranks.hosts().get(rank).map_or("", String::as_str));
            if matches!(failure.status, Status::Interrupted(_)) && failure.reports.is_empty() {
                self.front.note(&format!("{named} was interrupted"));
            }
            for RankReport { code, text, help } in &failure.reports {
                if !seen.insert(text.clone()) {
                    continue;
                }
                if shown == SHOWN {
                    more.insert(rank);
                    continue;
                }
                shown += 1;
                let message = format!("{named}: {text}");
                all.reasons.push(Reason::Stated { code: code.clone(), message, help: help.clone() });
            }
        }
        if !more.is_empty() {
            let ranks = crate::util::count::count(more.len() as u64, "more rank");
            let message = format!("{ranks} reported other errors");
            all.reasons.push(Reason::Stated { code: None, message, help: Vec::new() });
        }
        all
    }
}
