//! The workloads of a profile that are run (`--only`), and the variables that the command line sets in each of them.

use super::profile::{Config, Profile};
use super::state::Batch;
use super::workload::ProfileWorkload;
use crate::diag::{self, Failure};
use crate::session::Front;

impl Batch<'_> {
    /// Returns the variables that the command line sets in a workload: first those of all (`NAME`), then its own
    /// (`CONFIG.NAME`), which override them.
    pub(super) fn sets_of(&self, config: &Config) -> Vec<(String, String)> {
        let of = |owner: Option<&str>| -> Vec<(String, String)> {
            let wanted = |(name, value): &(String, String)| match (self.owner(name), owner) {
                (Some((found, name)), Some(owner)) if found == owner => Some((name.to_owned(), value.clone())),
                (None, None) => Some((name.clone(), value.clone())),
                _ => None,
            };
            self.settings.sets.iter().filter_map(wanted).collect()
        };
        [of(None), of(Some(&config.name.node))].concat()
    }

    /// Splits `CONFIG.NAME` into the workload, which need not be one that is run, and the name of the variable. Returns
    /// `None` for another name.
    pub(super) fn owner<'b>(&self, name: &'b str) -> Option<(&str, &'b str)> {
        let of = |config: &str| name.strip_prefix(config)?.strip_prefix('.');
        // The name of a workload may contain a point.
        let owner = self.names.iter().filter(|config| of(config).is_some()).max_by_key(|config| config.len())?;
        Some((owner, of(owner)?))
    }
}

/// Keeps the workloads with the names in `only`, or all if it is empty. An error if no workload has one of the names.
pub(super) fn select(profile: &mut Profile, only: &[String]) -> Result<(), Failure> {
    let has_name = |config: &Config, name: &String| config.name.node == *name;
    let mut unknown = Vec::new();
    for name in only.iter().filter(|name| !profile.configs.iter().any(|config| has_name(config, name))) {
        let names = || profile.configs.iter().map(|config| config.name.node.as_str());
        let help = diag::did_you_mean(diag::nearest(name, names()), || {
            format!("its workloads are `{}`", names().collect::<Vec<_>>().join("`, `"))
        });
        unknown.push(Failure::wrong(format!("the profile has no `CONFIG {name}`"), help));
    }
    if !only.is_empty() {
        profile.configs.retain(|config| only.iter().any(|name| has_name(config, name)));
    }
    Failure::all(unknown)
}

/// Says how the workloads with these names, which have no errors, can be run.
pub(super) fn suggest_others(names: &[&str], front: &mut dyn Front) {
    if !names.is_empty() {
        front.note(&format!("`--only {}` runs those without errors", names.join(",")));
    }
}

/// An error for each `--set` that changes nothing in any workload.
pub(super) fn check_settings(batch: &Batch<'_>, workloads: &[ProfileWorkload<'_>]) -> Result<(), Failure> {
    let mut unused = Vec::new();
    for (written, value) in &batch.settings.sets {
        let (owner, name) = match batch.owner(written) {
            Some((owner, name)) => (Some(owner), name),
            None => (None, written.as_str()),
        };
        let is_concerned = |name: &str| owner.is_none_or(|owner| name == owner);
        // A workload that is not run has no variables here.
        if !workloads.iter().any(|workload| is_concerned(&workload.name().node)) {
            continue;
        }
        let concerned = workloads.iter().filter(|workload| is_concerned(&workload.name().node));
        let names: Vec<&str> = concerned.flat_map(|w| w.variables.iter().map(String::as_str)).collect();
        if !names.contains(&name) {
            let help = diag::nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let place = owner.map_or_else(|| "the profile".to_owned(), |owner| format!("`CONFIG {owner}`"));
            let text = format!("no personality of {place} uses `${name}` (`{value}`)");
            unused.push(Failure::wrong(text, help.unwrap_or_default()));
        }
    }
    Failure::all(unused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::profile;
    use crate::session::Settings;
    use crate::source::SourceMap;
    use std::path::Path;

    /// The value of one workload overrides that of all, in any order, and the longest name of a workload counts.
    #[test]
    fn variables_of_one_workload_override_those_of_all() {
        let text = "CONFIG a {\n personality = varmail;\n}\nCONFIG a.b {\n personality = varmail;\n}\n";
        let mut source = SourceMap::new();
        let file = source.add("p.prof", text);
        let (profile, _) = profile::parse(file, text);
        let names: Vec<String> = ["a", "a.b", "c"].map(str::to_owned).to_vec();
        let sets = [("a.n", "1"), ("n", "2"), ("a.b.n", "3"), ("c.n", "4")];
        let sets = sets.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let settings = Settings { sets, ..Settings::default() };
        let batch =
            Batch { path: Path::new("p.prof"), source: &source, profile: &profile, names: &names, settings: &settings };
        let of = |config: usize| {
            let found = batch.sets_of(&profile.configs[config]);
            found.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(
            (of(0), of(1)),
            (vec!["n=2".to_owned(), "n=1".to_owned()], vec!["n=2".to_owned(), "n=3".to_owned()])
        );
    }
}
