//! The rows that compare wmlrun with fio, for the same work on the same file, in alternating slices.
//!
//! fio measures latencies, as it does by default. With `--norandommap` it draws offsets like wmlrun, without a map of
//! the blocks that it has already used.

use super::{OWN, Options, alternate, fio, interval, median, wmlrun};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of the image of the file system, in bytes.
const IMAGE: u64 = 2 << 30;

/// One row of the table.
pub(super) struct Peer {
    pub(super) name: &'static str,
    about: &'static str,
    script: &'static str,
    fio: &'static [&'static str],
    wanted: &'static str,
    /// Whether the row works on ext4 on a loop device with direct I/O to its image, instead of in the directory of the
    /// other rows.
    on_loop: bool,
}

pub(super) const PEERS: &[Peer] = &[
    Peer {
        name: "fio-uring",
        about: "random writes of 4k, direct, 32 at a time, ext4 on a loop device; fio's `io_uring`",
        script: "# dialect: fsl\ndefine file name=f,path=$dir,size=256m,prealloc,reuse\n\
            define process name=p { thread name=t,memsize=4k {\n\
              flowop aiowrite name=wr,filename=f,iosize=4k,random,directio,iodepth=32\n} }\n",
        fio: &[
            "--rw=randwrite",
            "--bs=4k",
            "--size=256m",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--direct=1",
            "--norandommap",
        ],
        wanted: "1.0",
        on_loop: true,
    },
    Peer {
        name: "fio-psync",
        about: "random reads of 4k; fio's `psync`",
        script: "# dialect: fsl\ndefine file name=f,path=$dir,size=256m,prealloc,reuse\n\
            define process name=p { thread name=t,memsize=4k { flowop read name=rd,filename=f,iosize=4k,random } }\n",
        fio: &["--rw=randread", "--bs=4k", "--size=256m", "--ioengine=psync", "--norandommap"],
        wanted: "1.2",
        on_loop: false,
    },
];

/// The heading of the table.
pub(super) const HEAD: &str = "| work | fio, ops/s | wmlrun / fio | 95 % interval | wanted |\n|---|---|---|---|---|\n";

/// Measures a row and returns its line of the table. Prints the reason and returns `None` when it can't be measured on
/// this machine.
pub(super) fn measure(peer: &Peer, dir: &Path, options: &Options) -> Option<String> {
    let work_dir = if peer.on_loop { WorkDir::mounted() } else { Some(WorkDir::plain(dir.join(peer.name))) };
    let Some(work_dir) = work_dir else {
        println!("{}: needs root, losetup and mkfs.ext4", peer.name);
        return None;
    };
    let script = dir.join(format!("{}.wml", peer.name));
    std::fs::write(&script, peer.script).expect("the script");
    let ours = || wmlrun(Path::new(OWN), &script, &work_dir.dir, options.seconds, false);
    // The first slice creates the file and is not counted.
    ours();
    let file = largest(&work_dir.dir).expect("the file that was made").0;
    let name = format!("--filename={}", file.file_name().expect("a name").to_string_lossy());
    let args: Vec<&str> = peer.fio.iter().copied().chain([name.as_str()]).collect();
    let theirs = || fio(&args, file.parent().expect("its directory"), options.seconds, 1);
    if theirs().is_none() {
        println!("{}: fio is missing or does not support this work", peer.name);
        return None;
    }
    let (ratios, rates) = alternate(options.common.pairs, || theirs().expect("fio succeeded before"), ours);
    let (low, high) = interval(&ratios);
    let (rate, ratio) = (median(&rates), median(&ratios));
    Some(format!("| {} | {rate:.0} | {ratio:.3} | {low:.3} … {high:.3} | {} |", peer.about, peer.wanted))
}

/// Returns the largest file below a directory and its size, or `None` when there is no file.
pub(super) fn largest(dir: &Path) -> Option<(PathBuf, u64)> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let files = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        if meta.is_dir() { largest(&entry.path()) } else { Some((entry.path(), meta.len())) }
    });
    files.max_by_key(|(_, bytes)| *bytes)
}

/// The directory in which a row works. Dropping it removes the directory, its mount and its loop device.
struct WorkDir {
    dir: PathBuf,
    /// The loop device and its image.
    device: Option<(String, PathBuf)>,
}

impl WorkDir {
    /// Creates a plain directory.
    fn plain(dir: PathBuf) -> Self {
        std::fs::create_dir_all(&dir).expect("a directory");
        Self { dir, device: None }
    }

    /// Mounts a new ext4 file system on a loop device. Returns `None` when that fails.
    fn mounted() -> Option<Self> {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = format!("limits-{}", std::process::id());
        let (dir, image) = (base.join(&name), base.join(format!("{name}.img")));
        std::fs::create_dir_all(&dir).ok()?;
        std::fs::File::create(&image).and_then(|file| file.set_len(IMAGE)).ok()?;
        let path = image.to_string_lossy().into_owned();
        let device = output_of("losetup", &["--direct-io=on", "--find", "--show", &path]);
        let work_dir = Self { dir, device: Some((device.clone().unwrap_or_default(), image)) };
        let device = device?;
        output_of("mkfs.ext4", &["-q", "-F", &device])?;
        output_of("mount", &["-t", "ext4", &device, &work_dir.dir.to_string_lossy()])?;
        Some(work_dir)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Some((device, image)) = &self.device {
            output_of("umount", &[&self.dir.to_string_lossy()]);
            output_of("losetup", &["--detach", device]);
            let _ = std::fs::remove_file(image);
        }
        let _ = std::fs::remove_dir_all(&self.dir);
        // The result of the last run is beside the directory.
        let _ = std::fs::remove_file(self.dir.with_extension("json"));
    }
}

/// Runs a program and returns its output, or `None` when it fails.
fn output_of(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
