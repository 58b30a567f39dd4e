//! The names of the levels of an experiment with `--scale`: the sizes and counts in them are those that were run.

use crate::util::count::at_most;
use crate::util::size;

/// A variable that `--scale` has changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScaledVariable {
    pub(super) name: String,
    pub(super) full: i64,
    pub(super) scaled: f64,
}

/// The name of a level in which the full values of these variables are replaced. A number without a unit is one only if
/// the level itself sets the variable, as `is_set` says: others number the tests.
pub(super) fn level_name(name: &str, variables: &[ScaledVariable], is_set: &dyn Fn(&str) -> bool) -> String {
    let mut found = String::new();
    let mut rest = name;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        found += &rest[..at];
        rest = &rest[at..];
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let is_part_of_word = found.ends_with(|letter: char| letter.is_alphanumeric());
        let word = after.strip_prefix(' ').unwrap_or(after);
        let word = &word[..word.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(word.len())];
        let bytes = size::parse(&format!("{number}{word}")).ok().filter(|_| !word.is_empty());
        let bytes = bytes.and_then(|bytes| i64::try_from(bytes).ok());
        let replaced = match (number.parse::<f64>(), bytes) {
            _ if is_part_of_word => None,
            (Ok(number), Some(bytes)) => {
                let variable = variables.iter().find(|variable| variable.full == bytes);
                variable.map(|variable| variable.scaled * number / variable.full as f64)
            }
            (Ok(_), None) => {
                let full = number.parse::<i64>().ok();
                let is_it = |variable: &&ScaledVariable| Some(variable.full) == full && is_set(&variable.name);
                variables.iter().find(is_it).map(|variable| variable.scaled)
            }
            (Err(_), _) => None,
        };
        found += &replaced.map_or_else(|| number.to_owned(), shown);
        rest = after;
    }
    found + rest
}

/// A number with three significant digits, and with all of those before the point.
fn shown(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    at_most(value, decimals)
}

/// The names of the levels of a factor, from their full names and those of [`level_name`]. Two levels may be equal once
/// they are scaled, such as files of which none is smaller than the least size.
pub(super) fn distinct(names: &[(String, String)]) -> Vec<String> {
    let is_shared = |name: &String| names.iter().filter(|(_, other)| other == name).count() > 1;
    let distinct = |(full, name): &(String, String)| match full != name && is_shared(name) {
        true => format!("{name} for {full}"),
        false => name.clone(),
    };
    names.iter().map(distinct).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_in_names_are_those_that_were_run() {
        let variable = |name: &str, full: i64, scaled: f64| ScaledVariable { name: name.to_owned(), full, scaled };
        let variables = [variable("filesize", 128 << 20, f64::from(2 << 20)), variable("fraction", 100, 5000.0)];
        let of = |name: &str| level_name(name, &variables, &|name| name == "fraction");
        for (name, shown) in [
            ("1 write 128 MB", "1 write 2 MB"),
            ("128m 4k", "2m 4k"),
            ("0.125GiB", "0.00195GiB"),
            ("1/100 of the files", "1/5000 of the files"),
            ("8 write and read twice", "8 write and read twice"),
            ("ext100, 100 MB and 128", "ext100, 100 MB and 128"),
            ("low", "low"),
        ] {
            assert_eq!(of(name), shown);
        }
        assert_eq!(level_name("100", &variables, &|_| false), "100");
        let names = [("16m 4k", "16m 4k"), ("32m 4k", "16m 4k"), ("1g 4k", "17m 4k")];
        let names = names.map(|(full, name)| (full.to_owned(), name.to_owned())).to_vec();
        assert_eq!(distinct(&names), ["16m 4k", "16m 4k for 32m 4k", "17m 4k"]);
    }
}
