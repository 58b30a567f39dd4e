//! Scopes of a factorial experiment: the experiment itself, a block, the level of a factor, and a run. Each may have
//! commands, which are executed when the scope begins and when it ends.
//!
//! Scopes are nested in this order. From one run to the next a scope continues if it and all scopes around it are the
//! same; otherwise it ends, inner scopes first, and the scope of the next run begins. This file is pure: it decides
//! which commands are due. Not in here: their execution (`runner`).

use super::hooks::HookTime;
use super::wanted::Experiment;
use serde::{Deserialize, Serialize};

/// A part of an experiment around which commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum HookScope {
    /// All runs.
    Experiment,
    /// A block, in which each cell has one run.
    Block,
    /// Successive runs at a level of a factor.
    Level {
        /// The index of the factor.
        factor: usize,
        /// The index of the level; absent for all levels of the factor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<usize>,
    },
    Run,
}

/// Commands at the begin and at the end of a scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeHook {
    /// The name, without `before-` and `after-`: `experiment`, `level-fs`, `run-2`. It is unique among the commands that
    /// can be in effect at the same time.
    pub name: String,
    /// The position of the command at the begin in the experiment file, as `FILE:LINE`.
    pub origin: String,
    /// The position of the command at the end.
    pub after_origin: String,
    /// The command at the begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The command at the end. It undoes the command at the begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The maximum duration of each command in seconds; absent if it is that of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,
    #[serde(flatten)]
    pub scope: HookScope,
}

impl ScopeHook {
    /// Returns the name of the command at the begin, or at the end.
    pub(super) fn command_name(&self, time: HookTime) -> String {
        format!("{}-{}", time.name(), self.name)
    }

    /// Returns the position of the command at the begin, or at the end.
    pub(crate) fn origin(&self, time: HookTime) -> &str {
        match time {
            HookTime::Before => &self.origin,
            HookTime::After => &self.after_origin,
        }
    }

    pub(crate) fn commands(&self) -> impl Iterator<Item = (HookTime, &str)> {
        HookTime::ALL.into_iter().filter_map(move |time| Some((time, self.command(time)?)))
    }

    /// Returns the command at the begin, or at the end.
    pub(super) fn command(&self, time: HookTime) -> Option<&str> {
        match time {
            HookTime::Before => self.before.as_deref(),
            HookTime::After => self.after.as_deref(),
        }
    }
}

/// Returns the name of a hook without `before-` or `after-`.
pub(super) fn base_name(name: &str) -> &str {
    name.split_once('-').map_or("", |(_, base)| base)
}

/// A run as far as scopes depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScopePosition {
    /// The number of the run, from 1.
    pub(super) run: usize,
    /// The index of its arm.
    pub(super) arm: usize,
}

impl Experiment {
    /// Returns the hooks whose scopes contain a run, from the outer to the inner ones.
    pub(super) fn hooks_around(&self, at: ScopePosition) -> impl DoubleEndedIterator<Item = &ScopeHook> {
        let levels = self.levels_of(at.arm);
        self.scopes.iter().filter(move |hook| match hook.scope {
            HookScope::Level { factor, level } => level.is_none() || level == levels.get(factor).copied(),
            HookScope::Experiment | HookScope::Block | HookScope::Run => true,
        })
    }

    /// True if a scope that contains the run `from` continues in the run `to`.
    pub(super) fn continues(&self, scope: HookScope, from: ScopePosition, to: ScopePosition) -> bool {
        let block = |at: ScopePosition| self.rule.order().block_of(at.run - 1, self.arms.len());
        let is_same_block = block(from) == block(to);
        match scope {
            HookScope::Experiment => true,
            HookScope::Block => is_same_block,
            // Also the levels of the factors around it must be the same.
            HookScope::Level { factor, .. } => {
                let (a, b) = (self.levels_of(from.arm), self.levels_of(to.arm));
                is_same_block && a.iter().zip(&b).take(factor + 1).all(|(a, b)| a == b)
            }
            HookScope::Run => from == to,
        }
    }

    /// True if the effect of a hook's command at the begin of its scope, which succeeded before the run
    /// `succeeded`, is still in place at a run after an interruption. It is if no command undoes it, and if the scope
    /// has contained all runs since then, whose arms are given.
    pub(super) fn is_in_effect(&self, hook: &ScopeHook, succeeded: usize, at: ScopePosition, arms: &[usize]) -> bool {
        if hook.after.is_some() || hook.scope == HookScope::Run {
            return false;
        }
        if hook.scope == HookScope::Experiment {
            return true;
        }
        let position = |run: usize| match run == at.run {
            true => Some(at),
            false => arms.get(run - 1).map(|arm| ScopePosition { run, arm: *arm }),
        };
        let all: Option<Vec<ScopePosition>> = (succeeded.max(1)..=at.run).map(position).collect();
        all.is_some_and(|all| {
            !all.is_empty() && all.windows(2).all(|pair| self.continues(hook.scope, pair[0], pair[1]))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::design_tests::factorial;
    use super::*;

    fn hook(name: &str, scope: HookScope, after: Option<&str>) -> ScopeHook {
        ScopeHook {
            name: name.to_owned(),
            origin: "x.toml:1".to_owned(),
            after_origin: "x.toml:2".to_owned(),
            before: Some("true".to_owned()),
            after: after.map(str::to_owned),
            time_limit: None,
            scope,
        }
    }

    fn at(run: usize, arm: usize) -> ScopePosition {
        ScopePosition { run, arm }
    }

    #[test]
    fn a_scope_continues_while_it_and_those_around_it_are_the_same() {
        // Two factors of two and three levels: the arms 0 to 2 have the first level of the first factor.
        let experiment = factorial(&[2, 3], (2, 2), None, false);
        let level = |factor| HookScope::Level { factor, level: None };
        let continues = |scope, from, to| experiment.continues(scope, from, to);
        assert!(continues(HookScope::Experiment, at(1, 0), at(12, 5)));
        assert!(continues(HookScope::Block, at(1, 0), at(6, 5)) && !continues(HookScope::Block, at(6, 5), at(7, 5)));
        assert!(continues(level(0), at(1, 0), at(2, 2)) && !continues(level(0), at(1, 0), at(2, 3)));
        // The level of the second factor is the same, but that of the first is not.
        assert!(!continues(level(1), at(1, 0), at(2, 3)) && continues(level(1), at(1, 1), at(2, 1)));
        assert!(!continues(HookScope::Run, at(1, 0), at(2, 0)));
        assert!(!continues(level(0), at(6, 0), at(7, 0)), "a block ends between them");
        let in_order = factorial(&[2, 3], (2, 2), None, true);
        assert!(in_order.continues(level(0), at(6, 0), at(7, 0)));
    }

    #[test]
    fn a_command_without_its_opposite_stays_in_effect_in_its_scope() {
        let experiment = factorial(&[2, 3], (2, 2), None, true);
        let level = HookScope::Level { factor: 0, level: None };
        let arms = [0, 0, 1, 1, 2, 2, 3];
        let is_in_effect = |hook: &ScopeHook, succeeded, to| experiment.is_in_effect(hook, succeeded, to, &arms);
        let once = hook("level-f0", level, None);
        assert!(is_in_effect(&once, 1, at(6, 2)) && is_in_effect(&once, 7, at(8, 3)));
        assert!(!is_in_effect(&once, 1, at(7, 3)), "the level has changed since");
        assert!(!is_in_effect(&once, 9, at(8, 3)), "the run was dropped");
        assert!(!is_in_effect(&hook("level-f0", level, Some("true")), 1, at(2, 0)));
        assert!(is_in_effect(&hook("experiment", HookScope::Experiment, None), 1, at(8, 3)));
        assert!(!is_in_effect(&hook("run", HookScope::Run, None), 3, at(3, 1)));
    }

    #[test]
    fn the_hooks_of_other_levels_do_not_apply() {
        let mut experiment = factorial(&[2, 3], (1, 1), None, false);
        let level = |factor, level| HookScope::Level { factor, level };
        experiment.scopes = vec![
            hook("experiment", HookScope::Experiment, None),
            hook("level-f0", level(0, Some(1)), None),
            hook("level-f1", level(1, None), None),
        ];
        let names = |arm| experiment.hooks_around(at(1, arm)).map(|hook| hook.name.as_str()).collect::<Vec<_>>();
        assert_eq!((names(0), names(3)), (vec!["experiment", "level-f1"], vec!["experiment", "level-f0", "level-f1"]));
    }
}
