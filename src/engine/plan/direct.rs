//! Lists the flowops of a plan that do direct I/O, with their file sets and the multiples of their sizes and offsets.
//!
//! Deliberately absent: the alignment that file systems require.

use super::{Plan, PlanStep};
use crate::flowop::{self, Effects, Unit};
use crate::random::{self, Quantity};
use std::collections::HashMap;
use wml_language::spec::Role;

/// Direct I/O of one flowop on one file set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectIo {
    /// Its number in the plan.
    pub flowop: usize,
    pub set: usize,
    /// Numbers of which its sizes and offsets are multiples, each with the reason for messages.
    pub units: Vec<(u64, String)>,
}

/// All direct I/O of a plan.
pub fn direct_io(plan: &Plan) -> Vec<DirectIo> {
    let table = flowop::spec_table();
    let mut found = Vec::new();
    for (_, thread) in plan.threads() {
        let ops: Vec<(usize, Effects)> = thread
            .steps
            .iter()
            .filter_map(|step| match step {
                PlanStep::Op { local, op, .. } => Some((*local, op.effects())),
                _ => None,
            })
            .collect();
        let access = |(local, effects): &(usize, Effects)| {
            let spec = table.flowop(plan.flowops[thread.first + local].kind);
            SlotAccess::of(effects, spec.map_or(&[], |spec| spec.roles))
        };
        let is_direct = direct_steps(&ops.iter().map(access).collect::<Vec<_>>());
        for ((local, effects), _) in ops.iter().zip(is_direct).filter(|(_, is_direct)| *is_direct) {
            let flowop = thread.first + local;
            for set in plan.flowops[flowop].sets.iter().filter(|_| !effects.units.is_empty()) {
                let spec = &plan.filesets[*set];
                // The sizes of a table are not examined.
                let size = if spec.sizes.is_none() { &spec.size } else { &Quantity::Const(0) };
                let units = effects.units.iter().map(|unit| unit_text(unit, size)).collect();
                found.push(DirectIo { flowop, set: *set, units });
            }
        }
    }
    found
}

/// What a flowop does with its slot.
#[derive(Clone, Copy, Debug)]
struct SlotAccess {
    /// The slot; without a number, each file set has its own.
    slot: (usize, Option<usize>),
    kind: SlotAccessKind,
    /// Whether it opens files for direct I/O.
    direct: bool,
}

/// The kinds of [`SlotAccess`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotAccessKind {
    /// It opens a file.
    Open,
    /// It closes the file.
    Close,
    /// It uses the open file, or else opens one.
    UseOrOpen,
    /// It uses the open file, or none.
    Use,
    /// It uses one slot after another, each of which may be closed.
    Rotate,
}

impl SlotAccess {
    fn of(effects: &Effects, roles: &[Role]) -> Self {
        let kind = match roles {
            _ if effects.rotating > 0 => SlotAccessKind::Rotate,
            _ if roles.contains(&Role::OpensSlot) => SlotAccessKind::Open,
            _ if roles.contains(&Role::ClosesSlot) => SlotAccessKind::Close,
            _ if roles.contains(&Role::UsesSlot) && !effects.sets.is_empty() => SlotAccessKind::UseOrOpen,
            _ => SlotAccessKind::Use,
        };
        let set = effects.sets.first().copied().filter(|_| effects.slot == 0);
        Self { slot: (effects.slot, set), kind, direct: effects.direct }
    }
}

/// Returns for each flowop of a thread's loop whether it works on a file that was opened for direct I/O. Whatever
/// flowops do to the file in between, such as `rename`, it stays open as it is.
fn direct_steps(accesses: &[SlotAccess]) -> Vec<bool> {
    // For each open slot, whether its file was opened for direct I/O.
    let mut open: HashMap<(usize, Option<usize>), bool> = HashMap::new();
    let mut found = vec![false; accesses.len()];
    // Two iterations of the loop: a slot may stay open from one to the next.
    for (at, access) in accesses.iter().enumerate().chain(accesses.iter().enumerate()) {
        found[at] |= match access.kind {
            SlotAccessKind::Open => *open.entry(access.slot).insert_entry(access.direct).get(),
            // It has no I/O of its own.
            SlotAccessKind::Close => {
                open.retain(|slot, _| *slot != access.slot && (slot.0 > 0 || access.slot != (0, None)));
                false
            }
            SlotAccessKind::UseOrOpen => *open.entry(access.slot).or_insert(access.direct),
            SlotAccessKind::Use => open.get(&access.slot).copied().unwrap_or_default(),
            SlotAccessKind::Rotate => access.direct,
        };
    }
    found
}

fn unit_text(unit: &Unit, size: &Quantity) -> (u64, String) {
    match unit {
        Unit::Attribute(name, value) => (granule(value), format!("`{name}` is {value}")),
        Unit::FileSize => (granule(size), of_files(size)),
        Unit::Chunk(iosize) => match (common(iosize, size), granule(iosize)) {
            // Without a size of its own, a file is written in calls of `iosize`.
            (unit, whole) if unit == whole || unit == 0 => (whole, format!("`iosize` is {iosize}")),
            (unit, _) => (unit, of_files(size)),
        },
        Unit::Byte => (1, "its sizes are any number of bytes".to_owned()),
    }
}

fn of_files(size: &Quantity) -> String {
    format!("the size of its files is {size}")
}

/// The number of values of a random quantity that are drawn.
const DRAWS: usize = 1000;

/// Returns the greatest common divisor of all values of a quantity; of a random one, that of a thousand draws.
fn granule(value: &Quantity) -> u64 {
    common(value, &Quantity::Const(u64::MAX))
}

/// Returns the greatest common divisor of the values of a quantity, each at most as large as a value of `limit`.
fn common(value: &Quantity, limit: &Quantity) -> u64 {
    let mut rng = random::stream(0, &[0xd10]);
    let are_constant = matches!((value, limit), (Quantity::Const(_), Quantity::Const(_)));
    let draws = if are_constant { 1 } else { DRAWS };
    (0..draws).fold(0, |all, _| gcd(all, value.draw(&mut rng).min(limit.draw(&mut rng))))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::SlotAccessKind::{Close, Open, Rotate, Use, UseOrOpen};
    use super::{SlotAccess, SlotAccessKind, direct_steps};

    /// The directness of steps that are given by slot, kind, and whether they open files for direct I/O.
    fn directness(steps: &[(usize, SlotAccessKind, bool)]) -> Vec<bool> {
        let access = |(slot, kind, direct): &(usize, SlotAccessKind, bool)| SlotAccess {
            slot: (*slot, (*slot == 0).then_some(7)),
            kind: *kind,
            direct: *direct,
        };
        direct_steps(&steps.iter().map(access).collect::<Vec<_>>())
    }

    #[test]
    fn the_open_of_a_slot_decides() {
        let open = [(1, Open, true), (1, Use, false), (1, UseOrOpen, false), (1, Close, false), (1, UseOrOpen, false)];
        // The last one opens the slot itself, and closes nothing: in the next iteration the slot is open.
        assert_eq!(directness(&open), [true, true, true, false, false]);
        let without_number = [(0, Open, true), (0, Use, false), (0, Close, false)];
        assert_eq!(directness(&without_number), [true, true, false]);
        let other_slot = [(1, Open, true), (2, Open, false), (2, Use, false), (1, Close, false), (2, Close, false)];
        assert_eq!(directness(&other_slot), [true, false, false, false, false]);
    }

    #[test]
    fn the_first_use_opens_a_closed_slot() {
        assert_eq!(directness(&[(1, UseOrOpen, false), (1, UseOrOpen, true)]), [false, false]);
        assert_eq!(directness(&[(1, UseOrOpen, true), (1, Use, false)]), [true, true]);
        // The slot stays open from one iteration to the next.
        assert_eq!(directness(&[(1, Use, false), (1, UseOrOpen, true)]), [true, true]);
        assert_eq!(directness(&[(1, Rotate, true), (1, Rotate, false)]), [true, false]);
    }
}
