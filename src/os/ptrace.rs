//! Following the system calls of other processes with `ptrace`.
//!
//! A program that is started has a filter that stops it at certain calls only, and dies with its recorder. One that runs
//! already is stopped at all of its calls, and goes on without its recorder. Not here: what the calls mean.

#![allow(clippy::unnecessary_cast, reason = "the types of constants differ between C libraries")]

use super::{Errno, last_errno};
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::ptr;

/// The kernel's number of the processor's way to call it. A program of another one is not followed.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

const EVENT_STOP: i32 = 128;
const EVENT_SECCOMP: i32 = 7;
const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// The options of both ways: calls have a signal of their own, and children are followed.
const FOLLOW: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

/// Why a thread stopped, or that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStop {
    /// Before or after a call.
    Call,
    /// Before a call that the filter has.
    Filtered,
    /// It made this thread or process.
    Child(i32),
    /// Its process executes another program. This was the number of the thread.
    Exec(i32),
    /// It is to get this signal.
    Signal(i32),
    /// It is stopped by a signal, as a shell stops jobs.
    Group,
    /// It was seized or interrupted, or is new.
    Seized,
    /// Its process exited with this status, or of a signal, as 128 and its number.
    Ended(i32),
}

/// How a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Until the filter stops it.
    Free,
    /// Until the next beginning or end of a call.
    ToCall,
    /// Stopped, until a signal lets it go on.
    Listen,
    /// Without a recorder.
    Detached,
}

/// A call at its beginning or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallInfo {
    Entry {
        number: i64,
        args: [u64; 6],
    },
    Exit {
        result: i64,
    },
    /// Of another kind of processor, or none.
    Unknown,
}

fn request(request: u32, thread: i32, address: usize, data: usize) -> Result<i64, Errno> {
    // SAFETY: the requests that are made read and write no memory of this process but `call_info` and `message`, which pass
    // pointers to buffers of the right size.
    let result = unsafe { libc::ptrace(request as _, thread, address, data) };
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// The program of a command, looked up as a shell does.
fn program(name: &OsString) -> io::Result<CString> {
    let found = match name.as_bytes().contains(&b'/') {
        true => Path::new(name).exists().then(|| name.into()),
        false => super::child::in_path(name),
    };
    let path = found.ok_or(io::ErrorKind::NotFound)?;
    Ok(CString::new(path.into_os_string().into_vec())?)
}

/// The filter: stops at these calls. `mmap` without a file passes.
fn filter(calls: &[i64]) -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let one = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let allow = one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let trace = one(RETURN, libc::SECCOMP_RET_TRACE, 0, 0);
    // `seccomp_data`: the number, the architecture, the instruction, the arguments.
    let mut code = vec![one(LOAD, 4, 0, 0), one(EQUAL, ARCHITECTURE, 1, 0), allow, one(LOAD, 0, 0, 0)];
    for call in calls {
        if *call == libc::SYS_mmap {
            // The lower half of the fifth argument is the descriptor.
            code.extend([one(EQUAL, *call as u32, 0, 4), one(LOAD, 16 + 4 * 8, 0, 0)]);
            code.extend([one(EQUAL, u32::MAX, 0, 1), allow, trace]);
        } else {
            code.extend([one(EQUAL, *call as u32, 0, 1), trace]);
        }
    }
    code.push(allow);
    code
}

/// Starts a program that stops at these calls, and that ends with this process.
pub fn start(words: &[OsString], calls: &[i64]) -> io::Result<i32> {
    let name = words.first().ok_or(io::ErrorKind::InvalidInput)?;
    let path = program(name)?;
    let texts: Vec<CString> = words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?;
    let variables: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok())
        .collect();
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, envp) = (pointers(&texts), pointers(&variables));
    // SAFETY: all pointers are to live data that ends with null, and `execve` is safe after `fork`.
    start_child(calls, || unsafe {
        libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
    })
}

/// Starts a process that makes a call without arguments of use so many times, for measuring what it costs to stop it.
pub fn start_calls(times: u32) -> io::Result<i32> {
    start_child(&[libc::SYS_io_submit], || {
        for _ in 0..times {
            // SAFETY: there is no such context, and `errno` is all that changes.
            unsafe { libc::syscall(libc::SYS_io_submit, 0, 0, 0) };
        }
    })
}

/// Starts a child that does this with the filter set. `work` may only call what is safe after `fork`.
fn start_child(calls: &[i64], work: impl FnOnce()) -> io::Result<i32> {
    let code = filter(calls);
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // SAFETY: `getpid` takes nothing; the child calls only functions that are safe after `fork`, on memory that was prepared
    // before.
    let (recorder, child) = unsafe { (libc::getpid(), libc::fork()) };
    match child {
        -1 => Err(last_errno().into()),
        0 => {
            // SAFETY: as above, and the child leaves by `_exit`.
            unsafe { become_traced(work, &program, recorder) }
        }
        _ => attach_child(child).map(|()| child).inspect_err(|_| {
            kill(child, libc::SIGKILL);
            wait_for(child);
        }),
    }
}

/// The child: waits for the recorder, sets the filter, and does its work.
///
/// # Safety
/// Only in a child of `fork`. `filter` points to code.
unsafe fn become_traced(work: impl FnOnce(), filter: &libc::sock_fprog, recorder: i32) -> ! {
    // SAFETY: see above. The set is a plain array of bits.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        // Rust programs ignore it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        // Until the recorder has seized it, its end would leave the child stopped for ever.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != recorder {
            libc::_exit(libc::ESRCH);
        }
        libc::kill(libc::getpid(), libc::SIGSTOP);
        libc::prctl(libc::PR_SET_PDEATHSIG, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let pointer = ptr::from_ref(filter);
        if libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, pointer) == 0 {
            work();
        }
        libc::_exit(*libc::__errno_location())
    }
}

/// Seizes the child, which has stopped itself, and lets it go on.
fn attach_child(child: i32) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WUNTRACED) } < 0 {
        let error = last_errno();
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    let options = FOLLOW | libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SEIZE as u32, child, 0, options as usize)?;
    kill(child, libc::SIGCONT);
    Ok(())
}

fn wait_for(child: i32) {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
}

/// Sends a signal to a process. That there is none is ignored.
pub fn kill(process: i32, signal: i32) {
    // SAFETY: `kill` touches no memory.
    unsafe { libc::kill(process, signal) };
}

/// Attaches to all threads of a process. Each of them stops.
pub fn seize(process: i32) -> io::Result<Vec<i32>> {
    let mut seized: Vec<i32> = Vec::new();
    loop {
        let mut is_new = false;
        for entry in fs::read_dir(format!("/proc/{process}/task")).map_err(|_| Errno::SRCH)? {
            let Some(thread) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if seized.contains(&thread) {
                continue;
            }
            match request(libc::PTRACE_SEIZE as u32, thread, 0, FOLLOW as usize) {
                Ok(_) => {
                    interrupt(thread);
                    seized.push(thread);
                    is_new = true;
                }
                // It has ended, or another thread of it has become one that is traced already.
                Err(Errno::SRCH) => {}
                Err(Errno::PERM) if !seized.is_empty() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !is_new {
            return if seized.is_empty() { Err(Errno::SRCH.into()) } else { Ok(seized) };
        }
    }
}

/// Stops a thread, which reports [`ThreadStop::Seized`].
pub fn interrupt(thread: i32) {
    // A thread that has ended needs no stop.
    let _ = request(libc::PTRACE_INTERRUPT as u32, thread, 0, 0);
}

/// Waits for a thread. `None` if a signal or the timer came first. [`Errno::CHILD`] if there is none left.
pub fn next_stop() -> Result<Option<(i32, ThreadStop)>, Errno> {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if thread < 0 {
        let error = last_errno();
        return if error == Errno::INTR { Ok(None) } else { Err(error) };
    }
    if libc::WIFEXITED(status) {
        return Ok(Some((thread, ThreadStop::Ended(libc::WEXITSTATUS(status)))));
    }
    if libc::WIFSIGNALED(status) {
        return Ok(Some((thread, ThreadStop::Ended(128 + libc::WTERMSIG(status)))));
    }
    let signal = libc::WSTOPSIG(status);
    let message = || event_message(thread).unwrap_or(0) as i32;
    Ok(Some((
        thread,
        match status >> 16 {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                ThreadStop::Child(message())
            }
            libc::PTRACE_EVENT_EXEC => ThreadStop::Exec(message()),
            EVENT_SECCOMP => ThreadStop::Filtered,
            EVENT_STOP if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                ThreadStop::Group
            }
            0 if signal == CALL_STOP => ThreadStop::Call,
            0 => ThreadStop::Signal(signal),
            _ => ThreadStop::Seized,
        },
    )))
}

fn event_message(thread: i32) -> Result<u64, Errno> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG as u32, thread, 0, (&raw mut message) as usize)?;
    Ok(message)
}

/// Lets a stopped thread go on, with a signal or with 0. That it has been killed meanwhile is ignored.
pub fn resume(thread: i32, how: Resume, signal: i32) {
    let how = match how {
        Resume::Free => libc::PTRACE_CONT as u32,
        Resume::ToCall => libc::PTRACE_SYSCALL as u32,
        Resume::Listen => libc::PTRACE_LISTEN as u32,
        Resume::Detached => libc::PTRACE_DETACH as u32,
    };
    let _ = request(how, thread, 0, signal as usize);
}

/// The call at which a thread is stopped.
pub fn call_info(thread: i32) -> CallInfo {
    // `struct ptrace_syscall_info`: what it is, the architecture, two addresses, and the call.
    let mut info = [0u64; 11];
    let size = mem::size_of_val(&info);
    let Ok(length) = request(0x420e, thread, size, info.as_mut_ptr() as usize) else { return CallInfo::Unknown };
    let (operation, architecture) = (info[0] & 0xff, (info[0] >> 32) as u32);
    match operation {
        1 | 3 if architecture == ARCHITECTURE && length >= 80 => {
            CallInfo::Entry { number: info[3] as i64, args: [info[4], info[5], info[6], info[7], info[8], info[9]] }
        }
        2 => CallInfo::Exit { result: info[3] as i64 },
        _ => CallInfo::Unknown,
    }
}

/// Reads the memory of a process. Returns how many bytes could be read.
pub fn read_memory(process: i32, address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the local vector is the buffer, which is borrowed; the remote one is in another process.
    let read = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Reads a text that ends with 0. `None` if it can't be read, or is longer than a path.
pub fn read_text(process: i32, address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut buffer = [0; 256];
    while text.len() < libc::PATH_MAX as usize {
        // No read crosses a page: the next one may not be there.
        let at = address.checked_add(text.len() as u64)?;
        let length = buffer.len().min(4096 - (at % 4096) as usize);
        let read = read_memory(process, at, &mut buffer[..length]);
        if let Some(end) = buffer[..read].iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&buffer[..end]);
            return Some(text);
        }
        if read == 0 {
            return None;
        }
        text.extend_from_slice(&buffer[..read]);
    }
    None
}

extern "C" fn on_timer(_: libc::c_int) {}

/// Lets [`next_stop`] return every 100 ms.
pub fn start_timer() {
    let every = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler does nothing, and the structures are plain data. Without `SA_RESTART` the signal ends a wait.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_timer as *const () as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut());
    }
}

/// Ends what [`start_timer`] began.
pub fn stop_timer() {
    // SAFETY: a timer of zero is none.
    unsafe {
        let none: libc::itimerval = mem::zeroed();
        libc::setitimer(libc::ITIMER_REAL, &raw const none, ptr::null_mut());
    }
}
