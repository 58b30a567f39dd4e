//! `measure=NAME`: the time of a whole iteration or composite as a row of the results.
//!
//! The plan puts a start in front of the measured steps and an end behind them. The end has the counters; the start
//! only notes the time in the thread, under the number of the same row. Neither makes a system call.

use super::{Effects, FlowopEntry, Op, Stateless};
use crate::exec::{OpCx, Stop};
use crate::spec::{Class, Flowop, IoDirection, Origin};
use std::sync::Arc;

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

pub(super) const ENTRY: FlowopEntry = FlowopEntry { spec: MEASURE, build: |_| Ok(Arc::new(MeasureEnd)) };

/// Returns the step in front of the measured ones. It belongs to the same row as the end.
pub fn measure_start() -> Arc<dyn Op> {
    Arc::new(MeasureStart)
}

#[derive(Debug)]
struct MeasureStart;

impl Stateless for MeasureStart {
    fn describe(&self) -> String {
        " starts".to_owned()
    }

    fn preserves(&self) -> bool {
        true
    }

    fn non_blocking(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.skip()?;
        let row = cx.current();
        cx.io.starts[row] = cx.last();
        Ok(())
    }
}

#[derive(Debug)]
struct MeasureEnd;

impl Stateless for MeasureEnd {
    fn describe(&self) -> String {
        String::new()
    }

    fn preserves(&self) -> bool {
        true
    }

    fn non_blocking(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects { measures: true, ..Effects::default() }
    }

    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin_at(cx.io.starts[cx.current()]);
        cx.end(0)
    }
}
