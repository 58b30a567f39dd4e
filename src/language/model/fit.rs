//! Checks constant values against the kinds of their attributes. `plan` checks values that depend on variables.

use super::expr::{Expr, plain_text};
use super::value::switch;
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::spec::{Attr, Kind};
use crate::syntax::ast::Operator;
use wml_text::printable;

/// The maximum length of a name in bytes. Every row of every report repeats it, and a file set is a directory of its name.
pub(crate) const MAX_NAME: usize = 255;

/// Returns the error for a text that an attribute can't have: one with a control character in a name, or a NUL anywhere,
/// or a name that is too long.
pub fn bad_characters(attr: &Attr, text: &str, span: Span) -> Option<Diagnostic> {
    if attr.kind == Kind::Name && text.len() > MAX_NAME {
        let message = format!("`{}` has {} bytes", attr.name, text.len());
        let help = format!("a name has at most {MAX_NAME} bytes: results and reports repeat it");
        return Some(Diagnostic::error(Code::BadName, span, message).help(help));
    }
    let name = matches!(attr.kind, Kind::Name | Kind::Fileset | Kind::Target | Kind::Choice(_) | Kind::Random);
    let bad = text.chars().find(|c| if name { printable::is_control(*c) } else { *c == '\0' })?;
    let shown = printable::short(text, 100);
    let message =
        format!("`{}` is `{shown}`, which has the control character `{}`", attr.name, printable::escaped(bad));
    let help = if name {
        "names are shown in results and on terminals: use letters, digits and signs"
    } else {
        "leave the character out: no path and no text of the system can hold it"
    };
    Some(Diagnostic::error(Code::BadName, span, message).help(help))
}

/// Returns the error for a number with a fraction, if the attribute takes a whole number. A computed size may have one,
/// which is cut off, unless the size is less than a byte: it would be 0, which often means something else.
pub fn fraction(attr: &Attr, number: f64, span: Span) -> Option<Diagnostic> {
    let is_wrong = match attr.kind {
        Kind::Int | Kind::Percent => true,
        Kind::Size => number.abs() < 1.0,
        _ => false,
    };
    is_wrong.then(|| {
        let message = format!("`{}` takes {}, not {number}", attr.name, wanted(attr.kind));
        Diagnostic::error(Code::WrongType, span, message).help(without_fraction(attr, number))
    })
}

/// Returns the help for a number with a fraction.
fn without_fraction(attr: &Attr, number: f64) -> String {
    if attr.name.ends_with("gamma") {
        format!("it counts thousandths: {number} is {:.0}", number * 1000.0)
    } else {
        "give a whole number".to_owned()
    }
}

/// Returns the error for a constant value of the wrong kind. `alone`: no value is written.
pub(super) fn misfit(attr: &Attr, value: &Spanned<Expr>, alone: bool) -> Option<Diagnostic> {
    let wrong = |what: &str, help: String| {
        let message = format!("`{}` takes {}, not {what}", attr.name, wanted(attr.kind));
        Some(Diagnostic::error(Code::WrongType, value.span, message).help(help))
    };
    if alone && !matches!(attr.kind, Kind::Bool | Kind::BoolOr(_) | Kind::Percent) {
        return wrong("nothing", format!("write `{}=…`", attr.name));
    }
    let number = matches!(attr.kind, Kind::Int | Kind::Size | Kind::Real);
    match &value.node {
        Expr::Var(_) => None,
        Expr::Random(_) if attr.random || attr.kind == Kind::Random => None,
        Expr::Random(_) => wrong("a random variable", "give a plain value".to_owned()),
        Expr::Table(_) if attr.name == "randtable" => None,
        Expr::Table(_) => wrong("a table", "tables belong to `randtable=`".to_owned()),
        Expr::Int(..0) if attr.name == "nice" => None,
        Expr::Int(..0) if number || attr.kind == Kind::Percent => {
            wrong("a negative number", "give a number from 0 up".to_owned())
        }
        Expr::Text(parts) => {
            let text = plain_text(parts)?;
            if let Some(found) = bad_characters(attr, &text, value.span) {
                return Some(found);
            }
            match attr.kind {
                Kind::Int | Kind::Size | Kind::Real if text.parse::<f64>().is_err() => wrong(
                    &format!("the text `{text}`"),
                    "write a number, such as `8k`, or a variable, such as `$size`".to_owned(),
                ),
                Kind::Percent | Kind::Bool if switch(&text).is_none() => {
                    wrong(&format!("the text `{text}`"), "write `true` or `false`, or a variable".to_owned())
                }
                Kind::BoolOr(words) if switch(&text).is_none() && !words.contains(&text.as_str()) => {
                    wrong(&format!("the text `{text}`"), format!("write `true`, `false` or `{}`", words.join("`, `")))
                }
                Kind::Choice(words) if !words.contains(&text.as_str()) => {
                    let d = wrong(&format!("`{text}`"), format!("one of {}", words.join(", ")));
                    d.map(|d| d.near_miss(&text, words.iter().copied()))
                }
                _ => None,
            }
        }
        Expr::Bool(_) if number && attr.kind != Kind::Int => wrong("a switch", "give a number".to_owned()),
        Expr::Binary(parts) if attr.kind == Kind::Size && is_range(parts) => wrong(
            "a negative number",
            "`-` subtracts; for random sizes between two bounds, use a random variable: \
             `set $size = randvar(type=uniform,min=4k,mean=6k)` is 4k to 8k"
                .to_owned(),
        ),
        Expr::Float(x) if x.fract() != 0.0 && matches!(attr.kind, Kind::Int | Kind::Size | Kind::Percent) => {
            wrong(&format!("{x}"), without_fraction(attr, *x))
        }
        Expr::Int(_) | Expr::Float(_) if matches!(attr.kind, Kind::Fileset | Kind::Random | Kind::Variable) => {
            wrong("a number", format!("give {}", wanted(attr.kind)))
        }
        _ => None,
    }
}

/// True if two numbers with a minus between them are probably meant as a range: the difference is negative.
fn is_range(parts: &(Spanned<Expr>, Operator, Spanned<Expr>)) -> bool {
    match parts {
        (Spanned { node: Expr::Int(low), .. }, Operator::Subtract, Spanned { node: Expr::Int(high), .. }) => low < high,
        _ => false,
    }
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Name => "a name",
        Kind::Path => "a path",
        Kind::Text => "a value",
        Kind::Int => "a whole number",
        Kind::Size => "a size",
        Kind::Real => "a number",
        Kind::Bool => "`true` or `false`",
        Kind::BoolOr(_) => "`true`, `false` or a word",
        Kind::Percent => "0 to 100",
        Kind::Choice(_) => "one of a few words",
        Kind::Random => "a random variable",
        Kind::Fileset => "the name of a file set",
        Kind::Target => "the name of a flowop",
        Kind::Variable => "a variable",
    }
}
