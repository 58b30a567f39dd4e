//! Tests the reports in Filebench's formats: their lines, the order and width of the columns, and that a script can
//! parse them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cmd::{Output, flowops, number};
use crate::vectors_15::script;

const SCRIPT: &str = "\
define fileset name=s,path=$dir,size=8k,entries=50,dirwidth=10,prealloc
define process name=p,instances=2 {
  thread name=t,instances=3 {
    flowop openfile name=openOP,filesetname=s,fd=1
    flowop readwholefile name=readOP,fd=1,iosize=1m
    flowop closefile name=closeOP,fd=1
  }
}
";

fn run(format: &str, end: &str) -> Output {
    // An interval of Filebench is a second.
    let call = script(&format!("{SCRIPT}{end}\n")).args(["--format", format]);
    let call = if end.contains("psrun") { call } else { call.args(["--runtime", "0.3"]) };
    call.result().run().exits(0)
}

/// A line with every digit as 9, runs of them cut to one, so that its form and its columns show.
fn form(line: &str) -> String {
    let mut form = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '9' } else { c };
        if !(c == '9' && form.ends_with('9')) {
            form.push(c);
        }
    }
    // Numbers fill their columns from the right: how many blanks come before them is their length.
    form.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn forms(output: &Output) -> String {
    output.stdout.lines().map(|line| form(line) + "\n").collect()
}

#[test]
fn the_report_of_1_5() {
    insta::assert_snapshot!(forms(&run("filebench", "run 1")), @r"
    9.9: Running...
    9.9: Run took 9 seconds...
    9.9: Per-Operation Breakdown
    closeOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    readOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    openOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    9.9: IO Summary: 9 ops 9.9 ops/s 9/9 rd/wr 9.9mb/s 9.9ms/op
    9.9: Shutting down processes
    ");
}

#[test]
fn the_interim_report_of_1_5_and_its_histograms() {
    let text = forms(&run("filebench", "enable lathist\npsrun -1 2"));
    // How many buckets of the histogram are filled is not its form.
    let text: String = text.lines().map(|l| l.split("\t[").next().unwrap().to_owned() + "\n").collect();
    insta::assert_snapshot!(text, @r"
    9.9: Running...
    9.9: Per-Operation Breakdown
    closeOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    readOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    openOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    9.9: IO Summary: 9 ops 9.9 ops/s 9/9 rd/wr 9.9mb/s 9.9ms/op
    9.9: Run took 9 seconds...
    9.9: Per-Operation Breakdown
    closeOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    readOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    openOP 9ops 9ops/s 9.9mb/s 9.9ms/op [9.9ms - 9.9ms]
    9.9: IO Summary: 9 ops 9.9 ops/s 9/9 rd/wr 9.9mb/s 9.9ms/op
    9.9: Shutting down processes
    ");
}

#[test]
fn histograms_have_64_buckets() {
    // The older name for them, which can be turned off.
    let has_buckets = |commands: &str| run("filebench", commands).stdout.contains("\t[ ");
    assert!(has_buckets("enable_osprof\nrun 1") && !has_buckets("enable_osprof\ndisable_osprof\nrun 1"));
    let output = run("filebench", "enable lathist\nrun 1");
    let lines: Vec<_> = output.stdout.lines().filter_map(|l| l.split_once("\t[ ")).collect();
    assert_eq!(lines.len(), 3);
    for (line, buckets) in lines {
        let buckets: Vec<u64> = buckets.trim_end_matches(" ]").split(' ').map(|n| n.parse().unwrap()).collect();
        let ops: u64 = line.split("ops").next().unwrap().split_whitespace().last().unwrap().parse().unwrap();
        assert_eq!((buckets.len(), buckets.iter().sum::<u64>()), (64, ops), "{line}");
    }
}

#[test]
fn the_report_of_1_4() {
    insta::assert_snapshot!(forms(&run("filebench-1.4", "run 1")), @r"
    9: 9.9: Running...
    9: 9.9: Run took 9 seconds...
    9: 9.9: Per-Operation Breakdown
    closeOP 9ops/s 9.9mb/s 9.9ms/op 9us/op-cpu
    readOP 9ops/s 9.9mb/s 9.9ms/op 9us/op-cpu
    openOP 9ops/s 9.9mb/s 9.9ms/op 9us/op-cpu

    9: 9.9:
    IO Summary: 9 ops, 9.9 ops/s, (9/9 r/w) 9.9mb/s, 9us cpu/op, 9.9ms latency
    9: 9.9: Shutting down processes
    ");
}

/// Columns stand where Filebench's stood, as long as the figures fit them.
#[test]
fn columns_have_the_same_positions_as_in_filebench() {
    let slow = SCRIPT.replace("  }\n}", "    flowop eventlimit name=limitOP\n  }\n}");
    let lines = |format| {
        let call = script(&format!("{slow}eventgen rate=20\nrun 1\n")).args(["--format", format]);
        let output = call.run().exits(0);
        let lines: Vec<_> = output.stdout.lines().filter(|l| l.contains("OP ")).map(str::to_owned).collect();
        assert_eq!(lines.len(), 4);
        lines
    };
    for line in lines("filebench-1.4") {
        let places = ["ops/s", "mb/s", "ms/op", "us/op-cpu"].map(|unit| line.find(unit).unwrap());
        assert_eq!(places, [29, 40, 53, 67], "{line}");
    }
    for line in lines("filebench") {
        let count = &line[21..line.find("ops").unwrap()];
        assert!(count.parse::<u64>().is_ok(), "{line}");
        let from = 21 + count.len() + "ops".len();
        let places = ["ops/s", "mb/s", "ms/op"].map(|unit| line.find(unit).unwrap() - from);
        assert_eq!(places, [9, 20, 33], "{line}");
    }
}

/// What the text report warns of is named on standard error.
#[test]
fn the_warnings_of_a_run_are_named_beside_the_formats_of_filebench() {
    for format in ["filebench", "filebench-1.4"] {
        let output = run(format, "run 1");
        let line =
            output.stderr.lines().find(|line| line.starts_with("note: warnings of the run, for `wmlrun explain`: "));
        assert!(line.is_some_and(|line| line.contains("short_run")), "{}", output.stderr);
        assert!(!output.stdout.contains("short_run"));
    }
    assert!(!run("csv", "run 1").stderr.contains("warnings of the run"));
}

#[test]
fn ten_lines_of_awk_parse_both_formats() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/summary.awk");
    for format in ["filebench", "filebench-1.4"] {
        let output = run(format, "run 1");
        let mut awk =
            Command::new("awk").arg("-f").arg(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        awk.stdin.take().unwrap().write_all(output.stdout.as_bytes()).unwrap();
        let read = String::from_utf8(awk.wait_with_output().unwrap().stdout).unwrap();
        let run = output.only_run();
        let (ops, rate) = (number(&run, &["summary", "ops"]), number(&run, &["summary", "ops_per_s"]));
        let mb = number(&run, &["summary", "mib_per_s"]);
        let rate = if format == "filebench" { format!("{rate:.3}") } else { format!("{rate:.1}") };
        assert_eq!(read, format!("{ops} ops {rate}/s {mb:.1} MB/s\n"));
        assert_eq!(flowops(&run).len(), 3);
    }
    let lines = std::fs::read_to_string(program).unwrap().lines().count();
    assert!(lines <= 10, "{lines} lines");
}
