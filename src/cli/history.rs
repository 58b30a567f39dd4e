//! `wmlrun history`: a folder of results by tests and nights, and a verdict on the last night.

use super::console::{notice, print_lines};
use super::history_args::{ExportedNights, HistoryCommand, ShownHistory};
use super::page_files::{drawn_target, write_to};
use super::stdout::Stdout;
use super::usage::import_help;
use crate::comparison::{AsJson as _, figure};
use crate::diag::{Failure, Status, did_you_mean, meant};
use crate::history::{
    AcceptedLevel, AddedRuns, History, HistoryFolder, HistoryRun, NewRuns, NightName, NightReport, SHOWN_NIGHTS,
    TestName,
};
use crate::import::{self, HistoryResult, Metric, Observation};
use crate::os::{child, signals};
use crate::page;
use crate::sheet::mail;
use crate::util::count::count;
use crate::util::printable;
use crate::util::timestamp::{days_since, local_day};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice::from_ref;
use std::sync::atomic::Ordering::SeqCst;

/// The years that are read for a verdict, which is one on at most 400 nights.
const JUDGED_YEARS: usize = 2;

/// Runs `wmlrun history`. Returns the exit status.
pub(super) fn history(what: HistoryCommand) -> Result<u8, Failure> {
    match what {
        HistoryCommand::Add { folder, results, night, place, metrics } => {
            add(&folder, &results, &AddWish { night, place, metrics })
        }
        HistoryCommand::Check { shown, confirm } => {
            let (_, history) = read(&shown.folder, JUDGED_YEARS)?;
            let mut report = report(&history, &shown.folder, &shown.metric, SHOWN_NIGHTS)?;
            tell_paced(&history, &shown.metric);
            if let Some(command) = confirm
                && confirmed(&shown, &report, &command)?
            {
                let (_, history) = open(&shown.folder, JUDGED_YEARS)?;
                report = NightReport::of(&history, &shown.metric, SHOWN_NIGHTS);
            }
            let sheet = || {
                let mut sheet = report.sheet();
                sheet.answer.details.extend(report.night.as_deref().and_then(age));
                sheet
            };
            print_lines(shown.format.write_either(|| report.json(), sheet).trim_end());
            Ok(report.state.code())
        }
        HistoryCommand::Bisect { folder, test, metric } => {
            let (_, history) = read(&folder, JUDGED_YEARS)?;
            let of = find(&history, &test)?;
            let report = report(&history, &folder, &metric, SHOWN_NIGHTS)?;
            let sheet = report.boundary_sheet(&of).ok_or_else(|| {
                Failure::wrong(format!("`{test}` is not worse"), "`wmlrun history check` names the tests that are")
            })?;
            print_lines(mail::write(&sheet).trim_end());
            Ok(0)
        }
        HistoryCommand::Plot { folder, test, output, metric, force } => {
            plot(&folder, test.as_deref(), &output, &metric, force)
        }
        HistoryCommand::Export { folder, format } => {
            let (_, history) = read(&folder, usize::MAX)?;
            let text = match format {
                ExportedNights::Csv => history.csv(),
                ExportedNights::Openmetrics => history.openmetrics(),
            };
            // `Stdout` records the error.
            let _ = Stdout.write_all(text.as_bytes());
            Ok(0)
        }
        HistoryCommand::Show { shown, test } => show(&shown, test.as_deref()),
        HistoryCommand::Accept { folder, test, since, why } => accept(&folder, &test, &since, &why),
        HistoryCommand::Forget { folder, test, night, keep } => {
            let (dir, history) = read(&folder, usize::MAX)?;
            let of = test.as_deref().map(|test| find(&history, test)).transpose()?;
            let first = keep.and_then(|keep| history.first_of_last(keep.get()));
            let is_it = |run: &HistoryRun| {
                let is_old = || first.is_some_and(|first| run.night.as_str() < first);
                (keep.is_none() || is_old())
                    && of.as_ref().is_none_or(|of| of.is(&run.test, &run.place))
                    && night.as_ref().is_none_or(|n| *n == run.night)
            };
            // What was accepted of a test stays as long as it has other nights.
            let whole = of.as_ref().filter(|_| night.is_none());
            let removed = dir.forget(whole, is_it).map_err(failed(&folder))?;
            print_lines(&format!("removed: {}", count(removed, "run")));
            Ok(0)
        }
    }
}

/// How results are added.
struct AddWish {
    night: Option<String>,
    place: Option<String>,
    metrics: Vec<Metric>,
}

/// The failure of a call on the folder of a history.
fn failed(folder: &Path) -> impl Fn(io::Error) -> Failure {
    let name = folder.display().to_string();
    move |error| Failure::refused(format!("{name}: {error}"), "give the folder of a history, or a new one")
}

/// Opens a history and reads it.
fn open(folder: &Path, years: usize) -> Result<(HistoryFolder, History), Failure> {
    let dir = HistoryFolder::open(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let text = format!("there is no history in {}", folder.display());
            Failure::wrong(text, format!("`wmlrun history add {} RESULT` makes one", folder.display()))
        }
        _ => failed(folder)(error),
    })?;
    let history = dir.read(years).map_err(failed(folder))?;
    Ok((dir, history))
}

/// The same; what can't be read is told.
fn read(folder: &Path, years: usize) -> Result<(HistoryFolder, History), Failure> {
    let found = open(folder, years)?;
    found.1.notes.iter().for_each(|note| notice(&format!("note: {note}")));
    Ok(found)
}

/// The test that a text names.
fn find(history: &History, text: &str) -> Result<TestName, Failure> {
    history.find(text).ok_or_else(|| {
        let names: Vec<String> = history.names().into_iter().map(|(_, label)| label).collect();
        let all = || {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("the tests are {}", import::shortened(&names))
        };
        let help = did_you_mean(meant(text, names.iter().map(String::as_str)), all);
        Failure::wrong(format!("there is no test `{text}`"), help)
    })
}

/// Tells of rates that say nothing.
fn tell_paced(history: &History, metric: &Metric) {
    let paced = history.paced();
    if *metric == Metric::ops() && !paced.is_empty() {
        let names = import::shortened(&paced);
        notice(&format!("note: scripts set the rate of {names}: see `--metric response.mean`"));
    }
}

/// What is to be told of a last night that was not the one just past.
fn age(night: &str) -> Option<String> {
    let days = days_since(night).filter(|days| *days > 1)?;
    Some(format!("The last night, {night}, was {days} days ago."))
}

/// Accepts the level of a test, or of all that have a level of this name, and says from which one to which. Returns the exit
/// status.
fn accept(folder: &Path, test: &str, since: &str, why: &str) -> Result<u8, Failure> {
    let (dir, history) = read(folder, usize::MAX)?;
    let with_level = history.with_level(test);
    let mut all = if history.find(test).is_none() && !with_level.is_empty() {
        with_level
    } else {
        vec![(find(&history, test)?, test.to_owned())]
    };
    // A cell may have failed that night.
    let has_night = |of: &TestName| history.nights_of(of).contains(since);
    if all.iter().any(|(of, _)| has_night(of)) {
        all.retain(|(of, _)| has_night(of));
    } else if let Some((of, label)) = all.first() {
        let nights = history.nights_of(of);
        let first = nights.first().map_or_else(String::new, ToString::to_string);
        let last: Vec<&str> = nights.into_iter().rev().take(3).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join(", ");
        let help = format!("its last nights are {last}; its first one, {first}, undoes what was accepted");
        return Err(Failure::wrong(format!("`{label}` has no night {since}"), help));
    }
    for (of, _) in &all {
        let TestName { test, place } = of.clone();
        let level = AcceptedLevel { test, place, since: since.to_owned(), why: why.to_owned() };
        dir.accept(level).map_err(failed(folder))?;
    }
    let [before, after] =
        [&history, &open(folder, usize::MAX)?.1].map(|history| NightReport::of(history, &Metric::ops(), SHOWN_NIGHTS));
    for (of, label) in &all {
        let level = |report: &NightReport| {
            report.test(of).and_then(|test| test.reference).map(|value| figure(&report.metric, value))
        };
        let levels = level(&before).zip(level(&after)).filter(|(before, after)| before != after);
        let levels = levels.map_or_else(String::new, |(before, after)| format!("{before} → {after} "));
        let name = if all.len() > 1 { format!("{label} ") } else { String::new() };
        print_lines(&format!("accepted: {name}{levels}since {since}"));
    }
    Ok(0)
}

/// Judges a history by the metric that is asked for.
fn report(history: &History, folder: &Path, metric: &Metric, nights: usize) -> Result<NightReport, Failure> {
    let report = NightReport::of(history, metric, nights);
    match report.tests.iter().any(|test| test.reference.is_some()) {
        true => Ok(report),
        false => Err(lacking(&folder.display().to_string(), metric)),
    }
}

/// Leaves this test alone in a report, if there is one to leave.
fn keep_only(report: &mut NightReport, of: Option<&TestName>, metric: &Metric) -> Result<(), Failure> {
    let Some(of) = of else { return Ok(()) };
    report.tests.retain(|test| of.is(&test.test, &test.place));
    if report.tests.is_empty() { Err(lacking(&of.test, metric)) } else { Ok(()) }
}

/// The failure that no run has a metric.
fn lacking(place: &str, metric: &Metric) -> Failure {
    let help = format!("add the results again with `--metric {metric}` after `wmlrun history forget`");
    Failure::wrong(format!("no run in {place} has `{metric}`"), help)
}

/// True if a run that began so many seconds after 1970 is one of a night, which may last into the next day.
fn is_of_night(started: i64, night: &str) -> bool {
    const DAY: i64 = 24 * 60 * 60;
    [started, started - DAY].into_iter().filter_map(local_day).any(|day| day == night)
}

/// Makes the suspects again, each with the command of the user, and adds their results as the second part of the night.
/// Returns whether there are any. A suspect that can't be made again stays one.
fn confirmed(shown: &ShownHistory, report: &NightReport, command: &str) -> Result<bool, Failure> {
    let folder = &shown.folder;
    let dir = HistoryFolder::create(folder).map_err(failed(folder))?;
    let (interrupt, _) = signals::install_handlers();
    let night = report.night.clone().unwrap_or_default();
    let mut is_any = false;
    for (n, test) in (1..).zip(report.suspects()) {
        let results = dir.second_results(&format!("{night}-{n}")).map_err(failed(folder))?;
        notice(&format!("{} is suspect: {command}", test.label));
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdout(io::stderr());
        let variables = [("WMLRUN_TEST", test.test.as_str()), ("WMLRUN_PLACE", test.place.as_str())];
        shell.envs(variables).env("WMLRUN_RESULTS", &results);
        let status = child::until_end(shell, &|| interrupt.load(SeqCst) != 0);
        let status = status.map_err(|e| Failure::failed(format!("`{command}` can't be started: {e}"), ""))?;
        let Some(status) = status else {
            return Err(Failure::unexplained(Status::Interrupted(interrupt.load(SeqCst) as u8)));
        };
        let of = TestName { test: test.test.clone(), place: test.place.clone() };
        let night = NightName { date: night.clone(), again: true };
        let mut new = NewRuns::default();
        // Why nothing is added, if nothing is.
        let why = match results.exists().then(|| import::history_results(&results)) {
            None => format!("its command left nothing at `$WMLRUN_RESULTS` ({status})"),
            Some(Err(error)) => error.to_string(),
            Some(Ok(found)) => {
                let mut why = format!("the result is of another test ({status})");
                for run in found.results.iter().filter(|result| result.test == of.test).flat_map(|of| &of.runs) {
                    if run.started.is_some_and(|at| !is_of_night(at, &night.date)) {
                        why = format!("its runs are not of the night of {}", night.date);
                    } else if new.push(run, &night, &of, from_ref(&shown.metric)) {
                        why = "its runs are known already".to_owned();
                    } else {
                        why = format!("its runs have no `{}`", shown.metric);
                    }
                }
                why
            }
        };
        if dir.add(new).map_err(failed(folder))?.added > 0 {
            is_any = true;
        } else {
            notice(&printable::line(&format!("warning: {} was not made again: {why}", test.label)));
        }
    }
    Ok(is_any)
}

/// Writes the pictures of the nights. Returns the exit status.
fn plot(folder: &Path, test: Option<&str>, output: &Path, metric: &Metric, force: bool) -> Result<u8, Failure> {
    let (dir, history) = read(folder, usize::MAX)?;
    let of = test.map(|test| find(&history, test)).transpose()?;
    let mut report = report(&history, folder, metric, usize::MAX)?;
    keep_only(&mut report, of.as_ref(), metric)?;
    let files = dir.files().map_err(failed(folder))?;
    let is_picture = output.extension().is_some_and(|end| end == "svg");
    let text = match &report.tests[..] {
        [test] if is_picture => {
            let picture = page::night_picture(&report, test);
            picture.drawing.file(&picture.title, &report.metric, &picture.legend)
        }
        _ if is_picture => {
            return Err(Failure::wrong("a picture is of one test", "name it, or write a page: `-o nights.html`"));
        }
        _ => page::night_page(&report).map_err(|e| Failure::failed(format!("can't make the page: {e}"), ""))?,
    };
    write_to(&drawn_target(output, &files, is_picture, force)?, &text)?;
    Ok(0)
}

/// Prints the tests, or the nights of one. Returns the exit status.
fn show(shown: &ShownHistory, test: Option<&str>) -> Result<u8, Failure> {
    let years = if test.is_some() { usize::MAX } else { JUDGED_YEARS };
    let (_, history) = read(&shown.folder, years)?;
    let of = test.map(|test| find(&history, test)).transpose()?;
    let nights = if of.is_some() { usize::MAX } else { SHOWN_NIGHTS };
    let mut report = report(&history, &shown.folder, &shown.metric, nights)?;
    keep_only(&mut report, of.as_ref(), &shown.metric)?;
    let sheet = || of.as_ref().and_then(|of| report.course_sheet(of)).unwrap_or_else(|| report.sheet());
    print_lines(shown.format.write_either(|| report.json(), sheet).trim_end());
    Ok(0)
}

/// Adds results. Returns the exit status.
fn add(folder: &Path, results: &[PathBuf], wish: &AddWish) -> Result<u8, Failure> {
    let named: Vec<&Path> = results.iter().map(PathBuf::as_path).collect();
    let mut new = NewRuns::default();
    let mut usable = 0;
    for path in results {
        let found =
            import::history_results(path).map_err(|e| Failure::wrong(e.to_string(), import_help(&e, &named)))?;
        found.notes.iter().for_each(|note| notice(&format!("note: {note}")));
        for result in found.results {
            usable += take(&mut new, &result, wish)?;
        }
    }
    if usable == 0 {
        return Err(Failure::new(Status::Failed, "no run was added", "only complete runs are added"));
    }
    let dir = HistoryFolder::create(folder).map_err(failed(folder))?;
    let AddedRuns { added, known, disturbed } = dir.add(new).map_err(failed(folder))?;
    let told = |n: u64, words: &str| if n > 0 { format!(", {n} {words}") } else { String::new() };
    let [disturbed, known] = [told(disturbed, "of them disturbed"), told(known, "known already")];
    print_lines(&format!("added: {}{disturbed}{known}", count(added, "run")));
    Ok(0)
}

/// Takes the runs of a test. Returns their number.
fn take(new: &mut NewRuns, result: &HistoryResult, wish: &AddWish) -> Result<u64, Failure> {
    // The runs of one result are of one night, also after midnight.
    let first = result.runs.iter().filter_map(|run| run.started).min().filter(|_| result.is_one);
    let mut taken = 0;
    for run in &result.runs {
        let of_run = || first.or(run.started).and_then(local_day);
        let date = wish.night.clone().or_else(of_run).ok_or_else(|| {
            Failure::wrong(format!("the date of {} is unknown", run.source), "give it: `--night DATE`")
        })?;
        let night = NightName { date, again: false };
        let place = wish.place.clone().unwrap_or_else(|| place(run));
        let of = TestName { test: result.test.clone(), place };
        taken += u64::from(new.push(run, &night, &of, &wish.metrics));
    }
    Ok(taken)
}

/// The directory of the files of a run. Of one that was made for the run it is the parent.
fn place(run: &Observation) -> String {
    let dir = run.conditions.get("$dir").cloned().unwrap_or_default();
    let is_fresh =
        |name: &str| name.strip_prefix("wmlrun-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match dir.rsplit_once('/') {
        Some((parent, name)) if is_fresh(name) => parent.to_owned(),
        _ => dir,
    }
}
