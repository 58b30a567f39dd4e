//! The outputs of a session in addition to its report: the result file, the trace, the table of runs, and the files that scripts name.

use super::Settings;
use crate::model::Stats;
use crate::os::held_dir::MadeDir;
use crate::output::{Appender, ResultPlace, Results, TableFile};
use crate::report::{dumps, json};
use std::path::PathBuf;

/// The outputs in addition to the report.
pub(crate) struct Outputs {
    pub(crate) json: Option<json::Writer>,
    pub(crate) trace: Option<Appender>,
    /// The table of all runs.
    pub(crate) table: Option<TableFile>,
    /// The directory for files that scripts write.
    pub(crate) results: Results,
    /// The directory of the last `stats directory`.
    pub(crate) stats_dir: Option<ResultPlace>,
    /// The directories that `stats directory` has created, each before its parent.
    pub(crate) made_dirs: Vec<MadeDir>,
    /// The names and roots of the file sets of all plans so far: no output is written there.
    pub(crate) trees: Vec<(String, PathBuf)>,
    /// The largest number of operations per thread that can be traced in the available memory.
    pub(crate) max_traced: usize,
    /// The number of runs in the trace file.
    pub(crate) traced: usize,
    /// An output could not be written.
    pub(crate) write_failed: bool,
}

impl Outputs {
    /// Returns outputs that are not open yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let results = Results::new(&settings.results, &settings.allow_write);
        Self {
            json: None,
            trace: None,
            table: None,
            results,
            stats_dir: None,
            made_dirs: Vec::new(),
            trees: Vec::new(),
            max_traced: usize::MAX,
            traced: 0,
            write_failed: false,
        }
    }
}

/// Returns the Filebench file that a `stats` command writes. `None` for a command that writes none.
pub fn form_of(stats: &Stats) -> Option<&'static dumps::File> {
    match stats {
        Stats::Dump(_) => Some(&dumps::DUMP),
        Stats::MultiDump(_) => Some(&dumps::MULTIDUMP),
        Stats::XmlDump(_) => Some(&dumps::XMLDUMP),
        Stats::Clear | Stats::Snap | Stats::Directory(_) | Stats::Command(_) => None,
    }
}
