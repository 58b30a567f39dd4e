//! Text after a `quit` or `exit` outside of blocks, which no run reads, and whose errors therefore refuse no script.
//!
//! In: the errors of a whole text. Out: the part up to the `quit`, to be checked instead, if an error lies after it.
//! Deliberately absent: a correct text after a `quit`, which is checked like any other.

use crate::diag::{Code, Diagnostic, Severity};
use crate::source::{FileId, SourceMap};
use crate::syntax;

/// The part of a text that is read, where an error lies after it.
pub(super) struct ReadPart {
    /// A map of that part, in which it has the same identifier as the whole text.
    pub(super) map: SourceMap,
    /// The warning that the rest is not read.
    pub(super) warning: Diagnostic,
}

/// Returns the part of a text up to its `quit`. `None` if there is no `quit`, or no error after it.
pub(super) fn read_part(map: &SourceMap, file: FileId, found: &[Diagnostic]) -> Option<ReadPart> {
    let errors = || found.iter().filter(|d| d.severity == Severity::Error && d.primary.span.file == file);
    errors().next()?;
    let text = &map.file(file).text;
    let quit = syntax::first_quit(file, text)?;
    let unread = errors().map(|d| d.primary.span).filter(|span| span.start >= quit.end);
    let first = unread.min_by_key(|span| span.start)?;
    let message = format!("not read: text after `{}`", map.slice(quit));
    let warning = Diagnostic::warning(Code::NotRead, quit, message)
        .also(first, "this would be an error")
        .help("remove it, or put a `#` before each of its lines");
    Some(ReadPart { map: SourceMap::with_only(file, text.get(..quit.end as usize)?), warning })
}
