//! Completion of command lines: the scripts that bash, zsh and fish load, and the answers to their questions.
//!
//! A shell asks the program itself, with the words of the line, so that names of personalities, codes and variables of
//! the named script are always those of this version. Only this file uses the completion library.

use super::lists;
use crate::experiment::SUITES;
use crate::flowop;
use crate::model;
use crate::report::metrics::METRICS;
use crate::session::library;
use crate::source::SourceMap;
use crate::words;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use std::ffi::OsStr;

/// The variable of the environment by which a shell asks for completions.
pub(super) const VARIABLE: &str = "WMLRUN_COMPLETE";

/// The name of the program.
pub(super) const PROGRAM: &str = "wmlrun";

/// The end of zsh's script: as the file `_wmlrun` in a directory of `$fpath`, the script is itself the body of the function
/// that completes.
const ZSH_AUTOLOAD: &[u8] = b"[[ $funcstack[1] != _wmlrun ]] || _clap_dynamic_completer_wmlrun \"$@\"\n";

/// The shells for which there are completion scripts.
pub(super) static SHELLS: [&(dyn EnvCompleter + Sync); 3] = [&Bash, &Zsh, &Fish];

/// Returns the script for a shell; empty if the shell is not in [`SHELLS`].
pub(super) fn script(shell: &str) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(shell) = SHELLS.iter().find(|known| known.name() == shell) {
        // Writing to memory does not fail.
        let _ = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut text);
        if shell.name() == "zsh" {
            text.extend_from_slice(ZSH_AUTOLOAD);
        }
    }
    text
}

/// Completes the name of a script: a file or a personality.
pub(super) fn scripts() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = PathCompleter::file().complete(current);
        found.extend(starting_with(current, candidates(library::PERSONALITIES)));
        found
    })
}

/// Completes the name of an experiment: a file or a shipped experiment.
pub(super) fn experiments() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = PathCompleter::file().complete(current);
        found.extend(starting_with(current, candidates(SUITES)));
        found
    })
}

/// Completes the name of a personality or of a shipped experiment.
pub(super) fn shipped() -> ArgValueCandidates {
    ArgValueCandidates::new(|| [library::PERSONALITIES, SUITES].into_iter().flat_map(candidates).collect())
}

/// Completes the name of a group of personalities or of a list.
pub(super) fn lists() -> ArgValueCandidates {
    ArgValueCandidates::new(|| lists::words().map(|(word, about)| candidate(word, &about)).collect())
}

/// Completes a word that has an explanation. A code has its title.
pub(super) fn words() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let codes = words::codes().map(|e| candidate(e.code, &e.title));
        let others = words::all().filter(|word| words::codes().all(|e| e.code != *word) && !word.contains(' '));
        codes.chain(others.map(CompletionCandidate::new)).collect()
    })
}

/// Completes the name of a metric of a run.
pub(super) fn metrics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| METRICS.iter().map(|kind| candidate(kind.name, kind.about)).collect())
}

/// Completes the assignment of a variable: the variables of the scripts that the line names.
pub(super) fn variables() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = std::env::args_os().skip_while(|word| word != "--").skip(2);
        let scripts = names.filter_map(|word| library::find(word.to_str()?, None).ok());
        let mut names: Vec<String> = scripts.flat_map(|script| variables_of(&script.name, &script.text)).collect();
        names.sort();
        names.dedup();
        starting_with(current, names.iter().map(|name| CompletionCandidate::new(format!("{name}="))).collect())
    })
}

/// Completes the values of `--live`.
pub(super) fn live_formats() -> ArgValueCandidates {
    use crate::report::live::LIVE_FORMATS;
    ArgValueCandidates::new(|| LIVE_FORMATS.iter().map(|format| candidate(format.name, format.about)).collect())
}

/// Returns the variables that a script sets or reads. A script with errors has those of its correct statements.
pub(super) fn variables_of(name: &str, text: &str) -> Vec<String> {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let (model, _) = model::check(&map, file, &flowop::spec_table(), None, &model::Known::default());
    let mut names = Vec::new();
    model::visit::each_variable(&model.commands, &mut |name| names.push(name.to_owned()));
    names
}

/// Returns the names of shipped texts.
fn candidates(texts: &[(&str, &str)]) -> Vec<CompletionCandidate> {
    texts.iter().map(|(name, text)| candidate(name, library::about(text))).collect()
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(about.to_owned().into()))
}

fn starting_with(current: &OsStr, candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    candidates.into_iter().filter(|found| found.get_value().to_string_lossy().starts_with(&*current)).collect()
}
