//! The results directory, which contains all files that scripts write.
//!
//! A path outside the directory is mapped to a path below it, unless the user allowed writing there. Below the
//! directory no symbolic link is followed: each component is opened separately, and the last one is created, or
//! replaced by a rename. An existing file is replaced only if the caller recognizes its contents as an output of the
//! same command. Otherwise the first free name of `NAME.1`, `NAME.2`, … is used.

use super::WriteTo;
use super::replace::write_all;
use crate::Errno;
use crate::held_dir::{HeldDir, MadeDir};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Maximum number of names that are tried for one file.
const MAX_NAMES: u32 = 10_000;

/// Bytes of an existing file that are passed to the caller for recognition.
const HEAD_LEN: u64 = 64 << 10;

/// The results directory, and the other locations where scripts may write. A clone has the same directories open.
#[derive(Clone, Debug)]
pub struct Results {
    base: PathBuf,
    allowed: Vec<PathBuf>,
    /// The directories that are held, by their absolute paths: from the first look at each of them.
    held: Arc<Mutex<BTreeMap<PathBuf, HeldDir>>>,
}

/// The destination of a path in a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultPlace {
    /// The results directory or an allowed directory, absolute.
    root: PathBuf,
    /// The path below `root`; contains normal components only.
    below: PathBuf,
    /// Whether the destination differs from the path in the script.
    pub mapped: bool,
    /// The path that the script asked for, absolute.
    pub asked: PathBuf,
}

impl ResultPlace {
    /// Returns the absolute path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }
}

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    pub path: PathBuf,
    /// Whether a number was appended to the name, because the requested name belongs to a file that must not be
    /// replaced.
    pub renamed: bool,
}

/// Returns the normal components of a path; `..` removes the component before it.
fn normalized(path: &Path) -> PathBuf {
    let mut names: Vec<&OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => drop(names.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names.into_iter().collect()
}

/// Returns the absolute form of a path, without `.` and `..`. Symbolic links are not resolved.
fn absolute(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Path::new("/").join(normalized(&whole))
}

impl Results {
    /// Creates a results directory at `base`. Paths equal to or below one of `allowed` are not mapped.
    pub fn new(base: &Path, allowed: &[PathBuf]) -> Self {
        let allowed = allowed.iter().map(|path| absolute(path)).collect();
        Self { base: absolute(base), allowed, held: Arc::default() }
    }

    /// Returns the absolute path of the directory.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Checks that the directory is writable, or can be created. Creates nothing.
    pub fn check(&self) -> io::Result<()> {
        match self.hold(&self.base) {
            // The directory is created together with the first file, but its missing parents are not.
            Err(error) if error.kind() == ErrorKind::NotFound => self.hold(self.parent()?)?.check_writable(),
            dir => dir?.check_writable(),
        }
    }

    /// Opens the other locations where scripts may write, if they exist. An error names the location.
    pub fn check_allowed(&self) -> Result<(), (&Path, io::Error)> {
        for allowed in &self.allowed {
            // A directory, or the one of a file.
            let held = self.hold(allowed).or_else(|error| match (error.kind(), allowed.parent()) {
                (ErrorKind::NotADirectory | ErrorKind::NotFound, Some(parent)) => self.hold(parent),
                _ => Err(error),
            });
            match held {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err((allowed, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns an error if a directory that was opened has been moved, removed or replaced since.
    pub fn check_in_place(&self) -> io::Result<()> {
        self.held.lock().values().try_for_each(HeldDir::check_in_place)
    }

    /// Opens a directory by its absolute path, unless it is open already.
    fn hold(&self, path: &Path) -> io::Result<HeldDir> {
        if let Some(dir) = self.held.lock().get(path) {
            return Ok(dir.clone());
        }
        let dir = HeldDir::open(path)?;
        Ok(self.held.lock().entry(path.to_owned()).or_insert(dir).clone())
    }

    /// Returns the parent of the results directory.
    fn parent(&self) -> io::Result<&Path> {
        self.base.parent().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Returns the directory in which the path of a destination begins. The results directory is created.
    fn root(&self, place: &ResultPlace) -> io::Result<HeldDir> {
        match self.hold(&place.root) {
            Err(error) if error.kind() == ErrorKind::NotFound && place.root == self.base => {
                let parent = self.hold(self.parent()?)?;
                let dir = parent.enter_or_make(self.base.file_name().unwrap_or_default())?;
                Ok(self.held.lock().entry(place.root.clone()).or_insert(dir).clone())
            }
            held => held,
        }
    }

    /// Returns the destination of a path in a script. A relative path is relative to the results directory.
    pub fn place(&self, wanted: &Path) -> ResultPlace {
        self.place_at(absolute(&self.base.join(wanted)), wanted)
    }

    /// Returns the destination of a path that is relative to `dir`, a destination returned by [`Self::place`].
    pub fn place_in(&self, dir: &ResultPlace, wanted: &Path) -> ResultPlace {
        if wanted.is_absolute() {
            return self.place(wanted);
        }
        let asked = absolute(&dir.path().join(wanted));
        match asked.strip_prefix(dir.path()) {
            Ok(below) => ResultPlace { root: dir.root.clone(), below: dir.below.join(below), mapped: false, asked },
            Err(_) => self.place_at(asked, wanted),
        }
    }

    fn place_at(&self, asked: PathBuf, wanted: &Path) -> ResultPlace {
        if let Ok(below) = asked.strip_prefix(&self.base) {
            return ResultPlace { root: self.base.clone(), below: below.to_owned(), mapped: false, asked };
        }
        for allowed in &self.allowed {
            let Ok(below) = asked.strip_prefix(allowed) else { continue };
            let (root, below) = match (below.as_os_str().is_empty(), allowed.parent(), allowed.file_name()) {
                // The allowed path itself: a file, unless a directory exists there.
                (true, Some(parent), Some(name)) if self.hold(allowed).is_err() => {
                    (parent.to_owned(), PathBuf::from(name))
                }
                _ => (allowed.clone(), below.to_owned()),
            };
            return ResultPlace { root, below, mapped: false, asked };
        }
        ResultPlace { root: self.base.clone(), below: normalized(wanted), mapped: true, asked }
    }

    /// Creates a directory and its missing parents. Returns those that were created, the deepest first.
    pub fn make_dir(&self, place: &ResultPlace) -> io::Result<Vec<MadeDir>> {
        let mut made = Vec::new();
        self.open_dir(place, &place.below, &mut made)?;
        Ok(made)
    }

    /// Creates a new directory with this name or, if that exists, `NAME.N`.
    pub fn make_new_dir(&self, place: &ResultPlace) -> io::Result<HeldDir> {
        let (parent, name) = split(place)?;
        let dir = self.open_dir(place, parent, &mut Vec::new())?;
        for n in 0..MAX_NAMES {
            let name = numbered_name(name, n);
            match dir.make_new_dir(&name) {
                Ok(()) => return Ok(dir.enter_any(&name)?),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Writes a file. An existing file is replaced if `is_own` returns `true` for its first bytes, which means that the
    /// same command wrote it.
    pub fn write(&self, place: &ResultPlace, is_own: &dyn Fn(&[u8]) -> bool, write: WriteTo<'_>) -> io::Result<Placed> {
        let (parent, name) = split(place)?;
        let mut new = self.open_dir(place, parent, &mut Vec::new())?.temporary(".wmlrun".into())?;
        write_all(new.file(), 0, write)?;
        new.file().sync_all()?;
        let from = new.name()?.to_owned();
        for n in 0..MAX_NAMES {
            let name = numbered_name(name, n);
            if publish(new.dir(), &from, &name, is_own)? {
                new.renamed()?;
                return Ok(Placed { path: place.root.join(parent).join(name), renamed: n > 0 });
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Creates an empty file. An existing file is never replaced: the first free name of `NAME.1`, `NAME.2`, … is used.
    /// Returns the file, its directory and its name.
    pub(super) fn create(&self, place: &ResultPlace) -> io::Result<(File, HeldDir, OsString)> {
        let (parent, name) = split(place)?;
        let dir = self.open_dir(place, parent, &mut Vec::new())?;
        let mut new = dir.temporary(".wmlrun".into())?;
        let from = new.name()?.to_owned();
        for n in 0..MAX_NAMES {
            let name = numbered_name(name, n);
            if publish(new.dir(), &from, &name, &|_| false)? {
                return Ok((new.renamed()?, dir, name));
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Opens a directory below the root of a destination. Creates missing components, and adds them to `made`, the deepest
    /// first.
    fn open_dir(&self, place: &ResultPlace, below: &Path, made: &mut Vec<MadeDir>) -> io::Result<HeldDir> {
        let mut dir = self.root(place)?;
        for name in below {
            dir = match dir.enter_any(name) {
                Err(Errno::NOENT) => {
                    made.splice(0..0, dir.make_dir(name)?);
                    dir.enter_any(name)?
                }
                Err(Errno::LOOP) => {
                    let message = format!("`{}` is a symbolic link", name.display());
                    return Err(io::Error::new(ErrorKind::NotADirectory, message));
                }
                other => other?,
            };
        }
        Ok(dir)
    }
}

/// Splits a destination into its parent directory, relative to the root, and its name.
fn split(place: &ResultPlace) -> io::Result<(&Path, &OsStr)> {
    let name = place.below.file_name().ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
    Ok((place.below.parent().unwrap_or(Path::new("")), name))
}

/// Returns `NAME` for 0, otherwise `NAME.n`.
fn numbered_name(name: &OsStr, n: u32) -> OsString {
    let mut name = name.to_owned();
    if n > 0 {
        name.push(format!(".{n}"));
    }
    name
}

/// Renames the temporary file to `name`, if that name is free or belongs to a file that may be replaced. Returns
/// whether it did.
fn publish(dir: &HeldDir, temporary: &OsStr, name: &OsStr, is_own: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
    if may_replace(dir, name, is_own) {
        dir.rename(temporary, name)?;
        return Ok(true);
    }
    match dir.rename_new(temporary, name) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// True if `name` is a regular file that the caller recognizes. Links, pipes and devices are never opened.
fn may_replace(dir: &HeldDir, name: &OsStr, is_own: &dyn Fn(&[u8]) -> bool) -> bool {
    let Some(file) = dir.open_regular(name) else { return false };
    let mut head = Vec::new();
    file.take(HEAD_LEN).read_to_end(&mut head).is_ok() && is_own(&head)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn is_own(head: &[u8]) -> bool {
        head.starts_with(b"ours")
    }

    fn put(results: &Results, wanted: &str) -> io::Result<Placed> {
        results.write(&results.place(Path::new(wanted)), &is_own, &mut |out| out.write_all(b"ours, new"))
    }

    #[test]
    fn paths_are_mapped_below_the_results_directory() {
        let results = Results::new(Path::new("/r/e"), &["/ok".into()]);
        let at = |wanted: &str| results.place(Path::new(wanted)).path().display().to_string();
        for (wanted, path) in [
            ("x", "/r/e/x"),
            ("a/../b", "/r/e/b"),
            ("../../x", "/r/e/x"),
            ("../f/x", "/r/e/f/x"),
            ("/etc/passwd", "/r/e/etc/passwd"),
            ("/r/e/x", "/r/e/x"),
            ("/r/ee/x", "/r/e/r/ee/x"),
            ("/ok/x", "/ok/x"),
            ("/ok/../etc/x", "/r/e/etc/x"),
            ("/okay/x", "/r/e/okay/x"),
            ("../../ok/x", "/ok/x"),
        ] {
            assert_eq!(at(wanted), path, "{wanted}");
        }
        assert!(results.place(Path::new("/etc/passwd")).mapped && !results.place(Path::new("a/b")).mapped);
        let dir = results.place(Path::new("d"));
        assert_eq!(results.place_in(&dir, Path::new("x")).path(), Path::new("/r/e/d/x"));
        assert_eq!(results.place_in(&dir, Path::new("../x")).path(), Path::new("/r/e/x"));
        assert_eq!(results.place_in(&dir, Path::new("../../../x")).path(), Path::new("/r/e/x"));
    }

    #[test]
    fn only_own_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let results = Results::new(dir.path(), &[]);
        fs::write(at("own"), "ours, old").unwrap();
        fs::hard_link(at("own"), at("own-too")).unwrap();
        fs::write(at("foreign"), "theirs").unwrap();
        symlink("foreign", at("link")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["foreign", "link", "dir", "pipe"] {
            let placed = put(&results, name).unwrap();
            assert_eq!((placed.path, placed.renamed), (at(&format!("{name}.1")), true));
            // The second write replaces the file of the first one.
            assert_eq!(put(&results, name).unwrap().path, at(&format!("{name}.1")));
        }
        assert!(!put(&results, "own").unwrap().renamed && !put(&results, "a/b/new").unwrap().renamed);
        assert_eq!(fs::read(at("own-too")).unwrap(), b"ours, old", "the other hard link keeps the old contents");
        assert_eq!(fs::read(at("foreign")).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let hidden = fs::read_dir(dir.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
        assert_eq!(hidden.count(), 0, "temporary files are removed");
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), dir.path().join("out")).unwrap();
        symlink(dir.path(), other.path().join("named")).unwrap();
        let results = Results::new(dir.path(), &[]);
        assert!(put(&results, "out/x").unwrap_err().to_string().contains("symbolic link"));
        assert!(results.make_dir(&results.place(Path::new("out/d"))).is_err());
        // A link in the path that the user named is followed.
        put(&Results::new(&other.path().join("named"), &[]), "x").unwrap();
        assert!(dir.path().join("x").is_file());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
        assert_eq!(put(&results, "").unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}
