//! The directory of a batch. Not in here: what is written to it.

use super::state::Batch;
use super::workload::ProfileWorkload;
use crate::os::held_dir::HeldDir;
use crate::output::Results;
use crate::session::Front;
use std::path::{Path, PathBuf};

/// Makes the directory of the batch, `STATS/HOST-FILESYSTEM-PROFILE-TIME` below the results directory. Also returns the
/// `stats` of the profile if it is outside the results directory. An error names its path.
pub(super) fn results_dir(
    batch: &Batch<'_>,
    workloads: &[ProfileWorkload<'_>],
) -> Result<(HeldDir, Option<String>), (PathBuf, std::io::Error)> {
    let Some(first) = workloads.first() else { return Err((PathBuf::new(), std::io::ErrorKind::NotFound.into())) };
    let (path, settings) = (batch.path, batch.settings);
    let sets = batch.sets_of(first.config);
    let value = |key: &str| batch.value(first.config, key).map(str::to_owned);
    let stats = batch.stats(first.config).to_owned();
    let set = sets.iter().rev().find(|(name, _)| name == "dir").map(|(_, dir)| dir.clone());
    let dir = set.or_else(|| value("dir")).unwrap_or_else(|| ".".to_owned());
    let kind = || crate::measure::file_system(settings.below.as_deref().unwrap_or(Path::new(&dir)));
    let filesystem = value("filesystem").or_else(kind).unwrap_or_else(|| "unknown".to_owned());
    let host = if settings.redact { "host".to_owned() } else { crate::measure::hostname() };
    let stem = path.file_stem().map_or("profile".into(), |s| s.to_string_lossy());
    let name = format!("{host}-{filesystem}-{stem}-{}", crate::measure::day_and_time()).replace('/', "_");
    let results = Results::new(&settings.results, &settings.allow_write);
    results.check().map_err(|e| (results.base().to_owned(), e))?;
    results.check_allowed().map_err(|(path, e)| (path.to_owned(), e))?;
    let mapped = results.place(Path::new(&stats)).mapped.then(|| stats.clone());
    let place = results.place(&Path::new(&stats).join(name));
    // The name of a second batch within the same second ends in a number.
    let results_dir = results.make_new_dir(&place).map_err(|e| (place.path(), e))?;
    Ok((results_dir, mapped))
}

/// Warns of workloads with another `stats` than that of the first, which names the directory of the batch.
pub(super) fn warn_of_other_places(batch: &Batch<'_>, workloads: &[ProfileWorkload<'_>], front: &mut dyn Front) {
    let Some(first) = workloads.first().map(|first| batch.stats(first.config)) else { return };
    for workload in workloads {
        let own = batch.stats(workload.config);
        if own != first {
            let text = format!("`stats = {own};` of `CONFIG {}` has no effect", workload.name().node);
            front.warning(&text, "the results of a batch are in one directory: set `stats` in `DEFAULTS`");
        }
    }
}
