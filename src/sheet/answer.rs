//! The answer of a document: what happened, whether it may be used, and on which machine. Text, Markdown, the page and
//! mail take their sentences from it.

use serde::Serialize;

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
    /// What was measured.
    pub about: String,
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
        let caution = match &self.cautions[..] {
            [] => String::new(),
            parts => format!("Caution: {}.", parts.join("; ")),
        };
        let all = self.details.iter().map(String::as_str).chain([&*caution, sentence, &*self.advice]);
        all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }
}
