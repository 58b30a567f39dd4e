//! Tests every command of both Filebench generations by its visible effects, as far as `vectors_14` and `vectors_15` do
//! not cover it.

use std::fs;

use crate::cmd::{Wml, count, flowop, memory};
use crate::vectors_15::{good, ops, script, sizes};

/// A file set, and a process that asks for its files' attributes at the event rate.
const SMALL: &str = "\
define fileset name=s,path=$dir,size=4k,entries=20,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop statfile name=st,filesetname=s
    flowop eventlimit name=limit
  }
}
";

fn prints(text: &str) -> Vec<String> {
    script(text).run().exits(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn set_accepts_every_kind_of_value() {
    let text = "set $int=5\nset $size=1.5k\nset $big=2G\nset $word=a-b.c\nset $text=\"a b\"\nset $yes=true\nset $other=$int\n\
        set $sum=$int + 2\nset $less=3 - 1\nset $div=$size / 2\nset $path=\"$word/x\"\nset $empty=\"\"\n\
        echo \"$int $size $big $word $text $yes $other $sum $less $div $path [$empty]\"\n";
    assert_eq!(prints(text), ["5 1536 2147483648 a-b.c a b true 5 7 2 768 a-b.c/x []"]);
}

#[test]
fn fields_of_random_variables_change_the_draws() {
    let text = "define randvar name=$rv,type=uniform,min=1k,mean=1k\n\
        define file name=f,path=$dir,size=64k,prealloc\n\
        define process name=p { thread name=t { flowop read name=rd,filename=f,iosize=$rv,random\n\
          flowop finishoncount name=end,target=rd,value=50 } }\n\
        run 20\nset $rv.mean=2k\nset $rv.min=2k\nrun 20\n";
    let output = good(text);
    let result = output.result();
    let bytes = |i: usize| count(flowop(&result["runs"][i], "rd"), "bytes");
    assert_eq!((bytes(0), bytes(1)), (50 << 10, 100 << 10));
    let wrong = script("set $x=1\nset $x.mean=3\necho \"a\"\n").run().exits(2);
    assert!(wrong.stderr.contains("`$x` is not a random variable"), "{}", wrong.stderr);
}

#[test]
fn variables_are_read_when_a_run_starts() {
    let text = "define file name=f,path=$dir,size=$size,prealloc\n\
        define process name=p { thread name=t { flowop read name=rd,filename=f,iosize=$io\n\
          flowop finishoncount name=end,target=rd,value=8 } }\n\
        set $size=64k\nset $io=1k\nrun 20\nset $io=2k\nrun 20\n";
    let result = good(text).result();
    let bytes = |i: usize| count(flowop(&result["runs"][i], "rd"), "bytes");
    assert_eq!((bytes(0), bytes(1)), (8 << 10, 16 << 10));
}

#[test]
fn create_and_shutdown_accept_all_their_arguments() {
    for (create, shutdown) in [("files", "file"), ("fileset", "filesets"), ("filesets", "fileset"), ("file", "files")] {
        let output = good(&format!("{SMALL}create {create}\nshutdown {shutdown}\n"));
        assert!(output.stderr.contains("creating s"), "{}", output.stderr);
        assert!(!output.dir().join("files/s").exists(), "shutdown {shutdown}");
    }
    let output = good(&format!("{SMALL}create processes\nstats snap\nshutdown process\nstats snap\n"));
    assert_eq!(output.result()["runs"].as_array().unwrap().len(), 1);
    assert!(output.stderr.contains("no processes are running"), "{}", output.stderr);
    let wrong = script("create filess\n").run().exits(2);
    assert!(wrong.stderr.contains("did you mean `files`?"), "{}", wrong.stderr);
}

/// An examination of the file system would disturb the processes.
#[test]
fn a_snapshot_examines_no_file_system() {
    let output = good(&format!("{SMALL}create processes\nsleep 0.2\nstats snap\nshutdown processes\n"));
    let run = output.only_run();
    assert!(run["filesets"][0]["resident_after"].is_null(), "{}", output.shown());
    let warnings = run["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|warning| warning["code"] != "not_looked_at"), "{warnings:?}");
}

/// As in Filebench: the files are in use, and a second creation is ignored.
#[test]
fn create_files_is_ignored_while_processes_run() {
    let text = format!(
        "{SMALL}create processes\ncreate filesets\ndefine fileset name=new,path=$dir,size=1k,entries=3,dirwidth=5,prealloc\n\
         create filesets\ncreate processes\nstats snap\nshutdown processes\n"
    );
    let output = good(&text);
    assert_eq!(
        output.stderr.matches("`create files` has no effect while processes run").count(),
        2,
        "{}",
        output.shown()
    );
    let creations = output.stderr.matches("creating new").count();
    assert_eq!(creations, 1, "the second `create processes` creates the new set\n{}", output.shown());
    assert!(output.dir().join("files/new").exists());
}

/// As in Filebench: the run would change the files. `--runtime` asks for one.
#[test]
fn a_script_that_only_creates_its_files_makes_no_run() {
    let text = SMALL.replace("statfile", "deletefile") + "create files\n";
    let output = good(&text);
    assert_eq!(output.result()["runs"], serde_json::json!([]), "{}", output.shown());
    assert!(output.stderr.contains("nothing was measured: after `create files`"), "{}", output.shown());
    assert_eq!(sizes(&output, "s"), [4096; 20]);
    let output = script(&text).args(["--runtime", "0.2"]).result().run().exits(0);
    assert!(ops(&output.only_run(), "st") > 0);
    // A text that is loaded prepares the run of the script that loads it.
    let loads = "set $dir=files\nset mode quit alldone\nload data\n";
    let output = script(loads).file("data.f", &text).result().run().exits(0);
    assert_eq!(ops(&output.only_run(), "st"), 20);
}

#[test]
fn run_accepts_a_number_or_a_variable_and_the_script_continues() {
    let output = good(&format!("{SMALL}set $t=1\neventgen rate=100\nrun 1\nrun $t\npsrun -1 1\necho \"after\"\n"));
    let result = output.result();
    let asked: Vec<_> = result["runs"].as_array().unwrap().iter().map(|r| r["requested_seconds"].as_f64()).collect();
    assert_eq!(asked, [Some(1.0); 3]);
    assert!(output.stdout.ends_with("after\n"), "{}", output.stdout);
}

#[test]
fn runtime_replaces_the_times_of_a_script() {
    let text = format!(
        "{SMALL}eventgen rate=100\nrun 3600\npsrun -10 3600\ncreate processes\nsleep 1\nstats clear\nsleep 3600\nstats snap\n"
    );
    let result = script(&text).args(["--runtime", "0.2"]).result().run().exits(0).result();
    let asked: Vec<_> = result["runs"].as_array().unwrap().iter().map(|r| r["requested_seconds"].as_f64()).collect();
    assert_eq!(asked, [Some(0.2); 3]);
}

#[test]
fn a_live_run_follows_the_event_rate_and_nothing_else() {
    let text = format!(
        "{SMALL}set $rate=100\neventgen rate=$rate\ncreate processes\nstats clear\nsleep 1\nstats snap\n\
         set $rate=1000\nstats clear\nsleep 1\nstats snap\neventgen rate=10\nstats clear\nsleep 1\nstats snap\necho \"${{rate}}\"\n"
    );
    let output = good(&text);
    let result = output.result();
    let runs = result["runs"].as_array().unwrap();
    let most = |i: usize, rate: f64| runs[i]["measured_seconds"].as_f64().unwrap() * rate + 3.0;
    let done: Vec<f64> = runs.iter().map(|run| ops(run, "st") as f64).collect();
    assert!(done[0] <= most(0, 100.0) && done[1] > done[0] && done[2] <= most(2, 10.0), "{done:?}");
    assert_eq!(output.stdout.lines().last(), Some("10"));
}

#[test]
fn warmup_comes_before_a_run_or_between_commands() {
    let output = good(&format!("{SMALL}eventgen rate=100\nwarmup 1\nrun 1\n"));
    let run = output.only_run();
    assert!(run["warmup"]["seconds"].as_f64().is_some_and(|s| s >= 1.0), "{}", run["warmup"]);
    let output =
        good(&format!("{SMALL}eventgen rate=100\ncreate processes\nwarmup 1\nstats clear\nsleep 1\nstats snap\n"));
    assert!(ops(&output.only_run(), "st") > 0);
}

#[test]
fn shell_commands_run_only_with_permission() {
    let text =
        format!("{SMALL}create files\nsystem \"touch $dir/made; ls -d $dir/s\"\nsystem \"(exit 3) || true\"\nquit\n");
    let output = script(&text).run().exits(3);
    assert!(output.stderr.contains("error[E0308]") && !output.dir().join("files/s").exists(), "{}", output.stderr);
    let output = script(&text).args(["--allow-system"]).run().exits(0);
    assert!(output.dir().join("files/made").exists() && output.stdout.contains("/files/s\n"), "{}", output.stdout);
    // The fresh directory is there when a command names it.
    let call = Wml::below(&memory()).file("s.f", "system \"ls -d $dir\"\n").args(["s.f", "--allow-system"]);
    let output = call.run().exits(0);
    assert!(output.stdout.contains("/wmlrun-"), "{}", output.shown());
    assert_eq!(output.left(), ["s.f"]);
}

#[test]
fn a_run_without_a_process_points_to_create_files() {
    let set = "define fileset name=s,path=$dir,entries=2,dirwidth=2\n";
    for (more, code, told) in [("", 2, true), ("run 1\n", 2, true), ("create files\n", 0, false)] {
        let output = script(&format!("{set}{more}")).run().exits(code);
        assert_eq!(output.stderr.contains("`create files` instead of"), told, "{more}{}", output.stderr);
    }
    assert!(!script("run 1\n").run().exits(2).stderr.contains("create files"));
}

/// A `$` in a command is one of the script if the script has such a variable, else one of the shell.
#[test]
fn the_shell_gets_its_own_variables() {
    let text = "set $of_script = 7\nsystem \"for name in a b; do echo $name-$of_script; done; set -- c; echo $1 $? \\$nosuch.\"\n";
    let output = script(text).args(["--allow-system"]).run().exits(0);
    assert_eq!(output.stdout, "a-7\nb-7\nc 0 .\n", "{}", output.shown());
    assert!(output.stderr.contains("it must be a variable of the shell"), "{}", output.stderr);
}

#[test]
fn a_collector_runs_until_the_snapshot() {
    let text = format!(
        "{SMALL}eventgen rate=100\ncreate processes\nstats command \"echo $$ > pid; while :; do sleep 0.05; done\"\n\
         stats clear\nsleep 1\nstats snap\nstats directory out\nstats dump \"d\"\nshutdown processes\n"
    );
    assert!(script(&text).run().exits(3).stderr.contains("error[E0308]"));
    let output = script(&text).args(["--allow-system"]).run().exits(0);
    let pid = fs::read_to_string(output.dir().join("pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the collector {pid} still runs");
    assert!(output.dir().join("out/d").is_file());
}

#[test]
fn a_collector_that_is_not_installed_is_reported() {
    let text =
        format!("{SMALL}create processes\nstats command \"/nowhere/iostat\"\nstats clear\nsleep 1\nstats snap\n");
    let output = script(&text).args(["--allow-system"]).run().exits(0);
    let note = "the command of `stats command` failed during the measurement: exit status: 127";
    assert!(output.stderr.contains(note), "{}", output.shown());
}

#[test]
fn load_reads_definitions_and_a_run_becomes_the_default() {
    let own = format!("{SMALL}eventgen rate=100\nrun 1\npsrun -1 1\necho \"loaded\"\nquit\n");
    let call = Wml::below(&memory()).file("own.f", &own).file("s.f", "load own\necho \"after\"\nrun\n");
    let output = call.args(["s.f", "--no-quiesce"]).result().run().exits(0);
    assert_eq!(output.only_run()["requested_seconds"], 1.0);
    assert!(output.stdout.starts_with("loaded\nafter\n"), "{}", output.stdout);
    assert_eq!(output.result()["script"]["path"], "s.f", "the result holds the script that was run");
    // Beside the script, wherever that lies.
    let call = Wml::below(&memory()).file("sub/own.f", &own).file("sub/s.f", "load own\n");
    call.args(["sub/s.f", "--no-quiesce"]).run().exits(0);
    let wrong = Wml::below(&memory()).file("s.f", "load s\n").args(["s.f"]).run().exits(2);
    assert!(wrong.stderr.contains("cycle"), "{}", wrong.stderr);
    let wrong = script("load varmial\n").run().exits(2);
    assert!(wrong.stderr.contains("did you mean `varmail`?"), "{}", wrong.stderr);
}

#[test]
fn foreach_nests_and_runs_its_body_for_each() {
    let text = "set $n=3\nforeach $i in $n,5 { foreach $w in \"a\",\"b c\" { echo \"$i $w\" } }\n";
    assert_eq!(prints(text), ["3 a", "3 b c", "5 a", "5 b c"]);
    let result = good(&format!("{SMALL}eventgen rate=100\nforeach $k in 1,2 {{ run 1 }}\n")).result();
    assert_eq!(result["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn commands_without_effect_are_reported() {
    let text = format!(
        "debug 0\nset mode nousestats\nenable multi master=localhost,client=me\ndomultisync value=1\n{SMALL}\
         eventgen rate=100\nfsflush fstype=zfs\nrun 1\n"
    );
    let output = script(&text).args(["--format", "filebench"]).run().exits(0);
    assert_eq!(output.stderr.matches("warning[W0402]").count(), 4, "{}", output.stderr);
    assert_eq!(output.stderr.matches("the clients of a run are its ranks").count(), 2, "{}", output.stderr);
    assert!(output.stdout.contains("IO Summary"), "`debug 0` hides nothing");
}

#[test]
fn fscheck_compares_the_file_system_type() {
    let dir = memory();
    let kind = crate::cmd::tool("stat", &["-f", "-c", "%T", dir.to_str().unwrap()]);
    if kind.trim() == "tmpfs" {
        let check = |kind: &str| format!("fscheck path={},fstype={kind}\necho \"on\"\n", dir.display());
        assert_eq!(prints(&check("tmpfs")), ["on"]);
        assert!(script(&check("zfs")).run().exits(3).stderr.contains("not on zfs"));
    }
    assert!(script("fscheck path=/\n").run().exits(2).stderr.contains("fscheck path=PATH fstype=TYPE"));
}

#[test]
fn quit_ends_a_script() {
    assert_eq!(prints("echo \"a\"\nquit\necho \"b\"\n"), ["a"]);
    assert_eq!(
        prints("echo \"a\"\nexit\nfrob=\"\"\n").len(),
        1,
        "the whole script is checked, and executed up to `exit`"
    );
}

#[test]
fn the_mode_determines_what_ends_a_run() {
    let ends = |mode: &str, second: &str| {
        let text = format!(
            "set mode quit {mode}\n\
             define fileset name=a,path=$dir,size=1k,entries=10,dirwidth=5,prealloc\n\
             define fileset name=b,path=$dir,size=1k,entries=10,dirwidth=5,prealloc\n\
             define process name=p {{ thread name=one {{ flowop deletefile name=da,filesetname=a }}\n\
               thread name=two {{ {second} }} }}\nrun 2\n"
        );
        let run = good(&text).only_run();
        assert_eq!(run["state"], "complete");
        run["ended_by"].as_str().unwrap().to_owned()
    };
    let also = "flowop deletefile name=db,filesetname=b";
    let never = "flowop statfile name=db,filesetname=b\n flowop delay name=d,value=1";
    assert_eq!(ends("timeout", also), "all threads done");
    assert_eq!(ends("alldone", also), "all threads done");
    assert_eq!(ends("firstdone", never), "first thread done");
    assert_eq!(ends("timeout", never), "time");
    assert_eq!(ends("alldone", never), "time");
}

/// An interim report is no end: neither its heading says so, nor does it bring what only the end can know.
#[test]
fn interim_reports_have_their_own_heading() {
    for (period, heading) in [("0.3", "so far, after"), ("-1", "so far, the last")] {
        let text = format!("# dialect: fsl\n{SMALL}eventgen rate=100\npsrun {period} 2\n");
        let output =
            Wml::new().file("x.wml", &text).args(["x.wml", "-v", "--no-quiesce", "--interval", "5"]).run().exits(0);
        let (on_the_way, end) = output.stdout.split_once("complete after").unwrap();
        assert!(on_the_way.contains(&format!("x.wml: {heading}")), "{}", output.stdout);
        assert!(!on_the_way.contains("processor"), "{}", output.stdout);
        assert!(end.contains("processor"), "{}", output.stdout);
    }
}

/// Who only looks at figures or the exit status hears of a run that did nothing, in every format.
#[test]
fn a_run_without_operations_has_a_warning_in_every_format() {
    const NOTHING: &str = "no operation of any flowop completed";
    let text = "# dialect: fsl\ndefine file name=f,path=$dir,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop read name=rd,filename=f,iosize=4k,iters=0 } }\nrun 0.1\n";
    for format in wml::report::TABLE.iter().map(|report| report.name()) {
        let call = Wml::new().file("x.wml", text).args(["x.wml", "--no-quiesce", "--quiet", "--format", format]);
        let output = call.result().run().exits(0);
        // JSON has it among the data, too.
        let times = if format == "json" { 2 } else { 1 };
        assert_eq!(output.shown().matches(NOTHING).count(), times, "{format}:\n{}", output.shown());
        let run = output.only_run();
        let warnings = run["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|w| w["code"] == "no_operations"), "{warnings:?}");
    }
    let busy = Wml::new().file("x.wml", &text.replace("iters=0", "iters=1")).args(["x.wml", "--format", "none"]).run();
    assert!(!busy.exits(0).shown().contains("no operation of any flowop"));
    // Processes that nobody measured.
    let unmeasured = text.replace("iters=0", "iters=1").replace("run 0.1", "create processes\nshutdown processes");
    let output = Wml::new().file("x.wml", &unmeasured).args(["x.wml", "--no-quiesce"]).run().exits(0);
    assert!(output.stderr.contains("note: nothing was measured"), "{}", output.stderr);
}

/// A result is not reported as a script with an error in each line.
#[test]
fn a_result_instead_of_a_script_is_one_error() {
    for result in [
        "{\n  \"schema\": \"wmlrun.result/1\"\n}\n",
        "Filebench Version 1.5-alpha3\n0.000: Allocated 177MB of shared memory\n",
        "\n 1234: 0.003: Creating/pre-allocating files and filesets\n",
    ] {
        for command in [&["run"][..], &["plan"], &["repeat"]] {
            let output = Wml::new().file("old.out", result).args(command).args(["old.out"]).run().exits(2);
            let said = output.stderr;
            assert!(said.contains("old.out is a result, not a script"), "{command:?} {result}: {said}");
            assert!(
                said.contains("wmlrun compare") && said.matches("error").count() == 1,
                "{command:?} {result}: {said}"
            );
        }
    }
    let output = Wml::new().file("old.out", "1.0: IO Summary: 10 ops 5 ops/s\n").args(["report", "old.out"]).run();
    let said = output.exits(2).stderr;
    assert!(said.contains("it is a result of another program: `wmlrun compare`"), "{said}");
}

#[test]
fn an_unreadable_script_is_reported_with_its_cause() {
    let call = |command: &[&str]| {
        let made = Wml::new().file("folder/x.wml", "run 1\n");
        made.args(command).args(["folder"]).run().exits(2).stderr
    };
    for command in [&[] as &[&str], &["check"], &["fmt"], &["plan"], &["repl"]] {
        let told = call(command);
        assert!(told.contains("folder can't be read: is a directory"), "{command:?}: {told}");
        assert!(told.contains("= help: "), "{command:?}: {told}");
    }
    let loaded = Wml::new().file("folder/x.wml", "").file("x.wml", "# dialect: fsl\nload folder\n").args(["x.wml"]);
    let told = loaded.run().exits(2).stderr;
    assert!(told.contains("folder can't be read: is a directory"), "{told}");
}

/// The message on a directory is printed after all of it was searched.
#[test]
fn clean_reports_what_it_found_or_that_it_found_nothing() {
    let text = "# dialect: fsl\ndefine file name=f,path=$dir,size=4k,prealloc\n\
        define process name=p { thread name=t { flowop read name=rd,filename=f,iosize=4k } }\nrun 1\n";
    let kept = Wml::new().file("x.wml", text).args(["x.wml", "--no-quiesce", "--keep"]).run().exits(0);
    assert!(kept.left().iter().any(|name| name.starts_with("wmlrun-")), "{:?}", kept.left());
    let clean = || Wml::new().args(["clean"]).args([kept.dir()]).run().exits(0).stdout;
    let told = clean();
    assert!(told.contains("removed") && !told.contains("no file sets of wmlrun"), "{told}");
    assert_eq!(kept.left(), ["x.wml"]);
    let told = clean();
    assert!(told.starts_with("no file sets of wmlrun in ") && told.contains("deeper directories are not"), "{told}");
    // Those one level deeper stay, and are named.
    let text = text.replace("file name=f,", "fileset name=f,entries=1,");
    let deeper = Wml::new().file("x.wml", &text).args(["x.wml", "--no-quiesce", "--dir", "of mine", "--mkdir"]);
    let deeper = deeper.run().exits(0);
    let told = Wml::new().args(["clean"]).args([deeper.dir()]).run().exits(0).stdout;
    assert!(
        told.contains(" itself; there are some in deeper directories: `wmlrun clean '") && told.contains("/of mine'`"),
        "{told}"
    );
    assert!(deeper.dir().join("of mine/f").is_dir(), "{told}");
}
