//! Detects the generation of Filebench that a script is written for.
//!
//! A line `# dialect: sun|fsl` in the leading comment decides. Else each construct that only one generation accepts is
//! a sign of that generation. Without one that the parser of the other generation refuses, a script is sun if it would do
//! nothing as fsl; else the weaker signs decide, such as what follows the last `run`, which 1.5 never reads. A script
//! without signs, or with signs of both, is fsl; the latter with a warning if the difference affects it. Deliberately
//! absent: the semantics of the dialects (`spec::dialect`).

use super::ast::{
    Arg, ArgKind, Ast, Number, Operator, Statement, StatementKind, TextPart, Value, Variable, VariableForm,
};
use super::idle;
use crate::diag::{self, Code, Diagnostic, nearest};
use crate::source::{SourceMap, Span, Spanned};
use crate::spec::{Dialect, Origin, SpecTable, attrs};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::Path;

/// Signs of each kind that a warning shows.
const SHOWN: usize = 3;

/// Signs of each kind that are kept.
const MOST_SIGNS: usize = 16;

/// Attributes of file sets that before 1.5 a file had too.
const SUN_FILE_ATTRIBUTES: &[&str] = &["entries", "dirwidth", "dirgamma", "dirdepthrv", "leafdirs"];
/// Attributes of threads and of processes that before 1.5 both had.
const SUN_THREAD_ATTRIBUTES: &[&str] = &["memsize", "useism"];
const SUN_PROCESS_ATTRIBUTES: &[&str] = &["nice"];
/// Attributes of `wmlrun` that are signs of fsl. Its other attributes occur in scripts of both dialects.
const OUR_ATTRIBUTES: &[&str] = &["arrival", "dedupe", "for", "iodepth", "phase", "queue", "start", "totalrate"];

/// The dialect of a script, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Detected {
    pub dialect: Dialect,
    /// The reason, for messages: a line, and the construct there.
    pub reason: String,
    /// What differs between the dialects in a script that may be of either, since its signs are weak.
    pub undecided: Option<&'static str>,
    /// Warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// A construct that only one generation accepts.
struct Sign {
    dialect: Dialect,
    span: Span,
    what: String,
    certainty: Certainty,
}

/// How surely the other generation refuses a construct.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// Anything behind the last `run`, where 1.5 stops to read.
    Late,
    /// `psrun`, which versions between 1.4.8 and 1.5 had too; `${x}` and `$(x)`, which 1.5 reads as variables of such
    /// names.
    Possible,
    /// `usage`, which version 1.4.9 had together with constructs of 1.5.
    Likely,
    /// All others.
    Sure,
}

impl Certainty {
    fn sure_if(is_sure: bool) -> Self {
        if is_sure { Self::Sure } else { Self::Possible }
    }
}

/// The signs of a script.
struct DialectSigns<'a> {
    found: Vec<Sign>,
    /// Number of signs of each dialect and certainty.
    counts: [usize; 8],
    /// Whether the last `run` precedes the signs that follow.
    is_late: bool,
    statements: &'a [Statement],
    /// Variables that the script sets to numbers, computed on first use.
    numbers: OnceCell<HashSet<&'a str>>,
}

impl DialectSigns<'_> {
    fn is_number(&self, variable: &str) -> bool {
        self.numbers.get_or_init(|| self.statements.iter().filter_map(number_set).collect()).contains(variable)
    }

    fn push(&mut self, sign: Sign) {
        let certainty = if self.is_late { Certainty::Late } else { sign.certainty };
        let sign = Sign { certainty, ..sign };
        // The first few of each kind decide and are shown.
        let known = sign.certainty as usize + 4 * usize::from(sign.dialect == Dialect::Sun);
        self.counts[known] += 1;
        if self.counts[known] <= MOST_SIGNS {
            self.found.push(sign);
        }
    }
}

/// The variable that a statement sets to a number.
fn number_set(statement: &Statement) -> Option<&str> {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return None };
    args.iter().filter(|_| word.node == "set").find_map(|arg| match &arg.kind {
        ArgKind::Assign { var, value } if matches!(value.node, Value::Number(_)) => Some(var.node.name.as_str()),
        _ => None,
    })
}

/// Determines the dialect of a script. `table` has the origin of each command.
pub fn detect(map: &SourceMap, ast: &Ast, table: &SpecTable) -> Detected {
    let mut diagnostics = Vec::new();
    let header = header(map, ast);
    let chosen = header.as_ref().and_then(|(dialect, _)| dialect.as_ref().ok().copied());
    late(map, ast, chosen, &mut diagnostics);
    match header {
        Some((Ok(dialect), span)) => {
            let reason = format!("line {}: `# dialect: {dialect}`", map.line(span));
            return Detected { dialect, reason, undecided: None, diagnostics };
        }
        Some((Err(written), span)) => {
            let message = format!("unknown dialect `{written}`");
            let diagnostic = Diagnostic::warning(Code::MixedDialect, span, message);
            let names = Dialect::ALL.map(Dialect::name);
            diagnostics.push(match nearest(&written, names) {
                Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
                None => diagnostic.help("the dialects are `sun` (Filebench 1.1 to 1.4) and `fsl` (1.5)"),
            });
        }
        None => {}
    }
    let mut signs = DialectSigns {
        statements: &ast.statements,
        numbers: OnceCell::new(),
        found: Vec::new(),
        counts: [0; 8],
        is_late: false,
    };
    let last_run = ast.statements.iter().rposition(is_run).unwrap_or(usize::MAX);
    for (index, statement) in ast.statements.iter().enumerate() {
        signs.is_late = index > last_run;
        of_statement(statement, table, &mut signs);
    }
    let mut signs = signs.found;
    let matter = ast.statements.iter().find_map(differs);
    // The surer signs of one dialect outweigh those of the other. The unsure one of fsl, `psrun`, does so only where the
    // dialect makes no difference: no version of Sun had it, and the versions between differ in the sizes of files.
    for (one, other) in [(Dialect::Sun, Dialect::Fsl), (Dialect::Fsl, Dialect::Sun)] {
        let surest = |dialect| signs.iter().filter(|sign| sign.dialect == dialect).map(|sign| sign.certainty).max();
        let outweighed = other == Dialect::Sun || matter.is_none() || surest(other) == Some(Certainty::Late);
        if surest(other).is_some() && surest(one) > surest(other) && outweighed {
            signs.retain(|sign| sign.dialect == one);
        }
    }
    let is_weak = signs.iter().all(|sign| sign.certainty <= Certainty::Possible);
    if is_weak && let Some(file) = idle::never_created(ast, table) {
        let reason = format!("line {}: `define file` without `prealloc`, to which 1.5 would not write", map.line(file));
        return Detected { dialect: Dialect::Sun, reason, undecided: matter, diagnostics };
    }
    // A script of Filebench that nothing decides may be of either generation. Others are of this program.
    let name = ast.statements.first().map(|first| map.file(first.span.file).name.as_str());
    let is_of_filebench =
        name.is_some_and(|name| Path::new(name).extension().is_some_and(|extension| extension == "f"));
    let is_of_sun = signs.iter().any(|sign| sign.dialect == Dialect::Sun);
    let undecided = matter.filter(|_| is_weak && (is_of_filebench || is_of_sun));
    let of = |dialect| signs.iter().filter(move |sign| sign.dialect == dialect);
    let line = |sign: &Sign| format!("line {}: {}", map.line(sign.span), sign.what);
    let (dialect, reason) = match (of(Dialect::Sun).next(), of(Dialect::Fsl).next()) {
        (Some(sun), None) => (Dialect::Sun, line(sun)),
        (None, Some(fsl)) => (Dialect::Fsl, line(fsl)),
        (None, None) => (Dialect::Fsl, "no construct in it belongs to one dialect only".to_owned()),
        (Some(sun), Some(fsl)) => {
            let reason = format!("both: {} is of sun, {} is of fsl", line(sun), line(fsl));
            if let Some(matter) = matter {
                let mut diagnostic = Diagnostic::warning(
                    Code::MixedDialect,
                    sun.span,
                    format!(
                        "constructs of both Filebench generations; {matter} differ between them, and `fsl` is taken"
                    ),
                )
                .label("sun");
                for sign in of(Dialect::Sun).skip(1).take(SHOWN - 1).chain(of(Dialect::Fsl).take(SHOWN)) {
                    diagnostic = diagnostic.also(sign.span, sign.dialect.name());
                }
                let help = "put `# dialect: sun` or `# dialect: fsl` into the first comment, or give `--dialect`";
                diagnostics.push(diagnostic.help(help));
            }
            (Dialect::Fsl, reason)
        }
    };
    Detected { dialect, reason, undecided, diagnostics }
}

/// Whether a statement is a run, after which 1.5 ends.
fn is_run(statement: &Statement) -> bool {
    matches!(&statement.kind, StatementKind::Command { word, .. } if matches!(word.node.as_str(), "run" | "psrun"))
}

/// The dialect line of the leading comment, and its place. An error is the name of an unknown dialect.
fn header(map: &SourceMap, ast: &Ast) -> Option<(Result<Dialect, String>, Span)> {
    let mut leading = lines(map, ast).take_while(|(_, line)| line.is_empty() || line.starts_with('#'));
    leading.find_map(|(start, line)| named(ast, start, line))
}

/// Warns of dialect lines that have no effect, because another line or a statement precedes them. One that names the
/// dialect that was chosen is no mistake.
fn late(map: &SourceMap, ast: &Ast, chosen: Option<Dialect>, found: &mut Vec<Diagnostic>) {
    let mut after_header = false;
    for (start, line) in lines(map, ast) {
        after_header |= !line.is_empty() && !line.starts_with('#');
        let Some((dialect, span)) = named(ast, start, line) else { continue };
        // The first one is the header, even if it names no dialect.
        if !std::mem::replace(&mut after_header, true) {
            continue;
        }
        let in_text = |statement: &Statement| statement.span.start < span.start && span.end < statement.span.end;
        // A line in a statement may be a part of a text, and a comment may begin with this word.
        if dialect.is_ok() && dialect.ok() != chosen && !ast.statements.iter().any(in_text) {
            let report = Diagnostic::warning(Code::Ignored, span, "a line `# dialect:` that has no effect");
            let help = "put it before the first statement of the script; the first of several such lines counts";
            diag::push(found, report.help(help));
        }
    }
}

/// The lines of a script, without blanks around them, and their places.
fn lines<'a>(map: &'a SourceMap, ast: &Ast) -> impl Iterator<Item = (usize, &'a str)> {
    let mut end = 0;
    map.file(ast.file).text.split_inclusive('\n').map(move |line| {
        let start = end;
        end += line.len();
        let from = line.trim_start_matches('\u{feff}').trim_start();
        (start + line.len() - from.len(), from.trim_end())
    })
}

/// The dialect that a line `# dialect: NAME` names, and its place. An error is the name of an unknown dialect.
fn named(ast: &Ast, start: usize, line: &str) -> Option<(Result<Dialect, String>, Span)> {
    let name = line.strip_prefix('#')?.trim_start_matches('#').trim_start().strip_prefix("dialect:")?.trim();
    let found = Dialect::find(name).ok_or_else(|| name.to_owned());
    Some((found, Span::new(ast.file, start, start + line.len())))
}

fn of_statement(statement: &Statement, table: &SpecTable, signs: &mut DialectSigns<'_>) {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return };
    let certainty = match word.node.as_str() {
        "psrun" => Certainty::Possible,
        // Filebench 1.4.9 had both `usage` and `cvar`.
        "usage" => Certainty::Likely,
        _ => Certainty::Sure,
    };
    let is_late = signs.is_late;
    let mut sign = |dialect, span, what: String| signs.push(Sign { dialect, span, what, certainty });
    let command = word.node.as_str();
    let object = match args.first().map(|arg| &arg.kind) {
        Some(ArgKind::Bare(Value::Word(object))) => Some(object.as_str()),
        _ => None,
    };
    let head = args.first().map_or(word.span, |arg| word.span.to(arg.span));
    match (command, object) {
        ("psrun", _) => sign(Dialect::Fsl, word.span, "`psrun`".to_owned()),
        // Without an object it has no effect in either.
        ("shutdown", None) => {}
        // People explain their scripts at the end.
        ("usage", _) if is_late => {}
        ("create", Some(object)) if object != "files" => sign(Dialect::Sun, head, format!("`create {object}`")),
        ("enable", Some("lathist")) => sign(Dialect::Fsl, head, "`enable lathist`".to_owned()),
        ("list", None) => sign(Dialect::Sun, word.span, "`list` alone".to_owned()),
        _ => match table.command(command, object) {
            Some(spec) if spec.origin == Origin::Sun => {
                let span = if spec.name == command { word.span } else { head };
                sign(Dialect::Sun, span, format!("`{}`", spec.name));
            }
            _ => {}
        },
    }
    for arg in args {
        of_arg(command, object, arg, signs);
    }
}

fn of_arg(command: &str, object: Option<&str>, arg: &Arg, signs: &mut DialectSigns<'_>) {
    let mut attribute = |name: &str, span: Span| {
        let is_file = command == "define" && matches!(object, Some("file" | "files"));
        let is_process = command == "define" && matches!(object, Some("process" | "processes"));
        let has_attributes = matches!(command, "define" | "thread" | "flowop");
        let origin = attrs::origin(name).filter(|_| has_attributes);
        // It may be a mistake in a script of 1.5.
        let is_misplaced = is_process && SUN_THREAD_ATTRIBUTES.contains(&name)
            || command == "thread" && SUN_PROCESS_ATTRIBUTES.contains(&name);
        let dialect = match origin {
            Some(Origin::Sun) => Dialect::Sun,
            Some(Origin::Fsl) => Dialect::Fsl,
            Some(_) if is_file && SUN_FILE_ATTRIBUTES.contains(&name) => Dialect::Sun,
            Some(_) if is_misplaced => Dialect::Sun,
            Some(_) if OUR_ATTRIBUTES.contains(&name) || (command == "thread" && name == "rate") => Dialect::Fsl,
            _ => return,
        };
        signs.push(Sign { dialect, span, what: format!("`{name}`"), certainty: Certainty::sure_if(!is_misplaced) });
    };
    match &arg.kind {
        ArgKind::Bare(Value::Word(name)) => attribute(name, arg.span),
        ArgKind::Bare(value) => of_value(value, arg.span, signs),
        ArgKind::Named { name, value } => {
            attribute(&name.node, name.span);
            of_value(&value.node, value.span, signs);
        }
        ArgKind::Assign { var, value } => {
            of_variable(&var.node, var.span, signs);
            if command == "set" && matches!(value.node, Value::Variable(_)) {
                let what = "`set` to another variable".to_owned();
                signs.push(Sign { dialect: Dialect::Sun, span: arg.span, what, certainty: Certainty::Sure });
            }
            of_value(&value.node, value.span, signs);
        }
    }
}

fn of_value(value: &Value, span: Span, signs: &mut DialectSigns<'_>) {
    match value {
        Value::Word(_) | Value::Number(_) | Value::Table(_) => {}
        Value::Text(parts) => {
            for part in parts {
                // `.min` may be text here. The definition of a random variable is a sign of its own.
                if let TextPart::Variable(variable) = part
                    && variable.node.field.is_none()
                {
                    of_variable(&variable.node, variable.span, signs);
                }
            }
        }
        Value::Variable(variable) => of_variable(variable, span, signs),
        Value::Binary { left, op: Operator::Divide, right } if may_be_path(left, right, signs) => {}
        Value::Binary { .. } => {
            signs.push(Sign { dialect: Dialect::Sun, span, what: "arithmetic".to_owned(), certainty: Certainty::Sure });
        }
        Value::Call { name, .. } => {
            if matches!(name.node.as_str(), "randvar" | "cvar") {
                signs.push(Sign {
                    dialect: Dialect::Fsl,
                    span: name.span,
                    what: format!("`{}(…)`", name.node),
                    certainty: Certainty::Sure,
                });
            }
        }
    }
}

/// `$dir/$sub` and `$dir/2` may be paths; `$total/$n` and `$dir / $n` are divisions.
fn may_be_path(left: &Spanned<Value>, right: &Spanned<Value>, signs: &DialectSigns<'_>) -> bool {
    let Value::Variable(one) = &left.node else { return false };
    let path = match &right.node {
        Value::Variable(_) => one.name == "dir" || !signs.is_number(&one.name),
        Value::Number(_) => one.name == "dir",
        _ => false,
    };
    path && left.span.end + 1 == right.span.start
}

fn of_variable(variable: &Variable, span: Span, signs: &mut DialectSigns<'_>) {
    let what = match (variable.form, &variable.field) {
        (VariableForm::Plain, Some(field)) => format!("`${}.{field}`", variable.name),
        (VariableForm::Plain, None) => return,
        (VariableForm::Paren, _) => format!("`$({})`", variable.name),
        (VariableForm::Brace, _) => format!("`${{{}}}`", variable.name),
    };
    let certainty = Certainty::sure_if(variable.form == VariableForm::Plain);
    signs.push(Sign { dialect: Dialect::Sun, span, what, certainty });
}

/// The part of a statement whose meaning differs between the dialects, for messages. `None` if there is none.
fn differs(statement: &Statement) -> Option<&'static str> {
    let StatementKind::Command { word, args, .. } = &statement.kind else { return None };
    let has =
        |wanted: &str| args.iter().any(|arg| matches!(&arg.kind, ArgKind::Named { name, .. } if name.node == wanted));
    let number = |wanted: &str| {
        args.iter().find_map(|arg| match &arg.kind {
            ArgKind::Named { name, value } if name.node == wanted => match value.node {
                Value::Number(Number::Int(n)) => Some(n),
                _ => None,
            },
            _ => None,
        })
    };
    let object = match args.first().map(|arg| &arg.kind) {
        Some(ArgKind::Bare(Value::Word(object))) => object.as_str(),
        _ => return None,
    };
    match (word.node.as_str(), object) {
        // Sun draws widths with the gamma of sizes: trees are the same if both gammas are given and equal.
        ("define", "fileset" | "filesets")
            if (has("size") || has("filesize"))
                && number("filesizegamma").is_some_and(|gamma| number("dirgamma") == Some(gamma)) =>
        {
            None
        }
        ("define", object) if object.starts_with("fileset") => Some("sizes and directory widths of file sets"),
        ("define", "file" | "files") if !has("size") && !has("filesize") => Some("default sizes"),
        ("flowop", kind) if kind.starts_with("finishon") => Some("the ends of runs by `finishon…`"),
        ("flowop", _) if has("indexed") => Some("the files that `indexed` picks"),
        _ => None,
    }
}
