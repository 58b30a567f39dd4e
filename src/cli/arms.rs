//! The arms of an experiment before anything is made: each arm's script is read and planned with the options of the arm,
//! as `wmlrun plan` does. The plan has the directories of the arm's file sets and its flowops.
//!
//! Not in here: whether the directories exist and have space, which the commands before a run may change.

use super::console;
use super::experiment_args::{ArmLine, WorkloadWords};
use crate::diag::{self, Code, Diagnostic, Severity};
use crate::experiment::{Arm, Experiment, ExperimentKind, Identity};
use crate::fileset::FilesetSpec;
use crate::import::Metric;
use crate::measure::{Front, WarmupLength};
use crate::plan::{self, FlowopInfo, Plan};
use crate::session::{Session, Status};
use crate::source::SourceMap;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The first error of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArmError {
    /// The text.
    pub(super) text: String,
    /// The help.
    pub(super) help: String,
    /// Whether its position is in the script, so that it is printed with the script's text.
    pub(super) in_script: bool,
    /// The exit status: 3 for a command that is not permitted, else 2.
    pub(super) status: u8,
}

impl ArmError {
    fn of_line(text: &str, help: &str) -> Self {
        let status = super::script_input::unread_status();
        Self { text: text.to_owned(), help: help.to_owned(), in_script: false, status }
    }
}

/// The receiver of the messages of a check. Warnings and notes are dropped: each run repeats them.
struct Probe {
    /// The text before each error, such as ``in `--b`: ``. If `None`, errors are not printed.
    print: Option<String>,
    /// The first error.
    first: Option<ArmError>,
}

impl Probe {
    fn found(&mut self, error: ArmError) {
        self.first.get_or_insert(error);
    }
}

impl Front for Probe {
    fn line(&mut self, _text: &str) {}

    fn note(&mut self, _text: &str) {}

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        let mut errors: Vec<Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
        let Some(first) = errors.first_mut() else { return };
        let help = first.help.first().cloned().unwrap_or_default();
        let status = if first.code == Code::Refused { 3 } else { 2 };
        self.found(ArmError { text: first.message.clone(), help, in_script: true, status });
        if let Some(place) = &self.print {
            first.message.insert_str(0, place);
            console::diagnostics(map, &errors);
        }
    }

    fn error(&mut self, _code: Option<&str>, text: &str, help: Option<&str>) {
        self.found(ArmError::of_line(text, help.unwrap_or_default()));
        if let Some(place) = &self.print {
            console::error(&format!("{place}{text}"), help);
        }
    }
}

/// Returns the first option of `given` that every arm replaces, so that it has no effect. `own` has the words that follow
/// it in each arm.
pub(super) fn without_effect<'a>(given: &'a WorkloadWords, own: &[Vec<String>]) -> Option<&'a str> {
    let repeatable = ArmLine::repeatable_options();
    let is_single = |of: &GivenSetting<'_>| !matches!(of, GivenSetting::Option(name) if repeatable.contains(*name));
    let mut left: Vec<(&str, GivenSetting<'_>)> =
        given.0.iter().filter_map(|word| Some((word.as_str(), setting(word).filter(is_single)?))).collect();
    for words in own {
        if left.is_empty() {
            break;
        }
        // Words that can't be parsed are reported with their arm.
        let words = ArmLine::workload_words(words).unwrap_or_default();
        let replaced: HashSet<GivenSetting<'_>> = words.0.iter().filter_map(|word| setting(word)).collect();
        left.retain(|(_, of)| replaced.contains(of));
    }
    left.first().map(|(word, _)| *word).filter(|_| !own.is_empty())
}

/// What a word of a command line sets.
#[derive(PartialEq, Eq, Hash)]
enum GivenSetting<'a> {
    Variable(&'a str),
    Option(&'a str),
}

/// Returns what a word `--NAME=VALUE` sets.
fn setting(word: &str) -> Option<GivenSetting<'_>> {
    match word.strip_prefix("--")?.split_once('=')? {
        ("set", assignment) => assignment.split_once('=').map(|(name, _)| GivenSetting::Variable(name)),
        ("dir", _) => Some(GivenSetting::Variable("dir")),
        (name, _) => Some(GivenSetting::Option(name)),
    }
}

/// Who may give an option of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GivenBy {
    /// It loosens what wmlrun promises: only the caller. A text from elsewhere, such as an experiment file, can't give it.
    Caller,
    /// It holds runs back: a text from elsewhere, if the caller does not give it.
    CallerFirst,
    /// Everyone.
    Anyone,
}

/// The options of a workload that not everyone may give.
pub(super) const RESTRICTED: [(&str, GivenBy); 9] = [
    ("--adopt", GivenBy::Caller),
    ("--allow-device", GivenBy::Caller),
    ("--allow-drop-caches", GivenBy::Caller),
    ("--allow-system", GivenBy::Caller),
    ("--allow-write", GivenBy::Caller),
    ("--below", GivenBy::CallerFirst),
    ("--record-env", GivenBy::Caller),
    ("--require-fs", GivenBy::CallerFirst),
    ("--require-mount", GivenBy::CallerFirst),
];

/// Returns who may give the option that a word of a command line is.
pub(super) fn given_by(word: &str) -> GivenBy {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    RESTRICTED.iter().find(|(option, _)| *option == name).map_or(GivenBy::Anyone, |(_, by)| *by)
}

/// Returns why a text from elsewhere can't give an option, or `None` if it can. `given` has the words of the caller.
pub(super) fn refused_option(word: &str, given: &[String]) -> Option<&'static str> {
    let is_given = |given: &String| given.split('=').next() == word.split('=').next();
    match given_by(word) {
        GivenBy::Caller if !given.iter().any(|given| given == word) => {
            Some("give it on the command line, after the name of the file")
        }
        GivenBy::CallerFirst if given.iter().any(is_given) => {
            Some("leave it out on the command line, or in the file: that of the command line holds")
        }
        _ => None,
    }
}

/// Where the file sets of an arm are. Empty for an engine that creates no files.
#[derive(Default)]
pub(super) struct ArmPlaces {
    /// The directories of its file sets. They need not exist.
    pub(super) dirs: Vec<PathBuf>,
    /// The names and the roots of its file sets, except for those in the fresh directory of a run.
    pub(super) trees: Vec<(String, PathBuf)>,
}

impl ArmPlaces {
    fn of(plan: &Plan) -> Self {
        let is_fresh = |dir: &PathBuf| dir.starts_with(plan::FRESH);
        // The fresh directory of a run is made in the current directory.
        let dir = |dir: PathBuf| if is_fresh(&dir) { PathBuf::from(".") } else { dir };
        let dirs: BTreeSet<PathBuf> = plan.filesets.iter().map(FilesetSpec::root).map(dir).collect();
        let trees = plan.filesets.iter().map(|set| (set.name.clone(), set.root())).filter(|(_, root)| !is_fresh(root));
        Self { dirs: dirs.into_iter().collect(), trees: trees.collect() }
    }
}

/// What the plan of an arm says about its runs.
pub(super) struct ArmPlan {
    places: ArmPlaces,
    /// The lengths of its runs with their warm-ups; `None` for a run without a limit.
    pub(super) lengths: Vec<Option<Duration>>,
    /// The expected bytes of its file sets before the run; 0 for an engine that creates no files.
    pub(super) bytes: u64,
    /// The names of its flowops: `NAME` and `PROCESS/THREAD/NAME`.
    flowops: BTreeSet<String>,
    /// The names of the flowops that have a response time.
    with_response: BTreeSet<String>,
    /// The digests of the texts that the script loads.
    loaded: Vec<String>,
}

impl ArmPlan {
    fn of(plan: &Plan, is_on_disk: bool) -> Self {
        let names = |flowop: &FlowopInfo| {
            let process = &plan.processes[flowop.process];
            let whole = format!("{}/{}/{}", process.name, process.threads[flowop.thread].name, flowop.name);
            [flowop.name.clone(), whole]
        };
        let places = if is_on_disk { ArmPlaces::of(plan) } else { ArmPlaces::default() };
        let bytes = plan.filesets.iter().map(FilesetSpec::expected_bytes).fold(0, u64::saturating_add);
        // A script may make several runs, and only one of them an open loop.
        let has_rate = |flowop: &FlowopInfo| plan.processes[flowop.process].threads[flowop.thread].has_rate;
        Self {
            places,
            lengths: Vec::new(),
            bytes: if is_on_disk { bytes } else { 0 },
            flowops: plan.flowops.iter().flat_map(names).collect(),
            with_response: plan.flowops.iter().filter(|f| f.has_response() && has_rate(f)).flat_map(names).collect(),
            loaded: Vec::new(),
        }
    }

    /// Returns the error that no run of the plan has this metric, with its help, or `None` when runs may have it.
    fn lacks(&self, metric: &Metric) -> Option<(String, String)> {
        if metric.is_of_column() {
            let text = format!("no `{metric}`: it is the number of a column, which a run does not have");
            return Some((text, "`wmlrun compare` compares columns; name another metric, such as `ops`".to_owned()));
        }
        let known = |name: &&str| self.flowops.contains(*name);
        if metric.is_response() && self.with_response.is_empty() && metric.flowop().is_none_or(|name| known(&name)) {
            let text = format!("no `{metric}`: no thread of the script is an open loop, which has a response time");
            return Some((text, "add `rate=` or `totalrate=` to the threads, or name `latency.mean`".to_owned()));
        }
        let name = metric.flowop()?;
        if known(&name) {
            let lacks = metric.is_response() && !self.with_response.contains(name);
            return lacks.then(|| {
                let text = format!("no `{metric}`: only the I/O operations of open loops have a response time");
                (text, format!("add `rate=` or `totalrate=` to the thread of `{name}`, or name another metric"))
            });
        }
        let simple = || self.flowops.iter().map(String::as_str).filter(|name| !name.contains('/'));
        let help = match diag::meant(name, simple()) {
            Some(near) => format!("did you mean `{}`?", metric.of_flowop(near)),
            None => format!("its flowops are `{}`", simple().collect::<Vec<_>>().join("`, `")),
        };
        Some((format!("no `{metric}`: the script has no flowop `{name}`"), help))
    }
}

/// Reads and plans a script with the options in `words`, and checks that its runs may have the metrics. Returns `None`
/// for the plan of a script that defines nothing. An error is the first one; with `print`, all errors are printed, each
/// with this text before it.
pub(super) fn inspect(
    words: &[String],
    metrics: &[Metric],
    print: Option<String>,
) -> Result<Option<ArmPlan>, ArmError> {
    let mut probe = Probe { print, first: None };
    let line = match ArmLine::read(words) {
        Ok(line) => line,
        Err((text, help)) => {
            let help = help.unwrap_or_else(|| "`wmlrun --help` lists the options of a run".to_owned());
            probe.error(None, &text, Some(&help));
            return Err(ArmError::of_line(&text, &help));
        }
    };
    let script = line.script().unwrap_or_default().to_owned();
    let mut found = None;
    if let Some(script) = super::find_for(&script, &mut |text, help| probe.error(None, text, Some(help))) {
        let settings = super::workload_settings(&line.workload);
        let is_on_disk = settings.engine.real();
        let warmup = match settings.warmup {
            WarmupLength::Fixed(length) => length,
            WarmupLength::UntilSteady => Duration::ZERO,
        };
        let mut session = Session::new(settings, Arc::default());
        if session.read(&script.name, &script.text, &mut probe) == Status::Done {
            // A plan that is refused has printed its errors.
            found = session.plan(&mut probe).map(|plan| ArmPlan::of(&plan, is_on_disk));
            session.permits(&script.name, &script.text, &mut probe);
            if let Some(plan) = &mut found {
                let lengths = session.run_lengths(&script.name, &script.text, &mut probe);
                plan.loaded = session.loaded_digests();
                plan.lengths = lengths.into_iter().map(|length| length.map(|length| length + warmup)).collect();
            }
        }
    }
    if let Some(plan) = &found {
        for (text, help) in metrics.iter().filter_map(|metric| plan.lacks(metric)) {
            probe.error(None, &text, Some(&help));
        }
    }
    probe.first.map_or(Ok(found), Err)
}

/// Checks the arms of an experiment. `common` is a command line with the options that all arms have, and `option` names
/// the option that distinguishes an arm. Returns the exit status of an error, after the errors of the first wrong arm
/// have been printed, with the name of its option if the common options do not have the same error.
pub(super) fn check(
    arms: &[Arm],
    common: &[String],
    metrics: &[Metric],
    option: &dyn Fn(usize) -> &'static str,
) -> Result<(), u8> {
    let problem = |words: &[String]| inspect(words, metrics, None).err();
    let Some((n, arm, found)) = arms.iter().enumerate().find_map(|(n, arm)| Some((n, arm, problem(&arm.words)?)))
    else {
        return Ok(());
    };
    let is_common = arm.words == common || problem(common).as_ref() == Some(&found);
    let place = if is_common { String::new() } else { format!("in `{}`: ", option(n)) };
    let _ = inspect(&arm.words, metrics, Some(place));
    Err(found.status)
}

/// Checks that this machine can make the runs of all arms, and unless there are commands, which may still mount something,
/// that their directories exist, or can be created, on file systems that are allowed. A load that the machine does not
/// allow is a point of a curve. Returns the exit status of an error, after it has been printed.
pub(super) fn check_places(experiment: &Experiment) -> Result<(), u8> {
    let (arms, is_curve) = (&experiment.arms, experiment.kind() == ExperimentKind::Sweep);
    for arm in arms {
        let Some(line) = line(arm).filter(|line| !line.workload.script.allow_system) else { continue };
        let Some(script) = super::find_for(line.script().unwrap_or_default(), &mut |_, _| ()) else { continue };
        let mut session = Session::new(super::workload_settings(&line.workload), Arc::default());
        // Other errors have been reported before.
        let mut silent = Probe { print: None, first: None };
        if session.read(&script.name, &script.text, &mut silent) != Status::Done {
            continue;
        }
        let Some(plan) = session.plan(&mut silent) else { continue };
        let place = if arms.len() > 1 { format!("in `{}`: ", arm.name) } else { String::new() };
        let mut probe = Probe { print: Some(place), first: None };
        if !is_curve {
            session.check_machine(&plan, &mut probe).map_err(Status::code)?;
        }
        if !experiment.has_commands() {
            session.check_places(&plan, &mut probe).map_err(Status::code)?;
        }
    }
    Ok(())
}

/// Returns the options of an arm, or `None` when its words can't be parsed.
pub(super) fn line(arm: &Arm) -> Option<ArmLine> {
    ArmLine::read(&arm.words).ok()
}

/// Returns where the file sets of an arm are. If its script has no plan, it is the directory that its options give.
pub(super) fn places(arm: &Arm) -> ArmPlaces {
    if let Ok(Some(plan)) = inspect(&arm.words, &[], None) {
        return plan.places;
    }
    let Some(workload) = line(arm).map(|line| line.workload) else { return ArmPlaces::default() };
    let set = workload.script.set.iter().rev().find(|(name, _)| name == "dir").map(|(_, value)| value.clone());
    let dir = workload.script.below.or(workload.script.dir).or(set).unwrap_or_else(|| ".".to_owned());
    ArmPlaces { dirs: vec![PathBuf::from(dir)], trees: Vec::new() }
}

/// Returns the current conditions of an experiment with these arms: kernel, program, scripts, and the mounts unless
/// commands between runs may change them. An error is the reason why a script can't be read, with its help.
pub(super) fn identity(arms: &[Arm], has_hooks: bool) -> Result<Identity, (String, String)> {
    let mut texts = Vec::new();
    for arm in arms {
        let script = line(arm).and_then(|line| line.script().map(str::to_owned)).unwrap_or_default();
        let mut why = (String::new(), String::new());
        let found = super::find_for(&script, &mut |text, help| why = (text.to_owned(), help.to_owned()));
        let mut text = found.ok_or(why)?.text;
        // What a script loads is a part of it.
        if let Ok(Some(plan)) = inspect(&arm.words, &[], None) {
            text.extend(plan.loaded);
        }
        texts.push(text);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let dirs: Vec<PathBuf> =
        if has_hooks { Vec::new() } else { arms.iter().flat_map(|arm| places(arm).dirs).collect() };
    Ok(Identity::now(&texts, &dirs))
}

/// Changes to the directory in which an experiment was started, since relative paths and commands depend on it. Returns
/// the path of its folder, as seen from there.
pub(super) fn enter(directory: &str, folder: &Path) -> std::io::Result<PathBuf> {
    if std::env::current_dir()?.to_string_lossy() == directory {
        return Ok(folder.to_owned());
    }
    let folder = std::path::absolute(folder)?;
    std::env::set_current_dir(directory)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::refused_option;

    #[test]
    fn a_file_gives_itself_nothing() {
        let given = ["--allow-system", "--allow-write=/a", "--require-fs=xfs", "--below=/a"].map(str::to_owned);
        for (word, is_refused) in [
            ("--record-env", true),
            ("--adopt", true),
            ("--allow-system", false),
            ("--allow-write=/a", false),
            ("--allow-write=/b", true),
            ("--allow-write", true),
            ("--require-fs=ext4", true),
            ("--require-mount", false),
            ("--below=/", true),
            ("--runtime=1", false),
            ("x.wml", false),
        ] {
            assert_eq!(refused_option(word, &given).is_some(), is_refused, "{word}");
        }
    }
}
