//! Characters that mean nothing outside of quotes. Filebench prints a message and skips them, and so its scripts have
//! them: a `;` at the end of a statement, a `\` at the end of a line, typographic quotes and spaces from a web page.
//!
//! They are skipped where the rest can only be read in one way. Next to a word they may be a part of it, and
//! leaving them out would make another name or path of it.

use crate::diag::{self, Code, Diagnostic};
use crate::source::Span;
use indexmap::IndexMap;

/// Characters in which a closing quote is looked for: an unbounded search would be quadratic.
const QUOTE_REACH: usize = 256;

/// How a character next to words is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum CharClass {
    /// Parts words, as a blank does.
    Blank,
    /// Belongs to no word, unless it is inside of one.
    Quote,
    /// May belong to the word before or after it.
    Sign,
    /// May replace a letter.
    Other,
}

/// Whether a character leaves no trace on paper.
fn is_invisible(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    c.is_control() || c.is_whitespace() || is_format || c == '\u{feff}'
}

/// The kind of a character that is skipped. `None`: it has a meaning, or a shell gives it one, so that it is probably
/// a mistake.
fn class_of(c: char) -> Option<CharClass> {
    match c {
        c if c.is_ascii_whitespace() => None,
        c if is_invisible(c) => Some(CharClass::Blank),
        '\'' | ';' | '´' | '‘'..='‟' | '«' | '»' | '‹' | '›' => Some(CharClass::Quote),
        '!' | '%' | '&' | ':' | '<' | '>' | '@' | '\\' | '^' | '|' => Some(CharClass::Sign),
        c if c.is_ascii() || c.is_alphanumeric() => None,
        _ => Some(CharClass::Other),
    }
}

/// Whether a number may end before a character.
pub(super) fn ends_number(c: char) -> bool {
    !matches!(c, '%' | ':') && class_of(c).is_some()
}

/// Returns the end of the characters from the start of `text` that are skipped; `None` if none are. `before`: what is
/// written directly before them, the end of a word. `ends_word`: whether a character ends a word.
pub(super) fn end(text: &str, before: &str, ends_word: impl Fn(char) -> bool) -> Option<usize> {
    let end = text.find(|c| class_of(c).is_none()).unwrap_or(text.len());
    let mut class = text[..end].chars().filter_map(class_of).max()?;
    // A number has no `;` in it, and a word that begins with one is none.
    let is_number = before.starts_with(|c: char| c.is_ascii_digit()) || before.is_empty();
    if class == CharClass::Blank || (is_number && text[..end].bytes().all(|c| c == b';')) {
        return Some(end);
    }
    let after = &text[end..];
    let after = &after[..after.find(&ends_word).unwrap_or(after.len())];
    // At the end of a line a `\` is meant to continue it.
    if &text[..end] == "\\" && after.is_empty() && ends_line(&text[end..]) {
        class = CharClass::Quote;
    }
    let may_be_path = |part: &str| part.contains(['/', '$', '~', '`']) || part.starts_with('.');
    let skips = match (class, before.is_empty(), after.is_empty()) {
        (_, true, true) => true,
        (CharClass::Blank | CharClass::Quote, ..) => before.is_empty() || after.is_empty(),
        (CharClass::Sign, true, false) => !may_be_path(after),
        (CharClass::Sign, false, true) => !may_be_path(before),
        (CharClass::Sign | CharClass::Other, ..) => false,
    };
    // Several words in quotes that are none of the language are a mistake of their own.
    (skips && !quotes_several(text, before, ends_word)).then_some(end)
}

/// Whether only blanks follow on the line.
fn ends_line(text: &str) -> bool {
    let rest = text.trim_start_matches([' ', '\t', '\r']);
    rest.is_empty() || rest.starts_with('\n')
}

/// Whether a text begins with quotes that are closed on the same line, after more than a word.
fn quotes_several(text: &str, before: &str, ends_word: impl Fn(char) -> bool) -> bool {
    let close: &[char] = match text.chars().next() {
        Some('\'') => &['\''],
        Some('‘') => &['’'],
        Some('“' | '„') => &['”', '“'],
        _ => return false,
    };
    let near = text.chars().skip(1).take(QUOTE_REACH).take_while(|c| *c != '\n');
    let (mut ends, mut several) = (false, false);
    for c in near {
        ends = close.contains(&c);
        if ends {
            break;
        }
        several |= ends_word(c);
    }
    before.is_empty() && ends && several
}

/// The characters that were skipped in a text: each with its first place, and how often.
#[derive(Default)]
pub(super) struct SkippedCharacters(IndexMap<char, (Span, usize)>);

impl SkippedCharacters {
    pub(super) fn add(&mut self, c: char, span: Span) {
        self.0.entry(c).and_modify(|(_, times)| *times += 1).or_insert((span, 1));
    }

    /// Adds a warning for each character.
    pub(super) fn report(self, found: &mut Vec<Diagnostic>) {
        for (c, (span, times)) in self.0 {
            let more = match times {
                1 => String::new(),
                2 => ", here and once more".to_owned(),
                times => format!(", here and {} times more", times - 1),
            };
            let message = format!("{} is skipped{more}", shown(c));
            let help = match c {
                ';' => "leave it out: statements need none between them, and Filebench skips it too",
                '\\' => "leave it out: a statement goes on at the next line without it, and Filebench skips it too",
                '\'' | '‘'..='‟' => "leave it out, or write double quotes `\"`: Filebench skips it too",
                _ => "leave it out: Filebench skips it too",
            };
            diag::push(found, Diagnostic::warning(Code::SkippedCharacter, span, message).help(help));
        }
    }
}

/// Quotes a character: as it is if it is printable, else with its code point.
pub(super) fn shown(c: char) -> String {
    match c {
        c if is_invisible(c) => format!("the invisible character U+{:04X}", c as u32),
        c if c.is_ascii_graphic() || c.is_alphanumeric() => format!("`{c}`"),
        c => format!("`{c}` (U+{:04X})", c as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::end;

    fn skipped<'a>(before: &str, text: &'a str) -> Option<&'a str> {
        let ends_word = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | ',' | '{' | '}' | '"');
        end(text, before, ends_word).map(|end| &text[..end])
    }

    #[test]
    fn marks_are_skipped_where_the_rest_is_plain() {
        for (before, text, skips) in [
            ("1", ";\n", ";"),
            ("1", ";flowop", ";"),
            ("", "; }", ";"),
            ("$dir", ";\n", ";"),
            ("", "'b'", "'"),
            ("b", "'\n", "'"),
            ("", "“b”", "“"),
            ("/mnt", "”;\n", "”;"),
            ("", "\\\n{", "\\"),
            ("/mnt", "\\ \n", "\\"),
            ("a", "\u{200b}b", "\u{200b}"),
            ("run", "\u{a0}60", "\u{a0}"),
            ("b", "\0\n", "\0"),
            ("b", "!\n", "!"),
            ("", "@b\n", "@"),
            ("80", "%;\n", "%;"),
            ("", "| \n", "|"),
            ("", "→ \n", "→"),
        ] {
            assert_eq!(skipped(before, text), Some(skips), "{before}{text}");
        }
    }

    #[test]
    fn marks_that_may_belong_to_a_name_are_not_skipped() {
        for (before, text) in [
            ("", "~/x"),
            ("", "`x`"),
            ("", "@/x"),
            ("/mnt/x", "!\n"),
            ("$dir", "!\n"),
            ("don", "'t\n"),
            ("a", "%b\n"),
            ("caf", "é\n"),
            ("", "–5\n"),
            ("", "'two words'\n"),
            ("", "“two words”\n"),
            ("", "%$x\n"),
            ("$a", ";$b\n"),
            ("x", "?\n"),
        ] {
            assert_eq!(skipped(before, text), None, "{before}{text}");
        }
    }
}
