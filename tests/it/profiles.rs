//! Tests of profiles: the variables that they set, and the files of a batch, which replace no other.

use crate::cmd::{Output, Wml, binary};
use std::fs;
use std::process::Command;

/// A personality that reads a variable which it does not set.
const OWN: &str = "define fileset name=s,path=$dir,entries=3,dirwidth=20,size=$mysize,prealloc\n\
    define process name=p { thread name=t { flowop statfile name=st,filesetname=s } }\n";

const PROFILE: &str =
    "DEFAULTS {\n runtime = 1;\n dir = files;\n}\nCONFIG one {\n personality = own;\n mysize = 4k;\n}\n";

/// Runs a batch on the null engine.
fn batch(wml: Wml, words: &str) -> Output {
    let fixed = ["batch", "p.prof", "--engine", "null", "--runtime", "0.1", "--no-quiesce", "--mkdir"];
    wml.args(fixed).args(words.split_whitespace().collect::<Vec<_>>()).run()
}

#[test]
fn a_personality_may_read_what_only_the_profile_sets() {
    let output = batch(Wml::new().file("own.f", OWN).file("p.prof", PROFILE), "").exits(0);
    assert!(output.stdout.contains("3 files, 12.0 KiB"), "{}", output.shown());
    // Nothing sets this one.
    let profile = PROFILE.replace("mysize", "othersize");
    let output = batch(Wml::new().file("own.f", OWN).file("p.prof", &profile), "").exits(2);
    assert!(output.stderr.contains("nothing sets `$mysize`"), "{}", output.stderr);
}

#[test]
fn a_loaded_script_may_read_what_is_set_after_it() {
    let run = |script: &str| {
        let wml = Wml::new().file("own.f", OWN).file("x.f", script);
        wml.args(["x.f", "--engine", "null", "--runtime", "0.1", "--no-quiesce"]).run()
    };
    run("load own\nset $mysize=4k\nrun 1\n").exits(0);
    let output = run("load own\nset $othersize=4k\nrun 1\n").exits(2);
    assert!(output.stderr.contains("nothing sets `$mysize`"), "{}", output.stderr);
}

#[test]
fn the_joined_result_replaces_no_file_of_others() {
    let wml = || Wml::new().file("own.f", OWN).file("p.prof", PROFILE).file("mine.txt", "mine\n");
    let output = batch(wml(), "--json mine.txt").exits(3);
    assert!(output.stderr.contains("mine.txt") || output.stderr.contains("has other content"), "{}", output.stderr);
    assert_eq!(fs::read_to_string(output.dir().join("mine.txt")).unwrap(), "mine\n");
    let output = batch(wml(), "--json mine.txt --force").exits(0);
    assert!(fs::read_to_string(output.dir().join("mine.txt")).unwrap().contains("\"wmlrun.result/1\""));
}

#[test]
fn a_report_has_the_name_of_the_workload_and_a_redacted_one_no_path() {
    for (words, script) in [("", "/thisrun.f"), ("--redact", "(script)")] {
        let output = batch(Wml::new().file("own.f", OWN).file("p.prof", PROFILE), words).exits(0);
        // A long path stands on a line of its own.
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let heading = text.as_str();
        let path = heading.strip_prefix("one, ").and_then(|rest| rest.split_once(": complete after "));
        assert!(path.is_some_and(|(path, _)| path.ends_with(script)), "{}", output.shown());
    }
}

#[test]
fn the_script_of_a_workload_measures_it() {
    let output = batch(Wml::new().file("own.f", OWN).file("p.prof", PROFILE), "--warmup 0.1").exits(0);
    let home = fs::read_dir(output.dir().join("stats")).unwrap().next().unwrap().unwrap().path();
    assert!(home.join("one/stats.one.out").is_file() && home.join("one/stats.one.xml").is_file());
    let script = fs::read_to_string(home.join("one/thisrun.f")).unwrap();
    let measured = "create filesets\nstats directory \".\"\ncreate processes\nwarmup 0.1\nstats clear\nsleep 0.1\nstats snap\n\
        stats dump \"stats.one.out\"\nstats xmldump \"stats.one.xml\"\nshutdown processes\nquit\n";
    assert!(script.ends_with(measured), "{script}");
}

/// What experiments have, such as repeats, a budget and `--resume`, profiles have as one.
#[test]
fn a_profile_is_an_experiment_with_a_cell_for_each_workload() {
    let two = PROFILE.to_owned() + "CONFIG two {\n personality = own;\n mysize = 8k;\n}\n";
    let wml = || Wml::new().file("own.f", OWN).file("p.prof", &two).folder("a").folder("b");
    let plan = wml().args(["experiment", "p.prof", "--plan"]).run().exits(0).stdout;
    for words in ["workload=one", "  --runtime 1s --dir files --set mysize=4k own.f", "--set mysize=8k own.f"] {
        assert!(plan.contains(words), "{plan}");
    }
    let fixed = ["experiment", "p.prof", "--engine", "null", "--no-quiesce", "--runtime", "0.05", "--repeats", "2"];
    let sides = ["--side", "x=--dir a", "--side", "y=--dir b", "--results", "r", "--quiet"];
    let output = wml().args(fixed).args(sides).run().exits(0);
    assert!(output.stdout.contains("8 runs in 4 cells."), "{}", output.shown());
    // More repeats are added to it.
    let again = ["experiment", "--resume", "r", "--repeats", "3", "--quiet"];
    let resumed = Command::new(binary()).args(again).current_dir(output.dir()).output().unwrap();
    let shown = String::from_utf8_lossy(&resumed.stdout);
    assert!(resumed.status.success() && shown.contains("12 runs in 4 cells."), "{shown}");
}

#[test]
fn the_joined_result_is_not_in_the_tree_of_a_file_set() {
    let wml = Wml::new().file("own.f", OWN).file("p.prof", PROFILE).folder("files").folder("files/s");
    let fixed = ["batch", "p.prof", "--runtime", "0.1", "--no-quiesce", "--json", "files/s/x.json"];
    let output = wml.args(fixed).run().exits(3);
    assert!(output.stderr.contains("in the tree of the file set `s`"), "{}", output.stderr);
    assert!(!output.dir().join("files/s/00000001").exists(), "{}", output.shown());
}

#[test]
fn names_of_a_batch_are_no_names_of_its_workloads() {
    let profile = PROFILE.replace("CONFIG one", "CONFIG index.html");
    let output = batch(Wml::new().file("own.f", OWN).file("p.prof", &profile), "").exits(2);
    assert!(output.stderr.contains("`index.html` can't name a directory"), "{}", output.stderr);
    // A personality of the name that the script of the workload has in its directory.
    let profile = PROFILE.replace("personality = own", "personality = thisrun");
    let wml = Wml::new().file("thisrun.f", OWN).file("p.prof", &profile);
    let output = batch(wml, "--results r --trace result.json:10").exits(0);
    let found = |name: &str| {
        let dir = fs::read_dir(output.dir().join("r")).unwrap().next().unwrap().unwrap().path();
        let dir =
            if dir.join("one").is_dir() { dir } else { fs::read_dir(dir).unwrap().next().unwrap().unwrap().path() };
        fs::read_to_string(dir.join("one").join(name)).unwrap_or_default()
    };
    assert_eq!(found("thisrun-personality.f"), OWN);
    assert!(found("thisrun.f").contains("load \"thisrun-personality\""), "{}", found("thisrun.f"));
    assert!(found("result.json").contains("\"wmlrun.result/1\""), "{}", found("result.json"));
    // The result has the digest of the personality, whose text is not in the script.
    let result: serde_json::Value = serde_json::from_str(&found("result.json")).unwrap();
    let loaded = result["runs"][0]["loaded_scripts"].as_array().unwrap();
    let digest = Command::new("sha256sum").arg(output.dir().join("thisrun.f")).output().unwrap().stdout;
    let digest = String::from_utf8(digest).unwrap();
    assert!(loaded.len() == 1 && digest.starts_with(loaded[0].as_str().unwrap()), "{digest} {loaded:?}");
}
