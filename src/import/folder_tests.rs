//! Tests of reading results folders: arms, finished runs, blocks, notes, and what is refused.

#![allow(clippy::unwrap_used)]
use super::super::side;
use super::*;
use std::fs;

/// Writes the folder of an experiment, with a result for each run that the journal starts. The rate of a run is its
/// number.
fn folder(dir: &Path, description: &str, journal: &str) {
    let _ = fs::remove_dir_all(dir.join(RUNS));
    fs::create_dir_all(dir.join(RUNS)).unwrap();
    fs::write(dir.join(EXPERIMENT), format!("schema = '{EXPERIMENT_SCHEMA}'\n{description}")).unwrap();
    fs::write(dir.join(JOURNAL), journal).unwrap();
    let is_started = |n: &usize| journal.contains(&format!("\"started\",\"run\":{n},"));
    for n in (1..=20).filter(is_started) {
        let text =
            format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{{}}, {{\"summary\": {{\"ops_per_s\": {n}}}}}]}}");
        fs::write(dir.join(RUNS).join(result_name(n)), text).unwrap();
    }
}

/// Returns the events of finished runs of these arms.
fn finished(arms: &[usize]) -> String {
    let run = |(n, arm): (usize, &usize)| {
        let n = n + 1;
        format!(
            "{{\"event\":\"hook\",\"run\":{n},\"name\":\"before\",\"seconds\":1}}\n\
             {{\"event\":\"started\",\"run\":{n},\"arm\":{arm},\"control\":null}}\n\
             {{\"event\":\"finished\",\"run\":{n},\"seconds\":1.5}}\n"
        )
    };
    arms.iter().enumerate().map(run).collect()
}

/// A run that was started again has the controls of its last attempt.
#[test]
fn a_run_has_the_mean_of_its_controls() {
    let dir = tempfile::tempdir().unwrap();
    let started = |control: &str| format!("{{\"event\":\"started\",\"run\":1,\"arm\":0{control}}}\n");
    let finished = |control: &str| format!("{{\"event\":\"finished\",\"run\":1,\"seconds\":1.5{control}}}\n");
    for (first, before, after, mean) in [
        ("", ",\"control\":100", ",\"control\":110", Some(105.0)),
        (",\"control\":7", ",\"control\":100", ",\"control\":null", Some(100.0)),
        (",\"control\":7", "", "", None),
    ] {
        folder(dir.path(), REPEAT, &(started(first) + &started(before) + &finished(after)));
        assert_eq!(side(dir.path()).unwrap().runs[0].control, mean);
    }
}

fn values(path: &str) -> Vec<f64> {
    side(Path::new(path)).unwrap().runs.iter().map(|run| Metric::ops().of(run).unwrap()).collect()
}

const REPEAT: &str = "arms = [{words = ['x.wml']}]\nrule = {kind = 'repeat'}\n";
const AB: &str = "arms = [{words = ['x.wml']}, {words = ['x.wml', '--cold']}]\nrule = {kind = 'ab'}\n";

#[test]
fn the_runs_of_different_arms_are_not_one_sample() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    folder(dir.path(), AB, &finished(&[0, 1, 1, 0]));
    let error = side(dir.path()).unwrap_err();
    assert!(error.to_string().ends_with("has runs of several arms: a, b"), "{error}");
    assert!(error.help().contains(&format!("`{path}:a` or `{path}:b`")), "{}", error.help());
    assert_eq!((values(&format!("{path}:a")), values(&format!("{path}:b"))), (vec![1.0, 4.0], vec![2.0, 3.0]));
    assert!(matches!(side(&dir.path().join(RUNS)), Err(ImportError::SeveralArms { path, .. }) if path == dir.path()));
    let error = side(Path::new(&format!("{path}:c"))).unwrap_err();
    assert!(error.to_string().ends_with("has no arm `c`") && error.help() == "its arms are a, b", "{error}");
    assert_eq!(values(&format!("{path}:A")), vec![1.0, 4.0]);
    // The four runs are one block; those of a file have none.
    let blocks = |path: &str| side(Path::new(path)).unwrap().blocks;
    let found = blocks(&format!("{path}:a")).unwrap();
    assert_eq!((Some(found.folder), found.of_runs), (dir.path().canonicalize().ok(), vec![0, 0]));
    assert_eq!(blocks(&format!("{path}/runs/0001.json")), None);
    // A load curve, of which a level contains a colon.
    let sweep = "rule = {kind = 'sweep', factor = 'n', levels = ['4', 'x:5']}\n";
    folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", sweep), &finished(&[1, 0]));
    assert_eq!((values(&format!("{path}:n=4")), values(&format!("{path}:n=x:5"))), (vec![2.0], vec![1.0]));
    assert!(side(dir.path()).unwrap_err().to_string().contains("n=4, n=x:5"));
    // Each block has a run of each level.
    folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", sweep), &finished(&[1, 0, 0, 1]));
    assert_eq!(blocks(&format!("{path}:n=4")).unwrap().of_runs, [0, 1]);
    let sweep = sweep.replace("'sweep'", "'sweep', in_order = true");
    folder(dir.path(), &AB.replace("rule = {kind = 'ab'}\n", &sweep), &finished(&[0, 1, 0, 1]));
    assert_eq!(blocks(&format!("{path}:n=4")).unwrap().of_runs, [0, 1]);
    // All runs of a cell, then those of the next.
    let cells = AB.replace("words", "name = 'c', words").replacen("'c'", "'d'", 1);
    let in_order = cells.replace("kind = 'ab'", "kind = 'factorial', in_order = true");
    folder(dir.path(), &in_order, &finished(&[0, 0, 1, 1]));
    assert_eq!(blocks(&format!("{path}:c")), None);
    let cells = "arms = [{name = 'fs=x,n=1', words = ['x']}, {name = 'fs=y,n=1', words = ['y'], metric = 'seconds'}]\n\
        metrics = ['mib', 'ops']\nrule = {kind = 'factorial'}\n";
    folder(dir.path(), cells, &finished(&[0, 1, 1, 0]));
    for name in ["fs=y,n=1", "n=1,fs=y", "y,1", "FS=Y,N=1"] {
        let found = side(Path::new(&format!("{path}:{name}"))).unwrap();
        let metrics: Vec<String> = found.metrics.iter().map(ToString::to_string).collect();
        assert_eq!((found.runs.len(), metrics), (2, vec!["seconds".to_owned(), "ops".to_owned()]), "{name}");
    }
    assert!(side(Path::new(&format!("{path}:n=1"))).is_err());
}

#[test]
fn arms_are_equal_if_neither_options_nor_commands_differ() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    let equal = AB.replace(", '--cold'", "");
    folder(dir.path(), &equal, &finished(&[0, 1]));
    assert_eq!((values(&path), values(&format!("{path}:b"))), (vec![1.0, 2.0], vec![2.0]));
    folder(dir.path(), &format!("{equal}hooks = {{before-b = 'x'}}\n"), &finished(&[0, 1]));
    assert!(matches!(side(dir.path()), Err(ImportError::SeveralArms { .. })));
    folder(dir.path(), REPEAT, &finished(&[0, 0]));
    assert_eq!(values(&path), [1.0, 2.0]);
    let error = side(Path::new(&format!("{path}:a"))).unwrap_err();
    assert_eq!(error.help(), format!("give `{path}`: its runs are of one arm"));
}

#[test]
fn only_finished_runs_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    let started = "{\"event\":\"started\",\"run\":4,\"arm\":0}\n{\"event\":\"stopped\",\"why\":\"x\"}\n";
    // The last line was being written when the machine stopped.
    let journal = format!("{}{started}{{\"event\":\"fin", finished(&[0, 0, 0]));
    folder(dir.path(), REPEAT, &journal);
    let found = side(dir.path()).unwrap();
    assert_eq!((found.runs.len(), found.notes), (3, vec![format!("{path}: without run 4, which did not finish")]));
    // A dropped run and those after it are made again.
    let journal = format!("{}{{\"event\":\"dropped\",\"run\":2,\"why\":\"x\"}}\n", finished(&[0, 0, 0]));
    folder(dir.path(), REPEAT, &journal);
    assert_eq!(values(&path), [1.0]);
    folder(dir.path(), REPEAT, started);
    assert!(side(dir.path()).unwrap_err().to_string().ends_with("none of its runs has finished"));
}

/// The journal may have been truncated, by a full disk or by a copy.
#[test]
fn a_journal_without_a_run_whose_result_is_there_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    folder(dir.path(), REPEAT, &finished(&[0, 0, 0]));
    fs::write(dir.path().join(JOURNAL), finished(&[0, 0])).unwrap();
    let error = side(dir.path()).unwrap_err();
    assert!(
        error.to_string().ends_with("journal.jsonl is damaged: it does not have run 3, whose result is there"),
        "{error}"
    );
    assert!(error.help().starts_with("restore the results folder"), "{}", error.help());
}

/// They are in the journal: the result of a run does not have them.
#[test]
fn runs_have_the_figures_of_their_commands() {
    let dir = tempfile::tempdir().unwrap();
    let hook = |run: usize, name: &str, seconds: f64| {
        format!("{{\"event\":\"hook\",\"run\":{run},\"name\":\"{name}\",\"seconds\":{seconds}}}\n")
    };
    let event = |kind: &str, run: usize, more: &str| format!("{{\"event\":\"{kind}\",\"run\":{run}{more}}}\n");
    let journal = [
        // The first attempt of the run was interrupted after its commands.
        hook(1, "before-x", 9.0),
        event("started", 1, ",\"arm\":0"),
        event("space", 1, ",\"before\":false,\"used\":8192"),
        hook(1, "after-y", 9.0),
        hook(1, "before-x", 2.0),
        event("space", 1, ",\"before\":true,\"used\":4096"),
        event("started", 1, ",\"arm\":0"),
        event("recorded", 1, ",\"seconds\":[0.5,0.25],\"user\":[0.4,0.2],\"system\":[0.1,0.05]"),
        hook(1, "after-x", 3.0),
        event("finished", 1, ""),
        hook(2, "before-x", 4.0),
        event("started", 2, ",\"arm\":0"),
        event("finished", 2, ""),
        // The end of the experiment, after its last run, of which it is a figure.
        hook(2, "after-experiment", 7.0),
    ];
    folder(dir.path(), REPEAT, &journal.concat());
    let runs = side(dir.path()).unwrap().runs;
    let of = |run: usize, name: &str| runs[run].figures.get(name).copied();
    let names = ["before-x.seconds", "after-x.seconds", "record-2.seconds", "space.before", "space.after"];
    assert_eq!(names.map(|name| of(0, name)), [Some(2.0), Some(3.0), Some(0.25), Some(4096.0), None]);
    assert_eq!(names.map(|name| of(1, name)), [Some(4.0), None, None, None, None]);
    assert_eq!(
        (of(0, "ops"), of(0, "after-y.seconds"), of(1, "after-experiment.seconds")),
        (Some(1.0), None, Some(7.0))
    );
    // The other commands are of a version that did not record them.
    let names = ["record-1.user", "record-2.system", "before-x.user"];
    assert_eq!(names.map(|name| of(0, name)), [Some(0.4), Some(0.05), None]);
    let metric: Metric = "before-x.seconds".parse().unwrap();
    assert_eq!(metric.of(&runs[1]), Some(4.0));
}

#[test]
fn runs_of_different_boots_give_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    let events = finished(&[0, 1, 1, 0]);
    let mut lines: Vec<&str> = events.lines().collect();
    let resumed = |boot: &str| format!("{{\"event\":\"resumed\",\"time\":\"\",\"changed\":[],\"boot\":\"{boot}\"}}");
    let (same, other) = (resumed("x"), resumed("y"));
    let begun = "{\"event\":\"begun\",\"experiment\":\"\",\"time\":\"\",\"boot\":\"x\"}";
    // The third run was started before the reboot, and found complete after it.
    lines.insert(8, &other);
    lines.insert(3, &same);
    lines.insert(0, begun);
    folder(dir.path(), AB, &(lines.join("\n") + "\n"));
    let notes = |arm: &str| side(Path::new(&format!("{path}:{arm}"))).unwrap().notes;
    assert_eq!(notes("a"), [format!("{path}: the machine was rebooted between runs 1 and 4")]);
    assert_eq!(notes("b"), Vec::<String>::new());
    let notes = |boots: &[usize]| run_notes((1..).zip(boots.iter().copied()), &[], &UnusedAttempts::default());
    assert!(notes(&[]).is_empty() && notes(&[1, 1]).is_empty());
    let shown = "the machine was rebooted between runs 2 and 3 and between runs 3 and 4";
    assert_eq!(notes(&[0, 0, 1, 3, 3]), [shown]);
}

#[test]
fn accepted_changes_give_notes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    let resumed = |what: &str| format!("{{\"event\":\"resumed\",\"time\":\"\",\"changed\":[\"{what}\"]}}\n");
    let run = |number: usize| {
        let event = |kind: &str| format!("{{\"event\":\"{kind}\",\"run\":{number},\"arm\":0}}\n");
        event("started") + &event("finished")
    };
    let notes = |journal: &str| {
        folder(dir.path(), REPEAT, journal);
        side(dir.path()).unwrap().notes
    };
    let note = |first: usize, what: &str| format!("{path}: changed before run {first}, accepted by `--anyway`: {what}");
    let journal = run(1) + &resumed("a script") + &run(2) + &run(3) + &resumed("the kernel") + &run(4);
    assert_eq!(notes(&journal), [note(2, "a script"), note(4, "the kernel")]);
    assert_eq!(notes(&(journal.clone() + &resumed("a mount"))), [note(2, "a script"), note(4, "the kernel")]);
    // All runs after the dropped one are made under the new conditions.
    let journal = journal + "{\"event\":\"dropped\",\"run\":3,\"why\":\"x\"}\n" + &run(3);
    assert_eq!(notes(&journal), [note(2, "a script"), note(3, "the kernel")]);
}

#[test]
fn what_is_no_experiment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (description, journal, says) in [
        ("arms = 5", "", "experiment.toml is damaged: "),
        (REPEAT, "hello\n", "journal.jsonl is damaged: line 1 is not an event"),
        (REPEAT, "{\"event\":\"started\",\"run\":1}\n", "journal.jsonl is damaged: line 1 is not an event"),
    ] {
        folder(dir.path(), description, journal);
        let error = side(dir.path()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    fs::write(dir.path().join(EXPERIMENT), REPEAT.to_owned() + "schema = 'other/1'\n").unwrap();
    assert!(side(dir.path()).unwrap_err().to_string().contains("its schema is not `wmlrun.experiment/1`"));
}
