//! Tests `phase=`: the processes of a phase start when all threads of the previous phase have ended, and each phase has
//! its own time.

use std::fs;

use serde_json::Value;

use crate::cmd::{Wml, flowop, number};

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
    assert!(output.stdout.contains("phases "), "{}", output.stdout);
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
