//! The variables of a session: what sets them, and what they are worth when asked.
//!
//! A value is kept until something that it was made of is set again, so that a chain of variables is followed once, however often
//! its end is read. What a hostile script can ask for is bounded: steps, and bytes of text.

use super::expr::{self, Expr, Lookup, ModelValue, RandomCall, RandomExpr};
use crate::diag::{Code, Diagnostic};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{TextPart, Variable, VariableForm};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
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
    /// What the variable is without what was set at the prompt or on the command line; `None` if it is none then.
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
    /// By the order of their first setting.
    bindings: BTreeMap<u64, Binding>,
    /// Where each name stands in that order. An index map keeps the hashes: growing to 800,000 names reads no name again.
    order: IndexMap<String, u64>,
    next: u64,
    /// `${rate}`, `${stats.iocount}` and the like.
    internal: BTreeMap<String, String>,
    /// Numbers that a variable has as long as nothing sets it.
    predefined: BTreeMap<String, i64>,
    /// What variables are worth.
    values: RefCell<ScopeValues>,
    /// Variables of the environment that were read, with their values.
    environment: RefCell<BTreeMap<String, String>>,
    /// Variables that were once set to a value made of the environment: their expressions no longer show it.
    of_environment: HashSet<String>,
}

impl Scope {
    /// A variable's binding.
    pub fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(self.order.get(name)?)
    }

    fn binding_mut(&mut self, name: &str) -> Option<&mut Binding> {
        self.bindings.get_mut(self.order.get(name)?)
    }

    /// All of them, in the order of their first setting.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.values()
    }

    /// `set $name = value`. A value that mentions its own variable takes what that is worth now.
    pub fn set(&mut self, name: &str, value: Spanned<Expr>, by: SetBy) -> Result<(), Diagnostic> {
        let mut own = false;
        expr::variables(&value, &mut |v, _| own |= v.name == name);
        let value = if own {
            let now = expr::eval(&value, self)?;
            if self.reads_environment(&value) {
                self.note_environment(name);
            }
            Spanned::new(literal(now), value.span)
        } else {
            value
        };
        self.values.get_mut().forget(name);
        if let Some(old) = self.binding_mut(name) {
            old.set(value, by);
        } else {
            self.bindings.insert(self.next, Binding { name: name.to_owned(), value, by, beneath: BTreeMap::new() });
            self.order.insert(name.to_owned(), self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// `set $name.field = value` of a random variable. False if the variable is none.
    pub fn set_field(&mut self, name: &str, field: Spanned<String>, value: Spanned<Expr>) -> bool {
        self.values.get_mut().forget(name);
        let Some(binding) = self.binding_mut(name) else { return false };
        let Expr::Random(random) = &mut binding.value.node else { return false };
        let random: &mut RandomExpr = Arc::make_mut(random);
        random.fields.retain(|(n, _)| n.node != field.node);
        random.fields.push((field, value));
        true
    }

    /// Takes back the last word on a variable; one of which nothing else is known is forgotten. `None` if there is no such
    /// variable, else what it is now.
    pub fn unset(&mut self, name: &str) -> Option<Option<&Binding>> {
        let at = *self.order.get(name)?;
        self.values.get_mut().forget(name);
        let binding = self.bindings.get_mut(&at)?;
        if let Some((by, value)) = binding.beneath.pop_last() {
            (binding.value, binding.by) = (value, by);
        } else {
            self.bindings.remove(&at);
            self.order.swap_remove(name);
        }
        Some(self.bindings.get(&at))
    }

    /// Sets an internal value, such as `rate`.
    pub fn set_internal(&mut self, name: &str, value: String) {
        self.values.get_mut().forget(name);
        self.internal.insert(name.to_owned(), value);
    }

    /// Gives a variable a number that it has as long as nothing sets it.
    pub fn predefine(&mut self, name: &str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        if self.predefined.insert(name.to_owned(), value) != Some(value) {
            self.values.get_mut().forget(name);
        }
    }

    /// What a predefined variable is worth as long as nothing sets it.
    pub fn predefined(&self, name: &str) -> Option<i64> {
        self.predefined.get(name).copied()
    }

    /// The names of all variables that have a value, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let free = self.predefined.keys().filter(|name| self.binding(name).is_none());
        self.bindings().map(|binding| binding.name.as_str()).chain(free.map(String::as_str))
    }

    /// The predefined variables that were read, which nothing has set.
    pub fn predefined_read(&self) -> Vec<String> {
        let values = self.values.borrow();
        let is_read = |name: &String| values.known.keys().any(|variable| variable.name == *name);
        self.predefined.keys().filter(|name| self.binding(name).is_none() && is_read(name)).cloned().collect()
    }

    /// What a variable is worth, by its plain name.
    pub fn value(&self, name: &str) -> Option<Result<ModelValue, Diagnostic>> {
        self.value_of(&Variable { form: VariableForm::Plain, name: name.to_owned(), field: None })
    }

    /// Gives the evaluator its whole budget again: for each plan, and for each command that does something.
    pub fn renew_budget(&mut self) {
        self.values.get_mut().renew_budget();
    }

    fn read_environment(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok()?;
        self.environment.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// The values that were read from the environment.
    pub fn environment(&self) -> Vec<String> {
        self.environment.borrow().values().cloned().collect()
    }

    /// Takes note that a variable was set to a value made of the environment. It holds from then on, whatever it is set to.
    pub fn note_environment(&mut self, name: &str) {
        self.of_environment.insert(name.to_owned());
    }

    /// Whether an expression that has been evaluated reads the environment, through whatever variables.
    pub fn reads_environment(&self, expr: &Spanned<Expr>) -> bool {
        if self.environment.borrow().is_empty() {
            return false;
        }
        let made = self.made_of_environment();
        let mut found = false;
        expr::variables(expr, &mut |v, _| found |= self.is_of_environment(v) || made.contains(&v.name));
        found
    }

    fn is_of_environment(&self, variable: &Variable) -> bool {
        variable.form == VariableForm::Paren
            && self.binding(&variable.name).is_none()
            && self.environment.borrow().contains_key(&variable.name)
    }

    /// All variables whose values are made of the environment's: directly, or of one another.
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

    /// The expression of a variable, its field aside.
    fn expression(&self, variable: &Variable) -> Option<Cow<'_, Spanned<Expr>>> {
        let number = |n: &i64| Cow::Owned(Spanned::new(Expr::Int(*n), Span::default()));
        let predefined = || self.predefined.get(&variable.name).map(number);
        let bound = || self.binding(&variable.name).map(|b| Cow::Borrowed(&b.value));
        let plain = || bound().or_else(predefined);
        let text = |s: String| Cow::Owned(Spanned::new(Expr::Text(vec![TextPart::Text(s)]), Span::default()));
        match variable.form {
            VariableForm::Plain => plain(),
            VariableForm::Paren => bound().or_else(|| self.read_environment(&variable.name).map(text)),
            VariableForm::Brace => self.internal.get(&variable.name).cloned().map(text).or_else(plain),
        }
    }

    /// Evaluates a variable after those that it reads, however long the chain is: without recursion, each of them once.
    fn resolve(&self, wanted: &Variable) -> Option<Result<ModelValue, Diagnostic>> {
        let mut path = vec![self.node(wanted)?];
        let mut on_path = HashSet::from([wanted.clone()]);
        while let Some(node) = path.last_mut() {
            if let Some(read) = node.reads.pop() {
                let mut values = self.values.borrow_mut();
                values.note_read(&read.name, &node.variable);
                if values.known.contains_key(&read) {
                    continue;
                }
                if let Err(d) = values.step(node.expr.span) {
                    return Some(Err(d));
                }
                drop(values);
                if on_path.contains(&read) {
                    let error = in_circle(&read, node.expr.span);
                    let variable = node.variable.clone();
                    self.values.borrow_mut().keep(variable, Err(Box::new(error)));
                    on_path.remove(&node.variable);
                    path.pop();
                } else if let Some(next) = self.node(&read) {
                    on_path.insert(read);
                    path.push(next);
                }
                continue;
            }
            let value = match &node.field {
                None => expr::eval(&node.expr, self).map_err(Box::new),
                Some(field) => match self.field(node, field) {
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
            self.values.borrow_mut().keep(variable, value);
            path.pop();
        }
        self.values.borrow().known.get(wanted).map(|known| known.clone().map_err(|d| *d))
    }

    fn node(&self, variable: &Variable) -> Option<ScopeNode<'_>> {
        let expr = self.expression(variable)?;
        let (reads, field) = match &variable.field {
            None => (reads(&expr), None),
            Some(field) => (vec![Variable { field: None, ..variable.clone() }], Some(field.clone())),
        };
        Some(ScopeNode { variable: variable.clone(), expr, reads, field })
    }

    /// What the field of a node's variable is: the variable itself has been evaluated.
    fn field(&self, node: &ScopeNode<'_>, field: &str) -> Result<Field, Box<Diagnostic>> {
        let whole = Variable { field: None, ..node.variable.clone() };
        let known = self.values.borrow().known.get(&whole).cloned();
        match known.unwrap_or_else(|| expr::eval(&node.expr, self).map_err(Box::new))? {
            ModelValue::Random(random) => Ok(match random.field(field) {
                Some(expr) => Field::Expression(expr.clone()),
                None => Field::ModelValue(expr::default_field(field)),
            }),
            value => {
                let shown = expr::show(&node.variable);
                let message = format!("`{shown}`: `${}` is {}, which has no fields", whole.name, value.kind());
                Err(Box::new(
                    Diagnostic::error(Code::WrongType, node.expr.span, message)
                        .help("only random variables have `.mean`, `.min`, `.type` and so on"),
                ))
            }
        }
    }
}

/// A variable on the way to its value.
struct ScopeNode<'a> {
    variable: Variable,
    expr: Cow<'a, Spanned<Expr>>,
    /// What it reads that has not been looked at yet.
    reads: Vec<Variable>,
    /// The field that is wanted, as long as its expression is not known.
    field: Option<String>,
}

enum Field {
    ModelValue(ModelValue),
    Expression(Spanned<Expr>),
}

/// The variables that the value of an expression depends on; those in the parameters of a random variable are read later.
fn reads(expr: &Spanned<Expr>) -> Vec<Variable> {
    let mut read = Vec::new();
    if !matches!(expr.node, Expr::Random(_)) {
        expr::variables(expr, &mut |v, _| read.push(v.clone()));
    }
    read
}

fn in_circle(variable: &Variable, at: Span) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, at, format!("`{}` is defined by itself", expr::show(variable)))
        .help("break the circle: one of the variables needs a plain value")
}

/// Variables that may be evaluated for one plan, or one command.
const MOST_STEPS: u64 = 10_000_000;

/// Bytes of text that expressions may make for one plan, or one command.
const MOST_TEXT: u64 = 64 << 20;

/// Near misses that are looked for: each looks at all names.
const MOST_NEAR: u32 = 100;

/// Values that are known, and what they were made of.
#[derive(Clone, Default, Debug)]
struct ScopeValues {
    known: IndexMap<Variable, Result<ModelValue, Box<Diagnostic>>>,
    /// By name: the variables whose values depend on it.
    readers: IndexMap<String, Vec<Variable>>,
    steps: u64,
    text: u64,
    near: u32,
}

impl ScopeValues {
    fn note_read(&mut self, name: &str, reader: &Variable) {
        match self.readers.get_mut(name) {
            Some(readers) => readers.push(reader.clone()),
            None => drop(self.readers.insert(name.to_owned(), vec![reader.clone()])),
        }
    }

    fn keep(&mut self, variable: Variable, value: Result<ModelValue, Box<Diagnostic>>) {
        self.note_read(&variable.name.clone(), &variable);
        self.known.insert(variable, value);
    }

    /// Forgets what depends on a name.
    fn forget(&mut self, name: &str) {
        let mut names = vec![name.to_owned()];
        while let Some(name) = names.pop() {
            for reader in self.readers.swap_remove(&name).unwrap_or_default() {
                if self.known.swap_remove(&reader).is_some() {
                    names.push(reader.name);
                }
            }
        }
    }

    fn step(&mut self, at: Span) -> Result<(), Diagnostic> {
        self.steps += 1;
        if self.steps <= MOST_STEPS {
            return Ok(());
        }
        let message = format!("the variables of the script take more than {MOST_STEPS} steps to evaluate");
        Err(Diagnostic::error(Code::BadExpression, at, message).help("let fewer variables depend on one another"))
    }

    fn renew_budget(&mut self) {
        (self.steps, self.text, self.near) = (0, 0, 0);
    }
}

impl Lookup for Scope {
    fn value_of(&self, variable: &Variable) -> Option<Result<ModelValue, Diagnostic>> {
        let known = self.values.borrow().known.get(variable).cloned();
        match known {
            Some(value) => Some(value.map_err(|d| *d)),
            None => self.resolve(variable),
        }
    }

    fn near(&self, name: &str) -> Option<String> {
        let mut values = self.values.borrow_mut();
        values.near += 1;
        let names = self.names();
        crate::diag::nearest(name, names).filter(|_| values.near <= MOST_NEAR).map(str::to_owned)
    }

    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic> {
        let mut values = self.values.borrow_mut();
        values.text += bytes as u64;
        if values.text <= MOST_TEXT {
            return Ok(());
        }
        let message = format!("the texts of the script take more than {} MiB", MOST_TEXT >> 20);
        Err(Diagnostic::error(Code::BadExpression, at, message).help("make the texts of its variables shorter"))
    }
}

/// Local variables of a composite flowop over the variables around them. The variables around them do not read these.
#[derive(Debug)]
pub struct Locals<'a> {
    /// Name and worth, as given at the use.
    pub values: Vec<(String, ModelValue)>,
    /// What is not local.
    pub outer: &'a dyn LookupDebug,
}

/// A [`Lookup`] that can be printed.
pub trait LookupDebug: Lookup + std::fmt::Debug {}
impl<T: Lookup + std::fmt::Debug> LookupDebug for T {}

impl Locals<'_> {
    fn local(&self, name: &str) -> Option<&ModelValue> {
        self.values.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }
}

impl Lookup for Locals<'_> {
    fn value_of(&self, variable: &Variable) -> Option<Result<ModelValue, Diagnostic>> {
        let local = self.local(&variable.name).filter(|_| variable.form == VariableForm::Plain);
        match (local, &variable.field) {
            (None, _) => self.outer.value_of(variable),
            (Some(value), None) => Some(Ok(value.clone())),
            (Some(ModelValue::Random(random)), Some(field)) => Some(match random.field(field) {
                Some(expr) => expr::eval(expr, self.outer),
                None => Ok(expr::default_field(field)),
            }),
            (Some(value), Some(_)) => {
                let shown = expr::show(variable);
                let message = format!("`{shown}`: `${}` is {}, which has no fields", variable.name, value.kind());
                Some(Err(Diagnostic::error(Code::WrongType, Span::default(), message)
                    .help("only random variables have `.mean`, `.min`, `.type` and so on")))
            }
        }
    }

    fn near(&self, name: &str) -> Option<String> {
        let own = crate::diag::nearest(name, self.values.iter().map(|(n, _)| n.as_str()));
        own.map(str::to_owned).or_else(|| self.outer.near(name))
    }

    fn spend(&self, bytes: usize, at: Span) -> Result<(), Diagnostic> {
        self.outer.spend(bytes, at)
    }
}

/// The expression that is worth just this.
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

/// An empty random variable for `define randvar`.
pub fn randvar(span: Span, fields: Vec<(Spanned<String>, Spanned<Expr>)>) -> Expr {
    Expr::Random(Arc::new(RandomExpr { call: RandomCall::Randvar, span, fields }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(scope: &mut Scope, n: i64, by: SetBy) {
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
