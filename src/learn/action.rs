//! What calls do, in the words of the language. One table says which flowop makes each call again.

use wml_trace::{CallClass, TracedCall, flags as numbers};

/// What a flowop needs to know which file it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionTarget {
    /// Opens a file of a set in a slot.
    Opens,
    /// Works on the open file in a slot.
    Slot,
    /// Works on a name: of the file in the slot if it is open there, else of a file of the set.
    Path,
    /// Works on the name of the file that is or was open in the slot, else on one of the set.
    OldSlot,
    /// Works on a file set, and has no slot.
    Set,
    /// Works on the directory in a slot.
    DirSlot,
}

/// What values of the calls the flowop takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActionValues {
    No,
    /// The number of bytes, and where they are.
    Transfer,
    /// As a transfer, but all of the file if it is not known.
    Range,
    /// `value=` is the size that the file gets.
    Size,
    /// `value=` is the position.
    Position,
}

macro_rules! actions {
    ($($variant:ident $flowop:literal $more:literal $names:ident $values:ident;)*) => {
        /// What a call does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum CallAction {
            $($variant,)*
        }

        /// A row of the table.
        #[derive(Debug)]
        pub(crate) struct ActionRow {
            pub(crate) flowop: &'static str,
            /// Further attributes.
            pub(crate) more: &'static str,
            pub(crate) names: ActionTarget,
            pub(crate) values: ActionValues,
        }

        impl CallAction {
            pub(crate) fn row(self) -> &'static ActionRow {
                match self {
                    $(Self::$variant => &ActionRow {
                        flowop: $flowop,
                        more: $more,
                        names: ActionTarget::$names,
                        values: ActionValues::$values,
                    },)*
                }
            }
        }
    };
}

actions! {
    // From the open of a file to its close: no call, but a part of a loop.
    Session "" "" Set No;
    // A wait for another loop: no call either.
    Await "semblock" "" Set No;
    // A part of a loop that threads share: no call, but those of one of them.
    Commit "" "" Set No;
    OpenFile "openfile" "" Opens No;
    OpenMissing "openfile" "missing" Opens No;
    OpenNoDirectory "openfile" "expect=ENOTDIR" Opens No;
    CreateFile "createfile" "" Opens No;
    CreateExisting "createfile" "expect=EEXIST" Opens No;
    CreateUnnamed "createfile" "tmpfile" Opens No;
    CloseFile "closefile" "" Slot No;
    OpenDir "opendir" "" Opens No;
    ListDir "listdir" "" DirSlot No;
    CloseDir "closedir" "" DirSlot No;
    Read "read" "" Slot Transfer;
    ReadEnd "read" "" Slot Transfer;
    ReadVec "readvec" "" Slot Transfer;
    Write "write" "" Slot Transfer;
    WriteVec "writevec" "" Slot Transfer;
    CopyRange "copyrange" "" Slot No;
    SeekSet "lseek" "" Slot Position;
    SeekCurrent "lseek" "whence=cur" Slot No;
    SeekEnd "lseek" "whence=end" Slot No;
    StatPath "statfile" "by=path" OldSlot No;
    StatMissing "statfile" "missing" Set No;
    StatOpen "statfile" "by=slot" Slot No;
    Access "access" "" Set No;
    AccessMissing "access" "missing" Set No;
    ReadLink "readlink" "" Set No;
    ReadLinkMissing "readlink" "missing" Set No;
    Fsync "fsync" "" Slot No;
    Fdatasync "fdatasync" "" Slot No;
    FsyncDir "fsyncdir" "" Path No;
    FdatasyncDir "fsyncdir" "data" Path No;
    SyncRange "syncrange" "" Slot Range;
    SyncFs "syncfs" "" Slot No;
    Truncate "truncate" "" Slot Size;
    Allocate "fallocate" "" Slot Transfer;
    Punch "punchhole" "" Slot Transfer;
    Delete "deletefile" "" OldSlot No;
    DeleteMissing "deletefile" "expect=ENOENT" Set No;
    RemoveDir "removedir" "" Set No;
    MakeDir "makedir" "" Set No;
    MakeExistingDir "makedir" "expect=EEXIST" Set No;
    Rename "rename" "" OldSlot No;
    Link "link" "" Set No;
    SymLink "symlink" "" Set No;
    Chmod "chmod" "" Path No;
    Chown "chown" "" Path No;
    SetTimes "utimens" "" Path No;
    GetXattr "getxattr" "" Slot No;
    ListXattr "listxattr" "" Slot No;
    SetXattr "setxattr" "" Slot No;
    Lock "lock" "shared" Slot Range;
    GetLock "getlk" "shared" Slot Range;
    Advise "fadvise" "advice=normal" Slot Range;
    StatFs "statfs" "" Set No;
}

/// What is known of the name that a call is on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) exists: bool,
    pub(crate) is_dir: bool,
    /// The new name of a rename existed.
    pub(crate) second_exists: bool,
}

impl CallAction {
    /// True if it is only looked at or placed, which programs do or leave out: it makes no other kind of session.
    pub(crate) fn is_minor(self) -> bool {
        use CallAction::{
            Advise, GetLock, GetXattr, ListXattr, Lock, SeekCurrent, SeekEnd, SeekSet, StatOpen, StatPath,
        };
        matches!(
            self,
            StatOpen | StatPath | SeekSet | SeekCurrent | SeekEnd | Advise | Lock | GetLock | GetXattr | ListXattr
        )
    }

    /// True if it waits until files or directories are on the disk.
    pub(crate) fn syncs(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::FsyncDir | Self::FdatasyncDir)
    }

    /// True if it is no call but a place in a loop at which threads wait.
    pub(crate) fn is_halt(self) -> bool {
        matches!(self, Self::Await | Self::Commit)
    }

    /// True if a file or directory is open behind it.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::OpenFile | Self::CreateFile | Self::CreateUnnamed | Self::OpenDir)
    }

    /// True if a file or directory comes or goes.
    pub(crate) fn changes_existence(self) -> bool {
        use CallAction::{CreateFile, Delete, Link, MakeDir, RemoveDir, Rename, SymLink};
        matches!(self, CreateFile | Delete | Rename | Link | SymLink | MakeDir | RemoveDir)
    }

    /// True if the name of a file goes, or what it stands for changes.
    pub(crate) fn changes_names(self) -> bool {
        matches!(self, Self::Delete | Self::Rename | Self::Link | Self::Chmod | Self::Chown | Self::SetTimes)
    }

    /// What a call does. `None` for one that no flowop makes.
    pub(crate) fn of(call: &TracedCall, before: Before) -> Option<Self> {
        let kind = call.kind.get();
        let flags = call.flags.unwrap_or(0) as i32;
        let error = call.result.checked_neg().and_then(|n| i32::try_from(n).ok()).filter(|_| call.result < 0);
        let is_missing = matches!(error, Some(numbers::ENOENT));
        let ok = call.result >= 0;
        if !ok && error.is_none() {
            return None;
        }
        let vectors = matches!(kind.name, "readv" | "preadv" | "preadv2" | "writev" | "pwritev" | "pwritev2");
        let found = match kind.class {
            _ if kind.is_unmodelled() => return None,
            CallClass::Open if flags & numbers::O_TMPFILE == numbers::O_TMPFILE && ok => Self::CreateUnnamed,
            CallClass::Open => match error {
                None if before.is_dir => Self::OpenDir,
                None if flags & numbers::O_CREAT != 0 && !before.exists => Self::CreateFile,
                None => Self::OpenFile,
                Some(numbers::ENOENT) => Self::OpenMissing,
                Some(numbers::EEXIST) => Self::CreateExisting,
                Some(numbers::ENOTDIR) => Self::OpenNoDirectory,
                Some(_) => return None,
            },
            CallClass::Close if before.is_dir => Self::CloseDir,
            CallClass::Close => Self::CloseFile,
            CallClass::List => Self::ListDir,
            CallClass::Read if call.result == 0 && call.wanted.is_some_and(|wanted| wanted > 0) => Self::ReadEnd,
            CallClass::Read if vectors => Self::ReadVec,
            CallClass::Read => Self::Read,
            CallClass::Write if vectors => Self::WriteVec,
            CallClass::Write => Self::Write,
            CallClass::Copy => Self::CopyRange,
            CallClass::Seek => match flags {
                numbers::SEEK_CUR => Self::SeekCurrent,
                numbers::SEEK_END => Self::SeekEnd,
                _ => Self::SeekSet,
            },
            CallClass::Stat if is_missing => Self::StatMissing,
            CallClass::Stat => Self::StatPath,
            CallClass::Fstat => Self::StatOpen,
            CallClass::Access if is_missing => Self::AccessMissing,
            CallClass::Access => Self::Access,
            CallClass::Readlink if is_missing => Self::ReadLinkMissing,
            CallClass::Readlink => Self::ReadLink,
            CallClass::Fsync if before.is_dir => Self::FsyncDir,
            CallClass::Fdatasync if before.is_dir => Self::FdatasyncDir,
            CallClass::Fsync => Self::Fsync,
            CallClass::Fdatasync => Self::Fdatasync,
            CallClass::SyncRange => Self::SyncRange,
            CallClass::SyncAll => Self::SyncFs,
            CallClass::Truncate => Self::Truncate,
            CallClass::Allocate if flags & numbers::FALLOC_FL_PUNCH_HOLE != 0 => Self::Punch,
            CallClass::Allocate => Self::Allocate,
            CallClass::Unlink | CallClass::Rmdir if before.is_dir && ok => Self::RemoveDir,
            CallClass::Unlink if is_missing => Self::DeleteMissing,
            CallClass::Unlink if ok => Self::Delete,
            CallClass::Mkdir if ok => Self::MakeDir,
            CallClass::Mkdir if error == Some(numbers::EEXIST) => Self::MakeExistingDir,
            CallClass::Rename if ok => Self::Rename,
            CallClass::Link if ok => Self::Link,
            CallClass::Symlink if ok => Self::SymLink,
            CallClass::Chmod => Self::Chmod,
            CallClass::Chown => Self::Chown,
            CallClass::Utimes => Self::SetTimes,
            CallClass::GetXattr if kind.name.contains("list") => Self::ListXattr,
            CallClass::GetXattr => Self::GetXattr,
            CallClass::SetXattr => Self::SetXattr,
            CallClass::Lock if flags == numbers::F_GETLK || flags == numbers::F_OFD_GETLK => Self::GetLock,
            CallClass::Lock => Self::Lock,
            CallClass::Advise => Self::Advise,
            CallClass::Statfs => Self::StatFs,
            _ => return None,
        };
        Some(found)
    }
}
