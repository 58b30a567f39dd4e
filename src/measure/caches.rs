//! The caches before a run: file sets are evicted or read in, as the script or the command line requires.

use super::cache::{Cache, common_state, inspect, missed_state, state_of};
use super::watch::WatchedProgress;
use super::{Front, Runner};
use crate::diag::{Failure, Status};
use crate::disk::prepare::{Phase, Progress as _};
use crate::disk::{Error, Fileset, cache, quiesce};
use crate::result::NoteCode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Runner {
    /// `fsflush`: writes the file sets back and evicts them from the page cache. Drops the caches of the whole machine
    /// only if the user allows it. Filebench calls a separate script for each file system type instead.
    pub fn fsflush(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let sets: Vec<Arc<Fileset>> = self.trees.sets.iter().map(|ready| Arc::clone(&ready.set)).collect();
        let threads = self.settings.populate_threads;
        let dropped = self.interruptible(|stop| {
            if self.settings.allow_drop_caches {
                return cache::drop_all(&sets, stop);
            }
            sets.iter().try_for_each(|set| cache::evict(set, threads, stop, |_, _| ())).map(|()| true)
        });
        if !self.settings.allow_drop_caches {
            front.note(
                "`fsflush` evicts the file sets only; `--allow-drop-caches` lets it drop all caches of the machine",
            );
        }
        if dropped.map_err(|e| self.stopped_or(e))? {
            self.trees.caches_dropped |= self.settings.allow_drop_caches;
        } else {
            front.note("the caches of the machine can't be dropped: that needs root");
        }
        Ok(())
    }

    /// The failure of work on trees: that of a signal, if one has stopped it.
    fn stopped_or(&self, e: Error) -> Failure {
        match self.signal() {
            0 => e.into(),
            signal => Failure::unexplained(Status::Interrupted(signal)),
        }
    }

    /// Evicts the sets that are to be cold, reads in those that are to be warm, and reads the resulting state.
    ///
    /// `dropped_before`: the script has dropped the machine's dentries and inodes, and expects them to be on the disk at
    /// the start. Those that the checks of the file sets have read since are dropped again.
    pub(crate) fn prepare_caches(
        &self,
        sets: &[Arc<Fileset>],
        dropped_before: bool,
        front: &mut dyn Front,
    ) -> Result<Cache, Failure> {
        if !self.settings.engine.real() {
            return Ok(Cache::none());
        }
        let cold = self.settings.cold;
        let wanted = |set: &Fileset| if cold { Some(false) } else { set.spec.cached };
        if cold && sets.iter().any(|set| set.spec.cached == Some(true)) {
            front.note("`--cold` overrides `cached` in the script");
        }
        for set in sets.iter().filter(|set| cold && quiesce::in_memory(&set.spec.root())) {
            front.note(&format!("`--cold` has no effect on file set `{}`, which is in memory", set.spec.name));
        }
        let threads = self.settings.populate_threads;
        let done = self.interruptible(|stop| -> Result<_, Error> {
            let progress = WatchedProgress { watch: &self.watch, progress: front.progress() };
            let dropped = cold && cache::drop_all(sets, stop)?;
            for set in sets.iter().filter(|set| wanted(set) == Some(false) && !dropped) {
                progress.started(&set.spec.name, Phase::Evict, set.state.files.n_existing(), 0);
                cache::evict(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
            }
            for set in sets.iter().filter(|set| wanted(set) == Some(true)) {
                progress.started(&set.spec.name, Phase::Warm, set.state.files.n_existing(), set.tree.bytes_at_start());
                cache::warm(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
            }
            let caches = sets.iter().map(|set| inspect(set, self.settings.seed)).collect::<Result<Vec<_>, _>>()?;
            // Reading the state has brought inodes back into memory.
            let dropped = dropped && cache::drop_all(sets, stop)?;
            // That would evict the sets that were read in.
            let is_any_warm = sets.iter().any(|set| wanted(set) == Some(true));
            let dropped_again = dropped || (dropped_before && !is_any_warm && cache::drop_all(sets, stop)?);
            Ok((caches, dropped, dropped_again))
        });
        let (found, dropped, dropped_again) = done.map_err(|e| self.stopped_or(e))?;
        if cold && !dropped {
            front.note("only file data was dropped from memory: dropping directories and inodes needs root");
        }
        if dropped_before && !dropped_again && !cold {
            front.note(
                "the check of the file sets has read directories and inodes again after the script dropped them; \
                 `--cold` as root drops those too",
            );
        }
        let missed = sets.iter().zip(&found).filter_map(|(set, cache)| missed_state(set, wanted(set), cache));
        let notes = missed.map(|text| NoteCode::OtherCacheState.note(text)).collect();
        let state = common_state(sets.iter().zip(&found).filter_map(|(set, cache)| state_of(wanted(set), cache)));
        Ok(Cache { state, sets: found, notes, by_program: None, by_device: BTreeMap::new() })
    }
}
