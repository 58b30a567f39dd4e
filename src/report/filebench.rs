//! The output formats of Filebench 1.5, 1.4.9 and 1.4, for scripts that parse them. Not here: the files of `stats dump`
//! and its variants (`dumps`).
//!
//! Lines, widths and order are those of Filebench (flowops in reverse order of definition). Figures differ where those
//! of Filebench are wrong: latency is the mean over all I/O operations, times are from a monotonic clock, flowops with
//! equal names are separate, and counters have 64 bits. Log lines begin with the seconds since the start, in 1.4 with
//! the process number before them. The summary of 1.4 begins on a line after its prefix, so that `^IO Summary` matches;
//! that of 1.4.9 is on the line of its prefix. As in Filebench a line `Running...` precedes the figures of a run, and
//! `Shutting down processes` is the last one: programs count lines from both ends. A composite has a row of zeros.

use super::{Report, ReportInfo};
use crate::result::hdr;
use crate::result::layout;
use crate::result::{Document, FlowopResult, Run, Summary};
use crate::util::size::MIB;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

/// `--format filebench`: the output of Filebench 1.5.
pub(crate) struct Filebench15;

/// `--format filebench-1.4`: the output of Filebench 1.4 up to 1.4.8; and `--format filebench-1.4.9`.
pub(crate) struct Filebench14 {
    /// Whether it is the output of 1.4.9 and 1.4.9.1.
    pub is_149: bool,
}

/// The text of the line before the figures of a run.
const RUNNING: &str = "Running...";

/// The text of the last line.
const SHUTTING_DOWN: &str = "Shutting down processes";

/// Number of buckets of Filebench's histogram: 0 ns, then powers of two.
const LATHIST: usize = 64;

impl Report for Filebench15 {
    fn info(&self) -> ReportInfo {
        let about = "the output format of Filebench 1.5";
        ReportInfo { of_filebench: true, ..ReportInfo::for_people("filebench", about) }
    }

    fn started(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = with_result(document, index) else { return Ok(()) };
        writeln!(out, "{:.3}: {RUNNING}", started_seconds(run))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = with_result(document, index) else { return Ok(()) };
        let at = run.finished_seconds;
        writeln!(out, "{at:.3}: Run took {:.0} seconds...", run.measured_seconds.round())?;
        breakdown_15(run, out)?;
        writeln!(out, "{at:.3}: {SHUTTING_DOWN}")
    }

    fn interim(&self, document: &Document, _apart: bool, out: &mut dyn Write) -> io::Result<()> {
        document.runs.first().map_or(Ok(()), |run| breakdown_15(run, out))
    }
}

/// Returns a run if it has a result: a program that reads the figures would take those of any other run for valid ones.
fn with_result(document: &Document, index: usize) -> Option<&Run> {
    document.runs.get(index).filter(|run| run.has_result())
}

/// Returns the time at which the measurement of a run started.
fn started_seconds(run: &Run) -> f64 {
    (run.finished_seconds - run.measured_seconds).max(0.0)
}

/// Returns the rows of a breakdown in Filebench's order, the reverse of that of definition. Each use of a composite has
/// an empty row behind those of its flowops, unless its operations are counted themselves, as those of a transaction.
pub(super) fn rows(run: &Run) -> impl Iterator<Item = Cow<'_, FlowopResult>> {
    let own_rows: HashSet<_> =
        run.flowops.iter().map(|flowop| (&flowop.process, &flowop.thread, &flowop.name)).collect();
    let mut rows: Vec<Cow<'_, FlowopResult>> = Vec::with_capacity(run.flowops.len());
    let mut before: Option<&FlowopResult> = None;
    for flowop in &run.flowops {
        let is_same_thread =
            |other: &&FlowopResult| (&other.process, &other.thread) == (&flowop.process, &flowop.thread);
        let around = before.filter(is_same_thread).map_or(&[][..], |before| &before.composites);
        let shared = flowop.composites.iter().zip(around).take_while(|(own, other)| own == other).count();
        for depth in shared..flowop.composites.len() {
            let name = flowop.composites[..=depth].join(".");
            if !own_rows.contains(&(&flowop.process, &flowop.thread, &name)) {
                rows.push(Cow::Owned(FlowopResult { name, ..FlowopResult::default() }));
            }
        }
        rows.push(Cow::Borrowed(flowop));
        before = Some(flowop);
    }
    rows.into_iter().rev()
}

/// Adds the bytes of directory listings to the rates of data, as Filebench does.
pub(super) fn with_listings(run: Cow<'_, Run>) -> Cow<'_, Run> {
    if run.summary.listed_bytes == 0 {
        return run;
    }
    // The time of a flowop's phase follows from its number and rate of operations.
    let rate = |bytes: u64, ops: u64, ops_per_s: f64| match ops {
        0 => 0.0,
        _ => bytes as f64 * ops_per_s / ops as f64 / MIB,
    };
    let mut run = run.into_owned();
    for f in &mut run.flowops {
        f.mib_per_s += rate(f.listed_bytes, f.ops, f.ops_per_s);
    }
    let s = &mut run.summary;
    s.mib_per_s += rate(s.listed_bytes, s.ops, s.ops_per_s);
    Cow::Owned(run)
}

/// Writes the breakdown and summary of 1.5, also as an interim report of `psrun`. Log lines begin with
/// `finished_seconds`.
pub(crate) fn breakdown_15(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::format::visible_run(run));
    let at = run.finished_seconds;
    writeln!(out, "{at:.3}: Per-Operation Breakdown")?;
    for flowop in rows(run) {
        let ms = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e6;
        write!(
            out,
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.3}ms/op [{:.3}ms - {:.3}ms]",
            flowop.name,
            flowop.ops,
            flowop.ops_per_s,
            flowop.mib_per_s,
            mean_ms(&flowop),
            ms(flowop.latency_ns.min),
            ms(flowop.latency_ns.max),
        )?;
        if run.lathist {
            let counts = lathist(&flowop).map(|n| n.to_string());
            write!(out, "\t[ {} ]", counts.join(" "))?;
        }
        writeln!(out)?;
    }
    let Summary { ops, ops_per_s, reads_per_s, writes_per_s, mib_per_s, latency_ms, .. } = run.summary;
    let (rates, ms) =
        (format!("{ops_per_s:>5.3} ops/s {reads_per_s:.0}/{writes_per_s:.0} rd/wr"), latency_ms.unwrap_or(0.0));
    writeln!(out, "{at:.3}: IO Summary: {ops:>5} ops {rates} {mib_per_s:>5.1}mb/s {ms:>5.3}ms/op")
}

/// Returns the counts of [0, 0], then [2ⁱ⁻¹, 2ⁱ) nanoseconds. They are exact, since no bucket of the HDR layout crosses
/// a power of two.
fn lathist(flowop: &FlowopResult) -> [u64; LATHIST] {
    let mut counts = [0; LATHIST];
    if let Ok(dist) = hdr::decode(&flowop.histogram) {
        for (index, n) in dist.recorded() {
            counts[(u64::BITS - layout::lowest(index).leading_zeros()) as usize] += n;
        }
    }
    counts
}

pub(super) fn mean_ms(flowop: &FlowopResult) -> f64 {
    flowop.latency_ns.mean.unwrap_or(0.0) / 1e6
}

impl Report for Filebench14 {
    fn info(&self) -> ReportInfo {
        let (name, about) = match self.is_149 {
            true => ("filebench-1.4.9", "the output format of Filebench 1.4.9 and 1.4.9.1"),
            false => ("filebench-1.4", "the output format of Filebench 1.4 up to 1.4.8"),
        };
        ReportInfo { of_filebench: true, ..ReportInfo::for_people(name, about) }
    }

    fn started(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = with_result(document, index) else { return Ok(()) };
        writeln!(out, "{:>5}: {:.3}: {RUNNING}", document.process_id, started_seconds(run))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = with_result(document, index) else { return Ok(()) };
        let prefix = format!("{:>5}: {:.3}", document.process_id, run.finished_seconds);
        writeln!(out, "{prefix}: Run took {:.0} seconds...", run.measured_seconds.round())?;
        self.breakdown(document, run, out)?;
        writeln!(out, "{prefix}: {SHUTTING_DOWN}")
    }

    fn interim(&self, document: &Document, _apart: bool, out: &mut dyn Write) -> io::Result<()> {
        document.runs.first().map_or(Ok(()), |run| self.breakdown(document, run, out))
    }
}

impl Filebench14 {
    fn breakdown(&self, document: &Document, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        let write = if self.is_149 { breakdown_149 } else { breakdown_14 };
        write(document.process_id, run, out)
    }
}

/// Writes the breakdown and summary of 1.4.9: with the operations of each flowop, and its shortest and longest latency.
fn breakdown_149(process: u32, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::format::visible_run(run));
    let prefix = format!("{process:>5}: {:.3}: ", run.finished_seconds);
    writeln!(out, "{prefix}Per-Operation Breakdown")?;
    for flowop in rows(run) {
        // Whole milliseconds, without rounding up.
        let ms = |ns: Option<u64>| ns.unwrap_or(0) / 1_000_000;
        writeln!(
            out,
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.1}ms/op {:>8.0}us/op-cpu [{}ms - {}ms]",
            flowop.name,
            flowop.ops,
            flowop.ops_per_s,
            flowop.mib_per_s,
            mean_ms(&flowop),
            // Not measured.
            0.0,
            ms(flowop.latency_ns.min),
            ms(flowop.latency_ns.max),
        )?;
    }
    let Summary { ops, ops_per_s, reads_per_s, writes_per_s, mib_per_s, .. } = run.summary;
    let (cpu, ms) = (cpu_us(run), run.summary.latency_ms.unwrap_or(0.0));
    let rates = format!("{ops_per_s:.3} ops/s, ({reads_per_s:.0}/{writes_per_s:.0} r/w), {mib_per_s:>5.1}mb/s");
    writeln!(out, "{prefix}IO Summary: {ops:>5} ops, {rates}, {cpu:>6.0}us cpu/op, {ms:>5.1}ms latency")
}

/// Writes the breakdown and summary of 1.4, also for `stats snap`.
pub(crate) fn breakdown_14(process: u32, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::format::visible_run(run));
    let prefix = format!("{process:>5}: {:.3}: ", run.finished_seconds);
    writeln!(out, "{prefix}Per-Operation Breakdown")?;
    lines_14(run, out)?;
    let Summary { ops, ops_per_s, reads_per_s, writes_per_s, mib_per_s, .. } = run.summary;
    let (cpu, ms) = (cpu_us(run), run.summary.latency_ms.unwrap_or(0.0));
    let rates = format!("{ops_per_s:>5.1} ops/s, ({reads_per_s:.0}/{writes_per_s:.0} r/w) {mib_per_s:>5.1}mb/s");
    writeln!(out, "\n{prefix}\nIO Summary:      {ops:>5} ops, {rates}, {cpu:>6.0}us cpu/op, {ms:>5.1}ms latency")
}

pub(super) fn lines_14(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    for flowop in rows(run) {
        let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(&flowop));
        // Processor time per flowop is not measured. Filebench on Linux printed 0 as well.
        writeln!(out, "{:<20} {rate:>8.0}ops/s {mb:>5.1}mb/s {ms:>8.1}ms/op {:>8.0}us/op-cpu", flowop.name, 0.0)?;
    }
    Ok(())
}

/// Returns the processor time per operation. As in Filebench 1.4, that of the whole machine if known.
pub(super) fn cpu_us(run: &Run) -> f64 {
    run.summary.system_cpu_us_per_op.or(run.summary.cpu_us_per_op).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Filebench14, Filebench15, breakdown_15, lathist};
    use crate::report::to_string;
    use crate::result::fixture::fixture;
    use crate::result::hdr;
    use crate::result::snapshot::Dist;
    use crate::result::{Document, FlowopResult, Latency, Run, RunState, Summary};
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn text(write: impl Fn(&Run, &mut dyn Write) -> std::io::Result<()>, run: &Run) -> String {
        let mut out = Vec::new();
        write(run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn flowop(name: &str, ops: u64, rate: f64, mb: f64, [mean, min, max]: [f64; 3]) -> FlowopResult {
        let latency_ns = Latency {
            mean: Some(mean * 1e6),
            min: Some((min * 1e6) as u64),
            max: Some((max * 1e6) as u64),
            ..Latency::default()
        };
        FlowopResult { name: name.into(), ops, ops_per_s: rate, mib_per_s: mb, latency_ns, ..FlowopResult::default() }
    }

    #[test]
    fn a_run_without_a_result_has_no_figures() {
        let mut document = fixture();
        for state in
            [RunState::Complete, RunState::Failed, RunState::Stuck, RunState::NothingDone, RunState::Interrupted]
        {
            document.runs[0].state = state;
            let texts = [to_string(&Filebench15, &document), of_14(&document, false), of_14(&document, true)];
            let has_result = matches!(state, RunState::Complete | RunState::Interrupted);
            assert!(texts.iter().all(|text| text.contains("Summary: ") == has_result), "{state:?}");
            assert!(has_result || texts.iter().all(String::is_empty), "{state:?}");
        }
    }

    /// The order is that of output of Filebench 1.5 for `comp` with `inn`, `bb` and `inn` in it, used twice.
    #[test]
    fn composites_have_rows_of_zeros_behind_those_of_their_flowops() {
        let inside = |names: &[&str], name: &str| FlowopResult {
            composites: names.iter().map(|name| (*name).to_owned()).collect(),
            ..flowop(&[names, &[name]].concat().join("."), 5, 5.0, 0.0, [0.1, 0.1, 0.1])
        };
        let mut run = Run { lathist: true, ..Run::default() };
        for used in ["cc", "dd"] {
            run.flowops.extend([
                inside(&[used, "aa"], "in1"),
                inside(&[used, "aa"], "in3"),
                inside(&[used], "bb"),
                inside(&[used, "zz"], "in1"),
            ]);
            // The dot in this name is no composite's.
            run.flowops.push(flowop("st.x", 5, 5.0, 0.0, [0.1, 0.1, 0.1]));
        }
        let shown = text(breakdown_15, &run);
        let names: Vec<&str> = shown.lines().filter_map(|l| l.split_once(' ').map(|(name, _)| name)).collect();
        let of = |used: &str| ["zz.in1", "zz", "bb", "aa.in3", "aa.in1", "aa"].map(|name| format!("{used}.{name}"));
        let expect =
            [&["st.x".to_owned()], &of("dd")[..], &["dd".to_owned(), "st.x".to_owned()], &of("cc"), &["cc".to_owned()]];
        assert_eq!(names[1..names.len() - 1], expect.concat());
        let row = shown.lines().find(|line| line.starts_with("cc ")).unwrap();
        assert!(row.starts_with(
            "cc                   0ops        0ops/s   0.0mb/s    0.000ms/op [0.000ms - 0.000ms]\t[ 0 0 "
        ));
    }

    fn of_14(document: &Document, is_149: bool) -> String {
        to_string(&Filebench14 { is_149 }, document)
    }

    /// The expected text is output of Filebench 1.5.
    #[test]
    fn output_matches_filebench_1_5() {
        let run = Run {
            finished_seconds: 4.021,
            flowops: vec![
                flowop("openOP", 1_055_131, 350_948.0, 0.0, [0.004, 0.001, 9.125]),
                flowop("readOP", 1_055_129, 350_947.0, 5483.6, [0.003, 0.001, 9.688]),
            ],
            summary: Summary {
                ops: 3_165_387,
                ops_per_s: 1_052_842.227,
                reads_per_s: 350_947.0,
                mib_per_s: 5483.6,
                latency_ms: Some(0.003),
                ..Summary::default()
            },
            ..Run::default()
        };
        let expect = "4.021: Per-Operation Breakdown\n\
            readOP               1055129ops   350947ops/s 5483.6mb/s    0.003ms/op [0.001ms - 9.688ms]\n\
            openOP               1055131ops   350948ops/s   0.0mb/s    0.004ms/op [0.001ms - 9.125ms]\n\
            4.021: IO Summary: 3165387 ops 1052842.227 ops/s 350947/0 rd/wr 5483.6mb/s 0.003ms/op\n";
        assert_eq!(text(breakdown_15, &run), expect);
    }

    #[test]
    fn the_histogram_of_1_5_has_one_bucket_per_power_of_two() {
        let mut dist = Dist::default();
        for ns in [0, 1, 2, 3, 4, 1023, 1024, 1_000_113_000] {
            dist.record(ns);
        }
        let mut run = Run { lathist: true, finished_seconds: 3.014, ..Run::default() };
        run.flowops.push(FlowopResult {
            histogram: hdr::encode(&dist),
            ..flowop("dl", 1, 0.4, 0.0, [1000.113, 1000.113, 1000.113])
        });
        let counts = lathist(&run.flowops[0]);
        let set: Vec<_> = counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| (i, *n)).collect();
        assert_eq!(set, [(0, 1), (1, 1), (2, 2), (3, 1), (10, 1), (11, 1), (30, 1)]);
        let line =
            "dl                   1ops        0ops/s   0.0mb/s 1000.113ms/op [1000.113ms - 1000.113ms]\t[ 1 1 2 1 ";
        assert!(text(breakdown_15, &run).lines().nth(1).unwrap().starts_with(line));
        assert!(text(breakdown_15, &run).contains(" 0 ]\n"));
        assert!(
            text(breakdown_15, &run)
                .contains("3.014: IO Summary:     0 ops 0.000 ops/s 0/0 rd/wr   0.0mb/s 0.000ms/op")
        );
    }

    fn old() -> Run {
        let zero = [0.0; 3];
        Run {
            finished_seconds: 7.022,
            measured_seconds: 3.0,
            flowops: vec![flowop("readfile6", 109_026, 36_342.0, 283.9, zero), flowop("limit", 0, 0.0, 0.0, zero)],
            summary: Summary {
                ops: 2_072_265,
                ops_per_s: 690_480.0,
                reads_per_s: 181_712.0,
                writes_per_s: 36_343.0,
                mib_per_s: 1700.7,
                system_cpu_us_per_op: Some(5.0),
                latency_ms: Some(0.0),
                ..Summary::default()
            },
            ..Run::default()
        }
    }

    /// The expected text is output of Filebench 1.4.8.
    #[test]
    fn output_matches_filebench_1_4() {
        let document = crate::result::Document { process_id: 10253, runs: vec![old()], ..Default::default() };
        let expect = "10253: 4.022: Running...\n\
            10253: 7.022: Run took 3 seconds...\n\
            10253: 7.022: Per-Operation Breakdown\n\
            limit                       0ops/s   0.0mb/s      0.0ms/op        0us/op-cpu\n\
            readfile6               36342ops/s 283.9mb/s      0.0ms/op        0us/op-cpu\n\
            \n\
            10253: 7.022: \n\
            IO Summary:      2072265 ops, 690480.0 ops/s, (181712/36343 r/w) 1700.7mb/s,      5us cpu/op,   0.0ms latency\n\
            10253: 7.022: Shutting down processes\n";
        assert_eq!(to_string(&Filebench14 { is_149: false }, &document), expect);
    }

    /// The form is that of output of Filebench 1.4.9.1.
    #[test]
    fn output_matches_filebench_1_4_9() {
        let mut run = old();
        let ms = |ms: f64| Some((ms * 1e6) as u64);
        let latency = |min, max| Latency { min: ms(min), max: ms(max), mean: Some(13.2e6), ..Latency::default() };
        run.flowops = vec![flowop("write-file", 755, 75.49, 75.4, [0.0; 3]), flowop("finish", 0, 0.0, 0.0, [0.0; 3])];
        run.flowops[0].latency_ns = latency(5.9, 40.2);
        run.summary = Summary {
            ops: 755,
            ops_per_s: 75.492,
            writes_per_s: 75.4,
            mib_per_s: 75.4,
            system_cpu_us_per_op: Some(14_026.0),
            latency_ms: Some(13.2),
            ..Summary::default()
        };
        let document = crate::result::Document { process_id: 380, runs: vec![run], ..Default::default() };
        let expect = "  380: 4.022: Running...\n  380: 7.022: Run took 3 seconds...\n  380: 7.022: Per-Operation Breakdown\n\
            finish               0ops        0ops/s   0.0mb/s      0.0ms/op        0us/op-cpu [0ms - 0ms]\n\
            write-file           755ops       75ops/s  75.4mb/s     13.2ms/op        0us/op-cpu [5ms - 40ms]\n  \
            380: 7.022: IO Summary:   755 ops, 75.492 ops/s, (0/75 r/w),  75.4mb/s,  14026us cpu/op,  13.2ms latency\n  \
            380: 7.022: Shutting down processes\n";
        assert_eq!(to_string(&Filebench14 { is_149: true }, &document), expect);
    }

    #[test]
    fn scripts_can_read_the_summary() {
        let awk = |program: &str, input: &str| {
            let mut child =
                Command::new("awk").arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        let document = fixture();
        let rate = document.runs[0].summary.ops_per_s;
        let new = to_string(&Filebench15, &document);
        assert_eq!(awk("/IO Summary/ {print $4, $6}", &new), format!("835620 {rate:.3}\n"));
        let old = to_string(&Filebench14 { is_149: false }, &document);
        assert_eq!(awk("/^IO Summary/ {print $3, $5}", &old), format!("835620 {rate:.1}\n"));
        assert_eq!(awk("$1 == \"shadowread\" {print $2}", &old), "13793ops/s\n");
    }
}
