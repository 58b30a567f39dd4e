//! Options of the command line that apply to a whole session.
//!
//! To add an option of a run: a field of [`Settings`] with its default, and a row of [`OPTIONS`]. Help, completion,
//! manual pages, the table of docs/options.md, what `repeat`, `ab` and the like pass on and keep for `--resume`, and
//! what an arm accepts come from the row. Add it to the topics of docs/options.md. One that names a path has a row in
//! `tests/it/places.rs`; one in which the ranks of a run must not differ stands in `run_ranks`. What the threads of a run
//! see of it is a field of `runtime::Options`, which `ready` fills.
//!
//! Not in here: the argument parser, which `cli` makes of the rows.

use super::Required;
use super::option_values::{annotation, assignment, file_and_count, interval, number, replay_speed, run_time, time};
use crate::fileset::DEFAULT_LAYOUT_SEED;
use crate::io_engine::{self, Engine};
use crate::ranks::Together;
use crate::replay::ReplayWish;
use crate::result::{Document, LimitOutcome, MAX_LABEL, MAX_NOTE, Run};
use crate::spec::{Dialect, Division, Sharing};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The default limit on the time in which preparation makes no progress: long enough for the restart of a server.
const PREPARE_TIMEOUT: Duration = Duration::from_mins(10);

/// The length of the warm-up of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarmupLength {
    /// This long; no warm-up if zero.
    Fixed(Duration),
    /// Until the steady part is at least as long as the part before it, and at least ten intervals. At most as long as
    /// the measurement, or ten minutes if that has no time limit.
    UntilSteady,
}

/// The limit on a warm-up that does not become steady, if the measurement has no time limit.
const MAX_WARMUP: Duration = Duration::from_mins(10);

impl WarmupLength {
    /// No warm-up.
    pub const NONE: Self = Self::Fixed(Duration::ZERO);

    /// Returns the longest warm-up before a measurement of `length`.
    pub(crate) fn longest(self, length: Option<Duration>) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::UntilSteady => length.unwrap_or(MAX_WARMUP),
        }
    }
}

/// The options of a session after their evaluation. Each field is what the option of its name in [`OPTIONS`] says; the
/// others have a comment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The processes that make the runs together.
    pub together: Together,
    pub share: Sharing,
    /// What each of the ranks runs (`--ranks`).
    pub division: Division,
    pub runtime: Option<Duration>,
    /// The values of `--set NAME=VALUE` in order. `--dir D` is `dir=D`.
    pub sets: Vec<(String, String)>,
    pub below: Option<PathBuf>,
    pub seed: u64,
    pub layout_seed: u64,
    pub warmup: WarmupLength,
    pub interval: Duration,
    pub dialect: Option<Dialect>,
    pub engine: &'static dyn Engine,
    pub populate_threads: usize,
    pub pin: bool,
    pub cold: bool,
    pub quiesce: bool,
    pub mkdir: bool,
    /// The file systems on which a run is allowed (`--require-fs`, `--require-mount`).
    pub required: Required,
    pub as_is: bool,
    pub prepare_timeout: Option<Duration>,
    pub keep: bool,
    pub clean: bool,
    pub adopt: bool,
    /// Count errors of operations and continue the run (`--on-error`).
    pub count_errors: bool,
    pub allow_system: bool,
    pub digest: Option<u64>,
    pub trace: Option<(PathBuf, usize)>,
    pub json: Option<PathBuf>,
    /// The name of the workload, if it is one of a profile.
    pub workload: Option<String>,
    /// The file of the joined result of a batch of which this is one workload. The batch writes it.
    pub joined: Option<PathBuf>,
    pub append: Option<PathBuf>,
    /// The file of the live stream, which the front end writes.
    pub live: Option<PathBuf>,
    pub force: bool,
    pub label: Option<String>,
    pub note: Option<String>,
    pub record_env: bool,
    pub redact: bool,
    pub results: PathBuf,
    pub allow_write: Vec<PathBuf>,
    pub allow_drop_caches: bool,
    /// How a trace is replayed.
    pub replay: ReplayWish,
    /// The arguments of the command line, for the result.
    pub command_line: Vec<String>,
    /// Tells which limits a run keeps.
    pub judge: RunJudge,
}

/// Tells of a run that has ended, the last of a document, which limits it keeps. The metrics of these are not known here.
#[derive(Clone)]
pub struct RunJudge(Arc<LimitsOfRun>);

type LimitsOfRun = dyn Fn(&Document, &Run) -> Vec<LimitOutcome> + Send + Sync;

impl RunJudge {
    pub fn new(judge: impl Fn(&Document, &Run) -> Vec<LimitOutcome> + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }

    /// Adds the limits to the last run.
    pub(super) fn judge(&self, document: &mut Document) {
        let limits = document.runs.last().map(|run| (self.0)(document, run)).unwrap_or_default();
        document.runs.last_mut().into_iter().for_each(|run| run.limits.clone_from(&limits));
    }
}

impl Default for RunJudge {
    fn default() -> Self {
        Self::new(|_, _| Vec::new())
    }
}

impl fmt::Debug for RunJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunJudge")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            together: Together::alone(),
            share: Sharing::default(),
            division: Division::default(),
            runtime: None,
            sets: Vec::new(),
            below: None,
            seed: 0,
            layout_seed: DEFAULT_LAYOUT_SEED,
            warmup: WarmupLength::NONE,
            interval: Duration::from_secs(1),
            dialect: None,
            engine: io_engine::DEFAULT,
            populate_threads: crate::os::limits::processors(),
            pin: false,
            cold: false,
            quiesce: true,
            mkdir: false,
            required: Required::default(),
            as_is: false,
            prepare_timeout: Some(PREPARE_TIMEOUT),
            keep: false,
            clean: false,
            adopt: false,
            count_errors: false,
            allow_system: false,
            digest: None,
            trace: None,
            json: None,
            workload: None,
            joined: None,
            append: None,
            live: None,
            force: false,
            label: None,
            note: None,
            record_env: false,
            redact: false,
            results: PathBuf::from("."),
            allow_write: Vec::new(),
            allow_drop_caches: false,
            replay: ReplayWish::default(),
            command_line: Vec::new(),
            judge: RunJudge::default(),
        }
    }
}

/// What an option takes, and how it changes the settings.
#[derive(Clone, Copy)]
pub enum Takes {
    /// No value.
    Nothing(fn(&mut Settings)),
    /// A value, which has this name in the help.
    Text(&'static str, OptionChange),
    /// The same, each time that the option is given.
    Texts(&'static str, OptionChange),
    /// A value behind an equals sign. Without it the value is this one.
    Optional(&'static str, &'static str, OptionChange),
    /// One of several names.
    Name(&'static str, fn() -> OptionNames, OptionChange),
    Path(&'static str, fn(&mut Settings, PathBuf)),
    /// The same, each time that the option is given.
    Paths(&'static str, fn(&mut Settings, PathBuf)),
}

/// Changes settings by the text of a value, or says what is wrong with it.
type OptionChange = fn(&mut Settings, &str) -> Result<(), String>;

/// The names that an option takes, with a line about each.
type OptionNames = Vec<(&'static str, &'static str)>;

/// The commands that have an option.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OptionScope {
    /// All that plan or run a script.
    Plan,
    /// All that run one, also as runs of an experiment, which keeps the option for `--resume`.
    Run,
    /// Those that run one in this process.
    Output,
}

/// What an option can be given for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunsWith {
    Scripts,
    /// Also the replay of a trace.
    Both,
    Traces,
}

/// Who may give an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenBy {
    /// It loosens what wmlrun promises: only the caller. A text from elsewhere, such as an experiment file, can't.
    Caller,
    /// It holds runs back: also a text from elsewhere, if the caller does not give it.
    CallerFirst,
    /// Everyone.
    Anyone,
}

/// The part of the help in which an option stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OptionGroup {
    /// The first.
    Main,
    /// How a run is measured.
    Measurement,
    /// How a trace is replayed.
    Replay,
    /// The places of files, and permissions.
    Files,
    /// What becomes of the result.
    Output,
    /// Options that few need, at the end.
    Rare,
    /// It is not in the help.
    Hidden,
}

/// What a shell completes for a value, beside the names of [`Takes::Name`] and files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completes {
    /// Nothing in particular.
    Nothing,
    Directories,
    /// A variable of the scripts of the line.
    Variables,
}

pub struct RunOption {
    /// Its name without the hyphens.
    pub name: &'static str,
    /// An older name, which still works.
    pub old_name: Option<&'static str>,
    /// Its value.
    pub takes: Takes,
    /// The commands that have it.
    pub scope: OptionScope,
    /// What it can be given for.
    pub runs_with: RunsWith,
    /// Who may give it.
    pub given_by: GivenBy,
    /// Its part of the help.
    pub group: OptionGroup,
    /// What it does, in lines.
    lines: &'static [&'static str],
    /// What a shell completes.
    pub completes: Completes,
    /// The option that can't be given with it.
    pub excludes: Option<&'static str>,
    /// Whether its value may begin with a hyphen.
    pub takes_hyphen: bool,
    /// Whether it may be given when an experiment is resumed, which has kept the others.
    pub with_resume: bool,
}

impl RunOption {
    /// The option of a word `--NAME` or `--NAME=VALUE`.
    pub(crate) fn of_word(word: &str) -> Option<&'static Self> {
        let name = word.strip_prefix("--")?.split('=').next()?;
        OPTIONS.iter().find(|option| option.name == name)
    }

    /// What it does.
    pub(crate) fn about(&self) -> String {
        self.lines.concat().trim_start().to_owned()
    }

    /// Changes settings by a value, or says what is wrong with it.
    pub(crate) fn apply(&self, settings: &mut Settings, value: &OsStr) -> Result<(), String> {
        match self.takes {
            Takes::Nothing(change) => change(settings),
            Takes::Path(..) | Takes::Paths(..) if value.is_empty() => return Err("a value is required".to_owned()),
            Takes::Path(_, change) | Takes::Paths(_, change) => change(settings, value.into()),
            Takes::Text(_, change)
            | Takes::Texts(_, change)
            | Takes::Optional(_, _, change)
            | Takes::Name(_, _, change) => change(settings, value.to_str().ok_or("it is not UTF-8")?)?,
        }
        Ok(())
    }
}

/// Makes the table: what an option does, then its name, group, commands, who may give it, and its value.
macro_rules! options {
    ($($(#[doc = $about:literal])* $name:literal, $group:ident, $scope:ident, $by:ident, $takes:expr
        $(, $field:ident: $value:expr)*;)*) => {
        /// The options of a run, in the order in which the help has those of a group.
        pub static OPTIONS: &[RunOption] = &[$(RunOption {
            $($field: $value,)*
            ..RunOption {
                name: $name,
                old_name: None,
                takes: $takes,
                scope: OptionScope::$scope,
                runs_with: RunsWith::Scripts,
                given_by: GivenBy::$by,
                group: OptionGroup::$group,
                lines: &[$($about),*],
                completes: Completes::Nothing,
                excludes: None,
                takes_hyphen: false,
                with_resume: false,
            }
        }),*];
    };
}

/// Parses a time, or `auto`.
fn warmup(text: &str) -> Result<WarmupLength, String> {
    if text == "auto" { Ok(WarmupLength::UntilSteady) } else { time(text).map(WarmupLength::Fixed) }
}

/// Stores a value that could be read.
fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

/// Stores the value of a name, which is one of its table.
fn pick<T>(place: &mut T, found: Option<T>) -> Result<(), String> {
    put(place, found.ok_or_else(|| "not in the table".to_owned()))
}

use Takes::{Name, Nothing, Optional, Path, Paths, Text, Texts};

fn engines() -> OptionNames {
    io_engine::TABLE.iter().map(|(engine, about)| (engine.name(), *about)).collect()
}

/// The dialects, which `check` takes too.
pub fn dialects() -> OptionNames {
    Dialect::ALL.map(|dialect| (dialect.name(), dialect.about())).to_vec()
}

fn sharings() -> OptionNames {
    Sharing::ALL.map(|sharing| (sharing.name(), sharing.about())).to_vec()
}

fn divisions() -> OptionNames {
    Division::ALL.map(|division| (division.name(), division.about())).to_vec()
}

/// The calls of other threads for which a call of a replay waits.
const ORDERS: [(&str, &str); 2] =
    [("resource", "Those of other threads on the same names and files"), ("thread", "None of other threads")];

/// What becomes of a run in which an operation fails.
const ON_ERROR: [(&str, &str); 2] =
    [("stop", "End the run at the first error"), ("count", "Count the error and continue the run")];

options! {
    /// Measured time of each run (seconds, or with a unit as in `10m`) [default: as in the script, else 60 s]
    "runtime", Main, Run, Anyone, Text("TIME", |s, v| put(&mut s.runtime, run_time(v).map(Some)));
    /// Set a variable; overrides every `set` of it in the script. May be repeated
    "set", Main, Plan, Anyone,
        Texts("NAME=VALUE", |s, v| assignment(v).map(|pair| s.sets.push(pair))), completes: Completes::Variables;
    /// Directory for the file sets, the same as `--set dir=DIR`, or for the files of a trace [default: as in the script,
    /// else temporary]
    "dir", Main, Plan, Anyone,
        Text("DIR", |s, v| { s.sets.push(("dir".to_owned(), v.to_owned())); Ok(()) }),
        completes: Completes::Directories, runs_with: RunsWith::Both;
    /// Seed of the run's random streams [default: a new one for each invocation, recorded in the result]
    "seed", Main, Plan, Anyone, Text("SEED", |s, v| put(&mut s.seed, number(v, 0..=u64::MAX))), runs_with: RunsWith::Both;
    /// Run the workload for TIME (seconds, or with a unit as in `10m`) before measuring; `auto`: until the rate is
    /// steady, at most the run time [default: 0]
    "warmup", Measurement, Run, Anyone, Text("TIME|auto", |s, v| put(&mut s.warmup, warmup(v)));
    /// Length of the intervals of the time series (seconds, or with a unit as in `10m`), at least 10ms [default: 1s]
    "interval", Measurement, Run, Anyone, Text("TIME", |s, v| put(&mut s.interval, interval(v)));
    /// I/O engine [default: uring for scripts with asynchronous I/O, if the kernel allows it, else posix]
    "engine", Measurement, Run, Anyone, Name("ENGINE", engines, |s, v| pick(&mut s.engine, io_engine::find(v)));
    /// Evict the file sets from the page cache before each run; as root, drop the page cache, dentries and inodes of
    /// the whole machine instead
    "cold", Measurement, Run, Anyone, Nothing(|s| s.cold = true);
    /// Do not wait for the disks to become idle before measuring. Between the runs of `ab` and of a noise floor
    /// wmlrun waits in any case. Runs of `repeat` that do not wait have no control
    "no-quiesce", Measurement, Run, Anyone, Nothing(|s| s.quiesce = false), old_name: Some("no-settle"), runs_with: RunsWith::Both;
    /// Start every run with the existing files: do not restore the file sets to their definitions first
    "as-is", Measurement, Run, Anyone, Nothing(|s| s.as_is = true);
    /// What to do when an operation fails [default: stop]
    "on-error", Measurement, Run, Anyone,
        Name("ACTION", || ON_ERROR.to_vec(), |s, v| { s.count_errors = v == ON_ERROR[1].0; Ok(()) });
    /// Begin calls as soon as those that they wait for are done (`fast`), at their times in the trace (`timed`), or so many
    /// times as fast (`x10`) [default: fast]
    "speed", Replay, Run, Anyone, Text("SPEED", |s, v| put(&mut s.replay.speed, replay_speed(v))),
        runs_with: RunsWith::Traces;
    /// Let calls wait for those of other threads on the same names and files (`resource`), or for none (`thread`) [default:
    /// resource]
    "order", Replay, Run, Anyone,
        Name("ORDER", || ORDERS.to_vec(), |s, v| { s.replay.is_by_thread = v == ORDERS[1].0; Ok(()) }),
        runs_with: RunsWith::Traces;
    /// With `--speed timed` or `xN`: let threads sleep as they slept, and leave out the time that they computed
    "no-think", Replay, Run, Anyone, Nothing(|s| s.replay.leaves_out_thinking = true), runs_with: RunsWith::Traces;
    /// Take a trace that lacks calls or its end
    "incomplete", Replay, Run, Anyone, Nothing(|s| s.replay.takes_incomplete = true), runs_with: RunsWith::Traces;
    /// Create the directory of the file sets if it does not exist
    "mkdir", Files, Run, Anyone, Nothing(|s| s.mkdir = true), runs_with: RunsWith::Both;
    /// Refuse to run, with status 3, unless every file set is on a file system of this type, such as `xfs`. Several
    /// types are separated by commas
    "require-fs", Files, Run, CallerFirst,
        Texts("TYPE", |s, v| { s.required.types.extend(v.split(',').map(str::to_owned)); Ok(()) }), runs_with: RunsWith::Both;
    /// Refuse to run, with status 3, unless every file set is on the file system that is mounted at PATH; without PATH:
    /// on a file system other than that of `/`
    "require-mount", Files, Run, CallerFirst,
        Optional("PATH", "", |s, v| { s.required.mount = Some(PathBuf::from(v)); Ok(()) }), runs_with: RunsWith::Both;
    /// Keep the fresh directory that is used if neither the script nor `--dir` names one
    "keep", Files, Run, Anyone, Nothing(|s| s.keep = true), excludes: Some("clean");
    /// Remove the file sets at the end, also from a directory that the script or `--dir` names
    "clean", Files, Run, Anyone, Nothing(|s| s.clean = true);
    /// Allow the script or the experiment file to run shell commands
    "allow-system", Files, Plan, Caller, Nothing(|s| s.allow_system = true), with_resume: true;
    /// Allow the script to write to PATH, a file or directory outside the results directory. May be repeated
    "allow-write", Files, Run, Caller, Paths("PATH", |s, path| s.allow_write.push(path));
    /// Write the result as JSON to FILE; with `-`, to standard output, and the report to standard error
    "json", Output, Output, Anyone, Path("FILE", |s, path| s.json = Some(path)), runs_with: RunsWith::Both;
    /// Append a row for each run to FILE, a table in CSV that is created if it does not exist
    "append", Output, Output, Anyone, Path("FILE", |s, path| s.append = Some(path)), runs_with: RunsWith::Both;
    /// Directory for the files that a script writes, such as statistics dumps [default: the current directory]
    "results", Output, Output, Anyone, Path("DIR", |s, path| s.results = path), completes: Completes::Directories, runs_with: RunsWith::Both;
    /// Replace a file of `--json`, `--trace` or `--live` even if wmlrun has not written it
    "force", Output, Output, Anyone, Nothing(|s| s.force = true), runs_with: RunsWith::Both;
    /// Name the result, such as `before the upgrade`; shown in reports and comparisons
    "label", Output, Run, Anyone, Text("TEXT", |s, v| put(&mut s.label, annotation(v, MAX_LABEL).map(Some))), runs_with: RunsWith::Both;
    /// Add a remark to the result, which reports and comparisons show
    "note", Output, Run, Anyone, Text("TEXT", |s, v| put(&mut s.note, annotation(v, MAX_NOTE).map(Some))), runs_with: RunsWith::Both;
    /// Omit the host name, mount sources, marks of devices such as serial numbers, paths and the command line from the
    /// result and the report
    "redact", Output, Run, Anyone, Nothing(|s| s.redact = true), runs_with: RunsWith::Both;
    /// Directory for the file sets of a script that names paths of its own: `/mnt/x` becomes DIR/mnt/x
    "below", Rare, Plan, CallerFirst,
        Text("DIR", |s, v| put(&mut s.below, annotation(v, usize::MAX).map(|dir| Some(dir.into())))),
        completes: Completes::Directories, excludes: Some("dir");
    /// Seed of directory trees and file sizes [default: 1]
    "layout-seed", Rare, Plan, Anyone, Text("LAYOUT_SEED", |s, v| put(&mut s.layout_seed, number(v, 0..=u64::MAX)));
    /// WML dialect of the script [default: detected from the script]
    "dialect", Rare, Plan, Anyone,
        Name("DIALECT", dialects, |s, v| pick(&mut s.dialect, Dialect::find(v).map(Some)));
    /// Record a hash of the first N operations of each thread (flowop, file, offset, size) in the result [default N:
    /// 1000]. Runs with equal operations have equal digests, if threads that share files also pick them in the same
    /// order
    "digest", Rare, Run, Anyone, Optional("N", "1000", |s, v| put(&mut s.digest, number(v, 0..=u64::MAX).map(Some)));
    /// Write the first N operations of each thread to FILE, one per line: process, its instance, thread, its instance,
    /// flowop, file, offset, size; a line `# run N` precedes the operations of each run after the first
    "trace", Rare, Output, Anyone,
        Text("FILE:N", |s, v| put(&mut s.trace, file_and_count(v).map(Some))), takes_hyphen: true;
    /// Number of threads that create files before a run, 1 to 1024 [default: one per processor]
    "populate-threads", Rare, Run, Anyone,
        Text("N", |s, v| { s.populate_threads = number(v, 1..=1024)? as usize; Ok(()) });
    /// Bind each thread to a processor, round robin
    "pin", Rare, Run, Anyone, Nothing(|s| s.pin = true);
    /// The ranks that share the tree of a file set, unless the script sets `share=` [default: host]
    "share", Rare, Run, Anyone, Name("RANKS", sharings, |s, v| pick(&mut s.share, Sharing::find(v)));
    /// What each rank runs: the whole workload, or a part of its process instances [default: copy]
    "ranks", Rare, Run, Anyone, Name("HOW", divisions, |s, v| pick(&mut s.division, Division::find(v)));
    /// Give up, with status 3, if creating the files makes no progress for TIME (seconds, or with a unit as in `10m`);
    /// 0: never [default: 10m]
    "prepare-timeout", Rare, Run, Anyone,
        Text("TIME", |s, v| { s.prepare_timeout = Some(time(v)?).filter(|time| !time.is_zero()); Ok(()) }), runs_with: RunsWith::Both;
    /// Use an existing tree in Filebench's layout that wmlrun did not create
    "adopt", Rare, Run, Caller, Nothing(|s| s.adopt = true);
    /// Allow the script's `fsflush` to drop the caches of the whole machine
    "allow-drop-caches", Rare, Run, Caller, Nothing(|s| s.allow_drop_caches = true);
    /// Record the values of environment variables that the script reads with `$(NAME)`; otherwise they are masked
    "record-env", Rare, Run, Caller, Nothing(|s| s.record_env = true);
    /// Accepted without effect: block devices are refused
    "allow-device", Hidden, Run, Caller, Paths("PATH", |_, _| ());
}
