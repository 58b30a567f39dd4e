//! The codes of errors, warnings and notes, with their explanations.

use crate::diag::Code;
use crate::disk;
use crate::result::NoteCode;
use crate::result::warnings::Warning;
use std::borrow::Cow;

/// The explanation of a code.
pub(crate) struct Explanation {
    /// The code: a number such as `E0202`, or a name such as `short_run`.
    pub code: &'static str,
    /// What has this code, in a few words.
    pub title: Cow<'static, str>,
    /// Reason and advice; may be empty.
    pub text: Cow<'static, str>,
}

/// Returns the explanation of every code: first those of scripts, then those of file sets, warnings and notes of a report.
pub(crate) fn codes() -> impl Iterator<Item = Explanation> {
    let fixed = Code::ALL.iter().map(|c| (c.number(), c.title(), c.text())).chain(disk::CODES.iter().copied());
    let notes = NoteCode::ALL.iter().map(|note| (note.name(), note.about(), ""));
    let explained = |(code, title, text)| Explanation { code, title: Cow::from(title), text: Cow::from(text) };
    let of_report = |warning: Warning| Explanation {
        code: warning.code(),
        title: format!("for example, {}", warning.message()).into(),
        text: format!("Condition: {}.\n\nWhat to do: {}.", warning.condition(), warning.advice_in_all_cases()).into(),
    };
    fixed.map(explained).chain(Warning::examples().into_iter().map(of_report)).chain(notes.map(explained))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// `wmlrun explain` finds the first of several equal codes, so that the others would have no explanation.
    #[test]
    fn codes_are_distinct() {
        let mut seen = BTreeSet::new();
        for explanation in super::codes() {
            assert!(seen.insert(explanation.code), "{} is used twice", explanation.code);
        }
        assert!(seen.len() > 80, "{}", seen.len());
    }
}
