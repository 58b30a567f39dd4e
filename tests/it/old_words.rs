//! Tests the old words of commands, which the help does not list: each does what the command does that replaces it.

use crate::cmd::Wml;

/// A command with an old word, the same with the new one, and the exit status of both.
const WORDS: [(&str, &str, i32); 12] = [
    ("ort curve.txt", "compare --curve curve.txt", 0),
    ("ort curve.txt --method sfs2 --format json", "compare --curve curve.txt --method sfs2 --format json", 0),
    ("ort none.txt", "compare --curve none.txt", 2),
    ("wins tests.txt --lower-is-better", "compare --tests tests.txt --lower-is-better", 0),
    ("wins old new --metric latency.mean", "compare --tests old new --metric latency.mean", 0),
    ("wins old new --tolerance 1% --format json", "compare --tests old new --tolerance 1% --format json", 11),
    ("prune old", "clean --logs old", 3),
    ("floor --list", "repeat --floor --list", 0),
    ("floor --forget 1", "repeat --floor --forget 1", 2),
    ("completions bash", "setup completions bash", 0),
    ("editor helix", "setup editor helix", 0),
    ("man plain/x", "setup man plain/x", 3),
];

fn call(words: &str) -> Wml {
    let output = "1.0: Per-Operation Breakdown\nread 5ops/s\n1.0: IO Summary: 10 ops 100 ops/s 4ms/op\n";
    let call = Wml::new().file("curve.txt", "100 2\n200 3\n250 9\n").file("tests.txt", "mail 10 20\nweb 5 3\n");
    let call = call.file("old/mail.out", output).file("new/mail.out", output).file("plain", "");
    call.args(words.split(' '))
}

#[test]
fn an_old_word_does_what_its_command_does() {
    for (old, new, status) in WORDS {
        let (of_old, of_new) = (call(old).run().exits(status), call(new).run().exits(status));
        assert_eq!((of_old.stdout, of_old.stderr), (of_new.stdout, of_new.stderr), "{old}");
    }
}

#[test]
fn an_option_of_another_form_is_refused() {
    for (words, says) in [
        ("compare curve.txt", "<B>"),
        ("compare --curve curve.txt --method study", "its methods are `sfs2` and `sfs3`"),
        ("compare --curve curve.txt --format csv", "their formats are `text`, `json`"),
        ("compare --curve curve.txt new", "--curve"),
        ("compare --tests tests.txt --tolerance 1%", "`--tolerance` is not for a file of figures"),
        ("compare --tests old new --lower-is-better", "the direction of a metric is known"),
        ("compare --tests old new --noise-floor 5%", "give `--tolerance` for verdicts"),
        ("compare --tests old new --expect better", "--expect"),
        ("compare old new --method sfs3", "those of `--curve`"),
        ("repeat --floor", "`--dir DIR`"),
        ("repeat --floor --dir . --metric ops,latency.p99", "one metric"),
        ("repeat --floor --runs 3 --dir .", "--runs"),
        ("repeat --floor --list --blocks 3", "--blocks"),
        ("repeat --floor --forget 1 --metric ops", "--metric"),
        ("repeat tests.txt --blocks 3", "--floor"),
    ] {
        let output = call(words).run().exits(2);
        assert!(output.stderr.contains(says), "{words}: {}", output.stderr);
    }
}
