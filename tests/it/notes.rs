//! Tests the notes of a script about itself: they appear with its figures in every report.

use crate::cmd::Wml;

fn notes(call: Wml) -> (String, Vec<String>) {
    let output = call.args(["--engine", "null", "--runtime", "0.1"]).result().run().exits(0);
    let run = output.only_run();
    let own = run["warnings"].as_array().unwrap().iter().filter(|note| note["code"] == "script_note");
    (output.stdout.clone(), own.map(|note| note["message"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn a_disclaimer_of_a_script_is_in_every_report() {
    for (name, council) in [("specsfs97", "SPEC"), ("tpcso", "TPC"), ("fileserver", "SPEC")] {
        let (report, notes) = notes(Wml::new().args([name]));
        assert_eq!(notes, [format!("{name} is no benchmark of {council}: its figures are not results of {council}")]);
        assert!(report.contains(&format!("warning[script_note]: {name} is no benchmark of {council}")), "{report}");
    }
    // Also of a script that loads it.
    let (_, notes) = notes(Wml::new().file("x.f", "load specsfs97\nset $nfiles=100\nrun 0.1\n").args(["x.f"]));
    assert_eq!(notes.len(), 1);
}

#[test]
fn notes_are_in_the_leading_comment_only_and_shown_as_text() {
    let process = "define process name=p { thread name=t { flowop hog name=h,value=10 } }\n";
    let text = format!(
        "# a script\n# note: one \u{1b}[31mred\n#note:two\n# notes: none\n\n# note: three\n{process}# note: late\n"
    );
    let (report, notes) = notes(Wml::new().file("x.wml", &text).args(["x.wml"]));
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].contains("red") && !report.contains('\u{1b}'), "{report}");
}
