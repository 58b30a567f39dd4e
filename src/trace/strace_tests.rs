//! Tests of the import with lines as strace writes them.

#![allow(clippy::unwrap_used)]

use super::*;

fn lines(text: &str) -> (Vec<String>, ImportedTrace) {
    let mut lines = Vec::new();
    let found = import_strace(text.as_bytes(), TraceScope::default(), |event, paths| {
        let TraceEvent::Call(call) = event else { return Ok(()) };
        let mut line = format!("{}.{:03} {}", call.thread, call.start / 1_000_000, call.kind.get().name);
        for path in [call.path, call.second_path].into_iter().flatten() {
            line += &format!(" {}", String::from_utf8_lossy(&paths.path(path)));
        }
        line += &call.offset.map_or(String::new(), |offset| format!(" @{offset}"));
        line += &call.wanted.map_or(String::new(), |wanted| format!(" {wanted}"));
        line += &call.stat_size.map_or(String::new(), |size| format!(" of {size}"));
        lines.push(format!("{line} = {}", call.result));
        Ok(())
    });
    (lines, found.unwrap())
}

#[test]
fn calls_are_read_with_names_offsets_and_interruptions() {
    let (found, imported) = lines(
        r#"7 100.000000 execve("./p", ["./p"], 0x7ff /* 9 vars */) = 0 <0.000100>
7 100.001000 openat(AT_FDCWD</w>, "a, "b"", O_RDWR|O_CREAT, 0644) = 3</w/a, "b"> <0.000020>
7 100.002000 write(3</w/a, "b">, "x = y"..., 4096) = 4096 <0.000030>
7 100.003000 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 8 <0.000010>
8 100.004000 pread64(3</w/a, "b">,  <unfinished ...>
7 100.005000 newfstatat(3</w/a, "b">, "", {st_mode=S_IFREG|0644, st_size=4096, ...}, AT_EMPTY_PATH) = 0 <0.000010>
8 100.006000 <... pread64 resumed>"x"..., 100, 50) = 100 <0.002000>
7 100.007000 --- SIGCHLD {si_signo=SIGCHLD} ---
7 100.008000 writev(3</w/a, "b">, [{iov_base="a", iov_len=1}, {iov_base="b", iov_len=2}], 2) = 3 <0.000010>
7 100.009000 renameat2(AT_FDCWD</w>, "c", AT_FDCWD</w>, "d", RENAME_NOREPLACE) = -1 ENOENT (No such file or directory) <0.000010>
7 100.010000 read(5<pipe:[77]>, "", 10) = 0 <0.000010>
7 100.010500 chdir("sub") = 0 <0.000010>
7 100.010600 stat("f", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.000010>
nonsense
7 100.011000 stat("cut"..., 0x7ff) = -1 EACCES (Permission denied) <0.000010>
8 100.012000 fsync(3</w/a, "b"> <unfinished ...>
8 100.013000 +++ exited with 0 +++
"#,
    );
    let expected = [
        r#"7.001 openat /w/a, "b" = 3"#,
        r#"7.002 write /w/a, "b" @0 4096 = 4096"#,
        r#"7.005 fstat /w/a, "b" of 4096 = 0"#,
        r#"8.004 pread64 /w/a, "b" @50 100 = 100"#,
        r#"7.008 writev /w/a, "b" @4096 3 = 3"#,
        "7.009 renameat2 /w/c /w/d = -2",
        "7.010 chdir /w/sub = 0",
        "7.010 stat /w/sub/f of 5 = 0",
    ];
    assert_eq!(found, expected);
    assert_eq!((imported.unfinished, imported.unreadable, imported.has_times), (1, 1, true));
    assert_eq!(imported.left_out, [("pipe", 1)]);
}

/// Lines as strace 6.1 writes them.
#[test]
fn a_call_without_a_name_is_on_the_file_of_its_descriptor() {
    let (found, imported) = lines(
        r#"7 100.000 utimensat(5</w/a>, NULL, [UTIME_NOW, UTIME_OMIT], 0) = 0 <0.000010>
7 100.001 utimensat(AT_FDCWD</w>, "b", NULL, AT_SYMLINK_NOFOLLOW) = 0 <0.000010>
7 100.002 statx(6</w/c>, "", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL|STATX_MNT_ID, stx_attributes=0, stx_mode=S_IFREG|0644, stx_size=9, ...}) = 0 <0.000010>
7 100.003 statx(6</w/c>, NULL, AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=9, ...}) = 0 <0.000010>
7 100.004 newfstatat(9</w/d>, "", {st_mode=S_IFREG|0755, st_size=3, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.005 newfstatat(AT_FDCWD</w>, NULL, {st_mode=S_IFDIR|0755, st_size=40, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.006 fchownat(10</w/e>, "", 0, 0, AT_EMPTY_PATH) = 0 <0.000010>
7 100.007 linkat(11</w/f>, "", AT_FDCWD</w>, "g", AT_EMPTY_PATH) = 0 <0.000010>
7 100.008 futimesat(12</w/h>, NULL, NULL) = 0 <0.000010>
7 100.009 utimensat(13</w/a \303\244 "q" \74x\76>(deleted), NULL, NULL, 0) = 0 <0.000010>
7 100.010 newfstatat(14<pipe:[77]>, "", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0 <0.000010>
7 100.011 openat(AT_FDCWD</w/a \303\244>, "i", O_RDONLY) = 3</w/a \303\244/i> <0.000010>
7 100.012 stat(NULL, 0x7ffd) = -1 EFAULT (Bad address) <0.000010>
7 100.012 openat(AT_FDCWD</w>, NULL, O_RDONLY) = -1 EFAULT (Bad address) <0.000010>
7 100.012 utimensat(AT_FDCWD</w>, NULL, NULL, 0) = -1 EFAULT (Bad address) <0.000010>
7 100.012 stat("l", NULL) = -1 EFAULT (Bad address) <0.000010>
7 100.012 openat(AT_FDCWD</w>, ".", O_RDWR|O_TMPFILE, 0600) = 4</w/#77>(deleted) <0.000010>
7 100.012 write(4</w/#77>(deleted), "x", 1) = 1 <0.000010>
7 100.013 mkdirat(15</w/j>(deleted), "k", 0777) = -1 ENOENT (No such file or directory) <0.000010>
"#,
    );
    let expected = [
        "7.000 utimensat /w/a = 0",
        "7.001 utimensat /w/b = 0",
        "7.002 fstatx /w/c of 9 = 0",
        "7.003 fstatx /w/c of 9 = 0",
        "7.004 fstat /w/d of 3 = 0",
        "7.005 newfstatat /w of 40 = 0",
        "7.006 fchownat /w/e = 0",
        "7.007 linkat /w/f /w/g = 0",
        "7.008 futimesat /w/h = 0",
        r#"7.009 utimensat /w/a ä "q" <x> = 0"#,
        "7.011 openat /w/a ä/i = 3",
        "7.012 stat /w/l = -14",
        "7.012 openat /w/#77 = 4",
        "7.012 write /w/#77 @0 1 = 1",
        "7.013 mkdirat /w/j/k = -2",
    ];
    assert_eq!(found, expected);
    assert_eq!((imported.unreadable, imported.left_out), (0, vec![("pipe", 1), ("with a bad address", 3)]));
}

#[test]
fn the_program_of_an_exec_is_that_of_its_descriptor_if_it_has_no_name() {
    let mut programs = Vec::new();
    let text = r#"7 100.000 chdir("/w") = 0 <0.000010>
7 100.001 execve("./p", ["./p"], 0x7ff /* 9 vars */) = 0 <0.000010>
7 100.002 execveat(5</w/q>, "", ["q"], 0x7ff /* 0 vars */, AT_EMPTY_PATH) = 0 <0.000010>
7 100.003 execveat(5</w/d>, "r", ["/x"], 0x7ff /* 0 vars */, 0) = 0 <0.000010>
7 100.004 execveat(AT_FDCWD</w>, "s", ["/x"], 0x7ff /* 0 vars */, 0) = 0 <0.000010>
"#;
    let found = import_strace(text.as_bytes(), TraceScope::default(), |event, paths| {
        if let TraceEvent::Exec { path: Some(path), .. } = event {
            programs.push(String::from_utf8_lossy(&paths.path(*path)).into_owned());
        }
        Ok(())
    });
    assert!(found.is_ok());
    assert_eq!(programs, ["/w/p", "/w/q", "/w/d/r", "/w/s"]);
}

#[test]
fn times_that_count_from_the_line_before_are_added_up() {
    let text = |options: [&str; 3], pid: &str| {
        let [a, b, c] = options;
        format!(
            "strace: Process 7 attached\n{pid}{a} execve(\"./p\", [\"./p\"], 0x7ff /* 9 vars */) = 0\n\
             {pid}{b} mkdir(\"/w\", 0777 <unfinished ...>\n8 {c} mkdir(\"/x\", 0777) = 0 <0.250000>\n\
             {pid}{b} <... mkdir resumed>) = 0 <0.100000>\n{pid}{c} rmdir(\"/w\") = 0\n"
        )
    };
    let expected = |times: [&str; 3]| {
        let [x, w, r] = times;
        vec![format!("8.{x} mkdir /x = 0"), format!("7.{w} mkdir /w = 0"), format!("7.{r} rmdir /w = 0")]
    };
    let relative = ["     0.000000", "     0.250000", "     1.500000"];
    assert_eq!(lines(&text(relative, "7 ")).0, expected(["1750", "250", "3500"]));
    // One of several files of `-ff`, or one that lacks its beginning.
    let late = ["     2.000000", "     0.250000", "     1.500000"];
    assert_eq!(lines(&text(late, "7 ")).0, expected(["1750", "250", "3500"]));
    let since_1970 = ["1795940787.0", "1795940788.0", "1795940790.0"];
    assert_eq!(lines(&text(since_1970, "7     ")).0, expected(["3000", "1000", "3000"]));
    let both = ["12:00:00 (+     0.000000)", "12:00:01 (+     0.250000)", "12:00:02 (+     1.500000)"];
    assert_eq!(lines(&text(both, "[pid     7] ")).0, expected(["2000", "1000", "2000"]));
    // Whole seconds are no numbers of threads.
    let whole = ["1795940787", "1795940788", "1795940790"];
    assert_eq!(lines(&text(whole, "7 ")).0, expected(["3000", "1000", "3000"]));
    assert_eq!(lines(&text(["     0", "     0", "     1"], "7 ")).0, expected(["1000", "000", "2000"]));
}

#[test]
fn what_a_killed_or_late_strace_lacks_is_counted() {
    let whole = "7 100.0 mkdir(\"/w\", 0777) = 0 <0.000010>\n";
    let found = |text: &str| {
        let (calls, found) = lines(&(whole.to_owned() + text));
        (calls.len(), found.cut, found.unfinished, found.foreign)
    };
    assert_eq!(found(""), (1, 0, 0, 0));
    // A shorter number would be another result.
    assert_eq!(found("7 100.1 write(3</w/a>, \"x\"..., 4096) = 40"), (1, 1, 0, 0));
    assert_eq!(found("7 100.1 wri"), (1, 1, 0, 0));
    assert_eq!(found("7 10"), (1, 1, 0, 0));
    let long = format!("7 100.1 access(\"/{}\", F_OK) = 0\n{whole}", "x".repeat(3 << 20));
    assert_eq!(found(&long), (2, 1, 0, 0));
    assert_eq!(found("7 100.1 <... read resumed>\"x\", 10) = 1 <0.1>\n"), (1, 0, 1, 0));
    assert_eq!(found("7 100.1 fsync(3</w/a>) = ?\n7 100.1 +++ killed by SIGKILL +++\n"), (1, 0, 1, 0));
    let others = "7 100.1 <... futex resumed>) = 0\n7 100.1 exit_group(0) = ?\n8 100.1 futex(0x7f, <unfinished ...>\n\
                  7 100.1 read(3</w/a>, 0x7f, 9) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n";
    assert_eq!(found(others), (1, 0, 0, 0));
    // A call that an old strace does not know has no name, and is lost.
    let unknown = "7 100.1 syscall_0x1c4(0xffffff9c, 0x556b5ea47008, 0x1a4, 0, 0, 0) = 0 <0.000011>\n";
    assert_eq!(lines(unknown).1.unreadable, 1);
}

#[test]
fn a_text_without_names_and_times_has_what_it_tells() {
    let (found, imported) = lines(
        "open(\"/w/x\", O_RDONLY) = 4\n[pid 12] 23:59:59.5 close(4) = 0\n[pid 12] 00:00:01 close(9) = -1 EBADF (Bad)\n",
    );
    assert_eq!(found[0], "1.000 open /w/x = 4");
    assert!(imported.has_times && found.len() == 1, "{found:?}");
    for text in ["", "hello\n", "int main(void)\n{\n}\n"] {
        assert!(import_strace(text.as_bytes(), TraceScope::default(), |_, _| Ok(())).is_err(), "{text}");
    }
}

#[test]
fn a_question_for_a_terminal_is_of_the_descriptor_only() {
    let text = "7 100.001 ioctl(3</w/a>, TCGETS, 0x7ffe) = -1 ENOTTY (Inappropriate ioctl for device) <0.000010>\n\
                7 100.002 ioctl(3</w/a>, FS_IOC_FIEMAP, 0x7ffe) = 0 <0.000010>\n";
    let mut found = Vec::new();
    import_strace(text.as_bytes(), TraceScope::default(), |event, _| {
        if let TraceEvent::Call(call) = event {
            found.push(call.is_of_descriptor_only());
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [true, false]);
}
