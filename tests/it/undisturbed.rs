//! Helpers that repeat a failed test of times if the machine was busy with other programs.
//!
//! When other programs, or the host of a virtual machine, take processor time, a sleep of 1 ms takes 10 ms and a rate
//! is not reached, whatever the program under test does. A test that fails during such a time is repeated. A test that
//! fails on an idle machine fails.

use crate::watchdog;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How often a test is done at most.
const ATTEMPTS: u32 = 6;

/// The part of the time that threads waited for a processor from which on a machine is disturbed. The tests' own threads wait for
/// one another too, so it is no small part.
const PART: f64 = 0.25;

/// Does a test, again if it fails while the machine is disturbed.
#[track_caller]
pub(crate) fn undisturbed(test: impl Fn()) {
    for attempt in 1.. {
        let machine = Machine::now();
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let part = machine.waited_part();
        if part < PART || attempt == ATTEMPTS {
            resume_unwind(failure);
        }
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let text = format!(
            "\n{name}: attempt {attempt} failed on a disturbed machine: {:.0} % of its time were waited\n",
            part * 100.0
        );
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        std::thread::sleep(Duration::from_secs(5));
    }
}

/// The machine from some moment on.
pub(crate) struct Machine {
    began: Instant,
    before: Duration,
}

impl Machine {
    /// Begins to watch.
    pub(crate) fn now() -> Self {
        Self { began: Instant::now(), before: waited() }
    }

    /// The part of the time since then in which threads waited for a processor.
    fn waited_part(&self) -> f64 {
        waited().saturating_sub(self.before).as_secs_f64() / self.began.elapsed().as_secs_f64()
    }

    /// Whether other programs took a good part of the processors' time since then.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.waited_part() >= PART
    }
}

/// For how long any thread of the machine has waited for a processor, and the watchdog for its turn.
fn waited() -> Duration {
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    Duration::from_micros(pressure(&text)) + watchdog::overslept()
}

/// The `total` of the line `some`, in microseconds; 0 on a kernel that does not tell.
fn pressure(text: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with("some "));
    line.and_then(|line| line.split_once("total=")?.1.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn waiting_times_of_threads_are_parsed() {
    let text = "some avg10=2.41 avg60=3.17 avg300=1.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    assert_eq!((pressure(text), pressure("")), (123_456, 0));
}

#[test]
fn a_test_that_fails_on_an_idle_machine_is_not_repeated() {
    // What keeps this machine busy meanwhile is not known; so the test itself passes the second time.
    let count = std::cell::Cell::new(0);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        undisturbed(|| {
            count.set(count.get() + 1);
            assert!(count.get() > 1, "the first time");
        });
    }));
    assert_eq!(failed.is_err(), count.get() == 1, "it fails, or is done again, but not both");
}
