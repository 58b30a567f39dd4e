//! Starts the ranks of a run on several hosts: by which launcher and with which words, and whether each host has the same
//! build.
//!
//! Hosts are asked over the launcher itself, by a few lines for the shell, so that one without wmlrun answers too. Not in
//! here: what ranks exchange (`ranks`).

mod answer;
mod build;
mod fitness;
mod list;
mod starter;

pub(crate) use fitness::examine_hosts;
pub(crate) use list::HostList;
pub(crate) use starter::Starter;

use std::path::{Component, Path, PathBuf};

/// The program with MPI, as packages install it.
const PROGRAM: &str = "wmlrun-mpi";

/// The same directory as a path that does not depend on the current one: a host without that would take its home directory.
/// `None` if there is no current directory, or the path is empty.
pub(crate) fn whole_path(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().peekable();
    parts.peek()?;
    let mut whole = std::env::current_dir().ok()?;
    // `.` can only be the first part. The current directory is named without links, so its parent is the path without the
    // last name. Further down, a name may be a link, and `..` stays.
    let _ = parts.next_if_eq(&Component::CurDir);
    if parts.peek() != Some(&Component::ParentDir) {
        whole = path_of_shell(&whole).unwrap_or(whole);
    }
    while parts.next_if_eq(&Component::ParentDir).is_some() {
        whole.pop();
    }
    whole.extend(parts);
    Some(whole)
}

/// The current directory as the user's shell names it, if `PWD` is that directory. On a cluster it is often below a link
/// whose target has another name on each host.
fn path_of_shell(current: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("PWD")?);
    let is_same = path.is_absolute() && std::fs::canonicalize(&path).is_ok_and(|same| same == current);
    is_same.then_some(path)
}
