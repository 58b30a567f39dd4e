//! The evaluated attributes of one flowop, with typed access for its constructor.

use crate::exec::slots::{MAX_FD, SlotRule};
use crate::random::Quantity;
use wml_language::diag::{Code, Diagnostic};
use wml_language::model::{Evaluated, ModelValue};
use wml_language::source::Span;
use wml_language::spec::{Dialect, Flowop};

/// A file set, as constructors of flowops see it.
#[derive(Clone, Debug)]
pub struct SetInfo {
    pub id: usize,
    pub name: String,
    /// Number of its files.
    pub entries: u64,
    /// Number of its empty directories.
    pub leafdirs: u64,
    /// Number of directories that it is spread over.
    pub parts: usize,
    /// Number of the sets of process instances for which it stands (`perinstance`); 0 for a set of all instances.
    pub own_sets: u32,
    /// Whether its files are opened read-only.
    pub readonly: bool,
    /// Whether its files are opened write-only.
    pub writeonly: bool,
}

/// A flowop with the name given as `target=`.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// Its number in the plan.
    pub id: usize,
    /// Its type.
    pub kind: &'static str,
    /// Index of its counters, if it is in the same thread as the flowop with the `target=`.
    pub local: Option<usize>,
}

/// Resolves the names and values that attributes refer to.
pub trait Resolver {
    /// Returns the file set of that name.
    fn fileset(&self, name: &str) -> Option<SetInfo>;
    /// Returns all flowops of that name.
    fn targets(&self, name: &str) -> Vec<TargetInfo>;
    /// Returns the full name of a flowop inside the composite flowop of that name. `None` if there is none.
    fn inner_flowop(&self, composite: &str) -> Option<String>;
    /// Converts a value to a constant or a random variable.
    fn quantity(&self, value: &ModelValue, span: Span) -> Result<Quantity, Diagnostic>;
    /// The same for a time, whose fraction counts: the parameters of a random variable are computed exactly.
    fn exact_quantity(&self, value: &ModelValue, span: Span) -> Result<Quantity, Diagnostic>;
}

/// The attributes of one flowop of the plan.
pub struct Args<'a> {
    /// Its name in results.
    pub name: &'a str,
    pub spec: &'static Flowop,
    /// The dialect of its definition.
    pub dialect: Dialect,
    /// Its place in the source.
    pub span: Span,
    /// Its number in the plan.
    pub id: usize,
    /// The evaluated attributes.
    pub values: Evaluated,
    /// Resolves names in its attributes.
    pub resolver: &'a dyn Resolver,
}

impl Args<'_> {
    /// Returns an attribute's value and its place in the source. If it is given twice, the last one counts.
    pub fn value(&self, attr: &str) -> Option<(&ModelValue, Span)> {
        self.values.get(attr)
    }

    /// Returns the place for a diagnostic about an attribute: its value, or the flowop if it is not given.
    pub(crate) fn span_of(&self, attr: &str) -> Span {
        self.value(attr).map_or(self.span, |(_, s)| s)
    }

    /// Returns an attribute as a constant or random variable. `None` when it is not given; `Err` when it has a fraction
    /// that may not be cut off.
    pub(crate) fn quantity(&self, attr: &str) -> Result<Option<Quantity>, Diagnostic> {
        self.whole(attr)?;
        self.value(attr).map(|(v, span)| self.resolver.quantity(v, span)).transpose()
    }

    /// `Err` when `value=` has a fraction, which would be cut off: 0.5 posts would be none. The other attributes have been
    /// checked by their kind.
    fn whole(&self, attr: &str) -> Result<(), Diagnostic> {
        let Some((value, span)) = self.value(attr).filter(|_| attr == "value") else { return Ok(()) };
        value.fraction().filter(|x| *x > 0.0).map_or(Ok(()), |x| {
            let message =
                format!("`value` of flowop `{}` of type `{}` takes a whole number, not {x}", self.name, self.spec.name);
            Err(Diagnostic::error(Code::WrongType, span, message)
                .help("give a whole number from 0 up; only `delay` and `compute` accept fractions"))
        })
    }

    /// Returns an attribute as a constant or random variable, or a default if it is not given.
    pub(crate) fn quantity_or(&self, attr: &str, default: u64) -> Result<Quantity, Diagnostic> {
        Ok(self.quantity(attr)?.unwrap_or(Quantity::Const(default)))
    }

    /// Returns an attribute as a whole number, or a default if it is not given. `Err` for a random variable.
    pub fn int(&self, attr: &str, default: u64) -> Result<u64, Diagnostic> {
        self.whole(attr)?;
        match self.value(attr) {
            None => Ok(default),
            Some((v, span)) => v.as_u64().ok_or_else(|| {
                let message = format!("`{attr}` of flowop `{}` is {}", self.name, v.describe());
                Diagnostic::error(Code::WrongType, span, message).help("give a whole number from 0 up")
            }),
        }
    }

    /// Returns an attribute as a switch; `false` if it is not given.
    pub fn flag(&self, attr: &str) -> Result<bool, Diagnostic> {
        match self.value(attr) {
            None => Ok(false),
            Some((v, span)) => v.as_switch().ok_or_else(|| {
                let message = format!("`{attr}` of flowop `{}` is {}", self.name, v.kind());
                Diagnostic::error(Code::WrongType, span, message).help("give `true` or `false`")
            }),
        }
    }

    /// Returns an attribute as text. `None` when it is not given.
    pub fn text(&self, attr: &str) -> Option<String> {
        self.values.text(attr)
    }

    /// Returns the file set. `None` when `filesetname=` is not given; `Err` when the set is not defined.
    pub fn fileset(&self) -> Result<Option<SetInfo>, Diagnostic> {
        let Some((v, span)) = self.value("filesetname") else { return Ok(None) };
        self.fileset_called(&v.print(), span).map(Some)
    }

    /// Returns the file set of that name. `Err` when it is not defined.
    pub(crate) fn fileset_called(&self, name: &str, span: Span) -> Result<SetInfo, Diagnostic> {
        self.resolver.fileset(name).ok_or_else(|| {
            Diagnostic::error(Code::UnknownFileset, span, format!("no file set or file is called `{name}`"))
                .help("define it with `define fileset name=…`")
        })
    }

    /// Returns the file set. `Err` when `filesetname=` is not given or the set is not defined.
    pub(crate) fn need_fileset(&self) -> Result<SetInfo, Diagnostic> {
        self.fileset()?.ok_or_else(|| {
            let message = format!("flowop `{}` of type `{}` has no `filesetname=`", self.name, self.spec.name);
            Diagnostic::error(Code::MissingAttribute, self.span, message).help("add `filesetname=…`")
        })
    }

    /// Returns the rule that selects its slot. `rotates`: whether `opennext` has an effect on it in this dialect.
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

    /// Returns `fd=` or `srcfd=`. `Err` when it is out of range.
    pub(crate) fn slot_number(&self, attr: &str) -> Result<usize, Diagnostic> {
        let fd = self.int(attr, 0)?;
        if fd > MAX_FD as u64 {
            let message = format!("`{attr}` is {fd}");
            return Err(Diagnostic::error(Code::OutOfRange, self.span_of(attr), message)
                .help(format!("the file slots of a thread are numbered 1 to {MAX_FD}")));
        }
        Ok(fd as usize)
    }

    /// Returns `iosize`, whose draws are at least 1. `Err` when it is not given, or always 0.
    pub(crate) fn need_iosize(&self) -> Result<Quantity, Diagnostic> {
        let Some(iosize) = self.quantity("iosize")? else {
            let message = format!("flowop `{}` of type `{}` has no `iosize=`", self.name, self.spec.name);
            return Err(Diagnostic::error(Code::MissingAttribute, self.span, message)
                .help("add `iosize=…`, such as `iosize=8k`"));
        };
        if iosize.max_hint() == Some(0) {
            let always =
                if let Quantity::Random(_) = iosize { format!(", in every draw of {iosize}") } else { String::new() };
            let message = format!("`iosize` of flowop `{}` of type `{}` is 0{always}", self.name, self.spec.name);
            return Err(Diagnostic::error(Code::OutOfRange, self.span_of("iosize"), message)
                .help("give a size of at least 1 byte, such as `iosize=8k`"));
        }
        Ok(iosize.positive())
    }

    /// Returns the flowops with the name `target=`; none if it is not given. `Err` when no flowop has the name.
    pub fn targets(&self) -> Result<Vec<TargetInfo>, Diagnostic> {
        let Some((v, span)) = self.value("target") else { return Ok(Vec::new()) };
        let name = v.print();
        if name.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.resolver.targets(&name);
        if found.is_empty() {
            let (message, help) = match self.resolver.inner_flowop(&name) {
                None => (
                    format!("no flowop is called `{name}`"),
                    "`target=` takes the `name=` of a flowop of this script".to_owned(),
                ),
                Some(inner) => (
                    format!("`{name}` is a composite flowop, which has no operations of its own"),
                    format!("name a flowop inside it, such as `target={inner}`"),
                ),
            };
            return Err(Diagnostic::error(Code::UnknownTarget, span, message).help(help));
        }
        Ok(found)
    }
}
