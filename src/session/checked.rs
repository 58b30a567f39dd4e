//! A script that is checked: its definitions are read and its plan is made, and nothing else is done.

use super::{Extent, Front, Session, Status, definitions_of, library};
use crate::diag::Diagnostic;
use crate::model;
use crate::source::SourceMap;

impl Session {
    /// Where a script lies: what it loads is sought there first.
    pub(super) fn lies_in(&mut self, name: &str) {
        self.loaded.beside = library::folder_of(name);
    }

    /// What is wrong with the values of a checked script: its plan is made and thrown away.
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
        self.lies_in(name);
        let mut front = Silent(Vec::new());
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        if self.commands(&definitions_of(&model.commands), &mut front) == Status::Done {
            self.plan(&mut front);
        }
        front.0
    }
}
