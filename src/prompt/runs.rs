//! `runs` lists the runs of the session, one per line, as an overview for `compare`; `plot` draws the last one, and `page`
//! writes its page.

use super::Prompt;
use super::command::{Argument, PromptCommand, file_name};
use super::side_by_side::{differing, value_in};
use crate::diag::{self, Code, Diagnostic};
use crate::report::plot;
use crate::report::screen::ReportSize;
use crate::report::text::FlowopLabels;
use crate::result::Run;
use crate::session::{CommandError, Front};
use crate::source::Spanned;
use crate::util::count::{measured, or_dash};
use crate::util::duration::latency;
use crate::util::table::{Align, Table};

pub(super) const RUNS: PromptCommand = PromptCommand::new(
    ["runs", "runs", "lists the runs of this session: results and differing variables", "runs"],
    Argument::Nothing,
    |prompt, _, front| {
        show(&prompt.session.runner.outputs.document.runs, front);
        Ok(())
    },
);

pub(super) const PLOT: PromptCommand = PromptCommand::new(
    [
        "plot",
        "plot [NAME]",
        "draws the last run: its rate over time and the latencies of its flowops, or of the flowop NAME",
        "plot",
    ],
    Argument::Flowop,
    Prompt::plot,
);

pub(super) const PAGE: PromptCommand = PromptCommand::new(
    ["page", "page [FILE]", "writes the last run as an HTML page with pictures (default: SCRIPT.html)", "page"],
    Argument::File,
    Prompt::page,
);

/// What a page of a run without a script is called.
const RUN: &str = "run";

impl Prompt {
    /// Executes `plot [NAME]`.
    fn plot(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let runs = &self.session.runner.outputs.document.runs;
        let Some(run) = runs.last() else {
            front.note("there are no runs yet");
            return Ok(());
        };
        let size = ReportSize { width: front.columns().unwrap_or(ReportSize::PIPE.width), height: front.rows() };
        let drawn = if argument.node.is_empty() {
            plot::all(run, size)
        } else {
            let labels = FlowopLabels::of(run);
            let label = |name: &str| run.flowops.iter().position(|flowop| labels.label(flowop) == name);
            let Some(index) = label(argument.node) else {
                let message = format!("the last run has no flowop `{}`", argument.node);
                let d = Diagnostic::error(Code::BadArgument, argument.span, message);
                let names: Vec<String> = run.flowops.iter().map(|flowop| labels.label(flowop)).collect();
                return Err(d
                    .help(diag::did_you_mean(diag::nearest(argument.node, names.iter().map(String::as_str)), || {
                        format!("its flowops are `{}`", names.join("`, `"))
                    }))
                    .into());
            };
            plot::flowop(run, index, size)
        };
        match drawn {
            Some(text) => front.line(text.trim_end()),
            None => front.note("no operation has completed: there is nothing to draw"),
        }
        Ok(())
    }

    /// Executes `page [FILE]`.
    fn page(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let document = &self.session.runner.outputs.document;
        let Some(last) = document.runs.len().checked_sub(1) else {
            front.note("there are no runs yet");
            return Ok(());
        };
        let file = match argument.node {
            "" => self.session.loaded_name().unwrap_or_else(|| RUN.to_owned()) + ".html",
            _ => file_name(argument, PAGE.spec.form)?.to_owned(),
        };
        let part = document.with_run(last);
        self.host.page(part, file.as_ref())?;
        front.note(&format!("the page of the run is in {file}"));
        Ok(())
    }
}

fn show(runs: &[Run], front: &mut dyn Front) {
    if runs.is_empty() {
        front.note("there are no runs yet");
    } else {
        front.line(table_of(runs).render_fitted(front.columns()).trim_end());
    }
}

fn table_of(runs: &[Run]) -> Table {
    let figures = ["run", "ended", "seconds", "ops/s", "MiB/s", "mean latency", "p99"];
    let differing = differing(runs);
    let names: Vec<String> = differing.iter().map(|name| format!("${name}")).collect();
    let columns = figures.iter().copied().chain(names.iter().map(String::as_str));
    let mut table = Table::new(columns.map(|name| (name, Align::Right)));
    for (n, run) in runs.iter().enumerate() {
        let summary = &run.summary;
        let cells = [
            (n + 1).to_string(),
            run.state.name().to_owned(),
            format!("{:.1}", run.measured_seconds),
            measured(summary.ops_per_s),
            measured(summary.mib_per_s),
            or_dash(summary.latency_ns.mean, latency),
            or_dash(summary.latency_ns.shown(summary.ops).p99, |ns| latency(ns as f64)),
        ];
        let values = differing.iter().map(|name| value_in(run, name));
        table.row(cells.into_iter().chain(values));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::table_of;
    use crate::result::fixture::fixture;

    #[test]
    fn each_run_has_a_line_with_the_differing_variables() {
        let mut first = fixture().runs.remove(0);
        first.variables.insert("same".to_owned(), 1.into());
        first.variables.insert("n".to_owned(), 7.into());
        let mut second = first.clone();
        second.variables.insert("n".to_owned(), 13.into());
        second.summary.ops_per_s = 12345.0;
        let text = table_of(&[first, second]).render();
        let lines: Vec<&str> = text.lines().filter(|line| line.chars().any(char::is_alphanumeric)).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("$n") && !text.contains("$same"), "{text}");
        assert!(lines[1].trim_start().starts_with('1') && lines[1].ends_with(" 7"), "{text}");
        assert!(lines[2].contains("12") && lines[2].ends_with("13"), "{text}");
    }
}
