//! The script as it stands: definitions as they were written, variables with the values that they have now.

use super::{Prompt, shell};
use crate::diag::{self, Code, Diagnostic, Severity};
use crate::model::{self, Expr, Known, RandomCall, SetBy};
use crate::session::{Front, Session, Settings, Status};
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::spec::Dialect;
use crate::spec::predefined::predefined_names;
use crate::syntax::ast::Operator;
use crate::syntax::{self, Token};
use std::fmt::Write as _;
use std::sync::Arc;

/// An expression as it was written, if that still is what it is; else spelt out.
pub(super) fn spelled(map: &SourceMap, expr: &Spanned<Expr>) -> String {
    let text = if expr.span.end > expr.span.start { map.slice(expr.span) } else { "" };
    let one_line = !text.is_empty() && !text.contains('\n') && !text.contains('#');
    if one_line && reads_as(text, &expr.node) { text.to_owned() } else { written(&expr.node) }
}

/// Whether a text behind `set $x=` means this expression.
fn reads_as(text: &str, expr: &Expr) -> bool {
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
            written(&model::expr::from_ast(value).node) == written(expr)
        }
        _ => false,
    }
}

/// An expression in the words of the language.
fn written(expr: &Expr) -> String {
    match expr {
        Expr::Bool(b) => b.to_string(),
        Expr::Int(n) => n.to_string(),
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
            format!("{} {sign} {}", written(&b.0.node), written(&b.2.node))
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
                .map(|row| format!("{{{}}}", row.iter().map(|c| written(&c.node)).collect::<Vec<_>>().join(",")))
                .collect();
            format!("{{{}}}", rows.join(","))
        }
    }
}

/// A field of a random variable: a name, such as that of its type, needs no quotes.
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
        other => written(other),
    }
}

/// A definition as it was written, with its block if it has one.
fn definition(map: &SourceMap, span: Span, block: bool) -> &str {
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

/// A script in the formatter's layout.
fn laid_out(text: &str) -> String {
    let mut map = SourceMap::new();
    let file: FileId = map.add("saved script", text);
    // Every statement was read before; should they not fit together, the text as it is shows where.
    syntax::format(&map, file).unwrap_or_else(|_| text.to_owned())
}

/// Where a script has mistakes: what `wmlrun check` calls errors.
fn mistakes(text: &str) -> Vec<usize> {
    let mut session = Session::new(Settings::default(), Arc::default());
    let file = session.map.add("saved script", text);
    let known = Known { variables: predefined_names().collect(), ..Known::default() };
    let (model, mut found) = model::check(&session.map, file, &session.table, None, &known);
    if !diag::has_errors(&found) {
        found.extend(session.check_values(&model, ""));
    }
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    // What is wrong elsewhere stands in no statement.
    errors.map(|d| if d.primary.span.file == file { d.primary.span.start as usize } else { usize::MAX }).collect()
}

impl Prompt {
    /// `show` and `show NAME`.
    pub(super) fn show(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<Status, Box<Diagnostic>> {
        if argument.node.is_empty() {
            let text = self.script_now(front);
            front.line(text.trim_end());
            return Ok(Status::Done);
        }
        let name = argument.node.trim_start_matches('$');
        if let Some(binding) = self.session.scope.binding(name) {
            front.line(&format!("set ${name} = {}", spelled(&self.session.map, &binding.value)));
            return Ok(Status::Done);
        }
        let named = self.named_definitions();
        if let Some((_, span, block)) = named.iter().find(|(n, ..)| n == name) {
            front.line(definition(&self.session.map, *span, *block));
            return Ok(Status::Done);
        }
        let known = named.iter().map(|(n, ..)| n.as_str()).chain(self.session.scope.names());
        let d = Diagnostic::error(Code::BadArgument, argument.span, format!("nothing here is called `{name}`"));
        Err(Box::new(match diag::nearest(name, known) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("`show` prints all there is"),
        }))
    }

    /// Name and place of each definition, and whether it has a block.
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

    /// The script as it stands, with whatever is wrong in it.
    pub(super) fn script_now(&mut self, front: &mut dyn Front) -> String {
        laid_out(&self.statements_now(front).concat())
    }

    /// The script as it stands without what would be refused, such as a `set` that names a variable which is not set; and the
    /// first lines of what was left out. `None` if what is left would be refused too.
    pub(super) fn script_that_checks(&mut self, front: &mut dyn Front) -> Option<(String, Vec<String>)> {
        let mut statements = self.statements_now(front);
        let mut left_out = Vec::new();
        loop {
            let text = statements.concat();
            let wrong = mistakes(&text);
            if wrong.is_empty() {
                return Some((laid_out(&text), left_out));
            }
            let (mut end, mut kept) = (0, Vec::new());
            for (n, statement) in statements.iter().enumerate() {
                let start = end;
                end += statement.len();
                // The head has no statement in it.
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

    /// A head of comments, then the statements that make the session what it is, each with the end of its line.
    fn statements_now(&mut self, front: &mut dyn Front) -> Vec<String> {
        let (dialect, mixed) = self.dialects();
        if mixed {
            front.note(&format!(
                "the definitions are of both dialects; as one script they are read as {dialect}, which may change sizes and ends"
            ));
        }
        let mut head = format!("{}.\n#\n", shell::SAVED);
        let seed = self.session.runner.settings.seed;
        let layout = match self.session.runner.settings.layout_seed {
            1 => String::new(),
            other => format!(" --layout-seed {other}"),
        };
        let _ = writeln!(head, "# `wmlrun --seed {seed}{layout} FILE` does what the session did.");
        let _ = writeln!(head, "#\n# dialect: {dialect}\n");
        let mut out = vec![head];
        if self.session.options.mode != model::QuitMode::default() {
            out.push(format!("set mode quit {}\n", self.session.options.mode.name()));
        }
        for binding in self.session.scope.bindings().filter(|b| b.by != SetBy::Default) {
            out.push(format!("set ${}={}\n", binding.name, spelled(&self.session.map, &binding.value)));
        }
        let d = &self.session.definitions;
        // What is used stands before its use.
        let filesets = d.filesets.iter().map(|f| (f.span, false));
        let blocks =
            d.composites.iter().map(|c| c.span).chain(d.processes.iter().map(|p| p.span)).map(|span| (span, true));
        for (span, block) in filesets.chain(blocks) {
            out.push(format!("\n{}\n", definition(&self.session.map, span, block)));
        }
        if let Some(rate) = &self.session.options.event_rate {
            out.push(format!("\neventgen rate={}\n", spelled(&self.session.map, rate)));
        }
        if self.session.options.lathist {
            out.push("\nenable lathist\n".to_owned());
        }
        for usage in &self.session.loaded.usage {
            out.push(format!("\nusage {}\n", written(&usage.node)));
        }
        let default = self.session.options.default_seconds.as_ref().map(|s| spelled(&self.session.map, s));
        let last = self.session.options.last;
        let seconds = last.and_then(|run| run.length).map(|length| length.as_secs_f64().to_string()).or(default);
        let as_is = if last.is_some_and(|run| run.as_is) { " as-is" } else { "" };
        if let Some(seconds) = seconds.filter(|_| !d.processes.is_empty()) {
            out.push(format!("\nrun {seconds}{as_is}\n"));
        }
        out
    }

    /// The dialect of most weight, and whether the definitions have more than one.
    fn dialects(&self) -> (Dialect, bool) {
        let d = &self.session.definitions;
        let all: Vec<Dialect> =
            d.filesets.iter().map(|f| f.dialect).chain(d.processes.iter().map(|p| p.dialect)).collect();
        let first = all.first().copied().unwrap_or(self.session.loaded.dialect);
        (first, all.iter().any(|other| *other != first))
    }
}
