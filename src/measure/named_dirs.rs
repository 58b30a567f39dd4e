//! The directories that an option of a run names, and the file systems of its file sets.

use super::{Front, Settings};
use crate::diag::{Failure, similar_path};
use crate::fileset::FilesetSpec;
use crate::os::held_dir::HeldDir;
use crate::plan::{self, Plan};
use std::path::{Path, PathBuf};

/// The directories of a run that an option names.
pub(crate) struct NamedDirs {
    option: &'static str,
    dirs: Vec<PathBuf>,
}

impl NamedDirs {
    /// Returns the directories of `--dir`, which may be a list.
    pub(crate) fn of_dir(dir: &str) -> Self {
        // An empty path in a list is an error of the file set that uses it.
        let is_named = |part: &&str| !part.is_empty() || dir.is_empty();
        let dirs = plan::listed_directories(dir, None).into_iter().filter(is_named).map(PathBuf::from);
        Self { option: "--dir", dirs: dirs.collect() }
    }

    /// Returns the directory of `--below`.
    pub(crate) fn of_below(below: &Path) -> Self {
        Self { option: "--below", dirs: vec![below.to_owned()] }
    }

    /// Checks that the directories that an option names exist: a mistyped mount point would measure another file system. With
    /// `--mkdir` they are created, on a file system that is allowed.
    pub(crate) fn check(&self, settings: &Settings, front: &mut dyn Front) -> Result<(), Failure> {
        for dir in self.missing(settings)? {
            settings.required.check(std::iter::once(dir.clone()))?;
            let shown = dir.display();
            HeldDir::create(&dir)
                .map_err(|e| Failure::refused(format!("can't create {shown}: {e}"), "name another directory"))?;
            front.note(&format!("created {shown} (`--mkdir`)"));
        }
        Ok(())
    }

    /// The directories that `--mkdir` is to create. An error if one does not exist without it.
    pub(crate) fn missing(&self, settings: &Settings) -> Result<Vec<PathBuf>, Failure> {
        let mut missing = Vec::new();
        if !settings.engine.real() {
            return Ok(missing);
        }
        let option = self.option;
        for dir in &self.dirs {
            let shown = dir.display();
            let (what, help) = match std::fs::metadata(dir) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => (format!("`{option} {shown}` is not a directory"), "name a directory".to_owned()),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && settings.mkdir => {
                    missing.push(dir.to_owned());
                    continue;
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    let near = similar_path(dir, true)
                        .map_or(String::new(), |near| format!("did you mean `{}`? ", near.display()));
                    (
                        format!("the directory `{shown}` of `{option}` does not exist"),
                        format!("{near}`--mkdir` creates it"),
                    )
                }
                Err(e) => (format!("`{option} {shown}`: {e}"), "name another directory".to_owned()),
            };
            return Err(Failure::refused(what, help));
        }
        Ok(missing)
    }
}

/// Checks that the file sets of a plan would be on file systems that are allowed.
pub(crate) fn check_file_systems(settings: &Settings, plan: &Plan) -> Result<(), Failure> {
    // The fresh directory of a run is created in the current directory.
    let place = |set: &FilesetSpec| if set.root().starts_with(plan::FRESH) { PathBuf::from(".") } else { set.root() };
    match settings.engine.real() {
        true => settings.required.check(plan.filesets.iter().map(place)),
        false => Ok(()),
    }
}

/// Creates a directory in the current one, with a name that no other has.
pub(crate) fn new_directory() -> Result<PathBuf, Failure> {
    let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    // The variable `$dir` is a text, in which such a path would become another one.
    if base.to_str().is_none() {
        let text = format!("the path of the current directory is not UTF-8: {}", base.display());
        return Err(Failure::refused(text, "give a directory with `--dir`"));
    }
    let held = HeldDir::open(Path::new("."));
    for n in 0..1000 {
        let name = format!("wmlrun-{}-{n}", std::process::id());
        let made = held.as_ref().map_err(ToString::to_string);
        match made.and_then(|held| held.make_dir(name.as_ref()).map_err(|e| e.to_string())) {
            Ok(Some(_)) => return Ok(base.join(name)),
            Ok(None) => {}
            Err(e) => {
                let text = format!("can't create a directory in {}: {e}", base.display());
                return Err(Failure::refused(text, "give a directory with `--dir`"));
            }
        }
    }
    let text = format!("{} has too many directories of other runs", base.display());
    Err(Failure::refused(text, "`wmlrun clean` removes them"))
}
