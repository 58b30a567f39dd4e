//! Reads the runs of a results folder, or all results in a directory.
//!
//! The folder is read as it is: without a lock, and without a check of its conditions. Not in here: its creation and its
//! use by a running experiment (`experiment`).

use super::{
    CommandTimes, HookTime, ImportError, ImportedSide, MAX_OBSERVATIONS, Metric, Observation, RecordTimes,
    RecordedFigures, SideBlocks, TOO_MANY, damaged, form, input, recorded_observations,
};
use crate::os::reading;
use crate::util::batch_files::BATCH_RESULT;
use crate::util::count::{count, is_or_are};
use crate::util::printable;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// The file with the description of the experiment.
pub(crate) const EXPERIMENT: &str = "experiment.toml";

/// The file with the events of the experiment, one on each line.
pub(crate) const JOURNAL: &str = "journal.jsonl";

/// The directory of the results.
pub(crate) const RUNS: &str = "runs";

/// The reason why a results folder, or one of its arms, has no side of a comparison.
pub(super) const NONE_FINISHED: &str = "none of its runs has finished";

/// The name and version of the description's schema.
pub(crate) const EXPERIMENT_SCHEMA: &str = "wmlrun.experiment/1";

/// Returns the name of a run's result. Runs are numbered from 1.
pub(crate) fn result_name(run: usize) -> String {
    format!("{run:04}.json")
}

/// The parts of an experiment's description that concern its arms.
#[derive(Deserialize)]
struct ArmsDescription {
    schema: String,
    rule: FactorDescription,
    arms: Vec<ArmDescription>,
    #[serde(default)]
    metrics: Vec<String>,
    #[serde(default)]
    hooks: BTreeMap<String, String>,
    #[serde(default)]
    scopes: Vec<serde::de::IgnoredAny>,
}

/// The kind of an experiment, the factor of a load curve with its levels, and whether the arms follow each other.
#[derive(Deserialize)]
struct FactorDescription {
    kind: String,
    #[serde(default)]
    factor: String,
    #[serde(default)]
    levels: Vec<String>,
    /// Whether all runs of an arm come before those of the next, or the name of the order.
    in_order: Option<toml::Value>,
    /// What a search wants, whose results decide on the next load.
    search: Option<toml::Value>,
}

#[derive(Deserialize)]
struct ArmDescription {
    #[serde(default)]
    name: String,
    words: Vec<String>,
    #[serde(default)]
    metric: Option<String>,
}

/// The boots of the machine in which an experiment was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BootCount {
    /// The number of the last boot, from 0.
    pub number: usize,
    /// Its ID; empty when it is unknown.
    id: String,
}

impl BootCount {
    /// Counts the boot with this ID unless it is the last one. An unknown boot is taken for the last one.
    pub(crate) fn enter(&mut self, id: &str) {
        if id.is_empty() || id == self.id {
            return;
        }
        self.number += usize::from(!self.id.is_empty());
        id.clone_into(&mut self.id);
    }
}

/// The attempts of runs that are not used, because other programs disturbed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UnusedAttempts(Vec<(usize, f64)>);

impl UnusedAttempts {
    /// Adds an attempt of a run, with its duration in seconds.
    pub(crate) fn add(&mut self, run: usize, seconds: f64) {
        self.0.push((run, seconds));
    }

    /// Forgets those of a run and of all later ones.
    pub(crate) fn drop_from(&mut self, run: usize) {
        self.0.retain(|(of, _)| *of < run);
    }

    /// Returns the number of those of a run.
    pub(crate) fn of_run(&self, run: usize) -> u64 {
        self.0.iter().filter(|(of, _)| *of == run).count() as u64
    }

    /// Returns the sum of their durations in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.iter().map(|(_, seconds)| seconds).sum()
    }

    /// Returns the note that names their runs. `None` if there are none.
    fn note(&self) -> Option<String> {
        let runs: BTreeSet<usize> = self.0.iter().map(|(run, _)| *run).collect();
        if runs.is_empty() {
            return None;
        }
        let s = if runs.len() == 1 { "" } else { "s" };
        let are = is_or_are(self.0.len());
        let numbers: Vec<String> = runs.iter().map(usize::to_string).collect();
        let attempts = count(self.0.len() as u64, "disturbed attempt");
        Some(format!("{attempts} of run{s} {} {are} not used (`--retry-disturbed`)", super::shortened(&numbers)))
    }
}

/// Returns notes on how the runs of an experiment were made: the reboots between them, each change of the conditions that
/// was accepted with `--anyway`, and the attempts that are not used. `boots` has the number of each run and that of its
/// boot, `changes` the first run under changed conditions and what changed, `unused` the attempts that are not used.
pub(crate) fn run_notes(
    boots: impl Iterator<Item = (usize, usize)>,
    changes: &[(usize, Vec<String>)],
    unused: &UnusedAttempts,
) -> Vec<String> {
    let boots: Vec<(usize, usize)> = boots.collect();
    let reboots = boots.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let reboots: Vec<String> = reboots.map(|pair| format!("between runs {} and {}", pair[0].0, pair[1].0)).collect();
    let rebooted = (!reboots.is_empty()).then(|| format!("the machine was rebooted {}", reboots.join(" and ")));
    let changed = |(run, what): &(usize, Vec<String>)| {
        format!("changed before run {run}, accepted by `--anyway`: {}", what.join(", "))
    };
    // A change after the last run changed none.
    let of_runs = changes.iter().filter(|(first, _)| boots.iter().any(|(run, _)| run >= first));
    rebooted.into_iter().chain(of_runs.map(changed)).chain(unused.note()).collect()
}

/// An event of the journal, as far as it concerns the state or the figures of a run. Other events are ignored.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RunEvent {
    /// The experiment was started in a boot.
    Begun {
        #[serde(default)]
        boot: String,
    },
    /// The experiment was resumed in a boot. `changed` has the changed conditions that were accepted.
    Resumed {
        #[serde(default)]
        boot: String,
        #[serde(default)]
        changed: Vec<String>,
    },
    /// A command before or after a run succeeded.
    Hook {
        run: usize,
        name: String,
        #[serde(flatten)]
        times: CommandTimes,
    },
    /// The commands whose output is recorded after a run succeeded.
    Recorded {
        run: usize,
        #[serde(flatten)]
        times: RecordTimes,
    },
    /// The used space of the file systems of a run was recorded.
    Space {
        run: usize,
        #[serde(rename = "before")]
        time: HookTime,
        used: u64,
    },
    /// A run of an arm was started.
    Started {
        run: usize,
        arm: usize,
        #[serde(default)]
        control: Option<f64>,
    },
    /// A run is complete.
    Finished {
        run: usize,
        #[serde(default)]
        control: Option<f64>,
    },
    /// Other programs disturbed a run, and its result is not used.
    Retried {
        run: usize,
        #[serde(default)]
        seconds: f64,
    },
    /// The results of this run and of all later ones are not used.
    Dropped { run: usize },
    #[serde(other)]
    Unrelated,
}

/// Splits `DIR:ARM` into the directory and the name of the arm. Returns `None` when the path has another form, or when
/// a file with the whole name exists.
pub(super) fn split(path: &Path) -> Option<(PathBuf, String)> {
    if path.exists() {
        return None;
    }
    // The name of an arm may contain a colon as well.
    let text = path.to_str()?;
    let found = text.rmatch_indices(':').map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
    found.into_iter().find(|(dir, _)| dir.is_dir()).map(|(dir, arm)| (dir.to_owned(), arm.to_owned()))
}

/// Returns the names of the arms of a results folder: none if its arms are equal, or it has a single one that is no cell of
/// factors. Returns `None` when the directory is not a results folder.
pub(super) fn arms(dir: &Path) -> Result<Option<Vec<String>>, ImportError> {
    if std::fs::symlink_metadata(dir.join(EXPERIMENT)).is_err() {
        return Ok(None);
    }
    let names = arm_names(dir)?;
    Ok(Some(if names.distinct || names.is_factorial && names.all.len() == 1 { names.all } else { Vec::new() }))
}

/// Reads the finished runs of an arm, or of all arms if they are equal. If the directory is not a results folder, reads
/// all JSON files in it or in its directory `runs`, or all files if none is JSON, in the order of their names.
pub(super) fn side(dir: &Path, arm: Option<&str>) -> Result<ImportedSide, ImportError> {
    // The directory of the results also has those of all arms.
    let parent = dir.parent().filter(|parent| dir.ends_with(RUNS) && parent.join(EXPERIMENT).exists());
    let dir = parent.map_or(dir, |parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let names = match std::fs::symlink_metadata(dir.join(EXPERIMENT)) {
        Ok(_) => arm_names(dir)?,
        Err(_) if arm.is_none() && is_of_batch(dir) => {
            let why = "it is the directory of a batch: name one of its workloads, or compare all of them by `wmlrun compare --tests`";
            return Err(form(dir)(why.to_owned()));
        }
        Err(_) if arm.is_none() => return Ok(ImportedSide { runs: all_files(dir)?, ..ImportedSide::default() }),
        Err(_) => {
            let why = "it has no `experiment.toml`: only folders of experiments have arms (`DIR:ARM`)";
            return Err(form(dir)(why.to_owned()));
        }
    };
    let index = match (arm, names.distinct) {
        (None, false) => None,
        (None, true) => return Err(ImportError::SeveralArms { path: dir.to_owned(), arms: names.all }),
        (Some(arm), _) => match names.position(arm) {
            Some(index) => Some(index),
            None => {
                return Err(ImportError::NoArm { path: dir.to_owned(), arm: arm.to_owned(), arms: names.all });
            }
        },
    };
    let (mut side, numbers) = finished_runs(dir, index)?;
    side.metrics = names.metrics(index);
    side.words = names.words.into_iter().nth(index.unwrap_or_default()).unwrap_or_default();
    side.blocks = names.runs_of_block.and_then(|runs_of_block| {
        let of_runs = numbers.iter().map(|number| number.saturating_sub(1) / runs_of_block).collect();
        Some(SideBlocks { folder: dir.canonicalize().ok()?, arm: index?, of_runs })
    });
    Ok(side)
}

/// The names of an experiment's arms.
struct ArmNames {
    /// The names in the order of the arms; none if the only arm has no level.
    all: Vec<String>,
    /// Whether the arms differ, so that their runs are not of one sample.
    distinct: bool,
    /// Whether they are the cells of factors.
    is_factorial: bool,
    /// The metrics of the experiment.
    metrics: Vec<Metric>,
    /// For each arm, its own metric instead of the first one, if it has one.
    own: Vec<Option<Metric>>,
    /// The command line of each arm.
    words: Vec<Vec<String>>,
    /// The number of successive runs that are one block; `None` if all runs of an arm were made before those of the next.
    runs_of_block: Option<usize>,
}

impl ArmNames {
    /// Returns the index of the arm with this name. If no other arm has the name, the case is ignored, since reports call
    /// the arms `a` and `b` A and B; so are the order of the levels of a cell, and the names of the factors.
    fn position(&self, arm: &str) -> Option<usize> {
        let sorted = |name: &str| {
            let mut levels: Vec<String> = name.split(',').map(str::to_owned).collect();
            levels.sort_unstable();
            levels
        };
        let levels = |name: &str| -> Vec<String> {
            name.split(',').map(|level| level.split_once('=').map_or(level, |(_, level)| level).to_owned()).collect()
        };
        let only = |is_it: &dyn Fn(&String) -> bool| {
            let mut found = self.all.iter().enumerate().filter(|(_, name)| is_it(name)).map(|(n, _)| n);
            found.next().filter(|_| found.next().is_none())
        };
        let exact = self.all.iter().position(|name| name == arm);
        exact
            .or_else(|| only(&|name| name.eq_ignore_ascii_case(arm)))
            .or_else(|| only(&|name| sorted(name) == sorted(arm)))
            .or_else(|| only(&|name| name.contains('=') && levels(name).join(",") == arm))
    }

    fn metrics(&self, arm: Option<usize>) -> Vec<Metric> {
        let mut metrics = self.metrics.clone();
        let own = arm.and_then(|arm| self.own.get(arm)?.clone());
        if let (Some(own), Some(first)) = (own, metrics.first_mut()) {
            *first = own;
        }
        metrics
    }
}

/// Reads the names of the arms: `a` and `b`, `FACTOR=LEVEL` for a load curve, or the names of the cells of a factorial
/// experiment.
fn arm_names(dir: &Path) -> Result<ArmNames, ImportError> {
    let file = dir.join(EXPERIMENT);
    let text = input::read_file(&file)?;
    let found: ArmsDescription = toml::from_str(&text).map_err(|e| damaged(&file)(toml_reason(&text, &e)))?;
    if found.schema != EXPERIMENT_SCHEMA {
        return Err(form(&file)(format!("its schema is not `{EXPERIMENT_SCHEMA}`")));
    }
    let all = match found.rule.kind.as_str() {
        "sweep" => found.rule.levels.iter().map(|level| format!("{}={level}", found.rule.factor)).collect(),
        "ab" => vec!["a".to_owned(), "b".to_owned()],
        // One cell alone has the name that it has among others.
        "factorial" if found.arms.len() > 1 || found.arms.iter().any(|arm| arm.name.contains('=')) => {
            found.arms.iter().map(|arm| arm.name.clone()).collect()
        }
        _ => Vec::new(),
    };
    // The commands of a cell may be those of its levels.
    let scopes_differ = !found.scopes.is_empty();
    let hooks_differ = ["before", "after"].iter().any(|hook| {
        let command = |arm: &str| found.hooks.get(&format!("{hook}-{arm}"));
        command("a") != command("b")
    });
    let words_differ = found.arms.iter().any(|arm| arm.words != found.arms[0].words);
    let distinct = all.len() > 1 && (words_differ || hooks_differ || scopes_differ);
    let is_factorial = found.rule.kind == "factorial";
    let of_block = if found.rule.kind == "ab" { 4 } else { found.arms.len() };
    // A sweep in order repeats all of its values, one after the other.
    let is_in_order = found.rule.in_order == Some(toml::Value::Boolean(true));
    let has_blocks = of_block > 0 && found.rule.search.is_none() && (!is_in_order || found.rule.kind == "sweep");
    let runs_of_block = has_blocks.then_some(of_block);
    let metrics = found.metrics.iter().filter_map(|name| name.parse().ok()).collect();
    let own = found.arms.iter().map(|arm| arm.metric.as_ref()?.parse().ok()).collect();
    let words = found.arms.into_iter().map(|arm| arm.words).collect();
    Ok(ArmNames { all, distinct, is_factorial, metrics, own, words, runs_of_block })
}

/// Returns where a text is not the description of an experiment, without a word of the text: it may be a file of anyone,
/// that nobody named.
pub(crate) fn toml_reason(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
    format!("line {line} is not a part of the description of an experiment")
}

/// A run according to the journal.
#[derive(Default)]
struct JournalRun {
    /// The index of its arm.
    arm: usize,
    /// The number of the boot in which it was started.
    boot: usize,
    /// Whether it is complete.
    is_finished: bool,
    /// The figures that were recorded beside its result.
    figures: RecordedFigures,
}

/// The figures of the run in progress: its commands begin before its start.
#[derive(Default)]
struct FiguresInProgress {
    run: usize,
    figures: RecordedFigures,
}

impl FiguresInProgress {
    /// Returns the figures of a run. Those of another run are forgotten.
    fn of_run(&mut self, run: usize) -> &mut RecordedFigures {
        if self.run != run {
            *self = Self { run, ..Self::default() };
        }
        &mut self.figures
    }
}

/// Reads the results of the runs that the journal calls finished, of one arm or of all. The others give a note.
fn finished_runs(dir: &Path, arm: Option<usize>) -> Result<(ImportedSide, Vec<usize>), ImportError> {
    let journal = dir.join(JOURNAL);
    let text = input::read_file(&journal)?;
    // An interrupted write leaves a last line without an end.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut runs: BTreeMap<usize, JournalRun> = BTreeMap::new();
    let (mut boots, mut in_progress) = (BootCount::default(), FiguresInProgress::default());
    let (mut changes, mut not_yet_used): (Vec<(usize, Vec<String>)>, _) = (Vec::new(), Vec::new());
    let (mut has_dropped, mut unused) = (false, UnusedAttempts::default());
    for (n, line) in whole.lines().enumerate() {
        let event =
            serde_json::from_str(line).map_err(|_| damaged(&journal)(format!("line {} is not an event", n + 1)))?;
        match event {
            RunEvent::Begun { boot } => boots.enter(&boot),
            RunEvent::Resumed { boot, changed } => {
                boots.enter(&boot);
                not_yet_used.extend(changed);
            }
            RunEvent::Started { run, arm, control } => {
                if !not_yet_used.is_empty() {
                    changes.push((run, std::mem::take(&mut not_yet_used)));
                }
                in_progress.of_run(run).begin_attempt();
                in_progress.of_run(run).take_control(HookTime::Before, control);
                runs.insert(run, JournalRun { arm, boot: boots.number, ..JournalRun::default() });
            }
            // A scope of the experiment may end after its last run.
            RunEvent::Hook { run, name, times } => match runs.get_mut(&run).filter(|run| run.is_finished) {
                Some(last) => last.figures.take_command(&name, times),
                None => in_progress.of_run(run).take_command(&name, times),
            },
            RunEvent::Recorded { run, times } => in_progress.of_run(run).take_records(&times),
            RunEvent::Space { run, time, used } => in_progress.of_run(run).take_space(time, used),
            RunEvent::Finished { run, control } => {
                let mut figures = std::mem::take(in_progress.of_run(run));
                figures.take_control(HookTime::After, control);
                let finished = runs.entry(run).or_default();
                (finished.is_finished, finished.figures) = (true, figures);
            }
            RunEvent::Retried { run, seconds } => {
                unused.add(run, seconds);
                in_progress = FiguresInProgress::default();
            }
            RunEvent::Dropped { run } => {
                has_dropped = true;
                unused.drop_from(run);
                runs.retain(|number, _| *number < run);
                // The runs that replace them are made under the present conditions.
                changes.iter_mut().for_each(|(first, _)| *first = run.min(*first));
            }
            RunEvent::Unrelated => {}
        }
    }
    // The runs that replace dropped ones may have results of them in their places.
    if let Some(lost) = result_numbers(dir).into_iter().find(|number| !runs.contains_key(number) && !has_dropped) {
        return Err(damaged(&journal)(format!("it does not have run {lost}, whose result is there")));
    }
    runs.retain(|_, run| arm.is_none_or(|arm| arm == run.arm));
    unused.0.retain(|(number, _)| runs.contains_key(number));
    let boots = runs.iter().filter(|(_, run)| run.is_finished).map(|(number, run)| (*number, run.boot));
    let notes = run_notes(boots, &changes, &unused);
    let mut side = ImportedSide::default();
    let (mut unfinished, mut numbers) = (Vec::new(), Vec::new());
    for (run, JournalRun { is_finished, figures, .. }) in runs {
        if !is_finished {
            unfinished.push(run.to_string());
            continue;
        }
        let file = dir.join(RUNS).join(result_name(run));
        let found = of_file(&file).map_err(|error| match error {
            ImportError::Form { path, why } => ImportError::Damaged { path, why },
            other => other,
        })?;
        let mut last = Observation::last_of(found).ok_or_else(|| damaged(&file)("it has no run".to_owned()))?;
        figures.add_to(&mut last);
        side.runs.push(last);
        numbers.push(run);
        check_count(dir, side.runs.len())?;
    }
    if side.runs.is_empty() {
        return Err(form(dir)(NONE_FINISHED.to_owned()));
    }
    let dir = dir.display().to_string();
    let dir = printable::line(&dir);
    if !unfinished.is_empty() {
        let s = if unfinished.len() == 1 { "" } else { "s" };
        side.notes.push(format!("{dir}: without run{s} {}, which did not finish", super::shortened(&unfinished)));
    }
    side.notes.extend(notes.iter().map(|note| format!("{dir}: {note}")));
    Ok((side, numbers))
}

/// Returns the numbers of the runs of a results folder that have a result, in ascending order.
fn result_numbers(dir: &Path) -> BTreeSet<usize> {
    let names = reading::entries(&dir.join(RUNS)).unwrap_or_default();
    names.iter().filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()).collect()
}

/// Reads all JSON files of a directory, or of its directory `runs`. Other programs give their outputs any name, so that
/// all visible files are read if none is JSON.
fn all_files(path: &Path) -> Result<Vec<Observation>, ImportError> {
    let runs = path.join(RUNS);
    let dir = if runs.is_dir() { &runs } else { path };
    let list = |dir: &Path| -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = reading::entries(dir)?.iter().map(DirEntry::path).collect();
        let is_json = |file: &PathBuf| file.extension().is_some_and(|e| e == "json");
        let has_json = files.iter().any(is_json);
        files.retain(|file| if has_json { is_json(file) } else { is_visible(file) && file.is_file() });
        files.sort();
        Ok(files)
    };
    let files = list(dir).map_err(|error| ImportError::Io { path: dir.to_owned(), error })?;
    if files.is_empty() {
        let why = "it has no files; directories of several tests are compared by `wmlrun compare --tests`";
        return Err(form(path)(why.to_owned()));
    }
    let mut found = Vec::new();
    for file in files {
        found.extend(of_file(&file)?);
        check_count(path, found.len())?;
    }
    Ok(found)
}

/// True if a directory has no result itself, and a directory for each workload.
fn is_of_batch(dir: &Path) -> bool {
    let Ok(entries) = reading::entries(dir) else { return false };
    let is_workload = |entry: &DirEntry| entry.path().join(BATCH_RESULT).is_file();
    !has_json(dir) && !dir.join(RUNS).is_dir() && entries.iter().any(is_workload)
}

/// True if a directory has a JSON file, or cannot be read.
pub(super) fn has_json(dir: &Path) -> bool {
    let is_json = |entry: &DirEntry| entry.path().extension().is_some_and(|e| e == "json");
    reading::entries(dir).map_or(true, |entries| entries.iter().any(is_json))
}

/// Reads the files of a directory that are results, if at least one is. Filebench's batches leave other files beside them.
pub(super) fn results_among(dir: &Path) -> Result<Vec<Observation>, ImportError> {
    let entries = reading::entries(dir).map_err(|error| ImportError::Io { path: dir.to_owned(), error })?;
    let mut files: Vec<PathBuf> = entries.iter().map(DirEntry::path).collect();
    files.retain(|file| is_visible(file) && file.is_file());
    files.sort();
    let found: Vec<Observation> = files.iter().filter_map(|file| of_file(file).ok()).flatten().collect();
    check_count(dir, found.len())?;
    if found.is_empty() { Err(form(dir)("it has no results".to_owned())) } else { Ok(found) }
}

/// True if the name of a file does not begin with a point.
pub(crate) fn is_visible(file: &Path) -> bool {
    file.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
}

/// Reads a result in a directory. A pipe is refused: the user has not named it.
pub(super) fn of_file(file: &Path) -> Result<Vec<Observation>, ImportError> {
    recorded_observations(file)
}

/// Returns an error when a directory has too many observations.
fn check_count(dir: &Path, count: usize) -> Result<(), ImportError> {
    if count > MAX_OBSERVATIONS { Err(form(dir)(TOO_MANY.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
