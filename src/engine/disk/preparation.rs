//! The steps of a preparation. Ranks that share trees make them with the steps of other ranks in between.

use super::error::{Error, NotShared};
use super::prepare::{self, Action, PrepareOptions, PrepareTask, Prepared, Progress};
use super::quiesce::Quiesced;
use super::shared::TreeReport;
use super::space::{self, Demand};
use super::{Fileset, remove};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A preparation of file sets that has begun: their roots are taken and locked.
///
/// [`Preparation::finish`] or [`Preparation::abandon`] must end it: a value that is dropped leaves the roots locked.
pub struct Preparation {
    tasks: Vec<PrepareTask>,
}

impl Preparation {
    /// Takes and locks the roots, decides on actions, and checks the space. Creates nothing but roots and markers.
    ///
    /// On an error all roots are closed, unlocked and unchanged.
    pub fn begin(
        sets: &[Arc<Fileset>],
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        prepare::check_overlap(sets)?;
        let mut begun = Self { tasks: Vec::with_capacity(sets.len()) };
        let done = sets
            .iter()
            .try_for_each(|set| {
                begun.tasks.push(PrepareTask::new(set, prepare::take(set, options, stop)?));
                Ok(())
            })
            .and_then(|()| begun.decide(options, progress, stop));
        match done {
            Ok(()) => Ok(begun),
            Err(e) => {
                begun.abandon();
                Err(e)
            }
        }
    }

    /// Decides on the actions, and checks the space for them.
    fn decide(&mut self, options: &PrepareOptions, progress: &dyn Progress, stop: &AtomicBool) -> Result<(), Error> {
        for task in &mut self.tasks {
            task.decide(options, progress, stop)?;
        }
        if space::check_with_memory(&self.demands(), options.keep_free).is_ok() {
            return Ok(());
        }
        // Only if it matters.
        self.measure_freed(stop)?;
        space::check_with_memory(&self.demands(), options.keep_free)
    }

    fn demands(&self) -> Vec<Demand> {
        self.tasks.iter().filter_map(PrepareTask::demand).collect()
    }

    /// Determines the size of the trees to be removed, which the [reports](Preparation::reports) then contain. Takes one
    /// system call per file.
    pub fn measure_freed(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        for task in &mut self.tasks {
            if let Action::Replace(scan) = &task.action {
                task.freed = remove::bytes_of(&task.root, scan, stop)?;
            }
        }
        Ok(())
    }

    /// Declares that ranks create the files of the set's tree if it is new, each its part. The set is the one at this
    /// position.
    pub fn create_in_parts(&mut self, at: usize) {
        self.tasks[at].in_parts = true;
    }

    /// Performs the actions. Of trees that are created in parts, only the directories are created.
    pub fn perform(
        &mut self,
        options: &PrepareOptions,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        self.tasks.iter_mut().try_for_each(|task| task.perform(options, progress, stop))
    }

    /// Gives the markers new contents, by which other ranks recognise the trees. Nothing else tells apart the equal trees of
    /// two hosts whose disks are copies.
    pub fn renew_tokens(&mut self) -> Result<(), Error> {
        self.tasks.iter_mut().try_for_each(|task| {
            task.root.renew()?;
            task.token = task.root.token()?;
            Ok(())
        })
    }

    /// Returns an error when the marker of a tree has other contents than after [`Preparation::renew_tokens`]. Another rank
    /// has then taken the same directory, on a network file system without locks between hosts.
    pub fn check_tokens(&self) -> Result<(), Error> {
        for task in &self.tasks {
            if task.root.token()? != task.token {
                let (set, path) = (task.set.spec.name.clone(), task.root.path.clone());
                return Err(Error::Shared { set, path, why: NotShared::InUse });
            }
        }
        Ok(())
    }

    /// Returns what the other ranks must know of the trees, in the order of the sets.
    pub fn reports(&self) -> Vec<TreeReport> {
        self.tasks.iter().map(TreeReport::of).collect()
    }

    /// Completes the trees that were created in parts.
    pub fn complete(&mut self) -> Result<(), Error> {
        self.tasks.iter_mut().try_for_each(PrepareTask::complete)
    }

    /// Stores the open and locked roots in the sets, and returns the results.
    pub fn finish(self, quiesced: Option<Quiesced>) -> Vec<Prepared> {
        self.tasks.into_iter().map(|task| task.finish(quiesced)).collect()
    }

    /// Closes and unlocks the roots. Undoes what [`Preparation::begin`] created, unless the tree was changed since.
    pub fn abandon(self) {
        // In reverse order: directories that one set created may be inside directories that an earlier set created.
        for task in self.tasks.into_iter().rev() {
            if task.begun { task.root.close() } else { task.root.roll_back() }
        }
    }
}
