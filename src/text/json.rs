//! JSON in bytes, such as a line of a file or a message.

use super::visible_json;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error};

/// Parses JSON. Returns an error when the bytes are not UTF-8, or not the JSON of a `T`.
///
/// JSON of our own types is parsed as text only. `serde_json::from_slice` and `from_value` would make a second and a
/// third copy of the code of each type. With them, the code that reads JSON was 16 % of the library's.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// Returns where and why a text is not the JSON of a type, without a word of the text: it may be a file of anyone, that
/// nobody named.
pub fn reason(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Data => format!("unexpected content at line {} column {}", error.line(), error.column()),
        // These name no part of the text.
        Category::Io | Category::Syntax | Category::Eof => error.to_string(),
    }
}

/// Returns a value as JSON, a message that [`from_bytes`] reads. Returns no bytes, which no reader takes for JSON, when
/// JSON can't express the value (a map whose keys are lists). No message has such a value.
///
/// A message is written in the way of results, because some contain a result.
pub fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    visible_json::compact(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_read_back() {
        let value = ("\u{9b}\n".to_owned(), vec![Some(u64::MAX), None]);
        assert_eq!(from_bytes::<(String, Vec<Option<u64>>)>(&to_bytes(&value)).unwrap(), value);
        let inexpressible = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(to_bytes(&inexpressible), b"");
    }

    #[test]
    fn a_reason_has_no_word_of_the_text() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "snake_case")]
        enum OnlyValue {
            One,
        }
        for text in ["\"secret\"", "{\"secret\": 1}", "[\"secret\"]", "secret", "{\"one\": secret", "\"secret"] {
            let error = serde_json::from_str::<OnlyValue>(text).unwrap_err();
            assert!(!reason(&error).contains("secret"), "{}", reason(&error));
        }
        let OnlyValue::One = serde_json::from_str("\"one\"").unwrap();
    }

    #[test]
    fn text_is_parsed_and_other_bytes_are_an_error() {
        assert_eq!(from_bytes::<Vec<u8>>(b"[1, 2]").unwrap(), [1, 2]);
        assert!(from_bytes::<String>(b"\"\xff\"").unwrap_err().to_string().contains("utf-8"));
    }
}
