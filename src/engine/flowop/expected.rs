//! Calls that must fail with a certain error (`missing`, `expect`). Programs often look up files that do not exist
//! (`missing`, `expect=ENOENT`), try to create a lock file or directory that exists already (`expect=EEXIST`), or find
//! out whether a name is a directory by opening it as one (`expect=ENOTDIR`).

use super::args::Args;
use super::op::{Effects, Op, stateless};
use super::pick_rule::PickRule;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop};
use crate::fileset::{Name, Want};
use crate::io_engine::{self, Engine};
use crate::random;
use std::ffi::CStr;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_os::{Errno, Fd, Mode, OFlags, errno_name, fd, inode};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NamedCall {
    Open,
    OpenDir,
    Stat,
    Access,
    ReadLink,
    Unlink,
    Create,
    MakeDir,
}

impl NamedCall {
    /// The call of a flowop for this `expect`; `None` for those that know neither `missing` nor `expect`.
    fn of(flowop: &str, expect: Option<&str>) -> Option<Self> {
        Some(match flowop {
            "openfile" if expect == Some("ENOTDIR") => Self::OpenDir,
            "openfile" => Self::Open,
            "statfile" => Self::Stat,
            "access" => Self::Access,
            "readlink" => Self::ReadLink,
            "deletefile" => Self::Unlink,
            "createfile" => Self::Create,
            "makedir" => Self::MakeDir,
            _ => return None,
        })
    }

    /// Returns the error that `expect` can ask for.
    fn expected_error(self) -> Errno {
        match self {
            Self::Create | Self::MakeDir => Errno::EXIST,
            Self::OpenDir => Errno::NOTDIR,
            _ => Errno::NOENT,
        }
    }

    /// Returns the name of that error, as in scripts.
    fn error_name(self) -> String {
        errno_name(self.expected_error().raw_os_error())
    }

    /// Makes the call on a name, and closes the file that it may have opened.
    fn make(self, engine: &dyn Engine, dir: Fd, name: &CStr) -> Result<(), Errno> {
        match self {
            Self::Open => engine.open(dir, name, OFlags::RDONLY, 0).and_then(|handle| engine.close(handle)),
            Self::OpenDir => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                engine.open(dir, name, flags, 0).and_then(|handle| engine.close(handle))
            }
            Self::Create => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                engine.open(dir, name, flags, 0).and_then(|handle| engine.close(handle))
            }
            Self::Stat => io_engine::call(dir, |dir| fd::stat_at(dir, name).map(drop)),
            Self::Access => io_engine::call(dir, |dir| inode::access_at(dir, name)),
            Self::ReadLink => io_engine::call(dir, |dir| fd::read_link_at(dir, name, &mut [0; 256]).map(drop)),
            Self::Unlink => io_engine::call(dir, |dir| fd::unlink_at(dir, name)),
            Self::MakeDir => io_engine::call(dir, |dir| fd::mkdir_at(dir, name, Mode::from_raw_mode(0o755))),
        }
    }
}

/// First number of the names for `missing`: above the numbers of the names in all file sets.
const FIRST_MISSING: u64 = 1_000_000_000_000_000_000;

/// An operation that succeeds if its call fails with a certain error.
pub(super) struct ExpectedError {
    call: NamedCall,
    set: usize,
    set_name: String,
    entries: u64,
    /// Whether the call uses a name that never exists in the set.
    missing: bool,
    pick: PickRule,
}

impl ExpectedError {
    /// Makes the operation of a flowop with `missing` or `expect`. `None` when it has neither.
    pub(super) fn from_args(args: &Args<'_>) -> Result<Option<Arc<dyn Op>>, Diagnostic> {
        let expected = args.text("expect").filter(|text| !text.is_empty());
        let Some(call) = NamedCall::of(args.spec.name, expected.as_deref()) else { return Ok(None) };
        // `missing` uses a name without checking first that it is free. It must not be accepted by a call that would
        // change the file if the name did exist.
        let harmless = call.expected_error() == Errno::NOENT && call != NamedCall::Unlink;
        let missing = harmless && args.flag("missing")?;
        if !missing && expected.is_none() {
            return Ok(None);
        }
        if let Some(text) = expected.filter(|text| *text != call.error_name()) {
            let message = format!("a `{}` can't fail with `{text}`", args.spec.name);
            return Err(Diagnostic::error(Code::OutOfRange, args.span_of("expect"), message)
                .help(format!("write `expect={}`", call.error_name())));
        }
        let set = args.need_fileset()?;
        let pick = PickRule::new(args, Some(&set), false)?;
        let entries = set.entries.max(1);
        let what = if missing { " missing".to_owned() } else { format!(" expect={}", call.error_name()) };
        let described = format!(" {}{}{what}", set.name, pick.describe());
        let op = Self { call, set: set.id, set_name: set.name, entries, missing, pick };
        Ok(Some(stateless(described, Effects::preserving(set.id), move |cx| op.run(cx))))
    }

    /// Returns a name that never exists in the set, in the directory of one of its files; without files, in its root.
    fn missing(&self, cx: &mut OpCx<'_>) -> Result<(FileRef, Fd, Name), Stop> {
        cx.restamp();
        let set = cx.any_part(self.set);
        let files = cx.files.views[set].set.tree.n_files().min(self.entries);
        if files == 0 {
            let root = cx.dir(set, 0).map_err(|errno| cx.dir_failed(errno, None))?;
            return Ok((FileRef { set, index: 0 }, root, Name::new(FIRST_MISSING)));
        }
        let file = FileRef { set, index: random::below(&mut cx.rng, files) };
        let (dir, _) = cx.locate(file)?;
        Ok((file, dir, Name::new(FIRST_MISSING + file.index)))
    }

    /// Returns the name of a directory of the set, with the descriptor of its parent.
    fn directory(&self, cx: &mut OpCx<'_>) -> Result<(FileRef, Fd, Name), Stop> {
        cx.restamp();
        let set = cx.any_part(self.set);
        let fileset = &cx.files.views[set].set;
        // The root, directory 0, has no name in the set.
        let below = fileset.tree.n_dirs() - 1;
        if below == 0 {
            let what = || format!("file set `{}` has no directory below its root", self.set_name);
            return Err(cx.misuse(what, "give it a smaller `dirwidth`"));
        }
        let dir = 1 + fileset.state.next_dir() % below;
        let (above, name) = (fileset.tree.parent(dir), fileset.tree.dir_name(dir));
        let fd = cx.dir(set, above).map_err(|errno| cx.dir_failed(errno, None))?;
        Ok((FileRef { set, index: dir }, fd, name))
    }

    /// Makes the call, and counts the operation if the call fails with the expected error.
    fn call_expecting_error(&self, cx: &mut OpCx<'_>, file: Option<FileRef>, dir: Fd, name: &CStr) -> Result<(), Stop> {
        let engine = cx.env.engine;
        cx.begin();
        match self.call.make(engine, dir, name) {
            Err(errno) if errno == self.call.expected_error() => cx.end(0),
            // An engine without files always succeeds.
            Ok(()) if !engine.real() => cx.end(0),
            Ok(()) => {
                let what = || format!("the call succeeded; expected {}", self.call.error_name());
                Err(cx.misuse(what, "another program changes the directory of the file set"))
            }
            Err(errno) => Err(cx.failed(&format!("expected {}", self.call.error_name()), errno, file)),
        }
    }

    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        if self.missing {
            let (_, dir, name) = self.missing(cx)?;
            return self.call_expecting_error(cx, None, dir, name.as_c());
        }
        if self.call == NamedCall::MakeDir {
            let (_, dir, name) = self.directory(cx)?;
            return self.call_expecting_error(cx, None, dir, name.as_c());
        }
        let want = if self.call.expected_error() == Errno::NOENT { Want::Absent } else { Want::Existing };
        let by = self.pick.draw(cx);
        let file = cx.pick(self.set, want, by, true)?;
        let done = match cx.locate(file) {
            Err(stop) => Err(stop),
            // A file that exists although its state says otherwise may belong to another program: it must not be
            // removed.
            Ok((dir, name)) => match self.call {
                NamedCall::Unlink => cx.verify_free_name(file, dir, name.as_c()),
                _ => Ok(()),
            }
            .and_then(|()| self.call_expecting_error(cx, Some(file), dir, name.as_c())),
        };
        cx.release(file);
        cx.restamp();
        done
    }
}
