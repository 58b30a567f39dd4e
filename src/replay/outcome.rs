//! What came of a replay: the times of its calls beside the recorded ones, and what is not as it was.

use crate::plan::{NAMED, OWN, ReplayAction, ReplayPlan};
use crate::run::ReplayDone;
use crate::tree::{FileKind, FileNode};
use std::collections::BTreeMap;
use wml_os::{FileType, fd::Stat};
use wml_result::snapshot::Dist;
use wml_trace::{CallClass, KindId, PathId};

/// The calls of a class.
#[derive(Clone, Debug, Default)]
pub struct ReplayedClass {
    /// Their times as recorded, and here.
    pub recorded: Dist,
    pub replayed: Dist,
    pub differ: u64,
}

/// A call that ended otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherCall {
    pub call: &'static str,
    pub path: Vec<u8>,
    pub recorded: i64,
    pub replayed: i64,
}

/// A name that is not as it was at the end of the trace: its path, and how it is otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName {
    pub path: Vec<u8>,
    pub how: String,
}

/// What came of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayOutcome {
    pub command: Vec<String>,
    pub classes: BTreeMap<CallClass, ReplayedClass>,
    /// Of the trace, of which some are not replayed.
    pub calls: u64,
    pub replayed: u64,
    pub threads: u64,
    /// Nanoseconds.
    pub recorded_elapsed: u64,
    pub elapsed: u64,
    /// How much later than due calls began: the mean and the most, in nanoseconds. Only with times.
    pub late: Option<(u64, u64)>,
    pub not_replayed: BTreeMap<&'static str, u64>,
    pub as_plain: u64,
    /// Calls on files that no call of the trace opened, the first of them named.
    pub unopened: (Vec<OtherCall>, u64),
    /// Calls that found a name which nothing made, the first of them named.
    pub unexplained: (Vec<OtherCall>, u64),
    /// Calls that ended otherwise, the first of them named.
    pub others: Vec<OtherCall>,
    pub differ: u64,
    /// Names at the end, and those that are not as they were.
    pub names: u64,
    pub other_names: Vec<OtherName>,
    pub names_differ: u64,
    pub is_broken_off: bool,
}

impl ReplayOutcome {
    pub(crate) fn of(plan: &ReplayPlan, done: &ReplayDone, found: &[(Vec<u8>, Stat)]) -> Self {
        let mut own = Self {
            command: plan.header.command.clone(),
            calls: plan.calls,
            threads: plan.threads.iter().filter(|thread| !thread.ops.is_empty()).count() as u64,
            recorded_elapsed: plan.span,
            elapsed: done.elapsed,
            not_replayed: plan.not_replayed.clone(),
            as_plain: plan.as_plain,
            is_broken_off: done.is_broken_off,
            ..Self::default()
        };
        let mut others = Vec::new();
        let (mut late, mut most_late) = (0, 0);
        for (thread, made) in plan.threads.iter().zip(&done.threads) {
            for (op, duration) in thread.ops.iter().zip(&made.durations).take(made.done as usize) {
                if op.bits & OWN == 0 {
                    let class = own.classes.entry(op.kind.get().class).or_default();
                    class.recorded.record(op.duration.into());
                    class.replayed.record((*duration).into());
                    own.replayed += 1;
                }
            }
            own.differ += made.differ;
            for (class, differ) in &made.differ_by_class {
                own.classes.entry(*class).or_default().differ += differ;
            }
            others.extend(made.others.iter().map(|other| (other.at, &thread.ops[other.op as usize], other.result)));
            late += made.late.0;
            most_late = made.late.1.max(most_late);
        }
        others.sort_by_key(|(at, ..)| *at);
        let named = |path: PathId| plan.paths.path(path);
        own.others = others
            .iter()
            .take(NAMED)
            .map(|(_, op, result)| OtherCall {
                call: op.kind.get().name,
                path: named(op.path),
                recorded: if op.action == ReplayAction::Seek { op.y as i64 } else { op.expected.into() },
                replayed: *result,
            })
            .collect();
        own.late = done.is_timed.then(|| (late / own.replayed.max(1), most_late));
        let first = |(all, count): &(Vec<(KindId, PathId)>, u64)| {
            let one = |(kind, path): &(KindId, PathId)| OtherCall {
                call: kind.get().name,
                path: named(*path),
                recorded: 0,
                replayed: 0,
            };
            (all.iter().map(one).collect(), *count)
        };
        own.unopened = first(&plan.unopened);
        own.unexplained = first(&plan.unexplained);
        own.compare(plan, found);
        own
    }

    /// Compares what is there with what was at the end of the trace.
    fn compare(&mut self, plan: &ReplayPlan, found: &[(Vec<u8>, Stat)]) {
        let wanted = plan.tree.at_end();
        self.names = wanted.len() as u64;
        let (mut left, mut right) = (wanted.iter().peekable(), found.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => break,
            };
            let other = match order {
                std::cmp::Ordering::Less => left.next().map(|(path, _)| (path, "is missing".to_owned())),
                std::cmp::Ordering::Greater => right.next().map(|(path, _)| (path, "should not exist".to_owned())),
                std::cmp::Ordering::Equal => {
                    let node = left.next().map(|(_, node)| &plan.tree.nodes[*node as usize]);
                    let stat = right.next();
                    node.zip(stat).and_then(|(node, (path, stat))| Some((path, other_file(node, stat)?)))
                }
            };
            if let Some((path, how)) = other {
                self.names_differ += 1;
                if self.other_names.len() < NAMED {
                    self.other_names.push(OtherName { path: path.clone(), how });
                }
            }
        }
    }

    /// True if everything ended as it did when it was recorded.
    pub fn is_equal(&self) -> bool {
        self.differ == 0 && self.names_differ == 0 && self.unexplained.1 == 0 && !self.is_broken_off
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

/// A path in words.
pub(crate) fn path_text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
