//! The variables of a session: their settings and their values.
//!
//! A chain of variables is evaluated once, however often its end is read: `known` keeps the values, and what the
//! evaluation costs.

use super::ModelValue;
use super::expr::{self, Arithmetic, Expr, Lookup, RandomExpr};
use super::known::{KnownValue, KnownValues};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{TextPart, Variable, VariableForm};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use wml_text::secrets;

/// The origin of a setting. A later one of these takes precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SetBy {
    /// Predefined.
    Default,
    /// A statement of a text.
    Script,
    /// A statement typed at a prompt, until a text sets the variable again.
    Prompt,
    /// `--set` or `--dir`, which take precedence over every statement.
    CommandLine,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its name, without `$`.
    pub name: String,
    /// The setting that counts.
    pub value: Spanned<Expr>,
    /// The origin of that setting.
    pub by: SetBy,
    /// Settings of other origins, over which `by` takes precedence.
    overridden: BTreeMap<SetBy, Spanned<Expr>>,
}

impl Binding {
    /// The setting without those of the prompt and the command line. `None` if there is no other.
    pub fn without_setting(&self) -> Option<&Spanned<Expr>> {
        if self.by <= SetBy::Script {
            Some(&self.value)
        } else {
            self.overridden.range(..=SetBy::Script).last().map(|(_, v)| v)
        }
    }

    fn set(&mut self, value: Spanned<Expr>, by: SetBy) {
        if by == SetBy::Script {
            self.overridden.remove(&SetBy::Prompt);
            if self.by == SetBy::Prompt {
                (self.value, self.by) = (value, by);
                return;
            }
        }
        if by >= self.by {
            let (old, origin) = (std::mem::replace(&mut self.value, value), std::mem::replace(&mut self.by, by));
            if origin != by {
                self.overridden.insert(origin, old);
            }
        } else {
            self.overridden.insert(by, value);
        }
    }
}

/// What became of a variable whose setting was to be removed.
#[derive(Clone, Copy, Debug)]
pub enum Unset<'a> {
    /// There is no such variable.
    Unknown,
    /// It had no other setting, and is removed.
    Removed,
    /// Another setting counts again.
    Restored(&'a Binding),
}

/// All variables of a session.
#[derive(Clone, Default, Debug)]
pub struct Scope {
    /// In the order of their first setting.
    bindings: BTreeMap<u64, Binding>,
    /// The position of each name in that order. An index map stores the hashes: growing to 800,000 names rehashes no
    /// name.
    order: IndexMap<String, u64>,
    next: u64,
    /// `${rate}`, `${stats.iocount}` and the like.
    internal: BTreeMap<String, String>,
    /// Values of predefined variables, which count until a setting replaces them.
    predefined: BTreeMap<String, ModelValue>,
    values: RefCell<KnownValues>,
    /// Variables of the environment that were read, with their values.
    environment: RefCell<BTreeMap<String, String>>,
    /// Variables that were once set to a value from the environment, which their expressions no longer show.
    of_environment: HashSet<String>,
    /// The places of expressions that were replaced by their values, and where each value was set. `None`: by several
    /// settings.
    fixed: HashMap<Span, Option<(Span, SetBy)>>,
}

impl Scope {
    /// The binding of a variable.
    pub fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(self.order.get(name)?)
    }

    fn binding_mut(&mut self, name: &str) -> Option<&mut Binding> {
        self.bindings.get_mut(self.order.get(name)?)
    }

    /// All bindings, in the order of their first setting.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.values()
    }

    /// Sets a variable. A value that refers to the variable itself is evaluated first. An error is one of that
    /// evaluation.
    pub fn set(&mut self, name: &str, value: Spanned<Expr>, by: SetBy) -> Result<(), Diagnostic> {
        let mut own = false;
        expr::variables(&value, &mut |v, _| own |= v.name == name);
        let value = if own {
            let now = constant(&value, self)?;
            if self.reads_environment(&value) {
                self.note_environment(name);
            }
            Spanned::new(now, value.span)
        } else {
            value
        };
        self.values.get_mut().forget(name);
        if let Some(old) = self.binding_mut(name) {
            old.set(value, by);
        } else {
            self.bindings.insert(self.next, Binding { name: name.to_owned(), value, by, overridden: BTreeMap::new() });
            self.order.insert(name.to_owned(), self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// Sets a field of a random variable. Returns false if the variable is not one.
    pub fn set_field(&mut self, name: &str, field: Spanned<String>, value: Spanned<Expr>) -> bool {
        self.values.get_mut().forget(name);
        let Some(binding) = self.binding_mut(name) else { return false };
        let Expr::Random(random) = &mut binding.value.node else { return false };
        let random: &mut RandomExpr = Arc::make_mut(random);
        random.fields.retain(|(n, _)| n.node != field.node);
        random.fields.push((field, value));
        true
    }

    /// Removes the setting of a variable that counts; a variable without another one is removed.
    pub fn unset(&mut self, name: &str) -> Unset<'_> {
        let Some(at) = self.order.get(name).copied() else { return Unset::Unknown };
        self.values.get_mut().forget(name);
        let Some(binding) = self.bindings.get_mut(&at) else { return Unset::Unknown };
        if let Some((by, value)) = binding.overridden.pop_last() {
            (binding.value, binding.by) = (value, by);
        } else {
            self.bindings.remove(&at);
            self.order.swap_remove(name);
        }
        self.bindings.get(&at).map_or(Unset::Removed, Unset::Restored)
    }

    /// Sets an internal value, such as `rate`.
    pub fn set_internal(&mut self, name: &str, value: String) {
        self.values.get_mut().forget(name);
        self.internal.insert(name.to_owned(), value);
    }

    /// True if a variable is an internal value, such as `${rate}`, and not one of the script.
    pub fn is_of_program(&self, variable: &Variable) -> bool {
        variable.form == VariableForm::Brace && self.internal.contains_key(&variable.name)
    }

    /// Predefines a variable with a value, which counts until a setting replaces it.
    pub fn predefine(&mut self, name: &str, value: ModelValue) {
        self.values.get_mut().forget(name);
        self.predefined.insert(name.to_owned(), value);
    }

    /// The value of a predefined variable.
    pub fn predefined(&self, name: &str) -> Option<&ModelValue> {
        self.predefined.get(name)
    }

    /// The names of all variables with a value, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let free = self.predefined.keys().filter(|name| self.binding(name).is_none());
        self.bindings().map(|binding| binding.name.as_str()).chain(free.map(String::as_str))
    }

    /// The names of predefined variables that were read and have no setting.
    pub fn predefined_read(&self) -> Vec<String> {
        let values = self.values.borrow();
        let is_read = |name: &String| values.variables().any(|variable| variable.name == *name);
        self.predefined.keys().filter(|name| self.binding(name).is_none() && is_read(name)).cloned().collect()
    }

    /// Returns the value of a variable, by its plain name.
    pub fn value(&self, name: &str) -> Option<Result<ModelValue, Diagnostic>> {
        let variable = Variable { form: VariableForm::Plain, name: name.to_owned(), field: None };
        self.value_of(&variable, Arithmetic::Whole)
    }

    /// The part of the evaluation budget that has been used, in steps and bytes of text.
    pub fn spent(&self) -> u64 {
        self.values.borrow().spent()
    }

    /// Renews the evaluation budget: for each plan, and for each command that does more than define.
    pub fn renew_budget(&mut self) {
        self.values.get_mut().renew_budget();
    }

    fn read_environment(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok()?;
        secrets::note(&value);
        self.environment.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// The variables of the environment that were read, with their values.
    pub fn environment(&self) -> Vec<String> {
        self.environment.borrow().values().cloned().collect()
    }

    /// Records that a variable was set to a value from the environment. The record is kept even if the variable is set
    /// again.
    pub fn note_environment(&mut self, name: &str) {
        self.of_environment.insert(name.to_owned());
    }

    /// Whether an expression that has been evaluated depends on the environment, directly or through variables.
    pub fn reads_environment(&self, expr: &Spanned<Expr>) -> bool {
        if self.environment.borrow().is_empty() {
            return false;
        }
        let made = self.made_of_environment();
        let mut found = false;
        expr::variables(expr, &mut |v, _| found |= self.is_of_environment(v) || made.contains(&v.name));
        found
    }

    /// Records that an expression is replaced by the value that it has now.
    pub(super) fn note_fixed(&mut self, value: &Spanned<Expr>) {
        let mut names = Vec::new();
        expr::variables(value, &mut |v, _| names.push(v.name.as_str()));
        let origin = match names.as_slice() {
            [name] => self.binding(name).map(|binding| (binding.value.span, binding.by)),
            _ => None,
        };
        self.fixed.insert(value.span, origin);
    }

    /// True if the expression at a place was replaced by a value.
    pub(super) fn is_fixed(&self, place: Span) -> bool {
        self.fixed.contains_key(&place)
    }

    /// Returns where that value was set, and by whom. `None` if it was made of several settings.
    pub(super) fn origin_of_fixed(&self, place: Span) -> Option<(Span, SetBy)> {
        self.fixed.get(&place).copied().flatten()
    }

    fn is_of_environment(&self, variable: &Variable) -> bool {
        variable.form == VariableForm::Paren
            && self.binding(&variable.name).is_none()
            && self.environment.borrow().contains_key(&variable.name)
    }

    /// All variables whose values depend on the environment, directly or through other variables.
    pub fn made_of_environment(&self) -> HashSet<String> {
        if self.environment.borrow().is_empty() {
            return HashSet::new();
        }
        let mut made = self.of_environment.clone();
        let mut readers: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for binding in self.bindings() {
            expr::variables(&binding.value, &mut |v, _| {
                if self.is_of_environment(v) {
                    made.insert(binding.name.clone());
                } else {
                    readers.entry(v.name.as_str()).or_default().push(&binding.name);
                }
            });
        }
        let mut new: Vec<String> = made.iter().cloned().collect();
        while let Some(name) = new.pop() {
            for reader in readers.get(name.as_str()).into_iter().flatten() {
                if made.insert((*reader).to_owned()) {
                    new.push((*reader).to_owned());
                }
            }
        }
        made
    }

    /// The expression of a variable, without its field.
    fn expression(&self, variable: &Variable) -> Option<Cow<'_, Spanned<Expr>>> {
        let constant = |value: &ModelValue| Cow::Owned(Spanned::new(literal(value.clone()), Span::default()));
        let predefined = || self.predefined.get(&variable.name).map(constant);
        let bound = || self.binding(&variable.name).map(|b| Cow::Borrowed(&b.value));
        let plain = || bound().or_else(predefined);
        let text = |s: String| Cow::Owned(Spanned::new(Expr::Text(vec![TextPart::Text(s)]), Span::default()));
        match variable.form {
            VariableForm::Plain => plain(),
            VariableForm::Paren => bound().or_else(|| self.read_environment(&variable.name).map(text)),
            VariableForm::Brace => self.internal.get(&variable.name).cloned().map(text).or_else(plain),
        }
    }

    /// Evaluates a variable after those that it depends on. Each is evaluated once, without recursion, so that long
    /// chains need no stack.
    fn resolve(&self, wanted: &Variable, arithmetic: Arithmetic) -> Option<Result<ModelValue, Diagnostic>> {
        let mut path = vec![self.node(wanted)?];
        let mut on_path = HashSet::from([wanted.clone()]);
        while let Some(node) = path.last_mut() {
            if let Some(read) = node.reads.pop() {
                let mut values = self.values.borrow_mut();
                values.note_read(&read.name, &node.variable);
                if values.get(&read, arithmetic).is_some() {
                    continue;
                }
                if let Err(d) = values.step(node.expr.span) {
                    return Some(Err(d));
                }
                drop(values);
                if on_path.contains(&read) {
                    let error = in_circle(&read, node.expr.span);
                    let variable = node.variable.clone();
                    self.values.borrow_mut().keep(variable, arithmetic, Err(Box::new(error)));
                    on_path.remove(&node.variable);
                    path.pop();
                } else if let Some(next) = self.node(&read) {
                    on_path.insert(read);
                    path.push(next);
                }
                continue;
            }
            let value = match &node.field {
                None => expr::eval_in(&node.expr, arithmetic, self).map_err(Box::new),
                Some(field) => match self.field(node, field, arithmetic) {
                    Ok(Field::ModelValue(value)) => Ok(value),
                    Ok(Field::Expression(expr)) => {
                        node.reads = reads(&expr);
                        node.expr = Cow::Owned(expr);
                        node.field = None;
                        continue;
                    }
                    Err(d) => Err(d),
                },
            };
            on_path.remove(&node.variable);
            let variable = node.variable.clone();
            self.values.borrow_mut().keep(variable, arithmetic, value);
            path.pop();
        }
        self.known(wanted, arithmetic).map(|known| known.map_err(|d| *d))
    }

    fn known(&self, variable: &Variable, arithmetic: Arithmetic) -> Option<KnownValue> {
        self.values.borrow().get(variable, arithmetic).cloned()
    }

    fn node(&self, variable: &Variable) -> Option<ScopeNode<'_>> {
        let expr = self.expression(variable)?;
        let (reads, field) = match &variable.field {
            None => (reads(&expr), None),
            Some(field) => (vec![Variable { field: None, ..variable.clone() }], Some(field.clone())),
        };
        Some(ScopeNode { variable: variable.clone(), expr, reads, field })
    }

    /// Returns the field of a node's variable, which has been evaluated.
    fn field(&self, node: &ScopeNode<'_>, field: &str, arithmetic: Arithmetic) -> Result<Field, Box<Diagnostic>> {
        let whole = Variable { field: None, ..node.variable.clone() };
        let known = self.known(&whole, arithmetic);
        match known.unwrap_or_else(|| expr::eval_in(&node.expr, arithmetic, self).map_err(Box::new))? {
            ModelValue::Random(random) => Ok(match random.field(field) {
                Some(expr) => Field::Expression(expr.clone()),
                None => Field::ModelValue(expr::default_field(field)),
            }),
            value => Err(Box::new(expr::without_fields(&node.variable, &value, node.expr.span))),
        }
    }
}

/// A variable that is being evaluated.
struct ScopeNode<'a> {
    variable: Variable,
    expr: Cow<'a, Spanned<Expr>>,
    /// Variables that it depends on and that have not been visited yet.
    reads: Vec<Variable>,
    /// The wanted field, until its expression is known.
    field: Option<String>,
}

enum Field {
    ModelValue(ModelValue),
    Expression(Spanned<Expr>),
}

/// The variables that the value of an expression depends on. Parameters of a random variable are evaluated later.
fn reads(expr: &Spanned<Expr>) -> Vec<Variable> {
    let mut read = Vec::new();
    if !matches!(expr.node, Expr::Random(_)) {
        expr::variables(expr, &mut |v, _| read.push(v.clone()));
    }
    read
}

fn in_circle(variable: &Variable, at: Span) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, at, format!("`{}` is defined by itself", expr::show(variable)))
        .help("break the cycle: one of the variables needs a plain value")
}

impl Lookup for Scope {
    fn value_of(&self, variable: &Variable, arithmetic: Arithmetic) -> Option<Result<ModelValue, Diagnostic>> {
        match self.known(variable, arithmetic) {
            Some(value) => Some(value.map_err(|d| *d)),
            None => self.resolve(variable, arithmetic),
        }
    }

    fn is_internal(&self, name: &str) -> bool {
        self.internal.contains_key(name)
    }

    fn near(&self, name: &str) -> Option<String> {
        let is_allowed = self.values.borrow_mut().search();
        crate::diag::nearest(name, self.names()).filter(|_| is_allowed).map(str::to_owned)
    }

    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic> {
        self.values.borrow_mut().spend(bytes, at)
    }
}

/// Local variables of a composite flowop, in front of those of the enclosing scope. Variables of that scope do not see
/// the local ones.
#[derive(Debug)]
pub struct Locals<'a> {
    /// Names, and values as constants.
    pub values: Vec<(String, Spanned<Expr>)>,
    /// The enclosing scope.
    pub outer: &'a dyn LookupDebug,
}

/// A [`Lookup`] that can be printed.
pub trait LookupDebug: Lookup + std::fmt::Debug {}
impl<T: Lookup + std::fmt::Debug> LookupDebug for T {}

impl Locals<'_> {
    fn local(&self, name: &str) -> Option<&Spanned<Expr>> {
        self.values.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }
}

impl Lookup for Locals<'_> {
    fn value_of(&self, variable: &Variable, arithmetic: Arithmetic) -> Option<Result<ModelValue, Diagnostic>> {
        let hidden = variable.form == VariableForm::Brace && self.is_internal(&variable.name);
        let Some(local) = self.local(&variable.name).filter(|_| !hidden) else {
            return self.outer.value_of(variable, arithmetic);
        };
        let value = expr::eval_in(local, arithmetic, self.outer);
        Some(match (value, &variable.field) {
            (Ok(ModelValue::Random(random)), Some(field)) => match random.field(field) {
                Some(expr) => expr::eval_in(expr, arithmetic, self.outer),
                None => Ok(expr::default_field(field)),
            },
            (Ok(value), Some(_)) => Err(expr::without_fields(variable, &value, Span::default())),
            (value, _) => value,
        })
    }

    fn is_internal(&self, name: &str) -> bool {
        self.outer.is_internal(name)
    }

    fn near(&self, name: &str) -> Option<String> {
        let own = crate::diag::nearest(name, self.values.iter().map(|(n, _)| n.as_str()));
        own.map(str::to_owned).or_else(|| self.outer.near(name))
    }

    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic> {
        self.outer.spend(bytes, at)
    }
}

/// Returns the constant expression with the values that an expression has now.
pub fn constant(expr: &Spanned<Expr>, scope: &dyn Lookup) -> Result<Expr, Diagnostic> {
    let now = |expr: &Spanned<Expr>| {
        let values = [expr::eval(expr, scope)?, expr::eval_exact(expr, scope)?];
        let [whole, exact] = values.map(|value| Spanned::new(literal(value), expr.span));
        Ok(Spanned::new(if whole == exact { whole.node } else { Expr::Evaluated(Box::new([whole, exact])) }, expr.span))
    };
    // A reader of a rate tells a 0 that was given from one that a calculation happens to give.
    match &expr.node {
        Expr::Binary(parts) if expr::eval_exact(expr, scope)?.as_f64() == Some(0.0) => {
            Ok(Expr::Binary(Box::new((now(&parts.0)?, parts.1, now(&parts.2)?))))
        }
        _ => Ok(now(expr)?.node),
    }
}

/// Returns the constant expression with this value.
pub fn literal(value: ModelValue) -> Expr {
    match value {
        ModelValue::Bool(b) => Expr::Bool(b),
        ModelValue::Int(n) => Expr::Int(n),
        ModelValue::Float(x) => Expr::Float(x),
        ModelValue::Text(s) => Expr::Text(vec![TextPart::Text(s.as_ref().to_owned())]),
        ModelValue::Random(r) => Expr::Random(r),
        ModelValue::Table(rows) => Expr::Table(
            rows.iter().map(|r| r.iter().map(|x| Spanned::new(Expr::Float(*x), Span::default())).collect()).collect(),
        ),
    }
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
