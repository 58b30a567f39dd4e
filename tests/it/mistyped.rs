//! Tests mistyped command lines: the message names what was probably meant, and nothing is made.

use crate::cmd::squeezed;
use crate::experiments::{Lab, SHORT, any_verdict, exits};
use std::fs;

/// The names in the directory of a lab.
fn names(lab: &Lab) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_message_names_what_was_meant() {
    let lab = Lab::new();
    fs::write(lab.path("plan.toml"), "script = \"x\"\n\n[[factor]]\nname = \"n\"\nlevels = [1, 2]\n").unwrap();
    let before = names(&lab);
    for (words, code, says, help) in [
        // An experiment in the place of a script, and the reverse.
        ("quick", 2, "error: `quick` is an experiment, not a script", "`wmlrun experiment quick` makes its runs"),
        ("plan.toml", 2, "error: `plan.toml` is an experiment", "`wmlrun experiment plan.toml`"),
        ("check plan.toml", 2, "error: `plan.toml` is an experiment", "`wmlrun experiment plan.toml`"),
        ("plan plan.toml", 2, "error: `plan.toml` is an experiment", "`wmlrun experiment plan.toml`"),
        ("ab plan.toml", 2, "error: `plan.toml` is an experiment", "`wmlrun experiment plan.toml`"),
        ("sweep quick --vary n=1,2", 2, "error: `quick` is an experiment", "`wmlrun experiment quick`"),
        ("experiment varmail --plan", 2, "error: `varmail` is a script, not an experiment", "`wmlrun varmail` runs it"),
        ("experiment x.wml --plan", 2, "error: `x.wml` is a script, not an experiment", "`wmlrun x.wml` runs it"),
        // A command, an option.
        ("lits", 2, "no file or personality is named `lits`", "for the command `list`"),
        ("lits experiments", 2, "no command is named `lits`", "did you mean `list`?"),
        ("x.wml --dri d", 2, "unexpected argument '--dri' found", "'--dir'"),
        ("x.wml runtime 3", 2, "unexpected argument 'runtime' found", "options begin with two hyphens: --runtime"),
        ("x.wml runtim 3", 2, "unexpected argument 'runtim' found", "'--runtime'"),
        ("ab x.wml tolerance 5%", 2, "unexpected argument 'tolerance' found", "--tolerance"),
        ("x.wml --require-mount /srv", 2, "unexpected argument '/srv' found", "an equals sign: --require-mount=/srv"),
        ("--require-mount /srv x.wml", 2, "unexpected argument 'x.wml' found", "--require-mount=/srv"),
        ("ab x.wml --require-mount /srv", 2, "unexpected argument '/srv' found", "--require-mount=/srv"),
        // Assignments.
        ("x.wml --nreads 2", 2, "unexpected argument '--nreads' found", "write --set nreads=VALUE"),
        ("x.wml n=2", 2, "unexpected argument 'n=2' found", "to set a variable, write --set n=2"),
        ("ab x.wml --set n 2", 2, "unexpected argument '2' found", "--set n=2"),
        ("ab x.wml --a --set n=2", 2, "unexpected argument 'n=2' found", "one argument: --a '--set n=2'"),
        ("ab x.wml --b n=2", 2, "in `--b`: no file or personality is named `n=2`", "`--set n=2` sets a variable"),
        ("ab x.wml --b --runtim=3", 2, "in `--b`: unexpected argument '--runtim' found", "did you mean `--runtime`?"),
        // Values.
        ("x.wml --runtime 1h30", 2, "`30` has no unit of time", "use ns, us, ms, s, m, h or d"),
        ("ab x.wml --metric p99", 2, "unknown metric", "did you mean `latency.p99`?"),
        ("varmail --set filesize=16kb", 2, "`16kb`, which is not a number", "with one of the units k, m, g, t or none"),
        // A folder.
        ("ab --resume nowhere", 3, "nowhere is not a results folder: it has no `experiment.toml`", "when it begins"),
        ("experiment --resume .", 3, ". is not a results folder", "`writing results to DIR`"),
        ("repeat --resume x.wml", 3, "x.wml is not a results folder", "`writing results to DIR`"),
    ] {
        let shown = lab.run(words, code);
        assert!(shown.contains(says) && shown.contains(help), "{words}: {shown}");
        assert_eq!(shown.matches("error").count(), 1, "{words}: {shown}");
        assert_eq!(names(&lab), before, "{words}");
    }
}

#[test]
fn a_mistyped_path_has_a_suggestion() {
    let lab = Lab::new();
    fs::write(lab.path("plan.toml"), "script = \"x\"\n").unwrap();
    for (words, code, says, help) in [
        ("experiment plna.toml", 2, "plna.toml can't be read", "did you mean `plan.toml`?"),
        ("report plna.toml", 2, "plna.toml can't be read", "did you mean `plan.toml`?"),
        ("report plan.toml", 2, "not a result", "`wmlrun experiment plan.toml` makes the runs of an experiment file"),
        ("compare y.wml x.wml", 2, "y.wml can't be read", "did you mean `x.wml`?"),
        ("wins y.wml x.wml", 2, "y.wml can't be read", "did you mean `x.wml`?"),
        ("compare x.wml x.wml plan.toml", 2, "unexpected argument 'plan.toml'", "`wmlrun report` shows three or more"),
    ] {
        let shown = lab.run(words, code);
        assert!(shown.contains(says) && shown.contains(help), "{words}: {shown}");
    }
}

/// No script begins with two hyphens, so that a word behind `--` is not what was meant.
#[test]
fn a_wrong_option_is_not_called_a_script() {
    let lab = Lab::new();
    for words in ["x.wml --hurry 3", "ab x.wml --hurry 3", "x.wml --runtime -1"] {
        let shown = lab.run(words, 2);
        assert!(shown.contains("unexpected argument '-") && !shown.contains("'-- -"), "{words}: {shown}");
    }
    // The option of another command is named as before.
    let shown = lab.run("x.wml --blocks 3", 2);
    assert!(shown.contains("unexpected argument '--blocks'") && !shown.contains("'-- -"), "{shown}");
    // A word that is a command is told of as one.
    let shown = lab.run("x.wml list", 2);
    assert!(shown.contains("the command `list` follows the script"), "{shown}");
}

/// Half an hour of runs whose sides do not differ is a mistake more often than an intention.
#[test]
fn equal_sides_are_told_before_the_first_run() {
    let lab = Lab::new();
    let words = format!("ab {SHORT} --blocks 2 --tolerance 90%");
    let shown = String::from_utf8(lab.command(&words).output().unwrap().stderr).unwrap();
    let note = shown.find("note: A and B have the same options").expect(&shown);
    assert!(note < shown.find("run 1 of 8").expect(&shown), "{shown}");
    let output = lab.command(&format!("{words} --b --pin")).output().unwrap();
    any_verdict(&output);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("same options"), "{output:?}");
}

#[test]
fn the_arms_of_a_comparison_have_the_names_of_the_report() {
    let lab = Lab::new();
    let words = format!("ab {SHORT} --blocks 2 --tolerance 90% --b --pin --results r");
    any_verdict(&lab.command(&words).output().unwrap());
    let shown = any_verdict(&lab.command("compare r:A r:b --tolerance 90% --anyway").output().unwrap());
    assert!(shown.contains("paired t-test over 2 blocks") && !shown.contains("not interleaved"), "{shown}");
    // Two folders were not made in blocks of each other.
    any_verdict(&lab.command(&words.replace("--results r", "--results s")).output().unwrap());
    let shown = squeezed(&any_verdict(&lab.command("compare r:a s:a --tolerance 90%").output().unwrap()));
    assert!(shown.contains("not interleaved"), "{shown}");
    let output = lab.command("compare r:c r:a").output().unwrap();
    assert!(exits(&output, 2, "compare r:c r:a").contains("its arms are a, b"), "{output:?}");
}
