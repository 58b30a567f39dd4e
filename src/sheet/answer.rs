//! The answer of a document: what happened, whether it may be used, and on which machine. Text, Markdown, the page and
//! mail take their sentences from it.

use serde::Serialize;
use wml_text::printable;
use wml_text::wrap::fill;

/// Whether a result may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Usability {
    Usable,
    /// In spite of a caution.
    WithCaution,
    Unusable,
}

/// What a reader who sees nothing else must know. Each text is one or more whole sentences, or empty.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// What a mail begins with instead of the title; empty if it is that.
    #[serde(skip)]
    pub subject: String,
    /// What was measured.
    pub about: String,
    /// The figures that a mail has no table for; empty if there are none.
    #[serde(skip)]
    pub figures: String,
    /// What happened, after the word of the verdict or the state.
    pub result: String,
    /// What else was seen, and what was not.
    pub details: Vec<String>,
    /// The reasons to distrust the result, as parts of one sentence without its full stop.
    pub cautions: Vec<String>,
    /// `None` for a part of a result.
    pub usability: Option<Usability>,
    /// What to do next.
    pub advice: String,
    /// Machine, file systems and versions, and what differs.
    pub conditions: Vec<String>,
}

impl Answer {
    /// The answer of a part: its result alone.
    pub fn of_part(result: String) -> Self {
        Self { result, ..Self::default() }
    }

    /// What follows the result, up to the conditions.
    pub fn rest(&self) -> String {
        let sentence = match self.usability {
            None => "",
            Some(Usability::Usable) => "You may use this result.",
            Some(Usability::WithCaution) => "You may use this result in spite of it.",
            Some(Usability::Unusable) => "Do not use this result.",
        };
        let parts: Vec<&str> = self.cautions.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let caution = if parts.is_empty() { String::new() } else { format!("Caution: {}.", parts.join("; ")) };
        let all = self.details.iter().map(String::as_str).chain([&*caution, sentence, &*self.advice]);
        all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// The longest command or name that is not broken.
const LONGEST: usize = 30;

/// A paragraph of an answer in lines of at most `columns` columns. A number stays beside its unit and an arrow, and the words of a short
/// command stay together.
pub(super) fn paragraph(text: &str, columns: usize, under: &str) -> String {
    const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB"];
    const ARROW: &str = "→";
    let text = printable::line(text);
    let mut kept = String::with_capacity(text.len());
    for (n, part) in text.split('`').enumerate() {
        let is_command = n % 2 == 1 && part.len() <= LONGEST;
        kept += if n > 0 { "`" } else { "" };
        kept += &if is_command { part.replace(' ', "\u{a0}") } else { part.to_owned() };
    }
    let mut words = String::with_capacity(kept.len());
    let mut is_number = false;
    for word in kept.split(' ') {
        let is_unit = is_number && UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        let is_kept = is_unit || word == ARROW || words.ends_with(ARROW);
        if !words.is_empty() {
            words.push(if is_kept { '\u{a0}' } else { ' ' });
        }
        words += word;
        is_number = word.ends_with(|letter: char| letter.is_ascii_digit());
    }
    fill(&words, columns, under).replace('\u{a0}', " ")
}
