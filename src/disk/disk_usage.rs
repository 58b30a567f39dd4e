//! How big a tree is by now: its files have grown and shrunk since they were made.

use std::path::Path;

/// Bytes of the files below a directory, by their lengths. None if there are more than `most` entries, or one can't be read:
/// no answer is worth waiting for long.
pub fn bytes(dir: &Path, most: usize) -> Option<u64> {
    let (mut bytes, mut entries) = (0, 0);
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            entries += 1;
            crate::os::steps::count();
            if entries > most {
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
    fn lengths_of_files_however_deep_are_summed_and_links_are_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(dir.path().join("one"), [0; 10]).unwrap();
        fs::write(deep.join("two"), [0; 32]).unwrap();
        std::os::unix::fs::symlink("/proc", deep.join("link")).unwrap();
        assert_eq!(bytes(dir.path(), 5), Some(42));
        assert_eq!(bytes(dir.path(), 4), None, "too many to look at");
        assert_eq!(bytes(&dir.path().join("none"), 5), None);
    }
}
