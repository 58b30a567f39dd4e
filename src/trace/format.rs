//! The parts of a `.wtrace` file: a mark, then blocks, each deflated and with checksums. `docs/trace-format.md` describes it.

use super::kind::{CallClass, KINDS, KindId};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read, Write};
use wml_text::count::count;
use wml_text::{printable, size};

/// The first bytes of a trace; the last but one is the version of the format.
pub const TRACE_MARK: &[u8; 8] = b"wtrace\x01\n";
/// The most bytes of a block, as it is stored and inflated.
const MOST_BYTES: u32 = 32 << 20;

/// A part of a block with fewer bytes has the code of the part before.
const SHORT_PART: usize = 1024;

/// What a block holds.
pub(crate) const HEADER: u8 = b'H';
pub(crate) const PATHS: u8 = b'P';
pub(crate) const EVENTS: u8 = b'E';
pub(crate) const TREE: u8 = b'T';
pub(crate) const END: u8 = b'Z';

/// Why a trace can't be read.
#[derive(Debug)]
pub struct TraceError {
    pub message: String,
    pub help: String,
}

impl TraceError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }

    pub(crate) fn damaged(what: &str) -> Self {
        Self::new(format!("the trace is damaged: {what}"), "copy or record it again")
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string(), "")
    }
}

/// What a trace says of itself at its beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The version of wmlrun.
    pub wmlrun: String,
    /// `ebpf`, `ptrace` or `strace`.
    pub recorder: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// The kernel and its machine.
    pub kernel: String,
    /// The file system of the working directory, or of the first directory of `under`.
    #[serde(default)]
    pub file_system: Option<String>,
    /// What it is mounted from, and how; hidden with names.
    #[serde(default)]
    pub device: Option<String>,
    #[serde(default)]
    pub mount_options: Option<String>,
    /// The class of the hardware: processors and memory.
    #[serde(default)]
    pub hardware: Option<String>,
    /// The words of the command; none if it was running already, or if names are hidden.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub under: Vec<String>,
    /// True if names are hashes.
    #[serde(default)]
    pub hashes_names: bool,
    /// The kinds of calls by their numbers in the file, each with its class.
    pub kinds: Vec<(String, String)>,
}

impl TraceHeader {
    /// The kinds of this version.
    pub(crate) fn own_kinds() -> Vec<(String, String)> {
        KINDS.iter().map(|kind| (kind.name.to_owned(), kind.class.name().to_owned())).collect()
    }

    /// The kinds of the file. One that this version does not know is one of its class, or else `other`.
    pub(crate) fn kind_ids(&self) -> Vec<KindId> {
        let of_class = |class: &str| {
            let class = CallClass::named(class).filter(|class| *class != CallClass::Other)?;
            KINDS.iter().position(|kind| kind.class == class).map(|n| KindId(n as u16))
        };
        let id = |(name, class): &(String, String)| KindId::named(name).or_else(|| of_class(class)).unwrap_or_default();
        self.kinds.iter().map(id).collect()
    }
}

/// What a trace says of itself at its end. One that was cut short has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceEnd {
    /// Nanoseconds from the beginning to the end.
    pub duration: u64,
    pub calls: u64,
    /// Calls that the recorder saw and could not record, by why. With any, the trace is incomplete.
    #[serde(default)]
    pub lost: BTreeMap<String, u64>,
    /// What the recorder can't see.
    #[serde(default)]
    pub not_seen: Vec<String>,
    /// Calls on other files, by why.
    #[serde(default)]
    pub left_out: BTreeMap<String, u64>,
    /// What a recorded call costs here, in nanoseconds: the least of a range, if it is one.
    #[serde(default)]
    pub cost_ns: Option<f64>,
    #[serde(default)]
    pub most_cost_ns: Option<f64>,
    /// Programs that ran without the rights of their owner, because of the recorder.
    #[serde(default)]
    pub setuid: BTreeSet<String>,
    /// Why it ended.
    #[serde(default)]
    pub ended: String,
    /// The exit status of the command.
    #[serde(default)]
    pub status: Option<i32>,
    /// How many older parts `--max-size` dropped.
    #[serde(default)]
    pub dropped_parts: u64,
}

impl TraceEnd {
    /// True if every call on the files is in the trace, but those of `not_seen`.
    pub fn is_complete(&self) -> bool {
        self.lost.values().all(|n| *n == 0) && self.dropped_parts == 0
    }
}

/// What a trace lacks, in words; none if it is complete.
pub(crate) fn missing(end: Option<&TraceEnd>, cut_short: Option<u64>) -> Vec<String> {
    let Some(end) = end else {
        return vec![match cut_short {
            Some(0) | None => {
                "the end: the recorder was stopped by force, or `--max-size` began another file".to_owned()
            }
            Some(bytes) => format!("the end: its last {} are no whole block", size::format(bytes)),
        }];
    };
    let lost = end.lost.iter().filter(|(_, n)| **n > 0);
    let lost = lost.map(|(why, n)| format!("{} ({})", count(*n, "lost call"), printable::line(why)));
    let dropped = (end.dropped_parts > 0).then(|| count(end.dropped_parts, "older part"));
    lost.chain(dropped.map(|parts| format!("{parts} dropped by `--max-size`"))).collect()
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Writes a block. Its parts are in codes of their own: bytes of a kind take less room. Returns its length in the file.
pub(crate) fn write_block(out: &mut dyn Write, kind: u8, parts: &[impl AsRef<[u8]>]) -> io::Result<u64> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(5));
    for (n, part) in parts.iter().enumerate() {
        // What is short costs more with a code of its own.
        if n > 0 && part.as_ref().len() > SHORT_PART {
            encoder.flush()?;
        }
        encoder.write_all(part.as_ref())?;
    }
    let stored = encoder.finish()?;
    let length = |n: usize| u32::try_from(n).ok().filter(|n| *n <= MOST_BYTES).ok_or(io::ErrorKind::FileTooLarge);
    let mut head = vec![kind];
    head.extend(length(parts.iter().map(|part| part.as_ref().len()).sum())?.to_le_bytes());
    head.extend(length(stored.len())?.to_le_bytes());
    head.extend(crc(&stored).to_le_bytes());
    head.extend(crc(&head).to_le_bytes());
    // One call, so that a reader of a growing file sees few halves of blocks.
    head.extend(&stored);
    out.write_all(&head)?;
    Ok(head.len() as u64)
}

/// A block that was read.
pub(crate) enum ReadBlock {
    Whole(u8, Vec<u8>),
    /// The file ends in the middle of it, after so many bytes.
    CutShort(u64),
    /// The file ends before it.
    Nothing,
}

/// Reads a block.
pub(crate) fn read_block(input: &mut dyn Read) -> Result<ReadBlock, TraceError> {
    let mut head = Vec::new();
    input.take(17).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(ReadBlock::Nothing);
    }
    if head.len() < 17 {
        return Ok(ReadBlock::CutShort(head.len() as u64));
    }
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, stored_length) = (number(1), number(5));
    if number(13) != crc(&head[..13]) || length > MOST_BYTES || stored_length > MOST_BYTES {
        return Err(TraceError::damaged("the beginning of a block is not what was written"));
    }
    let mut stored = Vec::new();
    input.take(u64::from(stored_length)).read_to_end(&mut stored)?;
    if stored.len() < stored_length as usize {
        return Ok(ReadBlock::CutShort(17 + stored.len() as u64));
    }
    if number(9) != crc(&stored) {
        return Err(TraceError::damaged("a block has a wrong checksum"));
    }
    let mut bytes = Vec::new();
    let inflated = DeflateDecoder::new(stored.as_slice()).take(u64::from(length) + 1).read_to_end(&mut bytes);
    match inflated.is_ok() && bytes.len() == length as usize {
        true => Ok(ReadBlock::Whole(head[0], bytes)),
        false => Err(TraceError::damaged("a block can't be inflated")),
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
pub(crate) mod tests;
