//! Filebench's profiles: what `wmlrun batch` runs, one workload after another.
//!
//! In: the text of a profile. Out: a [`Profile`], and what it holds that has no effect. A profile is a `DEFAULTS { … }` section
//! and `CONFIG name { … }` sections, an assignment a line, exactly `key = value;`. Filebench passed over any other line without
//! a word; here it is passed over too, with a warning that says what was perhaps meant.
//!
//! Pure: no files, no personalities. Which keys a personality has is told to [`Profile::unknown_keys`].

use crate::diag::{Code, Diagnostic, nearest};
use crate::source::{FileId, Span, Spanned};
use crate::util::printable;

/// Keys that mean something to the batch itself.
const OWN_KEYS: [&str; 8] =
    ["stats", "filesystem", "function", "personality", "runtime", "dir", "description", "debug"];

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What holds for every workload that does not say otherwise.
    pub defaults: Vec<Assignment>,
    /// The workloads, in order.
    pub configs: Vec<Config>,
    /// Lines of no known form.
    odd: Vec<Odd>,
}

/// One `key = value;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Left of the sign.
    pub key: Spanned<String>,
    /// Right of it, without quotes around it.
    pub value: Spanned<String>,
}

/// One `CONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its name: that of its directory of results.
    pub name: Spanned<String>,
    /// Its own assignments.
    pub own: Vec<Assignment>,
}

/// A line that is passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Odd {
    span: Span,
    /// Key and value that it was perhaps meant to have.
    meant: Option<(String, String)>,
}

/// Reads a profile. Errors are what leaves nothing to run, or no telling where its results go.
pub fn parse(file: FileId, text: &str) -> (Profile, Vec<Diagnostic>) {
    let mut reader = Reader { file, profile: Profile::default(), section: None, waiting: None, found: Vec::new() };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line, at);
        at += line.len();
    }
    reader.end(text.len())
}

/// Where a line belongs.
enum Section {
    Defaults,
    Config(Config),
    /// `MULTICLIENT`, which names machines that run the profile together. What stands in it is not read.
    Clients,
}

struct Reader {
    file: FileId,
    profile: Profile,
    /// The section that is open, and where it was opened.
    section: Option<(Section, Span)>,
    /// A section whose brace comes on a line of its own.
    waiting: Option<(Section, Span)>,
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
        if let Some(waiting) = self.waiting.take() {
            if bare == "{" {
                self.section = Some(waiting);
                return;
            }
            self.found.push(
                Diagnostic::error(Code::UnexpectedToken, span, "a section's `{` is wanted here")
                    .also(waiting.1, "the section")
                    .help("write `DEFAULTS {` or `CONFIG name {`"),
            );
        }
        match (self.section.is_some(), bare) {
            (true, "}") => self.close(),
            (true, _) if matches!(self.section, Some((Section::Clients, _))) => {}
            (true, _) => match assignment(self.file, bare, start) {
                Some(a) => self.section_assignments().push(a),
                None => self.odd(bare, span),
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

    fn odd(&mut self, bare: &str, span: Span) {
        let meant = bare.trim_end_matches(';').split_once('=');
        let meant = meant.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
        self.profile.odd.push(Odd { span, meant: meant.filter(|(k, v)| is_key(k) && !v.is_empty()) });
    }

    /// `DEFAULTS {` or `CONFIG name {`, the brace here or on the next line.
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
                        "other machines are not told to run; this section has no effect",
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
                self.odd(bare, span);
                return;
            }
        };
        if brace {
            self.section = Some((section, span));
        } else {
            self.waiting = Some((section, span));
        }
    }

    /// The name is a directory's name, and one workload's only.
    fn check_name(&mut self, name: &Spanned<String>) {
        if name.node.contains('/') || name.node.starts_with('.') {
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
        if let Some((_, span)) = self.section.as_ref().or(self.waiting.as_ref()) {
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

/// Exactly `key = value;`: a blank on both sides of the sign, and the semicolon.
fn assignment(file: FileId, bare: &str, start: usize) -> Option<Assignment> {
    let (key, rest) = bare.split_once(char::is_whitespace)?;
    let rest = rest.trim_start().strip_prefix('=')?;
    let value = rest.strip_suffix(';')?;
    if !is_key(key) || !value.starts_with(char::is_whitespace) || value.trim().is_empty() {
        return None;
    }
    let value = value.trim();
    let plain = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    let at = start + bare.rfind(value)?;
    Some(Assignment {
        key: Spanned::new(key.to_owned(), Span::new(file, start, start + key.len())),
        value: Spanned::new(plain.to_owned(), Span::new(file, at, at + value.len())),
    })
}

impl Profile {
    /// What a key is worth in a workload: the last of its own assignments, else of the defaults.
    pub fn value<'a>(&'a self, config: &'a Config, key: &str) -> Option<&'a Spanned<String>> {
        let last = |list: &'_ [Assignment]| list.iter().rposition(|a| a.key.node == key);
        match last(&config.own) {
            Some(i) => Some(&config.own[i].value),
            None => last(&self.defaults).map(|i| &self.defaults[i].value),
        }
    }

    /// All that holds for a workload: each key once, in the order of writing.
    pub fn values<'a>(&'a self, config: &'a Config) -> Vec<(&'a str, &'a str)> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        for a in self.defaults.iter().chain(&config.own) {
            match all.iter_mut().find(|(key, _)| *key == a.key.node) {
                Some(old) => old.1 = &a.value.node,
                None => all.push((&a.key.node, &a.value.node)),
            }
        }
        all
    }

    /// Warnings about what has no effect: lines of another form, and keys that no workload's personality has as a variable.
    /// `variables` holds those of each workload, in order.
    pub fn unknown_keys(&self, variables: &[Vec<String>]) -> Vec<Diagnostic> {
        let known = |key: &str, i: usize| {
            OWN_KEYS.contains(&key) || variables.get(i).is_some_and(|v| v.iter().any(|name| name == key))
        };
        let mut all: Vec<&str> = variables.iter().flatten().map(String::as_str).chain(OWN_KEYS).collect();
        all.sort_unstable();
        all.dedup();
        let mut found: Vec<Diagnostic> = self.odd.iter().map(|odd| odd.warning(&all)).collect();
        let mut unknown = |a: &Assignment, near: Option<&str>, whose: &str| {
            let key = &a.key.node;
            let d = Diagnostic::warning(Code::Ignored, a.key.span, format!("{whose} has no variable `${key}`"))
                .label("this line has no effect");
            found.push(match near {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("remove the line, or look up the name: `wmlrun show PERSONALITY`"),
            });
        };
        for a in &self.defaults {
            if !(0..self.configs.len()).any(|i| known(&a.key.node, i)) {
                unknown(a, nearest(&a.key.node, all.iter().copied()), "no personality of the profile");
            }
        }
        for (i, config) in self.configs.iter().enumerate() {
            let own: Vec<&str> = variables.get(i).into_iter().flatten().map(String::as_str).chain(OWN_KEYS).collect();
            let name = self.value(config, "personality").map_or("", |p| p.node.as_str());
            for a in config.own.iter().filter(|a| !known(&a.key.node, i)) {
                unknown(a, nearest(&a.key.node, own.iter().copied()), &format!("personality `{name}`"));
            }
        }
        found.sort_by_key(|d| d.primary.span.start);
        found
    }
}

impl Odd {
    fn warning(&self, known: &[&str]) -> Diagnostic {
        let d = Diagnostic::warning(Code::Ignored, self.span, "this line is no assignment, and has no effect");
        let Some((key, value)) = &self.meant else {
            return d.help("an assignment is a line of its own: `key = value;`");
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
        assert_eq!(profile.values(other)[0], ("runtime", "30"));
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
        let found = profile.unknown_keys(&[variables, vec!["nfiles".to_owned()]]);
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
            let _ = profile.unknown_keys(&vec![Vec::new(); profile.configs.len()]);
        }
    }
}
