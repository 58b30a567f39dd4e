//! Tests the pages of the documentation as a book: its parts that the program can tell agree with the program, its links
//! lead somewhere, its lines are short, and the table of contents has every page.
//!
//! `UPDATE_DOCS=1 cargo test --test it pages` writes the generated parts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use wml::diag::Code;
use wml::model::lint;
use wml::result::NoteCode;
use wml::result::warnings::{CODES, Warning};

use crate::cmd::program;
use crate::experiments::Lab;
use crate::manual::{agrees, code, table};

/// Columns of a line of text.
const WIDTH: usize = 120;
/// Lines of README.md.
const README_LINES: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and the pages in docs/, with their names from the root.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.push(root().join("README.md"));
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Words in lines of at most [`WIDTH`] columns, the first with one beginning, the others with another.
fn wrap(first: &str, rest: &str, text: &str) -> String {
    let (mut out, mut line, mut is_empty) = (String::new(), first.to_owned(), true);
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            (line, is_empty) = (rest.to_owned(), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out + &line + "\n"
}

fn warnings_of_reports() -> String {
    let warnings = Warning::examples();
    let codes: Vec<&str> = warnings.iter().map(Warning::code).collect();
    assert_eq!(codes, CODES, "one warning of each kind, in the order of their codes");
    let item = |w: &Warning| {
        let text = format!(
            "\u{201c}{}.\u{201d} Condition: {}. Advice: {}.",
            w.message(),
            w.condition(),
            w.advice_in_all_cases()
        );
        wrap(&format!("- `{}`: ", w.code()), "  ", &text)
    };
    warnings.iter().map(item).collect()
}

fn notes_of_reports() -> String {
    let item = |code: &NoteCode| wrap(&format!("- `{}`: ", code.name()), "  ", &format!("{}.", code.about()));
    NoteCode::ALL.iter().map(item).collect()
}

/// A row for each code of a script: its title, and what reports it. `wmlrun explain` has the whole text.
fn codes_of_scripts() -> String {
    let rows = Code::ALL.iter().map(|c| {
        let when = match lint::TABLE.iter().find(|lint| lint.code == *c) {
            Some(lint) if lint.spoils => "`check`, and before a run",
            Some(_) => "`check`",
            None if *c == Code::NeverEnds => "`check`",
            None => "",
        };
        vec![code(c.number()), c.title().to_owned(), when.to_owned()]
    });
    table(&["Code", "What is wrong", "Reported by"], rows)
}

/// The text of `wmlrun help COMMAND`, or of `wmlrun --help`.
fn help(words: &[&str]) -> String {
    let output = program().args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of a section of a help text.
fn section<'a>(help: &'a str, name: &str) -> Vec<&'a str> {
    let lines = help.lines().skip_while(|line| *line != format!("{name}:")).skip(1);
    lines.take_while(|line| line.is_empty() || line.starts_with(' ')).collect()
}

/// An argument or option as `--help` describes it: its form, and the paragraphs and list items of its description.
#[derive(Clone, Debug, PartialEq)]
struct Described {
    form: String,
    parts: Vec<String>,
}

impl Described {
    fn name(&self) -> &str {
        let mut words = self.form.split([' ', ',', '[', '=']).filter(|word| word.starts_with('-'));
        words.next_back().unwrap_or(&self.form)
    }

    /// Its first sentence, the names of its values, and its default.
    fn text(&self) -> String {
        let is_default = |part: &&String| part.starts_with("[default:");
        let plain = |part: &&String| !part.starts_with("- ") && *part != "Possible values:";
        let values = self.parts.iter().filter_map(|part| part.strip_prefix("- "));
        let values: Vec<&str> = values.map(|value| value.split(": ").next().unwrap_or(value)).collect();
        let whole = self.parts.iter().find(plain).map_or("", String::as_str);
        let (first, rest) = whole.split_once(". ").unwrap_or((whole, ""));
        let mut text = first.to_owned();
        if !values.is_empty() {
            let _ = write!(text, ": `{}`", values.join("`, `"));
        }
        let default = rest.find("[default").map(|at| &rest[at..]);
        if let Some(default) = default.or_else(|| self.parts.iter().skip(1).find(is_default).map(String::as_str)) {
            let _ = write!(text, " {default}");
        }
        text
    }
}

/// The options of a help text under all headings, but `--help` and `--version`.
fn options(help: &str) -> Vec<Described> {
    let headings = help.lines().filter_map(|line| line.strip_suffix(':').filter(|name| !name.starts_with(' ')));
    let found = headings.flat_map(|name| described(help, name));
    let is_listed =
        |option: &Described| option.form.starts_with('-') && !matches!(option.name(), "--help" | "--version");
    found.filter(is_listed).collect()
}

/// The arguments or options in a section of a help text, in either of the two layouts of the argument parser.
fn described(help: &str, name: &str) -> Vec<Described> {
    let mut found: Vec<Described> = Vec::new();
    let mut ends = true;
    for line in section(help, name) {
        let (bare, indent) = (line.trim(), line.len() - line.trim_start().len());
        if bare.starts_with(['-', '<', '[']) && indent < 8 {
            let (form, text) = bare.split_once("  ").unwrap_or((bare, ""));
            found.push(Described { form: form.to_owned(), parts: vec![text.trim().to_owned()] });
            ends = text.is_empty();
        } else if bare.is_empty() {
            ends = true;
        } else if let Some(option) = found.last_mut() {
            let begins = ends || bare.starts_with("- ");
            match option.parts.last_mut().filter(|_| !begins) {
                Some(part) => *part = format!("{part} {bare}"),
                None => option.parts.push(bare.to_owned()),
            }
            ends = false;
        }
    }
    for option in &mut found {
        option.parts.retain(|part| !part.is_empty());
    }
    found
}

/// The help texts: of a run, and of each command by its name.
static HELP: LazyLock<(String, Vec<(String, String)>)> = LazyLock::new(|| {
    let top = help(&["--help"]);
    let first = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands = top.lines().take_while(|line| *line != "Arguments:").filter(first);
    let names: Vec<String> = commands.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    let helps = names.iter().map(|name| (name.clone(), help(&["help", name]))).collect();
    (top, helps)
});

/// A row for each command.
fn commands() -> String {
    let about = |help: &str| help.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    table(&["Command", "What it does"], HELP.1.iter().map(|(name, help)| vec![code(name), about(help)]))
}

/// Commands that have many options in common, each list with the words that stand for it in the table of options.
const GROUPS: &[(&str, &[&str])] =
    &[("*a run*", &["SCRIPT", "repl", "batch"]), ("*a series*", &["repeat", "ab", "sweep", "experiment"])];

/// The names of commands, with the words for those of a group.
fn in_words(names: &[&str]) -> String {
    let (mut words, mut rest): (Vec<&str>, Vec<&str>) = (Vec::new(), names.to_vec());
    for (word, group) in GROUPS.iter().filter(|(_, group)| group.iter().all(|name| names.contains(name))) {
        words.push(word);
        rest.retain(|name| !group.contains(name));
    }
    words.extend(rest);
    words.join(", ")
}

/// A row for each option, with the commands that have it. One that differs between commands has several meanings.
fn options_of_commands() -> String {
    let (top, commands) = &*HELP;
    assert!(options(top).len() > 30 && commands.len() > 10, "{} options", options(top).len());
    let mut found: Vec<(Described, Vec<&str>)> = Vec::new();
    let helps = commands.iter().filter(|(name, _)| name != "run").map(|(name, help)| (name.as_str(), help));
    for (name, help) in std::iter::once(("SCRIPT", top)).chain(helps) {
        for option in options(help) {
            match found.iter_mut().find(|(known, _)| *known == option) {
                Some((_, names)) => names.push(name),
                None => found.push((option, vec![name])),
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.name().cmp(b.name()));
    let rows = found.chunk_by(|(a, _), (b, _)| a.name() == b.name()).map(|meanings| {
        let mut forms: Vec<String> =
            meanings.iter().map(|(option, _)| code(&option.form.replace(['<', '>'], ""))).collect();
        forms.dedup();
        let words: Vec<String> = meanings.iter().map(|(_, names)| in_words(names)).collect();
        let texts: Vec<String> = match meanings {
            [(option, _)] => vec![option.text()],
            _ => {
                meanings.iter().zip(&words).map(|((option, _), words)| format!("{words}: {}", option.text())).collect()
            }
        };
        // The commands stand before their meanings.
        let last = if meanings.len() > 1 { String::new() } else { words.join(", ") };
        vec![forms.join(", "), texts.join("; "), last]
    });
    table(&["Option", "What it does", "Commands"], rows)
}

#[test]
fn warnings_agree_with_the_program() {
    agrees("docs/warnings.md", 4, |part| match part {
        "reports" => warnings_of_reports(),
        "notes" => notes_of_reports(),
        "scripts" => codes_of_scripts(),
        "filesets" => table(
            &["Code", "What is wrong"],
            wml::disk::CODES.iter().map(|(number, title, _)| vec![code(number), (*title).to_owned()]),
        ),
        other => panic!("no table provides the part `{other}` of docs/warnings.md"),
    });
}

#[test]
fn options_agree_with_the_program() {
    agrees("docs/options.md", 2, |part| match part {
        "commands" => commands(),
        "options" => options_of_commands(),
        other => panic!("no table provides the part `{other}` of docs/options.md"),
    });
}

#[test]
fn options_of_the_guide_exist() {
    let text = fs::read_to_string(root().join("docs/options.md")).unwrap();
    let (guide, _) = text.split_once("<!-- generated: ").unwrap();
    let (top, commands) = &*HELP;
    let helps = commands.iter().map(|(_, help)| help).chain([top]);
    let known: BTreeSet<String> = helps.flat_map(|help| options(help)).map(|option| option.name().to_owned()).collect();
    let words = guide.split(|c: char| c.is_whitespace() || "`,;|()".contains(c));
    let is_option = |word: &&str| word.starts_with("--") && !word.starts_with("---") && *word != "--help";
    let named: BTreeSet<&str> = words.filter(is_option).collect();
    assert!(named.len() > 20, "the guide has lost its options: {named:?}");
    let unknown: Vec<&&str> = named.iter().filter(|name| !known.contains(**name)).collect();
    assert!(unknown.is_empty(), "no command has {unknown:?}");
}

/// The part of a link behind `#` for a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The lines of a text outside code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    });
    lines.collect()
}

#[test]
fn links_lead_somewhere() {
    let anchors = |text: &str| -> BTreeSet<String> {
        let headings = prose(text).into_iter().filter(|(_, line)| line.starts_with('#'));
        headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
    };
    let (mut links, mut broken) = (0, String::new());
    for (page, text) in pages() {
        for (number, line) in prose(&text) {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                if link.contains("://") {
                    continue;
                }
                links += 1;
                let (file, at) = link.split_once('#').unwrap_or((link, ""));
                let path = root().join(&page);
                let path = if file.is_empty() { path } else { path.with_file_name("").join(file) };
                let target = fs::read_to_string(&path);
                let is_found = at.is_empty() || target.as_ref().is_ok_and(|target| anchors(target).contains(at));
                // The book has the files of docs/ only.
                let leaves_the_book = page.starts_with("docs/") && file.starts_with("../");
                if !path.exists() || !is_found || leaves_the_book {
                    let _ = writeln!(broken, "{page}:{number}: {link}");
                }
            }
        }
    }
    assert!(links > 50, "{links} links: the pages are not read");
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn lines_are_short() {
    let mut long = String::new();
    for (page, text) in pages() {
        // A row of a table can't be broken, nor can a comment that a test reads.
        let lines = prose(&text).into_iter().filter(|(_, line)| !line.starts_with('|') && !line.starts_with("<!--"));
        for (number, line) in lines.filter(|(_, line)| line.chars().count() > WIDTH) {
            let _ = writeln!(long, "{page}:{number}: {} columns", line.chars().count());
        }
    }
    assert!(long.is_empty(), "{long}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(readme <= README_LINES, "README.md has {readme} lines");
}

/// Reports are quoted with the columns that a report has today.
#[test]
fn quoted_reports_have_the_columns_of_a_report() {
    let words = |line: &str| -> Vec<String> { line.split_whitespace().take(6).map(str::to_owned).collect() };
    let report = Lab::new().run("varmail --engine null --no-quiesce --runtime 0.1 --set nfiles=10", 0);
    let heading = words(report.lines().find(|line| line.starts_with("flowop ")).unwrap());
    let mut quoted = 0;
    for (name, text) in pages() {
        for line in text.lines().filter(|line| line.starts_with("flowop ") && line.contains("ops/s")) {
            assert_eq!(words(line), heading, "{name}");
            quoted += 1;
        }
    }
    assert!(quoted >= 3, "{quoted}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for (page, _) in pages() {
        let Some(name) = page.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md") else { continue };
        assert_eq!(contents.matches(&format!("]({name})")).count(), 1, "{name} in docs/SUMMARY.md");
    }
}

#[test]
fn options_are_parsed() {
    let help = "\
About

Options:
  -f <FILE>
          The script

      --format <FORMAT>
          Format of the
          report

          Possible values:
          - text: a table
          - json: all of
            it
          
          [default: text]

      --digest[=<N>]  A hash [default N: 1]
                      of each
  -h, --help  Print help

After
";
    let options = options(help);
    assert_eq!(options.iter().map(Described::name).collect::<Vec<_>>(), ["-f", "--format", "--digest"]);
    assert_eq!(
        options.iter().map(Described::text).collect::<Vec<_>>(),
        ["The script", "Format of the report: `text`, `json` [default: text]", "A hash [default N: 1] of each"]
    );
    assert_eq!(anchor("The `page` cache, (again)"), "the-page-cache-again");
    assert_eq!(wrap("- ", "  ", "a b"), "- a b\n");
    assert!(wrap("- ", "  ", &"word ".repeat(100)).lines().all(|line| line.len() <= WIDTH));
}
