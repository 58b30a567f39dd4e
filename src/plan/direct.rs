//! Lists the flowops of a plan that do direct I/O, with their file sets and the multiples of their sizes and offsets.
//!
//! Deliberately absent: the alignment that file systems require.

use super::{Plan, PlanStep};
use crate::flowop::{Effects, Unit};
use crate::random::{self, Quantity};

/// Direct I/O of one flowop on one file set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectIo {
    /// Its number in the plan.
    pub flowop: usize,
    /// The number of the set.
    pub set: usize,
    /// Numbers of which its sizes and offsets are multiples, each with the reason for messages.
    pub units: Vec<(u64, String)>,
}

/// All direct I/O of a plan.
pub fn direct_io(plan: &Plan) -> Vec<DirectIo> {
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
        for (at, (local, effects)) in ops.iter().enumerate() {
            if effects.units.is_empty() || !is_direct(&ops, at) {
                continue;
            }
            let flowop = thread.first + local;
            for set in &plan.flowops[flowop].sets {
                let size = &plan.filesets[*set].size;
                let units = effects.units.iter().map(|unit| unit_text(unit, size)).collect();
                found.push(DirectIo { flowop, set: *set, units });
            }
        }
    }
    found
}

/// Whether a flowop works on a file that was opened for direct I/O: by itself, or, if it names no file set, by the
/// nearest flowop before it in the loop that opens its slot.
fn is_direct(ops: &[(usize, Effects)], at: usize) -> bool {
    let (_, own) = &ops[at];
    if !own.sets.is_empty() || own.max_fd == 0 {
        return own.direct;
    }
    let before = (1..ops.len()).map(|back| &ops[(at + ops.len() - back) % ops.len()].1);
    let mut openers = before.filter(|other| !other.sets.is_empty() && other.max_fd == own.max_fd);
    openers.next().is_some_and(|opener| opener.direct)
}

fn unit_text(unit: &Unit, size: &Quantity) -> (u64, String) {
    match unit {
        Unit::Attribute(name, value) => (granule(value), format!("`{name}` is {value}")),
        Unit::FileSize => (granule(size), format!("the size of its files is {size}")),
        Unit::Byte => (1, "its sizes are any number of bytes".to_owned()),
    }
}

/// Returns the greatest common divisor of all values of a quantity; of a random one, that of a thousand draws.
fn granule(value: &Quantity) -> u64 {
    const DRAWS: usize = 1000;
    match value {
        Quantity::Const(n) => *n,
        Quantity::Random(_) => {
            let mut rng = random::stream(0, &[0xd10]);
            (0..DRAWS).fold(0, |all, _| gcd(all, value.draw(&mut rng)))
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
