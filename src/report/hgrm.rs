//! `HdrHistogram`'s table of percentiles (`.hgrm`), which its plotters read: the latencies of all I/O, in nanoseconds.
//!
//! Plotters take a file to be one distribution. A result with several runs has one table for each run.

use super::{Report, ReportInfo, io_latency};
use crate::result::Document;
use crate::result::hdr_export;
use std::io::{self, Write};

/// `--format hgrm`.
pub(crate) struct Hgrm;

impl Report for Hgrm {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs(
            "hgrm",
            "HdrHistogram's table of percentiles: the latencies of all I/O of each run, in nanoseconds",
        )
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        if index > 0 {
            writeln!(out)?;
        }
        hdr_export::percentile_table(&io_latency(run), out)
    }
}

#[cfg(test)]
mod tests {
    use super::Hgrm;
    use crate::report::to_string;
    use crate::result::fixture::fixture;

    #[test]
    fn a_result_without_a_histogram_of_all_io_has_those_of_its_flowops() {
        let mut document = fixture();
        let text = to_string(&Hgrm, &document);
        let ops = document.runs[0].summary.ops;
        assert!(text.contains(&format!("TotalCount     = {:12.2}]", ops as f64)), "{text}");
        document.runs[0].summary.histogram.clear();
        assert_eq!(to_string(&Hgrm, &document), text);
        document.runs.push(document.runs[0].clone());
        assert_eq!(to_string(&Hgrm, &document), format!("{text}\n{text}"));
    }
}
