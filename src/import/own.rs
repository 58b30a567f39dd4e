//! Reads results of wmlrun. Each run of a document is an observation.
//!
//! The runs are read one after another, because a document may have many of them.

use super::run_figures::run_figures;
use super::{MAX_OBSERVATIONS, Observation, TOO_MANY, numbered};
use crate::report::metrics::{LATENCY, RESPONSE, TRANSACTIONS, of_flowops, of_whole_run, rates};
use crate::report::names::{script_name, workload};
use crate::result::environment::MountInfo;
use crate::result::hdr::{self, Quantiles};
use crate::result::snapshot::Dist;
use crate::result::warnings::{self, Warning};
use crate::result::{
    Document, FilesetResult, FlowopResult, Latency, Percentile, PercentilePlace, Run, RunState, SCHEMA,
};
use crate::util::batch_files::BATCH_SCRIPT;
use crate::util::bounded::{self, Budget, Within};
use crate::util::hash::sha256;
use crate::util::timestamp::seconds_of;
use crate::util::{duration, json};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// The maximum number of entries in a document, in all runs together. See [`Budget`].
const MAX_ENTRIES: u64 = 1 << 20;

/// The maximum number of entries in the time series of a run. It is not kept, so it has a limit of its own, which the
/// longest text does not exceed with complete intervals.
const MAX_SERIES_ENTRIES: u64 = 16 << 20;

/// The schema of a document and the number of its runs.
#[derive(Deserialize)]
struct Outline {
    schema: Option<String>,
    #[serde(default)]
    runs: RunCount,
}

/// The number of elements in a list.
#[derive(Default)]
struct RunCount(usize);

impl<'de> Deserialize<'de> for RunCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RunCounter;
        impl<'de> Visitor<'de> for RunCounter {
            type Value = RunCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of runs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<RunCount, A::Error> {
                let mut n = 0;
                while runs.next_element::<IgnoredAny>()?.is_some() {
                    n += 1;
                }
                Ok(RunCount(n))
            }
        }
        deserializer.deserialize_seq(RunCounter)
    }
}

/// True if a text is a document without a run: wmlrun refused the run before it began.
pub(super) fn is_of_refused_run(text: &str) -> bool {
    serde_json::from_str::<Outline>(text)
        .is_ok_and(|outline| outline.schema.as_deref() == Some(SCHEMA) && outline.runs.0 == 0)
}

/// Reads all runs of a document. Returns an error when the text is not a document, when the document has no run, or
/// when it is too large.
pub(super) fn observations(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    let outline: Outline = serde_json::from_str(text).map_err(|e| json::reason(&e))?;
    match outline.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(_) => return Err(format!("its schema is not `{SCHEMA}`")),
        None => return Err("it is JSON of neither wmlrun nor fio".to_owned()),
    }
    let all = outline.runs.0;
    if all == 0 {
        return Err("it has no run".to_owned());
    }
    if all > MAX_OBSERVATIONS {
        return Err(TOO_MANY.to_owned());
    }
    let budget = Budget::new(MAX_ENTRIES).without("runs");
    let document: Document = bounded::from_str(text, &budget).map_err(|e| budget.reason(&e))?;
    if let Some(why) = document.too_long_annotation() {
        return Err(why.to_owned());
    }
    let mut found = Vec::new();
    let mut each = |run: &Run| {
        let observation = of_run(&document, run, &numbered(source, found.len(), all));
        found.push(observation);
    };
    let budget = Budget::new(MAX_ENTRIES).with_separate("intervals", MAX_SERIES_ENTRIES);
    let runs = EachRun { budget: &budget, each: &mut each };
    (&mut serde_json::Deserializer::from_str(text)).deserialize_map(runs).map_err(|e| budget.reason(&e))?;
    Ok(found)
}

/// A visitor that calls a function for each run of a document.
struct EachRun<'a> {
    budget: &'a Budget,
    each: &'a mut dyn FnMut(&Run),
}

impl<'de> Visitor<'de> for EachRun<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result with a list of runs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key::<String>()? {
            if key == "runs" {
                document.next_value_seed(EachRun { budget: self.budget, each: &mut *self.each })?;
            } else {
                document.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<(), A::Error> {
        while let Some(run) = runs.next_element_seed(Within::<Run>::of(self.budget))? {
            (self.each)(&run);
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for EachRun<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

/// Converts a run of a document to an observation.
pub(crate) fn of_run(document: &Document, run: &Run, source: &str) -> Observation {
    let mut figures = BTreeMap::new();
    let summary = &run.summary;
    add(&mut figures, "", (summary.ops_per_s, summary.mib_per_s), &summary.latency_ns);
    figures.extend(run_figures(run).chain(of_whole_run(run).map(|(name, value)| (name.to_owned(), value))));
    let transactions: Vec<&FlowopResult> = run.flowops.iter().filter(|flowop| flowop.transaction).collect();
    let of_transactions = times(&transactions, |f| Some((f.latency_ns, &f.histogram)));
    add_times(&mut figures, &format!("{TRANSACTIONS}.{LATENCY}"), &of_transactions.latency);
    let mut operations =
        BTreeMap::from([(String::new(), summary.ops as f64), (format!("{TRANSACTIONS}."), of_transactions.operations)]);
    // A row of `measure=` consists of operations that count themselves.
    let io: Vec<&FlowopResult> = run.flowops.iter().filter(|f| f.class.is_io()).collect();
    let mut responses = vec![(RESPONSE.to_owned(), times(&io, response))];
    let mut names: BTreeMap<String, Vec<&FlowopResult>> = BTreeMap::new();
    for flowop in &run.flowops {
        // A thread may have several flowops of one name too.
        let whole = format!("{}/{}/{}.", flowop.process, flowop.thread, flowop.name);
        names.entry(whole).or_default().push(flowop);
        names.entry(format!("{}.", flowop.name)).or_default().push(flowop);
    }
    for (before, flowops) in names {
        let all = times(&flowops, |f| Some((f.latency_ns, &f.histogram)));
        add(&mut figures, &before, rates(run, &flowops), &all.latency);
        responses.push((format!("{before}{RESPONSE}"), times(&flowops, response)));
        figures.extend(of_flowops(&flowops).map(|(kind, value)| (format!("{before}{kind}"), value)));
        operations.insert(before, all.operations);
    }
    for (before, times) in responses.into_iter().filter(|(_, times)| times.operations > 0.0) {
        add_times(&mut figures, &before, &times.latency);
        operations.insert(before, times.operations);
    }
    let warnings = warnings::of(document, run);
    let disturbed = warnings.iter().any(Warning::is_about_others);
    let unsteady = |warning: &Warning| matches!(warning, Warning::Unsteady { .. } | Warning::NotSteady { .. });
    // The user has chosen the length, unless the script ends by itself.
    let is_chosen = |warning: &Warning| match warning {
        Warning::ShortRun { .. } => run.requested_seconds.is_some(),
        warning => warning.is_about_length(),
    };
    let is_other = |warning: &&Warning| !unsteady(warning) && !warning.is_about_others() && !is_chosen(warning);
    let mut codes: Vec<String> = warnings.iter().filter(is_other).map(|warning| warning.code().to_owned()).collect();
    // Those that the run itself has noted.
    let is_noted = |code: &&str| warnings.iter().all(|warning| warning.code() != *code);
    codes.extend(run.warnings.iter().map(|note| note.code.as_str()).filter(is_noted).map(str::to_owned));
    Observation {
        workload: workload(document, run).unwrap_or_else(|| script_name(document)),
        source: source.to_owned(),
        machine: document.environment.uname.nodename.clone(),
        figures,
        steps: io.iter().map(|f| f.name.clone()).collect::<BTreeSet<String>>().into_iter().collect(),
        syncs: io.iter().filter(|f| f.kind.contains("sync")).map(|f| f.name.clone()).collect(),
        causes: causes(run),
        conditions: conditions(document, run),
        started: seconds_of(&run.started_at),
        disturbed,
        unsteady: warnings.iter().any(unsteady),
        warnings: codes,
        operations,
        file_is_complete: document.complete,
        is_replay: run.replay.is_some(),
        failure: (run.state != RunState::Complete).then(|| format!("{}: {}", run.state.name(), run.ended_by)),
        ..Observation::default()
    }
}

/// The times of operations of flowops together.
struct Times {
    operations: f64,
    latency: Latency,
}

/// Returns the response times of a flowop and their histogram, which only open loops have.
fn response(flowop: &FlowopResult) -> Option<(Latency, &str)> {
    Some((flowop.response_ns?, &flowop.response_histogram))
}

/// Returns the mean and the percentiles of the times that `of` takes from each flowop, with their histogram. Percentiles
/// of several flowops are those of the merged histograms, and absent if a histogram can't be read.
fn times<'a>(flowops: &[&'a FlowopResult], of: impl Fn(&'a FlowopResult) -> Option<(Latency, &'a str)>) -> Times {
    let all: Vec<_> =
        flowops.iter().filter_map(|f| of(f).map(|(latency, text)| (f.ops as f64, latency, text))).collect();
    let operations: f64 = all.iter().map(|(ops, ..)| ops).sum();
    if let [(_, latency, _)] = all[..] {
        return Times { operations, latency };
    }
    let mean = all.iter().map(|(ops, latency, _)| latency.mean.unwrap_or(0.0) * ops).sum::<f64>() / operations;
    let texts = all.iter().filter(|(ops, ..)| *ops > 0.0).map(|(.., text)| *text);
    let latency = Latency { mean: (operations > 0.0).then_some(mean), ..percentiles(texts) };
    Times { operations, latency }
}

/// Returns the percentiles of merged histograms. They are absent if a histogram can't be read.
fn percentiles<'a>(histograms: impl Iterator<Item = &'a str>) -> Latency {
    let mut merged = Dist::default();
    for text in histograms {
        let Ok(latency) = hdr::decode(text) else { return Latency::default() };
        merged.merge(&latency);
    }
    if merged.count == 0 {
        return Latency::default();
    }
    let quantiles = Quantiles::of(&merged);
    Latency::default().with_percentiles(|quantile| quantiles.at(quantile))
}

/// Adds the figures of a run or a flowop, under names with the prefix `before`.
fn add(figures: &mut BTreeMap<String, f64>, before: &str, (ops, mib): (f64, f64), latency: &Latency) {
    let mut put =
        |name: &str, value: Option<f64>| figures.extend(value.map(|value| (format!("{before}{name}"), value)));
    put("ops", Some(ops));
    put("mib", Some(mib));
    put("kib", Some(mib * 1024.0));
    add_times(figures, &format!("{before}{LATENCY}"), latency);
}

/// Adds the figures of times, under names with the prefix `before`.
fn add_times(figures: &mut BTreeMap<String, f64>, before: &str, latency: &Latency) {
    let mut put =
        |name: &str, value: Option<f64>| figures.extend(value.map(|value| (format!("{before}{name}"), value)));
    put("mean", latency.mean);
    let percentiles = Percentile::shown_in(PercentilePlace::Metrics).map(|of| (of.name, of.of(*latency)));
    for (name, value) in percentiles.chain([("max", latency.max)]) {
        put(name, value.map(|ns| ns as f64));
    }
}

/// The minimum number of implicit opens per operation that is a possible cause. Fewer are the opens at the start of a
/// run, whose number is fixed, so that their number per operation changes with the rate and is not a cause of the
/// change.
const MIN_OPENS_PER_OP: f64 = 0.001;

/// Returns a number per operation, of the operations of the threads in which it is not 0. The other threads do not
/// count, because their share of all operations changes with the speed of the file system.
fn per_own_op(run: &Run, number: impl Fn(&FlowopResult) -> u64) -> f64 {
    let mut threads: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    for flowop in &run.flowops {
        let (sum, ops) = threads.entry((&flowop.process, &flowop.thread)).or_default();
        *sum += number(flowop) as f64;
        *ops += if flowop.class.is_io() { flowop.ops as f64 } else { 0.0 };
    }
    let own = threads.into_values().filter(|(sum, ops)| *sum > 0.0 && *ops > 0.0);
    let (sum, ops) = own.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    if ops == 0.0 { 0.0 } else { sum / ops }
}

/// Returns the figures of a run that may explain a change of a metric. Bytes and times are per operation of the run.
fn causes(run: &Run) -> BTreeMap<&'static str, f64> {
    let ops = run.summary.ops as f64;
    let mut found = BTreeMap::new();
    if ops == 0.0 {
        return found;
    }
    let starved: f64 = run.flowops.iter().map(|f| f.starved_seconds * 1e9).sum();
    // Each instance opens its file once at the start.
    let opens = per_own_op(run, |f| f.implicit_opens.saturating_sub(f.instances));
    found.extend([
        ("errors_per_op", run.summary.errors as f64 / ops),
        ("syncs_per_op", per_own_op(run, |f| if f.kind.contains("sync") { f.ops } else { 0 })),
        ("implicit_opens_per_op", if opens < MIN_OPENS_PER_OP { 0.0 } else { opens }),
        ("starved_ns_per_op", starved / ops),
    ]);
    // File sets on the same device report the same bytes, so each pair of numbers counts once.
    let known = || run.filesets.iter().filter_map(|set| Some((set, set.device_bytes.as_ref()?)));
    let transferred: BTreeSet<(u64, u64)> = known().map(|(_, bytes)| (bytes.read, bytes.written)).collect();
    if !transferred.is_empty() {
        let read: f64 = transferred.iter().map(|(read, _)| *read as f64).sum();
        let written: f64 = transferred.iter().map(|(_, written)| *written as f64).sum();
        let asked: f64 = known().map(|(set, _)| set.asked_bytes.read as f64).sum();
        found.insert("device_read_bytes_per_op", read / ops);
        found.insert("device_written_bytes_per_op", written / ops);
        if asked > 0.0 {
            // Devices also read ahead and read metadata, so they may read more than was asked for.
            found.insert("hit_ratio", (1.0 - read / asked).max(0.0));
        }
    }
    let summary = &run.summary;
    found.extend(summary.cpu_us_per_op.map(|us| ("cpu_us_per_op", us)));
    found.extend(summary.system_cpu_us_per_op.map(|us| ("system_cpu_us_per_op", us)));
    // What is in memory explains nothing if no flowop transfers data by way of the page cache.
    let is_cached = |flowop: &FlowopResult| flowop.class.is_io() && !flowop.direct && (flowop.reads || flowop.writes);
    let resident: Vec<f64> = run.filesets.iter().filter_map(|set| set.resident_before).collect();
    if !resident.is_empty() && run.flowops.iter().any(is_cached) {
        found.insert("resident_before", resident.iter().sum::<f64>() / resident.len() as f64);
    }
    let late = run.flowops.iter().filter_map(|f| f.lateness_ns?.mean);
    found.extend(late.reduce(f64::max).map(|ns| ("lateness_ns", ns)));
    found
}

/// Returns the conditions of a run, by name.
fn conditions(document: &Document, run: &Run) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let environment = &document.environment;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut put = |name: &str, value: String| found.insert(name.to_owned(), value);
    put("script", script_digest(document));
    if !run.loaded_scripts.is_empty() {
        put(LOADED_SCRIPTS, shortened(&sha256(run.loaded_scripts.concat())));
    }
    put("dialect", document.script.dialect.clone());
    let tool = &document.tool;
    let commit = tool.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
    put("tool", format!("{} {}{commit}", tool.name, tool.version));
    put("kernel", format!("{} {}", environment.uname.release, environment.uname.version));
    put("processor", format!("{} × {}", environment.cpu.count, environment.cpu.model));
    // The kernel keeps a part of the memory for itself, which changes from one version to the next.
    put("memory", crate::util::size::format(two_digits(environment.memory.total)));
    put("engine", run.engine.clone());
    put("cache", run.cache_state.name().to_owned());
    put("run time", run.requested_seconds.map_or_else(|| "none".to_owned(), |s| format!("{s} s")));
    put("warm-up", warmup(document, run));
    // A run without earlier writes has nothing to wait for, so it has no such condition.
    if let Some(quiesced) = run.quiesced {
        put("quiesced", if quiesced { "yes" } else { "no" }.to_owned());
    }
    put("pinned", pinned(run));
    // A run in one process is its only rank.
    put("ranks", (run.ranks.len() + run.lost_ranks.len()).max(1).to_string());
    put("hosts", run.hosts.len().max(1).to_string());
    put("as-is", run.as_is.to_string());
    put("layout seed", document.layout_seed.to_string());
    let rules: BTreeSet<&str> = run.filesets.iter().filter_map(FilesetResult::prealloc_rule).collect();
    if !rules.is_empty() {
        put(PREALLOCATED, rules.into_iter().collect::<Vec<_>>().join(", "));
    }
    for (n, mount) in run.environment.mounts.iter().enumerate() {
        let n = if n == 0 { String::new() } else { format!(" {}", n + 1) };
        put(&format!("file system{n}"), mount.kind.clone());
        put(&format!("mount options{n}"), mount.options.clone());
        put(&format!("device{n}"), mount.source.clone());
        let identity = mount.devices.first().map(|device| device.identity.clone()).unwrap_or_default();
        if !identity.is_empty() {
            put(&format!("{DEVICE_IDENTITY}{n}"), identity);
        }
        let loops: Vec<bool> = mount.devices.iter().filter_map(|device| device.direct_io).collect();
        if !loops.is_empty() {
            let direct = loops.iter().all(|direct| *direct);
            put(&format!("{LOOP_DIRECT}{n}"), if direct { "yes" } else { "no" }.to_owned());
        }
        for (name, value) in settings(mount) {
            put(&format!("{name}{n}"), value);
        }
    }
    if let Some(energy) = &run.energy {
        put("energy of", energy.source.clone());
    }
    if let Some(line) = &environment.kernel_command_line {
        put(KERNEL_COMMAND_LINE, without_images(line));
    }
    for (name, text) in document.annotations() {
        put(name, text.to_owned());
    }
    // Results of earlier versions lack some limits, as do results without a limit.
    for (name, limit) in environment.limits.iter().filter_map(|(name, limit)| Some((name, (*limit)?))) {
        put(&format!("limit {name}"), limit.to_string());
    }
    for (name, value) in run.environment.other.iter().filter(|(name, _)| *name != "load") {
        put(name, text(value));
    }
    let dir = run.variables.get("dir").and_then(Value::as_str).unwrap_or_default();
    for (name, value) in &run.variables {
        let value = text(value);
        put(&format!("${name}"), if name == "dir" { value } else { below_dir(&value, dir) });
    }
    found
}

/// The condition with the parameters of the kernel.
pub(crate) const KERNEL_COMMAND_LINE: &str = "kernel command line";

/// The end of the name of a condition that lists the features of a file system. It begins with the type.
pub(crate) const FEATURES: &str = " features";

/// Returns the parameters of a kernel without those that name its files, which say no more than its version.
fn without_images(line: &str) -> String {
    let is_setting = |word: &&str| !["BOOT_IMAGE=", "initrd="].iter().any(|name| word.starts_with(name));
    line.split_whitespace().filter(is_setting).collect::<Vec<_>>().join(" ")
}

/// Returns the conditions that describe a file system and the queues of the devices below it. A file system of another
/// type has other ones, so that only what can be compared is compared. Devices of one level, such as the members of a RAID,
/// are described together; what is not known of one of them is not known of the level.
fn settings(mount: &MountInfo) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let kind = &mount.kind;
    let features = mount.features.iter().map(|features| (format!("{kind}{FEATURES}"), features.join(" ")));
    let parameters = mount.parameters.iter().map(|(name, value)| (format!("{kind} {name}"), text(value)));
    let mut found: Vec<(String, String)> = features.chain(parameters).collect();
    let mut levels: BTreeMap<u64, Vec<BTreeMap<&str, String>>> = BTreeMap::new();
    for device in &mount.devices {
        let mut known: BTreeMap<&str, String> =
            device.queue.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        known.extend(Some(("scheduler", device.scheduler.clone())).filter(|(_, name)| !name.is_empty()));
        known.extend(device.rotational.map(|it| ("rotational", if it { "yes" } else { "no" }.to_owned())));
        levels.entry(device.level.unwrap_or(0)).or_default().push(known);
    }
    // Results of earlier versions do not say on which level a device is.
    for (level, devices) in levels.into_iter().filter(|(level, _)| *level > 0) {
        let below = match level {
            1 => "queue".to_owned(),
            2 => "queue below".to_owned(),
            _ => format!("queue {} levels below", level - 1),
        };
        for name in devices[0].keys() {
            let values: Option<BTreeSet<&String>> = devices.iter().map(|known| known.get(name)).collect();
            let Some(values) = values else { continue };
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            found.push((format!("{below} {name}"), values.join(", ")));
        }
    }
    found
}

/// The condition with the digest of the texts that the script has loaded. Runs of scripts that load none lack it, and so do
/// older results.
pub(crate) const LOADED_SCRIPTS: &str = "loaded scripts";

/// The condition that says whether the loop devices of a file system bypass the cache of the file system below. File
/// systems on other devices lack it.
pub(crate) const LOOP_DIRECT: &str = "loop direct I/O";

/// The condition that says how the numbers of preallocated files were determined. Runs whose file sets exist as a whole, or
/// not at all, lack it.
pub(crate) const PREALLOCATED: &str = "preallocated files";

/// The condition that tells a device whatever its name is.
pub(crate) const DEVICE_IDENTITY: &str = "device identity";

/// The beginnings of the lines in which the scripts of workloads of one personality may differ. The variables and the run
/// time are conditions of their own, and the names of the files are no part of a workload.
const LINES_OF_WORKLOADS: [&str; 4] = ["set $", "sleep ", "stats dump ", "stats xmldump "];

/// Returns the beginning of a digest.
fn shortened(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Returns the beginning of the digest of a script. For a workload of a profile, the lines in which workloads may differ are
/// left out.
fn script_digest(document: &Document) -> String {
    let script = &document.script;
    if !Path::new(&script.path).ends_with(BATCH_SCRIPT) {
        return shortened(&script.sha256);
    }
    let varies = |line: &&str| LINES_OF_WORKLOADS.iter().any(|beginning| line.starts_with(beginning));
    shortened(&sha256(script.text.lines().filter(|line| !varies(line)).collect::<Vec<_>>().join("\n")))
}

/// Rounds a number of bytes to two significant digits in its unit: 15.6 GiB to 16 GiB.
fn two_digits(bytes: u64) -> u64 {
    let unit = 1_u64 << (bytes.checked_ilog2().unwrap_or(0) / 10 * 10);
    let step = match bytes / unit {
        0..10 => 0.1,
        10..100 => 1.0,
        _ => 10.0,
    };
    ((bytes as f64 / unit as f64 / step).round() * step * unit as f64) as u64
}

/// Replaces the directory `dir` at the start of the paths in a text by `$dir`: a variable such as `$logdir` is the same
/// in another directory.
fn below_dir(text: &str, dir: &str) -> String {
    let is_separator = |c: char| matches!(c, ' ' | ',' | ':' | ';');
    let path = |path: &str| match path.strip_prefix(dir) {
        Some(rest) if !dir.is_empty() && rest.chars().next().is_none_or(|c| c == '/' || is_separator(c)) => {
            format!("$dir{rest}")
        }
        _ => path.to_owned(),
    };
    text.split_inclusive(is_separator).map(path).collect()
}

/// Returns the processors to which the threads were bound.
fn pinned(run: &Run) -> String {
    let list = |cpus: &Vec<u64>| cpus.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    run.pinned_processors.as_ref().map_or_else(|| "no".to_owned(), list)
}

/// Returns the length of the warm-up: the one requested on the command line, else the measured one in whole seconds.
fn warmup(document: &Document, run: &Run) -> String {
    let Some(measured) = &run.warmup else { return "none".to_owned() };
    let words = &document.command_line;
    let requested = words.iter().enumerate().rev().find_map(|(n, word)| match word.strip_prefix("--warmup=") {
        None if word == "--warmup" => words.get(n + 1).map(String::as_str),
        value => value,
    });
    match requested.map(|text| (text, duration::parse(text))) {
        Some((_, Ok(length))) => duration::format(length),
        Some(("auto", Err(_))) => "auto".to_owned(),
        _ => format!("{:.0}s", measured.seconds),
    }
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
