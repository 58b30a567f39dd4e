//! `load`: finds a text, bounds the cost of loading, and executes its definitions.

use super::{CommandError, Extent, Front, Session, library};
use crate::diag::{Code, Diagnostic, Failure};
use crate::measure::sha256;
use crate::model::scope::Binding;
use crate::model::visit::CommandPart;
use crate::model::{self, Expr, Scope, SetBy};
use crate::source::{FileId, Spanned};
use crate::spec::Dialect;
use crate::util::count::count;
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Most texts that load one another at once. A text that loads itself exceeds any limit.
const DEEPEST: usize = 16;

/// Charge in bytes for loading a text, besides its length.
const LOAD: usize = 4096;

/// Most bytes of all texts that a session loads, with their charges.
const MOST_LOADED: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(crate) struct LoadedText {
    pub(crate) name: String,
    pub(crate) file: FileId,
    pub(crate) dialect: Dialect,
    /// SHA-256 of the text.
    digest: String,
    /// Whether another text has loaded it.
    pub(crate) nested: bool,
}

/// State of a session about loaded texts, besides definitions and variables.
#[derive(Default)]
pub(crate) struct Loaded {
    /// The texts, in the order of loading.
    pub(crate) texts: Vec<LoadedText>,
    /// The dialect of the last one.
    pub(crate) dialect: Dialect,
    /// What to say about it after a run that failed, if the last text may be of the other one.
    pub(super) guess: Option<String>,
    pub(crate) usage: Vec<Spanned<Expr>>,
    /// Notes of their leading comments that results repeat.
    pub(crate) notes: IndexSet<String>,
    /// Variables with the values with which they were compared with their programs.
    pub(crate) compared: BTreeMap<String, String>,
    /// Variables that texts set which were checked so far: those that they load may read them before they are set.
    pub(super) promised: HashSet<String>,
    /// Variables that they set, in order, which `vars` of 1.4 prints.
    pub(crate) variables: IndexSet<String>,
    /// Bytes and charges so far.
    pub(super) cost: usize,
    /// Number of texts that are being loaded.
    pub(super) depth: usize,
    /// The folder of the script, where texts to load are searched for first.
    pub(super) beside: Option<PathBuf>,
    /// Whether a whole script is run: the result names it, and not the texts that it loads.
    pub(super) whole: bool,
    /// Whether a workload of a profile is run, which has its own run time.
    pub(super) of_profile: bool,
    /// The variables that a whole script reads, if it loads one text. `None` if it loads none or several.
    pub(super) reads: Option<HashSet<String>>,
}

impl Loaded {
    /// Returns the names of the texts that no other text has loaded, each once, in the order of loading.
    fn outer_names(&self) -> impl Iterator<Item = &str> {
        let names: IndexSet<&str> =
            self.texts.iter().filter(|text| !text.nested).map(|text| text.name.as_str()).collect();
        names.into_iter()
    }

    /// Returns these scripts, of one that was loaded again the last text.
    pub(crate) fn outer_texts(&self) -> Vec<&LoadedText> {
        let last = |name: &str| self.texts.iter().rfind(|text| !text.nested && text.name == name);
        self.outer_names().filter_map(last).collect()
    }

    /// Returns the digests of the texts that the script of the result has loaded. One that was loaded again counts once, as it
    /// was the last time.
    pub(super) fn digests(&self) -> Vec<String> {
        digests(self.texts.iter().filter(|text| self.whole || text.nested))
    }
}

/// Returns the digest of each text as it was the last time.
fn digests<'a>(texts: impl Iterator<Item = &'a LoadedText>) -> Vec<String> {
    let last: IndexMap<&str, &String> = texts.map(|text| (text.name.as_str(), &text.digest)).collect();
    last.into_values().cloned().collect()
}

impl Session {
    /// Returns the digests of all texts that have been loaded.
    pub(crate) fn loaded_digests(&self) -> Vec<String> {
        digests(self.loaded.texts.iter())
    }

    pub(super) fn load_command(&mut self, name: &Spanned<Expr>, front: &mut dyn Front) -> Result<(), CommandError> {
        let wanted = self.text(name)?;
        let reading = self.runner.reading("reading a script to load");
        let found = library::find(&wanted, self.loaded.beside.as_deref());
        drop(reading);
        let found = found.map_err(|e| e.diagnostic(&Spanned::new(wanted, name.span)))?;
        if self.loaded.depth >= DEEPEST {
            let d = Diagnostic::error(Code::BadArgument, name.span, "scripts that load each other in a cycle");
            return Err(d.help("break the cycle").into());
        }
        let known = self.definitions.filesets.len() + self.definitions.processes.len() + self.scope.bindings().count();
        self.loaded.cost += found.text.len() + LOAD + 64 * known;
        if self.loaded.cost > MOST_LOADED {
            let d = Diagnostic::error(Code::BadArgument, name.span, "too many scripts are loaded");
            return Err(d.help("load each script once; variables that are set later change what it does").into());
        }
        if let Some(path) = found.path.as_deref().filter(|path| self.runner.outputs.is_output(path)) {
            let message = format!("{} is what `--json` or `--trace` would replace", path.display());
            self.runner.outputs.give_up_outputs();
            let d = Diagnostic::error(Code::Refused, name.span, message);
            return Err(d.help("give the option another path").into());
        }
        self.note_other_processes(front);
        let elsewhere = self.set_by() != SetBy::Prompt && library::is_elsewhere(&found, self.loaded.beside.as_deref());
        if elsewhere {
            let d = Diagnostic::warning(
                Code::LoadsElsewhere,
                name.span,
                format!("{} is outside the script's folder", found.name),
            );
            front.warnings(
                &self.map,
                &[d.help("check this file; before you share the script, copy the file into the script's folder")],
            );
        }
        let is_typed = self.set_by() == SetBy::Prompt;
        let typed: Vec<Binding> = self.typed_variables().filter(|_| is_typed).cloned().collect();
        let loaded = self.load_text(&found.name, &found.text, elsewhere, front);
        if loaded.is_ok() && is_typed {
            self.note_definitions(front);
        }
        self.note_replaced(&typed, front);
        Ok(loaded?)
    }

    /// Says what is defined after a script was loaded at the prompt, or for it.
    pub(crate) fn note_definitions(&self, front: &mut dyn Front) {
        let Some(loaded) = self.loaded.texts.iter().rfind(|text| !text.nested) else { return };
        let (sets, processes) = (self.definitions.filesets.len() as u64, self.definitions.processes.len() as u64);
        front.note(&format!(
            "loaded {}, dialect {}; defined: {}, {}",
            loaded.name,
            loaded.dialect.name(),
            count(sets, "file set"),
            count(processes, "process")
        ));
    }

    /// The variables that were set at the prompt.
    fn typed_variables(&self) -> impl Iterator<Item = &Binding> {
        self.scope.bindings().filter(|binding| binding.by == SetBy::Prompt)
    }

    /// Says which of the variables that were set at the prompt the script has set to another value.
    fn note_replaced(&self, typed: &[Binding], front: &mut dyn Front) {
        let is_replaced = |before: &&Binding| {
            let now = self.scope.binding(&before.name);
            now.is_some_and(|now| now.by == SetBy::Script && now.value.node != before.value.node)
        };
        let names: Vec<String> = typed.iter().filter(is_replaced).map(|binding| format!("${}", binding.name)).collect();
        if !names.is_empty() {
            front.note(&format!(
                "the script has changed values that were set at the prompt: {}; set them again after `load`",
                names.join(", ")
            ));
        }
    }

    /// Notes variables that are set after the next text is loaded, which may read them.
    pub(crate) fn promise_variables(&mut self, names: impl Iterator<Item = String>) {
        self.loaded.promised.extend(names);
    }

    /// Notes the variables that a text sets: texts that it loads may read them before.
    pub(super) fn promise(&mut self, model: &model::Model) {
        for command in model::visit::all(&model.commands) {
            model::visit::parts(&command.kind, &mut |part| {
                if let CommandPart::Set(name) = part {
                    self.loaded.promised.insert(name.node.clone());
                }
            });
        }
    }

    /// Executes a text as `load` does: a `run` in it only sets the default run time.
    pub fn load(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Result<(), Failure> {
        self.load_text(name, text, false, front)
    }

    /// The same. Messages quote nothing of a `hidden` text.
    pub(crate) fn load_text(
        &mut self,
        name: &str,
        text: &str,
        hidden: bool,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        let file = self.map.add(name, text);
        if hidden {
            self.map.hide(file);
        }
        let dialect = self.runner.settings.dialect;
        let mut known = self.known(false);
        known.variables.extend(self.loaded.promised.iter().cloned());
        let (model, found) = model::check(&self.map, file, &self.table, dialect, &known);
        self.promise(&model);
        self.without_errors(found, front)?;
        match self.extent {
            Extent::Check => front.warnings(&self.map, &model::lint::effects(&model.commands, &self.scope)),
            _ => self.check_permission(&model)?,
        }
        if self.loaded.depth == 0 && !self.loaded.whole {
            self.loaded.notes.clear();
            self.loaded.compared.clear();
        }
        self.note_dialect(&model, front);
        self.loaded.usage.clear();
        let nested = self.loaded.depth > 0;
        let (name_of_text, digest) = (name.to_owned(), sha256(text));
        self.loaded.texts.push(LoadedText { name: name_of_text, file, dialect: model.dialect, digest, nested });
        self.describe_script(file, &model);
        // What the shell loads is searched for beside the script that names it, as in a run of that script.
        let beside = self.loaded.beside.clone();
        if !nested && beside.is_none() {
            self.loaded.beside = library::folder_of(name);
        }
        self.loaded.depth += 1;
        let done = if self.extent == Extent::Whole {
            self.commands(&model.commands, front)
        } else {
            self.commands(&super::definitions_of(&model.commands), front)
        };
        self.loaded.depth -= 1;
        self.loaded.beside = beside;
        self.flow.quit = false;
        done
    }

    /// Reports what spoils a run of the only text that was loaded, as before the run of a script. `scope`: the variables
    /// that were set before it was loaded, and those that replace its own. Several texts are not examined: what each of them
    /// lacks may be in another.
    pub(crate) fn lint_loaded(&self, scope: &Scope, front: &mut dyn Front) {
        let [text] = &self.loaded.texts[..] else { return };
        let dialect = self.runner.settings.dialect;
        let (model, found) = model::check(&self.map, text.file, &self.table, dialect, &self.known(false));
        let found = if crate::diag::has_errors(&found) { Vec::new() } else { model::lint::lint(&model, scope, true) };
        if !found.is_empty() {
            front.warnings(&self.map, &found);
        }
    }
}
