//! Tests the verdicts of comparisons as a script sees them: the exit statuses, the digits of the published study, a
//! machine that changes between A and B, and noise floors.

use crate::cmd::{binary, scratch};
use crate::experiments::{PACED, SCRIPT, SHORT, paced, valid};
use crate::hold::{Hold, Share};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A directory in which programs are started.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("verdict-").tempdir_in(scratch()).unwrap();
        fs::write(dir.path().join("x.wml"), SCRIPT).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn column(&self, name: &str, values: &[f64]) {
        let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
        fs::write(self.path(name), lines).unwrap();
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env("NO_COLOR", "1").env("XDG_STATE_HOME", self.path("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program with these words and `more`.
    fn wmlrun(&self, words: &str, more: &[&str]) -> Output {
        let _hold = Hold::take(Share::Place);
        self.command(binary()).args(words.split_whitespace()).args(more).output().unwrap()
    }

    /// Runs the program, which must end with `code`. Returns its output.
    #[track_caller]
    fn run(&self, words: &str, code: i32) -> String {
        let output = self.wmlrun(words, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words}\n{stdout}{stderr}");
        stdout
    }
}

/// Returns a sample of exactly this size, mean and variance.
fn sample(n: usize, mean: f64, variance: f64) -> Vec<f64> {
    let raw: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7).sin()).collect();
    let centre = raw.iter().sum::<f64>() / n as f64;
    let spread = raw.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1) as f64;
    raw.iter().map(|v| mean + (v - centre) * (variance / spread).sqrt()).collect()
}

/// The figures of the appendix, which R printed. The last variance was printed as 2964387; the decimals are those with
/// which the interval of the ratio has its printed digits.
#[test]
fn the_report_has_the_digits_of_the_study() {
    let place = Place::new();
    let (ratio, difference) = ("99 % interval of the ratio of variances", "99 % interval of A − B");
    for (a, b, lines) in [
        (
            sample(29, 1_954_108.0 / 29.0, 430_239.5),
            sample(29, 187_000.0 / 29.0, 71_895.06),
            [
                "means A 67383.03, B 6448.276".to_owned(),
                format!("F-test F 5.9843 on 28 and 28 df, p 9.541e-06, {ratio} [2.197153, 16.299048]"),
                format!("t-test Welch: t 463.08 on 37.104 df, p < 2.2e-16, {difference} [60577.50, 61292.02]"),
            ],
        ),
        (
            sample(10, 103_095.0, 10_686_403.0),
            sample(4, 90_163.75, 2_964_386.948),
            [
                "means A 103095, B 90163.75".to_owned(),
                format!("F-test F 3.6049 on 9 and 3 df, p 0.3192, {ratio} [0.08214975, 31.42436105]"),
                format!("t-test pooled: t 7.3868 on 12 df, p 8.423e-06, {difference} [7584.004, 18278.496]"),
            ],
        ),
    ] {
        place.column("a", &a);
        place.column("b", &b);
        let text = place.run("compare a:1 b:1 --method study", 10);
        let squeezed: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in lines {
            assert!(squeezed.contains(&line), "{line:?} in {text}");
        }
    }
}

/// Both do what the script asks for; what differs is how long a request takes.
#[test]
fn open_loops_are_compared_by_their_response_time() {
    let place = Place::new();
    let script = "# dialect: fsl\nset $wait=0\ndefine file name=f,path=$dir,size=1m,prealloc\ndefine process name=p {\n  \
        thread name=t,rate=200 {\n    flowop delay name=d,value=$wait\n    flowop read name=r,filename=f,iosize=4k\n  }\n}\n";
    fs::write(place.path("o.wml"), script).unwrap();
    let ab = "ab o.wml --dir . --engine null --no-quiesce --runtime 0.2 --blocks 6 --b --set=wait=0.002";
    let answer = place.wmlrun(ab, &["--format", "mail"]);
    let text = String::from_utf8_lossy(&answer.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Medians of `response.mean`: A ") && text.contains("worse: "), "{text}");
    assert_eq!(answer.status.code(), Some(10));
    // Who names a metric gets it.
    let named: Value =
        serde_json::from_slice(&place.wmlrun(ab, &["--metric", "ops", "--format", "json"]).stdout).unwrap();
    assert_eq!(named["metric"], "ops");
}

/// The shell script of docs/compare.md, as a job of a continuous integration would run it.
const JOB: &str = "\"$@\" > report\n\
    case $? in\n\
      0)  echo 'no loss' ;;\n\
      10) echo slower ;;\n\
      11) echo unclear ;;\n\
      12) echo invalid ;;\n\
      *)  echo \"failed: $?\" ;;\n\
    esac\n";

/// Sets the speeds of the negative control in the journal of a finished comparison.
fn set_controls(place: &Place, folder: &str, speeds: [f64; 2]) {
    let journal = place.path(folder).join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let mut arms = std::collections::BTreeMap::new();
    let line = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if let (Some(run), Some(arm)) = (event["run"].as_u64(), event["arm"].as_u64()) {
            arms.insert(run, arm as usize);
        }
        let run = event["run"].as_u64().unwrap_or(0);
        for (key, value) in event.as_object_mut().unwrap() {
            if key.starts_with("control") && value.is_number() {
                *value = (speeds[arms[&run]] * (1.0 + 0.001 * (run % 3) as f64)).into();
            }
        }
        format!("{event}\n")
    };
    fs::write(&journal, text.lines().map(line).collect::<String>()).unwrap();
}

#[test]
fn a_job_can_branch_on_every_verdict() {
    let place = Place::new();
    let job = |words: &str| {
        let output =
            place.command("sh").args(["-c", JOB, "sh"]).arg(binary()).args(words.split_whitespace()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let around = |mean: f64| (0..9).map(|i| mean * (1.0 + 0.002 * (f64::from(i) * 2.3).sin())).collect::<Vec<_>>();
    place.column("a", &around(100.0));
    for (mean, words, says) in [
        (101.0, "", "no loss\n"),
        (90.0, "", "slower\n"),
        (100.0, "--tolerance 0.1%", "unclear\n"),
        (101.0, "--tolerance 300%", "failed: 2\n"),
    ] {
        place.column("b", &around(mean));
        assert_eq!(job(&format!("compare a:1 b:1 {words}")), says, "{mean} {words}");
    }
    let output = place.wmlrun(&format!("ab {SHORT} --quiet --blocks 2 --results r"), &[]);
    assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{output:?}");
    set_controls(&place, "r", [100.0, 50.0]);
    assert_eq!(job("ab --resume r --quiet"), "invalid\n");
    let text = fs::read_to_string(place.path("report")).unwrap();
    assert!(text.contains("\ninvalid: the machine was disturbed: its processors were "), "{text}");
    set_controls(&place, "r", [100.0, 100.0]);
    assert_ne!(job("ab --resume r --quiet"), "invalid\n");
}

/// The runs of two folders, of which B has half of the rate of A.
#[test]
fn a_difference_of_two_folders_that_the_control_explains_is_invalid() {
    let place = Place::new();
    fs::write(place.path("x.wml"), paced()).unwrap();
    let paced = format!("{} --metric ops", PACED.replace(" --no-quiesce", ""));
    place.run(&format!("repeat {paced} --quiet --runs 6 --results a --set n=2"), 0);
    place.run(&format!("repeat {paced} --quiet --runs 6 --results b --set n=1"), 0);
    place.run(&format!("repeat {PACED} --metric ops --quiet --runs 6 --results none --set n=1"), 0);
    let compare = |b: &str, control: f64, code: i32| {
        set_controls(&place, "a", [100.0; 2]);
        set_controls(&place, b, [control; 2]);
        let found: Value = serde_json::from_str(&place.run(&format!("compare a {b} --format json"), code)).unwrap();
        valid(&found);
        found["control"]["ratio"]["value"].as_f64()
    };
    let is = |found: Option<f64>, ratio: f64| assert!((found.unwrap() - ratio).abs() < 1e-6, "{found:?}");
    is(compare("b", 60.0, 12), 0.6);
    is(compare("b", 90.0, 10), 0.9);
    is(compare("b", 100.0, 10), 1.0);
    is(compare("b", 160.0, 10), 1.6);
    // Without a control, runs that other programs disturbed have no verdict.
    set_controls(&place, "none", [60.0; 2]);
    let output = place.wmlrun("compare a none --format json", &[]);
    assert!(matches!(output.status.code(), Some(10 | 11)), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["control"], Value::Null);
}

/// Processes that need all processors run only while B is measured. The workload is the same.
#[test]
fn a_machine_that_is_busy_only_during_b_makes_the_comparison_invalid() {
    let place = Place::new();
    // Other tests would slow A down as well.
    let _alone = Hold::take(Share::Alone);
    let busy =
        "i=0; while [ $i -lt $((8 * $(nproc))) ]; do (while :; do :; done) & echo $! >> pids; i=$((i + 1)); done";
    let idle = "kill $(cat pids); rm pids";
    let verdict = |blocks: u32, more: &[&str]| {
        let words = format!("ab {SHORT} --quiet --blocks {blocks} --format json --tolerance 20%");
        let output = place.wmlrun(&words, more);
        // Even a test that fails leaves no process.
        let _ = place.command("sh").args(["-c", "[ ! -e pids ] || kill $(cat pids)"]).status();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        valid(&found);
        (output.status.code().unwrap(), found)
    };
    // The level of the control is one in a thousand, and a machine that is busy during A too may hide the change.
    let attempt = |name: &str| verdict(5, &["--results", name, "--before-b", busy, "--after-b", idle]);
    let first = attempt("busy-1");
    let (code, found) = if first.0 == 12 { first } else { attempt("busy-2") };
    assert_eq!((code, &found["verdict"]), (12, &"invalid".into()), "{found:#}");
    assert!(found["control"]["ratio"]["value"].as_f64().unwrap() < 0.8, "{}", found["control"]);
    let (code, found) = verdict(2, &["--results", "idle"]);
    assert!(code != 12 && found["control"]["moved"] == false, "{}", found["control"]);
}

#[test]
fn a_metric_that_is_0_ends_a_comparison_at_once() {
    let place = Place::new();
    // Other tests would change the control of so few runs.
    let _alone = Hold::take(Share::Alone);
    let script =
        SCRIPT.replace("flowop read name=r,filesetname=data,iosize=4k", "flowop statfile name=r,filesetname=data");
    fs::write(place.path("x.wml"), script).unwrap();
    let text = place.run(&format!("ab {SHORT} --quiet --metric mib --results r"), 11);
    assert!(text.contains("note: `mib` is not above 0 in a run of A: there is no ratio"), "{text}");
    assert!(!text.contains("too few runs for an interval") && !text.contains("more runs"), "{text}");
    assert!(place.path("r/runs/0004.json").exists() && !place.path("r/runs/0005.json").exists());
}

/// Results of two numbers of threads: each has its own floor, and the larger one counts.
#[test]
fn sides_with_different_conditions_have_the_larger_of_their_floors() {
    let place = Place::new();
    fs::write(place.path("x.wml"), paced()).unwrap();
    fs::create_dir(place.path("d")).unwrap();
    let floor = |n: u32| {
        // Runs of a busy machine may have too wide an interval for a floor.
        for _ in 0..20 {
            let _ = fs::remove_dir_all(place.path(&format!("f{n}")));
            let words = format!("floor d {PACED} --quiet --set n={n} --blocks 4 --format json --results f{n}");
            let output = place.wmlrun(&words, &[]);
            if output.status.code() == Some(0) {
                return serde_json::from_slice::<Value>(&output.stdout).unwrap()["floor"].clone();
            }
            assert_eq!(output.status.code(), Some(11), "{}", String::from_utf8_lossy(&output.stderr));
        }
        panic!("each of 20 sessions had too wide an interval")
    };
    let (one, two) = (floor(1), floor(2));
    assert_eq!((&one["sessions"], &two["sessions"]), (&1.into(), &1.into()), "a floor depends on the variables");
    let compared = |b: &str| {
        let output = place.wmlrun(&format!("compare f1 {b} --format json"), &[]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["floor"].clone()
    };
    let share = |floor: &Value| floor["share"].as_f64().unwrap();
    assert!((share(&compared("f2")) - share(&one).max(share(&two))).abs() < 1e-12);
    let words = format!("repeat {PACED} --metric ops --quiet --set n=3 --runs 3 --results f3");
    place.run(&words, 0);
    assert_eq!(compared("f3"), Value::Null, "the floor of one side is unknown");
    let given = compared("f3 --noise-floor 5%");
    assert_eq!((share(&given), &given["sessions"]), (0.05, &0.into()));
    let output = place.wmlrun("compare f1 f3 --noise-floor 5%", &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("± 5.0 %, as given"), "{output:?}");
}

/// R gives F = 0 and p = 0 if the values of A are equal, F = Inf if those of B are, and then Welch's test.
#[test]
fn a_side_of_equal_values_has_the_tests_of_the_study() {
    let place = Place::new();
    place.column("equal", &[100.0; 9]);
    place.column("varying", &sample(9, 90.0, 4.0));
    let squeezed = |words: &str| {
        // The equal values may be rounded.
        let text = place.run(words, 11);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = squeezed("compare equal:1 varying:1 --method study");
    let f = "F-test F 0 on 8 and 8 df, p < 2.2e-16, 99 % interval of the ratio of variances [0, 0]";
    assert!(text.contains(f) && text.contains("t-test Welch: t 15 on 8 df, p 3.853e-07"), "{text}");
    let text = squeezed("compare varying:1 equal:1 --method study");
    assert!(text.contains("F infinite on 8 and 8 df, p < 2.2e-16: the values of B are equal"), "{text}");
    let found = place.run("compare varying:1 equal:1 --method study --format json", 11);
    let found: Value = serde_json::from_str(&found).unwrap();
    valid(&found);
    assert_eq!((&found["study"]["f"]["value"], &found["study"]["t"]["kind"]), (&Value::Null, &"welch".into()));
}

/// Twenty runs of a machine that becomes slower by 10 %, of which the first ten are one column and the rest the other.
#[test]
fn columns_of_a_machine_that_drifts_are_unclear() {
    let place = Place::new();
    let noise = |i: i32| 1.0 + 0.004 * (f64::from(i) * 2.3).sin();
    let of = |factor: &dyn Fn(i32) -> f64| -> Vec<f64> { (0..20).map(|i| 1000.0 * noise(i) * factor(i)).collect() };
    let drift = of(&|i| 1.1 - 0.1 * f64::from(i) / 19.0);
    place.column("a", &drift[..10]);
    place.column("b", &drift[10..]);
    let text = place.run("compare a:1 b:1", 11);
    let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed.contains("note: without a drift of the machine B/A would be 0.95"), "{text}");
    assert!(squeezed.contains("linear drift over all runs may explain it"), "{text}");
    let step = of(&|i| if i < 10 { 1.0 } else { 0.9 });
    place.column("a", &step[..10]);
    place.column("b", &step[10..]);
    let found: Value = serde_json::from_str(&place.run("compare a:1 b:1 --format json", 10)).unwrap();
    valid(&found);
    assert_eq!((&found["test"]["name"], &found["test"]["t"]), (&"ranks and trend".into(), &Value::Null));
}

/// Of forty runs two had half the rate.
#[test]
fn a_loss_is_found_although_some_runs_were_slow() {
    let place = Place::new();
    let value = |i: usize| 1000.0 * (1.0 + 0.03 * (i as f64 * 2.3).sin()) * if i % 20 == 7 { 0.5 } else { 1.0 };
    place.column("a", &(0..30).map(value).collect::<Vec<_>>());
    place.column("b", &(30..60).map(|i| 0.9 * value(i)).collect::<Vec<_>>());
    let text = place.run("compare a:1 b:1", 10);
    assert!(text.contains("Mann–Whitney test, and a robust fit with a trend: p"), "{text}");
}

/// A folder of an earlier version does not say which test gives its verdict.
#[test]
fn a_comparison_of_an_earlier_version_says_that_its_verdict_is_another() {
    let place = Place::new();
    let output = place.wmlrun(&format!("ab {SHORT} --quiet --blocks 3 --results r"), &[]);
    assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{output:?}");
    let note = "started by an earlier version, whose verdict was that of a t-test on blocks";
    let report = || {
        let output = place.wmlrun("report r --format text", &[]);
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = report();
    assert!(text.contains("signed-rank test of 6 pairs of runs: p ") && !text.contains(note), "{text}");
    let file = place.path("r/experiment.toml");
    let description = fs::read_to_string(&file).unwrap();
    assert!(description.contains("verdict = \"signed rank\"\n"), "{description}");
    fs::write(&file, description.replace("verdict = \"signed rank\"\n", "")).unwrap();
    let text = report();
    assert!(text.contains(note) && text.contains("signed-rank test of 6 pairs"), "{text}");
}
