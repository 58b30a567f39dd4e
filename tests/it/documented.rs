//! Tests the documents: runs every command in a `console` or `sh` block of README.md and docs/.
//!
//! A command is a line that begins with `$ `. The commands of a block run one after another in one new directory, with
//! the built `wmlrun` in the path; each must end with the status that the block states. Comments immediately before a
//! block change how it is run:
//!
//! - `<!-- test: skip=REASON -->`: it is not run;
//! - `<!-- test: args=--runtime 1 -->`: these words are added to each command that starts with `wmlrun`, in place of the same
//!   option if it is present;
//! - `<!-- test: exit=2 -->`: its last command ends with this status; `exit=0|11` allows several, where the status is a verdict
//!   that depends on the machine;
//! - `<!-- test: file=NAME -->`: the block shows a script, which is written to a file of this name in the directory of the next
//!   block.

use crate::undisturbed::undisturbed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cmd::{binary, memory};

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
}

impl Block {
    fn commands(&self) -> Vec<&str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("$ ")).collect()
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
                _ => panic!("{name}:{}: `{option}` is no option of a test", number + 1),
            }
        } else if !bare.is_empty() {
            next = Block::default();
        }
    }
    assert!(!open, "{name}: a block is not closed");
    blocks
}

/// A command with more words. An option that it has already is replaced; `--set` can be given many times.
fn with_args(command: &str, args: &str) -> String {
    let is_replaced = |word: &str| word.starts_with("--") && word != "--set" && args.split(' ').any(|arg| arg == word);
    let (mut kept, mut words) = (Vec::new(), command.split(' '));
    while let Some(word) = words.next() {
        if is_replaced(word) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    format!("{} {args}", kept.join(" ")).trim().to_owned()
}

/// Runs a block's commands. The directory is kept for the blocks that follow and show files for one another.
fn run(block: &Block, dir: &Path) -> Result<(), String> {
    let commands = block.commands();
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
    for (n, command) in commands.iter().enumerate() {
        let command =
            if command.starts_with("wmlrun") { with_args(command, &block.args) } else { (*command).to_owned() };
        let shell = Command::new("timeout")
            .args(["120", "sh", "-c", &command])
            .current_dir(dir)
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let expected = if n + 1 == commands.len() && !block.exit.is_empty() { &block.exit[..] } else { &[0] };
        if !shell.status.code().is_some_and(|code| expected.contains(&code)) {
            let (stdout, stderr) = (String::from_utf8_lossy(&shell.stdout), String::from_utf8_lossy(&shell.stderr));
            return Err(format!(
                "{}: `{command}`: {}, expected {expected:?}\n{stdout}{stderr}",
                block.place, shell.status
            ));
        }
    }
    Ok(())
}

#[test]
fn every_command_in_the_documents_works() {
    let mut commands = 0;
    for path in documents() {
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
        let mut files: Vec<(String, String)> = Vec::new();
        for block in blocks(&name, &fs::read_to_string(&path).unwrap()) {
            if let Some(file) = &block.file {
                files.push((file.clone(), block.lines.join("\n") + "\n"));
            }
            if !matches!(block.language.as_str(), "console" | "sh") || block.skip.is_some() {
                continue;
            }
            let files = std::mem::take(&mut files);
            commands += block.commands().len();
            // On a starved machine a call takes longer than a run waits for it.
            undisturbed(|| {
                let dir = tempfile::tempdir_in(memory()).unwrap();
                for (file, text) in &files {
                    fs::write(dir.path().join(file), text).unwrap();
                }
                if let Err(wrong) = run(&block, dir.path()) {
                    panic!("{wrong}");
                }
            });
        }
    }
    assert!(commands > 0, "the documents were not found");
}

#[test]
fn options_are_replaced() {
    assert_eq!(
        with_args("wmlrun a --runtime 60 --json x", "--set n=1 --runtime 1"),
        "wmlrun a --json x --set n=1 --runtime 1"
    );
    assert_eq!(with_args("wmlrun a --set m=2", "--set n=1"), "wmlrun a --set m=2 --set n=1");
    assert_eq!(with_args("wmlrun a", ""), "wmlrun a");
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
$ true
```

<!-- test: file=a.wml -->
```wml
set $x=1
```
";
    let blocks = blocks("a.md", text);
    assert_eq!(blocks.len(), 3);
    assert_eq!(
        (blocks[0].commands(), &blocks[0].exit, blocks[0].args.as_str()),
        (vec!["wmlrun x", "echo y"], &vec![2], "--runtime 1")
    );
    assert_eq!((blocks[0].place.as_str(), blocks[0].language.as_str()), ("a.md:6", "console"));
    assert_eq!((blocks[1].commands(), &blocks[1].skip), (vec!["true"], &None));
    assert_eq!(
        (blocks[2].file.as_deref(), blocks[2].lines.as_slice()),
        (Some("a.wml"), ["set $x=1".to_owned()].as_slice())
    );
}
