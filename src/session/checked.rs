//! Checks a script: reads its definitions and makes its plan, and does nothing else.

use super::{Extent, Front, Session, Status, definitions_of, library};
use crate::diag::Diagnostic;
use crate::model;
use crate::source::SourceMap;

impl Session {
    /// Sets the folder of the script with this path. Texts that it loads are searched for there first.
    pub(crate) fn set_folder(&mut self, name: &str) {
        self.loaded.beside = library::folder_of(name);
    }

    /// Returns the errors in the values of a checked script, whose plan is made and dropped.
    pub fn check_values(&mut self, model: &model::Model, name: &str) -> Vec<Diagnostic> {
        struct Silent(Vec<Diagnostic>);
        impl Front for Silent {
            fn line(&mut self, _: &str) {}
            fn note(&mut self, _: &str) {}
            fn diagnostics(&mut self, _: &SourceMap, found: &[Diagnostic]) {
                self.0.extend_from_slice(found);
            }
            fn error(&mut self, _: Option<&str>, _: &str, _: Option<&str>) {}
        }
        self.extent = Extent::Check;
        self.set_folder(name);
        let mut front = Silent(Vec::new());
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        if self.commands(&definitions_of(&model.commands), &mut front) == Status::Done {
            self.plan(&mut front);
        }
        front.0
    }
}
