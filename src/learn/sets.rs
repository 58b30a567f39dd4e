//! Which names are one file set: those used most stand alone, the others go by their directory and the kind of their name,
//! as long as they are used in one way.

use crate::files::{FileFacts, Files};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wml_trace::{PathId, PathTable};

/// From this share of all calls on, a file stands alone, in thousandths.
const HOT: u64 = 30;
/// A group with a smaller share joins the others of its directory, in thousandths.
const SMALL: u64 = 20;
/// More groups of files are not told apart by their extensions, and then not by their directories.
const MOST_GROUPS: usize = 64;
/// So many files with few calls are not one set, and so many names in a directory are kinds of files each.
const FEW: usize = 8;
/// A program goes through its files once if it visits this share of them at least, and each of these so often at most in the
/// mean. One that visits half of them by chance visits each 1.39 times.
const LEAST_VISITED: f64 = 0.5;
const MOST_VISITS: f64 = 1.2;
/// The least cosine of what is done with files that are used alike.
const ALIKE: f64 = 0.97;
/// Files differ in their use if one has less than this share of what it would have if it was used as the other is, and that
/// is so many calls at least.
const LACKING: f64 = 0.05;
const TELLING: f64 = 10.0;
/// Digits and letters up to F in a row, with a digit among them, are a number.
const LONG_NUMBER: usize = 8;

/// A file set of the script.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnedSet {
    pub(crate) name: String,
    /// The path of a file that stands alone, or of the directory, for people.
    pub(crate) what: String,
    pub(crate) is_single: bool,
    /// Names of files that existed at the beginning.
    pub(crate) existing: u64,
    pub(crate) created: u64,
    pub(crate) removed: u64,
    pub(crate) dirs: u64,
    pub(crate) leafdirs: u64,
    pub(crate) leafdirs_existing: u64,
    pub(crate) sizes: Vec<u64>,
    pub(crate) opens: u64,
    pub(crate) calls: u64,
    /// True if its files stay open: opening them is no part of what is repeated.
    pub(crate) stays_open: bool,
    /// How often a file of it is written from its start.
    pub(crate) starts: u64,
    /// The length of writes to the data that files have already; 0 if there are none.
    pub(crate) rewrites: u64,
    /// True if a thread has several of its files open for long.
    pub(crate) has_many_open: bool,
}

impl LearnedSet {
    /// A file was made or removed before the first loop.
    pub(crate) fn add_existing(&mut self, change: i8) {
        self.existing = self.existing.saturating_add_signed(i64::from(change));
        match change {
            1.. => self.created = self.created.saturating_sub(1),
            _ => self.removed = self.removed.saturating_sub(1),
        }
    }
}

/// The sets, and which one each name belongs to.
#[derive(Debug)]
pub(crate) struct LearnedSets {
    pub(crate) sets: Vec<LearnedSet>,
    /// True if the program goes through its files once, as one that searches or packs a tree: it is done at its end.
    pub(crate) goes_once: bool,
    /// The directory that has the used files below it.
    base: PathId,
    of: HashMap<PathId, u16>,
}

/// A group of files with its members.
type NamedGroup = (FileGroup, Vec<PathId>);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FileGroup {
    top: String,
    /// What the names have in common: `*.c`, or `data#` where numbers differ. Empty if nothing.
    kind: String,
    is_temporary: bool,
}

impl LearnedSets {
    pub(crate) fn of(&self, path: PathId) -> Option<u16> {
        self.of.get(&path).copied()
    }

    /// True for a name that calls are on, or one beside those.
    pub(crate) fn is_near(&self, path: PathId, paths: &PathTable) -> bool {
        self.of(path).is_some() || path != self.base && is_below(path, self.base, paths)
    }

    /// Groups all names that calls are on, with the files of the tree that are like them.
    pub(crate) fn new(files: &Files, paths: &PathTable) -> Self {
        let used: Vec<(PathId, &FileFacts)> =
            files.all().filter(|(_, facts)| facts.calls > 0 || facts.created > 0).collect();
        let total: u64 = used.iter().map(|(_, facts)| u64::from(facts.calls)).sum();
        let base = base(&used, paths);
        let is_file =
            |facts: &FileFacts| !facts.is_dir && (facts.exists || facts.created > 0 || facts.existed == Some(true));
        let mut groups: BTreeMap<FileGroup, Vec<PathId>> = BTreeMap::new();
        for (path, facts) in used.iter().filter(|(_, facts)| is_file(facts)) {
            groups.entry(group(*path, facts, base, paths)).or_default().push(*path);
        }
        let with_files: BTreeSet<String> = groups.keys().map(|group| group.top.clone()).collect();
        let groups = without_odd_kinds(groups);
        let groups = Some(by_name(&groups, paths)).filter(|named| named.len() <= MOST_GROUPS).unwrap_or(groups);
        let groups = merged(groups, files, total);
        let mut groups = by_use(groups, files, total);
        if files.has_tree() {
            groups.extend(only_listed(&used, &with_files, base, paths));
        }
        let goes_once = files.has_tree() && goes_once(files, base, paths);
        let mut all = Self { sets: Vec::new(), goes_once, base, of: HashMap::new() };
        let mut tops: HashMap<String, u16> = HashMap::new();
        let mut taken = BTreeSet::new();
        // The plain names are of those that are used most.
        groups.sort_by_key(|(_, members)| std::cmp::Reverse(calls_of(members, files)));
        for (group, members) in &groups {
            let n = all.sets.len() as u16;
            all.of.extend(members.iter().map(|path| (*path, n)));
            let first = members.first().copied().unwrap_or(PathId::ROOT);
            let single = members.len() == 1;
            let what = match single {
                true => below(first, base, paths),
                false => shown(group),
            };
            let wanted = match single {
                true => word(&String::from_utf8_lossy(paths.name(first))),
                false => set_name(group, base, paths),
            };
            tops.entry(group.top.clone()).or_insert(n);
            // Groups of several directories may be one.
            for path in members {
                tops.entry(self::group(*path, &files.get(*path), base, paths).top).or_insert(n);
            }
            all.sets.push(LearnedSet {
                name: unique(&wanted, &mut taken),
                what,
                is_single: single,
                ..LearnedSet::default()
            });
        }
        if all.sets.is_empty() {
            all.sets.push(LearnedSet { name: unique("files", &mut taken), ..LearnedSet::default() });
        }
        // A directory or a name that never exists goes with the files beside it.
        for (path, facts) in used.iter().filter(|(_, facts)| !is_file(facts)) {
            let top = group(*path, facts, base, paths).top;
            let set = tops.get(&top).copied().unwrap_or(0);
            all.of.insert(*path, set);
        }
        all.count(files, paths, &groups, base);
        all
    }

    fn count(&mut self, files: &Files, paths: &PathTable, groups: &[NamedGroup], base: PathId) {
        // Files of the tree that no call is on are of the set of those that are like them: the one with most files.
        let mut largest: Vec<(usize, &NamedGroup)> = groups
            .iter()
            .enumerate()
            .filter(|(_, (group, members))| members.len() != 1 && !group.is_temporary)
            .collect();
        largest.sort_by_key(|(_, (_, members))| members.len());
        let keys: HashMap<(&str, &str), u16> =
            largest.iter().map(|(n, (group, _))| ((group.top.as_str(), group.kind.as_str()), *n as u16)).collect();
        let mut parents: Vec<BTreeSet<PathId>> = vec![BTreeSet::new(); self.sets.len()];
        for (path, facts) in files.all() {
            let is_known = facts.existed == Some(true) || facts.created > 0;
            let Some(n) = self.of(path).or_else(|| {
                if !is_known || facts.is_dir || !is_below(path, base, paths) {
                    return None;
                }
                let own = group(path, facts, base, paths);
                let by_name = masked(&String::from_utf8_lossy(paths.name(path)));
                let kinds = [own.kind.as_str(), by_name.as_str(), ""];
                kinds.into_iter().find_map(|kind| keys.get(&(own.top.as_str(), kind)).copied())
            }) else {
                continue;
            };
            let set = &mut self.sets[usize::from(n)];
            set.calls += u64::from(facts.calls);
            if facts.is_dir {
                set.leafdirs += u64::from(facts.created > 0);
                set.leafdirs_existing += u64::from(facts.removed > 0 && facts.existed == Some(true));
                continue;
            }
            if !is_known {
                continue;
            }
            set.opens += u64::from(facts.opens);
            set.existing += u64::from(facts.existed == Some(true));
            set.created += u64::from(facts.created);
            set.removed += u64::from(facts.removed);
            set.sizes.push(match facts.first_size.filter(|_| facts.existed == Some(true)) {
                Some(size) if size > 0 => size,
                // Unknown, or known only by what was read of it.
                _ => facts.made_size.unwrap_or(facts.most_size),
            });
            parents[usize::from(n)].insert(paths.parent(path));
        }
        for (set, parents) in self.sets.iter_mut().zip(&parents) {
            set.dirs = parents.len() as u64;
        }
    }
}

/// True if most files of the tree are visited, and each about once; or most directories, by a program that does little else.
fn goes_once(files: &Files, base: PathId, paths: &PathTable) -> bool {
    let through = |is_dir: bool| {
        let (mut visits, mut visited, mut all, mut calls) = (0, 0, 0, 0);
        for (path, facts) in files.all().filter(|(_, facts)| facts.is_dir == is_dir) {
            calls += facts.calls;
            if facts.existed == Some(true) && is_below(path, base, paths) {
                visits += facts.visits();
                visited += u32::from(facts.calls > 0);
                all += 1;
            }
        }
        let visited = f64::from(visited);
        let once = all >= FEW && visited >= LEAST_VISITED * all as f64 && f64::from(visits) <= MOST_VISITS * visited;
        (once, calls)
    };
    let ((of_files, other_calls), (of_dirs, calls)) = (through(false), through(true));
    of_files || of_dirs && other_calls < calls
}

/// The directory that has all used files below it: those that are opened or made, or else removed, or else there.
fn base(used: &[(PathId, &FileFacts)], paths: &PathTable) -> PathId {
    // What is only removed or looked for may be anywhere, as long as there is more.
    let opened = base_of(used, paths, |facts| facts.opens > 0 || facts.created > 0);
    let removed = || base_of(used, paths, |facts| facts.removed > 0);
    let known = || base_of(used, paths, |facts| facts.existed == Some(true));
    let dirs = || common_dir(used.iter().filter(|(_, facts)| facts.is_dir).map(|(path, _)| *path), paths);
    opened.or_else(removed).or_else(known).or_else(dirs).unwrap_or(PathId::ROOT)
}

/// The directory that has all of some files below it; `None` without any.
fn base_of(used: &[(PathId, &FileFacts)], paths: &PathTable, counts: impl Fn(&FileFacts) -> bool) -> Option<PathId> {
    let files = used.iter().filter(|(_, facts)| !facts.is_dir && counts(facts));
    common_dir(files.map(|(path, _)| paths.parent(*path)), paths)
}

/// The last directory that is on the way to all of these.
fn common_dir(dirs: impl Iterator<Item = PathId>, paths: &PathTable) -> Option<PathId> {
    let chain = |path: PathId| {
        let mut all = vec![path];
        while all[all.len() - 1].0 > PathId::UNKNOWN.0 {
            all.push(paths.parent(all[all.len() - 1]));
        }
        all.reverse();
        all
    };
    let common = dirs.map(chain).reduce(|mut before, own| {
        let same = before.iter().zip(&own).take_while(|(a, b)| a == b).count();
        before.truncate(same);
        before
    });
    common.and_then(|all| all.last().copied())
}

fn is_below(path: PathId, base: PathId, paths: &PathTable) -> bool {
    let mut at = path;
    loop {
        if at == base {
            return true;
        }
        if at.0 <= PathId::UNKNOWN.0 {
            return base == PathId::ROOT;
        }
        at = paths.parent(at);
    }
}

/// The path below the base, as text.
fn below(path: PathId, base: PathId, paths: &PathTable) -> String {
    let whole = paths.path(path);
    let base = paths.path(base);
    let rest = whole.strip_prefix(base.as_slice()).unwrap_or(&whole);
    String::from_utf8_lossy(rest).trim_start_matches('/').to_owned()
}

/// The group of a file. One that is renamed to a name like its own stays in its group.
fn group(path: PathId, facts: &FileFacts, base: PathId, paths: &PathTable) -> FileGroup {
    let own = place_of(path, facts.is_dir, base, paths);
    let became = facts.became.map(|new| place_of(new, false, base, paths));
    let is_temporary = became.is_some_and(|new| new != own);
    FileGroup { top: own.0, kind: own.1, is_temporary }
}

/// The directory below the base, and the kind that the extension is.
fn place_of(path: PathId, is_dir: bool, base: PathId, paths: &PathTable) -> (String, String) {
    let mut at = path;
    let mut top = None;
    while at != base && at.0 > PathId::UNKNOWN.0 {
        let parent = paths.parent(at);
        if parent == base && (at != path || is_dir) {
            top = Some(at);
        }
        at = parent;
    }
    let top = top.map(|top| String::from_utf8_lossy(paths.name(top)).into_owned()).unwrap_or_default();
    let name = String::from_utf8_lossy(paths.name(path)).into_owned();
    // Of a hidden file the name: it is no file like those beside it.
    let ext = name.rsplit_once('.').map(|(_, ext)| ext.to_owned());
    let is_word = |ext: &String| ext.len() <= 12 && ext.chars().any(|c| c.is_ascii_alphabetic());
    (masked(&top), ext.filter(is_word).map(|ext| format!("*.{ext}")).unwrap_or_default())
}

/// Names that differ only in numbers are one.
fn masked(name: &str) -> String {
    let mut text = String::new();
    for part in name.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_number = word.len() >= LONG_NUMBER
            && word.chars().all(|c| c.is_ascii_hexdigit())
            && word.chars().any(|c| c.is_ascii_digit());
        for c in part.chars() {
            match c.is_ascii_digit() || is_number && c.is_ascii_alphanumeric() {
                true if text.ends_with('#') => {}
                true => text.push('#'),
                false => text.push(c),
            }
        }
    }
    text
}

/// The name of a set: its directory and kind.
fn set_name(group: &FileGroup, base: PathId, paths: &PathTable) -> String {
    let has_name = group.top.chars().any(|c| c.is_ascii_alphabetic());
    let top = if has_name { group.top.clone() } else { String::from_utf8_lossy(paths.name(base)).into_owned() };
    let end = if group.is_temporary { "_new" } else { "" };
    word(&format!("{top}_{}{end}", group.kind))
}

fn calls_of(members: &[PathId], files: &Files) -> u64 {
    members.iter().map(|path| u64::from(files.get(*path).calls)).sum()
}

/// Directories that are used, while no file in them is, are a set of their own: of the files that they have.
fn only_listed(
    used: &[(PathId, &FileFacts)],
    with_files: &BTreeSet<String>,
    base: PathId,
    paths: &PathTable,
) -> Vec<NamedGroup> {
    let dirs = used.iter().filter(|(_, facts)| facts.is_dir && facts.existed == Some(true));
    let tops: BTreeSet<String> = dirs.map(|(path, facts)| group(*path, facts, base, paths).top).collect();
    let tops = tops.into_iter().filter(|top| !with_files.contains(top));
    tops.map(|top| (FileGroup { top, kind: String::new(), is_temporary: false }, Vec::new())).collect()
}

/// What is done with files: reads, writes, syncs, looks, all else, opens, made, removed.
fn uses(members: &[PathId], files: &Files) -> [f64; 8] {
    let mut all = [0.0; 8];
    for facts in members.iter().map(|path| files.get(*path)) {
        facts.does.iter().zip(&mut all).for_each(|(n, sum)| *sum += f64::from(*n));
        all[5] += f64::from(facts.opens);
        all[6] += f64::from(facts.created);
        all[7] += f64::from(facts.removed);
    }
    all
}

/// What is done with a file of a group.
fn habits(members: &[PathId], files: &Files) -> [f64; 8] {
    uses(members, files).map(|sum| (1.0 + sum / members.len().max(1) as f64).ln())
}

/// True if files are used in different ways: of reads, writes, syncs, making and removing, one has nearly none of what it
/// would have if it was used as the other is.
fn differ(a: &[f64; 8], b: &[f64; 8]) -> bool {
    const TOLD_BY: [usize; 5] = [0, 1, 2, 6, 7];
    let all = |uses: &[f64; 8]| TOLD_BY.iter().map(|n| uses[*n]).sum::<f64>().max(1.0);
    let lacks = |a: &[f64; 8], b: &[f64; 8], n: usize| {
        let wanted = b[n] / all(b) * all(a);
        wanted >= TELLING && a[n] < LACKING * wanted
    };
    TOLD_BY.iter().any(|n| lacks(a, b, *n) || lacks(b, a, *n))
}

fn are_alike(a: &[f64; 8], b: &[f64; 8]) -> bool {
    let product = |a: &[f64; 8], b: &[f64; 8]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(a, b) >= ALIKE * (product(a, a) * product(b, b)).sqrt()
}

/// Files of a directory without extensions that have a few kinds of names are of these kinds.
fn by_name(groups: &BTreeMap<FileGroup, Vec<PathId>>, paths: &PathTable) -> BTreeMap<FileGroup, Vec<PathId>> {
    let mut all = BTreeMap::new();
    for (group, members) in groups {
        let mut kinds: BTreeMap<String, Vec<PathId>> = BTreeMap::new();
        for path in members.iter().take_while(|_| group.kind.is_empty()) {
            kinds.entry(masked(&String::from_utf8_lossy(paths.name(*path)))).or_default().push(*path);
            if kinds.len() > FEW {
                break;
            }
        }
        if (2..=FEW).contains(&kinds.len()) {
            all.extend(kinds.into_iter().map(|(kind, members)| (FileGroup { kind, ..group.clone() }, members)));
        } else {
            all.insert(group.clone(), members.clone());
        }
    }
    all
}

/// A kind that one file has is none: such groups join those of their directory.
fn without_odd_kinds(groups: BTreeMap<FileGroup, Vec<PathId>>) -> BTreeMap<FileGroup, Vec<PathId>> {
    let is_many = groups.len() > MOST_GROUPS;
    let mut all: BTreeMap<FileGroup, Vec<PathId>> = BTreeMap::new();
    for (mut group, members) in groups {
        if is_many && members.len() < 2 {
            group.kind.clear();
        }
        all.entry(group).or_default().extend(members);
    }
    if all.len() <= MOST_GROUPS {
        return all;
    }
    let mut joined: BTreeMap<FileGroup, Vec<PathId>> = BTreeMap::new();
    for (mut group, members) in all {
        group.kind.clear();
        group.top.clear();
        joined.entry(group).or_default().extend(members);
    }
    joined
}

/// Groups that are used alike are one, and those of a directory with few calls.
fn merged(groups: BTreeMap<FileGroup, Vec<PathId>>, files: &Files, total: u64) -> Vec<NamedGroup> {
    let is_large = |members: &Vec<PathId>| calls_of(members, files) * 1000 >= SMALL * total;
    let few = groups.values().filter(|members| !is_large(members)).map(Vec::len).sum::<usize>() <= FEW;
    let mut order: Vec<NamedGroup> = groups.into_iter().collect();
    order.sort_by_key(|(group, members)| (std::cmp::Reverse(calls_of(members, files)), group.clone()));
    let mut all: Vec<NamedGroup> = Vec::new();
    let mut singles = Vec::new();
    let mut large = None;
    for (group, members) in order {
        let is_small = !is_large(&members);
        // A few files keep their names.
        if few && is_small {
            singles.extend(members.into_iter().map(|path| (group.clone(), vec![path])));
            continue;
        }
        if is_small {
            large.get_or_insert(all.len());
        }
        let own = habits(&members, files);
        let is_it =
            |(known, of): &NamedGroup| known.is_temporary == group.is_temporary && are_alike(&habits(of, files), &own);
        let found = all.iter().position(is_it).or_else(|| {
            let is_beside = |(n, (known, _)): &(usize, &NamedGroup)| large <= Some(*n) && known.top == group.top;
            all.iter().enumerate().filter(|_| is_small).find(is_beside).map(|(n, _)| n)
        });
        match found {
            Some(n) => {
                let (known, of) = &mut all[n];
                known.top = if known.top == group.top { known.top.clone() } else { String::new() };
                known.kind = if known.kind == group.kind { known.kind.clone() } else { String::new() };
                of.extend(members);
            }
            None => all.push((group, members)),
        }
    }
    all.extend(singles);
    all
}

/// Takes groups apart by their use: files that are used far more than those beside them, or in another way, are others.
fn by_use(groups: Vec<NamedGroup>, files: &Files, total: u64) -> Vec<NamedGroup> {
    let mut all = Vec::new();
    for (group, members) in groups {
        let calls = |path: &PathId| u64::from(files.get(*path).calls);
        let mean = calls_of(&members, files) / members.len().max(1) as u64;
        let is_alone = |path: &PathId| calls(path) >= 3 * mean || members.len() <= 2;
        let (mut hot, rest): (Vec<PathId>, Vec<PathId>) =
            members.iter().copied().partition(|path| calls(path) * 1000 >= HOT * total);
        hot.sort_by_key(|path| std::cmp::Reverse(calls(path)));
        let mut roles: Vec<([f64; 8], Vec<PathId>)> = vec![(uses(&rest, files), rest)];
        for path in hot {
            let own = uses(&[path], files);
            match roles.iter_mut().find(|(of, _)| !is_alone(&path) && !differ(of, &own)) {
                Some((of, members)) => {
                    of.iter_mut().zip(own).for_each(|(sum, n)| *sum += n);
                    members.push(path);
                }
                None => roles.push((own, vec![path])),
            }
        }
        let used = roles.into_iter().map(|(_, members)| members).filter(|members| !members.is_empty());
        all.extend(used.map(|members| (group.clone(), members)));
    }
    all
}

fn shown(group: &FileGroup) -> String {
    let top = if group.top.is_empty() { String::new() } else { format!("{}/", group.top) };
    let text = format!("{top}{}", group.kind);
    if text.is_empty() { "all other files".to_owned() } else { text }
}

/// A word of the language from any text.
pub(crate) fn word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars().take(24) {
        match c.is_ascii_alphanumeric() {
            true => word.push(c.to_ascii_lowercase()),
            false if !word.is_empty() && !word.ends_with('_') => word.push('_'),
            false => {}
        }
    }
    let word = word.trim_end_matches('_');
    match word.chars().next() {
        None => "files".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("f{word}"),
        Some(_) => word.to_owned(),
    }
}

fn unique(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut n = 2;
    while !taken.insert(name.clone()) {
        name = format!("{wanted}_{n}");
        n += 1;
    }
    name
}
