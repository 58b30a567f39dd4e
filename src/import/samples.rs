//! Reads the results of several tests: a sample of runs for each of them, by the name of its file, directory or arm.
//!
//! Not in here: the comparison of the samples, and the table of figures that a file has (`columns`).

use super::{
    ImportError, LOADED_SCRIPTS, MAX_OBSERVATIONS, Observation, TOO_MANY, folder, form, number_in_file, shortened, side,
};
use crate::os::reading;
use crate::util::batch_files::BATCH_PAGE;
use crate::util::printable;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// The runs of a test on all sides.
#[derive(Clone, Debug, Default)]
pub struct TestSample {
    pub name: String,
    /// The complete runs of each side; none if the side does not have the test.
    pub runs: Vec<Vec<Observation>>,
}

/// The tests of all sides.
#[derive(Clone, Debug, Default)]
pub struct TestSamples {
    /// The tests, in the order of the first side, then those that only others have.
    pub tests: Vec<TestSample>,
    /// Notes about files and runs that are not among them.
    pub notes: Vec<String>,
}

/// The conditions that the runs of a sample share, besides the variables.
const SHARED: [&str; 3] = ["script", LOADED_SCRIPTS, "run time"];

/// Returns the flowops of a run by their names, without processes and threads.
fn flowops(run: &Observation) -> BTreeSet<&str> {
    let names = run.figures.keys().filter_map(|name| name.strip_suffix(".ops"));
    names.filter(|name| !name.contains('/')).collect()
}

/// Returns the conditions that show that runs are of different workloads, so that they are not one sample: the script,
/// the flowops, the run time, and variables such as `$iosize`. Empty for runs of one workload. Other programs record
/// only the flowops.
pub fn mixed_conditions(runs: &[Observation]) -> Vec<String> {
    let is_shared = |name: &str| SHARED.contains(&name) || name.starts_with('$') && name != "$dir";
    let known: Vec<&Observation> = runs.iter().filter(|run| !run.conditions.is_empty()).collect();
    let names: BTreeSet<&String> = known.iter().flat_map(|run| run.conditions.keys()).collect();
    let differs = |name: &str| {
        let values = known.iter().map(|run| run.conditions.get(name));
        values.filter(|value| value.is_some() || name != LOADED_SCRIPTS).collect::<BTreeSet<_>>().len() > 1
    };
    let mut found: Vec<String> = names.into_iter().filter(|name| is_shared(name) && differs(name)).cloned().collect();
    let known = runs.iter().map(flowops).filter(|flowops| !flowops.is_empty());
    if known.collect::<BTreeSet<_>>().len() > 1 {
        found.push("flowops".to_owned());
    }
    // Other scripts have other variables.
    let scripts_differ = found.iter().any(|name| name == "script");
    found.retain(|name| !scripts_differ || !name.starts_with('$'));
    found
}

/// True if the two sides have a flowop of the same name, or one of them has no flowops.
pub fn shared_flowops(a: &[Observation], b: &[Observation]) -> bool {
    let all = |runs: &[Observation]| runs.iter().flat_map(flowops).map(str::to_owned).collect::<BTreeSet<String>>();
    let (a, b) = (all(a), all(b));
    a.is_empty() || b.is_empty() || !a.is_disjoint(&b)
}

/// Reads the results of the sides and joins their tests by name. A path is a directory with a file or a directory for
/// each test, a results folder whose arms are the tests, or the result of a single test. If a side has a sample of
/// different workloads, such as the runs of a `foreach`, each run is a test. Files that are not results, and runs that
/// are not complete, give a note. Returns an error when a path can't be read or has no results.
pub fn test_samples(paths: &[PathBuf]) -> Result<TestSamples, ImportError> {
    let mut notes = Vec::new();
    let mut sides = paths.iter().map(|path| samples(path, &mut notes)).collect::<Result<Vec<_>, _>>()?;
    // Results of a single test need not have the same name.
    if sides.iter().all(|side| side.len() == 1) {
        let name = sides.first().and_then(|side| side.first()).map(|(name, _)| name.clone()).unwrap_or_default();
        sides.iter_mut().flatten().for_each(|(other, _)| other.clone_from(&name));
    }
    let is_mixed = |sample: &&NamedRuns| !mixed_conditions(&sample.1).is_empty();
    let mixed: BTreeSet<String> = sides.iter().flatten().filter(is_mixed).map(|(name, _)| name.clone()).collect();
    let mut tests: IndexMap<String, TestSample> = IndexMap::new();
    for (index, side) in sides.into_iter().enumerate() {
        for (name, runs) in side.into_iter().flat_map(|sample| split(sample, &mixed)) {
            let new = || TestSample { name: name.clone(), runs: vec![Vec::new(); paths.len()] };
            tests.entry(name.clone()).or_insert_with(new).runs[index].extend(runs);
        }
    }
    Ok(TestSamples { tests: tests.into_values().collect(), notes })
}

/// The name of a test, and its runs.
type NamedRuns = (String, Vec<Observation>);

/// Makes a test of the runs at each position in a file if the test is one of `mixed`.
fn split((name, runs): NamedRuns, mixed: &BTreeSet<String>) -> Vec<NamedRuns> {
    if !mixed.contains(&name) {
        return vec![(name, runs)];
    }
    // Of several files of a test, such as repeats of a `foreach`, the runs at one position belong together.
    let mut found: BTreeMap<usize, Vec<Observation>> = BTreeMap::new();
    for (n, run) in runs.into_iter().enumerate() {
        found.entry(number_in_file(&run).unwrap_or(n + 1)).or_default().push(run);
    }
    found.into_iter().map(|(n, runs)| (format!("{name}, run {n}"), runs)).collect()
}

/// Reads the tests of a side.
fn samples(path: &Path, notes: &mut Vec<String>) -> Result<Vec<NamedRuns>, ImportError> {
    if !path.is_dir() {
        let found = side(path)?;
        notes.extend(found.notes);
        return Ok(vec![(stem(path), found.runs)]);
    }
    if let Some(batch) = batch_below(path) {
        return samples(&batch, notes);
    }
    let batches = batches_in(path);
    // Neither of the two kinds may be left out without a word.
    if let Some(other) = other_directory(path, &batches) {
        let other = printable::path(&other);
        let why = format!("it has directories of batches, and others ({other}): give each kind a directory of its own");
        return Err(form(path)(why));
    }
    if batches.len() > 1 {
        return of_batches(path, &batches, notes);
    }
    let found = match folder::arms(path)? {
        Some(arms) => of_arms(path, arms, notes)?,
        None => of_directory(path, notes)?,
    };
    if found.is_empty() { Err(form(path)("it has no results".to_owned())) } else { Ok(found) }
}

/// Returns the paths of the entries of a directory.
fn paths_in(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    Ok(reading::entries(dir)?.iter().map(std::fs::DirEntry::path).collect())
}

/// Returns the directory of a batch in the `--results` directory, which has only directories above it: those of the
/// profile's `stats`.
fn batch_below(path: &Path) -> Option<PathBuf> {
    let entries = paths_in(path).ok()?;
    let [only] = &entries[..] else { return None };
    let is_below = only.is_dir() && !only.is_symlink();
    let has_only_directories = || paths_in(only).is_ok_and(|all| all.iter().all(|path| path.is_dir()));
    (is_below && (only.join(BATCH_PAGE).is_file() || has_only_directories())).then(|| only.clone())
}

/// Returns the directories of batches in a directory, in the order of their names.
fn batches_in(path: &Path) -> Vec<PathBuf> {
    let entries = paths_in(path).unwrap_or_default();
    let mut found: Vec<PathBuf> =
        entries.into_iter().filter(|entry| !entry.is_symlink() && entry.join(BATCH_PAGE).is_file()).collect();
    found.sort();
    found
}

/// Returns a directory beside those of batches, if there are any.
fn other_directory(path: &Path, batches: &[PathBuf]) -> Option<PathBuf> {
    if batches.is_empty() {
        return None;
    }
    let batches: HashSet<&PathBuf> = batches.iter().collect();
    let mut entries = paths_in(path).unwrap_or_default().into_iter();
    entries.find(|entry| entry.is_dir() && folder::is_visible(entry) && !batches.contains(entry))
}

/// The conditions that make the figures of one workload in several batches incomparable.
const OF_BATCHES: [&str; 4] = ["file system", "device", "mount options", "kernel"];

/// Reads the workloads of several profiles, or of several batches of one profile. A workload of several batches has several
/// runs; if these are of different file systems or kernels, there is a note.
fn of_batches(path: &Path, batches: &[PathBuf], notes: &mut Vec<String>) -> Result<Vec<NamedRuns>, ImportError> {
    let mut found: IndexMap<String, Vec<Observation>> = IndexMap::new();
    for batch in batches {
        for (name, runs) in of_directory(batch, notes)? {
            found.entry(name).or_default().extend(runs);
        }
    }
    let found: Vec<NamedRuns> = found.into_iter().collect();
    if found.iter().map(|(_, runs)| runs.len()).sum::<usize>() > MAX_OBSERVATIONS {
        return Err(form(path)(TOO_MANY.to_owned()));
    }
    for (name, runs) in &found {
        let differs =
            |condition: &&str| runs.iter().map(|run| run.conditions.get(*condition)).collect::<BTreeSet<_>>().len() > 1;
        let differing: Vec<&str> = OF_BATCHES.into_iter().filter(differs).collect();
        if !differing.is_empty() {
            let name = printable::line(name).into_owned();
            notes.push(format!("the runs of {name} are of several batches, which differ in {}", differing.join(", ")));
        }
    }
    if found.is_empty() { Err(form(path)("it has no results".to_owned())) } else { Ok(found) }
}

/// Reads the arms of a results folder. Without different arms it has one test.
fn of_arms(path: &Path, arms: Vec<String>, notes: &mut Vec<String>) -> Result<Vec<NamedRuns>, ImportError> {
    if arms.is_empty() {
        let found = folder::side(path, None)?;
        notes.extend(found.notes);
        return Ok(vec![(stem(path), complete(found.runs, notes))]);
    }
    // The only factor does not distinguish the tests, and directories of results have no factor.
    let has_one_factor = arms.iter().all(|arm| !arm.contains(','));
    let mut samples = Vec::new();
    for arm in arms {
        let found = match folder::side(path, Some(&arm)) {
            Ok(found) => found,
            // It is missing in the table.
            Err(ImportError::Form { why, .. }) if why == folder::NONE_FINISHED => continue,
            Err(error) => {
                notes.push(printable::line(&error.to_string()).into_owned());
                continue;
            }
        };
        notes.extend(found.notes);
        let level = arm.split_once('=').map(|(_, level)| level.to_owned()).filter(|_| has_one_factor);
        samples.push((level.unwrap_or(arm), complete(found.runs, notes)));
    }
    Ok(samples)
}

/// Reads the files and directories of a directory, in the order of their names.
fn of_directory(path: &Path, notes: &mut Vec<String>) -> Result<Vec<NamedRuns>, ImportError> {
    let io = |error| ImportError::Io { path: path.to_owned(), error };
    let mut entries = paths_in(path).map_err(io)?;
    // The page over all workloads of a batch is no result.
    entries.retain(|entry| folder::is_visible(entry) && !entry.ends_with(BATCH_PAGE));
    entries.sort();
    let mut samples = Vec::new();
    let (mut skipped, mut unread) = (Vec::new(), Vec::new());
    let mut count = 0;
    for entry in &entries {
        let is_dir = entry.is_dir();
        let of_dir = || match folder::side(entry, None) {
            Err(ImportError::Form { .. }) if !folder::has_json(entry) => folder::results_among(entry),
            side => side.map(|side| side.runs),
        };
        let read = if is_dir { of_dir() } else { folder::of_file(entry) };
        match read {
            Ok(runs) => {
                count += runs.len();
                samples.push((entry, is_dir, complete(runs, notes)));
            }
            Err(ImportError::SeveralArms { .. } | ImportError::Form { .. }) => {
                unread.extend(is_dir.then(|| name(entry)));
                skipped.push(name(entry));
            }
            Err(error) => return Err(error),
        }
        if count > MAX_OBSERVATIONS {
            return Err(form(path)(TOO_MANY.to_owned()));
        }
    }
    if !skipped.is_empty() {
        let dir = path.display().to_string();
        notes.push(format!("{}: not a result: {}", printable::line(&dir), printable::line(&shortened(&skipped))));
    }
    // Of results such as `varmail-6.1` and `varmail-6.8` the part after the point is no ending.
    let mut stems: BTreeMap<String, usize> = BTreeMap::new();
    let files = samples.iter().filter(|(_, is_dir, _)| !is_dir);
    files.for_each(|(entry, ..)| *stems.entry(stem(entry)).or_default() += 1);
    let test = |entry: &Path, is_dir: bool| match is_dir || stems.get(&stem(entry)).is_some_and(|count| *count > 1) {
        true => name(entry),
        false => stem(entry),
    };
    let mut found: Vec<NamedRuns> =
        samples.into_iter().map(|(entry, is_dir, runs)| (test(entry, is_dir), runs)).collect();
    // A directory is that of a test. Without results it must not be left out as if it did not exist.
    if !found.is_empty() {
        found.extend(unread.into_iter().map(|name| (name, Vec::new())));
    }
    Ok(found)
}

/// Keeps the complete runs. The others give a note.
fn complete(runs: Vec<Observation>, notes: &mut Vec<String>) -> Vec<Observation> {
    let note = |run: &Observation| Some(format!("{} is not complete: {}", run.source, run.failure.as_ref()?));
    notes.extend(runs.iter().filter_map(note));
    runs.into_iter().filter(|run| run.failure.is_none()).collect()
}

/// Returns the last component of a path.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns the last component of a path without the ending of a file's name.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    /// Output of Filebench with a summary for each rate, and the flowop `read`.
    fn filebench(rates: &[u32]) -> String {
        let run = |rate: &u32| {
            format!(
                "1.0: Per-Operation Breakdown\nread 10ops {rate}ops/s 1.0mb/s\n1.0: IO Summary: 10 ops {rate} ops/s\n"
            )
        };
        rates.iter().map(run).collect()
    }

    fn of_two(a: &Path, b: &Path) -> Result<TestSamples, ImportError> {
        test_samples(&[a.to_owned(), b.to_owned()])
    }

    /// A result of this program, whose runs have a variable with each of these values. The value is also the rate.
    fn own(values: &[u32]) -> String {
        let run =
            |value: &u32| format!("{{\"variables\": {{\"n\": {value}}}, \"summary\": {{\"ops_per_s\": {value}}}}}");
        let runs: Vec<String> = values.iter().map(run).collect();
        format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{}]}}", runs.join(", "))
    }

    fn rates(test: &TestSample) -> [Vec<f64>; 2] {
        [0, 1].map(|side| test.runs[side].iter().map(|run| run.figures["ops"]).collect())
    }

    /// The workloads of several profiles, of which two have one of the same name.
    #[test]
    fn a_directory_of_several_batches_has_all_of_their_workloads() {
        let dir = tempfile::tempdir().unwrap();
        for (side, batch, workload, rate) in [
            ("old", "host-1", "mail", 10),
            ("old", "host-2", "mail", 12),
            ("old", "host-2", "web", 30),
            ("new", "host-1", "mail", 20),
        ] {
            let of_workload = dir.path().join(side).join(batch).join(workload);
            fs::create_dir_all(&of_workload).unwrap();
            let text =
                format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{{\"summary\": {{\"ops_per_s\": {rate}}}}}]}}");
            fs::write(of_workload.join("result.json"), text).unwrap();
            fs::write(dir.path().join(side).join(batch).join(BATCH_PAGE), "").unwrap();
        }
        let found = of_two(&dir.path().join("old"), &dir.path().join("new")).unwrap();
        let tests: Vec<_> = found.tests.iter().map(|test| (test.name.as_str(), rates(test))).collect();
        assert_eq!(tests, [("mail", [vec![10.0, 12.0], vec![20.0]]), ("web", [vec![30.0], vec![]])]);
        assert_eq!(found.notes, Vec::<String>::new());
        // A test beside them would be left out.
        fs::create_dir(dir.path().join("old/mail")).unwrap();
        let mixed = of_two(&dir.path().join("old"), &dir.path().join("new")).unwrap_err().to_string();
        assert!(
            mixed.contains("it has directories of batches, and others (") && mixed.contains("old/mail)"),
            "{mixed}"
        );
        fs::remove_dir(dir.path().join("old/mail")).unwrap();
        // One of another file system.
        let mount = "{\"path\": \"/\", \"type\": \"xfs\", \"source\": \"/dev/x\", \"options\": \"rw\"}";
        let run = format!("{{\"environment\": {{\"mounts\": [{mount}]}}, \"summary\": {{\"ops_per_s\": 5}}}}");
        let text = format!("{{\"schema\": \"wmlrun.result/1\", \"runs\": [{run}]}}");
        fs::write(dir.path().join("old/host-2/mail/result.json"), text).unwrap();
        let notes = of_two(&dir.path().join("old"), &dir.path().join("new")).unwrap().notes.join("\n");
        assert!(notes.starts_with("the runs of mail are of several batches, which differ in file system, "), "{notes}");
    }

    #[test]
    fn tests_are_paired_by_the_names_of_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::create_dir(&old).unwrap();
        fs::create_dir_all(new.join("mail")).unwrap();
        fs::write(old.join("mail.out"), filebench(&[10, 12])).unwrap();
        fs::write(old.join("web.txt"), filebench(&[30])).unwrap();
        fs::write(old.join("gone.txt"), filebench(&[40])).unwrap();
        fs::write(old.join("mail.f"), "run 10\n").unwrap();
        fs::write(old.join(".hidden"), "").unwrap();
        fs::write(new.join("mail/result.json"), own(&[20])).unwrap();
        fs::write(new.join("web.json"), own(&[60])).unwrap();
        let found = of_two(&old, &new).unwrap();
        let names: Vec<&str> = found.tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["gone", "mail", "web"]);
        let rates: Vec<_> = found.tests.iter().map(rates).collect();
        assert_eq!(rates, [[vec![40.0], vec![]], [vec![10.0, 12.0], vec![20.0]], [vec![30.0], vec![60.0]]]);
        assert_eq!(found.notes, [format!("{}: not a result: mail.f", old.display())]);
        // A directory of Filebench's batch mode has scripts beside the output.
        let batch = dir.path().join("batch");
        fs::create_dir_all(batch.join("mail")).unwrap();
        for (name, text) in [("stats.mail.out", filebench(&[50])), ("thisrun.f", "run 10\n".to_owned())] {
            fs::write(batch.join("mail").join(name), text).unwrap();
        }
        let found = of_two(&batch, &new).unwrap();
        assert_eq!(super::tests::rates(&found.tests[0]), [vec![50.0], vec![20.0]]);
        // That of a batch is below those of its `stats`.
        let results = dir.path().join("results");
        fs::create_dir_all(results.join("export/stats")).unwrap();
        fs::rename(&batch, results.join("export/stats/host-ext4")).unwrap();
        fs::write(results.join("export/stats/host-ext4/index.html"), "").unwrap();
        let found = of_two(&results, &new).unwrap();
        assert_eq!(super::tests::rates(&found.tests[0]), [vec![50.0], vec![20.0]]);
        let error = of_two(&old, &new.join("none")).unwrap_err().to_string();
        assert!(error.contains("can't be read"), "{error}");
    }

    /// The runs of a `foreach` are several tests. Output of Filebench does not say so.
    #[test]
    fn each_run_of_a_mixed_sample_is_a_test() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("ladder.out"), dir.path().join("new.json"));
        fs::write(&old, filebench(&[4, 8])).unwrap();
        fs::write(&new, own(&[5, 9])).unwrap();
        let found = of_two(&old, &new).unwrap();
        let shown: Vec<_> = found.tests.iter().map(|test| (test.name.as_str(), rates(test))).collect();
        assert_eq!(shown, [("ladder, run 1", [vec![4.0], vec![5.0]]), ("ladder, run 2", [vec![8.0], vec![9.0]])]);
        // Two rounds of it.
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for (side, values) in [(&first, [4, 8]), (&second, [5, 9])] {
            fs::create_dir_all(side.join("ladder")).unwrap();
            for round in ["1.json", "2.json"] {
                fs::write(side.join("ladder").join(round), own(&values)).unwrap();
            }
        }
        let found = of_two(&first, &second).unwrap();
        let shown: Vec<_> = found.tests.iter().map(|test| (test.name.as_str(), rates(test))).collect();
        let rounds = [("ladder, run 1", [vec![4.0; 2], vec![5.0; 2]]), ("ladder, run 2", [vec![8.0; 2], vec![9.0; 2]])];
        assert_eq!(shown, rounds);
        fs::write(&new, own(&[5, 5])).unwrap();
        assert_eq!(rates(&of_two(&old, &new).unwrap().tests[0]), [vec![4.0, 8.0], vec![5.0, 5.0]]);
    }

    #[test]
    fn runs_of_different_workloads_are_recognized() {
        let runs = |text: &str| super::super::parse(text, "x").unwrap();
        assert_eq!(mixed_conditions(&runs(&own(&[5, 9]))), ["$n"]);
        assert_eq!(mixed_conditions(&runs(&own(&[5, 5]))), Vec::<String>::new());
        let other = filebench(&[1]).replace("read", "write");
        assert_eq!(mixed_conditions(&runs(&(filebench(&[1]) + &other))), ["flowops"]);
        assert!(mixed_conditions(&runs(&filebench(&[1, 2]))).is_empty());
        assert!(!shared_flowops(&runs(&other), &runs(&filebench(&[1]))));
        assert!(shared_flowops(&runs(&own(&[1])), &runs(&other)), "the flowops of one side are unknown");
    }

    /// The results of two kernels are not one test.
    #[test]
    fn names_that_differ_after_a_point_are_different_tests() {
        let dir = tempfile::tempdir().unwrap();
        let sides = ["old", "new"].map(|side| dir.path().join(side));
        for (side, rates) in sides.iter().zip([[10, 20, 5], [11, 19, 5]]) {
            fs::create_dir(side).unwrap();
            for (name, rate) in ["varmail-6.1", "varmail-6.8", "web.out"].iter().zip(rates) {
                fs::write(side.join(name), filebench(&[rate])).unwrap();
            }
        }
        let found = of_two(&sides[0], &sides[1]).unwrap();
        let names: Vec<&str> = found.tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["varmail-6.1", "varmail-6.8", "web"]);
        assert_eq!(rates(&found.tests[0]), [[10.0], [11.0]]);
    }
}
