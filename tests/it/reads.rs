//! Tests the files that the program reads although nobody has named them: its state, the files of results folders, and
//! what a script, a profile or an experiment file names. In place of each may be a pipe, a device, a socket, a huge file,
//! a text of someone else, or a file of another user: the program ends soon, in little memory, and quotes nothing of it.
//!
//! `WMLRUN_LONG=1` takes all of them; otherwise it is a sample.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cmd::{Wml, binary, long, tool};
use crate::tidy::program;
use crate::tmux::{Terminal, terminals};

/// What is in the place of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hostile {
    /// A pipe without a writer.
    Pipe,
    /// A link to a device without an end.
    Zeros,
    Socket,
    /// A file of a gibibyte, without blocks.
    Huge,
    /// A text of someone else, in several forms.
    Text(&'static str),
    /// A text that belongs to another user.
    OfOther,
}

/// A word that no output may contain.
const SECRET: &str = "hunter2";

const HOSTILE: [Hostile; 10] = [
    Hostile::Pipe,
    Hostile::Zeros,
    Hostile::Socket,
    Hostile::Huge,
    Hostile::Text("root:hunter2:19000:0:99999:7:::\nhunter2 hunter2\n"),
    Hostile::Text("{\"schema\": \"hunter2\", \"runs\": [{\"state\": \"hunter2\"}], \"event\": \"hunter2\"}\n"),
    Hostile::Text(
        "{\"schema\": \"wmlrun.result/1\", \"runs\": [{\"state\": \"hunter2\", \"variables\": \"hunter2\"}]}\n",
    ),
    Hostile::Text("schema = \"hunter2\"\nname = hunter2\n[[hunter2]]\n"),
    Hostile::Text(
        "{\"event\": \"started\", \"run\": \"hunter2\"}\n{\"schema\": \"wmlrun.floors/1\", \"sessions\": \"hunter2\"}\n",
    ),
    Hostile::OfOther,
];

/// A file that is read, and commands that read it.
struct ReadPlace {
    /// The file, in the working directory.
    file: &'static str,
    commands: &'static [&'static str],
}

/// The files by the source files that read them. A source file of the program that reads and is not here fails
/// `every_reader_has_a_place`; one whose reads are not of such files has its reason instead of a place.
const READERS: &[(&str, &[ReadPlace], &str)] = &[
    (
        "experiment/floor.rs",
        &[ReadPlace {
            file: "state/wmlrun/floors.json",
            commands: &["floor --list", "floor --forget 1", "compare r s", "compare set/a.json set/b.json"],
        }],
        "",
    ),
    (
        "history/folder.rs",
        &[ReadPlace {
            file: "h/2026.jsonl",
            commands: &[
                "history check h",
                "history show h t",
                "history add h set/a.json --night 2026-11-20",
                "history forget h --night 2026-11-20",
            ],
        }],
        "",
    ),
    (
        "os/output/kept.rs",
        &[ReadPlace {
            file: "state/wmlrun/last/00000002.json",
            commands: &[
                "report last",
                "report last -v",
                "report last -o page.html",
                "compare last",
                "compare last set/a.json",
                "x.wml --engine null --no-quiesce --quiet --runtime 0.1",
            ],
        }],
        "",
    ),
    (
        "experiment/folder.rs",
        &[ReadPlace {
            file: "r/experiment.toml",
            commands: &[
                "repeat --resume r --quiet",
                "repeat --resume r --anyway --allow-system --quiet",
                "prune r",
                "report r --format text",
                "report r -o page.html",
                "compare r s",
                "compare r:a s",
                "wins r s",
            ],
        }],
        "",
    ),
    (
        "experiment/journal.rs",
        &[ReadPlace {
            file: "r/journal.jsonl",
            commands: &[
                "repeat --resume r --quiet",
                "repeat --resume r --anyway --allow-system --quiet",
                "prune r",
                "report r --format text",
                "compare r s",
                "wins r s",
            ],
        }],
        "",
    ),
    (
        "import/input.rs",
        &[
            ReadPlace {
                file: "r/runs/0001.json",
                commands: &[
                    "repeat --resume r --anyway --allow-system --quiet",
                    "prune r",
                    "report r --format text",
                    "report r -o page.html",
                    "compare r s",
                    "wins r s",
                ],
            },
            ReadPlace {
                file: "set/a.json",
                commands: &[
                    "compare set other",
                    "wins set other",
                    "report set --format text",
                    "report set -o page.html",
                ],
            },
            ReadPlace { file: "batch/one/result.json", commands: &["report batch --format text", "wins batch other"] },
        ],
        "",
    ),
    ("import/folder.rs", &[], "lists directories; the files are read by `import/input.rs`"),
    ("import/samples.rs", &[], "lists directories; the files are read by `import/input.rs`"),
    ("page/source.rs", &[], "lists directories; the files are read by `import/input.rs`"),
    (
        "session/library.rs",
        &[
            ReadPlace {
                file: "elsewhere/other.wml",
                commands: &[
                    "check in/loads.wml",
                    "plan in/loads.wml",
                    "in/loads.wml --engine null --runtime 0.1 --quiet",
                ],
            },
            ReadPlace {
                file: "elsewhere/named.wml",
                commands: &["experiment in/names.toml --engine null --no-quiesce --runtime 0.1 --quiet"],
            },
            ReadPlace {
                file: "elsewhere/own.f",
                commands: &["check in/p.prof", "batch in/p.prof --engine null --runtime 0.1"],
            },
        ],
        "",
    ),
    ("prompt/shell.rs", &[ReadPlace { file: "saved.wml", commands: &["repl < save"] }], ""),
    ("prompt/editor.rs", &[], "the history of the shell, which only a terminal has: `a_history_is_read_on_a_terminal`"),
    (
        "engine/disk/root.rs",
        &[ReadPlace { file: "data/data/.wmlrun", commands: &["clean data", "on-disk.wml --dir data"] }],
        "",
    ),
    ("replay/root.rs", &[], "the list of the names that a replay made, beside them: `tests/it/replayed.rs` changes it"),
    ("measure/replay.rs", &[], "the trace, which the command line names"),
    ("cli/arms.rs", &[], "a trace that the command line names in place of a script"),
    ("measure/mod.rs", &[], "passes a function on to `session/library.rs`"),
    ("experiment/commands.rs", &[], "the output of a command that has just ended, whose file the experiment holds"),
    ("experiment/identity.rs", &[], "the running program itself"),
    ("experiment/origin.rs", &[], "the journal, see `experiment/journal.rs`"),
    ("experiment/prune.rs", &[], "lists a directory"),
    ("batch/mod.rs", &[], "a profile, which the command line names"),
    ("cli/info.rs", &[], "lists a directory"),
    ("trace/view.rs", &[], "the mappings of a process, in /proc"),
    ("cli/recording.rs", &[], "traces and the output of strace, which the command line names; lists directories"),
    ("engine/disk/disk_usage.rs", &[], "lists directories"),
    ("engine/disk/remove.rs", &[], "lists directories"),
    ("os/output/target.rs", &[], "the first bytes of a file to be replaced, if it is a regular one"),
    ("os/output/replace.rs", &[], "the old content of a file to be replaced, if it is a regular one"),
    ("os/output/results.rs", &[], "the first bytes of a file to be replaced, if it is a regular one"),
];

/// The names of the functions that open a file to read it.
const READS: [&str; 3] = ["reading::", "open_regular", "Marker::read"];

/// All source files of the program below `dir`, without the files of `os` itself and tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, found);
        } else if !dir.ends_with("src/os")
            && path.extension().is_some_and(|end| end == "rs")
            && !name.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

#[test]
fn every_reader_has_a_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let reads = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        // Not the threads of MPI.
        let program = program(&text).replace("Threading::", "");
        READS.iter().any(|name| program.contains(name))
    };
    let relative = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let found: Vec<String> = files.into_iter().filter(reads).map(relative).collect();
    for file in &found {
        assert!(READERS.iter().any(|(reader, ..)| reader == file), "{file} reads files: add them to READERS");
    }
    for (reader, places, reason) in READERS {
        assert!(places.is_empty() != reason.is_empty(), "{reader}: a place or a reason");
        assert!(root.join(reader).is_file(), "{reader} does not exist");
    }
}

const SCRIPT: &str = "define fileset name=data,path=$dir,entries=3,dirwidth=5,size=4k,prealloc\n\
    define process name=p { thread name=t {\n  flowop read name=r,filesetname=data,iosize=4k\n  flowop finishoncount \
    name=end,value=100\n} }\n";

/// A working directory with all places, each with what the program has written, or a script.
fn prepared() -> Wml {
    let short = "--engine null --no-quiesce --quiet --runtime 5";
    let wml = Wml::new()
        .file("x.wml", SCRIPT)
        .file("on-disk.wml", &format!("{SCRIPT}run 0.1\n"))
        .file("in/loads.wml", "load ../elsewhere/other.wml\nrun 0.1\n")
        .file("elsewhere/other.wml", SCRIPT)
        .file("elsewhere/named.wml", SCRIPT)
        .file("in/names.toml", "script = \"../elsewhere/named.wml\"\nrepeats = 2\n")
        .file("elsewhere/own.f", SCRIPT)
        .file(
            "in/p.prof",
            "DEFAULTS {\n runtime = 1;\n dir = .;\n}\nCONFIG one {\n personality = ../elsewhere/own;\n}\n",
        )
        .file("save", "load x\nsave saved.wml\n")
        .file("saved.wml", "define process name=p { thread name=t { flowop delay name=d } }\n")
        .file("h/2026.jsonl", "{\"schema\":\"wmlrun.history-lines/1\"}\n")
        .file("state/wmlrun/floors.json", "{\"schema\": \"wmlrun.floors/1\", \"sessions\": []}")
        .folder("data")
        .folder("other");
    for words in [
        format!("repeat x.wml {short} --runs 2 --results r"),
        format!("repeat x.wml {short} --runs 2 --results s"),
        format!("x.wml {short} --json set/a.json"),
        format!("x.wml {short} --json other/a.json"),
        "on-disk.wml --no-quiesce --quiet --keep --dir data".to_owned(),
    ] {
        for dir in ["set", "batch/one"] {
            fs::create_dir_all(wml.dir().join(dir)).unwrap();
        }
        let (code, text) = limited(wml.dir(), &words);
        assert_eq!(code, 0, "{words}\n{text}");
    }
    fs::copy(wml.dir().join("set/a.json"), wml.dir().join("set/b.json")).unwrap();
    let kept = fs::read_dir(wml.dir().join("state/wmlrun/last")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert!(kept.iter().any(|name| name == "00000002.json"), "{kept:?}");
    fs::copy(wml.dir().join("set/a.json"), wml.dir().join("batch/one/result.json")).unwrap();
    fs::write(wml.dir().join("batch/index.html"), "").unwrap();
    wml
}

/// Runs a command line with 512 MiB of address space, 2 seconds of processor time and 20 seconds of time, or on a day that is
/// not for it a minute. Returns its exit status, with all output. A program that reaches a limit has that of its signal.
fn limited(dir: &Path, words: &str) -> (i32, String) {
    let (words, input) = words.split_once(" < ").map_or((words, None), |(words, input)| (words, Some(input)));
    let input = input.map_or_else(Stdio::null, |name| fs::File::open(dir.join(name)).unwrap().into());
    let (out, error) = (dir.join("stdout.txt"), dir.join("stderr.txt"));
    let mut command = Command::new("prlimit");
    command.args(["--as=536870912", "--cpu=2:3"]).arg(binary()).args(words.split_whitespace()).current_dir(dir);
    command.env("XDG_STATE_HOME", dir.join("state")).env("NO_COLOR", "1").stdin(input);
    command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&error).unwrap());
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let since = Instant::now();
    let limit = Duration::from_secs(if long() { 20 } else { 60 });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if since.elapsed() > limit {
            let _ = kill_process_group(Pid::from_raw(child.id() as i32).unwrap(), Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
    (status.code().unwrap_or(128 + signal), text(out) + &text(error))
}

/// Puts something in the place of a file. What is returned keeps it.
fn put(path: &Path, hostile: Hostile) -> Option<UnixListener> {
    match hostile {
        Hostile::Pipe => drop(tool("mkfifo", &[path.to_str().unwrap()])),
        Hostile::Zeros => symlink("/dev/zero", path).unwrap(),
        // The name of a socket is short: it is bound where it is.
        Hostile::Socket => {
            let short = tempfile::Builder::new().prefix("s").tempdir_in("/tmp").unwrap();
            let socket = UnixListener::bind(short.path().join("s")).unwrap();
            // A socket can't be moved to another file system.
            if fs::rename(short.path().join("s"), path).is_err() {
                symlink(short.path().join("s"), path).unwrap();
                std::mem::forget(short);
            }
            return Some(socket);
        }
        Hostile::Huge => fs::File::create(path).unwrap().set_len(1 << 30).unwrap(),
        Hostile::Text(text) => fs::write(path, text).unwrap(),
        Hostile::OfOther => {
            fs::write(path, format!("{SECRET}\n")).unwrap();
            if fs::metadata(path).unwrap().uid() == 0 {
                std::os::unix::fs::chown(path, Some(12345), Some(12345)).unwrap();
            }
        }
    }
    None
}

#[test]
fn a_read_of_a_file_that_nobody_named_ends_soon_and_quotes_nothing() {
    let wml = prepared();
    let mut cases: Vec<(&ReadPlace, &str, Hostile)> = Vec::new();
    for place in READERS.iter().flat_map(|(_, places, _)| *places) {
        for command in place.commands {
            cases.extend(HOSTILE.map(|hostile| (place, *command, hostile)));
        }
    }
    let all = cases.len();
    if !long() {
        // Each sort of file at least once: 10 and 7 have no common divisor.
        cases = cases.into_iter().step_by(7).collect();
    }
    let mut wrong = Vec::new();
    for (place, command, hostile) in &cases {
        let path = wml.dir().join(place.file);
        let aside = path.with_extension("aside");
        fs::rename(&path, &aside).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let kept = put(&path, *hostile);
        let (code, text) = limited(wml.dir(), command);
        drop(kept);
        let _ = fs::remove_file(&path);
        fs::rename(&aside, &path).unwrap();
        let _ = fs::remove_dir_all(wml.dir().join("new"));
        // 101: a panic; above 128: it reached a limit, or was killed. 130 and 152 are answers to the limit on time.
        let is_ended = (0..=12).contains(&code);
        if !is_ended || text.contains(SECRET) || text.contains("panicked") {
            let text: String = text.chars().take(600).collect();
            wrong.push(format!("{command} with {hostile:?} as {}: {code}\n{text}", place.file));
        }
    }
    #[expect(clippy::print_stdout, reason = "the figures of the check")]
    {
        println!("{} of {all} reads, {} wrong", cases.len(), wrong.len());
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The history of the shell: its place has no end, or nobody writes to it.
#[test]
fn a_history_is_read_on_a_terminal() {
    needs!(terminals());
    for hostile in [Hostile::Pipe, Hostile::Zeros, Hostile::Huge] {
        let wml = Wml::new().folder("state/wmlrun");
        put(&wml.dir().join("state/wmlrun/history"), hostile);
        let command = format!("WMLRUN_STATE= XDG_STATE_HOME=$PWD/state {} repl", binary().display());
        let terminal = Terminal::start(wml.dir(), (100, 20), &command);
        terminal.line("echo \"it answers\"");
        terminal.keys(&["quit", "Enter"]);
        assert_eq!(terminal.ends(), "0", "{hostile:?}");
    }
}
