//! Starts the ranks of a run on several hosts: by which launcher and with which words, and whether each host has the same
//! build.
//!
//! Hosts are asked over the launcher itself, by a few lines for the shell, so that one without wmlrun answers too. Not in
//! here: what ranks exchange (`ranks`).

mod answer;
mod build;
mod fitness;
mod list;
mod starter;

pub(crate) use fitness::examine_hosts;
pub(crate) use list::HostList;
pub(crate) use starter::Starter;

/// The program with MPI, as packages install it.
const PROGRAM: &str = "wmlrun-mpi";
