//! The first stage of a sweep whose values are percentages of the peak: the search for the value of the variable at which
//! the measured rate of an open loop reaches its peak.
//!
//! The value is increased until the file system does not keep the offered rate. Each run of the search is an event of the
//! journal, so that a resumed search goes on after the last of them. In the end the values replace the percentages in the
//! description of the experiment.

use super::folder::Folder;
use super::hooks::Hooks;
use super::host::{ExperimentError, ExperimentHost, check_in_place};
use super::journal::Event;
use super::replay::Probe;
use super::wanted::{RuleWanted, with_value};
use crate::diag::Failure;
use crate::import;
use crate::os::child;
use crate::report::metrics::REQUESTS;
use crate::util::count::measured;
use std::sync::Arc;
use std::time::Instant;

/// The value of the first run.
const FIRST: f64 = 100.0;

/// The factor from one run to the next.
const GROWTH: f64 = 4.0;

/// The number of runs after which the search ends: the last value is about 4 × 10^8.
const MAX_RUNS: i32 = 12;

/// The part of the offered rate that a run must achieve, or the file system is saturated.
const KEPT: f64 = 0.95;

/// The part that a percentage names.
fn percentage(level: &str) -> Option<f64> {
    level.strip_suffix('%')?.trim().parse().ok().map(|percent: f64| percent / 100.0)
}

/// The parts of the peak that these values are. `None` if they are no percentages.
fn parts(levels: &[String]) -> Option<Vec<f64>> {
    levels.iter().map(|level| percentage(level)).collect()
}

/// An error if some values of a sweep are percentages, and others are not, or if there are commands between its runs.
pub fn check_levels(levels: &[String], hooks: &Hooks) -> Result<(), Failure> {
    if levels.iter().all(|level| percentage(level).is_none()) {
        return Ok(());
    }
    if parts(levels).is_none() {
        let help = "give percentages of the peak, or values";
        return Err(Failure::wrong("`--vary` has both values and percentages", help));
    }
    if *hooks != Hooks::default() {
        let help = "measure the peak first, and give values";
        return Err(Failure::wrong("the peak can't be measured between commands of `--before` and `--after`", help));
    }
    Ok(())
}

/// Formats a value: an integer from 10 on, otherwise with two decimals and at least 0.01.
fn value(value: f64) -> String {
    if value >= 10.0 { format!("{value:.0}") } else { format!("{}", (value * 100.0).round().max(1.0) / 100.0) }
}

impl RuleWanted {
    /// True for a sweep of percentages whose peak is not known yet.
    pub(crate) fn awaits_peak(&self) -> bool {
        matches!(self, Self::Sweep { levels, .. } if parts(levels).is_some())
    }

    /// The words of an arm with which it is planned. Before the peak is known, it has the first value of the search.
    pub(crate) fn planned_words(&self, arm: usize, words: &[String]) -> Vec<String> {
        match self {
            Self::Sweep { factor, levels, .. } if parts(levels).is_some() => {
                with_value(words, factor, levels.get(arm).map_or("", String::as_str), &value(FIRST))
            }
            _ => words.to_vec(),
        }
    }
}

/// Searches for the peak of a sweep whose values are percentages of it, and puts the values in their place.
pub(super) fn search(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let mut experiment = (*folder.experiment).clone();
    let RuleWanted::Sweep { factor, levels, .. } = &mut experiment.rule else { return Ok(()) };
    let Some(parts) = parts(levels) else { return Ok(()) };
    let peak = peak(folder, (factor, &levels[0]), host)?;
    let values: Vec<String> = parts.into_iter().map(|part| value(peak * part)).collect();
    if let Some([twice, ..]) = values.windows(2).find(|pair| pair[0] == pair[1]) {
        let peak = value(peak);
        return Err(ExperimentError::Failed {
            why: format!("the peak, at `{factor}={peak}`, is too low: two percentages give the value {twice}"),
            help: "give percentages with larger distances, or values".to_owned(),
            status: 1,
        });
    }
    for ((arm, level), value) in experiment.arms.iter_mut().zip(&*levels).zip(&values) {
        arm.words = with_value(&arm.words, factor, level, value);
        arm.name = arm.name.replace(&format!("{factor}={level}"), &format!("{factor}={value}"));
    }
    *levels = values;
    Ok(folder.describe_anew(experiment)?)
}

/// Measures the value of a variable at which the rate reaches its peak.
fn peak(
    folder: &mut Folder,
    (factor, level): (&str, &str),
    host: &mut dyn ExperimentHost,
) -> Result<f64, ExperimentError> {
    let values = (0..MAX_RUNS).map(|n| FIRST * GROWTH.powi(n));
    for (n, tried) in values.enumerate() {
        let probe = match folder.probes.get(n) {
            // A build that tries other values searches anew.
            Some(probe) if (probe.value - tried).abs() < 0.5 => *probe,
            _ => {
                check_in_place(folder, host)?;
                let probe = run(folder, (factor, level), tried, host)?;
                let Probe { value, offered, achieved, seconds } = probe;
                folder.write(&Event::Searched { value, offered, achieved, seconds })?;
                folder.probes.truncate(n);
                folder.probes.push(probe);
                probe
            }
        };
        let kept = probe.achieved / probe.offered;
        host.note(&format!(
            "peak: {factor}={tried} offers {} requests/s, of which {:.0} % are achieved",
            measured(probe.offered),
            kept * 100.0
        ));
        if kept < KEPT {
            return Ok(tried * kept);
        }
    }
    Err(ExperimentError::Failed {
        why: format!("no peak was found up to `{factor}={}`", FIRST * GROWTH.powi(MAX_RUNS - 1)),
        help: "the variable must raise the offered rate; give values instead of percentages".to_owned(),
        status: 1,
    })
}

/// Runs the workload with a value of the variable.
fn run(
    folder: &Folder,
    (factor, level): (&str, &str),
    value: f64,
    host: &dyn ExperimentHost,
) -> Result<Probe, ExperimentError> {
    let experiment = Arc::clone(&folder.experiment);
    let mut words = experiment.launch.clone();
    words.push(host.program().display().to_string());
    words.extend(with_value(&experiment.arms[0].words, factor, level, &value.to_string()));
    words.extend(["--quiet", "--format=none", "--json=-"].map(str::to_owned));
    let failed = |why: String, status: u8| ExperimentError::Failed {
        why: format!("the run with `{factor}={value}` failed: {why}"),
        help: "run the script with this value".to_owned(),
        status,
    };
    let began = Instant::now();
    let ended = child::output(&words, &|| host.interrupted().is_some()).map_err(|e| ExperimentError::Failed {
        why: format!("can't start `{}`: {e}", words[0]),
        help: "check the program that `--launch` names".to_owned(),
        status: 3,
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let Some((status, text)) = ended else {
        return Err(ExperimentError::Interrupted(host.interrupted().unwrap_or_default()));
    };
    if !status.success() {
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        return Err(failed(status.to_string(), code));
    }
    let runs = import::parse(&text, "the run").map_err(|e| failed(e, 1))?;
    let figure = |name: &str| runs.last().and_then(|run| run.figures.get(name).copied());
    match figure("offered").filter(|offered| *offered > 0.0).zip(figure(REQUESTS)) {
        Some((offered, achieved)) => Ok(Probe { value, offered, achieved, seconds }),
        None => Err(ExperimentError::Failed {
            why: format!("`{}` is not an open loop, so that percentages of the peak have no meaning", experiment.name),
            help: "give values instead of percentages, or add `rate=` or `totalrate=` to the threads".to_owned(),
            status: 2,
        }),
    }
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

    #[test]
    fn only_the_option_of_the_variable_gets_the_value() {
        let words = ["--set=rate=10%", "--set", "rate=10%", "--label=rate=10%", "x.wml"].map(str::to_owned);
        let expected = ["--set=rate=7", "--set", "rate=7", "--label=rate=10%", "x.wml"];
        assert_eq!(with_value(&words, "rate", "10%", "7"), expected);
    }
}
