//! The arms of an experiment before anything is made: each arm's script is read and planned with the options of the arm,
//! as `wmlrun plan` does, once. The plan has the directories of the arm's file sets and its flowops.
//!
//! Not in here: whether the directories have space, which the commands before a run may change.

use super::experiment_args::ArmLine;
use super::recording::is_trace;
use super::run_options::WorkloadWords;
use super::script_input::find_script;
use crate::diag::{self, Diagnostics, Failure, Reason, Severity};
use crate::experiment::{Arm, Experiment, ExperimentKind, Identity};
use crate::fileset::FilesetSpec;
use crate::import::{Metric, MetricLimit};
use crate::measure::{GivenBy, ReplayPlace, RunOption, RunsWith, Settings, WarmupLength};
use crate::model::{ModelValue, expr};
use crate::os::{handle, limits};
use crate::plan::{self, FlowopInfo, Pace, Plan};
use crate::replay::ReplaySpeed;
use crate::report::metrics::TRANSACTIONS;
use crate::session::library::FoundScript;
use crate::session::{Session, SilentFront};
use crate::trace::CALL_CLASSES;
use crate::util::hash::sha256_of;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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

/// Returns who may give the option that a word of a command line is.
pub(super) fn given_by(word: &str) -> GivenBy {
    RunOption::of_word(word).map_or(GivenBy::Anyone, |option| option.given_by)
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

    /// The directory that options give.
    fn of_options(line: &ArmLine) -> Self {
        let Settings { below, sets, .. } = &line.settings.0;
        let set = sets.iter().rev().find(|(name, _)| name == "dir").map(|(_, value)| PathBuf::from(value));
        let dir = below.clone().or(set).unwrap_or_else(|| PathBuf::from("."));
        Self { dirs: vec![dir], trees: Vec::new() }
    }
}

/// The trace that the runs of an arm replay; `None` if they run a script.
pub(super) fn trace_of(line: &ArmLine) -> Option<PathBuf> {
    line.script().map(PathBuf::from).filter(|path| is_trace(path))
}

/// An arm whose script has been read and planned, once for all that is asked before the first run.
pub(super) struct PlannedArm {
    /// Its options.
    pub(super) line: ArmLine,
    /// The script, and the digests of the texts that it loads.
    text: String,
    /// Where its file sets are. If the script has no plan, it is the directory that the options give.
    pub(super) places: ArmPlaces,
    /// What its plan says. An error if it has none.
    plan: Result<ArmPlan, Failure>,
}

impl PlannedArm {
    /// Reads and plans a script with the options in `words`. An error if there is nothing to plan. `has_places`: the
    /// directories are those of its runs, and no command may change them before.
    pub(super) fn read(words: &[String], has_places: bool) -> Result<Self, Failure> {
        let line = ArmLine::read(words).map_err(|(text, help)| {
            Failure::wrong(text, help.unwrap_or_else(|| "`wmlrun --help` lists the options of a run".to_owned()))
        })?;
        let name = line.script().unwrap_or_default();
        let trace = trace_of(&line);
        let allowed = if trace.is_some() { RunsWith::Traces } else { RunsWith::Scripts };
        let given = ArmLine::workload_words(words).unwrap_or_default();
        let other = |word: &&String| {
            RunOption::of_word(word).is_some_and(|of| ![RunsWith::Both, allowed].contains(&of.runs_with))
        };
        if let Some(option) = given.0.iter().find(other).and_then(|word| word.split('=').next()) {
            let (what, command) = if trace.is_some() { ("trace", "replay") } else { ("script", "run") };
            let text = format!("`{option}` has no meaning for the {what} {name}");
            return Err(Failure::wrong(text, format!("`wmlrun {command} --help` lists the options that have")));
        }
        if let Some(trace) = trace {
            return Self::of_trace(line, &trace, has_places);
        }
        let script = find_script(name)?;
        let mut session = Session::new(line.settings.0.clone(), Arc::default());
        let planned = ArmPlan::of(&mut session, &script, has_places);
        let (plan, places) = match planned {
            Ok((plan, places)) => (Ok(plan), places),
            Err(failure) => (Err(failure), ArmPlaces::of_options(&line)),
        };
        let loaded = plan.as_ref().map_or_else(|_| Vec::new(), |_| session.loaded_digests());
        Ok(Self { line, text: script.text + &loaded.concat(), places, plan })
    }

    /// An arm whose runs replay a trace.
    fn of_trace(line: ArmLine, trace: &Path, has_places: bool) -> Result<Self, Failure> {
        let settings = &line.settings.0;
        let place = ReplayPlace::of(settings)?;
        let unreadable = |e: std::io::Error| Failure::wrong(format!("{}: {e}", trace.display()), "");
        let text = sha256_of(handle::open_regular_file(trace).map_err(unreadable)?).map_err(unreadable)?;
        let names: BTreeSet<String> = CALL_CLASSES.iter().map(|(_, name, _)| (*name).to_owned()).collect();
        let is_timed = settings.replay.speed != ReplaySpeed::Fast && !settings.replay.leaves_out_thinking;
        let plan = ArmPlan {
            lengths: vec![None],
            bytes: 0,
            whole_bytes: 0,
            with_response: if is_timed { names.clone() } else { BTreeSet::new() },
            flowops: names,
            has_transactions: false,
            is_open_loop: false,
            requested: 0.0,
            machine: Ok(()),
            directories: if has_places { place.check(settings) } else { Ok(()) },
        };
        let trees = vec![("replay".to_owned(), place.root())];
        let places = ArmPlaces { dirs: vec![place.dir().to_owned()], trees };
        Ok(Self { line, text, places, plan: Ok(plan) })
    }

    /// The same, for an arm whose plan has no errors, and whose runs may have these metrics.
    pub(super) fn checked(words: &[String], metrics: &[Metric], has_places: bool) -> Result<Self, Failure> {
        let arm = Self::read(words, has_places)?;
        let plan = arm.plan.as_ref().map_err(Failure::clone)?;
        let lacking = metrics.iter().filter_map(|metric| plan.lacks(metric));
        Failure::all(lacking)?;
        Ok(arm)
    }

    /// True if its runs can't have this metric.
    pub(super) fn lacks(&self, metric: &Metric) -> bool {
        self.lacking(metric).is_some()
    }

    /// The error that its runs can't have this metric.
    pub(super) fn lacking(&self, metric: &Metric) -> Option<Failure> {
        self.plan.as_ref().ok()?.lacks(metric)
    }

    /// True if a rate is asked of all its I/O operations.
    pub(super) fn is_open_loop(&self) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.is_open_loop)
    }

    /// True if its script can't be run with these options.
    pub(super) fn has_no_plan(&self) -> bool {
        self.plan.is_err()
    }

    /// The requests per second that its open loops ask for; 0 without one.
    pub(super) fn requested(&self) -> f64 {
        self.plan.as_ref().map_or(0.0, |plan| plan.requested)
    }

    /// The lengths of its runs with their warm-ups; `None` for a run without a limit.
    pub(super) fn lengths(&self) -> &[Option<Duration>] {
        self.plan.as_ref().map_or(&[], |plan| &plan.lengths)
    }

    /// The expected bytes of its file sets once all of their files exist.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.whole_bytes)
    }

    /// The expected bytes of its file sets before the run; 0 for an engine that creates no files.
    pub(super) fn bytes(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.bytes)
    }
}

/// The values of those of these variables that a script has, with the options in `words`, unless it computes them from
/// others.
pub(super) fn values(words: &[String], names: &[&str]) -> Result<Vec<(String, ModelValue)>, Failure> {
    let line = ArmLine::read(words).map_err(|(text, help)| Failure::wrong(text, help.unwrap_or_default()))?;
    let script = find_script(line.script().unwrap_or_default())?;
    let mut session = Session::new(line.settings.0.clone(), Arc::default());
    session.read(&script.name, &script.text, &mut SilentFront::default())?;
    let is_given = |name: &&&str| {
        let mut reads = false;
        let found = session.scope.binding(name);
        found.iter().for_each(|found| expr::variables(&found.value, &mut |_, _| reads = true));
        found.is_some() && !reads
    };
    let value = |name: &&str| Some(((*name).to_owned(), session.scope.value(name)?.ok()?));
    Ok(names.iter().filter(is_given).filter_map(value).collect())
}

/// An error if the runs of a script can't have the metrics of these limits. Other errors are those of the run.
pub(super) fn check_limits(script: &FoundScript, settings: &Settings, limits: &[MetricLimit]) -> Result<(), Failure> {
    if limits.is_empty() {
        return Ok(());
    }
    let mut session = Session::new(settings.clone(), Arc::default());
    match ArmPlan::of(&mut session, script, false) {
        Ok((plan, _)) => Failure::all(limits.iter().filter_map(|limit| plan.lacks(&limit.metric))),
        Err(_) => Ok(()),
    }
}

/// What the plan of an arm says about its runs.
struct ArmPlan {
    lengths: Vec<Option<Duration>>,
    bytes: u64,
    whole_bytes: u64,
    /// The names of its flowops: `NAME` and `PROCESS/THREAD/NAME`.
    flowops: BTreeSet<String>,
    /// The names of the flowops that have a response time.
    with_response: BTreeSet<String>,
    has_transactions: bool,
    /// True if all of its I/O operations have a response time.
    is_open_loop: bool,
    requested: f64,
    /// Whether this machine can make its runs.
    machine: Result<(), Failure>,
    /// Whether its directories exist, or can be created, on file systems that are allowed.
    directories: Result<(), Failure>,
}

impl ArmPlan {
    fn of(session: &mut Session, script: &FoundScript, has_places: bool) -> Result<(Self, ArmPlaces), Failure> {
        // Each run repeats the warnings and notes.
        let front = &mut SilentFront::default();
        let model = session.read(&script.name, &script.text, front)?;
        let plan = match (session.plan(front), session.check_permission(&model)) {
            (Ok(plan), Ok(())) => plan,
            (Ok(_), Err(failure)) | (Err(failure), Ok(())) => return Err(failure),
            (Err(first), Err(second)) => return Err(Failure { status: first.status, ..first.and(second) }),
        };
        let names = |flowop: &FlowopInfo| {
            let process = &plan.processes[flowop.process];
            let whole = format!("{}/{}/{}", process.name, process.threads[flowop.thread].name, flowop.name);
            [flowop.name.clone(), whole]
        };
        let settings = &session.runner.settings;
        let is_on_disk = settings.engine.real();
        let warmup = match settings.warmup {
            WarmupLength::Fixed(length) => length,
            WarmupLength::UntilSteady => Duration::ZERO,
        };
        let lengths = session.run_lengths(&model).into_iter().map(|length| length.map(|length| length + warmup));
        let bytes = plan.filesets.iter().map(FilesetSpec::expected_bytes).fold(0, u64::saturating_add);
        // A script may make several runs, and only one of them an open loop.
        let has_rate = |flowop: &FlowopInfo| plan.processes[flowop.process].threads[flowop.thread].has_rate;
        let is_paced = |f: &FlowopInfo| plan.processes[f.process].threads[f.thread].pace.is_some();
        let mut io = plan.flowops.iter().filter(|flowop| flowop.has_response()).peekable();
        let found = Self {
            is_open_loop: io.peek().is_some() && io.all(is_paced),
            lengths: lengths.collect(),
            bytes: if is_on_disk { bytes } else { 0 },
            whole_bytes: plan.filesets.iter().map(FilesetSpec::whole_bytes).fold(0, u64::saturating_add),
            flowops: plan.flowops.iter().flat_map(names).collect(),
            with_response: plan.flowops.iter().filter(|f| f.has_response() && has_rate(f)).flat_map(names).collect(),
            has_transactions: plan.flowops.iter().any(|flowop| flowop.transaction),
            requested: plan.threads().filter_map(|(_, thread)| thread.pace).map(Pace::requested).sum(),
            machine: limits::keep_descriptors(|| session.check_machine(&plan)),
            directories: if has_places { session.check_places(&plan) } else { Ok(()) },
        };
        Ok((found, if is_on_disk { ArmPlaces::of(&plan) } else { ArmPlaces::default() }))
    }

    /// The error that no run of the plan has this metric. `None` if runs may have it.
    fn lacks(&self, metric: &Metric) -> Option<Failure> {
        if metric.is_of_column() {
            let text = format!("no `{metric}`: it is the number of a column, which a run does not have");
            let help = "`wmlrun compare` compares columns; name another metric, such as `ops`";
            return Some(Failure::wrong(text, help));
        }
        let known = |name: &&str| self.flowops.contains(*name);
        if metric.is_of_open_loops() && self.with_response.is_empty() && metric.flowop().is_none_or(|name| known(&name))
        {
            let text = format!("no `{metric}`: no thread of the script is an open loop, which has a response time");
            return Some(Failure::wrong(text, "add `rate=` or `totalrate=` to the threads, or name `latency.mean`"));
        }
        if metric.is_of_transactions() && !self.has_transactions && !known(&TRANSACTIONS) {
            let text = format!("no `{metric}`: the script has no transactions");
            return Some(Failure::wrong(
                text,
                "add `transaction=` to a process, or name another metric, such as `ops`",
            ));
        }
        let name = metric.flowop()?;
        if known(&name) {
            let lacks = metric.is_response() && !self.with_response.contains(name);
            return lacks.then(|| {
                let text = format!("no `{metric}`: only the I/O operations of open loops have a response time");
                let help = format!("add `rate=` or `totalrate=` to the thread of `{name}`, or name another metric");
                Failure::wrong(text, help)
            });
        }
        let simple = || self.flowops.iter().map(String::as_str).filter(|name| !name.contains('/'));
        let help = match diag::meant(name, simple()) {
            Some(near) => format!("did you mean `{}`?", metric.of_flowop(near)),
            None => format!("its flowops are `{}`", simple().collect::<Vec<_>>().join("`, `")),
        };
        Some(Failure::wrong(format!("no `{metric}`: the script has no flowop `{name}`"), help))
    }
}

/// The message and the help of the first error of a failure, and whether it is in a script.
pub(super) fn first_error(failure: &Failure) -> (&str, &str, bool) {
    match failure.reasons.first() {
        Some(Reason::Stated { message, help, .. }) => (message, help.first().map_or("", String::as_str), false),
        Some(Reason::Script(Diagnostics { found, .. })) => {
            let error = found.iter().find(|found| found.severity == Severity::Error);
            error.map_or(("", "", true), |error| (&error.message, error.help.first().map_or("", String::as_str), true))
        }
        None => ("", "", false),
    }
}

/// Whether two failures have the same first error.
pub(super) fn is_same(one: &Failure, other: &Failure) -> bool {
    one.status == other.status && first_error(one) == first_error(other)
}

/// Puts a text before the errors of a failure. Its warnings are left out: each run repeats them.
pub(super) fn within(place: &str, mut failure: Failure) -> Failure {
    for reason in &mut failure.reasons {
        match reason {
            Reason::Stated { message, .. } => message.insert_str(0, place),
            Reason::Script(Diagnostics { found, .. }) => {
                found.retain(|found| found.severity == Severity::Error);
                found.first_mut().into_iter().for_each(|first| first.message.insert_str(0, place));
            }
        }
    }
    failure
}

/// The same failure, whose messages quote nothing of scripts.
pub(super) fn hiding_scripts(mut failure: Failure) -> Failure {
    for reason in &mut failure.reasons {
        if let Reason::Script(Diagnostics { map, .. }) = reason {
            map.hide_all();
        }
    }
    failure
}

/// Reads and plans the arms of an experiment. `common` is a command line with the options that all arms have, and
/// `option` names the option that distinguishes an arm. The failure is that of the first wrong arm, with the name of its
/// option unless the common options have the same error.
pub(super) fn planned(
    arms: &[Arm],
    common: &[String],
    metrics: &[Metric],
    has_places: bool,
    option: &dyn Fn(usize) -> &'static str,
) -> Result<Vec<PlannedArm>, Failure> {
    let plan = |words: &[String]| PlannedArm::checked(words, metrics, has_places);
    let of_arm = |(n, arm): (usize, &Arm)| {
        plan(&arm.words).map_err(|failure| {
            let is_common = arm.words == common || plan(common).is_err_and(|of_common| is_same(&of_common, &failure));
            within(&if is_common { String::new() } else { format!("in `{}`: ", option(n)) }, failure)
        })
    };
    arms.iter().enumerate().map(of_arm).collect()
}

/// Checks that this machine can make the runs of all arms, and that their directories exist, or can be created, on file
/// systems that are allowed. A load that the machine does not allow is a point of a curve.
pub(super) fn check_places(experiment: &Experiment, planned: &[PlannedArm]) -> Result<(), Failure> {
    let is_curve = experiment.kind() == ExperimentKind::Sweep;
    for (arm, PlannedArm { line, plan, .. }) in experiment.arms.iter().zip(planned) {
        let Some(plan) = plan.as_ref().ok().filter(|_| !line.settings.0.allow_system) else { continue };
        let machine = if is_curve { &Ok(()) } else { &plan.machine };
        if let Err(failure) = machine.as_ref().and(plan.directories.as_ref()) {
            let place = if planned.len() > 1 { format!("in `{}`: ", arm.name) } else { String::new() };
            return Err(within(&place, failure.clone()));
        }
    }
    Ok(())
}

/// Returns the current conditions of an experiment with these arms: kernel, program, scripts, and the mounts unless
/// commands between runs may change them.
pub(super) fn identity(arms: &[PlannedArm], has_commands: bool) -> Identity {
    let texts: Vec<&str> = arms.iter().map(|arm| arm.text.as_str()).collect();
    let dirs = arms.iter().filter(|_| !has_commands).flat_map(|arm| arm.places.dirs.iter().cloned());
    Identity::now(&texts, &dirs.collect::<Vec<_>>())
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
