//! Checks a syntax tree and converts it to commands and definitions.
//!
//! In: nested statements and the spec table. Out: [`Command`]s, and all errors at once. Pure: no files, no clock, no
//! threads. Deliberately absent: values. `plan` evaluates expressions when a run starts.

pub mod build;
pub mod check;
pub mod commands;
pub mod composites;
mod definitions;
pub mod early;
pub mod expr;
pub mod fit;
mod known;
pub mod lint;
mod provenance;
mod rebound;
pub mod scope;
mod units;
mod unread;
pub mod value;
pub mod visit;

pub use crate::syntax::ast::{TextPart, VariableForm};
pub use definitions::{
    AttrUse, Attrs, Command, CommandKind, CompositeDef, FilesetDef, FlowopDef, Known, Local, Model, Object, ProcessDef,
    QuitMode, Stats, ThreadDef,
};
pub use expr::{Arithmetic, Expr, Lookup, RandomCall, RandomExpr, eval, eval_exact};
pub use provenance::with_provenance;
pub use scope::{Locals, Scope, SetBy, Unset};
pub use value::{Evaluated, ModelValue};

use crate::diag::{self, Diagnostic};
use crate::source::{FileId, SourceMap};
use crate::spec::{Dialect, SpecTable};

/// Lexes, parses and checks a text. Returns the model, and the errors of all these stages. If there are errors after a
/// `quit`, only the text before it is checked, and a warning says so.
pub fn check(
    map: &SourceMap,
    file: FileId,
    table: &SpecTable,
    dialect: Option<Dialect>,
    known: &Known,
) -> (Model, Vec<Diagnostic>) {
    let (model, found) = check_text(map, file, table, dialect, known);
    // A prompt reads statement by statement, and a typed value is no script.
    if known.open {
        return (model, found);
    }
    let Some(part) = unread::read_part(map, file, &found) else { return (model, found) };
    let (model, mut found) = check_text(&part.map, file, table, dialect, known);
    found.push(part.warning);
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    (model, found)
}

/// Checks the whole of a text.
fn check_text(
    map: &SourceMap,
    file: FileId,
    table: &SpecTable,
    dialect: Option<Dialect>,
    known: &Known,
) -> (Model, Vec<Diagnostic>) {
    let (ast, mut found) = crate::syntax::parse(map, file);
    units::check(map, &ast, &mut found);
    let detected = crate::syntax::dialect::detect(map, &ast, table);
    let undecided = detected.undecided.filter(|_| dialect.is_none());
    let (dialect, reason) = if let Some(d) = dialect {
        (d, "given on the command line".to_owned())
    } else {
        detected.diagnostics.into_iter().for_each(|d| diag::push(&mut found, d));
        (detected.dialect, detected.reason)
    };
    // Only the spans of the statements are needed to find the errors that follow from others.
    let spans = ast.spans();
    let (nodes, nesting) = crate::syntax::nest(ast);
    nesting.into_iter().for_each(|d| diag::push(&mut found, d));
    let mut later = Vec::new();
    let mut commands = build::build(&nodes, table, dialect, known, &mut later);
    drop(nodes);
    early::set_early(&mut commands, dialect);
    let model = Model { file, dialect, dialect_reason: reason, undecided, commands };
    check::check(&model, known, &mut later);
    let later = crate::syntax::without_follow_ons(&spans, &found, later);
    found.extend(later);
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    (model, found)
}
