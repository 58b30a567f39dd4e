//! Redaction of results: values of environment variables that a script has read (unless `--record-env`) and, with
//! `--redact`, the host name, mounts, paths and the command line.
//!
//! Runs and the environment are redacted before they are added to the document, so that every format and file has the
//! same text. Within a session, a placeholder always stands for the same text. Not here: messages that a script prints
//! to the terminal.

use crate::os::proc;
use crate::result::texts::TextField;
use crate::result::{Document, Environment, Run, Script};
use crate::util::hash::sha256;
use crate::util::secrets::{ENVIRONMENT, replace_words, without_environment};
use std::path::{Path, PathBuf};

/// The placeholder of a path that is not known otherwise.
const PATH: &str = "(path)";

/// Where a script comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptOrigin {
    /// It is shipped with the program: its name says nothing about the machine.
    Shipped,
    /// It has another origin.
    Other,
}

/// The texts to be redacted; the number of a placeholder is the index of its text.
#[derive(Debug, Default)]
pub(crate) struct Redaction {
    /// `--redact`.
    is_wanted: bool,
    /// The directories of `--dir`.
    dirs: Vec<String>,
    host: String,
    mounts: Vec<String>,
    sources: Vec<String>,
    paths: Vec<String>,
}

/// Returns the number of a text, from 1. Adds the text if it is new.
fn number(seen: &mut Vec<String>, text: &str) -> usize {
    let at = seen.iter().position(|other| other == text).unwrap_or_else(|| {
        seen.push(text.to_owned());
        seen.len() - 1
    });
    at + 1
}

impl Redaction {
    /// Nothing is known yet. `is_wanted`: `--redact`. `dirs`: the directories of `--dir`.
    pub(crate) fn new(is_wanted: bool, dirs: Vec<String>) -> Self {
        Self { is_wanted, dirs, ..Self::default() }
    }

    /// Redacts a run for the document. Texts that are redacted already do not change.
    pub(crate) fn publish(&mut self, run: &mut Run, secrets: &[String]) {
        if !secrets.is_empty() {
            run.texts_mut(&mut |field, text| {
                if matches!(
                    field,
                    TextField::Name | TextField::Path | TextField::Value | TextField::Words | TextField::MountPoint
                ) {
                    *text =
                        without_environment(text, secrets, matches!(field, TextField::Words | TextField::MountPoint));
                }
            });
            for set in &mut run.filesets {
                // Reports find the mount of a set by its path.
                if set.path.starts_with(ENVIRONMENT)
                    && !run.environment.mounts.iter().any(|mount| set.path.starts_with(&mount.path))
                    && let Some(root) = run.environment.mounts.iter().find(|mount| mount.path.starts_with('/'))
                {
                    set.path = format!("{}/{}", root.path.trim_end_matches('/'), set.path);
                }
            }
        }
        if self.is_wanted {
            self.dirs.clone().iter().for_each(|dir| self.add_path(dir));
            if let Ok(here) = std::env::current_dir() {
                self.add_path(&here.display().to_string());
            }
            self.run(run);
        }
        run.name_intervals();
    }

    /// Registers the paths of a run's file sets, so that they are recognised in texts.
    pub(crate) fn add_paths(&mut self, paths: &[PathBuf]) {
        for path in paths {
            self.add_path(&path.display().to_string());
            path.parent().into_iter().for_each(|parent| self.add_path(&parent.display().to_string()));
        }
    }

    /// Sets the script's entry in the document. `dialect`: its name and the reason for it.
    pub(crate) fn describe_script(
        &mut self,
        document: &mut Document,
        (path, text): (&str, &str),
        dialect: (&str, &str),
        origin: ScriptOrigin,
    ) {
        let script = &mut document.script;
        path.clone_into(&mut script.path);
        text.clone_into(&mut script.text);
        script.sha256 = sha256(text);
        (script.dialect, script.dialect_reason) = (dialect.0.to_owned(), dialect.1.to_owned());
        if self.is_wanted {
            [_, self.host, ..] = proc::uname();
            self.script(script, origin);
            for remark in [&mut document.label, &mut document.note].into_iter().flatten() {
                *remark = self.redacted(remark);
            }
        }
    }

    /// Adds a path that is to be recognised in texts.
    pub(crate) fn add_path(&mut self, path: &str) {
        if path.chars().any(char::is_alphanumeric) {
            number(&mut self.paths, path);
        }
    }

    pub(crate) fn environment(&mut self, environment: &mut Environment) {
        if !self.is_wanted {
            return;
        }
        self.host.clone_from(&environment.uname.nodename);
        environment.texts_mut(&mut |field, text| match field {
            TextField::Host => "(host)".clone_into(text),
            TextField::KernelCommandLine => *text = redact_kernel_command_line(text, &self.host),
            _ => {}
        });
    }

    pub(crate) fn run(&mut self, run: &mut Run) {
        run.texts_mut(&mut |field, text| match field {
            TextField::MountPoint | TextField::MountSource if text.is_empty() || text.starts_with('(') => {}
            TextField::MountPoint => *text = format!("(mount {})", number(&mut self.mounts, text)),
            TextField::MountSource => *text = format!("(source {})", number(&mut self.sources, text)),
            TextField::KernelCommandLine => *text = redact_kernel_command_line(text, &self.host),
            TextField::MountOptions => *text = text.split(',').map(redact_mount_option).collect::<Vec<_>>().join(","),
            TextField::Path if !text.starts_with('(') => *text = self.path(text),
            TextField::Value if self.paths.contains(text) => *text = self.path(text),
            TextField::CommandLine => "(word)".clone_into(text),
            TextField::Value | TextField::Words | TextField::Name => *text = self.redacted(text),
            _ => {}
        });
    }

    pub(crate) fn script(&mut self, script: &mut Script, origin: ScriptOrigin) {
        if origin != ScriptOrigin::Shipped && !matches!(script.path.as_str(), "-" | "<stdin>" | "") {
            "(script)".clone_into(&mut script.path);
        }
        script.text = self.redacted(&script.text);
    }

    /// Returns the placeholder of a path. It contains the placeholder of its mount, which reports look up.
    fn path(&mut self, path: &str) -> String {
        let holds = |mount: &&String| Path::new(path).starts_with(mount);
        let mount = self.mounts.iter().filter(holds).max_by_key(|mount| mount.len()).cloned();
        let name = format!("(path {})", number(&mut self.paths, path));
        mount.map_or_else(|| name.clone(), |mount| format!("(mount {})/{name}", number(&mut self.mounts, &mount)))
    }

    /// Returns a text with everything about the machine redacted.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let mut out = text.to_owned();
        let mut known: Vec<(&String, String)> = Vec::new();
        known.extend(self.paths.iter().enumerate().map(|(n, path)| (path, format!("(path {})", n + 1))));
        known.extend(self.sources.iter().enumerate().map(|(n, source)| (source, format!("(source {})", n + 1))));
        // A text that contains another one comes first.
        known.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        for (path, placeholder) in known.iter().filter(|(path, _)| path.len() > 1 && path.contains('/')) {
            out = out.replace(path.as_str(), placeholder);
        }
        if !self.host.is_empty() {
            out = replace_words(&out, &self.host, "(host)");
        }
        replace_absolute_paths(&out)
    }
}

/// Redacts a mount option whose value is a path, an address or a user.
fn redact_mount_option(option: &str) -> String {
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

/// The placeholder of what is left out of a kernel command line: a word, as the parts of the line are.
const LEFT_OUT: &str = "…";

/// Returns the parameters of a kernel command line, without the arguments of the first process, which follow `--`.
fn kernel_parameters(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let words = line.split(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    words.filter(|word| !word.is_empty()).take_while(|word| *word != "--").collect()
}

/// Returns the parameters of a kernel command line, without the values of those that may be secret. They are not needed
/// to compare runs, and no result is to have them.
pub(crate) fn without_secrets(line: &str) -> String {
    const SECRET: [&str; 8] = ["pass", "secret", "token", "cred", "key", "auth", "pwd", "psk"];
    // As in `iscsi:user:password@host`, `cifs:user:password@host` and in a URL.
    let has_user = |value: &str| value.split_once('@').is_some_and(|(before, _)| before.contains(':'));
    let shown = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if SECRET.iter().any(|word| name.to_lowercase().contains(word)) || has_user(value) => {
            format!("{name}={LEFT_OUT}")
        }
        _ => parameter.to_owned(),
    };
    kernel_parameters(line).into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Redacts a kernel command line: names and words stay where they are words of the kernel, and numbers where they are
/// short. Others may be the name of a machine, an address, a device or a path.
fn redact_kernel_command_line(line: &str, host: &str) -> String {
    /// Values that parameters of the kernel have in common.
    const VALUES: &str = "on off yes no auto none never always madvise force enable enabled disable disabled default full \
        nosmt passive active guided performance powersave ondemand conservative schedutil idle poll halt \
        voluntary lazy strict mq-deadline kyber bfq tsc hpet kvm-clock pt isolate vsyscall";
    const MAX_NUMBER: usize = 8;
    let is_number = |part: &str| {
        let digits = part.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
        (1..=MAX_NUMBER).contains(&part.len()) && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    // A list such as `1-3,6`, in which each part is a number or a known word.
    let is_public = |value: &str| {
        value.split([',', '-']).all(is_number) || value.split(',').all(|v| VALUES.split(' ').any(|known| known == v))
    };
    let is_word = |text: &str| {
        text.len() <= 40 && text != host && text.chars().all(|c| c.is_ascii_lowercase() || "_.-".contains(c))
    };
    let is_name = |name: &str| name != host && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let shown = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if is_name(name) && is_public(value) => parameter.to_owned(),
        Some((name, _)) if is_name(name) => format!("{name}={LEFT_OUT}"),
        None if is_word(parameter) => parameter.to_owned(),
        _ => LEFT_OUT.to_owned(),
    };
    kernel_parameters(line).into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// Replaces absolute paths, also those that start with `~/`, up to a blank or a punctuation mark that ends a path.
fn replace_absolute_paths(text: &str) -> String {
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

/// Redacts everything about the machine in a script that is not shipped.
pub(crate) fn redact_script(script: &mut Script) {
    let host = super::hostname();
    Redaction { host, ..Redaction::default() }.script(script, ScriptOrigin::Other);
}

#[cfg(test)]
mod tests {
    use super::{
        Redaction, Script, ScriptOrigin, redact_kernel_command_line, redact_mount_option, replace_absolute_paths,
        without_secrets,
    };

    #[test]
    fn only_the_name_of_a_shipped_script_is_kept() {
        for (origin, expected) in [(ScriptOrigin::Shipped, "mail (shipped)"), (ScriptOrigin::Other, "(script)")] {
            let mut script = Script { path: "mail (shipped)".to_owned(), ..Script::default() };
            Redaction::default().script(&mut script, origin);
            assert_eq!(script.path, expected);
        }
    }

    #[test]
    fn paths_are_replaced_and_rates_are_not() {
        let text = "set $dir=/data/x y=\"/a b\":/c ~/x ops/s p50/p99 a / b $dir/sub `/z`, ./rel";
        let expect = "set $dir=(path) y=\"(path) b\":(path) (path) ops/s p50/p99 a / b $dir/sub `(path)`, ./rel";
        assert_eq!(replace_absolute_paths(text), expect);
    }

    #[test]
    fn a_kernel_command_line_keeps_no_secret_and_redacted_no_name() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=8b1f4d0a-1234 ro quiet mitigations=auto,nosmt isolcpus=1-3,6 hugepages=64 \
                    ip=10.0.0.7::10.0.0.1 rd.iscsi.password=hunter2 s=https://me:pw@web1/x dyndbg=\"file a.c +p\" web1 \
                    systemd.hostname=web1 serial=123456789012 console=ttyS0,115200 -- --token abc";
        let kept = without_secrets(line);
        for text in
            ["root=UUID=8b1f4d0a-1234", "ip=10.0.0.7::10.0.0.1", "dyndbg=\"file a.c +p\"", "mitigations=auto,nosmt"]
        {
            assert!(kept.contains(text), "{kept}");
        }
        for secret in ["hunter2", "pw@", "abc", "--"] {
            assert!(!kept.contains(secret), "{kept}");
        }
        let expected = "BOOT_IMAGE=… root=… ro quiet mitigations=auto,nosmt isolcpus=1-3,6 hugepages=64 \
                        ip=… rd.iscsi.password=… s=… dyndbg=… … \
                        systemd.hostname=… serial=… console=…";
        // What has been redacted stays as it is.
        assert_eq!([line, expected].map(|line| redact_kernel_command_line(line, "web")), [expected; 2]);
        assert_eq!(redact_kernel_command_line("quiet myhost", "myhost"), "quiet …");
    }

    #[test]
    fn mount_options_without_names_are_kept() {
        let shown: Vec<String> = "rw,size=4k,lowerdir=/var/x,addr=10.0.0.1,username=me,data=ordered"
            .split(',')
            .map(redact_mount_option)
            .collect();
        assert_eq!(shown.join(","), "rw,size=4k,lowerdir=(left out),addr=(left out),username=(left out),data=ordered");
    }
}
