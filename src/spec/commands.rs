//! The table of the commands of scripts, with lookups by their words.

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

/// All commands of scripts. The prompt has these and a few more.
pub const COMMANDS: &[CommandSpec] = &[
    command(
        "set",
        "set $name = VALUE",
        Both,
        "assigns a value to a variable; definitions read it when a run starts",
        "set $nfiles = 10k",
    ),
    command(
        "set mode",
        "set mode quit timeout|alldone|firstdone",
        Both,
        "selects what ends a run besides its time; `timeout`, the default: a finishoncount or finishonbytes; \
         `firstdone`: also the first thread to end; `alldone`: the end of all threads",
        "set mode quit firstdone",
    ),
    command(
        "define fileset",
        "define fileset name=NAME,path=PATH,…",
        Both,
        "defines a file set: a tree of files",
        "define fileset name=data,path=$dir,entries=10,dirwidth=5",
    ),
    command(
        "define file",
        "define file name=NAME,path=PATH,…",
        Both,
        "defines a file set of one file",
        "define file name=big,path=$dir,size=1m",
    ),
    command(
        "define process",
        "define process name=NAME,… { thread … { flowop … } }",
        Both,
        "defines a process, its threads and their flowops",
        "define process name=p,instances=1 { thread name=t { flowop delay name=d,value=1 } }",
    ),
    command(
        "define flowop",
        "define flowop name=NAME,$parameter=… { flowop … }",
        Both,
        "defines a composite flowop: a new flowop type made of several flowops",
        "define flowop name=pause { flowop delay name=d,value=1 }",
    ),
    command(
        "define randvar",
        "define randvar name=$VAR,type=…",
        Sun,
        "defines a random variable",
        "define randvar name=$r,type=uniform,min=1k,mean=4k",
    ),
    command(
        "create",
        "create files|filesets|processes",
        Both,
        "creates the trees of all file sets; `create processes` (1.4) starts the processes",
        "create files",
    ),
    command(
        "run",
        "run [SECONDS] [as-is]",
        Both,
        "prepares the trees (not with `as-is`), runs the processes for SECONDS, default 60, and reports",
        "run 60",
    ),
    command(
        "psrun",
        "psrun [[-]PERIOD [SECONDS]] [as-is]",
        Fsl,
        "as `run`, with a report every PERIOD seconds, default 10, on the run so far, with a minus on that period only",
        "psrun -10 60",
    ),
    command("sleep", "sleep SECONDS", Both, "waits; live processes keep running", "sleep 1"),
    command(
        "warmup",
        "warmup SECONDS",
        Sun,
        "sets the warm-up time of the next run, which is not measured; with live processes: waits, as `sleep`",
        "warmup 5",
    ),
    command(
        "system",
        "system \"COMMAND\"",
        Both,
        "runs a command with /bin/sh and waits for its end; needs `--allow-system`. A failure ends the script",
        "system \"sync\"",
    ),
    command("echo", "echo \"TEXT\"", Both, "prints a line", "echo \"files: $nfiles\""),
    command("log", "log \"TEXT\"", Sun, "prints a line, as `echo`", "log \"note\""),
    command(
        "usage",
        "usage \"TEXT\"",
        Sun,
        "adds a line to the usage text of the script, which `help` prints",
        "usage \"set \\$nfiles=<value>\"",
    ),
    command("help", "help", Sun, "prints the usage text of the script", "help"),
    command("vars", "vars", Sun, "prints the names of the variables", "vars"),
    command("version", "version", Both, "prints the version of wmlrun", "version"),
    command(
        "eventgen",
        "eventgen [rate=N]",
        Both,
        "sets the rate of the event generator, in events per second; 0: no limit",
        "eventgen rate=100",
    ),
    command(
        "enable",
        "enable lathist|multi",
        Fsl,
        "`lathist`: adds latency histograms to reports in Filebench's format; `multi`: accepted, without effect",
        "enable lathist",
    ),
    command(
        "domultisync",
        "domultisync value=N",
        Both,
        "synchronises several clients in Filebench; accepted, without effect",
        "domultisync value=1",
    ),
    command(
        "list",
        "list [fileset|flowop]",
        Both,
        "lists the file sets, or the flowops of all threads",
        "list fileset",
    ),
    command(
        "stats",
        "stats clear|snap|dump|xmldump|multidump|directory|command",
        Sun,
        "starts (`clear`) and ends (`snap`) a measurement of live processes, writes its figures to files, or runs a \
         command during it",
        "stats clear",
    ),
    command(
        "shutdown",
        "shutdown processes|files|filesets",
        Sun,
        "stops the processes, or removes the trees of the file sets",
        "shutdown processes",
    ),
    command(
        "load",
        "load NAME",
        Sun,
        "reads the definitions of a script or of a personality shipped with wmlrun, without running it",
        "load varmail",
    ),
    command(
        "foreach",
        "foreach $name in A,B,C { … }",
        Sun,
        "repeats the commands in braces for each value of the list",
        "foreach $n in 1,2 { echo \"$n\" }",
    ),
    command(
        "fscheck",
        "fscheck path=PATH,fstype=TYPE",
        Sun,
        "ends the script with an error if the path is on another type of file system",
        "fscheck path=/tmp,fstype=ext4",
    ),
    command(
        "fsflush",
        "fsflush fstype=TYPE",
        Sun,
        "evicts the file sets from the page cache; with `--allow-drop-caches` drops all caches of the machine",
        "fsflush fstype=ext4",
    ),
    command("debug", "debug LEVEL", Both, "accepted, without effect", "debug 2"),
    command("quit", "quit", Both, "ends the script", "quit"),
    command("exit", "exit", Sun, "ends the script, as `quit`", "exit"),
];

/// Returns the command of that word. A command of two words, such as `define file`, is found by its word and object.
pub fn find(word: &str, object: Option<&str>) -> Option<&'static CommandSpec> {
    let is_both = |c: &&CommandSpec| object.is_some_and(|object| c.name.split_once(' ') == Some((word, object)));
    COMMANDS.iter().find(is_both).or_else(|| COMMANDS.iter().find(|c| c.name == word))
}

/// Returns the plain words that can follow the given words, for completion: `files` and others after `create`,
/// `fileset` and others after `define`.
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
    fn following_words_come_from_names_and_forms() {
        assert_eq!(words_after("create"), ["files", "filesets", "processes"]);
        assert_eq!(words_after("define"), ["fileset", "file", "process", "flowop", "randvar"]);
        assert_eq!(words_after("set mode"), ["quit", "timeout", "alldone", "firstdone"]);
        assert_eq!(words_after("list"), ["fileset", "flowop"]);
        for none in ["run", "psrun", "foreach", "load", "debug", "fscheck"] {
            assert!(words_after(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn commands_of_two_words_are_found_by_word_and_object() {
        let name = |word, object| find(word, object).map(|c| c.name);
        assert_eq!(name("define", Some("randvar")), Some("define randvar"));
        assert_eq!(name("shutdown", Some("files")), Some("shutdown"));
        assert_eq!(name("define", None), None);
    }
}
