//! Prints a plan and its totals, for `wmlrun plan` and for tests. The output is stable.

use super::memory::buffers;
use super::{ExactValue, Pace, Plan, PlanStep, Thread};
use crate::disk::Fileset;
use crate::random::Quantity;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use wml_text::count::{count, grouped};
use wml_text::{duration, printable, size};

/// The resources that a plan needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// WML processes.
    pub processes: u64,
    pub threads: u64,
    /// Files that all sets can hold.
    pub files: u64,
    /// Files that exist at the start.
    pub files_at_start: u64,
    pub directories: u64,
    /// Bytes that population writes.
    pub bytes: u64,
    /// Bytes of memory that are certainly needed: I/O buffers, counters, tables of file sets.
    pub memory: u64,
    /// The most bytes that may be needed, if threads meet the largest files, and have as many asynchronous operations
    /// in flight as they may.
    pub max_memory: u64,
    /// Descriptors of the process that needs the most.
    pub descriptors: u64,
}

/// Most characters of an operation's description, which may quote a text of the script.
const TEXT: usize = 500;

/// Bytes of counters that a flowop of a thread usually touches.
const COUNTERS: u64 = 16 << 10;

/// Bytes of stack, slots and state that a thread usually touches.
const THREAD: u64 = 48 << 10;

/// Adds up the resources that a plan needs.
pub fn totals(plan: &Plan, sets: &[Arc<Fileset>]) -> Totals {
    let tables: u64 = sets.iter().map(|s| s.tree.memory() + s.state.memory()).sum();
    let mut totals = Totals {
        processes: plan.n_processes(),
        threads: plan.n_threads(),
        files: sets.iter().map(|s| s.tree.n_files()).sum(),
        files_at_start: sets.iter().map(|s| s.tree.files_at_start()).sum(),
        directories: sets.iter().map(|s| s.tree.n_dirs()).sum(),
        bytes: sets.iter().fold(0, |sum, s| sum.saturating_add(s.tree.bytes_at_start())),
        memory: tables,
        max_memory: tables,
        descriptors: 0,
    };
    for process in &plan.processes {
        for thread in &process.threads {
            let n = u64::from(process.instances) * u64::from(thread.instances);
            let rest = thread.count as u64 * COUNTERS + THREAD;
            let of_all = |each: u64| n.saturating_mul(each.saturating_add(rest));
            let need = buffers(plan, thread, sets);
            totals.memory = totals.memory.saturating_add(of_all(need.least));
            totals.max_memory = totals.max_memory.saturating_add(of_all(need.most));
        }
        let dirs: u64 = process.sets().into_iter().map(|s| sets.get(s).map_or(0, |s| s.tree.n_dirs())).sum();
        totals.descriptors = totals.descriptors.max(process.descriptors().saturating_add(dirs));
    }
    totals
}

/// Prints a plan.
pub fn dump(plan: &Plan, sets: &[Arc<Fileset>]) -> String {
    let mut out = String::new();
    let _ = write_dump(&mut out, plan, sets);
    out
}

fn write_dump(out: &mut String, plan: &Plan, sets: &[Arc<Fileset>]) -> std::fmt::Result {
    for alike in sets.chunk_by(are_instances) {
        write_sets(out, alike)?;
    }
    let several_phases = plan.phases.len() > 1;
    let phase_times = plan.phase_times();
    let threads: Vec<&str> = plan.threads().map(|(_, thread)| &*thread.name).collect();
    for process in &plan.processes {
        let nice = if process.nice == 0 { String::new() } else { format!(", nice {:+}", process.nice) };
        let phase = if several_phases { format!(", phase {}", process.phase) } else { String::new() };
        let times = phase_times[&process.phase];
        let time = |word: &str, time: Option<Duration>| {
            time.map_or(String::new(), |time| format!(", {word} {}", duration::seconds(time.as_secs_f64())))
        };
        let times = format!("{}{}", time("from", times.start), time("for", times.length));
        writeln!(out, "process {} × {}{nice}{phase}{times}", process.name, process.instances)?;
        for thread in &process.threads {
            let memsize = if thread.memsize > 0 { thread.memsize } else { thread.effects.buffer };
            let pace = thread.pace.map_or(String::new(), pace);
            let limits = limits(thread, &threads);
            let (name, n, memsize) = (&thread.name, thread.instances, size::format(memsize));
            writeln!(out, "  thread {name} × {n}, buffer {memsize}{pace}{limits}")?;
            steps(out, plan, thread)?;
        }
    }
    for ExactValue { of, attr, exact, whole } in &plan.exact {
        let whole = if whole.is_empty() { "no value" } else { whole };
        writeln!(out, "{attr} of {of} is {exact} ({} in whole numbers)", printable::short(whole, TEXT))?;
    }
    writeln!(
        out,
        "mode {}, event rate {}",
        plan.mode.name(),
        plan.event_rate.map_or("none".to_owned(), |r| format!("{r}/s"))
    )?;
    let t = totals(plan, sets);
    let (memory, most) = (size::format(t.memory), size::format(t.max_memory));
    let up_to = if most == memory { String::new() } else { format!(" (up to {most})") };
    let all_exist = t.files_at_start == t.files;
    let at_start = if all_exist { String::new() } else { format!(" ({} at the start)", grouped(t.files_at_start)) };
    writeln!(
        out,
        "total: {}, {}, {}{at_start} in {} with {}, {memory} of memory{up_to}, {} in one process",
        count(t.processes, "process"),
        count(t.threads, "thread"),
        files(t.files),
        directories(t.directories),
        size::format(t.bytes),
        count(t.descriptors, "descriptor")
    )
}

/// True if two file sets are those of process instances that one `define` makes, which follow one another.
pub(super) fn are_instances(a: &Arc<Fileset>, b: &Arc<Fileset>) -> bool {
    a.spec.instance.is_some() && b.spec.instance.is_some() && a.spec.name == b.spec.name
}

/// Prints file sets that differ only in their process instance, with their sums.
fn write_sets(out: &mut String, sets: &[Arc<Fileset>]) -> std::fmt::Result {
    let (first, last) = (&sets[0], &sets[sets.len() - 1]);
    let (spec, tree) = (&first.spec, &first.tree);
    let sum = |of: fn(&Fileset) -> u64| sets.iter().fold(0, |sum: u64, set| sum.saturating_add(of(set)));
    let kind = if spec.single { "file" } else { "file set" };
    let root = printable::line(&spec.root().display().to_string()).into_owned();
    let times = if sets.len() == 1 { String::new() } else { format!(" × {}", sets.len()) };
    let each = if spec.instance.is_some() { ", one for each process instance" } else { "" };
    write!(out, "{kind} {}{times}{each}: {root}", spec.name)?;
    if sets.len() > 1 {
        let last = last.spec.root();
        let last = last.file_name().unwrap_or_default().to_string_lossy();
        write!(out, " to {}", printable::line(&last))?;
    }
    writeln!(out)?;
    write!(out, "  {} in {}", files(sum(|s| s.tree.n_files())), directories(sum(|s| s.tree.n_dirs())))?;
    let n_leafdirs = sum(|s| s.tree.n_leafdirs());
    if n_leafdirs > 0 {
        write!(out, ", {} leaf directories for `makedir` and `removedir`", grouped(n_leafdirs))?;
    }
    // Adding 0.0 turns the negative zero of a depth without a width into zero.
    writeln!(out, ", mean width {:.1}, mean depth {:.1}", tree.mean_width(), tree.mean_depth() + 0.0)?;
    let sizes =
        spec.sizes.as_ref().map_or_else(|| spec.size.to_string(), |t| format!("a table of {} rows", t.rows().len()));
    writeln!(
        out,
        "  size {sizes}; {} of them ({}) exist at the start{}",
        grouped(sum(|s| s.tree.files_at_start())),
        size::format(sum(|s| s.tree.bytes_at_start())),
        flags(spec)
    )
}

pub(super) fn files(n: u64) -> String {
    if n == 1 { "1 file".to_owned() } else { format!("{} files", grouped(n)) }
}

pub(super) fn directories(n: u64) -> String {
    if n == 1 { "1 directory".to_owned() } else { format!("{} directories", grouped(n)) }
}

pub(super) fn flags(spec: &crate::fileset::FilesetSpec) -> String {
    let mut text = String::new();
    for (on, word) in [
        (spec.reuse, "reuse"),
        (spec.trusttree, "trusttree"),
        (spec.readonly, "readonly"),
        (spec.writeonly, "writeonly"),
        (spec.symlinks, "symbolic links"),
        (spec.late_dirs, "directories made in the run"),
    ] {
        if on {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    if let Some(sharing) = spec.share {
        text.push_str(", share=");
        text.push_str(sharing.name());
    }
    match spec.cached {
        Some(true) => text.push_str(", cached"),
        Some(false) => text.push_str(", uncached"),
        None => {}
    }
    text
}

/// Returns the rate of a thread as text, with that of all threads of its definition.
fn pace(pace: Pace) -> String {
    let poisson = if pace.poisson { " (poisson)" } else { "" };
    let of_all = match pace.threads {
        1 => String::new(),
        n if pace.is_shared => format!(" on average, from the queue of all {n} threads"),
        n => format!(", {}/s of all {n} threads", pace.total.unwrap_or_else(|| rounded(pace.rate * n as f64))),
    };
    format!(", {} requests/s{poisson}{of_all}", pace.rate)
}

/// Rounds to twelve significant digits: a third, three times, is one.
pub(super) fn rounded(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

/// Returns the limits of a thread's iterations as text. `threads`: the names of all threads.
fn limits(thread: &Thread, threads: &[&str]) -> String {
    let stonewall =
        thread.stonewall.map_or(String::new(), |time| format!(", stonewall after {}", duration::format(time)));
    let other = thread.iterations_of.and_then(|index| threads.get(index));
    other.map_or(stonewall.clone(), |other| format!("{stonewall}, as many iterations as {other}"))
}

fn steps(out: &mut String, plan: &Plan, thread: &Thread) -> std::fmt::Result {
    for (pc, step) in thread.steps.iter().enumerate() {
        write!(out, "    {pc:>3} ")?;
        match step {
            PlanStep::Op { local, iters, op } => {
                let info = &plan.flowops[thread.first + local];
                let times = if matches!(iters, Quantity::Const(1)) { String::new() } else { format!(" × {iters}") };
                let text = op.describe();
                let may_starve = if info.may_starve { " maystarve" } else { "" };
                writeln!(out, "{} {}{}{may_starve}{times}", info.name, info.kind, printable::short(&text, TEXT))?;
            }
            PlanStep::Enter { iters, leave, .. } => writeln!(out, "repeat {iters} up to {leave}")?,
            PlanStep::Leave { enter } => writeln!(out, "end of {enter}")?,
            PlanStep::Choose { upto, starts, end, shuffled } => {
                let mut before = 0.0;
                let parts: Vec<String> = upto
                    .iter()
                    .zip(starts)
                    .map(|(w, s)| {
                        let own = w - before;
                        before = *w;
                        format!("{s} ({own})")
                    })
                    .collect();
                let how = if *shuffled { "shuffled" } else { "one of" };
                writeln!(out, "{how} {}, then {end}", parts.join(", "))?;
            }
            PlanStep::Jump(to) => writeln!(out, "go on at {to}")?,
            PlanStep::Gather { group, release } => writeln!(out, "group {group} up to {release}")?,
            PlanStep::Release => writeln!(out, "end of the group")?,
        }
    }
    Ok(())
}
