//! `wmlrun experiment --print-unit`: a unit of systemd that continues an experiment after each start of the machine.
//!
//! For experiments that reboot it between their runs. The unit goes to standard output; wmlrun installs nothing.

use super::console::print_lines;
use super::experiment_permission::check_permission;
use crate::diag::Failure;
use crate::experiment::{Experiment, Folder};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The load of the last minute, in running programs, below which the next run starts.
const QUIET_LOAD: f64 = 0.5;

/// Prints the unit of a results folder. Its commands need `is_allowed`, as when the experiment is resumed. Returns the
/// exit status.
pub(super) fn print(folder: &Path, is_allowed: bool) -> Result<u8, Failure> {
    let experiment = Folder::description(folder).map_err(|e| Failure::refused(e.to_string(), e.help()))?;
    check_permission(folder, &experiment, is_allowed)?;
    let absolute = |path: std::io::Result<PathBuf>| {
        path.map_err(|e| Failure::refused(format!("{}: {e}", folder.display()), "give an existing results folder"))
    };
    let (folder, program) = (absolute(folder.canonicalize())?, absolute(std::env::current_exe())?);
    print_lines(unit(&experiment, &folder, &program, is_allowed).trim_end());
    Ok(0)
}

/// The text of the unit.
fn unit(experiment: &Experiment, folder: &Path, program: &Path, is_allowed: bool) -> String {
    let (folder, program) = (word(&folder.to_string_lossy()), word(&program.to_string_lossy()));
    // Those of an experiment with commands are mounted by them.
    let mounts = experiment.identity.mounts.iter().filter_map(|mount| Some(mount.split_once(": ")?.0));
    let mut needs = vec![folder.clone(), word(&experiment.directory)];
    needs.extend(mounts.map(word));
    needs.dedup();
    let allowed = if is_allowed { " --allow-system" } else { "" };
    // The experiment continues as the user who started it.
    let user = match experiment.identity.user {
        0 => String::new(),
        user => format!("User={user}\n"),
    };
    let kind = experiment.kind().command();
    let mut text = String::from(
        "# Continues an experiment of wmlrun after each start of the machine. As root, put this text into\n\
         # /etc/systemd/system/wmlrun-experiment.service, and then:\n\
         #   systemctl enable --now wmlrun-experiment\n\
         # To remove it:\n\
         #   systemctl disable --now wmlrun-experiment && rm /etc/systemd/system/wmlrun-experiment.service\n\n",
    );
    // Writing to a string can't fail.
    let _ = write!(
        text,
        "[Unit]\nDescription=wmlrun {kind}\nAfter=multi-user.target\nRequiresMountsFor={}\n\n\
         [Service]\nType=exec\n{user}TimeoutStartSec=infinity\n\
         # Other services start too: wait until they are done.\n\
         ExecStartPre=/bin/sh -c \"until awk '{{ exit !($$1 < {QUIET_LOAD}) }}' /proc/loadavg; do sleep 5; done\"\n\
         ExecStart={} {kind} --resume {}{allowed} --quiet\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        needs.join(" "),
        program.replace('$', "$$"),
        folder.replace('$', "$$"),
    );
    text
}

/// A word of a unit: in quotation marks, with its special characters escaped.
fn word(text: &str) -> String {
    let mut word = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => word.extend(['\\', c]),
            '%' => word.push_str("%%"),
            c if c.is_ascii_control() => _ = write!(word, "\\x{:02x}", u32::from(c)),
            c => word.push(c),
        }
    }
    word + "\""
}
