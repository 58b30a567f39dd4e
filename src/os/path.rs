//! Paths as the kernel resolves them, also those of files that do not exist yet.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Returns the absolute path without links, `.` and `..`. The part that does not exist is taken as it is written: the
/// path is that of the file once its directories are created.
pub fn resolve(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    let (part, mut resolved) = found.unwrap_or((Path::new("/"), PathBuf::from("/")));
    for component in whole.strip_prefix(part).unwrap_or(Path::new("")).components() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            name => {
                resolved.push(name);
                // Behind `..` the path may exist again, and have links.
                resolved = fs::canonicalize(&resolved).unwrap_or(resolved);
            }
        }
    }
    resolved
}

/// Returns the directory of the program's state: `wmlrun` below `$XDG_STATE_HOME`, else below `~/.local/state`. `None` if
/// neither variable is an absolute path.
pub fn state_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("wmlrun"))
}

/// True unless the user wants no state that nobody asked for: the history of the shell, the last results.
pub fn keeps_state() -> bool {
    std::env::var_os("WMLRUN_STATE").is_none_or(|value| value != "off")
}

/// Maximum number of chained symbolic links. A longer chain is treated as a loop.
const MAX_LINKS: usize = 40;

/// Returns the path of the file that a path leads to, which need not exist: the path itself unless it is that of a link.
pub(crate) fn without_last_links(path: &Path) -> PathBuf {
    let mut file = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&file) {
            Ok(to) => file = file.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return file,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_is_resolved_as_far_as_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(dir.join("a/deep")).unwrap();
        symlink("a/deep", dir.join("link")).unwrap();
        symlink("missing", dir.join("loose")).unwrap();
        for (path, resolved) in [
            ("a", "a"),
            ("a/./deep/..", "a"),
            ("link", "a/deep"),
            ("link/..", "a"),
            ("new/x", "new/x"),
            ("link/new/x", "a/deep/new/x"),
            ("link/../new", "a/new"),
            ("new/../a", "a"),
            ("new/../link/x", "a/deep/x"),
            ("new/x/../../link/../y", "a/y"),
            ("a/deep/new/../../../b", "b"),
            ("loose/x", "loose/x"),
        ] {
            assert_eq!(resolve(&dir.join(path)), dir.join(resolved), "{path}");
        }
        let here = fs::canonicalize(".").unwrap();
        assert_eq!(resolve(Path::new("no-such-file/x")), here.join("no-such-file/x"));
        assert_eq!(resolve(Path::new("/..")), Path::new("/"));
    }
}
