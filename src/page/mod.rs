//! `wmlrun report`: results as one HTML page.
//!
//! The page is a single file without scripts, which requests nothing. Every picture is typed SVG with the values in
//! attributes, and has a table with the same values. Input: results as data, and the files of the runs of a comparison.
//! Output: HTML, the same for the same input.
//! Not in here: measuring, and the statistics of several runs (`comparison`).

mod ab;
mod courses;
mod curves;
mod experiment;
mod factorial;
mod hosts;
mod nights;
mod pictures;
mod records;
mod run;
mod source;
mod sweep;
mod timeline;

pub use nights::{night_page, night_picture};
pub use pictures::{PictureFile, pictures};
pub use records::ArmRecords;
pub use source::{PageError, ResultSource, arms, is_page, read};

use crate::report::names::{heading, script};
use crate::result::{Document, Run};
use crate::sheet::html::{self, PageSection};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol};
use crate::util::count::{count, measured, or_dash};
use crate::util::duration::latency;
/// The largest number of runs of a page that have pictures of their own. It bounds the size of the page.
const MAX_RUNS_WITH_PICTURES: usize = 6;

/// Returns the page of these results, a section for each.
pub fn html(sources: &[ResultSource], title: Option<&str>) -> Result<String, String> {
    let sections = sections(sources);
    let title = match (title, &sections[..]) {
        (Some(title), _) => title.to_owned(),
        (None, [only]) => only.title.clone(),
        (None, all) => count(all.len() as u64, "result"),
    };
    html::write(&title, &sections)
}

fn sections(sources: &[ResultSource]) -> Vec<PageSection> {
    let mut runs_with_pictures = 0;
    sources.iter().map(|source| section(source, &mut runs_with_pictures)).collect()
}

fn section(source: &ResultSource, runs_with_pictures: &mut usize) -> PageSection {
    match source {
        ResultSource::Runs { name, document } => {
            let title = match &document.runs[..] {
                [run] => heading(document, run),
                _ => script(document).to_owned(),
            };
            PageSection { title, about: name.clone(), blocks: runs(document, runs_with_pictures) }
        }
        ResultSource::Experiment { name, recorded, floor } => {
            let experiment = &recorded.experiment;
            let title = format!("{}: {}", experiment.kind().command(), experiment.name);
            PageSection {
                title,
                about: name.clone(),
                blocks: experiment::blocks(recorded, *floor, source::arms_of(recorded).as_deref()),
            }
        }
        ResultSource::Comparison { comparison, arms } => PageSection {
            title: format!("compare: {}", comparison.name),
            about: String::new(),
            blocks: ab::of_comparison(comparison, arms.as_deref()),
        },
    }
}

/// Returns the parts about all runs of a document.
fn runs(document: &Document, runs_with_pictures: &mut usize) -> Vec<SheetBlock> {
    let mut blocks = Vec::new();
    if document.runs.is_empty() {
        blocks.push(SheetBlock::Text { text: "The result has no run.".to_owned() });
    }
    if let [first, _, ..] = &document.runs[..] {
        blocks.extend(run::machine(document, first));
        blocks.push(SheetBlock::Picture(overview(&document.runs)));
    }
    for (n, run) in document.runs.iter().enumerate() {
        if document.runs.len() > 1 {
            let workload = run.workload.as_ref().map_or_else(String::new, |name| format!(": {name}"));
            blocks.push(SheetBlock::Heading { text: format!("Run {} of {}{workload}", n + 1, document.runs.len()) });
        }
        let pictures = *runs_with_pictures < MAX_RUNS_WITH_PICTURES;
        *runs_with_pictures += 1;
        blocks.extend(run::blocks(document, run, pictures));
        if *runs_with_pictures == MAX_RUNS_WITH_PICTURES + 1 {
            let text = format!(
                "The page has pictures of its first {MAX_RUNS_WITH_PICTURES} runs only. To see those of another run, \
                 make a page of its result."
            );
            blocks.push(SheetBlock::Text { text });
        }
    }
    blocks.extend(run::document_blocks(document));
    blocks
}

/// Draws the rate of each run.
fn overview(runs: &[Run]) -> Picture {
    let rates = runs.iter().map(|run| run.summary.ops_per_s);
    let numbers = [1.0, runs.len() as f64];
    let mut chart = Chart::new(
        ChartAxis::fitted("run", AxisUnit::Number, numbers),
        ChartAxis::linear("I/O operations per second", AxisUnit::Number, std::iter::once(0.0).chain(rates)),
    );
    let mut table = SheetTable::new("Runs", ["run", "started", "state", "ops/s", "MiB/s", "mean latency"]);
    for (n, run) in (1..).zip(runs) {
        let rate = run.summary.ops_per_s;
        let title = format!("run {n}: {} ops/s", measured(rate));
        chart.plot(Symbol::Circle, &ChartPoint { x: f64::from(n), y: rate, class: "a", title });
        table.row([
            n.to_string(),
            run.started_at.clone(),
            run.state.name().replace('_', " "),
            measured(rate),
            measured(run.summary.mib_per_s),
            or_dash(run.summary.latency_ms, |ms| latency(ms * 1e6)),
        ]);
    }
    Picture {
        title: "Runs".to_owned(),
        note: "The rate of each run.".to_owned(),
        legend: Vec::new(),
        drawing: chart.drawing("The rate of each run"),
        table,
    }
}

#[cfg(test)]
mod arms_tests;
#[cfg(test)]
mod factorial_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod tests;
