//! Tests with results of every form, complete, truncated and foreign.

#![allow(clippy::unwrap_used, clippy::float_cmp)]
use super::*;
use crate::result::fixture::{fixture, of_ranks};
use crate::result::{FlowopClass, Latency, Percentile, PercentilePlace};
use std::collections::BTreeMap;

fn figures(text: &str) -> Vec<BTreeMap<String, f64>> {
    parse(text, "x").unwrap().into_iter().map(|found| found.figures).collect()
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
10253: 12.300: Run took 10 seconds...
10253: 12.300: Per-Operation Breakdown
readfile1                 400ops/s   1.6mb/s      0.3ms/op       12us/op-cpu

IO Summary:       5000 ops, 500.0 ops/s, (400/100 r/w)   1.8mb/s,     31us cpu/op,   0.3ms latency
";
    for (text, ms) in [(new, 0.31), (old, 0.3)] {
        let all = figures(text);
        assert_eq!((all.len(), all[0]["ops"], all[0]["mib"]), (1, 500.0, 1.8));
        assert!((all[0]["latency.mean"] - ms * 1e6).abs() < 1e-6);
        assert_eq!((all[0]["readfile1.ops"], all[0]["readfile1.mib"]), (400.0, 1.6));
    }
    assert_eq!(figures(&(new.to_owned() + old)).len(), 2, "each run has a summary");
    // Without the line that ends a run, as in the output of `stats snap`.
    let without = old.replace("10253: 12.300: Run took 10 seconds...\n", "");
    assert_eq!(figures(&without.repeat(3)).len(), 3, "each summary is a run");
    // Flowops of several threads may have the same name.
    let line = "readfile1            1200ops      100ops/s   0.4mb/s    1.250ms/op\n";
    let all = figures(&new.replace("12.345:", &format!("{line}12.345:")));
    let of = |figure: &str| all[0][&format!("readfile1.{figure}")];
    assert_eq!((of("ops"), of("mib")), (500.0, 2.0));
    assert!((of("latency.mean") - 450_000.0).abs() < 1e-6, "{}", of("latency.mean"));
    // Lines before the JSON may end as on other systems.
    let error = parse("note: \r\ntext: é\r\n{\"fio version\": \"fio-3.33\"}\r\n", "x").unwrap_err();
    assert!(error.contains("jobs"), "{error}");
    // A truncated summary line.
    assert!(parse("1.0: IO Summary:  50", "x").is_err());
}

/// Interim reports of `psrun` are cumulative, so they are no runs of their own.
#[test]
fn interim_reports_of_filebench_are_no_runs() {
    let report = |is_old: bool, at: u32, ops: u32| match is_old {
        false => format!("{at}.1: Per-Operation Breakdown\nrd {ops}ops\n{at}.1: IO Summary: {ops} ops {ops}.5 ops/s\n"),
        true => format!("7: {at}.1: Per-Operation Breakdown\n\n7: {at}.1: \nIO Summary: {ops} ops, {ops}.5 ops/s\n"),
    };
    let run = |is_old: bool, factor: u32| {
        let [first, second, whole] = [(3, 1), (5, 2), (6, 3)].map(|(at, ops)| report(is_old, at, ops * factor));
        let process = if is_old { "7: " } else { "" };
        format!("{first}{second}{process}6.013: Run took 5 seconds...\n{whole}")
    };
    for is_old in [false, true] {
        let all = figures(&(run(is_old, 1) + &run(is_old, 10)));
        assert_eq!(all.iter().map(|run| run["ops"]).collect::<Vec<_>>(), [3.5, 30.5]);
        // An incomplete interim report is no error, but the report of the run must be there.
        let text = run(is_old, 1);
        assert_eq!(figures(&text.replacen("1.5 ops/s", "", 1)).len(), 1);
        let end = text.find("took 5 seconds...\n").unwrap() + "took 5 seconds...\n".len();
        assert!(parse(&text[..end], "x").unwrap_err().contains("no complete"));
    }
}

/// With a negative period each report covers its period, the last one too.
#[test]
fn reports_of_periods_are_no_run() {
    let report = |ops: u32| format!("3.1: Per-Operation Breakdown\n3.1: IO Summary: {ops} ops {ops}.5 ops/s\n");
    let text = report(7) + &report(6) + "6.013: Run took 5 seconds...\n" + &report(3);
    assert!(parse(&text, "x").unwrap_err().contains("covers a period"));
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
        assert!(parse(broken, "x").is_err(), "{broken}");
    }
    let started = |more: &str| parse(&text.replace("\"jobs\"", &format!("{more}\"jobs\"")), "x").unwrap()[0].started;
    assert_eq!(started(""), None);
    assert_eq!(started("\"timestamp\": 1764000000, \"timestamp_ms\": 1764000000123, "), Some(1_764_000_000));
    assert_eq!(started("\"timestamp_ms\": 1764000000999, "), Some(1_764_000_000));
    assert_eq!([started("\"timestamp\": \"x\", "), started("\"timestamp\": 0, ")], [None, None]);
    let failed = text.replace("\"error\": 0", "\"error\": 28");
    assert!(parse(&failed, "x").unwrap()[0].failure.as_deref().unwrap().contains("28"));
    // A job that failed before its first transfer.
    let nothing = "none of its jobs has read or written anything";
    let idle = |text: &str| parse(&text.replace("\"total_ios\": 300", "\"total_ios\": 0"), "x").unwrap_err();
    assert_eq!(idle(&failed), format!("{nothing}: job j ended with error 28"));
    assert_eq!(idle(text), nothing);
}

/// Returns fio's JSON of one direction: operations, rate in KiB/s, and latencies.
fn fio_part(ops: u64, iops: u64, mean: u64, latency: &str) -> String {
    format!(
        r#"{{"total_ios": {ops}, "iops": {iops}, "bw_bytes": 1048576, "lat_ns": {{"mean": {mean}, "N": {ops}}},
            "clat_ns": {{"N": {ops}{latency}}}}}"#
    )
}

/// A job in fio's JSON: its name, its group, and its directions.
type FioJob<'a> = (&'a str, u64, &'a [(&'a str, String)]);

/// Returns fio's JSON of jobs.
fn fio(jobs: &[FioJob<'_>]) -> String {
    let job = |(name, group, parts): &FioJob<'_>| {
        let parts: Vec<String> = parts.iter().map(|(direction, part)| format!(", \"{direction}\": {part}")).collect();
        let parts = parts.concat();
        format!("{{\"jobname\": \"{name}\", \"groupid\": {group}, \"error\": 0{parts}}}")
    };
    let jobs: Vec<String> = jobs.iter().map(job).collect();
    format!("{{\"fio version\": \"fio-3.33\", \"jobs\": [{}]}}", jobs.join(", "))
}

#[test]
fn rates_of_fio_are_added_only_within_a_group() {
    let part = || fio_part(10, 500, 1, "");
    let same = figures(&fio(&[("a", 0, &[("read", part())]), ("b", 0, &[("read", part())])]));
    assert_eq!((same[0]["ops"], same[0]["mib"]), (1000.0, 2.0));
    // Jobs that run one after another, as with `--stonewall`.
    let two =
        figures(&fio(&[("a", 0, &[("read", part())]), ("a", 1, &[("read", part())]), ("b", 1, &[("read", part())])]));
    assert_eq!((two[0].get("ops"), two[0]["group0.ops"], two[0]["group1.ops"]), (None, 500.0, 1000.0));
    assert_eq!((two[0].get("a.read.ops"), two[0]["group1.a.read.ops"], two[0]["b.read.ops"]), (None, 500.0, 500.0));
    assert!("group1.ops".parse::<Metric>().is_ok());
}

#[test]
fn rates_of_fio_jobs_of_different_times_are_totals_by_the_longest_time() {
    // 1,000 operations in 2 s, and 1,000 in 10 s, each of 1 MiB/s.
    let part = |iops: u64, ms: &str| fio_part(1000, iops, 1, "").replace("\"iops\"", &format!("{ms}\"iops\""));
    let of = |first: &str, second: &str| {
        let (a, b) = ([("read", part(500, first))], [("write", part(100, second))]);
        figures(&fio(&[("j", 0, &a), ("j", 0, &b)])).remove(0)
    };
    let found = of("\"runtime\": 2000, ", "\"runtime\": 10000, ");
    assert!((found["ops"] - 200.0).abs() < 1e-9 && (found["mib"] - 1.2).abs() < 1e-9, "{found:?}");
    assert_eq!((found["j.read.ops"], found["j.write.ops"]), (500.0, 100.0));
    // Times that are nearly equal, or of which one is unknown.
    for second in ["\"runtime\": 10050, ", "", "\"runtime\": 0, "] {
        assert_eq!(of("\"runtime\": 10000, ", second)["ops"], 600.0, "{second}");
    }
}

#[test]
fn latencies_of_fio_are_combined_by_their_operations() {
    let percentiles = |p99| format!(r#", "percentile": {{"50.000000": 1, "99.000000": {p99}}}"#);
    // Two instances of a job (`--numjobs`), with different numbers of operations.
    let parts = [fio_part(100, 10, 1000, &percentiles(7)), fio_part(300, 30, 2000, &percentiles(9))];
    let [a, b] = parts.map(|part| [("read", part)]);
    let found = figures(&fio(&[("j", 0, &a), ("j", 0, &b)]));
    assert_eq!((found[0]["j.read.latency.mean"], found[0]["latency.mean"]), (1750.0, 1750.0));
    assert_eq!(found[0].get("j.read.latency.p99"), None, "percentiles can't be combined");
    // The percentiles of a job that reads and writes are those of each direction.
    let both = [("read", fio_part(1, 1, 1, &percentiles(7))), ("write", fio_part(1, 1, 1, &percentiles(9)))];
    let found = figures(&fio(&[("j", 0, &both)]));
    assert_eq!((found[0]["j.read.latency.p99"], found[0]["j.write.latency.p99"]), (7.0, 9.0));
    assert_eq!(found[0].get("latency.p99"), None);
    // Histograms of json+ can be added up: 150 operations, of which the 149th has the last time.
    let bins = |bins: &str| format!(r#", "bins": {{{bins}}}"#);
    let both = [
        ("read", fio_part(1, 1, 1, &bins(r#""100": 90, "9": 8"#))),
        ("write", fio_part(1, 1, 1, &bins(r#""700": 2, "9": 50"#))),
    ];
    let found = figures(&fio(&[("j", 0, &both)]));
    assert_eq!((found[0]["latency.p50"], found[0]["latency.p99"]), (100.0, 700.0));
    assert_eq!((found[0]["j.read.latency.p99"], found[0]["j.write.latency.p50"]), (100.0, 9.0));
}

#[test]
fn other_outputs_of_fio_are_read() {
    let percentiles = r#", "mean": 5.5, "percentile": {"99.000000": 7}"#;
    // `--unified_rw_reporting=1`.
    let found = figures(&fio(&[("j", 0, &[("mixed", fio_part(4, 20, 3, percentiles))])]));
    assert_eq!((found[0]["ops"], found[0]["j.mixed.ops"], found[0]["latency.p99"]), (20.0, 20.0, 7.0));
    // With `both` in place of 1 the directions are there as well.
    let part = || fio_part(4, 20, 3, percentiles);
    let found = figures(&fio(&[("j", 0, &[("read", part()), ("write", part()), ("mixed", fio_part(8, 40, 3, ""))])]));
    assert_eq!((found[0]["ops"], found[0].get("j.mixed.ops")), (40.0, None));
    // `--disable_lat=1`.
    let off = part().replace("\"lat_ns\": {\"mean\": 3, \"N\": 4}", "\"lat_ns\": {\"mean\": 0, \"N\": 0}");
    assert_eq!(figures(&fio(&[("j", 0, &[("read", off)])]))[0]["latency.mean"], 5.5);
    // `--status-interval`: the last output has the whole run.
    let interim = |iops| fio(&[("j", 0, &[("read", fio_part(4, iops, 3, ""))])]);
    let found = figures(&format!("{}\n{}\n{}", interim(1), interim(2), interim(3)));
    assert_eq!((found.len(), found[0]["ops"]), (1, 3.0));
    assert!(parse(&format!("{}\n{}", interim(1), &interim(2)[..60]), "x").is_err());
}

#[test]
fn own_results_have_metrics_causes_and_conditions() {
    let mut document = fixture();
    document.runs.truncate(1);
    let mut text = Vec::new();
    crate::report::json::serialize(&document, &mut text).unwrap();
    let found = parse(std::str::from_utf8(&text).unwrap(), "x").unwrap();
    let (run, observation) = (&document.runs[0], &found[0]);
    assert_eq!(Metric::ops().of(observation), Some(run.summary.ops_per_s));
    let flowop = run.flowops.iter().find(|f| f.latency_ns.p99.is_some()).unwrap();
    let metric: Metric = format!("{}/{}/{}.latency.p99", flowop.process, flowop.thread, flowop.name).parse().unwrap();
    assert_eq!(metric.of(observation), flowop.latency_ns.p99.map(|ns| ns as f64));
    assert!(observation.conditions.contains_key("kernel") && observation.causes.contains_key("syncs_per_op"));
    let mut text = Vec::new();
    document.runs = vec![document.runs[0].clone(); 3];
    document.runs[2].summary.ops_per_s = 7.0;
    crate::report::json::serialize(&document, &mut text).unwrap();
    let all = parse(std::str::from_utf8(&text).unwrap(), "x").unwrap();
    assert_eq!((all.len(), all[2].source.as_str(), all[2].figures["ops"]), (3, "x, run 3", 7.0));
    assert_eq!(all[1], Observation { source: "x, run 2".to_owned(), ..observation.clone() });
    assert!(parse("{\"schema\": \"wmlrun.result/9\"}", "x").is_err());
    assert!(parse("hello", "x").is_err() && parse("", "x").is_err());
}

/// Returns the conditions of the fixture's run after a change.
fn conditions(change: impl FnOnce(&mut crate::result::Document)) -> BTreeMap<String, String> {
    let mut document = fixture();
    change(&mut document);
    own::of_run(&document, &document.runs[0], "x").conditions
}

#[test]
fn conditions_include_the_start_of_a_run_and_the_limits_of_the_machine() {
    let before = conditions(|_| {});
    let changed = |change: fn(&mut crate::result::Document)| -> Vec<(String, String)> {
        conditions(change).into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect()
    };
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    assert_eq!((before["pinned"].as_str(), before["quiesced"].as_str()), ("0, 2", "yes"));
    assert_eq!(changed(|d| d.runs[0].quiesced = Some(false)), pair("quiesced", "no"));
    assert!(!conditions(|d| d.runs[0].quiesced = None).contains_key("quiesced"));
    assert_eq!(changed(|d| d.runs[0].pinned_processors = None), pair("pinned", "no"));
    assert_eq!(changed(|d| d.tool.commit = None), pair("tool", "wmlrun 0.1.0"));
    // A run in one process is its only rank. A lost rank is one of the ranks that were started.
    assert_eq!((before["ranks"].as_str(), before["hosts"].as_str()), ("1", "1"));
    let of_ranks = |d: &mut crate::result::Document| {
        let merged = of_ranks().runs.remove(0);
        (d.runs[0].hosts, d.runs[0].ranks, d.runs[0].lost_ranks) = (merged.hosts, merged.ranks, merged.lost_ranks);
    };
    assert_eq!(changed(of_ranks), [pair("hosts", "2"), pair("ranks", "4")].concat());
    // The limit of a control group.
    assert_eq!(changed(|d| d.environment.memory.total /= 2), pair("memory", "8.0 GiB"));
    // Another kernel keeps a little more for itself.
    assert_eq!(changed(|d| d.environment.memory.total -= 50 << 20), Vec::new());
    assert_eq!(before["memory"], "16.0 GiB");
    // A path below the directory of the run is the same in another directory.
    let in_dir = |dir: &str, path: &str| {
        conditions(|d| {
            let variables = [("dir", dir), ("logdir", path)].map(|(name, value)| (name.to_owned(), value.into()));
            d.runs[0].variables.extend(variables);
        })
    };
    for (dir, path, shown) in [
        ("/mnt/a", "/mnt/a", "$dir"),
        ("/mnt/a", "/mnt/a/log", "$dir/log"),
        ("/mnt/a", "/mnt/a/1,/mnt/a/2 /mnt/b", "$dir/1,$dir/2 /mnt/b"),
        ("/mnt/a", "/mnt/ab", "/mnt/ab"),
        ("/", "/mnt", "/mnt"),
        ("", "/mnt", "/mnt"),
    ] {
        let found = in_dir(dir, path);
        assert_eq!((found["$logdir"].as_str(), found["$dir"].as_str()), (shown, dir), "{path}");
    }
    assert_eq!(
        changed(|d| {
            d.environment.limits.insert("nofile".into(), Some(64));
        }),
        pair("limit nofile", "64")
    );
    // The measured length of a warm-up is never exactly the requested one.
    assert_eq!(before["warm-up"], "5s");
    assert_eq!(changed(|d| d.runs[0].warmup.as_mut().unwrap().seconds = 5.004), Vec::new());
    assert_eq!(changed(|d| d.runs[0].warmup = None), pair("warm-up", "none"));
    assert_eq!(changed(|d| d.command_line.extend(["--warmup".into(), "90".into()])), pair("warm-up", "1m30s"));
    assert_eq!(changed(|d| d.command_line.push("--warmup=auto".into())), pair("warm-up", "auto"));
}

#[test]
fn percentiles_of_flowops_with_one_name_are_those_of_all_operations() {
    let mut document = fixture();
    let run = &mut document.runs[0];
    let [read, write, _] = crate::result::fixture::snapshots();
    let mut other = run.flowops[1].clone();
    (other.process, other.name) = ("other".to_owned(), run.flowops[0].name.clone());
    run.flowops.push(other);
    let mut both = read.latency.clone();
    both.merge(&write.latency);
    let of = |document: &crate::result::Document, figure: &str| {
        own::of_run(document, &document.runs[0], "x").figures.get(&format!("shadowread.{figure}")).copied()
    };
    for (figure, share) in [("latency.p50", 0.5), ("latency.p99", 0.99), ("latency.p99.9", 0.999)] {
        // The stored histograms know the least and the greatest value only within their buckets.
        let (merged, all) = (of(&document, figure).unwrap(), both.percentile(share).unwrap() as f64);
        assert!((merged / all - 1.0).abs() < 0.01, "{figure}: {merged}, {all}");
    }
    let (p99, single) = (of(&document, "latency.p99"), document.runs[0].flowops[0].latency_ns.p99.unwrap());
    assert!(p99.unwrap() > 2.0 * single as f64, "the writes are the slowest operations");
    document.runs[0].flowops[3].histogram = "damaged".to_owned();
    assert_eq!(of(&document, "latency.p99"), None);
}

/// Two flowops of one name in a thread, and one of the same name in a later phase.
#[test]
fn rates_of_flowops_with_one_name_are_sums_only_within_a_phase() {
    let mut document = fixture();
    let run = &mut document.runs[0];
    let flowops = &mut run.flowops;
    flowops.truncate(2);
    (flowops[1].process, flowops[1].thread) = (flowops[0].process.clone(), flowops[0].thread.clone());
    flowops[1].name = flowops[0].name.clone();
    let (rate, mib) = (flowops[0].ops_per_s + flowops[1].ops_per_s, flowops[0].mib_per_s + flowops[1].mib_per_s);
    let all = (flowops[0].ops + flowops[1].ops) as f64;
    let of = |document: &crate::result::Document, name: &str| {
        let found = of_run(document, &document.runs[0], "x");
        let figure = |figure: &str| found.figures[&format!("{name}.{figure}")];
        assert_eq!(found.operations[&format!("{name}.")], all);
        (figure("ops"), figure("mib"), figure("latency.mean"))
    };
    let names = ["shadowread", "shadow/shadow/shadowread"];
    let [whole, of_thread] = names.map(|name| of(&document, name));
    assert_eq!((whole, whole.0, whole.1), (of_thread, rate, mib));
    // Each phase has half of the time, so that a flowop has twice its rate.
    let flowops = &mut document.runs[0].flowops;
    flowops[1].phase = flowops[0].phase + 1;
    flowops.iter_mut().for_each(|f| (f.ops_per_s, f.mib_per_s) = (2.0 * f.ops_per_s, 2.0 * f.mib_per_s));
    for phased in names.map(|name| of(&document, name)) {
        assert!((phased.0 / rate - 1.0).abs() < 1e-9 && (phased.1 / mib - 1.0).abs() < 1e-9, "{phased:?}");
        assert_eq!(phased.2, whole.2);
    }
}

#[test]
fn sides_have_a_maximum_number_of_observations() {
    let many = |n: usize| format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{}]}}", vec!["{}"; n].join(","));
    assert_eq!(parse(&many(1000), "x").unwrap().len(), 1000);
    let lines = |n| "1\n".repeat(n);
    assert_eq!(columns::observations(&lines(MAX_OBSERVATIONS), 1, "x").unwrap().len(), MAX_OBSERVATIONS);
    for error in [
        parse(&many(MAX_OBSERVATIONS + 1), "x").unwrap_err(),
        columns::observations(&lines(MAX_OBSERVATIONS + 1), 1, "x").unwrap_err(),
        parse(&"IO Summary: 1 ops/s\n".repeat(MAX_OBSERVATIONS + 1), "x").unwrap_err(),
        load_points(&"1 1\n".repeat(MAX_OBSERVATIONS + 1)).unwrap_err(),
    ] {
        assert!(error.contains("more than 100,000 observations"), "{error}");
    }
    // A run and a fio output whose lists are long.
    let list = |n| vec!["{}"; n].join(",");
    for text in [
        format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{{\"flowops\": [{}]}}]}}", list(140_000)),
        format!("{{\"fio version\": \"3\", \"jobs\": [{}]}}", list(600_000)),
    ] {
        let error = parse(&text, "x").unwrap_err();
        assert!(error.contains("too many elements"), "{error}");
    }
}

/// Each figure that may be a cause has a rank among the others.
#[test]
fn causes_of_a_run_are_known_to_the_analysis() {
    let mut document = fixture();
    let run = &mut document.runs[0];
    run.filesets[0].device_bytes = Some(crate::result::DeviceBytes { read: 25, written: 5 });
    run.filesets[0].asked_bytes.read = 100;
    let mut twin = run.filesets[0].clone();
    twin.asked_bytes.read = 150;
    run.filesets.push(twin);
    run.flowops[0].lateness_ns = Some(run.flowops[0].latency_ns);
    let found = of_run(&document, &document.runs[0], "x");
    for name in found.causes.keys() {
        assert!(crate::analysis::cause_rank(name).is_some(), "{name}");
    }
    assert_eq!((found.causes["hit_ratio"], found.causes.len()), (0.9, 11), "both sets are on one device");
    assert!(found.causes.contains_key("resident_before"));
    let has_resident = |document: &crate::result::Document| {
        of_run(document, &document.runs[0], "x").causes.contains_key("resident_before")
    };
    document.runs[0].flowops[0].direct = true;
    assert!(has_resident(&document), "the writes use the cache");
    document.runs[0].flowops.iter_mut().for_each(|flowop| flowop.direct = true);
    assert!(!has_resident(&document), "none uses it");
    document.runs[0].flowops.iter_mut().for_each(|f| (f.direct, f.reads, f.writes) = (false, false, false));
    assert!(!has_resident(&document), "no data is transferred");
}

/// The scripts of workloads that differ only in their variables and run times are of one workload. Another text that they
/// load makes another workload.
#[test]
fn the_scripts_of_a_workload_are_conditions() {
    let of = |path: &str, time: u32, loaded: &[&str]| {
        let found = conditions(|d| {
            d.script.path = path.to_owned();
            d.script.text = format!("load \"mail\"\nset $nfiles={time}\ncreate filesets\nsleep {time}\nstats snap\n");
            d.script.sha256 = crate::util::hash::sha256(&d.script.text);
            d.runs[0].loaded_scripts = loaded.iter().map(|digest| (*digest).to_owned()).collect();
        });
        (found["script"].clone(), found.get("loaded scripts").cloned())
    };
    let of_batch = of("a/thisrun.f", 1, &["aa"]);
    assert_eq!(of("b/thisrun.f", 60, &["aa"]), of_batch);
    let other = of("b/thisrun.f", 60, &["bb"]);
    assert!(other.0 == of_batch.0 && other.1 != of_batch.1, "{other:?}");
    assert_ne!(of("own.f", 1, &[]).0, of("own.f", 60, &[]).0);
    assert_eq!(of("own.f", 1, &[]).1, None, "as in older results");
}

#[test]
fn the_mean_response_time_is_that_of_the_io_flowops() {
    let mut document = fixture();
    let response = |mean: f64| Some(Latency { mean: Some(mean), ..Latency::default() });
    let flowops = &mut document.runs[0].flowops;
    (flowops[0].ops, flowops[0].response_ns) = (30, response(1_000.0));
    (flowops[1].ops, flowops[1].response_ns) = (10, response(5_000.0));
    let mut measured = flowops[1].clone();
    (measured.kind, measured.class, measured.response_ns) = ("measure".to_owned(), FlowopClass::Other, response(9e9));
    flowops.push(measured);
    let name = flowops[0].name.clone();
    let run = of_run(&document, &document.runs[0], "x");
    assert_eq!(run.figures["response.mean"], 2_000.0);
    assert_eq!(run.figures[&format!("{name}.response.mean")], 1_000.0);
    // The histograms of responses are missing.
    assert!(!run.figures.contains_key("response.p99"));
    let tail: Metric = "response.p99".parse().unwrap();
    assert_eq!((tail.nanoseconds(), tail.operations_beyond(&run)), (Some(1.0), Some(40.0 * (1.0 - 0.99))));
    assert!(
        "response.ops".parse::<Metric>().is_ok_and(|metric| !metric.is_response() && metric.nanoseconds().is_none())
    );
}

/// Percentiles of several flowops are those of their merged histograms.
#[test]
fn response_times_of_flowops_are_merged() {
    let mut document = fixture();
    let flowops = &mut document.runs[0].flowops;
    for flowop in &mut flowops[..2] {
        (flowop.response_ns, flowop.response_histogram) = (Some(flowop.latency_ns), flowop.histogram.clone());
    }
    let run = of_run(&document, &document.runs[0], "x");
    // All I/O has the same times as responses and as latencies.
    for figure in ["mean", "p50", "p99"] {
        let (response, latency) =
            (run.figures[&format!("response.{figure}")], run.figures[&format!("latency.{figure}")]);
        assert!((response / latency - 1.0).abs() < 0.01, "{figure}: {response} {latency}");
    }
}

/// A thread without syncs becomes slower; the syncs of the other thread remain what they were.
#[test]
fn the_syncs_of_a_thread_do_not_depend_on_other_threads() {
    let mut document = fixture();
    let syncs = |document: &crate::result::Document| of_run(document, &document.runs[0], "x").causes["syncs_per_op"];
    assert_eq!(syncs(&document), 0.0);
    let mut sync = document.runs[0].flowops[1].clone();
    (sync.kind, sync.name) = ("fsync".to_owned(), "sync".to_owned());
    document.runs[0].flowops.push(sync);
    assert_eq!(syncs(&document), 0.5);
    document.runs[0].flowops[0].ops /= 10;
    assert_eq!(syncs(&document), 0.5);
}

#[test]
fn a_run_that_was_not_steady_and_the_numbers_of_operations_are_known() {
    let mut document = fixture();
    let found = of_run(&document, &document.runs[0], "x");
    let flowop = &document.runs[0].flowops[1];
    let beyond = |name: &str| name.parse::<Metric>().unwrap().operations_beyond(&found).map(f64::round);
    let expected = |ops: u64| Some((ops as f64 / 100.0).round());
    assert_eq!(beyond("latency.p99"), expected(document.runs[0].summary.ops));
    assert_eq!(beyond(&format!("{}.latency.p99", flowop.name)), expected(flowop.ops));
    assert_eq!((beyond("ops"), beyond("latency.mean"), beyond("nothing.latency.p99")), (None, None, None));
    document.runs[0].intervals.iter_mut().skip(7).for_each(|interval| interval.flowops[0].ops /= 2);
    assert!(!found.unsteady && of_run(&document, &document.runs[0], "x").unsteady);
}

#[test]
fn columns_are_numbers_below_a_heading() {
    let values = |text: &str, column| -> Vec<f64> {
        columns::observations(text, column, "x").unwrap().iter().map(|found| found.figures["value"]).collect()
    };
    assert_eq!(values("run,ops\n1,20.5\n\n# note\n2,1e3\n", 2), [20.5, 1000.0]);
    assert_eq!(values("  3  4\n5 6", 2), [4.0, 6.0]);
    assert_eq!(values("\u{feff}5\n6\n", 1), [5.0, 6.0]);
    // Cells in quotes, as the CSV of a comparison has them.
    assert_eq!(values("\"a,b\",5\n\"c \"\"d\"\",\", 6\n", 2), [5.0, 6.0]);
    assert_eq!(values("name;ops\n\"a;b\" ; \"7\"\n", 2), [7.0]);
    assert_eq!(values("\"a b\"\t8\n9\t\"10\"\t\n", 2), [8.0, 10.0]);
    assert_eq!(values("\"a b\"  11 12\n", 2), [11.0]);
    for (text, column) in [
        ("", 1),
        ("a\n", 1),
        ("1,2\n3\n", 2),
        ("1\nx\n", 1),
        ("1\nnan\n", 1),
        // Only a word can be a heading.
        ("nan\n100\n101\n", 1),
        ("inf\n100\n", 1),
        ("\"1,5\n2,6\n", 2),
    ] {
        assert!(columns::observations(text, column, "x").is_err(), "{text:?}");
    }
    // A comma beside another separator is part of a cell, and digits in groups are no columns.
    assert_eq!(values("9,5;1\n9,6;2\n", 2), [1.0, 2.0]);
    assert_eq!(values("a, b\t1\na, c\t2\n", 2), [1.0, 2.0]);
    for text in ["9,120\n10,480\n", "1,234,567\n", "997\n1,001\n", "1,001\n997\n"] {
        let error = columns::observations(text, 1, "x").unwrap_err();
        assert!(error.contains("groups of digits"), "{error}");
    }
    for text in ["100,200\n1,20\n", "x,y\n100,200\n", "0,100\n0,200\n", "100.5,200\n", "100;200\n"] {
        assert!(columns::observations(text, 1, "x").is_ok(), "{text}");
    }
    assert_eq!(columns::split(Path::new("f.csv:3")), Some((PathBuf::from("f.csv"), 3)));
    assert_eq!(columns::split(Path::new("f.csv:0")), None);
    assert_eq!(columns::column_of("a,\"b c\",d\n1,2,3\n", "b c"), Ok(2));
    let error = columns::column_of("a,b\n1,2\n", "c").unwrap_err();
    assert_eq!(error, "no column has the heading `c`; its first line is a, b");
}

/// Digits in groups would be columns, and the first of them figures.
#[test]
fn figures_of_tests_and_curves_have_no_further_columns() {
    let figures = columns::test_figures("x,9,120,9,480\n").unwrap_err();
    assert_eq!(figures, "line 1 has 5 columns; expected a name and two figures");
    let points = load_points("rate,ms\n900,2.5\n1,200,3.5\n").unwrap_err();
    assert_eq!(points, "line 3 has 3 columns; expected a rate and a response time");
    // Spreadsheets write empty cells at the end of a line.
    assert_eq!(columns::test_figures("x,1,2,,\n").unwrap().tests, [("x".to_owned(), vec![Some(1.0), Some(2.0)])]);
    let missing = columns::test_figures("test,a,b,c\nx,1,,3,\ny,4,,\n").unwrap();
    assert_eq!(missing.tests[0].1, [Some(1.0), None, Some(3.0)]);
    assert_eq!(missing.tests[1].1, [Some(4.0), None, None]);
    let error = |text| columns::test_figures(text).unwrap_err();
    assert_eq!(error("test,A,B,A\nx,1,2,3\n"), "line 1: two sides are named `A`");
    let levels = columns::test_figures("fullness,30 %,90 %\nread,3,1\n").unwrap();
    assert_eq!((&levels.sides[..], levels.tests.len()), (&["30 %".to_owned(), "90 %".to_owned()][..], 1));
    let percent = "is not a figure: figures have no unit; omit the `%`";
    assert_eq!(error("cpu,57%,20\n"), format!("line 1: `57%` {percent}"));
    assert_eq!(error("test,A,B\ncpu,57 %,20 %\n"), format!("line 2: `57 %` {percent}"));
    let form = ": figures have a decimal point, and nothing between groups of digits";
    assert_eq!(error("x,\"1,234.5\",2\n"), format!("line 1: `1,234.5` is not a figure{form}"));
    assert_eq!(error("x;1,5;2\n"), format!("line 1: `1,5` is not a figure{form}"));
    assert_eq!(error("x;1;12 ms\n"), "line 1: `12 ms` is not a figure");
    assert!(columns::test_figures("x,1\n").is_err() && columns::test_figures("x,,\n").is_err());
    assert_eq!(load_points("1\t2\t\n3\t4\n").unwrap().len(), 2);
    assert_eq!(load_points("rate;ms\n448;1.6\n906;\n").unwrap()[1].response, None);
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
    // A message names only metrics that may be given.
    let mut found = of_run(&fixture(), &fixture().runs[0], "x");
    found.figures.retain(|name, _| !name.starts_with("latency.") && !name.contains('-'));
    found.figures.insert("offered".to_owned(), 1.0);
    assert!(found.figures.contains_key("cpu_busy"));
    let times = ["max", "mean"].into_iter().chain(Percentile::shown_in(PercentilePlace::Metrics).map(|of| of.name));
    let flowop = times.map(|name| format!("latency.{name}")).chain(["mib", "ops"].map(str::to_owned));
    let flowop = std::iter::once("kib".to_owned()).chain(flowop);
    let flowop = flowop.map(|figure| format!("shadowread.{figure}"));
    let of_run = ["kib", "mib", "ops", "seconds", "system", "user"].map(str::to_owned).into_iter();
    let all: Vec<String> = of_run.chain(flowop).chain(["cpu".to_owned()]).collect();
    let more = all.len() + 9 - 16;
    assert_eq!(Metric::names(&found), format!("{} and {more} more", all[..16].join(", ")));
}
