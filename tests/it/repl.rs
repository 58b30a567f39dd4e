//! Tests the shell with input from a terminal, a pipe and a file.
//!
//! The output of its commands is in `tests/cases/repl`.

use crate::cmd::{Wml, binary, count, flowops, has, program};
use crate::tmux::{Terminal, at_prompt, terminals};
use crate::undisturbed::undisturbed;
use proptest::prelude::*;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("repl-").tempdir_in(crate::cmd::scratch()).unwrap()
}

/// A shell in `dir` with pipes on all sides.
fn shell(dir: &Path, options: &[&str]) -> Child {
    program()
        .arg("repl")
        .args(options)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a shell says to a whole text: standard output, standard error, exit status.
pub(crate) fn says(dir: &Path, options: &[&str], text: &str) -> (String, String, Option<i32>) {
    let mut child = shell(dir, options);
    let mut input = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A shell that was left early reads no further.
    let _ = writer.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn an_error_skips_one_statement_and_the_worst_is_the_exit_status() {
    let dir = scratch();
    let text =
        "load oltp_sync\nset $filesize=1m\nset $nshadow=9\nflowopp x\nset $nshadows=13\nplan -v\nrun 0.2\nquit\n";
    let (out, err, code) = says(dir.path(), &["--no-quiesce"], text);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("<stdin>:3:5") && err.contains("did you mean `$nshadows`?"), "{err}");
    assert!(err.contains("<stdin>:4:1") && err.contains("unknown command `flowopp`"), "{err}");
    assert!(out.contains("process shadow × 13"), "{out}");
    assert!(out.contains("shadowread"), "the run was executed:\n{out}");
    assert_eq!(says(dir.path(), &[], "echo \"fine\"\n").2, Some(0));
    assert_eq!(says(dir.path(), &[], "fscheck path=/proc,fstype=none\nflowopp\n").2, Some(3), "the worst");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the fresh directory is removed");
}

/// A script may load others beside it, whose values it changes.
#[test]
fn a_script_that_loads_others_is_loaded_and_reloaded_as_it_runs() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("sub/inner.wml"), "load randomread\nset $nthreads=3\n").unwrap();
    std::fs::write(dir.path().join("sub/outer.wml"), "load inner\nset $filesize=1m\nset $nthreads=7\n").unwrap();
    let values = "echo \"$filesize $nthreads\"\n";
    let text = format!("load sub/outer.wml\n{values}reload\n{values}reload\n{values}load inner\n");
    let (out, err, code) = says(dir.path(), &[], &text);
    assert_eq!(out.matches("1048576 7").count(), 3, "{out}{err}");
    // At the prompt, names are those of the current directory again.
    assert!(err.contains("there is no script or personality `inner`"), "{err}");
    assert_eq!(code, Some(2));
}

/// Only a regular file has an end.
#[test]
fn source_refuses_a_pipe() {
    let dir = scratch();
    crate::cmd::tool("mkfifo", &[dir.path().join("pipe").to_str().unwrap()]);
    for name in ["pipe", "/dev/zero", "."] {
        let (_, err, code) = says(dir.path(), &[], &format!("source {name}\n"));
        assert!(code == Some(2) && err.contains(&format!("can't read {name}")), "{err}");
    }
}

/// The next run is not refused because of a rate that was refused.
#[test]
fn a_rate_that_is_refused_is_not_kept() {
    let dir = scratch();
    let text = "load randomread\nset $filesize=1m\neventgen rate=0.5\nrun 0.1\n";
    let (out, err, _) = says(dir.path(), &["--engine", "null"], text);
    assert!(err.contains("eventgen rate=0.5") && out.contains("rand-read"), "{out}{err}");
}

/// A name that was read at the definition does not follow its variable, and `show` gives the name.
#[test]
fn names_that_were_read_at_the_definition_stay() {
    let dir = scratch();
    let set = |name: &str| format!("set $nm={name}\ndefine file name=$nm,path=$dir,size=4k\n");
    std::fs::write(dir.path().join("x.f"), set("first") + &set("second") + "set $nm=third\n").unwrap();
    let (out, err, _) = says(dir.path(), &["--engine", "null"], "load x\nset $nm=fourth\nshow\n");
    for name in ["first", "second", "fourth"] {
        assert!(out.contains(name), "{name}: {out}{err}");
    }
    assert!(!out.contains("name=$nm"), "{out}{err}");
}

/// `wmlrun < SCRIPT`, as Filebench 1.4 was used; without a word on it there is nothing to run.
#[test]
fn a_script_on_standard_input_needs_no_name() {
    undisturbed(|| {
        let dir = scratch();
        let script = dir.path().join("script.f");
        let says = |text: &str| {
            std::fs::write(&script, text).unwrap();
            let mut program = program();
            program.args(["--engine", "null", "--runtime", "0.1"]).current_dir(dir.path());
            let output = program.stdin(std::fs::File::open(&script).unwrap()).output().unwrap();
            let all = [output.stdout, output.stderr].concat();
            (String::from_utf8(all).unwrap(), output.status.code())
        };
        let (said, code) = says("load randomread\nset $filesize=1m\nrun 1\n");
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("rand-read"), "the run was executed:\n{said}");
        let (said, code) = says(" \n");
        assert_eq!(code, Some(2));
        assert!(said.contains("no script given"), "{said}");
    });
}

/// A program that drives the shell gets each answer before it asks again.
#[test]
fn statements_of_a_slow_writer_are_executed_at_once() {
    let dir = scratch();
    let mut child = shell(dir.path(), &[]);
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 0..3 {
        writeln!(input, "echo \"answer {n}\"").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), format!("answer {n}"));
    }
    // Whole only with its second half, however long that takes to come.
    writeln!(input, "define process name=p {{").unwrap();
    writeln!(input, "thread name=t {{ flowop delay name=d,value=1 }} }}\nlist flowop").unwrap();
    assert!(lines.next().unwrap().unwrap().contains("delay"));
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_saved_script_has_the_same_plan() {
    let dir = scratch();
    let text = "load oltp_sync\nset $filesize=1m\nset $nshadows=3\nset $ndbwriters=$nshadows * 2\nset $ndbwriters=$ndbwriters * 2\n\
                eventgen rate=$nshadows\nplan -v\nsave tuned.wml\n";
    let (planned, err, code) = says(dir.path(), &["--seed", "7"], text);
    assert_eq!(code, Some(0), "{err}");
    let saved = program().args(["plan", "-v", "--seed", "7", "tuned.wml"]).current_dir(dir.path()).output().unwrap();
    let saved = String::from_utf8(saved.stdout).unwrap();
    assert!(saved.contains("process dbwr × 12") && saved.contains("event rate 3/s"), "{saved}");
    // At the prompt the dialect is that of each script.
    let saved = saved.split_inclusive('\n').filter(|line| !line.starts_with("dialect ")).collect::<String>();
    assert_eq!(planned.split_once('\n').unwrap().1, saved, "but for the personality's greeting");
}

/// Operations and bytes of each flowop: with one thread and a count that ends the run, the seed decides them.
fn done(document: &Value) -> Vec<(String, u64, u64)> {
    let run = &document["runs"][0];
    assert_eq!(run["state"], "complete", "{run:#}");
    flowops(run).iter().map(|f| (f["name"].as_str().unwrap().to_owned(), count(f, "ops"), count(f, "bytes"))).collect()
}

#[test]
fn a_saved_script_reproduces_the_session() {
    let dir = scratch();
    let text = "set $mean=3k\nset $size=randvar(type=gamma,mean=$mean)\nset mode quit alldone\n\
        define fileset name=data,path=$dir,entries=20,dirwidth=5,size=64k,prealloc=100\n\
        define process name=p { thread name=t {\n\
          flowop read name=r,filesetname=data,iosize=$size,random\n\
          flowop appendfilerand name=a,filesetname=data,iosize=$size\n\
          flowop finishoncount name=f,value=500,target=r\n\
        } }\nset $mean=5k\nrun\nsave tuned.wml\n";
    let (_, err, code) = says(dir.path(), &["--seed", "7", "--no-quiesce"], text);
    assert_eq!(code, Some(0), "{err}");
    let session: Value = serde_json::from_slice(&std::fs::read(dir.path().join("tuned.json")).unwrap()).unwrap();
    let script = std::fs::read_to_string(dir.path().join("tuned.wml")).unwrap();
    let alone = Wml::new().file("tuned.wml", &script).args(["--seed", "7", "--no-quiesce", "tuned.wml"]).result();
    let alone = alone.run().exits(0).result();
    let ops = done(&session);
    assert!(ops[0].1 >= 500 && ops[1].2 > 0, "{ops:?}");
    assert_eq!(ops, done(&alone));
}

/// Results beside which there is no saved script are those of another command.
#[test]
fn save_replaces_only_results_that_it_wrote() {
    let dir = scratch();
    let text = "load oltp_sync\nset $filesize=1m\nrun 0.1\nsave tuned.wml\n";
    let options = ["--no-quiesce", "--engine", "null"];
    assert_eq!(says(dir.path(), &options, text).2, Some(0));
    assert_eq!(says(dir.path(), &options, text).2, Some(0), "both files are replaced");
    let results = || std::fs::read(dir.path().join("tuned.json")).unwrap();
    let before = results();
    std::fs::remove_file(dir.path().join("tuned.wml")).unwrap();
    let (_, err, code) = says(dir.path(), &options, text);
    assert!(code != Some(0) && err.contains("tuned.json exists and was not written by `save`"), "{code:?} {err}");
    assert_eq!(results(), before);
}

/// A file set is created once as long as its definition is unchanged, and every directory is removed at the end.
#[test]
fn file_sets_of_cleared_definitions_are_removed() {
    let dir = scratch();
    let one = |name: &str| {
        format!(
            "define fileset name={name},path=$dir,entries=5,dirwidth=5,size=4k,prealloc=100\n\
             define process name=p {{ thread name=t {{ flowop read name=r,filesetname={name},iosize=1k,random }} }}\nrun 0.1\n"
        )
    };
    let text = format!("{}run 0.1\nclear\n{}clear\nrun 1\n", one("first"), one("second"));
    let (_, err, code) = says(dir.path(), &["--no-quiesce"], &text);
    assert_eq!(code, Some(2), "{err}");
    assert_eq!(err.matches("creating first").count(), 1, "{err}");
    assert_eq!(err.matches("creating second").count(), 1, "{err}");
    assert!(!err.contains("stays"), "{err}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn every_command_is_in_a_transcript() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/repl");
    let texts = std::fs::read_dir(cases).unwrap().map(|e| e.unwrap().path());
    let texts = texts.filter(|p| p.extension().is_some_and(|e| e == "txt"));
    let all: String = texts.map(|p| std::fs::read_to_string(p).unwrap()).collect();
    let commands = wml::model::commands::specs().chain(wml::prompt::COMMANDS.iter().map(|c| &c.spec));
    let missing: Vec<_> = commands.map(|c| c.name).filter(|name| !all.lines().any(|l| l.starts_with(name))).collect();
    assert!(missing.is_empty(), "no transcript has {missing:?}");
}

/// Lines that a session may be given; some of them are right.
const LINES: &[&str] = &[
    "set $n=3",
    "set $n=$n * 2",
    "set $n=randvar(type=uniform,min=1,mean=2)",
    "set $n.mean=5",
    "set $circle=$other",
    "set $other=$circle",
    "set $dir=data",
    "unset $n",
    "unset $dir",
    "set mode quit alldone",
    "define fileset name=data,path=$dir,entries=$n,dirwidth=3,size=4k,prealloc=80",
    "define fileset name=data,path=$dir,entries=4,dirwidth=3,size=8k,prealloc=50,reuse",
    "define file name=one,path=$dir,size=16k,prealloc",
    "define process name=p,instances=2 { thread name=t { flowop read name=r,filesetname=data,iosize=1k } }",
    "define process name=p { thread name=t { flowop createfile name=c,filesetname=data flowop closefile name=x } }",
    "define process name=q { thread name=t,instances=$n { flowop delay name=d,value=1 } }",
    "define process name=q {\n thread name=t {\n flowop deletefile name=d,filesetname=data\n }\n}",
    "define flowop name=both { flowop hog name=h,value=10 flowop delay name=d,value=0 }",
    "define process name=p { thread name=t { flowop both name=b,iters=2 } }",
    "define process name=p { thread name=t { flowop semblock name=never,value=1 } }",
    "define process name=p {",
    "define randvar name=$n,type=gamma,mean=3",
    "run 0.02",
    "psrun -1 0.02",
    "repeat",
    "repeat 2",
    "create files",
    "create processes",
    "stats clear",
    "stats snap",
    "stats",
    "sleep 0.01",
    "warmup 0.01",
    "shutdown processes",
    "shutdown files",
    "eventgen rate=100",
    "set $rate=50",
    "foreach $i in 1,2 { set $n=$i run 0.01 }",
    "list",
    "plan",
    "check",
    "show",
    "show data",
    "vars",
    "help",
    "help $n",
    "help read",
    "compare",
    "compare 5",
    "compare -v",
    "plot",
    "plot r",
    "page page.html",
    "ab m=2",
    "save saved.wml",
    "source saved.wml",
    "load saved.wml",
    "load randomread set $filesize=1m",
    "reload",
    "clear",
    "history",
    "echo \"$n ${stats.iocount} $(HOME)\"",
    "echo \"open",
    "}",
    "flowopp x",
    "set $x={{{",
    "£ § \u{0}",
    "stats dump \"dump.txt\"",
];

/// Sends a sequence of commands to a shell, and checks it after the last command and after its end.
fn survives(options: &[&str], lines: &[&str]) -> Result<(), TestCaseError> {
    let dir = scratch();
    let mut child = shell(dir.path(), options);
    let mut errors = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut errors, &mut text);
        text
    });
    let mut input = child.stdin.take().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    // A string that is open would hold whatever comes; live processes may have their threads.
    let open = lines.iter().map(|l| l.matches('"').count()).sum::<usize>() % 2 == 1;
    let close = if open { "\"" } else { "" };
    writeln!(input, "{close}\nshutdown processes\necho \"done with it\"\necho \"next\"").unwrap();
    let mut heard = out.lines().map(|l| l.unwrap());
    let through = heard.any(|line| line == "done with it");
    let tasks = format!("/proc/{}/task", child.id());
    let threads = || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() <= 4);
    // A thread that was waited for is in the kernel's list for a moment more.
    let alone = (0..100).any(|_| {
        threads() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }
    });
    drop(input);
    heard.for_each(drop);
    let status = child.wait().unwrap();
    let errors = reader.join().unwrap();
    prop_assert!(!errors.contains("panicked"), "{errors}");
    prop_assert!(status.code().is_some_and(|code| code <= 3), "{status}\n{errors}");
    prop_assert!(through, "the shell ended early\n{errors}");
    // The shell itself, the reader of its input, the watchdog that sees when the program was stopped, and the thread that
    // ends the program after a signal.
    prop_assert!(alone, "threads are left behind\n{errors}");
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        let users = entry.file_name() == "data";
        prop_assert!(users || entry.path().is_file(), "{} is left behind\n{errors}", entry.path().display());
    }
    Ok(())
}

fn sequences() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(LINES), 1..14)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 64, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(200))]
    #[test]
    fn no_sequence_of_commands_makes_it_panic(lines in sequences()) {
        survives(&["--engine", "null", "--format", "none", "--seed", "1"], &lines)?;
    }
}

proptest! {
    #![proptest_config(config(30))]
    #[test]
    fn no_sequence_of_commands_makes_it_panic_on_a_disk(lines in sequences()) {
        survives(&["--no-quiesce", "--format", "none", "--seed", "1"], &lines)?;
    }
}

/// The rows of the live block on a screen.
fn block(screen: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = screen.lines().collect();
    let head = lines.iter().position(|l| l.starts_with("flowop ") && l.contains("p99"))?;
    let rows = lines[head..].iter().take_while(|l| !l.trim().is_empty()).count();
    (rows > 1 && head >= 2 && lines[head - 2].contains(['█', '░'])).then(|| lines[head - 2..head + rows].to_vec())
}

#[test]
fn a_session_at_a_terminal() {
    needs!(terminals());
    let dir = scratch();
    let command = format!(
        "env WMLRUN_STATE= XDG_STATE_HOME={}/state {} repl --seed 5 --no-quiesce",
        dir.path().display(),
        binary().display()
    );
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    terminal.wait(|s| s.contains("wmlrun>"));
    terminal.line("load oltp_sync");
    terminal.line("set $filesize=1m");
    // A variable is completed, and its value hinted at.
    terminal.keys(&["set $nsh", "Tab"]);
    terminal.wait(|s| s.contains("set $nshadows=200"));
    terminal.keys(&["7", "Enter"]);
    terminal.wait(|s| s.contains("set $nshadows=7"));
    // Long enough that the display is seen on a busy machine too.
    terminal.keys(&["run 8", "Enter"]);
    terminal.wait(|s| block(s).is_some_and(|rows| rows.iter().any(|r| r.contains("shadow/shadow/shadowread"))));
    terminal.wait(at_prompt);
    assert!(
        !terminal.scrolled().contains("over time"),
        "the display is removed at the end of the run:\n{}",
        terminal.scrolled()
    );
    assert!(terminal.line("pln").contains("did you mean `plan`?"));
    terminal.line("set $nshadows=13");
    terminal.line("run 1");
    let compared = terminal.line("compare");
    let row = compared.lines().find(|l| l.starts_with("$nshadows")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["$nshadows", "7", "13"]);
    // ^C ends the run, twice in a row, and not the shell.
    for _ in 0..2 {
        terminal.fresh();
        terminal.keys(&["run 600", "Enter"]);
        terminal.wait(|s| block(s).is_some());
        terminal.keys(&["C-c"]);
        terminal.wait(|s| s.contains("SIGINT") && at_prompt(s));
    }
    // At the prompt it clears the line, also one that goes on.
    terminal.fresh();
    terminal.keys(&["define process name=x {", "Enter"]);
    terminal.wait(|s| s.contains("name=x {"));
    terminal.keys(&["C-c"]);
    terminal.wait(at_prompt);
    terminal.keys(&["nonsense"]);
    terminal.wait(|s| s.contains("nonsense"));
    terminal.keys(&["C-c"]);
    terminal.wait(at_prompt);
    assert!(terminal.line("save tuned.wml").contains("4 runs in tuned.json"));
    let planned = terminal.line("plan -v");
    terminal.fresh();
    terminal.keys(&["C-d"]);
    assert_eq!(terminal.ends(), "0");
    let history = std::fs::read_to_string(dir.path().join("state/wmlrun/history")).unwrap();
    assert!(history.contains("set $nshadows=13") && history.contains("save tuned.wml"), "{history}");
    let output = program().args(["plan", "-v", "--seed", "5", "tuned.wml"]).current_dir(dir.path()).output().unwrap();
    let saved = String::from_utf8(output.stdout).unwrap();
    let process = saved.lines().position(|l| l.starts_with("process lgwr")).unwrap();
    for line in saved.lines().skip(process).filter(|l| l.len() < 80 && !l.starts_with("dialect ")) {
        assert!(planned.contains(line.trim_end()), "{line}\nis not in\n{planned}");
    }
    let directories = std::fs::read_dir(dir.path()).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(directories, 1, "the state's only");
}

/// Other programs, and terminals that do not mark what is pasted, type faster than the prompt reads.
#[test]
fn lines_that_come_at_once_are_all_executed() {
    needs!(terminals());
    let dir = scratch();
    let command =
        format!("env WMLRUN_STATE= XDG_STATE_HOME={}/state {} repl", dir.path().display(), binary().display());
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    terminal.wait(|s| s.contains("wmlrun>"));
    terminal.keys(&["set $a=1", "Enter", "set $b=2", "Enter", "echo \"sum: $a$b\"", "Enter", "quit", "Enter"]);
    assert_eq!(terminal.ends(), "0");
    let shown = terminal.scrolled();
    assert!(shown.contains("\nsum: 12\n"), "{shown}");
}

#[test]
fn the_live_view_on_terminals_small_and_large() {
    needs!(terminals());
    for (flowops, size) in [(3, (80, 24)), (40, (80, 24)), (3, (200, 50)), (40, (200, 50))] {
        for colour in [true, false] {
            let dir = scratch();
            let each: Vec<String> = (1..=flowops).map(|n| format!("flowop hog name=step{n},value=100\n")).collect();
            let each = each.concat();
            let script = format!("define process name=p {{ thread name=t {{\n{each}}} }}\n");
            std::fs::write(dir.path().join("many.wml"), script).unwrap();
            let no_color = if colour { "NO_COLOR=" } else { "NO_COLOR=1" };
            let command = format!("env {no_color} {} --runtime 600 --no-quiesce many.wml", binary().display());
            let terminal = Terminal::start(dir.path(), size, &command);
            let screen = terminal.wait(|s| block(s).is_some());
            let rows = block(&screen).unwrap();
            let steps = rows.iter().filter(|r| r.starts_with("p/t/step")).count();
            // Four lines are not for flowops, and one for what there is no room for.
            let room = size.1 - 4;
            assert_eq!(steps, if flowops <= room { flowops } else { room - 1 }, "{screen}");
            assert_eq!(rows.last().unwrap().starts_with('…'), flowops > room, "{screen}");
            let escapes = terminal.tmux(&["capture-pane", "-p", "-e"]);
            assert_eq!(escapes.contains("\u{1b}[1m"), colour, "{escapes:?}");
            terminal.keys(&["C-c"]);
            assert_eq!(terminal.ends(), "130");
            assert!(!terminal.scrolled().contains("over time"), "{}", terminal.scrolled());
        }
    }
}

#[test]
fn worker_threads_never_write_to_the_terminal() {
    needs!(terminals());
    needs!(has("strace"), "strace is not installed");
    let dir = scratch();
    let script = "define fileset name=data,path=$dir,entries=5,dirwidth=5,size=64k,prealloc=100\n\
        define process name=p { thread name=t,instances=2 { flowop read name=r,filesetname=data,iosize=4k,random } }\n";
    std::fs::write(dir.path().join("io.wml"), script).unwrap();
    let strace = "strace -ff -o trace -e trace=pread64,write,writev,ioctl";
    let command = format!("{strace} {} --runtime 600 --interval 0.2 --no-quiesce io.wml", binary().display());
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    // Two seconds or more: on a busy machine the view may leave any one of them out.
    let seconds = |rows: &[&str]| rows[0].split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    terminal.wait(|s| block(s).is_some_and(|rows| seconds(&rows) >= 2.0));
    terminal.keys(&["C-c"]);
    assert_eq!(terminal.ends(), "130");
    let (mut workers, mut drawn) = (0, 0);
    for entry in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        if !entry.file_name().to_string_lossy().starts_with("trace.") {
            continue;
        }
        let calls = std::fs::read_to_string(entry.path()).unwrap();
        let shown = calls.lines().filter(|l| {
            ["write(", "writev(", "ioctl("].iter().any(|call| {
                l.strip_prefix(call).is_some_and(|rest| rest.starts_with(['0', '1', '2']) && rest[1..].starts_with(','))
            })
        });
        // The loader of programs reads a little, too.
        if calls.matches("pread64(").count() > 100 {
            workers += 1;
            assert_eq!(shown.collect::<Vec<_>>(), [""; 0]);
        } else {
            drawn += shown.count();
        }
    }
    assert!(workers >= 2 && drawn >= 5, "{workers} threads, drawn {drawn} times");
}

#[test]
fn without_a_terminal_each_interval_is_one_line() {
    let script = "define process name=p { thread name=t { flowop delay name=d,value=0 } }";
    let call = |more: &[&str]| {
        let args = ["--engine", "null", "--interval", "0.05", "--runtime", "0.5", "--format", "none"];
        let out = Wml::new().file("d.wml", script).args(args).args(more.iter().copied()).args(["d.wml"]).run().exits(0);
        out.shown()
    };
    let shown = call(&[]);
    assert!(shown.matches(" s: ").count() >= 5 && shown.contains(" operations and "), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(!call(&["--quiet"]).contains(" operations and "));
}

#[test]
fn df_shows_where_file_sets_would_lie_and_makes_nothing() {
    let dir = scratch();
    let space = rustix::fs::statvfs(dir.path()).unwrap();
    let text = "df\nload randomread\ndf\nset $dir=\".\"\ndf\n";
    let (out, err, code) = says(dir.path(), &["--no-quiesce"], text);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("note: no file set is defined"), "{err}");
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with("largefile1 ")).collect();
    assert_eq!(rows.len(), 2, "{out}");
    assert!(rows[0].contains("(fresh directory)/largefile1") && rows[1].contains("./largefile1"), "{out}");
    // Other programs write meanwhile; the size stays.
    let total = wml::util::size::format(space.f_blocks * space.f_frsize);
    assert!(rows.iter().all(|row| row.contains(&total)), "{total}: {out}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
