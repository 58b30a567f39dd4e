//! `semblock`, `sempost`, `block`, `wakeup`: threads wait for one another.
//!
//! Every runtime instance of a `semblock` has two semaphores of its own. A post goes to *every* instance of every flowop of
//! the target's name, so that with ten writers each post is delivered ten times, and a blocking post is held back by the
//! slowest. See `sync::Semaphore` for the protocol.

use super::args::Args;
use super::{At, BuiltOp, Effects, FlowopEntry, Op, SemPair, Step};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use crate::sync::{Latch, Stopped};
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "semblock",
            class: Class::Sync,
            direction: IoDirection::None,
            uses: &["value", "highwater", "blocking"],
            roles: &[Role::WaitsFor { kind: "sempost", verb: "posts to" }],
            origin: Origin::Both,
            doc: "waits for `value` posts; lets posts run ahead by `highwater`",
            example: "flowop sempost name=post,value=1,target=wait\nflowop semblock name=wait,value=1,highwater=1",
        },
        build: SemBlockOp::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "sempost",
            class: Class::Sync,
            direction: IoDirection::None,
            uses: &["value", "target", "blocking"],
            roles: &[],
            origin: Origin::Both,
            doc: "posts `value` to every instance of `target`; with `blocking` waits while one is too far behind",
            example: "flowop sempost name=post,value=1,target=wait\nflowop semblock name=wait,value=1,highwater=1",
        },
        build: Post::build,
    },
    FlowopEntry {
        spec: Flowop {
            name: "block",
            class: Class::Sync,
            direction: IoDirection::None,
            uses: &[],
            roles: &[Role::WaitsFor { kind: "wakeup", verb: "wakes" }],
            origin: Origin::Both,
            doc: "waits for a `wakeup`; one that came before is kept",
            example: "flowop wakeup name=wake,target=sleep\nflowop block name=sleep",
        },
        build: |args| Ok(Arc::new(Sleep { id: args.id })),
    },
    FlowopEntry {
        spec: Flowop {
            name: "wakeup",
            class: Class::Sync,
            direction: IoDirection::None,
            uses: &["target"],
            roles: &[],
            origin: Origin::Both,
            doc: "wakes every instance of `target`",
            example: "flowop wakeup name=wake,target=sleep\nflowop block name=sleep",
        },
        build: Wake::build,
    },
];

impl SemBlockOp {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self {
            id: args.id,
            value: args.quantity_or("value", 0)?,
            highwater: args.int("highwater", 1)?.min(i32::MAX as u64) as u32,
        }))
    }
}

impl Post {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self {
            value: args.quantity_or("value", 0)?,
            blocking: args.flag("blocking")?,
            target: args.text("target").unwrap_or_default(),
            targets: partners(args, "semblock")?,
        }))
    }
}

impl Wake {
    fn build(args: &Args<'_>) -> BuiltOp {
        Ok(Arc::new(Self { target: args.text("target").unwrap_or_default(), targets: partners(args, "block")? }))
    }
}

/// The targets, all of which must be of this type.
fn partners(args: &Args<'_>, kind: &str) -> Result<Vec<usize>, Diagnostic> {
    let targets = args.targets()?;
    if targets.is_empty() {
        let message = format!("flowop `{}` of type `{}` has no `target=`", args.name, args.spec.name);
        return Err(Diagnostic::error(Code::MissingAttribute, args.span, message)
            .help(format!("add `target=…`, the name of a `{kind}`")));
    }
    if let Some(other) = targets.iter().find(|t| t.kind != kind) {
        let message = format!("the target of `{}` is a `{}`", args.name, other.kind);
        return Err(Diagnostic::error(Code::UnknownTarget, args.at("target"), message)
            .help(format!("a `{}` works on a `{kind}`", args.spec.name)));
    }
    Ok(targets.iter().map(|t| t.id).collect())
}

#[derive(Clone, Debug)]
struct SemBlockOp {
    id: usize,
    value: Quantity,
    highwater: u32,
}

impl Op for SemBlockOp {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(BlockStep { value: self.value.clone(), pair: at.semaphores[self.id][at.ordinal].clone() })
    }

    fn describe(&self) -> String {
        format!(" value={} highwater={}", self.value, self.highwater)
    }

    fn effects(&self) -> Effects {
        Effects { highwater: Some(self.highwater), ..Effects::default() }
    }
}

struct BlockStep {
    value: Quantity,
    pair: Arc<SemPair>,
}

impl Step for BlockStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let value = clip(self.value.draw(&mut cx.rng));
        cx.begin();
        self.pair.high.add(value);
        match self.pair.low.take(value) {
            Ok(_) => cx.end_fast(0),
            Err(_) => Err(Stop::over()),
        }
    }
}

#[derive(Clone, Debug)]
struct Post {
    value: Quantity,
    blocking: bool,
    target: String,
    targets: Vec<usize>,
}

impl Op for Post {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let pairs: Vec<_> = self.targets.iter().flat_map(|id| at.semaphores[*id].iter().cloned()).collect();
        let full = if self.blocking { Vec::with_capacity(pairs.len()) } else { Vec::new() };
        Box::new(PostStep { op: self, pairs, full, passed: 0 })
    }

    fn describe(&self) -> String {
        let blocking = if self.blocking { " blocking" } else { "" };
        format!(" value={} target={}{blocking}", self.value, self.target)
    }
}

/// Posts that a thread may make in a row before one that waits though there is room is woken. Fewer would be fairer, and cost more
/// switches; docs/performance.md has the figures.
const PASSED_BEFORE_ANOTHER: u32 = 32;

struct PostStep<'r> {
    op: &'r Post,
    pairs: Vec<Arc<SemPair>>,
    /// The blockers that a blocking post could not reach at once, by their places.
    full: Vec<usize>,
    /// Posts in a row that found room everywhere.
    passed: u32,
}

impl Step for PostStep<'_> {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let value = clip(self.op.value.draw(&mut cx.rng));
        cx.begin();
        if !self.op.blocking {
            self.pairs.iter().for_each(|pair| pair.low.add(value));
        } else if self.post_where_room_is(value).is_err() {
            return Err(Stop::over());
        }
        cx.end_fast(0)
    }
}

impl PostStep<'_> {
    /// Reaches the blockers that have room first, and only then waits for the others: while a poster waits for one, most of
    /// the rest make room too. Waiting for each in its turn, a post to ten blockers would sleep and wake ten times.
    fn post_where_room_is(&mut self, value: u32) -> Result<(), Stopped> {
        for (i, pair) in self.pairs.iter().enumerate() {
            if pair.high.try_take(value)? {
                pair.low.add(value);
            } else {
                self.full.push(i);
            }
        }
        if self.full.is_empty() {
            self.passed += 1;
            if self.passed == PASSED_BEFORE_ANOTHER {
                self.let_another_come();
            }
            return Ok(());
        }
        self.passed = 0;
        while let Some(i) = self.full.pop() {
            let pair = &self.pairs[i];
            pair.high.take(value)?;
            pair.low.add(value);
        }
        Ok(())
    }

    /// Wakes one of those who wait where room is, in the longest row. Where all processors are busy, the row that a blocker
    /// left behind when it made room gets shorter by one each time that a woken poster gets its turn, and those who run take
    /// the room meanwhile.
    #[cold]
    fn let_another_come(&mut self) {
        self.passed = 0;
        let longest = self.pairs.iter().map(|pair| (pair.high.held_back(), pair)).max_by_key(|(waiting, _)| *waiting);
        if let Some((1.., pair)) = longest {
            pair.high.wake_one();
        }
    }
}

/// Posts are counted in 31 bits; Filebench's in 15.
fn clip(value: u64) -> u32 {
    value.min(u64::from(i32::MAX.unsigned_abs())) as u32
}

#[derive(Clone, Debug)]
struct Sleep {
    id: usize,
}

impl Op for Sleep {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(SleepStep { latch: at.latches[self.id][at.ordinal].clone() })
    }

    fn describe(&self) -> String {
        String::new()
    }

    fn effects(&self) -> Effects {
        Effects { latch: true, ..Effects::default() }
    }
}

struct SleepStep {
    latch: Arc<Latch>,
}

impl Step for SleepStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        match self.latch.pass() {
            Ok(()) => cx.end(0),
            Err(_) => Err(Stop::over()),
        }
    }
}

#[derive(Clone, Debug)]
struct Wake {
    target: String,
    targets: Vec<usize>,
}

impl Op for Wake {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        let latches = self.targets.iter().flat_map(|id| at.latches[*id].iter().cloned()).collect();
        Box::new(WakeStep { latches })
    }

    fn describe(&self) -> String {
        format!(" target={}", self.target)
    }
}

struct WakeStep {
    latches: Vec<Arc<Latch>>,
}

impl Step for WakeStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        self.latches.iter().for_each(|latch| latch.raise());
        cx.end(0)
    }
}
