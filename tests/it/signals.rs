//! Tests signals at any moment: no foreign file changes, no process remains, and the next run works; and child
//! processes, which end with the program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cmd::{Running, Wml, has, long, memory, number, program, short_or_long, tool};
use crate::mounts::{self, Fs, Mount};
use crate::undisturbed::undisturbed;

/// Whether a process is there that is no zombie.
pub(crate) fn lives(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} did not happen in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A command of two processes, which notes their numbers.
pub(crate) const SLEEPS: &str = "sleep 1000 & echo $! > new; echo $$ >> new; mv new pids; wait";

fn with_system() -> (Running, std::path::PathBuf) {
    let wml = Wml::new().file("x.wml", &format!("system \"{}\"\n", SLEEPS.replace('$', "\\$")));
    let pids = wml.dir().join("pids");
    (wml.args(["x.wml", "--allow-system"]).start(), pids)
}

#[test]
fn a_command_ends_with_the_first_signal_and_with_the_program() {
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::HUP], &[Signal::KILL], &[Signal::INT, Signal::TERM]]
    {
        let (running, pids) = with_system();
        wait_for("the command", || pids.exists());
        let pids: Vec<String> = fs::read_to_string(&pids).unwrap().lines().map(str::to_owned).collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| lives(pid)));
        let start = Instant::now();
        signals.iter().for_each(|signal| running.signal(*signal));
        let output = running.wait();
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}\n{}", start.elapsed(), output.shown());
        assert!(output.code() >= 128, "{}", output.shown());
        wait_for("the end of the command", || pids.iter().all(|pid| !lives(pid)));
    }
}

#[test]
fn a_collector_ends_with_the_program() {
    for signal in [Signal::TERM, Signal::KILL] {
        let script = format!(
            "define process name=p {{ thread name=t {{ flowop delay name=d,value=1 }} }}\n\
             create processes\nstats command \"{}\"\nstats clear\nsleep 60\nstats snap\n",
            SLEEPS.replace('$', "\\$")
        );
        let wml = Wml::new().idle().file("x.wml", &script);
        let pids = wml.dir().join("pids");
        let running = wml.args(["x.wml", "--allow-system"]).start();
        wait_for("the collector", || pids.exists());
        let pids: Vec<String> = fs::read_to_string(&pids).unwrap().lines().map(str::to_owned).collect();
        running.signal(signal);
        running.wait();
        wait_for("the end of the collector", || pids.iter().all(|pid| !lives(pid)));
    }
}

/// As `nohup` and the background jobs of a script do it.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let script = "define process name=p { thread name=t { flowop delay name=d,value=1 } }\n";
    let wml = Wml::new().idle().file("x.wml", script).under(["sh", "-c", "trap '' HUP INT; exec \"$0\" \"$@\""]);
    let running = wml.args(["x.wml", "--runtime", "3"]).result().start();
    // The shell has become the program when that has threads.
    wait_for("the run", || fs::read_dir(format!("/proc/{}/task", running.pid())).is_ok_and(|tasks| tasks.count() > 2));
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    let run = running.wait().exits(0).only_run();
    assert_eq!(run["state"], "complete");
    assert!(number(&run, &["measured_seconds"]) > 2.9);
}

#[test]
fn time_in_which_the_program_was_stopped_is_reported() {
    undisturbed(|| {
        let text = "define file name=f,path=$dir,size=1m,prealloc\n\
            define process name=p { thread name=t { flowop read name=r,filename=f,iosize=4k flowop delay name=d,value=0.001 } }\n";
        let call = Wml::below(&memory()).file("x.wml", text).args(["x.wml", "--runtime", "4", "--no-quiesce"]);
        let mut running = call.idle().result().start();
        running.wait_until_reading();
        running.signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(2));
        running.signal(Signal::CONT);
        let output = running.wait().exits(0);
        let run = output.only_run();
        let note = run["warnings"].as_array().unwrap().iter().find(|note| note["code"] == "stopped").cloned();
        let note = note.unwrap_or_else(|| panic!("no warning\n{}", output.shown()));
        assert!(note["message"].as_str().unwrap().contains("was stopped for at least"), "{note}");
        assert!(output.shown().contains("was stopped for at least"), "{}", output.shown());
    });
}

/// Of two at the same moment one has the place, and the other leaves nothing.
#[test]
fn of_simultaneous_starts_exactly_one_succeeds() {
    let script = "define fileset name=data,path=$dir,entries=50,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data flowop delay name=d,value=1 } }\n";
    for round in 0..short_or_long(4, 40) {
        let place = tempfile::Builder::new().prefix("wmlrun-").tempdir_in(crate::cmd::scratch()).unwrap();
        let start = || {
            let wml = Wml::new().idle().file("x.wml", script).args([
                "x.wml",
                "--runtime",
                "2",
                "--no-quiesce",
                "--clean",
                "--dir",
            ]);
            wml.args([place.path()]).start()
        };
        let running: Vec<Running> = (0..4).map(|_| start()).collect();
        let outputs: Vec<_> = running.into_iter().map(Running::wait).collect();
        let won = outputs.iter().filter(|output| output.code() == 0).count();
        let all = outputs.iter().map(crate::cmd::Output::shown).collect::<Vec<_>>().join("\n----\n");
        // One that starts when the first has ended is no loser.
        assert!(won >= 1, "round {round}\n{all}");
        for lost in outputs.iter().filter(|output| output.code() != 0) {
            assert_eq!(lost.code(), 3, "{all}");
            assert!(lost.stderr.contains("E0505"), "the root is in use\n{}", lost.shown());
            assert!(!lost.stderr.contains(" stays"), "no file of it is kept\n{}", lost.shown());
        }
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?} is left\n{all}");
    }
}

/// Names, links and bytes of a tree, which must be equal before and after.
pub(crate) fn picture(dir: &Path) -> BTreeMap<String, (u32, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        all.insert(path.display().to_string(), (meta.mode(), meta.nlink(), bytes));
        if meta.is_dir() {
            all.extend(picture(&path));
        }
    }
    all
}

const PERSONALITIES: [&str; 20] = [
    "fileserver",
    "webserver",
    "varmail",
    "webproxy",
    "oltp",
    "randomread",
    "randomwrite",
    "randomrw",
    "createfiles",
    "copyfiles",
    "mongo",
    "openfiles",
    "singlestreamread",
    "singlestreamwrite",
    "filemicro_create",
    "filemicro_delete",
    "filemicro_rread",
    "filemicro_seqwrite",
    "videoserver",
    "networkfs",
];

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// How many processes have a directory as their working directory.
fn working_in(dir: &Path) -> usize {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    all.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == dir)).count()
}

/// Killed at random moments.
#[test]
fn a_kill_at_any_moment_changes_nothing_foreign_and_the_next_run_works() {
    const SIGNALS: [Signal; 6] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL, Signal::XFSZ, Signal::XCPU];
    let mut dice = Dice(7);
    for round in 0..short_or_long(6, 200_usize) {
        let name = PERSONALITIES[round % PERSONALITIES.len()];
        let signal = SIGNALS[if long() { dice.below(6) as usize } else { round }];
        let place = tempfile::Builder::new().prefix("wmlrun-").tempdir_in(memory()).unwrap();
        let (foreign, dir) = (place.path().join("foreign"), place.path().join("dir"));
        fs::create_dir_all(foreign.join("deep")).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(foreign.join("deep/file"), "theirs").unwrap();
        fs::write(foreign.join("00000001"), "theirs too").unwrap();
        std::os::unix::fs::symlink(&foreign, dir.join("linked")).unwrap();
        fs::hard_link(foreign.join("00000001"), dir.join("00000001")).unwrap();
        let before = picture(&foreign);
        let call = |runtime: &str| {
            let script = crate::scripts::personality(name);
            let mut command = program();
            command.args([name, "--runtime", runtime, "--no-quiesce", "--quiet", "--dir"]).arg(&dir);
            for (name, value) in script.small().into_iter().chain(script.few_threads()).chain(script.buffered()) {
                command.args(["--set", &format!("{name}={value}")]);
            }
            command.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        // The run is long enough that most signals arrive before its end.
        let child = call("0.6").args(["--json", "result.json"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
        let first = child.wait_with_output().unwrap();
        wait_for("the end of all that it has started", || working_in(place.path()) == 0);
        let shown = |output: &std::process::Output| {
            format!("{name} {signal:?} {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!(picture(&foreign), before, "{}", shown(&first));
        assert!(dir.join("linked").is_symlink(), "{}", shown(&first));
        let second = call("0.2").output().unwrap();
        assert!(second.status.success(), "the next run\n{}\nafter\n{}", shown(&second), shown(&first));
        assert_eq!(picture(&foreign), before, "{}", shown(&second));
        let left: Vec<String> = fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| !["foreign", "dir", "result.json"].contains(&name.as_str()))
            .collect();
        assert!(left.is_empty(), "{left:?} was left behind by\n{}", shown(&first));
        let unfinished = picture(&dir).into_keys().find(|path| path.contains(".tmp"));
        assert_eq!(unfinished, None, "left behind by\n{}", shown(&first));
        if let Ok(text) = fs::read_to_string(place.path().join("result.json")) {
            let whole: Result<serde_json::Value, _> = serde_json::from_str(&text);
            assert!(whole.is_ok(), "half a result\n{}", shown(&first));
        }
    }
}

/// Thaws a file system when a test ends.
struct Thaw(String);

impl Drop for Thaw {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").args(["--unfreeze", &self.0]).output();
    }
}

/// A command that writes to a frozen file system can't be killed. The program ends without it, and with its result.
#[test]
fn a_command_that_the_kernel_blocks_is_abandoned() {
    needs!(mounts::available(&[Fs::Ext4]) && has("fsfreeze"));
    let mount = Mount::new(Fs::Ext4, 64 << 20);
    let at = mount.dir().to_str().unwrap().to_owned();
    let command = format!("echo \\$\\$ > new; mv new pid; echo text > {at}/x");
    let live =
        "define process name=p { thread name=t { flowop delay name=d,value=0.001 } }\ncreate processes\nstats clear\n";
    for script in
        [format!("system \"{command}\"\n"), format!("{live}stats command \"{command}\"\nsleep 60\nstats snap\n")]
    {
        let wml = Wml::new().idle().file("x.wml", &script);
        let pid = wml.dir().join("pid");
        let thaw = Thaw(at.clone());
        tool("fsfreeze", &["--freeze", &at]);
        let running = wml.args(["x.wml", "--allow-system"]).result().start();
        wait_for("the command", || pid.exists());
        let pid = fs::read_to_string(&pid).unwrap().trim().to_owned();
        let held = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") D"));
        wait_for("the call", held);
        running.signal(Signal::INT);
        // The command keeps the pipes of the output: it is not waited for them.
        wait_for("the end of the program", || !lives(&running.pid().to_string()));
        assert!(held(), "the command was not held to the end");
        drop(thaw);
        let output = running.wait().exits(130);
        assert!(output.stderr.contains(&format!("process {pid} is still in a system call")), "{}", output.shown());
        assert!(output.dir().join("result.json").exists());
        wait_for("the end of the command", || !lives(&pid));
    }
}

/// Commands that wait for nothing are asked for the end between them.
#[test]
fn a_loop_of_commands_ends_with_the_first_signal() {
    let values = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let heads: String =
        ["a", "b", "c", "d", "e"].iter().map(|name| format!("foreach ${name} in {values} {{\n")).collect();
    let wml = Wml::new().file("x.wml", &format!("{heads}echo \"$a\"\n{}run 1\n", "}\n".repeat(5)));
    let seen = wml.dir().join("seen");
    let out = format!("exec \"$0\" \"$@\" > {}", seen.display());
    let running = wml.under(["sh", "-c", &out]).args(["x.wml", "--quiet"]).start();
    wait_for("the loop", || fs::metadata(&seen).is_ok_and(|meta| meta.len() > 100));
    running.signal(Signal::INT);
    running.wait().exits(130);
}
