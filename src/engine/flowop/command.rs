//! `command`: execution of another program as an operation.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, entry, stateless};
use crate::exec::{OpCx, Stop};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Class, Role};
use wml_os::COMMAND_FAILED;
use wml_os::child::Group;
use wml_result::FlowopCounter;

pub(super) const FLOWOPS: &[FlowopEntry] = &[entry("command", command)
    .class(Class::Other)
    .uses(&["value"])
    .roles(&[Role::RunsCommand, Role::TakesSpace])
    .doc(
        "runs the command `value` with /bin/sh and waits for its end; needs `--allow-system`. Its processor time \
              is reported separately",
    )
    .example("flowop command name=list,value=\"ls / > /dev/null\"")];

/// Interval at which a thread that waits for its command checks for the end of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time that a command has to end after SIGTERM before it is killed. Shorter than the time that the run waits for its
/// threads.
const GRACE_PERIOD: Duration = Duration::from_millis(100);

/// Unlike other operations this one allocates: it forks and builds the arguments, as a shell does.
fn command(args: &Args<'_>) -> BuiltOp {
    let Some(text) = args.text("value").filter(|text| !text.trim().is_empty()) else {
        let message = format!("flowop `{}` of type `command` has no command", args.name);
        let d = Diagnostic::error(Code::MissingAttribute, args.span_of("value"), message);
        return Err(d.help("add `value=\"…\"`, such as `value=\"tar cf /dev/null $dir\"`"));
    };
    Ok(stateless(format!(" value=\"{text}\""), Effects::default(), move |cx| {
        cx.begin();
        if !cx.env.engine.real() {
            return cx.end(0);
        }
        let mut group = match Group::start(&text, true, None) {
            Ok(group) => group,
            Err(e) => return Err(not_run(&text, cx, &e)),
        };
        match wait(cx, &mut group) {
            Ok(Some(status)) if status.success() => {
                let times = group.times();
                let done = cx.end(0);
                // A command that ended after the deadline is counted as late only.
                if done.is_ok() {
                    cx.cell().add(FlowopCounter::UserTime, times.user_ns);
                    cx.cell().add(FlowopCounter::SystemTime, times.system_ns);
                }
                done
            }
            Ok(Some(status)) => {
                let what = || format!("`{text}` ended with {status}");
                let help = "its output is above; to accept a failure, write `COMMAND || true`";
                Err(cx.failed_as(COMMAND_FAILED, what, help))
            }
            Ok(None) => cx.end(0).and(Err(Stop::over())),
            Err(e) => Err(not_run(&text, cx, &e)),
        }
    }))
}

/// Returns the failure to run the command.
fn not_run(text: &str, cx: &mut OpCx<'_>, error: &io::Error) -> Stop {
    let what = || format!("`{text}` could not be run: {error}");
    cx.failed_as(COMMAND_FAILED, what, "`command` starts commands with /bin/sh")
}

/// Waits for the end of the command. `None` if the run has ended before, which ends the command too.
fn wait(cx: &OpCx<'_>, group: &mut Group) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = group.wait(POLL_INTERVAL)? {
            return Ok(Some(status));
        }
        if cx.env.gate.is_stopped() || cx.expired() {
            group.end(GRACE_PERIOD);
            return Ok(None);
        }
    }
}
