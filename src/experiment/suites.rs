//! The shipped experiment files.

/// Name and text of every shipped experiment file, by name.
pub static SUITES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Returns the name and the text of a shipped experiment file, by its name with or without `.toml`.
pub fn suite(name: &str) -> Option<(&'static str, &'static str)> {
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    SUITES.iter().copied().find(|(name, _)| *name == stem)
}
