//! The first reading of a trace: its names, and the file sets that they make.

use crate::files::Files;
use crate::openings::Openings;
use crate::pools::ThreadPools;
use crate::sets::LearnedSets;
use std::io::Read;
use wml_trace::{TraceError, TraceEvent, TraceReader};

/// Reads a trace to its end. Returns what is known of each name, as at the beginning of the trace, the
/// sets, and the pools of threads.
pub(crate) fn read_names<R: Read>(
    reader: &mut TraceReader<R>,
) -> Result<(Files, LearnedSets, ThreadPools), TraceError> {
    let (mut files, mut openings) = (Files::new(!reader.header().under.is_empty()), Openings::default());
    let mut is_tree_known = false;
    while let Some(events) = reader.block()? {
        if !std::mem::replace(&mut is_tree_known, true) {
            files.add_tree(reader.tree());
        }
        for event in &events {
            if let TraceEvent::Call(call) = event {
                let before = files.before(call);
                files.apply(call, before);
                openings.add(call);
            }
        }
    }
    let mut sets = LearnedSets::new(&files, reader.paths());
    let pools = openings.pools();
    openings.annotate(&mut sets);
    files.rewind();
    Ok((files, sets, pools))
}
