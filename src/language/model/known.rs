//! The values of variables that are known, and the budget of their evaluation.
//!
//! A value is kept until a variable that it depends on is set again. The budget of steps, of bytes of text and of
//! searches is against hostile scripts. Deliberately absent: how a value is computed (`scope`, `expr`).

use super::ModelValue;
use super::expr::Arithmetic;
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::Variable;
use indexmap::IndexMap;

/// Evaluation steps for one plan or one command.
const MOST_STEPS: u64 = 10_000_000;

/// Bytes of text that expressions may build for one plan or one command.
const MOST_TEXT: u64 = 64 << 20;

/// Searches for near misses, each of which compares all names.
const MOST_NEAR: u32 = 100;

/// The value of a variable, or the reason why it has none.
pub(super) type KnownValue = Result<ModelValue, Box<Diagnostic>>;

/// Known values, their dependencies, and what the evaluation has cost.
#[derive(Clone, Default, Debug)]
pub(super) struct KnownValues {
    /// The values in whole numbers, and the exact ones.
    known: [IndexMap<Variable, KnownValue>; 2],
    /// The variables whose values depend on a name.
    readers: IndexMap<String, Vec<Variable>>,
    steps: u64,
    text: u64,
    near: u32,
}

impl KnownValues {
    pub(super) fn get(&self, variable: &Variable, arithmetic: Arithmetic) -> Option<&KnownValue> {
        self.known[arithmetic as usize].get(variable)
    }

    /// The variables that have a value.
    pub(super) fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.known.iter().flat_map(IndexMap::keys)
    }

    pub(super) fn note_read(&mut self, name: &str, reader: &Variable) {
        match self.readers.get_mut(name) {
            Some(readers) => readers.push(reader.clone()),
            None => drop(self.readers.insert(name.to_owned(), vec![reader.clone()])),
        }
    }

    pub(super) fn keep(&mut self, variable: Variable, arithmetic: Arithmetic, value: KnownValue) {
        self.note_read(&variable.name.clone(), &variable);
        self.known[arithmetic as usize].insert(variable, value);
    }

    /// Drops the values that depend on a name.
    pub(super) fn forget(&mut self, name: &str) {
        let mut names = vec![name.to_owned()];
        while let Some(name) = names.pop() {
            for reader in self.readers.swap_remove(&name).unwrap_or_default() {
                let dropped = self.known.each_mut().map(|known| known.swap_remove(&reader).is_some());
                if dropped.contains(&true) {
                    names.push(reader.name);
                }
            }
        }
    }

    /// Counts a step of the evaluation. `Err` when there are too many.
    pub(super) fn step(&mut self, at: Span) -> Result<(), Diagnostic> {
        self.steps += 1;
        if self.steps <= MOST_STEPS {
            return Ok(());
        }
        let message = format!("the variables of the script take more than {MOST_STEPS} steps to evaluate");
        Err(Diagnostic::error(Code::BadExpression, at, message).help("let fewer variables depend on one another"))
    }

    /// Counts bytes of text. `Err` when there are too many.
    pub(super) fn spend(&mut self, bytes: usize, at: Span) -> Result<(), Diagnostic> {
        self.text += bytes as u64;
        if self.text <= MOST_TEXT {
            return Ok(());
        }
        let message = format!("the texts of the script take more than {} MiB", MOST_TEXT >> 20);
        Err(Diagnostic::error(Code::BadExpression, at, message).help("make the texts of its variables shorter"))
    }

    /// Counts a search for a near miss. False when there are too many.
    pub(super) fn search(&mut self) -> bool {
        self.near += 1;
        self.near <= MOST_NEAR
    }

    /// The used part of the budget, in steps and bytes of text.
    pub(super) fn spent(&self) -> u64 {
        self.steps + self.text
    }

    pub(super) fn renew_budget(&mut self) {
        (self.steps, self.text, self.near) = (0, 0, 0);
    }
}
