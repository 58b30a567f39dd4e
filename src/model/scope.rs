//! The variables of a session: what sets them, and what they are worth when asked.

use super::expr::{self, Expr, Lookup, RandomCall, RandomExpr, Value};
use crate::diag::Diagnostic;
use crate::source::{Span, Spanned};
use crate::syntax::ast::{TextPart, Variable, VariableForm};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who set a variable; a later one of these wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SetBy {
    /// Predefined.
    Default,
    /// A statement of a text.
    Script,
    /// A statement typed at a prompt, until a text sets the variable again.
    Prompt,
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
    /// What others set it to, over whom `by` won.
    beneath: BTreeMap<SetBy, Spanned<Expr>>,
}

impl Binding {
    /// What the variable is without the prompt's and the command line's word; `None` if it is none then.
    pub fn without_setting(&self) -> Option<&Spanned<Expr>> {
        if self.by <= SetBy::Script {
            Some(&self.value)
        } else {
            self.beneath.range(..=SetBy::Script).last().map(|(_, v)| v)
        }
    }

    fn set(&mut self, value: Spanned<Expr>, by: SetBy) {
        if by == SetBy::Script {
            self.beneath.remove(&SetBy::Prompt);
            if self.by == SetBy::Prompt {
                (self.value, self.by) = (value, by);
                return;
            }
        }
        if by >= self.by {
            let (was, whose) = (std::mem::replace(&mut self.value, value), std::mem::replace(&mut self.by, by));
            if whose != by {
                self.beneath.insert(whose, was);
            }
        } else {
            self.beneath.insert(by, value);
        }
    }
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
            Some(old) => old.set(value, by),
            None => self.bindings.push(Binding { name: name.to_owned(), value, by, beneath: BTreeMap::new() }),
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

    /// Takes back the last word on a variable; one of which nothing else is known is forgotten. `None` if there is no such
    /// variable, else what it is now.
    pub fn unset(&mut self, name: &str) -> Option<Option<&Binding>> {
        let at = self.bindings.iter().position(|b| b.name == name)?;
        match self.bindings[at].beneath.pop_last() {
            Some((by, value)) => {
                (self.bindings[at].value, self.bindings[at].by) = (value, by);
                Some(self.bindings.get(at))
            }
            None => {
                self.bindings.remove(at);
                Some(None)
            }
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(scope: &mut Scope, n: u64, by: SetBy) {
        scope.set("x", Spanned::new(Expr::Int(n), Span::default()), by).unwrap();
    }

    fn now(scope: &Scope) -> (Expr, SetBy, Option<Expr>) {
        let b = scope.binding("x").unwrap();
        (b.value.node.clone(), b.by, b.without_setting().map(|v| v.node.clone()))
    }

    #[test]
    fn each_word_on_a_variable_can_be_taken_back() {
        let mut scope = Scope::default();
        set(&mut scope, 1, SetBy::Default);
        set(&mut scope, 2, SetBy::Script);
        set(&mut scope, 3, SetBy::Prompt);
        set(&mut scope, 4, SetBy::Prompt);
        set(&mut scope, 5, SetBy::CommandLine);
        assert_eq!(now(&scope), (Expr::Int(5), SetBy::CommandLine, Some(Expr::Int(2))));
        scope.unset("x").unwrap();
        assert_eq!(now(&scope), (Expr::Int(4), SetBy::Prompt, Some(Expr::Int(2))));
        scope.unset("x").unwrap();
        scope.unset("x").unwrap();
        assert_eq!(now(&scope).0, Expr::Int(1));
        assert!(scope.unset("x").unwrap().is_none());
        assert!(scope.unset("x").is_none());
    }

    #[test]
    fn a_text_wins_over_the_prompt_and_the_command_line_over_both() {
        let mut scope = Scope::default();
        set(&mut scope, 1, SetBy::Prompt);
        set(&mut scope, 2, SetBy::Script);
        assert_eq!(now(&scope), (Expr::Int(2), SetBy::Script, Some(Expr::Int(2))));
        set(&mut scope, 3, SetBy::CommandLine);
        set(&mut scope, 4, SetBy::Prompt);
        set(&mut scope, 5, SetBy::Script);
        assert_eq!(now(&scope), (Expr::Int(3), SetBy::CommandLine, Some(Expr::Int(5))));
        scope.unset("x").unwrap();
        assert_eq!(now(&scope).0, Expr::Int(5));
    }
}
