//! What a trace says of one run, in figures that a program and its script have both.

use super::transaction::TransactionEnd;
use crate::action::CallAction;
use crate::descriptors::CopiedDescriptors;
use crate::files::Files;
use crate::names::read_names;
use crate::own_looks::holds_names_only;
use crate::pools::ThreadPools;
use crate::sets::LearnedSets;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};
use wml_trace::{CallClass, PathId, PathTable, Spread, TraceError, TraceEvent, TraceReader, TraceSummary, TracedCall};

/// Whose trace it is.
#[derive(Clone, Copy, Debug)]
pub enum TracedSide<'a> {
    /// That of the program: its file sets are learned.
    Program,
    /// That of a script, run with `WMLRUN_MARK=1` in this directory: each of its file sets is a directory below it. What counts
    /// are calls of its threads.
    Script { dir: &'a [u8] },
}

/// The names that wmlrun looks for when a run begins, when a thread has made its last operation, and when all have.
const OPENED: &[u8] = b"wmlrun annotation: gate opens";
const DONE: &[u8] = b"wmlrun annotation: thread done";
const OVER: &[u8] = b"wmlrun annotation: all threads are done";

/// A sync: its class, whether it is of a directory, and whether the file is that of the sync before.
type SyncKind = (CallClass, bool, bool);
/// When each thread ended transactions.
type TransactionEnds = BTreeMap<u32, Vec<u64>>;
/// Two syncs of a thread, one after the other.
type SyncPair = (Option<SyncKind>, SyncKind);

/// The figures of one run.
#[derive(Clone, Debug, Default)]
pub struct TracedRun {
    pub(crate) summary: TraceSummary,
    /// Transactions; 1 if the run is one as a whole.
    pub(crate) transactions: u64,
    /// True if the run is no series of transactions.
    pub is_whole: bool,
    /// True if no call that ends transactions is on the set of the header: then such a call on any file is one.
    pub is_of_any_set: bool,
    /// Nanoseconds from one transaction's end to the next one's, of each thread.
    pub(crate) latencies: Spread,
    /// Nanoseconds in which the transactions were made.
    pub(crate) span: u64,
    /// Nanoseconds between calls that the threads ran and slept; `None` if the recorder did not see it.
    pub(crate) running: Option<u64>,
    pub(crate) blocked: Option<u64>,
    pub(crate) sync_pairs: BTreeMap<SyncPair, u64>,
    /// Their mean at the ends of transactions, else at the end of the run.
    pub(crate) files: f64,
    pub(crate) directories: f64,
    pub(crate) file_sets: u64,
    /// Bytes of all calls, and of those that no flowop makes.
    pub(crate) bytes: u64,
    pub(crate) not_modelled: u64,
}

impl TracedRun {
    /// Reads a trace. Without `end` the run is one transaction.
    ///
    /// # Errors
    /// If the trace can't be read.
    pub fn read(
        mut input: impl Read + Seek,
        side: TracedSide<'_>,
        end: Option<&TransactionEnd>,
    ) -> Result<Self, TraceError> {
        let mut look = Look::new(&mut input, side)?;
        let mut figures = Self::default();
        let ends = look.ends(&mut input, side, end, &mut figures)?;
        let mut window = (look.run.opened, u64::MAX);
        figures.is_whole = ends.is_empty();
        figures.transactions = u64::from(figures.is_whole);
        if !figures.is_whole {
            let all = || ends.values().flatten().copied();
            window = (all().min().unwrap_or(0), all().max().unwrap_or(0));
            for times in ends.values() {
                times.windows(2).for_each(|pair| figures.latencies.add(pair[1].saturating_sub(pair[0])));
                figures.transactions += times.len().saturating_sub(1) as u64;
            }
        }
        figures.count(&mut input, &look, window, &ends)?;
        Ok(figures)
    }

    /// What ends the transactions of each thread is known: counts the calls between them.
    fn count(
        &mut self,
        input: &mut (impl Read + Seek),
        Look { run, pools, .. }: &Look,
        window: (u64, u64),
        ends: &TransactionEnds,
    ) -> Result<(), TraceError> {
        input.rewind()?;
        let mut reader = TraceReader::new(input)?;
        let mut ended_before: HashMap<u32, usize> = HashMap::new();
        let mut own_calls = OwnCalls::default();
        let mut copies = CopiedDescriptors::default();
        self.summary.header = reader.header().clone();
        let (mut first, mut last) = (u64::MAX, 0);
        let mut ended: HashMap<u32, u64> = HashMap::new();
        let mut synced: HashMap<u32, (SyncKind, Option<PathId>)> = HashMap::new();
        reader.for_each(|event, _| {
            let TraceEvent::Call(call) = event else { return };
            let is_seen = !copies.has(call);
            let before = ended.insert(call.thread, call.end());
            // Of a thread with transactions, what is between its first and its last one counts.
            let thread = pools.one(call.thread);
            let own = ends.get(&thread).map(|ends| (ends[0], ends[ends.len() - 1]));
            let (from, to) = own.unwrap_or(window);
            let is_own = run.threads.is_some() && own_calls.has(call);
            if !run.has(call) || call.end() <= from || call.end() > to {
                return;
            }
            // What a script computes before a call comes before the calls that the engine makes for it.
            if let (Some(between), Some(before)) = (call.between, before) {
                let gap = call.start.saturating_sub(before.max(from));
                let blocked = between.blocked.min(gap);
                *self.blocked.get_or_insert(0) += blocked;
                *self.running.get_or_insert(0) += gap.saturating_sub(blocked).saturating_sub(between.runnable);
            }
            if is_own {
                return;
            }
            (first, last) = (first.min(call.start), last.max(call.end()));
            if is_seen {
                self.summary.add(call);
            }
            self.add_sync(call, thread, &mut synced);
            // A transaction has an order of its own.
            let before = ended_before.entry(thread).or_default();
            if ends.get(&thread).and_then(|ends| ends.get(*before)).is_some_and(|end| *end <= call.end()) {
                *before += 1;
                synced.remove(&thread);
            }
        })?;
        self.span = match self.is_whole {
            true => last.saturating_sub(first.min(last)),
            false => window.1.saturating_sub(window.0),
        };
        Ok(())
    }

    fn add_sync(&mut self, call: &TracedCall, thread: u32, synced: &mut HashMap<u32, (SyncKind, Option<PathId>)>) {
        let class = call.kind.get().class;
        if !class.syncs() {
            return;
        }
        let last = synced.get(&thread).copied();
        let kind = (class, call.is_on_directory(), last.is_some_and(|(_, path)| path == call.path));
        *self.sync_pairs.entry((last.map(|(kind, _)| kind), kind)).or_default() += 1;
        synced.insert(thread, (kind, call.path));
    }

    /// Nanoseconds in calls and between them, over all threads, without the time that they waited for a processor.
    pub(crate) fn busy_time(&self) -> u64 {
        self.summary.time() + self.running.unwrap_or(0) + self.blocked.unwrap_or(0)
    }

    /// All syncs.
    pub(crate) fn syncs(&self) -> u64 {
        self.sync_pairs.values().sum()
    }
}

/// What is known of the names in a trace.
struct Look {
    files: Files,
    /// Those of a program.
    sets: Option<LearnedSets>,
    /// Threads of a program that are one in its script.
    pools: ThreadPools,
    run: AnnotatedRun,
}

/// When the run of a script began, and the threads that made its operations, each with when it ended.
#[derive(Debug, Default)]
struct AnnotatedRun {
    opened: u64,
    /// `None` of a program: all its calls count.
    threads: Option<HashMap<u32, u64>>,
    is_over: bool,
}

impl AnnotatedRun {
    /// True if a call is an annotation, which is taken.
    fn takes_annotation(&mut self, call: &TracedCall, paths: &PathTable) -> bool {
        let Some(threads) = &mut self.threads else { return false };
        match call.path.map(|path| paths.name(path)) {
            Some(OPENED) => self.opened = call.end(),
            Some(DONE) => drop(threads.insert(call.thread, call.start)),
            Some(OVER) => self.is_over = true,
            _ => return false,
        }
        true
    }

    /// True for a call of the run, once all annotations are taken.
    fn has(&self, call: &TracedCall) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.get(&call.thread).is_some_and(|end| call.end() <= *end))
    }
}

impl Look {
    fn new(input: &mut (impl Read + Seek), side: TracedSide<'_>) -> Result<Self, TraceError> {
        input.rewind()?;
        let mut reader = TraceReader::new(&mut *input)?;
        let (files, sets, pools) = match side {
            TracedSide::Program => {
                let (files, sets, pools) = read_names(&mut reader)?;
                (files, Some(sets), pools)
            }
            // The tree is known when the first calls are.
            TracedSide::Script { .. } => {
                let mut files = Files::new(!reader.header().under.is_empty());
                reader.block()?;
                files.add_tree(reader.tree());
                (files, None, ThreadPools::default())
            }
        };
        let threads = matches!(side, TracedSide::Script { .. }).then(HashMap::new);
        Ok(Self { files, sets, pools, run: AnnotatedRun { threads, ..AnnotatedRun::default() } })
    }

    /// When each thread ended transactions; none if there is no such call. Counts files and what no flowop makes.
    fn ends(
        &mut self,
        input: &mut (impl Read + Seek),
        side: TracedSide<'_>,
        end: Option<&TransactionEnd>,
        figures: &mut TracedRun,
    ) -> Result<TransactionEnds, TraceError> {
        input.rewind()?;
        let mut reader = TraceReader::new(input)?;
        let (mut of_set, mut of_any) = (EndsOfThreads::default(), EndsOfThreads::default());
        let mut copies = CopiedDescriptors::default();
        // How many files and directories came.
        let mut came = [0i64; 2];
        let under: Vec<Vec<u8>> = match side {
            TracedSide::Program => reader.header().under.iter().map(|dir| dir.as_bytes().to_vec()).collect(),
            TracedSide::Script { dir } => vec![dir.to_vec()],
        };
        reader.for_each(|event, paths| {
            let TraceEvent::Call(call) = event else { return };
            // Then the files of a script are removed.
            if self.run.takes_annotation(call, paths) || self.run.is_over {
                return;
            }
            // The first thread of a script makes the files.
            let is_measured = self.run.threads.is_none() || self.run.opened > 0 && call.thread != call.process;
            let (action, changes) = self.step(call);
            (0..2).for_each(|kind| came[kind] += changes[kind]);
            if copies.has(call) {
                return;
            }
            let moved = call.bytes().unwrap_or(0);
            figures.bytes = figures.bytes.saturating_add(moved);
            if action.is_none() {
                figures.not_modelled = figures.not_modelled.saturating_add(moved);
            }
            let (Some(action), Some(path), Some(end)) = (action, call.path, end) else { return };
            // `appendfile` writes by `pwritev2`, which is otherwise a write of vectors.
            let is_append = self.run.threads.is_some() && call.kind.get().name == "pwritev2";
            let action = if is_append { CallAction::Write } else { action };
            let is_end = end.is(action) && is_measured;
            // The engine may look at a file by itself, which separates no calls in a row.
            if !is_end && matches!(action, CallAction::StatPath | CallAction::StatMissing | CallAction::StatOpen) {
                return;
            }
            let is_of_set = is_end
                && match &self.sets {
                    Some(sets) => sets.of(path).is_some_and(|n| sets.sets[usize::from(n)].name == end.set),
                    None => set_of(&paths.path(path), &under[0]).is_some_and(|set| set == end.set.as_bytes()),
                };
            let thread = self.pools.one(call.thread);
            of_any.step((thread, call.end()), is_end, end.of_runs, came);
            of_set.step((thread, call.end()), is_of_set, end.of_runs, came);
        })?;
        figures.is_of_any_set = of_set.times.is_empty() && !of_any.times.is_empty();
        let found = if figures.is_of_any_set { of_any } else { of_set };
        self.count_files(reader.paths(), &under, found.came_since(came), figures);
        // A single one begins no other.
        let has_several = found.times.values().any(|ends| ends.len() > 1);
        Ok(if has_several { found.times } else { TransactionEnds::new() })
    }

    /// Follows what a call changes. Returns what it does, and how many files and directories came by it.
    fn step(&mut self, call: &TracedCall) -> (Option<CallAction>, [i64; 2]) {
        let before = self.files.before(call);
        self.files.apply(call, before);
        let mut came = [0i64; 2];
        let existed = [(call.path, before.exists), (call.second_path, before.second_exists)];
        for (path, existed) in existed.into_iter().filter_map(|(path, existed)| Some((path?, existed))) {
            let facts = self.files.get(path);
            came[usize::from(facts.is_dir)] += i64::from(facts.exists) - i64::from(existed);
        }
        (CallAction::of(call, before), came)
    }
}

/// The ends of transactions as they are found, with the files that came until each of them.
#[derive(Debug, Default)]
struct EndsOfThreads {
    times: TransactionEnds,
    /// The threads whose last call was one, with the files that had come then.
    in_row: HashMap<u32, [i64; 2]>,
    count: i64,
    sums: [i64; 2],
}

impl EndsOfThreads {
    /// Takes a call of a thread, with its end. Of calls in a row the last one counts, if the transaction ends with several.
    fn step(&mut self, (thread, end): (u32, u64), is_end: bool, of_runs: bool, came: [i64; 2]) {
        if !is_end {
            self.in_row.remove(&thread);
            return;
        }
        let times = self.times.entry(thread).or_default();
        if let Some(before) = self.in_row.insert(thread, came).filter(|_| of_runs) {
            times.pop();
            self.count -= 1;
            (0..2).for_each(|kind| self.sums[kind] -= before[kind]);
        }
        times.push(end);
        self.count += 1;
        (0..2).for_each(|kind| self.sums[kind] += came[kind]);
    }

    /// How many more files and directories there are at the end than at the mean transaction.
    fn came_since(&self, came: [i64; 2]) -> [f64; 2] {
        let mean = |kind: usize| self.sums[kind] as f64 / self.count as f64;
        [0, 1].map(|kind| if self.count > 0 { came[kind] as f64 - mean(kind) } else { 0.0 })
    }
}

impl Look {
    /// Counts the files and directories that are below the directories at the end, less so many.
    fn count_files(&self, paths: &PathTable, under: &[Vec<u8>], less: [f64; 2], figures: &mut TracedRun) {
        let is_script = self.sets.is_none();
        let mut counts = less.map(|n| -n);
        for (path, facts) in self.files.all().filter(|(_, facts)| facts.exists) {
            // Other files below the directory are none of the program's.
            if self.sets.as_ref().is_some_and(|sets| !sets.is_near(path, paths)) {
                continue;
            }
            let text = paths.path(path);
            let below =
                under.iter().find_map(|dir| below(&text, dir)).or_else(|| under.is_empty().then_some(&text[..]));
            let Some(below) = below.filter(|below| !below.is_empty()) else { continue };
            // The marker of its sets is no file of a script.
            if is_script && below.split(|byte| *byte == b'/').any(|name| name.starts_with(b".")) {
                continue;
            }
            figures.file_sets += u64::from(is_script && facts.is_dir && !below.contains(&b'/'));
            counts[usize::from(facts.is_dir)] += 1.0;
        }
        [figures.files, figures.directories] = counts;
    }
}

/// Calls that the engine makes by itself in a thread of a script: no flowop is it. It opens each directory to look up
/// names in it, when it needs it first, and looks at a name or an open file at times, by `statx`, which no flowop makes.
#[derive(Debug, Default)]
struct OwnCalls {
    /// The directories that each thread has open for that, with how often it has them open to read them.
    open: HashMap<(u32, PathId), u32>,
    /// What each thread opened in its last call.
    opened: HashMap<u32, PathId>,
}

impl OwnCalls {
    /// True for such a call.
    fn has(&mut self, call: &TracedCall) -> bool {
        let opened = self.opened.remove(&call.thread);
        let Some(path) = call.path else { return false };
        let directory = (call.thread, path);
        match call.kind.get().class {
            CallClass::Open if holds_names_only(call) => {
                if call.result >= 0 {
                    self.opened.insert(call.thread, path);
                    self.open.entry(directory).or_default();
                }
                true
            }
            CallClass::Open if call.result >= 0 => {
                self.open.entry(directory).and_modify(|readers| *readers += 1);
                false
            }
            CallClass::Fstat => opened == Some(path) || call.kind.get().name == "fstatx",
            CallClass::Stat => call.kind.get().name == "statx",
            CallClass::Close => match self.open.get_mut(&directory) {
                Some(readers @ 1..) => {
                    *readers -= 1;
                    false
                }
                found => found.is_some(),
            },
            _ => false,
        }
    }
}

/// What follows the directory in a path.
fn below<'p>(path: &'p [u8], dir: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(dir)?;
    rest.strip_prefix(b"/").or_else(|| rest.is_empty().then_some(rest))
}

/// The file set of a script that a path is in.
fn set_of<'p>(path: &'p [u8], dir: &[u8]) -> Option<&'p [u8]> {
    below(path, dir)?.split(|byte| *byte == b'/').next()
}
