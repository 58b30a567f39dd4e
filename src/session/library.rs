//! The shipped personalities, and where a script of a given name is found.

use std::path::{Path, PathBuf};

/// Name and text of every shipped personality, by name.
pub static PERSONALITIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/personalities.rs"));

/// A script that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// What errors call it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Why a script was not found.
#[derive(Debug)]
pub enum NotFound {
    /// No file and no personality of that name; the nearest one.
    Nowhere(Option<&'static str>),
    /// There is a file, and it can't be read.
    Unreadable(PathBuf, std::io::Error),
}

/// The text of a personality, by its name with or without `.wml` or `.f`.
pub fn personality(name: &str) -> Option<(&'static str, &'static str)> {
    let stem = stem(name);
    PERSONALITIES.iter().copied().find(|(n, _)| *n == stem)
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".wml").or_else(|| name.strip_suffix(".f")).unwrap_or(name)
}

/// Finds a script: a file of that name first (as given, then with `.wml` and `.f`), in `beside` and as a path; then a
/// shipped personality.
pub fn find(name: &str, beside: Option<&Path>) -> Result<Found, NotFound> {
    let candidates = [name.to_owned(), format!("{name}.wml"), format!("{name}.f")];
    let places = beside.map(|dir| candidates.iter().map(|c| dir.join(c)).collect::<Vec<_>>()).unwrap_or_default();
    for path in places.into_iter().chain(candidates.iter().map(PathBuf::from)) {
        if path.is_file() {
            return match std::fs::read(&path) {
                Ok(bytes) => {
                    Ok(Found { name: path.display().to_string(), text: String::from_utf8_lossy(&bytes).into_owned() })
                }
                Err(error) => Err(NotFound::Unreadable(path, error)),
            };
        }
    }
    match personality(name) {
        Some((name, text)) => Ok(Found { name: format!("{name} (shipped)"), text: text.to_owned() }),
        None => Err(NotFound::Nowhere(crate::diag::nearest(stem(name), PERSONALITIES.iter().map(|(n, _)| *n)))),
    }
}

/// What a script's leading comment says it is: its first line, without the name.
pub fn about(text: &str) -> &str {
    let line = text.lines().find_map(|l| l.strip_prefix('#')).unwrap_or("").trim();
    line.split_once(": ").map_or(line, |(_, rest)| rest)
}
