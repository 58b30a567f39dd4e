//! `transaction`: several operations that are one to the application.

use super::{At, FlowopEntry, Op, Step};
use crate::exec::{OpCx, Stop};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

/// What ends a transaction: also put at the end of a composite that is one.
pub const TRANSACTION: Flowop = Flowop {
    name: "transaction",
    class: Class::Other,
    direction: IoDirection::None,
    roles: &[Role::EndsTransaction],
    uses: &[],
    origin: Origin::Wmlrun,
    doc: "ends a transaction: its latency is the time since the thread's last one ended",
    example: "flowop statfile name=look,filesetname=data\nflowop transaction name=done",
};

pub(super) const FLOWOPS: &[FlowopEntry] = &[FlowopEntry { spec: TRANSACTION, build: |_| Ok(Arc::new(Transaction)) }];

#[derive(Debug)]
struct Transaction;

impl Op for Transaction {
    fn instantiate<'r>(&'r self, _at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(TransactionStep { ended: None })
    }

    fn describe(&self) -> String {
        String::new()
    }

    fn preserves(&self) -> bool {
        true
    }
}

struct TransactionStep {
    /// When the last one ended, in ticks; none yet: the thread's start counts.
    ended: Option<u64>,
}

impl Step for TransactionStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin_at(self.ended.unwrap_or(cx.account.started));
        let done = cx.end(0);
        self.ended = Some(cx.last());
        done
    }
}
