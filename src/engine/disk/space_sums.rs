//! The space that the trees of several ranks need together. Each rank has compared its own trees with the free space,
//! and trees of several ranks may be on one file system, or in the memory of one host.
//!
//! Not here: the messages between ranks (`measure`).

use super::error::Error;
use super::prepare::PrepareTask;
use super::quiesce;
use super::shortage::{SharedShortage, Shortage};
use super::space::{self, Need};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wml_os::device;
use wml_os::fd::{self, Space};
use wml_os::limits;

/// `f_type` of GPFS and `BeeGFS`. All hosts use one name for such a file system.
const CLUSTER: [u64; 2] = [0x4750_4653, 0x1983_0326];

/// A file system, as it is known on a host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
enum FileSystemId {
    /// One of this host, by its device number.
    Local(u64),
    /// One of a server, by its mount source. Hosts with the same source have the same file system.
    Remote(String),
}

impl FileSystemId {
    /// `kind`: its `f_type`. `source`: its mount source.
    fn of(kind: u64, device: u64, source: Option<&str>) -> Self {
        // Sources such as `fuse-overlayfs` or `/dev/sda1` are the names of different file systems on each host.
        let names_server = |source: &str| source.starts_with("//") || source.contains([':', '@']);
        let is_common = |source: &str| CLUSTER.contains(&kind) || (space::is_remote(kind) && names_server(source));
        match source {
            Some(source) if is_common(source) => Self::Remote(source.to_owned()),
            _ => Self::Local(device),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct HostMemory {
    /// The control groups of the process: other groups of a host have limits of their own.
    groups: u64,
    /// The bytes available without swapping.
    free: u64,
}

/// The space that the preparation of a tree needs, and the file system that it is on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TreeDemand {
    set: String,
    file_system: FileSystemId,
    /// The mount point.
    mount: String,
    bytes: u64,
    inodes: u64,
    /// Bytes and inodes that the removal of the old tree will free.
    freed: (u64, u64),
    space: Space,
    /// For files on tmpfs.
    memory: Option<HostMemory>,
}

impl TreeDemand {
    /// Returns the demand of a set whose root is taken. `None` if no files are created.
    pub(super) fn of(task: &PrepareTask) -> Option<Self> {
        let demand = task.demand()?;
        let space = fd::statvfs(task.root.fd).ok()?;
        let mount = device::mount_of(&demand.path);
        let kind = fd::file_system_kind(task.root.fd).unwrap_or(0);
        let memory = quiesce::in_memory(&demand.path)
            .then(|| HostMemory { groups: limits::control_groups(), free: limits::memory().1 });
        let mount_point = mount.as_ref().map_or(&demand.path, |mount| &mount.path);
        Some(Self {
            file_system: FileSystemId::of(kind, demand.device, mount.as_ref().map(|mount| mount.source.as_str())),
            mount: mount_point.to_string_lossy().into_owned(),
            set: demand.set,
            bytes: demand.bytes,
            inodes: demand.inodes,
            freed: demand.freed,
            space,
            memory,
        })
    }

    fn need(&self) -> Need {
        Need { bytes: self.bytes, inodes: self.inodes, freed: self.freed }
    }
}

/// Returns the error for these trees.
fn error(trees: &[&TreeDemand], place: String, shortage: Shortage) -> Error {
    let mut sets: Vec<String> = trees.iter().map(|tree| tree.set.clone()).collect();
    sets.sort();
    sets.dedup();
    Error::Together(SharedShortage { sets, trees: trees.len(), place, shortage })
}

/// Returns an error when trees that different ranks prepare do not fit together on their file system, or in the memory
/// of their host. `trees`: for each tree the host of the rank that prepares it, and its demand. With `keep` the
/// [`space::floor`] must stay free as well.
pub fn check<'a>(trees: impl Iterator<Item = (&'a str, &'a TreeDemand)>, keep: bool) -> Result<(), Error> {
    let mut by_file_system: BTreeMap<(&str, &FileSystemId), Vec<&TreeDemand>> = BTreeMap::new();
    let mut by_memory: BTreeMap<(&str, u64), Vec<&TreeDemand>> = BTreeMap::new();
    for (host, tree) in trees {
        let host_of_device = if matches!(tree.file_system, FileSystemId::Local(_)) { host } else { "" };
        by_file_system.entry((host_of_device, &tree.file_system)).or_default().push(tree);
        if let Some(memory) = &tree.memory {
            by_memory.entry((host, memory.groups)).or_default().push(tree);
        }
    }
    // A single tree was checked by its rank.
    for ((host, id), trees) in by_file_system.into_iter().filter(|(_, trees)| trees.len() > 1) {
        let Some(space) = trees.iter().map(|tree| tree.space).min_by_key(|space| space.free) else { continue };
        if let Some(shortage) = Need::sum(trees.iter().map(|tree| tree.need())).shortage(&space, keep) {
            let place = match id {
                FileSystemId::Local(_) => format!("`{}` of host `{host}`", trees[0].mount),
                FileSystemId::Remote(source) => format!("`{source}`"),
            };
            return Err(error(&trees, place, shortage));
        }
    }
    for ((host, _), trees) in by_memory.into_iter().filter(|(_, trees)| trees.len() > 1) {
        let needed = trees.iter().map(|tree| tree.need().memory()).fold(0, u64::saturating_add);
        let free = trees.iter().filter_map(|tree| Some(tree.memory?.free)).min().unwrap_or(0);
        if free > 0 && needed > free {
            return Err(error(&trees, format!("host `{host}`"), Shortage::Memory { needed, free }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{CLUSTER, Error, FileSystemId, HostMemory, Space, TreeDemand, check};

    const GIB: u64 = 1 << 30;
    const NFS: u64 = 0x6969;
    const FUSE: u64 = 0x6573_5546;

    /// A tree of 100 GiB on a file system with 250 GiB free.
    fn tree(file_system: FileSystemId) -> TreeDemand {
        let space =
            Space { total: 300 * GIB, free: 250 * GIB, files: 1000, files_free: 250, block: 4096, fragment: 4096 };
        let (set, mount) = ("data".to_owned(), "/mnt".to_owned());
        TreeDemand { set, file_system, mount, bytes: 100 * GIB, inodes: 1, freed: (0, 0), space, memory: None }
    }

    fn local() -> TreeDemand {
        tree(FileSystemId::Local(1))
    }

    fn remote() -> TreeDemand {
        tree(FileSystemId::Remote("nas:/x".to_owned()))
    }

    /// Returns the error for the same tree on each of these hosts.
    fn error(hosts: &[&str], tree: &TreeDemand) -> Option<Error> {
        check(hosts.iter().map(|host| (*host, tree)), true).err()
    }

    fn with(mut tree: TreeDemand, change: impl FnOnce(&mut TreeDemand)) -> TreeDemand {
        change(&mut tree);
        tree
    }

    #[test]
    fn trees_on_one_file_system_are_added() {
        for tree in [local(), remote()] {
            assert_eq!(error(&["a", "a"], &tree), None);
            assert!(error(&["a", "a", "a"], &tree).is_some());
            let replaced = with(tree, |demand| demand.freed.0 = 20 * GIB);
            assert_eq!(error(&["a", "a", "a"], &replaced), None, "the old trees are removed first");
        }
        // Hosts have local file systems of their own.
        assert_eq!(error(&["a", "b", "c"], &local()), None);
        let found = error(&["a", "b", "c"], &remote()).unwrap();
        assert_eq!(
            (found.code(), found.to_string().as_str()),
            (
                "E0509",
                "not enough space on `nas:/x`: 3 trees of file set `data` need 300.0 GiB together, 250.0 GiB is free, and \
                 3.0 GiB must stay free"
            )
        );
        let many = with(remote(), |demand| (demand.bytes, demand.inodes) = (0, 100));
        assert_eq!(error(&["a", "b"], &many), None);
        assert_eq!(
            error(&["a", "b", "c"], &many).unwrap().to_string(),
            "not enough inodes on `nas:/x`: 3 trees of file set `data` need 300 together, 250 are free"
        );
    }

    #[test]
    fn trees_in_the_memory_of_one_host_are_added() {
        let tree = |groups| with(local(), |demand| demand.memory = Some(HostMemory { groups, free: 150 * GIB }));
        assert_eq!(error(&["a", "b"], &tree(1)), None);
        let found = error(&["a", "a"], &tree(1)).unwrap();
        assert!(found.code() == "E0511" && found.to_string().starts_with("not enough memory on host `a`: 2 trees"));
        // Each control group has a limit of its own.
        let (one, two) = (tree(1), tree(2));
        assert_eq!(check([("a", &one), ("a", &two)].into_iter(), true), Ok(()));
    }

    #[test]
    fn a_file_system_of_a_server_is_known_by_its_source() {
        for (kind, source, is_remote) in [
            (NFS, "nas:/export", true),
            (0xff53_4d42, "//nas/share", true),
            (FUSE, "user@nas:/home", true),
            (CLUSTER[0], "gpfs0", true),
            (FUSE, "fuse-overlayfs", false),
            (FUSE, "/dev/sda1", false),
            (0xef53, "/dev/disk/by-path/pci-0000:00", false),
        ] {
            let id = FileSystemId::of(kind, 7, Some(source));
            let expected = if is_remote { FileSystemId::Remote(source.to_owned()) } else { FileSystemId::Local(7) };
            assert_eq!(id, expected);
        }
        assert_eq!(FileSystemId::of(NFS, 7, None), FileSystemId::Local(7));
    }
}
