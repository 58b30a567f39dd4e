//! Tests that an experiment which was killed, interrupted or lost a result is resumed: the same runs, none of them twice,
//! under the same conditions.
//!
//! `strace` kills the program at a chosen system call: after each event of the journal, and at each rename. Unit tests
//! of `experiment` enumerate the states of the folder without a program.

use crate::cmd::{has, short_or_long};
use crate::curves::OPEN;
use crate::experiments::{Lab, SCRIPT, SHORT, any_verdict, exits, series};
use crate::signals::wait_for;
use crate::strace;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Returns the arguments of `strace` that kill a program at the `n`th call of this kind. `strace` also follows the
/// program's threads and children if `follow` is set.
fn killed_at(call: &str, n: usize, follow: bool) -> Vec<String> {
    let words = format!("-qq -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={n}");
    words.split(' ').chain(follow.then_some("-f")).map(str::to_owned).collect()
}

/// Runs a command under `strace`, which kills it at the `n`th call. Returns whether it was killed.
pub(crate) fn run_killed(command: &Command, call: &str, n: usize) -> bool {
    let mut traced = Command::new("strace");
    traced.args(killed_at(call, n, false)).arg(command.get_program()).args(command.get_args());
    traced.current_dir(command.get_current_dir().unwrap()).env("NO_COLOR", "1");
    let output = traced.output().unwrap();
    !output.status.success() && std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9)
}

/// Every result of a folder is complete JSON, at any moment.
#[track_caller]
fn results_are_whole(folder: &Path, place: &str) {
    for entry in fs::read_dir(folder.join("runs")).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).unwrap();
            let found: Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{place}: {}: {e}", path.display()));
            assert_eq!(found["runs"][0]["state"], "complete", "{place}: {}", path.display());
        }
    }
}

/// The experiment is complete: each of its runs has finished once, and has a result.
#[track_caller]
pub(crate) fn is_complete(lab: &Lab, folder: &str, runs: u64, place: &str) {
    let events = lab.events(folder);
    assert_eq!(lab.runs(folder, "finished"), (1..=runs).collect::<Vec<_>>(), "{place}: {events:#?}");
    assert_eq!(events.last().unwrap()["event"], "ended", "{place}");
    results_are_whole(&lab.path(folder), place);
    for run in 1..=runs {
        assert!(lab.path(&format!("{folder}/runs/{run:04}.json")).exists(), "{place}: run {run}");
    }
}

/// Calls `test` with each number, with two threads.
pub(crate) fn in_parallel(numbers: &[usize], test: impl Fn(usize) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(n) = numbers.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    test(*n);
                }
            });
        }
    });
}

/// Kills repeats at the `n`th event of their journal, and resumes them. Returns whether there is such an event.
fn repeats_killed_at(n: usize) -> bool {
    let (lab, place) = (Lab::new(), format!("event {n}"));
    let mut command = lab.command(&format!("repeat {SHORT} --runs 3 --results r --quiet"));
    // Commands that fail if they are executed twice.
    command.args(["--before", "mkdir up", "--after", "rmdir up"]);
    let is_killed = run_killed(&command, "fdatasync", n);
    results_are_whole(&lab.path("r"), &place);
    if is_killed {
        assert_eq!(lab.events("r").len(), n, "{place}");
        lab.run("repeat --resume r --quiet", 0);
    }
    is_complete(&lab, "r", 3, &place);
    assert!(!lab.path("up").exists(), "{place}");
    is_killed
}

#[test]
fn repeats_are_resumed_after_a_kill_at_each_event() {
    needs!(strace::available());
    // Begun; before, started, after, finished of each of three runs, with the starts of the commands; ended.
    let all: Vec<usize> = (1..=20).collect();
    in_parallel(&all, |n| assert!(repeats_killed_at(n), "there are 20 events, not {n}"));
    assert!(!repeats_killed_at(21));
}

/// The search for the peak is the first stage of a sweep: what it has measured is not measured again, so that the values
/// are those that it leads to.
#[test]
fn the_search_for_the_peak_is_resumed_after_a_kill() {
    needs!(strace::available());
    for n in [2, 3, 4] {
        let (lab, place) = (Lab::new(), format!("event {n}"));
        fs::write(lab.path("open.wml"), OPEN).unwrap();
        let words = "sweep open.wml --vary rate=20%,40% --engine null --no-quiesce --runtime 0.1 --repeats 1";
        assert!(run_killed(&lab.command(&format!("{words} --results r --quiet")), "fdatasync", n), "{place}");
        let searched = || {
            let events = lab.events("r").into_iter().filter(|event| event["event"] == "searched");
            events.map(|event| ["value", "offered", "achieved"].map(|key| event[key].as_f64().unwrap())).collect()
        };
        let before: Vec<[f64; 3]> = searched();
        lab.run("sweep --resume r --quiet", 0);
        let after: Vec<[f64; 3]> = searched();
        assert!(!before.is_empty() && after.starts_with(&before), "{place}: {before:?} {after:?}");
        assert!(after.windows(2).all(|pair| pair[1][0] > 3.9 * pair[0][0]), "{place}: {after:?}");
        let [value, offered, achieved] = after[after.len() - 1];
        let peak = value * achieved / offered;
        let text = fs::read_to_string(lab.path("r/experiment.toml")).unwrap();
        let levels = [0.2, 0.4].map(|part| format!("\"{:.0}\"", peak * part));
        assert!(text.contains(&format!("levels = [{}]", levels.join(", "))), "{place}: {levels:?} {text}");
        is_complete(&lab, "r", 2, &place);
    }
}

#[test]
fn a_comparison_is_resumed_after_a_kill_at_each_event_of_a_block() {
    needs!(strace::available());
    let all: Vec<usize> = (1..=9).collect();
    in_parallel(short_or_long(&all[3..6], &all), |n| {
        let (lab, place) = (Lab::new(), format!("event {n}"));
        let words = format!("ab {SHORT} --blocks 2 --results r --quiet --tolerance 90% --metric r.ops");
        let mut command = lab.command(&words);
        command.args(["--b", "--set n=2"]);
        assert!(run_killed(&command, "fdatasync", n), "{place}");
        results_are_whole(&lab.path("r"), &place);
        any_verdict(&lab.command("ab --resume r --quiet").output().unwrap());
        is_complete(&lab, "r", 8, &place);
        let arms: std::collections::BTreeMap<u64, u64> = lab
            .events("r")
            .iter()
            .filter(|event| event["event"] == "started")
            .map(|event| (event["run"].as_u64().unwrap(), event["arm"].as_u64().unwrap()))
            .collect();
        let arms: Vec<u64> = arms.into_values().collect();
        assert!(arms.chunks(4).all(|four| four == [0, 1, 1, 0] || four == [1, 0, 0, 1]), "{place}: {arms:?}");
    });
}

/// The rename of the description, before the experiment has begun, and that of a run's result.
#[test]
fn an_experiment_is_usable_after_a_kill_at_each_rename() {
    needs!(strace::available());
    let rename = "/^rename";
    let lab = Lab::new();
    let words = format!("repeat {SHORT} --runs 2 --results r --quiet");
    assert!(run_killed(&lab.command(&words), rename, 1));
    assert!(!lab.path("r/experiment.toml").exists());
    lab.run(&words, 0);
    is_complete(&lab, "r", 2, "the description");

    // The first run is killed, the others are not.
    let lab = Lab::new();
    let words_of_strace = killed_at(rename, 1, true).join(" ");
    let script = format!("if test -e fired; then exec \"$@\"; fi; touch fired; exec strace {words_of_strace} \"$@\"\n");
    fs::write(lab.path("launch"), script).unwrap();
    let launch = ["--launch", "/bin/sh launch"];
    exits(&lab.command(&words).args(launch).output().unwrap(), 1, "a run that was killed");
    assert!(lab.path("fired").exists() && !lab.path("r/runs/0001.json").exists());
    lab.run("repeat --resume r --quiet", 0);
    is_complete(&lab, "r", 2, "a result");
}

/// Returns the next of a fixed sequence of numbers from 0 to 1.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn repeats_are_resumed_after_kills_at_random_moments() {
    let (moments, runs) = short_or_long((2, 3), (10, 10));
    let words = format!("repeat {SHORT} --runs {runs} --results r --quiet");
    let lab = Lab::new();
    let began = Instant::now();
    series(&lab.command(&words).output().unwrap());
    let whole = began.elapsed();
    let mut state = 17;
    for n in 0..moments {
        let lab = Lab::new();
        let after = whole.mul_f64(random(&mut state));
        let mut child = lab.command(&words).spawn().unwrap();
        std::thread::sleep(after);
        let _ = child.kill();
        let _ = child.wait();
        let place = format!("moment {n}, {after:?}");
        results_are_whole(&lab.path("r"), &place);
        match lab.path("r/experiment.toml").exists() {
            true => series(&lab.command("repeat --resume r --quiet").output().unwrap()),
            // It had not begun.
            false => series(&lab.command(&words).output().unwrap()),
        }
        is_complete(&lab, "r", runs, &place);
    }
}

#[test]
fn a_run_whose_result_is_lost_is_made_again() {
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs 4 --results r --quiet"), 0);
    let (first, last) =
        (fs::read(lab.path("r/runs/0001.json")).unwrap(), fs::read(lab.path("r/runs/0004.json")).unwrap());
    fs::write(lab.path("r/runs/0003.json"), "").unwrap();
    let shown = lab.run("repeat --resume r", 0);
    assert!(shown.contains("runs 3 to 4 are made again: ") && shown.contains("run 3 of 4"), "{shown}");
    assert!(shown.contains("the files are kept in r/dropped/1"), "{shown}");
    assert_eq!(fs::read(lab.path("r/dropped/1/0004.json")).unwrap(), last, "no result is removed");
    assert_eq!(lab.runs("r", "dropped"), [3]);
    assert_eq!(lab.runs("r", "finished"), [1, 2, 3, 4, 3, 4]);
    results_are_whole(&lab.path("r"), "after the loss");
    assert_eq!(fs::read(lab.path("r/runs/0001.json")).unwrap(), first);
    lab.run("repeat --resume r", 0);
    assert_eq!(lab.runs("r", "finished").len(), 6, "nothing more is made again");
}

#[test]
fn complete_repeats_get_further_runs() {
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs 2 --results r --quiet"), 0);
    let shown = lab.run("repeat --resume r --runs 4", 0);
    assert!(shown.contains("run 3 of 4"), "{shown}");
    assert_eq!(lab.runs("r", "finished"), [1, 2, 3, 4]);
    results_are_whole(&lab.path("r"), "after the extension");
    let shown = lab.run("repeat --resume r --runs 3", 3);
    assert!(shown.contains("it has 4 runs of a cell already"), "{shown}");
}

/// The result is on the disk after each run of a script. It is complete after the last one.
#[test]
fn a_result_that_lacks_a_run_of_its_script_is_not_used() {
    let lab = Lab::new();
    let script = format!("{SCRIPT}run 60\nsystem \"test -e go || {{ touch waits; sleep 300; }}\"\nrun 60\n");
    fs::write(lab.path("two.wml"), script).unwrap();
    let options = "--engine null --no-quiesce --set reads=20000 --allow-system";
    let words = format!("repeat two.wml {options} --runs 1 --metric seconds --results r --quiet");
    let mut child = lab.command(&words).spawn().unwrap();
    wait_for("the command between two runs", || lab.path("waits").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let result =
        || -> Value { serde_json::from_str(&fs::read_to_string(lab.path("r/runs/0001.json")).unwrap()).unwrap() };
    let runs = |result: &Value| result["runs"].as_array().unwrap().len();
    let first = result();
    assert_eq!((runs(&first), &first["complete"], &first["runs"][0]["state"]), (1, &false.into(), &"complete".into()));
    fs::write(lab.path("go"), "").unwrap();
    let shown = lab.run("repeat --resume r", 0);
    assert!(shown.contains("run 1 is made again: its script had not ended"), "{shown}");
    assert!(shown.contains("the files of an earlier attempt of run 1 are kept in r/dropped/1"), "{shown}");
    assert_eq!((runs(&result()), &result()["complete"]), (2, &true.into()));
    let kept = fs::read_to_string(lab.path("r/dropped/1/0001.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), first);
    is_complete(&lab, "r", 1, "two runs");
}

/// Starts repeats of two runs that a failing command has stopped after the first; with the file `go` they continue.
fn stopped(lab: &Lab, options: &[&str]) {
    let words = format!("repeat {SHORT} --runs 2 --results r --quiet");
    let output = lab.command(&words).args(["--after", "test -e go"]).args(options).output().unwrap();
    exits(&output, 1, "the command fails");
    fs::write(lab.path("go"), "").unwrap();
}

#[test]
fn options_that_would_change_the_experiment_are_refused() {
    let lab = Lab::new();
    stopped(&lab, &[]);
    let before = fs::read(lab.path("r/journal.jsonl")).unwrap();
    for (words, option) in [
        ("repeat --resume r --metric latency.p99", "--metric"),
        ("repeat --resume r --until-ci 1%", "--until-ci"),
        ("repeat --resume r --preset study", "--preset"),
        ("repeat --resume r --set n=7", "--set"),
        ("repeat --resume r --cold", "--cold"),
        ("repeat --resume r --runtime 3", "--runtime"),
        ("repeat --resume r --before evil", "--before"),
        ("repeat --resume r --launch env", "--launch"),
        ("repeat --resume r --results s", "--results"),
        ("repeat --resume r x.wml", "SCRIPT"),
        ("ab --resume r --tolerance 1%", "--tolerance"),
        ("ab --resume r --metric mib", "--metric"),
        ("ab --resume r --blocks 9", "--blocks"),
        ("ab --resume r --b --cold", "--b"),
        ("sweep --resume r --vary n=1", "--vary"),
        ("floor --resume r --metric mib", "--metric"),
    ] {
        let shown = lab.run(words, 2);
        assert!(shown.contains("cannot be used with") && shown.contains(option), "{words}: {shown}");
    }
    assert_eq!(fs::read(lab.path("r/journal.jsonl")).unwrap(), before);
    // These do not change the runs.
    lab.run("repeat --resume r --quiet --format json --budget 1h --command-timeout 5 --anyway", 0);
}

/// The text is found, read and checked when the experiment continues.
#[test]
fn what_a_script_loads_is_a_condition_of_the_experiment() {
    let lab = Lab::new();
    fs::rename(lab.path("x.wml"), lab.path("part.wml")).unwrap();
    fs::write(lab.path("x.wml"), "load part\nrun 1\n").unwrap();
    stopped(&lab, &[]);
    let text = fs::read_to_string(lab.path("part.wml")).unwrap();
    fs::write(lab.path("part.wml"), format!("{text}# changed\n")).unwrap();
    let shown = lab.run("repeat --resume r", 3);
    assert!(shown.contains("a script"), "{shown}");
    fs::write(lab.path("part.wml"), text).unwrap();
    lab.run("repeat --resume r", 0);
}

#[test]
fn an_experiment_continues_in_its_working_directory() {
    let lab = Lab::new();
    stopped(&lab, &["--before", "pwd >> places; sleep 0.3", "--command-timeout", "5m"]);
    fs::create_dir(lab.path("other")).unwrap();
    let toml = fs::read_to_string(lab.path("r/experiment.toml")).unwrap();
    assert!(toml.contains("command_timeout = 300.0"), "{toml}");
    // The timeout of the call is used instead of the recorded one.
    let mut command = lab.command("repeat --resume ../r --command-timeout 0.1");
    let shown = exits(&command.current_dir(lab.path("other")).output().unwrap(), 1, "a shorter timeout");
    assert!(shown.contains("ran for more than"), "{shown}");
    let output = lab.command("repeat --resume ../r").current_dir(lab.path("other")).output().unwrap();
    exits(&output, 0, "another directory");
    is_complete(&lab, "r", 2, "another directory");
    let places = fs::read_to_string(lab.path("places")).unwrap();
    let here = fs::canonicalize(lab.0.path()).unwrap();
    assert!(places.lines().all(|line| Path::new(line) == here), "{places}");
    assert_eq!(fs::read_dir(lab.path("other")).unwrap().count(), 0);
    // The script is named if it is missing, and nothing else is said to have changed.
    fs::rename(lab.path("x.wml"), lab.path("y.wml")).unwrap();
    let shown = lab.run("repeat --resume r", 3);
    assert!(shown.contains("no file or personality is named `x.wml`") && !shown.contains("changed"), "{shown}");
    fs::rename(lab.path("y.wml"), lab.path("x.wml")).unwrap();
    // A directory that was moved.
    let moved = fs::read_to_string(lab.path("r/experiment.toml")).unwrap().replace(here.to_str().unwrap(), "/gone");
    fs::write(lab.path("r/experiment.toml"), moved).unwrap();
    let shown = lab.run("repeat --resume r", 3);
    assert!(shown.contains("was started in /gone, which can't be entered") && shown.contains("--anyway"), "{shown}");
    lab.run("repeat --resume r --anyway", 0);
}

#[test]
fn a_folder_of_an_experiment_that_did_not_begin_is_used() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("k/runs")).unwrap();
    fs::create_dir_all(lab.path("k/hooks")).unwrap();
    fs::write(lab.path("k/journal.jsonl"), "").unwrap();
    lab.run("repeat --resume k", 3);
    lab.run(&format!("repeat {SHORT} --runs 1 --results k --quiet"), 0);
    is_complete(&lab, "k", 1, "a folder without an experiment");
}

/// The unit names the folder with all its characters, and asks for what is mounted below it.
#[test]
fn a_unit_of_systemd_continues_an_experiment() {
    let lab = Lab::new();
    fs::write(lab.path("x.wml"), SCRIPT).unwrap();
    let folder = "50% of $x \"y\"\\z";
    let mut made = lab.command("repeat x.wml --runs 2 --runtime 0.1 --engine null --no-quiesce --quiet --results");
    exits(&made.arg(folder).output().unwrap(), 0, "repeat");
    let unit = |words: &str, code: i32| {
        let output = lab.command("experiment").arg("--print-unit").arg(folder).args(words.split_whitespace()).output();
        exits(output.as_ref().unwrap(), code, words);
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let (text, allowed) = (unit("", 0), unit("--allow-system", 0));
    let here = lab.path("");
    let quoted = r#"50%% of $x \"y\"\\z""#;
    let needs = text.lines().find(|line| line.starts_with("RequiresMountsFor=")).unwrap();
    assert!(needs.starts_with(&format!("RequiresMountsFor=\"{}", here.display())) && needs.contains(quoted), "{text}");
    let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let resumed = format!("{} --quiet", quoted.replace('$', "$$"));
    assert!(start.contains("/wmlrun\" repeat --resume \"/") && start.ends_with(&resumed), "{start}");
    assert!(allowed.contains(" --allow-system --quiet\n") && !text.contains("--allow-system"), "{allowed}");
    unit("--set reads=1", 2);
    is_valid_unit(&lab, &text);
}

/// The text is a unit of which systemd accepts every line.
#[track_caller]
pub(crate) fn is_valid_unit(lab: &Lab, text: &str) {
    needs!(has("systemd-analyze"), "systemd-analyze is missing");
    let unit = lab.path("wmlrun-experiment.service");
    fs::write(&unit, text).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    fs::remove_file(unit).unwrap();
}
