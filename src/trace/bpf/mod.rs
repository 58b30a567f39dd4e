//! Calls as programs in the kernel see them: eBPF at the tracepoints of system calls, the scheduler, the page cache and
//! `io_uring`. The programs are `record.bpf.c`; the objects that are made of it by `build` are in this program.
//!
//! When the recorder ends, however it does, the kernel removes them: what is recorded goes on.

mod feed;
mod plan;
mod record;
mod run;
#[cfg(test)]
mod tests;

use super::resolver::TraceResolver;
use aya::maps::{MapData, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, Iter, ProgramError, ProgramFd};
use aya::{Btf, Ebpf, EbpfLoader};
use feed::Feed;
use record::KernelRecord;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use wml_os::proc::kernel_text;

#[cfg(target_arch = "x86_64")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("record.x86_64.o");
#[cfg(target_arch = "aarch64")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("record.aarch64.o");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static OBJECT: &[u8] = &[];

/// The types of the running kernel.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Bytes for records that are not read yet.
const RING: u32 = 128 << 20;

/// The programs in the kernel, by their names and tracepoints. Without the first ones nothing is recorded.
const NEEDED: [(&str, &str); 5] = [
    ("forked", "sched_process_fork"),
    ("exited", "sched_process_exit"),
    ("executed", "sched_process_exec"),
    ("left", "sys_exit"),
    ("entered", "sys_enter"),
];

/// What is not seen without these.
const OPTIONAL: [(&str, [(&str, &str); 2]); 3] = [
    (TIMES, [("switched", "sched_switch"), ("waking", "sched_waking")]),
    ("reads of mapped files", [("faulted", "mm_filemap_fault"), ("mapped_pages", "mm_filemap_map_pages")]),
    ("io_uring", [("submitted", "io_uring_submit_req"), ("completed", "io_uring_complete")]),
];
const TIMES: &str = "time between calls";

/// What is recorded.
#[derive(Clone, Copy, Debug)]
enum BpfTarget {
    /// What the calling thread starts from now on, and what that starts.
    Children,
    /// A process that runs, and what it has started or starts.
    Process(u32),
}

/// Why eBPF cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpfRefusal {
    /// The program has not these capabilities.
    Capabilities(&'static str),
    /// The kernel does not tell its types.
    NoTypes,
    /// There is no object for this processor.
    Processor,
    /// The kernel refused this.
    Kernel(String),
}

impl Display for BpfRefusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities(missing) => write!(f, "eBPF needs {missing}"),
            Self::NoTypes => write!(f, "eBPF needs the types of the kernel, and {TYPES} does not exist"),
            Self::Processor => f.write_str("eBPF is not supported on this processor"),
            Self::Kernel(what) => write!(f, "the kernel refuses eBPF: {what}"),
        }
    }
}

/// What was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpfLosses {
    /// Records that found no space.
    pub dropped: u64,
    /// Runs of a program in the kernel that another one prevented.
    pub missed: u64,
    /// Threads and requests without memory for their state.
    pub untracked: u64,
    /// 32-bit calls of a 64-bit kernel.
    pub foreign: u64,
}

impl BpfLosses {
    pub fn sum(self) -> u64 {
        self.dropped + self.missed + self.untracked + self.foreign
    }
}

/// The programs in the kernel, and what they have written.
pub struct BpfRecorder {
    ring: RingBuf<MapData>,
    counters: PerCpuArray<MapData, u64>,
    programs: Vec<ProgramFd>,
    not_seen: Vec<&'static str>,
    feed: Feed,
    /// The programs are detached when it goes.
    _object: Ebpf,
}

impl BpfRecorder {
    /// Why eBPF can't be used, if that can be told without the kernel's answer.
    pub fn allowed() -> Result<(), BpfRefusal> {
        capable()?;
        if OBJECT.is_empty() {
            return Err(BpfRefusal::Processor);
        }
        if Path::new(TYPES).exists() { Ok(()) } else { Err(BpfRefusal::NoTypes) }
    }

    /// Starts to record. `ring`: bytes for records that are not read yet, a power of two.
    fn start(target: BpfTarget, ring: Option<u32>) -> Result<Self, BpfRefusal> {
        Self::allowed()?;
        let refused = |error: &dyn std::error::Error| BpfRefusal::Kernel(chain(error));
        let btf = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let words = plan::words();
        let io = |error: io::Error| refused(&error);
        let namespace = fs::metadata("/proc/self/ns/pid").map_err(io)?.ino() as u32;
        let starter = this_thread().map_err(io)?;
        let root = match target {
            BpfTarget::Children => 0,
            BpfTarget::Process(process) => process,
        };
        let mut object = EbpfLoader::new()
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .override_global("calls", &words, true)
            .override_global("starter", &starter, true)
            .override_global("root", &root, true)
            .override_global("namespace", &namespace, true)
            .map_max_entries("ring", ring.unwrap_or(RING))
            .load(OBJECT)
            .map_err(|error| refused(&error))?;
        let mut map = |name: &str| object.take_map(name).ok_or_else(|| BpfRefusal::Kernel(format!("no map {name}")));
        let ring = RingBuf::try_from(map("ring")?).map_err(|error| refused(&error))?;
        let counters = PerCpuArray::try_from(map("counters")?).map_err(|error| refused(&error))?;
        let mut programs = Vec::new();
        let mut not_seen = Vec::new();
        for (what, pair) in OPTIONAL {
            let both = pair.map(|(name, tracepoint)| load(&mut object, name, tracepoint, &btf));
            if both.iter().any(Result::is_err) {
                not_seen.push(what);
                continue;
            }
            for (name, _) in pair {
                programs.push(attach(&mut object, name).map_err(|error| refused(&error))?);
            }
        }
        for (name, tracepoint) in NEEDED {
            let loaded = load(&mut object, name, tracepoint, &btf).and_then(|()| attach(&mut object, name));
            programs.push(loaded.map_err(|error| BpfRefusal::Kernel(format!("{tracepoint}: {}", chain(&error))))?);
        }
        if root != 0 {
            track(&mut object, &btf).map_err(|error| BpfRefusal::Kernel(format!("the iterator of tasks: {error}")))?;
        }
        let feed = Feed::new(!not_seen.contains(&TIMES));
        Ok(Self { ring, counters, programs, not_seen, feed, _object: object })
    }

    /// What the programs that the kernel refused would have seen.
    pub fn not_seen(&self) -> &[&'static str] {
        &self.not_seen
    }

    /// Passes on what was recorded, at most `most` records, and returns how many there were.
    fn drain(&mut self, most: usize, to: &mut TraceResolver<'_>) -> io::Result<usize> {
        for n in 0..most {
            let Some(item) = self.ring.next() else { return Ok(n) };
            self.feed.record(KernelRecord(&item), to)?;
        }
        Ok(most)
    }

    /// What was lost until now.
    pub fn losses(&self) -> BpfLosses {
        let missed = |program: &ProgramFd| {
            let text = kernel_text(&format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd()));
            let field = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
            field.and_then(|n| n.trim().parse().ok()).unwrap_or(0u64)
        };
        BpfLosses {
            dropped: self.counter(0),
            missed: self.programs.iter().map(missed).sum(),
            untracked: self.counter(1),
            foreign: self.counter(2),
        }
    }

    /// Calls on descriptors that are neither of regular files nor of directories.
    pub fn left_out(&self) -> u64 {
        self.counter(3)
    }

    fn counter(&self, at: u32) -> u64 {
        self.counters.get(&at, 0).map_or(0, |values| values.iter().sum())
    }
}

fn load(object: &mut Ebpf, name: &str, tracepoint: &str, btf: &Btf) -> Result<(), ProgramError> {
    program(object, name)?.load(tracepoint, btf)
}

fn attach(object: &mut Ebpf, name: &str) -> Result<ProgramFd, ProgramError> {
    let program = program(object, name)?;
    program.attach()?;
    Ok(program.fd()?.try_clone()?)
}

fn program<'a>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, ProgramError> {
    object.program_mut(name).ok_or(ProgramError::NotLoaded)?.try_into()
}

/// Records the threads of the process, and those of what it has started. Twice: one that is not seen yet may start another
/// while the kernel goes through them.
fn track(object: &mut Ebpf, btf: &Btf) -> io::Result<()> {
    let program: &mut Iter = object
        .program_mut("running")
        .ok_or(ProgramError::NotLoaded)
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    program.load("task", btf).map_err(io::Error::other)?;
    for _ in 0..2 {
        let link = program.attach().and_then(|id| program.take_link(id)).map_err(io::Error::other)?;
        let mut run = link.into_file().map_err(io::Error::other)?;
        run.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

/// An error and its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut at = Some(error);
    while let Some(error) = at {
        let line = error.to_string();
        let line = line.lines().next().unwrap_or_default();
        if !text.contains(line) {
            text += if text.is_empty() { "" } else { ": " };
            text += line;
        }
        at = error.source();
    }
    text
}

/// The number of the calling thread.
fn this_thread() -> io::Result<u32> {
    let link = fs::read_link("/proc/thread-self")?;
    let number = link.file_name().and_then(|name| name.to_str()?.parse().ok());
    number.ok_or_else(|| io::Error::other("/proc/thread-self has no number"))
}

/// Tells whether the process has the capabilities that its programs need.
fn capable() -> Result<(), BpfRefusal> {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    if !kernel_text("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"]) {
        return Err(BpfRefusal::Capabilities("CAP_BPF and CAP_PERFMON, and those of a user namespace do not count"));
    }
    let status = kernel_text("/proc/self/status");
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = field.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    missing(held & (SYS_ADMIN | PERFMON) != 0, held & (SYS_ADMIN | BPF) != 0)
        .map_or(Ok(()), |missing| Err(BpfRefusal::Capabilities(missing)))
}

fn missing(perfmon: bool, bpf: bool) -> Option<&'static str> {
    match (perfmon, bpf) {
        (true, true) => None,
        (false, true) => Some("CAP_PERFMON"),
        (true, false) => Some("CAP_BPF"),
        (false, false) => Some("CAP_BPF and CAP_PERFMON"),
    }
}
