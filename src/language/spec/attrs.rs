//! Tables of the attributes of file sets, processes, threads, flowops and random variables.
//!
//! To add an attribute, add a line here, read its value where it takes effect, and name it in `uses` of each flowop
//! that reads it. The grammar knows no attribute by name.

use super::{Attr, Kind, Origin, Sharing, find_attr};

const fn attr(name: &'static str, kind: Kind, default: &'static str, origin: Origin, doc: &'static str) -> Attr {
    Attr { name, aliases: &[], kind, random: false, default, origin, doc }
}

const fn drawn(name: &'static str, kind: Kind, default: &'static str, origin: Origin, doc: &'static str) -> Attr {
    Attr { name, aliases: &[], kind, random: true, default, origin, doc }
}

use Kind::{Bool, BoolOr, Choice, Fileset, Int, Name, Path, Percent, Random, Real, Size, Target, Text, Variable};
use Origin::{Both, Fsl, Sun, Wmlrun};

/// Attributes of `define fileset` and `define file`. As in Filebench 1.4 both accept the same ones; those that shape a
/// tree have no effect on a single file.
#[rustfmt::skip]
pub const FILESET: &[Attr] = &[
    attr("name", Name, "", Both, "name that flowops refer to; the tree is created in the directory `path/name`"),
    attr("path", Path, "", Both,
        "directory in which the tree is created; `/a:/b` spreads the files evenly over several"),
    drawn("entries", Int, "0", Both, "number of files; a random variable is drawn once"),
    drawn("leafdirs", Int, "0", Both, "number of empty directories, for `makedir` and `removedir`"),
    Attr {
        aliases: &["filesize"],
        ..drawn("size", Size, "1k (1.5), 0 (1.4)", Both,
            "size of each file in bytes; a random variable is drawn for each file")
    },
    attr("filesizegamma", Int, "1500 (1.4), 0 (1.5)", Sun,
        "shape of the gamma distribution with mean `size` from which file sizes are drawn, in thousandths; 0: all \
         files have the size `size`. No effect if `size` is a random variable"),
    drawn("dirwidth", Int, "0", Both,
        "mean number of entries of a directory, 0 counts as 1; a random variable is drawn for each directory"),
    attr("dirgamma", Int, "1500", Both,
        "shape of the gamma distributions of directory widths and depths, in thousandths; 0: all equal to their mean"),
    attr("dirdepthrv", Random, "", Both,
        "random variable from which the depth of each directory is drawn, scaled to the mean depth of the tree"),
    attr("prealloc", Percent, "0", Both,
        "percentage of the files that exist when the run starts; `prealloc` alone: 100"),
    attr("paralloc", Bool, "false", Both,
        "accepted, without effect: files are always created in parallel (`--populate-threads`)"),
    attr("reuse", Bool, "false", Both,
        "keeps an existing tree of the same layout and only corrects it: creates missing files, adjusts sizes"),
    attr("trusttree", Bool, "false", Both,
        "as `reuse`, but assumes without checking that every file exists and has its size"),
    attr("readonly", Bool, "false", Both, "files are opened read-only (O_RDONLY)"),
    attr("writeonly", Bool, "false", Fsl, "files are opened write-only (O_WRONLY)"),
    attr("perinstance", Bool, "false", Wmlrun, "each process instance has a separate file set: `name.1`, `name.2`, …"),
    attr("share", Choice(Sharing::WORDS), "host", Wmlrun,
        "ranks that share the tree, each with a part of its files: those of a host, all, or all with each rank using \
         the part of the next one (`neighbour`); `--share` sets the default"),
    attr("symlinks", Bool, "false", Wmlrun, "the files of the set are symbolic links, for `readlink`"),
    attr("latedirs", Bool, "false", Wmlrun,
        "each directory is created during the run, when a thread first works in it, not before the run"),
    attr("cached", Bool, "unchanged", Sun,
        "true: the files are read into the page cache before the run; false: they are evicted from it"),
    attr("namelength", Int, "", Sun, "accepted, without effect, as in Filebench"),
    attr("compress", Real, "0", Wmlrun, "fraction of each 4 KiB block of data that is compressible, 0 to 1"),
    attr("dedupe", Real, "0", Wmlrun,
        "fraction of the 4 KiB blocks of data that are duplicates of another block, 0 to 1"),
    attr("fillsize", Size, "1m", Wmlrun,
        "bytes of each write by which files get their data before the run: those of the program that made them"),
    attr("sizetable", Text, "", Wmlrun,
        "number of files in each range of sizes, as rows `UPPER:COUNT` or `LOW-HIGH:COUNT`: `4k:1990612 16k:473044 \
         31m-31m:5`; if `entries` is given, the counts are scaled to it"),
    attr("sizescale", Real, "1", Wmlrun, "number by which the sizes of `sizetable` are multiplied"),
    attr("sizetotal", Size, "", Wmlrun,
        "total size of all files in bytes; sizes are distributed within the rows of `sizetable` to reach it"),
];

/// Attributes of `define process`.
#[rustfmt::skip]
pub const PROCESS: &[Attr] = &[
    attr("name", Name, "", Both, "name of the process in results"),
    drawn("instances", Int, "1", Both, "number of processes; 0: none"),
    drawn("nice", Int, "0", Both, "value added to the niceness of the processes, −40 to 40"),
    attr("phase", Int, "1", Wmlrun,
        "phase in which the processes run; a phase starts when all threads of the previous one have ended"),
    attr("for", Real, "0", Wmlrun,
        "length of the phase in seconds: its threads end after this time, as at the end of a run; 0: none"),
    attr("start", Real, "0", Wmlrun,
        "earliest start of the phase, in seconds from the start of the run; phases never overlap"),
    attr("transaction", Name, "", Wmlrun,
        "name of the flowop or composite flowop of this process that is reported as a transaction"),
];

const SHUFFLED_MIX: &str = "with `mix`: draws without replacement. The weights are whole numbers: in as many draws as \
                            they add up to, each flowop comes as often as its weight says";

/// Attributes of `thread`.
#[rustfmt::skip]
pub const THREAD: &[Attr] = &[
    attr("name", Name, "", Both, "name of the thread in results"),
    attr("instances", Int, "1", Both, "number of threads in each process; 0 counts as 1, as in Filebench"),
    attr("memsize", Size, "0", Both, "size of the thread's I/O buffer in bytes; 0: the largest I/O of its flowops"),
    attr("useism", Bool, "false", Both, "accepted, without effect"),
    attr("ioprio", Int, "8", Fsl,
        "I/O priority in the best-effort class, 0 (highest) to 7 (lowest); 8 and above: unchanged"),
    attr("procname", Name, "", Sun, "accepted, without effect, as in Filebench"),
    attr("mix", Bool, "false", Wmlrun,
        "each iteration runs one flowop, drawn by `weight=`, instead of all flowops in order"),
    attr("shuffle", Bool, "false", Wmlrun, SHUFFLED_MIX),
    attr("rate", Real, "0", Wmlrun,
        "iterations per second of an open loop, in which a late iteration does not delay the next; 0: closed loop"),
    attr("totalrate", Real, "0", Wmlrun,
        "as `rate`, for all threads of this definition together: in all instances of the thread and of its process, \
         and on all ranks. Each thread has an equal part unless `queue=shared`"),
    attr("queue", Choice(&["own", "shared"]), "own", Wmlrun,
        "with `totalrate=`: each thread has a queue of its own, or all threads of the definition on a rank take requests \
         from one"),
    attr("arrival", Choice(&["constant", "poisson"]), "constant", Wmlrun,
        "start times in an open loop: evenly spaced, or a Poisson process"),
    attr("measure", Name, "", Wmlrun, "name of a further row of the results: the time of each iteration of the thread"),
    attr("stonewall", Real, "0", Wmlrun,
        "seconds from the start of the phase; then each thread goes on until it has made as many iterations as the \
         fastest thread of this definition, on any rank, had made by then, and ends; 0: none"),
    attr("iterationsof", Name, "", Wmlrun,
        "name of a thread of an earlier phase: this thread makes as many iterations as the fastest of those, of all \
         ranks, and ends"),
];

/// Attributes of `flowop`, in threads and in `define flowop`. As in Filebench every flowop accepts all of them;
/// [`super::Flowop::uses`] lists those that have an effect on it.
#[rustfmt::skip]
pub const FLOWOP: &[Attr] = &[
    attr("name", Name, "", Both, "name of the flowop in results, and for `target=` of other flowops"),
    Attr {
        aliases: &["filename"],
        ..attr("filesetname", Fileset, "", Both, "file set or file that the flowop works on")
    },
    drawn("iosize", Size, "0", Both,
        "bytes of one read or write; a random size of 0 becomes the smallest other one: `round`, else 1. Whole-file \
         flowops: bytes per call, 0: the whole file"),
    drawn("workingset", Size, "0", Both,
        "I/O at random offsets stays within this many bytes from the start of the file; 0: the whole file. A random \
         variable is drawn once for each thread"),
    attr("random", Bool, "false", Both,
        "random offsets, multiples of `iosize` or of `align`, instead of sequential I/O"),
    drawn("iters", Int, "1", Both, "number of executions in a row before the next flowop"),
    attr("fd", Int, "0", Both, "file slot of the thread, 1 to 128; 0: a slot chosen for the file set"),
    attr("srcfd", Int, "0", Both, "slot of the source file: its size is written, or its data is copied"),
    attr("opennext", Bool, "false", Both,
        "each execution uses the next of the 128 slots; a closed slot gets the thread's next file of the set"),
    attr("dsync", BoolOr(&["data"]), "false", Both,
        "opens the file with O_SYNC, `data`: with O_DSYNC; no effect on a file that is already open"),
    attr("directio", Bool, "false", Both, "opens the file with O_DIRECT; no effect on a file that is already open"),
    attr("noreadahead", Bool, "false", Fsl,
        "sets POSIX_FADV_RANDOM on the file when it is opened; no effect on a file that is already open"),
    drawn("indexed", Real, "", Both,
        "number of the file in its set, modulo the number of files; if that file is not in the state needed, the next \
         one"),
    attr("target", Target, "", Both, "`name` of the flowop to post to, wake up or count"),
    drawn("value", Text, "0", Both, "number of posts, stores, operations, bytes or seconds; text; or command"),
    attr("blocking", Bool, "false", Both, "`sempost` waits while a target is `highwater` posts behind"),
    attr("highwater", Int, "1", Both, "number of posts by which a blocking `sempost` may be ahead of the `semblock`"),
    attr("weight", Real, "1", Wmlrun,
        "in a thread or composite flowop with `mix`: relative frequency with which the flowop is drawn"),
    attr("wrap", Size, "0", Wmlrun,
        "size limit in bytes for a file that is written sequentially: a write that would exceed it returns to the \
         start of the file, an append truncates the file to 0 first; 0: no limit"),
    attr("shuffle", Bool, "false", Wmlrun,
        "random order without repetition: each position of the file, or each file of the set, once in each pass"),
    attr("uniform", Bool, "false", Wmlrun,
        "picks any file in the state needed with equal probability, instead of the next in the rotation"),
    attr("recent", Real, "", Wmlrun,
        "picks files by age: the k-th newest with a probability proportional to 1/k to the power of this number, such as \
         0.99 (a Zipf distribution)"),
    attr("maystarve", Bool, "false", Wmlrun,
        "waiting for a file or a free name is part of the workload: the report has no warning `starved`, and, if the \
         thread has no rate, no `exhausted`"),
    attr("partial", Bool, "false", Wmlrun,
        "random offsets up to the end of the file, where an I/O is shortened to the bytes left; files may be smaller \
         than `iosize`"),
    attr("exact", Bool, "false", Wmlrun,
        "the last write of `writewholefile` ends at the file's size; without it that write is `iosize` bytes long too"),
    attr("missing", Bool, "false", Wmlrun,
        "uses a name that never exists in the set; the error ENOENT counts as success"),
    attr("expect", Choice(&["ENOENT", "EEXIST", "ENOTDIR"]), "", Wmlrun,
        "error that the call must return: ENOENT for a name that does not exist now, EEXIST for one that exists, ENOTDIR \
         for a file that `openfile` opens as a directory"),
    attr("toset", Fileset, "", Wmlrun,
        "file set that `rename` moves the file to, on the same file system; without it, the file stays in its set"),
    attr("over", Bool, "false", Wmlrun, "`rename` replaces another existing file"),
    attr("recycle", Bool, "false", Wmlrun,
        "`rename` takes the files in order of their numbers and moves each behind the last one"),
    attr("mode", Int, "644", Wmlrun, "permission bits for `chmod`, three octal digits from 600 to 777"),
    attr("advice", Choice(&["normal", "sequential", "random", "willneed", "dontneed", "noreuse"]), "", Wmlrun,
        "advice that `fadvise` gives the kernel (POSIX_FADV_…); required"),
    attr("whence", Choice(&["set", "cur", "end"]), "set", Wmlrun,
        "where `lseek` counts `value` from: the start of the file, its position, or its end"),
    attr("data", Bool, "false", Wmlrun, "`fsyncdir` calls `fdatasync` instead of `fsync`"),
    attr("by", Choice(&["slot", "path"]), "", Wmlrun,
        "`statfile` uses only the open file (`fstat`), or only a path (`stat`): of the file in the slot, else of one of the set"),
    attr("onecall", Bool, "false", Wmlrun,
        "`appendfile` appends with one call (`pwritev2` with RWF_APPEND) instead of two; where the file system has none, \
         with two"),
    attr("segments", Int, "2", Wmlrun,
        "number of buffers of `readvec` and `writevec`, 1 to 64, equal parts of `iosize`"),
    attr("tmpfile", Bool, "false", Wmlrun,
        "`createfile` opens a file without a name in a directory of the set (O_TMPFILE), which is gone when it is closed"),
    attr("wait", Bool, "false", Wmlrun, "`syncrange` waits until the bytes are written"),
    attr("shared", Bool, "false", Wmlrun, "`lock` takes a shared lock instead of an exclusive one"),
    attr("keepsize", Bool, "false", Wmlrun,
        "`fallocate` allocates behind the end of the file, whose size does not change (FALLOC_FL_KEEP_SIZE)"),
    attr("align", Size, "iosize", Wmlrun, "random offsets are multiples of this many bytes"),
    attr("stride", Size, "0", Wmlrun,
        "bytes skipped after each sequential I/O; each pass over the file begins one I/O later than the one before"),
    attr("offset", Size, "0", Wmlrun,
        "offset of the first I/O of each pass over the file; with it, each pass with `stride` begins there"),
    drawn("at", Size, "", Wmlrun,
        "offset of this I/O or lock; moves no position. A read is one call, which ends where the file ends"),
    attr("backward", Bool, "false", Wmlrun, "sequential I/O from the end of the file to its start"),
    attr("reoffset", Bool, "false", Wmlrun, "uses the offset of the thread's previous I/O"),
    attr("maxsize", Size, "0", Wmlrun,
        "`appendfilerand` writes a random part of the bytes between the end of the file and this size, in writes of \
         `iosize`; 0: off"),
    attr("fsyncevery", Size, "0", Wmlrun,
        "fsync each time this many bytes are written, as part of the write; a write of random size is shortened to end \
         there; 0: never"),
    attr("iodepth", Int, "0", Wmlrun,
        "largest number of asynchronous operations of the thread in flight, up to 32768; at the limit the flowop waits \
         for a completion. 0: the limit is 4096 operations or 256 MiB"),
];

/// Attributes of `define flowop`.
#[rustfmt::skip]
pub const COMPOSITE: &[Attr] = &[
    attr("name", Name, "", Both, "name of the new flowop type"),
    drawn("iters", Int, "1", Both, "number of executions of the body for each use"),
    attr("mix", Bool, "false", Wmlrun,
        "each execution runs one flowop of the body, drawn by `weight=`, instead of all in order"),
    attr("shuffle", Bool, "false", Wmlrun, SHUFFLED_MIX),
    attr("group", Bool, "false", Wmlrun,
        "group commit: while one thread of the definition executes it, the others wait; then one of them executes it once \
         for all that waited"),
    attr("measure", Name, "", Wmlrun,
        "name of a further row of the results: the time of each execution of the whole composite flowop"),
];

/// Attributes of `define randvar` and `randvar(…)`, and the names for `$rv.field`.
#[rustfmt::skip]
pub const RANDVAR: &[Attr] = &[
    attr("name", Variable, "", Both, "the variable (`define randvar` only)"),
    attr("type", Choice(&["uniform", "gamma", "tabular", "zipf", "pareto"]), "gamma", Both, "distribution"),
    attr("randsrc", Choice(&["rand48", "urandom"]), "rand48", Both,
        "accepted, without effect"),
    attr("seed", Int, "0", Both, "accepted, without effect: `--seed` seeds all streams"),
    attr("min", Real, "0", Both, "smallest value"),
    attr("max", Real, "", Wmlrun, "largest value; larger draws become this"),
    attr("mean", Real, "", Both, "mean value; the default depends on the distribution"),
    attr("gamma", Int, "1500", Both, "shape of the gamma distribution, in thousandths"),
    attr("round", Int, "0", Both, "rounds results to the nearest multiple of this; 0: no rounding"),
    attr("randtable", Text, "", Both,
        "rows `{percent, low, high}`: percentage of the draws, and the range from which they are drawn uniformly"),
    attr("items", Int, "1000", Wmlrun, "zipf, and pareto with `h`: number of items"),
    attr("unit", Int, "1", Wmlrun,
        "zipf, and pareto with `h`: distance between the values of two items, such as an I/O size"),
    attr("lower", Int, "0", Wmlrun, "zipf: value of the first item"),
    attr("theta", Real, "0.99", Wmlrun, "zipf: skew; 0 is the uniform distribution, 1 the classical Zipf distribution"),
    attr("scramble", Bool, "false", Wmlrun,
        "zipf: spreads the popular items over the whole range, instead of the first values"),
    attr("shape", Real, "1.5", Wmlrun, "pareto: shape of the tail; smaller values give a heavier tail"),
    attr("scale", Real, "4k", Wmlrun, "pareto: smallest value"),
    attr("h", Real, "", Wmlrun,
        "pareto over `items` items: a fraction h of the items gets a fraction 1 − h of the draws"),
];

/// Attributes of `cvar(…)`.
#[rustfmt::skip]
pub const CVAR: &[Attr] = &[
    attr("type", Name, "", Fsl, "distribution: cvar-uniform, cvar-gamma, … (`wmlrun list distributions`)"),
    attr("parameters", Text, "", Fsl, "parameters of the distribution: `key:value;key:value`"),
    attr("min", Real, "", Fsl, "smallest value; smaller draws become this"),
    attr("max", Real, "", Fsl, "largest value; larger draws become this"),
    attr("round", Real, "0", Fsl, "rounds results to the nearest multiple of this; 0: no rounding"),
];

/// Returns the origin of an attribute of file sets, processes, threads or flowops. `None` when no table has the name.
pub fn origin(name: &str) -> Option<Origin> {
    of_definitions(name).map(|attr| attr.origin)
}

/// Returns the type of an attribute of file sets, processes, threads or flowops.
pub fn kind(name: &str) -> Option<Kind> {
    of_definitions(name).map(|attr| attr.kind)
}

fn of_definitions(name: &str) -> Option<&'static Attr> {
    [FILESET, PROCESS, THREAD, FLOWOP].iter().find_map(|list| find_attr(list, name))
}

/// Attributes that versions of Filebench by others have, and misspelt ones, each with what does the same here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("datasource", "the data is random; `compress=` and `dedupe=` of its file set make it compressible or repetitive"),
    (
        "entropy",
        "`compress=` of its file set is the part of the data that is compressible: 0.25 for an entropy of 6 bits per byte",
    ),
    (
        "devid",
        "the directory decides: give the file sets of each device a `path=` on it, or spread one with `path=/a:/b`",
    ),
    ("fileset", "a flowop names its file set with `filesetname=`"),
];

/// Returns what does here what an attribute of that name does in other versions.
pub fn instead_of(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, help)| *help)
}

/// Returns the attributes of a random variable that a script can access as `$rv.field`: Filebench's own, without
/// extensions.
pub fn fields() -> impl Iterator<Item = &'static str> {
    let is_field = |attr: &&Attr| attr.origin != Wmlrun && !matches!(attr.kind, Variable | Text);
    RANDVAR.iter().filter(is_field).map(|attr| attr.name)
}
