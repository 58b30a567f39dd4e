//! Tests write errors of the standard streams: standard output that cannot be written makes the exit status 1; a closed
//! pipe, and standard error, change nothing.

use crate::cmd::{Output, Wml};
use crate::mounts::{Fs, Mount, available};

const SCRIPT: &str = "define fileset name=s,path=$dir,entries=10,dirwidth=5,size=1k,prealloc=100\n\
                      define process name=p { thread name=t { flowop statfile name=look,filesetname=s } }\n";

/// Runs it with a redirection of the shell.
fn redirected(args: &[&str], redirection: &str) -> Output {
    let line = format!("set -o pipefail; \"$0\" \"$@\" {redirection}");
    Wml::new().file("s.wml", SCRIPT).file("odd.wml", "run   1").under(["bash", "-c", &line]).args(args.to_vec()).run()
}

/// Everything that prints: a call, and its exit status where standard output is good.
const CALLS: &[&[&str]] = &[
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--quiet"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "json"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "csv"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "filebench"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "filebench-1.4"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "none", "--json", "-"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "none", "--json", "/dev/stdout"],
    &["s.wml", "--engine", "null", "--runtime", "0.1", "--format", "none", "--trace", "-:3"],
    &["plan", "s.wml"],
    &["plan", "s.wml", "--list"],
    &["list", "flowops"],
    &["show", "varmail"],
    &["explain", "E0202"],
    &["fmt", "odd.wml"],
    &["check", "s.wml", "--dump", "ast"],
    &["check", "s.wml", "--dump", "tokens"],
    &["--help"],
    &["--version"],
    &["completions", "bash"],
    &["clean", "."],
];

#[test]
fn a_full_standard_output_is_an_error() {
    for args in CALLS {
        let output = redirected(args, "> /dev/full");
        assert_eq!(output.code(), 1, "{args:?}\n{}", output.shown());
        assert!(output.stderr.contains("No space left on device"), "{args:?}\n{}", output.shown());
        assert!(output.stderr.matches("No space left").count() == 1, "{args:?}\n{}", output.shown());
    }
}

/// The exit status of a comparison is its verdict only if the verdict could be written.
#[test]
fn a_verdict_on_a_full_standard_output_is_an_error() {
    let compare = |redirection: &str| {
        let line = format!("set -o pipefail; \"$0\" \"$@\" {redirection}");
        let values = Wml::new().file("a.csv", "100\n").file("b.csv", "50\n");
        values.under(["bash", "-c", &line]).args(["compare", "a.csv:1", "b.csv:1"]).run()
    };
    assert_eq!(compare("> out").code(), 11, "one value on each side is unclear");
    let output = compare("> /dev/full");
    assert_eq!(output.code(), 1, "{}", output.shown());
    assert!(output.stderr.contains("No space left on device"), "{}", output.shown());
    // A reader that has ended does not change the status.
    assert_eq!(compare("> >(exec 0<&-); exit $?").code(), 11);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for args in CALLS {
        // The reader is gone before anything is written.
        let output = redirected(args, "> >(exec 0<&-); exit $?");
        assert!([0, 1].contains(&output.code()), "{args:?}\n{}", output.shown());
        assert!(!output.stderr.contains("can't write to standard output"), "{args:?}\n{}", output.shown());
        assert!(!output.stderr.contains("panicked"), "{args:?}\n{}", output.shown());
    }
    let output = redirected(&["list", "flowops"], "| true");
    assert_eq!(output.code(), 0, "{}", output.shown());
}

#[test]
fn unwritable_notes_change_nothing() {
    for redirection in ["2> /dev/full", "2>&-", "2> >(exec 0<&-)"] {
        let output = redirected(&["s.wml", "--engine", "null", "--runtime", "0.1"], redirection);
        assert_eq!(output.code(), 0, "{redirection}\n{}", output.shown());
        assert!(output.stdout.contains("look"), "the report\n{}", output.shown());
    }
}

#[test]
fn manual_pages_without_disk_space_are_an_error() {
    needs!(available(&[Fs::Tmpfs]));
    let mount = Mount::new(Fs::Tmpfs, 16 << 10);
    let output = Wml::new().args(["man"]).args([mount.dir()]).run().exits(1);
    assert!(output.stderr.contains("No space left on device"), "{}", output.shown());
    Wml::new().file("plain", "").args(["man", "plain/x"]).run().exits(3);
}
