//! The words that start a statement, and the number of plain words that each takes. The layout pass needs both to
//! distinguish, by position alone, a statement from an argument of the same name. Descriptions and attributes of
//! commands are in `model::commands` and [`super::attrs`].

/// A word that starts a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatementWord {
    /// The word itself.
    pub name: &'static str,
    /// Largest number of plain words directly after it: 1 in `define fileset`, 3 in `set mode quit alldone`, 0 in `run
    /// 60`.
    pub words: usize,
    /// Whether a word on the same line is always its argument, even if it is a statement word. True for all that take a
    /// word, except `list`, which also occurs alone. `help` occurs alone too, but `help run` asks for help on `run`.
    pub takes_word: bool,
    /// Number of arguments before its comma-separated attributes: 1 in `flowop read name=…`, 0 in `thread name=…`.
    /// `None` when it has no attributes, or when commas between them may be left out.
    pub list: Option<usize>,
    /// Statement words that are arguments when they directly follow it, even on the next line.
    pub objects: &'static [&'static str],
}

const fn word(name: &'static str, words: usize, list: Option<usize>) -> StatementWord {
    StatementWord { name, words, takes_word: words > 0, list, objects: &[] }
}

const fn objects(mut word: StatementWord, objects: &'static [&'static str]) -> StatementWord {
    word.objects = objects;
    word
}

/// All statement words. No other word starts a statement. Where no statement can start, each of these can be a name or
/// a value.
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
    word("enable_osprof", 0, None),
    word("disable_osprof", 0, None),
    word("eventgen", 0, Some(0)),
    word("enable", 1, Some(1)),
    word("domultisync", 0, Some(0)),
    StatementWord { takes_word: false, ..objects(word("list", 1, None), &["flowop"]) },
    word("stats", 2, None),
    word("shutdown", 1, None),
    word("load", 1, None),
    word("foreach", 1, Some(2)),
    // The grammar of 1.4 has no comma between its attributes, so that one is not missed.
    word("fscheck", 0, None),
    word("fsflush", 0, Some(0)),
    word("debug", 0, None),
    word("quit", 0, None),
    word("exit", 0, None),
];

/// Returns the statement word of that name. Case matters, as in Filebench.
pub fn statement_word(name: &str) -> Option<&'static StatementWord> {
    STATEMENT_WORDS.iter().find(|word| word.name == name)
}

/// Whether the strings behind `word`, which follows `before`, are shown or passed to a shell. A `$` in them that begins no
/// variable is itself, and an undefined variable is passed on as it is written.
pub(crate) fn shows_text(before: &str, word: &str) -> bool {
    matches!((before, word), (_, "echo" | "log" | "usage" | "system") | ("stats", "command"))
}

/// Names that other tools, system calls and commands have for flowops, with the flowop.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("append", "appendfile"),
    ("close", "closefile"),
    ("copy", "copyrange"),
    ("create", "createfile"),
    ("delete", "deletefile"),
    ("fstat", "statfile"),
    ("ls", "listdir"),
    ("mkdir", "makedir"),
    ("mmap", "mmapread"),
    ("move", "rename"),
    ("mv", "rename"),
    ("open", "openfile"),
    ("pread", "read"),
    ("pwrite", "write"),
    ("readdir", "listdir"),
    ("remove", "deletefile"),
    ("rm", "deletefile"),
    ("rmdir", "removedir"),
    ("sleep", "delay"),
    ("stat", "statfile"),
    ("think", "delay"),
    ("thinktime", "delay"),
    ("unlink", "deletefile"),
];

/// Returns the flowop that other tools call `name`.
pub(crate) fn flowop_called(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, flowop)| *flowop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique() {
        for (i, word) in STATEMENT_WORDS.iter().enumerate() {
            assert!(
                STATEMENT_WORDS[i + 1..].iter().all(|other| other.name != word.name),
                "{} is listed twice",
                word.name
            );
        }
        assert_eq!(statement_word("define").map(|w| w.words), Some(1));
        assert_eq!(statement_word("Define"), None);
    }
}
