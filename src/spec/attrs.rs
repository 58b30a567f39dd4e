//! The attributes of file sets, processes, threads, flowops and random variables.
//!
//! A new attribute is one line here and its use where it means something; the grammar knows none of them.

use super::{Attr, Kind, Origin, find_attr};

const fn attr(name: &'static str, kind: Kind, default: &'static str, origin: Origin, doc: &'static str) -> Attr {
    Attr { name, aliases: &[], kind, random: false, default, origin, doc }
}

const fn drawn(name: &'static str, kind: Kind, default: &'static str, origin: Origin, doc: &'static str) -> Attr {
    Attr { name, aliases: &[], kind, random: true, default, origin, doc }
}

use Kind::{Bool, BoolOr, Choice, Fileset, Int, Name, Path, Percent, Random, Real, Size, Target, Text, Variable};
use Origin::{Both, Fsl, Ours, Sun};

/// Of `define fileset` and `define file` (a file takes the same words, as 1.4 does; those that shape a tree have no effect).
pub const FILESET: &[Attr] = &[
    attr("name", Name, "", Both, "what flowops call it; also the directory below `path` that holds its tree"),
    attr("path", Path, "", Both, "the directory in which the tree is made; `/a:/b` spreads a file set over several"),
    drawn("entries", Int, "0", Both, "how many files"),
    drawn("leafdirs", Int, "0", Both, "how many empty directories, for makedir and removedir"),
    Attr { aliases: &["filesize"], ..drawn("size", Size, "1k (1.5), 0 (1.4)", Both, "bytes of each file") },
    attr(
        "filesizegamma",
        Int,
        "1500 (1.4), 0 (1.5)",
        Sun,
        "shape of gamma distributed sizes with mean `size`, in thousandths; 0: all alike",
    ),
    drawn("dirwidth", Int, "0", Both, "mean number of entries in a directory"),
    attr("dirgamma", Int, "1500", Both, "shape of the distribution of widths and depths, in thousandths; 0: exact"),
    attr("dirdepthrv", Random, "", Both, "a random variable that each directory's depth is drawn from"),
    attr("prealloc", Percent, "0", Both, "how many per cent of the files exist when the run starts"),
    attr("paralloc", Bool, "false", Both, "accepted; population is always parallel (`--populate-threads`)"),
    attr("reuse", Bool, "false", Both, "keep a tree of the same layout and only mend sizes"),
    attr("trusttree", Bool, "false", Both, "with reuse: believe that every file is there in its size"),
    attr("readonly", Bool, "false", Both, "files are opened for reading only"),
    attr("writeonly", Bool, "false", Fsl, "files are opened for writing only"),
    attr("perinstance", Bool, "false", Ours, "each instance of a process has a set of its own: `name.1`, `name.2`, …"),
    attr("symlinks", Bool, "false", Ours, "its files are symbolic links, for `readlink`"),
    attr("latedirs", Bool, "false", Ours, "each directory is made in the run, when a thread first works in it"),
    attr(
        "cached",
        Bool,
        "as it is",
        Sun,
        "true: read in before the run; false: dropped from the page cache before the run",
    ),
    attr("namelength", Int, "", Sun, "accepted, without effect, as in Filebench"),
    attr("compress", Real, "0", Ours, "which part of each block of data compresses away, 0 to 1"),
    attr("dedupe", Real, "0", Ours, "which part of the blocks repeats another, 0 to 1"),
    attr("sizetable", Text, "", Ours, "exact numbers of files by size: `4k:1990612 16k:473044 31m-31m:5`"),
    attr(
        "sizetotal",
        Size,
        "",
        Ours,
        "with `sizetable`: the bytes of all its files; sizes are spread within the rows to reach it",
    ),
];

/// Of `define process`.
pub const PROCESS: &[Attr] = &[
    attr("name", Name, "", Both, "what results call it"),
    drawn("instances", Int, "1", Both, "how many processes; 0: none"),
    drawn("nice", Int, "0", Both, "added to the niceness"),
    attr("phase", Int, "1", Ours, "processes of a phase start when all threads of the phase before have ended"),
    attr("transaction", Name, "", Ours, "the flowop, or composite, that is a transaction: the report counts them"),
];

const SHUFFLED_MIX: &str = "with `mix` and whole weights: of as many draws as these add up to, each is drawn as often as its weight says, in a new order each lap";

/// Of `thread`.
pub const THREAD: &[Attr] = &[
    attr("name", Name, "", Both, "what results call it"),
    attr("instances", Int, "1", Both, "how many threads in each process; 0 counts as 1, as in Filebench"),
    attr("memsize", Size, "0", Both, "bytes of the thread's I/O buffer; 0: as much as its flowops need"),
    attr("useism", Bool, "false", Both, "accepted; the buffer is ordinary memory"),
    attr("ioprio", Int, "8", Fsl, "0 to 7: best-effort I/O priority; above: untouched"),
    attr("procname", Name, "", Sun, "accepted, without effect, as in Filebench"),
    attr(
        "mix",
        Bool,
        "false",
        Ours,
        "each iteration runs one flowop, drawn by `weight=`, instead of all flowops in order",
    ),
    attr("shuffle", Bool, "false", Ours, SHUFFLED_MIX),
    attr(
        "rate",
        Real,
        "",
        Ours,
        "iterations a second in an open loop: a late iteration does not delay the next; 0: closed loop",
    ),
    attr("arrival", Choice(&["constant", "poisson"]), "constant", Ours, "how the starts of an open loop are spaced"),
];

/// Of `flowop`, in threads and in `define flowop`. As in Filebench every flowop accepts all of them; each names those that
/// mean something to it.
pub const FLOWOP: &[Attr] = &[
    attr("name", Name, "", Both, "what results call it, and what `target=` refers to"),
    Attr { aliases: &["filename"], ..attr("filesetname", Fileset, "", Both, "the file set or file that it works on") },
    drawn("iosize", Size, "0", Both, "bytes of one read or write"),
    drawn("workingset", Size, "0", Both, "random offsets stay below this; 0: the whole file"),
    attr("random", Bool, "false", Both, "at random offsets, in multiples of `iosize`"),
    drawn("iters", Int, "1", Both, "how often it is done before the next flowop"),
    attr("fd", Int, "0", Both, "the thread's file slot, 1 to 128; 0: none named"),
    attr("srcfd", Int, "0", Both, "the slot whose file gives the size to write"),
    attr("opennext", Bool, "false", Both, "each time the next slot, and with it the next file"),
    attr(
        "dsync",
        BoolOr(&["data"]),
        "false",
        Both,
        "opened with O_SYNC, if this flowop opens the file; `data`: with O_DSYNC",
    ),
    attr("directio", Bool, "false", Both, "opened with O_DIRECT, if this flowop opens the file"),
    attr("noreadahead", Bool, "false", Fsl, "opened with POSIX_FADV_RANDOM, if this flowop opens the file"),
    drawn("indexed", Real, "", Both, "which file: a number, taken modulo the entries"),
    attr("target", Target, "", Both, "the flowop that is posted to, woken, limited or counted"),
    drawn("value", Text, "0", Both, "the flowop's number: posts, stores, seconds, operations, bytes"),
    attr("blocking", Bool, "false", Both, "a post waits while the other side is `highwater` behind"),
    attr("highwater", Int, "1", Both, "how far posts may run ahead of a `semblock`"),
    attr(
        "weight",
        Real,
        "1",
        Ours,
        "in a thread or composite with `mix`: how often it is drawn, relative to the others",
    ),
    attr("wrap", Size, "0", Ours, "a sequential writer starts over when its file would pass this size"),
    attr(
        "shuffle",
        Bool,
        "false",
        Ours,
        "at random, each place of the file or each file once, in a new order each lap",
    ),
    attr(
        "uniform",
        Bool,
        "false",
        Ours,
        "which file: any that is there, or any name that is free, each as likely as the others",
    ),
    attr(
        "partial",
        Bool,
        "false",
        Ours,
        "random offsets up to the end of the file, where an I/O is as long as what is left; files may be smaller than `iosize`",
    ),
    attr("exact", Bool, "false", Ours, "the last write of a whole file is cut to the file's size"),
    attr("missing", Bool, "false", Ours, "uses a name that the set never has; ENOENT counts as success"),
    attr(
        "expect",
        Choice(&["ENOENT", "EEXIST"]),
        "",
        Ours,
        "the error that counts as success: ENOENT for a name that does not exist now, EEXIST for one that exists",
    ),
    attr("over", Bool, "false", Ours, "the new name is one that exists; its file is replaced"),
    attr(
        "recycle",
        Bool,
        "false",
        Ours,
        "files are renamed in turn, each to the next free name, as log segments are recycled",
    ),
    attr("mode", Int, "644", Ours, "permission bits, as `chmod` takes them: octal digits"),
    attr(
        "advice",
        Choice(&["normal", "sequential", "random", "willneed", "dontneed", "noreuse"]),
        "",
        Ours,
        "what `fadvise` tells the kernel",
    ),
    attr("wait", Bool, "false", Ours, "`syncrange` ends when the bytes are written"),
    attr("shared", Bool, "false", Ours, "a lock that others may share"),
    attr("keepsize", Bool, "false", Ours, "`fallocate` behind the end of the file, which keeps its size"),
    attr("align", Size, "iosize", Ours, "random offsets are multiples of this"),
    attr("stride", Size, "0", Ours, "bytes skipped after each sequential I/O; each lap begins one I/O later"),
    attr("backward", Bool, "false", Ours, "sequential from the end of the file to its start"),
    attr("reoffset", Bool, "false", Ours, "at the offset that the thread used last"),
    attr("maxsize", Size, "0", Ours, "an append of random size fills a part of what the file lacks of this"),
    attr("fsyncevery", Size, "0", Ours, "fsync after so many bytes written; a write of drawn size ends there"),
    attr(
        "iodepth",
        Int,
        "0",
        Ours,
        "how many asynchronous operations may be out; the next one waits. 0: up to 4096, and up to 256 MiB of them",
    ),
];

/// Of `define flowop`.
pub const COMPOSITE: &[Attr] = &[
    attr("name", Name, "", Both, "the new flowop's name"),
    drawn("iters", Int, "1", Both, "how often its body is done for each use"),
    attr("mix", Bool, "false", Ours, "each time one flowop of its body, drawn by `weight=`, instead of all in order"),
    attr("shuffle", Bool, "false", Ours, SHUFFLED_MIX),
];

/// Of `define randvar`, `randvar(…)` and `$rv.field`.
pub const RANDVAR: &[Attr] = &[
    attr("name", Variable, "", Both, "the variable (`define randvar` only)"),
    attr("type", Choice(&["uniform", "gamma", "tabular", "zipf", "pareto"]), "gamma", Both, "the distribution"),
    attr(
        "randsrc",
        Choice(&["rand48", "urandom"]),
        "rand48",
        Both,
        "accepted; every thread has a seeded stream of its own",
    ),
    attr("seed", Int, "0", Both, "accepted; `--seed` seeds all streams"),
    attr("min", Real, "0", Both, "least value"),
    attr("max", Real, "", Ours, "greatest value"),
    attr("mean", Real, "", Both, "mean value"),
    attr("gamma", Int, "1500", Both, "shape, in thousandths"),
    attr("round", Int, "0", Both, "the result is the nearest multiple of this"),
    attr("randtable", Text, "", Both, "rows `{per cent, low, high}`"),
    attr("items", Int, "1000", Ours, "zipf, and pareto with `h`: how many items there are"),
    attr("unit", Int, "1", Ours, "zipf, and pareto with `h`: distance between items, such as an I/O size for offsets"),
    attr("lower", Int, "0", Ours, "zipf: value of the first item"),
    attr("theta", Real, "0.99", Ours, "zipf: skew; 0 is uniform, 1 the classical law"),
    attr("scramble", Bool, "false", Ours, "zipf: popular items lie scattered, not first"),
    attr("shape", Real, "1.5", Ours, "pareto: of the tail; the smaller, the heavier"),
    attr("scale", Real, "4k", Ours, "pareto: least value"),
    attr("h", Real, "", Ours, "pareto: over `items` items, of which this share gets a share 1 − h of the draws"),
];

/// Of `cvar(…)`.
pub const CVAR: &[Attr] = &[
    attr("type", Name, "", Fsl, "cvar-uniform, cvar-gamma, … (`wmlrun list distributions`)"),
    attr("parameters", Text, "", Fsl, "`key:value;key:value`"),
    attr("min", Real, "", Fsl, "results below become this"),
    attr("max", Real, "", Fsl, "results above become this"),
    attr("round", Real, "0", Fsl, "the result is the nearest multiple of this"),
];

/// Where an attribute of file sets, processes, threads or flowops comes from.
pub fn origin(name: &str) -> Option<Origin> {
    let lists = [FILESET, PROCESS, THREAD, FLOWOP];
    lists.iter().find_map(|list| find_attr(list, name)).map(|attr| attr.origin)
}

/// The attributes of a random variable that `$rv.field` may name, as far as Filebench knows them.
pub fn fields() -> impl Iterator<Item = &'static str> {
    let is_field = |attr: &&Attr| attr.origin != Ours && !matches!(attr.kind, Variable | Text);
    RANDVAR.iter().filter(is_field).map(|attr| attr.name)
}
