//! Further runs of an experiment that has ended, or is to make more runs than it was started for.

use super::folder::{Folder, description_text};
use super::folder_error::{FolderError, io_error};
use super::identity::digest;
use super::journal::Event;
use super::wanted::Experiment;
use crate::import::folder::EXPERIMENT;
use crate::os::held_dir::HeldDir;
use crate::output;
use crate::util::timestamp::now;
use std::sync::Arc;

impl Folder {
    /// Changes the number of runs of each arm, such as of an experiment that is complete. Returns an error if it would be
    /// smaller than the number of those that were made, if all runs of an arm are made before those of the next, and if
    /// the experiment has no such number.
    pub(crate) fn extend(&mut self, runs: (u64, u64)) -> Result<(), FolderError> {
        let refused = |why: String| FolderError::Extension { path: self.path().to_owned(), why };
        let mut experiment = (*self.experiment).clone();
        experiment.rule.set_runs(runs).map_err(|why| refused(why.to_owned()))?;
        let made = self.runs.len().div_ceil(experiment.arms.len()) as u64;
        if runs.1 < made {
            return Err(refused(format!("it has {made} runs of a cell already")));
        }
        if experiment == *self.experiment {
            return Ok(());
        }
        self.describe_anew(experiment)
    }

    /// Changes the description of the experiment.
    pub(super) fn describe_anew(&mut self, experiment: Experiment) -> Result<(), FolderError> {
        let file = self.path().join(EXPERIMENT);
        let text = description_text(&experiment, &file)?;
        // The event comes first: with it either description is valid.
        self.write(&Event::Extended { experiment: digest(text.as_bytes()), time: now() })?;
        let (dir, name) = HeldDir::of_entry(&file).map_err(io_error(&file))?;
        output::replace_in(&dir, &name, &mut |out| out.write_all(text.as_bytes())).map_err(io_error(&file))?;
        (self.experiment, self.was_complete) = (Arc::new(experiment), false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::design_tests::{ab, factorial};
    use super::super::identity::Identity;
    use super::*;
    use crate::experiment::{Blocks, RuleWanted};

    fn most(folder: &Folder) -> u64 {
        let RuleWanted::Factorial { max_runs, .. } = folder.experiment.rule else { return 0 };
        max_runs
    }

    #[test]
    fn the_description_has_the_number_of_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let mut folder = Folder::create(&path, factorial(&[2, 2], (2, 2), None, false)).unwrap();
        folder.extend((5, 5)).unwrap();
        drop(folder);
        let resumed = || Folder::resume(&path, &Identity::default(), true).unwrap();
        let mut folder = resumed();
        assert_eq!((most(&folder), folder.notes().len()), (5, 0));
        folder.extend((5, 9)).unwrap();
        assert!(folder.experiment.repeat_rule().unwrap().target.is_some(), "a range ends at a precision");
        folder.extend((3, 3)).unwrap();
        assert_eq!((most(&folder), folder.experiment.repeat_rule().unwrap().target), (3, None));
    }

    /// Killed between the event and the description: the old one is as valid as the new one, and any other is not.
    #[test]
    fn an_interrupted_extension_is_no_change_of_the_description() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let mut folder = Folder::create(&path, factorial(&[2, 2], (2, 2), None, false)).unwrap();
        let identity = folder.experiment.identity.clone();
        let before = std::fs::read(path.join(EXPERIMENT)).unwrap();
        folder.extend((5, 5)).unwrap();
        drop(folder);
        let changes = || match Folder::resume(&path, &identity, false) {
            Ok(_) => Vec::new(),
            Err(FolderError::Changed { changed, .. }) => changed,
            Err(error) => panic!("{error}"),
        };
        let of_owner = changes();
        let after = std::fs::read_to_string(path.join(EXPERIMENT)).unwrap();
        std::fs::write(path.join(EXPERIMENT), before).unwrap();
        assert_eq!(changes(), of_owner);
        std::fs::write(path.join(EXPERIMENT), after.replace("max_runs = 5", "max_runs = 6")).unwrap();
        assert!(changes().iter().any(|change| change.contains(EXPERIMENT)));
    }

    #[test]
    fn runs_in_order_and_comparisons_are_not_extended() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::create(&dir.path().join("r"), factorial(&[2], (2, 2), None, true)).unwrap();
        let error = folder.extend((5, 5)).unwrap_err();
        assert!(error.to_string().contains("so that none can be added"), "{error}");
        let mut folder = Folder::create(&dir.path().join("s"), ab(Blocks::Pilot)).unwrap();
        let error = folder.extend((5, 5)).unwrap_err();
        assert!(error.to_string().contains("has blocks"), "{error}");
    }
}
