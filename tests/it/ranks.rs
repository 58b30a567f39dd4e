//! Tests ranks: their predefined variables, their agreement on a run, and commands that a launcher such as `mpirun`
//! starts several times.
//!
//! The ranks of a test are threads, each with a session of its own.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wml::ranks::{Collected, CommonStart, Others, RanksLost, Together};
use wml::runtime::MeetingPlace;
use wml::session::{Settings, Status};
use wml::spec::Dialect;

use crate::cmd::{Output, Wml, tool};
use crate::support::{self, Outcome};
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

/// In a build with MPI these processes would look for one another.
#[cfg(not(feature = "mpi"))]
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

/// Of a run that fails, an experiment shows one line.
#[cfg(not(feature = "mpi"))]
#[test]
fn an_experiment_that_starts_a_launcher_names_the_package_with_mpi() {
    let launch = "env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0";
    let words = ["repeat", "x.wml", "--runs", "2", "--no-quiesce", "--launch", launch];
    let output = Wml::new().file("x.wml", SCRIPT).args(words).run().exits(2);
    let says = "error: run 1 failed: `mpirun` started 2 processes, each of which would run the whole workload: use \
                `wmlrun-mpi`, of the package wmlrun-mpi";
    assert!(output.stderr.contains(says), "{}", output.stderr);
}

#[test]
fn an_experiment_that_a_launcher_starts_names_the_option_for_it() {
    for (name, args) in [
        ("repeat", &["repeat", "x.wml"][..]),
        ("ab", &["ab", "x.wml", "--b", "--set n=2"]),
        ("sweep", &["sweep", "x.wml", "--vary", "n=1,2"]),
        ("repeat --floor", &["repeat", "--floor", "--dir", "."]),
        ("repeat --floor", &["floor", "."]),
        ("experiment", &["experiment", "quick"]),
    ] {
        let output = launched([(OPEN_MPI[0], "8"), (OPEN_MPI[1], "0")], args).exits(2);
        let option = format!("start `wmlrun {name}` once; the place for a command that starts each run is");
        assert!(output.stderr.contains(&option), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("`--launch 'mpirun -n 8 …'`"), "{args:?}: {}", output.stderr);
        assert_eq!(output.left(), ["x.wml"], "{args:?}");
    }
}

/// Several processes that remove the same files would report each other's removals as errors.
#[test]
fn a_removal_that_a_launcher_starts_several_times_is_refused() {
    for (name, args) in
        [("clean", &["clean", "."][..]), ("clean --logs", &["clean", "--logs", "."]), ("clean --logs", &["prune", "."])]
    {
        let output = launched([(OPEN_MPI[0], "4"), (OPEN_MPI[1], "0")], args).exits(2);
        let (fact, help) = ("each of which would remove the same files", format!("start `wmlrun {name}` once"));
        assert!(output.stderr.contains(fact) && output.stderr.contains(&help), "{args:?}: {}", output.stderr);
        let other = launched([(OPEN_MPI[0], "4"), (OPEN_MPI[1], "3")], args).exits(2);
        assert_eq!((other.shown().as_str(), other.left()), ("", vec!["x.wml".to_owned()]), "{args:?}");
    }
}

/// A rank that is a thread of the test, with a channel to and from rank 0. Rank 0 has those of all others.
#[derive(Debug)]
pub(crate) struct ThreadRank {
    pub(crate) rank: usize,
    hosts: Vec<String>,
    senders: Vec<Sender<Vec<u8>>>,
    receivers: Mutex<Vec<Receiver<Vec<u8>>>>,
    /// The number of messages that it has broadcast.
    broadcasts: AtomicUsize,
}

impl ThreadRank {
    /// One rank on each of these hosts.
    pub(crate) fn on(hosts: &[&str]) -> Vec<Arc<Self>> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let (mut to_others, mut from_others, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 1..hosts.len() {
            let ((down, from_first), (to_first, up)) = (channel(), channel());
            to_others.push(down);
            from_others.push(up);
            others.push((vec![to_first], vec![from_first]));
        }
        let ends = std::iter::once((to_others, from_others)).chain(others);
        let of = |(rank, (senders, receivers))| {
            let (hosts, receivers) = (hosts.clone(), Mutex::new(receivers));
            Arc::new(Self { rank, hosts, senders, receivers, broadcasts: AtomicUsize::new(0) })
        };
        ends.enumerate().map(of).collect()
    }

    /// The next message from the other end of a channel. A rank that failed sends none.
    fn receive(&self, from: usize) -> Vec<u8> {
        self.receivers.lock().unwrap()[from].recv_timeout(Duration::from_mins(1)).unwrap()
    }
}

impl MeetingPlace for ThreadRank {}

impl Others for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        self.broadcasts.fetch_add(1, SeqCst);
        if self.rank > 0 {
            return Ok(self.receive(0));
        }
        self.senders.iter().for_each(|sender| sender.send(message.clone()).unwrap());
        Ok(message)
    }

    fn collect(&self, message: Vec<u8>) -> Option<Collected> {
        if self.rank > 0 {
            self.senders[0].send(message).unwrap();
            return None;
        }
        let others = (0..self.senders.len()).map(|n| self.receive(n));
        Some(std::iter::once(message).chain(others).map(Ok).collect())
    }

    fn common_start(&self) -> Result<CommonStart, RanksLost> {
        self.gather(Vec::new())?;
        self.broadcast(Vec::new()).map(|_| CommonStart { at_ns: None, clock_error_ns: 0 })
    }
}

/// Runs a script on each rank, with the settings and the text that `of` returns for its number.
fn run_on(hosts: &[&str], of: impl Fn(usize) -> (Settings, String) + Sync) -> Vec<Outcome> {
    std::thread::scope(|scope| {
        let start = |ranks: Arc<ThreadRank>| {
            let of = &of;
            scope.spawn(move || {
                let (settings, text) = of(ranks.rank);
                support::run("x.wml", &text, Settings { together: Together::with(ranks), ..settings })
            })
        };
        let threads: Vec<_> = ThreadRank::on(hosts).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn domultisync_waits_at_the_barrier_of_the_ranks() {
    let ranks = ThreadRank::on(&["h1"]).remove(0);
    let others: Arc<dyn Others> = ranks.clone();
    let mut waits = Vec::new();
    for values in ["1", "1,2,3"] {
        let settings = Settings { together: Together::with(others.clone()), ..support::null(50) };
        let text = format!("enable multi master=a,client=b\nforeach $n in {values} {{ domultisync value=$n }}\n");
        let before = ranks.broadcasts.load(SeqCst);
        let outcome = support::run("x.wml", &text, settings);
        assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
        waits.push(ranks.broadcasts.load(SeqCst) - before);
    }
    assert_eq!(waits[1] - waits[0], 2, "one for each `domultisync`");
    let text = "domultisync value=1\necho \"$rank of $ranks on $host of $hosts\"\n";
    let outcomes = run_on(&["h1", "h1", "h2"], |_| (support::null(50), text.to_owned()));
    for (outcome, line) in outcomes.iter().zip(["0 of 3 on h1 of 2", "1 of 3 on h1 of 2", "2 of 3 on h2 of 2"]) {
        assert!(outcome.said.lines().any(|said| said == line), "{}", outcome.said);
    }
}

/// A later run that depends on the figures of an earlier one is the same on all ranks.
#[test]
fn the_figures_of_a_run_are_those_of_all_ranks() {
    let text = "define fileset name=s,path=$dir,entries=4,dirwidth=2,size=1k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=x,filesetname=s \
        flowop finishoncount name=f,value=1 } }\nset mode quit alldone\nrun 10\nset $before=${stats.iorate}\nrun 10\n\
        echo \"rate $before\"\n";
    let outcomes = run_on(&["h1", "h2"], |_| (support::null(50), text.to_owned()));
    let said = |outcome: &Outcome| outcome.said.lines().find(|line| line.starts_with("rate ")).map(str::to_owned);
    assert!(outcomes.iter().all(|outcome| outcome.status == Status::Done), "{}", outcomes[0].said);
    assert_eq!(outcomes[0].document.runs.len(), 2);
    assert!(said(&outcomes[0]).is_some());
    assert_eq!(said(&outcomes[0]), said(&outcomes[1]));
}

/// Rank 2 has another condition than the others. Rank 0 reports it, and none creates a file.
#[test]
fn ranks_that_do_not_agree_create_nothing() {
    const TEXT: &str = "set $n=4\ndefine fileset name=s,path=$dir,entries=$n,dirwidth=2,size=1k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=x,filesetname=s } }\n";
    type Change = fn(&mut Settings, &mut String);
    let changes: [(Change, &str); 6] = [
        (|settings, _| settings.sets.push(("n".to_owned(), "5".to_owned())), "`$n` is 5, not 4"),
        (|_, text| text.push_str("# another text\n"), "the SHA-256 digest of the script is "),
        (|settings, _| settings.layout_seed = 9, "the layout seed is 9, not 1"),
        (|settings, _| settings.runtime = None, "`--runtime` is missing, and 50ms on rank 0"),
        (|settings, _| settings.as_is = true, "`--as-is` is given, and missing on rank 0"),
        (|settings, _| settings.dialect = Some(Dialect::Sun), "the SHA-256 digest of the plan is "),
    ];
    for (change, difference) in changes {
        for create in ["", "create files\n"] {
            let dir = tempfile::tempdir().unwrap();
            let outcomes = run_on(&["h1", "h1", "h2", "h2"], |rank| {
                let (mut settings, mut text) = (support::real(50, dir.path()), format!("{TEXT}{create}"));
                if rank == 2 {
                    change(&mut settings, &mut text);
                }
                (settings, text)
            });
            let message = format!("rank 2 on `h2` differs from rank 0 on `h1`: {difference}");
            for (rank, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.status, Status::Refused, "{difference}: {}", outcome.said);
                assert_eq!(outcome.said.contains(&message), rank == 0, "{message}: {}", outcome.said);
                assert!(outcome.document.runs.is_empty());
            }
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{difference}");
        }
    }
}

/// A check that fails on one rank ends the run on all of them.
#[test]
fn a_check_that_fails_on_one_rank_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = "define fileset name=s,path=$dir,entries=4,dirwidth=2,size=1k,prealloc\n\
        define process name=p { thread name=t { flowop command name=x,value=\"true\" } }\n";
    let outcomes = run_on(&["h1", "h2"], |rank| {
        (Settings { allow_system: rank == 0, ..support::real(50, dir.path()) }, text.to_owned())
    });
    let message = "rank 1 on `h2` differs from rank 0 on `h1`: the check before the run is failed, not passed";
    for (rank, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.status, Status::Refused, "{}", outcome.said);
        assert_eq!(outcome.said.contains(message), rank == 0, "{}", outcome.said);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A thread that reads at random offsets and ends by itself after a few hundred operations.
const READS: &str = "set mode quit alldone
define file name=f,path=\"/nowhere/$host\",size=$size,prealloc
define process name=p {
  thread name=t {
    flowop read name=x,filename=f,iosize=4k,random
    flowop finishoncount name=end,value=200
  }
}
";

#[test]
fn a_script_may_depend_on_its_rank() {
    let text = format!("set $more=$rank * 1m\nset $size=$more + 1m\n{READS}");
    let outcomes = run_on(&["h1", "h1", "h2"], |_| (support::null(60_000), text.clone()));
    for (rank, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
        assert_eq!(outcome.run().variables["more"], rank << 20, "{}", outcome.said);
    }
}

#[test]
fn rank_0_has_the_random_numbers_of_a_single_process() {
    let text = format!("set $size=64m\n{READS}");
    let settings = |seed: u64| Settings { seed, digest: Some(50), ..support::null(60_000) };
    // The result of rank 0 has the digest of all ranks. Each rank prints its own.
    let digest = |outcome: &Outcome| {
        let start = "digest of the first 50 operations of each thread: ";
        outcome.said.lines().find_map(|line| Some(line.split_once(start)?.1.to_owned())).unwrap()
    };
    let single = digest(&support::run("x.wml", &text, settings(7)));
    // Without `--seed` each process has another seed; that of rank 0 counts.
    let outcomes = run_on(&["h1", "h1", "h2"], |rank| (settings(7 + rank as u64), text.clone()));
    assert!(outcomes.iter().all(|outcome| outcome.document.seed == 7));
    let digests: Vec<String> = outcomes.iter().map(digest).collect();
    assert_eq!(digests[0], single);
    assert!(digests[1] != single && digests[2] != single && digests[1] != digests[2], "{digests:?}");
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
