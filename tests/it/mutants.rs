//! Tests damaged scripts: each stage before a run accepts or refuses any text without a panic.
//!
//! Shipped and old scripts are truncated, duplicated, swapped and overwritten at random positions, by a seed. `check`
//! and `plan` end without a panic. A script that `fmt` formats has the same plan afterwards, and formatting it again
//! changes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use wml::diag::{self, Reason, Style};
use wml::disk::Fileset;
use wml::plan;
use wml::random::mix;
use wml::session::{Session, Settings, SilentFront};
use wml::source::SourceMap;
use wml::syntax;

use crate::cmd::short_or_long;
use crate::lints;

/// Files that are made into a tree here: more are right, and take their time.
const FILES: u64 = 50_000;

/// The longest that one mutant may take, with everything else that runs on the machine.
const LIMIT: Duration = Duration::from_mins(1);

/// Numbers that a seed gives, one after another.
struct Numbers(u64, u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.1 += 1;
        (mix(self.0, self.1) % n.max(1) as u64) as usize
    }
}

/// All scripts that there are.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for (folder, extension) in
        [("personalities", "wml"), ("examples", "wml"), ("tests/cases/old", "f"), ("tests/cases/check", "wml")]
    {
        let mut paths: Vec<_> = std::fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        let scripts = paths.iter().filter(|path| path.extension().is_some_and(|e| e == extension));
        texts.extend(scripts.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()));
    }
    texts
}

const WORDS: &[&str] = &[
    "define",
    "fileset",
    "flowop",
    "thread",
    "process",
    "set",
    "run",
    "foreach",
    "{",
    "}",
    "(",
    ")",
    "\"",
    "$",
    "${",
    "$(",
    "=",
    ",",
    "#",
    "-",
    "/",
    "*",
    "+",
    "0",
    "-1",
    "1t",
    "9223372036854775807",
    "9223372036854775808",
    "0.5",
    "1e9",
    "true",
    "name=",
    "entries=",
    "iosize=",
    "instances=",
    "fd=128",
    "srcfd=9",
    "opennext",
    "mix",
    "rate=",
    "iters=0",
    "value=-1",
    "randvar(type=",
    "cvar(type=cvar-gamma,parameters=",
    "\u{feff}",
    "\0",
    "\r\n",
    "é",
    "$x=$x+1",
    "dirwidth=1",
    "size=",
    "target=",
];

/// A script with a few changes of bytes, words or lines.
fn mutant(texts: &[String], numbers: &mut Numbers) -> String {
    let mut text = texts[numbers.below(texts.len())].clone();
    for _ in 0..=numbers.below(4) {
        let boundary = |text: &str, mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let at = boundary(&text, numbers.below(text.len() + 1));
        let end = boundary(&text, (at + numbers.below(40)).min(text.len()));
        match numbers.below(9) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..end)),
            2 => text.insert_str(at, WORDS[numbers.below(WORDS.len())]),
            3 => text.replace_range(at..end, WORDS[numbers.below(WORDS.len())]),
            4 => {
                let piece = text[at..end].to_owned();
                text.insert_str(at, &piece);
            }
            5 => {
                let mut lines: Vec<&str> = text.lines().collect();
                let n = lines.len();
                if n > 1 {
                    lines.swap(numbers.below(n), numbers.below(n));
                }
                text = lines.join("\n");
            }
            6 => {
                let mut lines: Vec<&str> = text.lines().collect();
                if !lines.is_empty() {
                    let line = lines[numbers.below(lines.len())];
                    lines.insert(numbers.below(lines.len()), line);
                }
                text = lines.join("\n");
            }
            7 => {
                let other = &texts[numbers.below(texts.len())];
                let from = boundary(other, numbers.below(other.len() + 1));
                text.truncate(at);
                text.push_str(&other[from..]);
            }
            _ => {
                // A word of the script for another of its words.
                let words: Vec<&str> = text.split([' ', ',', '=', '\n']).filter(|word| !word.is_empty()).collect();
                if words.len() > 1 {
                    let (one, other) = (words[numbers.below(words.len())], words[numbers.below(words.len())]);
                    text = text.replacen(one, other, 1);
                }
            }
        }
    }
    text
}

/// The plan of a script as text, if it has one that is small enough to be drawn.
fn planned(text: &str) -> Option<String> {
    // The memory that is free differs from one plan to the next.
    let sets = vec![("freememory".to_owned(), "8g".to_owned())];
    let settings = Settings { engine: wml::io_engine::find("null").unwrap(), sets, ..Settings::default() };
    let mut session = Session::new(settings, Arc::default());
    session.apply_sets().unwrap();
    let mut front = SilentFront::default();
    let planned = session.read("mutant.wml", text, &mut front).and_then(|_| session.plan(&mut front));
    let _ = diag::render(&session.map, &front.found, Style::Plain);
    let plan = match planned {
        Ok(plan) => plan,
        Err(failure) => {
            for reason in failure.reasons {
                if let Reason::Script(wrong) = reason {
                    let _ = diag::render(&wrong.map, &wrong.found, Style::Plain);
                }
            }
            return None;
        }
    };
    let small = |spec: &&wml::fileset::FilesetSpec| spec.entries.saturating_add(spec.leafdirs) <= FILES;
    let specs = plan.filesets.iter().filter(small);
    let sets = specs.map(|spec| Fileset::new(spec.clone(), 1).ok().map(Arc::new)).collect::<Option<Vec<_>>>()?;
    if sets.len() != plan.filesets.len() {
        return Some(format!("{:?}", plan.flowops.len()));
    }
    let _ = plan::outline(&plan, &sets, &[None], &[], 80);
    Some(plan::dump(&plan, &sets))
}

fn examine(text: &str) {
    let _ = lints::check("mutant.wml", text);
    // What it loads is not its own.
    let before = if text.contains("load") { None } else { planned(text) };
    let mut map = SourceMap::new();
    let file = map.add("mutant.wml", text);
    let Ok(once) = syntax::format(&map, file) else { return };
    let again = map.add("once.wml", once.as_str());
    let twice = syntax::format(&map, again).expect("formatted text can be formatted");
    assert_eq!(once, twice, "laid out twice");
    if let Some(before) = before {
        assert_eq!(Some(before), planned(&once), "the plan of the formatted text");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures of the long form")]
fn no_mutant_makes_a_stage_panic_or_hang_or_fmt_change_a_plan() {
    let (sender, receiver) = channel();
    let (count, seed) = (short_or_long(400, 20_000), 1);
    std::thread::spawn(move || {
        let texts = corpus();
        let mut numbers = Numbers(seed, 0);
        for n in 0..count {
            let text = mutant(&texts, &mut numbers);
            if sender.send((n, text.clone(), None)).is_err() {
                return;
            }
            let done = catch_unwind(AssertUnwindSafe(|| examine(&text))).is_ok();
            let _ = sender.send((n, text, Some(done)));
        }
    });
    let (mut failed, mut running, mut slowest) = (Vec::new(), String::new(), Duration::ZERO);
    let mut begun = Instant::now();
    let mut seen = 0;
    while seen < count {
        match receiver.recv_timeout(LIMIT) {
            Ok((_, text, None)) => (running, begun) = (text, Instant::now()),
            Ok((n, text, Some(done))) => {
                seen += 1;
                slowest = slowest.max(begun.elapsed());
                if !done {
                    failed.push(format!("--- mutant {n}\n{text}"));
                }
            }
            Err(why) => panic!("{why}: a mutant takes more than {LIMIT:?}:\n{running}"),
        }
    }
    println!("{count} mutants, the slowest {slowest:?}");
    assert!(failed.is_empty(), "{} of {count} mutants:\n{}", failed.len(), failed.join("\n"));
}
