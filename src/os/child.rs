//! Commands that a script starts: in a process group of their own, which ends when this program does, however that ends.
//!
//! The group of each is kept where a signal handler finds it, so that a second signal leaves none. A process that is killed
//! outright runs no handler: for that a guard process waits for the end of its input, and then ends the groups that are left.

use super::fd;
use super::proc::nanoseconds;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Groups that are noted at a time: a command and a collector of the script, and a command of each of many threads.
const MOST: usize = 1024;

/// The groups that live; 0: a free place.
static GROUPS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];

/// Where the guard process hears of groups.
static GUARD: Mutex<Option<UnixStream>> = Mutex::new(None);

/// The inode of that socket, by which its descriptor is known.
static GUARD_SOCKET: AtomicU64 = AtomicU64::new(0);

/// Reads `+GROUP` and `-GROUP`; at the end of its input it ends the groups that are left.
const GUARD_SCRIPT: &str = "trap '' INT TERM HUP QUIT; G=' '; \
    while read -r L; do g=${L#?}; case $L in +*) G=\"$G$g \";; *) G=\"${G%% $g *} ${G#* $g }\";; esac; done; \
    for g in $G; do kill -KILL -$g 2>/dev/null; done";

/// A command in a group of its own.
#[derive(Debug)]
pub struct Group {
    id: i32,
    /// Readable when the command has ended. None where the kernel gives no such descriptor.
    descriptor: Option<OwnedFd>,
    ended: Option<(ExitStatus, CpuTimes)>,
}

/// Processor time of a command that has ended, and of all it has waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    /// In user mode, in nanoseconds; the kernel tells microseconds.
    pub user_ns: u64,
    /// In the kernel, likewise.
    pub system_ns: u64,
}

impl Group {
    /// Starts a command by the shell, without standard input. What it prints goes where this program's output goes, or, if
    /// `aside`, to standard error. It runs in `dir`, or in this program's directory.
    pub fn start(command: &str, aside: bool, dir: Option<&Path>) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        if let Some(dir) = dir {
            shell.current_dir(dir);
        }
        if aside {
            shell.stdout(io::stderr());
        }
        Self::spawn(shell)
    }

    /// Starts a command as it is, in a group of its own.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.process_group(0);
        let parent = rustix::process::getpid().as_raw_nonzero().get();
        let guard = guard_here();
        let guard_fd = guard.as_ref().map_or(fd::NONE, AsRawFd::as_raw_fd);
        let prepare = move || {
            // SAFETY: numbers go to the kernel, and nothing else happens between fork and exec.
            let (orphan, id) = unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
                (libc::getppid() != parent, libc::getpid())
            };
            // The parent has ended before the signal of its end was asked for.
            if orphan {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            // Told here and not by the parent, the guard knows of the group before there is anything in it to be ended.
            let (line, length) = message(b'+', id);
            // SAFETY: the socket is open until `exec`, and the bytes are on the stack. A guard that somebody has ended is none.
            unsafe { libc::send(guard_fd, line.as_ptr().cast(), length, libc::MSG_NOSIGNAL) };
            Ok(())
        };
        // SAFETY: the closure makes four system calls, and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn()?;
        let id = child.id() as i32;
        if let Some(place) = GROUPS.iter().find(|place| place.compare_exchange(0, id, SeqCst, SeqCst).is_ok()) {
            debug_assert_eq!(place.load(SeqCst), id);
        }
        let descriptor = rustix::process::Pid::from_raw(id)
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
        Ok(Self { id, descriptor, ended: None })
    }

    /// Waits for its end, for at most so long. Comes back as soon as it has ended.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            if let Some((status, _)) = self.look()? {
                return Ok(Some(status));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match &self.descriptor {
                Some(descriptor) => fd::wait_readable(descriptor.as_raw_fd(), left),
                None => std::thread::sleep(left.min(Duration::from_millis(5))),
            }
        }
    }

    /// Its status and processor time, if it has ended.
    fn look(&mut self) -> io::Result<Option<(ExitStatus, CpuTimes)>> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: plain numbers, for which zeros are values.
            let mut used: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both places are on the stack. The process is a child that nobody else waits for: its `Child` is gone, which
            // leaves it as it is.
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

    /// The processor time that it took; nothing while it runs.
    pub fn times(&self) -> CpuTimes {
        self.ended.map_or_else(CpuTimes::default, |(_, times)| times)
    }

    /// Ends the whole group: asks it to, and after `patience` does it. False if the kernel holds the command in a wait that can't be
    /// killed: it ends when that does.
    pub fn end(&mut self, patience: Duration) -> bool {
        signal(self.id, libc::SIGTERM);
        let _ = self.wait(patience);
        signal(self.id, libc::SIGKILL);
        !matches!(self.wait(patience), Ok(None))
    }

    /// The number of the command's process, which is that of the group.
    pub fn id(&self) -> i32 {
        self.id
    }
}

/// A group whose command has ended, and that has nobody in it any more, is forgotten. Others end with the program.
impl Drop for Group {
    fn drop(&mut self) {
        if self.look().is_ok_and(|ended| ended.is_some()) && !signal(self.id, 0) {
            for place in &GROUPS {
                let _ = place.compare_exchange(self.id, 0, SeqCst, SeqCst);
            }
            let (line, length) = message(b'-', self.id);
            if let Some(guard) = guard_here() {
                // SAFETY: the socket is open, and the bytes are on the stack.
                unsafe { libc::send(guard.as_raw_fd(), line.as_ptr().cast(), length, libc::MSG_NOSIGNAL) };
            }
        }
    }
}

/// Sends a signal to a group; false if there is none. To be called in a signal handler, too.
fn signal(group: i32, signal: i32) -> bool {
    // SAFETY: numbers go to the kernel. The group is one that was started here: its number is not given to another one while
    // anybody is in it.
    unsafe { libc::kill(-group, signal) == 0 }
}

/// Ends all groups that are left, at once. May be called in a signal handler.
pub fn end_all() {
    for place in &GROUPS {
        let group = place.load(SeqCst);
        if group > 0 {
            signal(group, libc::SIGKILL);
        }
    }
}

/// Starts the guard process, if there is none. To be called before threads with descriptor tables of their own start commands:
/// its socket has to be in that of the program.
pub fn prepare() {
    guard();
}

/// The socket to the guard process, which is started first, if there is none; -1 if it can't be. Without one, a program that is
/// killed leaves what its commands have started.
fn guard() -> RawFd {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(GUARD_SCRIPT).process_group(0);
        // A socket and no pipe, since a write to that would end the writer if somebody has ended the guard.
        if let Ok((ours, its)) = UnixStream::pair() {
            shell.stdin(OwnedFd::from(its)).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
            GUARD_SOCKET.store(socket_number(ours.as_raw_fd()).unwrap_or(0), SeqCst);
            *guard = shell.spawn().ok().map(|_| ours);
        }
    }
    guard.as_ref().map_or(-1, AsRawFd::as_raw_fd)
}

/// The same in the descriptor table of the calling thread, which may not be that of the program's first one. What that has, the kernel
/// gives to others of the program; not in each container, so only where it is needed.
fn guard_here() -> Option<OwnedFd> {
    let there = guard();
    if socket_number(there).is_some_and(|number| number == GUARD_SOCKET.load(SeqCst)) {
        return rustix::io::fcntl_dupfd_cloexec(fd::borrow(there), 0).ok();
    }
    let program = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).ok()?;
    rustix::process::pidfd_getfd(program, there, rustix::process::PidfdGetfdFlags::empty()).ok()
}

/// The inode of a socket; none of anything else.
fn socket_number(descriptor: RawFd) -> Option<u64> {
    if descriptor < 0 {
        return None;
    }
    fd::fstat(descriptor).ok().filter(|stat| stat.kind == rustix::fs::FileType::Socket).map(|stat| stat.inode)
}

/// A line for the guard process, and its length: a sign and the number of a group. Made between fork and exec, so on the stack.
fn message(sign: u8, group: i32) -> ([u8; 16], usize) {
    let mut line = [0; 16];
    let mut digits = [0; 12];
    let (mut left, mut n) = (group.unsigned_abs(), 0);
    loop {
        digits[n] = b'0' + (left % 10) as u8;
        (left, n) = (left / 10, n + 1);
        if left == 0 {
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
    fn a_group_is_ended_with_all_that_it_has_started() {
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
            assert!(start.elapsed() < Duration::from_secs(20), "the child of the command lives");
            std::thread::sleep(Duration::from_millis(2));
        }
        let id = group.id;
        // A process that has ended belongs to its group until its new parent has asked for its status.
        while signal(id, 0) {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "nobody asks for the status of the child of the command"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(group);
        assert!(GROUPS.iter().all(|place| place.load(SeqCst) != id));
    }

    #[test]
    fn the_guard_is_told_of_groups_by_number() {
        for (sign, group, wanted) in
            [(b'+', 1, "+1\n"), (b'-', 4_194_304, "-4194304\n"), (b'+', i32::MAX, "+2147483647\n")]
        {
            let (line, length) = message(sign, group);
            assert_eq!(std::str::from_utf8(&line[..length]), Ok(wanted));
        }
    }

    #[test]
    fn what_a_command_returns_is_seen() {
        let mut group = Group::start("exit 3", true, None).unwrap();
        assert_eq!(group.wait(Duration::from_mins(1)).unwrap().unwrap().code(), Some(3));
    }
}
