//! The program that the ranks are, and the launcher that starts them.

use super::PROGRAM;
use super::list::HostList;
use crate::diag::Failure;
use crate::os::child::{Group, in_path};
use crate::os::{proc, signals};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A launcher of processes on several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostLauncher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `srun`, in an allocation of Slurm.
    Slurm,
}

/// What starts the ranks, and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Starter {
    pub(super) kind: HostLauncher,
    pub(super) launcher: PathBuf,
    /// The build with MPI. All hosts have it under this path.
    pub(super) program: PathBuf,
}

impl Starter {
    /// Finds launcher and program on this host.
    pub(crate) fn find() -> Result<Self, Failure> {
        Self::found_by(own_program(), &|name| in_path(name.as_ref()), is_in_slurm())
            .map_err(|missing| missing_failure(&missing))
    }

    /// The same on a host that may lack the program.
    pub(super) fn find_launcher() -> Result<Self, Vec<&'static str>> {
        let program = own_program().or_else(|| in_path(PROGRAM.as_ref())).unwrap_or_else(|| PROGRAM.into());
        Self::found_by(Some(program), &|name| in_path(name.as_ref()), is_in_slurm())
    }

    /// Finds them by `in_path`, which looks up a program. `own`: this program, if it has MPI. The error names what is
    /// missing.
    pub(super) fn found_by(
        own: Option<PathBuf>,
        in_path: &dyn Fn(&str) -> Option<PathBuf>,
        in_slurm: bool,
    ) -> Result<Self, Vec<&'static str>> {
        let program = own.or_else(|| in_path(PROGRAM)).ok_or(PROGRAM);
        let slurm = in_slurm.then(|| in_path("srun")).flatten().map(|path| (HostLauncher::Slurm, path));
        // Debian has both names for Open MPI's; the second may be that of another MPI.
        let open_mpi = || ["mpirun.openmpi", "mpirun"].iter().find_map(|name| in_path(name));
        let launcher = slurm.or_else(|| Some((HostLauncher::OpenMpi, open_mpi()?))).ok_or("mpirun");
        match (program, launcher) {
            (Ok(program), Ok((kind, launcher))) => Ok(Self { kind, launcher, program }),
            (program, launcher) => Err(program.err().into_iter().chain(launcher.err()).collect()),
        }
    }

    /// The launcher with its words for these hosts. The program and its words follow.
    pub(super) fn command(&self, hosts: &HostList) -> Command {
        let mut command = Command::new(&self.launcher);
        command.args(self.words(hosts, proc::user() == 0));
        command
    }

    fn words(&self, hosts: &HostList, is_root: bool) -> Vec<String> {
        let ranks = hosts.ranks().to_string();
        // A rank has many threads, which may use all processors that it is given.
        let words: Vec<&str> = match self.kind {
            HostLauncher::OpenMpi => {
                let root = is_root.then_some("--allow-run-as-root");
                root.into_iter().chain(["--bind-to", "none", "-np", &ranks, "--host"]).collect()
            }
            HostLauncher::Slurm => {
                vec!["--cpu-bind=none", "--distribution=arbitrary", "--ntasks", &ranks, "--nodelist"]
            }
        };
        let list = hosts.text(if self.kind == HostLauncher::Slurm { '*' } else { ':' });
        words.into_iter().map(str::to_owned).chain([list]).collect()
    }

    /// Runs the launcher, which runs the program with these words on each rank. Returns its status. `signal`: the signal that
    /// the user has sent, or 0.
    ///
    /// The launcher does not get that signal: it would kill the ranks of its own host before it tells the others of it, and
    /// the ^C of a terminal would end its ssh too. It gets one that it passes on to all ranks.
    pub(crate) fn run(&self, hosts: &HostList, words: &[OsString], signal: &dyn Fn() -> usize) -> Result<u8, Failure> {
        let mut command = self.command(hosts);
        command.arg(&self.program).args(words);
        let failed = |error| Failure::refused(format!("can't start `{}`: {error}", self.launcher.display()), "");
        signals::second_breaks_off(signals::BrokenOff::Run);
        let mut group = Group::spawn(command).map_err(failed)?;
        let mut is_passed_on = false;
        loop {
            if let Some(status) = group.wait(POLL).map_err(failed)? {
                let code = status.code().or_else(|| Some(128 + status.signal()?));
                return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
            if signal() > 0 && !is_passed_on {
                is_passed_on = true;
                group.pass_on(signal());
            }
        }
    }
}

/// The interval at which a signal of the user is looked for.
const POLL: Duration = Duration::from_millis(100);

/// This program, if it has MPI.
fn own_program() -> Option<PathBuf> {
    cfg!(feature = "mpi").then(std::env::current_exe)?.ok()
}

fn is_in_slurm() -> bool {
    std::env::var_os("SLURM_JOB_ID").is_some()
}

/// Says what is missing on this host, and which package, image and command have it.
fn missing_failure(missing: &[&str]) -> Failure {
    let named: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    let version = env!("CARGO_PKG_VERSION");
    Failure::refused(
        format!("`--hosts` needs {}, which is not in PATH", named.join(" and ")),
        format!(
            "install the package on every host: `apt install ./wmlrun_{version}-1_amd64.deb \
             ./wmlrun-mpi_{version}-1_amd64.deb`, which brings Open MPI; or use the image wmlrun-mpi:{version}"
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(own: Option<&str>, installed: &[&str], in_slurm: bool) -> Result<Starter, Vec<&'static str>> {
        let in_path = |name: &str| installed.contains(&name).then(|| PathBuf::from(format!("/usr/bin/{name}")));
        Starter::found_by(own.map(PathBuf::from), &in_path, in_slurm)
    }

    #[test]
    fn the_words_are_those_of_the_launcher() {
        let hosts = HostList::parse("a:4,b:2").unwrap();
        let open_mpi = found(None, &["wmlrun-mpi", "mpirun", "srun"], false).unwrap();
        assert_eq!(open_mpi.launcher, PathBuf::from("/usr/bin/mpirun"));
        assert_eq!(open_mpi.words(&hosts, false).join(" "), "--bind-to none -np 6 --host a:4,b:2");
        assert_eq!(open_mpi.words(&hosts, true)[0], "--allow-run-as-root");
        let slurm = found(Some("/opt/wmlrun"), &["mpirun", "srun"], true).unwrap();
        assert_eq!((slurm.launcher, slurm.program), ("/usr/bin/srun".into(), "/opt/wmlrun".into()));
        let slurm = found(None, &["wmlrun-mpi", "srun"], true).unwrap();
        let words = slurm.words(&hosts, true).join(" ");
        assert_eq!(words, "--cpu-bind=none --distribution=arbitrary --ntasks 6 --nodelist a*4,b*2");
        // Without `srun`, Open MPI's launcher asks Slurm itself.
        assert_eq!(found(None, &["wmlrun-mpi", "mpirun.openmpi"], true).unwrap().kind, HostLauncher::OpenMpi);
    }

    #[test]
    fn what_is_missing_is_said_at_once() {
        assert_eq!(found(None, &[], false), Err(vec!["wmlrun-mpi", "mpirun"]));
        assert_eq!(found(None, &["mpirun"], false), Err(vec!["wmlrun-mpi"]));
        assert_eq!(found(Some("/x"), &["srun"], false), Err(vec!["mpirun"]));
        let text = missing_failure(&["wmlrun-mpi", "mpirun"]).text();
        assert!(text.contains("needs `wmlrun-mpi` and `mpirun`") && text.contains("apt install"), "{text}");
        assert!(text.contains("image wmlrun-mpi:"), "{text}");
    }
}
