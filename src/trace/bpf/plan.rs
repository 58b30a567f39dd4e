//! What the programs in the kernel do with each system call: a word for each number, made from [`KINDS`].

use super::super::kind::{CallArg, CallClass, CallKind, KINDS, KindId, KindSource};

/// The length of `calls` in `record.bpf.c`.
pub(super) const CALLS: usize = 512;

// The bits of a word, as in `record.bpf.c`.
const FD0: u32 = 0;
const FD1: u32 = 3;
const PATH0: u32 = 6;
const PATH1: u32 = 9;
const STAT: u32 = 12;
const POINTER: u32 = 15;
const STATX: u32 = 1 << 18;
const NEW_FD: u32 = 1 << 19;
const IOVEC: u32 = 1 << 20;
const ADDRESS: u32 = 1 << 21;
const ANY: u32 = 1 << 22;
const LONG: u32 = 1 << 23;

/// The word of each system call; 0: it is not recorded.
pub(super) fn words() -> [u32; CALLS] {
    let mut words = [0; CALLS];
    for (number, kind) in syscalls() {
        words[number] = word(kind);
    }
    words
}

/// The kind of each system call.
pub(super) fn kinds() -> Vec<Option<KindId>> {
    let mut kinds = vec![None; CALLS];
    for (number, _) in syscalls() {
        kinds[number] = KindId::of_syscall(number as i64);
    }
    kinds
}

fn syscalls() -> impl Iterator<Item = (usize, &'static CallKind)> {
    KINDS.iter().filter_map(|kind| match kind.from {
        KindSource::Syscall(Some(number)) => Some((usize::try_from(number).ok().filter(|n| *n < CALLS)?, kind)),
        _ => None,
    })
}

fn word(kind: &CallKind) -> u32 {
    let mut word = 0;
    for (n, arg) in kind.args.iter().enumerate() {
        let at = n as u32 + 1;
        word |= match arg {
            CallArg::Fd => at << FD0,
            CallArg::Fd2 if kind.class == CallClass::Copy => at << FD1 | LONG,
            CallArg::Path => at << PATH0 | ANY | LONG,
            CallArg::Path2 => at << PATH1 | LONG,
            CallArg::Stat => at << STAT | LONG,
            CallArg::Statx => at << STAT | STATX | LONG,
            CallArg::OffsetAt | CallArg::How => at << POINTER | LONG,
            CallArg::Iov => at << POINTER | IOVEC | LONG,
            _ => 0,
        };
    }
    if kind.class == CallClass::Open {
        word |= NEW_FD;
    }
    match kind.name {
        "msync" | "munmap" => word | ADDRESS | LONG,
        // Without a file: all descriptors, all file systems.
        _ if kind.arg(CallArg::Fd).is_none() => word | ANY,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_word_says_what_a_call_has() {
        let word = |name: &str| word(KindId::named(name).unwrap().get());
        assert_eq!(word("pread64"), 1 << FD0);
        assert_eq!(word("mmap"), 5 << FD0);
        assert_eq!(word("openat2"), 2 << PATH0 | 3 << POINTER | NEW_FD | ANY | LONG);
        assert_eq!(word("sendfile"), 1 << FD1 | 2 << FD0 | 3 << POINTER | LONG);
        assert_eq!(word("renameat2"), 2 << PATH0 | 4 << PATH1 | ANY | LONG);
        assert_eq!(word("msync"), ADDRESS | LONG);
        assert_eq!(word("sync"), ANY);
        assert_eq!(words()[libc::SYS_getppid as usize], 0);
        assert_eq!(kinds()[libc::SYS_read as usize], KindId::named("read"));
    }
}
