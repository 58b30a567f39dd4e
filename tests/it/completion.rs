//! Tests completion in bash, zsh and fish: each loads its script and completes names of commands, personalities,
//! formats, codes, lists and variables of the named script.

use crate::cmd::{binary, has, program, scratch};
use crate::tmux::{Terminal, terminals};
use std::path::Path;
use std::process::Command;

/// A line up to the cursor, and some completions of its last word.
const LINES: [(&str, &[&str]); 14] = [
    ("wmlrun exp", &["explain"]),
    ("wmlrun randomr", &["randomread"]),
    ("wmlrun show varm", &["varmail"]),
    ("wmlrun show qui", &["quick"]),
    ("wmlrun experiment qui", &["quick"]),
    ("wmlrun varmail --dir mou", &["mount/"]),
    ("wmlrun clean mou", &["mount/"]),
    ("wmlrun own.w", &["own.wml"]),
    ("wmlrun explain E020", &["E0201", "E0202"]),
    ("wmlrun list per", &["personalities"]),
    ("wmlrun list app", &["applications"]),
    ("wmlrun own.wml --format csv-", &["csv-runs", "csv-intervals"]),
    ("wmlrun plan own.wml --set myo", &["myown="]),
    ("wmlrun own.wml --li", &["--live"]),
];

/// A directory with a script, in which the shells work.
fn place() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("completion-").tempdir_in(scratch()).unwrap();
    std::fs::create_dir(dir.path().join("mount")).unwrap();
    std::fs::write(dir.path().join("own.wml"), "set $myown=1\nset $other=$myown\n").unwrap();
    dir
}

/// The path with the directory of the program first.
pub(crate) fn path() -> String {
    let folder = binary().parent().unwrap().display().to_string();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

/// Runs commands of a shell with the program in its path, and returns what they print.
fn shell(dir: &Path, words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).current_dir(dir).env("PATH", path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn assert_offers(found: &str, line: &str, wanted: &[&str]) {
    let offered: Vec<&str> = found.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(wanted.iter().all(|word| offered.contains(word)), "{line}: {found}");
    let last = line.rsplit(' ').next().unwrap();
    assert!(offered.iter().all(|word| word.starts_with(last)), "{line}: {found}");
}

#[test]
fn bash_completes() {
    let dir = place();
    let mut commands = "source <(wmlrun setup completions bash)\n".to_owned();
    for (line, _) in LINES {
        // What bash sets before it calls the function that `complete` names.
        commands += &format!(
            "COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9\n\
             _clap_complete_wmlrun wmlrun \"${{COMP_WORDS[COMP_CWORD]}}\" 2> /dev/null\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\" ---\n"
        );
    }
    let found = shell(dir.path(), &["bash", "-c", &commands]);
    let parts: Vec<&str> = found.split("---\n").collect();
    assert_eq!(parts.len(), LINES.len() + 1, "{found}");
    for ((line, wanted), part) in LINES.iter().zip(parts) {
        assert_offers(part, line, wanted);
    }
    let names = shell(dir.path(), &["bash", "-c", "source <(wmlrun setup completions bash); complete -p wmlrun"]);
    assert!(names.contains("-F _clap_complete_wmlrun wmlrun"), "{names}");
}

#[test]
fn fish_completes() {
    needs!(has("fish"), "fish is not installed");
    let dir = place();
    let ask = |line: &str| format!("complete -C '{line}'; echo ---; ");
    let asked: String = LINES.iter().map(|(line, _)| ask(line)).collect();
    let home = dir.path().join("home").display().to_string();
    let commands = format!("wmlrun setup completions fish | source; {asked}");
    let variables = [format!("HOME={home}"), format!("XDG_CONFIG_HOME={home}"), format!("XDG_DATA_HOME={home}")];
    let mut words = vec!["env"];
    words.extend(variables.iter().map(String::as_str));
    words.extend(["fish", "--no-config", "-c", &commands]);
    let found = shell(dir.path(), &words);
    let parts: Vec<&str> = found.split("---\n").collect();
    assert_eq!(parts.len(), LINES.len() + 1, "{found}");
    for ((line, wanted), part) in LINES.iter().zip(parts) {
        assert_offers(part, line, wanted);
    }
}

#[test]
fn zsh_completes() {
    needs!(has("zsh"), "zsh is not installed");
    needs!(terminals());
    let dir = place();
    let start =
        "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source <(wmlrun setup completions zsh); setopt autolist";
    std::fs::write(dir.path().join(".zshrc"), start).unwrap();
    let command = format!("env PATH='{}' ZDOTDIR='{}' zsh -i", path(), dir.path().display());
    let terminal = Terminal::start(dir.path(), (120, 50), &command);
    terminal.wait(|screen| screen.contains("ready>"));
    for (line, wanted) in LINES {
        terminal.keys(&["C-u"]);
        terminal.keys(&["C-l"]);
        terminal.wait(|screen| screen.trim() == "ready>");
        terminal.keys(&[line, "Tab"]);
        // A single completion is put into the line, several are listed below it.
        let last = line.rsplit(' ').next().unwrap();
        let screen = terminal.wait(|screen| wanted.iter().all(|word| screen.contains(word)));
        assert!(screen.contains(last), "{line}: {screen}");
    }
    terminal.keys(&["C-u"]);
    terminal.keys(&["exit", "Enter"]);
    assert_eq!(terminal.ends(), "0");
}

#[test]
fn a_shell_that_is_unknown_does_not_change_a_command() {
    let output = program().args(["list", "engines"]).env("WMLRUN_COMPLETE", "1").output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("posix"));
}
