//! Tests large scripts, and small scripts that ask for very much: each is read or refused in bounded memory, without a
//! panic.
//!
//! `WMLRUN_LONG=1` makes the large ones 10 MB.

use std::time::Duration;

use crate::cmd::{Wml, has, long, short_or_long};
use crate::cost::counted;
use crate::resume::in_parallel;

/// Address space of a call: twice the memory that it may use, since not all reserved memory is used.
const SPACE: &str = "--as=1073741824";

pub(crate) const SET: &str = "define fileset name=f,path=$dir,entries=10,dirwidth=5,size=4k\n";

/// `unit` repeated up to so many bytes; `@` is the number of the repetition, `%` the one before.
fn repeated(head: &str, unit: &str, tail: &str, bytes: usize) -> String {
    let mut text = head.to_owned();
    for n in 1.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&unit.replace('@', &n.to_string()).replace('%', &(n - 1).to_string()));
    }
    text + tail
}

/// A process with one thread of these flowops.
fn process(flowops: &str) -> String {
    format!("{SET}define process name=p {{ thread name=t {{ {flowops} }} }}\n")
}

pub(crate) const THREAD: &str = "define process name=p { thread name=t {\n";

/// Scripts of any length: name, text at the start, repeated text, text at the end.
pub(crate) const LARGE: &[(&str, &str, &str, &str)] = &[
    ("set lines", "", "set $v@=@\n", ""),
    ("a chain of variables", "set $v0=1\n", "set $v@=$v%\n", ""),
    ("a variable of itself", "set $x=0\n", "set $x=$x+1\n", ""),
    ("flowops", THREAD, "flowop delay name=r@\n", "} }\n"),
    ("file sets", "", "define fileset name=f@,path=$dir,entries=1,dirwidth=1\n", ""),
    ("processes", "", "define process name=p@ { thread name=t { flowop delay name=d } }\n", ""),
    (
        "phases",
        "set mode quit alldone\n",
        "define process name=p@,phase=@ { thread name=t { flowop delay name=d } }\n",
        "",
    ),
    ("composites", "", "define flowop name=c@ { flowop delay name=d }\n", ""),
    ("foreach", "", "foreach $x in 1,2 { set $y@=$x }\n", ""),
    ("usage", "", "usage \"hello $dir @\"\n", ""),
    ("unknown commands", "", "flowopp x@\n", ""),
    ("variables that nothing sets", "", "set $a@=$nosuch@\n", ""),
    ("opening braces", "", "{", ""),
    ("closing braces", "", "}", ""),
    ("brackets", "set $x=randvar", "(", ""),
    ("calls in calls", "set $x=", "randvar(a=", ""),
    ("strings without an end", "", "\"a\n", ""),
    ("dollar signs", "", "$", ""),
    ("open variables", "", "${", ""),
    ("a word", "", "a", ""),
    ("a number", "set $x=", "9", ""),
    ("commas", "define fileset name=a", ",", ""),
    ("attributes", "define fileset name=a,path=$dir", ",size=@", ""),
    ("unknown attributes", "define fileset name=a,path=$dir", ",siez@=@", ""),
    ("glued variables", "set $x=", "$a/", ""),
    ("a text of variables", "echo \"", "$dir", "\"\n"),
    ("rows of a table", "set $x=randvar(type=tabular,randtable={", "{1,2,3},", "{1,2,3}})\n"),
    ("rows of a size table", "define fileset name=a,path=$dir,sizetable=\"", "@k:1 ", "\"\n"),
    ("blocks in blocks", "", "foreach $x in 1 {", ""),
    ("operators", "set $x=1", "+ ", ""),
    ("characters of no language", "", "§ ", ""),
    ("loads", "", "load randomread\n", ""),
    ("targets", THREAD, "flowop sempost name=s,target=s\n", "} }\n"),
];

/// Scripts that are small and ask for much: name and text.
fn small() -> Vec<(&'static str, String)> {
    let chain = |first: &str, unit: &str| {
        (1..=26).fold(format!("set $v0={first}\n"), |text, n| {
            text + &unit.replace('@', &n.to_string()).replace('%', &(n - 1).to_string())
        })
    };
    let nested =
        (1..=31).fold(format!("{SET}define flowop name=c0 {{ flowop statfile name=s,filesetname=f }}\n"), |text, n| {
            let inner = n - 1;
            text + &format!("define flowop name=c{n} {{ flowop c{inner} name=a\nflowop c{inner} name=b }}\n")
        });
    let empty = (1..=8).fold("define flowop name=e0 { }\n".to_owned(), |text, n| {
        let uses: String = (0..40).map(|u| format!("flowop e{} name=u{u}\n", n - 1)).collect();
        text + &format!("define flowop name=e{n} {{ {uses} }}\n")
    });
    let threads = |process_instances: &str, thread_instances: &str| {
        process("flowop delay name=d")
            .replace("name=p", &format!("name=p,instances={process_instances}"))
            .replace("name=t", &format!("name=t,instances={thread_instances}"))
    };
    let set = |attrs: &str| format!("define fileset name=f,path=$dir,{attrs}\n");
    let drawn = |attrs: &str| format!("set $rv=randvar(type=gamma,min=1,mean=4k)\n{}", set(attrs));
    let zipf = "set $z=randvar(type=zipf,items=1000000000000,scramble)\n".to_owned();
    let own_sets = |sets: u64, flowops: u64, instances: u64| {
        let define = |n| format!("define fileset name=f{n},path=$dir,entries=1,size=0,perinstance\n");
        let flowop = |n: u64| format!("flowop statfile name=s{n},filesetname=f{}\n", n % sets);
        let flowops: String = (0..flowops).map(flowop).collect();
        let process = format!("define process name=p,instances={instances} {{ thread name=t {{\n{flowops}}} }}\n");
        (0..sets).map(define).collect::<String>() + &process
    };
    vec![
        ("a set for each of a million instances", own_sets(1, 1, 1_000_000)),
        ("200 sets for each of a million instances", own_sets(200, 200, 1_000_000)),
        ("4,096 sets of instances that 1,000 flowops use", own_sets(1, 1000, 4096)),
        ("26 doublings", format!("{}sleep $v26\n", chain("1", "set $v@=$v%+$v%\n"))),
        ("texts that double", chain("ab", "set $v@=\"$v%$v%\"\n") + &set("entries=1,dirwidth=1,sizetable=$v26")),
        ("a composite of 2^31 flowops", nested + "define process name=p { thread name=t { flowop c31 name=x } }\n"),
        ("40^8 uses of an empty composite", empty + "define process name=p { thread name=t { flowop e8 name=x } }\n"),
        ("2^40 threads", threads("1m", "1m")),
        ("a million processes", threads("1000000", "1")),
        ("a directory for each of a million files", set("entries=1000000,dirwidth=1")),
        ("four thousand million files", set("entries=4294967290,dirwidth=20")),
        ("2^62 files", set("entries=4611686018427387904,dirwidth=20")),
        ("2^63 files", set("entries=9223372036854775808,dirwidth=20")),
        ("2^28 files of drawn sizes", drawn("entries=268435456,dirwidth=10000,size=$rv,prealloc=50")),
        ("2^26 directories", set("entries=67108864,prealloc")),
        ("leaf directories", set("leafdirs=100000000,dirwidth=2")),
        ("drawn depths", drawn("entries=1000000,dirwidth=2,dirdepthrv=$rv")),
        ("a size table of no files", set("sizetable=\"4k:0 8k:0\",entries=10,prealloc,dirwidth=5")),
        ("a size table of many files", set("sizetable=\"4k:200000000\",prealloc,dirwidth=5000")),
        ("sizes that pass 2^64", set("entries=4,size=4611686018427387904,prealloc,dirwidth=5")),
        (
            "a buffer of a tebibyte",
            process("flowop read name=r,filesetname=f,iosize=4k").replace("name=t", "name=t,memsize=1t"),
        ),
        ("an I/O of 64 tebibytes", process("flowop read name=r,filesetname=f,iosize=64t")),
        ("a law over 10^12 items", zipf + &process("flowop read name=r,filesetname=f,iosize=4k,indexed=$z")),
        ("a circle of variables", "set $a=$b\nset $b=$c\nset $c=$a\nsleep $a\n".to_owned()),
        ("a text that loads itself", "load x\n".to_owned()),
        ("an empty script", String::new()),
        ("bytes of zero", "\0".repeat(100_000)),
    ]
}

/// Runs a stage of a script within the bound of memory; its exit status is 0 or 2, or for a plan 3.
#[track_caller]
#[expect(clippy::print_stdout, reason = "figures of the long form")]
fn stage(name: &str, stage: &str, text: &str) {
    let call = Wml::new().file("x.wml", text).under(["prlimit", SPACE]).args([stage, "x.wml"]);
    let output = call.timeout(Duration::from_mins(2)).run();
    let shown: String = output.shown().chars().take(2000).collect();
    assert!([0, 2, 3].contains(&output.code()), "{stage} of {name}: {shown}");
    assert!(!shown.contains("panicked"), "{stage} of {name}: {shown}");
    if long() {
        println!("{:>6.2} s {stage} of {name}", output.elapsed.as_secs_f64());
    }
}

#[test]
fn large_scripts_are_read_or_refused_in_bounded_memory() {
    let bytes = short_or_long(100_000, 10_000_000);
    for (name, head, unit, tail) in LARGE {
        let text = repeated(head, unit, tail, bytes);
        for command in ["check", "plan", "fmt"] {
            stage(name, command, &text);
        }
    }
}

#[test]
fn small_scripts_of_large_plans_are_planned_or_refused_in_bounded_memory() {
    for (name, text) in small() {
        for command in ["check", "plan"] {
            stage(name, command, &text);
        }
    }
}

/// What can't be done is refused before anything is made.
#[test]
fn impossible_scripts_leave_no_files() {
    let zipf = "set $z=randvar(type=zipf,items=1000000000000)\n".to_owned();
    for text in [
        process("flowop read name=r,filesetname=f,iosize=64t"),
        process("flowop read name=r,filesetname=f,iosize=4k").replace("name=t", "name=t,memsize=1t"),
        zipf + &process("flowop read name=r,filesetname=f,iosize=$z"),
    ] {
        let output = Wml::new().file("x.wml", &text).args(["--dir", ".", "--runtime", "1", "x.wml"]).run();
        assert!([2, 3].contains(&output.code()), "{}", output.shown());
        assert_eq!(output.left(), ["x.wml"], "{}", output.shown());
    }
}

/// The same on every way to a run: `create files` before or after the processes are defined, in a loop, in a profile, in an
/// experiment, and at the prompt.
#[test]
fn what_a_machine_cannot_run_is_refused_before_the_first_file() {
    let huge = "define process name=p { thread name=t,memsize=1t { flowop statfile name=s,filesetname=f } }\n";
    let set = SET.replace("size=4k", "size=4k,prealloc");
    let whole = format!("{set}{huge}");
    let scripts = [
        format!("{whole}create files\ncreate processes\n"),
        format!("{whole}create fileset\nrun 1\n"),
        format!("{set}create files\n{huge}create processes\nsleep 1\n"),
        format!("{set}create files\n{huge}run 1\n"),
        format!("{set}foreach $x in 1,2 {{\ncreate files\n{}run 1\n}}\n", huge.replace("name=p", "name=p$x")),
    ];
    for script in &scripts {
        let wml = Wml::new().file("x.wml", script);
        let output = wml.args(["--dir", ".", "--no-quiesce", "x.wml"]).run();
        assert!(output.stderr.contains("of memory, but only"), "{script}\n{}", output.shown());
        assert_eq!((output.code(), output.left()), (3, vec!["x.wml".to_owned()]), "{script}\n{}", output.shown());
    }
    // A script without such a run makes its files.
    let output = Wml::new().file("x.wml", &format!("{set}create files\n")).args(["--dir", ".", "x.wml"]).run().exits(0);
    assert_eq!(output.left(), ["f", "x.wml"], "{}", output.shown());
    let config = |name: &str| format!("CONFIG {name} {{\n personality = {name};\n}}\n");
    let profile = format!("DEFAULTS {{\n runtime = 1;\n dir = .;\n}}\n{}{}", config("small"), config("huge"));
    let small = whole.replace("memsize=1t", "memsize=4k");
    let wml = Wml::new().file("small.f", &small).file("huge.f", &whole).file("p.prof", &profile);
    let output = wml.args(["batch", "p.prof", "--no-quiesce", "--dir", "."]).run();
    assert!(output.stderr.contains("of memory, but only"), "{}", output.shown());
    assert_eq!((output.code(), output.left().len()), (3, 3), "{}", output.shown());
    let level = |name: &str| format!("{{ name = \"{name}\", script = \"{name}\" }}");
    let experiment =
        format!("repeats = 1\n[[factor]]\nname = \"a\"\nlevels = [{}, {}]\n", level("small"), level("huge"));
    let wml = Wml::new().file("small.f", &small).file("huge.f", &whole).file("e.toml", &experiment);
    let output = wml.args(["experiment", "e.toml", "--runtime", "1", "--no-quiesce", "--dir", "."]).run();
    assert!(output.stderr.contains("of memory, but only"), "{}", output.shown());
    assert_eq!((output.code(), output.left().len()), (3, 3), "{}", output.shown());
}

#[test]
fn a_message_to_the_language_server_is_bounded() {
    for length in ["9223372036854775807", "18446744073709551616", "134217729"] {
        let script = format!("printf 'Content-Length: {length}\\r\\n\\r\\n{{}}' | exec prlimit {SPACE} \"$0\" lsp");
        let output = Wml::new().under(["sh", "-c", &script]).run().exits(1);
        assert!(output.stderr.contains("can't read what the editor sends: "), "{}", output.shown());
    }
}

/// Texts that every row of a page repeats.
#[test]
fn long_labels_notes_and_names_are_refused() {
    let long = "x".repeat(100_000);
    for option in ["--label", "--note"] {
        let output = Wml::new().args(["randomread", "--engine", "null", option, &long]).run().exits(2);
        assert!(output.stderr.contains("it has 100000 bytes"), "{}", &output.shown()[..500]);
    }
    let script = format!("define fileset name={},path=$dir,entries=1,dirwidth=1\n", &long[..256]);
    let output = Wml::new().file("x.wml", &script).args(["check", "x.wml"]).run().exits(2);
    assert!(output.stderr.contains("`name` has 256 bytes"), "{}", output.shown());
    let document =
        |label: &str| format!("{{\"schema\": \"wmlrun.result/1\", \"label\": \"{label}\", \"runs\": [{{}}]}}");
    for (label, reason) in
        [(long.clone(), "its label has more than 1,000 bytes"), (long.repeat(200), "more than 1 MiB")]
    {
        let wml = Wml::new().file("a.json", &document(&label));
        let output = wml.under(["prlimit", SPACE]).args(["report", "a.json", "-o", "page.html"]).run().exits(2);
        assert!(output.stderr.contains(reason), "{}", &output.stderr[..output.stderr.len().min(500)]);
        assert_eq!(output.left(), ["a.json"]);
    }
    // A number that is a text fits no less.
    let script = "set $n=\"99999999999999999999\"\ndefine fileset name=f,path=$dir,entries=$n,dirwidth=9\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\nrun $n\n";
    Wml::new().file("x.wml", script).args(["x.wml", "--engine", "null"]).run().exits(2);
}

/// A text without an end is no script.
#[test]
fn endless_scripts_are_refused() {
    for script in [
        "exec \"$0\" check - < /dev/zero",
        "exec \"$0\" check - < /dev/urandom",
        "exec \"$0\" batch /dev/zero",
        "exec \"$0\" batch /dev/urandom",
    ] {
        let call = Wml::new().under(["prlimit", SPACE, "sh", "-c", script]).timeout(Duration::from_mins(2));
        let output = call.run();
        assert_eq!(output.code(), 2, "{script}: {}", output.shown());
        let reason = ["MiB", "regular file"].iter().any(|reason| output.stderr.contains(reason));
        assert!(reason, "{script}: {}", output.shown());
    }
}

/// Ten times the input takes no more than a dozen times the instructions.
#[test]
fn instructions_grow_linearly_with_the_input() {
    needs!(has("valgrind"), "valgrind is missing");
    let bytes = short_or_long(10_000, 50_000);
    let commands = short_or_long(&["plan"][..], &["check", "plan", "fmt"]);
    let of = |large| commands.iter().map(move |command| (*command, large));
    let cases: Vec<_> = LARGE.iter().step_by(short_or_long(20, 1)).flat_map(of).collect();
    let wrong = std::sync::Mutex::new(Vec::new());
    in_parallel(&(0..cases.len()).collect::<Vec<_>>(), |n| {
        let (command, (name, head, unit, tail)) = cases[n];
        let instructions = |bytes: usize| {
            let text = repeated(head, unit, tail, bytes);
            let call = Wml::new().file("x.wml", &text).args([command, "x.wml"]).timeout(Duration::from_mins(2));
            counted(call.under(["valgrind", "--tool=callgrind", "--callgrind-out-file=counts"])).1
        };
        let (one, ten) = (instructions(bytes), instructions(10 * bytes));
        if ten > 12 * one {
            wrong.lock().unwrap().push(format!("{command} of {name}: {one} instructions, then {ten}"));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
