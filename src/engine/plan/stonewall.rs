//! `stonewall=` and `iterationsof=` of threads: their values, and the thread definition that a name means.

use super::Plan;
use super::values::seconds;
use std::collections::HashMap;
use std::time::Duration;
use wml_language::diag::{Code, Diagnostic};
use wml_language::model::Evaluated;
use wml_language::source::Span;

/// Evaluates `stonewall=`. A time of 0 is none.
pub(super) fn time(values: &Evaluated, found: &mut Vec<Diagnostic>) -> Option<Duration> {
    seconds(values, "stonewall", found).filter(|time| !time.is_zero())
}

/// Returns the name of the thread whose iterations are the limit of another, and its place. `None` if there is none.
pub(super) fn followed(values: &Evaluated) -> Option<(String, Span)> {
    let (_, span) = values.get("iterationsof")?;
    values.text("iterationsof").filter(|name| !name.is_empty()).map(|name| (name, span))
}

/// Finds the thread definitions that `iterationsof=` names. `followed`: the name for each definition. A name that means
/// no definition of an earlier phase, or several, is an error.
pub(super) fn resolve(plan: &mut Plan, followed: Vec<Option<(String, Span)>>, found: &mut Vec<Diagnostic>) {
    let all: Vec<(String, u32)> =
        plan.threads().map(|(process, thread)| (thread.name.clone(), process.phase)).collect();
    // Of each name the definitions by phase: the first two of them decide.
    let mut named_so: HashMap<&str, Vec<(u32, usize)>> = HashMap::new();
    for (definition, (name, phase)) in all.iter().enumerate() {
        named_so.entry(name).or_default().push((*phase, definition));
    }
    named_so.values_mut().for_each(|definitions| definitions.sort_unstable());
    let mut targets = Vec::new();
    for (own, named) in followed.into_iter().enumerate() {
        let Some((name, span)) = named else { continue };
        let definitions = named_so.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        let mut matches = definitions.iter().take_while(|(phase, _)| *phase < all[own].1);
        match (matches.next(), matches.next()) {
            (Some((_, target)), None) => targets.push((own, *target)),
            (None, _) => {
                let message = format!("no thread of an earlier phase is called `{name}`");
                let d = Diagnostic::error(Code::UnknownTarget, span, message);
                let names = all.iter().filter(|(_, phase)| *phase < all[own].1).map(|(name, _)| name.as_str());
                found.push(
                    d.near_miss(&name, names)
                        .or_help("`iterationsof=` takes the `name=` of a thread whose process has a lower `phase=`"),
                );
            }
            (Some(_), Some(_)) => {
                let message = format!("several threads of earlier phases are called `{name}`");
                found.push(Diagnostic::error(Code::UnknownTarget, span, message).help("give them different names"));
            }
        }
    }
    let mut threads: Vec<_> = plan.processes.iter_mut().flat_map(|process| &mut process.threads).collect();
    for (own, target) in targets {
        threads[own].iterations_of = Some(target);
    }
}
