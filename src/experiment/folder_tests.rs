//! Tests of the results folder: every state that a kill or a power failure leaves while it is created, and results that
//! are lost.

#![allow(clippy::unwrap_used)]
use super::super::journal;
use super::super::prune::prune;
use super::*;
use crate::experiment::runner::tests::{directory, experiment, identity, result_text};
use crate::experiment::{Blocks, RuleWanted};

/// Writes a folder as `create` does, up to a number of its steps.
fn created_up_to(steps: usize, path: &Path, toml: &str) {
    let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    let all: [&dyn Fn(); 7] = [
        &|| fs::create_dir(path).unwrap(),
        &|| fs::create_dir(path.join(RUNS)).unwrap(),
        &|| fs::create_dir(path.join(HOOK_LOGS)).unwrap(),
        &|| write(JOURNAL, ""),
        &|| write(".experiment.toml.4711.tmp", &toml[..toml.len() / 2]),
        &|| write(".experiment.toml.4711.tmp", toml),
        &|| fs::rename(path.join(".experiment.toml.4711.tmp"), path.join(EXPERIMENT)).unwrap(),
    ];
    all.iter().take(steps).for_each(|step| step());
}

#[test]
fn a_folder_is_usable_after_a_kill_at_each_step_of_its_creation() {
    let dir = directory();
    let path = dir.path().join("r");
    drop(Folder::create(&path, experiment(3, &[])).unwrap());
    let toml = fs::read_to_string(path.join(EXPERIMENT)).unwrap();
    let begun = fs::read(path.join(JOURNAL)).unwrap();
    let again = || {
        fs::remove_dir_all(&path).unwrap();
    };
    for steps in 0..=7 {
        again();
        if steps == 0 {
            fs::create_dir(&path).unwrap();
        }
        created_up_to(steps, &path, &toml);
        match steps {
            7 => assert!(Folder::create(&path, experiment(3, &[])).unwrap_err().to_string().contains("--resume")),
            _ => {
                Folder::create(&path, experiment(3, &[])).unwrap();
            }
        }
        let folder = Folder::resume(&path, &identity(), false).unwrap();
        assert!(folder.runs.is_empty() && folder.under_way.is_none(), "{steps}");
        assert_eq!(fs::read_to_string(path.join(EXPERIMENT)).unwrap(), toml);
    }
    for cut in 0..=begun.len() {
        again();
        created_up_to(7, &path, &toml);
        fs::write(path.join(JOURNAL), &begun[..cut]).unwrap();
        Folder::resume(&path, &identity(), false).unwrap();
        let (_, events) = Journal::open(&HeldDir::open(&path).unwrap()).unwrap();
        assert!(matches!(events[0], Event::Begun { .. }), "{cut}: {events:?}");
    }
}

#[test]
fn a_folder_with_files_of_others_is_not_empty() {
    let dir = directory();
    for file in
        ["notes", "runs/0001.json", "hooks/x", "journal.jsonl", ".experiment.toml.tmp", ".experiment.toml.x.tmp"]
    {
        let path = dir.path().join("r");
        created_up_to(3, &path, "");
        fs::write(path.join(file), "x").unwrap();
        let error = Folder::create(&path, experiment(3, &[])).unwrap_err();
        assert!(error.to_string().contains("not empty"), "{file}: {error}");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn two_experiments_do_not_share_a_folder() {
    let dir = directory();
    let path = dir.path().join("r");
    let created: Vec<bool> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| Folder::create(&path, experiment(3, &[])).is_ok());
        [start(), start(), start(), start()].map(|thread| thread.join().unwrap()).to_vec()
    });
    assert_eq!(created.iter().filter(|created| **created).count(), 1, "{created:?}");
    Folder::resume(&path, &identity(), false).unwrap();
}

/// Creates an experiment of five runs of which four are complete.
fn four_runs(path: &Path) {
    let mut folder = Folder::create(path, experiment(5, &[("before", "true".to_owned())])).unwrap();
    for run in 1..=4 {
        let (arm, control, mounts) = (0, Some(100.0), vec!["/x: ext4".to_owned()]);
        folder.write(&Event::Started { run, arm, control, mounts, time: now() }).unwrap();
        fs::write(folder.result(run as usize), result_text()).unwrap();
        let observation = folder.observation(run as usize).unwrap();
        folder.keep(KeptRun { arm: 0, seconds: Some(1.0), boot: 0, observation }, Some(110.0)).unwrap();
    }
    assert!(folder.runs.iter().all(|run| run.observation.control == Some(105.0)));
}

/// After a power failure the journal may be empty. The results are then kept as they are.
#[test]
fn an_empty_journal_beside_results_is_an_error() {
    let dir = directory();
    let path = dir.path().join("r");
    four_runs(&path);
    fs::write(path.join(JOURNAL), "").unwrap();
    let error = Folder::resume(&path, &identity(), true).unwrap_err();
    assert!(error.to_string().contains("it is empty although there are results"), "{error}");
    assert_eq!(fs::read_dir(path.join(RUNS)).unwrap().count(), 4);
    assert_eq!(fs::read(path.join(JOURNAL)).unwrap(), b"");
}

/// A link named `dropped` may lead to a directory of others.
#[test]
fn results_are_not_moved_through_a_link() {
    let dir = directory();
    let (path, other) = (dir.path().join("r"), dir.path().join("other"));
    four_runs(&path);
    fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&other, path.join("dropped")).unwrap();
    fs::remove_file(path.join("runs/0003.json")).unwrap();
    let error = Folder::resume(&path, &identity(), false).unwrap_err();
    assert!(error.to_string().contains("/dropped: "), "{error}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    assert!(path.join("runs/0004.json").exists());
}

#[test]
fn results_after_a_lost_one_are_dropped() {
    let dir = directory();
    let path = dir.path().join("r");
    let text = result_text();
    for lost in 1..=4 {
        for damage in
            [None, Some(""), Some(&text[..text.len() / 2]), Some("{\"schema\": \"wmlrun.result/1\", \"runs\": []}")]
        {
            four_runs(&path);
            let file = path.join(format!("runs/{lost:04}.json"));
            match damage {
                Some(text) => fs::write(&file, text).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            let folder = Folder::resume(&path, &identity(), false).unwrap();
            assert_eq!(folder.runs.len(), lost - 1);
            assert!(folder.runs.iter().all(|run| run.observation.control == Some(105.0)));
            let said = folder.dropped().unwrap().to_owned();
            let which = if lost == 4 { "run 4 is".to_owned() } else { format!("runs {lost} to 4 are") };
            assert!(said.starts_with(&format!("{which} made again: ")), "{said}");
            let kept = |run: usize| fs::read_to_string(path.join(format!("dropped/1/{run:04}.json"))).ok();
            assert_eq!(kept(lost).as_deref(), damage, "run {lost}");
            assert!((lost + 1..=4).all(|run| kept(run).as_ref() == Some(&text)), "{said}");
            assert!((1..lost).all(|run| kept(run).is_none() && folder.result(run).exists()), "{said}");
            assert!((lost..=4).all(|run| !folder.result(run).exists()), "{said}");
            assert_eq!(said.contains(&format!("kept in {}/dropped/1", path.display())), damage.is_some() || lost < 4);
            drop(folder);
            // The journal says so, so that a result that is there again is not used.
            fs::write(&file, &text).unwrap();
            let folder = Folder::resume(&path, &identity(), false).unwrap();
            assert_eq!((folder.runs.len(), folder.dropped()), (lost - 1, None));
            drop(folder);
            fs::remove_dir_all(&path).unwrap();
        }
    }
}

#[test]
fn the_files_of_each_attempt_are_kept_apart() {
    let dir = directory();
    let path = dir.path().join("r");
    four_runs(&path);
    let mut folder = Folder::resume(&path, &identity(), false).unwrap();
    Arc::make_mut(&mut folder.experiment).records = vec!["df -i".to_owned()];
    fs::create_dir(path.join(RECORDS)).unwrap();
    for attempt in ["1", "2"] {
        fs::create_dir(folder.files(4)).unwrap();
        let files = [folder.result(4), folder.log(4), folder.files(4).join("x"), folder.record(4, 0)];
        files.iter().for_each(|file| fs::write(file, attempt).unwrap());
        let kept = folder.clear(4).unwrap().unwrap();
        assert_eq!(kept, path.join(DROPPED).join(attempt));
        for file in ["0004.json", "0004.log", "0004.files/x", "0004-1.txt"] {
            assert_eq!(fs::read_to_string(kept.join(file)).unwrap(), attempt, "{file}");
        }
        assert!(files.iter().all(|file| !file.exists()));
    }
    // Without a result nothing was measured.
    fs::write(folder.log(4), "x").unwrap();
    fs::write(folder.result(4), "").unwrap();
    assert_eq!(folder.clear(4).unwrap(), None);
    assert!(!folder.log(4).exists() && !folder.result(4).exists() && !path.join("dropped/3").exists());
    folder.write(&Event::Files { run: 4, paths: vec!["x".to_owned()] }).unwrap();
    // A run that was killed before its end may have been given files of others.
    fs::create_dir(folder.files(4)).unwrap();
    assert_eq!(folder.clear(4).unwrap(), None);
    assert!(!folder.files(4).exists(), "it is empty");
    fs::create_dir(folder.files(4)).unwrap();
    fs::write(folder.files(4).join("mine"), "mine").unwrap();
    let kept = folder.clear(4).unwrap().unwrap();
    drop(folder);
    assert_eq!(fs::read_to_string(kept.join("0004.files/mine")).unwrap(), "mine");
    // Their output is removed like that of other runs.
    let pruned = prune(&path).unwrap();
    assert_eq!((pruned.bytes, pruned.kept), (4, vec![kept.join("0004.files")]));
    assert!(path.join("dropped/2/0004.json").exists() && path.join("dropped/2/0004-1.txt").exists());
    assert!(!path.join("dropped/2/0004.log").exists() && !path.join("dropped/1/0004.files").exists());
}

#[test]
fn the_first_run_of_an_arm_after_an_interruption_has_the_mounts_of_before() {
    let dir = directory();
    let path = dir.path().join("r");
    four_runs(&path);
    let (same, other) = (["/x: ext4".to_owned()], ["/x: xfs".to_owned()]);
    let mut folder = Folder::resume(&path, &identity(), false).unwrap();
    let error = folder.check_mounts(0, &other).unwrap_err();
    assert!(error.to_string().ends_with("changed since the experiment was started: a mount of x.wml"), "{error}");
    drop(folder);
    let mut folder = Folder::resume(&path, &identity(), false).unwrap();
    folder.check_mounts(0, &same).unwrap();
    folder.check_mounts(0, &other).unwrap();
    drop(folder);
    let mut folder = Folder::resume(&path, &identity(), true).unwrap();
    folder.check_mounts(0, &other).unwrap();
    // Configuration A of a comparison may have no options, whose text would be its name.
    Arc::make_mut(&mut folder.experiment).rule = RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Pilot };
    Arc::make_mut(&mut folder.experiment).arms[0].name = String::new();
    (folder.mounts, folder.anyway) = (vec![BTreeSet::from([same.to_vec()])], false);
    let error = folder.check_mounts(0, &other).unwrap_err();
    assert!(error.to_string().ends_with(": a mount of A"), "{error}");
}

#[test]
fn a_reboot_is_recorded_and_is_no_reason_to_refuse() {
    let dir = directory();
    let path = dir.path().join("r");
    four_runs(&path);
    let boot = |id: &str| Identity { boot: id.to_owned(), ..identity() };
    let resumed = |id: &str| Folder::resume(&path, &boot(id), false).unwrap();
    // The boot of the start is unknown, so this one is taken for it.
    for (id, is_after_reboot) in [("", false), ("x", false), ("x", false), ("", false), ("y", true), ("y", false)] {
        let folder = resumed(id);
        assert_eq!((folder.is_after_reboot(), folder.notes()), (is_after_reboot, Vec::new()), "{id}");
    }
    let mut folder = resumed("y");
    folder.write(&Event::Started { run: 5, arm: 0, control: None, mounts: Vec::new(), time: now() }).unwrap();
    fs::write(folder.result(5), result_text()).unwrap();
    drop(folder);
    // The run that was started before the second reboot is that of its boot.
    let mut folder = resumed("z");
    let UnderWay { boot, .. } = folder.under_way.take().unwrap();
    assert_eq!((boot, folder.boot()), (1, 2));
    let observation = folder.observation(5).unwrap();
    folder.keep(KeptRun { arm: 0, seconds: None, boot, observation }, None).unwrap();
    let note = ["the machine was rebooted between runs 4 and 5"];
    assert_eq!(folder.notes(), note);
    drop(folder);
    assert_eq!(resumed("z").notes(), note);
    assert_eq!(super::super::RecordedExperiment::read(&path).unwrap().notes, note);
}

#[test]
fn a_journal_that_contradicts_itself_is_an_error() {
    let dir = directory();
    let path = dir.path().join("r");
    let started = |run, arm| Event::Started { run, arm, control: None, mounts: Vec::new(), time: now() };
    let finished = |run| Event::Finished { run, seconds: None, control: None };
    for events in [
        vec![finished(1)],
        vec![started(1, 7)],
        vec![started(2, 0), finished(2)],
        vec![started(1, 0), finished(2)],
        vec![started(0, 0)],
    ] {
        let mut folder = Folder::create(&path, experiment(3, &[])).unwrap();
        events.iter().for_each(|event| folder.write(event).unwrap());
        drop(folder);
        let error = Folder::resume(&path, &identity(), true).unwrap_err();
        assert!(error.to_string().contains("journal.jsonl"), "{events:?}: {error}");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn pruning_removes_all_but_the_results() {
    let dir = directory();
    let path = dir.path().join("r");
    four_runs(&path);
    fs::create_dir_all(path.join("runs/0002.files/deep")).unwrap();
    let mut folder = Folder::resume(&path, &identity(), false).unwrap();
    fs::write(folder.files(2).join("deep/dump"), "").unwrap();
    folder.keep_paths(2).unwrap();
    drop(folder);
    fs::create_dir(path.join("runs/2024.files")).unwrap();
    for (file, is_kept) in [
        ("runs/0002.files/deep/dump", false),
        ("runs/0001.log", false),
        ("runs/0001.notes", true),
        ("runs/.0003.json.77.tmp", false),
        ("runs/.0003.json.tmp", true),
        ("runs/mine.log", true),
        ("runs/0001-before.log", true),
        ("runs/1.log", true),
        ("runs/2024.log", true),
        ("runs/2024-notes.log", true),
        ("runs/2024.files/x", true),
        ("runs/.2024.json.77.tmp", true),
        ("hooks/0001-before.log", false),
        ("hooks/0001-after.log", true),
        ("hooks/0001.log", true),
        ("hooks/2024-before.log", true),
        ("hooks/2024-notes.log", true),
        (".experiment.toml.12.tmp", false),
        (".mine.tmp", true),
    ] {
        fs::write(path.join(file), "12345").unwrap();
        assert_eq!(prune(&path).unwrap().bytes, if is_kept { 0 } else { 5 }, "{file}");
        assert_eq!(path.join(file).exists(), is_kept, "{file}");
    }
    assert!(!path.join("runs/0002.files").exists());
    assert_eq!(Folder::resume(&path, &identity(), false).unwrap().runs.len(), 4);

    fs::write(path.join("runs/0001.log"), "12345").unwrap();
    // A copy may lack it.
    fs::remove_dir_all(path.join(HOOK_LOGS)).unwrap();
    assert_eq!(prune(&path).unwrap().bytes, 5);

    fs::write(path.join("runs/0001.log"), "12345").unwrap();
    let lock = journal::LockedJournal::open(&path.join(JOURNAL)).unwrap();
    let error = prune(&path).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    assert!(path.join("runs/0001.log").exists(), "nothing is removed while another process has the journal");
    drop(lock);
}
