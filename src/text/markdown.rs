//! Escapes text for Markdown, as GitHub, GitLab and pandoc read it.
//!
//! Not in here: tables (`table`) and headings, which each report writes for itself.
//! `util::markdown::literal("a|b <c>")` returns `a\|b &lt;c>`.

use super::printable;

/// Ends a mention or a reference after its first character: GitHub looks for `@name` and `#1` in the text that it has
/// already unescaped, where `\@` and `&#64;` are `@` again. A zero-width space would be copied along with the text.
const COMMENT: &str = "<!-- -->";

/// Returns a text of one line that Markdown shows as it is, in a paragraph, a list or a cell of a table: without markup,
/// links, mentions and references. Control characters become visible escapes, spaces around the text are removed.
pub fn literal(text: &str) -> String {
    let line = printable::line(text);
    let letters: Vec<char> = line.trim().chars().collect();
    let mut out = String::with_capacity(line.len() + 16);
    let marker = block_marker(&letters);
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1).copied();
        let is_inside_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        match letter {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.extend(["@", COMMENT]),
            '#' if after.is_some_and(|c| c.is_ascii_digit()) => out.extend(["#", COMMENT]),
            '\\' | '`' | '*' | '~' | '|' | '$' => out.extend(['\\', letter]),
            // Between letters it is part of the word.
            '_' if !(is_inside_word(before) && is_inside_word(after)) => out.push_str("\\_"),
            // Without one of these pairs brackets are text, such as those of an interval.
            ']' if matches!(after, Some('(' | '[' | ':')) => out.push_str("\\]"),
            _ if marker == Some(at) => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}

/// Escapes a message of this program, in which pairs of backticks enclose names and commands: these become code, in which
/// nothing is markup. With an odd number of backticks, as of a name that contains one, all of it is text.
pub fn message(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return literal(text);
    }
    let part = |(n, part): (usize, &&str)| match n % 2 {
        // `literal` drops the blanks at both ends.
        0 => {
            let (before, after) = (part.starts_with(' '), part.ends_with(' ') && part.len() > 1);
            format!("{}{}{}", if before { " " } else { "" }, literal(part), if after { " " } else { "" })
        }
        _ if part.trim().is_empty() => format!("\\`{part}\\`"),
        _ => format!("`{}`", printable::line(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns the position of the character that would make a line with this text another block than a paragraph: a
/// heading, a quotation, an item of a list, or a line below a heading. `None` when there is none.
fn block_marker(letters: &[char]) -> Option<usize> {
    let ends = |at: usize| letters.get(at).is_none_or(|c| c.is_whitespace());
    match letters {
        ['#' | '>' | '=', ..] => Some(0),
        ['-' | '+', next, ..] if !next.is_ascii_digit() => Some(0),
        ['[', ' ' | 'x' | 'X', ']', ..] if ends(3) => Some(0),
        ['0'..='9', ..] => {
            let digits = letters.iter().take_while(|c| c.is_ascii_digit()).count();
            (matches!(letters.get(digits), Some('.' | ')')) && ends(digits + 1)).then_some(digits)
        }
        _ => None,
    }
}

#[cfg(test)]
mod message_tests {
    use super::message;

    #[test]
    fn names_in_messages_are_code() {
        assert_eq!(message("give `--set n=*`, or `a`: <b>"), "give `--set n=*`, or `a`: &lt;b>");
        assert_eq!(message("`r_` has *one*"), "`r_` has \\*one\\*");
        assert_eq!(message("a name ` with one"), "a name \\` with one");
        assert_eq!(message("`` and `@x`"), "\\`\\` and `@x`");
        assert_eq!(message("`a\nb`"), "`a\\nb`");
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn text_is_shown_as_it_is() {
        for (text, shown) in [
            ("a|b<c\\d", "a\\|b&lt;c\\\\d"),
            ("&lt; AT&T", "&amp;lt; AT&amp;T"),
            ("`x` **y** ~z~ $a$", "\\`x\\` \\*\\*y\\*\\* \\~z\\~ \\$a\\$"),
            ("oltp_sync _x_ a_", "oltp_sync \\_x\\_ a\\_"),
            ("two\nlines", "two\\\\nlines"),
            ("  x ", "x"),
            ("", ""),
            ("1.2 [0.9, 1.5]", "1.2 [0.9, 1.5]"),
        ] {
            assert_eq!(literal(text), shown);
        }
    }

    #[test]
    fn nothing_links_or_mentions() {
        for (text, shown) in [
            ("[x](https://e.org)", "[x\\](https://e.org)"),
            ("![](https://e.org/i.png)", "![\\](https://e.org/i.png)"),
            ("[x][y]", "[x\\][y]"),
            ("[x]: https://e.org", "[x\\]: https://e.org"),
            ("thanks @name", "thanks @<!-- -->name"),
            ("a@b fixes #12, # 3", "a@<!-- -->b fixes #<!-- -->12, # 3"),
        ] {
            assert_eq!(literal(text), shown);
        }
    }

    #[test]
    fn the_start_of_a_text_begins_no_other_block() {
        for (text, shown) in [
            ("# x", "\\# x"),
            ("> x", "\\> x"),
            ("- x", "\\- x"),
            ("---", "\\---"),
            ("===", "\\==="),
            ("+ x", "\\+ x"),
            ("* x", "\\* x"),
            ("12. x", "12\\. x"),
            ("3) x", "3\\) x"),
            ("[ ] x", "\\[ ] x"),
            // Figures and missing figures.
            ("-1.5 %", "-1.5 %"),
            ("+2", "+2"),
            ("12.5 x", "12.5 x"),
            ("-", "-"),
        ] {
            assert_eq!(literal(text), shown);
        }
    }
}
