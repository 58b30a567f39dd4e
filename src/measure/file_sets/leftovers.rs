//! Trees that remain after a session, and the message on them. Not here: the removal of trees.

use crate::disk::disk_usage;
use crate::util::size;
use std::path::{Path, PathBuf};

/// The most directory entries counted for the current size of the trees: counting delays the end of a run.
const MAX_COUNTED: u64 = 100_000;

/// A tree that remains after the session.
#[derive(Debug)]
pub(crate) struct Leftover {
    pub(crate) root: PathBuf,
    /// The size in bytes when it was created. `None` if it is not complete.
    pub(crate) bytes: Option<u64>,
    /// The number of files at the end of the last run, as far as it is known.
    pub(crate) files: u64,
    /// The tree was adopted: wmlrun did not create it.
    pub(crate) adopted: bool,
}

/// Returns the messages on the remaining trees: one for those that wmlrun created, and one for each adopted one, which
/// it never removes.
pub(crate) fn lines(trees: Vec<Leftover>) -> Vec<String> {
    let (adopted, made): (Vec<Leftover>, Vec<Leftover>) = trees.into_iter().partition(|tree| tree.adopted);
    kept_message(&made).into_iter().chain(adopted.iter().map(|tree| adopted_message(&tree.root))).collect()
}

/// Returns the message on an adopted tree.
fn adopted_message(root: &Path) -> String {
    let root = root.display();
    format!("{root} was adopted and stays (`wmlrun clean {root}` removes only the marker)")
}

/// The most trees that a message names.
const MOST_NAMED: usize = 6;

/// Returns the message on trees that wmlrun created. `None` if there are none.
fn kept_message(trees: &[Leftover]) -> Option<String> {
    let them = match trees {
        [] => return None,
        [_] => "it",
        _ => "them",
    };
    let verb = if trees.len() == 1 { "stays" } else { "stay" };
    // Each process instance may have several trees.
    let mut paths: Vec<String> = trees.iter().take(MOST_NAMED).map(|tree| tree.root.display().to_string()).collect();
    if trees.len() > MOST_NAMED {
        paths.push(format!("and {} more", trees.len() - MOST_NAMED));
    }
    // Another program's trees may be in the same directory.
    let place = |tree: &Leftover| match trees {
        [_] => Some(tree.root.clone()),
        _ => tree.root.parent().map(Path::to_path_buf),
    };
    let mut places: Vec<String> = trees.iter().filter_map(place).map(|dir| dir.display().to_string()).collect();
    places.dedup();
    let (paths, places, bytes) = (paths.join(", "), places.join(" "), total_size(trees));
    Some(format!("{paths} {verb}: {bytes} (`--clean` removes {them}, or `wmlrun clean {places}`)"))
}

/// Returns the total size: the current one if it can be counted quickly, else the size at creation, if it is known.
fn total_size(trees: &[Leftover]) -> String {
    let files: u64 = trees.iter().map(|tree| tree.files).sum();
    let now = (files <= MAX_COUNTED)
        .then(|| trees.iter().map(|tree| disk_usage::bytes(&tree.root, MAX_COUNTED as usize)).sum::<Option<u64>>());
    match (now.flatten(), trees.iter().map(|tree| tree.bytes).sum::<Option<u64>>()) {
        (Some(bytes), _) => size::format(bytes),
        (None, Some(bytes)) => format!("{} when created", size::format(bytes)),
        (None, None) => "size unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Leftover, MAX_COUNTED, kept_message, lines};

    #[test]
    fn the_current_size_is_shown_unless_there_are_too_many_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("grown"), [0; 3 << 10]).unwrap();
        let tree = |files| Leftover { root: dir.path().to_owned(), bytes: Some(1 << 20), files, adopted: false };
        assert!(kept_message(&[tree(1)]).unwrap().contains(" stays: 3.0 KiB (`--clean` removes it"));
        assert!(kept_message(&[tree(MAX_COUNTED + 1)]).unwrap().contains(" stays: 1.0 MiB when created ("));
        assert!(
            kept_message(&[tree(MAX_COUNTED), tree(1)])
                .unwrap()
                .contains(" stay: 2.0 MiB when created (`--clean` removes them")
        );
        // The creation of one was interrupted.
        let unfinished = || Leftover { bytes: None, ..tree(0) };
        assert!(kept_message(&[unfinished()]).unwrap().contains(" stays: 3.0 KiB ("));
        let many = [tree(MAX_COUNTED + 1), unfinished()];
        assert!(kept_message(&many).unwrap().contains(" stay: size unknown (`--clean` removes them"));
        assert_eq!(kept_message(&[]), None);
        let lines = lines(vec![Leftover { adopted: true, ..tree(1) }, tree(1)]);
        assert!(lines.len() == 2 && lines[0].contains("--clean") && lines[1].contains("was adopted and stays"));
    }
}
