//! Lines to statements: what a prompt, a pipe or a sourced file runs at a time.
//!
//! A statement ends where the next one begins, so that a mistake costs its own statement and no other. Newlines mean nothing
//! inside of one. Where a brace or bracket is not closed, a word that can't stand there ends the statement: the rest of the text
//! is not swallowed by it. Deliberately absent: what is right; that is for the parser.

use super::table::prompt_command;
use crate::source::FileId;
use crate::spec::words::statement_word;
use crate::syntax::{Token, is_incomplete, lex};

/// Words that are nothing without the word that follows, even on the next line.
const HUNGRY: &[&str] = &["define", "load", "create", "shutdown", "set", "enable", "foreach"];

/// A statement, or what looks like one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StatementText {
    /// Its lines.
    pub(super) text: String,
    /// The number of the first one, from 1.
    pub(super) line: u32,
}

/// Cuts a text that comes line by line.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// Lines taken in so far.
    lines: u32,
    held: String,
    /// The line on which `held` begins.
    begins: u32,
    /// The first word of `held`.
    word: String,
    /// How many tokens it has.
    tokens: usize,
    last: Option<Token>,
    braces: usize,
    parens: usize,
    open_string: bool,
}

impl Splitter {
    /// One that has seen nothing.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Takes in a line, without its end. Returns what is known to be whole because of it: at most two pieces.
    pub(super) fn line(&mut self, line: &str) -> Vec<StatementText> {
        self.lines += 1;
        let mut whole = Vec::new();
        if self.open_string {
            self.append(line);
            // Only a quote can close it.
            if line.contains('"') {
                let text = std::mem::take(&mut self.held);
                self.measure(&text);
                self.held = text;
            }
            return whole;
        }
        let own = prompt_command(line).is_some();
        let tokens = lex(FileId::default(), line).tokens;
        let Some((first, _)) = tokens.first() else {
            // Comments keep their place inside a statement; between statements they are nobody's.
            if !self.held.is_empty() {
                self.append(line);
            } else if own {
                whole.push(StatementText { text: line.to_owned(), line: self.lines });
            }
            return whole;
        };
        let second = tokens.get(1).map(|(token, _)| token);
        if !self.held.is_empty() && self.begins_anew(line, first, second, own) {
            whole.extend(self.finish());
        }
        if self.held.is_empty() && own {
            whole.push(StatementText { text: line.to_owned(), line: self.lines });
            return whole;
        }
        self.append(line);
        if self.tokens == 0
            && let Token::Word(word) = first
        {
            self.word.clone_from(word);
        }
        self.add(line);
        whole
    }

    /// The rest of the text, whole or not.
    pub(super) fn finish(&mut self) -> Option<StatementText> {
        let lines = self.lines;
        let Self { held, begins, .. } = std::mem::take(self);
        self.lines = lines;
        (!held.trim().is_empty()).then_some(StatementText { text: held, line: begins })
    }

    /// Whether what is held could be run as it stands.
    pub(super) fn is_whole(&self) -> bool {
        !self.held.is_empty() && self.braces == 0 && !self.open_string && !is_incomplete(&self.held)
    }

    fn append(&mut self, line: &str) {
        if self.held.is_empty() {
            self.begins = self.lines;
        } else {
            self.held.push('\n');
        }
        self.held.push_str(line);
    }

    /// Counts what a text opens and closes, from nothing.
    fn measure(&mut self, text: &str) {
        (self.braces, self.parens, self.tokens) = (0, 0, 0);
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        let lexed = lex(FileId::default(), text);
        self.open_string = lexed.open_string;
        self.tokens += lexed.tokens.len();
        for (token, _) in lexed.tokens {
            match token {
                Token::Open => self.braces += 1,
                Token::Close => self.braces = self.braces.saturating_sub(1),
                Token::ParenOpen => self.parens += 1,
                Token::ParenClose => self.parens = self.parens.saturating_sub(1),
                _ => {}
            }
            self.last = Some(token);
        }
    }

    /// Whether a line begins another statement than the one that is held.
    fn begins_anew(&self, line: &str, first: &Token, second: Option<&Token>, own: bool) -> bool {
        let named = second == Some(&Token::Equals);
        let command = match first {
            Token::Word(word) if !named => own || statement_word(word).is_some(),
            _ => false,
        };
        if self.last.as_ref().is_some_and(Token::joins) {
            // Something must follow; a statement with an argument of its own is not it, nor is, in a list, a word of the prompt's.
            if own && !named && self.last == Some(Token::Comma) {
                return true;
            }
            let argument =
                matches!(second, Some(Token::Number(_) | Token::Text(_) | Token::Word(_) | Token::Variable(_)));
            return command && argument;
        }
        if self.braces > 0 {
            let inner = matches!(first, Token::Word(word) if matches!(word.as_str(), "thread" | "flowop"));
            return command && !inner && self.word != "foreach";
        }
        if self.parens > 0 {
            return command;
        }
        match first {
            Token::Word(_) if self.tokens == 1 && HUNGRY.contains(&self.word.as_str()) => command,
            Token::Word(_) => command || (!named && !is_incomplete(&self.held)),
            Token::Number(_) => !matches!(self.last, Some(Token::Word(_) | Token::Number(_))),
            Token::Text(_) | Token::Variable(_) => !matches!(self.last, Some(Token::Word(_))),
            // An operator has nothing to work on in a line of its own.
            Token::Error => !line.trim_start().starts_with(['+', '-', '*', '/']),
            Token::Close => true,
            _ => false,
        }
    }
}

/// The statements of a whole text.
pub(super) fn statements(text: &str) -> Vec<StatementText> {
    let mut splitter = Splitter::new();
    let mut texts: Vec<StatementText> = text.lines().flat_map(|line| splitter.line(line)).collect();
    texts.extend(splitter.finish());
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(u32, String)> {
        statements(text).into_iter().map(|p| (p.line, p.text.replace('\n', "|"))).collect()
    }

    #[track_caller]
    fn is(text: &str, expected: &[(u32, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
        assert_eq!(cut(text), expected);
    }

    #[test]
    fn a_statement_ends_where_the_next_begins() {
        is(
            "load oltp_sync\nset $n=9\nflowopp x\nset $m=13\nplan\nrun 2\n",
            &[(1, "load oltp_sync"), (2, "set $n=9"), (3, "flowopp x"), (4, "set $m=13"), (5, "plan"), (6, "run 2")],
        );
        is("run\n60\nrun\nplan", &[(1, "run|60"), (3, "run"), (4, "plan")]);
        is(
            "define\nfileset name=a\n,size=4k,\nreuse\nlist",
            &[(1, "define|fileset name=a|,size=4k,|reuse"), (5, "list")],
        );
        is("set $x=$y\n* 3\nset\n$y=2", &[(1, "set $x=$y|* 3"), (3, "set|$y=2")]);
        is("stats\nstats snap\nstats", &[(1, "stats"), (2, "stats snap"), (3, "stats")]);
    }

    #[test]
    fn blocks_and_strings_span_lines() {
        let block =
            "define process name=p {\n\n thread name=t { # plan\n  flowop read name=run,\n   filesetname=x\n }\n}";
        is(&format!("{block}\nrun 1"), &[(1, &block.replace('\n', "|")), (8, "run 1")]);
        is(
            "define process name=p\n{ thread name=t\n{ flowop x name=y } }\nplan",
            &[(1, "define process name=p|{ thread name=t|{ flowop x name=y } }"), (4, "plan")],
        );
        is("echo \"a\nplan\nb\"\nplan", &[(1, "echo \"a|plan|b\""), (4, "plan")]);
        is(
            "foreach $x in 1,2 {\n set $y=$x\n run 1\n}\nplan",
            &[(1, "foreach $x in 1,2 {| set $y=$x| run 1|}"), (5, "plan")],
        );
    }

    #[test]
    fn what_is_not_closed_swallows_no_more_than_it_must() {
        is(
            "define process name=p {\n thread name=t {\n  flowop x name=y\nset $n=1\nrun 2",
            &[(1, "define process name=p {| thread name=t {|  flowop x name=y"), (4, "set $n=1"), (5, "run 2")],
        );
        is("set $x=randvar(type=gamma\nrun 2", &[(1, "set $x=randvar(type=gamma"), (2, "run 2")]);
        is("define fileset name=a,\nplan", &[(1, "define fileset name=a,"), (2, "plan")]);
        is("define fileset name=a,\nrun 60", &[(1, "define fileset name=a,"), (2, "run 60")]);
        is("set $x=5\n}\n$y=3\nplan", &[(1, "set $x=5"), (2, "}"), (3, "$y=3"), (4, "plan")]);
        is("define process name=p {\nplan", &[(1, "define process name=p {"), (2, "plan")]);
    }

    #[test]
    fn comments_and_blanks_are_nobodys() {
        is("# run 60\n\n  \nplan # now\n# end", &[(4, "plan # now")]);
        is("", &[]);
    }

    #[test]
    fn what_is_held_knows_whether_it_is_whole() {
        let mut splitter = Splitter::new();
        assert!(!splitter.is_whole());
        splitter.line("define process name=p {");
        assert!(!splitter.is_whole());
        splitter.line("}");
        assert!(splitter.is_whole());
    }
}
