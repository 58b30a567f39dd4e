//! Tests how many files of a partly preallocated set exist at the start: as many as Filebench creates of the same script,
//! which `preallocation.txt` lists

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use wml::fileset::Tree;
use wml::session::{Session, SilentFront};

use crate::cmd::Wml;
use crate::experiments::{Lab, exits, series};
use crate::support::null;
use crate::tree;

/// A row of the table: the sets in the order of their definitions, and the members that Filebench creates of each.
struct Row<'a> {
    sets: Vec<(u64, u64, u64)>,
    counts: Vec<u64>,
    text: &'a str,
}

fn rows() -> Vec<Row<'static>> {
    let number = |text: &str| text.parse::<u64>().unwrap();
    let set = |text: &str| {
        let (members, prealloc) = text.split_once('@').unwrap();
        let (entries, leafdirs) = members.split_once('+').unwrap_or((members, "0"));
        (number(entries), number(leafdirs), number(prealloc))
    };
    let lines = include_str!("preallocation.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|text| {
            let (sets, counts) = text.split_once(" = ").unwrap();
            Row { sets: sets.split(' ').map(set).collect(), counts: counts.split(' ').map(number).collect(), text }
        })
        .collect()
}

/// A script that defines such sets.
fn script(sets: &[(u64, u64, u64)], dir: &str) -> String {
    let define = |(n, (entries, leafdirs, prealloc)): (usize, &(u64, u64, u64))| {
        format!(
            "define fileset name=s{n},path={dir},size=0,entries={entries},leafdirs={leafdirs},dirwidth=100,prealloc={prealloc}\n"
        )
    };
    sets.iter().enumerate().map(define).collect()
}

/// The numbers of members that exist at the start, by the plan of a script.
fn planned(text: &str, layout_seed: u64) -> Vec<u64> {
    let text = format!("{text}define process name=p {{ thread name=t {{ flowop hog name=h,value=1 }} }}\n");
    let mut front = SilentFront::default();
    let mut session = Session::new(null(100), Arc::default());
    session.read("x.wml", &text, &mut front).unwrap();
    let plan = session.plan(&mut front).unwrap();
    let trees = plan.filesets.iter().map(|spec| Tree::new(spec, layout_seed).unwrap());
    trees.map(|tree| tree.files_at_start() + tree.leafdirs_at_start()).collect()
}

#[test]
fn the_plan_has_as_many_files_as_filebench_creates() {
    let rows = rows();
    assert!(rows.len() > 1000);
    for row in rows {
        assert_eq!(planned(&script(&row.sets, "/nowhere"), 1), row.counts, "{}", row.text);
    }
}

/// What the users of Filebench know by heart.
#[test]
fn the_table_has_the_well_known_numbers() {
    let table: Vec<&str> = rows().iter().map(|row| row.text).collect();
    let known = ["1@50 = 1", "3@50 = 2", "10@80 = 9", "20@80 = 18", "100@80 = 85", "100@50 = 57"];
    let known = known.into_iter().chain(["30@50 1@50 = 15 1", "1@50 30@50 = 1 15", "10@80 3@100 = 9 3"]);
    assert!(known.into_iter().all(|row| table.contains(&row)));
}

#[test]
fn a_run_creates_the_files_of_the_plan_and_its_result_names_the_rule() {
    let sets = [(20, 0, 80), (0, 7, 100), (30, 0, 50), (5, 0, 100)];
    let text = script(&sets, "$dir") + "create files\n";
    for (seed, rule) in [(1, "as many as Filebench"), (2, "the exact share")] {
        let call = Wml::new().file("x.wml", &text).args(["x.wml", "--keep", "--dir", ".", "--layout-seed"]);
        let output = call.args([seed.to_string()]).run().exits(0);
        let of_set = |n: usize| {
            let dirs = std::fs::read_dir(output.dir().join(format!("s{n}"))).unwrap();
            let dirs = dirs.map(|dir| dir.unwrap().path()).filter(|path| path.is_dir());
            dirs.map(|dir| std::fs::read_dir(dir).unwrap().count() as u64).sum::<u64>()
        };
        assert_eq!((0..4).map(of_set).collect::<Vec<_>>(), planned(&text.replace("create files", ""), seed), "{rule}");
    }
    let run = text.replace("create files", "")
        + "define process name=p { thread name=t { flowop statfile name=s,filesetname=s3 } }\n";
    let output = Wml::new().file("x.wml", &run).args(["x.wml", "--runtime", "0.1"]).result().run().exits(0);
    let result = output.result();
    let sets = result["runs"][0]["filesets"].as_array().unwrap();
    let rules = sets.iter().map(|set| set["layout"]["prealloc_rule"].as_str());
    let rule = Some("as many as Filebench");
    assert_eq!(rules.collect::<Vec<_>>(), [rule, None, rule, None]);
}

/// A single file that a thread removes and creates: without it, the thread would be stuck.
#[test]
fn a_thread_can_work_on_the_only_file_of_a_set() {
    for seed in ["1", "2", "3"] {
        let text = "define fileset name=b,path=$dir,size=16k,entries=1,dirwidth=1000,prealloc=80\n\
                    define process name=p { thread name=t { flowop deletefile name=d,filesetname=b\n\
                    flowop createfile name=c,filesetname=b,fd=1\nflowop closefile name=e,fd=1 } }\n";
        let call = Wml::new().file("x.wml", text).args(["x.wml", "--runtime", "0.2", "--layout-seed", seed]);
        let output = call.result().run().exits(0);
        assert!(output.result()["runs"][0]["summary"]["ops"].as_u64().unwrap() > 10);
    }
}

/// The parts of a set in several directories are one set of Filebench, and the sets of instances are alike.
#[test]
fn sets_in_several_directories_and_of_instances_have_the_numbers_of_one_set() {
    let spread =
        "define fileset name=s,path=\"/nowhere/a:/nowhere/b:/nowhere/c\",size=0,entries=100,dirwidth=100,prealloc=80\n";
    assert_eq!(planned(spread, 1).iter().sum::<u64>(), 85);
    let first = "define fileset name=other,path=/nowhere,size=0,entries=30,dirwidth=100,prealloc=50\n";
    assert_eq!(
        planned(&format!("{first}{spread}"), 1)[0],
        planned(&script(&[(30, 0, 50), (100, 0, 80)], "/nowhere"), 1)[0]
    );
    let own = format!(
        "{first}define fileset name=s,path=/nowhere,size=0,entries=10,dirwidth=100,prealloc=80,perinstance\n\
         define process name=q,instances=3 {{ thread name=t {{ flowop statfile name=f,filesetname=s }} }}\n"
    );
    let expected = planned(&script(&[(30, 0, 50), (10, 0, 80)], "/nowhere"), 1);
    assert_eq!(planned(&own, 1), [expected[0], expected[1], expected[1], expected[1]]);
}

/// A script whose set is preallocated in part, or as a whole.
fn statfiles(prealloc: u64) -> String {
    format!(
        "define fileset name=s,path=$dir,size=0,entries=30,dirwidth=100,prealloc={prealloc}\n\
         define process name=p {{ thread name=t {{ flowop statfile name=f,filesetname=s\n\
         flowop finishoncount name=end,value=1000 }} }}\n"
    )
}

/// Turns a result into one of an earlier version, which created other numbers of files and did not record the rule.
fn make_old(path: &Path) {
    let mut document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for set in document["runs"][0]["filesets"].as_array_mut().unwrap() {
        set["layout"].as_object_mut().unwrap().remove("prealloc_rule");
    }
    std::fs::write(path, document.to_string()).unwrap();
}

#[test]
fn results_of_earlier_versions_have_other_numbers_of_files() {
    for prealloc in [80, 100] {
        let lab = Lab::new();
        std::fs::write(lab.path("x.wml"), statfiles(prealloc)).unwrap();
        let run = "x.wml --engine null --no-quiesce --runtime 60 --format none --quiet --json";
        lab.run(&format!("{run} a.json"), 0);
        lab.run(&format!("{run} b.json"), 0);
        // Two runs have any verdict.
        let compare = |words: &str| lab.command(&format!("compare a.json b.json {words}")).output().unwrap();
        let differs = || {
            let document: Value = serde_json::from_slice(&compare("--anyway --format json").stdout).unwrap();
            let found = document["differs"].as_array().unwrap().clone();
            found.into_iter().find(|difference| difference["what"] == "preallocated files")
        };
        assert_eq!(differs(), None);
        make_old(&lab.path("a.json"));
        let rules = json!({ "what": "preallocated files", "a": "each by chance", "b": "as many as Filebench", "kind": "workload" });
        assert_eq!(differs(), (prealloc == 80).then_some(rules));
        let output = compare("");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code() == Some(2), prealloc == 80, "{shown}");
        assert_eq!(shown.contains("they differ in preallocated files"), prealloc == 80, "{shown}");
    }
}

#[test]
fn an_experiment_of_an_earlier_version_whose_sets_are_preallocated_in_part_is_not_resumed() {
    for prealloc in [80, 100] {
        let lab = Lab::new();
        std::fs::write(lab.path("x.wml"), statfiles(prealloc)).unwrap();
        let repeat = "repeat x.wml --engine null --no-quiesce --runtime 60 --runs 2 --results r --quiet";
        series(&lab.command(repeat).output().unwrap());
        make_old(&lab.path("r/runs/0001.json"));
        let file = lab.path("r/experiment.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let tool = text.lines().find(|line| line.starts_with("tool = ")).unwrap();
        std::fs::write(&file, text.replace(tool, "tool = \"0.0.1 of yesterday\"")).unwrap();
        let before = tree::tree(&lab.path("r"));
        let why = "run 1 was made by an earlier version, which preallocated other numbers of files";
        let refused = lab.run("repeat --resume r", 3);
        assert_eq!(refused.contains(why), prealloc == 80, "{refused}");
        assert_eq!(refused.contains("changed since the experiment was started"), prealloc == 100, "{refused}");
        let anyway = lab.command("repeat --resume r --anyway").output().unwrap();
        if prealloc == 80 {
            assert!(exits(&anyway, 3, "--anyway").contains(why));
            assert_eq!(tree::tree(&lab.path("r")), before);
        } else {
            series(&anyway);
        }
    }
}
