//! The outputs of an experiment besides its result: a row of a table (`--append`) and a line of the live stream
//! (`--live`) for each run as it ends.
//!
//! An output that fails is reported and does not end the experiment, whose folder has all results.

use super::console;
use super::experiment_args::ExperimentArgs;
use super::experiments::Refused;
use super::live_stream::LiveStream;
use crate::experiment::{Experiment, RunEnd};
use crate::import;
use crate::output::TableFile;
use crate::report::csv_runs::{self, ExperimentRun};
use crate::report::json;
use crate::report::live::LiveEvent;
use crate::util::count::count;
use std::path::PathBuf;

/// The open outputs.
pub(super) struct RunOutputs {
    table: Option<(TableFile, PathBuf)>,
    stream: Option<LiveStream>,
    /// Whether standard output belongs to the live stream.
    takes_stdout: bool,
    has_failed: bool,
}

impl RunOutputs {
    /// Opens the outputs that the options name. On an error it is printed, and nothing is created.
    pub(super) fn open(args: &ExperimentArgs) -> Result<Self, Refused> {
        let open = |path: &PathBuf| {
            TableFile::open(path, &csv_runs::experiment_header(), &[]).map_err(|e| {
                let text = format!("can't write the table {}: {e}", path.display());
                console::error(&text, Some("give `--append` another path"));
                Refused::printed(3)
            })
        };
        let table = args.append.as_ref().map(|path| Ok((open(path)?, path.clone()))).transpose()?;
        let stream = args.live.as_ref().map(|live| super::open_stream(live, false, &[]).map_err(Refused::printed));
        let takes_stdout = args.live.as_ref().is_some_and(|live| super::is_stdout(&live.path));
        Ok(Self { table, stream: stream.transpose()?, takes_stdout, has_failed: false })
    }

    /// Returns whether standard output belongs to the live stream.
    pub(super) fn takes_stdout(&self) -> bool {
        self.takes_stdout
    }

    /// Writes the row and the line of a run.
    pub(super) fn run_ended(&mut self, experiment: &Experiment, run: &RunEnd<'_>) {
        let of =
            ExperimentRun { experiment: &experiment.name, arm: &experiment.arm_label(run.arm), number: run.number };
        if let Some(stream) = &mut self.stream {
            let metrics = run.metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            stream.write(&LiveEvent::Recorded { of, failure: run.failure, seconds: run.seconds, metrics });
        }
        let Some((table, path)) = &self.table else { return };
        // A run that failed may have no result.
        let Some(document) = import::text(&run.result).ok().and_then(|text| json::read(&text).ok()) else { return };
        let last = document.runs.len().saturating_sub(1);
        if let Err(e) = table.append(&mut |out| csv_runs::experiment_row(of, &document, last, out)) {
            self.has_failed = true;
            let text = format!("can't append the run to {}: {e}", path.display());
            console::error(&text, Some("the results folder has the results of all runs"));
        }
    }

    /// Ends the live stream, and reports lines that are missing. Returns whether everything was written.
    pub(super) fn finish(&mut self) -> bool {
        if let Some((dropped, written)) = self.stream.take().map(LiveStream::finish) {
            if dropped > 0 {
                let lines = count(dropped, "line");
                console::notice(&format!("note: the live stream lacks {lines}: its reader did not take them in time"));
            }
            if let Err(e) = written {
                self.has_failed = true;
                console::error(&format!("can't write the live stream: {e}"), Some("give `--live` another path"));
            }
        }
        !self.has_failed
    }
}
