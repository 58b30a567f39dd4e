//! The rows that compare wmlrun with a bare loop: the loop, a script for the same work, and the ratio that is aimed at.

use super::bare::{self, Bare};
use std::path::Path;

/// One row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) threads: usize,
    pub(super) bare: fn(&Path) -> Bare,
    pub(super) script: fn() -> String,
    pub(super) wanted: &'static str,
    /// Whether the bare loop works on the files that wmlrun created. The location of files in memory affects the rate
    /// by a few per cent and does not change while they exist. If `false`, the files are created anew for each slice of
    /// wmlrun.
    pub(super) same_files: bool,
    /// Whether the rate is that of the population instead of the run.
    pub(super) populate: bool,
    pub(super) fio: Option<&'static [&'static str]>,
}

const FIO_4K: &[&str] = &["--rw=randread", "--bs=4k", "--size=256m", "--ioengine=psync"];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "randread",
        about: "random reads of 4k",
        threads: 1,
        bare: |d| bare::randread(d, 1, 4096),
        script: || randread(1, "4k"),
        wanted: "0.97",
        same_files: true,
        populate: false,
        fio: Some(FIO_4K),
    },
    Row {
        name: "randread2",
        about: "random reads of 4k",
        threads: 2,
        bare: |d| bare::randread(d, 2, 4096),
        script: || randread(2, "4k"),
        wanted: "0.97",
        same_files: true,
        populate: false,
        fio: Some(FIO_4K),
    },
    Row {
        name: "randread1b",
        about: "random reads of 1 byte",
        threads: 1,
        bare: |d| bare::randread(d, 1, 1),
        script: || randread(1, "1"),
        wanted: "0.88",
        same_files: true,
        populate: false,
        fio: None,
    },
    Row {
        name: "stat-seq",
        about: "stat of 500,000 files in order",
        threads: 1,
        bare: |d| bare::stat(d, 1, 500_000, false),
        script: || stat(""),
        wanted: "0.85",
        same_files: true,
        populate: false,
        fio: None,
    },
    Row {
        name: "stat-rand",
        about: "stat of 500,000 files at random",
        threads: 1,
        bare: |d| bare::stat(d, 1, 500_000, true),
        script: || stat(",indexed=$any"),
        wanted: "0.90",
        same_files: true,
        populate: false,
        fio: None,
    },
    Row {
        name: "create",
        about: "making 300,000 empty files",
        threads: 1,
        bare: |d| bare::create(d, 1, 300_000),
        script: create,
        wanted: "0.90",
        same_files: false,
        populate: true,
        fio: None,
    },
    Row {
        name: "varmail",
        about: "varmail, 1000 files of 16k",
        threads: 16,
        bare: |d| bare::varmail(d, 16, 1000),
        script: varmail,
        wanted: "0.88",
        same_files: false,
        populate: false,
        fio: None,
    },
    Row {
        name: "webserver",
        about: "webserver, 1000 files of 16k",
        threads: 100,
        bare: |d| bare::webserver(d, 100, 1000),
        script: webserver,
        wanted: "0.88",
        same_files: true,
        populate: false,
        fio: None,
    },
];

fn randread(threads: usize, size: &str) -> String {
    format!(
        "# dialect: fsl\ndefine file name=f,path=$dir,size=256m,prealloc,reuse\n\
         define process name=p,instances=1 {{ thread name=t,memsize={size},instances={threads} {{\n\
           flowop read name=rd,filename=f,iosize={size},random\n}} }}\n"
    )
}

fn stat(how: &str) -> String {
    format!(
        "# dialect: fsl\nset $any = randvar(type=uniform,min=0,mean=250000)\n\
         define fileset name=s,path=$dir,size=0,entries=500000,dirwidth=1000,dirgamma=0,prealloc=100,reuse\n\
         define process name=p,instances=1 {{ thread name=t,memsize=4k,instances=1 {{\n\
           flowop statfile name=st,filesetname=s{how}\n}} }}\n"
    )
}

fn create() -> String {
    "# dialect: fsl\ndefine fileset name=s,path=$dir,size=0,entries=300000,dirwidth=1000,dirgamma=0,prealloc=100\n\
     define process name=p,instances=1 { thread name=t,memsize=4k,instances=1 {\n\
       flowop statfile name=st,filesetname=s\n} }\n\
     run 0.1\n"
        .to_owned()
}

/// Returns a shipped personality with other values of some variables.
fn shipped(name: &str, sets: &[(&str, &str)]) -> String {
    let path = format!("{}/personalities/{name}.wml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a personality");
    text.lines()
        .map(|line| {
            let set = sets
                .iter()
                .find(|(n, _)| line.starts_with(&format!("set ${n}=")) || line.starts_with(&format!("set ${n} =")));
            set.map_or_else(|| format!("{line}\n"), |(n, v)| format!("set ${n}={v}\n"))
        })
        .collect()
}

fn varmail() -> String {
    shipped("varmail", &[("nfiles", "1000"), ("filesize", "16k"), ("nthreads", "16"), ("memperthread", "1m")])
}

/// Returns `webserver` with all files of 16k in one directory, as the bare loop expects them, and reused in the
/// following slices.
fn webserver() -> String {
    let sizes = [("filesize", "16k"), ("filesizes", "16k"), ("meandirwidth", "1000")];
    let script = shipped("webserver", &[&[("nthreads", "100"), ("memperthread", "1m")], &sizes[..]].concat());
    script.replace("readonly", "readonly,reuse,dirgamma=0")
}
