//! Tests `wmlrun replay`: what a recorded program did is done again, with the same results and the same tree at the end; what
//! is not as recorded is named; and nothing outside of the replay's own directory is touched.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use wml::trace::{PathTable, TraceEvent, TraceReader, TraceWriter, TracedCall};

use crate::cmd::{Output, Wml, has, memory, skip};
use crate::mounts::{self, Fs, Mount};

/// A recorded program.
pub(crate) struct RecordedProgram {
    place: TempDir,
}

impl RecordedProgram {
    /// Records a command of the shell in a directory that `lay_out` fills.
    pub(crate) fn new(lay_out: impl FnOnce(&Path), command: &str) -> Self {
        let place = tempfile::Builder::new().prefix("wmlrun-").tempdir_in(memory()).unwrap();
        let work = place.path().join("work");
        fs::create_dir(&work).unwrap();
        lay_out(&work);
        let own = Self { place };
        let (work, trace) = (own.work(), own.trace());
        let script = format!("cd {} && {command}", work.display());
        let args: [&std::ffi::OsStr; 8] = [
            "record".as_ref(),
            "--under".as_ref(),
            work.as_ref(),
            "-o".as_ref(),
            trace.as_ref(),
            "--".as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
        ];
        Wml::below(own.place.path()).args(args).args([script]).run().exits(0);
        own
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.place.path().join("t.wtrace")
    }

    pub(crate) fn dir(&self) -> PathBuf {
        let dir = self.place.path().join("d");
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    pub(crate) fn replay(&self, trace: &Path, more: &[&str]) -> Output {
        let dir = self.dir();
        let args: [&std::ffi::OsStr; 4] = ["replay".as_ref(), trace.as_ref(), "--dir".as_ref(), dir.as_ref()];
        Wml::below(self.place.path()).args(args).args(more).run()
    }

    /// Where the replay has made a path again.
    pub(crate) fn made(&self, path: &Path) -> PathBuf {
        self.dir().join("wmlrun-replay").join(path.strip_prefix("/").unwrap())
    }

    /// The trace with other calls.
    pub(crate) fn changed(&self, mut change: impl FnMut(&TracedCall, &PathTable) -> Vec<TracedCall>) -> PathBuf {
        let path = self.place.path().join("changed.wtrace");
        let mut reader = TraceReader::new(BufReader::new(File::open(self.trace()).unwrap())).unwrap();
        let output = Box::new(File::create(&path).unwrap());
        let mut writer = TraceWriter::new(output, reader.header().clone()).unwrap();
        let mut is_tree_written = false;
        while let Some(events) = reader.block().unwrap() {
            if !std::mem::replace(&mut is_tree_written, true) {
                writer.tree(reader.tree(), reader.paths()).unwrap();
            }
            for event in events {
                let TraceEvent::Call(call) = &event else {
                    writer.event(&event, reader.paths()).unwrap();
                    continue;
                };
                for call in change(call, reader.paths()) {
                    writer.event(&TraceEvent::Call(call), reader.paths()).unwrap();
                }
            }
        }
        writer.finish(reader.end().cloned().unwrap()).unwrap();
        path
    }
}

/// What is below a directory: the type, and of a file its size and how many names it has.
pub(crate) fn tree(dir: &Path) -> BTreeMap<PathBuf, (String, u64, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let is_dir = meta.is_dir();
            // How long the text of a new link is, no call of tar tells.
            let facts = if meta.is_file() { (meta.len(), meta.nlink()) } else { (0, 0) };
            found.insert(
                path.strip_prefix(dir).unwrap().to_owned(),
                (format!("{:?}", meta.file_type()), facts.0, facts.1),
            );
            if is_dir {
                open.push(path);
            }
        }
    }
    found
}

fn lay_out_tree(dir: &Path) {
    for d in 0..40 {
        let below = dir.join(format!("src/d{}/e{d}", d % 7));
        fs::create_dir_all(&below).unwrap();
        for f in 0..8 {
            fs::write(below.join(format!("f{f}")), vec![1; d * 397 + f * 1000]).unwrap();
        }
    }
    symlink("d1", dir.join("src/link")).unwrap();
    fs::hard_link(dir.join("src/d1/e1/f1"), dir.join("src/second")).unwrap();
}

pub(crate) fn tar() -> RecordedProgram {
    RecordedProgram::new(lay_out_tree, "tar cf a.tar src && mkdir out && tar xf a.tar -C out && mv out moved")
}

#[test]
fn tar_does_the_same_again_and_leaves_the_same_tree() {
    let tar = tar();
    // The second replay removes what the first one left.
    for more in [&[][..], &["--speed", "x100"], &["--speed", "timed", "--no-think"]] {
        let output = tar.replay(&tar.trace(), &[more, &["--json", "-"]].concat()).exits(0);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        let run = &value["runs"][0];
        let replay = &run["replay"];
        assert_eq!((run["state"].as_str(), &replay["calls_differ"]), (Some("complete"), &json!({})), "{replay}");
        assert_eq!(replay["replayed"], replay["calls"], "{replay}");
        let has_lateness = run["flowops"][0].get("lateness_ns").is_some();
        assert_eq!(has_lateness, more.contains(&"x100"), "{run}");
        let sum: u64 = run["flowops"].as_array().unwrap().iter().map(|flowop| flowop["ops"].as_u64().unwrap()).sum();
        assert_eq!((run["summary"]["ops"].as_u64(), replay["calls"].as_u64()), (Some(sum), Some(sum)));
        assert_eq!(tree(&tar.work()), tree(&tar.made(&tar.work())));
    }
}

#[test]
fn a_replay_is_a_result() {
    let program = RecordedProgram::new(lay_out_tree, "cat src/d1/e1/* >all");
    let (trace, place) = (program.trace(), program.place.path());
    let file = |name: &str| place.join(name).display().to_string();
    let [first, second, table] = ["first.json", "second.json", "runs.csv"].map(file);
    for result in [&first, &second] {
        program.replay(&trace, &["--json", result, "--append", &table, "--fail-if", "ops < 1"]).exits(0);
    }
    assert_eq!(fs::read_to_string(&table).unwrap().lines().count(), 3);
    let limit = program.replay(&trace, &["--fail-if", "open.latency.mean > 1ns"]).exits(10);
    assert!(limit.stdout.contains("names at end"), "{}", limit.shown());
    let wml = |args: &[&str]| Wml::below(place).args(args).run();
    let compared = wml(&["compare", &first, &second, "--metric", "open.latency.mean"]);
    assert!(matches!(compared.status.code(), Some(0 | 10 | 11)), "{}", compared.shown());
    let page = file("page.html");
    wml(&["report", &first, "-o", &page]).exits(0);
    assert!(fs::read_to_string(&page).unwrap().contains("Times of calls, here and recorded"));
    let shown = wml(&["report", &first, "--format", "text"]).exits(0);
    assert!(shown.stdout.contains("when recorded"), "{}", shown.shown());
    let wrong = program.replay(&trace, &["--runtime", "3"]).exits(2);
    assert!(wrong.stderr.contains("--runtime"), "{}", wrong.shown());
}

#[test]
fn experiments_take_a_trace_in_place_of_a_script() {
    let program = RecordedProgram::new(lay_out_tree, "cat src/d1/e1/* >all; cp -r src/d2 copy");
    let trace = program.trace().display().to_string();
    let ab = |more: &[&str]| Wml::below(program.place.path()).args(["ab", &trace, "--blocks", "2"]).args(more).run();
    for (more, named) in [
        (&["--dir", ".", "--runtime", "3"][..], "`--runtime` has no meaning for the trace"),
        (&["--dir", ".", "--b", "varmail"], "`--speed` has no meaning for the script varmail"),
        (&[], "`--dir`"),
    ] {
        let more = if named.contains("script") { [more, &["--speed", "timed"]].concat() } else { more.to_vec() };
        let output = ab(&more).exits(2);
        assert!(output.stderr.contains(named), "{}", output.shown());
    }
    needs!(mounts::available(&[Fs::Ext4, Fs::Xfs]));
    let [a, b] = [Fs::Ext4, Fs::Xfs].map(|fs| Mount::new(fs, 512 << 20));
    let [on_a, on_b] = [&a, &b].map(|mount| format!("--dir {}", mount.dir().display()));
    let results = program.place.path().join("ab").display().to_string();
    let output = ab(&["--a", &on_a, "--b", &on_b, "--metric", "latency.mean", "--results", &results]);
    assert!(matches!(output.status.code(), Some(0 | 10 | 11)), "{}", output.shown());
    let verdicts = ["better", "worse", "same", "not worse", "unclear", "invalid"];
    let is_verdict = |line: &str| line.split_once(": ").is_some_and(|(verdict, _)| verdicts.contains(&verdict));
    assert!(output.stdout.lines().any(is_verdict), "{}", output.shown());
    let page = program.place.path().join("page.html");
    Wml::below(program.place.path()).args(["report", &results, "-o"]).args([&page]).run().exits(0);
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));
    let repeated = program.place.path().join("repeat").display().to_string();
    let repeat = ["repeat", &trace, "--dir", &a.dir().display().to_string(), "--runs", "2", "--results", &repeated];
    let output = Wml::below(program.place.path()).args(repeat).run();
    assert!(matches!(output.status.code(), Some(0 | 11)), "{}", output.shown());
}

#[test]
fn without_the_order_of_threads_the_second_tar_is_too_early() {
    let tar = tar();
    // Now and then its thread begins late enough.
    let early = (0..20).find_map(|_| {
        let output = tar.replay(&tar.trace(), &["--order", "thread"]);
        (output.status.code() != Some(0)).then_some(output)
    });
    let output = early.expect("twenty replays in the right order").exits(1);
    assert!(output.stderr.contains(" ended differently, first "), "{}", output.shown());
    assert!(output.stderr.contains("instead of"), "{}", output.shown());
    // What it left can be removed.
    tar.replay(&tar.trace(), &[]).exits(0);
}

#[test]
fn a_database_does_the_same_again() {
    if !has("python3") {
        return skip("no python3");
    }
    let program = "import sqlite3\n\
        for mode in ('delete', 'wal'):\n\
        \x20c = sqlite3.connect(mode + '.db')\n\
        \x20c.execute('pragma journal_mode=' + mode)\n\
        \x20c.execute('create table t(a integer primary key, b text)')\n\
        \x20for i in range(40):\n\
        \x20\x20c.execute('insert into t(b) values (?)', ('x' * (i * 13),))\n\
        \x20\x20c.commit()\n\
        \x20c.close()\n";
    let lay_out = |dir: &Path| fs::write(dir.join("p.py"), program).unwrap();
    let sqlite = RecordedProgram::new(lay_out, "exec python3 p.py");
    sqlite.replay(&sqlite.trace(), &[]).exits(0);
    assert_eq!(tree(&sqlite.work()), tree(&sqlite.made(&sqlite.work())));
}

#[test]
fn open_files_of_one_name_are_told_apart() {
    if !has("python3") {
        return skip("no python3");
    }
    let program = "import fcntl, os\n\
        def fails(of):\n\
        \x20try: fcntl.flock(of, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
        \x20except OSError: return\n\
        \x20raise SystemExit('locked twice')\n\
        os.mkdir('d')\n\
        a, b = os.open('d', os.O_PATH), os.open('d', os.O_RDONLY)\n\
        os.close(a)\n\
        os.listdir(b)\n\
        a, b, c = [os.open('p.py', os.O_RDWR) for _ in 'abc']\n\
        os.read(a, 4); os.read(b, 4); os.close(b); os.read(a, 4)\n\
        b = os.dup(c)\n\
        os.close(c)\n\
        os.read(b, 3)\n\
        c = os.open('p.py', os.O_RDWR)\n\
        fcntl.flock(a, fcntl.LOCK_EX)\n\
        fails(b); fails(c)\n\
        os.close(c)\n\
        fails(b)\n\
        os.close(a)\n\
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)\n";
    let lay_out = |dir: &Path| fs::write(dir.join("p.py"), program).unwrap();
    let program = RecordedProgram::new(lay_out, "exec python3 p.py");
    let shown = program.replay(&program.trace(), &[]).exits(0);
    assert!(shown.stdout.contains("failed alike: 3 EAGAIN"), "{}", shown.shown());
    let output = program.replay(&program.trace(), &["--json", "-"]).exits(0);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    let replay = &value["runs"][0]["replay"];
    assert_eq!((&replay["calls_differ"], &replay["failed_alike"]["EAGAIN"]), (&json!({}), &json!(3)), "{replay}");
}

#[test]
fn links_and_pipes_are_made_again() {
    let command = "ln -s src/d1 k; cat k/e1/no; cat k/e1/f1 >copy; chmod 600 k/e1/f1; ln -s later l; cat l; \
        echo x >later; cat l; mkfifo p; ls -l k p; mv src/d2 src/other; cat src/other/e2/f2; rm k";
    let lay_out = |dir: &Path| {
        lay_out_tree(dir);
        // No call of these tells that it is another name of a file.
        fs::remove_file(dir.join("src/second")).unwrap();
    };
    let links = RecordedProgram::new(lay_out, command);
    links.replay(&links.trace(), &[]).exits(0);
    assert_eq!(tree(&links.work()), tree(&links.made(&links.work())));
}

#[test]
fn nothing_of_others_is_touched() {
    let tar = tar();
    let dir = tar.dir();
    fs::create_dir(dir.join("foreign")).unwrap();
    fs::write(dir.join("foreign/file"), "mine").unwrap();
    tar.replay(&tar.trace(), &[]).exits(0);
    let root = dir.join("wmlrun-replay");
    // Something of another program is in the replay's directory: a link to its own.
    symlink(dir.join("foreign"), root.join("mine")).unwrap();
    let before = tree(&dir);
    let refused = tar.replay(&tar.trace(), &[]).exits(3);
    assert!(refused.stderr.contains("mine") && tree(&dir) == before, "{}", refused.shown());
    fs::remove_file(root.join("mine")).unwrap();
    // One of its directories is replaced by a link: the link goes, and not what it leads to.
    let src = tar.made(&tar.work()).join("src");
    fs::rename(&src, dir.join("elsewhere")).unwrap();
    symlink(dir.join("foreign"), &src).unwrap();
    tar.replay(&tar.trace(), &[]).exits(0);
    assert_eq!(fs::read_to_string(dir.join("foreign/file")).unwrap(), "mine");
    // The list was changed.
    let list = dir.join("wmlrun-replay.names");
    fs::write(&list, [fs::read(&list).unwrap(), b"other\0".to_vec()].concat()).unwrap();
    tar.replay(&tar.trace(), &[]).exits(3);
    // The directory is a link to another one.
    fs::remove_file(&list).unwrap();
    fs::remove_dir_all(&root).unwrap();
    symlink(dir.join("foreign"), &root).unwrap();
    tar.replay(&tar.trace(), &[]).exits(3);
    assert_eq!(tree(&dir.join("foreign")).len(), 1);
}
