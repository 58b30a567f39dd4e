//! The HTML page of a batch: the figures of each workload and links to its files. A single file without scripts or
//! images.
//!
//! It has the four tables of Filebench's comparison: operations, bandwidth, latency and processor time, with a row for
//! each workload and each of its flowops. The caller provides the runs and the links.

use crate::result::{FlowopResult, Run, RunState};
use crate::util::printable;
use minijinja::value::Value;
use minijinja::{Environment, context};

/// One workload of a batch.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    pub name: &'a str,
    /// Name of its personality.
    pub personality: &'a str,
    /// Its run; `None` if it failed before measuring.
    pub run: Option<&'a Run>,
    /// How it ended, if there is no run.
    pub ended: &'a str,
    /// Its files: label and link relative to the page.
    pub files: Vec<(&'a str, String)>,
}

/// The contents of a batch's page.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// Name of the results directory, which is also the heading of the tables' value column.
    pub title: &'a str,
    /// The profile's description.
    pub description: &'a str,
    /// Description of the machine and the file system.
    pub place: &'a str,
    /// The workloads, in order.
    pub workloads: Vec<Workload<'a>>,
}

const TEMPLATE: &str = include_str!("index.html");

/// Renders the page as HTML.
pub(crate) fn html(page: &Page<'_>) -> Result<String, String> {
    let mut environment = Environment::new();
    // The template engine enables HTML escaping because the name ends in `.html`.
    environment.add_template("index.html", TEMPLATE).map_err(|e| e.to_string())?;
    let workloads: Vec<Value> = page.workloads.iter().map(head).collect();
    let tables = [
        table(
            "Throughput breakdown (ops per second)",
            page,
            |r| plain(r.summary.ops_per_s, 1),
            |f| plain(f.ops_per_s, 1),
        ),
        table("Bandwidth breakdown (MB/s)", page, |r| plain(r.summary.mib_per_s, 1), |f| plain(f.mib_per_s, 1)),
        table(
            "Latency breakdown (ms per op)",
            page,
            |r| measured(r.summary.latency_ms, 3),
            |f| measured(f.latency_ns.mean.map(|ns| ns / 1e6), 3),
        ),
        table(
            "Efficiency breakdown (Code path length in uS/op)",
            page,
            |r| measured(r.summary.cpu_us_per_op, 1),
            |_| String::new(),
        ),
    ];
    let template = environment.get_template("index.html").map_err(|e| e.to_string())?;
    let values = context! {
        title => visible(page.title),
        description => visible(page.description),
        place => visible(page.place),
        tables => tables.to_vec(),
        workloads => workloads,
    };
    template.render(values).map_err(|e| e.to_string())
}

/// Returns the link to a file below the page's directory. Percent-encodes all bytes except ASCII letters, digits, `-`,
/// `.` and `_`. The link begins with `./`, so that no part can be interpreted as a scheme or host.
pub(crate) fn link(parts: &[&str]) -> String {
    let mut out = String::from(".");
    for part in parts {
        out.push('/');
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out
}

/// Escapes control characters, which HTML escaping does not.
fn visible(text: &str) -> String {
    printable::line(text).into_owned()
}

fn plain(x: f64, digits: usize) -> String {
    format!("{x:.digits$}")
}

fn measured(x: Option<f64>, digits: usize) -> String {
    x.map_or("–".to_owned(), |x| plain(x, digits))
}

/// Returns the row of a workload in the first table.
fn head(w: &Workload<'_>) -> Value {
    let (state, good) = match w.run {
        Some(run) if run.state == RunState::Complete => (format!("complete, {:.1} s", run.measured_seconds), true),
        Some(run) => (format!("{}: {}", run.state.name(), run.ended_by), false),
        None => (w.ended.to_owned(), false),
    };
    let (name, personality, state) = (visible(w.name), visible(w.personality), visible(&state));
    let files: Vec<Value> =
        w.files.iter().map(|(name, href)| context! { name => *name, href => href.as_str() }).collect();
    context! { name, personality, state, good, files }
}

/// Returns a table with a value for each run and each of its flowops. Flowops without a value are omitted.
fn table(title: &str, page: &Page<'_>, sum: fn(&Run) -> String, one: fn(&FlowopResult) -> String) -> Value {
    let mut rows = Vec::new();
    for w in &page.workloads {
        let Some(run) = w.run else { continue };
        rows.push(context! { workload => visible(w.name), flowop => "", value => sum(run) });
        // As in Filebench's reports, flowops are in reverse order of definition.
        for flowop in run.flowops.iter().rev() {
            let value = one(flowop);
            if !value.is_empty() {
                rows.push(context! { workload => "", flowop => visible(&flowop.name), value });
            }
        }
    }
    context! { title, rows }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::result::fixture::fixture;

    #[test]
    fn links_are_relative_and_encoded() {
        assert_eq!(link(&["a", "thisrun.f"]), "./a/thisrun.f");
        assert_eq!(link(&["javascript:alert(1)", "x?y#z"]), "./javascript%3Aalert%281%29/x%3Fy%23z");
    }

    #[test]
    fn the_page_has_every_workload_and_table() {
        let document = fixture();
        let files = vec![("script", "a<b/thisrun.f".to_owned())];
        let workloads = vec![
            Workload { name: "a<b", personality: "oltp_sync", run: Some(&document.runs[0]), ended: "", files },
            Workload { name: "c", personality: "varmail", run: None, ended: "refused", files: Vec::new() },
        ];
        let page = Page { title: "host-ext4-p-now", description: "x & y", place: "somewhere", workloads };
        let text = html(&page).unwrap();
        for part in ["x &amp; y", "a&lt;b", "refused", "Throughput breakdown", "Efficiency breakdown", "shadowread"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains(&format!(">{:.1}<", document.runs[0].summary.ops_per_s)), "{text}");
        // The page loads no external resources.
        assert!(!text.contains("http") && !text.contains("<script"), "{text}");
    }
}
