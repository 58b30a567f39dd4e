//! Tests `wmlrun compare`: its input formats, its output and its exit status.

use crate::cmd::Wml;
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
        (110.0, &[][..], 0, "better: B is better than A"),
        (90.0, &[], 10, "worse: B is worse than A"),
        (100.0, &[], 0, "same: A and B are the same"),
        (100.0, &["--tolerance", "0.1%"], 11, "unclear: "),
        (110.0, &["--metric", "latency.mean"], 10, "worse: B is worse than A"),
        (90.0, &["--metric", "latency.p99"], 0, "better: B is better than A"),
        (110.0, &["--expect", "better"], 0, "better"),
        (100.0, &["--expect", "better"], 11, "same"),
        (90.0, &["--expect", "better"], 10, "worse"),
    ] {
        let output = compare(100.0, b, words).run().exits(code);
        let last = output.stdout.lines().last().unwrap();
        assert!(last.contains(says), "{b} {words:?}: {last}");
        assert!(output.stdout.contains("not interleaved"), "{}", output.stdout);
    }
}

/// As a job of a continuous integration would.
#[test]
fn a_shell_script_can_branch_on_the_exit_status() {
    let script = "\"$1\" compare a.csv:2 b.csv:2 > report && echo fine || echo \"status $?\"";
    let bin = crate::cmd::binary().canonicalize().unwrap();
    for (b, says) in [(101.0, "fine\n"), (90.0, "status 10\n")] {
        let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
        std::fs::write(dir.path().join("a.csv"), format!("run,ops\n{}", column(100.0, 9))).unwrap();
        std::fs::write(dir.path().join("b.csv"), format!("run,ops\n{}", column(b, 9))).unwrap();
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", script, "sh"]).arg(&bin).current_dir(dir.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), says);
    }
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
        ("csv", "a.csv:2 and b.csv:2,B,11,ops,"),
        ("benchstat", "side: B\nBenchmarkA_csv_2_and_b_csv_2 1 "),
        ("bencher", "\"lower_value\""),
    ] {
        let output = compare(100.0, 110.0, &["--format", format]).run().exits(0);
        assert!(output.stdout.contains(says), "{format}: {}", output.stdout);
    }
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
    // One run of each: there is no interval.
    let output = call(&["--anyway"]).run().exits(11);
    assert!(output.stdout.contains("(should be equal)") && output.stdout.contains("too few runs"), "{}", output.stdout);
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
                crate::cmd::skip("results_of_fio_are_read", &format!("fio: {e}"));
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
    assert!(output.stderr.contains("longer than 256 MiB"), "{}", output.stderr);
}
