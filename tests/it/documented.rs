//! Tests the documents: runs every command in a `console` or `sh` block of README.md and docs/.
//!
//! A command is a line that begins with `$ `, with the lines after it as long as one ends with `\`. The commands of a block
//! run one after another in one new directory, with the built `wmlrun` in the path; each must end with the status that the
//! block states. Comments immediately before a block change how it is run:
//!
//! - `<!-- test: skip=REASON -->`: it is not run;
//! - `<!-- test: args=--runtime 1 -->`: these words are added to each command of `wmlrun` that runs something, before a pipe, a
//!   redirection or a comment, in place of the same option if it is present;
//! - `<!-- test: exit=2 -->`: its last command ends with this status; `exit=0|11` allows several, where the status is a verdict
//!   that depends on the machine;
//! - `<!-- test: file=NAME -->`: the block shows a script, which is written to a file of this name in the directory of the next
//!   block with commands;
//! - `<!-- test: with=NAME,NAME -->`: the directory also gets these files, which the page has shown before;
//! - `<!-- test: needs=COMMAND -->`: without the program that this command calls, the block is reported as skipped;
//! - `<!-- test: makes=PICTURE as NAME.svg -->`: of the result, `wmlrun report --pictures` makes a picture of this name after its
//!   number, and the page shows it as docs/pictures/NAME.svg. `UPDATE_PICTURES=1 cargo test --test it documented` makes these
//!   files again, by the commands as they stand; `UPDATE_PICTURES=NAME.svg` makes one of them.

use crate::undisturbed::undisturbed;
use std::collections::BTreeMap;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::cmd::{binary, disk, memory, skip};

/// A block of a document.
#[derive(Debug, Default)]
struct Block {
    /// Where it starts: `README.md:12`.
    place: String,
    language: String,
    lines: Vec<String>,
    skip: Option<String>,
    args: String,
    exit: Vec<i32>,
    file: Option<String>,
    with: Vec<String>,
    needs: Option<String>,
    /// The picture of its result, without its number, and its name in the page.
    makes: Option<(String, String)>,
}

/// Commands that run nothing, and so have none of the options of a run.
const RUN_NOTHING: [&str; 10] =
    ["check", "clean", "doctor", "explain", "history", "init", "list", "plan", "report", "show"];

impl Block {
    fn commands(&self) -> Vec<String> {
        let (mut commands, mut continues): (Vec<String>, bool) = (Vec::new(), false);
        for line in &self.lines {
            let part = if continues { Some(line.trim_start()) } else { line.strip_prefix("$ ") };
            let Some(part) = part else { continue };
            let text = part.strip_suffix('\\').unwrap_or(part);
            match commands.last_mut().filter(|_| continues) {
                Some(command) => command.push_str(text),
                None => commands.push(text.to_owned()),
            }
            continues = part.ends_with('\\');
        }
        commands
    }
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("README.md")];
    paths.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths
}

/// The fenced blocks of a text, each with the comments right before it.
fn blocks(name: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut next, mut open) = (Vec::new(), Block::default(), false);
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if open {
            if bare == "```" {
                blocks.push(std::mem::take(&mut next));
                open = false;
            } else {
                next.lines.push(line.to_owned());
            }
        } else if let Some(language) = bare.strip_prefix("```") {
            next.place = format!("{name}:{}", number + 1);
            language.clone_into(&mut next.language);
            open = true;
        } else if let Some(option) = bare.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->")) {
            match option.split_once('=') {
                Some(("skip", why)) if !why.is_empty() => next.skip = Some(why.to_owned()),
                Some(("args", words)) => words.clone_into(&mut next.args),
                Some(("exit", codes)) => next.exit = codes.split('|').map(|code| code.parse().unwrap()).collect(),
                Some(("file", file)) => next.file = Some(file.to_owned()),
                Some(("with", files)) => next.with = files.split(',').map(str::to_owned).collect(),
                Some(("needs", command)) => next.needs = Some(command.to_owned()),
                Some(("makes", names)) => {
                    let (picture, name) = names.split_once(" as ").unwrap();
                    next.makes = Some((picture.to_owned(), name.to_owned()));
                }
                _ => panic!("{name}:{}: `{option}` is no option of a test", number + 1),
            }
        } else if !bare.is_empty() {
            next = Block::default();
        }
    }
    assert!(!open, "{name}: a block is not closed");
    blocks
}

/// The position of the first pipe, redirection, comment or further command behind a command, outside quotes.
fn end_of_words(command: &str) -> usize {
    let mut quote = None;
    for (at, c) in command.char_indices() {
        match (quote, c) {
            (None, '#') if command[..at].ends_with(' ') => return at,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '|' | '>' | '<' | '&' | ';') => return command[..at].trim_end_matches('2').len(),
            _ => {}
        }
    }
    command.len()
}

/// A command with more words. An option that it has already is replaced; `--set` can be given many times.
fn with_args(command: &str, args: &str) -> String {
    let (command, rest) = command.split_at(end_of_words(command));
    let command = command.trim_end();
    let is_replaced = |word: &str| word.starts_with("--") && word != "--set" && args.split(' ').any(|arg| arg == word);
    let (mut kept, mut words) = (Vec::new(), command.split(' '));
    while let Some(word) = words.next() {
        if is_replaced(word) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    format!("{} {args} {rest}", kept.join(" ")).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs a block's commands, with its arguments if `is_short`. The directory is kept for the blocks that follow and show files
/// for one another.
fn run(block: &Block, dir: &Path, is_short: bool) -> Result<(), String> {
    let mut commands = block.commands();
    if commands.is_empty() {
        return Err(format!("{}: a `{}` block without a `$ ` line; call it `text`", block.place, block.language));
    }
    let bin = binary().canonicalize().unwrap();
    let tools = dir.join(".bin");
    fs::create_dir_all(&tools).unwrap();
    let _ = std::os::unix::fs::symlink(bin, tools.join("wmlrun"));
    let path =
        std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())))
            .unwrap();
    let own = commands.len();
    if let Some((picture, _)) = &block.makes {
        let result = result_of(&commands[own - 1]);
        commands.push(format!(
            "wmlrun report {result} --pictures .pictures && cp .pictures/[0-9][0-9]-{picture}.svg .made.svg"
        ));
    }
    for (n, command) in commands.iter().enumerate() {
        let second = command.strip_prefix("wmlrun ").and_then(|rest| rest.split(' ').next());
        let has_args = is_short && second.is_some_and(|word| !RUN_NOTHING.contains(&word));
        let command = if has_args { with_args(command, &block.args) } else { command.clone() };
        // With a path of its own: a name that is looked up in a changed `PATH` makes the library fork, and a copy of the
        // page tables of this large process for each command took a fortieth of the processor time of all tests.
        let shell = Command::new("/usr/bin/timeout")
            .args([if is_short { "120" } else { "500" }, "sh", "-c", &command])
            .current_dir(dir)
            .env("PATH", &path)
            // Noise floors are stored there.
            .env("XDG_STATE_HOME", dir.join(".state"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let expected = if n + 1 == own && !block.exit.is_empty() { &block.exit[..] } else { &[0] };
        let (stdout, stderr) = (String::from_utf8_lossy(&shell.stdout), String::from_utf8_lossy(&shell.stderr));
        if !shell.status.code().is_some_and(|code| expected.contains(&code)) {
            return Err(format!(
                "{}: `{command}`: {}, expected {expected:?}\n{stdout}{stderr}",
                block.place, shell.status
            ));
        }
        if !is_short {
            show(&format!("$ {command}\n{stdout}"));
        }
    }
    Ok(())
}

/// The result of a command, as a word of the shell.
fn result_of(command: &str) -> &str {
    let mut words = command.split_whitespace();
    let named = words.find(|word| ["--results", "--json"].contains(word)).and_then(|_| words.next());
    named.unwrap_or("wmlrun-results/*")
}

/// Prints what the commands of a picture say, for the text beside it.
#[allow(clippy::print_stdout, reason = "who makes the pictures again wants to read the answers")]
fn show(text: &str) {
    println!("{text}");
}

/// Whether a command of the shell ends with status 0.
fn succeeds(command: &str) -> bool {
    let run = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).output();
    run.is_ok_and(|output| output.status.success())
}

#[test]
fn every_command_in_the_documents_works() {
    // Several documents at once, because many commands wait for a run of a second.
    const AT_ONCE: usize = 3;
    let documents = Mutex::new(documents().into_iter());
    let each = || {
        let mut commands = 0;
        loop {
            let next = documents.lock().unwrap().next();
            let Some(path) = next else { return commands };
            commands += run_all(&path);
        }
    };
    let commands: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    });
    assert!(commands > 0, "the documents were not found");
}

/// A block with commands, and the files that its directory has before they run.
type WithFiles = (Block, BTreeMap<String, String>);

/// The blocks of a document whose commands are run.
fn blocks_that_run(path: &Path) -> Vec<WithFiles> {
    let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
    let (mut shown, mut next, mut found) = (BTreeMap::new(), Vec::new(), Vec::new());
    for block in blocks(&name, &fs::read_to_string(path).unwrap()) {
        if let Some(file) = &block.file {
            shown.insert(file.clone(), block.lines.join("\n") + "\n");
            next.push(file.clone());
        }
        if !matches!(block.language.as_str(), "console" | "sh") || block.skip.is_some() {
            continue;
        }
        let with = std::mem::take(&mut next).into_iter().chain(block.with.iter().cloned());
        let text = |file: &String| -> String {
            shown.get(file).unwrap_or_else(|| panic!("{}: `{file}` is not shown", block.place)).clone()
        };
        let files = with.map(|file| (file.clone(), text(&file))).collect();
        found.push((block, files));
    }
    found
}

/// A directory in `place` with these files.
fn directory(files: &BTreeMap<String, String>, place: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(place).unwrap();
    for (file, text) in files {
        fs::write(dir.path().join(file), text).unwrap();
    }
    dir
}

/// Runs all commands of a document, and returns their number.
fn run_all(path: &Path) -> usize {
    let mut commands = 0;
    for (block, files) in blocks_that_run(path) {
        if let Some(command) = block.needs.as_deref().filter(|command| !succeeds(command)) {
            skip(&format!("{}: `{command}` fails", block.place));
            continue;
        }
        commands += block.commands().len();
        // On a starved machine a call takes longer than a run waits for it.
        undisturbed(|| {
            let dir = directory(&files, &memory());
            if let Err(wrong) = run(&block, dir.path(), true) {
                panic!("{wrong}");
            }
        });
    }
    commands
}

/// Bytes of a picture.
const LARGEST_PICTURE: u64 = 40 << 10;

/// Each picture of the documents is small, stands on the page of the commands that make it, and no file is left over.
/// `UPDATE_PICTURES` makes them, one after another, on the file system of the build.
#[test]
fn pictures_stand_beside_the_commands_that_make_them() {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    let wanted = std::env::var("UPDATE_PICTURES").unwrap_or_default();
    let mut names = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let from = if path.ends_with("README.md") { "docs/pictures" } else { "pictures" };
        for (block, files) in blocks_that_run(&path) {
            let Some((_, name)) = &block.makes else { continue };
            if wanted == "1" || wanted == *name {
                let dir = directory(&files, &disk());
                run(&block, dir.path(), false).unwrap_or_else(|wrong| panic!("{wrong}"));
                fs::copy(dir.path().join(".made.svg"), pictures.join(name)).unwrap();
            }
            assert!(text.contains(&format!("]({from}/{name})")), "{}: {name} is not shown", block.place);
            let bytes = fs::metadata(pictures.join(name)).map_or(0, |file| file.len());
            assert!((1..LARGEST_PICTURE).contains(&bytes), "{name} has {bytes} bytes");
            names.push(name.clone());
        }
    }
    names.sort();
    let mut found: Vec<String> =
        fs::read_dir(pictures).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn options_are_replaced() {
    assert_eq!(
        with_args("wmlrun a --runtime 60 --json x", "--set n=1 --runtime 1"),
        "wmlrun a --json x --set n=1 --runtime 1"
    );
    assert_eq!(with_args("wmlrun a --set m=2", "--set n=1"), "wmlrun a --set m=2 --set n=1");
    assert_eq!(with_args("wmlrun a", ""), "wmlrun a");
    assert_eq!(with_args("wmlrun a 2>&1 | grep '|'", "--cold"), "wmlrun a --cold 2>&1 | grep '|'");
    assert_eq!(with_args("wmlrun ab x --a '--set n=1|2' > f", "--pin"), "wmlrun ab x --a '--set n=1|2' --pin > f");
    assert_eq!(with_args("wmlrun a  # why", "--cold"), "wmlrun a --cold # why");
    assert_eq!(result_of("wmlrun ab x --results r --runtime 1"), "r");
    assert_eq!(result_of("wmlrun ab x --runtime 1"), "wmlrun-results/*");
}

#[test]
fn blocks_are_parsed() {
    let text = "\
text

<!-- test: args=--runtime 1 -->
<!-- test: exit=2 -->

```console
$ wmlrun x
output
$ echo y
```

<!-- test: skip=not here -->
words between part a comment from its block

```sh
$ true \\
    --long
```

<!-- test: file=a.wml -->
```wml
set $x=1
```

<!-- test: with=a.wml,b.wml -->
<!-- test: needs=jq --version -->
```console
$ cat a.wml
```
";
    let blocks = blocks("a.md", text);
    assert_eq!(blocks.len(), 4);
    assert_eq!(
        (blocks[3].with.join(" "), blocks[3].needs.as_deref()),
        ("a.wml b.wml".to_owned(), Some("jq --version"))
    );
    assert_eq!(
        (blocks[0].commands(), &blocks[0].exit, blocks[0].args.as_str()),
        (vec!["wmlrun x".to_owned(), "echo y".to_owned()], &vec![2], "--runtime 1")
    );
    assert_eq!((blocks[0].place.as_str(), blocks[0].language.as_str()), ("a.md:6", "console"));
    assert_eq!((blocks[1].commands(), &blocks[1].skip), (vec!["true --long".to_owned()], &None));
    assert_eq!(
        (blocks[2].file.as_deref(), blocks[2].lines.as_slice()),
        (Some("a.wml"), ["set $x=1".to_owned()].as_slice())
    );
}
