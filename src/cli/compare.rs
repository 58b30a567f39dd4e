//! `wmlrun compare`: compares two results, also of other programs.

use super::compare_args::{CompareArgs, MethodName};
use super::console;
use super::experiment_host::known_floor;
use super::experiments::{print_text, verdict_status};
use super::last_results::NamedSide;
use super::option_values::is_stdout;
use super::page_files::page_target;
use super::usage::import_help;
use crate::analysis::{Direction, NoiseFloor, Tolerance};
use crate::comparison::{
    ANNOTATIONS, Comparer, IntervalDoubt, ResultDocument, RunOrder, Runs, different_workloads, differs_text,
};
use crate::diag::{Failure, meant};
use crate::experiment::missing_floor;
use crate::import::{self, ImportedSide, Metric, Observation, mixed_conditions, shortened};
use crate::page::{self, ResultSource};
use crate::source::SHIPPED;
use crate::util::printable;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The note on the two arms of `wmlrun ab`.
const OF_EXPERIMENT: &str = "the interim looks of the experiment are not considered here: `wmlrun report DIR --format text` \
    prints its verdict";

/// Returns the metric of a comparison: that of the experiments, if it is the same, or else the default. That of columns is
/// `value`, unless `--metric` says what they contain. Returns an error when only one side is a column, whose unit is
/// unknown.
fn metric_of(args: &CompareArgs, a: &mut ImportedSide, b: &mut ImportedSide) -> Result<Metric, Failure> {
    match (a.is_column(), b.is_column(), &args.verdict.metric) {
        (false, false, _) if args.lower_is_better => {
            let help = "the direction of a metric is known; omit `--lower-is-better`";
            Err(Failure::wrong("`--lower-is-better` is for columns of numbers", help))
        }
        // Experiments of one metric are compared by it.
        (false, false, None) => {
            let own = a.metrics.first().filter(|metric| b.metrics.first() == Some(*metric));
            Ok(own.cloned().unwrap_or_else(|| Metric::default_of_runs(a.runs.iter().chain(&b.runs))))
        }
        (false, false, Some(metric)) => Ok(metric.clone()),
        (true, true, None) => Ok(Metric::value()),
        (true, true, Some(metric)) => {
            [a, b].into_iter().for_each(|side| side.name_column(metric));
            Ok(metric.clone())
        }
        (is_a, ..) => {
            let (column, other) = if is_a { ("A", "B") } else { ("B", "A") };
            let text = format!("{column} is a column of numbers, and {other} has the figures of runs");
            Err(Failure::wrong(text, "give a column for both sides, or results for both"))
        }
    }
}

/// The options of a side that the other one does not have; empty if those of one are unknown.
fn own_options(side: &ImportedSide, other: &ImportedSide) -> String {
    // An option and its value may be two words.
    let is_value =
        |word: &String, next: &String| !word.contains('=') && word.starts_with('-') && !next.starts_with('-');
    let options = |words: &[String]| -> Vec<String> { words.chunk_by(is_value).map(|words| words.join(" ")).collect() };
    let (own, others) = (options(&side.words), options(&other.words));
    let is_known = !own.is_empty() && !others.is_empty();
    own.into_iter().filter(|option| is_known && !others.contains(option)).collect::<Vec<_>>().join(" ")
}

/// Runs `wmlrun compare`. Returns the exit status.
pub(super) fn compare(args: &CompareArgs, sides: &[NamedSide; 2]) -> Result<u8, Failure> {
    if args.output.as_deref().is_some_and(is_stdout) {
        return Err(Failure::wrong(
            "the page can't go to standard output, which has the comparison",
            "give `-o` a file",
        ));
    }
    let inputs: Vec<PathBuf> = sides.iter().map(|side| import::file_of(&side.path)).collect();
    let target = args.output.as_deref().map(|output| page_target(output, &inputs, args.force));
    let target = target.transpose()?;
    let read = |path: &Path| import::side(path).map_err(|e| Failure::wrong(e.to_string(), import_help(&e, &[path])));
    let [NamedSide { path: path_a, name: name_a }, NamedSide { path: path_b, name: name_b }] = sides;
    let (mut a, mut b) = (read(path_a)?, read(path_b)?);
    let metric = metric_of(args, &mut a, &mut b)?;
    for (name, side) in [(name_a, &a), (name_b, &b)] {
        let mixed = mixed_conditions(&side.runs);
        if !mixed.is_empty() && !args.anyway {
            let text = format!("{name} has runs of different workloads: they differ in {}", shortened(&mixed));
            let help = format!(
                "`wmlrun compare --tests {} {}` shows each by itself; `--anyway` takes them as one sample",
                path_a.display(),
                path_b.display()
            );
            return Err(Failure::wrong(text, help));
        }
    }
    let workloads: BTreeSet<&str> = a.runs.iter().chain(&b.runs).map(|run| run.workload.as_str()).collect();
    let workload = workloads.first().filter(|_| workloads.len() == 1).map(|name| name.trim_end_matches(SHIPPED));
    let workload = workload.unwrap_or_default().to_owned();
    let comparer = Comparer {
        tolerance: Tolerance(args.verdict.tolerance()),
        method: args.method(),
        direction: if args.lower_is_better { Direction::LowerIsBetter } else { metric.direction() },
        floor: args
            .noise_floor
            .map_or_else(|| known_floor(&[&a.runs, &b.runs], &metric), |share| Some(NoiseFloor::given(share))),
        others: a.metrics.iter().filter(|metric| b.metrics.contains(metric)).cloned().collect(),
        ..Comparer::of(&format!("{name_a} and {name_b}"), [name_a, name_b], &metric)
    };
    let options = [(&a, &b), (&b, &a)].map(|(side, other)| own_options(side, other));
    let order = RunOrder::of_sides(&mut a, &mut b);
    let arm = |side: &ImportedSide| side.blocks.as_ref().map(|blocks| (blocks.folder.clone(), blocks.arm));
    let are_same = path_a == path_b || arm(&a).is_some() && arm(&a) == arm(&b);
    let mut comparison = comparer
        .compare(&Runs { a: &a.runs, b: &b.runs, order })
        .map_err(|e| Failure::wrong(e, "name another metric with `--metric`"))?;
    [comparison.a.options, comparison.b.options] = options;
    comparison.workload = workload;
    comparison.notes.splice(0..0, a.notes.into_iter().chain(b.notes));
    if comparison.doubt == Some(IntervalDoubt::UnknownFloor) && comparison.floor.is_none() {
        comparison.notes.extend(missing_floor(&[&a.runs, &b.runs], &metric));
    }
    if order == RunOrder::Blocks {
        comparison.notes.insert(0, OF_EXPERIMENT.to_owned());
    }
    if are_same {
        comparison.notes.insert(0, "A and B are the same results".to_owned());
    }
    if let Some(text) = different_workloads(&comparison.differs).filter(|_| !args.anyway) {
        console::notice(&differs_text(&comparison));
        return Err(Failure::wrong(text, "use `--anyway` to compare them nevertheless"));
    }
    if let Some(permitted) = &args.may_differ {
        let all = a.runs.iter().chain(&b.runs).flat_map(|run| run.conditions.keys().map(String::as_str));
        let known: BTreeSet<&str> = all.chain(ANNOTATIONS).collect();
        for name in permitted.iter().map(|name| name.trim()).filter(|name| !known.contains(name)) {
            // A condition that these results do not have may be one of others.
            if let Some(near) = meant(name, known.iter().copied()) {
                let text = format!("no condition of these results is named `{}`", printable::line(name));
                return Err(Failure::wrong(text, format!("did you mean `{near}`?")));
            }
        }
        let differs = comparison.differs.iter().filter(|found| !found.is_annotation());
        let other: Vec<String> = differs
            .filter(|found| !permitted.iter().any(|name| name.trim() == found.what))
            .map(|found| found.what.clone())
            .collect();
        if !other.is_empty() {
            console::notice(&differs_text(&comparison));
            let text = format!("A and B differ in {}", shortened(&other));
            return Err(Failure::wrong(text, "make both alike, or name what does not matter with `--may-differ`"));
        }
        let is_unknown = |runs: &[Observation]| runs.iter().any(|run| run.conditions.is_empty());
        if let Some((_, name)) = [(&a.runs, name_a), (&b.runs, name_b)].into_iter().find(|(runs, _)| is_unknown(runs)) {
            return Err(Failure::wrong(format!("the conditions of {name} are unknown"), "omit `--may-differ`"));
        }
    }
    if args.method == Some(MethodName::Study) && comparison.study.is_none() {
        let help = "the tests of the study need at least two observations per side";
        console::notice(&format!("note: {help}"));
    }
    match args.quiet {
        true => {
            // The verdict refers to them.
            if comparison.doubt.is_some() {
                comparison.notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
            }
            let answer = comparison.sheet().answer;
            console::print_lines(&printable::line(format!("{} {}", answer.result, answer.rest()).trim_end()));
        }
        false => print_text(&args.format.write(&comparison)),
    }
    let status = verdict_status(&comparison, args.verdict.expect);
    if let Some(target) = target {
        let arms = page::arms([&a.runs, &b.runs]);
        let source = ResultSource::Comparison { comparison: Box::new(comparison), arms };
        let page = page::html(&[source], None)
            .map_err(|e| Failure::failed(format!("can't make the page: {e}"), "omit `-o`"))?;
        target
            .write(&mut |out| out.write_all(page.as_bytes()))
            .map_err(|e| Failure::failed(format!("the page can't be written: {e}"), "give `-o` another path"))?;
    }
    Ok(status)
}
