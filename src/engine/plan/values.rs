//! Evaluates attributes at the start of a run, and converts their values to quantities.

use crate::random::{self, BadDistribution, Quantity, RandvarParams};
use std::sync::Arc;
use std::time::Duration;
use wml_language::diag::{self, Code, Diagnostic};
use wml_language::model::{
    Attrs, Evaluated, Expr, FlowopDef, Lookup, ModelValue, RandomCall, RandomExpr, eval, eval_exact,
};
use wml_language::source::{Span, Spanned};
use wml_language::spec::{Attr, Kind};

/// Evaluates attributes. Errors go to `found`.
pub fn evaluate(attrs: &Attrs, scope: &dyn Lookup, found: &mut Vec<Diagnostic>) -> Evaluated {
    evaluate_with(attrs, &Attr::takes_fraction, scope, found)
}

/// Evaluates the attributes of a flowop.
pub(super) fn evaluate_flowop(flowop: &FlowopDef, scope: &dyn Lookup, found: &mut Vec<Diagnostic>) -> Evaluated {
    match flowop.spec {
        Some(spec) => evaluate_with(&flowop.attrs, &|attr| spec.takes_fraction(attr), scope, found),
        None => evaluate(&flowop.attrs, scope, found),
    }
}

/// An attribute whose value has a fraction that a computation in whole numbers would have cut off.
#[derive(Clone, PartialEq, Debug)]
pub struct ExactValue {
    /// What has the attribute, in words.
    pub of: String,
    /// Its name.
    pub attr: &'static str,
    pub exact: String,
    /// What the variables in it are for readers of whole numbers; empty if that is no value.
    pub whole: String,
}

/// Returns the attributes among these that are exact and would have another value in whole numbers. `of`: what has
/// them, in words.
pub(super) fn exact_values(
    attrs: &Attrs,
    is_exact: impl Fn(&Attr) -> bool,
    scope: &dyn Lookup,
    of: impl Fn() -> String,
) -> Vec<ExactValue> {
    let mut found = Vec::new();
    for used in attrs.iter().filter(|used| is_exact(used.attr)) {
        let Ok(exact) = eval_exact(&used.value, scope) else { continue };
        let whole = eval(&used.value, scope).ok();
        if whole.as_ref() != Some(&exact) {
            let (exact, whole) = (exact.print(), whole.map_or_else(String::new, |whole| whole.print()));
            found.push(ExactValue { of: of(), attr: used.attr.name, exact, whole });
        }
    }
    found
}

fn evaluate_with(
    attrs: &Attrs,
    is_exact: &dyn Fn(&Attr) -> bool,
    scope: &dyn Lookup,
    found: &mut Vec<Diagnostic>,
) -> Evaluated {
    let (mut values, mut incomplete) = (Vec::new(), false);
    for used in attrs.iter() {
        if used.attr.kind == Kind::Variable {
            continue;
        }
        let eval = if is_exact(used.attr) { eval_exact } else { eval };
        let fits = eval(&used.value, scope).and_then(|value| match misfit(used.attr, &value, used.value.span) {
            None => Ok(value),
            Some(d) => Err(d),
        });
        match fits {
            Ok(value) => {
                if let ModelValue::Random(expr) = &value {
                    warn_of_parameters(expr, scope, found);
                }
                values.push((used.attr.name, value, used.value.span));
            }
            Err(d) => {
                incomplete = true;
                found.push(d);
            }
        }
    }
    Evaluated { values, incomplete }
}

/// Seconds of the longest time, a hundred years. A larger number is a mistake.
const LONGEST: f64 = 3.2e9;

/// Evaluates an attribute that is a time in seconds. `None` if it is not given, or wrong.
pub(super) fn seconds(values: &Evaluated, name: &str, found: &mut Vec<Diagnostic>) -> Option<Duration> {
    let (value, span) = values.get(name)?;
    match value.as_f64() {
        Some(seconds) if (0.0..=LONGEST).contains(&seconds) => Some(Duration::from_secs_f64(seconds)),
        _ => {
            found.push(
                Diagnostic::error(Code::OutOfRange, span, format!("`{name}` can't be {}", value.print()))
                    .help("give a number of seconds, or 0 for none"),
            );
            None
        }
    }
}

/// Returns the error for a value of the wrong kind or range.
fn misfit(attr: &Attr, value: &ModelValue, span: Span) -> Option<Diagnostic> {
    let number = matches!(attr.kind, Kind::Int | Kind::Size | Kind::Real | Kind::Percent);
    if let ModelValue::Text(text) = value
        && let Some(found) = wml_language::model::fit::bad_characters(attr, text, span)
    {
        return Some(found);
    }
    if let Some(found) = value.fraction().and_then(|x| wml_language::model::fit::fraction(attr, x, span)) {
        return Some(found);
    }
    let counts = number && attr.kind != Kind::Real;
    let problem = match value {
        ModelValue::Random(_) if !attr.random && attr.kind != Kind::Random => Some("a random variable".to_owned()),
        ModelValue::Table(_) => Some("a table".to_owned()),
        ModelValue::Int(n @ ..0) if number && attr.name != "nice" => Some(n.to_string()),
        ModelValue::Float(x) if counts && *x < 0.0 && attr.name != "nice" => Some(x.to_string()),
        ModelValue::Int(n) if attr.kind == Kind::Size && *n > LARGEST as i64 => {
            return Some(too_large(attr, &n.to_string(), span));
        }
        ModelValue::Float(x) if attr.kind == Kind::Size && *x > LARGEST as f64 => {
            return Some(too_large(attr, &format!("{x:.0}"), span));
        }
        ModelValue::Text(s)
            if number && s.trim().parse::<f64>().is_err() && !(attr.kind == Kind::Percent && **s == *"false") =>
        {
            Some(format!("the text `{s}`"))
        }
        ModelValue::Text(s) if attr.kind == Kind::Bool && wml_language::model::value::switch(s).is_none() => {
            Some(format!("the text `{s}`"))
        }
        _ => None,
    };
    problem.map(|what| {
        let help = match value {
            ModelValue::Text(s) if number && s.starts_with(|c: char| c.is_ascii_digit()) => WITH_UNIT,
            _ if number => "give a number from 0 up",
            _ => "give another kind of value",
        };
        Diagnostic::error(Code::WrongType, span, format!("`{}` is {what}", attr.name)).help(help)
    })
}

/// The help for a text that begins like a number.
const WITH_UNIT: &str = "give a number from 0 up, with one of the units k, m, g, t or none";

/// The largest size, 4 EiB: half of the largest file, so that a few sizes can be added up.
pub(super) const LARGEST: u64 = 1 << 62;

fn too_large(attr: &Attr, size: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::OutOfRange, span, format!("`{}` can't be {size} bytes", attr.name))
        .help(format!("at most {LARGEST} are possible"))
}

/// Converts a value to a quantity.
pub(super) fn quantity(value: &ModelValue, span: Span, scope: &dyn Lookup) -> Result<Quantity, Diagnostic> {
    quantity_with(value, span, scope, &eval)
}

/// The same for a time, for which the parameters of a random variable are exact.
pub(super) fn exact_quantity(value: &ModelValue, span: Span, scope: &dyn Lookup) -> Result<Quantity, Diagnostic> {
    quantity_with(value, span, scope, &eval_exact)
}

type Eval<'a> = &'a dyn Fn(&Spanned<Expr>, &dyn Lookup) -> Result<ModelValue, Diagnostic>;

fn quantity_with(value: &ModelValue, span: Span, scope: &dyn Lookup, eval: Eval<'_>) -> Result<Quantity, Diagnostic> {
    match value {
        ModelValue::Random(expr) => random_variable(expr, span, scope, eval),
        other => match other.as_u64() {
            Some(n) => Ok(Quantity::Const(n)),
            None => match other.as_f64() {
                Some(x) if x >= 0.0 => Ok(Quantity::Const(x as u64)),
                _ => {
                    let message = format!("expected a number from 0 up, found {}", other.describe());
                    Err(Diagnostic::error(Code::WrongType, span, message)
                        .help("give a number, a size, or a random variable"))
                }
            },
        },
    }
}

/// Warns of parameters of a random variable that probably have another effect than intended, once, at its definition.
/// Errors are reported where it is used.
fn warn_of_parameters(expr: &RandomExpr, scope: &dyn Lookup, found: &mut Vec<Diagnostic>) {
    let Ok(fields) = fields(expr, scope, &eval) else { return };
    let Ok(variable) = build(expr.call, &fields) else { return };
    for note in variable.notes() {
        let at = fields.iter().rev().find(|(n, _, _)| *n == note.parameter).map_or(expr.span, |(_, _, s)| *s);
        let warning = Diagnostic::warning(Code::Ignored, at, note.message.clone())
            .help("`wmlrun list distributions` shows what each parameter means");
        if !found.contains(&warning) {
            diag::push(found, warning);
        }
    }
}

/// The parameters of random variables that are fractions whatever is drawn: the others are as often sizes.
const FRACTIONS: [&str; 3] = ["theta", "shape", "h"];

/// Evaluates the parameters of a random variable.
fn fields<'a>(
    expr: &'a RandomExpr,
    scope: &dyn Lookup,
    eval: Eval<'_>,
) -> Result<Vec<(&'a str, ModelValue, Span)>, Diagnostic> {
    let own = expr.fields.iter().filter(|(name, _)| name.node != "name");
    own.map(|(name, value)| {
        let eval: Eval<'_> = if FRACTIONS.contains(&name.node.as_str()) { &eval_exact } else { eval };
        Ok((name.node.as_str(), eval(value, scope)?, value.span))
    })
    .collect()
}

fn build(call: RandomCall, fields: &[(&str, ModelValue, Span)]) -> Result<random::RandomVar, Bad> {
    match call {
        RandomCall::Randvar => randvar(fields),
        RandomCall::Cvar => cvar(fields),
    }
}

fn random_variable(
    expr: &RandomExpr,
    used_at: Span,
    scope: &dyn Lookup,
    eval: Eval<'_>,
) -> Result<Quantity, Diagnostic> {
    let fields = fields(expr, scope, eval)?;
    let built = build(expr.call, &fields);
    built.map(|v| Quantity::Random(Arc::new(v))).map_err(|bad| match bad {
        Bad::ModelValue(d) => *d,
        Bad::Distribution(bad) => {
            // A parameter that is not an attribute is a part of `parameters=`.
            let named = |name: &str| fields.iter().rev().find(|(n, _, _)| *n == name);
            let at = named(bad.parameter()).or_else(|| named("parameters")).map_or(expr.span, |(_, _, s)| *s);
            let mut d = Diagnostic::error(Code::BadDistribution, at, bad.to_string());
            if let Some((name, known)) = bad.unknown() {
                d = d.near_miss(name, known.iter().map(String::as_str));
            }
            if let BadDistribution::NotANumber { value, .. } = &bad
                && value.starts_with(|c: char| c.is_ascii_digit())
            {
                d = d.help(WITH_UNIT);
            }
            d = d.or_help("`wmlrun list distributions` shows all with their parameters");
            if at == used_at { d } else { d.also(used_at, "used here") }
        }
    })
}

enum Bad {
    ModelValue(Box<Diagnostic>),
    Distribution(BadDistribution),
}

impl From<BadDistribution> for Bad {
    fn from(bad: BadDistribution) -> Self {
        Self::Distribution(bad)
    }
}

fn real(name: &str, value: &ModelValue, span: Span) -> Result<f64, Bad> {
    value.as_parameter().ok_or_else(|| {
        let message = format!("`{name}` of a random variable is {}", value.kind());
        Bad::ModelValue(Box::new(Diagnostic::error(Code::WrongType, span, message).help("give a number")))
    })
}

/// A parameter of a random variable that is a whole number.
fn whole(name: &str, value: &ModelValue, span: Span) -> Result<u64, Bad> {
    let attr = wml_language::spec::find_attr(wml_language::spec::attrs::RANDVAR, name);
    match attr.zip(value.fraction()).and_then(|(attr, x)| wml_language::model::fit::fraction(attr, x, span)) {
        Some(d) => Err(Bad::ModelValue(Box::new(d))),
        None => real(name, value, span).map(|x| x.round() as u64),
    }
}

fn randvar(fields: &[(&str, ModelValue, Span)]) -> Result<random::RandomVar, Bad> {
    let mut params = RandvarParams::default();
    for (name, value, span) in fields {
        match *name {
            "type" => params.kind = Some(random::RandvarKind::named(&value.print())?),
            "randsrc" => {}
            "seed" => params.seed = Some(whole(name, value, *span)?),
            "min" => params.min = real(name, value, *span)?,
            "max" => params.max = Some(real(name, value, *span)?),
            "mean" => params.mean = Some(real(name, value, *span)?),
            "gamma" => params.gamma = Some(whole(name, value, *span)?),
            "round" => params.round = whole(name, value, *span)?,
            "randtable" => params.table = table(value, *span)?,
            other => params.named.push((other.to_owned(), real(name, value, *span)?)),
        }
    }
    Ok(random::randvar(&params)?)
}

fn table(value: &ModelValue, span: Span) -> Result<Vec<(u64, u64, u64)>, Bad> {
    let wrong = || {
        let d = Diagnostic::error(Code::WrongType, span, "a row of `randtable` does not have three numbers");
        Bad::ModelValue(Box::new(d.help("write rows `{per cent, low, high}`")))
    };
    let ModelValue::Table(rows) = value else { return Err(wrong()) };
    if let Some(cell) = rows.iter().flatten().find(|cell| ModelValue::Float(**cell).fraction().is_some()) {
        let d = Diagnostic::error(Code::WrongType, span, format!("a cell of `randtable` is {cell}"));
        return Err(Bad::ModelValue(Box::new(d.help("give whole numbers: `{per cent, low, high}`"))));
    }
    rows.iter()
        .map(|row| match row.as_slice() {
            [percent, low, high] => Ok((percent.round() as u64, low.round() as u64, high.round() as u64)),
            _ => Err(wrong()),
        })
        .collect()
}

fn cvar(fields: &[(&str, ModelValue, Span)]) -> Result<random::RandomVar, Bad> {
    let (mut kind, mut parameters) = (String::new(), String::new());
    let (mut min, mut max, mut round) = (None, None, None);
    for (name, value, span) in fields {
        match *name {
            "type" => kind = value.print(),
            "parameters" => parameters = value.print(),
            "min" => min = Some(real(name, value, *span)?),
            "max" => max = Some(real(name, value, *span)?),
            "round" => round = Some(real(name, value, *span)?),
            _ => {}
        }
    }
    Ok(random::cvar(&kind, &parameters, min, max, round)?)
}
