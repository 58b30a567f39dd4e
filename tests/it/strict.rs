//! Tests scripts that `check` must reject, and similar ones that it must accept.

use crate::cmd::Wml;
use crate::lints::check;

const SET: &str = "define fileset name=f,path=$dir,entries=10,dirwidth=5,size=4k,prealloc\n";

/// A process with one thread of these flowops.
fn process(flowops: &str) -> String {
    format!("{SET}define process name=p {{ thread name=t {{ {flowops} }} }}\n")
}

#[test]
fn times_that_are_not_numbers_are_errors() {
    let works = process("flowop statfile name=s,filesetname=f");
    for command in [
        "run \"abc\"",
        "run abc",
        "run -1",
        "run true",
        "sleep \"x\"",
        "warmup later",
        "psrun \"a\" 5",
        "psrun 1 \"b\"",
    ] {
        let said = check("x.wml", &format!("{works}{command}\n"));
        assert!(said.contains("E0204"), "{command}: {said}");
    }
    for command in ["run 1", "run \"1\"", "run", "sleep 1", "psrun -10 60", "set $t=5\nrun $t", "run 0.5"] {
        let said = check("x.wml", &format!("{works}{command}\n"));
        assert!(!said.contains("error"), "{command}: {said}");
    }
}

#[test]
fn only_known_kinds_of_definitions_are_accepted() {
    let block = "{ thread name=t { flowop statfile name=s,filesetname=f } }";
    for (word, near) in [("processor", "process"), ("processs", "process")] {
        let said = check("x.wml", &format!("{SET}define {word} name=p {block}\n"));
        assert!(said.contains(&format!("`{word}` can't be defined")) && said.contains(&format!("`{near}`")), "{said}");
    }
    for word in ["filesetssss", "filess", "flowops", "randvars"] {
        let said = check("x.wml", &format!("define {word} name=x,path=$dir,entries=1,dirwidth=1\n"));
        assert!(said.contains(&format!("`{word}` can't be defined")), "{word}: {said}");
    }
    for (word, one) in [("filesets", "name=x,path=$dir,entries=1,dirwidth=1"), ("files", "name=x,path=$dir,size=1")] {
        let said = check("x.wml", &format!("define {word} {one}\n"));
        assert!(!said.contains("error"), "{word}: {said}");
    }
    let said = check("x.wml", &format!("{SET}define processes name=p {block}\n"));
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn variables_that_are_not_set_are_reported_everywhere() {
    for (command, severity) in [
        ("echo \"$nosuch\"", "warning[W0420]"),
        ("log \"$nosuch\"", "warning[W0420]"),
        ("usage \"$nosuch\"", "warning[W0420]"),
        ("system \"$nosuch\"", "warning[W0420]"),
        ("stats command \"$nosuch\"", "warning[W0420]"),
        ("stats dump \"$nosuch\"", "error[E0303]"),
        ("fscheck path=$nosuch,fstype=ext4", "error[E0303]"),
        ("fscheck path=/,fstype=$nosuch", "error[E0303]"),
    ] {
        let said = check("x.wml", &format!("set $noch=1\n{command}\n"));
        assert!(said.contains(severity), "{command}: {said}");
    }
}

#[test]
fn a_long_chain_of_variables_has_a_value_and_a_cycle_is_an_error() {
    let mut chain = "set $v0=7\n".to_owned();
    for n in 1..=5000 {
        chain.push_str(&format!("set $v{n}=$v{}\n", n - 1));
    }
    let run = format!("{chain}{}run $v5000\n", process("flowop statfile name=s,filesetname=f,iters=$v5000"));
    let output = Wml::new().file("x.wml", &run).args(["plan", "-v", "x.wml"]).run().exits(0);
    assert!(output.stdout.contains("× 7"), "{}", output.shown());
    let circle = process("flowop statfile name=s,filesetname=f,iters=$a")
        .replace("define fileset", "set $a=$b\nset $b=$a\ndefine fileset");
    let said = check("x.wml", &circle);
    assert!(said.contains("is defined by itself"), "{said}");
}

#[test]
fn numbers_that_do_not_fit_are_errors_and_no_panics() {
    for value in ["9223372036854775807 + 1", "9223372036854775807 * 2", "0 - 9223372036854775807", "1 / 0", "5 / $zero"]
    {
        let text = format!("set $zero=0\nset $x={value}\n{}", process("flowop statfile name=s,filesetname=f,iters=$x"));
        let said = check("x.wml", &text);
        assert!(said.contains("error"), "{value}: {said}");
    }
    // A lint that multiplies must not pass 2^64.
    let text = process("flowop delay name=d,value=9223372036854775807,iters=9").replace("name=t", "name=t,rate=5");
    let _ = check("x.wml", &text);
}

#[test]
fn rows_of_a_size_table_have_sizes_and_counts() {
    let table = |rows: &str| {
        let set = format!("define fileset name=f,path=$dir,dirwidth=5,sizetable=\"8k:1 {rows}\",prealloc\n");
        check("x.wml", &process("flowop statfile name=s,filesetname=f").replace(SET, &set))
    };
    for row in
        ["4k:-5", "nan:7", "4k:nan", "-1k:3", "-0.5:3", "inf:1", "4k:inf", "-infinity:1", "4k-nan:2", "4k:", ":4"]
    {
        let said = table(row);
        assert!(said.contains(&format!("`{row}` is not a row of a size table")), "{row}: {said}");
    }
    for row in ["16k:5", "1.5m:2", "16k-24k:3", "12k:0"] {
        let said = table(row);
        assert!(!said.contains("error"), "{row}: {said}");
    }
}

/// A slot above the number of files, where `opennext` goes through as many slots as there are files.
#[test]
fn slots_of_any_number_are_accepted() {
    // One flowop alone: another that names the slot would make room for it.
    for flowop in [
        "flowop openfile name=o,filesetname=f,opennext,fd=100",
        "flowop read name=o,filesetname=f,iosize=1k,opennext,fd=128",
        "flowop writewholefile name=o,filesetname=f,iosize=1k,opennext,fd=90",
        "flowop aioread name=o,filesetname=f,iosize=1k,opennext,fd=50",
        "flowop writewholefile name=o,filesetname=f,iosize=1k,opennext,srcfd=99",
    ] {
        for dialect in ["sun", "fsl"] {
            let text = format!("# dialect: {dialect}\n{}", process(flowop));
            let args = ["--runtime", "0.05", "--engine", "null", "--on-error", "count", "x.wml"];
            let output = Wml::new().file("x.wml", &text).args(args).run();
            assert!(!output.shown().contains("panicked") && output.code() <= 1, "{}", output.shown());
        }
    }
}

/// The warning on an exhausted file set appears for every flowop that needs a file of it.
#[test]
fn every_flowop_that_needs_a_file_reports_a_set_without_one() {
    let works = ["setxattr", "getxattr", "copyrange", "syncfs", "read", "statfile", "truncate"];
    for name in works {
        let text = process(&format!("flowop {name} name=x,filesetname=f,iosize=1k,value=1,fd=2,srcfd=1"));
        let said = check("x.wml", &text.replace(",prealloc", ""));
        assert!(said.contains("W0405"), "{name}: {said}");
    }
}

/// An error in an option does not hide errors in the script.
#[test]
fn an_error_of_dir_hides_no_error_of_the_script() {
    let text = process("flowop delay name=d").replace("name=t", "name=t,instances=9999999");
    let output = Wml::new().file("x.wml", &text).args(["plan", "--dir", "", "x.wml"]).run().exits(2);
    assert!(
        output.stderr.contains("an empty path") && output.stderr.contains("`instances` can't be 9999999"),
        "{}",
        output.shown()
    );
}

/// Invalid values of a profile are reported before a results directory is created.
#[test]
fn an_error_of_a_profile_creates_no_directory() {
    let script = process("flowop read name=r,filesetname=f,iosize=$size").replace("name=t", "name=t,memsize=4k");
    let profile = "DEFAULTS {\n  runtime = 1;\n  stats = out;\n}\nCONFIG one {\n  function = generic;\n  personality = own;\n  size = 1m;\n}\n";
    let call = Wml::new().file("own.wml", &format!("set $size=4k\n{script}")).file("a.prof", profile);
    let output = call.args(["batch", "a.prof"]).run().exits(2);
    assert!(output.stderr.contains("`memsize` is 4096"), "{}", output.shown());
    assert_eq!(output.left(), ["a.prof", "own.wml"], "{}", output.shown());
}
