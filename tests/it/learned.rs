//! Tests `wmlrun learn`: a script that is learned from a trace of another one makes the same calls, in the same shares and
//! sizes; and what is no trace of a program is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use wml::trace::{CallClass, TraceEvent, TraceReader};

use crate::cmd::{Wml, short_or_long};
use crate::truth::has_bpf;

/// The most points by which the share of a class differs, and the most per cent of bytes and syncs for each call; of bytes,
/// more if the samples can't say.
const MOST_POINTS: f64 = 1.0;
const MOST_PERCENT: f64 = 2.0;
/// Syncs or bytes for each call below which there are none.
const LEAST_EACH: f64 = 0.001;

/// A script that is recorded, learned, and recorded again.
struct RoundTrip {
    script: &'static str,
    sets: &'static [&'static str],
    /// The files whose sizes the transfers have: so many draws they are.
    files: usize,
    /// True if it ends by itself: all its calls are compared. Of others, the middle of the calls: at the beginning and end
    /// files are made and looked at.
    ends: bool,
    /// False for the long mode alone.
    is_quick: bool,
    /// True if its threads post to each other.
    has_posts: bool,
}

const fn trip(script: &'static str, sets: &'static [&'static str], files: usize) -> RoundTrip {
    RoundTrip { script, sets, files, ends: false, is_quick: true, has_posts: false }
}

impl RoundTrip {
    const fn ending(self) -> Self {
        Self { ends: true, ..self }
    }

    const fn posting(self) -> Self {
        Self { has_posts: true, ..self }
    }

    const fn long(self) -> Self {
        Self { is_quick: false, ..self }
    }
}

/// Few threads with little to compute: they often wait for each other.
const OLTP: &[&str] = &["filesize=2m", "nshadows=8", "ndbwriters=2", "usermode=10000"];

const ALL: &[RoundTrip] = &[
    trip("varmail", &["nthreads=2", "nfiles=200"], 200),
    trip("fileserver", &["nthreads=2", "nfiles=200"], 200),
    trip("webserver", &["nthreads=1"], 1000).long(),
    trip("webproxy", &["nthreads=1", "nfiles=500"], 500).long(),
    trip("oltp", OLTP, usize::MAX).posting().long(),
    trip("oltp_sync", OLTP, usize::MAX).posting().long(),
    trip("randomread", &["filesize=16m"], usize::MAX).long(),
    trip("copyfiles", &["nfiles=10000"], 10_000).ending().long(),
    // The thousand files of its beginning are part of the loop that is learned: 2.4 % of the bytes of 144,000 calls.
    trip("postmark", &["transactions=2000000"], 500).long(),
    trip("mongo", &["nfiles=20000"], 20_000).ending().long(),
    trip("maildir", &["nthreads=2", "nfiles=300", "nnew=200"], 300),
    trip("untar", &["fraction=1000", "nstreams=2"], 2800).ending(),
];

/// What a trace has.
struct TripFigures {
    calls: f64,
    shares: BTreeMap<CallClass, f64>,
    reads: Vec<i64>,
    writes: Vec<i64>,
    syncs: f64,
}

impl TripFigures {
    /// Of a run of wmlrun with marks only the calls of the script's threads count: its preparation is none of the script.
    fn of(trace: &Path, is_whole: bool) -> Self {
        let mut calls: Vec<(u64, CallClass, i64, u32)> = Vec::new();
        let mut marked: BTreeSet<u32> = BTreeSet::new();
        let mut reader = TraceReader::new(BufReader::new(File::open(trace).unwrap())).unwrap();
        reader
            .for_each(|event, paths| {
                let TraceEvent::Call(call) = event else { return };
                let path = call.path.map(|path| paths.path(path)).unwrap_or_default();
                if path.ends_with(b"wmlrun annotation: thread done") {
                    marked.insert(call.thread);
                } else {
                    calls.push((call.start, call.kind.get().class, call.result.max(0), call.thread));
                }
            })
            .unwrap();
        calls.retain(|call| marked.is_empty() || marked.contains(&call.3));
        calls.sort_unstable();
        if !is_whole {
            calls = calls[calls.len() * 2 / 5..calls.len() * 4 / 5].to_vec();
        }
        let mut shares: BTreeMap<CallClass, f64> = BTreeMap::new();
        calls.iter().for_each(|call| *shares.entry(call.1).or_default() += 100.0 / calls.len() as f64);
        let sizes = |wanted: CallClass| {
            let mut sizes: Vec<i64> = calls.iter().filter(|call| call.1 == wanted).map(|call| call.2).collect();
            sizes.sort_unstable();
            sizes
        };
        let syncs = calls.iter().filter(|call| call.1.syncs()).count() as f64;
        Self {
            calls: calls.len() as f64,
            reads: sizes(CallClass::Read),
            writes: sizes(CallClass::Write),
            shares,
            syncs,
        }
    }
}

/// The largest distance of two distributions, and the distance that two samples of one may have: of so many draws, which for
/// the sizes of whole files are those of the files. One pair of samples in a thousand is further apart.
fn distance(a: &[i64], b: &[i64], files: usize) -> (f64, f64) {
    let below = |all: &[i64], value: i64| all.partition_point(|one| *one <= value) as f64 / all.len().max(1) as f64;
    let far = a.iter().chain(b).map(|value| (below(a, *value) - below(b, *value)).abs()).fold(0.0, f64::max);
    let draws = |all: &[i64]| all.len().clamp(1, files) as f64;
    let samples = 1.95 * (1.0 / draws(a) + 1.0 / draws(b)).sqrt();
    (far, samples.max(0.05))
}

/// The share by which the means of two samples of one distribution differ, once in a thousand pairs, if they are so many
/// draws at most.
fn sampling(a: &[i64], b: &[i64], files: usize) -> f64 {
    let n = a.len().max(1) as f64;
    let mean = a.iter().sum::<i64>() as f64 / n;
    let variance = a.iter().map(|size| (*size as f64 - mean).powi(2)).sum::<f64>() / n;
    let draws = |all: &[i64]| all.len().clamp(1, files) as f64;
    3.3 * variance.sqrt() / mean.max(1.0) * (1.0 / draws(a) + 1.0 / draws(b)).sqrt()
}

/// Records a run of a script in a directory of its own, until no call is lost: on a busy machine some are.
fn recorded(own: &Wml, script: &str, name: &str, more: &[&str], is_marked: bool) -> PathBuf {
    let dir = own.dir().join(name);
    let trace = own.dir().join(format!("{name}.wtrace"));
    let binary = crate::cmd::binary();
    for _ in 0..8 {
        let _ = fs::remove_dir_all(&dir);
        let _ = fs::remove_file(&trace);
        fs::create_dir(&dir).unwrap();
        // Marks are names in the directory of the call.
        let call = Wml::below(if is_marked { &dir } else { own.dir() })
            .args(["record", "-o"])
            .args([&trace])
            .args(["--under"])
            .args([&dir])
            .args(["--"])
            .args([&binary])
            .args(["run", script, "--dir"])
            .args([&dir])
            .args(more);
        let call = if is_marked { call.env("WMLRUN_MARK", "1") } else { call };
        let output = call.alone().run().exits(0);
        if output.stderr.contains("lost: 0\n") {
            break;
        }
    }
    trace
}

/// What differs by more than is allowed between a script and the one that was learned from its trace.
fn faults_of(trip: &RoundTrip) -> Vec<String> {
    let own = Wml::new();
    let limit = [short_or_long("2", "3")];
    let limit: Vec<&str> = ["--runtime"].into_iter().chain(limit).filter(|_| !trip.ends).collect();
    let sets = trip.sets.iter().flat_map(|set| ["--set", set]);
    let more: Vec<&str> = limit.iter().copied().chain(sets).collect();
    let trace = recorded(&own, trip.script, "a", &more, false);
    let learned = Wml::new().args(["learn"]).args([&trace]).run().exits(0);
    let path = own.dir().join("learned.wml");
    fs::write(&path, &learned.stdout).unwrap();
    Wml::new().args(["check"]).args([&path]).run().exits(0);
    let again = recorded(&own, path.to_str().unwrap(), "b", &limit, trip.ends);
    let (a, b) = (TripFigures::of(&trace, trip.ends), TripFigures::of(&again, trip.ends));
    let mut faults = Vec::new();
    let mut see = |what: String, is_far: bool| {
        faults.extend(is_far.then(|| format!("{}: {what}", trip.script)));
    };
    let has_posts = learned.stdout.contains("flowop sempost");
    see(format!("sempost in the script: {has_posts}"), has_posts != trip.has_posts);
    let classes: BTreeSet<CallClass> = a.shares.keys().chain(b.shares.keys()).copied().collect();
    for class in classes {
        let share = |of: &TripFigures| of.shares.get(&class).copied().unwrap_or(0.0);
        let what = format!("{} {:.2} and {:.2} %", class.name(), share(&a), share(&b));
        see(what, (share(&a) - share(&b)).abs() > MOST_POINTS);
    }
    for (name, one, other) in [("reads", &a.reads, &b.reads), ("writes", &a.writes, &b.writes)] {
        let (far, most) = distance(one, other, trip.files);
        see(format!("the sizes of {name} are {far:.3} apart, {most:.3} is allowed"), far > most);
    }
    let mut row = |name: &str, one: f64, other: f64, most: f64| {
        // Fewer are no part of what the script does.
        if one.max(other) < LEAST_EACH {
            return;
        }
        let percent = (other / one - 1.0) * 100.0;
        see(format!("{name} for each call: {one:.3} and {other:.3}, {percent:+.1} %"), percent.abs() > most);
    };
    row("syncs", a.syncs / a.calls, b.syncs / b.calls, MOST_PERCENT);
    let bytes = |sizes: &[i64]| sizes.iter().map(|size| *size as f64).sum::<f64>();
    // Bytes are draws: of sizes, and read are those of the files that there are.
    for (name, one, other, draws) in
        [("bytes written", &a.writes, &b.writes, usize::MAX), ("bytes read", &a.reads, &b.reads, trip.files)]
    {
        let most = MOST_PERCENT.max(100.0 * sampling(one, other, draws));
        row(name, bytes(one) / a.calls, bytes(other) / b.calls, most);
    }
    faults
}

#[test]
fn a_script_that_is_learned_from_a_run_makes_the_same_calls() {
    let faults: Vec<String> =
        ALL.iter().filter(|trip| trip.is_quick || crate::cmd::long()).flat_map(faults_of).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The files below a directory, and their bytes. The mark of a file set is none.
fn files_below(dir: &Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let all = fs::read_dir(dir).unwrap().map(Result::unwrap);
    for entry in all.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")) {
        let meta = entry.metadata().unwrap();
        let below = if meta.is_dir() { files_below(&entry.path()) } else { (1, meta.len()) };
        files += below.0;
        bytes += below.1;
    }
    (files, bytes)
}

#[test]
fn a_learned_script_has_as_many_files_and_bytes_as_it_is_told() {
    // Files that exist, and those that are made.
    for (script, sets, set) in
        [("webserver", &["nfiles=60", "nthreads=1"][..], "bigfileset"), ("copyfiles", &["nfiles=1000"], "")]
    {
        let own = Wml::new();
        let more: Vec<&str> =
            ["--runtime", "2"].into_iter().chain(sets.iter().flat_map(|set| ["--set", set])).collect();
        let trace = recorded(&own, script, "a", &more, false);
        let learned = Wml::new().args(["learn"]).args([&trace]).run().exits(0);
        let path = own.dir().join("learned.wml");
        fs::write(&path, &learned.stdout).unwrap();
        let run = |name: &str, more: &[&str]| {
            let dir = own.dir().join(name);
            fs::create_dir(&dir).unwrap();
            let path = path.to_str().unwrap();
            let call = Wml::new().args(["run", path, "--runtime", "2", "--dir"]).args([&dir]).args(more);
            call.alone().run().exits(0);
            files_below(&dir.join(set))
        };
        let (files, bytes) = run("b", &[]);
        let (more_files, more_bytes) = run("c", &["--set", "files=2", "--set", "scale=3"]);
        assert!(files > 0 && bytes > 0, "{}", learned.stdout);
        // Of files that are made, each thread makes one more than its number.
        let off = more_files.abs_diff(2 * files);
        assert!(off <= 4, "{files} and {more_files} files: {}", learned.stdout);
        // A write has its size.
        if script == "webserver" {
            let ratio = more_bytes as f64 / bytes as f64;
            assert!((5.9..6.1).contains(&ratio), "{ratio}: {}", learned.stdout);
        }
    }
}

#[test]
fn what_is_no_trace_or_an_incomplete_one_is_not_learned_from() {
    let own = Wml::new().file("x", "no trace");
    let foreign = own.args(["learn", "x"]).run().exits(2);
    assert!(foreign.stderr.contains("it is no trace"), "{}", foreign.stderr);
    let own = Wml::new();
    let trace = recorded(&own, "varmail", "a", &["--set", "nthreads=1", "--runtime", "2"], false);
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 40]).unwrap();
    let refused = Wml::new().args(["learn"]).args([&trace]).run().exits(2);
    assert!(refused.stderr.contains("incomplete"), "{}", refused.stderr);
    let learned = Wml::new().args(["learn", "--incomplete"]).args([&trace]).run().exits(0);
    assert!(learned.stdout.contains("define process"), "{}", learned.stdout);
}

/// Clients that share the syncs of a log. A sync takes a millisecond, wherever the files are.
const GROUP: &str = "# dialect: fsl
set $clients=4
define file name=table,path=$dir,size=16m,prealloc
define file name=log,path=$dir,size=16m,prealloc
define flowop name=commit,group {
  flowop write name=log-write,filesetname=log,fd=102,iosize=8k,wrap=16m
  flowop delay name=log-device,value=0.001
  flowop fdatasync name=log-sync,filesetname=log,fd=102
}
define flowop name=bank {
  flowop read name=page,filesetname=table,fd=101,iosize=8k,random,iters=8
  flowop compute name=work,value=0.0002
  flowop commit name=commit
}
define process name=p { thread name=client,instances=$clients { flowop bank name=bank } }
";

/// The syncs of a run with so many clients, for each transaction, which has eight reads.
fn syncs_each(own: &Wml, script: &Path, clients: usize) -> f64 {
    let dir = own.dir().join("run");
    fs::create_dir_all(&dir).unwrap();
    let set = format!("clients={clients}");
    let call = Wml::new().args(["run"]).args([script]).args(["--runtime", "3", "--set", &set, "--dir"]).args([&dir]);
    let run = call.result().alone().run().exits(0).only_run();
    let all = |kind: &str| {
        let flowops = run["flowops"].as_array().unwrap().iter().filter(|flowop| flowop["kind"] == kind);
        flowops.map(|flowop| flowop["ops"].as_u64().unwrap()).sum::<u64>() as f64
    };
    8.0 * all("fdatasync") / all("read")
}

#[test]
fn clients_that_share_syncs_do_so_in_the_learned_script_with_any_number_of_clients() {
    needs!(has_bpf());
    let own = Wml::new().file("group.wml", GROUP);
    let original = own.dir().join("group.wml");
    let trace = recorded(&own, original.to_str().unwrap(), "a", &["--runtime", "2"], false);
    let learned = Wml::new().args(["learn"]).args([&trace]).run().exits(0).stdout;
    assert!(learned.contains("define flowop name=commit1,group {") && !learned.contains(",mix {"), "{learned}");
    let path = own.dir().join("learned.wml");
    fs::write(&path, &learned).unwrap();
    Wml::new().args(["check"]).args([&path]).run().exits(0);
    if !crate::cmd::long() {
        return;
    }
    // The control has a fixed weight, as it was recorded.
    let fixed = own.dir().join("fixed.wml");
    let share = syncs_each(&own, &original, 4) * 100.0;
    let mix = format!(
        "define flowop name=commit0,mix {{\n  flowop commit1 name=syncs,weight={share:.2}\n  \
         flowop delay name=waits,value=0.001,weight={:.2}\n}}\n\ndefine flowop name=loop1 {{",
        100.0 - share
    );
    let text = learned.replace("name=commit1,group", "name=commit1").replace("flowop commit1 ", "flowop commit0 ");
    fs::write(&fixed, text.replace("define flowop name=loop1 {", &mix)).unwrap();
    let apart = [1, 2, 4, 8].map(|clients| {
        let program = syncs_each(&own, &original, clients);
        [&path, &fixed].map(|script| syncs_each(&own, script, clients) / program - 1.0)
    });
    assert!(apart.iter().all(|[learned, _]| learned.abs() < 0.1), "{apart:?} {learned}");
    assert!(apart.iter().any(|[_, fixed]| fixed.abs() > 0.5), "{apart:?}");
}
