//! The model as a script: file sets, values, composites, processes.

use crate::action::{ActionTarget, ActionValues};
use crate::chance::FileChanges;
use crate::lines::LoopWriter;
use crate::model::{LearnedModel, Loop, LoopBody};
use crate::semaphores::LoopSemaphore;
use crate::sets::{LearnedSet, LearnedSets};
use crate::streams::{CallSymbol, NO_SLOT};
use crate::values::{Drawn, sizes_of_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use wml_text::size;

/// Nanoseconds that an operation of a script takes beside its call, with the way into the kernel and out of it. Where the
/// recorder costs 430 ns a call, the calls of a script without `compute` are 600 to 700 ns apart.
const OWN_COST: f64 = 200.0;

/// The least bytes of writes by which files get their data, a page, and those without `fillsize`.
const LEAST_FILL: u64 = 4096;
const DEFAULT_FILL: u64 = 1 << 20;

/// The most bytes of a name that a comment shows.
const MOST_SHOWN: usize = 100;

/// Writes the script.
pub(crate) struct ScriptWriter<'a> {
    sets: &'a LearnedSets,
    names: BTreeMap<String, usize>,
    pub(crate) variables: String,
    /// Nanoseconds that are between two calls of a script too.
    pub(crate) between: f64,
    composites: String,
    /// Sets whose files are used, and those whose directories are made or removed.
    pub(crate) used: BTreeSet<u16>,
    pub(crate) with_dirs: BTreeSet<u16>,
    /// Sets of which renames replace files: they exist from the beginning.
    pub(crate) replaced: BTreeSet<u16>,
    /// Sets of which the thread that is written certainly has a file open, in a slot that stays open.
    pub(crate) opened: BTreeSet<u16>,
    /// The alternatives around what is written.
    pub(crate) alternatives: usize,
    changes: FileChanges,
    /// True if the script ends by itself.
    ends: bool,
    pub(crate) semaphores: Vec<LoopSemaphore>,
    /// Sets with symbolic links.
    pub(crate) with_links: BTreeSet<u16>,
    /// The slots of files that stay open.
    pub(crate) lasting: BTreeMap<u16, u16>,
}

impl<'a> ScriptWriter<'a> {
    pub(crate) fn new(sets: &'a LearnedSets, model: &LearnedModel, recorder_cost: Option<f64>) -> Self {
        let changes = FileChanges::of(&model.phases);
        let wanders = |n: &u16| changes.made.contains_key(n) && changes.removed.contains_key(n);
        // What comes and goes by chance is used up at some time.
        let ends = model.phases.len() > 1
            || sets.sets.iter().any(grows_or_shrinks)
            || changes.by_chance.iter().any(wanders)
            || sets.goes_once;
        Self {
            sets,
            between: recorder_cost.unwrap_or(0.0) + OWN_COST,
            names: BTreeMap::new(),
            variables: String::new(),
            composites: String::new(),
            used: BTreeSet::new(),
            with_dirs: BTreeSet::new(),
            replaced: BTreeSet::new(),
            opened: BTreeSet::new(),
            alternatives: 0,
            changes,
            ends,
            semaphores: LoopSemaphore::all(model),
            with_links: BTreeSet::new(),
            lasting: BTreeMap::new(),
        }
    }

    pub(crate) fn name(&mut self, wanted: &str) -> String {
        let n = self.names.entry(wanted.to_owned()).or_default();
        *n += 1;
        format!("{wanted}{n}")
    }

    pub(crate) fn set(&self, n: u16) -> &'a LearnedSet {
        &self.sets.sets[usize::from(n)]
    }

    /// A value: a constant, or the name of a variable that is set to a table.
    pub(crate) fn value(&mut self, drawn: &Drawn, variable: &str, text: impl Fn(u64) -> String) -> String {
        match drawn {
            Drawn::Always(value) => text(*value),
            Drawn::Table(rows) => {
                let least = rows.iter().map(|(_, low, _)| *low).min().unwrap_or(0);
                let cells =
                    rows.iter().map(|(percent, low, high)| format!("{{{percent},{},{}}}", text(*low), text(*high)));
                let cells = cells.collect::<Vec<_>>().join(",");
                let _ = writeln!(
                    self.variables,
                    "{}",
                    folded(&format!("set ${variable}=randvar(type=tabular,min={},randtable={{{cells}}})", text(least)))
                );
                format!("${variable}")
            }
        }
    }

    /// What the header says of loops that wait for each other. In a script that ends by itself a thread that is ready early
    /// would leave others waiting for ever; its loops have their numbers of iterations instead.
    pub(crate) fn about_waits(&mut self) -> Vec<String> {
        let all = match self.ends {
            true => std::mem::take(&mut self.semaphores),
            false => return self.semaphores.iter().map(LoopSemaphore::about).collect(),
        };
        let without = |one: LoopSemaphore| format!("{} Not in this script, which ends by itself.", one.about());
        all.into_iter().map(without).collect()
    }

    /// The lines of the script without its header, without those of its tables.
    pub(crate) fn lines(mut self, model: &LearnedModel) -> usize {
        self.about_waits();
        let script = self.write(model);
        let tables = ["=randvar(", "_file_sizes=\""];
        let is_table = |line: &str| line.starts_with("set $") && tables.iter().any(|table| line.contains(table));
        let mut in_table = false;
        let others = script.lines().filter(|line| {
            in_table = is_table(line) || in_table && line.starts_with(' ');
            !in_table
        });
        others.count()
    }

    /// The whole script but its header.
    pub(crate) fn write(mut self, model: &LearnedModel) -> String {
        let ends = self.ends;
        let costliest = model.costliest();
        let mut number_of_loop = 0;
        let mut processes = String::new();
        let mut settings = String::new();
        for (phase, loops) in model.phases.iter().enumerate() {
            let mut threads = String::new();
            let mut transaction = String::new();
            for one in loops {
                let is_first = Some(number_of_loop) == costliest;
                number_of_loop += 1;
                let name = self.name("loop");
                let clients = if is_first { "clients".to_owned() } else { format!("{name}_threads") };
                let _ = writeln!(settings, "set ${clients}={}", one.instances);
                let body = self.loop_body((number_of_loop, one), &name);
                let measure = if ends { format!(",measure={name}_all") } else { String::new() };
                let _ = writeln!(threads, "  thread name={name}_thread,instances=${clients}{measure} {{");
                if ends {
                    let each = (one.iterations as usize / one.threads.max(1)).max(1) * one.threads / one.instances;
                    // The rare part ends an iteration of the thread. The count is looked at before an iteration: it is of
                    // those that have ended.
                    let each = each / one.rare.as_ref().map_or(1, |(every, _)| *every as usize + 1);
                    let goes_on = FileChanges::grows(one) || self.sets.goes_once;
                    let files = if goes_on { " * $files" } else { "" };
                    let _ = writeln!(settings, "set ${name}_times={}{files}", each.max(1));
                    let _ = writeln!(
                        threads,
                        "    flowop finishoncount name={name}_end,target={name}_all,value=${name}_times"
                    );
                }
                threads.push_str(&body);
                threads.push_str("  }\n");
                if is_first && !self.sets.goes_once {
                    transaction = format!(",transaction={name}");
                }
            }
            let number = if ends { format!(",phase={}", phase + 1) } else { String::new() };
            let _ =
                write!(processes, "define process name=program{}{number}{transaction} {{\n{threads}}}\n\n", phase + 1);
        }
        let mode = if ends { "set mode quit alldone\n" } else { "" };
        let sets = self.file_sets(&mut settings);
        let variables = std::mem::take(&mut self.variables);
        let gap = if variables.is_empty() { "" } else { "\n" };
        let end = if ends { "run 3600" } else { "run 60" };
        let scales = ["files", "scale"].iter().filter(|name| {
            let factor = format!("${name}");
            [&settings, &variables, &sets].iter().any(|text| text.contains(&factor))
        });
        let scales = scales.fold(String::new(), |all, name| all + &format!("set ${name}=1\n"));
        format!("{mode}{scales}{settings}\n{variables}{gap}{sets}\n{}{processes}{end}\n", self.composites)
    }

    fn file_sets(&mut self, settings: &mut String) -> String {
        let mut text = String::new();
        for n in self.used.clone() {
            let set = self.set(n);
            let mut sizes = set.sizes.clone();
            sizes.sort_unstable();
            let _ = writeln!(text, "# {}", wml_text::printable::within(&set.what, MOST_SHOWN));
            if set.is_single && !self.changes.by_chance.contains(&n) {
                let exists = set.existing > 0 || self.replaced.contains(&n) || !self.changes.made.contains_key(&n);
                let exists = if exists { format!(",prealloc{}", fill(set)) } else { String::new() };
                let size = self.scaled(sizes.last().copied().unwrap_or(0), &format!("{}_size", set.name));
                let _ = writeln!(text, "define file name={},path=$dir,size={size}{exists}", set.name);
                continue;
            }
            let size = self.file_sizes(&sizes, set);
            let (entries, percent) = self.entries(n, set);
            let _ = writeln!(settings, "set ${}_files={entries} * $files", set.name);
            let width = if set.dirs <= 1 { 1_000_000 } else { (set.sizes.len() as u64 / set.dirs).max(1) };
            let fill = if percent > 0 { fill(set) } else { String::new() };
            let line = format!(
                "define fileset name={},path=$dir,entries=${}_files,{size},dirwidth={width},prealloc={percent}{fill}",
                set.name, set.name
            );
            let _ = writeln!(text, "{}", folded(&line));
        }
        for n in &self.with_links {
            let set = self.set(*n);
            let _ = writeln!(settings, "set ${}_links={} * $files", set.name, set.created + room(set.created));
            let name = &set.name;
            let _ = writeln!(text, "define fileset name={name}_links,path=$dir,entries=${name}_links,dirwidth=1000000");
        }
        for n in self.with_dirs.clone() {
            let set = self.set(n);
            let (all, percent) = self.directories(n, set);
            let _ = writeln!(settings, "set ${}_directories={all} * $files", set.name);
            let prealloc = if percent > 0 { format!(",prealloc={percent}") } else { String::new() };
            let _ = writeln!(
                text,
                "define fileset name={}_dirs,path=$dir,leafdirs=${}_directories,dirwidth=100{prealloc}",
                set.name, set.name
            );
        }
        text
    }

    /// The directories that are made or removed, and the per cent that exist at the beginning: enough for what is removed
    /// by chance before others are made.
    fn directories(&self, n: u16, set: &LearnedSet) -> (u64, u64) {
        let known = set.leafdirs + set.leafdirs_existing;
        let steps = if self.changes.dirs_by_chance.contains(&n) { room(known) } else { 0 };
        let of = |all: &BTreeMap<u16, u64>| all.get(&n).copied().unwrap_or(0);
        let (made, removed) = (of(&self.changes.dirs_made), of(&self.changes.dirs_removed));
        let ahead = if removed > 0 { removed.saturating_sub(made) + steps } else { 0 };
        let existing = set.leafdirs_existing.max(ahead);
        let free = made.max(known.saturating_sub(existing)) + steps;
        // The per cent are whole: more may exist, and as many have to be free.
        let all = (existing + free).max(1);
        let percent = (existing * 100).div_ceil(all);
        let all = if percent < 100 { all.max((free * 100).div_ceil(100 - percent)) } else { all };
        (all, percent)
    }

    /// The files of a set, and the per cent that exist at the beginning: enough for what is made and removed by chance.
    fn entries(&self, n: u16, set: &LearnedSet) -> (u64, u64) {
        let known = (set.sizes.len() as u64).max(1);
        let is_by_chance = self.changes.by_chance.contains(&n);
        let is_replaced = self.replaced.contains(&n);
        // What the loops do, which are not all of the trace.
        let steps = if is_by_chance { room(self.changes.all(n)) } else { 0 };
        let of = |all: &BTreeMap<u16, u64>| all.get(&n).copied().unwrap_or(0);
        let missing = of(&self.changes.missing);
        let existing = if missing + steps > 0 { set.existing.max(missing + steps) } else { set.existing };
        let known = known.max(existing + of(&self.changes.more) + steps);
        let percent = (existing * 100 / known).max(existing.min(1));
        match percent {
            _ if is_replaced && set.created == 0 => (known, 100),
            // Some are replaced, and others are made.
            0 | 1 if is_replaced => (known, 10),
            // Only directories are used, or names that are missing, or no loop makes them.
            0 if set.created == 0 || !self.changes.made.contains_key(&n) => (known, 100),
            // One file at least, for what looks at one before any is made.
            0 if known <= 200 => (known + 1, 100 / (known + 1) + 1),
            0 => (known, 0),
            1 => (known, 1),
            percent => (existing * 100 / percent, percent),
        }
    }

    /// The attribute with the sizes of a set's files.
    fn file_sizes(&mut self, sorted: &[u64], set: &LearnedSet) -> String {
        let rows = match Drawn::of(sorted) {
            Drawn::Always(size) => return format!("size={}", self.scaled(size, &format!("{}_size", set.name))),
            Drawn::Table(_) => sizes_of_files(sorted),
        };
        let rows = rows.iter().map(|(bytes, files)| {
            let bytes = size::in_script(*bytes);
            format!("{bytes}-{bytes}:{files}")
        });
        let name = format!("{}_file_sizes", set.name);
        let _ = writeln!(self.variables, "set ${name}=\"{}\"", rows.collect::<Vec<_>>().join(" "));
        format!("sizetable=${name},sizescale=$scale")
    }

    /// A number of bytes that the scale of the script multiplies: the variable that is set to it.
    pub(crate) fn scaled(&mut self, bytes: u64, variable: &str) -> String {
        if bytes == 0 {
            return "0".to_owned();
        }
        let _ = writeln!(self.variables, "set ${variable}={} * $scale", size::in_script(bytes));
        format!("${variable}")
    }

    /// The flowops of a thread.
    fn loop_body(&mut self, (number, one): (usize, &Loop), name: &str) -> String {
        self.opened.clear();
        let at_end = self.semaphores.iter().filter_map(|wait| wait.at_end(number)).collect();
        self.composite(one, &one.body, name, at_end);
        match &one.rare {
            None => format!("    flowop {name} name={name}\n"),
            Some((every, rare)) => {
                let rare_name = format!("{name}_rare");
                self.composite(one, rare, &rare_name, Vec::new());
                format!("    flowop {name} name={name},iters={every}\n    flowop {rare_name} name={rare_name}_use\n")
            }
        }
    }

    /// Defines the iteration of a loop, with further lines at its end.
    fn composite(&mut self, one: &Loop, body: &LoopBody, name: &str, at_end: Vec<String>) {
        // All calls are on open files of one set.
        let all = [Some(body), one.rare.as_ref().map(|(_, rare)| rare)];
        let leaves = all.into_iter().flatten().flat_map(|body| &body.tree.leaves);
        let symbols = leaves.map(|leaf| one.symbols.get(*leaf)).filter(|symbol| !symbol.action.is_halt());
        let symbols: Vec<CallSymbol> = symbols.collect();
        let rotates = symbols.iter().all(|symbol| {
            let row = symbol.action.row();
            let is_transfer = row.names == ActionTarget::Slot && row.values == ActionValues::Transfer;
            symbol.slot == NO_SLOT && is_transfer && symbol.set == symbols[0].set
        });
        let mut writer = LoopWriter { script: self, one, body, carried: (0.0, 0.0), rotates };
        let mut lines = writer.lines(name);
        lines.extend(at_end);
        self.define(name, "", &lines);
    }

    pub(crate) fn define(&mut self, name: &str, how: &str, lines: &[String]) {
        let _ = writeln!(self.composites, "define flowop name={name}{how} {{");
        for line in lines {
            let _ = writeln!(self.composites, "{}", folded(&format!("  {line}")));
        }
        self.composites.push_str("}\n\n");
    }
}

/// How far so many random steps lead away: of a thousand walks, one goes further.
fn room(steps: u64) -> u64 {
    4 + (3.5 * (steps as f64).sqrt()) as u64
}

/// True if files of a set are made, and few of them removed, or the other way round.
fn grows_or_shrinks(set: &LearnedSet) -> bool {
    let (more, less) = (set.created.max(set.removed), set.created.min(set.removed));
    !set.is_single && more >= 8 && more > 2 * less && more * 5 > set.sizes.len() as u64
}

/// The attribute by which files get their data in writes as long as those that change it: file systems keep it as it came.
/// On ext4, changing 4 KiB of a file that was filled by 1 MiB takes 5.3 µs for 2.3, and the sync of it 80 µs for 58.
fn fill(set: &LearnedSet) -> String {
    match set.rewrites {
        0 | DEFAULT_FILL.. => String::new(),
        bytes => format!(",fillsize={}", size::in_script(bytes.max(LEAST_FILL))),
    }
}

/// A line that is too long, in several.
fn folded(line: &str) -> String {
    let mut text = String::new();
    let indent = line.len() - line.trim_start().len();
    let mut rest = line;
    while rest.len() > 110 {
        let Some(at) = rest[..110].rfind(',').filter(|at| *at > indent + 8) else { break };
        text.push_str(&rest[..=at]);
        text.push('\n');
        text.push_str(&" ".repeat(indent + 4));
        rest = rest[at + 1..].trim_start();
    }
    text + rest
}
