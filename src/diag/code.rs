//! Every diagnostic has a code; this table is the one list of them, and what `wmlrun explain CODE` says.

/// What kind of mistake it is.
macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal, $text:literal;)*) => {
        /// A kind of mistake or doubt.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The number that is shown, such as `E0203`.
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// One line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// A paragraph: what it means, why it matters, what to do.
            pub fn text(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    BadCharacter = "E0101", "a character that the language does not know",
        "Outside quoted strings a script consists of words, numbers, `$variables` and the signs `= , { } ( ) + - * /`. Put anything else into quotes. Filebench skips such a character silently, so that `path=~/x` becomes another path.";
    BadNumber = "E0102", "a number with a unit that is none",
        "Sizes are whole or fractional numbers with at most one of the units k, m, g, t (powers of 1024; upper case is accepted): `8k`, `1.5g`. Times are plain numbers of seconds.";
    UnterminatedString = "E0103", "a string that is not closed",
        "A string starts and ends with a double quote; it may span lines. The message shows where the open one starts.";
    BadVariable = "E0104", "a `$` without a name",
        "A variable is written `$name`, `${name}` or `$(NAME)`. A name starts with a letter or an underscore. In a string, `\\$` stands for a plain dollar sign.";
    UnexpectedToken = "E0105", "something that can't stand here",
        "A statement starts with a command word (`define`, `set`, `run`, …), `thread`, `flowop` or `}`. Attributes follow it as `name=value`, with commas between.";
    UnclosedBlock = "E0106", "a `{` without its `}`",
        "`define process`, `thread`, `define flowop` and `foreach` open a block with `{`; each needs its `}`.";
    UnmatchedClose = "E0107", "a `}` without its `{`",
        "This brace closes nothing. Often a block was closed once too often above it.";
    MissingComma = "E0108", "two attributes without a comma between",
        "Attributes are a list with commas: `name=x,size=4k,reuse`.";
    Misplaced = "E0109", "a statement in a place where it can't be",
        "`thread` stands in a `define process` block, `flowop` in a `thread` or a `define flowop` block, and everything else outside of blocks.";
    UnknownCommand = "E0110", "a command that does not exist",
        "`wmlrun list commands` shows all.";
    UnknownFlowop = "E0201", "a flowop that does not exist",
        "`wmlrun list flowops` shows all. A flowop is also made by `define flowop name=…`, which must come before its use.";
    UnknownAttribute = "E0202", "an attribute that this does not have",
        "Each statement has its own attributes; docs/language.md lists them.";
    MissingAttribute = "E0203", "an attribute that is needed is missing",
        "Without it the statement has no meaning.";
    WrongType = "E0204", "a value of another type than the attribute takes",
        "A size can't be a word, a switch can't be a size, and only some attributes take a random variable.";
    OutOfRange = "E0205", "a value outside the range of the attribute",
        "The message names the range.";
    BadArgument = "E0206", "a command with an argument that it does not take",
        "docs/language.md shows the form of each command.";
    Duplicate = "E0207", "a name that is defined twice",
        "File sets, processes, and threads of a process need names of their own: results are reported by name.";
    ContainsItself = "E0208", "a flowop that contains itself",
        "A flowop of `define flowop` is replaced by the flowops in its block. A flowop that contains itself, directly or through another flowop, would never end. To repeat flowops, give the outer one `iters=`.";
    BadName = "E0209", "a name with a control character, or a path with a NUL",
        "Names of processes, threads, flowops and file sets stand in results, in tables and on terminals, where a control character (a newline, an escape sequence, a NUL, a mark that changes the direction of writing) would look like something else. They are refused wherever a name comes from: a word, a string, a variable or the command line. A path may have them, but no NUL; where a path is shown they are written as `\\x1b`.";
    UnknownFileset = "E0301", "a file set that is not defined",
        "`filesetname=` and `filename=` name a file set or file of `define fileset` or `define file`.";
    UnknownTarget = "E0302", "a target that no flowop has as its name",
        "`target=` names the flowop instance (its `name=`) that is posted to, woken, limited or counted.";
    UndefinedVariable = "E0303", "a variable that nothing sets",
        "Set it with `set $name=value` before the run, or on the command line with `--set name=value`.";
    BadExpression = "E0304", "an expression that has no value",
        "Arithmetic works on numbers, with one operator: `$a * 3`.";
    BadDistribution = "E0305", "a random variable that can't be drawn from",
        "The message says which parameter is at fault; `wmlrun list distributions` shows all with their parameters.";
    NothingToRun = "E0306", "a script that defines no process",
        "A run needs at least one `define process` with a thread and a flowop.";
    Unsupported = "E0307", "something that this version can't do",
        "The message says what, and what to do instead.";
    Refused = "E0308", "something that is refused without leave",
        "`system` and the flowop `command` run shell commands and need `--allow-system`; a block device is overwritten and needs `--allow-device PATH`.";
    Unaligned = "E0309", "direct I/O that its file system would refuse",
        "With `directio` the kernel wants sizes and offsets that are multiples of a block of the device. The message says of how many bytes, and which value is none.";
    MixedDialect = "W0401", "constructs of both Filebench generations, which differ in meaning",
        "Put `# dialect: sun` or `# dialect: fsl` into the first comment of the file, or give `--dialect`. The difference matters for default sizes, gamma distributed sizes, directory widths, `indexed`, and what `finishoncount` does.";
    Ignored = "W0402", "something that is accepted and has no effect",
        "The message says why, and what happens instead.";
    DirectoryWidth = "W0403", "a file set without a directory width",
        "Without `dirwidth=` Filebench puts each file into a directory of its own, and so does wmlrun.";
    UnusedVariable = "W0404", "a variable that nothing reads",
        "Setting it changes nothing. Often its name is misspelt.";
    ExhaustedFileset = "W0405", "a file set that must run dry",
        "Steps take files (or make them) faster than anything gives them back. The run ends when none is left.";
    DeadSemaphore = "W0406", "a semaphore without a `sempost`",
        "A `semblock` waits for `sempost` with its name as `target=`. Without one its thread waits to the end of the run.";
    SmallFile = "W0407", "random I/O that does not fit its file",
        "A random read or write needs a file (or `workingset`) at least as large as one I/O.";
    SlotUse = "W0408", "a file slot that is used in a way that fails",
        "A slot (`fd=`) must be closed before it is opened again, and open before it is closed.";
    RateTooHigh = "W0409", "a rate that no thread can reach",
        "The waits in the loop alone take longer than the rate allows.";
    Shadowed = "W0410", "a local variable that hides another of the same name",
        "Inside the composite flowop the parameter is meant, outside the global variable.";
    RepeatedName = "W0411", "two flowops of one name in a loop, or two threads in a process",
        "Filebench adds them up under the one name. wmlrun keeps them apart by their place in the loop, but `target=` means both, and a reader of the results must count.";
    FilesAndLeafdirs = "W0412", "files and leaf directories in one file set",
        "With both `entries=` and `leafdirs=` Filebench gives files and leaf directories the same names and fails. Here each directory holds either, and leaf directories come after the files' directories. A script that is to run with Filebench too needs two file sets.";
    RepeatedAttribute = "W0413", "an attribute that is given twice",
        "Of several attributes of one name the last one counts, as in Filebench; the others have no effect. `filename` and `filesetname`, and `size` and `filesize`, are one attribute each.";
    NoInstances = "W0414", "a thread or process that is to have no instances",
        "`instances=0` means different things to the two, as in Filebench: of a thread one is started all the same, of a process none. To leave a thread out, delete its block; to leave out a process, 0 is right.";
    RunsShell = "W0415", "a script that runs a command of the shell",
        "`system`, `stats command` and the flowop `command` hand their text to `/bin/sh`, with the rights of the user who runs the script. A run without `--allow-system` refuses it before it creates anything.";
    LoadsElsewhere = "W0416", "a script that loads a file from outside its folder",
        "What `load` names lies neither in the script's own folder nor among the shipped personalities. Messages about such a file say where a mistake is, but quote nothing of it.";
    WritesFile = "W0417", "a script that writes a file",
        "What a script writes (`stats dump`, `xmldump`, `multidump`, `stats directory`) lies in the results directory: that of `--results`, else the current one. A path that leads elsewhere is mapped below it, unless `--allow-write PATH` allows that place. No link is followed, and a file that the same command did not write is not replaced: the next free NAME.1, NAME.2, … is taken.";
    UnsetInText = "W0420", "a text that shows a variable which nothing sets",
        "`echo`, `log` and `usage` show a variable that nothing sets as it is written, as Filebench does. Often its name is misspelt; write a literal dollar sign as `\\$`.";
    Internal = "E9999", "a mistake of wmlrun itself",
        "This is a bug in wmlrun, not in the script. Please report it with the script.";
}

/// What is known of a code, by its number, in any case.
pub fn explain(number: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.number().eq_ignore_ascii_case(number))
}
