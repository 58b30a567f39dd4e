//! Tests what a person sees at the end of each command on a terminal: the answer is on the last screen, and no line is
//! wrapped by the terminal.
//!
//! Each case runs at 80 × 24, and with `WMLRUN_LONG=1` also at 100 × 30, 120 × 40 and 200 × 50.

use crate::cmd::{binary, long, scratch};
use crate::tmux::{Terminal, terminals};
use std::fs;
use tempfile::TempDir;

/// The sizes of terminals, in columns and lines.
pub(crate) const SIZES: [(usize, usize); 4] = [(80, 24), (100, 30), (120, 40), (200, 50)];

/// Sixteen flowops, two processes with long names, and a variable.
fn closed() -> String {
    let flowops = |from: usize| {
        let flowop =
            |n: usize| format!("flowop read name=a-read-with-a-long-name-{n},filesetname=data,iosize=4k,random ");
        (from..from + 8).map(flowop).collect::<String>()
    };
    format!(
        "set $n=4\ndefine fileset name=data,path=$dir,entries=$n,size=64k,prealloc,dirwidth=20\n\
         define process name=a-server {{ thread name=first {{ {} }} thread name=second {{ {} }} }}\n",
        flowops(1),
        flowops(9)
    )
}

const OPEN: &str = "define fileset name=data,path=$dir,entries=9,size=64k,prealloc,dirwidth=20\n\
    define process name=p { thread name=view,rate=200 { flowop openfile name=o,filesetname=data\n\
    flowop readwholefile name=r\nflowop closefile name=c } }\n";

const PHASES: &str = "set mode quit alldone\ndefine fileset name=data,path=$dir,entries=9,size=64k,prealloc,dirwidth=20\n\
    define process name=warm,for=1 { thread name=t { flowop read name=r,filesetname=data,iosize=4k,random } }\n\
    define process name=main,for=1,phase=2 { thread name=t { flowop read name=r2,filesetname=data,iosize=4k,random } }\n";

const STUDY: &str = "script = \"closed.wml\"\nrepeats = 2\noptions = [\"--runtime=0.2\", \"--no-quiesce\", \"--mkdir\"]\n\
    [[factor]]\nname = \"n\"\nlevels = [4, 8]\n";

/// A command, and what the last screen of each size shows.
const COMMANDS: [(&str, &[&str]); 9] = [
    ("closed.wml --runtime 1 --no-quiesce", &["all I/O", "result: "]),
    ("open.wml --runtime 1 --no-quiesce", &["view", "result: "]),
    ("phases.wml --no-quiesce", &["all I/O", "result: "]),
    (
        "ab closed.wml --runtime 0.2 --no-quiesce --blocks 2 --tolerance 90% --a '--set n=4' --b '--set n=8'",
        &["A is --set n=4, B is --set n=8; 4 runs of each, interleaved.", "se this result", "differs: $n (A 4, B 8)"],
    ),
    (
        "sweep closed.wml --runtime 0.2 --no-quiesce --vary n=2,4,8",
        &["peak", "n is 2, 4, 8.", "se this result", "wmlrun 0."],
    ),
    ("repeat closed.wml --runtime 0.2 --no-quiesce --runs 3", &["complete", "se this result", "wmlrun 0."]),
    ("experiment study.toml", &["4 runs in 2 cells.", "se this result", "wmlrun 0."]),
    ("list", &["micro: ", "wmlrun list GROUP"]),
    ("plan closed.wml", &["a-server", "in all 1 process, 2 threads,"]),
];

/// A directory of its own with the scripts.
fn scripts() -> TempDir {
    let dir = tempfile::Builder::new().prefix("captures-").tempdir_in(scratch()).unwrap();
    let scripts = [("closed.wml", closed()), ("open.wml", OPEN.to_owned()), ("phases.wml", PHASES.to_owned())];
    for (name, text) in scripts.into_iter().chain([("study.toml", STUDY.to_owned())]) {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// A screen as one line: sentences are broken anywhere.
fn text(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sizes of this run of the tests.
fn sizes() -> &'static [(usize, usize)] {
    if long() { &SIZES } else { &SIZES[..1] }
}

/// No line is wider than the terminal.
#[track_caller]
fn assert_unbroken(terminal: &Terminal, (width, _): (usize, usize), what: &str) {
    // With `-J` the parts of a wrapped line are one line.
    let all = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
    for line in all.lines().map(str::trim_end) {
        assert!(line.chars().count() <= width, "{what} at {width} columns: {line}\n{all}");
    }
}

#[test]
fn the_answer_is_on_the_last_screen() {
    needs!(terminals());
    for size in sizes() {
        for (words, answers) in COMMANDS {
            let dir = scripts();
            let command = format!("env WMLRUN_STATE=off {} {words}", binary().display());
            let terminal = Terminal::start(dir.path(), *size, &command);
            let status = terminal.ends();
            let screen = terminal.screen();
            assert!(
                ["0", "10", "11"].contains(&status.as_str()),
                "`{words}` ends with {status}\n{}",
                terminal.scrolled()
            );
            // A verdict of status 0 is usable, an unclear one is not.
            let may = if status == "11" { "Do not use this result." } else { "You may use this result" };
            let is_told = ["ab", "repeat"].iter().any(|command| words.starts_with(command));
            assert!(!is_told || text(&screen).contains(may) || text(&screen).contains("not usable; "), "{screen}");
            for answer in answers {
                assert!(text(&screen).contains(answer), "`{words}` at {size:?}: no `{answer}`\n{screen}");
            }
            assert_unbroken(&terminal, *size, words);
        }
    }
}

/// While an experiment runs, one block in place of a line for each run.
#[test]
fn an_experiment_shows_one_block() {
    needs!(terminals());
    for size in sizes() {
        let dir = scripts();
        let words = "ab closed.wml --runtime 1 --blocks 20 --a '--set n=4' --b '--set n=8'";
        let terminal =
            Terminal::start(dir.path(), *size, &format!("env WMLRUN_STATE=off {} {words}", binary().display()));
        let block = |screen: &str| screen.contains("ab closed.wml  run 6 of 80 (") && screen.contains("B/A ");
        let screen = terminal.wait(block);
        let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
        let [.., head, a, b, so_far] = &lines[..] else { panic!("{screen}") };
        assert!(head.starts_with("ops") && head.contains("mean") && head.contains("spread"), "{screen}");
        assert!(a.starts_with('A') && b.starts_with('B') && so_far.contains(" so far"), "{screen}");
        for word in ["better", "worse", "unclear", "same", "run 5 of"] {
            assert!(!screen.contains(word), "{word}\n{screen}");
        }
        assert_unbroken(&terminal, *size, words);
        terminal.keys(&["C-c"]);
        assert_eq!(terminal.ends(), "130");
        let screen = terminal.screen();
        assert!(screen.contains("interrupted; `wmlrun ab --resume") && !screen.contains("B/A "), "{screen}");
    }
}

/// A terminal can't show a page.
#[test]
fn a_report_without_a_file_is_text_on_a_terminal() {
    needs!(terminals());
    let program = binary();
    let short = "closed.wml --runtime 0.2 --no-quiesce --quiet";
    let make =
        format!("{0} {short} --format none --json x.json; {0} repeat {short} --runs 3 --results r", program.display());
    for (results, says, status) in
        [("r", "se this result", "0"), ("x.json", "result: ", "0"), ("r x.json", "give its folder alone", "2")]
    {
        let dir = scripts();
        let command = format!("export WMLRUN_STATE=off; {make}; clear; {} report {results}", program.display());
        let terminal = Terminal::start(dir.path(), (80, 24), &command);
        assert_eq!(terminal.ends(), status);
        let screen = terminal.screen();
        assert!(text(&screen).contains(says) && !screen.contains("<html"), "{results}: {screen}");
        let all = terminal.scrolled();
        assert!(all.contains("note: `-o page.html` writes this as a page with pictures"), "{results}: {all}");
    }
}

/// A terminal of the locale C shows ASCII.
#[test]
fn a_terminal_without_utf_8_shows_ascii() {
    needs!(terminals());
    let run = format!("{} closed.wml --runtime 1 --no-quiesce -v", binary().display());
    for (locale, ascii) in [("C", true), ("C.UTF-8", false)] {
        let dir = scripts();
        let terminal = Terminal::start(dir.path(), (80, 24), &format!("env WMLRUN_STATE=off LC_ALL={locale} {run}"));
        assert_eq!(terminal.ends(), "0");
        let all = terminal.scrolled();
        assert!(all.contains("all I/O"), "{all}");
        assert_eq!((all.is_ascii(), all.contains(" us "), all.contains(" µs ")), (ascii, ascii, !ascii), "{all}");
        assert_unbroken(&terminal, (80, 24), locale);
    }
}
