//! Threads of made traces that share syncs, and threads of which some transactions need none.

#![allow(clippy::unwrap_used)]

use super::tests::MadeTrace;
use wml_trace::TimeBetween;

const CLIENTS: usize = 4;
const SYNC_TAKES: u64 = 200_000;

/// How transactions end.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    /// One sync is for all who wait.
    Group,
    /// So many per cent sync, one after another, and all take the lock for it.
    Lock(u64),
    /// So many per cent sync, all at once.
    Alone(u64),
}

/// Clients that read a page, compute, and end a transaction.
struct Clients {
    trace: MadeTrace,
    /// When each one comes to its commit, and its sleeps since its last call.
    comes: [u64; CLIENTS],
    slept: [u64; CLIENTS],
    ended: [u64; CLIENTS],
    state: u64,
    log: u64,
}

impl Clients {
    fn new() -> Self {
        let mut all = Self {
            trace: MadeTrace::new(),
            comes: [0; CLIENTS],
            slept: [0; CLIENTS],
            ended: [0; CLIENTS],
            state: 7,
            log: 0,
        };
        (0..CLIENTS).for_each(|client| all.begins(client, client as u64 * 10_000));
        all
    }

    fn next(&mut self, of: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % of
    }

    fn moves(&mut self, client: usize, start: u64, kind: &str, (path, offset): (&str, u64), bytes: u64) {
        self.trace.moves(kind, path, offset, 8_192_000, bytes);
        self.times(client, start, 2_000);
    }

    /// The last call is of this client.
    fn times(&mut self, client: usize, start: u64, duration: u64) {
        let blocked = std::mem::take(&mut self.slept[client]);
        let call = self.trace.last();
        (call.thread, call.start, call.duration) = (client as u32 + 1, start, duration);
        call.between = Some(TimeBetween { blocked, ..TimeBetween::default() });
        self.ended[client] = start + duration;
    }

    fn sleeps(&mut self, client: usize, from: u64, to: u64, woken_by: usize) {
        self.slept[client] += to - from;
        self.trace.sleeps(client as u32 + 1, from, to, woken_by as u32 + 1);
    }

    /// A transaction begins with a page, and comes to its end after a while.
    fn begins(&mut self, client: usize, at: u64) {
        let page = self.next(1000) * 8192;
        self.trace.call("lseek", "/d/table", |call| (call.flags, call.result) = (Some(2), 8_192_000));
        self.times(client, at + 3_000, 1_000);
        self.moves(client, at + 5_000, "pread64", ("/d/table", page), 8192);
        self.comes[client] = self.ended[client] + 40_000 + self.next(300_000);
    }

    /// A client writes the log and syncs it; says when that has ended.
    fn syncs(&mut self, client: usize, at: u64) -> u64 {
        self.moves(client, at, "pwrite64", ("/d/log", self.log % 1000 * 8192), 8192);
        self.log += 1;
        self.trace.call("fdatasync", "/d/log", |_| ());
        self.times(client, at + 3_000, SYNC_TAKES);
        self.ended[client]
    }

    fn run(&mut self, ending: Ending) {
        let (mut free, mut holder) = (0, 0);
        for _ in 0..3000 {
            let first = (0..CLIENTS).min_by_key(|client| self.comes[*client]).unwrap();
            let begin = self.comes[first].max(free);
            let comes = self.comes;
            let waits = |client: usize| comes[client] < free;
            let woken = begin.min(free);
            match ending {
                Ending::Group => {
                    let covered: Vec<usize> =
                        (0..CLIENTS).filter(|client| *client != first && comes[*client] <= begin).collect();
                    for client in covered.iter().copied().chain([first]).filter(|client| waits(*client)) {
                        self.sleeps(client, comes[client], woken, holder);
                    }
                    let end = self.syncs(first, begin);
                    for client in covered {
                        self.sleeps(client, comes[client].max(free), end, first);
                        self.begins(client, end);
                    }
                    self.begins(first, end);
                    (free, holder) = (end, first);
                }
                Ending::Lock(percent) => {
                    if waits(first) {
                        self.sleeps(first, comes[first], woken, holder);
                    }
                    let end = if self.next(100) < percent { self.syncs(first, begin) } else { begin + 1_000 };
                    self.begins(first, end);
                    (free, holder) = (end, first);
                }
                Ending::Alone(percent) => {
                    let at = comes[first];
                    let end = if self.next(100) < percent { self.syncs(first, at) } else { at + 1_000 };
                    self.begins(first, end);
                }
            }
        }
    }
}

fn learned(ending: Ending) -> String {
    let mut clients = Clients::new();
    clients.run(ending);
    clients.trace.script()
}

#[test]
fn threads_that_share_syncs_do_so_in_the_script() {
    let script = learned(Ending::Group);
    let begin = script.find("define flowop name=commit1,group {").unwrap_or_else(|| panic!("{script}"));
    let body = &script[begin..begin + script[begin..].find("\n}").unwrap()];
    assert!(body.contains("filesetname=log") && body.contains("flowop fdatasync"), "{script}");
    assert!(!script.contains(",mix {") && !script.contains("delay"), "{script}");
    assert!(script.contains("  flowop commit1 name=commit1_use\n"), "{script}");
    assert!(script.contains("\n# loop1 shares the syncs of log: 3,000 syncs for "), "{script}");
    // By a call that each transaction has.
    assert!(script.contains("# Transaction: loop1, ends with `lseek whence=end` of table."), "{script}");
}

#[test]
fn transactions_of_which_some_need_no_sync_are_a_mix() {
    for ending in [20, 40, 70].into_iter().flat_map(|percent| [Ending::Lock(percent), Ending::Alone(percent)]) {
        let script = learned(ending);
        assert!(!script.contains(",group") && (script.contains(",mix {") || script.contains("_times=")), "{script}");
    }
}
