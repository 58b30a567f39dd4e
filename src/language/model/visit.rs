//! Walks over commands: every command of a list, and everything that a command holds.
//!
//! Checks, lints and the session look for different things in the same places. Which places there are is known here only.

use super::expr::{self, Expr};
use super::{AttrUse, Attrs, Command, CommandKind, CompositeDef, FilesetDef, FlowopDef, Local, ProcessDef, Stats};
use crate::source::Spanned;

/// Something that a command holds.
#[derive(Clone, Copy, Debug)]
pub enum CommandPart<'a> {
    /// A variable that is set.
    Set(&'a Spanned<String>),
    /// A random variable of which a field is set.
    SetField(&'a Spanned<String>),
    /// An expression of the command itself.
    Value(&'a Spanned<Expr>),
    /// A time in seconds, which may have a fraction.
    Time(&'a Spanned<Expr>),
    /// A text that is only shown.
    Shown(&'a Spanned<Expr>),
    /// A command for the shell, which has variables of its own.
    Shell(&'a Spanned<Expr>),
    /// A line of `usage`, a text that is shown when it is asked for.
    Usage(&'a Spanned<Expr>),
    /// The name of a text to load.
    Load(&'a Spanned<Expr>),
    /// An attribute, among those of its definition.
    Attr(&'a AttrUse, &'a Attrs),
    /// A parameter of a composite.
    Parameter(&'a Local),
    /// An argument of a composite.
    Argument(&'a Local),
}

impl<'a> CommandPart<'a> {
    /// The expression, if there is one.
    pub fn value(self) -> Option<&'a Spanned<Expr>> {
        match self {
            Self::Set(_) | Self::SetField(_) => None,
            Self::Value(value)
            | Self::Time(value)
            | Self::Shown(value)
            | Self::Shell(value)
            | Self::Usage(value)
            | Self::Load(value) => Some(value),
            Self::Attr(used, _) => Some(&used.value),
            Self::Parameter(local) | Self::Argument(local) => local.value.as_ref(),
        }
    }
}

/// All commands in the order of writing, each loop before the commands in it.
pub fn all(commands: &[Command]) -> impl Iterator<Item = &Command> {
    let mut open = vec![commands.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(command) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            if let CommandKind::ForEach { body, .. } = &command.kind {
                open.push(body.iter());
            }
            return Some(command);
        }
    })
}

/// Calls `each` with everything that a command holds, in the order of writing. The commands in a loop are not part of it.
pub fn parts<'a>(kind: &'a CommandKind, each: &mut dyn FnMut(CommandPart<'a>)) {
    match kind {
        CommandKind::Set { name, value, .. } => {
            each(CommandPart::Set(name));
            each(CommandPart::Value(value));
        }
        CommandKind::SetField { name, value, .. } => {
            each(CommandPart::SetField(name));
            each(CommandPart::Value(value));
        }
        CommandKind::ForEach { name, values, .. } => {
            each(CommandPart::Set(name));
            values.iter().for_each(|value| each(CommandPart::Value(value)));
        }
        CommandKind::DefineFileset(def) => of_fileset(def, each),
        CommandKind::DefineProcess(def) => of_process(def, each),
        CommandKind::DefineFlowop(def) => of_composite(def, each),
        CommandKind::Echo(text) | CommandKind::Log(text) => each(CommandPart::Shown(text)),
        CommandKind::System(text) | CommandKind::Stats(Stats::Command(text)) => each(CommandPart::Shell(text)),
        CommandKind::Usage(text) => each(CommandPart::Usage(text)),
        CommandKind::Load(name) => each(CommandPart::Load(name)),
        CommandKind::Stats(
            Stats::Dump(value) | Stats::XmlDump(value) | Stats::MultiDump(value) | Stats::Directory(value),
        ) => each(CommandPart::Value(value)),
        CommandKind::Sleep(value) | CommandKind::Warmup(value) => each(CommandPart::Time(value)),
        CommandKind::Run { seconds, .. } => seconds.iter().for_each(|value| each(CommandPart::Time(value))),
        CommandKind::PsRun { period, seconds, .. } => {
            period.iter().chain(seconds).for_each(|value| each(CommandPart::Time(value)));
        }
        CommandKind::EventGen(value) => value.iter().for_each(|value| each(CommandPart::Value(value))),
        CommandKind::FsCheck { path, fstype } => {
            path.iter().chain(fstype).for_each(|value| each(CommandPart::Value(value)));
        }
        CommandKind::SetMode(_)
        | CommandKind::SetNoUseStats
        | CommandKind::Create(_)
        | CommandKind::Help
        | CommandKind::Vars
        | CommandKind::Version
        | CommandKind::LatHist(_)
        | CommandKind::EnableMulti
        | CommandKind::DoMultiSync
        | CommandKind::List(_)
        | CommandKind::Stats(Stats::Clear | Stats::Snap)
        | CommandKind::Shutdown(_)
        | CommandKind::FsFlush
        | CommandKind::Debug
        | CommandKind::Quit => {}
    }
}

/// The same for a file set.
pub fn of_fileset<'a>(def: &'a FilesetDef, each: &mut dyn FnMut(CommandPart<'a>)) {
    of_attrs(&def.attrs, each);
}

/// The same for a process with its threads.
pub fn of_process<'a>(def: &'a ProcessDef, each: &mut dyn FnMut(CommandPart<'a>)) {
    of_attrs(&def.attrs, each);
    for thread in &def.threads {
        of_attrs(&thread.attrs, each);
        thread.flowops.iter().for_each(|flowop| of_flowop(flowop, each));
    }
}

/// The same for a composite.
pub fn of_composite<'a>(def: &'a CompositeDef, each: &mut dyn FnMut(CommandPart<'a>)) {
    def.parameters.iter().for_each(|parameter| each(CommandPart::Parameter(parameter)));
    of_attrs(&def.attrs, each);
    def.flowops.iter().for_each(|flowop| of_flowop(flowop, each));
}

fn of_flowop<'a>(flowop: &'a FlowopDef, each: &mut dyn FnMut(CommandPart<'a>)) {
    of_attrs(&flowop.attrs, each);
    flowop.locals.iter().for_each(|local| each(CommandPart::Argument(local)));
}

fn of_attrs<'a>(attrs: &'a Attrs, each: &mut dyn FnMut(CommandPart<'a>)) {
    attrs.iter().for_each(|used| each(CommandPart::Attr(used, attrs)));
}

/// Calls `each` with the name of every variable that a part sets or reads.
pub fn variables_of<'a>(part: CommandPart<'a>, each: &mut dyn FnMut(&'a str)) {
    if let CommandPart::Set(name) | CommandPart::SetField(name) = part {
        each(&name.node);
    }
    if let Some(value) = part.value() {
        expr::variables(value, &mut |variable, _| each(&variable.name));
    }
}

/// Calls `each` with the name of every variable that is set or read, but for those of `usage` and `load`. A name may
/// come more than once.
pub fn each_variable(commands: &[Command], each: &mut dyn FnMut(&str)) {
    for command in all(commands) {
        parts(&command.kind, &mut |part| match part {
            CommandPart::Usage(_) | CommandPart::Load(_) => {}
            other => variables_of(other, each),
        });
    }
}
