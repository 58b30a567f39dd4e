//! Detects that a launcher of parallel programs, such as `mpirun`, started this process as one of several.
//!
//! A launcher tells each process its number and the number of processes in variables of the environment.

/// A launcher of parallel programs.
struct Launcher {
    command: &'static str,
    /// The variable with the number of processes.
    size: &'static str,
    /// The variable with the number of the process, from 0.
    rank: &'static str,
}

/// The known launchers. The first one whose variables are set counts: in a job of Slurm, `mpirun` starts its daemons
/// with `srun`, and processes of `srun` may have the variables of MPICH too.
///
/// Slurm's `SLURM_NTASKS` is not used: the script of a batch job has it too, and is a single process.
const LAUNCHERS: &[Launcher] = &[
    Launcher { command: "mpirun", size: "OMPI_COMM_WORLD_SIZE", rank: "OMPI_COMM_WORLD_RANK" },
    Launcher { command: "srun", size: "SLURM_STEP_NUM_TASKS", rank: "SLURM_PROCID" },
    Launcher { command: "mpiexec", size: "PMI_SIZE", rank: "PMI_RANK" },
];

/// A start of this program as one of several processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    pub command: &'static str,
    /// The number of processes, at least 2.
    pub size: u64,
    /// The number of this process, from 0.
    pub rank: u64,
}

impl Launch {
    /// Returns the launch of this process, or `None` if no launcher started it, or started it alone. `variable` reads a
    /// variable of the environment.
    pub(crate) fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
        let of = |launcher: &Launcher| {
            Some(Self { command: launcher.command, size: number(launcher.size)?, rank: number(launcher.rank)? })
        };
        LAUNCHERS.iter().find_map(of).filter(|launch| launch.size > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Launch;

    fn detect(environment: &[(&str, &str)]) -> Option<(&'static str, u64, u64)> {
        let value = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Launch::detect(value).map(|launch| (launch.command, launch.rank, launch.size))
    }

    #[test]
    fn each_launcher_is_detected() {
        let open_mpi = [("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "3")];
        assert_eq!(detect(&open_mpi), Some(("mpirun", 3, 8)));
        assert_eq!(detect(&[("PMI_SIZE", "2"), ("PMI_RANK", "0")]), Some(("mpiexec", 0, 2)));
        let slurm = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "1"), ("PMI_SIZE", "4"), ("PMI_RANK", "1")];
        assert_eq!(detect(&slurm), Some(("srun", 1, 4)));
    }

    #[test]
    fn a_single_process_has_no_launch() {
        assert_eq!(detect(&[]), None);
        assert_eq!(detect(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]), None);
        // `mpirun -n 1` in a job on four nodes, where `srun` has started the four daemons.
        let nested = [
            ("OMPI_COMM_WORLD_SIZE", "1"),
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_PROCID", "0"),
        ];
        assert_eq!(detect(&nested), None);
        // The script of a batch job.
        assert_eq!(detect(&[("SLURM_NTASKS", "16"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(detect(&[("PMI_SIZE", "many"), ("PMI_RANK", "0")]), None);
        assert_eq!(detect(&[("PMI_SIZE", "4")]), None);
    }
}
