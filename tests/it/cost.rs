//! Tests the overhead of the program: the number of instructions per flowop, counted by callgrind, which does not see
//! those of the kernel.
//!
//! Counts of instructions do not vary as times do, so a count above its limit is a change of the program, on any
//! machine. Only the loop of a thread between gate and stop is counted. The counts are meaningful in an optimised build
//! with names of functions only: `cargo build --profile profiling`, then `WMLRUN_BIN=target/profiling/wmlrun cargo test
//! --test it -- cost::`. `.ci/run shipped` counts in the release build, which it makes with names.

use crate::cmd::{Output, Wml, binary, count, flowops, has, skip, tell_skipped};

/// The function whose instructions are counted, with all that it calls.
const LOOP: &str = "*worker::iterate";

/// Whether there is an optimised build to count in, and something to count with.
fn available() -> bool {
    if !binary().components().any(|part| part.as_os_str() == "release" || part.as_os_str() == "profiling") {
        // Not a failure where all must be there: those who need it give such a build, and this is not their step.
        tell_skipped("it counts in an optimised build, give it as WMLRUN_BIN");
        return false;
    }
    if !has("valgrind") {
        skip("valgrind is missing");
        return false;
    }
    true
}

/// Instructions of a flowop, on the average over all flowops of a run of a second.
fn instructions(engine: &str, call: Wml) -> f64 {
    let under = ["valgrind", "--tool=callgrind", "--callgrind-out-file=counts"].map(str::to_owned);
    let call = call
        .under(under.into_iter().chain([format!("--toggle-collect={LOOP}")]))
        .args(["--engine", engine, "--runtime", "1", "--seed", "1", "--quiet", "--format", "none"])
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
fn at_most(name: &str, engine: &str, ceiling: f64, call: Wml) {
    let counted = instructions(engine, call);
    println!("{name}: {counted:.1} instructions of a flowop, at most {ceiling}");
    assert!(counted > 20.0, "{name}: the counted loop was not found: is it a build with names of functions?");
    assert!(counted <= ceiling, "{name}: {counted:.1} instructions of a flowop, more than {ceiling}");
}

/// A script with one thread, of one process.
fn script(set: &str, flowops: &str) -> Wml {
    let thread = format!("define process name=p {{ thread name=t,memsize=64k {{ {flowops} }} }}\n");
    Wml::new().file("w.wml", &format!("# dialect: fsl\n{set}\n{thread}")).args(["w.wml"])
}

const NULL: &str = "null";
const POSIX: &str = "posix";

const FILE: &str = "define file name=f,path=$dir,size=1m,prealloc";
const FILES: &str = "define fileset name=s,path=$dir,size=0,entries=100000,dirwidth=1000,dirgamma=0,prealloc=100";

/// A test of the instructions of a flowop. `$ceiling`: the most, two or three per cent above what was counted.
macro_rules! costs {
    ($($test:ident, $engine:expr, $ceiling:expr, $call:expr;)*) => {
        $(#[test]
        fn $test() {
            if available() {
                at_most(stringify!($test), $engine, $ceiling, $call);
            }
        })*
    };
}

costs! {
    a_random_read, NULL, 150.0, Wml::new().args(["randomread"]).sets(&[("memperthread", "8k")]);
    a_stat_of_a_file_in_rotation, NULL, 312.0, script(FILES, "flowop statfile name=st,filesetname=s");
    the_flowops_of_a_mail_server, NULL, 340.0, mail_server();
    a_post_and_its_wait, NULL, 125.0, script("", "flowop sempost name=post,value=1,target=wait\n\
        flowop semblock name=wait,value=1,highwater=1000");
    a_read_by_the_kernel, POSIX, 194.0, script(FILE, "flowop read name=r,filename=f,iosize=4k,random");
    a_write_by_the_kernel, POSIX, 334.0, script(FILE, "flowop write name=w,filename=f,iosize=4k,random");
    the_flowops_of_a_mail_server_by_the_kernel, POSIX, 420.0, mail_server();
    a_read_of_an_open_loop, NULL, 480.0, open_loop();
    a_file_picked_uniformly, NULL, 388.0, script(FILES, "flowop statfile name=st,filesetname=s,uniform");
    a_file_picked_by_zipf, NULL, 1270.0, picked_by_zipf();
    a_buffered_read, NULL, 354.0, script(FILE, "flowop bufread name=r,filename=f,iosize=100");
    a_buffered_write, NULL, 382.0, script(FILE, "flowop bufwrite name=w,filename=f,iosize=100,wrap=1m");
}

fn picked_by_zipf() -> Wml {
    let zipf = "set $file=randvar(type=zipf,items=100000,theta=0.99,scramble=true)";
    script(&format!("{FILES}\n{zipf}"), "flowop statfile name=st,filesetname=s,indexed=$file")
}

/// A thread that is always late: callgrind makes it slower than its rate.
fn open_loop() -> Wml {
    let thread = "define process name=p { thread name=t,memsize=64k,rate=10000000 {\n\
        flowop read name=r,filename=f,iosize=4k,random } }\n";
    Wml::new().file("w.wml", &format!("# dialect: fsl\n{FILE}\n{thread}")).args(["w.wml"])
}

fn mail_server() -> Wml {
    Wml::new().args(["varmail"]).sets(&[("nthreads", "1"), ("memperthread", "1m")])
}
