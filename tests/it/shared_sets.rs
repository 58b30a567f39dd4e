//! Tests file sets that ranks share: the parts of their files, the tree on the disk, errors of single ranks, and
//! removal.
//!
//! The ranks of a test are threads. Each has a current directory of its own, so that one path can be the same directory
//! on all hosts or another one on each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wml::ranks::{Collected, CommonStart, Others, RanksLost, Together};
use wml::result::LostRank;
use wml::runtime::MeetingPlace;
use wml::session::{Settings, Status};
use wml::spec::Sharing;

use crate::mounts::{self, Fs, Mount};
use crate::ranks::ThreadRank;
use crate::support::{self, Outcome};
use crate::tree;

/// Gives this thread a current directory of its own. Threads that it starts share it.
fn enter(dir: &Path) {
    // SAFETY: the call affects only this thread: it no longer shares its current directory with others.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0);
    std::env::set_current_dir(dir).unwrap();
}

/// Something that happens on a rank just before it tells the others the outcome of a step. Returns whether it then no
/// longer reaches them.
type Incident = Arc<dyn Fn(usize) -> bool + Send + Sync>;

/// The step in which all ranks release their sets after a run.
const BARRIER: &str = "barrier";

/// A rank with an incident.
struct IncidentRank {
    rank: Arc<ThreadRank>,
    step: &'static str,
    incident: Incident,
}

impl fmt::Debug for IncidentRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rank.fmt(f)
    }
}

impl MeetingPlace for IncidentRank {}

impl Others for IncidentRank {
    fn rank(&self) -> usize {
        self.rank.rank()
    }

    fn hosts(&self) -> &[String] {
        self.rank.hosts()
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        self.rank.broadcast(message)
    }

    fn gather(&self, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, RanksLost> {
        let is_step = match self.step {
            BARRIER => message == b"\"waits\"",
            step => String::from_utf8_lossy(&message).starts_with(&format!("[\"{step}\"")),
        };
        if is_step && (self.incident)(self.rank()) {
            return Err(RanksLost(vec![LostRank { why: "has ended".to_owned(), ..LostRank::default() }]));
        }
        self.rank.gather(message)
    }

    fn collect(&self, message: Vec<u8>) -> Option<Collected> {
        self.rank.collect(message)
    }

    fn common_start(&self) -> Result<CommonStart, RanksLost> {
        self.rank.common_start()
    }
}

/// A run of a script by several ranks.
struct RankRun<'a> {
    /// The host and the current directory of each rank.
    places: Vec<(&'a str, &'a Path)>,
    share: Sharing,
    change: fn(usize, Settings) -> Settings,
    /// A step and an incident before its end.
    incident: Option<(&'static str, Incident)>,
}

impl<'a> RankRun<'a> {
    /// Ranks on these hosts, all in one directory.
    fn on(hosts: &[&'a str], dir: &'a Path) -> Self {
        let places = hosts.iter().map(|host| (*host, dir)).collect();
        Self { places, share: Sharing::All, change: |_, settings| settings, incident: None }
    }

    /// `n` ranks on one host.
    fn ranks(n: usize, dir: &'a Path) -> Self {
        Self::on(&vec!["h1"; n], dir)
    }

    fn share(self, share: Sharing) -> Self {
        Self { share, ..self }
    }

    fn change(self, change: fn(usize, Settings) -> Settings) -> Self {
        Self { change, ..self }
    }

    fn incident(self, step: &'static str, incident: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        Self { incident: Some((step, Arc::new(incident))), ..self }
    }

    /// Runs a script on each rank, with `$dir` as its current directory.
    fn run(&self, text: &str) -> Vec<Outcome> {
        let hosts: Vec<&str> = self.places.iter().map(|(host, _)| *host).collect();
        std::thread::scope(|scope| {
            let start = |(rank, (_, dir)): (Arc<ThreadRank>, &(&str, &'a Path))| {
                let dir = dir.to_path_buf();
                scope.spawn(move || {
                    enter(&dir);
                    let number = rank.rank;
                    let ranks: Arc<dyn Others> = match self.incident.clone() {
                        Some((step, incident)) => Arc::new(IncidentRank { rank, step, incident }),
                        None => rank,
                    };
                    let settings = Settings {
                        together: Together::with(ranks),
                        share: self.share,
                        runtime: None,
                        ..support::real(0, Path::new("."))
                    };
                    support::run("x.wml", text, (self.change)(number, settings))
                })
            };
            let threads: Vec<_> = ThreadRank::on(&hosts).into_iter().zip(&self.places).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
}

/// The sizes of all files below a directory, without markers, by their paths. A directory has no size.
fn sizes(dir: &Path) -> BTreeMap<PathBuf, Option<u64>> {
    fn enter(at: &Path, base: &Path, all: &mut BTreeMap<PathBuf, Option<u64>>) {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            if entry.file_name() != ".wmlrun" {
                all.insert(path.strip_prefix(base).unwrap().to_owned(), meta.is_file().then_some(meta.len()));
            }
            if meta.is_dir() {
                enter(&path, base, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    enter(dir, dir, &mut all);
    all
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[track_caller]
fn all_done(outcomes: &[Outcome]) {
    for outcome in outcomes {
        assert_eq!(outcome.status, Status::Done, "{}", outcome.said);
    }
}

/// Checks that all ranks have this status, and that rank 0 shows this text.
#[track_caller]
fn all_end(outcomes: &[Outcome], status: Status, text: &str) {
    for outcome in outcomes {
        assert_eq!(outcome.status, status, "{}", outcome.said);
        assert!(outcome.document.runs.is_empty(), "{}", outcome.said);
    }
    assert!(outcomes[0].said.contains(text), "{}", outcomes[0].said);
}

/// The operations of the flowop `x` on all ranks: rank 0 has their sum.
fn operations(outcomes: &[Outcome]) -> u64 {
    outcomes[0].run().flowops.iter().find(|f| f.name == "x").map_or(0, |f| f.ops)
}

/// The numbers of files, directories and bytes of the first set on all ranks.
fn contents(outcomes: &[Outcome]) -> [u64; 3] {
    let set = &outcomes[0].run().filesets[0];
    [set.files, set.directories, set.bytes]
}

/// A set of 47 files of different sizes in several directories, most of which exist, and a thread that reads them.
const READ: &str = "set mode quit alldone
define fileset name=s,path=$dir,entries=47,dirwidth=5,prealloc=80,leafdirs=13,size=randvar(type=uniform,min=0,mean=9k)
define process name=p {
  thread name=t { flowop readwholefile name=x,filesetname=s,iosize=4k flowop finishoncount name=end,value=60 }
}
";

/// A thread that removes all files of a set of 47 files.
const DELETE: &str = "set mode quit alldone
define fileset name=s,path=$dir,entries=47,dirwidth=5,size=1k,prealloc
define process name=p { thread name=t { flowop deletefile name=x,filesetname=s } }
";

#[test]
fn the_parts_of_all_ranks_are_the_tree_of_one_rank() {
    let alone = tempfile::tempdir().unwrap();
    let single = RankRun::ranks(1, alone.path()).run(READ);
    all_done(&single);
    let expected = sizes(alone.path());
    assert!(expected.len() > 40);
    for share in Sharing::ALL {
        for n in 1..=4 {
            let dir = tempfile::tempdir().unwrap();
            let outcomes = RankRun::ranks(n, dir.path()).share(share).run(READ);
            all_done(&outcomes);
            assert_eq!(sizes(dir.path()), expected, "{share:?}, {n} ranks");
            assert_eq!(contents(&outcomes), contents(&single), "{share:?}, {n} ranks");
        }
    }
}

/// A file that two ranks removed would be an error of one of them.
#[test]
fn no_file_belongs_to_two_ranks() {
    for share in Sharing::ALL {
        for n in 1..=4 {
            let dir = tempfile::tempdir().unwrap();
            let outcomes = RankRun::ranks(n, dir.path()).share(share).run(DELETE);
            all_done(&outcomes);
            assert_eq!(operations(&outcomes), 47, "{share:?}, {n} ranks");
            assert!(sizes(dir.path()).values().all(Option::is_none), "{share:?}, {n} ranks");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let create = DELETE.replace("deletefile", "createfile").replace(",prealloc", "");
    let create = create.replace(" } }", " flowop closefile name=close } }");
    let outcomes = RankRun::ranks(3, dir.path()).run(&create);
    all_done(&outcomes);
    let created = sizes(dir.path()).values().filter(|size| size.is_some()).count();
    assert_eq!((operations(&outcomes), created), (47, 47));
}

#[test]
fn no_leaf_directory_belongs_to_two_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let text = DELETE.replace("entries=47", "leafdirs=31").replace("deletefile", "removedir");
    let outcomes = RankRun::ranks(4, dir.path()).run(&text);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes), 31);
}

/// The numbers of the files that each rank has extended, by as many bytes as tell its number.
fn extended(share: Sharing) -> Vec<BTreeSet<u64>> {
    let dir = tempfile::tempdir().unwrap();
    let text = "# dialect: fsl
set mode quit alldone
set $own=$rank * 1k
set $more=$own + 1k
define fileset name=s,path=$dir,entries=9,dirwidth=100,dirgamma=0,size=1k,prealloc
define process name=p {
  thread name=t {
    flowop openfile name=open,filesetname=s
    flowop appendfile name=x,iosize=$more
    flowop closefile name=close
    flowop finishoncount name=end,value=3,target=x
  }
}
";
    all_done(&RankRun::ranks(3, dir.path()).share(share).run(text));
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let found = sizes(dir.path());
    let of_rank = |rank: u64| {
        let own = found.iter().filter(|(_, size)| **size == Some((rank + 2) << 10));
        own.filter_map(|(path, _)| number(path)).collect()
    };
    (0..3).map(of_rank).collect()
}

#[test]
fn neighbours_use_the_files_of_the_next_rank() {
    let parts = [[1, 4, 7], [2, 5, 8], [3, 6, 9]].map(BTreeSet::from);
    assert_eq!(extended(Sharing::All), parts);
    let [first, second, third] = parts;
    assert_eq!(extended(Sharing::Neighbour), [second, third, first]);
}

#[test]
fn each_host_has_a_tree_of_its_own() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let places = vec![("h1", one.path()), ("h2", two.path()), ("h1", one.path()), ("h2", two.path())];
    let ranks = RankRun { places, ..RankRun::ranks(4, one.path()) }.share(Sharing::Host);
    let outcomes = ranks.run(READ);
    all_done(&outcomes);
    assert_eq!(sizes(one.path()), sizes(two.path()));
    let alone = tempfile::tempdir().unwrap();
    all_done(&RankRun::ranks(1, alone.path()).run(READ));
    assert_eq!(sizes(one.path()), sizes(alone.path()));
    // The script has the last word.
    let text = READ.replace("path=$dir", "path=$dir,share=all");
    let help = "name a directory that all hosts have mounted";
    all_end(&ranks.run(&text), Status::Refused, help);
    let outcomes = ranks.change(|_, settings| Settings { clean: true, ..settings }).run(READ);
    all_done(&outcomes);
    assert!(is_empty(one.path()) && is_empty(two.path()));
}

#[test]
fn a_directory_that_a_host_does_not_have_is_named() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let places = vec![("h1", one.path()), ("h1", one.path()), ("h2", two.path())];
    let ranks = RankRun { places, ..RankRun::ranks(3, one.path()) };
    let text = "rank 2 on `h2`: file set `s`: `./s` does not exist on this host";
    all_end(&ranks.run(READ), Status::Refused, text);
    assert!(is_empty(one.path()) && is_empty(two.path()));
    // A tree that is there is not removed either.
    all_done(&RankRun::ranks(2, one.path()).run(READ));
    let before = sizes(one.path());
    all_end(&ranks.run(READ), Status::Refused, text);
    assert_eq!(sizes(one.path()), before);
}

#[test]
fn the_tree_of_another_run_is_not_taken_for_the_shared_one() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    all_done(&RankRun::ranks(1, two.path()).run(READ));
    let before = tree::tree(two.path());
    let places = vec![("h1", one.path()), ("h2", two.path())];
    let ranks = RankRun { places, ..RankRun::ranks(2, one.path()) };
    let text = "rank 1 on `h2`: file set `s`: `./s` is not the directory that another rank prepares";
    all_end(&ranks.run(READ), Status::Refused, text);
    assert_eq!(tree::tree(two.path()), before);
    assert!(is_empty(one.path()));
    fs::remove_file(two.path().join("s/.wmlrun")).unwrap();
    let text = "rank 1 on `h2`: file set `s`: `./s` is not a file set on this host";
    all_end(&ranks.run(READ), Status::Refused, text);
}

/// A directory that both hosts have mounted, with a tree for each host.
#[test]
fn hosts_do_not_prepare_one_directory_twice() {
    let dir = tempfile::tempdir().unwrap();
    let outcomes = RankRun::on(&["h1", "h1", "h2", "h2"], dir.path()).share(Sharing::Host).run(READ);
    all_end(&outcomes, Status::Refused, "in use by another wmlrun process");
    assert!(is_empty(dir.path()));
    let text = READ.replace("path=$dir", "path=\"$dir/$host\"");
    let outcomes = RankRun::on(&["h1", "h1", "h2", "h2"], dir.path()).share(Sharing::Host).run(&text);
    all_done(&outcomes);
    assert_eq!(sizes(&dir.path().join("h1")), sizes(&dir.path().join("h2")));
}

/// Rank 1 finds that a file of its part exists, when the directories are made.
#[test]
fn an_error_of_one_rank_ends_all_and_leaves_no_complete_tree() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("s/00000001/00000002");
    let path = foreign.clone();
    let text = DELETE.replace("dirwidth=5", "dirwidth=100,dirgamma=0");
    let create = move |rank: usize| {
        if rank == 0 {
            fs::write(&path, "x").unwrap();
        }
        false
    };
    let outcomes = RankRun::on(&["h1", "h2", "h2"], dir.path()).incident("the trees", create).run(&text);
    let message = "rank 1 on `h2`: file set `s`: can't create `./s/00000001/00000002`: File exists";
    all_end(&outcomes, Status::Refused, message);
    for outcome in &outcomes[1..] {
        assert!(!outcome.said.contains("can't create"), "rank 0 reports it: {}", outcome.said);
    }
    assert!(foreign.exists());
    let trusting = text.replace("prealloc", "prealloc,trusttree");
    // The tree is repaired, because it is not complete.
    let outcomes = RankRun::ranks(3, dir.path()).run(&trusting);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes), 47);
}

#[test]
fn ranks_that_are_lost_leave_a_tree_that_the_next_run_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let outcomes = RankRun::ranks(3, dir.path()).incident("the files", |_| true).run(READ);
    all_end(&outcomes, Status::Failed, "has ended");
    let marker = fs::read_to_string(dir.path().join("s/.wmlrun")).unwrap();
    assert!(marker.contains("\"populating\"") && !marker.contains("\"ready\""), "{marker}");
    let alone = tempfile::tempdir().unwrap();
    all_done(&RankRun::ranks(1, alone.path()).run(READ));
    all_done(&RankRun::ranks(3, dir.path()).run(READ));
    assert_eq!(sizes(dir.path()), sizes(alone.path()));
}

/// The second run begins with all files again, and the third with those that are there.
#[test]
fn trees_are_restored_between_runs_and_kept_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{DELETE}create files\nrun\nrun\n");
    for share in [Sharing::All, Sharing::Neighbour] {
        let outcomes = RankRun::ranks(3, dir.path()).share(share).run(&text);
        all_done(&outcomes);
        let ops = |outcome: &Outcome| outcome.document.runs.iter().map(|run| run.flowops[0].ops).collect::<Vec<_>>();
        assert_eq!(ops(&outcomes[0]), [47, 47]);
        for ops in outcomes[1..].iter().map(ops) {
            assert!(ops == [16, 16] || ops == [15, 15], "{ops:?}");
        }
    }
    let half = DELETE.replace("entries=47", "entries=47,reuse").replace("filesetname=s", "filesetname=s,iters=5");
    let half = half.replace("iters=5 }", "iters=5 flowop finishoncount name=end,value=1 }");
    let outcomes = RankRun::ranks(3, dir.path()).run(&half);
    all_done(&outcomes);
    let deleted = operations(&outcomes);
    let outcomes = RankRun::ranks(3, dir.path())
        .share(Sharing::Neighbour)
        .change(|_, settings| Settings { as_is: true, ..settings })
        .run(DELETE);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes) + deleted, 47);
    assert!(deleted == 15, "{deleted}");
}

#[test]
fn all_ranks_use_a_set_with_fewer_files_than_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let write = "set mode quit alldone
define file name=f,path=$dir,size=1m,prealloc
define process name=p {
  thread name=t { flowop write name=x,filename=f,iosize=4k,random,iters=20 flowop finishoncount name=end,value=1 }
}
";
    let alone = tempfile::tempdir().unwrap();
    let single = RankRun::ranks(1, alone.path()).run(write);
    all_done(&single);
    for share in [Sharing::All, Sharing::Neighbour] {
        let outcomes = RankRun::ranks(3, dir.path()).share(share).run(write);
        all_done(&outcomes);
        assert_eq!((operations(&outcomes), contents(&outcomes)), (60, contents(&single)));
        let found: Vec<u64> = sizes(dir.path()).into_values().flatten().collect();
        assert_eq!(found, [1 << 20]);
    }
    let dir = tempfile::tempdir().unwrap();
    let text = write.replace("write name=x,filename=f,iosize=4k,random,iters=20", "deletefile name=x,filename=f");
    let outcomes = RankRun::ranks(3, dir.path()).run(&text);
    all_end(&outcomes, Status::Refused, "`deletefile` changes which files of `f` exist, and 3 ranks use each of them");
    assert_eq!(outcomes[0].said.matches("deletefile` changes").count(), 1, "{}", outcomes[0].said);
    assert!(is_empty(dir.path()));
    all_done(&RankRun::ranks(1, dir.path()).run(&text));
}

/// Without `--dir` one rank of each host creates a directory, and removes it.
#[test]
fn a_fresh_directory_is_shared_and_removed() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let places = vec![("h1", one.path()), ("h1", one.path()), ("h2", two.path()), ("h2", two.path())];
    let ranks = RankRun { places, ..RankRun::ranks(4, one.path()) }.share(Sharing::Host);
    let outcomes = ranks.change(|_, settings| Settings { sets: Vec::new(), ..settings }).run(DELETE);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes), 2 * 47);
    assert!(is_empty(one.path()) && is_empty(two.path()));
    let ranks = RankRun::on(&["h1", "h2"], one.path());
    let outcomes = ranks.change(|_, settings| Settings { sets: Vec::new(), ..settings }).run(DELETE);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes), 47);
    assert!(is_empty(one.path()));
}

#[test]
fn a_rank_may_have_a_tree_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let text = DELETE.replace("path=$dir", "path=\"$dir/$rank\"");
    let outcomes = RankRun::ranks(3, dir.path()).run(&text);
    all_done(&outcomes);
    assert_eq!(operations(&outcomes), 3 * 47);
    // The same directory with different numbers of files.
    let text = format!("set $n=$rank + 40\n{}", DELETE.replace("entries=47", "entries=$n"));
    all_end(&RankRun::ranks(3, dir.path()).run(&text), Status::Refused, "that another rank defines in another way");
}

/// Trees of two ranks, of the size `$size`.
fn in_two_trees(size: &str) -> String {
    format!("set $size={size}\n{}", READ.replace("path=$dir", "path=\"$dir/$rank\"").replace("entries=47", "entries=1"))
        .replace("prealloc=80,leafdirs=13,size=randvar(type=uniform,min=0,mean=9k)", "prealloc,size=$size")
}

/// Each of the two trees would fit alone.
#[test]
fn the_trees_of_all_ranks_fit_together() {
    needs!(mounts::available(&[Fs::Ext4]));
    let mount = Mount::new(Fs::Ext4, 64 << 20);
    let names = || fs::read_dir(mount.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let before = names();
    let outcomes = RankRun::ranks(2, mount.dir()).run(&in_two_trees("30m"));
    let place = format!("not enough space on `{}` of host `h1`: ", mount.dir().display());
    all_end(&outcomes, Status::Refused, &format!("{place}2 trees of file set `s` need 60.0 MiB together"));
    assert_eq!(names(), before);
    all_done(&RankRun::ranks(2, mount.dir()).run(&in_two_trees("12m")));
    // Together they fit because the old trees are removed first.
    all_done(&RankRun::ranks(2, mount.dir()).run(&in_two_trees("20m")));
}

/// Each rank loses the others after its run, when rank 0 has written all figures.
#[test]
fn a_tree_that_ranks_may_still_use_stays_locked() {
    let dir = tempfile::tempdir().unwrap();
    let ranks = RankRun::ranks(3, dir.path()).incident(BARRIER, |_| true);
    let outcomes = ranks.change(|_, settings| Settings { clean: true, ..settings }).run(READ);
    for (rank, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.status, Status::Failed, "{}", outcome.said);
        let is_named = outcome.said.contains("./s stays: other ranks may still use it");
        assert_eq!(is_named, rank == 0, "{}", outcome.said);
    }
    let one = RankRun::ranks(1, dir.path()).run(READ);
    all_end(&one, Status::Refused, "in use by another wmlrun process");
    // The trees of a fresh directory too.
    let dir = tempfile::tempdir().unwrap();
    let ranks = RankRun::ranks(3, dir.path()).incident(BARRIER, |_| true);
    let outcomes = ranks.change(|_, settings| Settings { sets: Vec::new(), ..settings }).run(READ);
    assert!(outcomes[0].said.contains("stays: other ranks may still use it"), "{}", outcomes[0].said);
    let fresh = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    assert!(fresh.unwrap().join("s/.wmlrun").exists());
}

#[test]
fn the_files_are_too_few_if_the_leaf_directories_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = DELETE.replace("entries=47", "entries=47,leafdirs=2");
    let outcomes = RankRun::ranks(4, dir.path()).run(&text);
    all_end(&outcomes, Status::Refused, "give the set at least 4 leaf directories, so that each rank");
    let outcomes = RankRun::ranks(4, dir.path()).run(&text.replace("47", "3"));
    all_end(&outcomes, Status::Refused, "give the set at least 4 files and 4 leaf directories, so that each rank");
    assert!(is_empty(dir.path()));
}

/// Ranks write their snapshots there.
#[test]
fn the_current_directory_is_not_in_a_tree() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("s");
    fs::create_dir(&here).unwrap();
    let outcomes = RankRun::ranks(2, &here).run(&READ.replace("path=$dir", "path=\"$dir/..\""));
    all_end(&outcomes, Status::Refused, "the current directory (`--results`) is in the tree of the file set `s`");
    assert!(is_empty(&here));
}
