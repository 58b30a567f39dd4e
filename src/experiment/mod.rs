//! Experiments: runs of one or more arms until a rule is satisfied, recorded in a folder from which an experiment can
//! be resumed.
//!
//! Each run is a new process of this program. `design` decides which run is next, from observations only. `folder`
//! records the runs, and `runner` executes them. Not in here: the statistics (`statistics`) and the formats of results
//! (`comparison`).

mod capacity;
mod cell_times;
mod commands;
mod compared;
mod control;
mod design;
#[cfg(test)]
mod design_tests;
mod document;
mod dropped;
mod extension;
mod file;
mod file_keys;
mod file_metrics;
mod file_reader;
mod file_tables;
mod floor;
mod folder;
mod folder_error;
mod hooks;
mod host;
mod identity;
mod journal;
mod kept_cells;
mod known_floor;
mod order;
mod origin;
mod peak;
mod program;
mod progress;
mod prune;
mod recorded;
mod replay;
#[cfg(test)]
mod resume_tests;
#[cfg(test)]
mod retry_tests;
mod rule_text;
mod run_table;
mod runner;
mod scopes;
mod sides;
#[cfg(test)]
mod source_tables;
mod stop;
mod suites;
mod wanted;

pub use capacity::{SPARE, level_of};
pub use compared::compare_arms;
pub use design::{Design, DesignEnd, Next, Prediction};
pub use document::ExperimentDocument;
pub use file::{ExperimentFile, FileFactor, FileLevel, SetVariable, read as read_file};
pub use file_keys::{EXPERIMENT_KEYS, FACTOR_KEYS, FileKey, HOOK_KEYS, LEVEL_KEYS};
pub use floor::{FloorSession, Floors, StoredFloor, place};
pub use folder::Folder;
pub use folder_error::FolderError;
pub use hooks::{HOOKS, Hook, HookTime, Hooks};
pub use host::{ExperimentError, ExperimentHost, FailedCommand, RunEnd};
pub use identity::Identity;
#[cfg(feature = "mpi")]
pub(crate) use identity::own_build;
pub use known_floor::{known_floor, missing_floor};
pub use order::StudyOrder;
pub use origin::is_made_here;
pub use peak::check_levels;
pub use program::NAME_VARIABLE;
pub use progress::{ArmSoFar, Standing, time_left};
pub use prune::{Pruned, bytes_below, prune};
pub use recorded::{RecordedExperiment, RecordedRun, is_folder};
pub use rule_text::{run_range, share};
pub use run_table::{RUN_MARKS, RunMark, RunTable};
pub use runner::run;
pub use scopes::{HookScope, ScopeHook};
pub use stop::StoppingRule;
pub use suites::{SUITES, suite};
pub use wanted::{
    Arm, Blocks, CapacityWanted, EQUAL_ARMS, Experiment, ExperimentKind, MAX_RETRIES, RuleWanted, VERDICT,
    WantedFactor, precision,
};
