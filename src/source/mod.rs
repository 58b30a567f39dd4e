//! Source texts and places in them.
//!
//! In: the text of a script, with the name that a person knows it by. Out: a [`FileId`] and, for any [`Span`], file, line and column.
//! Deliberately absent: reading files (the front ends do that) and anything about the language.

use std::fmt;

/// Which source text a span lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FileId(pub u32);

/// A range of bytes in one source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both (of the same file).
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

/// A thing and where it was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spanned<T> {
    /// The thing.
    pub node: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `node`, written at `span`.
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }
}

/// One source text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The name that errors show: a path as given, `<stdin>`, `<prompt 3>`, `oltp_sync (shipped)`.
    pub name: String,
    /// The text, whole.
    pub text: String,
    /// Messages show places in it, but nothing of the text: it was loaded from where its reader did not expect.
    pub hidden: bool,
    line_starts: Vec<u32>,
    /// The number of its first line: 1, unless it is a piece of a longer text.
    first_line: u32,
}

/// All the texts of a session.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a text in and names it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.add_part(name, text, 1)
    }

    /// Takes in a piece of a longer text, which begins on its line `first_line`, from 1.
    pub fn add_part(&mut self, name: impl Into<String>, text: impl Into<String>, first_line: u32) -> FileId {
        let text = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(SourceFile { name: name.into(), text, hidden: false, line_starts, first_line });
        FileId(self.files.len() as u32 - 1)
    }

    /// Nothing of this text is to be shown in messages.
    pub fn hide(&mut self, id: FileId) {
        self.files[id.0 as usize].hidden = true;
    }

    /// The text behind an id.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The text that a span covers.
    pub fn slice(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of a span's first byte, both from 1; columns count characters.
    pub fn line_col(&self, span: Span) -> (u32, u32) {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|&start| start <= span.start).max(1);
        let start = file.line_starts[line - 1] as usize;
        let before = file.text.get(start..span.start as usize).unwrap_or("");
        (line as u32 - 1 + file.first_line, before.chars().count() as u32 + 1)
    }

    /// The line that a span starts in, from 1.
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
    fn a_piece_counts_from_where_it_begins() {
        let mut map = SourceMap::new();
        let id = map.add_part("<stdin>", "run\n60", 7);
        assert_eq!(map.line_col(Span::new(id, 4, 6)), (8, 1));
    }
}
