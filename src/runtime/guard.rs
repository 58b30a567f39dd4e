//! A run leaves room on its file systems: as long as processes live, a thread of its own looks at what is free.
//!
//! It ends the run before less is free than must stay so, whatever the run is at: warming up, being measured, or between two
//! commands that steer it. Deliberately absent: how much must stay free, which the file sets know.

use super::shared::{Fault, FaultKind, Shared};
use crate::disk::space::SpaceWatch;
use crate::util::size;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

/// Small: it makes two calls and formats a line.
const STACK: usize = 64 << 10;

/// Starts it, if something is written. None also where no thread can be had: a run is not lost by that.
pub(super) fn start(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    if !shared.options.engine.real() || !shared.plan.writes() {
        return None;
    }
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("space".to_owned()).stack_size(STACK).spawn(move || look(&shared)).ok()
}

fn look(shared: &Shared) {
    // Whoever asks a file system may wait for it for ever: nobody else does that here, and since when is seen from outside.
    let asks = |now: u64| shared.asked_for_room.store(now, Relaxed);
    asks(shared.clock.raw());
    let watch = SpaceWatch::new(shared.views.iter().map(|view| view.set.spec.root()));
    loop {
        asks(shared.clock.raw());
        let room = watch.look();
        asks(0);
        if let Some(low) = room.low {
            let (free, floor) = (size::format(low.free), size::format(low.floor));
            shared.fail(Fault::plain(
                FaultKind::LowSpace,
                format!("{} has {free} left, and {floor} are to stay free", low.path.display()),
                "free some room, make the file sets smaller, or run for a shorter time",
            ));
            return;
        }
        let next = shared.clock.raw().saturating_add(shared.clock.ticks(room.wait.as_nanos() as u64));
        if shared.gate.sleep_until(shared.clock, next) {
            return;
        }
    }
}
