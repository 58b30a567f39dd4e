//! The file sets in the result of a run.

use super::{DeviceBytes, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A file set that a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesetResult {
    /// Name in the script.
    pub name: String,
    /// Root directory.
    pub path: String,
    /// Parameters of its layout: entries, widths, gammas, seed.
    pub layout: BTreeMap<String, serde_json::Value>,
    /// Number of files, whether or not they exist.
    pub files: u64,
    /// Number of directories.
    pub directories: u64,
    /// Total size of all files in bytes.
    pub bytes: u64,
    /// Time to create the files; null if none were created.
    pub populate_seconds: Option<f64>,
    /// Changes that restored an existing tree to its definition; null if there was none.
    pub repaired: Option<Repaired>,
    /// Time until the data was on the device; null if the program did not wait for it.
    pub sync_seconds: Option<f64>,
    /// Share of its pages that were resident in memory before the run, 0 to 1; null if not measured.
    pub resident_before: Option<f64>,
    /// Share of its pages that were resident in memory after the run, 0 to 1; null if not measured.
    pub resident_after: Option<f64>,
    /// 95 % confidence interval of `resident_before`, which is estimated from a sample of files.
    pub resident_before_interval: Option<[f64; 2]>,
    /// 95 % confidence interval of `resident_after`.
    pub resident_after_interval: Option<[f64; 2]>,
    /// Bytes of its files that the run's operations read and wrote.
    pub asked_bytes: DeviceBytes,
    /// Bytes that the lowest devices read and wrote during the run, for all programs; null if unknown.
    pub device_bytes: Option<DeviceBytes>,
    /// Whether the devices or memory served the run's reads (its writes, if it had no reads), from the ratio of
    /// `device_bytes` to `asked_bytes` of all sets on the same devices. Null without such bytes or if unknown.
    pub verdict: Option<Verdict>,
}

impl FilesetResult {
    /// The key of `layout` with the rule by which the number of preallocated files was determined.
    pub const PREALLOC_RULE: &str = "prealloc_rule";
    /// The rule of earlier versions, which did not record it.
    pub const EACH_BY_CHANCE: &str = "each by chance";

    /// Returns the rule by which the number of preallocated files was determined. `None` if all or none were created.
    pub fn prealloc_rule(&self) -> Option<&str> {
        let is_partial = self.layout.get("prealloc")?.as_u64().is_some_and(|percent| (1..100).contains(&percent));
        let rule = self.layout.get(Self::PREALLOC_RULE).and_then(|rule| rule.as_str());
        is_partial.then(|| rule.unwrap_or(Self::EACH_BY_CHANCE))
    }
}

/// Bytes that other programs read below which they are no reason to doubt the figures.
pub(super) const MIN_READ_BY_OTHERS: u64 = 64 << 20;

/// The same for bytes written.
pub(super) const MIN_WRITTEN_BY_OTHERS: u64 = 256 << 20;

/// How many times the bytes that this program wrote others may have written.
pub(super) const MAX_WRITTEN_BY_OTHERS: u64 = 30;

impl DeviceBytes {
    /// True if other programs probably read most of the bytes that the devices read, if this one made them read
    /// `own`. A few mebibytes of metadata are no sign of them.
    pub fn are_mostly_read_by_others(&self, own: &Self) -> bool {
        self.read.saturating_sub(own.read) > own.read.max(MIN_READ_BY_OTHERS)
    }

    /// Returns the same for writes. Journals, copies and the write-back of small changes multiply them, on btrfs up to 25
    /// times, so that the limit is 30 times.
    pub fn are_mostly_written_by_others(&self, own: &Self) -> bool {
        let own_share = own.written.saturating_mul(MAX_WRITTEN_BY_OTHERS);
        self.written.saturating_sub(own.written) > own_share.max(MIN_WRITTEN_BY_OTHERS)
    }
}

/// Changes that restored an existing tree to its definition before a run. The keys `made` and `directories_made` are older than
/// the names of the fields, and stay: the schema is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repaired {
    /// Files created.
    #[serde(rename = "made")]
    pub created: u64,
    /// Files whose size was changed in place.
    pub resized: u64,
    /// Files removed.
    pub removed: u64,
    #[serde(rename = "directories_made")]
    pub directories_created: u64,
    pub directories_removed: u64,
}

impl Repaired {
    /// Returns the total number of changes.
    pub fn total(&self) -> u64 {
        self.created + self.resized + self.removed + self.directories_created + self.directories_removed
    }

    /// Returns the sums of two sets of counts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            created: self.created + other.created,
            resized: self.resized + other.resized,
            removed: self.removed + other.removed,
            directories_created: self.directories_created + other.directories_created,
            directories_removed: self.directories_removed + other.directories_removed,
        }
    }
}
