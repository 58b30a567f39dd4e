//! What each word of the program means, in a sentence: rows and columns of reports, states, verdicts, codes, metrics,
//! formats, and the words of the language. Each is collected from where it is defined; what is defined nowhere stands in
//! `terms`. Asked by `wmlrun explain` and the shell's `help`. Deliberately absent: options, which only `cli` knows.

mod codes;
mod terms;

pub(crate) use codes::codes;
pub(crate) use terms::LABELS;
pub use terms::{REPORT_LINES, TERMS, TermEntry};

use crate::experiment::RUN_MARKS;
use crate::report::metrics::METRICS;
use crate::trace::CALL_CLASSES;
use crate::{io_engine, report};

/// What a word means, a text for each of its meanings. Empty if it is unknown.
pub fn meanings(word: &str) -> Vec<String> {
    let wanted = plain(word);
    let marks = RUN_MARKS.iter().filter(|mark| plain(mark.name) == wanted);
    let mut found: Vec<String> = marks.map(|mark| format!("{}: {}", mark.name, mark.about)).collect();
    let codes = codes().filter(|e| plain(e.code) == wanted);
    found.extend(codes.map(|e| format!("{}: {}\n\n{}", e.code, e.title, e.text).trim_end().to_owned()));
    if found.is_empty() {
        found.extend(term(&wanted));
    }
    let metrics = METRICS.iter().filter(|metric| plain(metric.name) == wanted || is_of_flowop(word, metric.name));
    found.extend(metrics.map(|metric| format!("{word}: a metric: {}", metric.about)));
    let formats = report::TABLE.iter().filter(|format| plain(format.name()) == wanted);
    found.extend(formats.map(|format| format!("{}: a format of reports: {}", format.name(), format.info().about)));
    let engines = io_engine::TABLE.iter().filter(|(engine, _)| plain(engine.name()) == wanted);
    found.extend(engines.map(|(engine, about)| format!("{}: an engine: {about}", engine.name())));
    let classes = CALL_CLASSES.iter().filter(|(_, name, _)| *name == wanted);
    found.extend(classes.map(|(_, name, about)| format!("{name}: a class of system calls: {about}")));
    if found.is_empty() {
        found.extend(percentile(&wanted).or_else(|| made_label(&wanted)));
    }
    found
}

/// All words that have a meaning, for completion and suggestions.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let marks = RUN_MARKS.iter().map(|mark| mark.name);
    let terms = tables().flat_map(|entry| entry.words.split(", ")).filter(|word| !word.contains('…'));
    let formats = report::TABLE.iter().map(|format| format.name());
    marks.chain(codes().map(|e| e.code)).chain(terms).chain(METRICS.iter().map(|metric| metric.name)).chain(formats)
}

/// The term or label, from the first table that has it.
fn term(wanted: &str) -> Option<String> {
    let has = |entry: &&TermEntry| plain(entry.words) == wanted || parts(entry).any(|word| word == wanted);
    tables().find(has).map(sentence)
}

/// The label that is made of this one.
fn made_label(wanted: &str) -> Option<String> {
    tables().find(|entry| parts(entry).any(|part| is_made_of(wanted, &part))).map(sentence)
}

/// True for a label with something in the place of `…`.
fn is_made_of(wanted: &str, part: &str) -> bool {
    let around = part.split_once('…').filter(|(before, after)| before.len() + after.len() < wanted.len());
    around.is_some_and(|(before, after)| wanted.starts_with(before) && wanted.ends_with(after))
}

/// The meaning of a term or label that a word is the plural or singular of.
pub fn other_number(word: &str) -> Option<String> {
    let wanted = plain(word);
    let is = |known: &str| known.strip_suffix('s') == Some(&wanted) || wanted.strip_suffix('s') == Some(known);
    tables().find(|entry| parts(entry).any(|known| is(&known))).map(sentence)
}

fn tables() -> impl Iterator<Item = &'static TermEntry> {
    [TERMS, REPORT_LINES, LABELS].into_iter().flatten()
}

fn parts(entry: &TermEntry) -> impl Iterator<Item = String> {
    entry.words.split(", ").map(plain)
}

fn sentence(entry: &TermEntry) -> String {
    let page = entry.page.split('#').next().filter(|page| !page.is_empty());
    let more = page.map_or(String::new(), |page| format!(" (docs/{page})"));
    format!("{}: {}{more}.", entry.words, entry.meaning)
}

/// A word without what differs between places: letters of one case, blanks for signs between words.
fn plain(word: &str) -> String {
    let word = word.trim().trim_end_matches([':', '.']).to_lowercase().replace('−', "-");
    word.split(|c: char| matches!(c, '_' | '-' | ',') || c.is_whitespace())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// True for the metric of a flowop, such as `read.latency.p99`.
fn is_of_flowop(word: &str, metric: &str) -> bool {
    metric.contains('.') && word.strip_suffix(metric).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
}

/// The meaning of a percentile, such as `p99.9`, alone or after `response` or `lateness`.
fn percentile(wanted: &str) -> Option<String> {
    let (of, name) = wanted.rsplit_once(' ').unwrap_or(("latency", wanted));
    let share: f64 = name.strip_prefix('p')?.parse().ok().filter(|share| *share > 0.0 && *share < 100.0)?;
    let of = match of {
        "latency" => "latency",
        "response" | "response time" => "response time",
        "lateness" => "lateness",
        _ => return None,
    };
    Some(format!(
        "{name}: a percentile: the {of} that {share} % of the operations do not exceed. `-` in its place: fewer than 100 \
         operations are beyond it, so that it would be a matter of chance."
    ))
}

#[cfg(test)]
mod tests {
    use super::{LABELS, REPORT_LINES, TERMS, all, meanings, other_number};
    use crate::analysis::{ComparisonVerdict, NightState};
    use crate::result::RunState;
    use std::collections::BTreeSet;

    #[test]
    fn every_word_has_a_meaning_and_each_term_one() {
        for word in all() {
            assert!(!meanings(word).is_empty(), "{word}");
        }
        for table in [REPORT_LINES, TERMS, LABELS] {
            let mut seen = BTreeSet::new();
            for word in table.iter().flat_map(super::parts) {
                assert!(seen.insert(word.clone()), "{word} stands twice");
            }
        }
    }

    #[test]
    fn states_and_verdicts_are_known() {
        use RunState::{Complete, Failed, Interrupted, LowSpace, NothingDone, Stuck};
        for state in [Complete, Interrupted, Failed, Stuck, LowSpace, NothingDone] {
            assert_eq!(meanings(state.name()).len(), 1, "{}", state.name());
        }
        for verdict in ComparisonVerdict::ALL {
            assert_eq!(meanings(verdict.name()).len(), 1, "{}", verdict.name());
        }
        for state in NightState::ALL {
            assert!(meanings(state.name()).join("\n").contains("a test "), "{}", state.name());
        }
    }

    #[test]
    fn each_line_of_a_replay_is_known() {
        for word in crate::report::replay::SHOWN.into_iter().chain(crate::report::replay::HEADINGS) {
            assert!(!meanings(word).is_empty(), "{word}");
        }
    }

    #[test]
    fn a_word_is_known_in_each_of_its_forms() {
        for (word, says) in [
            ("p99.9", "99.9 % of the operations"),
            ("response p50", "the response time that 50 %"),
            ("detectable loss", "the smallest loss"),
            ("Detectable-Loss", "the smallest loss"),
            ("low_space", "before it filled"),
            ("read.latency.p99", "99th percentile"),
            ("B − A", "difference of the metric"),
            ("E0202", "E0202: "),
            ("disturbed", "`--retry-disturbed`"),
        ] {
            let found = meanings(word).join("\n");
            assert!(found.contains(says), "{word}: {found}");
        }
        assert!(other_number("file sets").is_some_and(|found| found.contains("a tree of files")));
        assert_eq!(meanings("p100"), [""; 0]);
        assert_eq!(meanings("no such word"), [""; 0]);
    }
}
