//! The interactive shell.
//!
//! In: lines. Out: what a session does with them. Deliberately absent: what any command does (`session`).

use crate::session::{Front, Session, Status};
use std::io::Read;

/// Runs a shell on standard input until it ends or says `quit`.
pub fn run(mut session: Session, script: Option<(&str, &str)>, front: &mut dyn Front) -> Status {
    let mut worst = Status::Done;
    if let Some((name, text)) = script {
        worst = session.load(name, text, front);
    }
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        worst = Status::Script;
    }
    for statement in text.lines() {
        if !statement.trim().is_empty() {
            worst = worst.max(session.typed(statement, front));
        }
        if session.has_quit() {
            break;
        }
    }
    session.finish(front).max(worst)
}
