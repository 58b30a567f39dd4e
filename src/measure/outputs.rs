//! The outputs of a session besides its report: the result file, the trace, and the files that scripts name.

use super::Settings;
use crate::model::Stats;
use crate::output::{Appender, ResultPlace, Results};
use crate::report::{filebench, json};

/// What is written besides the report.
pub(crate) struct Outputs {
    pub(crate) json: Option<json::Writer>,
    pub(crate) trace: Option<Appender>,
    /// Where what the script writes goes.
    pub(crate) results: Results,
    /// What `stats directory` said.
    pub(crate) stats_dir: Option<ResultPlace>,
    /// Operations of a thread that there is memory to trace.
    pub(crate) most_traced: usize,
    /// Runs whose operations are in the trace file.
    pub(crate) traced: usize,
    /// One of them could not be written.
    pub(crate) is_lost: bool,
}

impl Outputs {
    /// None of them is open yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let results = Results::new(&settings.results, &settings.allow_write);
        Self { json: None, trace: None, results, stats_dir: None, most_traced: usize::MAX, traced: 0, is_lost: false }
    }
}

/// The file of Filebench's that a `stats` command writes, if it writes one.
pub fn form_of(stats: &Stats) -> Option<&'static filebench::File> {
    match stats {
        Stats::Dump(_) => Some(&filebench::DUMP),
        Stats::MultiDump(_) => Some(&filebench::MULTIDUMP),
        Stats::XmlDump(_) => Some(&filebench::XMLDUMP),
        Stats::Clear | Stats::Snap | Stats::Directory(_) | Stats::Command(_) => None,
    }
}
