//! Flowops without I/O: `hog`, `compute`, `delay`, `nothing`, `print`, `testrandvar`.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, StepInit, entry, stateful, stateless};
use crate::exec::{OpCx, Stop};
use crate::random::{Quantity, Rng};
use std::sync::Arc;
use wml_language::diag::Diagnostic;
use wml_language::spec::{Class, Origin, Role};
use wml_os::clock::thread_time_ns;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("hog", hog)
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .doc("uses processor time: `value` stores of one byte each")
        .example("flowop hog name=burn,value=1000"),
    entry("compute", compute)
        .class(Class::Other)
        .uses(&["value"])
        .roles(&[Role::TimeValue])
        .doc(
            "uses `value` seconds of processor time, as a program between its calls; fractions are allowed. Less than \
             5 µs is added to the next one",
        )
        .example("flowop compute name=think,value=0.00013"),
    entry("nothing", |_| {
        Ok(stateless(String::new(), Effects::default(), |cx| {
            cx.begin();
            cx.end(0)
        }))
    })
    .class(Class::Other)
    .doc("does nothing: an empty branch of a `mix`")
    .example("flowop nothing name=pass"),
    entry("delay", delay)
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .roles(&[Role::Sleeps, Role::TimeValue])
        .doc("sleeps for `value` seconds; fractions are allowed")
        .example("flowop delay name=pause,value=1"),
    entry("print", |args| Ok(print(args.text("value").unwrap_or_default())))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .doc("prints the text `value` as a message; not counted as an operation")
        .example("flowop print name=say,value=\"hello\"\nflowop delay name=pause,value=1"),
    entry("testrandvar", test_randvar)
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .doc("draws `value`, to measure or test a random variable")
        .example("flowop testrandvar name=test,value=10"),
];

/// Number of stores between two checks for the end of the run: about ten microseconds.
const SLICE: u64 = 1 << 15;

fn hog(args: &Args<'_>) -> BuiltOp {
    let value = args.quantity_or("value", 0)?;
    let described = format!(" value={value}");
    // The byte to store to is on the heap, so that it shares no cache line with frequently used data of this or another
    // thread.
    let byte = |_: &StepInit<'_>| Box::new(0);
    Ok(stateful(described, Effects::default(), byte, move |byte, cx| {
        let mut left = value.draw(&mut cx.rng);
        cx.begin();
        while left > 0 {
            let now = left.min(SLICE);
            wml_os::burn(byte, now);
            left -= now;
            if left > 0 && cx.env.gate.is_stopped() {
                return Err(Stop::over());
            }
        }
        cx.end(0)
    }))
}

/// A time in seconds, drawn for each operation.
struct Time {
    seconds: Quantity,
    fraction_ns: u64,
}

impl Time {
    /// Reads `value=`. A constant [`Quantity`] is a whole number: its fraction is separate. Other flowops refuse a
    /// fraction ([`Args::quantity`]).
    fn new(args: &Args<'_>) -> Result<Self, Diagnostic> {
        let (seconds, fraction_ns) = match args.value("value") {
            Some((value, _)) if value.fraction().is_some_and(|seconds| seconds > 0.0) => {
                let seconds = value.as_f64().unwrap_or_default();
                (Quantity::Const(seconds as u64), (seconds.fract() * 1e9) as u64)
            }
            Some((value, span)) => (args.resolver.exact_quantity(value, span)?, 0),
            None => (Quantity::Const(0), 0),
        };
        Ok(Self { seconds, fraction_ns })
    }

    fn describe(&self) -> String {
        let fraction = if self.fraction_ns > 0 { format!(" and {} ns", self.fraction_ns) } else { String::new() };
        format!(" value={}{fraction}", self.seconds)
    }

    /// Draws a time in nanoseconds. A float as an integer is at most the greatest one.
    fn draw_ns(&self, rng: &mut Rng) -> u64 {
        ((self.seconds.draw_f64(rng) * 1e9) as u64).saturating_add(self.fraction_ns)
    }
}

/// The shortest time that is spent at once, in nanoseconds: a shorter one would be mostly this flowop's own.
const SHORTEST_NS: u64 = 5_000;

/// The time between two looks at the thread's own clock, in nanoseconds. That is a system call; the counter is not.
const CORRECTION_NS: u64 = 50_000;

fn compute(args: &Args<'_>) -> BuiltOp {
    let time = Time::new(args)?;
    Ok(stateful(
        time.describe(),
        Effects::default(),
        |_| 0_u64,
        move |owed, cx| {
            let ns = time.draw_ns(&mut cx.rng).saturating_add(std::mem::take(owed));
            cx.begin();
            if ns < SHORTEST_NS {
                *owed = ns;
            } else if ns <= CORRECTION_NS {
                spin(cx, ns);
            } else {
                let start = thread_time_ns();
                let mut left = ns;
                while left > 0 {
                    spin(cx, left.min(CORRECTION_NS));
                    if cx.env.gate.is_stopped() {
                        return Err(Stop::over());
                    }
                    left = ns.saturating_sub(thread_time_ns() - start);
                }
            }
            cx.end(0)
        },
    ))
}

fn spin(cx: &OpCx<'_>, ns: u64) {
    let clock = cx.env.clock;
    let until = clock.raw() + clock.ticks(ns);
    while clock.raw() < until {
        std::hint::spin_loop();
    }
}

fn delay(args: &Args<'_>) -> BuiltOp {
    let time = Time::new(args)?;
    Ok(stateless(time.describe(), Effects::default(), move |cx| {
        let ns = time.draw_ns(&mut cx.rng);
        cx.begin();
        let until = cx.env.clock.raw().saturating_add(cx.env.clock.ticks(ns));
        if cx.env.gate.sleep_until(cx.env.clock, until) { Err(Stop::over()) } else { cx.end(0) }
    }))
}

fn print(text: String) -> Arc<dyn Op> {
    stateful(
        format!(" value=\"{text}\""),
        Effects::default(),
        |init| init.ordinal,
        move |ordinal, cx| {
            cx.restamp();
            cx.send_message(*ordinal, &text);
            cx.skip()
        },
    )
}

fn test_randvar(args: &Args<'_>) -> BuiltOp {
    let value = args.quantity_or("value", 0)?;
    Ok(stateless(format!(" value={value}"), Effects::default(), move |cx| {
        cx.begin();
        std::hint::black_box(value.draw(&mut cx.rng));
        cx.end(0)
    }))
}
