//! The messages of the protocol on standard input and output: a header with the length of a message, and JSON.
//!
//! Not the transport of `lsp_server`: it makes room for the length that a header names before a byte has arrived, and
//! repeats a whole message in its errors.

use crate::session::library;
use crossbeam::channel::{Receiver, Sender, bounded};
use lsp_server::{Connection, Message};
use lsp_types::notification::{Exit, Notification as _};
use std::io::{self, BufRead, ErrorKind, Read};
use std::thread::{self, JoinHandle};

/// The maximum length of a message in bytes. In JSON a text of ASCII is at most twice as long.
const MAX_MESSAGE: u64 = 2 * library::LONGEST;

/// The maximum length of a header in bytes. Those of editors have two lines.
const MAX_HEADER: u64 = 8 << 10;

/// The threads that read and write messages.
pub(super) struct WireThreads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl WireThreads {
    /// Waits for the end of both threads. Returns the error of a message that could not be read or written.
    pub(super) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server has failed")))
        };
        ended(self.reader).and(ended(self.writer))
    }
}

/// Connects the server with standard input and output.
pub(super) fn connect() -> io::Result<(Connection, WireThreads)> {
    let (sender, written) = bounded(0);
    let (read, receiver) = bounded(0);
    let thread = |name: &str| thread::Builder::new().name(name.to_owned());
    let reader = thread("lsp-reader").spawn(move || read_all(&mut io::stdin().lock(), &read))?;
    let writer = thread("lsp-writer").spawn(move || write_all(&written))?;
    Ok((Connection { sender, receiver }, WireThreads { reader, writer }))
}

/// Passes on messages up to `exit` or the end of the input.
fn read_all(input: &mut impl BufRead, to: &Sender<Message>) -> io::Result<()> {
    while let Some(message) = read(input)? {
        let is_exit = matches!(&message, Message::Notification(notification) if notification.method == Exit::METHOD);
        to.send(message).map_err(io::Error::other)?;
        if is_exit {
            break;
        }
    }
    Ok(())
}

fn write_all(from: &Receiver<Message>) -> io::Result<()> {
    let mut output = io::stdout().lock();
    from.iter().try_for_each(|message| message.write(&mut output))
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

/// Reads a message. Returns `None` at the end of the input before one. The memory grows with the bytes that arrive, not
/// with the length in the header.
fn read(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let Some(length) = read_header(input)? else { return Ok(None) };
    if length > MAX_MESSAGE {
        return Err(wrong(format!("a message has more than {} MiB", MAX_MESSAGE >> 20)));
    }
    let mut content = Vec::new();
    if input.take(length).read_to_end(&mut content)? as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let malformed =
        |e: serde_json::Error| wrong(format!("a message is not one of the protocol, at byte {}", e.column()));
    serde_json::from_slice(&content).map(Some).map_err(malformed)
}

/// Reads a header. Returns the length of its message, or `None` at the end of the input before a header.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut header = input.take(MAX_HEADER);
    let (mut line, mut length) = (Vec::new(), None);
    loop {
        line.clear();
        if header.read_until(b'\n', &mut line)? == 0 {
            return if header.limit() == 0 { Err(wrong("a header is too long")) } else { Ok(None) };
        }
        let text = line.strip_suffix(b"\r\n").and_then(|line| std::str::from_utf8(line).ok());
        let text = text.ok_or_else(|| wrong("a header is malformed"))?;
        if text.is_empty() {
            return length.map(Some).ok_or_else(|| wrong("a header has no `Content-Length`"));
        }
        let (name, value) = text.split_once(':').ok_or_else(|| wrong("a header is malformed"))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            let number = value.trim().parse().map_err(|_| wrong("the `Content-Length` of a header is not a length"))?;
            length = Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn error(text: &str) -> String {
        read(&mut text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn messages_are_read_one_after_another() {
        let (first, second) = (r#"{"method":"a"}"#, r#"{"id":1,"method":"ü"}"#);
        let text = format!(
            "Content-Length: {}\r\n\r\n{first}Content-Type: x\r\ncontent-length:{}\r\n\r\n{second}",
            first.len(),
            second.len()
        );
        let mut input = text.as_bytes();
        assert!(matches!(read(&mut input).unwrap(), Some(Message::Notification(found)) if found.method == "a"));
        assert!(matches!(read(&mut input).unwrap(), Some(Message::Request(found)) if found.method == "ü"));
        assert!(read(&mut input).unwrap().is_none());
    }

    /// None of them makes room for what it only announces, and none is repeated.
    #[test]
    fn a_wrong_message_is_refused() {
        for length in ["9223372036854775807", "18446744073709551615", "134217729"] {
            assert_eq!(error(&format!("Content-Length: {length}\r\n\r\n{{}}")), "a message has more than 128 MiB");
        }
        for length in ["18446744073709551616", "-1", "secret", ""] {
            let found = error(&format!("Content-Length: {length}\r\n\r\n{{}}"));
            assert_eq!(found, "the `Content-Length` of a header is not a length", "{length}");
        }
        assert_eq!(error(&"x".repeat(9 << 10)), "a header is malformed");
        assert_eq!(error(&"x: y\r\n".repeat(8 << 10)), "a header is malformed");
        assert_eq!(error("x: y.\r\n\n"), "a header is malformed");
        assert_eq!(error("\r\n"), "a header has no `Content-Length`");
        assert_eq!(error("Content-Length: 6\r\n\r\nsecret"), "a message is not one of the protocol, at byte 1");
        let unended = read(&mut &b"Content-Length: 100000000\r\n\r\n{"[..]).unwrap_err();
        assert_eq!(unended.kind(), ErrorKind::UnexpectedEof);
    }
}
