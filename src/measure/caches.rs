//! Before a run: file sets are evicted or read in, as the script or the command line wants it.

use super::cache::{Cache, all, look, missed, state};
use super::watch::Watched;
use super::{Front, Runner, Status};
use crate::disk::prepare::{Phase, Progress as _};
use crate::disk::{Error, Fileset, cache, quiesce};
use std::sync::Arc;

impl Runner {
    /// `fsflush`: Filebench calls a script of its own for each type of file system. Here the file sets are written back and go
    /// from the page cache; that of the whole machine only where the user allows it.
    pub fn fsflush(&mut self, front: &mut dyn Front) -> Status {
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
        match dropped {
            Ok(true) => Status::Done,
            Ok(false) => {
                front.note("the caches of the machine can't be dropped: that needs root");
                Status::Done
            }
            Err(_) if self.signal() != 0 => Status::Interrupted(self.signal()),
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                Status::Refused
            }
        }
    }

    /// Evicts what is to be cold, reads in what is to be warm, and looks at what came of it.
    pub(crate) fn bring_caches(&self, sets: &[Arc<Fileset>], front: &mut dyn Front) -> Result<Cache, Status> {
        if !self.settings.engine.real() {
            return Ok(Cache::none());
        }
        let cold = self.settings.cold;
        let wish = |set: &Fileset| if cold { Some(false) } else { set.spec.cached };
        if cold && sets.iter().any(|set| set.spec.cached == Some(true)) {
            front.note("`--cold` goes before the `cached` of the script");
        }
        for set in sets.iter().filter(|set| cold && quiesce::in_memory(&set.spec.root())) {
            front.note(&format!("`--cold` does nothing to file set `{}`, which lies in memory", set.spec.name));
        }
        let threads = self.settings.populate_threads;
        let done = self.interruptible(|stop| -> Result<_, Error> {
            let progress = Watched { watch: &self.watch, progress: front.progress() };
            let dropped = cold && cache::drop_all(sets, stop)?;
            for set in sets.iter().filter(|set| wish(set) == Some(false) && !dropped) {
                progress.started(&set.spec.name, Phase::Evict, set.state.files.n_existing(), 0);
                cache::evict(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
            }
            for set in sets.iter().filter(|set| wish(set) == Some(true)) {
                progress.started(&set.spec.name, Phase::Warm, set.state.files.n_existing(), set.tree.bytes_at_start());
                cache::warm(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
            }
            let looked = sets.iter().map(|set| look(set, self.settings.seed)).collect::<Result<Vec<_>, _>>()?;
            // The look itself has brought inodes back.
            let dropped = dropped && cache::drop_all(sets, stop)?;
            Ok((looked, dropped))
        });
        let (found, dropped) = match done {
            Ok(done) => done,
            Err(_) if self.signal() != 0 => return Err(Status::Interrupted(self.signal())),
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                return Err(Status::Refused);
            }
        };
        if cold && !dropped {
            front.note("only the files' data was dropped from memory: for directories and inodes root is needed");
        }
        for (set, looked) in sets.iter().zip(&found) {
            if let Some(text) = missed(set, wish(set), looked) {
                front.note(&text);
            }
        }
        let state = all(sets.iter().zip(&found).filter_map(|(set, looked)| state(wish(set), looked)));
        Ok(Cache { state, sets: found })
    }
}
