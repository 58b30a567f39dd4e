//! Tests the first signal while the program waits, computes, or reads: it ends soon, wherever it is, with the status of
//! the signal. A measurement so far is reported; that is tested in `interrupt` and `signals`.
//!
//! Limits on times are those of a hang: a busy machine may take long.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::cmd::{Wml, long, program, tool};
use crate::fuse::{self, Act, Kind, Slow};

/// Something that the program does for longer than the limit of the test, unless a signal ends it.
struct Busy {
    name: &'static str,
    /// The arguments; `FUSE` is a file system that does not answer, with a script `x.wml`.
    words: &'static str,
    /// Whether standard input is a pipe that nobody writes to.
    has_input: bool,
    /// How long after the start the signal comes, if it does not wait for a call that hangs.
    after: Duration,
}

/// When a program is at work that starts at once.
const AT_WORK: Duration = Duration::from_millis(1500);

const fn busy(name: &'static str, words: &'static str) -> Busy {
    Busy { name, words, has_input: false, after: AT_WORK }
}

const fn input(name: &'static str, words: &'static str) -> Busy {
    Busy { name, words, has_input: true, after: AT_WORK }
}

/// The longest work that there can be, half a second on a fast machine.
const fn brief(name: &'static str, words: &'static str) -> Busy {
    Busy { after: Duration::from_millis(200), ..busy(name, words) }
}

const BUSY: &[Busy] = &[
    busy("a pipe as a script", "pipe"),
    busy("a pipe as an experiment file", "experiment pipe"),
    busy("a pipe as a result", "compare pipe pipe"),
    busy("a pipe to be checked", "check pipe"),
    input("standard input as a script", "- --engine null"),
    input("standard input to be checked", "check -"),
    input("standard input of the shell", "repl"),
    input("standard input of the language server", "lsp"),
    busy("a script that sleeps", "sleeps.wml --engine null --quiet"),
    busy("a script that waits for a command", "commands.wml --allow-system --quiet"),
    busy("a run", "runs.wml --engine null --runtime 600 --quiet"),
    busy("a run without a file system to wait for", "delays.wml --engine null --runtime 600 --quiet"),
    busy("files that are made", "files.wml --no-quiesce --quiet --runtime 600"),
    busy("the plan of a large script", "plan large.wml"),
    busy("the check of a large script", "check large.wml"),
    busy("the start of a large script", "large.wml --engine null --quiet"),
    brief("a comparison of long columns", "compare column:1 column:1"),
    busy("an experiment with a run", "repeat runs.wml --engine null --runtime 600 --results r --quiet"),
    busy(
        "an experiment with a command between its runs",
        "ab sleeps.wml --engine null --before=sleep\u{a0}600 --results r --quiet",
    ),
    busy("a script that does not answer", "FUSE/x.wml"),
    busy("a script that does not answer, loaded", "loads.wml --engine null"),
    busy("a result that does not answer", "report FUSE/x.wml"),
    busy("a folder that does not answer", "compare FUSE/x.wml FUSE/x.wml"),
];

/// Scripts and other files. `large.wml` takes 6 s to plan on a fast machine, with as many flowops as a script may have.
fn prepared() -> Wml {
    let process = |flowop: &str| format!("define process name=p {{ thread name=t {{ {flowop} }} }}\n");
    let delay = process("flowop delay name=d,value=0.001");
    let flowops: String = (0..40_000).map(|n| format!("flowop c name=u{n}\n")).collect();
    let variables: String = (0..1_000_000).map(|n| format!("set $a{n}={n}\n")).collect();
    let column: String = (0..100_000_u32).map(|n| format!("{}\n", 1 + n % 97)).collect();
    let files = "define fileset name=f,path=$dir,entries=3000000,size=0,dirwidth=1000,prealloc\n";
    let wml = Wml::new()
        .file("sleeps.wml", &format!("{delay}create processes\nsleep 600\n"))
        .file("commands.wml", "system \"sleep 600\"\n")
        .file("runs.wml", &delay)
        .file("delays.wml", &process("flowop delay name=d,value=600"))
        .file("files.wml", &(files.to_owned() + &process("flowop statfile name=s,filesetname=f")))
        .file(
            "large.wml",
            &format!(
                "define flowop name=c {{ flowop delay name=d\nflowop delay name=e }}\n{variables}{}",
                process(&flowops)
            ),
        )
        .file("column", &column);
    tool("mkfifo", &[wml.dir().join("pipe").to_str().unwrap()]);
    wml
}

fn start(wml: &Wml, case: &Busy, fuse: Option<&Slow>) -> Child {
    let place = fuse.map_or_else(String::new, |fuse| fuse.dir().display().to_string());
    let mut command = program();
    // A blank in an argument is written as one that does not break.
    command.args(case.words.split_ascii_whitespace().map(|word| word.replace('\u{a0}', " ").replace("FUSE", &place)));
    command.current_dir(wml.dir()).stdin(if case.has_input { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::null()).stderr(fs::File::create(wml.dir().join("stderr")).unwrap());
    std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap()
}

#[test]
fn the_first_signal_ends_the_program_wherever_it_is() {
    let has_fuse = fuse::available();
    let wml = prepared();
    let signals = [(Signal::INT, 130), (Signal::TERM, 143)];
    let all: Vec<_> = BUSY.iter().flat_map(|case| signals.map(|signal| (case, signal))).collect();
    // A sample for every day has each case with one of the signals in turn.
    let is_taken = |n: usize| long() || n % 2 == (n / 2) % 2;
    let mut slowest = (Duration::ZERO, "");
    for (case, (signal, code)) in all.into_iter().enumerate().filter(|(n, _)| is_taken(*n)).map(|(_, case)| case) {
        let of_fuse = case.words.contains("FUSE") || case.words.starts_with("loads");
        if of_fuse && !has_fuse {
            continue;
        }
        let hangs = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&hangs);
        let slow = of_fuse.then(|| {
            Slow::of_all(move |kind, _, _| match kind {
                Kind::Open | Kind::Read | Kind::Lookup if asked.load(Ordering::SeqCst) => Act::Hang,
                _ => Act::After(Duration::ZERO),
            })
        });
        if let Some(slow) = &slow {
            fs::write(slow.dir().join("x.wml"), "run 1\n").unwrap();
            fs::write(wml.dir().join("loads.wml"), format!("load \"{}/x.wml\"\n", slow.dir().display())).unwrap();
            hangs.store(true, Ordering::SeqCst);
        }
        let _ = fs::remove_dir_all(wml.dir().join("r"));
        let mut child = start(&wml, case, slow.as_ref());
        match &slow {
            Some(slow) => assert!(slow.wait_for_hang(Duration::from_mins(1)), "{}: it did not hang", case.name),
            None => std::thread::sleep(case.after),
        }
        assert_eq!(child.try_wait().unwrap(), None, "{}: it has ended before the signal", case.name);
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            // The kernel keeps a process whose call a file system holds.
            let killed = fs::read_to_string(format!("/proc/{}/status", child.id()))
                .is_ok_and(|text| of_fuse && (text.contains("State:\tZ") || is_ending(&text)));
            if killed || since.elapsed() > Duration::from_secs(20) {
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let elapsed = since.elapsed();
        let _ = kill_process_group(pid, Signal::KILL);
        if let Some(slow) = &slow {
            hangs.store(false, Ordering::SeqCst);
            slow.release();
        }
        let status = status.unwrap_or_else(|| child.wait().unwrap());
        let found = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let text = fs::read_to_string(wml.dir().join("stderr")).unwrap();
        assert!(elapsed < Duration::from_secs(20), "{} went on after {signal:?}\n{text}", case.name);
        assert_eq!(found, code, "{} after {signal:?}\n{text}", case.name);
        assert!(!text.contains("panicked"), "{} after {signal:?}\n{text}", case.name);
        if elapsed > slowest.0 {
            slowest = (elapsed, case.name);
        }
    }
    #[expect(clippy::print_stdout, reason = "the figure of the check")]
    {
        println!("the slowest answer took {:.2} s: {}", slowest.0.as_secs_f64(), slowest.1);
    }
}

/// Whether a process has a pending SIGKILL, or its first thread has ended, by its status: the kernel ends it as soon as
/// its calls return.
fn is_ending(status: &str) -> bool {
    const KILL: u64 = 1 << 8;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
    u64::from_str_radix(field("SigPnd:"), 16).unwrap_or(0) & KILL != 0
}
