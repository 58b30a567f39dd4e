//! Messages between ranks, and their form as bytes.
//!
//! All messages of other ranks go to rank 0, and all of rank 0's to the others: the ranks form a star. A transport
//! keeps the order of the messages between two ranks, and loses none while both exist.

use super::meetings::MeetingNote;
use crate::result::LostRank;
use crate::result::ranks::RankProgress;
use crate::util::json;
use serde::{Deserialize, Serialize};

/// The sending and receiving of messages, without waiting. Used by one thread.
pub(crate) trait Transport {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks, at least 1.
    fn size(&self) -> usize;

    /// Begins to send a message.
    fn send(&mut self, to: usize, message: &[u8]);

    /// Returns a message that has arrived, and the number of its sender. `None` if there is none.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;

    /// True if all messages that were sent are on their way, so that their buffers are free.
    fn has_sent_all(&mut self) -> bool;

    /// Ends the transport. `all_end`: all other ranks do the same. Otherwise the transport must not wait for them.
    fn end(self: Box<Self>, all_end: bool);
}

/// A message between ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The sender still runs.
    Pulse,
    /// A part of an exchange.
    Data(Vec<u8>),
    /// The sender ends, with this exit status and text of its errors.
    End { status: u8, text: String },
    /// All ranks have ended or are lost, and whether none is lost. The last message of rank 0.
    Finish(bool),
    /// These ranks are lost: the exchange that the receiver waits for fails.
    Lost(Vec<LostRank>),
    /// Requests that the receiver answers at once for a moment: its clock is read next. `false` ends that.
    Attend(bool),
    /// Requests the receiver's clock.
    ReadClock,
    /// The sender's clock in nanoseconds.
    Clock(u64),
    /// The sender's progress in a run.
    Progress(RankProgress),
    /// A part of a meeting.
    Meeting(MeetingNote),
}

/// The first byte of a message.
mod kind {
    /// The content follows as it is.
    pub(super) const DATA: u8 = 0;
    /// A clock: no time is spent on writing and reading it.
    pub(super) const CLOCK: u8 = 1;
    /// JSON follows.
    pub(super) const OTHER: u8 = 2;
}

impl Message {
    /// Returns the message as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let of = |kind: u8, content: &[u8]| [&[kind], content].concat();
        match self {
            Self::Data(content) => of(kind::DATA, content),
            Self::Clock(ns) => of(kind::CLOCK, &ns.to_le_bytes()),
            other => of(kind::OTHER, &json::to_bytes(other)),
        }
    }

    /// Returns the message in these bytes. `None` for a message of another version of the program.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, content) = bytes.split_first()?;
        match *kind {
            kind::DATA => Some(Self::Data(content.to_vec())),
            kind::CLOCK => Some(Self::Clock(u64::from_le_bytes(content.try_into().ok()?))),
            kind::OTHER => json::from_bytes(content).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Message;
    use crate::ranks::meetings::MeetingNote;
    use crate::result::LostRank;
    use crate::result::ranks::RankProgress;
    use crate::runtime::{Meeting, MeetingPoint};

    #[test]
    fn messages_are_read_back() {
        let lost = LostRank { rank: 3, host: "h2".to_owned(), why: "ended".to_owned() };
        for message in [
            Message::Pulse,
            Message::Data(Vec::new()),
            Message::Data(vec![0, 1, 255]),
            Message::End { status: 3, text: "no such directory".to_owned() },
            Message::Lost(vec![lost]),
            Message::Finish(true),
            Message::Finish(false),
            Message::Attend(true),
            Message::Attend(false),
            Message::ReadClock,
            Message::Clock(u64::MAX - 1),
            Message::Progress(RankProgress { run: 1, ops: 7, ..RankProgress::default() }),
            Message::Meeting(MeetingNote::Arrive { run: 1, point: MeetingPoint::Phase, number: u64::MAX }),
            Message::Meeting(MeetingNote::Leave { run: u32::MAX }),
            Message::Meeting(MeetingNote::Met {
                run: 2,
                point: MeetingPoint::Iterations(4),
                meeting: Meeting { least: 1, largest: 2 },
            }),
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn unknown_and_short_messages_are_rejected() {
        for bytes in [&[][..], &[99], &[1, 1, 2], &[2], &[2, b'x'], b"\x02{\"Data\":3}"] {
            assert_eq!(Message::decode(bytes), None, "{bytes:?}");
        }
    }
}
