//! The personalities of programs make the calls in the committed traces of the programs, and a changed one does not.
//!
//! `tests/programs/record` makes the traces. The tests of `programs` compare with the programs themselves.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use wml::learn::{Fidelity, FidelityVerdict, TracedRun, TracedSide, TransactionEnd};

use crate::cmd::{Wml, binary};
use crate::programs::is_time;
use crate::truth::has_bpf;

/// A personality, and where the trace of its program is below `tests/programs`.
struct Traced {
    script: &'static str,
    trace: &'static str,
    /// The name of a file set in the script, and in the trace, whose names are hidden.
    renamed: [&'static str; 2],
    /// How long the script runs, if it does not end by itself.
    seconds: &'static str,
}

const SQLITE_DELETE: Traced =
    Traced { script: "sqlite_delete", trace: "sqlite/sqlite_delete.wtrace", renamed: [""; 2], seconds: "1" };
const SQLITE_WAL: Traced =
    Traced { script: "sqlite_wal", trace: "sqlite/sqlite_wal.wtrace", renamed: [""; 2], seconds: "0.5" };
const PG: Traced =
    Traced { script: "pg", trace: "pg/pg.wtrace", renamed: ["f16402", "b349e1451d3effee"], seconds: "1" };
const GIT: Traced = Traced { script: "git_status", trace: "git/git_status.wtrace", renamed: [""; 2], seconds: "60" };
const TAR: Traced = Traced { script: "tar_extract", trace: "tar/tar_extract.wtrace", renamed: [""; 2], seconds: "60" };

/// What a trace says of a run, whose transactions end as the script says.
fn read(path: &Path, side: TracedSide<'_>, script: &str) -> TracedRun {
    let trace = BufReader::new(File::open(path).unwrap());
    let end = TransactionEnd::in_script(script);
    TracedRun::read(trace, side, end.as_ref()).unwrap_or_else(|error| panic!("{}", error.message))
}

impl Traced {
    fn trace(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(self.trace)
    }

    /// The script, with the names of the trace.
    fn text(&self) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("personalities").join(self.script).with_extension("wml");
        let text = fs::read_to_string(path).unwrap();
        let [from, to] = self.renamed;
        if from.is_empty() { text } else { text.replace(from, to) }
    }

    /// Asserts that no row of `wmlrun fidelity` is outside but those of times, and that some are inside.
    fn is_as_recorded(&self, but: &[&str], inside: &[&str]) {
        let own = Wml::new().file("script.wml", &self.text());
        let done = own
            .args(["fidelity", "script.wml", "--json", "--pairs", "3", "--dir", "."])
            .args([Path::new("--trace"), &self.trace()])
            .run();
        let document: serde_json::Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.shown()));
        let rows = document["rows"].as_array().unwrap();
        for row in rows {
            let name = row["name"].as_str().unwrap();
            let is_asked = !is_time(name) && !but.iter().any(|word| name.contains(word));
            assert!(!is_asked || row["verdict"] != "outside", "{}: {row:#}", self.script);
        }
        for wanted in inside {
            let found = rows.iter().find(|row| row["name"] == *wanted);
            assert!(found.is_some_and(|row| row["verdict"] == "inside"), "{}: {wanted} {found:?}", self.script);
        }
    }

    /// What the trace says of the program.
    fn program(&self) -> TracedRun {
        read(&self.trace(), TracedSide::Program, &self.text())
    }

    /// The rows of one recorded run of a script beside the program's.
    fn beside(&self, program: &TracedRun, text: &str) -> Fidelity {
        let own = Wml::new().file("script.wml", text);
        let dir = own.dir().canonicalize().unwrap().join("files");
        fs::create_dir(&dir).unwrap();
        // In this directory, so that its annotations are in the trace.
        let run = "cd files && WMLRUN_MARK=1 exec \"$0\" run ../script.wml --runtime \"$1\" --clean --dir \"$PWD\"";
        let recorded = own
            .args(["record", "-o", "run.wtrace", "--under", "files", "--", "sh", "-c", run])
            .args([binary()])
            .args([self.seconds])
            .run()
            .exits(0);
        let side = TracedSide::Script { dir: dir.as_os_str().as_bytes() };
        let pair = (program.clone(), read(&recorded.dir().join("run.wtrace"), side, text));
        // Each row is then judged by this one run.
        Fidelity::of(&[pair.clone(), pair.clone(), pair], 3)
    }

    /// Asserts that each change of the script, a text for another one, puts a row outside.
    fn changes_are_told(&self, changes: &[(&str, &str, &str)]) {
        let (text, program) = (self.text(), self.program());
        for (from, to, row) in changes {
            assert!(text.contains(from), "{from}");
            let found = self.beside(&program, &text.replace(from, to));
            let works = found.rows.iter().any(|row| row.name.starts_with("in calls ") && row.estimate.value > 0.0);
            assert!(works, "{to}: no calls {:#?}", found.rows);
            let told = found.rows.iter().find(|found| found.name == *row);
            let is_outside = told.is_some_and(|found| found.verdict == FidelityVerdict::Outside);
            assert!(is_outside, "{to}: {row} {told:?} {:#?}", found.rows);
        }
    }
}

#[test]
fn sqlite_delete_is_as_recorded_and_a_changed_one_is_not() {
    needs!(has_bpf());
    SQLITE_DELETE
        .is_as_recorded(&[], &["share of write", "share of lock", "write a transaction", "syncs a transaction"]);
    SQLITE_DELETE.changes_are_told(&[
        ("flowop fdatasync name=db-sync", "flowop nothing name=db-sync", "syncs a transaction"),
        ("iosize=4k,onecall", "iosize=8k,onecall", "bytes written a transaction"),
        (
            "page-read,filesetname=db,fd=101,iosize=4k,random,weight=82\n  flowop nothing name=page-cached,weight=18",
            "page-read,filesetname=db,fd=101,iosize=4k,random,weight=77\n  flowop nothing name=page-cached,weight=23",
            "bytes read a transaction",
        ),
        ("set $compute=0.00003", "set $compute=0.0003", "running between calls a transaction"),
        ("iosize=1,at=0,iters=7", "iosize=1,at=0,iters=12", "share of lock"),
        (
            "fsyncdir name=directory-sync,filesetname=journal,data",
            "fsyncdir name=directory-sync,filesetname=journal",
            "order of syncs, distance",
        ),
    ]);
}

#[test]
fn sqlite_wal_is_as_recorded_and_a_changed_one_is_not() {
    needs!(has_bpf());
    SQLITE_WAL.is_as_recorded(&[], &["share of write", "share of lock", "write a transaction", "lock a transaction"]);
    SQLITE_WAL.changes_are_told(&[
        ("flowop fdatasync name=log-sync,", "flowop nothing name=log-sync,", "syncs a transaction"),
        ("set $sync=1", "set $sync=0.95", "syncs a transaction"),
        (
            "name=frame-page,filesetname=log,fd=102,iosize=4k",
            "name=frame-page,filesetname=log,fd=102,iosize=8k",
            "bytes written a transaction",
        ),
        ("set $compute=0.000017", "set $compute=0.00017", "running between calls a transaction"),
        ("flowop checkpoint name=checkpoint", "flowop nothing name=checkpoint", "read a transaction"),
    ]);
}

#[test]
fn pg_is_as_recorded_and_a_changed_one_is_not() {
    needs!(has_bpf());
    // How many transactions share a sync hangs on the time that one takes.
    let of_time = ["sync", "write", "written"];
    PG.is_as_recorded(
        &of_time,
        &["share of seek", "share of read", "seek a transaction", "read a transaction", "files"],
    );
    PG.changes_are_told(&[
        ("flowop fdatasync name=log-sync,", "flowop nothing name=log-sync,", "syncs a transaction"),
        (
            "weight=88\n  flowop nothing name=account-hit,weight=12",
            "weight=93\n  flowop nothing name=account-hit,weight=7",
            "bytes read a transaction",
        ),
        (
            "name=account-read,filesetname=accounts,fd=101,iosize=8k",
            "name=account-read,filesetname=accounts,fd=101,iosize=16k",
            "sizes read, distance",
        ),
        ("set $compute=0.00003", "set $compute=0", "running between calls a transaction"),
        ("thread name=background-writer {", "thread name=background-writer,instances=0 {", "syncrange a transaction"),
    ]);
}

#[test]
fn git_status_is_as_recorded_and_a_changed_one_is_not() {
    needs!(has_bpf());
    GIT.is_as_recorded(&[], &["share of stat", "stat a run", "list a run", "files"]);
    GIT.changes_are_told(&[
        ("flowop listdir name=dir-list,fd=1", "flowop listdir name=dir-list,fd=1,iters=2", "list a run"),
        ("missing,weight=34", "missing,weight=900", "open a run"),
        ("set $files=9800", "set $files=19600", "files"),
        ("value=0.000003", "value=0.00003", "running between calls a run"),
        ("flowop walk name=walk", "flowop nothing name=walk", "share of list"),
    ]);
}

#[test]
fn tar_extract_is_as_recorded_and_a_changed_one_is_not() {
    needs!(has_bpf());
    TAR.is_as_recorded(&[], &["share of write", "write a run", "read a run", "open a run", "utimes a run", "files"]);
    TAR.changes_are_told(&[
        ("flowop chown name=file-owner", "flowop chmod name=file-owner", "chown a run"),
        ("iosize=10k,onecall", "iosize=20k,onecall", "sizes written, distance"),
        (
            "flowop closefile name=file-close",
            "flowop fsync name=file-sync,filesetname=tree,fd=1\n  flowop closefile name=file-close",
            "syncs a run",
        ),
        ("weight=152", "weight=125", "bytes written a run"),
        ("  flowop leave name=leave\n", "", "utimes a run"),
    ]);
}
