//! Loops and what comes before them, of traces that are made here.

#![allow(clippy::unwrap_used)]

use crate::tests::{CREATE, MadeTrace};

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn a_rare_call_ends_no_iteration_for_hiding_how_often_others_are_made() {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(5));
    for n in 0..3000 {
        for _ in 0..=chance.below(12) {
            trace.moves("pread64", "/d/table", chance.below(400) * 4096, 400 * 4096, 4096);
        }
        trace.moves("pwrite64", "/d/log", n * 100, n * 100, 100);
        trace.call("fdatasync", "/d/log", |_| ());
        if chance.below(40) == 0 {
            trace.call("newfstatat", "/d/settings", |call| call.stat_size = Some(9));
        }
    }
    let script = trace.script();
    let end = script.lines().find(|line| line.starts_with("# Transaction: ")).unwrap_or_else(|| panic!("{script}"));
    assert!(!end.contains("statfile"), "{script}");
    assert!(script.contains("thread, 2,999 iterations"), "{script}");
}
