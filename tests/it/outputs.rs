//! Tests the files that scripts and options write: their location, the files that they replace, and the reaction to a
//! failed write.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::cmd::{Output, Wml, skip, tool};
use crate::mounts::{Fs, Mount, available};
use crate::tree::tree;

const DEFINED: &str = "define fileset name=s,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=100\n\
                       define process name=p { thread name=t { flowop statfile name=look,filesetname=s } }\n";

/// A script of 1.4 that measures and then does `more`.
fn measuring(more: &str) -> String {
    format!("{DEFINED}create processes\nstats clear\nsleep 0.1\nstats snap\n{more}\nshutdown processes\n")
}

fn null(script: &str) -> Wml {
    Wml::new().file("w/s.f", script).args(["w/s.f", "--engine", "null"])
}

fn is_dump(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.starts_with("Flowop totals:\n") && text.contains("look"))
}

/// A call of a shell with the program as `$0`: `$0 s.wml --json …`.
fn shell(line: &str) -> Wml {
    Wml::new().file("s.wml", DEFINED).under(["bash", "-c", line])
}

const RUN: &str = "\"$0\" s.wml --engine null --runtime 0.1";

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_script_writes_below_the_results_directory_only() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".bashrc"), "mine").unwrap();
    let absolute = home.path().join(".bashrc").display().to_string();
    let inside = absolute.trim_start_matches('/').to_owned();
    let dir = home.path().display();
    for (more, at) in [
        (format!("stats dump \"{absolute}\""), inside.clone()),
        (format!("stats xmldump \"{absolute}\""), inside.clone()),
        (format!("stats multidump \"{absolute}\""), inside.clone()),
        ("stats dump \"../../../../x\"".to_owned(), "x".to_owned()),
        ("stats dump \"sub/../../../x\"".to_owned(), "x".to_owned()),
        (format!("stats directory \"{dir}\"\nstats dump \".bashrc\""), inside.clone()),
        (format!("stats directory \"out\"\nstats dump \"../../../..{absolute}\""), inside.clone()),
        (format!("stats dump \"w/../../{}/../..{absolute}\"", "../".repeat(20)), inside.clone()),
    ] {
        let before = tree(home.path());
        let call = null(&measuring(&more)).args(["--results", "r"]);
        let output = call.run().exits(0);
        assert_eq!(before, tree(home.path()), "{more}\n{}", output.shown());
        let found = output.dir().join("r").join(&at);
        assert!(found.is_file(), "{more}: nothing at {}\n{}", found.display(), output.shown());
        assert_eq!(output.left(), ["r", "w"], "{more}");
        assert!(
            output.stderr.contains("warning[W0417]") && output.stderr.contains("outside"),
            "{more}\n{}",
            output.stderr
        );
    }
}

#[test]
fn existing_files_in_the_results_directory_are_kept() {
    let call = null(&measuring("stats dump \"d\"\nstats multidump \"d\"\nstats xmldump \"d\""));
    let at = |name: &str| call.dir().join(name);
    fs::write(at("precious"), "mine").unwrap();
    symlink("precious", at("d")).unwrap();
    fs::hard_link(at("precious"), at("d.1")).unwrap();
    let dir = call.dir().to_owned();
    let output = call.run().exits(0);
    let at = |name: &str| dir.join(name);
    assert_eq!(text(&at("precious")), "mine");
    assert!(fs::symlink_metadata(at("d")).unwrap().is_symlink() && text(&at("d.1")) == "mine");
    assert!(is_dump(&at("d.2")) && is_dump(&at("d.3")) && text(&at("d.4")).starts_with("<stat_doc"));
    assert!(text(&at("d.3")).contains('\t') && !text(&at("d.2")).contains('\t'), "each by its own command");
    assert!(
        output.stderr.contains("d.2") && output.stderr.contains("was not written by `stats dump`"),
        "{}",
        output.stderr
    );
    // A second time the same commands replace what they wrote.
    let names = output.left();
    let mut again = crate::cmd::program();
    let again = again.args(["w/s.f", "--engine", "null"]).current_dir(&dir).output().unwrap();
    assert!(again.status.success());
    assert_eq!(output.left(), names);
}

/// As in Filebench, which changes its working directory.
#[test]
fn a_second_stats_directory_is_below_the_first() {
    let more = "stats directory \"res\"\nstats directory \"sub\"\nstats dump \"a\"\nstats directory \"..\"\nstats dump \"b\"\n\
                stats directory \"..\"\nstats dump \"c\"";
    let output = null(&measuring(more)).run().exits(0);
    for file in ["res/sub/a", "res/b", "c"] {
        assert!(is_dump(&output.dir().join(file)), "{file}");
    }
    assert!(!output.stderr.contains("outside"), "{}", output.stderr);
}

/// As in Filebench: what a command writes is beside the files of the script.
#[test]
fn a_command_after_stats_directory_runs_in_it() {
    let more = "system \"touch before\"\nstats directory \"res\"\nsystem \"touch after\"";
    let output = null(&measuring(more)).args(["--allow-system"]).run().exits(0);
    assert!(output.dir().join("before").exists() && output.dir().join("res/after").exists());
    assert!(!output.dir().join("after").exists());
}

#[test]
fn links_out_of_the_results_directory_are_not_followed() {
    let other = tempfile::tempdir().unwrap();
    for more in ["stats dump \"out/d\"", "stats dump \"a/../out/d\""] {
        let call = null(&measuring(more));
        symlink(other.path(), call.dir().join("out")).unwrap();
        let output = call.run().exits(1);
        assert!(output.stderr.contains("symbolic link") && output.stdout.contains("look"), "{}", output.shown());
    }
    let call = null(&measuring("stats directory \"out/d\""));
    symlink(other.path(), call.dir().join("out")).unwrap();
    call.run().exits(3);
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0, "behind the link");
    // The directory itself is the user's word.
    let call = null(&measuring("stats dump \"d\"")).args(["--results", "r"]);
    symlink(other.path(), call.dir().join("r")).unwrap();
    call.run().exits(0);
    assert!(is_dump(&other.path().join("d")));
}

#[test]
fn a_script_writes_elsewhere_only_with_permission() {
    let other = tempfile::tempdir().unwrap();
    let path = other.path().display().to_string();
    let script = measuring(&format!("stats dump \"{path}/d\"\nstats dump \"{path}/e\""));
    let output = null(&script).args(["--allow-write", &format!("{path}/d")]).run().exits(0);
    assert!(is_dump(&other.path().join("d")) && !other.path().join("e").exists());
    assert!(is_dump(&output.dir().join(path.trim_start_matches('/')).join("e")));
    let output = null(&script).args(["--allow-write", &path]).run().exits(0);
    assert!(is_dump(&other.path().join("e")) && !other.path().join("d.1").exists());
    assert!(!output.stderr.contains("W0417"), "{}", output.stderr);
    // With leave, too, nothing foreign is replaced.
    fs::write(other.path().join("e"), "mine").unwrap();
    null(&script).args(["--allow-write", &path]).run().exits(0);
    assert!(text(&other.path().join("e")) == "mine" && is_dump(&other.path().join("e.1")));
}

#[test]
fn check_lists_what_a_script_and_the_scripts_it_loads_write_and_run() {
    let loaded =
        measuring("stats directory \"made\"\nstats dump \"dumped\"\nsystem \"touch ran\"\nfsflush fstype=ext4");
    let more = "load lib\nstats xmldump \"x\"\nstats multidump \"m\"\nstats command \"sleep 1\"\nforeach $i in 1 { stats dump \"$i\" }\n";
    let output = Wml::new().file("w/lib.f", &loaded).file("w/s.f", more).args(["check", "w/s.f"]).run().exits(0);
    assert_eq!(output.stderr.matches("[W0417]").count(), 6, "{}", output.stderr);
    assert_eq!(output.stderr.matches("[W0415]").count(), 2, "{}", output.stderr);
    for word in ["`made`", "`dumped`", "`x`", "`m`", "lib.f"] {
        assert!(output.stderr.contains(word), "no {word}\n{}", output.stderr);
    }
    assert_eq!(output.left(), ["w"], "`check` creates nothing");
}

/// Options that name outputs, each refused before anything is made.
#[test]
fn outputs_are_checked_before_anything_is_created() {
    let lay = |dir: &Path| {
        fs::create_dir(dir.join("folder")).unwrap();
        fs::hard_link(dir.join("s.wml"), dir.join("hard")).unwrap();
        symlink("s.wml", dir.join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
    };
    for (args, code) in [
        (["--json", "s.wml"], 3),
        (["--json", "hard"], 3),
        (["--json", "link"], 3),
        (["--json", "folder"], 3),
        (["--json", "absent/x"], 3),
        (["--json", "pipe"], 3),
        (["--json", "/proc/self/exe"], 3),
        (["--json", "/dev/fd/77"], 3),
        (["--trace", "s.wml:5"], 3),
        (["--trace", "hard:5"], 3),
        (["--trace", "link:5"], 3),
        (["--trace", "folder:5"], 3),
        (["--trace", "absent/x:5"], 3),
        (["--trace", "pipe:5"], 3),
        (["--results", "s.wml"], 3),
        (["--results", "absent/x"], 3),
        (["--results", "pipe"], 3),
    ] {
        let call = Wml::new().file("s.wml", &DEFINED.replace("$dir", "files"));
        fs::create_dir(call.dir().join("files")).unwrap();
        lay(call.dir());
        let before = tree(call.dir());
        let output = call.args(["s.wml", "--runtime", "0.2"]).args(args).run();
        assert_eq!(output.code(), code, "{args:?}\n{}", output.shown());
        assert_eq!(before, tree(output.dir()), "{args:?}\n{}", output.shown());
    }
    let output = shell(&format!("{RUN} --json x --trace x:5")).run().exits(2);
    assert_eq!(output.left(), ["s.wml"]);
    shell(&format!("{RUN} --json - --trace -:5")).run().exits(2);
}

#[test]
fn a_loaded_script_cannot_be_an_output() {
    let call = Wml::new().file("lib.f", DEFINED).file("s.f", "load lib\nrun 0.1\n");
    let output = call.args(["s.f", "--engine", "null", "--json", "lib.f", "--force"]).run().exits(2);
    assert_eq!(text(&output.dir().join("lib.f")), DEFINED);
}

#[test]
fn json_goes_to_standard_output_pipes_and_substitutions() {
    let document = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")) };
    for path in ["-", "/dev/stdout", "/dev/fd/1"] {
        let output = shell(&format!("{RUN} --json {path}")).run().exits(0);
        assert_eq!(document(&output.stdout)["runs"].as_array().unwrap().len(), 1, "{path}");
        assert!(output.stderr.contains("look"), "the report goes to standard error\n{}", output.stderr);
        let output = shell(&format!("{RUN} --json {path} --format json")).run().exits(0);
        document(&output.stdout);
    }
    let output = shell(&format!("{RUN} --json - > out; {RUN} --json >(cat > sub) > /dev/null; sleep 0.2; wait")).run();
    document(&text(&output.exits(0).dir().join("out")));
    // The shell does not wait for what it substituted: the pipe tells.
    let output = shell(&format!("{RUN} --json >(cat) --format none | cat")).run().exits(0);
    document(&output.stdout);
    let output = shell(&format!("{RUN} --format none --trace >(cat):3 | cat")).run().exits(0);
    assert_eq!(output.stdout.lines().count(), 3, "{}", output.stdout);
    let output = shell(&format!("mkfifo p; cat p > got & {RUN} --json p; code=$?; wait; exit $code")).run().exits(0);
    document(&text(&output.dir().join("got")));
    shell(&format!("{RUN} --json /dev/null --trace /dev/null:5")).run().exits(0);
    let output = shell(&format!("{RUN} --json three 3> three; {RUN} --json /dev/fd/3 3> four")).run().exits(0);
    document(&text(&output.dir().join("four")));
}

#[test]
fn a_closed_pipe_does_not_lose_the_measurement() {
    for option in ["--json p", "--trace p:1000"] {
        // The reader opens the pipe and ends: the program starts with a reader and ends without one.
        let run = RUN.replace("0.1", "1.5");
        let line = format!("mkfifo p; (exec 9< p; sleep 0.5) & {run} {option} --json j");
        let line = if option.contains("json") { line.replace(" --json j", "") } else { line };
        let output = shell(&line).run().exits(0);
        assert!(output.stdout.contains("look"), "{option}\n{}", output.shown());
        assert!(output.stderr.contains("was not read to its end"), "{option}\n{}", output.shown());
        assert_eq!(output.dir().join("j").exists(), option.contains("trace"));
    }
}

/// A script whose result is larger than `ROOM`.
fn large() -> String {
    let flowops: String = (0..200).map(|n| format!("flowop statfile name=look{n},filesetname=s\n")).collect();
    format!(
        "{}define process name=p {{ thread name=t {{\n{flowops}}} }}\n",
        DEFINED.lines().next().unwrap().to_owned() + "\n"
    )
}

#[test]
fn a_result_without_disk_space_is_reported_and_stored_elsewhere() {
    let limited = |size: &str| vec!["prlimit".to_owned(), format!("--fsize={size}"), "--".to_owned()];
    let args = ["s.wml", "--engine", "null", "--runtime", "0.2"];
    for option in [["--json", "j"], ["--trace", "j:100000"]] {
        let call = Wml::new().file("s.wml", &large()).under(limited("70000")).args(args).args(option);
        let output = call.run().exits(1);
        assert!(output.stdout.contains("look7"), "the measurement is shown\n{}", output.shown());
        assert!(output.stderr.contains("can't write"), "{}", output.shown());
        assert_eq!(output.left(), ["s.wml"], "nothing is left half-written");
        // Too small from the start.
        let call = Wml::new().file("s.wml", &large()).under(limited("1000")).args(args).args(option);
        call.run().exits(3);
    }
    needs!(available(&[Fs::Tmpfs]));
    let mount = Mount::new(Fs::Tmpfs, 128 << 10);
    let json = mount.dir().join("j");
    let output = Wml::new().file("s.wml", &large()).args(args).args(["--json"]).args([&json]).run().exits(1);
    assert!(output.stderr.contains("No space left on device"), "{}", output.shown());
    let kept: Value = serde_json::from_str(&text(&output.dir().join("j"))).unwrap();
    assert_eq!(kept["runs"].as_array().unwrap().len(), 1);
    assert!(output.stderr.contains(&format!("it is in {}", output.dir().join("j").display())), "{}", output.stderr);
    assert_eq!(fs::read_dir(mount.dir()).unwrap().count(), 0);
    // Full from the start: exit 3, and nothing was run.
    fs::write(mount.dir().join("fill"), vec![1; 100 << 10]).unwrap();
    let output = Wml::new().file("s.wml", &large()).args(args).args(["--json"]).args([&json]).run().exits(3);
    assert!(output.stdout.is_empty() && output.stderr.contains("No space left"), "{}", output.shown());
}

#[test]
fn fmt_never_leaves_a_partial_script() {
    const ODD: &str = "set   $a=1\nset   $b=$a\n";
    let fmt = || Wml::new().file("s.wml", ODD).args(["fmt", "-w"]);
    let output = fmt().args(["s.wml"]).run().exits(0);
    assert_eq!(text(&output.dir().join("s.wml")), "set $a=1\nset $b=$a\n");
    // Not UTF-8.
    let call = fmt().args(["latin.wml"]);
    fs::write(call.dir().join("latin.wml"), b"# caf\xe9\nset   $a=1\n").unwrap();
    let output = call.run().exits(2);
    assert_eq!(fs::read(output.dir().join("latin.wml")).unwrap(), b"# caf\xe9\nset   $a=1\n");
    assert!(output.stderr.contains("is not UTF-8"), "{}", output.stderr);
    // Standard input, and what is shipped, are no files.
    let output = fmt().args(["-"]).run().exits(2);
    assert_eq!(output.left(), ["s.wml"]);
    let output = fmt().args(["varmail"]).run();
    assert!(output.left() == ["s.wml"] && output.code() == 2, "{}", output.shown());
    // Behind a link, with its mode.
    let call = fmt().args(["link"]);
    symlink("s.wml", call.dir().join("link")).unwrap();
    fs::set_permissions(call.dir().join("s.wml"), fs::Permissions::from_mode(0o640)).unwrap();
    let output = call.run().exits(0);
    let meta = fs::metadata(output.dir().join("s.wml")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(output.dir().join("link")).unwrap().is_symlink());
    assert!(text(&output.dir().join("s.wml")).starts_with("set $a"));
    // No room.
    let long = ODD.repeat(1000);
    let call = Wml::new().file("s.wml", &long).under(["prlimit", "--fsize=100", "--"]).args(["fmt", "-w", "s.wml"]);
    let output = call.run().exits(1);
    assert!(text(&output.dir().join("s.wml")) == long && output.left() == ["s.wml"], "{}", output.shown());
    if available(&[Fs::Tmpfs]) {
        let mount = Mount::new(Fs::Tmpfs, 64 << 10);
        fs::write(mount.dir().join("s.wml"), &long).unwrap();
        let _ = fs::write(mount.dir().join("fill"), vec![1; 64 << 10]);
        Wml::new().args(["fmt", "-w"]).args([mount.dir().join("s.wml")]).run().exits(1);
        assert_eq!(text(&mount.dir().join("s.wml")), long);
        assert_eq!(fs::read_dir(mount.dir()).unwrap().count(), 2);
    }
}

/// A script that writes no file runs in any directory.
#[test]
fn the_current_directory_need_not_be_writable() {
    let set = "define fileset name=data,path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n";
    let process = "define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    needs!(available(&[Fs::Tmpfs]));
    let mount = Mount::new(Fs::Tmpfs, 64 << 10);
    tool("mount", &["-o", "remount,ro", mount.dir().to_str().unwrap()]);
    let run = |text: &str| {
        let call = Wml::new().file("x.wml", &format!("{set}{process}{text}")).folder("d");
        let (script, dir) = (call.dir().join("x.wml"), call.dir().join("d"));
        let change = format!("cd {} && exec \"$0\" \"$@\"", mount.dir().display());
        let call = call.under(["sh", "-c", &change]).args([script]).args(["--dir"]).args([dir]);
        call.args(["--runtime", "0.1", "--no-quiesce"]).run()
    };
    run("").exits(0);
    let output = run("create files\ncreate processes\nstats dump \"out\"\nshutdown processes\n").exits(3);
    assert!(output.stderr.contains("can't write the results directory"), "{}", output.stderr);
}

#[test]
fn an_output_in_the_tree_of_a_file_set_is_refused() {
    let script = "define fileset name=data,path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    for option in ["--json", "--trace", "--append", "--live"] {
        let call = Wml::new().file("x.wml", script).folder("d").args(["x.wml", "--dir", "d", "--runtime", "0.1"]);
        call.args(["--no-quiesce"]).run().exits(0);
        let call = Wml::new().file("x.wml", script).folder("d/data").args(["x.wml", "--dir", "d", "--runtime", "0.1"]);
        let path = match option {
            "--trace" => "d/data/out:5",
            "--live" => "jsonl:d/data/out",
            _ => "d/data/out",
        };
        let output = call.args([option, path]).run().exits(3);
        assert!(output.stderr.contains("which is in the tree of the file set `data`"), "{}", output.stderr);
        assert!(!output.dir().join("d/data/out").exists(), "{option}");
    }
    // Other names of the same directory.
    for path in ["d/../d/data/out", "link/out", "link/dangling"] {
        let call = Wml::new().file("x.wml", script).folder("d/data").args(["x.wml", "--dir", "d", "--runtime", "0.1"]);
        symlink("d/data", call.dir().join("link")).unwrap();
        symlink("out", call.dir().join("d/data/dangling")).unwrap();
        let output = call.args(["--json", path]).run().exits(3);
        assert!(output.stderr.contains("which is in the tree of the file set `data`"), "{path}: {}", output.stderr);
        assert!(!output.dir().join("d/data/out").exists(), "{path}");
    }
    // An empty file of the user is not removed.
    let call = Wml::new().file("x.wml", script).folder("d/data").file("d/data/notes", "");
    let output = call.args(["x.wml", "--dir", "d", "--json", "d/data/notes"]).run().exits(3);
    assert!(output.stderr.contains("which is in the tree of the file set `data`"), "{}", output.stderr);
    assert!(output.dir().join("d/data/notes").exists());
}

#[test]
fn a_file_of_a_script_in_the_tree_of_a_file_set_is_refused() {
    let script = "define fileset name=data,path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n";
    let call = |more: &str| {
        let call = Wml::new().file("x.wml", &format!("{script}{more}")).folder("d");
        call.args(["x.wml", "--dir", "d", "--no-quiesce"])
    };
    // The tree does not exist yet, and the directory of the script's files would be in its place.
    let output = call("stats directory \"d/data/sub\"\nrun 0.1\n").run().exits(3);
    let said = "which is in the tree of the file set `data`";
    assert!(output.stderr.contains("`stats directory` names ") && output.stderr.contains(said), "{}", output.shown());
    assert!(!output.dir().join("d/data").exists(), "{}", output.shown());
    let output = call("run 0.1\n").folder("d/data").args(["--results", "d/data"]).run().exits(3);
    assert!(output.stderr.contains("`--results` names ") && output.stderr.contains(said), "{}", output.shown());
    // After a run: the measurements go on, and the tree is not refused.
    for (more, code) in [("stats dump \"d/data/out\"", 1), ("stats directory \"d/data/out\"", 3)] {
        let output = call(&format!("run 0.1\n{more}\nrun 0.1\n")).result().run().exits(code);
        assert!(output.stderr.contains(said), "{more}: {}", output.shown());
        assert!(!output.dir().join("d/data/out").exists(), "{more}: {}", output.shown());
        let runs = output.result()["runs"].as_array().map_or(0, Vec::len);
        assert_eq!(runs, if code == 1 { 2 } else { 1 }, "{more}: {}", output.shown());
    }
    // Beside the tree.
    call("run 0.1\nstats dump \"d/out\"\nrun 0.1\n").run().exits(0);
}

/// A mount of a directory at another one, taken away again however the test ends.
struct BoundDir(PathBuf);

impl BoundDir {
    fn new(from: &Path, to: &Path) -> Self {
        tool("mount", &["--bind", from.to_str().unwrap(), to.to_str().unwrap()]);
        Self(to.to_owned())
    }
}

impl Drop for BoundDir {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn an_output_in_another_mount_of_a_tree_is_refused() {
    needs!(available(&[]));
    // A directory in a mount of the tree, the tree in a mount of its parent, and a mount of a directory in the tree.
    for (from, path) in [("d/data", "m/out"), ("d", "m/data/out"), ("d/data/sub", "m/out")] {
        let script = DEFINED.replace("name=s,", "name=data,").replace("=s }", "=data }");
        let call = Wml::new().file("x.wml", &script).folder("d/data/sub").folder("m");
        let bound = BoundDir::new(&call.dir().join(from), &call.dir().join("m"));
        let output = call.args(["x.wml", "--dir", "d", "--runtime", "0.1", "--json", path]).run();
        // Before the directory of the test is removed.
        drop(bound);
        let output = output.exits(3);
        assert!(output.stderr.contains("which is in the tree of the file set `data`"), "{from}: {}", output.stderr);
    }
}

#[test]
fn a_file_that_appears_during_the_run_is_kept() {
    let script = "define fileset name=data,path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=data } }\n\
        create files\nsystem \"echo precious > out.json\"\nrun 0.1\n";
    let call = Wml::new().file("x.wml", script).args(["x.wml", "--allow-system", "--engine", "null"]);
    let output = call.args(["--json", "out.json"]).run().exits(1);
    assert!(output.stderr.contains("out.json.1"), "{}", output.stderr);
    assert_eq!(text(&output.dir().join("out.json")), "precious\n");
    assert!(text(&output.dir().join("out.json.1")).contains("wmlrun.result/"), "{}", output.stderr);
}

#[test]
fn a_trace_is_limited_to_the_available_memory() {
    let script = "define fileset name=s,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=100\n\
                  define process name=p { thread name=t { flowop statfile name=look,filesetname=s\nflowop finishoncount name=f,value=50000 } }\n";
    let call = Wml::new().file("s.wml", script).args(["s.wml", "--engine", "null", "--runtime", "20"]);
    let output = call.args(["--trace", "ops:4000000000000"]).run().exits(0);
    assert!(text(&output.dir().join("ops")).lines().count() >= 25_000);
    assert!(output.stderr.contains("memory does not suffice for 4,000,000,000,000"), "{}", output.stderr);
}

#[test]
fn print_in_a_tight_loop_is_dropped_and_counted() {
    let script = "define process name=p { thread name=t { flowop print name=x,value=\"hello\" } }\n";
    let output = Wml::new().file("s.wml", script).args(["s.wml", "--engine", "null", "--runtime", "0.2"]).run();
    let shown = output.stderr.matches("message from instance").count();
    assert!((1..20_000).contains(&shown), "{shown} lines");
    assert!(output.stderr.contains("lines of `print` were dropped"), "{shown} lines");
}

#[test]
fn fsflush_evicts_the_file_sets_only() {
    let script = DEFINED.to_owned() + "create files\nfsflush fstype=ext4\nrun 0.1\n";
    let output = Wml::new().file("s.f", &script).args(["s.f", "--no-quiesce"]).run().exits(0);
    assert!(output.stderr.contains("--allow-drop-caches"), "{}", output.stderr);
}

/// A session of the shell, its input by a pipe.
fn session(line: &str, input: &str) -> Wml {
    Wml::new().file("input", input).under(["bash", "-c", &format!("\"$0\" repl --engine null {line} < input")])
}

#[test]
fn save_writes_a_script_that_checks() {
    let input = format!(
        "set $x=$y\nset $x=$x\nset $n=7\nset $m=$n\n{DEFINED}define fileset name=bad,path=$dir,entries=-3\n\
         define fileset name=worse,path=$dir,size=$nope,entries=3,dirwidth=3\nrun 0.1\nsave out.wml\nquit\n"
    );
    let output = session("", &input).run();
    let saved = output.dir().join("out.wml");
    let script = text(&saved);
    assert!(script.contains("set $n=7") && script.contains("name=look"), "{script}");
    for refused in ["$y", "$x", "bad", "worse", "$nope"] {
        assert!(!script.contains(refused), "{refused} in\n{script}");
    }
    assert!(output.stderr.contains("omitted, since it is invalid"), "{}", output.stderr);
    Wml::new().args(["check"]).args([&saved]).run().exits(0);
    Wml::new().args(["plan"]).args([&saved]).run().exits(0);
}

#[test]
fn save_accepts_plain_names_and_replaces_only_its_own_files() {
    let good = format!("{DEFINED}run 0.1\n");
    let save = |names: &[&str], lay: &dyn Fn(&Path)| {
        let saves: String = names.iter().map(|name| format!("save {name}\n")).collect();
        let call = session("", &format!("{good}{saves}quit\n"));
        lay(call.dir());
        call.run()
    };
    let output = save(&["a{b", "a\"b", "a b", "$a", "\"{x} y.wml\""], &|_| {});
    assert_eq!(output.left(), ["input", "{x} y.json", "{x} y.wml"], "{}", output.shown());
    // Ours is replaced; the results beside it are, too, only if they are ours.
    let output = save(&["x.wml", "x.wml"], &|_| {});
    assert_eq!((output.code(), output.left()), (0, ["input", "x.json", "x.wml"].map(str::to_owned).to_vec()));
    let output = save(&["x.wml"], &|dir| {
        fs::write(dir.join("x.wml"), "# Saved by wmlrun.\n").unwrap();
        fs::write(dir.join("x.json"), "mine").unwrap();
    });
    assert_eq!(text(&output.dir().join("x.json")), "mine", "{}", output.shown());
    let output = save(&["x.wml"], &|dir| {
        fs::write(dir.join("mine"), "mine").unwrap();
        symlink("mine", dir.join("x.wml")).unwrap();
    });
    assert_eq!(text(&output.dir().join("mine")), "mine");
    let output = save(&["p"], &|dir| {
        crate::cmd::tool("mkfifo", &[dir.join("p").to_str().unwrap()]);
    });
    assert!(output.stderr.contains("was not written by `save`"), "{}", output.stderr);
}

fn batch(profile: &str, args: &[&str]) -> Output {
    Wml::new().file("p.prof", profile).args(["batch", "p.prof", "--engine", "null"]).args(args.to_vec()).run()
}

#[test]
fn errors_of_a_profile_are_reported_before_its_directory_is_created() {
    for line in ["nfiles = abc;", "nfiles = -5;", "meandirwidth = \"a b\";"] {
        let profile = format!(
            "DEFAULTS {{\n runtime = 1;\n}}\nCONFIG good {{\n personality = varmail;\n}}\n\
             CONFIG bad {{\n personality = varmail;\n {line}\n}}\n"
        );
        let output = batch(&profile, &[]).exits(2);
        assert_eq!(output.left(), ["p.prof"], "{line}\n{}", output.shown());
    }
}

/// A profile makes one run of each personality, whatever the personality does when it is run by itself.
#[test]
fn a_personality_with_several_runs_has_a_warning() {
    let profile = "CONFIG one {\n personality = own;\n}\n";
    let set = "define fileset name=f,path=$dir,entries=1,dirwidth=1,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\nset $n=1\ndebug 1\n";
    let several = "the script makes several runs, and a profile makes one";
    let own_run = "the personality makes a run of its own, before that of the profile";
    for (runs, warning) in [
        ("run 5", ""),
        ("foreach $n in 1,2 { run 5 }", several),
        ("run 5\npsrun -1 5", several),
        ("create processes\nstats clear\nsleep 1\nstats snap", own_run),
    ] {
        let own = Wml::new().file("p.prof", profile).file("own.f", &format!("{set}{runs}\n"));
        let output = own.args(["batch", "p.prof", "--engine", "null", "--runtime", "0.1", "--quiet"]).run().exits(0);
        for text in [several, own_run] {
            assert_eq!(output.stderr.contains(text), text == warning, "{runs}: {}", output.stderr);
        }
        // Each warning of a script is shown once.
        assert_eq!(output.stderr.matches("warning[W0402]: `debug`").count(), 1, "{}", output.stderr);
    }
}

#[test]
fn a_profile_writes_below_the_results_directory_only() {
    let other = tempfile::tempdir().unwrap();
    let path = other.path().display().to_string();
    let profile = format!(
        "DEFAULTS {{\n runtime = 1;\n stats = {path};\n}}\nCONFIG one {{\n personality = varmail;\n nfiles = 50;\n}}\n"
    );
    let output = batch(&profile, &["--results", "r", "--runtime", "0.2"]).exits(0);
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0, "{}", output.shown());
    let below = output.dir().join("r").join(path.trim_start_matches('/'));
    let home = fs::read_dir(&below).unwrap().next().unwrap().unwrap().path();
    assert!(is_dump_of(&home.join("one/stats.one.out")) && home.join("index.html").is_file());
    assert!(output.stderr.contains("outside the results directory"), "{}", output.stderr);
    batch(&profile, &["--allow-write", &path, "--runtime", "0.2"]).exits(0);
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
}

fn is_dump_of(path: &Path) -> bool {
    text(path).starts_with("Flowop totals:\n")
}

#[test]
fn a_file_that_is_not_a_profile_is_refused() {
    for path in ["/dev/urandom", "/dev/zero", "/proc/self/exe", "/tmp"] {
        let call = Wml::new().args(["batch", path]).timeout(std::time::Duration::from_secs(20));
        let output = call.run().exits(2);
        assert!(output.stderr.contains(path) && output.left().is_empty(), "{}", output.shown());
    }
    let call = Wml::new().args(["batch", "big.prof"]);
    fs::File::create(call.dir().join("big.prof")).unwrap().set_len((64 << 20) + 1).unwrap();
    assert!(call.run().exits(2).stderr.contains("more than 64 MiB"));
}

/// As the kernel has it with `fs.protected_symlinks`: elsewhere a user's own link is followed.
#[test]
fn a_link_of_another_user_in_a_shared_directory_is_not_followed() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root gives links away");
    }
    for (owner, mode, code) in [(65534, 0o1777, 3), (0, 0o1777, 0), (65534, 0o755, 0)] {
        for option in [["--json", "shared/out"], ["--trace", "shared/out:5"]] {
            let call = Wml::new().file("s.wml", DEFINED).file("precious", "mine").folder("shared");
            let shared = call.dir().join("shared");
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            symlink("../precious", shared.join("out")).unwrap();
            std::os::unix::fs::lchown(shared.join("out"), Some(owner), None).unwrap();
            let call = call.args(["s.wml", "--engine", "null", "--runtime", "0.1"]).args(option);
            let output = call.args(["--force"]).run().exits(code);
            assert_eq!(text(&output.dir().join("precious")) == "mine", code == 3, "{option:?}\n{}", output.shown());
        }
    }
}

#[test]
fn a_pipe_cannot_be_loaded_as_a_script() {
    for stage in [&["check"][..], &["plan"], &[]] {
        let call = Wml::new().file("s.wml", "load \"./pipe\"\nrun 1\n");
        tool("mkfifo", &[call.dir().join("pipe").to_str().unwrap()]);
        let output = call.args(stage).args(["s.wml"]).timeout(Duration::from_secs(30)).run().exits(2);
        assert!(output.stderr.contains("it is not a file"), "{}", output.shown());
    }
}

#[test]
fn manual_pages_replace_only_manual_pages() {
    let call = || Wml::new().file("precious", "mine").folder("man").args(["man", "man"]);
    for is_link in [true, false] {
        let call = call();
        let page = call.dir().join("man/wmlrun-run.1");
        match is_link {
            true => symlink("../precious", &page).unwrap(),
            false => fs::write(&page, "mine").unwrap(),
        }
        let output = call.run().exits(3);
        assert!(output.stderr.contains("man/wmlrun-run.1: it exists, and has other content"), "{}", output.shown());
        assert_eq!((text(&page), text(&output.dir().join("precious"))), ("mine".to_owned(), "mine".to_owned()));
        assert_eq!(fs::read_dir(output.dir().join("man")).unwrap().count(), 1, "{}", output.shown());
    }
    // Those of an earlier version are replaced.
    let call = call();
    let page = call.dir().join("man/wmlrun-run.1");
    fs::write(&page, ".TH wmlrun-run 1 \"\" \"wmlrun 0.0.1\" \"User Commands\"\n").unwrap();
    let output = call.run().exits(0);
    assert!(!text(&page).contains("0.0.1"), "{}", output.shown());
}
