//! Percentiles, standard deviation, and the stored form of a distribution, by the `hdrhistogram` crate.
//!
//! The stored form is `HdrHistogram`'s V2 format, deflated, in base64. The HDR libraries of other languages can read
//! it.

use super::layout;
use super::snapshot::Dist;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer, Serializer, V2DeflateSerializer};
use std::io::{self, ErrorKind, Read};

/// The number of significant digits that gives the buckets of [`layout`].
const DIGITS: u8 = 2;

/// The first bytes of the compressed form.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// The length of the header of the form without compression, in bytes.
const HEADER: usize = 40;

/// The maximum length of a histogram without compression, in bytes. That of [`layout`] has at most 10 bytes per bucket.
const MAX_LENGTH: u64 = 1 << 20;

/// A distribution prepared for queries.
#[derive(Debug)]
pub struct Quantiles {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
}

impl Quantiles {
    /// Prepares a distribution. If it is empty, all results are 0.
    pub fn of(dist: &Dist) -> Self {
        let min = if dist.count == 0 { 0 } else { dist.min };
        // The extremes of a sample may be older than its counts by one operation.
        Self { histogram: histogram(dist), min: min.min(dist.max), max: dist.max }
    }

    /// Returns the value at the quantile `q` (0 … 1); see [`Dist::percentile`].
    pub fn at(&self, q: f64) -> u64 {
        // Beyond the end of the layout only the greatest value is known exactly.
        let found = if q >= 1.0 { self.max } else { self.histogram.value_at_quantile(q) };
        found.clamp(self.min, self.max)
    }

    /// Returns the standard deviation, in nanoseconds.
    pub fn stddev(&self) -> f64 {
        self.histogram.stdev()
    }
}

/// Returns a distribution as a histogram of the crate. Every operation has the lowest value of its bucket.
pub(super) fn histogram(dist: &Dist) -> Histogram<u64> {
    let mut histogram = empty();
    for (index, n) in dist.recorded() {
        histogram.saturating_record_n(layout::lowest(index), n);
    }
    histogram
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, layout::LIMIT - 1, DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are constants"))
}

/// Encodes the counts of a distribution in the stored form.
pub fn encode(dist: &Dist) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and no count exceeds 2⁶³.
    match V2DeflateSerializer::new().serialize(&histogram(dist), &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The reason why a stored histogram cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not in the HDR V2 format.
    #[error("histogram is not in HDR's V2 format: {0:?}")]
    Format(DeserializeError),
}

/// Decodes the stored form, and the same form without compression. Values of a histogram with another precision are
/// counted in the nearest buckets.
pub fn decode(text: &str) -> Result<Dist, HistogramError> {
    let bytes = inflate(STANDARD.decode(text)?).map_err(|e| HistogramError::Format(DeserializeError::IoError(e)))?;
    let histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(HistogramError::Format)?;
    let counts = histogram.iter_recorded().map(|v| (layout::index(v.value_iterated_to()), v.count_at_value()));
    Ok(Dist::from_counts(counts))
}

/// Returns the form without compression. The crate allocates as many bytes as a header claims, up to 4 GiB, so a
/// header that claims more than there is gives an error.
fn inflate(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let plain = match bytes.strip_prefix(&COMPRESSED) {
        Some(rest) => {
            let mut plain = Vec::new();
            let content = rest.get(4..).ok_or(ErrorKind::UnexpectedEof)?;
            ZlibDecoder::new(content).take(MAX_LENGTH).read_to_end(&mut plain)?;
            plain
        }
        None => bytes,
    };
    let claimed = plain.get(4..8).and_then(|length| length.try_into().ok()).map_or(0, u32::from_be_bytes);
    if claimed as usize > plain.len().saturating_sub(HEADER) {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{HEADER, STANDARD, decode, empty, encode, inflate};
    use crate::layout;
    use crate::snapshot::Dist;
    use base64::Engine as _;
    use proptest::prelude::*;

    #[test]
    fn the_crate_has_the_same_buckets() {
        let histogram = empty();
        assert_eq!(histogram.distinct_values(), layout::LEN);
        for i in (0..layout::LEN).step_by(7) {
            let value = layout::lowest(i);
            assert_eq!(histogram.lowest_equivalent(value), value);
            assert_eq!(histogram.highest_equivalent(value), layout::highest(i));
        }
    }

    /// A sample that was taken while an operation was recorded has its count, but not yet its value.
    #[test]
    fn extremes_that_are_older_than_the_counts_are_no_error() {
        let mut dist = Dist::from_counts([(5, 1)]);
        (dist.min, dist.max) = (u64::MAX, 0);
        assert_eq!(super::Quantiles::of(&dist).at(0.5), 0);
        let baseline = Dist::from_counts([(5, 1)]);
        let mut sample = Dist::from_counts([(5, 1), (9000, 1)]);
        sample.max = 5;
        let rest = sample.minus(&baseline);
        assert!(rest.min <= rest.max && rest.min > 5, "{rest:?}");
    }

    #[test]
    fn a_header_that_claims_more_than_there_is_is_refused() {
        let dist = Dist::from_counts([(5, 3), (900, 1)]);
        let mut plain = inflate(STANDARD.decode(encode(&dist)).unwrap()).unwrap();
        assert_eq!(decode(&STANDARD.encode(&plain)).unwrap(), dist);
        let length = u32::try_from(plain.len() - HEADER).unwrap();
        plain[4..8].copy_from_slice(&(length + 1).to_be_bytes());
        assert!(decode(&STANDARD.encode(&plain)).unwrap_err().to_string().contains("UnexpectedEof"));
    }

    proptest! {
        #[test]
        fn decoding_restores_what_was_encoded(indices in prop::collection::vec((0..layout::LEN, 1_u64..1 << 50), 0..50)) {
            let dist = Dist::from_counts(indices);
            prop_assert_eq!(decode(&encode(&dist)).unwrap(), dist);
        }

        #[test]
        fn invalid_texts_are_refused_with_a_message(text in "[A-Za-z0-9+/=]{0,80}") {
            if let Err(error) = decode(&text) {
                prop_assert!(error.to_string().starts_with("histogram is not"));
            }
        }
    }
}
