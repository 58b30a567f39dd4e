//! Snapshots of a run on each of several ranks: once a second its figures go to a file, so that a rank that is killed
//! leaves what it has measured.
//!
//! The controller only reads the counters. A thread of its own makes the result and writes it, since the file system may
//! not answer. A snapshot is dropped while the one before it is being written.

use super::series::fill_figures;
use crate::os::signals;
use crate::output::{ResultPlace, Results, SnapshotFile, output_in_tree};
use crate::plan::Plan;
use crate::report::json;
use crate::result::ranks::{RankRun, merge_ranks};
use crate::result::snapshot::Snapshot;
use crate::result::{CpuTime, Document, Interval, RunState, rank_on_host};
use crate::runtime::{Sample, Tick};
use crate::util::duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The time between two snapshots.
pub(crate) const SNAPSHOT_PERIOD: Duration = Duration::from_secs(1);

/// The time by which a snapshot may be early.
const EARLY: Duration = Duration::from_millis(50);

/// The most intervals in a snapshot, the newest ones.
const INTERVALS: usize = 60;

/// The time limit for removing the file.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);

struct SnapshotCounters {
    elapsed_ns: u64,
    flowops: Vec<Snapshot>,
    intervals: Vec<Interval>,
}

/// Writes snapshots of a run to a file.
pub(crate) struct SnapshotWriter {
    counters: SyncSender<SnapshotCounters>,
    /// Whether the file is removed at the end.
    is_removed: Arc<AtomicBool>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
    next_ns: u64,
}

impl SnapshotWriter {
    /// Starts the snapshots of a run that begins to be measured. `document`: the result without its runs; those that have
    /// ended are in the result of rank 0. `rank`: the run so far. `started`: when the session started. `None` if no thread
    /// can be started.
    pub(crate) fn start(
        document: Document,
        rank: RankRun,
        started: Instant,
        results: Results,
        plan: &Plan,
    ) -> Option<Self> {
        let source = SnapshotSource {
            document,
            started,
            trees: plan.filesets.iter().map(|set| (set.name.clone(), set.root())).collect(),
            place: results.place(Path::new(&format!("rank-{}.snapshots", rank.rank))),
            rank,
            results,
        };
        let (counters, queue) = sync_channel(1);
        let (end, ended) = sync_channel(1);
        let is_removed = Arc::new(AtomicBool::new(false));
        let removed = Arc::clone(&is_removed);
        let builder = std::thread::Builder::new().name("snapshots".to_owned());
        let work = move || {
            signals::block_ending_signals();
            write_all(&source, &queue, &removed);
            drop(end);
        };
        builder.spawn(work).ok()?;
        Some(Self { counters, is_removed, ended, next_ns: SNAPSHOT_PERIOD.as_nanos() as u64 })
    }

    /// True if a snapshot is due. The one after it is then due a second later.
    pub(crate) fn is_due(&mut self, elapsed_ns: u64) -> bool {
        let (period, rounded) = (SNAPSHOT_PERIOD.as_nanos() as u64, elapsed_ns + EARLY.as_nanos() as u64);
        let is_due = rounded >= self.next_ns;
        if is_due {
            self.next_ns = (rounded / period + 1) * period;
        }
        is_due
    }

    /// Writes a snapshot, unless the one before it is still being written. `recent`: the newest intervals.
    pub(crate) fn write(&self, tick: &Tick<'_>, sample: Sample, recent: &[Interval]) {
        let intervals = recent[recent.len().saturating_sub(INTERVALS)..].to_vec();
        // A snapshot that is dropped is replaced by the next one.
        let _ = self.counters.try_send(SnapshotCounters {
            elapsed_ns: tick.elapsed_ns,
            flowops: sample.flowops,
            intervals,
        });
    }

    /// Ends the snapshots, and removes the file: the figures are in a result.
    pub(crate) fn remove(self) {
        self.is_removed.store(true, SeqCst);
        drop(self.counters);
        // The file stays if its file system does not answer.
        let _ = self.ended.recv_timeout(REMOVE_TIMEOUT);
    }
}

/// What a snapshot consists of besides the counters, and where it is written.
struct SnapshotSource {
    document: Document,
    rank: RankRun,
    /// When the session started.
    started: Instant,
    /// The trees of the file sets, in which the file would be a foreign one.
    trees: Vec<(String, PathBuf)>,
    results: Results,
    place: ResultPlace,
}

impl SnapshotSource {
    /// Returns the result so far.
    fn document(&self, counters: SnapshotCounters) -> Document {
        let mut rank = self.rank.clone();
        let name = rank_on_host(rank.rank, &rank.host);
        let run = &mut rank.run;
        let seconds = counters.elapsed_ns as f64 / 1e9;
        fill_figures(run, &counters.flowops, seconds, CpuTime::default());
        run.measured_seconds = seconds;
        run.finished_seconds = self.started.elapsed().as_secs_f64();
        run.state = RunState::Interrupted;
        run.ended_by = format!("no result of {name} after the snapshot at {}", duration::seconds(seconds));
        run.intervals = counters.intervals;
        run.name_intervals();
        Document { runs: vec![merge_ranks(vec![rank], Vec::new())], ..self.document.clone() }
    }

    /// Creates the file; `None` if that fails, or if it would be in a tree that is measured.
    fn create(&self) -> Option<SnapshotFile> {
        let path = self.place.path();
        let outputs: [(&str, &Path); 1] = [("--results", &path)];
        if output_in_tree(&outputs, &self.trees).is_some() {
            return None;
        }
        SnapshotFile::create(&self.results, &self.place).ok()
    }
}

/// Writes snapshots until there are no more. A failure ends the writing, and nothing else.
fn write_all(source: &SnapshotSource, queue: &Receiver<SnapshotCounters>, is_removed: &AtomicBool) {
    let (mut file, mut has_failed) = (None, false);
    for counters in queue {
        // After the end of the run nothing more is needed.
        if has_failed || is_removed.load(SeqCst) {
            continue;
        }
        if file.is_none() {
            file = source.create();
        }
        let line = json::snapshot_line(&source.document(counters));
        has_failed = match (&mut file, line) {
            (Some(file), Ok(line)) => file.append(&line).is_err(),
            _ => true,
        };
    }
    if is_removed.load(SeqCst)
        && let Some(file) = file
    {
        // A file that can't be removed does no harm.
        let _ = file.remove();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::result::fixture::{fixture, rank_runs};
    use crate::result::snapshot::Dist;

    fn source(dir: &Path, trees: &[&Path]) -> SnapshotSource {
        let results = Results::new(dir, &[]);
        let place = results.place(Path::new("rank-2.snapshots"));
        let trees = trees.iter().map(|path| ("data".to_owned(), (*path).to_owned())).collect();
        let rank = rank_runs().remove(2);
        let document = Document { runs: Vec::new(), complete: false, ..fixture() };
        SnapshotSource { document, rank, started: Instant::now(), trees, results, place }
    }

    /// Returns the counters after so many seconds, with as many operations for each flowop.
    fn counters(source: &SnapshotSource, seconds: u64) -> SnapshotCounters {
        let mut latency = Dist::default();
        (0..seconds).for_each(|_| latency.record(1000));
        let snapshot = Snapshot { ops: seconds, bytes: 512 * seconds, latency, ..Snapshot::default() };
        let flowops = vec![snapshot; source.rank.run.flowops.len()];
        SnapshotCounters { elapsed_ns: seconds * 1_000_000_000, flowops, intervals: Vec::new() }
    }

    /// Writes snapshots after 1 to `last` seconds. The file is removed if it is made and `is_removed`.
    fn write(source: &SnapshotSource, last: u64, is_removed: bool) {
        let (sender, queue) = sync_channel(last as usize);
        (1..=last).for_each(|second| sender.send(counters(source, second)).unwrap());
        let removed = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(move || write_all(source, &queue, removed));
            while is_removed && !source.place.path().exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            removed.store(is_removed, SeqCst);
            drop(sender);
        });
    }

    #[test]
    fn the_last_snapshot_is_read_as_a_result() {
        let dir = tempfile::tempdir().unwrap();
        write(&source(dir.path(), &[]), 5, false);
        let path = dir.path().join("rank-2.snapshots");
        let mut text = std::fs::read_to_string(&path).unwrap();
        let check = |text: &str, seconds: u64| {
            let document = json::read(text).unwrap();
            let run = &document.runs[0];
            assert_eq!((run.state, run.measured_seconds), (RunState::Interrupted, seconds as f64));
            assert!(run.flowops.iter().all(|flowop| flowop.ops == seconds), "{:?}", run.flowops);
            assert_eq!((run.ranks.len(), run.ranks[0].rank, run.ranks[0].host.as_str()), (1, 2, "h2"));
            assert!(run.ended_by.starts_with("no result of rank 2 on `h2` after "), "{}", run.ended_by);
            assert!(!document.complete);
        };
        check(&text, 5);
        // The process was killed while it wrote the last line.
        text.truncate(text.len() - 100);
        check(&text, 4);
    }

    #[test]
    fn the_file_is_removed_after_a_result_and_not_made_in_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        write(&source(dir.path(), &[]), 3, true);
        write(&source(dir.path(), &[dir.path()]), 3, false);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_snapshot_is_due_once_a_second() {
        let (counters, _queue) = sync_channel(1);
        let (_end, ended) = sync_channel(1);
        let is_removed = Arc::new(AtomicBool::new(false));
        let mut writer = SnapshotWriter { counters, is_removed, ended, next_ns: 1_000_000_000 };
        let due = |ms: &u64| writer.is_due(ms * 1_000_000);
        let found: Vec<u64> =
            [400, 900, 1000, 1100, 1980, 2000, 2900, 3001, 4000, 7500, 7900, 8000].into_iter().filter(due).collect();
        assert_eq!(found, [1000, 1980, 3001, 4000, 7500, 8000]);
    }
}
