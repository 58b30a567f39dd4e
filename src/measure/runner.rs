//! What measures one plan after another, and keeps what outlives a measurement.

use super::collector::Collector;
use super::outputs::Outputs;
use super::ready::Live;
use super::redaction::{self, Redaction};
use super::trees::Trees;
use super::watch::{Entered, Stage, Watch};
use super::{Settings, Status};
use crate::result::Document;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// Measures plans, and keeps their trees, the outputs and the result.
pub struct Runner {
    /// What the command line decided.
    pub settings: Settings,
    /// The result so far.
    pub document: Document,
    pub(crate) outputs: Outputs,
    /// Placeholders of what the result leaves out.
    pub(crate) redaction: Redaction,
    pub(crate) trees: Trees,
    pub(crate) live: Option<Live>,
    pub(crate) collector: Option<Collector>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) interrupt: Arc<AtomicUsize>,
    pub(crate) started: Instant,
    /// How what was done so far has ended.
    pub(crate) worst: Status,
}

impl Runner {
    /// One that has measured nothing. `interrupt` is raised by signals.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        let document = Document {
            command_line: redaction::command_line(&settings),
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
            worst: Status::Done,
            settings,
        }
    }

    /// Until the guard is dropped the watchdog is shown that this is waited for.
    pub(crate) fn begin(&self, stage: Stage, what: &str, paths: Vec<PathBuf>) -> Entered {
        self.watch.begin(stage, what, paths, self.worst.code())
    }

    /// The same while something is looked at before a run; in the directories of file sets if no path is given.
    pub fn looking(&self, what: &str, path: Option<&str>) -> impl Drop + use<> {
        let paths = match path {
            Some(path) => std::path::absolute(path).into_iter().collect(),
            None => self.trees.places.iter().cloned().collect(),
        };
        self.begin(Stage::Prepare, what, paths)
    }

    /// The same while a text is read.
    pub fn reading(&self, what: &str) -> impl Drop + use<> {
        self.begin(Stage::Prepare, what, Vec::new())
    }

    /// Forgets a signal that has done its work, so that the next run is not ended by it.
    pub fn clear_interrupt(&self) {
        self.interrupt.store(0, SeqCst);
    }

    /// The signal that has come, by its number; 0 if none.
    pub fn signal(&self) -> u8 {
        self.interrupt.load(SeqCst) as u8
    }

    /// Where signals leave their number.
    pub fn interrupt(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.interrupt)
    }
}
