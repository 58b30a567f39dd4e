//! Command-line options of `compare`: of two sides, of tests, of a curve.

use super::choices::choice;
use super::experiment_args::{ResultFormat, VerdictArgs, format_parser};
use super::last_results::{NamedSide, sides};
use super::run_options::RARE;
use crate::analysis::ResponseMethod;
use crate::comparison::{ComparisonMethod, ImprovementForm, OF_FIGURES, OF_TABLES, OF_VERDICTS};
use crate::diag::Failure;
use crate::experiment::share;
use crate::import::MAX_SIDES;
use crate::util::printable;
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `wmlrun compare`.
#[derive(Args)]
pub(super) struct CompareArgs {
    /// Baseline: a result file, a trace, a results folder or an arm of one (`DIR:a`), a directory of results, or `FILE:N` for
    /// column N of a text file, or `FILE:HEADING`. `last`: the result of the last run; without B, the last two
    pub(super) a: PathBuf,
    /// Result to compare with A, in the same forms; required unless A is `last`, or `--tests` or `--curve` is given
    pub(super) b: Option<PathBuf>,
    /// Further results, in the same forms, with `--tests`
    pub(super) more: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
    /// Compare test by test: which side is better in each of several tests, and by which mean factor. A and B are
    /// directories with a file or a directory for each test, results folders whose arms are the tests, or results.
    /// Without B, A is a file with one line per test, its name and the figure of each side (`-` if unknown)
    #[arg(long, conflicts_with_all = SIDES_ONLY, help_heading = FORMS)]
    pub(super) tests: bool,
    /// Sides with which the others are compared, separated by commas: a table of the improvement over each of them
    #[arg(long, value_name = "SIDE", value_delimiter = ',', requires = "tests", conflicts_with = "tolerance",
        help_heading = FORMS)]
    pub(super) over: Vec<String>,
    /// Form of an improvement [default: percent]
    #[arg(long, value_name = "FORM", value_parser = improvement_parser(), requires = "over", help_heading = FORMS)]
    pub(super) improvement: Option<ImprovementForm>,
    /// Compute the overall response time of the load curve in file A: the area under response time over rate, divided by
    /// the peak rate. The file has one line per load, in increasing order: rate and mean response time (`-` if unknown)
    #[arg(long, conflicts_with_all = SIDES_ONLY,
        conflicts_with_all = ["b", "tests", "metric", "tolerance", "noise_floor", "lower_is_better"], help_heading = FORMS)]
    pub(super) curve: bool,
    /// The numbers of two columns (`FILE:N`), or of the file of `--tests`, are times or costs: the lower one is better. Without
    /// this option the higher one is, unless `--metric`, or a unit in the name of a side or test, says otherwise
    #[arg(long, conflicts_with = "metric", help_heading = RARE)]
    pub(super) lower_is_better: bool,
    /// Noise floor: the largest difference between results of different days that means nothing, as a percentage
    /// [default: as measured by `wmlrun repeat --floor`]
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = RARE)]
    pub(super) noise_floor: Option<f64>,
    /// Statistical method, or with `--curve` how to extend the curve below its first point [default: ranks; of a curve:
    /// sfs3]
    #[arg(long, value_enum, value_name = "METHOD", conflicts_with = "tests", help_heading = RARE)]
    pub(super) method: Option<MethodName>,
    /// Compare even if the script, the run time, the cache state or the machine differs
    #[arg(long)]
    pub(super) anyway: bool,
    /// Conditions that may differ, separated by commas, such as `kernel` or `mount options`; any other difference, besides
    /// labels and notes, is an error [default: all but those that `--anyway` accepts]
    #[arg(long, value_name = "CONDITION", value_delimiter = ',', conflicts_with = "anyway", help_heading = RARE)]
    pub(super) may_differ: Option<Vec<String>>,
    /// Format of the result
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = format_parser())]
    pub(super) format: ResultFormat,
    /// Also write the comparison as an HTML page to FILE; of existing files it replaces only such a page
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace the file of `-o` whatever it contains
    #[arg(long, requires = "output", help_heading = RARE)]
    pub(super) force: bool,
    /// Print only the verdict with its cautions, as one line
    #[arg(long, conflicts_with = "format")]
    pub(super) quiet: bool,
}

/// The heading of the options that choose what is compared.
const FORMS: &str = "Instead of two sides";

/// The options of `wmlrun compare` for two sides alone.
const SIDES_ONLY: [&str; 6] = ["expect", "anyway", "may_differ", "output", "force", "quiet"];

/// What `wmlrun compare` compares.
pub(super) enum CompareForm {
    /// The results of A with these of B.
    Sides([NamedSide; 2]),
    /// The tests of the sides; those of the only file without further sides.
    Tests(ResultFormat),
    /// The points of the load curve in file A.
    Curve(ResponseMethod, ResultFormat),
}

impl CompareArgs {
    /// Returns what is compared. An error if an option is not one of that form.
    pub(super) fn form(&self) -> Result<CompareForm, Failure> {
        let wrong =
            |option: &str, of: &str, help: &str| Err(Failure::wrong(format!("`{option}` is not for {of}"), help));
        if self.curve {
            let method = match self.method {
                None | Some(MethodName::Sfs3) => ResponseMethod::Sfs3,
                Some(MethodName::Sfs2) => ResponseMethod::Sfs2,
                Some(_) => return wrong("--method", "a curve by this name", "its methods are `sfs2` and `sfs3`"),
            };
            return Ok(CompareForm::Curve(method, self.figures()?));
        }
        if let Some(third) = self.more.first().filter(|_| !self.tests) {
            let text = format!("unexpected argument '{}'", printable::line(&third.to_string_lossy()));
            let help =
                "two results are compared; `wmlrun report` shows three or more, and `--tests` compares their tests";
            return Err(Failure::wrong(text, help));
        }
        if !self.tests {
            return match self.method {
                Some(MethodName::Sfs2 | MethodName::Sfs3) => {
                    wrong("--method", "two sides by this name", "the methods `sfs2` and `sfs3` are those of `--curve`")
                }
                _ => Ok(CompareForm::Sides(sides(&self.a, self.b.as_deref())?)),
            };
        }
        let of_results = [
            ("--metric", self.verdict.metric.is_some()),
            ("--tolerance", self.verdict.tolerance.is_some()),
            ("--noise-floor", self.noise_floor.is_some()),
        ];
        match of_results.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.b.is_none() => wrong(option, "a file of figures", "omit it, or give B too"),
            _ if self.noise_floor.is_some() && self.verdict.tolerance.is_none() => {
                wrong("--noise-floor", "tests without verdicts", "give `--tolerance` for verdicts")
            }
            _ if self.b.is_some() && self.lower_is_better => {
                wrong("--lower-is-better", "results", "the direction of a metric is known; omit it")
            }
            _ if self.verdict.tolerance.is_some() && !self.more.is_empty() => {
                wrong("--tolerance", "more than two sides", "a verdict compares two: omit the others")
            }
            _ if self.more.len() + 2 > MAX_SIDES => {
                Err(Failure::wrong(format!("more than {MAX_SIDES} sides"), "compare fewer at a time"))
            }
            _ => Ok(CompareForm::Tests(self.figures()?)),
        }
    }

    /// Returns the sides of tests.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        std::iter::once(&self.a).chain(&self.b).chain(&self.more).cloned().collect()
    }

    /// Returns the format of a comparison of traces. An error if an option means nothing to them.
    pub(super) fn of_traces(&self) -> Result<ResultFormat, Failure> {
        let of_results = [
            ("--tests", self.tests),
            ("--curve", self.curve),
            ("--metric", self.verdict.metric.is_some()),
            ("--tolerance", self.verdict.tolerance.is_some()),
            ("--expect", self.verdict.expect.is_some()),
            ("--noise-floor", self.noise_floor.is_some()),
            ("--lower-is-better", self.lower_is_better),
            ("--method", self.method.is_some()),
            ("--anyway", self.anyway),
            ("--may-differ", self.may_differ.is_some()),
            ("-o", self.output.is_some()),
        ];
        if let Some((option, _)) = of_results.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::wrong(format!("`{option}` is not for traces"), "omit it"));
        }
        if let Some(third) = self.more.first() {
            let text = format!("unexpected argument '{}'", printable::line(&third.to_string_lossy()));
            return Err(Failure::wrong(text, "two traces are compared"));
        }
        self.one_of("traces", OF_TABLES)
    }

    /// Returns the format of tests and curves.
    pub(super) fn figures(&self) -> Result<ResultFormat, Failure> {
        match (self.tests, self.verdict.tolerance) {
            (true, Some(_)) => self.one_of("verdicts on tests", OF_VERDICTS),
            (true, None) => self.one_of("tests", OF_TABLES),
            (false, _) => self.one_of("curves", OF_FIGURES),
        }
    }

    /// Returns the format if it is one of these.
    fn one_of(&self, what: &str, formats: &[&str]) -> Result<ResultFormat, Failure> {
        match formats.contains(&self.format.name) {
            true => Ok(self.format),
            false => {
                let text = format!("`{}` is not a format of {what}", self.format.name);
                Err(Failure::wrong(text, format!("their formats are `{}`", formats.join("`, `"))))
            }
        }
    }

    /// Returns the statistical method.
    pub(super) fn method(&self) -> ComparisonMethod {
        match self.method {
            Some(MethodName::Study) => ComparisonMethod::Study,
            _ => ComparisonMethod::Ratio,
        }
    }
}

/// Returns a parser of the forms of improvements.
fn improvement_parser() -> impl TypedValueParser<Value = ImprovementForm> {
    choice(ImprovementForm::ALL.map(|form| (form.name(), form.about())), ImprovementForm::find)
}

/// A method of `wmlrun compare`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum MethodName {
    /// The ratio, by ranks and a fit with a trend
    #[value(alias = "welch")]
    Ranks,
    /// The same; also the F-test and t-test of a published study at 99 % and the shapes of the samples
    Study,
    /// Of a curve, as in SFS 2.0: below the first point the response time is constant
    Sfs2,
    /// Of a curve, as in SFS 3.0: it starts at the origin
    Sfs3,
}
