//! Tests every shipped script: it is checked, planned, and run for a moment on small files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use crate::cmd::{Wml, count, flowops, memory, number};
use crate::scripts::{Script, examples, for_each, personalities, shipped_or_fifth, side_by_side};
use crate::sums::assert_adds_up;
use crate::undisturbed::undisturbed;

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
fn all_have_a_reproducible_plan() {
    for_each(&all(), side_by_side(), |script| {
        // The free memory is another one each time.
        let memory: &[_] = if script.text.contains("$freememory") { &[("freememory", "4g")] } else { &[] };
        let plan =
            |seed| Wml::new().args(["plan", "-v", &script.call, "--seed", seed]).sets(memory).run().exits(0).stdout;
        let first = plan("1");
        assert!(first.lines().count() > 3, "{first}");
        assert_eq!(first, plan("2"), "the seed of the run changes no plan");
    });
}

#[test]
fn all_are_formatted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["personalities", "examples"].into_iter().flat_map(|dir| fs::read_dir(root.join(dir)).unwrap());
    let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    let scripts: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|end| end == "wml")).collect();
    assert!(scripts.len() > 100, "the scripts were not found");
    Wml::new().args(["fmt", "--check"]).args(scripts).run().exits(0);
}

/// I/O flowops that complete no operation in 20 s, each with the reason: by script and flowop, `*` for all of a script's.
const NOT_REACHED: &[(&str, &str, &str)] = &[];

/// A script's run in a line of the table.
struct Line {
    name: String,
    ops: u64,
    flowops: usize,
    /// Those without an operation, each with its place in the script.
    silent: Vec<(usize, String)>,
}

/// Scripts that do not do everything with one value of a variable: script, variable, its other value.
const ALTERNATIVES: &[(&str, &str, &str)] =
    &[("bonnie_getc", "stdio", "1"), ("bonnie_putc", "stdio", "1"), ("pg", "checkpoint", "0.1")];

/// Runs a script for some seconds.
fn line_of(script: &Script, values: &[(&str, &str)], seconds: &str) -> Line {
    let call = Wml::below(&memory()).args([&script.call, "--runtime", seconds]).sets(values).result();
    let output = call.timeout(Duration::from_mins(1)).run().exits(0);
    let runs = output.result()["runs"].as_array().unwrap().clone();
    assert!(!runs.is_empty(), "no run in the result");
    let mut line = Line { name: script.name.clone(), ops: 0, flowops: 0, silent: Vec::new() };
    for run in &runs {
        assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
        assert_adds_up(run);
        assert!(number(run, &["summary", "ops"]) > 0.0, "no operation\n{}", output.shown());
        line.ops += count(&run["summary"], "ops");
        for (n, f) in flowops(run).iter().enumerate() {
            assert_eq!(f["errors"], serde_json::json!({}), "{}", f["name"]);
            if f["class"] == "io" || f["class"] == "aio" {
                line.flowops += 1;
                line.silent.extend((count(f, "ops") == 0).then(|| (n, f["name"].as_str().unwrap().to_owned())));
            }
        }
    }
    assert_eq!(output.left(), [""; 0], "left behind");
    line
}

#[test]
fn all_run_and_every_io_flowop_is_executed() {
    undisturbed(|| {
        for (name, _) in NOT_RUN {
            assert!(all().iter().any(|s| s.name == *name), "{name} is not shipped");
        }
        let run: Vec<_> =
            shipped_or_fifth().into_iter().filter(|s| NOT_RUN.iter().all(|(name, _)| *name != s.name)).collect();
        let lines = Mutex::new(Vec::new());
        for_each(&run, side_by_side(), |script| {
            let mut values = [script.small(), script.few_threads(), script.buffered()].concat();
            roomy(script, &mut values, "8000");
            let within = |seconds: &str| {
                let mut line = line_of(script, &values, seconds);
                for (_, variable, other) in ALTERNATIVES.iter().filter(|(name, ..)| *name == script.name) {
                    let other = line_of(script, &[values.clone(), vec![(*variable, *other)]].concat(), seconds);
                    line.silent.retain(|flowop| other.silent.contains(flowop));
                }
                line
            };
            // Rare flowops of a mix may not be reached within a moment on a busy machine.
            let mut line = within("0.3");
            for longer in ["2", "20"] {
                if !line.silent.is_empty() {
                    line = within(longer);
                }
            }
            lines.lock().unwrap().push(line);
        });
        let mut lines = lines.into_inner().unwrap();
        lines.sort_by(|a, b| a.name.cmp(&b.name));
        show(&lines);
        let known = |name: &str, flowop: &str| {
            NOT_REACHED.iter().any(|(script, f, _)| *script == name && (*f == flowop || *f == "*"))
        };
        let idle: Vec<String> = lines
            .iter()
            .flat_map(|line| line.silent.iter().map(|(_, f)| (line.name.as_str(), f.as_str())))
            .filter(|(name, f)| !known(name, f))
            .map(|(name, f)| format!("{name}: {f}"))
            .collect();
        assert!(idle.is_empty(), "I/O flowops without an operation:\n{}", idle.join("\n"));
    });
}

/// Creations and removals that are drawn at random drift further apart, the faster they are, than a small set has room for.
fn roomy<'a>(script: &Script, values: &mut Vec<(&'a str, &'a str)>, files: &'a str) {
    if script.name == "specsfs97" {
        values.retain(|(name, _)| *name != "nfiles");
        values.push(("nfiles", files));
    }
}

/// Prints the table of results; the figures are those of this machine and of small files.
#[allow(clippy::print_stdout, reason = "a reader of the test's output wants the table, not only its end")]
fn show(lines: &[Line]) {
    println!("{:<28} {:>10} {:>12}  without operations", "script", "operations", "I/O flowops");
    for line in lines {
        println!(
            "{:<28} {:>10} {:>12}  {}",
            line.name,
            line.ops,
            line.flowops,
            line.silent.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
        );
    }
}

/// On the null engine: all stages from text to report, with files of full size that need not be created.
#[test]
fn all_run_on_the_null_engine() {
    for_each(&shipped_or_fifth(), side_by_side(), |script| {
        let mut values = [script.few_threads(), script.small()].concat();
        roomy(script, &mut values, "100000");
        let call = Wml::new().args([&script.call, "--runtime", "0.2", "--engine", "null"]).sets(&values).result();
        let output = call.timeout(Duration::from_mins(1)).run().exits(0);
        let runs = output.result()["runs"].as_array().unwrap().clone();
        assert!(!runs.is_empty() && runs.iter().all(|run| run["engine"] == "null"));
        // A script whose threads end for want of a file says so by `maystarve`, else its result must not be used.
        assert!(!output.shown().contains("warning[exhausted]"), "{}", output.shown());
        runs.iter().for_each(assert_adds_up);
        assert_eq!(output.left(), [""; 0], "a run on the null engine creates nothing");
    });
}

/// The head of each table of docs/personalities.md.
const HEAD: &str = "| personality | models | processes | threads | files | bytes |\n|---|---|---:|---:|---:|---:|\n";
/// What stands before a table, with the name of its group, and behind it.
const FAMILY: &str = "<!-- personalities: ";
const END: &str = "<!-- end -->";

/// A row for each personality, from its own text and its plan, by name.
fn rows() -> BTreeMap<String, String> {
    let rows = Mutex::new(BTreeMap::new());
    for_each(&personalities(), side_by_side(), |script| {
        let plan = Wml::new().args(["plan", "-v", &script.call]).run().exits(0).stdout;
        // total: 1 process, 16 threads, 1,000 files in 2 directories with 13.0 MiB, …
        let total = plan.lines().find_map(|l| l.strip_prefix("total: ")).expect("a line of totals");
        let part = |word: &str| {
            let found = total.split(", ").find(|part| part.contains(word)).unwrap_or("");
            found.split(' ').next().unwrap_or("").to_owned()
        };
        let bytes = total.split(" with ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("").to_owned();
        let about = script.text.lines().next().unwrap().trim_start_matches("# ");
        let about = about.split_once(": ").map_or(about, |(_, rest)| rest).trim_end_matches('.').replace('|', "/");
        let row = format!(
            "| `{}` | {about} | {} | {} | {} | {bytes} |\n",
            script.name,
            part("process"),
            part("thread"),
            part("file")
        );
        rows.lock().unwrap().insert(script.name.clone(), row);
    });
    rows.into_inner().unwrap()
}

/// Each personality stands in the table of its group. `UPDATE_DOCS=1` writes the tables.
#[test]
fn the_tables_of_personalities_agree_with_the_scripts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/personalities.md");
    let text = fs::read_to_string(&path).unwrap();
    let (mut rows, mut wanted, mut rest) = (rows(), String::new(), text.as_str());
    while let Some((before, table)) = rest.split_once(FAMILY) {
        let (group, table) = table.split_once(" -->\n").unwrap();
        let (_, after) = table.split_once(END).expect("a table without an end");
        let listed = Wml::new().args(["list", group]).run().exits(0).stdout;
        let names = listed.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let family = names.map(|name| rows.remove(name).unwrap_or_else(|| panic!("{name}: unknown, or twice")));
        wanted += &format!("{before}{FAMILY}{group} -->\n{HEAD}{}{END}", family.collect::<String>());
        rest = after;
    }
    wanted += rest;
    assert!(rows.is_empty(), "docs/personalities.md lacks {:?}", rows.keys());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, wanted).unwrap();
    } else {
        assert_eq!(text, wanted, "run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn lists_of_personalities_fit_a_screen() {
    let list = |words: &[&str]| Wml::new().args(["list"]).args(words).run().exits(0).stdout;
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= 80);
    let groups = list(&[]);
    assert!(groups.lines().count() <= 24 && fits(&groups), "{groups}");
    let all = list(&["personalities"]);
    let names = |text: &str| -> BTreeSet<String> {
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    assert!(fits(&all), "{all}");
    assert_eq!(names(&all), personalities().into_iter().map(|script| script.name).collect());
    // Those of the groups of a list, indented below its heading, are the same.
    let grouped: Vec<&str> = groups.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let grouped =
        grouped.iter().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "experiments");
    let of_groups: BTreeSet<String> = grouped.flat_map(|group| names(&list(&[group]))).collect();
    assert!(names(&all).is_subset(&of_groups), "{groups}");
    let mail = list(&["Mail"]);
    assert!(["varmail", "qmail", "postmark"].iter().all(|name| names(&mail).contains(*name)), "{mail}");
    let varmail = mail.lines().find(|line| line.starts_with("varmail ")).unwrap();
    assert!(varmail.contains(" 13.0 MiB ") && varmail.contains(" 16 "), "{varmail}");
    let unknown = Wml::new().args(["list", "flowps"]).run().exits(2);
    assert!(unknown.stderr.contains("did you mean `flowops`?"), "{}", unknown.stderr);
}

#[test]
fn a_file_takes_precedence_over_a_shipped_script() {
    let own = "define process name=mine { thread name=t { flowop delay name=d,value=1 } }\n";
    let output = Wml::new().file("varmail.wml", own).args(["plan", "varmail"]).run().exits(0);
    assert!(output.stdout.contains("mine"), "{}", output.stdout);
    let output = Wml::new().args(["plan", "varmail.wml"]).run().exits(0);
    assert!(output.stdout.contains("filereader"), "{}", output.stdout);
}
