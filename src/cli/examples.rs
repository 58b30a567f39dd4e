//! The examples in the helps of the commands.

use clap::Command;

/// The examples of each command. The empty name is the program without a command.
#[rustfmt::skip]
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["wmlrun varmail --dir /mnt/test --runtime 60",
        "wmlrun mail.wml --set nfiles=10k --json result.json --label 'before the upgrade'",
        "wmlrun randomread --append history.csv --live jsonl:/run/user/1000/live"]),
    ("run", &["wmlrun run varmail --dir /mnt/test --cold", "wmlrun run mail.wml --require-fs xfs --json -"]),
    ("repl", &["wmlrun repl", "wmlrun repl mail.wml --dir /mnt/test"]),
    ("init", &["wmlrun init", "wmlrun init mail.wml --files 10000x16k --load 200/s --reads 60 --sync end --io whole",
        "wmlrun init table.wml --files 1x1g --sync write --io 8k"]),
    ("check", &["wmlrun check mail.wml", "wmlrun check *.wml --set nfiles=1m", "wmlrun check mail.wml --dump ast"]),
    ("fmt", &["wmlrun fmt mail.wml", "wmlrun fmt -w *.wml", "wmlrun fmt --check *.wml"]),
    ("plan", &["wmlrun plan varmail --set nfiles=1m", "wmlrun plan varmail --list"]),
    ("batch", &["wmlrun batch nightly.prof --dir /mnt/test --results results"]),
    ("repeat", &["wmlrun repeat varmail --dir /mnt/test --runtime 60",
        "wmlrun repeat varmail --runs 10 --metric ops,latency.p99 --format csv",
        "wmlrun repeat --resume wmlrun-results/varmail-20261124T093000Z",
        "wmlrun repeat --floor randomread --dir /mnt/test --blocks 8 --runtime 30"]),
    ("ab", &["wmlrun ab varmail --a '--dir /mnt/ext4' --b '--dir /mnt/xfs' --runtime 30",
        "wmlrun ab varmail --dir /mnt/test --b '--set nthreads=32' --until-clear --expect better"]),
    ("compare", &["wmlrun compare old.json new.json --tolerance 5%",
        "wmlrun compare wmlrun-results/old wmlrun-results/new --metric latency.p99 --format markdown",
        "wmlrun compare old.txt:2 new.txt:2", "wmlrun compare --tests old new --metric latency.p99",
        "wmlrun compare --curve curve.txt"]),
    ("sweep", &["wmlrun sweep randomread --vary nthreads=1,2,4,8 --dir /mnt/test",
        "wmlrun sweep randomread --vary nthreads=1,2,4,8 --repeats 5 --format csv"]),
    ("experiment", &["wmlrun experiment quick --dir /mnt/test", "wmlrun experiment study.toml --plan",
        "wmlrun experiment study.toml --allow-system --results study"]),
    ("report", &["wmlrun report result.json -o page.html",
        "wmlrun report wmlrun-results/varmail-20261124T093000Z -o page.html",
        "wmlrun report ext4.json xfs.json > page.html", "wmlrun report result.json --format hgrm -o result.hgrm"]),
    ("history", &["wmlrun history add nights results", "wmlrun history check nights"]),
    ("history add", &["wmlrun history add nights results-tonight", "wmlrun history add nights history.csv --place /mnt/vol1"]),
    ("history check", &["wmlrun history check nights", "wmlrun history check nights --metric latency.p99 --format markdown",
        "wmlrun history check nights --confirm 'wmlrun experiment nightly.toml --only \"$WMLRUN_TEST\" --results \"$WMLRUN_RESULTS\"'"]),
    ("history bisect", &["wmlrun history bisect nights varmail:vol1"]),
    ("history plot", &["wmlrun history plot nights -o nights.html", "wmlrun history plot nights varmail:vol1 -o varmail.svg"]),
    ("history export", &["wmlrun history export nights > nights.csv",
        "wmlrun history export nights --format openmetrics > nights.om"]),
    ("history show", &["wmlrun history show nights", "wmlrun history show nights varmail:vol1"]),
    ("history accept", &["wmlrun history accept nights varmail:vol1 --since 2026-11-26 --why 'fsync is real now'"]),
    ("history forget", &["wmlrun history forget nights varmail:vol1", "wmlrun history forget nights --night 2026-11-26",
        "wmlrun history forget nights --keep 400"]),
    ("record", &["wmlrun record --under db -- sqlite3 db/app.db .dump", "wmlrun record -o day.wtrace --max-size 1g -p 4711"]),
    ("trace", &["wmlrun trace show trace.wtrace", "wmlrun trace import strace strace.txt -o trace.wtrace"]),
    ("trace import", &["wmlrun trace import strace strace.txt --under /srv/db -o db.wtrace"]),
    ("trace show", &["wmlrun trace show trace.wtrace", "wmlrun trace show trace.wtrace --calls"]),
    ("learn", &["wmlrun learn trace.wtrace > app.wml", "wmlrun learn trace.wtrace --incomplete"]),
    ("fidelity", &["wmlrun fidelity app.wml --dir db --before './restore db' -- ./load db/app.db",
        "wmlrun fidelity app.wml --dir db --write --pairs 10 -- ./load db/app.db"]),
    ("replay", &["wmlrun replay trace.wtrace --dir /mnt/test", "wmlrun replay trace.wtrace --dir /mnt/test --speed x10"]),
    ("age", &["wmlrun age /mnt/test --to 47%", "wmlrun age /mnt/test --to 20g --rounds 40 --seed 7 --json aging.json"]),
    ("list", &["wmlrun list", "wmlrun list flowops", "wmlrun list codes"]),
    ("show", &["wmlrun show varmail > mail.wml"]),
    ("doctor", &["wmlrun doctor /mnt/test", "wmlrun doctor --hosts a,b /mnt/shared"]),
    ("explain", &["wmlrun explain E0202"]),
    ("clean", &["wmlrun clean /mnt/test", "wmlrun clean --logs wmlrun-results/varmail-20261124T093000Z"]),
    ("setup", &["wmlrun setup man ~/.cargo/share/man/man1", "source <(wmlrun setup completions zsh)",
        "wmlrun setup editor vim > ~/.vim/syntax/wml.vim"]),
    ("setup completions", &["wmlrun setup completions bash > ~/.local/share/bash-completion/completions/wmlrun",
        "source <(wmlrun setup completions zsh)"]),
    ("setup man", &["wmlrun setup man ~/.cargo/share/man/man1"]),
    ("setup editor", &["wmlrun setup editor vim > ~/.vim/syntax/wml.vim",
        "wmlrun setup editor vscode > syntaxes/wml.tmLanguage.json"]),
    ("setup lsp", &["wmlrun setup lsp"]),
];

/// Adds the examples to the helps of all commands.
pub(super) fn with_examples(program: Command) -> Command {
    let with = |command: Command, name: &str| match EXAMPLES.iter().find(|(of, _)| *of == name) {
        Some((_, lines)) => with_help(command, lines),
        None => command,
    };
    with(program, "").mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        with(command, &name).mut_subcommands(|below| {
            let name = format!("{name} {}", below.get_name());
            with(below, &name)
        })
    })
}

/// Puts examples before the other text at the end of a help.
fn with_help(command: Command, lines: &[&str]) -> Command {
    let more = command.get_after_help().map_or_else(String::new, |more| format!("\n\n{more}"));
    let lines = lines.join("\n  ");
    command.after_help(format!("Examples:\n  {lines}{more}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::EXAMPLES;
    use crate::cli::args;

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let command = args::full_command();
        let names = command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        let without: Vec<&str> = names.filter(|name| EXAMPLES.iter().all(|(other, _)| other != name)).collect();
        assert!(without.is_empty(), "no examples of {without:?}");
        for line in EXAMPLES.iter().flat_map(|(_, lines)| *lines) {
            let line = line.trim_start_matches("source <(").trim_end_matches(')');
            let words = shell_words::split(line.split(" > ").next().unwrap()).unwrap();
            let parsed = args::full_command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
