//! The command line of a benchmark that measures two sides in pairs.

use std::path::PathBuf;

/// The options that all of them have.
pub(super) struct PairOptions {
    /// The directory to work in.
    pub(super) dir: PathBuf,
    /// The number of pairs.
    pub(super) pairs: usize,
    /// The names of what is to be measured; all if empty.
    only: Vec<String>,
}

impl PairOptions {
    /// Reads the command line. `other` takes the name and the value of each further option.
    pub(super) fn read(mut other: impl FnMut(&str, &str)) -> Self {
        let mut options = Self { dir: PathBuf::from("/dev/shm"), pairs: 9, only: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            // `cargo bench` adds this option.
            if word == "--bench" {
                continue;
            }
            if !word.starts_with("--") {
                options.only.push(word);
                continue;
            }
            let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            match word.as_str() {
                "--dir" => options.dir = value.into(),
                "--pairs" => options.pairs = value.parse().expect("a number of pairs"),
                _ => other(&word, &value),
            }
        }
        options
    }

    /// Returns whether what has this name is to be measured.
    pub(super) fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}
