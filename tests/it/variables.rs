//! Tests the variables of the personalities: those of Filebench's scripts exist with the same names, and every variable
//! is documented.
//!
//! The table is from the scripts of Filebench 1.4.8 and 1.5. Deliberately absent: `$runtime`, which sets nothing in
//! Filebench's scripts either; the time of a run is `--runtime`.

use std::collections::BTreeSet;

use wml::session::Settings;
use wml::session::library::PERSONALITIES;

use crate::support;

/// The variables of both generations, by personality. `$dir` is one of each.
const FILEBENCH: &[(&str, &str)] = &[
    ("bringover", "nfiles dirwidth filesize nthreads iosize"),
    ("compflow_demo", "nfiles meandirwidth filesize nthreads meaniosize"),
    ("copyfiles", "nfiles meandirwidth dirwidth filesize meanfilesize nthreads iosize"),
    ("createdelete-swing", "path nfiles meandirwidth filesize meanfilesize filesizegamma dirgamma"),
    ("createfiles", "nfiles meandirwidth filesize meanfilesize nthreads iosize"),
    ("cvar_example", "iosize"),
    ("deletefiles", "nfiles meandirwidth filesize nthreads"),
    ("filemicro_create", "count iosize nthreads sync"),
    ("filemicro_createfiles", "nfiles meandirwidth filesize iosize nthreads count"),
    ("filemicro_createrand", "bytes iosize iters nthreads sync"),
    ("filemicro_delete", "nfiles meandirwidth filesize nthreads count"),
    ("filemicro_rread", "bytes cached filesize iosize iters nthreads"),
    ("filemicro_rwrite", "bytes cached filesize iosize iters nthreads sync"),
    ("filemicro_rwritedsync", "count filesize iosize iters nthreads"),
    ("filemicro_rwritefsync", "cached count filesize iosize iters nthreads"),
    ("filemicro_seqread", "cached filesize iosize nthreads"),
    ("filemicro_seqwrite", "cached count iosize nthreads sync"),
    ("filemicro_seqwriterand", "cached count iosize nthreads sync"),
    ("filemicro_seqwriterandvargam", "cached count iosize nthreads sync"),
    ("filemicro_seqwriterandvartab", "cached count iosize nthreads sync"),
    ("filemicro_statfile", "nfiles meandirwidth filesize nthreads"),
    ("filemicro_writefsync", "iosize iters count nthreads writeiters fsynccount"),
    ("fileserver", "nfiles meandirwidth filesize nthreads iosize meanappendsize meaniosize fixediosize"),
    ("fivestreamread", "filesize nthreads iosize"),
    ("fivestreamreaddirect", "filesize nthreads iosize"),
    ("fivestreamwrite", "filesize nthreads iosize"),
    ("fivestreamwritedirect", "filesize nthreads iosize"),
    ("listdirs", "nfiles meandirwidth nthreads"),
    ("makedirs", "ndirs meandirwidth nthreads"),
    ("mongo", "nfiles dirwidth filesize nthreads meaniosize readiosize"),
    ("multistreamread", "filesize nthreads iosize directio"),
    ("multistreamreaddirect", "filesize nthreads iosize"),
    ("multistreamwrite", "filesize nthreads iosize directio"),
    ("multistreamwritedirect", "filesize nthreads iosize"),
    ("netsfs", "nfiles meandirwidth nthreads eventrate sync cached filesize wrtiosize rdiosize fileidx"),
    ("networkfs", "nfiles meandirwidth nthreads eventrate sync cached filesize wrtiosize rdiosize fileidx"),
    (
        "oltp",
        "eventrate iosize nshadows ndbwriters usermode filesize memperthread workingset cached logfilesize nfiles nlogfiles \
         directio",
    ),
    (
        "oltp_sync",
        "iosize nshadows ndbwriters usermode filesize memperthread workingset cached logfilesize nfiles nlogfiles directio \
         logdir",
    ),
    ("openfiles", "nfiles meandirwidth nthreads"),
    ("randomfileaccess", "nfiles meandirwidth nthreads sync cached filesize wrtiosize rdiosize fileidx"),
    ("randomread", "filesize iosize nthreads workingset directio eventrate"),
    ("randomrw", "filesize iosize nthreads workingset directio eventrate"),
    ("randomwrite", "filesize iosize nthreads workingset directio eventrate"),
    ("randomwrite_ager", "filesize iosize nthreads file1 file2 memperthread workingset directio"),
    (
        "randomwrite_oltp_ager",
        "iosize ndbwriters filesize memperthread workingset cached logfilesize nfiles nlogfiles directio logdir",
    ),
    ("ratelimcopyfiles", "nfiles dirwidth filesize nthreads iosize eventrate"),
    ("removedirs", "ndirs meandirwidth nthreads"),
    ("seqwrite", "iosize nthreads memperthread directio"),
    ("singlestreamread", "filesize iosize nthreads"),
    ("singlestreamreaddirect", "filesize iosize nthreads"),
    ("singlestreamwrite", "iosize nthreads"),
    ("singlestreamwritedirect", "iosize nthreads"),
    ("tpcso", "eventrate iosize nshadows ndbwriters usermode memperthread workingset directio"),
    ("varmail", "nfiles meandirwidth filesize nthreads iosize meanappendsize meaniosize readiosize"),
    (
        "videoserver",
        "eventrate filesize nthreads numactivevids numpassivevids reuseit readiosize writeiosize repintval actvidsname \
         passvidsname",
    ),
    ("webproxy", "nfiles meandirwidth filesize meanfilesize nthreads iosize meaniosize readiosize eventrate"),
    ("webserver", "nfiles meandirwidth dirwidth filesize nthreads iosize meanappendsize"),
];

/// Two values of a variable that make two plans.
fn values(name: &str) -> [&'static str; 2] {
    match name {
        "dir" | "path" | "logdir" => ["/tmp/wmlrun-a", "/tmp/wmlrun-b"],
        "nfiles" | "ndirs" => ["200", "300"],
        "filesizegamma" | "dirgamma" => ["0", "1500"],
        "directio" | "cached" | "sync" => ["0", "1"],
        "reuseit" => ["true", "false"],
        "file1" | "file2" | "actvidsname" | "passvidsname" => ["these", "those"],
        "memperthread" => ["4m", "8m"],
        _ if name.contains("size") || name == "workingset" || name == "bytes" => ["64k", "128k"],
        _ => ["3", "5"],
    }
}

/// The plan of a small set with one value more.
fn plan(name: &str, text: &str, variable: &str, value: &str) -> String {
    let mut sets: Vec<(String, String)> = vec![(variable.to_owned(), value.to_owned())];
    for small in ["nfiles", "ndirs"] {
        if variable != small && text.contains(&format!("\nset ${small}=")) {
            sets.push((small.to_owned(), "100".to_owned()));
        }
    }
    support::plan(name, text, Settings { sets, ..support::null(1) })
}

#[test]
fn every_variable_of_filebench_changes_the_plan() {
    let mut wrong = Vec::new();
    for (name, variables) in FILEBENCH {
        let (_, text) =
            PERSONALITIES.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no personality {name}"));
        // A script that has `$path` takes `$dir` through it.
        for variable in variables.split_whitespace().chain(["dir"]) {
            let plans = values(variable).map(|value| plan(name, text, variable, value));
            if let Some(said) = plans.iter().find(|plan| !plan.contains("\ntotal: ")) {
                wrong.push(format!("{name}: ${variable}: {said}"));
            } else if plans[0] == plans[1] {
                wrong.push(format!("{name}: ${variable} changes nothing"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names in a text that stand behind a `$`.
fn names(text: &str) -> BTreeSet<&str> {
    let end = |rest: &str| rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    text.split('$').skip(1).map(|rest| &rest[..end(rest)]).collect()
}

/// The variables that a line gives a value, as a definition (`set $`) or in a usage text (`set \$`).
fn given<'a>(text: &'a str, begins: &str) -> BTreeSet<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(begins));
    lines.map(|(_, rest)| rest.split('=').next().unwrap().trim()).collect()
}

#[test]
fn every_variable_is_in_a_usage_line_or_named_as_derived() {
    let mut wrong = Vec::new();
    for (name, text) in PERSONALITIES {
        let (head, body) = text.split_once("# dialect:").unwrap();
        let own: BTreeSet<&str> = body
            .lines()
            .filter_map(|line| line.strip_prefix("set $"))
            .map(|rest| rest.split('=').next().unwrap().trim())
            .collect();
        let derived = head.split_once("# Derived from these:").map_or(BTreeSet::new(), |(_, rest)| names(rest));
        let mut used = given(body, "set \\$");
        let listed = head.split_once("# Variables:").expect("a list of variables").1;
        let listed = listed.split("# Derived").next().unwrap();
        let listed: BTreeSet<&str> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("#   $"))
            .map(|rest| rest.split(' ').next().unwrap())
            .collect();
        assert!(used.remove("dir"), "{name}: no usage line of $dir");
        if used != listed {
            wrong.push(format!("{name}: usage lines have {used:?}, the head {listed:?}"));
        }
        let told: BTreeSet<&str> = used.union(&derived).copied().collect();
        if told != own {
            wrong.push(format!("{name}: sets {own:?}, and explains {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The source of a personality with its year, and its disclaimer about results of a consortium.
#[test]
fn every_header_names_its_source() {
    for (name, text) in PERSONALITIES {
        assert_eq!(text.lines().nth(1), Some("#"), "{name}: lists show the first line, which must be all of the title");
        let head = text.split_once("# dialect:").unwrap().0.replace("\n# ", " ");
        let source = head.lines().find_map(|line| line.split_once("Source: ")).map(|(_, rest)| rest);
        let source = source.unwrap_or_else(|| panic!("{name}: no source"));
        let year = |word: &str| word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
        let words: Vec<&str> = source.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        assert!(words.iter().any(|word| year(word)) || source.contains("2.00a"), "{name}: no year in `{source}`");
        if FILEBENCH.iter().any(|(n, _)| n == name) {
            assert!(source.contains("Filebench"), "{name}: `{source}`");
        }
        if ["specsfs97", "tpcso", "fileserver", "netsfs", "networkfs"].contains(name) {
            assert!(head.contains("not results of SPEC") || head.contains("not results of TPC"), "{name}");
        }
    }
}

/// What Filebench's script does in a pass: two opens, a file read whole and written whole, five, four and three times.
#[test]
fn compflow_demo_writes_as_often_as_it_reads() {
    let (_, text) = PERSONALITIES.iter().find(|(n, _)| *n == "compflow_demo").unwrap();
    let plan = plan("compflow_demo", text, "nthreads", "1");
    for (thread, times) in [("dowork1", 5), ("dowork2", 4), ("dowork3", 3)] {
        let repeat = format!("repeat {times} up to");
        let copy = plan.split(&repeat).nth(1).unwrap_or_else(|| panic!("{repeat}\n{plan}"));
        let copy = copy.split("end of").next().unwrap();
        let count = |kind: &str| copy.lines().filter(|line| line.contains(kind) && line.contains(thread)).count();
        assert_eq!((count(" openfile "), count(" readwholefile "), count(" writewholefile ")), (2, 1, 1), "{copy}");
    }
}

/// A script may read a variable that it does not set itself.
#[test]
fn the_command_line_can_define_a_variable() {
    let script = "define process name=p { thread name=t,instances=$n { flowop delay name=d,value=1 } }\n";
    let plan = |sets: &[(&str, &str)], code| {
        let output = crate::cmd::Wml::new().file("x.wml", script).args(["plan", "x.wml"]).sets(sets).run().exits(code);
        format!("{}{}", output.stdout, output.stderr)
    };
    assert!(plan(&[("n", "3")], 0).contains("3 threads"));
    assert!(plan(&[], 2).contains("nothing sets `$n`"));
}

/// Such a name is written in braces in a script, because `$n_` is `$n` with a `_`.
#[test]
fn the_command_line_can_set_a_variable_that_ends_in_an_underscore() {
    let script = "define process name=p { thread name=t,instances=${n_} { flowop delay name=d,value=1 } }\n";
    let call = crate::cmd::Wml::new().file("x.wml", script).args(["plan", "x.wml"]).sets(&[("n_", "3")]);
    let output = call.run().exits(0);
    assert!(output.stdout.contains("3 threads"), "{}", output.shown());
}

#[test]
fn foreach_names_the_value_in_force() {
    let script = "define process name=p { thread name=t { flowop delay name=d,value=1 } }\nforeach $q in 1,2 { echo \"q $q\" }\n";
    let call = crate::cmd::Wml::new().file("x.wml", script).args(["x.wml", "--engine", "null", "--runtime", "0.1"]);
    let output = call.sets(&[("q", "9")]).run();
    assert!(output.stderr.contains("iterating $q=9 instead of 1"), "{}", output.shown());
}
