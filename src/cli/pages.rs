//! `wmlrun report`: results as one HTML page.

use super::console;
use super::experiments::{known_floor, print_text};
use crate::experiment::ExperimentKind;
use crate::import::Observation;
use crate::output::{FileIdentity, Target, file_id};
use crate::page::{self, PageError, ResultSource};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Writes the page of the results at `paths` to `output`, or else to standard output. Returns the exit status.
pub(super) fn report(paths: &[PathBuf], output: Option<&Path>) -> u8 {
    if output.is_none() && std::io::stdout().is_terminal() {
        console::error(
            "the page is HTML, which a terminal can't show",
            Some("write it to a file, with `-o page.html`"),
        );
        return 2;
    }
    let target = match output.map(|output| open(output, paths)).transpose() {
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
                    _ => "give a file that `--json` wrote, or the results folder of `repeat`, `ab` or `sweep`",
                };
                console::error(&e.to_string(), Some(help));
                return 2;
            }
        }
    }
    let text = match page::html(&sources) {
        Ok(text) => text,
        Err(e) => {
            console::error(&format!("can't make the page: {e}"), None);
            return 70;
        }
    };
    match target.map(|target| target.write(&mut |out| out.write_all(text.as_bytes()))) {
        None => print_text(&text),
        Some(Ok(())) => {}
        Some(Err(e)) => {
            console::error(&format!("the page can't be written: {e}"), Some("give `-o` another path"));
            return 1;
        }
    }
    0
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

/// Opens the file of the page. It must not be one of the results, nor any other file than a page. `Err` holds the exit
/// status after an error was printed.
fn open(output: &Path, paths: &[PathBuf]) -> Result<Target, u8> {
    let results: Vec<FileIdentity> = paths.iter().filter_map(|path| file_id(path)).collect();
    if is_other_file(output) {
        let text = format!("{} exists, and is not a page of wmlrun", output.display());
        console::error(&text, Some("give `-o` another path, or remove the file"));
        return Err(3);
    }
    Target::open(output, &results).map_err(|e| {
        console::error(&format!("{} can't be written: {e}", output.display()), Some("give `-o` another path"));
        3
    })
}

/// Returns whether a path is an existing regular file with other content than a page.
fn is_other_file(path: &Path) -> bool {
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return false;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    read.is_ok() && !page::is_page(&head)
}
