//! Trees that stay when a session ends, and the line that says so. Deliberately absent: what removes trees.

use crate::disk::disk_usage;
use crate::util::size;
use std::path::{Path, PathBuf};

/// Entries that are looked at to say how big the trees are by now: nobody waits long for it at the end of a run.
const MOST_COUNTED: u64 = 100_000;

/// A tree that was let go and stays where it is.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) root: PathBuf,
    /// Its bytes as it was made.
    pub(crate) bytes: u64,
    /// Files that were there at last, as far as they were counted.
    pub(crate) files: u64,
    /// It was somebody else's, and adopted.
    pub(crate) adopted: bool,
}

/// What to tell of the trees that stay: those that wmlrun made, and those that it never removes.
pub(crate) fn lines(stay: Vec<Leftover>) -> Vec<String> {
    let (adopted, made): (Vec<Leftover>, Vec<Leftover>) = stay.into_iter().partition(|left| left.adopted);
    message(&made).into_iter().chain(adopted.iter().map(|left| given_back(&left.root))).collect()
}

/// What becomes of an adopted tree.
fn given_back(root: &Path) -> String {
    let root = root.display();
    format!("{root} was adopted and stays (`wmlrun clean {root}` takes the marker off, and nothing else)")
}

/// What to tell of the trees that stay; nothing if there are none.
fn message(stay: &[Leftover]) -> Option<String> {
    let them = match stay {
        [] => return None,
        [_] => "it",
        _ => "them",
    };
    let verb = if stay.len() == 1 { "stays" } else { "stay" };
    let paths: Vec<String> = stay.iter().map(|left| left.root.display().to_string()).collect();
    let mut places: Vec<String> =
        stay.iter().filter_map(|left| left.root.parent()).map(|dir| dir.display().to_string()).collect();
    places.dedup();
    let (paths, places, bytes) = (paths.join(", "), places.join(" "), weight(stay));
    Some(format!("{paths} {verb}: {bytes} (`--clean` removes {them}, or `wmlrun clean {places}`)"))
}

/// How big they are: by now if that is found out soon, else as they were made.
fn weight(stay: &[Leftover]) -> String {
    let files: u64 = stay.iter().map(|left| left.files).sum();
    let now = (files <= MOST_COUNTED)
        .then(|| stay.iter().map(|left| disk_usage::bytes(&left.root, MOST_COUNTED as usize)).sum::<Option<u64>>());
    match now.flatten() {
        Some(bytes) => size::format(bytes),
        None => format!("{} as they were made", size::format(stay.iter().map(|left| left.bytes).sum())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Leftover, MOST_COUNTED, lines, message};

    #[test]
    fn the_size_is_that_of_now_unless_there_are_too_many_files_to_look_at() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("grown"), [0; 3 << 10]).unwrap();
        let tree = |files| Leftover { root: dir.path().to_owned(), bytes: 1 << 20, files, adopted: false };
        assert!(message(&[tree(1)]).unwrap().contains(" stays: 3.0 KiB (`--clean` removes it"));
        assert!(message(&[tree(MOST_COUNTED + 1)]).unwrap().contains(" stays: 1.0 MiB as they were made ("));
        assert!(
            message(&[tree(MOST_COUNTED), tree(1)])
                .unwrap()
                .contains(" stay: 2.0 MiB as they were made (`--clean` removes them")
        );
        assert_eq!(message(&[]), None);
        let lines = lines(vec![Leftover { adopted: true, ..tree(1) }, tree(1)]);
        assert!(lines.len() == 2 && lines[0].contains("--clean") && lines[1].contains("was adopted and stays"));
    }
}
