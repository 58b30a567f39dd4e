//! The records that the programs in the kernel write: `struct call` of `record.bpf.c`.

use super::super::call::InodeId;
use super::super::raw::FdFacts;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelRecordKind {
    Call,
    Wait,
    Fork,
    Exec,
    Exit,
    /// Pages of a mapped file.
    Fault,
    /// The names of a request of `io_uring`, when it is submitted.
    Request,
    Completion,
}

/// The bytes of a record. Reading past their end gives zeros.
#[derive(Clone, Copy)]
pub(super) struct KernelRecord<'a>(pub(super) &'a [u8]);

/// `sizeof(struct call)`, `sizeof(struct file_info)`.
const CALL: usize = 128;
const FILE: usize = 40;
/// Where the value behind the pointer argument of a long record is, and where its names begin.
const POINTED: usize = CALL + 2 * FILE;
const NAMES: usize = POINTED + 16;

/// The kernel's `O_LARGEFILE`, which it sets in each `open` of a 64-bit program.
const LARGE: u32 = if cfg!(target_arch = "aarch64") { 0o400_000 } else { 0o100_000 };

impl<'a> KernelRecord<'a> {
    fn bytes<const N: usize>(self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn long(self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }

    fn int(self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    fn short(self, at: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(at))
    }

    pub(super) fn kind(self) -> Option<KernelRecordKind> {
        use KernelRecordKind::{Call, Completion, Exec, Exit, Fault, Fork, Request, Wait};
        let kinds = [Call, Wait, Fork, Exec, Exit, Fault, Request, Completion];
        kinds.get(usize::from(*self.0.first()?).wrapping_sub(1)).copied()
    }

    fn is_long(self) -> bool {
        self.0.get(1) == Some(&2)
    }

    /// The number of the system call, or the code of the request.
    pub(super) fn number(self) -> u16 {
        self.short(2)
    }

    pub(super) fn thread(self) -> u32 {
        self.int(4)
    }

    pub(super) fn process(self) -> u32 {
        self.int(8)
    }

    pub(super) fn start(self) -> u64 {
        self.long(16)
    }

    pub(super) fn end(self) -> u64 {
        self.long(24)
    }

    pub(super) fn result(self) -> i64 {
        self.long(32) as i64
    }

    pub(super) fn args(self) -> [u64; 6] {
        std::array::from_fn(|n| self.long(40 + 8 * n))
    }

    /// Nanoseconds since the last record of the thread that it waited for a processor, and that it slept.
    pub(super) fn between(self) -> [u64; 2] {
        [self.long(96), self.long(104)]
    }

    /// The same in the call.
    pub(super) fn within(self) -> [u64; 2] {
        let (ran, ready) = (self.long(112), self.long(120));
        [ready, (self.end() - self.start()).saturating_sub(ran + ready)]
    }

    /// The file `n`, if there is one.
    pub(super) fn file(self, n: usize) -> Option<FdFacts> {
        if n == 1 && !self.is_long() {
            return None;
        }
        let at = CALL + FILE * n;
        let mode = self.int(at + 36);
        let device = self.int(at + 28);
        let id = InodeId {
            device: libc::makedev(device >> 20, device & 0xf_ffff),
            inode: self.long(at),
            generation: Some(self.int(at + 24)),
        };
        let is_file = matches!(mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR);
        (mode != 0).then(|| FdFacts {
            id: is_file.then_some(id),
            mode: Some(mode),
            position: is_file.then(|| self.long(at + 16)),
            size: is_file.then(|| self.long(at + 8)),
            flags: is_file.then(|| self.int(at + 32) & !LARGE),
            ..FdFacts::default()
        })
    }

    /// What was behind the pointer argument after the call.
    pub(super) fn pointed(self) -> Option<u64> {
        Some(self.long(POINTED)).filter(|value| self.is_long() && *value != u64::MAX)
    }

    /// The names, without their zero bytes.
    pub(super) fn names(self) -> [Option<&'a [u8]>; 2] {
        let [first, second] = [12, 14].map(|at| usize::from(self.short(at)));
        let name = |at: usize, length: usize| self.0.get(at..(at + length).checked_sub(1)?).filter(|_| length > 0);
        [name(NAMES, first), name(NAMES + first, second)]
    }
}
