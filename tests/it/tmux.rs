//! Terminals for tests: tmux sessions whose screen and title can be read.
//!
//! [`terminals`] returns whether they are available. Dropping a terminal ends its program.

use crate::cmd::{has, skip, stateless};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A time limit that only a hang reaches.
const LONG: Duration = Duration::from_mins(2);
/// For how long tmux may take to read the rest.
const DRAINED: Duration = Duration::from_secs(10);

/// Whether a screen ends with an empty prompt of the shell, which names a script.
pub(crate) fn at_prompt(screen: &str) -> bool {
    let last = screen.trim_end().lines().last().unwrap_or_default();
    last.ends_with('>') && !last.contains(char::is_whitespace)
}

/// A terminal of its own, with a shell in it.
pub(crate) struct Terminal {
    socket: String,
    status: PathBuf,
}

impl Terminal {
    /// Runs a command in `dir`; `size` is columns and rows.
    pub(crate) fn start(dir: &Path, size: (usize, usize), command: &str) -> Self {
        let unique = dir.file_name().unwrap().to_string_lossy().into_owned();
        let status = dir.join("status");
        // tmux itself now and then misses how its program ended. ^C comes to the shell around it too, which must not end by it.
        let command = format!("trap : INT; {command}; echo $? > {}", status.display());
        let terminal = Self { socket: format!("wmlrun-{}-{unique}", std::process::id()), status };
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let dir = dir.display().to_string();
        // What a pane showed last can be read after its program has gone.
        let keep = ["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"];
        let session = ["new-session", "-d", "-x", &width, "-y", &height, "-c", &dir, &command];
        terminal.tmux(&[&["-f", "/dev/null"], &keep[..], &session[..]].concat());
        terminal
    }

    /// What a command of tmux prints.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        // Without UTF-8, tmux and the program show ASCII.
        let mut command = stateless("tmux");
        command.env("LC_ALL", "C.UTF-8").args(["-L", &self.socket]).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// What it shows.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// All that was ever shown, scrolled off or not.
    pub(crate) fn scrolled(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    /// Waits until it shows something.
    #[track_caller]
    pub(crate) fn wait(&self, what: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            // The same twice: a terminal may be seen while it is still being written to.
            if what(&screen) && screen == self.screen() {
                return screen;
            }
            assert!(since.elapsed() < LONG, "it did not appear; the screen shows\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the program to end; its exit status.
    #[track_caller]
    pub(crate) fn ends(&self) -> String {
        let since = Instant::now();
        loop {
            if let Ok(status) = std::fs::read_to_string(&self.status)
                && status.ends_with('\n')
            {
                self.drain();
                return status.trim().to_owned();
            }
            assert!(since.elapsed() < LONG, "it never ended; the screen shows\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until tmux has read all that a program wrote before it ended: a busy server reads it later than the status is
    /// there.
    fn drain(&self) {
        let since = Instant::now();
        while self.tmux(&["display-message", "-p", "#{pane_dead}"]).trim() != "1" && since.elapsed() < DRAINED {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for an empty prompt on an empty screen.
    #[track_caller]
    pub(crate) fn fresh(&self) {
        self.keys(&["C-l"]);
        self.wait(|screen| at_prompt(screen) && screen.trim().lines().count() == 1);
    }

    /// Types a line, and waits until it is done and the next prompt is there.
    #[track_caller]
    pub(crate) fn line(&self, text: &str) -> String {
        self.fresh();
        self.keys(&[text, "Enter"]);
        self.wait(|screen| at_prompt(screen) && screen.trim().lines().count() > 1)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

/// Whether there can be terminals.
pub(crate) fn terminals() -> bool {
    if !has("tmux") {
        skip("tmux is not installed");
        return false;
    }
    true
}
