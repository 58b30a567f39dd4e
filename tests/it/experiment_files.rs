//! Tests `wmlrun experiment`: the runs of an experiment file, its commands, its result, and the shipped files.
//!
//! Files with mistakes are golden cases in `tests/cases/experiment`. Unit tests of `experiment` enumerate the states of an
//! experiment that was killed; here the program itself is killed.

use crate::cmd::short_or_long;
use crate::experiments::{Lab, any_verdict, exits, valid};
use crate::mounts::{self, Fs, Mount};
use crate::resume::{in_parallel, is_complete, run_killed};
use crate::strace;
use serde_json::Value;
use std::fs;

/// Options of a run without I/O. The time is a bound: the script ends after some operations.
const SHORT: &str = "--engine null --no-quiesce --runtime 60 --quiet";

/// A workload that ends after some operations.
const SCRIPT: &str = "define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    set $n=1\n\
    define process name=p { thread name=t,instances=$n {\n\
      flowop read name=r,filesetname=data,iosize=4k\n\
      flowop finishoncount name=end,value=1000\n\
    } }\n";

/// A file with two factors of two levels.
const FILE: &str = "\
script = \"x\"
repeats = 2
metrics = [\"ops\", \"r.latency.p99\"]

[[factor]]
name = \"n\"
levels = [1, 2]

[[factor]]
name = \"io\"
levels = [{ name = \"plain\" }, { name = \"pinned\", options = \"--pin\" }]
";

/// A directory with experiment files in a folder of its own, beside which their script is.
fn lab(text: &str) -> Lab {
    let lab = Lab::new();
    fs::create_dir(lab.path("files")).unwrap();
    fs::remove_file(lab.path("x.wml")).unwrap();
    fs::write(lab.path("files/x.wml"), SCRIPT).unwrap();
    fs::write(lab.path("files/study.toml"), text).unwrap();
    lab
}

fn entries(lab: &Lab) -> Vec<String> {
    let names = fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// An option of the command line that the levels of the file set themselves would be ignored.
#[test]
fn an_option_that_every_level_replaces_is_refused() {
    let lab = lab(&FILE.replace("options = \"--pin\"", "options = \"--interval 2\""));
    for (options, word) in [("--set n=5", "--set=n=5"), ("--set n=5 --interval 3", "--set=n=5")] {
        let text = lab.run(&format!("experiment files/study.toml {options} {SHORT}"), 2);
        assert!(text.contains(&format!("`{word}` has no effect: the levels of ")), "{text}");
    }
    lab.run("experiment files/study.toml --interval 3 --plan", 0);
    let text = lab.run(&format!("ab files/x.wml --set n=5 --a=--set=n=1 --b=--set=n=2 {SHORT}"), 2);
    assert!(text.contains("`--set=n=5` has no effect: `--a` and `--b` set the same"), "{text}");
    let text = lab.run("experiment postmark_levels --set transactions=2000 --plan", 2);
    assert!(text.contains("`--set=transactions=2000` has no effect"), "{text}");
}

#[test]
fn a_plan_starts_nothing() {
    let lab = lab(&(FILE.to_owned() + "[[hook]]\nat = \"run\"\nbefore = \"touch started\"\n"));
    let text = lab.run("experiment files/study.toml --plan --runtime 30", 0);
    let cells = ["n=1,io=plain", "n=1,io=pinned", "n=2,io=plain", "n=2,io=pinned"];
    let shown: Vec<&str> =
        text.lines().filter(|line| line.starts_with("n=")).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(shown, cells, "{text}");
    assert_eq!(text.matches("files/x.wml").count(), 4, "{text}");
    assert!(text.contains("8 runs, in random blocks of one run of each cell, measured for 4m in all"), "{text}");
    assert!(text.contains("files/study.toml:14: `before` runs `touch started`"), "{text}");
    // An error of the command line has no position in the file.
    let text = lab.run("experiment files/study.toml --plan --set m=1", 2);
    assert!(text.starts_with("error: `--set m=…`: the script has no variable `$m`"), "{text}");
    assert_eq!(entries(&lab), ["files"]);
    // The length of a run is that of the script, if no option gives one.
    fs::write(lab.path("files/y.wml"), SCRIPT.to_owned() + "run 7\nrun 8\n").unwrap();
    fs::write(lab.path("files/one.toml"), "script = 'y'\nrepeats = '3..5'\n").unwrap();
    let text = lab.run("experiment files/one.toml --plan", 0).replace('\n', " ");
    assert!(text.contains("3 to 5 runs") && text.contains("measured for 45s to 1m15s in all"), "{text}");
}

/// A script without a permission is found before the first run of any cell.
/// Sizes, counts and the run time of the file are smaller; that of the command line and derived variables stay.
#[test]
fn an_experiment_is_tried_at_a_small_scale() {
    let file = "scale = [\"n\", \"1/part\", \"twice\"]\noptions = \"--runtime 60\"\n".to_owned();
    let hook = "[[hook]]\nat = \"run\"\nbefore = \"echo $WMLRUN_SCALE $WMLRUN_LEVEL_n >> scales\"\n";
    let lab = lab(&(file + &FILE.replace("levels = [1, 2]", "levels = [20, 40]") + hook));
    fs::write(lab.path("files/x.wml"), format!("set $part=10\nset $twice=$part * 2\n{SCRIPT}")).unwrap();
    let full = "the full size needs 8 runs, measured for at most 8m, and 40.0 KiB for files";
    let text = lab.run("experiment files/study.toml --scale 0.1 --plan", 0);
    assert!(text.contains("--set=n=4 --set=part=100 --runtime=6s") && text.contains(full), "{text}");
    assert!(!text.contains("twice"), "{text}");
    // Levels are named by what is run, and hooks get the names of the file.
    assert!(text.contains("\nn=2,io=plain ") && text.contains("\nn=4,io=pinned "), "{text}");
    let text = lab.run("experiment files/study.toml --scale 0.1 --plan --runtime 30", 0);
    assert!(text.contains("--set=part=100") && !text.contains("--runtime=6s"), "{text}");
    let options = "--scale 0.1 --engine null --no-quiesce --allow-system --results r";
    let text = lab.run(&format!("experiment files/study.toml {options} --quiet"), 0).replace("\n  ", " ");
    assert!(text.contains("`--scale 0.1` made `$n`, `$part`, the run time smaller than in the source"), "{text}");
    assert!(text.contains("\n4  plain ") && !text.contains("\n40"), "{text}");
    let mut levels: Vec<String> = fs::read_to_string(lab.path("scales")).unwrap().lines().map(str::to_owned).collect();
    levels.sort();
    assert_eq!(levels, ["0.1 20", "0.1 40"].map(|line| [line; 4]).concat());
    let over = "script = 'x'\nrepeats = 1\nscale = ['n']\ncolumns = 'n'\nover = '20'\n\
        [[factor]]\nname = 'n'\nlevels = [20, 40]\n";
    fs::write(lab.path("files/over.toml"), over).unwrap();
    let options = "--scale 0.1 --engine null --no-quiesce --runtime 0.05 --results o --quiet";
    let text = lab.run(&format!("experiment files/over.toml {options}"), 0);
    // The column is as wide as its figures.
    let (_, improvement) = text.split_once("\nimprovement of 4 in ops\n\n").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(improvement.lines().next().map(str::trim), Some("over 2"), "{text}");
    let text = lab.run("experiment snapshots --scale 0.01 --plan", 0).replace("\n  ", " ");
    assert!(text.contains("168 runs, ") && text.contains("the full size needs 168 to 560 runs"), "{text}");
    assert!(text.contains("`$iosize`, the number of runs"), "{text}");
    // Pools of Postmark must not become empty.
    let text = lab.run("experiment postmark_levels --scale 0.01 --plan", 0);
    assert_eq!(text.matches("postmark --set=nfiles=1000\n    --set=transactions=").count(), 3, "{text}");
    assert!(text.ends_with("\n`--scale` makes smaller: `$nfiles` (at least 1000), `$transactions`\n"), "{text}");
    let text = lab.run("experiment postmark_levels --method sfs3 --plan", 2);
    assert!(text.contains("`--method`: the experiment has no load curve"), "{text}");
    lab.run("experiment specsfs_curve --method sfs3 --plan", 0);
    let text = lab.run("experiment quick --scale 0.1 --plan", 2);
    assert!(
        text.contains("`--scale` would change nothing of `singlestreamread`: it has no variable `$scale`"),
        "{text}"
    );
}

#[test]
fn a_command_of_a_script_needs_permission_before_the_first_run() {
    let file = "repeats = 1\n[[factor]]\nname = \"test\"\nlevels = [{ name = \"plain\", script = \"x\" }, \
        { name = \"other\", script = \"system\" }]\n";
    let lab = lab(file);
    fs::write(lab.path("files/system.wml"), format!("{SCRIPT}system \"touch started\"\nrun 60\n")).unwrap();
    let text = lab.run(&format!("experiment files/study.toml {SHORT} --results r"), 3);
    assert!(text.contains("in cell `test=other`: `touch started` is not run"), "{text}");
    assert!(text.contains("--allow-system") && !lab.path("r").exists(), "{text}");
    let ab = "ab files/x.wml --b files/system.wml --blocks 2";
    let text = lab.run(&format!("{ab} {SHORT} --results r"), 3);
    assert!(text.contains("in `--b`: `touch started` is not run") && !lab.path("r").exists(), "{text}");
    lab.run(&format!("experiment files/study.toml {SHORT} --results r --allow-system"), 0);
    // The levels of the only factor are the names of the tests.
    let text = lab.run("wins r r --format json", 0);
    assert!(text.contains("\"name\": \"plain\"") && text.contains("\"name\": \"other\""), "{text}");
}

#[test]
fn a_cell_can_be_compared() {
    let lab = lab(&FILE.replace("repeats = 2\n", "repeats = 2\ncolumns = \"io\"\nstudy = \"n\"\ncurve = \"n\"\n"));
    let text = lab.run(&format!("experiment files/study.toml {SHORT} --results r --format json"), 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["schema"], &found["state"]), (&"wmlrun.factorial/1".into(), &"complete".into()));
    valid(&found);
    let tests = found["tests"].as_array().unwrap();
    assert_eq!(
        (tests.len(), &tests[1]["others"], &tests[1]["levels"][0]["test"]),
        (4, &"io=pinned".into(), &Value::Null)
    );
    assert_eq!(found["pivots"][0]["columns"], serde_json::json!(["plain", "pinned"]));
    assert_eq!(
        (&found["curves"][1]["name"], &found["curves"][1]["points"][1]["level"]),
        (&"io=pinned".into(), &"2".into())
    );
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for (n, cell) in cells.iter().enumerate() {
        assert_eq!((&cell["runs"], &cell["failed"]), (&2.into(), &0.into()), "{cell}");
        let levels = [["1", "2"][n / 2], ["plain", "pinned"][n % 2]];
        assert_eq!(cell["levels"], serde_json::json!(levels));
        for metric in cell["metrics"].as_array().unwrap() {
            let values: Vec<f64> = metric["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
            let mean = metric["estimate"]["value"].as_f64().unwrap();
            assert!(values.len() == 2 && f64::midpoint(values[0], values[1]) / mean > 0.999_999, "{metric}");
        }
    }
    // Cells of one experiment are compared block by block, and a part of the name of a cell is not one.
    let text = any_verdict(&lab.command("compare r:n=1,io=plain r:n=2,io=plain --anyway").output().unwrap());
    assert!(text.contains("paired t-test over 2 blocks") && !text.contains("not interleaved"), "{text}");
    let words = "compare r:n=1,io=plain r:n=2,io=plain --anyway --quiet -o compared.html";
    let output = lab.command(words).output().unwrap();
    any_verdict(&output);
    // A doubt, such as that other programs ran, has its notes on standard error.
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() == 1 && text.contains(": ") && text.ends_with(".\n"), "{text}");
    let page = fs::read_to_string(lab.path("compared.html")).unwrap();
    assert!(
        page.contains(">compare: r:n=1,io=plain and r:n=2,io=plain</h1>") && page.contains("How the verdict"),
        "{page}"
    );
    // Only a page is replaced.
    fs::write(lab.path("own.html"), "mine").unwrap();
    lab.run("compare r:n=1,io=plain r:n=2,io=plain --anyway -o own.html", 3);
    assert_eq!(fs::read_to_string(lab.path("own.html")).unwrap(), "mine");
    let text = lab.run("compare r:n=1 r:n=2", 2);
    assert!(text.contains("a cell has a level of each factor: `r:n=1,io=plain`"), "{text}");
    // The arms of the runs are those of the blocks, and their variables those of the cell.
    for event in lab.events("r").iter().filter(|event| event["event"] == "started") {
        let text = fs::read_to_string(lab.path(&format!("r/runs/{:04}.json", event["run"].as_u64().unwrap()))).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let cell = &cells[event["arm"].as_u64().unwrap() as usize];
        let value = result["runs"][0]["variables"]["n"].to_string();
        assert_eq!(value, cell["levels"][0].as_str().unwrap());
    }
    any_verdict(&lab.command("compare r:n=1,io=plain r:n=2,io=pinned --tolerance 90%").output().unwrap());
    let text = lab.run("compare r r:n=2,io=pinned", 2);
    assert!(text.contains("r:n=1,io=plain"), "{text}");
    let text = lab.run("report r --metric latency.p50 --format text", 0);
    assert!(text.contains("latency.p50") && !text.contains("r.latency.p99"), "{text}");
    let text = lab.run("report r --metric x.ops --format text", 2);
    assert!(text.contains("no run of r has `x.ops`"), "{text}");
    let text = lab.run("report r/runs/0001.json --metric ops --format text", 2);
    assert!(text.contains("`--metric` needs an experiment"), "{text}");
    lab.run("report r -o page.html", 0);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    // Each point has its name for pointers and for screen readers.
    let runs = page.matches("run 1 of the cell: ").count();
    assert!(page.contains("experiment: study") && page.contains("Cells: ops") && runs == 16, "{runs} names of points");
    // An experiment of another kind does not continue it.
    let text = lab.run("repeat --resume r", 2);
    assert!(text.contains("`wmlrun experiment --resume`"), "{text}");
    for (format, says) in
        [("text", "8 runs in 4 cells.\ncomplete: "), ("csv", "study,1,plain,1,ops,"), ("markdown", "| n | io |")]
    {
        let text = lab.run(&format!("experiment --resume r --quiet --format {format}"), 0);
        // On a busy machine nothing may pin down the peak of the curve.
        let text = text.replace("\nnot usable; as measured, ", "\n");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_level_may_have_its_own_metric() {
    let text = FILE
        .replace("[\"ops\", \"r.latency.p99\"]", "[\"ops\"]")
        .replace("options = \"--pin\"", "metric = \"before-x.seconds\", options = \"--pin\"");
    let lab = lab(&(text + "[[hook]]\nat = \"run\"\nname = \"x\"\nbefore = \"true\"\n"));
    let options = format!("{SHORT} --allow-system --append t.csv --live jsonl:live --results r");
    let text = lab.run(&format!("experiment files/study.toml {options} --format json"), 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    valid(&found);
    let metrics: Vec<&str> =
        found["cells"].as_array().unwrap().iter().map(|cell| cell["metrics"][0]["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics, ["ops", "before-x.seconds", "ops", "before-x.seconds"]);
    // Each run has a row and a line with the metric of its cell.
    let read = |name: &str| fs::read_to_string(lab.path(name)).unwrap();
    let (rows, lines) = (read("t.csv"), read("live"));
    assert_eq!((rows.lines().count(), lines.lines().count()), (9, 8), "{rows}{lines}");
    for (n, (row, line)) in rows.lines().skip(1).zip(lines.lines()).enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let arm = line["arm"].as_str().unwrap();
        assert!(row.starts_with(&format!("study,\"{arm}\",{},", n + 1)), "{row}");
        let metric = if arm.ends_with("io=pinned") { "before-x.seconds" } else { "ops" };
        assert!(line["metrics"][metric].is_f64() && line["run"] == n + 1, "{line}");
    }
    lab.run("report r -o page.html", 0);
    assert!(read("page.html").contains("Cells: before-x.seconds"));
    // A resumed experiment has no further runs.
    lab.run("experiment --resume r --quiet --append t.csv", 0);
    assert_eq!(read("t.csv"), rows);
}

#[test]
fn commands_know_their_run() {
    let lab = lab(
        "script = \"x\"\norder = \"in-order\"\nrepeats = 2\nrecord = [\"df\", \"echo $WMLRUN_CELL of $WMLRUN_RUN\"]\n\
         [[factor]]\nname = \"n\"\n\
         levels = [1, { name = \"two\", set = { n = 2 }, before = \"echo + $WMLRUN_LEVEL_n >> log\", \
         after = \"echo - $WMLRUN_LEVEL_n >> log\" }]\n\
         [[hook]]\nat = \"run\"\nbefore = \"echo $WMLRUN_RUN $WMLRUN_CELL >> log\"\n",
    );
    // The null engine has no files, and so no file system.
    let options = SHORT.replace("null", "posix");
    let text = lab.run(&format!("experiment files/study.toml {options} --results r --allow-system"), 0);
    assert!(text.contains("used before"), "{text}");
    let log = fs::read_to_string(lab.path("log")).unwrap();
    assert_eq!(log, "1 n=1\n2 n=1\n+ two\n3 n=two\n4 n=two\n- two\n");
    assert_eq!(fs::read_to_string(lab.path("r/records/0003-1.txt")).unwrap(), "n=two of 3\n");
    let space = |before| lab.events("r").iter().filter(|e| e["event"] == "space" && e["before"] == before).count();
    assert_eq!((space(true), space(false)), (4, 4));
}

/// The rule is in the folder, and every form of the result says what it is worth.
#[test]
fn cells_end_by_the_rule_of_the_study() {
    let lab = lab(&FILE.replace("repeats = 2\n", "repeats = \"2..3\"\nuntil-ci = \"99%\"\nstop = \"study\"\n"));
    any_verdict(&lab.command(&format!("experiment files/study.toml {SHORT} --results r")).output().unwrap());
    let found: Value = serde_json::from_str(&lab.run("report r --format json", 0)).unwrap();
    valid(&found);
    assert_eq!((&found["stop"], &found["target"]), (&"study".into(), &0.99.into()), "{found:#}");
    let found: Value = serde_json::from_str(&lab.run("report r --format study", 0)).unwrap();
    valid(&found);
    assert_eq!(found["stop"], "study", "{found:#}");
    let text = lab.run("report r --format text", 0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in only 72 to 75 of 100 cases if runs depend on each other"), "{text}");
}

/// `study` stands for the measures of the study, which are flowops of `oltp_sync`; another script lacks them.
#[test]
fn the_measures_of_the_study_are_metrics() {
    let text = "script = \"oltp_sync\"\nrepeats = 1\nmetrics = [\"study\", \"latency.max\"]\n";
    let lab = lab(text);
    let small = "--set filesize=1m --set logfilesize=1m --set nshadows=4 --set ndbwriters=2 --runtime 0.3";
    let words = format!("experiment files/study.toml {small} --no-quiesce --quiet --format json --results r");
    let found: Value = serde_json::from_str(&lab.run(&words, 0)).unwrap();
    let of = |name: &str| found["metrics"].as_array().unwrap().iter().position(|of| of == name);
    assert_eq!(
        (of("shadow-post-dbwr.ops"), of("lg-write.latency.mean"), of("latency.max")),
        (Some(1), Some(12), Some(13))
    );
    let value = |name: &str| found["cells"][0]["metrics"][of(name).unwrap()]["estimate"]["value"].as_f64().unwrap();
    let [hog, reads, of_flowop] = ["shadowhog.latency.mean", "reads", "shadowread.ops"].map(value);
    assert!(hog > 0.0 && (reads / of_flowop - 1.0).abs() < 1e-9, "{found:#}");
    fs::write(lab.path("files/study.toml"), text.replace("oltp_sync", "x")).unwrap();
    let text = lab.run("experiment files/study.toml --plan", 2);
    assert!(text.contains("files/study.toml:3:12") && text.contains("shadow-post-dbwr"), "{text}");
}

/// The runs of two cells end before they have done anything.
#[test]
fn a_failed_run_is_a_result_of_its_cell() {
    let text = FILE.replace("options = \"--pin\"", "options = \"--set wait=9 --runtime 0.3\"");
    let lab = lab(&text.replace("[\"ops\", \"r.latency.p99\"]", "[\"ops\"]"));
    let delay = "flowop delay name=d,value=$wait\n      flowop read";
    fs::write(lab.path("files/x.wml"), format!("set $wait=0\n{}", SCRIPT.replace("flowop read", delay))).unwrap();
    let says = "error: 4 of 8 runs failed: 2 of `n=1,io=pinned`, 2 of `n=2,io=pinned`";
    // It is complete, and has no further runs.
    for words in [format!("files/study.toml {SHORT} --results r"), "--resume r".to_owned()] {
        let shown = lab.run(&format!("experiment {words}"), 1);
        assert!(shown.contains("8 runs in 4 cells, of which 4 failed."), "{shown}");
        assert_eq!(shown.matches("2 failed: no operation was completed").count(), 2, "{shown}");
        assert!(shown.lines().any(|line| line == says), "{shown}");
        assert_eq!(lab.events("r").last().unwrap()["event"], "ended");
    }
    assert_eq!(lab.runs("r", "started").len(), 8);
}

/// The program is killed before it has written a result.
#[test]
fn a_run_without_a_result_ends_the_experiment() {
    let lab = lab(FILE);
    let words = format!("experiment files/study.toml {SHORT} --results r");
    let mut command = lab.command(&words);
    let output = command.args(["--launch", "sh -c 'kill -9 $$' sh"]).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("run 1 failed: ") && shown.contains("signal: 9"), "{shown}");
    assert!(lab.runs("r", "failed").is_empty() && lab.events("r").last().unwrap()["event"] == "stopped", "{shown}");
}

/// In order, the first cell takes the whole budget.
#[test]
fn a_cell_that_the_budget_does_not_reach_is_not_measured() {
    let factor = "[[factor]]\nname = \"n\"\nlevels = [1, 2]\n";
    let lab = lab(&format!("script = \"x\"\norder = \"in-order\"\nrepeats = 10000\n{factor}"));
    let text = lab.run(&format!("experiment files/study.toml {SHORT} --budget 1 --results r"), 11);
    let made = lab.runs("r", "finished").len();
    assert!(made > 0 && text.contains(&format!("not complete: {made} of 20,000 runs in 2 cells")), "{text}");
    assert_eq!(text.matches("not measured").count(), 1, "{text}");
    lab.run("report r -o page.html", 0);
}

/// Kills an experiment with commands in all scopes at the `n`th event of its journal, and resumes it. Returns whether
/// there is such an event.
fn killed_at(n: usize) -> bool {
    // Commands that fail if they are executed twice.
    let hook = |at: &str| format!("[[hook]]\nat = \"{at}\"\nbefore = \"mkdir {at}\"\nafter = \"rmdir {at}\"\n");
    let hooks = ["experiment", "block", "run"].map(hook).concat();
    let factor = "[[factor]]\nname = \"n\"\nlevels = [1, { name = \"two\", set = { n = 2 }, before = \"mkdir level\", \
        after = \"rmdir level\" }]\n";
    let lab = lab(&format!("script = \"x\"\nrepeats = 2\n{factor}{hooks}"));
    let command = lab.command(&format!("experiment files/study.toml {SHORT} --results r --allow-system"));
    let place = format!("event {n}");
    let is_killed = run_killed(&command, "fdatasync", n);
    if is_killed {
        assert_eq!(lab.events("r").len(), n, "{place}");
        exits(&lab.command("experiment --resume r --quiet").output().unwrap(), 0, &place);
    }
    is_complete(&lab, "r", 4, &place);
    let stays: Vec<&str> =
        ["experiment", "block", "run", "level"].into_iter().filter(|dir| lab.path(dir).exists()).collect();
    assert!(stays.is_empty(), "{place}: {stays:?} stay");
    is_killed
}

#[test]
fn an_experiment_is_resumed_after_a_kill_at_each_event() {
    needs!(strace::available());
    // Begun and ended; two events of each run and four of its commands; four of the experiment, of each of two blocks and
    // of the level in each block.
    let all: Vec<usize> = (1..=46).collect();
    let sample = [5, 8, 21, 45];
    in_parallel(short_or_long(&sample[..], &all), |n| assert!(killed_at(n), "there are 46 events, not {n}"));
    assert!(!killed_at(47));
}

/// A command without an opposite, in a scope that ends and begins again.
#[test]
fn a_command_that_is_not_executed_again_is_named() {
    needs!(strace::available());
    let outer = "[[hook]]\nat = \"experiment\"\nbefore = \"mkdir made\"\nafter = \"rm -r made\"\n";
    let factor = |after: &str| {
        format!("[[factor]]\nname = \"n\"\nlevels = [{{ name = \"one\", before = \"touch made/aged\"{after} }}, 2]\n")
    };
    for (after, is_named) in [("", true), (", after = \"true\"", false)] {
        let text = format!("script = \"x\"\norder = \"in-order\"\nrepeats = 2\n{outer}{}", factor(after));
        let lab = lab(&text);
        let command = lab.command(&format!("experiment files/study.toml {SHORT} --results r --allow-system"));
        // The second run is under way.
        assert!(run_killed(&command, "fdatasync", 8));
        assert_eq!(lab.runs("r", "finished"), [1]);
        let shown = lab.run("experiment --resume r", 0);
        let note = "`before` is not executed again, since it has no `after`";
        assert_eq!(shown.contains(note), is_named, "{shown}");
    }
}

#[test]
fn file_systems_are_compared() {
    needs!(mounts::available(&[Fs::Ext4]));
    let level = |name: &str, options: &str| {
        format!(
            "[[factor.levels]]\nname = \"{name}\"\n\
             before = \"rm -f image; truncate -s 16M image && mkfs.ext4 -q -F {options} image && mkdir -p mnt && \
             mount -o loop image mnt\"\nafter = \"umount mnt\"\n"
        )
    };
    let levels = level("journal", "") + &level("plain", "-O ^has_journal");
    let lab = lab(&format!(
        "script = \"x\"\noptions = \"--dir mnt/x --mkdir\"\nrepeats = 1\n[[factor]]\nname = \"fs\"\n{levels}"
    ));
    let options = SHORT.replace("--engine null", "--require-fs ext4");
    lab.run(&format!("experiment files/study.toml {options} --results r --allow-system"), 0);
    let mounts: Vec<String> = lab
        .events("r")
        .iter()
        .filter(|event| event["event"] == "started")
        .map(|event| event["mounts"][0].as_str().unwrap().to_owned())
        .collect();
    assert!(mounts.len() == 2 && mounts.iter().all(|mount| mount.contains("/mnt: loop device ext4")), "{mounts:?}");
    assert!(!lab.path("mnt/x").exists(), "the file system stays mounted");
}

/// The file of the manual for two file systems that are mounted, with other paths and short runs.
#[test]
fn mount_options_of_two_file_systems_are_compared() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs]));
    let lab = Lab::new();
    let page = include_str!("../../docs/experiments.md");
    let block = page.split("```toml\n").find(|block| block.contains("LABEL=ext4")).unwrap();
    let mut text = block.split("```").next().unwrap().to_owned();
    let mut replace = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        text = text.replace(from, to);
    };
    // The commands find the device and the mount of a file system in files.
    let of_level = |what: &str| format!("$(cat {}-$WMLRUN_LEVEL_fs)", lab.path(what).display());
    replace("/mnt/$WMLRUN_LEVEL_fs", &of_level("at"));
    replace("LABEL=$WMLRUN_LEVEL_fs", &of_level("device"));
    replace("--runtime 60", "--runtime 0.1 --set nfiles=50 --no-quiesce");
    let mounts = [("ext4", Mount::new(Fs::Ext4, 256 << 20)), ("xfs", Mount::new(Fs::Xfs, 512 << 20))];
    for (name, mount) in &mounts {
        let (dir, device) = (mount.dir().display().to_string(), mount.device().unwrap());
        replace(&format!("/mnt/{name}"), &dir);
        replace(&format!("LABEL={name}"), device);
        fs::write(lab.path(&format!("at-{name}")), dir).unwrap();
        fs::write(lab.path(&format!("device-{name}")), device).unwrap();
    }
    fs::write(lab.path("study.toml"), format!("repeats = 1\n{text}")).unwrap();
    lab.run("experiment study.toml --results r --allow-system", 0);
    let cells = ["relatime", "noatime"].map(|atime| format!("r:fs=xfs,atime={atime},nthreads=1"));
    let output = lab.command(&format!("compare {} {} --format json", cells[0], cells[1])).output().unwrap();
    exits(&output, 11, "a single run of each");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let options = found["differs"].as_array().unwrap().iter().find(|d| d["what"] == "mount options").unwrap();
    assert!(options["a"].as_str().unwrap().contains("relatime"), "{options}");
    assert!(options["b"].as_str().unwrap().contains("noatime"), "{options}");
    // Both are mounted again.
    let mounted = fs::read_to_string("/proc/self/mounts").unwrap();
    for (name, mount) in &mounts {
        assert!(mounted.contains(&format!(" {} ", mount.dir().display())), "{name}");
    }
}

/// What loosens a promise is the caller's.
#[test]
fn a_file_gives_itself_no_permission() {
    for (option, given) in [
        ("--record-env", "--record-env"),
        ("--adopt", "--adopt"),
        ("--allow-system", "--allow-system"),
        ("--allow-write=out", "--allow-write out"),
        ("--allow-drop-caches", "--allow-drop-caches"),
    ] {
        let lab = lab(&format!("options = \"{option}\"\n{FILE}"));
        let said = lab.run("experiment files/study.toml --plan", 2);
        assert!(said.contains(&format!("an experiment file can't give the option `{option}`")), "{said}");
        lab.run(&format!("experiment files/study.toml --plan {given}"), 0);
    }
    let lab = lab(&format!("options = \"--require-fs tmpfs\"\n{FILE}"));
    lab.run("experiment files/study.toml --plan", 0);
    lab.run("experiment files/study.toml --plan --require-fs xfs", 2);
}

#[test]
fn each_shipped_experiment_has_a_plan() {
    let lab = Lab::new();
    let list = lab.run("list experiments", 0);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"quick") && names.len() >= 6, "{list}");
    for name in names {
        let text = lab.run(&format!("experiment {name} --plan"), 0);
        assert!(text.contains(" runs, "), "{name}: {text}");
        // A single word is not broken.
        let is_narrow = |line: &str| line.chars().count() <= 80 || !line.trim().contains(' ');
        assert!(text.lines().all(is_narrow), "{name}: {text}");
        assert!(lab.run(&format!("show {name}"), 0).starts_with(&format!("# {name}: ")), "{name}");
    }
    let text = lab.run("experiment quick --plan", 0);
    assert!(text.contains("8 runs, ") && text.contains("measured for 30s in all"), "{text}");
    // A directory of the same name is no experiment, such as one for the results.
    fs::create_dir(lab.path("quick")).unwrap();
    lab.run("experiment quick --plan", 0);
    let text = lab.run("experiment quikc", 2);
    assert!(text.contains("did you mean `quick`?"), "{text}");
}
