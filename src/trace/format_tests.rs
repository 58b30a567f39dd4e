//! Tests of the file: what is written comes back, and what is damaged is said.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::call::{InodeId, TimeBetween, TraceEvent, TracedCall, TracedWait};
use crate::paths::{PathId, PathTable};
use crate::reader::TraceReader;
use crate::writer::{TraceWriter, TreeEntry};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Numbers that look random, and are the same in each run.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Mostly small, at times any.
    fn size(&mut self) -> u64 {
        match self.below(8) {
            0 => self.next(),
            1 => u64::MAX,
            _ => self.below(5000),
        }
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(4) > 0).then(|| value(self))
    }
}

fn in_units(ns: u64) -> u64 {
    ns / 100 * 100
}

pub(crate) fn events(count: usize, seed: u64, paths: &mut PathTable) -> Vec<TraceEvent> {
    let mut numbers = Numbers(seed);
    let mut now = 0u64;
    let mut path = |numbers: &mut Numbers| {
        let name = format!("/secret{}/canary_{}.txt", numbers.below(9), numbers.below(300));
        paths.resolve(PathId::ROOT, name.as_bytes())
    };
    let one = |_| {
        // A clock that goes back at times.
        now = (now + numbers.below(90_000)).saturating_sub(if numbers.below(50) == 0 { 1_000_000 } else { 0 });
        let (time, thread) = (in_units(now), numbers.below(5) as u32 + 1);
        match numbers.below(20) {
            0 => TraceEvent::Wait(TracedWait {
                start: time,
                duration: in_units(numbers.below(1 << 30)),
                thread,
                woken_by: numbers.maybe(|n| n.below(5) as u32),
            }),
            1 => TraceEvent::Fork { time, parent: thread, thread: 9, process: numbers.below(3) as u32 },
            2 => TraceEvent::Exec { time, process: thread, path: numbers.maybe(&mut path) },
            3 => TraceEvent::Exit { time, thread },
            _ => TraceEvent::Call(TracedCall {
                start: time,
                duration: in_units(numbers.below(1 << 20)),
                thread,
                process: thread / 2,
                kind: KindId(numbers.below(KINDS.len() as u64) as u16),
                result: numbers.size() as i64,
                descriptor: numbers.maybe(|n| n.size() as u32),
                path: numbers.maybe(&mut path),
                second_path: numbers.maybe(&mut path).filter(|path| path.0 % 3 == 0),
                file: numbers.maybe(|n| InodeId {
                    device: n.below(2),
                    inode: n.below(99),
                    generation: n.maybe(|n| n.below(2) as u32),
                }),
                offset: numbers.maybe(Numbers::size),
                size: numbers.maybe(Numbers::size),
                flags: numbers.maybe(|n| n.size() as u32),
                wanted: numbers.maybe(Numbers::size),
                stat_size: numbers.maybe(Numbers::size),
                mode: numbers.maybe(|n| n.size() as u32),
                between: numbers.maybe(|n| TimeBetween {
                    runnable: in_units(n.below(1 << 20)),
                    blocked: in_units(n.below(1 << 20)),
                }),
                runnable: numbers.maybe(|n| in_units(n.below(1 << 20))),
            }),
        }
    };
    (0..count).map(one).collect()
}

/// The bytes of a file that tests look into.
#[derive(Clone, Default)]
struct SharedBytes(Rc<RefCell<Vec<u8>>>);

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn written(events: &[TraceEvent], paths: &mut PathTable, header: TraceHeader) -> Vec<u8> {
    let out = SharedBytes::default();
    let mut writer = TraceWriter::new(Box::new(out.clone()), header).unwrap();
    let path = paths.resolve(PathId::ROOT, b"/secret1/tree.d/canary");
    writer.tree(&[TreeEntry { path, mode: 0o100_644, size: 77 }], paths).unwrap();
    events.iter().for_each(|event| writer.event(event, paths).unwrap());
    writer.finish(TraceEnd { ended: "exit".to_owned(), ..TraceEnd::default() }).unwrap();
    out.0.take()
}

/// The events, with their paths as text.
fn texts(event: &TraceEvent, paths: &PathTable) -> (TraceEvent, Vec<Vec<u8>>) {
    let mut event = event.clone();
    let mut names = Vec::new();
    let mut text = |path: &mut Option<PathId>| names.extend(path.take().map(|path| paths.path(path)));
    match &mut event {
        TraceEvent::Call(call) => {
            text(&mut call.path);
            text(&mut call.second_path);
        }
        TraceEvent::Exec { path, .. } => text(path),
        _ => {}
    }
    (event, names)
}

#[test]
fn what_is_written_comes_back() {
    let mut paths = PathTable::new();
    let events = events(70_000, 3, &mut paths);
    let header = TraceHeader { command: vec!["a b".to_owned()], ..TraceHeader::default() };
    let bytes = written(&events, &mut paths, header);
    let mut reader = TraceReader::new(bytes.as_slice()).unwrap();
    let mut expected = events.iter();
    let mut count = 0;
    reader
        .for_each(|event, own| {
            assert_eq!(texts(event, own), texts(expected.next().unwrap(), &paths), "event {count}");
            count += 1;
        })
        .unwrap();
    assert_eq!((count, reader.cut_short()), (70_000, None));
    let calls = events.iter().filter(|event| matches!(event, TraceEvent::Call(_))).count() as u64;
    assert_eq!(reader.end().map(|end| (end.calls, end.is_complete())), Some((calls, true)));
    assert_eq!(
        (reader.tree()[0].size, reader.paths().path(reader.tree()[0].path)),
        (77, b"/secret1/tree.d/canary".to_vec())
    );
}

#[test]
fn a_block_without_the_latest_columns_is_read() {
    let mut paths = PathTable::new();
    let mut events = events(3000, 6, &mut paths);
    let parts = crate::columns::encode(&events);
    let kinds: Vec<KindId> = (0..KINDS.len()).map(|n| KindId(n as u16)).collect();
    let whole = crate::columns::decode(&parts.concat(), &kinds, paths.len());
    assert_eq!(whole.as_ref(), Some(&events));
    for event in &mut events {
        if let TraceEvent::Call(call) = event {
            (call.runnable, call.descriptor) = (None, None);
        }
    }
    assert_ne!(whole.as_ref(), Some(&events));
    assert_eq!(crate::columns::decode(&parts[..parts.len() - 2].concat(), &kinds, paths.len()), Some(events));
}

#[test]
fn a_trace_that_is_cut_short_has_its_whole_blocks() {
    let mut paths = PathTable::new();
    let events = events(140_000, 4, &mut paths);
    let bytes = written(&events, &mut paths, TraceHeader::default());
    let head = 8 + 17;
    let mut counts = Vec::new();
    for part in 1..=40 {
        let length = bytes.len() * part / 41;
        let Ok(mut reader) = TraceReader::new(&bytes[..length.max(head)]) else { continue };
        let mut count = 0;
        reader.for_each(|_, _| count += 1).unwrap();
        assert!(reader.cut_short().is_some() && reader.end().is_none());
        counts.push(count);
    }
    counts.dedup();
    assert_eq!(counts, [0, 65_536, 131_072]);
}

#[test]
fn mutated_traces_are_read_or_refused() {
    let mut paths = PathTable::new();
    let events = events(3000, 5, &mut paths);
    let bytes = written(&events, &mut paths, TraceHeader::default());
    let mut numbers = Numbers(77);
    let mut refused = 0;
    for n in 0..2000 {
        let mut bytes = bytes.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() as u64) as usize;
            match numbers.below(4) {
                0 => bytes[at] ^= 1 << numbers.below(8),
                1 => bytes[at] = numbers.next() as u8,
                2 => bytes.truncate(at.max(30)),
                _ => {
                    bytes.insert(at, 0);
                }
            }
        }
        if let Err(error) = TraceReader::new(bytes.as_slice()).and_then(|mut reader| reader.for_each(|_, _| ())) {
            refused += 1;
            assert!(!error.message.is_empty() && !error.help.is_empty(), "{n}");
        }
    }
    assert!(refused > 1000, "{refused} were refused");
}

/// Damage that no checksum tells, as of a file that was made to do harm.
#[test]
fn mutated_content_with_right_checksums_does_no_harm() {
    let mut paths = PathTable::new();
    let events = events(300, 6, &mut paths);
    let kinds: Vec<KindId> = (0..KINDS.len()).map(|n| KindId(n as u16)).collect();
    let bytes = crate::columns::encode(&events).concat();
    assert!(crate::columns::decode(&bytes, &kinds, paths.len()).is_some());
    let mut numbers = Numbers(78);
    let mut decoded = 0;
    for _ in 0..3000 {
        let mut bytes = bytes.clone();
        let at = numbers.below(bytes.len() as u64) as usize;
        bytes[at] = numbers.next() as u8;
        decoded += usize::from(crate::columns::decode(&bytes, &kinds, paths.len()).is_some());
        let mut out = TRACE_MARK.to_vec();
        write_block(&mut out, HEADER, &[serde_json::to_vec(&TraceHeader::default()).unwrap()]).unwrap();
        for kind in [PATHS, TREE, END] {
            write_block(&mut out, kind, &[&bytes[at..]]).unwrap();
        }
        let _ = TraceReader::new(out.as_slice()).and_then(|mut reader| reader.block());
    }
    assert!(decoded > 0);
}

#[test]
fn a_foreign_file_and_a_newer_trace_are_refused_with_help() {
    for (bytes, message) in [
        (&b""[..], "it is no trace"),
        (b"#!/bin/sh\n12345678901234567890", "it is no trace"),
        (
            b"wtrace\x02\n1234567890123456789012345",
            "the trace has version 2 of the format, and this wmlrun reads version 1",
        ),
        (TRACE_MARK, "the trace is damaged: it has no header"),
    ] {
        let error = TraceReader::new(bytes).err().unwrap();
        assert_eq!((error.message.as_str(), error.help.is_empty()), (message, false));
    }
}

#[test]
fn hidden_names_keep_the_tree_and_nothing_else() {
    let mut paths = PathTable::new();
    let events = events(2000, 7, &mut paths);
    let header = TraceHeader {
        hashes_names: true,
        command: vec!["/secret1/canary".to_owned()],
        under: vec!["/secret1".to_owned()],
        device: Some("host:/secret1".to_owned()),
        mount_options: Some("lowerdir=/secret1".to_owned()),
        ..TraceHeader::default()
    };
    let bytes = written(&events, &mut paths, header);
    let mut reader = TraceReader::new(bytes.as_slice()).unwrap();
    let shown = serde_json::to_string(reader.header()).unwrap();
    assert!(!shown.contains("secret") && !shown.contains("canary"), "{shown}");
    let under = reader.header().under.clone();
    let mut texts = Vec::new();
    reader
        .for_each(|event, paths| {
            if let TraceEvent::Call(TracedCall { path: Some(path), .. }) = event {
                texts.push(String::from_utf8(paths.path(*path)).unwrap());
            }
        })
        .unwrap();
    assert!(!texts.is_empty());
    for text in &texts {
        assert!(!text.contains("secret") && !text.contains("canary"), "{text}");
        assert!(text.rsplit('.').next() == Some("txt") && text.matches('/').count() == 2, "{text}");
    }
    // The directory that was recorded is found.
    assert!(texts.iter().any(|text| text.starts_with(&format!("{}/", under[0]))), "{under:?} {texts:?}");
    let first = |event: &TraceEvent| match event {
        TraceEvent::Call(call) => call.path,
        _ => None,
    };
    let known: BTreeSet<PathId> = events.iter().filter_map(first).collect();
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), known.len());
}

#[test]
fn the_cost_is_no_share_of_a_run_where_it_would_be_all_of_it() {
    let left_out = BTreeMap::from([("socket".to_owned(), 500)]);
    let end = TraceEnd { duration: 1_000_000_000, calls: 1500, left_out, ..TraceEnd::default() };
    let cost = |cost_ns, most_cost_ns| TraceEnd { cost_ns, most_cost_ns, ..end.clone() }.cost();
    assert_eq!(cost(None, None), None);
    assert_eq!(cost(Some(1000.0), None).as_deref(), Some("about 1.00 µs a call here, 0.2 % of the run at most"));
    let unknown = "`--check-overhead` tells what that is of a run";
    assert_eq!(cost(Some(1e6), None), Some(format!("about 1.00 ms a call here, {unknown}")));
    let range = "15.0 µs to 500 µs a call here, 3.0 % of the run at least";
    assert_eq!(cost(Some(15e3), Some(500e3)).as_deref(), Some(range));
    assert_eq!(cost(Some(1e6), Some(2e6)), Some(format!("1.00 ms to 2.00 ms a call here, {unknown}")));
    // As it was before there was a range.
    let old: TraceEnd = serde_json::from_str(r#"{"duration": 5, "calls": 2, "cost_ns": 7.0}"#).unwrap();
    assert_eq!((old.most_cost_ns, old.setuid.len()), (None, 0));
}
