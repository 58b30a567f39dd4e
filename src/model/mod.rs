//! AST to a checked model: commands in order, definitions with expressions.
//!
//! In: nested statements and the spec table. Out: [`Command`]s, and all mistakes at once. Pure: no files, no clock, no threads.
//! Deliberately absent: values. They are known when a run starts, and `plan` asks for them then.

pub mod build;
pub mod check;
pub mod expr;
pub mod fit;
pub mod lint;
mod provenance;
pub mod scope;

pub use crate::syntax::ast::TextPart;
pub use expr::{Expr, Lookup, ModelValue, RandomCall, RandomExpr, eval};
pub use provenance::with_provenance;
pub use scope::{Locals, Scope, SetBy};

use crate::diag::{self, Diagnostic};
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::spec::{Attr, Dialect, Flowop, SpecTable};
use std::sync::Arc;

/// A source text, checked.
#[derive(Clone, Debug)]
pub struct Model {
    /// Which text.
    pub file: FileId,
    /// Its dialect; definitions keep it.
    pub dialect: Dialect,
    /// How that was told.
    pub dialect_reason: String,
    /// In the order of writing.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Clone, Debug)]
pub struct Command {
    /// Where it was written.
    pub span: Span,
    /// What to do.
    pub kind: CommandKind,
}

/// What `create`, `shutdown` and `list` work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// File sets.
    Files,
    /// Processes.
    Processes,
    /// Flowops.
    Flowops,
    /// Nothing was named.
    All,
}

/// What ends a run besides its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QuitMode {
    /// The time, and an error.
    #[default]
    Timeout,
    /// The end of all threads.
    AllDone,
    /// The end of one thread.
    FirstDone,
}

impl QuitMode {
    /// The word in `set mode quit …`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::AllDone => "alldone",
            Self::FirstDone => "firstdone",
        }
    }
}

/// What `stats` does.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the words of the language")]
pub enum Stats {
    Clear,
    Snap,
    Dump(Spanned<Expr>),
    XmlDump(Spanned<Expr>),
    MultiDump(Spanned<Expr>),
    Directory(Spanned<Expr>),
    Command(Spanned<Expr>),
}

/// What a command does.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the words of the language")]
pub enum CommandKind {
    Set { name: Spanned<String>, value: Spanned<Expr> },
    SetField { name: Spanned<String>, field: Spanned<String>, value: Spanned<Expr> },
    SetMode(QuitMode),
    SetNoUseStats,
    DefineFileset(Arc<FilesetDef>),
    DefineProcess(Arc<ProcessDef>),
    DefineFlowop(Arc<CompositeDef>),
    Create(Object),
    Run { seconds: Option<Spanned<Expr>>, as_is: bool },
    PsRun { period: Option<Spanned<Expr>>, seconds: Option<Spanned<Expr>>, as_is: bool },
    Sleep(Spanned<Expr>),
    Warmup(Spanned<Expr>),
    System(Spanned<Expr>),
    Echo(Spanned<Expr>),
    Log(Spanned<Expr>),
    Usage(Spanned<Expr>),
    Help,
    Vars,
    Version,
    EventGen(Option<Spanned<Expr>>),
    EnableLatHist,
    EnableMulti,
    DoMultiSync,
    List(Object),
    Stats(Stats),
    Shutdown(Object),
    Load(Spanned<Expr>),
    ForEach { name: Spanned<String>, values: Vec<Spanned<Expr>>, body: Vec<Command> },
    FsCheck { path: Option<Spanned<Expr>>, fstype: Option<Spanned<Expr>> },
    FsFlush,
    Debug,
    Quit,
}

/// Attributes as written, each checked against its descriptor as far as that goes without values.
#[derive(Clone, Default, Debug)]
pub struct Attrs {
    items: Vec<AttrUse>,
}

/// One attribute in use.
#[derive(Clone, Debug)]
pub struct AttrUse {
    /// Its descriptor.
    pub attr: &'static Attr,
    /// Where its name stands.
    pub at: Span,
    /// Its value; `true` where it stands alone.
    pub value: Spanned<Expr>,
    /// Whether it stands alone.
    pub alone: bool,
}

impl Attrs {
    /// The last one of that name.
    pub fn get(&self, name: &str) -> Option<&AttrUse> {
        self.items.iter().rev().find(|u| u.attr.name == name)
    }

    /// All, in the order of writing.
    pub fn iter(&self) -> impl Iterator<Item = &AttrUse> {
        self.items.iter()
    }

    /// The value of `name=`, if it is a plain word or string.
    pub fn constant_text(&self, name: &str) -> Option<Spanned<String>> {
        let used = self.get(name)?;
        match &used.value.node {
            Expr::Text(parts) => expr::plain_text(parts).map(|text| Spanned::new(text, used.value.span)),
            Expr::Int(n) => Some(Spanned::new(n.to_string(), used.value.span)),
            Expr::Bool(b) if !used.alone => Some(Spanned::new(b.to_string(), used.value.span)),
            _ => None,
        }
    }
}

/// `define fileset` or `define file`.
#[derive(Clone, Debug)]
pub struct FilesetDef {
    /// `define file`.
    pub single: bool,
    /// What was written.
    pub attrs: Attrs,
    /// Decides defaults and sizes.
    pub dialect: Dialect,
    /// The whole statement.
    pub span: Span,
}

/// `define process`.
#[derive(Clone, Debug)]
pub struct ProcessDef {
    /// What was written.
    pub attrs: Attrs,
    /// Its threads.
    pub threads: Vec<ThreadDef>,
    /// Decides what `finishoncount` ends, and more.
    pub dialect: Dialect,
    /// The first line.
    pub span: Span,
}

/// `thread`.
#[derive(Clone, Debug)]
pub struct ThreadDef {
    /// What was written.
    pub attrs: Attrs,
    /// Its loop.
    pub flowops: Vec<FlowopDef>,
    /// The first line.
    pub span: Span,
}

/// A use of a flowop.
#[derive(Clone, Debug)]
pub struct FlowopDef {
    /// Its type: a built-in flowop, or a composite.
    pub kind: Spanned<String>,
    /// The descriptor of a built-in flowop.
    pub spec: Option<&'static Flowop>,
    /// What was written.
    pub attrs: Attrs,
    /// `$p=v` and `$p`, for composites.
    pub locals: Vec<Local>,
    /// The whole statement.
    pub span: Span,
}

/// A local variable of a composite flowop: a parameter at the definition, an argument at the use.
#[derive(Clone, Debug)]
pub struct Local {
    /// Without `$`.
    pub name: Spanned<String>,
    /// Default, or argument.
    pub value: Option<Spanned<Expr>>,
}

/// `define flowop`.
#[derive(Clone, Debug)]
pub struct CompositeDef {
    /// The new flowop.
    pub name: Spanned<String>,
    /// What was written.
    pub attrs: Attrs,
    /// Parameters.
    pub parameters: Vec<Local>,
    /// Its body.
    pub flowops: Vec<FlowopDef>,
    /// The first line.
    pub span: Span,
}

/// What a session knows before a text is checked: the text may refer to it.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// File sets.
    pub filesets: Vec<String>,
    /// Composite flowops.
    pub composites: Vec<String>,
    /// Names of flowop instances.
    pub targets: Vec<String>,
    /// Variables.
    pub variables: Vec<String>,
    /// Names may still come: a prompt, not a whole script.
    pub open: bool,
}

/// The one door: text to model, with all mistakes of all stages before values.
pub fn check(
    map: &SourceMap,
    file: FileId,
    table: &SpecTable,
    dialect: Option<Dialect>,
    known: &Known,
) -> (Model, Vec<Diagnostic>) {
    let (ast, mut found) = crate::syntax::parse(map, file);
    let detected = crate::syntax::dialect::detect(map, &ast);
    let (dialect, reason) = if let Some(d) = dialect {
        (d, "given on the command line".to_owned())
    } else {
        detected.diagnostics.into_iter().for_each(|d| diag::push(&mut found, d));
        (detected.dialect, detected.reason)
    };
    // For what follows from a mistake only the spans of the statements count.
    let spans = ast.spans();
    let (nodes, nesting) = crate::syntax::nest(ast);
    nesting.into_iter().for_each(|d| diag::push(&mut found, d));
    let mut later = Vec::new();
    let commands = build::build(&nodes, table, dialect, known, &mut later);
    drop(nodes);
    let model = Model { file, dialect, dialect_reason: reason, commands };
    check::check(&model, table, known, &mut later);
    let later = crate::syntax::without_follow_ons(&spans, &found, later);
    found.extend(later);
    found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    (model, found)
}
