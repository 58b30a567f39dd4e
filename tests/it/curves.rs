//! Tests `wmlrun sweep`, `compare --curve` and `compare --tests`: load curves with their peak, knee and overall response
//! time, and tests of two sides.

use crate::cmd::{Wml, squeezed};
use crate::experiments::{Lab, SCRIPT, valid};
use serde_json::Value;

/// The curve of a published report (SFS 2.0), with its overall response time of 5.4 ms.
const CURVE: &str = "# ops/s ms\n484 2.2\n982 2.7\n1979 3.1\n3011 3.7\n4000 4.0\n4997 4.6\n5987 5.0\n6955 5.4\n7934 6.1\n8500 6.8\n\
    9032 7.8\n9521 8.6\n10046 9.7\n10595 11.6\n10919 13.2\n10942 15.5\n";

fn ort(curve: &str, words: &[&str]) -> Wml {
    Wml::new().file("curve.txt", curve).args(["ort", "curve.txt"]).args(words.iter().copied())
}

#[test]
fn a_published_curve_has_its_overall_response_time() {
    let output = ort(CURVE, &["--method", "sfs2"]).run().exits(0);
    let last = output.stdout.lines().last().unwrap();
    assert_eq!(last, "overall response time 5.37 by sfs2, peak 10942");
    let output = ort("448 1.6\n906 1.7\n1372 -\n1825 1.9\n", &["--method", "sfs3", "--format", "json"]).run().exits(0);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    let huge = ort("1 2\n1e300 4\n", &["--method", "sfs2"]).run().exits(0).stdout;
    assert!(huge.ends_with("overall response time 3.00 by sfs2, peak 1e300\n"), "{huge}");
    let slow = ort("1e308 1.2e308\n1.7e308 1.7e308\n", &[]).run().exits(0).stdout;
    assert!(slow.contains("overall response time 9.") && !slow.contains("inf"), "{slow}");
    valid(&found);
    assert_eq!((&found["method"], &found["peak"]), (&"sfs3".into(), &1825.0.into()));
    assert_eq!((found["points"].as_array().unwrap().len(), &found["points"][2]["response"]), (4, &Value::Null));
    // 448·1.6/2 + 458·1.65 + 919·1.8, over the peak.
    assert!((found["ort"].as_f64().unwrap() - 1.516_877).abs() < 1e-5, "{found}");
}

#[test]
fn a_file_that_is_not_a_curve_is_an_error() {
    for curve in ["", "1\n", "a b\nc d\n", "1 2\n3 x\n", "-1 2\n", "0 1\n", "5 -\n", "inf 1\n", "1,200,3.5\n"] {
        let output = ort(curve, &[]).run().exits(2);
        assert!(output.stderr.contains("curve.txt") && output.stderr.contains("help"), "{curve:?}: {}", output.stderr);
    }
}

/// An operation of the NFS mix is one request, however many calls it makes: the curve has their rate, and the mean of
/// the times of each kind, weighted by their number.
#[test]
fn the_curve_of_the_nfs_mix_counts_nfs_operations() {
    let script = Wml::new().args(["show", "specsfs97"]).run().exits(0).stdout;
    let commit = "  flowop fsync name=fsync,fd=1\n";
    assert!(script.contains(commit), "{script}");
    let script = script.replace(commit, "  flowop fsync name=fsync,fd=1\n  flowop delay name=slow,value=0.02\n");
    let lab = Lab::new();
    std::fs::write(lab.path("sfs.wml"), &script).unwrap();
    let sweep = "sweep sfs.wml --vary load=100,300 --repeats 1 --results out --format json --engine null --runtime 1";
    let output =
        lab.command(&format!("{sweep} --set nfiles=200 --set nlinks=20 --no-quiesce --seed 1")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    valid(&found);
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"));
    for point in found["points"].as_array().unwrap() {
        let read = |run: &str| std::fs::read_to_string(lab.path(&format!("out/runs/{run}.json"))).unwrap();
        let runs = ["0001", "0002"].map(|run| serde_json::from_str::<Value>(&read(run)).unwrap()["runs"][0].clone());
        let level = point["level"].as_str().unwrap();
        let of_load = |run: &&Value| run["variables"]["load"].to_string().trim_matches('"') == level;
        let run = runs.iter().find(of_load).unwrap();
        // The last step of each kind: its response time is that of the whole operation.
        let mut last = std::collections::BTreeMap::new();
        for flowop in run["flowops"].as_array().unwrap().iter().filter(|flowop| flowop["response_ns"].is_object()) {
            let kind = flowop["name"].as_str().unwrap().split('.').next().unwrap();
            last.insert(kind, (number(&flowop["ops"]), flowop["response_ns"]["mean"].as_f64().unwrap_or(0.0)));
        }
        let operations: f64 = last.values().map(|(count, _)| count).sum();
        let mean = last.values().map(|(count, mean)| count * mean).sum::<f64>() / operations;
        assert!(last.len() >= 10 && last["commit"].1 > 2e7, "{last:?}");
        let response = number(&point["response"]["value"]);
        assert!((response / mean - 1.0).abs() < 1e-9, "{response} is not {mean}: {last:?}");
        let seconds = number(&run["measured_seconds"]);
        assert!((number(&point["requests"]["value"]) * seconds / operations - 1.0).abs() < 1e-6, "{point}");
        assert!(number(&point["rate"]["value"]) > 1.2 * number(&point["requests"]["value"]), "{point}");
    }
    assert!(number(&found["overall"]["peak"]) < 400.0, "{found}");
}

/// The figures of fourteen tests on two file systems, as published.
const TESTS: &str = "test,ZFS,UFS\nallocate,486.0,145.9\nallocate O_DSYNC,4.56,0.87\nallocate with fsync,27.3,50.1\n\
    read cached,674.8,612.9\nread,-,17.5\nrewrite O_DSYNC,2.21,0.85\nrewrite cached,204.3,257.2\nlarge file,698.2,298.3\n\
    random write,42.8,100.4\nsmall write,0.118,0.116\nthreads,0.427,0.074\nmixed,264.8,266.8\nrandom read,-,0.117\n\
    random read cached,56.4,386.7\n";

#[test]
fn the_wins_of_a_published_comparison_are_counted() {
    let wins = |text: &str, words: &[&str]| {
        Wml::new().file("tests.csv", text).args(["wins", "tests.csv"]).args(words.iter().copied())
    };
    let output = wins(TESTS, &[]).run().exits(0);
    let expected = "\nZFS is better in 6 (mean factor 3.40), UFS is better in 4 (mean factor 3.07),\n  draws 2, unknown 2; a draw \
        is a factor below 1.05\n";
    assert!(output.stdout.ends_with(expected), "{}", output.stdout);
    let output = wins("x 2 1\ny 3 -\n", &["--lower-is-better", "--format", "json"]).run().exits(0);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    valid(&found);
    assert_eq!((&found["a"], &found["tests"][0]["outcome"]["winner"]), (&"A".into(), &"b".into()));
    assert_eq!((&found["tests"][1]["b"], &found["tests"][1]["outcome"]), (&Value::Null, &Value::Null));
    for text in ["", "x 1\n", "test a b\n", "x 1 2\ny z 3\n", "x,9,120,9,480\n"] {
        let output = wins(text, &[]).run().exits(2);
        assert!(output.stderr.contains("tests.csv") && output.stderr.contains("help"), "{text:?}: {}", output.stderr);
    }
}

/// A suite before and after: a table with a line for each test.
#[test]
fn results_of_two_directories_are_compared_test_by_test() {
    let output = |rate: u32, latency: u32| {
        format!("1.0: Per-Operation Breakdown\nread 5ops/s\n1.0: IO Summary: 10 ops {rate} ops/s {latency}ms/op\n")
    };
    let wins = |words: &[&str]| {
        let old = Wml::new().file("old/mail.out", &output(100, 4)).file("old/web.out", &output(50, 8));
        let both =
            old.file("new/mail.txt", &output(150, 2)).file("new/web.txt", &output(51, 8)).file("new/suite.f", "x");
        both.args(["wins"]).args(words.iter().copied())
    };
    // Several runs of a test show its variation.
    let mut call = Wml::new();
    for (side, rate) in [("old", 100), ("new", 150)] {
        for n in 0..3 {
            call = call.file(&format!("{side}/mail/{n}.out"), &output(rate + n, 4));
        }
    }
    let repeated = call.args(["wins", "old", "new"]).run().exits(0).stdout;
    assert!(repeated.contains("mail  101.0  151.0  new       1.50\n") && !repeated.contains('?'), "{repeated}");
    let output = wins(&["old", "new"]).run().exits(0);
    let shown = "ops: I/O operations per second\n\n\
        test    old    new  better  factor\n\
        mail  100.0  150.0  new?      1.50\n\
        web    50.0   51.0  draw?     1.02\n\
        \nold is better in 0, new is better in 1 (mean factor 1.50), draws 1; a draw is a\n  \
        factor below 1.05; 2 with `?` may be chance (95 % interval of the ratio)\n";
    assert_eq!(output.stdout, shown);
    let notes = [
        "note: new: not a result: suite.f",
        "note: the conditions of 2 tests are unknown: ",
        "note: one run does not show its variation",
    ];
    assert!(notes.iter().all(|note| output.stderr.contains(note)), "{}", output.stderr);
    let lower = wins(&["old", "new", "--metric", "latency.mean"]).run().exits(0).stdout;
    assert!(lower.starts_with("latency.mean (lower is better): mean latency of an operation\n"), "{lower}");
    assert!(lower.contains("mail  4.00 ms  2.00 ms  new?      2.00\n"), "{lower}");
    for (words, says) in [
        (&["old"][..], "old is a directory"),
        (&["old", "none"], "none can't be read"),
        (&["old", "new", "--metric", "latency.p99"], "no result has `latency.p99`"),
        (&["old", "new", "--lower-is-better"], "is not for results"),
        (&["old", "--metric", "ops"], "give B too"),
    ] {
        let said = wins(words).run().exits(2).stderr;
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

/// More than two sides: the best of each line, and the improvements over two of them.
#[test]
fn results_of_three_directories_are_compared_test_by_test() {
    let compare = |words: &[&str]| {
        let mut call = Wml::new();
        for (side, rates) in [("new", [298, 300, 302]), ("old", [199, 200, 201]), ("base", [299, 200, 101])] {
            for (n, rate) in rates.into_iter().enumerate() {
                let text = format!(
                    "1.0: Per-Operation Breakdown\nread 5ops/s\n1.0: IO Summary: 10 ops {rate} ops/s {}ms/op\n",
                    600 / rate
                );
                call = call.file(&format!("{side}/mail/{n}.out"), &text);
            }
        }
        call.args(["compare", "--tests", "new", "old", "base"]).args(words.iter().copied())
    };
    let shown = compare(&["--over", "old,base"]).run().exits(0);
    let expected = "ops: I/O operations per second\n\n\
        test    new    old   base  best  factor\n\
        mail  300.0  200.0  200.0  new?    1.50\n\n\
        improvement of new in ops\n\n\
        test  over old  over base\n\
        mail      50 %      50 %?\n\
        ?: may be chance (95 % interval of the ratio)\n\n\
        best: new in 1 (mean factor 1.50), old in 0, base in 0, draws 0; a draw is a\n  factor below 1.05; 1 with `?` may be \
        chance (95 % interval of the ratio)\n";
    assert_eq!(shown.stdout, expected);
    assert!(shown.stderr.contains("check that the sides had the same files"), "{}", shown.stderr);
    let latex = compare(&["--over", "old,base", "--format", "latex"]).run().exits(0).stdout;
    assert!(
        latex.contains("\\toprule\ntest & over old & over base \\\\\n\\midrule\nmail & 50 \\% & 50 \\%? \\\\\n"),
        "{latex}"
    );
    let found: Value =
        serde_json::from_str(&compare(&["--over", "old", "--format", "json"]).run().exits(0).stdout).unwrap();
    valid(&found);
    let improved = &found["table"]["rows"][0]["improvements"];
    assert_eq!((&improved[0]["of"], &improved[0]["factor"]), (&"new".into(), &1.5.into()), "{found:#}");
    assert_eq!((&improved[1]["of"], &improved[1]["factor"]), (&"base".into(), &1.0.into()), "{found:#}");
    for (words, says) in [
        (&["--over", "odl"][..], "no side is named `odl`"),
        (&["--over", "new,old,base"], "`--over` has all sides"),
        (&["--tolerance", "5%"], "is not for more than two sides"),
        (&["--format", "csv"], "their formats are `text`, `markdown`, `latex`, `json`"),
        (&["--improvement", "both"], "--over"),
    ] {
        let said = compare(words).run().exits(2).stderr;
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn a_suite_has_a_verdict_on_each_test() {
    let call = |words: &[&str]| {
        let mut call = Wml::new();
        for (side, mail) in [("old", 100), ("new", 50)] {
            for n in 0..4 {
                let output = |rate: u32| {
                    let rate = 100 * rate + n;
                    format!("1.0: Per-Operation Breakdown\nread 5ops/s\n1.0: IO Summary: 10 ops {rate} ops/s 4ms/op\n")
                };
                call = call.file(&format!("{side}/mail/{n}.out"), &output(mail));
                call = call.file(&format!("{side}/db/{n}.out"), &output(70));
            }
        }
        let first = "1.0: Per-Operation Breakdown\nread 5ops/s\n1.0: IO Summary: 10 ops 1 ops/s 4ms/op\n";
        call.file("old/web.out", first).args(["wins", "old", "new"]).args(words.iter().copied())
    };
    let output = call(&["--tolerance", "10%"]).run().exits(10);
    let rows = "test     old    new  B/A                   verdict\n\
        db     7,001  7,001  1.000 [0.999, 1.000]  same\n\
        mail  10,001  5,001  0.500 [0.500, 0.500]  worse\n\
        web        -      -  -                     not compared\n";
    assert!(output.stdout.contains(rows), "{}", output.shown());
    let ending = "\nworse: 1 of 3 tests is worse by more than 10.0 % (`mail`), 1 is not compared\n  (`web`); ";
    assert!(output.stdout.contains(ending), "{}", output.shown());
    assert!(output.stderr.contains("note: `web`: new has no complete run"), "{}", output.shown());
    let found: Value =
        serde_json::from_str(&call(&["--tolerance", "60%", "--format", "json"]).run().exits(11).stdout).unwrap();
    valid(&found);
    found["tests"].as_array().unwrap().iter().map(|test| &test["comparison"]).filter(|c| !c.is_null()).for_each(valid);
    assert_eq!((&found["verdict"], &found["level"]), (&"unclear".into(), &0.975.into()));
    let tests = found["tests"].as_array().unwrap();
    let of = |n: usize| (&tests[n]["name"], &tests[n]["verdict"], &tests[n]["comparison"]["verdict"]);
    assert_eq!(of(1), (&"mail".into(), &"same".into(), &"same".into()));
    assert_eq!(tests[2]["not_compared"], "new has no complete run");
    let output = call(&["--tolerance", "60%", "--metric", "latency.mean"]).run().exits(11);
    assert!(output.stderr.contains("note: `db`, `mail`: the 4 values of A are equal"), "{}", output.shown());
    call(&["--noise-floor", "5%"]).run().exits(2);
    // A directory whose results are deeper is no test that passes, even if both sides have it.
    let deeper = call(&["--tolerance", "60%"]).file("old/nightly/x/a.out", "x").file("new/nightly/x/a.out", "x");
    let output = deeper.run().exits(11);
    assert!(output.stdout.contains("2 are not\n  compared (`web`, `nightly`)"), "{}", output.shown());
}

/// What a sweep prints.
fn sweep(words: &str, code: i32) -> String {
    let call = Wml::new().file("x.wml", SCRIPT);
    let common = "--engine null --no-quiesce --runtime 60 --set reads=200000 --results r --quiet";
    let output = call.args(["sweep", "x.wml"]).args(words.split_whitespace()).args(common.split(' ')).run().exits(code);
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn a_sweep_has_a_point_for_each_value() {
    let text = sweep("--vary n=1,2,3 --repeats 2 --format json", 0);
    let found: Value = serde_json::from_str(&text).unwrap();
    valid(&found);
    assert_eq!((&found["schema"], &found["factor"]), (&"wmlrun.sweep/1".into(), &"n".into()));
    let points = found["points"].as_array().unwrap();
    let levels: Vec<&str> = points.iter().map(|p| p["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["1", "2", "3"]);
    assert!(points.iter().all(|p| p["runs"] == 2 && p["failed"] == 0 && p["rate"]["value"].as_f64().unwrap() > 0.0));
    let peak = points.iter().map(|p| p["rate"]["value"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(found["overall"]["peak"].as_f64(), Some(peak));
    for (format, says) in [("text", "overall response time"), ("markdown", "| n | runs |"), ("csv", "x.wml,n,1,1,0,,")]
    {
        let text = sweep(&format!("--vary n=1,2 --repeats 1 --in-order --format {format}"), 0);
        let words = squeezed(&text);
        assert!(words.contains(says), "{format}: {text}");
    }
}

/// An open loop, each request of which takes a millisecond at least.
pub(crate) const OPEN: &str = "set $rate=10\ndefine fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    define process name=p { thread name=t,memsize=4k,rate=$rate {\n\
    flowop read name=r,filesetname=data,iosize=4k flowop delay name=d,value=0.001 } }\n";

#[test]
fn a_rate_is_varied_in_parts_of_the_measured_peak() {
    let open = |words: &str| {
        let call = Wml::new().file("open.wml", OPEN).args(["sweep", "open.wml", "--vary"]).args(words.split(' '));
        call.args(["--engine", "null", "--no-quiesce", "--runtime", "0.1", "--repeats", "1", "--format", "json"])
    };
    let output = open("rate=10%..30%").run().exits(0);
    assert!(output.stderr.contains("peak: rate=100 offers "), "{}", output.stderr);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    let levels: Vec<f64> =
        found["points"].as_array().unwrap().iter().map(|p| p["level"].as_str().unwrap().parse().unwrap()).collect();
    let peak = levels[0] * 10.0;
    assert!(levels.len() == 3 && peak > 10.0 && peak <= 1010.0, "{levels:?}");
    assert!((levels[2] / peak - 0.3).abs() < 0.1, "{levels:?}");
    for (words, says) in [
        ("rate=10%,50", "both values and percentages"),
        ("rate=10% --before true", "between commands"),
        ("rate=50% --launch no-such-program", "can't start `no-such-program`"),
        ("rate=50% --set rate=1", "has no effect"),
    ] {
        let code = if words.contains("launch") { 3 } else { 2 };
        let output = open(words).run().exits(code);
        assert!(output.stderr.contains(says), "{words}: {}", output.stderr);
    }
    let total = OPEN.replace("memsize=4k,rate=", "memsize=4k,instances=3,totalrate=");
    let output = open("rate=50%,100%").file("open.wml", &total).run().exits(0);
    assert!(output.stderr.contains("peak: rate=100 offers "), "{}", output.stderr);
    let closed = OPEN.replace(",rate=$rate", "").replace("0.001", "$rate");
    let output = open("rate=50%").file("open.wml", &closed).run().exits(2);
    let says = ["is not an open loop", "or add `rate=` or `totalrate=`"];
    assert!(says.iter().all(|text| output.stderr.contains(text)), "{}", output.stderr);
}

/// A workload that does nothing before the end of its run if it waits for long enough.
const WAITS: &str = "set $wait=0\ndefine fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
    define process name=p { thread name=t {\n\
    flowop delay name=d,value=$wait flowop read name=r,filesetname=data,iosize=4k\n\
    flowop finishoncount name=end,value=1000,target=r } }\n";

/// What a sweep of this workload prints.
fn waiting(words: &str, code: i32) -> String {
    let call = Wml::new().file("w.wml", WAITS).args(["sweep", "w.wml"]).args(words.split_whitespace());
    let common = "--engine null --no-quiesce --runtime 0.5 --results r --quiet";
    let output = call.args(common.split(' ')).run().exits(code);
    format!("{}{}", output.stdout, output.stderr)
}

/// However short the budget is, each value has one run.
#[test]
fn a_sweep_that_the_budget_ends_is_not_complete() {
    let text = sweep("--vary n=1,2 --repeats 10000 --budget 1 --format json", 11);
    let found: Value = serde_json::from_str(&text).unwrap();
    let points = found["points"].as_array().unwrap();
    let made: u64 = points.iter().map(|point| point["runs"].as_u64().unwrap()).sum();
    assert!((2..20_000).contains(&made) && found["planned_runs"] == 20_000, "{text}");
    let text = sweep("--vary n=1,2 --repeats 10000 --budget 1", 11);
    // Of a disturbed sweep the answer says first that it must not be used.
    let words = squeezed(&text);
    let begins = ["n is 1, 2. not complete: ", "n is 1, 2. not usable; as measured, not complete: "];
    assert!(begins.iter().any(|begin| words.contains(begin)) && words.contains(" of 20,000 runs, ended by "), "{text}");
    // Runs that fail are part of the budget too, and a curve without points is a failure in any case.
    let text = waiting("--vary wait=9 --repeats 10000 --budget 0.5", 1);
    let words = squeezed(&text);
    assert!(words.contains(" of 10,000 runs, ended by ") && words.contains("; no run has a result"), "{text}");
}

/// A curve as text has rates and response times, whatever the metric of its page.
#[test]
fn a_metric_without_effect_on_a_curve_is_refused() {
    let lab = Lab::new();
    lab.run("sweep x.wml --vary n=1,2 --repeats 1 --runtime 0.1 --engine null --results curve", 0);
    for format in ["text", "json", "csv", "markdown"] {
        let text = lab.run(&format!("report curve --format {format} --metric latency.p99"), 2);
        assert!(text.contains(&format!("`--metric` has no effect: a load curve as `{format}`")), "{text}");
    }
    assert!(lab.run("report curve --metric latency.p99", 0).contains("latency.p99"));
}

/// Why a run failed may have nothing to do with the limit, so that a search says so instead of an answer.
#[test]
fn a_search_ends_with_a_run_that_fails_or_lacks_the_figure() {
    let search = |text: &str, limit: &str, code: i32| {
        let call = Wml::new().file("w.wml", text).args(["sweep", "w.wml", "--find", "wait", "--while", limit]);
        let common = "--engine null --no-quiesce --runtime 0.5 --results r --quiet";
        call.args(common.split(' ')).run().exits(code).stderr
    };
    let text = search(&WAITS.replace("wait=0", "wait=9"), "latency.p99<1d", 1);
    assert!(text.contains("no operation was completed") && !text.contains("holds"), "{text}");
    let once = WAITS.replace("wait=0", "wait=0.001").replace("value=1000,", "value=1,");
    let text = once.replace("target=r", "target=r flowop read name=never,filesetname=data,iosize=4k");
    let text = search(&text, "never.latency.p99<1d", 2);
    assert!(text.contains("has no `never.latency.p99`"), "{text}");
}

/// A level at which the run fails, or that the machine does not allow, is a point. A wrong script is an error.
#[test]
fn a_point_that_fails_is_shown() {
    let text = waiting("--vary wait=0,9 --repeats 1", 1);
    // Lines of the answer are wrapped.
    let words = squeezed(&text);
    assert!(text.contains("1 failed: no operation was completed"), "{text}");
    assert!(text.contains("error: 1 of 2 runs failed: 1 of `wait=9`\n"), "{text}");
    assert!(words.contains("overall response time"), "{text}");
    assert!(words.contains("no knee (fewer than three points have results)"), "{text}");
    let text = waiting("--vary wait=9 --repeats 1", 1);
    assert!(text.contains("no run has a result"), "{text}");
    let text = sweep("--vary n=1,900000 --repeats 1", 1);
    assert!(text.contains("1 failed: ") && text.contains("1 of 2 runs failed: 1 of `n=900000`"), "{text}");
    let text = sweep("--vary m=1,2", 2);
    assert!(text.contains("in `--vary`: `--set m=…`: the script has no variable `$m`"), "{text}");
    let text = sweep("--vary dir=/a,/b --dir /c", 2);
    let says = ["`--dir=/c` has no effect: `--vary` sets the same", "omit it"];
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
    for (words, says) in [("--vary n", "NAME=VALUE"), ("--vary n=1,1", "duplicate"), ("--vary n=1,,2", "NAME=VALUE")] {
        let text = sweep(words, 2);
        assert!(text.contains(says), "{words}: {text}");
    }
}
