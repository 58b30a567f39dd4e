//! Breaks lines between words, so that they fit into a number of columns. The only file that uses the library for it.

use std::borrow::Cow;
use textwrap::{Options, WordSeparator, WordSplitter};

/// The width of reports, in columns.
pub const WIDTH: usize = 80;

/// Wraps text to [`WIDTH`]. Indents all lines but the first with `under`.
pub fn wrapped(text: &str, under: &str) -> String {
    fill(text, WIDTH, under)
}

/// Breaks a text at spaces into lines of at most `columns` columns, and indents all lines but the first with `under`. A
/// word that is longer, such as a path, stays whole.
pub fn fill(text: &str, columns: usize, under: &str) -> String {
    let options = Options::new(columns).subsequent_indent(under).break_words(false);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
}

/// Breaks a list of figures into lines as [`fill`] does, but only after commas and colons: a number stays beside its unit.
pub fn fill_list(text: &str, columns: usize) -> String {
    let joined = text.replace(' ', "\u{a0}").replace(",\u{a0}", ", ").replace(":\u{a0}", ": ");
    fill(&joined, columns, "    ").replace('\u{a0}', " ")
}

/// Breaks a cell of a table into lines of at most `columns` columns: at spaces, after a `/`, or anywhere in a word that
/// is longer.
pub fn cell_lines(text: &str, columns: usize) -> Vec<String> {
    let separator = WordSeparator::Custom(|line| {
        let parts = line.split_inclusive(' ').flat_map(|word| word.split_inclusive('/'));
        Box::new(parts.map(textwrap::core::Word::from))
    });
    let options = Options::new(columns.max(1)).word_separator(separator).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

/// Breaks the lines of a message that are wider than `columns`, if it is known. The rest of a line is below its text:
/// behind the label of help (`  = help: `), and else two columns to the right of its beginning.
pub fn message(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    let Some(columns) =
        columns.filter(|columns| text.lines().any(|line| textwrap::core::display_width(line) > *columns))
    else {
        return Cow::Borrowed(text);
    };
    let broken = text.split('\n').map(|line| {
        let label = if line.starts_with("  = ") { line.find(": ").map_or(0, |at| at + 2) } else { 0 };
        let start = line.len() - line.trim_start().len() + 2;
        // In a window of a few columns the indentation would leave no room for words.
        fill(line, columns, &" ".repeat(start.max(label).min(columns / 4)))
    });
    Cow::Owned(broken.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_is_below_its_text() {
        let text = "error: one two three\n  = help: four five six\nend";
        assert_eq!(message(text, Some(40)), text, "it fits");
        assert_eq!(message(text, None), text);
        assert_eq!(message("note: one two three four", Some(16)), "note: one two\n  three four");
        assert_eq!(
            message("  = help: one two three four five six seven eight", Some(40)),
            "  = help: one two three four five six\n          seven eight"
        );
        assert_eq!(
            message("note: /a/path/that/is/longer/than/the/window", Some(10)),
            "note:\n  /a/path/that/is/longer/than/the/window"
        );
    }

    #[test]
    fn an_option_is_not_broken_at_its_hyphens() {
        assert_eq!(fill("use --noise-floor", 12, "  "), "use\n  --noise-floor");
    }
}
