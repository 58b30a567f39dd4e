//! Expressions: what stands on the right of `=`, kept until a run starts, and what it is worth then.
//!
//! Late binding: a definition keeps expressions. `load x; set $n=5; run` uses 5, because `$n` is read when the run starts.

use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{self, Number, Operator, TextPart, Variable, VariableForm};
use std::sync::Arc;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number; sizes in bytes.
    Int(u64),
    /// A fraction.
    Float(f64),
    /// A number with a minus sign.
    Negative(u64),
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
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// A fraction.
    Float(f64),
    /// A number below zero, without its sign.
    Negative(u64),
    /// Text.
    Text(String),
    /// A random variable.
    Random(Arc<RandomExpr>),
    /// Rows of numbers.
    Table(Vec<Vec<f64>>),
}

impl Value {
    /// As `echo` prints it.
    pub fn print(&self) -> String {
        match self {
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Negative(n) => format!("-{n}"),
            Self::Text(s) => s.clone(),
            Self::Random(r) => r.describe(),
            Self::Table(rows) => format!("table of {} rows", rows.len()),
        }
    }

    /// What kind of value it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a switch",
            Self::Int(_) | Self::Negative(_) => "a number",
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
            Self::Negative(n) => Some(-(*n as f64)),
            Self::Text(s) => s.trim().parse().ok().filter(|x: &f64| x.is_finite()),
            _ => None,
        }
    }
}

/// Who knows what a variable is.
pub trait Lookup {
    /// Its expression and where that was written; `None` if nothing sets it.
    fn variable(&self, variable: &Variable) -> Option<Spanned<Expr>>;
    /// The names that there are, for near misses.
    fn names(&self) -> Vec<String>;
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
        ast::Value::Number(Number::Negative(n)) => Expr::Negative(*n),
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

/// How deep variables may refer to variables; more is a circle.
const MAX_DEPTH: u32 = 64;

/// What `expr` is worth now.
pub fn eval(expr: &Spanned<Expr>, scope: &dyn Lookup) -> Result<Value, Diagnostic> {
    eval_at(expr, scope, 0)
}

fn eval_at(expr: &Spanned<Expr>, scope: &dyn Lookup, depth: u32) -> Result<Value, Diagnostic> {
    Ok(match &expr.node {
        Expr::Bool(b) => Value::Bool(*b),
        Expr::Int(n) => Value::Int(*n),
        Expr::Float(x) => Value::Float(*x),
        Expr::Negative(n) => Value::Negative(*n),
        Expr::Random(r) => Value::Random(r.clone()),
        Expr::Text(parts) => {
            let mut text = String::new();
            for part in parts {
                match part {
                    TextPart::Text(t) => text.push_str(t),
                    TextPart::Variable(v) => text.push_str(&read(v, expr.span, scope, depth)?.print()),
                }
            }
            Value::Text(text)
        }
        Expr::Var(v) => read(&Spanned::new(v.clone(), expr.span), expr.span, scope, depth)?,
        Expr::Binary(b) => {
            let (left, op, right) = &**b;
            let (one, other) = (eval_at(left, scope, depth)?, eval_at(right, scope, depth)?);
            if *op == Operator::Divide && is_directory(left, &one) && is_part_of_path(right, &other) {
                Value::Text(format!("{}/{}", one.print(), other.print()))
            } else {
                arithmetic(&one, *op, &other, expr.span)?
            }
        }
        Expr::Table(rows) => {
            let mut table = Vec::new();
            for row in rows {
                let mut cells = Vec::new();
                for cell in row {
                    let value = eval_at(cell, scope, depth)?;
                    cells.push(value.as_f64().ok_or_else(|| {
                        Diagnostic::error(Code::WrongType, cell.span, format!("a cell of a table is {}", value.kind()))
                            .help("write numbers: `{per cent, low, high}`")
                    })?);
                }
                table.push(cells);
            }
            Value::Table(table)
        }
    })
}

/// Whether `$left/…` is a path: its value is a text that is no number, or it is `$dir`, also where that is called `100`.
fn is_directory(left: &Spanned<Expr>, value: &Value) -> bool {
    let dir = matches!(&left.node, Expr::Var(v) if v.name == "dir" && v.field.is_none());
    matches!(value, Value::Text(_)) && (dir || value.as_f64().is_none()) || dir && matches!(value, Value::Int(_))
}

/// Whether what stands behind the `/` can be the name of a directory as it was written: a variable, or digits without a unit.
fn is_part_of_path(right: &Spanned<Expr>, value: &Value) -> bool {
    match &right.node {
        Expr::Var(_) => matches!(value, Value::Text(_) | Value::Int(_) | Value::Float(_)),
        Expr::Int(n) => n.to_string().len() == (right.span.end - right.span.start) as usize,
        _ => false,
    }
}

fn read(variable: &Spanned<Variable>, at: Span, scope: &dyn Lookup, depth: u32) -> Result<Value, Diagnostic> {
    let shown = show(&variable.node);
    if depth > MAX_DEPTH {
        return Err(Diagnostic::error(Code::BadExpression, at, format!("`{shown}` is defined by itself"))
            .help("break the circle: one of the variables needs a plain value"));
    }
    let Some(expr) = scope.variable(&variable.node) else {
        return Err(undefined(&variable.node, variable.span, scope));
    };
    let value = eval_at(&expr, scope, depth + 1)?;
    let Some(field) = &variable.node.field else { return Ok(value) };
    let Value::Random(random) = value else {
        let message = format!("`{shown}`: `${}` is {}, which has no fields", variable.node.name, value.kind());
        return Err(Diagnostic::error(Code::WrongType, variable.span, message)
            .help("only random variables have `.mean`, `.min`, `.type` and so on"));
    };
    match random.field(field) {
        Some(e) => eval_at(e, scope, depth + 1),
        None => Ok(match field.as_str() {
            "type" => Value::Text("gamma".to_owned()),
            "randsrc" => Value::Text("rand48".to_owned()),
            "gamma" => Value::Int(1500),
            _ => Value::Int(0),
        }),
    }
}

/// The error for a variable that nothing sets.
pub fn undefined(variable: &Variable, span: Span, scope: &dyn Lookup) -> Diagnostic {
    let names = scope.names();
    let found = Diagnostic::error(Code::UndefinedVariable, span, format!("nothing sets `{}`", show(variable)))
        .near_variable(&variable.name, names.iter().map(String::as_str));
    if found.help.is_empty() {
        found.help(format!("set it before the run: `set ${} = …`, or `--set {0}=…`", variable.name))
    } else {
        found
    }
}

/// The variable as it was written.
pub fn show(variable: &Variable) -> String {
    let name = &variable.name;
    match (variable.form, &variable.field) {
        (VariableForm::Plain, Some(field)) => format!("${name}.{field}"),
        (VariableForm::Plain, None) => format!("${name}"),
        (VariableForm::Paren, _) => format!("$({name})"),
        (VariableForm::Brace, _) => format!("${{{name}}}"),
    }
}

fn arithmetic(left: &Value, op: Operator, right: &Value, span: Span) -> Result<Value, Diagnostic> {
    let bad = |what: String| Diagnostic::error(Code::BadExpression, span, what);
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let (a, b) = (*a, *b);
        let whole = match op {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => match a.checked_sub(b) {
                Some(n) => Some(n),
                None => return Ok(Value::Negative(b - a)),
            },
            Operator::Multiply => a.checked_mul(b),
            Operator::Divide if b == 0 => {
                return Err(bad(format!("{a} divided by 0")).help("give the divisor another value than 0"));
            }
            Operator::Divide => Some(a / b),
        };
        return whole
            .map(Value::Int)
            .ok_or_else(|| bad("the result is larger than 2^64".to_owned()).help("use smaller numbers"));
    }
    let (Some(a), Some(b)) = (left.as_f64(), right.as_f64()) else {
        let odd = if left.as_f64().is_none() { left } else { right };
        let help = match left {
            Value::Text(_) => "both sides must be numbers; a path or name stands in quotes: `\"$dir/01\"`",
            _ => "both sides must be numbers",
        };
        return Err(bad(format!("arithmetic with {}", odd.kind())).help(help));
    };
    Ok(Value::Float(match op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 => {
            return Err(bad(format!("{a} divided by 0")).help("give the divisor another value than 0"));
        }
        Operator::Divide => a / b,
    }))
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
