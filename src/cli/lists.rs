//! `wmlrun list`: the groups of shipped personalities, those of a group or with a word, and every list of the language.

use super::console::print_lines;
use super::screen::stdout_width;
use crate::analysis::Direction;
use crate::diag::{self, Failure};
use crate::experiment::{SUITES, read_file};
use crate::model::commands;
use crate::report::metrics::METRICS;
use crate::session::groups::{self, GROUPS, GroupKind, PersonalityGroup};
use crate::session::{Session, Settings, SilentFront, library};
use crate::source::SourceMap;
use crate::spec::attrs;
use crate::spec::predefined::PREDEFINED;
use crate::util::table::{Align, Table};
use crate::util::{count, size, wrap};
use crate::{flowop, io_engine, measure, plan, random, report, words};
use std::sync::Arc;

/// A list that `wmlrun list` prints.
pub(super) struct Listing {
    /// The argument of `wmlrun list` that selects it.
    pub(super) name: &'static str,
    rows: fn() -> Vec<[String; 3]>,
}

/// The name of the list of all personalities.
pub(super) const PERSONALITIES: &str = "personalities";

/// All lists but that of the personalities.
pub(super) const LISTS: &[Listing] = &[
    Listing { name: "experiments", rows: experiments },
    Listing { name: "sources", rows: sources },
    Listing { name: "flowops", rows: flowops },
    Listing { name: "distributions", rows: distributions },
    Listing { name: "commands", rows: commands },
    Listing { name: "attributes", rows: attributes },
    Listing { name: "variables", rows: variables },
    Listing { name: "engines", rows: engines },
    Listing { name: "formats", rows: formats },
    Listing { name: "metrics", rows: metrics },
    Listing { name: "codes", rows: titles },
];

fn experiments() -> Vec<[String; 3]> {
    SUITES.iter().map(|(name, text)| [(*name).to_owned(), String::new(), library::about(text).to_owned()]).collect()
}

/// The published measurements that an experiment repeats, with its command.
fn sources() -> Vec<[String; 3]> {
    let row = |(name, text): &(&str, &str)| {
        let mut map = SourceMap::new();
        let id = map.add(*name, *text);
        let has_commands = read_file(&map, id).is_ok_and(|file| !file.commands.is_empty());
        let allow = if has_commands { " --allow-system" } else { "" };
        let command = format!("wmlrun experiment {name}{allow}");
        Some([command, library::source(text)?.to_owned(), library::about(text).to_owned()])
    };
    SUITES.iter().filter_map(row).collect()
}

fn flowops() -> Vec<[String; 3]> {
    flowop::spec_table()
        .flowops
        .iter()
        .map(|f| [f.name.to_owned(), f.origin.label().to_owned(), f.doc.to_owned()])
        .collect()
}

fn distributions() -> Vec<[String; 3]> {
    random::DISTRIBUTIONS
        .iter()
        .map(|d| {
            let parameters: Vec<&str> = d.parameters.iter().map(|p| p.name).collect();
            [d.name.to_owned(), parameters.join(" "), d.doc.to_owned()]
        })
        .collect()
}

fn commands() -> Vec<[String; 3]> {
    commands::specs()
        .chain(crate::prompt::COMMANDS.iter().map(|command| &command.spec))
        .map(|c| [c.form.to_owned(), c.origin.label().to_owned(), c.doc.to_owned()])
        .collect()
}

fn metrics() -> Vec<[String; 3]> {
    let better = |direction| match direction {
        Direction::HigherIsBetter => "higher is better",
        Direction::LowerIsBetter => "lower is better",
    };
    METRICS
        .iter()
        .map(|kind| [kind.name.to_owned(), better(kind.direction).to_owned(), kind.about.to_owned()])
        .chain([[
            "NAME.METRIC".to_owned(),
            String::new(),
            "the same of one flowop, such as `read.latency.p99`".to_owned(),
        ]])
        .collect()
}

fn attributes() -> Vec<[String; 3]> {
    [
        ("fileset", attrs::FILESET),
        ("process", attrs::PROCESS),
        ("thread", attrs::THREAD),
        ("flowop", attrs::FLOWOP),
        ("define flowop", attrs::COMPOSITE),
    ]
    .iter()
    .flat_map(|(of, list)| {
        list.iter().map(move |a| [a.name.to_owned(), format!("{of}, {}", a.origin.label()), a.doc.to_owned()])
    })
    .collect()
}

fn variables() -> Vec<[String; 3]> {
    PREDEFINED.iter().map(|v| [format!("${}", v.name), "predefined".to_owned(), v.doc.to_owned()]).collect()
}

fn engines() -> Vec<[String; 3]> {
    io_engine::TABLE.iter().map(|(e, about)| [e.name().to_owned(), String::new(), (*about).to_owned()]).collect()
}

fn formats() -> Vec<[String; 3]> {
    report::TABLE.iter().map(|r| [r.name().to_owned(), String::new(), r.info().about.to_owned()]).collect()
}

fn titles() -> Vec<[String; 3]> {
    words::codes().map(|e| [e.code.to_owned(), String::new(), e.title.into_owned()]).collect()
}

/// Prints a list, the personalities of a group, or those and the experiments with a word in their name or description.
/// Without a word prints the groups.
pub(super) fn list(word: Option<&str>) -> Result<u8, Failure> {
    let Some(word) = word else {
        print_lines(&overview());
        return Ok(0);
    };
    if let Some(list) = LISTS.iter().find(|list| list.name == word) {
        print_rows((list.rows)());
        return Ok(0);
    }
    let of_group = |group: &&PersonalityGroup| word == PERSONALITIES || group.name == word || group.kind.name() == word;
    let mut found: Vec<&str> = GROUPS.iter().filter(of_group).flat_map(|group| group.names).copied().collect();
    let mut experiments: Vec<(&str, &str)> = Vec::new();
    if found.is_empty() {
        let wanted = word.to_lowercase();
        let has = |(name, text): (&str, &str)| {
            name.to_lowercase().contains(&wanted) || library::about(text).to_lowercase().contains(&wanted)
        };
        found = groups::all().filter(|name| library::personality(name).is_some_and(has)).collect();
        experiments = SUITES.iter().copied().filter(|suite| has(*suite)).collect();
    }
    if found.is_empty() && experiments.is_empty() {
        let near = diag::meant(word, words().map(|(word, _)| word));
        let help = diag::did_you_mean(near, || "`wmlrun list` shows the groups".to_owned());
        let text = format!("no list or group is named `{word}`, and no personality or experiment has this word");
        return Err(Failure::wrong(text, help));
    }
    print_lines(&personalities(&found, &experiments));
    Ok(0)
}

/// The words that select a list or a group, each with what it selects.
pub(super) fn words() -> impl Iterator<Item = (&'static str, String)> {
    let groups = GROUPS.iter().map(|group| (group.name, count::count(group.names.len() as u64, "personality")));
    let kinds = GroupKind::ALL.iter().map(|kind| (kind.name(), kind.about().to_owned()));
    let lists = LISTS.iter().map(|list| (list.name, String::new()));
    groups.chain(kinds).chain(lists).chain([(PERSONALITIES, "all of them".to_owned())])
}

/// The groups of personalities, at most a screen.
fn overview() -> String {
    let width = columns();
    let widest = GROUPS.iter().map(|group| group.name.len()).max().unwrap_or(0).max("experiments".len());
    let row = |name: &str, names: &[&str]| {
        let head = format!("  {name:<widest$}  {:>3}  ", names.len());
        let mut line = format!("{head}{}", names.join(", "));
        let mut shown = names.len();
        while line.chars().count() > width && shown > 1 {
            shown -= 1;
            line = format!("{head}{}, …", names[..shown].join(", "));
        }
        line
    };
    let mut lines = Vec::new();
    for kind in GroupKind::ALL {
        lines.push(format!("{}: {}", kind.name(), kind.about()));
        lines.extend(GROUPS.iter().filter(|group| group.kind == kind).map(|group| row(group.name, group.names)));
    }
    let suites: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
    lines.push("experiments: several runs and what they say".to_owned());
    lines.push(row("experiments", &suites));
    let lists: Vec<&str> = LISTS.iter().map(|list| list.name).filter(|name| *name != "experiments").collect();
    let rest = format!("Also: wmlrun list {}", lists.join(" | "));
    lines.extend([
        String::new(),
        "wmlrun list GROUP, or any WORD such as mail: a line each, with size and threads".to_owned(),
        wrap::fill(&rest, width, "  "),
    ]);
    lines.join("\n")
}

/// A line for each of these personalities and experiments.
fn personalities(names: &[&str], experiments: &[(&str, &str)]) -> String {
    let titles =
        [("name", Align::Left), ("at start", Align::Right), ("threads", Align::Right), ("what it is", Align::Left)];
    let mut table = Table::new(titles);
    for (name, text) in names.iter().filter_map(|name| library::personality(name)) {
        let (bytes, threads) = needs(name, text).unwrap_or_default();
        table.row([name.to_owned(), bytes, threads, library::about(text).trim_end_matches('.').to_owned()]);
    }
    for (name, text) in experiments {
        let about = format!("experiment: {}", library::about(text).trim_end_matches('.'));
        table.row([(*name).to_owned(), "-".to_owned(), "-".to_owned(), about]);
    }
    let width = columns();
    table.render().lines().map(|line| cut(line, width)).collect::<Vec<_>>().join("\n")
}

/// The bytes of a shipped script's file sets at the start of a run, and its threads. `None` if its plan can't be made here.
fn needs(name: &str, text: &str) -> Option<(String, String)> {
    let mut session = Session::new(Settings::default(), Arc::default());
    session.read(name, text, &mut SilentFront::default()).ok()?;
    let plan = session.plan(&mut SilentFront::default()).ok()?;
    let sets = measure::trees(&plan, session.runner.settings.layout_seed).ok()?;
    let totals = plan::totals(&plan, &sets);
    Some((size::format(totals.bytes), count::grouped(totals.threads)))
}

/// The beginning of a line that is too wide, up to a whole word.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let begin: String = line.chars().take(width - 1).collect();
    let end = begin.rfind(' ').unwrap_or(begin.len());
    format!("{}…", begin[..end].trim_end_matches([' ', ',', ':']))
}

/// The columns of the screen, and what a page has if there is none.
fn columns() -> usize {
    stdout_width().unwrap_or(wrap::WIDTH).max(40)
}

/// Prints the rows of a list. Programs get a line for each.
fn print_rows(rows: Vec<[String; 3]>) {
    let three = rows.iter().any(|[_, middle, _]| !middle.is_empty());
    let mut table = Table::new(std::iter::repeat_n(("", Align::Left), if three { 3 } else { 2 }));
    for [first, middle, last] in rows {
        if three {
            table.row([first, middle, last]);
        } else {
            table.row([first, last]);
        }
    }
    // The columns have no titles, so the table begins with a blank title line: skip it.
    let text = match stdout_width() {
        Some(width) => table.render_wrapped(width),
        None => table.render(),
    };
    let has_words = |line: &&str| line.chars().any(char::is_alphanumeric);
    print_lines(&text.lines().filter(has_words).collect::<Vec<_>>().join("\n"));
}
