//! Helper that records programs whose calls are known: one that says each of its calls, with its log and what a trace has of
//! it, and one that makes those of `calls.c`.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use wml::trace::{BpfRecorder, TraceEvent, TraceReader, TracedCall};

use crate::cmd::{binary, disk, skip};

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
        let dir = self.dir.path().to_str().unwrap();
        let shell = ["sh", "-c", "cd \"$0\"; \"$@\"; echo $? > status", dir].map(str::to_owned);
        shell.into_iter().chain(self.words(calls)).collect()
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

/// The program of `calls.c`, in a directory of its own. Dropped, it is killed wherever it runs.
pub(crate) struct CallsProgram(TempDir);

impl CallsProgram {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new_in(disk()).unwrap();
        compile("tests/it/calls.c", &dir.path().join("calls"));
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn program(&self) -> String {
        self.path("calls").to_str().unwrap().to_owned()
    }

    /// Starts it as one that a recorder attaches to, and waits until it writes.
    pub(crate) fn steady(&self) -> Child {
        let mut command = Command::new(self.program());
        let child = command.arg("steady").current_dir(self.dir()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        wait_for(|| self.written() > 0);
        child.unwrap()
    }

    /// How much it has written while it ran steadily.
    pub(crate) fn written(&self) -> u64 {
        fs::metadata(self.path("steady")).map_or(0, |meta| meta.len())
    }

    /// Waits until it has written so much more.
    pub(crate) fn writes(&self, more: u64) {
        let before = self.written();
        wait_for(|| self.written() >= before + more);
    }

    /// Kills it, whoever started it.
    pub(crate) fn kill(&self) {
        let program = fs::canonicalize(self.program()).unwrap();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let is_it = fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == program);
            let number = process.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(process) = number.filter(|_| is_it).and_then(Pid::from_raw) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

impl Drop for CallsProgram {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether programs in the kernel are allowed here. Says so if not.
pub(crate) fn has_bpf() -> bool {
    BpfRecorder::allowed().inspect_err(|why| skip(&why.to_string())).is_ok()
}

/// Compiles a program of this project, once for all that want it.
pub(crate) fn compile(source: &str, program: &Path) {
    static COMPILED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap();
    let first = compiled.entry(source.to_owned()).or_insert_with(|| {
        let name = Path::new(source).file_stem().unwrap().to_str().unwrap();
        let [own, all] = [format!("{name}-{}", std::process::id()), format!("{name}-compiled")].map(|n| disk().join(n));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let built = Command::new("cc").args(["-O1", "-w", "-pthread", "-o"]).args([&own, &source]).status();
        assert!(built.unwrap().success());
        fs::rename(&own, &all).unwrap();
        all
    });
    if fs::hard_link(&first, program).is_err() {
        copy(first, program);
    }
}

/// Copies a program, not by this process: what its other threads start may have it open for writing still, and then nobody can
/// execute it.
pub(crate) fn copy(program: &Path, to: &Path) {
    assert!(Command::new("cp").args([program, to]).status().unwrap().success());
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
#[track_caller]
pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "it did not happen within a minute");
        sleep(Duration::from_millis(1));
    }
}
