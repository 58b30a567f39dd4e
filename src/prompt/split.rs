//! Splits lines into statements, the units that a prompt, a pipe or a sourced file executes.
//!
//! A statement ends where the next one begins, so that an error affects only its own statement. Newlines inside a
//! statement have no meaning. If a brace or bracket is not closed, a command that is invalid there begins the next
//! statement, so that the rest of the text is not lost. Not here: checking of statements; the parser does that.

use super::table::prompt_command;
use crate::source::FileId;
use crate::spec::words::statement_word;
use crate::syntax::{Token, is_incomplete, lex};

/// Words that require a following word, even if that is on the next line.
const INCOMPLETE_ALONE: &[&str] = &["define", "load", "create", "shutdown", "set", "enable", "foreach"];

/// The text of a statement, which may be invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StatementText {
    /// Its lines, without the last line end.
    pub(super) text: String,
    /// The number of its first line, from 1.
    pub(super) line: u32,
}

/// An incremental splitter of lines into statements.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// Number of lines read.
    lines: u32,
    /// The incomplete statement.
    held: String,
    /// The line number at which `held` begins.
    first_line: u32,
    /// The first word of `held`.
    word: String,
    /// Number of tokens of `held`.
    tokens: usize,
    /// Last token of `held`.
    last: Option<Token>,
    /// Number of open braces.
    braces: usize,
    /// Number of open parentheses.
    parens: usize,
    /// Whether `held` ends inside a string.
    open_string: bool,
}

impl Splitter {
    /// Creates a splitter at the beginning of a text.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Reads a line, given without its line end. Returns the statements that it completes, at most two.
    pub(super) fn line(&mut self, line: &str) -> Vec<StatementText> {
        self.lines += 1;
        let mut complete = Vec::new();
        if self.open_string {
            self.append(line);
            // Only a quote can end the string.
            if line.contains('"') {
                let text = std::mem::take(&mut self.held);
                self.recount(&text);
                self.held = text;
            }
            return complete;
        }
        let is_shell_command = prompt_command(line).is_some();
        let tokens = lex(FileId::default(), line).tokens;
        let Some((first, _)) = tokens.first() else {
            // Keep comments inside a statement. Drop those between statements.
            if !self.held.is_empty() {
                self.append(line);
            } else if is_shell_command {
                complete.push(StatementText { text: line.to_owned(), line: self.lines });
            }
            return complete;
        };
        let second = tokens.get(1).map(|(token, _)| token);
        if !self.held.is_empty() && self.begins_statement(line, first, second, is_shell_command) {
            complete.extend(self.finish());
        }
        if self.held.is_empty() && is_shell_command {
            complete.push(StatementText { text: line.to_owned(), line: self.lines });
            return complete;
        }
        self.append(line);
        if self.tokens == 0
            && let Token::Word(word) = first
        {
            self.word.clone_from(word);
        }
        self.count(line);
        complete
    }

    /// Returns the rest of the text, whether or not it is a complete statement.
    pub(super) fn finish(&mut self) -> Option<StatementText> {
        let lines = self.lines;
        let Self { held, first_line, .. } = std::mem::take(self);
        self.lines = lines;
        (!held.trim().is_empty()).then_some(StatementText { text: held, line: first_line })
    }

    /// True if the held text is a complete statement.
    pub(super) fn is_complete(&self) -> bool {
        !self.held.is_empty() && self.braces == 0 && !self.open_string && !is_incomplete(&self.held)
    }

    /// Appends a line to the held text.
    fn append(&mut self, line: &str) {
        if self.held.is_empty() {
            self.first_line = self.lines;
        } else {
            self.held.push('\n');
        }
        self.held.push_str(line);
    }

    /// Counts tokens, braces and parentheses of a text, starting at zero.
    fn recount(&mut self, text: &str) {
        (self.braces, self.parens, self.tokens) = (0, 0, 0);
        self.count(text);
    }

    /// Adds the tokens, braces and parentheses of a text to the counts.
    fn count(&mut self, text: &str) {
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

    fn begins_statement(&self, line: &str, first: &Token, second: Option<&Token>, is_shell_command: bool) -> bool {
        let named = second == Some(&Token::Equals);
        let command = match first {
            Token::Word(word) if !named => is_shell_command || statement_word(word).is_some(),
            _ => false,
        };
        if self.last.as_ref().is_some_and(Token::joins) {
            // The held text needs a continuation. A command with an argument is not one, nor is a shell command in a
            // list.
            if is_shell_command && !named && self.last == Some(Token::Comma) {
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
            Token::Word(_) if self.tokens == 1 && INCOMPLETE_ALONE.contains(&self.word.as_str()) => command,
            Token::Word(_) => command || (!named && !is_incomplete(&self.held)),
            Token::Number(_) => !matches!(self.last, Some(Token::Word(_) | Token::Number(_))),
            Token::Text(_) | Token::Variable(_) => !matches!(self.last, Some(Token::Word(_))),
            // A line can't begin with an operator, so it continues the held expression.
            Token::Error => !line.trim_start().starts_with(['+', '-', '*', '/']),
            Token::Close => true,
            _ => false,
        }
    }
}

/// Splits a whole text into statements.
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
    fn unclosed_blocks_end_at_the_next_command() {
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
    fn comments_and_blank_lines_between_statements_are_dropped() {
        is("# run 60\n\n  \nplan # now\n# end", &[(4, "plan # now")]);
        is("", &[]);
    }

    #[test]
    fn complete_blocks_are_recognized() {
        let mut splitter = Splitter::new();
        assert!(!splitter.is_complete());
        splitter.line("define process name=p {");
        assert!(!splitter.is_complete());
        splitter.line("}");
        assert!(splitter.is_complete());
    }
}
