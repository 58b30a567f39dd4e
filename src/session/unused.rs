//! Finds settings of the command line that a script does not use, before anything is executed: they are probably
//! misspelt.

use super::listed;
use crate::diag::{Failure, did_you_mean, nearest};
use crate::model::{self, Command, CommandKind, ModelValue, Scope};
use crate::source::SourceMap;
use indexmap::IndexSet;

/// The variable that many scripts set to the time for which a user is to run them.
const RUNTIME: &str = "runtime";

/// The most settings that are reported: each is compared with all names.
const MOST_UNUSED: usize = 100;

/// An error for each setting of the command line that changes nothing in a script.
pub(super) fn unused_settings(sets: &[(String, String)], model: &model::Model, map: &SourceMap) -> Vec<Failure> {
    let used = used_variables(&model.commands);
    let read = model::lint::read_variables(&model.commands);
    if model.commands.iter().any(|c| matches!(c.kind, CommandKind::Load(_))) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (name, value) in sets.iter().filter(|(name, _)| !read.contains(name)).take(MOST_UNUSED) {
        let names: Vec<&str> = used.iter().map(String::as_str).collect();
        if name == "dir" {
            let paths: Vec<String> = paths(model, map);
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
            let text = format!("`--set {name}={value}` has no effect: the script sets `${name}` and never reads it");
            problems.push(Failure::wrong(text, help));
            continue;
        }
        let help =
            did_you_mean(nearest(name, names.iter().copied()), || format!("its variables are {}", listed(&names)));
        problems.push(Failure::wrong(format!("`--set {name}=…`: the script has no variable `${name}`"), help));
    }
    problems
}

/// Notes before a run of the default length that the script sets a time of its own, which nothing reads: Filebench left
/// it to the user, as in `run $runtime`. `used`: the variables that something reads.
pub(super) fn unread_time(scope: &Scope, used: &[String]) -> Option<String> {
    let value = scope.value(RUNTIME).and_then(Result::ok).filter(|_| !used.iter().any(|name| name == RUNTIME))?;
    matches!(value, ModelValue::Int(_) | ModelValue::Float(_)).then(|| {
        format!("nothing reads `$runtime` of the script: `--runtime {}` makes a run of this time", value.print())
    })
}

/// The paths of a script's file sets, as written.
fn paths(model: &model::Model, map: &SourceMap) -> Vec<String> {
    let mut paths: Vec<String> = model
        .commands
        .iter()
        .filter_map(|c| match &c.kind {
            CommandKind::DefineFileset(def) => def.attrs.get("path").map(|u| map.slice(u.value.span).to_owned()),
            _ => None,
        })
        .collect();
    paths.dedup();
    paths
}

/// All variables that a script sets or reads.
fn used_variables(commands: &[Command]) -> IndexSet<String> {
    let mut names = IndexSet::new();
    model::visit::each_variable(commands, &mut |name| _ = names.insert(name.to_owned()));
    names
}
