//! Tests exchanges between ranks over a transport in this process, whose ranks are threads.

#![allow(clippy::unwrap_used)]

use super::group::RankGroup;
use super::transport::{Message, Transport};
use super::{Others, RanksLost, Together};
use crate::diag::{Failure, Status};
use crate::result::LostRank;
use crate::result::ranks::{LastProgress, RankProgress};
use crate::runtime::{Meeting, MeetingPlace, MeetingPoint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The time without a message after which a rank of a test is lost.
const SILENCE: Duration = Duration::from_secs(2);

/// A transport over channels between threads.
struct Channels {
    rank: usize,
    senders: Vec<Sender<(usize, Vec<u8>)>>,
    receiver: Receiver<(usize, Vec<u8>)>,
    /// While it is set, nothing is sent: the rank is stopped, or its network is down.
    silent: Arc<AtomicBool>,
}

impl Transport for Channels {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.senders.len()
    }

    fn send(&mut self, to: usize, message: &[u8]) {
        if !self.silent.load(SeqCst) {
            // A rank that has ended receives nothing.
            let _ = self.senders[to].send((self.rank, message.to_vec()));
        }
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        self.receiver.try_recv().ok()
    }

    fn has_sent_all(&mut self) -> bool {
        true
    }

    fn end(self: Box<Self>, _: bool) {}
}

/// A rank of a test.
struct Member {
    group: Arc<RankGroup>,
    together: Together,
    silent: Arc<AtomicBool>,
    interrupt: Arc<AtomicUsize>,
}

/// Does `work` on each of the ranks of these hosts. Returns the results in the order of the ranks.
fn on_ranks<R: Send>(hosts: &[&str], work: impl Fn(&Member) -> R + Sync) -> Vec<R> {
    let (senders, receivers): (Vec<_>, Vec<_>) = hosts.iter().map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let start = |(rank, receiver): (usize, Receiver<(usize, Vec<u8>)>)| {
            let (senders, work, host) = (senders.clone(), &work, hosts[rank]);
            scope.spawn(move || {
                let (silent, interrupt) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
                let transport = Channels { rank, senders, receiver, silent: Arc::clone(&silent) };
                let group = RankGroup::start(move || Ok(transport), host, SILENCE, Arc::clone(&interrupt)).unwrap();
                let group = Arc::new(group);
                let together = Together::with(Arc::<RankGroup>::clone(&group));
                work(&Member { group, together, silent, interrupt })
            })
        };
        let threads: Vec<_> = receivers.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

const HOSTS: [&str; 4] = ["h1", "h1", "h2", "h3"];

#[test]
fn all_ranks_exchange_messages() {
    let results = on_ranks(&HOSTS, |Member { group, together, .. }| {
        assert_eq!(together.hosts(), HOSTS);
        assert_eq!((together.size(), together.distinct_hosts(), together.host()), (4, 3, HOSTS[group.rank()]));
        let all = group.gather(vec![group.rank() as u8; 3]).unwrap();
        let own = if group.rank() == 0 { vec![7] } else { vec![99] };
        let first = group.broadcast(own).unwrap();
        together.wait().unwrap();
        let last = group.collect(vec![group.rank() as u8]);
        assert_eq!(group.confirm(vec![group.rank() as u8]).unwrap(), [0]);
        let ends = group.end(group.rank() as u8, &format!("error of {}", group.rank()));
        (all, first, last, ends)
    });
    let (all, _, last, ends) = &results[0];
    assert_eq!(all.as_deref().unwrap(), [vec![0; 3], vec![1; 3], vec![2; 3], vec![3; 3]]);
    assert_eq!(last.as_deref().unwrap(), [Ok(vec![0]), Ok(vec![1]), Ok(vec![2]), Ok(vec![3])]);
    let ended: Vec<_> =
        ends.iter().map(|end| end.as_ref().map(|end| (end.status, end.text.as_str())).unwrap()).collect();
    assert_eq!(ended, [(1, "error of 1"), (2, "error of 2"), (3, "error of 3")]);
    for (all, first, last, ends) in &results[1..] {
        assert_eq!((all, last, ends.len()), (&None, &None, 0));
        assert_eq!(first, &[7]);
    }
    assert_eq!(results[0].1, [7]);
}

/// A large message and many small ones arrive in order.
#[test]
fn messages_keep_their_order() {
    on_ranks(&HOSTS[..2], |Member { group, .. }| {
        for n in 0..200_u32 {
            let size = if n % 50 == 0 { 1 << 20 } else { 4 };
            let message: Vec<u8> = n.to_le_bytes().into_iter().cycle().take(size).collect();
            if let Some(all) = group.gather(message.clone()).unwrap() {
                assert!(all.iter().all(|one| *one == message), "{n}");
            }
        }
        group.end(0, "");
    });
}

#[test]
fn a_rank_that_ends_early_is_named_on_all() {
    let results = on_ranks(&HOSTS, |Member { group, together, .. }| {
        if group.rank() == 2 {
            group.end(3, "no such directory\n  = help: make it");
            return None;
        }
        let result = together.wait();
        // The ends of the others do not wait for the one that has ended.
        group.end(1, "");
        Some(result)
    });
    let why = "has ended with status 3: no such directory".to_owned();
    let lost = RanksLost(vec![LostRank { rank: 2, host: "h2".to_owned(), why }]);
    for (rank, result) in results.iter().enumerate() {
        assert_eq!(result.as_ref().map(|result| result.as_ref().unwrap_err()), (rank != 2).then_some(&lost), "{rank}");
    }
    assert_eq!(lost.to_string(), "rank 2 on `h2` has ended with status 3: no such directory");
}

#[test]
fn a_rank_that_falls_silent_is_lost() {
    let results = on_ranks(&HOSTS[..3], |Member { group, silent, interrupt, .. }| {
        if group.rank() == 1 {
            silent.store(true, SeqCst);
            // Rank 0 still sends pulses to it, but it has no part in the exchange.
            while !group.has_lost_ranks() {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Err(RanksLost(Vec::new()));
        }
        let result = group.gather(Vec::new()).and_then(|_| group.broadcast(Vec::new())).map(|_| ());
        group.end(0, "");
        assert_eq!(interrupt.load(SeqCst), 0, "rank 0 answers");
        result
    });
    for rank in [0, 2] {
        let RanksLost(lost) = results[rank].as_ref().unwrap_err();
        assert_eq!((lost.len(), lost[0].rank, lost[0].host.as_str()), (1, 1, "h1"), "{lost:?}");
        assert!(lost[0].why.starts_with("has not answered for "), "{lost:?}");
    }
}

/// The results of the other ranks are kept.
#[test]
fn the_results_of_all_but_a_lost_rank_are_collected() {
    let results = on_ranks(&HOSTS[..3], |Member { group, silent, .. }| {
        if group.rank() == 1 {
            silent.store(true, SeqCst);
        }
        let collected = group.collect(vec![group.rank() as u8]);
        group.end(0, "");
        // Rank 1 does not know that its messages are lost.
        if group.rank() == 0 { collected } else { None }
    });
    let collected = results[0].as_ref().unwrap();
    assert_eq!((&collected[0], &collected[2]), (&Ok(vec![0]), &Ok(vec![2])));
    assert_eq!(collected[1].as_ref().unwrap_err().rank, 1);
}

/// A rank that answers too late keeps its result itself.
#[test]
fn a_late_rank_knows_that_rank_0_lacks_its_result() {
    let is_lost = AtomicBool::new(false);
    let results = on_ranks(&HOSTS[..2], |Member { group, silent, interrupt, .. }| {
        if group.rank() == 0 {
            // After a signal rank 0 waits for a moment only.
            interrupt.store(2, SeqCst);
            let collected = group.collect(Vec::new());
            is_lost.store(true, SeqCst);
            assert!(collected.unwrap()[1].is_err());
            group.end(0, "");
            return Ok(());
        }
        while !is_lost.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!silent.load(SeqCst));
        group.collect(Vec::new());
        let result = group.confirm(Vec::new()).map(|_| ());
        group.end(0, "");
        result
    });
    assert_eq!(results[1].as_ref().unwrap_err().0[0].rank, 1);
}

/// The run of rank 1 has failed, and it is already at its next run.
#[test]
fn ranks_at_different_steps_do_not_wait_for_each_other() {
    let results = on_ranks(&HOSTS[..2], |Member { group, together, .. }| {
        let result = if group.rank() == 0 {
            together.exchange("removed".to_owned(), |_| "removed".to_owned()).unwrap();
            Ok(())
        } else {
            together.compare(&vec![("a".to_owned(), "1".to_owned())])
        };
        group.end(0, "");
        result
    });
    assert_eq!(results[1].as_ref().unwrap_err().status, Status::Refused);
    let results = on_ranks(&HOSTS[..2], |Member { group, together, .. }| {
        let result = if group.rank() == 0 {
            together.compare(&vec![("a".to_owned(), "1".to_owned())])
        } else {
            together.agree("the removal", Ok(()))
        };
        group.end(0, "");
        result.unwrap_err()
    });
    assert_eq!(
        results[0].text().lines().next(),
        Some("error: rank 1 on `h1` differs from rank 0 on `h1`: the step of the script is another one")
    );
    assert_eq!(results[1].status, Status::Failed);
}

/// A step fails on all ranks if it fails on one, and rank 0 says why, the same only once.
#[test]
fn a_step_fails_on_all_ranks_or_on_none() {
    let results = on_ranks(&HOSTS, |Member { group, together, .. }| {
        let rank = group.rank();
        let done = together.agree_with("a step", Ok((rank, rank * 10)));
        let own = match rank {
            0 => Ok(()),
            3 => Err(Failure::wrong("another", "a help")),
            _ => Err(Failure::refused("the same", "")),
        };
        let failed = together.agree("the next step", own);
        group.end(0, "");
        (done.unwrap(), failed.unwrap_err())
    });
    for (rank, (done, failed)) in results.iter().enumerate() {
        assert_eq!(done, &(rank, vec![0, 10, 20, 30]));
        assert_eq!((failed.status, failed.reasons.is_empty()), (Status::Refused, rank > 0));
    }
    let text = "error: rank 1 on `h1`: the same\nerror: rank 3 on `h3`: another\n  = help: a help\n";
    assert_eq!(results[0].1.text(), text);
}

#[test]
fn a_rank_without_rank_0_is_interrupted() {
    on_ranks(&HOSTS[..2], |Member { group, silent, interrupt, .. }| {
        // Rank 1 has received all messages of rank 0 when it sends one.
        group.gather(Vec::new()).unwrap();
        if group.rank() == 0 {
            silent.store(true, SeqCst);
            assert_eq!(group.end(0, "").len(), 1);
        } else {
            while interrupt.load(SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(interrupt.load(SeqCst), 15);
            assert!(group.has_lost_ranks() && group.broadcast(Vec::new()).is_err());
            assert!(group.collect(Vec::new()).is_none());
            assert!(group.confirm(Vec::new()).is_err());
        }
    });
}

/// All ranks of this process read the same clock.
#[test]
fn all_ranks_start_at_the_same_time() {
    let starts = on_ranks(&HOSTS, |Member { group, .. }| {
        let starts = [(); 3].map(|()| group.common_start().unwrap());
        group.end(0, "");
        starts
    });
    for round in 0..3 {
        let first = starts[0][round].at_ns.unwrap();
        for start in &starts {
            let start = start[round];
            let difference = start.at_ns.unwrap().abs_diff(first);
            assert!(difference <= start.clock_error_ns, "{difference} ns, not within {start:?}");
        }
    }
    assert!(starts[0].windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{:?}", starts[0]);
}

#[test]
fn a_start_that_can_not_be_read_is_the_loss_of_rank_0() {
    let results = on_ranks(&HOSTS[..2], |Member { group, .. }| {
        let start = (group.rank() == 1).then(|| group.common_start());
        if group.rank() == 0 {
            group.gather(Vec::new()).unwrap();
            group.broadcast(b"[1]".to_vec()).unwrap();
        }
        group.end(0, "");
        start
    });
    let why = "has sent a start that can't be read".to_owned();
    let lost = RanksLost(vec![LostRank { rank: 0, host: "h1".to_owned(), why }]);
    assert_eq!(results, [None, Some(Err(lost))]);
}

/// All ranks of this process read the same clock, which does not drift.
#[test]
fn clocks_are_read_again_after_a_run() {
    let clocks = on_ranks(&HOSTS, |Member { group, .. }| {
        let before = group.clocks(&[1]);
        group.common_start().unwrap();
        group.collect(Vec::new());
        let clocks = group.clocks(&[0, 1, 3]);
        group.end(0, "");
        (before, clocks)
    });
    assert_eq!((&clocks[0].0[..], &clocks[1].1[..]), (&[None][..], &[][..]));
    assert_eq!(clocks[0].1.len(), 3);
    for clock in &clocks[0].1 {
        let clock = clock.unwrap();
        assert!(clock.offset_ns.unsigned_abs() <= clock.error_ns, "{clock:?}");
        assert!(!clock.drift.unwrap().is_certain(), "{clock:?}");
    }
}

#[test]
fn after_a_signal_no_clock_is_read() {
    let clocks = on_ranks(&HOSTS[..2], |Member { group, together, interrupt, .. }| {
        group.common_start().unwrap();
        together.wait().unwrap();
        interrupt.store(15, SeqCst);
        let clocks = group.clocks(&[0, 1]);
        group.end(0, "");
        clocks
    });
    assert!(clocks[0].iter().all(|clock| clock.unwrap().drift.is_none()), "{clocks:?}");
}

#[test]
fn rank_0_has_the_progress_of_the_others() {
    let last = on_ranks(&HOSTS[..3], |Member { group, .. }| {
        let own = RankProgress { run: 1, elapsed_ns: 1, ops: 10 + group.rank() as u64, ..RankProgress::default() };
        let mut last = group.progress(own).unwrap_or_default();
        while group.rank() == 0 && last[1..].contains(&LastProgress::default()) {
            std::thread::sleep(Duration::from_millis(1));
            last = group.progress(own).unwrap_or_default();
        }
        group.end(0, "");
        last
    });
    let mut expected = [LastProgress::default(); 3];
    for (rank, last) in expected.iter_mut().enumerate().skip(1) {
        last.add(RankProgress { run: 1, elapsed_ns: 1, ops: 10 + rank as u64, ..RankProgress::default() });
    }
    assert_eq!(last, [expected.to_vec(), Vec::new(), Vec::new()]);
}

const POINT: MeetingPoint = MeetingPoint::Iterations(0);

#[test]
fn all_ranks_meet_at_the_points_of_a_run() {
    let results = on_ranks(&HOSTS, |Member { group, .. }| {
        let own = group.rank() as u64;
        let of_run = || {
            group.begin_run();
            group.common_start().unwrap();
            let iterations = group.meet(POINT, 10 + own, &|| false).unwrap();
            let phase = group.meet(MeetingPoint::Phase, 2, &|| false).unwrap();
            // Rank 3 has no phase 3: it begins the fourth when the others have come to it.
            let third = if own < 3 { group.meet(MeetingPoint::Phase, 3, &|| false) } else { None };
            let fourth = group.meet(MeetingPoint::Phase, 4, &|| false).unwrap();
            group.leave_run();
            (iterations, phase.least, third.map(|third| third.least), fourth)
        };
        let runs = [of_run(), of_run()];
        group.end(0, "");
        runs
    });
    for (rank, runs) in results.iter().enumerate() {
        for (iterations, phase, third, fourth) in runs {
            assert_eq!(*iterations, Meeting { least: 10, largest: 13 });
            // A rank may see a later result.
            assert!(*phase >= 2 && third.is_none_or(|third| third >= 3), "{rank}: {phase} {third:?}");
            assert_eq!((third.is_some(), fourth.least, fourth.largest), (rank < 3, 4, 4));
        }
    }
}

/// Ranks that have left the run, have ended, or are silent are not waited for.
#[test]
fn ranks_that_take_no_part_are_not_waited_for() {
    let results = on_ranks(&HOSTS, |Member { group, silent, .. }| {
        group.begin_run();
        group.common_start().unwrap();
        let met = match group.rank() {
            1 => {
                group.leave_run();
                None
            }
            2 => {
                silent.store(true, SeqCst);
                None
            }
            rank => group.meet(POINT, rank as u64, &|| false),
        };
        group.leave_run();
        group.end(0, "");
        met
    });
    let meeting = Some(Meeting { least: 0, largest: 3 });
    assert_eq!(results, [meeting, None, None, meeting]);
}

#[test]
fn a_rank_whose_run_is_over_does_not_wait() {
    on_ranks(&HOSTS[..2], |Member { group, together, .. }| {
        group.begin_run();
        group.common_start().unwrap();
        if group.rank() == 1 {
            let over = AtomicBool::new(false);
            let met = group.meet(POINT, 1, &|| over.swap(true, SeqCst));
            assert_eq!(met, None);
        }
        together.wait().unwrap();
        group.end(0, "");
    });
}

#[test]
fn a_transport_that_can_not_connect_is_an_error() {
    let interrupt = Arc::new(AtomicUsize::new(0));
    let failed = RankGroup::start(|| Err::<Channels, _>("no MPI".to_owned()), "h1", SILENCE, interrupt);
    assert_eq!(failed.unwrap_err(), "no MPI");
}

/// The other rank would answer in turn, without end.
#[test]
fn rank_0_answers_no_request_for_attention() {
    let ((to_0, receiver), (sender, from_0)) = (channel(), channel());
    for message in [Message::Attend(true), Message::ReadClock, Message::Data(b"h2".to_vec())] {
        to_0.send((1, message.encode())).unwrap();
    }
    let transport = Channels { rank: 0, senders: vec![to_0.clone(), sender], receiver, silent: Arc::default() };
    let group = RankGroup::start(move || Ok(transport), "h1", SILENCE, Arc::default()).unwrap();
    // The answer to the last of the three messages is the names of the hosts.
    let mut answers = from_0.iter().map(|(_, message)| Message::decode(&message).unwrap());
    let first = answers.find(|message| *message != Message::Pulse).unwrap();
    assert!(matches!(first, Message::Data(_)), "{first:?}");
    to_0.send((1, Message::End { status: 0, text: String::new() }.encode())).unwrap();
    group.end(0, "");
}

/// A message of another version is a part of an exchange without content: the agreement then names the version.
#[test]
fn an_unknown_message_is_no_loss() {
    assert_eq!(Message::decode(&[42, 1, 2]), None);
}
