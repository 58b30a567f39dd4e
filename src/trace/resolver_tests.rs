//! Tests of the resolver with calls as a source would report them.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::raw::StatFacts;
use crate::view::NoView;

/// The calls of a process that begins in `/w`, each as `name path offset size`.
struct Source<'a> {
    resolver: TraceResolver<'a>,
    now: u64,
}

struct InW;

impl ProcessView for InW {
    fn descriptor(&mut self, process: u32, fd: i32) -> Option<FdFacts> {
        (fd == 0).then(|| FdFacts {
            path: Some(format!("/w/in{process}").into_bytes()),
            position: Some(7),
            ..FdFacts::default()
        })
    }

    fn cwd(&mut self, _: u32) -> Option<Vec<u8>> {
        Some(b"/w".to_vec())
    }

    fn mapped(&mut self, _: u32, id: InodeId) -> Option<Vec<u8>> {
        (id.inode == 9).then(|| b"/w/lib".to_vec())
    }
}

impl Source<'_> {
    fn call(&mut self, thread: u32, process: u32, name: &str, args: &[i64], names: &[&str], result: i64) {
        self.with(thread, process, name, args, names, result, |_| ());
    }

    #[allow(clippy::too_many_arguments, reason = "a call has them")]
    fn with(
        &mut self,
        thread: u32,
        process: u32,
        name: &str,
        args: &[i64],
        names: &[&str],
        result: i64,
        change: impl FnOnce(&mut RawCall),
    ) {
        let mut all = [0; 6];
        args.iter().enumerate().for_each(|(n, arg)| all[n] = *arg as u64);
        self.now += 10;
        let mut raw = RawCall {
            start: self.now - 5,
            end: self.now,
            thread,
            process,
            kind: KindId::named(name).expect(name),
            args: all,
            result,
            names: [0, 1].map(|n| names.get(n).map(|name| name.as_bytes().to_vec())),
            ..RawCall::default()
        };
        change(&mut raw);
        self.resolver.call(&raw).unwrap();
    }
}

/// What comes out of `calls`.
fn lines(view: impl ProcessView + 'static, calls: impl FnOnce(&mut Source)) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let path = |paths: &PathTable, id: Option<PathId>| {
        id.map_or("-".to_owned(), |id| String::from_utf8_lossy(&paths.path(id)).into_owned())
    };
    let sink: EventSink = Box::new(|event, paths| {
        if let TraceEvent::Call(call) = event {
            let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
            let mut line = format!("{} {}", call.kind.get().name, path(paths, call.path));
            if call.second_path.is_some() {
                line += &format!(" {}", path(paths, call.second_path));
            }
            found.borrow_mut().push(format!("{line} {} {}", number(call.offset), number(call.size)));
        }
        Ok(())
    });
    let mut source = Source { resolver: TraceResolver::new(0, TraceScope::default(), Box::new(view), sink), now: 0 };
    calls(&mut source);
    drop(source);
    found.into_inner()
}

const CWD: i64 = libc::AT_FDCWD as i64;

#[test]
fn positions_are_shared_by_copies_and_children() {
    let found = lines(InW, |source| {
        source.call(1, 1, "openat", &[CWD, 0, i64::from(libc::O_RDWR)], &["a"], 3);
        source.call(1, 1, "write", &[3, 0, 100], &[], 100);
        source.call(1, 1, "dup", &[3], &[], 4);
        source.resolver.fork(source.now, 1, 2, 2, (false, false)).unwrap();
        source.call(2, 2, "read", &[4, 0, 10], &[], 10);
        source.call(1, 1, "close", &[3], &[], 0);
        source.call(2, 2, "pread64", &[3, 0, 10, 50], &[], 10);
        source.call(2, 2, "lseek", &[3, 5, 0], &[], 5);
        source.call(1, 1, "write", &[4, 0, 1], &[], 1);
        source.call(1, 1, "read", &[3, 0, 1], &[], -9);
        source.call(2, 2, "read", &[0, 0, 1], &[], 1);
    });
    let expected = [
        "openat /w/a - -",
        "write /w/a 0 -",
        "dup /w/a - -",
        "read /w/a 100 -",
        "close /w/a - -",
        "pread64 /w/a 50 -",
        "lseek /w/a 110 -",
        "write /w/a 5 -",
        "read /w/in2 7 -",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_child_has_the_descriptors_and_the_directory_of_a_parent_that_is_not_followed() {
    struct Parent;

    impl ProcessView for Parent {
        fn descriptor(&mut self, process: u32, fd: i32) -> Option<FdFacts> {
            let id = InodeId { device: 1, inode: 2, generation: None };
            let facts = FdFacts { id: Some(id), path: Some(b"/w/out".to_vec()), ..FdFacts::default() };
            (process == 9 && fd == 1).then_some(facts)
        }

        fn cwd(&mut self, process: u32) -> Option<Vec<u8>> {
            (process == 9).then(|| b"/w".to_vec())
        }
    }

    let found = lines(Parent, |source| {
        source.resolver.fork(source.now, 9, 1, 1, (false, false)).unwrap();
        let id = InodeId { device: 1, inode: 2, generation: Some(3) };
        source.with(1, 1, "write", &[1, 0, 10], &[], 10, |raw| {
            raw.files[0] =
                Some(FdFacts { id: Some(id), mode: Some(libc::S_IFREG), position: Some(5), ..FdFacts::default() });
        });
        source.call(1, 1, "mkdir", &[0], &["d"], 0);
        // Another file has the inode by now.
        let later = InodeId { generation: Some(4), ..id };
        source.with(1, 1, "write", &[1, 0, 10], &[], 10, |raw| {
            raw.files[0] = Some(FdFacts { id: Some(later), mode: Some(libc::S_IFREG), ..FdFacts::default() });
        });
        assert_eq!(source.resolver.left_out()["file without a name"], 1);
        source.with(1, 1, "write", &[1, 0, 10], &[], 10, |raw| {
            raw.files[0] = Some(FdFacts { mode: Some(libc::S_IFIFO), ..FdFacts::default() });
        });
        assert_eq!(source.resolver.left_out()["pipe"], 1);
    });
    assert_eq!(found, ["write /w/out 5 -", "mkdir /w/d - -"]);
}

#[test]
fn names_follow_directories_and_exec_closes_descriptors() {
    let found = lines(InW, |source| {
        source.call(1, 1, "openat", &[CWD, 0, i64::from(libc::O_CLOEXEC)], &["d"], 3);
        source.call(1, 1, "openat", &[3, 0, 0], &["x"], 4);
        source.call(1, 1, "renameat2", &[3, 0, CWD, 0, 0], &["x", "../y"], 0);
        source.call(1, 1, "chdir", &[0], &["e/.."], 0);
        source.call(1, 1, "fchdir", &[3], &[], 0);
        source.call(1, 1, "newfstatat", &[3, 0, 0, 0x1000], &[""], 0);
        source.call(1, 1, "mkdir", &[0], &["n"], 0);
        source.resolver.exec(source.now, 1, 1, Some(b"/bin/p"), None).unwrap();
        source.call(1, 1, "fsync", &[3], &[], -9);
        source.call(1, 1, "fsync", &[4], &[], 0);
        source.call(1, 1, "stat", &[0], &["/usr/x"], -2);
    });
    let expected = [
        "openat /w/d - -",
        "openat /w/d/x - -",
        "renameat2 /w/d/x /y - -",
        "chdir /w - -",
        "fchdir /w/d - -",
        "fstat /w/d - -",
        "mkdir /w/d/n - -",
        "fsync /w/d/x - -",
    ];
    assert_eq!(found, expected);
}

#[test]
fn sizes_are_those_before_the_call_and_appends_are_at_the_end() {
    let id = InodeId { device: 1, inode: 2, generation: None };
    let found = lines(InW, |source| {
        let facts = FdFacts { id: Some(id), mode: Some(libc::S_IFREG), size: Some(40), ..FdFacts::default() };
        source.with(1, 1, "open", &[0, i64::from(libc::O_APPEND | libc::O_WRONLY)], &["log"], 3, |raw| {
            raw.files[0] = Some(facts);
        });
        source.call(1, 1, "write", &[3, 0, 2], &[], 2);
        source.call(1, 1, "write", &[3, 0, 2], &[], 2);
        source.call(1, 1, "ftruncate", &[3, 8], &[], 0);
        source.with(1, 1, "stat", &[0], &["log"], 0, |raw| {
            raw.stat = Some(StatFacts { size: 8, mode: libc::S_IFREG, id: Some(id) });
        });
        source.call(1, 1, "mmap", &[0, 4096, 3, 1, 3, 0], &[], 0x1000);
        source.call(1, 1, "msync", &[0x1400, 10], &[], 0);
        source.call(1, 1, "mmap", &[0, 4096, 3, 2, -1, 0], &[], 0x9000);
    });
    let expected = [
        "open /w/log - -",
        "write /w/log 40 40",
        "write /w/log 42 42",
        "ftruncate /w/log - 44",
        "stat /w/log - -",
        "mmap /w/log 0 8",
        "msync /w/log - 8",
    ];
    assert_eq!(found, expected);
}

#[test]
fn pages_of_a_program_and_of_what_was_mapped_before_have_names() {
    let found = lines(InW, |source| {
        let id = |inode| Some(InodeId { device: 1, inode, generation: Some(1) });
        source.resolver.exec(source.now, 1, 1, Some(b"p"), id(5)).unwrap();
        for inode in [5, 9, 8, 9] {
            let facts = FdFacts { id: id(inode), mode: Some(libc::S_IFREG), ..FdFacts::default() };
            source.with(1, 1, "page_fault", &[-1, 0, 4096, 8192], &[], 0, |raw| raw.files[0] = Some(facts));
        }
        assert_eq!(source.resolver.left_out()["file without a name"], 1);
        // Its files are not known.
        source.call(1, 1, "io_submit", &[], &[], 1);
    });
    let fault = |path| format!("page_fault {path} 8192 -");
    assert_eq!(found, [fault("/w/p"), fault("/w/lib"), fault("/w/lib"), "io_submit - - -".to_owned()]);
}

#[test]
fn what_is_not_known_is_not_recorded_as_a_file() {
    let found = lines(NoView, |source| {
        source.call(1, 1, "read", &[5, 0, 10], &[], 10);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["rel"], 6);
        source.call(1, 1, "read", &[6, 0, 10], &[], 10);
        source.call(1, 1, "close_range", &[3, 0xffff_ffff, 0], &[], 0);
        source.call(1, 1, "read", &[6, 0, 10], &[], 10);
        assert_eq!(source.resolver.left_out()["other descriptor"], 3);
    });
    assert_eq!(found, ["openat rel - -", "read rel 0 -"]);
}

const BAD_ADDRESS: i64 = -(libc::EFAULT as i64);

#[test]
fn a_file_without_a_name_is_not_its_directory_and_a_bad_address_is_nothing() {
    let id =
        |inode| Some(FdFacts { id: Some(InodeId { device: 1, inode, generation: Some(1) }), ..FdFacts::default() });
    let unnamed = i64::from(libc::O_TMPFILE | libc::O_RDWR);
    let found = lines(InW, |source| {
        source.with(1, 1, "openat", &[CWD, 0, unnamed], &["d"], 3, |raw| raw.files[0] = id(77));
        source.call(1, 1, "write", &[3, 0, 10], &[], 10);
        source.call(1, 1, "openat", &[CWD, 0, unnamed], &["d"], -i64::from(libc::EOPNOTSUPP));
        source.call(1, 1, "openat", &[CWD, 0, 0], &[], BAD_ADDRESS);
        source.call(1, 1, "stat", &[0, 0], &[""], -i64::from(libc::ENOENT));
        source.call(1, 1, "stat", &[0, 0], &[], -i64::from(libc::ENAMETOOLONG));
        source.call(1, 1, "stat", &[0, 0], &[&"a".repeat(4095)], -i64::from(libc::ENAMETOOLONG));
        source.call(1, 1, "utimensat", &[CWD, 0, 0, 0], &[""], BAD_ADDRESS);
        source.call(1, 1, "read", &[3, 0, 10], &[], BAD_ADDRESS);
        source.call(1, 1, "fchmodat2", &[CWD, 0, 0, 0], &["e"], 0);
        source.call(1, 1, "unlink", &[0], &[], -2);
        let none = [("with a bad address", 2), ("with an empty name", 1), ("with a name that is too long", 2)];
        assert_eq!(source.resolver.left_out(), &BTreeMap::from(none));
        assert_eq!(source.resolver.unreadable(), 1);
    });
    let expected =
        ["openat /w/d/#77 - -", "write /w/d/#77 0 -", "openat /w/d - -", "read /w/d/#77 10 10", "fchmodat2 /w/e - -"];
    assert_eq!(found, expected);
}

#[test]
fn a_name_that_stands_for_an_open_file_is_that_file() {
    let found = lines(InW, |source| {
        source.call(1, 1, "openat", &[CWD, 0, 0], &["a"], 3);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["/proc/self/fd/3"], 4);
        source.call(1, 1, "read", &[4, 0, 10], &[], 10);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["/proc/1/fd/3"], 5);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["dir"], 6);
        source.call(1, 1, "stat", &[0, 0], &["/dev/fd/6//b"], 0);
        source.call(1, 1, "lstat", &[0, 0], &["/dev/fd/6/"], 0);
        source.call(1, 1, "dup2", &[3, 0], &[], 0);
        source.call(1, 1, "access", &[0], &["/dev/stdin"], 0);
        source.call(1, 1, "linkat", &[CWD, 0, CWD, 0, i64::from(libc::AT_SYMLINK_FOLLOW)], &["/dev/fd/4", "c"], 0);
        source.call(1, 1, "linkat", &[CWD, 0, CWD, 0, 0], &["/dev/fd/4", "d"], -18);
        source.call(1, 1, "readlink", &[0], &["/proc/self/fd/3"], 4);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["/proc/self/fd/9"], -2);
        source.call(1, 1, "openat", &[CWD, 0, 0], &["/proc/2/fd/3"], 7);
        assert_eq!(source.resolver.left_out(), &BTreeMap::from([("outside of the directories", 4)]));
    });
    let expected = [
        "openat /w/a - -",
        "openat /w/a - -",
        "read /w/a 0 -",
        "openat /w/a - -",
        "openat /w/dir - -",
        "stat /w/dir/b - -",
        "dup2 /w/a - -",
        "access /w/a - -",
        "linkat /w/a /w/c - -",
        "linkat /dev/fd/4 /w/d - -",
    ];
    assert_eq!(found, expected);
}
