//! Directories: `makedir`, `removedir`, `listdir`, `listdirplus`.

use super::args::Args;
use super::expected::{ExpectedError, NamedCall};
use super::pick_rule::PickRule;
use super::{BuiltOp, Effects, FlowopEntry, Op, Stateless, Step, StepInit};
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, UnitKind};
use crate::fileset::Want;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "makedir",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "indexed", "expect"],
            roles: &[Role::MakesDirectory],
            origin: Origin::Both,
            doc: "creates one of the `leafdirs` of the set that does not exist",
            example: "flowop makedir name=mk,filesetname=leaves\nflowop removedir name=rm,filesetname=leaves",
        },
        build: |args| Leaf::build(args, true),
    },
    FlowopEntry {
        spec: Flowop {
            name: "removedir",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname", "indexed"],
            roles: &[Role::RemovesDirectory],
            origin: Origin::Both,
            doc: "removes one of the existing `leafdirs` of the set",
            example: "flowop makedir name=mk,filesetname=leaves\nflowop removedir name=rm,filesetname=leaves",
        },
        build: |args| Leaf::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "listdir",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname"],
            roles: &[],
            origin: Origin::Both,
            doc: "reads all names in a directory of the set, each time in the next directory",
            example: "flowop listdir name=ls,filesetname=data",
        },
        build: |args| List::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "listdirplus",
            class: Class::Io,
            direction: IoDirection::None,
            uses: &["filesetname"],
            roles: &[],
            origin: Origin::Wmlrun,
            doc: "as `listdir`, and reads the attributes of each name, as `ls -l` and READDIRPLUS of NFS do",
            example: "flowop listdirplus name=ll,filesetname=data",
        },
        build: |args| List::build(args, true),
    },
];

impl List {
    fn build(args: &Args<'_>, plus: bool) -> BuiltOp {
        let set = args.need_fileset()?;
        Ok(Arc::new(Self { set: set.id, name: set.name, plus }))
    }
}

impl Leaf {
    fn build(args: &Args<'_>, make: bool) -> BuiltOp {
        if make && let Some(op) = ExpectedError::from_args(args, NamedCall::MakeDir)? {
            return Ok(op);
        }
        let set = args.need_fileset()?;
        let pick = PickRule::of_leafdirs(args, &set)?;
        Ok(Arc::new(Self { set: set.id, name: set.name, pick, make }))
    }
}

#[derive(Debug)]
struct Leaf {
    set: usize,
    name: String,
    pick: PickRule,
    make: bool,
}

impl Stateless for Leaf {
    fn describe(&self) -> String {
        format!(" {}{}", self.name, self.pick.describe())
    }

    fn effects(&self) -> Effects {
        let made = if self.make { Want::Existing } else { Want::Absent };
        Effects { makes: vec![(self.set, made, UnitKind::LeafDir)], sets: vec![self.set], ..Effects::default() }
    }

    #[inline]
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        let want = if self.make { Want::Absent } else { Want::Existing };
        let by = self.pick.draw(cx);
        let FileRef { set, index } = cx.pick_leaf(self.set, want, by)?;
        let tree = &cx.files.views[set].set.tree;
        let name = tree.leafdir_name(index);
        let above = tree.dir_of_leafdir(index);
        let result = cx.dir(set, above).and_then(|dir| {
            cx.begin();
            if self.make { cx.env.engine.mkdir(dir, name.as_c()) } else { cx.env.engine.rmdir(dir, name.as_c()) }
        });
        match result {
            Ok(()) => {
                let outcome = cx.end(0);
                cx.files.views[set].set.state.leafdirs.set_exists(index, self.make);
                cx.restamp();
                outcome
            }
            Err(errno) => {
                cx.files.views[set].set.state.leafdirs.release(index);
                Err(cx.leaf_failed(
                    if self.make { "mkdir failed" } else { "rmdir failed" },
                    errno,
                    FileRef { set, index },
                ))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct List {
    set: usize,
    name: String,
    plus: bool,
}

/// Buffer size of one `getdents64` call in bytes, as in `readdir` of the C library.
const ENTRIES: u64 = 32 << 10;

impl Op for List {
    fn instantiate<'r>(&'r self, _init: &StepInit<'_>) -> Box<dyn Step + 'r> {
        Box::new(ListStep { set: self.set, plus: self.plus, buf: vec![0; ENTRIES as usize] })
    }

    fn describe(&self) -> String {
        format!(" {}", self.name)
    }

    fn preserves(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects { sets: vec![self.set], ..Effects::default() }
    }
}

struct ListStep {
    set: usize,
    plus: bool,
    buf: Vec<u8>,
}

impl Step for ListStep {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.restamp();
        let set = cx.any_part(self.set);
        let dir = cx.files.views[set].set.state.next_dir();
        let result = cx.dir(set, dir).and_then(|fd| {
            cx.begin();
            // A listing of millions of names that the end of the run interrupts is late.
            let may_go_on = || !cx.expired();
            if self.plus {
                cx.env.engine.list_plus(fd, c".", &mut self.buf, &may_go_on)
            } else {
                cx.env.engine.list(fd, c".", &mut self.buf, &may_go_on)
            }
        });
        match result {
            Ok((bytes, calls)) => {
                cx.cell().add_calls(calls.saturating_sub(1));
                let ended = cx.end(0);
                if ended.is_ok() {
                    cx.cell().add_listed(bytes);
                }
                ended
            }
            Err(errno) => Err(cx.failed("reading a directory failed", errno, None)),
        }
    }
}
