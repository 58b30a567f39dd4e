//! Every script that is shipped: checked, planned, and run for a second on small files.

use std::time::Duration;

use crate::cmd::{Wml, memory, number};
use crate::scripts::{Script, examples, for_each, personalities, side_by_side};

/// Scripts that can't be run in a second on small files, each with the reason. They are checked and planned like all others.
const NOT_RUN: &[(&str, &str)] = &[];

fn all() -> Vec<Script> {
    personalities().into_iter().chain(examples()).collect()
}

#[test]
fn all_are_free_of_errors_and_warnings() {
    for_each(&all(), side_by_side(), |script| {
        let output = Wml::new().args(["check", &script.call]).run().exits(0);
        for word in ["error[", "warning["] {
            assert!(!output.shown().contains(word), "{}", output.shown());
        }
    });
}

#[test]
fn all_have_a_plan_that_stays_the_same() {
    for_each(&all(), side_by_side(), |script| {
        let plan = |seed| Wml::new().args(["plan", &script.call, "--seed", seed]).run().exits(0).stdout;
        let first = plan("1");
        assert!(first.lines().count() > 3, "{first}");
        assert_eq!(first, plan("2"), "the seed of the run changes no plan");
    });
}

#[test]
fn all_run() {
    for (name, _) in NOT_RUN {
        assert!(all().iter().any(|s| s.name == *name), "{name} is not shipped");
    }
    let run: Vec<_> = all().into_iter().filter(|s| NOT_RUN.iter().all(|(name, _)| *name != s.name)).collect();
    for_each(&run, side_by_side(), |script| {
        let values = [script.small(), script.few_threads(), script.buffered()].concat();
        let call = Wml::below(&memory()).args([&script.call, "--runtime", "1"]).sets(&values).result();
        let output = call.timeout(Duration::from_mins(1)).run().exits(0);
        let runs = output.result()["runs"].as_array().unwrap().clone();
        assert!(!runs.is_empty(), "no run in the result");
        for run in &runs {
            assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
            assert!(number(run, &["summary", "ops"]) > 0.0, "no operation\n{}", output.shown());
        }
        assert_eq!(output.left(), [""; 0], "left behind");
    });
}

/// Without a disk: the whole way from text to report, and files of full size that nobody has to make.
#[test]
fn all_run_without_a_disk() {
    for_each(&all(), side_by_side(), |script| {
        let values = [script.few_threads(), script.small()].concat();
        let call = Wml::new().args([&script.call, "--runtime", "1", "--engine", "null"]).sets(&values).result();
        let output = call.timeout(Duration::from_mins(1)).run().exits(0);
        let runs = output.result()["runs"].as_array().unwrap().clone();
        assert!(!runs.is_empty() && runs.iter().all(|run| run["engine"] == "null"));
        assert_eq!(output.left(), [""; 0], "a run without a disk makes nothing");
    });
}

#[test]
fn a_file_of_the_same_name_goes_before_a_shipped_one() {
    let own = "define process name=mine { thread name=t { flowop delay name=d,value=1 } }\n";
    let output = Wml::new().file("varmail.wml", own).args(["plan", "varmail"]).run().exits(0);
    assert!(output.stdout.contains("mine"), "{}", output.stdout);
    let output = Wml::new().args(["plan", "varmail.wml"]).run().exits(0);
    assert!(output.stdout.contains("filereader"), "{}", output.stdout);
}
