//! One workload of a profile: what a session does for it, and the script that does the same without the profile.

use super::profile::Config;
use super::state::Batch;
use crate::diag::Failure;
use crate::model::SetBy;
use crate::report::dumps;
use crate::session::{Front, Session, TypedValue, library};
use crate::source::Spanned;
use crate::spec::predefined::DIR;
use crate::util::batch_files::BATCH_SCRIPT;
use std::time::Duration;

/// A workload that is about to run.
pub(super) struct ProfileWorkload<'a> {
    pub(super) config: &'a Config,
    /// The personality.
    pub(super) found: library::FoundScript,
    /// Messages quote nothing of the personality: it is outside the profile's folder.
    pub(super) hidden: bool,
    /// Name of the personality's dialect, and why it is that one.
    pub(super) dialect: (&'static str, String),
    /// The variables of the personality.
    pub(super) variables: Vec<String>,
    /// What the profile and the command line set, in order.
    pub(super) settings: Vec<Setting>,
    /// The level of `debug`, which has no effect.
    pub(super) debug: Option<String>,
    /// The measured time.
    pub(super) runtime: Duration,
    /// The time before it that is not measured.
    pub(super) warmup: Duration,
}

/// A variable that a workload sets.
pub(super) struct Setting {
    pub(super) name: String,
    /// The value as it was written.
    pub(super) written: String,
    pub(super) typed: TypedValue,
}

/// The files of Filebench's that each workload leaves, each with the end of its name.
const DUMPS: [(&dumps::File, &str); 2] = [(&dumps::DUMP, "out"), (&dumps::XMLDUMP, "xml")];

/// The name of such a file.
pub(super) fn dump_name(workload: &str, end: &str) -> String {
    format!("stats.{workload}.{end}")
}

impl ProfileWorkload<'_> {
    pub(super) fn name(&self) -> &Spanned<String> {
        &self.config.name
    }

    /// Reads the personality into a session and sets its variables.
    pub(super) fn define(
        &self,
        batch: &Batch<'_>,
        session: &mut Session,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        session.map = batch.source.clone();
        session.apply_sets_for(&batch.name())?;
        let mut scope = session.scope.clone();
        session.begin_command();
        session.promise_variables(self.settings.iter().map(|setting| setting.name.clone()));
        session.load_text(&self.found.name, &self.found.text, self.hidden, front)?;
        for setting in &self.settings {
            session.set_typed(&setting.name, setting.typed.clone(), SetBy::Script)?;
            // The warnings take it for the value that the personality itself sets. An error would have ended this above.
            let _ = scope.set(&setting.name, setting.typed.value.clone(), SetBy::CommandLine);
        }
        session.lint_loaded(&scope, front);
        Ok(())
    }

    /// Measures what is defined, and writes the files of the workload.
    pub(super) fn measure(&self, session: &mut Session, front: &mut dyn Front) -> Result<(), Failure> {
        let file = session.map.add(BATCH_SCRIPT, self.commands());
        let model = session.check(file, true, front)?;
        session.commands(&model.commands, front)
    }

    /// The commands that measure what is defined, as Filebench's batch mode wrote them.
    fn commands(&self) -> String {
        let warmup = Some(self.warmup).filter(|time| !time.is_zero());
        let warmup = warmup.map_or_else(String::new, |time| format!("warmup {}\n", time.as_secs_f64()));
        let dump = |(form, end): (&dumps::File, &str)| {
            format!("{} {}\n", form.command, quoted(&dump_name(&self.name().node, end)))
        };
        // Wherever the script is run again, its files are written to the results directory of that run.
        format!(
            "create filesets\nstats directory \".\"\ncreate processes\n{warmup}stats clear\nsleep {}\nstats snap\n{}\
             shutdown processes\n",
            self.runtime.as_secs_f64(),
            DUMPS.map(dump).concat()
        )
    }

    /// The script that does the same, as Filebench's batch mode wrote it. `personality`: what it loads. `from_anywhere`: a
    /// relative directory is made absolute, because the script may be run from another directory.
    pub(super) fn script(&self, personality: &str, from_anywhere: bool) -> String {
        let mut lines = vec![format!("load {}", quoted(personality))];
        lines.extend(self.debug.iter().map(|level| format!("debug {level}")));
        lines.extend(self.settings.iter().map(|setting| {
            let Setting { name, written, typed } = setting;
            match typed.quoted {
                true if name == DIR.name && from_anywhere => format!("set ${name}={}", quoted(&absolute(written))),
                true => format!("set ${name}={}", quoted(written)),
                false => format!("set ${name}={written}"),
            }
        }));
        lines.push(self.commands() + "quit\n");
        lines.join("\n")
    }
}

/// A path from the root. One that can't be resolved, such as an empty one, or that is not UTF-8 then, stays as it is.
fn absolute(path: &str) -> String {
    let resolved = std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    resolved.unwrap_or_else(|| path.to_owned())
}

/// A text as a string of the language.
fn quoted(text: &str) -> String {
    let escaped: String =
        text.chars().flat_map(|c| ['\\', c].into_iter().skip(usize::from(!"\\\"$".contains(c)))).collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::batch::{Batch, profile, workloads};
    use crate::diag::{Failure, Reason, Style, render};
    use crate::measure::Settings;
    use crate::plan::Plan;
    use crate::session::{Session, SilentFront};
    use crate::source::SourceMap;
    use std::path::Path;
    use std::sync::Arc;

    fn printed(plan: &Plan) -> String {
        format!("{:?}\n{:?}\n{:?}", plan.filesets, plan.processes, plan.flowops)
    }

    /// The plan of the only workload of a profile, made by calls and made of its script.
    fn plans(text: &str, sets: &[(&str, &str)]) -> Result<(String, String, String), Failure> {
        let sets = sets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings { sets, ..Settings::default() };
        let mut map = SourceMap::new();
        let file = map.add("p.prof", text);
        let source = map.clone();
        let (profile, mut found) = profile::parse(file, text);
        let batch =
            Batch { path: Path::new("p.prof"), source: &source, profile: &profile, names: &[], settings: &settings };
        let all = workloads(&batch, &mut map, &mut found);
        assert_eq!(found, [], "{}", render(&map, &found, Style::Plain));
        let [workload] = &all[..] else { panic!("one workload") };
        let front = &mut SilentFront::default();
        let session = || {
            let mut session = Session::new(batch.settings_of(workload), Arc::default());
            session.only_define();
            session
        };
        let mut called = session();
        workload.define(&batch, &mut called, front)?;
        let plan = called.plan(front)?;
        let script = workload.script("varmail", true);
        let mut read = session();
        read.read("thisrun.f", &script, front)?;
        Ok((printed(&plan), printed(&read.plan(front)?), script))
    }

    #[test]
    fn the_script_of_a_workload_has_its_plan() {
        let text = "DEFAULTS {\n  nfiles = 20;\n  dir = \"/tmp/a b\";\n  debug = 1;\n}\nCONFIG one {\n  personality = varmail;\n\
            \n  nthreads = 2;\n  meandirwidth = 2 * 50;\n  filesize = $nfiles;\n}\n";
        let (called, read, script) = plans(text, &[("iosize", "8k")]).unwrap();
        assert_eq!(called, read, "{script}");
        for (name, value) in [("nfiles", "20"), ("dir", "\"/tmp/a b\""), ("filesize", "$nfiles"), ("iosize", "8k")] {
            assert!(script.contains(&format!("\nset ${name}={value}\n")), "{script}");
        }
        assert!(called.contains("/tmp/a b"), "{called}");
        let (_, _, script) = plans(&text.replace("/tmp/a b", "files"), &[]).unwrap();
        let here = std::env::current_dir().unwrap();
        assert!(script.contains(&format!("\nset $dir=\"{}/files\"\n", here.display())), "{script}");
    }

    #[test]
    fn a_wrong_value_is_shown_where_the_profile_gives_it() {
        let text = "CONFIG one {\n  personality = varmail;\n  nfiles = many files;\n}\n";
        let failure = plans(text, &[]).unwrap_err();
        let [Reason::Script(found)] = &failure.reasons[..] else { panic!("{failure:?}") };
        let shown = render(&found.map, &found.found, Style::Plain);
        assert!(shown.contains("p.prof:3:12") && shown.contains("many files"), "{shown}");
    }
}
