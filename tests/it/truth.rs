//! Helper that records a program which says each of its calls: its log, and what a trace has of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wml::trace::{TraceEvent, TraceReader, TracedCall};

use crate::cmd::{binary, disk};

/// The calls of each thread.
pub(crate) type Calls = BTreeMap<u32, Vec<String>>;

/// The program, and a directory with one for its files.
pub(crate) struct Truth {
    pub(crate) dir: TempDir,
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self::below(&disk())
    }

    pub(crate) fn below(place: &Path) -> Self {
        let dir = TempDir::new_in(place).unwrap();
        compile("src/trace/tests/truth.c", &dir.path().join("truth"));
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Removes what was made, and returns the words that run it in an empty directory.
    pub(crate) fn words(&self, calls: u32) -> Vec<String> {
        let _ = fs::remove_dir_all(self.path("files"));
        fs::create_dir(self.path("files")).unwrap();
        for name in ["log", "status", "t.wtrace"] {
            let _ = fs::remove_file(self.path(name));
        }
        let path = |name| self.path(name).to_str().unwrap().to_owned();
        vec![path("truth"), path("files"), path("log"), calls.to_string(), "uring".to_owned()]
    }

    /// The same by a shell, which says in a file with what it has ended.
    pub(crate) fn watched(&self, calls: u32) -> Vec<String> {
        let words = self.words(calls).join(" ");
        let script = format!("cd {}; {words}; echo $? > status", self.dir.path().display());
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    }

    /// A recorder, whose trace is `t.wtrace`.
    pub(crate) fn recorder(&self, by: &str, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["record", "--by", by, "-o"]).arg(self.path("t.wtrace")).arg("--under").arg(self.path("files"));
        command.args(args).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Waits until the shell says that it has ended, which it did well.
    #[track_caller]
    pub(crate) fn wait(&self) {
        let began = Instant::now();
        while !self.has_ended() {
            assert!(began.elapsed() < Duration::from_mins(2), "the program does not end");
            sleep(Duration::from_millis(10));
        }
        assert_eq!(fs::read_to_string(self.path("status")).unwrap(), "0\n");
    }

    pub(crate) fn has_ended(&self) -> bool {
        fs::read_to_string(self.path("status")).is_ok_and(|status| status.ends_with('\n'))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Whether a call failed as one fails whose recorder is gone.
    pub(crate) fn has_enosys(&self) -> bool {
        self.log().lines().any(|line| line.ends_with(" -38"))
    }

    /// What it did: its calls without what differs between two runs, which are threads, descriptors and addresses.
    pub(crate) fn output(&self) -> Vec<String> {
        let one = |line: &str| {
            let (_, call) = line.split_once(' ').unwrap();
            match call.starts_with("openat") || call.starts_with("mmap") || call.starts_with("dup") {
                true => call.rsplit_once(' ').unwrap().0.to_owned(),
                false => call.to_owned(),
            }
        };
        let mut calls: Vec<String> = self.log().lines().map(one).collect();
        calls.sort_unstable();
        calls
    }

    /// Its calls as it has said them.
    pub(crate) fn calls(&self) -> Calls {
        let mut calls = Calls::new();
        for line in self.log().lines() {
            let (thread, call) = line.split_once(' ').unwrap();
            calls.entry(thread.parse().unwrap()).or_default().push(call.to_owned());
        }
        calls
    }

    /// Its calls as they are in the trace.
    pub(crate) fn recorded_calls(&self, is_wanted: impl Fn(&TracedCall) -> bool) -> Calls {
        let mut calls = Calls::new();
        let files = fs::canonicalize(self.path("files")).unwrap();
        events(&self.path("t.wtrace"), |event, path| {
            let TraceEvent::Call(call) = event else { return };
            if !is_wanted(call) {
                return;
            }
            let name = match path.strip_prefix(&files) {
                Ok(name) if name.as_os_str().is_empty() => ".",
                Ok(name) => name.to_str().unwrap(),
                Err(_) => "?",
            };
            let offset = call.offset.map_or("-".to_owned(), |offset| offset.to_string());
            let line = format!("{} {name} {offset} {}", call.kind.get().name, call.result);
            calls.entry(call.thread).or_default().push(line);
        });
        calls
    }
}

/// Compiles a program of this project.
pub(crate) fn compile(source: &str, program: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let built = Command::new("cc").args(["-O1", "-w", "-pthread", "-o"]).args([program, &source]).status();
    assert!(built.unwrap().success());
}

/// Passes on the events of a trace, each with the path of a call.
pub(crate) fn events(trace: &Path, mut to: impl FnMut(&TraceEvent, &Path)) {
    let mut reader = TraceReader::new(BufReader::new(fs::File::open(trace).unwrap())).unwrap();
    let all = reader.for_each(|event, paths| {
        let path = match event {
            TraceEvent::Call(call) => call.path.or(call.second_path),
            _ => None,
        };
        let path = path.map(|path| String::from_utf8(paths.path(path)).unwrap());
        to(event, Path::new(&path.unwrap_or_default()));
    });
    all.unwrap();
}

/// Shows the figures of a check.
#[allow(clippy::print_stdout, reason = "the figures are worth more than that they were met")]
pub(crate) fn show(figures: &str) {
    println!("{figures}");
}

/// Waits until it is so, for a minute at most.
pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "it did not happen within a minute");
        sleep(Duration::from_millis(1));
    }
}
