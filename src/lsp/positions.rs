//! Positions of the protocol: lines, and UTF-16 code units in a line.
//!
//! Not in here: [`SourceMap`](crate::source::SourceMap), whose columns count characters, and whose lines end with `\n`
//! only. An editor ends a line also with `\r`.

use lsp_types::{Position, Range};

/// Distance of the offsets whose number of UTF-16 code units is stored. It bounds the cost of a position in a long line.
const BLOCK: usize = 4096;

/// The start of each line of a text, and its lengths in UTF-16.
#[derive(Debug)]
pub(super) struct LineIndex {
    /// Offset of the first byte of each line.
    starts: Vec<usize>,
    /// At every multiple of [`BLOCK`]: the offset of the character there, and the number of code units before it.
    blocks: Vec<(usize, usize)>,
}

impl LineIndex {
    /// Creates the index of a text.
    pub(super) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(ends).map(|at| at + 1)).collect();
        let mut blocks = vec![(0, 0)];
        let mut last = (0, 0);
        for at in (BLOCK..=text.len()).step_by(BLOCK) {
            let at = text.floor_char_boundary(at);
            last = (at, last.1 + units(&text[last.0..at]));
            blocks.push(last);
        }
        Self { starts, blocks }
    }

    /// Returns the number of code units before an offset.
    fn units_before(&self, text: &str, offset: usize) -> usize {
        let offset = text.floor_char_boundary(offset);
        let block = self.blocks.partition_point(|(at, _)| *at <= offset).saturating_sub(1);
        let (at, before) = self.blocks.get(block).copied().unwrap_or_default();
        before + units(&text[at..offset])
    }

    /// Returns the position of an offset; that of the end of the text if it is behind it.
    pub(super) fn position(&self, text: &str, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset.min(text.len())).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let character = self.units_before(text, offset) - self.units_before(text, start);
        Position::new(line as u32, character as u32)
    }

    /// Returns the range of the bytes `start..end`.
    pub(super) fn range(&self, text: &str, start: usize, end: usize) -> Range {
        Range::new(self.position(text, start), self.position(text, end))
    }

    /// Returns the offset of a position. A position behind the end of its line counts as that end, one inside a
    /// character as the start of the character, and a line behind the last one as the end of the text.
    pub(super) fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let next = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let end = start + text[start..next].trim_end_matches(['\r', '\n']).len();
        let wanted = self.units_before(text, start) + position.character as usize;
        let block = self.blocks.partition_point(|(_, before)| *before <= wanted).saturating_sub(1);
        let (at, mut before) = self.blocks.get(block).copied().unwrap_or_default();
        // The block may begin before the line or behind its end.
        let at = at.min(end);
        let reached = text[at..end].char_indices().find(|(_, c)| {
            before += c.len_utf16();
            before > wanted
        });
        reached.map_or(end, |(from, _)| at + from).max(start)
    }
}

/// Returns the number of UTF-16 code units of a text.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_utf_16_code_units() {
        let text = "aé😀x\r\nzweite\rdritte\n";
        let index = LineIndex::new(text);
        let at = |needle: &str| index.position(text, text.find(needle).unwrap_or_default());
        assert_eq!(at("x"), Position::new(0, 4));
        assert_eq!(at("zweite"), Position::new(1, 0));
        assert_eq!(at("itte"), Position::new(2, 2));
        assert_eq!(index.position(text, usize::MAX), Position::new(3, 0));
        // In the middle of the second character.
        assert_eq!(index.position(text, 2), Position::new(0, 1));
    }

    #[test]
    fn offsets_are_clipped_to_the_line_and_to_characters() {
        let text = "aé😀x\r\nzweite";
        let index = LineIndex::new(text);
        let at = |line, character| index.offset(text, Position::new(line, character));
        assert_eq!((at(0, 1), at(0, 2), at(0, 3), at(0, 4)), (1, 3, 3, 7));
        assert_eq!((at(0, 5), at(0, 99), at(0, u32::MAX)), (8, 8, 8));
        assert_eq!((at(1, 2), at(1, 99), at(7, 0)), (12, 16, 16));
        assert_eq!(LineIndex::new("").offset("", Position::new(0, 9)), 0);
    }

    /// Positions and offsets are inverse to each other at every character, also across blocks.
    #[test]
    fn every_character_has_its_position() {
        let text = "é😀 set\n\n".repeat(900) + &"😀x".repeat(4000);
        let index = LineIndex::new(&text);
        let (mut line, mut character) = (0, 0);
        for (offset, c) in text.char_indices() {
            let position = Position::new(line, character);
            assert_eq!((index.position(&text, offset), index.offset(&text, position)), (position, offset));
            character += c.len_utf16() as u32;
            if c == '\n' {
                (line, character) = (line + 1, 0);
            }
        }
    }
}
