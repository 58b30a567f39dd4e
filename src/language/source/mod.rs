//! Source texts and positions in them.
//!
//! Input: the text of a script and its display name. Output: a [`FileId`], and the file, line and column of any
//! [`Span`]. Not in here: reading files, which the front ends do, and anything about the language.

use std::fmt;
use std::sync::Arc;

/// The identifier of a source text in a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FileId(pub u32);

/// A range of bytes in one source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The source text.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset one past the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span of the bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }

    /// Returns the smallest span that contains both spans, which must be of the same file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A syntax node, or another value, with its position in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub node: T,
    /// Its position.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Attaches the position `span` to `node`.
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

/// What the name of a text that is shipped with the program has at its end, in messages and results.
pub const SHIPPED: &str = " (shipped)";

/// One source text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name that diagnostics show: a path as given, `<stdin>`, `<prompt 3>`, `oltp_sync (shipped)`.
    pub name: String,
    /// The complete text.
    pub text: String,
    /// Whether diagnostics show positions in the text but do not quote it, because a text names it that is in another
    /// folder.
    pub hidden: bool,
    /// Offset of the first byte of each line.
    line_starts: Vec<u32>,
    /// The number of the first line: 1, unless the text is part of a longer one.
    first_line: u32,
}

/// The source texts of a session. A copy shares them.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<Arc<SourceFile>>,
    /// The number of the first text; not 0 in a map of one text that has the identifier of a text in another map.
    first: u32,
}

impl SourceMap {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under a display name.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.add_part(name, text, 1)
    }

    /// Adds a part of a longer text. `first_line` is the number of its first line in the longer text, counted from 1.
    pub fn add_part(&mut self, name: impl Into<String>, text: impl Into<String>, first_line: u32) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        let name = name.into();
        self.files.push(Arc::new(SourceFile { name, text, hidden: false, line_starts, first_line }));
        FileId(self.first + self.files.len() as u32 - 1)
    }

    /// Returns a map whose only text is that of `id`, without a name.
    pub fn with_only(id: FileId, text: impl Into<String>) -> Self {
        let mut map = Self { files: Vec::new(), first: id.0 };
        map.add("", text);
        map
    }

    /// Marks a text as hidden, so that diagnostics do not quote it.
    pub fn hide(&mut self, id: FileId) {
        Arc::make_mut(&mut self.files[(id.0 - self.first) as usize]).hidden = true;
    }

    /// Marks all texts as hidden.
    pub fn hide_all(&mut self) {
        self.files.iter_mut().for_each(|file| Arc::make_mut(file).hidden = true);
    }

    /// Returns the source text with this identifier.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[(id.0 - self.first) as usize]
    }

    /// Returns all source texts, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        (self.first..).map(FileId).zip(self.files.iter().map(|file| &**file))
    }

    /// Returns the text that a span covers.
    pub fn slice(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Returns the line and the column of a span's first byte, both counted from 1. Columns count characters.
    pub(crate) fn line_col(&self, span: Span) -> (u32, u32) {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|&start| start <= span.start).max(1);
        let start = file.line_starts[line - 1] as usize;
        let before = file.text.get(start..span.start as usize).unwrap_or("");
        (line as u32 - 1 + file.first_line, before.chars().count() as u32 + 1)
    }

    /// Returns the number of the line in which a span starts, counted from 1.
    pub fn line(&self, span: Span) -> u32 {
        self.line_col(span).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_start_at_one() {
        let mut map = SourceMap::new();
        let id = map.add("x.wml", "ab\ncdé f\n");
        assert_eq!(map.line_col(Span::new(id, 0, 1)), (1, 1));
        assert_eq!(map.line_col(Span::new(id, 3, 4)), (2, 1));
        assert_eq!(map.line_col(Span::new(id, 8, 9)), (2, 5));
        assert_eq!(map.slice(Span::new(id, 3, 5)), "cd");
    }

    #[test]
    fn lines_of_a_part_are_numbered_from_its_first_line() {
        let mut map = SourceMap::new();
        let id = map.add_part("<stdin>", "run\n60", 7);
        assert_eq!(map.line_col(Span::new(id, 4, 6)), (8, 1));
    }
}
