//! The keys of an experiment file, as tables from which checking, suggestions and the manual are derived.
//!
//! To add a key: a line in the table of its kind, read in `file`, and a case in `tests/cases/experiment/` for each
//! mistake that its value allows.

use super::order;

/// A key of a table of an experiment file.
#[derive(Clone, Copy, Debug)]
pub struct FileKey {
    pub name: &'static str,
    pub form: &'static str,
    /// The description, one line.
    pub about: &'static str,
}

const fn key(name: &'static str, form: &'static str, about: &'static str) -> FileKey {
    FileKey { name, form, about }
}

/// The keys of the file itself.
#[rustfmt::skip]
pub const EXPERIMENT_KEYS: &[FileKey] = &[
    key("name", "text", "The name in results; by default that of the file"),
    key("about", "text", "A description of one line"),
    key("script", "text", "The script: a file, which is looked for beside the experiment file first, or a personality"),
    key("options", "text or list of texts", "Options of every run, as on the command line"),
    key("set", "table", "Variables of every run, and their values"),
    key("factor", "list of tables", "The factors; each combination of their levels is a cell"),
    key("order", order::FORM, "The order of the runs; by default `\"blocks\"`"),
    key("repeats", "number or `\"MIN..MAX\"`", "The number of runs of each cell; by default 3"),
    key("until-ci", "percentage",
        "With `\"MIN..MAX\"`: the half-width of the interval that is precise enough; by default 5 %"),
    key("stop", "`\"study\"`",
        "With `\"MIN..MAX\"`: end a cell as a study of snapshots did, once all intervals are narrow, as if its runs \
         were independent; by default they must be so twice, corrected for autocorrelation"),
    key("scale", "list of texts",
        "The variables that `--scale F` multiplies, in each script that has them; `1/NAME` divides, `NAME>=N` leaves at least \
         N. By default `scale`"),
    key("metrics", "list of texts",
        "The figures of the result, as for `--metric`; `study` is those of a study of snapshots with `oltp_sync`; by \
         default `ops` and `latency.mean`"),
    key("effects", "list of texts",
        "The factors whose effects are shown; by default all, if there are several factors and no other table, or that \
         of `columns` if it has more than two levels"),
    key("columns", "text or list of texts",
        "The factor whose levels are the columns of a table of each metric, with the best of each line; of several the \
         last, and the levels of the others stand side by side in the table of `over`"),
    key("over", "text or list of texts",
        "With `columns`: levels with which the others are compared, in a table of their improvement over each"),
    key("improvement", "`\"percent\"`, `\"factor\"` or `\"both\"`",
        "With `over`: the form of an improvement; by default `\"percent\"`"),
    key("bound", "text",
        "With `columns`: a level that bounds the others, as a raw device does; it is shown, and compared with none"),
    key("lines", "`\"metrics\"`",
        "With `columns` or `--side`: a table for each combination of the other levels, with a line for each metric"),
    key("groups", "text",
        "The factor whose levels are groups of columns, their metrics; each combination of the other levels is one line"),
    key("draw", "`\"printed\"`",
        "With `columns` or `--side`: a line is a draw if its figures are equal as printed; by default if the best leads \
         by less than 5 %"),
    key("study", "text",
        "The factor whose levels are tested against its first level by the method of `compare --method study`"),
    key("curve", "text", "The factor whose levels are loads, for a load curve with its overall response time"),
    key("method", "`\"sfs2\"` or `\"sfs3\"`",
        "With `curve`: the method of the overall response time; by default `\"sfs3\"`"),
    key("show", "`[\"variation\"]`",
        "A table of the coefficients of variation of each metric, between the runs of a cell and within a run"),
    key("record", "list of texts", "Commands whose output is kept after each run; `\"df\"` records the used space"),
    key("retry-disturbed", "number", "How often a run is made again if other programs disturbed it; by default 0"),
    key("time-limit", "time", "The maximum duration of a command; by default 10 minutes"),
    key("hook", "list of tables", "Commands around the experiment, blocks, levels and runs"),
];

#[rustfmt::skip]
pub const FACTOR_KEYS: &[FileKey] = &[
    key("name", "text", "The name: letters, digits, `_`, `-` and `.`"),
    key("variable", "text", "The variable that a level without a table sets; by default the name"),
    key("levels", "list", "The levels: values of the variable, or tables"),
];

#[rustfmt::skip]
pub const LEVEL_KEYS: &[FileKey] = &[
    key("name", "text", "The name in results"),
    key("script", "text", "The script, instead of that of the experiment"),
    key("options", "text or list of texts", "Options, which override those of the experiment"),
    key("set", "table", "Variables and their values"),
    key("scale", "list of texts", "The variables that `--scale` multiplies at this level"),
    key("metric", "text", "The metric of the cells at this level, instead of the first in `metrics`"),
    key("before", "text", "A command before successive runs at this level"),
    key("after", "text", "A command after them"),
    key("time-limit", "time", "The maximum duration of each of the two commands"),
];

#[rustfmt::skip]
pub const HOOK_KEYS: &[FileKey] = &[
    key("at", "`\"experiment\"`, `\"block\"`, `\"level\"` or `\"run\"`", "The scope around which the commands run"),
    key("factor", "text", "With `at = \"level\"`: the factor"),
    key("name", "text", "The name in `hooks` and of metrics (`after-NAME.seconds`): letters, digits, `_`, `-` and `.`"),
    key("before", "text", "A command before the scope"),
    key("after", "text", "A command after it, which undoes the command before it"),
    key("time-limit", "time", "The maximum duration of each of the two commands"),
];
