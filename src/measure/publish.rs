//! The parts of the document: the script, the environment and runs, after redaction.

use super::Runner;
use super::redaction::{ScriptOrigin, sha256};
use crate::result::texts::TextField;
use crate::result::{Environment, Run};
use crate::util::secrets::{ENVIRONMENT, without_environment};

impl Runner {
    /// Returns the environment of a run for the document.
    pub(crate) fn publish_environment(&mut self, mut environment: Environment) -> Environment {
        if self.settings.redact {
            self.redaction.environment(&mut environment);
        }
        environment
    }

    /// Redacts a run for the document. Texts that are redacted already do not change.
    pub(crate) fn publish_run(&mut self, run: &mut Run, secrets: &[String]) {
        if !secrets.is_empty() {
            run.texts_mut(&mut |field, text| {
                if matches!(
                    field,
                    TextField::Name | TextField::Path | TextField::Value | TextField::Words | TextField::MountPoint
                ) {
                    *text =
                        without_environment(text, secrets, matches!(field, TextField::Words | TextField::MountPoint));
                }
            });
            for set in &mut run.filesets {
                // Reports find the mount of a set by its path.
                if set.path.starts_with(ENVIRONMENT)
                    && !run.environment.mounts.iter().any(|mount| set.path.starts_with(&mount.path))
                    && let Some(root) = run.environment.mounts.iter().find(|mount| mount.path.starts_with('/'))
                {
                    set.path = format!("{}/{}", root.path.trim_end_matches('/'), set.path);
                }
            }
        }
        if self.settings.redact {
            for (name, value) in &self.settings.sets {
                if name == "dir" {
                    self.redaction.add_path(value);
                }
            }
            if let Ok(here) = std::env::current_dir() {
                self.redaction.add_path(&here.display().to_string());
            }
            self.redaction.run(run);
        }
        run.name_intervals();
    }

    /// Registers the paths of a run's file sets, so that they are recognised in texts.
    pub(crate) fn add_paths(&mut self, paths: &[std::path::PathBuf]) {
        if self.settings.redact {
            for path in paths {
                self.redaction.add_path(&path.display().to_string());
                path.parent().into_iter().for_each(|parent| self.redaction.add_path(&parent.display().to_string()));
            }
        }
    }

    /// Sets the script's entry in the document. `dialect`: its name and the reason for it.
    pub fn describe_script(&mut self, path: &str, text: &str, dialect: (&str, &str), origin: ScriptOrigin) {
        let script = &mut self.document.script;
        path.clone_into(&mut script.path);
        text.clone_into(&mut script.text);
        script.sha256 = sha256(text);
        (script.dialect, script.dialect_reason) = (dialect.0.to_owned(), dialect.1.to_owned());
        self.publish_script(origin);
    }

    /// Redacts the script's entry in the document.
    fn publish_script(&mut self, origin: ScriptOrigin) {
        if self.settings.redact {
            self.redaction.host = super::hostname();
            self.redaction.script(&mut self.document.script, origin);
            for remark in [&mut self.document.label, &mut self.document.note].into_iter().flatten() {
                *remark = self.redaction.redacted(remark);
            }
        }
    }
}
