//! Tests `wmlrun fidelity`: a script that was learned of a program is compared with it, and a change of the script is named.

use std::fs;
use std::path::PathBuf;

use crate::cmd::{Output, Wml, has};

/// A program with a journal: so many transactions, each with the calls of a small database.
const PROGRAM: &str = r"
import os, random, sys
dir, transactions = sys.argv[1], int(sys.argv[2])
draws = random.Random()
table = os.open(dir + '/table', os.O_RDWR | os.O_CREAT)
os.ftruncate(table, 400 * 4096)
for n in range(transactions):
    os.pread(table, 4096, draws.randrange(400) * 4096)
    os.stat(dir + '/table')
    journal = os.open(dir + '/journal', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for k in range(1 + n % 3):
        os.write(journal, bytes(512))
    os.fdatasync(journal)
    os.pwrite(table, bytes(4096), draws.randrange(400) * 4096)
    os.fdatasync(table)
    os.close(journal)
    os.unlink(dir + '/journal')
";

struct Learned {
    own: Wml,
    script: PathBuf,
    program: Vec<String>,
}

impl Learned {
    /// The script of the program with a journal.
    fn new() -> Self {
        let own = Wml::new().file("program.py", PROGRAM);
        let path = |name: &str| own.dir().join(name).to_str().unwrap().to_owned();
        fs::create_dir(path("d")).unwrap();
        let program = ["python3".to_owned(), path("program.py"), path("d"), "400".to_owned()].to_vec();
        let learned = Self::of(own, program);
        let text = fs::read_to_string(&learned.script).unwrap();
        assert!(text.contains("# Transaction: loop1, ends with `"), "{text}");
        learned
    }

    /// The script of a program that works in the directory `d`.
    fn of(own: Wml, program: Vec<String>) -> Self {
        let at = |name: &str| own.dir().join(name);
        Wml::below(own.dir())
            .args(["record", "-o"])
            .args([at("a.wtrace")])
            .args(["--under"])
            .args([at("d")])
            .args(["--"])
            .args(&program)
            .alone()
            .run()
            .exits(0);
        let learned = Wml::new().args(["learn"]).args([at("a.wtrace")]).run().exits(0);
        let script = at("app.wml");
        fs::write(&script, learned.stdout).unwrap();
        Self { own, script, program }
    }

    fn compared(&self, more: &[&str]) -> Output {
        Wml::below(self.own.dir())
            .args(["fidelity"])
            .args([&self.script])
            .args(["--dir"])
            .args([self.own.dir().join("d")])
            .args(["--pairs", "4"])
            .args(more)
            .args(["--"])
            .args(&self.program)
            .alone()
            .run()
    }

    /// The verdicts of the rows, by their names.
    fn verdict(done: &Output, row: &str) -> String {
        let document: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap();
        let found = rows.iter().find(|found| found["name"] == row).unwrap_or_else(|| panic!("{row}: {document:#}"));
        found["verdict"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_learned_script_does_what_the_program_does_and_a_changed_one_is_named() {
    needs!(has("python3"), "there is no python3");
    let learned = Learned::new();
    let done = learned.compared(&["--json"]);
    // Times may differ on a machine that is busy; what is done does not.
    for row in [
        "share of write",
        "write a transaction",
        "open a transaction",
        "unlink a transaction",
        "syncs a transaction",
        "order of syncs, distance",
        "files",
    ] {
        assert_eq!(Learned::verdict(&done, row), "inside", "{row}: {}", done.stdout);
    }
    assert!(done.stderr.contains("pair 3: ") && done.stderr.contains(" inside, "), "{}", done.stderr);
    assert!(!learned.own.dir().join("d/wmlrun-fidelity").exists());

    // A sync is gone, and the sizes are twice as large.
    let text = fs::read_to_string(&learned.script).unwrap();
    let syncs: Vec<&str> = text.lines().filter(|line| line.contains("flowop fdatasync")).collect();
    assert_eq!(syncs.len(), 2, "{text}");
    fs::write(&learned.script, text.replace(syncs[0], "").replace("iosize=512", "iosize=1k")).unwrap();
    let done = learned.compared(&["--write", "--json"]).exits(10);
    for row in ["syncs a transaction", "fdatasync a transaction", "bytes written a transaction"] {
        assert_eq!(Learned::verdict(&done, row), "outside", "{row}: {}", done.stdout);
    }
    let text = fs::read_to_string(&learned.script).unwrap();
    assert!(
        text.contains("\n# Fidelity: Outside of the limits: ") && !text.contains("not compared with the program"),
        "{text}"
    );
    Wml::new().args(["check"]).args([&learned.script]).run().exits(0);
}

/// It copies descriptors, as all that use `fts` do, and opens no file. Files beside its own are none of it.
#[test]
fn a_program_that_goes_through_a_tree_once_is_compared_as_a_whole() {
    needs!(has("du"), "there is no du");
    let own = Wml::new();
    for n in 0..600 {
        let dir = own.dir().join(format!("d/{}/{:02}", if n < 400 { "own" } else { "other" }, n * n % 61));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(n.to_string()), "").unwrap();
    }
    let tree = own.dir().join("d/own").to_str().unwrap().to_owned();
    let learned = Learned::of(own, ["du".to_owned(), "-s".to_owned(), tree].to_vec());
    let text = fs::read_to_string(&learned.script).unwrap();
    assert!(text.contains("\nset mode quit alldone\n") && !text.contains("No flowop makes"), "{text}");
    let done = learned.compared(&["--json"]);
    for row in ["stat a run", "files"] {
        assert_eq!(Learned::verdict(&done, row), "inside", "{row}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("dup"), "{}", done.stdout);
}

#[test]
fn what_cannot_be_compared_is_an_error_and_leaves_nothing() {
    needs!(has("python3"), "there is no python3");
    let learned = Learned::new();
    let fails = Wml::below(learned.own.dir())
        .args(["fidelity"])
        .args([&learned.script])
        .args(["--dir"])
        .args([learned.own.dir().join("d")])
        .args(["--", "false"])
        .alone()
        .run()
        .exits(1);
    assert!(fails.stderr.contains("the command itself ended with status 1"), "{}", fails.stderr);
    // The script ends with an error of its own.
    let text = fs::read_to_string(&learned.script).unwrap();
    fs::write(&learned.script, text.replace("flowop deletefile", "flowop deletefyle")).unwrap();
    let wrong = learned.compared(&[]).exits(1);
    assert!(wrong.stderr.contains("deletefyle"), "{}", wrong.stderr);
    // The header names a call that the script does not make.
    let other = text.replace("ends with `", "ends with `truncate` of x, not `");
    fs::write(&learned.script, other).unwrap();
    let none = learned.compared(&[]).exits(2);
    assert!(none.stderr.contains("the program makes no transactions that end with `truncate` of "), "{}", none.stderr);
    fs::write(&learned.script, text).unwrap();
    // The program itself is no trace of it.
    let no_trace = Wml::below(learned.own.dir())
        .args(["fidelity"])
        .args([&learned.script])
        .args(["--dir", ".", "--trace"])
        .args([learned.own.dir().join("program.py")])
        .run()
        .exits(2);
    assert!(no_trace.stderr.contains("it is no trace"), "{}", no_trace.stderr);
    // A directory of this name is somebody's.
    let foreign = learned.own.dir().join("d/wmlrun-fidelity");
    fs::create_dir(&foreign).unwrap();
    let refused = learned.compared(&[]).exits(3);
    assert!(refused.stderr.contains("wmlrun-fidelity") && foreign.exists(), "{}", refused.stderr);
}
