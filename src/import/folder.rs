//! Reads the runs of a results folder, or all results in a directory.
//!
//! The folder is read as it is: without a lock, and without a check of its conditions. Not in here: its creation and its
//! use by a running experiment (`experiment`).

use super::{
    HookTime, ImportError, ImportedSide, MAX_OBSERVATIONS, Observation, RecordedFigures, SideBlocks, TOO_MANY, form,
    input, observations,
};
use crate::util::printable;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The file with the description of the experiment.
pub const EXPERIMENT: &str = "experiment.toml";

/// The file with the events of the experiment, one on each line.
pub const JOURNAL: &str = "journal.jsonl";

/// The directory of the results.
pub const RUNS: &str = "runs";

/// The reason why a results folder, or one of its arms, has no side of a comparison.
pub(super) const NONE_FINISHED: &str = "none of its runs has finished";

/// The name and version of the description's schema.
pub const EXPERIMENT_SCHEMA: &str = "wmlrun.experiment/1";

/// Returns the name of a run's result. Runs are numbered from 1.
pub fn result_name(run: usize) -> String {
    format!("{run:04}.json")
}

/// The parts of an experiment's description that concern its arms.
#[derive(Deserialize)]
struct ArmsDescription {
    schema: String,
    rule: FactorDescription,
    arms: Vec<ArmDescription>,
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
    #[serde(default)]
    in_order: bool,
}

/// An arm.
#[derive(Deserialize)]
struct ArmDescription {
    #[serde(default)]
    name: String,
    words: Vec<String>,
}

/// The boots of the machine in which an experiment was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootCount {
    /// The number of the last boot, from 0.
    pub number: usize,
    /// Its ID; empty when it is unknown.
    id: String,
}

impl BootCount {
    /// Counts the boot with this ID unless it is the last one. An unknown boot is taken for the last one.
    pub fn enter(&mut self, id: &str) {
        if id.is_empty() || id == self.id {
            return;
        }
        self.number += usize::from(!self.id.is_empty());
        id.clone_into(&mut self.id);
    }
}

/// Returns notes on how the runs of an experiment were made: the reboots between them, and each change of the conditions
/// that was accepted with `--anyway`. `boots` has the number of each run and that of its boot, `changes` the first run
/// under changed conditions and what changed.
pub fn run_notes(boots: impl Iterator<Item = (usize, usize)>, changes: &[(usize, Vec<String>)]) -> Vec<String> {
    let boots: Vec<(usize, usize)> = boots.collect();
    let reboots = boots.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let reboots: Vec<String> = reboots.map(|pair| format!("between runs {} and {}", pair[0].0, pair[1].0)).collect();
    let rebooted = (!reboots.is_empty()).then(|| format!("the machine was rebooted {}", reboots.join(" and ")));
    let changed = |(run, what): &(usize, Vec<String>)| {
        format!("changed before run {run}, accepted by `--anyway`: {}", what.join(", "))
    };
    rebooted.into_iter().chain(changes.iter().map(changed)).collect()
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
    Hook { run: usize, name: String, seconds: f64 },
    /// The commands whose output is recorded after a run succeeded.
    Recorded { run: usize, seconds: Vec<f64> },
    /// The used space of the file systems of a run was recorded.
    Space {
        run: usize,
        #[serde(rename = "before")]
        time: HookTime,
        used: u64,
    },
    /// A run of an arm was started.
    Started { run: usize, arm: usize },
    /// A run is complete.
    Finished { run: usize },
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

/// Returns the names of the arms of a results folder: none if it has a single arm or equal ones. Returns `None` when
/// the directory is not a results folder.
pub(super) fn arms(dir: &Path) -> Result<Option<Vec<String>>, ImportError> {
    if std::fs::symlink_metadata(dir.join(EXPERIMENT)).is_err() {
        return Ok(None);
    }
    let names = arm_names(dir)?;
    Ok(Some(if names.distinct { names.all } else { Vec::new() }))
}

/// Reads the finished runs of an arm, or of all arms if they are equal. If the directory is not a results folder, reads
/// all JSON files in it or in its directory `runs`, or all files if none is JSON, in the order of their names.
pub(super) fn side(dir: &Path, arm: Option<&str>) -> Result<ImportedSide, ImportError> {
    // The directory of the results also has those of all arms.
    let parent = dir.parent().filter(|parent| dir.ends_with(RUNS) && parent.join(EXPERIMENT).exists());
    let dir = parent.map_or(dir, |parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let names = match std::fs::symlink_metadata(dir.join(EXPERIMENT)) {
        Ok(_) => arm_names(dir)?,
        Err(_) if arm.is_none() => return Ok(ImportedSide { runs: all_files(dir)?, ..ImportedSide::default() }),
        Err(error) => return Err(ImportError::Io { path: dir.join(EXPERIMENT), error }),
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
    side.blocks = names.runs_of_block.and_then(|runs_of_block| {
        let of_runs = numbers.iter().map(|number| number.saturating_sub(1) / runs_of_block).collect();
        Some(SideBlocks { folder: dir.canonicalize().ok()?, arm: index?, of_runs })
    });
    Ok(side)
}

/// The names of an experiment's arms.
struct ArmNames {
    /// The names in the order of the arms; none if there is only one arm.
    all: Vec<String>,
    /// Whether the arms differ, so that their runs are not of one sample.
    distinct: bool,
    /// The number of successive runs that are one block; `None` if all runs of an arm were made before those of the next.
    runs_of_block: Option<usize>,
}

impl ArmNames {
    /// Returns the index of the arm with this name. The case is ignored if no other arm has the name: reports call the
    /// arms `a` and `b` A and B.
    fn position(&self, arm: &str) -> Option<usize> {
        let is_it = |name: &String| name.eq_ignore_ascii_case(arm);
        let only =
            || self.all.iter().position(is_it).filter(|_| self.all.iter().filter(|name| is_it(name)).count() == 1);
        self.all.iter().position(|name| name == arm).or_else(only)
    }
}

/// Reads the names of the arms: `a` and `b`, `FACTOR=LEVEL` for a load curve, or the names of the cells of a factorial
/// experiment.
fn arm_names(dir: &Path) -> Result<ArmNames, ImportError> {
    let file = dir.join(EXPERIMENT);
    let text = input::read_file(&file)?;
    let found: ArmsDescription = toml::from_str(&text).map_err(|e| form(&file)(e.message().to_owned()))?;
    if found.schema != EXPERIMENT_SCHEMA {
        let schema = printable::short(&found.schema, 40);
        return Err(form(&file)(format!("its schema is `{schema}`, not `{EXPERIMENT_SCHEMA}`")));
    }
    let all = match found.rule.kind.as_str() {
        "sweep" => found.rule.levels.iter().map(|level| format!("{}={level}", found.rule.factor)).collect(),
        "ab" => vec!["a".to_owned(), "b".to_owned()],
        "factorial" if found.arms.len() > 1 => found.arms.iter().map(|arm| arm.name.clone()).collect(),
        _ => Vec::new(),
    };
    // The commands of a cell may be those of its levels.
    let scopes_differ = !found.scopes.is_empty();
    let hooks_differ = ["before", "after"].iter().any(|hook| {
        let command = |arm: &str| found.hooks.get(&format!("{hook}-{arm}"));
        command("a") != command("b")
    });
    let words_differ = found.arms.iter().any(|arm| arm.words != found.arms[0].words);
    let distinct = !all.is_empty() && (words_differ || hooks_differ || scopes_differ);
    let of_block = if found.rule.kind == "ab" { 4 } else { found.arms.len() };
    // A sweep in order repeats all of its values, one after the other.
    let has_blocks = of_block > 0 && (!found.rule.in_order || found.rule.kind == "sweep");
    let runs_of_block = has_blocks.then_some(of_block);
    Ok(ArmNames { all, distinct, runs_of_block })
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
    for (n, line) in whole.lines().enumerate() {
        let event =
            serde_json::from_str(line).map_err(|e| form(&journal)(format!("line {} is not an event: {e}", n + 1)))?;
        match event {
            RunEvent::Begun { boot } => boots.enter(&boot),
            RunEvent::Resumed { boot, changed } => {
                boots.enter(&boot);
                not_yet_used.extend(changed);
            }
            RunEvent::Started { run, arm } => {
                if !not_yet_used.is_empty() {
                    changes.push((run, std::mem::take(&mut not_yet_used)));
                }
                in_progress.of_run(run).begin_attempt();
                runs.insert(run, JournalRun { arm, boot: boots.number, ..JournalRun::default() });
            }
            // A scope of the experiment may end after its last run.
            RunEvent::Hook { run, .. } if runs.get(&run).is_some_and(|run| run.is_finished) => {}
            RunEvent::Hook { run, name, seconds } => in_progress.of_run(run).take_command(&name, seconds),
            RunEvent::Recorded { run, seconds } => in_progress.of_run(run).take_records(&seconds),
            RunEvent::Space { run, time, used } => in_progress.of_run(run).take_space(time, used),
            RunEvent::Finished { run } => {
                let figures = std::mem::take(in_progress.of_run(run));
                let finished = runs.entry(run).or_default();
                (finished.is_finished, finished.figures) = (true, figures);
            }
            RunEvent::Dropped { run } => {
                runs.retain(|number, _| *number < run);
                // The runs that replace them are made under the present conditions.
                changes.iter_mut().for_each(|(first, _)| *first = run.min(*first));
            }
            RunEvent::Unrelated => {}
        }
    }
    runs.retain(|_, run| arm.is_none_or(|arm| arm == run.arm));
    let boots = runs.iter().filter(|(_, run)| run.is_finished).map(|(number, run)| (*number, run.boot));
    let notes = run_notes(boots, &changes);
    let mut side = ImportedSide::default();
    let (mut unfinished, mut numbers) = (Vec::new(), Vec::new());
    for (run, JournalRun { is_finished, figures, .. }) in runs {
        if !is_finished {
            unfinished.push(run.to_string());
            continue;
        }
        let file = dir.join(RUNS).join(result_name(run));
        let last = Observation::last_of(of_file(&file)?);
        let mut last = last.ok_or_else(|| form(&file)("it has no run".to_owned()))?;
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

/// Reads all JSON files of a directory, or of its directory `runs`. Other programs give their outputs any name, so that
/// all visible files are read if none is JSON.
fn all_files(path: &Path) -> Result<Vec<Observation>, ImportError> {
    let runs = path.join(RUNS);
    let dir = if runs.is_dir() { &runs } else { path };
    let list = |dir: &Path| -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        let is_json = |file: &PathBuf| file.extension().is_some_and(|e| e == "json");
        let has_json = files.iter().any(is_json);
        files.retain(|file| if has_json { is_json(file) } else { is_visible(file) && file.is_file() });
        files.sort();
        Ok(files)
    };
    let files = list(dir).map_err(|error| ImportError::Io { path: dir.to_owned(), error })?;
    if files.is_empty() {
        return Err(form(path)("it has no files".to_owned()));
    }
    let mut found = Vec::new();
    for file in files {
        found.extend(of_file(&file)?);
        check_count(path, found.len())?;
    }
    Ok(found)
}

/// Returns whether the name of a file does not begin with a point.
pub(super) fn is_visible(file: &Path) -> bool {
    file.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
}

/// Reads a result in a directory. A pipe is refused: the user has not named it.
pub(super) fn of_file(file: &Path) -> Result<Vec<Observation>, ImportError> {
    let metadata = file.metadata().map_err(|error| ImportError::Io { path: file.to_owned(), error })?;
    if !metadata.is_file() {
        return Err(form(file)("it is not a regular file".to_owned()));
    }
    observations(file)
}

/// Returns an error when a directory has too many observations.
fn check_count(dir: &Path, count: usize) -> Result<(), ImportError> {
    if count > MAX_OBSERVATIONS { Err(form(dir)(TOO_MANY.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Metric, side};
    use super::*;
    use std::fs;

    /// Writes the folder of an experiment, with a run of each arm for each time that the journal starts one. The rate of
    /// a run is its number.
    fn folder(dir: &Path, description: &str, journal: &str) {
        fs::create_dir_all(dir.join(RUNS)).unwrap();
        fs::write(dir.join(EXPERIMENT), format!("schema = '{EXPERIMENT_SCHEMA}'\n{description}")).unwrap();
        fs::write(dir.join(JOURNAL), journal).unwrap();
        for n in 1..=journal.matches("\"started\"").count() {
            let text = format!(
                "{{\"schema\": \"wmlrun.result/1\", \"runs\": [{{}}, {{\"summary\": {{\"ops_per_s\": {n}}}}}]}}"
            );
            fs::write(dir.join(RUNS).join(result_name(n)), text).unwrap();
        }
    }

    /// Returns the events of finished runs of these arms.
    fn finished(arms: &[usize]) -> String {
        let run = |(n, arm): (usize, &usize)| {
            let n = n + 1;
            format!(
                "{{\"event\":\"hook\",\"run\":{n},\"name\":\"before\",\"seconds\":1}}\n\
                 {{\"event\":\"started\",\"run\":{n},\"arm\":{arm},\"control\":null}}\n\
                 {{\"event\":\"finished\",\"run\":{n},\"seconds\":1.5}}\n"
            )
        };
        arms.iter().enumerate().map(run).collect()
    }

    fn values(path: &str) -> Vec<f64> {
        side(Path::new(path)).unwrap().runs.iter().map(|run| Metric::ops().of(run).unwrap()).collect()
    }

    const REPEAT: &str = "arms = [{words = ['x.wml']}]\nrule = {kind = 'repeat'}\n";
    const AB: &str = "arms = [{words = ['x.wml']}, {words = ['x.wml', '--cold']}]\nrule = {kind = 'ab'}\n";

    #[test]
    fn the_runs_of_different_arms_are_not_one_sample() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        folder(dir.path(), AB, &finished(&[0, 1, 1, 0]));
        let error = side(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("has runs of several arms: a, b"), "{error}");
        assert!(error.help().contains(&format!("`{path}:a` or `{path}:b`")), "{}", error.help());
        assert_eq!((values(&format!("{path}:a")), values(&format!("{path}:b"))), (vec![1.0, 4.0], vec![2.0, 3.0]));
        assert!(
            matches!(side(&dir.path().join(RUNS)), Err(ImportError::SeveralArms { path, .. }) if path == dir.path())
        );
        let error = side(Path::new(&format!("{path}:c"))).unwrap_err();
        assert!(error.to_string().ends_with("has no arm `c`") && error.help() == "its arms are a, b", "{error}");
        assert_eq!(values(&format!("{path}:A")), vec![1.0, 4.0]);
        // The four runs are one block; those of a file have none.
        let blocks = |path: &str| side(Path::new(path)).unwrap().blocks;
        let found = blocks(&format!("{path}:a")).unwrap();
        assert_eq!((Some(found.folder), found.of_runs), (dir.path().canonicalize().ok(), vec![0, 0]));
        assert_eq!(blocks(&format!("{path}/runs/0001.json")), None);
        // A load curve, of which a level contains a colon.
        let sweep = "rule = {kind = 'sweep', factor = 'n', levels = ['4', 'x:5']}\n";
        folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", sweep), &finished(&[1, 0]));
        assert_eq!((values(&format!("{path}:n=4")), values(&format!("{path}:n=x:5"))), (vec![2.0], vec![1.0]));
        assert!(side(dir.path()).unwrap_err().to_string().contains("n=4, n=x:5"));
        // Each block has a run of each level.
        folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", sweep), &finished(&[1, 0, 0, 1]));
        assert_eq!(blocks(&format!("{path}:n=4")).unwrap().of_runs, [0, 1]);
        let sweep = sweep.replace("'sweep'", "'sweep', in_order = true");
        folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", &sweep), &finished(&[0, 1, 0, 1]));
        assert_eq!(blocks(&format!("{path}:n=4")).unwrap().of_runs, [0, 1]);
        // All runs of a cell, then those of the next.
        let cells = AB.replace("words", "name = 'c', words").replacen("'c'", "'d'", 1);
        let in_order = cells.replace("kind = 'ab'", "kind = 'factorial', in_order = true");
        folder(dir.path(), &in_order, &finished(&[0, 0, 1, 1]));
        assert_eq!(blocks(&format!("{path}:c")), None);
    }

    #[test]
    fn arms_are_equal_if_neither_options_nor_commands_differ() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let equal = AB.replace(", '--cold'", "");
        folder(dir.path(), &equal, &finished(&[0, 1]));
        assert_eq!((values(&path), values(&format!("{path}:b"))), (vec![1.0, 2.0], vec![2.0]));
        folder(dir.path(), &format!("{equal}hooks = {{before-b = 'x'}}\n"), &finished(&[0, 1]));
        assert!(matches!(side(dir.path()), Err(ImportError::SeveralArms { .. })));
        folder(dir.path(), REPEAT, &finished(&[0, 0]));
        assert_eq!(values(&path), [1.0, 2.0]);
        let error = side(Path::new(&format!("{path}:a"))).unwrap_err();
        assert_eq!(error.help(), format!("give `{path}`: its runs are of one arm"));
    }

    #[test]
    fn only_finished_runs_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let started = "{\"event\":\"started\",\"run\":4,\"arm\":0}\n{\"event\":\"stopped\",\"why\":\"x\"}\n";
        // The last line was being written when the machine stopped.
        let journal = format!("{}{started}{{\"event\":\"fin", finished(&[0, 0, 0]));
        folder(dir.path(), REPEAT, &journal);
        let found = side(dir.path()).unwrap();
        assert_eq!((found.runs.len(), found.notes), (3, vec![format!("{path}: without run 4, which did not finish")]));
        // A dropped run and those after it are made again.
        let journal = format!("{}{{\"event\":\"dropped\",\"run\":2,\"why\":\"x\"}}\n", finished(&[0, 0, 0]));
        folder(dir.path(), REPEAT, &journal);
        assert_eq!(values(&path), [1.0]);
        folder(dir.path(), REPEAT, started);
        assert!(side(dir.path()).unwrap_err().to_string().ends_with("none of its runs has finished"));
    }

    /// They are in the journal: the result of a run does not have them.
    #[test]
    fn runs_have_the_figures_of_their_commands() {
        let dir = tempfile::tempdir().unwrap();
        let hook = |run: usize, name: &str, seconds: f64| {
            format!("{{\"event\":\"hook\",\"run\":{run},\"name\":\"{name}\",\"seconds\":{seconds}}}\n")
        };
        let event = |kind: &str, run: usize, more: &str| format!("{{\"event\":\"{kind}\",\"run\":{run}{more}}}\n");
        let journal = [
            // The first attempt of the run was interrupted after its commands.
            hook(1, "before-x", 9.0),
            event("started", 1, ",\"arm\":0"),
            event("space", 1, ",\"before\":false,\"used\":8192"),
            hook(1, "after-y", 9.0),
            hook(1, "before-x", 2.0),
            event("space", 1, ",\"before\":true,\"used\":4096"),
            event("started", 1, ",\"arm\":0"),
            event("recorded", 1, ",\"seconds\":[0.5,0.25]"),
            hook(1, "after-x", 3.0),
            event("finished", 1, ""),
            hook(2, "before-x", 4.0),
            event("started", 2, ",\"arm\":0"),
            event("finished", 2, ""),
            // The end of the experiment, after its last run.
            hook(2, "after-experiment", 7.0),
        ];
        folder(dir.path(), REPEAT, &journal.concat());
        let runs = side(dir.path()).unwrap().runs;
        let of = |run: usize, name: &str| runs[run].figures.get(name).copied();
        let names = ["before-x.seconds", "after-x.seconds", "record-2.seconds", "space.before", "space.after"];
        assert_eq!(names.map(|name| of(0, name)), [Some(2.0), Some(3.0), Some(0.25), Some(4096.0), None]);
        assert_eq!(names.map(|name| of(1, name)), [Some(4.0), None, None, None, None]);
        assert_eq!(
            (of(0, "ops"), of(0, "after-y.seconds"), of(1, "after-experiment.seconds")),
            (Some(1.0), None, None)
        );
        let metric: Metric = "before-x.seconds".parse().unwrap();
        assert_eq!(metric.of(&runs[1]), Some(4.0));
    }

    #[test]
    fn runs_of_different_boots_give_a_note() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let events = finished(&[0, 1, 1, 0]);
        let mut lines: Vec<&str> = events.lines().collect();
        let resumed =
            |boot: &str| format!("{{\"event\":\"resumed\",\"time\":\"\",\"changed\":[],\"boot\":\"{boot}\"}}");
        let (same, other) = (resumed("x"), resumed("y"));
        let begun = "{\"event\":\"begun\",\"experiment\":\"\",\"time\":\"\",\"boot\":\"x\"}";
        // The third run was started before the reboot, and found complete after it.
        lines.insert(8, &other);
        lines.insert(3, &same);
        lines.insert(0, begun);
        folder(dir.path(), AB, &(lines.join("\n") + "\n"));
        let notes = |arm: &str| side(Path::new(&format!("{path}:{arm}"))).unwrap().notes;
        assert_eq!(notes("a"), [format!("{path}: the machine was rebooted between runs 1 and 4")]);
        assert_eq!(notes("b"), Vec::<String>::new());
        let notes = |boots: &[usize]| run_notes((1..).zip(boots.iter().copied()), &[]);
        assert!(notes(&[]).is_empty() && notes(&[1, 1]).is_empty());
        let shown = "the machine was rebooted between runs 2 and 3 and between runs 3 and 4";
        assert_eq!(notes(&[0, 0, 1, 3, 3]), [shown]);
    }

    #[test]
    fn accepted_changes_give_notes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let resumed = |what: &str| format!("{{\"event\":\"resumed\",\"time\":\"\",\"changed\":[\"{what}\"]}}\n");
        let run = |number: usize| {
            let event = |kind: &str| format!("{{\"event\":\"{kind}\",\"run\":{number},\"arm\":0}}\n");
            event("started") + &event("finished")
        };
        let notes = |journal: &str| {
            folder(dir.path(), REPEAT, journal);
            side(dir.path()).unwrap().notes
        };
        let note =
            |first: usize, what: &str| format!("{path}: changed before run {first}, accepted by `--anyway`: {what}");
        let journal = run(1) + &resumed("a script") + &run(2) + &run(3) + &resumed("the kernel") + &run(4);
        assert_eq!(notes(&journal), [note(2, "a script"), note(4, "the kernel")]);
        // All runs after the dropped one are made under the new conditions.
        let journal = journal + "{\"event\":\"dropped\",\"run\":3,\"why\":\"x\"}\n" + &run(3);
        assert_eq!(notes(&journal), [note(2, "a script"), note(3, "the kernel")]);
    }

    #[test]
    fn what_is_no_experiment_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (description, journal, says) in [
            ("arms = 5", "", "experiment.toml is not a result: "),
            (REPEAT, "hello\n", "journal.jsonl is not a result: line 1 is not an event"),
            (REPEAT, "{\"event\":\"started\",\"run\":1}\n", "missing field `arm`"),
        ] {
            folder(dir.path(), description, journal);
            let error = side(dir.path()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        fs::write(dir.path().join(EXPERIMENT), REPEAT.to_owned() + "schema = 'other/1'\n").unwrap();
        assert!(side(dir.path()).unwrap_err().to_string().contains("its schema is `other/1`"));
    }
}
