//! The caches before a run: file sets are evicted or read in, as the script or the command line requires.

use crate::diag::{Failure, Status};
use crate::disk::prepare::{Phase, Progress as _};
use crate::disk::{Error, Fileset, cache, quiesce};
use crate::measure::cache::{Cache, common_state, inspect, missed_state, state_of};
use crate::measure::watch::{Watch, WatchedProgress};
use crate::measure::{Front, Settings};
use crate::result::{Note, NoteCode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The failure of work on trees: that of a signal, if one has stopped it.
pub(super) fn stopped_or(watch: &Watch, e: Error) -> Failure {
    match watch.signal() {
        0 => e.into(),
        signal => Failure::unexplained(Status::Interrupted(signal)),
    }
}

/// Evicts the sets that are to be cold, reads in those that are to be warm, and reads the resulting state.
///
/// `dropped_before`: the script has dropped the machine's dentries and inodes, and expects them to be on the disk at
/// the start. Those that the checks of the file sets have read since are dropped again.
pub(super) fn prepare(
    settings: &Settings,
    watch: &Watch,
    sets: &[Arc<Fileset>],
    dropped_before: bool,
    front: &mut dyn Front,
) -> Result<Cache, Failure> {
    if !settings.engine.real() {
        return Ok(Cache::none());
    }
    let cold = settings.cold;
    let wanted = |set: &Fileset| if cold { Some(false) } else { set.spec.cached };
    if cold && sets.iter().any(|set| set.spec.cached == Some(true)) {
        front.note("`--cold` overrides `cached` in the script");
    }
    for set in sets.iter().filter(|set| cold && quiesce::in_memory(&set.spec.root())) {
        front.note(&format!("`--cold` has no effect on file set `{}`, which is in memory", set.spec.name));
    }
    let threads = settings.populate_threads;
    let done = watch.interruptible(|stop| -> Result<_, Error> {
        let progress = WatchedProgress { watch, progress: front.progress() };
        let dropped = cold && cache::drop_all(sets, stop)?;
        for set in sets.iter().filter(|set| wanted(set) == Some(false) && !dropped) {
            progress.started(&set.spec.name, Phase::Evict, set.state.files.n_existing(), 0);
            cache::evict(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
        }
        for set in sets.iter().filter(|set| wanted(set) == Some(true)) {
            progress.started(&set.spec.name, Phase::Warm, set.state.files.n_existing(), set.tree.bytes_at_start());
            cache::warm(set, threads, stop, |files, bytes| progress.advanced(files, bytes))?;
        }
        let caches = sets.iter().map(|set| inspect(set, settings.seed)).collect::<Result<Vec<_>, _>>()?;
        // Reading the state has brought inodes back into memory.
        let dropped = dropped && cache::drop_all(sets, stop)?;
        // That would evict the sets that were read in.
        let is_any_warm = sets.iter().any(|set| wanted(set) == Some(true));
        let dropped_again = dropped || (dropped_before && !is_any_warm && cache::drop_all(sets, stop)?);
        Ok((caches, dropped, dropped_again))
    });
    let (found, dropped, dropped_again) = done.map_err(|e| stopped_or(watch, e))?;
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

/// The directories in which file systems are mounted by hand.
const MOUNT_POINTS: [&str; 3] = ["/", "/mnt", "/media"];

/// Returns a note for each of the directories that were created if a file system is usually mounted there: the run then
/// measures another one.
pub(super) fn not_mounted<'a>(made: impl Iterator<Item = &'a Path>) -> Vec<Note> {
    let usual = |dir: &&Path| dir.parent().is_some_and(|parent| MOUNT_POINTS.iter().any(|place| parent == *place));
    let note = |dir: &Path| NoteCode::NotMounted.note(format!("no file system was mounted on {}", dir.display()));
    made.filter(usual).collect::<BTreeSet<_>>().into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::not_mounted;
    use std::path::Path;

    #[test]
    fn a_directory_where_nothing_is_mounted_has_a_note() {
        let made = ["/mnt/b", "/a", "/mnt/b/c", "/tmp/d", "/mnt/b", "/home/e/f"].map(Path::new);
        let notes: Vec<String> = not_mounted(made.into_iter()).into_iter().map(|note| note.message).collect();
        assert_eq!(notes, ["no file system was mounted on /a", "no file system was mounted on /mnt/b"]);
    }
}
