//! Tests the flowop `command`: its programs are timed, need permission, and end with the run.

use std::fs;

use rustix::process::Signal;

use crate::cmd::{Output, Wml, flowop, number};
use crate::signals::{SLEEPS, lives, wait_for};
use crate::strace;

fn script(command: &str, rest: &str) -> String {
    let command = command.replace('$', "\\$");
    format!(
        "# dialect: fsl\nset mode quit alldone\n\
         define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
         define process name=p {{ thread name=t {{\n\
         flowop command name=c,value=\"{command}\"\n{rest}\n}} }}\n"
    )
}

const THREE_TIMES: &str = "flowop finishoncount name=end,value=3,target=c";

fn call(text: &str) -> Wml {
    Wml::new().file("x.wml", text).args(["x.wml", "--runtime", "60", "--no-quiesce"])
}

#[test]
fn without_permission_nothing_is_created_or_started() {
    let output = call(&script("touch started", THREE_TIMES)).args(["--dir", "d"]).run().exits(3);
    assert!(output.stderr.contains("x.wml:5:") && output.stderr.contains("--allow-system"), "{}", output.shown());
    assert_eq!(output.left(), ["x.wml"]);
    // It is told by who checks the script too, and the null engine starts none.
    let output = Wml::new().file("x.wml", &script("touch started", THREE_TIMES)).args(["check", "x.wml"]).run();
    assert!(output.stderr.contains("runs a command of the shell"), "{}", output.shown());
    let output = call(&script("touch started", THREE_TIMES)).args(["--engine", "null"]).run().exits(0);
    assert_eq!(output.left(), ["x.wml"]);
}

fn allowed(text: &str) -> Wml {
    call(text).args(["--allow-system"]).result()
}

/// Who ignores the signal of ended programs passes that on.
#[test]
fn programs_are_waited_for_if_the_caller_ignores_their_end() {
    let text = "system \"echo ran; exit 0\"\n";
    let call = Wml::new().file("x.wml", text).under(["sh", "-c", "trap '' CHLD; exec \"$0\" \"$@\""]);
    let output = call.args(["x.wml", "--allow-system"]).run();
    assert!(output.stdout.contains("ran") && !output.stderr.contains("could not be run"), "{}", output.shown());
}

#[test]
fn latency_and_processor_time_are_reported_separately() {
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let run = allowed(&script(&format!("{busy}; sleep 0.2; echo said"), THREE_TIMES)).run().exits(0);
    assert!(run.stderr.matches("said").count() == 3 && run.stdout.contains("commands: "), "{}", run.shown());
    let run = run.only_run();
    let c = flowop(&run, "c");
    assert_eq!((&c["ops"], &c["class"]), (&3.into(), &"other".into()));
    // It sleeps, which takes time and no processor.
    assert!(number(c, &["latency_ns", "min"]) >= 0.2e9, "{c}");
    let used = number(c, &["command_user_seconds"]) + number(c, &["command_system_seconds"]);
    let lasted = 3.0 * number(c, &["latency_ns", "mean"]) / 1e9;
    assert!(used > 0.0 && used <= lasted - 0.6 + 0.01, "{used} s of {lasted} s");
    assert!(flowop(&run, "end")["command_user_seconds"].is_null());
}

#[test]
fn a_failed_command_is_an_error_with_its_status() {
    let text = script("exit 7", "flowop delay name=d,value=0.01\nflowop finishoncount name=end,value=3,target=d");
    let output = allowed(&text).run().exits(1);
    assert!(output.stderr.contains("flowop p/t/c (line 5): `exit 7` ended with exit status: 7"), "{}", output.shown());
    let run = allowed(&text).args(["--on-error", "count"]).run().exits(0).only_run();
    assert_eq!(flowop(&run, "c")["errors"], serde_json::json!({"command failed": 3}));
    assert_eq!(flowop(&run, "c")["ops"], 0);
}

#[track_caller]
fn assert_ends(pids: &[String]) {
    wait_for("the end of the command", || pids.iter().all(|pid| !lives(pid)));
}

fn noted(output: &Output) -> Vec<String> {
    fs::read_to_string(output.dir().join("pids")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_command_ends_with_the_run_and_counts_as_late() {
    let wml = Wml::new().idle().file(
        "x.wml",
        &script("true", &format!("flowop command name=sleeps,value=\"{}\"", SLEEPS.replace('$', "\\$"))),
    );
    let output = wml.args(["x.wml", "--runtime", "0.2", "--no-quiesce", "--allow-system"]).result().run().exits(0);
    assert_ends(&noted(&output));
    let run = output.only_run();
    assert_eq!((run["state"].as_str(), &run["late_ops"]), (Some("complete"), &1.into()), "{}", output.shown());
    assert_eq!((&flowop(&run, "c")["ops"], &flowop(&run, "sleeps")["ops"]), (&1.into(), &0.into()));
}

#[test]
fn a_command_ends_with_the_program() {
    for signal in [Signal::INT, Signal::KILL] {
        let wml = Wml::new().idle().file("x.wml", &script(SLEEPS, ""));
        let pids = wml.dir().join("pids");
        let running = wml.args(["x.wml", "--runtime", "60", "--no-quiesce", "--allow-system"]).start();
        wait_for("the command", || pids.exists());
        running.signal(signal);
        let output = running.wait();
        assert_eq!(output.code(), 128 + signal.as_raw(), "{}", output.shown());
        assert_ends(&noted(&output));
    }
}

#[test]
fn each_command_is_one_shell() {
    needs!(strace::available());
    let (output, log) = strace::run(allowed(&script("true", THREE_TIMES)));
    output.exits(0);
    let steps = log.of_steps();
    let shells = steps.calls().filter(|call| call.name == "execve" && call.args[0].contains("/bin/sh"));
    assert_eq!(shells.count(), 3);
}

/// A command in a phase between two others sees the files that the first creates and the last removes.
#[test]
fn a_phase_can_consist_of_a_command() {
    let text = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=data,path=$dir,entries=10,dirwidth=20,size=4k\n\
        define process name=makes { thread name=t {\n\
        flowop createfile name=create,filesetname=data,fd=1\nflowop closefile name=close,fd=1\n\
        flowop finishoncount name=end,value=10,target=close } }\n\
        define process name=looks,phase=2 { thread name=t {\n\
        flowop command name=c,value=\"find $dir/data -type f | grep -c 0000 > seen\"\n\
        flowop finishoncount name=end,value=1,target=c } }\n\
        define process name=removes,phase=3 { thread name=t {\n\
        flowop deletefile name=delete,filesetname=data\n\
        flowop finishoncount name=end,value=10,target=delete } }\n";
    let output = allowed(text).folder("d").sets(&[("dir", "d")]).run().exits(0);
    assert_eq!(fs::read_to_string(output.dir().join("seen")).unwrap().trim(), "10", "{}", output.shown());
    let run = output.only_run();
    let phases: Vec<bool> = run["phases"].as_array().unwrap().iter().map(|p| p["complete"] == true).collect();
    assert_eq!(phases, [true; 3]);
    assert_eq!(flowop(&run, "delete")["ops"], 10);
}

/// A misspelt variable must not lengthen what a command removes.
#[test]
fn a_variable_that_neither_the_script_nor_the_shell_has_is_an_error() {
    let run = |command: &str| {
        let text = format!("system \"{command}\"\n");
        Wml::new().file("x.wml", &text).args(["x.wml", "--allow-system"]).env("INHERITED", "kept").run()
    };
    let output = run("echo rm -r $dirr/old").exits(2);
    assert!(output.stderr.contains("the shell would replace it by nothing"), "{}", output.shown());
    assert!(!output.stdout.contains("rm -r"), "{}", output.shown());
    // A word of the command that does not set it, and a program that there is not.
    for command in ["echo rm -r $data/data", "echo clean old; echo rm -r $old/x", "echo rm -r $(NO_SUCH)/old"] {
        let output = run(command).exits(2);
        assert!(!output.stdout.contains("rm -r"), "{command}: {}", output.shown());
    }
    for command in [
        "echo $INHERITED",
        "for name in kept; do echo $name; done",
        "name=kept; echo $name",
        "echo kept | while read -r name; do echo $name; done",
        "echo kept on $(uname)",
        "echo \\$dirr kept",
    ] {
        let output = run(command);
        assert!(output.stdout.contains("kept"), "{command}: {}", output.shown());
    }
}
