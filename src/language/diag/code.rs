//! The table of all codes of diagnostics, with the explanations that `wmlrun explain CODE` prints.
//!
//! To add a code: a line here (number, title, explanation), and a case that shows it in `tests/cases/check/`; if its
//! message is enough to correct the script, also the corrected script in `tests/cases/mended/`. A message states the
//! fact, in lower case and without a full stop; the help says what to do. The code that finds the error supplies both.

/// Makes the enumeration [`Code`] from the table: variant, number, title and explanation of each code.
macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal, $text:literal;)*) => {
        /// A kind of error or warning.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $(#[doc = $title] $name,)* }

        impl Code {
            /// All codes: errors in the order of their numbers, then warnings, then the internal error.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Returns the number, such as `E0203`.
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// Returns the title, which is one line.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Returns the explanation: what the code means, an example of the cause, and what to do.
            pub fn text(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    BadCharacter = "E0101", "a character that is not allowed outside quotes",
        "Outside of quoted strings a script consists of words, numbers, `$variables`\n\
         and the characters `= , { } ( ) + - * /`. Any other character is an error if it\n\
         may belong to the word beside it, else it is skipped (W0425). Filebench skips\n\
         it always, and so reads `path=~/x` as another path.\n\n\
         Example: `path=~/data` or `name='two words'`.\n\n\
         What to do: put the value into double quotes (`\"…\"`), or remove the character.\n\
         `~` is not expanded: write the whole path, or `\"$(HOME)/data\"`.";
    BadNumber = "E0102", "a malformed number or an unknown unit",
        "A size is a number with at most one of the units k, m, g and t, in either\n\
         case. The units are powers of 1024. A time is a number of seconds, with or\n\
         without the unit s; a percentage a number with or without `%`. A number must\n\
         fit into 64 bits.\n\n\
         Example: `iosize=8q`, or `iosize=80%`.\n\n\
         What to do: write a number such as `8k` or `1.5g` for a size, and a number\n\
         without a unit, such as `60`, for anything else.";
    UnterminatedString = "E0103", "a string without its closing quote",
        "A string starts and ends with a double quote, and it may extend over several\n\
         lines. The message points to the opening quote. If an earlier string extends\n\
         over several lines, its closing quote may be the one that is missing.\n\n\
         Example: `echo \"starting` without a second quote.\n\n\
         What to do: add the closing `\"`. A quote inside a string is written `\\\"`.";
    BadVariable = "E0104", "a `$` without a variable name",
        "A variable is written `$name`, `${name}` or `$(NAME)`. Its name starts with a\n\
         letter or an underscore. Without brackets it ends in a letter or digit: an\n\
         underscore behind that is text, as in Filebench.\n\n\
         Example: `set $1st = 5`, or `set $size_ = 5`.\n\n\
         What to do: give the variable a valid name. For a plain dollar sign write `\\$`\n\
         in a quoted string.";
    UnexpectedToken = "E0105", "a syntax error",
        "The text does not fit the grammar at the marked position. A statement starts\n\
         with a command word (`define`, `set`, `run`, …), `thread`, `flowop` or `}`.\n\
         Its attributes follow as `name=value`, separated by commas. An attribute has\n\
         one value.\n\n\
         Example: `define fileset name==data`, or an operator without a number on its\n\
         right, as in `set $a = $b *`.\n\n\
         What to do: compare the statement with its form in docs/language.md. The label\n\
         at the marked position describes what is wrong there.";
    UnclosedBlock = "E0106", "a `{` without its `}`",
        "`define process`, `thread`, `define flowop` and `foreach` open a block with\n\
         `{`, and a table of a random variable is written in braces. Each `{` needs a\n\
         `}`.\n\n\
         Example: a `thread` block that is closed, in a `define process` block that is\n\
         not.\n\n\
         What to do: add the missing `}`. The message shows the open brace and, if it\n\
         can be determined, the last position at which the `}` can be.";
    UnmatchedClose = "E0107", "a `}` without its `{`",
        "No block is open at this brace. Often a block above it was closed one time too\n\
         many.\n\n\
         Example: two `}` after a `define process` block that contains no open\n\
         `thread`.\n\n\
         What to do: remove the brace, or add the `{` that it should close.";
    MissingComma = "E0108", "a missing comma between two attributes",
        "The attributes of a statement are separated by commas. Without a comma it is\n\
         unclear whether the words are two attributes or one value.\n\n\
         Example: `define fileset name=data size=4k`.\n\n\
         What to do: write `define fileset name=data,size=4k`. If a value contains a\n\
         space, put it into double quotes.";
    Misplaced = "E0109", "a statement in the wrong block",
        "`thread` is allowed only in a `define process` block, and `flowop` only in a\n\
         `thread` or `define flowop` block. All other statements are allowed only\n\
         outside these blocks.\n\n\
         Example: a `flowop` directly in a `define process` block.\n\n\
         What to do: move the statement into a block of the right kind, or check\n\
         whether a `}` above it is missing or superfluous.";
    UnknownCommand = "E0110", "an unknown command",
        "A statement starts with a word that is not a command of the language.\n\n\
         Example: `defin fileset name=data`.\n\n\
         What to do: check the spelling. `wmlrun list commands` lists all commands.";
    UnknownFlowop = "E0201", "an unknown flowop",
        "The word after `flowop` is neither a flowop of the language nor the name of a\n\
         composite flowop. A composite flowop must be defined before its first use.\n\n\
         Example: `flowop raed name=r,filesetname=data`.\n\n\
         What to do: check the spelling (`wmlrun list flowops` lists all flowops), or\n\
         put `define flowop name=…` before the use.";
    UnknownAttribute = "E0202", "an attribute that the statement does not have",
        "Each statement has its own attributes. The parameters of a composite flowop,\n\
         which start with `$`, are checked in the same way.\n\n\
         Example: `define fileset name=data,iosize=4k`: `iosize` is an attribute of\n\
         flowops.\n\n\
         What to do: check the spelling, or remove the attribute. docs/language.md\n\
         lists the attributes of every statement.";
    MissingAttribute = "E0203", "a required attribute is missing",
        "The statement cannot be carried out without this attribute, and the attribute\n\
         has no default.\n\n\
         Example: `define fileset name=data` without `path=`.\n\n\
         What to do: add the attribute that the message names, such as `path=$dir`.";
    WrongType = "E0204", "a value of the wrong type",
        "The value has another type than the attribute accepts: a word where a size is\n\
         expected, for example, or a random variable where a constant is expected. It\n\
         may come from a variable.\n\n\
         Example: `iosize=large`: the attribute takes a size.\n\n\
         What to do: give a value of the type that the message names. docs/language.md\n\
         lists the type of every attribute, and marks those that accept a random\n\
         variable as `drawn`.";
    OutOfRange = "E0205", "a value outside the range of the attribute",
        "The value has the right type, but it is too small or too large. Some limits\n\
         apply to a product or a sum, such as the number of threads in all instances of\n\
         all processes.\n\n\
         Example: `nice=50`: it takes a number from -40 to 40.\n\n\
         What to do: give a value in the range that the message names.";
    BadArgument = "E0206", "a wrong argument of a command",
        "The command does not accept this argument, needs another one, or cannot use\n\
         it: the argument may name a file that does not exist, for example.\n\n\
         Example: `create file`: the command is `create files`, `create filesets` or\n\
         `create processes`.\n\n\
         What to do: write the command as the message shows. docs/language.md lists the\n\
         form of every command.";
    Duplicate = "E0207", "a name or directory that is used twice",
        "Two file sets have the same name or the same directory. Results are reported\n\
         by name, and the files of one file set would be foreign files in the other. Two\n\
         composite flowops have the same name, or one has the name of a flowop of the\n\
         language: only one of the two could be used.\n\n\
         Example: two statements `define fileset name=data,…`.\n\n\
         What to do: give one of the two another name or another path.";
    ContainsItself = "E0208", "a composite flowop that contains itself",
        "A composite flowop (`define flowop`) is replaced by the flowops in its block.\n\
         If it contains itself, directly or through another composite flowop, the\n\
         replacement never ends.\n\n\
         Example: `define flowop name=f { flowop f name=g }`.\n\n\
         What to do: remove the inner use. To repeat the flowops of a block, give the\n\
         use of the composite flowop `iters=`.";
    BadName = "E0209", "a control character in a name, or a NUL in a path",
        "Names of processes, threads, flowops and file sets appear in results, in\n\
         tables and on terminals. A control character in a name (a newline, an escape\n\
         sequence, a NUL, a mark that changes the direction of writing) could imitate\n\
         other output. Such a name is refused wherever it is set: as a word, a string,\n\
         a variable or an option. A path may contain control characters except NUL;\n\
         they are displayed as escapes such as `\\x1b`.\n\n\
         Example: `name=\"web\\n\"`.\n\n\
         What to do: use letters, digits and printable punctuation in names, and remove\n\
         the NUL from the path.";
    UnknownFileset = "E0301", "a file set that is not defined",
        "`filesetname=` and `filename=` refer to a file set or file by the `name=` of\n\
         its `define fileset` or `define file`. No such definition exists.\n\n\
         Example: `flowop read name=r,filesetname=dta` in a script that defines `data`.\n\n\
         What to do: check the spelling, or define the file set.";
    UnknownTarget = "E0302", "a target that is not the name of a flowop",
        "`target=` refers to a flowop by its `name=`: the flowop that is posted to,\n\
         woken, limited or counted. `transaction=` of a process refers to a flowop in\n\
         the same way. No flowop has this name.\n\n\
         Example: `flowop finishoncount name=end,value=5,target=raed` where the flowop\n\
         is `flowop read name=read,…`.\n\n\
         What to do: use the `name=` of the flowop, not its type. A flowop inside a\n\
         composite is called `outer.inner`.";
    UndefinedVariable = "E0303", "a variable that is not set",
        "The script reads a variable that has no value.\n\n\
         Example: `instances=$nthreads` without a `set $nthreads = …`.\n\n\
         What to do: set the variable before the run with `set $nthreads = 8`, or on\n\
         the command line with `--set nthreads=8`.";
    BadExpression = "E0304", "an expression that cannot be evaluated",
        "An expression is one operation (`+ - * /`) on two numbers or variables.\n\
         Evaluation fails when an operand is not a number, when a number is divided by\n\
         0, when a whole number exceeds 64 bits, when a text gets too long, or when a\n\
         variable is defined by itself.\n\n\
         Example: `set $a = $b / 0`, or `set $a = $b` and `set $b = $a`.\n\n\
         What to do: correct the operand that the message names. For longer\n\
         calculations use several variables: `set $a = $b * 2`, then `set $c = $a + 1`.";
    BadDistribution = "E0305", "invalid parameters of a random variable",
        "A parameter of the random variable is unknown, missing or out of range, or the\n\
         parameters contradict one another.\n\n\
         Example: `randvar(type=pareto,shape=0.9)`: without `max`, the shape must be\n\
         greater than 1.\n\n\
         What to do: correct the parameter that the message names. `wmlrun list\n\
         distributions` lists all distributions with their parameters.";
    NothingToRun = "E0306", "nothing to run",
        "A run needs at least one process, each process needs a thread, and each thread\n\
         needs a flowop.\n\n\
         Example: a script that defines only file sets, or `thread name=t` without a\n\
         block.\n\n\
         What to do: add a `define process name=… { thread name=… { flowop … } }`.";
    Unsupported = "E0307", "something that this version does not support",
        "The script is valid, but this version of wmlrun cannot carry it out.\n\n\
         Example: a file set with `perinstance` and a list of directories\n\
         (`path=\"/a:/b\"`).\n\n\
         What to do: follow the help of the message, which names an alternative.";
    Refused = "E0308", "an operation that needs permission",
        "The operation could do damage and needs an option that permits it: `system`,\n\
         `stats command` and the flowop `command` run shell commands. A file set on a\n\
         block device would overwrite the device, and is always refused. So is a command\n\
         that would overwrite a script or an output file of wmlrun.\n\n\
         Example: `system \"mkfs.ext4 /dev/sdb1\"` without `--allow-system`.\n\n\
         What to do: read what the script does, then give the option that the message\n\
         names, such as `--allow-system`. Make a file system on a block device. For an\n\
         output file choose another path.";
    Unaligned = "E0309", "direct I/O that the file system would refuse",
        "With `directio` the kernel accepts only sizes and offsets that are multiples\n\
         of a block size, which depends on the file system and the device. An unaligned\n\
         read or write would fail with EINVAL.\n\n\
         Example: `flowop read name=r,filesetname=data,directio,iosize=1000`.\n\n\
         What to do: make the size a multiple of the number of bytes that the message\n\
         names (for random sizes with `round=`), or remove `directio`.";
    BadToml = "E0601", "an experiment file that is not TOML",
        "An experiment file is written in TOML: a line is `KEY = VALUE`, texts are in\n\
         quotes, and `[[factor]]` or `[[hook]]` begins a table. A key occurs once in its\n\
         table.\n\n\
         Example: `script = varmail`.\n\n\
         What to do: correct the text at the marked position: `script = \"varmail\"`.";
    UnknownKey = "E0602", "an unknown key in an experiment file",
        "Each table of an experiment file has its own keys. A key of another table is\n\
         unknown as well: after `[[factor]]` or `[[hook]]` all lines belong to that\n\
         table.\n\n\
         Example: `repeat = 3`.\n\n\
         What to do: check the spelling, or move the line before the first `[[…]]`.\n\
         docs/experiment-keys.md lists the keys of all tables.";
    WrongValue = "E0603", "a value that a key of an experiment file does not accept",
        "The value has another type or form than the key accepts, or contradicts\n\
         another key.\n\n\
         Example: `repeats = \"many\"`, or two levels of a factor with the same name.\n\n\
         What to do: write the value as the message says. docs/experiment-keys.md has the\n\
         form of each value.";
    MissingKey = "E0604", "a key that an experiment file lacks",
        "The table cannot be used without this key.\n\n\
         Example: `[[factor]]` without `levels`.\n\n\
         What to do: add the key that the message names.";
    BadCell = "E0605", "a cell of an experiment that cannot run",
        "Before the first run wmlrun reads the script of each cell with the options of\n\
         the cell. The marked level, option or variable causes an error there.\n\n\
         Example: the factor `nthread`, whose script has the variable `$nthreads`.\n\n\
         What to do: correct the marked text. `wmlrun plan SCRIPT` with the same options\n\
         shows the same error.";
    CommandFailed = "E0606", "a command of an experiment file that failed",
        "The command exited with another status than 0, ran longer than its time limit,\n\
         or printed more than 16 MiB. The experiment has ended, and the `after` commands\n\
         of all scopes that had begun were executed.\n\n\
         Example: `before = \"mount /dev/sdx1 /mnt\"` without such a device.\n\n\
         What to do: read the output of the command in the file that the help names,\n\
         remove the cause, and continue the experiment with `--resume`.";
    MixedDialect = "W0401", "an ambiguous or unknown dialect",
        "Filebench 1.1 to 1.4 (`sun`) and 1.5 (`fsl`) give some words different\n\
         meanings: default sizes, gamma distributed sizes, directory widths, `indexed`,\n\
         and `finishoncount`. The script has constructs of both generations, or its `#\n\
         dialect:` line names an unknown dialect. It is read as `fsl` if nothing else\n\
         decides.\n\n\
         Example: `foreach` (only in 1.4) and `cvar(…)` (only in 1.5) in one script.\n\n\
         What to do: put `# dialect: sun` or `# dialect: fsl` into the first comment of\n\
         the script, or give `--dialect`.";
    Ignored = "W0402", "something that has no effect",
        "wmlrun accepts this for compatibility with existing scripts, but it has no\n\
         effect, or another effect than in Filebench.\n\n\
         Example: `set mode nousestats`: processor times are always read.\n\n\
         What to do: remove it. The help of the message describes what happens instead,\n\
         if anything.";
    DirectoryWidth = "W0403", "a file set without a directory width",
        "Without `dirwidth=` Filebench puts each file into a separate directory, and so\n\
         does wmlrun.\n\n\
         Example: `define fileset name=data,path=$dir,entries=10000,size=4k`.\n\n\
         What to do: give the mean number of entries of a directory, such as\n\
         `dirwidth=20`.";
    UnusedVariable = "W0404", "a variable that is not used",
        "The script sets a variable that no statement reads, so that setting it changes\n\
         nothing. Often the name is misspelt.\n\n\
         Example: `set $iosze = 8k` in a script that reads `$iosize`.\n\n\
         What to do: correct the name, or remove the `set`.";
    ExhaustedFileset = "W0405", "a file set that will be exhausted",
        "The loop creates files faster than it removes them, or removes them faster\n\
         than it creates them. Its threads end early, when no file is left to remove, or\n\
         when all files of the file set exist and none is left to create.\n\n\
         Example: a thread whose only flowop is `deletefile`.\n\n\
         What to do: create as many files as are removed, or give the file set `entries`\n\
         for the whole run. If the threads are meant to end then, write `set mode quit\n\
         alldone`, give the flowop `maystarve`, or the thread a `finishoncount`.";
    DeadSemaphore = "W0406", "a waiting flowop that is never woken",
        "A `semblock` waits for a `sempost` that has the name of the `semblock` as its\n\
         `target=`, and a `block` waits for a `wakeup` in the same way. Without one the\n\
         thread waits until the end of the run and does no more work.\n\n\
         Example: `flowop semblock name=sem,value=1` and no flowop with `target=sem`.\n\n\
         What to do: add a `flowop sempost name=…,target=sem` to another thread, or\n\
         remove the `semblock`.";
    SmallFile = "W0407", "random I/O that is larger than its file",
        "A random read or write needs a file, or a `workingset=`, that is at least as\n\
         large as one I/O.\n\n\
         Example: `flowop read name=r,filesetname=data,random,iosize=1m` on files of 4\n\
         KiB.\n\n\
         What to do: reduce `iosize=`, or enlarge the file or the working set.";
    SlotUse = "W0408", "a wrong use of a file slot",
        "A file slot (`fd=`) holds one open file of a thread. It must be closed before\n\
         another file is opened in it, it must be open before it is closed or used, and\n\
         flowops that use it must name the file set whose file it holds. The operation\n\
         would fail in the run.\n\n\
         Example: `flowop openfile name=o,filesetname=data,fd=1` in a loop without a\n\
         `closefile` of slot 1: the second iteration fails.\n\n\
         What to do: add the missing `openfile` or `closefile`, or use another `fd=`.";
    RateTooHigh = "W0409", "a rate that cannot be reached",
        "The delays in the loop alone take longer than the rate allows.\n\n\
         Example: a thread with `rate=10` that contains `flowop delay\n\
         name=wait,value=1`: its iterations take at least 1 s.\n\n\
         What to do: reduce the rate, start more threads, or remove the `delay`: a\n\
         thread with `rate=` waits for the start of each iteration anyway.";
    Shadowed = "W0410", "a parameter that hides a variable",
        "A composite flowop has a parameter with the name of a variable. Inside of the\n\
         composite flowop the name refers to the parameter, outside it to the\n\
         variable.\n\n\
         Example: `set $iosize = 8k` and `define flowop name=f,$iosize=4k { … }`.\n\n\
         What to do: give the parameter another name, unless this is intended.";
    RepeatedName = "W0411", "flowops of a loop, threads of a process, or processes with the same name",
        "wmlrun reports flowops of the same name separately, in rows with equal names;\n\
         Filebench adds them up. `target=` refers to all of them. A second thread of a\n\
         process, or a second process, gets a number after its name: `t-2`.\n\n\
         Example: two flowops `flowop read name=r,…` in one thread.\n\n\
         What to do: give each a different name. For equal threads use one `thread`\n\
         with `instances=`.";
    FilesAndLeafdirs = "W0412", "files and leaf directories in one file set",
        "With both `entries=` and `leafdirs=`, Filebench gives files and leaf\n\
         directories the same names and fails. In wmlrun a directory contains either\n\
         files or leaf directories, and the directories with leaf directories come\n\
         last.\n\n\
         Example: `define fileset name=data,path=$dir,entries=100,leafdirs=10`.\n\n\
         What to do: nothing, if only wmlrun runs the script. For Filebench define two\n\
         file sets.";
    RepeatedAttribute = "W0413", "an attribute that is given twice",
        "If an attribute is given more than once, its last value is used, as in\n\
         Filebench. `filename` and `filesetname` are one attribute, and so are `size`\n\
         and `filesize`.\n\n\
         Example: `define fileset name=data,size=4k,size=8k`.\n\n\
         What to do: remove all but one of them.";
    NoInstances = "W0414", "a thread, or every process, with 0 instances",
        "As in Filebench, `instances=0` starts one instance of a thread all the same,\n\
         but none of a process. If all processes have 0 instances, the run does nothing.\n\
         Mistakes in a process with 0 instances, such as a file set that is not defined,\n\
         have no effect.\n\n\
         Example: `thread name=t,instances=0 { … }`.\n\n\
         What to do: to start no instance of a thread, remove its block. To start no\n\
         instance of a process, `instances=0` is right; give another process at least\n\
         one.";
    RunsShell = "W0415", "a script that runs shell commands",
        "`system`, `stats command` and the flowop `command` pass their text to\n\
         `/bin/sh`, with the rights of the user who runs the script. Without\n\
         `--allow-system` a run refuses such a script before it creates anything.\n\n\
         Example: `system \"sync\"`.\n\n\
         What to do: read the command. If it is harmless, run the script with\n\
         `--allow-system`.";
    LoadsElsewhere = "W0416", "a script that loads a file from outside its folder",
        "The file that `load` names is neither in the folder of the script nor one of\n\
         the shipped personalities. A script from an untrusted source could display a\n\
         private file in this way. Messages about such a file therefore give line and\n\
         column, but quote nothing of it.\n\n\
         Example: `load /etc/passwd`.\n\n\
         What to do: check that the file is the one you expect. To see its text in\n\
         messages, copy it into the folder of the script.";
    WritesFile = "W0417", "a script that writes files or evicts caches",
        "`stats dump`, `stats xmldump`, `stats multidump` and `stats directory` write\n\
         into the results directory (`--results`, else the current one). A path that\n\
         leads elsewhere is mapped below it, unless `--allow-write PATH` permits the\n\
         path. Symbolic links are not followed. A file is replaced only if the same\n\
         command wrote it; otherwise the next free NAME.1, NAME.2, … is used. `fsflush`\n\
         evicts the file sets from the page cache.\n\n\
         Example: `stats dump \"/tmp/run.out\"`: the file is written below the results\n\
         directory.\n\n\
         What to do: choose the directory with `--results DIR`, or permit other places\n\
         with `--allow-write PATH`. For `fsflush`, `--allow-drop-caches` permits\n\
         dropping all caches of the machine.";
    UnsetInText = "W0420", "a text with a variable that is not set",
        "Often the name is misspelt. As in Filebench, `echo`, `log` and `usage` print\n\
         the `$name` of a variable that is not set. `system` and `stats command` leave\n\
         it to the shell; if the shell has no such variable either, the command is an\n\
         error and not run. `$(NAME)` is a variable of the environment. `check` looks in\n\
         its own environment, which may differ from the run's.\n\n\
         Example: `echo \"with $nfile files\"` in a script that sets `$nfiles`.\n\n\
         What to do: correct the name, or set the variable. For a literal dollar sign,\n\
         such as in a variable of the shell, write `\\$`.";
    EmptyFile = "W0421", "a read of files that are empty",
        "The files have the size 0, or they are created during the run without content,\n\
         and no flowop writes to them. Each read returns 0 bytes, so that the rates of\n\
         the result mean little.\n\n\
         Example: `flowop read name=r,filesetname=data,iosize=8k` on a file set with\n\
         `size=0`.\n\n\
         What to do: give the file set a `size=`, and `prealloc` if its files exist\n\
         before the run, or write to the files before they are read.";
    Clamped = "W0422", "a number that is replaced by the largest one",
        "The largest number of wmlrun is 9223372036854775807; it reads a larger one as\n\
         this. Filebench's numbers go up to 18446744073709551615, which some scripts\n\
         write for \"never\". A number above that is an error.\n\n\
         Example: `set $never = 18446744073709551615`.\n\n\
         What to do: nothing, if the number only has to be large. Otherwise write a\n\
         smaller number.";
    NotRead = "W0423", "errors in text that is not read",
        "A `quit` or `exit` outside of blocks ends the script; Filebench does not read\n\
         the text after it. If there is an error in it, such as a note in plain words,\n\
         wmlrun ignores all of it and runs the script.\n\n\
         Example: `quit`, and on the next line `Written for the old cluster.`\n\n\
         What to do: remove the text, or put a `#` before each of its lines. If it should\n\
         be executed, remove the `quit`.";
    KeptValue = "W0424", "a variable that live processes do not follow",
        "Processes keep the values that variables had when `create processes` started\n\
         them. Only the rate of `eventgen` changes while they live; in Filebench some\n\
         other attributes do too. There is one warning for each variable.\n\n\
         Example: `create processes`, and then `set $iosize = 8k`.\n\n\
         What to do: write `shutdown processes` and `create processes` after the `set`.";
    SkippedCharacter = "W0425", "a character or unit that is skipped",
        "Like Filebench, wmlrun skips a character that the language does not have, where\n\
         the words beside it can be read in one way only: a `;` between statements, a\n\
         `\\` at the end of a line, quotes other than `\"` around a word, characters that\n\
         are not visible. There is one warning for each character. `60s` or `80%` as the\n\
         value of a variable is the number alone.\n\n\
         Example: `fd=1;`, or `name='web'`.\n\n\
         What to do: remove the character. If it belongs to a text, put the text into\n\
         double quotes.";
    RateOfZero = "W0428", "a product that makes a rate 0",
        "A `rate=` or `totalrate=` is the product of 0 and another number. A rate of 0\n\
         is a closed loop: the threads run at full speed. Often the opposite is meant.\n\n\
         Example: `set $rate = $load * $share` with `set $share = 0`.\n\n\
         What to do: give both a value above 0. If a closed loop is meant, leave the\n\
         factor out, or divide: `$load / 2` with a load of 0 is a closed loop without a\n\
         warning.";
    SizeAsTime = "W0429", "a time with a unit of sizes",
        "Times are seconds, and the units k, m, g and t are those of sizes: `1m` is\n\
         1,048,576 seconds, twelve days. Filebench accepts it and so does wmlrun.\n\n\
         Example: `run 1m`, `for=1k`, or `value=1k` of a `delay`.\n\n\
         What to do: write the seconds, such as `60`.";
    NeverEnds = "W0430", "a run that nothing ends",
        "With `set mode quit alldone` or `firstdone` a run lasts until threads end, and a\n\
         thread of the script does not end by itself: the run goes on until a signal\n\
         stops it.\n\n\
         Example: `set mode quit alldone`, and a thread that only reads.\n\n\
         What to do: give the process `for=60`, or the thread a `finishoncount`, or run\n\
         the script with `--runtime 60`.";
    LimitsProcess = "W0431", "a limit that other threads of the process count towards",
        "`bwlimit`, `iopslimit` and `opslimit` without `target=` count the operations of\n\
         all threads of their process, as in Filebench. The thread with the limiter\n\
         waits for the work of the others too.\n\n\
         Example: a scrubber with `flowop bwlimit name=limit` beside the threads of a\n\
         server in one process.\n\n\
         What to do: name the flowop that is limited, such as `target=read`, or give the\n\
         other threads a process of their own.";
    ItemsOfFiles = "W0432", "a Zipf distribution over another number than that of the files",
        "`indexed=` takes the number that the random variable draws modulo the number of\n\
         files. With more `items=` than files, unpopular items fall on popular files; with\n\
         fewer, the other files are never picked. Without `items=` they are 1000.\n\n\
         Example: `indexed=randvar(type=zipf)` on a file set with `entries=200`.\n\n\
         What to do: set the number once, with `set $nfiles = 200`, and write\n\
         `items=$nfiles` and `entries=$nfiles`.";
    Internal = "E9999", "an internal error of wmlrun",
        "wmlrun has failed in a way that should not be possible. The script is not the\n\
         cause.\n\n\
         What to do: please report the message together with the script.";
}
