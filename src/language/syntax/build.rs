//! The actions of the grammar: they build the nodes with their spans, and report missing and surplus commas.
//!
//! Deliberately absent: checks of names and ranges (`model`), and the types of the parser generator (`parse`).

use std::collections::BTreeSet;

use super::ast::{Arg, ArgKind, Operator, Statement, StatementKind, Value, Variable};
use super::number;
use crate::diag::{self, Code, Diagnostic};
use crate::source::{FileId, Span, Spanned};
use crate::spec::words::statement_word;

/// Missing commas of a statement that a report shows besides the first.
const MARKED: usize = 4;

/// Length in bytes up to which a message quotes two attributes.
const SHOWN: usize = 60;

/// An element of a list, or a comma between elements.
pub(super) enum Item<T> {
    Comma(Span),
    Value(T),
}

/// The state of one parse.
pub(super) struct Builder<'a> {
    file: FileId,
    text: &'a str,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Opening braces that recovery skipped, each with the start of the error statement that contains it.
    pub(super) orphans: Vec<(u32, Span)>,
    /// Starts of the statements that recovery made.
    pub(super) recovered: BTreeSet<u32>,
}

/// An element of a list, and whether a comma precedes it.
struct Listed<T> {
    value: T,
    comma: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(file: FileId, text: &'a str) -> Self {
        Self { file, text, diagnostics: Vec::new(), orphans: Vec::new(), recovered: BTreeSet::new() }
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    pub(super) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Diagnostic::error(Code::UnexpectedToken, span, message))
    }

    fn push(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        // Beyond the limit each report replaces the last one.
        if self.diagnostics.len() >= 2 * diag::MOST {
            self.diagnostics.pop();
        }
        self.diagnostics.push(diagnostic);
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }

    /// Removes the commas from a list. Reports a leading comma, a trailing one, and the second of two in a row.
    fn commas<T>(&mut self, items: Vec<Item<T>>) -> Vec<Listed<T>> {
        let mut list: Vec<Listed<T>> = Vec::with_capacity(items.len());
        let mut pending: Option<Span> = None;
        for item in items {
            match item {
                Item::Comma(span) => {
                    if let Some(first) = pending {
                        let report = self.error(span, "two commas, and nothing between");
                        report.secondary.push(crate::diag::Label { span: first, text: "the first".to_owned() });
                        report.help.push("leave one of them out".to_owned());
                    } else if list.is_empty() {
                        let report = self.error(span, "a comma before the first item of the list");
                        report.help.push("leave it out".to_owned());
                    }
                    pending = Some(span);
                }
                Item::Value(value) => list.push(Listed { value, comma: pending.take().is_some() }),
            }
        }
        if let Some(span) = pending
            && !list.is_empty()
        {
            self.error(span, "a comma with nothing after it").help.push("leave it out".to_owned());
        }
        list
    }

    pub(super) fn command(
        &mut self,
        start: usize,
        word: Spanned<String>,
        items: Vec<Item<Arg>>,
        open: Option<(usize, usize)>,
        end: usize,
    ) -> Statement {
        let args = self.args(items);
        if let Some(known) = statement_word(&word.node) {
            match known.list {
                Some(first) => self.missing_commas(&args, first),
                None if known.name == "set" => self.one_assignment(&args),
                None => {}
            }
        }
        let open = open.map(|(l, r)| self.span(l, r));
        Statement { span: self.span(start, end), kind: StatementKind::Command { word, args, open } }
    }

    /// Handles a statement that has been reported as unknown. One with a block is kept, without arguments, so that its
    /// braces match.
    pub(super) fn unknown(
        &mut self,
        start: usize,
        word: Spanned<String>,
        open: Option<(usize, usize)>,
        end: usize,
    ) -> Statement {
        let kind = match open {
            Some((l, r)) => StatementKind::Command { word, args: Vec::new(), open: Some(self.span(l, r)) },
            None => StatementKind::Error,
        };
        Statement { span: self.span(start, end), kind }
    }

    pub(super) fn close(&mut self, start: usize, end: usize) -> Statement {
        Statement { span: self.span(start, end), kind: StatementKind::Close }
    }

    fn args(&mut self, items: Vec<Item<Arg>>) -> Vec<Arg> {
        let list = self.commas(items);
        list.into_iter().map(|Listed { value, comma }| Arg { comma, ..value }).collect()
    }

    /// Reports all arguments from `first` on that lack a comma before them, in one report.
    fn missing_commas(&mut self, args: &[Arg], first: usize) {
        if let Some(arg) = args.get(first)
            && arg.comma
        {
            let diagnostic = Diagnostic::error(Code::UnexpectedToken, arg.span, "a comma before the first attribute");
            self.push(diagnostic.label("no comma before this").help("leave the comma out"));
        }
        let mut report: Option<Diagnostic> = None;
        for pair in args.get(first..).unwrap_or(&[]).windows(2) {
            let [before, arg] = pair else { continue };
            if arg.comma {
                continue;
            }
            if let Some(report) = &mut report {
                if report.secondary.len() == MARKED {
                    break;
                }
                report.secondary.push(crate::diag::Label { span: arg.span, text: "and before this".to_owned() });
                continue;
            }
            let left = self.slice(before.span);
            let is_value = matches!(&arg.kind, ArgKind::Bare(Value::Number(_) | Value::Text(_) | Value::Binary { .. }));
            let second_value = is_value && matches!(&before.kind, ArgKind::Named { .. } | ArgKind::Assign { .. });
            let lacks_equals = is_value && matches!(&before.kind, ArgKind::Bare(Value::Word(_)));
            report = Some(if let Some(unit) = self.unit_apart(left, arg) {
                // With the number: later stages know it without its unit.
                let digits = left.bytes().rev().take_while(u8::is_ascii_digit).count() as u32;
                let whole = Span { start: before.span.end - digits, ..arg.span };
                Diagnostic::error(Code::BadNumber, whole, format!("`{unit}` is separated from its number"))
                    .label("a blank before the unit")
                    .help(format!("write `{left}{unit}`, without the blank"))
            } else if lacks_equals && left.len() <= SHOWN {
                let value = self.slice(arg.span);
                let value = if value.len() > SHOWN || value.contains('\n') { "VALUE" } else { value };
                Diagnostic::error(Code::UnexpectedToken, arg.span, format!("`=` is missing after `{left}`"))
                    .label("`=` is missing before this")
                    .help(format!("write `{left}={value}`"))
            } else if second_value {
                Diagnostic::error(Code::UnexpectedToken, arg.span, format!("a second value after `{left}`"))
                    .label("not expected")
                    .help("an attribute has one value; attributes have commas between")
            } else {
                let diagnostic = Diagnostic::error(Code::MissingComma, arg.span, "a comma is missing")
                    .label("a comma is missing before this")
                    .help(self.joined(left, arg.span));
                match &arg.kind {
                    ArgKind::Bare(Value::Word(_)) => diagnostic.help("or, if both are one value: put it into quotes"),
                    ArgKind::Assign { .. } => {
                        diagnostic.help("or, if it is a command of its own: write `set` before it")
                    }
                    _ => diagnostic,
                }
            });
        }
        if let Some(report) = report {
            self.push(report);
        }
    }

    /// Returns the unit that an argument consists of, if what precedes it ends with a number.
    fn unit_apart(&self, left: &str, arg: &Arg) -> Option<&str> {
        let unit = self.slice(arg.span);
        let is_unit = matches!(&arg.kind, ArgKind::Bare(Value::Word(_))) && unit.len() == 1 && number::is_unit(unit);
        (is_unit && left.len() <= SHOWN && left.ends_with(|c: char| c.is_ascii_digit())).then_some(unit)
    }

    /// Quotes two attributes with the comma between them, if they are short enough.
    fn joined(&self, left: &str, right: Span) -> String {
        let right = self.slice(right);
        if left.len() + right.len() > SHOWN || left.contains('\n') || right.contains('\n') {
            return "attributes have commas between: `name=x,size=4k`".to_owned();
        }
        format!("attributes have commas between: `{left},{right}`")
    }

    /// Reports a `set` with more than one variable and one value.
    fn one_assignment(&mut self, args: &[Arg]) {
        let [first, second, ..] = args else { return };
        if matches!(first.kind, ArgKind::Bare(_)) && matches!(second.kind, ArgKind::Bare(_)) {
            return;
        }
        let diagnostic = match &second.kind {
            ArgKind::Bare(_) => {
                let left = self.slice(first.span);
                Diagnostic::error(Code::UnexpectedToken, second.span, format!("a second value after `{left}`"))
                    .label("not expected")
                    .help("put a value with a blank in quotes")
            }
            _ => Diagnostic::error(Code::UnexpectedToken, second.span, "a second assignment in one `set`")
                .label("not expected")
                .help("write a separate `set` for each variable"),
        };
        self.push(diagnostic);
    }

    pub(super) fn bare(value: Spanned<Value>) -> Arg {
        Arg { span: value.span, comma: false, kind: ArgKind::Bare(value.node) }
    }

    pub(super) fn named(name: Spanned<String>, value: Spanned<Value>) -> Arg {
        Arg { span: name.span.to(value.span), comma: false, kind: ArgKind::Named { name, value } }
    }

    pub(super) fn assign(&mut self, start: usize, var: Variable, end: usize, value: Spanned<Value>) -> Arg {
        let var = Spanned::new(var, self.span(start, end));
        Arg { span: var.span.to(value.span), comma: false, kind: ArgKind::Assign { var, value } }
    }

    pub(super) fn call(
        &mut self,
        start: usize,
        name: Spanned<String>,
        items: Vec<Item<Arg>>,
        end: usize,
    ) -> Spanned<Value> {
        let args = self.args(items);
        self.missing_commas(&args, 0);
        Spanned::new(Value::Call { name, args }, self.span(start, end))
    }

    pub(super) fn binary(left: Spanned<Value>, op: Operator, right: Spanned<Value>) -> Spanned<Value> {
        let span = left.span.to(right.span);
        Spanned::new(Value::Binary { left: Box::new(left), op, right: Box::new(right) }, span)
    }

    pub(super) fn row(
        &mut self,
        start: usize,
        items: Vec<Item<Spanned<Value>>>,
        end: usize,
    ) -> Spanned<Vec<Spanned<Value>>> {
        let row = self.list(items, "value");
        Spanned::new(row, self.span(start, end))
    }

    pub(super) fn table(
        &mut self,
        start: usize,
        rows: Vec<Item<Spanned<Vec<Spanned<Value>>>>>,
        end: usize,
    ) -> Spanned<Value> {
        let rows = self.list(rows, "row");
        Spanned::new(Value::Table(rows), self.span(start, end))
    }

    fn list<T>(&mut self, items: Vec<Item<Spanned<T>>>, what: &str) -> Vec<Spanned<T>> {
        let list = self.commas(items);
        if let Some(lone) = list.iter().skip(1).find(|listed| !listed.comma) {
            let diagnostic = Diagnostic::error(Code::MissingComma, lone.value.span, "a comma is missing");
            let diagnostic = diagnostic.label(format!("a comma is missing before this {what}"));
            self.push(diagnostic.help(format!("put a comma between this {what} and the one before")));
        }
        list.into_iter().map(|listed| listed.value).collect()
    }

    /// Guesses the value of a token that the lexer has reported, so that later checks do not report it again.
    pub(super) fn bad_part(&mut self, start: usize, end: usize) -> Spanned<Value> {
        let span = self.span(start, end);
        let text = self.slice(span);
        let digits = text.strip_prefix('-').unwrap_or(text);
        let value = if digits.starts_with(|c: char| c.is_ascii_digit()) {
            Value::Number(number::read(digits).0)
        } else {
            Value::Word(text.to_owned())
        };
        Spanned::new(value, span)
    }
}
