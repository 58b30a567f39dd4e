//! `measure=NAME`: the time of a whole iteration or composite as a row of the results.
//!
//! The plan puts a start in front of the measured steps and an end behind them. The end has the counters; the start
//! only notes the time in the thread, under the number of the same row. Neither makes a system call.

use super::op::{Effects, FlowopEntry, Op, stateless};
use std::sync::Arc;
use wml_language::spec::{Class, Flowop, IoDirection, Origin};

/// Descriptor of the row. Scripts do not use it as a flowop: the plan adds it where `measure=` is given.
pub const MEASURE: Flowop = Flowop {
    name: "measure",
    class: Class::Other,
    direction: IoDirection::None,
    roles: &[],
    uses: &[],
    origin: Origin::Wmlrun,
    doc: "the time of an iteration or composite flowop with `measure=`",
    example: "",
};

pub(super) const ENTRY: FlowopEntry = FlowopEntry { spec: MEASURE, build: |_| Ok(measure_end()) };

/// The step behind the measured ones.
fn measure_end() -> Arc<dyn Op> {
    let effects = Effects { measures: true, preserves: true, non_blocking: true, ..Effects::default() };
    stateless(String::new(), effects, |cx| {
        cx.begin_at(cx.io.starts[cx.current()]);
        cx.end(0)
    })
}

/// The step in front of the measured ones. It belongs to the same row as the end.
pub fn measure_start() -> Arc<dyn Op> {
    let effects = Effects { preserves: true, non_blocking: true, ..Effects::default() };
    stateless(" starts".to_owned(), effects, |cx| {
        cx.skip()?;
        let row = cx.current();
        cx.io.starts[row] = cx.last();
        Ok(())
    })
}
