//! A trace from the text of strace, line by line. The options `-f -ttt -T -y` tell most: processes, times, and the names of
//! descriptors. What the text lacks is unknown.

use super::call::TraceEvent;
use super::format::TraceError;
use super::kind::{CallArg, CallKind, KINDS, KindId, KindSource};
use super::paths::PathTable;
use super::raw::{FdFacts, RawCall, StatFacts};
use super::resolver::{EventSink, TraceResolver};
use super::scope::TraceScope;
use super::strace_values::{Constants, flag_bits, number, split, text_of, unescaped};
use super::view::NoView;
use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};

/// The longest line, in bytes.
const LONGEST: u64 = 1 << 20;
/// After so many lines without a call it is no text of strace.
const MOST_FOREIGN: u64 = 1000;
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct ImportedTrace {
    /// Lines that were not understood.
    pub foreign: u64,
    /// Calls whose end is missing.
    pub unfinished: u64,
    /// True if lines have times.
    pub has_times: bool,
    /// Calls that were left out, by why.
    pub left_out: Vec<(&'static str, u64)>,
    /// Calls whose name was shortened by strace.
    pub unreadable: u64,
}

struct StraceText<'a> {
    resolver: TraceResolver<'a>,
    kinds: HashMap<&'static [u8], KindId>,
    constants: Constants,
    /// The beginnings of calls that others interrupt, by their threads.
    unfinished: HashMap<u32, (u64, Vec<u8>)>,
    processes: HashMap<u32, u32>,
    now: u64,
    calls: u64,
    found: ImportedTrace,
}

/// Reads a text, and passes on the events.
pub fn import_strace(
    mut input: impl BufRead,
    scope: TraceScope,
    mut sink: impl FnMut(&TraceEvent, &PathTable) -> io::Result<()>,
) -> Result<ImportedTrace, TraceError> {
    let mut line = Vec::new();
    let mut text: Option<StraceText> = None;
    let mut scope = Some(scope);
    let mut sink: Option<EventSink> = Some(Box::new(&mut sink));
    let mut lines = 0;
    loop {
        line.clear();
        let length = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        let Some(parsed) = ParsedLine::of(line.trim_ascii_end()) else { continue };
        if let (None, Some(scope), Some(sink)) = (&text, scope.take(), sink.take()) {
            text = Some(StraceText::new(parsed.time.unwrap_or(0), scope, sink));
        }
        let Some(text) = &mut text else { continue };
        text.line(&parsed)?;
        lines += 1;
        if lines == MOST_FOREIGN && text.calls == 0 {
            break;
        }
    }
    let text = text.filter(|text| text.calls > 0).ok_or_else(|| {
        TraceError::new("it has no call as strace writes it", "record with `strace -f -ttt -T -y -o FILE COMMAND`")
    })?;
    let left_out = text.resolver.left_out().iter().map(|(why, n)| (*why, *n)).collect();
    let (unfinished, unreadable) = (text.unfinished.len() as u64, text.resolver.unreadable());
    Ok(ImportedTrace { unfinished, left_out, unreadable, ..text.found })
}

/// A line: its thread, its time in nanoseconds, and the rest.
struct ParsedLine<'l> {
    thread: u32,
    time: Option<u64>,
    rest: &'l [u8],
}

impl<'l> ParsedLine<'l> {
    /// `None` for an empty line.
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii_start();
        let mut thread = 1;
        if let Some(inner) = rest.strip_prefix(b"[pid") {
            let end = inner.iter().position(|c| *c == b']')?;
            thread = number(inner[..end].trim_ascii())? as u32;
            rest = inner[end + 1..].trim_ascii_start();
        }
        let mut time = None;
        for _ in 0..2 {
            let end = rest.iter().position(|c| *c == b' ')?;
            let word = &rest[..end];
            if !word.iter().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b':')) || word.is_empty() {
                break;
            }
            match seconds(word) {
                Some(found) => time = Some(found),
                None => thread = u32::try_from(number(word)?).ok()?,
            }
            rest = rest[end..].trim_ascii_start();
        }
        (!rest.is_empty()).then_some(Self { thread, time, rest })
    }
}

/// A time such as `12:00:01.5` or `1795940787.501156`, in nanoseconds; `None` for a whole number.
fn seconds(word: &[u8]) -> Option<u64> {
    let dot = word.iter().position(|c| *c == b'.').unwrap_or(word.len());
    let (whole, fraction) = (&word[..dot], word.get(dot + 1..).unwrap_or_default());
    if dot == word.len() && !word.contains(&b':') {
        return None;
    }
    let whole =
        whole.split(|c| *c == b':').try_fold(0u64, |sum, part| sum.checked_mul(60)?.checked_add(decimal(part)?))?;
    let digits = fraction.len().min(9);
    let fraction = if digits == 0 { 0 } else { decimal(&fraction[..digits])? * 10u64.pow(9 - digits as u32) };
    whole.checked_mul(SECOND)?.checked_add(fraction)
}

/// A number whose zeros at the beginning mean nothing.
fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl<'a> StraceText<'a> {
    fn new(begin: u64, scope: TraceScope, sink: EventSink<'a>) -> Self {
        let named = |(n, kind): (usize, &'static CallKind)| {
            matches!(kind.from, KindSource::Syscall(_)).then_some((kind.name.as_bytes(), KindId(n as u16)))
        };
        Self {
            resolver: TraceResolver::new(begin, scope, Box::new(NoView), sink),
            kinds: KINDS.iter().enumerate().filter_map(named).collect(),
            constants: Constants::new(),
            unfinished: HashMap::new(),
            processes: HashMap::new(),
            now: begin,
            calls: 0,
            found: ImportedTrace::default(),
        }
    }

    fn line(&mut self, line: &ParsedLine) -> io::Result<()> {
        if let Some(time) = line.time {
            self.found.has_times = true;
            // Times of a day begin again at midnight.
            let is_next_day = time < DAY * SECOND && time + DAY / 2 * SECOND < self.now;
            self.now = if is_next_day { time + self.now / (DAY * SECOND) * DAY * SECOND + DAY * SECOND } else { time };
        }
        let (thread, now) = (line.thread, self.now);
        let rest = line.rest;
        if rest.starts_with(b"+++") {
            self.processes.remove(&thread);
            return self.resolver.exit(now, thread);
        }
        if rest.starts_with(b"---") {
            return Ok(());
        }
        if let Some(begin) = rest.strip_suffix(b"<unfinished ...>") {
            self.unfinished.insert(thread, (now, begin.to_vec()));
            return Ok(());
        }
        if let Some(resumed) = rest.strip_prefix(b"<... ") {
            let Some((start, mut whole)) = self.unfinished.remove(&thread) else { return Ok(()) };
            let end = resumed.windows(8).position(|part| part == b"resumed>");
            whole.extend_from_slice(end.map_or(&[], |end| &resumed[end + 8..]));
            return self.call(thread, start, now, &whole);
        }
        self.call(thread, now, now, rest)
    }

    fn call(&mut self, thread: u32, start: u64, seen: u64, text: &[u8]) -> io::Result<()> {
        let Some((name, args, after)) = parts(text) else {
            self.found.foreign += 1;
            return Ok(());
        };
        self.calls += 1;
        let (result, result_file, duration) = self.result(after);
        let Some(result) = result else { return Ok(()) };
        let end = duration.map_or(seen, |duration| start.saturating_add(duration));
        let process = *self.processes.entry(thread).or_insert(thread);
        match name {
            b"clone" | b"clone3" | b"fork" | b"vfork" if result > 0 => {
                let has = |flag: &[u8]| args.windows(flag.len()).any(|part| part == flag);
                let child = result as u32;
                let own = if has(b"CLONE_THREAD") { process } else { child };
                self.processes.insert(child, own);
                let shares = (has(b"CLONE_FILES"), has(b"CLONE_FS"));
                return self.resolver.fork(end, thread, child, own, shares);
            }
            b"execve" | b"execveat" if result == 0 => {
                let path = program(&split(args));
                return self.resolver.exec(end, thread, process, path.as_deref(), None);
            }
            _ => {}
        }
        let Some(kind) = self.kinds.get(name).copied() else { return Ok(()) };
        let mut raw = RawCall { start, end, thread, process, kind, result, ..RawCall::default() };
        let args = split(args);
        if let Some(cwd) = args.iter().find(|arg| arg.starts_with(b"AT_FDCWD<")).and_then(|arg| path_of(arg)) {
            self.resolver.cwd_is(thread, process, &cwd);
        }
        self.arguments(&mut raw, &args, result_file);
        self.resolver.call(&raw)
    }

    /// The result, the file of a descriptor that it is, and the duration.
    fn result<'t>(&self, mut after: &'t [u8]) -> (Option<i64>, Option<&'t [u8]>, Option<u64>) {
        let mut duration = None;
        if after.ends_with(b">")
            && let Some(at) = after.iter().rposition(|c| *c == b'<')
            && let Some(found) = seconds(&after[at + 1..after.len() - 1])
        {
            duration = Some(found);
            after = after[..at].trim_ascii_end();
        }
        let word_end = after.iter().position(|c| matches!(c, b' ' | b'<')).unwrap_or(after.len());
        let (word, rest) = after.split_at(word_end);
        if word == b"-1" {
            let name = rest.trim_ascii_start().split(|c| *c == b' ').next().unwrap_or_default();
            let errno = self.constants.errno(name).unwrap_or(i64::from(libc::EIO));
            return (Some(-errno), None, duration);
        }
        let value = number(word).map(|n| n as i64);
        (value, file_of(after).filter(|_| rest.starts_with(b"<")), duration)
    }

    fn arguments(&self, raw: &mut RawCall, args: &[&[u8]], result_file: Option<&[u8]>) {
        let kind = raw.kind.get();
        let mut names = 0;
        let mut files = 0;
        for (n, (arg, text)) in kind.args.iter().zip(args).enumerate().take(6) {
            match arg {
                CallArg::Fd | CallArg::Fd2 => {
                    raw.args[n] = number(text.split(|c| *c == b'<').next().unwrap_or_default()).unwrap_or(u64::MAX);
                    let at = usize::from(*arg == CallArg::Fd2);
                    raw.files[at] = file_of(text).map(facts);
                    files += 1;
                }
                CallArg::Dir => {
                    let is_cwd = text.starts_with(b"AT_FDCWD");
                    let fd = number(text.split(|c| *c == b'<').next().unwrap_or_default());
                    raw.args[n] = if is_cwd { libc::AT_FDCWD as u64 } else { fd.unwrap_or(u64::MAX) };
                }
                CallArg::Path | CallArg::Path2 => {
                    let dir = kind.dir_of(n).map(|at| args[at]);
                    let at = usize::from(*arg == CallArg::Path2);
                    raw.names[at] = name_of(text, dir, raw.result);
                    if at == 0 && raw.names[0].as_ref().is_some_and(Vec::is_empty) {
                        raw.files[0] = dir.and_then(file_of).map(facts);
                    }
                    names += 1;
                }
                CallArg::OffsetAt => raw.offset = text.strip_prefix(b"[").and_then(digits),
                CallArg::Iov => raw.wanted = sum_of(text, b"iov_len="),
                CallArg::Stat | CallArg::Statx => raw.stat = stat(text, &self.constants),
                CallArg::How => {
                    let bits = field(text, b"flags=").and_then(|text| flag_bits(text, &self.constants));
                    raw.how_flags = bits.map(|bits| bits as u32);
                }
                CallArg::Flags | CallArg::Whence | CallArg::Command => {
                    raw.args[n] = flag_bits(text, &self.constants).unwrap_or(u64::MAX);
                }
                CallArg::Skip | CallArg::Size | CallArg::Offset => {
                    raw.args[n] = digits(text).unwrap_or(if *arg == CallArg::Offset { u64::MAX } else { 0 });
                }
            }
        }
        // What follows the arguments of the table: the number that `fcntl` has.
        if let (Some(n), Some(last)) = (kind.arg(CallArg::Command), args.get(2)) {
            raw.args[n + 1] = flag_bits(last, &self.constants).unwrap_or(0);
        }
        if let (0, Some(file)) = (files, result_file) {
            raw.files[0] = Some(facts(file)).filter(|_| names > 0);
        }
    }
}

/// The name, the arguments and what follows the result's `=`.
fn parts(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let open = text.iter().position(|c| *c == b'(')?;
    let name = &text[..open];
    if name.is_empty() || !name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_') {
        return None;
    }
    // The last one: an argument may have it too.
    let at = text.windows(3).rposition(|part| part == b" = ")?;
    let close = text[..at].iter().rposition(|c| *c == b')')?;
    (close > open).then(|| (name, &text[open + 1..close], text[at + 3..].trim_ascii_start()))
}

/// The digits at the beginning.
fn digits(text: &[u8]) -> Option<u64> {
    let hex = text.starts_with(b"0x");
    let end = text.iter().position(|c| !(c.is_ascii_digit() || hex && (c.is_ascii_hexdigit() || *c == b'x')));
    number(&text[..end.unwrap_or(text.len())])
}

/// What `3</tmp/x>` has in its brackets.
fn file_of(text: &[u8]) -> Option<&[u8]> {
    let open = text.iter().position(|c| *c == b'<')?;
    let inner = &text[open + 1..];
    let end = inner.iter().rposition(|c| *c == b'>')?;
    Some(&inner[..end])
}

/// The name of the file of a descriptor. `None` of a pipe or a socket.
fn path_of(text: &[u8]) -> Option<Vec<u8>> {
    facts(file_of(text)?).path
}

/// The name in an argument, which may be relative to the directory in the argument before it. An empty one stands for that
/// directory or file itself.
fn name_of(text: &[u8], dir: Option<&[u8]>, result: i64) -> Option<Vec<u8>> {
    // A call with a bad address did nothing.
    let is_null = dir.is_some() && text == b"NULL" || result == -i64::from(libc::EFAULT);
    let name = text_of(text).or_else(|| is_null.then(Vec::new))?;
    let is_relative = !name.is_empty() && !name.starts_with(b"/");
    Some(match dir.filter(|_| is_relative).and_then(path_of) {
        Some(dir) => [&dir, b"/".as_slice(), &name].concat(),
        None => name,
    })
}

/// The program of `execve` or `execveat`.
fn program(args: &[&[u8]]) -> Option<Vec<u8>> {
    let (first, second) = (*args.first()?, *args.get(1)?);
    if first.starts_with(b"\"") {
        return text_of(first);
    }
    let name = name_of(second, Some(first), 0)?;
    if name.is_empty() { path_of(first) } else { Some(name) }
}

fn facts(file: &[u8]) -> FdFacts {
    if file.starts_with(b"/") {
        let path = unescaped(file.strip_suffix(b" (deleted)").unwrap_or(file));
        return FdFacts { path, ..FdFacts::default() };
    }
    let is = |start: &[u8]| file.starts_with(start);
    let mode = match () {
        () if is(b"pipe") => libc::S_IFIFO,
        () if is(b"socket") || is(b"TCP") || is(b"UDP") || is(b"UNIX") || is(b"NETLINK") => libc::S_IFSOCK,
        () => libc::S_IFCHR,
    };
    FdFacts { mode: Some(mode), ..FdFacts::default() }
}

/// The text behind a name such as `st_size=`.
fn field<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let at = text.windows(name.len()).position(|part| part == name)? + name.len();
    let end = text[at..].iter().position(|c| matches!(c, b',' | b'}')).unwrap_or(text.len() - at);
    Some(&text[at..at + end])
}

fn sum_of(text: &[u8], name: &[u8]) -> Option<u64> {
    let mut sum = None;
    let mut rest = text;
    while let Some(value) = field(rest, name) {
        sum = Some(sum.unwrap_or(0u64).saturating_add(digits(value)?));
        let at = rest.windows(name.len()).position(|part| part == name)?;
        rest = &rest[at + name.len()..];
    }
    sum
}

fn stat(text: &[u8], constants: &Constants) -> Option<StatFacts> {
    let mode = field(text, b"st_mode=").or_else(|| field(text, b"stx_mode="))?;
    let size = field(text, b"st_size=").or_else(|| field(text, b"stx_size="));
    let mode = mode.split(|c| *c == b'|').filter_map(|part| flag_bits(part, constants)).fold(0, |all, bit| all | bit);
    Some(StatFacts { size: size.and_then(digits).unwrap_or(0), mode: mode as u32, id: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn lines(text: &str) -> (Vec<String>, ImportedTrace) {
        let mut lines = Vec::new();
        let found = import_strace(text.as_bytes(), TraceScope::default(), |event, paths| {
            let TraceEvent::Call(call) = event else { return Ok(()) };
            let mut line = format!("{}.{:03} {}", call.thread, call.start / 1_000_000, call.kind.get().name);
            for path in [call.path, call.second_path].into_iter().flatten() {
                line += &format!(" {}", String::from_utf8_lossy(&paths.path(path)));
            }
            line += &call.offset.map_or(String::new(), |offset| format!(" @{offset}"));
            line += &call.wanted.map_or(String::new(), |wanted| format!(" {wanted}"));
            line += &call.stat_size.map_or(String::new(), |size| format!(" of {size}"));
            lines.push(format!("{line} = {}", call.result));
            Ok(())
        });
        (lines, found.unwrap())
    }

    #[test]
    fn calls_are_read_with_names_offsets_and_interruptions() {
        let (found, imported) = lines(
            r#"7 100.000000 execve("./p", ["./p"], 0x7ff /* 9 vars */) = 0 <0.000100>
7 100.001000 openat(AT_FDCWD</w>, "a, "b"", O_RDWR|O_CREAT, 0644) = 3</w/a, "b"> <0.000020>
7 100.002000 write(3</w/a, "b">, "x = y"..., 4096) = 4096 <0.000030>
7 100.003000 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 8 <0.000010>
8 100.004000 pread64(3</w/a, "b">,  <unfinished ...>
7 100.005000 newfstatat(3</w/a, "b">, "", {st_mode=S_IFREG|0644, st_size=4096, ...}, AT_EMPTY_PATH) = 0 <0.000010>
8 100.006000 <... pread64 resumed>"x"..., 100, 50) = 100 <0.002000>
7 100.007000 --- SIGCHLD {si_signo=SIGCHLD} ---
7 100.008000 writev(3</w/a, "b">, [{iov_base="a", iov_len=1}, {iov_base="b", iov_len=2}], 2) = 3 <0.000010>
7 100.009000 renameat2(AT_FDCWD</w>, "c", AT_FDCWD</w>, "d", RENAME_NOREPLACE) = -1 ENOENT (No such file or directory) <0.000010>
7 100.010000 read(5<pipe:[77]>, "", 10) = 0 <0.000010>
7 100.010500 chdir("sub") = 0 <0.000010>
7 100.010600 stat("f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.000010>
nonsense
7 100.011000 stat("cut"..., 0x7ff) = -1 EACCES (Permission denied) <0.000010>
8 100.012000 fsync(3</w/a, "b"> <unfinished ...>
8 100.013000 +++ exited with 0 +++
"#,
        );
        let expected = [
            r#"7.001 openat /w/a, "b" = 3"#,
            r#"7.002 write /w/a, "b" @0 4096 = 4096"#,
            r#"7.005 fstat /w/a, "b" of 4096 = 0"#,
            r#"8.004 pread64 /w/a, "b" @50 100 = 100"#,
            r#"7.008 writev /w/a, "b" @4096 3 = 3"#,
            "7.009 renameat2 /w/c /w/d = -2",
            "7.010 chdir /w/sub = 0",
            "7.010 stat /w/sub/f of 5 = 0",
        ];
        assert_eq!(found, expected);
        assert_eq!((imported.unfinished, imported.unreadable, imported.has_times), (1, 1, true));
        assert_eq!(imported.left_out, [("name not readable", 1), ("pipe", 1)]);
    }

    /// Lines as strace 6.1 writes them.
    #[test]
    fn a_call_without_a_name_is_on_the_file_of_its_descriptor() {
        let (found, imported) = lines(
            r#"7 100.000 utimensat(5</w/a>, NULL, [UTIME_NOW, UTIME_OMIT], 0) = 0 <0.000010>
7 100.001 utimensat(AT_FDCWD</w>, "b", NULL, AT_SYMLINK_NOFOLLOW) = 0 <0.000010>
7 100.002 statx(6</w/c>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL|STATX_MNT_ID, stx_attributes=0, stx_mode=S_IFREG|0644, stx_size=9, ...}) = 0 <0.000010>
7 100.003 statx(6</w/c>, NULL, AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=9, ...}) = 0 <0.000010>
7 100.004 newfstatat(9</w/d>, "", {st_mode=S_IFREG|0755, st_size=3, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.005 newfstatat(AT_FDCWD</w>, NULL, {st_mode=S_IFDIR|0755, st_size=40, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.006 fchownat(10</w/e>, "", 0, 0, AT_EMPTY_PATH) = 0 <0.000010>
7 100.007 linkat(11</w/f>, "", AT_FDCWD</w>, "g", AT_EMPTY_PATH) = 0 <0.000010>
7 100.008 futimesat(12</w/h>, NULL, NULL) = 0 <0.000010>
7 100.009 utimensat(13</w/a \303\244 "q" \74x\76>(deleted), NULL, NULL, 0) = 0 <0.000010>
7 100.010 newfstatat(14<pipe:[77]>, "", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.011 openat(AT_FDCWD</w/a \303\244>, "i", O_RDONLY) = 3</w/a \303\244/i> <0.000010>
7 100.012 stat(NULL, 0x7ffd) = -1 EFAULT (Bad address) <0.000010>
7 100.013 mkdirat(15</w/j>(deleted), "k", 0777) = -1 ENOENT (No such file or directory) <0.000010>
"#,
        );
        let expected = [
            "7.000 utimensat /w/a = 0",
            "7.001 utimensat /w/b = 0",
            "7.002 fstat /w/c of 9 = 0",
            "7.003 fstat /w/c of 9 = 0",
            "7.004 fstat /w/d of 3 = 0",
            "7.005 newfstatat /w of 40 = 0",
            "7.006 fchownat /w/e = 0",
            "7.007 linkat /w/f /w/g = 0",
            "7.008 futimesat /w/h = 0",
            r#"7.009 utimensat /w/a ä "q" <x> = 0"#,
            "7.011 openat /w/a ä/i = 3",
            "7.012 stat /w/a ä = -14",
            "7.013 mkdirat /w/j/k = -2",
        ];
        assert_eq!(found, expected);
        assert_eq!((imported.unreadable, imported.left_out), (0, vec![("pipe", 1)]));
    }

    #[test]
    fn the_program_of_an_exec_is_that_of_its_descriptor_if_it_has_no_name() {
        let mut programs = Vec::new();
        let text = r#"7 100.000 chdir("/w") = 0 <0.000010>
7 100.001 execve("./p", ["./p"], 0x7ff /* 9 vars */) = 0 <0.000010>
7 100.002 execveat(5</w/q>, "", ["q"], 0x7ff /* 0 vars */, AT_EMPTY_PATH) = 0 <0.000010>
7 100.003 execveat(5</w/d>, "r", ["/x"], 0x7ff /* 0 vars */, 0) = 0 <0.000010>
7 100.004 execveat(AT_FDCWD</w>, "s", ["/x"], 0x7ff /* 0 vars */, 0) = 0 <0.000010>
"#;
        let found = import_strace(text.as_bytes(), TraceScope::default(), |event, paths| {
            if let TraceEvent::Exec { path: Some(path), .. } = event {
                programs.push(String::from_utf8_lossy(&paths.path(*path)).into_owned());
            }
            Ok(())
        });
        assert!(found.is_ok());
        assert_eq!(programs, ["/w/p", "/w/q", "/w/d/r", "/w/s"]);
    }

    #[test]
    fn a_text_without_names_and_times_has_what_it_tells() {
        let (found, imported) = lines(
            "open(\"/w/x\", O_RDONLY) = 4\n[pid 12] 23:59:59.5 close(4) = 0\n[pid 12] 00:00:01 close(9) = -1 EBADF (Bad)\n",
        );
        assert_eq!(found[0], "1.000 open /w/x = 4");
        assert!(imported.has_times && found.len() == 1, "{found:?}");
        for text in ["", "hello\n", "int main(void)\n{\n}\n"] {
            assert!(import_strace(text.as_bytes(), TraceScope::default(), |_, _| Ok(())).is_err(), "{text}");
        }
    }
}
