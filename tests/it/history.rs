//! Tests `wmlrun history`: results become nights, each once, and the last night gets a verdict with what changed.

use crate::cmd::squeezed;
use crate::experiments::{Lab, SHORT, valid};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A run of a history, in the form of its files.
fn run(night: &str, test: &str, kernel: &str, ops: f64) -> String {
    let conditions = json!({"conditions": {"digest": kernel, "values": {"kernel": kernel, "tool": "1"}}});
    let id = format!("{night} {test}");
    let metrics = json!({"ops": ops, "latency.p99": 1e9 / ops});
    let run =
        json!({"id": id, "night": night, "test": test, "place": "/mnt/vol1", "conditions": kernel, "metrics": metrics});
    format!("{conditions}\n{}\n", json!({"run": run}))
}

/// Writes a history of two tests, of which `mail` does this share of its operations in the last nights.
pub(crate) fn write_history(dir: &Path, nights: usize, last: usize, share: f64) {
    let mut text = format!("{}\n", json!({"schema": "wmlrun.history-lines/1"}));
    for n in 0..nights {
        let noise = 1.0 + 0.02 * (n as f64 * 2.4).sin();
        let (factor, kernel) = if n + last >= nights { (share, "6.12") } else { (1.0, "6.11") };
        let night = format!("2026-{:02}-{:02}", 1 + n / 28, 1 + n % 28);
        text += &run(&night, "mail", kernel, 9000.0 * noise * factor);
        text += &run(&night, "web", kernel, 50_000.0 * (2.0 - noise));
    }
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("2026.jsonl"), text).unwrap();
}

#[test]
fn a_loss_is_suspect_and_then_worse_until_it_is_accepted() {
    let lab = Lab::new();
    let h = lab.path("h");
    write_history(&h, 30, 0, 1.0);
    let text = squeezed(&lab.run("history check h", 0));
    assert!(text.contains("same: no test of 2 is worse than before."), "{text}");
    write_history(&h, 31, 1, 0.7);
    let text = squeezed(&lab.run("history check h", 11));
    assert!(text.contains("suspect: 1 of 2 tests is suspect: a second night decides (`mail`)."), "{text}");
    write_history(&h, 33, 3, 0.7);
    let text = squeezed(&lab.run("history check h", 10));
    assert!(text.contains("worse since 2026-02-03"), "{text}");
    assert!(text.contains("mail 2026-02-03 kernel 6.11 6.12"), "{text}");
    let found: Value = serde_json::from_str(&lab.run("history check h --format json", 10)).unwrap();
    valid(&found);
    let mail = &found["tests"][0];
    assert_eq!((&mail["since"], &mail["changed"][0]["what"]), (&"2026-02-03".into(), &"kernel".into()));
    assert!((mail["change"].as_f64().unwrap() - 0.7).abs() < 0.02, "{mail:#}");
    // Less is better of a latency.
    let found: Value =
        serde_json::from_str(&lab.run("history check h --metric latency.p99 --format json", 10)).unwrap();
    assert!((found["tests"][0]["change"].as_f64().unwrap() - 1.0 / 0.7).abs() < 0.05, "{found:#}");
    let text = lab.run("history check h --format markdown", 10);
    assert!(text.starts_with("**ops, night of 2026-02-05** worse: "), "{text}");
    let text = squeezed(&lab.run("history show h mail", 0));
    assert!(
        text.contains("2026-02-03") && text.contains("kernel") && text.contains("worse since 2026-02-03, -"),
        "{text}"
    );
    // The rate of an open loop says nothing.
    let paced = fs::read_to_string(h.join("2026.jsonl")).unwrap().replace("latency.p99", "response.mean");
    fs::create_dir_all(lab.path("paced")).unwrap();
    fs::write(lab.path("paced/2026.jsonl"), paced).unwrap();
    let output = lab.command("history check paced").output().unwrap();
    let said = squeezed(&String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("note: scripts set the rate of `mail`, `web`: see `--metric response.mean`"), "{said}");
    // Its own files are no place for a picture.
    let lines = fs::read_to_string(h.join("2026.jsonl")).unwrap();
    lab.run("history plot h -o h/2026.jsonl --force", 3);
    assert_eq!(fs::read_to_string(h.join("2026.jsonl")).unwrap(), lines);
    // A test that never had the metric is not missing.
    let lines = fs::read_to_string(h.join("2026.jsonl")).unwrap();
    let of =
        |line: &str| if line.contains("\"web\"") { line.replace("latency.p99", "latency.p50") } else { line.into() };
    fs::create_dir_all(lab.path("part")).unwrap();
    fs::write(lab.path("part/2026.jsonl"), lines.lines().map(of).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let text = squeezed(&lab.run("history check part --metric latency.p99", 10));
    assert!(text.contains("1 of 1 test is worse (`mail`)") && !text.contains("web"), "{text}");
    lab.run("history show part web --metric latency.p99", 2);
    // A date that is no night of the test would hide the loss.
    let text = squeezed(&lab.run("history accept h mail --since 2027-02-03 --why typo", 2));
    assert!(text.contains("`mail` has no night 2027-02-03") && text.contains("2026-02-04, 2026-02-05"), "{text}");
    let text = lab.run("history accept h mail --since 2026-02-03 --why fsync-is-real", 0);
    assert_eq!(text, "accepted: 9,004 → 6,263 since 2026-02-03\n");
    lab.run("history check h", 0);
    assert!(lab.run("history show h mail", 0).contains("fsync-is-real"));
    lab.run("history accept h mail --since 2026-01-01 --why undone", 0);
    lab.run("history check h", 10);
    lab.run("history forget h mail", 0);
    assert!(!lab.run("history show h", 0).contains("mail"));
    assert!(squeezed(&lab.run("history show h mail", 2)).contains("there is no test `mail`"));
}

/// The date of a loss stays, what changed with a later one stands beside it, and how old the last night is.
#[test]
fn a_test_that_becomes_worse_still_has_both_nights() {
    let lab = Lab::new();
    let levels = [(20, "6.11", 9000.0), (4, "6.12", 6300.0), (4, "6.13", 900.0)];
    let nights = levels.iter().flat_map(|(nights, kernel, level)| vec![(*kernel, *level); *nights]).enumerate();
    let lines = nights.map(|(n, (kernel, level))| {
        let noise = 1.0 + 0.02 * (n as f64 * 2.4).sin();
        run(&format!("2026-01-{:02}", n + 1), "mail", kernel, level * noise)
    });
    let head = format!("{}\n", json!({"schema": "wmlrun.history-lines/1"}));
    fs::create_dir_all(lab.path("h")).unwrap();
    fs::write(lab.path("h/2026.jsonl"), head + &lines.collect::<String>()).unwrap();
    let text = squeezed(&lab.run("history check h", 10));
    for words in ["worse since 2026-01-21", "2026-01-21 kernel 6.11 6.12", "2026-01-25 kernel 6.12 6.13", "days ago."] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = squeezed(&lab.run("history bisect h mail", 0));
    assert!(text.contains("worse still since 2026-01-25: kernel"), "{text}");
    let text = squeezed(&lab.run("history accept h mial --since 2026-01-21 --why x", 2));
    assert!(text.contains("did you mean `mail`?"), "{text}");
}

/// What a test did on an earlier night is no verdict on this one.
#[test]
fn a_test_without_a_result_is_missing() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 30, 0, 1.0);
    let lines = fs::read_to_string(lab.path("h/2026.jsonl")).unwrap();
    let is_kept = |line: &&str| !line.contains("2026-02-02") || !line.contains("\"web\"");
    fs::write(lab.path("h/2026.jsonl"), lines.lines().filter(is_kept).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    for (words, code) in [("show h web", 0), ("check h --format junit", 11)] {
        let text = lab.run(&format!("history {words}"), code);
        assert!(text.contains("missing") && !text.contains("missing,"), "{text}");
    }
}

/// A table of one run, as a command that makes a test again leaves it.
fn table(ops: u32) -> String {
    let header = "started_at,label,note,script,script_sha256,run,state,ops,ops_per_s";
    format!("printf '{header}\\r\\n2026-02-04T03:00:00Z,,,mail.wml,ab,1,complete,9,{ops}.5\\r\\n' > $WMLRUN_RESULTS")
}

#[test]
fn a_suspect_is_made_again_the_same_night() {
    for (ops, code, said) in [(6300, 10, "worse since 2026-02-03"), (9010, 0, "no test of 2 is worse")] {
        let lab = Lab::new();
        write_history(&lab.path("h"), 31, 1, 0.7);
        let confirm = |command: &str, code: i32| {
            let output = lab.command("history check h --confirm").arg(command).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
            squeezed(&String::from_utf8_lossy(&output.stdout))
        };
        // Without a result nothing is confirmed, and the next command may.
        assert!(confirm("true", 11).contains("mail ▅"));
        // Neither by the result of another test, nor by one of another night.
        confirm(&table(ops).replace("mail.wml", "other.wml"), 11);
        confirm(&table(ops).replace("02-04T", "02-09T"), 11);
        let command = format!("echo $WMLRUN_TEST $WMLRUN_PLACE >> made; {}", table(ops));
        let text = confirm(&command, code);
        assert!(text.contains(said), "{text}");
        assert_eq!(fs::read_to_string(lab.path("made")).unwrap(), "mail /mnt/vol1\n");
        // What was decided is made no second time.
        confirm("exit 1", code);
        let document: Value = serde_json::from_str(&lab.run("history show h --format json", 0)).unwrap();
        valid(&document);
        let course = document["tests"][0]["course"].as_array().unwrap();
        let last =
            course[course.len() - 2..].iter().map(|night| (night["night"].as_str().unwrap(), night["again"] == true));
        assert_eq!(last.collect::<Vec<_>>(), [("2026-02-03", false), ("2026-02-03", true)]);
    }
}

/// What is known already confirms nothing, and is told.
#[test]
fn a_known_run_confirms_no_suspect() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 31, 1, 0.7);
    let mut shell = Command::new("sh");
    assert!(shell.args(["-c", &table(6300)]).env("WMLRUN_RESULTS", lab.path("t.csv")).status().unwrap().success());
    lab.run("history add h t.csv --night 2026-02-03 --place /mnt/vol1", 0);
    let without = table(6300).replace("ops_per_s", "x");
    for (command, said) in [(table(6300), "its runs are known already"), (without, "its runs have no `ops`")] {
        let output = lab.command("history check h --confirm").arg(command).output().unwrap();
        let text = squeezed(&String::from_utf8_lossy(&output.stderr));
        assert!(output.status.code() == Some(11) && text.contains(said), "{text}");
    }
}

#[test]
fn the_turn_is_a_mail_and_the_nights_are_a_picture() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 33, 3, 0.7);
    let text = lab.run("history bisect h mail", 0);
    let first =
        "mail: ops\n\nworse since 2026-02-03, -30 % on average.\n\nkernel: 6.11 → 6.12\nlast good night 2026-02-02: ";
    assert!(text.starts_with(first) && text.contains("\nfirst bad night 2026-02-03: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
    assert!(lab.run("history bisect h web", 2).contains("`web` is not worse"));
    write_history(&lab.path("s"), 31, 1, 0.7);
    assert!(lab.run("history bisect s mail", 0).contains("\nsuspect, -30 % ["));
    lab.run("history plot h -o p.html", 0);
    let page = fs::read_to_string(lab.path("p.html")).unwrap();
    assert_eq!(page.matches("data-x=").count(), 66, "{page}");
    lab.run("history plot h mail -o mail.svg", 0);
    let picture = fs::read_to_string(lab.path("mail.svg")).unwrap();
    let is_whole = picture.starts_with("<svg") && picture.contains("worse since 2026-02-03");
    assert!(is_whole && picture.matches("data-x=").count() == 33, "{picture}");
    lab.run("history plot h -o all.svg", 2);
    assert_eq!(lab.run("history forget h --keep 40", 0), "removed: 0 runs\n");
    assert_eq!(lab.run("history forget h --keep 30", 0), "removed: 6 runs\n");
    assert!(!lab.run("history show h mail", 0).contains("2026-01-03"));
}

/// The worst tests come first.
#[test]
fn a_loss_is_the_first_row() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 33, 3, 0.7);
    let text = fs::read_to_string(lab.path("h/2026.jsonl")).unwrap().replace("\"mail\"", "\"z\"");
    fs::write(lab.path("h/2026.jsonl"), text).unwrap();
    let text = lab.run("history check h", 10);
    assert!(text.find("\nz  ").unwrap() < text.find("\nweb").unwrap(), "{text}");
}

/// A cell that is made alone is the test that it is among others.
#[test]
fn a_cell_alone_has_the_name_of_its_test() {
    let lab = Lab::new();
    let text = "options = \"--engine null --no-quiesce --set reads=100\"\nrepeats = 2\n\
                [[factor]]\nname = \"test\"\nlevels = [{ name = \"mail\", script = \"x.wml\" }]\n\
                [[factor]]\nname = \"n\"\nlevels = [{ name = \"one\", set = { n = 1 } }, { name = \"two\", set = { n = 2 } }]\n";
    fs::write(lab.path("nightly.toml"), text).unwrap();
    lab.run("experiment nightly.toml --results all --quiet", 0);
    lab.run("experiment nightly.toml --only mail,two --results one --quiet", 0);
    lab.run("history add h all --night 2026-11-20", 0);
    lab.run("history add h one --night 2026-11-21", 0);
    let found: Value = serde_json::from_str(&lab.run("history show h --format json", 0)).unwrap();
    let nights = |test: &Value| (test["test"].as_str().unwrap().to_owned(), test["course"].as_array().unwrap().len());
    let mut tests: Vec<_> = found["tests"].as_array().unwrap().iter().map(nights).collect();
    tests.sort();
    assert_eq!(tests, [("mail,one".to_owned(), 1), ("mail,two".to_owned(), 2)]);
    // A level stands for all of its cells.
    lab.run("experiment nightly.toml --only two --results two --quiet", 0);
    lab.run("experiment nightly.toml --only mail --results mail --quiet", 0);
    let runs = |dir: &str| fs::read_dir(lab.path(dir).join("runs")).unwrap().count();
    assert_eq!(runs("mail"), 2 * runs("two"));
    let text = lab.run("history accept h mail --since 2026-11-20 --why both", 0);
    assert!(text.contains("accepted: mail,one") && text.contains("accepted: mail,two"), "{text}");
    let text = squeezed(&lab.run("experiment nightly.toml --only three --results three --quiet", 2));
    assert!(text.contains("has no cell or level `three`"), "{text}");
    // One value of a sweep is no test.
    lab.run("sweep x.wml --engine null --no-quiesce --vary reads=100 --repeats 2 --results swept --quiet", 0);
    lab.run("history add s swept", 0);
    assert!(lab.run("history show s", 0).contains("\nx  "));
}

/// Runs with a rate that begin in the same second do equally much.
#[test]
fn runs_of_one_second_differ_in_their_latency() {
    let lab = Lab::new();
    let header = "started_at,label,note,script,script_sha256,run,state,ops,ops_per_s,mean_ns\r\n";
    let row = |mean: &str| format!("2026-11-20T01:00:00Z,,,mail.wml,ab,1,complete,9,9.5,{mean}\r\n");
    fs::write(lab.path("t.csv"), format!("{header}{}{}", row("10.5"), row("11.5"))).unwrap();
    assert_eq!(lab.run("history add h t.csv", 0), "added: 2 runs\n");
    assert_eq!(lab.run("history add h t.csv", 0), "added: 0 runs, 2 known already\n");
}

#[test]
fn results_of_all_kinds_are_added_once() {
    let lab = Lab::new();
    lab.run(&format!("{SHORT} --json=r.json --append=t.csv --quiet"), 0);
    lab.run(&format!("repeat {SHORT} --runs=2 --results=r --quiet"), 0);
    assert_eq!(lab.run("history add h r.json r --night 2026-11-20 --place vol1", 0), "added: 3 runs\n");
    // One that began in the same second in another place is another run.
    for place in ["vol1", "vol2"] {
        assert_eq!(lab.run(&format!("history add places r.json --place {place}"), 0), "added: 1 run\n");
    }
    // The row of a run is that run.
    assert_eq!(
        lab.run("history add h r.json t.csv --night 2026-11-20 --place vol1", 0),
        "added: 0 runs, 2 known already\n"
    );
    lab.run("history add h r --night 2026-11-21 --place vol1", 0);
    let found: Value = serde_json::from_str(&lab.run("history show h --format json", 0)).unwrap();
    valid(&found);
    let tests = found["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 1, "{found:#}");
    assert_eq!((&tests[0]["test"], &tests[0]["place"]), (&"x".into(), &"vol1".into()));
    assert_eq!(tests[0]["course"][0]["runs"], 3);
    lab.run("history forget h --night 2026-11-20", 0);
    let text = fs::read_to_string(lab.path("h/2026.jsonl")).unwrap();
    assert!(!text.contains("2026-11-20") && text.lines().all(|line| line.len() <= 2048), "{text}");
    lab.run("varmail --set nfiles=50 --engine null --no-quiesce --runtime 0.1 --quiet --json=v.json", 0);
    lab.run("history add v v.json", 0);
    assert!(lab.run("history show v", 0).contains("\nvarmail  "));
    lab.run("history add h r.json --night 20.11.2026", 2);
    lab.run("history check nowhere", 2);
    // A folder with other files is no history.
    assert!(squeezed(&lab.run("history add r r.json", 3)).contains("it has files, and no history"));
}

/// A day begins at midnight where the program runs.
#[test]
fn a_night_has_the_local_date_of_its_begin() {
    let lab = Lab::new();
    let header = "started_at,label,note,script,script_sha256,run,state,ops,ops_per_s\r\n";
    let row = |time: &str| format!("{time},,,mail.wml,ab,1,complete,9,9.5\r\n");
    fs::write(lab.path("t.csv"), format!("{header}{}{}", row("2026-11-20T22:30:00Z"), row("2026-11-20T23:30:00Z")))
        .unwrap();
    for (zone, nights) in [("UTC", vec!["2026-11-20"]), ("UTC-1", vec!["2026-11-20", "2026-11-21"])] {
        let output = lab.command(&format!("history add {zone} t.csv")).env("TZ", zone).output().unwrap();
        assert!(output.status.success());
        let found: Value = serde_json::from_str(&lab.run(&format!("history show {zone} --format json"), 0)).unwrap();
        let course = found["tests"][0]["course"].as_array().unwrap();
        assert_eq!(course.iter().map(|night| night["night"].as_str().unwrap()).collect::<Vec<_>>(), nights);
    }
}

#[test]
fn several_writers_lose_no_run() {
    let lab = Lab::new();
    let header = "started_at,label,note,script,script_sha256,run,state,ops,ops_per_s\r\n";
    for file in 0..4 {
        let rows: String = (0..50)
            .map(|n| format!("2026-11-{:02}T01:00:{n:02}Z,,,mail{file}.wml,ab,1,complete,9,{n}.5\r\n", 1 + n % 28))
            .collect();
        fs::write(lab.path(&format!("{file}.csv")), format!("{header}{rows}")).unwrap();
    }
    // Each of two adds each file.
    let add = |n: usize| lab.command(&format!("history add h {}.csv", n % 4)).spawn().unwrap();
    let writers: Vec<_> = (0..8).map(add).collect();
    assert!(writers.into_iter().all(|mut writer| writer.wait().unwrap().success()));
    let text = fs::read_to_string(lab.path("h/2026.jsonl")).unwrap();
    assert_eq!(text.matches("{\"run\":").count(), 200);
    assert_eq!(text.matches("{\"schema\":").count(), 1);
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}
