//! Tests that the analyser prints no warning on any shipped script.

use crate::cmd::{Output, Wml};
use std::path::Path;
use std::sync::Arc;
use wml::diag::{self, Code, Style};
use wml::model::{self, Known, Scope, lint};
use wml::session::{Session, Settings};
use wml::source::SourceMap;

/// All that `wmlrun check` says of a script.
pub(crate) fn check(name: &str, text: &str) -> String {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let known = Known { variables: wml::spec::predefined::predefined_names().collect(), ..Known::default() };
    let (model, mut found) = model::check(&map, file, &wml::flowop::spec_table(), None, &known);
    if !diag::has_errors(&found) {
        let mut session = Session::new(Settings::default(), Arc::default());
        std::mem::swap(&mut session.map, &mut map);
        found.extend(session.check_values(&model, name));
        std::mem::swap(&mut session.map, &mut map);
    }
    if !diag::has_errors(&found) {
        found.extend(lint::lint(&model, &Scope::default(), false));
    }
    // That it runs commands is no doubt where the page is about them.
    found.retain(|d| d.code != Code::RunsShell || !name.contains("docs/"));
    diag::render(&map, &found, Style::Plain)
}

#[test]
fn no_shipped_script_has_warnings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    let mut said = String::new();
    for folder in ["personalities", "examples"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "wml") {
                seen += 1;
                said.push_str(&check(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(seen > 100, "the scripts were not found");
    assert!(said.is_empty(), "{said}");
}

/// Constructs that look like a mistake and are none.
#[test]
fn suspicious_but_correct_scripts_have_no_warnings() {
    const RIGHT: &[&str] = &[
        // A composite is done again and again; each time it closes what it opened.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc
         define flowop name=one { flowop openfile name=o,filesetname=s,fd=1\nflowop closefile name=c,fd=1 }
         define process name=p { thread name=t { flowop one name=a,iters=5\nflowop one name=b } }",
        // Implicitly opened, then closed.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,size=8k,prealloc
         define process name=p { thread name=t {
           flowop read name=r,filesetname=s,fd=2,iosize=4k\nflowop closefile name=c,fd=2 } }",
        // A slot is used for one set, then for another.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc
         define fileset name=u,path=$dir,entries=9,dirwidth=3,prealloc
         define process name=p { thread name=t {
           flowop openfile name=o,filesetname=s,fd=2\nflowop closefile name=c,fd=2
           flowop openfile name=q,filesetname=u,fd=2\nflowop closefile name=d,fd=2 } }",
        // Who makes and who removes are two threads.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc=50
         define process name=p {
           thread name=t { flowop deletefile name=r,filesetname=s,iters=2 }
           thread name=u { flowop createfile name=m,filesetname=s,fd=1\nflowop closefile name=c,fd=1 } }",
        // It ends by what was done.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc
         define process name=p { thread name=t {
           flowop deletefile name=r,filesetname=s\nflowop finishoncount name=f,value=5,target=r } }",
        // What the file's size is can't be told, nor which semaphore is meant.
        "set $size=randvar(type=uniform,min=1k,mean=2k)
         define fileset name=s,path=$dir,entries=9,dirwidth=3,size=$size,prealloc
         define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=8k,random } }",
        "define flowop name=post,$to=nobody { flowop sempost name=p,value=1,target=$to }
         define process name=p {
           thread name=t { flowop post name=x,$to=wait }
           thread name=u { flowop semblock name=wait,value=1 } }",
        // Empty files that are read get their content from another flowop: by the set, by the slot, or from another set.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,size=0,prealloc
         define process name=p {
           thread name=t { flowop read name=r,filesetname=s,iosize=4k }
           thread name=u { flowop appendfile name=a,filesetname=s,iosize=4k,wrap=1m } }",
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc=50
         define process name=p { thread name=t {
           flowop createfile name=m,filesetname=s,fd=1\nflowop write name=w,fd=1,iosize=4k
           flowop closefile name=c,fd=1\nflowop readwholefile name=r,filesetname=s
           flowop closefile name=d\nflowop deletefile name=x,filesetname=s } }",
        // A variable is set again after a run has read it, and a loop contains its run.
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,prealloc\nset $slot=1
         define process name=p { thread name=t {
           flowop openfile name=o,filesetname=s,fd=$slot\nflowop closefile name=c,fd=$slot } }
         run 1\nset $slot=2\nrun 1",
        // Sun's sizes are spread around their mean.
        "# dialect: sun\ndefine fileset name=s,path=$dir,entries=9,dirwidth=3,size=4k,prealloc
         define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=8k,random } }",
    ];
    for text in RIGHT {
        assert_eq!(check("right.wml", text), "", "{text}");
    }
}

/// Threads may have the attributes of processes and the reverse, without effect. Flowops may not, whatever their names.
#[test]
fn attributes_of_processes_and_threads_are_accepted_on_both() {
    let said = check(
        "moved.wml",
        "define fileset name=s,path=$dir,entries=9,dirwidth=3,size=8k,prealloc
         define flowop name=threadlike { flowop read name=r,filesetname=s,iosize=4k }
         define process name=p,memsize=1m { thread name=t,nice=5 { flowop threadlike name=x,nice=5 } }",
    );
    for message in [
        "`memsize` has no effect on `define process`",
        "`nice` has no effect on `thread`",
        "unknown attribute `nice` on flowop `threadlike`",
    ] {
        assert!(said.contains(message), "{message}: {said}");
    }
}

/// The warnings of a personality in a batch are those with the values of the profile.
#[test]
fn the_workloads_of_a_batch_have_their_warnings_before_the_run() {
    let own = "# dialect: fsl\nset $size=4k\n\
        define fileset name=s,path=$dir,entries=9,dirwidth=3,size=$size,prealloc\n\
        define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=8k,random } }\n";
    for (values, code, warnings) in [("", 1, 1), ("  size = 64k;\n", 0, 0)] {
        let profile = format!("DEFAULTS {{\n  runtime = 1;\n{values}}}\nCONFIG one {{\n  personality = own;\n}}\n");
        let call = || Wml::new().file("p.prof", &profile).file("own.wml", own);
        let options = ["--no-quiesce", "--engine", "null", "--runtime", "0.1"];
        // A read that is larger than its file fails.
        let ran = call().args(["batch", "p"]).args(options).run().exits(code);
        let checked = call().args(["check", "p.prof"]).run().exits(0);
        assert_eq!([ran, checked].map(|output| output.stderr.matches("W0407").count()), [warnings; 2], "{values}");
    }
    let wrong = "CONFIG one {\n  personality = varmial;\n}\n";
    let output = Wml::new().file("p.prof", wrong).args(["check", "p.prof"]).run().exits(2);
    assert!(output.stderr.contains("did you mean `varmail`?"), "{}", output.stderr);
}

#[test]
fn differences_from_filebench_name_the_lines_of_the_script() {
    let script = "set $dir=/tmp\nset $n=5\n\
        define fileset name=cached,path=$dir,entries=$n,size=4k,dirwidth=3,prealloc,cached=0\n\
        define process name=p,nice=5 { thread name=t,instances=2 {\n\
          flowop aiowrite name=random,filesetname=cached,iosize=2k,fd=1\n\
          flowop aiowait name=w } }\n";
    let output = Wml::new().file("x.f", script).args(["check", "--differences", "x.f"]).run().exits(0);
    let shown = &output.stdout;
    for row in [
        "`aiowait` (line 6): changes figures\n  Filebench: on Linux returns at once\n",
        "\n`cached=` (line 3): changes figures\n",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    // Texts that it loads are those of the user too, but for those that are shipped; each is shown once.
    let call =
        || Wml::new().file("lib.f", script).file("y.f", "load lib\nload oltp\nrun 1\n").file("z.f", "load lib\n");
    // Also those outside the folder of the script, whose text is not shown.
    let call = || call().file("deep/w.f", "load \"../lib.f\"\nrun 1\n");
    let titles = |output: &Output| -> Vec<String> {
        let lines = output
            .stdout
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(_, rest)| rest.contains("difference"));
        lines.map(|(name, _)| name.rsplit('/').next().unwrap().to_owned()).collect()
    };
    let output = call().args(["check", "--differences", "y.f", "z.f"]).run().exits(0);
    assert_eq!(titles(&output), ["y.f", "lib.f", "z.f"]);
    // A row is printed once, with all places. The `run` of another text of the session counts.
    for row in ["\nno `run` line (z.f)\n", "\n`aiowait` (lib.f: line 6): changes figures\n"] {
        assert_eq!(output.stdout.matches(row).count(), 1, "{row}: {}", output.stdout);
    }
    // A script with errors has its differences too.
    let wrong =
        call().file("wrong.f", "load nosuch\nsystem \"ls\"\n").args(["check", "--differences", "wrong.f", "z.f"]);
    let wrong = wrong.run().exits(2);
    assert!(wrong.stdout.contains("(wrong.f: line 2)"), "{}", wrong.shown());
    assert!(!wrong.stdout.contains("no `run` line (wrong.f"), "what it loads may have one: {}", wrong.shown());
    let clear = "define process name=p { thread name=t { flowop hog name=h,value=1 } }\ncreate processes\n";
    let of = |text: &str| {
        let call = Wml::new().file("s.f", &format!("{clear}{text}"));
        call.args(["check", "--differences", "s.f"]).run().exits(0).stdout
    };
    let (with, without) = (of("stats clear\nstats snap\n"), of("stats snap\n"));
    assert!(
        !with.contains("`stats snap`") && without.contains("`stats snap` without `stats clear` (line 3)"),
        "{without}"
    );
    assert!(of("run 1\nrun 1\n").contains("a second `run` (lines 3, 4)") && !of("run 1\n").contains("a second"));
    assert!(!of("").contains("`stats command`"));
    // What words mean together: only this concerns a script.
    for (text, row, other) in [
        ("set $n=3\n", "a variable that is set while processes of `create processes` live (line 3)", "sleep 1\n"),
        ("shutdown processes\ndebug 0\n", "`debug 0` (line 4)", "debug 1\n"),
        (
            "echo \"$PATH\"\n",
            "similar texts that is not a variable of the script",
            "foreach $n in 1,2 { echo \"$n\" }\n",
        ),
        ("foreach $n in 1,2 { set $m=$n\ndefine file name=f,path=/x }\n", "a `run`, with the variable in", "run 1\n"),
        ("foreach $n in 1,2 { define file name=f$n,path=/x\nrun 1 }\n", "and a `run` in it\n  (line 3)", "run 1\n"),
    ] {
        assert!(of(text).contains(row) && !of(other).contains(row), "{text}: {}", of(text));
    }
    assert_eq!(titles(&call().args(["check", "--differences", "deep/w.f"]).run().exits(0)), ["w.f", "lib.f"]);
    let profile = "CONFIG one {\n  personality = y;\n}\nCONFIG two {\n  personality = z;\n}\n";
    let output = call().file("p.prof", profile).args(["check", "--differences", "p.prof"]).run().exits(0);
    assert_eq!(titles(&output), ["y.f", "lib.f", "z.f"], "{}", output.shown());
    // Those of its personalities also if another one has an error.
    let output = call().file("p.prof", &profile.replace("= z", "= nosuch")).args(["check", "--differences", "p.prof"]);
    let output = output.run().exits(2);
    assert_eq!(titles(&output), ["y.f", "lib.f"], "{}", output.shown());
    // A name is no attribute, no thread has no instances, and what is kept is no difference.
    assert!(["`random`", "instances=0", "the same\n"].iter().all(|text| !shown.contains(text)), "{shown}");
    let first_without = shown.lines().position(|line| line.contains("(line") && !line.contains("figures")).unwrap();
    assert!(shown.lines().skip(first_without).all(|line| !line.contains("changes figures")), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn a_time_that_the_script_only_sets_is_reported() {
    let script = "# dialect: fsl\nset $runtime=30\n\
        define process name=p { thread name=t {\n\
          flowop hog name=h,value=1\n\
          flowop finishoncount name=end,value=1 } }\n";
    let run = |text: &str, set: &[&str]| {
        Wml::new().file("x.wml", text).args(["x.wml", "--no-quiesce"]).args(set.iter().copied()).run()
    };
    let said = run(script, &["--set", "runtime=3"]).exits(2).stderr;
    assert!(said.contains("`--set runtime=3` has no effect") && said.contains("is `--runtime 3`"), "{said}");
    assert!(run(script, &[]).exits(0).stderr.contains("`--runtime 30` makes a run of this time"));
    let read = run(&format!("{script}run $runtime\n"), &["--set", "runtime=3"]).exits(0).stderr;
    assert!(!read.contains("no effect") && !read.contains("nothing reads"), "{read}");
}
