//! `wmlrun report`: results as one HTML page, or in a format of the reports of runs and of the results of experiments.

use super::choices::ExportFormat;
use super::console;
use super::experiment_host::floor_of;
use super::experiments::print_text;
use super::last_results::is_last;
use super::page_files::{open, page_target, write_to};
use super::recording::{is_trace, no_other};
use super::run_tables::RUN_TABLES;
use super::screen::report_size;
use super::script_input;
use super::usage::near_path;
use crate::analysis::NoiseFloor;
use crate::comparison::{ComparisonFormat, FORMATS, PUBLISHED, Published, find_format};
use crate::diag::Failure;
use crate::experiment::{ExperimentKind, RecordedExperiment};
use crate::import::{self, Metric};
use crate::os::held_dir::HeldDir;
use crate::output::Target;
use crate::page::{self, PageError, ResultSource};
use crate::report::screen::ScreenReport;
use crate::report::text::Text;
use crate::report::{self, Report, names};
use crate::result::Document;
use crate::session::library;
use crate::sheet::mail;
use crate::util::markdown::literal;
use crate::util::printable;
use std::io::IsTerminal;
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

/// The ends of names of files that are no pages.
const OTHER_ENDS: [&str; 5] = ["csv", "json", "md", "svg", "txt"];

/// Returns the format of `wmlrun report`. With `verbose` it is the whole report as text. On a terminal, which can't show a
/// page, and for the last result alone it is that of a run on the screen, unless it goes to files.
pub(super) fn wanted_format(
    paths: &[PathBuf],
    given: Option<ExportFormat>,
    verbose: bool,
    to_files: bool,
) -> Result<ExportFormat, Failure> {
    let are_last = paths.iter().all(|path| is_last(path));
    Ok(match given {
        Some(format) if verbose && format.name() != "text" => {
            let text = format!("`--format {}` cannot be used with `--verbose`", format.name());
            return Err(Failure::wrong(text, "omit one of them: `--verbose` is the whole report as text"));
        }
        Some(format) => format,
        None if verbose => ExportFormat::Report(&Text),
        None if !to_files && (are_last || std::io::stdout().is_terminal()) => {
            if !are_last {
                console::notice("note: `-o page.html` writes this as a page with pictures");
            }
            ExportFormat::Report(&ScreenReport { size: report_size })
        }
        None => ExportFormat::Page,
    })
}

/// Writes the results at `paths` as a page or in another format, and their pictures. `metrics` replaces those of
/// experiments unless it is empty, `beside` names published figures. Without `force` only a page or a picture is replaced. Returns the exit status.
pub(super) fn report(
    paths: &[PathBuf],
    (metrics, beside): (&[Metric], Option<&str>),
    outputs: &PageOutputs,
    format: ExportFormat,
) -> Result<u8, Failure> {
    let output = outputs.output.as_deref();
    let is_page = matches!(format, ExportFormat::Page);
    if outputs.title.is_some() && (!is_page || outputs.pictures.is_some() && output.is_none()) {
        return Err(Failure::wrong(
            "`--title` is the title of a page, and none is written",
            "omit `--title`, or write a page",
        ));
    }
    if output.is_none() && outputs.pictures.is_none() && is_page && std::io::stdout().is_terminal() {
        return Err(Failure::wrong(
            "the page is HTML, which a terminal can't show",
            "write it to a file, with `-o page.html`",
        ));
    }
    if let Some(output) = output.filter(|output| is_page && !paths.iter().any(|path| path == output))
        && output.extension().is_some_and(|end| OTHER_ENDS.iter().any(|other| end == *other))
    {
        let text = format!("{} would be an HTML page", printable::path(output));
        return Err(Failure::wrong(text, "name the file `.html`, or choose its format with `--format`"));
    }
    let opened = |output: &Path| match is_page {
        true => page_target(output, paths, outputs.force),
        false => open(output, paths, |_| false, "", outputs.force),
    };
    let target = output.map(opened).transpose()?;
    let sources = read(paths, metrics)?;
    let sources = match beside {
        Some(name) => with_beside(sources, name)?,
        None => sources,
    };
    let is_curve = |source: &ResultSource| match source {
        ResultSource::Experiment { recorded, .. } => recorded.experiment.kind() == ExperimentKind::Sweep,
        _ => false,
    };
    let of_curve = (!is_page).then(|| format.name());
    if let (Some(name), false, true) = (of_curve, metrics.is_empty(), sources.iter().all(is_curve)) {
        let text = format!("`--metric` has no effect: a load curve as `{name}` has rates and response times");
        return Err(Failure::wrong(text, "omit `--metric`; a page of the curve shows the metric"));
    }
    if let Some(dir) = &outputs.pictures {
        write_pictures(dir, paths, &sources, outputs.force)?;
        if target.is_none() {
            return Ok(0);
        }
    }
    let text = match (format, &sources[..]) {
        (ExportFormat::Report(format), _) => exported(format, &sources)?,
        (ExportFormat::Experiment(format), [ResultSource::Experiment { name, recorded, floor }]) => {
            document_text(format, name, recorded, *floor)?
        }
        (ExportFormat::Experiment(format), _) => {
            let text = format!("`{}` is a format of a single experiment", format.name);
            return Err(Failure::wrong(text, "give the results folder of one experiment"));
        }
        (ExportFormat::Page, _) => page::html(&sources, outputs.title.as_deref())
            .map_err(|e| Failure::failed(format!("can't make the page: {e}"), ""))?,
    };
    write(target.as_ref(), &text)?;
    Ok(0)
}

/// Writes the page of a run. Without `force` only a page is replaced.
pub(super) fn page_of_run(document: Document, output: &Path, force: bool) -> Result<(), Failure> {
    let target = page_target(output, &[], force)?;
    let name = names::script(&document).to_owned();
    let page = page::html(&[ResultSource::Runs { name, document: Box::new(document) }], None);
    write(Some(&target), &page.map_err(|e| Failure::failed(format!("can't make the page: {e}"), ""))?)
}

fn read(paths: &[PathBuf], metrics: &[Metric]) -> Result<Vec<ResultSource>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        match page::read(path) {
            Ok(found) => {
                for source in found {
                    sources.push(with_floor(with_metrics(source, metrics)?));
                }
            }
            Err(_) if is_trace(path) => return Err(no_other(&path.display().to_string(), "result")),
            Err(e) => {
                let is_toml = path.extension().is_some_and(|extension| extension == "toml");
                let help = match (near_path(path), &e) {
                    (Some(near), _) => near,
                    (None, PageError::Io { .. }) => "give a result file or a results folder".to_owned(),
                    _ if import::side(path).is_ok() => {
                        "it is a result of another program: `wmlrun compare` reads it".to_owned()
                    }
                    _ if is_toml && path.exists() => {
                        format!("`wmlrun experiment {}` makes the runs of an experiment file", path.display())
                    }
                    _ => "give a file that `--json` wrote, or the results folder of an experiment".to_owned(),
                };
                return Err(Failure::wrong(e.to_string(), help));
            }
        }
    }
    let is_experiment = |source: &ResultSource| matches!(source, ResultSource::Experiment { .. });
    if !metrics.is_empty() && !sources.iter().any(is_experiment) {
        return Err(Failure::wrong(
            "`--metric` needs an experiment, and there is none among the results",
            "give the results folder of `experiment`, `sweep`, `ab` or `repeat`",
        ));
    }
    Ok(sources)
}

/// Writes a text to a target, or else to standard output.
fn write(target: Option<&Target>, text: &str) -> Result<(), Failure> {
    match target {
        Some(target) => write_to(target, text),
        None => {
            print_text(text);
            Ok(())
        }
    }
}

/// Writes the pictures of the page to files in a directory. All files are checked before the first is written.
fn write_pictures(dir: &Path, paths: &[PathBuf], sources: &[ResultSource], force: bool) -> Result<(), Failure> {
    let files = page::pictures(sources);
    if files.is_empty() {
        let help = "a picture needs at least one run that was measured";
        return Err(Failure::wrong("the results have no pictures", help));
    }
    let held = HeldDir::create(dir).and_then(|(dir, _)| dir.make_known());
    let _known = held.map_err(|e| {
        Failure::refused(format!("{} can't be created: {e}", dir.display()), "give `--pictures` another path")
    })?;
    let open =
        |name: &str| open(&dir.join(name), paths, crate::sheet::is_picture, ", and is not a picture of wmlrun", force);
    let targets = files.iter().map(|file| open(&file.name)).collect::<Result<Vec<_>, _>>()?;
    files.iter().zip(targets).try_for_each(|(file, target)| write(Some(&target), &file.text))
}

/// The result of an experiment in a format.
fn experiment_text(
    format: &dyn Report,
    name: &str,
    recorded: &RecordedExperiment,
    floor: Option<NoiseFloor>,
) -> Result<String, Failure> {
    if let Some((_, table)) = RUN_TABLES.iter().find(|(of, _)| of.name() == format.name()) {
        recorded.state_notes().iter().for_each(|note| console::notice(&format!("note: {note}")));
        return table(recorded)
            .map_err(|e| Failure::wrong(format!("the runs of {name} can't be written: {e}"), "try another format"));
    }
    let Some(found) = find_format(format.name()) else {
        let both = FORMATS.iter().map(|format| format.name).filter(|name| report::find(name).is_some());
        let tables = RUN_TABLES.iter().map(|(format, _)| format.name());
        let formats: Vec<String> = both.chain(tables).map(|name| format!("`{name}`")).collect();
        let text = format!("{name} is an experiment, whose result has no format `{}`", format.name());
        let help = format!("its formats are {}; the results of the runs are in {name}/runs", formats.join(", "));
        return Err(Failure::wrong(text, help));
    };
    document_text(found, name, recorded, floor)
}

/// The document of an experiment in a format.
fn document_text(
    format: &ComparisonFormat,
    name: &str,
    recorded: &RecordedExperiment,
    floor: Option<NoiseFloor>,
) -> Result<String, Failure> {
    let document = match recorded.document(floor) {
        Err(why) if format.name == "mail" => return Ok(mail::write(&recorded.failed_sheet(&why))),
        document => document,
    };
    let document = document
        .map_err(|e| Failure::wrong(format!("{name} has no result: {e}"), format!("its runs are in {name}/runs")))?;
    Ok(document.formatted(format))
}

/// Returns the results of several experiments, each below its path. `None` if one of the results is no experiment, or the
/// format has no headings.
fn joined_experiments(format: &dyn Report, sources: &[ResultSource]) -> Option<Result<String, Failure>> {
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

/// Returns the results of runs, or of experiments, in a format.
fn exported(format: &dyn Report, sources: &[ResultSource]) -> Result<String, Failure> {
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
            ResultSource::Comparison { .. } => {}
            ResultSource::Experiment { name, .. } => {
                let text = format!("the result of the experiment {name} can't be joined with others");
                let help =
                    "give its folder alone, or write a page with `-o`; `text` and `markdown` join experiments only";
                return Err(Failure::wrong(text, help));
            }
        }
    }
    if documents.len() > 1 && format.info().stands_alone {
        let text = format!("`{}` has one result in a file, not {}", format.name(), documents.len());
        return Err(Failure::wrong(text, "write each result to a file of its own"));
    }
    let mut bytes = Vec::new();
    report::write_all(format, &documents, &mut bytes)
        .map_err(|e| Failure::failed(format!("can't write the result as `{}`: {e}", format.name()), ""))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the metrics of an experiment. An error if no run has one of them.
fn with_metrics(source: ResultSource, metrics: &[Metric]) -> Result<ResultSource, Failure> {
    let ResultSource::Experiment { name, mut recorded, floor } = source else { return Ok(source) };
    let has = |metric: &&Metric| recorded.runs.iter().any(|run| metric.of(&run.observation).is_some());
    let missing: Vec<&Metric> = metrics.iter().filter(|metric| !has(metric)).collect();
    if !missing.is_empty() {
        let run = recorded.runs.iter().find(|run| run.observation.failure.is_none());
        let help = run.map(|run| missing[0].help_in(&run.observation));
        let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        return Err(Failure::wrong(format!("no run of {name} has {}", missing.join(" or ")), help.unwrap_or_default()));
    }
    if !metrics.is_empty() {
        recorded.experiment.metrics = metrics.iter().map(Metric::to_string).collect();
        recorded.experiment.arms.iter_mut().for_each(|arm| arm.metric = None);
    }
    Ok(ResultSource::Experiment { name, recorded, floor })
}

/// Adds published figures, which experiment files may have beside their own.
fn with_beside(mut sources: Vec<ResultSource>, name: &str) -> Result<Vec<ResultSource>, Failure> {
    let names = || PUBLISHED.iter().map(|(name, _)| *name);
    let shipped = PUBLISHED.iter().find(|(of, _)| *of == name).map(|(_, text)| (*text).to_owned());
    let text = shipped.map_or_else(|| script_input::read(Path::new(name)).map(library::text), Ok).map_err(|e| {
        let text = format!("no published figures `{}`: {e}", printable::line(name));
        Failure::wrong(text, format!("give a file, or one of `{}`", names().collect::<Vec<_>>().join("`, `")))
    })?;
    let published = Published::read(&text).map_err(|why| {
        let text = format!("{} is no table of figures: {}", printable::line(name), printable::line(&why));
        Failure::wrong(text, "write headings and lines, with commas between the columns")
    })?;
    let mut is_used = false;
    for source in &mut sources {
        if let ResultSource::Experiment { recorded, .. } = source
            && recorded.factorial().is_some_and(|found| published.has_factor_of(&found))
        {
            // Figures that the runs have, but the experiment does not show.
            let mut besides = published.metrics_besides(&recorded.experiment.metrics);
            besides.retain(|metric| recorded.runs.iter().any(|run| metric.of(&run.observation).is_some()));
            recorded.experiment.metrics.extend(besides.iter().map(Metric::to_string));
            (recorded.beside, is_used) = (Some(Box::new(published.clone())), true);
        }
    }
    if is_used {
        return Ok(sources);
    }
    let text = format!("no experiment among the results has a factor of `{}`", printable::line(name));
    Err(Failure::wrong(text, "name the columns with levels like the factors of the experiment"))
}

/// Adds the noise floor of the workload of a comparison, if it has been measured.
fn with_floor(source: ResultSource) -> ResultSource {
    match source {
        ResultSource::Experiment { name, recorded, .. } => {
            let floor = floor_of(&recorded);
            ResultSource::Experiment { name, recorded, floor }
        }
        other => other,
    }
}
