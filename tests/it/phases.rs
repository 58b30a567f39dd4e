//! Tests `phase=`: the processes of a phase start when all threads of the previous phase have ended, and each phase has
//! its own time.

use std::fs;

use serde_json::Value;

use crate::cmd::{Output, Wml, flowop, number};

const SCRIPT: &str = "# dialect: fsl\nset mode quit alldone\nset $pause=1\n\
    define fileset name=pool,path=$dir,entries=100,dirwidth=10,size=1k\n\
    define process name=removes,phase=7 { thread name=t {\n\
    flowop deletefile name=delete,filesetname=pool\n\
    flowop finishoncount name=end,value=30,target=delete } }\n\
    define process name=makes { thread name=t {\n\
    flowop createfile name=create,filesetname=pool,fd=1\n\
    flowop closefile name=close,fd=1\n\
    flowop finishoncount name=end,value=40,target=close } }\n\
    define process name=waits,instances=2,phase=3 { thread name=t,instances=2 {\n\
    flowop delay name=delay,value=$pause\n\
    flowop statfile name=stat,filesetname=pool\n\
    flowop finishoncount name=end,value=1,target=stat } }\n";

fn phases(run: &Value) -> Vec<(u64, Option<f64>, f64, bool)> {
    let one = |phase: &Value| {
        let (start, seconds) = (phase["start_seconds"].as_f64(), phase["seconds"].as_f64().unwrap());
        (phase["number"].as_u64().unwrap(), start, seconds, phase["complete"] == true)
    };
    run["phases"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_phase_starts_when_the_previous_one_has_ended() {
    let call = Wml::new().idle().file("x.wml", SCRIPT).folder("d").sets(&[("dir", "d")]);
    let output = call.args(["x.wml", "--runtime", "60", "--trace", "trace:100"]).result().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "all threads done", "{}", output.shown());
    let phases = phases(&run);
    assert_eq!(phases.iter().map(|p| (p.0, p.3)).collect::<Vec<_>>(), [(1, true), (3, true), (7, true)]);
    for pair in phases.windows(2) {
        let (start, end) = (pair[1].1.unwrap(), pair[0].1.unwrap() + pair[0].2);
        assert!((start - end).abs() < 1e-6, "{pair:?}");
    }
    assert!(phases[1].2 >= 1.0, "a second is waited for in the second one: {phases:?}");
    // Rates are over the phase: 30 files in what is a small part of the run.
    let delete = flowop(&run, "delete");
    assert_eq!((&delete["ops"], &delete["phase"]), (&30.into(), &7.into()));
    let rate = number(delete, &["ops_per_s"]);
    assert!((rate * phases[2].2 - 30.0).abs() < 1e-6, "{rate} a second in {phases:?}");
    assert!(output.stdout.contains("phases: "), "{}", output.stdout);
    // Nothing was there to remove before the files were made.
    let left = fs::read_dir(output.dir().join("d/pool")).unwrap();
    let files = left.filter_map(Result::ok).map(|e| e.path()).filter(|p| p.is_dir());
    let files: usize = files.map(|p| fs::read_dir(p).unwrap().flatten().filter(|e| e.path().is_file()).count()).sum();
    assert_eq!(files, 10);
}

#[test]
fn a_run_that_has_ended_starts_no_phase() {
    let call = Wml::new().idle().file("x.wml", SCRIPT).args(["x.wml", "--runtime", "1"]).sets(&[("pause", "60")]);
    let output = call.result().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "time", "{}", output.shown());
    let phases = phases(&run);
    assert_eq!(phases.iter().map(|p| (p.0, p.3)).collect::<Vec<_>>(), [(1, true), (3, false), (7, false)]);
    assert!(phases[1].1.is_some() && phases[2].1.is_none(), "{phases:?}");
    assert_eq!(flowop(&run, "delete")["ops"], 0);
}

/// The script with a second phase of these flowops, whose run ends with that status.
fn second_phase_of(flowop: &str, status: i32) -> (Value, String) {
    let script = format!(
        "# dialect: fsl\nset mode quit alldone\ndefine file name=f,path=$dir,size=64k,prealloc\n\
         define process name=a {{ thread name=t {{\nflowop read name=r,filename=f,iosize=4k,iters=10\n\
         flowop finishoncount name=end,value=1 }} }}\n\
         define process name=b,phase=2 {{ thread name=t {{\nflowop {flowop} }} }}\n\
         define process name=c,phase=3 {{ thread name=t {{\nflowop read name=late,filename=f,iosize=4k,iters=10\n\
         flowop finishoncount name=end,value=1 }} }}\n"
    );
    let output = Wml::new().idle().file("x.wml", &script).args(["x.wml"]).result().run().exits(status);
    (output.only_run(), output.stderr)
}

#[test]
fn a_failure_in_a_later_phase_fails_the_run() {
    let (run, said) = second_phase_of("closefile name=bad,fd=5", 1);
    assert_eq!(run["state"], "failed", "{said}");
    assert!(said.contains("b/t/bad"), "{said}");
    assert_eq!(phases(&run).iter().map(|p| p.3).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(flowop(&run, "late")["ops"], 0);
}

#[test]
fn threads_that_wait_for_one_another_in_a_later_phase_are_stuck() {
    let (run, said) = second_phase_of("semblock name=never,value=1", 1);
    assert_eq!(run["state"], "stuck", "{said}");
    assert!(said.contains("b/t/never"), "{said}");
    assert_eq!(flowop(&run, "r")["ops"], 10);
}

/// Two phases with a length: in the first, threads read, sleep, wait for one another, for a file, and for an event.
const TIMED: &str = "# dialect: fsl\nset mode quit alldone\nset $for=1\nset $start=2.5\neventgen rate=1\n\
    define fileset name=data,path=$dir,entries=20,dirwidth=5,size=16k,prealloc\n\
    define fileset name=none,path=$dir,entries=20,dirwidth=5,size=1k,prealloc\n\
    define process name=first,for=$for {\n\
    thread name=reads,instances=2 { flowop read name=read,filesetname=data,iosize=4k }\n\
    thread name=sleeps { flowop delay name=delay,value=1000 }\n\
    thread name=blocks { flowop block name=block }\n\
    thread name=wakes { flowop delay name=long,value=1000 flowop wakeup name=wake,target=block }\n\
    thread name=starves { flowop deletefile name=take,filesetname=none,maystarve }\n\
    thread name=makes { flowop delay name=longer,value=1000 flowop createfile name=make,filesetname=none,fd=1 }\n\
    thread name=claims { flowop eventlimit name=claim flowop eventlimit name=again,iters=1000 }\n\
    thread name=idles { flowop statfile name=never,filesetname=data,iters=0 } }\n\
    define process name=second,phase=2,start=$start,for=0.5 {\n\
    thread name=paced,rate=100 { flowop statfile name=stat,filesetname=data } }\n\
    define process name=third,phase=3 { thread name=t {\n\
    flowop statfile name=last,filesetname=data\nflowop finishoncount name=end,value=5 } }\n";

fn timed(args: &[&str], sets: &[(&str, &str)]) -> Output {
    Wml::new().idle().file("x.wml", TIMED).args(["x.wml"]).args(args).sets(sets).result().run().exits(0)
}

/// The messages of the warnings with a code.
fn warned(run: &Value, code: &str) -> Vec<String> {
    let all = run["warnings"].as_array().unwrap().iter().filter(|note| note["code"] == code);
    all.map(|note| note["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_length_ends_the_threads_of_a_phase_wherever_they_wait() {
    let output = timed(&[], &[]);
    let run = output.only_run();
    assert_eq!((&run["state"], &run["ended_by"]), (&"complete".into(), &"all threads done".into()));
    let phases = phases(&run);
    assert!(phases.iter().all(|phase| phase.3), "{phases:?}");
    for (phase, length) in phases.iter().zip([1.0, 0.5]) {
        assert!((phase.2 - length).abs() < 1e-6, "{phases:?}");
    }
    // The second one waits for its start, and offers what its rate asks for in its own time.
    assert!((phases[1].1.unwrap() - 2.5).abs() < 1e-6, "{phases:?}");
    assert!(phases[2].1.unwrap() >= 3.0 - 1e-6, "{phases:?}");
    let offered = number(&run, &["open_loop", "offered_per_s"]) * phases[1].2;
    assert!((offered - 50.0).abs() <= 1.0, "{offered} of 50 requests");
    assert_eq!(flowop(&run, "take")["ops"], 20);
    assert!(number(flowop(&run, "last"), &["ops"]) > 0.0);
    for code in ["exhausted", "phase_late", "phase_not_started"] {
        assert_eq!(warned(&run, code), [""; 0], "{}", output.shown());
    }
    let plan = Wml::new().file("x.wml", TIMED).args(["plan", "-v", "x.wml"]).run().exits(0).stdout;
    assert!(plan.contains("process second × 1, phase 2, from 2.5 s, for 0.5 s"), "{plan}");
}

#[test]
fn phases_never_overlap_and_a_late_one_is_reported() {
    let output = timed(&[], &[("start", "0.2")]);
    let run = output.only_run();
    let phases = phases(&run);
    assert!(phases[1].1.unwrap() >= 1.0 - 1e-6, "{phases:?}");
    let [late] = &warned(&run, "phase_late")[..] else { panic!("{}", output.shown()) };
    assert!(late.starts_with("phase 2 began ") && late.contains(" after its `start=`"), "{late}");
    assert!(output.stdout.contains("warning[phase_late]"), "{}", output.shown());
}

#[test]
fn a_phase_that_did_not_start_is_reported_in_every_format() {
    let output = timed(&["--runtime", "1.5"], &[]);
    let run = output.only_run();
    assert_eq!(phases(&run).iter().map(|p| p.1.is_some()).collect::<Vec<_>>(), [true, false, false]);
    let [note] = &warned(&run, "phase_not_started")[..] else { panic!("{}", output.shown()) };
    assert!(note.starts_with("phases 2, 3 did not start; "), "{note}");
    assert!(output.stdout.contains("warning[phase_not_started]: phases 2, 3 did not start"), "{}", output.stdout);
    assert!(output.stdout.contains("result: phases 2, 3 not started, "), "{}", output.stdout);
    for format in ["filebench", "csv"] {
        let output = timed(&["--runtime", "1.5", "--format", format], &[]);
        assert!(output.stderr.contains("warning: phases 2, 3 did not start"), "{}", output.shown());
    }
}

/// The run time bounds all phases.
#[test]
fn a_run_time_ends_a_phase_before_its_length() {
    let output = timed(&["--runtime", "1"], &[("for", "600")]);
    let run = output.only_run();
    assert_eq!(run["ended_by"], "time", "{}", output.shown());
    let seconds = phases(&run)[0].2;
    assert!((seconds - 1.0).abs() < 1e-6, "{seconds}");
    let cut = "phase 1 was not complete: the run ended after 1.0 s of its 600 s";
    assert_eq!(warned(&run, "phase_not_complete"), [cut], "{}", output.shown());
    assert!(output.stdout.contains("warning[phase_not_complete]"), "{}", output.shown());
}

/// The first line of a run says how long it lasts: what its phases take, unless its own time is shorter.
#[test]
fn the_length_of_a_run_is_that_of_its_phases() {
    let phase = |n: u32, time: &str| {
        format!(
            "define process name=p{n},phase={n}{time} {{ thread name=t {{ flowop delay name=d,value=0.01\nflowop finishoncount name=e,value=5 }} }}\n"
        )
    };
    let both = format!("set mode quit alldone\n{}{}", phase(1, ",for=0.2"), phase(2, ",start=0.4,for=0.1"));
    let open = format!("set mode quit alldone\n{}{}", phase(1, ",for=0.2"), phase(2, ""));
    let one = format!("set mode quit alldone\n{}", phase(1, ",for=0.2"));
    for (script, args, time) in [
        (&both, &[][..], "for 0.5 s in 2 phases"),
        (&both, &["--runtime", "0.3"], "for 0.3 s"),
        (&both, &["--runtime", "60"], "for 0.5 s in 2 phases"),
        (&open, &[], "until its work is done"),
        (&one, &[], "for 0.2 s"),
    ] {
        let output = Wml::new().idle().file("x.wml", script).args(["x.wml"]).args(args).run().exits(0);
        assert!(output.stderr.contains(&format!("running {time}: ")), "{}", output.shown());
    }
}

#[test]
fn a_run_that_nothing_ends_says_so() {
    let script = "set mode quit alldone\ndefine file name=f,path=$dir,size=64k,prealloc\n\
        define process name=p { thread name=t { flowop read name=read,filename=f,iosize=4k } }\n";
    let mut running = Wml::new().file("x.wml", script).args(["x.wml"]).alone().start();
    running.wait_until_reading();
    running.signal(rustix::process::Signal::INT);
    let output = running.wait().exits(130);
    let told = "running without a time limit, and nothing else ends it: ";
    assert!(output.stderr.contains(told), "{}", output.shown());
}

/// A single phase with a start is measured from there, and one with a length ends the run.
#[test]
fn a_single_phase_may_have_a_start_and_a_length() {
    let script = "# dialect: fsl\nset mode quit alldone\ndefine file name=f,path=$dir,size=64k,prealloc\n\
        define process name=p,start=1,for=0.5 { thread name=t,stonewall=600 {\n\
        flowop read name=read,filename=f,iosize=4k } }\n\
        define process name=q,phase=2 { thread name=u,iterationsof=t { flowop statfile name=stat,filesetname=f } }\n";
    let single: String =
        script.lines().filter(|line| !line.contains("phase=2")).map(|line| format!("{line}\n")).collect();
    for (script, phases_wanted) in [(single.as_str(), 1), (script, 2)] {
        let output = Wml::new().idle().file("x.wml", script).args(["x.wml"]).result().run().exits(0);
        let run = output.only_run();
        let phases = phases(&run);
        assert_eq!(phases.len(), phases_wanted, "{}", output.shown());
        assert!((phases[0].1.unwrap() - 1.0).abs() < 1e-6 && (phases[0].2 - 0.5).abs() < 1e-6, "{phases:?}");
        let read = flowop(&run, "read");
        assert!((number(read, &["ops_per_s"]) * phases[0].2 - number(read, &["ops"])).abs() < 1e-3, "{read}");
        if phases_wanted == 2 {
            assert_eq!(flowop(&run, "stat")["ops"], read["ops"], "a stonewall is not waited for");
        }
    }
}
