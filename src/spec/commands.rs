//! The commands of scripts and of the prompt.

use super::{CommandSpec, Origin};

const fn command(
    name: &'static str,
    form: &'static str,
    origin: Origin,
    doc: &'static str,
    example: &'static str,
) -> CommandSpec {
    CommandSpec { name, form, origin, doc, example }
}

use Origin::{Both, Fsl, Sun};

/// All commands that stand in scripts.
pub const COMMANDS: &[CommandSpec] = &[
    command(
        "set",
        "set $name = VALUE",
        Both,
        "gives a variable a value; it is read when a run starts",
        "set $nfiles = 10k",
    ),
    command(
        "set mode",
        "set mode quit timeout|alldone|firstdone",
        Both,
        "what ends a run besides its time",
        "set mode quit firstdone",
    ),
    command(
        "define fileset",
        "define fileset name=NAME,path=PATH,…",
        Both,
        "describes a tree of files",
        "define fileset name=data,path=$dir,entries=10,dirwidth=5",
    ),
    command(
        "define file",
        "define file name=NAME,path=PATH,…",
        Both,
        "describes one file",
        "define file name=big,path=$dir,size=1m",
    ),
    command(
        "define process",
        "define process name=NAME,… { thread … { flowop … } }",
        Both,
        "describes processes and their threads",
        "define process name=p,instances=1 { thread name=t { flowop delay name=d,value=1 } }",
    ),
    command(
        "define flowop",
        "define flowop name=NAME,$parameter=… { flowop … }",
        Both,
        "makes a flowop of several",
        "define flowop name=pause { flowop delay name=d,value=1 }",
    ),
    command(
        "define randvar",
        "define randvar name=$VAR,type=…",
        Sun,
        "makes a random variable",
        "define randvar name=$r,type=uniform,min=1k,mean=4k",
    ),
    command(
        "create",
        "create files|filesets|processes",
        Both,
        "makes the trees, or (1.4) starts the processes",
        "create files",
    ),
    command(
        "run",
        "run [SECONDS] [as-is]",
        Both,
        "sets up the trees (`as-is`: leaves them), runs the processes, measures, reports",
        "run 60",
    ),
    command(
        "psrun",
        "psrun [[-]PERIOD [SECONDS]] [as-is]",
        Fsl,
        "a run that reports each period; with a minus each period by itself",
        "psrun -10 60",
    ),
    command("sleep", "sleep SECONDS", Both, "waits", "sleep 1"),
    command(
        "warmup",
        "warmup SECONDS",
        Sun,
        "warm-up of the next run, not measured; with live processes, waits",
        "warmup 5",
    ),
    command(
        "system",
        "system \"COMMAND\"",
        Both,
        "runs a shell command, if `--allow-system` is given",
        "system \"sync\"",
    ),
    command("echo", "echo \"TEXT\"", Both, "prints a line", "echo \"files: $nfiles\""),
    command("log", "log \"TEXT\"", Sun, "prints a line", "log \"note\""),
    command(
        "usage",
        "usage \"TEXT\"",
        Sun,
        "explains the script's variables; shown by `help`",
        "usage \"set \\$nfiles=<value>\"",
    ),
    command("help", "help", Sun, "prints the usage texts", "help"),
    command("vars", "vars", Sun, "lists the variables", "vars"),
    command("version", "version", Both, "prints the version", "version"),
    command(
        "eventgen",
        "eventgen [rate=N]",
        Both,
        "sets the rate of the event generator, in events a second",
        "eventgen rate=100",
    ),
    command(
        "enable",
        "enable lathist|multi",
        Fsl,
        "`lathist`: latency histograms in Filebench's format",
        "enable lathist",
    ),
    command(
        "domultisync",
        "domultisync value=N",
        Both,
        "several clients in step; accepted, without effect so far",
        "domultisync value=1",
    ),
    command("list", "list [fileset|flowop]", Both, "lists file sets or flowops", "list fileset"),
    command(
        "stats",
        "stats clear|snap|dump|xmldump|multidump|directory|command",
        Sun,
        "starts, ends and writes a measurement of live processes",
        "stats clear",
    ),
    command(
        "shutdown",
        "shutdown processes|files|filesets",
        Sun,
        "stops the processes, or removes the trees",
        "shutdown processes",
    ),
    command("load", "load NAME", Sun, "reads a personality", "load varmail"),
    command(
        "foreach",
        "foreach $name in A,B,C { … }",
        Sun,
        "repeats commands with each value",
        "foreach $n in 1,2 { echo \"$n\" }",
    ),
    command(
        "fscheck",
        "fscheck path=PATH,fstype=TYPE",
        Sun,
        "stops if the path lies on another type of file system",
        "fscheck path=/tmp,fstype=ext4",
    ),
    command("fsflush", "fsflush fstype=TYPE", Sun, "drops the file sets from the page cache", "fsflush fstype=ext4"),
    command("debug", "debug LEVEL", Both, "accepted; hides nothing", "debug 2"),
    command("quit", "quit", Both, "ends the script", "quit"),
    command("exit", "exit", Sun, "the same as quit", "exit"),
];

/// The command with that word and, if there is one of two words, that object.
pub fn find(word: &str, object: Option<&str>) -> Option<&'static CommandSpec> {
    let is_both = |c: &&CommandSpec| object.is_some_and(|object| c.name.split_once(' ') == Some((word, object)));
    COMMANDS.iter().find(is_both).or_else(|| COMMANDS.iter().find(|c| c.name == word))
}

/// The plain words that may stand directly behind these: `files` and others behind `create`, `fileset` and others behind `define`.
pub fn words_after(words: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for command in COMMANDS {
        if let Some(rest) = command.name.strip_prefix(words).and_then(|rest| rest.strip_prefix(' ')) {
            found.push(rest);
        } else if command.name == words {
            let form = command.form[words.len()..].split_whitespace();
            let choices = form.map(|word| word.trim_matches(['[', ']']).split('|'));
            let plain = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
            found.extend(choices.take_while(|words| words.clone().all(|word| plain(&word))).flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{find, words_after};

    #[test]
    fn words_come_from_names_and_forms() {
        assert_eq!(words_after("create"), ["files", "filesets", "processes"]);
        assert_eq!(words_after("define"), ["fileset", "file", "process", "flowop", "randvar"]);
        assert_eq!(words_after("set mode"), ["quit", "timeout", "alldone", "firstdone"]);
        assert_eq!(words_after("list"), ["fileset", "flowop"]);
        for none in ["run", "psrun", "foreach", "load", "debug", "fscheck"] {
            assert!(words_after(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn an_object_is_a_part_of_some_names() {
        let name = |word, object| find(word, object).map(|c| c.name);
        assert_eq!(name("define", Some("randvar")), Some("define randvar"));
        assert_eq!(name("shutdown", Some("files")), Some("shutdown"));
        assert_eq!(name("define", None), None);
    }
}
