//! Tests what the shell shows of a session: the prompt, `compare`, `plot`, `page` and `ab`, on a screen and without one.

use crate::captures::SIZES;
use crate::cmd::{binary, long, scratch as all_scratch};
use crate::repl::says;
use crate::tmux::{Terminal, at_prompt, terminals};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("shell-").tempdir_in(all_scratch()).unwrap()
}

/// Three open loops and sixteen flowops of a closed one.
fn photo() -> String {
    let open = |name: &str, rate: u64| {
        format!(
            "thread name={name},rate={rate},measure={name}-request {{ flowop read name={name}-read,filesetname=photos,iosize=4k,random }}\n"
        )
    };
    let step = |n: usize| format!("flowop read name=make-the-thumbnails-{n},filesetname=photos,iosize=4k,random\n");
    let steps: String = (1..=16).map(step).collect();
    format!(
        "set $clients=1\ndefine fileset name=photos,path=$dir,entries=20,dirwidth=20,size=64k,prealloc\n\
         define process name=service {{\n{}{}{}thread name=batch,instances=$clients {{\n{steps}flowop delay name=pause,value=0\n}} }}\n",
        open("upload", 100),
        open("view", 300),
        open("album", 50)
    )
}

/// A shell with `photo.wml`, on a screen of this size.
fn photo_shell(dir: &Path, size: (usize, usize), environment: &str) -> Terminal {
    fs::write(dir.join("photo.wml"), photo()).unwrap();
    let command = format!(
        "env WMLRUN_STATE= XDG_STATE_HOME={}/state {environment} {} repl photo.wml --engine null --no-quiesce --interval 0.2",
        dir.display(),
        binary().display()
    );
    let terminal = Terminal::start(dir, size, &command);
    terminal.wait(|screen| screen.contains("photo>"));
    terminal
}

/// The lines of a screen with a command, from the command to the next prompt. None of it has scrolled off.
#[track_caller]
fn answer(terminal: &Terminal, width: usize, command: &str) -> Vec<String> {
    let screen = terminal.line(command);
    let lines: Vec<String> = screen.trim_end().lines().map(str::to_owned).collect();
    assert!(lines[0].ends_with(&format!("> {command}")), "the first line has scrolled off:\n{screen}");
    // With `-J` the parts of a wrapped line are one line.
    let joined = terminal.tmux(&["capture-pane", "-p", "-J"]);
    assert!(joined.lines().all(|line| line.trim_end().chars().count() <= width), "{joined}");
    lines[1..lines.len() - 1].to_vec()
}

#[test]
fn the_prompt_names_the_script() {
    needs!(terminals());
    let dir = scratch();
    let long = format!("a-script-with-a-very-long-name{}", "-and-more".repeat(5));
    for name in [long.as_str(), "x\x1b[2J"] {
        fs::write(dir.path().join(format!("{name}.wml")), "set $x=1\n").unwrap();
    }
    fs::write(dir.path().join("load-it"), "load \"x\x1b[2J\"\n").unwrap();
    let terminal = photo_shell(dir.path(), SIZES[0], "LC_ALL=C.UTF-8");
    let screen = terminal.screen();
    assert!(
        screen.contains("loaded photo.wml, dialect") && screen.contains("type `set $NAME=VALUE`, `run`"),
        "{screen}"
    );
    assert!(terminal.line("load varmail").trim_end().ends_with("\nvarmail>"));
    assert!(terminal.line("clear").trim_end().ends_with("\nwmlrun>"));
    let screen = terminal.line("source load-it");
    assert!(screen.trim_end().ends_with("\nx\\x1b[2J>"), "{screen}");
    let screen = terminal.line(&format!("load {long}"));
    let prompt = screen.trim_end().lines().last().unwrap();
    assert!(prompt.starts_with("a-script-wit") && prompt.contains('…') && prompt.chars().count() == 21, "{screen}");
}

#[test]
fn answers_of_the_shell_fit_a_screen() {
    needs!(terminals());
    for size in SIZES.into_iter().take(if long() { SIZES.len() } else { 1 }) {
        let dir = scratch();
        let terminal = photo_shell(dir.path(), size, "LC_ALL=C.UTF-8");
        terminal.line("run 2");
        terminal.line("set $clients=2");
        terminal.line("run 2");
        let drawn = answer(&terminal, size.0, "plot").join("\n");
        assert!(drawn.starts_with("all I/O: operations per second\n"), "{drawn}");
        assert!(
            drawn.contains('█') && drawn.contains("╵") && (size.1 > 24 || drawn.contains(" more (`plot NAME`)")),
            "{drawn}"
        );
        let drawn = answer(&terminal, size.0, "plot view-read").join("\n");
        assert!(drawn.contains("view-read: latency") && drawn.contains('█'), "{drawn}");

        let compared = answer(&terminal, size.0, "compare");
        let all = compared.join("\n");
        assert!(
            compared[0].contains("run 1") && compared[0].contains("run 2") && compared[0].contains("change"),
            "{all}"
        );
        let at = |start: &str| compared.iter().position(|line| line.starts_with(start)).unwrap_or(usize::MAX);
        let rows = ["$clients ", "seconds ", "upload arrived/s ", "upload done/s ", "ops/s ", "mean latency "].map(at);
        assert!(rows.is_sorted() && rows[5] < usize::MAX, "{rows:?}\n{all}");
        assert!(all.contains("(`compare -v`)") || size.1 > 24, "{all}");
        assert!(all.contains("note: these are single runs"), "{all}");
        terminal.line("compare -v");
        assert!(terminal.scrolled().contains("make-the-thumbnails-16 ops/s"), "{}", terminal.scrolled());
    }
}

#[test]
fn a_plot_is_ascii_where_the_locale_is() {
    needs!(terminals());
    let dir = scratch();
    let terminal = photo_shell(dir.path(), SIZES[0], "LC_ALL=C");
    terminal.line("run 1");
    let drawn = answer(&terminal, SIZES[0].0, "plot").join("\n");
    assert!(drawn.is_ascii() && drawn.contains("##") && drawn.contains("operations per second"), "{drawn}");
}

#[test]
fn a_page_is_that_of_the_last_run_and_replaces_only_pages() {
    let dir = scratch();
    fs::write(dir.path().join("photo.wml"), photo()).unwrap();
    fs::write(dir.path().join("mine.html"), "<p>mine</p>").unwrap();
    let text = "page\nload photo\nrun 0.2\nset $clients=2\nrun 0.2\npage\npage\npage mine.html\n";
    let (_, err, code) = says(dir.path(), &["--engine", "null", "--no-quiesce"], text);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("note: there are no runs yet"), "{err}");
    assert_eq!(err.matches("note: the page of the run is in photo.html").count(), 2, "{err}");
    assert!(err.contains("mine.html exists, and is not a page of wmlrun"), "{err}");
    let page = fs::read_to_string(dir.path().join("photo.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("photo.wml") && !page.contains("Run 1 of 2"), "{page}");
    assert_eq!(fs::read_to_string(dir.path().join("mine.html")).unwrap(), "<p>mine</p>");
}

/// A script whose runs end after some operations.
const SHORT: &str = "set $n=1\nset $k=1\ndefine fileset name=data,path=$dir,entries=$k,dirwidth=10,size=4k,prealloc\n\
    define process name=p { thread name=t,instances=$n {\n\
      flowop read name=rd,filesetname=data,iosize=4k\n flowop finishoncount name=end,value=1000\n\
    } }\n";

/// The description of the only experiment, which has made sixteen runs.
fn experiment(dir: &Path) -> toml::Table {
    let folders: Vec<_> =
        fs::read_dir(dir.join("wmlrun-results")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    let runs = fs::read_dir(folders[0].join("runs")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(runs.filter(|path| path.extension().is_some_and(|end| end == "json")).count(), 16);
    fs::read_to_string(folders[0].join("experiment.toml")).unwrap().parse().unwrap()
}

#[test]
fn ab_compares_the_script_as_it_stands() {
    let dir = scratch();
    fs::write(dir.path().join("x.wml"), SHORT).unwrap();
    let text = "load x\nset $k=3\nrun 60\nab n=2\n";
    let (out, err, code) = says(dir.path(), &["--engine", "null", "--no-quiesce", "--set", "n=4"], text);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("differs: $n (A 4, B 2)"), "{out}{err}");
    let described = experiment(dir.path());
    let words = |arm: usize| -> Vec<String> {
        described["arms"][arm]["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
    };
    for (arm, own) in [(0, "n=4"), (1, "n=2")] {
        let mut words = words(arm);
        words.sort();
        assert_eq!(words, ["--engine=null", "--no-quiesce", "--runtime=60", "--set", "--set=k=3", own, "x.wml"]);
    }
}

/// What a run of the file would not do.
#[test]
fn ab_refuses_what_exists_only_in_the_shell() {
    let dir = scratch();
    fs::write(dir.path().join("x.wml"), SHORT).unwrap();
    for typed in [
        "define process name=q { thread name=t,instances=$n { flowop delay name=d,value=0 } }",
        "set mode quit alldone",
        "eventgen rate=100",
        "load randomread",
    ] {
        let (_, err, code) = says(dir.path(), &["--engine", "null"], &format!("load x\n{typed}\nab n=2\n"));
        assert!(code == Some(2) && err.contains("what is defined here differs from it"), "{typed}: {err}");
    }
    let (_, err, code) = says(dir.path(), &["--engine", "null"], "load x\nset $unused=1\nab m=2\nab k\n");
    assert!(code == Some(2) && err.contains("nothing that is defined uses `$m`"), "{err}");
    assert!(err.contains("usage: `ab NAME=VALUE…`"), "{err}");
    assert!(!dir.path().join("wmlrun-results").exists());
    // What is saved and loaded again is a file.
    let text = "load x\neventgen rate=100000\nrun 60\nsave y.wml\nclear\nload y\nab n=2\n";
    let (out, err, code) = says(dir.path(), &["--engine", "null", "--no-quiesce"], text);
    assert_eq!(code, Some(0), "{out}{err}");
    experiment(dir.path());
}

/// ^C ends the comparison, and not the shell, whose later runs end by it too.
#[test]
fn an_interrupted_comparison_leaves_the_shell() {
    needs!(terminals());
    let dir = scratch();
    let terminal = photo_shell(dir.path(), SIZES[0], "");
    terminal.line("set $clients=2");
    for _ in 0..2 {
        terminal.fresh();
        terminal.keys(&["ab clients=3", "Enter"]);
        terminal.wait(|screen| screen.contains("writing results to"));
        std::thread::sleep(std::time::Duration::from_millis(500));
        terminal.keys(&["C-c"]);
        let screen = terminal.wait(|screen| screen.contains("interrupted") && at_prompt(screen));
        assert!(screen.contains("wmlrun ab --resume"), "{screen}");
        terminal.fresh();
        terminal.keys(&["run 600", "Enter"]);
        terminal.wait(|screen| screen.contains("p99"));
        terminal.keys(&["C-c"]);
        terminal.wait(|screen| screen.contains("SIGINT") && at_prompt(screen));
    }
    terminal.fresh();
    terminal.keys(&["C-d"]);
    assert_eq!(terminal.ends(), "0");
}
