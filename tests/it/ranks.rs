//! Tests the predefined variables of ranks.

use crate::cmd::tool;
use crate::vectors_15::script;

/// A workload that is run without I/O.
const SCRIPT: &str = "\
define fileset name=s,path=/nowhere,entries=4,dirwidth=2,size=1k,prealloc
define process name=p { thread name=t { flowop statfile name=x,filesetname=s } }
";

/// The options of such a run.
const SHORT: [&str; 4] = ["--engine", "null", "--runtime", "0.05"];

fn host() -> String {
    tool("uname", &["-n"]).trim().to_owned()
}

#[test]
fn a_process_is_the_only_rank_on_its_host() {
    let output = script("echo \"$rank $ranks $host $hosts\"\n").run().exits(0);
    assert_eq!(output.stdout, format!("0 1 {} 1\n", host()));
}

/// Scripts of Filebench may have variables of these names.
#[test]
fn settings_replace_the_variables_of_ranks() {
    let text = "set $rank=5\nset $hosts=$rank + 1\nset $host=\"alpha\"\n\
        foreach $ranks in 3,4 { echo \"$rank $ranks $host $hosts\" }\n";
    assert_eq!(script(text).run().exits(0).stdout, "5 3 alpha 6\n5 4 alpha 6\n");
    let output = script("echo \"$rank $ranks $host $hosts\"\n")
        .args(["--set", "rank=7", "--set", "ranks=9", "--set", "host=beta", "--set", "hosts=2"])
        .run()
        .exits(0);
    assert_eq!(output.stdout, "7 9 beta 2\n");
}

#[test]
fn the_result_has_the_host_that_a_script_reads() {
    let text = format!("{SCRIPT}echo \"$host\"\n");
    let named = script(&text).args(SHORT).result().run().exits(0).only_run();
    assert_eq!(named["variables"]["host"], host());
    assert!(named["variables"].get("rank").is_none(), "{}", named["variables"]);
    let redacted = script(&text).args(SHORT).args(["--redact"]).result().run().exits(0).only_run();
    assert_eq!(redacted["variables"]["host"], "(host)");
}
