//! Renders diagnostics as text with source excerpts. The only file that uses the drawing library.
//!
//! Not in here: writing the text to a terminal or a file, which the caller does.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span};
use std::ffi::OsStr;
use wml_text::{printable, wrap};

/// The style of rendered diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For a terminal: messages and help are broken between words, and lines of the source are truncated.
    Terminal {
        /// Whether there are colours.
        colours: bool,
        /// The width of the terminal.
        columns: usize,
    },
}

/// Whether the user wants colours on terminals, by the environment variable `NO_COLOR`.
pub fn wants_colours() -> bool {
    allows_colours(std::env::var_os("NO_COLOR").as_deref())
}

/// The rule of <https://no-color.org> for the value of `NO_COLOR`: no colours if it is set and not empty.
fn allows_colours(no_color: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty)
}

/// Maximum width of a source line in an excerpt, in columns. On a terminal it is the width of the terminal if that is less.
const COLUMNS: usize = 200;

/// The columns between the number of a source line and its text.
const GUTTER: usize = 3;

/// Maximum length of a message, a label or a help line, in characters. A longer one quotes a long part of the source.
const MESSAGE_LENGTH: usize = 1000;

/// Maximum distance from the first to the last mark of one excerpt, in bytes. Marks that are farther apart get separate
/// excerpts.
const EXCERPT_BYTES: usize = 16 << 10;

/// Renders diagnostics in the given order, with a blank line between them. Control characters in source, names and
/// messages are escaped, long source lines are truncated, and hidden source texts are not quoted.
pub fn render(map: &SourceMap, diagnostics: &[Diagnostic], style: Style) -> String {
    let (renderer, columns) = match style {
        Style::Plain => (Renderer::plain(), None),
        Style::Terminal { colours: false, columns } => (Renderer::plain(), Some(columns)),
        Style::Terminal { colours: true, columns } => (Renderer::styled(), Some(columns)),
    };
    let mut out = String::new();
    for diagnostic in diagnostics {
        if !out.is_empty() {
            out.push('\n');
        }
        let mut corrections = Vec::new();
        let rendered = renderer.render(&[group(map, diagnostic, columns, &mut corrections)]);
        out.push_str(&correct_positions(rendered, &corrections));
        out.push('\n');
    }
    out
}

/// A position as the library prints it, with the column in the excerpt, and the same position with the column in the
/// source.
type PositionCorrection = (String, String);

/// Replaces positions in excerpts by positions in the source, in the header lines of a rendered diagnostic.
fn correct_positions(rendered: String, corrections: &[PositionCorrection]) -> String {
    if corrections.is_empty() {
        return rendered;
    }
    let correct = |line: &str| {
        let trimmed = line.trim_start();
        let head = trimmed.starts_with("-->") || trimmed.starts_with(":::") || trimmed.starts_with('\x1b');
        let whole = |shown: &str| {
            let rest = line.find(shown).map(|at| &line[at + shown.len()..]);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let found = corrections.iter().find(|(shown, _)| head && whole(shown));
        found.map_or_else(|| line.to_owned(), |(shown, corrected)| line.replacen(shown, corrected, 1))
    };
    rendered.split('\n').map(correct).collect::<Vec<_>>().join("\n")
}

/// The narrowest column into which messages are broken.
const LEAST_COLUMNS: usize = 30;

/// Converts a diagnostic to the library's form. Appends the position corrections of its excerpts.
fn group<'a>(
    map: &'a SourceMap,
    diagnostic: &'a Diagnostic,
    columns: Option<usize>,
    corrections: &mut Vec<PositionCorrection>,
) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let (message, help) = texts(map, diagnostic);
    // The library aligns further lines below the text behind the label, `warning[W0417]: ` or `    = help: `. The number
    // of a line in an excerpt determines where the label of help begins.
    let broken = |text: String, label: usize| match columns {
        Some(columns) => wrap::fill(&text, columns.saturating_sub(label).max(LEAST_COLUMNS), ""),
        None => text,
    };
    let message = broken(message, "warning[W0000]: ".len());
    let title = level.primary_title(message).id(diagnostic.code.number());
    let mut elements: Vec<Element<'a>> = Vec::new();
    // The marks are grouped by file, with the file of the primary mark first. A diagnostic can concern a script and a
    // script that it loads.
    let mut files = vec![diagnostic.primary.span.file];
    for label in &diagnostic.secondary {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    let marks = std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary);
    let last =
        marks.map(|label| map.line(Span::new(label.span.file, label.span.end as usize, label.span.end as usize)));
    let number = last.max().unwrap_or(1).to_string().len();
    let width =
        columns.map_or(COLUMNS, |columns| columns.saturating_sub(GUTTER + number).clamp(LEAST_COLUMNS, COLUMNS));
    for file in files {
        elements.extend(file_excerpts(map, file, diagnostic, width, corrections));
    }
    let help = help.into_iter().map(|help| broken(help, "      = help: ".len()));
    elements.extend(help.map(|help| Level::HELP.message(help).into()));
    title.elements(elements)
}

/// Returns the message of a diagnostic and its help messages as they are shown: shortened, with escaped control
/// characters, and without quotations of a hidden text.
pub fn texts(map: &SourceMap, diagnostic: &Diagnostic) -> (String, Vec<String>) {
    let short = |text: &str| printable::short(text, MESSAGE_LENGTH).into_owned();
    if !map.file(diagnostic.primary.span.file).hidden {
        return (short(&diagnostic.message), diagnostic.help.iter().map(|help| short(help)).collect());
    }
    let help = diagnostic.help.iter().filter(|help| !help.contains('`')).map(|help| short(help));
    let why = "its text is not shown, because it is outside the folder of the file that names it: `wmlrun check FILE` shows it";
    (short(&without_quotations(&diagnostic.message)), help.chain([why.to_owned()]).collect())
}

/// Replaces the quotations (texts in backticks) of a message by `…`.
fn without_quotations(message: &str) -> String {
    message.split('`').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "`…`" }).collect()
}

/// Returns the excerpts of one file that show its marks.
fn file_excerpts<'a>(
    map: &SourceMap,
    file: FileId,
    diagnostic: &Diagnostic,
    width: usize,
    corrections: &mut Vec<PositionCorrection>,
) -> Vec<Element<'a>> {
    let source = map.file(file);
    let text = source.text.as_str();
    let primary = std::iter::once((AnnotationKind::Primary, &diagnostic.primary));
    let secondary = diagnostic.secondary.iter().map(|label| (AnnotationKind::Context, label));
    let mut annotations: Vec<Annotation<'_>> = primary
        .chain(secondary)
        .filter(|(_, label)| label.span.file == file)
        .map(|(kind, label)| Annotation { kind, at: clamp(text, label.span), label: label.text.as_str() })
        .collect();
    let Some(start) = annotations.first().map(|annotation| annotation.at.0) else { return Vec::new() };
    let name = printable::line(&source.name).into_owned();
    if source.hidden {
        let (line, column) = map.line_col(Span::new(file, start, start));
        return vec![Origin::path(name).line(line as usize).char_column(column as usize).into()];
    }
    let first = annotations.iter().map(|annotation| annotation.at.0).min().unwrap_or(0);
    let last = annotations.iter().map(|annotation| annotation.at.1).max().unwrap_or(0);
    if last - first <= EXCERPT_BYTES {
        return vec![excerpt(map, file, name, &annotations, width, corrections)];
    }
    // The library's cost grows with the length of the text that it gets, so each marked line gets a separate excerpt.
    let mut elements = Vec::new();
    for annotation in &mut annotations {
        annotation.at.1 =
            text[annotation.at.0..annotation.at.1].find('\n').map_or(annotation.at.1, |at| annotation.at.0 + at);
    }
    while let Some(annotation) = annotations.first() {
        let line = map.line(Span::new(file, annotation.at.0, annotation.at.0));
        let (here, others): (Vec<_>, Vec<_>) = annotations
            .into_iter()
            .partition(|annotation| map.line(Span::new(file, annotation.at.0, annotation.at.0)) == line);
        elements.push(excerpt(map, file, name.clone(), &here, width, corrections));
        annotations = others;
    }
    elements
}

/// A mark: a range of bytes of the text, and its label.
struct Annotation<'a> {
    kind: AnnotationKind,
    at: (usize, usize),
    label: &'a str,
}

/// Returns an excerpt of the lines from the first to the last of the marks.
fn excerpt<'a>(
    map: &SourceMap,
    file: FileId,
    name: String,
    annotations: &[Annotation<'_>],
    width: usize,
    corrections: &mut Vec<PositionCorrection>,
) -> Element<'a> {
    let text = map.file(file).text.as_str();
    let first = annotations.iter().map(|annotation| annotation.at.0).min().unwrap_or(0);
    let last = annotations.iter().map(|annotation| annotation.at.1).max().unwrap_or(0);
    let from = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let to = text[last..].find('\n').map_or(text.len(), |at| last + at);
    let line = map.line(Span::new(file, from, from)) as usize;
    let points: Vec<usize> =
        annotations.iter().flat_map(|annotation| [annotation.at.0 - from, annotation.at.1 - from]).collect();
    let (shown, points) = displayed_lines(&text[from..to], &points, width);
    if shown != text[from..to] {
        for (annotation, at) in annotations.iter().zip(points.chunks(2)) {
            let column = shown[..at[0]].chars().rev().take_while(|c| *c != '\n').count() + 1;
            let (line, source_column) = map.line_col(Span::new(file, annotation.at.0, annotation.at.0));
            corrections.push((format!("{name}:{line}:{column}"), format!("{name}:{line}:{source_column}")));
        }
    }
    let annotations = annotations.iter().zip(points.chunks(2)).map(|(annotation, at)| {
        let label =
            (!annotation.label.is_empty()).then(|| printable::short(annotation.label, MESSAGE_LENGTH).into_owned());
        annotation.kind.span(at[0]..at[1]).label(label)
    });
    let annotations: Vec<_> = annotations.collect();
    Snippet::source(shown).path(name).line_start(line).annotations(annotations).into()
}

/// Returns the lines of a text as they are displayed, with control characters escaped and each truncated to `width`
/// columns, and the offset in the displayed text of each offset in `points`.
fn displayed_lines(text: &str, points: &[usize], width: usize) -> (String, Vec<usize>) {
    let mut out = String::new();
    let mut moved = vec![0; points.len()];
    let mut start = 0;
    for line in text.split('\n') {
        if start > 0 {
            out.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        let on_it = |point: usize| point >= start && point <= start + line.len();
        // The line is truncated around its first mark.
        let focus = points.iter().copied().find(|p| on_it(*p)).map_or(0, |p| p - start);
        let base = out.len();
        let (shown, offsets) = truncate(line, focus, width);
        out.push_str(&shown);
        for (point, moved) in points.iter().zip(&mut moved) {
            if *point >= start {
                let at = offsets.partition_point(|(source, _)| *source < *point - start);
                *moved = base + offsets.get(at).map_or(shown.len(), |(_, displayed)| *displayed);
            }
        }
        start += line.len() + text[start + line.len()..].find('\n').map_or(0, |at| at + 1);
    }
    (out, moved)
}

/// Truncates a line to `most` columns around the byte `focus` and escapes its control characters. Returns the
/// displayed line and, for each displayed character, its offset in the line and its offset in the displayed line.
fn truncate(line: &str, focus: usize, most: usize) -> (String, Vec<(usize, usize)>) {
    let columns = |c: char| match c {
        '\t' => 4,
        c if printable::is_control(c) => printable::escaped(c).len(),
        c => printable::columns(c),
    };
    let mut from = 0;
    let mut width = 0;
    // A line that is too wide is displayed from a few columns before the focus.
    let most_before = most * 3 / 10;
    if line.chars().any(|c| {
        width += columns(c);
        width > most
    }) {
        let mut before = 0;
        let back = line[..focus].char_indices().rev().take_while(|(_, c)| {
            before += columns(*c);
            before < most_before
        });
        from = back.last().map_or(focus, |(at, _)| at);
        // Omitting fewer than 4 bytes would save hardly any space, since `…` takes a column itself.
        if from < 4 {
            from = 0;
        }
    }
    let mut out = String::new();
    let mut offsets = Vec::new();
    let mut width = 0;
    if from > 0 {
        out.push('…');
        width = 1;
    }
    for (at, c) in line[from..].char_indices() {
        width += columns(c);
        let rest = from + at + c.len_utf8() < line.len();
        if width + usize::from(rest) > most {
            out.push('…');
            break;
        }
        offsets.push((from + at, out.len()));
        if c != '\t' && printable::is_control(c) { out.push_str(&printable::escaped(c)) } else { out.push(c) }
    }
    (out, offsets)
}

/// Returns the range of a span, limited to the text and extended to character boundaries.
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

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Style, allows_colours, displayed_lines, render, truncate};
    use crate::diag::{Code, Diagnostic};
    use crate::source::{SourceMap, Span};

    #[test]
    fn no_color_counts_if_it_is_not_empty() {
        for (value, allowed) in [(None, true), (Some(""), true), (Some("0"), false), (Some("1"), false)] {
            assert_eq!(allows_colours(value.map(AsRef::as_ref)), allowed, "{value:?}");
        }
    }

    #[test]
    fn a_line_is_truncated_around_its_mark() {
        let line: String = "0123456789".repeat(100_000);
        for focus in [0, 5, 59, 100, 500_003, 999_990, 999_999] {
            let (shown, offsets) = truncate(&line, focus, COLUMNS);
            assert!(shown.chars().count() <= COLUMNS, "{}", shown.chars().count());
            let at = offsets.iter().find(|(source, _)| *source == focus).map(|(_, displayed)| *displayed);
            assert_eq!(at.map(|at| &shown[at..=at]), Some(&line[focus..=focus]));
        }
        assert_eq!(truncate("short\tline", 3, COLUMNS).0, "short\tline");
        assert_eq!(truncate("a\x1b[2Jb", 0, COLUMNS).0, "a\\x1b[2Jb");
    }

    #[test]
    fn offsets_of_marks_follow_the_displayed_text() {
        let text = "one\r\ntw\x1bo three\n\nfour";
        let find = |word: &str| text.find(word).unwrap_or_default();
        let (shown, moved) =
            displayed_lines(text, &[find("three"), find("three") + 5, find("four"), text.len()], COLUMNS);
        assert_eq!(shown, "one\ntw\\x1bo three\n\nfour");
        assert_eq!(&shown[moved[0]..moved[1]], "three");
        assert_eq!(&shown[moved[2]..moved[3]], "four");
    }

    #[test]
    fn excerpts_of_long_texts_are_short_and_have_the_right_position() {
        let mut map = SourceMap::new();
        let text = format!("{}bad{}\n{}end", "x ".repeat(500_000), " y".repeat(500_000), "z\n".repeat(100_000));
        let file = map.add("a\x1b]0;t\x07.wml", &text);
        let span = Span::new(file, 1_000_000, 1_000_003);
        let found = Diagnostic::error(Code::UnknownCommand, span, "m".repeat(1_000_000))
            .also(Span::new(file, text.len() - 3, text.len()), "e\nerror: forged")
            .also(Span::new(file, 0, text.len()), "all")
            .help("h\x1b[2J".repeat(100_000));
        let shown = render(&map, &[found], Style::Plain);
        assert!(shown.len() < 8000, "{}", shown.len());
        assert!(
            shown.contains(":1:1000001") && shown.contains("bad") && shown.contains("e\\nerror: forged"),
            "{shown}"
        );
        assert!(!shown.contains('\x1b') && !shown.lines().any(|line| line.starts_with("error: forged")), "{shown}");
    }

    #[test]
    fn messages_fit_into_a_terminal() {
        let mut map = SourceMap::new();
        let file = map.add("a.wml", "run 10\n");
        let words = ["long"; 30].join(" ");
        let found = Diagnostic::error(Code::UnknownCommand, Span::new(file, 0, 3), &words).help(&words);
        let shown = render(&map, &[found], Style::Terminal { colours: false, columns: 60 });
        assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
        assert_eq!(shown.matches("long").count(), 60, "{shown}");
        // A line of the source that is longer is truncated around its mark.
        let line = format!("{}bad{}", "x ".repeat(100), " y".repeat(100));
        let file = map.add("b.wml", &line);
        let found = Diagnostic::error(Code::UnknownCommand, Span::new(file, 200, 203), "no command");
        let shown = render(&map, &[found], Style::Terminal { colours: false, columns: 60 });
        assert!(shown.lines().all(|line| line.chars().count() <= 60) && shown.contains("bad y"), "{shown}");
        assert!(shown.contains("b.wml:1:201"), "{shown}");
    }

    #[test]
    fn hidden_texts_are_not_quoted() {
        let mut map = SourceMap::new();
        let file = map.add("/etc/secret", "root:hash\n");
        map.hide(file);
        let found = Diagnostic::error(Code::UnknownCommand, Span::new(file, 0, 4), "`root` is not a command, `hash`")
            .label("root")
            .help("leave `root` out")
            .help("look it up");
        let shown = render(&map, &[found], Style::Plain);
        assert!(!shown.contains("root") && !shown.contains("hash"), "{shown}");
        assert!(
            shown.contains("/etc/secret:1:1") && shown.contains("look it up") && shown.contains("is not a command")
        );
    }
}
