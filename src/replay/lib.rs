//! Replay: the calls of a trace are made again, below a directory.
//!
//! What existed at the beginning is found out from the calls, and made first (`lookout`, `tree`, `root`). Each traced thread is
//! a thread here. It makes its calls (`call`) in their order, and waits for those of other threads on the same names and files
//! (`order`); `plan` and `actions` work all this out beforehand, so that a thread only compares counters (`run`). Descriptors
//! are those that the program had (`descriptors`). `outcome` says what came out differently.
//!
//! A call reaches a name by the descriptor of its directory and one component. Links are followed in the plan and in no call.
//!
//! Not here: the recorder, the format of traces, and what programs mean by their calls.

mod actions;
mod call;
mod descriptors;
mod file_kind;
mod lookout;
mod names;
mod order;
mod outcome;
mod plan;
mod root;
mod run;
mod space;
mod tree;
mod wish;

pub use outcome::{ReplayOutcome, ReplayedClass};
pub use root::REPLAY_ROOT;
pub use run::ReplayDone;
pub use space::TreeSize;
pub use wish::{ReplaySpeed, ReplayStop, ReplayWish};

use plan::ReplayPlan;
use root::ReplayRoot;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tree::FileKind;
use wml_os::held_dir::HeldDir;

/// A trace that can be replayed below a directory.
#[derive(Debug)]
pub struct ReadyReplay {
    plan: ReplayPlan,
    wish: ReplayWish,
    root: ReplayRoot,
    above: HeldDir,
    /// The paths of the directories of the beginning, by their numbers.
    dirs: Vec<Option<CString>>,
}

impl ReadyReplay {
    /// Reads a trace, and takes the directory in `dir`: what another replay has left there is removed.
    ///
    /// # Errors
    /// If the trace can't be read, or the directory holds something else.
    pub fn read(input: impl Read + Seek, dir: &Path, wish: &ReplayWish) -> Result<Self, ReplayStop> {
        let plan = ReplayPlan::read(input, wish)?;
        if !plan.missing.is_empty() && !wish.takes_incomplete {
            return Err(ReplayStop::Incomplete(plan.missing));
        }
        if plan.threads.iter().flat_map(|thread| &thread.ops).all(|op| op.bits & plan::OWN != 0) {
            return Err(ReplayStop::Nothing);
        }
        let (root, above) = ReplayRoot::take(dir)?;
        Ok(Self { plan, wish: *wish, root, above, dirs: Vec::new() })
    }

    /// How many threads make calls.
    pub fn threads(&self) -> u64 {
        self.plan.threads.iter().filter(|thread| !thread.ops.is_empty()).count() as u64
    }

    /// What [`Self::fill`] makes. A file with several names is one.
    pub fn initial(&self) -> TreeSize {
        let mut all = TreeSize::default();
        let made: BTreeSet<u32> = self.plan.tree.initial.iter().map(|(_, node)| *node).collect();
        for file in made.iter().map(|node| &self.plan.tree.nodes[*node as usize]) {
            *if file.kind == FileKind::Directory { &mut all.directories } else { &mut all.files } += 1;
            all.bytes = all.bytes.saturating_add(file.first_bytes());
        }
        all
    }

    /// The most that there is at a time, while the calls are made in the order of the trace.
    pub fn most(&self) -> TreeSize {
        self.plan.tree.space.most(self.initial())
    }

    /// Makes what was there before the first call.
    ///
    /// # Errors
    /// If that fails, or `stop` is set.
    pub fn fill(&mut self, stop: &AtomicBool) -> Result<(), ReplayStop> {
        self.dirs = self.root.fill(&self.above, &mut self.plan, self.wish.seed, stop)?;
        Ok(())
    }

    /// Makes the calls.
    ///
    /// # Errors
    /// If its threads can't be started.
    pub fn run(&self, stop: &AtomicBool) -> Result<ReplayDone, ReplayStop> {
        run::run(&self.plan, &self.root.dir, &self.dirs, &self.wish, stop)
    }

    /// Compares what came of the calls with the recording.
    ///
    /// # Errors
    /// If the tree at the end can't be read.
    pub fn outcome(&self, done: &ReplayDone) -> Result<ReplayOutcome, ReplayStop> {
        let found = root::found_below(&self.root.dir)?;
        Ok(ReplayOutcome::of(&self.plan, done, &found))
    }
}
