//! Helpers that run scripts inside a test and record all their output.

use std::sync::Arc;
use std::time::Duration;
use wml::diag::{self, Diagnostic, Failure, Reason, Style};
use wml::result::{Document, Run};
use wml::session::{Front, Session, Settings, Status};
use wml::source::SourceMap;

/// The results and the output of a script.
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) document: Document,
    /// Lines, notes, diagnostics and errors, in order.
    pub(crate) said: String,
}

impl Outcome {
    /// The last run; a script that makes none has said why.
    pub(crate) fn run(&self) -> &Run {
        self.document.runs.last().unwrap_or_else(|| panic!("no run: {}", self.said))
    }
}

#[derive(Default)]
pub(crate) struct Listener(pub(crate) String);

impl Listener {
    fn say(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }
}

impl Front for Listener {
    fn line(&mut self, text: &str) {
        self.say(text);
    }
    fn note(&mut self, text: &str) {
        self.say(text);
    }
    fn warnings(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        self.say(&diag::render(map, found, Style::Plain));
    }
    fn failed(&mut self, failure: &Failure) {
        for reason in &failure.reasons {
            match reason {
                Reason::Script(wrong) => self.warnings(&wrong.map, &wrong.found),
                Reason::Stated { message, help, .. } => {
                    self.say(&format!("error: {message}"));
                    help.iter().for_each(|help| self.say(&format!("help: {help}")));
                }
            }
        }
    }
}

/// Settings of a short run without I/O.
pub(crate) fn null(milliseconds: u64) -> Settings {
    Settings {
        engine: wml::io_engine::find("null").unwrap(),
        runtime: Some(Duration::from_millis(milliseconds)),
        quiesce: false,
        ..Settings::default()
    }
}

/// Settings of a short run on a real file system, in a directory that the test has made.
pub(crate) fn real(milliseconds: u64, dir: &std::path::Path) -> Settings {
    Settings {
        engine: wml::io_engine::find("posix").unwrap(),
        allow_system: true,
        sets: vec![("dir".to_owned(), dir.display().to_string())],
        ..null(milliseconds)
    }
}

/// Returns the options of processes without I/O that a test starts itself.
pub(crate) fn processes() -> wml::runtime::Options {
    wml::runtime::Options {
        engine: wml::io_engine::find("null").unwrap(),
        asynchronous: wml::io_engine::Asynchronous::AtOnce,
        seed: 1,
        run_seed: 1,
        count_errors: true,
        pin: false,
        messages: None,
        stream: None,
        interrupt: Arc::default(),
        devices: Vec::new(),
        meetings: None,
    }
}

/// Runs a script to its end.
pub(crate) fn run(name: &str, text: &str, settings: Settings) -> Outcome {
    let mut front = Listener::default();
    let mut session = Session::new(settings, Arc::default());
    let done = session.script(name, text, &mut front);
    let status = front.status(done);
    let document = session.runner.outputs.document.clone();
    let status = status.max(session.finish(&mut front));
    Outcome { status, document, said: front.0 }
}

#[allow(dead_code, reason = "for the golden cases")]
/// Returns what `wmlrun plan` shows of a script in 80 columns, or the messages if there is no plan.
pub(crate) fn outline(name: &str, text: &str, settings: Settings) -> String {
    let mut front = Listener::default();
    let mut session = Session::new(settings, Arc::default());
    let planned = session.read(name, text, &mut front).and_then(|model| {
        let plan = session.plan(&mut front)?;
        let sets = wml::measure::trees(&plan, session.runner.settings.layout_seed)?;
        let wrong: Vec<String> = session.endless_phases(&plan).into_iter().map(|found| found.message).collect();
        Ok(wml::plan::outline(&plan, &sets, &session.run_lengths(&model), &wrong, 80))
    });
    planned.unwrap_or_else(|failure| {
        front.failed(&failure);
        front.0
    })
}

#[allow(dead_code, reason = "for the golden cases")]
/// Returns the printed form of the plan, or the messages if there is no plan.
pub(crate) fn plan(name: &str, text: &str, settings: Settings) -> String {
    let mut front = Listener::default();
    let mut session = Session::new(settings, Arc::default());
    let planned = session.read(name, text, &mut front).and_then(|_| session.plan(&mut front));
    let planned = planned.and_then(|plan| {
        let sets = wml::measure::trees(&plan, session.runner.settings.layout_seed)?;
        Ok(wml::plan::dump(&plan, &sets))
    });
    planned.unwrap_or_else(|failure| {
        front.failed(&failure);
        front.0
    })
}
