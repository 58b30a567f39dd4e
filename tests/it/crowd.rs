//! Tests that the controlling thread gets processor time while hundreds of threads are busy.

use crate::cmd::{Wml, count, number};
use crate::undisturbed::undisturbed;

/// The measured time is the time between `stats clear` and `stats snap`. Without priority, the controller would wait about
/// 0.6 s on two processors until each of the four hundred threads has used its time slice.
#[test]
fn the_controller_is_scheduled_before_hundreds_of_busy_threads() {
    undisturbed(|| {
        let script = "# dialect: fsl\n\
        define process name=p,instances=2 { thread name=t,instances=200,memsize=4k { flowop hog name=h,value=1000 } }\n\
        create processes\nsleep 0.2\nstats clear\nsleep 0.5\nstats snap\nshutdown processes\n";
        // Busy threads leave no processor time to other tests.
        let call = Wml::new().alone().file("x.wml", script).args(["x.wml", "--engine", "null"]).result();
        let run = call.run().exits(0).only_run();
        let seconds = number(&run, &["measured_seconds"]);
        assert!((0.5..0.9).contains(&seconds), "{seconds} s were measured");
        assert!(count(&run["flowops"][0], "ops") > 1000, "{}", run["flowops"][0]);
    });
}
