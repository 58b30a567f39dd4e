//! Tests `--below`: every path of a file set is placed below a directory, through no link, and in every command that runs
//! a script; and paths that only a shell would complete, which are errors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cmd::{Output, Wml};
use crate::experiments::{Lab, series};
use crate::tree;

/// Makes what is at a place.
type Change<'a> = &'a dyn Fn(&Path);

/// A script with a literal path, one in a variable, one of a file, a relative one and a list.
const SCRIPT: &str = "set $where=/no-such-root/b\n\
    define fileset name=one,path=/no-such-root/a,size=1k,entries=3,dirwidth=10,prealloc\n\
    define fileset name=two,path=$where,size=1k,entries=3,dirwidth=10,prealloc,reuse\n\
    define file name=three,path=\"/no-such-root/a\",size=1k,prealloc\n\
    define fileset name=four,path=rel/c,size=1k,entries=3,dirwidth=10,prealloc\n\
    define fileset name=five,path=\"/no-such-root/x:/no-such-root/y\",size=1k,entries=4,dirwidth=10,prealloc\n\
    define process name=p { thread name=t { flowop statfile name=s1,filesetname=one\n\
    flowop statfile name=s2,filesetname=two\nflowop finishoncount name=end,value=100 } }\n";

const EXPERIMENT: &str = "script = \"x.wml\"\noptions = \"--below toml --runtime 20 --no-quiesce\"\nrepeats = 1\n\
    [[factor]]\nname = \"where\"\nlevels = [\"/p\", \"/q\"]\n";

/// The roots of its sets below the directory.
const ROOTS: [&str; 6] = [
    "no-such-root/a/one",
    "no-such-root/b/two",
    "no-such-root/a/three",
    "rel/c/four",
    "no-such-root/x/five",
    "no-such-root/y/five",
];

fn call(script: &str, words: &[&str]) -> Wml {
    let call = Wml::new().file("x.wml", script).args(["x.wml", "--runtime", "20", "--no-quiesce"]);
    call.args(words.iter().copied())
}

#[track_caller]
fn says(output: &Output, text: &str) {
    assert!(output.shown().contains(text), "{text}\n{}", output.shown());
}

#[test]
fn every_path_of_a_script_is_below_the_directory() {
    let output = call(SCRIPT, &["--below", "d", "--mkdir"]).run().exits(0);
    for root in ROOTS {
        assert!(output.dir().join("d").join(root).join("00000001/00000001").is_file(), "{root}");
    }
    assert!(!Path::new("/no-such-root").exists() && !output.dir().join("rel").exists());
    assert_eq!(fs::read_dir(output.dir().join("d")).unwrap().count(), 2);
    let plan = Wml::new().file("x.wml", SCRIPT).args(["plan", "x.wml", "--below", "d"]).run().exits(0);
    assert!(
        ROOTS.iter().all(|root| plan.stdout.contains(&format!("d/{}", Path::new(root).parent().unwrap().display())))
    );
}

/// A variable of the command line is placed like one of the script.
#[test]
fn values_of_the_command_line_are_paths_too() {
    let text = SCRIPT.replace("path=rel/c", "path=$dir");
    let output = call(&text, &["--below", ".", "--set", "where=/new", "--set", "dir=/own"]).run().exits(0);
    assert!(output.dir().join("new/two/.wmlrun").is_file() && output.dir().join("own/four/.wmlrun").is_file());
}

#[test]
fn the_trees_of_a_run_are_known_to_the_next_one_and_to_clean() {
    let lab = Lab::new();
    fs::write(lab.path("x.wml"), SCRIPT).unwrap();
    fs::create_dir_all(lab.path("d/foreign/deep")).unwrap();
    fs::write(lab.path("d/foreign/deep/file"), "mine").unwrap();
    let run = "x.wml --below d --runtime 20 --no-quiesce --format none";
    lab.run(run, 0);
    let inode = |path: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(lab.path(path)).unwrap());
    let before = inode("d/no-such-root/b/two/00000001/00000001");
    lab.run(run, 0);
    assert_eq!(inode("d/no-such-root/b/two/00000001/00000001"), before);
    // A tree of a run without the option is not that of another directory.
    let other = "define fileset name=own,path=d/deep/er,size=1k,entries=3,dirwidth=10,prealloc\ncreate files\n";
    fs::write(lab.path("other.wml"), other).unwrap();
    lab.run("other.wml --no-quiesce", 0);
    let shown = lab.run("clean d", 0);
    for root in ROOTS {
        assert!(shown.contains(root) && !lab.path("d").join(root).exists(), "{root}\n{shown}");
    }
    assert!(lab.path("d/deep/er/own/.wmlrun").is_file());
    assert_eq!(fs::read_to_string(lab.path("d/foreign/deep/file")).unwrap(), "mine");
    // Nor does a directory in between clean what it was not given for.
    lab.run(run, 0);
    lab.run("clean d/rel", 0);
    assert!(lab.path("d/no-such-root/b/two/.wmlrun").is_file());
}

#[test]
fn a_search_for_trees_that_ends_early_is_told() {
    let lab = Lab::new();
    for n in 0..9_998 {
        fs::create_dir_all(lab.path(&format!("d/many/{n}"))).unwrap();
    }
    let said = "note: only the first 10,000 directories below d were searched";
    assert!(!lab.run("clean d", 0).contains(said));
    for n in 0..2 {
        fs::create_dir(lab.path(&format!("d/many/more{n}"))).unwrap();
    }
    let shown = lab.run("clean d", 0);
    assert!(shown.contains(said), "{shown}");
}

#[test]
fn no_link_below_the_directory_is_followed() {
    let lab = Lab::new();
    fs::write(lab.path("x.wml"), SCRIPT).unwrap();
    let run = "x.wml --below d --runtime 20 --no-quiesce";
    fs::create_dir_all(lab.path("elsewhere/a")).unwrap();
    fs::write(lab.path("elsewhere/file"), "mine").unwrap();
    let before = tree::tree(&lab.path("elsewhere"));
    let places: [(&str, Change<'_>); 5] = [
        ("d/no-such-root", &|at| symlink(lab.path("elsewhere"), at).unwrap()),
        ("d/no-such-root/b", &|at| symlink("../../elsewhere/a", at).unwrap()),
        ("d/rel/c/four", &|at| symlink(lab.path("elsewhere/a"), at).unwrap()),
        ("d/rel/c", &|at| symlink("nowhere", at).unwrap()),
        ("d/no-such-root/a", &|at| fs::write(at, "a file").unwrap()),
    ];
    for (place, make) in places {
        let at = lab.path(place);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        make(&at);
        let shown = lab.run(run, 3);
        assert!(shown.contains("is a symbolic link") || shown.contains("is not a directory"), "{place}\n{shown}");
        assert_eq!(tree::tree(&lab.path("elsewhere")), before, "{place}");
        fs::remove_dir_all(lab.path("d")).unwrap();
    }
    // The user names the directory itself, and may name a link.
    fs::create_dir_all(lab.path("real")).unwrap();
    symlink("real", lab.path("d")).unwrap();
    lab.run(run, 0);
    assert!(lab.path("real/no-such-root/b/two/.wmlrun").is_file());
}

#[test]
fn what_can_not_be_below_the_directory_is_an_error_and_nothing_is_made() {
    let set = |name: &str, path: &str| {
        format!("define fileset name=\"{name}\",path=\"{path}\",size=1k,entries=3,dirwidth=10,prealloc\n")
    };
    let process = "define process name=p { thread name=t { flowop hog name=h,value=1 } }\n";
    for (sets, says_what) in [
        (set("a", "/x/../../y"), "`..`"),
        (set("a", ".."), "`..`"),
        (set("../a", "/x"), "`..`"),
        (set("sdx", "/dev"), "is a device"),
        (set("a", "$dir"), "`$dir` has no value"),
        (set("x/s", "/m") + &set("s", "m/x"), "a second file set in `d/m/x/s`"),
    ] {
        let output = call(&(sets.clone() + process), &["--below", "d", "--mkdir"]).run().exits(2);
        says(&output, says_what);
        assert_eq!(output.left(), ["x.wml"], "{sets}");
        let create = Wml::new().file("x.wml", &(sets + "create files\n")).args(["x.wml", "--below", "d", "--mkdir"]);
        assert_eq!(create.run().exits(2).left(), ["x.wml"]);
    }
    // Without the option, the two sets are apart.
    let apart = set("x/s", "/m") + &set("s", "m/x") + process;
    Wml::new().file("x.wml", &apart).args(["plan", "x.wml"]).run().exits(0);
    for (words, code, text) in [
        (&["--below", "d", "--dir", "e"][..], 2, "cannot be used with"),
        (&["--below", "missing"], 3, "the directory `missing` of `--below` does not exist"),
        (&["--below", "x.wml"], 3, "`--below x.wml` is not a directory"),
        (&["--below", ""], 2, "--below"),
    ] {
        let output = call(SCRIPT, words).run().exits(code);
        says(&output, text);
        assert_eq!(output.left(), ["x.wml"], "{words:?}");
    }
    says(&call(SCRIPT, &["--dir", "e"]).run().exits(2), "`--below e` puts below that directory");
}

#[test]
fn every_command_that_runs_scripts_places_their_paths() {
    let lab = Lab::new();
    fs::write(lab.path("x.wml"), SCRIPT).unwrap();
    fs::write(lab.path("x.f"), SCRIPT).unwrap();
    fs::write(
        lab.path("x.prof"),
        "DEFAULTS {\n runtime = 1;\n stats = /tmp;\n}\nCONFIG one {\n personality = x;\n function = generic;\n}\n",
    )
    .unwrap();
    fs::write(lab.path("x.toml"), EXPERIMENT).unwrap();
    for dir in ["repeat", "a", "b", "sweep", "toml", "batch", "own"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    let common = "--runtime 20 --no-quiesce --quiet";
    series(&lab.command(&format!("repeat x.wml --below repeat {common} --runs 2 --results r1")).output().unwrap());
    let mut ab = lab.command(&format!("ab x.wml {common} --blocks 2 --results r2"));
    let ab = ab.args(["--a", "--below a", "--b", "--below b"]).output().unwrap();
    assert!(matches!(ab.status.code(), Some(0 | 10..=12)), "{ab:?}");
    series(
        &lab.command(&format!("sweep x.wml --below sweep {common} --vary where=/p,/q --repeats 1 --results r3"))
            .output()
            .unwrap(),
    );
    series(&lab.command("experiment x.toml --quiet --results r4").output().unwrap());
    lab.run("batch x.prof --below batch --results r5 --no-quiesce --quiet", 0);
    let here = |dir: &str, root: &str| lab.path(dir).join(root).join(".wmlrun").is_file();
    for dir in ["repeat", "a", "b", "batch"] {
        assert!(here(dir, "no-such-root/b/two"), "{dir}");
    }
    for dir in ["sweep", "toml"] {
        assert!(here(dir, "p/two") && here(dir, "q/two"), "{dir}");
    }
    assert!(!Path::new("/no-such-root").exists());
    series(&lab.command("repeat --resume r1 --quiet").output().unwrap());
}

#[test]
fn paths_that_only_a_shell_would_complete_are_errors_before_a_directory_is_made() {
    let script = |path: &str, name: &str| {
        format!(
            "define fileset name={name},path={path},size=1k,entries=3,dirwidth=10,prealloc\n\
             define process name=p {{ thread name=t {{ flowop hog name=h,value=1 }} }}\n"
        )
    };
    for (path, name) in [
        ("\"~/x\"", "s"),
        ("\"~\"", "s"),
        ("\"~root/x\"", "s"),
        ("\"`pwd`/x\"", "s"),
        ("\"/a:~/x\"", "s"),
        ("x", "\"`id`\""),
    ] {
        let output = call(&script(path, name), &[]).run().exits(2);
        says(&output, "no shell reads it");
        assert_eq!(output.left(), ["x.wml"], "{path}");
    }
    for words in [["--dir", "~/x"], ["--set", "dir=~/x"], ["--dir", "`pwd`"], ["--below", "~/x"]] {
        let output = call(&script("$dir", "s"), &words).args(["--mkdir"]).run();
        assert!(matches!(output.code(), 2 | 3), "{}", output.shown());
        assert_eq!(output.left(), ["x.wml"], "{words:?}");
    }
    for output in ["stats dump \"~/out/x\"", "stats xmldump \"`pwd`/x\"", "stats directory \"~/out\""] {
        let text = script("$dir", "s") + "run 0.1\n" + output + "\n";
        let output = Wml::new().file("x.wml", &text).args(["x.wml", "--engine", "null"]).run();
        assert!(matches!(output.code(), 1 | 2), "{}", output.shown());
        says(&output, "in the path of an output");
        assert_eq!(output.left(), ["x.wml"]);
    }
    // Not those: they have no such meaning in Filebench either, or a meaning here.
    for path in ["\"a~b\"", "\"x/~y\"", "\"a*?[b]\"", "\"x$(NONE)y\""] {
        let output = call(&script(path, "s"), &["--runtime", "0.1"]).env("NONE", "z").run().exits(0);
        assert_eq!(output.left().len(), 2, "{path}");
    }
}
