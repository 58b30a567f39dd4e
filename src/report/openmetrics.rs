//! `OpenMetrics` text, which Prometheus reads: counters and latencies of each flowop of each run.
//!
//! A metric family is written in one piece, as the format requires, so nothing is written before all runs have ended.
//! Samples have no timestamps. Names from scripts are label values, in which backslash, quote and newline are escaped as
//! the format says; other control characters become visible escapes.

use super::{Report, ReportInfo};
use crate::result::{Document, FlowopResult, PERCENTILES, Run};
use crate::util::printable;
use std::collections::HashSet;
use std::io::{self, Write};

/// `--format openmetrics`.
pub(crate) struct OpenMetrics;

/// A family of counters: its name without `_total`, its unit or "", its description, and a function that returns its value.
type Family = (&'static str, &'static str, &'static str, fn(&FlowopResult) -> u64);

const COUNTERS: [Family; 3] = [
    ("wmlrun_ops", "", "Operations that completed within the measured time.", |f| f.ops),
    ("wmlrun_bytes", "bytes", "Bytes that these operations read and wrote.", |f| f.bytes),
    ("wmlrun_errors", "", "Failed operations.", |f| f.errors.values().sum()),
];

/// The summary of latencies.
const LATENCY: &str = "wmlrun_latency_seconds";

impl Report for OpenMetrics {
    fn info(&self) -> ReportInfo {
        ReportInfo {
            stands_alone: true,
            ..ReportInfo::for_programs(
                "openmetrics",
                "OpenMetrics text for Prometheus: counters and latencies of each flowop, written after all runs",
            )
        }
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        for (name, unit, help, value) in COUNTERS {
            writeln!(out, "# TYPE {name} counter")?;
            if !unit.is_empty() {
                writeln!(out, "# UNIT {name} {unit}")?;
            }
            writeln!(out, "# HELP {name} {help}")?;
            for (labels, flowop) in flowops(document) {
                writeln!(out, "{name}_total{{{labels}}} {}", value(flowop))?;
            }
        }
        writeln!(out, "# TYPE {LATENCY} summary\n# UNIT {LATENCY} seconds")?;
        writeln!(out, "# HELP {LATENCY} Time from the start of an operation's system call to its completion.")?;
        for (labels, flowop) in flowops(document) {
            summary(&labels, flowop, out)?;
        }
        writeln!(out, "# EOF")
    }
}

/// Returns the flowops of all runs, each with its labels.
fn flowops(document: &Document) -> Vec<(String, &FlowopResult)> {
    let script = escaped(&document.script.path);
    let label = document.label.as_ref().map_or_else(String::new, |text| format!(",label=\"{}\"", escaped(text)));
    let labels_of = |(index, run): (usize, &'_ Run)| -> Vec<String> {
        let mut seen = HashSet::new();
        let labels = run.flowops.iter().enumerate().map(|(position, flowop)| {
            let [process, thread, name] = [&flowop.process, &flowop.thread, &flowop.name].map(|name| escaped(name));
            let number = index + 1;
            let mut labels = format!(
                "script=\"{script}\",process=\"{process}\",thread=\"{thread}\",flowop=\"{name}\",run=\"{number}\"{label}"
            );
            // The labels of two samples must differ. Names need not.
            if !seen.insert(labels.clone()) {
                labels.push_str(&format!(",position=\"{position}\""));
            }
            labels
        });
        labels.collect()
    };
    let labels: Vec<String> = document.runs.iter().enumerate().flat_map(labels_of).collect();
    labels.into_iter().zip(document.runs.iter().flat_map(|run| &run.flowops)).collect()
}

/// Writes the latencies of a flowop. One without operations has no quantiles.
fn summary(labels: &str, flowop: &FlowopResult, out: &mut dyn Write) -> io::Result<()> {
    let latency = flowop.latency_ns;
    let percentiles = PERCENTILES.iter().map(|percentile| (percentile.quantile, percentile.of(latency)));
    let quantiles = [(0.0, latency.min)].into_iter().chain(percentiles).chain([(1.0, latency.max)]);
    for (quantile, ns) in quantiles.filter_map(|(quantile, ns)| Some((quantile, ns?))) {
        writeln!(out, "{LATENCY}{{{labels},quantile=\"{quantile:?}\"}} {}", ns as f64 / 1e9)?;
    }
    let sum = latency.mean.unwrap_or(0.0) * flowop.ops as f64 / 1e9;
    writeln!(out, "{LATENCY}_count{{{labels}}} {}\n{LATENCY}_sum{{{labels}}} {sum}", flowop.ops)
}

/// Escapes a label value.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str(r"\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str(r"\n"),
            _ if printable::is_control(letter) => escaped.push_str(&printable::escaped(letter).replace('\\', r"\\")),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{OpenMetrics, PERCENTILES, escaped};
    use crate::report::to_string;
    use crate::result::fixture::fixture;
    use std::collections::BTreeSet;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd\x1b[2Je, f}"), r#"a\"b\\c\nd\\x1b[2Je, f}"#);
    }

    #[test]
    fn families_are_whole_samples_differ_and_the_end_is_marked() {
        let mut document = fixture();
        document.runs.push(document.runs[0].clone());
        for run in &mut document.runs {
            run.flowops[0].name = "x\"} 1\n# EOF\n".to_owned();
            run.flowops[1] = run.flowops[0].clone();
        }
        let text = to_string(&OpenMetrics, &document);
        assert!(text.ends_with("\n# EOF\n") && text.matches("\n# EOF\n").count() == 1, "{text}");
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        // Three counters, and the quantiles with count and sum.
        assert_eq!(samples.len(), 2 * 3 * (3 + PERCENTILES.len() + 4));
        let names = samples.iter().map(|sample| sample.rsplit_once(' ').map_or(*sample, |(name, _)| name));
        assert_eq!(names.collect::<BTreeSet<_>>().len(), samples.len(), "{text}");
        let mut families: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        assert_eq!(families, ["wmlrun_ops", "wmlrun_bytes", "wmlrun_errors", "wmlrun_latency_seconds"]);
        // Every sample follows the header of its family.
        families.reverse();
        let mut family = "";
        for line in text.lines() {
            if line.starts_with("# TYPE ") {
                family = families.pop().unwrap_or_default();
            }
            assert!(line.starts_with('#') || line.starts_with(family), "{family}: {line}");
        }
    }
}
