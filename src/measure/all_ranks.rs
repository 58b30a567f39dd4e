//! Steps that all ranks take together: a step succeeds on all of them or on none, and rank 0 reports why.
//!
//! A rank that fails alone would leave the others waiting. So after each step that can fail, the ranks exchange their
//! outcomes, and all continue with the same one. Not here: what the steps do.

use super::watch::Watch;
use super::{Front, Runner, Status};
use crate::diag::{self, Diagnostic, Severity, Style};
use crate::disk::prepare::Progress;
use crate::ranks::{Ranks, RanksLost, rank_on_host};
use crate::source::SourceMap;
use crate::util::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most errors of other ranks that rank 0 shows after a step.
const SHOWN: usize = 5;

/// An error that a rank has reported, or an error in a script as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RankReport {
    code: Option<String>,
    text: String,
    help: Option<String>,
}

/// The failure of a step on one rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StepFailure {
    status: Status,
    reports: Vec<RankReport>,
}

/// The front end of a step. On rank 0 it shows errors and warnings at once. On the other ranks it collects errors for
/// rank 0, which shows them after the step with the number and the host of the rank.
pub(crate) struct AllRanks<'a> {
    ranks: Arc<dyn Ranks>,
    watch: Arc<Watch>,
    front: &'a mut dyn Front,
    reports: Vec<RankReport>,
}

impl Runner {
    /// Returns the front end of a step that all ranks take. [`AllRanks::agree`] or [`AllRanks::exchange`] ends the step.
    pub(crate) fn all_ranks<'a>(&self, front: &'a mut dyn Front) -> AllRanks<'a> {
        let (ranks, watch) = (Arc::clone(&self.settings.ranks), self.watch());
        AllRanks { ranks, watch, front, reports: Vec::new() }
    }
}

impl AllRanks<'_> {
    /// Ends a step with the outcome of this rank. Returns the worst status if the step failed on any rank.
    ///
    /// All ranks call this with the same name of the step.
    pub(crate) fn agree<T>(self, step: &str, own: Result<T, Status>) -> Result<T, Status> {
        self.exchange(step, own.map(|value| (value, ()))).map(|(value, _)| value)
    }

    /// The same, with a message to all ranks. Returns the messages of all ranks, in the order of their numbers.
    pub(crate) fn exchange<T, M: Serialize + DeserializeOwned>(
        mut self,
        step: &str,
        own: Result<(T, M), Status>,
    ) -> Result<(T, Vec<M>), Status> {
        if self.ranks.size() == 1 {
            return own.map(|(value, message)| (value, vec![message]));
        }
        let (value, own) = match own {
            Ok((value, message)) => (Some(value), Ok(message)),
            Err(status) => (None, Err(StepFailure { status, reports: self.reports.clone() })),
        };
        let outcomes = match self.outcomes(step, &own) {
            Ok(outcomes) => outcomes,
            Err(lost) => {
                if self.ranks.rank() > 0 {
                    for report in std::mem::take(&mut self.reports) {
                        self.front.error(report.code.as_deref(), &report.text, report.help.as_deref());
                    }
                }
                return Err(Runner::report_lost(&lost, self.front));
            }
        };
        let worst = outcomes.iter().filter_map(|outcome| Some(outcome.as_ref().err()?.status)).max();
        match (worst, value) {
            (None, Some(value)) => Ok((value, outcomes.into_iter().filter_map(Result::ok).collect())),
            (worst, _) => {
                if self.ranks.rank() == 0 {
                    self.show(outcomes.iter().enumerate().filter_map(|(rank, o)| Some((rank, o.as_ref().err()?))));
                }
                Err(worst.unwrap_or(Status::Failed))
            }
        }
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
            Err(StepFailure { status: Status::Failed, reports: vec![RankReport { code: None, text, help: None }] })
        };
        Ok((0..self.ranks.size()).map(|rank| outcome_of(rank).unwrap_or_else(elsewhere)).collect())
    }

    /// Shows on rank 0 the errors of other ranks, the same one only once.
    fn show<'f>(&mut self, failures: impl Iterator<Item = (usize, &'f StepFailure)>) {
        let mut seen: BTreeSet<String> = self.reports.iter().map(|report| report.text.clone()).collect();
        let (mut shown, mut more) = (0, BTreeSet::new());
        for (rank, failure) in failures.filter(|(rank, _)| *rank > 0) {
            let named = rank_on_host(rank, self.ranks.hosts().get(rank).map_or("", String::as_str));
            if matches!(failure.status, Status::Interrupted(_)) && failure.reports.is_empty() {
                self.front.note(&format!("{named} was interrupted"));
            }
            for report in &failure.reports {
                if !seen.insert(report.text.clone()) {
                    continue;
                }
                if shown == SHOWN {
                    more.insert(rank);
                    continue;
                }
                shown += 1;
                let text = format!("{named}: {}", report.text);
                self.front.error(report.code.as_deref(), &text, report.help.as_deref());
            }
        }
        if !more.is_empty() {
            let ranks = crate::util::count::count(more.len() as u64, "more rank");
            self.front.error(None, &format!("{ranks} reported other errors"), None);
        }
    }

    fn shows_errors(&self) -> bool {
        self.ranks.rank() == 0
    }
}

impl Front for AllRanks<'_> {
    fn line(&mut self, text: &str) {
        self.front.line(text);
    }

    fn script_line(&mut self, text: &str) {
        self.front.script_line(text);
    }

    fn note(&mut self, text: &str) {
        self.front.note(text);
    }

    fn remains(&mut self, text: &str) {
        self.front.remains(text);
    }

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        for error in found.iter().filter(|found| found.severity == Severity::Error) {
            let text = diag::render(map, std::slice::from_ref(error), Style::Plain);
            self.reports.push(RankReport { code: None, text: text.trim_end().to_owned(), help: None });
        }
        if self.shows_errors() {
            self.front.diagnostics(map, found);
        }
    }

    fn error(&mut self, code: Option<&str>, text: &str, help: Option<&str>) {
        let [code_text, help_text] = [code, help].map(|text| text.map(str::to_owned));
        self.reports.push(RankReport { code: code_text, text: text.to_owned(), help: help_text });
        if self.shows_errors() {
            self.front.error(code, text, help);
        }
    }

    fn warning(&mut self, text: &str, help: &str) {
        if self.shows_errors() {
            self.front.warning(text, help);
        }
    }

    fn progress(&self) -> &dyn Progress {
        self.front.progress()
    }

    fn check_outputs(&self) -> std::io::Result<()> {
        self.front.check_outputs()
    }
}
