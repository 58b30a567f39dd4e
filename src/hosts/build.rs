//! Whether each host has the same build of the program.

use super::answer::{ask, output, own_words};
use super::list::HostList;
use super::starter::Starter;
use crate::diag::Failure;
use std::process::Command;

/// The help about a host on which nothing can be started.
const REACH: &str =
    "`ssh HOST true` must work without a question; `wmlrun doctor --hosts …` says what is missing where";

impl Starter {
    /// Succeeds if each host has the build of this one. The error names each other host with its own words. `is_over`: the
    /// user has ended that.
    pub(crate) fn check_builds(&self, hosts: &HostList, is_over: &(dyn Fn() -> bool + Sync)) -> Result<(), Failure> {
        let own = self.own_build(is_over)?;
        // All at once, which is usually enough. It does not say which of them gave which answer.
        let mut command = self.command(&hosts.one_each());
        command.arg(&self.program).arg("--version");
        let together = output(command, is_over);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let expected = format!("{own}\n").repeat(hosts.names().count());
        if together.as_ref().is_ok_and(|said| said.status.success() && sorted(&said.stdout) == sorted(&expected)) {
            return Ok(());
        }
        let own = own.lines().collect::<Vec<_>>().join("; ");
        let answers = ask(self, hosts, None, is_over);
        let failures =
            answers.into_iter().filter(|answer| answer.build != own).map(|answer| match answer.clock_apart {
                None => Failure::refused(
                    format!("nothing can be started on host `{}`: {}", answer.host, answer.words),
                    REACH,
                ),
                Some(_) => Failure::refused(
                    format!("host `{}` does not have the build of this one: {}", answer.host, answer.build),
                    format!("this one has {own}; install the same package on every host"),
                ),
            });
        Failure::all(failures)?;
        let why = together.map_or_else(|why| why, |said| own_words(&said));
        Err(Failure::refused(format!("`{}` can't start the hosts together: {why}", self.launcher.display()), REACH))
    }

    /// The version of the program on this host.
    fn own_build(&self, is_over: &dyn Fn() -> bool) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command.arg("--version");
        match output(command, is_over) {
            Ok(said) if said.status.success() => Ok(said.stdout.trim_end().to_owned()),
            said => {
                let why = said.map_or_else(|why| why, |said| own_words(&said));
                let text = format!("`{} --version`: {why}", self.program.display());
                Err(Failure::refused(text, "install the package wmlrun-mpi again"))
            }
        }
    }
}
