//! The layout pass: classifies words and braces by their position.
//!
//! The language has no reserved words: a file set may be called `set` or `log`, and a new attribute makes no name
//! unusable. This pass looks at the tokens around a word and decides whether it starts a statement; the grammar then
//! sees statement words and plain words as two kinds of tokens. It also distinguishes the braces of a table of values
//! from those of a block.
//!
//! Newlines have no meaning in the language. Only in a wrong script (a comma or `=` with nothing after it, a command
//! without its argument, a word where only a statement can start) the start of a line serves as a hint, so that one
//! mistake is reported once and the statements after it are still parsed. For the same reason missing brackets and
//! values are reported and inserted here.

use super::token::Token;
use crate::diag::{self, Code, Diagnostic, nearest};
use crate::source::{FileId, Span};
use crate::spec::words::{STATEMENT_WORDS, StatementWord, statement_word};

/// Most statements of a script, including braces of blocks.
const MOST_STATEMENTS: usize = 1_100_000;

/// Most tokens of a statement.
const LONGEST_STATEMENT: usize = 1 << 17;

/// Longest word, in bytes, that is compared with the known ones as a possible misspelling.
const LONGEST_NEAR_MISS: usize = 32;

/// Tokens as the grammar sees them, and the errors.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct LaidOut {
    /// The tokens. Inserted ones have an empty span.
    pub(super) tokens: Vec<(Token, Span)>,
    /// Errors about missing and surplus tokens.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Runs the layout pass over the tokens of `text`.
pub(super) fn lay_out(file: FileId, text: &str, tokens: Vec<(Token, Span)>) -> LaidOut {
    let mut layout = LayoutPass {
        file,
        text,
        out: LaidOut { tokens: Vec::with_capacity(tokens.len() + 8), diagnostics: Vec::new() },
        tokens,
        ..LayoutPass::default()
    };
    while let Some((token, span)) = layout.tokens.get_mut(layout.at) {
        // Later steps look only at the positions of the earlier tokens, so that these can be moved.
        let (token, span) = (std::mem::replace(token, Token::Missing), *span);
        layout.token(token, span);
        layout.at += 1;
        if layout.statements > MOST_STATEMENTS {
            layout.too_many(span);
            break;
        }
    }
    layout.flush();
    layout.out
}

#[derive(Default)]
struct LayoutPass<'a> {
    file: FileId,
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    /// Index of the current token.
    at: usize,
    /// The statement that it belongs to, if that has a known word.
    statement: Option<&'static StatementWord>,
    /// Plain words of that statement so far.
    words: usize,
    /// Whether the statement has a `name=value` so far.
    named: bool,
    /// Open parentheses.
    parens: Vec<Span>,
    /// The open table of values: its first brace, and the number of open braces.
    table: Option<(Span, usize)>,
    /// Statements and braces of blocks so far.
    statements: usize,
    /// Tokens of the current statement so far.
    length: usize,
    /// The statement is too long, and the rest of it is skipped.
    skips: bool,
    out: LaidOut,
}

impl LayoutPass<'_> {
    fn next(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|(token, _)| token)
    }

    fn last(&self) -> Option<&Token> {
        self.out.tokens.last().map(|(token, _)| token)
    }

    /// Whether the token with this index is the first of its line.
    fn starts_line(&self, index: usize) -> bool {
        let before = index.checked_sub(1).map_or(0, |i| self.tokens[i].1.end as usize);
        let start = self.tokens.get(index).map_or(self.text.len(), |(_, span)| span.start as usize);
        index == 0 || self.text.get(before..start).is_some_and(|gap| gap.contains('\n'))
    }

    /// Whether the next token is on the same line and could be the first argument of a statement.
    fn argument_follows(&self) -> bool {
        matches!(self.next(), Some(Token::Number(_) | Token::Text(_) | Token::Word(_) | Token::Variable(_)))
            && !self.starts_line(self.at + 1)
    }

    fn token(&mut self, token: Token, span: Span) {
        match token {
            Token::Word(word) => self.word(word, span),
            Token::Equals => {
                self.flush_table();
                self.named = true;
                self.push(Token::Equals, span);
            }
            Token::Open => self.open(span),
            Token::Close => self.close(span),
            Token::ParenOpen => {
                self.push(Token::ParenOpen, span);
                self.parens.push(span);
            }
            Token::ParenClose => {
                self.flush_table();
                if self.parens.pop().is_some() {
                    self.push(Token::ParenClose, span);
                } else {
                    let diagnostic = Diagnostic::error(Code::UnexpectedToken, span, "a `)` without its `(`");
                    self.report(diagnostic.help("leave it out"));
                }
            }
            other => self.push(other, span),
        }
    }

    fn word(&mut self, word: String, span: Span) {
        if let Some(known) = statement_word(&word) {
            if self.is_statement(known) {
                return self.start(known, span);
            }
        } else if self.stands_for_statement(&word) {
            return self.unknown(&word, span);
        }
        let counts = !self.last().is_some_and(Token::joins) && self.next() != Some(&Token::Equals);
        self.words += usize::from(counts);
        self.push(Token::Word(word), span);
    }

    /// Whether a statement word starts a statement here.
    fn is_statement(&self, word: &StatementWord) -> bool {
        if self.next() == Some(&Token::Equals) {
            return false;
        }
        let starts_line = self.starts_line(self.at);
        match self.last() {
            None | Some(Token::Open | Token::Close) => true,
            // Only a plain word is allowed here, unless the script is wrong and this is the next statement.
            Some(last) if last.joins() => starts_line && self.argument_follows(),
            _ if !self.parens.is_empty() || self.table.is_some() => starts_line,
            Some(Token::Command(command)) => {
                let command = statement_word(command);
                let takes = |c: &StatementWord| c.objects.contains(&word.name) || (c.takes_word && !starts_line);
                !command.is_some_and(takes)
            }
            Some(Token::Word(before)) => match self.statement.map(|statement| statement.name) {
                Some("set") => !(before == "mode" && word.name == "quit"),
                Some("foreach") => before != "in" || starts_line,
                _ => true,
            },
            Some(_) => true,
        }
    }

    /// Whether a word that is not a statement word is at the place of one.
    fn stands_for_statement(&self, word: &str) -> bool {
        let before = match self.last() {
            None | Some(Token::Open | Token::Close) => return true,
            Some(before) => before,
        };
        if matches!(self.next(), Some(Token::Equals | Token::Comma))
            || before.joins()
            || !self.parens.is_empty()
            || self.table.is_some()
            || !self.starts_line(self.at)
        {
            return false;
        }
        let (takes, list) = self.statement.map_or((0, Some(0)), |statement| (statement.words, statement.list));
        if matches!(before, Token::Command(_)) {
            return takes == 0 && list.is_none();
        }
        let complete = self.named || self.words >= takes.min(1);
        if complete && near_miss(word).is_some() {
            return true;
        }
        if list.is_none() {
            return self.named || self.words >= takes;
        }
        // A single word in a list lacks its comma, as in `reuse prealloc`; a word with arguments is a statement.
        let ahead = |n: usize| self.tokens.get(self.at + n).map(|(token, _)| token);
        let own = match (ahead(1), ahead(2), ahead(3)) {
            (Some(Token::Word(_) | Token::Variable(_)), Some(Token::Equals), _)
            | (Some(Token::Word(_)), Some(Token::Word(_)), Some(Token::Equals)) => true,
            (next, _, _) => !matches!(next, Some(Token::Word(_) | Token::Variable(_))),
        };
        complete && own && self.argument_follows()
    }

    fn start(&mut self, word: &'static StatementWord, span: Span) {
        self.flush();
        self.push(Token::Command(word.name.to_owned()), span);
        self.begin(Some(word));
    }

    fn begin(&mut self, statement: Option<&'static StatementWord>) {
        self.statement = statement;
        self.words = 0;
        self.named = false;
    }

    fn unknown(&mut self, word: &str, span: Span) {
        if self.next() == Some(&Token::Equals) {
            let message = format!("the attribute `{word}` belongs to no statement");
            let diagnostic = Diagnostic::error(Code::UnexpectedToken, span, message)
                .help("attributes follow a command, `thread` or `flowop`; is one missing before it, or a brace wrong?");
            self.report(diagnostic);
            self.push(Token::Unknown(String::new()), Span::new(self.file, span.start as usize, span.start as usize));
            self.push(Token::Word(word.to_owned()), span);
            return self.begin(None);
        }
        let diagnostic = Diagnostic::error(Code::UnknownCommand, span, format!("unknown command `{word}`"));
        if let Some(known) = near_miss(word) {
            self.report(diagnostic.help(format!("did you mean `{}`?", known.name)));
            // Go on as if it were spelt right, since the rest may be right.
            return self.start(known, span);
        }
        self.report(diagnostic.help("`wmlrun list commands` shows all"));
        self.push(Token::Unknown(word.to_owned()), span);
        self.begin(None);
    }

    fn open(&mut self, span: Span) {
        if let Some((_, depth)) = &mut self.table {
            *depth += 1;
            return self.push(Token::RowOpen, span);
        }
        if self.last() == Some(&Token::Equals) && (self.next() == Some(&Token::Open) || !self.parens.is_empty()) {
            self.table = Some((span, 1));
            return self.push(Token::TableOpen, span);
        }
        self.flush();
        self.push(Token::Open, span);
        self.begin(None);
    }

    fn close(&mut self, span: Span) {
        match &mut self.table {
            Some((_, depth)) if *depth > 1 => {
                *depth -= 1;
                self.push(Token::RowClose, span);
            }
            Some(_) => {
                self.table = None;
                self.push(Token::TableClose, span);
            }
            None => {
                self.flush();
                self.push(Token::Close, span);
                self.begin(None);
            }
        }
    }

    /// Appends a token. If a value is expected and the token does not start one, first reports that and inserts a
    /// stand-in.
    fn push(&mut self, token: Token, span: Span) {
        match self.last() {
            Some(Token::Equals) if !token.starts_value() => self.missing_value(),
            Some(Token::Operator(_)) if !token.is_operand() => self.missing_operand(),
            _ => {}
        }
        let begins = matches!(token, Token::Command(_) | Token::Unknown(_) | Token::Open | Token::Close);
        if begins {
            self.statements += 1;
            (self.length, self.skips) = (0, false);
        }
        self.length += 1;
        if self.length > LONGEST_STATEMENT {
            if !self.skips {
                self.skips = true;
                let message = format!("a statement with more than {LONGEST_STATEMENT} words and signs");
                self.report(Diagnostic::error(Code::OutOfRange, span, message).help("make several of it"));
            }
            return;
        }
        self.out.tokens.push((token, span));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        diag::push(&mut self.out.diagnostics, diagnostic);
    }

    /// Reports that the script has too many statements.
    fn too_many(&mut self, span: Span) {
        let message = format!("the script has more than {MOST_STATEMENTS} statements");
        let diagnostic = Diagnostic::error(Code::OutOfRange, span, message).help("leave out what is not needed");
        self.out.diagnostics.insert(0, diagnostic);
    }

    fn missing_operand(&mut self) {
        let [.., (left, _), (_, operator)] = self.out.tokens.as_slice() else { return };
        // Without a left operand the operator itself is wrong, which the grammar reports.
        if left.is_operand() {
            let written = self.text.get(operator.start as usize..operator.end as usize).unwrap_or("");
            let message = format!("`{written}` needs a number or variable after it");
            let diagnostic = Diagnostic::error(Code::UnexpectedToken, *operator, message);
            self.report(diagnostic.help("an operator stands between two numbers or variables: `$a * 3`"));
            self.put_in(Token::Missing);
        }
    }

    fn missing_value(&mut self) {
        let tokens = &self.out.tokens;
        let Some((_, equals)) = tokens.last() else { return };
        let equals = *equals;
        let report = |message: String| Diagnostic::error(Code::UnexpectedToken, equals, message);
        let diagnostic = match tokens.as_slice() {
            [.., (Token::Equals, _), (_, _), _] => {
                report("a second `=`".to_owned()).label("not expected").help("leave one of them out")
            }
            [.., (_, left), _] => {
                let left = self.text.get(left.start as usize..left.end as usize).unwrap_or("");
                report(format!("`{left}=` has no value"))
                    .label("a value is missing after this")
                    .help(format!("write `{left}=VALUE`; an empty text is `\"\"`"))
            }
            _ => report("`=` without a name before it".to_owned()).help("write `NAME=VALUE`, or leave the `=` out"),
        };
        self.report(diagnostic);
        self.put_in(Token::Missing);
    }

    /// Appends a token that is not in the text.
    fn put_in(&mut self, token: Token) {
        let end = self.out.tokens.last().map_or(0, |(_, span)| span.end as usize);
        self.out.tokens.push((token, Span::new(self.file, end, end)));
    }

    /// Closes open brackets and tables at the end of a statement.
    fn flush(&mut self) {
        match self.last() {
            Some(Token::Equals) => self.missing_value(),
            Some(Token::Operator(_)) => self.missing_operand(),
            _ => {}
        }
        self.flush_table();
        while let Some(span) = self.parens.pop() {
            let diagnostic = Diagnostic::error(Code::UnexpectedToken, span, "a `(` without its `)`");
            let help = "put a `)` after the last of its arguments";
            self.report(diagnostic.label("never closed").help(help));
            self.put_in(Token::ParenClose);
        }
    }

    fn flush_table(&mut self) {
        let Some((span, depth)) = self.table.take() else { return };
        let diagnostic = Diagnostic::error(Code::UnclosedBlock, span, "a table whose `{` is not closed")
            .label("each `{` of the table needs its `}`")
            .help("a table is written `{ {80,1k,4k}, {20,4k,16k} }`");
        self.report(diagnostic);
        for _ in 1..depth {
            self.put_in(Token::RowClose);
        }
        self.put_in(Token::TableClose);
    }
}

/// The statement word that is nearest to a misspelt one.
fn near_miss(word: &str) -> Option<&'static StatementWord> {
    if word.len() > LONGEST_NEAR_MISS {
        return None;
    }
    // Words of very different length are never near: skipping them here avoids most comparisons.
    let alike = |name: &&str| name.len().abs_diff(word.len()) <= word.len().max(3) / 3;
    nearest(word, STATEMENT_WORDS.iter().map(|known| known.name).filter(alike)).and_then(statement_word)
}
