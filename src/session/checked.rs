//! Checks a script: reads its definitions and makes its plan, and does nothing else.

use super::constants::{constant_errors, is_same};
use super::{BeforeRun, Extent, Front, Session, Settings, definitions_of, library};
use crate::diag::{Diagnostic, Failure, Reason, has_errors};
use crate::model::{self, Scope};
use crate::plan;
use crate::source::{FileId, SourceMap};
use std::sync::Arc;

/// A front end that keeps warnings, and shows nothing.
#[derive(Default, Debug)]
pub struct SilentFront {
    /// The warnings so far.
    pub found: Vec<Diagnostic>,
}

impl Front for SilentFront {
    fn warnings(&mut self, _: &SourceMap, found: &[Diagnostic]) {
        self.found.extend_from_slice(found);
    }
}

impl Session {
    /// Sets the folder of the script with this path. Texts that it loads are searched for there first.
    pub(crate) fn set_folder(&mut self, name: &str) {
        self.loaded.beside = library::folder_of(name);
    }

    /// Checks a script with the values that the command line gives its variables. Returns its model, and all errors and
    /// warnings in source order: those of its text, and without errors in it those of its values and the lints. And the
    /// failure of the command line.
    pub(crate) fn check_script(
        &mut self,
        file: FileId,
        front: &mut dyn Front,
    ) -> (model::Model, Vec<Diagnostic>, Result<(), Failure>) {
        let dialect = self.runner.settings.dialect;
        let (model, mut found) = model::check(&self.map, file, &self.table, dialect, &self.known(false));
        if has_errors(&found) {
            return (model, found, Ok(()));
        }
        self.note_dialect(&model, front);
        let name = self.map.file(file).name.clone();
        let applied = self.apply_sets_for(&name).and_then(|()| self.apply_settings(&model));
        if applied.is_ok() {
            found.extend(self.check_values(&model, &name));
        }
        if !has_errors(&found) {
            found.extend(model::lint::lint(&model, &Scope::default(), false));
        }
        found.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
        (model, found, applied)
    }

    /// True if the definitions of a script were read, or tried to be.
    pub(crate) fn has_read(&self) -> bool {
        self.extent == Extent::Check
    }

    /// Returns the errors in the values of a checked script, whose plan is made and dropped, and in those of its
    /// commands.
    pub fn check_values(&mut self, model: &model::Model, name: &str) -> Vec<Diagnostic> {
        let of_commands = constant_errors(&model.commands, &self.scope, &self.map);
        let mut front = SilentFront::default();
        let defined = self.read_definitions(model, name, &mut front);
        let planned = defined.and_then(|()| self.plan(&mut front));
        let mut never_ended = None;
        let checked = planned.and_then(|plan| {
            self.refuse_endless_phases(&plan)?;
            if self.run_lengths(model).contains(&None) {
                never_ended = plan::never_ended(&self.definitions, &plan);
            }
            Ok(())
        });
        let mut found = front.found;
        found.extend(never_ended);
        for reason in checked.err().into_iter().flat_map(|failure| failure.reasons) {
            if let Reason::Script(errors) = reason {
                found.extend(errors.found);
            }
        }
        let new = of_commands.into_iter().filter(|d| !found.iter().any(|other| is_same(other, d)));
        let new: Vec<Diagnostic> = new.collect();
        found.extend(new);
        found
    }

    /// Refuses a script that creates its files before it defines the processes of its first run, if this machine can't run
    /// them. Where they are defined before, the command that creates the files does so. Other errors are reported where
    /// they occur.
    pub(super) fn check_first_run(&self, model: &model::Model, name: &str) -> Result<(), Failure> {
        let mut before = BeforeRun::default();
        before.read(&model.commands);
        if !before.defines_later || !before.has_run {
            return Ok(());
        }
        let settings = &self.runner.settings;
        let mut ahead = Session::new(Settings::clone(settings), Arc::default());
        ahead.map = self.map.clone();
        ahead.extent = Extent::Check;
        let mut silent = SilentFront::default();
        let applied = ahead.apply_sets_for(name).and_then(|()| ahead.apply_settings(model));
        let defined = applied.and_then(|()| ahead.commands(&before.definitions, &mut silent));
        let plan = defined.and_then(|()| ahead.plan(&mut silent));
        let checked = plan.map_or(Ok(()), |plan| self.check_machine(&plan));
        self.runner.ranks.agree("the machine", checked)
    }

    /// Executes the definitions and settings of a script, and of the texts that it loads, up to the first one that fails.
    pub(crate) fn read_definitions(
        &mut self,
        model: &model::Model,
        name: &str,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        self.extent = Extent::Check;
        self.set_folder(name);
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        self.commands(&definitions_of(&model.commands), front)
    }
}
