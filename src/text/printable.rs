//! Makes untrusted text safe to print on a terminal: control characters become visible escapes, and long text can be
//! shortened.
//!
//! Not in here: quoting for HTML, XML or CSV, which each output format does for itself.
//! `util::printable::line("a\x1b[2Jb")` returns `a\x1b[2Jb`, in which the escape character is replaced by the four
//! characters `\x1b`.

use std::borrow::Cow;

/// True if a character moves the cursor, starts a control sequence, ends a line, or invisibly changes the order
/// or the look of the text around it: C0, DEL, C1, the line and paragraph separators, direction marks, overrides and
/// isolates, and zero-width characters, which make two different names look alike.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}'
            | '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns the visible escape of a control character: `\n`, `\t`, `\x1b`, `\u{202e}`.
pub fn escaped(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if u32::from(c) < 0x100 => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    }
}

/// Returns the number of terminal columns that a character occupies: 2 for wide East Asian characters and emoji, else
/// 1.
pub fn columns(c: char) -> usize {
    let wide = matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60
        | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    1 + usize::from(wide)
}

/// Escapes the control characters for which `keep` returns `false`.
fn escape_except(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let escape = |c: char| is_control(c) && !keep(c);
    if !text.contains(escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if escape(c) { out.push_str(&escaped(c)) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Escapes every control character, including newlines and tabs. For text inside one line, such as a name, a path or
/// a message.
pub fn line(text: &str) -> Cow<'_, str> {
    escape_except(text, |_| false)
}

/// Escapes like [`line()`]. Bytes of a path that are not UTF-8 become the replacement character.
pub fn path(path: &std::path::Path) -> String {
    line(&path.to_string_lossy()).into_owned()
}

/// Escapes every control character except newlines and tabs. For text of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape_except(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes like [`line()`], and replaces the middle of a text of more than `most` characters by `…`. The limit counts
/// characters before escaping.
pub fn short(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some(_) => Cow::Owned(without_middle(text, most * 2 / 3, most / 3 + 1)),
        None => line(text),
    }
}

/// Shortens like [`short()`], but to `most` characters including the `…`, of which there must be at least 2.
pub fn within(text: &str, most: usize) -> Cow<'_, str> {
    let head = most.saturating_sub(1) * 2 / 3;
    match text.char_indices().nth(most) {
        Some(_) => Cow::Owned(without_middle(text, head, most.saturating_sub(1 + head))),
        None => line(text),
    }
}

/// Returns the first and the last characters of a text, the last at least one. Only these are scanned, so the cost does
/// not grow with the length of the text.
fn without_middle(text: &str, first: usize, last: usize) -> String {
    let head = text.char_indices().nth(first).map_or(text, |(at, _)| &text[..at]);
    let tail = text.char_indices().rev().nth(last.saturating_sub(1)).map_or("", |(at, _)| &text[at..]);
    format!("{}…{}", line(head), line(tail))
}

#[cfg(test)]
mod tests {
    use super::{is_control, line, lines, short, within};

    #[test]
    fn only_control_characters_are_escaped() {
        assert_eq!(
            line("ab\x1b[2J\x07\n\r\t\0\x7f\u{9b}\u{202e}\u{2028}é→"),
            "ab\\x1b[2J\\x07\\n\\r\\t\\x00\\x7f\\x9b\\u{202e}\\u{2028}é→"
        );
        assert_eq!(lines("a\n\tb\r\x1b"), "a\n\tb\\r\\x1b");
        for plain in ["", "a b", "naïve “quotes” – ▁▂█ µs 日本", "\u{200d}"] {
            assert!(matches!(line(plain), std::borrow::Cow::Borrowed(text) if text == plain));
        }
        for code in (0..0x20).chain(0x7f..=0x9f).chain([0x2028, 0x2029]).chain(0x202a..=0x202e).chain(0x2066..=0x2069) {
            assert!(char::from_u32(code).is_some_and(is_control), "{code:x}");
        }
    }

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(short("abc", 3), "abc");
        let long: String = ('a'..='z').cycle().take(1_000_000).collect();
        let cut = short(&long, 30);
        assert!(cut.starts_with("abc") && cut.contains('…') && cut.chars().count() <= 33, "{cut}");
        assert_eq!(within("deliver-new-messages.create", 22), "deliver-new-me….create");
        for most in 2..40 {
            assert!(within(&long, most).chars().count() == most && within(&long[..most], most) == long[..most]);
        }
        assert!(short(&"é\n".repeat(5000), 20).starts_with("é\\né\\n"));
    }
}
