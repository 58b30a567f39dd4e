//! Names in the lines of Go's benchmarks, which must not contain spaces.

/// Converts a text to the name of a benchmark.
pub fn name(text: &str) -> String {
    let mut name = String::from("Benchmark");
    let mut upper = true;
    for c in text.chars() {
        match c.is_alphanumeric() {
            true if upper => name.extend(c.to_uppercase()),
            true => name.push(c),
            false if c == '_' || c == '-' => name.push(c),
            false => name.push('_'),
        }
        upper = false;
    }
    name
}

/// Converts a text to a part of the name of a benchmark, after a slash or an equals sign.
pub fn part(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }).collect()
}
