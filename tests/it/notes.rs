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

#[test]
fn a_value_with_which_a_script_was_not_compared_is_named() {
    let text = "# a script\n#\n# Fidelity: The script differs in no row. With $clients=2, $size=1m,\n\
        #   $sync=1, $each=2; other values were not compared.\n\
        #   row  program\n\nset $clients=2\nset $size=1m\nset $sync=2\nset $each=$clients * 1\n\
        define process name=p { thread name=t,instances=$clients { flowop hog name=h,value=$size\n flowop hog name=i,value=$each\n flowop hog name=s,value=$sync } }\n";
    let told = |sets: &[&str]| {
        let own = Wml::new().file("x.wml", text).args(["x.wml", "--engine", "null", "--runtime", "0.1"]);
        let run = own.args(sets.iter().flat_map(|set| ["--set", set])).result().run().exits(0).only_run();
        let all = run["warnings"].as_array().unwrap().iter().filter(|note| note["code"] == "not_compared");
        all.map(|note| note["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(&["size=1024k"]), ["$sync is 2; the script was compared with its program at 1"]);
    assert_eq!(told(&["sync=1"]), Vec::<String>::new());
    let of = |name: &str, value: &str, was: &str| {
        format!("${name} is {value}; the script was compared with its program at {was}")
    };
    assert_eq!(told(&["clients=4", "sync=1"]), [of("clients", "4", "2"), of("each", "4", "2")]);
}
