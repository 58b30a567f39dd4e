//! `load`: where a text is found, what loading it costs, and what is kept of it.

use super::{Extent, Front, Session, Status, library};
use crate::diag::{Code, Diagnostic};
use crate::model::{self, Expr, SetBy};
use crate::source::{FileId, Spanned};
use crate::spec::Dialect;
use indexmap::IndexSet;
use std::collections::HashSet;
use std::path::PathBuf;

/// Texts that load texts that load texts: more is a circle.
const DEEPEST: usize = 16;

/// What loading a text costs, in bytes, besides those of the text.
const LOAD: usize = 4096;

/// Bytes of all texts that a session loads.
const MOST_LOADED: usize = 64 << 20;

/// What is kept of the texts that were loaded, besides what they define and set.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Names and texts, in order.
    pub(crate) texts: Vec<(String, FileId)>,
    /// The dialect of the last one.
    pub(crate) dialect: Dialect,
    pub(crate) usage: Vec<Spanned<Expr>>,
    /// What their leading comments say that a reader of the figures must know.
    pub(crate) notes: IndexSet<String>,
    /// Variables that they set, in order: what `vars` of 1.4 prints.
    pub(crate) variables: IndexSet<String>,
    /// What they have cost: bytes, and a charge for each.
    pub(super) cost: usize,
    /// How many texts load one another now.
    pub(super) depth: usize,
    /// Where the script lies: what it loads is sought there first.
    pub(super) beside: Option<PathBuf>,
    /// A whole script is run: what it loads does not take its place in the result.
    pub(super) whole: bool,
    /// What a whole script reads that loads one text; `None` if it loads none or several, and what those read is not known.
    pub(super) reads: Option<HashSet<String>>,
}

impl Session {
    pub(super) fn load_command(
        &mut self,
        name: &Spanned<Expr>,
        front: &mut dyn Front,
    ) -> Result<Status, Box<Diagnostic>> {
        let wanted = self.text(name)?;
        let reading = self.runner.reading("reading a script to load");
        let found = library::find(&wanted, self.loaded.beside.as_deref());
        drop(reading);
        let found = match found {
            Ok(found) => found,
            Err(library::NotFound::Unreadable(path, e)) => {
                let d =
                    Diagnostic::error(Code::BadArgument, name.span, format!("{} can't be read: {e}", path.display()));
                return Err(Box::new(d.help(library::help(&e))));
            }
            Err(library::NotFound::Nowhere(near)) => {
                let d = Diagnostic::error(
                    Code::BadArgument,
                    name.span,
                    format!("there is no script or personality `{wanted}`"),
                );
                return Err(Box::new(match near {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("`wmlrun list personalities` shows what is shipped"),
                }));
            }
        };
        if self.loaded.depth >= DEEPEST {
            let d = Diagnostic::error(Code::BadArgument, name.span, "texts that load one another in a circle");
            return Err(Box::new(d.help("break the circle")));
        }
        let known = self.definitions.filesets.len() + self.definitions.processes.len() + self.scope.bindings().count();
        self.loaded.cost += found.text.len() + LOAD + 64 * known;
        if self.loaded.cost > MOST_LOADED {
            let d = Diagnostic::error(Code::BadArgument, name.span, "texts are loaded again and again");
            return Err(Box::new(d.help("load each text once; variables that are set later change what it does")));
        }
        if let Some(path) = found.path.as_deref().filter(|path| self.runner.is_output(path)) {
            let message = format!("{} is what `--json` or `--trace` would replace", path.display());
            self.runner.give_up_outputs();
            let d = Diagnostic::error(Code::Refused, name.span, message);
            return Err(Box::new(d.help("give the option another path")));
        }
        self.tell_of_others(front);
        let elsewhere =
            self.set_by() != SetBy::Prompt && library::is_elsewhere(&found.name, self.loaded.beside.as_deref());
        if elsewhere {
            let d = Diagnostic::warning(
                Code::LoadsElsewhere,
                name.span,
                format!("{} lies outside of the script's own folder", found.name),
            );
            front.diagnostics(
                &self.map,
                &[d.help("look at what it is; a script that is to be given away keeps what it loads beside it")],
            );
        }
        Ok(self.load_text(&found.name, &found.text, elsewhere, front))
    }

    /// Reads definitions and settings from a text; a `run` in it is not done, but gives the default run time.
    pub fn load(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Status {
        self.load_text(name, text, false, front)
    }

    /// The same; of a `hidden` text nothing is quoted in messages.
    fn load_text(&mut self, name: &str, text: &str, hidden: bool, front: &mut dyn Front) -> Status {
        let file = self.map.add(name, text);
        if hidden {
            self.map.hide(file);
        }
        let dialect = self.runner.settings.dialect;
        let (model, found) = model::check(&self.map, file, &self.table, dialect, &self.known(false));
        if !found.is_empty() {
            front.diagnostics(&self.map, &found);
        }
        if super::any_error(&found) {
            return Status::Script;
        }
        if self.extent == Extent::Check {
            front.diagnostics(&self.map, &model::lint::effects(&model.commands, &self.scope));
        } else if let Some(d) = self.refused(&model.commands) {
            front.diagnostics(&self.map, &[d]);
            return Status::Refused;
        }
        if self.loaded.depth == 0 && !self.loaded.whole {
            self.loaded.notes.clear();
        }
        self.describe_script(file, &model);
        self.loaded.usage.clear();
        self.loaded.texts.push((name.to_owned(), file));
        self.loaded.depth += 1;
        let status = if self.extent == Extent::Whole {
            self.commands(&model.commands, front)
        } else {
            self.commands(&super::definitions_of(&model.commands), front)
        };
        self.loaded.depth -= 1;
        self.flow.quit = false;
        status
    }
}
