//! Any text that is right has a plan, or errors that say why not; the plan of a tree of sensible size can be printed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use wml::diag::Diagnostic;
use wml::disk::Fileset;
use wml::plan;
use wml::session::{Front, Session, Settings, Status};
use wml::source::SourceMap;

/// Files that are made into a tree here: more are right, and take their time.
const FILES: u64 = 100_000;

struct Silent;

impl Front for Silent {
    fn line(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        let _ = wml::diag::render(map, found, wml::diag::Style::Plain);
    }
    fn error(&mut self, _: Option<&str>, _: &str, _: Option<&str>) {}
}

fuzz_target!(|text: &str| {
    // What it loads is not its own.
    if text.contains("load") {
        return;
    }
    let settings = Settings { engine: wml::engine::find("null").expect("the engine"), ..Settings::default() };
    let mut session = Session::new(settings, Arc::default());
    if session.read("fuzz.wml", text, &mut Silent) != Status::Done {
        return;
    }
    let Some(plan) = session.plan(&mut Silent) else { return };
    let mut sets = Vec::new();
    for spec in &plan.filesets {
        if spec.entries.saturating_add(spec.leafdirs) <= FILES {
            if let Ok(set) = Fileset::new(spec.clone(), 1) {
                sets.push(Arc::new(set));
            }
        }
    }
    if sets.len() == plan.filesets.len() {
        let _ = plan::dump(&plan, &sets);
    }
});
