//! Tests SIGINT and SIGTERM: the run stops at once, and the measurement so far is reported.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cmd::{Running, Wml, memory, number, tool};
use crate::signals::wait_for;
use crate::undisturbed::undisturbed;

fn started() -> Running {
    let sets = [("filesize", "16m"), ("iosize", "4k")];
    let mut running =
        Wml::below(&memory()).args(["randomread", "--runtime", "60"]).sets(&sets).result().alone().start();
    running.wait_until_reading();
    running
}

/// Text and result have the figures of the part that ran, and say that it was interrupted.
fn assert_stops(signal: Signal, code: i32, name: &str) {
    let running = started();
    let asked = Instant::now();
    running.signal(signal);
    let output = running.wait().exits(code);
    assert!(asked.elapsed() <= Duration::from_secs(1), "it took {:?} to end", asked.elapsed());
    let run = output.only_run();
    assert_eq!(run["state"], "interrupted");
    assert!(run["ended_by"].as_str().unwrap().contains(name), "ended by {}", run["ended_by"]);
    assert!(number(&run, &["summary", "ops"]) > 0.0);
    // At least the two tenths of a second between three sights of its reads, and not as long as all of the call.
    let measured = number(&run, &["measured_seconds"]);
    assert!((0.2..output.elapsed.as_secs_f64()).contains(&measured), "{measured} s measured");
    assert!(output.stdout.contains("rand-read1") && output.stdout.contains("interrupted"), "{}", output.stdout);
    assert_eq!(output.left(), [""; 0], "left behind");
}

#[test]
fn an_interrupt_ends_the_run_with_its_report() {
    undisturbed(|| {
        assert_stops(Signal::INT, 130, "SIGINT");
    });
}

#[test]
fn a_termination_ends_the_run_with_its_report() {
    undisturbed(|| {
        assert_stops(Signal::TERM, 143, "SIGTERM");
    });
}

/// Threads that wait for each other are let go too.
#[test]
fn waiting_threads_do_not_delay_the_end() {
    undisturbed(|| {
        let script = "\
define process name=p {
  thread name=sleeper { flowop delay name=d,value=1000 }
  thread name=waiter { flowop semblock name=never,value=1,highwater=1 }
  thread name=blocked { flowop block name=b }
}
";
        let mut running =
            Wml::new().file("waits.wml", script).args(["waits.wml", "--runtime", "60"]).result().alone().start();
        running.wait_until_asleep(3);
        let asked = Instant::now();
        running.signal(Signal::INT);
        let output = running.wait().exits(130);
        assert!(asked.elapsed() <= Duration::from_secs(1), "it took {:?} to end", asked.elapsed());
        assert_eq!(output.only_run()["state"], "interrupted");
    });
}

/// The time between two signals that count as one: a third of the program's limit.
const TOGETHER: Duration = Duration::from_millis(100);

/// `timeout` sends its signal to the program and then to the group that it is in.
#[test]
fn a_signal_repeated_within_a_moment_counts_once() {
    undisturbed(|| {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            let twice = || {
                let call = Wml::below(&memory()).args(["randomread", "--runtime", "60", "--no-quiesce"]);
                let mut running = call.sets(&[("filesize", "1m")]).result().start();
                running.wait_until_reading();
                let first = Instant::now();
                running.signal(signal);
                sleep(Duration::from_millis(5));
                running.signal(signal);
                let apart = first.elapsed();
                (apart, running.wait().exits(128 + signal.as_raw()))
            };
            // On a busy machine the second one may come too late to be the same.
            let (_, output) =
                std::iter::repeat_with(twice).take(5).find(|(apart, _)| *apart < TOGETHER).expect("sent together");
            assert_eq!(output.only_run()["state"], "interrupted");
            assert_eq!(output.left(), [""; 0], "left behind");
        }
    });
}

/// The second signal ends the program without waiting, and the message names what is left behind.
#[test]
fn a_second_interrupt_ends_the_program_at_once_with_a_message() {
    let script = "define fileset name=data,path=$dir,entries=1,size=4k,prealloc=100\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data flowop delay name=d,value=1 } }\n";
    let mut running =
        Wml::new().file("w.wml", script).args(["w.wml", "--runtime", "60", "--no-quiesce"]).alone().start();
    running.wait_until_asleep(1);
    // Both before the first can be acted on, as far as a machine lets them.
    running.signal(Signal::STOP);
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    running.signal(Signal::CONT);
    let output = running.wait();
    let code = output.status.code();
    assert!(code == Some(130) || code == Some(143), "{}", output.shown());
    assert!(output.stderr.contains("exited immediately: the measurement is lost"), "{}", output.shown());
}

/// A pipe that no program writes to is given up, and nothing was measured.
#[test]
fn a_script_in_a_pipe_without_a_writer_ends_with_the_first_signal() {
    for args in [&["pipe"][..], &["experiment", "pipe"], &["repeat", "pipe"]] {
        let call = Wml::new().args(args).idle();
        let pipe = call.dir().join("pipe");
        tool("mkfifo", &[pipe.to_str().unwrap()]);
        let running = call.start();
        let descriptors = format!("/proc/{}/fd", running.pid());
        wait_for("the pipe is open", || {
            let open = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
            open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|path| path.ends_with("pipe"))
        });
        running.signal(Signal::TERM);
        let output = running.wait().exits(143);
        assert!(output.stderr.contains("a signal ended the wait for its writer"), "{args:?}: {}", output.shown());
        assert_eq!(output.left(), ["pipe"], "{args:?}");
    }
}

#[test]
fn a_script_comes_from_a_program_that_is_slow() {
    let script = "define process name=p { thread name=t { flowop delay name=d,value=0.01 } }\n";
    let line = "\"$0\" <(sleep 0.3; cat s.wml; sleep 0.3; echo run 0.1) --engine null";
    Wml::new().file("s.wml", script).under(["bash", "-c", line]).run().exits(0);
}
