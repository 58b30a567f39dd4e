//! The noise floor: how much results of one workload in one place differ although nothing was changed.
//!
//! Each session is an experiment whose two arms are the same. Sessions are kept over days in one file of the user. Deliberately
//! absent: how an experiment is made (`runner`), and what is done with a floor (`comparison`).

use crate::analysis::{Estimate, NoiseFloor};
use crate::import::Observation;
use crate::output;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The name and version of the form.
const SCHEMA: &str = "wmlrun.floors/1";

/// Conditions that two results have in common if a floor applies to both.
const PLACE: [&str; 5] = ["script", "run time", "processor", "file system", "device"];

/// Two equal arms of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorSession {
    /// When it ended, RFC 3339.
    pub time: String,
    /// The workload.
    pub name: String,
    /// The metric.
    pub metric: String,
    /// The values of the conditions on which a floor depends, in the order of their table.
    pub place: Vec<String>,
    /// One arm over the other, with its 95 % interval.
    pub ratio: Estimate,
    /// The mean of all runs.
    pub mean: f64,
}

/// Every session that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floors {
    schema: String,
    sessions: Vec<FloorSession>,
}

impl Default for Floors {
    fn default() -> Self {
        Self { schema: SCHEMA.to_owned(), sessions: Vec::new() }
    }
}

/// The conditions of these runs on which a floor depends; `None` if they are not known, or not the same in all runs.
pub fn place<'a>(runs: impl IntoIterator<Item = &'a Observation>) -> Option<Vec<String>> {
    // Without a file system there is no device.
    let value = |run: &Observation, name: &str| run.conditions.get(name).cloned().unwrap_or_default();
    let of_run = |run: &Observation| {
        let known = run.conditions.contains_key(PLACE[0]);
        known.then(|| PLACE.iter().map(|name| value(run, name)).collect::<Vec<String>>())
    };
    let mut runs = runs.into_iter().map(of_run);
    let first = runs.next()??;
    runs.all(|place| place.as_ref() == Some(&first)).then_some(first)
}

impl Floors {
    /// Where the file is: below `$XDG_STATE_HOME`, else `~/.local/state`. `None` without a home.
    pub fn path() -> Option<PathBuf> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
        Some(state.join("wmlrun/floors.json"))
    }

    /// Reads the file; none is no session.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text?,
        };
        let found: Self = serde_json::from_str(&text).map_err(io::Error::other)?;
        if found.schema != SCHEMA {
            return Err(io::Error::other(format!("its schema is `{}`, not `{SCHEMA}`", found.schema)));
        }
        Ok(found)
    }

    /// Adds a session and writes the file.
    pub fn add(&mut self, session: FloorSession, path: &Path) -> io::Result<()> {
        self.sessions.push(session);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        output::replace(path, &mut |out| serde_json::to_writer_pretty(out, self).map_err(io::Error::from))
    }

    /// The floor of a metric in a place, if it has been measured.
    pub fn of(&self, metric: &str, place: &[String]) -> Option<NoiseFloor> {
        let applies = |session: &&FloorSession| session.metric == metric && session.place == place;
        NoiseFloor::of(&self.sessions.iter().filter(applies).map(|s| (s.ratio, s.mean)).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn session(mean: f64, low: f64, high: f64) -> FloorSession {
        FloorSession {
            time: "2026-11-20T10:00:00Z".into(),
            name: "varmail".into(),
            metric: "ops".into(),
            place: vec!["ab".into()],
            ratio: Estimate { value: 1.0, low, high },
            mean,
        }
    }

    #[test]
    fn sessions_are_kept_and_apply_to_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/floors.json");
        let mut floors = Floors::read(&path).unwrap();
        assert_eq!(floors.of("ops", &["ab".into()]), None);
        floors.add(session(1000.0, 0.98, 1.01), &path).unwrap();
        floors.add(session(1080.0, 0.99, 1.01), &path).unwrap();
        let read = Floors::read(&path).unwrap();
        assert_eq!(read.of("ops", &["ab".into()]).unwrap().sessions, 2);
        assert_eq!((read.of("mib", &["ab".into()]), read.of("ops", &["cd".into()])), (None, None));
    }

    #[test]
    fn a_file_of_another_form_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floors.json");
        for text in ["", "{}", "{\"schema\": \"x\", \"sessions\": []}"] {
            std::fs::write(&path, text).unwrap();
            Floors::read(&path).unwrap_err();
        }
    }
}
