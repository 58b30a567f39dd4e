//! Tests with results of every form, complete, truncated and foreign.

#![allow(clippy::unwrap_used, clippy::float_cmp)]
use super::*;
use crate::result::fixture::fixture;

fn figures(text: &str) -> Vec<BTreeMap<String, f64>> {
    of_text(text, "x").unwrap().into_iter().map(|found| found.figures).collect()
}

#[test]
fn output_of_both_filebench_generations_is_read() {
    let new = "\
12.3: Run took 10 seconds...
12.3: Per-Operation Breakdown
readfile1            4000ops      400ops/s   1.6mb/s    0.250ms/op [0.001ms - 9.100ms]
12.345: IO Summary:  5000 ops 500.000 ops/s 400/100 rd/wr   1.8mb/s 0.310ms/op
12.346: Shutting down processes
";
    let old = "\
Per-Operation Breakdown
readfile1                 400ops/s   1.6mb/s      0.3ms/op       12us/op-cpu

IO Summary:       5000 ops, 500.0 ops/s, (400/100 r/w)   1.8mb/s,     31us cpu/op,   0.3ms latency
";
    for (text, ms) in [(new, 0.31), (old, 0.3)] {
        let all = figures(text);
        assert_eq!((all.len(), all[0]["ops"], all[0]["mib"]), (1, 500.0, 1.8));
        assert!((all[0]["latency.mean"] - ms * 1e6).abs() < 1e-6);
        assert_eq!((all[0]["readfile1.ops"], all[0]["readfile1.mib"]), (400.0, 1.6));
    }
    assert_eq!(figures(&(new.to_owned() + old)).len(), 2, "each summary is a run");
    // A truncated summary line.
    assert!(of_text("1.0: IO Summary:  50", "x").is_err());
}

#[test]
fn json_of_old_and_new_fio_is_read() {
    let text = r#"fio: this is a warning
{"fio version": "fio-3.33", "jobs": [{"jobname": "j", "error": 0,
  "read": {"total_ios": 300, "iops": 30.5, "bw": 122, "bw_bytes": 125829, "lat_ns": {"mean": 1000.0},
           "clat_ns": {"mean": 900.0, "percentile": {"50.000000": 800, "99.000000": 4000}}},
  "write": {"total_ios": 0, "iops": 0}}]}
Disk stats follow"#;
    let all = figures(text);
    assert_eq!((all[0]["ops"], all[0]["latency.mean"], all[0]["latency.p99"]), (30.5, 1000.0, 4000.0));
    assert!((all[0]["mib"] - 0.12).abs() < 1e-4);
    assert_eq!(all[0]["j.read.ops"], 30.5);
    let old = r#"{"fio version": "fio-2.2.10", "jobs": [{"jobname": "j",
  "read": {"total_ios": 2, "iops": 1, "bw": 1024, "lat": {"mean": 5.0}}}]}"#;
    assert_eq!((figures(old)[0]["mib"], figures(old)[0]["latency.mean"]), (1.0, 5000.0));
    for broken in [&text[..200], r#"{"fio version": "3"}"#, r#"{"fio version": "3", "jobs": []}"#] {
        assert!(of_text(broken, "x").is_err(), "{broken}");
    }
    let failed = text.replace("\"error\": 0", "\"error\": 28");
    assert!(of_text(&failed, "x").unwrap()[0].failure.as_deref().unwrap().contains("28"));
}

#[test]
fn own_results_have_metrics_causes_and_conditions() {
    let mut document = fixture();
    document.runs.truncate(1);
    let mut text = Vec::new();
    crate::report::json::serialize(&document, &mut text).unwrap();
    let found = of_text(std::str::from_utf8(&text).unwrap(), "x").unwrap();
    let (run, observation) = (&document.runs[0], &found[0]);
    assert_eq!(Metric::ops().of(observation), Some(run.summary.ops_per_s));
    let flowop = run.flowops.iter().find(|f| f.latency_ns.p99.is_some()).unwrap();
    let metric: Metric = format!("{}/{}/{}.latency.p99", flowop.process, flowop.thread, flowop.name).parse().unwrap();
    assert_eq!(metric.of(observation), flowop.latency_ns.p99.map(|ns| ns as f64));
    assert!(observation.conditions.contains_key("kernel") && observation.causes.contains_key("syncs_per_op"));
    assert!(of_text("{\"schema\": \"wmlrun.result/9\"}", "x").is_err());
    assert!(of_text("hello", "x").is_err() && of_text("", "x").is_err());
}

#[test]
fn columns_are_numbers_below_a_heading() {
    let values = |text: &str, column| -> Vec<f64> {
        columns::observations(text, column, "x").unwrap().iter().map(|found| found.figures["value"]).collect()
    };
    assert_eq!(values("run,ops\n1,20.5\n\n# note\n2,1e3\n", 2), [20.5, 1000.0]);
    assert_eq!(values("  3  4\n5 6", 2), [4.0, 6.0]);
    for (text, column) in [("", 1), ("a\n", 1), ("1,2\n3\n", 2), ("1\nx\n", 1), ("1\nnan\n", 1)] {
        assert!(columns::observations(text, column, "x").is_err(), "{text:?}");
    }
    assert_eq!(columns::split(Path::new("f.csv:3")), Some((PathBuf::from("f.csv"), 3)));
    assert_eq!(columns::split(Path::new("f.csv:0")), None);
}

#[test]
fn metrics_have_names_and_directions() {
    use crate::analysis::Direction::{HigherIsBetter, LowerIsBetter};
    for (text, name, direction) in [
        ("ops", "ops", HigherIsBetter),
        ("all.mib", "mib", HigherIsBetter),
        ("latency.p99.9", "latency.p99.9", LowerIsBetter),
        ("lg-write.latency.mean", "lg-write.latency.mean", LowerIsBetter),
        ("p/t/r.ops", "p/t/r.ops", HigherIsBetter),
    ] {
        let metric: Metric = text.parse().unwrap();
        assert_eq!((metric.to_string().as_str(), metric.direction()), (name, direction));
    }
    for text in ["", "speed", ".ops", "xops", "latency", "latency.p98"] {
        assert!(text.parse::<Metric>().is_err(), "{text}");
    }
    assert!(STUDY.iter().all(|name| name.parse::<Metric>().is_ok()));
}
