//! JSON in bytes, such as a line of a file or a message.

use serde::de::{DeserializeOwned, Error};

/// Parses JSON. Returns an error when the bytes are not UTF-8, or not the JSON of a `T`.
///
/// JSON of our own types is parsed as text only. `serde_json::from_slice` and `from_value` would make a second and a
/// third copy of the code of each type. With them, the code that reads JSON was 16 % of the library's.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_is_parsed_and_other_bytes_are_an_error() {
        assert_eq!(from_bytes::<Vec<u8>>(b"[1, 2]").unwrap(), [1, 2]);
        assert!(from_bytes::<String>(b"\"\xff\"").unwrap_err().to_string().contains("utf-8"));
    }
}
