//! Suggests the known name that a misspelt name was probably meant to be.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Maximum length in bytes of a misspelt name. For longer names no suggestion is made.
const LONGEST_NAME: usize = 64;

/// Maximum number of known names that are compared with a misspelt one. Only generated texts have more.
const MOST_NAMES: usize = 4096;

/// Returns the known name that is most similar to `written`, or `None` when no name is similar enough. A name is
/// similar enough if it differs only in case, or if its edit distance is at most a third of the length of `written`. An
/// insertion, a deletion, a substitution and a transposition of adjacent characters count as one edit each. Of several
/// names with the same distance, the one with the closest length is returned, then the alphabetically first.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST_NAME {
        return None;
    }
    let limit = written.chars().count().max(3) / 3;
    let written_letters = letter_set(written);
    known
        .into_iter()
        .filter(|name| *name != written && name.len().abs_diff(written.len()) <= 4 * limit)
        .take(MOST_NAMES)
        .filter_map(|name| distance(written, written_letters, name, limit).map(|d| (d, name)))
        .min_by_key(|(d, name)| (*d, name.len().abs_diff(written.len()), *name))
        .map(|(_, name)| name)
}

/// The help that names what was probably meant, if anything was, or else another one.
pub fn did_you_mean(near: Option<impl Display>, otherwise: impl FnOnce() -> String) -> String {
    near.map_or_else(otherwise, |near| format!("did you mean `{near}`?"))
}

/// Returns the known name that `written` was probably meant to be, for a help: the most similar one ([`nearest`]), else
/// the only one that begins or ends with `written`, as `filesetname` with `fileset`. A single character is not a part of
/// a name. A decision about the text takes `nearest`, because the beginning of a name is no mistake everywhere.
pub fn meant<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST_NAME {
        return None;
    }
    let can_be_part = written.chars().nth(1).is_some();
    let mut longer: Option<&str> = None;
    let mut is_only = true;
    let similar = nearest(
        written,
        known.into_iter().inspect(|&name| {
            if can_be_part && name != written && (name.starts_with(written) || name.ends_with(written)) {
                is_only &= longer.is_none_or(|other| other == name);
                longer = Some(name);
            }
        }),
    );
    similar.or(longer.filter(|_| is_only))
}

/// Returns the entry of a missing path's parent directory that has the most similar name: a directory, or another file.
/// A link counts as both. No entry is looked at itself: it may be a mount point of a file system that hangs.
#[allow(clippy::disallowed_methods, reason = "`os` is built on this module; the number of entries is bounded")]
pub fn similar_path(path: &Path, of_directories: bool) -> Option<PathBuf> {
    let parent = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p })?;
    let entries = std::fs::read_dir(parent).ok()?.take(MOST_NAMES).flatten();
    let is_wanted = |kind: std::fs::FileType| kind.is_symlink() || kind.is_dir() == of_directories;
    let names: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(is_wanted))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    Some(path.with_file_name(nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?))
}

/// Returns the edit distance of two names, or `None` when it exceeds `limit`.
fn distance(written: &str, written_letters: u64, name: &str, limit: usize) -> Option<usize> {
    if name.eq_ignore_ascii_case(written) {
        return Some(0);
    }
    // Each letter that only one of the names contains needs an edit. This lower bound excludes most names without
    // computing the edit distance: a script of 10 MB of unknown commands is checked in 1 s instead of 7 s.
    let name_letters = letter_set(name);
    let least = (written_letters & !name_letters).count_ones().max((name_letters & !written_letters).count_ones());
    if least as usize > limit {
        return None;
    }
    Some(strsim::osa_distance(written, name)).filter(|d| *d <= limit)
}

/// Returns the set of a name's letters as a bit mask. Several letters may share a bit.
fn letter_set(name: &str) -> u64 {
    name.chars().fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 64))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{meant, nearest};

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["fileset", "filesize", "iosize", "name"];
        assert_eq!(nearest("filset", known), Some("fileset"));
        assert_eq!(nearest("iosiez", known), Some("iosize"));
        assert_eq!(nearest("bar", ["chr"]), None);
        assert_eq!(nearest("NAME", known), Some("name"));
        assert_eq!(nearest("name", ["name"]), None);
    }

    #[test]
    fn a_part_of_a_name_means_the_only_name_that_has_it_at_an_end() {
        let known = ["filesetname", "toset", "target", "latency.p99", "fetch.read", "read.all"];
        assert_eq!(meant("fileset", known), Some("filesetname"));
        assert_eq!(meant("to", known), Some("toset"));
        assert_eq!(meant("p99", known), Some("latency.p99"));
        assert_eq!(nearest("fileset", known), None);
        // Two names, or one letter, say nothing.
        assert_eq!(meant("read", known), None);
        assert_eq!(meant("l", known), None);
        // A similar name comes first.
        assert_eq!(meant("reads", ["read", "all.reads"]), Some("read"));
        assert_eq!(meant("read", ["fetch.read", "read", "fetch.read"]), Some("fetch.read"));
    }

    #[test]
    fn a_mistyped_path_has_a_similar_entry() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("result.json"), "").unwrap();
        std::fs::create_dir(dir.path().join("results")).unwrap();
        let similar = |name: &str, of_directories| super::similar_path(&dir.path().join(name), of_directories);
        assert_eq!(similar("resultt.json", false), Some(dir.path().join("result.json")));
        assert_eq!(similar("reslts", true), Some(dir.path().join("results")));
        assert_eq!(
            (similar("reslts", false), similar("result.jsn", false)),
            (None, Some(dir.path().join("result.json")))
        );
        assert_eq!(similar("none/result.json", false), None);
    }
}
