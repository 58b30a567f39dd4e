//! Synchronisation between threads: `semblock`, `sempost`, `block`, `wakeup`.
//!
//! Every instance of a `semblock` at run time has two semaphores. A post goes to *every* instance of every flowop with
//! the target's name: with ten writers each post is delivered ten times, and a blocking post waits for the slowest of
//! them. See [`crate::sync::Semaphore`] for the protocol.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Op, SemPair, Step, StepInit, entry, stateful};
use crate::exec::{OpCx, Stop};
use crate::random::Quantity;
use crate::sync::{Latch, Stopped};
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Class, Origin, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("semblock", SemBlockOp::build)
        .class(Class::Sync)
        .origin(Origin::Both)
        .uses(&["value", "highwater"])
        .roles(&[Role::WaitsFor { kind: "sempost", verb: "posts to" }])
        .doc(
            "waits for `value` posts of a `sempost`, and takes them; a blocking `sempost` can be `highwater` \
             posts ahead",
        )
        .example("flowop sempost name=post,value=1,target=wait\nflowop semblock name=wait,value=1,highwater=1"),
    entry("sempost", Post::build)
        .class(Class::Sync)
        .origin(Origin::Both)
        .uses(&["value", "target", "blocking"])
        .doc(
            "adds `value` posts to every instance of the `semblock` `target`; with `blocking` waits while one of \
             them is `highwater` posts behind",
        )
        .example("flowop sempost name=post,value=1,target=wait\nflowop semblock name=wait,value=1,highwater=1"),
    entry("block", |args| Ok(block(args.id)))
        .class(Class::Sync)
        .origin(Origin::Both)
        .roles(&[Role::WaitsFor { kind: "wakeup", verb: "wakes" }])
        .doc("waits for a `wakeup`; a wake-up before the wait is kept, but only one")
        .example("flowop wakeup name=wake,target=sleep\nflowop block name=sleep"),
    entry("wakeup", wake)
        .class(Class::Sync)
        .origin(Origin::Both)
        .uses(&["target"])
        .doc("wakes up every instance of the `block` `target`")
        .example("flowop wakeup name=wake,target=sleep\nflowop block name=sleep"),
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
            targets: targets_of_type(args, "semblock")?,
        }))
    }
}

/// Returns the flowops of `target=`. `Err` when there is none or one is not of the type `kind`.
fn targets_of_type(args: &Args<'_>, kind: &str) -> Result<Vec<usize>, Diagnostic> {
    let targets = args.targets()?;
    if targets.is_empty() {
        let message = format!("flowop `{}` of type `{}` has no `target=`", args.name, args.spec.name);
        return Err(Diagnostic::error(Code::MissingAttribute, args.span, message)
            .help(format!("add `target=…`, the name of a `{kind}`")));
    }
    if let Some(other) = targets.iter().find(|t| t.kind != kind) {
        let message = format!("the target of `{}` is a `{}`", args.name, other.kind);
        return Err(Diagnostic::error(Code::UnknownTarget, args.span_of("target"), message)
            .help(format!("the target of a `{}` must be a `{kind}`", args.spec.name)));
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
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(SemBlockStep { value: self.value.clone(), pair: init.semaphores[self.id][init.ordinal].clone() })
    }

    fn describe(&self) -> String {
        format!(" value={} highwater={}", self.value, self.highwater)
    }

    fn effects(&self) -> Effects {
        Effects { highwater: Some(self.highwater), ..Effects::default() }
    }
}

struct SemBlockStep {
    value: Quantity,
    pair: Arc<SemPair>,
}

impl Step for SemBlockStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let value = clamp_count(self.value.draw(&mut cx.rng));
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
    fn instantiate<'r>(&'r self, init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        let pairs: Vec<_> = self.targets.iter().flat_map(|id| init.semaphores[*id].iter().cloned()).collect();
        let blocked = if self.blocking { Vec::with_capacity(pairs.len()) } else { Vec::new() };
        Box::new(PostStep { op: self, pairs, blocked, posts_without_wait: 0 })
    }

    fn describe(&self) -> String {
        let blocking = if self.blocking { " blocking" } else { "" };
        format!(" value={} target={}{blocking}", self.value, self.target)
    }

    fn effects(&self) -> Effects {
        Effects { wakes: self.targets.clone(), ..Effects::default() }
    }
}

/// Number of posts in a row that a thread makes without waiting before it wakes another poster. A smaller number would
/// be fairer but cost more context switches. With 32 the longest wait of a poster is about 0.7 s with 200 threads and 4
/// s with 2,000, and a post costs 0.030 and 0.049 switches. Without this wake-up it costs 0.009 and 0.035, but 938 of
/// 2,000 posters waited to the end of a run of 8 s.
const POSTS_BEFORE_WAKE: u32 = 32;

struct PostStep<'r> {
    op: &'r Post,
    pairs: Vec<Arc<SemPair>>,
    /// Indices of the targets that a blocking post has still to wait for. Allocated once, so that a post allocates
    /// nothing.
    blocked: Vec<usize>,
    /// Number of posts in a row that had to wait for no target.
    posts_without_wait: u32,
}

impl Step for PostStep<'_> {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let value = clamp_count(self.op.value.draw(&mut cx.rng));
        cx.begin();
        if !self.op.blocking {
            self.pairs.iter().for_each(|pair| pair.low.add(value));
        } else if self.post_blocking(value).is_err() {
            return Err(Stop::over());
        }
        cx.end_fast(0)
    }
}

impl PostStep<'_> {
    /// Posts to the targets that are not at their high-water mark, then waits for the others. While the thread waits
    /// for one target, most of the others catch up too; if it waited for each in order, a post to ten targets would
    /// sleep and wake up ten times.
    fn post_blocking(&mut self, value: u32) -> Result<(), Stopped> {
        for (i, pair) in self.pairs.iter().enumerate() {
            if pair.high.try_take(value)? {
                pair.low.add(value);
            } else {
                self.blocked.push(i);
            }
        }
        if self.blocked.is_empty() {
            self.posts_without_wait += 1;
            if self.posts_without_wait == POSTS_BEFORE_WAKE {
                self.wake_one_poster();
            }
            return Ok(());
        }
        self.posts_without_wait = 0;
        while let Some(i) = self.blocked.pop() {
            let pair = &self.pairs[i];
            pair.high.take(value)?;
            pair.low.add(value);
        }
        Ok(())
    }

    /// Wakes one poster that waits for a target although that target can take posts again, of the target with the most
    /// such posters.
    ///
    /// If all processors are busy, these queues shrink by only one poster each time that a woken one runs, while
    /// running posters use up the posts that the target can take. Without this wake-up, posters at the end of a queue
    /// can wait to the end of the run.
    #[cold]
    fn wake_one_poster(&mut self) {
        self.posts_without_wait = 0;
        let longest_queue =
            self.pairs.iter().map(|pair| (pair.high.held_back(), pair)).max_by_key(|(waiting, _)| *waiting);
        if let Some((1.., pair)) = longest_queue {
            pair.high.wake_one();
        }
    }
}

/// Limits a number of posts to the 31 bits of a semaphore's counter. Filebench has 15 bits.
fn clamp_count(value: u64) -> u32 {
    value.min(u64::from(i32::MAX.unsigned_abs())) as u32
}

fn block(id: usize) -> Arc<dyn Op> {
    let latch = move |init: &StepInit<'_>| init.latches[id][init.ordinal].clone();
    stateful(String::new(), Effects { latch: true, ..Effects::default() }, latch, |latch, cx| {
        cx.begin();
        match latch.pass() {
            Ok(()) => cx.end(0),
            Err(_) => Err(Stop::over()),
        }
    })
}

fn wake(args: &Args<'_>) -> BuiltOp {
    let targets = targets_of_type(args, "block")?;
    let described = format!(" target={}", args.text("target").unwrap_or_default());
    let effects = Effects { wakes: targets.clone(), ..Effects::default() };
    let latches = move |init: &StepInit<'_>| -> Vec<Arc<Latch>> {
        targets.iter().flat_map(|id| init.latches[*id].iter().cloned()).collect()
    };
    Ok(stateful(described, effects, latches, |latches, cx| {
        cx.begin();
        latches.iter().for_each(|latch| latch.raise());
        cx.end(0)
    }))
}
