//! `wmlrun show`, `clean`, and of `setup` the completions and manual pages.

use super::args;
use super::completion::{self, PROGRAM, SHELLS, VARIABLE};
use super::console::{self, print_lines};
use super::man;
use super::shell_text::joined;
use super::stdout::Stdout;
use crate::diag::{self, Failure};
use crate::disk::{self, prepare};
use crate::experiment::{SUITES, suite};
use crate::learn::fidelity_in;
use crate::measure::is_mounted_at;
use crate::os::held_dir::HeldDir;
use crate::os::reading;
use crate::session::library;
use crate::util::count;
use std::fs::DirEntry;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Prints the script of a shipped personality, or a shipped experiment file.
pub(super) fn show(name: &str, only_fidelity: bool) -> Result<u8, Failure> {
    if let Some((_, text)) = library::personality(name).or_else(|| suite(name)) {
        let compared = if only_fidelity { fidelity_in(text) } else { Some(text.to_owned()) };
        let compared = compared.ok_or_else(|| {
            let help = "`wmlrun list programs` lists those that were";
            Failure::wrong(format!("`{name}` was not compared with a program"), help)
        })?;
        print_lines(compared.trim_end());
        return Ok(0);
    }
    let near = diag::nearest(name, library::PERSONALITIES.iter().chain(SUITES).map(|(n, _)| *n));
    let help = diag::did_you_mean(near, || "`wmlrun list` and `wmlrun list experiments` list them".to_owned());
    Err(Failure::wrong(format!("no personality or experiment is named `{name}`"), help))
}

/// Removes the file sets in a directory, and in the fresh directories that killed runs left in it.
pub(super) fn clean(dir: &Path) -> u8 {
    let fresh = is_fresh(dir);
    let mut cleaned = clean_one(dir, if fresh { prepare::clean_fresh } else { prepare::clean });
    // A fresh directory of a run is empty once its sets are removed. A directory with such a name but without file
    // sets may belong to another user or program: keep it.
    let has_sets = cleaned.found;
    let entries = reading::entries(dir).unwrap_or_default();
    for path in entries.iter().map(DirEntry::path).filter(|p| is_fresh(p)) {
        let below = clean_one(&path, prepare::clean_fresh);
        cleaned = cleaned.and(below);
        if below.found && remove_empty_dir(&path) {
            cleaned.found = true;
            print_lines(&format!("{} removed", path.display()));
        }
    }
    if fresh && has_sets && remove_empty_dir(dir) {
        cleaned.found = true;
        print_lines(&format!("{} removed", dir.display()));
    }
    let is_current = std::fs::canonicalize(dir).ok().is_some_and(|dir| std::env::current_dir().ok() == Some(dir));
    if has_sets && !fresh && !is_current && reading::is_empty_dir(dir) && !is_mounted_at(dir) {
        print_lines(&format!("{} is empty now, and kept; `rmdir` removes it", dir.display()));
    }
    if !cleaned.found {
        // All of a fresh directory was searched.
        let end = if fresh { String::new() } else { deeper_sets(dir) };
        print_lines(&format!("no file sets of wmlrun in {}{end}", dir.display()));
    }
    cleaned.status
}

/// Removes a directory if it is empty. Returns whether it was removed.
fn remove_empty_dir(dir: &Path) -> bool {
    HeldDir::of_entry(dir).is_ok_and(|(parent, name)| parent.remove_empty_dir(&name))
}

/// True if a path is a directory with the name of a run's fresh directory, `wmlrun-PROCESS-NUMBER`.
fn is_fresh(path: &Path) -> bool {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let Some((process, number)) = name.strip_prefix("wmlrun-").and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(process) && digits(number) && path.is_dir() && !path.is_symlink()
}

/// The outcome of cleaning directories.
#[derive(Clone, Copy, Debug)]
struct Cleaned {
    /// Whether file sets of wmlrun were found.
    found: bool,
    /// Exit status.
    status: u8,
}

impl Cleaned {
    fn and(self, other: Self) -> Self {
        Self { found: self.found || other.found, status: self.status.max(other.status) }
    }
}

/// A function that removes the marked file sets in a directory, with a number of threads and a stop flag.
type Clean = fn(&Path, usize, &AtomicBool) -> Result<prepare::CleanReport, disk::Error>;

/// The largest number of file sets that `clean` lists. The sets of a process with many instances are as many.
const MAX_SHOWN: usize = 20;

/// The largest number of directories that `clean` names for another call.
const MAX_NAMED: usize = 5;

/// Returns the end of the message about a directory without file sets, which names deeper directories with some.
fn deeper_sets(dir: &Path) -> String {
    let deeper = prepare::with_marked_roots(dir);
    // The command is copied from a terminal.
    let named: Vec<String> = deeper.iter().filter_map(|dir| dir.to_str().map(str::to_owned)).take(MAX_NAMED).collect();
    if named.is_empty() {
        return "; deeper directories are not cleaned".to_owned();
    }
    let more = match deeper.len() - named.len() {
        0 => String::new(),
        more => format!(" (and {})", count::count(more as u64, "more directory")),
    };
    format!(" itself; there are some in deeper directories: `wmlrun clean {}`{more}", joined(&named))
}

/// Describes what a file set contained.
fn contents(files: u64, directories: u64) -> String {
    format!("{}, {}", count::count(files, "file"), count::count(directories, "directory"))
}

fn clean_one(dir: &Path, clean: Clean) -> Cleaned {
    let stop = AtomicBool::new(false);
    match clean(dir, crate::os::limits::processors(), &stop) {
        Ok(report) => {
            let (mut shown, mut more) = (0, [0; 3]);
            for removed in &report.removed {
                removed.note.iter().for_each(|note| console::notice(&format!("note: {note}")));
                if removed.was_unfinished && !removed.root_removed {
                    let path = removed.path.display();
                    let kept = if removed.has_others { "other files kept" } else { "the empty directory is kept" };
                    print_lines(&format!("{path}: incomplete marker removed; {kept}"));
                    continue;
                }
                shown += 1;
                if shown > MAX_SHOWN && !removed.adopted {
                    more = [more[0] + 1, more[1] + removed.files, more[2] + removed.directories];
                    continue;
                }
                let what = if removed.adopted { "released (adopted; its files are kept)" } else { "removed" };
                let path = removed.path.display();
                let kept = if removed.root_removed || removed.adopted { "" } else { "; the directory itself is kept" };
                print_lines(&format!("{path} {what}: {}{kept}", contents(removed.files, removed.directories)));
            }
            let [sets, files, directories] = more;
            if sets > 0 {
                let sets = count::count(sets, "more file set");
                print_lines(&format!("{sets} removed: {}", contents(files, directories)));
            }
            for refused in &report.refused {
                console::error(&refused.to_string(), refused.help().as_deref());
            }
            if report.searched > 0 {
                console::notice(&format!(
                    "note: only the first {} below {} were searched for file sets of `--below`: name the directory that \
                     has them",
                    count::count(report.searched as u64, "directory"),
                    dir.display()
                ));
            }
            let found = !report.removed.is_empty() || !report.refused.is_empty();
            Cleaned { found, status: if report.refused.is_empty() { 0 } else { 3 } }
        }
        Err(e) => {
            console::error(&e.to_string(), e.help().as_deref());
            // The directory could not be read: do not report that it contains nothing.
            Cleaned { found: true, status: 3 }
        }
    }
}

/// Prints the completion script for a shell.
pub(super) fn completions(shell: &str) -> u8 {
    let _ = Stdout.write_all(&completion::script(shell));
    0
}

/// Answers a shell that asks for completions. Returns the exit status, or `None` if no shell asks.
pub(super) fn answer_shell() -> Option<u8> {
    // A variable of any other value is not a question, and must not change what a command does.
    let shell = std::env::var_os(VARIABLE)?;
    let shell = SHELLS.iter().find(|known| *known.name() == *shell)?;
    let mut words: Vec<_> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if words.is_empty() {
        words.push(PROGRAM.into());
    }
    let mut command = args::full_command();
    command.build();
    let mut text = Vec::new();
    let here = std::env::current_dir().ok();
    if shell.write_complete(&mut command, words, here.as_deref(), &mut text).is_ok() {
        let _ = Stdout.write_all(&text);
    }
    Some(0)
}

/// Writes the manual pages.
pub(super) fn manual(dir: &Path) -> Result<u8, Failure> {
    let made = HeldDir::create(dir);
    let is_there = made.is_ok();
    let written = made.and_then(|_| man::write_pages(args::full_command(), dir));
    written.map(|()| 0).map_err(|e| {
        let text = format!("can't write the manual pages to {}: {e}", dir.display());
        match e.kind() {
            ErrorKind::AlreadyExists => {
                let help = "give another directory, or move the file away: it is not a manual page of wmlrun";
                Failure::refused(text, help)
            }
            _ if is_there => Failure::failed(text, "give a directory in which files can be created"),
            _ => Failure::refused(text, "give a directory in which files can be created"),
        }
    })
}
