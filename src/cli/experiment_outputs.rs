//! The outputs of an experiment besides its result: a row of a table (`--append`) and a line of the live stream
//! (`--live`) for each run as it ends.
//!
//! An output that fails is reported and does not end the experiment, whose folder has all results.

use super::arms::PlannedArm;
use super::console;
use super::experiment_args::ExperimentArgs;
use super::live_stream::LiveStream;
use super::option_values::{LiveOutput, is_stdout};
use super::run_tables::{self, run_document};
use crate::diag::Failure;
use crate::experiment::{Experiment, RunEnd};
use crate::measure::unwritable;
use crate::output::{IN_TREE_HELP, TableFile, output_in_tree};
use crate::report::csv_runs::{self, ExperimentRun};
use crate::report::live::LiveEvent;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the outputs and the folder that the options of an experiment name, with the options. The paths are absolute:
/// a resumed experiment changes the working directory.
pub(super) fn named_outputs(args: &ExperimentArgs) -> Vec<(&'static str, PathBuf)> {
    let live = args.live.as_ref().map(|live| &live.path);
    let named = [("--append", args.append.as_ref()), ("--live", live), ("--results", args.results.as_ref())];
    named.into_iter().filter_map(|(option, path)| Some((option, absolute(path?)))).collect()
}

/// Returns the absolute form of the path of an output. `-`, which is standard output, has none.
fn absolute(path: &Path) -> PathBuf {
    let whole = (path != Path::new("-")).then(|| std::path::absolute(path).ok()).flatten();
    whole.unwrap_or_else(|| path.to_owned())
}

/// Refuses an output in a tree that the runs measure: it would be a foreign file there. Called before the first run.
pub(super) fn check_outside(named: &[(&str, PathBuf)], arms: &[PlannedArm]) -> Result<(), Failure> {
    let trees: BTreeSet<&(String, PathBuf)> = arms.iter().flat_map(|arm| &arm.places.trees).collect();
    let trees: Vec<(&str, PathBuf)> = trees.into_iter().map(|(name, root)| (name.as_str(), root.clone())).collect();
    match output_in_tree(named, &trees) {
        Some(text) => Err(Failure::refused(text, IN_TREE_HELP)),
        None => Ok(()),
    }
}

/// The open outputs.
pub(super) struct RunOutputs {
    /// The paths that the options name.
    named: Vec<(&'static str, PathBuf)>,
    table: Option<(TableFile, PathBuf)>,
    stream: Option<LiveStream>,
    /// Whether standard output belongs to the live stream.
    takes_stdout: bool,
    has_failed: bool,
}

impl RunOutputs {
    /// Opens the outputs that the options name. On an error nothing is created.
    pub(super) fn open(args: &ExperimentArgs) -> Result<Self, Failure> {
        let open = |path: &PathBuf| {
            let table = TableFile::open(&absolute(path), &csv_runs::experiment_header(), &[]);
            table.map_err(|e| unwritable("table", path, &e, "--append"))
        };
        let table = args.append.as_ref().map(|path| open(path).map(|table| (table, path.clone()))).transpose()?;
        let open = |live: &LiveOutput| {
            let live = LiveOutput { path: absolute(&live.path), ..live.clone() };
            live.open(false, &[])
        };
        let stream = args.live.as_ref().map(open);
        let takes_stdout = args.live.as_ref().is_some_and(|live| is_stdout(&live.path));
        let named = named_outputs(args);
        Ok(Self { named, table, stream: stream.transpose()?, takes_stdout, has_failed: false })
    }

    /// Refuses outputs in a tree that the runs of these arms measure. See [`check_outside`].
    pub(super) fn check_outside(&self, arms: &[PlannedArm]) -> Result<(), Failure> {
        check_outside(&self.named, arms)
    }

    /// True if standard output belongs to the live stream.
    pub(super) fn takes_stdout(&self) -> bool {
        self.takes_stdout
    }

    /// Returns an error if the directory of an output is no longer at its path.
    pub(super) fn check_in_place(&self) -> io::Result<()> {
        self.table.as_ref().map_or(Ok(()), |(table, _)| table.directory().check_in_place())?;
        self.stream.as_ref().map_or(Ok(()), LiveStream::check_in_place)
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
        let Some(document) = run_document(&run.result) else { return };
        if let Err(e) = table.append(&mut |out| run_tables::append(of, &document, out)) {
            self.has_failed = true;
            let text = format!("can't append the run to {}: {e}", path.display());
            console::error(&text, Some("the results folder has the results of all runs"));
        }
    }

    /// Ends the live stream. Returns whether everything was written.
    pub(super) fn finish(&mut self) -> bool {
        self.has_failed |= self.stream.take().is_some_and(|stream| !console::end_stream(stream));
        !self.has_failed
    }
}
