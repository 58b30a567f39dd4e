//! `wmlrun batch`: runs every workload of a Filebench profile, each with its own directory of results, and writes a
//! page over all of them.
//!
//! A session loads the personality, sets the variables where the profile names them, and executes the commands of
//! `thisrun.f`. This script is written beside a copy of the personality: it runs the workload again without the profile.
//! Deliberately absent: the command line and the terminal, which `BatchHost` stands for. `differences` finds what a script
//! does otherwise than in Filebench.

mod differences;
mod experiment;
mod overview;
pub mod profile;
mod results;
mod selection;
mod state;
mod variables;
mod workload;

pub use differences::FoundDifferences;
pub(crate) use experiment::experiment_file;

use crate::diag::{self, Diagnostic, Failure, Severity, Status, has_errors};
use crate::flowop;
use crate::measure::{WarmupLength, unwritable};
use crate::model::{self, Command, CommandKind, Known, Object};
use crate::os::held_dir::HeldDir;
use crate::os::{reading, signals};
use crate::output::{self, FileIdentity, TableFile, file_id};
use crate::page::{self, ResultSource};
use crate::report::{csv_runs, json};
use crate::session::{Front, LONGEST_TIME, Session, Settings, SilentFront, library, typed_value};
use crate::source::{SourceMap, Span, Spanned};
use crate::spec::SpecTable;
use crate::spec::predefined::predefined_names;
use crate::util::batch_files::{BATCH_PAGE, BATCH_RESULT, BATCH_SCRIPT};
use overview::{index_page, joined, overview};
use profile::Config;
use results::{results_dir, warn_of_other_places};
use selection::{check_settings, select, suggest_others};
use state::{Batch, Done, PAGE};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use workload::{ProfileWorkload, Setting};

/// Measured time of a workload whose profile gives none: Filebench's default.
const DEFAULT_TIME: Duration = Duration::from_mins(1);

/// What the command line provides for a batch.
pub(crate) trait BatchHost {
    /// A front end, for messages about the batch or for one workload. `follows` says that the report of another workload
    /// precedes its own.
    fn front(&mut self, follows: bool) -> Box<dyn Front>;
    /// A session that runs one workload.
    fn session(&mut self, settings: Settings) -> Session;
    /// The number of the last signal.
    fn interrupt(&self) -> Arc<AtomicUsize>;
}

/// Runs a profile, or the workloads with the names in `only` unless it is empty, with the settings of the command line.
pub(crate) fn run(path: &Path, settings: &Settings, only: &[String], host: &mut dyn BatchHost) -> Result<(), Failure> {
    let front = &mut *host.front(false);
    if settings.warmup == WarmupLength::UntilSteady {
        // The script of each workload has a `warmup` command, which takes a number of seconds.
        let help = "give a time, such as `--warmup 30`";
        return Err(Failure::wrong("`--warmup auto` can't be written into the scripts of a profile", help));
    }
    let interrupt = host.interrupt();
    with_workloads(path, settings, only, &interrupt, &mut SourceMap::new(), front, &mut |batch, workloads, front| {
        run_all(batch, workloads, host, front)
    })
}

/// Checks a profile and its workloads as before a run, and reports the warnings too. `checked` gets the texts of each
/// workload without errors, and then all personalities; it is told whether what they load is among them. Nothing is
/// written.
pub(crate) fn check_profile(
    path: &Path,
    settings: &Settings,
    front: &mut dyn Front,
    checked: &mut dyn FnMut(&SourceMap, bool),
) -> Result<(), Failure> {
    let (interrupt, mut map) = (Arc::default(), SourceMap::new());
    let done = with_workloads(path, settings, &[], &interrupt, &mut map, front, &mut |batch, workloads, front| {
        for workload in workloads {
            let mut session = Session::new(batch.settings_of(workload), Arc::clone(&interrupt));
            session.only_define();
            workload.define(batch, &mut session, front)?;
            checked(&session.map, true);
        }
        Ok(())
    });
    checked(&map, false);
    done
}

/// What is done with the workloads of a profile.
type Then<'a> = dyn FnMut(&Batch<'_>, &[ProfileWorkload<'_>], &mut dyn Front) -> Result<(), Failure> + 'a;

/// Reads a profile and its personalities into `map`, and checks its workloads before `then` gets them.
fn with_workloads(
    path: &Path,
    settings: &Settings,
    only: &[String],
    interrupt: &Arc<AtomicUsize>,
    map: &mut SourceMap,
    front: &mut dyn Front,
    then: &mut Then<'_>,
) -> Result<(), Failure> {
    let help = "a profile is a file that lists workloads, each with its personality (`CONFIG name { … }`)";
    let text = read(path).map_err(|e| Failure::wrong(format!("{} can't be read: {e}", path.display()), help))?;
    let file = map.add(path.display().to_string(), &text);
    let source = map.clone();
    let (mut profile, mut found) = profile::parse(file, &text);
    if has_errors(&found) {
        return Err(Failure::in_script(Status::Script, map, found));
    }
    let names: Vec<String> = profile.configs.iter().map(|config| config.name.node.clone()).collect();
    select(&mut profile, only)?;
    let batch = Batch { path, source: &source, profile: &profile, names: &names, settings };
    let workloads = workloads(&batch, map, &mut found);
    if !has_errors(&found) {
        let variables: Vec<Vec<String>> = workloads.iter().map(|w| w.variables.clone()).collect();
        found.extend(profile.unknown_keys(&variables, only.is_empty()));
    }
    if has_errors(&found) {
        front.failed(&Failure::in_script(Status::Script, map, found));
        let names: Vec<&str> = workloads.iter().map(|workload| workload.name().node.as_str()).collect();
        suggest_others(&names, front);
        return Err(Failure::unexplained(Status::Script));
    }
    front.warnings(map, &found);
    check_settings(&batch, &workloads)?;
    let mut checked = Vec::new();
    for workload in &workloads {
        let fits = check(workload, &batch, interrupt, front);
        let status = front.status(fits);
        if matches!(status, Status::Interrupted(_)) {
            return Err(Failure::unexplained(status));
        }
        checked.push(status);
    }
    if let Some(failed) = checked.iter().find(|status| **status != Status::Done) {
        let (mut fit, mut unfit) = (Vec::new(), Vec::new());
        for (workload, status) in workloads.iter().zip(&checked) {
            let name = workload.name().node.as_str();
            if *status == Status::Done { fit.push(name) } else { unfit.push(name) }
        }
        let text =
            format!("`CONFIG {}` can't run: a batch runs all of its workloads or none", unfit.join("`, `CONFIG "));
        front.failed(&Failure::new(*failed, text, ""));
        suggest_others(&fit, front);
        return Err(Failure::unexplained(*failed));
    }
    then(&batch, &workloads, front)
}

fn run_all(
    batch: &Batch<'_>,
    workloads: &[ProfileWorkload<'_>],
    host: &mut dyn BatchHost,
    front: &mut dyn Front,
) -> Result<(), Failure> {
    let _kept = signals::Kept::begin();
    let (path, settings) = (batch.path, batch.settings);
    let scripts = std::iter::once(path).chain(workloads.iter().filter_map(|w| w.found.path.as_deref()));
    let read: Vec<FileIdentity> = scripts.filter_map(file_id).collect();
    let create = |path: &Path| json::Writer::create(path, &read, settings.force);
    let mut writer = settings.json.as_deref().map(create).transpose().map_err(|e| {
        Failure::refused(format!("the result file can't be written: {e}"), "give `--json` another path")
    })?;
    // Each workload opens the table again, and would be refused alone.
    let open = |path: &PathBuf| {
        let table = TableFile::open(path, &csv_runs::header_line(), &read);
        table.map_err(|e| unwritable("table", path, &e, "--append"))
    };
    let table = settings.append.as_ref().map(open).transpose()?;
    let (results_dir, mapped) = results_dir(batch, workloads).map_err(|(dir, e)| {
        Failure::refused(format!("{} can't be made: {e}", dir.display()), "name another directory in `stats = …;`")
    })?;
    if let Some(wanted) = mapped {
        let place = results_dir.path().display();
        let text = format!("`stats = {wanted};` is outside the results directory: see {place}");
        front.warning(&text, &format!("`--allow-write {wanted}` lets the profile write there"));
    }
    warn_of_other_places(batch, workloads, front);
    let mut all: Vec<Done<'_>> = Vec::new();
    // The joined result has the workloads so far in any case.
    let mut unwritten = Status::default();
    for (n, workload) in workloads.iter().enumerate() {
        let own_front = &mut *host.front(n > 0);
        let name = &workload.name().node;
        own_front.note(&format!("workload {name} ({})", workload.found.name));
        // What was in the way of the last workload is in the way of all.
        let of_outputs = [writer.as_ref().and_then(json::Writer::directory), table.as_ref().map(TableFile::directory)];
        let in_place = results_dir
            .check_in_place()
            .and_then(|()| of_outputs.into_iter().flatten().try_for_each(HeldDir::check_in_place));
        if let Err(e) = in_place {
            let help = "the workloads so far are in the directory that was there";
            unwritten = front.status(Err(Failure::refused(e.to_string(), help)));
            break;
        }
        let done = match run_one(workload, batch, &results_dir, host, own_front) {
            Ok(done) => done,
            Err(e) => {
                let text = format!("the results of `{name}` can't be written: {e}");
                unwritten = front.status(Err(Failure::failed(text, "")));
                break;
            }
        };
        let stop = matches!(done.status, Status::Interrupted(_));
        all.push(done);
        let written = index_page(results_dir.path(), batch, &all).and_then(|page| {
            output::replace_in(&results_dir, BATCH_PAGE.as_ref(), &mut |out| out.write_all(page.as_bytes()))
        });
        if let Err(e) = written {
            let text = format!("the page of the batch can't be written: {e}");
            unwritten = front.status(Err(Failure::failed(text, "")));
            break;
        }
        if stop {
            break;
        }
    }
    let mut status = all.iter().map(|d| d.status).fold(unwritten, Status::max);
    if let Some(writer) = writer.take()
        && let Err(e) = writer.finish(&joined(batch, &all, workloads.len()))
    {
        let help = format!("the results are in {}", results_dir.path().display());
        let unwritten = Failure::failed(format!("the result file can't be written: {e}"), help);
        status = status.max(front.status(Err(unwritten)));
    }
    if workloads.len() > 1 {
        front.overview(&overview(workloads, &all));
    }
    let here = std::env::current_dir().ok();
    let results_dir = results_dir.path();
    let place = here.and_then(|here| results_dir.strip_prefix(here).ok()).unwrap_or(results_dir).display();
    front.note(&format!("the results are in {place}"));
    front.note(&format!("`wmlrun report {place} --format markdown-runs` prints a table"));
    Failure::outcome(status)
}

/// Finds the personality of every workload, its variables and its settings. Reports those that can't be found or are
/// wrong.
fn workloads<'a>(batch: &Batch<'a>, map: &mut SourceMap, found: &mut Vec<Diagnostic>) -> Vec<ProfileWorkload<'a>> {
    let table = flowop::spec_table();
    let profile = batch.profile;
    let (mut workloads, mut refused) = (Vec::new(), Vec::<&String>::new());
    for config in &profile.configs {
        let errors = count_errors(found);
        if let Some(function) = profile.value(config, "function").filter(|f| !f.node.starts_with("generic")) {
            let message = format!("function `{}` of Filebench's batch mode is not supported", function.node);
            found.push(
                Diagnostic::error(diag::Code::Unsupported, function.span, message)
                    .help("write `function = generic;`, and one `CONFIG` for each of the steps"),
            );
        }
        let runtime = match profile.value(config, "runtime") {
            None => DEFAULT_TIME,
            Some(written) => time(&written.node).unwrap_or_else(|| {
                let message = format!("`{}` is not a run time", written.node);
                let d = Diagnostic::error(diag::Code::WrongType, written.span, message);
                found.push(d.help("give seconds, or a time such as `10m`"));
                DEFAULT_TIME
            }),
        };
        // A profile without a personality has been reported.
        let Some(name) = profile.value(config, "personality") else { continue };
        // Several workloads of one personality have its errors once.
        if refused.contains(&&name.node) {
            continue;
        }
        let keys = profile.values(config).into_iter().map(|assignment| assignment.key.node.clone());
        let Some((script, hidden, model)) = personality(name, keys.collect(), batch, map, &table, found) else {
            refused.push(&name.node);
            continue;
        };
        let variables = variables::of_script(&script, &model, map, &table, batch.settings.dialect);
        let settings = settings_of(config, &variables, batch, map, &table, found);
        if count_errors(found) > errors {
            continue;
        }
        workloads.push(ProfileWorkload {
            config,
            found: script,
            hidden,
            dialect: (model.dialect.name(), format!("{}: {}", name.node, model.dialect_reason)),
            settings,
            variables,
            debug: profile.value(config, "debug").map(|level| level.node.clone()),
            runtime: batch.settings.runtime.unwrap_or(runtime),
            warmup: match batch.settings.warmup {
                WarmupLength::Fixed(time) => time,
                WarmupLength::UntilSteady => Duration::ZERO,
            },
        });
    }
    workloads
}

fn count_errors(found: &[Diagnostic]) -> usize {
    found.iter().filter(|d| d.severity == Severity::Error).count()
}

/// Finds and checks a personality, which may read variables that only the profile sets. `keys` are those of the
/// workload. Also returns whether messages must not quote it. `None` if it can't be used, which is reported.
fn personality(
    name: &Spanned<String>,
    keys: Vec<String>,
    batch: &Batch<'_>,
    map: &mut SourceMap,
    table: &SpecTable,
    found: &mut Vec<Diagnostic>,
) -> Option<(library::FoundScript, bool, model::Model)> {
    let beside = batch.path.parent();
    let script = match library::find(&name.node, beside) {
        Ok(script) => script,
        Err(e) => {
            found.push(e.diagnostic(name));
            return None;
        }
    };
    let file = map.add(&script.name, &script.text);
    let hidden = library::is_elsewhere(&script, beside);
    let known = Known { variables: keys.into_iter().chain(predefined_names()).collect(), ..Known::default() };
    if hidden {
        map.hide(file);
        let message = format!("{} is outside the profile's folder", script.name);
        let d = Diagnostic::warning(diag::Code::LoadsElsewhere, name.span, message);
        found.push(d.help("look at that file: messages quote nothing of it"));
    }
    let (model, problems) = model::check(map, file, table, batch.settings.dialect, &known);
    if has_errors(&problems) {
        found.extend(problems);
        return None;
    }
    found.extend(dropped_runs(&model.commands).into_iter().chain(own_run(&model.commands)));
    Some((script, hidden, model))
}

/// Returns the warning about a personality that makes several runs, of which a profile makes one.
fn dropped_runs(commands: &[Command]) -> Option<Diagnostic> {
    let is_run = |c: &&Command| matches!(c.kind, CommandKind::Run { .. } | CommandKind::PsRun { .. });
    let in_loops = |c: &&Command| !commands.iter().any(|outer| outer.span == c.span);
    let mut runs = model::visit::all(commands).filter(is_run);
    let first = runs.next()?;
    let second = runs.next().or_else(|| Some(first).filter(in_loops))?;
    let message = "the script makes several runs, and a profile makes one of each personality";
    let help = "run the script itself, by `wmlrun SCRIPT`, for all of its runs";
    Some(Diagnostic::warning(diag::Code::Ignored, second.span, message).help(help))
}

/// Returns the warning about a personality that starts its processes itself.
fn own_run(commands: &[Command]) -> Option<Diagnostic> {
    let starts = |c: &&Command| matches!(c.kind, CommandKind::Create(Object::Processes | Object::All));
    let message = "the personality makes a run of its own, before that of the profile and without its variables";
    let help = "its `$dir` may be another one, too: give `--dir`, or remove `create processes` and what follows it";
    let span = model::visit::all(commands).find(starts)?.span;
    Some(Diagnostic::warning(diag::Code::Ignored, span, message).help(help))
}

/// The variables that the profile and the command line set for a workload, in order: a value of the command line
/// replaces that of the profile.
fn settings_of(
    config: &Config,
    variables: &[String],
    batch: &Batch<'_>,
    map: &mut SourceMap,
    table: &SpecTable,
    found: &mut Vec<Diagnostic>,
) -> Vec<Setting> {
    let variables: HashSet<&str> = variables.iter().map(String::as_str).collect();
    let used = |name: &str| variables.contains(name);
    let mut given = batch.sets_of(config);
    given.retain(|(name, _)| used(name));
    let mut settings = Vec::new();
    let is_given: HashSet<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
    for assignment in batch.profile.values(config) {
        let (key, value) = (&assignment.key.node, &assignment.value);
        if used(key) && !is_given.contains(key.as_str()) {
            match typed_value(map, table, key, value.span) {
                Ok(typed) => settings.push(Setting { name: key.clone(), written: value.node.clone(), typed }),
                Err(wrong) => found.extend(wrong),
            }
        }
    }
    for (name, value) in given {
        let file = map.add("<command line>", &value);
        // An error of the command line is reported by each session.
        if let Ok(typed) = typed_value(map, table, &name, Span::new(file, 0, value.len())) {
            settings.push(Setting { name, written: value, typed });
        }
    }
    settings
}

/// Parses a time of a profile: seconds, or with units.
fn time(text: &str) -> Option<Duration> {
    crate::util::duration::parse(text).ok().filter(|time| !time.is_zero() && *time <= LONGEST_TIME)
}

/// Reads the text of a profile.
fn read(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind};
    let invalid = |what: &str| Err(Error::new(ErrorKind::InvalidData, what));
    if std::fs::metadata(path)?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let bytes = reading::read(path, library::LONGEST)?;
    String::from_utf8(bytes).or_else(|_| invalid("it is not UTF-8"))
}

/// Makes the plan of a workload, before anything is written.
fn check(
    workload: &ProfileWorkload<'_>,
    batch: &Batch<'_>,
    interrupt: &Arc<AtomicUsize>,
    front: &mut dyn Front,
) -> Result<(), Failure> {
    let mut session = Session::new(batch.settings_of(workload), Arc::clone(interrupt));
    session.only_define();
    let mut silent = SilentFront::default();
    let defined = workload.define(batch, &mut session, &mut silent);
    let planned = defined.and_then(|()| session.plan(&mut silent));
    let checked = planned.and_then(|plan| session.check_machine(&plan));
    // Otherwise the run shows the warnings.
    if checked.is_err() {
        front.warnings(&session.map, &silent.found);
    }
    checked
}

/// Runs one workload. An error is one of its directory of results.
fn run_one<'a>(
    workload: &ProfileWorkload<'a>,
    batch: &Batch<'_>,
    results_dir: &HeldDir,
    host: &mut dyn BatchHost,
    front: &mut dyn Front,
) -> std::io::Result<Done<'a>> {
    let name = workload.name().node.as_ref();
    results_dir.make_new_dir(name)?;
    let held = results_dir.enter_any(name)?;
    // The session finds it by its path.
    let _known = held.make_known()?;
    let dir = held.path().to_owned();
    let personality = batch.value(workload.config, "personality").unwrap_or_default();
    // The copy of the personality is beside the script that loads it, under the name that the profile has for it.
    let stem = Path::new(personality).file_stem().map_or_else(|| personality.into(), |s| s.to_string_lossy());
    let is_taken = BATCH_SCRIPT.strip_suffix(".f") == Some(&*stem);
    let stem = if is_taken { format!("{stem}-personality").into() } else { stem };
    held.write_new(format!("{stem}.f").as_ref(), workload.found.text.as_bytes())?;
    let script_path = dir.join(BATCH_SCRIPT);
    held.write_new(BATCH_SCRIPT.as_ref(), workload.script(&stem, true).as_bytes())?;
    // A redacted result does not have the current directory.
    let script = workload.script(&stem, !batch.settings.redact);
    let description = batch.value(workload.config, "description").unwrap_or_default();
    held.write_new("thisrun.prof".as_ref(), format!("# \"{description}\"\n{}", batch.text()).as_bytes())?;
    let settings = Settings {
        json: Some(dir.join(BATCH_RESULT)),
        results: dir.clone(),
        workload: Some(workload.name().node.clone()),
        joined: batch.settings.json.clone(),
        // Each workload has its own trace, which no other file of the directory replaces.
        trace: batch.settings.trace.as_ref().map(|(file, n)| {
            let name = file.file_name().unwrap_or_default();
            let is_taken = [BATCH_RESULT, PAGE].iter().any(|taken| name == *taken) || dir.join(name).exists();
            (if is_taken { dir.join("trace-of").with_added_extension(name) } else { dir.join(name) }, *n)
        }),
        warmup: WarmupLength::NONE,
        ..batch.settings_of(workload)
    };
    let mut session = host.session(settings);
    let mut status = front.status(session.runner.outputs.open_outputs(std::slice::from_ref(&script_path)));
    if status == Status::Done {
        front.begin(&session.runner.outputs.document);
        let (dialect, reason) = &workload.dialect;
        session.stand_for(&script_path.display().to_string(), &script, (dialect, reason));
        let defined = workload.define(batch, &mut session, front);
        let measured = defined.and_then(|()| workload.measure(&mut session, front));
        status = front.status(measured);
        session.runner.end_script(status);
        front.end(&session.runner.outputs.document);
    }
    let document = session.runner.outputs.document.clone();
    session.runner.watch.note_status(status);
    status = session.finish(front).max(status);
    if !document.runs.is_empty() {
        let source = ResultSource::Runs { name: BATCH_RESULT.to_owned(), document: Box::new(document.clone()) };
        let html = page::html(&[source], None).map_err(std::io::Error::other);
        // The run and its result count nevertheless.
        if let Err(e) = html.and_then(|html| held.write_new(PAGE.as_ref(), html.as_bytes())) {
            let text = format!("the page of `{}` can't be written: {e}", workload.name().node);
            let unwritten = Failure::failed(text, "`wmlrun report` makes it from the result");
            status = status.max(front.status(Err(unwritten)));
        }
    }
    Ok(Done { config: workload.config, personality: personality.to_owned(), document, status })
}
