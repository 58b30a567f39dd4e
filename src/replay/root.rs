//! The directory of a replay: who owns it, what may be removed from it, and what is made in it before the first call.
//!
//! Beside the directory is a list of all names that the replay will ever make, with a digest. It is written before the first
//! of them is made. Before another replay, exactly these names are removed; anything else that is found is another
//! program's, and nothing is touched.

use crate::plan::ReplayPlan;
use crate::tree::{FileKind, NOTHING};
use crate::wish::ReplayStop;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{CString, OsStr};
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wml_os::fd::{self, Fd};
use wml_os::held_dir::HeldDir;
use wml_os::output::replace_in;
use wml_os::{Errno, FileType, Mode, NONE, OFlags, as_given, reading, steps};
use wml_trace::PathId;

/// The directory, and the list beside it.
pub const REPLAY_ROOT: &str = "wmlrun-replay";
const LIST: &str = "wmlrun-replay.names";
const FORMAT: &str = "wmlrun-replay 1";
/// The longest list.
const MOST_LIST: u64 = 4 << 30;
/// The permissions of what is made.
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);
/// Content is written in such parts.
const PART: usize = 1 << 20;
/// The shortest write.
const PAGE: usize = 4096;

/// The directory, held and locked.
#[derive(Debug)]
pub(crate) struct ReplayRoot {
    pub(crate) dir: HeldDir,
    lock: Fd,
}

impl Drop for ReplayRoot {
    fn drop(&mut self) {
        fd::unlock(self.lock);
    }
}

fn raw(dir: &HeldDir) -> Fd {
    dir.as_fd().as_raw_fd()
}

fn foreign(path: &Path, why: &str) -> ReplayStop {
    ReplayStop::Foreign(format!("`{}` {why}", path.display()))
}

impl ReplayRoot {
    /// Takes the directory below `dir`, and empties it.
    pub(crate) fn take(dir: &Path) -> Result<(Self, HeldDir), ReplayStop> {
        let above = HeldDir::open(dir)?;
        let name = OsStr::new(REPLAY_ROOT);
        above.make_dir(name)?;
        let path = dir.join(REPLAY_ROOT);
        let held = above.enter(name)?.ok_or_else(|| foreign(&path, "is no directory of its own"))?;
        let lock = fd::open_beneath(raw(&held), c".", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let own = Self { dir: held, lock };
        if let Err(error) = fd::lock(lock) {
            return Err(match error {
                Errno::WOULDBLOCK => foreign(&path, "is in use by another replay"),
                error => error.into(),
            });
        }
        if !own.dir.entries()?.is_empty() {
            let names = own.list(&above).ok_or_else(|| foreign(&path, "is not empty, and wmlrun has no list of it"))?;
            check(&own.dir, &mut Vec::new(), &names)?;
            remove(&own.dir, &mut Vec::new(), &names)?;
        }
        Ok((own, above))
    }

    /// The names of the list, if it is whole and is of this directory.
    fn list(&self, above: &HeldDir) -> Option<BTreeSet<Vec<u8>>> {
        let file = above.open_regular(OsStr::new(LIST))?;
        let bytes = reading::read_open(&file, MOST_LIST).ok()?;
        let end = bytes.iter().position(|c| *c == b'\n')?;
        let names = &bytes[end + 1..];
        (bytes[..end] == *self.head(names)?.as_bytes())
            .then(|| names.split(|c| *c == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The first line of a list.
    fn head(&self, names: &[u8]) -> Option<String> {
        let inode = fd::fstat(self.lock).ok()?.inode;
        let mut head = format!("{FORMAT} {inode} ");
        for byte in Sha256::digest(names) {
            let _ = write!(head, "{byte:02x}");
        }
        Some(head)
    }

    /// Writes the list of all names that a plan makes, and makes those of the beginning. Returns the paths of the directories
    /// among them, by their numbers.
    pub(crate) fn fill(
        &self,
        above: &HeldDir,
        plan: &mut ReplayPlan,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Option<CString>>, ReplayStop> {
        let paths = initial_paths(plan);
        for (_, path, _) in &paths {
            plan.tree.paths.resolve(PathId::ROOT, path);
        }
        let mut names = Vec::new();
        for path in (2..plan.tree.paths.len() as u32).map(|n| plan.tree.paths.path(PathId(n))) {
            names.extend_from_slice(&path[1..]);
            names.push(0);
        }
        let head = self.head(&names).ok_or(Errno::IO)?;
        replace_in(above, OsStr::new(LIST), &mut |out| {
            out.write_all(head.as_bytes())?;
            out.write_all(b"\n")?;
            out.write_all(&names)
        })?;
        self.make(plan, &paths, seed, stop)
    }

    fn make(
        &self,
        plan: &ReplayPlan,
        paths: &[(u32, Vec<u8>, u32)],
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Option<CString>>, ReplayStop> {
        let mut dirs: Vec<Option<CString>> = plan.tree.nodes.iter().map(|_| None).collect();
        dirs[crate::tree::ROOT as usize] = Some(CString::default());
        let mut made: HashMap<u32, &[u8]> = HashMap::new();
        let mut open = (NOTHING, NONE);
        let content = content(seed);
        let text = vec![b'x'; crate::call::LONGEST_LINK];
        let mut all = || -> Result<(), Errno> {
            for (dir, path, node) in paths.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
                steps::count();
                if open.0 != *dir {
                    if open.1 != NONE {
                        fd::close(std::mem::replace(&mut open.1, NONE));
                    }
                    open = (*dir, open_dir(raw(&self.dir), dirs[*dir as usize].as_deref().ok_or(Errno::NOENT)?)?);
                }
                let name = path.rsplit(|c| *c == b'/').next().unwrap_or_default();
                let name = CString::new(name).map_err(|_| Errno::INVAL)?;
                let file = &plan.tree.nodes[*node as usize];
                match file.kind {
                    FileKind::Directory => {
                        fd::mkdir_at(open.1, &name, DIR_MODE)?;
                        dirs[*node as usize] = Some(CString::new(&path[..]).map_err(|_| Errno::INVAL)?);
                    }
                    FileKind::Link => {
                        let length = (file.first_size as usize).clamp(1, text.len());
                        let text = CString::new(&text[..length]).map_err(|_| Errno::INVAL)?;
                        fd::symlink_at(&text, open.1, &name)?;
                    }
                    FileKind::Pipe => as_given::make_pipe(open.1, &name)?,
                    FileKind::File | FileKind::Unknown => match made.get(node) {
                        Some(first) => {
                            let first = CString::new(*first).map_err(|_| Errno::INVAL)?;
                            let (above, last) = split(&first)?;
                            let from = open_dir(raw(&self.dir), &above)?;
                            let linked = fd::link_at(from, &last, open.1, &name);
                            fd::close(from);
                            linked?;
                        }
                        None => {
                            // Pages that were written together stay together in memory, and large groups cost more to change.
                            let part = plan.writes.get(node).map_or(PART, |part| (*part as usize).clamp(PAGE, PART));
                            let part = part.next_multiple_of(PAGE);
                            write_file(open.1, &name, (file.first_size, part), (&content[..], stop))?;
                            made.insert(*node, path);
                        }
                    },
                }
            }
            Ok(())
        };
        let done = all();
        if open.1 != NONE {
            fd::close(open.1);
        }
        done?;
        if stop.load(Ordering::Relaxed) { Err(ReplayStop::BrokenOff) } else { Ok(dirs) }
    }
}

/// The directory and the name of a path below the root.
fn split(path: &CString) -> Result<(CString, CString), Errno> {
    let bytes = path.to_bytes();
    let at = bytes.iter().rposition(|c| *c == b'/');
    let (above, name) = at.map_or((&b""[..], bytes), |at| (&bytes[..at], &bytes[at + 1..]));
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::INVAL);
    Ok((text(above)?, text(name)?))
}

fn open_dir(root: Fd, path: &std::ffi::CStr) -> Result<Fd, Errno> {
    let path = if path.is_empty() { c"." } else { path };
    fd::open_beneath(root, path, OFlags::PATH | OFlags::DIRECTORY)
}

/// Bytes that do not compress to nothing.
pub(crate) fn content(seed: u64) -> Vec<u8> {
    let mut state = (0x9e37_79b9_7f4a_7c15 ^ seed).max(1);
    let mut bytes = Vec::with_capacity(PART);
    while bytes.len() < PART {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Makes a file of so many bytes of a content, in writes of so many. One that is stopped is shorter.
fn write_file(
    dir: Fd,
    name: &CString,
    (size, part): (u64, usize),
    (content, stop): (&[u8], &AtomicBool),
) -> Result<(), Errno> {
    let file = fd::open_at(dir, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, FILE_MODE)?;
    let mut written = 0;
    let mut all = || {
        while written < size && !stop.load(Ordering::Relaxed) {
            steps::count();
            let content = &content[(written % content.len() as u64) as usize..];
            let bytes = (size - written).min(part.min(content.len()) as u64) as usize;
            match fd::write(file, &content[..bytes])? {
                0 => return Err(Errno::NOSPC),
                n => written += n as u64,
            }
        }
        Ok(())
    };
    let done = all();
    fd::close(file);
    done
}

/// Where the files of the beginning are: the directory, the path from the root, and the file.
fn initial_paths(plan: &ReplayPlan) -> Vec<(u32, Vec<u8>, u32)> {
    let mut dirs: HashMap<u32, Vec<u8>> = HashMap::new();
    dirs.insert(crate::tree::ROOT, Vec::new());
    let mut found = Vec::new();
    for (place, node) in &plan.tree.initial {
        let Some(above) = dirs.get(&place.dir) else { continue };
        let name = plan.tree.names.get(place.name).to_bytes();
        let path = if above.is_empty() { name.to_vec() } else { [above.as_slice(), b"/", name].concat() };
        if plan.tree.nodes[*node as usize].kind == FileKind::Directory {
            dirs.insert(*node, path.clone());
        }
        found.push((place.dir, path, *node));
    }
    found
}

fn with_name(path: &mut Vec<u8>, name: &OsStr) -> usize {
    let length = path.len();
    if length > 0 {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    length
}

/// Checks that everything below a directory is in the list.
fn check(dir: &HeldDir, path: &mut Vec<u8>, names: &BTreeSet<Vec<u8>>) -> Result<(), ReplayStop> {
    for entry in dir.entries()? {
        let length = with_name(path, &entry.name);
        if !names.contains(path) {
            return Err(foreign(&dir.path().join(&entry.name), "was not made by wmlrun"));
        }
        if entry.kind == FileType::Directory {
            let below = dir.enter(&entry.name)?;
            let below = below.ok_or_else(|| foreign(&dir.path().join(&entry.name), "is another file system"))?;
            check(&below, path, names)?;
        }
        path.truncate(length);
    }
    Ok(())
}

/// Removes what is in the list.
fn remove(dir: &HeldDir, path: &mut Vec<u8>, names: &BTreeSet<Vec<u8>>) -> Result<(), ReplayStop> {
    for entry in dir.entries()? {
        let length = with_name(path, &entry.name);
        if names.contains(path) {
            match entry.kind {
                FileType::Directory => {
                    if let Some(below) = dir.enter(&entry.name)? {
                        remove(&below, path, names)?;
                    }
                    dir.remove_dir(&entry.name)?;
                }
                _ => dir.remove_file(&entry.name)?,
            }
        }
        path.truncate(length);
    }
    Ok(())
}

/// Everything below a directory: paths from it with the kind, size and number of names of each.
pub(crate) fn found_below(dir: &HeldDir) -> io::Result<Vec<(Vec<u8>, fd::Stat)>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), dir.clone())];
    while let Some((above, dir)) = open.pop() {
        for entry in dir.entries()? {
            let Some(stat) = dir.find(&entry.name)? else { continue };
            let path: Vec<u8> = [above.as_slice(), b"/", entry.name.as_bytes()].concat();
            if stat.kind == FileType::Directory
                && let Some(below) = dir.enter(&entry.name)?
            {
                open.push((path.clone(), below));
            }
            found.push((path, stat));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}
