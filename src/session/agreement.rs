//! The agreement of all ranks on a run before anything is created: the conditions that the session knows.
//!
//! Deliberately absent: the comparison itself, and the conditions of the command line (`measure`).

use super::Session;
use crate::diag::Failure;
use crate::measure::sha256;
use crate::model::scope::literal;
use crate::model::{ModelValue, Scope, SetBy};
use crate::plan::{self, FRESH};
use crate::source::{Span, Spanned};
use crate::spec::predefined::DIR;

impl Session {
    /// Compares the next run with that of rank 0. Every rank calls this before it creates anything, whatever the result
    /// of its own checks, `checked`, is. Returns that result, or an error if a rank differs.
    pub(super) fn agree<T>(&self, checked: Result<T, Failure>) -> Result<T, Failure> {
        if self.runner.settings.ranks.size() == 1 {
            return checked;
        }
        match (self.runner.agree(self.conditions(checked.is_ok())), checked) {
            (Ok(()), checked) => checked,
            (Err(differs), Ok(_)) => Err(differs),
            (Err(differs), Err(own)) => Err(Failure { status: differs.status, ..own.and(differs) }),
        }
    }

    /// Returns the names and values of the conditions that all ranks must share. They are those of a run on rank 0, so
    /// that what a script computes from `$rank` and `$host` may differ.
    fn conditions(&self, is_checked: bool) -> Vec<(String, String)> {
        let scope = self.scope_of_first();
        let of_variable = |name: &str| match scope.value(name) {
            Some(Ok(value)) => value.print(),
            _ => "an error".to_owned(),
        };
        let check = if is_checked { "passed" } else { "failed" };
        let mut found = vec![("the check before the run".to_owned(), check.to_owned())];
        found.extend(scope.bindings().map(|b| (format!("`${}`", b.name), of_variable(&b.name))));
        found.push(("the SHA-256 digest of the plan".to_owned(), sha256(self.plan_text(&scope))));
        found
    }

    /// Returns all variables as rank 0 has them. `$dir` is the placeholder if it is a fresh directory, whose name is
    /// different on each rank.
    fn scope_of_first(&self) -> Scope {
        let mut scope = self.scope.clone();
        for (variable, value) in self.runner.variables_of_first() {
            scope.predefine(variable.name, value);
        }
        if scope.binding(DIR.name).is_some_and(|binding| binding.by == SetBy::Default) {
            let fresh = Spanned::new(literal(ModelValue::from(FRESH)), Span::default());
            // A literal can't fail to be set.
            let _ = scope.set(DIR.name, fresh, SetBy::Default);
        }
        scope.renew_budget();
        scope
    }

    /// Returns the plan with these variables as text. Empty if it has errors, which [`Session::plan`] reports.
    fn plan_text(&self, scope: &Scope) -> String {
        let Ok(event_rate) = self.event_rate_in(scope) else { return String::new() };
        let below = self.runner.settings.below.as_deref();
        let options = plan::CompileOptions { mode: self.options.mode, event_rate, below };
        plan::compile(&self.definitions, scope, &self.table, options)
            .map_or_else(|_| String::new(), |(plan, _)| format!("{plan:?}"))
    }
}
