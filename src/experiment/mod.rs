//! Experiments: whole runs of one or two arms, in an order, until a rule is met, kept in a folder that can be resumed.
//!
//! Each run is a fresh process of this program. `design` decides which run is next, from observations alone; `folder` keeps what has
//! happened; `runner` makes it happen. Deliberately absent: the statistics (`analysis`) and how results look (`comparison`).

mod control;
mod design;
mod floor;
mod folder;
mod hooks;
mod identity;
mod journal;
mod runner;
mod wanted;

pub use design::{Design, Next, Prediction};
pub use floor::{FloorSession, Floors, place};
pub use folder::{Folder, FolderError, prune};
pub use hooks::{HOOKS, Hook, Hooks};
pub use identity::Identity;
pub use runner::{ExperimentError, ExperimentHost, Finished, run};
pub use wanted::{Arm, Blocks, Experiment, ExperimentKind, RuleWanted};
