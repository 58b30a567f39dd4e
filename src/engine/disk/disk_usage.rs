//! The current size of a tree, whose files may have been resized since they were created.

use std::path::Path;
use wml_os::reading;

/// Returns the sum of the lengths of all files below a directory, in bytes.
///
/// `None` when there are more than `max_entries` entries, which bounds the time that this takes, or when an entry can't
/// be read.
pub fn bytes(dir: &Path, max_entries: usize) -> Option<u64> {
    let (mut bytes, mut entries) = (0, 0);
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in reading::entries(&dir).ok()? {
            entries += 1;
            wml_os::steps::count();
            if entries > max_entries {
                return None;
            }
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                bytes += entry.metadata().ok()?.len();
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::bytes;
    use std::fs;

    #[test]
    fn lengths_of_files_are_summed_recursively_and_links_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(dir.path().join("one"), [0; 10]).unwrap();
        fs::write(deep.join("two"), [0; 32]).unwrap();
        std::os::unix::fs::symlink("/proc", deep.join("link")).unwrap();
        assert_eq!(bytes(dir.path(), 5), Some(42));
        assert_eq!(bytes(dir.path(), 4), None, "too many entries");
        assert_eq!(bytes(&dir.path().join("none"), 5), None);
    }
}
