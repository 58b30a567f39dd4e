//! The units of published figures: what they measure, and how many of one another has.

use crate::analysis::Direction;
use crate::import::Metric;

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeasuredKind {
    Bytes,
    BytesPerSecond,
    PerSecond,
    Seconds,
    Joules,
    Percent,
}

/// A unit: what it measures, and how many of the unit of that name it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FigureUnit {
    quantity: MeasuredKind,
    size: f64,
}

/// The number of bytes in a unit. A `K` of programs that print K/s is 1024 bytes, as in the sizes of scripts.
fn bytes(text: &str) -> Option<f64> {
    Some(match text {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

fn seconds(text: &str) -> Option<f64> {
    Some(match text {
        "ns" => 1e-9,
        "us" | "µs" | "usec" => 1e-6,
        "ms" | "msec" | "Msec" => 1e-3,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "min" | "minute" | "minutes" => 60.0,
        "h" | "hours" => 3600.0,
        _ => return None,
    })
}

impl FigureUnit {
    /// The unit with this name: `MB/s`, `ops/s`, `files per minute`, `ms`, `ms/op`. Whatever is counted may stand before `/s`,
    /// but no number, and no unit that may be one of bits.
    pub(super) fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let of = |quantity| move |size| Self { quantity, size };
        let parts = text.split_once('/').or_else(|| text.split_once(" per "));
        let Some((what, time)) = parts.or_else(|| Some(("", text.strip_prefix("per ")?))) else {
            let others = match text {
                "J" => Some(Self { quantity: MeasuredKind::Joules, size: 1.0 }),
                "%" => Some(Self { quantity: MeasuredKind::Percent, size: 1.0 }),
                _ => None,
            };
            let found = bytes(text).map(of(MeasuredKind::Bytes));
            return found.or_else(|| seconds(text).map(of(MeasuredKind::Seconds))).or(others);
        };
        let (what, time) = (what.trim(), time.trim());
        if time == "op" {
            return seconds(what).map(of(MeasuredKind::Seconds));
        }
        let per = 1.0 / seconds(time)?;
        if what.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let is_of_bits = what.ends_with('b') && what.len() <= 2 || what.ends_with("bit");
        match bytes(what) {
            Some(bytes) => Some(Self { quantity: MeasuredKind::BytesPerSecond, size: bytes * per }),
            None if is_of_bits => None,
            None => Some(Self { quantity: MeasuredKind::PerSecond, size: per }),
        }
    }

    /// The unit at the end of the name of a test or a side: in brackets (`fsck (s)`), or one with `/` or `per` (`read MB/s`,
    /// `files per minute`). Any other word may be part of the name.
    pub(super) fn named(name: &str) -> Option<Self> {
        if let Some((_, unit)) = name.trim().strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            // `min` may be the minimum.
            return Self::of(unit).filter(|_| unit != "min");
        }
        let words: Vec<&str> = name.split_whitespace().collect();
        // `at 10 MB/s` is an amount.
        let is_number = |word: &&str| word.ends_with(|c: char| c.is_ascii_digit());
        match words[..] {
            [ref before @ .., unit] if unit.contains('/') && !before.last().is_some_and(is_number) => Self::of(unit),
            [.., what, "per", time] => Self::of(&format!("{what} per {time}")),
            _ => None,
        }
    }

    /// Whether more is better, if the unit says so: of a rate, but not of a time.
    pub(super) fn direction(self) -> Option<Direction> {
        match self.quantity {
            MeasuredKind::BytesPerSecond | MeasuredKind::PerSecond => Some(Direction::HigherIsBetter),
            MeasuredKind::Seconds => Some(Direction::LowerIsBetter),
            _ => None,
        }
    }

    /// The unit of a metric; `None` if only the user knows it.
    pub(super) fn of_metric(metric: &str) -> Option<Self> {
        let metric: Metric = metric.parse().ok()?;
        match metric.nanoseconds() {
            Some(nanoseconds) => Some(Self { quantity: MeasuredKind::Seconds, size: nanoseconds * 1e-9 }),
            None => Self::of(metric.unit()),
        }
    }

    /// How many of the other unit are in this one; `None` if they measure something else.
    pub(super) fn in_unit(self, other: Self) -> Option<f64> {
        (self.quantity == other.quantity).then(|| self.size / other.size)
    }

    /// What it measures, in a word.
    pub(super) fn measures(self) -> &'static str {
        match self.quantity {
            MeasuredKind::Bytes => "bytes",
            MeasuredKind::BytesPerSecond => "bytes per second",
            MeasuredKind::PerSecond => "a number per second",
            MeasuredKind::Seconds => "a time",
            MeasuredKind::Joules => "an energy",
            MeasuredKind::Percent => "a share",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Direction, FigureUnit};

    #[test]
    fn names_may_end_with_a_unit() {
        let direction = |name: &str| FigureUnit::named(name).and_then(FigureUnit::direction);
        for name in [
            "data read MB/s",
            "UFS (KB/s)",
            "txns/sec",
            "low txns/sec",
            "transactions per second",
            "files per minute",
            "copy file(s) (MB/s)",
        ] {
            assert_eq!(direction(name), Some(Direction::HigherIsBetter), "{name}");
        }
        for name in ["fsck (s)", "response Msec/op", "ORT (ms/op)", "open ms per op", "boot (minutes)"] {
            assert_eq!(direction(name), Some(Direction::LowerIsBetter), "{name}");
        }
        // Words that are units may also be something else.
        for name in [
            "side B",
            "side s",
            "ext4 min",
            "ext4 (min)",
            "copy file(s)",
            "thread(s)",
            "fsck seconds",
            "wait [s]",
            "sleep 10 ms",
            "touch (1 s)",
            "limit 10 MB/s",
            "limit (10 MB/s)",
            "mkfile, 1 GB",
            "x",
            "CPU (%)",
            "UFS/log",
            "",
        ] {
            assert_eq!(direction(name), None, "{name}");
        }
        assert_eq!(FigureUnit::named("A MB/s"), FigureUnit::of("MB/s"));
    }

    #[test]
    fn units_of_one_kind_are_converted() {
        let of = |text: &str| FigureUnit::of(text).unwrap();
        for (from, to, factor) in [
            ("MiB/s", "KiB/s", 1024.0),
            ("MiB/s", "K/sec", 1024.0),
            ("MiB/s", "KB/s", 1048.576),
            ("MiB/s", "MB/s", 1.048_576),
            ("per second", "per minute", 60.0),
            ("ops/s", "txns/min", 60.0),
            ("ops/s", "/s", 1.0),
            ("s", "ms", 1000.0),
            ("MiB", "GB", 0.001_048_576),
        ] {
            let found = of(from).in_unit(of(to)).unwrap();
            assert!((found / factor - 1.0).abs() < 1e-12, "{from} in {to}: {found}");
        }
        let time = FigureUnit::of_metric("r.latency.p99").unwrap();
        assert!((time.in_unit(of("ms")).unwrap() / 1e-6 - 1.0).abs() < 1e-12);
        assert_eq!(of("MiB/s").in_unit(of("MiB")), None);
        assert_eq!(of("ops/s").in_unit(of("ms")), None);
        // A small `b` may be a bit.
        assert_eq!(["Mb/s", "Mbit/s", "x", "", "ops/x"].map(FigureUnit::of), [None; 5]);
    }
}
