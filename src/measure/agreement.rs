//! The agreement of all ranks on a run before anything is created, and what every rank takes from rank 0.

use super::Runner;
use super::settings::WarmupLength;
use crate::diag::{Failure, Status};
use crate::model::ModelValue;
use crate::random;
use crate::ranks::{self, Conditions, NoAgreement, RanksLost};
use crate::spec::predefined::{self, Predefined};
use crate::util::duration;
use crate::util::version::VERSION;

impl Runner {
    /// Compares the conditions of the next run on this rank with those on rank 0. `own` has the names and values of
    /// those of the session. Every rank calls this. A difference is a failure on every rank.
    pub fn agree(&self, own: Vec<(String, String)>) -> Result<(), Failure> {
        let settings = &self.settings;
        // Other ranks may come to it much later, which says nothing about the file system.
        let _waiting = self.watch.pause();
        let mut conditions = Conditions::default();
        conditions.add("the version of wmlrun", VERSION);
        conditions.add("the SHA-256 digest of the script", &self.document.script.sha256);
        conditions.add("the seed", settings.seed.to_string());
        conditions.add("the layout seed", settings.layout_seed.to_string());
        if let Some(length) = settings.runtime {
            conditions.add("`--runtime`", duration::format(length));
        }
        conditions.add("`--share`", settings.share.name());
        conditions.add("`--ranks`", settings.division.name());
        conditions.add("`--engine`", settings.engine.name());
        conditions.add(
            "`--warmup`",
            match settings.warmup {
                WarmupLength::Fixed(length) => duration::format(length),
                WarmupLength::UntilSteady => "auto".to_owned(),
            },
        );
        conditions.add("`--interval`", duration::format(settings.interval));
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
                conditions.add(name, "given");
            }
        }
        conditions.0.extend(own);
        let agreed = ranks::agree(settings.ranks.as_ref(), &conditions);
        if agreed.is_ok() && settings.ranks.size() > 1 && settings.warmup == WarmupLength::UntilSteady {
            let message =
                "the ranks of a run have one time of measurement, and `--warmup auto` ends on each at another";
            return Err(self.stated_once(Status::Refused, message.to_owned(), "give the length of the warm-up"));
        }
        agreed.map_err(|why| match why {
            NoAgreement::Different(disagreement) => {
                let help = "start the same wmlrun, with the same script and options, on every host";
                self.stated_once(Status::Refused, disagreement.to_string(), help)
            }
            NoAgreement::Lost(lost) => lost_ranks(&lost),
        })
    }

    /// A failure that all ranks find: rank 0 says why.
    pub fn stated_once(&self, status: Status, message: String, help: &str) -> Failure {
        match self.settings.ranks.rank() {
            0 => Failure::new(status, message, help),
            _ => Failure::unexplained(status),
        }
    }

    /// Waits until all ranks have called this. An error if some do not answer.
    pub fn wait_for_ranks(&self) -> Result<(), Failure> {
        self.settings.ranks.barrier().map_err(|lost| lost_ranks(&lost))
    }

    /// Returns the predefined variables that differ between ranks, with their values on rank 0.
    pub fn variables_of_first(&self) -> [(Predefined, ModelValue); 2] {
        let host = self.settings.ranks.hosts().first().map_or("", String::as_str);
        [(predefined::RANK, 0.into()), (predefined::HOST, host.into())]
    }

    /// Returns the seed of this rank's random streams and data. Rank 0 has the seed of the run.
    pub(crate) fn stream_seed(&self) -> u64 {
        random::seed_of_rank(self.settings.seed, self.settings.ranks.rank() as u64)
    }
}

/// The failure of ranks that do not answer.
pub(super) fn lost_ranks(lost: &RanksLost) -> Failure {
    Failure::failed(lost.to_string(), RanksLost::HELP)
}
