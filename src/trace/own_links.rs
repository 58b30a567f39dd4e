//! Names in /proc and /dev that stand for an open file of the process itself.

use super::kind::{CallClass, CallKind};

/// The descriptor that a name stands for, and what of the name follows.
pub(crate) fn own_descriptor(name: &[u8], process: u32) -> Option<(i32, &[u8])> {
    let is_it = |start: &[u8]| name.starts_with(start);
    if !is_it(b"/proc/") && !is_it(b"/dev/") {
        return None;
    }
    let standard: [&[u8]; 3] = [b"/dev/stdin", b"/dev/stdout", b"/dev/stderr"];
    if let Some(fd) = standard.iter().position(|standard| *standard == name) {
        return Some((fd as i32, b""));
    }
    let own = format!("/proc/{process}/fd/");
    let starts = [b"/dev/fd/".as_slice(), b"/proc/self/fd/", b"/proc/thread-self/fd/", own.as_bytes()];
    let rest = starts.into_iter().find_map(|start| name.strip_prefix(start))?;
    let (number, below) = rest.split_at(rest.iter().position(|c| *c == b'/').unwrap_or(rest.len()));
    let below = &below[below.iter().take_while(|c| **c == b'/').count()..];
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, below))
}

/// True if a call is on the file that a link stands for, and not on the link.
pub(crate) fn follows(kind: &CallKind, flags: Option<u32>) -> bool {
    let has = |flag: i32| flags.is_some_and(|flags| flags & flag as u32 != 0);
    match kind.class {
        CallClass::Open => !has(libc::O_NOFOLLOW),
        CallClass::Link => has(libc::AT_SYMLINK_FOLLOW),
        CallClass::Stat | CallClass::Access | CallClass::Chmod | CallClass::Chown | CallClass::Utimes => {
            !has(libc::AT_SYMLINK_NOFOLLOW) && !matches!(kind.name, "lstat" | "lchown")
        }
        CallClass::GetXattr | CallClass::SetXattr => {
            !has(libc::AT_SYMLINK_NOFOLLOW)
                && !matches!(kind.name, "lgetxattr" | "llistxattr" | "lsetxattr" | "lremovexattr")
        }
        CallClass::Truncate | CallClass::Statfs | CallClass::Chdir => true,
        _ => false,
    }
}
