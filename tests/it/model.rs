//! Model checking of semaphore, latch, group, notifier and gate with loom: every order of the steps of a few threads.
//!
//! The tests compile the program's source files a second time, with another `super`: atomics and threads of `loom`, and
//! a model of futexes on top of them. `loom` runs a test until it has seen every interleaving with at most
//! [`PREEMPTIONS`] preemptions. A lost wake-up leaves every thread asleep, which `loom` reports as a deadlock. In the
//! model no wait reaches its time limit, so a wake-up that would only come by a time limit counts as lost.

#![allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    clippy::expect_used,
    reason = "the sources are those of the library"
)]

#[path = "../../src/engine/sync/notifier.rs"]
mod notifier;
#[path = "../../src/engine/sync/gate.rs"]
mod gate;
#[path = "../../src/engine/sync/group.rs"]
mod group;
#[path = "../../src/engine/sync/latch.rs"]
mod latch;
#[path = "../../src/engine/sync/semaphore.rs"]
mod semaphore;

use crate::hold::{Hold, Share};
use gate::Gate;
use group::Gathering;
use latch::Latch;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{self, Relaxed, SeqCst};
use loom::sync::atomic::fence;
use loom::thread;
use notifier::Notifier;
use semaphore::Semaphore;
use std::time::Duration;
use wml::os::Clock;

/// Switches between threads that could have gone on, in one run of a model, where it does not say fewer. Nearly all
/// bugs need two or fewer.
/// (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007.)
const PREEMPTIONS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// A number that threads share and can sleep on.
///
/// `loom` knows the order of sequentially consistent *fences*, but takes such *accesses* for acquire and release, and would
/// show orders that can't be. A read-modify-write sees the latest value in any case: where all accesses to some numbers are
/// sequentially consistent, as in the semaphore and the latch, these are exactly the orders that there are.
#[derive(Debug)]
pub struct AtomicU32 {
    value: loom::sync::atomic::AtomicU32,
    queue: Queue,
}

/// The kernel's part of the model: the threads that sleep on a word.
#[derive(Debug)]
struct Queue {
    /// The threads that sleep and were not woken.
    asleep: loom::sync::Mutex<u32>,
    woken: loom::sync::Condvar,
    /// Those who sleep, or are about to look whether they may. Unknown to `loom`, so that a wake-up that nobody waits for puts
    /// no order between threads, as in the kernel.
    sleepers: std::sync::atomic::AtomicUsize,
}

impl AtomicU32 {
    pub fn new(value: u32) -> Self {
        let queue = Queue {
            asleep: loom::sync::Mutex::new(0),
            woken: loom::sync::Condvar::new(),
            sleepers: std::sync::atomic::AtomicUsize::new(0),
        };
        Self { value: loom::sync::atomic::AtomicU32::new(value), queue }
    }

    pub fn load(&self, order: Ordering) -> u32 {
        if order == SeqCst { self.value.fetch_or(0, SeqCst) } else { self.value.load(order) }
    }

    pub fn store(&self, value: u32, order: Ordering) {
        if order == SeqCst {
            self.value.swap(value, SeqCst);
        } else {
            self.value.store(value, order);
        }
    }

    pub fn compare_exchange(&self, from: u32, to: u32, good: Ordering, bad: Ordering) -> Result<u32, u32> {
        self.value.compare_exchange(from, to, good, bad)
    }

    pub fn compare_exchange_weak(&self, from: u32, to: u32, good: Ordering, bad: Ordering) -> Result<u32, u32> {
        self.value.compare_exchange(from, to, good, bad)
    }

    pub fn fetch_add(&self, n: u32, order: Ordering) -> u32 {
        self.value.fetch_add(n, order)
    }

    pub fn fetch_sub(&self, n: u32, order: Ordering) -> u32 {
        self.value.fetch_sub(n, order)
    }

    pub fn fetch_or(&self, bits: u32, order: Ordering) -> u32 {
        self.value.fetch_or(bits, order)
    }
}

/// The same for a word on which no thread sleeps.
#[derive(Debug)]
pub struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub fn new(value: u64) -> Self {
        Self(loom::sync::atomic::AtomicU64::new(value))
    }

    pub fn load(&self, order: Ordering) -> u64 {
        if order == SeqCst { self.0.fetch_or(0, SeqCst) } else { self.0.load(order) }
    }

    pub fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    pub fn fetch_min(&self, n: u64, order: Ordering) -> u64 {
        self.0.fetch_min(n, order)
    }

    pub fn compare_exchange(&self, from: u64, to: u64, good: Ordering, bad: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(from, to, good, bad)
    }
}

impl Default for AtomicU32 {
    fn default() -> Self {
        Self::new(0)
    }
}

/// `FUTEX_WAIT`: sleeps if the word still holds `value`, which is looked at with the queue locked. The kernel has a full barrier
/// between counting the sleeper and looking at the word, and one between a waker's writes and looking for sleepers.
fn wait(word: &AtomicU32, value: u32, _timeout: Option<Duration>) -> bool {
    let queue = &word.queue;
    let mut asleep = queue.asleep.lock().expect("no thread panics with the lock");
    queue.sleepers.fetch_add(1, SeqCst);
    fence(SeqCst);
    let sleeps = word.value.load(Relaxed) == value;
    if sleeps {
        *asleep += 1;
        drop(queue.woken.wait(asleep).expect("no thread panics with the lock"));
    }
    queue.sleepers.fetch_sub(1, SeqCst);
    sleeps
}

/// `FUTEX_WAKE`: wakes up to `n` sleepers, in the order of their arrival.
fn wake(word: &AtomicU32, n: u32) -> u32 {
    let queue = &word.queue;
    fence(SeqCst);
    if queue.sleepers.load(SeqCst) == 0 {
        return 0;
    }
    let mut asleep = queue.asleep.lock().expect("no thread panics with the lock");
    let found = n.min(*asleep);
    *asleep -= found;
    (0..found).for_each(|_| queue.woken.notify_one());
    found
}

/// Runs a body in every order.
fn every_order(body: impl Fn() + Sync + Send + 'static) {
    every_order_with(PREEMPTIONS, body);
}

fn every_order_with(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let _place = Hold::take(Share::Place);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

fn spawn<T: 'static>(shared: &Arc<T>, body: impl FnOnce(&T) -> bool + 'static) -> thread::JoinHandle<bool> {
    let shared = Arc::clone(shared);
    thread::spawn(move || body(&shared))
}

fn join(threads: Vec<thread::JoinHandle<bool>>) -> usize {
    threads.into_iter().map(|thread| usize::from(thread.join().expect("no panic"))).sum()
}

#[test]
fn a_taker_of_many_gets_single_posts() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let posters = (0..2).map(|_| spawn(&s, |s| (s.add(1), true).1)).collect();
        assert!(s.take(2).is_ok());
        join(posters);
        assert_eq!(s.count(), 0);
    });
}

#[test]
fn a_post_of_two_reaches_two_takers_of_one() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = (0..2).map(|_| spawn(&s, |s| s.take(1).is_ok())).collect();
        s.add(2);
        assert_eq!(join(takers), 2);
        assert_eq!(s.count(), 0);
    });
}

#[test]
fn two_single_posts_reach_two_takers_of_one() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = (0..2).map(|_| spawn(&s, |s| s.take(1).is_ok())).collect();
        s.add(1);
        s.add(1);
        assert_eq!(join(takers), 2);
        assert_eq!(s.count(), 0);
    });
}

/// Two simultaneous posts, of which one may find that the other is waking a thread already.
#[test]
fn posts_of_two_threads_reach_two_takers_of_one() {
    // Four threads: with three switches it would take minutes.
    every_order_with(2, || {
        let s = Arc::new(Semaphore::new(0));
        let mut threads: Vec<_> = (0..2).map(|_| spawn(&s, |s| (s.add(1), true).1)).collect();
        threads.push(spawn(&s, |s| s.take(1).is_ok()));
        assert!(s.take(1).is_ok());
        assert_eq!(join(threads), 3);
        assert_eq!(s.count(), 0);
    });
}

/// A thread that takes without waiting wakes a waiter, while a post of one wakes the same or another one.
#[test]
fn a_thread_that_need_not_wait_takes_no_wake_up_of_another() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = (0..2).map(|_| spawn(&s, |s| s.take(1).is_ok())).collect();
        s.add(1);
        s.wake_one();
        s.add(1);
        assert_eq!(join(takers), 2);
        assert_eq!((s.count(), s.held_back()), (0, 0));
    });
}

#[test]
fn a_thread_that_arrives_during_a_post_gets_it() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let threads = vec![spawn(&s, |s| s.take(1).is_ok()), spawn(&s, |s| (s.wake_one(), true).1)];
        s.add(1);
        assert_eq!(join(threads), 2);
        assert_eq!(s.count(), 0);
    });
}

#[test]
fn takers_of_different_amounts_all_get_them() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = [1, 2].map(|n| spawn(&s, move |s| s.take(n).is_ok())).into_iter().collect();
        s.add(1);
        s.add(2);
        assert_eq!(join(takers), 2);
        assert_eq!(s.count(), 0);
    });
}

/// The last sleeper leaves while another one arrives: the amount that the new one needs must not be lost.
#[test]
fn a_thread_that_arrives_when_the_last_one_leaves_is_woken() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = vec![spawn(&s, |s| s.take(1).is_ok() && s.take(1).is_ok()), spawn(&s, |s| s.take(2).is_ok())];
        s.add(2);
        s.add(2);
        assert_eq!(join(takers), 2);
        assert_eq!(s.count(), 0);
    });
}

#[test]
fn one_post_wakes_one_thread() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(0));
        let takers = (0..2).map(|_| spawn(&s, |s| s.take(1).is_ok())).collect();
        s.add(1);
        s.close();
        assert!(join(takers) <= 1);
        assert_eq!(s.take(1), Err(Stopped));
    });
}

#[test]
fn closing_a_semaphore_wakes_all_threads() {
    every_order(|| {
        let s = Arc::new(Semaphore::new(1));
        let takers = [2, 3].map(|n| spawn(&s, move |s| s.take(n).is_err())).into_iter().collect();
        s.close();
        assert_eq!(join(takers), 2);
    });
}

/// A blocking poster and its blocker, with one post of room: the two semaphores of `semblock`.
#[test]
fn a_blocking_poster_and_its_blocker_never_wait_for_each_other() {
    every_order(|| {
        let pair = Arc::new((Semaphore::new(0), Semaphore::new(1)));
        let blocker = spawn(&pair, |(low, high)| {
            (0..2).all(|_| {
                high.add(1);
                low.take(1).is_ok()
            })
        });
        for _ in 0..2 {
            assert!(pair.1.take(1).is_ok());
            pair.0.add(1);
        }
        assert_eq!(join(vec![blocker]), 1);
        assert_eq!((pair.0.count(), pair.1.count()), (0, 1));
    });
}

#[test]
fn one_wake_up_before_the_wait_is_kept() {
    every_order(|| {
        let latch = Arc::new(Latch::default());
        let wakers = (0..2).map(|_| spawn(&latch, |l| (l.raise(), true).1)).collect();
        assert!(latch.pass().is_ok());
        join(wakers);
        // The second came before the first was used up, and is lost, or after, and is kept: no third ever is.
        latch.raise();
        assert!(latch.pass().is_ok());
        latch.close();
        assert_eq!(latch.pass(), Err(Stopped));
    });
}

#[test]
fn one_wake_up_releases_one_thread() {
    every_order(|| {
        let latch = Arc::new(Latch::default());
        let passers: Vec<_> = (0..2).map(|_| spawn(&latch, |l| l.pass().is_ok())).collect();
        latch.raise();
        latch.close();
        assert!(join(passers) <= 1);
    });
}

#[test]
fn two_waiting_threads_get_one_wake_up_each() {
    every_order(|| {
        let latch = Arc::new(Latch::default());
        let passed = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let passers = (0..2)
            .map(|_| {
                let passed = Arc::clone(&passed);
                spawn(&latch, move |l| (l.pass().is_ok(), passed.fetch_add(1, SeqCst)).0)
            })
            .collect();
        latch.raise();
        // The second is raised when the first is used up, so that it is not lost.
        while passed.load(SeqCst) == 0 {
            thread::yield_now();
        }
        latch.raise();
        assert_eq!(join(passers), 2);
    });
}

/// True if the thread is to execute.
fn join_group(group: &Gathering) -> Result<bool, Stopped> {
    group.begin()?.map_or(Ok(true), |wanted| group.wait(wanted))
}

/// A follower is covered by an execution that began after it came.
#[test]
fn a_group_executes_once_for_all_who_wait() {
    every_order(|| {
        let group = Arc::new(Gathering::default());
        let executed = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        assert_eq!(join_group(&group), Ok(true));
        let threads = (0..2)
            .map(|_| {
                let executed = Arc::clone(&executed);
                spawn(&group, move |group| {
                    if join_group(group) == Ok(true) {
                        executed.fetch_add(1, SeqCst);
                        group.finish();
                    }
                    // The one that runs from the start is not enough.
                    executed.load(SeqCst) > 0
                })
            })
            .collect();
        group.finish();
        assert_eq!(join(threads), 2);
    });
}

#[test]
fn closing_a_group_wakes_all_threads() {
    every_order(|| {
        let group = Arc::new(Gathering::default());
        assert_eq!(join_group(&group), Ok(true));
        let threads = (0..2).map(|_| spawn(&group, |group| join_group(group) == Err(Stopped))).collect();
        group.close();
        group.finish();
        assert_eq!(join(threads), 2);
        assert_eq!(join_group(&group), Err(Stopped));
    });
}

#[test]
fn closing_a_latch_wakes_all_threads() {
    every_order(|| {
        let latch = Arc::new(Latch::default());
        let passers = (0..2).map(|_| spawn(&latch, |l| l.pass().is_err())).collect();
        latch.close();
        assert_eq!(join(passers), 2);
    });
}

/// The controller's loop: take the number, look for news, sleep on the number.
#[test]
fn no_notification_is_missed() {
    every_order(|| {
        let shared = Arc::new((Notifier::default(), loom::sync::Mutex::new(0)));
        let tellers = (0..2)
            .map(|_| {
                spawn(&shared, |(notifier, news)| {
                    *news.lock().expect("no panic") += 1;
                    notifier.notify();
                    true
                })
            })
            .collect();
        let (notifier, news) = &*shared;
        loop {
            let generation = notifier.generation();
            if *news.lock().expect("no panic") == 2 {
                break;
            }
            notifier.wait(generation, Duration::MAX);
        }
        join(tellers);
    });
}

#[test]
fn the_gate_releases_all_threads_that_arrived() {
    every_order(|| {
        let gate = Arc::new(Gate::new());
        let threads = (0..2).map(|_| spawn(&gate, |g| g.arrive() && g.opened() == 7)).collect();
        while gate.wait_ready(2, Duration::MAX) < 2 {}
        gate.set_deadline(100);
        gate.open(7);
        assert_eq!(join(threads), 2);
    });
}

/// Whoever stops the run while another sets its deadline: it ends no later than the stop says.
#[test]
fn a_stop_is_never_overwritten_by_the_deadline() {
    every_order(|| {
        let gate = Arc::new(Gate::new());
        let stopper = spawn(&gate, |g| (g.stop(5), true).1);
        gate.set_deadline(100);
        join(vec![stopper]);
        assert_eq!(gate.deadline(), 5);
        assert!(gate.is_stopped());
    });
}
