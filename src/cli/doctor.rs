//! `wmlrun doctor`: says whether a place is fit to measure.

use super::console::print_lines;
use crate::analysis::ComparisonVerdict;
use crate::diag::Failure;
use crate::measure::{Fitness, examine};
use crate::util::count::count;
use crate::util::wrap::wrapped;
use std::path::Path;

/// Examines the place of a directory, and prints a line for each check and the answer. Returns the exit status.
pub(super) fn doctor(dir: &Path) -> Result<u8, Failure> {
    let found = examine(dir).map_err(|e| {
        Failure::refused(
            format!("{}: {e}", dir.display()),
            "name a directory that exists, and whose file system answers",
        )
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
        let is_known = found.iter().take(2).all(|(_, f)| matches!(f, Fitness::Fit(_)));
        print_lines(&format!("{}{rest}", if is_known { "fit to measure" } else { "nothing unfit was found" }));
        return Ok(0);
    }
    print_lines(&wrapped(&format!("not fit to measure: {}{rest}", unfit.join(", ")), "  "));
    Ok(ComparisonVerdict::Unclear.code())
}
