//! Tests `wmlrun doctor`: a line for each check, the answer at the end, and the exit status; what can't be examined.

use crate::cmd::Wml;

/// The number of checks.
const CHECKS: usize = 10;

#[test]
fn each_check_has_a_mark_and_the_answer_is_last() {
    let output = Wml::new().folder("d").args(["doctor", "d"]).run();
    assert_eq!(output.stderr, "");
    let marks = ["ok ", "not fit ", "unknown "];
    let is_check = |line: &&str| marks.iter().any(|mark| line.starts_with(mark)) && !line.starts_with("not fit to");
    assert_eq!(output.stdout.lines().filter(is_check).count(), CHECKS, "{}", output.stdout);
    let answer = output.stdout.lines().rfind(|line| !line.starts_with(' ')).unwrap();
    let is_fit = answer.starts_with("fit to measure") || answer.starts_with("nothing unfit was found");
    let status = if is_fit { 0 } else { 11 };
    assert!(status == 0 || answer.starts_with("not fit to measure: "), "{}", output.stdout);
    assert_eq!(output.code(), status, "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
}

/// What can't be read is no fault, but what is not there is.
#[test]
fn a_missing_directory_is_refused() {
    for (dir, says) in [("nosuch", "No such file"), ("file", "not a directory")] {
        let output = Wml::new().file("file", "").args(["doctor", dir]).run().exits(3);
        assert!(output.stderr.contains(says) && output.stdout.is_empty(), "{}", output.shown());
    }
}

#[test]
fn memory_is_no_place_to_measure() {
    let output = Wml::new().args(["doctor", "/dev/shm"]).run().exits(11);
    let line = output.stdout.lines().next().unwrap();
    assert!(line.starts_with("not fit  file system tmpfs"), "{}", output.stdout);
}
