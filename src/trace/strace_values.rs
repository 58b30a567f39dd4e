//! The values in the text of strace: numbers, quoted texts, names of constants.

use std::collections::HashMap;

/// A decimal number, one in hexadecimal with `0x`, or one in octal with `0`.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') && text.bytes().all(|c| c.is_ascii_digit()) => {
            u64::from_str_radix(text, 8).or_else(|_| text.parse()).ok()
        }
        None => text.parse().ok().or_else(|| text.parse::<i64>().ok().map(|n| n as u64)),
    }
}

/// The arguments of a call: what commas separate, outside of quotes, brackets and names of descriptors.
pub(crate) fn split(args: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut at) = (0, 0, 0);
    while let Some(c) = args.get(at) {
        match c {
            b'"' => {
                at += 1;
                while let Some(c) = args.get(at).filter(|c| **c != b'"') {
                    at += if *c == b'\\' { 2 } else { 1 };
                }
            }
            // `3</a, b>` and `3<TCP:[a:1->b:2]>`, and no `=>` or `<<`. strace writes a `>` of a file's name as
            // a number.
            b'<' if at > 0 && (args[at - 1].is_ascii_digit() || args[at - 1] == b'D') => {
                let is_file = args.get(at + 1) == Some(&b'/');
                let ends = |two: &[u8]| two[1] == b'>' && (is_file || two[0] != b'-');
                at += args[at..].windows(2).position(ends).map_or(0, |n| n + 1);
            }
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth -= 1,
            b',' if depth == 0 => {
                found.push(args[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found.push(args[start..].trim_ascii());
    found
}

/// The text in quotes. `None` if it is none, or if strace shortened it.
pub(crate) fn text_of(arg: &[u8]) -> Option<Vec<u8>> {
    unescaped(arg.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// A text as it was before strace wrote it. `None` if it ends within a character.
pub(crate) fn unescaped(written: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((c, more)) = rest.split_first() {
        rest = more;
        if *c != b'\\' {
            text.push(*c);
            continue;
        }
        let (escaped, more) = rest.split_first()?;
        rest = more;
        text.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'x' => {
                let (hex, more) = rest.split_at_checked(2)?;
                rest = more;
                u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
            }
            b'0'..=b'7' => {
                let mut value = u32::from(escaped - b'0');
                for _ in 0..2 {
                    let Some((digit @ b'0'..=b'7', more)) = rest.split_first() else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    rest = more;
                }
                value as u8
            }
            other => *other,
        });
    }
    Some(text)
}

/// Names of constants with their values.
pub(crate) struct Constants {
    names: HashMap<&'static [u8], u64>,
    errors: HashMap<Vec<u8>, i64>,
}

macro_rules! constants {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name as u64)),*] };
}

const CONSTANTS: &[(&str, u64)] = constants! {
    O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND O_NONBLOCK O_DSYNC O_SYNC O_DIRECT O_DIRECTORY O_NOFOLLOW
    O_CLOEXEC O_NOCTTY O_PATH O_TMPFILE O_NOATIME O_ASYNC
    AT_EMPTY_PATH AT_SYMLINK_NOFOLLOW AT_REMOVEDIR AT_SYMLINK_FOLLOW AT_NO_AUTOMOUNT AT_STATX_SYNC_AS_STAT AT_EACCESS
    SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE
    LOCK_SH LOCK_EX LOCK_UN LOCK_NB
    MAP_SHARED MAP_PRIVATE MAP_ANONYMOUS MAP_FIXED MAP_DENYWRITE MAP_NORESERVE MAP_POPULATE MAP_STACK
    MS_SYNC MS_ASYNC MS_INVALIDATE
    F_DUPFD F_DUPFD_CLOEXEC F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_OFD_GETLK F_OFD_SETLK
    F_OFD_SETLKW FD_CLOEXEC
    FALLOC_FL_KEEP_SIZE FALLOC_FL_PUNCH_HOLE FALLOC_FL_ZERO_RANGE
    POSIX_FADV_NORMAL POSIX_FADV_RANDOM POSIX_FADV_SEQUENTIAL POSIX_FADV_WILLNEED POSIX_FADV_DONTNEED
    SYNC_FILE_RANGE_WAIT_BEFORE SYNC_FILE_RANGE_WRITE SYNC_FILE_RANGE_WAIT_AFTER
    RENAME_NOREPLACE RENAME_EXCHANGE RWF_DSYNC RWF_SYNC RWF_HIPRI RWF_APPEND RWF_NOWAIT
    CLOSE_RANGE_CLOEXEC CLOSE_RANGE_UNSHARE TCGETS
    S_IFREG S_IFDIR S_IFLNK S_IFIFO S_IFSOCK S_IFCHR S_IFBLK S_ISUID S_ISGID S_ISVTX
};

impl Constants {
    pub(crate) fn new() -> Self {
        let mut names: HashMap<&'static [u8], u64> =
            CONSTANTS.iter().map(|(name, value)| (name.as_bytes(), *value)).collect();
        // Of a 64-bit program.
        names.insert(b"O_LARGEFILE", 0);
        let errors = (1..200).map(|n| (wml_os::errno_name(n).into_bytes(), i64::from(n)));
        Self { names, errors: errors.collect() }
    }

    pub(crate) fn errno(&self, name: &[u8]) -> Option<i64> {
        self.errors.get(name).copied()
    }
}

/// The bits of flags such as `O_RDWR|O_CREAT`, or a number. `None` if one of the names is not known.
pub(crate) fn flag_bits(text: &[u8], constants: &Constants) -> Option<u64> {
    text.split(|c| *c == b'|').try_fold(0, |all, part| {
        let part = part.trim_ascii();
        Some(all | constants.names.get(part).copied().or_else(|| number(part))?)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_read() {
        let split_text = |text: &str| -> Vec<String> {
            split(text.as_bytes()).into_iter().map(|arg| String::from_utf8(arg.to_vec()).unwrap()).collect()
        };
        assert_eq!(
            split_text(r#"3</a, b>, "x\", y"..., {a=1, b=[2, 3]}, 4"#),
            ["3</a, b>", r#""x\", y"..."#, "{a=1, b=[2, 3]}", "4"]
        );
        assert_eq!(
            split_text("4<TCP:[1.2.3.4:5->6.7.8.9:80]>, 3</a>, NULL"),
            ["4<TCP:[1.2.3.4:5->6.7.8.9:80]>", "3</a>", "NULL"]
        );
        assert_eq!(text_of(br#""a\n\"\\\303\244\x41\0""#).unwrap(), "a\n\"\\äA\0".as_bytes());
        assert_eq!((text_of(b"\"cut\"..."), text_of(b"NULL"), text_of(b"\"\\\"")), (None, None, None));
        let constants = Constants::new();
        let flags = (libc::O_RDWR | libc::O_CREAT) as u64;
        assert_eq!(flag_bits(b"O_RDWR|O_CREAT", &constants), Some(flags));
        assert_eq!((flag_bits(b"O_RDWR|O_NEW", &constants), flag_bits(b"0644", &constants)), (None, Some(0o644)));
        assert_eq!((number(b"0x10"), number(b"-1"), number(b"08")), (Some(16), Some(u64::MAX), Some(8)));
        assert_eq!(constants.errno(b"ENOENT"), Some(2));
    }
}
