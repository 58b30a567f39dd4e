//! An open script: the checked text, and its errors and warnings in the form of the protocol.
//!
//! Not in here: what is at a position (`lookup`), and messages (`mod`).

use super::positions::LineIndex;
use crate::diag::{self, Code, Diagnostic, Severity, has_errors};
use crate::model::{self, CommandKind, Model};
use crate::session::{Session, Settings, SilentFront, library};
use crate::source::{FileId, Span};
use crate::syntax;
use crate::util::printable;
use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range, TextEdit, Uri,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// A checked script with the session that knows its definitions and variables.
pub(super) struct CheckedScript {
    uri: Uri,
    pub(super) session: Session,
    pub(super) file: FileId,
    pub(super) model: Model,
    found: Vec<Diagnostic>,
    /// The lines of the script, and of the texts that it loads.
    lines: BTreeMap<FileId, LineIndex>,
}

impl CheckedScript {
    /// Checks a script as `wmlrun check` does. Definitions and variables of a script with errors are known up to the
    /// first one that fails.
    pub(super) fn new(uri: &Uri, text: &str) -> Self {
        let mut session = Session::new(Settings::default(), Arc::default());
        let is_long = text.len() as u64 > library::LONGEST;
        let name = name_of(uri);
        let file = session.map.add(&name, if is_long { "" } else { text });
        let (model, mut found, _) = session.check_script(file, &mut SilentFront::default());
        if has_errors(&found) && !session.has_read() {
            // The errors are those of the check.
            let _ = session.read_definitions(&model, &name, &mut SilentFront::default());
        }
        if is_long {
            let message = format!("the script has more than {} MiB", library::LONGEST >> 20);
            let error = Diagnostic::error(Code::OutOfRange, Span::new(file, 0, 0), message);
            found = vec![error.help("leave out what is not needed")];
        }
        let marks = found.iter().flat_map(|d| d.secondary.iter().chain([&d.primary]));
        let others = marks.map(|label| label.span.file).chain(session.loaded.texts.iter().map(|text| text.file));
        let mut lines: BTreeMap<FileId, LineIndex> = BTreeMap::new();
        for file in others.chain([file]) {
            lines.entry(file).or_insert_with(|| LineIndex::new(&session.map.file(file).text));
        }
        Self { uri: uri.clone(), session, file, model, found, lines }
    }

    pub(super) fn text(&self) -> &str {
        &self.session.map.file(self.file).text
    }

    /// Returns the offset of a position in the text.
    pub(super) fn offset(&self, position: Position) -> usize {
        self.lines.get(&self.file).map_or(0, |lines| lines.offset(self.text(), position))
    }

    /// Returns the range of a span of the script, or of a text that it loads.
    pub(super) fn range(&self, span: Span) -> Range {
        let text = &self.session.map.file(span.file).text;
        let lines = self.lines.get(&span.file);
        lines.map_or_else(Range::default, |lines| lines.range(text, span.start as usize, span.end as usize))
    }

    /// Returns the location of a span. `None` if its text is not a file, such as that of a personality.
    pub(super) fn location(&self, span: Span) -> Option<Location> {
        let uri = if span.file == self.file {
            self.uri.clone()
        } else {
            uri_of(&std::fs::canonicalize(&self.session.map.file(span.file).name).ok()?)?
        };
        Some(Location::new(uri, self.range(span)))
    }

    /// Returns all errors and warnings.
    pub(super) fn diagnostics(&self) -> Vec<lsp_types::Diagnostic> {
        self.found.iter().map(|d| self.diagnostic(d)).collect()
    }

    fn diagnostic(&self, d: &Diagnostic) -> lsp_types::Diagnostic {
        let map = &self.session.map;
        let (mut message, help) = diag::texts(map, d);
        let at = d.primary.span;
        let is_own = at.file == self.file;
        if !is_own {
            message = format!("{}:{}: {message}", printable::line(&map.file(at.file).name), map.line(at));
        }
        if !d.primary.text.is_empty() {
            message += &format!("\n{}", printable::line(&d.primary.text));
        }
        help.iter().for_each(|help| message += &format!("\nhelp: {help}"));
        let others = d.secondary.iter().chain(Some(&d.primary).filter(|_| !is_own));
        let related = others.filter_map(|label| {
            let text = if label.text.is_empty() { "here" } else { &label.text };
            let message = printable::line(text).into_owned();
            Some(DiagnosticRelatedInformation { location: self.location(label.span)?, message })
        });
        lsp_types::Diagnostic {
            range: self.range(if is_own { at } else { self.load_of(at.file) }),
            severity: Some(match d.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(d.code.number().to_owned())),
            source: Some("wmlrun".to_owned()),
            message,
            related_information: Some(related.collect()),
            ..lsp_types::Diagnostic::default()
        }
    }

    /// True if the result depends on other scripts.
    pub(super) fn has_loads(&self) -> bool {
        self.loads().next().is_some()
    }

    /// Returns the statements that load a script, with its name.
    fn loads(&self) -> impl Iterator<Item = (Span, &str)> {
        model::visit::all(&self.model.commands).filter_map(|command| match &command.kind {
            CommandKind::Load(name) => Some((command.span, self.session.map.slice(name.span).trim_matches('"'))),
            _ => None,
        })
    }

    /// Returns the statement that loads a text: the first one with a part of its name, else the first `load`.
    fn load_of(&self, file: FileId) -> Span {
        let loaded = &self.session.map.file(file).name;
        let found = self.loads().find(|(_, name)| loaded.contains(name)).or_else(|| self.loads().next());
        found.map_or(Span::new(self.file, 0, 0), |(span, _)| span)
    }

    /// Returns the edits that format the script. `None` if it can't be parsed.
    pub(super) fn formatting(&self) -> Option<Vec<TextEdit>> {
        let text = self.text();
        let formatted = syntax::format(&self.session.map, self.file).ok()?;
        let whole = Span::new(self.file, 0, text.len());
        Some(if formatted == text { Vec::new() } else { vec![TextEdit::new(self.range(whole), formatted)] })
    }
}

/// Returns the name of a document in messages: the path of a file, else the URI.
fn name_of(uri: &Uri) -> String {
    let is_file = uri.scheme().is_some_and(|scheme| scheme.as_str().eq_ignore_ascii_case("file"));
    if !is_file {
        return uri.as_str().to_owned();
    }
    let path = uri.path().as_estr().decode().into_bytes();
    Path::new(OsStr::from_bytes(&path)).display().to_string()
}

/// Returns the URI of an absolute path.
fn uri_of(path: &Path) -> Option<Uri> {
    let mut text = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(*byte)),
            // Writing to a string does not fail.
            other => _ = write!(text, "%{other:02X}"),
        }
    }
    Uri::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_and_uris() {
        for path in ["/tmp/x.wml", "/tmp/a b/ü#%?.wml"] {
            let uri = uri_of(Path::new(path)).unwrap();
            assert_eq!(name_of(&uri), path, "{}", uri.as_str());
        }
        assert_eq!(uri_of(Path::new("/a b")).unwrap().as_str(), "file:///a%20b");
        assert_eq!(name_of(&Uri::from_str("untitled:Untitled-1").unwrap()), "untitled:Untitled-1");
    }
}
