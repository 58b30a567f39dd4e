//! A profile as the text of an experiment file: each workload is a level of one factor, and so a cell.
//!
//! What an experiment has for every file, such as repeats, `--resume`, a budget and sides, profiles have by this too.

use super::with_workloads;
use super::workload::{ProfileWorkload, Setting};
use crate::diag::Failure;
use crate::session::{Front, Settings};
use crate::source::SourceMap;
use crate::spec::predefined::DIR;
use std::path::Path;
use std::sync::Arc;

/// Reads and checks a profile, and returns the experiment file that makes the same runs. Warnings go to `front`.
pub(crate) fn experiment_file(path: &Path, front: &mut dyn Front) -> Result<String, Failure> {
    let settings = Settings { allow_system: true, ..Settings::default() };
    let (mut common, mut levels) = (String::new(), String::new());
    with_workloads(path, &settings, &[], &Arc::default(), &mut SourceMap::new(), front, &mut |batch, workloads, _| {
        let all: Vec<String> = workloads.iter().map(options).collect();
        let is_common = all.iter().all(|options| *options == all[0]);
        for (workload, options) in workloads.iter().zip(&all) {
            let personality = batch.value(workload.config, "personality").unwrap_or_default();
            levels += &level(workload, personality);
            // The command line replaces common options, and none of a level.
            let line = format!("options = {}\n", quoted(options));
            if is_common { common = line } else { levels += &line }
        }
        Ok(())
    })?;
    Ok(format!("{common}[[factor]]\nname = \"workload\"\n{levels}"))
}

fn options(workload: &ProfileWorkload<'_>) -> String {
    let dir = workload.settings.iter().find(|setting| setting.name == DIR.name);
    let dir = dir.map_or_else(String::new, |dir| format!(" --dir {}", word(&dir.written)));
    format!("--runtime {}s{dir}", workload.runtime.as_secs_f64())
}

fn level(workload: &ProfileWorkload<'_>, personality: &str) -> String {
    let name = quoted(&workload.name().node);
    let set = workload.settings.iter().filter(|setting| setting.name != DIR.name);
    let line = |setting: &Setting| format!("set.{} = {}\n", setting.name, quoted(&setting.written));
    let set = set.map(line).collect::<Vec<_>>().concat();
    format!("\n[[factor.levels]]\nname = {name}\nscript = {}\n{set}", quoted(personality))
}

/// A text as one word of a shell.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A basic string of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
