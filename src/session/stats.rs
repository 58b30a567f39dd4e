//! `stats …`, `sleep` and `psrun`: measurements of live processes, and periodic reports.

use super::run::RunTime;
use super::{CommandError, Front, Session};
use crate::diag::Failure;
use crate::measure::{Description, Periodic, form_of};
use crate::model::{self, Expr, ModelValue, Stats};
use crate::source::{Span, Spanned};
use std::time::Duration;

impl Session {
    /// `stats …`.
    pub(super) fn stats(&mut self, stats: &Stats, span: Span, front: &mut dyn Front) -> Result<(), CommandError> {
        match stats {
            Stats::Clear => self.flow.processes.clear(&self.runner),
            Stats::Snap => self.snap(front)?,
            Stats::Dump(file) | Stats::MultiDump(file) | Stats::XmlDump(file) => {
                let file = Spanned::new(self.text(file)?, file.span);
                if let Some(form) = form_of(stats) {
                    self.runner.outputs.dump(&file, form, &self.map, front);
                }
            }
            Stats::Directory(path) => {
                self.make_dir_for(&self.text(path)?)?;
                let path = Spanned::new(self.text(path)?, path.span);
                self.runner.outputs.results_directory(&path, &self.map, front)?;
            }
            Stats::Command(command) => {
                let command = self.shell_command(command, span)?;
                self.runner.collect(&command, front);
            }
        }
        Ok(())
    }

    /// `stats snap`: adds the measurement so far to the result, as a run.
    pub(crate) fn snap(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let about = self.description();
        let record = self.flow.processes.snap(&mut self.runner, &about, front);
        self.measured(record, front)
    }

    /// `sleep`, and `warmup` while processes live.
    pub(crate) fn sleep(&mut self, length: Duration, front: &mut dyn Front) -> Result<(), Failure> {
        let about = if self.flow.processes.are_running() { self.description() } else { Description::default() };
        let record = self.flow.processes.sleep(&mut self.runner, length, &about, front);
        self.measured(record, front)
    }

    /// `psrun [[-]PERIOD [SECONDS]] [as-is]`.
    pub(super) fn psrun(
        &mut self,
        period: Option<&Spanned<Expr>>,
        seconds: Option<&Spanned<Expr>>,
        as_is: bool,
        span: Span,
        front: &mut dyn Front,
    ) -> Result<(), CommandError> {
        const PERIOD: Duration = Duration::from_secs(10);
        let (period, reset) = match period {
            None => (PERIOD, false),
            Some(other) => match model::eval(other, &self.scope)? {
                ModelValue::Int(n @ ..0) => (Duration::from_secs(n.unsigned_abs().min(1_000_000_000)), true),
                _ => (self.seconds(other)?, false),
            },
        };
        if self.only_loaded("psrun", seconds, front) {
            return Ok(());
        }
        let length = self.length(seconds)?;
        let periodic = Periodic::new(if period.is_zero() { PERIOD } else { period }, reset);
        let time = RunTime { length, as_is };
        Ok(self.run_with(time, Some(periodic), span, front)?)
    }
}
