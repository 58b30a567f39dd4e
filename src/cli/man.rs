//! The manual pages: one for the program and one for each command, made from the definition of the command line.

use crate::os::held_dir::HeldDir;
use crate::output::Target;
use crate::version::VERSION;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::Path;

/// The manual of the pages, by which they are recognised.
const MANUAL: &str = "User Commands";

/// Writes `wmlrun.1`, `wmlrun-plan.1` and so on into a directory. `program` is the whole command line. Only pages of
/// this program are replaced. All files are checked before the first is written.
pub(super) fn write_pages(program: Command, dir: &Path) -> io::Result<()> {
    let _known = HeldDir::open(dir)?.make_known()?;
    let mut targets = Vec::new();
    for (name, text) in pages(program)? {
        let path = dir.join(name);
        let target = Target::open(&path, &[]).and_then(|target| target.recognizing(is_page).unless_foreign(false));
        targets.push((target.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?, text));
    }
    for (target, text) in targets {
        target.write(&mut |out| out.write_all(&text))?;
    }
    Ok(())
}

/// True if a file's first bytes are those of a page of this program, of any version.
fn is_page(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let is_title = |line: &str| line.starts_with(".TH wmlrun") && line.ends_with(&format!("\"{MANUAL}\""));
    head.lines().take(5).any(is_title)
}

/// Returns the name and the text of each page.
fn pages(program: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    // A page for clap's own `help` command would have no content.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    commands(&program).into_iter().map(|command| page(command, &program)).collect()
}

/// Returns a command and those below it that are listed.
fn commands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    std::iter::once(command).chain(below.flat_map(commands)).collect()
}

/// Returns the name and the text of the page of a command.
fn page(command: &Command, program: &Command) -> io::Result<(String, Vec<u8>)> {
    // The library would put the end of the help into one section that is called `EXTRA`, and the version at the end.
    let head = command.clone().after_help(None::<&'static str>).version(None::<&'static str>);
    // The quotes keep the empty date a word of its line: without them the version would be the date.
    let man = Man::new(head).date("\"\"").source(format!("wmlrun {VERSION}")).manual(MANUAL);
    let mut text = Vec::new();
    man.render(&mut text)?;
    let mut end = closing_sections(command);
    if command.get_name() != program.get_name() {
        end.control("SH", ["SEE ALSO"]).text([bold("wmlrun"), roman("(1)")]);
    }
    end.to_writer(&mut text)?;
    Ok((man.get_filename(), text))
}

/// The sections made of the text at the end of a help. A paragraph with a heading, such as the examples, is a section
/// whose lines stay as they are. The others are notes.
fn closing_sections(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let Some((heading, lines)) = paragraph.split_once(":\n") else {
            roff.control("SH", ["NOTES"]).text([roman(paragraph)]);
            continue;
        };
        roff.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{commands, is_page, pages, write_pages};
    use crate::cli::args;
    use clap::Command;
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;

    /// Text as the pages have it: a hyphen is escaped, so that it is copied as one.
    fn escaped(text: &str) -> String {
        text.replace('-', "\\-")
    }

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let pages = pages(args::full_command()).unwrap().into_iter();
        let pages: BTreeMap<String, String> =
            pages.map(|(name, text)| (name, String::from_utf8(text).unwrap())).collect();
        let mut program = args::full_command().disable_help_subcommand(true);
        program.build();
        let name = |command: &Command| command.get_display_name().unwrap_or("wmlrun").to_owned();
        let commands: Vec<_> = commands(&program).into_iter().map(|command| (name(command), command)).collect();
        assert!(commands.iter().any(|(name, _)| name == "wmlrun-setup-editor"));
        for (name, command) in &commands {
            let text = &pages[&format!("{name}.1")];
            assert!(text.contains(&format!(".SH NAME\n{} \\- ", escaped(name))), "{text}");
            assert!(text.contains(".SH EXAMPLES\n.nf\nwmlrun"), "{text}");
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long) {
                assert!(text.contains(&escaped(&format!("--{option}"))), "{name}: --{option}");
            }
        }
        assert_eq!(pages.len(), commands.len(), "{:?}", pages.keys());
        assert!(pages["wmlrun.1"].contains(".SH \"EXIT STATUS\"\n.nf\n0    success"), "{}", pages["wmlrun.1"]);
    }

    #[test]
    fn only_pages_of_this_program_are_replaced() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = || write_pages(args::full_command(), dir.path());
        write().unwrap();
        write().unwrap();
        let plan = dir.path().join("wmlrun-plan.1");
        assert!(is_page(&fs::read(&plan).unwrap()));
        let precious = other.path().join("precious");
        fs::write(&precious, "mine").unwrap();
        fs::remove_file(dir.path().join("wmlrun.1")).unwrap();
        for is_link in [false, true] {
            fs::remove_file(&plan).unwrap();
            match is_link {
                true => symlink(&precious, &plan).unwrap(),
                false => fs::write(&plan, "mine").unwrap(),
            }
            let error = write().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert!(error.to_string().contains("wmlrun-plan.1"), "{error}");
            assert_eq!(fs::read(&plan).unwrap(), b"mine");
            assert!(!dir.path().join("wmlrun.1").exists(), "no page is written before all are checked");
        }
    }
}
