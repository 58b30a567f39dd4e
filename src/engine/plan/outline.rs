//! Prints a plan as people think of it, for `wmlrun plan`: file sets, threads with their rates, what an iteration does with
//! the shares of its mixes, and what ends it. The compiled program is printed by `dump`.

use super::dump::{are_instances, directories, files, flags, rounded, totals};
use super::length::{endless, ends_thread_only};
use super::phases::{EndCause, definitions_of_phases, ends};
use super::{FlowopInfo, Pace, Plan, PlanStep, Process, Thread};
use crate::disk::Fileset;
use crate::flowop::{MEASURE, TRANSACTION};
use crate::random::Quantity;
use std::sync::Arc;
use std::time::Duration;
use wml_language::model::QuitMode;
use wml_text::count::{self, count, grouped};
use wml_text::{duration, printable, size, wrap};

/// Most characters of a step, which may quote a text of the script.
const STEP: usize = 60;

/// Most names of flowops in one sentence.
const NAMES: usize = 3;

/// Prints a plan in lines of at most `columns`. `lengths`: those of the runs that will be made, if they are known; `None`
/// is a run without a limit. `wrong`: what will refuse a run.
pub fn outline(
    plan: &Plan,
    sets: &[Arc<Fileset>],
    lengths: &[Option<Duration>],
    wrong: &[String],
    columns: usize,
) -> String {
    let mut out = OutlineLines { lines: Vec::new(), columns };
    sets.chunk_by(are_instances).for_each(|alike| out.sets(alike));
    let (ends, times) = (ends(plan), plan.phase_times());
    let definitions: Vec<(&Process, &Thread)> = plan.threads().collect();
    let of_phases = definitions_of_phases(plan);
    for (at, phase) in plan.phases.iter().enumerate() {
        if plan.phases.len() > 1 {
            let times = times[phase];
            let of = |text: &str, span: Option<Duration>| {
                span.map_or(String::new(), |span| format!(", {text} {}", time(span)))
            };
            let after = at.checked_sub(1).map_or(String::new(), |before| {
                format!(", when all threads of phase {} have ended", plan.phases[before])
            });
            let length = of("for", times.length);
            out.line(0, &format!("phase {phase}{length}{after}{}", of("not before", times.start)));
        }
        for definition in of_phases.get(phase).into_iter().flatten() {
            let (process, thread) = definitions[*definition];
            out.thread(plan, process, thread);
            out.own_end(plan, process, thread, ends[*definition], &definitions);
        }
    }
    let idle = plan.processes.iter().filter(|process| process.instances == 0);
    idle.for_each(|process| out.line(0, &format!("{}: no process, so that it does nothing", process.name)));
    out.rates(plan);
    out.end(plan, &definitions, &ends, lengths, wrong.is_empty());
    wrong.iter().for_each(|text| out.line(0, &format!("! {text}")));
    let t = totals(plan, sets);
    let (memory, most) = (size::format(t.memory), size::format(t.max_memory));
    let up_to = if most == memory { String::new() } else { format!(" (up to {most})") };
    out.list(&format!(
        "in all {}, {}, {} in {} ({} at the start), {memory} of memory{up_to}",
        count(t.processes, "process"),
        count(t.threads, "thread"),
        files(t.files),
        directories(t.directories),
        size::format(t.bytes),
    ));
    out.lines.join("\n")
}

/// What an iteration, or a part of it, does.
enum PlanNode<'a> {
    /// Steps one after another, each with its number of executions.
    Step(String),
    /// A composite: its name, how often its body is executed, and the body.
    Repeat(Option<&'a str>, &'a Quantity, Vec<PlanNode<'a>>),
    /// A mix: each alternative with its share.
    Mix(Vec<(f64, String, Vec<PlanNode<'a>>)>, bool),
    /// The shared part of a composite with `group`.
    Group(Vec<PlanNode<'a>>),
}

/// Reads the steps from `from` to before `to` as a tree.
fn tree<'a>(plan: &'a Plan, thread: &'a Thread, from: usize, to: usize) -> Vec<PlanNode<'a>> {
    let (mut nodes, mut at) = (Vec::new(), from);
    while at < to {
        match &thread.steps[at] {
            PlanStep::Op { local, iters, op } => {
                let info = &plan.flowops[thread.first + local];
                nodes.extend(step(info, iters, &op.describe()).map(PlanNode::Step));
                at += 1;
            }
            PlanStep::Enter { name, iters, leave } => {
                nodes.push(PlanNode::Repeat(name.as_deref(), iters, tree(plan, thread, at + 1, *leave)));
                at = leave + 1;
            }
            PlanStep::Choose { upto, starts, end, shuffled } => {
                let sum = upto.last().copied().unwrap_or(0.0);
                let mut before = 0.0;
                let mut alternatives = Vec::new();
                for (number, (upto, start)) in upto.iter().zip(starts).enumerate() {
                    let share = if sum > 0.0 { (upto - before) / sum } else { 0.0 };
                    before = *upto;
                    let next = starts.get(number + 1).copied().unwrap_or(*end);
                    let name = match &thread.steps[*start] {
                        PlanStep::Op { local, .. } => {
                            let name = &plan.flowops[thread.first + local].name;
                            name.rsplit_once('.').map_or(name.as_str(), |(_, last)| last).to_owned()
                        }
                        PlanStep::Enter { name, .. } => name.clone().unwrap_or_default(),
                        _ => String::new(),
                    };
                    alternatives.push((share, name, tree(plan, thread, *start, next)));
                }
                nodes.push(PlanNode::Mix(alternatives, *shuffled));
                at = *end;
            }
            PlanStep::Gather { release, .. } => {
                nodes.push(PlanNode::Group(tree(plan, thread, at + 1, *release)));
                at = release + 1;
            }
            PlanStep::Leave { .. } | PlanStep::Jump(_) | PlanStep::Release => at += 1,
        }
    }
    nodes
}

/// A flowop in few words: its type and what is not the default. `None` if it does nothing that has a name.
fn step(info: &FlowopInfo, iters: &Quantity, described: &str) -> Option<String> {
    if info.kind == MEASURE.name {
        return (described.trim() != "starts").then(|| format!("measured as `{}`", info.name));
    }
    if info.kind == TRANSACTION.name {
        return Some(format!("transaction `{}`", info.name));
    }
    let words: Vec<&str> = match info.runs_command {
        true => vec![described.trim()],
        false => {
            let is_slot = |word: &&str| ["fd=", "srcfd=", "slots="].iter().any(|slot| word.starts_with(slot));
            // A size of 0 stands for the whole file.
            let words = described.split_whitespace().filter(|word| !is_slot(word) && *word != "iosize=0");
            words.map(|word| word.strip_prefix("iosize=").unwrap_or(word)).collect()
        }
    };
    let may_starve = if info.may_starve { " maystarve" } else { "" };
    let text = format!("{}{} {}{may_starve}", times(iters), info.kind, words.join(" "));
    Some(printable::short(text.trim(), STEP).into_owned())
}

/// How often something is done, before what it is. Empty for once.
fn times(iters: &Quantity) -> String {
    if matches!(iters, Quantity::Const(1)) { String::new() } else { format!("{iters} × ") }
}

/// The steps of a body. `None` if it has a mix, or what is repeated has more than `most` characters.
fn flat(nodes: &[PlanNode<'_>], most: usize) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    for node in nodes {
        match node {
            PlanNode::Step(text) => texts.push(text.clone()),
            PlanNode::Repeat(_, Quantity::Const(1), body) => texts.extend(flat(body, most)?),
            PlanNode::Repeat(_, iters, body) => {
                let text = format!("{}({})", times(iters), flat(body, most)?.join(" · "));
                texts.push(Some(text).filter(|text| text.chars().count() <= most)?);
            }
            PlanNode::Mix(..) => return None,
            PlanNode::Group(body) => {
                let text = format!("once for all who wait ({})", flat(body, most)?.join(" · "));
                texts.push(Some(text).filter(|text| text.chars().count() <= most)?);
            }
        }
    }
    Some(texts)
}

/// A time of a run or a phase.
fn time(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..600 if span.subsec_nanos() == 0 => format!("{seconds} s"),
        _ => duration::format(span),
    }
}

/// A share of a mix.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        return "<0.1 %".to_owned();
    }
    let text = format!("{percent:.1}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Lines of limited width.
struct OutlineLines {
    lines: Vec<String>,
    columns: usize,
}

impl OutlineLines {
    /// Adds a text, whose further lines are below its first words.
    fn line(&mut self, indent: usize, text: &str) {
        let begin = " ".repeat(indent);
        let text = printable::lines(text);
        self.lines.push(wrap::fill(&format!("{begin}{text}"), self.columns, &format!("{begin}    ")));
    }

    /// Adds a list of figures.
    fn list(&mut self, text: &str) {
        self.lines.push(wrap::fill_list(&printable::lines(text), self.columns));
    }

    /// Adds steps behind a head. A line ends only between steps, unless one is longer.
    fn steps(&mut self, indent: usize, head: &str, steps: &[String]) {
        let width = self.columns.saturating_sub(2);
        let under = " ".repeat(indent + head.chars().count());
        let mut line = format!("{}{head}", " ".repeat(indent));
        let mut is_first = true;
        for step in steps {
            let step = printable::line(step);
            if !is_first {
                if line.chars().count() + 3 + step.chars().count() > width {
                    self.lines.push(format!("{line} ·"));
                    line = under.clone();
                } else {
                    line += " · ";
                }
            }
            line += &step;
            is_first = false;
        }
        self.lines.push(line.trim_end().to_owned());
    }

    fn sets(&mut self, sets: &[Arc<Fileset>]) {
        let (first, last) = (&sets[0], &sets[sets.len() - 1]);
        let spec = &first.spec;
        let sum = |of: fn(&Fileset) -> u64| sets.iter().fold(0, |sum: u64, set| sum.saturating_add(of(set)));
        let (all, at_start) = (sum(|s| s.tree.n_files()), sum(|s| s.tree.files_at_start()));
        let bytes = size::format(sum(|s| s.tree.bytes_at_start()));
        let sizes = match &spec.sizes {
            Some(table) => format!("sizes from a table of {} rows", table.rows().len()),
            None if matches!(spec.size, Quantity::Const(_)) => format!("size {}", spec.size),
            None => format!("sizes {}", spec.size),
        };
        let exist = match at_start {
            n if n == all => format!("all exist at the start, {bytes}"),
            0 => "none exists at the start".to_owned(),
            n => format!("{} exist at the start, {bytes}", grouped(n)),
        };
        let leaves = match sum(|s| s.tree.n_leafdirs()) {
            0 => String::new(),
            n => format!(", {} leaf directories", grouped(n)),
        };
        let each = match (spec.instance.is_some(), sets.len()) {
            (false, _) => String::new(),
            (true, 1) => ", one for each process".to_owned(),
            (true, n) => format!(", {} sets, one for each process", grouped(n as u64)),
        };
        let kind = if spec.single { "file" } else { "file set" };
        let all = if spec.single { String::new() } else { format!("{}{leaves}, ", files(all)) };
        let exist = if spec.single && at_start == 1 { "exists at the start".to_owned() } else { exist };
        self.list(&format!("{kind} {}{each}: {all}{sizes}, {exist}{}", spec.name, flags(spec)));
        let root = printable::line(&spec.root().display().to_string()).into_owned();
        let to = match sets.len() {
            1 => String::new(),
            _ => format!(" to {}", last.spec.root().file_name().unwrap_or_default().to_string_lossy()),
        };
        let n_dirs = if spec.single { String::new() } else { format!("{} in ", directories(sum(|s| s.tree.n_dirs()))) };
        self.line(2, &format!("{n_dirs}{root}{to}"));
    }

    fn thread(&mut self, plan: &Plan, process: &Process, thread: &Thread) {
        let name = full_name(process, thread);
        let threads = count(u64::from(thread.instances), "thread");
        let number = match process.instances {
            1 => threads,
            n => format!("{} × {threads}", count(u64::from(n), "process")),
        };
        let nice = if process.nice == 0 { String::new() } else { format!(", nice {:+}", process.nice) };
        let rate = thread.pace.map_or_else(|| ", closed loop".to_owned(), pace);
        self.line(0, &format!("{name}: {number}{rate}{nice}"));
        self.nodes(2, &tree(plan, thread, 0, thread.steps.len()));
    }

    /// The characters that a step may have, with the mark behind it.
    fn room(&self, indent: usize) -> usize {
        self.columns.saturating_sub(indent + 2).max(20)
    }

    fn nodes(&mut self, indent: usize, nodes: &[PlanNode<'_>]) {
        let mut run: Vec<String> = Vec::new();
        for node in nodes {
            if let Some(texts) = flat(std::slice::from_ref(node), self.room(indent)) {
                run.extend(texts);
                continue;
            }
            if !run.is_empty() {
                self.steps(indent, "", &std::mem::take(&mut run));
            }
            match node {
                PlanNode::Repeat(_, Quantity::Const(1), body) => self.nodes(indent, body),
                PlanNode::Repeat(name, iters, body) => {
                    let name = name.map_or(String::new(), |name| format!("`{name}`, "));
                    self.line(indent, &format!("{name}{iters} times:"));
                    self.nodes(indent + 2, body);
                }
                PlanNode::Mix(alternatives, shuffled) => self.mix(indent, alternatives, *shuffled),
                PlanNode::Group(body) => {
                    self.line(indent, "once for all who wait:");
                    self.nodes(indent + 2, body);
                }
                PlanNode::Step(_) => {}
            }
        }
        if !run.is_empty() {
            self.steps(indent, "", &run);
        }
    }

    fn mix(&mut self, indent: usize, alternatives: &[(f64, String, Vec<PlanNode<'_>>)], shuffled: bool) {
        let how = if shuffled { "one of, in exactly these shares:" } else { "one of, at random:" };
        self.line(indent, how);
        let name = |name: &str| printable::within(name, 20).into_owned();
        let widest = alternatives.iter().map(|(_, own, _)| name(own).chars().count()).max().unwrap_or(0);
        for (share, own, body) in alternatives {
            let head = format!("{:>6}  {:<widest$}  ", percent(*share), name(own));
            match flat(body, self.room(indent + head.chars().count())) {
                Some(steps) => self.steps(indent, &head, &steps),
                None => {
                    let (times, inner) = match &body[..] {
                        [PlanNode::Repeat(_, Quantity::Const(1), inner)] => (String::new(), inner),
                        [PlanNode::Repeat(_, iters, inner)] => (format!("{iters} times:"), inner),
                        _ => (String::new(), body),
                    };
                    self.steps(indent, &head, &[times]);
                    self.nodes(indent + 10, inner);
                }
            }
        }
    }

    /// What ends the threads of a definition. Nothing is said of those that only the run ends.
    fn own_end(
        &mut self,
        plan: &Plan,
        process: &Process,
        thread: &Thread,
        end: EndCause,
        definitions: &[(&Process, &Thread)],
    ) {
        if let Some(time) = thread.stonewall {
            let time = self::time(time);
            self.line(2, &format!("stonewall: after {time} each only catches up with the one that has done most"));
        }
        if let Some((process, other)) = thread.iterations_of.and_then(|other| definitions.get(other)) {
            self.line(2, &format!("ends after as many iterations as {}", full_name(process, other)));
        }
        let finishes = |local: usize| &plan.flowops[thread.first + local].name;
        match end {
            EndCause::Count(local) if ends_thread_only(plan, process) => {
                self.line(2, &format!("ends at the count of `{}`", finishes(local)));
            }
            EndCause::Count(local) => self.line(2, &format!("ends the run at the count of `{}`", finishes(local))),
            EndCause::Shortage => self.line(2, "ends when it finds no file, or no free name, that it needs"),
            EndCause::Fault => self.line(2, "! may wait for ever, or fail: it waits for nobody, or opens no file"),
            EndCause::Limit | EndCause::Nothing => {}
        }
    }

    /// The rate of the event generator, if flowops ask for its events.
    fn rates(&mut self, plan: &Plan) {
        let mut names: Vec<&str> = plan.flowops.iter().filter(|f| f.claims_events).map(|f| f.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > NAMES { " …" } else { "" };
        let shown = names.iter().take(NAMES).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match plan.event_rate {
            _ if names.is_empty() => {}
            Some(rate) => {
                self.line(0, &format!("event generator: {} events/s for {shown}{more}", grouped(rate)));
            }
            None => self.line(0, &format!("no event rate: {shown}{more} limits nothing")),
        }
    }

    /// What ends the run.
    fn end(
        &mut self,
        plan: &Plan,
        definitions: &[(&Process, &Thread)],
        ends: &[EndCause],
        lengths: &[Option<Duration>],
        all_begin: bool,
    ) {
        let runs = || definitions.iter().zip(ends).filter(|((process, _), _)| process.instances > 0);
        let counts =
            runs().any(|((process, _), end)| matches!(end, EndCause::Count(_)) && !ends_thread_only(plan, process));
        let reasons = |length: Option<Duration>| {
            let mut reasons: Vec<String> = Vec::new();
            reasons.extend(length.map(|length| format!("after {}", time(length))));
            reasons.extend(counts.then(|| "at a count".to_owned()));
            match plan.mode {
                QuitMode::Timeout
                    if runs().next().is_none()
                        || !runs().all(|(_, end)| matches!(end, EndCause::Limit | EndCause::Shortage)) => {}
                QuitMode::Timeout | QuitMode::AllDone => reasons.push("when all threads have ended".to_owned()),
                QuitMode::FirstDone => reasons.push("when the first thread has ended".to_owned()),
            }
            reasons.join(", or ")
        };
        match lengths {
            [] => {}
            [length] => self.line(0, &format!("the run ends {}", reasons(*length))),
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                let n = grouped(lengths.len() as u64);
                self.line(0, &format!("{n} runs; each ends {}", reasons(*first)));
            }
            _ => {
                let shown = lengths.iter().take(8).map(|length| length.map_or("no limit".to_owned(), time));
                let more = if lengths.len() > 8 { ", …" } else { "" };
                let n = grouped(lengths.len() as u64);
                self.line(0, &format!("{n} runs, for {}{more}", shown.collect::<Vec<_>>().join(", ")));
            }
        }
        if let Some((process, thread)) = endless(plan, ends).filter(|_| all_begin && lengths.contains(&None)) {
            let name = full_name(process, thread);
            self.line(0, &format!("! nothing ends {name}, and so nothing ends the run; `--runtime` does"));
        }
    }
}

/// The names of a process and its thread definition.
fn full_name(process: &Process, thread: &Thread) -> String {
    if process.name == thread.name { process.name.clone() } else { format!("{}/{}", process.name, thread.name) }
}

/// The rate of an open loop.
fn pace(pace: Pace) -> String {
    let arrivals = if pace.poisson { ", Poisson arrivals" } else { "" };
    let all = pace.total.unwrap_or_else(|| rounded(pace.rate * pace.threads as f64));
    let each = match pace.threads {
        1 => String::new(),
        _ if pace.is_shared => " from one queue".to_owned(),
        _ => format!(" in all, {}/s each", count::measured(pace.rate)),
    };
    format!(", open loop of {all} requests/s{each}{arrivals}")
}
