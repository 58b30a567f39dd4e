//! Many threads: who steers the run gets its turn all the same.

use crate::cmd::{Wml, count, number};
use crate::undisturbed::undisturbed;

/// What lies between `stats clear` and `stats snap` is what was asked for, and no turn of a thousand threads.
#[test]
fn a_second_of_a_thousand_live_threads_is_about_a_second() {
    undisturbed(|| {
        let script = "# dialect: fsl\n\
        define process name=p,instances=2 { thread name=t,instances=500,memsize=4k { flowop hog name=h,value=1000 } }\n\
        create processes\nsleep 1\nstats clear\nsleep 1\nstats snap\nshutdown processes\n";
        // A thousand threads leave nothing for the tests beside them.
        let call = Wml::new().alone().file("x.wml", script).args(["x.wml", "--engine", "null"]).result();
        let run = call.run().exits(0).only_run();
        let seconds = number(&run, &["measured_seconds"]);
        assert!((1.0..4.0).contains(&seconds), "{seconds} s were measured");
        assert!(count(&run["flowops"][0], "ops") > 1000, "{}", run["flowops"][0]);
    });
}
