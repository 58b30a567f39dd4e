//! Tests of the execution of runs: an experiment that was killed at any moment is completed, and no run is made twice.
//!
//! The program is a shell script that copies a result. The moments are enumerated: every prefix of the journal, with
//! every state of the files and of the commands' effects that a kill between two system calls leaves.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::experiment::journal::Journal;
use crate::experiment::replay::Replayed;
use crate::experiment::{Arm, Experiment, Hooks, Identity, RuleWanted, Standing, time_left};
use crate::import::CommandTimes;
use crate::os::held_dir::HeldDir;
use crate::result::Document;
use crate::result::fixture::fixture;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Creates a temporary directory, in memory if possible: on a disk, the syncs of the journal take most of the time of these tests.
pub(in crate::experiment) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Returns the text of a result with one complete run.
pub(in crate::experiment) fn result_text() -> String {
    text_of(&fixture())
}

fn text_of(document: &Document) -> String {
    let mut bytes = Vec::new();
    crate::report::json::serialize(document, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the conditions of experiments in tests.
pub(in crate::experiment) fn identity() -> Identity {
    Identity { user: crate::os::proc::user(), ..Identity::default() }
}

/// Returns the description of an experiment with this number of runs of one arm, whose program is a shell script.
pub(in crate::experiment) fn experiment(runs: u64, hooks: &[(&str, String)]) -> Experiment {
    Experiment {
        schema: "wmlrun.experiment/1".to_owned(),
        file: String::new(),
        name: "x.wml".to_owned(),
        created: "2026-11-20T10:00:00Z".to_owned(),
        directory: "/".to_owned(),
        command_timeout: 60.0,
        budget: None,
        seed: 7,
        launch: vec!["/bin/sh".to_owned()],
        metrics: vec!["ops".to_owned()],
        limits: Vec::new(),
        records: Vec::new(),
        record_space: false,
        scale: None,
        scaled_names: Vec::new(),
        retry_disturbed: 0,
        verdict: super::super::wanted::VERDICT.to_owned(),
        rule: RuleWanted::Repeat { min_runs: runs, max_runs: runs, until_ci: None },
        arms: vec![Arm { name: "x.wml".to_owned(), words: vec!["x.wml".to_owned()], metric: None }],
        hooks: Hooks(hooks.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect()),
        scopes: Vec::new(),
        identity: identity(),
    }
}

/// A host whose program copies a result and counts its runs.
pub(in crate::experiment) struct ScriptHost {
    dir: tempfile::TempDir,
    pub(in crate::experiment) notes: Vec<String>,
    /// The numbers of the runs that were recorded.
    pub(in crate::experiment) ended: Vec<usize>,
    /// The budget of the call.
    budget: Option<Duration>,
}

impl ScriptHost {
    pub(in crate::experiment) fn new() -> Self {
        let host = Self { dir: directory(), notes: Vec::new(), ended: Vec::new(), budget: None };
        fs::write(host.path("result"), result_text()).unwrap();
        let dir = host.dir.path().display();
        let script = format!(
            "for word in \"$@\"; do case $word in --json=*) file=${{word#--json=}};; esac; done\n\
             echo run >> {dir}/made; cp {dir}/result $file.tmp && mv $file.tmp $file\n"
        );
        fs::write(host.path("program"), script).unwrap();
        host
    }

    pub(in crate::experiment) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The number of runs that the program has made.
    pub(in crate::experiment) fn made(&self) -> usize {
        fs::read_to_string(self.path("made")).unwrap_or_default().lines().count()
    }

    /// A command with `DIR` replaced by the directory of the host.
    pub(in crate::experiment) fn command(&self, text: &str) -> String {
        text.replace("DIR", &self.dir.path().display().to_string())
    }
}

impl ExperimentHost for ScriptHost {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    fn interrupted(&self) -> Option<i32> {
        None
    }

    fn program(&self) -> PathBuf {
        self.path("program")
    }

    fn hook_limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn dirs(&self, _arm: usize) -> Vec<PathBuf> {
        Vec::new()
    }

    fn all_dirs(&self) -> &BTreeSet<PathBuf> {
        static NONE: BTreeSet<PathBuf> = BTreeSet::new();
        &NONE
    }

    fn check_outputs(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn run_starts(&mut self, standing: &Standing<'_>) {
        self.notes.push(standing.run());
    }

    fn run_ended(&mut self, experiment: &Experiment, run: &RunEnd<'_>) {
        assert!(run.failure.is_some() || !run.metrics.is_empty(), "{}: {run:?}", experiment.arm_label(run.arm));
        self.ended.push(run.number);
    }
}

pub(in crate::experiment) fn events(folder: &Path) -> Vec<Event> {
    Journal::open(&HeldDir::open(folder).unwrap()).unwrap().1
}

pub(in crate::experiment) fn finished_runs(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| if let Event::Finished { run, .. } = event { Some(*run) } else { None }).collect()
}

/// The result of the run in progress at the moment of a kill.
const RESULTS: [&str; 5] = ["absent", "temporary", "empty", "unfinished", "complete"];

/// Makes a complete experiment of three runs. Then restores each of its states: the first `n` events, the result of the
/// run in progress in each form, and the directory `up`, on which the commands work, as `up` says for the last event.
/// Resumes each and checks that exactly three runs are complete, and that none was made whose result was complete.
fn complete_after_each_event(hooks: &[(&str, &str)], at_start: bool, up: &dyn Fn(&Event) -> &'static [bool]) {
    let mut host = ScriptHost::new();
    let hooks: Vec<_> = hooks.iter().map(|(name, text)| (*name, host.command(text))).collect();
    let (folder, dir) = (host.path("r"), host.path("up"));
    let set = |is_up: bool| {
        let _ = fs::remove_dir(&dir);
        if is_up {
            fs::create_dir(&dir).unwrap();
        }
    };
    set(at_start);
    run(&mut Folder::create(&folder, experiment(3, &hooks)).unwrap(), &mut host).unwrap();
    let toml = fs::read(folder.join("experiment.toml")).unwrap();
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let (lines, all) = (journal.lines().collect::<Vec<_>>(), events(&folder));
    assert_eq!((finished_runs(&all), host.made()), (vec![1, 2, 3], 3));
    let unfinished = text_of(&Document { complete: false, ..fixture() });
    let mut states = 0;
    for n in 1..=all.len() {
        let state = Replayed::of(&all[..n], 1).unwrap();
        let is_started = state.under_way.as_ref().is_some_and(|under_way| under_way.started);
        for result in RESULTS.iter().take(if is_started { RESULTS.len() } else { 1 }) {
            for is_up in up(&all[n - 1]) {
                let _ = fs::remove_file(host.path("made"));
                fs::remove_dir_all(&folder).unwrap();
                fs::create_dir_all(folder.join("runs")).unwrap();
                fs::create_dir_all(folder.join("hooks")).unwrap();
                fs::write(folder.join("experiment.toml"), &toml).unwrap();
                // The next event is incomplete.
                let next = lines.get(n).map_or("", |line| &line[..line.len() / 2]);
                fs::write(folder.join("journal.jsonl"), lines[..n].join("\n") + "\n" + next).unwrap();
                let done = state.runs.len();
                for run in 1..=done {
                    fs::copy(host.path("result"), folder.join(format!("runs/{run:04}.json"))).unwrap();
                }
                let file = |form: &str| folder.join("runs").join(form.replace('N', &format!("{:04}", done + 1)));
                match *result {
                    "temporary" => fs::write(file(".N.json.1234.tmp"), "{").unwrap(),
                    "empty" => fs::write(file("N.json"), "").unwrap(),
                    // The script makes further runs.
                    "unfinished" => fs::write(file("N.json"), &unfinished).unwrap(),
                    "complete" => drop(fs::copy(host.path("result"), file("N.json")).unwrap()),
                    _ => {}
                }
                set(*is_up);
                let place = format!("after {:?}, result {result}, up {is_up}", all[n - 1]);
                let mut resumed = Folder::resume(&folder, &identity(), false).unwrap();
                run(&mut resumed, &mut host).unwrap_or_else(|e| panic!("{place}: {e}"));
                drop(resumed);
                let events = events(&folder);
                assert_eq!(finished_runs(&events), [1, 2, 3], "{place}: {events:#?}");
                assert!(matches!(events.last(), Some(Event::Ended { .. })), "{place}");
                assert_eq!(host.made(), 3 - done - usize::from(*result == "complete"), "{place}");
                for run in 1..=3 {
                    let text = fs::read_to_string(folder.join(format!("runs/{run:04}.json"))).unwrap();
                    assert_eq!(crate::report::json::read(&text).unwrap().runs.len(), 1, "{place}");
                }
                let kept = fs::read_to_string(folder.join(format!("dropped/1/{:04}.json", done + 1))).ok();
                assert_eq!(kept.as_ref(), (*result == "unfinished").then_some(&unfinished), "{place}");
                assert_eq!(dir.exists(), at_start, "{place}");
                states += 1;
            }
        }
    }
    assert!(states > all.len(), "{states}");
}

/// `mkdir` and `rmdir` fail if they have been executed before, as `mount` and `umount` do.
#[test]
fn a_run_is_completed_after_a_kill_at_each_event() {
    let up = |last: &Event| -> &'static [bool] {
        match last {
            Event::HookStarted { .. } => &[false, true],
            Event::Hook { name, .. } if name == "before" => &[true],
            Event::Started { .. } => &[true],
            _ => &[false],
        }
    };
    complete_after_each_event(&[("before", "mkdir DIR/up"), ("after", "rmdir DIR/up")], false, &up);
}

/// A command that undoes a state and one that restores it, both before the run, as `umount` and `mount` are.
#[test]
fn a_run_is_completed_after_a_kill_between_two_commands_before_it() {
    let up = |last: &Event| -> &'static [bool] {
        match last {
            Event::Hook { name, .. } if name == "before" => &[false],
            Event::HookStarted { name, .. } if name == "before-a" => &[false, true],
            _ => &[true],
        }
    };
    complete_after_each_event(&[("before", "rmdir DIR/up"), ("before-a", "mkdir DIR/up")], true, &up);
}

/// Every byte: the events of each prefix of the journal give the state of the last complete event.
#[test]
fn every_prefix_of_a_journal_has_the_state_of_its_complete_events() {
    let mut host = ScriptHost::new();
    let hooks = [("before", "true".to_owned()), ("after", "true".to_owned())];
    let folder = host.path("r");
    run(&mut Folder::create(&folder, experiment(3, &hooks)).unwrap(), &mut host).unwrap();
    let (path, all) = (folder.join("journal.jsonl"), events(&folder));
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let n = whole[..cut].split(|byte| *byte == b'\n').count() - 1;
        let found = events(&folder);
        assert_eq!(found, all[..n], "{cut}");
        let state = Replayed::of(&found, 1).unwrap();
        assert_eq!(state.runs.len(), finished_runs(&found).len());
        // Each run has six events, the last of which ends it.
        let in_progress = (2..20).contains(&n) && (n - 1) % 6 != 0;
        assert_eq!(state.under_way.is_some(), in_progress, "{cut}: {:?}", found.last());
        assert!(state.under_way.is_none_or(|under_way| under_way.run == state.runs.len() + 1), "{cut}");
    }
}

#[test]
fn commands_after_a_run_are_executed_if_one_before_it_fails() {
    let mut host = ScriptHost::new();
    let hooks = [
        ("before", "mkdir DIR/up; printf 'first\\nsaid:\\n\\n  why\\n'; exit 3"),
        ("after", "rmdir DIR/up; echo after >> DIR/log; exit 4"),
    ];
    let hooks: Vec<_> = hooks.iter().map(|(name, text)| (*name, host.command(text))).collect();
    let folder = host.path("r");
    let error = run(&mut Folder::create(&folder, experiment(3, &hooks)).unwrap(), &mut host).unwrap_err();
    assert_eq!(error.to_string(), "`--before` of run 1 failed: exit status: 3: said: why");
    assert!(!host.path("up").exists() && host.path("log").exists() && host.made() == 0);
    let failed = |event: &Event| if let Event::HookFailed { name, .. } = event { Some(name.clone()) } else { None };
    assert_eq!(events(&folder).iter().filter_map(failed).collect::<Vec<_>>(), ["before", "after"]);
    // It failed without having succeeded before: it fails again.
    let error = run(&mut Folder::resume(&folder, &identity(), false).unwrap(), &mut host).unwrap_err();
    assert!(error.to_string().starts_with("`--before` of run 1 failed"), "{error}");
}

#[test]
fn the_command_after_a_run_belongs_to_each_attempt() {
    let mut host = ScriptHost::new();
    let hooks = [("before", "true"), ("after", "echo after >> DIR/log")].map(|(name, text)| (name, host.command(text)));
    let folder = host.path("r");
    let mut created = Folder::create(&folder, experiment(1, &hooks)).unwrap();
    // The first attempt failed, and its commands were executed; the second was killed.
    let times = CommandTimes { seconds: 0.1, ..CommandTimes::default() };
    let hook = |name: &str| Event::Hook { run: 1, name: name.to_owned(), times };
    let begun = |name: &str| Event::HookStarted { run: 1, name: name.to_owned(), arm: None };
    let started = || Event::Started { run: 1, arm: 0, control: None, mounts: Vec::new(), time: now() };
    for event in
        [begun("before"), hook("before"), started(), begun("after"), hook("after"), begun("before"), hook("before")]
    {
        created.write(&event).unwrap();
    }
    drop(created);
    run(&mut Folder::resume(&folder, &identity(), false).unwrap(), &mut host).unwrap();
    // Once for the killed attempt, once for the run.
    assert_eq!(fs::read_to_string(host.path("log")).unwrap(), "after\nafter\n");
}

#[test]
fn a_command_after_a_run_that_failed_is_executed_again() {
    let mut host = ScriptHost::new();
    let hooks = [("after", host.command("echo after >> DIR/log; test -e DIR/go"))];
    let folder = host.path("r");
    run(&mut Folder::create(&folder, experiment(1, &hooks)).unwrap(), &mut host).unwrap_err();
    fs::write(host.path("go"), "").unwrap();
    run(&mut Folder::resume(&folder, &identity(), false).unwrap(), &mut host).unwrap();
    assert_eq!(fs::read_to_string(host.path("log")).unwrap(), "after\nafter\n");
    assert_eq!((host.made(), finished_runs(&events(&folder))), (1, vec![1]), "the run itself was complete");
}

/// The budget of an experiment holds for all calls, unless a call has one of its own.
#[test]
fn a_budget_is_what_earlier_calls_have_left() {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let wanted = Experiment { budget: Some(60.0), ..experiment(2, &[]) };
    let mut created = Folder::create(&folder, wanted).unwrap();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(budget(&created, &host), seconds(60));
    run(&mut created, &mut host).unwrap();
    for (each, left) in [(20.0, 20), (40.0, 0)] {
        created.runs.iter_mut().for_each(|run| run.seconds = Some(each));
        assert_eq!(budget(&created, &host), seconds(left));
    }
    // A folder without a budget that the budget of a call has ended.
    drop(created);
    let mut resumed = Folder::resume(&folder, &identity(), false).unwrap();
    Arc::make_mut(&mut resumed.experiment).budget = None;
    assert_eq!(budget(&resumed, &host), seconds(0));
    resumed.was_complete = false;
    assert_eq!(budget(&resumed, &host), None);
    host.budget = seconds(5);
    assert_eq!(budget(&resumed, &host), seconds(5));
}

#[test]
fn the_end_of_a_pilot_is_a_number_of_blocks_and_a_time() {
    let mut design = Design::new(&experiment(2, &[]));
    assert_eq!(design.time_up_to(9), None);
    (0..2).for_each(|_| design.take(0, &[1.0], Some(60.0)));
    assert_eq!(design.time_up_to(13).map(time_left).as_deref(), Some("11m left"));
    assert_eq!(pilot_text((16, Some(16))), "the pilot asks for 16 blocks");
    assert_eq!(pilot_text((60, Some(143))), "the pilot asks for 143 blocks; at most 60 are made");
    assert!(pilot_text((60, None)).contains("more than 1000 blocks"));
}
