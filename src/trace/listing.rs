//! The calls of a trace, a line each.

use super::call::TracedCall;
use super::paths::{PathId, PathTable};
use wml_text::printable;

/// The headings of [`call_line`].
pub fn calls_heading() -> String {
    columns(["seconds", "thread", "call", "µs", "result", "offset", "bytes", "path"])
}

fn columns(words: [&str; 8]) -> String {
    let [start, thread, call, duration, result, offset, bytes, path] = words;
    format!("{start:>12} {thread:>8}  {call:<15} {duration:>10} {result:>10} {offset:>13} {bytes:>10}  {path}")
}

/// A call: when it began, who made it, how long it took, and what it was on. The path is last, since it may have blanks.
pub fn call_line(call: &TracedCall, paths: &PathTable) -> String {
    let known = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let path = |id: PathId| printable::line(&String::from_utf8_lossy(&paths.path(id))).into_owned();
    let both: Vec<String> = [call.path, call.second_path].into_iter().flatten().map(path).collect();
    let both = if both.is_empty() { "-".to_owned() } else { both.join(" → ") };
    let result = match call.result {
        error @ -4095..=-1 => wml_os::errno_name(-error as i32),
        result => result.to_string(),
    };
    columns([
        &format!("{}.{:07}", call.start / 1_000_000_000, call.start % 1_000_000_000 / 100),
        &call.thread.to_string(),
        call.kind.get().name,
        &format!("{}.{}", call.duration / 1000, call.duration % 1000 / 100),
        &result,
        &known(call.offset),
        &known(call.wanted),
        &both,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::KindId;

    #[test]
    fn a_line_has_the_call_its_file_and_its_error() {
        let mut paths = PathTable::new();
        let [from, to] = [&b"/db/a b"[..], b"/db/x\x1b[2J"].map(|name| paths.resolve(PathId::ROOT, name));
        let kind = |name| KindId::named(name).unwrap_or_default();
        let write = TracedCall {
            start: 1_000_000_200,
            duration: 12_300,
            thread: 77,
            kind: kind("pwrite64"),
            result: 100,
            path: Some(from),
            offset: Some(4096),
            wanted: Some(4096),
            ..TracedCall::default()
        };
        let rename =
            TracedCall { kind: kind("rename"), result: -2, path: Some(from), second_path: Some(to), ..write.clone() };
        let rename = TracedCall { offset: None, wanted: None, ..rename };
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(words(calls_heading()), "seconds thread call µs result offset bytes path");
        assert_eq!(words(call_line(&write, &paths)), "1.0000002 77 pwrite64 12.3 100 4096 4096 /db/a b");
        let expected = "1.0000002 77 rename 12.3 ENOENT - - /db/a b → /db/x\\x1b[2J";
        assert_eq!(words(call_line(&rename, &paths)), expected);
    }
}
