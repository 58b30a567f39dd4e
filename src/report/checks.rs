//! The formats of continuous integration for runs: whether each is complete, and keeps its limits.

use super::markdown::Markdown;
use super::names::{heading, script};
use super::{Report, ReportInfo};
use crate::result::{Document, LimitOutcome, RunState};
use crate::sheet::{Sheet, SheetCheck, github, junit};
use std::io::{self, Write};

/// `--format junit`.
pub(crate) struct Junit;

/// `--format github`.
pub(crate) struct Github;

/// The checks of limits.
pub(crate) fn limit_checks(limits: &[LimitOutcome]) -> impl Iterator<Item = SheetCheck> {
    limits.iter().map(|limit| SheetCheck::of_code(&limit.title(), limit.verdict.code(), &limit.text))
}

/// The checks of all runs.
fn sheet(document: &Document) -> Sheet {
    let mut checks = Vec::new();
    for (n, run) in (1..).zip(&document.runs) {
        let of = if document.runs.len() > 1 { format!("run {n}: ") } else { String::new() };
        let code = u8::from(run.state != RunState::Complete);
        let state = SheetCheck::of_code(&heading(document, run), code, &run.state.name().replace('_', " "));
        let named = |check: SheetCheck| SheetCheck { name: format!("{of}{}", check.name), ..check };
        checks.extend(std::iter::once(state).chain(limit_checks(&run.limits)).map(named));
    }
    Sheet { title: script(document).to_owned(), checks, ..Sheet::default() }
}

impl Report for Junit {
    fn info(&self) -> ReportInfo {
        let about = "JUnit XML: whether each run is complete, and keeps its limits";
        ReportInfo { stands_alone: true, ..ReportInfo::for_programs("junit", about) }
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(junit::write(&sheet(document)).as_bytes())
    }
}

impl Report for Github {
    fn info(&self) -> ReportInfo {
        let about = "annotations for GitHub, and the summary of a step in Markdown";
        ReportInfo { stands_alone: true, has_warnings: true, ..ReportInfo::for_programs("github", about) }
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(github::annotations(&sheet(document)).as_bytes())?;
        super::write(&Markdown, document, out)
    }
}
