//! Checks numbers with a unit that only some values have: `60s` where a time is expected, `80%` where a share is.
//! Elsewhere the unit would be without a meaning, and the number another one than the author wrote. Nor has a time a unit
//! of sizes: `1m` is 1,048,576 seconds.

use crate::diag::{self, Code, Diagnostic};
use crate::source::{SourceMap, Span, Spanned};
use crate::spec::{Kind, attrs};
use crate::syntax::ast::{Arg, ArgKind, Ast, Number, NumberUnit, StatementKind, Value};
use wml_text::count::grouped;

/// Commands whose arguments are times in seconds.
const TIMED_COMMANDS: &[&str] = &["run", "psrun", "sleep", "warmup"];

/// Attributes that are times in seconds.
const TIMES: &[&str] = &["stonewall", "for", "start"];

/// What is expected of a number where it stands.
#[derive(Clone, Copy)]
enum UnitRule {
    /// Only numbers with this unit have one here.
    Unit(NumberUnit),
    /// The value of a variable, which may be used as anything.
    Variable,
    /// No number has a unit here.
    Plain,
}

/// Reports units that mean nothing where they are.
pub(super) fn check(map: &SourceMap, ast: &Ast, found: &mut Vec<Diagnostic>) {
    for statement in &ast.statements {
        let StatementKind::Command { word, args, .. } = &statement.kind else { continue };
        let kind = match args.first().map(|arg| &arg.kind) {
            Some(ArgKind::Bare(Value::Word(kind))) if word.node == "flowop" => kind,
            _ => "",
        };
        for arg in args {
            let (value, span, rule) = match &arg.kind {
                ArgKind::Bare(value) => (value, arg.span, of_command(&word.node)),
                ArgKind::Named { name, value } => (&value.node, value.span, of_attribute(&name.node, kind)),
                ArgKind::Assign { value, .. } => (&value.node, value.span, UnitRule::Variable),
            };
            check_value(value, span, rule, found);
            if let (UnitRule::Unit(NumberUnit::Seconds), Value::Number(number)) = (rule, value) {
                check_time(number.as_f64(), map.slice(span), span, found);
            }
        }
    }
}

fn of_command(word: &str) -> UnitRule {
    match word {
        _ if TIMED_COMMANDS.contains(&word) => UnitRule::Unit(NumberUnit::Seconds),
        "foreach" => UnitRule::Variable,
        _ => UnitRule::Plain,
    }
}

/// `flowop`: the type of the flowop that has the attribute.
fn of_attribute(name: &str, flowop: &str) -> UnitRule {
    match name {
        _ if TIMES.contains(&name) => UnitRule::Unit(NumberUnit::Seconds),
        "value" if flowop == "delay" => UnitRule::Unit(NumberUnit::Seconds),
        "weight" => UnitRule::Unit(NumberUnit::Percent),
        _ if attrs::kind(name) == Some(Kind::Percent) => UnitRule::Unit(NumberUnit::Percent),
        _ => UnitRule::Plain,
    }
}

fn check_value(value: &Value, span: Span, rule: UnitRule, found: &mut Vec<Diagnostic>) {
    match value {
        Value::Number(Number::With(number, unit)) => check_number(*number, *unit, span, rule, found),
        Value::Binary { left, right, .. } => {
            for operand in [left, right] {
                check_value(&operand.node, operand.span, UnitRule::Plain, found);
            }
        }
        Value::Call { args, .. } => args.iter().for_each(|arg| check_parameter(arg, found)),
        Value::Table(rows) => rows.iter().for_each(|row| check_row(&row.node, found)),
        Value::Number(_) | Value::Word(_) | Value::Text(_) | Value::Variable(_) => {}
    }
}

/// Reports a time with a unit of sizes. Filebench accepts it, so that it is no error.
fn check_time(seconds: f64, written: &str, span: Span, found: &mut Vec<Diagnostic>) {
    if !written.ends_with(|c: char| matches!(c.to_ascii_lowercase(), 'k' | 'm' | 'g' | 't')) {
        return;
    }
    let message = format!(
        "`{written}` is {} seconds: `{}` is a unit of sizes",
        grouped(seconds as u64),
        &written[written.len() - 1..]
    );
    let help = "times are plain seconds: write `60` for a minute";
    diag::push(found, Diagnostic::warning(Code::SizeAsTime, span, message).help(help));
}

/// Checks a parameter of `randvar(…)` or `cvar(…)`.
fn check_parameter(parameter: &Arg, found: &mut Vec<Diagnostic>) {
    match &parameter.kind {
        ArgKind::Named { value, .. } | ArgKind::Assign { value, .. } => {
            check_value(&value.node, value.span, UnitRule::Plain, found);
        }
        ArgKind::Bare(value) => check_value(value, parameter.span, UnitRule::Plain, found),
    }
}

/// Checks a row of a table, which begins with the percentage of the draws.
fn check_row(row: &[Spanned<Value>], found: &mut Vec<Diagnostic>) {
    for (column, cell) in row.iter().enumerate() {
        let rule = if column == 0 { UnitRule::Unit(NumberUnit::Percent) } else { UnitRule::Plain };
        check_value(&cell.node, cell.span, rule, found);
    }
}

fn check_number(number: f64, unit: NumberUnit, span: Span, rule: UnitRule, found: &mut Vec<Diagnostic>) {
    let (sign, written) = (unit.sign(), format!("{number}{}", unit.sign()));
    let diagnostic = match rule {
        UnitRule::Unit(own) if own == unit => return,
        UnitRule::Variable => {
            let message = format!("`{written}` is read as {number}: variables have no units");
            Diagnostic::warning(Code::SkippedCharacter, span, message).help(format!("write `{number}`"))
        }
        UnitRule::Unit(_) | UnitRule::Plain => {
            let help = match unit {
                NumberUnit::Seconds => "sizes take one of the units k, m, g, t; only times take `s`",
                NumberUnit::Percent => "sizes take one of the units k, m, g, t; only percentages take `%`",
            };
            let message = format!("`{sign}` in `{written}` is not a unit");
            Diagnostic::error(Code::BadNumber, span, message).label("not a unit here").help(help)
        }
    };
    diag::push(found, diagnostic);
}
