//! Tests `wmlrun replay` of traces with planted faults, as a table: each is named by its call and its path, and nothing outside
//! of the replay's directory is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use wml::trace::{CallClass, KindId, PathId, TracedCall};

use crate::cmd::{has, skip};
use crate::mounts::{self, Fs, Mount};
use crate::replayed::{RecordedProgram, tree};

/// What stands in the place of a call. The path is that of its directory.
type PlantedFault = fn(&TracedCall, PathId) -> Vec<TracedCall>;

/// A fault: what it is; at the first call of which class on which file; what stands there; and what the replay says.
type FaultRow = (&'static str, CallClass, &'static str, PlantedFault, &'static str);

/// Another call on the file of a call.
fn other(call: &TracedCall, kind: &str, result: i64) -> TracedCall {
    let (thread, process, path) = (call.thread, call.process, call.path);
    let (start, duration, kind) = (call.start, call.duration, KindId::named(kind).unwrap());
    TracedCall { start, duration, thread, process, path, kind, result, ..TracedCall::default() }
}

fn before(call: &TracedCall, kind: &str, result: i64) -> Vec<TracedCall> {
    vec![other(call, kind, result), call.clone()]
}

fn after(call: &TracedCall, kind: &str, result: i64) -> Vec<TracedCall> {
    vec![call.clone(), other(call, kind, result)]
}

fn lost(_: &TracedCall, _: PathId) -> Vec<TracedCall> {
    Vec::new()
}

const PROGRAM: &str = "cat a >c && mv b d && mkdir n && cat s/f >n/x && ln n/x n/y && ln -s a l && readlink l && cat n/y && \
    head -c 300 s/g &&     rm d && rmdir e && echo new >d && truncate -s 9000 c && cat c >o && mkdir s/deep && rmdir s/deep";

fn lay_out(dir: &Path) {
    for below in ["s", "e"] {
        fs::create_dir(dir.join(below)).unwrap();
    }
    for (name, size) in [("a", 5000), ("b", 3000), ("s/f", 100), ("s/g", 200)] {
        fs::write(dir.join(name), vec![1; size]).unwrap();
    }
}

/// `~` is the directory of the program.
#[rustfmt::skip]
const FAULTS: &[FaultRow] = &[
    ("a file is missing at first", CallClass::Open, "a", |c, _| before(c, "stat", -2), "stat of ~/a: 0 instead of ENOENT"),
    ("a file was there", CallClass::Open, "o", |c, _| before(c, "stat", 0), "stat of ~/o: nothing had made the name"),
    ("a rename is lost", CallClass::Rename, "b", lost, "of ~/d: nothing had made the name"),
    ("a directory is not made", CallClass::Mkdir, "n", lost, "of ~/n/x: nothing had made the name"),
    ("a link is lost", CallClass::Link, "n/x", lost, "of ~/n/y: nothing had made the name"),
    ("a file is not made", CallClass::Open, "n/x", |c, _| vec![TracedCall { flags: Some(1), ..c.clone() }],
        "of ~/n/x: nothing had made the name"),
    ("a removal is lost", CallClass::Rmdir, "e", |c, _| vec![other(c, "stat", -2)], "stat of ~/e: 0 instead of ENOENT"),
    ("a directory is made twice", CallClass::Mkdir, "n", |c, _| after(c, "mkdir", 0), "mkdir of ~/n: EEXIST instead of 0"),
    ("a link is made twice", CallClass::Symlink, "l", |c, _| after(c, "symlink", 0), "symlink of ~/l: EEXIST instead of 0"),
    ("a file is removed twice", CallClass::Unlink, "d", |c, _| after(c, "unlink", 0), "unlink of ~/d: ENOENT instead of 0"),
    ("a full directory is removed", CallClass::Link, "n/x",
        |c, dir| vec![c.clone(), TracedCall { path: Some(dir), ..other(c, "rmdir", 0) }], "rmdir of ~/n: ENOTEMPTY instead of 0"),
    ("a directory moves below itself", CallClass::Mkdir, "s/deep",
        |c, dir| vec![c.clone(), TracedCall { path: Some(dir), second_path: c.path, ..other(c, "rename", 0) }],
        "rename of ~/s: EINVAL instead of 0"),
    ("a directory is in place of a file", CallClass::Open, "o", |c, _| before(c, "mkdir", 0), "of ~/o: EISDIR instead of "),
    ("a directory is read as a link", CallClass::Mkdir, "n", |c, _| after(c, "readlink", 3), "readlink of ~/n: EINVAL instead of 3"),
    ("a link is longer", CallClass::Readlink, "l", |c, _| after(c, "readlink", 7), "readlink of ~/l: 1 instead of 7"),
    ("a file has another size", CallClass::Read, "s/g", |c, _| vec![TracedCall { result: 201, ..c.clone() }],
        "read of ~/s/g: 200 instead of 201"),
    ("a write is longer than its call", CallClass::Write, "d", |c, _| vec![TracedCall { result: 5, ..c.clone() }],
        "write of ~/d: 4 instead of 5"),
    ("a size is beyond all limits", CallClass::Truncate, "c", |c, _| vec![TracedCall { wanted: Some(u64::MAX), ..c.clone() }],
        "ftruncate of ~/c: EINVAL instead of 0"),
    ("a file is opened after it is removed", CallClass::Unlink, "d", |c, _| after(c, "open", 3),
        "open of ~/d: ENOENT instead of success"),
    ("an open failed", CallClass::Open, "a", |c, _| before(c, "open", -24), "open of ~/a: success instead of EMFILE"),
    ("a file is not accessible", CallClass::Open, "s/f", |c, _| before(c, "access", -2), "access of ~/s/f: 0 instead of ENOENT"),
    ("a file is not opened", CallClass::Open, "s/f", lost, "of ~/s/f: no call of the trace opened the file"),
    ("a name is removed from a file that has one", CallClass::Unlink, "d",
        |c, _| vec![TracedCall { result: -2, ..c.clone() }], "of ~/d: 0 instead of ENOENT"),
];

#[test]
fn each_planted_fault_is_named_by_call_and_path() {
    let program = RecordedProgram::new(lay_out, PROGRAM);
    program.replay(&program.trace(), &[]).exits(0);
    // A foreign tree beside the replay's directory, and a link from there to another one.
    let (dir, foreign) = (program.dir(), program.dir().join("foreign"));
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("file"), "mine").unwrap();
    symlink(program.work(), dir.join("linked")).unwrap();
    let others = || (tree(&foreign), tree(&program.work()), fs::read(foreign.join("file")).unwrap());
    let untouched = others();
    let work = program.work().display().to_string();
    let mut missed = Vec::new();
    for (what, class, place, plant, says) in FAULTS {
        let path = format!("{work}/{place}");
        let mut is_planted = false;
        let trace = program.changed(|call, paths| {
            let is_it =
                call.kind.get().class == *class && call.path.is_some_and(|of| paths.path(of) == path.as_bytes());
            if is_it && !std::mem::replace(&mut is_planted, true) {
                let dir = paths.parent(call.path.unwrap());
                return plant(call, dir);
            }
            vec![call.clone()]
        });
        let output = program.replay(&trace, &["-v"]);
        let text = crate::cmd::squeezed(&output.stdout);
        let status = if says.contains("opened") { Some(0) } else { Some(1) };
        if !is_planted || !text.contains(&says.replace('~', &work)) || output.status.code() != status {
            missed.push(format!("{what} (planted: {is_planted}): {}", output.shown()));
        }
        assert_eq!(others(), untouched, "{what}");
    }
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), FAULTS.len(), missed.join("\n"));
    program.replay(&program.trace(), &[]).exits(0);
}

#[test]
fn a_trace_that_ends_early_or_needs_more_room_than_there_is_is_refused() {
    let program = RecordedProgram::new(lay_out, PROGRAM);
    let whole = fs::read(program.trace()).unwrap();
    let cut = program.dir().join("cut.wtrace");
    fs::write(&cut, &whole[..whole.len() - 20]).unwrap();
    let refused = program.replay(&cut, &[]).exits(2);
    assert!(refused.stderr.contains("the trace is incomplete"), "{}", refused.shown());
    let large =
        RecordedProgram::new(|dir| fs::File::create(dir.join("large")).unwrap().set_len(1 << 50).unwrap(), "ls large");
    let refused = large.replay(&large.trace(), &[]).exits(3);
    assert!(refused.stderr.contains("error[E0509]: not enough space in"), "{}", refused.shown());
}

/// A replay in a directory of a file system.
fn replay_on(mount: &Mount, program: &RecordedProgram, trace: &Path, more: &[&str]) -> crate::cmd::Wml {
    let dir = mount.dir().join("d");
    fs::create_dir_all(&dir).unwrap();
    let args: [&std::ffi::OsStr; 4] = ["replay".as_ref(), trace.as_ref(), "--dir".as_ref(), dir.as_ref()];
    crate::cmd::Wml::below(program.dir().parent().unwrap()).args(args).args(more)
}

/// What a trace writes counts, and not only what is there at first: of removed files the most at a time, of holes and of
/// further names nothing.
#[test]
fn a_trace_that_writes_more_than_fits_is_refused_before_it() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    if !has("python3") {
        return skip("no python3");
    }
    // A shell keeps open what it redirects, and so does its replay. What processes do one after the other may be at once there.
    let fill = |file: &str| format!("dd if=/dev/zero of={file} bs=1M count=25");
    let python = |then: &str| {
        format!("python3 -c \"import os\nfor n in '123': open('x', 'wb').write(bytes(25 << 20)); os.{then}\"")
    };
    for (command, fits) in [
        (format!("{} && {} && {}", fill("x"), fill("y"), fill("z")), false),
        (python("remove('x')"), true),
        (python("rename('x', 'y')"), true),
        (python("rename('x', n)"), false),
        (format!("exec 3>x 4>y && rm x y && {} && cat z >&3 && cat z >&4", fill("z")), false),
        (
            format!("truncate -s 1T x && {} && echo 1 | dd of=x seek=9999 conv=notrunc && {}", fill("y"), fill("z")),
            true,
        ),
        (
            "fallocate -l 20M x && fallocate -l 20M x && fallocate -n -o 20M -l 20M x && fallocate -l 9M y".to_owned(),
            true,
        ),
        (">x && fallocate -n -l 40M x && fallocate -l 40M y".to_owned(), false),
        (format!("cat l m n >x && {}", fill("y")), true),
        (format!("cat l m n >x && {} && rm l m && {}", fill("y"), fill("z")), false),
    ] {
        let lay_out = |dir: &Path| {
            if command.contains("cat l") {
                fs::write(dir.join("l"), vec![1; 10 << 20]).unwrap();
                ["m", "n"].iter().for_each(|name| fs::hard_link(dir.join("l"), dir.join(name)).unwrap());
            }
        };
        let program = RecordedProgram::new(lay_out, &command);
        let mount = Mount::new(Fs::Tmpfs, if command.contains("cat l") { 80 << 20 } else { 64 << 20 });
        let output = replay_on(&mount, &program, &program.trace(), &[]).run();
        assert_eq!(output.code(), if fits { 0 } else { 3 }, "{command}: {}", output.shown());
        assert!(fits || output.stderr.contains("error[E0509]: not enough space in"), "{}", output.shown());
    }
}

#[test]
fn a_replay_whose_space_others_take_ends_before_the_file_system_is_full() {
    needs!(mounts::available(&[Fs::Tmpfs]));
    let program = RecordedProgram::new(|_| (), "echo 1 >a && echo 2 >b");
    let mut later = 0;
    // An hour passes before the last file.
    let trace = program.changed(|call, paths| {
        later |= u64::from(call.path.is_some_and(|path| paths.path(path).ends_with(b"/b")));
        vec![TracedCall { start: call.start + later * 3_600_000_000_000, ..call.clone() }]
    });
    let mount = Mount::new(Fs::Tmpfs, 64 << 20);
    let running = replay_on(&mount, &program, &trace, &["--speed", "timed"]).result().start();
    let made = mount.dir().join("d/wmlrun-replay").join(program.work().strip_prefix("/").unwrap());
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !made.join("a").exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = fs::write(mount.dir().join("other"), vec![1; 63 << 20]);
    let output = running.wait().exits(3);
    assert!(output.stderr.contains("must stay free"), "{}", output.shown());
    assert_eq!(output.only_run()["state"], "low_space", "{}", output.shown());
    assert!(!made.join("b").exists());
}
