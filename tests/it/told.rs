//! Tests messages to the user: the origin of a wrong value, threads that ended early or never worked, and the steps of
//! preparation with `-v`.

use crate::cmd::{Output, Wml, memory};

const SETS: &str = "set $nthreads=1\nset $filesize=4k\n\
                    define fileset name=data,path=$dir,entries=20,dirwidth=5,size=$filesize,prealloc\n";

fn run(head: &str, threads: &str, args: &[&str]) -> Output {
    let script = format!("{head}{SETS}define process name=p {{\n{threads}\n}}\n");
    let call = Wml::new().file("x.wml", &script).result();
    call.args(["x.wml", "--runtime", "0.2", "--engine", "null"]).args(args).run()
}

const READER: &str = "thread name=t,instances=$nthreads { flowop read name=rd,filesetname=data,iosize=1k }";

#[test]
fn a_wrong_value_on_the_command_line_is_shown_with_its_position() {
    for (set, marked) in [("nthreads=abc", "   ^^^"), ("filesize=3q", "   ^^")] {
        let output = run("", READER, &["--set", set]).exits(2);
        let said = &output.stderr;
        assert!(said.contains(" --> <command line>:1:"), "{said}");
        assert!(said.contains(&format!("--set {set}\n")) && said.contains(marked), "{said}");
        assert!(said.contains("x.wml:") && said.contains("used here"), "{said}");
    }
}

#[test]
fn a_wrong_random_variable_on_the_command_line_has_the_same_help() {
    let output = run("", READER, &["--set", "filesize=randvar(type=unifrm,mean=4k)"]).exits(2);
    assert!(output.stderr.contains("--set filesize=randvar(type=unifrm,mean=4k)\n"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `uniform`?"), "{}", output.stderr);
}

/// The notes with this code in the only run.
fn notes(output: &Output, code: &str) -> Vec<String> {
    let run = output.only_run();
    let warnings = run["warnings"].as_array().unwrap();
    warnings.iter().filter(|w| w["code"] == code).map(|w| w["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_wait_that_never_ends_is_reported() {
    let waits = "thread name=w { flowop semblock name=sb,value=5,highwater=1 }\n\
                 thread name=s { flowop delay name=d,value=100 flowop sempost name=sp,target=sb,value=5 }";
    let output = run("", &format!("{READER}\n{waits}"), &[]).exits(0);
    let [note] = &notes(&output, "waited_to_the_end")[..] else { panic!("{}", output.shown()) };
    assert!(note.starts_with("1 thread waited in `p/w/sb` to the end"), "{note}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&output.stdout).contains(&words(note)), "{}", output.stdout);
    // Who gets through is not told of.
    let posts = "thread name=w { flowop semblock name=sb,value=1,highwater=1 }\n\
                 thread name=s { flowop sempost name=sp,target=sb,value=1,blocking }";
    let output = run("", &format!("{READER}\n{posts}"), &[]).exits(0);
    assert_eq!(notes(&output, "waited_to_the_end"), [""; 0]);
}

#[test]
fn threads_without_a_usable_file_are_reported() {
    let del = "thread name=t,instances=2 { flowop deletefile name=del,filesetname=data }";
    let output = run("", del, &[]).exits(0);
    assert_eq!(output.only_run()["ended_by"], "all threads done");
    let [note] = &notes(&output, "exhausted")[..] else { panic!("{}", output.shown()) };
    assert!(
        note.starts_with("2 threads ended early: `p/t/del` found no usable file of `data`; give the set"),
        "{note}"
    );
    // So it is in the other modes, unless the script says that the thread is meant to end like this.
    let meant = del.replace("name=del", "name=del,maystarve");
    for mode in ["alldone", "firstdone", "timeout"] {
        let head = format!("set mode quit {mode}\n");
        let output = run(&head, del, &[]).exits(0);
        let [note] = &notes(&output, "exhausted")[..] else { panic!("{mode}: {}", output.shown()) };
        assert!(note.contains("ended early: `p/t/del` found no usable file of `data`"), "{mode}: {note}");
        assert_eq!(notes(&run(&head, &meant, &[]).exits(0), "exhausted"), [""; 0], "{mode}");
    }
    // An empty set is the reason itself.
    let script = format!(
        "define fileset name=none,path=$dir,dirwidth=5\n{SETS}define process name=p {{ thread name=t {{\n\
                          flowop statfile name=st,filesetname=none }} }}\n"
    );
    let output = Wml::new().file("x.wml", &script).result().args(["x.wml", "--engine", "null"]).run().exits(1);
    assert_eq!(output.only_run()["state"], "nothing_done");
    let [note] = &notes(&output, "exhausted")[..] else { panic!("{}", output.shown()) };
    assert!(note.ends_with("the set has 0 entries: set the number of files with `entries=`"), "{note}");
}

/// One of the flowops of a mix makes files: the threads that draw it when no name is free end, with work left to do.
#[test]
fn threads_of_a_mix_that_run_out_of_names_are_reported_in_every_mode() {
    let threads = "thread name=t,instances=4,mix { flowop statfile name=view,filesetname=half,weight=9
        flowop upload name=up } thread name=other { flowop statfile name=look,filesetname=data }";
    for mode in ["timeout", "alldone", "firstdone"] {
        let head = format!(
            "set mode quit {mode}\ndefine fileset name=half,path=$dir,entries=40,dirwidth=5,size=1k,prealloc=50\n\
             define flowop name=upload {{ flowop createfile name=cr,filesetname=half,fd=1\nflowop closefile name=c,fd=1 }}\n"
        );
        let output = run(&head, threads, &[]).exits(0);
        let [note] = &notes(&output, "exhausted")[..] else { panic!("{mode}: {}", output.shown()) };
        let which = if mode == "firstdone" {
            "of 4 threads ended early: `p/t/up.cr`"
        } else {
            "4 threads ended early: `p/t/up.cr`"
        };
        assert!(note.contains(which) && note.contains("found no usable file of `half`"), "{mode}: {note}");
        assert!(
            output.stderr.contains("W0405") && output.stderr.contains("`up.cr` makes one file"),
            "{}",
            output.stderr
        );
    }
}

/// A report in a format of Filebench contains no warnings.
#[test]
fn threads_that_ended_early_are_reported_in_every_format() {
    let del = "thread name=t,instances=2 { flowop deletefile name=del,filesetname=data }";
    for format in ["filebench", "filebench-1.4", "csv"] {
        let output = run("", del, &["--format", format]).exits(0);
        assert!(output.stderr.contains("warning: 2 threads ended early: `p/t/del`"), "{}", output.shown());
        let meant = run("", &del.replace("name=del", "name=del,maystarve"), &["--format", format]).exits(0);
        assert!(!meant.stderr.contains("warning:"), "{}", meant.shown());
    }
    // The text report has the warning already.
    let output = run("", del, &[]).exits(0);
    assert!(!output.stderr.contains("ended early"), "{}", output.shown());
}

/// The end of the threads is awaited as after a measurement, and the last lines of `print` are shown.
#[test]
fn a_run_that_ends_in_its_warm_up_names_no_thread_as_still_running() {
    let threads = "thread name=r,instances=12 { flowop read name=rd,filesetname=data,iosize=1k }
        thread name=t { flowop statfile name=st,filesetname=data flowop print name=say,value=\"in the warm-up\"
            flowop finishoncount name=f,value=5 }";
    let output = run("", threads, &["--warmup", "30"]).exits(0);
    assert_eq!(notes(&output, "ended_in_warmup").len(), 1, "{}", output.shown());
    assert!(output.stderr.contains("message from instance 1: in the warm-up"), "{}", output.shown());
    assert!(output.only_run()["stragglers"].as_array().is_none_or(Vec::is_empty), "{}", output.shown());
}

#[test]
fn verbose_names_the_steps_of_preparation() {
    let script = format!("{SETS}define process name=p {{ {READER} }}\n");
    let stderr = |option: &[&str]| {
        let call = Wml::below(&memory()).file("x.wml", &script).args(["x.wml", "--runtime", "0.1"]).args(option);
        call.run().exits(0).stderr.clone()
    };
    let quiesce = "waiting until the disks are idle";
    let (normal, verbose, both) = (stderr(&[]), stderr(&["-v"]), stderr(&["-v", "--quiet"]));
    assert!(normal.contains("creating data: 20 files") && !normal.contains(quiesce), "{normal}");
    assert!(verbose.contains("creating data: 20 files") && verbose.contains(quiesce), "{verbose}");
    assert!(!both.contains("creating") && !both.contains(quiesce), "{both}");
}
