//! Rate limits by the event generator: `eventlimit`, `iopslimit`, `opslimit`, `bwlimit`.
//!
//! All limiters of a run claim events from one pool ([`crate::sync::EventPool`]). Without an event rate they neither
//! wait nor count as operations, as in Filebench.

use super::args::Args;
use super::finish::Counter;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, StepInit, entry, stateful, stateless};
use crate::exec::{OpCx, Stop};
use crate::sync::Claim;
use std::sync::Arc;
use wml_language::spec::{Class, Origin, Role};

const EXAMPLE: &str = "flowop read name=rd,filename=data,iosize=4k,random\nflowop iopslimit name=limit,target=rd";

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("eventlimit", |_| Ok(event_limit()))
        .class(Class::Other)
        .origin(Origin::Both)
        .roles(&[Role::TakesEvent])
        .doc("claims one event of the event generator; waits until one is due")
        .example("flowop eventlimit name=limit"),
    entry("iopslimit", |args| limit(args, LimitUnit::Io))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["target"])
        .roles(&[Role::TakesEvents])
        .doc(
            "claims one event for each operation of `target` (default: each read and write of the process) since \
             the limiter's last execution; waits until the events are due",
        )
        .example(EXAMPLE),
    entry("opslimit", |args| limit(args, LimitUnit::Op))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["target"])
        .roles(&[Role::TakesEvents])
        .doc(
            "claims one event for each operation of `target` (default: the whole process) since the limiter's \
             last execution; waits until the events are due",
        )
        .example("flowop statfile name=st,filesetname=data\nflowop opslimit name=limit"),
    entry("bwlimit", |args| limit(args, LimitUnit::MiB))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["target"])
        .roles(&[Role::TakesEvents])
        .doc(
            "claims one event for each MiB that `target` (default: the whole process) transferred since the \
             limiter's last execution; waits until the events are due",
        )
        .example("flowop read name=rd,filename=data,iosize=4k,random\nflowop bwlimit name=limit,target=rd"),
];

fn event_limit() -> Arc<dyn Op> {
    stateless(String::new(), Effects::default(), |cx| if cx.env.events.is_on() { claim_events(cx, 1) } else { Ok(()) })
}

fn limit(args: &Args<'_>, unit: LimitUnit) -> BuiltOp {
    let counter = Counter::new(args, unit != LimitUnit::Op)?;
    let described = args.text("target").map_or(String::new(), |target| format!(" target={target}"));
    let effects = Effects { totals: counter.is_total(), ..Effects::default() };
    let make = move |init: &StepInit<'_>| LimitStep {
        unit,
        counter: counter.clone().bind(init),
        last_count: None,
        claimed_ahead: 0,
    };
    Ok(stateful(described, effects, make, LimitStep::run))
}

/// Claims events and waits until they are due. `Err` when the run ends meanwhile.
fn claim_events(cx: &mut OpCx<'_>, events: u64) -> Result<(), Stop> {
    cx.begin();
    match cx.env.events.claim(events) {
        Claim::Granted => cx.end(0),
        Claim::Unlimited => Ok(()),
        Claim::Stopped => Err(Stop::over()),
    }
}

/// The work that one event allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LimitUnit {
    /// One read or write.
    Io,
    /// One operation of any flowop.
    Op,
    /// One MiB of data.
    MiB,
}

struct LimitStep {
    unit: LimitUnit,
    counter: Counter,
    /// The counter at the last execution; `None` before the first, which claims no events.
    last_count: Option<u64>,
    /// Bytes for which events were claimed and that are not yet transferred.
    claimed_ahead: u64,
}

impl LimitStep {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if !cx.env.events.is_on() {
            // Operations without a limit need no events, even if a rate is set later.
            self.last_count = None;
            return Ok(());
        }
        let now = if self.unit == LimitUnit::MiB { self.counter.bytes(cx) } else { self.counter.ops(cx) };
        let Some(before) = self.last_count.replace(now) else { return Ok(()) };
        let moved = now.saturating_sub(before);
        let events = if self.unit == LimitUnit::MiB { self.bytes_to_events(moved) } else { moved };
        if events == 0 {
            cx.begin();
            return cx.end(0);
        }
        claim_events(cx, events)
    }

    /// Returns the events for a number of bytes: whole MiB, rounded up. The surplus is credited to the next call.
    fn bytes_to_events(&mut self, moved: u64) -> u64 {
        let due = moved.saturating_sub(self.claimed_ahead);
        let events = if due == 0 { 0 } else { (due >> 20) + 1 };
        self.claimed_ahead = self.claimed_ahead + (events << 20) - moved;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_mib_and_the_surplus_is_credited() {
        let counter = Counter::totals(true);
        let mut step = LimitStep { unit: LimitUnit::MiB, counter, last_count: None, claimed_ahead: 0 };
        let mut claimed = 0;
        for _ in 0..1000 {
            claimed += step.bytes_to_events(100_000);
        }
        let moved: u64 = 100_000 * 1000;
        assert!(claimed << 20 >= moved, "events cover all bytes");
        assert!(claimed <= (moved >> 20) + 2, "no byte is covered twice: {claimed}");
        assert_eq!(step.claimed_ahead, (claimed << 20) - moved);
    }
}
