//! A loop as flowops, line by line.

use crate::action::{ActionTarget, ActionValues, CallAction};
use crate::model::{Loop, LoopBody};
use crate::parse::Symbols;
use crate::samples::{LeafSamples, SampledValues};
use crate::script::ScriptWriter;
use crate::semaphores::LoopSemaphore;
use crate::streams::{CallSymbol, NO_SLOT, bits};
use crate::tree::LoopNode;
use crate::values::{Drawn, OffsetPattern};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wml_text::count::at_most;
use wml_text::size;

/// The slots of files that stay open begin here.
const FIRST_LASTING: u16 = 101;
const LAST_SLOT: u16 = 128;
/// The most threads of which each has many files open.
const MOST_ROTATING: usize = 32;
/// Nanoseconds of a call's gap below which it is added to the next one. A sleep ends some 50 µs late, so that short ones are
/// made one.
const LEAST_COMPUTE: f64 = 5_000.0;
const LEAST_SLEEP: f64 = 200_000.0;
/// What is worth a flowop at the end of an iteration.
const LEAST_REST: (f64, f64) = (500.0, 20_000.0);
/// A run from the start of a file to its end, in this share of the runs, is the whole file.
const MOSTLY: f64 = 0.9;

/// A loop that is written.
pub(crate) struct LoopWriter<'a, 'b> {
    pub(crate) script: &'b mut ScriptWriter<'a>,
    pub(crate) one: &'b Loop,
    pub(crate) body: &'b LoopBody,
    /// Time of gaps that are too short, to be added to the next one: ran and slept, per iteration.
    pub(crate) carried: (f64, f64),
    /// True if no slot is used for a single file: `opennext` may have them all.
    pub(crate) rotates: bool,
}

impl LoopWriter<'_, '_> {
    /// The flowops of the body.
    pub(crate) fn lines(&mut self, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let body = self.body;
        match &body.tree.root {
            LoopNode::Seq(nodes) => {
                let (before, first) = nodes.split_at(first_node(body, &self.one.symbols, nodes, &self.script.opened));
                first.iter().chain(before).for_each(|node| self.node(node, name, "", &mut lines));
            }
            root => self.node(root, name, "", &mut lines),
        }
        self.put_times(LEAST_REST, &mut lines);
        lines
    }

    /// The sessions of a leaf: in place if there is one and it has no alternatives.
    fn session(&mut self, leaf: usize, name: &str, more: &str, lines: &mut Vec<String>) {
        let Some(body) = self.body.sessions.get(&leaf) else { return };
        let counts = Drawn::of(&self.body.leaves[leaf].counts.sorted());
        let carried = std::mem::take(&mut self.carried);
        let mut inner = LoopWriter { script: &mut *self.script, one: self.one, body, carried, rotates: false };
        let session = inner.lines(name);
        if counts == Drawn::Always(1) && more.is_empty() {
            lines.extend(session);
            return;
        }
        let set = self.script.set(self.one.symbols.get(self.body.tree.leaves[leaf]).set);
        let own = self.script.name(&format!("{}_session", set.name));
        self.script.define(&own, "", &session);
        self.use_of(&own, &counts, more, lines);
    }

    /// The use of a composite, so many times.
    fn use_of(&mut self, name: &str, counts: &Drawn, more: &str, lines: &mut Vec<String>) {
        let iters = self.script.value(counts, &format!("{name}_times"), |n| n.to_string());
        let iters = if iters == "1" { String::new() } else { format!(",iters={iters}") };
        lines.push(format!("flowop {name} name={name}_use{iters}{more}"));
    }

    fn is_session(&self, leaf: usize) -> bool {
        self.one.symbols.get(self.body.tree.leaves[leaf]).action == CallAction::Session
    }

    fn node(&mut self, node: &LoopNode, name: &str, more: &str, lines: &mut Vec<String>) {
        match node {
            LoopNode::Seq(nodes) if more.is_empty() => nodes.iter().for_each(|node| self.node(node, name, "", lines)),
            LoopNode::Seq(nodes) if nodes.is_empty() => {
                let own = self.script.name("nothing");
                lines.push(format!("flowop nothing name={own}{more}"));
            }
            LoopNode::Leaf(leaf) if self.is_session(*leaf) => self.session(*leaf, name, more, lines),
            LoopNode::Leaf(leaf) => {
                let mut inner = Vec::new();
                self.call(*leaf, name, &mut inner);
                match inner.as_slice() {
                    _ if more.is_empty() => lines.extend(inner),
                    [] => self.node(&LoopNode::Seq(Vec::new()), name, more, lines),
                    [only] => lines.push(format!("{only}{more}")),
                    // Time before a call that is an alternative belongs to it.
                    _ => self.wrapped(name, "", more, &inner, lines),
                }
            }
            LoopNode::Seq(nodes) => {
                let mut inner = Vec::new();
                nodes.iter().for_each(|node| self.node(node, name, "", &mut inner));
                self.wrapped(name, "", more, &inner, lines);
            }
            LoopNode::Repeat(leaves, counter) => {
                let mut inner = Vec::new();
                for leaf in leaves {
                    if self.is_session(*leaf) {
                        self.session(*leaf, name, "", &mut inner);
                        continue;
                    }
                    self.call(*leaf, name, &mut inner);
                }
                let counts: &SampledValues = &self.body.counters[*counter];
                let own = self.script.name(&format!("{name}_block"));
                self.script.define(&own, "", &inner);
                self.use_of(&own, &Drawn::of(&counts.sorted()), more, lines);
            }
            LoopNode::Choice(all) => {
                let total: f64 = all.iter().map(|(weight, _)| weight).sum();
                let mut inner = Vec::new();
                self.script.alternatives += 1;
                for (weight, node) in all {
                    let weight_text = format!(",weight={}", at_most(weight * 100.0 / total, 2));
                    let kept = std::mem::take(&mut self.carried);
                    self.node(node, name, &weight_text, &mut inner);
                    // What an alternative leaves comes as often as it does.
                    let share = weight / total;
                    self.carried = (kept.0 + share * self.carried.0, kept.1 + share * self.carried.1);
                }
                self.script.alternatives -= 1;
                // Their time is kept for the next call.
                if inner.iter().all(|line| line.starts_with("flowop nothing ")) {
                    return self.node(&LoopNode::Seq(Vec::new()), name, more, lines);
                }
                self.wrapped(name, ",mix", more, &inner, lines);
            }
        }
    }

    /// Defines a composite of these lines, and uses it.
    fn wrapped(&mut self, name: &str, how: &str, more: &str, inner: &[String], lines: &mut Vec<String>) {
        let own = self.script.name(&format!("{name}_{}", if how.is_empty() { "part" } else { "choice" }));
        self.script.define(&own, how, inner);
        lines.push(format!("flowop {own} name={own}_use{more}"));
    }

    /// A call with the time before it.
    fn call(&mut self, leaf: usize, name: &str, lines: &mut Vec<String>) {
        let symbol = self.one.symbols.get(self.body.tree.leaves[leaf]);
        if symbol.action == CallAction::Await {
            let own = |semaphore: &LoopSemaphore| semaphore.in_place(symbol.to);
            lines.extend(self.script.semaphores.iter().find_map(own));
            return;
        }
        let samples = &self.body.leaves[leaf];
        let runs = samples.runs.max(1) as f64;
        if symbol.action == CallAction::Commit {
            self.carried.0 += samples.running as f64 / runs;
            self.carried.1 += samples.asleep as f64 / runs;
            self.put_times((LEAST_COMPUTE, LEAST_SLEEP), lines);
            self.commit(&samples.calls_of_runs(), lines);
            return;
        }
        // The script's calls have the cost of the recorder and of an operation between them too.
        self.carried.0 += (samples.running as f64 - self.script.between * samples.steps as f64) / runs;
        let rare = samples.rare_sleep();
        self.carried.1 += samples.asleep as f64 / runs - rare.map_or(0.0, |(share, sleep)| share * sleep);
        self.put_times((LEAST_COMPUTE, LEAST_SLEEP), lines);
        if let Some(rare) = rare {
            self.rare_sleep(rare, name, lines);
        }
        // Reads that all find the end of the file are no others.
        if samples.calls > 0 || samples.ends == 0 {
            let line = self.flowop(leaf);
            lines.extend(self.opener(leaf));
            lines.push(line);
        }
        self.end_of_file(leaf, name, lines);
    }

    /// What one thread does for all that wait meanwhile.
    fn commit(&mut self, counts: &Drawn, lines: &mut Vec<String>) {
        let Some(commit) = &self.one.commit else { return };
        let name = self.script.name("commit");
        // Who syncs has opened what it writes; who is covered opens nothing.
        let (opened, alternatives) = (self.script.opened.clone(), std::mem::take(&mut self.script.alternatives));
        let carried = std::mem::take(&mut self.carried);
        let (script, body) = (&mut *self.script, &commit.body);
        let mut inner = LoopWriter { script, one: self.one, body, carried, rotates: false };
        let mut done = Vec::new();
        inner.node(&body.tree.root, &name, "", &mut done);
        self.carried = inner.carried;
        (self.script.opened, self.script.alternatives) = (opened, alternatives);
        self.script.define(&name, ",group", &done);
        self.use_of(&name, counts, "", lines);
    }

    /// A call that opens the file which stays open, where the first one would not.
    fn opener(&mut self, leaf: usize) -> Option<String> {
        let symbol = self.one.symbols.get(self.body.tree.leaves[leaf]);
        if symbol.slot != NO_SLOT || symbol.action.row().names != ActionTarget::Slot {
            return None;
        }
        let is_sync = matches!(symbol.action, CallAction::Fsync | CallAction::Fdatasync);
        let is_needed = is_sync && !self.script.opened.contains(&symbol.set);
        let opens = is_needed || !is_sync && symbol.action != CallAction::StatOpen;
        if opens && self.script.alternatives == 0 {
            self.script.opened.insert(symbol.set);
        }
        is_needed.then(|| {
            let name = self.script.name("lseek");
            format!("flowop lseek name={name}{},whence=cur", self.file(symbol))
        })
    }

    /// Time as `compute` and `delay`, unless it is too short: then it is kept for the next call.
    fn put_times(&mut self, (least_compute, least_sleep): (f64, f64), lines: &mut Vec<String>) {
        if self.carried.0 >= least_compute {
            let name = self.script.name("compute");
            lines.push(format!("flowop compute name={name},value={}", at_most(self.carried.0 / 1e9, 7)));
            self.carried.0 = 0.0;
        }
        if self.carried.1 >= least_sleep {
            let name = self.script.name("delay");
            lines.push(format!("flowop delay name={name},value={}", at_most(self.carried.1 / 1e9, 6)));
            self.carried.1 = 0.0;
        }
    }

    /// A sleep that some iterations have: a share of them, and its nanoseconds.
    fn rare_sleep(&mut self, (share, sleep): (f64, f64), name: &str, lines: &mut Vec<String>) {
        let (delay, nothing) = (self.script.name("delay"), self.script.name("nothing"));
        let (sleep, weight, rest) =
            (at_most(sleep / 1e9, 6), at_most(share * 100.0, 2), at_most(100.0 - share * 100.0, 2));
        let inner = vec![
            format!("flowop delay name={delay},value={sleep},weight={weight}"),
            format!("flowop nothing name={nothing},weight={rest}"),
        ];
        self.wrapped(name, ",mix", "", &inner, lines);
    }

    /// The read that finds the end of the file, where there mostly is one.
    fn end_of_file(&mut self, leaf: usize, name: &str, lines: &mut Vec<String>) {
        let samples = &self.body.leaves[leaf];
        let share = samples.ends as f64 / samples.runs.max(1) as f64;
        let symbol = self.one.symbols.get(self.body.tree.leaves[leaf]);
        if share < 0.02 || symbol.action != CallAction::Read {
            return;
        }
        let iosize = samples.bytes.sorted().last().copied().unwrap_or(samples.most_at_end).max(1);
        let iosize = size::in_script(iosize);
        let own = self.script.name("readend");
        let line = format!("flowop read name={own}{},iosize={iosize},at=1t", self.file(symbol));
        if share > 0.98 {
            lines.push(line);
            return;
        }
        let nothing = self.script.name("nothing");
        let inner = vec![
            format!("{line},weight={}", at_most(share * 100.0, 1)),
            format!("flowop nothing name={nothing},weight={}", at_most(100.0 - share * 100.0, 1)),
        ];
        self.wrapped(name, ",mix", "", &inner, lines);
    }

    fn flowop(&mut self, leaf: usize) -> String {
        let symbol = self.one.symbols.get(self.body.tree.leaves[leaf]);
        let samples = &self.body.leaves[leaf];
        let row = symbol.action.row();
        let is_whole = symbol.slot != NO_SLOT && samples.whole as f64 >= MOSTLY * samples.runs as f64;
        let counts = samples.calls_of_runs();
        let (flowop, extra) = match symbol.action {
            // One call reads such a file.
            CallAction::Read if is_whole && counts != Drawn::Always(1) => ("readwholefile", ""),
            // A file that is made again and again has another size each time.
            CallAction::Write if is_whole && !self.script.set(symbol.set).is_single && counts != Drawn::Always(1) => {
                ("writewholefile", "exact")
            }
            // Before the first call that opens it, it is looked at by its name.
            CallAction::StatOpen if symbol.slot == NO_SLOT => (row.flowop, ""),
            _ => (row.flowop, row.more),
        };
        let name = self.script.name(flowop);
        if symbol.action == CallAction::Rename && samples.share(bits::OVER) > 0.5 {
            self.script.replaced.insert(symbol.to);
        }
        let mut attributes = self.file(symbol);
        let is_open = matches!(symbol.action, CallAction::OpenFile | CallAction::CreateFile);
        let is_lasting =
            row.names == ActionTarget::Slot && symbol.slot == NO_SLOT && row.values == ActionValues::Transfer;
        if is_open || is_lasting {
            let asks = |bit| samples.share(bit) > 0.5;
            attributes.push_str(if asks(bits::DIRECT) { ",directio" } else { "" });
            attributes.push_str(if asks(bits::SYNC) { ",dsync" } else { "" });
        }
        let mut flowop = flowop.to_owned();
        if flowop.ends_with("wholefile") {
            let largest = samples.bytes.sorted().last().copied().unwrap_or(0).max(1);
            let _ = write!(attributes, ",iosize={}", size::in_script(largest));
        } else {
            self.values(symbol, samples, &name, &mut flowop, &mut attributes);
            let iters = self.script.value(&counts, &format!("{name}_times"), |n| n.to_string());
            if iters != "1" {
                let _ = write!(attributes, ",iters={iters}");
            }
        }
        if !extra.is_empty() {
            let _ = write!(attributes, ",{extra}");
        }
        format!("flowop {flowop} name={name}{attributes}")
    }

    /// The file set and the slot.
    fn file(&mut self, symbol: CallSymbol) -> String {
        let set = self.script.set(symbol.set);
        let is_dir = matches!(symbol.action, CallAction::MakeDir | CallAction::MakeExistingDir | CallAction::RemoveDir);
        if is_dir {
            self.script.with_dirs.insert(symbol.set);
            return format!(",filesetname={}_dirs", set.name);
        }
        // No call that opens a file may find a link.
        if symbol.action == CallAction::SymLink {
            self.script.with_links.insert(symbol.set);
            return format!(",filesetname={}_links", set.name);
        }
        self.script.used.insert(symbol.set);
        let mut text = format!(",filesetname={}", set.name);
        if matches!(symbol.action, CallAction::CloseDir) {
            text.clear();
        }
        if symbol.action == CallAction::ListDir && symbol.slot != NO_SLOT {
            text.clear();
        }
        let is_over = symbol.action == CallAction::Rename && self.script.replaced.contains(&symbol.to);
        // Another file of the set is replaced: any of them.
        let is_any = is_over && symbol.to == symbol.set;
        if symbol.slot != NO_SLOT && !is_any {
            let _ = write!(text, ",fd={}", symbol.slot);
        } else if symbol.action.row().names == ActionTarget::Slot {
            // `opennext` opens 128 files in each thread.
            let is_too_much = self.one.instances > MOST_ROTATING;
            match set.is_single || !self.rotates || !set.has_many_open || is_too_much {
                true => {
                    let next = FIRST_LASTING + self.script.lasting.len() as u16;
                    let slot = *self.script.lasting.entry(symbol.set).or_insert(next);
                    // Without a slot of its own it has that of its set.
                    if slot <= LAST_SLOT {
                        let _ = write!(text, ",fd={slot}");
                    }
                }
                false => text.push_str(",opennext"),
            }
        }
        if symbol.action == CallAction::CopyRange {
            let _ = write!(text, ",srcfd={}", symbol.to);
        }
        if symbol.action == CallAction::Rename && symbol.to != symbol.set {
            self.script.used.insert(symbol.to);
            let _ = write!(text, ",toset={}", self.script.set(symbol.to).name);
        }
        text.push_str(if is_over { ",over" } else { "" });
        text
    }

    /// Sizes and offsets.
    fn values(
        &mut self,
        symbol: CallSymbol,
        samples: &LeafSamples,
        name: &str,
        flowop: &mut String,
        attributes: &mut String,
    ) {
        let mean = samples.moved as f64 / samples.calls.max(1) as f64;
        let bytes = Drawn::of(&samples.bytes.sorted()).with_mean(mean);
        let offsets =
            OffsetPattern::of(samples.share(bits::NEXT), samples.share(bits::APPEND), &samples.offsets.sorted());
        match symbol.action.row().values {
            ActionValues::No => {}
            ActionValues::Size | ActionValues::Position => {
                let drawn = match symbol.action {
                    CallAction::SeekSet => Drawn::of(&samples.offsets.sorted()),
                    _ => bytes,
                };
                let value = self.script.value(&drawn, &format!("{name}_value"), |n| n.to_string());
                let _ = write!(attributes, ",value={value}");
            }
            // The range of a lock is not in a trace.
            ActionValues::Range
                if symbol.action.row().flowop.ends_with("lock") || symbol.action == CallAction::GetLock =>
            {
                attributes.push_str(",iosize=1,at=0");
            }
            ActionValues::Range => {
                if !matches!(bytes, Drawn::Always(0)) {
                    let value = self.script.value(&bytes, &format!("{name}_size"), size::in_script);
                    let _ = write!(attributes, ",iosize={value}");
                }
            }
            ActionValues::Transfer => {
                let bytes = match bytes {
                    Drawn::Always(n) => Drawn::Always(n.max(1)),
                    table @ Drawn::Table(_) => table,
                };
                let value = self.script.value(&bytes, &format!("{name}_size"), size::in_script);
                let _ = write!(attributes, ",iosize={value}");
                let is_one = samples.calls_of_runs() == Drawn::Always(1);
                match offsets {
                    _ if !samples.has_offsets() => {}
                    // Without a look at the size of the file.
                    OffsetPattern::Sequential if is_one && samples.share(bits::START) > MOSTLY => {
                        attributes.push_str(",at=0");
                    }
                    OffsetPattern::Append if symbol.action == CallAction::Write => {
                        *flowop = "appendfile".to_owned();
                        attributes.push_str(",onecall");
                    }
                    OffsetPattern::Append | OffsetPattern::Sequential => {
                        // A log that is written again from its start.
                        let set = self.script.set(symbol.set);
                        let most = set.sizes.iter().copied().max().unwrap_or(0);
                        let passes = samples.moved as f64 / most.max(1) as f64;
                        let again = symbol.slot == NO_SLOT && passes > 2.0 && set.starts as f64 >= 0.5 * passes;
                        if again && set.is_single && most > 0 && symbol.action == CallAction::Write {
                            let wrap = self.script.scaled(most, &format!("{name}_wrap"));
                            let _ = write!(attributes, ",wrap={wrap}");
                        }
                    }
                    OffsetPattern::At(drawn) => {
                        let value = self.script.value(&drawn, &format!("{name}_at"), size::in_script);
                        let _ = write!(attributes, ",at={value}");
                    }
                    OffsetPattern::Random { end, align } => {
                        let set = self.script.set(symbol.set);
                        let all = set.sizes.iter().copied().max().unwrap_or(0);
                        attributes.push_str(",random");
                        // In a smaller file the call is shorter.
                        let least = set.sizes.iter().copied().min().unwrap_or(0);
                        let longest = samples.bytes.sorted().last().copied().unwrap_or(0);
                        attributes.push_str(if least.min(end) < longest { ",partial" } else { "" });
                        if !matches!(bytes, Drawn::Always(n) if n == align) {
                            let _ = write!(attributes, ",align={}", size::in_script(align));
                        }
                        if end < all / 10 * 9 {
                            let end = self.script.scaled(end, &format!("{name}_workingset"));
                            let _ = write!(attributes, ",workingset={end}");
                        }
                    }
                    OffsetPattern::Hot { end, align, theta } => {
                        let variable = format!("{name}_at");
                        let items = format!("{variable}_items");
                        let _ = writeln!(self.script.variables, "set ${items}={} * $scale", end / align);
                        let theta = at_most(theta, 2);
                        let _ = writeln!(
                            self.script.variables,
                            "set ${variable}=randvar(type=zipf,items=${items},unit={align},theta={theta},scramble=true)"
                        );
                        let _ = write!(attributes, ",at=${variable}");
                    }
                }
            }
        }
    }
}

/// The part with which an iteration begins, where nothing is open in a slot: with another one, more syncs would need a call
/// that opens their file.
fn first_node(body: &LoopBody, symbols: &Symbols, nodes: &[LoopNode], opened: &BTreeSet<u16>) -> usize {
    let mut halts = body.tree.leaves.iter().map(|leaf| symbols.get(*leaf).action.is_halt());
    if halts.any(|is_halt| is_halt) {
        return 0;
    }
    let mut open = 0;
    let needed = |first: usize| {
        let mut seen = SyncOpeners { symbols, opened: opened.clone(), needed: 0 };
        nodes[first..].iter().chain(&nodes[..first]).for_each(|node| seen.add(body, node, true));
        seen.needed
    };
    let mut best = (needed(0), 0);
    for (n, node) in nodes.iter().enumerate().skip(1) {
        open += opens(body, symbols, &nodes[n - 1]);
        let is_better = || matches!(node, LoopNode::Leaf(_) | LoopNode::Repeat(..)) && needed(n) < best.0;
        if best.0 > 0 && open == 0 && is_better() {
            best = (needed(n), n);
        }
    }
    best.1
}

/// How many more slots are open behind a part than before it.
fn opens(body: &LoopBody, symbols: &Symbols, node: &LoopNode) -> i32 {
    let leaf = |n: &usize| {
        let symbol = symbols.get(body.tree.leaves[*n]);
        match symbol.action {
            CallAction::CloseFile | CallAction::CloseDir => -1,
            action => i32::from(action.opens() && symbol.slot != NO_SLOT),
        }
    };
    match node {
        LoopNode::Leaf(n) => leaf(n),
        LoopNode::Repeat(leaves, _) => leaves.iter().map(leaf).sum(),
        LoopNode::Seq(nodes) => nodes.iter().map(|node| opens(body, symbols, node)).sum(),
        // All leave the same open.
        LoopNode::Choice(all) => all.first().map_or(0, |(_, node)| opens(body, symbols, node)),
    }
}

/// Counts the syncs of files that may not be open yet.
struct SyncOpeners<'a> {
    symbols: &'a Symbols,
    opened: BTreeSet<u16>,
    needed: usize,
}

impl SyncOpeners<'_> {
    /// `is_sure`: no alternative.
    fn add(&mut self, body: &LoopBody, node: &LoopNode, is_sure: bool) {
        match node {
            LoopNode::Leaf(n) => self.add_leaf(body, *n, is_sure),
            LoopNode::Repeat(leaves, _) => leaves.iter().for_each(|n| self.add_leaf(body, *n, is_sure)),
            LoopNode::Seq(nodes) => nodes.iter().for_each(|node| self.add(body, node, is_sure)),
            LoopNode::Choice(all) => all.iter().for_each(|(_, node)| self.add(body, node, false)),
        }
    }

    fn add_leaf(&mut self, body: &LoopBody, leaf: usize, is_sure: bool) {
        if let Some(session) = body.sessions.get(&leaf) {
            return self.add(session, &session.tree.root, is_sure);
        }
        let symbol = self.symbols.get(body.tree.leaves[leaf]);
        if symbol.slot != NO_SLOT || symbol.action.row().names != ActionTarget::Slot {
            return;
        }
        let is_sync = matches!(symbol.action, CallAction::Fsync | CallAction::Fdatasync);
        self.needed += usize::from(is_sync && !self.opened.contains(&symbol.set));
        if is_sure && symbol.action != CallAction::StatOpen {
            self.opened.insert(symbol.set);
        }
    }
}
