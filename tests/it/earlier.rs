//! Tests that results, results folders and journals that an earlier program has written are read, reported, compared and
//! resumed, and that its JSON has changed only where a defect was mended.
//!
//! `tests/fixtures/earlier` has them. They were made in `/srv/bench`, which the folders remember: each call finds its copy
//! there, in a mount namespace of its own.

use crate::cmd::{binary, scratch, skip, tool};
use crate::experiments::exits;
use crate::hold::{Hold, Share};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

/// Options with which a folder of another program, machine and user is resumed.
const RESUME: &str = "--anyway --allow-system";

/// The folders that were killed, with the least and the largest number of their runs.
const KILLED: [(&str, &str, u64, u64); 6] = [
    ("repeat", "repeat", 3, 5),
    ("ab", "ab", 8, 8),
    ("ab", "ab-pilot", 8, 240),
    ("ab", "ab-until-clear", 8, 96),
    ("sweep", "sweep", 4, 4),
    ("experiment", "experiment", 8, 8),
];

/// Outputs of which the status has changed, with the reason: other programs disturbed the runs, and a verdict that does not
/// hold without the disturbed runs is `unclear`.
const STATUSES: [(&str, i32); 1] = [("compare-folders", 11)];

/// The document whose runs the program refuses, and the message: `prealloc=80` creates other numbers of files now.
const REFUSED: (&str, &str) =
    ("sweep-closed", "run 1 was made by an earlier version, which preallocated other numbers");

/// The keys of documents that have other values now. The test of `ab` was a t-test on blocks and is a signed-rank test, that
/// of `compare` allows for a trend, the control's interval is one of pairs, and notes name all of this.
const CHANGED: [(&str, &[&str]); 8] = [
    ("compare", &["notes"]),
    // A change after the last run is no note.
    ("sweep", &["notes"]),
    ("report-sweep", &["notes"]),
    ("ab-clear", &["control", "could_have_seen", "notes", "others", "ratio", "test"]),
    ("report-ab-clear", &["control", "could_have_seen", "notes", "others", "ratio", "test"]),
    ("compare-arms", &["control", "could_have_seen", "notes", "others", "ratio", "test"]),
    ("ab-unclear", &["control", "could_have_seen"]),
    ("compare-folders", &["could_have_seen", "notes", "others", "ratio", "runs_needed", "test", "verdict"]),
];

/// How a program is put into a mount namespace: as root, or as a user who is root in it.
static NAMESPACE: LazyLock<Option<Vec<&str>>> = LazyLock::new(|| {
    let ways = [vec!["--mount"], vec!["--mount", "--map-root-user"]];
    let works = |way: &Vec<&str>| {
        let mut call = Command::new("unshare");
        call.args(way).args(["mount", "-t", "tmpfs", "none", "/srv"]).stderr(Stdio::null());
        call.status().is_ok_and(|status| status.success())
    };
    ways.into_iter().find(works)
});

fn available() -> bool {
    if NAMESPACE.is_none() {
        skip("it needs root, or a user namespace, for `unshare --mount`");
    }
    NAMESPACE.is_some()
}

/// A copy of what the earlier program has written.
struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(scratch()).unwrap();
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/earlier/made.tar.gz");
        // As the user who runs the test, like every file of that user.
        let words = ["--no-same-owner", "-xzf", archive.to_str().unwrap(), "-C", dir.path().to_str().unwrap()];
        tool("tar", &words);
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn json(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.path(name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Runs the program in `/srv/bench`, which is this copy.
    fn run(&self, words: &str) -> Output {
        let _hold = Hold::take(Share::Place);
        let enter = "mount -t tmpfs none /srv && mkdir /srv/bench && mount --bind \"$0\" /srv/bench && \
            cd /srv/bench && exec \"$@\"";
        let mut call = Command::new("unshare");
        call.args(NAMESPACE.as_ref().unwrap()).args(["sh", "-c", enter]).arg(self.0.path()).arg(binary());
        call.args(words.split_whitespace()).env("NO_COLOR", "1").env("HOME", "/srv/bench");
        call.env("XDG_STATE_HOME", "/srv/bench/state").stdin(Stdio::null()).output().unwrap()
    }

    #[track_caller]
    fn exits(&self, words: &str, code: i32) -> String {
        exits(&self.run(words), code, words)
    }

    /// Each file of a directory with its bytes.
    fn files(&self, dir: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.path(dir)).unwrap().map(|entry| entry.unwrap());
        entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
    }

    /// The numbers of the runs of one kind of event, in their order.
    fn runs(&self, folder: &str, event: &str) -> Vec<u64> {
        let text = fs::read_to_string(self.path(folder).join("journal.jsonl")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|e| e["event"] == event).map(|e| e["run"].as_u64().unwrap_or(0)).collect()
    }
}

/// What has changed from one document to another.
#[derive(Default)]
struct Changes {
    /// The lower ends of intervals that were negative and are cut at zero.
    cut: usize,
    /// The paths of all other changes. A new key is none.
    others: BTreeSet<String>,
}

impl Changes {
    fn find(&mut self, then: &Value, now: &Value, path: &str) {
        match (then, now) {
            (Value::Object(then), Value::Object(now)) => {
                for (key, value) in then {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match now.get(key) {
                        Some(now) => self.find(value, now, &path),
                        None => drop(self.others.insert(path)),
                    }
                }
            }
            // A resumed folder has notes on what has changed since then.
            (Value::Array(then), Value::Array(now)) if path == "notes" => {
                if !then.iter().all(|note| now.contains(note)) {
                    self.others.insert(path.to_owned());
                }
            }
            (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
                then.iter()
                    .zip(now)
                    .enumerate()
                    .for_each(|(n, (then, now))| self.find(then, now, &format!("{path}.{n}")));
            }
            _ => self.compare(then, now, path),
        }
    }

    /// Compares two single values. The last digits of a figure depend on the order in which it is summed up.
    fn compare(&mut self, then: &Value, now: &Value, path: &str) {
        match (then.as_f64(), now.as_f64()) {
            (Some(then), Some(0.0)) if then < 0.0 && path.rsplit('.').next() == Some("low") => self.cut += 1,
            (Some(then), Some(now)) if (then - now).abs() <= 1e-9 * then.abs().max(now.abs()) => {}
            _ if then == now => {}
            _ => drop(self.others.insert(path.to_owned())),
        }
    }
}

/// The first part of each path.
fn keys(paths: &BTreeSet<String>) -> Vec<&str> {
    let keys: BTreeSet<&str> = paths.iter().map(|path| path.split('.').next().unwrap()).collect();
    keys.into_iter().collect()
}

/// Each output: reports of results and folders, comparisons, and complete folders that are resumed, without a new run.
#[test]
fn the_json_of_all_commands_has_changed_only_where_it_was_mended() {
    needs!(available());
    let bench = Bench::new();
    let commands = fs::read_to_string(bench.path("outputs/commands")).unwrap();
    assert_eq!(commands.lines().count(), 28);
    let (mut cut, mut refused) = (0, 0);
    for line in commands.lines() {
        let [status, name, words] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let words = format!("{words} --format json");
        if name == REFUSED.0 {
            assert!(bench.exits(&words, 3).contains(REFUSED.1));
            refused += 1;
            continue;
        }
        let folder = words.split_once("--resume ").map(|(_, rest)| rest.split(' ').next().unwrap());
        let runs = folder.map(|folder| (bench.files(&format!("{folder}/runs")), bench.runs(folder, "started")));
        let output = bench.run(&words);
        let status = STATUSES.iter().find(|row| row.0 == name).map_or(status.parse().unwrap(), |row| row.1);
        exits(&output, status, &words);
        let now: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut changes = Changes::default();
        changes.find(&bench.json(&format!("outputs/{name}.json")), &now, "");
        let wanted = CHANGED.iter().find(|row| row.0 == name).map_or(&[][..], |row| row.1);
        assert_eq!(keys(&changes.others), wanted, "{name}: {:#?}\n{now:#}", changes.others);
        cut += changes.cut;
        if let (Some(folder), Some(before)) = (folder, runs) {
            let after = (bench.files(&format!("{folder}/runs")), bench.runs(folder, "started"));
            assert!(before == after, "{name}: runs were made again");
        }
    }
    assert!(cut >= 4 && refused == 1, "{cut} intervals are cut at zero, {refused} folders refused");
}

#[test]
fn killed_folders_are_resumed_to_their_end() {
    needs!(available());
    let bench = Bench::new();
    for (command, name, least, most) in KILLED {
        let folder = format!("killed/{name}");
        let resume = format!("{command} --resume {folder} --quiet --format json");
        let refused = bench.exits(&resume, 3);
        assert!(refused.contains("--allow-system") || refused.contains("--anyway"), "{refused}");
        let (made, finished) = (bench.files(&format!("{folder}/runs")), bench.runs(&folder, "finished"));
        assert!(!finished.is_empty() && (finished.len() as u64) < least, "{name}: {finished:?}");
        let output = bench.run(&format!("{resume} {RESUME}"));
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 10 | 11 | 12)), "{name}: {}\n{shown}", output.status);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let schema = document["schema"].as_str().unwrap();
        assert!(schema.starts_with("wmlrun."), "{name}: {schema}");
        let all = bench.runs(&folder, "finished");
        assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "{name}: each run has finished once");
        assert!((least..=most).contains(&(all.len() as u64)), "{name}: {all:?}");
        assert_eq!(bench.runs(&folder, "ended").len(), 1, "{name}");
        let now = bench.files(&format!("{folder}/runs"));
        for run in finished.iter().map(|run| format!("{run:04}.json")) {
            assert_eq!(now.get(&run), made.get(&run), "{name}: {run} was made before");
        }
        bench.exits(&format!("report {folder} --format text"), 0);
    }
}

#[test]
fn floors_tables_batches_and_pages_are_read() {
    needs!(available());
    let bench = Bench::new();
    let then = fs::read_to_string(bench.path("outputs/floors.text")).unwrap();
    let now = bench.exits("floor --list", 0);
    let floor = |text: &str| text.lines().nth(1).unwrap().to_owned();
    assert!(floor(&then).contains("x.wml") && floor(&then) == floor(&now), "{then}{now}");

    let before = fs::read_to_string(bench.path("results/table.csv")).unwrap();
    let run = "run x.wml --engine null --no-quiesce --runtime 60 --set reads=50 --quiet --format none";
    bench.exits(&format!("{run} --append results/table.csv"), 0);
    let after = fs::read_to_string(bench.path("results/table.csv")).unwrap();
    assert!(after.starts_with(&before) && after.lines().count() == before.lines().count() + 1, "{after}");

    let table = bench.exits("report folders/batch --format markdown-runs", 0);
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| mail |") || line.starts_with("| stat |")).collect();
    assert_eq!(rows.len(), 2, "{table}");
    let wins = bench.exits("wins folders/batch folders/batch --format json", 0);
    let wins: Value = serde_json::from_str(wins.split_inclusive("\n}\n").next().unwrap()).unwrap();
    assert_eq!(wins["tests"].as_array().unwrap().len(), 2, "{wins:#}");

    for name in ["results/closed.json", "results/batch.json", "folders/ab-clear", "folders/sweep", "folders/experiment"]
    {
        bench.exits(&format!("report {name} -o page.html"), 0);
        assert!(fs::read_to_string(bench.path("page.html")).unwrap().ends_with("</html>\n"), "{name}");
        fs::remove_file(bench.path("page.html")).unwrap();
    }
}
