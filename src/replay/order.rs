//! Which calls a call must wait for. A *resource* is what several threads use: a name, the size of a file, an open file and
//! its position. Calls that change it come in the order of the trace, and those that only use it between the changes before
//! and after. (The rules of ROOT: Weiss and others, "ROOT: Replaying Multithreaded Traces with Resource-Oriented
//! Ordering", SOSP 2013.)

use std::collections::HashMap;

/// A call, by its thread and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpPlace {
    pub(crate) thread: u32,
    pub(crate) op: u32,
}

/// Some calls, at most the last of each thread.
#[derive(Debug, Default)]
enum OpPlaces {
    #[default]
    None,
    One(OpPlace),
    Many(Vec<OpPlace>),
}

impl OpPlaces {
    fn as_slice(&self) -> &[OpPlace] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }

    fn add(&mut self, new: OpPlace) {
        match self {
            Self::None => *self = Self::One(new),
            Self::One(one) if one.thread == new.thread => *one = new,
            Self::One(one) => *self = Self::Many(vec![*one, new]),
            // A thread that goes on is mostly the one that came last.
            Self::Many(all) => match all.iter_mut().rev().find(|known| known.thread == new.thread) {
                Some(known) => *known = new,
                None => all.push(new),
            },
        }
    }
}

/// What was done with a resource.
#[derive(Debug, Default)]
struct Resource {
    /// The last change.
    change: Option<OpPlace>,
    /// The uses since.
    uses: OpPlaces,
}

/// A resource, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceId(u32);

impl ResourceId {
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// All resources, and what each thread has waited for already.
#[derive(Debug, Default)]
pub(crate) struct ReplayOrder {
    /// Only the order in each thread is kept.
    is_off: bool,
    resources: Vec<Resource>,
    /// By the thread that waits and the one that it waits for: the last call that was waited for.
    waited: HashMap<(u32, u32), u32>,
    /// What the call that is being planned waits for.
    pub(crate) awaited: Vec<OpPlace>,
    /// The call that is being planned is one that others may wait for.
    pub(crate) is_known: bool,
}

impl ReplayOrder {
    /// An order, or with `is_off` none between threads.
    pub(crate) fn new(is_off: bool) -> Self {
        Self { is_off, ..Self::default() }
    }

    pub(crate) fn add(&mut self) -> ResourceId {
        self.resources.push(Resource::default());
        ResourceId(self.resources.len() as u32 - 1)
    }

    /// The resource in this place, which is made if there is none.
    pub(crate) fn at(&mut self, place: &mut ResourceId) -> ResourceId {
        if *place == ResourceId::NONE {
            *place = self.add();
        }
        *place
    }

    /// Lets `me` wait for a call.
    pub(crate) fn wait(&mut self, me: OpPlace, other: OpPlace) {
        if self.is_off || me.thread == other.thread {
            return;
        }
        let known = self.waited.entry((me.thread, other.thread)).or_insert(0);
        // Stored is one more: 0 is for none.
        if *known <= other.op {
            *known = other.op + 1;
            match self.awaited.iter_mut().find(|known| known.thread == other.thread) {
                Some(known) => *known = other,
                None => self.awaited.push(other),
            }
        }
    }

    /// `me` uses a resource.
    pub(crate) fn uses(&mut self, me: OpPlace, id: ResourceId) {
        if self.is_off {
            return;
        }
        self.is_known = true;
        let change = self.resources[id.0 as usize].change;
        change.into_iter().for_each(|change| self.wait(me, change));
        self.resources[id.0 as usize].uses.add(me);
    }

    /// `me` changes a resource.
    pub(crate) fn changes(&mut self, me: OpPlace, id: ResourceId) {
        if self.is_off {
            return;
        }
        self.is_known = true;
        let resource = std::mem::take(&mut self.resources[id.0 as usize]);
        resource.change.into_iter().for_each(|change| self.wait(me, change));
        resource.uses.as_slice().iter().for_each(|other| self.wait(me, *other));
        self.resources[id.0 as usize].change = Some(me);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(thread: u32, op: u32) -> OpPlace {
        OpPlace { thread, op }
    }

    fn waits(order: &mut ReplayOrder, call: impl FnOnce(&mut ReplayOrder)) -> Vec<OpPlace> {
        call(order);
        std::mem::take(&mut order.awaited)
    }

    #[test]
    fn a_change_waits_for_all_uses_and_a_use_for_the_last_change() {
        let mut order = ReplayOrder::default();
        let file = order.add();
        assert_eq!(waits(&mut order, |order| order.changes(at(0, 0), file)), []);
        assert_eq!(waits(&mut order, |order| order.uses(at(1, 0), file)), [at(0, 0)]);
        assert_eq!(waits(&mut order, |order| order.uses(at(2, 0), file)), [at(0, 0)]);
        // It has waited for that.
        assert_eq!(waits(&mut order, |order| order.uses(at(1, 1), file)), []);
        assert_eq!(waits(&mut order, |order| order.changes(at(0, 1), file)), [at(1, 1), at(2, 0)]);
        assert_eq!(waits(&mut order, |order| order.changes(at(0, 2), file)), []);
        assert_eq!(waits(&mut order, |order| order.uses(at(2, 1), file)), [at(0, 2)]);
    }

    #[test]
    fn without_an_order_nothing_waits() {
        let mut order = ReplayOrder::new(true);
        let file = order.add();
        order.changes(at(0, 0), file);
        assert_eq!(waits(&mut order, |order| order.changes(at(1, 0), file)), []);
    }
}
