//! Parses tokens into the syntax tree. The only file that uses the parser generator.
//!
//! [`parse`] never fails: text that can't be parsed becomes a diagnostic and a [`StatementKind::Error`], and parsing
//! goes on after it. One mistake is one diagnostic: of the errors that later passes find in a statement, only the first
//! is kept.

use std::collections::BTreeSet;

use lalrpop_util::{ErrorRecovery, ParseError, lalrpop_mod};

use super::ast::{Ast, Statement, StatementKind};
use super::build::Builder;
use super::layout::{LaidOut, lay_out};
use super::lexer::{Lexed, lex};
use super::token::Token;
use crate::diag::{self, Code, Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span, Spanned};

lalrpop_mod!(
    #[allow(clippy::all, clippy::pedantic, clippy::unwrap_used, unused, unreachable_pub)]
    grammar,
    "/wml.rs"
);

/// Parses a script. The diagnostics are in source order.
pub fn parse(map: &SourceMap, file: FileId) -> (Ast, Vec<Diagnostic>) {
    let text = &map.file(file).text;
    parse_tokens(file, text, lex(file, text))
}

fn parse_tokens(file: FileId, text: &str, lexed: Lexed) -> (Ast, Vec<Diagnostic>) {
    let placed = lay_out(file, text, lexed.tokens);
    parse_placed(file, text, placed, lexed.diagnostics)
}

/// Parses tokens that have passed the layout pass. `lexed`: the errors of the lexer.
pub(super) fn parse_placed(
    file: FileId,
    text: &str,
    placed: LaidOut,
    lexed: Vec<Diagnostic>,
) -> (Ast, Vec<Diagnostic>) {
    let mut builder = Builder::new(file, text);
    let tokens = placed.tokens.into_iter().map(|(token, span)| Ok((span.start as usize, token, span.end as usize)));
    let statements = match grammar::ScriptParser::new().parse(&mut builder, tokens) {
        Ok(statements) => statements,
        // Recovery accepts any token, so that this is unreachable. Should it be reached, the script must not be dropped
        // silently.
        Err(error) => {
            let span = error_span(&builder, &error);
            let message = "the parser gave up; this is a bug in wmlrun";
            let report = Diagnostic::error(Code::Internal, span, message);
            builder.diagnostics.push(report.help("please report it with the script"));
            Vec::new()
        }
    };
    let Builder { diagnostics, orphans, recovered, .. } = builder;
    let ast = Ast { file, statements: adopt(statements, orphans) };
    let mut found = placed.diagnostics;
    found.extend(diagnostics);
    found.sort_by_key(|d| d.primary.span);
    let diagnostics = first_of_each(&ast, &recovered, lexed, found);
    (ast, diagnostics)
}

/// Assigns the braces that recovery skipped to the statements that they belong to, so that they match the closing braces.
fn adopt(mut statements: Vec<Statement>, orphans: Vec<(u32, Span)>) -> Vec<Statement> {
    let mut at = 0;
    for (start, brace) in orphans {
        // Both lists are in source order.
        while at < statements.len()
            && !(statements[at].kind == StatementKind::Error && statements[at].span.start == start)
        {
            at += 1;
        }
        let (before, rest) = statements.split_at_mut(at);
        match (before.last_mut(), rest.first_mut()) {
            (Some(Statement { span, kind: StatementKind::Command { open: open @ None, .. } }), Some(_)) => {
                *open = Some(brace);
                *span = span.to(brace);
            }
            (_, Some(error)) => {
                let word = Spanned::new(String::new(), Span { end: error.span.start, ..error.span });
                error.kind = StatementKind::Command { word, args: Vec::new(), open: Some(brace) };
            }
            (_, None) => return statements,
        }
    }
    statements
}

/// True if an error leaves only a value unknown, so that the rest of its statement can be checked: a malformed
/// number or a missing comma.
fn is_local(diagnostic: &Diagnostic) -> bool {
    matches!(diagnostic.code, Code::BadNumber | Code::MissingComma)
}

/// Keeps all errors of the lexer, and of the others the first one of each statement, unless an error of the lexer
/// covers it. A [local](is_local) error hides no other.
fn first_of_each(
    ast: &Ast,
    recovered: &BTreeSet<u32>,
    lexed: Vec<Diagnostic>,
    found: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    // Unparsed text at the end of a statement counts as a part of it.
    let mut groups = Vec::with_capacity(ast.statements.len());
    for (i, statement) in ast.statements.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| &ast.statements[i].kind);
        let goes_on = matches!(before, Some(StatementKind::Command { open: None, .. } | StatementKind::Error));
        let same = goes_on && statement.kind == StatementKind::Error && recovered.contains(&statement.span.start);
        groups.push(groups.last().map_or(0, |group| group + usize::from(!same)));
    }
    let statement_of = |d: &Diagnostic| {
        let at = ast.statements.partition_point(|s| s.span.start <= d.primary.span.start);
        at.checked_sub(1).map(|at| groups[at])
    };
    // A warning hides no error.
    let (warnings, lexed): (Vec<_>, Vec<_>) = lexed.into_iter().partition(|d| d.severity == Severity::Warning);
    let mut lexed = lexed.into_iter().peekable();
    let mut kept = Vec::new();
    let mut seen = None;
    // The end of the last malformed number.
    let mut guessed_to = 0;
    for diagnostic in found {
        let span = diagnostic.primary.span;
        while let Some(earlier) = lexed.next_if(|d| d.primary.span.start <= span.start) {
            if is_local(&earlier) {
                guessed_to = guessed_to.max(earlier.primary.span.end);
            } else {
                seen = Some(statement_of(&earlier));
            }
            kept.push(earlier);
        }
        // A bad token is reported at the character that makes it bad, which may not be its first one.
        let covered = lexed.peek().is_some_and(|d| d.primary.span.start < span.end);
        let statement = statement_of(&diagnostic);
        if !covered && seen != Some(statement) && span.start >= guessed_to {
            if !is_local(&diagnostic) {
                seen = Some(statement);
            }
            kept.push(diagnostic);
        }
    }
    kept.extend(lexed);
    if !warnings.is_empty() {
        kept.extend(warnings);
        kept.sort_by_key(|d| d.primary.span);
    }
    kept
}

/// Drops the errors of later stages that are in a statement with a reported error, because the node of such a statement
/// holds guesses. After a malformed number or a missing comma only the value there is a guess. `statements`: the spans of
/// the file's statements, in source order.
#[must_use]
pub fn without_follow_ons(statements: &[Span], reported: &[Diagnostic], later: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let statement_of = |span: Span| {
        let at = statements.partition_point(|s| s.start <= span.start);
        at.checked_sub(1).filter(|&at| span.start < statements[at].end.max(statements[at].start + 1))
    };
    let same_file = |span: Span| statements.first().is_some_and(|statement| statement.file == span.file);
    let errors = reported.iter().filter(|d| d.severity == Severity::Error && same_file(d.primary.span));
    let (local, whole): (Vec<&Diagnostic>, Vec<&Diagnostic>) = errors.partition(|d| is_local(d));
    let broken: BTreeSet<usize> = whole.iter().filter_map(|d| statement_of(d.primary.span)).collect();
    // The value may be longer than the part of it that was reported, so that a span beside it counts too.
    let mut reported: Vec<Span> = local.iter().map(|d| d.primary.span).collect();
    reported.sort_unstable();
    let mut guesses: Vec<Span> = Vec::new();
    for span in reported {
        match guesses.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => guesses.push(span),
        }
    }
    let is_guess = |span: Span| {
        let at = guesses.partition_point(|guess| guess.end < span.start);
        guesses.get(at).is_some_and(|guess| guess.start <= span.end)
    };
    let follows = |d: &Diagnostic| {
        let span = d.primary.span;
        same_file(span) && (is_guess(span) || statement_of(span).is_some_and(|at| broken.contains(&at)))
    };
    later.into_iter().filter(|d| !follows(d)).collect()
}

type ParseFault = ParseError<usize, Token, ()>;

fn error_span(builder: &Builder<'_>, error: &ParseFault) -> Span {
    match error {
        ParseError::UnrecognizedToken { token: (l, _, r), .. } | ParseError::ExtraToken { token: (l, _, r) } => {
            builder.span(*l, *r)
        }
        ParseError::InvalidToken { location } | ParseError::UnrecognizedEof { location, .. } => {
            builder.span(*location, *location)
        }
        ParseError::User { error: () } => builder.span(0, 0),
    }
}

/// Recovers from text that the grammar can't parse: reports it, and returns a statement in its place.
fn recovered(builder: &mut Builder<'_>, recovery: &ErrorRecovery<usize, Token, ()>) -> Statement {
    let span = error_span(builder, &recovery.error);
    let start = recovery.dropped_tokens.first().map_or(span.start, |(l, _, _)| (*l as u32).min(span.start));
    let end = recovery.dropped_tokens.last().map_or(span.end, |(_, _, r)| *r as u32);
    if let Some((l, _, r)) = recovery.dropped_tokens.iter().find(|(_, token, _)| *token == Token::Open) {
        let brace = builder.span(*l, *r);
        builder.orphans.push((start, brace));
    }
    let diagnostic = describe(builder, &recovery.error, span);
    diag::push(&mut builder.diagnostics, diagnostic);
    builder.recovered.insert(start);
    Statement { span: Span { start, end: end.max(start), ..span }, kind: StatementKind::Error }
}

fn describe(builder: &Builder<'_>, error: &ParseFault, span: Span) -> Diagnostic {
    let (token, expected) = match error {
        ParseError::UnrecognizedToken { token: (_, token, _), expected } => (Some(token), expected.as_slice()),
        ParseError::ExtraToken { token: (_, token, _) } => (Some(token), &[][..]),
        ParseError::UnrecognizedEof { expected, .. } => (None, expected.as_slice()),
        ParseError::InvalidToken { .. } | ParseError::User { .. } => (None, &[][..]),
    };
    let could = group(expected);
    let at_statement =
        expected.iter().any(|name| name == "\"statement word\"") && !expected.iter().any(|n| n == "\",\"");
    let report = |message: String| Diagnostic::error(Code::UnexpectedToken, span, message);
    let written = builder.slice(span);
    let help = match token {
        None => "finish the last statement",
        Some(Token::Open | Token::RowOpen) => {
            "blocks belong to `define process`, `thread`, `define flowop` and `foreach`; leave this one out, with its `}`"
        }
        Some(Token::ParenOpen) => "leave the parentheses out, or write `randvar(type=…)`",
        Some(_) if at_statement => "statements start with a command, `thread`, `flowop` or `}`; leave this out",
        Some(_) => "leave it out, or put a text that is no word or number into quotes",
    };
    let diagnostic = match token {
        Some(Token::Equals) if !at_statement => report("`=` without a name before it".to_owned()),
        Some(Token::Operator(_)) if at_statement => report(format!("a statement can't start with `{written}`")),
        Some(Token::Operator(_)) => {
            return report(format!("`{written}` is not allowed here"))
                .label("not expected")
                .help("an expression is one operator between two numbers or variables: `$a * 3`");
        }
        Some(Token::Open | Token::RowOpen) => report("this `{` belongs to no statement".to_owned()),
        Some(Token::ParenOpen) => report("`(` can only follow `randvar` or `cvar`".to_owned()),
        Some(token) if at_statement => report(format!("a statement can't start with {}", named(token, written))),
        Some(token) => report(format!("{} is not allowed here", named(token, written))),
        None => report("the script ends too early".to_owned()),
    };
    let diagnostic = diagnostic.help(help);
    if could.is_empty() { diagnostic } else { diagnostic.label(format!("expected {}", could.join(", "))) }
}

/// The token as messages name it.
fn named(token: &Token, written: &str) -> String {
    match token {
        Token::Number(_) => format!("the number `{written}`"),
        Token::Text(_) => "a string".to_owned(),
        Token::Variable(_) => format!("the variable `{written}`"),
        _ => format!("`{written}`"),
    }
}

/// The tokens that are allowed here, in at most five groups, in an order that does not depend on the parser's tables.
fn group(expected: &[String]) -> Vec<&'static str> {
    const GROUPS: &[(&str, &[&str])] = &[
        ("a command", &["\"statement word\""]),
        ("an attribute or value", &["\"word\""]),
        ("a number or variable", &["\"number\"", "\"variable\""]),
        ("a string", &["\"string\""]),
        ("`=`", &["\"=\""]),
        ("an operator", &["\"operator\""]),
        ("`,`", &["\",\""]),
        ("`)`", &["\")\""]),
        ("`{`", &["\"{\"", "\"table {\"", "\"row {\""]),
        ("`}`", &["\"}\"", "\"table }\"", "\"row }\""]),
    ];
    let is_expected = |names: &[&str]| names.iter().any(|name| expected.iter().any(|e| e == name));
    GROUPS.iter().filter(|(_, names)| is_expected(names)).map(|(group, _)| *group).take(5).collect()
}
