//! Tests that `wmlrun check` reports all five mistakes of a script, from three stages, at once, and creates nothing.

use crate::cmd::Wml;
use crate::tree::tree;

/// The mistakes: a size with a bad unit (words), an unknown attribute and an unknown flowop (meaning), a variable that nothing
/// sets (names), and a brace that is never closed (shape).
const SCRIPT: &str = "\
define fileset name=data,path=$dir,size=16q,entries=100,dirwidth=20
define file name=log,path=$dir,sizze=1m,prealloc
define process name=server {
  thread name=worker,memsize=$buffer {
    flowop reed name=rd,filesetname=data,iosize=4k
    flowop write name=wr,filename=log,iosize=4k
}
";

/// The position of each mistake, a part of the message, and a word of its help.
const MISTAKES: [(&str, &str, &str); 5] = [
    ("1:43", "16q", "k, m, g, t"),
    ("2:32", "sizze", "size"),
    ("4:30", "buffer", "set"),
    ("5:12", "reed", "read"),
    ("3:28", "block", "}"),
];

#[test]
fn all_errors_are_shown_with_position_source_and_help() {
    let call = Wml::new().file("five.wml", SCRIPT).args(["check", "five.wml"]);
    let before = tree(call.dir());
    let output = call.run().exits(2);
    assert_eq!(before, tree(output.dir()), "a check touches nothing");
    let shown = output.shown();
    let messages: Vec<_> = shown.split("error[").skip(1).collect();
    assert_eq!(messages.len(), MISTAKES.len(), "{shown}");
    for (place, subject, help) in MISTAKES {
        let at = format!("five.wml:{place}\n");
        let message =
            messages.iter().find(|m| m.contains(&at)).unwrap_or_else(|| panic!("nothing at {place}\n{shown}"));
        let line = place.split(':').next().unwrap().parse::<usize>().unwrap();
        assert!(message.contains(subject), "`{subject}` is not in\n{message}");
        assert!(message.contains(SCRIPT.lines().nth(line - 1).unwrap()), "its source is not in\n{message}");
        assert!(message.contains('^'), "nothing is marked in\n{message}");
        assert!(message.contains("help: "), "no help in\n{message}");
        assert!(message.contains(help), "`{help}` is not in\n{message}");
    }
}

#[test]
fn a_script_with_errors_does_not_run() {
    let call = Wml::new().file("five.wml", SCRIPT).args(["five.wml", "--runtime", "1"]);
    let before = tree(call.dir());
    let output = call.run().exits(2);
    assert_eq!(before, tree(output.dir()), "nothing is created before the script is checked");
    assert_eq!(output.stdout, "");
}

#[test]
fn values_of_the_command_line_are_checked() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["varmale", "--runtime", "1"], 2, "varmail"),
        (&["varmail", "--runtime", "1", "--set", "nfils=10"], 2, "nfiles"),
        (&["varmail", "--runtime", "soon"], 2, "soon"),
        (&["varmail", "--engine", "posiks"], 2, "posix"),
        (&["varmail", "--runtim", "1"], 2, "--runtime"),
    ];
    for (args, code, word) in cases {
        let output = Wml::new().args(args).run().exits(code);
        assert!(output.stderr.contains(word), "{args:?}: no `{word}` in\n{}", output.stderr);
        assert_eq!(output.left(), [""; 0], "{args:?}");
    }
}
