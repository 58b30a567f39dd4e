//! Tests options of other tools on our command line: each has an answer, for the script at hand.

use crate::cmd::{Wml, binary, scratch};
use std::io::Write;
use std::process::{Command, Stdio};

/// What is typed behind `wmlrun varmail`, and the answer.
const ANSWERS: &[(&str, &str)] = &[
    ("--threads 4", "write --set nthreads=4"),
    ("--duration 30", "write --runtime 30"),
    (
        "--direct=1",
        "write `directio` into the flowop that opens the file, or take a personality such as `singlestreamreaddirect`",
    ),
    ("--bs 4k", "write --set iosize=4k"),
    ("-t 4", "write --set nthreads=4"),
    ("-t4", "write --set nthreads=4"),
    ("--numjobs=4", "write --set nthreads=4"),
    ("--iodepth=16", "`iodepth=` is an attribute of the flowops `aioread` and `aiowrite`"),
    ("--rw=randread", "a script says what is done: see `wmlrun list streams`, such as `randomread` and `randomrw`"),
    ("--size=1g", "write --set filesize=1g"),
    ("--time_based", "omit it: a run ends after `--runtime`, unless its script ends earlier"),
    ("--blocksize 4k", "write --set iosize=4k"),
    ("--ioengine=libaio", "`--engine` selects the engine: `wmlrun list engines`; flowops say which calls are made"),
    ("--group_reporting", "omit it: the threads of a definition are reported together"),
    ("--ramp_time=5", "write --warmup 5"),
    ("--directory=/tmp", "write --dir /tmp"),
    ("--rwmixread=70", "a script says what is done: see `wmlrun list streams`, such as `randomread` and `randomrw`"),
    ("--fsync=1", "put a flowop `fsync` or `fdatasync` into the script, or `fsyncevery=` into its `write`"),
    ("--nrfiles=10", "write --set nfiles=10"),
    ("--loops=3", "`wmlrun repeat SCRIPT` repeats a run, `--runs N` times"),
    ("--thinktime=10", "a flowop `delay` is a pause between operations"),
    ("--verify=crc32c", "wmlrun does not verify data"),
    (
        "--rate_iops=100",
        "`rate=` of a thread, or `totalrate=` of all threads of a definition, starts so many requests a second",
    ),
    ("--randseed=7", "write --seed 7"),
    ("--output-format=json", "write --format json"),
    ("--invalidate=1", "`--cold` evicts the files before each run"),
    ("--name=x", "`--label` names a result; a script has its own name"),
    ("--filename=/x", "`--dir` chooses the directory; the script names the files"),
    ("--timelimit 5", "write --runtime 5"),
    ("-b 4k", "write --set iosize=4k"),
    ("-s 1g", "write --set filesize=1g"),
    ("-n 10", "write --set nfiles=10"),
    ("--client h1,h2", "`--hosts a:4,b:4` runs on several hosts: docs/hosts.md"),
    ("--runs 5", "`wmlrun repeat SCRIPT --runs N` repeats a run"),
    ("-r 5", "`wmlrun repeat SCRIPT --runs N` repeats a run"),
    ("--min-runs 3", "`wmlrun repeat SCRIPT` repeats a run, `--runs N` times"),
    ("--export-json f", "write --json VALUE"),
    ("--prepare x", "`--before COMMAND` of an experiment executes a command before each run"),
    ("--vus 10", "write --set nthreads=10"),
    ("--stage 5s:10", "phases of a script (`phase=`, `for=`), or `wmlrun sweep --vary`, change the load"),
    (
        "--rps 10",
        "`rate=` of a thread, or `totalrate=` of all threads of a definition, starts so many requests a second",
    ),
    ("-d 30", "write --runtime 30"),
    ("--latency", "the report has percentiles of every flowop; `-v` shows all of them"),
    ("elapsed=30", "write --runtime 30"),
    ("xfersize=4k", "write --set iosize=4k"),
    ("threads=4", "write --set nthreads=4"),
];

#[test]
fn options_of_other_tools_are_answered_with_ours() {
    for (typed, answer) in ANSWERS {
        let output = Wml::new().args(["varmail"]).args(typed.split(' ')).run().exits(2);
        assert!(output.stderr.contains(&format!("tip: {answer}\n")), "{typed}: {}", output.stderr);
    }
    // Another script has another variable, or none.
    let output = Wml::new().args(["randomread", "--direct=1"]).run().exits(2);
    assert!(output.stderr.contains("tip: write --set directio=1\n"), "{}", output.stderr);
    let own = "define process name=p { thread name=t { flowop delay name=d,value=1 } }\n";
    let output = Wml::new().file("x.wml", own).args(["x.wml", "--threads", "4"]).run().exits(2);
    assert!(output.stderr.contains("tip: the script says how many"), "{}", output.stderr);
    // A variable of the script is one, whatever it means elsewhere.
    let own = format!("set $threads=2\n{own}");
    let output = Wml::new().file("x.wml", &own).args(["x.wml", "threads=4"]).run().exits(2);
    assert!(output.stderr.contains("write --set threads=4"), "{}", output.stderr);
    // What a command that runs no script lacks, it lacks.
    let output = Wml::new().args(["report", "--threads", "4", "x.json"]).run().exits(2);
    assert!(!output.stderr.contains("--set"), "{}", output.stderr);
}

#[test]
fn words_of_other_tools_are_explained() {
    for (word, says) in
        [("numjobs", "instances=N"), ("--iodepth", "`aioread` and `aiowrite`"), ("rwmixread", "randomrw")]
    {
        let said = Wml::new().args(["explain", word]).run().exits(0).stdout;
        assert!(said.contains("is a word of other tools") && said.contains(says), "{word}: {said}");
    }
}

#[test]
fn the_shell_suggests_what_lacks_letters_and_what_exists_outside() {
    let mut shell = Command::new(binary())
        .arg("repl")
        .current_dir(scratch())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(b"lod\nsweep\nreport\n").unwrap();
    let said = String::from_utf8(shell.wait_with_output().unwrap().stderr).unwrap();
    for help in ["did you mean `load`?", "leave the shell: `wmlrun sweep`", "leave the shell: `wmlrun report`"] {
        assert!(said.contains(help), "{help}: {said}");
    }
}
