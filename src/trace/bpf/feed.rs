//! From the records of the kernel to the calls of a source.

use super::super::call::{InodeId, TimeBetween};
use super::super::kind::{CallArg, CallClass, KindId};
use super::super::raw::{RawCall, StatFacts};
use super::super::resolver::TraceResolver;
use super::plan;
use super::record::{KernelRecord, KernelRecordKind};
use std::collections::{HashMap, HashSet};
use std::io;
use wml_os::proc::kernel_text;

/// Results from here down to -512 restart the call, or become `EINTR`.
const RESTARTS: i64 = -516;

/// The most requests of `io_uring` whose names wait for their end.
const MOST_REQUESTS: usize = 1 << 16;

/// Reads records.
pub(super) struct Feed {
    kinds: Vec<Option<KindId>>,
    /// True if the scheduler is seen.
    has_times: bool,
    /// The names of requests that have not completed, by their addresses in the kernel.
    requests: HashMap<u64, [Option<Vec<u8>>; 2]>,
    /// Devices as `stat` tells them, and whether the kernel has the same number.
    devices: HashMap<u64, bool>,
    /// Threads that have begun and not ended.
    pub(super) alive: HashSet<u32>,
}

impl Feed {
    pub(super) fn new(has_times: bool) -> Self {
        Self {
            kinds: plan::kinds(),
            has_times,
            requests: HashMap::new(),
            devices: HashMap::new(),
            alive: HashSet::new(),
        }
    }

    pub(super) fn record(&mut self, record: KernelRecord<'_>, to: &mut TraceResolver<'_>) -> io::Result<()> {
        let (thread, process, start) = (record.thread(), record.process(), record.start());
        let args = record.args();
        match record.kind() {
            None => Ok(()),
            Some(KernelRecordKind::Fork) => {
                self.alive.insert(thread);
                to.fork(start, record.result() as u32, thread, process, (args[0] != 0, args[1] != 0))
            }
            Some(KernelRecordKind::Exit) => {
                self.alive.remove(&thread);
                to.exit(start, thread)
            }
            Some(KernelRecordKind::Exec) => {
                // The thread has the number of its process from now on.
                let former = record.result() as u32;
                self.alive.remove(&former);
                self.alive.insert(thread);
                to.exec(start, former, process, record.names()[0], record.file(0).and_then(|file| file.id))
            }
            Some(KernelRecordKind::Wait) => {
                let woken_by = Some(record.result() as u32).filter(|by| *by != 0);
                to.wait(start, record.end(), thread, woken_by)
            }
            Some(KernelRecordKind::Fault) => to.call(&fault(record)),
            Some(KernelRecordKind::Request) => {
                if self.requests.len() < MOST_REQUESTS {
                    self.requests.insert(args[5], record.names().map(|name| name.map(<[u8]>::to_vec)));
                }
                Ok(())
            }
            Some(KernelRecordKind::Completion) => {
                let kind = u8::try_from(record.number()).ok().and_then(KindId::of_uring).unwrap_or_default();
                let mut call = raw(record, kind);
                call.names = self.requests.remove(&args[5]).unwrap_or_default();
                call.how_flags = kind.get().arg(CallArg::How).map(|at| args[at] as u32);
                to.call(&call)
            }
            Some(KernelRecordKind::Call) => {
                let Some(kind) = self.kinds.get(usize::from(record.number())).copied().flatten() else { return Ok(()) };
                let mut call = raw(record, kind);
                self.details(record, &mut call);
                to.call(&call)
            }
        }
    }

    /// What a system call has beyond its arguments.
    fn details(&mut self, record: KernelRecord<'_>, call: &mut RawCall) {
        let kind = call.kind.get();
        let pointed = record.pointed();
        // A name that is a null pointer stands for the directory itself.
        let is_null = |arg| kind.arg(arg).is_some_and(|at| call.args[at] == 0);
        let empty = |name: Option<&[u8]>, is_null: bool| name.map(<[u8]>::to_vec).or(is_null.then(Vec::new));
        let [first, second] = record.names();
        call.names = [empty(first, is_null(CallArg::Path)), empty(second, is_null(CallArg::Path2))];
        if kind.arg(CallArg::Iov).is_some() {
            call.wanted = pointed;
        } else if kind.arg(CallArg::How).is_some() {
            call.how_flags = pointed.map(|flags| flags as u32);
        } else if kind.arg(CallArg::OffsetAt).is_some_and(|at| call.args[at] != 0) {
            // The call has moved it.
            call.offset = pointed.map(|offset| offset.saturating_sub(u64::try_from(call.result).unwrap_or(0)));
        }
        if kind.arg(CallArg::Stat).or(kind.arg(CallArg::Statx)).is_some() && call.result == 0 {
            call.stat = record.file(1).and_then(|file| {
                let id = file.id.filter(|id| self.is_kernels(id.device));
                let id = id.map(|id| InodeId { generation: None, ..id });
                Some(StatFacts { size: file.size.unwrap_or(0), mode: file.mode?, id })
            });
        }
        if kind.class == CallClass::Copy {
            call.files[1] = record.file(1);
        }
        if self.has_times {
            call.between = Some(times(record.between()));
            call.within = Some(times(record.within()));
        }
    }

    /// True if the device has the number that the kernel has for it. On btrfs `stat` has another one for each subvolume, by
    /// which a file could not be found again.
    pub(super) fn is_kernels(&mut self, device: u64) -> bool {
        *self.devices.entry(device).or_insert_with(|| {
            let number = format!("{}:{}", libc::major(device), libc::minor(device));
            // The device is the third word.
            let is_mounted = |line: &str| line.split(' ').nth(2) == Some(number.as_str());
            libc::major(device) != 0 || kernel_text("/proc/self/mountinfo").lines().any(is_mounted)
        })
    }
}

fn times([runnable, blocked]: [u64; 2]) -> TimeBetween {
    TimeBetween { runnable, blocked }
}

fn raw(record: KernelRecord<'_>, kind: KindId) -> RawCall {
    let result = record.result();
    RawCall {
        start: record.start(),
        end: record.end(),
        thread: record.thread(),
        process: record.process(),
        kind,
        args: record.args(),
        result: if (RESTARTS..=-512).contains(&result) { i64::from(-libc::EINTR) } else { result },
        files: [record.file(0), None],
        ..RawCall::default()
    }
}

/// Pages of a mapped file, by their numbers.
fn fault(record: KernelRecord<'_>) -> RawCall {
    const PAGE: u64 = 4096;
    let [first, last, ..] = record.args();
    let length = (last.saturating_sub(first) + 1).saturating_mul(PAGE);
    RawCall {
        args: [u64::MAX, 0, length, first.saturating_mul(PAGE), 0, 0],
        ..raw(record, KindId::named("page_fault").unwrap_or_default())
    }
}
