//! Tests that programs which read Filebench's output read that of wmlrun: six readers, each in another way that people
//! use, get the same figures of both.
//!
//! `tests/scripts/readers/FORMAT.txt` is what Filebench of each version prints for [`SCRIPT`] and `run`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cmd::{Output, count, flowop, has, number};
use crate::vectors_15::script;

const SCRIPT: &str = "\
define fileset name=s,path=$dir,size=8k,entries=50,dirwidth=10,prealloc
define flowop name=session {
  flowop openfile name=openOP,filesetname=s,fd=1
  flowop readwholefile name=readOP,fd=1,iosize=1m
  flowop closefile name=closeOP,fd=1
}
define process name=p,instances=2 {
  thread name=t,instances=3 {
    flowop session name=user
    flowop statfile name=statOP,filesetname=s
  }
}
";

/// Filebench's rows for this script.
const ROWS: [&str; 5] = ["statOP", "user.closeOP", "user.readOP", "user.openOP", "user"];

const FORMATS: [&str; 3] = ["filebench", "filebench-1.4.9", "filebench-1.4"];

/// The readers, with the programs that execute them.
const READERS: [(&str, &str); 6] = [
    ("last_but_one.py", "python3"),
    ("first_bandwidth.sh", "sh"),
    ("both_streams.py", "python3"),
    ("columns.awk", "awk"),
    ("fixed_split.py", "python3"),
    ("rows.py", "python3"),
];

/// Has a call write both of its outputs to one stream, in their order.
const MERGED: [&str; 3] = ["sh", "-c", "exec \"$0\" \"$@\" 2>&1"];

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/readers")
}

/// What a reader prints of an output, a figure on each line.
fn read(reader: &str, program: &str, format: &str, text: &str) -> Vec<String> {
    let file = readers().join(reader);
    let mut command = Command::new(program);
    if program == "awk" {
        let column = match format {
            "filebench" => "at=4",
            "filebench-1.4.9" => "at=5",
            _ => "at=3",
        };
        command.args(["-v", column, "-f"]);
    }
    let mut child = command.arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{reader} can't read this as {format}:\n{text}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The lines of all readers, each after the reader's name.
fn read_all(format: &str, text: &str) -> Vec<String> {
    let of = |(reader, program): (&str, &str)| {
        read(reader, program, format, text).into_iter().map(move |line| format!("{reader} {line}")).collect::<Vec<_>>()
    };
    READERS.into_iter().flat_map(of).collect()
}

/// What the readers must get of a run, from its result.
fn expected(format: &str, run: &Value) -> BTreeSet<String> {
    let summary = |key: &str| number(run, &["summary", key]);
    let (ops, is_15) = (count(&run["summary"], "ops"), format == "filebench");
    let rate = if format == "filebench-1.4" {
        format!("{:.1}", summary("ops_per_s"))
    } else {
        format!("{:.3}", summary("ops_per_s"))
    };
    let latency = |ms: f64| if is_15 { format!("{ms:.3}") } else { format!("{ms:.1}") };
    let mean: f64 = latency(summary("latency_ms")).parse().unwrap();
    let bandwidth = format!("{:.1}", summary("mib_per_s"));
    let mut lines = BTreeSet::from([
        format!("last_but_one.py ops {ops}"),
        format!("last_but_one.py rate {rate}"),
        format!("last_but_one.py bandwidth {bandwidth}"),
        // The first row is that of `statfile`, which moves no data.
        "first_bandwidth.sh first_bandwidth 0.0".to_owned(),
        format!("both_streams.py ops {ops}"),
        format!("both_streams.py rate {rate}"),
        format!("both_streams.py any_rate {rate}"),
        format!("both_streams.py reads {:.0}", summary("reads_per_s")),
        format!("columns.awk ops {ops}"),
        format!("columns.awk rate {rate}"),
        format!("columns.awk latency {mean}"),
        format!("fixed_split.py seconds {:.0}", number(run, &["measured_seconds"]).round()),
        format!("fixed_split.py ops {ops}"),
        format!("fixed_split.py bandwidth {bandwidth}"),
        format!("fixed_split.py rows {}", fixed_split_rows(format)),
    ]);
    for name in ROWS {
        let figures = match name {
            "user" => ["0", "0", "0.0", &latency(0.0)].map(str::to_owned),
            name => {
                let row = flowop(run, name);
                let mean = number(row, &["latency_ns", "mean"]) / 1e6;
                let rate = format!("{:.0}", number(row, &["ops_per_s"]));
                [count(row, "ops").to_string(), rate, format!("{:.1}", number(row, &["mib_per_s"])), latency(mean)]
            }
        };
        let [ops, rate, bandwidth, mean] = figures;
        let ops = if format == "filebench-1.4" { "-".to_owned() } else { ops };
        lines.insert(format!("rows.py row {name} {ops} {rate} {bandwidth} {mean}"));
    }
    lines
}

/// How often `/op` is in the rows: twice in each row of 1.4, whose processor time has it too.
fn fixed_split_rows(format: &str) -> usize {
    if format == "filebench" { ROWS.len() } else { 2 * ROWS.len() }
}

/// Runs the script with both streams in one, and a result.
fn merged(format: &str) -> Output {
    let call = script(&format!("{SCRIPT}run 1\n")).args(["--format", format]).under(MERGED);
    call.result().run().exits(0)
}

#[test]
fn six_readers_of_filebench_read_the_same_figures_of_wmlrun() {
    needs!(has("python3"), "python3 is not installed");
    for format in FORMATS {
        let theirs = std::fs::read_to_string(readers().join(format!("{format}.txt"))).unwrap();
        let theirs = read_all(format, &theirs);
        let output = merged(format);
        let ours = read_all(format, &output.stdout);
        assert_eq!(ours.iter().cloned().collect::<BTreeSet<_>>(), expected(format, &output.only_run()), "{format}");
        // The same figures in the same order. Numbers differ, except those that follow from the form.
        let field = |line: &String| {
            line.split(' ').take(if line.contains(" row ") { 3 } else { 2 }).collect::<Vec<_>>().join(" ")
        };
        let fields = |lines: &[String]| lines.iter().map(field).collect::<Vec<_>>();
        assert_eq!(fields(&ours), fields(&theirs), "{format}");
        assert_eq!(ours.len(), 15 + ROWS.len());
    }
}

/// A line with its numbers as `#`. Numbers fill their columns from the right, and so the blanks before them vary.
fn form(line: &str) -> String {
    crate::vectors_14::form(line)
}

#[test]
fn the_lines_from_the_start_of_a_run_to_the_end_are_those_of_filebench() {
    for format in FORMATS {
        let theirs = std::fs::read_to_string(readers().join(format!("{format}.txt"))).unwrap();
        let output = merged(format);
        let forms =
            |text: &str| text.lines().skip_while(|line| !line.ends_with(": Running...")).map(form).collect::<Vec<_>>();
        assert_eq!(forms(&output.stdout), forms(&theirs), "{format}");
        // What comes before is about the script and the directory, and has no figure with a unit of the report.
        let before = output.stdout.split("Running...").next().unwrap();
        let progress = ["ops/s", "MiB/s", "mb/s", "a second", "running for", "creating"];
        assert!(!progress.iter().any(|word| before.contains(word)), "{before}");
    }
}

#[test]
fn progress_on_a_pipe_has_no_figure_that_is_read_as_a_result() {
    let call = script(&format!("{SCRIPT}run 2\n")).args(["--interval", "0.5"]);
    let output = call.run().exits(0);
    let is_progress = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let lines: Vec<&str> = output.stderr.lines().filter(is_progress).collect();
    assert!(lines.len() >= 2, "{}", output.stderr);
    for line in lines {
        assert!(line.contains(" operations and ") && line.contains(" per second, each taking "), "{line}");
        assert!(!["ops", "/s", "mean", "mb"].iter().any(|unit| line.contains(unit)), "{line}");
    }
}

/// A run that fails, one that is stuck, and one that does nothing.
const NO_RESULT: [(&str, &str); 3] = [
    ("failed", "flowop openfile name=o,filesetname=s,fd=1"),
    ("stuck", "flowop deletefile name=d,filesetname=none flowop createfile name=c,filesetname=none"),
    ("nothing_done", "flowop statfile name=o,filesetname=none"),
];

#[test]
fn a_run_without_a_result_has_nothing_of_a_report() {
    for (state, flowop) in NO_RESULT {
        for format in FORMATS {
            let text = format!(
                "define fileset name=s,path=$dir,size=1k,entries=5,dirwidth=10,prealloc\n\
                 define fileset name=none,path=$dir,size=1k,entries=5,dirwidth=10\n\
                 define process name=p {{ thread name=t {{ {flowop} }} }}\nrun 2\n"
            );
            let output = script(&text).args(["--format", format]).result().run().exits(1);
            assert_eq!(output.only_run()["state"], state, "{}", output.stderr);
            assert_eq!(output.stdout, "", "{state}");
            assert!(!output.shown().contains("Breakdown") && !output.shown().contains("Summary"), "{}", output.stderr);
        }
    }
}

#[test]
fn a_dump_of_a_run_without_a_result_is_not_written() {
    let text = "define fileset name=s,path=$dir,size=1k,entries=5,dirwidth=10\n\
        define process name=p { thread name=t {\n\
          flowop deletefile name=d,filesetname=s\n\
          flowop createfile name=c,filesetname=s } }\n\
        create filesets\ncreate processes\nstats clear\nsleep 1\nstats snap\nstats dump \"d\"\nshutdown processes\n";
    let output = script(text).args(["--runtime", "1"]).run();
    assert!(!output.dir().join("d").exists(), "{}", output.shown());
    assert!(output.code() == 1, "{}", output.shown());
}

#[test]
fn through_a_link_named_filebench_it_is_a_drop_in() {
    let good = format!("{SCRIPT}run 1\n");
    let linked = |text: &str| {
        let call = script(text);
        let link = call.dir().join("filebench");
        std::os::unix::fs::symlink(crate::cmd::binary(), &link).unwrap();
        // The shell starts the link in the place of the program.
        call.under(["sh", "-c", "shift; exec ./filebench -f \"$@\"", "sh"])
    };
    let output = linked(&good).run().exits(0);
    assert!(output.stdout.contains(": Running...\n") && output.stdout.ends_with(": Shutting down processes\n"));
    // wmlrun's status of a wrong script is 2, and of a refused directory 3.
    linked("frobnicate\n").run().exits(1);
    let named = |text: &str| script(text).env("WMLRUN_AS", "filebench");
    assert!(named(&good).run().exits(0).stdout.ends_with(": Shutting down processes\n"));
    named("frobnicate\n").run().exits(1);
    named(&good).args(["--dir", "missing"]).run().exits(1);
    // An option still chooses the format, and commands are those of wmlrun.
    assert!(!named(&good).args(["--format", "text"]).run().exits(0).stdout.contains("Running..."));
    let checked =
        crate::cmd::Wml::new().file("x.f", "frobnicate\n").args(["check", "x.f"]).env("WMLRUN_AS", "filebench");
    checked.run().exits(2);
}
