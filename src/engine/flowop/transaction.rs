//! `transaction`: the end of a transaction, several operations that are one to the application.

use super::op::{Effects, FlowopEntry, Op, StepInit, stateful};
use std::sync::Arc;
use wml_language::spec::{Class, Flowop, IoDirection, Origin, Role};

/// Descriptor of the flowop. The plan also appends it to a composite flowop that is a transaction.
pub const TRANSACTION: Flowop = Flowop {
    name: "transaction",
    class: Class::Other,
    direction: IoDirection::None,
    roles: &[Role::EndsTransaction],
    uses: &[],
    origin: Origin::Wmlrun,
    doc: "ends a transaction of the thread; its latency is the time since the end of the previous one, or since the \
          start of the thread or, with `rate=`, of the iteration",
    example: "flowop statfile name=look,filesetname=data\nflowop transaction name=done",
};

pub(super) const FLOWOPS: &[FlowopEntry] = &[FlowopEntry { spec: TRANSACTION, build: |_| Ok(transaction()) }];

fn transaction() -> Arc<dyn Op> {
    // The end of the previous transaction, in ticks of the clock; 0 before the first, which began with the thread.
    let previous = |_: &StepInit<'_>| 0;
    stateful(String::new(), Effects { preserves: true, ..Effects::default() }, previous, |previous, cx| {
        // In an open loop the wait for the next iteration belongs to no transaction.
        cx.begin_at((*previous).max(cx.account.started));
        let done = cx.end(0);
        *previous = cx.last();
        done
    })
}
