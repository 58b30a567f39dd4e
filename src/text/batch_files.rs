//! The names of the files in the directory of a batch and of each of its workloads: `batch` writes them, and readers of
//! results know them.

/// The script of the workload. The name of its directory is that of the workload.
pub const BATCH_SCRIPT: &str = "thisrun.f";

/// The result of the workload.
pub const BATCH_RESULT: &str = "result.json";

/// The page over all workloads, in the directory of the batch.
pub const BATCH_PAGE: &str = "index.html";
