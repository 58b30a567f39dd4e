//! `wmlrun age`: ages a file system, and prints the score as text or JSON.

use super::bars::Bars;
use super::console::{Verbosity, notice, print_lines};
use super::experiment_args::AgeArgs;
use super::option_values::is_stdout;
use crate::diag::{Failure, Status};
use crate::disk::Error;
use crate::disk::aging::{self, AgingOptions, AgingReport, Figure, FileScore, FreeSpaceScore};
use crate::os::{Errno, signals};
use crate::output::Target;
use crate::report::json;
use crate::util::table::{Align, Table};
use crate::util::{count, duration, size};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

/// The name of the schema of `wmlrun age --json`.
const SCHEMA: &str = "wmlrun.aging";

/// The output of `wmlrun age --json`.
#[derive(Serialize)]
struct AgingDocument<'a> {
    schema: String,
    #[serde(flatten)]
    report: &'a AgingReport,
    /// Mean extents per file at the end.
    extents_per_file: Option<f64>,
    /// Share of the blocks that directly follow their predecessor at the end.
    contiguous: Option<f64>,
}

/// Ages a file system. Returns the exit status.
pub(super) fn age(args: &AgeArgs) -> Result<u8, Failure> {
    let is_own = |head: &[u8]| json::has_schema(head, SCHEMA);
    let open = |path: &Path| {
        Target::open(path, &[]).and_then(|target| target.recognizing(is_own).unless_foreign(args.force)).map_err(|e| {
            let help = match e.kind() {
                ErrorKind::AlreadyExists => "give `--json` another path, or replace the file with `--force`",
                _ => "give `--json` another path",
            };
            Failure::refused(format!("can't write {}: {e}", path.display()), help)
        })
    };
    let target = args.json.as_deref().map(open).transpose()?;
    let (interrupt, _) = signals::install_handlers();
    // A step that ends after a signal leaves an aging that can be continued.
    let _kept = signals::Kept::begin();
    let bars = Bars::new(if args.quiet { Verbosity::Quiet } else { Verbosity::Normal });
    let options = AgingOptions { to: args.to, rounds: args.rounds, seed: args.seed };
    let done = signals::interruptible(&interrupt, |stop| aging::age(&args.dir, options, &bars, stop));
    bars.finish();
    let report = match done {
        Ok(report) => report,
        Err(Error::Stopped { .. }) => {
            notice("note: interrupted; the same command continues, `wmlrun clean` removes the files");
            return Err(Failure::unexplained(Status::Interrupted(interrupt.load(SeqCst) as u8)));
        }
        Err(e) => return Err(Failure::refused(e.to_string(), help(&e, &args.dir).unwrap_or_default())),
    };
    if let Some(note) = report.note.as_ref().filter(|_| !args.quiet) {
        notice(&format!("note: {note}"));
    }
    let is_stdout = args.json.as_deref().is_some_and(is_stdout);
    let text = text(&report);
    if is_stdout {
        notice(text.trim_end());
    } else {
        print_lines(text.trim_end());
    }
    let written = target.map_or(Ok(()), |target| target.write(&mut |out| write_json(&report, out)));
    written.map(|()| 0).map_err(|e| {
        let path = args.json.as_deref().unwrap_or(Path::new("-"));
        Failure::failed(format!("can't write {}: {e}", path.display()), "the same command writes it again")
    })
}

fn write_json(report: &AgingReport, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let files = report.aged.files.as_ref().and_then(Figure::known);
    let document = AgingDocument {
        schema: format!("{SCHEMA}/1"),
        report,
        extents_per_file: files.and_then(FileScore::extents_per_file),
        contiguous: files.and_then(FileScore::contiguous),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// Returns advice on an error: that of file sets, except where it refers to options of a run.
fn help(error: &Error, dir: &Path) -> Option<String> {
    Some(match error {
        Error::Unmarked { .. } | Error::Link { .. } | Error::NotADirectory { .. } | Error::Marker { .. } => {
            "nothing was changed; use another directory".to_owned()
        }
        Error::Space { .. } | Error::Inodes { .. } | Error::Memory { .. } => {
            "free some space, or give a smaller `--to`".to_owned()
        }
        Error::InUse { .. } => "wait until the other wmlrun ends, or use another directory".to_owned(),
        Error::Call { errno: Errno::NOSPC | Errno::DQUOT, .. } => format!(
            "free some space and repeat the command, which then continues; `wmlrun clean {}` removes the files",
            dir.display()
        ),
        Error::Call { errno: Errno::ROFS, .. } => "mount the file system read-write".to_owned(),
        Error::Call { errno: Errno::ACCESS, .. } => {
            "run as a user with permission, or use another directory".to_owned()
        }
        Error::Call { call: "lock", errno: Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK, .. } => {
            "mount the file system with file locks (Lustre: `-o flock` or `-o localflock`)".to_owned()
        }
        Error::Call { set, errno: Errno::NOENT, .. } if set.is_empty() => {
            "give an existing directory on the file system to age".to_owned()
        }
        error => return error.help(),
    })
}

fn text(report: &AgingReport) -> String {
    let AgingReport { path, to, rounds, seed, capacity, bytes, trees, files, .. } = report;
    let of = if to.ends_with('%') { format!("{to} of {}", size::format(*capacity)) } else { size::format(*bytes) };
    let mut text = format!(
        "{} aged to {of}: {}, {}, in {} (seed {seed}, {})\n",
        path.display(),
        count::count(*files, "file"),
        size::format(*bytes),
        count::count(u64::from(*trees), "source tree"),
        count::count(u64::from(*rounds), "round"),
    );
    text += &if report.steps_before == report.steps {
        "nothing was written: the aging was complete\n".to_owned()
    } else {
        let resumed =
            if report.steps_before > 0 { format!(" from step {} on", report.steps_before + 1) } else { String::new() };
        format!(
            "{} written in {}{resumed} ({})\n",
            size::format(report.written),
            duration::seconds(report.seconds),
            count::count(report.steps as u64, "step")
        )
    };
    let scores = scores(report);
    if !scores.is_empty() {
        text += &format!("\n{}", scores.render());
    }
    let columns =
        [&report.at_start.free_space, &report.aged.free_space].map(|found| found.as_ref().and_then(Figure::known));
    if let [Some(start), Some(aged)] = columns {
        text += &format!("\n{}", histogram(start, aged).render());
    }
    for reason in unknown(report) {
        text += &format!("unknown: {reason}\n");
    }
    text
}

/// Returns the reasons why figures are unknown, each once.
fn unknown(report: &AgingReport) -> Vec<&str> {
    fn reason<T>(found: Option<&Figure<T>>) -> Option<&str> {
        match found {
            Some(Figure::Unknown(reason)) => Some(reason),
            _ => None,
        }
    }
    let mut reasons: Vec<&str> = [&report.first_trees, &report.aged, &report.at_start]
        .into_iter()
        .flat_map(|score| [reason(score.files.as_ref()), reason(score.free_space.as_ref())])
        .flatten()
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

/// Returns the table of figures: a column for each moment. Figures that are unknown at every moment are left out.
fn scores(report: &AgingReport) -> Table {
    let right = Align::Right;
    let mut table = Table::new([("", Align::Left), ("at the start", right), ("first trees", right), ("aged", right)]);
    let moments = [&report.at_start, &report.first_trees, &report.aged];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut row = |name: &str, cells: [Option<String>; 3]| {
        if cells.iter().any(Option::is_some) {
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            table.row(std::iter::once(name.to_owned()).chain(cells));
        }
    };
    let mut files = |name: &str, figure: &dyn Fn(&FileScore) -> Option<String>| {
        row(name, moments.map(|score| score.files.as_ref().and_then(Figure::known).and_then(figure)));
    };
    files("files with data", &|f| Some(count::grouped(f.files)));
    files("extents per file", &|f| f.extents_per_file().map(|mean| format!("{mean:.3}")));
    files("files with several extents", &|f| (f.files > 0).then(|| percent(f.fragmented as f64 / f.files as f64)));
    files("most extents of a file", &|f| Some(count::grouped(f.most)));
    files("blocks next to their predecessor", &|f| f.contiguous().map(percent));
    let mut free = |name: &str, figure: &dyn Fn(&FreeSpaceScore) -> String| {
        row(name, moments.map(|score| score.free_space.as_ref().and_then(Figure::known).map(figure)));
    };
    free("free space", &|f| size::format(f.bytes));
    free("free extents", &|f| count::grouped(f.extents));
    free("mean free extent", &|f| size::format(f.bytes / f.extents.max(1)));
    free("largest free extent", &|f| size::format(f.largest));
    table
}

/// Returns the histograms of the free extents at the start and at the end.
fn histogram(start: &FreeSpaceScore, aged: &FreeSpaceScore) -> Table {
    let right = Align::Right;
    let heads = [
        ("free extents from", right),
        ("at the start", right),
        ("of space", right),
        ("aged", right),
        ("of space", right),
    ];
    let mut table = Table::new(heads);
    let mut sizes: Vec<u64> = start.histogram.iter().chain(&aged.histogram).map(|class| class.from).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for from in sizes {
        let cells = [start, aged].into_iter().flat_map(|score| {
            let class = score.histogram.iter().find(|class| class.from == from).copied().unwrap_or_default();
            let share = class.bytes as f64 / score.bytes.max(1) as f64;
            [count::grouped(class.extents), format!("{:.1} %", share * 100.0)]
        });
        table.row(std::iter::once(size::format(from)).chain(cells));
    }
    table
}
