//! Whether an output is in the tree of a file set: it would be a foreign file there, and its writes would be measured.
//!
//! Paths are compared as the kernel resolves them: `..`, a symbolic link, a second name of a file and another mount of
//! the same directory do not hide where an output is. Deliberately absent: which outputs and trees there are.

use super::file_id;
use super::target::{FileIdentity, descriptor_of};
use crate::{device, path};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The help for an output in a tree.
pub const IN_TREE_HELP: &str = "give a path outside the directories of the file sets";

/// Returns an error message about the first output that is in a tree, or `None` when none is. An output has an option
/// and a path, a tree the name of a file set and its root. Neither need exist.
pub fn output_in_tree<O: AsRef<Path>, N: AsRef<str>>(outputs: &[(&str, O)], trees: &[(N, PathBuf)]) -> Option<String> {
    let (at, name) = first_in_tree(outputs, trees)?;
    let (option, path) = &outputs[at];
    let path = path.as_ref().display();
    Some(format!("`{option}` names {path}, which is in the tree of the file set `{name}`"))
}

/// Returns the position of the first output that is in a tree, and the name of the file set.
pub fn first_in_tree<'t, O: AsRef<Path>, N: AsRef<str>>(
    outputs: &[(&str, O)],
    trees: &'t [(N, PathBuf)],
) -> Option<(usize, &'t str)> {
    let mut trees = trees.iter().map(|(name, root)| (name.as_ref(), ResolvedPath::of(root))).collect::<Vec<_>>();
    // Of two file sets the inner one is named.
    trees.sort_by_key(|(_, root)| std::cmp::Reverse(root.path.as_os_str().len()));
    outputs.iter().enumerate().find_map(|(at, (_, path))| {
        let path = path.as_ref();
        // An inherited descriptor was opened by whoever started the program.
        let output = descriptor_of(path).is_none().then(|| ResolvedPath::of_output(path))?;
        let (name, _) = trees.iter().find(|(_, root)| output.is_in(root))?;
        Some((at, *name))
    })
}

/// A path as the kernel resolves it.
struct ResolvedPath {
    /// The absolute path without links and `..`. The part that does not exist is taken as it is written.
    path: PathBuf,
    /// Its longest part that exists.
    existing: PathBuf,
    /// The identities of the existing part and its parents.
    identities: BTreeSet<FileIdentity>,
}

impl ResolvedPath {
    fn of(path: &Path) -> Self {
        let path = path::resolve(path);
        let existing = path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("/")).to_owned();
        let identities = existing.ancestors().filter_map(file_id).collect();
        Self { path, existing, identities }
    }

    /// The path of an output. If it is a link to a file that does not exist, that file is the output.
    fn of_output(path: &Path) -> Self {
        // A link that can't be followed is reported when the output is opened.
        Self::of(&path::without_last_links(path))
    }

    /// Returns the device of the file system and the path within it, which all mounts of the file system share.
    fn in_file_system(&self) -> Option<(u64, PathBuf)> {
        let (device, _) = file_id(&self.existing)?;
        let rest = self.path.strip_prefix(&self.existing).ok()?;
        Some((device, device::path_in_file_system(&self.existing)?.join(rest)))
    }

    /// True if the path is that of `root`, or below it.
    fn is_in(&self, root: &Self) -> bool {
        if self.path.starts_with(&root.path) {
            return true;
        }
        // The root itself exists, and is one of the directories of this path under another name.
        if root.path == root.existing && file_id(&root.path).is_some_and(|id| self.identities.contains(&id)) {
            return true;
        }
        // A directory below the root may be mounted elsewhere.
        let (Some((device, path)), Some((of_root, root))) = (self.in_file_system(), root.in_file_system()) else {
            return false;
        };
        device == of_root && path.starts_with(root)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn an_output_in_a_tree_is_found_under_each_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("t/data/sub")).unwrap();
        fs::create_dir(at("t/database")).unwrap();
        fs::write(at("t/single"), "").unwrap();
        fs::hard_link(at("t/single"), at("second")).unwrap();
        symlink("t/data/sub", at("link")).unwrap();
        symlink("t/data/missing", at("dangling")).unwrap();
        symlink("elsewhere", at("loose")).unwrap();
        symlink(".", at("t/data/up")).unwrap();
        let trees = [("data", at("t/data")), ("single", at("t/single")), ("new", at("t/new"))];
        let found = |path: &Path| output_in_tree(&[("--json", path)], &trees);
        for (path, tree) in [
            ("t/data/x", Some("data")),
            ("t/data", Some("data")),
            ("t/../t/data/sub/x", Some("data")),
            ("t/data/sub/../../data/x", Some("data")),
            ("t/data/up/sub/../../x", None),
            ("link/x", Some("data")),
            ("link/../x", Some("data")),
            ("link/../../x", None),
            ("dangling", Some("data")),
            ("loose", None),
            ("t/single", Some("single")),
            ("second", Some("single")),
            ("t/new/x", Some("new")),
            ("t/missing/../new/x", Some("new")),
            ("t/database/x", None),
            ("t/x", None),
            ("x", None),
        ] {
            let said = found(&at(path));
            let name = said.as_deref().and_then(|said| said.split("file set `").nth(1));
            assert_eq!(name.map(|name| name.trim_end_matches('`')), tree, "{path}: {said:?}");
        }
        assert_eq!(found(Path::new("-")), None);
        // The root itself is named through a link.
        let trees = [("data", at("link"))];
        assert!(output_in_tree(&[("--json", at("t/data/sub/x"))], &trees).is_some());
        assert!(output_in_tree(&[("--json", at("t/data/x"))], &trees).is_none());
        let said = output_in_tree(&[("--json", at("x")), ("--append", at("link/y"))], &trees).unwrap();
        assert!(
            said.starts_with("`--append` names ") && said.ends_with("in the tree of the file set `data`"),
            "{said}"
        );
    }
}
