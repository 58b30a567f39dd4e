//! Flowops without I/O: `hog`, `delay`, `print`, `testrandvar`.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, StepInit, entry, stateful, stateless};
use crate::exec::Stop;
use crate::random::Quantity;
use std::sync::Arc;
use wml_language::spec::{Class, Origin, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("hog", hog)
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .doc("uses processor time: `value` stores of one byte each")
        .example("flowop hog name=burn,value=1000"),
    entry("delay", delay)
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value"])
        .roles(&[Role::Sleeps])
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

fn delay(args: &Args<'_>) -> BuiltOp {
    // A constant [`Quantity`] is a whole number: its fraction is separate. Of the values of `value=` only these may have
    // one, which other flowops refuse ([`Args::quantity`]).
    let (value, fraction_ns) = match args.value("value") {
        Some((value, _)) if value.fraction().is_some_and(|seconds| seconds > 0.0) => {
            let seconds = value.as_f64().unwrap_or_default();
            (Quantity::Const(seconds as u64), (seconds.fract() * 1e9) as u64)
        }
        Some((value, span)) => (args.resolver.exact_quantity(value, span)?, 0),
        None => (Quantity::Const(0), 0),
    };
    let fraction = if fraction_ns > 0 { format!(" and {fraction_ns} ns") } else { String::new() };
    Ok(stateless(format!(" value={value}{fraction}"), Effects::default(), move |cx| {
        // A float as an integer is at most the greatest one.
        let drawn_ns = (value.draw_f64(&mut cx.rng) * 1e9) as u64;
        cx.begin();
        let ns = drawn_ns.saturating_add(fraction_ns);
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
