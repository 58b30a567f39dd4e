//! The personalities of programs make the calls of the programs that are installed. Each day `program_traces` compares them with
//! traces of those programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::cmd::{Wml, count, flowop, number};

/// How a program runs: its directory in `tests/programs`, and the arguments of its `drive` behind the directory.
struct Driven {
    program: &'static str,
    /// True if it is prepared before each run, not once.
    is_fresh: bool,
    args: &'static [&'static str],
}

const SQLITE_DELETE: Driven = Driven { program: "sqlite", is_fresh: false, args: &["delete", "full", "1500"] };
const SQLITE_WAL: Driven = Driven { program: "sqlite", is_fresh: false, args: &["wal", "full", "3000"] };
const SQLITE_NORMAL: Driven = Driven { program: "sqlite", is_fresh: false, args: &["wal", "normal", "3000"] };
const GIT: Driven = Driven { program: "git", is_fresh: false, args: &[] };
const PG: Driven = Driven { program: "pg", is_fresh: true, args: &["4", "5"] };
const CLONE: Driven = Driven { program: "clone", is_fresh: true, args: &[] };
const MAIL: Driven = Driven { program: "mail", is_fresh: true, args: &[] };
const ROCKSDB: Driven = Driven { program: "rocksdb", is_fresh: true, args: &[] };
const NOTMUCH: Driven = Driven { program: "notmuch", is_fresh: true, args: &[] };
const NPM: Driven = Driven { program: "npm", is_fresh: true, args: &[] };
const RSYNC: Driven = Driven { program: "rsync", is_fresh: true, args: &[] };
const TAR: Driven = Driven { program: "tar", is_fresh: true, args: &[] };

/// The rows of `wmlrun fidelity` with their verdicts, of a script and a program.
fn rows(script: &str, driven: &Driven, pairs: &str, more: &[&str]) -> Vec<(String, String)> {
    let own = Wml::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(driven.program);
    let dir = own.dir().join("d");
    fs::create_dir(&dir).unwrap();
    // PostgreSQL runs as another user than root.
    for (dir, mode) in [(own.dir(), 0o755), (dir.as_path(), 0o777)] {
        fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    let prepared = std::process::Command::new(programs.join("prepare")).arg(&dir).status().unwrap();
    assert!(prepared.success());
    let again = format!("{} {}", programs.join("prepare").display(), dir.display());
    let before = ["--before", &again];
    let done = Wml::below(own.dir())
        .args(["fidelity", script, "--json", "--pairs", pairs, "--dir"])
        .args([&dir])
        .args(if driven.is_fresh { &before[..] } else { &[] })
        .args(more)
        .args(["--"])
        .args([programs.join("drive")])
        .args([&dir])
        .args(driven.args)
        .alone()
        .timeout(Duration::from_mins(10))
        .run();
    let document: serde_json::Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.shown()));
    let rows = document["rows"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["name"]), text(&row["verdict"]))).collect()
}

/// Asserts that a script makes the calls of a program: no row but those of times is outside, and these are inside.
fn makes_the_calls(script: &str, driven: &Driven, more: &[&str], inside: &[&str]) {
    let rows = rows(script, driven, "5", more);
    let outside: Vec<&str> = rows
        .iter()
        .filter(|(name, verdict)| verdict == "outside" && !is_time(name))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(outside, Vec::<&str>::new(), "{script} {more:?}");
    for wanted in inside {
        let found = rows.iter().find(|(name, _)| name == wanted);
        assert!(found.is_some_and(|(_, verdict)| verdict == "inside"), "{script} {more:?}: {wanted} {found:?}");
    }
}

/// True if Python has the version of the library that the personalities were recorded with.
fn has_sqlite() -> bool {
    let code = "import sqlite3; print(sqlite3.sqlite_version)";
    let found = std::process::Command::new("python3").args(["-c", code]).output();
    found.is_ok_and(|found| found.stdout.starts_with(b"3.40."))
}

/// True if there is such a program.
fn has(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// True for a row of times, which differ on a busy machine.
pub(crate) fn is_time(name: &str) -> bool {
    ["p50", "p99", "second", "between", "in calls"].iter().any(|word| name.contains(word))
}

#[test]
fn sqlite_delete_and_sqlite_wal_make_the_calls_of_sqlite() {
    needs!(crate::cmd::long());
    needs!(has_sqlite(), "there is no python3 with SQLite 3.40");
    let inside = ["share of write", "share of lock", "write a transaction", "lock a transaction"];
    makes_the_calls("sqlite_delete", &SQLITE_DELETE, &[], &inside);
    makes_the_calls("sqlite_wal", &SQLITE_WAL, &[], &inside);
    makes_the_calls("sqlite_wal", &SQLITE_NORMAL, &["--set", "sync=0"], &inside);
}

#[test]
fn git_status_makes_the_calls_of_git() {
    needs!(crate::cmd::long());
    needs!(has("git"), "there is no git");
    makes_the_calls("git_status", &GIT, &[], &["share of stat", "stat a run", "open a run", "list a run", "files"]);
}

/// True if there is a `postgres` of Debian.
fn has_postgresql() -> bool {
    fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some())
}

#[test]
fn pg_makes_the_calls_of_postgresql() {
    needs!(crate::cmd::long());
    needs!(has_postgresql(), "there is no PostgreSQL in /usr/lib/postgresql");
    let rows = rows("pg", &PG, "5", &[]);
    // How many transactions share a sync hangs on the time that one takes.
    for wanted in ["share of seek", "share of read", "seek a transaction", "read a transaction", "files"] {
        let found = rows.iter().find(|(name, _)| name == wanted);
        assert!(found.is_some_and(|(_, verdict)| verdict == "inside"), "{wanted} {found:?}");
    }
}

#[test]
fn tar_extract_makes_the_calls_of_tar() {
    needs!(crate::cmd::long());
    needs!(has("tar"), "there is no tar");
    let inside = ["share of write", "write a run", "read a run", "open a run", "utimes a run", "files"];
    makes_the_calls("tar_extract", &TAR, &[], &inside);
}

#[test]
fn git_clone_makes_the_calls_of_git() {
    needs!(crate::cmd::long());
    needs!(has("git"), "there is no git");
    let inside = ["share of write", "write a run", "fault a run", "stat a run", "syncs a run", "files", "directories"];
    makes_the_calls("git_clone", &CLONE, &[], &inside);
}

#[test]
fn mail_deliver_makes_the_calls_of_procmail() {
    needs!(crate::cmd::long());
    needs!(has("procmail"), "there is no procmail");
    let inside = ["write a transaction", "fsync a transaction", "link a transaction", "stat a transaction", "files"];
    makes_the_calls("mail_deliver", &MAIL, &[], &inside);
}

#[test]
fn lsm_store_makes_the_calls_of_rocksdb() {
    needs!(crate::cmd::long());
    needs!(has("db_bench"), "there is no db_bench");
    let inside =
        ["share of read", "share of write", "read a transaction", "write a transaction", "sizes read, distance"];
    makes_the_calls("lsm_store", &ROCKSDB, &[], &inside);
}

#[test]
fn npm_install_makes_the_calls_of_npm() {
    needs!(crate::cmd::long());
    needs!(has("npm"), "there is no npm");
    let inside =
        ["share of stat", "share of mkdir", "write a run", "mkdir a run", "stat a run", "files", "directories"];
    makes_the_calls("npm_install", &NPM, &[], &inside);
}

#[test]
fn rsync_copy_makes_the_calls_of_rsync() {
    needs!(crate::cmd::long());
    needs!(has("rsync"), "there is no rsync");
    let inside = ["share of open", "share of stat", "write a run", "rename a run", "chmod a run", "files"];
    makes_the_calls("rsync_copy", &RSYNC, &[], &inside);
}

#[test]
fn notmuch_new_makes_the_calls_of_notmuch() {
    needs!(crate::cmd::long());
    needs!(has("notmuch"), "there is no notmuch");
    let inside = ["share of seek", "share of read", "read a run", "write a run", "syncs a run", "files"];
    makes_the_calls("notmuch_new", &NOTMUCH, &[], &inside);
}

#[test]
fn the_commands_of_the_page_make_a_script_of_a_program() {
    needs!(has("tar"), "there is no tar");
    let own = Wml::new();
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/programs.md")).unwrap();
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ wmlrun ")).collect();
    assert_eq!(commands.len(), 7, "{commands:?}");
    for command in commands {
        // The script runs for a minute if nothing is said.
        let short = if command.starts_with("pack.wml") && !crate::cmd::long() { "--runtime 2" } else { "" };
        let text = format!("exec {} {command} {short}", crate::cmd::binary().display());
        let mut shell = std::process::Command::new("sh");
        let done = shell.args(["-c", &text]).current_dir(own.dir()).env("XDG_STATE_HOME", own.dir()).output().unwrap();
        let code = done.status.code();
        let is_compared = command.starts_with("fidelity") && matches!(code, Some(10 | 11));
        assert!(is_compared || code == Some(0), "{command}: {code:?} {}", String::from_utf8_lossy(&done.stderr));
    }
    let script = fs::read_to_string(own.dir().join("pack.wml")).unwrap();
    assert!(script.contains("# Fidelity: ") && script.contains(" on "), "{script}");
}

#[test]
fn a_result_has_the_comparison_of_its_script() {
    let call = Wml::new().args(["git_status", "--engine", "null", "--runtime", "1"]).result();
    let result = call.run().exits(0).result().clone();
    let compared = wml::learn::fidelity_in(result["script"]["text"].as_str().unwrap()).unwrap();
    let shown = Wml::new().args(["show", "git_status", "--fidelity"]).run().exits(0).stdout;
    assert_eq!(compared.trim_end(), shown.trim_end());
    assert!(shown.contains(" rows inside") && shown.contains("stat p50"), "{shown}");
}

/// A run of a personality without I/O.
fn without_io(name: &str, seconds: &str) -> serde_json::Value {
    let call = Wml::new().args([name, "--engine", "null", "--runtime", seconds]).result();
    call.run().exits(0).result()["runs"][0].clone()
}

#[test]
fn those_by_publication_have_the_published_sizes_and_say_so() {
    let of = |run: &serde_json::Value, name: &str, key: &str| number(flowop(run, name), &[key]);
    let is_near = |value: f64, wanted: f64, share: f64| {
        assert!((value - wanted).abs() <= share * wanted, "{value}, not {wanted}");
    };

    let unet3d = without_io("train_unet3d", "2");
    let set = &unet3d["filesets"][0];
    assert_eq!(set["files"], 168);
    // The error of the mean of 168 sizes is 4 %.
    is_near(number(set, &["bytes"]), 168.0 * 146.6e6, 0.12);
    // Two batches are ahead, and each of four readers is in a file.
    let (steps, read) = (of(&unet3d, "step", "ops"), of(&unet3d, "sample-read", "ops"));
    assert!(steps >= 2.0 && (7.0 * steps..=7.0 * (steps + 3.0) + 4.0).contains(&read), "{steps}, {read}");

    let resnet50 = without_io("train_resnet50", "2");
    let set = &resnet50["filesets"][0];
    assert_eq!((&set["files"], number(set, &["bytes"])), (&128.into(), 128.0 * 1251.0 * 114_660.0));
    let (steps, read) = (of(&resnet50, "step", "ops"), of(&resnet50, "sample.sample-read", "ops"));
    assert!(steps >= 2.0 && (400.0 * steps..=400.0 * (steps + 3.0) + 8.0).contains(&read), "{steps}, {read}");
    is_near(of(&resnet50, "sample.sample-read", "bytes"), read * 114_660.0, 1e-9);

    let checkpoint = without_io("checkpoint", "60");
    for name in ["state-write", "state-read"] {
        assert_eq!(count(flowop(&checkpoint, name), "ops"), 80);
        is_near(of(&checkpoint, name, "bytes"), 10.0 * 105e9 * 0.01, 1e-9);
    }
    assert_eq!(count(flowop(&checkpoint, "state-sync"), "ops"), 80);

    let container = without_io("container_start", "2");
    let starts = of(&container, "ready", "ops");
    assert!(starts >= 2.0, "{starts}");
    // An image may be half unpacked at the end.
    let [written, read] = ["ready.pull.file-write", "ready.start.used-read"].map(|name| of(&container, name, "bytes"));
    is_near(written, starts * 10_000.0 * 32_768.0, 1.0 / starts);
    is_near(read, 0.064 * starts * 10_000.0 * 32_768.0, 1.0 / starts);

    for name in ["train_unet3d", "train_resnet50", "checkpoint", "container_start"] {
        let text = Wml::new().args(["show", name]).run().exits(0).stdout;
        let is_marked = text.contains("\n# Deviations: By publication: no program was recorded or compared.");
        assert!(is_marked && text.lines().count() <= 64, "{text}");
        let refused = Wml::new().args(["show", name, "--fidelity"]).run().exits(2).stderr;
        assert!(refused.contains("was not compared with a program"), "{refused}");
    }
}
