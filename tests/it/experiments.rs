//! Tests `wmlrun repeat` and `wmlrun ab`: the order of runs, the results folder, hooks, and refused input.
//!
//! Not in here: experiments that are killed and resumed (`resume`).

use crate::cmd::{Wml, binary, disk, program, scratch, squeezed, tool};
use crate::mounts::{self, Fs, Mount};
use crate::signals::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A workload without I/O. With `$reads` it ends after as many reads.
pub(crate) const SCRIPT: &str = "set $n=1\n\
    set $reads=1000000000\n\
    define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    define process name=p { thread name=t,instances=$n {\n\
      flowop read name=r,filesetname=data,iosize=4k\n\
      flowop finishoncount name=end,value=$reads,target=r\n\
    } }\n";

/// The same at a fixed rate, whose runs are equal on a machine that other tests use too.
pub(crate) fn paced() -> String {
    SCRIPT.replace("instances=$n", "instances=$n,rate=1000,arrival=constant")
}

/// A run of a tenth of a second of [`paced`].
pub(crate) const PACED: &str = "x.wml --engine null --no-quiesce --runtime 60 --set reads=100";

pub(crate) struct Lab(pub(crate) TempDir);

impl Lab {
    pub(crate) fn new() -> Self {
        Self::below(&scratch())
    }

    /// In a fresh directory below `place`.
    pub(crate) fn below(place: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("lab-").tempdir_in(place).unwrap();
        fs::write(dir.path().join("x.wml"), SCRIPT).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = program();
        command.args(words.split_whitespace()).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, words: &str, code: i32) -> String {
        exits(&self.command(words).output().unwrap(), code, words)
    }

    pub(crate) fn events(&self, folder: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(folder).join("journal.jsonl")).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    /// The numbers of one kind of event's runs.
    pub(crate) fn runs(&self, folder: &str, event: &str) -> Vec<u64> {
        let events = self.events(folder);
        events.iter().filter(|e| e["event"] == event).map(|e| e["run"].as_u64().unwrap()).collect()
    }
}

#[track_caller]
pub(crate) fn exits(output: &Output, code: i32, words: &str) -> String {
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words}\n{shown}");
    shown
}

/// Checks that a series of repeated runs is complete. On a busy machine short runs may drift.
#[track_caller]
pub(crate) fn series(output: &Output) {
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 11)), "{:?}\n{shown}", output.status);
}

/// Checks that a comparison ended with a verdict, and returns its texts. Which verdict depends on the machine: runs of a
/// tenth of a second differ by any factor while other programs are busy.
#[track_caller]
pub(crate) fn any_verdict(output: &Output) -> String {
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{}\n{shown}", output.status);
    shown
}

/// A short run without I/O. A number of reads ends it, not a time in which a busy machine may give it no processor.
pub(crate) const SHORT: &str = "x.wml --engine null --no-quiesce --runtime 60 --set reads=200000";

#[test]
fn repeated_runs_are_stored_and_estimated() {
    let lab = Lab::new();
    let text = lab.run(&format!("repeat {SHORT} --runs 3 --results r --format json --quiet"), 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    valid(&found);
    assert_eq!((&found["schema"], &found["state"]), (&"wmlrun.repeats/1".into(), &"complete".into()));
    let values = found["metrics"][0]["values"].as_array().unwrap();
    assert_eq!((values.len(), &found["metrics"][0]["n"]), (3, &3.into()));
    for (run, value) in values.iter().enumerate() {
        let text = fs::read_to_string(lab.path(&format!("r/runs/{:04}.json", run + 1))).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["runs"][0]["summary"]["ops_per_s"], *value);
    }
    let seeds: std::collections::BTreeSet<u64> = (1..=3)
        .map(|n| {
            let text = fs::read_to_string(lab.path(&format!("r/runs/000{n}.json"))).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["seed"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(seeds.len(), 3);
    // Build scripts of the program request a build ID, which is read at once; the digest of the program is not.
    let description = fs::read_to_string(lab.path("r/experiment.toml")).unwrap();
    let tool = description.lines().find_map(|line| line.strip_prefix("tool = ")).unwrap().trim_matches('"');
    let id = tool.rsplit(' ').next().unwrap();
    assert!(id.len() >= 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{tool}");
    let text = lab.run("prune r", 0);
    assert!(text.contains("removed") && !lab.path("r/runs/0001.log").exists() && lab.path("r/runs/0001.json").exists());
    // The folder is that of three observations.
    let text = any_verdict(&lab.command("compare r r --tolerance 99%").output().unwrap());
    assert!(text.contains("\nA        3 ") && text.contains("\nB        3 "), "{text}");
}

#[test]
fn each_run_is_a_row_and_a_line() {
    let lab = Lab::new();
    fs::write(lab.path("other.csv"), "precious\n").unwrap();
    let repeat = format!("repeat {SHORT} --runs 2 --metric seconds,before.seconds");
    let command = |words: &str| {
        let mut command = lab.command(&format!("{repeat} {words}"));
        command.args(["--before", "true"]);
        command
    };
    let text = exits(&command("--append other.csv").output().unwrap(), 3, "other.csv");
    assert!(text.contains("can't write the table other.csv"), "{text}");
    // The files of a run's operations would replace one another.
    exits(&command("--trace t:5").output().unwrap(), 2, "--trace");
    let text = exits(&lab.command(&repeat).output().unwrap(), 2, "no command");
    assert!(text.contains("no `before.seconds`") && text.contains("give the command with `--before`"), "{text}");
    let output = command("--append t.csv --live jsonl --results r").output().unwrap();
    exits(&output, 0, "--append --live");
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = String::from_utf8(output.stderr).unwrap();
    assert!(result.contains("complete") && result.contains("before.seconds"), "{result}");
    let rows = fs::read_to_string(lab.path("t.csv")).unwrap();
    assert_eq!((lines.len(), rows.lines().count()), (2, 3), "{rows}");
    for (n, (line, row)) in lines.iter().zip(rows.lines().skip(1)).enumerate() {
        valid(line);
        assert_eq!(
            (&line["event"], &line["run"], &line["failure"]),
            (&"recorded".into(), &(n + 1).into(), &Value::Null)
        );
        let finished = &lab.events("r").into_iter().filter(|e| e["event"] == "finished").nth(n).unwrap();
        assert_eq!(line["seconds"], finished["seconds"]);
        assert!(line["metrics"]["seconds"].is_f64() && line["metrics"]["before.seconds"].is_f64(), "{line}");
        assert!(row.starts_with(&format!("x.wml,,{},", n + 1)), "{row}");
    }
    // Other commands find the time of the command in the folder too.
    let text = lab.run("wins r r --metric before.seconds", 0);
    assert!(text.contains("before.seconds"), "{text}");
    let names = ["other.csv", "r", "t.csv", "x.wml"];
    let mut found: Vec<String> =
        fs::read_dir(lab.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
}

/// The journal has the boot of each run. Another one is written to it, as if the machine had been rebooted.
#[test]
fn a_reboot_is_noted_in_the_result() {
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs 2 --results r --quiet"), 0);
    let boot = lab.events("r")[0]["boot"].as_str().unwrap().to_owned();
    assert_eq!(boot, fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    let journal = fs::read_to_string(lab.path("r/journal.jsonl")).unwrap();
    let end = journal.lines().position(|line| line.contains("\"finished\"")).unwrap() + 1;
    let first: String = journal.lines().take(end).map(|line| line.replace(&boot, "another") + "\n").collect();
    fs::write(lab.path("r/journal.jsonl"), first).unwrap();
    let text = lab.run("repeat --resume r", 0);
    let note = "the machine was rebooted between runs 1 and 2";
    assert!(text.contains(&format!("note: {note}")) && text.contains("rebooted since the experiment"), "{text}");
    let text = any_verdict(&lab.command("compare r r --tolerance 99%").output().unwrap());
    assert!(text.contains(note), "{text}");
    lab.run("report r -o page.html", 0);
    assert!(fs::read_to_string(lab.path("page.html")).unwrap().contains(note));
}

#[test]
fn runs_are_interleaved_until_there_is_a_verdict() {
    let lab = Lab::new();
    let words = format!("ab {SHORT} --results r --blocks 2 --format json --quiet");
    let output = lab.command(&words).args(["--b", "--set n=2", "--metric", "r.ops"]).output().unwrap();
    let code = output.status.code().unwrap();
    assert!([0, 10, 11, 12].contains(&code), "{code}: {}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    valid(&found);
    let verdict = found["verdict"].as_str().unwrap();
    let expected = match verdict {
        "better" | "same" | "not_worse" => 0,
        "worse" => 10,
        "unclear" => 11,
        _ => 12,
    };
    assert_eq!(code, expected, "{verdict}");
    assert_eq!(
        (&found["a"]["n"], &found["interleaved"], &found["b"]["name"]),
        (&4.into(), &true.into(), &"--set n=2".into())
    );
    assert!(found["differs"].as_array().unwrap().iter().any(|d| d["what"] == "$n" && d["a"] == "1" && d["b"] == "2"));
    let arms: Vec<u64> = lab
        .events("r")
        .iter()
        .filter(|e| e["event"] == "started")
        .map(|e| {
            assert!(e["control"].as_f64().unwrap() > 0.0);
            assert!(e.get("mounts").is_none(), "the null engine uses no file system: {e}");
            e["arm"].as_u64().unwrap()
        })
        .collect();
    assert!(arms.chunks(4).all(|four| four == [0, 1, 1, 0] || four == [1, 0, 0, 1]), "{arms:?}");
    // A second control follows each run.
    let events = lab.events("r");
    let after: Vec<f64> =
        events.iter().filter(|e| e["event"] == "finished").map(|e| e["control"].as_f64().unwrap()).collect();
    assert!(after.len() == 8 && after.iter().all(|speed| *speed > 0.0), "{after:?}");
}

/// A document follows the published schema that it names: `wmlrun.NAME/1` is `docs/NAME.schema.json`.
#[track_caller]
pub(crate) fn valid(document: &Value) {
    let schema = document["schema"].as_str().and_then(|schema| schema.strip_prefix("wmlrun.")?.strip_suffix("/1"));
    let name = schema.unwrap_or_else(|| panic!("the document has no schema: {document:#}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.schema.json"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

/// One form of JSON has the cells of all experiments, with what their runs say together.
#[test]
fn every_experiment_has_a_document_of_one_form() {
    let lab = Lab::new();
    fs::write(lab.path("f.toml"), "script = \"x.wml\"\n[[factor]]\nname = \"n\"\nlevels = [1, 2, 3]\n").unwrap();
    let common = "--engine null --no-quiesce --runtime 60 --set reads=20000 --format study --quiet";
    for (words, cells, part) in [
        ("repeat x.wml --runs 3", 1, "state"),
        ("ab x.wml --blocks 2", 2, "verdict"),
        ("sweep x.wml --vary n=1,2 --repeats 2", 2, "curve"),
        ("experiment f.toml --repeats 2", 3, "state"),
    ] {
        let folder = words.split(' ').next().unwrap();
        let mut command = lab.command(&format!("{words} {common} --results {folder}"));
        command.args(if part == "verdict" { &["--b", "--set n=2"][..] } else { &[] });
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{words}: {e}: {text}"));
        valid(&found);
        assert_eq!((&found["schema"], found[part].is_null()), (&"wmlrun.study/1".into(), false), "{words}: {found:#}");
        let runs = |cell: &Value| cell["metrics"][0]["values"].as_array().map(Vec::len);
        let runs: Vec<Option<usize>> = found["cells"].as_array().unwrap().iter().map(runs).collect();
        let of_cell = if cells == 1 {
            3
        } else if part == "verdict" {
            4
        } else {
            2
        };
        assert_eq!(runs, vec![Some(of_cell); cells], "{words}: {found:#}");
        assert_eq!(lab.run(&format!("report {folder} --format study"), 0), text, "{words}");
    }
}

#[test]
fn a_signal_keeps_the_results_and_runs_the_teardown_hooks() {
    let lab = Lab::new();
    let child = lab
        .command("repeat x.wml --engine null --no-quiesce --runtime 60 --runs 3 --results r")
        .args(["--before", "echo up >> log", "--after", "echo down >> log"])
        .spawn()
        .unwrap();
    wait_for("the first run", || !lab.runs("r", "started").is_empty());
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let shown = exits(&child.wait_with_output().unwrap(), 130, "^C");
    assert!(shown.contains("wmlrun repeat --resume r"), "{shown}");
    assert_eq!(fs::read_to_string(lab.path("log")).unwrap(), "up\ndown\n");
    assert_eq!(lab.events("r").last().unwrap()["why"], "interrupted");
}

#[test]
fn an_interrupted_noise_floor_is_continued_by_its_own_command() {
    let lab = Lab::new();
    let child = lab.command("floor . x.wml --engine null --runtime 60 --results r").spawn().unwrap();
    wait_for("the first run", || !lab.runs("r", "started").is_empty());
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let shown = exits(&child.wait_with_output().unwrap(), 130, "^C");
    assert!(shown.contains("wmlrun repeat --floor --resume r"), "{shown}");
}

#[test]
fn hooks_run_around_runs_and_a_failed_hook_ends_the_experiment() {
    let lab = Lab::new();
    let hooks = ["--before", "echo before $$ >> log; echo said", "--after", "echo after >> log"];
    exits(&lab.command(&format!("repeat {SHORT} --runs 2 --results r")).args(hooks).output().unwrap(), 0, "hooks");
    let log = fs::read_to_string(lab.path("log")).unwrap();
    let words: Vec<&str> = log.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["before", "after", "before", "after"]);
    assert_eq!(fs::read_to_string(lab.path("r/hooks/0002-before.log")).unwrap(), "said\n");

    let failing = ["--before", "echo no >&2; exit 3"];
    let output = lab.command(&format!("repeat {SHORT} --runs 2 --results s")).args(failing).output().unwrap();
    let shown = exits(&output, 1, "a command that fails");
    assert!(shown.contains("`--before` of run 1 failed") && shown.contains("s/hooks/0001-before.log"), "{shown}");

    let slow = ["--before", "sleep 60", "--command-timeout", "0.3"];
    let output = lab.command(&format!("repeat {SHORT} --runs 2 --results t")).args(slow).output().unwrap();
    assert!(exits(&output, 1, "a command that hangs").contains("more than"));
}

#[test]
fn an_experiment_whose_conditions_changed_is_not_resumed() {
    let lab = Lab::new();
    let failing = ["--after", "test -e go"];
    let output = lab.command(&format!("repeat {SHORT} --runs 2 --results r")).args(failing).output().unwrap();
    exits(&output, 1, "the command fails");
    fs::write(lab.path("go"), "").unwrap();
    let same = fs::read_to_string(lab.path("x.wml")).unwrap();
    fs::write(lab.path("x.wml"), format!("{same}# changed\n")).unwrap();
    let shown = lab.run("repeat --resume r", 3);
    assert!(
        shown.contains("changed since the experiment was started: a script") && shown.contains("--anyway"),
        "{shown}"
    );
    fs::write(lab.path("x.wml"), same).unwrap();
    let toml = fs::read_to_string(lab.path("r/experiment.toml")).unwrap();
    fs::write(lab.path("r/experiment.toml"), toml.replace("test -e go", "touch gone")).unwrap();
    let shown = lab.run("repeat --resume r", 3);
    assert!(shown.contains("experiment.toml") && !lab.path("gone").exists(), "{shown}");
    fs::write(lab.path("r/experiment.toml"), toml).unwrap();
    assert!(lab.run("ab --resume r", 2).contains("wmlrun repeat --resume"));
    lab.run("repeat --resume r", 0);
    assert_eq!(lab.runs("r", "finished"), [1, 2]);
    // Complete, it has nothing more to do, and says the same again.
    lab.run("repeat --resume r", 0);
    assert_eq!(lab.runs("r", "finished"), [1, 2]);
}

#[test]
fn errors_are_found_before_the_first_run() {
    let lab = Lab::new();
    fs::create_dir(lab.path("full")).unwrap();
    fs::write(lab.path("full/file"), "").unwrap();
    for (words, code, says) in [
        ("repeat nowhere.wml --results r", 2, "is named `nowhere.wml`"),
        ("repeat x.wml --runs 5..2 --results r", 2, "expected a number of runs"),
        ("repeat x.wml --until-ci 200% --results r", 2, "between 0 and 100"),
        ("ab x.wml --tolerance 3 --results r", 2, "`3` is not a percentage: write `3%` or `0.03`"),
        ("repeat x.wml --metric speed --results r", 2, "unknown metric"),
        ("repeat x.wml --json a --results r", 2, "--json"),
        ("repeat - --results r", 2, "standard input"),
        ("repeat --results r", 2, "SCRIPT"),
        ("repeat x.wml --results full", 3, "not empty"),
        ("repeat x.wml --results x.wml/r", 3, "x.wml/r"),
        ("repeat --resume full", 3, "experiment.toml"),
        ("ab x.wml --a --json=y --results r", 2, "in `--a`"),
        ("ab x.wml --blocks 1 --results r", 2, "--blocks"),
        ("ab x.wml --blocks 4 --until-clear --results r", 2, "--until-clear"),
        ("repeat x.wml --launch 'a --results r", 2, "--launch"),
        ("prune full", 3, "experiment.toml"),
    ] {
        let shown = lab.run(words, code);
        assert!(shown.contains(says), "{words}: {shown}");
        assert!(!lab.path("r").exists(), "{words}");
    }
    let shown = lab.run("repeat x.wml --runtime 0.1 --set m=1 --results r", 2);
    assert!(shown.contains("has no variable `$m`") && !shown.contains("in `") && !lab.path("r").exists(), "{shown}");
    // Directories and mount points of all arms. With commands, which may mount file systems, the runs find these errors.
    for (words, says) in [
        ("ab x.wml --a=--dir=. --b=--dir=none/d", "none/d`: the directory `none/d` of `--dir` does not exist"),
        (
            "repeat x.wml --dir none/d --mkdir --require-mount=none",
            "nothing is mounted at none, as `--require-mount=none`",
        ),
    ] {
        let shown = lab.run(&format!("{words} --runtime 0.1 --results r"), 3);
        assert!(shown.contains(says) && !lab.path("r").exists() && !lab.path("none").exists(), "{words}: {shown}");
    }
    // A mistake that only a run finds.
    let shown = lab.run("repeat x.wml --no-quiesce --runtime 0.1 --dir /proc --results r", 3);
    assert!(shown.contains("run 1 failed") && shown.contains("r/runs/0001.log"), "{shown}");
    // An answer says so too.
    let mail = lab.run("repeat x.wml --no-quiesce --runtime 0.1 --dir /proc --results f --format mail", 3);
    assert!(mail.contains("\n\nfailed: run 1 failed") && mail.contains("Do not use this result."), "{mail}");
    // A flowop that the script does not have.
    fs::write(lab.path("w.wml"), SCRIPT.replace("name=r,", "name=write-log,").replace("target=r", "target=write-log"))
        .unwrap();
    for (words, says, help) in [
        (
            "repeat x.wml --metric ops,write.ops",
            "error: no `write.ops`: the script has no flowop",
            "its flowops are `end`, `r`",
        ),
        ("repeat w.wml --metric writelog.latency.p99", "no flowop `writelog`", "did you mean `write-log.latency.p99`?"),
        ("ab x.wml --metric r.ops --b w.wml", "in `--b`: no `r.ops`", "its flowops are `end`, `write-log`"),
        ("floor . x.wml --metric p/t/s.mib", "no `p/t/s.mib`", "its flowops are `end`, `r`"),
        // No run has them, or no run of a closed loop.
        ("repeat x.wml --metric ops,value", "no `value`: it is the number of a column", "name another metric"),
        ("repeat x.wml --metric r.value", "no `r.value`: it is the number of a column", "name another metric"),
        ("ab x.wml --metric end.response.p99", "no thread of the script is an open loop", "add `rate=`"),
        ("ab x.wml --metric response.mean", "no thread of the script is an open loop", "add `rate=`"),
    ] {
        let hook = ["--before", "touch hook", "--results", "s"];
        let shown = exits(&lab.command(words).args(hook).output().unwrap(), 2, words);
        assert!(shown.contains(says) && shown.contains(help), "{words}: {shown}");
        assert!(!lab.path("s").exists() && !lab.path("hook").exists(), "{words}");
    }
    lab.run(&format!("repeat {SHORT} --metric p/t/r.latency.mean,r.mib --runs 1 --results t --quiet"), 0);
    let words = SHORT.replace("200000", "20");
    let metrics = "response.mean,r.response.mean,p/t/r.response.p50";
    for attribute in ["totalrate", "rate"] {
        fs::write(lab.path("x.wml"), SCRIPT.replace("name=t,", &format!("name=t,{attribute}=1000,"))).unwrap();
        lab.run(&format!("repeat {words} --metric {metrics} --runs 1 --results u-{attribute} --quiet"), 0);
    }
    let shown = exits(&lab.command("repeat x.wml --metric end.response.mean --results v").output().unwrap(), 2, "end");
    assert!(shown.contains("only the I/O operations of open loops"), "{shown}");
}

/// The options of each arm are checked before the first command and before anything is made.
#[test]
fn a_mistake_in_an_arm_names_its_option() {
    let lab = Lab::new();
    fs::write(lab.path("y.wml"), "define fileset name=d,path=$dir,entries=$e\n").unwrap();
    let before = fs::read_dir(lab.0.path()).unwrap().count();
    for (command, option, value, says) in [
        ("ab x.wml", "--b", "--set m=1", "in `--b`: `--set m=…`: the script has no variable `$m`"),
        ("ab x.wml", "--a", "--set n=zz", "in `--a`: `instances` is the text `zz`"),
        ("ab x.wml", "--b", "--hurry 3", "in `--b`: unexpected argument '--hurry'"),
        ("ab x.wml", "--b", "nowhere.wml", "in `--b`: no file or personality is named `nowhere.wml`"),
        ("ab x.wml", "--b", "y.wml", "in `--b`: nothing sets `$e`"),
        ("ab x.wml --set m=1", "--b", "--set n=2", "error: `--set m=…`: the script has no variable `$m`"),
        ("ab nowhere.wml", "--b", "--set n=2", "error: no file or personality is named `nowhere.wml`"),
        ("sweep x.wml", "--vary", "m=1,2", "in `--vary`: `--set m=…`: the script has no variable `$m`"),
    ] {
        let hook = ["--before", "echo hook > log"];
        let output = lab.command(command).args([option, value]).args(hook).output().unwrap();
        let shown = exits(&output, 2, value);
        assert!(shown.contains(says), "{command} {option} {value}: {shown}");
        assert_eq!(fs::read_dir(lab.0.path()).unwrap().count(), before, "{command} {option} {value}: {shown}");
    }
}

/// What the user has asked for beside the workload is said before the first run.
#[test]
fn the_launcher_and_eviction_are_announced() {
    let lab = Lab::new();
    fs::write(lab.path("y.wml"), SCRIPT.replace("name=r,", "name=other,").replace("target=r", "target=other")).unwrap();
    let words = format!("ab {SHORT} --blocks 2 --results r --tolerance 90%");
    let options = ["--launch", "env 'X=1 2'", "--a", "--cold", "--b", "-f y.wml"];
    let output = lab.command(&words).args(options).output().unwrap();
    let shown = any_verdict(&output);
    let before = shown.split_once("run 1 of 8").unwrap().0;
    assert!(before.contains("`--launch` starts each run with `env 'X=1 2'`"), "{shown}");
    assert!(before.contains("`--cold` evicts the file sets from the page cache before runs with `--cold`"), "{shown}");
    // `-f FILE` is the script of B.
    let result = |run: u64| fs::read_to_string(lab.path(&format!("r/runs/{run:04}.json"))).unwrap();
    for event in lab.events("r").iter().filter(|event| event["event"] == "started") {
        let result: Value = serde_json::from_str(&result(event["run"].as_u64().unwrap())).unwrap();
        let flowop = if event["arm"] == 0 { "r" } else { "other" };
        assert_eq!(result["runs"][0]["flowops"][0]["name"], flowop, "{event}");
    }
}

#[test]
fn default_folders_are_distinct_and_one_without_a_run_is_removed() {
    let lab = Lab::new();
    let folders = || {
        let entries = fs::read_dir(lab.path("wmlrun-results")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let words = format!("repeat {SHORT} --runs 1 --quiet");
    let shown = exits(
        &lab.command(&words).args(["--before", "echo 'no \u{1b}[31mdisk' >&2; exit 3; echo"]).output().unwrap(),
        1,
        "",
    );
    assert!(shown.contains("of run 1 failed: exit status: 3: no \\x1b[31mdisk"), "{shown}");
    assert!(shown.contains("was removed; `--results DIR` keeps") && !lab.path("wmlrun-results").exists(), "{shown}");
    // Files and directories of the user are kept.
    fs::create_dir(lab.path("wmlrun-results")).unwrap();
    exits(&lab.command(&words).args(["--before", "exit 3"]).output().unwrap(), 1, "a directory of the user");
    assert!(lab.path("wmlrun-results").exists() && folders().is_empty(), "{:?}", folders());
    let add = ["--before", "for d in wmlrun-results/*; do touch $d/mine; done; exit 3"];
    exits(&lab.command(&words).args(add).output().unwrap(), 1, "a file of the user");
    let kept = lab.path("wmlrun-results").join(folders().first().unwrap());
    assert!(kept.join("mine").exists(), "{}", kept.display());
    fs::remove_dir_all(kept).unwrap();
    // All are started within a second or two.
    let children: Vec<_> = (0..4).map(|_| lab.command(&words).spawn().unwrap()).collect();
    for child in children {
        exits(&child.wait_with_output().unwrap(), 0, &words);
    }
    assert_eq!(folders().len(), 4, "{:?}", folders());
    assert!(folders().iter().any(|name| name.ends_with("Z-2")), "{:?}", folders());
    // After a complete run the folder is kept.
    let output =
        lab.command(&words.replace("--runs 1", "--runs 2")).args(["--after", "test ! -e log && echo > log"]).output();
    exits(&output.unwrap(), 1, "the second command fails");
    assert_eq!(folders().len(), 5, "{:?}", folders());
    // So is it after a measurement whose command failed.
    exits(&lab.command(&words).args(["--after", "exit 3"]).output().unwrap(), 1, "the command after the first run");
    assert_eq!(folders().len(), 6, "{:?}", folders());
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    let (lab, small) = (Lab::new(), Mount::new(Fs::Tmpfs, 128 << 10));
    let dir = small.dir().display();
    let output = lab.command(&format!("repeat {SHORT} --runs 12 --results {dir}/r")).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 3)), "{:?}: {shown}", output.status);
    assert!(shown.contains("error: ") && shown.contains("help:"), "{shown}");
    tool("mount", &["-o", "remount,size=32m", &dir.to_string()]);
    series(&lab.command(&format!("repeat --resume {dir}/r --quiet")).output().unwrap());
    let text = fs::read_to_string(small.dir().join("r/journal.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finished =
        events.iter().filter(|event| event["event"] == "finished").map(|event| event["run"].as_u64().unwrap());
    assert_eq!(finished.collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_folder_that_vanishes_is_an_error() {
    let lab = Lab::new();
    let output = lab
        .command(&format!("repeat {SHORT} --runs 3 --results r"))
        .args(["--after", "test -e r/runs/0002.json && rm -r r || true"])
        .output()
        .unwrap();
    let shown = exits(&output, 3, "a folder that vanishes");
    assert!(shown.contains("error: r/") && shown.contains("help:"), "{shown}");
}

/// A new version may be installed during an experiment.
#[test]
fn a_program_that_is_replaced_makes_its_runs() {
    let lab = Lab::below(&disk());
    let program = lab.path("program");
    if fs::hard_link(binary(), &program).is_err() {
        tool("cp", &[binary().to_str().unwrap(), program.to_str().unwrap()]);
    }
    let replace = "rm program; echo 'exit 9' > program; chmod +x program";
    let mut command = Command::new(&program);
    command.args(format!("repeat {SHORT} --runs 2 --results r --quiet").split(' ')).args(["--before", replace]);
    exits(&command.current_dir(lab.path("")).output().unwrap(), 0, replace);
    assert_eq!(lab.runs("r", "finished"), [1, 2]);
}

/// A program that can't be started, or that ends without a result, gives no point of the curve.
#[test]
fn runs_that_can_not_be_started_stop_a_sweep() {
    let lab = Lab::new();
    for (folder, launch, code, says) in [
        ("r", "no-such-program", 3, "can't start `no-such-program`"),
        ("s", "sh -c no-such-program", 3, "run 1 can't be started: exit status: 127: "),
        ("t", "false", 1, "run 1 failed: exit status: 1"),
    ] {
        let words = format!("sweep {SHORT} --vary n=1,2 --repeats 1 --results {folder}");
        let shown = exits(&lab.command(&words).args(["--launch", launch]).output().unwrap(), code, launch);
        assert!(shown.contains(says) && lab.runs(folder, "failed").is_empty(), "{launch}: {shown}");
        assert_eq!(lab.events(folder).last().unwrap()["event"], "stopped", "{launch}");
    }
}

#[test]
fn a_budget_ends_an_experiment_with_the_results_so_far() {
    let lab = Lab::new();
    let shown = lab.run(&format!("repeat {SHORT} --runs 100000 --budget 1 --results r"), 11);
    let done = lab.runs("r", "finished").len();
    assert!(
        shown.contains(&format!(" after {done} of 100000 runs")) && shown.contains("the budget ") && done >= 3,
        "{shown}"
    );
    assert_eq!(lab.events("r").last().unwrap()["event"], "ended");
    // The budget is also that of a continuation, unless this has one of its own.
    let again = lab.run("repeat --resume r", 11);
    assert!(again.contains(&format!("results folder r: {done} runs so far")), "{again}");
    assert!(again.contains("runs; `--budget` continues the experiment"), "{again}");
    assert_eq!(lab.runs("r", "finished").len(), done);
    let mail = |dir: &str| squeezed(&lab.run(&format!("report {dir} --format mail"), 0));
    let said = mail("r");
    assert!(said.contains(&format!(" after {done} runs, ended by `--budget 1s`: ")), "{said}");
    lab.run("repeat --resume r --budget 4", 11);
    let said = mail("r");
    assert!(said.contains(" runs, ended by its budget: "), "{said}");
    assert!(lab.runs("r", "finished").len() > done);
    // A comparison ends with a whole block, and has two at least.
    let words = format!("ab {SHORT} --blocks 1000 --budget 1 --results s --quiet --format json");
    let output = lab.command(&words).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let words = format!("ab {SHORT} --blocks 1000 --budget 2 --results t --tolerance 90%");
    let shown = any_verdict(&lab.command(&words).output().unwrap());
    // On a busy machine the fewest runs may be all that there are.
    let (fit, fewest) = (" fit into the budget", " of 8 (");
    let says = if lab.runs("t", "finished").len() > 8 { shown.contains(fit) } else { shown.contains(fewest) };
    assert!(says && shown.contains("run 1 of 4000 ("), "{shown}");
    assert!(shown.contains("note: A and B have the same options: this is a comparison of equal arms"), "{shown}");
    assert!(shown.contains("no options of its own"), "{shown}");
    // The fewest runs may take longer than the budget.
    let said = mail("s");
    let by = [" of each, interleaved, ended by `--budget 1s`.", " of each, interleaved, ended by its budget."];
    assert!(by.iter().any(|by| said.contains(by)), "{said}");
    let runs = lab.runs("s", "finished").len();
    assert!(runs >= 8 && runs.is_multiple_of(4) && found["a"]["n"] == runs / 2, "{runs}");
}

#[test]
fn a_noise_floor_is_stored_and_reported() {
    let lab = Lab::new();
    let state = lab.path("state");
    let call = |words: &str, code| {
        let output = lab.command(words).env("XDG_STATE_HOME", &state).output().unwrap();
        exits(&output, code, words);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    fs::write(lab.path("x.wml"), paced()).unwrap();
    fs::create_dir(lab.path("d")).unwrap();
    // Runs of a busy machine may have too wide an interval for a floor: it is then not stored. What is kept and quoted
    // counts here.
    let floor = |results: &str, format: &str| {
        for _ in 0..20 {
            let _ = fs::remove_dir_all(lab.path(results));
            let words = format!("floor d {PACED} --quiet --blocks 4 --results {results} --format {format}");
            let output = lab.command(&words).env("XDG_STATE_HOME", &state).output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.code() == Some(0) {
                return shown;
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(11) && errors.contains("too wide for a noise floor"), "{errors}");
        }
        panic!("each of 20 sessions had too wide an interval")
    };
    for sessions in 1..=2 {
        let found: Value = serde_json::from_str(&floor(&format!("f{sessions}"), "json")).unwrap();
        valid(&found);
        assert_eq!(found["floor"]["sessions"], sessions);
    }
    let kept: Value = serde_json::from_str(&fs::read_to_string(state.join("wmlrun/floors.json")).unwrap()).unwrap();
    assert_eq!(kept["sessions"].as_array().unwrap().len(), 2);
    // A session that is repeated replaces itself; a comparison of different arms is no session.
    let found: Value = serde_json::from_str(&call("floor --resume f1 --format json --quiet", 0)).unwrap();
    assert_eq!(found["floor"]["sessions"], 2);
    let words = format!("ab {PACED} --quiet --blocks 2 --results g --tolerance 90%");
    any_verdict(&lab.command(&words).args(["--b", "--set n=2"]).output().unwrap());
    call("floor --resume g --quiet", 2);
    let compare =
        lab.command("compare f1 f2 --tolerance 90% --format json").env("XDG_STATE_HOME", &state).output().unwrap();
    any_verdict(&compare);
    let found: Value = serde_json::from_slice(&compare.stdout).unwrap();
    assert_eq!((&found["floor"]["sessions"], &found["interleaved"]), (&2.into(), &false.into()));
    let text = floor("f4", "text");
    assert!(text.lines().last().unwrap().starts_with("noise floor ± "), "{text}");
    let listed = call("floor --list", 0);
    let line: Vec<&str> = listed.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((line[0], line[1], line[2]), ("1", "x.wml", "ops"), "{listed}");
    call("floor --forget 2", 2);
    assert!(call("floor --forget 1", 0).starts_with("removed: `ops` of x.wml, 3 sessions"));
    assert!(call("floor --list", 0).starts_with("no noise floor is stored in "));
    fs::write(state.join("wmlrun/floors.json"), "{").unwrap();
    call(&format!("floor d {PACED} --quiet --blocks 4 --results f3"), 3);
    assert!(!lab.path("f3").exists(), "a damaged file is found before the runs");
}

/// The number of runs of each cell is that of the file, then that of each extension, and no run is made again.
#[test]
fn a_complete_experiment_gets_further_runs() {
    let lab = Lab::new();
    let file = "script = \"x\"\nrepeats = 2\n[[factor]]\nname = \"n\"\nlevels = [1, 2, 3]\n";
    fs::write(lab.path("s.toml"), file).unwrap();
    let short = "--engine null --no-quiesce --runtime 60 --set reads=100 --quiet";
    let runs = |words: &str| {
        let text = lab.run(&format!("experiment {words} --format json"), 0);
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["state"], "complete");
        found["cells"].as_array().unwrap().iter().map(|cell| cell["runs"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&format!("s.toml {short} --repeats 1 --results r")), [1; 3]);
    let first = fs::read(lab.path("r/runs/0001.json")).unwrap();
    assert_eq!(runs("--resume r --repeats 3 --quiet"), [3; 3]);
    assert_eq!(runs("--resume r --quiet"), [3; 3]);
    assert_eq!(fs::read(lab.path("r/runs/0001.json")).unwrap(), first);
    let text = lab.run("report r --format text", 0);
    assert!(text.contains("\ncomplete: ") && text.contains("9 runs in 3 cells."), "{text}");
    let text = lab.run("experiment --resume r --repeats 2 --quiet", 3);
    assert!(text.contains("it has 3 runs of a cell already"), "{text}");
    fs::write(lab.path("o.toml"), format!("order = \"in-order\"\n{file}")).unwrap();
    lab.run(&format!("experiment o.toml {short} --results o"), 0);
    let text = lab.run("experiment --resume o --repeats 3 --quiet", 3);
    assert!(text.contains("so that none can be added"), "{text}");
    lab.run(&format!("sweep x.wml --vary n=1,2 {short} --repeats 1 --results w"), 0);
    let text = lab.run("sweep --resume w --repeats 2 --quiet --format json", 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["points"][0]["runs"], &found["points"][1]["runs"]), (&2.into(), &2.into()));
}

/// The script alone names the directory, which does not exist before the first run.
#[test]
fn the_mounts_of_the_file_sets_are_recorded_and_compared() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    let (lab, mount) = (Lab::new(), Mount::new(Fs::Tmpfs, 64 << 20));
    let dir = mount.dir().display().to_string();
    fs::write(lab.path("own.wml"), format!("set $dir={dir}/sub/deep\n{SCRIPT}")).unwrap();
    let words = "repeat own.wml --mkdir --no-quiesce --runtime 60 --set reads=2000 --runs 2 --quiet";
    for (folder, after) in [("r", "test -e go"), ("s", "")] {
        let _ = fs::remove_file(lab.path("go"));
        let mut command = lab.command(&format!("{words} --results {folder}"));
        match after {
            // Without commands between runs, its launcher ends the second run.
            "" => command.args(["--launch", "sh -c 'test -e one && exit 1; touch one; exec \"$@\"' sh"]),
            _ => command.args(["--after", after]),
        };
        exits(&command.output().unwrap(), 1, folder);
        let events = lab.events(folder);
        let started = events.iter().find(|event| event["event"] == "started").unwrap();
        let mounts = started["mounts"].as_array().unwrap();
        assert!(mounts.len() == 1 && mounts[0].as_str().unwrap().starts_with(&format!("{dir}: ")), "{started}");
        fs::write(lab.path("go"), "").unwrap();
        let _ = fs::remove_file(lab.path("one"));
        tool("mount", &["-o", "remount,size=48m", &dir]);
        let shown = lab.run(&format!("repeat --resume {folder} --quiet"), 3);
        assert!(shown.contains("changed since the experiment was started: a mount"), "{shown}");
        tool("mount", &["-o", "remount,size=64m", &dir]);
        lab.run(&format!("repeat --resume {folder} --quiet"), 0);
        assert_eq!(lab.runs(folder, "finished"), [1, 2]);
    }
}

#[test]
fn a_mount_option_is_compared() {
    needs!(mounts::available(&[Fs::Ext4]));
    let (lab, mount) = (Lab::new(), Mount::new(Fs::Ext4, 256 << 20));
    let dir = mount.dir().display();
    let device = mount.device().unwrap();
    let mount_with = |option: &str| format!("mount -o {option} {device} {dir}");
    let words = format!(
        "ab varmail --dir {dir}/test --mkdir --set nfiles=50 --runtime 0.2 --blocks 2 --results r --format json"
    );
    let output = lab
        .command(&words)
        .args(["--before", &format!("umount {dir} || true")])
        .args(["--before-a", &mount_with("relatime"), "--before-b", &mount_with("noatime")])
        .args(["--after-b", "test -e go"])
        .output()
        .unwrap();
    // The experiment is resumed although its own commands have changed the mount.
    exits(&output, 1, "the command after the first run of B fails");
    fs::write(lab.path("go"), "").unwrap();
    let output = lab.command("ab --resume r --format json").output().unwrap();
    // Two blocks of so short runs are enough for no verdict in particular.
    let code = output.status.code().unwrap();
    assert!([0, 10, 11, 12].contains(&code), "{code}: {}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    valid(&found);
    let options = found["differs"].as_array().unwrap().iter().find(|d| d["what"] == "mount options").unwrap();
    assert!(options["a"].as_str().unwrap().contains("relatime"), "{options}");
    assert!(options["b"].as_str().unwrap().contains("noatime") && options["kind"] == "setting", "{options}");
    let name = found["b"]["name"].as_str().unwrap();
    assert!(name.starts_with(&format!("after `mount -o noatime {device}")), "the side has no options: {name}");
}

/// An experiment keeps its options as text, and its folder may have any name.
#[test]
fn a_path_that_is_not_utf8_is_refused() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt as _;
    let odd = OsStr::from_bytes(b"d\xe9");
    let small =
        ["--runs", "2", "--engine", "null", "--runtime", "0.3", "--no-quiesce", "--quiet", "--set", "filesize=1m"];
    let repeat = || Wml::new().args(["repeat", "randomread"]).args(small);
    for (option, text) in [("--allow-write", "`--allow-write` is not UTF-8"), ("--require-mount", "it is not UTF-8")] {
        let mut word = OsString::from(format!("{option}="));
        word.push(odd);
        let output = repeat().args([OsString::from("--results=r"), word]).run().exits(2);
        assert!(output.stderr.contains(text), "{}", output.stderr);
        assert!(output.left().is_empty(), "{:?}", output.left());
    }
    let mut word = OsString::from("--results=");
    word.push(odd);
    let output = repeat().args([word]).run().exits(0);
    let left: Vec<OsString> = fs::read_dir(output.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [odd]);
    assert!(output.dir().join(odd).join("runs/0002.json").is_file());
}
