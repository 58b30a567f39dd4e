//! The agreement of all ranks on a run before anything is created, and what every rank takes from rank 0.

use super::settings::WarmupLength;
use super::{Front, Runner, Status};
use crate::model::ModelValue;
use crate::random;
use crate::ranks::{self, Conditions, NoAgreement, RanksLost};
use crate::spec::predefined::{self, Predefined};
use crate::util::duration;
use crate::util::version::VERSION;

impl Runner {
    /// Compares the conditions of the next run on this rank with those on rank 0. `own` has the names and values of
    /// those of the session. Every rank calls this. Reports a difference as an error, on every rank.
    pub fn agree(&self, own: Vec<(String, String)>, front: &mut dyn Front) -> Result<(), Status> {
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
            if settings.ranks.rank() == 0 {
                let message =
                    "the ranks of a run have one time of measurement, and `--warmup auto` ends on each at another";
                front.error(None, message, Some("give the length of the warm-up"));
            }
            return Err(Status::Refused);
        }
        agreed.map_err(|why| match why {
            NoAgreement::Different(disagreement) => {
                // All ranks know the difference: one of them reports it.
                if settings.ranks.rank() == 0 {
                    let help = "start the same wmlrun, with the same script and options, on every host";
                    front.error(None, &disagreement.to_string(), Some(help));
                }
                Status::Refused
            }
            NoAgreement::Lost(lost) => Self::report_lost(&lost, front),
        })
    }

    /// Reports ranks that do not answer. Returns the status of the session.
    pub(crate) fn report_lost(lost: &RanksLost, front: &mut dyn Front) -> Status {
        front.error(None, &lost.to_string(), Some(RanksLost::HELP));
        Status::Failed
    }

    /// Waits until all ranks have called this. Reports an error if some do not answer.
    pub fn wait_for_ranks(&self, front: &mut dyn Front) -> Status {
        match self.settings.ranks.barrier() {
            Ok(()) => Status::Done,
            Err(lost) => Self::report_lost(&lost, front),
        }
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
