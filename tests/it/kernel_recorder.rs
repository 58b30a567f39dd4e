//! Tests where `wmlrun record` by programs in the kernel can't be used: the reason is named, and ptrace takes its place.
//! Whether each call is seen once is tested in `src/trace/bpf`.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::cmd::{binary, disk, has};
use crate::truth::has_bpf;

#[test]
fn where_the_kernel_has_no_types_the_reason_is_named_and_ptrace_is_used() {
    needs!(has_bpf());
    needs!(rustix::process::geteuid().is_root() && has("unshare"), "needs root and unshare");
    let dir = TempDir::new_in(disk()).unwrap();
    let run = |more: &str| {
        let _ = fs::remove_file(dir.path().join("t.wtrace"));
        let script = format!(
            "mount -t tmpfs none /sys/kernel/btf && {} record {more} -o {}/t.wtrace -- true",
            binary().display(),
            dir.path().display()
        );
        let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = run("");
    assert!(said.contains("note: by ptrace: eBPF needs the types of the kernel") && status == Some(0), "{said}");
    let (status, said) = run("--by bpf");
    assert!(said.contains("can't record: eBPF needs the types of the kernel") && status == Some(3), "{said}");
}
