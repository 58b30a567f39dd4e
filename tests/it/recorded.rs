//! Tests what a result records of the machine: settings of devices and file systems, which `compare` lists if they differ, and
//! the bytes of each device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cmd::{Wml, has, squeezed};
use crate::experiments::valid;
use crate::mounts::{self, Fs, Mount};

/// Writes a file and syncs it.
const SCRIPT: &str = "# dialect: fsl\n\
    define file name=data,path=$dir,size=8m,prealloc\n\
    define process name=p { thread name=t,memsize=1m {\n\
      flowop write name=wr,filename=data,iosize=1m,dsync\n\
      flowop finishoncount name=all,value=8,target=wr\n\
    } }\n";

/// A call of the script on a mount.
fn call(mount: &Mount) -> Wml {
    let call = Wml::new().file("w.wml", SCRIPT).args(["w.wml", "--runtime", "60", "--no-quiesce", "--dir"]);
    call.args([mount.dir()])
}

/// The directory of one or more results, as a side of a comparison.
struct Side(tempfile::TempDir);

impl Side {
    /// Runs the script twice on a mount.
    fn of(mount: &Mount) -> Self {
        let side = Self(tempfile::tempdir().unwrap());
        for n in 0..2 {
            let document = call(mount).result().run().exits(0).result();
            side.put(n, &document);
        }
        side
    }

    fn put(&self, n: u32, document: &Value) {
        fs::write(self.0.path().join(format!("{n}.json")), document.to_string()).unwrap();
    }

    /// Its results after a change of each.
    fn changed(&self, change: impl Fn(&mut Value)) -> Self {
        let other = Self(tempfile::tempdir().unwrap());
        for n in 0..2 {
            let mut document = self.result(n);
            change(&mut document);
            other.put(n, &document);
        }
        other
    }

    fn result(&self, n: u32) -> Value {
        serde_json::from_str(&fs::read_to_string(self.0.path().join(format!("{n}.json"))).unwrap()).unwrap()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The comparison of two sides in a format; with the text of its page.
fn compared(a: &Side, b: &Side, format: &str) -> (String, String) {
    let paths = [a.path(), b.path()].map(Path::to_owned);
    let call = Wml::new().args(["compare", "--format", format, "-o", "page.html"]).args(paths);
    let output = call.run();
    assert!([0, 10, 11].contains(&output.code()), "{}", output.shown());
    let page = fs::read_to_string(output.dir().join("page.html")).unwrap();
    (output.stdout, page)
}

/// What differs between two sides besides the name of the device, in the order of its names: name, A and B.
fn differences(a: &Side, b: &Side) -> Vec<[String; 3]> {
    let document: Value = serde_json::from_str(&compared(a, b, "json").0).unwrap();
    valid(&document);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = document["differs"].as_array().unwrap();
    let all = all.iter().map(|found| [text(&found["what"]), text(&found["a"]), text(&found["b"])]);
    all.filter(|[what, ..]| !what.starts_with("device")).collect()
}

fn names(found: &[[String; 3]]) -> Vec<&str> {
    found.iter().map(|[what, ..]| what.as_str()).collect()
}

/// Those that are about a type of file system. A loop device may have the settings of an earlier user.
fn of_type(found: &[[String; 3]], kind: &str) -> Vec<[String; 3]> {
    found.iter().filter(|[what, ..]| what.starts_with(kind)).cloned().collect()
}

fn size() -> u64 {
    512 << 20
}

/// The directory of a mount's own loop device in `/sys`.
fn device_in_sys(mount: &Mount) -> PathBuf {
    Path::new("/sys/block").join(Path::new(mount.device().unwrap()).file_name().unwrap())
}

#[test]
fn changed_settings_of_a_device_differ() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, size());
    let queue = device_in_sys(&mount).join("queue");
    let a = Side::of(&mount);
    assert_eq!(differences(&a, &Side::of(&mount)), Vec::<[String; 3]>::new(), "nothing was changed");
    let setting = |name: &str| fs::read_to_string(queue.join(name)).unwrap().trim().to_owned();
    let before = ["read_ahead_kb", "nomerges"].map(setting);
    // The loop device keeps them for its next user.
    let other = [if before[0] == "1744" { "128" } else { "1744" }, if before[1] == "2" { "0" } else { "2" }];
    let change = |values: [&str; 2]| {
        fs::write(queue.join("read_ahead_kb"), values[0]).unwrap();
        fs::write(queue.join("nomerges"), values[1]).unwrap();
    };
    change(other);
    let b = Side::of(&mount);
    change([&before[0], &before[1]]);
    let found = differences(&a, &b);
    assert_eq!(names(&found), ["queue nomerges", "queue read_ahead_kb"], "{found:?}");
    assert_eq!(found[1][1..], [before[0].clone(), other[0].to_owned()]);
    // For people too, and on the page.
    let (text, page) = compared(&a, &b, "text");
    for shown in [&text, &page] {
        // Lines of the answer are wrapped.
        let shown = squeezed(shown);
        assert!(shown.contains("queue read_ahead_kb") && shown.contains(other[0]), "{shown}");
    }
    // What a result does not say is no difference: an earlier version, or a directory that could not be read.
    let unknown = b.changed(|document| {
        let devices = document["runs"][0]["environment"]["mounts"][0]["devices"].as_array_mut().unwrap();
        devices.iter_mut().for_each(|device| _ = device.as_object_mut().unwrap().remove("queue"));
    });
    assert_eq!(differences(&a, &unknown), Vec::<[String; 3]>::new());
}

/// The features of a run's file system, and one of its parameters.
fn made(side: &Side, parameter: &str) -> (Vec<String>, Value) {
    let document = side.result(0);
    let mount = &document["runs"][0]["environment"]["mounts"][0];
    let features = mount["features"].as_array().unwrap_or_else(|| panic!("no features: {mount}"));
    let features = features.iter().map(|feature| feature.as_str().unwrap().to_owned()).collect();
    (features, mount["parameters"][parameter].clone())
}

#[test]
fn how_ext4_was_made_differs() {
    needs!(mounts::available(&[Fs::Ext4]));
    let plain = Mount::made_with(Fs::Ext4, size(), &["-O", "^fast_commit", "-b", "4096"]);
    let fast = Mount::made_with(Fs::Ext4, size(), &["-O", "fast_commit", "-b", "4096", "-I", "512"]);
    let (a, b) = (Side::of(&plain), Side::of(&fast));
    let found = differences(&a, &b);
    for name in ["ext4 features", "ext4 inode_size"] {
        assert!(names(&found).contains(&name), "{found:?}");
    }
    assert_eq!(made(&b, "inode_size").1, 512);
    assert_eq!(made(&a, "block_size").1, 4096);
    let has_it = |side: &Side| made(side, "").0.contains(&"fast_commit".to_owned());
    assert_eq!((has_it(&a), has_it(&b)), (false, true));
    // The list is long, so that only what the other side lacks is shown, in all forms.
    let (text, page) = compared(&a, &b, "text");
    let (markdown, _) = compared(&a, &b, "markdown");
    for shown in [&text, &markdown] {
        let words = squeezed(shown);
        assert!(words.contains("ext4 features (only B: fast_commit)") && !words.contains("has_journal"), "{shown}");
    }
    let row = page.split("ext4 features").nth(1).and_then(|rest| rest.split("</tr>").next()).unwrap();
    assert!(row.contains("fast_commit") && !row.contains("has_journal"), "{row}");
    // The tools say the same of the device.
    if has("dumpe2fs") {
        let told = crate::cmd::tool("dumpe2fs", &["-h", fast.device().unwrap()]);
        let line = told.lines().find_map(|line| line.strip_prefix("Filesystem features:")).unwrap();
        let states = ["needs_recovery", "orphan_present"];
        let mut told: Vec<String> =
            line.split_whitespace().filter(|word| !states.contains(word)).map(str::to_owned).collect();
        let mut own = made(&b, "").0;
        told.sort();
        own.sort();
        assert_eq!(own, told);
    }
}

#[test]
fn how_xfs_and_btrfs_were_made_differs() {
    needs!(mounts::available(&[Fs::Xfs, Fs::Btrfs]));
    let (plain, other) = (
        Mount::made_with(Fs::Xfs, size(), &[]),
        Mount::made_with(Fs::Xfs, size(), &["-m", "reflink=0", "-i", "size=1024"]),
    );
    let (a, b) = (Side::of(&plain), Side::of(&other));
    let found = of_type(&differences(&a, &b), "xfs ");
    assert_eq!(names(&found), ["xfs features", "xfs inode_size"], "{found:?}");
    assert_eq!(found[1][1..], ["512", "1024"]);
    assert!(made(&a, "").0.contains(&"reflink".to_owned()) && !made(&b, "").0.contains(&"reflink".to_owned()));
    drop((plain, other));
    let (plain, other) = (
        Mount::made_with(Fs::Btrfs, size(), &[]),
        Mount::made_with(Fs::Btrfs, size(), &["-n", "32k", "--csum", "xxhash"]),
    );
    let (a, b) = (Side::of(&plain), Side::of(&other));
    let found = of_type(&differences(&a, &b), "btrfs ");
    assert_eq!(names(&found), ["btrfs checksum", "btrfs node_size"], "{found:?}");
    assert_eq!((found[0][1].as_str(), found[0][2].as_str()), ("crc32c", "xxhash64"));
    assert!(!made(&a, "").0.is_empty());
}

/// A file system of another type has other properties, which are not compared.
#[test]
fn properties_of_another_type_are_no_differences() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs]));
    let (ext4, xfs) = (Mount::new(Fs::Ext4, size()), Mount::new(Fs::Xfs, size()));
    let found = differences(&Side::of(&ext4), &Side::of(&xfs));
    let of_type = |name: &&str| name.starts_with("ext4 ") || name.starts_with("xfs ");
    assert!(!names(&found).iter().any(of_type) && names(&found).contains(&"file system"), "{found:?}");
}

#[test]
fn each_device_of_a_stack_has_its_own_bytes() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::on_disk(Fs::Ext4, size(), true);
    let output = call(&mount).args(["-v"]).result().run().exits(0);
    let run = output.only_run();
    let devices = run["environment"]["mounts"][0]["devices"].as_array().unwrap();
    let name = Path::new(mount.device().unwrap()).file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!((devices[0]["name"].as_str(), devices[0]["level"].as_u64()), (Some(name.as_str()), Some(1)));
    // The image is on a disk, unless the tests are in memory.
    let written = devices[0]["transferred"]["written"].as_u64().unwrap();
    assert!((8 << 20..64 << 20).contains(&written), "the loop device wrote {written} bytes for 8 MiB");
    let text = output.stdout;
    let words = squeezed(&text);
    assert!(words.contains(&format!("; {name} transferred ")), "{text}");
    if let [_, below, ..] = &devices[..] {
        assert_eq!(below["level"], 2);
        assert!(words.contains(&format!("; below it {} ", below["name"].as_str().unwrap())), "{text}");
    }
}

/// As in a container that does not show `/sys`, with a device that may not be opened.
#[test]
fn what_is_denied_is_unknown_and_no_difference() {
    needs!(mounts::available(&[Fs::Ext4]));
    needs!(
        has("unshare") && Command::new("unshare").args(["-m", "true"]).output().unwrap().status.success(),
        "mount namespaces can't be created"
    );
    let mount = Mount::new(Fs::Ext4, size());
    let a = Side::of(&mount);
    let b = Side(tempfile::tempdir().unwrap());
    let device = mount.device().unwrap();
    // A FIFO is in the place of the device: opening it would wait for ever.
    let fifo = b.path().join("fifo").display().to_string();
    let run = |more: &str| {
        let hidden = format!("mkfifo {fifo} && mount --bind {fifo} {device} && {more} exec \"$0\" \"$@\"");
        let document = call(&mount).under(["unshare", "-m", "sh", "-c", &hidden]).result().run().exits(0).result();
        fs::remove_file(&fifo).unwrap();
        document
    };
    // With `/sys`, the name of the device is known, and without it not even that.
    let denied = run("");
    let of_mount = |document: &Value| document["runs"][0]["environment"]["mounts"][0].clone();
    assert!(of_mount(&denied)["features"].is_null() && of_mount(&denied)["devices"][0]["queue"].is_object());
    (0..2).for_each(|n| b.put(n, &run("mount -t tmpfs none /sys &&")));
    let mount = of_mount(&b.result(0));
    assert!(mount["features"].is_null() && mount["devices"].as_array().unwrap().is_empty(), "{mount}");
    assert_eq!(differences(&a, &b), Vec::<[String; 3]>::new());
}

#[test]
fn the_kernel_command_line_is_recorded_and_redacted() {
    let of = |options: &[&str]| {
        let script = "define process name=p { thread name=t,memsize=4k { flowop hog name=h,value=10 } }\n";
        let call = Wml::new().file("x.wml", script).args(["x.wml", "--engine", "null", "--runtime", "0.1"]);
        let document = call.args(options.iter().copied()).result().run().exits(0).result();
        document["environment"]["kernel_command_line"].as_str().map(str::to_owned)
    };
    let Ok(line) = fs::read_to_string("/proc/cmdline") else { return };
    let parameters: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--").collect();
    let (Some(kept), Some(redacted)) = (of(&[]), of(&["--redact"])) else { return assert!(parameters.is_empty()) };
    assert_eq!(kept.split(' ').count(), redacted.split(' ').count());
    // No path and no address is in the redacted one, and nothing of the command line of the first process in either.
    assert!(!redacted.contains('/') && !redacted.contains(':') && !redacted.contains("UUID"), "{redacted}");
    assert!(kept.split(' ').all(|word| word != "--"), "{kept}");
}
