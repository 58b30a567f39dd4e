//! Helpers with the shipped scripts, and values that make each of them small enough for a test.
//!
//! The variables to reduce are recognised by their names, which Filebench's scripts share. A script without such
//! variables runs unchanged.
//! Deliberately absent: running the scripts.

use std::fs;
use std::path::{Path, PathBuf};

/// The personalities that a first version must have; the everyday tests on real file systems run these.
pub(crate) const FIRST: [&str; 12] = [
    "createfiles",
    "fileserver",
    "oltp",
    "oltp_sync",
    "randomread",
    "randomwrite",
    "seqwrite",
    "singlestreamread",
    "singlestreamwrite",
    "varmail",
    "webproxy",
    "webserver",
];

/// The maximum value of a variable.
const CAPS: &[(&str, &str)] = &[
    ("nfiles", "1000"),
    ("ndirs", "200"),
    ("filesize", "8m"),
    ("logfilesize", "2m"),
    ("maxsize", "16m"),
    ("maxlogsize", "16m"),
    ("total", "16m"),
    ("bytes", "4m"),
    ("iosize", "1m"),
    ("count", "64"),
    ("iters", "16"),
    ("transactions", "2000"),
    // Processor time that clients of a database take between their reads: with the default its writers wait long for their turn.
    ("usermode", "1000"),
    ("seeks", "2004"),
    ("nqueue", "200"),
    ("nmail", "500"),
    ("mails", "200"),
    ("nlinks", "100"),
    ("numactivevids", "4"),
    ("numpassivevids", "8"),
    ("repintval", "1"),
    ("unit", "2k"),
    ("samplesize", "256k"),
    ("perfile", "20"),
    ("rankbytes", "100m"),
];
/// Files at most this large where there are many of them.
const MANY: (u64, &str) = (100, "16k");
/// Files at most this large where they are written in pieces below so many bytes.
const FEW_BYTES: (u64, &str) = (512, "512k");
/// `$fraction` divides a count of files: the larger the smaller.
const FRACTION: (&str, &str) = ("fraction", "1000");
/// Threads and processes at most, where a test does not want as many as the script says.
const CROWD: &[(&str, &str)] = &[
    ("nthreads", "8"),
    ("nshadows", "10"),
    ("ndbwriters", "2"),
    ("nprocesses", "4"),
    ("ninstances", "2"),
    ("nseekers", "2"),
];

/// A shipped script.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// What a user calls it: a personality's name, or an example's path.
    pub(crate) call: String,
    /// Its name without folder and ending.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

impl Script {
    fn of(path: &Path, call: String) -> Self {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self { call, name, text: fs::read_to_string(path).unwrap() }
    }

    /// The variables that it sets to plain numbers, with their texts.
    pub(crate) fn numbers(&self) -> Vec<(&str, &str)> {
        let sets = self.text.lines().filter_map(|line| line.strip_prefix("set $")?.split_once('='));
        // A part of the memory is larger than any bound here.
        let known = |value: &str| value.starts_with("$memory") || value.starts_with("$freememory");
        sets.map(|(name, value)| (name.trim(), if known(value.trim()) { "1t" } else { value.trim() }))
            .filter(|(_, value)| bytes(value).is_some())
            .collect()
    }

    /// Values that make its files small and leave its threads as they are.
    pub(crate) fn small(&self) -> Vec<(&str, &str)> {
        let numbers = self.numbers();
        let default = |name: &str| numbers.iter().find(|(n, _)| *n == name).and_then(|(_, value)| bytes(value));
        let many = default("nfiles").is_some_and(|n| n > MANY.0);
        let mut small = self.capped(CAPS);
        if many && default("filesize").is_some_and(|n| n > bytes(MANY.1).unwrap()) {
            small.retain(|(name, _)| *name != "filesize");
            small.push(("filesize", MANY.1));
        }
        if default("iosize").is_some_and(|n| (1..FEW_BYTES.0).contains(&n)) && default("filesize").is_some() {
            small.retain(|(name, _)| *name != "filesize");
            small.push(("filesize", FEW_BYTES.1));
        }
        if default(FRACTION.0).is_some_and(|n| n < bytes(FRACTION.1).unwrap()) {
            small.push(FRACTION);
        }
        small
    }

    /// Values that leave it few threads and processes.
    pub(crate) fn few_threads(&self) -> Vec<(&str, &str)> {
        self.capped(CROWD)
    }

    /// Values that leave it one of each thread and process.
    pub(crate) fn single(&self) -> Vec<(&str, &str)> {
        let numbers = self.numbers();
        CROWD.iter().filter(|(name, _)| numbers.iter().any(|(n, _)| n == name)).map(|(name, _)| (*name, "1")).collect()
    }

    /// Values that make it use the page cache, for file systems that know no other way.
    pub(crate) fn buffered(&self) -> Vec<(&str, &str)> {
        self.numbers().iter().filter(|(name, _)| *name == "directio").map(|(name, _)| (*name, "0")).collect()
    }

    fn capped(&self, caps: &[(&'static str, &'static str)]) -> Vec<(&str, &str)> {
        let above = |name: &str, value: &str| {
            let (_, cap) = caps.iter().find(|(n, _)| *n == name)?;
            (bytes(value)? > bytes(cap)?).then_some(*cap)
        };
        self.numbers().into_iter().filter_map(|(name, value)| Some((name, above(name, value)?))).collect()
    }
}

/// A number with a unit, as scripts write it.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['k', 'm', 'g', 't']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => 40,
    };
    Some(digits.parse::<u64>().ok()? << shift)
}

fn folder(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wml"));
    paths.sort();
    paths
}

/// Every personality, called by its name: so the one in the binary runs, not the file.
pub(crate) fn personalities() -> Vec<Script> {
    let all: Vec<_> = folder("personalities")
        .into_iter()
        .map(|path| Script::of(&path, path.file_stem().unwrap().to_string_lossy().into_owned()))
        .collect();
    assert!(all.len() >= FIRST.len(), "the personalities were not found");
    all
}

/// Every example, called by its path.
pub(crate) fn examples() -> Vec<Script> {
    let all: Vec<_> =
        folder("examples").into_iter().map(|path| Script::of(&path, path.display().to_string())).collect();
    assert!(!all.is_empty(), "the examples were not found");
    all
}

/// The personality of that name.
pub(crate) fn personality(name: &str) -> Script {
    let found = personalities().into_iter().find(|script| script.name == name);
    found.unwrap_or_else(|| panic!("no personality `{name}`"))
}

/// The personalities of [`FIRST`], or all of them with `WMLRUN_LONG=1`.
pub(crate) fn first_or_all() -> Vec<Script> {
    if crate::cmd::long() { personalities() } else { FIRST.iter().map(|name| personality(name)).collect() }
}

/// All personalities and examples, if the binary is one that was named or with `WMLRUN_LONG=1`; else every fifth of them, another
/// fifth each day. `.ci/run` runs all with the release build.
pub(crate) fn shipped_or_fifth() -> Vec<Script> {
    const PARTS: usize = 5;
    let all = personalities().into_iter().chain(examples());
    if crate::cmd::long() || crate::cmd::named_binary() {
        return all.collect();
    }
    let today = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() / 86_400;
    all.skip(today as usize % PARTS).step_by(PARTS).collect()
}

/// Does `work` with each script, several at a time; fails with all that went wrong, by script.
#[track_caller]
pub(crate) fn for_each(scripts: &[Script], at_once: usize, work: impl Fn(&Script) + Sync) {
    let (next, wrong) = (std::sync::atomic::AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(script)));
                    if let Err(panic) = done {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                        wrong.lock().unwrap().push(format!("{}: {}", script.name, text.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} scripts:\n{}", wrong.len(), scripts.len(), wrong.join("\n\n"));
}

/// How many scripts to run side by side: they wait for their time more than they work.
pub(crate) fn side_by_side() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 8)
}

#[test]
fn small_values_are_below_the_defaults_and_used_by_the_script() {
    let oltp = personality("oltp_sync");
    assert_eq!(oltp.small(), [("usermode", "1000"), ("filesize", "8m"), ("logfilesize", "2m")]);
    assert_eq!(oltp.few_threads(), [("nshadows", "10"), ("ndbwriters", "2")]);
    assert_eq!(oltp.single(), [("nshadows", "1"), ("ndbwriters", "1")]);
    assert_eq!(oltp.buffered(), [("directio", "0")]);
    let fileserver = personality("fileserver");
    assert_eq!(fileserver.small(), [("nfiles", "1000"), ("filesize", "16k")]);
    assert_eq!(fileserver.single(), [("nthreads", "1")]);
    assert_eq!(personality("unit08").small(), [("filesize", "8m")]);
    assert_eq!(personality("laddis_1t").small(), [("fraction", "1000")]);
}
