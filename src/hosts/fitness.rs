//! What several hosts lack for a run together: `wmlrun doctor --hosts`.

use super::answer::{HostAnswer, ask};
use super::list::HostList;
use super::starter::Starter;
use crate::import::shortened;
use crate::measure::Fitness;
use crate::util::count::{count, fixed};
use std::path::Path;

/// The seconds by which clocks may differ: a start on each host takes about so long.
const CLOCK_TOLERANCE: f64 = 2.0;

/// Asks each host. `is_over`: the user has ended that. Returns each check's name with what it has found.
pub(crate) fn examine_hosts(
    hosts: &HostList,
    dir: Option<&Path>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Vec<(&'static str, Fitness)> {
    let Ok(starter) = Starter::find_launcher() else {
        let text = "no `mpirun` in PATH".to_owned();
        return vec![("launcher", Fitness::Unfit(text, "install the package wmlrun-mpi"))];
    };
    let answers = ask(&starter, hosts, dir, is_over);
    let launcher = Fitness::Fit(starter.launcher.display().to_string());
    [("launcher", launcher)].into_iter().chain(findings(&answers, dir.is_some())).collect()
}

/// What the answers say, check by check. A host that can't be reached counts in the first one only.
fn findings(answers: &[HostAnswer], has_dir: bool) -> Vec<(&'static str, Fitness)> {
    let reached: Vec<&HostAnswer> = answers.iter().filter(|answer| answer.clock_apart.is_some()).collect();
    let all: Vec<&HostAnswer> = answers.iter().collect();
    let login = named(&all, |answer| answer.clock_apart.is_none().then_some(answer.words.as_str()));
    let mut found = vec![(
        "login",
        login.map_or_else(
            || Fitness::Fit(count(answers.len() as u64, "host")),
            |text| Fitness::Unfit(text, "`ssh HOST true` must work there without a question"),
        ),
    )];
    if reached.is_empty() {
        return found;
    }
    found.push(("build", build(&reached)));
    if has_dir {
        let refused = named(&reached, |answer| answer.place.is_none().then_some(answer.words.as_str()));
        found.push(match refused {
            None => ("directory", directory(&reached)),
            Some(text) => ("directory", Fitness::Unfit(text, "make it, or mount its file system")),
        });
    }
    let apart = |answer: &HostAnswer| answer.clock_apart.unwrap_or_default().abs();
    let worst = reached.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)));
    found.push(match worst {
        Some(worst) if apart(worst) > CLOCK_TOLERANCE => {
            let text = format!("{}: {} s apart", worst.host, fixed(apart(worst), 0));
            ("clock", Fitness::Unfit(text, "set it, so that times of files and results agree"))
        }
        _ if reached.iter().any(|answer| answer.took > CLOCK_TOLERANCE) => {
            let most = reached.iter().map(|answer| answer.took).fold(0.0, f64::max);
            ("clock", Fitness::Unknown(format!("a host took {} s to answer", fixed(most, 0))))
        }
        _ => ("clock", Fitness::Fit(format!("less than {} s apart", fixed(CLOCK_TOLERANCE, 0)))),
    });
    found
}

/// The first host of which `of` says something, with that, and the names of the others. `None` if there is none.
fn named<'a>(answers: &[&'a HostAnswer], of: impl Fn(&'a HostAnswer) -> Option<&'a str>) -> Option<String> {
    /// The most hosts that are named.
    const NAMED: usize = 3;
    let mut all = answers.iter().filter_map(|answer| Some((&answer.host, of(answer)?)));
    let (host, words) = all.next()?;
    let others: Vec<&str> = all.map(|(host, _)| host.as_str()).collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; also {}{more}", others[..others.len().min(NAMED)].join(", ")),
    };
    Some(format!("{host}: {words}{others}"))
}

/// Whether all hosts have the build that most of them have.
fn build(answers: &[&HostAnswer]) -> Fitness {
    let has_same = |answer: &HostAnswer| answers.iter().filter(|other| other.build == answer.build).count();
    let is_wmlrun = |answer: &&&HostAnswer| answer.build.starts_with("wmlrun ");
    // Of several, that of the first host.
    let Some(usual) = answers.iter().rev().filter(is_wmlrun).max_by_key(|answer| has_same(answer)) else {
        let text = named(answers, |answer| Some(&answer.build)).unwrap_or_default();
        return Fitness::Unfit(text, "install the package wmlrun-mpi");
    };
    match named(answers, |answer| (answer.build != usual.build).then_some(answer.build.as_str())) {
        None => Fitness::Fit(usual.build.clone()),
        Some(text) => Fitness::Unfit(format!("{text}; {} has {}", usual.host, usual.build), "install the same package"),
    }
}

/// Says whether the hosts have one directory, or each its own.
fn directory(answers: &[&HostAnswer]) -> Fitness {
    let Some(first) = answers.first() else { return Fitness::Unknown("no host".to_owned()) };
    let kind = &first.file_system;
    if answers.len() == 1 {
        return Fitness::Fit(kind.clone());
    }
    if answers.iter().any(|answer| answer.file_system != *kind) {
        let types: Vec<String> = answers.iter().map(|of| format!("{} on {}", of.file_system, of.host)).collect();
        return Fitness::Unfit(shortened(&types), "mount the same kind of file system on every host");
    }
    let is_one = answers.iter().all(|answer| answer.place == first.place);
    Fitness::Fit(match is_one {
        true => format!("{kind}, the same on all hosts: `--share all`, or `path=\"$dir/$host\"`"),
        false => format!("{kind}, not the same on all hosts: not for `--share all`"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answer(host: &str) -> HostAnswer {
        HostAnswer {
            host: host.to_owned(),
            clock_apart: Some(0.0),
            build: "wmlrun 0.2.0; build 1".to_owned(),
            place: Some("7 2026".to_owned()),
            file_system: "nfs".to_owned(),
            words: String::new(),
            took: 0.5,
        }
    }

    /// What is wrong, by the name of the check.
    fn unfit(answers: &[HostAnswer]) -> Vec<(&'static str, String)> {
        let text = |fitness| if let Fitness::Unfit(text, _) = fitness { Some(text) } else { None };
        findings(answers, true).into_iter().filter_map(|(name, found)| Some((name, text(found)?))).collect()
    }

    #[test]
    fn equal_hosts_are_fit() {
        let hosts = [answer("a"), answer("b")];
        assert_eq!(unfit(&hosts), []);
        let text = format!("{:?}", findings(&hosts, true));
        assert!(text.contains("nfs, the same on all hosts"), "{text}");
        let other = HostAnswer { place: Some("8 2026".to_owned()), ..answer("b") };
        let text = format!("{:?}", findings(&[answer("a"), other], true));
        assert!(text.contains("not for `--share all`"), "{text}");
        assert_eq!(findings(&hosts, false).len(), 3);
        let bare = HostAnswer { file_system: "ext2/ext3".to_owned(), ..answer("b") };
        assert_eq!(unfit(&[answer("a"), bare]), [("directory", "nfs on a, ext2/ext3 on b".to_owned())]);
        let slow = HostAnswer { took: 9.0, ..answer("b") };
        let text = format!("{:?}", findings(&[answer("a"), slow], true));
        assert!(text.contains("a host took 9 s to answer"), "{text}");
    }

    #[test]
    fn what_is_missing_is_named_with_its_host() {
        let off = HostAnswer { clock_apart: None, words: "ssh: no route".to_owned(), ..answer("off") };
        let old = HostAnswer { build: "wmlrun 0.1.0".to_owned(), ..answer("old") };
        let late = HostAnswer { clock_apart: Some(-40.0), ..answer("late") };
        let bare = HostAnswer { place: None, words: "ls: /d: no".to_owned(), ..answer("bare") };
        let found = unfit(&[answer("a"), off, old, late, bare.clone()]);
        assert_eq!(found[0], ("login", "off: ssh: no route".to_owned()));
        assert_eq!(found[1].0, "build");
        assert!(found[1].1.starts_with("old: wmlrun 0.1.0; "), "{found:?}");
        assert_eq!(found[2], ("directory", "bare: ls: /d: no".to_owned()));
        assert_eq!(found[3], ("clock", "late: 40 s apart".to_owned()));
        let bare: Vec<HostAnswer> = ["b", "c", "d", "e", "f"]
            .iter()
            .map(|host| HostAnswer { host: (*host).to_owned(), ..bare.clone() })
            .collect();
        assert_eq!(unfit(&bare)[0].1, "b: ls: /d: no; also c, d, e and 1 more");
        let none: Vec<HostAnswer> =
            bare.into_iter().map(|bare| HostAnswer { build: "sh: not found".to_owned(), ..bare }).collect();
        assert!(unfit(&none)[0].1.starts_with("b: sh: not found; also"), "{:?}", unfit(&none));
    }
}
