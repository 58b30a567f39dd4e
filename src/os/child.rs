//! Commands that a script starts. Each runs in a process group of its own, which ends when this program ends for any
//! reason.
//!
//! The groups are in a table that the signal handler reads, so that a second signal kills them all. A process that is
//! killed by SIGKILL runs no handler; for that case a guard process waits for the end of its input and then kills the
//! remaining groups.

use super::fd;
use super::proc::nanoseconds;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The most groups tracked at a time: a command and a collector of the script, and one command for each of many
/// threads.
const MAX_GROUPS: usize = 1024;

/// The groups that exist. 0 marks a free slot.
static GROUPS: [AtomicI32; MAX_GROUPS] = [const { AtomicI32::new(0) }; MAX_GROUPS];

/// The socket by which the guard process is notified of groups.
static GUARD: Mutex<Option<UnixStream>> = Mutex::new(None);

/// The inode number of that socket, which identifies it in another descriptor table.
static GUARD_SOCKET: AtomicU64 = AtomicU64::new(0);

/// The guard process: reads lines `+GROUP` and `-GROUP`, and kills the remaining groups at the end of its input. A line
/// `-GROUP` for a group that is not in its list changes nothing.
const GUARD_SCRIPT: &str = "trap '' INT TERM HUP QUIT; G=' '; \
    while read -r L; do g=${L#?}; case $L in +*) G=\"$G$g \";; \
    *) case $G in *\" $g \"*) G=\"${G%% $g *} ${G#* $g }\";; esac;; esac; done; \
    for g in $G; do kill -KILL -$g 2>/dev/null; done";

/// A command in a process group of its own.
#[derive(Debug)]
pub struct Group {
    id: i32,
    end: ProcessEnd,
    /// Whether the group was added to the table, which may be full.
    tracked: bool,
    ended: Option<(ExitStatus, CpuTimes)>,
}

/// Processor time of a command that has ended, including the children that it has waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    /// User time in nanoseconds, with the kernel's resolution of a microsecond.
    pub user_ns: u64,
    /// System time in nanoseconds, with the same resolution.
    pub system_ns: u64,
}

/// The end of a process: its pidfd, which is readable then. `None` where the kernel provides none.
#[derive(Debug)]
pub struct ProcessEnd(Option<OwnedFd>);

impl ProcessEnd {
    /// That of a child whose status was not collected.
    pub fn of(id: i32) -> Self {
        let open = |pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        Self(rustix::process::Pid::from_raw(id).and_then(open))
    }

    /// Waits for it, for at most `limit`.
    pub fn wait(&self, limit: Duration) {
        match &self.0 {
            Some(descriptor) => _ = fd::wait_readable(descriptor.as_raw_fd(), limit),
            None => std::thread::sleep(limit.min(Duration::from_millis(1))),
        }
    }
}

impl Group {
    /// Starts a command with the shell, without standard input, in `dir` or in the current directory. Its standard
    /// output is that of this program, or standard error if `to_stderr`.
    pub fn start(command: &str, to_stderr: bool, dir: Option<&Path>) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        if let Some(dir) = dir {
            shell.current_dir(dir);
        }
        if to_stderr {
            shell.stdout(io::stderr());
        }
        Self::spawn(shell)
    }

    /// Starts a command in a process group of its own.
    pub fn spawn(command: Command) -> io::Result<Self> {
        Self::spawn_with(command, None)
    }

    /// Starts a command in a process group of its own, which inherits a descriptor under its number.
    pub fn spawn_with(mut command: Command, inherited: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let inherited = inherited.map_or(fd::NONE, |inherited| inherited.as_raw_fd());
        command.process_group(0);
        forget_ended_groups();
        let parent = rustix::process::getpid().as_raw_nonzero().get();
        let guard = guard_in_this_table();
        let guard_fd = guard.as_ref().map_or(fd::NONE, AsRawFd::as_raw_fd);
        let (mut report, child_report) = io::pipe()?;
        let report_fd = child_report.as_raw_fd();
        let prepare = move || {
            // SAFETY: these calls take and return integers only, and may be made between `fork` and `exec`.
            let (orphan, id) = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
                (libc::getppid() != parent, libc::getpid())
            };
            // The parent ended before the death signal was requested.
            if orphan {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            // SAFETY: the call takes and returns integers only. The descriptor is open; without one the call fails.
            unsafe { libc::fcntl(inherited, libc::F_SETFD, 0) };
            // The child notifies the guard, not the parent, so that the guard knows the group before any process in it
            // can outlive this program.
            let (line, length) = message(b'+', id);
            // SAFETY: `line` is a live array of at least `length` bytes. Pipe and socket stay open until `exec`. If the
            // socket is invalid or the guard has been killed, the call fails, which is ignored.
            unsafe {
                libc::write(report_fd, line.as_ptr().cast(), length);
                libc::send(guard_fd, line.as_ptr().cast(), length, libc::MSG_NOSIGNAL);
            }
            Ok(())
        };
        // SAFETY: the closure makes six system calls, all of them async-signal-safe, and neither allocates nor takes
        // locks.
        unsafe { command.pre_exec(prepare) };
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                // The child has notified the guard if only `exec` failed, and it has ended.
                drop(child_report);
                let mut line = Vec::new();
                if report.read_to_end(&mut line).is_ok_and(|length| length > 0) {
                    line[0] = b'-';
                    notify_guard(guard.as_ref(), &line);
                }
                return Err(error);
            }
        };
        let id = child.id() as i32;
        let tracked = GROUPS.iter().any(|slot| slot.compare_exchange(0, id, SeqCst, SeqCst).is_ok());
        Ok(Self { id, end: ProcessEnd::of(id), tracked, ended: None })
    }

    /// Waits for the end of the command, for at most `limit`. Returns its status, or `None` if it is still running.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some((status, _)) = self.poll()? {
                return Ok(Some(status));
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(None);
            }
            self.end.wait(remaining);
        }
    }

    /// Returns the status and the processor time if the command has ended. Does not wait.
    fn poll(&mut self) -> io::Result<Option<(ExitStatus, CpuTimes)>> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: `rusage` consists of integers, for which zero is a valid value.
            let mut used: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live local variables. The process is a child of this one and has not been
            // reaped: its `Child` was dropped without waiting, and only this function waits for it, once.
            match unsafe { libc::wait4(self.id, &raw mut status, libc::WNOHANG, &raw mut used) } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {}
                _ => {
                    let times = CpuTimes { user_ns: nanoseconds(used.ru_utime), system_ns: nanoseconds(used.ru_stime) };
                    self.ended = Some((ExitStatus::from_raw(status), times));
                }
            }
        }
        Ok(self.ended)
    }

    /// Returns the processor time of the command; zero while it runs.
    pub fn times(&self) -> CpuTimes {
        self.ended.map_or_else(CpuTimes::default, |(_, times)| times)
    }

    /// Ends the whole group: sends SIGTERM, waits for at most `grace`, and sends SIGKILL. Returns `false` if the
    /// command has not ended another `grace` later: it is in an uninterruptible wait in the kernel and ends when that
    /// wait does.
    pub fn end(&mut self, grace: Duration) -> bool {
        signal(self.id, libc::SIGTERM);
        let _ = self.wait(grace);
        signal(self.id, libc::SIGKILL);
        !matches!(self.wait(grace), Ok(None))
    }

    /// Sends the command, not its group, the signal by which it passes on this one ([`signals::take_passed_on`]).
    ///
    /// [`signals::take_passed_on`]: super::signals::take_passed_on
    pub fn pass_on(&self, signal: usize) {
        let signal = super::signals::passing_on(signal);
        // SAFETY: the arguments are integers. The process is a child that only `poll` reaps: its ID is its own until then.
        let _ = self.ended.is_none() && unsafe { libc::kill(self.id, signal) == 0 };
    }

    /// Returns the process ID of the command, which is also the ID of its group.
    pub fn id(&self) -> i32 {
        self.id
    }
}

/// How long an interrupted command may take to end.
const END_GRACE: Duration = Duration::from_secs(20);

/// Runs a command in a process group of its own, without standard input, until it ends. Returns its status and its
/// standard output, or `None` if `is_interrupted` returned `true` and the group was ended.
pub fn output(words: &[String], is_interrupted: &dyn Fn() -> bool) -> io::Result<Option<(ExitStatus, String)>> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut stdout = KeptStream::new()?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(stdout.file.try_clone()?);
    let Some(status) = until_end(command, is_interrupted)? else { return Ok(None) };
    Ok(Some((status, stdout.text()?)))
}

/// What a command has written until its end.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// The same with both of its outputs.
pub fn outputs(mut command: Command, is_interrupted: &dyn Fn() -> bool) -> io::Result<Option<CommandOutput>> {
    let (mut stdout, mut stderr) = (KeptStream::new()?, KeptStream::new()?);
    command.stdout(stdout.file.try_clone()?).stderr(stderr.file.try_clone()?);
    let Some(status) = until_end(command, is_interrupted)? else { return Ok(None) };
    Ok(Some(CommandOutput { status, stdout: stdout.text()?, stderr: stderr.text()? }))
}

/// What a command writes to a stream. A pipe could be full before the end of the command.
struct KeptStream {
    file: File,
}

impl KeptStream {
    fn new() -> io::Result<Self> {
        Ok(Self { file: File::from(rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)?) })
    }

    fn text(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Runs a command without standard input until it ends, or `is_interrupted` returns `true` and its group is ended.
pub fn until_end(mut command: Command, is_interrupted: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    command.stdin(Stdio::null());
    let mut group = Group::spawn(command)?;
    loop {
        if let Some(status) = group.wait(Duration::from_millis(100))? {
            return Ok(Some(status));
        }
        if is_interrupted() {
            group.end(END_GRACE);
            return Ok(None);
        }
    }
}

/// The program of this name in one of the directories of `PATH`.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs).map(|dir| dir.join(name)).find(is_program)
}

/// Removes the group from the table if the command has ended and no process is left in the group. Other groups stay in
/// the table and are killed when the program ends, or are removed when a later command starts or ends.
impl Drop for Group {
    fn drop(&mut self) {
        // Without this call the command would stay in its group after its end.
        let _ = self.poll();
        forget_ended_groups();
        if !self.tracked && has_ended(self.id) {
            let (line, length) = message(b'-', self.id);
            notify_guard(guard_in_this_table().as_ref(), &line[..length]);
        }
    }
}

/// Removes the groups from the table that have no process any more. The kernel may give the ID of such a group to
/// another one, which must not be killed.
fn forget_ended_groups() {
    for slot in &GROUPS {
        let group = slot.load(SeqCst);
        if group > 0 && has_ended(group) && slot.compare_exchange(group, 0, SeqCst, SeqCst).is_ok() {
            let (line, length) = message(b'-', group);
            notify_guard(guard_in_this_table().as_ref(), &line[..length]);
        }
    }
}

/// Sends a line to the guard process. An error is ignored: the guard may have been killed.
fn notify_guard(guard: Option<&OwnedFd>, line: &[u8]) {
    if let Some(guard) = guard {
        // SAFETY: the pointer and the length are those of a live slice, and the socket is open.
        unsafe { libc::send(guard.as_raw_fd(), line.as_ptr().cast(), line.len(), libc::MSG_NOSIGNAL) };
    }
}

/// True if no process is in a group. A process that may not be signalled is one.
fn has_ended(group: i32) -> bool {
    // SAFETY: the arguments are integers, and signal 0 has no effect.
    unsafe { libc::kill(-group, 0) != 0 && super::last_errno() == Errno::SRCH }
}

/// Sends a signal to a group. Returns `false` if the group does not exist. May be called in a signal handler.
fn signal(group: i32, signal: i32) -> bool {
    // SAFETY: the arguments are integers. `group` was started here, and the kernel does not reuse its ID while a
    // process is in the group.
    unsafe { libc::kill(-group, signal) == 0 }
}

/// Kills all groups in the table. May be called in a signal handler.
pub(crate) fn kill_all() {
    for slot in &GROUPS {
        let group = slot.load(SeqCst);
        if group > 0 {
            signal(group, libc::SIGKILL);
        }
    }
}

/// True if a command is running, whose end the thread that has started it waits for.
pub(crate) fn is_running() -> bool {
    GROUPS.iter().any(|slot| slot.load(SeqCst) > 0)
}

/// Starts the guard process unless it is running. To be called before threads with separate descriptor tables start
/// commands, because its socket has to be in the descriptor table of the program's main thread.
pub fn prepare() {
    guard();
}

/// Returns the socket of the guard process; starts the process first unless it is running. -1 if it can't be started:
/// then processes that commands have started survive if this program is killed.
fn guard() -> RawFd {
    let mut guard = GUARD.lock();
    if guard.is_none() {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(GUARD_SCRIPT).process_group(0);
        // A socket, not a pipe: a write to a pipe would raise SIGPIPE in the writer if the guard has been killed.
        if let Ok((socket, peer)) = UnixStream::pair() {
            shell.stdin(OwnedFd::from(peer)).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
            GUARD_SOCKET.store(socket_inode(socket.as_raw_fd()).unwrap_or(0), SeqCst);
            *guard = shell.spawn().ok().map(|_| socket);
        }
    }
    guard.as_ref().map_or(-1, AsRawFd::as_raw_fd)
}

/// Returns a duplicate of the guard's socket in the calling thread's descriptor table, which may differ from the table
/// of the program's main thread. In that case the descriptor is copied from the main thread's table with `pidfd_getfd`,
/// which not every container permits; so it is used only where needed.
fn guard_in_this_table() -> Option<OwnedFd> {
    let socket = guard();
    if socket_inode(socket).is_some_and(|inode| inode == GUARD_SOCKET.load(SeqCst)) {
        return rustix::io::fcntl_dupfd_cloexec(fd::borrow(socket), 0).ok();
    }
    let program = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).ok()?;
    rustix::process::pidfd_getfd(program, socket, rustix::process::PidfdGetfdFlags::empty()).ok()
}

/// Returns the inode number of a socket. `None` if the descriptor is not a socket.
fn socket_inode(descriptor: RawFd) -> Option<u64> {
    if descriptor < 0 {
        return None;
    }
    fd::fstat(descriptor).ok().filter(|stat| stat.kind == rustix::fs::FileType::Socket).map(|stat| stat.inode)
}

/// Formats a message to the guard process: a sign and the ID of a group. Returns the buffer and the length of the
/// message. Called between `fork` and `exec`, so it must not allocate.
fn message(sign: u8, group: i32) -> ([u8; 16], usize) {
    let mut line = [0; 16];
    let mut digits = [0; 12];
    let (mut rest, mut n) = (group.unsigned_abs(), 0);
    loop {
        digits[n] = b'0' + (rest % 10) as u8;
        (rest, n) = (rest / 10, n + 1);
        if rest == 0 {
            break;
        }
    }
    line[0] = sign;
    for (to, from) in line[1..].iter_mut().zip(digits[..n].iter().rev()) {
        *to = *from;
    }
    line[n + 1] = b'\n';
    (line, n + 2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ending_a_group_ends_its_child_processes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}.new; mv {0}.new {0}; wait", file.display());
        let mut group = Group::start(&command, true, None).unwrap();
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(group.wait(Duration::ZERO).unwrap(), None);
        let sleeper: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        assert!(group.end(Duration::from_secs(5)));
        let gone = || std::fs::read_to_string(format!("/proc/{sleeper}/stat")).map_or(true, |s| s.contains(") Z"));
        while !gone() {
            assert!(start.elapsed() < Duration::from_secs(20), "the child of the command is still running");
            std::thread::sleep(Duration::from_millis(2));
        }
        let id = group.id;
        // A process that has ended stays in its group until its new parent has waited for it.
        while signal(id, 0) {
            assert!(start.elapsed() < Duration::from_secs(20), "the child of the command is not reaped");
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(group);
        assert!(GROUPS.iter().all(|slot| slot.load(SeqCst) != id));
    }

    /// Waits until a condition holds.
    fn wait_for(what: &str, holds: &dyn Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_group_whose_background_process_outlives_its_command_is_forgotten_when_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let end = dir.path().join("end");
        let command = format!("while ! test -e {}; do sleep 0.01; done &", end.display());
        let mut group = Group::start(&command, true, None).unwrap();
        assert!(group.wait(Duration::from_mins(1)).unwrap().is_some());
        let id = group.id;
        drop(group);
        let is_known = || GROUPS.iter().any(|slot| slot.load(SeqCst) == id);
        assert!(is_known(), "the process in the background is left to the end of the program");
        std::fs::write(&end, "").unwrap();
        wait_for("the process in the background is not reaped", &|| has_ended(id));
        drop(Group::start("exit 0", true, None).unwrap());
        assert!(!is_known());
    }

    #[test]
    fn the_guard_kills_the_groups_in_its_list_only() {
        let mut groups: Vec<_> =
            (0..3).map(|_| Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap()).collect();
        let ids: Vec<u32> = groups.iter().map(std::process::Child::id).collect();
        let mut guard = Command::new("/bin/sh").arg("-c").arg(GUARD_SCRIPT).stdin(Stdio::piped()).spawn().unwrap();
        let [one, two, three] = ids[..] else { panic!("{ids:?}") };
        // The second line removes a group that is not in the list.
        let lines = format!("+{one}\n-{three}\n+{two}\n+{three}\n-{one}\n-{three}\n");
        io::Write::write_all(guard.stdin.as_mut().unwrap(), lines.as_bytes()).unwrap();
        drop(guard.stdin.take());
        assert!(guard.wait().unwrap().success());
        let ended = groups.iter_mut().map(|group| {
            // A SIGKILL of the guard precedes this signal, and decides.
            signal(group.id() as i32, libc::SIGTERM);
            group.wait().unwrap().signal()
        });
        assert_eq!(ended.collect::<Vec<_>>(), [libc::SIGTERM, libc::SIGKILL, libc::SIGTERM].map(Some));
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error() {
        let words = ["/nonexistent/command".to_owned()];
        assert_eq!(output(&words, &|| false).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn both_outputs_of_a_command_are_kept() {
        let mut command = Command::new(in_path("sh".as_ref()).unwrap());
        command.args(["-c", "cat; echo out; echo err >&2; exit 3"]);
        let said = outputs(command, &|| false).unwrap().unwrap();
        assert_eq!((said.status.code(), said.stdout.as_str(), said.stderr.as_str()), (Some(3), "out\n", "err\n"));
        let mut command = Command::new("sleep");
        command.arg("1000");
        assert!(outputs(command, &|| true).unwrap().is_none());
        assert_eq!(in_path("no such program".as_ref()), None);
    }

    #[test]
    fn messages_to_the_guard_hold_the_group_id() {
        for (sign, group, wanted) in
            [(b'+', 1, "+1\n"), (b'-', 4_194_304, "-4194304\n"), (b'+', i32::MAX, "+2147483647\n")]
        {
            let (line, length) = message(sign, group);
            assert_eq!(std::str::from_utf8(&line[..length]), Ok(wanted));
        }
    }

    #[test]
    fn the_exit_status_of_a_command_is_returned() {
        let mut group = Group::start("exit 3", true, None).unwrap();
        assert_eq!(group.wait(Duration::from_mins(1)).unwrap().unwrap().code(), Some(3));
    }
}
