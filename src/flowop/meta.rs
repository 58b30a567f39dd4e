//! `deletefile`, `statfile`, `fsync`, `fsyncset`: names, and what lies below them.

use super::args::Args;
use super::slots::FileRef;
use super::transfer::FileUse;
use super::{At, Effects, Family, Kind, Op, OpCx, Outcome, Step};
use crate::diag::{Code, Diagnostic};
use crate::fileset::Want;
use crate::spec::{Class, Flowop, Origin, Way};
use std::sync::Arc;

pub(super) const FAMILY: Family = Family {
    specs: &[
        Flowop {
            name: "deletefile",
            class: Class::Io,
            way: Way::None,
            uses: &["filesetname", "fd", "indexed"],
            origin: Origin::Both,
            doc: "removes a file of the set, or the one in the slot; who has it open keeps it",
            example: "flowop deletefile name=rm,filesetname=spare\nflowop createfile name=cr,filesetname=spare,fd=1\nflowop closefile name=cl,fd=1",
        },
        Flowop {
            name: "statfile",
            class: Class::Io,
            way: Way::None,
            uses: &["filesetname", "fd", "indexed"],
            origin: Origin::Both,
            doc: "asks for a file's attributes: of the open file in the slot, else of a file of the set",
            example: "flowop statfile name=st,filesetname=data",
        },
        Flowop {
            name: "fsync",
            class: Class::Io,
            way: Way::None,
            uses: &["filesetname", "fd"],
            origin: Origin::Both,
            doc: "forces the file in the slot down to the device",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop fsync name=fs,filename=data",
        },
        Flowop {
            name: "fsyncset",
            class: Class::Io,
            way: Way::None,
            uses: &["filesetname"],
            origin: Origin::Both,
            doc: "forces every open file of the set down to the device; one operation each",
            example: "flowop write name=wr,filename=data,iosize=4k,random\nflowop fsyncset name=fs,filesetname=data",
        },
    ],
    lower: lower_meta,
};

fn lower_meta(args: &Args<'_>) -> Result<Arc<dyn Op>, Diagnostic> {
    let file = FileUse::new(args, false)?;
    Ok(match args.spec.name {
        "deletefile" | "statfile" => {
            if file.set.is_none() && file.slot.fd == 0 {
                let message = format!("flowop `{}` names neither a file set nor a slot", args.name);
                return Err(
                    Diagnostic::error(Code::MissingAttribute, args.span, message).help("add `filesetname=…` or `fd=…`")
                );
            }
            if args.spec.name == "deletefile" { Arc::new(Delete { file }) } else { Arc::new(StatFile { file }) }
        }
        "fsync" => Arc::new(Fsync { file }),
        _ => Arc::new(FsyncSet { set: args.need_fileset()?.id, name: args.need_fileset()?.name }),
    })
}

#[derive(Clone, Debug)]
struct Delete {
    file: FileUse,
}

impl Op for Delete {
    fn instantiate(&self, _at: &At<'_>) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn describe(&self) -> String {
        self.file.describe()
    }

    fn effects(&self) -> Effects {
        let effects = self.file.effects();
        let makes = effects.sets.iter().map(|set| (*set, Want::Absent, Kind::File)).collect();
        Effects { makes, ..effects }
    }
}

impl Step for Delete {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        // The slot's file, open or not, if a slot is named and remembers one; it may be gone by another's hand.
        let named = if self.file.slot.fd > 0 { cx.slots.get(self.file.slot.fd).file } else { None };
        let file = if let Some(file) = named.filter(|f| cx.hold_existing(*f)) {
            cx.digress();
            cx.slots.get_mut(self.file.slot.fd).file = None;
            file
        } else {
            let Some(set) = &self.file.set else {
                let what = format!("slot {} has no file to remove", self.file.slot.fd);
                return cx.misuse(what, "open a file there first, or add `filesetname=`");
            };
            let by = self.file.pick.by(&mut cx.rng);
            match cx.pick(set.id, Want::Existing, by, true) {
                Ok(index) => FileRef { set: set.id, index },
                Err(outcome) => return outcome,
            }
        };
        let (dir, name) = match cx.locate(file) {
            Ok(found) => found,
            Err(outcome) => {
                cx.views[file.set].set.state.release(file.index);
                return outcome;
            }
        };
        cx.begin();
        match cx.engine.unlink(dir, name.as_c()) {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.views[file.set].set.state.set_exists(file.index, false);
                cx.digress();
                outcome
            }
            Err(errno) => {
                cx.views[file.set].set.state.release(file.index);
                cx.failed("unlink failed", errno, Some(file))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct StatFile {
    file: FileUse,
}

impl Op for StatFile {
    fn instantiate(&self, _at: &At<'_>) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn describe(&self) -> String {
        self.file.describe()
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }
}

impl Step for StatFile {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        if self.file.slot.fd > 0 {
            cx.slots.note(self.file.slot.fd);
            let slot = *cx.slots.get(self.file.slot.fd);
            if let Some(handle) = slot.handle {
                cx.begin();
                return match cx.engine.stat_open(&handle) {
                    Ok(_) => cx.end(0),
                    Err(errno) => cx.failed("fstat failed", errno, slot.file),
                };
            }
        }
        let Some(set) = &self.file.set else {
            let what = format!("slot {} is closed", self.file.slot.fd);
            return cx.misuse(what, "open a file there first, or add `filesetname=`");
        };
        let by = self.file.pick.by(&mut cx.rng);
        let index = match cx.pick(set.id, Want::Existing, by, true) {
            Ok(index) => index,
            Err(outcome) => return outcome,
        };
        let file = FileRef { set: set.id, index };
        let (dir, name) = match cx.locate(file) {
            Ok(found) => found,
            Err(outcome) => return outcome,
        };
        cx.begin();
        let result = cx.engine.stat(dir, name.as_c());
        let outcome = match result {
            Ok(()) => cx.end(0),
            Err(errno) => cx.failed("stat failed", errno, Some(file)),
        };
        cx.views[set.id].set.state.release(index);
        outcome
    }
}

#[derive(Clone, Debug)]
struct Fsync {
    file: FileUse,
}

impl Op for Fsync {
    fn instantiate(&self, _at: &At<'_>) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn describe(&self) -> String {
        self.file.describe()
    }

    fn effects(&self) -> Effects {
        self.file.effects()
    }
}

impl Step for Fsync {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        let slot = cx.slots.choose(&self.file.slot);
        let engine = cx.engine;
        cx.begin();
        let Some(handle) = cx.handle(slot) else {
            return cx.misuse(format!("fsync of slot {slot}, which is closed"), "open or write the file first");
        };
        match engine.fsync(handle) {
            Ok(()) => cx.end(0),
            Err(errno) => {
                let file = cx.slots.get(slot).file;
                cx.failed("fsync failed", errno, file)
            }
        }
    }
}

#[derive(Clone, Debug)]
struct FsyncSet {
    set: usize,
    name: String,
}

impl Op for FsyncSet {
    fn instantiate(&self, _at: &At<'_>) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn describe(&self) -> String {
        format!(" {}", self.name)
    }

    fn effects(&self) -> Effects {
        Effects { sets: vec![self.set], ..Effects::default() }
    }
}

impl Step for FsyncSet {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Outcome {
        let engine = cx.engine;
        let mut any = false;
        for slot in 0..cx.slots.len() {
            let state = *cx.slots.get(slot);
            if state.handle.is_none() || state.file.is_none_or(|f| f.set != self.set) {
                continue;
            }
            any = true;
            cx.slots.note(slot);
            cx.begin();
            let Some(handle) = cx.handle(slot) else { continue };
            match engine.fsync(handle) {
                Ok(()) => match cx.end(0) {
                    Outcome::Ok => {}
                    over => return over,
                },
                Err(errno) => return cx.failed("fsync failed", errno, state.file),
            }
        }
        if any { Outcome::Ok } else { cx.skip() }
    }
}
