//! What a host says when a launcher starts a few lines for the shell there.

use super::list::HostList;
use super::starter::Starter;
use super::whole_path;
use crate::os::child::{self, CommandOutput};
use crate::util::printable;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The questions, as lines for the shell: `$0` is the program, `$1` the directory, which may be empty. Each line of the
/// answer begins with a word that says what it is.
const QUESTIONS: &str = r#"echo "clock $(date +%s.%N)"
"$0" --version 2>&1 | sed 's/^/build /'
[ -n "$1" ] || exit 0
if [ -d "$1" ] && [ ! -w "$1" ]; then echo "refused $1 is not writable"; fi
if [ -d "$1" ]; then stat -L -c 'place %i %Z' -- "$1" && stat -f -c 'type %T' -- "$1"; else LC_ALL=C ls -d -- "$1/"; fi 2>&1 |
  sed '/^place /b; /^type /b; s/^/refused /'
"#;

/// The most hosts that are asked at a time.
const AT_A_TIME: usize = 16;

/// The time for the answer of a host. A host that is switched off makes ssh wait for longer.
const TIME: Duration = Duration::from_secs(30);

/// The most characters of what a host says.
const MAX_WORDS: usize = 200;

/// The answer of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HostAnswer {
    pub(super) host: String,
    /// By how many seconds its clock is behind or ahead of this one at least; `None` if no process could be started there.
    pub(super) clock_apart: Option<f64>,
    /// How many seconds it took to answer, by which its clock may differ further.
    pub(super) took: f64,
    /// The version of its program, or its shell's words about it.
    pub(super) build: String,
    /// What distinguishes its directory from those of other hosts. `None` if it can't be used.
    pub(super) place: Option<String>,
    /// The type of the directory's file system.
    pub(super) file_system: String,
    /// Why its directory can't be used; and what the launcher said, if it could start nothing.
    pub(super) words: String,
}

/// Asks each host, over the launcher. `is_over`: the user has ended that.
pub(super) fn ask(
    starter: &Starter,
    hosts: &HostList,
    dir: Option<&Path>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Vec<HostAnswer> {
    let alone = hosts.each_alone();
    let whole = dir.and_then(whole_path);
    let dir = whole.as_deref().or(dir);
    let of = |host: &HostList| {
        let mut command = starter.command(host);
        command.args(["sh", "-c", QUESTIONS]).arg(&starter.program).arg(dir.unwrap_or(Path::new("")));
        let began = now();
        let said = output(command, is_over);
        let name = host.names().next().unwrap_or_default();
        HostAnswer { host: name.to_owned(), ..answer_in(&said, (began, now())) }
    };
    let answers = alone.chunks(AT_A_TIME).flat_map(|some| {
        std::thread::scope(|scope| {
            let asked: Vec<_> = some.iter().map(|host| scope.spawn(move || of(host))).collect();
            asked.into_iter().map(|answer| answer.join().unwrap_or_default()).collect::<Vec<_>>()
        })
    });
    answers.collect()
}

/// What a command says within the time for an answer. It can't ask for a password.
pub(super) fn output(mut command: std::process::Command, is_over: &dyn Fn() -> bool) -> Result<CommandOutput, String> {
    let until = Instant::now() + TIME;
    command.env("SSH_ASKPASS_REQUIRE", "force").env("SSH_ASKPASS", "false");
    let program = command.get_program().display().to_string();
    match child::outputs(command, &|| is_over() || Instant::now() >= until) {
        Ok(Some(output)) => Ok(output),
        Ok(None) => Err(format!("no answer within {} s", TIME.as_secs())),
        Err(e) => Err(format!("can't start `{program}`: {e}")),
    }
}

/// The time in seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The answer in what the launcher and its process said. `asked`: when it was asked and when it had answered.
fn answer_in(said: &Result<CommandOutput, String>, asked: (f64, f64)) -> HostAnswer {
    let output = match said {
        Ok(output) => output,
        Err(why) => return HostAnswer { words: why.clone(), ..HostAnswer::default() },
    };
    let lines = |word: &str| {
        let line = |line: &str| line.strip_prefix(word)?.strip_prefix(' ').map(|line| line.trim().to_owned());
        output.stdout.lines().filter_map(line).collect::<Vec<_>>()
    };
    let all = |word: &str| short(&lines(word).join("; "));
    let clock = lines("clock").first().and_then(|text| text.parse::<f64>().ok());
    let refused = all("refused");
    HostAnswer {
        host: String::new(),
        clock_apart: clock.map(|clock| (asked.0 - clock).max(0.0) - (clock - asked.1).max(0.0)),
        took: asked.1 - asked.0,
        build: all("build"),
        place: lines("place").into_iter().next().filter(|_| refused.is_empty()),
        file_system: all("type"),
        words: if clock.is_none() { own_words(output) } else { refused },
    }
}

/// What a launcher that could start nothing said: before the first of its frames, where ssh's words are, or else in it.
pub(super) fn own_words(output: &CommandOutput) -> String {
    let is_frame = |line: &&str| line.chars().all(|c| c == '-');
    let lines: Vec<&str> = output.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let part = lines.split(is_frame).find(|part| !part.is_empty());
    part.map_or_else(|| output.status.to_string(), |part| short(&part.join(" ")))
}

fn short(text: &str) -> String {
    printable::short(text, MAX_WORDS).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    /// The answer of this host, as a launcher would get it.
    fn asked(program: &str, dir: &str) -> HostAnswer {
        let mut command = Command::new("sh");
        command.args(["-c", QUESTIONS, program, dir]);
        let began = now();
        let said = output(command, &|| false);
        answer_in(&said, (began, now()))
    }

    #[test]
    fn a_host_answers_in_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().to_str().unwrap();
        let program = format!("{dir}/wmlrun");
        std::fs::write(&program, "#!/bin/sh\necho wmlrun 1; echo build 2\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let answer = asked(&program, dir);
        assert_eq!((answer.build.as_str(), answer.clock_apart), ("wmlrun 1; build 2", Some(0.0)), "{answer:?}");
        assert!(answer.place.is_some() && !answer.file_system.is_empty() && answer.words.is_empty(), "{answer:?}");
        assert_eq!(asked(&program, dir).place, answer.place);
        let none = asked("/nonexistent/wmlrun-mpi", "/nonexistent/dir");
        assert!(none.build.contains("/nonexistent/wmlrun-mpi") && none.build.contains("not found"), "{none:?}");
        assert!(none.place.is_none() && none.words.contains("/nonexistent/dir"), "{none:?}");
        assert_eq!(asked(&program, "").words, "");
    }

    #[test]
    fn a_launcher_that_starts_nothing_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec >&2; echo ssh: no route; echo ----; echo ORTE was unable; exit 3"]);
        let answer = answer_in(&output(command, &|| false), (0.0, 1.0));
        assert_eq!((answer.clock_apart, answer.words.as_str()), (None, "ssh: no route"));
        assert_eq!(answer_in(&Err("no answer".to_owned()), (0.0, 1.0)).words, "no answer");
    }

    #[test]
    fn a_clock_is_apart_if_it_is_outside_of_the_time_of_the_question() {
        let of = |clock: &str| {
            let mut command = Command::new("echo");
            command.arg(format!("clock {clock}"));
            answer_in(&output(command, &|| false), (100.0, 102.0)).clock_apart.unwrap()
        };
        assert_eq!((of("101.5"), of("90"), of("110")), (0.0, 10.0, -8.0));
    }
}
