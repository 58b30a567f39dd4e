//! The variables of a personality, and those of the scripts that it loads.

use crate::model::{self, CommandKind, Known, Model};
use crate::session::library::{self, FoundScript};
use crate::source::SourceMap;
use crate::spec::SpecTable;
use crate::spec::dialect::Dialect;
use std::path::{Path, PathBuf};

/// Returns the names of the variables of a script, whose model is known, and of all scripts that it loads. A loaded script
/// that can't be found or read has none: the run reports it.
pub(super) fn of_script(
    script: &FoundScript,
    model: &Model,
    map: &mut SourceMap,
    table: &SpecTable,
    dialect: Option<Dialect>,
) -> Vec<String> {
    let (mut names, mut seen) = (Vec::new(), Vec::new());
    let mut loads = collect(script, model, map, &mut names);
    while let Some((name, beside)) = loads.pop() {
        let Ok(found) = library::find(&name, beside.as_deref()) else { continue };
        // A script may load itself.
        if seen.contains(&found.name) {
            continue;
        }
        seen.push(found.name.clone());
        let file = map.add(&found.name, &found.text);
        let (model, _) = model::check(map, file, table, dialect, &Known::default());
        loads.extend(collect(&found, &model, map, &mut names));
    }
    names
}

/// Adds the variables of one script to `names`. Returns the scripts that it loads, with the folder in which they are
/// searched for first.
fn collect(
    script: &FoundScript,
    model: &Model,
    map: &SourceMap,
    names: &mut Vec<String>,
) -> Vec<(String, Option<PathBuf>)> {
    model::visit::each_variable(&model.commands, &mut |variable| {
        if !names.iter().any(|known| known == variable) {
            names.push(variable.to_owned());
        }
    });
    let beside = script.path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let loads = model::visit::all(&model.commands).filter_map(|command| match &command.kind {
        CommandKind::Load(name) => Some(map.slice(name.span).trim_matches('"').to_owned()),
        _ => None,
    });
    loads.map(|name| (name, beside.clone())).collect()
}
