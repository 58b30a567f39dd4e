//! Tests what other servers read: `JUnit` and GitHub's summaries, and Prometheus with its dashboard.

use crate::cmd::{binary, long, skip, stateless};
use crate::experiments::{Lab, SHORT};
use crate::history::write_history;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// Runs a Python program in the directory of a lab. `None` if Python lacks one of its packages.
fn python(lab: &Lab, program: &str) -> Option<String> {
    let run = |text: &str| Command::new("python3").args(["-c", text]).current_dir(lab.path(".")).output();
    let imports = "import junitparser, markdown_it, pandas";
    if !run(imports).is_ok_and(|output| output.status.success()) {
        skip("Python has no junitparser, markdown_it or pandas");
        return None;
    }
    let output = run(program).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

const READ_JUNIT: &str = "
import junitparser, sys
for file in ['night.xml', 'run.xml', 'ab.xml', 'suite.xml']:
    for suite in junitparser.JUnitXml.fromfile(file):
        print(file, suite.name, suite.tests, suite.failures, suite.skipped)
        for case in suite:
            print('  ' + case.name, *[type(of).__name__ + ' ' + (of.message or '') for of in case.result])
";

#[test]
fn verdicts_are_junit() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 33, 3, 0.7);
    let write = |name: &str, words: &str, codes: &[i32]| {
        let output = lab.command(words).output().unwrap();
        assert!(output.status.code().is_some_and(|code| codes.contains(&code)), "{words}: {output:?}");
        fs::write(lab.path(name), output.stdout).unwrap();
    };
    write("night.xml", "history check h --format junit", &[10]);
    write("run.xml", &format!("{SHORT} --quiet --fail-if ops<1 --fail-if r.latency.p50>1ns --format junit"), &[10]);
    lab.run(&format!("repeat {SHORT} --runs=2 --results=r1 --quiet"), 0);
    lab.run(&format!("repeat {SHORT} --runs=2 --results=r2 --quiet"), 0);
    write("ab.xml", "compare r1 r2 --format junit", &[0, 10, 11, 12]);
    write("suite.xml", "compare --tests r1 r2 --tolerance 90% --format junit", &[0, 10, 11]);
    let Some(text) = python(&lab, READ_JUNIT) else { return };
    assert!(
        text.contains("night.xml ops, night of 2026-02-05 2 1 0\n  mail Failure worse since 2026-02-03, -"),
        "{text}"
    );
    assert!(text.contains("run.xml x.wml 3 1 0\n"), "{text}");
    assert!(text.contains("\n  r.latency.p50 <= 1ns Failure not met"), "{text}");
    assert!(text.contains("\nab.xml ") && text.contains("\n  ops") && text.contains("\nsuite.xml "), "{text}");
}

/// The shell of the action, as GitHub runs it.
fn act(lab: &Lab, command: &str, unclear: &str) -> Output {
    let text = fs::read_to_string(docs("ci/action.yml")).unwrap();
    let script: String =
        text.split("run: |\n").nth(1).unwrap().lines().map(|line| format!("{}\n", line.trim())).collect();
    let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = stateless("bash");
    shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]).current_dir(lab.path("."));
    shell.envs([("PATH", path.as_str()), ("COMMAND", command), ("UNCLEAR", unclear)]);
    shell.env("GITHUB_STEP_SUMMARY", lab.path("summary.md")).env("GITHUB_OUTPUT", lab.path("output"));
    shell.output().unwrap()
}

#[test]
fn the_action_annotates_and_writes_the_summary() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 33, 3, 0.7);
    let output = act(&lab, "history check 'h'", "pass");
    assert_eq!(output.status.code(), Some(10), "{output:?}");
    let log = String::from_utf8_lossy(&output.stdout);
    let first = "<!--\n::error title=ops%2C night of 2026-02-05%3A mail::worse since 2026-02-03, -";
    assert!(log.starts_with(first), "{log}");
    assert_eq!(fs::read_to_string(lab.path("output")).unwrap(), "status=10\n");
    assert_eq!(fs::read_to_string(lab.path("summary.md")).unwrap(), log);
    let render = "import markdown_it; print(markdown_it.MarkdownIt('gfm-like', {'linkify': False}).render(open('summary.md').read()))";
    if let Some(html) = python(&lab, render) {
        let shown = html.split("-->").nth(1).unwrap();
        assert!(shown.contains("<strong>ops, night of 2026-02-05</strong> worse: 1 of 2 tests"), "{html}");
        assert!(shown.contains("verdict</th>") && !shown.contains("::error"), "{html}");
    }
    // Without a verdict it passes if it is to.
    write_history(&lab.path("one"), 31, 1, 0.7);
    assert_eq!(act(&lab, "history check one", "pass").status.code(), Some(0));
    assert_eq!(act(&lab, "history check one", "fail").status.code(), Some(11));
    assert!(fs::read_to_string(lab.path("summary.md")).unwrap().contains("::warning title="));
}

#[test]
fn results_are_frames_of_pandas() {
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs=2 --results=r --quiet"), 0);
    let folder = docs("").display().to_string();
    let program = format!(
        "import sys; sys.path.insert(0, {folder:?})\n\
        from frames import load\n\
        f = load('r')\n\
        ops = f.flowops.groupby('run')['ops'].sum()\n\
        assert len(f.runs) == 2 and len(load('r/runs/0001.json').runs) == 1\n\
        assert ops.equals(f.intervals.groupby('run')['ops'].sum())\n\
        counts = f.histograms.groupby(['run', 'flowop'])['count'].sum()\n\
        of = f.flowops[f.flowops.ops > 0].set_index(['run', 'flowop'])\n\
        assert counts.equals(of.loc[counts.index]['ops'].rename('count')), (counts, of)\n\
        top = f.histograms.groupby(['run', 'flowop'])['ns'].max()\n\
        assert (top >= of.loc[top.index]['latency_ns.max']).all() and (top < 1.02 * of.loc[top.index]['latency_ns.max'] + 1).all()\n\
        print(f.runs['state'].tolist())"
    );
    if let Some(text) = python(&lab, &program) {
        assert_eq!(text, "['complete', 'complete']\n");
    }
}

#[test]
fn nights_are_exported() {
    let lab = Lab::new();
    write_history(&lab.path("h"), 3, 0, 1.0);
    let csv = lab.run("history export h", 0);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "night,started,test,place,again,disturbed,conditions,latency.p99,ops");
    assert_eq!(lines.len(), 7);
    assert!(lines[1].starts_with("2026-01-01,,mail,/mnt/vol1,0,0,6.11,") && lines[1].ends_with(",9000"), "{csv}");
    let text = lab.run("history export h --format openmetrics", 0);
    let sample = "\nwmlrun_figure{metric=\"ops\",test=\"mail\",place=\"/mnt/vol1\"} 9000 1767225600\n";
    assert!(text.contains(sample) && text.ends_with("\n# EOF\n"), "{text}");
}

/// A Prometheus loads the export, and gives data for each panel of the dashboard.
#[test]
fn each_panel_of_the_dashboard_has_data() {
    if !long() {
        return;
    }
    if !crate::cmd::has("promtool") {
        return skip("promtool is missing");
    }
    let lab = Lab::new();
    write_history(&lab.path("h"), 60, 3, 0.7);
    fs::write(lab.path("nights.om"), lab.run("history export h --format openmetrics", 0)).unwrap();
    let run = |program: &str, words: &str| {
        let output = Command::new(program).args(words.split(' ')).current_dir(lab.path(".")).output().unwrap();
        assert!(output.status.success(), "{program} {words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run("promtool", "tsdb create-blocks-from openmetrics nights.om data");
    fs::write(lab.path("prometheus.yml"), "").unwrap();
    // A port that is free now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = port.to_string();
    let words = "--config.file=prometheus.yml --storage.tsdb.path=data --storage.tsdb.retention.time=50y";
    let mut server = Command::new("prometheus");
    server.args(words.split(' ')).arg(format!("--web.listen-address={address}")).current_dir(lab.path("."));
    let mut server = server.stderr(fs::File::create(lab.path("log")).unwrap()).spawn().unwrap();
    let dashboard: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(docs("ci/grafana.json")).unwrap()).unwrap();
    let query = |expression: &str| {
        // The last night of the history, at noon.
        let words = ["query", "instant", "--time=2026-03-04T12:00:00Z", &format!("http://{address}"), expression];
        Command::new("promtool").args(words).output().unwrap()
    };
    let is_up = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        query("vector(1)").status.success()
    });
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let expression = panel["targets"][0]["expr"].as_str().unwrap();
        for metric in ["ops", "latency.p99"] {
            let output = query(&expression.replace("$metric", metric).replace("$test", ".*"));
            found.push((expression.to_owned(), String::from_utf8(output.stdout).unwrap()));
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(is_up && found.len() == 8, "{}", fs::read_to_string(lab.path("log")).unwrap());
    for (expression, text) in found {
        let values: Vec<&str> = text.lines().filter(|line| line.contains(" => ")).collect();
        assert!(values.len() == 2 && !text.contains("NaN"), "{expression}: {text}");
    }
}
