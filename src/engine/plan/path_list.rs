//! The paths of file sets as they are written: lists of directories, `path="/a:/b"`, over which a set is spread; paths
//! below the directory of `--below`; and what only a shell would replace. Not here: whether they exist.

use std::path::{Component, Path, PathBuf};

/// Splits a list of directories at its colons. Returns a single path whole.
///
/// A colon may belong to a name: each directory of a list after the first begins with `/`, `./`, `../` or `base`, the
/// value of `$dir`. It may also be empty, which is a mistake in a list.
pub fn listed_directories<'a>(text: &'a str, base: Option<&str>) -> Vec<&'a str> {
    let in_base = |path: &str| {
        let rest = base.and_then(|base| path.strip_prefix(base));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let begins = |path: &&str| {
        path.is_empty() || ["/", "./", "../"].iter().any(|start| path.starts_with(start)) || in_base(path)
    };
    let paths: Vec<&str> = text.split(':').collect();
    if paths[1..].iter().all(begins) { paths } else { vec![text] }
}

/// Returns what a shell would replace in a path, and a directory of that name would be made of: a `~` at its start, and
/// backquotes. The path may be a list.
pub fn left_to_shell(path: &str) -> Option<&'static str> {
    if path.contains('`') {
        return Some("a backquote");
    }
    path.split(':').any(|path| path.starts_with('~')).then_some("a leading `~`")
}

/// Returns the path of a file set below a directory: `/mnt/x` becomes `BELOW/mnt/x`. `name` is the rest of the path of its
/// root. An error is what is wrong with the path, and help.
pub(super) fn placed_below(below: &Path, path: &Path, name: &str) -> Result<PathBuf, (String, &'static str)> {
    let shown = path.display();
    let is_up = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    if is_up(path) || is_up(Path::new(name)) {
        return Err((format!("`..` in the path `{shown}/{name}`"), "`--below` takes paths without `..`"));
    }
    if path.starts_with(super::FRESH) {
        let help = "give the directory with `--dir` instead of `--below`, or a value with `--set dir=/PATH`";
        return Err(("`$dir` has no value that `--below` could place below its directory".to_owned(), help));
    }
    // What is in memory is a directory like others.
    if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        let help =
            "below another directory it would be a tree of files, and no device; give the set a path outside `/dev`";
        return Err((format!("`{shown}/{name}` is a device"), help));
    }
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    Ok(parts.fold(below.to_owned(), |whole, part| whole.join(part)))
}

#[cfg(test)]
mod tests {
    use super::{left_to_shell, listed_directories, placed_below};
    use std::path::Path;

    #[test]
    fn a_path_keeps_its_names_below_a_directory() {
        let placed = |path: &str, name: &str| placed_below(Path::new("d"), Path::new(path), name);
        for (path, whole) in [
            ("/mnt/x", "d/mnt/x"),
            ("mnt/x/", "d/mnt/x"),
            ("./x//y/.", "d/x/y"),
            ("/", "d"),
            (".", "d"),
            ("/dev/shm/x", "d/dev/shm/x"),
            ("/development", "d/development"),
            ("/a..b/...", "d/a..b/..."),
        ] {
            assert_eq!(placed(path, "set").as_deref(), Ok(Path::new(whole)), "{path}");
        }
        for (path, name) in [("..", "s"), ("/a/../b", "s"), ("/a", "../s"), ("/dev", "sdb"), ("/dev/mapper", "x")] {
            assert!(placed(path, name).is_err(), "{path} {name}");
        }
        assert!(placed(crate::plan::FRESH, "s").is_err());
    }

    #[test]
    fn only_what_a_shell_would_replace_is_left_to_it() {
        for path in ["~", "~/x", "~root/x", "`pwd`/x", "/a/`b", "/a:~/b"] {
            assert!(left_to_shell(path).is_some(), "{path}");
        }
        for path in ["/a~b", "/a/~b", "a~", "/a*?[b]", "$(X)", "/a:b~"] {
            assert_eq!(left_to_shell(path), None, "{path}");
        }
    }

    #[test]
    fn a_colon_separates_directories_only_before_the_start_of_a_path() {
        for (text, base, parts) in [
            ("", None, &[""][..]),
            ("/a", None, &["/a"]),
            ("/a:/b:./c:../d", None, &["/a", "/b", "./c", "../d"]),
            ("/a:b", None, &["/a:b"]),
            ("/a:/b:c", None, &["/a:/b:c"]),
            ("dir/a:dir/b", None, &["dir/a:dir/b"]),
            ("dir/a:dir/b:dir", Some("dir"), &["dir/a", "dir/b", "dir"]),
            ("dir/a:directory", Some("dir"), &["dir/a:directory"]),
            ("/a::/b", None, &["/a", "", "/b"]),
            ("/a:", None, &["/a", ""]),
        ] {
            assert_eq!(listed_directories(text, base), parts, "{text}");
        }
    }
}
