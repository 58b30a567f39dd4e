//! Warnings during execution: about settings without effect, and about loading a text while processes are defined.

use super::{Front, Session, listed};
use crate::diag::{self, Code, Diagnostic};
use crate::model::visit::{self, CommandPart};
use crate::model::{self, Expr, SetBy, TextPart};
use crate::plan::Definitions;
use crate::source::{Span, Spanned};

/// The variables that definitions use.
fn variables(definitions: &Definitions) -> Vec<String> {
    let mut names = Vec::new();
    let mut each = |part: CommandPart<'_>| visit::variables_of(part, &mut |name| names.push(name.to_owned()));
    definitions.filesets.iter().for_each(|def| visit::of_fileset(def, &mut each));
    definitions.processes.iter().for_each(|def| visit::of_process(def, &mut each));
    definitions.composites.iter().for_each(|def| visit::of_composite(def, &mut each));
    names
}

impl Session {
    /// Sets the default of `$dir`.
    pub(crate) fn set_default_dir(&mut self, path: &str, span: Span) {
        let text = Expr::Text(vec![TextPart::Text(path.to_owned())]);
        // A literal can't fail to be set.
        let _ = self.scope.set("dir", Spanned::new(text, span), SetBy::Default);
    }

    /// The origin of a setting that is executed now.
    pub(super) fn set_by(&self) -> SetBy {
        if self.flow.typing && self.loaded.depth == 0 { SetBy::Prompt } else { SetBy::Script }
    }

    /// Warns of a `set` without effect, at the prompt or in a script that has loaded another. `new`: the variable was
    /// undefined before, so that it is probably misspelt.
    pub(super) fn warn_without_effect(&self, name: &Spanned<String>, new: bool, front: &mut dyn Front) {
        /// Shorter names are near to most others.
        const LONG_ENOUGH: usize = 3;
        let typed = self.set_by() == SetBy::Prompt;
        let reads = self.loaded.reads.as_ref();
        if !typed
            && (self.loaded.depth > 0 || self.loaded.texts.is_empty() || reads.is_none_or(|r| r.contains(&name.node)))
        {
            return;
        }
        let Some(binding) = self.scope.binding(&name.node) else { return };
        if binding.by == SetBy::CommandLine {
            if !typed {
                return;
            }
            let message = format!("`${}` keeps the value that the command line gave it", name.node);
            let d = Diagnostic::warning(Code::Ignored, name.span, message);
            front.warnings(&self.map, &[d.help(format!("`unset ${}` takes that value back", name.node))]);
            return;
        }
        if !new || self.definitions.processes.is_empty() {
            return;
        }
        let used = self.variables_in_use();
        if used.contains(&name.node) {
            return;
        }
        let message = format!("nothing that is defined uses `${}`", name.node);
        let d = Diagnostic::warning(Code::UnusedVariable, name.span, message);
        let near = diag::nearest(&name.node, used.iter().map(String::as_str)).filter(|n| n.len() >= LONG_ENOUGH);
        let all = || match typed {
            true => "`vars` shows the variables".to_owned(),
            false => format!("what was loaded uses `${}`", used.join("`, `$")),
        };
        let help = near.map_or_else(all, |near| format!("did you mean `${near}`?"));
        front.warnings(&self.map, &[d.help(help)]);
    }

    /// The variables that definitions and other variables use.
    pub(crate) fn variables_in_use(&self) -> Vec<String> {
        let mut names = variables(&self.definitions);
        let others = self.scope.bindings().map(|b| &b.value);
        for expr in others.chain(&self.options.event_rate).chain(&self.options.default_seconds) {
            model::expr::variables(expr, &mut |v, _| names.push(v.name.clone()));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Before a text is loaded at the prompt: notes that the defined processes stay defined and run too.
    pub(super) fn note_other_processes(&self, front: &mut dyn Front) {
        if self.flow.typing && self.loaded.depth == 0 && !self.definitions.processes.is_empty() {
            let names: Vec<String> = self.definitions.processes.iter().filter_map(|p| p.attrs.name()).collect();
            front.note(&format!("processes defined so far stay defined: {} (`clear` forgets them)", listed(&names)));
        }
    }
}
