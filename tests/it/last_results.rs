//! Tests the last results, which runs keep in the state directory: how many, for whom, for which runs, and what `report
//! last` and `compare last` make of them and of foreign files among them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::cmd::{binary, program, scratch, stateless, tool};

const SCRIPT: &str = "define file name=f,path=$dir,size=64k,prealloc\n\
    define process name=p { thread name=t {\n  flowop read name=read-it,filename=f,iosize=4k\n  flowop finishoncount \
    name=end,value=1000\n} }\n";

/// The options of a short run, which a number of operations ends.
const SHORT: &str = "--engine null --no-quiesce --runtime 60 --quiet";

/// A working directory with a state directory of its own.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir_in(scratch()).unwrap());
        fs::write(home.path("x.wml"), SCRIPT).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The directory of the last results.
    fn last(&self) -> PathBuf {
        self.path("state/wmlrun/last")
    }

    fn command(&self, words: &str) -> std::process::Command {
        let mut command = program();
        command.args(words.split_whitespace()).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.env("XDG_STATE_HOME", self.path("state")).env("WMLRUN_STATE", "");
        command
    }

    /// Runs the program. Returns what it printed.
    #[track_caller]
    fn shown(&self, words: &str, status: i32) -> String {
        shown(&self.command(words).output().unwrap(), words, status)
    }

    #[track_caller]
    fn run(&self, more: &str) {
        self.shown(&format!("x.wml {SHORT} {more}"), 0);
    }

    /// The names of what is kept.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.last()).into_iter().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[track_caller]
fn shown(output: &Output, what: &str, status: i32) -> String {
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{what}\n{text}");
    text
}

#[test]
fn the_last_twenty_results_are_kept_for_their_user_alone() {
    let home = Home::new();
    let error = |words| home.shown(words, 2).lines().next().unwrap().to_owned();
    for words in ["report last", "compare last", "compare last x.json"] {
        assert_eq!(error(words), "error: no result is kept", "{words}");
    }
    fs::create_dir_all(home.last()).unwrap();
    assert_eq!(error("compare last"), "error: no result is kept");
    home.run("");
    assert_eq!(error("compare last"), "error: a single result is kept");
    (0..21).for_each(|_| home.run(""));
    let kept = home.kept();
    assert_eq!((kept.len(), &kept[0][..], &kept[19][..]), (20, "00000003.json", "00000022.json"));
    for name in &kept {
        assert_eq!(fs::metadata(home.last().join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn report_last_is_the_report_of_the_last_run() {
    let home = Home::new();
    home.run("--label first");
    let printed = home.shown(&format!("x.wml {SHORT} --label second"), 0);
    assert_eq!(home.shown("report last", 0), printed);
    let whole = home.shown("report last -v", 0);
    assert!(whole.contains("closed loop") && whole.contains("\nprocessor "), "{whole}");
    let file = home.last().join("00000002.json");
    assert_eq!(home.shown(&format!("report {} -v", file.display()), 0), whole);
    assert_eq!(home.shown(&format!("report {} --format text", file.display()), 0), whole);
    assert_eq!(home.shown(&format!("report {} --format text -v", file.display()), 0), whole);
    assert!(home.shown("report last -v --format csv", 2).contains("cannot be used with"));
    // To a file it is a page, as any other.
    home.shown("report last -o page.html", 0);
    assert!(fs::read_to_string(home.path("page.html")).unwrap().starts_with("<!DOCTYPE html>"));
    assert!(home.shown("report last --format json", 0).contains("\"label\": \"second\""));
    // A file of the name comes first.
    fs::copy(home.last().join("00000001.json"), home.path("last")).unwrap();
    let text = home.shown("report last --format text", 0);
    assert!(text.contains("label: first"), "{text}");
    let page = home.shown("report last", 0);
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
}

#[test]
fn compare_last_takes_the_last_two_or_another_result() {
    let home = Home::new();
    home.run("--json before.json");
    home.run("");
    let text = home.shown("compare last", 11);
    assert!(text.starts_with("the run before and the last run\n"), "{text}");
    let text = home.shown("compare last before.json", 11);
    assert!(text.starts_with("the last run and before.json\n"), "{text}");
    let text = home.shown("compare before.json last", 11);
    assert!(text.starts_with("before.json and the last run\n"), "{text}");
    assert!(home.shown("compare before.json", 2).contains("needs two results, <A> and <B>"));
    // What differs is told, and another script is refused.
    fs::write(home.path("y.wml"), SCRIPT.replace("64k", "128k")).unwrap();
    home.shown(&format!("y.wml {SHORT}"), 0);
    let text = home.shown("compare last", 2);
    assert!(text.contains("script (should be equal)") && text.contains("--anyway"), "{text}");
}

#[test]
fn some_results_are_not_kept() {
    let home = Home::new();
    home.run("--redact");
    shown(&home.command(&format!("x.wml {SHORT}")).env("WMLRUN_STATE", "off").output().unwrap(), "off", 0);
    home.shown(&format!("repeat x.wml {SHORT} --runs 2 --results r"), 0);
    home.shown("x.wml --no-quiesce --runtime 0.1 --quiet --dir /nowhere/at/all", 3);
    assert_eq!(home.kept(), [""; 0]);
    assert!(!home.path("state").exists());
    home.run("");
    let off = home.command("report last").env("WMLRUN_STATE", "off").output().unwrap();
    assert!(shown(&off, "report last", 2).contains("no result is kept"));
    // Neither without a place for it; the run is as it was.
    let homeless = home.command(&format!("x.wml {SHORT}")).env_remove("XDG_STATE_HOME").env_remove("HOME").output();
    shown(&homeless.unwrap(), "without a home", 0);
    assert_eq!(home.kept().len(), 1);
}

#[test]
fn a_result_that_cannot_be_kept_changes_nothing() {
    let home = Home::new();
    fs::create_dir(home.path("state")).unwrap();
    fs::write(home.path("state/wmlrun"), "mine").unwrap();
    let words = format!("x.wml {} ", SHORT.replace(" --quiet", ""));
    let text = home.shown(&words, 0);
    assert!(!text.contains("is not kept"), "{text}");
    let text = home.shown(&format!("{words} -v"), 0);
    assert!(text.contains("note: the result is not kept for `wmlrun report last`: "), "{text}");
    assert_eq!(fs::read(home.path("state/wmlrun")).unwrap(), b"mine");
    fs::remove_file(home.path("state/wmlrun")).unwrap();
    // A limit on the size of files.
    fs::write(home.path("small.wml"), SCRIPT.replace("64k", "1k").replace("4k", "1k")).unwrap();
    let limited = format!("ulimit -f 4; exec \"$0\" {} -v", words.replace("x.wml", "small.wml"));
    let mut shell = stateless("bash");
    shell.args(["-c", &limited]).arg(binary()).current_dir(home.0.path());
    shell.env("XDG_STATE_HOME", home.path("state")).env("WMLRUN_STATE", "");
    let text = shown(&shell.output().unwrap(), "a limit", 0);
    assert!(text.contains("note: the result is not kept"), "{text}");
    assert_eq!(home.kept(), [""; 0]);
    fs::remove_dir_all(home.path("state")).unwrap();
    // The directory is the tree of a file set, in which every other file is foreign.
    let script = SCRIPT.replace("file name=f", "fileset name=last,entries=2").replace("filename=f", "filesetname=last");
    fs::write(home.path("tree.wml"), script).unwrap();
    fs::create_dir_all(home.path("state/wmlrun")).unwrap();
    let text = home.shown("tree.wml --no-quiesce --runtime 60 -v --keep --dir state/wmlrun", 0);
    assert!(text.contains("is in the tree of the file set `last`"), "{text}");
    assert!(home.last().is_dir() && !home.kept().contains(&"00000001.json".to_owned()), "{:?}", home.kept());
}

#[test]
fn foreign_files_are_left_alone() {
    let home = Home::new();
    home.run("--label first");
    fs::copy(home.last().join("00000001.json"), home.path("x.json")).unwrap();
    let report = home.shown("report last", 0);
    let newest = home.last().join("99999999.json");
    let secret = home.path("secret");
    fs::write(&secret, "hunter2").unwrap();
    let lay: [(&str, &dyn Fn()); 5] = [
        ("a pipe", &|| drop(tool("mkfifo", &[newest.to_str().unwrap()]))),
        ("a link", &|| symlink(&secret, &newest).unwrap()),
        ("a directory", &|| fs::create_dir(&newest).unwrap()),
        ("another text", &|| fs::write(&newest, "root:hunter2\n").unwrap()),
        ("a file of another user", &|| {
            fs::copy(home.last().join("00000001.json"), &newest).unwrap();
            if fs::metadata(&newest).unwrap().uid() == 0 {
                std::os::unix::fs::chown(&newest, Some(12345), Some(12345)).unwrap();
            } else {
                fs::remove_file(&newest).unwrap();
                symlink(&secret, &newest).unwrap();
            }
        }),
    ];
    for (what, lay) in lay {
        lay();
        let before = fs::symlink_metadata(&newest).unwrap();
        assert_eq!(home.shown("report last", 0), report, "{what}");
        let text = home.shown("compare last", 2);
        assert!(text.starts_with("error: a single result is kept\n"), "{what}: {text}");
        let text = home.shown("compare last x.json", 11);
        assert!(text.starts_with("the last run and x.json\n"), "{what}: {text}");
        // Runs go on.
        home.run("--label second");
        assert_eq!(home.kept(), ["00000001.json", "00000002.json", "99999999.json"], "{what}");
        assert!(home.shown("report last --format json", 0).contains("\"label\": \"second\""), "{what}");
        fs::remove_file(home.last().join("00000002.json")).unwrap();
        let after = fs::symlink_metadata(&newest).unwrap();
        assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()), "{what}");
        if newest.is_dir() { fs::remove_dir(&newest) } else { fs::remove_file(&newest) }.unwrap();
    }
    assert_eq!(fs::read(&secret).unwrap(), b"hunter2");
    // After a result with the last number none is kept.
    fs::copy(home.path("x.json"), &newest).unwrap();
    let text = home.shown(&format!("x.wml {} -v", SHORT.replace(" --quiet", "")), 0);
    assert!(text.contains("no name is left after 99999999.json"), "{text}");
    assert_eq!(home.kept(), ["00000001.json", "99999999.json"]);
}

#[test]
fn runs_at_the_same_time_are_all_kept() {
    let home = Home::new();
    let children: Vec<_> =
        (0..6).map(|_| home.command(&format!("x.wml {SHORT} --format none")).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(home.kept().len(), 6);
    let read = |name: &String| fs::read_to_string(home.last().join(name)).unwrap();
    assert!(home.kept().iter().all(|name| read(name).ends_with("}\n")));
    assert!(is_empty_of_leftovers(&home.last()));
}

/// True if a directory has no file under a temporary name.
fn is_empty_of_leftovers(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().all(|entry| !entry.unwrap().file_name().to_str().unwrap().starts_with('.'))
}
