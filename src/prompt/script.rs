//! `show` and `save`: the current script, with definitions as written and variables with their current values.
//! Attributes that were read at a definition have their values.

use super::{Prompt, shell};
use crate::diag::{self, Code, Diagnostic, Severity};
use crate::model::scope::Binding;
use crate::model::visit::{self, CommandPart};
use crate::model::{self, Expr, Known, RandomCall, SetBy};
use crate::session::{CommandError, Front, Session, Settings};
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::spec::Dialect;
use crate::spec::predefined::predefined_names;
use crate::syntax::ast::Operator;
use crate::syntax::{self, Token};
use std::fmt::Write as _;
use std::sync::Arc;

/// Returns the source text of an expression if parsing it gives the same expression; otherwise generates it.
pub(super) fn source_text(map: &SourceMap, expr: &Spanned<Expr>) -> String {
    let text = if expr.span.end > expr.span.start { map.slice(expr.span) } else { "" };
    let one_line = !text.is_empty() && !text.contains('\n') && !text.contains('#');
    if one_line && parses_as(text, &expr.node) { text.to_owned() } else { generate(&expr.node) }
}

/// Returns all variables with their values as source text.
pub(super) fn variables(session: &Session) -> Vec<(String, String)> {
    let scope = &session.scope;
    let set = scope.bindings().map(|b| (b.name.clone(), source_text(&session.map, &b.value)));
    let free = scope.names().filter(|name| scope.binding(name).is_none());
    set.chain(free.filter_map(|name| Some((name.to_owned(), scope.predefined(name)?.print())))).collect()
}

/// Returns the value of a variable as source text, followed by the value now if it depends on other variables.
pub(super) fn shown_value(session: &Session, binding: &Binding) -> String {
    let now = || session.scope.value(&binding.name).and_then(Result::ok).map(|now| now.print());
    // A default has no source text.
    if binding.by == SetBy::Default {
        return now().unwrap_or_default();
    }
    let text = source_text(&session.map, &binding.value);
    let depends = matches!(binding.value.node, Expr::Var(_) | Expr::Binary(_));
    let exact = model::eval_exact(&binding.value, &session.scope).ok().map(|exact| exact.print());
    match now().filter(|_| depends) {
        Some(now) if exact.as_ref().is_some_and(|exact| *exact != now) => {
            format!("{text} = {now}, as a rate, weight or time {}", exact.unwrap_or_default())
        }
        Some(now) => format!("{text} = {now}"),
        None => text,
    }
}

/// True if a text after `set $x=` parses as this expression.
fn parses_as(text: &str, expr: &Expr) -> bool {
    let mut map = SourceMap::new();
    let file = map.add("", format!("set $x={text}"));
    let (ast, found) = syntax::parse(&map, file);
    let [syntax::ast::Statement { kind: syntax::ast::StatementKind::Command { args, .. }, .. }] =
        ast.statements.as_slice()
    else {
        return false;
    };
    match args.as_slice() {
        [syntax::ast::Arg { kind: syntax::ast::ArgKind::Assign { value, .. }, .. }] if found.is_empty() => {
            generate(&model::expr::from_ast(value).node) == generate(expr)
        }
        _ => false,
    }
}

/// Generates the source text of an expression.
fn generate(expr: &Expr) -> String {
    match expr {
        Expr::Bool(b) => b.to_string(),
        Expr::Int(n) => n.to_string(),
        // The point distinguishes `7.0` from `7`.
        Expr::Float(x) if x.fract() == 0.0 => format!("{x:.1}"),
        Expr::Float(x) => x.to_string(),
        Expr::Text(parts) => syntax::print::text(parts),
        Expr::Var(v) => model::expr::show(v),
        Expr::Binary(b) => {
            let sign = match b.1 {
                Operator::Add => '+',
                Operator::Subtract => '-',
                Operator::Multiply => '*',
                Operator::Divide => '/',
            };
            format!("{} {sign} {}", generate(&b.0.node), generate(&b.2.node))
        }
        Expr::Random(r) => {
            let call = if r.call == RandomCall::Cvar { "cvar" } else { "randvar" };
            let own: Vec<String> = r
                .fields
                .iter()
                .filter(|(name, _)| name.node != "name")
                .map(|(name, value)| format!("{}={}", name.node, field(&value.node)))
                .collect();
            format!("{call}({})", own.join(","))
        }
        Expr::Table(rows) => {
            let rows: Vec<String> = rows
                .iter()
                .map(|row| format!("{{{}}}", row.iter().map(|c| generate(&c.node)).collect::<Vec<_>>().join(",")))
                .collect();
            format!("{{{}}}", rows.join(","))
        }
        // Source text has one value. Where a whole number is needed, a fraction is an error that is seen.
        Expr::Evaluated(values) => generate(&values[1].node),
    }
}

/// Generates the value of a field of a random variable. A plain name, such as that of its type, needs no quotes.
fn field(expr: &Expr) -> String {
    let bare = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !matches!(text, "true" | "false")
    };
    match expr {
        Expr::Text(parts) => {
            model::expr::plain_text(parts).filter(|t| bare(t)).unwrap_or_else(|| syntax::print::text(parts))
        }
        other => generate(other),
    }
}

/// Returns the source text of a definition, including its block if it has one.
pub(crate) fn definition(map: &SourceMap, span: Span, block: bool) -> &str {
    if !block {
        return map.slice(span);
    }
    let text = &map.file(span.file).text;
    let start = span.start as usize;
    let (mut depth, mut opened) = (0_usize, false);
    for (token, at) in syntax::lex(span.file, text).tokens {
        if (at.start as usize) < start {
            continue;
        }
        match token {
            Token::Open => (depth, opened) = (depth + 1, true),
            Token::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        if opened && depth == 0 {
            return text.get(start..at.end as usize).unwrap_or("");
        }
    }
    map.slice(span)
}

/// Returns the place and the source text of an attribute that was read at its definition.
fn early_value(part: CommandPart<'_>) -> Option<(Span, String)> {
    match part {
        CommandPart::Attr(used, _) if used.early => Some((used.value.span, generate(&used.value.node))),
        _ => None,
    }
}

/// Returns a text that begins at the offset `start` of its file, with values in their places.
fn with_values(text: &str, start: u32, mut values: Vec<(Span, String)>) -> String {
    // From the end, so that the places of the others stay right.
    values.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(at.start));
    let mut text = text.to_owned();
    for (at, value) in values {
        let place = at.start.saturating_sub(start) as usize..at.end.saturating_sub(start) as usize;
        if text.get(place.clone()).is_some() {
            text.replace_range(place, &value);
        }
    }
    text
}

/// Formats a script.
fn formatted(text: &str) -> String {
    let mut map = SourceMap::new();
    let file: FileId = map.add("saved script", text);
    // Each statement was parsed before. If the whole does not parse, return it unformatted, so that errors are visible.
    syntax::format(&map, file).unwrap_or_else(|_| text.to_owned())
}

/// Returns the byte offsets of the errors that `wmlrun check` reports for a script. An error outside it gives
/// `usize::MAX`.
fn error_offsets(text: &str) -> Vec<usize> {
    let mut session = Session::new(Settings::default(), Arc::default());
    let file = session.map.add("saved script", text);
    let known = Known { variables: predefined_names().collect(), ..Known::default() };
    let (model, mut found) = model::check(&session.map, file, &session.table, None, &known);
    if !diag::has_errors(&found) {
        found.extend(session.check_values(&model, ""));
    }
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    // An error in another file belongs to no statement of this script.
    errors.map(|d| if d.primary.span.file == file { d.primary.span.start as usize } else { usize::MAX }).collect()
}

impl Prompt {
    /// Executes `show [NAME]`.
    pub(super) fn show(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        if argument.node.is_empty() {
            let text = self.current_script(front);
            front.line(text.trim_end());
            return Ok(());
        }
        let name = argument.node.trim_start_matches('$');
        if let Some(binding) = self.session.scope.binding(name) {
            front.line(&format!("set ${name} = {}", source_text(&self.session.map, &binding.value)));
            return Ok(());
        }
        let named = self.named_definitions();
        if let Some((_, span, block)) = named.iter().find(|(n, ..)| n == name) {
            front.line(definition(&self.session.map, *span, *block));
            return Ok(());
        }
        let known = named.iter().map(|(n, ..)| n.as_str()).chain(self.session.scope.names());
        let d =
            Diagnostic::error(Code::BadArgument, argument.span, format!("no variable or definition is named `{name}`"));
        Err(d
            .help(diag::did_you_mean(diag::nearest(name, known), || "`show` prints the whole script".to_owned()))
            .into())
    }

    /// Returns the name and span of each definition, and whether it has a block.
    fn named_definitions(&self) -> Vec<(String, Span, bool)> {
        let d = &self.session.definitions;
        let filesets = d.filesets.iter().map(|f| (&f.attrs, f.span, false));
        let processes = d.processes.iter().map(|p| (&p.attrs, p.span, true));
        let composites = d.composites.iter().map(|c| (c.name.node.clone(), c.span, true));
        let named = filesets.chain(processes);
        named
            .filter_map(|(attrs, span, block)| Some((attrs.constant_text("name")?.node, span, block)))
            .chain(composites)
            .collect()
    }

    /// Returns the current script, including invalid statements.
    pub(super) fn current_script(&mut self, front: &mut dyn Front) -> String {
        formatted(&statements_of(&self.session, front).concat())
    }

    /// Returns the current script without invalid statements, such as a `set` that uses an undefined variable, and the
    /// first lines of the omitted statements. Returns `None` if the rest is invalid too.
    pub(super) fn valid_script(&mut self, front: &mut dyn Front) -> Option<(String, Vec<String>)> {
        let mut statements = statements_of(&self.session, front);
        let mut left_out = Vec::new();
        loop {
            let text = statements.concat();
            let wrong = error_offsets(&text);
            if wrong.is_empty() {
                return Some((formatted(&text), left_out));
            }
            let (mut end, mut kept) = (0, Vec::new());
            for (n, statement) in statements.iter().enumerate() {
                let start = end;
                end += statement.len();
                // Statement 0 is the header, which consists of comments.
                if n > 0 && wrong.iter().any(|at| (start..end).contains(at)) {
                    left_out.push(statement.trim().lines().next().unwrap_or_default().to_owned());
                } else {
                    kept.push(statement.clone());
                }
            }
            if kept.len() == statements.len() {
                return None;
            }
            statements = kept;
        }
    }
}

/// Returns a header of comments, then the statements that reproduce the session, each with a line end.
pub(super) fn statements_of(session: &Session, front: &mut dyn Front) -> Vec<String> {
    let (dialect, mixed) = dialects(session);
    if mixed {
        front.note(&format!(
            "the definitions use both dialects; the script is written as {dialect}, which may change sizes and ends"
        ));
    }
    let mut head = format!("{}.\n#\n", shell::SAVED_HEADER);
    let seed = session.runner.settings.seed;
    let layout = match session.runner.settings.layout_seed {
        1 => String::new(),
        other => format!(" --layout-seed {other}"),
    };
    let _ = writeln!(head, "# `wmlrun --seed {seed}{layout} FILE` runs it with the seed of the session.");
    let _ = writeln!(head, "#\n# dialect: {dialect}\n");
    let mut out = vec![head];
    if session.options.mode != model::QuitMode::default() {
        out.push(format!("set mode quit {}\n", session.options.mode.name()));
    }
    for binding in session.scope.bindings().filter(|b| b.by != SetBy::Default) {
        out.push(format!("set ${}={}\n", binding.name, source_text(&session.map, &binding.value)));
    }
    let d = &session.definitions;
    let mut define = |span: Span, block: bool, values: Vec<(Span, String)>| {
        let text = definition(&session.map, span, block);
        out.push(format!("\n{}\n", with_values(text, span.start, values)));
    };
    // Definitions precede their uses.
    for def in &d.filesets {
        let mut values = Vec::new();
        visit::of_fileset(def, &mut |part| values.extend(early_value(part)));
        define(def.span, false, values);
    }
    for def in &d.composites {
        let mut values = Vec::new();
        visit::of_composite(def, &mut |part| values.extend(early_value(part)));
        define(def.span, true, values);
    }
    for def in &d.processes {
        let mut values = Vec::new();
        visit::of_process(def, &mut |part| values.extend(early_value(part)));
        define(def.span, true, values);
    }
    if let Some(rate) = &session.options.event_rate {
        out.push(format!("\neventgen rate={}\n", source_text(&session.map, rate)));
    }
    if session.options.lathist {
        out.push("\nenable lathist\n".to_owned());
    }
    for usage in &session.loaded.usage {
        out.push(format!("\nusage {}\n", generate(&usage.node)));
    }
    let default = session.options.default_seconds.as_ref().map(|s| source_text(&session.map, s));
    let last = session.options.last;
    let seconds = last.and_then(|run| run.length).map(|length| length.as_secs_f64().to_string()).or(default);
    let as_is = if last.is_some_and(|run| run.as_is) { " as-is" } else { "" };
    if let Some(seconds) = seconds.filter(|_| !d.processes.is_empty()) {
        out.push(format!("\nrun {seconds}{as_is}\n"));
    }
    out
}

/// Returns the dialect of the first definition, and whether other definitions use another one.
fn dialects(session: &Session) -> (Dialect, bool) {
    let d = &session.definitions;
    let all: Vec<Dialect> = d.filesets.iter().map(|f| f.dialect).chain(d.processes.iter().map(|p| p.dialect)).collect();
    let first = all.first().copied().unwrap_or(session.loaded.dialect);
    (first, all.iter().any(|other| *other != first))
}
