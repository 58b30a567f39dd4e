//! Tests what programs read of a run: labels, tables to which runs are appended, the live stream, and the formats of
//! `HdrHistogram`, benchstat and pandas.

use crate::cmd::{Output, Wml, count, program, skip};
use crate::experiments::valid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A run that ends after some operations, however busy the machine is.
const SCRIPT: &str = "define fileset name=s,path=$dir,entries=10,dirwidth=5,size=1k,prealloc\n\
                      define process name=p { thread name=t {\n\
                      flowop statfile name=look,filesetname=s\nflowop openfile name=open,filesetname=s,fd=1\n\
                      flowop closefile name=close,fd=1\n\
                      flowop finishoncount name=enough,value=500\n} }\n";

const RUN: [&str; 8] = ["x.wml", "--engine", "null", "--runtime", "60", "--no-quiesce", "--seed", "1"];

/// A run of the script with these options.
fn run(options: &[&str]) -> Output {
    Wml::new().file("x.wml", SCRIPT).args(RUN).args(options).run()
}

/// Another call of the program in the directory of a run, with its exit status and all that it prints.
fn again(dir: &Path, words: &[&str]) -> (i32, String, String) {
    let output = program().args(words).current_dir(dir).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_label_and_a_note_are_in_the_result_and_in_every_view_of_it() {
    let options = ["--json", "a.json", "--label", "before the upgrade", "--note", "disk cache\non"];
    let output = run(&options).exits(0);
    let dir = output.dir();
    assert!(output.stdout.contains("  label: before the upgrade\n  note: disk cache\\non\n"), "{}", output.stdout);
    let document: Value = serde_json::from_str(&fs::read_to_string(dir.join("a.json")).unwrap()).unwrap();
    assert_eq!((&document["label"], &document["note"]), (&"before the upgrade".into(), &"disk cache\non".into()));
    let (code, page, _) = again(dir, &["report", "a.json"]);
    assert!(code == 0 && page.contains("before the upgrade") && page.contains("disk cache\\non"), "{page}");
    let second = [&RUN[..], &["--json", "b.json", "--format", "none", "--quiet", "--label", "after"]].concat();
    assert_eq!(again(dir, &second).0, 0);
    let (_, compared, _) = again(dir, &["compare", "a.json", "b.json"]);
    assert!(compared.contains("\ndiffers: label (A before the upgrade, B after)"), "{compared}");
    // A result that is to be published has no paths.
    let redacted = run(&["--label", "on /srv/secret", "--redact", "--json", "-", "--format", "none"]).exits(0);
    assert!(redacted.stdout.contains("\"label\": \"on (path)\""), "{}", redacted.stdout);
    run(&["--label", ""]).exits(2);
}

#[test]
fn runs_are_appended_to_a_table_and_to_no_other_file() {
    let output = run(&["--append", "runs.csv", "--label", "=1", "--format", "csv-runs"]).exits(0);
    let table = output.dir().join("runs.csv");
    assert_eq!(fs::read_to_string(&table).unwrap(), output.stdout, "the same as the format");
    let second = [&RUN[..], &["--append", "runs.csv", "--quiet", "--format", "none"]].concat();
    assert_eq!(again(output.dir(), &second).0, 0);
    let text = fs::read_to_string(&table).unwrap();
    let rows: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(rows.len() == 3 && rows[0].starts_with("started_at,label,") && rows[1].contains(",'=1,"), "{text}");
    // Not to a table of others, nor to the script.
    fs::write(&table, "name,age\n").unwrap();
    for (path, why) in [("runs.csv", "not the header"), ("x.wml", "one of the files that are read"), (".", "directory")]
    {
        let words = [&RUN[..], &["--append", path]].concat();
        let (code, stdout, stderr) = again(output.dir(), &words);
        assert!(code == 3 && stdout.is_empty() && stderr.contains("--append"), "{why}: {stdout}{stderr}");
    }
    assert_eq!(fs::read_to_string(&table).unwrap(), "name,age\n");
    assert_eq!(fs::read_to_string(output.dir().join("x.wml")).unwrap(), SCRIPT);
    run(&["--append", "x", "--json", "x"]).exits(2);
}

#[test]
fn the_live_stream_has_a_line_for_each_interval() {
    // A run of a fixed time, so that it has intervals.
    let endless: String = SCRIPT.lines().filter(|line| !line.contains("enough")).map(|l| format!("{l}\n")).collect();
    let options = ["--live", "jsonl", "--runtime", "0.4", "--interval", "10ms", "--json", "r.json", "--label", "l"];
    let output = Wml::new().file("x.wml", &endless).args(RUN).args(options).run().exits(0);
    fs::write(output.dir().join("x.wml"), SCRIPT).unwrap();
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(output.stderr.contains("all I/O"), "the report goes to standard error\n{}", output.stderr);
    lines.iter().for_each(valid);
    assert!(lines.iter().all(|line| line["schema"] == "wmlrun.live/1" && line["run"] == 1), "{}", output.stdout);
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert!(
        events[0] == "started" && events[events.len() - 1] == "ended" && events.contains(&"interval"),
        "{events:?}"
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(output.dir().join("r.json")).unwrap()).unwrap();
    let intervals = document["runs"][0]["intervals"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| **event == "interval").count(), intervals.len(), "also the last one");
    assert_eq!((&first["label"], &first["threads"]), (&"l".into(), &1.into()));
    assert_eq!((&last["ops"], &last["state"]), (&document["runs"][0]["summary"]["ops"], &"complete".into()));
    for line in lines.iter().filter(|line| line["event"] == "interval") {
        let flowops = line["flowops"].as_array().unwrap();
        assert_eq!(flowops[0]["name"], "p/t/look");
        assert_eq!(flowops.iter().map(|flowop| count(flowop, "ops")).sum::<u64>(), count(line, "ops"), "{line}");
    }
    // A file is replaced only if it is such a stream, or with `--force`.
    let dir = output.dir();
    for (options, code) in [
        (&["--live", "jsonl:s"][..], 0),
        (&["--live", "jsonl:s"], 0),
        (&["--live", "jsonl:x.wml"], 3),
        (&["--live", "jsonl:x.wml", "--force"], 3),
        (&["--live", "jsonl:r.json"], 3),
        (&["--live", "jsonl:r.json", "--force"], 0),
        (&["--live", "json"], 2),
        (&["--live", "jsonl:"], 2),
        (&["--live", "jsonl", "--json", "-"], 2),
    ] {
        let words = [&RUN[..], &["--quiet"], options].concat();
        let (found, _, stderr) = again(dir, &words);
        assert_eq!(found, code, "{options:?}: {stderr}");
    }
    for name in ["s", "r.json"] {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        assert!(text.starts_with("{\"schema\":\"wmlrun.live/1\",\"event\":\"started\""), "{text}");
        assert!(text.lines().last().unwrap().contains("\"event\":\"ended\""), "{text}");
    }
    assert_eq!(fs::read_to_string(dir.join("x.wml")).unwrap(), SCRIPT);
}

#[test]
fn the_reader_of_the_live_stream_may_leave() {
    let line = "\"$0\" \"$@\" --live jsonl --interval 10ms --json r.json 2> report | head -n 1; echo ${PIPESTATUS[0]}";
    let output = Wml::new().file("x.wml", SCRIPT).under(["bash", "-c", line]).args(RUN).run().exits(0);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("\"started\"") && lines[1] == "0", "{}", output.stdout);
    assert!(output.dir().join("r.json").exists());
}

#[test]
fn a_file_of_others_is_replaced_only_with_force() {
    for option in ["--json", "--trace"] {
        let output = Wml::new().file("x.wml", SCRIPT).file("precious", "mine").run();
        let name = if option == "--json" { "precious" } else { "precious:3" };
        let words = [&RUN[..], &["--quiet", option, name]].concat();
        let (code, _, stderr) = again(output.dir(), &words);
        assert!(code == 3 && stderr.contains("--force"), "{stderr}");
        assert_eq!(fs::read_to_string(output.dir().join("precious")).unwrap(), "mine");
        let forced = [&words[..], &["--force"]].concat();
        assert_eq!(again(output.dir(), &forced).0, 0, "{option}");
        // What the same option wrote is replaced without a question.
        assert_eq!(again(output.dir(), &words).0, 0, "{option}");
    }
}

/// Reads the table of percentiles and the log by the library. It has other levels in its tables, but the same counts.
const HDRH: &str = "
import io, json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
run = json.load(open('r.json'))['runs'][0]
whole = HdrHistogram.decode(run['summary']['histogram'])
out = io.BytesIO()
whole.output_percentile_distribution(out, 1)
theirs, ours = out.getvalue().decode().splitlines(), open('r.hgrm').read().splitlines()
assert (theirs[0], theirs[-2:]) == (ours[0], ours[-2:]), (theirs, ours)
number = lambda text: float(text.split('=')[1].rstrip(']'))
for their, our in zip(theirs[-3].split(','), ours[-3].split(',')):
    assert abs(number(their) - number(our)) < 0.011, (their, our)
counts, count = {}, 0
for step in whole.get_recorded_iterator():
    count += step.count_at_value_iterated_to
    counts[whole.get_highest_equivalent_value(step.value_iterated_to)] = count
rows = [line.split() for line in ours if line and line.lstrip()[0].isdigit()]
assert len(rows) >= 2 and float(rows[-1][1]) == 1.0, ours
for value, level, total, *_ in rows:
    assert counts[int(float(value))] == int(total), (value, total)
    assert whole.get_value_at_percentile(100 * float(level)) <= float(value), (value, level)
total = int(float(ours[-2].split('TotalCount     = ')[1].rstrip(']')))
assert total == run['summary']['ops'], (total, run['summary']['ops'])
reader = HistogramLogReader('r.hlog', HdrHistogram(1, 3600 * 10**9, 2))
seen = {}
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    seen[one.get_tag()] = one
flowops = {'p/t/' + f['name']: f for f in run['flowops'] if f['class'] == 'io'}
assert seen.keys() == flowops.keys(), (seen.keys(), flowops.keys())
for tag, one in seen.items():
    assert one.get_total_count() == flowops[tag]['ops']
    mine = HdrHistogram.decode(flowops[tag]['histogram'])
    for percentile in [50, 99, 99.9]:
        assert one.get_value_at_percentile(percentile) == mine.get_value_at_percentile(percentile)
    length = (one.get_end_time_stamp() - one.get_start_time_stamp()) / 1000
    assert abs(length - run['measured_seconds']) < 0.002, length
print('equal')
";

#[test]
fn the_library_of_hdrhistogram_reads_the_same_figures() {
    let output = run(&["--json", "r.json", "--format", "hgrm"]).exits(0);
    let dir = output.dir();
    fs::write(dir.join("r.hgrm"), &output.stdout).unwrap();
    let (code, exported, stderr) = again(dir, &["report", "r.json", "--format", "hgrm"]);
    assert_eq!((code, &exported), (0, &output.stdout), "{stderr}");
    for words in [["--format", "hlog", "-o", "r.hlog"], ["--format", "benchstat", "-o", "r.txt"]] {
        let (code, _, stderr) = again(dir, &[&["report", "r.json"][..], &words[..]].concat());
        assert_eq!(code, 0, "{stderr}");
        let (code, _, stderr) = again(dir, &[&["report", "r.json"][..], &words[..]].concat());
        assert!(code == 3 && stderr.contains("exists"), "{stderr}");
    }
    let lines = fs::read_to_string(dir.join("r.txt")).unwrap();
    let of_open = lines.lines().find(|line| line.starts_with("BenchmarkX/p/t/open ")).unwrap_or_default();
    let units: Vec<&str> = of_open.split_whitespace().skip(3).step_by(2).collect();
    assert_eq!(units, ["ns/op", "p99-ns/op", "ops/s", "MiB/s"], "{lines}");
    // Rows of several results are one table; other formats have one result.
    let (_, joined, _) = again(dir, &["report", "r.json", "r.json", "--format", "csv-runs"]);
    let (_, table, _) = again(dir, &["report", "r.json", "r.json", "--format", "markdown-runs"]);
    assert!(table.starts_with("| workload | ") && table.lines().count() == joined.lines().count() + 1, "{table}");
    assert_eq!(joined.lines().count(), 3, "{joined}");
    let (code, _, stderr) = again(dir, &["report", "r.json", "r.json", "--format", "hlog"]);
    assert!(code == 2 && stderr.contains("one result"), "{stderr}");
    let Ok(python) = Command::new("python3").args(["-c", HDRH]).current_dir(dir).output() else {
        return skip("python3 is not installed");
    };
    let said = String::from_utf8_lossy(&python.stderr);
    if said.contains("No module named 'hdrh'") {
        return skip("the Python library hdrhistogram is not installed");
    }
    assert_eq!(String::from_utf8_lossy(&python.stdout).trim(), "equal", "{said}");
}
