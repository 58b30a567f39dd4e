//! Expressions: what stands on the right of `=`, kept until a run starts, and what it is worth then.
//!
//! Late binding: a definition keeps expressions. `load x; set $n=5; run` uses 5, because `$n` is read when the run starts.
//!
//! An expression is a tree of two levels at most, so that evaluating one needs no depth. Variables that refer to variables are
//! followed by [`Scope`](super::Scope), which keeps what each is worth.

use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{self, Number, Operator, TextPart, Variable};
use std::sync::Arc;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number; sizes in bytes.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A word, or a string with variables in it.
    Text(Vec<TextPart>),
    /// A variable.
    Var(Variable),
    /// `left op right`.
    Binary(Box<(Spanned<Expr>, Operator, Spanned<Expr>)>),
    /// `randvar(…)` or `cvar(…)`.
    Random(Arc<RandomExpr>),
    /// Rows of numbers.
    Table(Vec<Vec<Spanned<Expr>>>),
}

/// The two ways of making a random variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomCall {
    /// `randvar(…)` and `define randvar`.
    Randvar,
    /// `cvar(…)`.
    Cvar,
}

/// A random variable, its parameters still expressions.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomExpr {
    /// How it was made.
    pub call: RandomCall,
    /// Where.
    pub span: Span,
    /// `type=…`, `mean=…`, in the order of writing; the last of a name wins.
    pub fields: Vec<(Spanned<String>, Spanned<Expr>)>,
}

impl RandomExpr {
    /// The last field of that name.
    pub fn field(&self, name: &str) -> Option<&Spanned<Expr>> {
        self.fields.iter().rev().find(|(n, _)| n.node == name).map(|(_, e)| e)
    }

    /// What `echo` prints for it: Filebench's words.
    pub fn describe(&self) -> String {
        if self.call == RandomCall::Cvar {
            return "custom variable".to_owned();
        }
        let kind = match self.field("type").map(|e| &e.node) {
            _ if self.field("randtable").is_some() => "tabular".to_owned(),
            Some(Expr::Text(parts)) => plain_text(parts).unwrap_or_default(),
            _ => "gamma".to_owned(),
        };
        format!("{kind} random var")
    }
}

/// What an expression is worth.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelValue {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// Text; shared, since one variable may be read by very many attributes.
    Text(Arc<str>),
    /// A random variable.
    Random(Arc<RandomExpr>),
    /// Rows of numbers.
    Table(Arc<[Vec<f64>]>),
}

impl ModelValue {
    /// As `echo` prints it.
    pub fn print(&self) -> String {
        match self {
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Text(s) => s.as_ref().to_owned(),
            Self::Random(r) => r.describe(),
            Self::Table(rows) => format!("table of {} rows", rows.len()),
        }
    }

    /// What kind of value it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a switch",
            Self::Int(_) => "a number",
            Self::Float(_) => "a fraction",
            Self::Text(_) => "a text",
            Self::Random(_) => "a random variable",
            Self::Table(_) => "a table",
        }
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Text(s) => s.trim().parse().ok().filter(|x: &f64| x.is_finite()),
            _ => None,
        }
    }
}

/// Who knows what a variable is worth.
pub trait Lookup {
    /// The value of a variable, or of its field; `None` if nothing sets it.
    fn value_of(&self, variable: &Variable) -> Option<Result<ModelValue, Diagnostic>>;
    /// The known name that is nearest to one that is not known.
    fn near(&self, name: &str) -> Option<String>;
    /// Takes note of a text of so many bytes that was made; an error once all of them together are too much.
    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic>;
}

/// The text of a string without variables.
pub fn plain_text(parts: &[TextPart]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            TextPart::Text(text) => Some(text.as_str()),
            TextPart::Variable(_) => None,
        })
        .collect()
}

/// An expression from what was written. `randvar(…)` keeps its arguments; they are checked where their table is known.
pub fn from_ast(value: &Spanned<ast::Value>) -> Spanned<Expr> {
    let expr = match &value.node {
        ast::Value::Word(word) => match word.as_str() {
            "true" => Expr::Bool(true),
            "false" => Expr::Bool(false),
            _ => Expr::Text(vec![TextPart::Text(word.clone())]),
        },
        ast::Value::Number(Number::Int(n)) => Expr::Int(*n),
        ast::Value::Number(Number::Float(x)) => Expr::Float(*x),
        ast::Value::Text(parts) => Expr::Text(parts.clone()),
        ast::Value::Variable(v) => Expr::Var(v.clone()),
        ast::Value::Binary { left, op, right } => Expr::Binary(Box::new((from_ast(left), *op, from_ast(right)))),
        ast::Value::Call { name, args } => {
            let call = if name.node == "cvar" { RandomCall::Cvar } else { RandomCall::Randvar };
            let fields = args
                .iter()
                .filter_map(|arg| match &arg.kind {
                    ast::ArgKind::Named { name, value } => Some((name.clone(), from_ast(value))),
                    _ => None,
                })
                .collect();
            Expr::Random(Arc::new(RandomExpr { call, span: value.span, fields }))
        }
        ast::Value::Table(rows) => {
            Expr::Table(rows.iter().map(|row| row.node.iter().map(from_ast).collect()).collect())
        }
    };
    Spanned::new(expr, value.span)
}

/// Bytes of the longest text that an expression may be worth.
pub const LONGEST_TEXT: usize = 64 << 10;

/// What `expr` is worth now.
pub fn eval(expr: &Spanned<Expr>, scope: &dyn Lookup) -> Result<ModelValue, Diagnostic> {
    Ok(match &expr.node {
        Expr::Bool(b) => ModelValue::Bool(*b),
        Expr::Int(n) => ModelValue::Int(*n),
        Expr::Float(x) => ModelValue::Float(*x),
        Expr::Random(r) => ModelValue::Random(r.clone()),
        Expr::Text(parts) => ModelValue::Text(match parts.as_slice() {
            [TextPart::Text(text)] => within(text, expr.span)?.into(),
            parts => joined(parts, expr.span, scope)?.into(),
        }),
        Expr::Var(v) => read(v, expr.span, scope)?,
        Expr::Binary(b) => {
            let (left, op, right) = &**b;
            let (one, other) = (eval(left, scope)?, eval(right, scope)?);
            if *op == Operator::Divide && is_directory(left, &one) && is_part_of_path(right, &other) {
                ModelValue::Text(within(&format!("{}/{}", one.print(), other.print()), expr.span)?.into())
            } else {
                arithmetic(&one, *op, &other, expr.span)?
            }
        }
        Expr::Table(rows) => {
            let mut table = Vec::new();
            for row in rows {
                let mut cells = Vec::new();
                for cell in row {
                    let value = eval(cell, scope)?;
                    cells.push(value.as_f64().ok_or_else(|| {
                        Diagnostic::error(Code::WrongType, cell.span, format!("a cell of a table is {}", value.kind()))
                            .help("write numbers: `{per cent, low, high}`")
                    })?);
                }
                table.push(cells);
            }
            ModelValue::Table(table.into())
        }
    })
}

/// The text of a string with the values of its variables.
fn joined(parts: &[TextPart], span: Span, scope: &dyn Lookup) -> Result<String, Diagnostic> {
    let mut text = String::new();
    for part in parts {
        match part {
            TextPart::Text(t) => text.push_str(t),
            TextPart::Variable(v) => text.push_str(&read(&v.node, v.span, scope)?.print()),
        }
        within(&text, span)?;
    }
    scope.spend(text.len(), span)?;
    Ok(text)
}

/// The text itself, if it is no longer than 64 KiB; else an error.
pub fn within(text: &str, span: Span) -> Result<&str, Diagnostic> {
    if text.len() <= LONGEST_TEXT {
        return Ok(text);
    }
    Err(Diagnostic::error(Code::BadExpression, span, format!("a text of more than {LONGEST_TEXT} bytes"))
        .help("make it shorter; a variable that stands in it several times counts each time"))
}

/// Whether `$left/…` is a path: its value is a text that is no number, or it is `$dir`, also where that is called `100`.
fn is_directory(left: &Spanned<Expr>, value: &ModelValue) -> bool {
    let dir = matches!(&left.node, Expr::Var(v) if v.name == "dir" && v.field.is_none());
    matches!(value, ModelValue::Text(_)) && (dir || value.as_f64().is_none())
        || dir && matches!(value, ModelValue::Int(_))
}

/// Whether what stands behind the `/` can be the name of a directory as it was written: a variable, or digits without a unit.
fn is_part_of_path(right: &Spanned<Expr>, value: &ModelValue) -> bool {
    match &right.node {
        Expr::Var(_) => matches!(value, ModelValue::Text(_) | ModelValue::Int(_) | ModelValue::Float(_)),
        Expr::Int(n) => n.to_string().len() == (right.span.end - right.span.start) as usize,
        _ => false,
    }
}

fn read(variable: &Variable, at: Span, scope: &dyn Lookup) -> Result<ModelValue, Diagnostic> {
    scope.value_of(variable).unwrap_or_else(|| Err(undefined(variable, at, scope)))
}

/// The field of a random variable that is not written.
pub(super) fn default_field(field: &str) -> ModelValue {
    match field {
        "type" => ModelValue::Text("gamma".into()),
        "randsrc" => ModelValue::Text("rand48".into()),
        "gamma" => ModelValue::Int(1500),
        _ => ModelValue::Int(0),
    }
}

/// The error for a variable that nothing sets.
fn undefined(variable: &Variable, span: Span, scope: &dyn Lookup) -> Diagnostic {
    let found = Diagnostic::error(Code::UndefinedVariable, span, format!("nothing sets `{}`", show(variable)));
    match scope.near(&variable.name) {
        Some(near) => found.help(format!("did you mean `${near}`?")),
        None => found.help(format!("set it before the run: `set ${} = …`, or `--set {0}=…`", variable.name)),
    }
}

/// The variable as it was written.
pub fn show(variable: &Variable) -> String {
    crate::syntax::print::variable(variable)
}

fn arithmetic(left: &ModelValue, op: Operator, right: &ModelValue, span: Span) -> Result<ModelValue, Diagnostic> {
    let bad = |what: String| Diagnostic::error(Code::BadExpression, span, what);
    let by_zero = || bad(format!("{} divided by 0", left.print())).help("give the divisor another value than 0");
    if let (ModelValue::Int(a), ModelValue::Int(b)) = (left, right) {
        let whole = match op {
            Operator::Add => a.checked_add(*b),
            Operator::Subtract => a.checked_sub(*b),
            Operator::Multiply => a.checked_mul(*b),
            Operator::Divide if *b == 0 => return Err(by_zero()),
            Operator::Divide => a.checked_div(*b),
        };
        return whole
            .map(ModelValue::Int)
            .ok_or_else(|| bad("the result does not fit 64 bits".to_owned()).help("use smaller numbers"));
    }
    let (Some(a), Some(b)) = (left.as_f64(), right.as_f64()) else {
        let odd = if left.as_f64().is_none() { left } else { right };
        let help = match left {
            ModelValue::Text(_) => "both sides must be numbers; put a path or name in quotes: `\"$dir/01\"`",
            _ => "both sides must be numbers",
        };
        return Err(bad(format!("arithmetic with {}", odd.kind())).help(help));
    };
    let value = match op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 => return Err(by_zero()),
        Operator::Divide => a / b,
    };
    if value.is_finite() {
        Ok(ModelValue::Float(value))
    } else {
        Err(bad("the result is no finite number".to_owned()).help("use smaller numbers"))
    }
}

/// Calls `each` with every variable that an expression reads.
pub fn variables<'a>(expr: &'a Spanned<Expr>, each: &mut dyn FnMut(&'a Variable, Span)) {
    match &expr.node {
        Expr::Var(v) => each(v, expr.span),
        Expr::Text(parts) => {
            for part in parts {
                if let TextPart::Variable(v) = part {
                    each(&v.node, v.span);
                }
            }
        }
        Expr::Binary(b) => {
            variables(&b.0, each);
            variables(&b.2, each);
        }
        Expr::Random(r) => r.fields.iter().for_each(|(_, e)| variables(e, each)),
        Expr::Table(rows) => rows.iter().flatten().for_each(|e| variables(e, each)),
        _ => {}
    }
}
