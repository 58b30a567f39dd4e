//! `command`: execution of another program as an operation.

use super::args::Args;
use super::{BuiltOp, FlowopEntry, Stateless};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop};
use crate::os::COMMAND_FAILED;
use crate::os::child::Group;
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(super) const FLOWOPS: &[FlowopEntry] = &[FlowopEntry {
    spec: Flowop {
        name: "command",
        class: Class::Other,
        direction: IoDirection::None,
        roles: &[Role::RunsCommand, Role::TakesSpace],
        uses: &["value"],
        origin: Origin::Wmlrun,
        doc: "runs the command `value` with /bin/sh and waits for its end; needs `--allow-system`. Its processor time \
              is reported separately",
        example: "flowop command name=list,value=\"ls / > /dev/null\"",
    },
    build: ShellCommand::build,
}];

/// Interval at which a thread that waits for its command checks for the end of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time that a command has to end after SIGTERM before it is killed. Shorter than the time that the run waits for its
/// threads.
const GRACE_PERIOD: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct ShellCommand {
    text: String,
}

impl ShellCommand {
    fn build(args: &Args<'_>) -> BuiltOp {
        match args.text("value") {
            Some(text) if !text.trim().is_empty() => Ok(Arc::new(Self { text })),
            _ => {
                let message = format!("flowop `{}` of type `command` has no command", args.name);
                let d = Diagnostic::error(Code::MissingAttribute, args.span_of("value"), message);
                Err(d.help("add `value=\"…\"`, such as `value=\"tar cf /dev/null $dir\"`"))
            }
        }
    }

    /// Waits for the end of the command and counts its processor time. The outer `Err` is an error of the wait.
    fn wait(&self, cx: &mut OpCx<'_>, group: &mut Group) -> io::Result<Result<(), Stop>> {
        loop {
            if let Some(status) = group.wait(POLL_INTERVAL)? {
                if status.success() {
                    let times = group.times();
                    let done = cx.end(0);
                    // A command that ended after the deadline is counted as late only.
                    if done.is_ok() {
                        cx.cell().add_command(times.user_ns, times.system_ns);
                    }
                    return Ok(done);
                }
                let what = format!("`{}` ended with {status}", self.text);
                let help = "its output is above; to accept a failure, write `COMMAND || true`";
                return Ok(Err(cx.failed_as(COMMAND_FAILED, what, help)));
            }
            if cx.env.gate.is_stopped() || cx.expired() {
                group.end(GRACE_PERIOD);
                return Ok(cx.end(0).and(Err(Stop::over())));
            }
        }
    }
}

impl Stateless for ShellCommand {
    fn describe(&self) -> String {
        format!(" value=\"{}\"", self.text)
    }

    /// Unlike other operations this one allocates: it forks and builds the arguments, as a shell does.
    fn run(&self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        if !cx.env.engine.real() {
            return cx.end(0);
        }
        let done = Group::start(&self.text, true, None).and_then(|mut group| self.wait(cx, &mut group));
        done.unwrap_or_else(|e| {
            let what = format!("`{}` could not be run: {e}", self.text);
            Err(cx.failed_as(COMMAND_FAILED, what, "`command` starts commands with /bin/sh"))
        })
    }
}
