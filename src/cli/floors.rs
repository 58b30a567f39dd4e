//! `wmlrun repeat --floor`: measures noise floors, lists and removes those that are stored.

use super::console;
use super::experiment_args::{ExperimentArgs, RepeatArgs};
use super::experiment_host::{Performed, perform};
use super::experiments::{print_text, verdict_status, wanted};
use super::shell_text::joined;
use crate::analysis::ComparisonVerdict;
use crate::comparison::{Comparer, Comparison, DEFAULT_TOLERANCE, figure, percent, with_level};
use crate::diag::{Failure, Status};
use crate::experiment::{self, Blocks, ExperimentKind, FloorSession, Floors, Folder, RuleWanted, compare_arms};
use crate::import::Metric;
use crate::os::held_dir::HeldDir;
use crate::util::count::count;

/// The default script of a noise floor.
const DEFAULT_SCRIPT: &str = "varmail";

/// The default number of blocks of a noise floor.
const DEFAULT_BLOCKS: u64 = 6;

/// Runs `wmlrun repeat --floor`. Returns the exit status.
pub(super) fn floor(args: &RepeatArgs) -> Result<u8, Failure> {
    if args.metrics.len() > 1 {
        return Err(Failure::wrong("a noise floor is that of one metric", "give `--metric` one name"));
    }
    // The directory distinguishes the arms of a noise floor, as an argument of each.
    let mut common = args.experiment.clone();
    let words = &mut common.words.0;
    let at = words.iter().rposition(|word| word.starts_with("--dir="));
    let directory = at.map(|at| words.remove(at)).and_then(|word| word.strip_prefix("--dir=").map(str::to_owned));
    if directory.is_none() && common.resume.is_none() && !args.list && args.forget.is_none() {
        let help = "name a directory on it: `--dir DIR`";
        return Err(Failure::wrong("the file system of the noise floor is not given", help));
    }
    let path = Floors::path().ok_or_else(|| {
        Failure::refused("no directory to store the noise floor in", "set HOME or XDG_STATE_HOME to an absolute path")
    })?;
    let refuse_file = |e: std::io::Error| {
        Failure::refused(format!("{}: {e}", path.display()), "repair or remove the file; a new one is created")
    };
    if args.list {
        print_text(&Floors::read(&path).map_err(refuse_file)?.table(&path));
        return Ok(0);
    }
    if let Some((number, session)) = args.forget {
        let removed = Floors::forget(number, session, &path).map_err(refuse_file)?;
        let shown = session.map_or_else(|| number.to_string(), |session| format!("{number}.{session}"));
        let help = "`wmlrun repeat --floor --list` lists the noise floors with their numbers";
        let removed = removed.ok_or_else(|| Failure::wrong(format!("there is no noise floor {shown}"), help))?;
        let sessions = if session.is_some() { "one session".to_owned() } else { count(removed.sessions, "session") };
        console::print_lines(&format!("removed: `{}` of {}, {sessions}", removed.metric, removed.name));
        return Ok(0);
    }
    // Before the runs, which take minutes.
    path.parent().map_or(Ok(()), |dir| HeldDir::create(dir).map(drop)).map_err(|e| {
        let text = format!("{} can't be created: {e}", path.parent().unwrap_or(&path).display());
        Failure::refused(text, "set XDG_STATE_HOME to a directory that lasts")
    })?;
    // Read the file before the runs, so that a damaged file is reported now.
    Floors::read(&path).map_err(refuse_file)?;
    let blocks = Blocks::Exactly(args.blocks.unwrap_or(DEFAULT_BLOCKS));
    let rule = RuleWanted::Ab { tolerance: DEFAULT_TOLERANCE, blocks };
    let directory = directory.map(|dir| format!("--dir {}", joined(&[dir]))).unwrap_or_default();
    let (common, script) = (&common, args.script.as_deref().unwrap_or(DEFAULT_SCRIPT));
    // Also of open loops: response times of a few runs vary more than a floor can say.
    let ops = [Metric::ops()];
    let metric = if args.metrics.is_empty() { &ops[..] } else { &args.metrics };
    let wanted = || wanted(common, script, &[&directory, &directory], metric, rule, args.hooks.0.clone());
    // Another comparison is not continued. Other errors of the folder are those of `perform`.
    if let Some(path) = &common.resume
        && let Ok(experiment) = Folder::description(path)
        && experiment.kind() == ExperimentKind::Ab
        && !experiment.has_equal_arms()
    {
        let text = format!("the arms of the experiment in {} are not equal", path.display());
        return Err(Failure::wrong(text, "`wmlrun ab --resume` continues a comparison"));
    }
    let performed = perform(common, ExperimentKind::Ab, "repeat --floor", wanted)?;
    let recorded = &performed.recorded;
    let experiment = &recorded.experiment;
    let [metric, ..] = &experiment.metrics()[..] else { return Err(Failure::unexplained(Status::Script)) };
    // The result is the noise floor, not the verdict.
    let names = experiment.arm_names();
    let sides = names.each_ref().map(String::as_str);
    let comparer = Comparer { advises: false, ..Comparer::of(&experiment.name, sides, metric) };
    let observations = recorded.observations();
    let [a, b] = &observations[..] else { return Err(Failure::unexplained(Status::Script)) };
    let mut comparison = compare_arms(&comparer, [a, b]).map_err(|e| Failure::wrong(e, "name another metric"))?;
    comparison.notes.extend(recorded.notes.iter().cloned());
    if comparison.verdict == ComparisonVerdict::Invalid {
        performed.print(&common.format.write(&comparison));
        return Ok(performed.status(verdict_status(&comparison, None)));
    }
    let place = experiment::place(observations.iter().flatten());
    let Some(place) = place.filter(|_| comparison.ratio.value.is_finite()) else {
        return Err(Failure::failed(
            "the conditions of the runs are unknown or differ between runs",
            "see the results in the folder",
        ));
    };
    let session = FloorSession::of(experiment, &comparison, place.clone());
    let mean = session.mean;
    if session.sample().is_too_wide() {
        print_session(&performed, common, &comparison, mean);
        let found = with_level(session.ratio, comparison.level);
        let text = format!("A/A {found}, is too wide for a noise floor: it is not stored");
        let status = Status::of_code(ComparisonVerdict::Unclear.code());
        let is_of_replays = comparison.validity.is_of_replays;
        let longer = if is_of_replays { "" } else { ", or longer runs (`--runtime`)" };
        return Err(Failure::new(status, text, format!("make more blocks (`--blocks`){longer}")));
    }
    let floors = Floors::add(session, &path).map_err(refuse_file)?;
    let floor = floors.of(&comparison.metric, &place, None);
    print_session(&performed, common, &Comparison { floor, ..comparison }, mean);
    if !common.quiet && observations.iter().flatten().any(|run| run.disturbed) {
        let note =
            "the session is stored all the same: `wmlrun repeat --floor --list` numbers it, `--forget N.M` removes it";
        console::notice(&format!("note: {note}"));
    }
    if let Some(floor) = floor {
        let (share, sessions) = (percent(floor.share), count(floor.sessions, "session"));
        let days = if floor.spans_days { "" } else { " of one day" };
        let text = format!("noise floor ± {share} in {sessions}{days}, stored in {}", path.display());
        if common.format.name == "text" && !performed.outputs.takes_stdout() {
            console::print_lines(&text);
        } else if !common.quiet {
            console::notice(&text);
        }
    }
    Ok(performed.status(0))
}

/// Prints the result of a session: as text its two figures, with the notes on standard error.
fn print_session(performed: &Performed, args: &ExperimentArgs, comparison: &Comparison, mean: f64) {
    if args.format.name != "text" {
        return performed.print(&args.format.write(comparison));
    }
    let runs = count(comparison.a.sample.n + comparison.b.sample.n, "run");
    let of_runs = format!("{runs} of {}, mean {}", comparison.name, figure(&comparison.metric, mean));
    performed.print(&format!("{of_runs}\nA/A {}\n", with_level(comparison.ratio, comparison.level)));
    if !args.quiet {
        comparison.notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
    }
}
