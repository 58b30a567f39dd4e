//! The formatter of `wmlrun fmt`.
//!
//! It works on tokens and the text, not on the tree, so that spellings (`16k`, not `16384`) and comments are kept. A
//! statement starts a line; blocks are indented by two; a line longer than [`WIDTH`] is broken after a comma; groups of
//! statements keep one blank line between them. Formatting is idempotent. A script with errors is not changed.

use super::ast::Operator;
use super::layout::lay_out;
use super::lexer::lex;
use super::nest::nest;
use super::parse::parse_placed;
use super::token::Token;
use crate::diag::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span};
use crate::spec::words::statement_word;

/// Columns of a line.
const WIDTH: usize = 100;
/// Blanks of indentation for each enclosing block.
const STEP: usize = 2;
/// Additional blanks for continuation lines of a statement.
const CONTINUED: usize = 4;
/// Deeper blocks are indented no further, so that the output does not grow with the square of the input.
const DEEPEST: usize = 32;

/// Formats a script. An error holds all diagnostics of a script that can't be parsed.
pub fn format(map: &SourceMap, file: FileId) -> Result<String, Vec<Diagnostic>> {
    let text = &map.file(file).text;
    let lexed = lex(file, text);
    let comments = lexed.comments;
    let placed = lay_out(file, text, lexed.tokens);
    let tokens = placed.tokens.clone();
    let (ast, mut errors) = parse_placed(file, text, placed, lexed.diagnostics);
    errors.extend(nest(ast).1);
    errors.retain(|d| d.severity == Severity::Error);
    if errors.is_empty() { Ok(Formatter::new(text, &tokens, &comments).run()) } else { Err(errors) }
}

struct Formatter<'a> {
    text: &'a str,
    tokens: &'a [(Token, Span)],
    comments: &'a [Span],
    out: String,
    /// Characters on the current line.
    column: usize,
    depth: usize,
    /// Open tables of values.
    tables: usize,
    /// Whether a comment ended the current line.
    full: bool,
    /// Whether the last token opened a block, after which no blank line is written.
    opened: bool,
    /// End of the last token in the text.
    end: usize,
}

impl<'a> Formatter<'a> {
    fn new(text: &'a str, tokens: &'a [(Token, Span)], comments: &'a [Span]) -> Self {
        let out = String::with_capacity(text.len() + 64);
        Self { text, tokens, comments, out, column: 0, depth: 0, tables: 0, full: false, opened: false, end: 0 }
    }

    fn run(mut self) -> String {
        let mut comments = self.comments.iter().copied().peekable();
        for (i, (token, span)) in self.tokens.iter().enumerate() {
            while let Some(comment) = comments.next_if(|comment| comment.start < span.start) {
                let inside = !matches!(token, Token::Command(_) | Token::Close);
                self.comment(comment, inside);
            }
            self.token(i, token, *span);
            self.end = span.end as usize;
        }
        for comment in comments {
            self.comment(comment, false);
        }
        if self.column > 0 {
            self.out.push('\n');
        }
        self.out
    }

    /// The number of line ends in the text between the last token and `start`.
    fn lines_before(&self, start: usize) -> usize {
        self.text.get(self.end..start).unwrap_or("").bytes().filter(|b| *b == b'\n').count()
    }

    fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn write(&mut self, part: &str) {
        self.out.push_str(part);
        self.column = match part.rsplit_once('\n') {
            Some((_, last)) => last.chars().count(),
            None => self.column + part.chars().count(),
        };
    }

    /// Starts a new line, unless this one is empty.
    fn line(&mut self, indent: usize) {
        if self.column > 0 {
            self.out.push('\n');
            self.column = 0;
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.full = false;
        // An indented line counts as empty until the first token is written to it.
        self.column = indent;
    }

    fn indent(&self) -> usize {
        self.depth.min(DEEPEST) * STEP
    }

    /// Starts a line for a statement, or for a comment between statements. A blank line before it in the text is kept.
    fn group(&mut self, start: usize) {
        let blank = self.lines_before(start) > 1 && !self.out.is_empty() && !self.opened;
        if self.column > 0 {
            self.out.push('\n');
            self.column = 0;
        }
        if blank {
            self.out.push('\n');
        }
        let indent = self.indent();
        self.line(indent);
    }

    fn comment(&mut self, span: Span, inside: bool) {
        let start = span.start as usize;
        if self.lines_before(start) == 0 && !self.out.is_empty() && !self.full {
            self.write(" ");
        } else if inside {
            let indent = self.indent() + CONTINUED;
            self.line(indent);
        } else {
            self.group(start);
        }
        let text = self.slice(span);
        self.write(text);
        self.full = true;
        self.opened = false;
        self.end = span.end as usize;
    }

    fn token(&mut self, i: usize, token: &Token, span: Span) {
        match token {
            Token::Command(_) => self.group(span.start as usize),
            Token::Close => {
                self.depth = self.depth.saturating_sub(1);
                let indent = self.indent();
                self.line(indent);
            }
            Token::Open => {
                let indent = self.indent();
                if self.full {
                    self.line(indent);
                } else {
                    self.write(" ");
                }
                self.depth += 1;
            }
            token => {
                let before = i.checked_sub(1).map(|i| &self.tokens[i].0);
                // At the start of a line this word would begin a statement.
                let begins = matches!(token, Token::Word(word) if statement_word(word).is_some());
                let chunk = before == Some(&Token::Comma) && self.tables < 2 && !begins;
                if self.full || (chunk && self.column + self.chunk(i) > WIDTH) {
                    let indent = self.indent() + CONTINUED;
                    self.line(indent);
                } else if before.is_some() && self.apart(i) {
                    self.write(" ");
                }
                match token {
                    Token::TableOpen | Token::RowOpen => self.tables += 1,
                    Token::TableClose | Token::RowClose => self.tables = self.tables.saturating_sub(1),
                    _ => {}
                }
            }
        }
        let text = self.slice(span);
        self.write(text);
        self.opened = *token == Token::Open;
    }

    /// The columns of the tokens from `first` up to the next place where the line may be broken.
    fn chunk(&self, first: usize) -> usize {
        let mut width = 0;
        let mut rows: usize = 0;
        for (i, (token, span)) in self.tokens.iter().enumerate().skip(first) {
            match token {
                Token::Command(_) | Token::Close => return width,
                Token::Open => return width + 2,
                Token::RowOpen => rows += 1,
                Token::RowClose => rows = rows.saturating_sub(1),
                _ => {}
            }
            width += usize::from(i > first && self.apart(i));
            let text = self.slice(*span);
            if let Some((first_line, _)) = text.split_once('\n') {
                return width + first_line.chars().count();
            }
            width += text.chars().count();
            if *token == Token::Comma && rows == 0 {
                return width;
            }
        }
        width
    }

    /// Whether a blank is written before the token with this index, which is not the first of its statement.
    /// `$dir/$name` is kept as it is: it may be a path, and with blanks it is arithmetic.
    fn apart(&self, i: usize) -> bool {
        let divides = |at: usize| matches!(self.tokens[at].0, Token::Operator(Operator::Divide));
        let touches =
            |at: usize| at > 0 && self.tokens.get(at).is_some_and(|(_, span)| self.tokens[at - 1].1.end == span.start);
        let within = |at: usize| divides(at) && touches(at) && touches(at + 1);
        !within(i) && !within(i - 1) && apart(&self.tokens[i - 1].0, &self.tokens[i].0)
    }
}

/// Whether a blank is written between two tokens of a statement.
fn apart(before: &Token, token: &Token) -> bool {
    use Token::{Comma, Equals, ParenClose, ParenOpen, RowClose, RowOpen, TableClose, TableOpen};
    !matches!(before, Equals | Comma | ParenOpen | RowOpen | TableOpen)
        && !matches!(token, Equals | Comma | ParenOpen | ParenClose | RowClose | TableClose)
}
