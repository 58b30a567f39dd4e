//! Any text that is right has a plan, or errors that say why not; the plan of a tree of sensible size can be printed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use wml::diag::{Diagnostic, Reason};
use wml::disk::Fileset;
use wml::plan;
use wml::session::{Session, Settings, SilentFront};
use wml::source::SourceMap;

/// Files that are made into a tree here: more are right, and take their time.
const FILES: u64 = 100_000;

fuzz_target!(|text: &str| {
    // What it loads is not its own.
    if text.contains("load") {
        return;
    }
    let settings = Settings { engine: wml::io_engine::find("null").expect("the engine"), ..Settings::default() };
    let mut session = Session::new(settings, Arc::default());
    let mut front = SilentFront::default();
    let planned = session.read("fuzz.wml", text, &mut front).and_then(|_| session.plan(&mut front));
    let render = |map: &SourceMap, found: &[Diagnostic]| drop(wml::diag::render(map, found, wml::diag::Style::Plain));
    render(&session.map, &front.found);
    let plan = match planned {
        Ok(plan) => plan,
        Err(failure) => {
            for reason in failure.reasons {
                if let Reason::Script(wrong) = reason {
                    render(&wrong.map, &wrong.found);
                }
            }
            return;
        }
    };
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
