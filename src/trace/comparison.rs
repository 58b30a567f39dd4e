//! What differs between two traces, in words.

use super::kind::{CALL_CLASSES, CallClass};
use super::summary::{ClassFigures, TraceSummary};
use super::summary_sheet::quantile_size;
use wml_text::count::{count, fixed, grouped, measured};

/// A class with a smaller share of the calls of both traces has no say, unless it syncs or takes time.
const SMALLEST_SHARE: f64 = 0.001;
/// The same of the time; and of both for a class that one trace lacks.
pub(crate) const SMALL_SHARE: f64 = 0.01;
/// How much a number may differ, as a factor.
const SAME: f64 = 1.15;
/// How many standard deviations of a count that is drawn it has to differ too.
const DEVIATIONS: f64 = 4.0;

pub(crate) fn is_same(ratio: f64) -> bool {
    (1.0 / SAME..=SAME).contains(&ratio)
}

/// What matters most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Importance {
    Class,
    Threads,
    Syncs,
}

/// A difference, with the share of the calls or of the time that it is about.
type TraceDifference = (Importance, f64, String);

/// Two traces, A and B.
#[derive(Debug)]
pub struct TraceComparison<'t> {
    pub(crate) sides: [&'t TraceSummary; 2],
    /// How many calls B has for one of A in classes with at least half of the calls: B may have run longer. `None` if there is
    /// no such factor.
    pub(crate) work: Option<f64>,
    /// The figures of a class that a side lacks.
    none: ClassFigures,
    /// What differs, the most telling first.
    pub differences: Vec<String>,
}

impl<'t> TraceComparison<'t> {
    pub fn of(a: &'t TraceSummary, b: &'t TraceSummary) -> Self {
        let mut comparison = Self { sides: [a, b], work: None, none: ClassFigures::default(), differences: Vec::new() };
        let are_empty = [a, b].map(|side| side.calls() == 0);
        if are_empty[0] != are_empty[1] {
            comparison.differences = vec![format!("{} has no calls", if are_empty[0] { "A" } else { "B" })];
            return comparison;
        }
        comparison.work = comparison.agreement();
        // Those of directories are counted in their class too, and explain it.
        let mut found: Vec<TraceDifference> =
            comparison.directory_syncs().into_iter().chain(comparison.synchronous_writes()).collect();
        found.extend(comparison.telling().into_iter().flat_map(|class| comparison.class(class)));
        found.extend(comparison.threads());
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        comparison.differences = found.into_iter().map(|(.., text)| text).collect();
        comparison
    }

    pub(crate) fn figures(&self, class: CallClass) -> [&ClassFigures; 2] {
        self.sides.map(|side| side.classes.get(&class).unwrap_or(&self.none))
    }

    /// True if times can be compared: each recorder has a cost of its own, which is part of them.
    pub(crate) fn has_times(&self) -> bool {
        let [a, b] = self.sides.map(|side| &side.header.recorder);
        a == b
    }

    /// The greater share of a class in the calls of a side, and in its time.
    fn shares(&self, class: CallClass) -> (f64, f64) {
        let time = |side: &TraceSummary| if self.has_times() { side.time_share(class) } else { 0.0 };
        let [a, b] = self.sides.map(|side| (side.share(class), time(side)));
        (a.0.max(b.0), a.1.max(b.1))
    }

    /// The classes that have a say.
    fn telling(&self) -> Vec<CallClass> {
        let is_telling = |class: &CallClass| {
            // One recorder sees what another can't: page faults, and where mappings end.
            let is_seen = !matches!(class, CallClass::Fault | CallClass::Map) || self.has_times();
            let (calls, time) = self.shares(*class);
            is_seen && (class.syncs() || calls >= SMALLEST_SHARE || time >= SMALL_SHARE)
        };
        CALL_CLASSES.iter().map(|(class, ..)| *class).filter(is_telling).collect()
    }

    /// The median of the factors between the counts of a class, if enough classes have it.
    fn agreement(&self) -> Option<f64> {
        let ratio = |class: CallClass| {
            let [a, b] = self.figures(class).map(|figures| figures.calls as f64);
            let shares = self.sides.map(|side| side.share(class));
            (a > 0.0 && b > 0.0).then_some((b / a, shares))
        };
        let mut ratios: Vec<(f64, [f64; 2])> = self.telling().into_iter().filter_map(ratio).collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let weight = |shares: &[f64; 2]| shares[0].min(shares[1]).sqrt();
        let half = ratios.iter().map(|(_, shares)| weight(shares)).sum::<f64>() / 2.0;
        let mut before = 0.0;
        let (median, _) = *ratios.iter().find(|(_, shares)| {
            before += weight(shares);
            before >= half
        })?;
        let agreeing = ratios.iter().filter(|(ratio, _)| is_same(ratio / median));
        let shares = agreeing.fold([0.0, 0.0], |sum, (_, shares)| [sum[0] + shares[0], sum[1] + shares[1]]);
        shares.iter().all(|share| *share >= 0.5).then_some(median)
    }

    /// True if one count is not explained by the other, and by more work.
    pub(crate) fn differs(&self, [a, b]: [u64; 2]) -> bool {
        let (expected, b) = (a as f64 * self.work.unwrap_or(1.0), b as f64);
        // Where other counts are the same, this one is not drawn.
        let deviations = if self.work.is_none_or(|work| (work - 1.0).abs() < f64::EPSILON) { 0.0 } else { DEVIATIONS };
        !is_same(b / expected) && (b - expected).abs() > deviations * expected.max(b).sqrt()
    }

    /// What is more or less than more work explains, as a part of all.
    pub(crate) fn change(&self, [a, b]: [u64; 2], of: fn(&TraceSummary) -> u64) -> f64 {
        let work = self.work.unwrap_or(1.0);
        let whole = (of(self.sides[0]) as f64 * work).max(of(self.sides[1]) as f64);
        (b as f64 - a as f64 * work).abs() / whole.max(1.0)
    }

    /// What differs in the calls of a class.
    fn class(&self, class: CallClass) -> Vec<TraceDifference> {
        let importance = if class.syncs() { Importance::Syncs } else { Importance::Class };
        let figures = self.figures(class);
        let calls = [figures[0].calls, figures[1].calls];
        let (of_calls, of_time) = self.shares(class);
        let times = [figures[0].time, figures[1].time];
        // Syncs are compared by their counts.
        let has_say = self.has_times() && importance == Importance::Class;
        let of_time_changed = if has_say { self.change(times, TraceSummary::time) } else { 0.0 };
        let changed = self.change(calls, TraceSummary::calls).max(of_time_changed);
        let counts = match calls {
            [0, 0] => None,
            [0, n] | [n, 0] => {
                let is_much = class.syncs() || of_calls.max(of_time) >= SMALL_SHARE;
                let (has, lacks) = if calls[0] == 0 { ("B", "A") } else { ("A", "B") };
                is_much.then(|| format!("{has} makes {}, {lacks} none", named_calls(n, class)))
            }
            [a, b] => self.differs(calls).then(|| {
                let rates = self.rates(calls);
                format!("B makes {}{}, A {}{}", named_calls(b, class), rates[1], grouped(a), rates[0])
            }),
        };
        let counts = counts.map(|text| (importance, changed, text));
        let sizes = self.size_difference(class).map(|text| (importance, of_calls, text));
        counts.into_iter().chain(sizes).collect()
    }

    /// The rates of two counts, in brackets, if one side did more work in another time: then the counts alone say little.
    fn rates(&self, calls: [u64; 2]) -> [String; 2] {
        let seconds = self.sides.map(TraceSummary::seconds);
        let has_rates = self.has_times() && self.work.is_some_and(|work| !is_same(work));
        if !has_rates || seconds.contains(&0.0) || is_same(seconds[1] / seconds[0]) {
            return [String::new(), String::new()];
        }
        [0, 1].map(|n| format!(" ({} a second)", measured(calls[n] as f64 / seconds[n])))
    }

    fn size_difference(&self, class: CallClass) -> Option<String> {
        let sizes = self.figures(class).map(|figures| &figures.sizes);
        [(0.5, "median"), (0.9, "90 % quantile")].into_iter().find_map(|(share, what)| {
            let [a, b] = [sizes[0].quantile(share)?, sizes[1].quantile(share)?];
            let [in_a, in_b] = sizes.map(|sizes| quantile_size(sizes, share));
            let text = || format!("{} calls move {in_b} in B, {in_a} in A ({what})", class.name());
            (!is_same((b as f64 + 1.0) / (a as f64 + 1.0))).then(text)
        })
    }

    /// A difference between two counts of syncs: what one side alone does, and what both do more or less often.
    fn syncs(
        &self,
        counts: [u64; 2],
        alone: impl Fn(&str, &str, u64) -> String,
        both: impl Fn(u64, u64) -> String,
    ) -> Option<TraceDifference> {
        let text = match counts {
            [0, 0] => return None,
            [0, n] => alone("B", "A", n),
            [n, 0] => alone("A", "B", n),
            [a, b] if self.differs(counts) => both(a, b),
            _ => return None,
        };
        Some((Importance::Syncs, self.change(counts, TraceSummary::calls), text))
    }

    fn directory_syncs(&self) -> Option<TraceDifference> {
        let sides = self.sides.map(|side| {
            let syncing = side.classes.iter().filter(|(class, _)| class.syncs());
            syncing.map(|(_, figures)| figures).collect::<Vec<_>>()
        });
        // An import does not know what is a directory.
        if sides.iter().any(|side| !side.is_empty() && side.iter().all(|figures| figures.of_known_type == 0)) {
            return None;
        }
        let syncs: [u64; 2] = [0, 1].map(|n| sides[n].iter().map(|figures| figures.on_directories).sum());
        let alone =
            |has: &str, lacks: &str, n| format!("{has} syncs directories ({}), {lacks} does not", count(n, "call"));
        let both = |a, b| format!("B syncs directories {} times, A {}", grouped(b), grouped(a));
        self.syncs(syncs, alone, both)
    }

    fn synchronous_writes(&self) -> Option<TraceDifference> {
        let writes = self.sides.map(|side| side.classes.values().map(|figures| figures.synchronous).sum::<u64>());
        let named = |n| count(n, "synchronous write");
        let alone = |has: &str, lacks: &str, n| format!("{has} makes {} (O_SYNC or O_DSYNC), {lacks} none", named(n));
        self.syncs(writes, alone, |a, b| format!("B makes {}, A {}", named(b), grouped(a)))
    }

    fn threads(&self) -> Option<TraceDifference> {
        let [a, b] = self.sides.map(|side| side.working_threads() as u64);
        let text = || {
            let threads = count(b, "thread");
            format!("B has {threads} with a thousandth of the calls or more, A {}", grouped(a))
        };
        (a != b).then(|| (Importance::Threads, 0.0, text()))
    }

    /// How much more work one side did, as a sentence.
    pub(crate) fn work_sentence(&self) -> Option<String> {
        let work = self.work.filter(|work| !is_same(*work))?;
        let (more, less, factor) = if work > 1.0 { ("B", "A", work) } else { ("A", "B", 1.0 / work) };
        let factor = fixed(factor, 1);
        Some(format!(
            "{more} did {factor} times the work of {less}: most classes have {factor} times the calls. Only what departs from \
            that is called different."
        ))
    }
}

fn named_calls(n: u64, class: CallClass) -> String {
    count(n, &format!("{} call", class.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::TracedCall;
    use crate::format::tests::Numbers;
    use crate::kind::KindId;

    /// How a program behaves.
    #[derive(Clone, Copy)]
    struct Version {
        syncs: u64,
        size: u64,
        looks: bool,
        threads: u32,
        syncs_directory: bool,
    }

    const OLD: Version = Version { syncs: 1, size: 4096, looks: true, threads: 3, syncs_directory: false };

    /// The trace of so many transactions, whose counts and sizes vary.
    fn trace(version: Version, transactions: u64, seed: u64) -> TraceSummary {
        let mut numbers = Numbers(seed | 1);
        let mut summary = TraceSummary::default();
        let mut now = 0;
        for n in 0..transactions {
            let thread = n as u32 % version.threads;
            let mut call = |name: &str, result: u64, mode: u32| {
                let duration = 1000 + numbers.next() % 5000;
                now += duration + numbers.next() % 10_000;
                summary.add(&TracedCall {
                    start: now,
                    duration,
                    thread,
                    kind: KindId::named(name).unwrap_or_default(),
                    result: result as i64,
                    mode: Some(mode),
                    ..TracedCall::default()
                });
                numbers.next()
            };
            let reads = 2 + call("lseek", 0, libc::S_IFREG) % 3;
            for _ in 0..reads {
                call("pread64", 8192, libc::S_IFREG);
            }
            if version.looks {
                call("stat", 0, libc::S_IFREG);
            }
            call("pwrite64", version.size, libc::S_IFREG);
            for _ in 0..version.syncs {
                call("fsync", 0, libc::S_IFREG);
            }
            if version.syncs_directory {
                call("fsync", 0, libc::S_IFDIR);
            }
        }
        summary.span = now;
        summary
    }

    #[test]
    fn each_planted_change_is_named_and_none_without_one() {
        let changes: [(Version, &str); 6] = [
            (Version { syncs: 2, ..OLD }, "B makes 2,800 fsync calls ("),
            (Version { size: 8192, ..OLD }, "write calls move 8 KiB in B, 4 KiB in A (median)"),
            (Version { looks: false, ..OLD }, "A makes 1,000 stat calls, B none"),
            (Version { threads: 4, ..OLD }, "B has 4 threads with a thousandth of the calls or more, A 3"),
            (Version { syncs_directory: true, ..OLD }, "B syncs directories"),
            (Version { syncs: 0, ..OLD }, "A makes 1,000 fsync calls, B none"),
        ];
        for seed in 1..=4 {
            // B runs for another time than A.
            let old = trace(OLD, 1000, seed);
            let again = trace(OLD, 1400, seed + 100);
            assert_eq!(TraceComparison::of(&old, &again).differences, Vec::<String>::new(), "{seed}");
            for (new, text) in changes {
                let new = trace(new, 1400, seed + 200);
                let found = TraceComparison::of(&old, &new).differences;
                assert!(found.first().is_some_and(|first| first.contains(text)), "{text}: {found:?}");
            }
        }
    }

    /// A trace of so many calls of each kind.
    fn counted(calls: &[(&str, u64)]) -> TraceSummary {
        let mut summary = TraceSummary::default();
        for (name, count) in calls {
            let kind = KindId::named(name).unwrap_or_default();
            let call = TracedCall { kind, duration: 1000, mode: Some(libc::S_IFREG), ..TracedCall::default() };
            (0..*count).for_each(|_| summary.add(&call));
        }
        summary
    }

    #[test]
    fn syncs_come_first_although_others_change_more() {
        // sqlite by a journal, and by a log.
        let a = counted(&[
            ("pwrite64", 5000),
            ("fcntl_lock", 2400),
            ("pread64", 1200),
            ("fdatasync", 804),
            ("unlink", 201),
        ]);
        let b = counted(&[("pwrite64", 1000), ("fcntl_lock", 1900), ("pread64", 900), ("fdatasync", 209), ("mmap", 3)]);
        let found = TraceComparison::of(&a, &b);
        let expected = [
            "B makes 209 fdatasync calls, A 804",
            "B makes 1,000 write calls, A 5,000",
            "B makes 1,900 lock calls, A 2,400",
            "B makes 900 read calls, A 1,200",
            "A makes 201 unlink calls, B none",
        ];
        assert_eq!((found.differences, found.work), (expected.map(str::to_owned).to_vec(), None));
    }

    #[test]
    fn a_single_sync_is_told_where_all_else_is_the_same() {
        let a = counted(&[("read", 40), ("write", 40), ("fsync", 1)]);
        let b = counted(&[("read", 40), ("write", 40), ("fsync", 2)]);
        assert_eq!(TraceComparison::of(&a, &b).differences, ["B makes 2 fsync calls, A 1"]);
        assert_eq!(TraceComparison::of(&a, &counted(&[])).differences, ["B has no calls"]);
    }

    #[test]
    fn what_differs_between_the_recordings_is_a_condition() {
        let mut sides = [trace(OLD, 10, 1), trace(OLD, 10, 1)];
        let conditions =
            |sides: &[TraceSummary; 2]| TraceComparison::of(&sides[0], &sides[1]).sheet(["a", "b"]).answer.conditions;
        assert_eq!(conditions(&sides), Vec::<String>::new());
        let known = |text: &str| Some(text.to_owned());
        for (side, device) in sides.iter_mut().zip(["/dev/sda1", "/dev/sdb1"]) {
            (side.header.file_system, side.header.device) = (known("ext4"), known(device));
        }
        // What one side does not know does not differ.
        sides[0].header.mount_options = known("rw,noatime");
        sides[1].header.under = vec!["/db".to_owned()];
        let differs = "differs: files (A all but those of the system, B below /db); device (A /dev/sda1, B /dev/sdb1)";
        assert_eq!(conditions(&sides), [differs]);
        sides[0].header.hashes_names = true;
        assert_eq!(conditions(&sides), ["differs: device (A /dev/sda1, B /dev/sdb1)"]);
    }
}
