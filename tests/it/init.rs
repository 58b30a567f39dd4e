//! Tests `wmlrun init`: the questions on a terminal, the answers by options, refused files and answers, and the script,
//! which is checked, run, swept and compared.

use crate::cmd::{Output, Wml, binary, flowop, number, scratch};
use crate::tmux::{Terminal, terminals};
use crate::undisturbed::undisturbed;
use std::fs;

/// What `init` writes with these words after its name.
fn written(words: &[&str]) -> String {
    let output = Wml::new().args(["init", "new.wml"]).args(words).run().exits(0);
    assert!(output.stdout.starts_with("new.wml is written. `wmlrun new.wml` runs it"), "{}", output.shown());
    fs::read_to_string(output.dir().join("new.wml")).unwrap()
}

/// A line of the script with the value of a variable.
#[track_caller]
fn assert_sets(script: &str, lines: &[&str]) {
    for line in lines {
        assert!(script.lines().any(|other| other == format!("set ${line}")), "{line} is not in\n{script}");
    }
}

#[test]
fn options_answer_the_questions() {
    // The other questions have their defaults.
    let script = written(&["--load", "8"]);
    assert_sets(&script, &["files=1000", "filesize=64k", "threads=8", "rate=0", "reads=70", "dsync=false", "fsync=0"]);
    let script =
        written(&["--files", "20x1536k", "--load", "200/s", "--reads", "40%", "--sync", "write", "--io", "8K"]);
    assert_sets(&script, &["files=20", "filesize=1536k", "rate=200", "reads=40", "dsync=true", "iosize=8k"]);
    let checked = Wml::new().file("new.wml", &script).args(["check", "new.wml"]).run().exits(0);
    assert_eq!(checked.shown(), "");
}

#[test]
fn nothing_is_written_without_answers_or_with_wrong_ones() {
    for (words, says) in [
        (&["--load", "none"][..], "`--load none`: the number of threads is from 1 to 10000, not `none`"),
        (&["--files", "10x4k", "--io", "8k"], "`--io 8k`: a part of a file has 1 to 4k bytes here"),
        (&[], "the questions need a terminal"),
        (&["--sync", "always"], "never, write, end"),
    ] {
        let output = Wml::new().args(["init"]).args(words).run().exits(2);
        assert!(output.stderr.contains(says) && output.stderr.contains("help"), "{}", output.shown());
        assert_eq!((output.stdout.as_str(), output.left()), ("", vec![]));
    }
    let output = Wml::new().args(["init", "none/new.wml", "--load", "4"]).run().exits(3);
    assert!(output.stderr.contains("none/new.wml can't be written: No such file"), "{}", output.shown());
}

#[test]
fn an_existing_file_is_never_replaced() {
    let refused = |call: Wml| call.args(["init", "new.wml", "--load", "4"]).run().exits(3);
    let says = |output: &Output| assert!(output.stderr.contains("new.wml exists, and is kept"), "{}", output.shown());
    for content in ["mine", ""] {
        let output = refused(Wml::new().file("new.wml", content));
        says(&output);
        assert_eq!(fs::read_to_string(output.dir().join("new.wml")).unwrap(), content);
    }
    let call = Wml::new();
    std::os::unix::fs::symlink("elsewhere", call.dir().join("new.wml")).unwrap();
    let output = refused(call);
    says(&output);
    assert_eq!(output.left(), ["new.wml"]);
}

#[test]
fn the_questions_are_asked_on_a_terminal() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("init-").tempdir_in(scratch()).unwrap();
    let command = format!("{} init --reads 50", binary().display());
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    // An empty answer is the default, and a wrong one is asked for again; an option leaves its question out.
    for (asked, typed) in [
        ("is each? [1000 x 64k]", "10 x 32k"),
        ("(such as 200/s)? [4]", ""),
        ("(never, write, end)? [never]", "sometimes"),
        ("error: give `never`, `write` or `end`", "end"),
        ("(such as 8k)? [whole]", "4k"),
    ] {
        terminal.wait(|screen| screen.contains(asked) && screen.trim_end().ends_with(']'));
        terminal.tmux(&["send-keys", "-l", typed]);
        terminal.keys(&["Enter"]);
    }
    assert_eq!(terminal.ends(), "0");
    let screen = terminal.scrolled();
    assert!(screen.contains("workload.wml is written") && !screen.contains("percent"), "{screen}");
    let script = fs::read_to_string(dir.path().join("workload.wml")).unwrap();
    assert_sets(&script, &["files=10", "filesize=32k", "threads=4", "reads=50", "fsync=1", "iosize=4k"]);
    // Without an answer nothing is written.
    for (key, status) in [("C-d", "2"), ("C-c", "130")] {
        let dir = tempfile::Builder::new().prefix("init-").tempdir_in(scratch()).unwrap();
        let terminal = Terminal::start(dir.path(), (80, 24), &format!("{} init", binary().display()));
        terminal.wait(|screen| screen.contains("is each?"));
        terminal.keys(&[key]);
        assert_eq!(terminal.ends(), status);
        assert!(!dir.path().join("workload.wml").exists());
    }
}

/// With its defaults it runs as it is written, in less than a minute; its variables are those of `--set`, `sweep` and `ab`.
#[test]
fn the_script_runs_and_can_be_varied() {
    undisturbed(|| {
        let script = written(&["--load", "4"]);
        assert!(script.ends_with("\nrun 30\n"), "{script}");
        let call = |words: &[&str]| Wml::new().file("new.wml", &script).args(["--no-quiesce", "new.wml"]).args(words);
        let run = call(&["--runtime", "1", "--set", "fsync=1"]).result().run().exits(0).only_run();
        for name in ["reading", "writing", "write.sync", "read.data", "write.data"] {
            assert!(number(flowop(&run, name), &["ops"]) > 0.0, "{name}");
        }
        let varied = |words: &[&str]| {
            let short = ["--runtime", "0.1", "--no-quiesce", "--engine", "null", "--set", "files=20"];
            Wml::new().file("new.wml", &script).args(words).args(["new.wml"]).args(short).run()
        };
        varied(&["sweep", "--vary", "threads=1,2", "--repeats", "1"]).exits(0);
        varied(&["sweep", "--vary", "rate=50,100", "--repeats", "1"]).exits(0);
        let output = varied(&["ab", "--blocks", "2", "--a", "--set fsync=0", "--b", "--set fsync=1"]);
        assert!([0, 10, 11, 12].contains(&output.code()), "{}", output.shown());
    });
}
