//! Tests what becomes of a program whose recorder is killed at any moment: by programs in the kernel it goes on as if there
//! had been none, by ptrace it does if the recorder was attached, and dies if the recorder started it. No call of it ever
//! fails, as all do where `strace --seccomp-bpf` is killed, and nothing stays in the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cmd::{has, long};
use crate::truth::{Truth, has_bpf, show, wait_for};

/// A recording of a program and what is compared.
struct Scene {
    truth: Truth,
    calls: u32,
    /// What the program does without a recorder.
    undisturbed: Vec<String>,
    /// When the recorder is killed.
    moments: Vec<Duration>,
}

impl Scene {
    /// `slower`: so many times as long it takes with a recorder, at least.
    fn new(calls: u32, slower: u32) -> Self {
        let truth = Truth::new();
        let words = truth.watched(calls);
        let began = Instant::now();
        assert!(Command::new(&words[0]).args(&words[1..]).status().unwrap().success());
        truth.wait();
        let took = began.elapsed();
        let undisturbed = truth.output();
        assert!(undisturbed.len() > calls as usize);
        let moments = if long() { 20 } else { 3 };
        let moments = (0..moments).map(|n| Duration::from_millis(50) + took * slower * n / moments).collect();
        Self { truth, calls, undisturbed, moments }
    }

    fn started(&self, by: &str) -> Child {
        let words = self.truth.watched(self.calls);
        self.truth.recorder(by, &["--"]).args(&words).spawn().unwrap()
    }

    /// The program, and the recorder that attaches to it.
    fn attached(&self, by: &str) -> (Child, Child) {
        let words = self.truth.words(self.calls);
        let program = Command::new(&words[0]).args(&words[1..]).spawn().unwrap();
        let recorder = self.truth.recorder(by, &["-p", &program.id().to_string()]).spawn().unwrap();
        (program, recorder)
    }

    #[track_caller]
    fn is_undisturbed(&self, at: Duration) {
        assert!(!self.truth.has_enosys(), "{at:?}");
        assert!(self.truth.output() == self.undisturbed, "{at:?}: the program did something else");
    }

    /// Whether the program has begun.
    fn has_begun(&self) -> bool {
        self.truth.path("files").read_dir().unwrap().next().is_some()
    }

    /// Whether a process of the program or of its recorder is there, by its command.
    fn is_left(&self) -> bool {
        let dir = self.truth.dir.path().to_str().unwrap();
        let commands = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path().join("cmdline"));
        commands.into_iter().any(|command| fs::read_to_string(command).is_ok_and(|command| command.contains(dir)))
    }
}

/// The programs in the kernel that a process holds, by their numbers.
fn held(process: u32) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let number = |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    texts.filter_map(number).collect()
}

fn in_kernel() -> BTreeSet<u64> {
    let shown = Command::new("bpftool").args(["prog", "show", "--json"]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown.as_array().unwrap().iter().map(|program| program["id"].as_u64().unwrap()).collect()
}

/// Kills a recorder, and returns whether it had programs in the kernel, which go with it.
fn kill(mut recorder: Child) -> bool {
    let pid = Pid::from_raw(recorder.id() as i32).unwrap();
    // Stopped, so that it loads none after they were looked at.
    kill_process(pid, Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", recorder.id());
    wait_for(|| fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ") || stat.contains(") Z ")));
    let held = held(recorder.id());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    if held.is_empty() {
        return false;
    }
    wait_for(|| in_kernel().is_disjoint(&held));
    true
}

#[test]
fn programs_in_the_kernel_go_with_their_recorder_and_the_program_goes_on() {
    needs!(has_bpf());
    needs!(has("bpftool"), "needs bpftool");
    let scene = Scene::new(400_000, 1);
    let ends = |at| {
        wait_for(|| scene.has_begun() || !scene.is_left());
        if scene.has_begun() {
            scene.truth.wait();
            scene.is_undisturbed(at);
        }
    };
    // Whatever the moments are, once it surely had programs in the kernel.
    let recorder = scene.started("bpf");
    wait_for(|| !held(recorder.id()).is_empty());
    assert!(kill(recorder));
    ends(Duration::ZERO);
    let mut with_programs = 0;
    for at in &scene.moments {
        let recorder = scene.started("bpf");
        sleep(*at);
        with_programs += usize::from(kill(recorder));
        ends(*at);
        let (mut program, recorder) = scene.attached("bpf");
        sleep(*at);
        with_programs += usize::from(kill(recorder));
        assert!(program.wait().unwrap().success());
        scene.is_undisturbed(*at);
        wait_for(|| !scene.is_left());
    }
    let killed = 2 * scene.moments.len() + 1;
    show(&format!("{killed} recorders by bpf killed, {} with programs in the kernel: all gone", with_programs + 1));
}

#[test]
fn what_ptrace_started_dies_with_it_and_what_it_was_attached_to_goes_on() {
    let scene = Scene::new(100_000, 4);
    let mut died = 0;
    for at in &scene.moments {
        let recorder = scene.started("ptrace");
        if died == 0 {
            // However long the machine takes to begin.
            wait_for(|| scene.has_begun());
        }
        sleep(*at);
        kill(recorder);
        wait_for(|| !scene.is_left());
        assert!(!scene.truth.has_enosys(), "{at:?}");
        match scene.truth.has_ended() {
            // It had ended before.
            true => scene.is_undisturbed(*at),
            false => died += usize::from(scene.has_begun()),
        }
        let (mut program, recorder) = scene.attached("ptrace");
        sleep(*at);
        kill(recorder);
        assert!(program.wait().unwrap().success());
        scene.is_undisturbed(*at);
        wait_for(|| !scene.is_left());
    }
    show(&format!("{} recorders by ptrace killed: {died} programs died that one had started", 2 * scene.moments.len()));
    assert!(died > 0);
}

/// The control: with this way to record, calls fail, and the tests above would see it.
#[test]
fn calls_fail_when_strace_with_a_filter_is_killed() {
    needs!(long());
    needs!(has("strace"), "needs strace");
    let scene = Scene::new(20_000, 1);
    let words = scene.truth.watched(scene.calls);
    let args = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=pread64", "-o", "/dev/null"];
    let mut strace = Command::new("strace").args(args).args(&words).spawn().unwrap();
    wait_for(|| scene.truth.path("files/thread0").exists());
    strace.kill().unwrap();
    strace.wait().unwrap();
    scene.truth.wait();
    let failed = scene.truth.output().iter().filter(|call| call.ends_with(" -38")).count();
    show(&format!("strace --seccomp-bpf killed: {failed} calls of the program failed with ENOSYS"));
    assert!(failed > 0);
}
