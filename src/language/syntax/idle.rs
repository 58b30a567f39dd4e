//! Finds a file that a script writes to and that 1.5 would never create: in that generation the script does nothing.
//! Before 1.5 each `define file` made at least an empty file.

use super::ast::{Arg, ArgKind, Ast, Number, StatementKind, TextPart, Value};
use crate::source::Span;
use crate::spec::{IoDirection, Role, SpecTable};
use std::collections::{HashMap, HashSet};

/// The value of an attribute that names a file.
#[derive(Clone, Copy)]
enum FileName<'a> {
    /// There is no such attribute.
    None,
    Plain(&'a str),
    /// It depends on a variable.
    Unknown,
}

/// The files that the flowops of a block, a thread or a composite, work on.
#[derive(Default)]
struct BlockFiles<'a> {
    written: Vec<&'a str>,
    read: Vec<&'a str>,
    opened: Vec<&'a str>,
    /// Whether flowops without a file, which work on an open one, write or read.
    writes_open: bool,
    reads_open: bool,
}

/// All that the script does with files.
#[derive(Default)]
struct FileUses<'a> {
    /// Files that are not created before a run in 1.5, each with its definition.
    defined: HashMap<&'a str, Span>,
    written: HashSet<&'a str>,
    /// Files that flowops read, create or move.
    others: HashSet<&'a str>,
    /// Whether a name depends on a variable, so that not all uses are known.
    is_open: bool,
}

/// Returns the definition of the first file that only threads which can't find it write to in 1.5.
pub(super) fn never_created(ast: &Ast, table: &SpecTable) -> Option<Span> {
    let mut uses = FileUses::default();
    let mut block = BlockFiles::default();
    let mut starts = true;
    for statement in &ast.statements {
        let StatementKind::Command { word, args, .. } = &statement.kind else { continue };
        let object = match args.first().map(|arg| &arg.kind) {
            Some(ArgKind::Bare(Value::Word(object))) => object.as_str(),
            _ => "",
        };
        match (word.node.as_str(), object) {
            ("define", "file" | "files") if !is_created(args) => match name_in(args, &["name"]) {
                FileName::Plain(name) => _ = uses.defined.entry(name).or_insert(statement.span),
                FileName::None | FileName::Unknown => uses.is_open = true,
            },
            ("define", "process" | "processes") => starts = !has_no_instance(args),
            ("define", "flowop") | ("thread", _) => {
                uses.add(std::mem::take(&mut block));
                starts |= word.node == "define";
            }
            ("flowop", kind) if starts => uses.flowop(kind, args, table, &mut block),
            // What it defines is not known here.
            ("load", _) => return None,
            _ => {}
        }
    }
    uses.add(block);
    if uses.is_open {
        return None;
    }
    let only_written = |(name, _): &(&&str, &Span)| uses.written.contains(*name) && !uses.others.contains(*name);
    uses.defined.iter().filter(only_written).map(|(_, span)| *span).min()
}

impl<'a> FileUses<'a> {
    fn flowop(&mut self, kind: &str, args: &'a [Arg], table: &SpecTable, block: &mut BlockFiles<'a>) {
        let Some(spec) = table.flowop(kind) else { return };
        let (writes, reads) = (spec.direction == IoDirection::Write, spec.direction == IoDirection::Read);
        let set = name_in(args, &["filename", "filesetname"]);
        for named in [set, name_in(args, &["toset"])] {
            match named {
                FileName::Unknown => self.is_open = true,
                FileName::Plain(name) if spec.is(Role::MakesFile) || spec.is(Role::MovesFile) => {
                    self.others.insert(name);
                }
                FileName::Plain(name) if writes => block.written.push(name),
                FileName::Plain(name) if reads => block.read.push(name),
                FileName::Plain(name) if spec.is(Role::OpensSlot) => block.opened.push(name),
                FileName::Plain(_) | FileName::None => {}
            }
        }
        if matches!(set, FileName::None) {
            block.writes_open |= writes;
            block.reads_open |= reads;
        }
    }

    fn add(&mut self, block: BlockFiles<'a>) {
        self.written.extend(block.written);
        self.others.extend(block.read);
        if block.reads_open {
            self.others.extend(&block.opened);
        }
        if block.writes_open {
            self.written.extend(&block.opened);
        }
    }
}

/// Whether a file exists before a run in 1.5. A variable may say so.
fn is_created(args: &[Arg]) -> bool {
    args.iter().any(|arg| match &arg.kind {
        ArgKind::Bare(Value::Word(name)) => name == "prealloc",
        ArgKind::Named { name, value } => {
            name.node == "prealloc"
                && !matches!(&value.node, Value::Number(Number::Int(0)))
                && !matches!(&value.node, Value::Word(word) if word == "false")
        }
        _ => false,
    })
}

/// Whether a process surely has no instance, so that its names are not looked up.
fn has_no_instance(args: &[Arg]) -> bool {
    args.iter().any(|arg| match &arg.kind {
        ArgKind::Named { name, value } => {
            name.node == "instances" && matches!(&value.node, Value::Number(Number::Int(0)))
        }
        _ => false,
    })
}

/// Returns the file that the last of these attributes names.
fn name_in<'a>(args: &'a [Arg], names: &[&str]) -> FileName<'a> {
    let of = |arg: &'a Arg| match &arg.kind {
        ArgKind::Named { name, value } if names.contains(&name.node.as_str()) => Some(match &value.node {
            Value::Word(word) => FileName::Plain(word),
            Value::Text(parts) => match parts.as_slice() {
                [TextPart::Text(text)] => FileName::Plain(text),
                _ => FileName::Unknown,
            },
            _ => FileName::Unknown,
        }),
        _ => None,
    };
    args.iter().rev().find_map(of).unwrap_or(FileName::None)
}
