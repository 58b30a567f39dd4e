//! Tests what a user reads of traces: `wmlrun trace show`, its calls, `wmlrun compare`, and what names the right command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cmd::{Wml, binary, disk, scratch};

/// A trace of the text of strace.
fn imported(dir: &Path, name: &str, text: &str) -> PathBuf {
    imported_with(dir, name, text, &[])
}

fn imported_with(dir: &Path, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let from = dir.join(format!("{name}.txt"));
    fs::write(&from, text).unwrap();
    let trace = dir.join(format!("{name}.wtrace"));
    let import = Wml::new().args(["trace", "import", "strace"]).args([&from]).args(["-o"]).args([&trace]);
    import.args(options).run().exits(0);
    trace
}

fn read(args: &[&str], traces: &[&Path]) -> String {
    Wml::new().args(args).args(traces).run().exits(0).stdout
}

/// A database that keeps a journal: so many transactions.
fn transactions(count: usize) -> String {
    let one = "7 100.002 pwrite64(4</db/a-journal>, \"x\"..., 700, 0) = 700 <0.000030>\n\
               7 100.003 fdatasync(4</db/a-journal>) = 0 <0.001000>\n\
               7 100.004 pwrite64(3</db/a>, \"x\"..., 4096, 8192) = 4096 <0.000040>\n\
               7 100.006 fdatasync(3</db/a>) = 0 <0.002000>\n\
               7 100.009 unlink(\"/db/a-journal\") = 0 <0.000050>\n";
    let opens = "7 100.000 openat(AT_FDCWD</db>, \"a\", O_RDWR|O_CREAT, 0644) = 3</db/a> <0.000020>\n\
                 7 100.001 openat(AT_FDCWD</db>, \"a-journal\", O_RDWR|O_CREAT, 0644) = 4</db/a-journal> <0.000020>\n\
                 7 100.001 access(\"/db/a-wal\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>\n";
    opens.to_owned() + &one.repeat(count)
}

#[test]
fn a_trace_shows_its_classes_exact_sizes_and_files() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let trace = imported(dir.path(), "a", &transactions(10));
    let shown = read(&["trace", "show"], &[&trace]);
    let rows: Vec<String> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        "calls 53 in 9.05 ms, 5,856 a second",
        "made by 1 thread of 1 process",
        "on 3 paths",
        "class calls share a second errors time p50 p99",
        "fdatasync 20 37.7 % 2,210 0 30.0 ms 1.00 ms 2.00 ms",
        "access 1 1.9 % 110.5 1 10.0 µs 10.0 µs 10.0 µs",
        "class bytes p50 of a call p99 most frequent",
        "write 46.8 KiB 700 B 4 KiB 700 B (50.0 %), 4 KiB (50.0 %)",
        "calls read written syncs time path",
        "21 0 B 40.0 KiB 10 20.4 ms /db/a",
        "31 0 B 6.8 KiB 10 10.8 ms /db/a-journal",
        "1 0 B 0 B 0 10.0 µs /db/a-wal",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row}\n{shown}");
    }
    let document: Value = serde_json::from_str(&read(&["trace", "show", "--json"], &[&trace])).unwrap();
    let expected =
        json!({"path": "/db/a", "calls": 21, "bytes_read": 0, "bytes_written": 40960, "syncs": 10, "seconds": 0.02042});
    assert_eq!((&document["files"][0], &document["paths"]), (&expected, &json!(3)));
    assert_eq!(document["classes"]["write"]["size_p50"], 700);
}

#[test]
fn calls_are_listed_one_a_line_until_nobody_reads_them() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let name = "7 100.000 unlink(\"/db/x\\33[2J\") = -1 ENOENT (No such file or directory) <0.000010>\n\
                7 100.001 rename(\"/db/a\", \"/db/b c\") = 0 <0.000020>\n";
    let trace = imported(dir.path(), "a", &(name.to_owned() + &transactions(100_000)));
    let script = format!("{} trace show --calls {} | head -5", binary().display(), trace.display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "seconds thread call µs result offset bytes path",
        "0.0000000 7 unlink 10.0 ENOENT - - /db/x\\x1b[2J",
        "0.0010000 7 rename 20.0 0 - - /db/a → /db/b c",
        "0.0000000 7 openat 20.0 3 - - /db/a",
        "0.0010000 7 openat 20.0 4 - - /db/a-journal",
    ];
    assert_eq!(rows, expected);
    let all = read(&["trace", "show", "--calls"], &[&trace]);
    assert_eq!(all.lines().count(), 500_000 + 6);
}

#[test]
fn what_matters_most_is_told_first_with_the_counts_of_the_table() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let a = imported(dir.path(), "a", &transactions(200));
    // A log that is synced once, and one call of another class.
    let log = "7 100.004 pwrite64(3</db/a>, \"x\"..., 4120, 8192) = 4120 <0.000040>\n".repeat(500);
    let other = "7 100.008 fdatasync(3</db/a>) = 0 <0.002000>\n7 100.01 ftruncate(3</db/a>, 0) = 0 <0.000010>\n";
    let b = imported(dir.path(), "b", &(transactions(0) + &log + other));
    let text = read(&["compare"], &[&a, &b]);
    assert!(text.ends_with("B makes 1 fdatasync call, A 400.\n"), "{text}");
    for note in
        ["note: A makes 200 unlink calls, B none\n", "note: write calls move 4,120 B in B, 700 B in A (median)\n"]
    {
        assert!(text.contains(note), "{note}{text}");
    }
    assert!(!text.contains("ftruncate calls") && text.contains("p99 A"), "{text}");
    // The same work, longer.
    let text = read(&["compare"], &[&a, &imported(dir.path(), "long", &transactions(600))]);
    let sentence = "The programs do the same. B did 3.0 times the work of A: most classes have 3.0";
    assert!(text.contains(sentence) && !text.contains("note: "), "{text}");
}

#[test]
fn files_that_differ_are_told_in_each_format() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let text = transactions(200);
    let a = imported(dir.path(), "a", &text);
    let b = imported(dir.path(), "b", &text.replace("a-journal", "b-journal"));
    let shown = read(&["compare"], &[&a, &b]);
    assert!(shown.ends_with("The programs make the same calls, but not on the same files.\n"), "{shown}");
    let rows: Vec<String> = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        "calls A B bytes A B syncs A B time A B path",
        "601 0 136.7 KiB 0 B 200 0 216 ms - /db/a-journal",
        "0 601 0 B 136.7 KiB 0 200 - 216 ms /db/b-journal",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row}\n{shown}");
    }
    assert!(!rows.iter().any(|row| row.ends_with(" /db/a")), "{shown}");
    let markdown = read(&["compare", "--format", "markdown"], &[&a, &b]);
    assert!(
        markdown.starts_with("**Traces** The programs make") && markdown.contains("| written A | B |"),
        "{markdown}"
    );
    let json: Value = serde_json::from_str(&read(&["compare", "--format", "json"], &[&a, &b])).unwrap();
    assert_eq!((&json["files"][1]["calls"], &json["files"][1]["path"]), (&json!([0, 601]), &json!("/db/b-journal")));
    assert_eq!(json["conditions"], Value::Null);
    let answer = read(&["compare", "--quiet"], &[&a, &b]);
    assert_eq!(answer, "The programs make the same calls, but not on the same files.\n");
    for (options, error) in [
        (&["--format", "csv"][..], "`csv` is not a format of traces"),
        (&["--metric", "ops"], "`--metric` is not for traces"),
    ] {
        let failed = Wml::new().args(["compare"]).args(options).args([&a, &b]).run().exits(2);
        assert!(failed.stderr.contains(error), "{}", failed.stderr);
    }
}

#[test]
fn files_of_two_directories_are_compared_by_their_names_below_them() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let text = transactions(20);
    let a = imported_with(dir.path(), "a", &text, &["--under", "/db"]);
    let b = imported_with(dir.path(), "b", &text.replace("/db", "/new/db"), &["--under", "/new/db"]);
    let shown = read(&["compare"], &[&a, &b]);
    let end = "The programs do the same.\ndiffers: files (A below /db, B below /new/db)\n";
    assert!(shown.ends_with(end) && !shown.contains("written A"), "{shown}");
    let b = imported_with(dir.path(), "c", &(text + &transactions(9).replace("/db/a-", "/new/")), &[]);
    let shown = read(&["compare"], &[&a, &b]);
    assert!(shown.ends_with("differs: files (A below /db, B all but those of the system)\n"), "{shown}");
}

#[test]
fn times_of_different_recorders_are_not_compared() {
    let recorded =
        Wml::below(&disk()).args(["record", "--by", "ptrace", "-o", "t.wtrace", "--", "touch", "file"]).run().exits(0);
    let trace = recorded.dir().join("t.wtrace");
    let text = read(&["compare"], &[&trace, &imported(recorded.dir(), "a", &transactions(3))]);
    let note = "note: times are not compared: A was recorded by ptrace, B by strace, and each";
    assert!(text.contains(note) && !text.contains("Times") && !text.contains("a second"), "{text}");
    assert!(read(&["compare"], &[&trace, &trace]).contains("a second A"), "{text}");
}

#[test]
fn what_is_known_in_part_and_what_recording_cost_is_told_by_the_trace() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let copies = "7 100.011 sendfile(4</db/b>, 3</db/a>, NULL, 10) = 10 <0.000010>\n\
                  7 100.012 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</db/a>, 0) = 0x7f0000 <0.000010>\n";
    let imported = read(&["trace", "show"], &[&imported(dir.path(), "a", &(transactions(1) + copies))]);
    let words = imported.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in ["not seen page faults of mappings (1 mapping), io_uring, ", "known in part 1 sendfile (10 B) "] {
        assert!(words.contains(said), "{said}: {imported}");
    }
    assert!(!words.contains(" cost "), "{imported}");
    let recorded =
        Wml::below(&disk()).args(["record", "--by", "ptrace", "-o", "t.wtrace", "--", "touch", "file"]).run();
    let shown = read(&["trace", "show"], &[&recorded.dir().join("t.wtrace")]);
    let said = recorded.stderr.lines().find_map(|line| line.strip_prefix("cost: ")).unwrap();
    assert!(said.contains(" to ") && said.contains(" a call here, "), "{said}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("cost {said}")), "{said}: {shown}");
}

#[test]
fn hidden_names_an_unusual_end_and_a_missing_one_are_told() {
    let recorded = Wml::below(&disk())
        .args(["record", "--by", "ptrace", "--hash-names", "-o", "t.wtrace", "--", "sh", "-c", "echo > file; exit 3"])
        .run()
        .exits(3);
    let trace = recorded.dir().join("t.wtrace");
    let shown = read(&["trace", "show"], &[&trace]);
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("whose names are hidden") && words.contains("ended with status 3"), "{shown}");
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 9]).unwrap();
    let shown = read(&["trace", "show"], &[&trace]);
    assert!(shown.contains("the trace is incomplete: it lacks the end: its last "), "{shown}");
    let listed = Wml::new().args(["trace", "show", "--calls"]).args([&trace]).run().exits(0);
    assert!(
        listed.stderr.starts_with("warning: the trace is incomplete: it lacks the end: its last "),
        "{}",
        listed.stderr
    );
    let compared = read(&["compare"], &[&trace, &trace]);
    assert!(compared.contains("note: files are not compared: the names of A are hidden\n"), "{compared}");
    assert!(listed.stdout.lines().count() > 2, "{}", listed.stdout);
}

#[test]
fn another_command_names_the_one_that_shows_a_trace() {
    let dir = TempDir::new_in(scratch()).unwrap();
    let trace = imported(dir.path(), "a", &transactions(1));
    for (command, what) in [(&[][..], "script"), (&["check"], "script"), (&["report"], "result")] {
        let failed = Wml::new().args(command).args([&trace]).run().exits(2);
        let said = format!("is a trace, not a {what}\n  = help: `wmlrun trace show {}` shows it\n", trace.display());
        assert!(failed.stderr.contains(&said), "{command:?}: {}", failed.stderr);
    }
}

#[test]
fn a_command_without_its_dashes_is_told_the_whole_line() {
    for (words, line) in [
        (&["sqlite3", "a b", "-l"][..], "wmlrun record -- sqlite3 'a b' -l\n"),
        (&["-o", "x.wtrace", "it's", "--for"], "wmlrun record -o x.wtrace -- 'it'\\''s' --for\n"),
    ] {
        let failed = Wml::new().args(["record"]).args(words).run().exits(2);
        assert!(failed.stderr.contains(&format!("  tip: the command follows `--`: {line}")), "{}", failed.stderr);
    }
    let failed = Wml::new().args(["record", "--under", "."]).run().exits(2);
    assert!(failed.stderr.contains("<-p <PID>|COMMAND>"), "{}", failed.stderr);
}
