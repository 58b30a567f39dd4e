//! `wmlrun report`: results as one HTML page, or in a format of the reports of runs.

use super::choices::ExportFormat;
use super::console;
use super::experiments::{known_floor, print_text};
use crate::experiment::ExperimentKind;
use crate::import::Observation;
use crate::output::{FileIdentity, Target, check_replaceable, file_id};
use crate::page::{self, PageError, ResultSource};
use crate::report::{self, Report};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Writes the results at `paths` to `output`, or else to standard output, as a page or in another format. Without `force`
/// only a page is replaced. Returns the exit status.
pub(super) fn report(paths: &[PathBuf], output: Option<&Path>, format: ExportFormat, force: bool) -> u8 {
    if output.is_none() && format.0.is_none() && std::io::stdout().is_terminal() {
        console::error(
            "the page is HTML, which a terminal can't show",
            Some("write it to a file, with `-o page.html`"),
        );
        return 2;
    }
    let target = match output.map(|output| open(output, paths, format, force)).transpose() {
        Ok(target) => target,
        Err(status) => return status,
    };
    let mut sources = Vec::new();
    for path in paths {
        match page::read(path) {
            Ok(found) => sources.extend(found.into_iter().map(with_floor)),
            Err(e) => {
                let help = match e {
                    PageError::Io { .. } => "give a result file or a results folder",
                    _ => "give a file that `--json` wrote, or the results folder of an experiment",
                };
                console::error(&e.to_string(), Some(help));
                return 2;
            }
        }
    }
    let text = match format.0 {
        Some(format) => exported(format, &sources),
        None => page::html(&sources).map_err(|e| {
            console::error(&format!("can't make the page: {e}"), None);
            70
        }),
    };
    let text = match text {
        Ok(text) => text,
        Err(status) => return status,
    };
    match target.map(|target| target.write(&mut |out| out.write_all(text.as_bytes()))) {
        None => print_text(&text),
        Some(Ok(())) => {}
        Some(Err(e)) => {
            console::error(&format!("the output can't be written: {e}"), Some("give `-o` another path"));
            return 1;
        }
    }
    0
}

/// Returns the results of runs in a format. `Err` holds the exit status after an error was printed.
fn exported(format: &dyn Report, sources: &[ResultSource]) -> Result<String, u8> {
    let mut documents = Vec::new();
    for source in sources {
        match source {
            ResultSource::Runs { document, .. } => documents.push(&**document),
            ResultSource::Experiment { name, .. } => {
                let text = format!("{name} is an experiment, which has no report as `{}`", format.name());
                console::error(&text, Some(&format!("give the results of its runs: {name}/runs")));
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

/// Opens the output. It must not be one of the results, nor, unless `force` is set, any other file than a page. `Err` holds
/// the exit status after an error was printed.
fn open(output: &Path, paths: &[PathBuf], format: ExportFormat, force: bool) -> Result<Target, u8> {
    let results: Vec<FileIdentity> = paths.iter().filter_map(|path| file_id(path)).collect();
    let is_own: fn(&[u8]) -> bool = if format.0.is_none() { page::is_page } else { |_| false };
    if !force && check_replaceable(output, &is_own).is_err() {
        let text = match format.0 {
            None => format!("{} exists, and is not a page of wmlrun", output.display()),
            Some(_) => format!("{} exists", output.display()),
        };
        console::error(&text, Some("give `-o` another path, or replace the file with `--force`"));
        return Err(3);
    }
    Target::open(output, &results).map(|target| target.recognizing(is_own)).map_err(|e| {
        console::error(&format!("{} can't be written: {e}", output.display()), Some("give `-o` another path"));
        3
    })
}
