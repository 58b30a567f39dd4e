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
/// The greatest number of a thread: a greater one is a time in seconds.
const MOST_THREADS: u64 = 1 << 22;

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct ImportedTrace {
    /// Lines that were not understood.
    pub foreign: u64,
    /// Calls whose end or beginning is missing.
    pub unfinished: u64,
    /// Lines without their end.
    pub cut: u64,
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
    /// True if a time is that since the line before, as with `-r`.
    is_relative: bool,
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
    let (mut lines, mut cut, mut is_cut) = (0, 0, false);
    loop {
        line.clear();
        let length = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        // Of a text whose writer was killed, or of a line that is too long, of which the rest follows.
        let is_rest = std::mem::replace(&mut is_cut, line.last() != Some(&b'\n'));
        cut += u64::from(is_cut && !is_rest);
        if is_cut || is_rest {
            continue;
        }
        let Some(parsed) = ParsedLine::of(line.trim_ascii_end()) else { continue };
        lines += 1;
        // The trace begins with the first line that has a time, or is a call without one.
        let is_first = text.is_none() && (parsed.time.is_some() || parts(parsed.rest).is_some());
        if is_first && let (Some(scope), Some(sink)) = (scope.take(), sink.take()) {
            text = Some(StraceText::new(&parsed, scope, sink));
        }
        if let Some(text) = &mut text {
            text.line(&parsed)?;
        }
        if lines == MOST_FOREIGN && text.as_ref().is_none_or(|text| text.calls == 0) {
            break;
        }
    }
    let text = text.filter(|text| text.calls > 0).ok_or_else(|| {
        TraceError::new("it has no call as strace writes it", "record with `strace -f -ttt -T -y -o FILE COMMAND`")
    })?;
    let left_out = text.resolver.left_out().iter().map(|(why, n)| (*why, *n)).collect();
    let begun = text.unfinished.values().filter(|(_, begin)| text.is_on_files(begin)).count() as u64;
    let (unfinished, unreadable) = (text.found.unfinished + begun, text.resolver.unreadable());
    Ok(ImportedTrace { unfinished, cut, left_out, unreadable, ..text.found })
}

/// A line: its thread, its time in nanoseconds, and the rest.
struct ParsedLine<'l> {
    thread: u32,
    time: Option<u64>,
    /// True if the time is that of a day, such as `12:00:01`.
    is_of_day: bool,
    /// True if the time is filled up to six digits, as that since the line before.
    is_filled: bool,
    rest: &'l [u8],
}

impl<'l> ParsedLine<'l> {
    /// `None` for an empty line.
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii_start();
        let (mut thread, mut has_thread) = (1, false);
        if let Some(inner) = rest.strip_prefix(b"[pid") {
            let end = inner.iter().position(|c| *c == b']')?;
            (thread, has_thread) = (number(inner[..end].trim_ascii())? as u32, true);
            rest = inner[end + 1..].trim_ascii_start();
        }
        let (mut time, mut is_of_day, mut is_filled) = (None, false, false);
        for _ in 0..2 {
            let end = rest.iter().position(|c| *c == b' ')?;
            let word = &rest[..end];
            if !word.iter().all(|c| c.is_ascii_digit() || matches!(c, b'.' | b':')) || word.is_empty() {
                break;
            }
            is_of_day |= word.contains(&b':');
            let whole = decimal(word).filter(|n| has_thread || *n > MOST_THREADS).and_then(|n| n.checked_mul(SECOND));
            match seconds(word).or(whole) {
                Some(found) => {
                    time = Some(found);
                    // A time since 1970 has more digits, behind a short number of a process.
                    let before = &line[..line.len() - rest.len()];
                    is_filled = before.ends_with(b"  ") && found < 100_000 * SECOND;
                }
                None => (thread, has_thread) = (u32::try_from(decimal(word)?).ok()?, true),
            }
            rest = rest[end..].trim_ascii_start();
        }
        // With `-r` beside `-t`: `(+     0.000120)`.
        if rest.starts_with(b"(+ ") {
            rest = rest[rest.iter().position(|c| *c == b')')? + 1..].trim_ascii_start();
        }
        (!rest.is_empty()).then_some(Self { thread, time, is_of_day, is_filled, rest })
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
    fn new(first: &ParsedLine, scope: TraceScope, sink: EventSink<'a>) -> Self {
        let begin = first.time.unwrap_or(0);
        let is_relative = !first.is_of_day && (first.is_filled || begin < SECOND);
        let named = |(n, kind): (usize, &'static CallKind)| {
            matches!(kind.from, KindSource::Syscall(_)).then_some((kind.name.as_bytes(), KindId(n as u16)))
        };
        Self {
            resolver: TraceResolver::new(begin, scope, Box::new(NoView), sink),
            kinds: KINDS.iter().enumerate().filter_map(named).collect(),
            constants: Constants::new(),
            unfinished: HashMap::new(),
            processes: HashMap::new(),
            is_relative,
            now: if is_relative { 0 } else { begin },
            calls: 0,
            found: ImportedTrace::default(),
        }
    }

    fn line(&mut self, line: &ParsedLine) -> io::Result<()> {
        if let Some(time) = line.time {
            self.found.has_times = true;
            // Times of a day begin again at midnight.
            let is_next_day = time < DAY * SECOND && time + DAY / 2 * SECOND < self.now;
            self.now = if self.is_relative {
                self.now.saturating_add(time)
            } else if is_next_day {
                time + self.now / (DAY * SECOND) * DAY * SECOND + DAY * SECOND
            } else {
                time
            };
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
            let Some((start, mut whole)) = self.unfinished.remove(&thread) else {
                self.found.unfinished += u64::from(self.is_on_files(resumed));
                return Ok(());
            };
            let end = resumed.windows(8).position(|part| part == b"resumed>");
            whole.extend_from_slice(end.map_or(&[], |end| &resumed[end + 8..]));
            return self.call(thread, start, now, &whole);
        }
        self.call(thread, now, now, rest)
    }

    /// True if the text begins with the name of a call on files.
    fn is_on_files(&self, text: &[u8]) -> bool {
        let end = text.iter().position(|c| matches!(c, b'(' | b' ')).unwrap_or(text.len());
        self.kind(&text[..end]).is_some()
    }

    /// The kind of a call. One that strace does not know has its number in hexadecimal.
    fn kind(&self, name: &[u8]) -> Option<KindId> {
        match name.strip_prefix(b"syscall_") {
            Some(number_of) => KindId::of_syscall(i64::try_from(number(number_of)?).ok()?),
            None => self.kinds.get(name).copied(),
        }
    }

    fn call(&mut self, thread: u32, start: u64, seen: u64, text: &[u8]) -> io::Result<()> {
        let Some((name, args, after)) = parts(text) else {
            self.found.foreign += 1;
            return Ok(());
        };
        self.calls += 1;
        let (result, result_file, duration) = self.result(after);
        let Some(result) = result else {
            // The thread was ended in it. A call that is restarted has an error behind the `?`.
            self.found.unfinished += u64::from(after == b"?" && self.is_on_files(text));
            return Ok(());
        };
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
        let Some(kind) = self.kind(name) else { return Ok(()) };
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
                    raw.names[at] = name_of(text, dir);
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
fn name_of(text: &[u8], dir: Option<&[u8]>) -> Option<Vec<u8>> {
    let is_null = dir.is_some() && text == b"NULL";
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
    let name = name_of(second, Some(first))?;
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
#[path = "strace_tests.rs"]
mod tests;
