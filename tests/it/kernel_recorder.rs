//! Tests `wmlrun record` by programs in the kernel: what stays when the recorder dies, and when it can't be used. Whether
//! each call is seen once is tested in `src/trace/bpf`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cmd::{binary, disk, has, long, skip};

/// A program that says each of its calls, a directory for its files, and a shell that says when it has ended.
struct Truth {
    dir: TempDir,
}

impl Truth {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("needs root");
            return None;
        }
        if !has("bpftool") {
            skip("needs bpftool");
            return None;
        }
        let dir = TempDir::new_in(disk()).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trace/tests/truth.c");
        let program = dir.path().join("truth");
        let built = Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&program, &source]).status().unwrap();
        assert!(built.success());
        Some(Self { dir })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The words that run it in an empty directory.
    fn words(&self, calls: u32) -> Vec<String> {
        let _ = fs::remove_dir_all(self.path("files"));
        fs::create_dir(self.path("files")).unwrap();
        for name in ["log", "status", "t.wtrace"] {
            let _ = fs::remove_file(self.path(name));
        }
        let script = format!(
            "cd {}; ./truth $PWD/files $PWD/log {calls} uring; echo $? > s; mv s status",
            self.path("").display()
        );
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    }

    fn recorder(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["record", "--by", "bpf", "-o"]).arg(self.path("t.wtrace")).arg("--under").arg(self.path("files"));
        command.args(args).stderr(Stdio::null());
        command
    }

    /// How many calls the program has made, when it has ended.
    fn ended(&self) -> usize {
        let began = Instant::now();
        while !self.path("status").exists() {
            assert!(began.elapsed() < Duration::from_mins(1), "the program does not end");
            sleep(Duration::from_millis(10));
        }
        assert_eq!(fs::read_to_string(self.path("status")).unwrap(), "0\n");
        let log = fs::read_to_string(self.path("log")).unwrap();
        // ENOSYS is what a call fails with whose recorder is gone.
        assert!(!log.lines().any(|line| line.ends_with(" -38")), "{log}");
        log.lines().count()
    }
}

/// The programs of recorders that are in the kernel.
fn in_kernel() -> String {
    let shown = Command::new("bpftool").args(["prog", "show", "name", "entered"]).output().unwrap();
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

fn kill(mut recorder: Child) {
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let began = Instant::now();
    while !in_kernel().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", in_kernel());
        sleep(Duration::from_millis(20));
    }
}

/// One test, so that no other recorder of it is in the kernel.
#[test]
fn a_recorder_that_is_killed_leaves_the_program_alone_and_nothing_in_the_kernel() {
    const CALLS: u32 = 400_000;
    let Some(truth) = Truth::new() else { return };
    let moments = if long() { 20 } else { 3 };
    let words = truth.words(CALLS);
    assert!(Command::new(&words[0]).args(&words[1..]).status().unwrap().success());
    let undisturbed = truth.ended();
    let mut seen = 0;
    for moment in 0..moments {
        let delay = Duration::from_millis(100 + 1500 * moment / moments);
        let words = truth.words(CALLS);
        let recorder = truth.recorder(&["--"]).args(&words).spawn().unwrap();
        sleep(delay);
        seen += usize::from(!in_kernel().is_empty());
        kill(recorder);
        // It may not have started.
        sleep(Duration::from_millis(200));
        if truth.path("files").read_dir().unwrap().next().is_some() {
            assert_eq!(truth.ended(), undisturbed, "started, {delay:?}");
        }
        let words = truth.words(CALLS);
        let mut program = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
        let recorder = truth.recorder(&["-p", &program.id().to_string()]).spawn().unwrap();
        sleep(delay);
        kill(recorder);
        assert!(program.wait().unwrap().success());
        assert_eq!(truth.ended(), undisturbed, "attached, {delay:?}");
    }
    assert!(seen > 0);
}

#[test]
fn where_the_kernel_has_no_types_the_reason_is_named_and_ptrace_is_used() {
    let Some(truth) = Truth::new() else { return };
    let run = |more: &str| {
        let _ = fs::remove_file(truth.path("t.wtrace"));
        let script = format!(
            "mount -t tmpfs none /sys/kernel/btf && {} record {more} -o {}/t.wtrace -- true",
            binary().display(),
            truth.dir.path().display()
        );
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = run("");
    assert!(said.contains("note: by ptrace: eBPF needs the types of the kernel") && status == Some(0), "{said}");
    let (status, said) = run("--by bpf");
    assert!(said.contains("can't record: eBPF needs the types of the kernel") && status == Some(3), "{said}");
}
