//! The rows against fio: the same work on the same file, in alternating slices.
//!
//! fio measures its latencies as it does by default. Its offsets are drawn as ours are, without a map of what it has written.

use super::{Options, alternate, fio, interval, median, wmlrun};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the image that a file system is made on.
const IMAGE: u64 = 2 << 30;

/// One row.
pub(super) struct Peer {
    pub(super) name: &'static str,
    about: &'static str,
    script: &'static str,
    fio: &'static [&'static str],
    wanted: &'static str,
    /// On ext4 on a loop device that passes by the page cache below; else in the directory of all rows.
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

/// The head of their table.
pub(super) const HEAD: &str = "| work | fio, ops/s | wmlrun / fio | 95 % interval | wanted |\n|---|---|---|---|---|\n";

/// The row's line; none if it can't be measured here, which is said.
pub(super) fn measure(peer: &Peer, dir: &Path, options: &Options) -> Option<String> {
    let place = if peer.on_loop { Place::mounted() } else { Some(Place::plain(dir.join(peer.name))) };
    let Some(place) = place else {
        println!("{}: needs root, losetup and mkfs.ext4", peer.name);
        return None;
    };
    let script = dir.join(format!("{}.wml", peer.name));
    std::fs::write(&script, peer.script).expect("the script");
    let ours = || wmlrun(&script, &place.dir, options.seconds, false);
    // The first one makes the file, and does not count.
    ours();
    let file = largest(&place.dir).expect("the file that was made").0;
    let name = format!("--filename={}", file.file_name().expect("a name").to_string_lossy());
    let args: Vec<&str> = peer.fio.iter().copied().chain([name.as_str()]).collect();
    let theirs = || fio(&args, file.parent().expect("its directory"), options.seconds, 1);
    if theirs().is_none() {
        println!("{}: fio is missing, or can't do this", peer.name);
        return None;
    }
    let (ratios, rates) = alternate(options.pairs, || theirs().expect("fio did it a moment ago"), ours);
    let (low, high) = interval(&ratios);
    let (rate, ratio) = (median(&rates), median(&ratios));
    Some(format!("| {} | {rate:.0} | {ratio:.3} | {low:.3} … {high:.3} | {} |", peer.about, peer.wanted))
}

/// The largest file below a directory.
pub(super) fn largest(dir: &Path) -> Option<(PathBuf, u64)> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let files = entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        if meta.is_dir() { largest(&entry.path()) } else { Some((entry.path(), meta.len())) }
    });
    files.max_by_key(|(_, bytes)| *bytes)
}

/// Where a row works. Dropped, it is gone, with whatever was mounted for it.
struct Place {
    dir: PathBuf,
    device: Option<(String, PathBuf)>,
}

impl Place {
    fn plain(dir: PathBuf) -> Self {
        std::fs::create_dir_all(&dir).expect("a directory");
        Self { dir, device: None }
    }

    fn mounted() -> Option<Self> {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = format!("limits-{}", std::process::id());
        let (dir, image) = (home.join(&name), home.join(format!("{name}.img")));
        std::fs::create_dir_all(&dir).ok()?;
        std::fs::File::create(&image).and_then(|file| file.set_len(IMAGE)).ok()?;
        let path = image.to_string_lossy().into_owned();
        let device = told("losetup", &["--direct-io=on", "--find", "--show", &path]);
        let place = Self { dir, device: Some((device.clone().unwrap_or_default(), image)) };
        let device = device?;
        told("mkfs.ext4", &["-q", "-F", &device])?;
        told("mount", &["-t", "ext4", &device, &place.dir.to_string_lossy()])?;
        Some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((device, image)) = &self.device {
            told("umount", &[&self.dir.to_string_lossy()]);
            told("losetup", &["--detach", device]);
            let _ = std::fs::remove_file(image);
        }
        let _ = std::fs::remove_dir_all(&self.dir);
        // The result of the last run lies beside it.
        let _ = std::fs::remove_file(self.dir.with_extension("json"));
    }
}

fn told(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
