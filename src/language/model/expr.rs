//! Expressions, the right sides of `=`, and their evaluation.
//!
//! Variables are bound late: definitions keep expressions. `load x; set $n=5; run` uses 5, because `$n` is read when
//! the run starts.
//!
//! An expression is a tree of at most two levels, so that its evaluation needs little stack. [`Scope`](super::Scope)
//! resolves variables that refer to variables, without recursion, and caches their values.

use super::ModelValue;
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{self, Number, Operator, TextPart, Variable};
use std::sync::Arc;

/// How the quotient of two whole numbers is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// As a whole number, for readers of whole numbers, sizes and texts, as in Filebench.
    Whole,
    /// With its fraction, for readers of a rate, a weight or a time. This holds for all variables on the way: half a
    /// request a second, computed as a whole number, would be none.
    Exact,
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number; sizes in bytes.
    Int(i64),
    /// A number with a decimal point.
    Float(f64),
    /// A word, or a string with variables in it.
    Text(Vec<TextPart>),
    Var(Variable),
    /// `left op right`.
    Binary(Box<(Spanned<Expr>, Operator, Spanned<Expr>)>),
    /// `randvar(…)` or `cvar(…)`.
    Random(Arc<RandomExpr>),
    /// Rows of numbers.
    Table(Vec<Vec<Spanned<Expr>>>),
    /// The two values of an expression that was evaluated early: in whole numbers, and exactly.
    Evaluated(Box<[Spanned<Expr>; 2]>),
}

/// The two kinds of random variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomCall {
    /// `randvar(…)` and `define randvar`.
    Randvar,
    /// `cvar(…)`.
    Cvar,
}

/// A random variable whose parameters are expressions.
#[derive(Clone, PartialEq, Debug)]
pub struct RandomExpr {
    /// The kind.
    pub call: RandomCall,
    /// The place of the call or definition.
    pub span: Span,
    /// `type=…`, `mean=…` and others, in source order. The last one of a name counts.
    pub fields: Vec<(Spanned<String>, Spanned<Expr>)>,
    /// The positions of those that are read when the `set` executes, if their variables are set then.
    pub early: Vec<usize>,
}

impl RandomExpr {
    /// The last parameter of that name.
    pub fn field(&self, name: &str) -> Option<&Spanned<Expr>> {
        self.fields.iter().rev().find(|(n, _)| n.node == name).map(|(_, e)| e)
    }

    /// The text that `echo` prints for it, in Filebench's words.
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

/// Resolves variables to their values.
pub trait Lookup {
    /// Returns the value of a variable, or of its field. `None` if the variable is undefined.
    fn value_of(&self, variable: &Variable, arithmetic: Arithmetic) -> Option<Result<ModelValue, Diagnostic>>;
    /// Whether `${name}` is an internal value, which takes precedence over a variable of that name.
    fn is_internal(&self, name: &str) -> bool;
    /// Returns the defined name that is nearest to an undefined one.
    fn near(&self, name: &str) -> Option<String>;
    /// Charges `bytes` of built text to the evaluation budget. Returns an error once the budget is exhausted.
    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic>;
}

/// Returns the text of a string without variables. `None` if it has variables.
pub fn plain_text(parts: &[TextPart]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            TextPart::Text(text) => Some(text.as_str()),
            TextPart::Variable(_) => None,
        })
        .collect()
}

/// Converts a value of the tree to an expression. The arguments of `randvar(…)` are checked elsewhere (`build`).
pub fn from_ast(value: &Spanned<ast::Value>) -> Spanned<Expr> {
    let expr = match &value.node {
        ast::Value::Word(word) => match word.as_str() {
            "true" => Expr::Bool(true),
            "false" => Expr::Bool(false),
            _ => Expr::Text(vec![TextPart::Text(word.clone())]),
        },
        ast::Value::Number(number) => match number.plain() {
            Number::Int(n) => Expr::Int(n),
            number => Expr::Float(number.as_f64()),
        },
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
            Expr::Random(Arc::new(RandomExpr { call, span: value.span, fields, early: Vec::new() }))
        }
        ast::Value::Table(rows) => {
            Expr::Table(rows.iter().map(|row| row.node.iter().map(from_ast).collect()).collect())
        }
    };
    Spanned::new(expr, value.span)
}

/// Bytes of the longest text that an expression may have as its value.
pub(crate) const LONGEST_TEXT: usize = 64 << 10;

/// Evaluates an expression with the current values of variables, in whole numbers.
pub fn eval(expr: &Spanned<Expr>, scope: &dyn Lookup) -> Result<ModelValue, Diagnostic> {
    eval_in(expr, Arithmetic::Whole, scope)
}

/// The same for a reader of a fraction.
pub fn eval_exact(expr: &Spanned<Expr>, scope: &dyn Lookup) -> Result<ModelValue, Diagnostic> {
    eval_in(expr, Arithmetic::Exact, scope)
}

/// Evaluates an expression with the current values of variables.
pub(super) fn eval_in(
    expr: &Spanned<Expr>,
    arithmetic: Arithmetic,
    scope: &dyn Lookup,
) -> Result<ModelValue, Diagnostic> {
    Ok(match &expr.node {
        Expr::Bool(b) => ModelValue::Bool(*b),
        Expr::Int(n) => ModelValue::Int(*n),
        Expr::Float(x) => ModelValue::Float(*x),
        Expr::Random(r) => ModelValue::Random(r.clone()),
        Expr::Text(parts) => ModelValue::Text(match parts.as_slice() {
            [TextPart::Text(text)] => check_length(text, expr.span)?.into(),
            parts => joined(parts, expr.span, arithmetic, scope)?.into(),
        }),
        Expr::Var(v) => read(v, expr.span, arithmetic, scope)?,
        Expr::Binary(b) => {
            let (left, op, right) = &**b;
            let (one, other) = (eval_in(left, arithmetic, scope)?, eval_in(right, arithmetic, scope)?);
            if *op == Operator::Divide && is_directory(left, &one) && is_part_of_path(right, &other) {
                ModelValue::Text(check_length(&format!("{}/{}", one.print(), other.print()), expr.span)?.into())
            } else {
                compute(&one, *op, &other, arithmetic, expr.span)?
            }
        }
        Expr::Table(rows) => {
            let mut table = Vec::new();
            for row in rows {
                let mut cells = Vec::new();
                for cell in row {
                    let value = eval_in(cell, arithmetic, scope)?;
                    cells.push(value.as_f64().ok_or_else(|| {
                        Diagnostic::error(Code::WrongType, cell.span, format!("a cell of a table is {}", value.kind()))
                            .help("write numbers: `{per cent, low, high}`")
                    })?);
                }
                table.push(cells);
            }
            ModelValue::Table(table.into())
        }
        Expr::Evaluated(values) => eval_in(&values[usize::from(arithmetic == Arithmetic::Exact)], arithmetic, scope)?,
    })
}

/// Builds the text of a string from its parts and the values of its variables.
fn joined(parts: &[TextPart], span: Span, arithmetic: Arithmetic, scope: &dyn Lookup) -> Result<String, Diagnostic> {
    let mut text = String::new();
    for part in parts {
        match part {
            TextPart::Text(t) => text.push_str(t),
            TextPart::Variable(v) => text.push_str(&inserted(&v.node, v.span, arithmetic, scope)?),
        }
        check_length(&text, span)?;
    }
    scope.spend(text.len(), span)?;
    Ok(text)
}

/// Returns the text if it has at most 64 KiB, else an error.
pub fn check_length(text: &str, span: Span) -> Result<&str, Diagnostic> {
    if text.len() <= LONGEST_TEXT {
        return Ok(text);
    }
    Err(Diagnostic::error(Code::BadExpression, span, format!("a text of more than {LONGEST_TEXT} bytes"))
        .help("make it shorter; each use of a variable in it counts"))
}

/// Whether `$left/…` is a path: the value is a text that is not a number, or the variable is `$dir`, even with the
/// value `100`.
fn is_directory(left: &Spanned<Expr>, value: &ModelValue) -> bool {
    let dir = matches!(&left.node, Expr::Var(v) if v.name == "dir" && v.field.is_none());
    matches!(value, ModelValue::Text(_)) && (dir || value.as_f64().is_none())
        || dir && matches!(value, ModelValue::Int(_))
}

/// Whether the right side of a `/` can be the name of a directory: a variable, or digits without a unit.
fn is_part_of_path(right: &Spanned<Expr>, value: &ModelValue) -> bool {
    match &right.node {
        Expr::Var(_) => matches!(value, ModelValue::Text(_) | ModelValue::Int(_) | ModelValue::Float(_)),
        Expr::Int(n) => n.to_string().len() == (right.span.end - right.span.start) as usize,
        _ => false,
    }
}

/// The text that a variable in a string stands for. Only random variables have fields: after the value of another
/// variable `.min` is text, as in Filebench, so that `"$name.min"` is a name.
fn inserted(variable: &Variable, at: Span, arithmetic: Arithmetic, scope: &dyn Lookup) -> Result<String, Diagnostic> {
    if let Some(field) = &variable.field {
        match scope.value_of(&Variable { field: None, ..variable.clone() }, arithmetic) {
            None | Some(Ok(ModelValue::Random(_))) => {}
            Some(value) => return Ok(format!("{}.{field}", value?.print())),
        }
    }
    Ok(read(variable, at, arithmetic, scope)?.print())
}

fn read(variable: &Variable, at: Span, arithmetic: Arithmetic, scope: &dyn Lookup) -> Result<ModelValue, Diagnostic> {
    // The variable may be right: the error is where its field is used.
    if variable.field.is_some()
        && let Some(Ok(value)) = scope.value_of(&Variable { field: None, ..variable.clone() }, arithmetic)
        && !matches!(value, ModelValue::Random(_))
    {
        return Err(without_fields(variable, &value, at));
    }
    scope.value_of(variable, arithmetic).unwrap_or_else(|| Err(undefined(variable, at, scope)))
}

/// The default of a random variable's field.
pub(super) fn default_field(field: &str) -> ModelValue {
    match field {
        "type" => ModelValue::Text("gamma".into()),
        "randsrc" => ModelValue::Text("rand48".into()),
        "gamma" => ModelValue::Int(1500),
        _ => ModelValue::Int(0),
    }
}

/// Returns the error for a field of a variable whose value is not a random variable.
pub(super) fn without_fields(variable: &Variable, value: &ModelValue, at: Span) -> Diagnostic {
    let message = format!("`{}`: `${}` is {}, which has no fields", show(variable), variable.name, value.kind());
    Diagnostic::error(Code::WrongType, at, message)
        .help("only random variables have `.mean`, `.min`, `.type` and so on")
}

/// Returns the error for an undefined variable.
fn undefined(variable: &Variable, span: Span, scope: &dyn Lookup) -> Diagnostic {
    let found = Diagnostic::error(Code::UndefinedVariable, span, format!("nothing sets `{}`", show(variable)));
    match scope.near(&variable.name) {
        Some(near) => found.help(format!("did you mean `${near}`?")),
        None => found.help(format!("set it before the run: `set ${} = …`, or `--set {0}=…`", variable.name)),
    }
}

/// Prints a variable as a script has it.
pub fn show(variable: &Variable) -> String {
    crate::syntax::print::variable(variable)
}

/// Computes the value of `left op right`.
fn compute(
    left: &ModelValue,
    op: Operator,
    right: &ModelValue,
    arithmetic: Arithmetic,
    span: Span,
) -> Result<ModelValue, Diagnostic> {
    let bad = |what: String| Diagnostic::error(Code::BadExpression, span, what);
    let by_zero = || bad(format!("{} divided by 0", left.print())).help("give the divisor another value than 0");
    let has_fraction = |a: i64, b: i64| a.checked_rem(b).is_some_and(|rest| rest != 0);
    if let (ModelValue::Int(a), ModelValue::Int(b)) = (left, right)
        && !(op == Operator::Divide && arithmetic == Arithmetic::Exact && has_fraction(*a, *b))
    {
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
        Err(bad("the result is not a finite number".to_owned()).help("use smaller numbers"))
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
        // Of an evaluated expression, constants are left.
        _ => {}
    }
}

/// Whether an expression itself reads neither the environment nor internal values.
pub fn has_plain_variables(expr: &Spanned<Expr>) -> bool {
    let mut are_plain = true;
    variables(expr, &mut |variable, _| are_plain &= variable.form == ast::VariableForm::Plain);
    are_plain
}

/// Returns the random variable of a `define randvar`.
pub fn randvar(span: Span, fields: Vec<(Spanned<String>, Spanned<Expr>)>) -> Expr {
    Expr::Random(Arc::new(RandomExpr { call: RandomCall::Randvar, span, fields, early: Vec::new() }))
}
