//! The shell on a terminal: keys, history, completion, colours. The only file that knows the line editor.

use super::PromptLoop;
use super::complete::{self, Names};
use super::table::prompt_command;
use crate::os::signals;
use crate::syntax::is_incomplete;
use crate::util::printable;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const PROMPT: &str = "wmlrun> ";

/// What errors call it.
const NAME: &str = "<prompt>";

/// Lines that the history keeps.
const KEPT: usize = 10_000;

/// How often it is looked whether a signal asks a waiting prompt to end.
const LOOK: Duration = Duration::from_millis(100);

/// Reads and does lines until the end.
pub(super) fn run(shell: &mut PromptLoop<'_>) {
    let colour = std::env::var_os("NO_COLOR").is_none();
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .auto_add_history(false)
        .color_mode(if colour { ColorMode::Enabled } else { ColorMode::Disabled });
    let editor = config.max_history_size(KEPT).and_then(|c| Editor::<Keys, DefaultHistory>::with_config(c.build()));
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(e) => {
            shell.front.error(
                None,
                &format!("the terminal can't be used: {e}"),
                Some("`wmlrun repl < FILE` needs none"),
            );
            return;
        }
    };
    editor.set_helper(Some(Keys { names: Names::default(), files: FilenameCompleter::new(), colour }));
    let history = history_file();
    if let Some(path) = &history {
        // A first session has none.
        let _ = editor.load_history(path);
    }
    greet(shell);
    let waiting = PromptWait::watch(shell);
    let mut line_number = 1;
    loop {
        if let Some(keys) = editor.helper_mut() {
            keys.names = Names::of(&shell.prompt);
        }
        waiting.flag.store(true, SeqCst);
        let read = editor.readline(PROMPT);
        waiting.flag.store(false, SeqCst);
        if shell.ended() {
            break;
        }
        match read {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let _ = editor.add_history_entry(text.trim_end());
                if let Some(path) = &history {
                    // A history that can't be kept is no reason to say anything at each line.
                    let _ = editor.append_history(path);
                }
                let lines = text.lines().count() as u32;
                if !shell.does_all(NAME, &text, line_number) {
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

fn greet(shell: &mut PromptLoop<'_>) {
    let version = env!("CARGO_PKG_VERSION");
    shell.front.note(&format!("wmlrun {version}: `load NAME`, `run`, `help`; ^C stops a run, ^D leaves"));
}

/// Where the history is kept: the user's state directory, made if need be.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let dir = state.join("wmlrun");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}

/// Ends a prompt that waits when a signal other than ^C comes: the line editor reads on through those, so that it is sent the one
/// that it heeds.
struct PromptWait {
    flag: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl PromptWait {
    fn watch(shell: &mut PromptLoop<'_>) -> Self {
        let waiting = Self { flag: Arc::default(), over: Arc::default() };
        let (flag, over) = (Arc::clone(&waiting.flag), Arc::clone(&waiting.over));
        let number = shell.prompt.session.runner.interrupt();
        let watch = move || {
            while !over.load(SeqCst) {
                if number.load(SeqCst) != 0 && flag.load(SeqCst) {
                    signals::interrupt_self();
                }
                std::thread::sleep(LOOK);
            }
        };
        if let Err(e) = std::thread::Builder::new().name("prompt".to_owned()).spawn(watch) {
            let text =
                format!("no thread can be started ({e}): a signal other than ^C ends the prompt with the next line");
            shell.front.note(&text);
        }
        waiting
    }
}

impl Drop for PromptWait {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
    }
}

/// What the line editor asks while a line is typed.
struct Keys {
    names: Names,
    files: FilenameCompleter,
    colour: bool,
}

impl Helper for Keys {}

impl Completer for Keys {
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

/// A file name as it may be shown. The line gets a name up to its first control character: what is in a line is drawn as it is.
fn visible(file: &Pair) -> Pair {
    let replacement = file.replacement.split(printable::is_control).next().unwrap_or_default().to_owned();
    Pair { display: printable::line(&file.display).into_owned(), replacement }
}

impl Hinter for Keys {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        if pos < line.len() {
            None
        } else {
            complete::hint(line, &self.names).map(|hint| printable::line(&hint).into_owned())
        }
    }
}

impl Highlighter for Keys {
    /// A line from the history or the clipboard may hold control characters. Each is as wide as nothing, and is drawn as that.
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

impl Validator for Keys {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = ctx.input();
        let last = text.trim_end().rsplit('\n').next().unwrap_or("");
        // A command of the prompt's own is its line.
        let whole = prompt_command(last).is_some() || !is_incomplete(text);
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}
