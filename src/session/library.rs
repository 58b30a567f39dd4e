//! The shipped personalities, and the search for a script by name.
//!
//! To add a personality: `personalities/NAME.wml`, which begins with a comment (what it models, where its figures come
//! from, its variables) and `# dialect:`, has a `set` for every figure with the name that Filebench gives it, `usage`
//! lines, no `run`, and no path but `$dir`. Writers that would never stop are bounded by a size. Its name goes to a
//! group in `groups.rs`. An example in `examples/` has the same form and shows one feature. An experiment is
//! `experiments/NAME.toml` with `# NAME: what it measures` as its first line, and `# Source: TEXT` as its second if it
//! repeats a published measurement; with commands it makes images in the current directory, fails if one exists, and
//! has a test in `tests/it/suites.rs`.

use crate::diag::{Code, Diagnostic, did_you_mean, similar_path};
use crate::measure::read_regular;
use crate::source::{SHIPPED, Spanned};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Name and text of every shipped personality, by name.
pub static PERSONALITIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/personalities.rs"));

/// Bytes of the longest script. A longer text is not a script.
pub const LONGEST: u64 = 64 << 20;

/// Makes the text of a script of its bytes. Those that are not UTF-8 are replaced.
pub fn text(bytes: Vec<u8>) -> String {
    // Texts in UTF-8 need no copy.
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Reads the bytes of a script. Returns an error if it is longer than [`LONGEST`].
pub fn read_bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST { Err(too_long()) } else { Ok(bytes) }
}

fn too_long() -> io::Error {
    let message = format!("it has more than {} MiB, which no script has", LONGEST >> 20);
    io::Error::new(ErrorKind::FileTooLarge, message)
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundScript {
    /// Its name in messages.
    pub name: String,
    /// Its text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether it is UTF-8.
    pub utf8: bool,
    /// Its file, if it has one.
    pub path: Option<PathBuf>,
}

impl FoundScript {
    pub fn new(name: String, bytes: Vec<u8>, path: Option<PathBuf>) -> Self {
        let (text, utf8) = match String::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
        };
        Self { name, text, utf8, path }
    }
}

/// Why a script was not found.
#[derive(Debug)]
pub enum NotFound {
    /// There is no file and no personality of that name. Holds the nearest name of a personality.
    Nowhere(Option<&'static str>),
    /// The path exists and can't be read.
    Unreadable(PathBuf, io::Error),
    /// It is an experiment file.
    Experiment,
}

impl NotFound {
    /// The error for a script or personality that a text names.
    pub(crate) fn diagnostic(self, name: &Spanned<String>) -> Diagnostic {
        match self {
            Self::Unreadable(path, e) => {
                let message = format!("{} can't be read: {e}", path.display());
                Diagnostic::error(Code::BadArgument, name.span, message).help(help(&e))
            }
            Self::Experiment => {
                let (message, help) = instead_of_script(&name.node);
                Diagnostic::error(Code::BadArgument, name.span, message).help(help)
            }
            Self::Nowhere(_) if name.node.contains('/') => {
                let message = format!("there is no script `{}`", name.node);
                Diagnostic::error(Code::BadArgument, name.span, message).help(missing_file_help(&name.node))
            }
            Self::Nowhere(near) => {
                let message = format!("there is no script or personality `{}`", name.node);
                let other = || "`wmlrun list personalities` shows what is shipped".to_owned();
                Diagnostic::error(Code::BadArgument, name.span, message).help(did_you_mean(near, other))
            }
        }
    }
}

/// The error that the name of a script is that of an experiment, with its help.
pub(crate) fn instead_of_script(name: &str) -> (String, String) {
    (format!("`{name}` is an experiment, not a script"), format!("`wmlrun experiment {name}` makes its runs"))
}

/// The help for the path of a script that does not exist.
pub(crate) fn missing_file_help(path: &str) -> String {
    match similar_path(Path::new(path), false) {
        Some(near) => format!("did you mean `{}`?", near.display()),
        None => "check the path: no name like it is in that directory".to_owned(),
    }
}

/// The help for a script that can't be read.
pub fn help(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::IsADirectory => "name a script in it; `wmlrun list` shows what is shipped",
        ErrorKind::PermissionDenied => "its permissions, or those of a directory above it, must allow it",
        ErrorKind::FileTooLarge => "name a script",
        ErrorKind::InvalidInput => "give a file, `-` for standard input, or the name of a personality",
        ErrorKind::TimedOut => "start the program that writes to it, or give a file",
        _ => "give the name of another script or personality",
    }
}

/// True if a text is a result instead of a script: JSON, or the log of Filebench. A script begins with neither.
pub(crate) fn is_result(text: &str) -> bool {
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else { return false };
    let is_time = |word: &str| word.parse::<f64>().is_ok();
    let is_log = || {
        // Each line begins with the time, that of 1.4 with the process ID before it.
        let mut words = first.split_whitespace().map(|word| word.strip_suffix(':').filter(|word| is_time(word)));
        words.next().flatten().is_some()
    };
    first.starts_with('{') || first.starts_with("Filebench Version") || is_log()
}

/// The text of a personality, by its name with or without `.wml` or `.f`.
pub fn personality(name: &str) -> Option<(&'static str, &'static str)> {
    let stem = stem(name);
    PERSONALITIES.iter().copied().find(|(n, _)| *n == stem)
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".wml").or_else(|| name.strip_suffix(".f")).unwrap_or(name)
}

/// Finds a script: first a file of that name (as given, then with `.wml` and `.f`), in `beside` and as a path, then a
/// shipped personality.
pub fn find(name: &str, beside: Option<&Path>) -> Result<FoundScript, NotFound> {
    find_in(name, beside, false, &read_file)
}

/// The same for a name on the command line, which may be a pipe. `read` reads a file or a pipe.
pub(crate) fn find_named(name: &str, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<FoundScript, NotFound> {
    find_in(name, None, true, &read)
}

fn find_in(
    name: &str,
    beside: Option<&Path>,
    pipes: bool,
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<FoundScript, NotFound> {
    let candidates = [name.to_owned(), format!("{name}.wml"), format!("{name}.f")];
    let places = beside.map(|dir| candidates.iter().map(|c| dir.join(c)).collect::<Vec<_>>()).unwrap_or_default();
    let mut in_the_way = None;
    for path in places.into_iter().chain(candidates.iter().map(PathBuf::from)) {
        match script_at(&path, pipes) {
            // None of its lines is one of a script, so that the errors of a script would be about all of them.
            Ok(true) if path.extension().is_some_and(|extension| extension == "toml") => {
                return Err(NotFound::Experiment);
            }
            Ok(true) => {
                return match read(&path) {
                    Ok(bytes) => Ok(FoundScript::new(path.display().to_string(), bytes, Some(path))),
                    Err(error) => Err(NotFound::Unreadable(path, error)),
                };
            }
            Ok(false) => {}
            Err(error) => in_the_way = in_the_way.or(Some(NotFound::Unreadable(path, error))),
        }
    }
    match (personality(name), in_the_way) {
        (Some((name, text)), _) => {
            Ok(FoundScript { name: format!("{name}{SHIPPED}"), text: text.to_owned(), utf8: true, path: None })
        }
        (None, Some(unreadable)) => Err(unreadable),
        (None, None) => Err(NotFound::Nowhere(crate::diag::nearest(stem(name), PERSONALITIES.iter().map(|(n, _)| *n)))),
    }
}

/// Reads a regular file, as far as a script may be long. Other files, such as pipes, may have no end.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    script_at(path, false)?;
    read_regular(path, LONGEST).map_err(|e| if e.kind() == ErrorKind::FileTooLarge { too_long() } else { e })
}

/// The folder of a script, where texts that it loads are searched for first.
pub(crate) fn folder_of(name: &str) -> Option<PathBuf> {
    Path::new(name).parent().filter(|dir| dir.is_dir()).map(PathBuf::from)
}

/// The personality that a script is, by its name in messages and its text: a file may have any name.
pub(crate) fn shipped_as(name: &str, text: &str) -> Option<&'static str> {
    let (personality, shipped) = personality(name.strip_suffix(SHIPPED)?)?;
    (shipped == text).then_some(personality)
}

/// Whether a script is a file outside a folder (the current one by default).
pub(crate) fn is_elsewhere(found: &FoundScript, beside: Option<&Path>) -> bool {
    let Some(path) = &found.path else { return false };
    let beside = beside.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(path), std::fs::canonicalize(beside)) {
        (Ok(file), Ok(folder)) => !file.starts_with(folder),
        _ => false,
    }
}

/// Whether there is a script at a path. Returns an error if the path is not a file, or can't be accessed.
fn script_at(path: &Path, pipes: bool) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() || (pipes && meta.file_type().is_fifo()) => Ok(true),
        Ok(meta) if meta.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The first line of a script's leading comment, without the name.
pub fn about(text: &str) -> &str {
    let line = text.lines().find_map(|l| l.strip_prefix('#')).unwrap_or("").trim();
    line.split_once(": ").map_or(line, |(_, rest)| rest)
}

/// What was measured before, from the line `# Source: TEXT` of an experiment's leading comment.
pub fn source(text: &str) -> Option<&str> {
    text.lines().take_while(|line| line.starts_with('#')).find_map(|line| line.strip_prefix("# Source: "))
}

/// The lines `# note: TEXT` of a script's leading comment, for readers of results. At most ten of a thousand bytes
/// each, because every result repeats them.
pub fn notes(text: &str) -> impl Iterator<Item = &str> {
    let comment = text.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
    let notes = comment.filter_map(|line| line.trim_start_matches('#').trim_start().strip_prefix("note:"));
    notes.map(str::trim).filter(|note| !note.is_empty() && note.len() <= 1000).take(10)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{NotFound, find, help, is_elsewhere, shipped_as};

    #[test]
    fn the_error_says_what_a_path_is_that_is_not_a_script() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("circle"), at("circle")).unwrap();
        for (name, why) in [("folder", "is a directory"), ("circle", "symbolic link")] {
            let Err(NotFound::Unreadable(path, e)) = find(&at(name), None) else { panic!("{name} was found") };
            assert_eq!(path.to_str().unwrap(), at(name));
            assert!(e.to_string().contains(why), "{name}: {e}");
            assert!(!help(&e).is_empty());
        }
        for name in ["missing", "folder/missing", "folder/missing/x.wml"] {
            assert!(matches!(find(&at(name), None), Err(NotFound::Nowhere(_))), "{name}");
        }
        std::fs::write(at("plan.toml"), "script = \"varmail\"\n").unwrap();
        assert!(matches!(find(&at("plan.toml"), None), Err(NotFound::Experiment)));
        // A directory of that name hides neither a script nor a personality.
        std::fs::write(at("folder.wml"), "run 1").unwrap();
        assert_eq!(find(&at("folder"), None).unwrap().text, "run 1");
        std::fs::create_dir(at("varmail")).unwrap();
        assert!(find("varmail", Some(dir.path())).unwrap().name.contains("shipped"));
    }

    #[test]
    fn a_file_that_is_called_as_a_shipped_script_is_a_file() {
        let found = find("varmail", None).unwrap();
        assert_eq!(found.name, "varmail (shipped)");
        assert_eq!(shipped_as(&found.name, &found.text), Some("varmail"));
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(!is_elsewhere(&found, Some(other.path())));
        std::fs::write(dir.path().join("varmail (shipped)"), "run 1").unwrap();
        let found = find("varmail (shipped)", Some(dir.path())).unwrap();
        assert_eq!(shipped_as(&found.name, &found.text), None);
        assert_eq!(shipped_as("varmail (shipped)", &found.text), None);
        assert!(is_elsewhere(&found, Some(other.path())) && !is_elsewhere(&found, Some(dir.path())));
    }
}
