//! Tests the state of the page cache at the start of a run: it is the requested one, it is measured, and it is compared
//! with the bytes that the devices transferred.

use serde_json::Value;

use crate::cmd::{Wml, number, short_or_long};
use crate::mounts::{self, Fs, Mount};
use crate::strace;
use crate::undisturbed::undisturbed;

/// One file, read once from its start to its end.
const SCRIPT: &str = "# dialect: fsl\n\
    set $size=64m\n\
    set $blocks=64\n\
    set $cached=false\n\
    define file name=big,path=$dir,size=$size,prealloc,reuse,cached=$cached\n\
    define process name=p { thread name=t,memsize=1m {\n\
      flowop read name=rd,filename=big,iosize=1m\n\
      flowop finishoncount name=all,value=$blocks,target=rd\n\
    } }\n";

fn call(mount: &Mount, cached: &str, options: &[&str]) -> Wml {
    let (size, blocks) = short_or_long(("64m", "64"), ("1g", "1024"));
    let call = Wml::new().file("w.wml", SCRIPT).args(["w.wml", "--runtime", "60", "--dir"]).args([mount.dir()]);
    call.args(options.iter().copied()).sets(&[("size", size), ("blocks", blocks), ("cached", cached)])
}

fn run(call: Wml) -> Value {
    let mut run = call.result().run().exits(0).only_run();
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
    let set = run["filesets"][0].take();
    run["set"] = set;
    run
}

fn image() -> u64 {
    short_or_long(512 << 20, 2 << 30)
}

/// Bytes that the devices read, in bytes that were asked for. Everything else on the machine reads from those devices too, so
/// that the least of a few runs is taken.
fn moved(mount: &Mount, cached: &str) -> (f64, Value) {
    let runs = (0..5).map(|_| {
        let run = run(call(mount, cached, &[]).alone());
        (number(&run, &["set", "device_bytes", "read"]) / number(&run, &["set", "asked_bytes", "read"]), run)
    });
    let mut least: Option<(f64, Value)> = None;
    for (share, run) in runs {
        if least.as_ref().is_none_or(|(other, _)| share < *other) {
            least = Some((share, run));
        }
        if least.as_ref().is_some_and(|(share, _)| *share <= 0.02 || (0.98..=1.02).contains(share)) {
            break;
        }
    }
    least.unwrap()
}

#[test]
fn a_cold_file_comes_from_the_disk_and_a_warm_one_from_memory() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Ext4]));
        let mount = Mount::on_disk(Fs::Ext4, image(), true);
        let (share, cold) = moved(&mount, "false");
        assert_eq!(cold["cache_state"], "cold");
        assert!(number(&cold, &["set", "resident_before"]) <= 0.01);
        // The kernel may reclaim some of it at any moment.
        assert!(number(&cold, &["set", "resident_after"]) >= 0.9, "it has been read since");
        assert!((0.98..=1.02).contains(&share), "{share} of the requested bytes");
        assert_eq!(cold["set"]["verdict"], "device");

        let (share, warm) = moved(&mount, "true");
        assert_eq!(warm["cache_state"], "warm");
        assert!(number(&warm, &["set", "resident_before"]) >= 0.9);
        assert!(share <= 0.02, "{share} of the requested bytes");
        assert_eq!(warm["set"]["verdict"], "memory");
    });
}

#[test]
fn the_stack_of_devices_is_named_from_top_to_bottom() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Ext4]));
        let mount = Mount::on_disk(Fs::Ext4, image(), true);
        let call = Wml::new().file("w.wml", SCRIPT).args(["w.wml", "--dir"]).args([mount.dir()]);
        let mounts = call.result().run().exits(0).only_run()["environment"]["mounts"].take();
        let devices = mounts[0]["devices"].as_array().unwrap();
        let top = mount.device().unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(devices[0]["name"], top.as_str());
        assert_eq!(devices[0]["direct_io"], true);
        assert_eq!(devices[0]["size"], image());
        assert!(devices.iter().skip(1).all(|device| device["direct_io"].is_null() || device["direct_io"] == true));
    });
}

#[test]
fn the_command_line_makes_any_run_cold() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Ext4]));
        let mount = Mount::on_disk(Fs::Ext4, image(), true);
        let run = run(call(&mount, "true", &["--cold"]));
        assert_eq!(run["cache_state"], "cold");
        assert!(number(&run, &["set", "resident_before"]) <= 0.01);
        assert_eq!(run["set"]["verdict"], "device");
    });
}

#[test]
fn with_a_buffered_loop_device_no_set_is_reported_as_cold() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Ext4]));
        let mount = Mount::on_disk(Fs::Ext4, image(), false);
        let run = run(call(&mount, "false", &[]));
        assert!(number(&run, &["set", "resident_before"]) <= 0.01, "above the loop it is evicted");
        assert_eq!(run["cache_state"], "unknown below");
        assert_eq!(run["set"]["verdict"], "unknown below");
        let codes: Vec<_> = run["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
        assert!(codes.contains(&"cache_unknown"), "{codes:?}");
    });
}

/// Memory can't be cold, whatever a script says.
#[test]
fn files_in_memory_are_never_cold() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Tmpfs]));
        let mount = Mount::new(Fs::Tmpfs, image() + (64 << 20));
        let run = run(call(&mount, "false", &[]));
        assert_eq!(run["cache_state"], "as-is");
        assert!(number(&run, &["set", "resident_before"]) >= 0.99);
        assert_eq!(run["set"]["verdict"], "memory");
        assert!(run["set"]["device_bytes"].is_null());
    });
}

#[test]
fn dirty_data_is_waited_for_or_recorded() {
    undisturbed(|| {
        needs!(mounts::available(&[Fs::Ext4]));
        let mount = Mount::on_disk(Fs::Ext4, image(), true);
        // Without `cached` nothing else would wait.
        let script = SCRIPT.replace(",cached=$cached", "").replace("set $cached=false\n", "").replace(",reuse", "");
        for (options, quiesced) in [(&[][..], true), (&["--no-quiesce"][..], false)] {
            let call = Wml::new().file("w.wml", &script).args(["w.wml", "--dir"]).args([mount.dir()]);
            let run = call.args(options.iter().copied()).result().run().exits(0).only_run();
            assert_eq!(run["quiesced"], quiesced);
            assert_eq!(run["cache_state"], "as-is");
            assert!(run["set"].is_null() && number(&run["filesets"][0], &["sync_seconds"]) >= 0.0);
        }
    });
}

/// A script that drops the inodes of the machine before a run expects a cold start. The checks of the file sets after a
/// `system` read them again.
#[test]
fn caches_that_a_script_drops_are_dropped_again_after_the_checks() {
    needs!(strace::available());
    let drops = |cached: &str, create: &str, command: &str| {
        let text = format!(
            "define fileset name=s,path=$dir,entries=5,size=4k,dirwidth=5,prealloc{cached}\n\
             define process name=p {{ thread name=t {{ flowop statfile name=st,filesetname=s }} }}\n\
             {create}system \"{command}\"\nrun 0.1\nrun 0.1\n"
        );
        let call = Wml::new().file("x.wml", &text).args(["x.wml", "--no-quiesce", "--allow-system"]);
        let output = call.under(["strace", "-f", "-e", "trace=openat", "-o", "calls"]).run().exits(0);
        let calls = std::fs::read_to_string(output.dir().join("calls")).unwrap();
        let tries = calls.lines().filter(|call| call.contains("\"/proc/sys/vm/drop_caches\"")).count();
        let is_noted = output.stderr.contains("has read directories and inodes again");
        (tries, is_noted)
    };
    // The commands only look as if they dropped anything. Where the program may not do it either, a note says so.
    let (tries, is_noted) = drops("", "create files\n", "true 3 drop_caches");
    assert_eq!(tries, 1, "for the first run only");
    let may_drop = std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches").is_ok();
    assert_eq!(is_noted, !may_drop);
    assert_eq!(drops("", "create files\n", "true"), (0, false));
    assert_eq!(drops("", "", "true 3 drop_caches"), (0, false), "the files are created after the command");
    assert_eq!(drops(",cached=true", "create files\n", "true 3 drop_caches"), (0, true), "the set is to be cached");
}
