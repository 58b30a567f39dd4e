//! What the document gets: the script, the environment and runs, without what a result must not hold.

use super::Runner;
use super::redaction::{ENVIRONMENT, sha256, without_environment};
use crate::result::texts::TextField;
use crate::result::{Environment, Run};

impl Runner {
    /// The environment of a run as the document has it.
    pub(crate) fn publish_environment(&mut self, mut environment: Environment) -> Environment {
        if self.settings.redact {
            self.redaction.environment(&mut environment);
            return environment;
        }
        environment
    }

    /// A run as the document has it. Texts that were changed before stay as they are.
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
                    self.redaction.learn(value);
                }
            }
            if let Ok(here) = std::env::current_dir() {
                self.redaction.learn(&here.display().to_string());
            }
            self.redaction.run(run);
        }
        run.name_intervals();
    }

    /// The paths of a run's file sets as the script gives them: they are recognised in texts.
    pub(crate) fn learn_paths(&mut self, paths: &[std::path::PathBuf]) {
        if self.settings.redact {
            for path in paths {
                self.redaction.learn(&path.display().to_string());
                path.parent().into_iter().for_each(|above| self.redaction.learn(&above.display().to_string()));
            }
        }
    }

    /// What is run: the script's entry in the document.
    pub fn describe_script(&mut self, path: &str, text: &str, dialect: (&str, &str)) {
        let script = &mut self.document.script;
        path.clone_into(&mut script.path);
        text.clone_into(&mut script.text);
        script.sha256 = sha256(text);
        (script.dialect, script.dialect_reason) = (dialect.0.to_owned(), dialect.1.to_owned());
        self.publish_script();
    }

    /// The script as the document has it.
    fn publish_script(&mut self) {
        if self.settings.redact {
            self.redaction.host = super::hostname();
            self.redaction.script(&mut self.document.script);
        }
    }
}
