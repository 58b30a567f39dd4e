//! Tests `wmlrun compare`: its input formats, its output and its exit status.

use crate::cmd::{Wml, squeezed};
use crate::experiments::valid;
use serde_json::Value;

/// A column of numbers around a mean.
fn column(mean: f64, n: usize) -> String {
    (0..n).map(|i| format!("{i},{}\n", mean * (1.0 + 0.002 * (i as f64 * 2.3).sin()))).collect()
}

fn compare(a: f64, b: f64, words: &[&str]) -> Wml {
    Wml::new()
        .file("a.csv", &format!("run,ops\n{}", column(a, 9)))
        .file("b.csv", &format!("run,ops\n{}", column(b, 11)))
        .args(["compare", "a.csv:2", "b.csv:2"])
        .args(words.iter().copied())
}

#[test]
fn the_exit_status_is_the_verdict() {
    for (b, words, code, says) in [
        (110.0, &[][..], 0, "better: the value is 10.0 % higher with B than with A ("),
        (90.0, &[], 10, "worse: the value is 10.0 % lower with B than with A ("),
        (100.0, &[], 0, "same: the value is the same with B as with A, within 3.0 % ("),
        (100.0, &["--tolerance", "0.1%"], 11, "unclear: "),
        (110.0, &["--metric", "latency.mean"], 10, "worse: the mean latency is 10.0 % higher with B than with A ("),
        (90.0, &["--metric", "latency.p99"], 0, "better: the p99 latency is 10.0 % lower with B than with A ("),
        (110.0, &["--lower-is-better"], 10, "worse: the value is 10.0 % higher with B than with A ("),
        (90.0, &["--lower-is-better"], 0, " lower; lower is better)"),
        (110.0, &["--expect", "better"], 0, "better"),
        (100.0, &["--expect", "better"], 11, "same"),
        (90.0, &["--expect", "better"], 10, "worse"),
    ] {
        let output = compare(100.0, b, words).run().exits(code);
        let text = squeezed(&output.stdout);
        assert!(text.contains(says), "{b} {words:?}: {text}");
        assert!(text.contains("the runs of A and B were not interleaved"), "{text}");
        assert!(text.contains("the conditions of A and B are unknown"), "{text}");
    }
}

/// A log has the line alone, in which a doubtful verdict must not look clean.
#[test]
fn the_verdict_alone_has_its_cautions() {
    let said = compare(100.0, 110.0, &["--quiet"]).run().exits(0).stdout;
    assert!(said.starts_with("better: ") && said.lines().count() == 1, "{said}");
    let caution = "Caution: the runs of A and B were not interleaved, and the machine may have changed";
    assert!(said.contains(caution) && said.contains("You may use this result in spite of it."), "{said}");
    let unclear = compare(100.0, 100.0, &["--quiet", "--tolerance", "0.1%"]).run().exits(11).stdout;
    assert!(unclear.lines().count() == 1 && unclear.contains("Do not use this result."), "{unclear}");
}

#[test]
fn the_document_is_valid_and_every_format_has_the_figures() {
    let output = compare(100.0, 110.0, &["--method", "study", "--format", "json"]).run().exits(0);
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    valid(&found);
    assert_eq!((&found["verdict"], &found["study"]["f"]["df1"]), (&"better".into(), &8.0.into()));
    assert_eq!(found["shapes"]["qq"].as_array().unwrap().len(), 9);
    for (format, says) in [
        ("markdown", "| A: a.csv:2 | 9 |"),
        ("csv", "a.csv:2 and b.csv:2,B,11,value,"),
        ("benchstat", "Unit value better=higher\nside: A\nBenchmarkA_csv_2_and_b_csv_2 1 "),
        ("benchstat", "side: B\nBenchmarkA_csv_2_and_b_csv_2 1 "),
        ("bencher", "\"lower_value\""),
    ] {
        let output = compare(100.0, 110.0, &["--format", format]).run().exits(0);
        assert!(output.stdout.contains(says), "{format}: {}", output.stdout);
    }
}

#[test]
fn a_column_is_named_by_its_heading() {
    let run = |a: &str, b: &str| {
        let wml = Wml::new().file("a.csv", &format!("run,ops\n{}", column(100.0, 9)));
        wml.file("b.csv", &format!("run,ops\n{}", column(90.0, 9))).args(["compare", a, b]).run()
    };
    let shown = run("a.csv:ops", "b.csv:ops").exits(10).stdout;
    assert!(shown.contains("worse: the value is 10.0 % lower"), "{shown}");
    let said = run("a.csv:mib", "b.csv:ops").exits(2).stderr;
    assert!(
        said.contains("a.csv is not a result: no column has the heading `mib`; its first line is run, ops"),
        "{said}"
    );
}

#[test]
fn a_file_with_a_single_column_needs_no_number_of_it() {
    for heading in ["", "ops\n", "ops per second\n"] {
        let numbers = |mean: f64| (0..9).map(|n| format!("{}\n", mean + f64::from(n) / 10.0)).collect::<String>();
        let wml = Wml::new().file("a", &(heading.to_owned() + &numbers(100.0)));
        let shown = wml.file("b", &numbers(90.0)).args(["compare", "a", "b"]).run().exits(10).stdout;
        assert!(shown.contains("worse: the value is 10.0 % lower"), "{shown}");
    }
    for text in ["1 2\n3 4\n", "9,120\n", "ops\n", "one\n1\ntwo\n", ""] {
        let said = Wml::new().file("a", text).args(["compare", "a", "a"]).run().exits(2).stderr;
        assert!(said.contains("FILE:N"), "{text:?}: {said}");
    }
}

/// The unit of a column is unknown, so that it can't be compared with a figure of a run.
#[test]
fn columns_are_compared_only_with_columns() {
    let fio = r#"{"fio version": "3", "jobs": [{"jobname": "j", "read": {"total_ios": 1, "iops": 1, "bw": 1}}]}"#;
    let run = |words: &[&str], code: i32| {
        let wml = Wml::new().file("a.csv", "a,b\n1,9\n2,8\n").file("f.json", fio);
        wml.args(std::iter::once("compare").chain(words.iter().copied())).run().exits(code)
    };
    let mixed = run(&["a.csv:2", "f.json"], 2).stderr;
    assert!(mixed.contains("A is a column of numbers, and B has the figures of runs"), "{mixed}");
    assert!(run(&["f.json", "a.csv:2"], 2).stderr.contains("B is a column of numbers"));
    let direction = run(&["f.json", "f.json", "--lower-is-better"], 2).stderr;
    assert!(direction.contains("`--lower-is-better` is for columns of numbers"), "{direction}");
    let shown = run(&["a.csv:1", "a.csv:2", "--tolerance", "99%"], 11).stdout;
    assert!(shown.contains("value (higher is better)") && !shown.contains("ops"), "{shown}");
}

#[test]
fn results_of_different_workloads_are_compared_only_with_anyway() {
    let script = |n: u32| {
        format!(
            "define fileset name=data,path=$dir,entries={n},dirwidth=10,size=4k,prealloc\n\
             define process name=p {{ thread name=t {{ flowop read name=r,filesetname=data,iosize=4k }} }}\n"
        )
    };
    let result = |script: &str| {
        let words =
            ["x.wml", "--engine", "null", "--no-quiesce", "--runtime", "0.1", "--format", "none", "--json", "-"];
        Wml::new().file("x.wml", script).args(words).run().exits(0).stdout
    };
    let (a, b) = (result(&script(10)), result(&script(11)));
    let call = |words: &[&str]| {
        Wml::new()
            .file("a.json", &a)
            .file("b.json", &b)
            .args(["compare", "a.json", "b.json"])
            .args(words.iter().copied())
    };
    let output = call(&[]).run().exits(2);
    assert!(output.stderr.contains("differ in script") && output.stderr.contains("--anyway"), "{}", output.stderr);
    // The values come first.
    assert!(
        output.stderr.starts_with("differs") && output.stderr.contains("script (should be equal)  "),
        "{}",
        output.stderr
    );
    let mut one: Value = serde_json::from_str(&a).unwrap();
    one["runs"][0]["quiesced"] = true.into();
    let mut other = one.clone();
    other["runs"][0]["quiesced"] = false.into();
    other["runs"][0]["warmup"] = serde_json::json!({"seconds": 5.002});
    let same = Wml::new().file("a.json", &one.to_string()).file("b.json", &other.to_string());
    let output = same.args(["compare", "a.json", "b.json"]).run().exits(2);
    assert!(output.stderr.contains("differ in quiesced, warm-up"), "{}", output.stderr);
    // One run of each: there is no interval.
    let output = call(&["--anyway"]).run().exits(11);
    let text = squeezed(&output.stdout);
    assert!(text.contains(", should be equal)") && text.contains("too few runs"), "{text}");
}

/// The runs of a `foreach`, or of a suite, have no common mean.
#[test]
fn runs_of_different_workloads_are_not_one_sample() {
    let script = format!("{}foreach $n in 1,2 {{ run 60 }}\n", crate::experiments::SCRIPT);
    let words = [
        "x.wml",
        "--engine",
        "null",
        "--no-quiesce",
        "--quiet",
        "--set",
        "reads=2000",
        "--format",
        "none",
        "--json",
        "-",
    ];
    let ladder = Wml::new().file("x.wml", &script).args(words).run().exits(0).stdout;
    let call = |words: &[&str]| {
        let wml = Wml::new().file("old.json", &ladder).file("new.json", &ladder);
        wml.args(words.iter().copied()).args(["old.json", "new.json"])
    };
    let said = call(&["compare"]).run().exits(2).stderr;
    assert!(said.contains("old.json has runs of different workloads: they differ in $n"), "{said}");
    assert!(said.contains("`wmlrun compare --tests old.json new.json`") && said.contains("--anyway"), "{said}");
    let shown = call(&["compare", "--anyway"]).run().stdout;
    assert!(shown.contains("old.json and new.json"), "{shown}");
    let shown = call(&["wins", "--format", "json"]).run().exits(0).stdout;
    let found: Value = serde_json::from_str(&shown).unwrap();
    let names: Vec<&str> = found["tests"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!((names, &found["wins"]["draws"]), (vec!["old, run 1", "old, run 2"], &2.into()));
}

/// Other programs give their outputs any name.
/// A job in which only the time may have passed refuses any other difference, and results that do not tell their
/// conditions.
#[test]
fn only_named_conditions_may_differ() {
    let dir = tempfile::tempdir().unwrap();
    let script = "set $n=5\ndefine fileset name=f,path=$dir,entries=$n,size=4k,dirwidth=9,prealloc\n\
                  define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\n";
    std::fs::write(dir.path().join("x.wml"), script).unwrap();
    std::fs::write(dir.path().join("c.csv"), "ops\n5\n6\n").unwrap();
    for (file, n) in [("a.json", "n=5"), ("b.json", "n=5"), ("c.json", "n=6")] {
        let words = ["x.wml", "--engine", "null", "--runtime", "0.1", "--quiet", "--set", n, "--json", file];
        assert_eq!(wmlrun(dir.path(), &words).0, 0);
    }
    let compare = |b: &str, may: &str| wmlrun(dir.path(), &["compare", "a.json", b, "--may-differ", may]);
    assert_eq!(compare("b.json", "kernel,tool").0, 11, "one run on each side");
    let (code, said) = compare("c.json", "kernel,tool");
    assert!(code == 2 && said.contains("A and B differ in $n") && said.contains("--may-differ"), "{said}");
    assert_eq!(compare("c.json", "kernel, $n").0, 11);
    let (code, said) = wmlrun(dir.path(), &["compare", "c.csv:1", "c.csv:1", "--may-differ", "kernel"]);
    assert!(code == 2 && said.contains("the conditions of c.csv:1 are unknown"), "{said}");
}

#[test]
fn a_directory_of_outputs_of_filebench_is_a_side() {
    let output = |rate: u32| format!("1.0: IO Summary: 10 ops {rate} ops/s\n");
    let call =
        Wml::new().file("old/1.out", &output(100)).file("old/2.out", &output(102)).file("new/1.txt", &output(90));
    let shown = call.file("new/2.txt", &output(91)).args(["compare", "old", "new"]).run().stdout;
    let lines = ["A        2  101.0", "B        2   90.5"];
    assert!(lines.iter().all(|line| shown.contains(line)), "{shown}");
}

#[test]
fn a_missing_metric_is_reported_with_those_of_the_whole_run() {
    let flowops: String = (0..20).map(|n| format!("a{n} 5ops/s 1.0mb/s\n")).collect();
    let text = format!("1.0: Per-Operation Breakdown\n{flowops}1.0: IO Summary: 10 ops 5 ops/s 1.0mb/s 2.0ms/op\n");
    let call = Wml::new().file("old.out", &text).args(["compare", "old.out", "old.out", "--metric", "latency.p99"]);
    let said = call.run().exits(2).stderr;
    assert!(
        said.contains("are latency.mean, mib, ops, a0.mib, a0.ops,") && said.contains("the metrics of old.out"),
        "{said}"
    );
    assert!(said.contains(" and 27 more"), "{said}");
}

#[test]
fn a_file_that_is_not_a_result_is_an_error() {
    let deep = "[".repeat(200_000);
    for (name, text) in [
        ("empty", ""),
        ("binary", "\u{0}\u{1}\u{fffd}"),
        ("deep.json", &format!("{{\"fio version\": \"x\", \"jobs\": {deep}")[..]),
        ("cut.json", "{\"schema\": \"wmlrun.result/1\", \"runs\": [{\"state\": \"comp"),
        ("foreign.json", "{\"hello\": 1}"),
        ("null.json", "{\"schema\": \"wmlrun.result/1\", \"runs\": [null]}"),
        ("fio.json", "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"read\": {\"total_ios\": 5}}]}"),
        (
            "huge.json",
            "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"read\": {\"total_ios\": 1e999, \"iops\": 1e999}}]}",
        ),
        ("filebench.out", "1.0: IO Summary: x ops/s\n"),
    ] {
        let output = Wml::new().file(name, text).args(["compare", name, name]).run().exits(2);
        assert!(output.stderr.starts_with("error: ") && output.stderr.contains(name), "{name}: {}", output.shown());
    }
    for path in ["nowhere", "/dev/zero", "."] {
        Wml::new().args(["compare", path, path]).run().exits(2);
    }
    let output = Wml::new().file("x", "{\"schema\": 1}").args(["compare", "x", "x"]).run().exits(2);
    assert!(output.stderr.starts_with("error: x is not a result: unexpected content at line 1"), "{}", output.stderr);
}

/// The memory of a comparison is limited, whatever the files contain. A command with too little of it is ended by a
/// signal.
#[test]
fn files_with_millions_of_elements_are_refused() {
    let limited = ["sh", "-c", "ulimit -v 2000000 && exec \"$@\"", "sh"];
    let many = |element: &str| vec![element; 5_000_000].join(",");
    for (name, text, says) in [
        ("runs.json", format!("{{\"schema\":\"wmlrun.result/1\",\"runs\":[{}]}}", many("{}")), "100,000 observations"),
        (
            "flowops.json",
            format!("{{\"schema\":\"wmlrun.result/1\",\"runs\":[{{\"flowops\":[{}]}}]}}", many("{}")),
            "too many elements",
        ),
        (
            "variables.json",
            format!("{{\"runs\":[{{\"variables\":{{\"x\":[{}]}}}}],\"schema\":\"wmlrun.result/1\"}}", many("0")),
            "too many elements",
        ),
        (
            "series.json",
            format!(
                "{{\"schema\":\"wmlrun.result/1\",\"runs\":[{{\"intervals\":[{{\"flowops\":[{}]}}]}}]}}",
                many("{}")
            ),
            "too many elements",
        ),
        ("fio.json", format!("{{\"fio version\":\"3\",\"jobs\":[{}]}}", many("{}")), "too many elements"),
        ("f.csv:1", "1\n".repeat(5_000_000), "100,000 observations"),
        ("wide.csv:1", format!("{}\n", many("")), "column 1 has no numbers"),
    ] {
        let path = name.split(':').next().unwrap();
        let call = Wml::new().file(path, &text).under(limited).args(["compare", name, name]);
        let output = call.run().exits(2);
        assert!(output.stderr.contains(says), "{name}: {}", output.stderr);
    }
}

#[test]
fn a_pipe_is_read_and_one_without_a_writer_is_refused() {
    let run = |script: &str| {
        let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
        std::fs::write(dir.path().join("b.csv"), column(110.0, 9)).unwrap();
        std::fs::write(dir.path().join("a.csv"), column(100.0, 9)).unwrap();
        let bin = crate::cmd::binary().canonicalize().unwrap();
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", script, "sh"]).arg(&bin).current_dir(dir.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, text) = run("cat a.csv | \"$1\" compare /dev/stdin:2 b.csv:2");
    assert!(code == Some(0) && text.contains("better: the value is 10.0 % higher"), "{text}");
    let (code, text) = run("mkfifo f && { cat b.csv > f & } && \"$1\" compare a.csv:2 f:2");
    assert!(code == Some(0) && text.contains("better: the value is 10.0 % higher"), "{text}");
    let (code, text) = run("mkfifo f && \"$1\" compare f a.csv:2");
    assert!(code == Some(2) && text.contains("f can't be read: no program writes to this pipe"), "{text}");
    // In a directory a pipe is not a result.
    let (code, text) = run("mkdir d && mkfifo d/1.json && \"$1\" compare d d");
    assert!(code == Some(2) && text.contains("d/1.json is not a result: it is not a regular file"), "{text}");
}

/// A script whose runs make no I/O, in a directory with a results folder of it.
fn experiment(words: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    std::fs::write(dir.path().join("x.wml"), crate::experiments::SCRIPT).unwrap();
    let short: Vec<&str> = crate::experiments::SHORT.split(' ').chain(["--results", "e"]).collect();
    let output = wmlrun(dir.path(), &[&words[..1], &short, &words[1..]].concat());
    assert!(matches!(output.0, 0 | 10 | 11 | 12), "{}", output.1);
    dir
}

/// Runs the program in a directory. Returns its exit status and its output.
fn wmlrun(dir: &std::path::Path, words: &[&str]) -> (i32, String) {
    let output = crate::cmd::program().args(words).current_dir(dir).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_arms_of_an_experiment_are_not_compared_as_one_sample() {
    let dir = experiment(&["ab", "--blocks", "2", "--b", "--set n=2"]);
    let compare = |a: &str, b: &str| wmlrun(dir.path(), &["compare", a, b, "--tolerance", "99%", "--format", "json"]);
    let (code, text) = compare("e", "e");
    assert!(
        code == 2 && text.contains("e has runs of several arms: a, b") && text.contains("`e:a` or `e:b`"),
        "{text}"
    );
    let (code, text) = wmlrun(&dir.path().join("e"), &["compare", "runs", "runs"]);
    assert!(code == 2 && text.contains(". has runs of several arms") && text.contains("`.:a` or `.:b`"), "{text}");
    let (code, text) = compare("e:a", "e:b");
    assert!(matches!(code, 0 | 10 | 11), "{text}");
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["a"]["n"], &found["b"]["n"]), (&4.into(), &4.into()));
    assert_eq!(found["differs"][0]["what"], "$n");
    let dir = experiment(&["sweep", "--vary", "n=1,2", "--repeats", "3"]);
    let (code, text) = wmlrun(dir.path(), &["compare", "e:n=2", "e:n=1", "--tolerance", "99%"]);
    assert!(matches!(code, 0 | 10 | 11) && text.contains("e:n=2"), "{text}");
    let (code, text) = wmlrun(dir.path(), &["compare", "e:n=3", "e:n=1"]);
    assert!(code == 2 && text.contains("e has no arm `n=3`") && text.contains("its arms are n=1, n=2"), "{text}");
}

/// A reader of a mail has neither the folders nor their command lines.
#[test]
fn a_comparison_of_folders_says_in_which_options_they_differ() {
    let dir = experiment(&["ab", "--blocks", "2", "--a", "--set n=1 --mkdir", "--b", "--set n=2 --mkdir"]);
    let mail = |a: &str, b: &str| squeezed(&wmlrun(dir.path(), &["compare", a, b, "--format", "mail"]).1);
    let of_arms = mail("e:a", "e:b");
    assert!(of_arms.starts_with("x: A is e:a (--set n=1), B is e:b (--set n=2); 4 runs of each"), "{of_arms}");
    let alike = mail("e:a", "e:a");
    assert!(alike.starts_with("x: A is e:a, B is e:a; 4 runs of each"), "{alike}");
    for (name, n) in [("one", "n=1"), ("two", "n=2")] {
        let short = crate::experiments::SHORT.split(' ');
        let words = ["repeat"].into_iter().chain(short).chain(["--runs", "4", "--results", name, "--set", n]);
        let (code, text) = wmlrun(dir.path(), &words.collect::<Vec<_>>());
        assert!(matches!(code, 0 | 11), "{text}");
    }
    let of_folders = mail("one", "two");
    assert!(of_folders.starts_with("x: A is one (--set=n=1), B is two (--set=n=2); 4 runs of each"), "{of_folders}");
}

#[test]
fn an_interrupted_run_of_an_experiment_does_not_count() {
    let dir = experiment(&["repeat", "--runs", "3"]);
    let result = |n: u32| dir.path().join(format!("e/runs/000{n}.json"));
    let text = std::fs::read_to_string(result(3)).unwrap().replace("\"complete\"", "\"interrupted\"");
    std::fs::write(result(4), text).unwrap();
    let journal = dir.path().join("e/journal.jsonl");
    let started = "{\"event\":\"started\",\"run\":4,\"arm\":0,\"control\":null,\"time\":\"2026-11-24T10:00:00Z\"}\n";
    std::fs::write(&journal, std::fs::read_to_string(&journal).unwrap() + started).unwrap();
    let (code, text) = wmlrun(dir.path(), &["compare", "e", "e", "--tolerance", "99%"]);
    // Of a machine that is busy the verdict is unclear.
    assert!(matches!(code, 0 | 11) && text.contains("e: without run 4, which did not finish"), "{text}");
    // Alone it has no comparable figures, whatever the metric.
    let (code, text) = wmlrun(dir.path(), &["compare", "e/runs/0004.json", "e"]);
    assert!(code == 2 && text.contains("0004.json is not complete: interrupted"), "{text}");
    assert!(!text.contains("metric"), "{text}");
}

/// What fio writes for groups of jobs, both directions together, and several jobs.
#[test]
fn groups_directions_and_instances_of_fio_are_kept_apart() {
    let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    let fio = |name: &str, words: &[&str]| {
        let output = std::process::Command::new("fio")
            .args(["--ioengine=psync", "--size=1m", "--bs=4k", "--name=j", "--rw=randrw"])
            .args(words)
            .arg(format!("--output={name}"))
            .current_dir(dir.path())
            .output();
        match output {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(e) => {
                crate::cmd::skip(&format!("fio: {e}"));
                return None;
            }
        }
        let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
        Some(serde_json::from_str::<Value>(&text[text.find('{').unwrap()..]).unwrap()["jobs"].clone())
    };
    let value = |file: &str, metric: &str| {
        let (code, text) = wmlrun(dir.path(), &["compare", file, file, "--metric", metric, "--format", "json"]);
        assert_eq!(code, 11, "{file} {metric}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()["a"]["values"][0].as_f64().unwrap()
    };
    let close = |ours: f64, theirs: f64| assert!((ours / theirs - 1.0).abs() < 1e-9, "{ours}, {theirs}");
    let words = ["--stonewall", "--name=k", "--rw=read", "--stonewall", "--output-format=json"];
    let Some(jobs) = fio("groups", &words) else { return };
    close(value("groups", "group1.ops"), jobs[1]["read"]["iops"].as_f64().unwrap());
    let (code, text) = wmlrun(dir.path(), &["compare", "groups", "groups"]);
    assert!(code == 2 && text.contains("group0.ops"), "{text}");
    let Some(jobs) = fio("mixed", &["--unified_rw_reporting=1", "--output-format=json"]) else { return };
    close(value("mixed", "ops"), jobs[0]["mixed"]["iops"].as_f64().unwrap());
    close(value("mixed", "latency.p99"), jobs[0]["mixed"]["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap());
    // fio itself adds up the instances of a job with `--group_reporting`, and the directions with `both`.
    let words = ["--numjobs=2", "--group_reporting", "--unified_rw_reporting=both", "--output-format=json+"];
    let Some(jobs) = fio("both", &words) else { return };
    close(value("both", "latency.p99"), jobs[0]["mixed"]["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap());
    close(value("both", "latency.mean"), jobs[0]["mixed"]["lat_ns"]["mean"].as_f64().unwrap());
    let write = &jobs[0]["write"]["clat_ns"]["percentile"];
    close(value("both", "j.write.latency.p90"), write["90.000000"].as_f64().unwrap());
}

/// What fio itself writes, in both of its JSON forms.
#[test]
fn results_of_fio_are_read() {
    let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
    let fio = |format: &str| {
        let output = std::process::Command::new("fio")
            .args(["--name=j", "--rw=randread", "--size=1m", "--bs=4k", "--ioengine=psync", "--loops=20"])
            .args([format!("--output-format={format}"), format!("--output={format}")])
            .current_dir(dir.path())
            .output();
        match output {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(e) => {
                crate::cmd::skip(&format!("fio: {e}"));
                return None;
            }
        }
        let text = std::fs::read_to_string(dir.path().join(format)).unwrap();
        let theirs: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        Some((text, theirs["jobs"][0]["read"].clone()))
    };
    let (Some((a, of_a)), Some((b, of_b))) = (fio("json"), fio("json+")) else { return };
    for (metric, key) in [("ops", &["iops"][..]), ("latency.mean", &["lat_ns", "mean"])] {
        let call = Wml::new().file("a.json", &a).file("b.json", &b);
        let output = call.args(["compare", "a.json", "b.json", "--format", "json", "--metric", metric]).run().exits(11);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        for (side, theirs) in [("a", &of_a), ("b", &of_b)] {
            let theirs = key.iter().fold(theirs, |at, key| &at[*key]).as_f64().unwrap();
            let ours = found[side]["values"][0].as_f64().unwrap();
            // Seconds and back are another rounding than nanoseconds.
            assert!((ours / theirs - 1.0).abs() < 1e-12, "{metric} of {side}: {ours}, {theirs}");
        }
    }
    // A file that was cut off is an error, wherever that is.
    for cut in [a.len() / 4, a.len() / 2, a.len() - 10] {
        let output = Wml::new().file("cut.json", &a[..cut]).args(["compare", "cut.json", "cut.json"]).run().exits(2);
        assert!(output.stderr.contains("cut.json"), "{}", output.stderr);
    }
}

/// Filebench's lines of both generations, as our own reports write them.
#[test]
fn lines_of_filebench_are_read() {
    let script = "define fileset name=data,path=$dir,entries=10,dirwidth=10,size=4k,prealloc\n\
                  define process name=p { thread name=t { flowop read name=r,filesetname=data,iosize=4k } }\n";
    for format in ["filebench", "filebench-1.4"] {
        let words = ["x.wml", "--engine", "null", "--no-quiesce", "--runtime", "0.2", "--format", format];
        let output = Wml::new().file("x.wml", script).args(words).result().run().exits(0);
        let ours = output.only_run()["summary"]["ops_per_s"].as_f64().unwrap();
        let call = Wml::new().file("a.out", &output.stdout).file("b.out", &output.stdout);
        let output = call.args(["compare", "a.out", "b.out", "--format", "json"]).run().exits(11);
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        let read = found["a"]["values"][0].as_f64().unwrap();
        assert!((read / ours - 1.0).abs() < 1e-3, "{format}: {read} of {ours}");
    }
}

/// A file that is too long to be a result is refused before it is read.
#[test]
fn a_file_of_a_gigabyte_is_refused() {
    let call = Wml::new().args(["compare", "big.json", "big.json"]);
    let file = std::fs::File::create(call.dir().join("big.json")).unwrap();
    file.set_len(1 << 30).unwrap();
    let output = call.run().exits(2);
    assert!(output.stderr.contains("more than 256 MiB"), "{}", output.stderr);
}
