//! Tests the overhead of the program: the number of instructions per flowop on the null engine, which makes no system
//! calls, counted by callgrind.
//!
//! Counts of instructions do not vary as times do, so a count above its limit is a change of the program, on any
//! machine. Only the loop of a thread between gate and stop is counted. The counts are meaningful in the release build
//! only: `WMLRUN_BIN=target/release/wmlrun cargo test --test it -- cost::`, as `.ci/run shipped` does.

use crate::cmd::{Output, Wml, binary, count, flowops, has, skip};

/// The function whose instructions are counted, with all that it calls.
const LOOP: &str = "*worker::iterate";

/// Whether there is a release build to count in, and something to count with.
fn available(test: &str) -> bool {
    if !binary().components().any(|part| part.as_os_str() == "release") {
        // Not a failure where all must be there: those who need it give the release build, and this is not their step.
        let text = format!("\nSKIPPED {test}: it counts in the release build, give it as WMLRUN_BIN\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        return false;
    }
    if !has("valgrind") {
        skip(test, "valgrind is missing");
        return false;
    }
    true
}

/// Instructions of a flowop, on the average over all flowops of a run of a second.
fn instructions(call: Wml) -> f64 {
    let under = ["valgrind", "--tool=callgrind", "--callgrind-out-file=counts"].map(str::to_owned);
    let call = call
        .under(under.into_iter().chain([format!("--toggle-collect={LOOP}")]))
        .args(["--engine", "null", "--runtime", "1", "--seed", "1", "--quiet", "--format", "none"])
        .result();
    let (output, instructions) = counted(call);
    let result = output.exits(0).result();
    assert_eq!(
        result["environment"]["clock"]["name"], "tsc",
        "callgrind shows the program a processor without a counter"
    );
    let ops: u64 = flowops(&result["runs"][0]).iter().map(|f| count(f, "ops")).sum();
    assert!(ops > 1000, "{ops} operations are too few to count");
    instructions as f64 / ops as f64
}

/// Makes a call under callgrind, which writes its file `counts`. Returns the sum of that file too.
pub(crate) fn counted(call: Wml) -> (Output, u64) {
    let output = call.run();
    let text = std::fs::read_to_string(output.dir().join("counts")).unwrap();
    let sum = text.lines().find_map(|l| l.strip_prefix("totals: ").or_else(|| l.strip_prefix("summary: ")));
    (output, sum.and_then(|n| n.trim().parse().ok()).expect("a sum"))
}

/// Holds a count against its ceiling, and shows it: docs/performance.md has the figures.
#[allow(clippy::print_stdout, reason = "the figure is worth more than that it was met")]
fn at_most(name: &str, ceiling: f64, call: Wml) {
    let counted = instructions(call);
    println!("{name}: {counted:.1} instructions of a flowop, at most {ceiling}");
    assert!(counted > 20.0, "{name}: the counted loop was not found");
    assert!(counted <= ceiling, "{name}: {counted:.1} instructions of a flowop, more than {ceiling}");
}

#[test]
fn a_random_read() {
    if available("cost::a_random_read") {
        at_most("randomread", 150.0, Wml::new().args(["randomread"]).sets(&[("memperthread", "8k")]));
    }
}

#[test]
fn a_stat_of_a_file_in_rotation() {
    let script = "# dialect: fsl\n\
        define fileset name=s,path=$dir,size=0,entries=100000,dirwidth=1000,dirgamma=0,prealloc=100\n\
        define process name=p { thread name=t,memsize=4k { flowop statfile name=st,filesetname=s } }\n";
    if available("cost::a_stat_of_a_file_in_rotation") {
        at_most("statfile", 320.0, Wml::new().file("w.wml", script).args(["w.wml"]));
    }
}

#[test]
fn the_flowops_of_a_mail_server() {
    if available("cost::the_flowops_of_a_mail_server") {
        let sets = [("nthreads", "1"), ("memperthread", "1m")];
        at_most("varmail", 350.0, Wml::new().args(["varmail"]).sets(&sets));
    }
}

#[test]
fn a_post_and_its_wait() {
    let script = "# dialect: fsl\n\
        define process name=p { thread name=t,memsize=4k {\n\
          flowop sempost name=post,value=1,target=wait\n\
          flowop semblock name=wait,value=1,highwater=1000 } }\n";
    if available("cost::a_post_and_its_wait") {
        at_most("sempost and semblock", 125.0, Wml::new().file("w.wml", script).args(["w.wml"]));
    }
}
