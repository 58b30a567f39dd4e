//! Tests that a run which other programs disturbed is made again, that its scopes are begun again, and that its result is
//! kept and not used.

#![allow(clippy::unwrap_used)]
use super::Folder;
use super::design_tests::factorial;
use super::journal::Event;
use super::runner::run;
use super::runner::tests::{ScriptHost, events, experiment, finished_runs, identity};
use super::scopes::{HookScope, ScopeHook};
use super::wanted::Experiment;
use crate::result::fixture::fixture;
use crate::result::{DeviceBytes, Document};
use std::fs;
use std::path::Path;

/// Returns a host whose program writes the result of a disturbed run at these calls, counted from 1.
fn host(disturbed: &[usize]) -> ScriptHost {
    let host = ScriptHost::new();
    let mut document: Document = fixture();
    let bytes = |written| Some(DeviceBytes { read: 0, written });
    let run = &mut document.runs[0];
    run.filesets.iter_mut().for_each(|set| set.device_bytes = bytes(9 << 30));
    (run.storage_bytes, run.quiesced) = (bytes(1 << 20), Some(true));
    let mut text = Vec::new();
    crate::report::json::serialize(&document, &mut text).unwrap();
    fs::write(host.path("disturbed"), text).unwrap();
    fs::write(host.path("calm"), fs::read(host.path("result")).unwrap()).unwrap();
    for call in disturbed {
        fs::write(host.path(&format!("disturb-{call}")), "").unwrap();
    }
    let choose =
        "cd DIR; echo >> calls; kind=calm; [ ! -e disturb-$(wc -l < calls) ] || kind=disturbed; cp $kind result\n";
    let program = fs::read_to_string(host.path("program")).unwrap();
    fs::write(host.path("program"), host.command(choose) + &program).unwrap();
    host
}

/// Restores the state of the folder `path` beside the first event `retried`, before or after it is written, when the files
/// of the attempt have not been moved.
fn cut(path: &Path, has_event: bool) {
    let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let to = journal.lines().position(|line| line.contains("\"retried\"")).unwrap() + usize::from(has_event);
    let lines: Vec<&str> = journal.lines().take(to).collect();
    fs::write(path.join("journal.jsonl"), lines.join("\n") + "\n").unwrap();
    fs::rename(path.join("dropped/1/0001.json"), path.join("runs/0001.json")).unwrap();
    fs::remove_dir_all(path.join("dropped")).unwrap();
}

fn retried(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| if let Event::Retried { run, .. } = event { Some(*run) } else { None }).collect()
}

#[test]
fn a_disturbed_run_is_made_again_and_its_result_is_kept() {
    let mut host = host(&[2, 3, 5, 6, 7]);
    let path = host.path("r");
    let wanted = Experiment { retry_disturbed: 2, ..experiment(3, &[]) };
    let mut folder = Folder::create(&path, wanted).unwrap();
    let finished = run(&mut folder, &mut host).unwrap();
    drop(folder);
    let events = events(&path);
    assert_eq!((host.made(), finished_runs(&events), retried(&events)), (7, vec![1, 2, 3], vec![2, 2, 3, 3]));
    let is_disturbed: Vec<bool> = finished.observations()[0].iter().map(|run| run.disturbed).collect();
    assert_eq!(is_disturbed, [false, false, true], "the last attempt counts");
    for (attempt, run) in [(1, 2), (2, 2), (3, 3), (4, 3)] {
        assert!(path.join(format!("dropped/{attempt}/{run:04}.json")).exists(), "{attempt}");
    }
    let note = "4 disturbed attempts of runs 2, 3 are not used (`--retry-disturbed`)";
    assert_eq!(finished.notes, [note]);
    let made_again =
        "run 3 is made again (attempt 2 of 3): other programs used the processors or devices; its files are kept in";
    assert!(host.notes.iter().any(|note| note.starts_with(made_again)), "{:#?}", host.notes);
    let side = crate::import::side(&path).unwrap();
    assert!(side.runs.len() == 3 && side.notes.iter().any(|found| found.ends_with(note)), "{:#?}", side.notes);
}

#[test]
fn a_run_is_not_made_again_unless_that_is_wanted() {
    // Where most of the runs are disturbed, it would not help.
    for (disturbed, helps) in [(vec![1], true), (vec![1, 2], false)] {
        let mut host = host(&disturbed);
        let path = host.path("r");
        let finished = run(&mut Folder::create(&path, experiment(3, &[])).unwrap(), &mut host).unwrap();
        assert!(host.made() == 3 && finished.observations()[0][0].disturbed && finished.notes.is_empty());
        let is_proposed = host.notes.iter().any(|note| note.starts_with("`--retry-disturbed 2` makes"));
        assert_eq!(is_proposed, helps, "{:#?}", host.notes);
    }
}

/// The user is told after a block of runs, not at the end of a long experiment.
#[test]
fn a_busy_machine_is_reported_after_a_block_of_runs() {
    for (disturbed, runs, is_busy) in
        [(vec![1, 2, 3, 4], 6, true), (vec![1, 2, 3, 5, 6], 6, false), (vec![1, 2, 3, 4], 4, false)]
    {
        let mut host = host(&disturbed);
        run(&mut Folder::create(&host.path("r"), experiment(runs, &[])).unwrap(), &mut host).unwrap();
        let notes = host.notes.iter().filter(|note| note.contains("during all of the first 4 runs")).count();
        assert_eq!(notes, usize::from(is_busy), "{:#?}", host.notes);
    }
}

/// Further attempts of runs that are disturbed one after another only take time.
#[test]
fn on_a_busy_machine_no_run_is_made_again() {
    let mut host = host(&(1..=12).collect::<Vec<_>>());
    let path = host.path("r");
    let wanted = Experiment { retry_disturbed: 1, ..experiment(6, &[]) };
    let finished = run(&mut Folder::create(&path, wanted).unwrap(), &mut host).unwrap();
    assert_eq!((finished.observations()[0].len(), retried(&events(&path))), (6, vec![1, 2, 3, 4]));
    let until = "; until a run is undisturbed, none is made again";
    assert!(host.notes.iter().any(|note| note.ends_with(until)), "{:#?}", host.notes);
}

/// A kill after the event, before the files are moved.
#[test]
fn the_result_of_an_attempt_that_is_not_used_is_not_recorded_after_a_kill() {
    let mut host = host(&[1]);
    let path = host.path("r");
    let wanted = Experiment { retry_disturbed: 1, ..experiment(1, &[]) };
    run(&mut Folder::create(&path, wanted).unwrap(), &mut host).unwrap();
    cut(&path, true);
    let side = crate::import::side(&path).map(|_| ()).unwrap_err().to_string();
    assert!(side.contains("none of its runs has finished"), "{side}");
    let finished = run(&mut Folder::resume(&path, &identity(), false).unwrap(), &mut host).unwrap();
    assert_eq!((host.made(), finished.observations()[0][0].disturbed), (3, false));
    assert_eq!(retried(&events(&path)), [1]);
    assert!(path.join("dropped/1/0001.json").exists());
}

/// A kill after the result was written and before the event.
#[test]
fn a_disturbed_result_is_not_recorded_after_a_kill() {
    let mut host = host(&[1]);
    let path = host.path("r");
    let wanted = Experiment { retry_disturbed: 1, ..experiment(1, &[]) };
    run(&mut Folder::create(&path, wanted).unwrap(), &mut host).unwrap();
    cut(&path, false);
    let finished = run(&mut Folder::resume(&path, &identity(), false).unwrap(), &mut host).unwrap();
    assert_eq!((host.made(), finished.observations()[0][0].disturbed), (3, false));
    assert_eq!((retried(&events(&path)), finished.notes.len()), (vec![1], 1));
}

/// An attempt that would exceed the budget is not discarded.
#[test]
fn no_attempt_is_discarded_without_time_for_another() {
    let mut host = host(&[1, 2, 3]);
    let path = host.path("r");
    let wanted = Experiment { retry_disturbed: 5, budget: Some(0.0), ..experiment(3, &[]) };
    let finished = run(&mut Folder::create(&path, wanted).unwrap(), &mut host).unwrap();
    assert_eq!((retried(&events(&path)), finished.observations()[0].len()), (vec![], 3));
    assert!(finished.observations()[0].iter().all(|run| run.disturbed));
}

/// Scopes that began with the run end, and begin again with its next attempt; the others continue. Commands that nothing
/// undoes are executed once.
#[test]
fn an_attempt_begins_the_scopes_of_its_run_again() {
    let mut host = host(&[1, 4]);
    let hook = |name: &str, scope| ScopeHook {
        name: name.to_owned(),
        origin: "x.toml:1".to_owned(),
        after_origin: "x.toml:2".to_owned(),
        before: Some(host.command(&format!("echo +{name} >> DIR/log"))),
        after: (name != "all").then(|| host.command(&format!("echo -{name} >> DIR/log"))),
        time_limit: None,
        scope,
    };
    let level = HookScope::Level { factor: 0, level: None };
    let scopes = vec![hook("all", HookScope::Experiment), hook("level", level), hook("run", HookScope::Run)];
    let wanted = Experiment { retry_disturbed: 1, scopes, ..factorial(&[2], (2, 2), None, true) };
    let path = host.path("r");
    run(&mut Folder::create(&path, wanted).unwrap(), &mut host).unwrap();
    assert_eq!((finished_runs(&events(&path)), retried(&events(&path))), (vec![1, 2, 3, 4], vec![1, 3]));
    let log = fs::read_to_string(host.path("log")).unwrap();
    let attempts = [
        "+all +level +run -run -level",
        "+level +run -run",
        "+run -run -level",
        "+level +run -run -level",
        "+level +run -run",
        "+run -run -level",
    ];
    assert_eq!(log.split_whitespace().collect::<Vec<_>>().join(" "), attempts.join(" "));
}
