//! Parses Filebench's profiles, the lists of workloads that `wmlrun batch` runs.
//!
//! In: the text of a profile. Out: a [`Profile`], and errors and warnings. A profile is a `DEFAULTS { … }` section
//! and `CONFIG name { … }` sections with an assignment a line, exactly `key = value;`. Filebench ignores any other line
//! silently. Here such a line is ignored with a warning that suggests a correct one.
//!
//! Pure: no files, no personalities. [`Profile::unknown_keys`] is given the variables of the personalities.

use crate::diag::{Code, Diagnostic, did_you_mean, nearest};
use crate::model;
use crate::source::{FileId, Span, Spanned};
use crate::util::batch_files::BATCH_PAGE;
use crate::util::printable;
use indexmap::IndexMap;
use std::collections::HashSet;

/// Keys of the batch, which are not variables of personalities.
const OWN_KEYS: [&str; 8] =
    ["stats", "filesystem", "function", "personality", "runtime", "dir", "description", "debug"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The assignments for all workloads that do not override them.
    pub defaults: Vec<Assignment>,
    /// The workloads, in source order.
    pub configs: Vec<Config>,
    /// Lines of another form.
    ignored: Vec<IgnoredLine>,
}

/// One `key = value;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub key: Spanned<String>,
    /// The value, without enclosing quotes.
    pub value: Spanned<String>,
}

/// One `CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its name, which is that of its directory of results.
    pub name: Spanned<String>,
    pub own: Vec<Assignment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct IgnoredLine {
    span: Span,
    /// The key and value that it probably should have.
    meant: Option<(String, String)>,
}

/// Parses a profile. An error leaves nothing to run, or no name for a directory of results.
pub fn parse(file: FileId, text: &str) -> (Profile, Vec<Diagnostic>) {
    let mut reader = Reader { file, profile: Profile::default(), section: None, pending: None, found: Vec::new() };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line, at);
        at += line.len();
    }
    reader.end(text.len())
}

enum Section {
    Defaults,
    Config(Config),
    /// `MULTICLIENT`, which names machines that run the profile together. Its lines are ignored.
    Clients,
}

struct Reader {
    file: FileId,
    profile: Profile,
    /// The open section, and the place of its first line.
    section: Option<(Section, Span)>,
    /// A section whose brace is expected on the next line.
    pending: Option<(Section, Span)>,
    found: Vec<Diagnostic>,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) {
        let code = line.split('#').next().unwrap_or("");
        let bare = code.trim();
        let start = at + (code.len() - code.trim_start().len());
        let span = Span::new(self.file, start, start + bare.len());
        if bare.is_empty() {
            return;
        }
        if let Some(pending) = self.pending.take() {
            if bare == "{" {
                self.section = Some(pending);
                return;
            }
            self.found.push(
                Diagnostic::error(Code::UnexpectedToken, span, "expected the `{` of a section")
                    .also(pending.1, "the section")
                    .help("write `DEFAULTS {` or `CONFIG name {`"),
            );
        }
        match (self.section.is_some(), bare) {
            (true, "}") => self.close(),
            (true, _) if matches!(self.section, Some((Section::Clients, _))) => {}
            (true, _) => match assignment(self.file, bare, start) {
                Some(a) => self.section_assignments().push(a),
                None => self.ignore(bare, span),
            },
            (false, "}") => self
                .found
                .push(Diagnostic::error(Code::UnmatchedClose, span, "this `}` closes nothing").help("remove it")),
            (false, _) => self.open(bare, start, span),
        }
    }

    fn section_assignments(&mut self) -> &mut Vec<Assignment> {
        match &mut self.section {
            Some((Section::Config(config), _)) => &mut config.own,
            _ => &mut self.profile.defaults,
        }
    }

    fn ignore(&mut self, bare: &str, span: Span) {
        let meant = bare.trim_end_matches(';').split_once('=');
        let meant = meant.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
        self.profile.ignored.push(IgnoredLine { span, meant: meant.filter(|(k, v)| is_key(k) && !v.is_empty()) });
    }

    /// Opens a section: `DEFAULTS {` or `CONFIG name {`, with the brace here or on the next line.
    fn open(&mut self, bare: &str, start: usize, span: Span) {
        let (head, brace) = match bare.strip_suffix('{') {
            Some(head) => (head.trim_end(), true),
            None => (bare, false),
        };
        let mut words = head.split_whitespace();
        let section = match (words.next(), words.next(), words.next()) {
            (Some("DEFAULTS"), None, None) => Section::Defaults,
            (Some("MULTICLIENT"), None, None) => {
                self.found.push(
                    Diagnostic::warning(
                        Code::Ignored,
                        span,
                        "the profile is not started on other machines; this section has no effect",
                    )
                    .help("run the profile on each of them"),
                );
                Section::Clients
            }
            (Some("CONFIG"), Some(name), None) => {
                let at = start + head.len() - name.len();
                let name = Spanned::new(name.to_owned(), Span::new(self.file, at, at + name.len()));
                self.check_name(&name);
                Section::Config(Config { name, own: Vec::new() })
            }
            _ => {
                self.ignore(bare, span);
                return;
            }
        };
        if brace {
            self.section = Some((section, span));
        } else {
            self.pending = Some((section, span));
        }
    }

    /// Reports a name that can't name a directory, or that another workload has.
    fn check_name(&mut self, name: &Spanned<String>) {
        if name.node.contains('/') || name.node.starts_with('.') || name.node == BATCH_PAGE {
            self.found.push(
                Diagnostic::error(Code::OutOfRange, name.span, format!("`{}` can't name a directory", name.node))
                    .help("its results go to a directory of that name: give it a plain one"),
            );
        }
        if let Some(bad) = name.node.chars().find(|c| printable::is_control(*c)) {
            let message = format!(
                "`CONFIG {}` has the control character `{}`",
                printable::short(&name.node, 100),
                printable::escaped(bad)
            );
            self.found.push(
                Diagnostic::error(Code::BadName, name.span, message)
                    .help("names are shown in results and on terminals: use letters, digits and signs"),
            );
        }
        if let Some(first) = self.profile.configs.iter().find(|c| c.name.node == name.node) {
            self.found.push(
                Diagnostic::error(Code::Duplicate, name.span, format!("a second `CONFIG {}`", name.node))
                    .also(first.name.span, "the first")
                    .help("give it another name: results are kept by names"),
            );
        }
    }

    fn close(&mut self) {
        if let Some((Section::Config(config), _)) = self.section.take() {
            self.profile.configs.push(config);
        }
    }

    fn end(mut self, len: usize) -> (Profile, Vec<Diagnostic>) {
        if let Some((_, span)) = self.section.as_ref().or(self.pending.as_ref()) {
            self.found
                .push(Diagnostic::error(Code::UnclosedBlock, *span, "this section is not closed").help("add its `}`"));
        } else if self.profile.configs.is_empty() {
            let span = Span::new(self.file, 0, len.min(1));
            self.found.push(
                Diagnostic::error(Code::NothingToRun, span, "the profile has no `CONFIG`")
                    .help("add `CONFIG name { personality = NAME; }`, an assignment a line"),
            );
        }
        for config in &self.profile.configs {
            if self.profile.value(config, "personality").is_none() {
                let message = format!("`CONFIG {}` names no personality", config.name.node);
                self.found.push(
                    Diagnostic::error(Code::MissingAttribute, config.name.span, message)
                        .help("add `personality = NAME;`; `wmlrun list` shows what is shipped"),
                );
            }
        }
        (self.profile, self.found)
    }
}

fn is_key(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses exactly `key = value;`, with a blank on both sides of the sign, and the semicolon.
fn assignment(file: FileId, bare: &str, start: usize) -> Option<Assignment> {
    let (key, rest) = bare.split_once(char::is_whitespace)?;
    let rest = rest.trim_start().strip_prefix('=')?;
    let value = rest.strip_suffix(';')?;
    if !is_key(key) || !value.starts_with(char::is_whitespace) || value.trim().is_empty() {
        return None;
    }
    let value = value.trim();
    let unquoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    let plain = unquoted.unwrap_or(value);
    let at = start + bare.rfind(value)? + usize::from(unquoted.is_some());
    Some(Assignment {
        key: Spanned::new(key.to_owned(), Span::new(file, start, start + key.len())),
        value: Spanned::new(plain.to_owned(), Span::new(file, at, at + plain.len())),
    })
}

impl Profile {
    /// The value of a key in a workload: that of its last own assignment, else of the defaults.
    pub fn value<'a>(&'a self, config: &'a Config, key: &str) -> Option<&'a Spanned<String>> {
        let last = |list: &'_ [Assignment]| list.iter().rposition(|a| a.key.node == key);
        match last(&config.own) {
            Some(i) => Some(&config.own[i].value),
            None => last(&self.defaults).map(|i| &self.defaults[i].value),
        }
    }

    /// The assignments of a workload: the last one of each key, in the order of the first ones.
    pub fn values<'a>(&'a self, config: &'a Config) -> Vec<&'a Assignment> {
        let all = self.defaults.iter().chain(&config.own);
        let last: IndexMap<&str, &Assignment> =
            all.map(|assignment| (assignment.key.node.as_str(), assignment)).collect();
        last.into_values().collect()
    }

    /// Returns warnings about lines without effect: lines of another form, `debug`, and keys that are not variables of
    /// the personality. `variables`: those of each workload, in order. Unless these are all workloads of the profile, keys
    /// of `DEFAULTS` may be meant for another one.
    pub fn unknown_keys(&self, variables: &[Vec<String>], are_all: bool) -> Vec<Diagnostic> {
        // A misspelt key is compared with all variables.
        const MOST_COMPARED: usize = 100;
        let of_workloads: Vec<HashSet<&str>> =
            variables.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
        let known = |key: &str, i: usize| {
            OWN_KEYS.contains(&key) || of_workloads.get(i).is_some_and(|names| names.contains(key))
        };
        let mut compared = 0;
        let mut near = |key: &str, names: &[&str]| {
            compared += 1;
            if compared > MOST_COMPARED { None } else { nearest(key, names.iter().copied()).map(str::to_owned) }
        };
        let mut all: Vec<&str> = variables.iter().flatten().map(String::as_str).chain(OWN_KEYS).collect();
        all.sort_unstable();
        all.dedup();
        let mut found: Vec<Diagnostic> = self.ignored.iter().map(|line| line.warning(&all)).collect();
        let mut unknown = |a: &Assignment, near: Option<String>, whose: &str| {
            let key = &a.key.node;
            let d = Diagnostic::warning(Code::Ignored, a.key.span, format!("{whose} variable `${key}`"))
                .label("this line has no effect");
            found.push(d.help(did_you_mean(near, || {
                "remove the line; the personality sets its variables with `set`".to_owned()
            })));
        };
        let of_any: HashSet<&str> = all.iter().copied().collect();
        for a in self.defaults.iter().filter(|_| are_all) {
            if !of_any.contains(a.key.node.as_str()) {
                unknown(a, near(&a.key.node, &all), "no personality of the profile has a");
            }
        }
        for (i, config) in self.configs.iter().enumerate() {
            let own: Vec<&str> = variables.get(i).into_iter().flatten().map(String::as_str).chain(OWN_KEYS).collect();
            let name = self.value(config, "personality").map_or("", |p| p.node.as_str());
            for a in config.own.iter().filter(|a| !known(&a.key.node, i)) {
                unknown(a, near(&a.key.node, &own), &format!("personality `{name}` has no"));
            }
        }
        let debug = |a: &&Assignment| a.key.node == "debug";
        let all = self.defaults.iter().chain(self.configs.iter().flat_map(|config| &config.own));
        found.extend(all.filter(debug).map(|a| model::check::debug_ignored(a.key.span)));
        found.sort_by_key(|d| d.primary.span.start);
        found
    }
}

impl IgnoredLine {
    fn warning(&self, known: &[&str]) -> Diagnostic {
        let d = Diagnostic::warning(Code::Ignored, self.span, "this line is not an assignment, and has no effect");
        let Some((key, value)) = &self.meant else {
            return d.help("an assignment is a separate line: `key = value;`");
        };
        let d = if known.contains(&key.as_str()) { d } else { d.near_miss(key, known.iter().copied()) };
        let key = match nearest(key, known.iter().copied()) {
            Some(near) if !known.contains(&key.as_str()) => near,
            _ => key,
        };
        d.help(format!("`{key} = {value};` would have one: blanks on both sides of `=`, and a semicolon"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::diag::{Style, render};
    use crate::source::SourceMap;

    const STUDY: &str = "\
# oltp, and the two lines that had no effect
DEFAULTS {
\truntime = 600;
\tdir = /mnt/pool;
\tstats = /var/stats;
\tfilesystem = zfs;
\tdescription = \"oltp zfs\";
}

CONFIG oltp_2k {
\tfunction = generic;
\tpersonality = oltp_sync;
\tfilesize = 300m;
\tnshadows=200
\tmemberthread=512k
\tuserode = 5;
}
CONFIG other
{
\tpersonality = varmail;
\truntime = 30;
}
";

    fn read(text: &str) -> (Profile, Vec<Diagnostic>, SourceMap) {
        let mut map = SourceMap::new();
        let file = map.add("study.prof", text);
        let (profile, found) = parse(file, text);
        (profile, found, map)
    }

    #[test]
    fn own_keys_go_before_the_defaults() {
        let (profile, found, map) = read(STUDY);
        assert_eq!(found, []);
        let [oltp, other] = &profile.configs[..] else { panic!("two workloads") };
        assert_eq!((oltp.name.node.as_str(), other.name.node.as_str()), ("oltp_2k", "other"));
        assert_eq!(profile.value(oltp, "runtime").unwrap().node, "600");
        assert_eq!(profile.value(other, "runtime").unwrap().node, "30");
        assert_eq!(map.slice(profile.value(other, "runtime").unwrap().span), "30");
        assert_eq!(profile.value(oltp, "description").unwrap().node, "oltp zfs");
        assert_eq!(map.slice(profile.value(oltp, "description").unwrap().span), "oltp zfs");
        let first = profile.values(other)[0];
        assert_eq!((first.key.node.as_str(), first.value.node.as_str()), ("runtime", "30"));
        assert!(profile.value(oltp, "nshadows").is_none(), "a line of another form has no effect");
    }

    #[test]
    fn a_section_for_other_machines_is_passed_over() {
        let clients = "MULTICLIENT {\n\tclients = a, b;\n}\n";
        let (profile, found, map) = read(&[clients, STUDY].concat());
        assert_eq!(profile.configs.len(), 2);
        let [warning] = &found[..] else { panic!("one warning: {found:?}") };
        assert_eq!((warning.code, map.slice(warning.primary.span)), (Code::Ignored, "MULTICLIENT {"));
    }

    #[test]
    fn what_has_no_effect_is_told_with_what_was_meant() {
        let (profile, _, map) = read(STUDY);
        let variables = ["nshadows", "filesize", "memperthread", "usermode"].map(str::to_owned).to_vec();
        let found = profile.unknown_keys(&[variables, vec!["nfiles".to_owned()]], true);
        assert_eq!(found.len(), 3);
        insta::assert_snapshot!(render(&map, &found, Style::Plain));
    }

    #[test]
    fn a_profile_that_leaves_nothing_to_run_is_wrong() {
        let codes = |text: &str| read(text).1.iter().map(|d| d.code).collect::<Vec<_>>();
        assert_eq!(codes(""), [Code::NothingToRun]);
        assert_eq!(codes("CONFIG a {\n runtime = 1;\n}\n"), [Code::MissingAttribute]);
        assert_eq!(codes("CONFIG a {\n personality = x;\n"), [Code::UnclosedBlock]);
        assert_eq!(codes("CONFIG a {\n personality = x;\n}\n}\n"), [Code::UnmatchedClose]);
        let twice = "CONFIG a {\n personality = x;\n}\n";
        assert_eq!(codes(&[twice, twice].concat()), [Code::Duplicate]);
        assert_eq!(codes("CONFIG ../a {\n personality = x;\n}\n"), [Code::OutOfRange]);
        assert_eq!(codes("CONFIG a\n personality = x;\n"), [Code::UnexpectedToken, Code::NothingToRun]);
    }

    #[test]
    fn only_one_form_is_an_assignment() {
        let one = |line: &str| assignment(FileId(0), line, 0).map(|a| (a.key.node, a.value.node));
        let pair = |k: &str, v: &str| Some((k.to_owned(), v.to_owned()));
        assert_eq!(one("a = 1;"), pair("a", "1"));
        assert_eq!(one("a  =\t1, 2, 3;"), pair("a", "1, 2, 3"));
        assert_eq!(one("a = \"b c\";"), pair("a", "b c"));
        for line in ["a=1;", "a = 1", "a= 1;", "a =1;", "a = ;", "= 1;", "a 1;", "$a = 1;", "a b = 1;"] {
            assert_eq!(one(line), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[A-Z{}=;# \n\"ab1é]{0,200}") {
            let (profile, _, _) = read(&text);
            let _ = profile.unknown_keys(&vec![Vec::new(); profile.configs.len()], true);
        }
    }
}
