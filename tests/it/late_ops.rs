//! Tests the operations that are in flight at the end of a run: each is counted once, wherever it is when the counters
//! are read, and its age is that at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use wml::flowop::{Effects, stateless};
use wml::os::Clock;
use wml::result::FlowopCounter;
use wml::runtime::{self, Sample};
use wml::session::{Session, SilentFront};

use crate::support::{null, processes};

const PATIENCE: Duration = Duration::from_mins(1);

/// An operation that lasts until it is released.
#[derive(Default)]
struct Held {
    begun: AtomicU32,
    released: AtomicBool,
}

/// The late operations that have been counted, and those in flight.
fn late(sample: &Sample) -> (u64, u64) {
    let counted = sample.flowops.iter().map(|flowop| flowop[FlowopCounter::LateOps]).sum();
    (counted, sample.unfinished.iter().map(|thread| thread.in_flight).sum())
}

/// What returns between the reading of the counters and the report is in flight, and what has returned before is
/// counted.
#[test]
fn an_operation_that_returns_during_the_report_is_counted_once() {
    let script = "define process name=p { thread name=t,instances=2 { flowop hog name=h,value=1 } }\n";
    let mut session = Session::new(null(1000), Arc::default());
    let mut front = SilentFront::default();
    session.read("x.wml", script, &mut front).unwrap();
    let mut plan = session.plan(&mut front).unwrap();
    let held = Arc::new(Held::default());
    let wml::plan::PlanStep::Op { op, .. } = &mut plan.processes[0].threads[0].steps[0] else { panic!("no flowop") };
    let own = held.clone();
    *op = stateless(String::new(), Effects::default(), move |cx| {
        cx.begin();
        own.begun.fetch_add(1, SeqCst);
        while !own.released.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        cx.end(0)
    });
    let mut running = runtime::start(Arc::new(plan), &[], processes()).unwrap();
    running.wait_until_ready().unwrap();
    assert_eq!(late(&running.measured_at_end()), (0, 0), "nothing has begun");
    running.open(Some(PATIENCE));
    while held.begun.load(SeqCst) < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (clock, begun) = (Clock::get(), Clock::get().raw());
    std::thread::sleep(Duration::from_millis(50));
    let end = running.status().tick;
    running.stop(end);
    let sample = running.measured_at_end();
    assert_eq!(late(&sample), (0, 2));
    assert!(sample.unfinished.iter().all(|thread| thread.last_progress == Some(running.from())));
    held.released.store(true, SeqCst);
    assert_eq!((running.join_within(PATIENCE), running.stragglers()), (0, Vec::new()));
    let returned = running.measured_at_end();
    assert_eq!(late(&returned), (2, 0));
    assert_eq!(late(&sample), (0, 2), "however late the report is made");
    // Not the time from the end of the run to that of the operation.
    let oldest = returned.flowops.iter().map(|flowop| flowop.late_oldest_ns).max().unwrap();
    let ages = clock.ns(begun, end)..=clock.ns(running.from(), end);
    assert!(ages.contains(&oldest), "{oldest} of {ages:?}");
    assert!(running.join(PATIENCE));
}
