//! Open loops: `rate=`, `totalrate=` and `arrival=` of threads, and the rate of each of several threads.
//!
//! A plan knows the threads of one rank. How many all ranks have is agreed later, with [`Plan::share_rates`].

use super::Plan;
use std::collections::{BTreeMap, HashSet};
use wml_language::diag::{Code, Diagnostic};
use wml_language::model::{Attrs, Evaluated, Expr, Scope, TextPart, eval_exact};
use wml_language::source::{Span, Spanned};
use wml_language::syntax::ast::Operator;

/// An open loop: iterations start at given times, and a late one does not delay the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// Iterations a second of each thread, more than 0.
    pub rate: f64,
    /// Whether the starts are a Poisson process. Otherwise they are evenly spaced.
    pub poisson: bool,
    /// Iterations a second of all threads of the definition, in all instances and on all ranks, if the script gives
    /// that (`totalrate=`).
    pub total: Option<f64>,
    /// The number of these threads, at least 1.
    pub threads: u64,
    /// How many of them are on ranks with lower numbers.
    pub before: u64,
    /// Whether the threads of a rank take their iterations from one queue (`queue=shared`).
    pub is_shared: bool,
}

impl Pace {
    /// Iterations a second of all threads of the definition.
    pub fn requested(self) -> f64 {
        self.total.unwrap_or(self.rate * self.threads as f64)
    }
}

/// The most iterations a second. Intervals of less than a nanosecond can't be kept.
const MOST: f64 = 1e9;

/// Evaluates `rate=`, `totalrate=` and `arrival=` of a thread. `None` for a closed loop. [`Plan::share_rates`] completes
/// the pace.
pub(super) fn pace(attrs: &Attrs, values: &Evaluated, scope: &Scope, found: &mut Vec<Diagnostic>) -> Option<Pace> {
    let poisson = match values.get("arrival").map(|(v, span)| (v.print(), span)) {
        None => false,
        Some((word, _)) if word == "constant" => false,
        Some((word, _)) if word == "poisson" => true,
        Some((word, span)) => {
            found.push(
                Diagnostic::error(Code::WrongType, span, format!("`arrival` is `{word}`"))
                    .help("it is `constant` or `poisson`"),
            );
            false
        }
    };
    if let (Some(_), Some(total)) = (attrs.get("rate"), attrs.get("totalrate")) {
        let message = "a thread with both `rate` and `totalrate`";
        found.push(
            Diagnostic::error(Code::BadArgument, total.value.span, message)
                .help("`rate` is that of each thread, `totalrate` that of all together: give one of them"),
        );
        return None;
    }
    let queue = values.get("queue").filter(|(value, _)| value.print() == "shared");
    if let (Some((_, span)), None) = (queue, attrs.get("totalrate")) {
        let report = Diagnostic::error(Code::BadArgument, span, "`queue=shared` without `totalrate`");
        found.push(report.help("give the rate of all threads together with `totalrate=`"));
    }
    let rate = rate(attrs, values, "rate", scope, found);
    let total = rate.is_none().then(|| self::rate(attrs, values, "totalrate", scope, found)).flatten();
    Some(Pace { rate: rate.or(total)?, poisson, total, threads: 1, before: 0, is_shared: queue.is_some() })
}

/// Returns a rate above 0; `None` for a closed loop.
fn rate(attrs: &Attrs, values: &Evaluated, name: &str, scope: &Scope, found: &mut Vec<Diagnostic>) -> Option<f64> {
    let (value, span) = values.get(name)?;
    match value.as_f64() {
        Some(0.0) => {
            let reason = attrs.get(name).map_or(ZeroReason::Given, |used| zero_reason(&used.value, scope));
            let at = |report: Diagnostic, at: Span, text: &str| if at == span { report } else { report.also(at, text) };
            match reason {
                ZeroReason::Given => {}
                ZeroReason::Factor(place) => {
                    let report = Diagnostic::warning(Code::RateOfZero, span, format!("`{name}` is 0: a closed loop"));
                    let help = "if this is not meant, give both factors a value above 0";
                    found.push(at(report, place, "one factor is 0").help(help));
                }
                ZeroReason::Accident(place) => {
                    let report = Diagnostic::error(Code::OutOfRange, span, format!("`{name}` comes out as 0"));
                    let help = "give a rate above 0; for a closed loop, which has no rate, write the number 0";
                    found.push(at(report, place, "this comes out as 0").help(help));
                }
            }
            None
        }
        Some(rate) if (0.0..=MOST).contains(&rate) => Some(rate),
        _ => {
            found.push(
                Diagnostic::error(Code::OutOfRange, span, format!("`{name}` can't be {}", value.print()))
                    .help("give the number of iterations a second: 0 (no rate) to 1000000000"),
            );
            None
        }
    }
}

/// Why an expression has the value 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ZeroReason {
    /// It is the number 0: as it is written, as a part of 0 (`$load / $threads`), or as a sum of zeros.
    Given,
    /// At this place another number is multiplied by 0, which may be the load as well as its share.
    Factor(Span),
    /// The calculation at this place happens to give 0, such as a difference. The slowest load would be the fastest.
    Accident(Span),
}

/// Returns why an expression has the value 0.
fn zero_reason(expr: &Spanned<Expr>, scope: &Scope) -> ZeroReason {
    let value = |expr: &Spanned<Expr>| eval_exact(expr, scope).ok().and_then(|value| value.as_f64());
    let (mut left, mut seen, mut reason) = (vec![expr.clone()], HashSet::new(), ZeroReason::Given);
    while let Some(expr) = left.pop() {
        match &expr.node {
            Expr::Binary(parts) => {
                let (one, op, other) = &**parts;
                let are_zero = [one, other].map(|side| value(side) == Some(0.0));
                match (op, are_zero) {
                    (Operator::Divide, [true, false]) => left.push(one.clone()),
                    (Operator::Multiply | Operator::Add | Operator::Subtract, [true, true]) => {
                        left.extend([one.clone(), other.clone()]);
                    }
                    (Operator::Multiply, [true, false]) => {
                        reason = ZeroReason::Factor(expr.span);
                        left.push(one.clone());
                    }
                    (Operator::Multiply, [false, true]) => {
                        reason = ZeroReason::Factor(expr.span);
                        left.push(other.clone());
                    }
                    _ => return ZeroReason::Accident(expr.span),
                }
            }
            Expr::Var(variable) if variable.field.is_none() && seen.insert(variable.clone()) => {
                left.extend(scope.binding(&variable.name).map(|binding| binding.value.clone()));
            }
            Expr::Text(parts) => {
                if let [TextPart::Variable(variable)] = parts.as_slice() {
                    left.push(Spanned::new(Expr::Var(variable.node.clone()), variable.span));
                }
            }
            _ => {}
        }
    }
    reason
}

/// What a rank has of each thread definition, in their order: its threads, and `totalrate=` if it has one.
pub type OwnRates = Vec<(u64, Option<f64>)>;

impl Plan {
    /// Returns what this rank has of each thread definition.
    pub fn own_rates(&self) -> OwnRates {
        let threads = self.threads().map(|(process, thread)| {
            let n = u64::from(process.instances) * u64::from(thread.instances);
            (n, thread.pace.and_then(|pace| pace.total))
        });
        threads.collect()
    }

    /// Divides each `totalrate=` among the threads of all ranks, and gives each thread its place among them. `all` has
    /// what each rank has ([`Plan::own_rates`]), and `rank` is the number of this one. An error is a rate that differs
    /// between ranks, or another list of definitions.
    pub fn share_rates(&mut self, all: &[OwnRates], rank: usize) -> Result<(), String> {
        self.rank_rates = vec![BTreeMap::new(); all.len()];
        let paced = self.processes.iter_mut().flat_map(|process| {
            let phase = process.phase;
            process.threads.iter_mut().map(move |thread| (phase, thread))
        });
        for (at, (phase, thread)) in paced.enumerate() {
            let Some(of_ranks) = all.iter().map(|of| of.get(at).copied()).collect::<Option<OwnRates>>() else {
                return Err("the ranks have different threads".to_owned());
            };
            let own = thread.pace.and_then(|pace| pace.total);
            if let Some(other) = of_ranks.iter().position(|(_, total)| *total != own) {
                let shown = |total: Option<f64>| total.unwrap_or(0.0);
                let (name, there) = (&thread.name, shown(of_ranks[other].1));
                return Err(format!(
                    "`totalrate` of thread `{name}` is {there} on rank {other} and {} on rank {rank}",
                    shown(own)
                ));
            }
            let Some(pace) = &mut thread.pace else { continue };
            let threads = |of: &[(u64, Option<f64>)]| of.iter().map(|(threads, _)| threads).sum::<u64>();
            pace.threads = threads(&of_ranks).max(1);
            pace.before = threads(&of_ranks[..rank]);
            if let Some(total) = pace.total {
                pace.rate = total / pace.threads as f64;
                for (of_rank, (threads, _)) in self.rank_rates.iter_mut().zip(&of_ranks) {
                    *of_rank.entry(phase).or_default() += pace.rate * *threads as f64;
                }
            }
        }
        Ok(())
    }
}
