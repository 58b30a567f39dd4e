//! `transaction`: the end of a transaction, several operations that are one to the application.

use super::{FlowopEntry, Op, Step, StepInit};
use crate::exec::{OpCx, Stop};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

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

pub(super) const FLOWOPS: &[FlowopEntry] = &[FlowopEntry { spec: TRANSACTION, build: |_| Ok(Arc::new(Transaction)) }];

#[derive(Debug)]
struct Transaction;

impl Op for Transaction {
    fn instantiate<'r>(&'r self, _init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(TransactionStep { ended: 0 })
    }

    fn describe(&self) -> String {
        String::new()
    }

    fn preserves(&self) -> bool {
        true
    }
}

struct TransactionStep {
    /// End of the previous transaction, in ticks of the clock; 0 before the first, which began with the thread.
    ended: u64,
}

impl Step for TransactionStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        // In an open loop the wait for the next iteration belongs to no transaction.
        cx.begin_at(self.ended.max(cx.account.started));
        let done = cx.end(0);
        self.ended = cx.last();
        done
    }
}
