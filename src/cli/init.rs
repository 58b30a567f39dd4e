//! `wmlrun init`: writes a script from the answers to five questions.
//!
//! To add a question: a row of [`QUESTIONS`], its option in `args`, and what it changes in the script, `init.wml.in`.

use super::console::{self, print_lines};
use super::shell_text::joined;
use super::stdout::Stdout;
use crate::diag::Failure;
use crate::os::held_dir::HeldDir;
use crate::util::{printable, size};
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

/// The answers to the questions.
#[derive(Clone, Default, Debug)]
struct InitAnswers {
    files: u64,
    file_size: u64,
    threads: u64,
    /// Requests per second of all threads, as scripts have it; `0` for a closed loop.
    rate: String,
    /// Percent of the requests that read.
    reads: u64,
    /// Each write waits for the device.
    syncs_writes: bool,
    /// The end of a written file waits for the device.
    syncs_end: bool,
    /// Bytes of a read or write. `None`: files are read and written whole.
    io_size: Option<u64>,
}

/// A question, which an option can answer.
struct InitQuestion {
    /// The name of the option, without hyphens.
    option: &'static str,
    text: &'static str,
    default: &'static str,
    /// Takes an answer. The error says what an answer is.
    take: fn(&mut InitAnswers, &str) -> Result<(), String>,
}

const QUESTIONS: [InitQuestion; 5] = [
    InitQuestion {
        option: "files",
        text: "How many files does it use, and how large is each?",
        default: "1000 x 64k",
        take: take_files,
    },
    InitQuestion {
        option: "load",
        text: "How many threads are there, or requests per second (such as 200/s)?",
        default: "4",
        take: take_load,
    },
    InitQuestion {
        option: "reads",
        text: "What percentage of the requests only read?",
        default: "70",
        take: take_reads,
    },
    InitQuestion {
        option: "sync",
        text: "Sync data never, at each write, or at the end (never, write, end)?",
        default: "never",
        take: take_sync,
    },
    InitQuestion {
        option: "io",
        text: "Does a request use a whole file, or parts of a size (such as 8k)?",
        default: "whole",
        take: take_io,
    },
];

/// Largest numbers that a script may ask for.
const MOST_FILES: u64 = 1 << 28;
const MOST_THREADS: u64 = 10_000;
const MOST_RATE: f64 = 1e6;
/// Bytes of all files, and of a call.
const LARGEST_SET: u64 = 1 << 50;
const LARGEST_IO: u64 = 1 << 30;
/// Threads that send requests at a rate.
const RATE_THREADS: u64 = 16;
/// Bytes of a call that reads or writes a whole file, at most.
const WHOLE_IO: u64 = 1 << 20;

fn take_files(answers: &mut InitAnswers, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split(['x', ' ']).filter(|part| !part.is_empty()).collect();
    let [files, file_size] = parts[..] else { return Err("give a number and a size, such as `1000 x 64k`".to_owned()) };
    answers.files = within(files, "the number of files", MOST_FILES)?;
    answers.file_size = within(file_size, "the size of a file", LARGEST_SET)?;
    if answers.files.saturating_mul(answers.file_size) > LARGEST_SET {
        return Err(format!("all files together have at most {}", size::format(LARGEST_SET)));
    }
    Ok(())
}

fn take_load(answers: &mut InitAnswers, text: &str) -> Result<(), String> {
    let Some(rate) = text.strip_suffix("/s") else {
        answers.threads = within(text, "the number of threads", MOST_THREADS)?;
        "0".clone_into(&mut answers.rate);
        return Ok(());
    };
    let is_number = rate.chars().all(|c| c.is_ascii_digit() || c == '.');
    let found = rate.parse::<f64>().ok().filter(|found| is_number && *found > 0.0 && *found <= MOST_RATE);
    let found = found.ok_or("give a number of threads, such as `4`, or of requests per second, such as `200/s`")?;
    answers.threads = RATE_THREADS;
    // `5.` is no number of the language.
    answers.rate = found.to_string();
    Ok(())
}

fn take_reads(answers: &mut InitAnswers, text: &str) -> Result<(), String> {
    let share = text.trim_end_matches('%').trim_end().parse().ok().filter(|share| *share <= 100);
    answers.reads = share.ok_or("give a whole number from 0 to 100")?;
    Ok(())
}

fn take_sync(answers: &mut InitAnswers, text: &str) -> Result<(), String> {
    (answers.syncs_writes, answers.syncs_end) = match text {
        "never" => (false, false),
        "write" => (true, false),
        "end" => (false, true),
        _ => return Err("give `never`, `write` or `end`".to_owned()),
    };
    Ok(())
}

fn take_io(answers: &mut InitAnswers, text: &str) -> Result<(), String> {
    if text == "whole" {
        answers.io_size = None;
        return Ok(());
    }
    let found = size::parse(text).map_err(|_| "give `whole`, or a size such as `8k`")?;
    if found == 0 || found > answers.file_size.min(LARGEST_IO) {
        let most = size::in_script(answers.file_size.min(LARGEST_IO));
        return Err(format!("a part of a file has 1 to {most} bytes here"));
    }
    answers.io_size = Some(found);
    Ok(())
}

/// Reads a number from 1 to `most`, which may have a unit of sizes.
fn within(text: &str, what: &str, most: u64) -> Result<u64, String> {
    let found = size::parse(text).ok().filter(|found| (1..=most).contains(found));
    found.ok_or_else(|| format!("{what} is from 1 to {}, not `{text}`", size::in_script(most)))
}

/// Asks the questions that `given` has no answer to, on a terminal; elsewhere they have their default. Then writes the
/// script. `given`: the answers by options, in the order of the questions. Returns the exit status.
pub(super) fn init(path: &Path, given: [Option<String>; 5]) -> Result<u8, Failure> {
    let is_dialog = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_dialog && given.iter().all(Option::is_none) {
        let help = "answer by options, such as `--files 1000x64k --load 4`: `wmlrun init --help`";
        return Err(Failure::wrong("the questions need a terminal", help));
    }
    let unwritten = |e: std::io::Error| {
        let (what, help) = match e.kind() {
            ErrorKind::AlreadyExists => ("exists, and is kept".to_owned(), "name another file"),
            _ => (format!("can't be written: {e}"), "name a file in a directory that exists"),
        };
        Failure::refused(format!("{} {what}", path.display()), help)
    };
    let (dir, name) = HeldDir::of_entry(path).map_err(unwritten)?;
    if dir.find(&name).map_err(unwritten)?.is_some() {
        return Err(unwritten(ErrorKind::AlreadyExists.into()));
    }
    if is_dialog && given.iter().any(Option::is_none) {
        print_lines("About your program; Enter takes the answer in brackets.");
    }
    let take = |question: &InitQuestion, answers: &mut InitAnswers, text: &str| {
        (question.take)(answers, text).map_err(|why| {
            Failure::wrong(format!("`--{} {text}`: {why}", question.option), "`wmlrun init --help` has examples")
        })
    };
    // Before the first question: a mistake in an option would lose the answers.
    let mut tried = InitAnswers { file_size: LARGEST_SET, ..InitAnswers::default() };
    for (question, text) in QUESTIONS.iter().zip(&given).filter_map(|(question, text)| Some((question, text.as_ref()?)))
    {
        take(question, &mut tried, text)?;
    }
    let mut answers = InitAnswers::default();
    for (question, given) in QUESTIONS.iter().zip(given) {
        match given {
            Some(text) => take(question, &mut answers, &text)?,
            None if is_dialog => ask(question, &mut answers)?,
            None => _ = (question.take)(&mut answers, question.default),
        }
    }
    dir.write_new(&name, answers.script(path).as_bytes()).map_err(unwritten)?;
    let word = word(path);
    print_lines(&format!("{} is written. `wmlrun {word}` runs it; its comments say more", path.display()));
    Ok(0)
}

/// Asks until the answer is one.
fn ask(question: &InitQuestion, answers: &mut InitAnswers) -> Result<(), Failure> {
    loop {
        let _ = Stdout.write_all(format!("{} [{}] ", question.text, question.default).as_bytes());
        let _ = Stdout.flush();
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        if read.as_ref().is_ok_and(|bytes| *bytes > 0) {
            let text = Some(line.trim()).filter(|text| !text.is_empty()).unwrap_or(question.default);
            let Err(why) = (question.take)(answers, text) else { return Ok(()) };
            console::error(&why, None);
        } else {
            print_lines("");
            let why = read.err().map_or_else(String::new, |e| format!(": {e}"));
            return Err(Failure::wrong(format!("the question has no answer{why}"), "nothing is written"));
        }
    }
}

/// A path as a word of a command.
fn word(path: &Path) -> String {
    let path = path.display().to_string();
    let path = if path.starts_with('-') { format!("./{path}") } else { path };
    printable::line(&joined(&[path])).into_owned()
}

impl InitAnswers {
    /// The script.
    fn script(&self, path: &Path) -> String {
        let figures = match self.io_size {
            None => format!(
                "# A request reads or writes a whole file, in calls of at most $iosize bytes.\n\
                 set $iosize={}\n",
                size::in_script(self.file_size.min(WHOLE_IO))
            ),
            Some(io_size) => format!(
                "# A request opens a file and reads or writes $calls times $iosize bytes in it. With random=false it begins at the\n\
                 # start of the file, and goes on from there: docs/scripts.md, \"Choose the place in the file\".\n\
                 set $iosize={}\nset $calls=1\nset $random=true\n",
                size::in_script(io_size)
            ),
        };
        let (read, write) = match self.io_size {
            None => {
                ("readwholefile name=data,fd=1,iosize=$iosize", "writewholefile name=data,fd=1,iosize=$iosize,exact")
            }
            Some(_) => (
                "read name=data,fd=1,iosize=$iosize,random=$random,iters=$calls",
                "write name=data,fd=1,iosize=$iosize,random=$random,wrap=$filesize,iters=$calls",
            ),
        };
        format!(
            include_str!("init.wml.in"),
            name = word(path),
            varied = if self.rate == "0" { "threads=1,2,4,8,16" } else { "rate=25%,50%,75%,100%,125%" },
            total = size::format(self.files * self.file_size),
            files = self.files,
            file_size = size::in_script(self.file_size),
            threads = self.threads,
            rate = self.rate,
            reads = self.reads,
            syncs_writes = self.syncs_writes,
            fsync = u8::from(self.syncs_end),
            figures = figures,
            read = read,
            write = write,
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{InitAnswers, QUESTIONS};
    use crate::cli::args;
    use crate::session::{Session, Settings, SilentFront};
    use crate::syntax;
    use std::path::Path;
    use std::sync::Arc;

    /// The answers to the questions in their order. The error is that of the first that is none.
    fn answered(texts: [&str; 5]) -> Result<InitAnswers, String> {
        let mut answers = InitAnswers::default();
        for (question, text) in QUESTIONS.iter().zip(texts) {
            (question.take)(&mut answers, text)?;
        }
        Ok(answers)
    }

    /// What `wmlrun check` finds in a script, and how it formats it.
    fn checked(text: &str) -> (Vec<String>, String) {
        let mut session = Session::new(Settings::default(), Arc::default());
        let file = session.map.add("x.wml", text);
        let (_, found, applied) = session.check_script(file, &mut SilentFront::default());
        assert!(applied.is_ok());
        (found.iter().map(|d| d.message.clone()).collect(), syntax::format(&session.map, file).unwrap())
    }

    #[test]
    fn every_script_is_free_of_warnings_and_formatted() {
        let mut scripts = 0;
        for files in ["1 x 1", "1000 x 64k", "10k x 10m", "3x1g"] {
            for load in ["1", "4", "10000", "0.5/s", "5./s", ".5/s", "200/s", "1000000/s"] {
                for reads in ["0", "70", "100%"] {
                    for (sync, io) in [("never", "whole"), ("write", "1"), ("end", "8k"), ("write", "64k")] {
                        let given = [files, load, reads, sync, io];
                        let Ok(answers) = answered(given) else {
                            assert!(files == "1 x 1" && io != "whole", "{given:?}");
                            continue;
                        };
                        let text = answers.script(Path::new("x.wml"));
                        assert_eq!(checked(&text), (Vec::new(), text.clone()), "{given:?}\n{text}");
                        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
                        scripts += 1;
                    }
                }
            }
        }
        assert!(scripts > 200, "{scripts}");
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (n, wrong, says) in [
            (0, "1000", "such as `1000 x 64k`"),
            (0, "0 x 64k", "the number of files is from 1 to"),
            (0, "10 x 0", "the size of a file is from 1 to"),
            (0, "1m x 2g", "at most 1.0 PiB"),
            (0, "many x 64k", "the number of files is from 1 to 256m, not `many`"),
            (0, "1 x 64q", "the size of a file is from 1 to 1024t, not `64q`"),
            (1, "0", "the number of threads is from 1 to 10000"),
            (1, "-1/s", "such as `200/s`"),
            (1, "1e3/s", "such as `200/s`"),
            (1, "/s", "such as `200/s`"),
            (1, "four", "10000, not `four`"),
            (2, "101", "from 0 to 100"),
            (2, "half", "from 0 to 100"),
            (3, "always", "`never`, `write` or `end`"),
            (4, "128k", "1 to 64k bytes"),
            (4, "0", "1 to 64k bytes"),
            (4, "all", "`whole`, or a size"),
        ] {
            let mut texts = QUESTIONS.map(|question| question.default);
            texts[n] = wrong;
            let said = answered(texts).unwrap_err();
            assert!(said.contains(says), "{wrong}: {said}");
        }
    }

    #[test]
    fn each_question_has_an_option_with_the_same_default() {
        let all = args::full_command();
        let init = all.find_subcommand("init").unwrap();
        for question in &QUESTIONS {
            let option = init.get_arguments().find(|arg| arg.get_long() == Some(question.option)).unwrap();
            let default = format!("[default: {}]", question.default.replace(' ', ""));
            assert!(option.get_help().unwrap().to_string().ends_with(&default), "{}", question.option);
        }
        assert_eq!(init.get_arguments().filter(|arg| arg.get_long().is_some()).count(), QUESTIONS.len());
    }

    /// The name of the file is a comment and part of a command.
    #[test]
    fn a_name_adds_nothing_to_the_script() {
        let answers = answered(QUESTIONS.map(|question| question.default)).unwrap();
        let plain = answers.script(Path::new("x.wml"));
        for (name, shown) in [("a b.wml", "'a b.wml'"), ("a\nrun 5.wml", "\\nrun 5"), ("-x.wml", "wmlrun ./-x.wml")] {
            let text = answers.script(Path::new(name));
            assert!(text.contains(shown), "{text}");
            assert_eq!(text.lines().count(), plain.lines().count(), "{text}");
            assert_eq!(checked(&text).0, Vec::<String>::new());
        }
    }
}
