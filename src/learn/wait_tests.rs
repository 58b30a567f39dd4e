//! Threads of made traces that wait for each other, and threads that only get in each other's way.

#![allow(clippy::unwrap_used)]

use super::tests::{CREATE, MadeTrace};

const READERS: [u32; 2] = [1, 2];
const WRITER: u32 = 9;

impl MadeTrace {
    fn read_by(&mut self, thread: u32, n: u64) {
        self.moves("pread64", "/d/data", n * 611 % 1000 * 8192, 8_192_000, 8192);
        self.last().thread = thread;
    }

    fn write_by(&mut self, thread: u32, n: u64) {
        self.moves("pwrite64", "/d/log", n * 4096, n * 4096, 4096);
        self.last().thread = thread;
    }

    /// The writer writes five times each time that the readers have read a hundred times. `finds`: in which halts it sleeps.
    fn halts(&mut self, finds: impl Fn(u64) -> bool) {
        let mut slept = 0;
        for halt in 0..200 {
            (0..100).for_each(|n| self.read_by(READERS[usize::from(n % 3 == 0)], halt * 100 + n));
            if finds(halt) {
                self.sleeps(WRITER, slept, self.now(), READERS[halt as usize % 2]);
            }
            (0..5).for_each(|n| self.write_by(WRITER, halt * 5 + n));
            slept = self.now();
        }
    }
}

/// The value of an attribute of a flowop.
fn value_of(script: &str, flowop: &str, attribute: &str) -> u64 {
    let line =
        script.lines().find(|line| line.contains(&format!("flowop {flowop} "))).unwrap_or_else(|| panic!("{script}"));
    let text = line.split(',').find_map(|one| one.strip_prefix(&format!("{attribute}="))).unwrap();
    text.parse().unwrap()
}

#[test]
fn a_thread_that_waits_for_others_does_so_in_the_script() {
    let all = |_| true;
    // What came in time was not waited for.
    let some = |halt| halt % 3 != 2 && halt % 7 != 4;
    for script in [all as fn(u64) -> bool, some].map(|finds| {
        let mut trace = MadeTrace::new();
        trace.halts(finds);
        trace.script()
    }) {
        assert!((99..=101).contains(&value_of(&script, "semblock", "value")), "{script}");
        assert!(value_of(&script, "semblock", "highwater") >= 198, "{script}");
        assert_eq!(value_of(&script, "sempost", "value"), 1, "{script}");
        assert!(script.contains("target=loop2_waits_for_loop1,blocking"), "{script}");
        assert!(script.lines().any(|line| line.contains("flowop appendfile") && line.contains("iters=5")), "{script}");
        assert!(script.contains("# loop2 waits for loop1: for "), "{script}");
    }
}

#[test]
fn a_lock_is_no_semaphore() {
    for seed in 1..30u64 {
        let mut trace = MadeTrace::new();
        let mut state = seed;
        let mut next = |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % of
        };
        for n in 0..6000 {
            let before = trace.now();
            trace.read_by(READERS[next(2) as usize], n);
            if next(10) == 0 {
                trace.sleeps(WRITER, before, trace.now(), READERS[0]);
            }
            if next(4) == 0 {
                trace.write_by(WRITER, n);
            }
        }
        let script = trace.script();
        assert!(!script.contains("semblock"), "{script}");
    }
}

#[test]
fn a_script_that_ends_has_no_semaphores() {
    let mut trace = MadeTrace::new();
    trace.halts(|_| true);
    for n in 0..2000 {
        trace.open(&format!("/d/tree/{n}"), CREATE);
        trace.call("close", &format!("/d/tree/{n}"), |call| call.size = Some(0));
    }
    let script = trace.script();
    assert!(script.contains("finishoncount") && !script.contains("semblock"), "{script}");
    assert!(script.contains("ends by itself."), "{script}");
}
