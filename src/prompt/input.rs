//! Standard input that is no terminal: one text, as it comes.

use super::PromptLoop;
use super::split::Splitter;
use crate::os::handle;
use crate::session::Status;
use std::io::Read;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// What errors call it.
const NAME: &str = "<stdin>";

/// A writer that pauses so long wants to see what its last whole statement did.
const PAUSE: Duration = Duration::from_millis(300);

/// Bytes that are read at a time, and how many such blocks may wait; a faster writer waits.
const BLOCK: usize = 64 << 10;
const AHEAD: usize = 16;

/// Does what comes on standard input, to its end.
pub(super) fn run(shell: &mut PromptLoop<'_>) {
    // A file does not pause, however slowly it is read.
    let file = handle::is_regular(std::io::stdin());
    let (send, blocks) = mpsc::sync_channel(AHEAD);
    // Detached: it may sit in a read that never returns, and ends with the program.
    let reader = move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut block = vec![0; BLOCK];
            match input.read(&mut block) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    block.truncate(n);
                    if send.send(block).is_err() {
                        return;
                    }
                }
            }
        }
    };
    if let Err(e) = std::thread::Builder::new().name("input".to_owned()).spawn(reader) {
        let help = "raise `ulimit -u` or the control group's `pids.max`";
        shell.front.error(None, &format!("no thread can be started to read standard input: {e}"), Some(help));
        shell.worst = shell.worst.max(Status::Refused);
        return;
    }
    follow(shell, &blocks, !file);
}

/// Does statements as they come.
fn follow(shell: &mut PromptLoop<'_>, blocks: &Receiver<Vec<u8>>, pauses: bool) {
    let mut splitter = Splitter::new();
    let mut rest: Vec<u8> = Vec::new();
    loop {
        match blocks.recv_timeout(PAUSE) {
            Ok(block) => {
                let mut from = 0;
                for (at, _) in block.iter().enumerate().filter(|(_, b)| **b == b'\n') {
                    rest.extend(&block[from..at]);
                    from = at + 1;
                    let line = String::from_utf8_lossy(&rest).trim_end_matches('\r').to_owned();
                    rest.clear();
                    if !splitter.line(&line).iter().all(|text| shell.does(NAME, text)) {
                        return;
                    }
                }
                rest.extend(&block[from..]);
            }
            Err(RecvTimeoutError::Timeout) => {
                if shell.ended() {
                    return;
                }
                if pauses && rest.is_empty() && splitter.is_whole() {
                    let text = splitter.finish();
                    if !text.iter().all(|text| shell.does(NAME, text)) {
                        return;
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let mut texts = splitter.line(&String::from_utf8_lossy(&rest));
                texts.extend(splitter.finish());
                let _ = texts.iter().all(|text| shell.does(NAME, text));
                return;
            }
        }
    }
}
