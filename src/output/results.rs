//! The results directory: everything that a script writes lies below it.
//!
//! A path that leads elsewhere is mapped below it, unless the user allowed that place. Below the directory no link is followed:
//! each component is opened by itself, the last one is new or replaced by a rename. A file that is there already is replaced
//! only if the caller knows its content for what the same command wrote; else the next free `NAME.N` is taken.

use super::WriteTo;
use super::replace::write_all;
use crate::os::temporary::Temporary;
use crate::os::{Errno, handle};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Names that are tried for one file.
const NAMES: u32 = 10_000;

/// Bytes of an existing file that are looked at.
const LOOKED_AT: u64 = 64 << 10;

/// Where a script's files go.
#[derive(Clone, Debug)]
pub struct Results {
    base: PathBuf,
    allowed: Vec<PathBuf>,
}

/// Where a path of a script leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultPlace {
    /// The directory that the user named, absolute.
    root: PathBuf,
    /// The rest: plain names.
    below: PathBuf,
    /// It is not where the script says.
    pub mapped: bool,
    /// Where the script says, absolute.
    pub asked: PathBuf,
}

impl ResultPlace {
    /// The whole path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }
}

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Where it is.
    pub path: PathBuf,
    /// Its own name was taken by a file that is not replaced.
    pub renamed: bool,
}

/// The plain names of a path, `..` taken together with the name before it.
fn plain(path: &Path) -> PathBuf {
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

/// An absolute path without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Path::new("/").join(plain(&whole))
}

impl Results {
    /// Below `base`; what lies below one of `allowed`, or is one, is where a script says.
    pub fn new(base: &Path, allowed: &[PathBuf]) -> Self {
        Self { base: absolute(base), allowed: allowed.iter().map(|path| absolute(path)).collect() }
    }

    /// The directory, absolute.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Checks that the directory is one, or can be made, and makes nothing.
    pub fn check(&self) -> io::Result<()> {
        match std::fs::metadata(&self.base) {
            Ok(meta) if !meta.is_dir() => return Err(ErrorKind::NotADirectory.into()),
            Ok(_) => handle::check_writable(&self.base)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // It is made with the first file: one directory, not those above it.
                let above = self.base.parent().unwrap_or(Path::new("/"));
                handle::check_writable(above)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Where a path of a script leads: relative ones begin at the results directory.
    pub fn place(&self, wanted: &Path) -> ResultPlace {
        self.place_at(absolute(&self.base.join(wanted)), wanted)
    }

    /// Where a path leads that begins at a directory of [`Self::place`].
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
                // The path itself: a file, unless it is a directory.
                (true, Some(above), Some(name)) if !allowed.is_dir() => (above.to_owned(), PathBuf::from(name)),
                _ => (allowed.clone(), below.to_owned()),
            };
            return ResultPlace { root, below, mapped: false, asked };
        }
        ResultPlace { root: self.base.clone(), below: plain(wanted), mapped: true, asked }
    }

    /// Makes a directory with all above it.
    pub fn make_dir(&self, place: &ResultPlace) -> io::Result<()> {
        self.open_dir(place, &place.below).map(drop)
    }

    /// Makes a directory that was not there before, of this name or, if that is taken, `NAME.N`.
    pub fn make_new_dir(&self, place: &ResultPlace) -> io::Result<PathBuf> {
        let (above, name) = split(place)?;
        let dir = self.open_dir(place, above)?;
        for n in 0..NAMES {
            let name = numbered(name, n);
            match handle::make_dir(&dir, &name) {
                Ok(()) => return Ok(place.root.join(above).join(name)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Writes a file. One that is there is replaced if `ours` says of its first bytes that the same command wrote them.
    pub fn write(&self, place: &ResultPlace, ours: &dyn Fn(&[u8]) -> bool, write: WriteTo<'_>) -> io::Result<Placed> {
        let (above, name) = split(place)?;
        let dir = self.open_dir(place, above)?;
        let mut new = Temporary::new(dir, format!(".wmlrun-{}.tmp", std::process::id()).into())?;
        write_all(new.file(), 0, write)?;
        new.file().sync_all()?;
        let from = new.name()?.to_owned();
        for n in 0..NAMES {
            let name = numbered(name, n);
            if moved(new.dir(), &from, &name, ours)? {
                new.renamed()?;
                return Ok(Placed { path: place.root.join(above).join(name), renamed: n > 0 });
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Opens a directory below the root of a place, made where it is not there.
    fn open_dir(&self, place: &ResultPlace, below: &Path) -> io::Result<OwnedFd> {
        // The root is the user's word: links in it are followed.
        let mut dir = match handle::open_dir(&place.root) {
            Err(Errno::NOENT) if place.root == self.base => {
                std::fs::create_dir(&place.root)?;
                handle::open_dir(&place.root)?
            }
            other => other?,
        };
        for name in below {
            dir = match handle::enter_dir(&dir, name) {
                Err(Errno::NOENT) => {
                    match handle::make_dir(&dir, name) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    handle::enter_dir(&dir, name)?
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

/// Directory above a place, and its name.
fn split(place: &ResultPlace) -> io::Result<(&Path, &OsStr)> {
    let name = place.below.file_name().ok_or_else(|| io::Error::from(ErrorKind::IsADirectory))?;
    Ok((place.below.parent().unwrap_or(Path::new("")), name))
}

/// `NAME`, then `NAME.1`, `NAME.2`, …
fn numbered(name: &OsStr, n: u32) -> OsString {
    let mut name = name.to_owned();
    if n > 0 {
        name.push(format!(".{n}"));
    }
    name
}

/// Gives the temporary a name, if that is free or bears what may be replaced.
fn moved(dir: &OwnedFd, temporary: &OsStr, name: &OsStr, ours: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
    if may_replace(dir, name, ours) {
        handle::rename(dir, temporary, name)?;
        return Ok(true);
    }
    match handle::rename_new(dir, temporary, name) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a name bears a regular file that the caller knows. Links, pipes and devices are never looked into.
fn may_replace(dir: &OwnedFd, name: &OsStr, ours: &dyn Fn(&[u8]) -> bool) -> bool {
    let Some(file) = handle::open_regular(dir, name) else { return false };
    let mut head = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut head).is_ok() && ours(&head)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn ours(head: &[u8]) -> bool {
        head.starts_with(b"ours")
    }

    fn put(results: &Results, wanted: &str) -> io::Result<Placed> {
        results.write(&results.place(Path::new(wanted)), &ours, &mut |out| out.write_all(b"ours, new"))
    }

    #[test]
    fn every_path_leads_below_the_directory() {
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
    fn only_what_is_ours_is_replaced() {
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
            // The second time the first of ours.
            assert_eq!(put(&results, name).unwrap().path, at(&format!("{name}.1")));
        }
        assert!(!put(&results, "own").unwrap().renamed && !put(&results, "a/b/new").unwrap().renamed);
        assert_eq!(fs::read(at("own-too")).unwrap(), b"ours, old", "the other name keeps its file");
        assert_eq!(fs::read(at("foreign")).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let hidden = fs::read_dir(dir.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
        assert_eq!(hidden.count(), 0, "no temporary stays");
    }

    #[test]
    fn no_link_leads_out_of_it() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), dir.path().join("out")).unwrap();
        symlink(dir.path(), other.path().join("named")).unwrap();
        let results = Results::new(dir.path(), &[]);
        assert!(put(&results, "out/x").unwrap_err().to_string().contains("symbolic link"));
        assert!(results.make_dir(&results.place(Path::new("out/d"))).is_err());
        // A link that the user named is the user's word.
        put(&Results::new(&other.path().join("named"), &[]), "x").unwrap();
        assert!(dir.path().join("x").is_file());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
        assert_eq!(put(&results, "").unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}
