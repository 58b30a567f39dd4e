//! A profile that is run, and what its workloads have done.

use super::profile::{Config, Profile};
use super::workload::ProfileWorkload;
use crate::result::{Document, Run};
use crate::session::{Settings, Status};
use crate::source::SourceMap;
use std::collections::HashSet;
use std::path::Path;

/// The page of a workload, in its directory of results.
pub(super) const PAGE: &str = "report.html";

/// A profile that is run.
pub(super) struct Batch<'a> {
    pub(super) path: &'a Path,
    /// The profile's text alone. Each session begins with it, so that places in the profile are right there.
    pub(super) source: &'a SourceMap,
    pub(super) profile: &'a Profile,
    /// The names of all workloads of the profile, also of those that are not run.
    pub(super) names: &'a [String],
    /// Those of the command line.
    pub(super) settings: &'a Settings,
}

impl Batch<'_> {
    /// The name of the profile in messages.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The text of the profile.
    pub(super) fn text(&self) -> &str {
        self.source.files().next().map_or("", |(_, file)| &file.text)
    }

    /// The value of a key in a workload.
    pub(super) fn value<'b>(&'b self, config: &'b Config, key: &str) -> Option<&'b str> {
        self.profile.value(config, key).map(|value| value.node.as_str())
    }

    /// The directory of the results of a workload.
    pub(super) fn stats<'b>(&'b self, config: &'b Config) -> &'b str {
        self.value(config, "stats").unwrap_or("stats")
    }

    /// The settings of a workload's session.
    pub(super) fn settings_of(&self, workload: &ProfileWorkload<'_>) -> Settings {
        let mut sets = self.sets_of(workload.config);
        let variables: HashSet<&String> = workload.variables.iter().collect();
        sets.retain(|(name, _)| variables.contains(name));
        Settings { sets, ..self.settings.clone() }
    }
}

/// A workload that has run.
pub(super) struct Done<'a> {
    pub(super) config: &'a Config,
    pub(super) personality: String,
    pub(super) document: Document,
    pub(super) status: Status,
}

/// The last measurement of a workload.
pub(super) fn measured<'a>(done: &'a Done<'_>) -> Option<&'a Run> {
    done.document.runs.last()
}
