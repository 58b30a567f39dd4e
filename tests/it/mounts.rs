//! File systems for tests: sparse images on loop devices, mounted as long as a value lives.
//!
//! Needs root and the tools of each file system; [`available`] returns whether they are present.
//! Deliberately absent: the programs that run on them.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::Duration;

use crate::cmd::{disk, has, scratch, skip, tool};

/// How many are mounted at a time: loop devices are few, and so are disks.
const AT_ONCE: u32 = 3;

/// A file system that tests run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fs {
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
}

impl Fs {
    /// As `mount -t` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    fn mkfs(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Ext4 => Some(("mkfs.ext4", &["-q", "-F"])),
            Self::Xfs => Some(("mkfs.xfs", &["-q", "-f"])),
            Self::Btrfs => Some(("mkfs.btrfs", &["-q", "-f"])),
            Self::Tmpfs => None,
        }
    }
}

/// Whether file systems can be mounted here. If not, says so for `test`, or fails it where all must be there.
pub(crate) fn available(kinds: &[Fs]) -> bool {
    let missing = if rustix::process::geteuid().is_root() {
        let makers = kinds.iter().filter_map(|fs| fs.mkfs()).map(|(program, _)| program);
        let needed: Vec<_> = makers.chain(["losetup", "mount", "umount"]).filter(|p| !has(p)).collect();
        if needed.is_empty() { None } else { Some(format!("{} not found", needed.join(", "))) }
    } else {
        Some("only root can mount file systems".to_owned())
    };
    if let Some(why) = &missing {
        skip(why);
    }
    missing.is_none()
}

/// A mounted file system. Dropped, also by a panic, it is unmounted and its image removed.
pub(crate) struct Mount {
    dir: PathBuf,
    image: Option<PathBuf>,
    device: Option<String>,
    _place: Place,
}

impl Mount {
    /// Makes and mounts one of `size` bytes. The loop device passes by the page cache below it.
    pub(crate) fn new(fs: Fs, size: u64) -> Self {
        Self::with(fs, size, true)
    }

    /// The same; without `direct_io` data may come from a page cache below the file system.
    pub(crate) fn with(fs: Fs, size: u64, direct_io: bool) -> Self {
        Self::below(&scratch(), fs, size, direct_io)
    }

    /// The same with its image on a disk, for tests of the bytes that a device transfers.
    pub(crate) fn on_disk(fs: Fs, size: u64, direct_io: bool) -> Self {
        Self::below(&disk(), fs, size, direct_io)
    }

    /// The same, made with further options of the program that makes the file system.
    pub(crate) fn made_with(fs: Fs, size: u64, options: &[&str]) -> Self {
        Self::made_below(&scratch(), fs, size, true, options)
    }

    fn below(place: &Path, fs: Fs, size: u64, direct_io: bool) -> Self {
        Self::made_below(place, fs, size, direct_io, &[])
    }

    fn made_below(place: &Path, fs: Fs, size: u64, direct_io: bool, further: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let home = home(place);
        let place = Place::take();
        let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = home.join(&name);
        fs::create_dir(&dir).unwrap();
        let at = dir.to_str().unwrap().to_owned();
        // From here on dropping it undoes whatever has been done.
        let mut mount = Self { dir, image: None, device: None, _place: place };
        let Some((mkfs, options)) = fs.mkfs() else {
            tool("mount", &["-t", fs.name(), "-o", &format!("size={size}"), "wmlrun-test", &at]);
            return mount;
        };
        let image = home.join(format!("{name}.img"));
        fs::File::create_new(&image).unwrap().set_len(size).unwrap();
        let path = image.to_str().unwrap().to_owned();
        mount.image = Some(image);
        let direct = if direct_io { "--direct-io=on" } else { "--direct-io=off" };
        let device = tool("losetup", &[direct, "--find", "--show", &path]).trim().to_owned();
        mount.device = Some(device.clone());
        tool(mkfs, &[options, further, &[device.as_str()]].concat());
        tool("mount", &["-t", fs.name(), &device, &at]);
        mount
    }

    /// Where it is mounted.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The loop device, if it has one.
    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        undo(&self.dir, self.device.as_deref(), self.image.as_deref());
    }
}

fn quietly(program: &str, args: &[&str]) -> bool {
    std::process::Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// Unmounts, detaches and removes, as far as each is there. Never panics: it runs while tests fail.
pub(crate) fn undo(dir: &Path, device: Option<&str>, image: Option<&Path>) {
    let at = dir.to_string_lossy().into_owned();
    // A descriptor table of a thread that has ended is torn down a little later.
    let unmounted = (0..100).any(|_| {
        let gone = !quietly("mountpoint", &["-q", &at]) || quietly("umount", &[&at]);
        if !gone {
            std::thread::sleep(Duration::from_millis(100));
        }
        gone
    });
    if !unmounted {
        let text = format!("\n{at} stayed busy for 10 s; unmounted lazily\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        quietly("umount", &["--lazy", &at]);
    }
    if let Some(device) = device {
        quietly("losetup", &["--detach", device]);
    }
    if let Some(image) = image {
        let _ = fs::remove_file(image);
    }
    let _ = fs::remove_dir(dir);
}

/// Where images and mount points are, in memory or on the disk. The first call clears away what a test process that was killed
/// has left.
fn home(place: &Path) -> PathBuf {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let old = [scratch(), disk()].into_iter().filter_map(|place| fs::read_dir(place.join("mounts")).ok());
        for entry in old.flatten().filter_map(Result::ok) {
            let path = entry.path();
            let owner = path.file_name().unwrap().to_string_lossy().split('-').next().unwrap_or("").to_owned();
            if path.extension().is_none() && !Path::new("/proc").join(owner).exists() {
                let image = path.with_extension("img");
                let listed = std::process::Command::new("losetup").arg("--associated").arg(&image).output();
                let listed = listed.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
                undo(&path, listed.split(':').next().filter(|d| !d.is_empty()), Some(&image));
            }
        }
    });
    let home = place.join("mounts");
    fs::create_dir_all(&home).unwrap();
    home
}

/// One of the places for a mount.
struct Place;

static TAKEN: Mutex<u32> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

thread_local! {
    /// Places of this test. Only the first waits: two tests that each wait for their second one would wait for ever.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

impl Place {
    fn take() -> Self {
        let is_first = OWN.replace(OWN.get() + 1) == 0;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        while is_first && *taken >= AT_ONCE {
            taken = FREED.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Dropped in another thread than it was taken in, it counts for neither.
        OWN.set(OWN.get().saturating_sub(1));
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}

#[test]
fn a_mount_has_the_requested_type_and_is_removed() {
    const ALL: [Fs; 4] = [Fs::Ext4, Fs::Xfs, Fs::Btrfs, Fs::Tmpfs];
    needs!(available(&ALL));
    for (fs, direct_io) in ALL.into_iter().map(|fs| (fs, true)).chain([(Fs::Ext4, false)]) {
        let mount = Mount::with(fs, 512 << 20, direct_io);
        let (dir, device) = (mount.dir().to_owned(), mount.device().map(str::to_owned));
        let found = tool("findmnt", &["-n", "-o", "FSTYPE", "--mountpoint", dir.to_str().unwrap()]);
        assert_eq!(found.trim(), fs.name());
        if let Some(device) = &device {
            let told = tool("losetup", &["-l", "-n", "-O", "DIO", device]);
            assert_eq!(told.trim() == "1", direct_io, "{device}");
        }
        assert_eq!(device.is_none(), fs == Fs::Tmpfs);
        let image = mount.image.clone();
        // Also when the test that holds it fails.
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            fs::write(mount.dir().join("file"), "text").unwrap();
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(failed.is_err());
        assert!(!dir.exists(), "{} is left", dir.display());
        assert!(image.is_none_or(|image| !image.exists()));
    }
}
