//! The agreement of all ranks on a run: each compares the conditions of its run with those of rank 0.

use super::{Ranks, RanksLost, rank_on_host};
use crate::util::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The conditions of a run on one rank: names for messages, and values, in the order in which they are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions(pub Vec<(String, String)>);

impl Conditions {
    /// Adds a condition.
    pub fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// Returns the first condition with another value than in `first`, or that only one of them has: its name, its
    /// value here and its value there.
    fn difference(&self, first: &Self) -> Option<(String, Option<String>, Option<String>)> {
        if self == first {
            return None;
        }
        let [own, other] = [self, first].map(|of| of.0.iter().cloned().collect::<BTreeMap<_, _>>());
        let names = self.0.iter().chain(&first.0).map(|(name, _)| name);
        let values = |name: &String| (name.clone(), own.get(name).cloned(), other.get(name).cloned());
        names.map(values).find(|(_, own, other)| own != other)
    }
}

/// A rank with another condition than rank 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The number of the rank.
    pub rank: usize,
    /// The name of the condition.
    pub condition: String,
    /// Its value on that rank; `None` if the rank does not have it.
    pub value: Option<String>,
    /// Its value on rank 0; `None` if rank 0 does not have it.
    pub expected: Option<String>,
    /// The names of the hosts of that rank and of rank 0.
    pub hosts: [String; 2],
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, condition, value, expected, hosts: [host, first] } = self;
        write!(f, "{} differs from {}: ", rank_on_host(rank, host), rank_on_host(0, first))?;
        match (value, expected) {
            (Some(value), Some(expected)) => write!(f, "{condition} is {value}, not {expected}"),
            (Some(value), None) => write!(f, "{condition} is {value}, and missing on rank 0"),
            (None, Some(expected)) => write!(f, "{condition} is missing, and {expected} on rank 0"),
            (None, None) => write!(f, "{condition} is another one"),
        }
    }
}

/// The reason why the ranks do not start a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAgreement {
    /// A rank has another condition than rank 0.
    Different(Box<Disagreement>),
    /// Ranks do not answer.
    Lost(RanksLost),
}

impl From<RanksLost> for NoAgreement {
    fn from(lost: RanksLost) -> Self {
        Self::Lost(lost)
    }
}

/// Returns the value of rank 0. Every rank calls this, with its own value.
///
/// A rank that cannot read the message, because it has another version of the program, keeps its own value. [`agree`]
/// detects this.
pub fn of_first<T: Serialize + DeserializeOwned>(ranks: &dyn Ranks, own: T) -> Result<T, RanksLost> {
    let message = if ranks.rank() == 0 { json::to_bytes(&own) } else { Vec::new() };
    Ok(decode(&ranks.broadcast(message)?).unwrap_or(own))
}

/// Compares the conditions of all ranks with those of rank 0. Every rank calls this, and all get the same result. The
/// error is the difference of the rank with the lowest number.
pub fn agree(ranks: &dyn Ranks, own: &Conditions) -> Result<(), NoAgreement> {
    let disagreement = |rank: usize, (condition, value, expected): (String, Option<String>, Option<String>)| {
        let host = |rank: usize| ranks.hosts().get(rank).cloned().unwrap_or_default();
        Disagreement { rank, condition, value, expected, hosts: [host(rank), host(0)] }
    };
    // The gathering comes first: if the last run has failed on one rank, another rank may be at an exchange of that run,
    // and each would wait for the message of the other. So the messages do not match, which ends both.
    let all = ranks.gather(json::to_bytes(own))?.unwrap_or_default();
    let another_step = || ("the step of the script".to_owned(), None, None);
    let difference =
        |message: &Vec<u8>| decode(message).map_or_else(|| Some(another_step()), |of: Conditions| of.difference(own));
    let lowest = all.iter().map(difference).enumerate().find_map(|(rank, found)| Some(disagreement(rank, found?)));
    let verdict = lowest.map_or(AgreementResult::Agreed, AgreementResult::Different);
    let message = if ranks.rank() == 0 { json::to_bytes(&verdict) } else { Vec::new() };
    match decode(&ranks.broadcast(message)?)
        .unwrap_or_else(|| AgreementResult::Different(disagreement(ranks.rank(), another_step())))
    {
        AgreementResult::Agreed => Ok(()),
        AgreementResult::Different(found) => Err(NoAgreement::Different(Box::new(found))),
    }
}

/// The result of a comparison of conditions, which rank 0 sends to all ranks. No other exchange has a message of this form.
#[derive(Serialize, Deserialize)]
enum AgreementResult {
    Agreed,
    Different(Disagreement),
}

/// Returns the value in a message, or `None` if the message has another form.
fn decode<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    json::from_bytes(message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::SingleRank;

    fn conditions(pairs: &[(&str, &str)]) -> Conditions {
        Conditions(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_first_difference_is_found() {
        let first = conditions(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let of = |own: &[(&str, &str)]| conditions(own).difference(&first);
        let some = |name: &str, own: Option<&str>, other: Option<&str>| {
            Some((name.to_owned(), own.map(str::to_owned), other.map(str::to_owned)))
        };
        assert_eq!(of(&[("a", "1"), ("b", "2"), ("c", "3")]), None);
        assert_eq!(of(&[("a", "1"), ("b", "5"), ("c", "6")]), some("b", Some("5"), Some("2")));
        assert_eq!(of(&[("a", "1"), ("b", "2")]), some("c", None, Some("3")));
        assert_eq!(of(&[("a", "1"), ("x", "2"), ("b", "2"), ("c", "3")]), some("x", Some("2"), None));
        assert_eq!(of(&[]), some("a", None, Some("1")));
    }

    #[test]
    fn a_disagreement_names_rank_host_and_both_values() {
        let text = |value: Option<&str>, expected: Option<&str>| {
            let hosts = ["h2", "h1"].map(str::to_owned);
            let [value, expected] = [value, expected].map(|value| value.map(str::to_owned));
            Disagreement { rank: 3, condition: "the seed".to_owned(), value, expected, hosts }.to_string()
        };
        let start = "rank 3 on `h2` differs from rank 0 on `h1`: ";
        assert_eq!(text(Some("5"), Some("42")), format!("{start}the seed is 5, not 42"));
        assert_eq!(text(Some("5"), None), format!("{start}the seed is 5, and missing on rank 0"));
        assert_eq!(text(None, Some("42")), format!("{start}the seed is missing, and 42 on rank 0"));
    }

    #[test]
    fn a_single_rank_agrees_with_itself() {
        let single = SingleRank::new();
        assert_eq!(agree(&single, &conditions(&[("a", "1")])), Ok(()));
        assert_eq!(of_first(&single, 7_u64), Ok(7));
    }
}
