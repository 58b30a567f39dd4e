//! Writing and reading of the document as JSON.
//!
//! A file is replaced atomically (`output`), so a reader finds either the old or the new text. `Writer::create` is
//! called before the run, so that an invalid path is reported before the run and not after it.

use super::{Report, ReportInfo};
use crate::os::held_dir::HeldDir;
use crate::output::{FileIdentity, Target};
use crate::result::{Document, SCHEMA};
use crate::util::bounded::{self, Budget};
use crate::util::json::reason;
use crate::util::visible_json;
use serde::Deserialize;
use std::io::{self, Write};
use std::path::Path;

/// The maximum number of entries in a document that is read, in all runs together, without their time series. See
/// [`Budget`]. A thousand runs with complete figures on hundreds of processors have fewer.
const MAX_ENTRIES: u64 = 16 << 20;

/// The maximum number of entries in the time series of each run.
const MAX_SERIES_ENTRIES: u64 = 16 << 20;

/// `--format json`: the document, written after all runs.
pub(crate) struct Json;

impl Report for Json {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs("json", "the whole result as JSON")
    }

    fn end(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        serialize(document, out)
    }
}

pub(crate) fn serialize(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    visible_json::write(document, out)?;
    out.write_all(b"\n")
}

/// Why a text is not a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Invalid JSON, or JSON that does not match the format.
    #[error("not a result of wmlrun: {0}")]
    Json(String),
    /// Another schema or another version.
    #[error("its schema is not `{SCHEMA}`")]
    Schema,
    #[error("it names no schema, as `{SCHEMA}`")]
    NoSchema,
}

/// Returns a document as a line, with its end. A file of such lines is read by [`read`].
pub(crate) fn snapshot_line(document: &Document) -> serde_json::Result<Vec<u8>> {
    visible_json::line(document)
}

/// Returns the latest document of several lines, of which some may be incomplete. `None` if there is none.
fn latest_of_lines(text: &str) -> Option<Document> {
    let start = format!("{{\"schema\":\"{SCHEMA}\"");
    let lines = text.split('\n').filter(|line| line.starts_with(&start));
    let documents = lines.filter_map(|line| document(line).ok());
    let time = |document: &Document| document.runs.last().map_or(0.0, |run| run.finished_seconds);
    documents.max_by(|a, b| time(a).total_cmp(&time(b)))
}

/// Parses a document of any schema.
fn document(text: &str) -> Result<Document, ReadError> {
    let budget = Budget::new(MAX_ENTRIES).with_separate("intervals", MAX_SERIES_ENTRIES);
    let document: Document = bounded::from_str(text, &budget).map_err(|e| ReadError::Json(budget.reason(&e)))?;
    match document.too_long_annotation() {
        Some(why) => Err(ReadError::Json(why.to_owned())),
        None => Ok(document),
    }
}

/// The field of a document that names its format.
#[derive(Deserialize)]
struct SchemaField {
    schema: Option<String>,
}

/// Parses a document, or the latest one of the snapshots that a rank has left. Ignores unknown fields. Returns an error
/// when the text is not a document, or has too many elements.
pub fn read(text: &str) -> Result<Document, ReadError> {
    let schema = match serde_json::from_str::<SchemaField>(text) {
        // A structure can also be read from a list of its fields.
        Ok(found) => found.schema.filter(|_| text.trim_start().starts_with('{')),
        // JSON of another form.
        Err(error) if error.is_data() => None,
        Err(error) => return latest_of_lines(text).ok_or_else(|| ReadError::Json(reason(&error))),
    };
    match schema.as_deref() {
        Some(SCHEMA) => document(text),
        Some(_) => Err(ReadError::Schema),
        None => Err(ReadError::NoSchema),
    }
}

/// Writes a document to a file repeatedly, after each run and at the end.
#[derive(Debug)]
pub(crate) struct Writer {
    target: Target,
}

impl Writer {
    /// Checks that a document can be written at `path`, without creating a file. An existing file will be replaced
    /// (through a symbolic link: its target). A pipe or `-` receives the document once, at the end. Returns an error if
    /// `path` is one of the files in `read`, and unless `force` is set, if it is a file that is not such a document.
    pub(crate) fn create(path: &Path, read: &[FileIdentity], force: bool) -> io::Result<Self> {
        Ok(Self { target: Target::open(path, read)?.recognizing(is_result).unless_foreign(force)? })
    }

    /// Returns the directory of the file. `None` for a pipe or device.
    pub(crate) fn directory(&self) -> Option<&HeldDir> {
        self.target.directory()
    }

    /// Returns the identity of the file to write, if it exists already.
    pub(crate) fn id(&self) -> Option<FileIdentity> {
        self.target.id()
    }

    /// Replaces the contents of the file by the current document. Does nothing for a pipe or device.
    pub(crate) fn write(&mut self, document: &Document) -> io::Result<()> {
        if self.target.is_file() { self.target.write(&mut |out| serialize(document, out)) } else { Ok(()) }
    }

    /// Writes the final document.
    pub(crate) fn finish(self, document: &Document) -> io::Result<()> {
        self.target.write(&mut |out| serialize(document, out))
    }
}

/// True if a file's first bytes match a document that [`Writer`] wrote.
pub(crate) fn is_result(head: &[u8]) -> bool {
    has_schema(head, "wmlrun.result")
}

/// True if a file that begins with `head` is a document with this schema, of any version.
pub(crate) fn has_schema(head: &[u8], name: &str) -> bool {
    head.starts_with(format!("{{\n  \"schema\": \"{name}/").as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Json, MAX_ENTRIES, ReadError, Writer, read};
    use crate::report::to_string;
    use crate::result::fixture::fixture;
    use crate::result::{Document, Interval, Run};
    use std::fs;
    use std::path::Path;

    #[test]
    fn written_documents_are_read_back() {
        for document in [fixture(), Document { runs: vec![Run::default()], ..Document::default() }] {
            assert_eq!(read(&to_string(&Json, &document)).unwrap(), document);
        }
    }

    /// A fast parser of numbers is wrong in the last digit of some of them.
    #[test]
    fn numbers_are_read_back_with_all_digits() {
        let mut document = fixture();
        let interval = |n: u32| Interval { t: f64::from(n).sqrt() / 7.0, ..Interval::default() };
        document.runs[0].intervals = (1..=2_000).map(interval).collect();
        assert_eq!(read(&to_string(&Json, &document)).unwrap(), document);
    }

    #[test]
    fn fields_may_be_missing_or_unknown_but_not_the_schema() {
        let document = read(r#"{"schema": "wmlrun.result/1", "later": 1, "runs": [{"state": "low_space"}]}"#).unwrap();
        assert_eq!(document.runs[0].state.name(), "low_space");
        for text in ["{}", "[\"wmlrun.result/1\"]"] {
            assert!(matches!(read(text), Err(ReadError::NoSchema)), "{text}");
        }
        assert!(matches!(read(r#"{"schema": "fio/3"}"#), Err(ReadError::Schema)));
        assert!(matches!(read("Run took 3 seconds..."), Err(ReadError::Json(_))));
    }

    #[test]
    fn long_time_series_are_read_but_no_other_long_lists() {
        let list = |n: usize, element: &str| vec![element; n].join(",");
        let text = format!(r#"{{"schema": "wmlrun.result/1", "runs": [{{"intervals": [{}]}}]}}"#, list(600_000, "{}"));
        assert_eq!(read(&text).unwrap().runs[0].intervals.len(), 600_000);
        let all = list(MAX_ENTRIES as usize / 4, "0");
        let text = format!(r#"{{"schema": "wmlrun.result/1", "pinned_processors": [{all}]}}"#);
        assert!(read(&text).is_ok(), "an unknown field is ignored");
        let text = format!(r#"{{"schema": "wmlrun.result/1", "runs": [{{"pinned_processors": [{all}]}}]}}"#);
        let error = read(&text).err().unwrap().to_string();
        assert!(error.contains("too many elements"), "{error}");
    }

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_is_complete_after_each_run_without_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        let mut writer = Writer::create(&path, &[], true).unwrap();
        assert!(names(dir.path()).is_empty(), "no file is created before there is a result");
        let mut document = fixture();
        writer.write(&document).unwrap();
        assert_eq!(read(&fs::read_to_string(&path).unwrap()).unwrap(), document);
        document.runs.push(Run::default());
        writer.finish(&document).unwrap();
        assert_eq!(read(&fs::read_to_string(&path).unwrap()).unwrap(), document);
        assert_eq!(names(dir.path()), ["out.json"]);
    }

    #[test]
    fn bad_paths_fail_before_the_run() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Writer::create(dir.path(), &[], true).is_err());
        assert!(Writer::create(&dir.path().join("absent/out.json"), &[], true).is_err());
        assert!(Writer::create(Path::new(""), &[], true).is_err());
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn links_and_devices_are_preserved() {
        let dir = tempfile::tempdir().unwrap();
        let (link, file) = (dir.path().join("link"), dir.path().join("file"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Writer::create(&link, &[], true).unwrap().finish(&fixture()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(read(&fs::read_to_string(&file).unwrap()).is_ok());
        let mut null = Writer::create(Path::new("/dev/null"), &[], true).unwrap();
        null.write(&fixture()).unwrap();
        null.finish(&fixture()).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
