//! Tests which ranks share a tree, and the files of each.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::ranks::{Collected, CommonStart, Others, RanksLost};
use crate::runtime::MeetingPlace;

/// A rank that exchanges no messages.
#[derive(Debug)]
struct SilentRank {
    rank: usize,
    hosts: Vec<String>,
}

impl MeetingPlace for SilentRank {}

impl Others for SilentRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        Ok(message)
    }

    fn collect(&self, _: Vec<u8>) -> Option<Collected> {
        None
    }

    fn common_start(&self) -> Result<CommonStart, RanksLost> {
        Ok(CommonStart { at_ns: None, clock_error_ns: 0 })
    }
}

/// Returns the group of a set on each rank, and the rank with another definition. `specs`: the set as each rank defines
/// it.
fn groups(hosts: &[&str], default: Sharing, specs: &[FilesetSpec]) -> Vec<(SharingGroup, Option<usize>)> {
    let keys: Vec<SetKey> = specs.iter().map(|spec| SetKey::of(spec, false)).collect();
    let by_root: Vec<HashMap<&str, &SetKey>> =
        keys.iter().map(|key| HashMap::from([(key.root.as_str(), key)])).collect();
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let of = |(rank, spec): (usize, &FilesetSpec)| {
        SharingGroup::of(spec, default, &Together::with(Arc::new(SilentRank { rank, hosts: hosts.clone() })), &by_root)
    };
    specs.iter().enumerate().map(of).collect()
}

fn spec(entries: u64) -> FilesetSpec {
    FilesetSpec::new("s", "/x", entries, 0)
}

const HOSTS: [&str; 5] = ["a", "b", "a", "b", "a"];

#[test]
fn a_tree_is_shared_by_a_host_or_by_all() {
    let ranks = |default: Sharing, spec: FilesetSpec| -> Vec<Vec<usize>> {
        groups(&HOSTS, default, &vec![spec; 5]).into_iter().map(|(group, _)| group.ranks).collect()
    };
    let (of_a, of_b, all) = (vec![0, 2, 4], vec![1, 3], vec![0, 1, 2, 3, 4]);
    let by_host = [&of_a, &of_b, &of_a, &of_b, &of_a].map(Clone::clone);
    assert_eq!(ranks(Sharing::Host, spec(100)), by_host);
    assert_eq!(ranks(Sharing::All, spec(100)), vec![all.clone(); 5]);
    assert_eq!(ranks(Sharing::Neighbour, spec(100)), vec![all.clone(); 5]);
    // The definition precedes the option.
    assert_eq!(ranks(Sharing::All, FilesetSpec { share: Some(Sharing::Host), ..spec(100) }), by_host);
    assert_eq!(ranks(Sharing::Host, FilesetSpec { share: Some(Sharing::All), ..spec(100) }), vec![all; 5]);
}

#[test]
fn each_rank_creates_its_part_and_uses_it_or_that_of_its_neighbour() {
    let parts = |sharing: Sharing| -> Vec<[u64; 3]> {
        let of = |(group, _): (SharingGroup, _)| {
            assert_eq!((group.is_first(), group.in_parts), (group.created().first == 0, true));
            assert_eq!(group.created().step, group.used().step);
            [group.created().first, group.used().first, group.used().step]
        };
        groups(&HOSTS, sharing, &vec![spec(5); 5]).into_iter().map(of).collect()
    };
    assert_eq!(parts(Sharing::Host), [[0, 0, 3], [0, 0, 2], [1, 1, 3], [1, 1, 2], [2, 2, 3]]);
    assert_eq!(parts(Sharing::All), [[0, 0, 5], [1, 1, 5], [2, 2, 5], [3, 3, 5], [4, 4, 5]]);
    assert_eq!(parts(Sharing::Neighbour), [[0, 1, 5], [1, 2, 5], [2, 3, 5], [3, 4, 5], [4, 0, 5]]);
}

#[test]
fn ranks_use_all_files_if_they_are_too_few() {
    for (entries, leafdirs, in_parts) in [(5, 0, true), (4, 0, false), (1, 100, false), (0, 5, true), (100, 3, false)] {
        let spec = FilesetSpec { leafdirs, ..spec(entries) };
        for (group, _) in groups(&HOSTS, Sharing::Neighbour, &vec![spec; 5]) {
            assert_eq!(group.in_parts, in_parts, "{entries} {leafdirs}");
            let expected = if in_parts { 5 } else { 1 };
            assert_eq!((group.created().step, group.used().step), (expected, expected));
        }
    }
    let alone = groups(&["a"], Sharing::Neighbour, &[spec(100)]).remove(0).0;
    assert_eq!((alone.created(), alone.used(), alone.is_shared()), (Interleave::WHOLE, Interleave::WHOLE, false));
}

#[test]
fn ranks_with_other_paths_have_other_trees_and_other_definitions_are_found() {
    let own_path = |rank: u64| FilesetSpec { path: format!("/x/{rank}").into(), ..spec(100) };
    for (rank, (group, other)) in groups(&HOSTS, Sharing::All, &[0, 1, 0, 3, 0].map(own_path)).iter().enumerate() {
        let expected = if rank % 2 == 0 { vec![0, 2, 4] } else { vec![rank] };
        assert_eq!((&group.ranks, other), (&expected, &None));
    }
    let others = |default: Sharing| -> Vec<Option<usize>> {
        groups(&HOSTS, default, &[7, 7, 7, 8, 7].map(spec)).into_iter().map(|(_, other)| other).collect()
    };
    assert_eq!(others(Sharing::Host), [None, Some(3), None, Some(1), None]);
    assert_eq!(others(Sharing::All), [Some(3), Some(3), Some(3), Some(0), Some(3)]);
}
