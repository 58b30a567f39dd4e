//! The attributes of one flowop with their values, as lowering asks for them.

use crate::diag::{Code, Diagnostic};
use crate::exec::slots::{MAX_FD, SlotRule};
use crate::model::ModelValue;
use crate::random::Quantity;
use crate::source::Span;
use crate::spec::{Dialect, Flowop};

/// What lowering must know of a file set.
#[derive(Clone, Debug)]
pub struct SetInfo {
    /// Its number.
    pub id: usize,
    /// Its name.
    pub name: String,
    /// Its files.
    pub entries: u64,
    /// Opened for reading only.
    pub readonly: bool,
    /// Opened for writing only.
    pub writeonly: bool,
}

/// A flowop that `target=` may mean.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// Its number in the plan.
    pub id: usize,
    /// Its type.
    pub kind: &'static str,
    /// Its place in its thread's counters, if it is in the same thread as the flowop that asks.
    pub local: Option<usize>,
}

/// What a flowop can refer to.
pub trait World {
    /// The file set of that name.
    fn fileset(&self, name: &str) -> Option<SetInfo>;
    /// All flowops of that name.
    fn targets(&self, name: &str) -> Vec<TargetInfo>;
    /// Something to draw from.
    fn quantity(&self, value: &ModelValue, span: Span) -> Result<Quantity, Diagnostic>;
}

/// The attributes of one flowop.
pub struct Args<'a> {
    /// The flowop's name in results.
    pub name: &'a str,
    /// Its descriptor.
    pub spec: &'static Flowop,
    /// The dialect of its definition.
    pub dialect: Dialect,
    /// Where it was written.
    pub span: Span,
    /// Its number in the plan.
    pub id: usize,
    /// Attribute, value, and where that was written.
    pub values: Vec<(&'static str, ModelValue, Span)>,
    /// What it can refer to.
    pub world: &'a dyn World,
}

impl Args<'_> {
    /// An attribute's value and place.
    pub fn value(&self, attr: &str) -> Option<(&ModelValue, Span)> {
        self.values.iter().rev().find(|(n, _, _)| *n == attr).map(|(_, v, s)| (v, *s))
    }

    /// Where to point for an attribute: at its value, else at the flowop.
    pub fn at(&self, attr: &str) -> Span {
        self.value(attr).map_or(self.span, |(_, s)| s)
    }

    /// A number to draw for each operation, or `None` if it is not written.
    pub fn quantity(&self, attr: &str) -> Result<Option<Quantity>, Diagnostic> {
        self.value(attr).map(|(v, span)| self.world.quantity(v, span)).transpose()
    }

    /// A number to draw for each operation, with a default.
    pub fn quantity_or(&self, attr: &str, default: u64) -> Result<Quantity, Diagnostic> {
        Ok(self.quantity(attr)?.unwrap_or(Quantity::Const(default)))
    }

    /// A whole number. Random variables are refused.
    pub fn int(&self, attr: &str, default: u64) -> Result<u64, Diagnostic> {
        match self.value(attr) {
            None => Ok(default),
            Some((v, span)) => int(v).ok_or_else(|| {
                let message = format!("`{attr}` of flowop `{}` is {}", self.name, v.kind());
                Diagnostic::error(Code::WrongType, span, message).help("give a whole number from 0 up")
            }),
        }
    }

    /// A switch.
    pub fn flag(&self, attr: &str) -> Result<bool, Diagnostic> {
        match self.value(attr) {
            None => Ok(false),
            Some((v, span)) => switch(v).ok_or_else(|| {
                let message = format!("`{attr}` of flowop `{}` is {}", self.name, v.kind());
                Diagnostic::error(Code::WrongType, span, message).help("give `true` or `false`")
            }),
        }
    }

    /// Text, as written.
    pub fn text(&self, attr: &str) -> Option<String> {
        self.value(attr).map(|(v, _)| v.print())
    }

    /// The file set, if one is named.
    pub fn fileset(&self) -> Result<Option<SetInfo>, Diagnostic> {
        let Some((v, span)) = self.value("filesetname") else { return Ok(None) };
        let name = v.print();
        self.world.fileset(&name).map(Some).ok_or_else(|| {
            Diagnostic::error(Code::UnknownFileset, span, format!("no file set or file is called `{name}`"))
                .help("define it with `define fileset name=…`")
        })
    }

    /// The file set, which must be named.
    pub fn need_fileset(&self) -> Result<SetInfo, Diagnostic> {
        self.fileset()?.ok_or_else(|| {
            let message = format!("flowop `{}` of type `{}` names no file set", self.name, self.spec.name);
            Diagnostic::error(Code::MissingAttribute, self.span, message).help("add `filesetname=…`")
        })
    }

    /// The slot that it works on. `rotates`: whether `opennext` means something to it in this dialect.
    pub fn slot(&self, set: Option<&SetInfo>, rotates: bool) -> Result<SlotRule, Diagnostic> {
        let fd = self.slot_number("fd")?;
        let rotate = if rotates && self.flag("opennext")? {
            let all = MAX_FD as u64;
            let by_entries = self.dialect.semantics().opennext_by_entries;
            set.filter(|_| by_entries).map_or(all, |s| s.entries.clamp(1, all)) as usize
        } else {
            0
        };
        Ok(SlotRule { fd, rotate, set: set.map(|s| s.id) })
    }

    /// `fd=` or `srcfd=`, in range.
    pub fn slot_number(&self, attr: &str) -> Result<usize, Diagnostic> {
        let fd = self.int(attr, 0)?;
        if fd > MAX_FD as u64 {
            let message = format!("`{attr}` can't be {fd}");
            return Err(Diagnostic::error(Code::OutOfRange, self.at(attr), message)
                .help(format!("it names a slot for an open file, and a thread has the slots 1 to {MAX_FD}")));
        }
        Ok(fd as usize)
    }

    /// `iosize`, which must be given and not 0.
    pub fn need_iosize(&self) -> Result<Quantity, Diagnostic> {
        match self.quantity("iosize")? {
            Some(Quantity::Const(0)) | None => {
                let message = format!("flowop `{}` of type `{}` has no I/O size", self.name, self.spec.name);
                Err(Diagnostic::error(Code::MissingAttribute, self.at("iosize"), message)
                    .help("add `iosize=…`, such as `iosize=8k`"))
            }
            Some(q) => Ok(q),
        }
    }

    /// The flowops that `target=` means; at least one.
    pub fn targets(&self) -> Result<Vec<TargetInfo>, Diagnostic> {
        let Some((v, span)) = self.value("target") else { return Ok(Vec::new()) };
        let name = v.print();
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.world.targets(&name);
        if found.is_empty() {
            return Err(Diagnostic::error(Code::UnknownTarget, span, format!("no flowop is called `{name}`"))
                .help("`target=` takes the `name=` of a flowop of this script"));
        }
        Ok(found)
    }
}

/// A whole number out of a value; switches count 1 and 0, as in Filebench.
pub fn int(value: &ModelValue) -> Option<u64> {
    match value {
        ModelValue::Int(n) => u64::try_from(*n).ok(),
        ModelValue::Bool(b) => Some(u64::from(*b)),
        ModelValue::Float(x) if *x >= 0.0 => Some(*x as u64),
        ModelValue::Text(s) => s.trim().parse().ok(),
        _ => None,
    }
}

/// A switch out of a value; numbers are on if not 0, as in Filebench.
pub fn switch(value: &ModelValue) -> Option<bool> {
    match value {
        ModelValue::Bool(b) => Some(*b),
        ModelValue::Int(n) => Some(*n != 0),
        ModelValue::Float(x) => Some(*x != 0.0),
        ModelValue::Text(s) => crate::model::fit::switch(s),
        _ => None,
    }
}
