//! `wmlrun doctor`: says whether a place is fit to measure.

use super::console::print_lines;
use crate::analysis::ComparisonVerdict;
use crate::diag::{Failure, Status};
use crate::hosts::{HostList, examine_hosts};
use crate::measure::{Fitness, examine};
use crate::os::signals;
use crate::util::count::count;
use crate::util::wrap::wrapped;
use std::path::Path;

/// Examines the place of a directory, or hosts. Returns the exit status.
pub(super) fn doctor(dir: Option<&Path>, hosts: Option<&HostList>) -> Result<u8, Failure> {
    if let Some(hosts) = hosts {
        let _ = signals::install_handlers();
        let found = examine_hosts(hosts, dir, &|| signals::received().is_some());
        return match signals::received() {
            Some(signal) => Err(Failure::unexplained(Status::Interrupted(signal))),
            None => Ok(print(&found)),
        };
    }
    let dir = dir.unwrap_or(Path::new("."));
    let found = examine(dir).map_err(|e| {
        Failure::refused(
            format!("{}: {e}", dir.display()),
            "name a directory that exists, and whose file system answers",
        )
    })?;
    Ok(print(&found))
}

/// Prints a line for each check and the answer. Returns the exit status.
fn print(found: &[(&'static str, Fitness)]) -> u8 {
    let wide = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let under = " ".repeat(wide + 10);
    for (name, fitness) in found {
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
        return 0;
    }
    print_lines(&wrapped(&format!("not fit to measure: {}{rest}", unfit.join(", ")), "  "));
    ComparisonVerdict::Unclear.code()
}
