//! `wmlrun record` and `wmlrun trace`: what a program does with its files.

use super::compare_args::CompareArgs;
use super::console::{notice, print_lines};
use super::recording_args::{RecordArgs, TraceCommand};
use super::recording_overhead;
use super::stdout::Stdout;
use crate::comparison::AsJson as _;
use crate::diag::Failure;
use crate::learn::{LearnedScript, RecordingsCompared, TracedRun, TracedSide};
use crate::measure::mount;
use crate::os::held_dir::HeldDir;
use crate::os::signals::{self, BrokenOff};
use crate::os::{handle, limits, proc, reading};
use crate::result::environment::MountInfo;
use crate::sheet::text;
use crate::trace::{
    BpfRecorder, PartlyKnown, PathId, ProcView, Recorded, RecordingEnd, RecordingWish, TRACE_MARK, TraceComparison,
    TraceEnd, TraceError, TraceEvent, TraceHeader, TraceReader, TraceResolver, TraceScope, TraceSummary, TraceWriter,
    TreeEntry, call_line, calls_heading, import_strace, ptrace_cost, record_by_ptrace,
};
use crate::util::count::{count, fixed, grouped};
use crate::util::{duration, printable, size};
use crate::version::VERSION;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant, SystemTime};

/// The file of a recording without `-o`.
const DEFAULT_OUTPUT: &str = "trace.wtrace";
/// What is appended to the name of the part before the last.
const OLDER: &str = ".1";
/// For how long calls may wait to be written: what a recorder that is killed loses.
const MOST_LOST: Duration = Duration::from_secs(1);
/// The most names of the tree at the beginning.
const MOST_NAMES: usize = 1 << 20;
/// What is left out of calls on descriptors.
const SPECIAL: &str = "socket, pipe or device";
/// What `ptrace` and strace can't see.
const NOT_SEEN: [&str; 2] = ["io_uring", "time between calls"];

/// Records a command or a process. Returns the exit status of the command.
pub(super) fn record(args: &RecordArgs) -> Result<u8, Failure> {
    signals::install_handlers();
    let _kept = signals::Kept::begin();
    if args.check_overhead {
        signals::second_breaks_off(BrokenOff::Command);
        return recording_overhead::check(&RecordArgs { is_temporary: true, ..args.clone() });
    }
    signals::second_breaks_off(BrokenOff::Recording);
    let status = record_once(args)?.status;
    Ok(u8::try_from(status).unwrap_or(1))
}

/// What was recorded.
pub(super) struct Recording {
    /// The exit status of the command.
    pub(super) status: i32,
    /// How long the command ran.
    pub(super) seconds: f64,
    /// True if nothing is missing in it.
    pub(super) is_complete: bool,
    /// The trace. A temporary one can be read.
    pub(super) trace: File,
}

/// The file of a trace. A temporary one has no name, and goes with its descriptor.
pub(super) fn create(args: &RecordArgs) -> Result<(HeldDir, OsString, File), Failure> {
    let path = output(args);
    let can_not = |error: io::Error| can_not_write(path, &error);
    let (dir, name) = HeldDir::of_entry(path).map_err(can_not)?;
    let file = match args.is_temporary {
        true => dir.temporary(name.clone()).and_then(|unnamed| unnamed.file().try_clone()),
        false => dir.create_private(&name),
    };
    Ok((dir, name, file.map_err(can_not)?))
}

fn output(args: &RecordArgs) -> &Path {
    args.output.as_deref().unwrap_or(Path::new(DEFAULT_OUTPUT))
}

pub(super) fn record_once(args: &RecordArgs) -> Result<Recording, Failure> {
    let path = output(args);
    let scope = scope(&args.under)?;
    let can_not = |error: io::Error| can_not_write(path, &error);
    let (dir, name, file) = create(args)?;
    let trace = file.try_clone().map_err(can_not)?;
    let remove = || drop((!args.is_temporary).then(|| dir.remove_file(&name)));
    let what = match args.process {
        Some(process) => Recorded::Process(process),
        None => Recorded::Command(args.command.clone()),
    };
    let mut bpf = by_bpf(args, &what).inspect_err(|_| remove())?;
    let (way, cost, most_cost) = match &mut bpf {
        Some(bpf) => ("ebpf", bpf.cost(), None),
        None => {
            let [least, most] = ptrace_cost().map_or([None, None], |ends| ends.map(Some));
            ("ptrace", least, most)
        }
    };
    let writer = TraceWriter::new(Box::new(file), header(args, way, &scope));
    let mut writer = writer.map_err(can_not).inspect_err(|_| remove())?;
    if let Some(most) = args.max_size {
        let next = || {
            dir.rename(&name, &older(&name))?;
            Ok(Box::new(dir.create_private(&name)?) as Box<dyn Write>)
        };
        writer = writer.with_parts(most / 2, Box::new(next));
    }
    let writer = RefCell::new(writer);
    let broken = RefCell::new(None);
    // A full disk ends the recording, and not the program.
    let write = |step: &dyn Fn(&mut TraceWriter) -> io::Result<()>| {
        if broken.borrow().is_none()
            && let Err(error) = step(&mut writer.borrow_mut())
        {
            *broken.borrow_mut() = Some(error);
        }
    };
    let partly_known = RefCell::new(PartlyKnown::default());
    let begin = Instant::now();
    let mut resolver = TraceResolver::new(
        crate::os::clock::monotonic_ns(),
        scope,
        Box::new(ProcView),
        Box::new(|event, paths| {
            if let TraceEvent::Call(call) = event {
                partly_known.borrow_mut().add(call);
            }
            write(&|writer| writer.event(event, paths));
            Ok(())
        }),
    );
    let tree = tree(&args.under, &mut resolver);
    let begun = writer.borrow_mut().tree(&tree, resolver.paths());
    begun.map_err(can_not).inspect_err(|_| remove())?;
    let mut wish = || {
        write(&|writer| writer.flush_older(MOST_LOST));
        let is_over = args.period.is_some_and(|period| begin.elapsed() >= period);
        let is_stopped =
            is_over || signals::received().is_some() || args.process.is_some() && broken.borrow().is_some();
        if is_stopped { RecordingWish::Stop } else { RecordingWish::Continue }
    };
    let done = match &mut bpf {
        Some(bpf) => bpf.run(&what, &mut resolver, &mut wish),
        None => record_by_ptrace(&what, &mut resolver, &mut wish),
    };
    let took = begin.elapsed();
    let recorded = done.map_err(|error| {
        // Nothing was recorded.
        remove();
        can_not_record(args, &error)
    })?;
    let kernel = bpf.as_ref().map(BpfRecorder::losses).unwrap_or_default();
    let lost = [
        ("unreadable name", resolver.unreadable()),
        ("unfinished call", recorded.unfinished),
        ("record without space in the ring", kernel.dropped),
        ("event that the kernel did not report", kernel.missed),
        ("thread or request without memory for its state", kernel.untracked),
        ("32-bit call", kernel.foreign),
    ];
    let others = bpf.as_ref().map_or(0, BpfRecorder::left_out);
    // The kernel does not tell them apart.
    let is_special = |why: &str| bpf.is_some() && matches!(why, "socket" | "pipe" | "device");
    let name = |why| if is_special(why) { SPECIAL } else { why };
    let left_out = resolver.left_out().iter().map(|(why, n)| (name(why), *n));
    let left_out = counted(left_out.chain([(SPECIAL, others)]));
    drop(resolver);
    let partly_known = partly_known.into_inner();
    let not_seen = match &bpf {
        Some(bpf) => bpf.not_seen().iter().map(|what| (*what).to_owned()).collect(),
        None => not_seen("page faults and ends of mappings", partly_known.mappings(), recorded.requests),
    };
    let setuid = if args.hash_names { BTreeSet::new() } else { recorded.setuid.clone() };
    let end = TraceEnd {
        duration: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        lost: counted(lost),
        not_seen,
        left_out,
        cost_ns: cost,
        most_cost_ns: most_cost,
        setuid,
        ended: if signals::received().is_some() { "interrupted" } else { "ended" }.to_owned(),
        status: recorded.status,
        ..TraceEnd::default()
    };
    let broken = broken.into_inner();
    let written = broken.map_or_else(|| writer.into_inner().finish(end), Err);
    let end = written.map_err(|error| {
        let help = match args.is_temporary {
            true => "give `-o` a path on a disk with space",
            false => "what was written before is a trace that lacks its end",
        };
        Failure::failed(format!("{}: the recording ended: {error}", path.display()), help)
    })?;
    if !args.is_temporary {
        let partly_known = partly_known.text(bpf.is_some());
        report(path, args.max_size.is_some(), &end, &recorded, partly_known);
    }
    Ok(Recording {
        status: recorded.status.unwrap_or(0),
        seconds: recorded.took.unwrap_or(took).as_secs_f64(),
        is_complete: end.is_complete(),
        trace,
    })
}

/// What `ptrace` and strace can't see, with how much of it there is.
fn not_seen(of_mappings: &str, mappings: u64, requests: u64) -> Vec<String> {
    let counted = |what: &str, n: u64, one: &str| match n {
        0 => what.to_owned(),
        n => format!("{what} ({})", count(n, one)),
    };
    let [ring, times] = NOT_SEEN;
    vec![counted(of_mappings, mappings, "mapping"), counted(ring, requests, "request"), times.to_owned()]
}

/// The recorder in the kernel, unless `ptrace` is wanted, or is all that is allowed.
fn by_bpf(args: &RecordArgs, what: &Recorded) -> Result<Option<BpfRecorder>, Failure> {
    if args.by.as_deref() == Some("ptrace") {
        return Ok(None);
    }
    match BpfRecorder::of(what, None) {
        Ok(bpf) => Ok(Some(bpf)),
        Err(why) if args.by.is_some() => {
            let help = "`--by ptrace` needs no rights; it sees neither page faults of mappings nor `io_uring`";
            Err(Failure::refused(format!("can't record: {why}"), help))
        }
        Err(why) => {
            // Not in each run of several.
            static NOTED: Once = Once::new();
            NOTED.call_once(|| notice(&format!("note: by ptrace: {why}")));
            Ok(None)
        }
    }
}

/// What there was any of, with its number.
fn counted(all: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (what, n) in all.into_iter().filter(|(_, n)| *n > 0) {
        *counts.entry(what.to_owned()).or_default() += n;
    }
    counts
}

/// The name of the part before the last.
fn older(name: &OsStr) -> OsString {
    let mut older = name.to_owned();
    older.push(OLDER);
    older
}

fn scope(under: &[PathBuf]) -> Result<TraceScope, Failure> {
    let absolute = |dir: &PathBuf| {
        let found = std::fs::canonicalize(dir).map(|path| path.as_os_str().as_bytes().to_vec());
        found.map_err(|e| Failure::refused(format!("--under {}: {e}", dir.display()), "name a directory that exists"))
    };
    Ok(TraceScope::new(under.iter().map(absolute).collect::<Result<Vec<_>, _>>()?))
}

fn can_not_write(path: &Path, error: &io::Error) -> Failure {
    let help = match error.kind() {
        io::ErrorKind::AlreadyExists => "remove it, or give `-o` another path",
        _ => "give `-o` another path",
    };
    Failure::refused(format!("can't write {}: {error}", path.display()), help)
}

pub(super) fn can_not_record(args: &RecordArgs, error: &io::Error) -> Failure {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let help = match (is_denied, args.process) {
        (true, Some(_)) => {
            "a process of another user needs CAP_SYS_PTRACE; `sysctl kernel.yama.ptrace_scope` above 0 \
            allows a user children only: start the program with `wmlrun record -- COMMAND`"
        }
        (true, None) => "the system does not allow ptrace; in a container, give it CAP_SYS_PTRACE",
        (false, Some(_)) => "give `-p` the number of a process that runs",
        (false, None) => "give a program that exists behind `--`",
    };
    let what = match (args.process, args.command.first()) {
        (Some(process), _) => format!("process {process}"),
        (None, command) => {
            printable::line(&command.map(|word| word.to_string_lossy()).unwrap_or_default()).into_owned()
        }
    };
    Failure::refused(format!("can't record {what}: {error}"), help)
}

fn header(args: &RecordArgs, recorder: &str, scope: &TraceScope) -> TraceHeader {
    let [system, _, release, _, machine] = proc::uname();
    let first = args.under.first().map_or(Path::new("."), PathBuf::as_path);
    let gib = limits::memory().0 >> 30;
    let mounted = mount(first);
    let of_mount = |of: fn(&MountInfo) -> &String| mounted.as_ref().map(|mount| of(mount).clone());
    TraceHeader {
        wmlrun: VERSION.to_owned(),
        recorder: recorder.to_owned(),
        began: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
        kernel: format!("{system} {release} {machine}"),
        file_system: of_mount(|mount| &mount.kind),
        device: of_mount(|mount| &mount.source),
        mount_options: of_mount(|mount| &mount.options),
        hardware: Some(format!("{}, {gib} GiB", count(limits::processors() as u64, "processor"))),
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        under: scope.under().iter().map(|dir| String::from_utf8_lossy(dir).into_owned()).collect(),
        hashes_names: args.hash_names,
        kinds: Vec::new(),
    }
}

/// The files below the directories that are recorded.
fn tree(under: &[PathBuf], resolver: &mut TraceResolver) -> Vec<TreeEntry> {
    let mut found: Vec<TreeEntry> = Vec::new();
    let mut dirs: Vec<PathBuf> = under.iter().filter_map(|dir| std::fs::canonicalize(dir).ok()).collect();
    while let Some(dir) = dirs.pop() {
        for entry in reading::entries(&dir).unwrap_or_default() {
            let Ok(meta) = entry.metadata() else { continue };
            if found.len() == MOST_NAMES {
                notice(
                    "note: the tree at the beginning has more than a million names: the others are not in the trace",
                );
                return found;
            }
            let path = entry.path();
            let id: PathId = resolver.path(path.as_os_str().as_bytes());
            found.push(TreeEntry { path: id, mode: meta.mode(), size: meta.len() });
            if meta.is_dir() {
                dirs.push(path);
            }
        }
    }
    found
}

fn list(all: &BTreeMap<String, u64>) -> String {
    all.iter().map(|(why, n)| format!("{} {why}", grouped(*n))).collect::<Vec<_>>().join(", ")
}

fn report_lost(end: &TraceEnd) {
    match end.lost.is_empty() {
        true => notice("lost: 0"),
        false => notice(&format!("lost: {}; the trace is incomplete", list(&end.lost))),
    }
}

/// What was recorded, and what was not, on standard error: standard output is the command's.
fn report(path: &Path, in_parts: bool, end: &TraceEnd, recorded: &RecordingEnd, partly_known: Option<String>) {
    let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let what = format!("recorded {} in {}", count(end.calls, "call"), duration::span(end.duration as f64 / 1e9));
    let trace = path.display();
    if in_parts && path.with_file_name(older(path.file_name().unwrap_or_default())).exists() {
        let dropped = match end.dropped_parts {
            0 => String::new(),
            parts => format!(" ({} dropped for `--max-size`)", count(parts, "older part")),
        };
        notice(&format!("{what}; the last of them are in {trace}{OLDER} and {trace}{dropped}"));
    } else {
        let per_call = if end.calls > 0 { fixed(length as f64 / end.calls as f64, 1) } else { "-".to_owned() };
        notice(&format!("{what}: {trace}, {}, {per_call} bytes a call", size::format(length)));
    }
    report_lost(end);
    if !end.left_out.is_empty() {
        notice(&format!("left out: {}", list(&end.left_out)));
    }
    if !end.not_seen.is_empty() {
        notice(&format!("not seen: {}", end.not_seen.join(", ")));
    }
    if let Some(partly_known) = partly_known {
        notice(&format!("known in part: {partly_known}"));
    }
    if let Some(cost) = end.cost() {
        notice(&format!("cost: {cost}"));
    }
    for program in &recorded.setuid {
        notice(&format!(
            "note: {} ran without the rights of its owner, which a recorded program does not get",
            printable::line(program)
        ));
    }
}

/// What goes wrong with a trace.
pub(super) fn named(path: &Path) -> impl Fn(TraceError) -> Failure {
    move |error| Failure::wrong(format!("{}: {}", path.display(), error.message), error.help)
}

pub(super) fn opened(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = handle::open_regular_file(path);
    Ok(BufReader::new(file.map_err(|error| named(path)(error.into()).help("give a file that exists"))?))
}

/// A trace in figures.
fn summary(path: &Path) -> Result<TraceSummary, Failure> {
    TraceSummary::read(opened(path)?).map_err(named(path))
}

/// Prints the calls of a trace as they are read, until nobody reads them.
fn list_calls(path: &Path) -> Result<u8, Failure> {
    let mut reader = TraceReader::new(opened(path)?).map_err(named(path))?;
    let mut text = calls_heading() + "\n";
    while let Some(events) = reader.block().map_err(named(path))? {
        for event in &events {
            if let TraceEvent::Call(call) = event {
                text.extend([call_line(call, reader.paths()).as_str(), "\n"]);
            }
        }
        if Stdout.write_all(text.as_bytes()).is_err() {
            return Ok(0);
        }
        text.clear();
    }
    // Of a trace without calls.
    let _ = Stdout.write_all(text.as_bytes());
    let missing = reader.missing();
    if !missing.is_empty() {
        notice(&format!("warning: the trace is incomplete: it lacks {}", missing.join(", ")));
    }
    Ok(0)
}

/// Runs a command on traces.
pub(super) fn trace(command: &TraceCommand) -> Result<u8, Failure> {
    match command {
        TraceCommand::Show { file, calls: true, json: _ } => list_calls(file),
        TraceCommand::Show { file, json, calls: _ } => {
            let summary = summary(file)?;
            let text = match json {
                true => summary.document().json(),
                false => text::write(&summary.sheet(&file.display().to_string())),
            };
            print_lines(text.trim_end());
            Ok(0)
        }
        TraceCommand::Import { tool: _, file, output, under } => import(file, output.as_deref(), under),
    }
}

/// Prints a script that does what the program of a trace did: of several traces, that of the one nearest to their mean.
pub(super) fn learn(paths: &[PathBuf], incomplete: bool) -> Result<u8, Failure> {
    let learn = |path: &PathBuf| {
        let learned = crate::learn::learn(opened(path)?, VERSION).map_err(named(path))?;
        if learned.is_incomplete && !incomplete {
            let help = "record it again, or learn from what is there by `--incomplete`";
            return Err(Failure::wrong(format!("{}: the trace is incomplete", path.display()), help));
        }
        Ok(learned)
    };
    let mut all = paths.iter().map(learn).collect::<Result<Vec<LearnedScript>, Failure>>()?;
    let mut nearest = 0;
    if let [first, _, ..] = all.as_slice() {
        let end = first.transaction.as_ref();
        let read = |path: &PathBuf| TracedRun::read(opened(path)?, TracedSide::Program, end).map_err(named(path));
        let compared = RecordingsCompared::of(&paths.iter().map(read).collect::<Result<Vec<_>, Failure>>()?);
        nearest = compared.nearest;
        all[nearest].text = compared.in_header(&all[nearest].text);
    }
    let learned = &all[nearest];
    print_lines(learned.text.trim_end());
    let share = 100.0 * learned.modelled as f64 / learned.calls.max(1) as f64;
    let of = if all.len() > 1 { format!(" of {}", paths[nearest].display()) } else { String::new() };
    notice(&format!("{} % of {}{of} are in the script", fixed(share, 1), count(learned.calls, "call")));
    Ok(0)
}

/// Makes a trace of the text of strace.
fn import(file: &Path, output: Option<&Path>, under: &[PathBuf]) -> Result<u8, Failure> {
    let path = output.unwrap_or(Path::new(DEFAULT_OUTPUT));
    let input = handle::open_regular_file(file)
        .map_err(|e| Failure::wrong(format!("{}: {e}", file.display()), "give a file that exists"))?;
    // The directories need not exist here.
    let absolute = |dir: &PathBuf| std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
    let scope = TraceScope::new(under.iter().map(|dir| absolute(dir).as_os_str().as_bytes().to_vec()));
    let can_not = |error: io::Error| can_not_write(path, &error);
    let (dir, name) = HeldDir::of_entry(path).map_err(can_not)?;
    let header = TraceHeader {
        wmlrun: VERSION.to_owned(),
        recorder: "strace".to_owned(),
        kernel: "an unknown kernel".to_owned(),
        under: scope.under().iter().map(|dir| String::from_utf8_lossy(dir).into_owned()).collect(),
        ..TraceHeader::default()
    };
    let mut writer =
        TraceWriter::new(Box::new(dir.create_private(&name).map_err(can_not)?), header).map_err(can_not)?;
    let mut partly_known = PartlyKnown::default();
    let found = import_strace(BufReader::new(input), scope, |event, paths| {
        if let TraceEvent::Call(call) = event {
            partly_known.add(call);
        }
        writer.event(event, paths)
    });
    let found = found.map_err(|error| {
        let _ = dir.remove_file(&name);
        Failure::wrong(format!("{}: {}", file.display(), error.message), error.help)
    })?;
    let lost = [
        ("unreadable name", found.unreadable),
        ("call without its end or beginning", found.unfinished),
        ("line that is cut off", found.cut),
    ];
    let mut not_seen = not_seen("page faults of mappings", partly_known.mappings(), 0);
    not_seen.extend((!found.has_times).then(|| "times".to_owned()));
    let end = TraceEnd {
        lost: counted(lost),
        not_seen,
        left_out: counted(found.left_out),
        ended: "imported".to_owned(),
        ..TraceEnd::default()
    };
    let end = writer.finish(end).map_err(can_not)?;
    notice(&format!("imported {}: {}", count(end.calls, "call"), path.display()));
    if !end.lost.is_empty() {
        report_lost(&end);
    }
    if end.calls == 0 {
        notice("note: none of its calls is on a file in the directories: `--under` takes a path as the text has it");
    }
    if found.foreign > 0 {
        notice(&format!("note: {} not understood", count(found.foreign, "line")));
    }
    Ok(0)
}

/// What a trace is that was given for something else, such as a script.
pub(super) fn no_other(name: &str, wanted: &str) -> Failure {
    Failure::wrong(format!("{name} is a trace, not a {wanted}"), format!("`wmlrun trace show {name}` shows it"))
}

/// True if a file is a trace.
pub(super) fn is_trace(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = handle::open_regular_file(path);
    file.is_ok_and(|file| file.take(6).read_to_end(&mut head).is_ok()) && head == TRACE_MARK[..6]
}

/// Compares two traces. `None` if the sides are something else. Returns the exit status.
pub(super) fn compare(args: &CompareArgs) -> Result<Option<u8>, Failure> {
    let (a, Some(b)) = (args.a.as_path(), args.b.as_deref()) else { return Ok(None) };
    match [a, b].map(is_trace) {
        [false, false] => return Ok(None),
        [true, true] => {}
        [is_a, _] => {
            let text =
                format!("{} is a trace, and {} is none", if is_a { "A" } else { "B" }, if is_a { "B" } else { "A" });
            return Err(Failure::wrong(text, "compare traces with traces"));
        }
    }
    let format = args.of_traces()?;
    let sides = [summary(a)?, summary(b)?];
    let comparison = TraceComparison::of(&sides[0], &sides[1]);
    let names = [a, b].map(|path| path.display().to_string());
    let sheet = || comparison.sheet([&names[0], &names[1]]);
    if args.quiet {
        let answer = sheet().answer;
        print_lines(format!("{} {}", answer.result, answer.rest()).trim_end());
        return Ok(Some(0));
    }
    print_lines(format.write_either(|| comparison.document().json(), sheet).trim_end());
    Ok(Some(0))
}
