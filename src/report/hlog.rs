//! `HdrHistogram`'s interval log (`.hlog`): the latencies of each I/O flowop of each run, tagged with its name.
//!
//! Every interval is a whole run. There is no interval for the sum of all flowops, so that a reader that adds all
//! intervals counts every operation once.

use super::{Report, ReportInfo};
use crate::result::hdr;
use crate::result::hdr_export::{LoggedInterval, interval_log};
use crate::result::{Document, Run};
use crate::util::printable;
use crate::util::timestamp;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// `--format hlog`.
pub(crate) struct Hlog;

impl Report for Hlog {
    fn info(&self) -> ReportInfo {
        ReportInfo {
            stands_alone: true,
            ..ReportInfo::for_programs(
                "hlog",
                "HdrHistogram's interval log: the latencies of each I/O flowop of each run, written after all runs",
            )
        }
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        let first = document.runs.iter().map(started).min().unwrap_or_default();
        let names: Vec<Vec<String>> = document.runs.iter().map(names).collect();
        let mut intervals = Vec::new();
        for (run, names) in document.runs.iter().zip(&names) {
            let start = started(run).saturating_sub(first);
            let length = Duration::try_from_secs_f64(run.measured_seconds).unwrap_or_default();
            for (flowop, tag) in run.flowops.iter().zip(names).filter(|(f, _)| f.class.is_io() && f.ops > 0) {
                let dist = hdr::decode(&flowop.histogram).map_err(io::Error::other)?;
                intervals.push(LoggedInterval { tag, start, length, dist });
            }
        }
        let script = printable::line(&document.script.path);
        let comment = format!("[Logged with wmlrun {}: {script}]", printable::line(&document.tool.version));
        interval_log(SystemTime::UNIX_EPOCH + first, &comment, &intervals, out)
    }
}

/// Returns the start of a run, since 1970.
fn started(run: &Run) -> Duration {
    let seconds = timestamp::seconds_of(&run.started_at).and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// Returns the names of a run's flowops, as in the table of its time series. They differ, since readers merge intervals
/// with the same tag.
fn names(run: &Run) -> Vec<String> {
    let flowops = run.flowops.iter().zip(run.name_suffixes());
    flowops.map(|(f, suffix)| format!("{}/{}/{}{suffix}", f.process, f.thread, f.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::Hlog;
    use crate::report::to_string;
    use crate::result::fixture::fixture;

    #[test]
    fn every_flowop_of_every_run_is_an_interval() {
        let mut document = fixture();
        let mut second = document.runs[0].clone();
        "2026-08-24T09:31:05Z".clone_into(&mut second.started_at);
        document.runs.push(second);
        let text = to_string(&Hlog, &document);
        let intervals: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(text.starts_with("#[Logged with wmlrun 0.1.0: oltp_sync.wml]\n"), "{text}");
        assert_eq!(intervals.len(), 4, "two I/O flowops in two runs\n{text}");
        assert!(intervals[0].starts_with("Tag=shadow/shadow/shadowread,0.000,60.000,"), "{text}");
        assert!(intervals[3].starts_with("Tag=dbwr/dbwr/dbwrite-a,65.000,60.000,"), "{text}");
        document.runs.truncate(1);
        document.runs[0].flowops[1] = document.runs[0].flowops[0].clone();
        let text = to_string(&Hlog, &document);
        let tags: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Tag=")?.split(',').next()).collect();
        assert_eq!(tags, ["shadow/shadow/shadowread#1", "shadow/shadow/shadowread#2"]);
    }
}
