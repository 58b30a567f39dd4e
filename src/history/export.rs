//! The runs of a history for other programs: a table, and samples with their times for Prometheus.

use super::HistoryRun;
use super::tests_of_nights::History;
use crate::import::Metric;
use crate::report::openmetrics::escaped;
use crate::util::csv::cell;
use crate::util::timestamp::seconds_of;
use std::collections::{BTreeMap, BTreeSet};

/// The metric family of all figures.
const FAMILY: &str = "wmlrun_figure";

/// The values of a series with their times.
type Samples = Vec<(i64, f64)>;

impl History {
    /// The runs as CSV, a line each, with the metrics as columns.
    pub fn csv(&self) -> String {
        let metrics: BTreeSet<&String> = self.runs.iter().flat_map(|run| run.metrics.keys()).collect();
        let heading = ["night", "started", "test", "place", "again", "disturbed", "conditions"];
        let first = heading.into_iter().map(str::to_owned).chain(metrics.iter().map(|name| cell(name)));
        let line = |run: &HistoryRun| {
            let started = run.started.map_or_else(String::new, |started| started.to_string());
            let marks = [run.again, run.disturbed].map(|mark| u8::from(mark).to_string());
            let names = [run.night.clone(), started, cell(&run.test), cell(&run.place)];
            let figure = |name: &&String| run.metrics.get(*name).map_or_else(String::new, f64::to_string);
            names.into_iter().chain(marks).chain([run.conditions.clone()]).chain(metrics.iter().map(figure)).collect()
        };
        let lines = std::iter::once(first.collect()).chain(self.runs.iter().map(line));
        lines.map(|cells: Vec<String>| cells.join(",") + "\r\n").collect()
    }

    /// The figures as `OpenMetrics` with the times of their runs, as `promtool` makes blocks from them. Times are in seconds.
    pub fn openmetrics(&self) -> String {
        let mut series: BTreeMap<(&str, &str, &str), Samples> = BTreeMap::new();
        for run in &self.runs {
            let Some(time) = run.started.or_else(|| seconds_of(&format!("{}T00:00:00Z", run.night))) else { continue };
            for (name, value) in &run.metrics {
                let unit = name.parse::<Metric>().ok().and_then(|metric| metric.nanoseconds());
                let value = unit.map_or(*value, |unit| value * unit / 1e9);
                series.entry((name, &run.test, &run.place)).or_default().push((time, value));
            }
        }
        let mut text = format!("# TYPE {FAMILY} gauge\n# HELP {FAMILY} A figure of a run, times in seconds.\n");
        for ((metric, test, place), mut samples) in series {
            let [metric, test, place] = [metric, test, place].map(escaped);
            samples.sort_by_key(|(time, _)| *time);
            let mut last = i64::MIN;
            for (time, value) in samples {
                // Each sample of a series needs a time of its own.
                last = time.max(last.saturating_add(1));
                text += &format!("{FAMILY}{{metric=\"{metric}\",test=\"{test}\",place=\"{place}\"}} {value} {last}\n");
            }
        }
        text + "# EOF\n"
    }
}
