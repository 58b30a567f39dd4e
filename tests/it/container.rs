//! Tests the program as an unprivileged user with few resources, as in a container: little memory, few threads, one
//! processor, a home directory that is not writable, no `/sys`.
//!
//! The main job runs with small files, or is refused with the reason. Nothing is left behind in either case.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cmd::{binary, has, skip};
use crate::undisturbed::undisturbed;

const MEMORY: u64 = 256 << 20;
const PIDS: &str = "64";

/// Control groups with these limits, of whichever version the machine has. Dropped, they are removed.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn new() -> Option<Self> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("wmlrun-test-{}-{number}", std::process::id());
        let top = Path::new("/sys/fs/cgroup");
        let bytes = MEMORY.to_string();
        let limits: Vec<(PathBuf, &str, &str)> = if top.join("cgroup.controllers").exists() {
            vec![(top.join(&name), "memory.max", &bytes), (top.join(&name), "pids.max", PIDS)]
        } else {
            vec![
                (top.join("memory").join(&name), "memory.limit_in_bytes", &bytes),
                (top.join("pids").join(&name), "pids.max", PIDS),
            ]
        };
        let mut groups = Self(Vec::new());
        for (dir, file, value) in limits {
            if !groups.0.contains(&dir) {
                fs::create_dir(&dir).ok()?;
                groups.0.push(dir.clone());
            }
            fs::write(dir.join(file), value).ok()?;
        }
        Some(groups)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in &self.0 {
            // Empty as soon as the last process is gone.
            for _ in 0..100 {
                if fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

/// A directory that anybody may use, with the program in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("wmlrun-container-").tempdir_in("/tmp").unwrap();
        fs::copy(binary(), dir.path().join("wmlrun")).unwrap();
        for name in ["work", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["", "work", "wmlrun"] {
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        Self(dir)
    }

    /// Runs the program in the groups, as the user `nobody`, on one processor, with `/sys` hidden or not.
    fn run(&self, groups: &Groups, hide_sys: bool, args: &str) -> Output {
        let dir = self.0.path().display();
        let enter: String = groups.0.iter().map(|g| format!("echo $$ > {}/cgroup.procs && ", g.display())).collect();
        let hide = if hide_sys { "mount -t tmpfs none /sys && " } else { "" };
        let inside = format!(
            "{hide}mount --bind {dir}/home {dir}/home && mount -o remount,bind,ro {dir}/home && cd {dir}/work && \
             exec env HOME={dir}/home taskset -c $(taskset -cp $$ | sed 's/.*[ ,-]//') \
             setpriv --reuid=65534 --regid=65534 --clear-groups {dir}/wmlrun {args}"
        );
        let script = format!("{enter}exec unshare -m sh -c \"$0\"");
        Command::new("sh").args(["-c", &script, &inside]).output().unwrap()
    }

    #[track_caller]
    fn assert_clean(&self, output: &Output) -> String {
        let shown = String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
        assert!(output.status.code().is_some_and(|code| code < 126), "{}\n{shown}", output.status);
        assert!(!shown.contains("panicked"), "{shown}");
        let left: Vec<_> = fs::read_dir(self.0.path().join("work")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.is_empty(), "left behind: {left:?}\n{shown}");
        shown
    }
}

#[test]
fn the_main_job_runs_small_or_is_refused_with_the_reason() {
    let tools = ["unshare", "setpriv", "taskset", "mount"].into_iter().all(has);
    if !rustix::process::geteuid().is_root() || !tools {
        return skip("it needs root, unshare, setpriv, taskset and mount");
    }
    // Not where the root directory is no mount point, as in a chroot.
    if !Command::new("unshare").args(["-m", "true"]).output().unwrap().status.success() {
        return skip("mount namespaces can't be created");
    }
    let Some(groups) = Groups::new() else { return skip("control groups can't be created") };
    let place = Place::new();
    let small = "oltp_sync --runtime 0.2 --no-quiesce --set nshadows=10 --set ndbwriters=2 --set filesize=4m --set logfilesize=1m \
                 --set directio=0";
    for hide_sys in [false, true] {
        // As it is: more threads than are allowed.
        let output =
            place.run(&groups, hide_sys, "oltp_sync --runtime 0.2 --no-quiesce --set filesize=1m --set directio=0");
        let shown = place.assert_clean(&output);
        assert_eq!(output.status.code(), Some(3), "{shown}");
        assert!(shown.contains("pids.max") && shown.contains("help:"), "{shown}");
        // Small.
        let output = place.run(&groups, hide_sys, small);
        let shown = place.assert_clean(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}");
    }
    // More memory than there is, where the limit can be read.
    let script = "define process name=p { thread name=t,memsize=300m { flowop hog name=h,value=100 } }\n";
    fs::write(place.0.path().join("home/m.wml"), script).unwrap();
    let output = place.run(&groups, false, "../home/m.wml --runtime 0.2");
    let shown = place.assert_clean(&output);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("300") && shown.contains("of memory"), "{shown}");
}

/// A limit on the threads of an unprivileged user: the run is refused with the reason, or completes.
#[test]
fn a_limit_on_threads_of_the_user_is_refused_or_enough() {
    if !rustix::process::geteuid().is_root() || !["setpriv", "prlimit"].into_iter().all(has) {
        return skip("it needs root, setpriv and prlimit");
    }
    undisturbed(|| {
        let place = Place::new();
        // A user of its own: the limit counts the threads of all of a user's processes.
        let user = 1_000_000_000 + std::process::id();
        let script = "define fileset name=data,path=$dir,entries=20,size=4k,dirwidth=10,prealloc\n\
        define process name=p { thread name=t,instances=8 { flowop read name=r,filesetname=data,iosize=4k } }\n";
        fs::write(place.0.path().join("home/x.wml"), script).unwrap();
        let run = |most: u32, words: &[&str], input: &str| {
            let text = format!(
                "cd '{0}/work' && exec prlimit --nproc={most}:{most} setpriv --reuid={user} --regid={user} --clear-groups \
             env HOME='{0}/home' '{0}/wmlrun' \"$@\"",
                place.0.path().display()
            );
            let mut child = Command::new("sh")
                .args(["-c", &text, "sh"])
                .args(words)
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            // One that is refused reads nothing.
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
            child.wait_with_output().unwrap()
        };
        let mut codes = Vec::new();
        for most in [1, 2, 3, 5, 8, 9, 10, 12, 14, 40] {
            let output = run(most, &["../home/x.wml", "--runtime", "0.5", "--no-quiesce"], "");
            let shown = place.assert_clean(&output);
            let code = output.status.code().unwrap();
            assert!(matches!(code, 0 | 3), "{most}: {code}\n{shown}");
            assert!(code == 0 || shown.contains("thread") && shown.contains("help:"), "{most}: {shown}");
            codes.push(code);
            // The shell reads its input in a thread of its own.
            let output = run(most, &["repl"], "echo \"it was read\"\n");
            let shown = place.assert_clean(&output);
            let code = output.status.code().unwrap();
            assert!(
                code == 0 && shown.contains("it was read") || code == 3 && shown.contains("help:"),
                "{most}: {shown}"
            );
        }
        assert_eq!((codes.first(), codes.last()), (Some(&3), Some(&0)), "{codes:?}");
    });
}
