//! What a checked text consists of: its commands and definitions.

use super::expr::{self, Expr};
use crate::source::{FileId, Span, Spanned};
use crate::spec::{Attr, Dialect, Flowop};
use std::sync::Arc;

/// A checked source text.
#[derive(Clone, Debug)]
pub struct Model {
    /// The text.
    pub file: FileId,
    /// The dialect, which definitions keep.
    pub dialect: Dialect,
    /// Why it is that dialect.
    pub dialect_reason: String,
    /// What differs between the dialects in a script of Filebench that may be of either.
    pub undecided: Option<&'static str>,
    /// The commands in source order.
    pub commands: Vec<Command>,
}

#[derive(Clone, Debug)]
pub struct Command {
    /// The place of the statement.
    pub span: Span,
    /// The kind, with its arguments.
    pub kind: CommandKind,
}

/// The object of `create`, `shutdown` or `list`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// File sets.
    Files,
    Processes,
    Flowops,
    /// All of them: no object was named.
    All,
}

wml_text::named! {
    /// What ends a run before its time.
    #[derive(Default)]
    pub enum QuitMode {
        /// Only an error.
        #[default]
        Timeout = "timeout";
        /// The end of all threads.
        AllDone = "alldone";
        /// The end of one thread.
        FirstDone = "firstdone";
    }
}

/// The action of a `stats` command.
#[derive(Clone, Debug)]
pub enum Stats {
    Clear,
    Snap,
    Dump(Spanned<Expr>),
    XmlDump(Spanned<Expr>),
    MultiDump(Spanned<Expr>),
    Directory(Spanned<Expr>),
    Command(Spanned<Expr>),
}

/// A command with its arguments.
#[derive(Clone, Debug)]
pub enum CommandKind {
    /// `copies`: the variable that is the whole value is read when the command executes, because the text sets it again.
    Set {
        name: Spanned<String>,
        value: Spanned<Expr>,
        copies: bool,
    },
    SetField {
        name: Spanned<String>,
        field: Spanned<String>,
        value: Spanned<Expr>,
    },
    SetMode(QuitMode),
    SetNoUseStats,
    DefineFileset(Arc<FilesetDef>),
    DefineProcess(Arc<ProcessDef>),
    DefineFlowop(Arc<CompositeDef>),
    Create(Object),
    Run {
        seconds: Option<Spanned<Expr>>,
        as_is: bool,
    },
    PsRun {
        period: Option<Spanned<Expr>>,
        seconds: Option<Spanned<Expr>>,
        as_is: bool,
    },
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
    /// Turns latency histograms on or off.
    LatHist(bool),
    EnableMulti,
    DoMultiSync,
    List(Object),
    Stats(Stats),
    Shutdown(Object),
    Load(Spanned<Expr>),
    ForEach {
        name: Spanned<String>,
        values: Vec<Spanned<Expr>>,
        body: Vec<Command>,
    },
    FsCheck {
        path: Option<Spanned<Expr>>,
        fstype: Option<Spanned<Expr>>,
    },
    FsFlush,
    Debug,
    Quit,
}

impl Command {
    /// The shell command that it runs, if it runs one.
    pub fn shell(&self) -> Option<&Spanned<Expr>> {
        match &self.kind {
            CommandKind::System(text) | CommandKind::Stats(Stats::Command(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether it writes a file that the script names.
    pub fn writes_file(&self) -> bool {
        matches!(&self.kind, CommandKind::Stats(stats) if !matches!(stats, Stats::Clear | Stats::Snap))
    }
}

/// The attributes of a definition. Each has been checked against its descriptor, as far as that is possible without
/// values.
#[derive(Clone, Default, Debug)]
pub struct Attrs {
    pub(super) items: Vec<AttrUse>,
}

/// An attribute of a definition.
#[derive(Clone, Debug)]
pub struct AttrUse {
    /// Its descriptor.
    pub attr: &'static Attr,
    /// The place of its name.
    pub at: Span,
    /// Its value; `true` if none is written.
    pub value: Spanned<Expr>,
    /// Whether no value is written.
    pub alone: bool,
    /// Whether it has the value that its variables have when the definition executes, if they are set then.
    pub early: bool,
}

impl Attrs {
    pub fn get(&self, name: &str) -> Option<&AttrUse> {
        self.items.iter().rev().find(|u| u.attr.name == name)
    }

    /// All attributes in source order.
    pub fn iter(&self) -> impl Iterator<Item = &AttrUse> {
        self.items.iter()
    }

    /// The text of `name=` of a definition. `None` if it depends on a variable.
    pub fn name(&self) -> Option<String> {
        self.constant_text("name").map(|name| name.node)
    }

    /// The text of an attribute. `None` if it is missing or depends on a variable.
    pub fn constant_text(&self, name: &str) -> Option<Spanned<String>> {
        let used = self.get(name)?;
        match &used.value.node {
            Expr::Text(parts) => expr::plain_text(parts).map(|text| Spanned::new(text, used.value.span)),
            Expr::Int(n) => Some(Spanned::new(n.to_string(), used.value.span)),
            Expr::Float(x) => Some(Spanned::new(x.to_string(), used.value.span)),
            Expr::Bool(b) if !used.alone => Some(Spanned::new(b.to_string(), used.value.span)),
            _ => None,
        }
    }
}

/// `define fileset` or `define file`.
#[derive(Clone, Debug)]
pub struct FilesetDef {
    /// Whether it is a `define file`.
    pub single: bool,
    pub attrs: Attrs,
    /// The dialect, which decides defaults and sizes.
    pub dialect: Dialect,
    /// The whole statement.
    pub span: Span,
}

/// `define process`.
#[derive(Clone, Debug)]
pub struct ProcessDef {
    pub attrs: Attrs,
    pub threads: Vec<ThreadDef>,
    /// The dialect, which decides among other things what `finishoncount` ends.
    pub dialect: Dialect,
    /// The first line.
    pub span: Span,
}

/// `thread`.
#[derive(Clone, Debug)]
pub struct ThreadDef {
    pub attrs: Attrs,
    /// The flowops of its loop.
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
    pub attrs: Attrs,
    /// `$p=v` and `$p`, for composites.
    pub locals: Vec<Local>,
    /// The whole statement.
    pub span: Span,
}

/// A local variable of a composite flowop: a parameter at the definition, an argument at the use.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name, without `$`.
    pub name: Spanned<String>,
    /// The default or the argument.
    pub value: Option<Spanned<Expr>>,
}

/// `define flowop`.
#[derive(Clone, Debug)]
pub struct CompositeDef {
    pub name: Spanned<String>,
    pub attrs: Attrs,
    pub parameters: Vec<Local>,
    /// Its body.
    pub flowops: Vec<FlowopDef>,
    /// The first line.
    pub span: Span,
}

/// Names that exist before a text is checked, to which the text may refer.
#[derive(Clone, Default, Debug)]
pub struct Known {
    /// File sets.
    pub filesets: Vec<String>,
    /// Composite flowops.
    pub composites: Vec<String>,
    /// Names of flowop instances.
    pub targets: Vec<String>,
    pub variables: Vec<String>,
    /// Whether unknown names are accepted, because they may be defined later: at a prompt.
    pub open: bool,
}
