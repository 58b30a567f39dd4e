//! Tests sixteen sessions that were recorded with Filebench 1.4.8: the output is the same, or a row of
//! docs/compatibility.md has the difference.

use std::fs;

use crate::cmd::{Output, Wml, count, flowop, memory};
use crate::undisturbed::undisturbed;
use crate::vectors_15::{brief, good, layout, ops, row, script, sizes};

/// The lines of its standard output.
fn lines(output: &Output) -> Vec<&str> {
    output.stdout.lines().collect()
}

/// Runs a script that only prints.
fn prints(text: &str) -> Output {
    script(text).run().exits(0)
}

/// A file set and a process that read it.
const SMALL: &str = "\
define fileset name=s,path=$dir,size=4k,filesizegamma=0,entries=20,dirwidth=5,prealloc
define process name=p,instances=1 {
  thread name=t,memsize=1m,instances=2 {
    flowop openfile name=op,filesetname=s,fd=1
    flowop readwholefile name=rd,fd=1,iosize=1m
    flowop closefile name=cl,fd=1
  }
}
";

/// Figures out of a line, so that its form is left: `9.9ops/s` becomes `#ops/s`.
pub(crate) fn form(line: &str) -> String {
    let mut form = String::new();
    let mut number = false;
    for c in line.chars() {
        let digit = c.is_ascii_digit() || (number && c == '.');
        if digit && !number {
            form.push('#');
        } else if !digit {
            form.push(c);
        }
        number = digit;
    }
    form.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn o01_a_banner_and_the_line_of_an_error() {
    row("banner, prompt");
    assert!(prints("version\n").stdout.starts_with("wmlrun "));
    let output = script("set $a=1\nfrobnicate\n").run().exits(2);
    assert!(output.stderr.contains("script.f:2:1"), "{}", output.stderr);
}

#[test]
fn o02_help_is_the_usage_of_what_was_loaded() {
    row("`usage`");
    let own =
        "set $nfiles=77\necho \"own loaded\"\nusage \"set \\$nfiles=<value>   defaults to $nfiles\"\nusage \"more\"\n";
    let call = Wml::below(&memory()).file("own.f", own).file("s.f", "help\nload own\nhelp\n").args(["s.f"]);
    let output = call.run().exits(0);
    let got = lines(&output);
    assert!(got[0].starts_with("load <personality>"), "{got:?}");
    assert_eq!(got[1..], ["own loaded", "set $nfiles=<value>   defaults to 77", "more"]);
    // A file in the working directory goes before a shipped one.
    let call = Wml::below(&memory()).file("webproxy.f", own).file("s.f", "load webproxy\nhelp\n").args(["s.f"]);
    assert!(call.run().exits(0).stdout.contains("defaults to 77"));
}

#[test]
fn o03_vars_are_the_variables_that_the_scripts_set() {
    let output = prints("set $nfiles=1\nset $meandirwidth=20\nset $filesize=16k\nset $nfiles=2\nvars\n");
    assert_eq!(lines(&output), [" nfiles  meandirwidth  filesize  "]);
}

#[test]
fn o04_list_is_a_table_of_file_sets() {
    row("`list`");
    let text = "define fileset name=s,path=$dir,size=16k,filesizegamma=0,entries=20,dirwidth=5\n\
        define file name=one,path=$dir,size=2k\nlist\nlist fileset\n";
    let output = prints(text);
    let dir = output.dir().join("files").display().to_string();
    let got: Vec<_> = lines(&output).iter().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(got[0], "File or Fileset name file size dir width entries");
    assert_eq!(got[1], format!("{dir}/one 2048 (Single File)"));
    assert_eq!(got[2], format!("{dir}/s 16384 5 20"));
    assert_eq!(got[..3], got[3..]);
}

#[test]
fn o05_progress_is_printed_besides_the_report() {
    row("progress");
    let run = |format: &str| script(&format!("{SMALL}run 1\n")).args(["--format", format]).run().exits(0);
    let output = run("text");
    assert!(output.stderr.contains("creating s: 20 files, 80.0 KiB"), "{}", output.stderr);
    assert!(output.stderr.contains("running for 1 s: 1 process, 2 threads"), "{}", output.stderr);
    let output = run("filebench-1.4");
    assert!(!["creating", "running for"].iter().any(|word| output.stderr.contains(word)), "{}", output.stderr);
    let first = form(lines(&output)[0]);
    assert_eq!(first, "#: #: Running...");
}

#[test]
fn o06_the_report_has_its_lines_in_reverse_order() {
    let output =
        script(&format!("{SMALL}run 1\n")).args(["--runtime", "0.3", "--format", "filebench-1.4"]).run().exits(0);
    let got: Vec<_> = lines(&output).into_iter().map(form).collect();
    let flowop = |name: &str| format!("{name} #ops/s #mb/s #ms/op #us/op-cpu");
    let expect = [
        "#: #: Running...".to_owned(),
        "#: #: Run took # seconds...".to_owned(),
        "#: #: Per-Operation Breakdown".to_owned(),
        flowop("cl"),
        flowop("rd"),
        flowop("op"),
        String::new(),
        "#: #:".to_owned(),
        "IO Summary: # ops, # ops/s, (#/# r/w) #mb/s, #us cpu/op, #ms latency".to_owned(),
        "#: #: Shutting down processes".to_owned(),
    ];
    assert_eq!(got, expect);
    row("`deletefile` of a file that others have open");
}

#[test]
fn o07_a_second_run_in_a_session_works() {
    row("`run`");
    let output = brief(&format!("{SMALL}run 1\nset $unused=1\nrun 1\n"));
    let result = output.result();
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["state"] == "complete" && ops(run, "rd") > 0));
    // What lies on the disk already is not made again.
    assert_eq!(output.stderr.matches("creating s").count(), 1, "{}", output.stderr);
}

#[test]
fn o08_statistics_files_have_the_format_of_filebench() {
    let output = good(&format!(
        "{SMALL}create filesets\ncreate processes\nstats clear\nsleep 1\nstats snap\nstats directory out\n\
         stats dump \"d\"\nstats multidump \"m\"\nstats xmldump \"x\"\nshutdown processes\n"
    ));
    let file = |name: &str| fs::read_to_string(output.dir().join("out").join(name)).unwrap();
    let forms = |text: &str| text.lines().map(form).collect::<Vec<_>>();
    let flowop = |name: &str| format!("{name} #ops/s #mb/s #ms/op #us/op-cpu");
    let summary = "IO Summary: # ops # ops/s, #/# r/w #mb/s, #uscpu/op";
    let expect = ["Flowop totals:", &flowop("cl"), &flowop("rd"), &flowop("op"), "", summary, ""];
    assert_eq!(forms(&file("d")), expect);
    let multi = file("m");
    let expect = ["Flowop totals:", "cl # # # #", "rd # # # #", "op # # # #", "", "IO Summary:", "# # # # # # #"];
    assert_eq!(forms(&multi), expect);
    assert!(multi.lines().filter(|l| l.contains('\t')).count() == 4, "parted by tabs");
    let xml = file("x");
    assert!(
        xml.starts_with("<stat_doc name=\"Filebench Workload\">\n<stat_group name=\"Flowop totals\">\n<cell_list>\n")
    );
    let cells = |part: &str| part.matches("<cell>").count();
    let (totals, summary) = xml.split_once("<stat_group name=\"IO Summary\">").unwrap();
    assert_eq!((cells(totals), cells(summary)), (3 * 4, 6));
    assert!(totals.contains("<dimval>Latency (ms per operation)</dimval>") && xml.ends_with("</stat_doc>\n"));
}

#[test]
fn o09_the_flowops_of_oltp_sync_have_the_ratios_of_the_script() {
    undisturbed(|| {
        // Counted from gate to end, and not between two readings of threads that go on meanwhile: those see unlike moments.
        let script = "load oltp_sync\nrun 1\n";
        let call =
            Wml::below(&memory()).file("s.f", script).args(["s.f", "--no-quiesce", "--set", "filesize=2m"]).result();
        let run = call.sets(&[("nshadows", "4"), ("ndbwriters", "3"), ("usermode", "100")]).run().exits(0).only_run();
        let posts = ops(&run, "shadow-post-dbwr");
        assert!(posts > 2000, "{posts}");
        assert!(ops(&run, "shadow-post-lg").abs_diff(posts) <= 4 + 1000 + 3200, "both kinds of post");
        let (logs, writers) = (ops(&run, "lg-block"), ops(&run, "dbwr-block"));
        // The run may end in the middle of a count.
        assert!(logs <= posts / 3200 + 2 && logs + 2 >= posts / 3200, "{logs} of {posts}");
        assert!(writers <= 3 * (posts / 1000 + 2) && writers + 6 >= 3 * (posts / 1000), "{writers} of {posts}");
        assert!(ops(&run, "dbwrite-a") >= 100 * writers.saturating_sub(3));
    });
}

#[test]
fn o10_arithmetic_and_the_environment() {
    row("`${date}`");
    let text = "set $aa=5\nset $cc=$aa * 3\nset $dd=10 / 4\nset $ee = $dd - 1\nset $aa=6\n\
        echo \"$cc $dd $ee home $(WORDS) script ${scriptname} ${rate} ${stats.iocount}\"\n";
    let output = script(text).env("WORDS", "a b").run().exits(0);
    // The left side is read when the value is: after `set $aa=6`.
    assert_eq!(lines(&output), ["18 2 1 home a b script script 0 0"]);
    let date = prints("echo \"${date}\"\n").stdout;
    assert!(form(&date).starts_with("#-#-#T#:#:#Z"), "{date}");
}

#[test]
fn o11_fields_of_random_variables_can_be_set_and_read() {
    let text = "define randvar name=$rv, type=uniform, min=1k, mean=4k\nset $rv.mean=8k\n\
        echo \"rv $rv\"\necho \"mean $rv.mean\"\necho \"$rv.type $rv.min $rv.seed $rv.round\"\n";
    assert_eq!(lines(&prints(text)), ["rv uniform random var", "mean 8192", "uniform 1024 0 0"]);
    row("a second `.field` in a string");
}

#[test]
fn o12_plain_sizes_are_means_in_the_old_dialect() {
    let files = |more: &str| {
        let text = format!(
            "# dialect: sun\ndefine fileset name=s,path=$dir,size=16k,entries=20,dirwidth=5{more},prealloc\ncreate filesets\n"
        );
        let output = good(&text);
        let widths = layout(&output, "s").into_values().map(|files| files.len()).filter(|n| *n > 0);
        (sizes(&output, "s"), widths.collect::<Vec<_>>())
    };
    let (sizes, widths) = files(",filesizegamma=0");
    assert_eq!((sizes, widths), (vec![16_384; 20], vec![5; 4]));
    let (mut sizes, widths) = files("");
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 10, "sizes scatter: {sizes:?}");
    assert!(widths.iter().any(|w| *w != 5), "and so do directories: {widths:?}");
}

#[test]
fn o13_foreach_prints_each_value() {
    row("`foreach`");
    let output = prints("foreach $nn in 1,2,3 { echo \"nn is $nn\" }\nforeach $ss in \"a b\",\"c\" { echo \"$ss\" }\n");
    assert_eq!(lines(&output), ["nn is 1", "nn is 2", "nn is 3", "a b", "c"]);
    assert!(output.stderr.contains("iterating $nn=1"), "{}", output.stderr);
}

#[test]
fn o14_a_count_ends_the_run_cleanly() {
    let text = "# dialect: sun\ndefine fileset name=s,path=$dir,size=1k,entries=100,dirwidth=20,prealloc\n\
        define process name=p { thread name=t,memsize=1m {\n\
          flowop openfile name=o,filesetname=s,fd=1\n\
          flowop readwholefile name=r,fd=1,iosize=1m\n\
          flowop closefile name=c,fd=1\n\
          flowop finishoncount name=fin,value=300 } }\nrun 20\n";
    let run = good(text).only_run();
    assert_eq!(count(&run["summary"], "ops"), 228);
    assert_eq!((ops(&run, "o"), &run["ended_by"]), (76, &"count reached".into()));
}

#[test]
fn o15_file_sets_are_created_once() {
    row("`create files`");
    let output = brief(&format!("{SMALL}create filesets\nrun 1\ncreate fileset\n"));
    assert_eq!(output.stderr.matches("creating s").count(), 1, "{}", output.stderr);
    assert!(count(flowop(&output.only_run(), "rd"), "ops") > 0);
}

#[test]
fn o16_both_generations_are_accepted() {
    row("both generations");
    let new = "set $sz=randvar(type=gamma,mean=4k)\nset $c=cvar(type=cvar-uniform,parameters=lower:1k;upper:2k)\n\
        define fileset name=s,path=$dir,size=$sz,entries=10,dirwidth=5,prealloc\n\
        define process name=p { thread name=t { flowop read name=r,filesetname=s,iosize=$c,fd=1 } }\npsrun -1 1\n";
    assert!(ops(&good(new).only_run(), "r") > 0);
}
