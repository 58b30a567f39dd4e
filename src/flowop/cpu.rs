//! Flowops without I/O: `hog`, `delay`, `print`, `testrandvar`.

use super::args::Args;
use super::{BuiltOp, FlowopEntry, Op, Stateless, Step, StepInit};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

/// What the flowops of this family have in common.
const NO_FILE: Flowop = Flowop {
    name: "",
    class: Class::Other,
    direction: IoDirection::None,
    uses: &["value"],
    roles: &[],
    origin: Origin::Both,
    doc: "",
    example: "",
};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "hog",
            doc: "uses processor time: `value` stores of one byte each",
            example: "flowop hog name=burn,value=1000",
            ..NO_FILE
        },
        build: Hog::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "delay",
            roles: &[Role::Sleeps],
            doc: "sleeps for `value` seconds; fractions are allowed",
            example: "flowop delay name=pause,value=1",
            ..NO_FILE
        },
        build: Delay::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "print",
            doc: "prints the text `value` as a message; not counted as an operation",
            example: "flowop print name=say,value=\"hello\"\nflowop delay name=pause,value=1",
            ..NO_FILE
        },
        build: |args| Ok(Arc::new(Print { text: args.text("value").unwrap_or_default() })),
    },
    FlowopEntry {
        spec: Flowop {
            name: "testrandvar",
            doc: "draws `value`, to measure or test a random variable",
            example: "flowop testrandvar name=test,value=10",
            ..NO_FILE
        },
        build: TestRandvar::build,
    },
];

impl Hog {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { value: args.quantity_or("value", 0)? }))
    }
}

impl Delay {
    fn build(args: &Args<'_>) -> BuiltOp {
        // Of the values of `value=` only these may have a fraction, which other flowops refuse ([`Args::quantity`]).
        let (value, fraction_ns) = match args.value("value") {
            Some((value, _)) if value.fraction().is_some_and(|seconds| seconds > 0.0) => {
                let seconds = value.as_f64().unwrap_or_default();
                (Quantity::Const(seconds as u64), (seconds.fract() * 1e9) as u64)
            }
            Some((value, span)) => (args.resolver.exact_quantity(value, span)?, 0),
            None => (Quantity::Const(0), 0),
        };
        Ok(Arc::new(Self { value, fraction_ns }))
    }
}

impl TestRandvar {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { value: args.quantity_or("value", 0)? }))
    }
}

#[derive(Clone, Debug)]
struct Hog {
    value: Quantity,
}

impl Op for Hog {
    fn instantiate<'r>(&'r self, _init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(HogStep { value: self.value.clone(), byte: Box::new(0) })
    }

    fn describe(&self) -> String {
        format!(" value={}", self.value)
    }
}

struct HogStep {
    value: Quantity,
    /// The byte to store to. On the heap, so that it shares no cache line with frequently used data of this or another
    /// thread.
    byte: Box<u64>,
}

/// Number of stores between two checks for the end of the run: about ten microseconds.
const SLICE: u64 = 1 << 15;

impl Step for HogStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let mut left = self.value.draw(&mut cx.rng);
        cx.begin();
        while left > 0 {
            let now = left.min(SLICE);
            crate::os::burn(&mut self.byte, now);
            left -= now;
            if left > 0 && cx.env.gate.is_stopped() {
                return Err(Stop::over());
            }
        }
        cx.end(0)
    }
}

#[derive(Debug)]
struct Delay {
    value: Quantity,
    /// Fractional part of a constant in nanoseconds, because a constant [`Quantity`] is a whole number.
    fraction_ns: u64,
}

impl Stateless for Delay {
    fn describe(&self) -> String {
        if self.fraction_ns > 0 {
            format!(" value={} and {} ns", self.value, self.fraction_ns)
        } else {
            format!(" value={}", self.value)
        }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        // A float as an integer is at most the greatest one.
        let drawn_ns = (self.value.draw_f64(&mut cx.rng) * 1e9) as u64;
        cx.begin();
        let ns = drawn_ns.saturating_add(self.fraction_ns);
        let until = cx.env.clock.raw().saturating_add(cx.env.clock.ticks(ns));
        if cx.env.gate.sleep_until(cx.env.clock, until) { Err(Stop::over()) } else { cx.end(0) }
    }
}

#[derive(Clone, Debug)]
struct Print {
    text: String,
}

impl Op for Print {
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(PrintStep { text: self.text.clone(), ordinal: init.ordinal })
    }

    fn describe(&self) -> String {
        format!(" value=\"{}\"", self.text)
    }
}

struct PrintStep {
    text: String,
    ordinal: usize,
}

impl Step for PrintStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.restamp();
        cx.send_message(self.ordinal, &self.text);
        cx.skip()
    }
}

#[derive(Debug)]
struct TestRandvar {
    value: Quantity,
}

impl Stateless for TestRandvar {
    fn describe(&self) -> String {
        format!(" value={}", self.value)
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        std::hint::black_box(self.value.draw(&mut cx.rng));
        cx.end(0)
    }
}
