//! The words that start a statement, and how many plain words each takes: what is needed to tell, by position alone, a
//! statement from an argument of the same name. What a command means, and its attributes, stand elsewhere in `spec`.

/// A word that starts a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatementWord {
    /// As it is written.
    pub name: &'static str,
    /// How many plain words follow it at most, before anything else: `define fileset` 1, `set mode quit alldone` 3, `run 60` 0.
    pub words: usize,
    /// Whether a word on the same line is its argument, whatever word it is: all that take a word, but for `list`, which may
    /// stand alone. `help` may too, and `help run` still asks about `run`.
    pub takes_word: bool,
    /// How many arguments stand before the list with commas starts, if it has one: `flowop read name=…` 1, `thread name=…` 0.
    pub list: Option<usize>,
    /// Words that are arguments directly after it although they are statement words elsewhere, even on the next line.
    pub objects: &'static [&'static str],
}

const fn word(name: &'static str, words: usize, list: Option<usize>) -> StatementWord {
    StatementWord { name, words, takes_word: words > 0, list, objects: &[] }
}

const fn objects(mut word: StatementWord, objects: &'static [&'static str]) -> StatementWord {
    word.objects = objects;
    word
}

/// All statement words. No other word starts a statement, and each of these may be a name or a value where none can start.
pub const STATEMENT_WORDS: &[StatementWord] = &[
    objects(word("define", 1, Some(1)), &["flowop"]),
    word("thread", 0, Some(0)),
    word("flowop", 1, Some(1)),
    word("set", 3, None),
    word("create", 1, None),
    word("run", 0, None),
    word("psrun", 0, None),
    word("sleep", 0, None),
    word("warmup", 0, None),
    word("system", 0, None),
    word("echo", 0, None),
    word("log", 0, None),
    word("usage", 0, None),
    word("help", 1, None),
    word("vars", 0, None),
    word("version", 0, None),
    word("eventgen", 0, Some(0)),
    word("enable", 1, Some(1)),
    word("domultisync", 0, Some(0)),
    StatementWord { takes_word: false, ..objects(word("list", 1, None), &["flowop"]) },
    word("stats", 2, None),
    word("shutdown", 1, None),
    word("load", 1, None),
    word("foreach", 1, Some(2)),
    word("fscheck", 0, Some(0)),
    word("fsflush", 0, Some(0)),
    word("debug", 0, None),
    word("quit", 0, None),
    word("exit", 0, None),
];

/// The statement word of that name; case matters, as in Filebench.
pub fn statement_word(name: &str) -> Option<&'static StatementWord> {
    STATEMENT_WORDS.iter().find(|word| word.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_twice() {
        for (i, word) in STATEMENT_WORDS.iter().enumerate() {
            assert!(STATEMENT_WORDS[i + 1..].iter().all(|other| other.name != word.name), "{} stands twice", word.name);
        }
        assert_eq!(statement_word("define").map(|w| w.words), Some(1));
        assert_eq!(statement_word("Define"), None);
    }
}
