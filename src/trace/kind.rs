//! The kinds of calls: each system call on files, with the meaning of its arguments and the class it is counted in. One table
//! for all sources, for `docs/trace-format.md`, and for everything that counts classes.

/// What an argument of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallArg {
    /// Nothing that is recorded.
    Skip,
    Fd,
    /// The second descriptor: the destination of a copy, the number that `dup2` gives.
    Fd2,
    /// The directory to which the name that follows is relative.
    Dir,
    Path,
    Path2,
    /// Bytes asked for.
    Size,
    /// Where the transfer begins.
    Offset,
    /// Where the transfer begins, behind a pointer; null for the position.
    OffsetAt,
    Flags,
    /// `struct open_how`, which begins with 64 bits of flags.
    How,
    /// `struct stat`, which the call fills.
    Stat,
    /// `struct statx`, which the call fills.
    Statx,
    /// `struct iovec`, and in the argument that follows how many.
    Iov,
    Whence,
    /// The command of `fcntl`.
    Command,
}

macro_rules! classes {
    ($($variant:ident $name:literal $text:literal;)*) => {
        /// What mixes, tables and comparisons count as one.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CallClass {
            $($variant,)*
            /// Not known to this version.
            #[default]
            Other,
        }

        /// The classes in the order of tables, each with its name and what it does.
        pub const CALL_CLASSES: &[(CallClass, &str, &str)] =
            &[$((CallClass::$variant, $name, $text),)* (CallClass::Other, "other", "anything else")];
    };
}

classes! {
    Read "read" "reads data";
    Write "write" "writes data";
    Copy "copy" "copies data in the kernel";
    Map "map" "maps a file, ends a mapping";
    Fault "fault" "reads a page of a mapping";
    Open "open" "opens or creates a file";
    Close "close" "closes descriptors";
    Seek "seek" "moves the position";
    Stat "stat" "looks at a file by name";
    Fstat "fstat" "looks at an open file";
    Access "access" "checks permissions";
    List "list" "reads a directory";
    Readlink "readlink" "reads a symbolic link";
    Fsync "fsync" "syncs data and attributes";
    Fdatasync "fdatasync" "syncs data";
    SyncRange "syncrange" "starts or awaits writeback of a range or a mapping";
    SyncAll "sync" "syncs a file system, or all";
    Truncate "truncate" "sets the size";
    Allocate "allocate" "allocates or frees space";
    Unlink "unlink" "removes a name of a file";
    Rmdir "rmdir" "removes a directory";
    Mkdir "mkdir" "makes a directory";
    Mknod "mknod" "makes a special file";
    Rename "rename" "renames";
    Link "link" "gives a second name";
    Symlink "symlink" "makes a symbolic link";
    Chmod "chmod" "sets permissions";
    Chown "chown" "sets the owner";
    Utimes "utimes" "sets times";
    GetXattr "getxattr" "reads extended attributes";
    SetXattr "setxattr" "sets or removes extended attributes";
    Lock "lock" "locks or unlocks";
    Advise "advise" "advises the page cache";
    Statfs "statfs" "looks at a file system";
    Dup "dup" "copies a descriptor, changes its flags";
    Chdir "chdir" "changes the working directory";
    Control "control" "`ioctl`";
}

impl CallClass {
    pub fn name(self) -> &'static str {
        CALL_CLASSES.iter().find(|(class, ..)| *class == self).map_or("other", |(_, name, _)| name)
    }

    /// The class of this name.
    pub fn named(name: &str) -> Option<Self> {
        CALL_CLASSES.iter().find(|(_, known, _)| *known == name).map(|(class, ..)| *class)
    }

    /// True if the result is a number of bytes of data.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Copy)
    }

    /// True if it waits for data to be on the disk.
    pub fn syncs(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::SyncRange | Self::SyncAll)
    }
}

/// Where calls of a kind come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSource {
    /// A system call, by its number on this processor; `None` if it has none here.
    Syscall(Option<i64>),
    /// An operation of `io_uring`. Its arguments are the descriptor, nothing, the length, the offset and the flags.
    Uring(u8),
    /// The kernel's work for the program, such as a page fault. Arguments: nothing, nothing, the length, the offset.
    Kernel,
}

/// A kind of calls.
#[derive(Debug)]
pub struct CallKind {
    pub name: &'static str,
    pub class: CallClass,
    pub from: KindSource,
    pub args: &'static [CallArg],
}

/// A row of [`KINDS`], by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub u16);

impl Default for KindId {
    /// The last row: a kind that this version does not know.
    fn default() -> Self {
        Self((KINDS.len() - 1) as u16)
    }
}

impl KindId {
    pub fn get(self) -> &'static CallKind {
        KINDS.get(usize::from(self.0)).unwrap_or(&KINDS[KINDS.len() - 1])
    }

    fn find(is: impl Fn(&CallKind) -> bool) -> Option<Self> {
        KINDS.iter().position(is).map(|n| Self(n as u16))
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::find(|kind| kind.name == name)
    }

    /// The kind of a system call, by its number.
    pub(crate) fn of_syscall(number: i64) -> Option<Self> {
        Self::find(|kind| kind.from == KindSource::Syscall(Some(number)))
    }

    /// The kind of an operation of `io_uring`, by its code.
    pub(crate) fn of_uring(code: u8) -> Option<Self> {
        Self::find(|kind| kind.from == KindSource::Uring(code))
    }
}

impl CallKind {
    /// True if no model is made of such calls: of a mapping only the first look at a page is seen, the other end of a copy may be
    /// a socket, and of some calls only the name is known.
    pub fn is_unmodelled(&self) -> bool {
        matches!(self.class, CallClass::Map | CallClass::Fault | CallClass::Other)
            || matches!(self.name, "msync" | "sendfile" | "splice" | "uring_splice")
    }

    /// The number of the argument that is this.
    pub fn arg(&self, wanted: CallArg) -> Option<usize> {
        self.args.iter().position(|arg| *arg == wanted)
    }

    /// The number of the argument that is the directory of the name in argument `path`.
    pub fn dir_of(&self, path: usize) -> Option<usize> {
        path.checked_sub(1).filter(|at| self.args[*at] == CallArg::Dir)
    }
}

/// The number of a call; those of the first kind exist on x86-64 only, and those with a number have it on all processors.
macro_rules! number {
    (old $name:ident) => {{
        #[cfg(target_arch = "x86_64")]
        {
            KindSource::Syscall(Some(libc::$name))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            KindSource::Syscall(None)
        }
    }};
    (new $name:ident) => {
        KindSource::Syscall(Some(libc::$name))
    };
    (at $number:literal) => {
        KindSource::Syscall(Some($number))
    };
    (uring $code:literal) => {
        KindSource::Uring($code)
    };
    (kernel $name:ident) => {
        KindSource::Kernel
    };
}

macro_rules! kinds {
    ($($name:literal $class:ident $from:ident $number:tt ($($arg:ident)*);)*) => {
        &[$(CallKind {
            name: $name,
            class: CallClass::$class,
            from: number!($from $number),
            args: &[$(CallArg::$arg),*],
        }),*]
    };
}

/// All kinds. What is not in here is no call on files, or is `other`.
#[rustfmt::skip]
pub static KINDS: &[CallKind] = kinds! {
    "read" Read new SYS_read (Fd Skip Size);
    "pread64" Read new SYS_pread64 (Fd Skip Size Offset);
    "readv" Read new SYS_readv (Fd Iov Skip);
    "preadv" Read new SYS_preadv (Fd Iov Skip Offset);
    "preadv2" Read new SYS_preadv2 (Fd Iov Skip Offset Skip Flags);
    "write" Write new SYS_write (Fd Skip Size);
    "pwrite64" Write new SYS_pwrite64 (Fd Skip Size Offset);
    "writev" Write new SYS_writev (Fd Iov Skip);
    "pwritev" Write new SYS_pwritev (Fd Iov Skip Offset);
    "pwritev2" Write new SYS_pwritev2 (Fd Iov Skip Offset Skip Flags);
    "sendfile" Copy new SYS_sendfile (Fd2 Fd OffsetAt Size);
    "copy_file_range" Copy new SYS_copy_file_range (Fd OffsetAt Fd2 Skip Size Flags);
    "splice" Copy new SYS_splice (Fd OffsetAt Fd2 Skip Size Flags);
    "mmap" Map new SYS_mmap (Skip Size Skip Flags Fd Offset);
    "open" Open old SYS_open (Path Flags);
    "creat" Open old SYS_creat (Path);
    "openat" Open new SYS_openat (Dir Path Flags);
    "openat2" Open new SYS_openat2 (Dir Path How);
    "close" Close new SYS_close (Fd);
    "close_range" Close new SYS_close_range (Skip Skip Flags);
    "lseek" Seek new SYS_lseek (Fd Skip Whence);
    "stat" Stat old SYS_stat (Path Stat);
    "lstat" Stat old SYS_lstat (Path Stat);
    "newfstatat" Stat new SYS_newfstatat (Dir Path Stat Flags);
    "statx" Stat new SYS_statx (Dir Path Flags Skip Statx);
    "fstat" Fstat new SYS_fstat (Fd Stat);
    "fstatx" Fstat kernel statx (Fd);
    "access" Access old SYS_access (Path);
    "faccessat" Access new SYS_faccessat (Dir Path);
    "faccessat2" Access new SYS_faccessat2 (Dir Path Skip Flags);
    "getdents" List old SYS_getdents (Fd Skip Size);
    "getdents64" List new SYS_getdents64 (Fd Skip Size);
    "readlink" Readlink old SYS_readlink (Path);
    "readlinkat" Readlink new SYS_readlinkat (Dir Path);
    "fsync" Fsync new SYS_fsync (Fd);
    "fdatasync" Fdatasync new SYS_fdatasync (Fd);
    "sync_file_range" SyncRange new SYS_sync_file_range (Fd Offset Size Flags);
    "syncfs" SyncAll new SYS_syncfs (Fd);
    "sync" SyncAll new SYS_sync ();
    "truncate" Truncate new SYS_truncate (Path Size);
    "ftruncate" Truncate new SYS_ftruncate (Fd Size);
    "fallocate" Allocate new SYS_fallocate (Fd Flags Offset Size);
    "unlink" Unlink old SYS_unlink (Path);
    "unlinkat" Unlink new SYS_unlinkat (Dir Path Flags);
    "rmdir" Rmdir old SYS_rmdir (Path);
    "mkdir" Mkdir old SYS_mkdir (Path);
    "mkdirat" Mkdir new SYS_mkdirat (Dir Path);
    "mknod" Mknod old SYS_mknod (Path);
    "mknodat" Mknod new SYS_mknodat (Dir Path);
    "rename" Rename old SYS_rename (Path Path2);
    "renameat" Rename old SYS_renameat (Dir Path Dir Path2);
    "renameat2" Rename new SYS_renameat2 (Dir Path Dir Path2 Flags);
    "link" Link old SYS_link (Path Path2);
    "linkat" Link new SYS_linkat (Dir Path Dir Path2 Flags);
    "symlink" Symlink old SYS_symlink (Skip Path);
    "symlinkat" Symlink new SYS_symlinkat (Skip Dir Path);
    "chmod" Chmod old SYS_chmod (Path);
    "fchmod" Chmod new SYS_fchmod (Fd);
    "fchmodat" Chmod new SYS_fchmodat (Dir Path);
    "fchmodat2" Chmod at 452 (Dir Path Skip Flags);
    "chown" Chown old SYS_chown (Path);
    "lchown" Chown old SYS_lchown (Path);
    "fchown" Chown new SYS_fchown (Fd);
    "fchownat" Chown new SYS_fchownat (Dir Path Skip Skip Flags);
    "utime" Utimes old SYS_utime (Path);
    "utimes" Utimes old SYS_utimes (Path);
    "futimesat" Utimes old SYS_futimesat (Dir Path);
    "utimensat" Utimes new SYS_utimensat (Dir Path Skip Flags);
    "getxattr" GetXattr new SYS_getxattr (Path);
    "lgetxattr" GetXattr new SYS_lgetxattr (Path);
    "fgetxattr" GetXattr new SYS_fgetxattr (Fd);
    "listxattr" GetXattr new SYS_listxattr (Path);
    "llistxattr" GetXattr new SYS_llistxattr (Path);
    "flistxattr" GetXattr new SYS_flistxattr (Fd);
    "getxattrat" GetXattr at 464 (Dir Path Flags);
    "listxattrat" GetXattr at 465 (Dir Path Flags);
    "setxattr" SetXattr new SYS_setxattr (Path);
    "lsetxattr" SetXattr new SYS_lsetxattr (Path);
    "fsetxattr" SetXattr new SYS_fsetxattr (Fd);
    "removexattr" SetXattr new SYS_removexattr (Path);
    "lremovexattr" SetXattr new SYS_lremovexattr (Path);
    "fremovexattr" SetXattr new SYS_fremovexattr (Fd);
    "setxattrat" SetXattr at 463 (Dir Path Flags);
    "removexattrat" SetXattr at 466 (Dir Path Flags);
    "flock" Lock new SYS_flock (Fd Flags);
    "fcntl_lock" Lock kernel lock (Fd Command);
    "fadvise64" Advise new SYS_fadvise64 (Fd Offset Size Flags);
    "readahead" Advise new SYS_readahead (Fd Offset Size);
    "statfs" Statfs new SYS_statfs (Path);
    "fstatfs" Statfs new SYS_fstatfs (Fd);
    "dup" Dup new SYS_dup (Fd);
    "dup2" Dup old SYS_dup2 (Fd Fd2);
    "dup3" Dup new SYS_dup3 (Fd Fd2 Flags);
    "fcntl" Dup new SYS_fcntl (Fd Command);
    "chdir" Chdir new SYS_chdir (Path);
    "fchdir" Chdir new SYS_fchdir (Fd);
    "ioctl" Control new SYS_ioctl (Fd Flags);
    "munmap" Map new SYS_munmap (Skip Size);
    "msync" SyncRange new SYS_msync (Skip Size Flags);
    "uring_readv" Read uring 1 (Fd Skip Skip Offset Flags);
    "uring_writev" Write uring 2 (Fd Skip Skip Offset Flags);
    "uring_fsync" Fsync uring 3 (Fd);
    "uring_read_fixed" Read uring 4 (Fd Skip Size Offset Flags);
    "uring_write_fixed" Write uring 5 (Fd Skip Size Offset Flags);
    "uring_sync_file_range" SyncRange uring 8 (Fd Skip Size Offset Flags);
    "uring_fallocate" Allocate uring 17 (Fd Skip Size Offset);
    "uring_openat" Open uring 18 (Dir Path Flags);
    "uring_close" Close uring 19 (Fd);
    "uring_statx" Stat uring 21 (Dir Path Flags Skip Statx);
    "uring_read" Read uring 22 (Fd Skip Size Offset Flags);
    "uring_write" Write uring 23 (Fd Skip Size Offset Flags);
    "uring_fadvise" Advise uring 24 (Fd);
    "uring_openat2" Open uring 28 (Dir Path How);
    "uring_splice" Copy uring 30 (Fd);
    "uring_renameat" Rename uring 35 (Dir Path Dir Path2 Flags);
    "uring_unlinkat" Unlink uring 36 (Dir Path Flags);
    "uring_mkdirat" Mkdir uring 37 (Dir Path);
    "uring_ftruncate" Truncate uring 55 (Fd Skip Size);
    "page_fault" Fault kernel fault (Fd Skip Size Offset);
    "io_submit" Other new SYS_io_submit ();
    "other" Other kernel other ();
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_kind_is_found_by_its_name_and_its_number() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for (n, kind) in KINDS.iter().enumerate() {
            let id = KindId(n as u16);
            assert_eq!(KindId::named(kind.name), Some(id));
            match kind.from {
                KindSource::Syscall(Some(number)) => assert_eq!(KindId::of_syscall(number), Some(id), "{}", kind.name),
                KindSource::Uring(code) => assert_eq!(KindId::of_uring(code), Some(id), "{}", kind.name),
                _ => {}
            }
        }
        assert_eq!(KindId::default().get().name, "other");
        assert_eq!(KindId(u16::MAX).get().name, "other");
    }

    #[test]
    fn every_name_of_a_class_is_its_own() {
        for (class, name, _) in CALL_CLASSES {
            assert_eq!((CallClass::named(name), class.name()), (Some(*class), *name));
        }
    }
}
