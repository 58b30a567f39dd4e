//! Tests of operations in the context of a thread on the null engine: what counts as their time, and their failures.
#![allow(clippy::unwrap_used)]

use super::args::SetInfo;
use super::by_name::call_by_name;
use super::pick_rule::PickRule;
use super::transfer::FileUse;
use crate::disk::Fileset;
use crate::disk::dirs::Dirs;
use crate::exec::buffer::IoBuffer;
use crate::exec::slots::{FileRef, SlotRule, Slots};
use crate::exec::{Account, OpCx, RunEnv, Sink, Starvation, StopReason, ThreadFiles, ThreadIo, View, WrittenData};
use crate::fileset::FilesetSpec;
use crate::fileset::content::DataSource;
use crate::io_engine;
use crate::random::{self, Quantity};
use crate::stats::recorder::ThreadStats;
use crate::sync::{EventPool, Gate};
use std::sync::Arc;
use std::time::Duration;
use wml_os::{Clock, Errno, OFlags};

/// Runs a test in the context of a thread with one file set, whose files flowops of the run create and remove, or not.
fn in_context(is_live: bool, test: impl FnOnce(&mut OpCx<'_>)) {
    let spec = FilesetSpec {
        prealloc: 100,
        dirwidth: Some(Quantity::Const(5)),
        ..FilesetSpec::new("s", "/nowhere", 20, 4096)
    };
    let set = Arc::new(Fileset::new(spec, 1).unwrap());
    if is_live {
        set.state.thaw();
    } else {
        set.state.freeze();
    }
    let data = DataSource::default();
    let views = [View { set, makers: Arc::default(), planned: [false; 4], first: 0, parts: 1, data }];
    let dirs: [Option<Dirs>; 1] = [None];
    let (gate, events, stats) = (Gate::new(), EventPool::new(None), ThreadStats::new(1).unwrap());
    let env = RunEnv {
        engine: io_engine::find("null").unwrap(),
        clock: Clock::get(),
        gate: &gate,
        events: &events,
        messages: None,
        seed: 1,
        instance: 0,
        count_errors: false,
    };
    let files = ThreadFiles::new(&views, &dirs, Starvation::default());
    let data = WrittenData::of_one(DataSource::default(), 1, 1);
    let buffer = IoBuffer::new(0, 4096, false, data, 1).unwrap();
    let io = ThreadIo::new(Slots::new(1, views.len()), buffer, None, Sink::none());
    let mut cx = OpCx::new(env, files, io, random::stream(1, &[0]), Account::new(&stats, None));
    cx.start();
    test(&mut cx);
}

/// A flowop's use of the next file of the set.
fn next_file() -> FileUse {
    let name = "s".to_owned();
    FileUse {
        slot: SlotRule { fd: 0, rotate: 0, set: Some(0) },
        set: Some(SetInfo {
            id: 0,
            name,
            entries: 20,
            leafdirs: 0,
            parts: 1,
            own_sets: 0,
            readonly: false,
            writeonly: false,
        }),
        pick: PickRule::Rotate,
        flags: OFlags::RDWR,
        readahead: true,
    }
}

/// True if the end of the last operation serves as the start of the next one, which begins some time later.
fn next_begins_at_the_end(cx: &mut OpCx<'_>) -> bool {
    let ended = cx.last();
    std::thread::sleep(Duration::from_millis(1));
    cx.begin();
    cx.last() == ended
}

#[test]
fn the_release_of_a_file_is_in_no_latency() {
    for is_live in [false, true] {
        in_context(is_live, |cx| {
            call_by_name::<false>(&next_file(), cx, "stat failed", |_, _| Ok(0)).unwrap();
            assert_eq!(next_begins_at_the_end(cx), !is_live, "a call by name");
            next_file().ensure_open(cx).unwrap();
            assert_eq!(next_begins_at_the_end(cx), !is_live, "an implicit open");
        });
    }
}

#[test]
fn a_failure_that_is_only_counted_has_no_message() {
    in_context(false, |cx| {
        let file = Some(FileRef { set: 0, index: 0 });
        let StopReason::Failed(failure) = cx.failed("write failed", Errno::NOSPC, file).reason() else {
            panic!("it is no failure");
        };
        assert!(failure.what.starts_with("write failed: ") && failure.path.is_some(), "{failure:?}");
        cx.env.count_errors = true;
        assert!(matches!(cx.failed("write failed", Errno::NOSPC, file).reason(), StopReason::Counted));
        assert_eq!(cx.account.stats.snapshot(0).errors.values().sum::<u64>(), 2);
        let stop = cx.misuse(|| panic!("nobody reads it"), "no help");
        assert!(matches!(stop.reason(), StopReason::Counted));
        let stop = cx.failed_as(Errno::XDEV, || panic!("nobody reads it"), "no help");
        assert!(matches!(stop.reason(), StopReason::Counted));
        assert_eq!(cx.account.stats.snapshot(0).errors.values().sum::<u64>(), 4);
    });
}
