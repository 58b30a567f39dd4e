//! Compiles `define fileset` and `define file` to file sets. The dialect decides defaults.

use super::path_list::{left_to_shell, listed_directories, placed_below};
use super::values::{LARGEST, evaluate, quantity};
use crate::fileset::{FilesetSpec, PreallocDraws, SizeRow, SizeTable};
use crate::random::{self, Quantity, RandomVar, RandvarParams};
use std::path::Path;
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic, Severity};
use wml_language::model::{Arithmetic, Evaluated, FilesetDef, Lookup, ModelValue};
use wml_language::source::Span;
use wml_language::spec::{Dialect, Sharing};
use wml_language::syntax::ast::{Variable, VariableForm};
use wml_text::size::split_unit;

/// Most files and empty directories of one set. More would need hundreds of megabytes of memory, and days to populate.
const MOST_FILES: u64 = 1 << 28;

/// Most bytes of a write that gives files their data; each thread that does has such a buffer.
const LARGEST_FILL: u64 = 1 << 30;

/// Most rows of a size table. That of a real server has a few dozen.
const MOST_ROWS: usize = 1000;

/// Returns the file sets of a definition: one, or a part of it in each of several directories, `path="/a:/b"`. The
/// parts are consecutive in the plan, in that order, and share files and leaf directories as evenly as possible. The
/// directories are `below` another one if it is given.
pub(super) fn parts(
    def: &FilesetDef,
    scope: &dyn Lookup,
    below: Option<&Path>,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<FilesetSpec>> {
    let whole = as_written(def, scope, found)?;
    let text = whole.path.to_string_lossy().into_owned();
    let paths = listed_directories(&text, base(scope).as_deref());
    if paths.len() < 2 {
        return Some(vec![place(def, whole, below, found)?]);
    }
    let at = def.attrs.get("path").map_or(def.span, |used| used.value.span);
    let mut wrong = |code: Code, what: &str, help: &str| found.push(Diagnostic::error(code, at, what).help(help));
    if paths.contains(&"") {
        wrong(Code::OutOfRange, "an empty path in a list of directories", "write `path=\"/a:/b\"`, without blanks");
    } else if whole.single {
        wrong(
            Code::OutOfRange,
            "one file in several directories",
            "a file is in one directory; `define fileset` can be spread",
        );
    } else if whole.instance.is_some() {
        let help = "give one of them up: leave out `perinstance`, or name one directory";
        wrong(Code::Unsupported, "a set for each process instance that is spread over several directories", help);
    } else if whole.sizes.is_some() {
        let help = "give one of them up; sizes drawn from a random variable (`size=$sizes`) can be spread";
        wrong(Code::Unsupported, "a table of sizes that is spread over several directories", help);
    } else {
        let n = paths.len() as u64;
        let share = |all: u64, k: u64| all / n + u64::from(k < all % n);
        let part = |(k, path): (u64, &&str)| FilesetSpec {
            path: path.into(),
            part: k as u32,
            entries: share(whole.entries, k),
            leafdirs: share(whole.leafdirs, k),
            ..whole.clone()
        };
        let parts = (0..).zip(&paths).map(part);
        return parts.map(|part| place(def, part, below, found)).collect();
    }
    None
}

/// Puts a file set below a directory, if one is given.
fn place(
    def: &FilesetDef,
    spec: FilesetSpec,
    below: Option<&Path>,
    found: &mut Vec<Diagnostic>,
) -> Option<FilesetSpec> {
    let Some(below) = below else { return Some(spec) };
    match placed_below(below, &spec.path, &spec.name) {
        Ok(path) => Some(FilesetSpec { path, below: Some(below.to_owned()), ..spec }),
        Err((what, help)) => {
            let at = def.attrs.get("path").map_or(def.span, |used| used.value.span);
            found.push(Diagnostic::error(Code::OutOfRange, at, what).help(help));
            None
        }
    }
}

/// The value of `$dir`, if it is a text.
fn base(scope: &dyn Lookup) -> Option<String> {
    let variable = Variable { form: VariableForm::Plain, name: "dir".to_owned(), field: None };
    match scope.value_of(&variable, Arithmetic::Whole)?.ok()? {
        ModelValue::Text(dir) if !dir.is_empty() => Some(dir.as_ref().to_owned()),
        _ => None,
    }
}

/// The indices of the parts of a set, given that of the first.
pub fn parts_of(filesets: &[FilesetSpec], first: usize) -> std::ops::Range<usize> {
    let others = filesets.iter().skip(first + 1).take_while(|spec| spec.part > 0).count();
    first..first + 1 + others
}

/// Sets where the sets that are preallocated in part are in Filebench's stream of random numbers. `sets`: all of a script,
/// in the order of their definitions. Filebench creates the last one first, and draws for all of them.
pub(super) fn set_draws(sets: &mut [FilesetSpec]) {
    let mut before = 0;
    for parts in sets.chunk_by_mut(|_, next| next.part > 0).rev() {
        // The files of all parts of a set, then their leaf directories.
        let files: u64 = parts.iter().map(|part| part.entries).sum();
        let mut next = PreallocDraws { files: before, leafdirs: before + files };
        for part in parts {
            part.draws = if (1..100).contains(&part.prealloc) { next } else { PreallocDraws::default() };
            next.files += part.entries;
            next.leafdirs += part.leafdirs;
        }
        before = next.leafdirs;
    }
}

/// Returns the file set of a definition, as if it were in one directory, which is `below` another one if it is given.
pub fn spec(
    def: &FilesetDef,
    scope: &dyn Lookup,
    below: Option<&Path>,
    found: &mut Vec<Diagnostic>,
) -> Option<FilesetSpec> {
    place(def, as_written(def, scope, found)?, below, found)
}

/// Returns the file set of a definition with its path as the script gives it.
fn as_written(def: &FilesetDef, scope: &dyn Lookup, found: &mut Vec<Diagnostic>) -> Option<FilesetSpec> {
    let errors = |found: &[Diagnostic]| found.iter().filter(|d| d.severity == Severity::Error).count();
    let before = errors(found);
    let values = evaluate(&def.attrs, scope, found);
    let semantics = def.dialect.semantics();
    let mut number =
        |name: &str| values.get(name).and_then(|(v, span)| quantity(v, span, scope).map_err(|d| found.push(d)).ok());
    let (entries, leafdirs) = (number("entries"), number("leafdirs"));
    let (size, dirwidth, dirdepth) = (number("size"), number("dirwidth"), number("dirdepthrv"));
    let gamma = values.int("dirgamma", 1500);
    let default_size_gamma = if def.single { 0 } else { semantics.fileset_size_gamma };
    let size_gamma = values.int("filesizegamma", default_size_gamma);
    let width_gamma = if semantics.width_by_size_gamma { size_gamma } else { gamma };
    let name = text(&values, "name", def.span, found)?;
    let path = text(&values, "path", def.span, found)?;
    if path.is_empty() {
        let at = values.get("path").map_or(def.span, |(_, s)| s);
        found.push(Diagnostic::error(Code::OutOfRange, at, "an empty path").help("name a directory"));
    }
    for (attr, text) in [("path", &path), ("name", &name)] {
        if let Some(what) = left_to_shell(text) {
            let at = values.get(attr).map_or(def.span, |(_, s)| s);
            let report = Diagnostic::error(Code::OutOfRange, at, format!("{what} in the {attr} of a file set"));
            found.push(
                report.help("no shell reads it; write the path out, or `$(HOME)` for a variable of the environment"),
            );
        }
    }
    let count = |q: Option<Quantity>| q.map_or(0, |q| q.draw(&mut random::stream(0, &[0])));
    let mut entries = if def.single { 1 } else { count(entries) };
    let sizes = size_table(&values, &mut entries, found);
    let leafdirs = if def.single { 0 } else { count(leafdirs) };
    if entries.saturating_add(leafdirs) > MOST_FILES {
        let at = values.get("entries").or(values.get("leafdirs")).map_or(def.span, |(_, s)| s);
        let message = format!("a file set of {} files and directories", entries.saturating_add(leafdirs));
        found.push(Diagnostic::error(Code::OutOfRange, at, message).help(format!("at most {MOST_FILES} are possible")));
    }
    let prealloc = percent(&values, found);
    // Filebench up to 1.4 always creates the file of a `define file`, and fills it if it is preallocated.
    let empty = def.single && def.dialect == Dialect::Sun && prealloc == 0;
    let symlinks = values.flag("symlinks");
    let size = if symlinks { Quantity::Const(0) } else { size.unwrap_or(Quantity::Const(semantics.default_size)) };
    let spec = FilesetSpec {
        entries,
        leafdirs,
        size: sized(size, size_gamma),
        dirwidth: if def.single { Some(Quantity::Const(10)) } else { dirwidth },
        width_gamma: if def.single { 0.0 } else { thousandths(width_gamma) },
        depth_gamma: if def.single { 0.0 } else { thousandths(gamma) },
        dirdepth: dirdepth.filter(|_| !def.single),
        prealloc: if empty { 100 } else { prealloc },
        empty,
        paralloc: values.flag("paralloc"),
        reuse: values.flag("reuse"),
        trusttree: values.flag("trusttree"),
        readonly: values.flag("readonly"),
        writeonly: values.flag("writeonly"),
        symlinks,
        late_dirs: values.flag("latedirs"),
        instance: values.flag("perinstance").then_some(0),
        share: share(&values, found),
        cached: values.get("cached").map(|_| values.flag("cached")),
        single: def.single,
        compress: fraction(&values, "compress", found),
        dedupe: fraction(&values, "dedupe", found),
        fill_size: fill_size(&values, found),
        sizes,
        ..FilesetSpec::new(name, path, 0, 0)
    };
    if spec.late_dirs && (spec.prealloc > 0 || spec.leafdirs > 0 || spec.reuse || spec.trusttree) {
        let at = values.get("latedirs").map_or(def.span, |(_, s)| s);
        let message =
            format!("file set `{}` has `latedirs`, and files or directories that exist before the run", spec.name);
        let help = "leave out `prealloc`, `leafdirs`, `reuse` and `trusttree`: nothing can exist before its directory";
        found.push(Diagnostic::error(Code::OutOfRange, at, message).help(help));
    }
    if spec.entries > 0 && spec.leafdirs > 0 {
        let message = format!("file set `{}` has files and leaf directories", spec.name);
        found.push(
            Diagnostic::warning(Code::FilesAndLeafdirs, def.span, message)
                .help("they are in separate directories; Filebench needs two file sets for that, and fails with one"),
        );
    }
    (errors(found) == before).then_some(spec)
}

/// Evaluates `share`. `None` if it is not given.
fn share(values: &Evaluated, found: &mut Vec<Diagnostic>) -> Option<Sharing> {
    let (value, span) = values.get("share")?;
    let word = value.print();
    let sharing = Sharing::find(&word);
    if sharing.is_none() {
        let words: Vec<String> = Sharing::WORDS.iter().map(|word| format!("`{word}`")).collect();
        let report = Diagnostic::error(Code::WrongType, span, format!("`share` is `{word}`"));
        found.push(report.help(format!("it is one of {}", words.join(", "))));
    }
    sharing
}

fn text(values: &Evaluated, name: &str, span: Span, found: &mut Vec<Diagnostic>) -> Option<String> {
    let text = values.text(name);
    if text.is_none() && found.is_empty() {
        found.push(
            Diagnostic::error(Code::MissingAttribute, span, format!("no `{name}=`")).help(format!("add `{name}=…`")),
        );
    }
    text
}

fn thousandths(n: u64) -> f64 {
    n as f64 / 1000.0
}

/// Turns a constant size with a gamma into gamma distributed sizes of that mean, as in Filebench 1.4.
fn sized(size: Quantity, gamma: u64) -> Quantity {
    match size {
        Quantity::Const(mean) if gamma > 0 && mean > 0 => {
            let params = RandvarParams {
                kind: Some(random::RandvarKind::Gamma),
                mean: Some(mean as f64),
                gamma: Some(gamma),
                ..RandvarParams::default()
            };
            random::randvar(&params).map_or(Quantity::Const(mean), |v: RandomVar| Quantity::Random(Arc::new(v)))
        }
        other => other,
    }
}

/// Evaluates `prealloc`: `true` or no value is 100, `false` is 0, a number is itself. As in Filebench, more than 100
/// per cent of the files are all of them.
fn percent(values: &Evaluated, found: &mut Vec<Diagnostic>) -> u8 {
    match values.get("prealloc") {
        None => 0,
        Some((ModelValue::Bool(b), _)) => 100 * u8::from(*b),
        Some((value, span)) => {
            let message = format!("`prealloc` is {}", value.print());
            match value.as_u64() {
                Some(n @ 0..=100) => n as u8,
                Some(_) => {
                    found.push(Diagnostic::warning(Code::Ignored, span, message).help("all files are created: 100"));
                    100
                }
                None => {
                    found.push(Diagnostic::error(Code::OutOfRange, span, message).help("it takes 0 to 100 per cent"));
                    0
                }
            }
        }
    }
}

fn fraction(values: &Evaluated, name: &str, found: &mut Vec<Diagnostic>) -> Option<f64> {
    let (value, span) = values.get(name)?;
    match value.as_f64() {
        Some(x) if (0.0..=1.0).contains(&x) => (x > 0.0).then_some(x),
        _ => {
            let message = format!("`{name}` is {}", value.print());
            found.push(Diagnostic::error(Code::OutOfRange, span, message).help("it takes a part between 0 and 1"));
            None
        }
    }
}

/// Parses `sizetable="4k:1990612 16k:473044 31m-31m:5"`: rows of an upper bound, or of two bounds, and a number of
/// files. A row with one bound begins at the end of the row before it. `entries=`, if given, scales the counts.
fn size_table(values: &Evaluated, entries: &mut u64, found: &mut Vec<Diagnostic>) -> Option<SizeTable> {
    let (value, span) = values.get("sizetable")?;
    let scale = scale(values, found);
    let size_of = |text: &str| size(text).map(|bytes| (bytes as f64 * scale) as u64).filter(|n| *n <= LARGEST);
    let mut rows = Vec::new();
    let mut above = 0;
    for word in value.print().split([' ', ',', '\n', '\t']).filter(|w| !w.is_empty()) {
        let row = word.split_once(':').and_then(|(bounds, count)| {
            let count = size(count)?;
            Some(match bounds.split_once('-') {
                Some((low, high)) => SizeRow { above: size_of(low)?, up_to: size_of(high)?, count },
                None => SizeRow { above, up_to: size_of(bounds)?, count },
            })
        });
        let Some(row) = row else {
            found.push(
                Diagnostic::error(Code::WrongType, span, format!("`{word}` is not a row of a size table"))
                    .help("a row is `UPPER:COUNT` or `LOW-HIGH:COUNT`, such as `4k:1000`"),
            );
            return None;
        };
        above = row.up_to;
        rows.push(row);
    }
    let counted = rows.iter().fold(0_u64, |sum, r| sum.saturating_add(r.count));
    if rows.len() > MOST_ROWS || counted > MOST_FILES {
        let message = format!("a size table of {} rows and {counted} files", rows.len());
        let help = format!("at most {MOST_ROWS} rows and {MOST_FILES} files are possible");
        found.push(Diagnostic::error(Code::OutOfRange, span, message).help(help));
        return None;
    }
    if counted == 0 {
        let report = Diagnostic::error(Code::OutOfRange, span, "a size table of 0 files");
        found.push(report.help("a row is `UPPER:COUNT`, with how many files have such a size"));
        return None;
    }
    if *entries == 0 {
        *entries = counted;
    }
    let total = values.get("sizetotal").and_then(|(v, _)| v.as_u64()).filter(|n| *n > 0);
    Some(SizeTable::new(&rows, *entries, total))
}

fn scale(values: &Evaluated, found: &mut Vec<Diagnostic>) -> f64 {
    let Some((value, span)) = values.get("sizescale") else { return 1.0 };
    match value.as_f64() {
        Some(x) if x > 0.0 => x,
        _ => {
            let message = format!("`sizescale` is {}", value.print());
            found.push(Diagnostic::error(Code::OutOfRange, span, message).help("it takes a number above 0"));
            1.0
        }
    }
}

fn fill_size(values: &Evaluated, found: &mut Vec<Diagnostic>) -> usize {
    let Some((value, span)) = values.get("fillsize") else { return FilesetSpec::DEFAULT_FILL };
    match value.as_u64() {
        Some(n @ 1..=LARGEST_FILL) => n as usize,
        _ => {
            let message = format!("`fillsize` is {}", value.print());
            found.push(Diagnostic::error(Code::OutOfRange, span, message).help("it takes 1 byte to 1 GiB"));
            FilesetSpec::DEFAULT_FILL
        }
    }
}

/// Parses a size with one of the units k, m, g, t.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = split_unit(text);
    let whole = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    // `inf`, `nan` and numbers below zero are numbers too, and no sizes.
    let fraction = || digits.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    let size = whole.or_else(|| fraction().map(|x| (x * (1_u64 << shift) as f64) as u64));
    size.filter(|n| *n <= LARGEST)
}
