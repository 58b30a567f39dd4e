//! Options of fio, vdbench, Filebench, elbencho, hyperfine, k6 and wrk, and what to write here instead.
//!
//! To add one: a row of the table. The first variable of a row that the script at hand has is what is set.

use super::completion::variables_of;
use crate::session::library;

/// Options of other tools with one answer.
struct NeighbourOption {
    /// The options, without hyphens.
    names: &'static [&'static str],
    /// Variables that a script may have for it.
    variables: &'static [&'static str],
    /// The option of ours that takes the same value; empty if there is none.
    option: &'static str,
    /// What to do if the script has none of the variables, or there is no such option.
    otherwise: &'static str,
}

const fn option(names: &'static [&'static str], option: &'static str) -> NeighbourOption {
    NeighbourOption { names, variables: &[], option, otherwise: "" }
}

const fn variable(
    names: &'static [&'static str],
    variables: &'static [&'static str],
    otherwise: &'static str,
) -> NeighbourOption {
    NeighbourOption { names, variables, option: "", otherwise }
}

const fn text(names: &'static [&'static str], otherwise: &'static str) -> NeighbourOption {
    NeighbourOption { names, variables: &[], option: "", otherwise }
}

const TABLE: &[NeighbourOption] = &[
    option(&["duration", "time", "timelimit", "elapsed", "d"], "--runtime"),
    option(&["ramp_time", "ramp-time"], "--warmup"),
    option(&["directory", "anchor", "path"], "--dir"),
    option(&["randseed", "random-seed"], "--seed"),
    option(&["status-interval"], "--interval"),
    option(&["output-format"], "--format"),
    option(&["export-json", "summary-export", "jsonfile"], "--json"),
    variable(
        &["threads", "t", "numjobs", "jobs", "vus", "u", "connections", "c", "concurrency"],
        &["nthreads", "threads", "nshadows", "nprocesses", "nprocs", "ninstances"],
        "the script says how many: `thread name=…,instances=N`, best with a variable for N, which `--set` changes",
    ),
    variable(
        &["bs", "blocksize", "b", "xfersize", "iosize"],
        &["iosize", "readiosize", "meaniosize"],
        "the script says how much a flowop transfers: `iosize=`, best with a variable, which `--set` changes",
    ),
    variable(
        &["size", "s", "filesize", "file-size"],
        &["filesize", "size"],
        "the script says how large files are: `size=` of the file set, best with a variable, which `--set` changes",
    ),
    variable(
        &["nrfiles", "files", "n"],
        &["nfiles", "entries"],
        "the script says how many files there are: `entries=` of the file set, best with a variable",
    ),
    variable(
        &["direct", "odirect", "directio"],
        &["directio"],
        "write `directio` into the flowop that opens the file, or take a personality such as `singlestreamreaddirect`",
    ),
    variable(
        &["iodepth", "queue-depth", "qd"],
        &["iodepth"],
        "`iodepth=` is an attribute of the flowops `aioread` and `aiowrite`",
    ),
    variable(
        &["rate_iops", "rate", "rps", "iorate", "fwdrate", "arrival-rate"],
        &["rate", "totalrate", "load", "eventrate"],
        "`rate=` of a thread, or `totalrate=` of all threads of a definition, starts so many requests a second",
    ),
    text(
        &["rw", "readwrite", "rwmixread", "rwmixpct", "rdpct"],
        "a script says what is done: see `wmlrun list streams`, such as `randomread` and `randomrw`",
    ),
    text(&["ioengine"], "`--engine` selects the engine: `wmlrun list engines`; flowops say which calls are made"),
    text(
        &["fsync", "fdatasync"],
        "put a flowop `fsync` or `fdatasync` into the script, or `fsyncevery=` into its `write`",
    ),
    text(&["time_based", "time-based"], "omit it: a run ends after `--runtime`, unless its script ends earlier"),
    text(&["group_reporting", "thread"], "omit it: the threads of a definition are reported together"),
    text(&["invalidate", "dropcache", "drop-caches"], "`--cold` evicts the files before each run"),
    text(&["name"], "`--label` names a result; a script has its own name"),
    text(&["filename"], "`--dir` chooses the directory; the script names the files"),
    text(
        &["loops", "iterations", "m", "min-runs", "max-runs"],
        "`wmlrun repeat SCRIPT` repeats a run, `--runs N` times",
    ),
    text(&["runs", "r"], "`wmlrun repeat SCRIPT --runs N` repeats a run"),
    text(&["prepare", "setup"], "`--before COMMAND` of an experiment executes a command before each run"),
    text(&["cleanup", "conclude"], "`--after COMMAND` of an experiment executes a command after each run"),
    text(&["client", "server", "service"], "`--hosts a:4,b:4` runs on several hosts: docs/hosts.md"),
    text(&["stages", "stage"], "phases of a script (`phase=`, `for=`), or `wmlrun sweep --vary`, change the load"),
    text(&["verify", "validate"], "wmlrun does not verify data"),
    text(&["export-markdown", "export-csv"], "`--format markdown` and `--format csv` print these"),
    text(&["parse-only", "simulate"], "`wmlrun check SCRIPT` and `wmlrun plan SCRIPT` run nothing"),
    text(&["thinktime", "think-time"], "a flowop `delay` is a pause between operations"),
    text(&["latency"], "the report has percentiles of every flowop; `-v` shows all of them"),
    text(
        &["write_lat_log", "write_iops_log", "csvfile"],
        "`--json` has each interval (`--interval`); `--live jsonl` writes them during the run",
    ),
];

/// What to write instead of an unexpected word of the command line, if it is an option of another tool. `words`: those of
/// the command line.
pub(super) fn instead_of(unknown: &str, words: &[&str]) -> Option<String> {
    let (name, own) = unknown.split_once('=').map_or((unknown, None), |(name, value)| (name, Some(value)));
    let bare = name.trim_start_matches('-');
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    // `-t4` is `-t 4`.
    let letter = bare.get(..1).filter(|_| bare.len() > 1 && name.starts_with('-') && !name.starts_with("--"));
    let (bare, own) = match letter {
        Some(letter) if digits(&bare[1..]) => (letter, Some(&bare[1..])),
        _ => (bare, own),
    };
    // A letter without a hyphen is no option.
    let row = row(bare).filter(|_| bare.len() > 1 || name.starts_with('-'))?;
    if !name.starts_with('-') && own.is_none() {
        return None;
    }
    let of_scripts = || words.iter().filter_map(|word| library::find(word, None).ok());
    let has: Vec<String> = of_scripts().flat_map(|script| variables_of(&script.name, &script.text)).collect();
    // What is no option may be a variable of the script.
    if !name.starts_with('-') && has.iter().any(|known| known == bare) {
        return None;
    }
    let at = words.iter().position(|word| *word == unknown || word.split('=').next() == Some(unknown));
    let with_sign = at.and_then(|at| words[at].split_once('=').map(|(_, value)| value));
    let next = at.and_then(|at| words.get(at + 1)).filter(|next| next.starts_with(|c: char| c.is_ascii_digit()));
    let value = own.or(with_sign).or(next.copied());
    Some(advice(row, value, &has))
}

/// What a word of another tool is here, for `wmlrun explain`.
pub(super) fn about(word: &str) -> Option<String> {
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    let row = row(name).filter(|_| name.len() > 1)?;
    Some(format!("{word} is a word of other tools; here: {}", advice(row, None, &[])))
}

fn row(name: &str) -> Option<&'static NeighbourOption> {
    TABLE.iter().find(|row| row.names.contains(&name))
}

fn advice(row: &NeighbourOption, value: Option<&str>, has: &[String]) -> String {
    if !row.option.is_empty() {
        return format!("write {} {}", row.option, value.unwrap_or("VALUE"));
    }
    match row.variables.iter().find(|name| has.iter().any(|known| known == *name)) {
        // A switch has no value of its own.
        Some(name) => {
            format!("write --set {name}={}", value.unwrap_or(if *name == "directio" { "1" } else { "VALUE" }))
        }
        None => row.otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLE, instead_of};
    use std::collections::BTreeSet;

    #[test]
    fn an_option_has_one_answer() {
        let mut seen = BTreeSet::new();
        for name in TABLE.iter().flat_map(|row| row.names) {
            assert!(seen.insert(name), "{name} stands twice");
        }
        assert!(TABLE.iter().all(|row| !row.option.is_empty() || !row.otherwise.is_empty()));
    }

    #[test]
    fn a_value_follows_in_each_form() {
        for (words, unknown) in [
            (&["varmail", "--threads", "4"][..], "--threads"),
            (&["varmail", "--threads=4"], "--threads"),
            (&["varmail", "-t4"], "-t4"),
            (&["varmail", "-t", "4"], "-t"),
            (&["varmail", "threads=4"], "threads=4"),
        ] {
            assert_eq!(instead_of(unknown, words).as_deref(), Some("write --set nthreads=4"), "{words:?}");
        }
        assert_eq!(instead_of("nthreads=4", &["varmail", "nthreads=4"]), None);
        assert_eq!(instead_of("--speed", &["varmail", "--speed"]), None);
    }
}
