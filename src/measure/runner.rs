//! The state of a session's measurements.

use super::collector::Collector;
use super::outputs::Outputs;
use super::ready::Live;
use super::redaction::{self, Redaction};
use super::trees::Trees;
use super::watch::{Stage, Watch, WatchGuard};
use super::{Settings, Status};
use crate::os::signals::Kept;
use crate::result::Document;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// Measures plans one after another. Owns the trees, the outputs and the result.
pub struct Runner {
    /// The options of the command line.
    pub settings: Settings,
    /// The result so far.
    pub document: Document,
    pub(crate) outputs: Outputs,
    /// The placeholders of redacted texts.
    pub(crate) redaction: Redaction,
    pub(crate) trees: Trees,
    pub(crate) live: Option<Live>,
    pub(crate) collector: Option<Collector>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) interrupt: Arc<AtomicUsize>,
    pub(crate) started: Instant,
    /// The memory in bytes that runs may need, as far as a note has said so.
    pub(crate) noted_memory: BTreeSet<u64>,
    /// The worst status so far.
    pub(crate) worst: Status,
    /// From the first file that it creates on: a signal lets it remove the files and write the result.
    pub(crate) kept: Option<Kept>,
}

impl Runner {
    /// Creates a runner that has measured nothing. `interrupt` is set by signals. The seed is that of rank 0.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        // If rank 0 is lost, the agreement before the run reports it.
        let seed = settings.together.of_first(settings.seed).unwrap_or(settings.seed);
        let settings = Settings { seed, ..settings };
        let document = Document {
            command_line: redaction::command_line(&settings),
            label: settings.label.clone(),
            note: settings.note.clone(),
            process_id: std::process::id(),
            seed: settings.seed,
            layout_seed: settings.layout_seed,
            ..Document::default()
        };
        Self {
            document,
            outputs: Outputs::new(&settings),
            redaction: Redaction::default(),
            trees: Trees::default(),
            live: None,
            collector: None,
            watch: Arc::default(),
            interrupt,
            started: Instant::now(),
            noted_memory: BTreeSet::new(),
            worst: Status::Done,
            kept: None,
            settings,
        }
    }

    /// Shows the watchdog that the session works on `what` until the guard is dropped.
    pub(crate) fn begin(&self, stage: Stage, what: &str, paths: Vec<PathBuf>) -> WatchGuard {
        self.watch.begin(stage, what, paths, self.worst.code())
    }

    /// Shows the watchdog that `what` is checked before a run, at `path` or else in the directories of the file sets.
    pub fn looking(&self, what: &str, path: Option<&str>) -> impl Drop + use<> {
        let paths = match path {
            Some(path) => std::path::absolute(path).into_iter().collect(),
            None => self.trees.parent_dirs.iter().cloned().collect(),
        };
        self.begin(Stage::Prepare, what, paths)
    }

    /// Shows the watchdog that a text is read.
    pub fn reading(&self, what: &str) -> impl Drop + use<> {
        self.begin(Stage::Prepare, what, Vec::new())
    }

    /// Clears a signal that was handled, so that it does not end the next run.
    pub fn clear_interrupt(&self) {
        self.interrupt.store(0, SeqCst);
    }

    /// Returns the number of the signal that was received; 0 if there is none.
    pub fn signal(&self) -> u8 {
        self.interrupt.load(SeqCst) as u8
    }

    /// Returns the number that signals set.
    pub fn interrupt(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.interrupt)
    }
}
