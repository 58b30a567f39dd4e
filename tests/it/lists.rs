//! Tests lists that a user can write: of four times the entries the program takes at most six times the processor time,
//! whether they are in a script, a profile, an experiment file, a column, a result, a directory, the input of the shell,
//! or the messages of an editor.
//!
//! `WMLRUN_LONG=1` takes all lists with 2,000 and 8,000 entries, and prints a table: user times, and instructions where the
//! times are too far apart. Otherwise instructions are counted, which a busy machine does not change, of a sample of short
//! lists.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::cmd::{Wml, binary, has, long, program, skip, stateless};
use crate::resume::in_parallel;
use crate::size_bombs::{LARGE, SET, THREAD};

/// The most times as much processor time of four times the entries.
const MOST: f64 = 6.0;

/// What the program is given for a list of some entries.
#[derive(Default)]
struct ListCall {
    files: Vec<(String, String)>,
    args: Vec<String>,
    input: String,
}

type MakeCall = Box<dyn Fn(usize) -> ListCall + Sync>;

/// All lists, with the calls that read them.
struct Lists(Vec<(String, MakeCall)>);

/// `unit` for each number from 1 up to `n`; `@` is the number, `%` the one before.
fn each(n: usize, unit: &str) -> String {
    (1..=n).map(|i| unit.replace('@', &i.to_string()).replace('%', &(i - 1).to_string())).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

impl Lists {
    fn add(&mut self, name: &str, make: impl Fn(usize) -> ListCall + Sync + 'static) {
        self.0.push((name.to_owned(), Box::new(make)));
    }

    /// A list in files.
    fn files<const N: usize>(
        &mut self,
        name: &str,
        args: &'static str,
        files: impl Fn(usize) -> [(&'static str, String); N] + Sync + 'static,
    ) {
        self.add(name, move |n| ListCall {
            files: files(n).into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            args: words(args),
            ..ListCall::default()
        });
    }

    /// A list in a script.
    fn script(&mut self, name: &str, text: impl Fn(usize) -> String + Sync + Clone + 'static) {
        for command in ["check", "plan", "fmt"] {
            let text = text.clone();
            self.add(&format!("{name} in a script: {command}"), move |n| ListCall {
                files: vec![("x.wml".to_owned(), text(n))],
                args: vec![command.to_owned(), "x.wml".to_owned()],
                ..ListCall::default()
            });
        }
    }

    /// A list in the input of the shell.
    fn typed(&mut self, name: &str, unit: &'static str) {
        self.add(&format!("{name} in the shell"), move |n| ListCall {
            args: words("repl --engine null"),
            input: each(n, unit),
            ..ListCall::default()
        });
    }

    /// A list in a result, which commands read.
    fn result(&mut self, name: &str, one: &Value, edit: impl Fn(&mut Value, usize) + Sync + Clone + 'static) {
        for args in [
            "compare a.json b.json",
            "report a.json --format text",
            "report a.json --format json",
            "report a.json --format csv",
            "report a.json --format filebench",
            "report a.json --format html",
        ] {
            let (one, edit) = (one.clone(), edit.clone());
            self.files(&format!("{name} in a result: {args}"), args, move |n| {
                let mut result = one.clone();
                edit(&mut result, n);
                ["a.json", "b.json"].map(|file| (file, result.to_string()))
            });
        }
    }

    /// A list in what an editor sends.
    fn edited(&mut self, name: &str, messages: impl Fn(usize) -> Vec<Value> + Sync + 'static) {
        self.add(&format!("{name} of an editor"), move |n| {
            let first = [
                json!({"id": 1, "method": "initialize", "params": {"capabilities": {}}}),
                json!({"method": "initialized", "params": {}}),
            ];
            let last = [json!({"id": 99, "method": "shutdown"}), json!({"method": "exit"})];
            let framed = |message: Value| {
                let text = message.to_string();
                format!("Content-Length: {}\r\n\r\n{text}", text.len())
            };
            let input = first.into_iter().chain(messages(n)).chain(last).map(framed).collect();
            ListCall { args: words("lsp"), input, ..ListCall::default() }
        });
    }
}

fn opened(number: usize, text: &str) -> Value {
    let uri = format!("file:///n/x{number}.wml");
    let document = json!({"uri": uri, "languageId": "wml", "version": 1, "text": text});
    json!({"method": "textDocument/didOpen", "params": {"textDocument": document}})
}

fn changed(text: &str) -> Value {
    let document = json!({"uri": "file:///n/x0.wml", "version": 2});
    json!({"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [{"text": text}]}})
}

fn hover(id: usize) -> Value {
    let position = json!({"line": 0, "character": 1});
    json!({"id": id, "method": "textDocument/hover", "params": {"textDocument": {"uri": "file:///n/x0.wml"}, "position": position}})
}

fn completion(id: usize) -> Value {
    let mut asked = hover(id);
    asked["method"] = "textDocument/completion".into();
    asked
}

const OWN: &str = "define fileset name=s,path=$dir,entries=3,dirwidth=20,size=4k,prealloc\n\
    define process name=p { thread name=t { flowop statfile name=st,filesetname=s } }\n";

const DEFAULTS: &str = "DEFAULTS {\n runtime = 1;\n dir = .;\n";

const EXPERIMENT: &str = "script = \"own\"\nrepeats = 1\n";

/// Lists of scripts whose entries refer to each other; `size_bombs::LARGE` has those that do not.
fn of_scripts(lists: &mut Lists) {
    for (name, head, unit, tail) in LARGE {
        // Loads repeat a personality of a hundred lines each.
        if *name != "loads" {
            lists.script(name, move |n| (*head).to_owned() + &each(n, unit) + tail);
        }
    }
    let thread = |inner: &str| format!("{THREAD}{inner}}} }}\n");
    let sets = |n| each(n, "define fileset name=f@,path=$dir,entries=1,dirwidth=1\n");
    lists.script("file sets that flowops use", move |n| {
        sets(n) + &thread(&each(n, "flowop statfile name=s@,filesetname=f@\n"))
    });
    lists.script("flowops on a file set", move |n| {
        SET.to_owned() + &thread(&each(n, "flowop statfile name=s@,filesetname=f\n"))
    });
    lists.script("reads of a file set", move |n| {
        SET.to_owned() + &thread(&each(n, "flowop read name=r@,filesetname=f,iosize=4k\n"))
    });
    lists.script("reads of a slot", move |n| {
        let open = "flowop openfile name=o,filesetname=f,fd=1\n".to_owned();
        SET.to_owned() + &thread(&(open + &each(n, "flowop read name=r@,fd=1,iosize=4k\n")))
    });
    lists.script("random variables that flowops read", move |n| {
        SET.to_owned()
            + &each(n, "set $x@=randvar(type=uniform,min=1,max=9,mean=4)\n")
            + &thread(&each(n, "flowop read name=r@,filesetname=f,iosize=$x@\n"))
    });
    lists.script("random variables with a warning", move |n| {
        SET.to_owned()
            + &each(n, "set $x@=randvar(type=uniform,min=1,max=2)\n")
            + &thread(&each(n, "flowop read name=r@,filesetname=f,iosize=$x@\n"))
    });
    lists.script("threads", |n| {
        format!("define process name=p {{\n{}}}\n", each(n, "thread name=t@ { flowop delay name=d }\n"))
    });
    lists.script("uses of a composite", move |n| {
        "define flowop name=c { flowop delay name=d }\n".to_owned() + &thread(&each(n, "flowop c name=u@\n"))
    });
    lists.script("composites that flowops use", move |n| {
        each(n, "define flowop name=c@ { flowop delay name=d }\n") + &thread(&each(n, "flowop c@ name=u@\n"))
    });
    lists.script("parameters of a composite", move |n| {
        let parameters = each(n, ",$a@=@");
        format!("define flowop name=c{parameters} {{ flowop delay name=d,value=$a1 }}\n") + &thread("flowop c name=x ")
    });
    for (name, attribute) in [("entries of a mix", ""), ("entries of a shuffled mix", ",shuffle")] {
        lists.script(name, move |n| {
            let flowops = each(n, "flowop delay name=r@,weight=1\n");
            format!("define process name=p {{ thread name=t,mix{attribute} {{\n{flowops}}} }}\n")
        });
    }
    lists.script("pairs of a post and its wait", |n| {
        let pair = "thread name=a@ { flowop sempost name=p@,target=w@ flowop semblock name=w@,value=1,highwater=1 }\n";
        format!("define process name=p {{\n{}}}\n", each(n, pair))
    });
    lists.script("threads that follow another", |n| {
        let first = "set mode quit alldone\ndefine process name=p,phase=1 { thread name=w { flowop delay name=d } }\n";
        let others = "define process name=q@,phase=2 { thread name=t,iterationsof=w { flowop delay name=d } }\n";
        first.to_owned() + &each(n, others)
    });
    lists.script("values of a foreach", |n| format!("foreach $x in 0{} {{ echo \"$x\" }}\n", each(n, ",@")));
    lists.script("definitions of a foreach", |n| {
        format!("foreach $x in \"a0\"{} {{ define file name=$x,path=$dir }}\n", each(n, ",\"a@\""))
    });
    lists.script("runs", move |n| {
        SET.to_owned() + &thread("flowop statfile name=r,filesetname=f ") + &each(n, "run @\n")
    });
    lists.script("echo lines", |n| each(n, "echo \"hello $dir @\"\n"));
    lists.script("event rates", |n| each(n, "eventgen rate=@\n"));
    lists.script("comments", |n| each(n, "# comment @\n"));
    lists.script("notes", |n| each(n, "# note: comment @\n"));
    lists.script("directories of a file set", |n| {
        format!(
            "define fileset name=a,entries=10,dirwidth=5,size=4k,path=\"$dir/a0{}\"\n",
            each(n.min(1000), ",$dir/a@")
        )
    });
    lists.files("echo lines of a script that runs", "x.wml --engine null", |n| [("x.wml", each(n, "echo \"@\"\n"))]);
    lists.files("values of a foreach that runs", "x.wml --engine null", |n| {
        [("x.wml", format!("foreach $x in 0{} {{ echo \"$x\" }}\n", each(n, ",@")))]
    });
    lists.add("options that set a variable", |n| ListCall {
        files: vec![("x.wml".to_owned(), each(n, "set $v@=@\n"))],
        args: words("plan x.wml")
            .into_iter()
            .chain((1..=n).flat_map(|i| ["--set".to_owned(), format!("v{i}=2")]))
            .collect(),
        ..ListCall::default()
    });
    lists.add("misspelt options that set a variable", |n| ListCall {
        files: vec![("x.wml".to_owned(), each(n, "set $v@=@\n"))],
        args: words("plan x.wml")
            .into_iter()
            .chain((1..=n).flat_map(|i| ["--set".to_owned(), format!("w{i}=2")]))
            .collect(),
        ..ListCall::default()
    });
    lists.add("scripts that are checked", |n| ListCall {
        files: vec![("x.wml".to_owned(), "set $a=1\n".to_owned())],
        args: std::iter::once("check".to_owned()).chain((0..n).map(|_| "x.wml".to_owned())).collect(),
        ..ListCall::default()
    });
    lists.typed("variables", "set $a@=@\n");
    lists.typed("lines", "echo \"@\"\n");
    lists.typed("file sets", "define fileset name=f@,path=$dir,entries=1,dirwidth=1\n");
    lists.typed("processes", "define process name=p@ { thread name=t { flowop delay name=d } }\n");
}

fn of_profiles_and_experiments(lists: &mut Lists) {
    let own = || ("own.f", OWN.to_owned());
    lists.files("defaults of a profile", "check p.prof", move |n| {
        [own(), ("p.prof", format!("{DEFAULTS}{}}}\nCONFIG one {{\n personality = own;\n}}\n", each(n, " k@ = @;\n")))]
    });
    lists.files("workloads of a profile", "check p.prof", move |n| {
        let workloads = each(n, "CONFIG c@ {\n personality = own;\n}\n");
        [own(), ("p.prof", format!("{DEFAULTS}}}\n{workloads}"))]
    });
    lists.files("other lines of a profile", "check p.prof", move |n| {
        [own(), ("p.prof", format!("{DEFAULTS}}}\n{}CONFIG one {{\n personality = own;\n}}\n", each(n, "junk @\n")))]
    });
    let plan = "experiment e.toml --plan --runtime 1";
    let with_n = || ("own.f", format!("set $n=1\n{}", OWN.replace("entries=3", "entries=$n")));
    lists.files("levels of an experiment", plan, move |n| {
        [with_n(), ("e.toml", format!("{EXPERIMENT}[[factor]]\nname = \"n\"\nlevels = [0{}]\n", each(n, ", @")))]
    });
    lists.files("factors of an experiment", plan, move |n| {
        let factors = each(n, "[[factor]]\nname = \"n@\"\nlevels = [{name = \"a\"}]\n");
        [own(), ("e.toml", format!("{EXPERIMENT}{factors}"))]
    });
    lists.files("hooks of an experiment", plan, move |n| {
        [own(), ("e.toml", format!("{EXPERIMENT}{}", each(n, "[[hook]]\nat = \"run\"\nbefore = \"true @\"\n")))]
    });
    lists.files("metrics of an experiment", plan, move |n| {
        [own(), ("e.toml", format!("{EXPERIMENT}metrics = [\"ops\"{}]\n", each(n, ", \"st@.ops\"")))]
    });
    lists.files("commands to record of an experiment", plan, move |n| {
        [own(), ("e.toml", format!("{EXPERIMENT}record = [\"df\"{}]\n", each(n, ", \"df @\"")))]
    });
    lists.files("options of an experiment", plan, move |n| {
        [own(), ("e.toml", format!("{EXPERIMENT}options = [\"--pin\"{}]\n", each(n, ", \"--pin\"")))]
    });
    lists.files("variables of an experiment", plan, |n| {
        let script = ("own.f", each(n, "set $k@=@\n") + OWN);
        [script, ("e.toml", format!("{EXPERIMENT}[set]\n{}", each(n, "k@ = @\n")))]
    });
    lists.files("unknown keys of an experiment", plan, move |n| {
        [own(), ("e.toml", format!("{}{EXPERIMENT}", each(n, "k@ = @\n")))]
    });
}

/// Numbers that look random, one on each line.
fn column(n: usize, seed: u64) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    (0..n).map(|_| format!("{:.6}\n", 100.0 + 10.0 * next())).collect()
}

fn of_results(lists: &mut Lists, one: &Value) {
    for format in ["text", "json", "csv", "markdown"] {
        lists.add(&format!("numbers of a column as {format}"), move |n| ListCall {
            files: [("a", 1), ("b", 2)].map(|(name, seed)| (name.to_owned(), column(n, seed))).into(),
            args: words(&format!("compare a:1 b:1 --format {format}")),
            ..ListCall::default()
        });
    }
    lists.files("columns of a file", "compare a:h1 b:h1", |n| {
        let line = |unit: &str| each(n, unit) + "\n";
        let text = line("h@ ") + &line("1@ ").repeat(5);
        [("a", text.clone()), ("b", text)]
    });
    lists.files("tests of two sides", "wins t", |n| [("t", each(n, "t@ 10@ 11@\n"))]);
    lists.files("points of a load curve", "ort t", |n| [("t", each(n, "@ 1\n"))]);
    let run = "@.0: Per-Operation Breakdown\nread 10ops 10@ops/s 1.0mb/s\n@.0: IO Summary: 10 ops 10@ ops/s\n";
    lists.files("runs of Filebench's output", "compare a b", move |n| [("a", each(n, run)), ("b", each(n, run))]);
    lists.files("flowops of Filebench's output", "compare a b", |n| {
        let flowops = each(n, "read@ 10ops 10ops/s 1.0mb/s\n");
        let text = format!("1.0: Per-Operation Breakdown\n{flowops}1.0: IO Summary: 10 ops 10 ops/s\n");
        [("a", text.clone()), ("b", text)]
    });
    lists.add("files of two directories", move |n| {
        let text = |i: usize| {
            format!("1.0: Per-Operation Breakdown\nread 10ops {i}ops/s 1.0mb/s\n1.0: IO Summary: 10 ops {i} ops/s\n")
        };
        let file = |dir: &str, i: usize| (format!("{dir}/t{i}.out"), text(100 + i % 7));
        let files = ["a", "b"].iter().flat_map(|dir| (0..n).map(|i| file(dir, i)).collect::<Vec<_>>()).collect();
        ListCall { files, args: words("wins a b"), ..ListCall::default() }
    });
    let repeated = |list: &mut Value, n: usize, edit: &dyn Fn(&mut Value, usize)| {
        let first = list[0].clone();
        let copy = |i: usize| {
            let mut copy = first.clone();
            edit(&mut copy, i);
            copy
        };
        *list = (0..n).map(copy).collect();
    };
    lists.result("runs", one, move |result, n| repeated(&mut result["runs"], n, &|_, _| ()));
    lists.result("intervals", one, move |result, n| {
        repeated(&mut result["runs"][0]["intervals"], n, &|interval, i| interval["t"] = json!(0.2 * (i + 1) as f64));
    });
    lists.result("flowops", one, move |result, n| {
        repeated(&mut result["runs"][0]["flowops"], n, &|flowop, i| flowop["name"] = format!("r{i}").into());
    });
    lists.result("file sets", one, move |result, n| {
        repeated(&mut result["runs"][0]["filesets"], n, &|set, i| set["name"] = format!("s{i}").into());
    });
    lists.result("warnings", one, |result, n| {
        result["runs"][0]["warnings"] = (0..n).map(|i| json!({"code": format!("w{i}"), "message": "m"})).collect();
    });
    lists.result("variables", one, |result, n| {
        result["runs"][0]["variables"] = (0..n).map(|i| (format!("v{i}"), json!(i))).collect();
    });
    lists.result("words of a command line", one, |result, n| {
        result["command_line"] = (0..n).map(|i| format!("a{i}")).collect();
    });
}

fn of_editors(lists: &mut Lists) {
    lists.edited("changes", |n| {
        let changes = (0..n).map(|i| changed(&format!("set $a={i}\n")));
        std::iter::once(opened(0, "set $a=1\n")).chain(changes).chain([hover(7)]).collect()
    });
    lists.edited("changes and questions", |n| {
        let changes = (0..n).flat_map(|i| [changed(&format!("set $a={i}\n")), hover(100 + i)]);
        std::iter::once(opened(0, "set $a=1\n")).chain(changes).collect()
    });
    lists.edited("documents", |n| (0..n).map(|i| opened(i, "set $a=1\n")).collect());
    for (name, unit) in [
        ("errors", "flowopp x@\n"),
        ("variables that nothing sets", "set $a@=$nosuch@\n"),
        ("variables", "set $a@=@\n"),
        ("scripts that are not there", "load nothing@\n"),
    ] {
        lists.edited(&format!("{name} of a document"), move |n| {
            vec![opened(0, &each(n, unit)), hover(7), completion(8)]
        });
    }
}

/// All lists. `one` is a result with a run.
fn lists(one: &Value) -> Lists {
    let mut lists = Lists(Vec::new());
    of_scripts(&mut lists);
    of_profiles_and_experiments(&mut lists);
    of_results(&mut lists, one);
    of_editors(&mut lists);
    lists
}

/// A result with a run of a second.
fn one_result() -> Value {
    let script = "set $n=1\ndefine process name=p { thread name=t,instances=$n { flowop delay name=d,value=0.001 } }\n";
    let wml = Wml::new().file("x.wml", &format!("{SET}{script}"));
    wml.args(words("x.wml --engine null --runtime 1 --interval 0.2 --quiet")).result().run().exits(0).result()
}

/// Writes the files of a call into a directory.
fn lay_out(call: &ListCall, dir: &Path) {
    for (name, text) in &call.files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(dir.join("input"), &call.input).unwrap();
}

/// Runs a program to its end in a directory with the files of a call. Returns its exit status.
fn run(command: &mut Command, call: &ListCall, dir: &Path) -> Option<i32> {
    command.args(&call.args).current_dir(dir).env("NO_COLOR", "1");
    command.stdin(fs::File::open(dir.join("input")).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap().code()
}

/// The user time in seconds of the program's ended children.
fn children_time() -> f64 {
    // SAFETY: an all-zero `rusage` is a valid value, and the pointer is to a live one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
}

/// The median of the user times in seconds of five runs, and the exit status.
fn user_time(call: &ListCall) -> (f64, Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    lay_out(call, dir.path());
    let mut code = None;
    let mut once = || {
        let before = children_time();
        code = run(&mut program(), call, dir.path());
        children_time() - before
    };
    let mut times = [0; 5].map(|_| once());
    times.sort_by(f64::total_cmp);
    (times[2], code)
}

/// The instructions of a run, and the exit status.
fn instructions(call: &ListCall) -> (f64, Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    lay_out(call, dir.path());
    let mut valgrind = stateless("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=counts"]).arg(binary());
    let code = run(&mut valgrind, call, dir.path());
    let text = fs::read_to_string(dir.path().join("counts")).unwrap();
    let sum = text.lines().find_map(|l| l.strip_prefix("totals: ").or_else(|| l.strip_prefix("summary: ")));
    (sum.and_then(|n| n.trim().parse().ok()).expect("a sum"), code)
}

#[test]
fn four_times_the_entries_take_at_most_six_times_the_work() {
    if !long() && !has("valgrind") {
        return skip("valgrind is missing");
    }
    let all = lists(&one_result());
    // Another sample on each day would fail on a day on which nobody has changed anything.
    let step = if long() { 1 } else { all.0.len() / 6 };
    let chosen: Vec<_> = all.0.iter().step_by(step).collect();
    let rows = Mutex::new(Vec::new());
    let measured = |n: usize| {
        let (name, make) = chosen[n];
        let (few, many) = if long() { (2_000, 8_000) } else { (300, 1_200) };
        let of = |n: usize| if long() { user_time(&make(n)) } else { instructions(&make(n)) };
        let ((mut one, code), (mut four, _)) = (of(few), of(many));
        // The start of the program takes some milliseconds.
        let is_short = long() && four < 0.05;
        // On a busy machine what does not fit into the cache takes longer, without more work.
        if long() && !is_short && four / one > MOST {
            (one, four) = (instructions(&make(few)).0, instructions(&make(many)).0);
        }
        rows.lock().unwrap().push((name.clone(), one, four, four / one, code, is_short));
    };
    let numbers: Vec<usize> = (0..chosen.len()).collect();
    if long() {
        numbers.iter().for_each(|n| measured(*n));
    } else {
        in_parallel(&numbers, measured);
    }
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by(|a, b| b.3.total_cmp(&a.3));
    let shown: Vec<String> = rows
        .iter()
        .map(|(name, one, four, factor, code, _)| format!("{factor:5.2} {one:14.3} {four:14.3} {code:?} {name}"))
        .collect();
    #[expect(clippy::print_stdout, reason = "the figures of the check")]
    {
        println!("{}\n{} lists of {}", shown.join("\n"), rows.len(), all.0.len());
    }
    let is_wrong = |row: &&(String, f64, f64, f64, Option<i32>, bool)| {
        row.4.is_none_or(|code| !(0..=12).contains(&code)) || (row.3 > MOST && !row.5)
    };
    let wrong: Vec<_> = rows.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn there_are_lists_of_all_kinds_of_input() {
    let names: Vec<String> = lists(&one_result()).0.into_iter().map(|(name, _)| name).collect();
    let kinds: std::collections::BTreeSet<&str> = names.iter().map(|name| name.split(':').next().unwrap()).collect();
    assert!(kinds.len() >= 25, "{kinds:#?}");
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len(), "two lists of one name");
}
