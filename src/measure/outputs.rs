//! What a session writes: the result, the trace, the table of runs, and the files that scripts name.
//!
//! Not here: how files are opened and replaced (`output`), and their formats (`report`).

use super::redaction::{Redaction, ScriptOrigin};
use super::time_limit::{FINAL_TIMEOUT, NO_ANSWER, WRITE_TIMEOUT, answer_timeout, with_timeout};
use super::trace::TraceFile;
use super::watch::{Stage, Watch};
use super::{Front, Settings};
use crate::diag::{Code, Diagnostic, Failure, Status};
use crate::disk::Fileset;
use crate::exec::trace::WantedStream;
use crate::model::Stats;
use crate::os::held_dir::{HeldDir, MadeDir};
use crate::output::{
    FileIdentity, IN_TREE_HELP, Placed, ResultPlace, Results, TableFile, file_id, first_in_tree, output_in_tree,
};
use crate::plan::{self, Plan};
use crate::report::{Report, csv_runs, dumps, json};
use crate::result::Document;
use crate::runtime::ThreadStream;
use crate::source::{SourceMap, Spanned};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time for writing a result that rank 0 does not have: a launcher may end this process a moment later.
const UNREPORTED: Duration = Duration::from_secs(5);

/// The result of a session, and its outputs in addition to the report.
pub struct Outputs {
    settings: Arc<Settings>,
    watch: Arc<Watch>,
    /// The result so far.
    pub document: Document,
    /// The placeholders of redacted texts.
    pub(crate) redaction: Redaction,
    json: Option<json::Writer>,
    trace: Option<TraceFile>,
    /// The table of all runs.
    table: Option<TableFile>,
    /// The directory for files that scripts write.
    pub(crate) results: Results,
    /// The directory of the last `stats directory`.
    stats_dir: Option<ResultPlace>,
    /// The directories that `stats directory` has created, each before its parent.
    made_dirs: Vec<MadeDir>,
    /// The names and roots of the file sets of all plans so far: no output is written there.
    trees: Vec<(String, PathBuf)>,
    /// An output could not be written.
    write_failed: bool,
}

impl Outputs {
    /// Returns outputs that are not open yet, and an empty result.
    pub(crate) fn new(settings: &Arc<Settings>, watch: &Arc<Watch>) -> Self {
        let dirs = settings.sets.iter().filter(|(name, _)| name == "dir");
        let document = Document {
            tool: crate::version::tool(),
            command_line: match settings.redact {
                true => vec!["(command line)".to_owned()],
                false => settings.command_line.clone(),
            },
            label: settings.label.clone(),
            note: settings.note.clone(),
            process_id: std::process::id(),
            seed: settings.seed,
            layout_seed: settings.layout_seed,
            ..Document::default()
        };
        Self {
            document,
            redaction: Redaction::new(settings.redact, dirs.map(|(_, dir)| dir.clone()).collect()),
            json: None,
            trace: settings.trace.clone().map(TraceFile::new),
            table: None,
            results: Results::new(&settings.results, &settings.allow_write),
            stats_dir: None,
            made_dirs: Vec::new(),
            trees: Vec::new(),
            write_failed: false,
            settings: Arc::clone(settings),
            watch: Arc::clone(watch),
        }
    }

    /// Sets the script's entry in the result. `script`: its path and text. `dialect`: its name and the reason for it.
    pub(crate) fn describe_script(&mut self, script: (&str, &str), dialect: (&str, &str), origin: ScriptOrigin) {
        self.redaction.describe_script(&mut self.document, script, dialect, origin);
    }

    /// Whether an output could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.write_failed
    }

    /// Closes the files of `--json`, `--trace` and `--append` without writing to them.
    pub(crate) fn give_up_outputs(&mut self) {
        (self.json, self.table) = (None, None);
        self.trace.iter_mut().for_each(TraceFile::close);
    }

    /// Opens the outputs that the command line names. Called before any file is created, so that a wrong path costs no
    /// time. `scripts` are files that are read.
    pub(crate) fn open_outputs(&mut self, scripts: &[PathBuf]) -> Result<(), Failure> {
        let named = self.named_outputs();
        let named = named.iter().map(|(_, path)| *path).chain([&self.settings.results]);
        let places = named.filter_map(|path| std::path::absolute(path).ok()).collect();
        let _watch = self.watch.begin(Stage::Prepare, "checking the outputs", places);
        let read: Vec<FileIdentity> = scripts.iter().filter_map(|path| file_id(path)).collect();
        // The current directory is the default, and most scripts write no file.
        if self.settings.results != Settings::default().results {
            self.check_results()?;
        }
        let allowed = self.results.check_allowed();
        allowed.map_err(|(path, e)| unwritable("location", path, &e, "--allow-write"))?;
        if let Some(message) = self.conflict() {
            return Err(Failure::wrong(message, "give each a different path"));
        }
        if let Some(path) = &self.settings.json {
            let writer = json::Writer::create(path, &read, self.settings.force);
            self.json = Some(writer.map_err(|e| unwritable("result file", path, &e, "--json"))?);
        }
        if let Some(trace) = &mut self.trace {
            let opened = trace.open(&read, self.settings.force);
            opened.map_err(|e| unwritable("trace", trace.path(), &e, "--trace"))?;
        }
        if let Some(path) = &self.settings.append {
            let table = TableFile::open(path, &csv_runs::header_line(), &read);
            self.table = Some(table.map_err(|e| unwritable("table", path, &e, "--append"))?);
        }
        Ok(())
    }

    /// Returns the outputs that the command line names, each with its option.
    fn named_outputs(&self) -> Vec<(&'static str, &PathBuf)> {
        let Settings { json, joined, trace, append, live, .. } = &*self.settings;
        let trace = trace.as_ref().map(|(path, _)| path);
        let json = [("--json", json.as_ref()), ("--json", joined.as_ref())];
        let others = [("--trace", trace), ("--append", append.as_ref()), ("--live", live.as_ref())];
        let named = json.into_iter().chain(others);
        named.into_iter().filter_map(|(option, path)| Some((option, path?))).collect()
    }

    /// Refuses an output in the tree of a file set: it would be a foreign file there, and its writes would be measured.
    /// The directories of the files that scripts write are outputs too.
    pub(crate) fn outputs_outside(&mut self, trees: &[(String, PathBuf)]) -> Result<(), Failure> {
        let new = trees.iter().filter(|tree| !self.trees.contains(tree)).cloned().collect::<Vec<_>>();
        self.trees.extend(new);
        let stats_dir = self.stats_dir.as_ref().map(ResultPlace::path);
        let mut named = self.named_outputs();
        named.extend(stats_dir.iter().map(|dir| ("stats directory", dir)));
        let results = ("--results", &self.settings.results);
        let is_given = self.settings.results != Settings::default().results;
        if is_given {
            named.push(results);
        }
        let message = output_in_tree(&named, trees).or_else(|| {
            // The current directory is the default, and most scripts write no file. Runs of several ranks do.
            let is_written = !is_given && !self.settings.together.is_alone();
            let (_, set) = is_written.then(|| first_in_tree(&[results], trees)).flatten()?;
            Some(format!("the current directory (`--results`) is in the tree of the file set `{set}`"))
        });
        let Some(message) = message else { return Ok(()) };
        self.give_up_outputs();
        // An empty directory would be foreign in the tree too.
        for dir in std::mem::take(&mut self.made_dirs) {
            dir.remove();
        }
        Err(Failure::refused(message, IN_TREE_HELP))
    }

    /// Refuses an output whose directory is no longer at its path: nothing may be written into another one.
    pub(crate) fn check_outputs_in_place(&self, front: &dyn Front) -> Result<(), Failure> {
        if self.watch.is_stalled() {
            return Ok(());
        }
        let outputs = self;
        let dirs = [
            outputs.json.as_ref().and_then(json::Writer::directory),
            outputs.trace.as_ref().and_then(TraceFile::directory),
            outputs.table.as_ref().map(TableFile::directory),
        ];
        let checked = dirs.into_iter().flatten().try_for_each(HeldDir::check_in_place);
        let checked = checked.and_then(|()| outputs.results.check_in_place()).and_then(|()| front.check_outputs());
        let help = "start again when nothing else changes the directories of the outputs";
        checked.map_err(|e| Failure::refused(e.to_string(), help))
    }

    /// Returns the trees in which no output may be written. On a file system that does not answer, none is looked for.
    pub(crate) fn forbidden_trees(&self) -> Vec<(String, PathBuf)> {
        if self.watch.is_stalled() { Vec::new() } else { self.trees.clone() }
    }

    /// Checks that the results directory is writable, or can be created. Creates nothing.
    pub(crate) fn check_results(&self) -> Result<(), Failure> {
        let checked = self.results.check();
        checked.map_err(|e| unwritable("results directory", &self.settings.results, &e, "--results"))
    }

    /// Returns an error message if two outputs have the same file.
    fn conflict(&self) -> Option<String> {
        let named = self.named_outputs();
        let is_same = |a: &PathBuf, b: &PathBuf| {
            let same = a == b || file_id(a).is_some_and(|id| Some(id) == file_id(b));
            same && (a.is_file() || !a.exists())
        };
        let mut pairs = named.iter().enumerate().flat_map(|(n, a)| named[n + 1..].iter().map(move |b| (a, b)));
        let found = pairs.find(|((_, a), (_, b))| is_same(a, b));
        found.map(|((a, path), (b, _))| format!("`{a}` and `{b}` both name {}", path.display()))
    }

    /// Appends the last run of the document to the table of runs. A failure does not end the session. `held`: threads are
    /// still in their calls.
    pub(crate) fn append_run(&mut self, held: bool, front: &mut dyn Front) {
        let Some(table) = self.table.clone() else { return };
        let document = self.document.clone();
        let written = with_timeout(answer_timeout(held), move || {
            let last = document.runs.len().saturating_sub(1);
            table.append(&mut |out| csv_runs::CsvRuns.run(&document, last, out)).map_err(|e| e.to_string())
        });
        if let Err(e) = written.unwrap_or_else(|| Err(NO_ANSWER.to_owned())) {
            self.write_failed = true;
            let path = self.settings.append.as_ref().map_or(String::new(), |path| path.display().to_string());
            let text = format!("can't append the run to {path}: {e}");
            front.failed(&Failure::failed(text, "give `--append` another path"));
        }
    }

    /// True if a file is one that this session replaces.
    pub(crate) fn is_output(&self, path: &Path) -> bool {
        let outputs = [self.json.as_ref().and_then(json::Writer::id), self.trace.as_ref().and_then(TraceFile::id)];
        file_id(path).is_some_and(|id| outputs.contains(&Some(id)))
    }

    /// Reports that the result file can't be written, and writes the result to the results directory if that is
    /// elsewhere.
    pub(crate) fn handle_result_failure(&mut self, e: &io::Error, front: &mut dyn Front) {
        if e.kind() == ErrorKind::BrokenPipe {
            front.note("the result was not read to its end");
            return;
        }
        self.write_failed = true;
        let path = self.settings.json.clone().unwrap_or_default();
        let help = match self.result_in_results(e.kind() == ErrorKind::AlreadyExists) {
            Some(kept) => format!("it is in {}", kept.display()),
            None => "free some space, or give `--json` another path".to_owned(),
        };
        front.failed(&Failure::failed(format!("can't write the result file {}: {e}", path.display()), help));
    }

    /// Writes the result to the results directory. If that is the path of the result file, the next free name is used if
    /// another program's file is there (`taken`), and nothing is written otherwise. Returns the path written.
    pub(crate) fn result_in_results(&self, taken: bool) -> Option<PathBuf> {
        let path = self.settings.json.clone().unwrap_or_default();
        let name = path.file_name().filter(|name| *name != "-").unwrap_or("result.json".as_ref()).to_owned();
        // A file system without free space has none for another name.
        let is_other = move |place: &Path| taken || !std::path::absolute(&path).is_ok_and(|path| path == place);
        self.write_in_results(name, is_other, WRITE_TIMEOUT)
    }

    /// Writes the document to a new file of the results directory, if `is_wanted` returns true for its path. Returns the path
    /// written, or `None` if the directory, which may be on a file system that does not answer, takes longer than
    /// `limit`.
    pub(crate) fn write_in_results(
        &self,
        name: OsString,
        is_wanted: impl FnOnce(&Path) -> bool + Send + 'static,
        limit: Duration,
    ) -> Option<PathBuf> {
        let (results, document) = (self.results.clone(), self.document.clone());
        with_timeout(limit, move || {
            let place = results.place(Path::new(&name));
            if !is_wanted(&place.path()) {
                return None;
            }
            let placed = results.write(&place, &|_| false, &mut |out| json::serialize(&document, out));
            placed.ok().map(|placed| placed.path)
        })
        .flatten()
    }

    /// Returns the current directory of the script's files: that of `stats directory`, else the results directory.
    pub(crate) fn results_dir(&self) -> PathBuf {
        let dir = self.stats_dir.as_ref().map_or_else(|| self.results.base().to_owned(), ResultPlace::path);
        // The directory of `--results` is created with the first file in it.
        if dir.is_dir() { dir } else { PathBuf::from(".") }
    }

    /// The directory of `stats directory`, if the script has named one.
    pub(crate) fn named_dir(&self) -> Option<PathBuf> {
        self.stats_dir.is_some().then(|| self.results_dir())
    }

    /// Returns the destination of a path in a script, which is relative to the directory of `stats directory`.
    fn place(&self, wanted: &str) -> ResultPlace {
        match &self.stats_dir {
            Some(dir) => self.results.place_in(dir, Path::new(wanted)),
            None => self.results.place(Path::new(wanted)),
        }
    }

    /// `stats directory`: sets the directory of the script's files. Filebench changes into it, so that a second one is
    /// relative to the first.
    pub(crate) fn results_directory(
        &mut self,
        dir: &Spanned<String>,
        map: &SourceMap,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        check_path(dir, map)?;
        let place = self.place(&dir.node);
        warn_if_mapped(dir, &place, &place.path(), map, front);
        let (results, to, trees) = (self.results.clone(), place.clone(), self.forbidden_trees());
        let cannot = |path: &Path, e: &str| format!("can't create {}: {e}", path.display());
        let made = with_timeout(answer_timeout(self.watch.is_stalled()), move || {
            let path = to.path();
            if let Some(message) = output_in_tree(&[("stats directory", &path)], &trees) {
                return Err(message);
            }
            results.make_dir(&to).map_err(|e| cannot(&path, &e.to_string()))
        });
        let made = made.unwrap_or_else(|| Err(cannot(&place.path(), NO_ANSWER)));
        let made = made.map_err(|text| Failure::refused(text, "name another directory, or give `--results`"))?;
        drop(self.made_dirs.splice(0..0, made));
        self.stats_dir = Some(place);
        Ok(())
    }

    /// `stats dump`, `multidump` and `xmldump`: writes the last run to a file.
    pub fn dump(&mut self, file: &Spanned<String>, form: &'static dumps::File, map: &SourceMap, front: &mut dyn Front) {
        // Rank 0 has the run of all ranks.
        if self.settings.together.rank() > 0 {
            return;
        }
        if let Err(failure) = check_path(file, map) {
            self.write_failed = true;
            front.failed(&failure);
            return;
        }
        let place = self.place(&file.node);
        let Some(run) = self.document.runs.last() else {
            front.note(&format!("{} is not written: nothing was measured yet", place.path().display()));
            return;
        };
        // A program that reads the figures would take them for valid ones.
        if !run.has_result() {
            front.note(&format!("{} is not written: the run has no result", place.path().display()));
            return;
        }
        let (results, run, to, trees) = (self.results.clone(), run.clone(), place.clone(), self.forbidden_trees());
        let cannot = |path: &Path, e: &str| format!("can't write {}: {e}", path.display());
        let written = with_timeout(answer_timeout(self.watch.is_stalled()), move || {
            if let Some(message) = output_in_tree(&[(form.command, to.path())], &trees) {
                return Err(message);
            }
            let written = results.write(&to, &form.is_own, &mut |out| (form.write)(&run, out));
            written.map_err(|e| cannot(&to.path(), &e.to_string()))
        });
        match written.unwrap_or_else(|| Err(cannot(&place.path(), NO_ANSWER))) {
            Ok(Placed { path, renamed }) => {
                warn_if_mapped(file, &place, &path, map, front);
                if renamed {
                    let taken = place.path();
                    front.note(&format!(
                        "{} exists and was not written by `{}`: the output is in {}",
                        taken.display(),
                        form.command,
                        path.display()
                    ));
                }
            }
            Err(text) => {
                self.write_failed = true;
                // The measurements that follow are still possible.
                front.failed(&Failure::failed(text, "name another file, or give `--results`"));
            }
        }
    }

    /// Returns what each thread is to record. `None` without digest and trace.
    pub(crate) fn requested_stream(&self) -> Option<WantedStream> {
        let (hashed, kept) = (self.settings.digest, self.trace.as_ref().map(TraceFile::kept));
        (hashed.is_some() || kept.is_some())
            .then(|| WantedStream { hashed: hashed.unwrap_or(0), kept: kept.unwrap_or(0) })
    }

    /// Writes the result so far. A failure is only a note: it matters if it also occurs at the end. `held`: threads are
    /// still in their calls.
    pub(crate) fn write_json(&mut self, held: bool, front: &mut dyn Front) {
        let Some(mut writer) = self.json.take() else { return };
        let document = self.document.clone();
        let written = with_timeout(answer_timeout(held), move || {
            let written = writer.write(&document);
            (writer, written)
        });
        match written {
            Some((writer, written)) => {
                self.json = Some(writer);
                if let Err(e) = written {
                    front.note(&format!("can't write the result file: {e}"));
                }
            }
            None => self.write_json_elsewhere(front),
        }
    }

    /// Writes the final result.
    pub(crate) fn finish_json(&mut self, front: &mut dyn Front) -> Status {
        let Some(writer) = self.json.take() else { return Status::Done };
        let document = self.document.clone();
        match with_timeout(FINAL_TIMEOUT, move || writer.finish(&document)) {
            Some(Ok(())) => Status::Done,
            Some(Err(e)) => {
                self.handle_result_failure(&e, front);
                Status::Done
            }
            None => {
                self.write_json_elsewhere(front);
                Status::Failed
            }
        }
    }

    /// Writes the result elsewhere if the file system of the result file does not answer: to the results directory or,
    /// if that does not answer either, to standard error.
    fn write_json_elsewhere(&mut self, front: &mut dyn Front) {
        let path = self.settings.json.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let kept = self.result_in_results(false);
        let place =
            kept.as_ref().map_or("the result follows here".to_owned(), |kept| format!("it is in {}", kept.display()));
        front.failed(&Failure::failed(
            format!("can't write the result file {path}: {NO_ANSWER}; {place}"),
            "give `--json` a path on another file system than the one that is measured",
        ));
        if kept.is_none() {
            front.result_aside(&self.document);
        }
        self.write_failed = true;
    }

    /// Writes the result of a rank other than 0 to a file in the results directory, because rank 0 does not have it.
    /// True if that succeeded.
    pub(crate) fn write_unreported(&self, front: &mut dyn Front) -> bool {
        let name = format!("rank-{}.json", self.settings.together.rank());
        let written = self.write_in_results(name.into(), |_| true, UNREPORTED);
        match &written {
            Some(path) => {
                front
                    .result_kept(&format!("rank 0 does not have the result of this rank; it is in {}", path.display()));
            }
            None => front.result_aside(&self.document),
        }
        written.is_some()
    }

    /// Limits the trace before a run of `threads` threads to what memory suffices for.
    pub(crate) fn limit_trace(&mut self, threads: u64, front: &mut dyn Front) {
        if let Some(trace) = &mut self.trace {
            trace.limit(threads, front);
        }
    }

    /// Writes the trace. Called after the report because its file system may not answer. A failure does not end the
    /// session. `held`: threads are still in a call.
    pub(crate) fn write_trace(
        &mut self,
        of: (&Arc<Plan>, &[Arc<Fileset>]),
        streams: Vec<ThreadStream>,
        secrets: &[String],
        held: bool,
        front: &mut dyn Front,
    ) {
        let Some(trace) = &mut self.trace else { return };
        if let Err(failure) = trace.write(of, streams, secrets, held, front) {
            self.write_failed = true;
            front.failed(&failure);
        }
    }
}

/// The failure of an option's output that can't be written.
pub(crate) fn unwritable(what: &str, path: &Path, e: &io::Error, option: &str) -> Failure {
    let help = match e.kind() {
        ErrorKind::AlreadyExists if option != "--append" => {
            format!("give `{option}` another path, or replace the file with `--force`")
        }
        _ => format!("give `{option}` another path"),
    };
    Failure::refused(format!("can't write the {what} {}: {e}", path.display()), help)
}

/// Returns the Filebench file that a `stats` command writes. `None` for a command that writes none.
pub(crate) fn form_of(stats: &Stats) -> Option<&'static dumps::File> {
    match stats {
        Stats::Dump(_) => Some(&dumps::DUMP),
        Stats::MultiDump(_) => Some(&dumps::MULTIDUMP),
        Stats::XmlDump(_) => Some(&dumps::XMLDUMP),
        Stats::Clear | Stats::Snap | Stats::Directory(_) | Stats::Command(_) => None,
    }
}

/// Refuses a path that only a shell would complete: a directory of its name would be made.
fn check_path(asked: &Spanned<String>, map: &SourceMap) -> Result<(), Failure> {
    let Some(what) = plan::left_to_shell(&asked.node) else { return Ok(()) };
    let found = Diagnostic::error(Code::OutOfRange, asked.span, format!("{what} in the path of an output"));
    let found = found.help("no shell reads it; write the path out");
    Err(Failure::in_script(Status::Script, map, vec![found]))
}

/// Warns that a file is not written where the script names it, but in the results directory.
fn warn_if_mapped(asked: &Spanned<String>, place: &ResultPlace, path: &Path, map: &SourceMap, front: &mut dyn Front) {
    if !place.mapped {
        return;
    }
    let message = format!("`{}` is outside the results directory: {} is used instead", asked.node, path.display());
    let d = Diagnostic::warning(Code::WritesFile, asked.span, message);
    let help =
        format!("`--results DIR` names that directory; `--allow-write {}` allows this path", place.asked.display());
    front.warnings(map, &[d.help(help)]);
}
