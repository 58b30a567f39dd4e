//! The values of `wmlrun sweep --vary NAME=10%..120%`: parts of the value at which the measured rate of an open loop
//! reaches its peak.

use super::arms::PlannedArm;
use super::console;
use super::experiment_args::SweepArgs;
use super::experiment_outputs::{check_outside, named_outputs};
use super::experiments::{program, words_of};
use super::shell_text::{set_option, split};
use crate::diag::{Failure, Status};
use crate::import;
use crate::os::child;
use crate::util::count::measured;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The value of the first run.
const FIRST: f64 = 100.0;

/// The factor from one run to the next.
const GROWTH: f64 = 4.0;

/// The number of runs after which the search ends: the last value is about 4 × 10^8.
const MAX_RUNS: usize = 12;

/// The part of the offered rate that a run must achieve, or the file system is saturated.
const KEPT: f64 = 0.95;

/// Replaces percentages by values. Other values are returned as they are.
pub(super) fn resolve(
    args: &SweepArgs,
    factor: &str,
    levels: Vec<String>,
    interrupt: &AtomicUsize,
) -> Result<Vec<String>, Failure> {
    let parts: Vec<Option<f64>> = levels.iter().map(|level| percentage(level)).collect();
    if parts.iter().all(Option::is_none) {
        return Ok(levels);
    }
    let Some(parts) = parts.into_iter().collect::<Option<Vec<f64>>>() else {
        let help = "give percentages of the peak, or values";
        return Err(Failure::wrong("`--vary` has both values and percentages", help));
    };
    if args.hooks.0 != crate::experiment::Hooks::default() {
        let help = "measure the peak first, and give values";
        return Err(Failure::wrong("the peak can't be measured between commands of `--before` and `--after`", help));
    }
    let peak = peak(args, factor, interrupt)?;
    let values: Vec<String> = parts.into_iter().map(|part| value(peak * part)).collect();
    match values.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(values),
        Some(pair) => {
            let text = format!(
                "the peak, at `{factor}={}`, is too low: two percentages give the value {}",
                value(peak),
                pair[0]
            );
            Err(Failure::failed(text, "give percentages with larger distances, or values"))
        }
    }
}

/// Returns the part that a percentage names.
fn percentage(level: &str) -> Option<f64> {
    level.strip_suffix('%')?.trim().parse().ok().map(|percent: f64| percent / 100.0)
}

/// Formats a value: an integer from 10 on, otherwise with two decimals and at least 0.01.
fn value(value: f64) -> String {
    if value >= 10.0 { format!("{value:.0}") } else { format!("{}", (value * 100.0).round().max(1.0) / 100.0) }
}

/// Measures the value of a variable at which the rate reaches its peak. The value is increased until the file system
/// does not keep the offered rate.
fn peak(args: &SweepArgs, factor: &str, interrupt: &AtomicUsize) -> Result<f64, Failure> {
    let script = args.script.clone().unwrap_or_default();
    let words: Vec<String> = args.experiment.words.0.iter().cloned().chain([script]).collect();
    check_outside(&named_outputs(&args.experiment), &[PlannedArm::read(&words, false)?])?;
    let mut tried = FIRST;
    for _ in 0..MAX_RUNS {
        let (offered, achieved) = run(args, factor, tried, interrupt)?;
        let kept = achieved / offered;
        if !args.experiment.quiet {
            console::notice(&format!(
                "peak: {factor}={tried} offers {} requests/s, of which {:.0} % are achieved",
                measured(offered),
                kept * 100.0
            ));
        }
        if kept < KEPT {
            return Ok(tried * kept);
        }
        tried *= GROWTH;
    }
    let help = "the variable must raise the offered rate; give values instead of percentages";
    Err(Failure::failed(format!("no peak was found up to `{factor}={}`", tried / GROWTH), help))
}

/// Runs the workload with a value of the variable. Returns the offered and the achieved rate in requests per second.
fn run(args: &SweepArgs, factor: &str, value: f64, interrupt: &AtomicUsize) -> Result<(f64, f64), Failure> {
    let common = &args.experiment;
    let script = args.script.as_deref().unwrap_or_default();
    let mut words = words_of("--launch", &common.launch)?;
    words.push(program().display().to_string());
    words.extend(common.words.0.iter().cloned());
    words.extend(split(&set_option(&format!("{factor}={value}"))).unwrap_or_default());
    words.extend([script, "--quiet", "--format=none", "--json=-"].map(str::to_owned));
    let failed = |why: &str, status: u8| {
        Failure::new(
            Status::of_code(status),
            format!("the run with `{factor}={value}` failed: {why}"),
            "run the script with this value",
        )
    };
    let signal = || interrupt.load(Ordering::SeqCst);
    let ended = child::output(&words, &|| signal() != 0).map_err(|e| {
        Failure::refused(format!("can't start `{}`: {e}", words[0]), "check the program that `--launch` names")
    })?;
    let Some((status, text)) = ended else { return Err(Failure::unexplained(Status::Interrupted(signal() as u8))) };
    if !status.success() {
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        return Err(failed(&status.to_string(), code));
    }
    let runs = import::parse(&text, "the run").map_err(|e| failed(&e, 1))?;
    let rates =
        runs.last().and_then(|run| run.figures.get("offered").copied().zip(run.figures.get("achieved").copied()));
    rates.filter(|(offered, _)| *offered > 0.0).ok_or_else(|| {
        let help = "give values instead of percentages, or add `rate=` or `totalrate=` to the threads";
        Failure::wrong(format!("`{script}` is not an open loop, so that percentages of the peak have no meaning"), help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded() {
        assert_eq!([0.001, 0.126, 9.999, 10.4, 12345.6].map(value), ["0.01", "0.13", "10", "10", "12346"]);
        assert_eq!(
            (percentage("50%"), percentage("120 %"), percentage("5"), percentage("x%")),
            (Some(0.5), Some(1.2), None, None)
        );
    }
}
