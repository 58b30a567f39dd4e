//! Tests the shipped experiments that make file systems: each at a small scale, on images in its own directory.
//!
//! The texts are those of `experiments`, with smaller sizes, fewer repeats and, unless `WMLRUN_LONG=1`, fewer levels.
//! Not in here: the plans of all shipped experiments (`experiment_files`).

use crate::cmd::short_or_long;
use crate::experiments::{Lab, any_verdict, exits};
use crate::mounts::{self, Fs};
use crate::resume::{is_complete, is_valid_unit};
use crate::signals::wait_for;
use crate::undisturbed::undisturbed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A shipped experiment in a directory of its own. Dropped, also by a panic, it unmounts its file systems.
struct ShippedSuite {
    lab: Lab,
    name: &'static str,
    mount_points: &'static [&'static str],
}

impl Drop for ShippedSuite {
    fn drop(&mut self) {
        for dir in self.mount_points {
            mounts::undo(&self.lab.path(dir), None, None);
        }
    }
}

impl ShippedSuite {
    /// Replaces texts of the experiment, and then omits all lines that contain one of the `omitted` texts.
    fn new(
        name: &'static str,
        mount_points: &'static [&'static str],
        replaced: &[(&str, &str)],
        omitted: &[&str],
    ) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("experiments/{name}.toml"));
        let mut text = fs::read_to_string(path).unwrap();
        for (from, to) in replaced {
            assert!(text.contains(from), "{name} has no `{from}`");
            text = text.replace(from, to);
        }
        for words in omitted {
            assert!(text.contains(words), "{name} has no `{words}`");
            text = text.lines().filter(|line| !line.contains(words)).map(|line| format!("{line}\n")).collect();
        }
        let lab = Lab::new();
        fs::remove_file(lab.path("x.wml")).unwrap();
        fs::write(lab.path(&format!("{name}.toml")), text).unwrap();
        Self { lab, name, mount_points }
    }

    /// The words of the command that executes it, with further options.
    fn words(&self, options: &str) -> String {
        format!("experiment ./{}.toml --allow-system --no-quiesce --quiet --results r {options}", self.name)
    }

    /// Executes it. All runs are complete, and only the results stay in the directory.
    fn run(&self, options: &str, cells: usize, runs: usize) -> String {
        let text = self.lab.run(&self.words(options), 0);
        assert!(text.contains("\ncomplete: ") && text.contains(&format!("{runs} runs in {cells} cells.")), "{text}");
        assert_eq!(names(&self.lab), sorted([format!("{}.toml", self.name), "r".to_owned()].into()));
        text
    }

    /// A file of the results folder.
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.lab.path("r").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The number, the arm and the only mount of each run.
    fn started(&self) -> Vec<(u64, u64, String)> {
        let events = self.lab.events("r").into_iter().filter(|event| event["event"] == "started");
        let mount = |event: &Value| event["mounts"][0].as_str().unwrap().to_owned();
        events.map(|e| (e["run"].as_u64().unwrap(), e["arm"].as_u64().unwrap(), mount(&e))).collect()
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// The names in the directory of an experiment.
fn names(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.path("")).unwrap();
    sorted(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
}

/// Shipped experiments that make images, each with an image that it makes.
const IMAGES: [(&str, &str); 9] = [
    ("fsck", "fsck.img"),
    ("oltp_snapshot", "oltp_snapshot.img"),
    ("snapshots", "snapshots.img"),
    ("vxbench_matrix", "vxbench_matrix.btrfs.img"),
    ("vxbench_matrix", "vxbench_matrix.ext4.img"),
    ("vxbench_matrix", "vxbench_matrix.xfs.img"),
    ("vxbench_matrix", "vxbench_matrix.raw"),
    ("zfs_ufs_unit", "zfs_ufs_unit.btrfs.img"),
    ("zfs_ufs_unit", "zfs_ufs_unit.ext4.img"),
];

#[test]
fn an_image_that_exists_is_not_touched() {
    for (name, image) in IMAGES {
        let lab = Lab::new();
        fs::write(lab.path(image), "precious").unwrap();
        let text = lab.run(&format!("experiment {name} --results r"), 3);
        assert!(text.contains("--allow-system"), "{text}");
        let text = lab.run(&format!("experiment {name} --allow-system --results r"), 1);
        assert!(text.contains(&format!("{image} exists")), "{text}");
        assert_eq!(fs::read_to_string(lab.path(image)).unwrap(), "precious");
        assert_eq!(names(&lab), sorted(["r", "x.wml", image].map(str::to_owned).into()), "{name}");
    }
}

/// Every shipped experiment with commands is in `IMAGES`.
#[test]
fn each_experiment_with_commands_refuses_an_image_that_exists() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let has_commands = fs::read_to_string(&path).unwrap().contains("before = ");
        assert_eq!(has_commands, IMAGES.iter().any(|(of, _)| *of == name), "{name}");
    }
}

#[test]
fn the_unit_tests_run_on_both_file_systems() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Btrfs]));
    let small = [("repeats = 3", "repeats = 1"), ("filesize = \"2g\"", "filesize = \"4m\"")];
    let others = ["unit02", "unit03", "unit04", "unit06", "unit07", "unit09", "unit10", "unit12", "unit13", "unit14"];
    let (omitted, tests) = short_or_long((&others[..], 4), (&[][..], 14));
    let suite = ShippedSuite::new("zfs_ufs_unit", &["zfs_ufs_unit.btrfs", "zfs_ufs_unit.ext4"], &small, omitted);
    suite.run("--runtime 20 --set filesize=4m", 2 * tests, 2 * tests);
    for (run, arm, mount) in suite.started() {
        let kind = ["btrfs", "ext4"][arm as usize % 2];
        assert!(mount.contains(&format!("zfs_ufs_unit.{kind}: loop device {kind} ")), "run {run}: {mount}");
    }
}

#[test]
fn a_database_runs_with_and_without_a_live_snapshot() {
    needs!(mounts::available(&[Fs::Btrfs]));
    undisturbed(|| {
        let small = [("repeats = 5", "repeats = 1"), ("-s 8G", "-s 1G")];
        let suite = ShippedSuite::new("oltp_snapshot", &["oltp_snapshot.mnt"], &small, &[]);
        suite.run("--runtime 0.5 --warmup 0 --set filesize=4m --set logfilesize=2m --set nshadows=10", 4, 4);
        for (run, _, mount) in suite.started() {
            assert!(mount.contains("oltp_snapshot.mnt: loop device btrfs "), "run {run}: {mount}");
        }
    });
}

/// The reads use the files that earlier runs have left, also those of the writes.
#[test]
fn vxbench_is_mounted_before_each_run() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs, Fs::Btrfs]));
    let sizes = "levels = [\"8k\", \"64k\"]";
    let small = [
        ("repeats = 3", short_or_long("repeats = 1", "repeats = 2")),
        ("-s 10G", "-s 1G"),
        (sizes, short_or_long("levels = [\"64k\"]", sizes)),
    ];
    let others = ["name = \"2\"", "name = \"4\"", "name = \"8\"", "name = \"16\""];
    let (omitted, levels) = short_or_long((&others[..], 2), (&[][..], 6));
    let suite = ShippedSuite::new("vxbench_matrix", &["vxbench_matrix.mnt"], &small, omitted);
    let kinds = ["btrfs", "ext4", "xfs", "raw"];
    let cells = short_or_long(2, 4) * levels * kinds.len();
    let runs = short_or_long(1, 2) * cells;
    let text = suite.run("--runtime 20 --set total=4m", cells, runs);
    assert!(text.contains("fs=raw") && text.contains("over ext4") && !text.contains("raw in "), "{text}");
    let mut exist = vec![false; levels * kinds.len()];
    for (run, arm, mount) in suite.started() {
        let kind = kinds[arm as usize % kinds.len()];
        // The bound is on the file system that has the images.
        let has_own = mount.contains(&format!("vxbench_matrix.mnt: loop device {kind} "));
        assert_eq!(has_own, kind != "raw", "run {run}: {mount}");
        let (is_read, level) = ((arm as usize) < cells / 2, arm as usize % exist.len());
        let result: Value = serde_json::from_str(&suite.text(&format!("runs/{run:04}.json"))).unwrap();
        let repaired = &result["runs"][0]["filesets"][0]["repaired"];
        if is_read && exist[level] {
            assert_eq!((&repaired["made"], &repaired["resized"]), (&0.into(), &0.into()), "run {run}: {repaired}");
        }
        exist[level] = true;
    }
    let ended = |name: &str| suite.lab.events("r").iter().filter(|e| e["event"] == "hook" && e["name"] == name).count();
    assert_eq!((ended("before-run"), ended("before-run-2"), ended("after-run")), (runs, runs, runs));
    assert!(suite.text(&format!("hooks/{runs:04}-before-run-2.log")).contains("/streams:"), "the files are listed");
}

#[test]
fn the_file_systems_are_checked_after_each_run() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs, Fs::Btrfs]));
    undisturbed(|| {
        let small = [
            ("repeats = 3", short_or_long("repeats = 1", "repeats = 2")),
            ("-s 16G", "-s 1G"),
            ("fraction = 100 ", "fraction = 5000 "),
            ("fraction = 10 ", "fraction = 1000 "),
        ];
        let suite = ShippedSuite::new("fsck", &["fsck.mnt"], &small, &[]);
        let runs = short_or_long(6, 12);
        let text = suite.run("--runtime 0.2", 6, runs);
        assert!(text.contains("used before") && text.contains("after-check.seconds"), "{text}");
        let times = suite.lab.events("r").into_iter().filter(|e| e["event"] == "hook" && e["name"] == "after-check");
        let mut times: Vec<f64> = times.map(|event| event["seconds"].as_f64().unwrap()).collect();
        let csv = suite.lab.run("experiment --resume r --quiet --format csv", 0);
        let mut values: Vec<f64> = csv
            .lines()
            .filter(|line| line.contains(",after-check.seconds,"))
            .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
            .collect();
        times.sort_by(f64::total_cmp);
        values.sort_by(f64::total_cmp);
        assert_eq!((values.len(), values), (runs, times), "{csv}");
        // Words of e2fsck, xfs_repair and `btrfs check`.
        let says = ["Checking group summary information", "No modify flag set", "no error found"];
        for run in 1..=runs {
            let log = suite.text(&format!("hooks/{run:04}-after-check.log"));
            let words = says[(run - 1) / (runs / 3)];
            assert!(log.contains(words) && log.contains("real") && log.contains("sys"), "run {run}: {log}");
        }
    });
}

/// Whether a process works in a directory.
fn is_used(dir: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok()).any(|cwd| cwd == dir)
}

/// The command in a mount namespace in which the boot has another number, in the file `boot_id` of its directory.
fn after_reboot(lab: &Lab, words: &str) -> Command {
    fs::write(lab.path("boot_id"), "00000000-0000-4000-8000-000000000000\n").unwrap();
    let (inner, enter) =
        (lab.command(words), "mount --bind boot_id /proc/sys/kernel/random/boot_id && exec \"$0\" \"$@\"");
    let mut call = Command::new("unshare");
    call.args(["--mount", "sh", "-c", enter]).arg(inner.get_program()).args(inner.get_args());
    call.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(lab.path(""));
    call
}

/// The study is killed while snapshots are taken, and again in a run, and continues after a reboot: no run and no
/// snapshot is made twice, and each run measures the same files.
#[test]
fn the_snapshot_study_continues_with_the_same_files() {
    needs!(mounts::available(&[Fs::Btrfs]));
    undisturbed(|| {
        let levels: &[u32] = short_or_long(&[2, 3], &[10, 20, 40]);
        let named: Vec<String> = levels.iter().map(|level| format!("{{ name = \"{level}\" }}")).collect();
        let named = named.join(", ");
        let hook = "[[hook]]\nat = \"run\"\nafter = \"cd snapshots.mnt/data && \
        find . -type f -name '0*' -printf '%p %i\\\\n' | sort > ../../inodes.$WMLRUN_RUN\"\n\n";
        let workload = "[[factor]]\nname = \"workload\"";
        let with_hook = format!("{hook}{workload}");
        let small = [
            ("{ name = \"30\" }, { name = \"60\" }, { name = \"120\" }", named.as_str()),
            ("repeats = \"3..10\"", "repeats = 2"),
            ("until-ci = \"5%\"\n", ""),
            ("print 30 *", "print 1 *"),
            ("-s 32G", "-s 2G"),
            (workload, with_hook.as_str()),
        ];
        let others = ["iozone_re", "iozone_rand", "iozone_back", "iozone_stride", "iozone_f"];
        let (omitted, workloads) = short_or_long((&others[..], 2), (&[][..], 14));
        let last = *levels.last().unwrap() as usize;
        let suite = ShippedSuite::new("snapshots", &["snapshots.mnt"], &small, omitted);
        let lab = &suite.lab;
        let (series, runs) = (2 * workloads, 2 * workloads * (1 + levels.len()));
        let words = suite.words("--runtime 0.2 --set filesize=8m --set iosize=64k");
        let dir = lab.path("").canonicalize().unwrap();
        let killed_at = |words: &str, moment: &dyn Fn()| {
            let mut child = lab.command(words).spawn().unwrap();
            moment();
            child.kill().unwrap();
            child.wait().unwrap();
            wait_for("the end of the agers", || !is_used(&dir));
        };
        let run_ended = |run: usize| wait_for(&format!("run {run}"), || lab.path(&format!("inodes.{run}")).exists());
        let resume = "experiment --resume r --quiet";
        killed_at(&words, &|| {
            (1..=series).for_each(run_ended);
            wait_for("a snapshot", || lab.path("snapshots.mnt/snapshots/0001").exists());
        });
        // Interrupted, it can be continued by systemd after each start of the machine.
        let unit = lab.run("experiment --print-unit r --allow-system", 0);
        assert!(unit.contains("experiment --resume") && unit.contains(" --allow-system --quiet\n"), "{unit}");
        is_valid_unit(lab, &unit);
        killed_at(resume, &|| run_ended(series + 1));
        // After a reboot nothing is mounted.
        mounts::undo(&lab.path("snapshots.mnt"), None, None);
        exits(&after_reboot(lab, resume).output().unwrap(), 0, resume);
        is_complete(lab, "r", runs as u64, "snapshots");
        let boots: BTreeSet<String> =
            lab.events("r").iter().filter_map(|event| event["boot"].as_str().map(str::to_owned)).collect();
        assert_eq!(boots.len(), 2, "{boots:?}");
        let snapshots =
            |run: usize| suite.text(&format!("records/{run:04}-1.txt")).matches("snapshots.mnt/snapshots/").count();
        assert_eq!((snapshots(series), snapshots(runs)), (0, last));
        let inodes = |run: usize| fs::read_to_string(lab.path(&format!("inodes.{run}"))).unwrap();
        // 10 data files, a log and two files of IOzone.
        assert_eq!((inodes(series).lines().count(), inodes(series)), (13, inodes(runs)));
        // The image stays, and nothing is mounted.
        assert!(lab.path("snapshots.img").exists() && !lab.path("snapshots.mnt").exists(), "{:?}", names(lab));
        let cells = ["0", last.to_string().as_str()].map(|level| format!("r:snapshots={level},workload=oltp_sync"));
        let output = lab.command("compare --method study").args(cells).output().unwrap();
        let text = any_verdict(&output);
        assert!(text.contains("F-test"), "{text}");
        let tables = lab.run("report r --format text", 0);
        assert!(tables.contains("shadowread.mib over snapshots, workload=oltp_sync"), "{tables}");
        lab.run("report r -o page.html", 0);
        let page = fs::read_to_string(lab.path("page.html")).unwrap();
        for part in ["Normal QQ plots: ", "Distributions: ", "Used space over snapshots"] {
            assert!(page.contains(part), "{part}");
        }
    });
}
