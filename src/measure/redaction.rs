//! What a result does not show: values of the environment that a script read (unless `--record-env`), and, with `--redact`, the
//! machine's name, what is mounted, paths and the command line.
//!
//! Runs and environment are changed before they are part of the document, so that every format and every file has the same. A
//! placeholder stands for the same text in all of a session. Absent: what a script prints to the terminal of its own messages.

use super::Settings;
use crate::result::texts::TextField;
use crate::result::{Environment, Run, Script};
use std::path::{Component, Path, PathBuf};

/// Stands for what is made of the environment.
pub const ENVIRONMENT: &str = "(environment)";

/// The command line as the document has it.
pub(crate) fn command_line(settings: &Settings) -> Vec<String> {
    if settings.redact { vec!["(command line)".to_owned()] } else { settings.command_line.clone() }
}

/// Stands for a path that nothing else is known of.
const PATH: &str = "(path)";

/// Replaces each value in a text. Values that could be anything (short ones, numbers) are replaced as whole words only, and not at
/// all in `prose`.
pub(crate) fn without_environment(text: &str, values: &[String], prose: bool) -> String {
    let mut out = text.to_owned();
    for value in values {
        let common = value.chars().count() < 4 || value.parse::<f64>().is_ok();
        if !common {
            out = out.replace(value.as_str(), ENVIRONMENT);
        } else if !prose && value.chars().any(char::is_alphanumeric) {
            out = words_replaced(&out, value, ENVIRONMENT);
        }
    }
    out
}

/// What becomes of a value in a path: without doubled and closing slashes and `.`; and without `..`.
fn as_paths(value: &str) -> Vec<String> {
    if !value.contains('/') {
        return Vec::new();
    }
    let parts = Path::new(value).components();
    let mut resolved = PathBuf::new();
    for part in parts.clone() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    let clean: PathBuf = parts.collect();
    [clean, resolved].iter().map(|path| path.display().to_string()).filter(|path| path != value).collect()
}

/// Values of the environment that a result must not hold, in each form in which they may stand there; the longest first.
pub fn secrets(mut values: Vec<String>) -> Vec<String> {
    values.extend(values.clone().iter().flat_map(|value| as_paths(value)));
    values.retain(|value| !value.is_empty() && !ENVIRONMENT.contains(value.as_str()));
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// Replaces a text where it is a word or several: no letter or digit touches it.
fn words_replaced(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back());
        let behind = rest[at + word.len()..].chars().next();
        let touched = [before, behind].into_iter().flatten().any(char::is_alphanumeric);
        out.push_str(&rest[..at]);
        out.push_str(if touched { word } else { by });
        rest = &rest[at + word.len()..];
    }
    out + rest
}

/// Which placeholders stand for what.
#[derive(Debug, Default)]
pub(crate) struct Redaction {
    pub(crate) host: String,
    mounts: Vec<String>,
    sources: Vec<String>,
    paths: Vec<String>,
}

/// The number of a text among those that were seen, from 1.
fn number(seen: &mut Vec<String>, text: &str) -> usize {
    let at = seen.iter().position(|other| other == text).unwrap_or_else(|| {
        seen.push(text.to_owned());
        seen.len() - 1
    });
    at + 1
}

impl Redaction {
    /// Takes note of a path that is to be recognised in texts.
    pub(crate) fn learn(&mut self, path: &str) {
        if path.chars().any(char::is_alphanumeric) {
            number(&mut self.paths, path);
        }
    }

    pub(crate) fn environment(&mut self, environment: &mut Environment) {
        self.host.clone_from(&environment.uname.nodename);
        environment.texts_mut(&mut |field, text| {
            if field == TextField::Host {
                "(host)".clone_into(text);
            }
        });
    }

    pub(crate) fn run(&mut self, run: &mut Run) {
        run.texts_mut(&mut |field, text| match field {
            TextField::MountPoint | TextField::MountSource if text.starts_with('(') => {}
            TextField::MountPoint => *text = format!("(mount {})", number(&mut self.mounts, text)),
            TextField::MountSource => *text = format!("(source {})", number(&mut self.sources, text)),
            TextField::MountOptions => *text = text.split(',').map(option).collect::<Vec<_>>().join(","),
            TextField::Path if !text.starts_with('(') => *text = self.path(text),
            TextField::Value if self.paths.contains(text) => *text = self.path(text),
            TextField::Value | TextField::Words | TextField::Name => *text = self.scrubbed(text),
            _ => {}
        });
    }

    pub(crate) fn script(&mut self, script: &mut Script) {
        if !script.path.ends_with(" (shipped)") && !matches!(script.path.as_str(), "-" | "<stdin>" | "") {
            "(script)".clone_into(&mut script.path);
        }
        script.text = self.scrubbed(&script.text);
    }

    /// A placeholder that says on which mount a path lies: reports look that up.
    fn path(&mut self, path: &str) -> String {
        let holds = |mount: &&String| Path::new(path).starts_with(mount);
        let mount = self.mounts.iter().filter(holds).max_by_key(|mount| mount.len()).cloned();
        let name = format!("(path {})", number(&mut self.paths, path));
        mount.map_or_else(|| name.clone(), |mount| format!("(mount {})/{name}", number(&mut self.mounts, &mount)))
    }

    /// A text without what it says of the machine.
    fn scrubbed(&self, text: &str) -> String {
        let mut out = text.to_owned();
        let mut known: Vec<(&String, String)> = Vec::new();
        known.extend(self.paths.iter().enumerate().map(|(n, path)| (path, format!("(path {})", n + 1))));
        known.extend(self.sources.iter().enumerate().map(|(n, source)| (source, format!("(source {})", n + 1))));
        // What holds another comes first.
        known.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        for (path, placeholder) in known.iter().filter(|(path, _)| path.len() > 1 && path.contains('/')) {
            out = out.replace(path.as_str(), placeholder);
        }
        if !self.host.is_empty() {
            out = words_replaced(&out, &self.host, "(host)");
        }
        absolute_paths_replaced(&out)
    }
}

/// An option of a mount; what names a path, an address or a user is left out.
fn option(option: &str) -> String {
    const PRIVATE: [&str; 8] = ["addr", "user", "domain", "name", "pass", "secret", "dir", "cred"];
    match option.split_once('=') {
        Some((key, value))
            if PRIVATE.iter().any(|word| key.contains(word))
                || value.contains(['/', ':', '@', '\\'])
                || value.len() > 24 =>
        {
            format!("{key}=(left out)")
        }
        _ => option.to_owned(),
    }
}

/// Replaces what begins as an absolute path does, or with `~/`, up to a blank or a sign that parts texts.
fn absolute_paths_replaced(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "\"'`,;:()<>|{}".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let home = rest[..at].ends_with('~');
        let start = at - usize::from(home);
        let before = rest[..start].chars().next_back().or_else(|| out.chars().next_back());
        let end = rest[at..].find(ends).map_or(rest.len(), |end| at + end);
        let begins = before.is_none_or(|c| !c.is_alphanumeric() && !")}._-%/*".contains(c));
        out.push_str(&rest[..start]);
        out.push_str(if begins && end > at + 1 { PATH } else { &rest[start..end.max(at + 1)] });
        rest = &rest[end.max(at + 1)..];
    }
    out + rest
}

/// A script without what it says of the machine.
pub fn redact_script(script: &mut Script) {
    let host = super::hostname();
    Redaction { host, ..Redaction::default() }.script(script);
}

/// The SHA-256 of a text or of bytes, in hexadecimal.
pub fn sha256(text: impl AsRef<[u8]>) -> String {
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::new(), |mut hex, b| {
        let _ = write!(hex, "{b:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::{absolute_paths_replaced, as_paths, option, without_environment, words_replaced};

    #[test]
    fn values_of_the_environment_are_replaced() {
        let values = ["s3cr3t-token".to_owned(), "8080".to_owned(), "ab".to_owned()];
        assert_eq!(without_environment("x/s3cr3t-token/y", &values, true), "x/(environment)/y");
        assert_eq!(
            without_environment("p-8080 a8080 ab cab", &values, false),
            "p-(environment) a8080 (environment) cab"
        );
        assert_eq!(without_environment("8080 files of ab", &values, true), "8080 files of ab");
        assert_eq!(words_replaced("aa a", "a", "b"), "aa b");
    }

    #[test]
    fn a_value_is_known_as_it_stands_in_a_path() {
        assert_eq!(as_paths("a//b/./c/"), ["a/b/c", "a/b/c"]);
        assert_eq!(as_paths("../a/../secret"), ["secret"]);
        assert_eq!(as_paths("/a/../secret/"), ["/a/../secret", "/secret"]);
        assert!(as_paths("/a/b").is_empty() && as_paths("..").is_empty());
    }

    #[test]
    fn paths_are_replaced_and_rates_are_not() {
        let text = "set $dir=/data/x y=\"/a b\":/c ~/x ops/s p50/p99 a / b $dir/sub `/z`, ./rel";
        let expect = "set $dir=(path) y=\"(path) b\":(path) (path) ops/s p50/p99 a / b $dir/sub `(path)`, ./rel";
        assert_eq!(absolute_paths_replaced(text), expect);
    }

    #[test]
    fn options_keep_what_is_no_name() {
        let shown: Vec<String> =
            "rw,size=4k,lowerdir=/var/x,addr=10.0.0.1,username=me,data=ordered".split(',').map(option).collect();
        assert_eq!(shown.join(","), "rw,size=4k,lowerdir=(left out),addr=(left out),username=(left out),data=ordered");
    }
}
