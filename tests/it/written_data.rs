//! Tests the data that flowops write: the time to generate it is the program's own.

use crate::support::{self, Outcome};
use crate::undisturbed::undisturbed;
use wml::result::FlowopResult;
use wml::session::Status;

/// The flowop `w` of a run.
fn writer(outcome: &Outcome) -> &FlowopResult {
    outcome.run().flowops.iter().find(|flowop| flowop.name == "w").unwrap()
}

/// On the null engine a write takes no time, so nearly all of the time is that of generating its data.
#[test]
fn generating_much_data_is_in_no_latency() {
    undisturbed(|| {
        for flowops in [
            "flowop write name=w,filename=f,iosize=16m,random",
            "flowop writewholefile name=w,filename=f,iosize=16m",
            "flowop truncate name=cut,filename=f\nflowop appendfilerand name=w,filename=f,iosize=8m,maxsize=128m",
            "flowop mmapwrite name=w,filename=f,iosize=16m,random",
            "flowop bufwrite name=w,filename=f,iosize=16m,wrap=64m",
        ] {
            let text = format!(
                "# dialect: fsl\ndefine file name=f,path=/nowhere,size=64m,prealloc\n\
                 define process name=p {{ thread name=t {{ {flowops} }} }}\n"
            );
            let outcome = support::run("test.wml", &text, support::null(200));
            assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
            let w = writer(&outcome);
            let (latency, tool) = (w.latency_ns.p50.unwrap() as f64, w.tool_ns_mean.unwrap());
            assert!(latency < tool / 2.0, "{flowops}: {latency} ns of latency, {tool} ns for the data");
        }
    });
}
