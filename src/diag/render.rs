//! Draws diagnostics. The only file that knows the drawing library.
//!
//! Deliberately absent: what is wrong, and where it goes (a terminal, a file): that is for who calls.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span};
use crate::util::printable;

/// How to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Letters only: for files and pipes.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// Columns of a source line that are shown.
const COLUMNS: usize = 200;

/// Of those, how many stand before the mark where the line is longer.
const BEFORE: usize = 60;

/// Characters of a message, a label or a help line: what is longer quotes the source at length.
const WORDS: usize = 1000;

/// Bytes from the first to the last mark that are drawn as one picture; marks that are farther apart have one each.
const PICTURE: usize = 16 << 10;

/// All of them, in the order given, as a person reads them; a blank line between. Control characters of source, names and messages
/// are escaped, source lines are cut, and what was loaded from elsewhere is not shown.
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
        let mut places = Vec::new();
        let picture = renderer.render(&[group(map, diagnostic, &mut places)]);
        out.push_str(&truly_placed(picture, &places));
        out.push('\n');
    }
    out
}

/// A place as the library says it, which counts columns in the line that it was given, and the true one.
type SourcePlace = (String, String);

/// A picture whose places are those of the source.
fn truly_placed(picture: String, places: &[SourcePlace]) -> String {
    if places.is_empty() {
        return picture;
    }
    let place = |line: &str| {
        let trimmed = line.trim_start();
        let head = trimmed.starts_with("-->") || trimmed.starts_with(":::") || trimmed.starts_with('\x1b');
        let whole = |shown: &str| {
            let behind = line.find(shown).map(|at| &line[at + shown.len()..]);
            behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_ascii_digit()))
        };
        let found = places.iter().find(|(shown, _)| head && whole(shown));
        found.map_or_else(|| line.to_owned(), |(shown, truth)| line.replacen(shown, truth, 1))
    };
    picture.split('\n').map(place).collect::<Vec<_>>().join("\n")
}

fn group<'a>(map: &'a SourceMap, diagnostic: &'a Diagnostic, places: &mut Vec<SourcePlace>) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    // Words about a text that is not shown must not quote it either.
    let hidden = map.file(diagnostic.primary.span.file).hidden;
    let message = if hidden { unquoted(&diagnostic.message) } else { diagnostic.message.clone() };
    let title = level.primary_title(printable::short(&message, WORDS).into_owned()).id(diagnostic.code.number());
    let mut elements: Vec<Element<'a>> = Vec::new();
    // A file at a time, that of the primary mark first: a script and the one that it loads may both be to blame.
    let mut files = vec![diagnostic.primary.span.file];
    for label in &diagnostic.secondary {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    for file in files {
        elements.extend(pictures(map, file, diagnostic, places));
    }
    for help in diagnostic.help.iter().filter(|help| !(hidden && help.contains('`'))) {
        elements.push(Level::HELP.message(printable::short(help, WORDS).into_owned()).into());
    }
    if hidden {
        elements
            .push(Level::HELP.message("its text is not shown: it was loaded from outside the script's folder").into());
    }
    title.elements(elements)
}

/// A message without what it quotes.
fn unquoted(message: &str) -> String {
    message.split('`').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "`…`" }).collect()
}

/// The lines of one file that the marks need, with the marks.
fn pictures<'a>(
    map: &SourceMap,
    file: FileId,
    diagnostic: &Diagnostic,
    places: &mut Vec<SourcePlace>,
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
    if last - first <= PICTURE {
        return vec![picture(map, file, name, &annotations, places)];
    }
    // The library's cost is that of the text it is given: each line for itself.
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
        elements.push(picture(map, file, name.clone(), &here, places));
        annotations = others;
    }
    elements
}

/// A mark: bytes of the text, and what is said about them.
struct Annotation<'a> {
    kind: AnnotationKind,
    at: (usize, usize),
    label: &'a str,
}

/// The lines from the first to the last of the marks.
fn picture<'a>(
    map: &SourceMap,
    file: FileId,
    name: String,
    annotations: &[Annotation<'_>],
    places: &mut Vec<SourcePlace>,
) -> Element<'a> {
    let text = map.file(file).text.as_str();
    let first = annotations.iter().map(|annotation| annotation.at.0).min().unwrap_or(0);
    let last = annotations.iter().map(|annotation| annotation.at.1).max().unwrap_or(0);
    let from = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let to = text[last..].find('\n').map_or(text.len(), |at| last + at);
    let line = map.line(Span::new(file, from, from)) as usize;
    let points: Vec<usize> =
        annotations.iter().flat_map(|annotation| [annotation.at.0 - from, annotation.at.1 - from]).collect();
    let (shown, points) = excerpt(&text[from..to], &points);
    if shown != text[from..to] {
        for (annotation, at) in annotations.iter().zip(points.chunks(2)) {
            let column = shown[..at[0]].chars().rev().take_while(|c| *c != '\n').count() + 1;
            let (line, own) = map.line_col(Span::new(file, annotation.at.0, annotation.at.0));
            places.push((format!("{name}:{line}:{column}"), format!("{name}:{line}:{own}")));
        }
    }
    let annotations = annotations.iter().zip(points.chunks(2)).map(|(annotation, at)| {
        let label = (!annotation.label.is_empty()).then(|| printable::short(annotation.label, WORDS).into_owned());
        annotation.kind.span(at[0]..at[1]).label(label)
    });
    let annotations: Vec<_> = annotations.collect();
    Snippet::source(shown).path(name).line_start(line).annotations(annotations).into()
}

/// The lines of a text with control characters escaped, each of at most [`COLUMNS`] columns, and where the given bytes of the text
/// are in what is shown.
fn excerpt(text: &str, points: &[usize]) -> (String, Vec<usize>) {
    let mut out = String::new();
    let mut moved = vec![0; points.len()];
    let mut start = 0;
    for line in text.split('\n') {
        if start > 0 {
            out.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        let on_it = |point: usize| point >= start && point <= start + line.len();
        // The first mark is the one that it is about.
        let focus = points.iter().copied().find(|p| on_it(*p)).map_or(0, |p| p - start);
        let base = out.len();
        let (shown, places) = cut(line, focus);
        out.push_str(&shown);
        for (point, moved) in points.iter().zip(&mut moved) {
            if *point >= start {
                let at = places.partition_point(|(own, _)| *own < *point - start);
                *moved = base + places.get(at).map_or(shown.len(), |(_, there)| *there);
            }
        }
        start += line.len() + text[start + line.len()..].find('\n').map_or(0, |at| at + 1);
    }
    (out, moved)
}

/// A line as it is shown, the byte `focus` within, and for each character of the line that is shown its place in both.
fn cut(line: &str, focus: usize) -> (String, Vec<(usize, usize)>) {
    let columns = |c: char| match c {
        '\t' => 4,
        c if printable::is_control(c) => printable::escaped(c).len(),
        c => printable::columns(c),
    };
    let mut from = 0;
    let mut width = 0;
    // As a whole, if it fits; else from a little before the focus.
    if line.chars().any(|c| {
        width += columns(c);
        width > COLUMNS
    }) {
        let mut before = 0;
        let back = line[..focus].char_indices().rev().take_while(|(_, c)| {
            before += columns(*c);
            before < BEFORE
        });
        from = back.last().map_or(focus, |(at, _)| at);
        // What would be left out is hardly longer than the sign for it.
        if from < 4 {
            from = 0;
        }
    }
    let mut out = String::new();
    let mut places = Vec::new();
    let mut width = 0;
    if from > 0 {
        out.push('…');
        width = 1;
    }
    for (at, c) in line[from..].char_indices() {
        width += columns(c);
        let rest = from + at + c.len_utf8() < line.len();
        if width + usize::from(rest) > COLUMNS {
            out.push('…');
            break;
        }
        places.push((from + at, out.len()));
        if c != '\t' && printable::is_control(c) { out.push_str(&printable::escaped(c)) } else { out.push(c) }
    }
    (out, places)
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

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Style, cut, excerpt, render};
    use crate::diag::{Code, Diagnostic};
    use crate::source::{SourceMap, Span};

    #[test]
    fn a_line_is_cut_around_its_mark() {
        let line: String = "0123456789".repeat(100_000);
        for focus in [0, 5, 59, 100, 500_003, 999_990, 999_999] {
            let (shown, places) = cut(&line, focus);
            assert!(shown.chars().count() <= COLUMNS, "{}", shown.chars().count());
            let at = places.iter().find(|(own, _)| *own == focus).map(|(_, there)| *there);
            assert_eq!(at.map(|at| &shown[at..=at]), Some(&line[focus..=focus]));
        }
        assert_eq!(cut("short\tline", 3).0, "short\tline");
        assert_eq!(cut("a\x1b[2Jb", 0).0, "a\\x1b[2Jb");
    }

    #[test]
    fn marks_stay_at_their_places() {
        let text = "one\r\ntw\x1bo three\n\nfour";
        let find = |word: &str| text.find(word).unwrap_or_default();
        let (shown, moved) = excerpt(text, &[find("three"), find("three") + 5, find("four"), text.len()]);
        assert_eq!(shown, "one\ntw\\x1bo three\n\nfour");
        assert_eq!(&shown[moved[0]..moved[1]], "three");
        assert_eq!(&shown[moved[2]..moved[3]], "four");
    }

    #[test]
    fn a_picture_is_small_whatever_the_text_and_says_the_true_place() {
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
    fn what_is_hidden_is_not_quoted() {
        let mut map = SourceMap::new();
        let file = map.add("/etc/secret", "root:hash\n");
        map.hide(file);
        let found = Diagnostic::error(Code::UnknownCommand, Span::new(file, 0, 4), "`root` is no command, `hash`")
            .label("root")
            .help("leave `root` out")
            .help("look it up");
        let shown = render(&map, &[found], Style::Plain);
        assert!(!shown.contains("root") && !shown.contains("hash"), "{shown}");
        assert!(shown.contains("/etc/secret:1:1") && shown.contains("look it up") && shown.contains("is no command"));
    }
}
