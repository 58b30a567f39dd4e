//! A recording by eBPF, from its start to its end.

use super::super::ptrace::{Recorded, RecordingEnd, RecordingWish};
use super::super::resolver::TraceResolver;
use super::{BpfRecorder, BpfRefusal, BpfTarget};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use wml_os::child::ProcessEnd;
use wml_os::{proc::kernel_text, ptrace};

/// The least and the most time between two looks at the ring.
const LOOK: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(16)];
/// The most records between two looks at the command.
const RECORDS: usize = 1 << 12;
/// How often `wish` is asked, and whether what is recorded still runs.
const ASK: Duration = Duration::from_millis(100);

impl BpfRecorder {
    /// A recorder of this. Its next steps belong to the same thread.
    pub fn of(what: &Recorded, ring: Option<u32>) -> Result<Self, BpfRefusal> {
        let target = match what {
            Recorded::Process(process) => BpfTarget::Process(*process as u32),
            Recorded::Command(_) | Recorded::Calls(_) => BpfTarget::Children,
        };
        Self::start(target, ring)
    }

    /// Records until the program and all that it has started end, or `wish` says so. A command is then asked to end.
    pub fn run(
        &mut self,
        what: &Recorded,
        resolver: &mut TraceResolver<'_>,
        wish: &mut dyn FnMut() -> RecordingWish,
    ) -> io::Result<RecordingEnd> {
        let mut running = match what {
            Recorded::Command(words) => {
                let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
                let began = Instant::now();
                let child = Command::new(program).args(args).spawn()?;
                BpfSubject::Command { end: ProcessEnd::of(child.id() as i32), child, began, ended: None }
            }
            Recorded::Process(process) if runs(*process as u32) => BpfSubject::Process(*process as u32),
            Recorded::Process(_) => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            Recorded::Calls(_) => return Ok(RecordingEnd::default()),
        };
        let (mut look, mut asked, mut has_asked) = (LOOK[0], Instant::now(), false);
        loop {
            let n = self.drain(RECORDS, resolver)?;
            if asked.elapsed() >= ASK {
                asked = Instant::now();
                if wish() == RecordingWish::Stop && !has_asked {
                    has_asked = true;
                    match &running {
                        BpfSubject::Process(_) => break,
                        BpfSubject::Command { child, .. } => ptrace::kill(child.id() as i32, libc::SIGTERM),
                    }
                }
                if n == 0 {
                    self.feed.alive.retain(|thread| runs(*thread));
                }
            }
            if running.is_over()? && n == 0 && self.feed.alive.is_empty() {
                break;
            }
            look = if n > 0 { LOOK[0] } else { (look * 2).min(LOOK[1]) };
            if n < RECORDS {
                running.wait(look);
            }
        }
        self.drain(usize::MAX, resolver)?;
        let (status, took) = match running {
            BpfSubject::Command { ended: Some((status, took)), .. } => {
                (status.code().or_else(|| Some(128 + status.signal()?)), Some(took))
            }
            _ => (None, None),
        };
        Ok(RecordingEnd { status, took, ..RecordingEnd::default() })
    }

    /// What a call costs that is recorded, in nanoseconds, by calls of this program. Before `run`, on the same thread.
    pub fn cost(&mut self) -> Option<f64> {
        // A thread that this one starts is recorded, and one that it has not started is not.
        let recorded = thread::spawn(call_time).join().ok()??;
        let bare = call_time()?;
        while self.ring.next().is_some() {}
        Some((recorded - bare).max(0.0))
    }
}

/// Nanoseconds of a call on a file, the 5th percentile of many batches.
#[allow(clippy::disallowed_methods, reason = "no file of the user")]
fn call_time() -> Option<f64> {
    const BATCHES: usize = 200;
    const CALLS: u32 = 20;
    let file = File::open("/proc/self/exe").ok()?;
    let mut byte = [0];
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let begin = Instant::now();
        for _ in 0..CALLS {
            file.read_at(&mut byte, 0).ok()?;
        }
        times.push(begin.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    times.sort_by(f64::total_cmp);
    Some(times[BATCHES / 20])
}

/// What is recorded.
enum BpfSubject {
    Command {
        child: Child,
        end: ProcessEnd,
        began: Instant,
        /// Its status, and how long it ran.
        ended: Option<(ExitStatus, Duration)>,
    },
    Process(u32),
}

impl BpfSubject {
    /// True if it has ended; what it has started may run still.
    fn is_over(&mut self) -> io::Result<bool> {
        match self {
            Self::Command { child, began, ended, .. } => {
                if ended.is_none() {
                    *ended = child.try_wait()?.map(|status| (status, began.elapsed()));
                }
                Ok(ended.is_some())
            }
            Self::Process(process) => Ok(!runs(*process)),
        }
    }

    /// Waits for so long, or until the command ends.
    fn wait(&self, time: Duration) {
        match self {
            Self::Command { end, ended: None, .. } => end.wait(time),
            _ => thread::sleep(time),
        }
    }
}

/// True if the thread or process has not ended.
fn runs(thread: u32) -> bool {
    if !Path::new(&format!("/proc/{thread}")).exists() {
        return false;
    }
    let status = kernel_text(&format!("/proc/{thread}/status"));
    !status.lines().any(|line| line.starts_with("State:\tZ") || line.starts_with("State:\tX"))
}
