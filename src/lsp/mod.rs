//! `wmlrun setup lsp`: a language server for scripts. It reads the messages of an editor from standard input, and writes its
//! own to standard output.
//!
//! The editor sends the whole text after each change. The server checks it as `wmlrun check` does, and nothing that a
//! text contains ends the server. Requests for a changed text check it first; its errors and warnings are sent when the
//! editor has been quiet for `QUIET`. Scripts that a text loads are read from the disk, even if they are open, and again
//! after each change of a document. Deliberately absent: the words of the language, which come from the tables of `spec`,
//! `flowop` and `prompt`.

mod document;
mod lookup;
mod positions;
mod wire;
#[cfg(test)]
mod tests;

use crate::version::VERSION;
use crossbeam::channel::RecvTimeoutError;
use document::CheckedScript;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, Formatting, GotoDefinition, HoverRequest, Initialize, Request as LspRequest, Shutdown,
};
use lsp_types::{
    CompletionOptions, CompletionResponse, GotoDefinitionResponse, HoverProviderCapability, InitializeResult, OneOf,
    PositionEncodingKind, PublishDiagnosticsParams, ServerCapabilities, ServerInfo, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Uri,
};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

/// Time without a message after which a changed text is checked, so that it is not checked after each key.
const QUIET: Duration = Duration::from_millis(50);

/// Serves the editor on standard input and output until it ends the server. Returns whether it ended the server by
/// `shutdown` and `exit`. Returns an error if its messages can't be read.
pub(crate) fn run() -> io::Result<bool> {
    let (connection, threads) = wire::connect()?;
    let end = LanguageServer::new(&connection).serve();
    // The thread that writes ends when the connection is dropped.
    drop(connection);
    if end == ServerEnd::Unread {
        // The other thread may still wait for input.
        return Ok(false);
    }
    threads.join()?;
    Ok(end == ServerEnd::Regular)
}

/// How the server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServerEnd {
    /// By `shutdown` and `exit`.
    Regular,
    /// By `exit` alone, or the end of the input.
    Early,
    /// The editor has closed the server's output.
    Unread,
}

/// A document that the editor has opened.
struct OpenDocument {
    uri: Uri,
    version: i32,
    text: String,
    /// The result of checking the text. `None` since the text, or one that it may load, was changed.
    checked: Option<CheckedScript>,
}

/// A server for one editor.
struct LanguageServer<'a> {
    connection: &'a Connection,
    /// By URI.
    documents: BTreeMap<String, OpenDocument>,
    /// The documents whose diagnostics the editor does not have.
    unpublished: BTreeSet<String>,
    /// The checked documents that load scripts.
    loaders: BTreeSet<String>,
    is_initialized: bool,
    is_shut_down: bool,
}

impl<'a> LanguageServer<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            documents: BTreeMap::new(),
            unpublished: BTreeSet::new(),
            loaders: BTreeSet::new(),
            is_initialized: false,
            is_shut_down: false,
        }
    }

    /// Answers messages until the editor ends the server.
    fn serve(&mut self) -> ServerEnd {
        loop {
            let received = match self.unpublished.is_empty() {
                false => self.connection.receiver.recv_timeout(QUIET),
                true => self.connection.receiver.recv().map_err(RecvTimeoutError::from),
            };
            let is_read = match received {
                Ok(Message::Request(request)) => {
                    let response = self.respond(request);
                    self.send(response)
                }
                Ok(Message::Notification(notification)) if notification.method == Exit::METHOD => {
                    return if self.is_shut_down { ServerEnd::Regular } else { ServerEnd::Early };
                }
                Ok(Message::Notification(notification)) => self.note(notification),
                // The server sends no requests.
                Ok(Message::Response(_)) => true,
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return ServerEnd::Early,
            };
            if !is_read {
                return ServerEnd::Unread;
            }
        }
    }

    /// Sends a message. Returns whether the editor still reads.
    fn send(&self, message: impl Into<Message>) -> bool {
        self.connection.sender.send(message.into()).is_ok()
    }

    fn respond(&mut self, request: Request) -> Response {
        let refused = |request: Request, code: ErrorCode, message: &str| {
            Response::new_err(request.id, code as i32, message.to_owned())
        };
        match request.method.as_str() {
            _ if self.is_shut_down => refused(request, ErrorCode::InvalidRequest, "the server was shut down"),
            Initialize::METHOD => {
                self.is_initialized = true;
                Response::new_ok(request.id, initialize_result())
            }
            _ if !self.is_initialized => {
                refused(request, ErrorCode::ServerNotInitialized, "the first request must be `initialize`")
            }
            Shutdown::METHOD => {
                self.is_shut_down = true;
                Response::new_ok(request.id, ())
            }
            HoverRequest::METHOD => self.answer::<HoverRequest>(request, |server, params| {
                let at = params.text_document_position_params;
                server.checked(&at.text_document.uri)?.hover(at.position)
            }),
            Completion::METHOD => self.answer::<Completion>(request, |server, params| {
                let at = params.text_document_position;
                server.checked(&at.text_document.uri)?.completion(at.position).map(CompletionResponse::List)
            }),
            GotoDefinition::METHOD => self.answer::<GotoDefinition>(request, |server, params| {
                let at = params.text_document_position_params;
                let found = server.checked(&at.text_document.uri)?.definition(at.position);
                Some(GotoDefinitionResponse::Array(found))
            }),
            Formatting::METHOD => self.answer::<Formatting>(request, |server, params| {
                server.checked(&params.text_document.uri)?.formatting()
            }),
            _ => refused(request, ErrorCode::MethodNotFound, "the server does not know this request"),
        }
    }

    /// Answers a request, or reports that its parameters are wrong.
    fn answer<R: LspRequest>(
        &mut self,
        request: Request,
        respond: impl FnOnce(&mut Self, R::Params) -> R::Result,
    ) -> Response {
        match serde_json::from_value(request.params) {
            Ok(params) => Response::new_ok(request.id, respond(self, params)),
            Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
        }
    }

    /// Returns a document, checked. `None` if it is not open.
    fn checked(&mut self, uri: &Uri) -> Option<&CheckedScript> {
        let document = self.documents.get_mut(uri.as_str())?;
        if document.checked.is_none() {
            let checked = CheckedScript::new(&document.uri, &document.text);
            if checked.has_loads() {
                self.loaders.insert(uri.as_str().to_owned());
            }
            document.checked = Some(checked);
        }
        document.checked.as_ref()
    }

    /// Handles a notification. One with wrong parameters is ignored, because a notification has no answer. Returns
    /// whether the editor still reads.
    fn note(&mut self, notification: Notification) -> bool {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(params) = params_of::<DidOpenTextDocument>(notification) {
                    let opened = params.text_document;
                    self.change(opened.uri, opened.version, opened.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(mut params) = params_of::<DidChangeTextDocument>(notification)
                    // Only whole texts were agreed on.
                    && let Some(last) = params.content_changes.pop().filter(|change| change.range.is_none())
                {
                    self.change(params.text_document.uri, params.text_document.version, last.text);
                }
            }
            DidSaveTextDocument::METHOD => self.expire_loaders(),
            DidCloseTextDocument::METHOD => {
                if let Some(params) = params_of::<DidCloseTextDocument>(notification) {
                    let name = params.text_document.uri.as_str();
                    self.documents.remove(name);
                    self.unpublished.remove(name);
                    self.loaders.remove(name);
                    self.expire_loaders();
                    return self.send_diagnostics(params.text_document.uri, None, Vec::new());
                }
            }
            _ => {}
        }
        true
    }

    fn change(&mut self, uri: Uri, version: i32, text: String) {
        let name = uri.as_str().to_owned();
        self.loaders.remove(&name);
        self.unpublished.insert(name.clone());
        self.documents.insert(name, OpenDocument { uri, version, text, checked: None });
        self.expire_loaders();
    }

    /// Has all documents that load scripts checked again, since a file that they load may have changed.
    fn expire_loaders(&mut self) {
        for name in std::mem::take(&mut self.loaders) {
            if let Some(document) = self.documents.get_mut(&name) {
                document.checked = None;
                self.unpublished.insert(name);
            }
        }
    }

    /// Sends the diagnostics of all changed documents. Returns whether the editor still reads.
    fn publish(&mut self) -> bool {
        for name in std::mem::take(&mut self.unpublished) {
            let Some(document) = self.documents.get(&name) else { continue };
            let (uri, version) = (document.uri.clone(), document.version);
            let found = self.checked(&uri).map(CheckedScript::diagnostics).unwrap_or_default();
            if !self.send_diagnostics(uri, Some(version), found) {
                return false;
            }
        }
        true
    }

    fn send_diagnostics(&self, uri: Uri, version: Option<i32>, found: Vec<lsp_types::Diagnostic>) -> bool {
        let params = PublishDiagnosticsParams::new(uri, found, version);
        self.send(Notification::new(PublishDiagnostics::METHOD.to_owned(), params))
    }
}

fn params_of<N: lsp_types::notification::Notification>(notification: Notification) -> Option<N::Params>
where
    N::Params: DeserializeOwned,
{
    serde_json::from_value(notification.params).ok()
}

fn initialize_result() -> InitializeResult {
    let triggers = ["$", "=", ",", "("].map(str::to_owned).to_vec();
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(PositionEncodingKind::UTF16),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::FULL),
                save: Some(TextDocumentSyncSaveOptions::Supported(true)),
                ..TextDocumentSyncOptions::default()
            })),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some(triggers),
                ..CompletionOptions::default()
            }),
            definition_provider: Some(OneOf::Left(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo { name: "wmlrun".to_owned(), version: Some(VERSION.to_owned()) }),
    }
}
