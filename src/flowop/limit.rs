//! `eventlimit`, `iopslimit`, `opslimit`, `bwlimit`: threads are held to the rate of the event generator.
//!
//! All limiters of a run draw on one pool of events (`sync::EventPool`). Without a rate they let everything pass and count
//! nothing, as in Filebench.

use super::args::Args;
use super::finish::Counter;
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Stateless, Step};
use crate::exec::{OpCx, Stop};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use crate::sync::Claim;
use std::sync::Arc;

const EXAMPLE: &str = "flowop read name=rd,filename=data,iosize=4k,random\nflowop iopslimit name=limit,target=rd";

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "eventlimit",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &[],
            roles: &[Role::TakesEvent],
            origin: Origin::Both,
            doc: "takes one event, waiting for it if there is none",
            example: "flowop eventlimit name=limit",
        },
        build: |_| Ok(Arc::new(EventLimit)),
    },
    FlowopEntry {
        spec: Flowop {
            name: "iopslimit",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &["target"],
            roles: &[Role::TakesEvents],
            origin: Origin::Both,
            doc: "takes an event for each read or write since its last turn",
            example: EXAMPLE,
        },
        build: |args| Limit::build(args, LimitUnit::Io),
    },
    FlowopEntry {
        spec: Flowop {
            name: "opslimit",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &["target"],
            roles: &[Role::TakesEvents],
            origin: Origin::Both,
            doc: "takes an event for each operation since its last turn",
            example: "flowop statfile name=st,filesetname=data\nflowop opslimit name=limit",
        },
        build: |args| Limit::build(args, LimitUnit::Op),
    },
    FlowopEntry {
        spec: Flowop {
            name: "bwlimit",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &["target"],
            roles: &[Role::TakesEvents],
            origin: Origin::Both,
            doc: "takes an event for each MiB moved since its last turn",
            example: "flowop read name=rd,filename=data,iosize=4k,random\nflowop bwlimit name=limit,target=rd",
        },
        build: |args| Limit::build(args, LimitUnit::MiB),
    },
];

impl Limit {
    fn build(args: &Args<'_>, unit: LimitUnit) -> BuiltOp {
        Ok(Arc::new(Self { unit, counter: Counter::new(args, unit != LimitUnit::Op)?, target: args.text("target") }))
    }
}

#[derive(Debug)]
struct EventLimit;

impl Stateless for EventLimit {
    fn describe(&self) -> String {
        String::new()
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if !cx.env.events.is_on() {
            return Ok(());
        }
        pay(cx, 1)
    }
}

fn pay(cx: &mut OpCx<'_>, events: u64) -> Result<(), Stop> {
    cx.begin();
    match cx.env.events.claim(events) {
        Claim::Granted => cx.end(0),
        Claim::Unlimited => Ok(()),
        Claim::Stopped => Err(Stop::over()),
    }
}

/// What one event pays for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LimitUnit {
    Io,
    Op,
    MiB,
}

#[derive(Clone, Debug)]
struct Limit {
    unit: LimitUnit,
    counter: Counter,
    target: Option<String>,
}

impl Op for Limit {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(LimitStep { unit: self.unit, counter: self.counter.clone().bind(at), seen: None, paid_ahead: 0 })
    }

    fn describe(&self) -> String {
        self.target.as_ref().map_or(String::new(), |t| format!(" target={t}"))
    }

    fn effects(&self) -> Effects {
        Effects { totals: self.counter.is_total(), ..Effects::default() }
    }
}

struct LimitStep {
    unit: LimitUnit,
    counter: Counter,
    /// The counter at the last turn; the first turn only looks.
    seen: Option<u64>,
    /// Bytes paid for and not yet moved.
    paid_ahead: u64,
}

impl Step for LimitStep {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if !cx.env.events.is_on() {
            // What is done without a limit is never billed.
            self.seen = None;
            return Ok(());
        }
        let now = if self.unit == LimitUnit::MiB { self.counter.bytes(cx) } else { self.counter.ops(cx) };
        let Some(seen) = self.seen.replace(now) else { return Ok(()) };
        let moved = now.saturating_sub(seen);
        let events = if self.unit == LimitUnit::MiB { self.bytes_to_events(moved) } else { moved };
        if events == 0 {
            cx.begin();
            return cx.end(0);
        }
        pay(cx, events)
    }
}

impl LimitStep {
    /// Whole MiB, rounded up; what was paid too much counts the next time.
    fn bytes_to_events(&mut self, moved: u64) -> u64 {
        let due = moved.saturating_sub(self.paid_ahead);
        let events = if due == 0 { 0 } else { (due >> 20) + 1 };
        self.paid_ahead = self.paid_ahead + (events << 20) - moved;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_paid_in_mib_and_the_surplus_is_kept() {
        let counter = Counter::totals(true);
        let mut step = LimitStep { unit: LimitUnit::MiB, counter, seen: None, paid_ahead: 0 };
        let mut paid = 0;
        for _ in 0..1000 {
            paid += step.bytes_to_events(100_000);
        }
        let moved: u64 = 100_000 * 1000;
        assert!(paid << 20 >= moved, "nothing goes unpaid");
        assert!(paid <= (moved >> 20) + 2, "and nothing is paid twice: {paid}");
        assert_eq!(step.paid_ahead, (paid << 20) - moved);
    }
}
