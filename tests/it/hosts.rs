//! Tests `--hosts`: the words of the launcher, and what is said of a host without the program, or with another build of it.
//!
//! The build with MPI runs on two hosts that are network namespaces; the other one has a launcher that starts everything
//! on this machine.

use crate::cmd::{Output, Wml};

#[cfg(not(feature = "mpi"))]
mod without_mpi {
    use super::*;
    use rustix::process::Signal;

    /// A launcher that runs its command once for each rank, with the name of the host in `ON`.
    const MPIRUN: &str = r#"#!/bin/sh
case $1 in --allow-run-as-root) shift;; esac
[ "$1 $2 $3 $5" = "--bind-to none -np --host" ] || exit 99
list=$6 ranks=$4
shift 6
for entry in $(echo "$list" | tr , ' '); do
  for rank in $(seq "${entry#*:}"); do ranks=$((ranks - 1)); ON=${entry%:*} "$@" || exit; done
done
[ "$ranks" = 0 ] || exit 98
"#;

    /// A program whose version on a host may be another one.
    const PROGRAM: &str = r#"#!/bin/sh
case $1 in
--version) if [ -f "$BIN/$ON" ]; then exec cat "$BIN/$ON"; fi; echo 'wmlrun 2 (new)'; echo 'build 1, Open MPI';;
*) echo "$ON:" "$@";;
esac
"#;

    /// A call in a directory with these programs in `bin`, which is all that it finds besides those of the system.
    fn call(programs: &[(&str, &str)]) -> Wml {
        let mut wml = Wml::new().folder("bin");
        for (name, text) in programs {
            wml = wml.file(&format!("bin/{name}"), text);
            if text.starts_with("#!") {
                let path = wml.dir().join("bin").join(name);
                std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            }
        }
        let bin = wml.dir().join("bin").display().to_string();
        // `mpirun.openmpi` of the system would be found first.
        for tool in ["sh", "cat", "seq", "tr", "date", "sed", "stat", "ls", "sleep"] {
            let path = [format!("/usr/bin/{tool}"), format!("/bin/{tool}")]
                .into_iter()
                .find(|path| std::fs::exists(path).unwrap());
            std::os::unix::fs::symlink(path.unwrap(), format!("{bin}/{tool}")).unwrap();
        }
        wml.env("PATH", bin.clone()).env("BIN", bin)
    }

    const BOTH: [(&str, &str); 2] = [("mpirun", MPIRUN), ("wmlrun-mpi", PROGRAM)];

    fn started(programs: &[(&str, &str)], words: &[&str]) -> Output {
        call(programs).args(words.iter().copied()).run()
    }

    #[test]
    fn each_rank_has_the_words_of_the_command_line() {
        let output = started(&BOTH, &["varmail", "--hosts", "a:2,b", "--set", "nfiles=3"]).exits(0);
        let line = "--as-rank varmail --hosts a:2,b --set nfiles=3";
        assert_eq!(output.stdout, format!("a: {line}\na: {line}\nb: {line}\n"));
        // A host without the current directory would take its home directory.
        let output = started(&BOTH, &["run", "varmail", "--hosts=a", "--dir", "d"]).exits(0);
        let dir = output.dir().join("d").display().to_string();
        assert_eq!(output.stdout, format!("a: run --as-rank varmail --hosts=a --dir {dir}\n"));
        // As the shell names it, unless that is another directory now.
        for (target, whole) in [(".", "link/d"), ("bin", "d")] {
            let wml = call(&BOTH);
            let link = wml.dir().join("link");
            std::os::unix::fs::symlink(target, &link).unwrap();
            let output = wml.env("PWD", &link).args(["varmail", "--hosts", "a", "--dir", "d"]).run().exits(0);
            let whole = output.dir().join(whole);
            assert!(output.stdout.ends_with(&format!("--dir {}\n", whole.display())), "{}", output.stdout);
        }
    }

    /// A launcher that gets the user's signal ends before its ranks do. It gets one that it passes on to them.
    #[test]
    fn the_users_signal_reaches_the_launcher_as_one_that_it_passes_on() {
        const WAITS: &str = r#"#!/bin/sh
case "$*" in *--version*) exec wmlrun-mpi --version;; esac
for signal in INT TERM USR1 USR2; do trap "echo $signal; exit" $signal; done
: >ready
while :; do sleep 0.1; done
"#;
        for (sent, passed_on) in [(Signal::INT, "USR1\n"), (Signal::TERM, "USR2\n")] {
            let mut running = call(&[("mpirun", WAITS), BOTH[1]]).args(["varmail", "--hosts", "a"]).start();
            running.wait_until_exists("ready");
            running.signal(sent);
            assert_eq!(running.wait().exits(128 + sent.as_raw()).stdout, passed_on);
        }
    }

    #[test]
    fn what_is_missing_is_one_message_with_package_and_image() {
        for (programs, missing) in
            [(&[][..], "`wmlrun-mpi` and `mpirun`"), (&BOTH[..1], "`wmlrun-mpi`"), (&BOTH[1..], "`mpirun`")]
        {
            let output = started(programs, &["varmail", "--hosts", "a:2,b:2"]).exits(3);
            let says = format!("error: `--hosts` needs {missing}, which is not in PATH");
            assert!(output.stderr.starts_with(&says), "{}", output.stderr);
            assert_eq!(output.stderr.matches("error").count(), 1, "{}", output.stderr);
            assert!(output.stderr.contains("apt install ./wmlrun_") && output.stderr.contains("image wmlrun-mpi:"));
        }
    }

    #[test]
    fn a_host_with_another_build_is_named_with_its_words() {
        let older = [("b", "wmlrun 1 (old)\n")];
        let output = started(&[&BOTH[..], &older].concat(), &["varmail", "--hosts", "a:2,b,c"]).exits(3);
        let named = "error: host `b` does not have the build of this one: wmlrun 1 (old)\n";
        assert!(output.stderr.starts_with(named), "{}", output.stderr);
        assert!(output.stderr.contains("wmlrun 2 (new); build 1") && output.stderr.matches("error").count() == 1);
    }

    #[test]
    fn doctor_says_in_ten_lines_what_is_missing_where() {
        let older = [("b", "wmlrun 1 (old)\n")];
        let output = started(&[&BOTH[..], &older].concat(), &["doctor", "--hosts", "a,b,c", "nowhere"]).exits(11);
        assert!(output.stdout.lines().count() <= 10, "{}", output.stdout);
        for says in
            ["ok       login", "not fit  build", "b: wmlrun 1 (old)", "not fit  directory", "nowhere", "ok       clock"]
        {
            assert!(output.stdout.contains(says), "{says}: {}", output.stdout);
        }
        let output = started(&BOTH, &["doctor", "--hosts", "a,b", "."]).exits(0);
        assert!(output.stdout.contains(", the same on all hosts: "), "{}", output.stdout);
        assert!(output.stdout.ends_with("\nfit to measure\n"), "{}", output.stdout);
        let output = started(&BOTH[1..], &["doctor", "--hosts", "a,b"]).exits(11);
        assert!(output.stdout.starts_with("not fit  launcher no `mpirun` in PATH"), "{}", output.stdout);
    }

    #[test]
    fn the_shell_and_wrong_hosts_are_refused() {
        assert!(started(&BOTH, &["repl", "--hosts", "a"]).exits(2).stderr.contains("the shell runs on one host"));
        let help = started(&BOTH, &["repl", "--help"]).exits(0).stdout;
        assert!(help.contains("--live") && !help.contains("--hosts"), "{help}");
        assert!(started(&BOTH, &["varmail", "--hosts=-x"]).exits(2).stderr.contains("`-x` is not a host"));
    }
}

#[cfg(feature = "mpi")]
mod with_mpi {
    use super::*;
    use crate::cmd::binary;
    use crate::mpi::{Hosts, counts_agree};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use std::time::Duration;

    /// A call by `--hosts` with the program in the hosts' folder `bin`.
    fn call(hosts: &Hosts, net: u8, words: &[&str]) -> Output {
        let program = hosts.dir().join("bin/wmlrun");
        let in_its_place = format!("shift; exec {} \"$@\"", program.display());
        let mut wml = Wml::new().folder("d").under(["sh", "-c", &in_its_place, "sh"]).timeout(Duration::from_mins(3));
        for (name, value) in hosts.parameters(net) {
            wml = wml.env(Box::leak(format!("OMPI_MCA_{name}").into_boxed_str()), value);
        }
        let wml = wml.args(words.iter().copied());
        if words[0] == "doctor" { wml.run() } else { wml.result().run() }
    }

    #[test]
    fn varmail_runs_on_two_hosts() {
        let hosts = Hosts::new(["wmk1", "wmk2"], 21);
        let bin = hosts.dir().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::copy(binary(), bin.join("wmlrun")).unwrap();
        let words = [
            "varmail",
            "--hosts",
            "wmk1:2,wmk2:2",
            "--dir",
            "d",
            "--share",
            "all",
            "--no-quiesce",
            "--clean",
            "--runtime",
            "2",
        ];
        let words = [&words[..], &["--set", "nfiles=200"]].concat();
        let output = call(&hosts, 21, &words).exits(0);
        let run = output.only_run();
        assert_eq!(run["state"], "complete", "{run:#}");
        counts_agree(&run, 4);
        let has_row = |host: &str| output.stdout.lines().any(|line| line.starts_with(&format!("{host}  ")));
        assert!(has_row("wmk1") && has_row("wmk2"), "{}", output.stdout);

        // The second host has no program, and then another one.
        let own = hosts.dir().join("wmk2-bin");
        fs::create_dir(&own).unwrap();
        let refused = call(&hosts, 21, &words).exits(3);
        assert!(
            refused.stderr.contains("host `wmk2` does not have the build of this one: ")
                && refused.stderr.contains("not found"),
            "{}",
            refused.stderr
        );
        fs::write(own.join("wmlrun"), "#!/bin/sh\necho wmlrun 0.0.9\n").unwrap();
        fs::set_permissions(own.join("wmlrun"), fs::Permissions::from_mode(0o755)).unwrap();
        let refused = call(&hosts, 21, &words).exits(3);
        assert!(refused.stderr.contains("the build of this one: wmlrun 0.0.9\n"), "{}", refused.stderr);
        let doctor = call(&hosts, 21, &["doctor", "--hosts", "wmk1,wmk2", "d"]);
        assert!(doctor.stdout.contains("not fit  build"), "{}", doctor.shown());

        // No process can be started on a host that does not exist.
        let _ = Command::new("ip").args(["netns", "del", "wmk2"]).status();
        let refused = call(&hosts, 21, &words).exits(3);
        assert!(refused.stderr.contains("nothing can be started on host `wmk2`: "), "{}", refused.stderr);
        assert!(refused.stderr.matches("error").count() >= 1, "{}", refused.stderr);
    }
}
