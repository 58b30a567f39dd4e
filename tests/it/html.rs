//! Tests `wmlrun report`: pages of runs, experiments and load curves, and the file that they are written to.
//!
//! With `WMLRUN_LONG=1` a headless browser opens the pages, if one is installed.

use crate::cmd::{Output, Wml, long, program, skip, squeezed};
use crate::experiments::SCRIPT;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Markup in every kind of name that a script can give.
const HOSTILE: &str = "define fileset name=\"</title><script>alert(1)</script>&'\",path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n\
    define process name=\"<img src=x onerror=alert(2)>\" {\n\
      thread name=\"'><svg onload=alert(3)>\" {\n\
        flowop read name=\"</svg></style><b>&amp;\",filesetname=\"</title><script>alert(1)</script>&'\",iosize=4k\n\
    } }\n";

/// Options of a short run of any script.
const SHORT: &str = "--engine null --no-quiesce --runtime 0.1 --quiet";

/// Options of a run that ends after a number of reads.
const READS: &str = "--engine null --no-quiesce --runtime 60 --set reads=200000 --quiet";

/// An experiment with two factors of two levels.
const FACTORS: &str = "script = \"x.wml\"\nrepeats = 2\n\
    [[factor]]\nname = \"n\"\nlevels = [1, 2]\n\
    [[factor]]\nname = \"io\"\nlevels = [{ name = \"plain\" }, { name = \"pinned\", options = \"--pin\" }]\n";

/// A directory with results, made by one command after another.
struct Results(tempfile::TempDir);

impl Results {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(crate::cmd::scratch()).unwrap();
        fs::write(dir.path().join("x.wml"), SCRIPT).unwrap();
        fs::write(dir.path().join("hostile.wml"), HOSTILE).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program with these words. Returns its status, and what it printed.
    fn ended(&self, words: &str) -> (Option<i32>, String) {
        let output = program().args(words.split(' ')).current_dir(self.0.path()).output().unwrap();
        let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), shown)
    }

    /// Runs the program with these words. Returns what it printed.
    #[track_caller]
    fn run(&self, words: &str, code: i32) -> String {
        let (status, shown) = self.ended(words);
        assert_eq!(status, Some(code), "wmlrun {words}\n{shown}");
        shown
    }

    /// Makes a result of a script. On a busy machine a short run may end before its first operation.
    fn result(&self, script: &str, name: &str) {
        let words = format!("{script} {SHORT} --format none --json {name}");
        if self.ended(&words).0 != Some(0) {
            self.run(&words.replace("--runtime 0.1", "--runtime 5 --force"), 0);
        }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// Fails if a page has an element or an attribute that could load or run something.
#[track_caller]
fn is_harmless(page: &str) {
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        assert!(
            !["script", "img", "link", "iframe", "object", "embed", "b", "base", "form"].contains(&name),
            "<{tag}>"
        );
        // The quotes of a value are escaped, so an attribute begins outside an even number of them.
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains(" on") && !outside.contains(" src"), "<{tag}>");
        assert!(!outside.contains(" href=") || tag.contains("href=\"#"), "<{tag}>");
    }
}

#[test]
fn a_page_has_a_section_for_each_result() {
    let results = Results::new();
    results.result("x.wml", "one.json");
    results.run(&format!("repeat x.wml {READS} --runs 3 --results rep"), 0);
    results.run(&format!("sweep x.wml {READS} --vary n=1,2,3 --repeats 2 --results curve"), 0);
    results.run("report one.json rep curve -o page.html", 0);
    let page = results.text("page.html");
    assert_eq!(page.matches("<section").count(), 3);
    for part in ["Flowops", "repeat: x.wml", "Runs: ops", "sweep: x.wml", "Throughput over load", "Load curve", "peak "]
    {
        assert!(page.contains(part), "{part}");
    }
    // Each picture has a table with the same values, and each mark its values.
    assert_eq!(page.matches("<figure>").count(), page.matches("The values as a table").count());
    assert!(page.matches("data-x=").count() >= 3 + 3 * 3, "{}", page.matches("data-x=").count());
    is_harmless(&page);
    // The directory of the runs is a directory of results, with a section for each.
    results.run("report rep/runs -o runs.html", 0);
    assert_eq!(results.text("runs.html").matches("<section").count(), 3);
}

#[test]
fn a_page_of_a_comparison_has_its_verdict() {
    let results = Results::new();
    let call = |words: &str| {
        let output = program().args(words.split(' ')).current_dir(results.0.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = call(&format!("ab x.wml {READS} --blocks 2 --tolerance 90% --results r"));
    let is_verdict =
        |line: &&str| ["better: ", "same: ", "not worse: ", "unclear: "].iter().any(|name| line.starts_with(name));
    let verdict = text.lines().find(is_verdict).unwrap();
    results.run("report r -o page.html", 0);
    let page = results.text("page.html");
    assert!(page.contains(&verdict.replace('/', "&#x2f;")) || page.contains(verdict), "{verdict}\n{page}");
    for part in ["How the verdict came about", "Distribution of the runs: ops", "A and B have the same options"] {
        assert!(page.contains(part), "{part}");
    }
    is_harmless(&page);
    call("compare r:a r:b --method study -o study.html");
    assert!(results.text("study.html").contains("QQ plot") && !page.contains("QQ plot"));
}

/// The marks of a picture: series, `data-x` and `data-y`.
#[track_caller]
fn marks(page: &str, title: &str) -> Vec<(String, f64, f64)> {
    let (_, figure) =
        page.split_once(&format!("<figcaption><h3>{title}<")).unwrap_or_else(|| panic!("{title}\n{page}"));
    let figure = figure.split("</figure>").next().unwrap();
    let value = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    let number = |tag: &str, name: &str| value(tag, name)?.parse::<f64>().ok();
    let mark = |tag: &str| Some((value(tag, "class")?, number(tag, "data-x")?, number(tag, "data-y")?));
    figure.split('<').filter_map(|rest| mark(rest.split('>').next()?)).collect()
}

/// The marks of a comparison and of a load curve are the figures of the results as JSON.
#[test]
fn marks_have_the_figures_of_the_results() {
    let results = Results::new();
    let read = |name: &str| -> serde_json::Value { serde_json::from_str(&results.text(name)).unwrap() };
    for name in ["a", "b"] {
        results.run(&format!("x.wml {READS} --format none --json {name}.json"), 0);
    }
    results.ended("compare a.json b.json -o page.html");
    let drawn = marks(&results.text("page.html"), "Latency of all I&#x2f;O");
    let mut expected = Vec::new();
    for name in ["a", "b"] {
        let latency = &read(&format!("{name}.json"))["runs"][0]["summary"]["latency_ns"];
        for (percentile, key) in [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9")] {
            expected.push((name.to_owned(), percentile, latency[key].as_f64().unwrap()));
        }
    }
    assert_eq!(drawn, expected);

    results.run(&format!("sweep x.wml {READS} --vary n=2,40 --repeats 2 --results curve"), 0);
    results.run("report curve -o page.html", 0);
    let page = results.text("page.html");
    let runs: Vec<serde_json::Value> = (1..=4).map(|n| read(&format!("curve/runs/{n:04}.json"))).collect();
    let mean = |load: u64, of: &dyn Fn(&serde_json::Value) -> f64| {
        let of_load: Vec<f64> = runs
            .iter()
            .map(|run| &run["runs"][0])
            .filter(|run| run["variables"]["n"] == load)
            .map(|r| of(&r["summary"]))
            .collect();
        assert_eq!(of_load.len(), 2, "{load}");
        of_load.iter().sum::<f64>() / 2.0
    };
    let p50 = |summary: &serde_json::Value| summary["latency_ns"]["p50"].as_f64().unwrap();
    let p99 = |summary: &serde_json::Value| summary["latency_ns"]["p99"].as_f64().unwrap();
    let rate = |summary: &serde_json::Value| summary["ops_per_s"].as_f64().unwrap();
    let times = marks(&page, "Response time over load");
    let found =
        marks(&page, "Throughput over load").into_iter().chain(times.into_iter().filter(|(class, ..)| class != "c"));
    let expected = [("a", &rate as &dyn Fn(&serde_json::Value) -> f64), ("a", &p50), ("b", &p99)]
        .into_iter()
        .flat_map(|(class, of)| [2, 40].map(|load| (class, load as f64, mean(load, of))));
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 6, "{found:?}");
    for ((class, x, y), (of, load, value)) in found.into_iter().zip(expected) {
        assert_eq!((class.as_str(), x), (of, load));
        assert!((y / value - 1.0).abs() < 1e-12, "{y} {value}");
    }
}

#[test]
fn an_interrupted_experiment_has_a_page_of_its_runs() {
    let results = Results::new();
    results.run(&format!("repeat x.wml {READS} --runs 3 --results rep"), 0);
    let journal = results.text("rep/journal.jsonl");
    let (third, _) = journal.match_indices("{\"event\":\"started\"").nth(2).unwrap();
    // A line that was not written completely, as of an experiment in progress.
    fs::write(results.path("rep/journal.jsonl"), &journal[..third + 20]).unwrap();
    results.run("report rep -o page.html", 0);
    let page = results.text("page.html");
    assert!(page.contains("2 runs") && page.contains("The experiment is not complete."), "{page}");
    assert!(page.contains("running or killed after 2 runs"), "{page}");
    assert_eq!(results.text("rep/journal.jsonl"), journal[..third + 20], "the folder is unchanged");
    let stopped = "{\"event\":\"stopped\",\"why\":\"interrupted\",\"time\":\"2026-11-24T10:00:00Z\"}\n";
    fs::write(results.path("rep/journal.jsonl"), journal[..third].to_owned() + stopped).unwrap();
    results.run("report rep -o page.html", 0);
    assert!(results.text("page.html").contains("interrupted after 2 runs"), "{}", results.text("page.html"));
    // A result that was lost.
    fs::write(results.path("rep/runs/0002.json"), "").unwrap();
    results.run("report rep -o page.html", 0);
    let page = results.text("page.html");
    assert!(page.contains("the results of these runs can&#x27;t be read: 2") && page.contains("1 run,"), "{page}");
}

#[test]
fn markup_in_names_stays_text() {
    let results = Results::new();
    results.result("hostile.wml", "hostile.json");
    results.run("report hostile.json -o page.html", 0);
    let page = results.text("page.html");
    assert!(page.contains("&lt;script&gt;") && page.contains("&lt;img src=x onerror=alert(2)&gt;"), "{page}");
    is_harmless(&page);
}

#[test]
fn a_page_goes_to_standard_output_or_to_a_file_that_is_a_page() {
    let results = Results::new();
    results.result("x.wml", "one.json");
    let page = results.run("report one.json", 0);
    results.run("report one.json -o page.html", 0);
    assert_eq!(results.text("page.html"), page);
    assert_eq!(results.run("report one.json -o -", 0), page);
    // A page is replaced, and so is an empty file.
    results.run("report one.json one.json -o page.html", 0);
    assert_eq!(results.text("page.html").matches("<section").count(), 2);
    fs::write(results.path("empty"), "").unwrap();
    results.run("report one.json -o empty", 0);

    let before = results.text("one.json");
    for (output, says) in [
        ("one.json", "can't be written: it is one of the files that are read"),
        ("x.wml", "exists, and is not a page of wmlrun"),
    ] {
        let shown = results.run(&format!("report one.json -o {output}"), 3);
        assert!(shown.contains(&format!("{output} {says}")), "{shown}");
    }
    assert_eq!((results.text("one.json"), results.text("x.wml")), (before, SCRIPT.to_owned()));
    let shown = results.run("report one.json -o page.csv", 2);
    assert!(shown.contains("page.csv would be an HTML page") && shown.contains("--format"), "{shown}");
    let shown = results.run("report one.json -o none/page.html", 3);
    assert!(shown.contains("none/page.html can't be written") && shown.contains("help"), "{shown}");
}

#[test]
fn pictures_are_files_of_their_own() {
    let results = Results::new();
    results.run(&format!("repeat x.wml {READS} --runs 3 --results rep"), 0);
    fs::write(results.path("file"), "").unwrap();
    assert_eq!(results.run("report rep --pictures made/pictures", 0), "", "no page");
    let names = || {
        let entries = fs::read_dir(results.path("made/pictures")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let made = names();
    assert_eq!(made[0], "01-runs-ops.svg");
    // The second time pictures are replaced, and the page is written too.
    results.run("report rep --pictures made/pictures -o page.html", 0);
    assert_eq!(names(), made);
    assert!(results.text("page.html").contains("</html>"));
    // Other files are not, and then none is written.
    let second = format!("made/pictures/{}", made[1]);
    fs::write(results.path(&second), "<svg>mine</svg>").unwrap();
    fs::remove_file(results.path("made/pictures/01-runs-ops.svg")).unwrap();
    let shown = results.run("report rep --pictures made/pictures", 3);
    assert!(shown.contains(&format!("{second} exists, and is not a picture of wmlrun")), "{shown}");
    assert_eq!((names(), results.text(&second)), (made[1..].to_vec(), "<svg>mine</svg>".to_owned()));
    results.run("report rep --pictures made/pictures --force", 0);
    assert_eq!(names(), made);
    let shown = results.run("report rep --pictures file", 3);
    assert!(shown.contains("file can't be created"), "{shown}");
    results.run("report rep --pictures p --format csv", 2);
}

/// The result of a folder is that of the command that made it, in the formats that both have.
#[test]
fn the_result_of_a_folder_is_printed_again() {
    let results = Results::new();
    let fixed = "--blocks 2 --tolerance 90%";
    for (words, formats) in [
        (format!("repeat x.wml {READS} --runs 3"), &["text", "json", "csv", "markdown", "benchstat"][..]),
        (format!("sweep x.wml {READS} --vary n=1,2 --repeats 1"), &["text", "json"]),
        (format!("ab x.wml {READS} {fixed} --b=--pin"), &["text", "json"]),
    ] {
        for format in formats {
            let _ = fs::remove_dir_all(results.path("made"));
            let words = format!("{words} --format {format} --results made");
            let made = program().args(words.split(' ')).current_dir(results.path("")).output().unwrap();
            let again = results.run(&format!("report made --format {format}"), 0);
            assert_eq!(again, String::from_utf8(made.stdout).unwrap(), "{words:?}");
        }
    }
    fs::write(results.path("e.toml"), FACTORS).unwrap();
    let words = format!("experiment e.toml {READS} --results cells --append rows.csv");
    let made = results.run(&words, 0);
    assert_eq!(results.run("report cells --format text", 0), made);
    // A row for each run.
    assert_eq!(results.run("report cells --format csv-runs", 0), results.text("rows.csv"));
    let shown = results.run("report cells --format markdown-runs", 0);
    assert!(shown.starts_with("| run | arm | ops | latency.mean | control | state | notes |\n|---|"), "{shown}");
    let rows: Vec<&str> = shown.lines().skip(2).collect();
    assert!(rows.len() == 8 && rows.iter().all(|row| row.contains(" | complete | ")), "{shown}");
    // That of an experiment in progress says so.
    let journal = results.text("cells/journal.jsonl");
    let (last, _) = journal.match_indices("{\"event\":\"finished\"").last().unwrap();
    fs::write(results.path("cells/journal.jsonl"), &journal[..last]).unwrap();
    let shown = results.run("report cells --format text", 0);
    let words = squeezed(&shown);
    assert!(words.contains("Caution: the experiment is not complete: ") && words.contains("7 of 8 runs in"), "{shown}");
    let shown = results.run("report made --format hgrm", 2);
    assert!(shown.contains("no format `hgrm`") && shown.contains("`text`, `markdown`, `junit`"), "{shown}");
    let shown = results.run("report made made --format csv", 2);
    assert!(
        shown.contains("give its folder alone, or write a page with `-o`; `text` and `markdown` join experiments only"),
        "{shown}"
    );
    for (format, heads) in [("text", ["made:\n\n", "\ncells:\n\n"]), ("markdown", ["## made\n\n", "\n## cells\n\n"])] {
        let joined = results.run(&format!("report made cells --format {format}"), 0);
        let parts = ["made", "cells"].map(|name| results.run(&format!("report {name} --format {format}"), 0));
        assert_eq!(joined, format!("{}{}{}{}", heads[0], parts[0], heads[1], parts[1]));
    }
    results.run("report made -o title.html --title a|b", 0);
    assert!(results.text("title.html").contains("<title>a|b</title>"));
    results.run("report made --format html -o title.html --title c", 0);
    assert!(results.text("title.html").contains("<title>c</title>"));
    for words in ["--format text", "--pictures pictures"] {
        let shown = results.run(&format!("report made --title a {words}"), 2);
        assert!(shown.contains("none is written"), "{shown}");
    }
}

#[test]
fn a_path_that_is_no_result_is_an_error_and_writes_nothing() {
    let results = Results::new();
    results.result("x.wml", "one.json");
    fs::create_dir(results.path("empty")).unwrap();
    fs::write(results.path("other.json"), "{\"schema\": \"fio/3\"}").unwrap();
    for (path, says) in [
        ("absent.json", "absent.json can't be read"),
        ("empty", "it has no JSON file"),
        ("x.wml", "x.wml: not a result of wmlrun"),
        ("other.json", "other.json: its schema is not `wmlrun.result/1`"),
    ] {
        let shown = results.run(&format!("report one.json {path} -o page.html"), 2);
        assert!(shown.contains(says) && shown.contains("help"), "{path}: {shown}");
        assert!(!results.path("page.html").exists(), "{path}");
    }
    let help: Output = Wml::new().args(["report", "--help"]).run().exits(0);
    assert!(help.stdout.contains("Examples:\n  wmlrun report result.json -o page.html"), "{}", help.stdout);
}

/// A headless browser, if one is installed.
fn browser() -> Option<&'static str> {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
}

/// A script that finds the width of the content, the number of marks, the background colour and the text of an alert.
const LOOK: &str = "const background = getComputedStyle(document.body).backgroundColor.replaceAll(' ', '');\
    const found = [document.documentElement.scrollWidth, document.querySelectorAll('[data-x]').length,\
        background, window.alerted || 'none'].join(' ');";

/// A script that finds the marks of each picture: their values, and the middle of what is drawn.
const MARKS: &str = "const found = JSON.stringify([...document.querySelectorAll('figure')].map(figure => {\
    const marks = [...figure.querySelectorAll('[data-x]')].map(mark => { const box = mark.getBoundingClientRect();\
        return [mark.getAttribute('data-x'), mark.getAttribute('data-y'), mark.getAttribute('class'),\
            (box.left + box.right) / 2, (box.top + box.bottom) / 2].map(value => value === null ? '' : String(value)) });\
    return [figure.querySelector('h3, h4').textContent, marks] }));";

/// A script that finds what is hard to read: texts of a picture that lie on each other or on marks, the labels of marks that
/// are cut off, and marks without a name, or whose label the focus does not show; and the width of the content.
const READ: &str = "const box = e => e.getBoundingClientRect();\
    const meet = (a, b) => a.left + 2 < b.right && b.left + 2 < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;\
    const shown = e => e.checkVisibility() && !e.closest('details:not([open])');\
    const faults = [];\
    const pictures = [...document.querySelectorAll('svg.chart')].filter(shown);\
    for (const picture of pictures) {\
        const texts = [...picture.querySelectorAll('text:not(.tip)')].filter(shown);\
        const marks = [...picture.querySelectorAll('[data-x]')];\
        const plot = box(picture.parentElement), name = picture.getAttribute('aria-label');\
        texts.forEach((text, n) => {\
            const on = texts.slice(n + 1).find(other => meet(box(text), box(other)));\
            if (on) faults.push(name + ': `' + text.textContent + '` on `' + on.textContent + '`');\
            if (box(text).left < plot.left - 1 || box(text).right > plot.right + 1) faults.push(name + ' cuts `' + text.textContent + '`');\
            if (text.matches('.row, .value') && marks.some(mark => meet(box(text), box(mark))))\
                faults.push(name + ': `' + text.textContent + '` on a mark'); });\
        for (const mark of picture.querySelectorAll('.mark')) {\
            const tip = mark.querySelector('.tip');\
            mark.focus();\
            if (getComputedStyle(tip).display === 'none') faults.push(name + ': no label with the focus');\
            else if (box(tip).left < plot.left - 1 || box(tip).right > plot.right + 1) faults.push(name + ' cuts `' + tip.textContent + '`');\
            if (!mark.getAttribute('aria-label') || mark.tabIndex !== 0) faults.push(name + ': a mark has no name'); } }\
    const found = JSON.stringify([document.documentElement.scrollWidth, pictures.length, [...new Set(faults)]]);";

/// Opens a page in a frame of this width. Returns what the script found, and what the browser logged.
fn opened(browser: &str, page: &Path, width: u32, is_dark: bool, script: &str) -> (String, String) {
    // The page itself has no script, and forbids them. A copy without the rule measures itself.
    let text = fs::read_to_string(page).unwrap();
    let text = text.replacen("default-src 'none'; style-src 'unsafe-inline'", "default-src 'unsafe-inline'", 1);
    let probe = format!(
        "<script>window.alert = text => {{ window.alerted = text }}; addEventListener('load', () => {{ {script} \
         parent.postMessage(found, '*') }})</script></head>"
    );
    fs::write(page.with_file_name("probe.html"), text.replacen("</head>", &probe, 1)).unwrap();
    // A window of a browser has a smallest width, a frame has none.
    let frame = page.with_file_name("frame.html");
    let listen = "<script>addEventListener('message', event => { document.title = event.data })</script>";
    let body = format!("<iframe src=\"probe.html\" width=\"{width}\" height=\"900\" style=\"border: 0\"></iframe>");
    fs::write(&frame, format!("<!DOCTYPE html><title>none</title>{listen}{body}")).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .args(["--virtual-time-budget=5000", "--window-size=1700,1000"])
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark)))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", frame.display()))
        .output()
        .unwrap();
    let document = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let title = document.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    (title.unwrap_or_else(|| panic!("{document}\n{log}")).0.to_owned(), log)
}

/// Takes a picture of a page in a window of this width, if `WMLRUN_SCREENSHOTS` names a directory.
fn screenshot(browser: &str, page: &Path, name: &str, width: u32, is_dark: bool) {
    let Some(dir) = std::env::var_os("WMLRUN_SCREENSHOTS") else { return };
    fs::create_dir_all(&dir).unwrap();
    let file = Path::new(&dir).join(format!("{name}-{width}{}.png", if is_dark { "-dark" } else { "" }));
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--window-size={width},2400"))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark)))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--screenshot={}", file.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success() && file.exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Prints a page, if `WMLRUN_SCREENSHOTS` names a directory.
fn printed(browser: &str, page: &Path, name: &str) {
    let Some(dir) = std::env::var_os("WMLRUN_SCREENSHOTS") else { return };
    let file = Path::new(&dir).join(format!("{name}.pdf"));
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--print-to-pdf={}", file.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success() && file.exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_browser_shows_pages_without_errors_and_overflow() {
    if !long() {
        return;
    }
    let Some(browser) = browser() else {
        return skip("no headless browser is installed");
    };
    let results = Results::new();
    results.result("hostile.wml", "hostile.json");
    results.run(&format!("repeat x.wml {READS} --runs 3 --results rep"), 0);
    results.run(&format!("sweep x.wml {READS} --vary n=1,2,3 --repeats 2 --results curve"), 0);
    results.run("report hostile.json rep curve -o page.html", 0);
    let page = results.path("page.html");
    let marks = results.text("page.html").matches("data-x=").count();
    for (width, is_dark) in [(360, false), (360, true), (800, false), (1600, false), (1600, true)] {
        let (title, log) = opened(browser, &page, width, is_dark, LOOK);
        screenshot(browser, &page, "page", width, is_dark);
        let mut words = title.split(' ');
        let mut next = || words.next().unwrap();
        let content: u32 = next().parse().unwrap();
        assert!(content <= width, "the content is {content} pixels wide in a window of {width}");
        assert_eq!(next().parse(), Ok(marks), "marks in the document");
        assert_eq!(next(), if is_dark { "rgb(20,23,27)" } else { "rgb(255,255,255)" }, "{width}");
        assert_eq!(next(), "none", "a name was executed");
        assert!(!log.contains("CONSOLE"), "{log}");
    }
}

/// An open loop and a closed one, with names of usual lengths.
const LOOPS: &str = "define fileset name=photos,path=$dir,entries=50,dirwidth=20,size=4k,prealloc=100\n\
    define process name=service { thread name=visitor,instances=2,totalrate=500 {\n\
      flowop openfile name=open_photo,filesetname=photos,fd=1 flowop readwholefile name=read_photo,fd=1,iosize=1m\n\
      flowop closefile name=close_photo,fd=1 }\n\
    thread name=uploader { flowop write name=store,filesetname=photos,iosize=4k flowop fsync name=store_sync,filesetname=photos } }\n";

/// Each kind of page is read as its reader does, at the widths of a telephone, a tablet and two screens.
#[test]
fn a_browser_shows_each_kind_of_page_without_a_fault() {
    if !long() {
        return;
    }
    let Some(browser) = browser() else {
        return skip("no headless browser is installed");
    };
    let results = Results::new();
    fs::write(results.path("loops.wml"), LOOPS).unwrap();
    fs::write(results.path("e.toml"), FACTORS).unwrap();
    let short = "--no-quiesce --runtime 2 --quiet --dir files --mkdir";
    results.run(&format!("loops.wml {short} --json run.json --format none"), 0);
    let ended = results.ended(&format!("ab loops.wml {short} --blocks 2 --tolerance 50% --b=--pin --results ab"));
    assert!(matches!(ended.0, Some(0 | 10 | 11 | 12)), "{}", ended.1);
    results.run(&format!("sweep x.wml {READS} --vary n=1,2,8,32 --repeats 2 --results sweep"), 0);
    results.run(&format!("experiment e.toml {READS} --results cells"), 0);
    for name in ["run.json", "ab", "sweep", "cells"] {
        results.run(&format!("report {name} -o page.html"), 0);
        let page = results.path("page.html");
        let text = results.text("page.html");
        for request in ["https:", "url(", "@import"] {
            assert!(!text.contains(request), "{name}: {request}");
        }
        for width in [400, 800, 1280, 1600] {
            let (title, log) = opened(browser, &page, width, false, READ);
            for is_dark in [false, true] {
                screenshot(browser, &page, name, width, is_dark);
            }
            let title = title.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
            let (content, pictures, faults): (u32, usize, Vec<String>) = serde_json::from_str(&title).unwrap();
            assert!(content <= width && pictures > 1, "{name}: {content} pixels wide in a window of {width}");
            assert!(faults.is_empty(), "{name} at {width}:\n{}", faults.join("\n"));
            assert!(!log.contains("CONSOLE"), "{log}");
        }
        printed(browser, &page, name);
    }
}

/// The marks as the browser draws them: each has the value of a run, and its height is a linear function of that value.
#[test]
fn a_browser_draws_each_mark_at_its_value() {
    if !long() {
        return;
    }
    let Some(browser) = browser() else {
        return skip("no headless browser is installed");
    };
    let results = Results::new();
    results.run(&format!("repeat x.wml {READS} --runs 5 --results rep"), 0);
    results.run("report rep -o page.html", 0);
    let (title, _) = opened(browser, &results.path("page.html"), 1200, false, MARKS);
    let text = title.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
    let found: Vec<(String, Vec<[String; 5]>)> = serde_json::from_str(&text).unwrap();
    let (_, marks) = found.iter().find(|(title, _)| title == "Runs: ops").unwrap_or_else(|| panic!("{text}"));
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    for [_, value, class, _, height] in marks {
        if class.split(' ').any(|class| class == "a") {
            drawn.push((value.parse().unwrap(), height.parse().unwrap()));
        }
    }
    let run = |n: usize| -> serde_json::Value {
        serde_json::from_str(&results.text(&format!("rep/runs/{n:04}.json"))).unwrap()
    };
    let mut expected: Vec<f64> = (1..=5).map(|n| run(n)["runs"][0]["summary"]["ops_per_s"].as_f64().unwrap()).collect();
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    expected.sort_by(f64::total_cmp);
    // The parser of JSON may differ in the last digit.
    let is_equal = |((value, _), expected): (&(f64, f64), &f64)| (value / expected - 1.0).abs() < 1e-12;
    assert!(drawn.len() == 5 && drawn.iter().zip(&expected).all(is_equal), "{marks:?}\n{expected:?}");
    let (first, last) = (drawn[0], drawn[4]);
    for (value, height) in &drawn {
        let linear = first.1 + (value - first.0) / (last.0 - first.0) * (last.1 - first.1);
        assert!((height - linear).abs() < 0.5 && first.1 > last.1, "{value} is drawn at {height}, not at {linear}");
    }
}
