//! The clocks of the ranks against that of rank 0, from the fastest of many round trips.
//!
//! Rank 0 sends a request, and the other rank answers with its clock. The answer was made at some time between the
//! request and its arrival. The middle of the fastest round trip is the estimate, and half of that round trip the bound
//! of its error.

use super::transport::{Message, Transport};
use crate::os::clock::monotonic_ns;
use crate::result::{ClockDrift, RankClock};
use std::time::{Duration, Instant};

/// The number of round trips to each rank.
const ROUND_TRIPS: u32 = 60;
/// The time for these round trips at most, if at least one has been made.
const TIME: Duration = Duration::from_millis(100);
/// The time for an answer of a rank: its message thread may wait for a processor.
const ANSWER: Duration = Duration::from_secs(5);

/// The clock of a rank against that of rank 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    /// What the rank's clock is ahead of rank 0's, in nanoseconds.
    pub(crate) ahead_ns: i64,
    /// The fastest round trip, in nanoseconds.
    pub(crate) round_trip_ns: u64,
}

impl ClockOffset {
    /// Returns the time on the rank's clock at a time on the clock of rank 0.
    pub(crate) fn local(self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns)
    }

    /// Returns the bound of the error of the offset, in nanoseconds.
    pub(crate) fn error_ns(self) -> u64 {
        self.round_trip_ns.div_ceil(2)
    }
}

/// A reading of a rank's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockReading {
    /// When it was read, on the clock of rank 0.
    pub(crate) at_ns: u64,
    /// The clock at that time.
    pub(crate) offset: ClockOffset,
}

impl ClockReading {
    /// Returns the clock of the rank from this reading and a later one, if there is one.
    pub(crate) fn clock(self, later: Option<Self>) -> RankClock {
        RankClock {
            offset_ns: self.offset.ahead_ns,
            error_ns: self.offset.error_ns(),
            drift: later.and_then(|later| self.drift(later)),
        }
    }

    /// Returns the drift between two readings; `None` if no time lies between them.
    fn drift(self, later: Self) -> Option<ClockDrift> {
        let elapsed = later.at_ns.checked_sub(self.at_ns).filter(|ns| *ns > 0)? as f64;
        let gained = later.offset.ahead_ns.saturating_sub(self.offset.ahead_ns) as f64;
        let error = (self.offset.error_ns() + later.offset.error_ns()) as f64;
        Some(ClockDrift { ppm: gained / elapsed * 1e6, error_ppm: error / elapsed * 1e6 })
    }
}

/// The fastest round trip so far.
#[derive(Clone, Copy, Debug, Default)]
struct Fastest(Option<ClockOffset>);

impl Fastest {
    /// Adds a round trip: when the request was sent, the clock in the answer, and when that arrived.
    fn add(&mut self, sent: u64, clock: u64, arrived: u64) {
        let round_trip_ns = arrived.saturating_sub(sent);
        if self.0.is_none_or(|fastest| round_trip_ns < fastest.round_trip_ns) {
            let middle = sent + round_trip_ns / 2;
            self.0 = Some(ClockOffset { ahead_ns: clock.wrapping_sub(middle).cast_signed(), round_trip_ns });
        }
    }
}

/// Reads the clock of a rank. Passes all other messages on. Called by rank 0. Returns `None` if the rank does not answer.
pub(crate) fn read(
    transport: &mut dyn Transport,
    rank: usize,
    put: &mut dyn FnMut(usize, Message),
) -> Option<ClockOffset> {
    let mut fastest = Fastest::default();
    transport.send(rank, &Message::Attend(true).encode());
    wait_for(transport, rank, Instant::now() + ANSWER, put, &|message| matches!(message, Message::Attend(_)))?;
    let until = Instant::now() + TIME;
    for _ in 0..ROUND_TRIPS {
        let sent = monotonic_ns();
        transport.send(rank, &Message::ReadClock.encode());
        let is_clock = |message: &Message| matches!(message, Message::Clock(_));
        let answer = wait_for(transport, rank, Instant::now() + ANSWER, put, &is_clock);
        let Some((Message::Clock(clock), arrived)) = answer else { break };
        fastest.add(sent, clock, arrived);
        if Instant::now() >= until {
            break;
        }
    }
    transport.send(rank, &Message::Attend(false).encode());
    fastest.0
}

/// Waits for a message of a rank, without a sleep. Returns it with the time of its arrival, or `None` at `until`.
fn wait_for(
    transport: &mut dyn Transport,
    rank: usize,
    until: Instant,
    put: &mut dyn FnMut(usize, Message),
    is_wanted: &dyn Fn(&Message) -> bool,
) -> Option<(Message, u64)> {
    loop {
        if let Some((from, bytes)) = transport.receive() {
            let arrived = monotonic_ns();
            match Message::decode(&bytes) {
                Some(message) if from == rank && is_wanted(&message) => return Some((message, arrived)),
                Some(message) => put(from, message),
                None => {}
            }
        } else if Instant::now() >= until {
            return None;
        } else {
            // The other rank may share this processor.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{ClockOffset, ClockReading, Fastest};
    use crate::result::ClockDrift;

    #[test]
    fn the_fastest_round_trip_decides() {
        let mut fastest = Fastest::default();
        fastest.add(1000, 501_500, 3000);
        assert_eq!(fastest.0.unwrap(), ClockOffset { ahead_ns: 499_500, round_trip_ns: 2000 });
        fastest.add(5000, 505_090, 5200);
        assert_eq!(fastest.0.unwrap(), ClockOffset { ahead_ns: 499_990, round_trip_ns: 200 });
        fastest.add(6000, 0, 9000);
        let offset = fastest.0.unwrap();
        assert_eq!((offset.local(1000), offset.error_ns()), (500_990, 100));
    }

    #[test]
    fn the_drift_is_that_between_two_readings() {
        let reading = |at_ns, ahead_ns| ClockReading { at_ns, offset: ClockOffset { ahead_ns, round_trip_ns: 2000 } };
        let first = reading(1_000_000_000, -5000);
        // In ten seconds the clock gains 100 µs.
        let clock = first.clock(Some(reading(11_000_000_000, 95_000)));
        assert_eq!((clock.offset_ns, clock.error_ns), (-5000, 1000));
        let drift = clock.drift.unwrap();
        assert!((drift.ppm - 10.0).abs() < 1e-9 && (drift.error_ppm - 0.2).abs() < 1e-9, "{drift:?}");
        assert!(drift.is_certain() && (drift.seconds_of_rank_0() - 0.999_990_000_1).abs() < 1e-12, "{drift:?}");
        assert_eq!(first.clock(None).drift, None);
        assert_eq!(first.clock(Some(first)).drift, None);
    }

    #[test]
    fn a_drift_within_its_error_is_none() {
        let drift = ClockDrift { ppm: -3.0, error_ppm: 4.0 };
        assert_eq!((drift.is_certain(), drift.seconds_of_rank_0()), (false, 1.0));
    }

    #[test]
    fn a_clock_may_be_behind() {
        let mut fastest = Fastest::default();
        fastest.add(1_000_000, 400, 1_000_100);
        let offset = fastest.0.unwrap();
        assert_eq!(offset.ahead_ns, -999_650);
        assert_eq!((offset.local(1_000_000), offset.local(10)), (350, 0));
    }
}
