//! The variables of a session: what sets them, and what they are worth when asked.

use super::expr::{self, Expr, Lookup, RandomCall, RandomExpr, Value};
use crate::diag::Diagnostic;
use crate::source::{Span, Spanned};
use crate::syntax::ast::{TextPart, Variable, VariableForm};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who set a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetBy {
    /// Predefined.
    Default,
    /// A statement.
    Script,
    /// `--set` or `--dir`: wins over every statement.
    CommandLine,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its name, without `$`.
    pub name: String,
    /// What it was set to.
    pub value: Spanned<Expr>,
    /// By whom.
    pub by: SetBy,
    /// What the script said before the command line won, if it did.
    pub overridden: Option<Spanned<Expr>>,
}

/// All variables of a session.
#[derive(Clone, Default, Debug)]
pub struct Scope {
    bindings: Vec<Binding>,
    /// `${rate}`, `${stats.iocount}` and the like.
    internal: BTreeMap<String, String>,
}

impl Scope {
    /// A variable's binding.
    pub fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().find(|b| b.name == name)
    }

    /// All of them, in the order of their first setting.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// `set $name = value`. A value that mentions its own variable takes what that is worth now.
    pub fn set(&mut self, name: &str, value: Spanned<Expr>, by: SetBy) -> Result<(), Diagnostic> {
        let mut own = false;
        expr::variables(&value, &mut |v, _| own |= v.name == name);
        let value = if own { Spanned::new(literal(expr::eval(&value, self)?), value.span) } else { value };
        match self.bindings.iter_mut().find(|b| b.name == name) {
            Some(old) if old.by == SetBy::CommandLine && by != SetBy::CommandLine => old.overridden = Some(value),
            Some(old) => (old.value, old.by) = (value, by),
            None => self.bindings.push(Binding { name: name.to_owned(), value, by, overridden: None }),
        }
        Ok(())
    }

    /// `set $name.field = value` of a random variable. False if the variable is none.
    pub fn set_field(&mut self, name: &str, field: Spanned<String>, value: Spanned<Expr>) -> bool {
        let Some(binding) = self.bindings.iter_mut().find(|b| b.name == name) else { return false };
        let Expr::Random(random) = &mut binding.value.node else { return false };
        let random: &mut RandomExpr = Arc::make_mut(random);
        random.fields.retain(|(n, _)| n.node != field.node);
        random.fields.push((field, value));
        true
    }

    /// Forgets a variable. False if there is none.
    pub fn unset(&mut self, name: &str) -> bool {
        let before = self.bindings.len();
        self.bindings.retain(|b| b.name != name);
        before != self.bindings.len()
    }

    /// Sets an internal value, such as `rate`.
    pub fn set_internal(&mut self, name: &str, value: String) {
        self.internal.insert(name.to_owned(), value);
    }

    /// What a variable is worth, by its plain name.
    pub fn value(&self, name: &str) -> Option<Result<Value, Diagnostic>> {
        self.binding(name).map(|b| expr::eval(&b.value, self))
    }
}

impl Lookup for Scope {
    fn variable(&self, variable: &Variable) -> Option<Spanned<Expr>> {
        let plain = || self.binding(&variable.name).map(|b| b.value.clone());
        let text = |s: String| Spanned::new(Expr::Text(vec![TextPart::Text(s)]), Span::default());
        match variable.form {
            VariableForm::Plain => plain(),
            VariableForm::Paren => plain().or_else(|| std::env::var(&variable.name).ok().map(text)),
            VariableForm::Brace => self.internal.get(&variable.name).cloned().map(text).or_else(plain),
        }
    }

    fn names(&self) -> Vec<String> {
        self.bindings.iter().map(|b| b.name.clone()).collect()
    }
}

/// Local variables of a composite flowop over the variables around them.
#[derive(Debug)]
pub struct Locals<'a> {
    /// Name and worth, as given at the use.
    pub values: Vec<(String, Spanned<Expr>)>,
    /// What is not local.
    pub outer: &'a dyn LookupDebug,
}

/// A [`Lookup`] that can be printed.
pub trait LookupDebug: Lookup + std::fmt::Debug {}
impl<T: Lookup + std::fmt::Debug> LookupDebug for T {}

impl Lookup for Locals<'_> {
    fn variable(&self, variable: &Variable) -> Option<Spanned<Expr>> {
        let local = self.values.iter().find(|(n, _)| *n == variable.name && variable.form == VariableForm::Plain);
        local.map(|(_, e)| e.clone()).or_else(|| self.outer.variable(variable))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.iter().map(|(n, _)| n.clone()).collect();
        names.extend(self.outer.names());
        names
    }
}

/// The expression that is worth just this.
pub fn literal(value: Value) -> Expr {
    match value {
        Value::Bool(b) => Expr::Bool(b),
        Value::Int(n) => Expr::Int(n),
        Value::Float(x) => Expr::Float(x),
        Value::Negative(n) => Expr::Negative(n),
        Value::Text(s) => Expr::Text(vec![TextPart::Text(s)]),
        Value::Random(r) => Expr::Random(r),
        Value::Table(rows) => Expr::Table(
            rows.iter().map(|r| r.iter().map(|x| Spanned::new(Expr::Float(*x), Span::default())).collect()).collect(),
        ),
    }
}

/// An empty random variable for `define randvar`.
pub fn randvar(span: Span, fields: Vec<(Spanned<String>, Spanned<Expr>)>) -> Expr {
    Expr::Random(Arc::new(RandomExpr { call: RandomCall::Randvar, span, fields }))
}
