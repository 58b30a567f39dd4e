//! Tests the live view and the shell on a terminal, with names and texts that contain control sequences: they are shown
//! as text.
//!
//! The tests read the screen and the title of a tmux terminal. Other output is tested in `escape`.

use crate::cmd::{binary, scratch};
use crate::tmux::{Terminal, at_prompt, terminals};
use std::fs;
use std::path::Path;

/// A text of each kind, and how it is to be shown.
const KINDS: [(&str, &str); 9] = [
    ("\x1b]0;pwned\x07", "\\x1b]0;pwned\\x07"),
    ("\x1b[2J", "\\x1b[2J"),
    ("\r", "\\r"),
    ("\nerror: forged", "\\nerror: forged"),
    ("\x08\x08", "\\x08\\x08"),
    ("\u{202e}gpj", "\\u{202e}gpj"),
    ("\u{9b}2J", "\\x9b2J"),
    ("\u{200b}", "\\u{200b}"),
    ("\x7f", "\\x7f"),
];

/// All of them in one line.
fn hostile() -> (String, String) {
    KINDS.iter().map(|(text, shown)| (*text, *shown)).unzip()
}

/// Nothing has set the title, and no line is the hostile text's own.
#[track_caller]
fn assert_unmoved(terminal: &Terminal, screen: &str) {
    let title = terminal.tmux(&["display-message", "-p", "#{pane_title}"]);
    assert!(!title.contains("pwned"), "the title is {title}\n{screen}");
    assert!(!screen.lines().any(|line| line.starts_with("error: forged")), "a line is forged\n{screen}");
}

const SIZE: (usize, usize) = (150, 50);

#[test]
fn the_progress_and_the_live_view_show_a_path_as_text() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("terminal-").tempdir_in(scratch()).unwrap();
    let (text, shown) = hostile();
    let folder = dir.path().join("data").join(&text);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let script = format!(
        "define fileset name=data,path=\"{path}\",entries=2000,size=4k,dirwidth=20,prealloc\n\
         define process name=p {{ thread name=t {{ flowop read name=r,filesetname=data,iosize=4k,random }} }}\n"
    );
    fs::write(dir.path().join(format!("x{text}.wml")), script).unwrap();
    let command = format!("printf 'first line\\n'; {} --clean --runtime 600 --no-quiesce *.wml", binary().display());
    let terminal = Terminal::start(dir.path(), SIZE, &command);
    let screen = terminal.wait(|screen| screen.contains("p99") && screen.contains("p/t/r"));
    assert!(screen.starts_with("first line\n"), "the screen was cleared\n{screen}");
    assert_unmoved(&terminal, &screen);
    terminal.keys(&["C-c"]);
    assert_eq!(terminal.ends(), "130");
    let screen = terminal.scrolled();
    assert!(screen.starts_with("first line\n"), "the screen was cleared\n{screen}");
    assert!(screen.replace('\n', "").contains(&shown), "`{shown}` is not in\n{screen}");
    assert_unmoved(&terminal, &screen);
}

/// A shell in `dir`, with colours as a person has them.
fn shell(dir: &Path) -> Terminal {
    let command =
        format!("env WMLRUN_STATE= XDG_STATE_HOME={}/state {} repl --no-quiesce", dir.display(), binary().display());
    let terminal = Terminal::start(dir, SIZE, &command);
    terminal.wait(|screen| screen.contains("wmlrun>"));
    terminal
}

#[test]
fn completion_shows_names_of_files_as_text() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("terminal-").tempdir_in(scratch()).unwrap();
    for (text, _) in KINDS {
        fs::write(dir.path().join(format!("zz{text}b")), "").unwrap();
    }
    fs::write(dir.path().join("qq\x1b]0;pwned\x07\x1b[2Jb"), "").unwrap();
    let terminal = shell(dir.path());
    terminal.fresh();
    terminal.keys(&["load zz", "Tab", "Tab"]);
    let all = |screen: &str| KINDS.iter().all(|(_, shown)| screen.contains(&format!("zz{shown}b")));
    let screen = terminal.wait(all);
    assert!(screen.starts_with("wmlrun> load zz"), "the screen was cleared\n{screen}");
    assert_unmoved(&terminal, &screen);
    terminal.keys(&["C-c"]);
    terminal.wait(at_prompt);
    // The only one of its kind is completed up to where it can't be shown as it is.
    terminal.fresh();
    terminal.keys(&["save q", "Tab"]);
    let screen = terminal.wait(|screen| screen.contains("save qq"));
    assert_eq!(screen.trim(), "wmlrun> save qq");
    assert_unmoved(&terminal, &screen);
}

#[test]
fn echoed_input_of_the_shell_is_shown_as_text() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("terminal-").tempdir_in(scratch()).unwrap();
    let (text, shown) = hostile();
    // Without the line of its own, which a script's own echo may have.
    let (line, line_shown) = (text.replace('\n', ""), shown.replace("\\n", ""));
    fs::write(dir.path().join("x.wml"), format!("set $x=\"{text}\"\nset $l=\"{line}\"\n")).unwrap();
    fs::create_dir_all(dir.path().join("state/wmlrun")).unwrap();
    fs::write(dir.path().join("state/wmlrun/history"), format!("echo \"in the history {line}\"\n")).unwrap();
    let terminal = shell(dir.path());
    // A line of the history is drawn without what would move the cursor.
    terminal.fresh();
    terminal.keys(&["Up"]);
    let screen = terminal.wait(|screen| screen.contains("in the history"));
    assert!(screen.starts_with("wmlrun> echo \"in the history"), "{screen}");
    assert_unmoved(&terminal, &screen);
    terminal.keys(&["C-c"]);
    terminal.wait(at_prompt);
    terminal.line("load x.wml");
    for (typed, expected) in [
        ("show $x", Some(&shown)),
        ("echo \"$l\"", Some(&line_shown)),
        ("load \"$x\"", Some(&shown)),
        ("load \"/tmp/$x/$x\"", Some(&shown)),
        ("define fileset name=$x,path=/tmp", None),
        ("stats directory \"/proc/$x\"", None),
        ("set $n=$x + 1", None),
        ("show", None),
        ("plan", None),
        ("list fileset", None),
        ("help $x", None),
        ("compare", None),
        ("run 1", None),
    ] {
        let screen = terminal.line(typed);
        assert!(screen.starts_with(&format!("x> {typed}")), "{typed}: the screen was cleared\n{screen}");
        assert_unmoved(&terminal, &screen);
        if let Some(expected) = expected {
            assert!(screen.replace('\n', "").contains(expected), "{typed}: `{expected}` is not in\n{screen}");
        }
    }
    // The value of a variable is a hint.
    terminal.fresh();
    terminal.keys(&["set $x="]);
    let screen = terminal.wait(|screen| screen.contains("\\x1b[2J"));
    assert_unmoved(&terminal, &screen);
}

/// At the width of a terminal of 80 columns no line of a report is wrapped, however long the names are.
#[test]
fn a_report_fits_a_terminal_of_80_columns() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("terminal-").tempdir_in(scratch()).unwrap();
    let flowop = |name: &str| format!("flowop read name=deliver-new-messages-{name},filesetname=data,iosize=4k,random");
    let threads = ["one", "two"].map(|name| {
        format!("thread name=sender-{name} {{ {} {} }}", flowop("to-a-mailbox"), flowop("to-a-mailing-list"))
    });
    let script = format!(
        "define fileset name=data,path=$dir,entries=20,size=64k,dirwidth=20,prealloc\n\
         define process name=mail-server {{ {} }}\n",
        threads.join(" ")
    );
    fs::write(dir.path().join("x.wml"), script).unwrap();
    let command = format!("{} --runtime 1 --engine null --no-quiesce --quiet x.wml", binary().display());
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    assert_eq!(terminal.ends(), "0");
    // With `-J` the parts of a wrapped line are one line.
    let report = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
    assert!(report.contains("all I/O") && report.contains("list"), "{report}");
    for line in report.lines().map(str::trim_end) {
        assert!(line.chars().count() <= 80, "{line}\n{report}");
    }
}

/// Nor are lists, tables, help and errors of the shell.
#[test]
fn the_shell_fits_a_terminal_of_80_columns() {
    needs!(terminals());
    let dir = tempfile::Builder::new().prefix("terminal-").tempdir_in(scratch()).unwrap();
    let long = ["directory"; 12].join("-");
    let script = format!(
        "set $long={long}\nset $n=5\nusage \"set \\$n=<count>  a text of many words, which is longer than the terminal \
         is wide: the number of files\"\n\
         define fileset name=data,path=$dir,entries=$n,size=4k,dirwidth=9,prealloc\n\
         define process name=p {{ thread name=t {{ flowop statfile name=s,filesetname=data }} }}\n"
    );
    fs::write(dir.path().join("x.wml"), script).unwrap();
    let state = dir.path().display();
    let command = format!("env WMLRUN_STATE= XDG_STATE_HOME={state}/state {} repl --engine null", binary().display());
    let terminal = Terminal::start(dir.path(), (80, 24), &command);
    terminal.wait(|screen| screen.contains("wmlrun>"));
    let before = ["load x.wml", "vars", "help", "help bwlimit", "df", "nonsense", "run 0.1", "set $n=6", "run 0.1"];
    for typed in before.into_iter().chain(["runs", "compare", "echo ended"]) {
        terminal.keys(&[typed, "Enter"]);
    }
    terminal.wait(|screen| screen.lines().any(|line| line == "ended"));
    let shown = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
    assert!(["lists variables", "mean latency", "claims one event"].iter().all(|part| shown.contains(part)), "{shown}");
    for line in shown.lines().map(str::trim_end) {
        assert!(line.chars().count() <= 80, "{line}\n{shown}");
    }
}
