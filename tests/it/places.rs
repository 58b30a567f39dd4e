//! Tests every place that an option names for output, under hostile conditions: links, pipes, devices and files of
//! others, at the end of the path and in its middle, and places that are swapped between two runs.
//!
//! The options come from the help of each command, so that a new one without a row fails a test.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use crate::cmd::{Output, Wml, long, program, skip, tool};
use crate::mounts::{Fs, Mount, available};
use crate::tree::tree;

const SCRIPT: &str = "define fileset name=s,path=files,entries=2,size=1k,prealloc=100\n\
                      define process name=p { thread name=t { flowop statfile name=look,filesetname=s } }\nrun 0.05\n";
const PROFILE: &str = "DEFAULTS {\n runtime = 1;\n dir = files;\n}\nCONFIG one {\n personality = own;\n}\n\
                       CONFIG two {\n personality = own;\n}\n";
const OWN: &str = "set $dir=files\ndefine fileset name=s,path=$dir,entries=2,size=1k,prealloc=100\n\
                   define process name=p { thread name=t { flowop statfile name=look,filesetname=s } }\n";
const EXPERIMENT: &str = "script = \"s.wml\"\nrepeats = 1\noptions = \"--engine null --runtime 0.05 --no-quiesce\"\n\
                          [[factor]]\nname = \"kind\"\nlevels = [{ name = \"a\", options = \"--interval 1\" }, { name = \"b\" }]\n";

/// What an option writes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A file that is replaced, or a pipe or device.
    File,
    /// A regular file that grows.
    Table,
    /// A directory, which is created with the first file in it.
    Results,
    /// A directory that is created with its parents.
    Folder,
    /// The folder of an experiment to continue.
    Resumed,
    /// A path that a script may write to, and does not.
    Permission,
}

/// An option of a command that names an output.
struct Row {
    command: &'static str,
    option: &'static str,
    kind: Kind,
}

const fn row(command: &'static str, option: &'static str, kind: Kind) -> Row {
    Row { command, option, kind }
}

const ROWS: &[Row] = &[
    row("", "--json", Kind::File),
    row("", "--trace", Kind::File),
    row("", "--live", Kind::File),
    row("", "--append", Kind::Table),
    row("", "--results", Kind::Results),
    row("", "--allow-write", Kind::Permission),
    row("run", "--json", Kind::File),
    row("run", "--trace", Kind::File),
    row("run", "--live", Kind::File),
    row("run", "--append", Kind::Table),
    row("run", "--results", Kind::Results),
    row("run", "--allow-write", Kind::Permission),
    row("repl", "--json", Kind::File),
    row("repl", "--trace", Kind::File),
    row("repl", "--live", Kind::File),
    row("repl", "--append", Kind::Table),
    row("repl", "--results", Kind::Results),
    row("repl", "--allow-write", Kind::Permission),
    row("batch", "--json", Kind::File),
    row("batch", "--append", Kind::Table),
    row("batch", "--results", Kind::Results),
    row("batch", "--allow-write", Kind::Permission),
    row("replay", "--json", Kind::File),
    row("replay", "--append", Kind::Table),
    row("replay", "--results", Kind::Results),
    row("repeat", "--append", Kind::Table),
    row("repeat", "--live", Kind::File),
    row("repeat", "--results", Kind::Folder),
    row("repeat", "--resume", Kind::Resumed),
    row("ab", "--append", Kind::Table),
    row("ab", "--live", Kind::File),
    row("ab", "--results", Kind::Folder),
    row("ab", "--resume", Kind::Resumed),
    row("sweep", "--append", Kind::Table),
    row("sweep", "--live", Kind::File),
    row("sweep", "--results", Kind::Folder),
    row("sweep", "--resume", Kind::Resumed),
    row("experiment", "--append", Kind::Table),
    row("experiment", "--live", Kind::File),
    row("experiment", "--results", Kind::Folder),
    row("experiment", "--resume", Kind::Resumed),
    row("compare", "--output", Kind::File),
    row("report", "--output", Kind::File),
    row("report", "--pictures", Kind::Folder),
    row("age", "--json", Kind::File),
    // Not options: a directory of pages, the state of noise floors, and the directory of file sets.
    row("man", "", Kind::Folder),
    row("floor", "XDG_STATE_HOME", Kind::Folder),
    row("run", "--set", Kind::Folder),
];

/// Options with a path that is not written to: `--dir` must exist, and is tested as `--set`. The trace of a batch is in
/// its directory, and so are the results of runs whose `--allow-write` an experiment passes on. `record`
/// replaces nothing.
const OTHERS: &[(&str, &str)] = &[
    ("*", "--dir"),
    ("*", "--require-mount"),
    ("*", "--allow-device"),
    ("*", "--below"),
    ("experiment", "--print-unit"),
    ("record", "--output"),
    ("record", "--under"),
    ("batch", "--trace"),
    ("repeat", "--allow-write"),
    ("ab", "--allow-write"),
    ("sweep", "--allow-write"),
    ("experiment", "--allow-write"),
];

fn help(args: &[&str]) -> String {
    let output = program().args(args).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The options of a command whose value is a path.
fn path_options(command: &str) -> BTreeSet<String> {
    let words: Vec<&str> = Some(command).filter(|command| !command.is_empty()).into_iter().collect();
    let is_path = |value: &str| ["FILE", "DIR", "PATH"].iter().any(|word| value.contains(word));
    let options = help(&words);
    let options = options.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let named = options.filter_map(|line| {
        let (_, option) = line.split_once("--")?;
        let (name, value) = option.split_once(['=', ' ', '['])?;
        let value = value.split("  ").next()?.split_whitespace().next()?;
        is_path(value).then(|| format!("--{name}"))
    });
    named.collect()
}

#[test]
fn every_option_with_a_path_has_a_row() {
    let text = help(&[]);
    let commands = text.lines().take_while(|line| *line != "Arguments:");
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"experiment") && commands.len() > 15, "{commands:?}");
    let mut found = 0;
    for command in commands.into_iter().chain([""]).filter(|command| *command != "help") {
        for option in path_options(command) {
            let is_row = ROWS.iter().any(|row| row.command == command && row.option == option);
            let is_other = OTHERS.iter().any(|(of, other)| ["*", command].contains(of) && *other == option);
            assert!(is_row || is_other, "`{command}` has `{option}`, for which this file has no row");
            found += usize::from(is_row);
        }
    }
    let options = ROWS.iter().filter(|row| row.option.starts_with("--") && row.option != "--set").count();
    assert_eq!(found, options, "rows of options that no command has");
}

/// What is at a path, or at a component of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    OwnLink,
    LinkOfAnother,
    ForeignFile,
    Fifo,
    Socket,
    BlockDevice,
    DevZero,
    Removed,
    Full,
}

const STATES: [State; 9] = [
    State::OwnLink,
    State::LinkOfAnother,
    State::ForeignFile,
    State::Fifo,
    State::Socket,
    State::BlockDevice,
    State::DevZero,
    State::Removed,
    State::Full,
];

/// Where in the path that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Position {
    Last,
    /// The directory of the last name.
    Parent,
    /// A directory above that.
    Middle,
}

/// The exit statuses that are right. A place that is refused is refused with 3, before anything is written.
fn expected(kind: Kind, position: Position, state: State) -> &'static [i32] {
    let is_last = position == Position::Last;
    match (kind, state) {
        (Kind::Resumed, _) => &[3],
        (_, State::LinkOfAnother) => &[3],
        (_, State::OwnLink) => &[0],
        // Nothing is written there until the script does.
        (Kind::Permission, State::Removed | State::Full) => &[0],
        (Kind::Permission, _) if is_last => &[0],
        (Kind::File, State::DevZero) if is_last => &[0],
        (Kind::Folder, State::Removed) => &[0],
        (Kind::Results, State::Full) => &[0, 1],
        // What can be created may still not fit.
        (Kind::Folder, State::Full) => &[0, 1, 3],
        _ => &[3],
    }
}

/// A full file system. A static would never be unmounted.
fn full_file_system() -> Option<Mount> {
    if !available(&[Fs::Tmpfs]) {
        return None;
    }
    let mount = Mount::new(Fs::Tmpfs, 1 << 20);
    fs::create_dir_all(mount.dir().join("d/e")).unwrap();
    // The name must be free, and no block.
    let filler = vec![0; 64 << 10];
    for n in 0..64 {
        if fs::write(mount.dir().join(format!("filler{n}")), &filler).is_err() {
            break;
        }
    }
    Some(mount)
}

/// A result of a run.
static RESULT: LazyLock<String> = LazyLock::new(|| {
    let call = Wml::new().file("s.wml", SCRIPT).args(["s.wml", "--engine", "null", "--quiet", "--json", "r.json"]);
    let output = call.run().exits(0);
    fs::read_to_string(output.dir().join("r.json")).unwrap()
});

/// A trace of a program.
static TRACE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let call = Wml::new().file("read", "").args(["record", "--under", ".", "-o", "t.wtrace", "--", "cat", "read"]);
    let output = call.run().exits(0);
    fs::read(output.dir().join("t.wtrace")).unwrap()
});

/// Makes what the state says, and returns the path to give. `None` if this machine can't. `full`: a full file system.
fn lay(dir: &Path, position: Position, state: State, full: Option<&Mount>) -> Option<PathBuf> {
    fs::create_dir_all(dir.join("own/sub/sub")).unwrap();
    fs::create_dir(dir.join("st")).unwrap();
    fs::set_permissions(dir.join("st"), fs::Permissions::from_mode(0o1777)).unwrap();
    let at = dir.join("st/at");
    let rest = match position {
        Position::Last => "",
        Position::Parent => "out",
        Position::Middle => "sub/out",
    };
    let path = |at: &str| Some(if rest.is_empty() { at.into() } else { Path::new(at).join(rest) });
    let is_root = rustix::process::geteuid().is_root();
    match state {
        State::OwnLink => symlink("../own/sub", &at).unwrap(),
        State::LinkOfAnother if is_root => {
            symlink("../own/sub", &at).unwrap();
            std::os::unix::fs::lchown(&at, Some(65_534), Some(65_534)).unwrap();
        }
        State::LinkOfAnother => return None,
        State::ForeignFile => fs::write(&at, "mine\n").unwrap(),
        State::Fifo => drop(tool("mkfifo", &[at.to_str().unwrap()])),
        State::Socket => drop(UnixListener::bind(&at).unwrap()),
        State::BlockDevice => {
            // No driver has it, so that not even a mistake opens one.
            let device = rustix::fs::makedev(240, 77);
            let (kind, mode) = (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::from_raw_mode(0o600));
            rustix::fs::mknodat(rustix::fs::CWD, &at, kind, mode, device).ok()?;
        }
        State::DevZero => return path("/dev/zero"),
        State::Removed if position == Position::Last => return Some("st/gone/out".into()),
        State::Removed => {}
        State::Full => {
            let full = full?.dir();
            return Some(match position {
                Position::Last => full.join("d/out"),
                Position::Parent => full.join("d/e/out"),
                Position::Middle => return None,
            });
        }
    }
    path("st/at")
}

/// The words of a call of a command with this path.
fn words(row: &Row, path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let value = match row.option {
        "--trace" => format!("{path}:5"),
        "--live" => format!("jsonl:{path}"),
        "--set" => format!("place={path}"),
        _ => path.to_owned(),
    };
    let fast = "--engine null --runtime 0.2 --no-quiesce";
    let text = match (row.command, row.option) {
        // A file set is on a file system.
        ("run", "--set") => "run d.wml --runtime 0.05 --no-quiesce".to_owned(),
        ("", _) => format!("s.wml {fast}"),
        ("run" | "repl", _) => format!("{} s.wml {fast}", row.command),
        ("batch", _) => format!("batch p.prof {fast} --mkdir"),
        ("replay", _) => "replay t.wtrace --dir . --no-quiesce".to_owned(),
        (command, "--resume") => command.to_owned(),
        ("repeat", _) => format!("repeat s.wml {fast} --runs 2"),
        ("ab", _) => format!("ab s.wml {fast} --blocks 2"),
        ("floor", _) => format!("floor own f.wml {fast} --blocks 2"),
        ("sweep", _) => format!("sweep d.wml {fast} --vary n=1,2 --repeats 1 --set place=own"),
        ("experiment", _) => "experiment x.toml".to_owned(),
        ("compare", _) => "compare r.json r.json --anyway".to_owned(),
        ("report", _) => "report r.json".to_owned(),
        ("age", _) => "age own --to 1m --rounds 1 --quiet".to_owned(),
        (command, _) => command.to_owned(),
    };
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match row.option {
        "" => words.push(value),
        "XDG_STATE_HOME" => {}
        option => words.extend([option.to_owned(), value]),
    }
    words
}

/// Runs a command with a path in this state. Returns its exit status, or `None` if this machine can't make the state. An
/// error says what was wrong.
fn check_cell(row: &Row, position: Position, state: State, full: Option<&Mount>) -> Result<Option<i32>, String> {
    let has_result = ["compare", "report"].contains(&row.command);
    let call = Wml::new().file("s.wml", SCRIPT).file("own.f", OWN).file("p.prof", PROFILE).file("x.toml", EXPERIMENT);
    let call = call.file(
        "d.wml",
        &format!(
            "set $n=1\nset $place=files\n{}",
            SCRIPT.replace("path=files,entries=2", "path=$place/data,entries=$n")
        ),
    );
    let call = call.file("f.wml", &format!("{OWN}run 0.05\n"));
    let call = if has_result { call.file("r.json", &RESULT) } else { call };
    let call = call.file("own/precious", "mine").folder("state");
    if row.command == "replay" {
        fs::write(call.dir().join("t.wtrace"), &*TRACE).unwrap();
    }
    let Some(path) = lay(call.dir(), position, state, full) else { return Ok(None) };
    let is_link = [State::OwnLink, State::LinkOfAnother].contains(&state);
    // The last name of a file is a link to a file that does not exist.
    if is_link && position == Position::Last && [Kind::File, Kind::Table].contains(&row.kind) {
        fs::remove_dir_all(call.dir().join("own/sub")).unwrap();
    }
    let state_home = if row.option == "XDG_STATE_HOME" { call.dir().join(&path) } else { call.dir().join("state") };
    // A results folder is new or empty.
    if is_link && position == Position::Last && row.kind == Kind::Folder {
        fs::remove_dir(call.dir().join("own/sub/sub")).unwrap();
    }
    let before = tree(call.dir());
    let what = format!("{} {} {position:?} {state:?}", row.command, row.option);
    let call = call.args(words(row, &path)).env("XDG_STATE_HOME", state_home).timeout(Duration::from_mins(1));
    let output = call.run();
    let expected = expected(row.kind, position, state);
    let code = output.code();
    // Verdicts are those of noise.
    let code = if (10..=12).contains(&code) { 0 } else { code };
    let wrong = |why: String| Err(format!("{what}: {why}\n{}", output.shown()));
    if !expected.contains(&code) {
        return wrong(format!("{code}, not {expected:?}"));
    }
    if expected == [3] {
        // The directory of noise floors is made before anything else, and that of a run in the current one, for a while.
        let is_state = |path: &Path| path.starts_with("./state") || path == Path::new(".");
        let after = tree(output.dir());
        let changed = after.iter().filter(|(path, now)| !is_state(path) && before.get(*path) != Some(*now));
        let changed: Vec<&PathBuf> = changed.map(|(path, _)| path).collect();
        if !changed.is_empty() || after.len() < before.len() {
            return wrong(format!("{changed:?} changed"));
        }
    }
    let has = |name: &str, content: &str| fs::read_to_string(output.dir().join(name)).is_ok_and(|text| text == content);
    if !has("own/precious", "mine") || state == State::ForeignFile && !has("st/at", "mine\n") {
        return wrong("a foreign file changed".to_owned());
    }
    Ok(Some(code))
}

/// One cell in sixteen each day, and all of them with `WMLRUN_LONG=1`.
#[test]
fn every_output_is_written_to_its_place_or_refused() {
    let mut cells = Vec::new();
    for row in ROWS {
        for position in [Position::Last, Position::Parent, Position::Middle] {
            cells.extend(STATES.map(|state| (row, position, state)));
        }
    }
    let is_wanted = |(n, _): &(usize, _)| long() || n % 16 == 5;
    let full = full_file_system();
    let (mut made, mut table, mut failed) = (0, String::new(), Vec::new());
    for (_, (row, position, state)) in cells.into_iter().enumerate().filter(is_wanted) {
        let code = check_cell(row, position, state, full.as_ref()).unwrap_or_else(|wrong| {
            failed.push(wrong);
            None
        });
        made += usize::from(code.is_some());
        let code = code.map_or("-".to_owned(), |code| code.to_string());
        table += &format!("| {} {} | {position:?} | {state:?} | {code} |\n", row.command, row.option);
    }
    if long() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes());
    }
    assert!(failed.is_empty(), "{} cells of {made} failed\n{}", failed.len(), failed.join("\n"));
    assert!(made > 50, "{made} cells");
}

/// Links of another user, at every option: the reason why the program looks at links itself, whatever the kernel does.
#[test]
fn no_link_of_another_user_in_a_shared_directory_is_followed() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give links away");
    }
    let rows = ROWS.iter().filter(|row| ["run", "repeat", "man", "report", "batch"].contains(&row.command));
    for row in rows {
        for position in [Position::Last, Position::Parent] {
            assert_eq!(check_cell(row, position, State::LinkOfAnother, None), Ok(Some(3)));
        }
    }
    // A formatted script, and one that the shell saves.
    let lay = || {
        let call = Wml::new().file("own/s.wml", "run   1\n").folder("st");
        fs::set_permissions(call.dir().join("st"), fs::Permissions::from_mode(0o1777)).unwrap();
        for (name, to) in [("at", "../own"), ("s.wml", "../own/s.wml"), ("new.wml", "../own/new.wml")] {
            symlink(to, call.dir().join("st").join(name)).unwrap();
            std::os::unix::fs::lchown(call.dir().join("st").join(name), Some(65_534), None).unwrap();
        }
        call
    };
    for path in ["st/at/s.wml", "st/s.wml"] {
        let output = lay().args(["fmt", "-w", path]).run().exits(3);
        assert_eq!(fs::read_to_string(output.dir().join("own/s.wml")).unwrap(), "run   1\n", "{path}");
    }
    for path in ["st/at/new.wml", "st/new.wml"] {
        let typed = format!("define process name=p {{ thread name=t {{ flowop hog name=h }} }}\nsave {path}\n");
        let output = lay().file("typed", &typed).under(["bash", "-c", "\"$0\" repl < typed"]).run();
        assert!(!output.dir().join("own/new.wml").exists() && output.code() == 3, "{path}\n{}", output.shown());
    }
}

/// A command that swaps a directory for an empty one, once, as soon as a file is in it.
fn swap(file: &str) -> String {
    format!("test -e d/{file} && test ! -e moved && mv d moved && mkdir d || true")
}

/// No foreign byte is written to the directory that has replaced another one.
#[track_caller]
fn is_untouched(output: &Output, what: &str) {
    assert!(output.dir().join("moved").exists(), "{what}: nothing was swapped\n{}", output.shown());
    let found: Vec<_> = fs::read_dir(output.dir().join("d")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(found.is_empty(), "{what}: {found:?}\n{}", output.shown());
}

#[test]
fn a_place_that_is_swapped_between_runs_is_refused() {
    let fast = ["--engine", "null", "--runtime", "0.05", "--no-quiesce"];
    let define = SCRIPT.trim_end_matches("run 0.05\n");
    // The results folder of an experiment, and the files beside it.
    for (option, value, file) in [
        ("--results", "d", "runs/0001.json"),
        ("--append", "d/t.csv", "t.csv"),
        ("--live", "jsonl:d/l.jsonl", "l.jsonl"),
    ] {
        let call = Wml::new().file("s.wml", SCRIPT).folder("d").args(["repeat", "s.wml", "--runs", "3"]).args(fast);
        let output = call.args([option, value, "--before", &swap(file)]).run().exits(3);
        is_untouched(&output, option);
        assert!(output.stderr.contains("was moved, removed or replaced"), "{option}\n{}", output.stderr);
    }
    // The outputs of a script with several runs.
    for (option, value, file) in [
        ("--json", "d/r.json", "r.json"),
        ("--trace", "d/t:5", "t"),
        ("--append", "d/t.csv", "t.csv"),
        ("--live", "jsonl:d/l.jsonl", "l.jsonl"),
        ("--results", "d", "dump"),
    ] {
        let dump = if option == "--results" { "stats dump \"dump\"\n" } else { "" };
        let script = format!("{define}run 0.05\n{dump}system \"{}\"\nrun 0.05\n{dump}", swap(file));
        let output = Wml::new().file("s.wml", &script).folder("d").args(["s.wml", "--allow-system"]).args(fast);
        let output = output.args([option, value]).run().exits(3);
        is_untouched(&output, option);
    }
    // The folder is removed.
    let remove = "test ! -e d/runs/0001.json || rm -r d";
    let call = Wml::new().file("s.wml", SCRIPT).folder("d").args(["repeat", "s.wml", "--runs", "3"]).args(fast);
    let output = call.args(["--results", "d", "--before", remove]).run().exits(3);
    assert!(!output.dir().join("d").exists(), "{}", output.shown());
}

/// The commands of a profile are its own, so that the test swaps the directory itself.
#[test]
fn the_directory_of_a_batch_that_is_swapped_is_refused() {
    let call = Wml::new().file("own.f", OWN).file("p.prof", PROFILE).folder("d");
    let call = call.args(["batch", "p.prof", "--engine", "null", "--no-quiesce", "--mkdir", "--results", "d"]);
    let running = call.start();
    let dir = running.dir().to_owned();
    let of_batch = || fs::read_dir(dir.join("d/stats")).ok()?.next()?.ok().map(|entry| entry.path());
    while !of_batch().is_some_and(|path| path.join("one/thisrun.f").exists()) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let path = of_batch().unwrap();
    fs::rename(&path, dir.join("moved")).unwrap();
    fs::create_dir(&path).unwrap();
    let output = running.wait().exits(3);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "{}", output.shown());
    assert!(dir.join("moved/one/result.json").exists(), "{}", output.shown());
}
