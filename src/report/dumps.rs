//! The files that `stats dump`, `stats xmldump` and `stats multidump` write, in the forms of Filebench 1.4.

use super::filebench::{cpu_us, lines_14, mean_ms, rows, with_listings};
use super::format::visible_run;
use crate::result::{Run, Summary};
use std::io::{self, Write};

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
    /// True if a file that begins with these bytes was written by the same command.
    pub is_own: fn(&[u8]) -> bool,
}

/// `stats dump`: `Flowop totals:`, then rows without tabs.
pub(crate) static DUMP: File = File { command: "stats dump", write: dump, is_own: |head| totals(head) == Some(false) };

/// `stats multidump`: `Flowop totals:`, then rows separated by tabs.
pub(crate) static MULTIDUMP: File =
    File { command: "stats multidump", write: multidump, is_own: |head| totals(head) == Some(true) };

/// `stats xmldump`: `<stat_doc name="Filebench Workload">`.
pub(crate) static XMLDUMP: File = File {
    command: "stats xmldump",
    write: xmldump,
    is_own: |head| head.starts_with(b"<stat_doc name=\"Filebench Workload\">\n<stat_group name=\"Flowop totals\">\n"),
};

/// True if the rows of a file of `stats dump` or `stats multidump` are separated by tabs; `None` for any other
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
pub(crate) fn dump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(visible_run(run));
    writeln!(out, "Flowop totals:")?;
    lines_14(run, out)?;
    let Summary { ops, ops_per_s, reads_per_s, writes_per_s, mib_per_s, .. } = run.summary;
    let rates = format!("{ops_per_s:>8.1} ops/s, {reads_per_s:>8.0}/{writes_per_s:.0} r/w {mib_per_s:>7.1}mb/s");
    writeln!(out, "\nIO Summary:      {ops:>8} ops {rates}, {:>8.0}uscpu/op\n", cpu_us(run))
}

/// Writes the file of `stats multidump`: the same figures, separated by tabs.
pub(crate) fn multidump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(visible_run(run));
    writeln!(out, "Flowop totals:")?;
    for flowop in rows(run) {
        let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(&flowop));
        writeln!(out, "{}\t{rate:.0}\t{mb:.1}\t{ms:.1}\t{:.0}", flowop.name, 0.0)?;
    }
    let Summary { ops, ops_per_s, reads_per_s, writes_per_s, mib_per_s, .. } = run.summary;
    let (cpu, ms) = (cpu_us(run), run.summary.latency_ms.unwrap_or(0.0));
    let rates = format!("{ops_per_s:.1}\t{reads_per_s:.0}\t{writes_per_s:.0}\t{mib_per_s:.1}");
    writeln!(out, "\nIO Summary:\n{ops}\t{rates}\t{cpu:.0}\t{ms:.1}")
}

/// Writes the file of `stats xmldump`: two groups of cells with the names of their rows and columns, one element per
/// line.
pub(crate) fn xmldump(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let run = &*with_listings(visible_run(run));
    let s = &run.summary;
    writeln!(out, "<stat_doc name=\"Filebench Workload\">")?;
    let rows: Vec<(String, Vec<String>)> = rows(run)
        .map(|flowop| {
            let (rate, mb, ms) = (flowop.ops_per_s, flowop.mib_per_s, mean_ms(&flowop));
            let cells = vec![format!("{rate:.0}"), format!("{mb:.1}"), format!("{ms:.1}"), "0".to_owned()];
            (flowop.into_owned().name, cells)
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
    stat_group("IO Summary", &[("IO Summary".to_owned(), cells)], &columns, out)?;
    writeln!(out, "</stat_doc>")
}

fn stat_group(name: &str, rows: &[(String, Vec<String>)], columns: &[&str], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<stat_group name=\"{name}\">\n<cell_list>")?;
    for cell in rows.iter().flat_map(|(_, cells)| cells) {
        writeln!(out, "<cell>{cell}</cell>")?;
    }
    writeln!(out, "</cell_list>\n<dim_list>")?;
    for names in [&rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()[..], columns] {
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

    use super::{dump, multidump, xmldump};
    use crate::result::{FlowopResult, Latency, Run, Summary};
    use std::io::Write;

    fn text(write: impl Fn(&Run, &mut dyn Write) -> std::io::Result<()>, run: &Run) -> String {
        let mut out = Vec::new();
        write(run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_files_of_stats_dump() {
        let latency_ns = Latency { mean: Some(2e5), ..Latency::default() };
        let read = FlowopResult {
            name: "shadowread".into(),
            ops_per_s: 13_793.0,
            mib_per_s: 26.2,
            latency_ns,
            ..FlowopResult::default()
        };
        let mut run = Run { flowops: vec![read], ..Run::default() };
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
        // A composite has a row of zeros in all of them.
        run.flowops[0].name = "user.shadowread".into();
        run.flowops[0].composites = vec!["user".into()];
        assert!(text(dump, &run).contains("\nuser                        0ops/s   0.0mb/s      0.0ms/op"));
        assert!(text(multidump, &run).contains("\nuser\t0\t0.0\t0.0\t0\n"));
        assert!(text(xmldump, &run).contains("<dimval>user</dimval>"));
    }
}
