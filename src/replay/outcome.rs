//! What came of a replay: the times of its calls beside the recorded ones, and what is not as it was.

use crate::plan::{NAMED, OWN, ReplayAction, ReplayPlan, SIGN_ONLY};
use crate::run::ReplayDone;
use crate::tree::{FileKind, FileNode};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use wml_os::{FileType, errno_name, fd::Stat};
use wml_result::snapshot::{Dist, Snapshot};
use wml_result::{FlowopCounter, NEVER_OPENED, NOTHING_MADE, ReplayDifference, ReplayResult};
use wml_trace::{CallClass, KindId, PathId};

/// The calls of a class.
#[derive(Clone, Debug, Default)]
pub struct ReplayedClass {
    pub snapshot: Snapshot,
    /// Their times when they were recorded.
    pub recorded: Dist,
}

/// What came of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOutcome {
    pub classes: BTreeMap<CallClass, ReplayedClass>,
    pub is_broken_off: bool,
    pub result: ReplayResult,
}

/// A result: a number, or the name of an error.
fn result_text(value: i64) -> String {
    match value {
        error @ -4095..=-1 => errno_name(-error as i32),
        value => value.to_string(),
    }
}

fn difference(call: &str, path: &[u8], how: impl Into<String>) -> ReplayDifference {
    let path = String::from_utf8_lossy(path).into_owned();
    ReplayDifference { call: call.to_owned(), path, how: how.into() }
}

impl ReplayOutcome {
    pub(crate) fn of(plan: &ReplayPlan, done: &ReplayDone, found: &[(Vec<u8>, Stat)]) -> Self {
        let named =
            |counts: &BTreeMap<&'static str, u64>| counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let mut result = ReplayResult {
            command: plan.header.command.clone(),
            calls: plan.calls,
            recorded_seconds: plan.span as f64 / 1e9,
            not_replayed: named(&plan.not_replayed),
            plain_calls: plan.as_plain,
            unexplained: plan.unexplained.1,
            unopened: plan.unopened.1,
            recorded_runnable_seconds: plan.runnable.map(|ns| ns as f64 / 1e9),
            ..ReplayResult::default()
        };
        let mut classes: BTreeMap<CallClass, ReplayedClass> = BTreeMap::new();
        let mut others = Vec::new();
        for (thread, made) in plan.threads.iter().zip(&done.threads) {
            for (n, (op, duration)) in thread.ops.iter().zip(&made.durations).take(made.done as usize).enumerate() {
                if op.bits & OWN != 0 {
                    continue;
                }
                if op.action.has_own_values() {
                    *result.own_values.entry(op.kind.get().name.to_owned()).or_default() += 1;
                }
                let class = op.kind.get().class;
                let ReplayedClass { snapshot, recorded } = classes.entry(class).or_default();
                recorded.record(op.duration);
                snapshot.latency.record(*duration);
                snapshot.ops += 1;
                if let Some(late) = made.lateness.get(n) {
                    snapshot.lateness.get_or_insert_default().record(*late);
                    snapshot.response.get_or_insert_default().record(late + duration);
                }
            }
            for (kind, bytes) in made.moved.iter().enumerate() {
                let class = KindId(kind as u16).get().class;
                let Some(ReplayedClass { snapshot, .. }) = classes.get_mut(&class) else { continue };
                match class {
                    CallClass::List => snapshot[FlowopCounter::ListedBytes] += bytes,
                    class if class.moves_data() => snapshot.bytes += bytes,
                    _ => {}
                }
            }
            for (errno, failed) in made.failed.iter().enumerate().filter(|(_, failed)| **failed > 0) {
                *result.failed_alike.entry(errno_name(errno as i32)).or_default() += failed;
            }
            for (kind, differ) in made.differ.iter().enumerate().filter(|(_, differ)| **differ > 0) {
                *result.calls_differ.entry(KindId(kind as u16).get().name.to_owned()).or_default() += differ;
            }
            others.extend(made.others.iter().map(|other| (other.at, &thread.ops[other.op as usize], other.result)));
        }
        others.sort_by_key(|(at, ..)| *at);
        result.differences.extend(others.iter().take(NAMED).map(|(_, op, result)| {
            let recorded = if op.action == ReplayAction::Seek { op.y as i64 } else { op.expected.into() };
            // That of an open is a descriptor.
            let text = |value: i64| match op.bits & SIGN_ONLY != 0 && value >= 0 {
                true => "success".to_owned(),
                false => result_text(value),
            };
            let how = format!("{} instead of {}", text(*result), text(recorded));
            difference(op.kind.get().name, &plan.paths.path(op.path), how)
        }));
        // Not all calls of a replay that was broken off were made.
        if !done.is_broken_off {
            compare(&mut result, plan, found);
        }
        let mut first = |all: &[(KindId, PathId)], how: &str| {
            let one = |(kind, path): &(KindId, PathId)| difference(kind.get().name, &plan.paths.path(*path), how);
            result.differences.extend(all.iter().map(one));
        };
        first(&plan.unexplained.0, NOTHING_MADE);
        first(&plan.unopened.0, NEVER_OPENED);
        result.replayed = classes.values().map(|class| class.snapshot.ops).sum();
        let seconds =
            |of: fn(&ReplayedClass) -> &Dist| classes.values().map(|class| of(class).sum).sum::<u64>() as f64 / 1e9;
        result.recorded_call_seconds = seconds(|class| &class.recorded);
        result.call_seconds = seconds(|class| &class.snapshot.latency);
        Self { classes, is_broken_off: done.is_broken_off, result }
    }
}

/// Compares what is there with what was at the end of the trace.
fn compare(result: &mut ReplayResult, plan: &ReplayPlan, found: &[(Vec<u8>, Stat)]) {
    let wanted = plan.tree.at_end();
    result.names = wanted.len() as u64;
    let (mut left, mut right) = (wanted.iter().peekable(), found.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let other = match order {
            Ordering::Less => left.next().map(|(path, _)| (path, "is missing".to_owned())),
            Ordering::Greater => right.next().map(|(path, _)| (path, "should not exist".to_owned())),
            Ordering::Equal => {
                let node = left.next().map(|(_, node)| &plan.tree.nodes[*node as usize]);
                let stat = right.next();
                node.zip(stat).and_then(|(node, (path, stat))| Some((path, other_file(node, stat)?)))
            }
        };
        if let Some((path, how)) = other {
            result.names_differ += 1;
            if result.names_differ <= NAMED as u64 {
                result.differences.push(difference("", path, how));
            }
        }
    }
}

/// How a file is not as it should be.
fn other_file(node: &FileNode, stat: &Stat) -> Option<String> {
    let (kind, name) = match node.kind {
        FileKind::File | FileKind::Unknown => (FileType::RegularFile, "a file"),
        FileKind::Directory => (FileType::Directory, "a directory"),
        FileKind::Link => (FileType::Symlink, "a symbolic link"),
        FileKind::Pipe => (FileType::Fifo, "a pipe"),
    };
    if stat.kind != kind {
        return Some(format!("should be {name}"));
    }
    let has_size = matches!(kind, FileType::RegularFile | FileType::Symlink);
    if has_size && stat.size != node.size && (kind == FileType::RegularFile || node.is_size_known) {
        return Some(format!("has {} bytes instead of {}", stat.size, node.size));
    }
    let has_links = kind == FileType::RegularFile && stat.links != u64::from(node.names);
    has_links.then(|| format!("has {} names instead of {}", stat.links, node.names))
}
