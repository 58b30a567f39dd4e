//! `wmlrun report`: results as one HTML page, or in a format of the reports of runs and of the results of experiments.

use super::choices::ExportFormat;
use super::console;
use super::experiments::print_text;
use super::known_floor::known_floor;
use super::run_tables::RUN_TABLES;
use super::usage::near_path;
use crate::analysis::NoiseFloor;
use crate::comparison::{FORMATS, find_format};
use crate::experiment::{ExperimentKind, RecordedExperiment};
use crate::import::{self, Metric, Observation};
use crate::os::held_dir::HeldDir;
use crate::output::{FileIdentity, Target, file_id};
use crate::page::{self, PageError, ResultSource};
use crate::report::{self, Report};
use crate::util::markdown::literal;
use crate::util::printable;
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

/// Where the results go.
pub(super) struct PageOutputs {
    /// The file of the page or of another format. `None`: standard output.
    pub(super) output: Option<PathBuf>,
    /// The title of the page. `None`: that of its only section, or the number of results.
    pub(super) title: Option<String>,
    /// The directory of the pictures.
    pub(super) pictures: Option<PathBuf>,
    /// Files are replaced whatever they contain.
    pub(super) force: bool,
}

/// Writes the results at `paths` as a page or in another format, and their pictures. `metrics` replaces those of
/// experiments unless it is empty. Without `force` only a page or a picture is replaced. Returns the exit status.
pub(super) fn report(paths: &[PathBuf], metrics: &[Metric], outputs: &PageOutputs, format: ExportFormat) -> u8 {
    let output = outputs.output.as_deref();
    if outputs.title.is_some() && (format.0.is_some() || outputs.pictures.is_some() && output.is_none()) {
        console::error(
            "`--title` is the title of a page, and none is written",
            Some("omit `--title`, or write a page"),
        );
        return 2;
    }
    if output.is_none() && outputs.pictures.is_none() && format.0.is_none() && std::io::stdout().is_terminal() {
        console::error(
            "the page is HTML, which a terminal can't show",
            Some("write it to a file, with `-o page.html`"),
        );
        return 2;
    }
    let opened = |output: &Path| match format.0 {
        None => page_target(output, paths, outputs.force),
        Some(_) => open(output, paths, |_| false, "", outputs.force),
    };
    let target = match output.map(opened).transpose() {
        Ok(target) => target,
        Err(status) => return status,
    };
    let sources = match read(paths, metrics) {
        Ok(sources) => sources,
        Err(status) => return status,
    };
    let is_curve = |source: &ResultSource| match source {
        ResultSource::Experiment { recorded, .. } => recorded.experiment.kind() == ExperimentKind::Sweep,
        _ => false,
    };
    if let (Some(format), false, true) = (format.0, metrics.is_empty(), sources.iter().all(is_curve)) {
        let text =
            format!("`--metric` has no effect: a load curve as `{}` has rates and response times", format.name());
        console::error(&text, Some("omit `--metric`; a page of the curve shows the metric"));
        return 2;
    }
    if let Some(dir) = &outputs.pictures {
        match write_pictures(dir, paths, &sources, outputs.force) {
            0 => {}
            status => return status,
        }
        if target.is_none() {
            return 0;
        }
    }
    let text = match format.0 {
        Some(format) => exported(format, &sources),
        None => page::html(&sources, outputs.title.as_deref()).map_err(|e| {
            console::error(&format!("can't make the page: {e}"), None);
            1
        }),
    };
    match text {
        Ok(text) => written(target, &text),
        Err(status) => status,
    }
}

/// Reads the results. `Err` holds the exit status after an error was printed.
fn read(paths: &[PathBuf], metrics: &[Metric]) -> Result<Vec<ResultSource>, u8> {
    let mut sources = Vec::new();
    for path in paths {
        match page::read(path) {
            Ok(found) => {
                for source in found {
                    sources.push(with_floor(with_metrics(source, metrics)?));
                }
            }
            Err(e) => {
                let is_toml = path.extension().is_some_and(|extension| extension == "toml");
                let help = match (near_path(path), &e) {
                    (Some(near), _) => near,
                    (None, PageError::Io { .. }) => "give a result file or a results folder".to_owned(),
                    _ if import::side(path).is_ok() => {
                        "it is a result of another program: `wmlrun compare` and `wmlrun wins` read it".to_owned()
                    }
                    _ if is_toml && path.exists() => {
                        format!("`wmlrun experiment {}` makes the runs of an experiment file", path.display())
                    }
                    _ => "give a file that `--json` wrote, or the results folder of an experiment".to_owned(),
                };
                console::error(&e.to_string(), Some(&help));
                return Err(2);
            }
        }
    }
    let is_experiment = |source: &ResultSource| matches!(source, ResultSource::Experiment { .. });
    if !metrics.is_empty() && !sources.iter().any(is_experiment) {
        console::error(
            "`--metric` needs an experiment, and there is none among the results",
            Some("give the results folder of `experiment`, `sweep`, `ab` or `repeat`"),
        );
        return Err(2);
    }
    Ok(sources)
}

/// Writes a text to a target, or else to standard output. Returns the exit status.
fn written(target: Option<Target>, text: &str) -> u8 {
    match target.map(|target| target.write(&mut |out| out.write_all(text.as_bytes()))) {
        None => print_text(text),
        Some(Ok(())) => {}
        Some(Err(e)) => {
            console::error(&format!("the output can't be written: {e}"), Some("give another path"));
            return 1;
        }
    }
    0
}

/// Writes the pictures of the page to files in a directory. All files are checked before the first is written. Returns
/// the exit status.
fn write_pictures(dir: &Path, paths: &[PathBuf], sources: &[ResultSource], force: bool) -> u8 {
    let files = page::pictures(sources);
    if files.is_empty() {
        console::error("the results have no pictures", Some("a picture needs at least one run that was measured"));
        return 2;
    }
    let held = HeldDir::create(dir).and_then(|(dir, _)| dir.make_known());
    let _known = match held {
        Ok(known) => known,
        Err(e) => {
            let text = format!("{} can't be created: {e}", dir.display());
            console::error(&text, Some("give `--pictures` another path"));
            return 3;
        }
    };
    let mut targets = Vec::new();
    for file in &files {
        match open(&dir.join(&file.name), paths, crate::sheet::is_picture, ", and is not a picture of wmlrun", force) {
            Ok(target) => targets.push(target),
            Err(status) => return status,
        }
    }
    for (file, target) in files.iter().zip(targets) {
        match written(Some(target), &file.text) {
            0 => {}
            status => return status,
        }
    }
    0
}

/// Returns the result of an experiment in a format. `Err` holds the exit status after an error was printed.
fn experiment_text(
    format: &dyn Report,
    name: &str,
    recorded: &RecordedExperiment,
    floor: Option<NoiseFloor>,
) -> Result<String, u8> {
    let refuse = |text: &str, help: &str| {
        console::error(text, Some(help));
        Err(2)
    };
    if let Some((_, table)) = RUN_TABLES.iter().find(|(of, _)| of.name() == format.name()) {
        recorded.state_notes().iter().for_each(|note| console::notice(&format!("note: {note}")));
        return table(recorded)
            .or_else(|e| refuse(&format!("the runs of {name} can't be written: {e}"), "try another format"));
    }
    let Some(found) = find_format(format.name()) else {
        let both = FORMATS.iter().map(|format| format.name).filter(|name| report::find(name).is_some());
        let tables = RUN_TABLES.iter().map(|(format, _)| format.name());
        let formats: Vec<String> = both.chain(tables).map(|name| format!("`{name}`")).collect();
        let text = format!("{name} is an experiment, whose result has no format `{}`", format.name());
        let help = format!("its formats are {}; the results of the runs are in {name}/runs", formats.join(", "));
        return refuse(&text, &help);
    };
    match recorded.document(floor) {
        Ok(document) => Ok(document.formatted(found)),
        Err(e) => refuse(&format!("{name} has no result: {e}"), &format!("its runs are in {name}/runs")),
    }
}

/// Returns the results of several experiments, each below its path. `None` if one of the results is no experiment, or the
/// format has no headings.
fn joined_experiments(format: &dyn Report, sources: &[ResultSource]) -> Option<Result<String, u8>> {
    let heading = match format.name() {
        "text" => |name: &str| format!("{name}:\n\n"),
        "markdown" => |name: &str| format!("## {}\n\n", literal(name)),
        _ => return None,
    };
    let experiment = |source| match source {
        &ResultSource::Experiment { ref name, ref recorded, floor } => Some((name, &**recorded, floor)),
        _ => None,
    };
    let experiments: Vec<_> = sources.iter().map(experiment).collect::<Option<_>>()?;
    let text = |(name, recorded, floor): (&String, &RecordedExperiment, _)| {
        let text = experiment_text(format, name, recorded, floor)?;
        Ok(heading(&printable::line(name)) + &text)
    };
    Some(experiments.into_iter().map(text).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n")))
}

/// Returns the results of runs, or of experiments, in a format. `Err` holds the exit status after an error was
/// printed.
fn exported(format: &dyn Report, sources: &[ResultSource]) -> Result<String, u8> {
    if let [ResultSource::Experiment { name, recorded, floor }] = sources {
        return experiment_text(format, name, recorded, *floor);
    }
    if let Some(joined) = joined_experiments(format, sources) {
        return joined;
    }
    let mut documents = Vec::new();
    for source in sources {
        match source {
            ResultSource::Runs { document, .. } => documents.push(&**document),
            ResultSource::Comparison(_) => {}
            ResultSource::Experiment { name, .. } => {
                let text = format!("the result of the experiment {name} can't be joined with others");
                console::error(&text, Some("give its folder alone; `text` and `markdown` join experiments only"));
                return Err(2);
            }
        }
    }
    if documents.len() > 1 && !format.can_be_joined() {
        let text = format!("`{}` has one result in a file, not {}", format.name(), documents.len());
        console::error(&text, Some("write each result to a file of its own"));
        return Err(2);
    }
    let mut bytes = Vec::new();
    report::write_all(format, &documents, &mut bytes).map_err(|e| {
        console::error(&format!("can't write the result as `{}`: {e}", format.name()), None);
        1
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the metrics of an experiment. `Err` holds the exit status after an error was printed: no run has one of them.
fn with_metrics(source: ResultSource, metrics: &[Metric]) -> Result<ResultSource, u8> {
    let ResultSource::Experiment { name, mut recorded, floor } = source else { return Ok(source) };
    let has = |metric: &&Metric| recorded.runs.iter().any(|run| metric.of(&run.observation).is_some());
    let missing: Vec<&Metric> = metrics.iter().filter(|metric| !has(metric)).collect();
    if !missing.is_empty() {
        let run = recorded.runs.iter().find(|run| run.observation.failure.is_none());
        let help = run.map(|run| missing[0].help_in(&run.observation));
        let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        console::error(&format!("no run of {name} has {}", missing.join(" or ")), help.as_deref());
        return Err(2);
    }
    if !metrics.is_empty() {
        recorded.experiment.metrics = metrics.iter().map(Metric::to_string).collect();
        recorded.experiment.arms.iter_mut().for_each(|arm| arm.metric = None);
    }
    Ok(ResultSource::Experiment { name, recorded, floor })
}

/// Adds the noise floor of the workload of a comparison, if it has been measured.
fn with_floor(source: ResultSource) -> ResultSource {
    match source {
        ResultSource::Experiment { name, recorded, .. } if recorded.experiment.kind() == ExperimentKind::Ab => {
            let arms = recorded.by_arm();
            let sides: Vec<Vec<Observation>> =
                arms.iter().map(|runs| runs.iter().map(|run| run.observation.clone()).collect()).collect();
            let floor = recorded.experiment.metrics().first().and_then(|metric| known_floor(&sides, metric));
            ResultSource::Experiment { name, recorded, floor }
        }
        other => other,
    }
}

/// Opens the file of a page, which must not be one of the results. Without `force` only a page is replaced. `Err` holds the
/// exit status after an error was printed.
pub(super) fn page_target(output: &Path, results: &[PathBuf], force: bool) -> Result<Target, u8> {
    open(output, results, page::is_page, ", and is not a page of wmlrun", force)
}

/// Opens an output. It must not be one of the results, nor, unless `force` is set, an existing file that `is_own` does not
/// accept; `kind` then ends the error. `Err` holds the exit status after an error was printed.
fn open(output: &Path, paths: &[PathBuf], is_own: fn(&[u8]) -> bool, kind: &str, force: bool) -> Result<Target, u8> {
    let results: Vec<FileIdentity> = paths.iter().filter_map(|path| file_id(path)).collect();
    let target = Target::open(output, &results).and_then(|target| target.recognizing(is_own).unless_foreign(force));
    target.map_err(|e| {
        let (text, help) = match e.kind() {
            ErrorKind::AlreadyExists => {
                (format!("{} exists{kind}", output.display()), "give another path, or replace the file with `--force`")
            }
            _ => (format!("{} can't be written: {e}", output.display()), "give another path"),
        };
        console::error(&text, Some(help));
        3
    })
}
