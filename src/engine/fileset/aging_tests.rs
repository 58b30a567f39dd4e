//! Tests of the sequence of an aging, without a disk.
#![allow(clippy::unwrap_used)]

use super::*;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn sequence(seed: u64, rounds: u32, bytes: u64) -> AgingSequence {
    AgingSequence::new(AgingParameters { seed, rounds, bytes }).unwrap()
}

/// All files by number after so many steps, from their versions.
fn files(sequence: &AgingSequence, steps: usize) -> BTreeMap<u64, AgedFile> {
    let versions = sequence.versions_before(steps);
    let filled = steps == sequence.steps().len();
    (0..sequence.entries()).filter_map(|i| Some((i, sequence.file(i, &versions, filled)?))).collect()
}

/// The steps, applied change by change, lead to the files that the versions state, and to the exact fullness.
#[test]
fn the_changes_of_all_steps_lead_to_the_final_files() {
    for (rounds, bytes) in [(1, MIB), (3, 4 * MIB), (7, 8 * MIB)] {
        let sequence = sequence(1, rounds, bytes);
        let mut state = BTreeMap::new();
        let mut work = AgingWork::default();
        let mut remaining = Vec::new();
        for (number, step) in sequence.steps().iter().enumerate() {
            assert_eq!(state, files(&sequence, number), "before step {number}");
            assert_eq!(sequence.bytes_before(number), state.values().map(|file| blocks(file.size)).sum::<u64>());
            remaining.push(work);
            let (before, after) = (sequence.versions_before(number), sequence.versions_before(number + 1));
            let fill = if step.action == AgingAction::Fill { sequence.fill_files() } else { 0..0 };
            for i in fill {
                work.add(FileChange::Written(sequence.fill_file(i)));
                state.insert(i, sequence.fill_file(i));
            }
            for &tree in &step.trees {
                for i in sequence.files_of(tree) {
                    let change = sequence.change(i, before[tree as usize], after[tree as usize]);
                    work.add(change);
                    match change {
                        FileChange::Unchanged => {}
                        FileChange::Written(file) => drop(state.insert(i, file)),
                        FileChange::Grown { from, file } => assert_eq!(state.insert(i, file).unwrap().size, from),
                        FileChange::Removed => drop(state.remove(&i).unwrap()),
                    }
                }
            }
        }
        assert_eq!(state, files(&sequence, sequence.steps().len()));
        assert_eq!(state.values().map(|file| blocks(file.size)).sum::<u64>(), bytes, "exactly the fullness");
        for (number, done) in remaining.iter().enumerate() {
            let rest = sequence.work_from(number);
            assert_eq!((done.files + rest.files, done.bytes + rest.bytes), (work.files, work.bytes), "step {number}");
        }
    }
}

#[test]
fn every_round_checks_out_updates_and_removes() {
    use AgingAction::{CheckOut, Fill, Remove, Update};
    let sequence = sequence(1, 5, 8 * MIB);
    let count = |action| sequence.steps().iter().filter(|step| step.action == action).count();
    assert_eq!([CheckOut, Update, Remove, Fill].map(count), [5, 5, 4, 1]);
    assert!(sequence.steps().iter().filter(|s| s.action == CheckOut).all(|s| s.trees.len() == PARALLEL as usize));
    let removed: Vec<u32> =
        sequence.steps().iter().filter(|s| s.action == Remove).flat_map(|s| s.trees.clone()).collect();
    assert_eq!(removed, [0, 1, 2, 3], "in turns");
    assert_eq!(sequence.trees(), 4 + 4 * 3);
    assert!(sequence.versions_before(sequence.steps().len()).iter().all(Option::is_some));
}

#[test]
fn the_seed_determines_sizes_and_contents() {
    let end = |seed| {
        let sequence = sequence(seed, 3, 4 * MIB);
        files(&sequence, sequence.steps().len())
    };
    assert_eq!(end(1), end(1));
    let (one, two) = (end(1), end(2));
    assert!(one.values().all(|file| two.values().all(|other| file.content != other.content)));
    let contents: std::collections::BTreeSet<u64> = one.values().map(|file| file.content).collect();
    assert_eq!(contents.len(), one.len(), "no two files have the same content");
}

#[test]
fn sizes_resemble_those_of_source_trees() {
    let sequence = sequence(3, 4, 32 * MIB);
    let mut sizes: Vec<u64> = files(&sequence, sequence.steps().len()).values().map(|file| file.size).collect();
    sizes.sort_unstable();
    let (median, mean) = (sizes[sizes.len() / 2], sizes.iter().sum::<u64>() / sizes.len() as u64);
    assert!((4000..7000).contains(&median) && (9000..20_000).contains(&mean), "{median}, {mean}");
}

#[test]
fn too_few_bytes_are_refused_with_the_least_number() {
    let new = |bytes| AgingSequence::new(AgingParameters { seed: 1, rounds: 20, bytes });
    let Err(AgingError::TooSmall { needed, .. }) = new(BLOCK as u64) else { panic!("one block is enough") };
    assert!(new(needed).is_ok() && new(needed - BLOCK as u64).is_err());
}

#[test]
fn a_fullness_is_a_percentage_or_a_size() {
    assert_eq!(Fullness::parse("47%"), Ok(Fullness::Percent(47.0)));
    assert_eq!(Fullness::parse("0.5 %"), Ok(Fullness::Percent(0.5)));
    assert_eq!(Fullness::parse("20m"), Ok(Fullness::Bytes(20 << 20)));
    for (text, shown) in [("47 %", "47%"), ("0.5%", "0.5%"), ("20m", "20m"), ("1024k", "1m"), ("1000b", "1000b")] {
        assert_eq!(Fullness::parse(text).unwrap().to_string(), shown);
    }
    for (text, why) in [
        ("0%", "between 0 % and 100 %"),
        ("101%", "between 0 % and 100 %"),
        ("-3%", "between 0 % and 100 %"),
        ("NaN%", "between 0 % and 100 %"),
        ("x%", "not a percentage"),
        ("47", "has no unit"),
        ("", "missing"),
        ("0m", "greater than 0"),
        ("half", "`47%`"),
    ] {
        let found = Fullness::parse(text).unwrap_err();
        assert!(found.contains(why), "{text}: {found}");
    }
    assert_eq!(Fullness::Percent(47.0).bytes(1_000_000), 466_944, "in whole blocks");
    assert_eq!(Fullness::Bytes(10_000).bytes(1), 8192);
}
