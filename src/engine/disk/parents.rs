//! The directories above the root of a file set, which are created if they are missing. Those that the user named may be
//! links of the user. Those on the way from the directory of `--below` to the root come from a script: none is a link.

use super::error::Error;
use crate::fileset::FilesetSpec;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};
use wml_os::Errno;
use wml_os::held_dir::{HeldDir, MadeDir};

/// Opens the directory `parent` of a set's root. Returns it with the directories that were created, the deepest first. On an
/// error they are removed again.
pub(super) fn open(spec: &FilesetSpec, parent: &Path) -> Result<(HeldDir, Vec<MadeDir>), Error> {
    let failed = |call, path: &Path, e: io::Error| match Errno::from_io_error(&e) {
        Some(e) => Error::call(&spec.name, call, path, e),
        None => Error::Link { set: spec.name.clone(), path: path.to_owned(), by_other: true },
    };
    let Some(base) = &spec.below else { return HeldDir::create(parent).map_err(|e| failed("create", parent, e)) };
    let mut dir = HeldDir::open(base).map_err(|e| failed("open", base, e))?;
    let mut made = Vec::new();
    let names = parent.strip_prefix(base).unwrap_or(Path::new("")).components();
    for name in names.filter(|part| matches!(part, Component::Normal(_))) {
        match enter(&spec.name, &dir, name.as_os_str(), &mut made) {
            Ok(entered) => dir = entered,
            Err(e) => {
                made.iter().all(MadeDir::remove);
                return Err(e);
            }
        }
    }
    Ok((dir, made))
}

/// Opens a subdirectory, which is created if it is missing.
fn enter(set: &str, dir: &HeldDir, name: &OsStr, made: &mut Vec<MadeDir>) -> Result<HeldDir, Error> {
    let (set, path) = (set.to_owned(), dir.path().join(name));
    // Not created at once: where the user may not write, some file systems refuse even what is there.
    let entered = match dir.enter_any(name) {
        Err(Errno::NOENT) => {
            let new = dir.make_dir(name);
            let failed = |e| Error::call(&set, "create", &path, Errno::from_io_error(&e).unwrap_or(Errno::IO));
            made.splice(0..0, new.map_err(failed)?);
            dir.enter_any(name)
        }
        entered => entered,
    };
    entered.map_err(|e| match e {
        Errno::LOOP => Error::Link { set, path, by_other: false },
        Errno::NOTDIR => Error::NotADirectory { set, path },
        e => Error::call(&set, "open", &path, e),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_way_is_created_and_leads_through_no_link() {
        let dir = tempfile::TempDir::new().unwrap();
        let base = dir.path().join("link to base");
        fs::create_dir_all(dir.path().join("base/there")).unwrap();
        symlink("base", &base).unwrap();
        symlink("there", base.join("link")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        let mut spec = FilesetSpec::new("s", "", 1, 0);
        spec.below = Some(base.clone());
        let open = |parent: &str| open(&spec, &base.join(parent)).map(|(_, made)| made);
        let paths = |made: Vec<MadeDir>| made.iter().map(|made| made.path().to_owned()).collect::<Vec<_>>();
        assert_eq!(paths(open("there/new/deep").unwrap()), [base.join("there/new/deep"), base.join("there/new")]);
        assert!(open("").unwrap().is_empty() && open("there/new").unwrap().is_empty());
        assert!(matches!(open("link"), Err(Error::Link { path, .. }) if path == base.join("link")));
        assert!(matches!(open("link/new"), Err(Error::Link { .. })));
        // Without `openat2` both have the same error.
        assert!(matches!(open("file/new"), Err(Error::NotADirectory { .. } | Error::Link { .. })));
        assert_eq!(fs::read_dir(base.join("there")).unwrap().count(), 1);
    }
}
