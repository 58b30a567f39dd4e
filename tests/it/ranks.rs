//! Tests ranks: their predefined variables, the commands that wait for all of them, and commands that a launcher such as
//! `mpirun` starts several times.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use wml::ranks::Ranks;
use wml::session::{Settings, Status};

use crate::cmd::{Output, Wml, tool};
use crate::support;
use crate::vectors_15::script;

/// A workload that is run without I/O.
const SCRIPT: &str = "\
define fileset name=s,path=/nowhere,entries=4,dirwidth=2,size=1k,prealloc
define process name=p { thread name=t { flowop statfile name=x,filesetname=s } }
";

/// The options of such a run.
const SHORT: [&str; 4] = ["--engine", "null", "--runtime", "0.05"];

fn host() -> String {
    tool("uname", &["-n"]).trim().to_owned()
}

#[test]
fn a_process_is_the_only_rank_on_its_host() {
    let output = script("echo \"$rank $ranks $host $hosts\"\n").run().exits(0);
    assert_eq!(output.stdout, format!("0 1 {} 1\n", host()));
}

/// Scripts of Filebench may have variables of these names.
#[test]
fn settings_replace_the_variables_of_ranks() {
    let text = "set $rank=5\nset $hosts=$rank + 1\nset $host=\"alpha\"\n\
        foreach $ranks in 3,4 { echo \"$rank $ranks $host $hosts\" }\n";
    assert_eq!(script(text).run().exits(0).stdout, "5 3 alpha 6\n5 4 alpha 6\n");
    let output = script("echo \"$rank $ranks $host $hosts\"\n")
        .args(["--set", "rank=7", "--set", "ranks=9", "--set", "host=beta", "--set", "hosts=2"])
        .run()
        .exits(0);
    assert_eq!(output.stdout, "7 9 beta 2\n");
}

#[test]
fn the_result_has_the_host_that_a_script_reads() {
    let text = format!("{SCRIPT}echo \"$host\"\n");
    let named = script(&text).args(SHORT).result().run().exits(0).only_run();
    assert_eq!(named["variables"]["host"], host());
    assert!(named["variables"].get("rank").is_none(), "{}", named["variables"]);
    let redacted = script(&text).args(SHORT).args(["--redact"]).result().run().exits(0).only_run();
    assert_eq!(redacted["variables"]["host"], "(host)");
}

/// Runs a command with the environment of a process that a launcher has started. `numbers`: variables with the number
/// of processes, and with that of this process.
fn launched(numbers: [(&'static str, &str); 2], args: &[&str]) -> Output {
    let call = numbers.into_iter().fold(Wml::new().file("x.wml", SCRIPT), |call, (name, value)| call.env(name, value));
    call.args(args.iter().copied()).run()
}

const OPEN_MPI: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"];

#[test]
fn a_workload_that_a_launcher_starts_several_times_is_refused_once() {
    let slurm = ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"];
    let pmi = ["PMI_SIZE", "PMI_RANK"];
    for ([size, rank], command) in [(OPEN_MPI, "mpirun"), (slurm, "srun"), (pmi, "mpiexec")] {
        let first = launched([(size, "8"), (rank, "0")], &["x.wml", "--json", "r.json"]).exits(2);
        assert!(first.stderr.contains(&format!("error: `{command}` started 8 processes")), "{}", first.stderr);
        assert_eq!(first.stderr.matches("help: ").count(), 1, "{}", first.stderr);
        let second = launched([(size, "8"), (rank, "1")], &["x.wml", "--json", "r.json"]).exits(2);
        assert_eq!(second.shown(), "", "only the first process reports it");
        assert_eq!((first.left(), second.left()), (vec!["x.wml".to_owned()], vec!["x.wml".to_owned()]));
    }
    for args in [&["run", "x.wml"][..], &["repl"], &["batch", "x.prof"], &["age", ".", "--to", "1%"]] {
        let output = launched([(OPEN_MPI[0], "2"), (OPEN_MPI[1], "0")], args).exits(2);
        assert!(output.stderr.contains("`mpirun` started 2 processes"), "{args:?}: {}", output.stderr);
        assert_eq!(output.left(), ["x.wml"], "{args:?}");
    }
}

#[test]
fn an_experiment_that_a_launcher_starts_names_the_option_for_it() {
    for args in [
        &["repeat", "x.wml"][..],
        &["ab", "x.wml", "--b", "--set n=2"],
        &["sweep", "x.wml", "--vary", "n=1,2"],
        &["floor", "."],
        &["experiment", "quick"],
    ] {
        let output = launched([(OPEN_MPI[0], "8"), (OPEN_MPI[1], "0")], args).exits(2);
        let option = format!("start `wmlrun {}` once; the place for a command that starts each run is", args[0]);
        assert!(output.stderr.contains(&option), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("`--launch 'mpirun -n 8 …'`"), "{args:?}: {}", output.stderr);
        assert_eq!(output.left(), ["x.wml"], "{args:?}");
    }
}

/// Counts the calls of its barrier.
#[derive(Debug)]
struct CountingRanks(Vec<String>, AtomicUsize);

impl Ranks for CountingRanks {
    fn rank(&self) -> usize {
        0
    }

    fn hosts(&self) -> &[String] {
        &self.0
    }

    fn barrier(&self) {
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn domultisync_waits_at_the_barrier_of_the_ranks() {
    let ranks = Arc::new(CountingRanks(vec![host()], AtomicUsize::new(0)));
    let settings = Settings { ranks: ranks.clone(), ..support::null(50) };
    let text = "enable multi master=a,client=b\nforeach $n in 1,2 { domultisync value=$n }\n";
    let outcome = support::run("x.wml", text, settings);
    assert_eq!((outcome.status, ranks.1.load(SeqCst)), (Status::Done, 2), "{}", outcome.said);
}

#[test]
fn a_single_process_of_a_launcher_runs() {
    let run = [&["x.wml"][..], &SHORT].concat();
    launched([(OPEN_MPI[0], "1"), (OPEN_MPI[1], "0")], &run).exits(0);
    // The script of a batch job of Slurm is one process, whatever the job has.
    launched([("SLURM_NTASKS", "16"), ("SLURM_PROCID", "0")], &run).exits(0);
    // What reads only, each process may do.
    launched([(OPEN_MPI[0], "8"), (OPEN_MPI[1], "3")], &["check", "x.wml"]).exits(0);
    launched([(OPEN_MPI[0], "8"), (OPEN_MPI[1], "3")], &["plan", "x.wml"]).exits(0);
}
