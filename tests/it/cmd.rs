//! Helpers that run the program as a user does: in a new directory, with arguments and a time limit, and return its
//! exit status, output and result.
//!
//! Every result that is read is validated against the published schema.
//! Deliberately absent: expectations of the output, which are in the tests.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::hold::{Hold, Share};
use crate::undisturbed::Machine;

/// The result file's name in the working directory.
const RESULT: &str = "result.json";

/// The binary under test. `WMLRUN_BIN` names another one, such as that of the release build; from the project's root, if it is no
/// absolute path, since each test runs it in a directory of its own.
pub(crate) fn binary() -> PathBuf {
    crate::watchdog::start();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("WMLRUN_BIN").map_or_else(|| env!("CARGO_BIN_EXE_wmlrun").into(), |other| root.join(other))
}

/// A variable of the environment with which the program keeps no results beside the test's own directory.
pub(crate) const STATELESS: (&str, &str) = ("WMLRUN_STATE", "off");

/// A call of the binary under test.
pub(crate) fn program() -> Command {
    stateless(binary())
}

/// A call of another program, which may run the binary under test.
pub(crate) fn stateless(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env(STATELESS.0, STATELESS.1);
    command
}

/// Whether the binary under test is the release build, or another that was named: what runs every script does so with that one.
pub(crate) fn named_binary() -> bool {
    std::env::var_os("WMLRUN_BIN").is_some()
}

/// Whether the tests take their full lengths and sizes (`WMLRUN_LONG=1`).
pub(crate) fn long() -> bool {
    std::env::var_os("WMLRUN_LONG").is_some_and(|v| v == "1")
}

/// One of two values: for every day, and for `WMLRUN_LONG=1`.
pub(crate) fn short_or_long<T>(short: T, full: T) -> T {
    if long() { full } else { short }
}

/// A directory for temporary files: in memory where there is room enough, so that no test waits for a disk that others keep busy.
pub(crate) fn scratch() -> PathBuf {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let shm = Path::new("/dev/shm");
        let free = rustix::fs::statvfs(shm).map_or(0, |room| room.f_bavail * room.f_frsize);
        let roomy = free >= ROOM && tempfile::tempfile_in(shm).is_ok();
        if roomy { shm.join("wmlrun-tests") } else { disk() }
    });
    std::fs::create_dir_all(&*PLACE).unwrap();
    PLACE.clone()
}

/// What the tests that run side by side may take together.
const ROOM: u64 = 6 << 30;

/// A directory for temporary files on the file system of the build.
pub(crate) fn disk() -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A directory in memory, where there is one.
pub(crate) fn memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if tempfile::tempfile_in(shm).is_ok() { shm.to_owned() } else { scratch() }
}

/// A call of the program that is being put together.
pub(crate) struct Wml {
    dir: TempDir,
    before: Vec<OsString>,
    args: Vec<OsString>,
    envs: Vec<(&'static str, OsString)>,
    timeout: Duration,
    result: bool,
    share: Share,
}

impl Wml {
    /// In a fresh directory on the build's file system.
    pub(crate) fn new() -> Self {
        Self::below(&scratch())
    }

    /// In a fresh directory below `place`, which may be a mount.
    pub(crate) fn below(place: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("wmlrun-").tempdir_in(place).unwrap();
        Self {
            dir,
            before: Vec::new(),
            args: Vec::new(),
            envs: Vec::new(),
            timeout: Duration::from_mins(2),
            result: false,
            share: Share::Place,
        }
    }

    /// The working directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Puts a file into the working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Makes an empty directory in the working directory.
    pub(crate) fn folder(self, name: &str) -> Self {
        std::fs::create_dir_all(self.dir().join(name)).unwrap();
        self
    }

    /// Adds arguments.
    pub(crate) fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item: Into<OsString>>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds `--set NAME=VALUE` for each pair.
    pub(crate) fn sets(self, values: &[(&str, &str)]) -> Self {
        self.args(values.iter().flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]))
    }

    /// Asks for a result, for [`Output::result`].
    pub(crate) fn result(mut self) -> Self {
        self.result = true;
        self.args(["--json", RESULT])
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.envs.push((name, value.into()));
        self
    }

    /// Has another program run it: `under(["strace", "-f"])`.
    pub(crate) fn under<I>(mut self, before: I) -> Self
    where
        I: IntoIterator<Item: Into<OsString>>,
    {
        self.before = before.into_iter().map(Into::into).collect();
        self
    }

    /// Kills it after so long, which fails the test. Two minutes if not said.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets no other call of the tests run at the same time: for tests with a time limit.
    pub(crate) fn alone(mut self) -> Self {
        self.share = Share::Alone;
        self
    }

    /// Lets any number of other calls run at the same time: for one that mostly waits.
    pub(crate) fn idle(mut self) -> Self {
        self.share = Share::Idle;
        self
    }

    /// Starts the program and returns at once.
    pub(crate) fn start(self) -> Running {
        let hold = Hold::take(self.share);
        let mut words = self.before.clone();
        words.push(binary().into());
        words.extend(self.args.clone());
        let mut command = stateless(&words[0]);
        command.args(&words[1..]).current_dir(self.dir()).envs(self.envs.iter().cloned()).env("NO_COLOR", "1");
        // A group of its own, so that a time limit ends whatever it has started.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{}: {e}", words[0].display()));
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        Running { child, started, texts: Some((stdout, stderr)), call: Some(self), _hold: hold }
    }

    /// Runs it to its end. A run of a fraction of a second in which a busy machine gave its threads no time is repeated,
    /// but not one whose operations failed.
    pub(crate) fn run(self) -> Output {
        let machine = Machine::now();
        let output = self.start().wait();
        let idle = output.code() == 1
            && output.shown().contains("no operation of any flowop completed within")
            && !output.stdout.contains("warning[errors]");
        if idle && machine.is_disturbed() { output.call.start().wait() } else { output }
    }
}

/// A text with single blanks between its words: the lines of an answer are wrapped.
pub(crate) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text that comes through a pipe, and how long after the start its first byte came.
type Drain = JoinHandle<(String, Option<Instant>)>;

fn drain(mut pipe: impl Read + Send + 'static) -> Drain {
    std::thread::spawn(move || {
        let (mut bytes, mut first, mut buf) = (Vec::new(), None, [0; 8192]);
        while let Ok(n @ 1..) = pipe.read(&mut buf) {
            first.get_or_insert_with(Instant::now);
            bytes.extend_from_slice(&buf[..n]);
        }
        (String::from_utf8_lossy(&bytes).into_owned(), first)
    })
}

/// The folder of a thread in `/proc`.
struct Task(PathBuf);

impl Task {
    /// A file of the folder, empty if the thread has ended.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    fn name(&self) -> String {
        self.read("comm").trim_end().to_owned()
    }

    /// A number in a file of the folder.
    fn number(&self, file: &str, key: &str) -> Option<u64> {
        self.read(file).lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    }

    /// Whether it waits, and can be interrupted. The state follows the name, which is in parentheses.
    fn sleeps(&self) -> bool {
        self.read("stat").rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }
}

/// The threads of a process.
fn tasks(pid: u32) -> impl Iterator<Item = Task> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.into_iter().flatten().flatten().map(|task| Task(task.path()))
}

/// The threads of the workload in a process of wmlrun. The threads of the program itself have its name, or that of their
/// task.
fn workers(pid: u32) -> impl Iterator<Item = Task> {
    let main = Task(format!("/proc/{pid}").into()).name();
    tasks(pid).filter(move |task| {
        let name = task.name();
        name != main && !["aio", "files", "messages", "space", "watchdog"].contains(&name.as_str())
    })
}

/// Reads of the threads of the workload in a process of wmlrun since they started.
fn reads(pid: u32) -> u64 {
    workers(pid).filter_map(|task| task.number("io", "syscr:")).sum()
}

/// How often the threads of the workload in a process of wmlrun have waited, such as for their rate.
#[cfg(feature = "mpi")]
pub(crate) fn waits(pid: u32) -> u64 {
    workers(pid).filter_map(|task| task.number("status", "voluntary_ctxt_switches:")).sum()
}

/// A program that runs. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    started: Instant,
    texts: Option<(Drain, Drain)>,
    call: Option<Wml>,
    _hold: Hold,
}

impl Running {
    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The working directory.
    pub(crate) fn dir(&self) -> &Path {
        self.call.as_ref().unwrap().dir()
    }

    /// Sends it a signal, as another process would.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the threads of the workload read files: the run has begun, and no longer makes its files.
    ///
    /// The reads of those threads alone are counted, three times in a row with at least ten more. On a busy machine the
    /// preparation takes seconds, and reads as often.
    pub(crate) fn wait_until_reading(&mut self) {
        let mut before = reads(self.pid());
        self.wait_until("began to read", |running| {
            let now = reads(running.pid());
            let more = now >= before + 10;
            before = now;
            more
        });
    }

    /// Waits until so many threads of the workload wait for something.
    pub(crate) fn wait_until_asleep(&mut self, threads: usize) {
        self.wait_until("started its threads", |running| {
            workers(running.pid()).filter(Task::sleeps).count() == threads
        });
    }

    /// Waits until its directory has this file.
    pub(crate) fn wait_until_exists(&mut self, name: &str) {
        let file = self.dir().join(name);
        self.wait_until("made its file", |_| file.exists());
    }

    /// Waits until a condition is true three times in a row, a tenth of a second apart.
    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let mut seen = 0;
        while seen < 3 {
            assert!(self.started.elapsed() < self.call.as_ref().unwrap().timeout, "it never {what}");
            if self.child.try_wait().unwrap().is_some() {
                let (stdout, stderr) = self.texts.take().unwrap();
                panic!("it ended before it {what}\n{}{}", stdout.join().unwrap().0, stderr.join().unwrap().0);
            }
            std::thread::sleep(Duration::from_millis(100));
            seen = if holds(self) { seen + 1 } else { 0 };
        }
    }

    /// Waits for its end, or kills it when its time is up, which fails the test.
    pub(crate) fn wait(mut self) -> Output {
        let call = self.call.take().unwrap();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.started.elapsed() > call.timeout {
                self.kill();
                let (stdout, stderr) = self.texts.take().unwrap();
                // Whoever still has the pipes can't be killed, and may keep them for ever.
                let text =
                    |drain: Drain| if drain.is_finished() { drain.join().unwrap().0 } else { "(not ended)".to_owned() };
                panic!("{:?} still ran after {:?}\n{}{}", call.args, call.timeout, text(stdout), text(stderr));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let elapsed = self.started.elapsed();
        let (stdout, stderr) = self.texts.take().unwrap();
        let ((stdout, first), (stderr, _)) = (stdout.join().unwrap(), stderr.join().unwrap());
        let reported = first.map(|at| at - self.started);
        Output { call, status, stdout, stderr, elapsed, reported }
    }

    /// Kills it with all that it has started. What the kernel holds goes later, maybe only when the caller has let go of a file
    /// system: waiting for that here could be for ever.
    fn kill(&mut self) {
        let group = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let since = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// What a call left. The working directory lives as long as this.
pub(crate) struct Output {
    call: Wml,
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// From start to end.
    pub(crate) elapsed: Duration,
    /// From the start to the first byte of standard output.
    pub(crate) reported: Option<Duration>,
}

impl Output {
    /// The exit status; that of a shell for one that a signal ended.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Fails the test, with all that was printed, unless it ended with this status.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "of {:?}\n{}", self.call.args, self.shown());
        self
    }

    /// All that a person sees.
    pub(crate) fn shown(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The working directory.
    pub(crate) fn dir(&self) -> &Path {
        self.call.dir()
    }

    /// Names in the working directory besides the result.
    pub(crate) fn left(&self) -> Vec<String> {
        let names =
            std::fs::read_dir(self.dir()).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name != RESULT).collect();
        names.sort();
        names
    }

    /// The result, valid against the schema.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        assert!(self.call.result, "this call did not ask for a result");
        let text = std::fs::read_to_string(self.dir().join(RESULT))
            .unwrap_or_else(|e| panic!("no result: {e}\n{}", self.shown()));
        let document: Value = serde_json::from_str(&text).unwrap();
        let wrong: Vec<_> = SCHEMA.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "the result does not follow docs/result.schema.json:\n{}", wrong.join("\n"));
        document
    }

    /// The only run of the result.
    #[track_caller]
    pub(crate) fn only_run(&self) -> Value {
        let mut document = self.result();
        let runs = document["runs"].as_array_mut().unwrap();
        assert_eq!(runs.len(), 1, "runs in the result");
        runs.remove(0)
    }
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/result.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// A number of a run, by its path: `["summary", "ops"]`.
#[track_caller]
pub(crate) fn number(value: &Value, path: &[&str]) -> f64 {
    let found = path.iter().fold(value, |v, key| &v[*key]);
    found.as_f64().unwrap_or_else(|| panic!("`{}` is {found}, not a number", path.join(".")))
}

/// A whole number of a flowop or run.
#[track_caller]
pub(crate) fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("`{key}` is {}, not a count", value[key]))
}

/// The flowops of a run.
pub(crate) fn flowops(run: &Value) -> &[Value] {
    run["flowops"].as_array().unwrap()
}

/// The flowop of that name.
#[track_caller]
pub(crate) fn flowop<'a>(run: &'a Value, name: &str) -> &'a Value {
    let found = flowops(run).iter().find(|f| f["name"] == name);
    found.unwrap_or_else(|| panic!("no flowop `{name}` in the result"))
}

/// Runs a system's tool to its end; its standard output.
#[track_caller]
pub(crate) fn tool(program: &str, args: &[&str]) -> String {
    let output = stateless(program).args(args).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {}\n{stderr}", args.join(" "), output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a program of that name is in the path or where system tools are.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/sbin".into(), "/usr/sbin".into()]);
    places.into_iter().any(|place| place.join(program).is_file())
}

/// Says loudly that the test of this thread did not run; where everything must be there (`CI=true`), fails it instead.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "the test can't run: {why}");
    tell_skipped(why);
}

/// Says that the test of this thread did not run, past the test runner's capture, which would hide it in a test that passes.
pub(crate) fn tell_skipped(why: &str) {
    let thread = std::thread::current();
    let text = format!("\nSKIPPED {}: {why}\n", thread.name().unwrap_or_default());
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}
