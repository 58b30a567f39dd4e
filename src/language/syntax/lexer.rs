//! Splits text into tokens.
//!
//! Text that is not a token is reported, becomes [`Token::Error`], and the lexer goes on after it; single characters
//! without a meaning are skipped with a warning. Comments are
//! returned separately, for the formatter. The lexer has no keywords; the layout pass finds the statement words. Only
//! directly before a `$` the lexer has to: `set$x=5` is a statement, and `data$x` a text.
//!
//! Only `-` and `/` depend on context: they are operators after a number or variable. Anywhere else they begin a word or
//! a signed number, because words may contain both.

use super::ast::{Number, NumberUnit, Operator, TextPart, Variable, VariableForm};
use super::number::{self, NumberFault};
use super::skipped::{self, SkippedCharacters, shown};
use super::token::Token;
use super::variable::read_variable;
use crate::diag::{self, Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};
use crate::spec::words::{shows_text, statement_word};

/// Most tokens of a script: a million `set` lines have fewer.
const MOST_TOKENS: usize = 4_500_000;

/// Most parts of a text: variables, and the text between them.
const MOST_PARTS: usize = 1 << 14;

/// Characters of a number after a `/` that are read: no number is longer, and an unbounded search would be quadratic.
const NUMBER_REACH: usize = 64;

/// The tokens and comments of a text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lexed {
    /// The tokens in order, without blanks and comments.
    pub tokens: Vec<(Token, Span)>,
    /// The comments in order, each from its `#` to the end of the line (without line end or blanks before it).
    pub comments: Vec<Span>,
    /// Errors.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether a string is still open at the end.
    pub open_string: bool,
}

/// Splits `text` into tokens. Never fails: text that is not a token becomes an error token and a diagnostic.
pub fn lex(file: FileId, text: &str) -> Lexed {
    let skipped = SkippedCharacters::default();
    let mut lexer = Lexer { file, text, at: 0, multiline: None, shown: false, skipped, out: Lexed::default() };
    // A byte order mark is not part of the script.
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while let Some(c) = lexer.peek() {
        lexer.token(c);
        if lexer.out.tokens.len() > MOST_TOKENS {
            return too_long(&lexer.out);
        }
    }
    lexer.skipped.report(&mut lexer.out.diagnostics);
    lexer.out
}

/// The result for a text with too many tokens to be a script: no token, and one error.
fn too_long(lexed: &Lexed) -> Lexed {
    let at = lexed.tokens.last().map_or(Span::default(), |(_, span)| *span);
    let message = format!("the script has more than {MOST_TOKENS} words and signs");
    let diagnostic = Diagnostic::error(Code::OutOfRange, at, message).help("leave out what is not needed");
    Lexed { diagnostics: vec![diagnostic], ..Lexed::default() }
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    /// The last string that spans lines: the likely cause if a later one is not closed.
    multiline: Option<Span>,
    /// Whether a string here is an argument of a command that shows it or passes it to a shell.
    shown: bool,
    skipped: SkippedCharacters,
    out: Lexed,
}

/// Whether a character separates tokens. The vertical tab does too, as in Filebench.
pub(super) fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// Whether a character ends a bare word.
fn ends_word(c: char) -> bool {
    is_blank(c) || matches!(c, '=' | ',' | '{' | '}' | '(' | ')' | '"' | '#')
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | ';')
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '/' | '.' | '_' | '-')
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    /// The position of the first character from `from` on for which `stop` is true.
    fn until(&self, from: usize, stop: impl Fn(char) -> bool) -> usize {
        self.text[from..].find(stop).map_or(self.text.len(), |at| from + at)
    }

    fn push(&mut self, token: Token, end: usize) {
        self.shown = match (&token, self.out.tokens.last()) {
            (Token::Text(_), _) => self.shown,
            (Token::Word(word), before) => {
                let before = before.map(|(token, _)| token);
                let first = if let Some(Token::Word(first)) = before { first } else { "" };
                shows_text(first, word)
            }
            _ => false,
        };
        let span = self.span(self.at, end);
        self.out.tokens.push((token, span));
        self.at = end;
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        diag::push(&mut self.out.diagnostics, diagnostic);
    }

    /// Whether an operator may follow the last token.
    fn after_operand(&self) -> bool {
        matches!(self.out.tokens.last(), Some((Token::Number(_) | Token::Variable(_), _)))
    }

    /// The start of the last token, if it is a variable that ends at the current position.
    fn touching_variable(&self) -> Option<usize> {
        match self.out.tokens.last() {
            Some((Token::Variable(_), span)) if span.end as usize == self.at => Some(span.start as usize),
            _ => None,
        }
    }

    /// The end of the word, number or variable that ends at the current position; empty if none does.
    fn touching(&self) -> &str {
        match self.out.tokens.last() {
            Some((Token::Word(_) | Token::Number(_) | Token::Variable(_) | Token::Text(_), span))
                if span.end as usize == self.at && !self.text[..self.at].ends_with('"') =>
            {
                &self.text[span.start as usize..self.at]
            }
            _ => "",
        }
    }

    /// The end of characters at `at` that are skipped. `before`: what is written directly before them.
    fn skipped_end(&self, at: usize, before: &str) -> Option<usize> {
        skipped::end(&self.text[at..], before, ends_word).map(|end| at + end)
    }

    /// Skips the characters up to `end`.
    fn skip(&mut self, end: usize) {
        for (at, c) in self.text[self.at..end].char_indices() {
            let start = self.at + at;
            self.skipped.add(c, Span::new(self.file, start, start + c.len_utf8()));
        }
        self.at = end;
    }

    /// Whether the `/` at the current position, after an operand, is a division. Directly after a variable it may
    /// belong to a path: then it is not followed by exactly one operand.
    fn divides(&self) -> bool {
        let behind = &self.text[self.at + 1..];
        if behind.chars().next().is_none_or(ends_word) {
            let next = behind.trim_start_matches(is_blank);
            return self.touching_variable().is_none() || next.starts_with(|c: char| c == '$' || c.is_ascii_digit());
        }
        if self.touching_variable().is_none() {
            return behind.starts_with(|c: char| c == '$' || c.is_ascii_digit());
        }
        if behind.starts_with('$') {
            return read_variable(self.text, self.at + 1).is_ok_and(|(_, end)| !self.text[end..].starts_with(in_word));
        }
        let near = &behind[..behind.char_indices().nth(NUMBER_REACH).map_or(behind.len(), |(at, _)| at)];
        let part = &near[..near.find(ends_word).unwrap_or(near.len())];
        let part = &part[..number::before_statement(part, &behind[part.len()..])];
        // `01` is a name, not a divisor.
        let named = part.len() > 1 && part.starts_with('0') && !part.starts_with("0.");
        part.starts_with(|c: char| c.is_ascii_digit()) && !named && number::read(part).1.is_none()
    }

    fn token(&mut self, c: char) {
        let single = match c {
            c if is_blank(c) => {
                self.at += 1;
                return;
            }
            '#' => return self.comment(),
            '"' => return self.string(),
            '$' => return self.variable(),
            '=' => Token::Equals,
            ',' => Token::Comma,
            '{' => Token::Open,
            '}' => Token::Close,
            '(' => Token::ParenOpen,
            ')' => Token::ParenClose,
            '+' => Token::Operator(Operator::Add),
            '*' => Token::Operator(Operator::Multiply),
            '-' => return self.minus(),
            '/' if self.after_operand() && self.divides() => Token::Operator(Operator::Divide),
            _ => {
                if let Some(end) = self.skipped_end(self.at, self.touching()) {
                    return self.skip(end);
                }
                return match self.touching_variable() {
                    Some(start) => self.glued(start),
                    None if c.is_ascii_digit() => self.number(self.at),
                    None if starts_word(c) => self.word(),
                    None => self.bad_character(self.at),
                };
            }
        };
        self.push(single, self.at + 1);
    }

    fn comment(&mut self) {
        let end = self.until(self.at, |c| c == '\n');
        let shown = self.at + self.text[self.at..end].trim_end().len();
        let span = self.span(self.at, shown);
        self.out.comments.push(span);
        self.at = end;
    }

    fn minus(&mut self) {
        let next = self.second();
        if self.after_operand() {
            match self.touching_variable() {
                Some(start) if next.is_some_and(|c| starts_word(c) && c != '-') => self.glued(start),
                _ => self.push(Token::Operator(Operator::Subtract), self.at + 1),
            }
        } else if next.is_some_and(|c| c.is_ascii_digit()) {
            self.number(self.at + 1);
        } else if next.is_some_and(starts_word) {
            self.word();
        } else {
            self.push(Token::Operator(Operator::Subtract), self.at + 1);
        }
    }

    /// Reads a number whose digits start at `digits`. A character before them is its sign.
    fn number(&mut self, digits: usize) {
        let end =
            self.until(digits, |c| ends_word(c) || skipped::ends_number(c) || matches!(c, '+' | '-' | '*' | '/' | '$'));
        let end = digits + number::before_statement(&self.text[digits..end], &self.text[end..]);
        let (number, fault) = number::read(&self.text[digits..end]);
        let negative = digits > self.at;
        if let Some(NumberFault::Unit(at)) = fault
            && let Some(unit) = NumberUnit::of(&self.text[digits + at..end]).filter(|_| !negative)
        {
            return self.push(Token::Number(Number::With(number.as_f64(), unit)), end);
        }
        let number = match number {
            Number::Int(n) if negative => Number::Int(-n),
            Number::Float(x) if negative && x.fract() == 0.0 => Number::Int(-(x as i64)),
            number => number,
        };
        let whole = self.span(self.at, end);
        let written = &self.text[self.at..end];
        let is_clamped = fault == Some(NumberFault::Unsigned) && !negative;
        if is_clamped {
            let message = format!("`{written}` is read as {}", i64::MAX);
            let diagnostic = Diagnostic::warning(Code::Clamped, whole, message).help(format!(
                "the largest number is {}; that of Filebench is {}",
                i64::MAX,
                u64::MAX
            ));
            self.report(diagnostic);
        }
        if let Some(fault) = fault.filter(|_| !is_clamped) {
            let units = "sizes take one of the units k, m, g, t, and times are plain seconds";
            let diagnostic = match fault {
                NumberFault::Unit(at) => {
                    let unit = &self.text[digits + at..end];
                    let message = format!("`{unit}` in `{written}` is not a unit");
                    let diagnostic = Diagnostic::error(Code::BadNumber, self.span(digits + at, end), message);
                    match unit {
                        unit if unit.len() == 2 && matches!(unit.as_bytes()[1], b'b' | b'B') => {
                            diagnostic.label("not a unit").help(format!("write `{}`", &written[..written.len() - 1]))
                        }
                        unit if unit.len() == 3 && number::is_unit(unit) && unit[1..].eq_ignore_ascii_case("ib") => {
                            let help = format!("write `{}`: units are powers of 1024", &written[..written.len() - 2]);
                            diagnostic.label("not a unit").help(help)
                        }
                        "ms" | "us" | "ns" | "min" | "h" => {
                            diagnostic.label("not a unit").help("times are plain seconds, such as `0.5` or `3600`")
                        }
                        unit => {
                            let diagnostic = diagnostic.label("not a unit");
                            let diagnostic = if unit.starts_with('.') { diagnostic } else { diagnostic.help(units) };
                            if unit.starts_with('.') || unit.len() > 2 {
                                diagnostic.help(format!("if it is a word, put it into quotes: `\"{written}\"`"))
                            } else {
                                diagnostic
                            }
                        }
                    }
                }
                NumberFault::Point(at) => {
                    let message = format!("`{written}` has a point without digits after it");
                    let at = self.span(digits + at, digits + at + 1);
                    Diagnostic::error(Code::BadNumber, at, message).help("write `1.5` or `1`")
                }
                NumberFault::Unsigned => Diagnostic::error(Code::BadNumber, whole, format!("`{written}` is too small"))
                    .label("does not fit 64 bits")
                    .help(format!("the smallest number is -{}", i64::MAX)),
                NumberFault::TooLarge => Diagnostic::error(Code::BadNumber, whole, format!("`{written}` is too large"))
                    .label("does not fit 64 bits")
                    .help(format!("the largest number that is accepted is {}, just below `16777216t`", u64::MAX)),
            };
            self.report(diagnostic);
            return self.push(Token::Error, end);
        }
        if negative && matches!(number, Number::Float(_)) {
            let diagnostic =
                Diagnostic::error(Code::BadNumber, whole, format!("`{written}` is negative and not whole"));
            self.report(diagnostic.help("only whole numbers can be negative"));
            return self.push(Token::Error, end);
        }
        self.push(Token::Number(number), end);
    }

    fn word(&mut self) {
        let end = self.until(self.at, |c| !in_word(c));
        match self.text[end..].chars().next() {
            Some('$') if !self.begins_statement(end) => self.glued(self.at),
            Some(c) if c != '$' && !ends_word(c) && self.skipped_end(end, &self.text[self.at..end]).is_none() => {
                self.bad_character(end);
            }
            _ => self.push(Token::Word(self.text[self.at..end].to_owned()), end),
        }
    }

    /// Whether the word up to `end`, which a `$` follows without a blank, begins a statement, as in `set$x=5`. In a
    /// value, an attribute and the words of a command it is a part of a text: `name=set$x`, `load run$x`.
    fn begins_statement(&self, end: usize) -> bool {
        if statement_word(&self.text[self.at..end]).is_none() {
            return false;
        }
        match self.out.tokens.last() {
            None => true,
            Some((Token::Word(last), span)) => {
                self.text[span.end as usize..self.at].contains('\n') || (last != "in" && !self.awaits_word())
            }
            Some((last, _)) => !last.joins(),
        }
    }

    /// Whether the last tokens are a statement word and fewer words behind it than it takes.
    fn awaits_word(&self) -> bool {
        let words = self.out.tokens.iter().rev().map_while(|(token, _)| match token {
            Token::Word(word) => Some(word.as_str()),
            _ => None,
        });
        // No statement takes more than three words. Those of an earlier statement, which has its words, don't count.
        words
            .enumerate()
            .take(4)
            .any(|(behind, word)| statement_word(word).is_some_and(|word| word.takes_word && behind < word.words))
    }

    /// Reads a bare word with a variable in it, which is a text as if it were quoted. It starts at `start`, at or
    /// before the current position: `$dir` of `$dir/sub` is already a token.
    fn glued(&mut self, start: usize) {
        let mut start = start;
        // In `$dir/${x}/y` the first `/` looked like an operator.
        while let Some((Token::Variable(_) | Token::Operator(_), span)) = self.out.tokens.last()
            && (span.end as usize == start || start < self.at)
        {
            start = start.min(span.start as usize);
            self.at = start;
            self.out.tokens.pop();
        }
        let mut parts = Vec::new();
        let mut end = start;
        self.at = start;
        loop {
            let from = end;
            end = self.until(end, |c| !in_word(c));
            if end > from && parts.len() <= MOST_PARTS {
                parts.push(TextPart::Text(self.text[from..end].to_owned()));
            }
            match self.text[end..].chars().next() {
                Some('$') => match read_variable(self.text, end) {
                    Ok((_, after)) if parts.len() > MOST_PARTS => end = after,
                    Ok((variable, after)) => {
                        parts.push(TextPart::Variable(Spanned::new(variable, self.span(end, after))));
                        end = after;
                    }
                    Err(after) => {
                        self.bad_variable(end, after);
                        end = after;
                    }
                },
                Some(c) if !ends_word(c) && self.skipped_end(end, &self.text[start..end]).is_none() => {
                    return self.bad_character(end);
                }
                _ => break,
            }
        }
        // Behind the text it is skipped.
        if let Some(TextPart::Text(last)) = parts.last_mut()
            && last.ends_with(';')
        {
            let written = last.len();
            last.truncate(last.trim_end_matches(';').len());
            end -= written - last.len();
            if last.is_empty() {
                parts.pop();
            }
        }
        self.text_of(parts, end);
    }

    /// Reports a word with a character at `bad` that is only allowed in quotes. The whole word, including its
    /// variables, is one mistake.
    fn bad_character(&mut self, bad: usize) {
        let Some(c) = self.text[bad..].chars().next() else { return };
        let after = bad + c.len_utf8();
        let mut end = self.until(after, ends_word);
        let mut help = None;
        if c == '\'' && bad == self.at {
            // A string in single quotes is one mistake, not one at each of its words.
            if let Some(close) =
                self.text[after..].find(['\'', '\n']).filter(|at| self.text[after + at..].starts_with('\''))
            {
                end = after + close + 1;
            }
            help = Some("strings are written in double quotes".to_owned());
        }
        let written = &self.text[self.at..end];
        if c == '~' && bad == self.at {
            help = Some("no `~` is expanded: write the whole path, or `\"$(HOME)/…\"`".to_owned());
        }
        let help = help.unwrap_or_else(|| {
            let quoted = format!("put it into quotes: `\"{written}\"`");
            if written.contains('$') && matches!(c, '+' | '*') {
                format!("an expression has one operator between two numbers or variables; for a text, {quoted}")
            } else {
                quoted
            }
        });
        let message = format!("{} is only allowed in quotes", shown(c));
        let diagnostic = Diagnostic::error(Code::BadCharacter, self.span(bad, after), message).help(help);
        self.report(diagnostic);
        self.push(Token::Error, end);
    }

    fn variable(&mut self) {
        if let Some(start) = self.touching_variable() {
            return self.glued(start);
        }
        match read_variable(self.text, self.at) {
            Ok((variable, end)) => {
                let end = self.assigned_name(&variable, end);
                self.push(Token::Variable(Box::new(variable)), end);
            }
            Err(end) => {
                self.bad_variable(self.at, end);
                self.push(Token::Error, end);
            }
        }
    }

    /// The end of a variable that ends at `end`, with the `_` in front of a `=`: those are reported, because a name does
    /// not end in `_`, and text can't be assigned to.
    fn assigned_name(&mut self, variable: &Variable, end: usize) -> usize {
        let after = self.until(end, |c| c != '_');
        let plain = variable.form == VariableForm::Plain && variable.field.is_none();
        if after == end || !plain || !self.text[after..].trim_start_matches(is_blank).starts_with('=') {
            return end;
        }
        let written = &self.text[self.at + 1..after];
        let message = format!("`${written}` ends in `_`, which is not a part of a name");
        let help = format!("write `${}`, or `${{{written}}}` at each use", variable.name);
        self.report(Diagnostic::error(Code::BadVariable, self.span(self.at, after), message).help(help));
        after
    }

    fn bad_variable(&mut self, start: usize, end: usize) {
        let written = &self.text[start..end];
        let message =
            if written == "$" { "a `$` without a name".to_owned() } else { format!("`{written}` is not a variable") };
        let diagnostic = Diagnostic::error(Code::BadVariable, self.span(start, end), message)
            .help("a variable is `$name`, `${name}` or `$(NAME)`; a name starts with a letter or `_`")
            .help("a plain dollar sign is `\\$`, in quotes");
        self.report(diagnostic);
    }

    fn string(&mut self) {
        let start = self.at;
        let mut parts: Vec<TextPart> = Vec::new();
        let mut plain = String::new();
        let mut at = start + 1;
        loop {
            let run = self.until(at, |c| matches!(c, '"' | '\\' | '$'));
            plain.push_str(&self.text[at..run]);
            at = run;
            match self.text[at..].chars().next() {
                None => return self.unterminated(start),
                Some('"') => break,
                Some('\\') => {
                    let escaped = self.text[at + 1..].chars().next();
                    match escaped {
                        Some('n') => plain.push('\n'),
                        Some(c @ ('$' | '"' | '\\')) => plain.push(c),
                        // Other escapes keep the backslash, for regular expressions in `system`.
                        Some(c) => plain.extend(['\\', c]),
                        None => return self.unterminated(start),
                    }
                    at += 1 + escaped.map_or(0, char::len_utf8);
                }
                Some(_) => match read_variable(self.text, at) {
                    Ok((_, end)) if parts.len() > MOST_PARTS => at = end,
                    Ok((variable, end)) => {
                        if !plain.is_empty() {
                            parts.push(TextPart::Text(std::mem::take(&mut plain)));
                        }
                        parts.push(TextPart::Variable(Spanned::new(variable, self.span(at, end))));
                        at = end;
                    }
                    // `$1` and `$?` are for the shell.
                    Err(_) if self.shown => {
                        plain.push('$');
                        at += 1;
                    }
                    // A dollar sign before a blank or the end is itself: old scripts print `$Revision: 1.5 $`.
                    Err(end) => {
                        if !self.text[end..].starts_with(|c| c == '"' || is_blank(c)) || end > at + 1 {
                            self.bad_variable(at, end);
                        }
                        plain.push_str(&self.text[at..end]);
                        at = end;
                    }
                },
            }
        }
        if !plain.is_empty() {
            parts.push(TextPart::Text(plain));
        }
        if self.text[start..at].contains('\n') {
            self.multiline = Some(self.span(start, at + 1));
        }
        self.text_of(parts, at + 1);
    }

    /// Appends a text of these parts that ends at `end`.
    fn text_of(&mut self, parts: Vec<TextPart>, end: usize) {
        if parts.len() <= MOST_PARTS {
            return self.push(Token::Text(parts), end);
        }
        let message = format!("a text with more than {MOST_PARTS} variables and texts between them");
        let diagnostic = Diagnostic::error(Code::OutOfRange, self.span(self.at, self.at + 1), message);
        self.report(diagnostic.help("make several of it"));
        self.push(Token::Error, end);
    }

    /// Reports an unclosed string. It most likely should end on its line, so that lexing goes on at the next line. A
    /// second unclosed string extends to the end of the text, which keeps the time linear.
    fn unterminated(&mut self, start: usize) {
        let mut diagnostic =
            Diagnostic::error(Code::UnterminatedString, self.span(start, start + 1), "this string is not closed")
                .label("it starts here")
                .help("put a `\"` where it ends; a quote inside a string is written `\\\"`");
        if let Some(span) = self.multiline {
            let before = self.span(span.start as usize, span.start as usize + 1);
            diagnostic = diagnostic.also(before, "this one spans lines: perhaps it lacks its closing quote");
        }
        // Errors about variables inside are dropped: they only follow from the missing quote.
        self.out.diagnostics.retain(|d| (d.primary.span.start as usize) < start);
        self.report(diagnostic);
        let end = if self.out.open_string { self.text.len() } else { self.until(start, |c| c == '\n') };
        self.out.open_string = true;
        self.push(Token::Error, end);
    }
}
