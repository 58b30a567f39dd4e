//! What a comparison shows: the lines that explain its verdict, and its tables.

use super::comparison_answer::{answer, changed_steps, moved_against, names_differences};
use super::formats::{ResultDocument, go_direction, series};
use super::numbers::{
    confidence, figure, interval, moment, percent, probability, ratio, ratio_value, small, statistic, with_direction,
    with_level,
};
use super::tested::{ON_BLOCKS, SIGNED_RANK};
use super::{ComparedSide, Comparison, DifferenceKind, NamedTest, cautions, limit_table, limits};
use crate::analysis::{ComparisonVerdict, Direction, Estimate, SampleSummary, ShapiroWilk, StudyTest, TTestKind};
use crate::sheet::{
    Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetColumn, SheetTable, Tone, Usability, text,
};
use crate::util::count::{count, grouped};

/// Formats the standard deviation of a sample, which a single observation does not have.
fn deviation(metric: &str, sample: &SampleSummary) -> String {
    if sample.n < 2 { "-".to_owned() } else { figure(metric, sample.variance.sqrt()) }
}

/// The relative difference of the ratio of means from B/A that a reader would see.
const SMALL_GAP: f64 = 0.005;

/// Returns the lines of a comparison, each with its label.
fn lines(comparison: &Comparison) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
    let better = if comparison.higher_is_better { "higher is better" } else { "lower is better" };
    comparison.annotations.iter().for_each(|(name, text)| line(name, text.clone()));
    line("metric", format!("{} ({better})", comparison.metric));
    // Each run counts alike in the ratio, while the slow or fast ones dominate a mean.
    let of_means = comparison.b.sample.mean / comparison.a.sample.mean;
    let is_other = comparison.ratio.value.is_finite() && (of_means / comparison.ratio.value - 1.0).abs() > SMALL_GAP;
    let means = if is_other {
        format!("; {} of the means, in which outliers weigh more", ratio_value(of_means))
    } else {
        String::new()
    };
    line("B/A", with_level(comparison.ratio, comparison.level) + &means);
    if let Some(widened) = comparison.ratio_with_floor {
        line("with the floor", format!("{}, the interval that is tested", ratio(widened)));
    }
    if let Some(look) = comparison.look {
        line("look", format!("after {} blocks, one-sided error probability {}", look.blocks, percent(look.one_sided)));
    }
    let test = &comparison.test;
    if !test.p.is_nan() {
        line("test", test_text(test, comparison.a.sample.n.min(comparison.b.sample.n)));
    }
    if let Some(study) = &comparison.study {
        for (name, of) in [("means", (|of| of.mean) as fn(&SampleSummary) -> f64), ("variances", |of| of.variance)] {
            let [a, b] = [&comparison.a, &comparison.b].map(|side| moment(of(&side.sample)));
            line(name, format!("A {a}, B {b}"));
        }
        if let Some(shapes) = &comparison.shapes {
            let [a, b] = [shapes.shapiro_wilk_a, shapes.shapiro_wilk_b].map(shapiro_wilk);
            line("Shapiro–Wilk", format!("A {a}; B {b}"));
        }
        line("F-test", f_test(study));
        line("t-test", t_test(study));
    }
    if let Some(floor) = comparison.floor {
        let days = if floor.spans_days { "" } else { " of one day" };
        let source = match floor.is_given() {
            true => ", as given".to_owned(),
            false => format!(" in {}{days} without a change", count(floor.sessions, "session")),
        };
        let unused = if comparison.ratio_with_floor.is_none() && !comparison.interleaved { "; not used" } else { "" };
        line("noise floor", format!("± {}{source}{unused}", percent(floor.share)));
    }
    if let Some(control) = comparison.control {
        let tolerance = percent(comparison.tolerance);
        let changed = match (control.moved, control.runs_needed) {
            (true, _) => "changed".to_owned(),
            (false, _) if !control.is_unknown(comparison.tolerance) => "no change that matters".to_owned(),
            (false, Some(needed)) => {
                format!("unknown, needs about {} runs in total (tolerance {tolerance})", grouped(needed))
            }
            (false, None) => format!("unknown, too few runs for a tolerance of {tolerance}"),
        };
        line("control", format!("{changed}: {}", with_level(control.ratio, 0.999)));
    }
    lines
}

/// Formats a test of two sides. `pairs` is the number of pairs of interleaved runs.
fn test_text(test: &NamedTest, pairs: u64) -> String {
    let p = probability(test.p);
    match test.name.as_str() {
        SIGNED_RANK => format!("signed-rank test of {pairs} pairs of runs: p {p}"),
        ON_BLOCKS => {
            let (t, df) = (statistic(test.t), statistic(test.df));
            format!("paired t-test over {:.0} blocks: t {t}, {df} df, p {p}", test.df + 1.0)
        }
        "ranks and trend" => format!("Mann–Whitney test, and a robust fit with a trend: p {p}, the larger of both"),
        "Welch and trend" => format!("Welch's t-test, and a robust fit with a trend: p {p}, the larger of both"),
        "ranks" => format!("Mann–Whitney test: p {p}"),
        name => format!("{name}: p {p}"),
    }
}

/// Formats a test of Shapiro and Wilk with the digits that R prints.
pub fn shapiro_wilk(found: Option<ShapiroWilk>) -> String {
    found.map_or_else(
        || "not tested".to_owned(),
        |found| format!("W {}, p {}", statistic(found.w), probability(found.p)),
    )
}

/// Formats the F-test of the study with the digits that R prints.
fn f_test(study: &StudyTest) -> String {
    let f = &study.f;
    if f.value.is_nan() {
        return "none: all values of each side are equal".to_owned();
    }
    if f.value.is_infinite() {
        let (df1, df2, p) = (statistic(f.df1), statistic(f.df2), probability(f.p));
        return format!("F infinite on {df1} and {df2} df, p {p}: the values of B are equal");
    }
    format!(
        "F {} on {} and {} df, p {}, {} interval of the ratio of variances {}",
        statistic(f.value),
        statistic(f.df1),
        statistic(f.df2),
        probability(f.p),
        confidence(study.level),
        interval(f.low, f.high)
    )
}

/// Formats the t-test of the study with the digits that R prints.
fn t_test(study: &StudyTest) -> String {
    let Some(t) = &study.t else { return "none: the values of both sides are essentially constant".to_owned() };
    format!(
        "{}: t {} on {} df, p {}, {} interval of A − B {}",
        if t.kind == TTestKind::Welch { "Welch" } else { "pooled" },
        statistic(t.value),
        statistic(t.df),
        probability(t.p),
        confidence(study.level),
        interval(t.low, t.high)
    )
}

/// The table of both samples.
fn samples(comparison: &Comparison) -> SheetTable {
    let mut table = SheetTable::of(
        &format!("Samples: {}", with_direction(&comparison.metric)),
        [
            SheetColumn::words("side").only(Media::TEXT),
            SheetColumn::words("side").only(Media::RICH),
            SheetColumn::numbers("runs"),
            SheetColumn::numbers("mean"),
            SheetColumn::numbers("median"),
            SheetColumn::numbers("std dev"),
        ],
    );
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        let SampleSummary { n, mean, median, .. } = of.sample;
        let value = |v| figure(&comparison.metric, v);
        table.row([
            side.to_owned(),
            format!("{side}: {}", of.name),
            grouped(n),
            value(mean),
            value(median),
            deviation(&comparison.metric, &of.sample),
        ]);
    }
    table
}

/// The table of conditions that differ.
fn differing(comparison: &Comparison) -> SheetTable {
    const LONGEST: usize = 30;
    let columns = ["differs", "A", "B"].map(SheetColumn::words);
    let [what, a, b] = columns;
    let mut table = SheetTable::of("What differs between A and B", [what, a.at_most(LONGEST), b.at_most(LONGEST)]);
    for difference in &comparison.differs {
        let note = if difference.kind == DifferenceKind::Workload { " (should be equal)" } else { "" };
        let [a, b] = difference.shown().map(|value| if value.is_empty() { "-".to_owned() } else { value });
        table.row([format!("{}{note}", difference.what), a, b]);
    }
    table
}

/// The table of conditions that differ as text; empty when there are none.
pub fn differs_text(comparison: &Comparison) -> String {
    let table = differing(comparison);
    if table.rows.is_empty() { String::new() } else { text::table(&table).unwrap_or_default() }
}

/// The table of figures that changed together with the metric.
fn changed_figures(comparison: &Comparison) -> SheetTable {
    let mut table = SheetTable::new("What changed together with the metric", ["also changed", "A", "B", "p"]);
    for change in &comparison.causes {
        table.row([change.name.clone(), small(change.a), small(change.b), probability(change.p)]);
    }
    table
}

/// The table of other metrics, which a page has in its picture of the ratios.
fn others(comparison: &Comparison) -> SheetTable {
    let columns = [SheetColumn::words("other metrics, descriptive"), SheetColumn::words("B/A")];
    let columns = columns.into_iter().chain([SheetColumn::numbers("p, corrected")]);
    let mut table = SheetTable::of("Other metrics", columns).only(Media::LINES);
    for other in &comparison.others {
        table.row([with_direction(&other.metric), ratio(other.ratio), probability(other.p)]);
    }
    table
}

impl ResultDocument for Comparison {
    fn sheet(&self) -> Sheet {
        // The lines of the study have the form in which it printed them.
        let facts = SheetBlock::Facts { pairs: lines(self), is_wrapped: self.study.is_none() };
        let mut answer = answer(self);
        let mut notes = cautions::add(&mut answer, &self.validity.cautions, &self.notes);
        // A step of a result that must not be used would be read as one.
        if answer.usability != Some(Usability::Unusable) {
            answer.details.splice(0..0, moved_against(self).into_iter().chain(changed_steps(self)));
        }
        limits::add_to(&mut answer, &self.validity.limits);
        notes.retain(|note| self.advice.as_ref() != Some(note));
        let of_differences = if names_differences(self) { Media::PAGE } else { Media::ALL };
        let blocks = [
            differing(self).only(of_differences).block(),
            samples(self).block(),
            limit_table(&self.validity.limits),
            Some(facts),
            changed_figures(self).block(),
            others(self).block(),
            SheetBlock::messages(NoteLabel::Note, &notes),
        ];
        Sheet {
            title: self.name.clone(),
            checks: limits::checks(&self.metric, self.verdict.code(), &answer, &self.validity.limits),
            answer,
            tone: match self.verdict {
                ComparisonVerdict::Better | ComparisonVerdict::Same | ComparisonVerdict::NotWorse => Tone::Good,
                ComparisonVerdict::Worse | ComparisonVerdict::Invalid => Tone::Bad,
                ComparisonVerdict::Unclear => Tone::Neutral,
            },
            blocks: blocks.into_iter().flatten().collect(),
            ..Sheet::default()
        }
    }

    fn figures(&self) -> Figures {
        let better = go_direction(match self.higher_is_better {
            true => Direction::HigherIsBetter,
            false => Direction::LowerIsBetter,
        });
        let side = |(name, side): (&str, &ComparedSide)| {
            let mean = Estimate { value: side.sample.mean, low: f64::NAN, high: f64::NAN };
            let (levels, label) = (vec![name.to_owned()], name.to_owned());
            Series { levels, label, better, ..series(&self.metric, Some(mean), &side.values) }
        };
        let found = Some(self.ratio).filter(|ratio| ratio.value.is_finite());
        let ratio = found.map(|ratio| Series { label: "B/A".to_owned(), ..series("ratio", Some(ratio), &[]) });
        Figures {
            name: self.name.clone(),
            factors: vec!["side".to_owned()],
            series: [("A", &self.a), ("B", &self.b)].map(side).into_iter().chain(ratio).collect(),
            has_sides: true,
            ..Figures::default()
        }
    }
}

#[cfg(test)]
#[path = "sheet_tests.rs"]
mod tests;
