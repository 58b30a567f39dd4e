//! Texts for terminals that show ASCII only.

use std::borrow::Cow;
use std::env;

/// True if the locale of the environment has no UTF-8, such as `C`.
pub fn is_wanted() -> bool {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    !has_utf8(&locale)
}

fn has_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The text with the characters of this program in ASCII. Others, such as those of names, stay.
pub fn of(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match replaced(c) {
            Some(ascii) => plain.push_str(ascii),
            None => plain.push(c),
        }
    }
    plain.into()
}

/// Most are as wide as the character, so that columns stay.
fn replaced(c: char) -> Option<&'static str> {
    Some(match c {
        '…' => "~",
        'µ' => "u",
        '±' => "+-",
        '→' => "->",
        '×' => "x",
        '·' | '–' | '−' | '─' => "-",
        '│' | '╵' | '╷' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        '“' | '”' | '„' => "\"",
        '‘' | '’' => "'",
        '√' => "sqrt ",
        '≥' => ">=",
        '≤' => "<=",
        '⌊' | '⌋' => "|",
        '⁻' => "-",
        '⁰' => "0",
        '¹' => "1",
        '²' => "2",
        '³' => "3",
        '⁴' => "4",
        '⁵' => "5",
        '⁶' => "6",
        '⁷' => "7",
        '⁸' => "8",
        '⁹' => "9",
        '░' | '▂' => ".",
        '▁' => "_",
        '▃' => ":",
        '▄' => "-",
        '▅' => "=",
        '▆' => "+",
        '▇' => "*",
        '█' => "#",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_characters_are_replaced_and_names_stay() {
        assert_eq!(of("p50 16.0 µs · ±69 %"), "p50 16.0 us - +-69 %");
        assert_eq!(of("▁▂▃▄▅▆▇█░"), "_.:-=+*#.");
        assert_eq!(of("größe: 94 → 39"), "größe: 94 -> 39");
    }

    #[test]
    fn locales_with_utf8() {
        let with = ["C.UTF-8", "en_GB.utf8", "de_DE.UTF-8@euro"];
        assert_eq!(with.map(has_utf8), [true; 3]);
        assert_eq!(["", "C", "POSIX", "de_DE", "de_DE.ISO-8859-1"].map(has_utf8), [false; 5]);
    }
}
