//! The store of noise floors: the differences between results of a workload on one machine and device, without any
//! change.
//!
//! A session is an experiment whose two arms are equal. Sessions from several days are kept in one file of the user.
//! Not in here: the execution of an experiment (`runner`), and the use of a noise floor (`comparison`).

use super::wanted::Experiment;
use crate::analysis::{Estimate, FloorSample, NoiseFloor};
use crate::comparison::{Comparison, figure, percent, ratio};
use crate::import::{DEVICE_IDENTITY, LOADED_SCRIPTS, LOOP_DIRECT, Observation};
use crate::os::OFlags;
use crate::os::held_dir::HeldDir;
use crate::os::path::state_dir;
use crate::os::reading;
use crate::output;
use crate::util::count::or_dash;
use crate::util::json;
use crate::util::table::{Align, Table};
use crate::util::timestamp::{now, seconds_of};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The name and version of the schema.
const SCHEMA: &str = "wmlrun.floors/1";

/// The maximum length of the file in bytes. A session takes about a thousand.
const MAX_LENGTH: u64 = 16 << 20;

/// The conditions on which a noise floor depends, besides the variables of the script. It applies to results that have
/// them in common. Sessions of versions with fewer conditions apply to no result.
const PLACE: [&str; 16] = [
    "script",
    LOADED_SCRIPTS,
    "run time",
    "processor",
    "file system",
    "mount options",
    "device",
    LOOP_DIRECT,
    "warm-up",
    "cache",
    "quiesced",
    "engine",
    "as-is",
    "limit cpu_ms_per_s",
    "memory",
    "pinned",
];

/// A session with two equal arms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FloorSession {
    /// The time of its end, RFC 3339.
    pub time: String,
    /// The start and the seed of its experiment, which identify it. Empty in files of earlier versions.
    #[serde(default)]
    pub experiment: String,
    /// The name of the workload.
    pub name: String,
    /// The name of the metric.
    pub metric: String,
    /// The values of the conditions on which a noise floor depends, in the order of `PLACE`, and the variables.
    pub place: Vec<String>,
    /// The ratio of the arms, with its 95 % interval.
    pub ratio: Estimate,
    /// The mean of all runs.
    pub mean: f64,
}

/// All recorded sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floors {
    schema: String,
    sessions: Vec<FloorSession>,
}

/// The noise floor of a metric under the conditions of its sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFloor {
    /// The name of the workload in the last session.
    pub name: String,
    /// The name of the metric.
    pub metric: String,
    /// The noise floor; `None` if the intervals of all sessions are too wide.
    pub floor: Option<NoiseFloor>,
    /// The number of its sessions.
    pub sessions: u64,
    /// The time of the last session, RFC 3339.
    pub last: String,
    pub run_time: String,
    /// The file system and its device.
    pub storage: String,
    /// The other conditions in which it differs from further floors of this workload and metric, as `NAME=VALUE`.
    pub differs: Vec<String>,
    /// The samples of the sessions with their times, RFC 3339.
    pub samples: Vec<(String, FloorSample)>,
}

impl FloorSession {
    /// The session of an experiment that ends now, from the comparison of its equal arms.
    pub(crate) fn of(experiment: &Experiment, comparison: &Comparison, place: Vec<String>) -> Self {
        let values = || comparison.a.values.iter().chain(&comparison.b.values);
        Self {
            time: now(),
            experiment: format!("{} {}", experiment.created, experiment.seed),
            name: experiment.name.clone(),
            metric: comparison.metric.clone(),
            place,
            ratio: comparison.ratio,
            mean: values().sum::<f64>() / values().count() as f64,
        }
    }

    /// Returns the conditions with their names: those of `PLACE`, and the variables. Those of a session that an earlier
    /// version stored are unknown.
    fn conditions(&self) -> Vec<(String, String)> {
        let Some((variables, conditions)) = self.place.split_last().filter(|_| self.place.len() == PLACE.len() + 1)
        else {
            return Vec::new();
        };
        let named = PLACE.iter().zip(conditions).map(|(name, value)| ((*name).to_owned(), value.clone()));
        let variables = variables.split(' ').filter_map(|variable| variable.split_once('='));
        named.chain(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
    }

    /// Returns the value of a condition; `-` if it is unknown.
    fn condition(&self, name: &str) -> String {
        or_dash(self.conditions().into_iter().find(|(known, _)| known == name), |(_, value)| value)
    }

    /// Returns what the noise floor is computed from.
    pub(crate) fn sample(&self) -> FloorSample {
        FloorSample { ratio: self.ratio, mean: self.mean, time: seconds_of(&self.time) }
    }
}

impl Default for Floors {
    fn default() -> Self {
        Self { schema: SCHEMA.to_owned(), sessions: Vec::new() }
    }
}

/// Returns the conditions of runs on which a noise floor depends, or `None` when they are unknown or not the same in
/// all runs.
pub fn place<'a>(runs: impl IntoIterator<Item = &'a Observation>) -> Option<Vec<String>> {
    // Runs without a file system have no device. The empty string stands for an absent condition.
    let value = |run: &Observation, name: &str| {
        // The name of a device depends on the order in which devices are found.
        let identity = run.conditions.get(DEVICE_IDENTITY).filter(|_| name == "device");
        identity.or_else(|| run.conditions.get(name)).cloned().unwrap_or_default()
    };
    let place_of = |run: &Observation| {
        let known = run.conditions.contains_key(PLACE[0]);
        known.then(|| PLACE.iter().map(|name| value(run, name)).chain([variables(run)]).collect::<Vec<String>>())
    };
    let mut runs = runs.into_iter().map(place_of);
    let first = runs.next()??;
    runs.all(|place| place.as_ref() == Some(&first)).then_some(first)
}

/// Returns the variables of a run as one text. The directory is not a condition: its device is.
fn variables(run: &Observation) -> String {
    let variables = run.conditions.iter().filter(|(name, _)| name.starts_with('$') && *name != "$dir");
    variables.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl Floors {
    /// Returns the path of the file, in the [state directory](state_dir).
    pub(crate) fn path() -> Option<PathBuf> {
        Some(state_dir()?.join("floors.json"))
    }

    /// Reads the file. A missing file has no sessions. Returns an error when the file has another schema.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match reading::read_text(path, MAX_LENGTH) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text?,
        };
        let found: Self = serde_json::from_str(&text).map_err(|e| io::Error::other(json::reason(&e)))?;
        if found.schema != SCHEMA {
            return Err(io::Error::other(format!("its schema is not `{SCHEMA}`")));
        }
        Ok(found)
    }

    /// Adds a session to the file, in place of an earlier one of the same experiment. Returns all sessions.
    pub(crate) fn add(session: FloorSession, path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), |dir| HeldDir::create(dir).map(drop))?;
        Self::change(path, |floors| {
            floors.sessions.retain(|known| known.experiment.is_empty() || known.experiment != session.experiment);
            floors.sessions.push(session);
        })
    }

    /// Changes the file. Returns the sessions that it has then. Another process that changes it waits.
    fn change(path: &Path, change: impl FnOnce(&mut Self)) -> io::Result<Self> {
        // A link, such as to a file that several machines share, stays one.
        let (dir, name) = match HeldDir::of_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            found => found?,
        };
        // The file itself is replaced, so that its lock would be that of the old file.
        let lock_name = Path::new(&name).with_extension("lock");
        let lock = dir.open_file(lock_name.as_os_str(), OFlags::WRONLY | OFlags::CREATE)?;
        lock.lock()?;
        let before = Self::read(path)?;
        let mut floors = before.clone();
        change(&mut floors);
        if floors != before {
            let write: output::WriteTo<'_> =
                &mut |out| serde_json::to_writer_pretty(out, &floors).map_err(io::Error::from);
            output::replace_in(&dir, &name, write)?;
        }
        Ok(floors)
    }

    /// Returns the names of the conditions in which the most similar stored session of the script and the metric differs
    /// from `place`; none if it has the same. `None` without such a session.
    pub(crate) fn differing(&self, metric: &str, place: &[String]) -> Option<Vec<String>> {
        let own = FloorSession { place: place.to_vec(), ..FloorSession::default() };
        let differing = |session: &FloorSession| -> Vec<String> {
            let differs = |(name, value): &(String, String)| own.condition(name) != *value;
            session.conditions().into_iter().filter(differs).map(|(name, _)| name).collect()
        };
        let script = own.condition("script");
        let is_alike = |session: &&FloorSession| session.metric == metric && session.condition("script") == script;
        self.sessions.iter().filter(is_alike).map(differing).min_by_key(Vec::len)
    }

    /// Returns the sessions that have the metric and the conditions in common, in the order of the first of each.
    fn groups(&self) -> Vec<Vec<&FloorSession>> {
        let mut groups: Vec<Vec<&FloorSession>> = Vec::new();
        for session in &self.sessions {
            let is_its = |group: &&mut Vec<&FloorSession>| {
                group.first().is_some_and(|first| (&first.metric, &first.place) == (&session.metric, &session.place))
            };
            match groups.iter_mut().find(is_its) {
                Some(group) => group.push(session),
                None => groups.push(vec![session]),
            }
        }
        groups
    }

    /// Returns all noise floors.
    pub(crate) fn stored(&self) -> Vec<StoredFloor> {
        let groups = self.groups();
        groups.iter().filter_map(|group| stored(group, &groups)).collect()
    }

    /// The noise floors as a table. `path` is that of the file.
    pub(crate) fn table(&self, path: &Path) -> String {
        let found = self.stored();
        if found.is_empty() {
            return format!(
                "no noise floor is stored in {}; `wmlrun repeat --floor --dir DIR` measures one\n",
                path.display()
            );
        }
        let mut table = Table::new([
            ("", Align::Left),
            ("workload", Align::Left),
            ("metric", Align::Left),
            ("floor", Align::Right),
            ("run time", Align::Right),
            ("storage", Align::Left),
            ("", Align::Left),
        ]);
        for (n, floor) in (1_u64..).zip(found) {
            let StoredFloor { name, metric, floor, run_time, storage, differs, samples, .. } = floor;
            let share = or_dash(floor, |floor| format!("± {}", percent(floor.share)));
            table.row([n.to_string(), name, metric.clone(), share, run_time, storage, differs.join(" ")]);
            for (m, (time, sample)) in (1_u64..).zip(samples) {
                let minute = time.get(..16).unwrap_or(&time).replace('T', " ");
                let equal = format!("A/A {}", ratio(sample.ratio));
                table.row([
                    format!("{n}.{m}"),
                    minute,
                    figure(&metric, sample.mean),
                    String::new(),
                    String::new(),
                    equal,
                ]);
            }
        }
        format!("{}\nstored in {}\n", table.render(), path.display())
    }

    /// Removes a noise floor, or one of its sessions, from the file. Both numbers are counted from 1 in the order of
    /// [`Self::stored`]. Returns the floor as it was, or `None` if there is no such one.
    pub(crate) fn forget(number: usize, session: Option<usize>, path: &Path) -> io::Result<Option<StoredFloor>> {
        let mut removed = None;
        Self::change(path, |floors| {
            let groups = floors.groups();
            let Some(group) = number.checked_sub(1).and_then(|n| groups.get(n)) else { return };
            let is_removed = |of: &FloorSession| match session {
                None => group.contains(&of),
                Some(n) => n.checked_sub(1).and_then(|n| group.get(n)).is_some_and(|session| *session == of),
            };
            if !floors.sessions.iter().any(is_removed) {
                return;
            }
            removed = stored(group, &[]);
            let kept = floors.sessions.iter().filter(|of| !is_removed(of)).cloned().collect();
            floors.sessions = kept;
        })?;
        Ok(removed)
    }

    /// Returns the noise floor of a metric under the conditions `place`, or `None` when it has not been measured.
    /// `until`: the time in seconds since 1970 from which sessions do not count. They would include the change that a
    /// comparison is to find.
    pub(crate) fn of(&self, metric: &str, place: &[String], until: Option<i64>) -> Option<NoiseFloor> {
        let applies = |session: &&FloorSession| session.metric == metric && session.place == place;
        let counts = |of: &FloorSample| until.is_none_or(|until| of.time.is_none_or(|time| time < until));
        let samples = self.sessions.iter().filter(applies).map(FloorSession::sample);
        NoiseFloor::of(&samples.filter(counts).collect::<Vec<_>>())
    }
}

/// Describes sessions that have the metric and the conditions in common. `all` has those of all floors. Returns `None`
/// without a session.
fn stored(group: &[&FloorSession], all: &[Vec<&FloorSession>]) -> Option<StoredFloor> {
    /// What a list has in columns of their own.
    const SHOWN: [&str; 4] = ["script", "run time", "file system", "device"];
    let last = group.iter().max_by(|a, b| a.time.cmp(&b.time))?;
    let alike = all.iter().filter_map(|other| other.first());
    let alike: Vec<&&FloorSession> =
        alike.filter(|other| (&other.name, &other.metric) == (&last.name, &last.metric)).collect();
    let differs = last.conditions().into_iter().filter(|(name, value)| {
        !SHOWN.contains(&name.as_str()) && alike.iter().any(|other| other.condition(name) != *value)
    });
    let samples: Vec<FloorSample> = group.iter().map(|session| session.sample()).collect();
    Some(StoredFloor {
        name: last.name.clone(),
        metric: last.metric.clone(),
        floor: NoiseFloor::of(&samples),
        sessions: group.len() as u64,
        last: last.time.clone(),
        run_time: last.condition("run time"),
        storage: match last.condition("file system") {
            // The null engine has none.
            kind if kind.is_empty() => "no file system".to_owned(),
            kind => format!("{kind} on {}", last.condition("device")),
        },
        differs: differs.map(|(name, value)| format!("{name}={value}")).collect(),
        samples: group.iter().map(|session| (session.time.clone(), session.sample())).collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn session(experiment: &str, mean: f64, low: f64, high: f64) -> FloorSession {
        FloorSession {
            time: "2026-11-20T10:00:00Z".into(),
            experiment: experiment.into(),
            name: "varmail".into(),
            metric: "ops".into(),
            place: vec!["ab".into()],
            ratio: Estimate { value: 1.0, low, high },
            mean,
        }
    }

    /// The file may be one that several machines share.
    #[test]
    fn a_link_to_the_file_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, link) = (dir.path().join("shared.json"), dir.path().join("floors.json"));
        Floors::add(session("monday", 1000.0, 0.98, 1.01), &shared).unwrap();
        std::os::unix::fs::symlink("shared.json", &link).unwrap();
        Floors::add(session("tuesday", 1080.0, 0.99, 1.01), &link).unwrap();
        assert!(link.is_symlink());
        assert_eq!(Floors::read(&shared).unwrap().sessions.len(), 2);
    }

    #[test]
    fn sessions_are_kept_and_apply_to_their_conditions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/floors.json");
        assert_eq!(Floors::read(&path).unwrap().of("ops", &["ab".into()], None), None);
        Floors::add(session("monday", 1000.0, 0.98, 1.01), &path).unwrap();
        Floors::add(session("tuesday", 1080.0, 0.99, 1.01), &path).unwrap();
        let read = Floors::read(&path).unwrap();
        let found = read.of("ops", &["ab".into()], None).unwrap();
        assert_eq!((found.sessions, found.spans_days), (2, false), "both are of one time");
        let later = FloorSession { time: "2026-11-21T09:00:00Z".into(), ..session("wednesday", 1080.0, 0.99, 1.01) };
        let floors = Floors::add(later.clone(), &path).unwrap();
        assert!(floors.of("ops", &["ab".into()], None).unwrap().spans_days);
        // A session of the day of a comparison's later side does not count.
        let until = seconds_of(&later.time);
        assert!(until.is_some() && !floors.of("ops", &["ab".into()], until).unwrap().spans_days);
        assert_eq!((read.of("mib", &["ab".into()], None), read.of("ops", &["cd".into()], None)), (None, None));
    }

    #[test]
    fn a_floor_depends_on_the_variables_but_not_on_the_directory() {
        let run = |pairs: &[(&str, &str)]| Observation {
            conditions: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Observation::default()
        };
        let one = run(&[("script", "ab"), ("file system", "ext4"), ("$n", "1"), ("$dir", "/x")]);
        let same = run(&[("script", "ab"), ("file system", "ext4"), ("$n", "1"), ("$dir", "/y")]);
        let more = run(&[("script", "ab"), ("file system", "ext4"), ("$n", "16"), ("$dir", "/x")]);
        assert_eq!(place([&one]), place([&one, &same]));
        assert!(place([&one]).is_some() && place([&one]) != place([&more]) && place([&one, &more]).is_none());
        assert_eq!(place([&Observation::default()]), None);
        for name in PLACE {
            let other = run(&[("script", "ab"), ("file system", "ext4"), ("$n", "1"), ("$dir", "/x"), (name, "other")]);
            assert_ne!(place([&one]), place([&other]), "{name}");
        }
    }

    #[test]
    fn a_session_replaces_that_of_the_same_experiment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floors.json");
        for mean in [1000.0, 1010.0] {
            Floors::add(session("monday", mean, 0.98, 1.01), &path).unwrap();
        }
        assert_eq!(Floors::read(&path).unwrap().sessions, [session("monday", 1010.0, 0.98, 1.01)]);
        // Sessions of earlier versions do not say which experiment they are of.
        for _ in 0..2 {
            Floors::add(session("", 1000.0, 0.98, 1.01), &path).unwrap();
        }
        assert_eq!(Floors::read(&path).unwrap().sessions.len(), 3);
    }

    #[test]
    fn floors_are_listed_and_removed_by_their_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floors.json");
        assert_eq!(Floors::forget(1, None, &dir.path().join("missing/floors.json")).unwrap(), None);
        let place = |script: &str| {
            let of = |name: &&str| match *name {
                "script" => script.to_owned(),
                "file system" => "ext4".to_owned(),
                "device" => "/dev/sdb1".to_owned(),
                "run time" => "60 s".to_owned(),
                _ => String::new(),
            };
            let variables = format!("$nfiles=10 $nthreads={}", script.len());
            PLACE.iter().map(of).chain([variables]).collect::<Vec<String>>()
        };
        for (n, script) in ["mail", "web", "mail"].into_iter().enumerate() {
            let mean = 1000.0 + n as f64;
            Floors::add(FloorSession { place: place(script), ..session(&n.to_string(), mean, 0.98, 1.01) }, &path)
                .unwrap();
        }
        let found = Floors::read(&path).unwrap().stored();
        assert_eq!(found.iter().map(|floor| floor.sessions).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((&found[0].run_time[..], &found[0].storage[..]), ("60 s", "ext4 on /dev/sdb1"));
        assert_eq!(
            found.iter().map(|floor| floor.differs.join(" ")).collect::<Vec<_>>(),
            ["$nthreads=4", "$nthreads=3"]
        );
        for (number, session) in [(0, None), (3, None), (1, Some(0)), (1, Some(3))] {
            assert_eq!(Floors::forget(number, session, &path).unwrap(), None);
        }
        // The nearest stored session differs in the device only.
        let mut other = place("mail");
        other[PLACE.iter().position(|name| *name == "device").unwrap()] = "/dev/sdc1".to_owned();
        let floors = Floors::read(&path).unwrap();
        assert_eq!(floors.differing("ops", &other).unwrap(), ["device"]);
        assert_eq!(
            (floors.differing("mib", &other), floors.differing("ops", &place("mail"))),
            (None, Some(Vec::new()))
        );
        assert_eq!(Floors::forget(1, Some(2), &path).unwrap().unwrap().sessions, 2);
        assert_eq!(Floors::read(&path).unwrap().stored()[0].samples.len(), 1);
        assert_eq!(Floors::forget(1, None, &path).unwrap().unwrap().sessions, 1);
        let left = Floors::read(&path).unwrap();
        assert_eq!(left.sessions.iter().map(|session| &session.experiment[..]).collect::<Vec<_>>(), ["1"]);
    }

    /// A disk may get another name when the machine starts, and a loop device with each mount.
    #[test]
    fn a_floor_belongs_to_the_device_and_not_to_its_name() {
        let run = |device: &str, identity: Option<&str>| {
            let mut conditions = vec![("script", "ab"), ("device", device)];
            conditions.extend(identity.map(|identity| ("device identity", identity)));
            Observation {
                conditions: conditions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
                ..Observation::default()
            }
        };
        assert_eq!(place([&run("/dev/sda1", Some("x"))]), place([&run("/dev/sdb1", Some("x"))]));
        assert_ne!(place([&run("/dev/sda1", Some("x"))]), place([&run("/dev/sda1", Some("y"))]));
        assert_ne!(place([&run("/dev/sda1", None)]), place([&run("/dev/sdb1", None)]));
    }

    #[test]
    fn sessions_that_are_added_at_once_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floors.json");
        std::thread::scope(|scope| {
            for n in 0..16 {
                let path = &path;
                scope.spawn(move || Floors::add(session(&n.to_string(), 1000.0, 0.98, 1.01), path).unwrap());
            }
        });
        assert_eq!(Floors::read(&path).unwrap().sessions.len(), 16);
    }

    #[test]
    fn a_file_with_another_schema_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("floors.json");
        for text in ["", "{}", "{\"schema\": \"x\", \"sessions\": []}"] {
            std::fs::write(&path, text).unwrap();
            Floors::read(&path).unwrap_err();
        }
    }
}
