//! Tests that a factorial experiment with commands in all scopes is completed after a kill or a reboot at each event of
//! its journal: the same runs in the same cells, none twice, each inside its scopes.
//!
//! The program is a shell script that fails outside its scopes. `WMLRUN_LONG=1` tests every event of the journal of
//! 2 × 3 cells with 3 runs each, otherwise the last events and a sample of the others.

#![allow(clippy::unwrap_used, clippy::float_cmp)]
use super::design_tests::factorial;
use super::hooks::HookTime;
use super::journal::Event;
use super::replay::Replayed;
use super::runner::run;
use super::runner::tests::{ScriptHost, events, finished_runs, identity};
use super::scopes::{HookScope, ScopeHook};
use super::wanted::{Arm, Experiment};
use super::{Folder, Identity, RecordedExperiment};
use crate::import::{CommandTimes, Observation, RecordTimes};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The directories that the commands of the scopes make and remove.
const DIRS: [&str; 4] = ["disk", "block", "mount", "busy"];

/// Returns an experiment whose runs need the directories of all scopes. `once` grows with each level, and is not undone.
fn experiment(host: &ScriptHost, in_order: bool) -> Experiment {
    let hook = |name: &str, scope, dir: &str, is_undone: bool| {
        let (make, remove) = match is_undone {
            true => (format!("mkdir DIR/{dir}"), Some(host.command(&format!("rmdir DIR/{dir}")))),
            false => (format!("echo $WMLRUN_LEVEL_f0 >> DIR/{dir}"), None),
        };
        let before = Some(host.command(&make));
        ScopeHook {
            name: name.to_owned(),
            origin: "x.toml:1".to_owned(),
            after_origin: "x.toml:2".to_owned(),
            before,
            after: remove,
            time_limit: None,
            scope,
        }
    };
    let level = |factor| HookScope::Level { factor, level: None };
    let mut scopes = vec![hook("experiment", HookScope::Experiment, "disk", true)];
    if !in_order {
        scopes.push(hook("block", HookScope::Block, "block", true));
    }
    scopes.push(hook("level-f0", level(0), "mount", true));
    scopes.push(hook("level-f0-2", level(0), "once", false));
    scopes.push(hook("run", HookScope::Run, "busy", true));
    let needed: Vec<String> =
        DIRS.iter().filter(|dir| !in_order || **dir != "block").map(|dir| format!("test -d DIR/{dir}")).collect();
    // The program is a shell script, to which the arguments of an arm are given.
    let program = host.path("program");
    let made = fs::read_to_string(&program).unwrap();
    if !made.contains("test -d") {
        fs::write(&program, host.command(&(needed.join(" && ") + " || exit 7\n")) + &made).unwrap();
    }
    let described = factorial(&[2, 3], (3, 3), None, in_order);
    let arms = described.arms.iter().map(|arm| Arm { name: format!("cell {}", arm.name), ..arm.clone() }).collect();
    Experiment { arms, scopes, identity: in_boot("first"), ..described }
}

/// The conditions in the boot with this ID.
fn in_boot(id: &str) -> Identity {
    Identity { boot: id.to_owned(), ..identity() }
}

/// Returns the runs that were started, with their arms; the last attempt of each counts.
fn order(events: &[Event]) -> Vec<(u64, u64)> {
    let mut found = std::collections::BTreeMap::new();
    for event in events {
        if let Event::Started { run, arm, .. } = event {
            found.insert(*run, *arm);
        }
    }
    found.into_iter().collect()
}

/// Returns the directories that exist after these events: each was made and not yet removed.
fn dirs_after(events: &[Event]) -> BTreeSet<&'static str> {
    let dir = |name: &str| match name.split_once('-').map(|(_, base)| base) {
        Some("experiment") => Some("disk"),
        Some("block") => Some("block"),
        Some("level-f0") => Some("mount"),
        Some("run") => Some("busy"),
        _ => None,
    };
    let mut up = BTreeSet::new();
    for event in events {
        if let Event::Hook { name, .. } = event
            && let Some(dir) = dir(name)
        {
            if name.starts_with("before") {
                up.insert(dir)
            } else {
                up.remove(dir)
            };
        }
    }
    up
}

/// Restores the state of the folder and of the directories after the first `n` events. `is_remounted`: the directories
/// are gone, as mounts are after a reboot. The run in progress has a result if `has_result` is set.
fn restore(host: &ScriptHost, folder: &Path, journal: &str, n: usize, is_remounted: bool, has_result: bool) {
    let lines: Vec<&str> = journal.lines().collect();
    let all: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let description = fs::read(folder.join("experiment.toml")).unwrap();
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir_all(folder.join("runs")).unwrap();
    fs::create_dir_all(folder.join("hooks")).unwrap();
    fs::write(folder.join("experiment.toml"), description).unwrap();
    fs::write(folder.join("journal.jsonl"), lines[..n].join("\n") + "\n").unwrap();
    let state = Replayed::of(&all[..n], 6).unwrap();
    for run in 1..=state.runs.len() + usize::from(has_result) {
        fs::copy(host.path("result"), folder.join(format!("runs/{run:04}.json"))).unwrap();
    }
    let up = dirs_after(&all[..n]);
    for dir in DIRS {
        let _ = fs::remove_dir(host.path(dir));
        if up.contains(dir) && !is_remounted {
            fs::create_dir(host.path(dir)).unwrap();
        }
    }
    let once = |event: &&Event| matches!(event, Event::Hook { name, .. } if name == "before-level-f0-2");
    fs::write(host.path("once"), "x\n".repeat(all[..n].iter().filter(once).count())).unwrap();
    let _ = fs::remove_file(host.path("made"));
}

/// Makes the experiment, and completes it after each of the events that `is_tested` chooses.
fn complete_after(in_order: bool, is_tested: impl Fn(usize) -> bool) {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let described = experiment(&host, in_order);
    run(&mut Folder::create(&folder, described).unwrap(), &mut host).unwrap();
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let whole = events(&folder);
    assert_eq!((finished_runs(&whole).len(), host.made()), (18, 18));
    let expected = order(&whole);
    let levels = fs::read_to_string(host.path("once")).unwrap().lines().count();
    // Of the last events each is tested, because few runs are to be made after them.
    for n in (1..=whole.len()).filter(|n| is_long() || is_tested(*n) || n + 14 > whole.len()) {
        let state = Replayed::of(&whole[..n], 6).unwrap();
        let is_started = state.under_way.as_ref().is_some_and(|under_way| under_way.started);
        for is_remounted in [false, true] {
            let has_result = is_started && is_remounted;
            restore(&host, &folder, &journal, n, is_remounted, has_result);
            let place = format!("in order {in_order}, after event {n}, {:?}, remounted {is_remounted}", whole[n - 1]);
            let boot = in_boot(if is_remounted { "second" } else { "first" });
            let mut resumed = Folder::resume(&folder, &boot, false).unwrap();
            let found = run(&mut resumed, &mut host).unwrap_or_else(|e| panic!("{place}: {e}"));
            drop(resumed);
            // The result says which runs were made before the reboot, also one that was found complete after it.
            let before = state.runs.len() + usize::from(has_result);
            let note = format!("the machine was rebooted between runs {before} and {}", before + 1);
            let is_noted = is_remounted && (1..18).contains(&before);
            assert_eq!(found.notes, if is_noted { vec![note] } else { Vec::new() }, "{place}");
            let now = events(&folder);
            assert_eq!(finished_runs(&now), (1..=18).collect::<Vec<u64>>(), "{place}: {now:#?}");
            assert_eq!(order(&now), expected, "{place}");
            assert_eq!(host.made(), 18 - state.runs.len() - usize::from(has_result), "{place}");
            let stays: Vec<&str> = DIRS.into_iter().filter(|dir| host.path(dir).exists()).collect();
            assert!(stays.is_empty(), "{place}: {stays:?} stay");
            if in_order {
                // A command that nothing undoes is not repeated, even if the experiment is interrupted in its scope.
                let text = fs::read_to_string(host.path("once")).unwrap();
                assert_eq!(text.lines().count(), levels, "{place}");
            }
        }
    }
}

fn is_long() -> bool {
    std::env::var_os("WMLRUN_LONG").is_some()
}

#[test]
fn blocks_are_completed_after_a_kill_at_each_event() {
    complete_after(false, |n| n % 59 == 3);
}

#[test]
fn runs_in_order_are_completed_after_a_kill_at_each_event() {
    complete_after(true, |n| n % 59 == 5);
}

#[test]
fn scopes_begin_and_end_around_their_runs() {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let described = experiment(&host, true);
    run(&mut Folder::create(&folder, described).unwrap(), &mut host).unwrap();
    let names: Vec<String> = events(&folder)
        .iter()
        .filter_map(|event| match event {
            Event::Hook { name, .. } => Some(name.clone()),
            Event::Started { arm, .. } => Some(arm.to_string()),
            _ => None,
        })
        .collect();
    let of_run = |arm: &str| ["before-run", arm, "after-run"].map(str::to_owned);
    let mut expected: Vec<String> =
        ["before-experiment", "before-level-f0", "before-level-f0-2"].map(str::to_owned).to_vec();
    for arm in ["0", "1", "2"] {
        (0..3).for_each(|_| expected.extend(of_run(arm)));
    }
    expected.extend(["after-level-f0", "before-level-f0", "before-level-f0-2"].map(str::to_owned));
    for arm in ["3", "4", "5"] {
        (0..3).for_each(|_| expected.extend(of_run(arm)));
    }
    expected.extend(["after-level-f0", "after-experiment"].map(str::to_owned));
    assert_eq!(names, expected);
    assert_eq!(fs::read_to_string(host.path("once")).unwrap(), "0\n1\n");
}

/// Returns the number of events up to the first that is one of these.
fn up_to(events: &[Event], is: impl Fn(&Event) -> bool) -> usize {
    events.iter().position(is).unwrap() + 1
}

#[test]
fn what_was_not_recorded_is_recorded_later_or_the_run_is_made_again() {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let mut described = experiment(&host, true);
    described.records = vec![host.command("test -d DIR/mount && echo $WMLRUN_RUN")];
    run(&mut Folder::create(&folder, described).unwrap(), &mut host).unwrap();
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let whole = events(&folder);
    let started = up_to(&whole, |event| matches!(event, Event::Started { run: 2, .. }));
    let is_recorded = |event: &Event| matches!(event, Event::Recorded { run: 2, .. });
    let recorded = up_to(&whole, is_recorded);
    // The output of the second run, and the number of the runs that are made.
    for (n, boot, output, made) in
        [(started, "first", true, 16), (started, "second", true, 17), (recorded, "second", false, 16)]
    {
        restore(&host, &folder, &journal, n, boot == "second", true);
        host.notes.clear();
        run(&mut Folder::resume(&folder, &in_boot(boot), false).unwrap(), &mut host).unwrap();
        let place = format!("after event {n}, in the {boot} boot: {:?}", host.notes);
        assert_eq!(host.made(), made, "{place}");
        assert_eq!(host.notes.iter().any(|note| note.starts_with("run 2 is made again: ")), made == 17, "{place}");
        let text = fs::read_to_string(folder.join("records/0002-1.txt")).ok();
        assert_eq!(text.as_deref(), output.then_some("2\n"), "{place}");
        assert_eq!(events(&folder).iter().filter(|event| is_recorded(event)).count(), 1, "{place}");
    }
}

#[test]
fn the_times_of_commands_are_figures_of_their_run() {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let mut described = experiment(&host, false);
    described.metrics =
        ["after-run.seconds", "after-run.user", "record-1.seconds", "record-1.system"].map(str::to_owned).to_vec();
    described.records = vec!["true".to_owned()];
    let found = run(&mut Folder::create(&folder, described).unwrap(), &mut host).unwrap();
    let whole = events(&folder);
    let time = |number: u64| {
        let of_run = |event: &Event| match event {
            Event::Hook { run, name, times } if *run == number && name == "after-run" => Some(*times),
            _ => None,
        };
        whole.iter().find_map(of_run).unwrap()
    };
    let recorded = RecordedExperiment::read(&folder).unwrap();
    assert_eq!(recorded.runs.len(), 18);
    for run in &recorded.runs {
        let (figures, times) = (&run.observation.figures, time(run.number));
        assert_eq!(figures["after-run.seconds"], times.seconds, "{run:?}");
        assert_eq!(
            (figures.get("after-run.user"), figures.get("after-run.system")),
            (times.user.as_ref(), times.system.as_ref())
        );
        assert!(times.user.is_some() && figures.contains_key("record-1.system"), "{run:?}");
    }
    // The figures are the same while the experiment runs, and when it is resumed.
    let again = run(&mut Folder::resume(&folder, &in_boot("first"), false).unwrap(), &mut host).unwrap();
    for of in [&found, &again] {
        let times =
            |runs: &Vec<Observation>| -> Vec<f64> { runs.iter().map(|run| run.figures["after-run.seconds"]).collect() };
        let by_arm: Vec<Vec<f64>> = of.observations().iter().map(times).collect();
        let expected = recorded.by_arm();
        let expected =
            expected.iter().map(|runs| runs.iter().map(|run| time(run.number).seconds).collect::<Vec<f64>>());
        assert_eq!(by_arm, expected.collect::<Vec<_>>());
        assert!(of.observations().iter().flatten().all(|run| run.figures["record-1.seconds"] >= 0.0));
        // The first run of another scope has the times of the command before it, the last one of that after it.
        let of_commands = |run: &Observation| {
            let is_of_command = |name: &str| name.ends_with(".seconds") && name != "record-1.seconds";
            run.figures.iter().filter(|(name, _)| is_of_command(name)).map(|(n, s)| (n.clone(), *s)).collect::<Vec<_>>()
        };
        let live: Vec<Vec<_>> = of.observations().iter().flatten().map(of_commands).collect();
        let read: Vec<Vec<_>> = recorded.by_arm().iter().flatten().map(|run| of_commands(&run.observation)).collect();
        assert_eq!(live, read);
        let runs_with = |name: &str| live.iter().flatten().filter(|(found, _)| found.as_str() == name).count();
        let names = ["before-experiment", "after-experiment", "before-run", "after-run"];
        assert_eq!(names.map(|name| runs_with(&format!("{name}.seconds"))), [1, 1, 18, 18], "{live:?}");
    }
    assert_eq!(host.ended, (1..=18).collect::<Vec<usize>>());
}

/// A run that is made again has the times of its own commands, and the space after itself.
#[test]
fn what_followed_an_earlier_attempt_is_no_figure_of_the_run() {
    let hook = |name: &str| Event::Hook {
        run: 1,
        name: name.to_owned(),
        times: CommandTimes { seconds: 9.0, ..CommandTimes::default() },
    };
    let mut times = RecordTimes::default();
    times.push(CommandTimes { seconds: 9.0, ..CommandTimes::default() });
    let recorded = Event::Recorded { run: 1, times };
    let space = |time| Event::Space { run: 1, time, used: 4096 };
    let started = || Event::Started { run: 1, arm: 0, control: None, mounts: Vec::new(), time: String::new() };
    let begin = [space(HookTime::Before), hook("before-x"), started()];
    let end = [space(HookTime::After), recorded, hook("after-x")];
    let figures = |events: &[&[Event]]| {
        let state = Replayed::of(&events.concat(), 1).unwrap();
        let mut observation = Observation::default();
        state.under_way.unwrap().figures.add_to(&mut observation);
        observation.figures.into_keys().collect::<Vec<String>>()
    };
    let all = ["after-x.seconds", "before-x.seconds", "record-1.seconds", "space.after", "space.before"];
    assert_eq!(figures(&[&begin, &end]), all);
    assert_eq!(figures(&[&begin, &end, &begin]), ["before-x.seconds", "space.before"]);
    assert_eq!(figures(&[&begin, &end, &begin, &end]), all);
}

/// A program that ends without the result of a failure gives no result of a cell. The experiment stops, and continues
/// with the same run.
#[test]
fn a_failed_run_is_a_result_if_it_has_written_one() {
    const FAILED: &str = "sed 's/\"complete\"/\"failed\"/' DIR/result > $file;";
    const REFUSED: &str = r#"echo '{"schema": "wmlrun.result/1", "runs": []}' > $file;"#;
    // The run is complete, but not what the program does after it.
    const COMPLETE: &str = "cp DIR/result $file;";
    for (result, end, is_result) in [
        (FAILED, "exit 1", true),
        (COMPLETE, "exit 1", false),
        (COMPLETE, "kill -9 $$", false),
        (REFUSED, "exit 3", true),
        ("echo {} > $file;", "exit 1", false),
        ("", "exit 1", false),
        ("", "kill -9 $$", false),
        ("", "exit 3", false),
        ("", "exit 126", false),
        ("", "exit 127", false),
    ] {
        let mut host = ScriptHost::new();
        let (folder, program) = (host.path("r"), host.path("program"));
        let text = fs::read_to_string(&program).unwrap();
        let (arguments, rest) = text.split_once('\n').unwrap();
        let fails = "test -e DIR/go || { RESULT echo 'error: no room'; END; }";
        let fails = host.command(&fails.replace("RESULT", result).replace("END", end));
        fs::write(&program, format!("{arguments}\n{fails}\n{rest}")).unwrap();
        let found = run(&mut Folder::create(&folder, factorial(&[2], (1, 1), None, false)).unwrap(), &mut host);
        let whole = events(&folder);
        let failed =
            whole.iter().filter(|event| matches!(event, Event::Failed { why, .. } if why == "no room")).count();
        let place = format!("{end}, {result:?}: {whole:#?}");
        if is_result {
            assert!(failed == 2 && found.is_ok(), "{place}");
            continue;
        }
        let error = found.unwrap_err().to_string();
        assert!(error.starts_with("run 1 ") && error.ends_with("no room") && failed == 0, "{error}: {place}");
        assert!(matches!(whole.last(), Some(Event::Stopped { .. })), "{place}");
        fs::write(host.path("go"), "").unwrap();
        run(&mut Folder::resume(&folder, &identity(), false).unwrap(), &mut host).unwrap();
        let made = if result == COMPLETE { 1 } else { 2 };
        assert_eq!((finished_runs(&events(&folder)), host.made()), (vec![1, 2], made), "{place}");
    }
}

#[test]
fn all_scopes_end_when_a_command_fails() {
    let mut host = ScriptHost::new();
    let folder = host.path("r");
    let mut described = experiment(&host, true);
    let last = described.scopes.last_mut().unwrap();
    last.before = Some(host.command("mkdir DIR/busy; test $WMLRUN_RUN != 2 || { echo no space; exit 9; }"));
    let error = run(&mut Folder::create(&folder, described).unwrap(), &mut host).unwrap_err();
    assert_eq!(error.to_string(), "x.toml:1: `before` of run 2 failed: exit status: 9: no space");
    assert!(DIRS.iter().all(|dir| !host.path(dir).exists()));
    assert_eq!(finished_runs(&events(&folder)), [1]);
}
