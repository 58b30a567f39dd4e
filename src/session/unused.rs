//! Finds settings of the command line that a script does not use, before anything is executed: they are probably
//! misspelt.

use super::{Front, Session, listed};
use crate::diag::Failure;
use crate::model::{self, Command, CommandKind, ModelValue};
use indexmap::IndexSet;

/// The variable that many scripts set to the time for which a user is to run them.
const RUNTIME: &str = "runtime";

/// The most settings that are reported: each is compared with all names.
const MOST_UNUSED: usize = 100;

impl Session {
    /// An error for each setting of the command line that changes nothing in a script.
    pub(super) fn unused_settings(&self, model: &model::Model) -> Vec<Failure> {
        let used = used_variables(&model.commands);
        let read = model::lint::read_variables(&model.commands);
        if model.commands.iter().any(|c| matches!(c.kind, CommandKind::Load(_))) {
            return Vec::new();
        }
        let mut problems = Vec::new();
        for (name, value) in self.runner.settings.sets.iter().filter(|(name, _)| !read.contains(name)).take(MOST_UNUSED)
        {
            let names: Vec<&str> = used.iter().map(String::as_str).collect();
            if name == "dir" {
                let paths: Vec<String> = self.paths(model);
                problems.push(Failure::wrong(
                    format!("the script does not use `$dir`, so that `--dir {value}` would change nothing"),
                    format!(
                        "its file sets are in {}, which `--below {value}` puts below that directory; its variables are {}",
                        listed(&paths),
                        listed(&names)
                    ),
                ));
                continue;
            }
            if used.contains(name) {
                let help = match name.as_str() {
                    RUNTIME => format!("the time of a run is `--runtime {value}`"),
                    _ => "omit it".to_owned(),
                };
                let text =
                    format!("`--set {name}={value}` has no effect: the script sets `${name}` and never reads it");
                problems.push(Failure::wrong(text, help));
                continue;
            }
            let help = match crate::diag::nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its variables are {}", listed(&names)),
            };
            problems.push(Failure::wrong(format!("`--set {name}=…`: the script has no variable `${name}`"), help));
        }
        problems
    }

    /// Notes before a run of the default length that the script sets a time of its own, which nothing reads: Filebench left
    /// it to the user, as in `run $runtime`.
    pub(super) fn note_unread_time(&self, front: &mut dyn Front) {
        let seconds = self
            .scope
            .value(RUNTIME)
            .and_then(Result::ok)
            .filter(|value| matches!(value, ModelValue::Int(_) | ModelValue::Float(_)))
            .filter(|_| !self.variables_in_use().iter().any(|name| name == RUNTIME));
        if let Some(seconds) = seconds {
            front.note(&format!(
                "nothing reads `$runtime` of the script: `--runtime {}` makes a run of this time",
                seconds.print()
            ));
        }
    }

    /// The paths of a script's file sets, as written.
    fn paths(&self, model: &model::Model) -> Vec<String> {
        let mut paths: Vec<String> = model
            .commands
            .iter()
            .filter_map(|c| match &c.kind {
                CommandKind::DefineFileset(def) => {
                    def.attrs.get("path").map(|u| self.map.slice(u.value.span).to_owned())
                }
                _ => None,
            })
            .collect();
        paths.dedup();
        paths
    }
}

/// All variables that a script sets or reads.
fn used_variables(commands: &[Command]) -> IndexSet<String> {
    let mut names = IndexSet::new();
    model::visit::each_variable(commands, &mut |name| _ = names.insert(name.to_owned()));
    names
}
