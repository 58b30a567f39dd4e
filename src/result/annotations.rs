//! The annotations that the user gives a result, and parts of a document. Not in here: the document itself.

use super::Document;

/// The maximum length of the label of a result in bytes (`--label`).
pub const MAX_LABEL: usize = 1000;

/// The maximum length of the note of a result in bytes (`--note`).
pub const MAX_NOTE: usize = 10_000;

impl Document {
    /// Returns the document with one of its runs alone; without a run if there is no such one.
    #[must_use]
    pub fn with_run(&self, index: usize) -> Self {
        Self {
            schema: self.schema.clone(),
            tool: self.tool.clone(),
            command_line: self.command_line.clone(),
            label: self.label.clone(),
            note: self.note.clone(),
            process_id: self.process_id,
            script: self.script.clone(),
            seed: self.seed,
            layout_seed: self.layout_seed,
            environment: self.environment.clone(),
            complete: self.complete,
            runs: self.runs.get(index).cloned().into_iter().collect(),
        }
    }

    /// Returns the reason why a document of another program can't be read: its label or its note is longer than the
    /// options of a run allow. Pages and reports repeat them.
    pub fn too_long_annotation(&self) -> Option<&'static str> {
        let is_longer = |text: &Option<String>, most| text.as_ref().is_some_and(|text| text.len() > most);
        if is_longer(&self.label, MAX_LABEL) {
            return Some("its label has more than 1,000 bytes");
        }
        is_longer(&self.note, MAX_NOTE).then_some("its note has more than 10,000 bytes")
    }
}
