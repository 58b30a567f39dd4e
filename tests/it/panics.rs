//! Tests that a panic in a thread of the program ends the run with a message that names the place, and blocks no other
//! thread.

use std::sync::Arc;
use std::time::Duration;

use wml::exec::{OpCx, Stop};
use wml::flowop::{Op, Step, StepInit};
use wml::runtime::{self, FaultKind};
use wml::session::{Session, SilentFront};

use crate::support::{null, processes};

/// An operation that panics at some call, or when it is made for a thread.
#[derive(Debug)]
struct Broken {
    at_once: bool,
}

struct BrokenStep(u32);

impl Op for Broken {
    fn instantiate<'r>(&'r self, _: &StepInit<'_>) -> Box<dyn Step + 'r> {
        assert!(!self.at_once, "made wrong");
        Box::new(BrokenStep(0))
    }

    fn describe(&self) -> String {
        String::new()
    }
}

impl Step for BrokenStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        self.0 += 1;
        assert!(self.0 < 100, "done wrong");
        cx.begin();
        cx.end(0)
    }
}

#[test]
fn a_panic_in_a_thread_fails_the_run_and_names_it() {
    // The last of the threads has the broken step; the others wait for what never comes.
    let script = "define process name=p,instances=2 {\n\
        thread name=waits,instances=2 { flowop block name=b }\n\
        thread name=breaks { flowop hog name=h,value=1 }\n}\n";
    for at_once in [false, true] {
        let mut session = Session::new(null(1000), Arc::default());
        session.read("x.wml", script, &mut SilentFront::default()).unwrap();
        let mut plan = session.plan(&mut SilentFront::default()).unwrap();
        let thread = plan.processes[0].threads.iter_mut().find(|thread| thread.name == "breaks").unwrap();
        let wml::plan::PlanStep::Op { op, .. } = &mut thread.steps[0] else { panic!("no flowop") };
        *op = Arc::new(Broken { at_once });
        let mut running = runtime::start(Arc::new(plan), &[], processes()).unwrap();
        let ended = match running.wait_until_ready() {
            Ok(()) => {
                running.open(Some(Duration::from_mins(1)));
                running.wait(Some(Duration::from_mins(1)), Duration::from_secs(1), &mut |_| true).ended
            }
            Err(ended) => ended,
        };
        running.stop(0);
        let panic = running.panic();
        assert!(panic.is_some(), "the run ended by {ended:?}");
        let fault = panic.unwrap();
        assert_eq!(fault.kind, FaultKind::Panic);
        for word in ["thread `breaks`", "process `p`", if at_once { "made wrong" } else { "done wrong" }] {
            assert!(fault.what.contains(word), "{}", fault.what);
        }
        assert!(running.join(Duration::from_mins(1)), "no thread is left behind");
    }
}

/// No name makes the start of a thread panic.
#[test]
fn a_zero_byte_in_a_name_blocks_no_thread() {
    let script = "define process name=\"p\0q\" { thread name=\"t\0u\",instances=2 { flowop hog name=h,value=1 } }\n";
    let call = crate::cmd::Wml::new().file("x.wml", script).args(["x.wml", "--engine", "null", "--runtime", "0.2"]);
    let output = call.run();
    assert!([0, 2].contains(&output.code()), "{}", output.shown());
    assert!(!output.stderr.contains("panicked"), "{}", output.shown());
}

/// Steps that do nothing ask for the end, too.
#[test]
fn steps_without_a_rate_or_a_clock_end_with_the_run() {
    for flowops in [
        "flowop eventlimit name=e,iters=1t",
        "flowop iopslimit name=e,iters=1t",
        "flowop opslimit name=e,iters=1t\nflowop bwlimit name=f,iters=1t",
        "flowop hog name=h,value=1t",
        "flowop hog name=h,value=0,iters=1t",
        "flowop wakeup name=w,target=b,iters=1t\nflowop block name=b,iters=0",
    ] {
        let script = format!("# dialect: fsl\ndefine process name=p {{ thread name=t {{\n{flowops}\n}} }}\n");
        let call =
            crate::cmd::Wml::new().file("x.wml", &script).args(["x.wml", "--engine", "null", "--runtime", "0.2"]);
        let output = call.run();
        assert!(output.code() < 2 && !output.stderr.contains("left behind"), "{flowops}: {}", output.shown());
    }
}
