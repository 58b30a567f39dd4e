//! Tests the snapshot study's scripts and profiles, written for Filebench 1.3: unchanged, one on the trees of another,
//! and through `wmlrun batch`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cmd::{Output, Wml, count, flowop, flowops, memory, number, short_or_long};
use crate::mounts::{Fs, Mount, available};

const SCRIPTS: [&str; 3] = ["oltp_sync", "randomwrite_oltp_ager", "randomwrite_ager"];

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(name)).unwrap()
}

/// The values that the test makes smaller.
fn small(script: &str) -> &'static [(&'static str, &'static str)] {
    match script {
        "oltp_sync" => &[("filesize", "4m"), ("logfilesize", "2m"), ("nshadows", "10"), ("ndbwriters", "2")],
        "randomwrite_oltp_ager" => &[("filesize", "2m"), ("logfilesize", "2m")],
        _ => &[],
    }
}

fn call(script: &str, place: &Path, dir: &Path, sets: &[(&str, &str)]) -> Output {
    let file = format!("{script}.f");
    let call = Wml::below(place).file(&file, &text(&file)).result();
    call.args([file.as_str(), "--runtime", short_or_long("0.4", "3"), "--dir", dir.to_str().unwrap()]).sets(sets).run()
}

#[test]
fn the_scripts_are_read_as_the_sun_dialect_without_warnings() {
    for script in SCRIPTS {
        let output = Wml::new().file("s.f", &text(&format!("{script}.f"))).args(["check", "s.f"]).run().exits(0);
        assert_eq!(output.shown(), "", "{script}");
    }
}

#[test]
fn the_scripts_run_unchanged() {
    for script in SCRIPTS {
        let dir = tempfile::tempdir_in(memory()).unwrap();
        let output = call(script, &memory(), dir.path(), small(script)).exits(0);
        assert!(output.stdout.contains("personality successfully loaded"), "{}", output.stdout);
        let result = output.result();
        assert_eq!(result["script"]["dialect"], "sun", "{}", result["script"]["dialect_reason"]);
        let run = output.only_run();
        assert_eq!(run["state"], "complete");
        for f in flowops(&run).iter().filter(|f| f["kind"] == "read" || f["kind"] == "write") {
            assert!(count(f, "ops") > 0 && f["errors"].as_object().unwrap().is_empty(), "{f}");
        }
        // Sizes are exact: `filesizegamma=0`.
        let bytes: u64 = run["filesets"].as_array().unwrap().iter().map(|f| count(f, "bytes")).sum();
        assert!(bytes.is_multiple_of(1 << 20), "{bytes}");
    }
}

/// Every file below a directory, with its inode and size.
fn inodes(dir: &Path) -> BTreeMap<PathBuf, (u64, u64)> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                left.push(entry.path());
            } else if !entry.file_name().to_string_lossy().starts_with('.') {
                found.insert(entry.path(), (meta.ino(), meta.len()));
            }
        }
    }
    found
}

#[test]
fn one_workload_ages_the_files_of_another_in_place() {
    needs!(available(&[Fs::Btrfs]));
    let mount = Mount::new(Fs::Btrfs, 2 << 30);
    let dir = mount.dir().join("bench");
    fs::create_dir(&dir).unwrap();
    let measured = [("filesize", "30m"), ("logfilesize", "2m"), ("nshadows", "5"), ("ndbwriters", "2")];
    let measured = [&measured[..], &[("nfiles", short_or_long("3", "10"))]].concat();
    let aged = [("filesize", "1m"), ("logfilesize", "1m"), ("nfiles", short_or_long("3", "10"))];
    let step = |script, sets: &[(&str, &str)]| {
        let run = call(script, &memory(), &dir, sets).exits(0).only_run();
        assert_eq!(run["state"], "complete");
        inodes(&dir)
    };
    let size = |files: &BTreeMap<PathBuf, (u64, u64)>| files.values().map(|(_, size)| *size).max().unwrap();
    let first = step("oltp_sync", &measured);
    let second = step("randomwrite_oltp_ager", &aged);
    let third = step("oltp_sync", &measured);
    assert_eq!((size(&first), size(&second), size(&third)), (30 << 20, 1 << 20, 30 << 20));
    let numbers = |files: &BTreeMap<PathBuf, (u64, u64)>| -> Vec<_> {
        files.iter().map(|(path, (inode, _))| (path.clone(), *inode)).collect()
    };
    assert_eq!(numbers(&first), numbers(&second), "the ager works on the same files");
    assert_eq!(numbers(&first), numbers(&third));
    assert_eq!(first.len(), short_or_long(4, 11));
}

/// The shipped `iozone_*` and `randomwrite_ager` work on the same two files, whatever size each gives them.
#[test]
fn iozone_measures_the_files_that_the_ager_ages() {
    let dir = tempfile::tempdir_in(memory()).unwrap();
    let step = |name: &str, sets: &[(&str, &str)]| {
        // Those of IOzone end by themselves.
        let time = if name.starts_with("iozone") { "60" } else { "0.2" };
        let call = Wml::below(&memory()).args([name, "--runtime", time, "--dir", dir.path().to_str().unwrap()]);
        assert_eq!(call.sets(sets).result().run().exits(0).only_run()["state"], "complete", "{name}");
        inodes(dir.path())
    };
    let measured = [("filesize", "8m"), ("iosize", "1m")];
    let written = step("iozone_write", &measured);
    let names: Vec<_> = written.keys().map(|path| path.strip_prefix(dir.path()).unwrap().to_owned()).collect();
    let wanted = ["iozonefileset1/00000001/00000001", "iozonefileset2/00000001/00000001"].map(PathBuf::from);
    assert_eq!(names, wanted);
    let aged = step("randomwrite_ager", &[("filesize", "1m")]);
    assert!(aged.values().all(|(_, size)| *size == 1 << 20), "{aged:?}");
    for (path, (inode, _)) in &aged {
        assert_eq!(*inode, written[path].0, "the ager works on the same files");
    }
    for name in ["iozone_randread", "iozone_fwrite", "iozone_write", "iozone_rewrite"] {
        assert_eq!(step(name, &measured), written, "{name}: the same inodes at the full size");
    }
}

/// Runs a profile of the study with its personalities in the same directory. Returns the results directory and the
/// output.
fn batch(profile: &str, sets: &[(&str, &str)]) -> (Output, PathBuf) {
    let mut call = Wml::below(&memory()).file(&format!("{profile}.prof"), &text(&format!("{profile}.prof")));
    for script in SCRIPTS {
        call = call.file(&format!("{script}.f"), &text(&format!("{script}.f")));
    }
    let dir = call.dir().join("bench");
    fs::create_dir(&dir).unwrap();
    let words =
        ["batch", &format!("{profile}.prof"), "--runtime", short_or_long("0.4", "3"), "--format", "filebench-1.4"];
    let output = call.args(words).args(["--dir".into(), dir.into_os_string()]).sets(sets).result().run().exits(0);
    let homes: Vec<_> = fs::read_dir(output.dir().join("stats")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(homes.len(), 1);
    (output, homes[0].clone())
}

#[test]
fn a_profile_leaves_a_tree_of_results() {
    let sets = [("filesize", "4m"), ("logfilesize", "2m"), ("nshadows", "10"), ("ndbwriters", "2")];
    let (output, home) = batch("oltp_sync", &sets);
    // Both lines without effect are told, the misspelt one with what it was meant to be.
    assert_eq!(output.stderr.matches("warning[W0402]").count(), 2, "{}", output.stderr);
    for words in ["nshadows=200", "memberthread=512k", "did you mean `memperthread`?", "`nshadows = 200;`"] {
        assert!(output.stderr.contains(words), "{words}\n{}", output.stderr);
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = home.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with(&format!("{host}-zfs-oltp_sync-")), "{name}");
    let mut names: Vec<_> = fs::read_dir(home.join("oltp_sync"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expect = [
        "oltp_sync.f",
        "report.html",
        "result.json",
        "stats.oltp_sync.out",
        "stats.oltp_sync.xml",
        "thisrun.f",
        "thisrun.prof",
    ];
    assert_eq!(names, expect);
    let file = |name: &str| fs::read_to_string(home.join("oltp_sync").join(name)).unwrap();
    assert!(file("thisrun.prof").starts_with("# \"OLTP with synchronous writes\"\n"));
    assert!(file("thisrun.f").contains("set $nshadows=10\n") && !file("thisrun.f").contains("memberthread"));
    assert!(file("stats.oltp_sync.out").contains("\nshadowread "));
    let page = fs::read_to_string(home.join("index.html")).unwrap();
    for part in ["Throughput breakdown", "Latency breakdown", "shadowread", "stats.oltp_sync.out", "complete"] {
        assert!(page.contains(part), "{part}");
    }
    let run = output.only_run();
    assert!(number(&run, &["summary", "ops"]) > 0.0 && count(flowop(&run, "shadowread"), "ops") > 0);
    assert!(output.stdout.lines().any(|line| line.starts_with("IO Summary:")), "{}", output.stdout);
}

#[test]
fn a_workload_of_a_batch_can_be_run_again_by_its_script() {
    let (output, home) = batch("ager", &[]);
    assert!(!output.stderr.contains("warning["), "{}", output.stderr);
    let script = home.join("ager/thisrun.f");
    let again = Wml::below(&memory()).args([script.as_os_str()]).result().run().exits(0);
    assert!(count(flowop(&again.only_run(), "rand-write2"), "ops") > 0);
}

#[test]
fn the_profiles_of_the_agers_run() {
    for (profile, config, ops) in [("oltp_ager", "oltp_ager", "dbwrite-a"), ("ager", "ager", "rand-write1")] {
        let (output, home) = batch(profile, &[]);
        assert!(count(flowop(&output.only_run(), ops), "ops") > 0);
        assert!(home.join(config).join(format!("stats.{config}.out")).is_file());
        let script = fs::read_to_string(home.join(config).join("thisrun.f")).unwrap();
        assert!(script.contains("set $filesize=1m\n"), "{script}");
    }
}

#[test]
fn a_profile_sets_the_variables_of_a_loaded_script() {
    let profile = "DEFAULTS {\n  runtime = 1;\n  nfiles = 20;\n}\nCONFIG one {\n  personality = own;\n}\n";
    let call = Wml::below(&memory()).file("p.prof", profile).file("own.f", "load varmail\n");
    let output = call.args(["batch", "p.prof", "--runtime", "0.2", "--no-quiesce"]).result().run().exits(0);
    assert!(!output.stderr.contains("W0402"), "{}", output.shown());
    assert_eq!(output.result()["runs"][0]["variables"]["nfiles"], 20);
}

#[test]
fn workloads_run_in_order_and_invalid_ones_are_reported_first() {
    let profile = "DEFAULTS {\n  runtime = 1;\n  nfiles = 20;\n  nthreads = 2;\n}\n\
        CONFIG one {\n  personality = varmail;\n}\n\
        CONFIG two {\n  personality = webproxy;\n  nfiles = 30;\n  stats = x;\n}\n";
    let words = ["batch", "p.prof", "--runtime", "0.2", "--no-quiesce"];
    let output = Wml::below(&memory()).file("p.prof", profile).args(words).result().run();
    let output = output.exits(0);
    let result = output.result();
    let files: Vec<_> =
        result["runs"].as_array().unwrap().iter().map(|run| run["variables"]["nfiles"].as_u64().unwrap()).collect();
    assert_eq!(files, [20, 30]);
    assert!(output.stderr.contains("`stats = x;` of `CONFIG two` has no effect"), "{}", output.stderr);
    assert!(result["script"]["path"] == "p.prof" && result["script"]["text"] == profile);
    for (profile, words) in [
        (profile.replace("webproxy", "webpoxy"), "did you mean `webproxy`?"),
        (profile.replace("CONFIG two", "CONFIG one"), "E0207"),
        (profile.replace("runtime = 1", "runtime = soon"), "is not a run time"),
        (profile.replace("personality = varmail", "function = rateloop;\n  personality = varmail"), "E0307"),
        (profile.replace("{\n  personality = varmail;", "{"), "names no personality"),
    ] {
        let output = Wml::below(&memory()).file("p.prof", &profile).args(["batch", "p.prof"]).run().exits(2);
        assert!(output.stderr.contains(words), "{words}\n{}", output.stderr);
        assert_eq!(output.left(), ["p.prof"], "nothing was created");
    }
    let wrong = Wml::below(&memory()).file("p.prof", profile).args(["batch", "p.prof", "--set", "nfils=3"]).run();
    assert!(wrong.exits(2).stderr.contains("did you mean `nfiles`?"));
}

#[test]
fn workloads_of_a_profile_are_selected_and_have_variables_of_their_own() {
    let profile = "DEFAULTS {\n  runtime = 1;\n  nfiles = 20;\n  nthreads = 2;\n}\n\
        CONFIG mail {\n  personality = varmail;\n}\n\
        CONFIG web {\n  personality = webproxy;\n}\n\
        CONFIG broken {\n  personality = webpoxy;\n}\n";
    let batch = |words: &[&str]| {
        let call =
            Wml::below(&memory()).file("p.prof", profile).args(["batch", "p.prof", "--runtime", "0.2", "--no-quiesce"]);
        call.args(words).result().run()
    };
    let words = ["--only", "mail,web", "--set", "web.nfiles=30", "--set", "nthreads=3", "--format", "markdown-runs"];
    let output = batch(&words).exits(0);
    let result = output.result();
    let of = |run: usize, name: &str| result["runs"][run]["variables"][name].as_u64().unwrap();
    assert_eq!((of(0, "nfiles"), of(1, "nfiles"), of(0, "nthreads"), of(1, "nthreads")), (20, 30, 3, 3));
    assert_eq!((&result["runs"][0]["workload"], &result["runs"][1]["workload"]), (&"mail".into(), &"web".into()));
    // One table for all of them.
    let rows: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(rows.len(), 4, "{}", output.stdout);
    assert!(rows[2].starts_with("| mail | ") && rows[3].starts_with("| web | "), "{}", output.stdout);
    for (words, says) in [
        (&[][..], "`--only mail,web` runs those without errors"),
        (&["--only", "mial"], "the profile has no `CONFIG mial`\n  = help: did you mean `mail`?"),
        (&["--only", "mail,web", "--set", "web.nfils=3"], "no personality of `CONFIG web` uses `$nfils` (`3`)"),
    ] {
        let output = batch(words).exits(2);
        assert!(output.stderr.contains(says), "{says}\n{}", output.stderr);
    }
}
