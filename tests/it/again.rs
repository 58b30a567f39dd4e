//! Tests repeated runs in one session: what happens to file sets, mounts and results of commands between runs.
//!
//! Not here: foreign trees (`ownership`, `safety`), and the structure of a new tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cmd::{Output, Wml, count, flowops, has, long, memory, number, scratch, short_or_long, tool};
use crate::mounts::{self, Fs, Mount};
use crate::repl::says;
use crate::scripts::{Script, for_each, personality, shipped_or_fifth, side_by_side};
use crate::strace;
use crate::undisturbed::undisturbed;

/// Runs of each personality in a session.
const RUNS: usize = 3;

fn runs(document: &Value) -> Vec<Value> {
    document["runs"].as_array().unwrap().clone()
}

/// A script in a directory of its own, with `$dir` below it.
fn script(text: &str) -> Wml {
    Wml::below(&memory()).file("x.wml", text).folder("d").args(["x.wml", "--no-quiesce", "--dir", "d"]).result()
}

/// Values that keep a script small, and its results independent of chance.
fn small(script: &Script) -> Vec<(&str, &str)> {
    let mut values = [script.small(), script.few_threads(), script.buffered()].concat();
    if script.name == "specsfs97" {
        values.retain(|(name, _)| *name != "nfiles");
        values.push(("nfiles", "8000"));
    }
    values
}

#[test]
fn every_personality_runs_twice_in_one_session() {
    for_each(&shipped_or_fifth(), if long() { 1 } else { side_by_side() }, |script| {
        let time = short_or_long("0.1", "2");
        let text = format!("load \"{}\"\nrun {time}\nrun {time}\nrun {time}\n", script.call);
        let call = Wml::below(&memory()).file("again.wml", &text).args(["again.wml", "--no-quiesce"]);
        let output = call.sets(&small(script)).result().timeout(Duration::from_mins(2)).run().exits(0);
        // A script that measures by commands of its own does so when it is loaded.
        let mut runs = runs(&output.result());
        runs.drain(..usize::from(script.text.contains("stats snap")));
        assert_eq!(runs.len(), RUNS);
        for (n, run) in runs.iter().enumerate() {
            assert_eq!(run["state"], "complete", "run {}: {}", n + 1, run["ended_by"]);
            assert!(number(run, &["summary", "ops"]) > 0.0, "run {} did nothing\n{}", n + 1, output.shown());
        }
        if !long() {
            return;
        }
        // With two seconds each flowop has its turn.
        for (n, run) in runs.iter().enumerate() {
            for f in flowops(run).iter().filter(|f| f["class"] == "io" || f["class"] == "aio") {
                assert!(count(f, "ops") > 0, "run {}: {} did nothing", n + 1, f["name"]);
            }
            // A run that time does not end has its own number of operations.
            if run["ended_by"] != "time" {
                let ratio = number(run, &["summary", "ops"]) / number(&runs[0], &["summary", "ops"]);
                assert!((0.5..=2.0).contains(&ratio), "run {}: {ratio:.2} of the first", n + 1);
            }
        }
        assert_eq!(output.left(), ["again.wml"], "left behind");
    });
}

#[test]
fn foreach_over_a_personality_measures_each_value() {
    for (name, variable, values) in [
        ("specsfs97", "load", "500,1000,2000"),
        ("touch_files", "nprocesses", "1,2,4"),
        ("untar", "nprocesses", "1,2,4"),
    ] {
        let personality = personality(name);
        let mut sets = small(&personality);
        sets.retain(|(name, _)| *name != variable);
        let text = format!("load {name}\nforeach ${variable} in {values} {{ run 0.2 }}\n");
        let call = Wml::below(&memory()).file("x.wml", &text).args(["x.wml", "--no-quiesce"]).sets(&sets);
        let output = call.result().run().exits(0);
        let runs = runs(&output.result());
        assert_eq!(runs.len(), 3, "{name}");
        for run in runs {
            assert!(
                run["state"] == "complete" && number(&run, &["summary", "ops"]) > 0.0,
                "{name}\n{}",
                output.shown()
            );
        }
    }
}

/// Ten files are removed in each run.
const REMOVE: &str = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=4k,entries=50,dirwidth=10,prealloc=100\n\
    define process name=p { thread name=t { flowop deletefile name=del,filesetname=data\n\
    flowop finishoncount name=f,value=10,target=del } }\n";

#[test]
fn a_set_is_repaired_in_place_or_not_changed() {
    let output = script(&format!("{REMOVE}run 5\nrun 5\nrun 5 as-is\nrun as-is\nrun 5\n")).run().exits(0);
    let runs = runs(&output.result());
    let files = |n: usize| count(&runs[n]["filesets"][0], "files");
    let made = |n: usize| count(&runs[n]["filesets"][0]["repaired"], "made");
    assert_eq!((0..5).map(files).collect::<Vec<_>>(), [50, 50, 40, 30, 50]);
    assert_eq!((1..5).map(made).collect::<Vec<_>>(), [10, 0, 0, 30]);
    assert_eq!(runs[0]["filesets"][0]["repaired"], Value::Null);
    assert_eq!(runs.iter().map(|r| r["as_is"] == true).collect::<Vec<_>>(), [false, false, true, true, false]);
    let lines: Vec<_> = output.stderr.lines().filter_map(|line| line.strip_prefix("note: file sets: ")).collect();
    assert_eq!(lines.len(), 4, "{}", output.stderr);
    assert!(lines[0].starts_with("10 files created in ") && lines[3].starts_with("30 files created in "), "{lines:?}");
    assert_eq!(lines[1], "left as they are, with 40 files");
    // A program that starts goes on from what another one left, if it is to.
    let dir = output.dir().join("d");
    let again = |args: &[&str]| {
        let call = Wml::below(&memory()).file("x.wml", &format!("{REMOVE}run 5\n")).args(["x.wml", "--no-quiesce"]);
        let output = call.args(["--dir", dir.to_str().unwrap()]).args(args).result().run().exits(0);
        count(&output.only_run()["filesets"][0], "files")
    };
    assert_eq!((again(&["--as-is"]), again(&["--as-is"]), again(&[])), (40, 30, 50));
}

#[test]
fn changed_and_removed_files_are_repaired_with_the_same_inodes() {
    let text = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=8k,entries=30,dirwidth=10,prealloc=100\n\
        define fileset name=leafs,path=$dir,leafdirs=20,entries=0,dirwidth=5,prealloc=100\n\
        define process name=p { thread name=t { flowop appendfile name=ap,filesetname=data,iosize=4k,iters=10\n\
        flowop truncate name=tr,filesetname=data,value=100\nflowop removedir name=rd,filesetname=leafs\n\
        flowop finishoncount name=f,value=5,target=rd } }\n";
    let list = |n: u32| format!("system \"find d/data -type f -name '0*' -printf '%p %i\\n' | sort > {n}\"\n");
    let text = format!("{text}create files\n{}run 5\nrun 5\n{}", list(1), list(2));
    let output = script(&text).args(["--allow-system"]).run().exits(0);
    let runs = runs(&output.result());
    let repaired = |set: usize| &runs[1]["filesets"][set]["repaired"];
    assert_eq!(count(repaired(1), "directories_made"), 5, "{}", output.shown());
    assert!(count(repaired(0), "resized") > 0 && count(repaired(0), "made") == 0, "{}", repaired(0));
    let listed = |n: u32| fs::read_to_string(output.dir().join(n.to_string())).unwrap();
    assert_eq!(listed(1).lines().count(), 30);
    assert_eq!(listed(1), listed(2));
}

#[test]
fn sets_that_no_step_can_change_are_not_scanned_again() {
    let text = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=4k,entries=50,dirwidth=10,prealloc=100\n\
        define process name=p { thread name=t { flowop readwholefile name=rd,filesetname=data,iosize=4k } }\n";
    let output = script(&format!("{text}run 0.2\nrun 0.2\nsystem \"rm d/data/00000001/00000003\"\nrun 0.2\n"));
    let output = output.args(["--allow-system"]).run().exits(0);
    let runs = runs(&output.result());
    let set = |n: usize| &runs[n]["filesets"][0];
    assert!(set(0)["populate_seconds"].is_number() && set(1)["populate_seconds"].is_null(), "{}", set(1));
    // A command may have done anything.
    assert_eq!(count(&set(2)["repaired"], "made"), 1);
    assert_eq!(output.stderr.matches("file sets: ").count(), 1, "{}", output.stderr);
}

#[test]
fn another_user_of_a_tree_between_two_runs_is_detected() {
    let reads = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=4k,entries=50,dirwidth=10,prealloc=100,reuse\n\
        define process name=p { thread name=t { flowop statfile name=st,filesetname=data } }\n";
    let output = script(&format!("{}run 5\n", REMOVE.replace("prealloc=100", "prealloc=100,reuse"))).run().exits(0);
    let dir = output.dir().join("d");
    let other = crate::cmd::binary();
    // The lock is free between the runs: another program may take the set, and leaves 40 of 50 files.
    let command = format!("{} x.wml --no-quiesce --quiet --format none --dir {}", other.display(), dir.display());
    let text = format!("{reads}run 0.2\nsystem \"cd {} && {command}\"\nrun 0.2\n", output.dir().display());
    let second = Wml::below(&memory()).file("y.wml", &text).args(["y.wml", "--no-quiesce", "--allow-system", "--dir"]);
    let second = second.args([dir]).result().run().exits(0);
    let runs = runs(&second.result());
    assert_eq!(count(&runs[1]["filesets"][0]["repaired"], "made"), 10, "{}", second.shown());
}

#[test]
fn symbolic_links_of_a_run_do_not_prevent_the_next() {
    let text = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=4k,entries=50,dirwidth=10,prealloc=50\n\
        define process name=p { thread name=t { flowop symlink name=ln,filesetname=data\n\
        flowop finishoncount name=f,value=5,target=ln } }\nrun 5\nrun 5\nrun 5 as-is\nrun 5\n";
    let output = script(text).run().exits(0);
    for run in runs(&output.result()) {
        assert_eq!(count(&flowops(&run)[0], "ops"), 5, "{}", output.shown());
    }
}

#[test]
fn a_run_without_any_operation_fails() {
    let text = "# dialect: fsl\ndefine fileset name=data,path=$dir,size=4k,entries=50,dirwidth=10\n\
        define process name=p { thread name=t { flowop statfile name=st,filesetname=data } }\nrun 1\n";
    let output = script(text).run().exits(1);
    assert_eq!(output.only_run()["state"], "nothing_done");
    assert!(output.stderr.contains("error: no operation was completed"), "{}", output.stderr);
    // Who asks for nothing gets it.
    script(&text.replace("filesetname=data }", "filesetname=data,iters=0 }")).run().exits(0);
}

#[test]
fn a_failed_command_ends_the_script_and_its_output_is_shown() {
    let text = |command: &str| format!("system \"{command}\"\nsystem \"echo went on\"\nquit\n");
    for options in [&["--allow-system"][..], &["--allow-system", "--quiet"]] {
        let call = |command: &str| Wml::new().file("x.f", &text(command)).args(["x.f"]).args(options).run();
        let output = call("echo broken >&2; exit 7").exits(1);
        for words in ["broken", "ended with exit status: 7"] {
            assert!(output.stderr.contains(words), "{words}\n{}", output.shown());
        }
        assert!(!output.stdout.contains("went on"), "{}", output.shown());
        let output = call("kill -9 \\$\\$").exits(1);
        assert!(output.stderr.contains("signal: 9"), "{}", output.shown());
        assert!(call("false || true").exits(0).stdout.contains("went on"));
    }
}

/// In a script `#` begins a comment, and `2024-11` is a difference.
#[test]
fn a_directory_is_a_name_whatever_a_script_would_read_in_it() {
    const LOOK: &str = "define fileset name=data,path=$dir,entries=2,dirwidth=5,size=4k,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop statfile name=s,filesetname=data\n\
          flowop finishoncount name=f,value=5,target=s\n\
        } }\nset mode quit firstdone\nrun 5\n";
    for name in ["a#b", "#c", "2024-11", "10k", "01"] {
        let call = Wml::below(&memory()).file("x.wml", LOOK).folder(name);
        let output = call.args(["x.wml", "--no-quiesce", "--dir", name]).run().exits(0);
        assert!(output.dir().join(name).join("data").is_dir(), "{name}: {:?}", output.left());
    }
}

/// `$dir` is a text: another directory would be created.
#[test]
fn a_current_directory_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = tempfile::tempdir_in(memory()).unwrap();
    let dir = place.path().join(std::ffi::OsStr::from_bytes(b"d\xe9"));
    std::fs::create_dir(&dir).unwrap();
    let output = crate::cmd::program().args(["varmail", "--runtime", "0.1"]).current_dir(&dir).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && shown.contains("is not UTF-8"), "{}: {shown}", output.status);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "another directory was created");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_missing_directory_is_created_only_with_mkdir() {
    let text = format!("{REMOVE}run 5\n");
    let call = |dir: &str| {
        Wml::below(&memory()).file("x.wml", &text).folder("mnt").args(["x.wml", "--no-quiesce", "--dir", dir])
    };
    let output = call("mtn").run().exits(3);
    assert!(output.stderr.contains("`mtn` of `--dir` does not exist"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `mnt`?") && output.stderr.contains("--mkdir"), "{}", output.stderr);
    assert_eq!(output.left(), ["mnt", "x.wml"]);
    let output = call("far/away").args(["--mkdir"]).run().exits(0);
    assert!(output.stderr.contains("created ") && output.stderr.contains("far/away (`--mkdir`)"), "{}", output.stderr);
    assert!(output.dir().join("far/away/data").is_dir());
    call("x.wml").run().exits(3);
    // The script's own mistakes come first, and without a file system there is no directory.
    let wrong = Wml::new().file("x.wml", "run \"abc\n").args(["x.wml", "--dir", "none"]).run().exits(2);
    assert!(!wrong.stderr.contains("does not exist"), "{}", wrong.stderr);
    call("none").args(["--engine", "null"]).run().exits(0);
    let shell = tempfile::tempdir_in(memory()).unwrap();
    assert_eq!(says(shell.path(), &["--dir", "none"], &text).2, Some(3));
}

/// A `mount` that failed does not make the run measure what is below the mount point.
#[test]
fn a_run_on_another_file_system_than_required_is_refused_before_it_makes_a_file() {
    let text = format!("{REMOVE}run 5\n");
    let run = |option: &str| {
        let call = Wml::below(&memory()).file("x.wml", &text).folder("d");
        call.args(["x.wml", "--no-quiesce", "--dir", "d", option]).run()
    };
    let of = |option: String| run(&option);
    let place = memory();
    let here = wml::os::device::mount_of(&place).unwrap();
    of(format!("--require-fs={}", here.kind)).exits(0);
    of(format!("--require-fs=none,{}", here.kind)).exits(0);
    of(format!("--require-mount={}", here.path.display())).exits(0);
    for (option, part) in [
        ("--require-fs=none".to_owned(), format!("is on {} (mounted at", here.kind)),
        ("--require-mount=/proc".to_owned(), "not at /proc as `--require-mount=/proc` requires".to_owned()),
        ("--require-mount=/there/is/none".to_owned(), "nothing is mounted at /there/is/none, as".to_owned()),
    ] {
        let output = of(option).exits(3);
        assert!(output.stderr.contains(&part), "no {part}\n{}", output.stderr);
        assert!(output.dir().join("d").read_dir().unwrap().next().is_none(), "nothing was created");
    }
    let code = if here.path == std::path::Path::new("/") { 3 } else { 0 };
    of("--require-mount".to_owned()).exits(code);
}

#[test]
fn a_script_is_checked_with_the_values_of_the_command_line() {
    let text = "define fileset name=f,path=$dir,entries=$n,size=4k,prealloc\n\
         define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\n";
    let check = |args: &[&str]| Wml::new().file("x.wml", text).args(["check", "x.wml"]).args(args).run();
    assert!(check(&[]).exits(2).stderr.contains("$n"));
    check(&["--set", "n=10"]).exits(0);
    assert!(check(&["--set", "n=10", "--set", "m=3"]).exits(2).stderr.contains("has no variable `$m`"));
    assert!(check(&["--set", "n=ten"]).exits(2).stderr.contains("ten"));
    // The same is run by its name alone and by the word that other programs have for it.
    let run =
        |args: &[&str]| Wml::new().file("x.wml", text).args(args).args(["--set", "n=10", "--runtime", "0.2"]).run();
    run(&["x.wml"]).exits(0);
    run(&["run", "x.wml"]).exits(0);
}

#[test]
fn a_file_of_the_sun_dialect_exists_and_is_empty_before_it_is_written() {
    needs!(strace::available() && mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, 512 << 20);
    let text = "# dialect: sun\ndefine file name=largefile1,path=$dir\n\
        define process name=filewriter,instances=1 { thread name=filewriterthread,memsize=10m,instances=1 {\n\
        flowop write name=write-file,filename=largefile1,iosize=1m,iters=8,directio\n\
        flowop bwlimit name=limit\n} }\neventgen rate=100\nrun 1\nrun 1\n";
    let call = Wml::below(mount.dir()).file("x.f", text).folder("d").args(["x.f", "--no-quiesce", "--dir", "d"]);
    let (output, log) = strace::run(call.result());
    let output = output.exits(0);
    for run in runs(&output.result()) {
        assert!(number(&run, &["summary", "ops"]) > 0.0, "{}", output.shown());
        assert_eq!((count(&run["filesets"][0], "files"), count(&run["filesets"][0], "bytes")), (1, 0));
    }
    let opened = log.only(|call| call.opens() && call.file().contains("/largefile1/"));
    assert!(
        opened.calls().any(|call| call.args.iter().any(|arg| arg.contains("O_DIRECT|") || arg.ends_with("O_DIRECT")))
    );
}

#[test]
fn agers_work_on_the_files_that_are_measured() {
    let kinds = [Fs::Ext4, Fs::Btrfs];
    needs!(mounts::available(&kinds));
    undisturbed(|| {
        for fs in kinds {
            let mount = Mount::new(fs, 512 << 20);
            let dir = mount.dir().join("bench");
            fs::create_dir(&dir).unwrap();
            let home = tempfile::tempdir_in(scratch()).unwrap();
            let look = |n: u32| {
                format!(
                    "system \"cd {} && find . -type f -name '0*' -printf '%p %i %s\\n' | sort > {}/{n}\"\n",
                    dir.display(),
                    home.path().display()
                )
            };
            let oltp = "load oltp_sync\nset $filesize=4m\nset $logfilesize=2m\nset $nshadows=4\nset $ndbwriters=1\nset $usermode=100\nrun 0.5\n";
            let text = [
                oltp,
                &look(1),
                "clear\nload randomwrite_oltp_ager\nrun 0.5 as-is\n",
                &look(2),
                "clear\n",
                oltp,
                &look(3),
            ]
            .concat();
            let options = ["--allow-system", "--no-quiesce", "--json", "result.json", "--dir", dir.to_str().unwrap()];
            let (_, err, code) = says(home.path(), &options, &text);
            assert_eq!(code, Some(0), "{err}");
            let listed = |n: u32| fs::read_to_string(home.path().join(n.to_string())).unwrap();
            assert_eq!(listed(1).lines().count(), 11, "{err}");
            // The ager's files may be larger by its own definition; those of the first and the third run are the same.
            let files = |n: u32| -> Vec<String> {
                listed(n).lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
            };
            assert!(files(1) == files(2) && listed(1) == listed(3), "{}\n{}\n{}", listed(1), listed(2), listed(3));
            let text = fs::read_to_string(home.path().join("result.json")).unwrap();
            let runs = runs(&serde_json::from_str(&text).unwrap());
            assert_eq!(
                runs.iter().map(|r| r["as_is"].clone()).collect::<Vec<_>>(),
                [json!(false), json!(true), json!(false)]
            );
            assert!(runs.iter().all(|run| number(run, &["summary", "ops"]) > 0.0), "{err}");
        }
    });
}

/// A script that makes and mounts each file system with each option, and measures it.
fn sweep(device: &str, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "# dialect: sun\nset $dir={dir}/bench\n\
         define fileset name=data,path=$dir,size=4k,entries=100,dirwidth=10,prealloc=100\n\
         define process name=p {{ thread name=t {{ flowop readwholefile name=rd,filesetname=data,iosize=4k }}\n\
         thread name=w {{ flowop appendfile name=ap,filesetname=data,iosize=1k,iters=100\nflowop delay name=d,value=1 }} }}\n\
         foreach $fs in ext4,xfs,btrfs {{ foreach $time in relatime,noatime {{\n\
         system \"until wipefs -aq {device}; do sleep 0.1; done; mkfs.$fs -q {device}\"\n\
         system \"mount -o $time {device} {dir}\"\nrun 0.3\nsystem \"umount {dir}\"\n}} }}\n"
    )
}

#[test]
fn file_systems_can_be_created_mounted_and_unmounted_between_runs() {
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs, Fs::Btrfs]));
    needs!(has("wipefs"), "wipefs not found");
    // The device is that of a mount that is given up.
    let mount = Mount::new(Fs::Ext4, 512 << 20);
    tool("umount", &[mount.dir().to_str().unwrap()]);
    let device = mount.device().unwrap();
    let text = sweep(device, mount.dir());
    let call = |text: &str| Wml::new().file("x.f", text).args(["x.f", "--no-quiesce", "--allow-system"]).result();
    let output: Output = call(&text).run().exits(0);
    let runs = runs(&output.result());
    let seen: BTreeSet<(String, bool)> = runs
        .iter()
        .map(|run| {
            let [mount] = &run["environment"]["mounts"].as_array().unwrap()[..] else { panic!("{run}") };
            assert_eq!(mount["source"], *device);
            (mount["type"].as_str().unwrap().to_owned(), mount["options"].as_str().unwrap().contains("noatime"))
        })
        .collect();
    assert_eq!((runs.len(), seen.len()), (6, 6), "{seen:?}");
    assert!(
        runs.iter().all(|run| run["filesets"][0]["repaired"].is_null()),
        "each set was created again\n{}",
        output.shown()
    );
    // A command that fails ends the script before it measures what was not to be measured.
    let output = call(&text.replace("mkfs.$fs -q", "mkfs.$fs -q --no-such-option")).run().exits(1);
    assert!(
        output.stderr.contains("mkfs.ext4") && output.stderr.contains("ended with exit status"),
        "{}",
        output.stderr
    );
    assert_eq!(runs_of(&output), 0);
}

/// Runs in the result.
fn runs_of(output: &Output) -> usize {
    runs(&output.result()).len()
}

/// As in Filebench, the definitions of several texts accumulate, and two processes of one name both run.
#[test]
fn processes_of_one_name_in_two_texts_both_run() {
    let text = |set: &str| {
        format!(
            "define fileset name={set},path=$dir,entries=5,dirwidth=5,size=4k,prealloc\n\
             define process name=p {{ thread name=t {{ flowop statfile name=s,filesetname={set} }} }}\n"
        )
    };
    let both = format!("{}{}run 0.1\n", text("a"), text("c"));
    let loads = "load a\nload c\nrun 0.1\nload c\nrun 0.1\n";
    for (script, runs_made) in [(both.as_str(), 1), (loads, 2)] {
        let call = Wml::below(&memory()).file("x.wml", script).file("a.f", &text("a")).file("c.f", &text("c"));
        let output = call.folder("d").args(["x.wml", "--no-quiesce", "--dir", "d"]).result().run().exits(0);
        let found = runs(&output.result());
        assert_eq!(found.len(), runs_made);
        for run in &found {
            let names: Vec<&str> = flowops(run).iter().map(|f| f["process"].as_str().unwrap()).collect();
            assert_eq!(names, ["p", "p-2"], "{}", output.shown());
            assert!(flowops(run).iter().all(|f| count(f, "ops") > 0), "{}", output.shown());
        }
    }
}
