//! Tests runs of several processes under `mpirun`, on one host and on two hosts that are network namespaces, with ranks
//! that are killed, stopped, or cut off.
//!
//! Compiled with the feature `mpi` only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::cmd::{self, Output, Running, Wml, binary, tool};
use crate::mounts::{Fs, Mount};

/// A workload with a file set for each rank, at a fixed rate, so that the ranks do the same number of operations.
pub(crate) const SCRIPT: &str = "\
# dialect: fsl
set $n=50
define fileset name=data,path=\"$dir/$rank\",entries=$n,dirwidth=20,size=4k,prealloc
define process name=p {
  thread name=t,instances=2 {
    flowop readwholefile name=read,filesetname=data
    flowop eventlimit name=limit
  }
}
eventgen rate=200
";

/// Two hosts on this machine: network namespaces with a bridge between them, each with a host name of its own.
pub(crate) struct Hosts {
    dir: tempfile::TempDir,
    names: [&'static str; 2],
}

impl Hosts {
    /// Makes the hosts. `names` are distinct among the tests that run at the same time, and have at most 8 characters.
    pub(crate) fn new(names: [&'static str; 2], net: u8) -> Self {
        let hosts = Self { dir: tempfile::tempdir().unwrap(), names };
        hosts.remove();
        let bridge = format!("br-{}", names[0]);
        ip(&["link", "add", &bridge, "type", "bridge"]);
        ip(&["addr", "add", &format!("10.77.{net}.254/24"), "dev", &bridge]);
        ip(&["link", "set", &bridge, "up"]);
        for (n, name) in names.iter().enumerate() {
            let (outer, inner) = (format!("o-{name}"), format!("i-{name}"));
            ip(&["netns", "add", name]);
            ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", name]);
            ip(&["link", "set", &outer, "master", &bridge, "up"]);
            let address = format!("10.77.{net}.{}/24", n + 1);
            ip(&["-n", name, "addr", "add", &address, "dev", &inner]);
            ip(&["-n", name, "link", "set", &inner, "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        // A host may have programs of its own in place of those in the folder `bin`.
        let dir = hosts.dir.path().display();
        let agent = format!(
            "#!/bin/sh\nhost=$1\nshift\nown={dir}/$host-bin\n\
            exec ip netns exec \"$host\" unshare --uts --mount sh -c \
            \"[ ! -d $own ] || mount --bind $own {dir}/bin; hostname $host; $*\"\n"
        );
        std::fs::write(hosts.agent(), agent).unwrap();
        std::fs::set_permissions(hosts.agent(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        hosts
    }

    fn agent(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// The directory with the folder `bin`, which each host may have its own of.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The parameters of Open MPI by which processes of `mpirun` reach the hosts.
    pub(crate) fn parameters(&self, net: u8) -> [(&'static str, String); 4] {
        let net = format!("10.77.{net}.0/24");
        [
            ("plm_rsh_agent", self.agent().display().to_string()),
            ("plm_rsh_no_tree_spawn", "1".to_owned()),
            ("btl_tcp_if_include", net.clone()),
            ("oob_tcp_if_include", net),
        ]
    }

    /// The words of `mpirun` that start `each` ranks on each host.
    pub(crate) fn mpirun(&self, net: u8, each: usize) -> Vec<String> {
        let [a, b] = self.names;
        let mut words = mpirun(2 * each);
        for (name, value) in self.parameters(net) {
            words.extend(["--mca".to_owned(), name.to_owned(), value]);
        }
        words.extend(["--host".to_owned(), format!("{a}:{each},{b}:{each}")]);
        words
    }

    /// Sets the link of the second host up or down.
    pub(crate) fn link(&self, state: &str) {
        ip(&["link", "set", &format!("o-{}", self.names[1]), state]);
    }

    fn remove(&self) {
        for name in self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
            let _ = Command::new("ip").args(["link", "del", &format!("o-{name}")]).output();
        }
        let _ = Command::new("ip").args(["link", "del", &format!("br-{}", self.names[0])]).output();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(output.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The words that start so many ranks.
pub(crate) fn mpirun(ranks: usize) -> Vec<String> {
    let words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"];
    words.iter().map(|word| (*word).to_owned()).chain([ranks.to_string()]).collect()
}

/// A call of the script under `mpirun`, in a directory with a folder `d` for its file sets.
pub(crate) fn call(mpirun: Vec<String>, seconds: &str) -> Wml {
    let wml = Wml::new().file("x.wml", SCRIPT).folder("d").under(mpirun);
    wml.args(["x.wml", "--dir", "d", "--no-quiesce", "--clean", "--runtime", seconds]).result()
}

/// The process ID of a rank whose working directory is in `dir`; `None` if it does not run.
pub(crate) fn process_of(dir: &Path, rank: usize) -> Option<i32> {
    let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let is_here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
        let is_rank = environment.split(|byte| *byte == 0).any(|text| text == variable.as_bytes());
        let is_wmlrun = std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe.ends_with("wmlrun"));
        (is_here && is_rank && is_wmlrun).then(|| entry.file_name().to_str().unwrap().parse().unwrap())
    })
}

/// Waits until `find` returns a value.
pub(crate) fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "it never {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the threads of the workload of a rank have made operations, between which they wait for their rate.
/// Returns the process ID of the rank.
pub(crate) fn measuring(dir: &Path, rank: usize) -> i32 {
    wait_for("made operations", || process_of(dir, rank).filter(|pid| cmd::waits(*pid as u32) >= 50))
}

/// Sends a signal to a rank once it reads.
fn signal(running: &Running, dir: &Path, rank: usize, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(measuring(dir, rank)).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
    assert!(running.pid() > 0);
}

/// Checks that the sums of the ranks are the figures of the run, which is complete.
fn is_sum(output: &Output, ranks: usize) -> Value {
    let run = output.only_run();
    assert_eq!(run["state"], "complete", "{run:#}");
    counts_agree(&run, ranks);
    for flowop in run["flowops"].as_array().unwrap() {
        assert_eq!(flowop["instances"], 2 * ranks, "{flowop}");
    }
    run
}

/// Checks that the counts of the ranks add up to those of the run, and that its histograms have as many values as there
/// are operations.
pub(crate) fn counts_agree(run: &Value, ranks: usize) {
    assert_eq!(run["ranks"].as_array().unwrap().len(), ranks, "{run:#}");
    let of = |value: &Value, key: &str| value[key].as_u64().unwrap();
    let sum = |key: &str| run["ranks"].as_array().unwrap().iter().map(|rank| of(rank, key)).sum::<u64>();
    assert_eq!((sum("ops"), sum("bytes")), (of(&run["summary"], "ops"), of(&run["summary"], "bytes")));
    assert!(sum("ops") > 0);
    for entry in run["flowops"].as_array().unwrap().iter().chain([&run["summary"]]) {
        let text = entry["histogram"].as_str().unwrap();
        if !text.is_empty() {
            assert_eq!(wml::result::hdr::decode(text).unwrap().count, of(entry, "ops"), "{entry}");
        }
    }
}

#[test]
fn ranks_on_one_host_make_one_run() {
    let output = call(mpirun(4), "2").run().exits(0);
    let run = is_sum(&output, 4);
    assert_eq!(run["hosts"].as_array().unwrap().len(), 1);
    let skews = run["ranks"].as_array().unwrap().iter().map(|rank| rank["start_skew_ns"].as_i64().unwrap());
    assert!(skews.clone().all(|skew| skew >= 0), "no rank starts early: {:?}", skews.collect::<Vec<_>>());
    assert!(run["ranks"][1]["clock_error_ns"].as_u64().unwrap() > 0);
    // Rank 0 alone prints.
    assert_eq!(output.stdout.matches("all I/O").count(), 1, "{}", output.stdout);
    assert_eq!(output.stderr.matches("running for 2 s").count(), 1, "{}", output.stderr);
    assert!((0..4).all(|rank| !output.dir().join(format!("d/{rank}/data")).exists()), "all file sets are removed");
    assert_eq!(output.left(), ["d", "x.wml"], "no snapshot is left");
}

/// With `--ranks split` each process instance runs on one rank, and all ranks together have the rate of the script.
#[test]
fn process_instances_are_divided_among_ranks() {
    let text = SCRIPT.replace("$dir/$rank", "$dir").replace("name=p {", "name=p,instances=5 {");
    let words = ["x.wml", "--dir", "d", "--share", "all", "--no-quiesce", "--clean", "--runtime", "2"];
    let divided = |ranks: usize| {
        let wml = Wml::new().file("x.wml", &text).folder("d").under(mpirun(ranks));
        wml.args(words).args(["--ranks", "split"]).result().run()
    };
    let run = divided(3).exits(0).only_run();
    assert_eq!(run["state"], "complete", "{run:#}");
    counts_agree(&run, 3);
    // 5 instances of 2 threads.
    assert!(run["flowops"].as_array().unwrap().iter().all(|flowop| flowop["instances"] == 10), "{run:#}");
    // 200 events a second, and one that each rank begins with.
    let (ops, seconds) = (run["summary"]["ops"].as_u64().unwrap(), run["measured_seconds"].as_f64().unwrap());
    assert!(ops as f64 <= 200.0 * seconds.max(2.0) + 10.0, "{ops} operations in {seconds} s");
    let of_rank = |rank: usize| run["ranks"][rank]["ops"].as_f64().unwrap();
    assert!(of_rank(0) > of_rank(2), "rank 0 has 4 threads and rank 2 has 2: {} and {}", of_rank(0), of_rank(2));
    let refused = divided(6).exits(2);
    assert_eq!(refused.stderr.matches("6 ranks can't divide a workload of 5 parts").count(), 1, "{}", refused.stderr);
    assert_eq!(refused.left(), ["d", "x.wml"]);
}

/// `totalrate=` is the rate of all ranks together, whether each runs all process instances or a part of them.
#[test]
fn a_total_rate_is_that_of_all_ranks() {
    let text = SCRIPT
        .replace("$dir/$rank", "$dir")
        .replace("name=p {", "name=p,instances=5 {")
        .replace("name=t,instances=2", "name=t,instances=2,totalrate=200")
        .replace("    flowop eventlimit name=limit\n", "")
        .replace("eventgen rate=200\n", "");
    for division in ["split", "copy"] {
        let words = ["x.wml", "--dir", "d", "--share", "all", "--no-quiesce", "--clean", "--runtime", "2", "--ranks"];
        let wml = Wml::new().file("x.wml", &text).folder("d").under(mpirun(3)).args(words).args([division]);
        let run = wml.result().run().exits(0).only_run();
        let per_s = run["open_loop"]["offered_per_s"].as_f64().unwrap();
        // A whole number of requests of each rank, in about 2 s.
        assert!((per_s - 200.0).abs() <= 3.0, "{division}: {per_s} requests a second");
    }
}

/// Rank 0 shows the sums of all ranks while they run.
#[test]
fn the_live_view_has_all_ranks() {
    let output = call(mpirun(3), "4").args(["--live", "jsonl:live.jsonl"]).run().exits(0);
    let text = std::fs::read_to_string(output.dir().join("live.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let intervals: Vec<&Value> = lines.iter().filter(|line| line["event"] == "interval").collect();
    let all: Vec<&&Value> = intervals.iter().filter(|line| line["ranks"]["reporting"] == 3).collect();
    assert!(!all.is_empty() && all.iter().all(|line| line["ranks"]["all"] == 3), "{text}");
    for rank in all.iter().flat_map(|line| [&line["ranks"]["slowest"], &line["ranks"]["fastest"]]) {
        assert!(rank["rank"].as_u64().unwrap() < 3 && rank["ops_per_s"].as_f64().is_some(), "{rank}");
    }
    let ops: u64 = intervals.iter().map(|line| line["ops"].as_u64().unwrap()).sum();
    let run = output.only_run();
    let [total, first] = [&run["summary"], &run["ranks"][0]].map(|figures| figures["ops"].as_u64().unwrap());
    assert!(ops > first && ops <= total, "{ops} operations in the intervals, {first} of rank 0, {total} in all");
    assert!(output.stderr.contains("; 3 ranks"), "{}", output.stderr);
}

#[test]
fn ranks_on_two_hosts_make_one_run() {
    let hosts = Hosts::new(["wma1", "wma2"], 11);
    let output = call(hosts.mpirun(11, 2), "2").timeout(Duration::from_mins(3)).run().exits(0);
    let run = is_sum(&output, 4);
    let named: Vec<&str> = run["hosts"].as_array().unwrap().iter().map(|host| host["host"].as_str().unwrap()).collect();
    assert_eq!(named, ["wma1", "wma2"]);
    assert_eq!(
        (&run["hosts"][0]["ranks"], &run["hosts"][1]["ranks"]),
        (&serde_json::json!([0, 1]), &serde_json::json!([2, 3]))
    );
    // Both hosts have the clock of this machine.
    for rank in run["ranks"].as_array().unwrap() {
        let [offset, error] = ["clock_offset_ns", "clock_error_ns"].map(|key| rank[key].as_i64().unwrap());
        assert!(offset.abs() <= error, "{rank:#}");
        let [drift, error] = ["clock_drift_ppm", "clock_drift_error_ppm"].map(|key| rank[key].as_f64().unwrap());
        assert!(drift.abs() <= error, "{rank:#}");
    }
}

/// Shipped workloads on one directory that both hosts see: the ranks share the trees, or those of a host do.
#[test]
fn shipped_workloads_run_on_shared_trees() {
    let hosts = Hosts::new(["wmc1", "wmc2"], 13);
    let mount = Mount::new(Fs::Ext4, 2 << 30);
    for each in [2, 4] {
        for (script, sets) in [
            ("varmail", &[("nfiles", "200")][..]),
            ("oltp_sync", &[("filesize", "4m")]),
            ("specsfs97", &[("nfiles", "400")]),
        ] {
            let wml = Wml::below(mount.dir()).folder("d").under(hosts.mpirun(13, each)).sets(sets);
            let words = [script, "--dir", "d", "--share", "all", "--no-quiesce", "--clean", "--runtime", "2"];
            let output = wml.args(words).result().timeout(Duration::from_mins(3)).run().exits(0);
            let run = output.only_run();
            assert_eq!(run["state"], "complete", "{script}: {run:#}");
            for set in run["filesets"].as_array().unwrap() {
                assert!(set["files"].as_u64().unwrap() > 0, "{script}: {set:#}");
            }
            counts_agree(&run, 2 * each);
            let left: Vec<_> = std::fs::read_dir(output.dir().join("d")).unwrap().flatten().collect();
            assert!(left.is_empty(), "{script} with {} ranks: {left:?}", 2 * each);
        }
        let text = SCRIPT.replace("$dir/$rank", "$dir/$host").replace("prealloc", "prealloc,share=host");
        let wml = Wml::below(mount.dir()).file("x.wml", &text).folder("d").under(hosts.mpirun(13, each));
        let words = ["x.wml", "--dir", "d", "--no-quiesce", "--clean", "--runtime", "2"];
        let run = wml.args(words).result().timeout(Duration::from_mins(3)).run().exits(0).only_run();
        counts_agree(&run, 2 * each);
        // The parts of the ranks of both hosts: two trees of 50 files.
        assert_eq!(run["filesets"][0]["files"], 100, "{:#}", run["filesets"]);
    }
}

/// Each rank uses what the next one has written.
#[test]
fn ranks_use_the_files_of_their_neighbours() {
    let text = SCRIPT.replace("$dir/$rank", "$dir").replace("prealloc", "prealloc,share=neighbour");
    // This flowop picks the files in rotation.
    let text = text.replace("readwholefile", "statfile");
    let wml = Wml::new().file("x.wml", &text).folder("d").under(mpirun(3));
    let words = ["x.wml", "--dir", "d", "--no-quiesce", "--clean", "--runtime", "2", "--trace", "t:60"];
    let output = wml.args(words).run().exits(0);
    // File n of the set is in the part of rank n modulo 3. The names end with the number in directory order, so that the
    // files of a part are compared as sets.
    let files = |name: &str| {
        let text = std::fs::read_to_string(output.dir().join(name)).unwrap();
        let file = |line: &str| line.split('\t').find(|field| field.contains("/data/")).map(str::to_owned);
        text.lines().filter_map(file).collect::<std::collections::BTreeSet<String>>()
    };
    let parts = [files("t"), files("t.1"), files("t.2")];
    // 50 files: the parts of the ranks 0, 1 and 2 have 17, 17 and 16. Rank 1 reads that of rank 2.
    assert_eq!(parts.each_ref().map(std::collections::BTreeSet::len), [17, 16, 17]);
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        assert!(parts[one].is_disjoint(&parts[other]), "{one} and {other}");
    }
}

/// Each rank writes a trace of its own. The trace of rank 0 is that of a single process.
#[test]
fn each_rank_writes_its_trace() {
    let output = call(mpirun(2), "1").args(["--trace", "t:20", "--seed", "7"]).run().exits(0);
    let lines = |name: &str| std::fs::read_to_string(output.dir().join(name)).unwrap().lines().count();
    assert_eq!((lines("t"), lines("t.1")), (lines("t"), lines("t")));
    assert!(lines("t") > 20);
}

/// An error that all ranks have is printed once, by rank 0.
#[test]
fn an_error_of_all_ranks_is_printed_once() {
    let text = SCRIPT.replace("$n=50", "$n=50 + 1 + 2");
    let all = |words: &[&str]| {
        let wml = Wml::new().file("x.wml", &text).folder("d").under(mpirun(3));
        wml.args(words.iter().copied()).run().exits(2)
    };
    for (words, error) in [
        (&["x.wml", "--dir", "d"][..], "error[E0105]: `+` is not allowed here"),
        (&["y.wml", "--dir", "d"], "error: no file or personality is named `y.wml`"),
    ] {
        let output = all(words);
        assert_eq!(output.stderr.matches(error).count(), 1, "{}", output.stderr);
        assert!(!output.stderr.contains("ranks, the first of them"), "{}", output.stderr);
    }
}

#[test]
fn ranks_that_differ_are_refused() {
    let more = |words: &[&str]| {
        let wml = Wml::new().file("x.wml", SCRIPT).file("y.wml", &format!("{SCRIPT}#\n")).folder("d").folder("e");
        let first = ["x.wml", "--dir", "d", "--runtime", "1", ":", "-n", "1"];
        let second: Vec<String> = std::iter::once(binary().to_str().unwrap().to_owned())
            .chain(words.iter().map(|w| (*w).to_owned()))
            .collect();
        wml.under(mpirun(1)).args(first).args(second).run()
    };
    let host = tool("uname", &["-n"]).trim().to_owned();
    let start = format!("error: rank 1 on `{host}` differs from rank 0 on `{host}`: ");
    for (words, status, message) in [
        (&["x.wml", "--dir", "d", "--runtime", "1", "--set", "n=5"][..], 3, format!("{start}`$n` is 5, not 50")),
        (&["y.wml", "--dir", "d", "--runtime", "1"], 3, format!("{start}the SHA-256 digest of the script is ")),
        (&["x.wml", "--dir", "d", "--runtime", "2"], 3, format!("{start}`--runtime` is 2s, not 1s")),
        (&["x.wml", "--dir", "e", "--runtime", "1"], 3, format!("{start}`$dir` is e, not d")),
        (
            &["z.wml", "--dir", "d", "--runtime", "1"],
            2,
            format!("rank 1 on `{host}`:\nerror: no file or personality is named `z.wml`"),
        ),
    ] {
        let output = more(words).exits(status);
        assert!(output.stderr.contains(&message), "{message}: {}", output.stderr);
        let empty = |name: &str| std::fs::read_dir(output.dir().join(name)).unwrap().count() == 0;
        assert!(empty("d") && empty("e"), "nothing is created");
    }
}

/// Open MPI ends the other ranks a moment after one has died. The report of the rest is out before that.
#[test]
fn a_killed_rank_is_named_and_the_others_are_reported() {
    let running = call(mpirun(3), "60").start();
    let dir = running.dir().to_owned();
    signal(&running, &dir, 1, rustix::process::Signal::KILL);
    let output = running.wait();
    assert_eq!(output.code(), 137, "{}", output.shown());
    let run = output.only_run();
    assert_eq!((&run["state"], run["ranks"].as_array().unwrap().len()), (&"failed".into(), 2), "{run:#}");
    assert_eq!(run["lost_ranks"][0]["rank"], 1);
}

/// A rank that had no time to report leaves its figures up to the last second.
#[test]
fn a_killed_rank_leaves_its_snapshots() {
    let running = call(mpirun(3), "60").start();
    let (dir, name) = (running.dir().to_owned(), "rank-1.snapshots");
    let is_written = || std::fs::metadata(dir.join(name)).is_ok_and(|meta| meta.len() > 0);
    wait_for("wrote a snapshot", || is_written().then_some(()));
    signal(&running, &dir, 1, rustix::process::Signal::KILL);
    let output = running.wait();
    assert_eq!(output.code(), 137, "{}", output.shown());
    assert!(output.stderr.contains("last figures in `rank-1.snapshots`"), "{}", output.stderr);
    let path = output.dir().join(name);
    let report = tool(binary().to_str().unwrap(), &["report", path.to_str().unwrap(), "--format", "json"]);
    let run = serde_json::from_str::<Value>(&report).unwrap()["runs"][0].clone();
    assert_eq!((&run["state"], &run["ranks"][0]["rank"]), (&"interrupted".into(), &1.into()), "{run:#}");
    assert!(run["measured_seconds"].as_f64().unwrap() > 0.9, "{run:#}");
    counts_agree(&run, 1);
    let page = tool(binary().to_str().unwrap(), &["report", path.to_str().unwrap()]);
    assert!(page.contains("<html"), "{page}");
}

/// With `--enable-recovery` the others go on to their end.
#[test]
fn the_other_ranks_go_on_without_a_killed_one() {
    let words = [&mpirun(3)[..], &["--enable-recovery".to_owned()]].concat();
    let running = call(words, "8").start();
    let dir = running.dir().to_owned();
    signal(&running, &dir, 1, rustix::process::Signal::KILL);
    let output = running.wait();
    let run = output.only_run();
    assert_eq!((&run["state"], run["ranks"].as_array().unwrap().len()), (&"failed".into(), 2), "{run:#}");
    assert!(run["measured_seconds"].as_f64().unwrap() > 7.0, "{run:#}");
    assert!(output.stderr.contains("error: rank 1 on `"), "{}", output.stderr);
}

/// The results of the others are not lost with rank 0.
#[test]
fn ranks_without_rank_0_keep_their_results() {
    let running = call(mpirun(3), "60").start();
    let dir = running.dir().to_owned();
    signal(&running, &dir, 0, rustix::process::Signal::KILL);
    let output = running.wait();
    assert_eq!(output.code(), 137, "{}", output.shown());
    for rank in [1, 2] {
        let text = std::fs::read_to_string(output.dir().join(format!("rank-{rank}.json"))).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let run = &document["runs"][0];
        assert_eq!(run["state"], "interrupted", "{run:#}");
        assert!(run["summary"]["ops"].as_u64().unwrap() > 0, "{run:#}");
        assert!(output.stderr.contains(&format!("rank {rank} on `")), "{}", output.stderr);
    }
}

/// A stopped rank is lost after twenty seconds.
#[test]
fn a_stopped_rank_is_lost() {
    let running = call(mpirun(3), "4").start();
    let dir = running.dir().to_owned();
    signal(&running, &dir, 2, rustix::process::Signal::STOP);
    let output = running.wait();
    let run = output.only_run();
    assert_eq!((output.code(), &run["lost_ranks"][0]["rank"]), (1, &2.into()), "{}", output.shown());
    let why = run["lost_ranks"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("has not answered for 2"), "{why}");
}

/// A network that fails for five seconds does not end the run.
#[test]
fn a_short_failure_of_the_network_is_survived() {
    let hosts = Hosts::new(["wmb1", "wmb2"], 12);
    let running = call(hosts.mpirun(12, 1), "12").timeout(Duration::from_mins(3)).start();
    let dir = running.dir().to_owned();
    measuring(&dir, 1);
    hosts.link("down");
    std::thread::sleep(Duration::from_secs(5));
    hosts.link("up");
    let output = running.wait().exits(0);
    is_sum(&output, 2);
}

/// An interrupt ends all ranks, with a report.
#[test]
fn an_interrupt_ends_all_ranks() {
    let running = call(mpirun(3), "60").start();
    let dir = running.dir().to_owned();
    measuring(&dir, 2);
    running.signal(rustix::process::Signal::INT);
    let output = running.wait();
    assert_ne!(output.code(), 0, "{}", output.shown());
    let run = output.only_run();
    assert!(["interrupted", "failed"].contains(&run["state"].as_str().unwrap()), "{run:#}");
    assert!(run["summary"]["ops"].as_u64().unwrap() > 0, "{run:#}");
}

/// The ranks would measure at different times.
#[test]
fn a_warm_up_until_steady_is_refused() {
    let output = call(mpirun(2), "1").args(["--warmup", "auto"]).run().exits(3);
    assert_eq!(output.stderr.matches("give the length of the warm-up").count(), 1, "{}", output.shown());
    // An option that one rank lacks.
    let words = "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- --pin \"$@\"; fi; exec \"$0\" \"$@\"";
    let output = call([mpirun(2), ["sh", "-c", words].map(str::to_owned).to_vec()].concat(), "1").run().exits(3);
    assert!(output.stderr.contains("`--pin` is given, and missing on rank 0"), "{}", output.shown());
}

/// The shell and experiments are not for several processes.
#[test]
fn commands_other_than_run_are_refused() {
    let output = Wml::new().file("x.wml", SCRIPT).under(mpirun(2)).args(["repeat", "x.wml"]).run().exits(2);
    assert!(output.stderr.contains("start `wmlrun repeat` once; the place for a command"), "{}", output.stderr);
}

/// An experiment starts its runs under `mpirun`.
#[test]
fn an_experiment_starts_ranks() {
    let wml = Wml::new().file("x.wml", SCRIPT).folder("d").args(["repeat", "x.wml", "--runs", "2", "--results", "r"]);
    let launch = mpirun(2).join(" ");
    let output = wml.args(["--dir", "d", "--no-quiesce", "--runtime", "1", "--launch", &launch]).run();
    assert!([0, 11].contains(&output.code()), "{}", output.shown());
    for run in ["0001", "0002"] {
        let text = std::fs::read_to_string(output.dir().join(format!("r/runs/{run}.json"))).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["runs"][0]["ranks"].as_array().unwrap().len(), 2);
    }
}
