//! The names of scripts and of the workloads of profiles in reports.

use crate::result::{Document, Run};
use crate::util::batch_files::BATCH_SCRIPT;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the path of the script. Standard input and a result without a script have a name instead.
pub(crate) fn script(document: &Document) -> &str {
    match document.script.path.as_str() {
        "" => "run",
        "-" => "standard input",
        path => path,
    }
}

/// Returns the name of the script's file without its ending. Standard input and a result without a script have a name too.
pub(crate) fn script_name(document: &Document) -> String {
    let script = script(document);
    Path::new(script).file_stem().map_or_else(|| script.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Returns the name of the workload of a profile, or `None` for other runs. The script of a workload is in a directory of that
/// name.
pub(crate) fn workload(document: &Document, run: &Run) -> Option<String> {
    let path = Path::new(&document.script.path);
    let of_script = || path.parent()?.file_name().filter(|_| path.ends_with(BATCH_SCRIPT));
    run.workload.clone().or_else(|| Some(of_script()?.to_string_lossy().into_owned()))
}

/// Returns the heading of a run: the script, after the name of the workload if it is one of a profile.
pub(crate) fn heading(document: &Document, run: &Run) -> String {
    let script = script(document);
    workload(document, run).map_or_else(|| script.to_owned(), |workload| format!("{workload}, {script}"))
}

/// The types of the file systems of a run, each once.
pub(crate) fn file_systems(run: &Run) -> Vec<&str> {
    let types: BTreeSet<&str> = run.environment.mounts.iter().map(|mount| mount.kind.as_str()).collect();
    types.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::workload;
    use crate::report::benchstat::Benchstat;
    use crate::report::markdown::Markdown;
    use crate::report::{text::Text, to_string};
    use crate::result::fixture::fixture;

    #[test]
    fn a_run_of_a_profile_has_the_name_of_its_workload() {
        let mut document = fixture();
        assert_eq!(workload(&document, &document.runs[0]), None);
        document.script.path = "/r/mail/thisrun.f".into();
        assert_eq!(workload(&document, &document.runs[0]).as_deref(), Some("mail"));
        let shown = to_string(&Text, &document);
        assert!(shown.starts_with("mail, /r/mail/thisrun.f: complete after "), "{shown}");
        let shown = to_string(&Markdown, &document);
        assert!(shown.contains("### mail, /r/mail/thisrun.f: complete after "), "{shown}");
        let shown = to_string(&Benchstat, &document);
        assert!(shown.contains("\nBenchmarkMail/"), "not those of all workloads: {shown}");
        // The joined result of a batch has the path of the profile.
        (document.script.path, document.runs[0].workload) = ("p.prof".into(), Some("web".into()));
        assert_eq!(workload(&document, &document.runs[0]).as_deref(), Some("web"));
        assert!(to_string(&Benchstat, &document).contains("\nBenchmarkWeb/"));
    }
}
