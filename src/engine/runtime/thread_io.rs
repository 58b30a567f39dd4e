//! The resources of a thread's I/O, prepared before the gate: buffers, asynchronous I/O, the receiver of `sendfile`.
//!
//! Deliberately absent: the program of the thread, and its loop.

use super::process::ProcessContext;
use super::shared::{Fault, FaultKind, ThreadSlot};
use crate::exec::buffer::IoBuffer;
use crate::exec::{Aio, AioMode, Outstanding, Sink, View, WrittenData};
use crate::fileset::content::DataSource;
use crate::io_engine::Asynchronous;
use crate::plan::{PlanStep, Thread};
use std::sync::Arc;

/// Allocates and fills the I/O buffer of a thread.
pub(super) fn buffer(
    context: &ProcessContext<'_>,
    thread: &Thread,
    index: usize,
    seed: u64,
) -> Result<IoBuffer, Fault> {
    let effects = &thread.effects;
    let data = written_data(context, thread, context.shared.options.seed, index);
    IoBuffer::new(thread.memsize, effects.buffer, effects.direct, data, seed).map_err(|e| {
        Fault::plain(
            FaultKind::Setup,
            format!("allocating the I/O buffer of thread `{}` failed: {e}", thread.name),
            "make `memsize` smaller, or start fewer threads",
        )
    })
}

/// Returns the data that a thread writes: of one source, or of several separate ones ([`Plan::separate_data`]).
///
/// [`Plan::separate_data`]: crate::plan::Plan::separate_data
fn written_data(context: &ProcessContext<'_>, thread: &Thread, seed: u64, index: usize) -> WrittenData {
    let (views, index) = (context.views, index as u64);
    let separate = context.shared.plan.separate_data(thread);
    if separate.is_empty() {
        let source = thread.effects.sets.first().map_or_else(DataSource::default, |set| views[*set].data.clone());
        return WrittenData::of_one(source, seed, index);
    }
    let sources: Vec<DataSource> = separate.into_iter().map(|set| views[set].data.clone()).collect();
    let source_of = |view: &View| sources.iter().position(|own| own.redundancy() == view.data.redundancy());
    let of_set = views.iter().map(source_of).collect();
    WrittenData::of_several(sources, of_set, seed, index)
}

/// Opens the receiver of `sendfile`.
pub(super) fn open_sink(thread: &Thread) -> Result<Sink, Fault> {
    Sink::open().map_err(|e| {
        let what = format!("opening `/dev/null` for thread `{}` failed: {e}", thread.name);
        Fault::plain(FaultKind::Setup, what, "make `/dev/null` writable, or omit the flowop `sendfile`")
    })
}

/// Returns the first part of each set if any set has several parts; else an empty vector.
pub(super) fn firsts(views: &[View]) -> Vec<usize> {
    if views.iter().all(|view| view.parts == 1) {
        return Vec::new();
    }
    views.iter().map(|view| view.first).collect()
}

/// Prepares the asynchronous I/O of a thread.
pub(super) fn outstanding(
    context: &ProcessContext<'_>,
    thread_slot: &ThreadSlot,
    aio: Aio,
    index: usize,
    seed: u64,
) -> Result<Outstanding, Fault> {
    let options = &context.shared.options;
    let thread = &context.process.threads[thread_slot.thread];
    let non_blocking = |step: &PlanStep| !matches!(step, PlanStep::Op { op, .. } if !op.effects().non_blocking);
    let how = match (context.pool, options.asynchronous) {
        (Some(pool), _) => AioMode::Pool(pool),
        (None, Asynchronous::AtOnce) => AioMode::AtOnce,
        (None, _) => AioMode::Ring { alone: thread.pace.is_none() && thread.steps.iter().all(non_blocking) },
    };
    let data = written_data(context, thread, !options.seed, index);
    Outstanding::new(aio, how, options.engine, data, seed, Arc::clone(&thread_slot.in_flight)).map_err(|e| {
        Fault::plain(
            FaultKind::Setup,
            format!("preparing asynchronous I/O of thread `{}` failed: {e}", thread.name),
            "make `iodepth` or `iosize` smaller, start fewer threads, or avoid io_uring (`--engine posix`)",
        )
    })
}
