//! Tests generated scripts: every flowop with random attributes from the language's tables, run for a moment.
//!
//! A script that `check` accepts runs without a panic, whatever its flowops do. Its result is valid, and its intervals
//! and histograms add up.

use wml::random::mix;
use wml::spec::{Class, Flowop};

use crate::cmd::{Wml, memory, short_or_long};
use crate::sums::assert_adds_up;

const SETS: &str = "# dialect: fsl
set $r=randvar(type=uniform,min=1k,mean=4k)
set $z=randvar(type=zipf,items=40)
define fileset name=f,path=$dir,entries=40,dirwidth=5,size=16k,prealloc=80
define fileset name=g,path=$dir,entries=3,dirwidth=5,size=0,prealloc
define fileset name=l,path=$dir,leafdirs=30,dirwidth=5,prealloc=50
define file name=one,path=$dir,size=64k,prealloc
";

struct Numbers(u64, u64);

impl Numbers {
    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        self.1 += 1;
        all[(mix(self.0, self.1) % all.len() as u64) as usize]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.1 += 1;
        mix(self.0, self.1).is_multiple_of(n)
    }
}

/// A value that an attribute may have; `None` for those that a script of one thread has no use for.
fn value(attr: &str, flowop: &Flowop, numbers: &mut Numbers) -> Option<String> {
    let values: &[&str] = match attr {
        "filesetname" if flowop.name.ends_with("dir") && flowop.name != "listdir" => &["l"],
        "filesetname" => &["f", "f", "f", "g", "one"],
        "fd" | "srcfd" => &["1", "1", "2", "3", "100", "128"],
        "iosize" => &["1", "512", "4k", "10000", "$r"],
        "workingset" => &["0", "8k", "1m", "$r"],
        "iters" => &["0", "1", "3"],
        "indexed" => &["0", "3", "1000", "$z"],
        "value" if flowop.name == "command" => &["\"true\"", "\"exit 3\""],
        "value" => &["1", "2", "100"],
        "wrap" | "fsyncevery" => &["16k", "1m"],
        "align" | "stride" | "offset" => &["512", "4k"],
        "iodepth" => &["1", "8"],
        "random" | "opennext" | "uniform" | "dsync" | "noreadahead" | "backward" | "reoffset" => &["true", "false"],
        _ => return None,
    };
    Some(format!("{attr}={}", numbers.of(values)))
}

/// A script of one thread of five flowops.
fn script(numbers: &mut Numbers, table: &[&'static Flowop]) -> String {
    let mut text = format!("{SETS}define process name=p {{ thread name=t {{\n");
    for n in 0..5 {
        let flowop = numbers.of(table);
        let mut attrs = vec![format!("name=x{n}")];
        for attr in flowop.uses.iter().chain(&["iters"]) {
            // What most need, and what is not there with a slot alone.
            let needed = matches!(*attr, "filesetname" | "iosize" | "value");
            if (needed && !numbers.one_in(60)) || (!needed && numbers.one_in(3)) {
                attrs.extend(value(attr, flowop, numbers));
            }
        }
        text.push_str(&format!("  flowop {} {}\n", flowop.name, attrs.join(",")));
    }
    text + "} }\n"
}

#[test]
fn generated_scripts_run_and_their_results_add_up() {
    let spec = wml::flowop::spec_table();
    // Those that wait for others, or sleep, would wait here to the end.
    let waits = |f: &&&Flowop| f.class == Class::Sync || f.name == "delay" || f.uses.contains(&"target");
    let table: Vec<&Flowop> = spec.flowops.iter().filter(|f| !waits(f)).copied().collect();
    assert!(table.len() > 30, "the table was not found");
    let mut numbers = Numbers(7, 0);
    let (mut ran, mut wrong) = (0, 0);
    for n in 0..short_or_long(40, 2000) {
        let text = script(&mut numbers, &table);
        let engine = if n % 2 == 0 { "null" } else { "posix" };
        let call = Wml::below(&memory()).file("x.wml", &text);
        let call = call.args([
            "x.wml",
            "--runtime",
            "0.02",
            "--no-quiesce",
            "--on-error",
            "count",
            "--allow-system",
            "--engine",
            engine,
        ]);
        let output = call.result().run();
        let shown = format!("{text}{}", output.shown());
        assert!(!shown.contains("panicked"), "{shown}");
        match output.code() {
            // A script that lacks something is told so; one that is right ran, whatever its flowops met.
            2 => wrong += 1,
            0 | 1 => {
                ran += 1;
                for run in output.result()["runs"].as_array().unwrap() {
                    assert_adds_up(run);
                }
            }
            _ => panic!("{shown}"),
        }
    }
    assert!(ran * 4 > wrong, "{ran} ran, {wrong} were refused");
}
