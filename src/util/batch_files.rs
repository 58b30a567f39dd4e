//! The names of the files in the directory of a workload of a batch: `batch` writes them, and readers of results know them.

/// The script of the workload. The name of its directory is that of the workload.
pub const BATCH_SCRIPT: &str = "thisrun.f";

/// The result of the workload.
pub const BATCH_RESULT: &str = "result.json";
