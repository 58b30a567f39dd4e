//! A file system in memory for tests, whose calls are slow, fail, hang or transfer too little, as a test requests.
//!
//! Needs root and `/dev/fuse`; [`available`] returns whether they are present. The file system records its calls and
//! their durations. A call that hangs does so until [`Slow::release`]; the kernel ends such a call for no signal, not
//! even for SIGKILL.
//! Deliberately absent: the programs that run on it.

mod memory;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{BackgroundSession, Config, Errno, MountOption};
use memory::{Memory, Tree};

use crate::cmd::{scratch, skip};

/// Calls that are served at the same time.
const THREADS: usize = 40;

/// Whether such file systems can be mounted here. If not, says so for `test`, or fails it where all must be there.
pub(crate) fn available() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "only root can mount file systems"
    } else if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse can't be opened"
    } else {
        return true;
    };
    skip(why);
    false
}

/// A kind of call that a test can have a say in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// The attributes of a file that is no directory.
    Stat,
    /// The attributes of a directory.
    StatDir,
    /// Finding a directory by its name.
    Walk,
    /// Finding a file, or nothing, by its name.
    Lookup,
    Read,
    Write,
    Open,
    Create,
    /// Each `close` of a descriptor.
    Flush,
    /// The last `close`; no process waits for it.
    Release,
    Fsync,
    /// Attributes that change: `ftruncate`, times, modes.
    Setattr,
    Unlink,
    Rename,
    Mkdir,
    Rmdir,
    Link,
    Symlink,
    Readlink,
    Opendir,
    Readdir,
    Fsyncdir,
    Statfs,
    Setxattr,
    Getxattr,
    Fallocate,
    Lseek,
    CopyRange,
}

/// What is to happen in a call, by its kind, the name of its file and the how-manieth of its kind it is.
type Rule = dyn Fn(Kind, &OsStr, u64) -> Act + Send + Sync;

/// What happens in a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// What is asked for, after so long.
    After(Duration),
    /// This error.
    Fail(Errno),
    /// Hangs until [`Slow::release`], then executes the call.
    Hang,
    /// Of a read, a write or a copy: at most so many bytes.
    Short(usize),
    /// Of attributes: this size, whatever the file has.
    Size(u64),
}

/// The record of the calls of one kind.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    /// How many there were.
    pub(crate) calls: u64,
    /// How long they were held, all together.
    pub(crate) held: Duration,
    now: u64,
    /// The most that were held at one time.
    pub(crate) most: u64,
}

struct State {
    tree: Mutex<Tree>,
    tallies: Mutex<BTreeMap<Kind, Tally>>,
    /// The rule counts from when it is set.
    rule: Mutex<Option<Arc<Rule>>>,
    /// Markers, scripts and results are held too.
    all: bool,
    /// Calls that hang, and whether they are let go.
    hanging: Mutex<(u64, bool)>,
    changed: Condvar,
    handle: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mounted one. Dropped, also by a panic, it is unmounted.
pub(crate) struct Slow {
    dir: PathBuf,
    state: Arc<State>,
    session: Option<BackgroundSession>,
}

impl Slow {
    /// One whose rule has no say in markers, scripts and results: they are no part of what is tested.
    pub(crate) fn new(rule: impl Fn(Kind, &OsStr, u64) -> Act + Send + Sync + 'static) -> Self {
        Self::mount(rule, false)
    }

    /// One whose rule has a say in every file.
    pub(crate) fn of_all(rule: impl Fn(Kind, &OsStr, u64) -> Act + Send + Sync + 'static) -> Self {
        Self::mount(rule, true)
    }

    fn mount(rule: impl Fn(Kind, &OsStr, u64) -> Act + Send + Sync + 'static, all: bool) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("fuse-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = scratch().join(name);
        std::fs::create_dir(&dir).unwrap();
        let (state, config) = served(Some(Arc::new(rule)), all);
        let session = fuser::spawn_mount(Memory(Arc::clone(&state)), &dir, &config).unwrap();
        Self { dir, state, session: Some(session) }
    }

    /// Where it is mounted.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the calls of a kind have come to.
    pub(crate) fn tally(&self, kind: Kind) -> Tally {
        locked(&self.state.tallies).get(&kind).copied().unwrap_or_default()
    }

    /// Waits until a call hangs, for at most so long. Returns whether one does.
    pub(crate) fn wait_for_hang(&self, limit: Duration) -> bool {
        let hanging = locked(&self.state.hanging);
        let waited = self.state.changed.wait_timeout_while(hanging, limit, |(calls, _)| *calls == 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.0 > 0
    }

    /// Lets go of every call that hangs, and has no more say in any.
    pub(crate) fn release(&self) {
        *locked(&self.state.rule) = None;
        locked(&self.state.hanging).1 = true;
        self.state.changed.notify_all();
    }
}

/// The state and the options of one that is to be mounted.
fn served(rule: Option<Arc<Rule>>, all: bool) -> (Arc<State>, Config) {
    let state = Arc::new(State {
        tree: Mutex::new(Tree::new()),
        tallies: Mutex::default(),
        rule: Mutex::new(rule),
        all,
        hanging: Mutex::default(),
        changed: Condvar::new(),
        handle: AtomicU64::new(1),
    });
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("wmlrun-test".to_owned())];
    config.n_threads = Some(THREADS);
    (state, config)
}

/// Serves one at a mount point until it is unmounted, without any rule: for a process of its own, that a test stops or kills.
fn serve(dir: &Path) {
    let (state, config) = served(None, false);
    fuser::mount(Memory(state), dir, &config).unwrap();
}

/// The variable that makes a process of the tests a server.
const SERVE: &str = "WMLRUN_TEST_SERVE";

/// One that a process of its own serves, which a test stops or kills. Dropped, it is unmounted.
pub(crate) struct Server {
    dir: PathBuf,
    process: std::process::Child,
}

impl Server {
    pub(crate) fn new() -> Self {
        crate::watchdog::start();
        let dir = tempfile::Builder::new().prefix("server-").tempdir_in(scratch()).unwrap().keep();
        let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).unwrap());
        let before = device(&dir);
        let mut call = Command::new(std::env::current_exe().unwrap());
        call.args(["--exact", "fuse::it_serves_at_the_given_mount_point"]).env(SERVE, &dir);
        let process = call.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let start = std::time::Instant::now();
        while device(&dir) == before {
            assert!(start.elapsed() < Duration::from_mins(1), "nothing is mounted");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { dir, process }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.process.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount").arg("--lazy").arg(&self.dir).output();
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// The server itself, in a process that [`Server`] starts; elsewhere it mounts one for a moment.
#[test]
fn it_serves_at_the_given_mount_point() {
    if let Some(dir) = std::env::var_os(SERVE) {
        return serve(Path::new(&dir));
    }
    if available() {
        let server = Server::new();
        std::fs::write(server.dir().join("file"), "text").unwrap();
        assert_eq!(std::fs::read_to_string(server.dir().join("file")).unwrap(), "text");
        server.signal(rustix::process::Signal::KILL);
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // Calls that are still held are let go.
        self.release();
        if let Some(session) = self.session.take() {
            // It joins no earlier than the last mount of it is gone, and who has a copy of all mounts may keep one for ever.
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(session.umount_and_join().is_ok()));
            if told.recv_timeout(Duration::from_secs(10)) != Ok(true) {
                // Whoever looks at all mounts just now keeps it busy; detached it is gone from here all the same.
                let _ = Command::new("umount").arg("--lazy").arg(&self.dir).output();
            }
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

#[test]
fn it_stores_data_and_obeys_its_settings() {
    needs!(available());
    let slow = Slow::new(|kind, name, _| match kind {
        Kind::Read if name == "bad" => Act::Fail(Errno::EIO),
        _ => Act::After(Duration::ZERO),
    });
    let dir = slow.dir().join("a");
    std::fs::create_dir(&dir).unwrap();
    for name in ["good", "bad"] {
        std::fs::write(dir.join(name), name).unwrap();
    }
    assert_eq!(std::fs::read_to_string(dir.join("good")).unwrap(), "good");
    let error = std::fs::read(dir.join("bad")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
    assert!(std::fs::remove_dir(&dir).is_err(), "it is not empty");
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(slow.tally(Kind::Write).calls, 2);
    let at = slow.dir().to_owned();
    drop(slow);
    assert!(!at.exists());
}

/// Each fault has its effect, on its own file only.
#[test]
fn transfers_are_short_sizes_are_wrong_and_calls_hang_until_released() {
    use std::os::unix::fs::FileExt;
    needs!(available());
    let slow = Slow::new(|kind, name, _| match (kind, name.to_str()) {
        (Kind::Write | Kind::Read, Some("short")) => Act::Short(3),
        (Kind::Stat, Some("long")) => Act::Size(1 << 20),
        (Kind::Flush, Some("unflushed")) => Act::Fail(Errno::EIO),
        (Kind::Unlink, Some("hangs")) => Act::Hang,
        _ => Act::After(Duration::ZERO),
    });
    let dir = slow.dir();
    let short = std::fs::File::options().read(true).write(true).create_new(true).open(dir.join("short")).unwrap();
    assert_eq!(short.write_at(b"12345678", 0).unwrap(), 3);
    let written = short.write_at(b"45678", 3).unwrap();
    assert_eq!((written, short.read_at(&mut [0; 8], 0).unwrap()), (3, 3));
    std::fs::write(dir.join("long"), "text").unwrap();
    assert_eq!(std::fs::metadata(dir.join("long")).unwrap().len(), 1 << 20);
    let copied = Command::new("cp").arg(dir.join("short")).arg(dir.join("unflushed")).output().unwrap();
    assert!(!copied.status.success(), "the error of the flush is that of the close");
    std::fs::hard_link(dir.join("long"), dir.join("hangs")).unwrap();
    let hangs = dir.join("hangs");
    let remover = std::thread::spawn(move || std::fs::remove_file(hangs));
    assert!(slow.wait_for_hang(Duration::from_mins(1)));
    assert!(!remover.is_finished());
    slow.release();
    remover.join().unwrap().unwrap();
    // Who has it open keeps it when its last name goes.
    std::fs::remove_file(dir.join("short")).unwrap();
    assert_eq!(short.read_at(&mut [0; 8], 0).unwrap(), 6);
}
