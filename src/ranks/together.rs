//! What the ranks of a run do together: they exchange data, and agree on steps that all of them take.

use super::{CommonStart, Others, RanksLost};
use crate::diag::{Failure, Reason, Status};
use crate::os::proc;
use crate::result::ranks::{LastProgress, RankProgress};
use crate::result::{LostRank, RankClock, rank_on_host};
use crate::runtime::MeetingPlace;
use crate::util::count::count;
use crate::util::json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most errors of other ranks that rank 0 reports after a step.
const SHOWN: usize = 5;

/// The conditions of a run on one rank: names for messages, and values, in the order in which they are compared.
pub(crate) type Conditions = Vec<(String, String)>;

/// The data of a rank, and its clock if it is known.
pub(crate) type WithClock<M> = (M, Option<RankClock>);

/// All ranks of a run, as one of them sees them.
#[derive(Clone, Debug)]
pub struct Together {
    rank: usize,
    hosts: Vec<String>,
    others: Option<Arc<dyn Others>>,
}

impl Together {
    /// This process alone, as number 0 of 1.
    pub fn alone() -> Self {
        let [_, host, ..] = proc::uname();
        Self { rank: 0, hosts: vec![host], others: None }
    }

    /// This process and others.
    pub fn with(others: Arc<dyn Others>) -> Self {
        Self { rank: others.rank(), hosts: others.hosts().to_vec(), others: Some(others) }
    }

    /// Whether there is no other rank.
    pub fn is_alone(&self) -> bool {
        self.others.is_none()
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks, at least 1.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// The name of the host of each rank, in the order of their numbers.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The name of this rank's host.
    pub fn host(&self) -> &str {
        self.hosts.get(self.rank).map_or("", String::as_str)
    }

    /// The number of different hosts, at least 1.
    pub(crate) fn distinct_hosts(&self) -> usize {
        self.hosts.iter().collect::<BTreeSet<_>>().len()
    }

    /// A rank as messages name it.
    pub fn name_of(&self, rank: usize) -> String {
        rank_on_host(rank, self.hosts.get(rank).map_or("", String::as_str))
    }

    /// Where threads of the ranks meet during a run.
    pub(crate) fn meeting_place(&self) -> Option<Arc<dyn MeetingPlace>> {
        self.others.clone().map(|others| others as Arc<dyn MeetingPlace>)
    }

    /// Makes an answer of the data of all ranks on rank 0, and returns it on every rank. Every rank calls this with data of
    /// its own. Data of another exchange is `None`, and so is an answer to one.
    pub fn exchange<M, A>(&self, own: M, answer: impl FnOnce(Vec<Option<M>>) -> A) -> Result<Option<A>, RanksLost>
    where
        M: Serialize + DeserializeOwned,
        A: Serialize + DeserializeOwned,
    {
        let Some(others) = &self.others else { return Ok(Some(answer(vec![Some(own)]))) };
        // The gathering comes first: if the last run has failed on one rank, another rank may be at an exchange of that
        // run, and each would wait for the message of the other. So the messages do not match, which ends both.
        let all = others.gather(json::to_bytes(&own))?;
        let read = |all: Vec<Vec<u8>>| all.iter().map(|message| json::from_bytes(message).ok()).collect();
        let message = all.map_or_else(Vec::new, |all| json::to_bytes(&answer(read(all))));
        Ok(json::from_bytes(&others.broadcast(message)?).ok())
    }

    /// Waits until all ranks have called this.
    pub fn wait(&self) -> Result<(), RanksLost> {
        self.exchange("waits".to_owned(), |_| ()).map(|_| ())
    }

    /// Returns the value of rank 0. A rank that can't read it, because it has another version of the program, keeps its own;
    /// [`Together::compare`] detects this.
    pub fn of_first<T: Clone + Serialize + DeserializeOwned>(&self, own: T) -> Result<T, RanksLost> {
        let first = own.clone();
        Ok(self.exchange((), |_| first)?.unwrap_or(own))
    }

    /// Ends a step that all ranks take, with the outcome of this rank: it fails on all ranks if it fails on any, and rank 0
    /// says why. All ranks call this with the same name of the step.
    pub fn agree<T>(&self, step: &str, own: Result<T, Failure>) -> Result<T, Failure> {
        self.agree_with(step, own.map(|value| (value, ()))).map(|(value, _)| value)
    }

    /// The same, with data for all ranks. Returns the data of all ranks, in the order of their numbers.
    pub(crate) fn agree_with<T, M: Serialize + DeserializeOwned>(
        &self,
        step: &str,
        own: Result<(T, M), Failure>,
    ) -> Result<(T, Vec<M>), Failure> {
        if self.is_alone() {
            return own.map(|(value, data)| (value, vec![data]));
        }
        let (own, outcome) = match own {
            Ok((value, data)) => (Ok(value), Ok(data)),
            Err(failure) => {
                let stated = failure.stated();
                (Err(failure), Err(stated))
            }
        };
        let all = match self.exchange((step.to_owned(), outcome), |all| all) {
            Ok(all) => all.unwrap_or_default(),
            Err(lost) => {
                let lost = Failure::from(lost);
                return Err(own.err().map_or_else(|| lost.clone(), |own| own.and(lost.clone())));
            }
        };
        let (mut all, mut data, mut failures) = (all.into_iter(), Vec::new(), Vec::new());
        for rank in 0..self.size() {
            match all.next().flatten().filter(|(at, _)| at == step) {
                Some((_, Ok(of_rank))) => data.push(of_rank),
                Some((_, Err(failure))) => failures.push((rank, failure)),
                None => failures.push((rank, Failure::failed("it has reached another step of the run", ""))),
            }
        }
        let Some(worst) = failures.iter().map(|(_, failure)| failure.status).max() else {
            return own.map(|value| (value, data));
        };
        let own = own.err().filter(|_| self.rank == 0).map_or_else(Vec::new, |own| own.reasons);
        let failure = Failure { status: worst, reasons: own };
        Err(if self.rank == 0 { self.with_others(failure, failures) } else { failure })
    }

    /// Adds the failures of other ranks to that of rank 0, the same one only once.
    fn with_others(&self, mut own: Failure, failures: Vec<(usize, Failure)>) -> Failure {
        let (mut seen, mut shown, mut more) = (BTreeSet::new(), 0, BTreeSet::new());
        // Those of rank 0 are seen, and say it already.
        for (rank, failure) in failures {
            let named = self.name_of(rank);
            if rank > 0 && matches!(failure.status, Status::Interrupted(_)) && failure.reasons.is_empty() {
                own = own.and(Failure::failed(format!("{named} was interrupted"), ""));
            }
            for reason in failure.reasons {
                let Reason::Stated { code, message, help } = reason else { continue };
                if !seen.insert(message.clone()) || rank == 0 {
                    continue;
                }
                if shown == SHOWN {
                    more.insert(rank);
                    continue;
                }
                shown += 1;
                own.reasons.push(Reason::Stated { code, message: format!("{named}: {message}"), help });
            }
        }
        if more.is_empty() {
            return own;
        }
        own.and(Failure::failed(format!("{} reported other errors", count(more.len() as u64, "more rank")), ""))
    }

    /// Compares the conditions of all ranks with those of rank 0. Every rank calls this, and it fails on all if it fails on
    /// any: rank 0 says which condition of the rank with the lowest number is another one.
    pub fn compare(&self, own: &Conditions) -> Result<(), Failure> {
        let of_rank = |(rank, conditions): (usize, Option<Conditions>)| match conditions {
            Some(conditions) => Some(self.differs(rank, &difference(&conditions, own)?)),
            None => Some(self.differs(rank, "the step of the script is another one")),
        };
        let found = self.exchange(own.clone(), |all| all.into_iter().enumerate().find_map(of_rank))?;
        let found = found.unwrap_or_else(|| Some(self.differs(self.rank, "the step of the script is another one")));
        let help = "start the same wmlrun, with the same script and options, on every host";
        found.map_or(Ok(()), |text| Err(self.say_once(Failure::refused(text, help))))
    }

    fn differs(&self, rank: usize, how: &str) -> String {
        format!("{} differs from {}: {how}", self.name_of(rank), self.name_of(0))
    }

    /// A failure that all ranks find, and rank 0 explains.
    pub(crate) fn say_once(&self, failure: Failure) -> Failure {
        if self.rank == 0 { failure } else { Failure::unexplained(failure.status) }
    }

    /// Waits for the common start of all ranks. `is_first`: a run begins, and not only another measurement of it. `None`
    /// without others.
    pub fn common_start(&self, is_first: bool) -> Result<Option<CommonStart>, RanksLost> {
        let Some(others) = &self.others else { return Ok(None) };
        if is_first {
            others.begin_run();
        }
        others.common_start().map(Some)
    }

    /// Returns on rank 0 the data of each rank with its clock, and the ranks that are lost; `None` on the others, and
    /// without others. Every rank calls this at the end of its run.
    pub fn collect<M>(
        &self,
        own: &impl Serialize,
        read: impl Fn(&[u8]) -> Option<M>,
    ) -> Option<(Vec<WithClock<M>>, Vec<LostRank>)> {
        let others = self.others.as_ref()?;
        let (mut numbers, mut found, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, message) in others.collect(json::to_bytes(own))?.into_iter().enumerate() {
            let unread = || {
                let host = self.hosts.get(rank).cloned().unwrap_or_default();
                LostRank { rank: rank as u64, host, why: "has sent a result that can't be read".to_owned() }
            };
            match message.and_then(|message| read(&message).ok_or_else(unread)) {
                Ok(data) => {
                    numbers.push(rank);
                    found.push(data);
                }
                Err(rank) => lost.push(rank),
            }
        }
        // Only now, so that no rank that is lost is waited for.
        let clocks = others.clocks(&numbers).into_iter().chain(std::iter::repeat(None));
        Some((found.into_iter().zip(clocks).collect(), lost))
    }

    /// Returns the value of rank 0, which has reported what it collected. An error on a rank whose data it does not have.
    pub fn confirm<T: Serialize + DeserializeOwned>(&self, own: T) -> Result<T, RanksLost> {
        let Some(others) = &self.others else { return Ok(own) };
        Ok(json::from_bytes(&others.confirm(json::to_bytes(&own))?).unwrap_or(own))
    }

    /// Reports the progress of this rank. Returns on rank 0 the last progress of all, in the order of their numbers.
    pub fn progress(&self, own: RankProgress) -> Option<Vec<LastProgress>> {
        self.others.as_ref()?.progress(own)
    }
}

/// Returns the first condition with another value than on rank 0, or that only one of them has, as the end of a sentence.
fn difference(own: &Conditions, first: &Conditions) -> Option<String> {
    if own == first {
        return None;
    }
    let [values, expected] =
        [own, first].map(|of| of.iter().map(|(name, value)| (name, value)).collect::<BTreeMap<_, _>>());
    let of = |name: &String| match (values.get(name), expected.get(name)) {
        (value, expected) if value == expected => None,
        (Some(value), Some(expected)) => Some(format!("{name} is {value}, not {expected}")),
        (Some(value), None) => Some(format!("{name} is {value}, and missing on rank 0")),
        (None, Some(expected)) => Some(format!("{name} is missing, and {expected} on rank 0")),
        (None, None) => None,
    };
    own.iter().chain(first).find_map(|(name, _)| of(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Together, difference};

    #[test]
    fn the_first_difference_is_found() {
        let conditions = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        let first = conditions(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let of = |own: &[(&str, &str)]| difference(&conditions(own), &first).unwrap_or_default();
        assert_eq!(of(&[("a", "1"), ("b", "2"), ("c", "3")]), "");
        assert_eq!(of(&[("a", "1"), ("b", "5"), ("c", "6")]), "b is 5, not 2");
        assert_eq!(of(&[("a", "1"), ("b", "2")]), "c is missing, and 3 on rank 0");
        assert_eq!(of(&[("a", "1"), ("x", "2"), ("b", "2"), ("c", "3")]), "x is 2, and missing on rank 0");
        assert_eq!(of(&[]), "a is missing, and 1 on rank 0");
    }

    #[test]
    fn a_single_rank_agrees_with_itself() {
        let alone = Together::alone();
        alone.compare(&vec![("a".to_owned(), "1".to_owned())]).unwrap();
        assert_eq!(alone.of_first(7_u64), Ok(7));
        assert_eq!(alone.agree("a step", Ok(3)).unwrap(), 3);
    }
}
