//! Helpers that run the program under `strace` and parse the system calls of its threads.
//!
//! With `WMLRUN_MARK=1` the program looks up names that do not exist, `wmlrun annotation: TEXT`, which costs almost
//! nothing and is visible in the trace: [`GATE`] immediately before the threads start, [`DONE`] by each thread after
//! its last step, and [`OVER`] when all have finished. Between the first and the others are the calls of the steps, and
//! no other calls on files.
//! Deliberately absent: the expected calls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::cmd::{Output, Wml, has, skip};

/// The mark before the threads start.
const GATE: &str = "wmlrun annotation: gate opens";
/// The mark of a thread that has done its last step.
const DONE: &str = "wmlrun annotation: thread done";
/// The mark after all of them have.
const OVER: &str = "wmlrun annotation: all threads are done";

/// The calls that work on files or directories, and those that carry marks.
const TRACED: &str = "/^(open|openat|openat2|creat|close|p?read(64)?|readv|preadv2?|p?write(64)?|writev|pwritev2?|lseek|unlink\
    |unlinkat|rmdir|mkdir|mkdirat|fsync|fdatasync|syncfs|sync_file_range|stat|lstat|fstat|newfstatat|statx|f?truncate(64)?|fallocate\
    |fadvise64|rename|renameat2?|linkat|symlinkat|readlinkat|getdents64|copy_file_range|sendfile(64)?|utimensat|access|faccessat2?|io_uring_enter\
    |execve|fchmod|fchmodat2?|fchown|fchownat|f[gs]etxattr|flistxattr|fcntl)$";

/// Whether processes can be traced here. If not, says so for `test`, or fails it where all must be there.
pub(crate) fn available() -> bool {
    let works = has("strace")
        && std::process::Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .output()
            .is_ok_and(|o| o.status.success());
    if !works {
        skip("strace is missing or may not trace");
    }
    works
}

/// One call of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Microseconds since the epoch.
    time: u64,
    /// Its name, such as `pread64`.
    pub(crate) name: String,
    /// As strace prints them: descriptors with their paths, paths in quotes, data left out.
    pub(crate) args: Vec<String>,
    /// What it returned; none if it never did.
    pub(crate) result: Option<i64>,
    /// The rest of the result: `ENOENT (…)`, or the path of a new descriptor.
    told: String,
}

impl Call {
    /// The path of the first descriptor, as the kernel knows it; of `sendfile` that of the file sent, which is the second.
    pub(crate) fn descriptor(&self) -> Option<&str> {
        bracketed(self.args.get(usize::from(self.name.starts_with("sendfile")))?)
    }

    /// The path among the arguments.
    pub(crate) fn path(&self) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix('"')?.strip_suffix('"'))
    }

    /// The file or directory that it works on: by its descriptor, or below the directory that it names.
    pub(crate) fn file(&self) -> String {
        let base = self.descriptor().unwrap_or("");
        match self.path() {
            Some(path) if path.starts_with('/') => path.to_owned(),
            Some("") | None => base.to_owned(),
            Some(path) => format!("{base}/{path}"),
        }
    }

    /// Whether it opens a directory, as the tool does to find files.
    pub(crate) fn opens_directory(&self) -> bool {
        self.name.starts_with("open")
            && self.args.iter().any(|arg| arg.contains("O_DIRECTORY") || arg.contains("O_PATH"))
    }

    /// Whether it looks at a file or a directory, as the tool does to see that it is the set's own, and has an open file wait as
    /// usual; no flowop makes these calls.
    pub(crate) fn looks(&self) -> bool {
        self.name == "fcntl" && self.args.get(1).is_some_and(|command| command.ends_with("ETFL"))
            || self.name == "statx"
            || self.name == "fstat" && self.args.iter().any(|arg| arg.contains("S_IFDIR"))
    }

    /// Whether it has given a new descriptor.
    pub(crate) fn opens(&self) -> bool {
        self.name.starts_with("open") && self.result.is_some_and(|r| r >= 0)
    }

    /// Whether it moves data out of a file.
    pub(crate) fn reads(&self) -> bool {
        self.name.starts_with("read") || self.name.starts_with("pread") || self.name.starts_with("sendfile")
    }

    /// Whether it moves data into a file.
    pub(crate) fn writes(&self) -> bool {
        self.name.starts_with("write") || self.name.starts_with("pwrite")
    }

    /// Bytes moved.
    pub(crate) fn bytes(&self) -> u64 {
        if self.reads() || self.writes() { self.result.map_or(0, |r| r.max(0) as u64) } else { 0 }
    }

    /// Bytes asked for, of a single read or write.
    pub(crate) fn size(&self) -> Option<u64> {
        self.args.get(2)?.parse().ok()
    }

    /// Where in the file, of `pread64` and `pwrite64`.
    pub(crate) fn offset(&self) -> Option<u64> {
        self.args.get(3)?.parse().ok()
    }

    /// The name of its error.
    pub(crate) fn error(&self) -> Option<&str> {
        self.result.is_some_and(|r| r < 0).then(|| self.told.split(' ').next().unwrap_or(""))
    }

    fn is_mark(&self, text: &str) -> bool {
        self.name.contains("access") && self.path() == Some(text)
    }
}

/// The path in `5</tmp/x>` or `5</tmp/x>(deleted)`.
fn bracketed(arg: &str) -> Option<&str> {
    let (_, rest) = arg.split_once('<')?;
    Some(rest.rsplit_once('>')?.0)
}

/// Calls by thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// By the thread's number, in the order in which it made them.
    pub(crate) threads: BTreeMap<u32, Vec<Call>>,
}

impl Log {
    /// All calls, thread after thread.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.threads.values().flatten()
    }

    /// The calls between the gate and each thread's last step; of threads that help with steps, to the end of the last of those.
    /// The thread that opens the gate executes no steps; it only polls.
    #[track_caller]
    pub(crate) fn of_steps(&self) -> Self {
        let mark = |text| self.calls().find(|call| call.is_mark(text)).map(|call| call.time);
        let gate = mark(GATE).expect("no mark of the gate in the trace");
        let over = mark(OVER).expect("no mark of the end in the trace");
        assert!(mark(DONE).is_some(), "no mark of a thread's end in the trace");
        let steps = |calls: &Vec<Call>| -> Vec<Call> {
            if calls.iter().any(|call| call.is_mark(GATE)) {
                return Vec::new();
            }
            let after = calls.iter().filter(|call| call.time > gate);
            after.take_while(|call| !call.is_mark(DONE) && call.time < over).cloned().collect()
        };
        Self { threads: self.threads.iter().map(|(thread, calls)| (*thread, steps(calls))).collect() }
    }

    /// The calls that the filter takes.
    pub(crate) fn only(&self, keep: impl Fn(&Call) -> bool) -> Self {
        let some = |calls: &Vec<Call>| calls.iter().filter(|call| keep(call)).cloned().collect();
        Self { threads: self.threads.iter().map(|(thread, calls)| (*thread, some(calls))).collect() }
    }

    /// How often each call was made.
    pub(crate) fn counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.name.as_str()).or_default() += 1;
        }
        counts
    }
}

/// Runs a call under strace, with marks.
pub(crate) fn run(call: Wml) -> (Output, Log) {
    let logs = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    let output = call.under(words(logs.path())).env("WMLRUN_MARK", "1").run();
    (output, read(logs.path()))
}

/// Runs another program under strace.
pub(crate) fn of_program(program: &[&str]) -> Log {
    let logs = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    let words = words(logs.path());
    let output = std::process::Command::new(&words[0]).args(&words[1..]).args(program).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    read(logs.path())
}

/// strace, as far as the program that it is to run.
fn words(logs: &Path) -> Vec<OsString> {
    let trace = format!("trace={TRACED}");
    // A file for each thread keeps calls whole; the filter in the kernel keeps all other calls at full speed.
    let strace = ["strace", "-ff", "--seccomp-bpf", "-ttt", "-y", "-s", "0", "-e", "signal=none", "-e", &trace, "-o"];
    strace.iter().map(OsString::from).chain([logs.join("log").into_os_string()]).collect()
}

fn read(dir: &Path) -> Log {
    let mut log = Log::default();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let thread = path.extension().unwrap().to_str().unwrap().parse().unwrap();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        log.threads.insert(thread, text.lines().filter_map(parse).collect());
    }
    log
}

/// A line such as `1700000000.123456 pread64(3</tmp/x>, ""..., 4096, 8192) = 4096`; none for signals and ends.
fn parse(line: &str) -> Option<Call> {
    let (time, rest) = line.split_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let time = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (name, rest) = rest.split_once('(')?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let (args, rest) = split_args(rest);
    let (_, result) = rest.split_once("= ").unwrap_or(("", ""));
    let end = result.find([' ', '<']).unwrap_or(result.len());
    let told = result[end..].trim().to_owned();
    Some(Call { time, name: name.to_owned(), args, result: result[..end].parse().ok(), told })
}

/// The arguments up to the closing bracket, and the rest.
fn split_args(text: &str) -> (Vec<String>, &str) {
    let (mut args, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    // In a text in quotes, and in a path between `<` and `>`, nothing has a meaning but the end of it.
    let (mut until, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        if let Some(end) = until {
            if c == end && !escaped {
                until = None;
            }
            escaped = end == '"' && c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => until = Some('"'),
            '<' => until = Some('>'),
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                args.push(text[from..at].trim().to_owned());
                return (args, &text[at + 1..]);
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                args.push(text[from..at].trim().to_owned());
                from = at + 1;
            }
            _ => {}
        }
    }
    (args, "")
}

#[test]
fn lines_are_parsed() {
    let call = parse(r#"1795172772.767286 pread64(5</tmp/a, b(/x>, ""..., 100, 4) = 76"#).unwrap();
    assert_eq!((call.name.as_str(), call.descriptor(), call.result), ("pread64", Some("/tmp/a, b(/x"), Some(76)));
    assert_eq!((call.size(), call.offset(), call.bytes(), call.error()), (Some(100), Some(4), 76, None));
    let call =
        parse(r#"1.000002 openat(3</tmp/h>, "a\", b", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 4</tmp/h/a", b>"#).unwrap();
    assert_eq!((call.file().as_str(), call.opens(), call.args.len()), (r#"/tmp/h/a\", b"#, true, 4));
    let call =
        parse(r#"1.5 openat(3</tmp>, "no", O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)"#).unwrap();
    assert_eq!((call.error(), call.opens(), call.opens_directory()), (Some("ENOENT"), false, true));
    let call = parse("1795172772.767422 fsync(5</tmp/h/x>(deleted))   = 0").unwrap();
    assert_eq!((call.descriptor(), call.result), (Some("/tmp/h/x"), Some(0)));
    let call = parse(r#"9.000001 newfstatat(3</d>, "x", {st_mode=S_IFREG|0755, st_size=80, ...}, 0) = 0"#).unwrap();
    assert_eq!((call.path(), call.args.len()), (Some("x"), 4));
    let call = parse("9.000001 read(3</d>, <unfinished ...>").unwrap();
    assert_eq!(call.result, None);
    assert!(parse("9.000001 --- SIGCHLD {si_signo=SIGCHLD} ---").is_none());
    assert!(parse("9.000001 +++ exited with 0 +++").is_none());
}

#[test]
fn steps_are_between_the_annotations() {
    let line = |time: u32, text: &str| parse(&format!("1.{time:06} {text}")).unwrap();
    let mark =
        |time, text: &str| line(time, &format!(r#"access("{text}", F_OK) = -1 ENOENT (No such file or directory)"#));
    let read = |time| line(time, r#"pread64(5</x>, ""..., 8, 0) = 8"#);
    let log = Log {
        threads: BTreeMap::from([
            (1, vec![read(5), mark(10, GATE), read(12), mark(40, OVER), read(50)]),
            (3, vec![read(9), read(30), read(45)]),
            (2, vec![read(9), read(11), read(12), mark(13, DONE), line(14, "close(5</x>) = 0")]),
        ]),
    };
    let steps = log.of_steps();
    assert_eq!([1, 2, 3].map(|thread| steps.threads[&thread].len()), [0, 2, 1]);
    assert_eq!(steps.only(|call| call.time < 1_000_012).counts(), BTreeMap::from([("pread64", 1)]));
}

/// The whole way, with a program that is everywhere.
#[test]
fn a_real_trace_is_parsed() {
    needs!(available());
    let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    let target = dir.path().join("file");
    let to = format!("of={}", target.display());
    let log = of_program(&["dd", "if=/dev/zero", &to, "bs=4096", "count=7", "status=none"]);
    let writes = log.only(|call| call.writes() && call.descriptor() == target.to_str());
    assert_eq!(writes.counts(), BTreeMap::from([("write", 7)]));
    assert_eq!(writes.calls().map(Call::bytes).sum::<u64>(), 7 * 4096);
    assert!(log.calls().any(|call| call.opens() && call.file() == target.to_str().unwrap()));
}
