//! Tests that the examples in the tables of the language work: each is checked, and run on the null engine and on a
//! file system.

use crate::support::{self, Outcome};
use wml::flowop;
use wml::model::commands;
use wml::session::Status;
use wml::spec::Flowop;

/// Flowops that count no operation: a message.
const COUNT_NOTHING: &[&str] = &["print"];

fn flowops() -> impl Iterator<Item = &'static Flowop> {
    flowop::entries().map(|entry| &entry.spec)
}

/// The longest that a use may take, in milliseconds: nothing is measured, so that it never matters how fast it is.
const PATIENCE: u64 = 60_000;

/// A script around a use of a flowop, with the file sets that the uses speak of; it ends after a loop or two.
fn script(example: &str) -> String {
    format!(
        "# dialect: fsl\n\
         set mode quit firstdone\n\
         eventgen rate=1000000\n\
         define fileset name=data,path=$dir,entries=20,dirwidth=5,size=64k,prealloc\n\
         define fileset name=spare,path=$dir,entries=20,dirwidth=5,size=64k,prealloc=50\n\
         define fileset name=leaves,path=$dir,leafdirs=20,dirwidth=5,prealloc=50\n\
         define fileset name=links,path=$dir,entries=20,dirwidth=5\n\
         define file name=big,path=$dir,size=1m,prealloc\n\
         define process name=p {{\n  thread name=t {{\n{example}\n\
         flowop finishoncount name=end,value=2\n  }}\n}}\n"
    )
}

fn problem(flowop: &Flowop, outcome: &Outcome) -> Option<String> {
    if outcome.status != Status::Done {
        return Some(format!("{}: {:?}\n{}", flowop.name, outcome.status, outcome.said));
    }
    let run = outcome.run();
    if run.ended_by != "count reached" && !COUNT_NOTHING.contains(&flowop.name) {
        return Some(format!("{}: ended by {}", flowop.name, run.ended_by));
    }
    let errors = run.flowops.iter().any(|f| !f.errors.is_empty());
    let silent = run
        .flowops
        .iter()
        .filter(|f| f.ops == 0 && f.kind == flowop.name && f.name != "end" && !COUNT_NOTHING.contains(&flowop.name))
        .map(|f| f.name.clone())
        .next();
    if errors || run.failure.is_some() {
        return Some(format!("{}: {:?}", flowop.name, run.failure));
    }
    silent.map(|name| format!("{}: `{name}` of its example did nothing", flowop.name))
}

#[test]
fn every_flowop_s_example_runs_without_a_file_system() {
    let found: Vec<String> = flowops()
        .filter_map(|f| problem(f, &support::run(f.name, &script(f.example), support::null(PATIENCE))))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_flowop_s_example_runs_on_a_file_system() {
    let mut found = Vec::new();
    for flowop in flowops() {
        let dir = tempfile::tempdir().unwrap();
        let outcome = support::run(flowop.name, &script(flowop.example), support::real(PATIENCE, dir.path()));
        // Extended attributes are the file system's choice.
        let unsupported = outcome.document.runs.last().and_then(|run| run.failure.as_ref()?.errno.clone());
        if flowop.name.contains("xattr") && unsupported.as_deref() == Some("EOPNOTSUPP") {
            continue;
        }
        found.extend(problem(flowop, &outcome));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_flowop_is_in_its_own_example() {
    let missing: Vec<&str> =
        flowops().filter(|f| !f.example.contains(&format!("flowop {} name=", f.name))).map(|f| f.name).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_command_s_example_is_accepted() {
    let mut found = Vec::new();
    for command in commands::specs() {
        // The words that an example may lean on.
        let text = format!("set $nfiles=10\nset $n=1\nset $r=1\nset $VAR=1\n{}\n", command.example);
        let mut map = wml::source::SourceMap::new();
        let file = map.add(command.name, &text);
        let known = wml::model::Known { variables: vec!["dir".to_owned()], ..Default::default() };
        let (_, problems) = wml::model::check(&map, file, &wml::flowop::spec_table(), None, &known);
        if wml::diag::has_errors(&problems) {
            found.push(wml::diag::render(&map, &problems, wml::diag::Style::Plain));
        }
        if !command.example.starts_with(command.name) {
            found.push(format!("the example of `{}` is of something else", command.name));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_distribution_s_example_can_be_drawn_from() {
    let mut found = Vec::new();
    for distribution in wml::random::DISTRIBUTIONS {
        let name = distribution.example.split_once('$').unwrap().1;
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let text = format!(
            "{}\ndefine process name=p {{ thread name=t {{ flowop testrandvar name=draw,value=${name}\n\
             flowop finishoncount name=end,value=100,target=draw }} }}\n",
            distribution.example
        );
        let outcome = support::run(distribution.name, &text, support::null(PATIENCE));
        if outcome.status != Status::Done || outcome.run().flowops[0].ops == 0 {
            found.push(format!("{}: {}", distribution.name, outcome.said));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
