//! Draws diagnostics. The only file that knows the drawing library.
//!
//! Deliberately absent: what is wrong, and where it goes (a terminal, a file): that is for who calls.

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Label, Severity};
use crate::source::{FileId, SourceMap, Span};

/// How to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Letters only: for files and pipes.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// All of them, in the order given, as a person reads them; a blank line between.
pub fn render(map: &SourceMap, diagnostics: &[Diagnostic], style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&[group(map, diagnostic)]));
        out.push('\n');
    }
    out
}

fn group<'a>(map: &'a SourceMap, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.number());
    let mut elements: Vec<Element<'a>> = Vec::new();
    // A file at a time, that of the primary mark first: a script and the one that it loads may both be to blame.
    let mut files = vec![diagnostic.primary.span.file];
    for label in &diagnostic.secondary {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    for file in files {
        elements.push(snippet(map, file, diagnostic).into());
    }
    elements.extend(diagnostic.help.iter().map(|help| Level::HELP.message(help.as_str()).into()));
    title.elements(elements)
}

/// The marks in one file, over those lines of it that they need: the library's cost is that of the text it is given.
fn snippet<'a>(map: &'a SourceMap, file: FileId, diagnostic: &'a Diagnostic) -> Snippet<'a, Annotation<'a>> {
    let source = map.file(file);
    let text = source.text.as_str();
    let primary = std::iter::once((AnnotationKind::Primary, &diagnostic.primary));
    let secondary = diagnostic.secondary.iter().map(|label| (AnnotationKind::Context, label));
    let marks: Vec<(AnnotationKind, (usize, usize), &Label)> = primary
        .chain(secondary)
        .filter(|(_, label)| label.span.file == file)
        .map(|(kind, label)| (kind, clamp(text, label.span), label))
        .collect();
    let first = marks.iter().map(|(_, (start, _), _)| *start).min().unwrap_or(0);
    let last = marks.iter().map(|(_, (_, end), _)| *end).max().unwrap_or(0);
    let from = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let to = text[last..].find('\n').map_or(text.len(), |at| last + at);
    let line = map.line(Span::new(file, from, from)) as usize;
    Snippet::source(&text[from..to]).path(source.name.as_str()).line_start(line).annotations(marks.into_iter().map(
        |(kind, (start, end), label)| {
            let text = (!label.text.is_empty()).then_some(label.text.as_str());
            kind.span(start - from..end - from).label(text)
        },
    ))
}

/// A span within the text, on character boundaries.
fn clamp(text: &str, span: Span) -> (usize, usize) {
    let mut start = (span.start as usize).min(text.len());
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    (start, end)
}
