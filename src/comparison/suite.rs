//! The comparison of a suite: a verdict on each of several tests, and from these one on the suite.
//!
//! The more tests there are, the more often one of them differs by chance. With n compared tests each interval therefore
//! has the confidence level 1 − 0.05/n (Bonferroni), so that with 95 % confidence all of them contain their ratio.

use super::build::LEVEL;
use super::cautions::disturbed_side;
use super::differences::different_workloads;
use super::numbers::{confidence, figure, percent, ratio, with_direction};
use super::{
    Comparer, Comparison, Difference, IntervalDoubt, RunOrder, Runs, comparison_answer, differences, notes,
    verdict_notes,
};
use crate::analysis::{ComparisonVerdict, NoiseFloor};
use crate::import::{Metric, Observation, TestSample, shortened};
use crate::sheet::{Answer, Sheet, SheetCheck, SheetColumn, SheetTable};
use crate::util::count::{count, dash, is_or_are};
use crate::util::printable;
use crate::util::table::{Align, Table};
use crate::util::wrap::{WIDTH, wrapped};
use serde::Serialize;

/// The comparison of the tests of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteComparison {
    /// `wmlrun.suite/1`.
    pub schema: String,
    /// The name of A.
    pub a: String,
    /// The name of B.
    pub b: String,
    /// The metric on which the verdicts are based.
    pub metric: String,
    /// The largest relative change that does not matter.
    pub tolerance: f64,
    /// The confidence level of the intervals.
    pub level: f64,
    /// The verdict on the suite: *worse*, *invalid* or *unclear* if that is the verdict on a test, in this order.
    /// Otherwise *better* or *same* if that is the verdict on every test, else *not worse*.
    pub verdict: ComparisonVerdict,
    pub tests: Vec<SuiteTest>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SuiteTest {
    pub name: String,
    /// The verdict on B; *unclear* for a test that is not compared.
    pub verdict: ComparisonVerdict,
    /// The reason why it is not compared; null for others.
    pub not_compared: Option<String>,
    /// The comparison; null for a test that is not compared.
    pub comparison: Option<Comparison>,
    /// Notes on its validity, without those that are about all results alike.
    #[serde(skip)]
    notes: Vec<String>,
}

impl SuiteComparison {
    /// Compares the tests by the metric and the tolerance of `comparer`. `floor` returns the noise floor of a test.
    pub(crate) fn of(
        tests: &[TestSample],
        comparer: &Comparer,
        floor: &dyn Fn(&[Vec<Observation>]) -> Option<NoiseFloor>,
    ) -> Self {
        let reasons: Vec<Option<String>> =
            tests.iter().map(|test| not_comparable(test, &comparer.sides, &comparer.metric)).collect();
        let compared = reasons.iter().filter(|reason| reason.is_none()).count();
        let level = 1.0 - (1.0 - LEVEL) / compared.max(1) as f64;
        let of_test = |(test, reason): (&TestSample, Option<String>)| {
            let of_test = || Comparer {
                name: test.name.clone(),
                floor: floor(&test.runs),
                level,
                advises: false,
                ..comparer.clone()
            };
            let [a, b] = two_sides(test);
            let found = match reason {
                Some(reason) => Err(reason),
                None => of_test().compare(&Runs { a, b, order: RunOrder::Separate }),
            };
            let verdict = found.as_ref().map_or(ComparisonVerdict::Unclear, |comparison| comparison.verdict);
            let (comparison, not_compared) = found.map_or_else(|why| (None, Some(why)), |found| (Some(found), None));
            // The caller has notes on the runs of all tests.
            let of_runs = notes::on_runs(&[a, b], std::slice::from_ref(&comparer.metric));
            let is_own = |note: &&String| {
                *note != verdict_notes::NOT_INTERLEAVED
                    && *note != verdict_notes::OF_OTHER_DAYS
                    && !of_runs.contains(note)
            };
            let of_comparison = comparison.iter().flat_map(|found| found.notes.iter().filter(is_own).cloned());
            // The note on a disturbed verdict has both sides.
            let is_noted = |found: &&Comparison| found.doubt == Some(IntervalDoubt::Disturbed);
            let side = comparison.as_ref().filter(|found| !is_noted(found)).and_then(disturbed_side);
            let notes = not_compared.iter().cloned().chain(of_comparison).chain(side);
            let notes = notes.chain(comparison.as_ref().and_then(differs)).collect();
            SuiteTest { name: test.name.clone(), verdict, not_compared, comparison, notes }
        };
        let tests: Vec<SuiteTest> = tests.iter().zip(reasons).map(of_test).collect();
        Self {
            schema: "wmlrun.suite/1".to_owned(),
            a: comparer.sides[0].clone(),
            b: comparer.sides[1].clone(),
            metric: comparer.metric.to_string(),
            tolerance: comparer.tolerance.0,
            level,
            verdict: of_all(&tests.iter().map(|test| test.verdict).collect::<Vec<_>>()),
            tests,
        }
    }

    /// Returns the quoted names of the tests with a property.
    fn names(&self, is_it: impl Fn(&SuiteTest) -> bool) -> Vec<String> {
        let named = self.tests.iter().filter(|test| is_it(test));
        named.map(|test| format!("`{}`", printable::line(&test.name))).collect()
    }

    /// The line of a test: its name, the means of both sides, their ratio and the verdict.
    fn line(&self, test: &SuiteTest) -> [String; 5] {
        let mean = |values: &[f64]| figure(&self.metric, geometric_mean(values));
        let [a, b, ratio, verdict] = match &test.comparison {
            Some(found) => {
                let shown = found.ratio_with_floor.unwrap_or(found.ratio);
                let verdict = test.verdict.name().to_owned();
                [mean(&found.a.values), mean(&found.b.values), ratio(shown), verdict]
            }
            None => [dash(), dash(), dash(), "not compared".to_owned()],
        };
        [test.name.clone(), a, b, ratio, verdict]
    }

    /// The table of the tests with the verdict, and a check for each.
    pub(crate) fn sheet(&self) -> Sheet {
        let [a, b] = [&self.a, &self.b].map(|side| SheetColumn::numbers(side));
        let [test, ratio, verdict] = ["test", "B/A", "verdict"].map(SheetColumn::words);
        let mut table = SheetTable::of("Tests", [test, a, b, ratio, verdict]);
        let mut checks = Vec::new();
        for test in &self.tests {
            let line = self.line(test);
            let text = test.not_compared.clone().unwrap_or_else(|| format!("{}: B/A {}", line[4], line[3]));
            checks.push(SheetCheck::of_code(&test.name, test.verdict.code(), &text));
            table.row(line);
        }
        Sheet {
            title: format!("{}: {} and {}", with_direction(&self.metric), self.a, self.b),
            answer: Answer::of_part(self.sentence()),
            blocks: table.block().into_iter().collect(),
            checks,
            ..Sheet::default()
        }
    }

    /// Returns the table of the tests, and as the last line the verdict.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new([
            ("test", Align::Left),
            (self.a.as_str(), Align::Right),
            (self.b.as_str(), Align::Right),
            ("B/A", Align::Left),
            ("verdict", Align::Left),
        ]);
        for test in &self.tests {
            table.row(self.line(test));
        }
        let title = match self.metric.parse::<Metric>() {
            Ok(metric) => format!("{}: {}\n\n", with_direction(&self.metric), metric.about()),
            Err(_) => String::new(),
        };
        let ending = wrapped(&self.sentence(), "  ");
        format!("{title}{}\n{ending}\n", printable::lines(&table.render_within(WIDTH)))
    }

    /// Returns the verdict as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let worse = self.names(|test| test.verdict == ComparisonVerdict::Worse);
        let invalid = self.names(|test| test.verdict == ComparisonVerdict::Invalid);
        let unclear = self.names(|test| test.verdict == ComparisonVerdict::Unclear && test.not_compared.is_none());
        let missing = self.names(|test| test.not_compared.is_some());
        let of = count(self.tests.len() as u64, "test");
        let tolerance = percent(self.tolerance);
        let first = match &worse[..] {
            [] => format!("no test of {} is shown to be worse by more than {tolerance}", self.tests.len()),
            names => format!(
                "{} of {of} {} worse by more than {tolerance} ({})",
                names.len(),
                is_or_are(names.len()),
                shortened(names)
            ),
        };
        let further = [(invalid, "invalid"), (unclear, "unclear"), (missing, "not compared")];
        let further = further
            .iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, what)| format!(", {} {} {what} ({})", names.len(), is_or_are(names.len()), shortened(names)));
        let further: String = further.collect();
        let is_clear =
            |test: &SuiteTest| !matches!(test.verdict, ComparisonVerdict::Unclear | ComparisonVerdict::Invalid);
        let level = match self.tests.iter().any(is_clear) {
            true => format!("; {} confidence for all tests together", confidence(LEVEL)),
            false => String::new(),
        };
        format!("{}: {first}{further}{level}", self.verdict.name())
    }

    /// Returns notes on the validity of the comparisons, each once, after the names of its tests.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut found: Vec<(&String, Vec<String>)> = Vec::new();
        for (test, note) in self.tests.iter().flat_map(|test| test.notes.iter().map(move |note| (test, note))) {
            let name = format!("`{}`", printable::line(&test.name));
            match found.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => found.push((note, vec![name])),
            }
        }
        let of_note = |(note, names): (&String, Vec<String>)| match names.len() == self.tests.len() && names.len() > 1 {
            true => note.clone(),
            false => format!("{}: {note}", shortened(&names)),
        };
        found.into_iter().map(of_note).chain(self.runs_note()).collect()
    }

    /// Returns the note on the number of runs that the unclear tests need.
    fn runs_note(&self) -> Option<String> {
        let is_open = |test: &&SuiteTest| test.verdict == ComparisonVerdict::Unclear;
        let comparisons = || self.tests.iter().filter(is_open).filter_map(|test| test.comparison.as_ref());
        // Above the tolerance, a noise floor is the cause, which has a note.
        let is_wide = |floor: NoiseFloor| floor.share >= self.tolerance;
        let needs_runs = |comparison: &&Comparison| {
            let has_wide_floor = comparison.ratio_with_floor.is_some() && comparison.floor.is_some_and(is_wide);
            comparison.doubt.is_none() && !comparison.ratio.low.is_nan() && !has_wide_floor
        };
        let open: Vec<Option<u64>> =
            comparisons().filter(needs_runs).map(|comparison| comparison.runs_needed).collect();
        if open.is_empty() {
            return None;
        }
        let most = open.iter().flatten().max();
        let unknown = open.iter().filter(|needed| needed.is_none()).count() as u64;
        let known = most.map(|total| {
            format!("a clear verdict on the unclear tests takes about {} of each side", count(total.div_ceil(2), "run"))
        });
        let rest = (unknown > 0).then(|| match known {
            Some(_) => format!("; for {} many more: make longer runs", count(unknown, "test")),
            None => "the unclear tests vary too much for a reasonable number of runs: make longer runs".to_owned(),
        });
        Some([known, rest].into_iter().flatten().collect())
    }
}

/// Returns the note on what differs between the sides of a test, such as a volume that was mounted in another way.
fn differs(comparison: &Comparison) -> Option<String> {
    let told: Vec<Difference> = comparison.differs.iter().filter(|found| !found.is_annotation()).cloned().collect();
    (!told.is_empty()).then(|| comparison_answer::differences(&told, comparison_answer::SIDES))
}

/// The runs of A and of B.
fn two_sides(test: &TestSample) -> [&[Observation]; 2] {
    [0, 1].map(|side| test.runs.get(side).map_or(&[][..], Vec::as_slice))
}

/// Returns why the runs of a test can't be compared. `None` if they can.
fn not_comparable(test: &TestSample, sides: &[String; 2], metric: &Metric) -> Option<String> {
    let [a, b] = two_sides(test);
    for (side, runs) in sides.iter().zip([a, b]) {
        if runs.is_empty() {
            return Some(format!("{side} has no complete run"));
        }
        if runs.iter().any(|run| metric.of(run).is_none()) {
            return Some(format!("a run of {side} has no `{metric}`"));
        }
    }
    let spoilt = different_workloads(&differences(a, b));
    spoilt.or_else(|| notes::on_flowops(a, b))
}

/// Returns the verdict on a suite whose tests have these verdicts.
fn of_all(verdicts: &[ComparisonVerdict]) -> ComparisonVerdict {
    use ComparisonVerdict::{Better, Invalid, NotWorse, Same, Unclear, Worse};
    let any = |wanted: &ComparisonVerdict| verdicts.contains(wanted);
    let all = |wanted: &ComparisonVerdict| verdicts.iter().all(|verdict| verdict == wanted);
    match verdicts {
        [] => Unclear,
        _ => [Worse, Invalid, Unclear]
            .into_iter()
            .find(any)
            .or_else(|| [Better, Same].into_iter().find(all))
            .unwrap_or(NotWorse),
    }
}

/// Returns the geometric mean, whose ratio is that of the comparison; 0 if a value is 0, NaN if one is negative.
fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Tolerance;

    fn runs(values: &[f64]) -> Vec<Observation> {
        let run = |value: &f64| Observation {
            figures: [("ops".to_owned(), *value)].into_iter().collect(),
            ..Observation::default()
        };
        values.iter().map(run).collect()
    }

    fn suite(tests: &[(&str, &[f64], &[f64])]) -> SuiteComparison {
        let sample = |(name, a, b): &(&str, &[f64], &[f64])| TestSample {
            name: (*name).to_owned(),
            runs: vec![runs(a), runs(b)],
        };
        let tests: Vec<TestSample> = tests.iter().map(sample).collect();
        let comparer = Comparer { tolerance: Tolerance(0.1), ..Comparer::of("suite", ["old", "new"], &Metric::ops()) };
        SuiteComparison::of(&tests, &comparer, &|_| None)
    }

    #[test]
    fn a_suite_is_worse_if_one_of_its_tests_is() {
        let (base, less): (&[f64], &[f64]) = (&[100.0, 101.0, 99.0, 100.5], &[50.0, 51.0, 49.0, 50.5]);
        let found = suite(&[("db", base, base), ("mail", base, less), ("web", base, &[])]);
        let verdicts: Vec<&str> = found.tests.iter().map(|test| test.verdict.name()).collect();
        assert_eq!((verdicts, found.verdict.code()), (vec!["same", "worse", "unclear"], 10));
        assert_eq!(
            found.sentence(),
            "worse: 1 of 3 tests is worse by more than 10.0 % (`mail`), 1 is not compared (`web`); 95 % confidence for \
             all tests together"
        );
        let notes = found.notes();
        assert!(notes.contains(&"`web`: new has no complete run".to_owned()), "{notes:#?}");
        // Notes of `compare` on what is not known.
        assert!(notes.iter().any(|note| note.starts_with("`db`, `mail`: the conditions of A and B")), "{notes:#?}");
        let text = found.text();
        let row = text.lines().find(|line| line.starts_with("mail")).unwrap_or_default();
        assert!(row.split_whitespace().take(4).eq(["mail", "100.1", "50.1", "0.501"]), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        // A test that is missing does not pass.
        assert_eq!(suite(&[("db", base, base), ("web", base, &[])]).verdict.code(), 11);
        assert_eq!(suite(&[("db", base, base)]).verdict, ComparisonVerdict::Same);
        assert_eq!(suite(&[("db", less, base), ("mail", base, base)]).verdict, ComparisonVerdict::NotWorse);
        assert_eq!((suite(&[]).verdict.code(), suite(&[("db", less, base)]).verdict.name()), (11, "better"));
    }

    /// A volume that was mounted in another way explains a loss.
    #[test]
    fn what_differs_between_the_sides_of_a_test_is_told() {
        let on = |options: &str| {
            let mut runs = runs(&[100.0, 101.0, 99.0, 100.5]);
            for run in &mut runs {
                run.conditions = [("mount options".to_owned(), options.to_owned())].into();
            }
            runs
        };
        let tests = [("db", "rw", "rw"), ("mail", "rw", "rw,sync")]
            .map(|(name, a, b)| TestSample { name: name.to_owned(), runs: vec![on(a), on(b)] });
        let found = SuiteComparison::of(&tests, &Comparer::of("suite", ["old", "new"], &Metric::ops()), &|_| None);
        let told: Vec<String> = found.notes().into_iter().filter(|note| note.contains("differs")).collect();
        assert_eq!(told, ["`mail`: differs: mount options (only B: sync)"]);
    }

    #[test]
    fn unclear_tests_have_a_number_of_runs() {
        let found = suite(&[("db", &[100.0, 120.0, 80.0], &[95.0, 125.0, 85.0]), ("one", &[1.0], &[1.0])]);
        let notes = found.notes();
        assert!(notes.iter().any(|note| note.starts_with("`one`: too few runs for an interval: ")), "{notes:#?}");
        let last = notes.last().map_or("", String::as_str);
        assert!(last.starts_with("a clear verdict on the unclear tests takes about "), "{notes:#?}");
        assert_eq!(found.sentence().split_once(';'), None, "nothing is claimed: {}", found.sentence());
        // A value of 0 has no ratio, however many runs there are.
        let zero: &[f64] = &[0.0, 0.0, 0.0];
        let notes = suite(&[("zero", zero, zero)]).notes();
        assert!(notes[0].starts_with("`zero`: ") && !notes[0].contains("too few runs"), "{notes:#?}");
    }

    /// The intervals of the tests become wider with their number. Of 80 suites of equal tests at most 5 % have an interval
    /// without 1; with intervals of 95 % it would be more.
    #[test]
    fn a_suite_without_a_change_is_rarely_worse() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let [mut with, mut without] = [0; 2];
        for _ in 0..80 {
            let tests: Vec<(String, Vec<f64>, Vec<f64>)> = (0..10)
                .map(|n| {
                    let mut sample = || (0..5).map(|_| 100.0 * (1.0 + 0.05 * normal())).collect::<Vec<f64>>();
                    (n.to_string(), sample(), sample())
                })
                .collect();
            let tests: Vec<(&str, &[f64], &[f64])> =
                tests.iter().map(|(name, a, b)| (name.as_str(), &a[..], &b[..])).collect();
            let excludes_one = |found: &SuiteComparison| {
                let ratios = found.tests.iter().filter_map(|test| Some(test.comparison.as_ref()?.ratio));
                ratios.filter(|ratio| ratio.low > 1.0 || ratio.high < 1.0).count() > 0
            };
            let found = suite(&tests);
            with += i32::from(excludes_one(&found));
            without += i32::from(tests.iter().any(|test| excludes_one(&suite(&[*test]))));
        }
        assert!(with <= 4 && without > with, "{with} {without}");
    }
}
