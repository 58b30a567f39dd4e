//! The rows of docs/compatibility.md that concern a script, for `wmlrun check --differences`.
//!
//! The page is part of the program, so that a difference is described once. A row concerns a script that uses all words of
//! the language in its first cell, or any of them if the cell is a list. Rows without such a word are about every script.
//! A comment in the cell says it where its words do not: `<!-- uses: run*2 stats.snap; without: stats.clear -->` is about
//! scripts with one of the first words (here two `run`, or `stats snap`) and none of the others.

use crate::flowop;
use crate::model::commands;
use crate::source::{FileId, SHIPPED, SourceFile, SourceMap, Span};
use crate::spec::attrs;
use crate::spec::words::statement_word;
use crate::syntax::ast::TextPart;
use crate::syntax::{self, Token};
use crate::util::count::count;
use crate::util::wrap::wrapped;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../docs/compatibility.md");

/// How the page marks a row that changes figures.
const FIGURES: &str = " **figures**";

/// The most lines of a script that a row names.
const MOST_LINES: usize = 6;

/// The most scripts that a row names.
const MOST_SCRIPTS: usize = 6;

/// The words of a comment that says which scripts a row concerns.
#[derive(Debug, Default, PartialEq)]
struct RowWords<'a> {
    /// A script uses one of them; any script if there are none, and no script if there are no others either.
    uses: Vec<&'a str>,
    /// It uses none of these.
    without: Vec<&'a str>,
}

impl RowWords<'_> {
    /// Returns the lines of a script with the words. `None` if the row does not concern it. `all` are the words of all texts
    /// of its session.
    fn lines(&self, used: &BTreeMap<String, WordUses>, all: &BTreeSet<String>) -> Option<BTreeSet<u32>> {
        let of = |word: &&str| {
            let (word, least) = word.split_once('*').map_or((*word, 1), |(word, n)| (word, n.parse().unwrap_or(1)));
            used.get(word).map(|uses| &uses.lines).filter(|lines| lines.len() >= least)
        };
        let found: Vec<&BTreeSet<u32>> = self.uses.iter().filter_map(of).collect();
        let concerns = if self.uses.is_empty() { !self.without.is_empty() } else { !found.is_empty() };
        (concerns && self.without.iter().all(|word| !all.contains(*word)))
            .then(|| found.into_iter().flatten().copied().collect())
    }
}

/// A row of the page.
struct KnownDifference<'a> {
    construct: &'a str,
    /// The words of the comment in the first cell, if there is one.
    comment: Option<RowWords<'a>>,
    /// What Filebench does, and what wmlrun does.
    cells: [&'a str; 2],
    /// The headings of these cells.
    heads: [&'a str; 2],
}

/// The rows of all tables about constructs.
fn rows() -> Vec<KnownDifference<'static>> {
    let (mut rows, mut heads) = (Vec::new(), None);
    for line in PAGE.lines() {
        let cells: Option<Vec<&str>> = line.strip_prefix("| ").map(|line| split(line.trim_end_matches('|')));
        match cells.as_deref() {
            // The dialects differ from each other, not from Filebench.
            Some(["Construct", a, b, ..]) => heads = a.contains("Filebench").then_some([*a, *b]),
            Some([construct, a, b, ..]) => {
                let (construct, comment) = comment(construct);
                rows.extend(heads.map(|heads| KnownDifference { construct, comment, cells: [*a, *b], heads }));
            }
            Some(_) => {}
            None if line.starts_with('|') => {}
            None => heads = None,
        }
    }
    rows
}

/// Splits the first cell into its text and the words of its comment.
fn comment(cell: &str) -> (&str, Option<RowWords<'_>>) {
    let Some((text, rest)) = cell.split_once(" <!-- ") else { return (cell, None) };
    let mut words = RowWords::default();
    for part in rest.trim_end_matches("-->").split(';') {
        match part.trim().split_once(':') {
            Some(("uses", all)) => words.uses = all.split_whitespace().collect(),
            Some(("without", all)) => words.without = all.split_whitespace().collect(),
            _ => {}
        }
    }
    (text, Some(words))
}

/// The cells of a row. A bar that is part of a text has a backslash before it.
fn split(line: &str) -> Vec<&str> {
    let (mut cells, mut start) = (Vec::new(), 0);
    for (at, _) in line.match_indices('|').filter(|(at, _)| !line[..*at].ends_with('\\')) {
        cells.push(line[start..at].trim());
        start = at + 1;
    }
    cells.push(line[start..].trim());
    cells
}

/// The words of the language: flowops, attributes and commands.
fn all_words() -> BTreeSet<&'static str> {
    let of = [attrs::FILESET, attrs::PROCESS, attrs::THREAD, attrs::FLOWOP, attrs::COMPOSITE];
    let attributes = of.into_iter().flatten().map(|attr| attr.name);
    let commands = commands::specs().filter_map(|spec| spec.form.split([' ', '$']).next());
    let table = flowop::spec_table();
    let flowops = table.flowops.iter().map(|flowop| flowop.name);
    attributes.chain(commands).chain(flowops).collect()
}

/// The words of which a row can be about the scripts that use them.
fn words() -> BTreeSet<&'static str> {
    // They say nothing: every script has them.
    let common =
        ["define", "set", "name", "path", "run", "flowop", "thread", "process", "fileset", "file", "usage", "echo"];
    all_words().into_iter().filter(|word| !common.contains(word)).collect()
}

/// The commands whose second word says what they do.
const TWO_WORDS: [&str; 2] = ["stats", "create"];

/// The uses of a word in a script.
#[derive(Default)]
struct WordUses {
    lines: BTreeSet<u32>,
    /// Whether it has the value 0 somewhere.
    is_zero: bool,
}

impl KnownDifference<'_> {
    /// The words of the language that the first cell requires, and whether with the value 0. One that is to be absent
    /// requires nothing.
    fn words(&self, known: &BTreeSet<&'static str>) -> Vec<(String, bool)> {
        let parts: Vec<&str> = self.construct.split('`').collect();
        let is_absent = |before: &str, after: &str| {
            ["no ", "without "].iter().any(|word| before.ends_with(word)) || after.starts_with(" not given")
        };
        let pairs = parts.windows(3).step_by(2);
        let code = pairs.filter(|part| !is_absent(part[0], part[2])).map(|part| part[1]);
        let word = |code: &str| {
            let mut parts = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let first = *known.get(parts.next()?)?;
            let second = parts.next().filter(|second| TWO_WORDS.contains(&first) && !second.is_empty());
            Some((
                second.map_or_else(|| first.to_owned(), |second| format!("{first}.{second}")),
                code.ends_with("=0") || code.ends_with(" 0"),
            ))
        };
        code.filter_map(word).collect()
    }

    /// Whether the first cell is a list of code and nothing else.
    fn is_list(&self) -> bool {
        self.construct.split('`').step_by(2).all(|between| between.trim_matches([',', ' ']).is_empty())
    }

    /// Whether wmlrun does what Filebench does.
    fn is_kept(&self) -> bool {
        let [filebench, wmlrun] = self.cells;
        wmlrun == "the same" || wmlrun.starts_with("the same:") || wmlrun == filebench
    }

    /// Whether the row is about scripts that do not have some words.
    fn needs_all_texts(&self) -> bool {
        self.comment.as_ref().is_some_and(|comment| !comment.without.is_empty())
    }

    fn changes_figures(&self) -> bool {
        self.cells.iter().any(|cell| cell.contains(FIGURES))
    }

    /// The lines of a script that the row concerns. `None` if it concerns none of them.
    fn lines(
        &self,
        known: &BTreeSet<&'static str>,
        used: &BTreeMap<String, WordUses>,
        all: &BTreeSet<String>,
    ) -> Option<BTreeSet<u32>> {
        if let Some(comment) = &self.comment {
            return comment.lines(used, all);
        }
        let words = self.words(known);
        let of = |(word, zero): &(String, bool)| used.get(word).filter(|uses| !zero || uses.is_zero);
        let found: Vec<&WordUses> = words.iter().filter_map(of).collect();
        let concerns = if self.is_list() { !found.is_empty() } else { found.len() == words.len() };
        (!words.is_empty() && concerns).then(|| found.into_iter().flat_map(|uses| &uses.lines).copied().collect())
    }

    /// The row as text, with the places that it concerns.
    fn text(&self, places: &[String]) -> String {
        let figures = if self.changes_figures() { ": changes figures" } else { "" };
        let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
        let title = format!("{}{places}{figures}", self.construct);
        let cells = self.heads.iter().zip(self.cells).map(|(head, cell)| {
            let who = head.trim_start_matches("What ").trim_end_matches(" does");
            let cell = if cell.is_empty() { "-" } else { cell };
            wrapped(&format!("  {who}: {}", cell.replace(FIGURES, "").replace("\\|", "|")), "    ")
        });
        std::iter::once(wrapped(&title, "  ")).chain(cells).map(|line| line + "\n").collect()
    }
}

/// Returns lines of a script as text; empty without lines.
fn lines_text(lines: &BTreeSet<u32>) -> String {
    let mut shown: Vec<String> = lines.iter().take(MOST_LINES).map(u32::to_string).collect();
    shown.extend((lines.len() > MOST_LINES).then(|| "…".to_owned()));
    match &shown[..] {
        [] => String::new(),
        [line] => format!("line {line}"),
        _ => format!("lines {}", shown.join(", ")),
    }
}

/// The differences that concern the scripts of a command, each with the lines of all of them.
#[derive(Default)]
pub struct FoundDifferences {
    /// The texts that were examined, each with the number of its differences.
    texts: Vec<(String, u64)>,
    /// The texts that were examined, or are left out, and whether that was with all texts that they need.
    known: BTreeMap<String, bool>,
    /// For the number of each row, the texts that it concerns, with their lines.
    found: BTreeMap<usize, Vec<(String, BTreeSet<u32>)>>,
}

impl FoundDifferences {
    /// Leaves out a text, which has no construct of the language.
    pub(crate) fn leave_out(&mut self, name: &str) {
        self.known.insert(name.to_owned(), true);
    }

    /// Adds those of all texts of a session that the user has written: scripts, and what they load; and of the text that was
    /// asked for. A script with errors may lack what it would load (`is_whole` is false): rows about what a script does not
    /// have are then left out.
    pub(crate) fn add(&mut self, map: &SourceMap, asked: Option<FileId>, is_whole: bool) {
        let set = set_variables(map);
        let all: BTreeSet<String> = map.files().flat_map(|(id, _)| used_words(map, id, &set).into_keys()).collect();
        for (id, file) in map.files() {
            // A name in brackets is that of a text which is in no file, such as of what the command line defines.
            let is_file = !file.name.starts_with('<') && !file.name.ends_with(SHIPPED);
            let is_better = self.known.get(&file.name).is_none_or(|was_whole| is_whole && !was_whole);
            if (is_file || asked == Some(id)) && is_better {
                if self.known.insert(file.name.clone(), is_whole).is_some() {
                    self.texts.retain(|(name, _)| *name != file.name);
                    self.found.values_mut().for_each(|found| found.retain(|(name, _)| *name != file.name));
                    self.found.retain(|_, found| !found.is_empty());
                }
                let (words, used) = (words(), used_words(map, id, &set));
                let mut n = 0;
                let is_shown = |row: &KnownDifference<'_>| !row.is_kept() && (is_whole || !row.needs_all_texts());
                for (row, difference) in rows().iter().enumerate().filter(|(_, row)| is_shown(row)) {
                    if let Some(lines) = difference.lines(&words, &used, &all) {
                        self.found.entry(row).or_default().push((file.name.clone(), lines));
                        n += 1;
                    }
                }
                self.texts.push((file.name.clone(), n));
            }
        }
    }

    /// The number of differences of each text, then the rows of the page, first those that change figures. Empty if no text was
    /// examined.
    pub(crate) fn text(&self) -> String {
        let title =
            |(name, n): &(String, u64)| format!("{name}: {} from Filebench\n", count(*n, "possible difference"));
        let titles: String = self.texts.iter().map(title).collect();
        let place = |(name, lines): &(String, BTreeSet<u32>)| match (&self.texts[..], lines_text(lines)) {
            ([_], lines) => lines,
            (_, lines) if lines.is_empty() => name.clone(),
            (_, lines) => format!("{name}: {lines}"),
        };
        let rows = rows();
        let mut concerned: Vec<_> = self.found.iter().map(|(row, found)| (&rows[*row], found)).collect();
        concerned.sort_by_key(|(row, _)| !row.changes_figures());
        let text = |(row, found): (&KnownDifference<'_>, &Vec<_>)| {
            let mut places: Vec<String> = found.iter().map(place).filter(|place| !place.is_empty()).collect();
            let others = places.len().saturating_sub(MOST_SCRIPTS) as u64;
            places.truncate(MOST_SCRIPTS);
            places.extend((others > 0).then(|| format!("and {}", count(others, "other script"))));
            "\n".to_owned() + &row.text(&places)
        };
        concerned.into_iter().fold(titles, |shown, row| shown + &text(row))
    }
}

/// Returns the variables that the texts of a session set: by `set`, `foreach` and `define randvar`.
fn set_variables(map: &SourceMap) -> BTreeSet<String> {
    let of_text = |(file, text): (FileId, &SourceFile)| {
        let tokens = syntax::lex(file, &text.text).tokens;
        let word = |at: Option<usize>| match at.and_then(|at| tokens.get(at)) {
            Some((Token::Word(word) | Token::Command(word), _)) => Some(word.as_str()),
            _ => None,
        };
        let is_set = |at: usize| {
            let names = [at.checked_sub(2), at.checked_sub(3)].map(word);
            matches!(word(at.checked_sub(1)), Some("set" | "foreach")) || names == [Some("name"), Some("randvar")]
        };
        let variable = |(at, (token, _)): (usize, &(Token, Span))| match token {
            Token::Variable(variable) if is_set(at) => Some(variable.name.clone()),
            _ => None,
        };
        tokens.iter().enumerate().filter_map(variable).collect::<Vec<_>>()
    };
    map.files().flat_map(of_text).collect()
}

/// Returns the words of the language that a text uses. `set` has the variables that its session sets.
fn used_words(map: &SourceMap, file: FileId, set: &BTreeSet<String>) -> BTreeMap<String, WordUses> {
    let SourceFile { text, .. } = map.file(file);
    let all = all_words();
    let mut used: BTreeMap<String, WordUses> = BTreeMap::new();
    let tokens = syntax::lex(file, text).tokens;
    for (at, (token, span)) in tokens.iter().enumerate() {
        let is_value = at > 0 && matches!(tokens[at - 1].0, Token::Equals);
        if let Token::Word(word) | Token::Command(word) = token
            && all.contains(word.as_str())
            && !is_value
        {
            let second = match tokens.get(at + 1) {
                Some((Token::Word(second) | Token::Command(second), _)) if TWO_WORDS.contains(&word.as_str()) => {
                    Some(format!("{word}.{second}"))
                }
                _ => None,
            };
            for word in std::iter::once(word.clone()).chain(second) {
                let uses = used.entry(word).or_default();
                uses.lines.insert(map.line(*span));
                uses.is_zero |= is_zero(map, &tokens[at + 1..]);
            }
        }
    }
    for (word, line) in combinations(map, &tokens, set) {
        used.entry(word.to_owned()).or_default().lines.insert(line);
    }
    used
}

/// Returns what words mean together, each as a word with its line: `foreach.define` and `foreach.again` for a definition
/// in a `foreach` without and with a `run`, `echo.unset` for a text with a variable that is not in `set`, and `set.live`
/// for a `set` while processes live.
fn combinations(map: &SourceMap, tokens: &[(Token, Span)], set: &BTreeSet<String>) -> Vec<(&'static str, u32)> {
    const TEXTS: [&str; 5] = ["echo", "log", "usage", "system", "stats"];
    let is_value = |at: usize| at > 0 && matches!(tokens[at - 1].0, Token::Equals | Token::Comma);
    let (mut found, mut command, mut is_live, mut depth) = (Vec::new(), "", false, 0_usize);
    // The depth of the outermost loop, the definitions in it, and whether it has a `run`.
    let (mut of_loop, mut defined, mut runs) = (None, Vec::new(), false);
    for (at, (token, span)) in tokens.iter().enumerate() {
        match token {
            Token::Word(word) | Token::Command(word) if statement_word(word).is_some() && !is_value(at) => {
                command = word.as_str();
                let object = tokens.get(at + 1).map_or("", |(_, span)| map.slice(*span));
                match command {
                    "create" => is_live |= object.starts_with("proc"),
                    "shutdown" => is_live &= !object.starts_with("proc"),
                    "set" if is_live && object.starts_with('$') => found.push(("set.live", map.line(*span))),
                    "foreach" => of_loop = of_loop.or(Some(depth)),
                    "define" if of_loop.is_some() => defined.push(map.line(*span)),
                    "run" | "psrun" => runs |= of_loop.is_some(),
                    _ => {}
                }
            }
            Token::Text(parts) if TEXTS.contains(&command) => {
                let is_unset = |part: &TextPart| matches!(part, TextPart::Variable(v) if !set.contains(&v.node.name));
                found.extend(parts.iter().any(is_unset).then(|| ("echo.unset", map.line(*span))));
            }
            Token::Open => depth += 1,
            Token::Close => {
                depth = depth.saturating_sub(1);
                if of_loop == Some(depth) {
                    let word = if runs { "foreach.again" } else { "foreach.define" };
                    found.extend(defined.drain(..).map(|line| (word, line)));
                    (of_loop, runs) = (None, false);
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether the tokens after a word give it, or the first attribute of a command, the value 0: `instances=0`, `debug 0`.
fn is_zero(map: &SourceMap, after: &[(Token, Span)]) -> bool {
    if let Some((Token::Number(_), span)) = after.first() {
        return map.slice(*span) == "0";
    }
    let value = after.iter().take(3).skip_while(|(token, _)| !matches!(token, Token::Equals)).nth(1);
    value.is_some_and(|(_, span)| map.slice(*span) == "0")
}

#[cfg(test)]
mod tests {
    use super::{RowWords, all_words, comment, rows, words};

    #[test]
    fn the_rows_of_the_page_are_read() {
        let (rows, known) = (rows(), words());
        assert!(rows.len() > 100, "{}", rows.len());
        let of = |construct: &str| rows.iter().find(|row| row.construct == construct);
        let words = |construct: &str| of(construct).map(|row| (row.words(&known), row.is_list())).unwrap_or_default();
        let named =
            |all: &[(&str, bool)]| all.iter().map(|(word, zero)| ((*word).to_owned(), *zero)).collect::<Vec<_>>();
        assert_eq!(words("`aiowait`"), (named(&[("aiowait", false)]), true));
        assert_eq!(words("`semblock`, `sempost`"), (named(&[("semblock", false), ("sempost", false)]), true));
        assert_eq!(words("`entries` and `leafdirs` in one set").0, named(&[("entries", false), ("leafdirs", false)]));
        assert_eq!(words("`instances=0` of a thread"), (named(&[("instances", true)]), false));
        assert_eq!(words("`stats command`").0, named(&[("stats.command", false)]));
        for general in ["`define file` without `prealloc`", "`fd=` not given", "clock"] {
            assert_eq!(words(general), (vec![], false), "{general}");
        }
        assert!(of("size of a file without `size=`").is_none(), "a row on dialects");
        let found = comment("two <!-- uses: run*2 stats.snap; without: stats.clear -->");
        let (uses, without) = (vec!["run*2", "stats.snap"], vec!["stats.clear"]);
        assert_eq!(found, ("two", Some(RowWords { uses, without })));
        // The words of the comments are those of the language.
        let language = all_words();
        for comment in rows.iter().filter_map(|row| row.comment.as_ref()) {
            for word in comment.uses.iter().chain(&comment.without) {
                assert!(word.split(['*', '.']).next().is_some_and(|word| language.contains(word)), "{word}");
            }
        }
        // Most rows name a construct of the language, or are about every script.
        assert!(rows.iter().filter(|row| !row.words(&known).is_empty()).count() > 40);
    }
}
