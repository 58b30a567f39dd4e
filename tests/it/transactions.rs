//! Tests transactions: several flowops that are one operation of the application, and are counted and timed as one.

use crate::cmd::{Wml, flowop, number};
use crate::undisturbed::undisturbed;

const SETS: &str = "# dialect: fsl\nset mode quit alldone\n\
    define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    define flowop name=visit {\n\
    flowop statfile name=look,filesetname=data\n\
    flowop delay name=think,value=0.02\n\
    flowop statfile name=again,filesetname=data }\n";

fn call(process: &str) -> Wml {
    let text = format!("{SETS}{process}");
    Wml::new().idle().file("x.wml", &text).args(["x.wml", "--runtime", "60", "--no-quiesce"]).result()
}

#[test]
fn a_composite_flowop_is_one_transaction() {
    let process = "define process name=p,instances=2,transaction=v { thread name=t,instances=2 {\n\
        flowop visit name=v,iters=5\nflowop finishoncount name=end,value=1 } }\n";
    let output = call(process).run().exits(0);
    let run = output.only_run();
    let v = flowop(&run, "v");
    assert_eq!((&v["ops"], &v["kind"], &v["transaction"]), (&20.into(), &"transaction".into(), &true.into()));
    assert_eq!(v["class"], "other", "its parts are counted already");
    assert_eq!(run["summary"]["ops"], 40);
    // Each has slept once in it, the first too.
    assert!(number(v, &["latency_ns", "min"]) >= 20e6, "{v}");
    let parts = ["v.look", "v.think", "v.again"].map(|name| number(flowop(&run, name), &["latency_ns", "mean"]));
    assert!(number(v, &["latency_ns", "mean"]) >= parts.iter().sum::<f64>(), "{v} {parts:?}");
    assert!(parts.iter().all(|part| *part > 0.0) && flowop(&run, "v.look")["transaction"] == false);
    assert!(output.stdout.contains("transactions: v 20, "), "{}", output.stdout);
}

/// The thread sleeps for a quarter of a second between two of them.
#[test]
fn a_transaction_of_an_open_loop_does_not_contain_the_wait_for_it() {
    undisturbed(|| {
        let process = "define process name=p { thread name=t,rate=4 {\n\
            flowop statfile name=look,filesetname=data\nflowop transaction name=done\n\
            flowop finishoncount name=end,value=7,target=done } }\n";
        let run = call(process).run().exits(0).only_run();
        let done = flowop(&run, "done");
        assert_eq!(done["ops"], 7);
        // With the wait it would take ten thousand times as long as its only operation.
        let p50 = |flowop| number(flowop, &["latency_ns", "p50"]);
        let look = flowop(&run, "look");
        assert!(p50(done) < 100.0 * p50(look), "{done} {look}");
    });
}

#[test]
fn a_single_flowop_can_be_a_transaction() {
    let process = "define process name=p,transaction=read { thread name=t {\n\
        flowop readwholefile name=read,filesetname=data,iters=7\nflowop finishoncount name=end,value=1 } }\n";
    let run = call(process).run().exits(0).only_run();
    assert_eq!((&flowop(&run, "read")["ops"], &flowop(&run, "read")["transaction"]), (&7.into(), &true.into()));
    let kinds: Vec<&str> = run["flowops"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["readwholefile", "finishoncount"], "nothing is added");
}

#[test]
fn a_transaction_of_an_unknown_name_is_an_error() {
    for (name, near) in [("visits", "takes the `name=`"), ("v.loo", "did you mean `v.look`?")] {
        let process =
            format!("define process name=p,transaction={name} {{ thread name=t {{ flowop visit name=v }} }}\n");
        let output = call(&process).run().exits(2);
        assert!(output.stderr.contains(&format!("is called `{name}`")), "{}", output.shown());
        assert!(output.stderr.contains(near), "{}", output.shown());
    }
}
