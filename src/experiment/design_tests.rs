//! Tests of the decision on the next run: orders, ends and budgets.

#![allow(clippy::unwrap_used)]
use super::design::{Design, DesignEnd, Next};
use super::folder;
use super::order::{FORM, NAMED, StudyOrder};
use super::runner::tests::experiment as one_arm;
use super::stop::{LOOKED_AT, MAX_BLOCKS};
use super::wanted::{Arm, Blocks, Experiment, RuleWanted, WantedFactor};
use crate::analysis::PrecisionRule::Corrected;
use crate::analysis::{InterimLook, RepeatState, SEQUENTIAL};
use crate::comparison::FactorialTables;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;
use std::time::Duration;

/// A factorial experiment with factors of so many levels.
pub(super) fn factorial(
    levels: &[usize],
    (min_runs, max_runs): (u64, u64),
    until_ci: Option<f64>,
    in_order: bool,
) -> Experiment {
    let factor = |(n, count): (usize, &usize)| WantedFactor {
        name: format!("f{n}"),
        levels: (0..*count).map(|level| level.to_string()).collect(),
    };
    let factors = levels.iter().enumerate().map(factor).collect();
    let order = if in_order { StudyOrder::Cells } else { StudyOrder::Blocks };
    let tables = FactorialTables::default();
    let rule = RuleWanted::Factorial { factors, min_runs, max_runs, until_ci, stop: Corrected, order, tables };
    with_arms(rule, levels.iter().product())
}

fn with_arms(rule: RuleWanted, arms: usize) -> Experiment {
    let arm = |n: usize| Arm { name: n.to_string(), words: vec!["x.wml".to_owned()], metric: None };
    Experiment { rule, arms: (0..arms).map(arm).collect(), ..one_arm(1, &[]) }
}

pub(super) fn ab(blocks: Blocks) -> Experiment {
    with_arms(RuleWanted::Ab { tolerance: 0.03, blocks }, 2)
}

fn sweep(levels: &[&str], repeats: u64, in_order: bool) -> Experiment {
    let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
    let arms = levels.len();
    with_arms(RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats, in_order, method: None, search: None }, arms)
}

fn repeat(min_runs: u64, max_runs: u64, until_ci: Option<f64>) -> Experiment {
    with_arms(RuleWanted::Repeat { min_runs, max_runs, until_ci }, 1)
}

fn end(state: RepeatState) -> DesignEnd {
    DesignEnd { state, look: None }
}

/// Makes runs until the design ends. Returns their arms and the end.
fn run_to_end(experiment: &Experiment, value: impl Fn(usize, usize) -> Option<f64>) -> (Vec<usize>, DesignEnd) {
    let mut design = Design::new(experiment);
    let mut arms = Vec::new();
    loop {
        match design.next() {
            Next::Run { arm, .. } => {
                let value = value(arms.len(), arm);
                design.take(arm, value.as_slice(), Some(1.0));
                arms.push(arm);
            }
            Next::End(end) => return (arms, end),
        }
    }
}

/// The same, for runs that have a value.
fn runs_to_end(experiment: &Experiment, value: impl Fn(usize, usize) -> f64) -> (usize, DesignEnd) {
    let (arms, end) = run_to_end(experiment, |n, arm| Some(value(n, arm)));
    (arms.len(), end)
}

/// The design after so many runs, whose arms take so many seconds.
fn after(experiment: &Experiment, runs: usize, seconds: &dyn Fn(usize) -> Option<f64>) -> Design {
    let mut design = Design::new(experiment);
    for run in 0..runs {
        let arm = experiment.arm_of_run(run);
        design.take(arm, &[1.0], seconds(arm));
    }
    design
}

fn noise(n: usize) -> f64 {
    (n as f64 * 2.3).sin()
}

/// The description of a results folder may be damaged. The combinations are not counted out: there may be too many.
#[test]
fn an_experiment_has_an_arm_for_each_combination_of_levels() {
    let mut found = factorial(&[2, 3], (4, 4), None, false);
    assert_eq!(found.check_shape(), Ok(()));
    found.arms.pop();
    assert!(found.check_shape().is_err());
    let RuleWanted::Factorial { factors, .. } = &mut found.rule else { unreachable!() };
    *factors = factors.iter().cycle().take(100).cloned().collect();
    assert!(found.check_shape().is_err());
    found.arms.clear();
    assert!(found.check_shape().is_err());
}

#[test]
fn blocks_have_two_of_each_arm_and_both_orders_occur() {
    let (order, _) = run_to_end(&ab(Blocks::Exactly(20)), |_, _| Some(1.0));
    let blocks: Vec<&[usize]> = order.chunks(4).collect();
    assert!(blocks.iter().all(|block| [[0, 1, 1, 0], [1, 0, 0, 1]].iter().any(|order| block == order)));
    assert!(blocks.iter().any(|block| block[0] == 0) && blocks.iter().any(|block| block[0] == 1));
    let wanted = ab(Blocks::Pilot);
    let seeds: std::collections::BTreeSet<u64> = (0..80).map(|run| after(&wanted, run, &|_| None).seed()).collect();
    assert_eq!(seeds.len(), 80);
}

/// The seeds and orders of folders that earlier versions began.
#[test]
fn a_resumed_experiment_has_the_order_and_the_seeds_that_it_had() {
    let arms = |experiment: &Experiment, runs: usize| (0..runs).map(|n| experiment.arm_of_run(n)).collect::<Vec<_>>();
    let wanted = factorial(&[3], (4, 4), None, false);
    let (made, _) = run_to_end(&wanted, |_, _| Some(1.0));
    assert_eq!(arms(&wanted, 12), made);
    assert_eq!(made, [0, 1, 2, 2, 0, 1, 1, 2, 0, 0, 1, 2]);
    let generator = |seed: u64| Xoshiro256PlusPlus::seed_from_u64(seed);
    let is_b = |run: usize| matches!(run % 4, 1 | 2) != generator(wanted.seed + run as u64 / 4).random::<bool>();
    assert_eq!(arms(&ab(Blocks::Pilot), 40), (0..40).map(|run| usize::from(is_b(run))).collect::<Vec<_>>());
    let mut seeds = generator(!wanted.seed);
    for runs in 0..5 {
        assert_eq!(after(&wanted, runs, &|_| None).seed(), seeds.random::<u64>() >> 20);
    }
    assert_eq!(arms(&factorial(&[3], (2, 4), None, true), 9), [0, 0, 0, 0, 1, 1, 1, 1, 2]);
}

#[test]
fn each_block_has_every_cell_in_a_random_order() {
    let (arms, found) = run_to_end(&factorial(&[2, 3], (4, 4), None, false), |_, _| Some(1.0));
    assert_eq!((arms.len(), found), (24, end(RepeatState::Complete)));
    for block in arms.chunks(6) {
        let mut sorted = block.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    }
    assert!(arms.chunks(6).any(|block| block != [0, 1, 2, 3, 4, 5]));
}

#[test]
fn each_block_of_a_sweep_has_every_level_once() {
    let levels = ["1", "2", "4"];
    let (order, found) = run_to_end(&sweep(&levels, 8, false), |_, _| Some(1.0));
    assert_eq!((order.len(), found), (24, end(RepeatState::Complete)));
    for block in order.chunks(3) {
        let mut block = block.to_vec();
        block.sort_unstable();
        assert_eq!(block, [0, 1, 2]);
    }
    assert_ne!(order[..3], order[3..6], "the order changes from block to block");
    let (order, _) = run_to_end(&sweep(&levels, 8, true), |_, _| Some(1.0));
    assert!((0..24).all(|run| order[run] == run % 3));
}

#[test]
fn in_order_a_cell_is_complete_before_the_next() {
    let (arms, _) = run_to_end(&factorial(&[3], (2, 2), None, true), |_, _| Some(1.0));
    assert_eq!(arms, [0, 0, 1, 1, 2, 2]);
    // The second cell is noisy, and has the maximum number of runs.
    let noisy = |n: usize, arm: usize| Some(if arm == 1 { 1.0 + (n % 2) as f64 } else { 1.0 });
    let (arms, found) = run_to_end(&factorial(&[3], (3, 8), Some(0.05), true), noisy);
    let count = |cell| arms.iter().filter(|arm| **arm == cell).count();
    assert_eq!(([0, 1, 2].map(count), found), ([4, 8, 4], end(RepeatState::NotConverged)), "{arms:?}");
}

#[test]
fn a_cell_that_fails_gets_no_more_runs_than_the_minimum() {
    let fails = |_: usize, arm: usize| (arm != 1).then_some(1.0);
    let found = run_to_end(&factorial(&[2], (3, 8), Some(0.05), true), fails);
    assert_eq!(found, (vec![0, 0, 0, 0, 1, 1, 1], end(RepeatState::NotConverged)));
}

#[test]
fn a_comparison_ends_after_its_blocks() {
    assert_eq!(runs_to_end(&ab(Blocks::Exactly(3)), |_, _| 1.0), (12, end(RepeatState::Complete)));
    let pilot = ab(Blocks::Pilot);
    let found = runs_to_end(&pilot, |_, _| 1.0);
    assert_eq!(found, (16, end(RepeatState::Complete)), "equal runs need no more than the pilot");
    let (n, _) = runs_to_end(&pilot, |n, _| 100.0 * (1.0 + 0.06 * noise(n)));
    assert!(n > 24 && n % 4 == 0 && n < 4 * MAX_BLOCKS, "{n}");
    let (n, _) = runs_to_end(&pilot, |n, _| 100.0 * (1.0 + 0.9 * noise(n)));
    assert_eq!(n, 4 * MAX_BLOCKS);
}

#[test]
fn a_sequential_comparison_ends_at_an_interim_look() {
    let clear = ab(Blocks::UntilClear);
    let (n, found) = runs_to_end(&clear, |n, arm| 100.0 * (1.0 + arm as f64) + noise(n));
    assert_eq!((n, found.look), (24, Some(SEQUENTIAL[0])));
    let (n, found) = runs_to_end(&clear, |n, _| 100.0 * (1.0 + 0.6 * noise(n)));
    assert_eq!((n, found.look), (96, Some(SEQUENTIAL[2])));
}

/// With one-sided error probabilities of 0.5, 0.75 and 1.25 %, of which each is used once.
#[test]
fn a_budget_that_ends_between_looks_uses_the_error_of_the_next_one() {
    let end = |blocks| {
        let wanted = ab(blocks);
        [7, 8, 24, 44, 60].map(|runs| after(&wanted, runs, &|_| None).early_end().map(|end| end.look))
    };
    let at = |blocks, one_sided| Some(Some(InterimLook { blocks, one_sided }));
    let expected = [None, at(2, 0.005), at(6, 0.0075), at(11, 0.0075), at(15, 0.0125)];
    assert_eq!(end(Blocks::UntilClear), expected);
    assert_eq!(end(Blocks::Pilot)[1..], [Some(None); 4]);
}

#[test]
fn a_metric_that_is_0_ends_a_comparison_after_a_block() {
    for blocks in [Blocks::Exactly(20), Blocks::Pilot, Blocks::UntilClear] {
        let wanted = ab(blocks);
        assert_eq!(runs_to_end(&wanted, |_, _| 0.0), (4, end(RepeatState::Complete)), "{blocks:?}");
        let later = |n: usize, _| if n == 9 { 0.0 } else { 100.0 + noise(n) };
        assert_eq!(runs_to_end(&wanted, later), (12, end(RepeatState::Complete)), "{blocks:?}");
    }
}

#[test]
fn the_end_of_a_pilot_says_what_it_asks_for() {
    let pilot = ab(Blocks::Pilot);
    let after = |n: usize, spread: f64| {
        let mut design = Design::new(&pilot);
        (0..n).for_each(|n| design.take(pilot.arm_of_run(n), &[100.0 * (1.0 + spread * noise(n))], None));
        match design.next() {
            Next::Run { progress, .. } => progress.pilot,
            Next::End(_) => None,
        }
    };
    assert_eq!((after(15, 0.9), after(17, 0.9)), (None, None));
    // The variation decides how many blocks are needed, the maximum how many are made.
    let (made, needed) = after(16, 0.9).unwrap();
    assert!(made == MAX_BLOCKS as u64 && needed.is_none_or(|needed| needed > made), "{needed:?}");
    let (made, needed) = after(16, 0.06).unwrap();
    assert!(made > 6 && needed == Some(made), "{made} {needed:?}");
}

#[test]
fn repeats_end_by_their_rule() {
    let wanted = repeat(10, 30, Some(0.05));
    assert_eq!(runs_to_end(&wanted, |n, _| 100.0 + noise(n)), (11, end(RepeatState::Converged)));
    let noisy = runs_to_end(&wanted, |n, _| 100.0 * (1.0 + 0.8 * noise(n)));
    assert_eq!(noisy, (30, end(RepeatState::NotConverged)));
    assert_eq!(runs_to_end(&wanted, |n, _| 100.0 + 5.0 * n as f64).1, end(RepeatState::Drifting));
    // Also a fixed number of runs may drift. The cells of a factorial experiment are not series.
    assert_eq!(runs_to_end(&repeat(10, 10, None), |n, _| 100.0 + 5.0 * n as f64).1, end(RepeatState::Drifting));
    let cells = factorial(&[1], (10, 10), None, false);
    assert_eq!(runs_to_end(&cells, |n, _| 100.0 + 5.0 * n as f64).1, end(RepeatState::Complete));
}

#[test]
fn a_budget_holds_whole_blocks() {
    let pilot = ab(Blocks::Pilot);
    let within = |done, left| after(&pilot, done, &|_| Some(10.0)).runs_within(Duration::from_secs(left));
    assert_eq!((within(1, 0), within(8, 39), within(8, 40), within(9, 0)), (Some(8), Some(8), Some(12), Some(12)));
    let unknown = |done, left| after(&pilot, done, &|_| None).runs_within(left);
    assert_eq!((within(16, 640), unknown(0, Duration::MAX)), (Some(80), None));
    assert_eq!(unknown(9, Duration::ZERO), Some(12));
    // The rest of the block in progress takes its part.
    assert_eq!((within(9, 69), within(9, 70)), (Some(12), Some(16)));
    // A damaged journal may have any time.
    let endless = after(&pilot, 8, &|_| Some(1e19));
    assert_eq!(endless.runs_within(Duration::from_secs(9)), Some(8));
    assert_eq!(endless.time_up_to(80), Some(Duration::MAX));
    // A block has two short runs and two long ones.
    let within = |left| after(&pilot, 8, &|arm| Some([2.0, 10.0][arm])).runs_within(Duration::from_secs(left));
    assert_eq!((within(23), within(24), within(48)), (Some(8), Some(12), Some(16)));
    let wanted = repeat(10, 30, None);
    let within = |done| after(&wanted, done, &|_| Some(10.0)).runs_within(Duration::from_secs(15));
    assert_eq!((within(1), within(5)), (Some(3), Some(6)));
}

/// The arms of a block that was begun are those that it does not have yet.
#[test]
fn the_time_of_a_block_is_that_of_its_runs() {
    let wanted = sweep(&["1", "2", "4"], 8, true);
    let seconds = |arm: usize| Some([1.0, 10.0, 100.0][arm]);
    let times = |runs| {
        let design = after(&wanted, runs, &seconds);
        (design.time_of_block().as_secs(), design.time_up_to(6).unwrap().as_secs())
    };
    // The times of cells without a run are those of the longest run, or the mean of all.
    assert_eq!((times(1), times(2), times(3)), ((2, 5), (10, 22), (111, 111)));
    assert_eq!((times(4), times(5)), ((110, 110), (100, 100)));
    assert_eq!(after(&wanted, 3, &|_| None).time_up_to(6), None);
}

#[test]
fn an_experiment_ends_early_only_if_the_cells_are_balanced() {
    let wanted = factorial(&[2, 2], (3, 5), Some(0.05), false);
    let early = |runs| after(&wanted, runs, &|_| None).early_end();
    assert_eq!((early(3), early(4), early(0)), (None, Some(end(RepeatState::NotConverged)), None));
}

/// With a fixed number of runs, one that the budget ends is not complete either.
#[test]
fn a_budget_leaves_a_fixed_number_of_runs_incomplete() {
    for in_order in [false, true] {
        let wanted = factorial(&[2, 2], (5, 5), None, in_order);
        assert_eq!(after(&wanted, 4, &|_| None).early_end(), Some(end(RepeatState::NotConverged)));
        let found = wanted.factorial(&vec![Vec::new(); 4], true, RepeatState::NotConverged).unwrap();
        assert_eq!(found.planned_runs, Some(20));
    }
}

/// A cell may take the whole budget, so that the others have no run.
#[test]
fn a_budget_ends_an_experiment_in_order_after_any_run() {
    let wanted = factorial(&[3], (4, 4), None, true);
    let within = |done, left| after(&wanted, done, &|_| Some(10.0)).runs_within(Duration::from_secs(left));
    assert_eq!((within(0, 0), within(1, 25), within(3, 5)), (Some(1), Some(3), Some(3)));
    // The next run may be of any cell.
    let differ = |arm: usize| Some([1.0, 60.0, 1.0][arm]);
    assert_eq!(after(&wanted, 5, &differ).runs_within(Duration::from_secs(59)), Some(5));
    assert_eq!(after(&wanted, 9, &differ).time_up_to(12), Some(Duration::from_secs(62)));
    assert_eq!(after(&wanted, 0, &differ).early_end(), None);
    for runs in 1..12 {
        assert_eq!(after(&wanted, runs, &|_| None).early_end(), Some(end(RepeatState::NotConverged)), "{runs}");
    }
}

#[test]
fn the_level_of_the_last_factor_changes_first() {
    let experiment = factorial(&[2, 3], (1, 1), None, false);
    let levels: Vec<Vec<usize>> = (0..6).map(|arm| experiment.levels_of(arm)).collect();
    assert_eq!(levels, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
}

/// A run costs the same however many cells there are.
#[test]
fn ten_times_as_many_cells_are_ten_times_as_much_work() {
    let looked_at = |cells: usize, target: Option<f64>, in_order: bool| {
        let before = LOOKED_AT.get();
        let (runs, _) = runs_to_end(&factorial(&[cells], (3, 3), target, in_order), |n, _| 100.0 + noise(n));
        assert_eq!(runs, 3 * cells);
        LOOKED_AT.get() - before
    };
    for (target, in_order) in [(None, false), (None, true), (Some(0.05), false), (Some(0.05), true)] {
        let [few, many] = [100, 1000].map(|cells| looked_at(cells, target, in_order));
        assert!(many <= 10 * few + 10, "{target:?} {in_order}: {few} {many}");
        assert!(many <= 20 * 1000, "{many}");
    }
}

#[test]
fn orders_keep_the_form_that_folders_have_and_are_read_by_name_too() {
    let stored = |(name, of): (&str, StudyOrder)| {
        let mut wanted = factorial(&[2], (1, 1), None, false);
        let RuleWanted::Factorial { order, .. } = &mut wanted.rule else { unreachable!() };
        *order = of;
        let text = folder::description_text(&wanted, Path::new("x")).unwrap();
        let line = text.lines().find(|line| line.starts_with("in_order")).unwrap();
        let named = |name: &str| folder::parse(&text.replace(line, &format!("in_order = \"{name}\"")));
        assert_eq!([folder::parse(&text).unwrap(), named(name).unwrap()], [wanted.clone(), wanted]);
        assert!(named("random").is_err() && FORM.contains(&format!("`\"{name}\"`")));
        line.to_owned()
    };
    assert_eq!(NAMED.map(stored), ["in_order = false", "in_order = true"]);
}
