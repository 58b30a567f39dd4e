//! The table of all runs of a recorded experiment: a row for each run, with its arm, its figures and what was unusual
//! about it.

use super::recorded::{RecordedExperiment, RecordedRun};
use crate::comparison::{figure, outlying};
use crate::import::{Metric, Observation};
use crate::util::count::or_dash;
use crate::util::table::{Align, Table};

/// The runs of an experiment as texts.
#[derive(Clone, Debug, Default)]
pub struct RunTable {
    /// The headings of the columns.
    pub columns: Vec<String>,
    /// The rows, in the order of time.
    pub rows: Vec<Vec<String>>,
}

impl RunTable {
    /// Formats the table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut table = Table::new(self.columns.iter().map(|name| (name.as_str(), Align::Left)));
        self.rows.iter().for_each(|row| _ = table.row(row.iter().map(String::as_str)));
        table.markdown()
    }
}

impl RecordedExperiment {
    pub(crate) fn run_table(&self) -> RunTable {
        let experiment = &self.experiment;
        let has_own = experiment.has_own_metrics();
        let mut columns = ["run", "arm"].map(str::to_owned).to_vec();
        match has_own {
            true => columns.extend(["metric", "value"].map(str::to_owned)),
            false => columns.extend(experiment.metrics().iter().map(Metric::to_string)),
        }
        columns.extend(["control", "state", "notes"].map(str::to_owned));
        let outliers = self.outliers();
        let row = |run: &RecordedRun| {
            let shown = |metric: &Metric| {
                let value = metric.of(&run.observation);
                or_dash(value, |value| figure(&metric.to_string(), value))
            };
            let mut cells = vec![run.number.to_string(), experiment.arm_title(run.arm)];
            for metric in &experiment.metrics_of(run.arm) {
                cells.extend(has_own.then(|| metric.to_string()));
                cells.push(shown(metric));
            }
            cells.push(or_dash(run.observation.control, |speed| figure("ops", speed)));
            cells.push(run.observation.failure.clone().unwrap_or_else(|| "complete".to_owned()));
            cells.push(annotations(&run.observation, outliers.contains(&run.number)));
            cells
        };
        RunTable { columns, rows: self.runs.iter().map(row).collect() }
    }

    /// Returns the numbers of the runs whose first metric is far from that of the other runs of their arm.
    fn outliers(&self) -> Vec<u64> {
        let of_arm = |(arm, runs): (usize, Vec<&RecordedRun>)| {
            let metric = self.experiment.metrics_of(arm).into_iter().next();
            let far =
                metric.map(|metric| outlying(runs.iter().map(|run| &run.observation), &metric)).unwrap_or_default();
            let is_far = |run: &&RecordedRun| far.iter().any(|far| std::ptr::eq(*far, &raw const run.observation));
            runs.iter().copied().filter(is_far).map(|run| run.number).collect::<Vec<_>>()
        };
        self.by_arm().into_iter().enumerate().flat_map(of_arm).collect()
    }
}

/// A word in the table of the runs that is not the code of a warning.
#[derive(Debug)]
pub struct RunMark {
    /// The word.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether it applies to a run; the second argument is whether the run is an outlier.
    applies: fn(&Observation, bool) -> bool,
}

/// All of these words. `unsteady` is a code, which warnings share.
pub const RUN_MARKS: [RunMark; 2] = [
    RunMark {
        name: "outlier",
        about: "the metric differs from the median of the runs with the same options by more than ten standard deviations \
                and by more than 10 %. The run stays in the sample; its report may show the reason.",
        applies: |_, is_outlier| is_outlier,
    },
    RunMark {
        name: "disturbed",
        about: "other programs used the processors or the devices during the run: its report has the warning \
                `processor_bound` or `shared_devices`. `--retry-disturbed` makes such runs again.",
        applies: |run, _| run.disturbed,
    },
];

/// Returns what was unusual about a run, in the words of the notes and the codes of its warnings; `-` if nothing was.
fn annotations(run: &Observation, is_outlier: bool) -> String {
    let marks = RUN_MARKS.iter().filter(|mark| (mark.applies)(run, is_outlier)).map(|mark| mark.name);
    let own = marks.chain(run.unsteady.then_some("unsteady"));
    let all: Vec<String> =
        own.chain(run.warnings.iter().map(String::as_str)).map(|code| code.replace('_', " ")).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::{RunTable, annotations};
    use crate::import::Observation;

    #[test]
    fn a_row_has_all_that_was_unusual_about_its_run() {
        let mut run = Observation::default();
        assert_eq!(annotations(&run, false), "-");
        (run.disturbed, run.warnings) = (true, vec!["late_ops".to_owned()]);
        assert_eq!(annotations(&run, true), "outlier, disturbed, late ops");
    }

    #[test]
    fn cells_are_text_in_markdown() {
        let table = RunTable {
            columns: ["run", "a|b"].map(str::to_owned).to_vec(),
            rows: vec![["1", "<x>"].map(str::to_owned).to_vec()],
        };
        assert_eq!(table.markdown(), "| run | a\\|b |\n|---|---|\n| 1 | &lt;x> |\n");
    }
}
