//! Distributions in the text formats of `HdrHistogram`: the table of percentiles (`.hgrm`) and the interval log
//! (`.hlog`), which its plotters and libraries read.

use super::hdr::histogram;
use super::snapshot::Dist;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// The number of percentiles each time that the distance to 100 % halves, as in the tables of other programs.
const PERCENTILES_PER_HALF: u32 = 5;

/// The number of buckets of equal width in each power of two, as the crate calls them, for two significant digits.
const SUB_BUCKETS: u32 = 256;

/// The ratio of the unit of the histograms, nanoseconds, to that of the greatest value in a log, milliseconds.
const NS_PER_MS: f64 = 1e6;

/// Writes the table of percentiles of a distribution, in nanoseconds.
pub fn percentile_table(dist: &Dist, out: &mut dyn Write) -> io::Result<()> {
    let histogram = histogram(dist);
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let mut count = 0;
    for step in histogram.iter_quantiles(PERCENTILES_PER_HALF) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64, step.quantile_iterated_to());
        write!(out, "{value:12.2} {quantile:2.12} {count:10}")?;
        if quantile < 1.0 {
            write!(out, " {:14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "#[Mean    = {:12.2}, StdDeviation   = {:12.2}]", histogram.mean(), histogram.stdev())?;
    writeln!(out, "#[Max     = {:12.2}, TotalCount     = {:12.2}]", histogram.max() as f64, histogram.len() as f64)?;
    writeln!(out, "#[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]", histogram.buckets())
}

/// A distribution in an interval log.
pub struct LoggedInterval<'a> {
    /// Its name.
    pub tag: &'a str,
    /// The start of the interval, relative to the start of the log.
    pub start: Duration,
    pub length: Duration,
    /// The distribution of the operations in it, in nanoseconds.
    pub dist: Dist,
}

/// Writes an interval log that starts at a time, with a comment at its beginning.
pub fn interval_log(
    started: SystemTime,
    comment: &str,
    intervals: &[LoggedInterval<'_>],
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment(comment).add_comment("[Histogram log format version 1.3]");
    builder.with_start_time(started).with_base_time(started).with_max_value_divisor(NS_PER_MS);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    for interval in intervals {
        let tag = tag_of(interval.tag);
        let written = log.write_histogram(&histogram(&interval.dist), interval.start, interval.length, Tag::new(&tag));
        written.map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
        })?;
    }
    Ok(())
}

/// Replaces the characters that a tag can't have.
fn tag_of(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LoggedInterval, interval_log, percentile_table};
    use crate::layout;
    use crate::snapshot::Dist;
    use std::time::{Duration, SystemTime};

    fn dist() -> Dist {
        Dist::from_counts([(layout::index(900), 3), (layout::index(5_000), 1)])
    }

    #[test]
    fn the_table_ends_with_all_operations() {
        let mut out = Vec::new();
        percentile_table(&dist(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("  Value     Percentile TotalCount 1/(1-Percentile)") && lines[1].is_empty(),
            "{text}"
        );
        // Three of four operations are in the first bucket.
        let bucket = format!("{}.00", layout::highest(layout::index(900)));
        let first: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!((first[0], &first[1..]), (bucket.as_str(), &["0.000000000000", "3", "1.00"][..]), "{text}");
        let last: Vec<&str> = lines[lines.len() - 4].split_whitespace().collect();
        assert_eq!(&last[1..], ["1.000000000000", "4"], "{text}");
        assert!(lines[lines.len() - 2].ends_with("TotalCount     =         4.00]"), "{text}");
    }

    #[test]
    fn an_empty_distribution_has_a_table() {
        let mut out = Vec::new();
        percentile_table(&Dist::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("TotalCount     =         0.00") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn tags_are_single_words() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let (start, length) = (Duration::from_millis(1500), Duration::from_mins(1));
        let mut out = Vec::new();
        let interval = LoggedInterval { tag: "a b,c/d\n", start, length, dist: dist() };
        interval_log(started, "comment", &[interval], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("#comment\n#[Histogram log format version 1.3]\n#[StartTime: 1700000000.000 "),
            "{text}"
        );
        assert!(text.contains("\nTag=a_b_c/d_,1.500,60.000,0.005,HISTFAAA"), "{text}");
    }
}
