//! The shell on a terminal: line editing, history, completion, colours. Only this file uses the line editor.

use super::PromptLoop;
use super::complete::{self, Names};
use super::table::prompt_command;
use crate::diag::{Failure, wants_colours};
use crate::os::held_dir::HeldDir;
use crate::os::path::{keeps_state, state_dir};
use crate::os::{OFlags, signals};
use crate::session::Session;
use crate::syntax::is_incomplete;
use crate::util::{ascii, printable};
use crate::version::VERSION;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// What the prompt names where no script is loaded.
const PROGRAM: &str = "wmlrun";

/// The longest name in the prompt; others lose their middle.
const MAX_NAME: usize = 20;

/// Name of the input in diagnostics.
const NAME: &str = "<prompt>";

/// Maximum number of lines in the history.
const MAX_HISTORY: usize = 10_000;

/// Interval of the check for signals while the prompt waits for input.
const SIGNAL_POLL: Duration = Duration::from_millis(100);

/// Reads and executes lines until end of file or `quit`.
pub(super) fn run(shell: &mut PromptLoop<'_>) {
    let colour = wants_colours();
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .auto_add_history(false)
        .color_mode(if colour { ColorMode::Enabled } else { ColorMode::Disabled });
    let editor = config
        .max_history_size(MAX_HISTORY)
        .and_then(|c| Editor::<EditorHelper, DefaultHistory>::with_config(c.build()));
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(e) => {
            let text = format!("can't use the terminal: {e}");
            shell.front.failed(&Failure::failed(text, "`wmlrun repl < FILE` works without one"));
            return;
        }
    };
    editor.set_helper(Some(EditorHelper { names: Names::default(), files: FilenameCompleter::new(), colour }));
    let opened = history_dir().and_then(|dir| open_history(&dir));
    // The line editor opens a path: that of the open file, which nobody can replace. Without `/proc` there is no history.
    let history = opened.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    greet(shell);
    let waiting = SignalWatcher::watch(shell);
    let mut line_number = 1;
    loop {
        if let Some(helper) = editor.helper_mut() {
            helper.names = Names::at_prompt(&shell.prompt.session);
        }
        waiting.flag.store(true, SeqCst);
        let read = editor.readline(&prompt_of(&shell.prompt.session));
        waiting.flag.store(false, SeqCst);
        if shell.ended() {
            break;
        }
        match read {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let _ = editor.add_history_entry(text.trim_end());
                if let Some(path) = &history {
                    // Ignore errors: the history is not important enough for a message after each line.
                    let _ = editor.append_history(path);
                }
                let lines = text.lines().count() as u32;
                if !shell.execute_all(NAME, &text, line_number) {
                    break;
                }
                line_number += lines;
            }
            // ^C at the prompt clears the line.
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
            Err(_) => break,
        }
    }
}

/// Returns the prompt, which names the script that was loaded last.
fn prompt_of(session: &Session) -> String {
    let name = session.loaded_name().filter(|name| !name.is_empty());
    let name = printable::line(name.as_deref().unwrap_or(PROGRAM)).into_owned();
    let prompt = format!("{}> ", printable::within(&name, MAX_NAME));
    if ascii::is_wanted() { ascii::of(&prompt).into_owned() } else { prompt }
}

/// Prints what is loaded, the version and the most important commands.
fn greet(shell: &mut PromptLoop<'_>) {
    let first = if shell.prompt.session.loaded_name().is_some() { "set $NAME=VALUE" } else { "load NAME" };
    shell.prompt.session.note_definitions(shell.front);
    shell.front.note(&format!("wmlrun {VERSION}: type `{first}`, `run` or `help`; ^C stops a run, ^D exits"));
}

/// The maximum length of a history file in bytes. With the maximum number of lines it is shorter.
const MAX_HISTORY_LENGTH: u64 = 4 << 20;

/// Opens the history file, which the first session makes. `None` if there can be no history: the line editor would wait
/// for a pipe, or read a device without an end, in its place.
fn open_history(dir: &HeldDir) -> Option<File> {
    let name = OsStr::new("history");
    let is_new = dir.find(name).ok()?.is_none();
    let file = dir.open_file(name, OFlags::RDWR | OFlags::CREATE).ok()?;
    if is_new {
        file.set_permissions(Permissions::from_mode(0o600)).ok()?;
    }
    file.metadata().is_ok_and(|meta| meta.len() <= MAX_HISTORY_LENGTH).then_some(file)
}

/// Opens the directory of the history, that of the state. It is created if necessary.
fn history_dir() -> Option<HeldDir> {
    let dir = state_dir().filter(|_| keeps_state())?;
    Some(HeldDir::create(&dir).ok()?.0)
}

/// A thread that ends a waiting prompt after a signal other than SIGINT. The line editor only reacts to SIGINT, so the
/// thread sends that.
struct SignalWatcher {
    /// Whether the prompt waits for input.
    flag: Arc<AtomicBool>,
    /// Set to end the thread.
    over: Arc<AtomicBool>,
}

impl SignalWatcher {
    fn watch(shell: &mut PromptLoop<'_>) -> Self {
        let waiting = Self { flag: Arc::default(), over: Arc::default() };
        let (flag, over) = (Arc::clone(&waiting.flag), Arc::clone(&waiting.over));
        let number = shell.prompt.session.runner.watch.interrupt();
        let watch = move || {
            while !over.load(SeqCst) {
                if number.load(SeqCst) != 0 && flag.load(SeqCst) {
                    signals::interrupt_self();
                }
                std::thread::sleep(SIGNAL_POLL);
            }
        };
        if let Err(e) = std::thread::Builder::new().name("prompt".to_owned()).spawn(watch) {
            let text =
                format!("can't start a thread ({e}): a signal other than ^C takes effect only after the next line");
            shell.front.note(&text);
        }
        waiting
    }
}

impl Drop for SignalWatcher {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
    }
}

/// The line editor's callbacks: completion, hints, colours, and whether a line is complete.
struct EditorHelper {
    names: Names,
    files: FilenameCompleter,
    colour: bool,
}

impl Helper for EditorHelper {}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let found = complete::complete(line, pos, &self.names);
        let mut pairs: Vec<Pair> =
            found.words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect();
        if found.files {
            let (start, files) = self.files.complete(line, pos, ctx)?;
            let files: Vec<Pair> = files.iter().map(visible).collect();
            if pairs.is_empty() {
                return Ok((start, files));
            }
            if start == found.start {
                pairs.extend(files);
            }
        }
        Ok((found.start, pairs))
    }
}

/// Escapes control characters in the displayed file name. The inserted name is cut at its first control character,
/// since the line is drawn without escaping.
fn visible(file: &Pair) -> Pair {
    let replacement = file.replacement.split(printable::is_control).next().unwrap_or_default().to_owned();
    Pair { display: printable::line(&file.display).into_owned(), replacement }
}

impl Hinter for EditorHelper {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        if pos < line.len() {
            None
        } else {
            complete::hint(line, &self.names).map(|hint| printable::line(&hint).into_owned())
        }
    }
}

impl Highlighter for EditorHelper {
    /// Removes control characters, which a line from the history or the clipboard may contain. The line editor counts
    /// their width as 0.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        let drawn = |c: char| matches!(c, '\n' | '\t') || !printable::is_control(c);
        if line.chars().all(drawn) {
            Cow::Borrowed(line)
        } else {
            Cow::Owned(line.chars().filter(|c| drawn(*c)).collect())
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.colour { Cow::Owned(format!("\x1b[1m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }
}

impl Validator for EditorHelper {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = ctx.input();
        let last = text.trim_end().rsplit('\n').next().unwrap_or("");
        // A shell command always ends with its line.
        let whole = prompt_command(last).is_some() || !is_incomplete(text);
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}
