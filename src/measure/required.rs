//! The file systems on which a run is allowed (`--require-fs`, `--require-mount`). They are checked before each run,
//! before any file is created: if a `mount` has failed, the run would measure the file system below the mount point.

use super::environment;
use crate::diag::Failure;
use crate::util::printable;
use std::path::{Path, PathBuf};

/// Requirements on the file system of every file set. The default allows any.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Required {
    /// The types of which it must have one, such as `xfs`; empty for any type.
    pub types: Vec<String>,
    /// The path at which it must be mounted. The empty path allows any mount point but `/`.
    pub mount: Option<PathBuf>,
}

impl Required {
    /// Checks that the roots of file sets, which need not exist, are on such a file system.
    pub(super) fn check(&self, roots: impl Iterator<Item = PathBuf>) -> Result<(), Failure> {
        if self.types.is_empty() && self.mount.is_none() {
            return Ok(());
        }
        for root in roots {
            let Some(mount) = environment::mount(&root) else {
                let what = format!("the mount of `{}` can't be determined", printable::path(&root));
                return Err(Failure::refused(what, "check that /proc is mounted"));
            };
            let allowed = self.allows(&root, &mount.kind, Path::new(&mount.path));
            allowed.map_err(|(what, help)| Failure::refused(what, help))?;
        }
        Ok(())
    }

    /// True if a root may be on a file system of type `kind` that is mounted at `at`. `Err` holds the error and
    /// its help.
    fn allows(&self, root: &Path, kind: &str, at: &Path) -> Result<(), (String, String)> {
        let (shown, mounted) = (printable::path(root), printable::path(at));
        if !self.types.is_empty() && self.types.iter().all(|wanted| wanted != kind) {
            let wanted = self.types.join(" or ");
            let what = format!("`{shown}` is on {kind} (mounted at {mounted}), but `--require-fs` requires {wanted}");
            return Err((what, "check that the file system is mounted (`findmnt`)".to_owned()));
        }
        let Some(wanted) = &self.mount else { return Ok(()) };
        let here = if wanted.as_os_str().is_empty() {
            at != Path::new("/")
        } else {
            std::fs::canonicalize(wanted).is_ok_and(|wanted| wanted == at)
        };
        if here {
            return Ok(());
        }
        let choose = "choose a directory of it with `--dir`";
        let (mounted_at, at) = (at, printable::path(wanted));
        let here = format!("`{shown}` is on the file system that is mounted at {mounted}");
        Err(match wanted.as_os_str().is_empty() {
            true => (
                format!("{here}, and `--require-mount` requires another one"),
                format!("mount the file system first, or {choose}"),
            ),
            false if is_mounted_at(wanted) => {
                (format!("{here}, not at {at} as `--require-mount={at}` requires"), choose.to_owned())
            }
            false => {
                let what = format!("nothing is mounted at {at}, as `--require-mount={at}` requires");
                let help =
                    format!("mount the file system first: without it, `{shown}` is on the file system at {mounted}");
                let only = format!("; if {at} is only a directory of it, give `--require-mount={mounted}`");
                (what, if is_below(wanted, mounted_at) { help + &only } else { help })
            }
        })
    }
}

/// True if a path is below a mount point other than that of the root.
fn is_below(path: &Path, mount: &Path) -> bool {
    mount != Path::new("/") && std::fs::canonicalize(path).is_ok_and(|path| path.starts_with(mount))
}

/// True if a path is a mount point.
pub(crate) fn is_mounted_at(path: &Path) -> bool {
    std::fs::canonicalize(path)
        .is_ok_and(|path| environment::mount(&path).is_some_and(|mount| path == Path::new(&mount.path)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn required(types: &[&str], mount: Option<&str>) -> Required {
        Required { types: types.iter().map(|&t| t.to_owned()).collect(), mount: mount.map(PathBuf::from) }
    }

    #[test]
    fn type_and_mount_point_are_required() {
        let allows = |required: Required, kind: &str, at: &str| required.allows(Path::new("/x/d"), kind, Path::new(at));
        assert!(allows(required(&[], None), "ext4", "/").is_ok());
        assert!(allows(required(&["xfs", "ext4"], None), "ext4", "/").is_ok());
        let (what, _) = allows(required(&["xfs", "btrfs"], None), "ext4", "/").unwrap_err();
        assert_eq!(what, "`/x/d` is on ext4 (mounted at /), but `--require-fs` requires xfs or btrfs");
        assert!(allows(required(&[], Some("")), "ext4", "/x").is_ok());
        assert!(allows(required(&[], Some("")), "ext4", "/").is_err());
        assert!(allows(required(&[], Some("/proc/..")), "ext4", "/").is_ok(), "another name of the mount point");
        let (what, help) = allows(required(&[], Some("/absent")), "ext4", "/").unwrap_err();
        assert_eq!(what, "nothing is mounted at /absent, as `--require-mount=/absent` requires");
        assert_eq!(help, "mount the file system first: without it, `/x/d` is on the file system at /");
        let (_, help) = allows(required(&[], Some("/proc/sys")), "proc", "/proc").unwrap_err();
        assert!(help.starts_with("mount the file system first: "), "{help}");
        assert!(help.ends_with("; if /proc/sys is only a directory of it, give `--require-mount=/proc`"), "{help}");
        // The root directory of a chroot may be no mount point.
        let (what, help) = allows(required(&[], Some("/proc")), "ext4", "/x").unwrap_err();
        assert_eq!(
            what,
            "`/x/d` is on the file system that is mounted at /x, not at /proc as `--require-mount=/proc` requires"
        );
        assert_eq!(help, "choose a directory of it with `--dir`");
    }
}
