//! The files on which threads of this process are blocked in a system call, for messages about a file system that does
//! not answer.
//!
//! Read from `/proc/self/task`, so that threads publish nothing while they work. What the kernel does not show is
//! `None`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A thread that is blocked in a system call on a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// The thread ID.
    pub tid: i32,
    /// The path of the file.
    pub path: PathBuf,
}

/// The arguments of a system call that identify its file, by index.
enum CallFile {
    Descriptor(usize),
    Path(usize),
    /// The descriptor of a directory, and a path relative to it.
    Below(usize, usize),
}

/// Returns the path of the file on which a thread is making a system call. `None` if it is in no call on a file.
pub fn path_of(tid: i32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).ok()?;
    let mut words = text.split_ascii_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let arguments: Vec<u64> =
        words.map_while(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect();
    let argument = |at: usize| arguments.get(at).copied();
    let path = match call_file(number)? {
        CallFile::Descriptor(at) => descriptor(tid, argument(at)? as i32)?,
        CallFile::Path(at) => read_c_string(argument(at)?)?,
        CallFile::Below(dir, at) => {
            let (dir, name) = (argument(dir)? as i32, argument(at)?);
            // `futimens` calls `utimensat` with a file and no name.
            if name == 0 {
                descriptor(tid, dir)?
            } else {
                let name = read_c_string(name)?;
                // An absolute path ignores the directory.
                if name.is_absolute() { name } else { directory(tid, dir)?.join(name) }
            }
        }
    };
    path.is_absolute().then_some(path)
}

/// True if a thread sleeps in the kernel, as opposed to running or waiting for a processor. `true` if its state
/// can't be read.
pub fn sleeps(tid: i32) -> bool {
    fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).map_or(true, |text| !text.starts_with("running"))
}

/// Returns all threads of this process that are in a call on a file, except the calling thread.
pub fn all() -> Vec<Blocked> {
    let own = super::proc::thread_id();
    let tasks = fs::read_dir("/proc/self/task").map(|tasks| tasks.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let numbers = tasks.iter().filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|tid| *tid != own).filter_map(|tid| Some(Blocked { tid, path: path_of(tid)? })).collect()
}

fn call_file(number: i64) -> Option<CallFile> {
    use CallFile::{Below, Descriptor};
    /// `fchmodat2`, which `libc` does not name on all architectures.
    const SYS_FCHMODAT2: i64 = 452;
    Some(match number {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_syncfs
        | libc::SYS_sync_file_range
        | libc::SYS_fstat
        | libc::SYS_fstatfs
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_fadvise64
        | libc::SYS_lseek
        | libc::SYS_getdents64
        | libc::SYS_fgetxattr
        | libc::SYS_fsetxattr
        | libc::SYS_flistxattr
        | libc::SYS_copy_file_range
        | libc::SYS_flock
        | libc::SYS_fcntl
        | libc::SYS_fchmod
        | libc::SYS_fchown
        | libc::SYS_close => Descriptor(0),
        libc::SYS_sendfile => Descriptor(1),
        libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_linkat
        | libc::SYS_readlinkat
        | libc::SYS_utimensat
        | libc::SYS_fchownat
        | SYS_FCHMODAT2
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_renameat
        | libc::SYS_renameat2 => Below(0, 1),
        libc::SYS_symlinkat => Below(1, 2),
        libc::SYS_statfs | libc::SYS_getxattr | libc::SYS_setxattr | libc::SYS_lgetxattr | libc::SYS_lsetxattr => {
            CallFile::Path(0)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_unlink
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_rename
        | libc::SYS_readlink => CallFile::Path(0),
        _ => return None,
    })
}

/// Returns the path that a descriptor of the thread refers to.
fn descriptor(tid: i32, fd: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/task/{tid}/fd/{fd}")).ok()
}

fn directory(tid: i32, fd: i32) -> Option<PathBuf> {
    if fd == libc::AT_FDCWD { fs::read_link(format!("/proc/self/task/{tid}/cwd")).ok() } else { descriptor(tid, fd) }
}

/// Reads the zero-terminated string at an address of this process, at most 512 bytes. Lets the kernel copy it: the
/// thread may have left the call meanwhile, and its memory may be unmapped.
fn read_c_string(address: u64) -> Option<PathBuf> {
    let mut text = [0_u8; 512];
    // Don't cross a page boundary: the next page may be unmapped.
    let size = text.len().min(4096 - (address as usize & 4095));
    let local = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: size };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size };
    // SAFETY: the kernel writes at most `size` bytes to `text`, which is live. It validates the remote address itself
    // and fails with `EFAULT` if that is not mapped.
    let n = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    let text = text.get(..usize::try_from(n).ok()?)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    (end > 0).then(|| PathBuf::from(OsString::from_vec(text[..end].to_vec())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    /// Opening a FIFO blocks until its other end is opened, which gives the test a call of any length.
    #[test]
    fn the_file_of_a_blocked_call_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = std::fs::canonicalize(dir.path()).unwrap().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let at = fifo.clone();
        let reader = std::thread::spawn(move || std::fs::File::open(at).map(drop));
        let start = std::time::Instant::now();
        while !all().iter().any(|blocked| blocked.path == fifo) {
            assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", all());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let writer = std::fs::File::options().write(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap();
        reader.join().unwrap().unwrap();
        drop(writer);
        assert_eq!(path_of(-1), None);
    }
}
