//! `command`: another program, timed.

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
        roles: &[Role::RunsCommand],
        uses: &["value"],
        origin: Origin::Wmlrun,
        doc: "runs `value` with /bin/sh and waits for its end; needs `--allow-system`. Its processor time is told apart from its latency",
        example: "flowop command name=list,value=\"ls / > /dev/null\"",
    },
    build: ShellCommand::build,
}];

/// How often a thread that waits for its command looks whether the run goes on.
const LOOK: Duration = Duration::from_millis(50);

/// How long a command that is told to end may take for it, before it is killed: less than the run waits for its threads.
const PATIENCE: Duration = Duration::from_millis(100);

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
                let d = Diagnostic::error(Code::MissingAttribute, args.at("value"), message);
                Err(d.help("add `value=\"…\"`, such as `value=\"tar cf /dev/null $dir\"`"))
            }
        }
    }

    /// Waits for its end, and counts its processor time. An error is that of the wait itself.
    fn wait(&self, cx: &mut OpCx<'_>, group: &mut Group) -> io::Result<Result<(), Stop>> {
        loop {
            if let Some(status) = group.wait(LOOK)? {
                if status.success() {
                    let times = group.times();
                    let done = cx.end(0);
                    // One that ended too late is in no other figure either.
                    if done.is_ok() {
                        cx.cell().add_command(times.user_ns, times.system_ns);
                    }
                    return Ok(done);
                }
                let what = format!("`{}` ended with {status}", self.text);
                let help = "its output is above; if a failure is as good: `COMMAND || true`";
                return Ok(Err(cx.failed_as(COMMAND_FAILED, what, help)));
            }
            if cx.env.gate.is_stopped() || cx.expired() {
                group.end(PATIENCE);
                return Ok(cx.end(0).and(Err(Stop::over())));
            }
        }
    }
}

impl Stateless for ShellCommand {
    fn describe(&self) -> String {
        format!(" value=\"{}\"", self.text)
    }

    /// Starting a program costs the tool what it costs a shell: a fork, memory for the arguments.
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
