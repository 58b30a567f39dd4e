//! Tests that hostile scripts, profiles, file names and arguments can put only harmless text on terminals and into
//! reports.
//!
//! This must be true for every source of a name and every place where it is shown: no control characters except
//! newlines (and tabs between columns), no line that looks like one of the program's own, no cell that a spreadsheet
//! evaluates, no markup.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cmd::{Output, Wml, has, long};

/// Characters that move a cursor, set a title, reverse a line, or begin a formula or a tag.
const HOSTILE: &str = "\x1b[2J\x1b[31m\x1b]0;pwned\x07\u{9b}2J\u{85}\r\nerror: forged\n\t\x08\x7f\u{2028}\u{202e}gpj\u{2066}<script>alert(1)</script>&\"'=cmd|' /C calc'!A0";

/// The same without characters that end a string or a path.
fn in_a_string(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$")
}

/// Fails if a text has a control character. Newlines are checked elsewhere; `tabs` says whether tabs are allowed.
#[track_caller]
fn plain(text: &str, tabs: bool) {
    let bad = |c: char| {
        (c.is_control() && c != '\n' && !(tabs && c == '\t'))
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(at) = text.find(bad) {
        let near: String = text[at..].chars().take(20).collect();
        panic!("{near:?} in\n{}", text.escape_debug());
    }
}

/// Both outputs are plain, and no line is the hostile text's own.
#[track_caller]
fn harmless(output: &Output) {
    plain(&output.stdout, true);
    plain(&output.stderr, true);
    for line in output.shown().lines() {
        assert!(!line.trim_start().starts_with("error: forged"), "a line is forged:\n{}", output.shown());
    }
}

const BODY: &str = "flowop read name=FLOWOP,filesetname=SET,iosize=4k\n";

/// A script whose names are these.
fn named(set: &str, process: &str, thread: &str, flowop: &str) -> String {
    let body = BODY.replace("FLOWOP", flowop).replace("SET", set);
    format!(
        "define fileset name={set},path=$dir,entries=1,dirwidth=20,size=4k,prealloc\n\
         define process name={process} {{\n thread name={thread} {{\n {body} }}\n}}\nrun 1\n"
    )
}

#[test]
fn a_name_with_a_control_character_is_refused_wherever_it_comes_from() {
    let hostile = format!("\"{}\"", in_a_string(HOSTILE));
    let scripts = [
        named(&hostile, "p", "t", "f"),
        named("s", &hostile, "t", "f"),
        named("s", "p", &hostile, "f"),
        named("s", "p", "t", &hostile),
        format!("set $n={hostile}\n{}", named("$n", "p", "t", "f")),
        format!("set $n={hostile}\n{}", named("s", "\"a-$n\"", "t", "f")),
        format!("set $n={hostile}\n{}", named("s", "p", "$n", "f")),
        format!("set $n={hostile}\n{}", named("s", "p", "t", "$n")),
        format!(
            "define flowop name={hostile} {{\n {} }}\n{}",
            BODY.replace("FLOWOP", "x").replace("SET", "s"),
            named("s", "p", "t", "f")
        ),
        format!(
            "define flowop name=twice,$n {{\n {} }}\n{}",
            BODY.replace("FLOWOP", "$n").replace("SET", "s"),
            named("s", "p", "t", "f")
                .replace("flowop read name=f,filesetname=s,iosize=4k", &format!("flowop twice name=f,$n={hostile}"))
        ),
        named("s", "p", "t", "f").replace("iosize=4k", &format!("iosize=4k,target={hostile}")),
    ];
    for (n, text) in scripts.iter().enumerate() {
        let commands = [&["check", "x.wml"][..], &["x.wml"], &["plan", "x.wml"], &["repl", "x.wml"]];
        // What else there is goes the same way from here on.
        for command in commands.into_iter().take(if long() || n == 0 { 4 } else { 2 }) {
            let output = Wml::new().file("x.wml", text).args(command.iter().copied()).run();
            harmless(&output);
            // A shell on a file without commands has only loaded it.
            if command[0] != "repl" {
                assert_eq!(output.code(), 2, "{command:?}\n{text:?}\n{}", output.shown());
                assert!(output.stderr.contains("error[E0209]"), "{command:?}\n{}", output.shown());
            }
            assert!(output.left() == ["x.wml"], "{:?}", output.left());
        }
    }
    let from_outside = format!("set $p=x\n{}", named("s", "$p", "t", "f"));
    let output = Wml::new().file("x.wml", &from_outside).args(["x.wml"]).sets(&[("p", HOSTILE)]).run().exits(2);
    harmless(&output);
    assert!(output.stderr.contains("error[E0209]"), "{}", output.stderr);
}

/// A NUL ended the leader's start in a panic, and the program never ended.
#[test]
fn a_nul_in_a_name_or_path_is_refused() {
    for text in [
        named("s", "p", "\"t\0\"", "f"),
        named("s", "\"p\0\"", "t", "f"),
        format!("set $n=\"t\0\"\n{}", named("s", "p", "$n", "f")),
        named("s", "p", "t", "f").replace("path=$dir", "path=\"$dir/a\0b\""),
    ] {
        let output = Wml::new().file("x.wml", &text).args(["x.wml"]).timeout(std::time::Duration::from_secs(20)).run();
        harmless(&output);
        assert!(output.code() == 2 && output.stderr.contains("error[E0209]"), "{}", output.shown());
    }
}

/// A valid script with the hostile text wherever it is allowed: in printed text, and in the path of its files.
fn talkative(dir: &str) -> String {
    let text = in_a_string(HOSTILE);
    let comment = HOSTILE.replace('\n', "");
    format!(
        "# {comment}\nset $x=\"{text}\"\nusage \"{text}\"\necho \"{text} $x\"\nlog \"{text}\"\n\
         define fileset name=s,path=\"{dir}\",entries=1,dirwidth=20,size=4k,prealloc\n\
         define process name=p {{\n thread name=t {{\n  flowop print name=say,value=\"{text}\"\n  \
         flowop read name=r,filesetname=s,iosize=4k\n  flowop finishoncount name=end,value=20\n }}\n}}\nrun 5\n"
    )
}

/// The formats of a report.
fn formats() -> impl Iterator<Item = &'static str> {
    wml::report::TABLE.iter().map(|report| report.name())
}

/// The hostile text as the name of one directory.
fn folder() -> String {
    HOSTILE.replace('/', "|")
}

#[test]
fn texts_and_paths_of_a_script_are_shown_as_text() {
    for format in formats() {
        let call = Wml::new();
        let dir = call.dir().join(folder());
        fs::create_dir(&dir).unwrap();
        let text = talkative(&in_a_string(dir.to_str().unwrap()));
        let name = format!("{}.wml", folder());
        let output = call
            .file(&name, &text)
            .args(["--format", format, "--no-quiesce", "--clean", &name])
            .result()
            .run()
            .exits(0);
        // What the script prints may have lines of its own on standard output, beside the report; nowhere else.
        // The rows of CSV end in both characters.
        plain(&output.stdout.replace("\r\n", "\n"), true);
        plain(&output.stderr, true);
        let forged = |text: &str| text.lines().any(|line| line.starts_with("error: forged"));
        assert!(!forged(&output.stderr), "{}", output.stderr);
        if matches!(format, "csv" | "json") {
            assert!(!forged(&output.stdout), "{}", output.stdout);
            assert!(output.stderr.lines().any(|line| line == "script: error: forged"), "{}", output.stderr);
        }
        if format == "csv" {
            rows_and_cells(&output.stdout, &name);
        }
        output.result();
    }
}

/// A heading and one row a flowop, each with all cells; the script's name is a text in one line.
fn rows_and_cells(csv: &str, name: &str) {
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = csv.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => row.last_mut().unwrap().push(chars.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            '\r' if !quoted => {}
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]));
    assert_eq!(rows.len(), 1 + 3, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let script = &rows[1][0];
    assert!(
        script.contains("\\x1b[2J") && script.contains("\\nerror: forged") && name.contains("<script>"),
        "{script}"
    );
}

#[test]
fn a_cell_that_a_spreadsheet_would_evaluate_is_text() {
    for (name, cell) in
        [("\"=cmd|x\"", "'=cmd|x"), ("\"+1+2\"", "'+1+2"), ("\"-1+2\"", "'-1+2"), ("\"@SUM(A1)\"", "'@SUM(A1)")]
    {
        let text = named("s", name, name, name);
        let output = Wml::new()
            .file("x.wml", &text)
            .args(["x.wml", "--format", "csv", "--engine", "null", "--runtime", "0.1"])
            .run()
            .exits(0);
        let row = output.stdout.lines().nth(1).unwrap();
        assert_eq!(row.split(',').filter(|other| *other == cell).count(), 3, "{row}");
    }
}

#[test]
fn the_output_of_check_plan_and_list_is_text() {
    for command in [
        &["check"][..],
        &["check", "--dump", "tokens"],
        &["check", "--dump", "ast"],
        &["plan"],
        &["plan", "-v"],
        &["plan", "--list"],
        &["repl"],
        &["clean"],
        &["batch"],
        &["show"],
        &["explain"],
        &["list"],
        &["completions"],
        &["fmt", "--check"],
    ] {
        let call = Wml::new();
        let dir = call.dir().join(folder());
        fs::create_dir(&dir).unwrap();
        let name = format!("{}.wml", folder());
        let call = call.file(&name, &talkative(&in_a_string(dir.to_str().unwrap())));
        for argument in [name.as_str(), HOSTILE] {
            let call = Wml::new().file(&name, &fs::read_to_string(call.dir().join(&name)).unwrap());
            let output = call.args(command.iter().copied().chain([argument])).run();
            if command == ["repl"] {
                // A shell does what the script says: its echo is its own.
                plain(&output.shown(), true);
            } else {
                harmless(&output);
            }
        }
    }
    for words in [
        vec![format!("--{HOSTILE}")],
        vec!["--runtime".to_owned(), HOSTILE.to_owned(), "x".to_owned()],
        vec!["--seed".to_owned(), HOSTILE.to_owned(), "x".to_owned()],
        vec!["--format".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec!["--engine".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec!["--set".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec!["--set".to_owned(), format!("nfiles={HOSTILE}"), "varmail".to_owned()],
        vec!["--trace".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec!["--json".to_owned(), format!("{HOSTILE}/x"), "varmail".to_owned()],
        vec!["--dir".to_owned(), format!("{HOSTILE}/x"), "varmail".to_owned()],
        vec!["--dialect".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec!["--on-error".to_owned(), HOSTILE.to_owned(), "varmail".to_owned()],
        vec![HOSTILE.to_owned(), "x".to_owned()],
    ] {
        let output = Wml::new().args(words.clone()).args(["--runtime", "0.1"]).run();
        assert_ne!(output.code(), 0, "{words:?}\n{}", output.shown());
        harmless(&output);
    }
}

/// An argument that is no UTF-8 is no reason to panic.
#[test]
fn an_argument_of_any_bytes_is_refused_or_used() {
    use std::os::unix::ffi::OsStringExt;
    let odd = std::ffi::OsString::from_vec(b"result\xff\x1b.json".to_vec());
    let output = Wml::new()
        .args(["--json".into(), odd])
        .args(["varmail", "--engine", "null", "--runtime", "0.1"])
        .run()
        .exits(0);
    harmless(&output);
}

#[test]
fn a_diagnostic_is_short_whatever_the_script() {
    let long = "x".repeat(3_000_000);
    for text in [
        format!("define fileset name=s,{long}=3\n"),
        format!("{long} {long}\n"),
        format!("set $x=\"{long}\"\nset $y=$z + {long}\n"),
        format!("set $a=1{} ~\n", " ".repeat(3_000_000)),
        format!("{}\n", "~ ".repeat(500_000)),
        "~\n".repeat(500_000),
        format!("define process name=p {{{}", "\n".repeat(500_000)),
        format!("\0\x01\x1b[2J{}\u{fffd}\x7f", "\x1b]0;x\x07\n".repeat(10_000)),
    ] {
        let output = Wml::new().file("x.wml", &text).args(["check", "x.wml"]).run().exits(2);
        harmless(&output);
        assert!(output.shown().len() < 200_000, "{} bytes", output.shown().len());
        for line in output.stderr.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
            assert!(line.chars().count() < 220, "{} columns: {line}", line.chars().count());
        }
    }
}

#[test]
fn of_many_errors_fifty_are_shown_and_the_rest_is_counted() {
    let output = Wml::new().file("x.wml", &"~\n".repeat(1284)).args(["check", "x.wml"]).run().exits(2);
    assert_eq!(output.stderr.matches("error[").count(), 50);
    assert!(output.stderr.ends_with("… and 1,234 more messages\n"), "{}", output.stderr);
}

const PROFILE: &str = "DEFAULTS {\n\truntime = 1;\n\tdir = .;\n\tstats = stats;\n\tdescription = \"DESCRIPTION\";\n}\n\
    CONFIG javascript:alert(1)<b>&\"' {\n\tfunction = generic;\n\tpersonality = small;\n}\n";

const SMALL: &str = "define fileset name=\"<script>s\",path=$dir,entries=1,dirwidth=20,size=4k,prealloc\n\
    define process name=\"<i>p\" {\n thread name=\"&t\" {\n  flowop read name=\"<script>alert(2)</script>\",filesetname=\"<script>s\",iosize=4k\n }\n}\n";

/// A results folder that somebody sent has any text in its description.
#[test]
fn the_result_of_a_foreign_folder_is_text() {
    let script = named("s", "p", "t", "f").replace("entries=1", "entries=$n").replace("run 1\n", "");
    let runs = "--engine null --runtime 0.1 --no-quiesce --format json --quiet";
    let made = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().chain(runs.split_whitespace()).collect();
        Wml::new().file("x.wml", &format!("set $n=1\n{script}")).file("e.toml", FACTORS).args(words).run().exits(0)
    };
    for (words, from) in [
        ("sweep x.wml --vary n=1,2 --repeats 1 --results r", "factor = \"n\""),
        ("experiment e.toml --results r", "name = \"n\""),
        ("experiment e.toml --results r", "\"many\""),
    ] {
        let output = made(words);
        let path = output.dir().join("r/experiment.toml");
        let toml = fs::read_to_string(&path).unwrap();
        assert!(toml.contains(from), "no {from} in\n{toml}");
        let hostile = "\\u001b[2J\\u001b]0;pwned\\u0007";
        let key = from.split_once(" = ").map_or(String::new(), |(key, _)| format!("{key} = "));
        fs::write(&path, toml.replace(from, &format!("{key}\"{hostile}\""))).unwrap();
        for format in wml::comparison::FORMATS.iter().map(|format| format.name).chain(["csv-runs", "markdown-runs"]) {
            let bin = crate::cmd::binary().canonicalize().unwrap();
            let call = Command::new(bin).args(["report", "r", "--format", format]).current_dir(output.dir()).output();
            let call = call.unwrap();
            assert_eq!(call.status.code(), Some(0), "{}", String::from_utf8_lossy(&call.stderr));
            plain(&String::from_utf8_lossy(&call.stdout).replace("\r\n", "\n"), false);
            plain(&String::from_utf8_lossy(&call.stderr), false);
        }
    }
}

/// An experiment with a column for each level.
const FACTORS: &str = "script = \"x.wml\"\nrepeats = 2\ncolumns = \"n\"\n[[factor]]\nname = \"n\"\n\
    levels = [{ name = \"few\", set = { n = \"1\" } }, { name = \"many\", set = { n = \"2\" } }]\n";

#[test]
fn the_page_of_a_batch_and_its_xml_are_text() {
    // A line is an assignment: what breaks lines can't be in a value.
    let description = HOSTILE.replace(['\n', '\r', '"', '\u{85}', '\u{2028}'], "");
    let profile = PROFILE.replace("DESCRIPTION", &description);
    let output = Wml::new()
        .file("small.f", SMALL)
        .file("x.prof", &profile)
        .args(["batch", "x.prof", "--no-quiesce"])
        .run()
        .exits(0);
    harmless(&output);
    let home = fs::read_dir(output.dir().join("stats")).unwrap().next().unwrap().unwrap().path();
    let page = fs::read_to_string(home.join("index.html")).unwrap();
    plain(&page, false);
    assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(2)"), "{page}");
    for href in page.replace("&#x2f;", "/").split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(href.starts_with("./javascript%3Aalert%281%29"), "{href}");
    }
    let workload = home.join("javascript:alert(1)<b>&\"'");
    let xml = fs::read_dir(&workload)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "xml"))
        .unwrap();
    parses(&xml);
    let hostile = PROFILE.replace("javascript", "\x1b[2J\u{202e}");
    let output = Wml::new().file("small.f", SMALL).file("x.prof", &hostile).args(["batch", "x.prof"]).run().exits(2);
    harmless(&output);
    assert!(output.stderr.contains("error[E0209]"), "{}", output.stderr);
}

/// Checks XML with a parser of another project.
fn parses(xml: &Path) {
    needs!(has("python3"), "there is no python3 to parse XML");
    let code = "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])";
    let status = Command::new("python3").args(["-c", code]).arg(xml).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{}", fs::read_to_string(xml).unwrap());
}

/// Reads variables of the environment in every way that a value can go.
const READER: &str = "set $dir=\"$(PLACE)/files\"\nset $secret=$(SECRET)\nset $copy=$secret\nset $joined=\"a-$(SECRET)-b\"\n\
    set $n=$(NUMBER)\nset $more=$n + 1\nset $own=1\nset $own=\"$own$(SECRET)\"\nset $plain=7\n\
    define fileset name=\"f-$secret\",path=$dir,entries=1,dirwidth=20,size=4k,prealloc\n\
    define process name=\"p-$(SECRET)\" {\n thread name=\"t-$joined\" {\n\
      flowop read name=\"r-$own\",filesetname=\"f-$secret\",iosize=4k\n  flowop finishoncount name=end,value=20\n }\n}\n\
    echo \"$plain\"\nusage \"$joined\"\nforeach $each in $(SECRET) {\n run 5\n}\n";

const SECRET: &str = "s3cr3t-0f-the-env1ronment";

fn reader(format: &str) -> Wml {
    let call = Wml::new().file("x.wml", READER);
    let place = call.dir().join("hidden-place");
    fs::create_dir_all(place.join("files")).unwrap();
    call.env("SECRET", SECRET).env("NUMBER", "4711").env("PLACE", place).args([
        "x.wml",
        "--no-quiesce",
        "--format",
        format,
    ])
}

#[test]
fn values_of_the_environment_are_in_no_result() {
    for format in formats() {
        let output = reader(format).args(["--trace", "trace.txt:5"]).result().run().exits(0);
        let run = output.only_run();
        let json = fs::read_to_string(output.dir().join("result.json")).unwrap();
        let trace = fs::read_to_string(output.dir().join("trace.txt")).unwrap();
        for (what, text) in [("JSON", &json), ("standard output", &output.stdout), ("the trace", &trace)] {
            assert!(!text.contains(SECRET) && !text.contains("hidden-place"), "{format}: {what}\n{text}");
        }
        for name in ["secret", "copy", "joined", "n", "more", "own", "dir", "each"] {
            assert_eq!(run["variables"][name], "(environment)", "${name}");
        }
        assert_eq!(run["variables"]["plain"], 7);
        assert!(run["flowops"][0]["name"].as_str().unwrap().contains("(environment)"), "{}", run["flowops"][0]);
    }
    let output = reader("text").args(["--record-env"]).result().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["variables"]["secret"], SECRET);
    assert_eq!(run["variables"]["more"].as_f64(), Some(4712.0));
    assert!(output.stdout.contains(SECRET), "{}", output.stdout);
}

/// A path has no doubled slashes, and where it leads is written without `..`.
#[test]
fn values_of_the_environment_are_masked_in_paths() {
    for value in ["s3cr3t//0f/./the-env/", "../files/s3cr3t-0f-the-env"] {
        let script = named("s", "p", "t", "f").replace("path=$dir", "path=\"$dir/$(SECRET)\"");
        let call = Wml::new().file("x.wml", &script).folder("files").env("SECRET", value);
        let call = call.args(["x.wml", "--runtime", "0.2", "--no-quiesce", "--dir", "files", "--trace", "trace.txt:5"]);
        let output = call.result().run().exits(0);
        for file in ["result.json", "trace.txt"] {
            let text = fs::read_to_string(output.dir().join(file)).unwrap();
            assert!(!text.contains("s3cr3t") && text.contains("(environment)"), "{value}: {file}\n{text}");
        }
    }
}

/// The folder of an experiment is published with all of its files: the output of the runs too.
#[test]
fn values_of_the_environment_are_in_no_file_of_an_experiment() {
    let script = "set $x=$(SECRET)\nset $more=$(NUMBER)+1\nset $dir=files\necho \"token is $x\"\necho \"more is $more\"\n\
                  define fileset name=s,path=$dir,entries=2,size=1k,prealloc=100\n\
                  define process name=p { thread name=\"t-$x\" { flowop statfile name=look,filesetname=s } }\nrun 0.1\n\
                  stats dump \"dump\"\n";
    let words = "--engine null --no-quiesce --results r --append t.csv --live jsonl:l.jsonl";
    let run = |more: &[&str]| {
        let call = Wml::new().file("x.wml", script).env("SECRET", SECRET).env("NUMBER", "4711");
        let call = call.args(["repeat", "x.wml", "--runs", "2"]).args(words.split(' ')).args(more);
        call.run().exits(0)
    };
    let texts = |output: &Output| {
        let mut texts = Vec::new();
        let mut left = vec![output.dir().to_owned()];
        while let Some(path) = left.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.map(|entry| entry.unwrap().path())),
                Err(_) if path.ends_with("x.wml") => {}
                Err(_) => texts.push((path.clone(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned())),
            }
        }
        texts
    };
    let output = run(&[]);
    let found = texts(&output);
    assert!(found.len() > 6, "{found:?}");
    for (path, text) in &found {
        assert!(!text.contains(SECRET) && !text.contains("4712"), "{}\n{text}", path.display());
    }
    let log = |output: &Output| fs::read_to_string(output.dir().join("r/runs/0001.log")).unwrap();
    assert!(log(&output).contains("token is (environment)\n"), "{}", log(&output));
    assert!(log(&output).contains("more is (environment)\n"), "{}", log(&output));
    let output = run(&["--record-env"]);
    assert!(log(&output).contains(&format!("token is {SECRET}\n")), "{}", log(&output));
    // With a program that starts the runs, too.
    let output = run(&["--launch", "env"]);
    assert!(log(&output).contains("token is (environment)\n"), "{}", log(&output));
}

#[test]
fn a_redacted_result_contains_no_host_name_and_no_path() {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for format in formats() {
        let text = "# from /home/somebody/scripts\nset $log=\"/var/tmp/some.log\"\necho \"hello\"\n".to_owned()
            + &named("s", "p", "t", "f").replace("run 1", "run 1\n");
        let call = Wml::new().file("job.wml", &text);
        let files = call.dir().join("files");
        fs::create_dir(&files).unwrap();
        let script = call.dir().join("job.wml");
        let folder = call.dir().to_str().unwrap().to_owned();
        let call = call
            .args(["--redact", "--runtime", "0.2", "--no-quiesce", "--format", format, "--dir"])
            .args([files.into_os_string(), script.into_os_string()]);
        let output = call.result().run().exits(0);
        let document = output.result();
        let json = fs::read_to_string(output.dir().join("result.json")).unwrap();
        for text in [&json, &output.stdout] {
            for bad in [folder.as_str(), "/home/somebody", "/var/tmp", "job.wml", "--redact"] {
                assert!(!text.contains(bad), "{format}: {bad}\n{text}");
            }
        }
        assert_eq!(document["environment"]["uname"]["nodename"], "(host)");
        assert!(host.len() < 4 || !json.contains(&format!("\"{host}\"")), "{json}");
        assert_eq!(document["command_line"], serde_json::json!(["(command line)"]));
        let run = &document["runs"][0];
        let mount = &run["environment"]["mounts"][0];
        assert_eq!((&mount["path"], &mount["source"]), (&"(mount 1)".into(), &"(source 1)".into()), "{mount}");
        assert!(run["filesets"][0]["path"].as_str().unwrap().starts_with("(mount 1)/(path "), "{}", run["filesets"][0]);
        assert!(run["variables"]["dir"].as_str().unwrap().contains("(path"), "{}", run["variables"]);
    }
}

#[test]
fn loading_from_elsewhere_is_reported_and_the_file_is_not_quoted() {
    let other = Wml::new().file("private.conf", "root:$6$salt$t0p-s3cr3t-hash:19000\nsecond t0p-s3cr3t-line = \"x\n");
    let path = other.dir().join("private.conf");
    let text = format!("load \"{}\"\nrun 1\n", path.display());
    for command in [&["check", "x.wml"][..], &["plan", "x.wml"], &["x.wml"]] {
        let output = Wml::new().file("x.wml", &text).args(command.iter().copied()).run().exits(2);
        let shown = output.shown();
        assert!(shown.contains("warning[W0416]") && shown.contains("private.conf:1:"), "{shown}");
        for secret in ["root:", "`root`", "s3cr3t", "hash", "second", "19000"] {
            assert!(!shown.contains(secret), "{secret}\n{shown}");
        }
    }
    // What lies beside the script is its own.
    let output = Wml::new()
        .file("d/x.wml", "load y\n")
        .file("d/y.wml", &named("s", "p", "t", "f"))
        .args(["check", "d/x.wml"])
        .run()
        .exits(0);
    assert!(!output.shown().contains("W0416"), "{}", output.shown());
}

#[test]
fn a_personality_from_outside_the_folder_of_a_profile_is_not_quoted() {
    let secrets = ["root:", "s3cr3t", "hash", "second", "19000"];
    let parses = "set $s3cr3t=19000\ndefine fileset name=second,path=$dir,entries=hash\n";
    for text in ["root:$6$salt$t0p-s3cr3t-hash:19000\nsecond t0p-s3cr3t-line = \"x\n", parses] {
        let other = Wml::new().file("private.f", text);
        let path = other.dir().join("private.f");
        let profile = PROFILE.replace("DESCRIPTION", "d").replace("= small", &format!("= \"{}\"", path.display()));
        let output = Wml::new().file("x.prof", &profile).args(["batch", "x.prof"]).run().exits(2);
        let shown = output.shown();
        assert!(shown.contains("warning[W0416]") && shown.contains("private.f:"), "{shown}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{secret}\n{shown}");
        }
        // Beside the profile it is the profile's own, wherever that lies.
        let profile = PROFILE.replace("DESCRIPTION", "d").replace("= small", "= private");
        let other = other.file("y.prof", &profile);
        let own = other.dir().join("y.prof");
        let output = Wml::new().args(["batch".as_ref(), own.as_os_str()]).run().exits(2);
        let shown = output.shown();
        assert!(!shown.contains("W0416") && shown.contains("hash"), "{shown}");
    }
}

/// A separate terminal, which is closed when the value is dropped.
struct Terminal {
    socket: std::path::PathBuf,
}

impl Terminal {
    /// Runs a command of the shell on it, and stays when that ends.
    fn start(dir: &Path, name: &str, command: &str) -> Self {
        // A server that was told to end may still be there: each has a socket of its own.
        let terminal = Self { socket: dir.join(name) };
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "200", command]);
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = crate::cmd::stateless("tmux").arg("-S").arg(&self.socket).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is on the screen once this is, and the title.
    fn screen_with(&self, mark: &str) -> (String, String) {
        let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
        loop {
            let screen = self.tmux(&["capture-pane", "-p", "-J"]);
            if screen.lines().any(|line| line == mark) {
                return (screen, self.tmux(&["display-message", "-p", "#{pane_title}"]));
            }
            assert!(std::time::Instant::now() < until, "`{mark}` did not appear:\n{screen}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Each command on a terminal: nothing is cleared, no title is set, and the screen shows what a pipe would receive.
#[test]
fn no_output_contains_control_sequences_for_the_terminal() {
    needs!(has("tmux"), "there is no tmux");
    let call = Wml::new();
    let dir = call.dir().join(folder());
    fs::create_dir(&dir).unwrap();
    let call = call
        .file("right.wml", &talkative(&in_a_string(dir.to_str().unwrap())))
        .file("wrong.wml", &named("s", "p", &format!("\"{}\"", in_a_string(HOSTILE)), "f"));
    let program = crate::cmd::binary();
    let program = program.display();
    let all = [
        "check wrong.wml",
        "plan right.wml",
        "plan --list right.wml",
        "fmt right.wml",
        "--clean --no-quiesce right.wml",
    ];
    for (n, words) in all.iter().enumerate() {
        // A line before and after: a screen that was cleared has lost the first.
        let command = format!(
            "cd '{}' && printf 'first line\\n' && {program} {words}; printf '\\nlast line\\n'; exec sleep 100",
            call.dir().display()
        );
        let terminal = Terminal::start(call.dir(), &format!("tmux-{n}"), &command);
        let (screen, title) = terminal.screen_with("last line");
        assert!(screen.starts_with("first line\n"), "{words}: the screen was cleared\n{screen}");
        assert!(!title.contains("pwned"), "{words}: the title is {title}");
        assert!(screen.contains("\\x1b[2J\\x1b[31m\\x1b]0;pwned\\x07\\x9b2J"), "{words}\n{screen}");
        if !words.contains("right.wml") || words.starts_with("plan") {
            assert!(!screen.lines().any(|line| line.starts_with("error: forged")), "{words}\n{screen}");
        }
    }
}
