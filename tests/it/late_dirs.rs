//! Tests `latedirs`: the directories of a file set are created during the run, each once when it is first needed, and
//! foreign objects in their place are not followed.

use std::fs;
use std::path::Path;

use crate::cmd::{Wml, flowop};
use crate::strace;

const SET: &str = "define fileset name=tree,path=$dir,entries=60,dirwidth=5,dirgamma=0,size=0,latedirs\n";

fn script(set: &str, count: u32) -> String {
    format!(
        "# dialect: fsl\nset mode quit alldone\n{set}define process name=p,instances=2 {{ thread name=t,instances=2 {{\n\
         flowop createfile name=create,filesetname=tree,fd=1\n\
         flowop closefile name=close,fd=1\n\
         flowop finishoncount name=end,value={count},target=close }} }}\n"
    )
}

/// Directories and files below one.
fn below(dir: &Path) -> (u64, u64) {
    let mut found = (0, 0);
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap).filter(|e| e.file_name() != ".wmlrun") {
        if entry.file_type().unwrap().is_dir() {
            let (dirs, files) = below(&entry.path());
            found = (found.0 + 1 + dirs, found.1 + files);
        } else {
            found.1 += 1;
        }
    }
    found
}

fn call(text: &str, args: &[&str]) -> Wml {
    let call = Wml::new().folder("d").file("x.wml", text).sets(&[("dir", "d")]);
    call.args(["x.wml", "--runtime", "60", "--no-quiesce"]).args(args).result()
}

#[test]
fn a_directory_is_created_with_its_first_file() {
    // Two processes of two threads make five files each: whoever comes first makes a directory, the others find it.
    let output = call(&script(SET, 5), &[]).run().exits(0);
    let created = flowop(&output.only_run(), "create")["ops"].as_u64().unwrap();
    let (dirs, files) = below(&output.dir().join("d/tree"));
    assert!((20..=24).contains(&created) && files == created, "{created} {files}");
    assert!((4..=16).contains(&dirs), "{dirs} directories for {files} files");
    // All of them: as many as a set that is made before.
    let output = call(&script(SET, 100), &[]).run().exits(0);
    let before = call(&script(&SET.replace(",latedirs", ""), 100), &[]).run().exits(0);
    assert_eq!(below(&output.dir().join("d/tree")), below(&before.dir().join("d/tree")));
}

#[test]
fn each_directory_is_created_by_one_call() {
    needs!(strace::available());
    // One thread: two may both try.
    let text = script(SET, 60).replace("instances=2", "instances=1");
    let (output, log) = strace::run(call(&text, &[]));
    let output = output.exits(0);
    let steps = log.of_steps();
    let made: Vec<_> = steps.calls().filter(|call| call.name == "mkdirat").collect();
    assert!(made.iter().all(|call| call.error().is_none()));
    assert_eq!((made.len() as u64, 60), below(&output.dir().join("d/tree")));
}

#[test]
fn each_run_starts_without_late_directories() {
    let text = format!("{}run 60\nsystem \"find $dir/tree -type d | wc -l\"\nrun 60\n", script(SET, 5));
    let output = call(&text, &["--allow-system"]).run().exits(0);
    let found: u64 = output.stdout.lines().find_map(|line| line.trim().parse().ok()).unwrap();
    assert!(found > 1, "{}", output.shown());
    let result = output.result();
    for run in result["runs"].as_array().unwrap() {
        let created = flowop(run, "create")["ops"].as_u64().unwrap();
        assert!((20..=24).contains(&created), "the second run begins with nothing: {created}\n{}", output.shown());
    }
    let (dirs, files) = below(&output.dir().join("d/tree"));
    assert!(files <= 24 && dirs <= 16, "{dirs} {files}");
    Wml::new().args(["clean"]).args([output.dir().join("d")]).run().exits(0);
    assert!(!output.dir().join("d/tree").exists());
}

/// An object that another program puts in the place of a directory during the run is not used as the directory.
#[test]
fn a_link_in_the_place_of_a_directory_is_not_followed() {
    let text = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=tree,path=$dir,entries=5,dirwidth=5,dirgamma=0,size=0,latedirs\n\
        define process name=p { thread name=t {\n\
        flowop command name=c,value=\"mkdir elsewhere; ln -s ../../elsewhere $dir/tree/00000001\"\n\
        flowop createfile name=create,filesetname=tree,fd=1 } }\n";
    let output = call(text, &["--allow-system"]).run();
    assert_ne!(output.code(), 0, "{}", output.shown());
    assert_eq!(fs::read_dir(output.dir().join("elsewhere")).unwrap().count(), 0, "{}", output.shown());
}

#[test]
fn latedirs_excludes_what_needs_directories_before_the_run() {
    for more in [",prealloc", ",reuse", ",leafdirs=3"] {
        let output = call(&script(&SET.replace(",latedirs", &format!(",latedirs{more}")), 5), &[]).run().exits(2);
        assert!(output.stderr.contains("`latedirs`"), "{}", output.shown());
    }
}
