//! `wmlrun batch`: every workload of a Filebench profile, each with its directory of results, and a page over all.
//!
//! What runs is a script that is written first, `thisrun.f` beside a copy of its personality, so that each workload can be
//! run again without the profile. Deliberately absent: the command line and the terminal, which [`BatchHost`] stands for.

pub mod profile;

use crate::diag::{self, Diagnostic, has_errors};
use crate::flowop;
use crate::measure::WarmupLength;
use crate::model::{self, Known};
use crate::output::{self, FileIdentity, Results, file_id};
use crate::report::{index, json};
use crate::result::{Document, Run};
use crate::session::{Front, Session, Settings, Status, library};
use crate::source::SourceMap;
use crate::spec::predefined::predefined_names;
use profile::{Config, Profile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Seconds of a workload whose profile says nothing: Filebench's own default.
const DEFAULT_SECONDS: f64 = 60.0;

/// A workload that is about to run.
struct Job<'a> {
    config: &'a Config,
    /// The personality, as it was found.
    found: library::FoundScript,
    /// Its variables.
    variables: Vec<String>,
}

/// What has come of a workload.
struct Done<'a> {
    config: &'a Config,
    personality: String,
    document: Document,
    status: Status,
}

/// What a batch is given by the command line.
pub trait BatchHost {
    /// A front end: for what is said of the batch, and one for each workload.
    fn front(&mut self) -> Box<dyn Front>;
    /// A session in which a workload runs.
    fn session(&mut self, settings: Settings) -> Session;
    /// Where signals leave their number.
    fn interrupt(&self) -> Arc<AtomicUsize>;
}

/// Runs a profile. `settings` are those of the command line, for each of the workloads. Returns the exit status.
pub fn run(path: &Path, settings: &Settings, host: &mut dyn BatchHost) -> u8 {
    let front = &mut *host.front();
    if settings.warmup == WarmupLength::UntilSteady {
        // It becomes a `warmup` command of each workload's script, so that the script can be run again by itself.
        let help = Some("give a time, such as `--warmup 30`");
        front.error(None, "`--warmup auto` can't be written into the scripts of a profile", help);
        return 2;
    }
    let text = match read(path) {
        Ok(text) => text,
        Err(e) => {
            front.error(None, &format!("{} can't be read: {e}", path.display()), Some("name a profile of Filebench's"));
            return 2;
        }
    };
    let mut map = SourceMap::new();
    let file = map.add(path.display().to_string(), &text);
    let (profile, mut found) = profile::parse(file, &text);
    let jobs = if has_errors(&found) { Vec::new() } else { jobs(&profile, path, settings, &mut map, &mut found) };
    if !has_errors(&found) {
        let variables: Vec<Vec<String>> = jobs.iter().map(|j| j.variables.clone()).collect();
        found.extend(profile.unknown_keys(&variables));
    }
    front.diagnostics(&map, &found);
    if has_errors(&found) || !settings_fit(settings, &jobs, front) {
        return 2;
    }
    for job in &jobs {
        let status = check(job, &profile, path, settings, &host.interrupt(), front);
        if status != Status::Done {
            let name = &job.config.name.node;
            front.error(None, &format!("`CONFIG {name}` can't run, so that none was begun"), None);
            return status.code();
        }
    }
    let scripts = std::iter::once(path).chain(jobs.iter().filter_map(|job| job.found.path.as_deref()));
    let read: Vec<FileIdentity> = scripts.filter_map(file_id).collect();
    let create = |path: &Path| json::Writer::create(path, &read);
    let mut writer = match settings.json.as_deref().map(create).transpose() {
        Ok(writer) => writer,
        Err(e) => {
            front.error(None, &format!("the result file can't be written: {e}"), Some("give `--json` another path"));
            return 3;
        }
    };
    let results_dir = match results_dir(&profile, &jobs, path, settings) {
        Ok((results_dir, mapped)) => {
            if let Some(wanted) = mapped {
                let text =
                    format!("`stats = {wanted};` is outside of the results directory: see {}", results_dir.display());
                front.warning(&text, &format!("`--allow-write {wanted}` lets the profile write there"));
            }
            results_dir
        }
        Err((results_dir, e)) => {
            let help = "name another directory in `stats = …;`";
            front.error(None, &format!("{} can't be made: {e}", results_dir.display()), Some(help));
            return 3;
        }
    };
    let mut all: Vec<Done<'_>> = Vec::new();
    for job in &jobs {
        let workload = &mut *host.front();
        workload.note(&format!("workload {} ({})", job.config.name.node, job.found.name));
        let done = match run_one(job, &profile, path, &results_dir, settings, host, workload) {
            Ok(done) => done,
            Err(e) => {
                front.error(None, &format!("the results of `{}` can't be written: {e}", job.config.name.node), None);
                return 1;
            }
        };
        let stop = matches!(done.status, Status::Interrupted(_));
        all.push(done);
        let index = results_dir.join("index.html");
        let written = page(&results_dir, &profile, &all)
            .and_then(|page| output::replace(&index, &mut |out| out.write_all(page.as_bytes())));
        if let Err(e) = written {
            front.error(None, &format!("the page of the batch can't be written: {e}"), None);
            return 1;
        }
        if stop {
            break;
        }
    }
    let mut status = all.iter().map(|d| d.status).max().unwrap_or_default();
    if let Some(writer) = writer.take()
        && let Err(e) = writer.finish(&joined(path, &text, &all, settings.redact))
    {
        let results_dir = results_dir.display();
        front.error(
            None,
            &format!("the result file can't be written: {e}"),
            Some(&format!("the results are in {results_dir}")),
        );
        status = status.max(Status::Failed);
    }
    front.note(&format!("the results are in {}", results_dir.display()));
    status.code()
}

/// Finds every personality and its variables; what can't be found or is wrong is told.
fn jobs<'a>(
    profile: &'a Profile,
    path: &Path,
    settings: &Settings,
    map: &mut SourceMap,
    found: &mut Vec<Diagnostic>,
) -> Vec<Job<'a>> {
    let table = flowop::spec_table();
    let beside = path.parent();
    let mut jobs = Vec::new();
    for config in &profile.configs {
        if let Some(function) = profile.value(config, "function").filter(|f| !f.node.starts_with("generic")) {
            let message = format!("function `{}` of Filebench's batch mode is not known here", function.node);
            found.push(
                Diagnostic::error(diag::Code::Unsupported, function.span, message)
                    .help("write `function = generic;`, and one `CONFIG` for each of the steps"),
            );
        }
        if let Some(time) = profile.value(config, "runtime").filter(|t| seconds(&t.node).is_none()) {
            found.push(
                Diagnostic::error(diag::Code::WrongType, time.span, format!("`{}` is no run time", time.node))
                    .help("give seconds, or a time such as `10m`"),
            );
        }
        // A profile without one has been told so.
        let Some(name) = profile.value(config, "personality") else { continue };
        match library::find(&name.node, beside) {
            Ok(script) => {
                let file = map.add(&script.name, &script.text);
                let elsewhere = library::is_elsewhere(&script.name, beside);
                if elsewhere {
                    map.hide(file);
                }
                let known = Known { variables: predefined_names().collect(), ..Known::default() };
                let (model, problems) = model::check(map, file, &table, settings.dialect, &known);
                if has_errors(&problems) {
                    if elsewhere {
                        let message = format!("{} lies outside of the profile's own folder", script.name);
                        let d = Diagnostic::warning(diag::Code::LoadsElsewhere, name.span, message);
                        found.push(d.help("look at what it is; nothing of it is shown"));
                    }
                    found.extend(problems);
                    continue;
                }
                let mut variables = Vec::new();
                model::check::each_variable(&model.commands, &mut |v| {
                    if !variables.iter().any(|known| known == v) {
                        variables.push(v.to_owned());
                    }
                });
                jobs.push(Job { config, found: script, variables });
            }
            Err(library::NotFound::Unreadable(path, e)) => found.push(
                Diagnostic::error(diag::Code::BadArgument, name.span, format!("{} can't be read: {e}", path.display()))
                    .help(library::help(&e)),
            ),
            Err(library::NotFound::Nowhere(near)) => {
                let message = format!("there is no personality `{}`, beside the profile or shipped", name.node);
                let help =
                    near.map_or("`wmlrun list` shows what is shipped".to_owned(), |n| format!("did you mean `{n}`?"));
                found.push(Diagnostic::error(diag::Code::BadArgument, name.span, message).help(help));
            }
        }
    }
    jobs
}

/// Whether every `--set` changes something in some workload; if not, it is told.
fn settings_fit(settings: &Settings, jobs: &[Job<'_>], front: &mut dyn Front) -> bool {
    let names: Vec<&str> = jobs.iter().flat_map(|j| j.variables.iter().map(String::as_str)).collect();
    let mut fit = true;
    for (name, value) in &settings.sets {
        if !names.contains(&name.as_str()) {
            let help = diag::nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            front.error(None, &format!("no personality of the profile uses `${name}` (`{value}`)"), help.as_deref());
            fit = false;
        }
    }
    fit
}

/// A time of a profile: seconds, or with units.
fn seconds(text: &str) -> Option<f64> {
    crate::util::duration::parse(text).ok().map(|d| d.as_secs_f64()).filter(|s| *s > 0.0)
}

/// The text of a profile.
fn read(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind};
    let invalid = |what: &str| Err(Error::new(ErrorKind::InvalidData, what));
    let meta = std::fs::metadata(path)?;
    if meta.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return invalid("it is no regular file");
    }
    let bytes = std::fs::File::open(path).and_then(library::read_bytes)?;
    String::from_utf8(bytes).or_else(|_| invalid("it is not UTF-8"))
}

/// The mistakes of a workload's script that only its values show, before anything is made.
fn check(
    job: &Job<'_>,
    profile: &Profile,
    path: &Path,
    settings: &Settings,
    interrupt: &Arc<AtomicUsize>,
    front: &mut dyn Front,
) -> Status {
    let name = job.found.path.as_ref().map_or_else(
        || job.found.name.trim_end_matches(" (shipped)").to_owned(),
        |path| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
    );
    let settings = Settings {
        sets: settings.sets.iter().filter(|(name, _)| job.variables.contains(name)).cloned().collect(),
        ..settings.clone()
    };
    let script = script(job, profile, &name, &settings);
    let mut session = Session::new(settings, Arc::clone(interrupt));
    // What lies beside the profile is its own.
    let shown = path.with_file_name(format!("{} of the profile", job.config.name.node.replace('/', "_")));
    let status = session.read(&shown.display().to_string(), &script, front);
    match status {
        Status::Done if session.plan(front).is_none() => Status::Script,
        status => status,
    }
}

/// Makes the directory of the batch: `STATS/HOST-FILESYSTEM-PROFILE-TIME`, below the results directory; and what the profile
/// says instead, if that leads elsewhere. An error comes with the path that it is about.
fn results_dir(
    profile: &Profile,
    jobs: &[Job<'_>],
    path: &Path,
    settings: &Settings,
) -> Result<(PathBuf, Option<String>), (PathBuf, std::io::Error)> {
    let Some(job) = jobs.first() else { return Err((PathBuf::new(), std::io::ErrorKind::NotFound.into())) };
    let value = |key: &str| profile.value(job.config, key).map(|v| v.node.clone());
    let stats = value("stats").unwrap_or_else(|| "stats".to_owned());
    let set = settings.sets.iter().rev().find(|(name, _)| name == "dir").map(|(_, dir)| dir.clone());
    let dir = set.or_else(|| value("dir")).unwrap_or_else(|| ".".to_owned());
    let kind = || crate::measure::file_system(Path::new(&dir));
    let filesystem = value("filesystem").or_else(kind).unwrap_or_else(|| "unknown".to_owned());
    let host = if settings.redact { "host".to_owned() } else { crate::measure::hostname() };
    let stem = path.file_stem().map_or("profile".into(), |s| s.to_string_lossy());
    let name = format!("{host}-{filesystem}-{stem}-{}", crate::measure::day_and_time()).replace('/', "_");
    let results = Results::new(&settings.results, &settings.allow_write);
    results.check().map_err(|e| (results.base().to_owned(), e))?;
    let mapped = results.place(Path::new(&stats)).mapped.then(|| stats.clone());
    let place = results.place(&Path::new(&stats).join(name));
    // Of two batches in one second the other gets a number.
    let results_dir = results.make_new_dir(&place).map_err(|e| (place.path(), e))?;
    Ok((results_dir, mapped))
}

/// Runs one workload. An error is one of its directory's.
fn run_one<'a>(
    job: &Job<'a>,
    profile: &'a Profile,
    path: &Path,
    results_dir: &Path,
    settings: &Settings,
    host: &mut dyn BatchHost,
    front: &mut dyn Front,
) -> std::io::Result<Done<'a>> {
    let name = &job.config.name.node;
    let dir = results_dir.join(name);
    std::fs::create_dir(&dir)?;
    let personality = profile.value(job.config, "personality").map_or("", |p| p.node.as_str());
    // The personality lies beside the script that loads it, under the name that the profile has for it.
    let stem = Path::new(personality).file_stem().map_or_else(|| personality.into(), |s| s.to_string_lossy());
    std::fs::write(dir.join(format!("{stem}.f")), &job.found.text)?;
    let script = script(job, profile, &stem, settings);
    let script_path = dir.join("thisrun.f");
    std::fs::write(&script_path, &script)?;
    let description = profile.value(job.config, "description").map_or("", |d| d.node.as_str());
    let copy = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(dir.join("thisrun.prof"), format!("# \"{description}\"\n{copy}"))?;
    let settings = Settings {
        json: Some(dir.join("result.json")),
        results: dir.clone(),
        // Where a trace is wanted, each workload has its own.
        trace: settings.trace.as_ref().map(|(file, n)| (dir.join(file.file_name().unwrap_or_default()), *n)),
        warmup: WarmupLength::NONE,
        sets: settings.sets.iter().filter(|(name, _)| job.variables.contains(name)).cloned().collect(),
        ..settings.clone()
    };
    let mut session = host.session(settings);
    let mut status = session.runner.open_outputs(std::slice::from_ref(&script_path), front);
    if status == Status::Done {
        front.begin(&session.runner.document);
        status = session.script(&script_path.display().to_string(), &script, front);
        front.end(&session.runner.document);
    }
    let document = session.runner.document.clone();
    session.runner.note_status(status);
    status = session.finish(front).max(status);
    Ok(Done { config: job.config, personality: personality.to_owned(), document, status })
}

/// The script of one workload, as Filebench's batch mode wrote it.
fn script(job: &Job<'_>, profile: &Profile, personality: &str, settings: &Settings) -> String {
    let name = &job.config.name.node;
    let runtime = profile.value(job.config, "runtime").and_then(|t| seconds(&t.node)).unwrap_or(DEFAULT_SECONDS);
    let runtime = settings.runtime.map_or(runtime, |t| t.as_secs_f64());
    let mut lines = vec![format!("load {}", quoted(personality))];
    let mut values = profile.values(job.config);
    for (name, value) in settings.sets.iter().filter(|(name, _)| job.variables.contains(name)) {
        // The command line wins here as everywhere; so it does when the script is run again.
        values.retain(|(key, _)| key != name);
        values.push((name, value));
    }
    for (key, value) in values {
        if key == "debug" {
            lines.push(format!("debug {value}"));
        } else if job.variables.iter().any(|v| v == key) {
            lines.push(format!("set ${key}={}", word(value)));
        }
    }
    lines.push("create filesets".to_owned());
    // That of `--results`, which is the workload's own here, and where the script lies when it is run again there.
    lines.push("stats directory \".\"".to_owned());
    lines.push("create processes".to_owned());
    if let WarmupLength::Fixed(time) = settings.warmup
        && !time.is_zero()
    {
        lines.push(format!("warmup {}", time.as_secs_f64()));
    }
    lines.push("stats clear".to_owned());
    lines.push(format!("sleep {runtime}"));
    lines.push("stats snap".to_owned());
    lines.push(format!("stats dump {}", quoted(&format!("stats.{name}.out"))));
    lines.push(format!("stats xmldump {}", quoted(&format!("stats.{name}.xml"))));
    lines.push("shutdown processes".to_owned());
    lines.push("quit\n".to_owned());
    lines.join("\n")
}

/// A value as the language writes it: numbers and plain words as they are, all else in quotes.
fn word(value: &str) -> String {
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let plain = value.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if plain || (number.parse::<f64>().is_ok() && value.len() <= number.len() + 1) || value.starts_with('$') {
        value.to_owned()
    } else {
        quoted(value)
    }
}

fn quoted(text: &str) -> String {
    let escaped: String =
        text.chars().flat_map(|c| ['\\', c].into_iter().skip(usize::from(!"\\\"$".contains(c)))).collect();
    format!("\"{escaped}\"")
}

/// The last measurement of a workload.
fn measured<'a>(done: &'a Done<'_>) -> Option<&'a Run> {
    done.document.runs.last()
}

fn page(results_dir: &Path, profile: &Profile, all: &[Done<'_>]) -> std::io::Result<String> {
    let title = results_dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let description = all.first().and_then(|d| profile.value(d.config, "description"));
    let mounts = all.iter().filter_map(measured).flat_map(|run| &run.environment.mounts);
    let place = all.first().map_or_else(String::new, |d| {
        let e = &d.document.environment;
        let mount = mounts.clone().next().map_or(String::new(), |m| format!(", {} ({})", m.kind, m.source));
        format!("{} {} {}{mount}", e.uname.nodename, e.uname.sysname, e.uname.release)
    });
    let workloads = all
        .iter()
        .map(|d| {
            let name = d.config.name.node.as_str();
            let names = [
                ("script", "thisrun.f".to_owned()),
                ("profile", "thisrun.prof".to_owned()),
                ("statistics", format!("stats.{name}.out")),
                ("XML", format!("stats.{name}.xml")),
                ("JSON", "result.json".to_owned()),
            ];
            let there = names.into_iter().filter(|(_, file)| results_dir.join(name).join(file).is_file());
            index::Workload {
                name,
                personality: &d.personality,
                run: measured(d),
                ended: "nothing was measured",
                files: there.map(|(what, file)| (what, index::link(&[name, &file]))).collect(),
            }
        })
        .collect();
    let description = description.map_or("", |d| d.node.as_str());
    index::html(&index::Page { title: &title, description, place: &place, workloads }).map_err(std::io::Error::other)
}

/// All workloads in one document, whose script is the profile.
fn joined(path: &Path, text: &str, all: &[Done<'_>], redact: bool) -> Document {
    let mut document = all.first().map(|d| d.document.clone()).unwrap_or_default();
    document.script.path = path.display().to_string();
    text.clone_into(&mut document.script.text);
    document.script.sha256 = crate::measure::sha256(text);
    if redact {
        crate::measure::redact_script(&mut document.script);
    }
    document.runs = all.iter().flat_map(|d| d.document.runs.iter().cloned()).collect();
    document
}
