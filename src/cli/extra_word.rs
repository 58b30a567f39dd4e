//! The error about a word that follows the script on the command line of a run: what the user probably meant.
//!
//! Not in here: the parsing of the command line (`args`).

use crate::diag::meant;
use std::path::Path;

/// Returns the message for the word `extra` after the script `script`: the error and its help. `commands` are the names
/// of all commands.
pub(super) fn message(script: &str, extra: &str, commands: &[&str]) -> String {
    let command = meant(script, commands.iter().copied()).filter(|_| !Path::new(script).exists());
    let (text, help) = if commands.contains(&extra) {
        let help = format!("a command is the first word: `wmlrun {extra} {script}`");
        (format!("the command `{extra}` follows the script `{script}`"), help)
    } else if let Some(near) = command {
        (format!("no command is named `{script}`"), format!("did you mean `{near}`?"))
    } else if Path::new(extra).is_dir() {
        (format!("`{extra}` is not an option"), format!("the directory of the file sets is given by `--dir {extra}`"))
    } else {
        let help = "run each script by itself, or several by `wmlrun experiment FILE` or `wmlrun batch PROFILE`";
        (format!("`{extra}` follows the script `{script}`, and a run has one script"), help.to_owned())
    };
    format!("{text}\n  = help: {help}")
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn the_help_depends_on_the_word() {
        let dir = std::env::temp_dir().display().to_string();
        for (script, extra, says) in [
            ("mail.f", "check", "a command is the first word: `wmlrun check mail.f`"),
            ("chek", "mail.f", "did you mean `check`?"),
            ("mail.f", dir.as_str(), "the directory of the file sets is given by `--dir "),
            ("mail.f", "web.f", "`web.f` follows the script `mail.f`, and a run has one script"),
        ] {
            let text = message(script, extra, &["check", "run"]);
            assert!(text.contains(says), "{script} {extra}: {text}");
        }
    }
}
