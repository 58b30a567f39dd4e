//! The personalities `sqlite_delete` and `sqlite_wal` make the calls of `sqlite3`, and a changed one is told from it.

use std::fs;
use std::path::Path;

use crate::cmd::Wml;

/// The rows of `wmlrun fidelity` with their verdicts, of a script and `tests/programs/sqlite/drive`.
fn rows(script: &str, journal: &str, synchronous: &str, transactions: &str, more: &[&str]) -> Vec<(String, String)> {
    let own = Wml::new();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sqlite");
    fs::create_dir(own.dir().join("d")).unwrap();
    let dir = own.dir().join("d");
    let prepared = std::process::Command::new(programs.join("prepare")).arg(&dir).status().unwrap();
    assert!(prepared.success());
    let done = Wml::below(own.dir())
        .args(["fidelity", script, "--json", "--pairs", "5", "--dir"])
        .args([&dir])
        .args(more)
        .args(["--"])
        .args([programs.join("drive")])
        .args([&dir])
        .args([journal, synchronous, transactions])
        .alone()
        .run();
    let document: serde_json::Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.shown()));
    let rows = document["rows"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["name"]), text(&row["verdict"]))).collect()
}

/// True if Python has the version of the library that the personalities were recorded with.
fn has_sqlite() -> bool {
    let code = "import sqlite3; print(sqlite3.sqlite_version)";
    let found = std::process::Command::new("python3").args(["-c", code]).output();
    found.is_ok_and(|found| found.stdout.starts_with(b"3.40."))
}

/// True for a row of times, which differ on a busy machine.
fn is_time(name: &str) -> bool {
    ["p50", "p99", "second", "between", "in calls"].iter().any(|word| name.contains(word))
}

#[test]
fn the_personalities_make_the_calls_of_sqlite() {
    needs!(has_sqlite(), "there is no python3 with SQLite 3.40");
    for (script, journal, synchronous, transactions, more) in [
        ("sqlite_delete", "delete", "full", "1500", &[][..]),
        ("sqlite_wal", "wal", "full", "3000", &[]),
        ("sqlite_wal", "wal", "normal", "3000", &["--set", "sync=0"]),
    ] {
        let rows = rows(script, journal, synchronous, transactions, more);
        let outside: Vec<&str> = rows
            .iter()
            .filter(|(name, verdict)| verdict == "outside" && !is_time(name))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(outside, Vec::<&str>::new(), "{script} {synchronous}");
        for wanted in ["share of write", "share of lock", "write a transaction", "lock a transaction"] {
            let found = rows.iter().find(|(name, _)| name == wanted);
            assert!(
                found.is_some_and(|(_, verdict)| verdict == "inside"),
                "{script} {synchronous}: {wanted} {found:?}"
            );
        }
    }
}

#[test]
fn changed_personalities_are_told_from_sqlite() {
    needs!(has_sqlite(), "there is no python3 with SQLite 3.40");
    let changes = [
        ("flowop fdatasync name=db-sync", "flowop nothing name=db-sync", "syncs a transaction"),
        ("iosize=4k,onecall", "iosize=8k,onecall", "bytes written a transaction"),
        ("iosize=1,at=0,iters=7", "iosize=1,at=0,iters=12", "share of lock"),
        (
            "fsyncdir name=directory-sync,filesetname=journal,data",
            "fsyncdir name=directory-sync,filesetname=journal",
            "order of syncs, distance",
        ),
        (
            "page-read,filesetname=db,fd=101,iosize=4k,random,weight=82",
            "page-read,filesetname=db,fd=101,iosize=4k,random,weight=12",
            "read a transaction",
        ),
    ];
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("personalities/sqlite_delete.wml")).unwrap();
    let own = Wml::new();
    for (from, to, row) in changes {
        assert!(text.contains(from), "{from}");
        let script = own.dir().join("changed.wml");
        fs::write(&script, text.replace(from, to)).unwrap();
        let rows = rows(script.to_str().unwrap(), "delete", "full", "800", &[]);
        let found = rows.iter().find(|(name, _)| name == row);
        assert!(found.is_some_and(|(_, verdict)| verdict == "outside"), "{to}: {row} {found:?} {rows:?}");
    }
}
