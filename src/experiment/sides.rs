//! Sides that the command line adds to an experiment: one more factor, whose levels are options, such as those of several
//! file systems.

use super::file::{ExperimentFile, FileFactor, FileLevel};
use crate::diag::Failure;
use crate::source::{SourceMap, Span, Spanned};
use crate::util::printable;

/// The name of the factor.
const SIDE: &str = "side";

impl ExperimentFile {
    /// Adds sides, `NAME=OPTIONS` each, as the columns of the tables, with those over which the others improve.
    pub(crate) fn add_sides(&mut self, map: &mut SourceMap, sides: &[String], over: &[String]) -> Result<(), Failure> {
        if sides.is_empty() {
            return Ok(());
        }
        let mut levels: Vec<FileLevel> = Vec::new();
        for text in sides {
            let level = level(map, text)?;
            if let Some(other) = levels.iter().find(|other| {
                other.name.node == level.name.node || other.options[0].node.trim() == level.options[0].node.trim()
            }) {
                let text = format!("`--side {}` and `--side {}` do not differ", line(&other.name.node), line(text));
                return Err(Failure::wrong(text, "give each side its own name and options"));
            }
            levels.push(level);
        }
        if levels.len() < 2 {
            return Err(Failure::wrong("one side has nothing to stand beside", "give `--side` twice or more"));
        }
        if self.factors.iter().any(|factor| factor.name.node == SIDE) {
            return Err(Failure::wrong("the experiment has a factor `side`", "rename it in a copy of the file"));
        }
        let is_side = |name: &String| levels.iter().any(|level| level.name.node == *name);
        if let Some(name) = over.iter().find(|name| !is_side(name)) {
            let names = levels.iter().map(|level| level.name.node.as_str()).collect::<Vec<_>>().join(", ");
            let text = format!("`--over`: no side is named `{}`", line(name));
            return Err(Failure::wrong(text, format!("the sides are {names}")));
        }
        if levels.iter().all(|level| over.contains(&level.name.node)) {
            return Err(Failure::wrong("`--over` has all sides", "omit the side whose improvement is shown"));
        }
        self.tables.columns = Some(SIDE.to_owned());
        self.tables.beside.clear();
        self.tables.over = over.to_vec();
        self.tables.bound = None;
        let name = Spanned { node: SIDE.to_owned(), span: levels[0].name.span };
        self.factors.push(FileFactor { name, levels });
        Ok(())
    }
}

fn line(text: &str) -> String {
    printable::line(text).into_owned()
}

/// The level of `NAME=OPTIONS`. Errors in its options show this text.
fn level(map: &mut SourceMap, text: &str) -> Result<FileLevel, Failure> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(super::file::is_plain);
    let Some((name, options)) = text.split_once('=').filter(|(name, _)| is_name(name)) else {
        let help = "write a name of letters, digits, `_`, `-` and `.`, and options: `--side 'ext4=--dir /mnt/ext4'`";
        return Err(Failure::wrong(format!("`--side {}` is not NAME=OPTIONS", line(text)), help));
    };
    let span = Span::new(map.add("--side", text), 0, text.len());
    let spanned = |node: &str| Spanned { node: node.to_owned(), span };
    Ok(FileLevel {
        name: spanned(name),
        script: None,
        options: vec![spanned(options)],
        set: Vec::new(),
        scale: Vec::new(),
        metric: None,
    })
}
