//! What a word or a brace is, by its position.
//!
//! The language has no reserved words here: a file set may be called `set` or `log`, and an attribute added tomorrow takes no name
//! from anyone. So this pass looks at what stands around a word and decides whether it starts a statement; the grammar then sees
//! statement words and plain words as two kinds of tokens. It also tells the braces of a table of values from those of a block.
//!
//! Newlines mean nothing in the language. Only where a script is wrong anyway (a comma or `=` with nothing behind it, a command
//! without its argument, a word where only a statement can start) does the start of a line serve as a hint, so that one mistake is reported once and the statements
//! behind it are still read. For the same reason brackets and values that are missing are reported and put in here.

use super::token::Token;
use crate::diag::{self, Code, Diagnostic, nearest};
use crate::source::{FileId, Span};
use crate::spec::words::{STATEMENT_WORDS, StatementWord, statement_word};

/// Statements of the longest script, braces of blocks counted.
const MOST_STATEMENTS: usize = 1_100_000;

/// Tokens of the longest statement.
const LONGEST_STATEMENT: usize = 1 << 17;

/// Longer words are not compared with the known ones: nobody misspells `set` in 40 letters.
const LONGEST_NEAR_MISS: usize = 32;

/// Tokens as the grammar sees them, with what was wrong.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct LaidOut {
    /// The tokens; those with an empty span were put in.
    pub(super) tokens: Vec<(Token, Span)>,
    /// What was missing or too much.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Places the tokens of `text`.
pub(super) fn lay_out(file: FileId, text: &str, tokens: Vec<(Token, Span)>) -> LaidOut {
    let mut layout = LayoutPass {
        file,
        text,
        out: LaidOut { tokens: Vec::with_capacity(tokens.len() + 8), diagnostics: Vec::new() },
        tokens,
        at: 0,
        statement: None,
        words: 0,
        named: false,
        parens: Vec::new(),
        table: None,
        statements: 0,
        length: 0,
        skips: false,
    };
    while let Some((token, span)) = layout.tokens.get_mut(layout.at) {
        // Nothing looks back at them, only at their places.
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

struct LayoutPass<'a> {
    file: FileId,
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    /// Index of the token that is looked at.
    at: usize,
    /// The statement that it belongs to, if that is a known one.
    statement: Option<&'static StatementWord>,
    /// How many plain words that statement has so far.
    words: usize,
    /// Whether it has a `name=value` so far.
    named: bool,
    /// The round brackets that are open.
    parens: Vec<Span>,
    /// The table of values that is open: its first brace, and how many braces are open.
    table: Option<(Span, usize)>,
    /// Statements so far, and braces of blocks.
    statements: usize,
    /// Tokens of the statement so far.
    length: usize,
    /// The statement is too long: the rest of it is passed over.
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

    /// Whether the next token stands on the same line and could be the first argument of a statement.
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
            // Here only a plain word can stand, unless the script is wrong and the next statement follows.
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

    /// Whether a word that is no statement word stands where one should.
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
        // In a list, a word alone lacks its comma, as in `reuse prealloc`; one with arguments of its own is a statement.
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
            // Read on as if it had been written right: nothing else need be wrong.
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

    /// Appends a token; where a value should stand and it starts none, first reports that and puts in a stand-in.
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

    /// The script has more statements than are read.
    fn too_many(&mut self, span: Span) {
        let message = format!("the script has more than {MOST_STATEMENTS} statements");
        let diagnostic = Diagnostic::error(Code::OutOfRange, span, message).help("leave out what is not needed");
        self.out.diagnostics.insert(0, diagnostic);
    }

    fn missing_operand(&mut self) {
        let [.., (left, _), (_, operator)] = self.out.tokens.as_slice() else { return };
        // Without a left operand the operator itself is the mistake, which the grammar reports.
        if left.is_operand() {
            let written = self.text.get(operator.start as usize..operator.end as usize).unwrap_or("");
            let message = format!("`{written}` needs a number or variable behind it");
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
                    .label("a value is missing behind this")
                    .help(format!("write `{left}=VALUE`; an empty text is `\"\"`"))
            }
            _ => report("`=` without a name before it".to_owned()).help("write `NAME=VALUE`, or leave the `=` out"),
        };
        self.report(diagnostic);
        self.put_in(Token::Missing);
    }

    /// Appends a token that was not written.
    fn put_in(&mut self, token: Token) {
        let end = self.out.tokens.last().map_or(0, |(_, span)| span.end as usize);
        self.out.tokens.push((token, Span::new(self.file, end, end)));
    }

    /// Brings whatever is open to an end, since the statement ends here.
    fn flush(&mut self) {
        match self.last() {
            Some(Token::Equals) => self.missing_value(),
            Some(Token::Operator(_)) => self.missing_operand(),
            _ => {}
        }
        self.flush_table();
        while let Some(span) = self.parens.pop() {
            let diagnostic = Diagnostic::error(Code::UnexpectedToken, span, "a `(` without its `)`");
            let help = "put a `)` behind the last of its arguments";
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

/// The statement word that a misspelt one was probably meant to be.
fn near_miss(word: &str) -> Option<&'static StatementWord> {
    if word.len() > LONGEST_NEAR_MISS {
        return None;
    }
    // Of very different length none is near; saying so here spares most of the comparing.
    let alike = |name: &&str| name.len().abs_diff(word.len()) <= word.len().max(3) / 3;
    nearest(word, STATEMENT_WORDS.iter().map(|known| known.name).filter(alike)).and_then(statement_word)
}
