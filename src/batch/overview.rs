//! What a batch writes of all workloads together: the table at its end, the page, and the joined result.

use super::state::{Batch, Done, PAGE, measured};
use super::workload::{ProfileWorkload, dump_name};
use crate::report::index;
use crate::result::{Document, Run, RunState};
use crate::util::batch_files::{BATCH_RESULT, BATCH_SCRIPT};
use crate::util::table::{Align, Table};
use crate::util::{count, duration};
use std::path::Path;

/// Formats a table of all workloads, with those that failed or did not run.
pub(super) fn overview(workloads: &[ProfileWorkload<'_>], all: &[Done<'_>]) -> String {
    let mut table = Table::new([
        ("workload", Align::Left),
        ("ops/s", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("", Align::Left),
    ]);
    let dash = || "-".to_owned();
    for workload in workloads {
        let name = &workload.name().node;
        let done = all.iter().find(|done| done.config.name.node == *name);
        let run = done.and_then(measured);
        let figure = |of: &dyn Fn(&Run) -> Option<String>| run.and_then(of).unwrap_or_else(dash);
        let state = match (done, run) {
            (None, _) => "not run".to_owned(),
            (Some(done), None) => format!("no run, exit status {}", done.status.code()),
            (_, Some(run)) if run.state == RunState::Complete => String::new(),
            (_, Some(run)) => run.state.name().replace('_', " "),
        };
        table.row([
            name.clone(),
            figure(&|run| Some(count::measured(run.summary.ops_per_s))),
            figure(&|run| Some(count::measured(run.summary.mib_per_s))),
            figure(&|run| Some(duration::latency(run.summary.latency_ns.mean?))),
            state,
        ]);
    }
    format!("\n{}", table.render().trim_end())
}

/// The page over all workloads.
pub(super) fn index_page(results_dir: &Path, batch: &Batch<'_>, all: &[Done<'_>]) -> std::io::Result<String> {
    let title = results_dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let description = all.first().and_then(|d| batch.value(d.config, "description")).unwrap_or_default();
    let mounts = all.iter().filter_map(measured).flat_map(|run| &run.environment.mounts);
    let place = all.first().map_or_else(String::new, |d| {
        let e = &d.document.environment;
        let mount = mounts.clone().next().map_or(String::new(), |m| format!(", {} ({})", m.kind, m.source));
        format!("{} {} {}{mount}", e.uname.nodename, e.uname.sysname, e.uname.release)
    });
    let workloads = all
        .iter()
        .map(|d| {
            let name = d.config.name.node.as_str();
            let names = [
                ("page", PAGE.to_owned()),
                ("script", BATCH_SCRIPT.to_owned()),
                ("profile", "thisrun.prof".to_owned()),
                ("statistics", dump_name(name, "out")),
                ("XML", dump_name(name, "xml")),
                ("JSON", BATCH_RESULT.to_owned()),
            ];
            let there = names.into_iter().filter(|(_, file)| results_dir.join(name).join(file).is_file());
            index::Workload {
                name,
                personality: &d.personality,
                run: measured(d),
                ended: "nothing was measured",
                files: there.map(|(what, file)| (what, index::link(&[name, &file]))).collect(),
            }
        })
        .collect();
    index::html(&index::Page { title: &title, description, place: &place, workloads }).map_err(std::io::Error::other)
}

/// All workloads in one document, whose script is the profile. `wanted` is the number of those in the profile, of which
/// some may not have run.
pub(super) fn joined(batch: &Batch<'_>, all: &[Done<'_>], wanted: usize) -> Document {
    let mut document = all.first().map(|d| d.document.clone()).unwrap_or_default();
    document.script.path = batch.name();
    batch.text().clone_into(&mut document.script.text);
    document.script.sha256 = crate::measure::sha256(batch.text());
    if batch.settings.redact {
        crate::measure::redact_script(&mut document.script);
    }
    document.complete = all.len() == wanted && all.iter().all(|d| d.document.complete);
    document.runs = all.iter().flat_map(|done| done.document.runs.iter().cloned()).collect();
    document
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::{Batch, Done, profile};
    use super::joined;
    use crate::result::fixture::fixture;
    use crate::session::{Settings, Status};
    use crate::source::SourceMap;
    use std::path::Path;

    #[test]
    fn a_result_that_lacks_a_workload_is_not_complete() {
        let text = "CONFIG one {\n personality = varmail;\n}\nCONFIG two {\n personality = varmail;\n}\n";
        let mut source = SourceMap::new();
        let file = source.add("p.prof", text);
        let (profile, found) = profile::parse(file, text);
        assert!(found.is_empty(), "{found:?}");
        let settings = Settings::default();
        let batch =
            Batch { path: Path::new("p.prof"), source: &source, profile: &profile, names: &[], settings: &settings };
        let done =
            |config| Done { config, personality: "varmail".to_owned(), document: fixture(), status: Status::Done };
        let all: Vec<Done<'_>> = profile.configs.iter().map(done).collect();
        let is_complete = |n: usize| joined(&batch, &all[..n], 2).complete;
        assert_eq!([0, 1, 2].map(is_complete), [false, false, true]);
    }
}
