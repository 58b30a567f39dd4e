//! The shell on standard input that is not a terminal: executes statements as they arrive.

use super::PromptLoop;
use super::split::Splitter;
use crate::diag::Failure;
use crate::os::handle;
use std::io::Read;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Name of the input in diagnostics.
const NAME: &str = "<stdin>";

/// If a pipe's writer pauses for this time, a complete last statement is executed without waiting for the next one.
const PAUSE: Duration = Duration::from_millis(300);

/// Size of a read in bytes.
const BLOCK: usize = 64 << 10;
/// Maximum number of blocks that are read ahead. Then the writer blocks.
const MAX_BLOCKS_AHEAD: usize = 16;

/// Executes the statements of standard input until its end.
pub(super) fn run(shell: &mut PromptLoop<'_>) {
    // A regular file has no pauses, even if reads are slow.
    let file = handle::is_regular(std::io::stdin());
    let (send, blocks) = mpsc::sync_channel(MAX_BLOCKS_AHEAD);
    // The thread is detached, since it may block in a read forever. It ends with the program.
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
        let failure = Failure::refused(format!("can't start a thread to read standard input: {e}"), help);
        shell.worst = shell.worst.max(shell.front.status(Err(failure)));
        return;
    }
    execute_stream(shell, &blocks, !file);
}

/// Executes statements as they arrive. With `pauses`, a pause of the writer ends a complete statement.
fn execute_stream(shell: &mut PromptLoop<'_>, blocks: &Receiver<Vec<u8>>, pauses: bool) {
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
                    if !splitter.line(&line).iter().all(|text| shell.execute(NAME, text)) {
                        return;
                    }
                }
                rest.extend(&block[from..]);
            }
            Err(RecvTimeoutError::Timeout) => {
                if shell.ended() {
                    return;
                }
                if pauses && rest.is_empty() && splitter.is_complete() {
                    let text = splitter.finish();
                    if !text.iter().all(|text| shell.execute(NAME, text)) {
                        return;
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let mut texts = splitter.line(&String::from_utf8_lossy(&rest));
                texts.extend(splitter.finish());
                let _ = texts.iter().all(|text| shell.execute(NAME, text));
                return;
            }
        }
    }
}
