//! `wmlrun doctor`: says whether a place is fit to measure.

use super::console::print_lines;
use crate::diag::Failure;
use crate::measure::{Fitness, examine};
use crate::util::count::count;
use crate::util::wrap::wrapped;
use std::path::Path;

/// The exit status if the place is not fit, as of an unclear result.
const UNFIT: u8 = 11;

/// Examines the place of a directory, and prints a line for each check and the answer. Returns the exit status.
pub(super) fn doctor(dir: &Path) -> Result<u8, Failure> {
    let refused = |why: String| Failure::refused(format!("{}: {why}", dir.display()), "name a directory that exists");
    if !std::fs::metadata(dir).map_err(|e| refused(e.to_string()))?.is_dir() {
        return Err(refused("it is no directory".to_owned()));
    }
    let found = examine(dir).ok_or_else(|| {
        Failure::refused(format!("{}: its file system does not answer", dir.display()), "name another directory")
    })?;
    let wide = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let under = " ".repeat(wide + 10);
    for (name, fitness) in &found {
        let (mark, text) = match fitness {
            Fitness::Fit(text) => ("ok", text.clone()),
            Fitness::Unfit(text, advice) => ("not fit", format!("{text}; {advice}")),
            Fitness::Unknown(why) => ("unknown", why.clone()),
        };
        print_lines(&wrapped(&format!("{mark:<8} {name:<wide$} {text}"), &under));
    }
    let unfit: Vec<&str> =
        found.iter().filter(|(_, f)| matches!(f, Fitness::Unfit(..))).map(|(name, _)| *name).collect();
    let unknown = found.iter().filter(|(_, f)| matches!(f, Fitness::Unknown(_))).count();
    let rest = if unknown == 0 { String::new() } else { format!("; {} not known", count(unknown as u64, "point")) };
    if unfit.is_empty() {
        print_lines(&format!("fit to measure{rest}"));
        return Ok(0);
    }
    print_lines(&wrapped(&format!("not fit to measure: {}{rest}", unfit.join(", ")), "  "));
    Ok(UNFIT)
}
