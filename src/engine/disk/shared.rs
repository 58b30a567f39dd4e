//! Trees that several ranks share: one rank prepares a tree and holds its lock, and each rank works on a part of its
//! files ([`Fileset::part_of`]).
//!
//! The other ranks open the root without a lock. They recognise the tree by the checksum of its marker, which the first
//! rank reports. Not here: which ranks share a tree, and the messages between them (`measure`).

use super::error::Error;
use super::not_shared::NotShared;
use super::populate::{self, Mode, PopulateJob};
use super::prepare::{Action, Phase, PrepareOptions, PrepareTask, Prepared, Progress};
use super::quiesce::Quiesced;
use super::space_sums::TreeDemand;
use super::{Fileset, root};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

impl Error {
    /// Returns the error as it is reported in a run on several hosts: a locked directory may belong to this run.
    #[must_use]
    pub fn between_hosts(self) -> Self {
        match self {
            Self::InUse { set, path } => Self::Shared { set, path, why: NotShared::InUse },
            e => e,
        }
    }
}

/// What the rank that prepares a tree tells the ranks that share it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TreeReport {
    /// The checksum of the marker.
    token: String,
    /// Whether each rank must create its files.
    pub in_parts: bool,
    /// Whether an existing tree was kept.
    reused: bool,
    /// Whether the tree was known to be as defined, and was not checked.
    pub unchanged: bool,
    /// Whether the tree is kept as it is, so that its files must be looked for.
    as_is: bool,
    /// Whether wmlrun created the root directory.
    made_root: bool,
    /// Number of directories below the root, without leaf directories.
    directories: u64,
    /// The space that the preparation needs. `None` if it creates no files.
    pub demand: Option<TreeDemand>,
}

impl TreeReport {
    /// Describes the tree of a preparation before its actions.
    pub(super) fn of(task: &PrepareTask) -> Self {
        Self {
            token: task.token.clone(),
            in_parts: task.in_parts && task.is_new(),
            reused: !task.is_new(),
            unchanged: matches!(task.action, Action::Unchanged),
            as_is: matches!(task.action, Action::Keep(_)),
            made_root: task.root.marker.made_root,
            directories: task.set.tree.n_dirs() - 1,
            demand: TreeDemand::of(task),
        }
    }
}

impl Fileset {
    /// Opens the root that another rank, or this one with another value, has taken. The root is open in the caller's descriptor table until [`Fileset::close`], and not locked.
    ///
    /// Returns [`Error::Shared`] when the directory is not that tree.
    pub fn open_shared(&self, report: &TreeReport) -> Result<(), Error> {
        self.close();
        let opened = root::open_taken(&self.spec, &report.token)?;
        let shared = |why| Error::Shared { set: self.spec.name.clone(), path: self.spec.root(), why };
        let root = opened.map_err(shared)?;
        if root.marker.links {
            self.allow_links();
        }
        self.set_root(root.fd);
        *self.held.lock() = Some(root);
        Ok(())
    }

    /// Creates the files of `part`, a part of the same tree, below the open root of this set. Returns the duration in
    /// seconds.
    pub fn create_part(
        &self,
        part: &Self,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<f64, Error> {
        let start = Instant::now();
        progress.started(&self.spec.name, Phase::Populate, part.tree.files_at_start(), part.tree.bytes_at_start());
        self.populate(part, Mode::Files, options, progress, stop)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Returns the preparation of this set as one rank sees it. In a tree that is kept as it is, first determines which
    /// files exist. `seconds`: the duration of [`Fileset::create_part`].
    pub fn prepared_part(
        &self,
        report: &TreeReport,
        seconds: f64,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Prepared, Error> {
        let (mut files, mut bytes) = (self.tree.files_at_start(), self.tree.bytes_at_start());
        if report.as_is {
            self.state.files.load(|_| false);
            self.state.leafdirs.load(|_| false);
            progress.started(&self.spec.name, Phase::Compare, self.tree.n_files(), 0);
            let found = self.populate(self, Mode::Read, options, progress, stop)?;
            (files, bytes) = (found.files, found.bytes);
        }
        Ok(Prepared {
            set: self.spec.name.clone(),
            path: self.spec.root(),
            files,
            directories: report.directories,
            bytes,
            populate_seconds: seconds,
            made_root: report.made_root,
            reused: report.reused,
            unchanged: report.unchanged,
            verified: !report.reused,
            ..Prepared::default()
        })
    }

    fn populate(
        &self,
        part: &Self,
        mode: Mode,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<populate::Changes, Error> {
        let held = self.held.lock();
        let Some(root) = &*held else { return Ok(populate::Changes::default()) };
        let job = PopulateJob { set: part, root, mode, threads: options.threads, seed: options.data_seed };
        populate::run(&job, stop, |files, bytes| progress.advanced(files, bytes))
    }
}

impl Prepared {
    /// Adds the wait for idle disks.
    #[must_use]
    pub fn with_wait(self, quiesced: Option<Quiesced>) -> Self {
        Self { sync_seconds: quiesced.map_or(0.0, |quiesced| quiesced.seconds), quiesced, ..self }
    }
}
