//! `wmlrun explain`: what a word of the program means, wherever it is defined.

use super::args::full_command;
use super::console::print_lines;
use super::neighbours;
use super::program_help::{about_command, about_option, meant_option};
use super::screen::stdout_width;
use crate::diag::{self, Failure};
use crate::prompt;
use crate::util::wrap;
use crate::words;

/// Prints what a word means: a row or column of a report, a state, a code, an option, a word of the language.
pub(super) fn explain(word: &str) -> Result<u8, Failure> {
    let all = full_command();
    let mut found = words::meanings(word);
    found.extend(about_command(word, &all));
    found.extend(about_option(word, &all));
    found.extend(prompt::about(word));
    let of_shell = prompt::COMMANDS.iter().map(|command| &command.spec).filter(|spec| spec.name == word);
    found.extend(of_shell.map(|spec| format!("{} (in the shell): {}", spec.form, spec.doc)));
    if found.is_empty() {
        found.extend(words::other_number(word).or_else(|| neighbours::about(word)));
    }
    if found.is_empty() {
        let near = meant_option(word, &all).or_else(|| meant(word));
        let help = diag::did_you_mean(near, || {
            "rows and columns of reports, codes, options and words of the language have explanations; `wmlrun list \
                     codes` lists the codes"
                .to_owned()
        });
        return Err(Failure::wrong(format!("nothing is named `{word}`"), help));
    }
    let width = stdout_width().unwrap_or(wrap::WIDTH);
    print_lines(wrap::message(&found.join("\n\n"), Some(width)).trim_end());
    Ok(0)
}

/// The word that was probably meant.
fn meant(word: &str) -> Option<String> {
    let written = word.replace('-', "_");
    let near = diag::meant(&written, words::all()).or_else(|| diag::meant(word, words::all()));
    near.or_else(|| diag::meant(word, prompt::topics())).map(str::to_owned)
}
