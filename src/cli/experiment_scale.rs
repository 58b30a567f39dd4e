//! `--scale` of an experiment: the same cells with smaller sizes, counts and run times, and what the full size needs.

use super::scaled_names::ScaledVariable;
use crate::measure::{Settings, WarmupLength};
use crate::model::ModelValue;
use crate::util::count::{count, grouped};
use crate::util::{duration, size};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The variable of scripts that makes them smaller or larger.
const SCALE: &str = "scale";

/// What the name of a variable begins with that is divided.
const INVERSE: &str = "1/";

/// What stands before the least value of a variable.
const AT_LEAST: &str = ">=";

/// The block of file systems: a size that is a multiple of it stays one.
const BLOCK: i64 = 4096;

/// The names of the variables that are scaled.
pub(super) fn names(variables: &[String]) -> Vec<&str> {
    match variables {
        [] => vec![SCALE],
        names => names.iter().map(|name| split(name).0.trim_start_matches(INVERSE)).collect(),
    }
}

/// The name of a variable, and the least value that is left of it; empty without one.
fn split(variable: &str) -> (&str, &str) {
    variable.split_once(AT_LEAST).unwrap_or((variable, ""))
}

/// Makes a cell smaller, by further words of its command line. `values` are those of the variables, `given` has the words
/// of the command line. Returns what has changed, and the variables; `None` if the script has none of them.
pub(super) fn scale(
    words: &mut Vec<String>,
    (variables, values): (&[String], Vec<(String, ModelValue)>),
    factor: f64,
    settings: &Settings,
    given: &[String],
) -> Option<(Vec<String>, Vec<ScaledVariable>)> {
    let (mut changed, mut scaled) = (Vec::new(), Vec::new());
    for (name, value) in values {
        let is_inverse = variables.contains(&format!("{INVERSE}{name}"));
        let least = variables.iter().map(|variable| split(variable)).find(|(of, _)| *of == name);
        let least = least.map(|(_, least)| least).filter(|least| !least.is_empty());
        let of_least = least.and_then(|least| size::parse(least).ok()).and_then(|least| i64::try_from(least).ok());
        if let Some(smaller) = smaller(&name, &value, if is_inverse { 1.0 / factor } else { factor }, of_least) {
            words.push(format!("--set={name}={smaller}"));
            if let (ModelValue::Int(full), Ok(smaller)) = (value, smaller.parse()) {
                scaled.push(ScaledVariable { name: name.clone(), full, scaled: smaller });
            }
            let at_least = least.map_or_else(String::new, |least| format!(" (at least {least})"));
            changed.push(format!("`${name}`{at_least}"));
        }
    }
    if changed.is_empty() {
        return None;
    }
    let is_given = |option: &str| given.iter().any(|word| word.starts_with(option));
    let shorter = |length: Duration| format!("{}s", length.mul_f64(factor).as_secs_f64());
    if let Some(length) = settings.runtime.filter(|_| !is_given("--runtime")) {
        words.push(format!("--runtime={}", shorter(length)));
        changed.push("the run time".to_owned());
    }
    if let WarmupLength::Fixed(length) = settings.warmup
        && !length.is_zero()
        && !is_given("--warmup")
    {
        words.push(format!("--warmup={}", shorter(length)));
        changed.push("the warm-up".to_owned());
    }
    Some((changed, scaled))
}

/// Returns the smaller value of a variable, or `None` if it is no number. Only `$scale` may be a fraction: the others are
/// sizes and counts, of which at least 1 is left, and of sizes a block.
fn smaller(name: &str, value: &ModelValue, factor: f64, least: Option<i64>) -> Option<String> {
    match value {
        ModelValue::Int(value) if name != SCALE => {
            let scaled = (*value as f64 * factor).round() as i64;
            let is_size = *value > 0 && value % BLOCK == 0 && *value >= 16 * BLOCK;
            let scaled = if is_size { (scaled / BLOCK).max(1) * BLOCK } else { scaled.max(i64::from(*value > 0)) };
            Some(scaled.max(least.map_or(0, |least| least.min(*value))).to_string())
        }
        ModelValue::Int(value) => Some((*value as f64 * factor).to_string()),
        ModelValue::Float(value) => Some((value * factor).to_string()),
        _ => None,
    }
}

/// What a run of a cell needs.
pub(super) struct CellNeeds<'a> {
    /// The directories of its file sets.
    pub(super) dirs: &'a [PathBuf],
    /// The size of all of their files.
    pub(super) bytes: u64,
    /// The measured time; `None` if it ends by itself.
    pub(super) length: Option<Duration>,
}

/// The bytes that the images which commands make take once they are full: `truncate -s SIZE FILE …`. An image that is made
/// several times counts once.
pub(super) fn image_bytes<'a>(commands: impl Iterator<Item = &'a str>) -> u64 {
    let mut images: BTreeMap<&str, u64> = BTreeMap::new();
    for command in commands.flat_map(|command| command.split(['\n', ';', '&', '|'])) {
        let mut words = command.split_whitespace().skip_while(|word| *word != "truncate").skip(1);
        let (Some("-s"), Some(size)) = (words.next(), words.next().and_then(|size| size::parse(size).ok())) else {
            continue;
        };
        for name in words {
            let image = images.entry(name).or_default();
            *image = size.max(*image);
        }
    }
    images.into_values().fold(0, u64::saturating_add)
}

/// Says what images take besides the files of the measured directories; nothing without any.
pub(super) fn images_text(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("images may take at most {}, with the files in them", size::format(bytes)),
    }
}

/// Says what the cells need at their full size: runs, room and time. `images` is the room of [`image_bytes`].
pub(super) fn full_size(cells: &[CellNeeds<'_>], (min, max): (u64, u64), images: u64) -> String {
    let n = cells.len() as u64;
    let runs = if min == max { count(n * min, "run") } else { format!("{} to {} runs", n * min, n * max) };
    // Cells in one directory use it one after another.
    let mut places: Vec<(&[PathBuf], u64)> = Vec::new();
    for cell in cells {
        match places.iter_mut().find(|(dirs, _)| *dirs == cell.dirs) {
            Some((_, bytes)) => *bytes = (*bytes).max(cell.bytes),
            None => places.push((cell.dirs, cell.bytes)),
        }
    }
    let room = places.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let all = |one: Duration| duration::format(one.saturating_mul(u32::try_from(max).unwrap_or(u32::MAX)));
    let limited = all(cells.iter().filter_map(|cell| cell.length).sum());
    // How long these take depends on the device, and on the size of a call: nothing here knows it.
    let time = match cells.iter().filter(|cell| cell.length.is_none()).count() as u64 {
        0 => format!("measured for at most {limited}"),
        unlimited if unlimited == n => "which end when their work is done".to_owned(),
        unlimited => {
            let unlimited = grouped(unlimited * max);
            format!("of which {unlimited} end when their work is done, the others measured for at most {limited}")
        }
    };
    let images =
        Some(images_text(images)).filter(|text| !text.is_empty()).map_or_else(String::new, |text| format!("; {text}"));
    format!("the full size needs {runs}, {time}, and {} for files{images}", size::format(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_whole_blocks_and_counts_stay_above_0() {
        let of = |name, value, factor| smaller(name, &ModelValue::Int(value), factor, None).unwrap_or_default();
        assert_eq!(of("filesize", 1 << 30, 0.01), "10735616");
        assert_eq!(of("filesize", 1 << 20, 0.001), "4096");
        assert_eq!(
            (of("nfiles", 1000, 0.01), of("nfiles", 20, 0.01), of("n", 0, 0.5)),
            ("10".into(), "1".into(), "0".into())
        );
        assert_eq!((of("fraction", 10, 100.0), of("scale", 1, 0.01)), ("1000".into(), "0.01".into()));
        assert_eq!(smaller("x", &ModelValue::Text("a".into()), 0.5, None), None);
        let at_least = |value, least| smaller("nfiles", &ModelValue::Int(value), 0.01, Some(least)).unwrap_or_default();
        assert_eq!((at_least(20000, 1000), at_least(500, 1000)), ("1000".into(), "500".into()));
    }

    #[test]
    fn the_full_size_counts_images_and_promises_no_time_for_work() {
        let commands = [
            "test ! -e a.img || { echo a.img exists; exit 1; }",
            "set -e\ntruncate -s 5G a.img b.img && mkfs.ext4 -q a.img",
            "truncate -s 16G c.img; truncate -s 2G c.img",
            "truncate x",
        ];
        assert_eq!(image_bytes(commands.into_iter()), 26 << 30);
        let cell =
            |length: Option<u64>| CellNeeds { dirs: &[], bytes: 4 << 30, length: length.map(Duration::from_secs) };
        let of = |lengths: &[Option<u64>], images| {
            full_size(&lengths.iter().copied().map(cell).collect::<Vec<_>>(), (3, 3), images)
        };
        assert_eq!(
            of(&[Some(60), Some(60)], 26 << 30),
            "the full size needs 6 runs, measured for at most 6m, and 4.0 GiB for files; images may take at \
             most 26.0 GiB, with the files in them"
        );
        assert_eq!(
            of(&[None], 0),
            "the full size needs 3 runs, which end when their work is done, and 4.0 GiB for files"
        );
        assert!(
            of(&[None, Some(60)], 0)
                .contains("6 runs, of which 3 end when their work is done, the others measured for at most 3m,")
        );
    }
}
