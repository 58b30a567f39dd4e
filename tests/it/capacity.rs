//! Tests searches for the greatest load at which a limit holds (`wmlrun sweep --find`).

use crate::cmd::{has, long, skip, squeezed};
use crate::experiments::{Lab, valid};
use crate::resume::{is_complete, run_killed};
use serde_json::Value;
use std::fs;
use std::io::Write as _;

/// A run of a tenth of a second without I/O, ended by its number of reads.
const SEARCH: &str = "sweep x.wml --engine null --no-quiesce --find reads";

fn lab(reads: u64) -> Lab {
    let lab = Lab::new();
    let text = fs::read_to_string(lab.path("x.wml")).unwrap();
    let paced = text.replace("instances=$n", "instances=$n,rate=1000,arrival=constant");
    fs::write(lab.path("x.wml"), paced.replace("reads=1000000000", &format!("reads={reads}"))).unwrap();
    lab
}

fn found(text: &str) -> Value {
    let found: Value = serde_json::from_str(text).unwrap();
    valid(&found);
    found
}

/// So many reads take longer, the more they are; how long, depends on the machine.
#[test]
fn a_search_is_resumed_and_has_a_picture_with_its_limit() {
    if !has("strace") {
        return skip("strace is missing");
    }
    let lab = lab(10);
    let words = format!("{SEARCH} --while seconds<45ms --metric latency.p50 --results r");
    assert!(run_killed(&lab.command(&format!("{words} --quiet")), "fdatasync", 14));
    let made = lab.runs("r", "finished");
    assert!(!made.is_empty() && lab.runs("r", "started").len() >= made.len(), "{made:?}");
    let output = lab.command("sweep --resume r --format json --quiet").output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 11)), "{}", String::from_utf8_lossy(&output.stderr));
    let document = found(&String::from_utf8_lossy(&output.stdout));
    is_complete(&lab, "r", lab.runs("r", "finished").len() as u64, "resumed");
    assert_eq!(&lab.runs("r", "finished")[..made.len()], &made[..]);
    let capacity = &document["capacity"];
    assert_eq!((&capacity["limit"], &capacity["metric"]), (&"seconds < 45ms".into(), &"seconds".into()));
    let kinds = ["found", "unstable", "not_monotone"];
    assert!(kinds.iter().any(|kind| capacity["kind"] == *kind), "{capacity}");
    let loads: Vec<f64> = document["points"].as_array().unwrap().iter().map(load).collect();
    assert!(loads.is_sorted() && loads.iter().all(|load| load.fract() == 0.0), "{loads:?}");
    assert!(document["points"].as_array().unwrap().iter().any(|point| point["figures"]["seconds"]["value"].is_f64()));
    lab.run("report r -o page.html", 0);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(
        page.contains("seconds over load") && page.contains("The dashed line is the limit: seconds &lt; 45ms."),
        "the page has the limit"
    );
    assert!(lab.run("sweep --resume r --repeats 5", 3).contains("a search decides on its runs itself"));
}

fn load(point: &Value) -> f64 {
    point["level"].as_str().unwrap().parse().unwrap()
}

#[test]
fn limits_that_always_or_never_hold_are_told() {
    let lab = lab(2);
    // Slow enough that a run at fewer reads is a shorter one, on a busy machine too.
    let script = fs::read_to_string(lab.path("x.wml")).unwrap();
    fs::write(lab.path("x.wml"), script.replace("rate=1000", "rate=20")).unwrap();
    let text = squeezed(&lab.run(&format!("{SEARCH} --while seconds<1ns"), 10));
    assert!(text.contains("seconds < 1ns never holds: not even at reads=1."), "{text}");
    assert!(text.contains("search: reads is doubled or halved until "), "{text}");
    // At a rate that no limit of a tenth of a second can end.
    fs::write(lab.path("x.wml"), script.replace(",rate=1000,arrival=constant", "")).unwrap();
    let text = lab.run(&format!("{SEARCH} --while seconds<1d --format json --quiet"), 0);
    let document = found(&text);
    assert_eq!(
        (&document["capacity"]["kind"], &document["capacity"]["load"]),
        (&"always_met".into(), &131_072.0.into())
    );
    // A percentile lasts until it counts: a hundred operations beyond the median are two hundred.
    let text = lab.run(
        "sweep x.wml --engine null --no-quiesce --find reads --while latency.p50<1d --budget 1ms --quiet --format json",
        11,
    );
    assert_eq!(found(&text)["capacity"]["kind"], "unfinished");
    for (words, said) in [
        ("--find none --while ops<5", "the script gives `$none` no number"),
        ("--find reads", "--while"),
        ("--while ops<5", "--find"),
        ("--find reads --while ops<0", "has no limit above 0"),
        ("--find reads --while rr.ops<5", "did you mean `r.ops`?"),
        ("--find reads --while ops<5 --vary n=1,2", "cannot be used with"),
        ("--vary n=4..1", "has no value"),
        ("--vary n=1..5000", "more than 1000 values"),
    ] {
        let text = lab.run(&format!("sweep x.wml --engine null {words}"), 2);
        assert!(squeezed(&text).contains(said), "{words}: {text}");
    }
}

/// A search says beforehand how long it takes, begins at the value that is given, and shows its answer alone.
#[test]
fn a_search_begins_where_it_is_told() {
    let lab = lab(2);
    // Slow enough that a run at fewer reads is a shorter one, on a busy machine too.
    let text = fs::read_to_string(lab.path("x.wml")).unwrap().replace("rate=1000", "rate=20");
    fs::write(lab.path("x.wml"), text).unwrap();
    let words = format!("{SEARCH} --set reads=4 --while seconds<1ns");
    let text = squeezed(&lab.run(&words, 10));
    assert!(text.contains("both are repeated: 10 to 40 runs") && text.contains("reads is 1, 2, 4."), "{text}");
    assert!(!text.contains("overall response time") && !text.contains("without an interval"), "{text}");
    let text = squeezed(&lab.run(&format!("{SEARCH} --while seconds<1d --runtime 60 --budget 1ms"), 11));
    let said =
        "10 to 40 runs. At reads=2 a run takes 1m (its run time): about 10m to 40m in all. The budget may end it";
    assert!(text.contains(said), "{text}");
}

/// Requests without I/O are something that is done.
#[test]
fn a_queue_of_delays_is_no_idle_run() {
    let lab = Lab::new();
    let script = "define process name=p { thread name=t,instances=1,rate=1000,arrival=constant,measure=request {\n\
                  flowop delay name=work,value=0.0001\n} }\n";
    fs::write(lab.path("x.wml"), script).unwrap();
    let text = lab.run("x.wml --engine null --no-quiesce --runtime 0.3", 0);
    assert!(text.contains("request") && !text.contains("no_operations"), "{text}");
}

#[test]
fn a_sweep_has_ranges_and_further_metrics() {
    let lab = lab(5);
    let words = "sweep x.wml --engine null --no-quiesce --repeats 1 --metric=ops,r.latency.max";
    let document = found(&lab.run(&format!("{words} --vary reads=1..3 --format json --quiet"), 0));
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.iter().map(load).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    assert!(points.iter().all(|point| point["figures"]["r.latency.max"]["value"].is_f64()), "{points:?}");
    let mut command = lab.command(words);
    let output = command.args(["--vary", "reads=1..10 log", "--format=csv", "--quiet"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let levels: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').nth(2)).collect();
    assert_eq!(levels, ["1", "2", "4", "8"]);
    assert!(text.lines().next().unwrap().ends_with(",r.latency.max,r.latency.max_low,r.latency.max_high"), "{text}");
}

/// A queue with Poisson arrivals and one server with exponential service.
const QUEUE: &str = "set $rate=100\n\
    set $service = cvar(type=cvar-exponential,parameters=\"mean:0.005\",min=0)\n\
    define fileset name=s,path=$dir,entries=1,size=1k,prealloc\n\
    define process name=p { thread name=t,instances=1,rate=$rate,arrival=poisson,measure=request {\n\
      flowop statfile name=stat,filesetname=s\n\
      flowop delay name=work,value=$service\n\
    } }\nrun 5\n";

/// The 99th percentile of the response time of such a queue is 4.605 / (μ − λ). The load at which it reaches a limit is
/// found within 5 %, also by a search that was killed.
#[test]
fn the_capacity_of_a_queue_is_found() {
    if !long() {
        return;
    }
    let search = |ms: f64| {
        let lab = Lab::new();
        fs::write(lab.path("x.wml"), QUEUE).unwrap();
        let words = format!("sweep x.wml --engine null --no-quiesce --find rate --while request.response.p99<{ms}ms");
        assert!(run_killed(&lab.command(&format!("{words} --results r --quiet")), "fdatasync", 12));
        let output = lab.command("sweep --resume r --format json --quiet").output().unwrap();
        let document = found(&String::from_utf8_lossy(&output.stdout));
        // The realised rate of the server, of the runs that are not saturated.
        let result = |run: u64| fs::read_to_string(lab.path(&format!("r/runs/{run:04}.json"))).unwrap();
        let means = lab.runs("r", "finished").into_iter().filter_map(|run| {
            let document: Value = serde_json::from_str(&result(run)).unwrap();
            let run = &document["runs"][0];
            let request = run["flowops"].as_array().unwrap().iter().find(|flowop| flowop["name"] == "request").unwrap();
            Some((request["latency_ns"]["mean"].as_f64()?, request["ops"].as_f64()?))
        });
        let (time, ops) = means.fold((0.0, 0.0), |all, (mean, ops)| (all.0 + mean * ops, all.1 + ops));
        let served = 1e9 * ops / time;
        let expected = served - 100_f64.ln() / (ms / 1e3);
        let capacity = &document["capacity"];
        let at = capacity["value"].as_f64().unwrap_or(f64::NAN);
        let (runs, share) = (lab.runs("r", "finished").len(), expected / served);
        let line =
            format!("p99 < {ms} ms: {capacity}, expected {expected:.1} (ρ {share:.2}, μ {served:.1}), {runs} runs");
        let _ = writeln!(std::io::stderr(), "{line}");
        assert!((at / expected - 1.0).abs() < 0.05, "{at} for {expected}: {capacity}");
    };
    std::thread::scope(|scope| [46.0, 69.0, 130.0].map(|ms| scope.spawn(move || search(ms))).map(drop));
}
