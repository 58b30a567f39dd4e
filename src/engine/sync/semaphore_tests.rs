//! Tests of semaphores with real threads and futexes. `tests/it/model.rs` explores the interleavings of a few steps.

use super::{Semaphore, Stopped};
use std::sync::Arc;
use std::thread;

#[test]
fn many_posts_of_one_satisfy_a_taker_of_many() {
    let s = Arc::new(Semaphore::new(0));
    let taker = thread::spawn({
        let s = s.clone();
        move || (0..50).filter(|_| s.take(100).is_ok()).count()
    });
    let posters: Vec<_> = (0..4)
        .map(|_| {
            let s = s.clone();
            thread::spawn(move || (0..1250).for_each(|_| s.add(1)))
        })
        .collect();
    posters.into_iter().for_each(|t| t.join().expect("a poster"));
    assert_eq!(taker.join().expect("the taker"), 50);
    assert_eq!(s.count(), 0);
}

#[test]
fn takers_of_different_amounts_all_succeed() {
    let s = Arc::new(Semaphore::new(0));
    let takers: Vec<_> = [1_u32, 2, 3, 5, 8]
        .into_iter()
        .map(|n| {
            let s = s.clone();
            thread::spawn(move || (0..200).for_each(|_| assert!(s.take(n).is_ok())))
        })
        .collect();
    for _ in 0..200 * 19 {
        s.add(1);
    }
    takers.into_iter().for_each(|t| t.join().expect("a taker"));
    assert_eq!(s.count(), 0);
}

#[test]
fn closing_wakes_sleepers_and_refuses_later_takers() {
    let s = Arc::new(Semaphore::new(3));
    let waiter = thread::spawn({
        let s = s.clone();
        move || s.take(10)
    });
    s.close();
    assert_eq!(waiter.join().expect("the waiter"), Err(Stopped));
    assert_eq!(s.take(1), Err(Stopped));
}

#[test]
fn a_taker_woken_too_early_sleeps_again_until_its_amount_is_there() {
    let s = Arc::new(Semaphore::new(3));
    let taker = thread::spawn({
        let s = s.clone();
        move || s.take(5)
    });
    while s.sleepers() == 0 {
        thread::yield_now();
    }
    assert_eq!(s.held_back(), 0, "3 are not enough for it");
    (0..100).for_each(|_| s.wake_one());
    s.add(1);
    assert_eq!(s.held_back(), 0);
    s.add(1);
    assert_eq!(taker.join().expect("the taker"), Ok(true));
    assert_eq!((s.count(), s.sleepers()), (0, 0));
}
