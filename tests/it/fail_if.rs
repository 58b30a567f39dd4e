//! Tests limits (`--fail-if`) on runs, repeats and experiments: met, not met or unclear, with their exit statuses.

use crate::cmd::squeezed;
use crate::experiments::{Lab, PACED, SHORT, paced, valid};
use serde_json::Value;
use std::fs;

#[test]
fn a_run_keeps_a_limit_or_does_not() {
    let lab = Lab::new();
    for (limit, code, said) in [
        ("r.latency.p99>1d", 0, "\nlimit r.latency.p99 <= 1d: met: "),
        ("ops<1", 0, "\nlimit ops >= 1: met: "),
        ("r.latency.mean>=0ns", 10, "\nlimit r.latency.mean < 0ns: not met: "),
        ("response.p99>1s", 2, "no thread of the script is an open loop"),
        ("rr.latency.p99>1s", 2, "did you mean `r.latency.p99`?"),
        ("r.p99>1s", 2, "did you mean `r.latency.p99`?"),
        ("r.latency.p99>1", 2, "give `1` a unit"),
        ("ops", 2, "expected a metric"),
    ] {
        let said_by_run = lab.run(&format!("{SHORT} --fail-if={limit}"), code);
        assert!(said_by_run.contains(said), "{limit}: {said_by_run}");
    }
    // A hundred operations have none beyond their percentile.
    fs::write(lab.path("x.wml"), paced()).unwrap();
    let words = format!("{PACED} --fail-if=r.latency.p99>1d --fail-if=ops<1 --quiet --json=r.json");
    let text = squeezed(&lab.run(&words, 11));
    assert!(text.contains("; the percentile has 1 operation beyond it, and needs 100"), "{text}");
    let document: Value = serde_json::from_slice(&fs::read(lab.path("r.json")).unwrap()).unwrap();
    valid(&document);
    let limits = &document["runs"][0]["limits"];
    assert_eq!((&limits[0]["verdict"], &limits[1]["verdict"]), (&"unclear".into(), &"met".into()));
    for format in ["text", "markdown"] {
        let report = lab.run(&format!("report r.json --format={format}"), 0);
        assert!(squeezed(&report).contains("limit ops"), "{report}");
    }
    lab.run("report r.json -o page.html", 0);
    assert!(fs::read_to_string(lab.path("page.html")).unwrap().contains(">ops &gt;= 1"));
}

#[test]
fn an_experiment_keeps_its_limits_in_its_folder() {
    let lab = Lab::new();
    let limits = "--fail-if=ops<0 --fail-if=r.latency.mean>=0ns";
    let text = squeezed(&lab.run(&format!("repeat {SHORT} --runs=3 --results=r {limits}"), 10));
    assert!(text.contains("Limit r.latency.mean < 0ns: not met: "), "{text}");
    for (words, verdicts) in [
        ("repeat --resume=r --format=json --quiet", vec!["met", "not_met"]),
        (
            "sweep x.wml --engine=null --no-quiesce --runtime=0.1 --repeats=3 --vary=n=1,2 --fail-if=ops>=0 --format=json --quiet",
            vec!["not_met", "not_met"],
        ),
    ] {
        let found: Value = serde_json::from_str(&lab.run(words, 10)).unwrap();
        valid(&found);
        let limits = found["limits"].as_array().unwrap();
        assert_eq!(
            limits.iter().map(|limit| limit["verdict"].as_str().unwrap()).collect::<Vec<_>>(),
            verdicts,
            "{words}"
        );
    }
    lab.run("report r -o page.html", 0);
    assert!(fs::read_to_string(lab.path("page.html")).unwrap().contains(">r.latency.mean &lt; 0ns"));
    // A cell without the metric has no limit, but one of them must have it.
    let other =
        fs::read_to_string(lab.path("x.wml")).unwrap().replace("name=r,", "name=q,").replace("target=r", "target=q");
    fs::write(lab.path("y.wml"), other).unwrap();
    fs::write(
        lab.path("f.toml"),
        "repeats = 2\n[[factor]]\nname = \"s\"\nlevels = [{name=\"x\",script=\"x.wml\"},\
        {name=\"y\",script=\"y.wml\"}]\n",
    )
    .unwrap();
    let words = "experiment f.toml --engine=null --no-quiesce --runtime=0.1";
    let text = lab.run(&format!("{words} --fail-if=q.ops>=0 --format=json --quiet"), 10);
    let found: Value = serde_json::from_str(&text).unwrap();
    valid(&found);
    assert_eq!((found["limits"].as_array().unwrap().len(), &found["limits"][0]["arm"]), (1, &"s=y".into()));
    assert!(lab.run(&format!("{words} --fail-if=z.ops>=0"), 2).contains("no flowop `z`"));
}
