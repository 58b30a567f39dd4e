//! The output formats of Filebench 1.5, 1.4.9 and 1.4, for scripts that parse them, and the files of `stats dump` and
//! its variants.
//!
//! Lines, widths and order are those of Filebench (flowops in reverse order of definition). Figures differ where those
//! of Filebench are wrong: latency is the mean over all I/O operations, times are from a monotonic clock, flowops with
//! equal names are separate, and counters have 64 bits. Log lines begin with the seconds since the start, in 1.4 with
//! the process number before them. The summary of 1.4 begins on a line after its prefix, so that `^IO Summary` matches;
//! that of 1.4.9 is on the line of its prefix.

use super::Report;
use crate::result::{Document, FlowopResult, Run, RunState};
use crate::stats::hdr;
use crate::stats::layout;
use crate::util::size::MIB;
use std::borrow::Cow;
use std::io::{self, Write};

/// `--format filebench`: the output of Filebench 1.5.
pub struct Filebench15;

/// `--format filebench-1.4`: the output of Filebench 1.4 up to 1.4.8; and `--format filebench-1.4.9`.
pub struct Filebench14 {
    /// Whether it is the output of 1.4.9 and 1.4.9.1.
    pub is_149: bool,
}

/// Number of buckets of Filebench's histogram: 0 ns, then powers of two.
const LATHIST: usize = 64;

impl Report for Filebench15 {
    fn is_of_filebench(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "filebench"
    }

    fn about(&self) -> &'static str {
        "the output format of Filebench 1.5"
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = unless_failed(document, index) else { return Ok(()) };
        writeln!(out, "{:.3}: Run took {:.0} seconds...", run.finished_seconds, run.measured_seconds.round())?;
        breakdown_15(run, out)
    }

    fn interim(&self, document: &Document, _apart: bool, out: &mut dyn Write) -> io::Result<()> {
        document.runs.first().map_or(Ok(()), |run| breakdown_15(run, out))
    }
}

/// Returns a run unless it failed: a program that reads the figures would take those of a failed run for valid ones.
fn unless_failed(document: &Document, index: usize) -> Option<&Run> {
    document.runs.get(index).filter(|run| run.state != RunState::Failed)
}

/// Adds the bytes of directory listings to the rates of data, as Filebench does.
fn with_listings(run: Cow<'_, Run>) -> Cow<'_, Run> {
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
pub fn breakdown_15(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::visible_run(run));
    let at = run.finished_seconds;
    writeln!(out, "{at:.3}: Per-Operation Breakdown")?;
    for flowop in run.flowops.iter().rev() {
        let ms = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e6;
        write!(
            out,
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.3}ms/op [{:.3}ms - {:.3}ms]",
            flowop.name,
            flowop.ops,
            flowop.ops_per_s,
            flowop.mib_per_s,
            mean_ms(flowop),
            ms(flowop.latency_ns.min),
            ms(flowop.latency_ns.max),
        )?;
        if run.lathist {
            let counts = lathist(flowop).map(|n| n.to_string());
            write!(out, "\t[ {} ]", counts.join(" "))?;
        }
        writeln!(out)?;
    }
    let s = &run.summary;
    writeln!(
        out,
        "{at:.3}: IO Summary: {:>5} ops {:>5.3} ops/s {:.0}/{:.0} rd/wr {:>5.1}mb/s {:>5.3}ms/op",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.mib_per_s,
        s.latency_ms.unwrap_or(0.0),
    )
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

fn mean_ms(flowop: &FlowopResult) -> f64 {
    flowop.latency_ns.mean.unwrap_or(0.0) / 1e6
}

impl Report for Filebench14 {
    fn is_of_filebench(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        if self.is_149 { "filebench-1.4.9" } else { "filebench-1.4" }
    }

    fn about(&self) -> &'static str {
        match self.is_149 {
            true => "the output format of Filebench 1.4.9 and 1.4.9.1",
            false => "the output format of Filebench 1.4 up to 1.4.8",
        }
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = unless_failed(document, index) else { return Ok(()) };
        let (pid, at) = (document.process_id, run.finished_seconds);
        writeln!(out, "{pid:>5}: {at:.3}: Run took {:.0} seconds...", run.measured_seconds.round())?;
        self.breakdown(document, run, out)
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
    let run = &*with_listings(super::visible_run(run));
    let prefix = format!("{process:>5}: {:.3}: ", run.finished_seconds);
    writeln!(out, "{prefix}Per-Operation Breakdown")?;
    for flowop in run.flowops.iter().rev() {
        // Whole milliseconds, without rounding up.
        let ms = |ns: Option<u64>| ns.unwrap_or(0) / 1_000_000;
        writeln!(
            out,
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.1}ms/op {:>8.0}us/op-cpu [{}ms - {}ms]",
            flowop.name,
            flowop.ops,
            flowop.ops_per_s,
            flowop.mib_per_s,
            mean_ms(flowop),
            // Not measured.
            0.0,
            ms(flowop.latency_ns.min),
            ms(flowop.latency_ns.max),
        )?;
    }
    let s = &run.summary;
    writeln!(
        out,
        "{prefix}IO Summary: {:>5} ops, {:.3} ops/s, ({:.0}/{:.0} r/w), {:>5.1}mb/s, {:>6.0}us cpu/op, {:>5.1}ms latency",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.mib_per_s,
        cpu_us(run),
        s.latency_ms.unwrap_or(0.0),
    )
}

/// Writes the breakdown and summary of 1.4, also for `stats snap`.
pub fn breakdown_14(process: u32, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::visible_run(run));
    let prefix = format!("{process:>5}: {:.3}: ", run.finished_seconds);
    writeln!(out, "{prefix}Per-Operation Breakdown")?;
    lines_14(run, out)?;
    let s = &run.summary;
    writeln!(
        out,
        "\n{prefix}\nIO Summary:      {:>5} ops, {:>5.1} ops/s, ({:.0}/{:.0} r/w) {:>5.1}mb/s, {:>6.0}us cpu/op, {:>5.1}ms latency",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.mib_per_s,
        cpu_us(run),
        s.latency_ms.unwrap_or(0.0),
    )
}

fn lines_14(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    for flowop in run.flowops.iter().rev() {
        let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(flowop));
        // Processor time per flowop is not measured. Filebench on Linux printed 0 as well.
        writeln!(out, "{:<20} {rate:>8.0}ops/s {mb:>5.1}mb/s {ms:>8.1}ms/op {:>8.0}us/op-cpu", flowop.name, 0.0)?;
    }
    Ok(())
}

/// Returns the processor time per operation. As in Filebench 1.4, that of the whole machine if known.
fn cpu_us(run: &Run) -> f64 {
    run.summary.system_cpu_us_per_op.or(run.summary.cpu_us_per_op).unwrap_or(0.0)
}

/// The format of a file that a script command writes, and how to recognize such a file.
///
/// The first lines are those of Filebench and do not name the program. A file is therefore recognized if it begins like
/// the output of the same command. Files that Filebench wrote by that command are also replaced, as Filebench does.
#[derive(Debug)]
pub struct File {
    /// The script command.
    pub command: &'static str,
    /// Writes the contents.
    pub write: fn(&Run, &mut dyn Write) -> io::Result<()>,
    /// Returns whether a file that begins with these bytes was written by the same command.
    pub is_own: fn(&[u8]) -> bool,
}

/// `stats dump`: `Flowop totals:`, then rows without tabs.
pub static DUMP: File = File { command: "stats dump", write: dump, is_own: |head| totals(head) == Some(false) };

/// `stats multidump`: `Flowop totals:`, then rows separated by tabs.
pub static MULTIDUMP: File =
    File { command: "stats multidump", write: multidump, is_own: |head| totals(head) == Some(true) };

/// `stats xmldump`: `<stat_doc name="Filebench Workload">`.
pub static XMLDUMP: File = File {
    command: "stats xmldump",
    write: xmldump,
    is_own: |head| head.starts_with(b"<stat_doc name=\"Filebench Workload\">\n<stat_group name=\"Flowop totals\">\n"),
};

/// Returns whether the rows of a file of `stats dump` or `stats multidump` are separated by tabs; `None` for any other
/// file. Each row before the summary has four figures.
fn totals(head: &[u8]) -> Option<bool> {
    let rows = std::str::from_utf8(head).ok()?.strip_prefix("Flowop totals:\n")?;
    let (rows, rest) = rows.split_once("\nIO Summary:").map_or((rows, None), |(rows, rest)| (rows, Some(rest)));
    let dump = |row: &str| row.ends_with("us/op-cpu") && row.contains("ops/s ") && row.contains("ms/op ");
    let multi = |row: &str| row.matches('\t').count() == 4;
    let mut rows = rows.lines().filter(|row| !row.is_empty()).peekable();
    match (rows.peek(), rest) {
        // Without flowops there is only the summary: for `stats multidump` its figures are on a separate line.
        (None, Some(rest)) => Some(rest.starts_with('\n')),
        (Some(first), Some(_)) if multi(first) => rows.all(multi).then_some(true),
        (Some(_), Some(_)) => rows.all(dump).then_some(false),
        (_, None) => None,
    }
}

/// Writes the file of `stats dump`.
pub fn dump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::visible_run(run));
    writeln!(out, "Flowop totals:")?;
    lines_14(run, out)?;
    let s = &run.summary;
    writeln!(
        out,
        "\nIO Summary:      {:>8} ops {:>8.1} ops/s, {:>8.0}/{:.0} r/w {:>7.1}mb/s, {:>8.0}uscpu/op\n",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.mib_per_s,
        cpu_us(run),
    )
}

/// Writes the file of `stats multidump`: the same figures, separated by tabs.
pub fn multidump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::visible_run(run));
    writeln!(out, "Flowop totals:")?;
    for flowop in run.flowops.iter().rev() {
        let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(flowop));
        writeln!(out, "{}\t{rate:.0}\t{mb:.1}\t{ms:.1}\t{:.0}", flowop.name, 0.0)?;
    }
    let s = &run.summary;
    writeln!(
        out,
        "\nIO Summary:\n{}\t{:.1}\t{:.0}\t{:.0}\t{:.1}\t{:.0}\t{:.1}",
        s.ops,
        s.ops_per_s,
        s.reads_per_s,
        s.writes_per_s,
        s.mib_per_s,
        cpu_us(run),
        s.latency_ms.unwrap_or(0.0),
    )
}

/// Writes the file of `stats xmldump`: two groups of cells with the names of their rows and columns, one element per
/// line.
pub fn xmldump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(super::visible_run(run));
    let s = &run.summary;
    writeln!(out, "<stat_doc name=\"Filebench Workload\">")?;
    let rows: Vec<(&str, Vec<String>)> = run
        .flowops
        .iter()
        .rev()
        .map(|flowop| {
            let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(flowop));
            (flowop.name.as_str(), vec![format!("{rate:.0}"), format!("{mb:.1}"), format!("{ms:.1}"), "0".to_owned()])
        })
        .collect();
    let columns = ["Operations/sec", "MB/sec", "Latency (ms per operation)", "CPU (us per operation)"];
    stat_group("Flowop totals", &rows, &columns, out)?;
    let cells = vec![
        s.ops.to_string(),
        format!("{:.1}", s.ops_per_s),
        format!("{:.0}", s.reads_per_s),
        format!("{:.0}", s.writes_per_s),
        format!("{:.1}", s.mib_per_s),
        format!("{:.0}", cpu_us(run)),
    ];
    let columns = ["Operations", "Operations/sec", "Reads", "Writes", "MB/sec", "CPU"];
    stat_group("IO Summary", &[("IO Summary", cells)], &columns, out)?;
    writeln!(out, "</stat_doc>")
}

fn stat_group(name: &str, rows: &[(&str, Vec<String>)], columns: &[&str], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<stat_group name=\"{name}\">\n<cell_list>")?;
    for cell in rows.iter().flat_map(|(_, cells)| cells) {
        writeln!(out, "<cell>{cell}</cell>")?;
    }
    writeln!(out, "</cell_list>\n<dim_list>")?;
    for names in [&rows.iter().map(|(name, _)| *name).collect::<Vec<_>>()[..], columns] {
        writeln!(out, "<dim>")?;
        for name in names {
            writeln!(out, "<dimval>{}</dimval>", escaped(name))?;
        }
        writeln!(out, "</dim>")?;
    }
    writeln!(out, "</dim_list>\n</stat_group>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Filebench14, Filebench15, breakdown_15, dump, lathist, multidump, xmldump};
    use crate::report::to_string;
    use crate::result::fixture::fixture;
    use crate::result::{Document, FlowopResult, Latency, Run, RunState, Summary};
    use crate::stats::hdr;
    use crate::stats::snapshot::Dist;
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
    fn a_failed_run_has_no_figures() {
        let mut document = fixture();
        let [new, old, last] = [to_string(&Filebench15, &document), of_14(&document, false), of_14(&document, true)];
        assert!([new, old, last].iter().all(|text| text.contains("Summary: ")));
        document.runs[0].state = RunState::Failed;
        let texts = [to_string(&Filebench15, &document), of_14(&document, false), of_14(&document, true)];
        assert_eq!(texts, ["", "", ""]);
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
        let expect = "10253: 7.022: Run took 3 seconds...\n\
            10253: 7.022: Per-Operation Breakdown\n\
            limit                       0ops/s   0.0mb/s      0.0ms/op        0us/op-cpu\n\
            readfile6               36342ops/s 283.9mb/s      0.0ms/op        0us/op-cpu\n\
            \n\
            10253: 7.022: \n\
            IO Summary:      2072265 ops, 690480.0 ops/s, (181712/36343 r/w) 1700.7mb/s,      5us cpu/op,   0.0ms latency\n";
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
        let expect = "  380: 7.022: Run took 3 seconds...\n  380: 7.022: Per-Operation Breakdown\n\
            finish               0ops        0ops/s   0.0mb/s      0.0ms/op        0us/op-cpu [0ms - 0ms]\n\
            write-file           755ops       75ops/s  75.4mb/s     13.2ms/op        0us/op-cpu [5ms - 40ms]\n  \
            380: 7.022: IO Summary:   755 ops, 75.492 ops/s, (0/75 r/w),  75.4mb/s,  14026us cpu/op,  13.2ms latency\n";
        assert_eq!(to_string(&Filebench14 { is_149: true }, &document), expect);
    }

    #[test]
    fn the_files_of_stats_dump() {
        let mut run = old();
        run.flowops = vec![flowop("shadowread", 0, 13_793.0, 26.2, [0.2, 0.0, 0.0])];
        run.summary = Summary {
            ops: 140_314,
            ops_per_s: 27_185.3,
            reads_per_s: 13_793.0,
            writes_per_s: 13_392.0,
            mib_per_s: 53.3,
            system_cpu_us_per_op: Some(24.0),
            ..Summary::default()
        };
        let expect = "Flowop totals:\n\
            shadowread              13793ops/s  26.2mb/s      0.2ms/op        0us/op-cpu\n\
            \n\
            IO Summary:        140314 ops  27185.3 ops/s,    13793/13392 r/w    53.3mb/s,       24uscpu/op\n\n";
        assert_eq!(text(dump, &run), expect);
        let expect = "Flowop totals:\nshadowread\t13793\t26.2\t0.2\t0\n\nIO Summary:\n\
            140314\t27185.3\t13793\t13392\t53.3\t24\t0.0\n";
        assert_eq!(text(multidump, &run), expect);
        insta::assert_snapshot!("xmldump", text(xmldump, &run));
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
