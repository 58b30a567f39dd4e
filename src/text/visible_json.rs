//! JSON, indented or as a line, without control characters that affect a terminal.
//!
//! Characters that JSON does not require to be escaped (DEL, C1, direction marks) are also written as `\uXXXX`, so that
//! a parser reads the same text.
//!
//! The layout is chosen while the program runs, and all output goes through a `dyn Write`: each other formatter or
//! writer would be a further copy of the code that writes the types of the result.

use crate::printable;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// Writes a value as indented JSON.
pub fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    serialize(value, Visible::Indented(PrettyFormatter::new()), &mut out)?;
    out.flush()
}

/// Returns a value as JSON without line breaks.
pub(crate) fn compact(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    serialize(value, Visible::Compact(CompactFormatter), &mut bytes)?;
    Ok(bytes)
}

/// Returns a value as a line of JSON, with its end.
pub fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = compact(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn serialize(value: &impl Serialize, layout: Visible, out: &mut dyn Write) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, layout))
}

/// A formatter that escapes control characters and delegates the layout to another one.
enum Visible {
    Compact(CompactFormatter),
    Indented(PrettyFormatter<'static>),
}

/// Defines methods that delegate to the inner formatter.
macro_rules! laid_out {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            match self {
                Self::Compact(layout) => layout.$name(out $(, $argument)*),
                Self::Indented(layout) => layout.$name(out $(, $argument)*),
            }
        })*
    };
}

impl Formatter for Visible {
    laid_out! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(printable::is_control) {
            out.write_all(&rest.as_bytes()[..at])?;
            let Some(c) = rest[at..].chars().next() else { break };
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{compact, line, write};
    use crate::printable;

    #[test]
    fn control_characters_are_escaped_and_the_value_is_unchanged() {
        let value = serde_json::json!({
            "a": [1, 2.5, null, true, [], {}],
            "b\u{9b}": {"c": "x\x1b[2J\x7f\u{9b}2J\u{85}\u{2028}\u{202e}\u{e0041}é\n\"\\"},
        });
        let mut bytes = Vec::new();
        write(&value, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !printable::is_control(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert!(text.contains('é') && text.starts_with("{\n  \"a\": [\n    1,"), "{text}");
        let text = String::from_utf8(compact(&value).unwrap()).unwrap();
        assert!(!text.chars().any(printable::is_control), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert_eq!(line(&value).unwrap(), [text.as_bytes(), b"\n"].concat());
    }

    #[test]
    fn the_layouts_are_those_of_serde_json() {
        let value = serde_json::json!({"a": [1, -2.5, null, true, [], {}, [{}]], "b": {"c": "x"}, "": ""});
        let mut bytes = Vec::new();
        write(&value, &mut bytes).unwrap();
        assert_eq!(bytes, serde_json::to_vec_pretty(&value).unwrap());
        assert_eq!(compact(&value).unwrap(), serde_json::to_vec(&value).unwrap());
    }
}
