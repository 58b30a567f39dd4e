//! Tests what an experiment does to files of others: `prune` keeps them, a folder from elsewhere executes no command,
//! and no output is in a tree that the runs measure.
//!
//! Not in here: experiments that are killed and resumed (`resume`).

use crate::cmd::tool;
use crate::experiments::{Lab, SCRIPT, SHORT, exits};
use crate::mounts::available;
use std::fs;
use std::os::unix::fs::symlink;

/// Starts repeats of two runs that a failing command has stopped after the first; with the file `go` they continue.
fn stopped(lab: &Lab, options: &[&str]) {
    let words = format!("repeat {SHORT} --runs 2 --results r --quiet");
    let output = lab.command(&words).args(["--after", "echo >> log; test -e go"]).args(options).output().unwrap();
    exits(&output, 1, "the command fails");
    fs::write(lab.path("go"), "").unwrap();
}

#[test]
fn a_copied_folder_executes_its_commands_only_with_permission() {
    let lab = Lab::new();
    stopped(&lab, &["--launch", "env"]);
    let (from, to) = (lab.path("r"), lab.path("s"));
    tool("cp", &["-a", from.to_str().unwrap(), to.to_str().unwrap()]);
    let before = fs::read(lab.path("s/journal.jsonl")).unwrap();
    for words in ["repeat --resume s --quiet", "repeat --resume s --anyway"] {
        let shown = lab.run(words, 3);
        assert!(shown.contains("s was not made on this host by this user"), "{shown}");
        assert!(shown.contains("`--after` runs `echo >> log; test -e go`"), "{shown}");
        assert!(shown.contains("`--launch` starts each run with `env`"), "{shown}");
        assert!(shown.contains("permit it with `--allow-system`"), "{shown}");
    }
    assert_eq!(fs::read(lab.path("s/journal.jsonl")).unwrap(), before);
    assert_eq!(fs::read_to_string(lab.path("log")).unwrap(), "\n", "no command was executed");
    lab.run("repeat --resume s --quiet --allow-system", 0);
    assert_eq!(lab.runs("s", "finished"), [1, 2]);
    // The original needs no permission.
    lab.run("repeat --resume r --quiet", 0);
    assert_eq!(lab.runs("r", "finished"), [1, 2]);
}

#[test]
fn a_copied_folder_gives_its_runs_no_permission() {
    let lab = Lab::new();
    for (folder, option, code) in [("r", "--allow-write=elsewhere", 3), ("s", "--pin", 0)] {
        lab.run(&format!("repeat {SHORT} {option} --runs 1 --results {folder} --quiet"), 0);
        let copy = format!("copy-of-{folder}");
        tool("cp", &["-r", lab.path(folder).to_str().unwrap(), lab.path(&copy).to_str().unwrap()]);
        let shown = lab.run(&format!("repeat --resume {copy} --quiet"), code);
        assert_eq!(shown.contains("the runs have the option `--allow-write=elsewhere`"), code == 3, "{shown}");
        lab.run(&format!("repeat --resume {folder} --quiet"), 0);
    }
}

#[test]
fn prune_keeps_the_files_of_others() {
    let lab = Lab::new();
    let words = format!("repeat {SHORT} --runs 2 --results r --quiet");
    exits(&lab.command(&words).args(["--before", "echo said"]).output().unwrap(), 0, &words);
    let own = ["runs/0001.log", "runs/0002.log", "hooks/0001-before.log", "hooks/0002-before.log"];
    assert!(own.iter().all(|file| lab.path("r").join(file).exists()), "{own:?}");
    let foreign =
        ["runs/2024.log", "runs/2024-notes.log", "runs/1.log", "runs/2024.files/x", "hooks/2024-notes.log", "notes"];
    fs::create_dir(lab.path("r/runs/2024.files")).unwrap();
    for file in foreign {
        fs::write(lab.path("r").join(file), "mine").unwrap();
    }
    lab.run("prune r", 0);
    assert!(own.iter().all(|file| !lab.path("r").join(file).exists()), "{own:?}");
    for file in foreign {
        assert_eq!(fs::read_to_string(lab.path("r").join(file)).unwrap(), "mine", "{file}");
    }
    lab.run("repeat --resume r --quiet", 0);
    assert_eq!(lab.runs("r", "finished"), [1, 2]);
}

#[test]
fn prune_removes_the_files_of_scripts_and_no_others() {
    let lab = Lab::new();
    fs::write(lab.path("x.wml"), format!("{SCRIPT}run 60\nstats dump \"out/dump\"\n")).unwrap();
    lab.run(&format!("repeat {SHORT} --runs 2 --results r --quiet"), 0);
    let files = ["r/runs/0001.files/out/dump", "r/runs/0002.files/out/dump"].map(|file| lab.path(file));
    assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    // A file beside one of the run, and a directory with the names of such files that a link leads to.
    let foreign = ["r/runs/0002.files/notes", "other/1/0001.log", "other/1/0001.files/out/dump"];
    fs::create_dir_all(lab.path("other/1/0001.files/out")).unwrap();
    symlink(lab.path("other"), lab.path("r/dropped")).unwrap();
    for file in foreign {
        fs::write(lab.path(file), "mine").unwrap();
    }
    let shown = lab.run("prune r", 0);
    assert!(shown.contains("note: r/runs/0002.files is kept: "), "{shown}");
    assert!(!lab.path("r/runs/0001.files").exists() && !files[1].exists(), "{shown}");
    for file in foreign {
        assert_eq!(fs::read_to_string(lab.path(file)).unwrap(), "mine", "{file}");
    }
}

#[test]
fn prune_refuses_a_folder_in_which_something_is_mounted() {
    needs!(available(&[]));
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs 1 --results r --quiet"), 0);
    for dir in ["r/runs/0001.files/m", "mine"] {
        fs::create_dir_all(lab.path(dir)).unwrap();
    }
    fs::write(lab.path("mine/file"), "mine").unwrap();
    let (from, to) = (lab.path("mine"), lab.path("r/runs/0001.files/m"));
    tool("mount", &["--bind", from.to_str().unwrap(), to.to_str().unwrap()]);
    let output = lab.command("prune r").output().unwrap();
    tool("umount", &[to.to_str().unwrap()]);
    let shown = exits(&output, 3, "prune r");
    assert!(shown.contains("0001.files/m: something is mounted there"), "{shown}");
    assert!(lab.path("mine/file").exists() && lab.path("r/runs/0001.log").exists(), "{shown}");
}

#[test]
fn a_pipe_in_a_results_folder_is_refused_at_once() {
    let lab = Lab::new();
    lab.run(&format!("repeat {SHORT} --runs 1 --results r --quiet"), 0);
    for file in ["experiment.toml", "journal.jsonl"] {
        let path = lab.path("r").join(file);
        let text = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        tool("mkfifo", &[path.to_str().unwrap()]);
        for words in ["prune r", "repeat --resume r --quiet"] {
            let shown = lab.run(words, 3);
            assert!(shown.contains(&format!("{file}: it is not a regular file")), "{words}: {shown}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, text).unwrap();
    }
}

/// A folder in which no run has ended is removed, but not the files of others in its directories.
#[test]
fn a_folder_without_a_run_is_kept_for_the_files_of_others() {
    let lab = Lab::new();
    let mut command = lab.command(&format!("repeat {SHORT} --runs 1 --quiet"));
    let add = "for d in wmlrun-results/*; do echo mine > $d/hooks/notes.log; echo mine > $d/runs/7.json; done; exit 3";
    exits(&command.args(["--before", add]).output().unwrap(), 1, "the command fails");
    let folder = fs::read_dir(lab.path("wmlrun-results")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(folder.join("hooks/notes.log")).unwrap(), "mine\n");
    assert_eq!(fs::read_to_string(folder.join("runs/7.json")).unwrap(), "mine\n");
    assert!(!folder.join("experiment.toml").exists() && !folder.join("hooks/0001-before.log").exists());
}

/// A workload on the files of a directory, which takes no time.
const ON_FILES: &str = "x.wml --no-quiesce --runtime 60 --set reads=10 --dir d --quiet";

#[test]
fn an_output_in_a_measured_tree_is_refused_before_the_first_run() {
    let lab = Lab::new();
    fs::create_dir(lab.path("d")).unwrap();
    exits(&lab.command(&format!("{ON_FILES} --format none")).output().unwrap(), 0, "the tree is made");
    fs::create_dir(lab.path("d/data/sub")).unwrap();
    symlink("d/data/sub", lab.path("link")).unwrap();
    for (kind, option, path) in [
        ("repeat", "--append", "d/data/out"),
        ("repeat", "--append", "d/../d/data/out"),
        ("repeat", "--append", "link/out"),
        ("repeat", "--live", "jsonl:d/data/out"),
        ("repeat", "--results", "d/data/out"),
        ("ab", "--append", "d/data/out"),
        ("sweep --vary n=1,2", "--append", "d/data/out"),
        ("sweep --vary n=50%,100%", "--append", "d/data/out"),
    ] {
        let words = format!("{kind} {ON_FILES} {option} {path}");
        let shown = lab.run(&words, 3);
        assert!(shown.contains(&format!("`{option}` names ")), "{words}: {shown}");
        assert!(shown.contains("which is in the tree of the file set `data`"), "{words}: {shown}");
        assert!(!lab.path("d/data/out").exists() && !lab.path("wmlrun-results").exists(), "{words}: {shown}");
    }
    fs::remove_dir(lab.path("d/data/sub")).unwrap();
    // Beside the tree it is no foreign file. Without files there is no tree.
    for (words, folder) in [("--append d/out", "r"), ("--append d/data/out --engine null", "s")] {
        lab.run(&format!("repeat {ON_FILES} --runs 1 --metric seconds {words} --results {folder}"), 0);
    }
    fs::remove_file(lab.path("d/data/out")).unwrap();
    let shown = lab.run("repeat --resume r --append d/data/out", 3);
    assert!(shown.contains("`--append` names ") && !lab.path("d/data/out").exists(), "{shown}");
}

/// A resumed experiment changes to the directory in which it was started.
#[test]
fn outputs_of_a_resumed_experiment_are_relative_to_the_directory_of_its_call() {
    let lab = Lab::new();
    stopped(&lab, &[]);
    fs::create_dir(lab.path("other")).unwrap();
    let mut command = lab.command("repeat --resume ../r --quiet --append t.csv --live jsonl:live");
    exits(&command.current_dir(lab.path("other")).output().unwrap(), 0, "another directory");
    for file in ["t.csv", "live"] {
        assert!(lab.path("other").join(file).exists() && !lab.path(file).exists(), "{file}");
    }
}
