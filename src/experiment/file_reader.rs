//! Reads the values of an experiment file by their type, with their positions. A value of another type is an error.
//!
//! Only this file knows the tables of the TOML parser. Not in here: which keys there are (`file_keys`), and what they
//! mean (`file`).

use super::file_keys::{EXPERIMENT_KEYS, FileKey};
use crate::diag::{self, Code, Diagnostic};
use crate::source::{FileId, SourceMap, Span, Spanned};
use crate::util::duration;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned as TomlSpanned;
use toml::de::{DeTable, DeValue};

const TOML_HELP: &str = "a line is `KEY = VALUE`, a text is in quotes, and `[[factor]]` or `[[hook]]` begins a table";

/// The errors of an experiment file.
#[derive(Debug)]
pub(super) struct FileErrors {
    file: FileId,
    pub(super) found: Vec<Diagnostic>,
}

impl FileErrors {
    pub(super) fn new(file: FileId) -> Self {
        Self { file, found: Vec::new() }
    }

    /// Returns a position in the file.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range.start, range.end)
    }

    pub(super) fn add(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        diag::push(&mut self.found, Diagnostic::error(code, span, message).help(help));
    }
}

/// A table of an experiment file.
pub(super) struct FileTable<'a> {
    /// What messages call it: `a factor`.
    what: &'static str,
    /// The position: that of its heading, or of its braces.
    pub(super) span: Span,
    entries: &'a DeTable<'a>,
}

/// A value of an experiment file.
pub(super) struct FileValue<'a> {
    pub(super) span: Span,
    value: &'a DeValue<'a>,
}

/// Parses a text and calls `read` with its table. Returns the errors of the text or of `read`.
pub(super) fn parse<T>(
    map: &SourceMap,
    file: FileId,
    read: impl FnOnce(&FileTable<'_>, &mut FileErrors) -> T,
) -> Result<T, Vec<Diagnostic>> {
    let mut errors = FileErrors::new(file);
    let text = &map.file(file).text;
    match DeTable::parse(text) {
        Ok(table) => {
            let root = FileTable { what: "an experiment", span: errors.span(0..0), entries: table.get_ref() };
            let read = read(&root, &mut errors);
            if errors.found.is_empty() { Ok(read) } else { Err(errors.found) }
        }
        Err(e) => {
            // The end of the text is not a character that can be marked.
            let end = text.len();
            let span = e.span().unwrap_or(end..end);
            let from = if span.start >= end { text.trim_end().len().saturating_sub(1) } else { span.start };
            errors.add(Code::BadToml, errors.span(from..span.end.max(from)), e.message(), TOML_HELP);
            Err(errors.found)
        }
    }
}

impl<'a> FileTable<'a> {
    /// Reports the keys that are not in the table.
    pub(super) fn check_keys(&self, keys: &[FileKey], errors: &mut FileErrors) {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if keys.iter().any(|known| known.name == name) {
                continue;
            }
            let names = || keys.iter().map(|key| key.name);
            // After the heading of a table every line belongs to it.
            let is_misplaced = EXPERIMENT_KEYS.iter().any(|known| known.name == name);
            let help = match diag::nearest(name, names()) {
                _ if is_misplaced => format!("put `{name}` before the first `[[…]]`, where the keys of all runs are"),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its keys are `{}`", names().collect::<Vec<_>>().join("`, `")),
            };
            errors.add(Code::UnknownKey, errors.span(key.span()), format!("{} has no key `{name}`", self.what), help);
        }
    }

    pub(super) fn value(&self, key: &str, errors: &FileErrors) -> Option<FileValue<'a>> {
        let value = self.entries.get(key)?;
        Some(FileValue { span: errors.span(value.span()), value: value.get_ref() })
    }

    /// Returns the keys and the values as texts, in the order of the file.
    pub(super) fn assignments(&self, errors: &mut FileErrors) -> Vec<(Spanned<String>, String)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let assignment = |(key, value): (&TomlSpanned<_>, &'a TomlSpanned<DeValue<'a>>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            let name = Spanned::new(name.trim_start_matches('$').to_owned(), errors.span(key.span()));
            let value = FileValue { span: errors.span(value.span()), value: value.get_ref() };
            Some((name, value.scalar("a variable", errors)?.node))
        };
        entries.into_iter().filter_map(assignment).collect()
    }
}

impl<'a> FileValue<'a> {
    fn wrong(&self, what: &str, expected: &str, errors: &mut FileErrors) {
        let message = format!("the value of {what} is {}", article(self.value.type_str()));
        errors.add(Code::WrongValue, self.span, message, format!("write {expected}"));
    }

    pub(super) fn text(&self, key: &str, errors: &mut FileErrors) -> Option<Spanned<String>> {
        match self.value {
            DeValue::String(text) => Some(Spanned::new(text.clone().into_owned(), self.span)),
            _ => {
                self.wrong(&format!("`{key}`"), &format!("a text in quotes: `{key} = \"…\"`"), errors);
                None
            }
        }
    }

    /// Returns a text, a number or a truth value as text.
    pub(super) fn scalar(&self, what: &str, errors: &mut FileErrors) -> Option<Spanned<String>> {
        let text = match self.value {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).unwrap_or_default().to_string()
            }
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(is_set) => is_set.to_string(),
            _ => {
                self.wrong(what, "a number or a text in quotes", errors);
                return None;
            }
        };
        Some(Spanned::new(text, self.span))
    }

    /// Returns the table of a single entry, or `None` if it is a scalar.
    pub(super) fn as_table(&self, what: &'static str) -> Option<FileTable<'a>> {
        let DeValue::Table(entries) = self.value else { return None };
        Some(FileTable { what, span: self.span, entries })
    }

    pub(super) fn table(&self, key: &str, what: &'static str, errors: &mut FileErrors) -> Option<FileTable<'a>> {
        let table = self.as_table(what);
        if table.is_none() {
            self.wrong(&format!("`{key}`"), &format!("a table: `{key} = {{ NAME = VALUE }}`"), errors);
        }
        table
    }

    pub(super) fn list(&self, key: &str, errors: &mut FileErrors) -> Vec<FileValue<'a>> {
        let DeValue::Array(values) = self.value else {
            self.wrong(&format!("`{key}`"), &format!("a list in brackets: `{key} = […]`"), errors);
            return Vec::new();
        };
        values.iter().map(|value| FileValue { span: errors.span(value.span()), value: value.get_ref() }).collect()
    }

    /// Returns the tables of a list, `[[KEY]]`.
    pub(super) fn tables(&self, key: &str, what: &'static str, errors: &mut FileErrors) -> Vec<FileTable<'a>> {
        let DeValue::Array(values) = self.value else {
            self.wrong(&format!("`{key}`"), &format!("tables, each with the heading `[[{key}]]`"), errors);
            return Vec::new();
        };
        let table = |value: &'a TomlSpanned<DeValue<'a>>| {
            let value = FileValue { span: errors.span(value.span()), value: value.get_ref() };
            let table = value.as_table(what);
            if table.is_none() {
                value.wrong(&format!("`{key}`"), &format!("tables, each with the heading `[[{key}]]`"), errors);
            }
            table
        };
        values.iter().filter_map(table).collect()
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Returns a duration: a number of seconds, or a text such as `10m`. It must be greater than 0.
    pub(super) fn duration(&self, key: &str, errors: &mut FileErrors) -> Option<Duration> {
        let text = self.scalar(&format!("`{key}`"), errors)?;
        let parsed = duration::parse(&text.node).map_err(|e| e.to_string());
        match parsed.and_then(|time| if time.is_zero() { Err("it is 0".to_owned()) } else { Ok(time) }) {
            Ok(time) => Some(time),
            Err(e) => {
                let help = "write seconds, or a time such as `\"10m\"`, greater than 0";
                errors.add(Code::WrongValue, self.span, format!("`{}` is not a time: {e}", text.node), help);
                None
            }
        }
    }
}

/// Returns the name of a type with its article.
fn article(name: &str) -> String {
    let n = if name.starts_with(['a', 'i']) { "n" } else { "" };
    format!("a{n} {name}")
}
