//! The lines of Go's benchmarks, which benchstat reads: one line for each I/O flowop of each run.
//!
//! benchstat takes lines of the same name in a file as repetitions, so results of several runs are joined by `cat`.

use super::names::{script, workload};
use super::{Report, ReportInfo};
use crate::result::{Document, Run};
use crate::source::SHIPPED;
use crate::util::go_bench;
use std::io::{self, Write};

/// `--format benchstat`.
pub(crate) struct Benchstat;

impl Report for Benchstat {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs(
            "benchstat",
            "Go's benchmark lines, for benchstat: one line for each I/O flowop of each run, and one for their sum",
        )
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        for (unit, better) in [("MiB/s", "higher"), ("ops/s", "higher"), ("ns/op", "lower"), ("p99-ns/op", "lower")] {
            writeln!(out, "Unit {unit} better={better}")?;
        }
        Ok(())
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        // The workloads of a profile are no repetitions of one another.
        if let Some(workload) = workload(document, run) {
            return lines(&go_bench::name(&workload), run, out);
        }
        let name = script(document);
        let file = name.rsplit('/').next().unwrap_or(name);
        let stem = file.trim_end_matches(SHIPPED).trim_end_matches(".wml").trim_end_matches(".f");
        lines(&go_bench::name(stem), run, out)
    }
}

fn lines(name: &str, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let all = &run.summary;
    let sum = ("all".to_owned(), all.ops, all.ops_per_s, all.mib_per_s, &all.latency_ns);
    // Lines of the same name are repetitions. Go itself adds such a suffix to a name that it has used before.
    let suffixes = run.name_suffixes();
    let flowops = run.flowops.iter().zip(&suffixes).filter(|(flowop, _)| flowop.class.is_io()).map(|(f, suffix)| {
        let place = [&f.process, &f.thread, &f.name].map(|part| go_bench::part(part)).join("/") + suffix;
        (place, f.ops, f.ops_per_s, f.mib_per_s, &f.latency_ns)
    });
    for (part, ops, rate, mib, latency) in flowops.chain([sum]).filter(|(_, ops, ..)| *ops > 0) {
        let ns = |value: Option<f64>, unit: &str| value.map_or_else(String::new, |ns| format!(" {ns} {unit}"));
        let mean = ns(latency.mean, "ns/op");
        let p99 = ns(latency.p99.map(|ns| ns as f64), "p99-ns/op");
        writeln!(out, "{name}/{part} {ops}{mean}{p99} {rate} ops/s {mib} MiB/s")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Benchstat;
    use crate::report::to_string;
    use crate::result::fixture::fixture;

    #[test]
    fn every_io_flowop_and_their_sum_have_a_line() {
        let mut document = fixture();
        document.script.path = "dir/two words.wml".to_owned();
        let text = to_string(&Benchstat, &document);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Unit ")).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("BenchmarkTwo_words/shadow/shadow/shadowread 827580 3440.338"), "{text}");
        assert!(lines[0].ends_with(" 15295 p99-ns/op 13793 ops/s 26.939453125 MiB/s"), "{text}");
        assert!(lines[2].starts_with("BenchmarkTwo_words/all 835620 "), "{text}");
    }

    #[test]
    fn flowops_of_one_name_in_a_thread_have_different_names() {
        let mut document = fixture();
        document.runs[0].flowops[1] = document.runs[0].flowops[0].clone();
        let text = to_string(&Benchstat, &document);
        let names: Vec<&str> = text.lines().skip(4).filter_map(|line| line.split(' ').next()).collect();
        let of = |place: &str| format!("BenchmarkOltp_sync/{place}");
        assert_eq!(names, ["shadow/shadow/shadowread#1", "shadow/shadow/shadowread#2", "all"].map(of));
    }
}
