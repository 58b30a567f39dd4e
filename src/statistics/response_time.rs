//! The overall response time of a load curve, as defined by SPEC's benchmarks of NFS servers.

use serde::{Deserialize, Serialize};

wml_text::named! {
    /// The extrapolation of a load curve below its first point.
    pub serde enum ResponseMethod {
        Sfs2 = "sfs2", "SFS 2.0: below the first point the response time is constant";
        Sfs3 = "sfs3", "SFS 3.0: the curve starts at the origin";
    }
}

/// A point of a load curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoadPoint {
    /// The rate of I/O operations, per second.
    pub rate: f64,
    /// The mean response time; null if it is unknown.
    pub response: Option<f64>,
}

/// The overall response time of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OverallResponse {
    /// The peak rate: the greatest rate of a point with a known response time.
    pub peak: f64,
    /// The area below the curve up to the peak, divided by the peak rate. In the unit of the response times.
    pub ort: f64,
}

/// Computes the overall response time of points, which must be in the order of their load. It is the area below the
/// curve of response time over rate up to the peak, divided by the peak rate. Points without a response time are
/// ignored, and so are points after the peak. Where the rate falls from one load to the next, the area between them is
/// subtracted. Returns `None` when no point has a rate above 0, and when
/// the response times are too great for a number.
pub fn overall_response(points: &[LoadPoint], method: ResponseMethod) -> Option<OverallResponse> {
    let known: Vec<(f64, f64)> = points.iter().filter_map(|p| Some((p.rate, p.response?))).collect();
    let peak = known.iter().map(|(rate, _)| *rate).reduce(f64::max).filter(|peak| *peak > 0.0)?;
    let at = known.iter().position(|(rate, _)| *rate >= peak)?;
    // Shares of the peak, because the area itself may be too great for a number.
    let (first_share, first_response) = (known[0].0 / peak, known[0].1);
    let below = match method {
        ResponseMethod::Sfs2 => first_share * first_response,
        ResponseMethod::Sfs3 => first_share * first_response / 2.0,
    };
    let trapezoid = |pair: &[(f64, f64)]| (pair[1].0 / peak - pair[0].0 / peak) * f64::midpoint(pair[0].1, pair[1].1);
    let ort = below + known[..=at].windows(2).map(trapezoid).sum::<f64>();
    ort.is_finite().then_some(OverallResponse { peak, ort })
}

/// The reason why a curve has no knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKnee {
    /// Fewer than three points have a rate and a response time.
    FewPoints,
    /// The rate or the response time of the last point is not above that of the first.
    NotRising,
    /// No point is far enough below the straight line between the ends of the curve.
    Straight,
}

impl NoKnee {
    /// Returns the reason as a phrase.
    pub fn about(self) -> &'static str {
        match self {
            Self::FewPoints => "fewer than three points have results",
            Self::NotRising => "the rate or the response time does not rise from the first point to the last",
            Self::Straight => "the response time does not rise more steeply at higher rates",
        }
    }
}

/// Returns the index of the knee, from which the response time rises steeply: the point with the greatest distance
/// below the straight line from the first to the last point, with each axis scaled to its range (Satopaa and others,
/// "Finding a 'Kneedle' in a Haystack", 2011). Returns an error when there are fewer than three points, or when no point
/// is below the line by more than 5 % of the range.
pub fn knee(points: &[LoadPoint]) -> Result<usize, NoKnee> {
    let known: Vec<(usize, f64, f64)> =
        points.iter().enumerate().filter_map(|(n, p)| Some((n, p.rate, p.response?))).collect();
    let [(_, x0, y0), _, .., (_, x1, y1)] = known[..] else { return Err(NoKnee::FewPoints) };
    if x1 <= x0 || y1 <= y0 {
        return Err(NoKnee::NotRising);
    }
    let below = |(n, x, y): &(usize, f64, f64)| (*n, (x - x0) / (x1 - x0) - (y - y0) / (y1 - y0));
    let deepest = known.iter().map(below).max_by(|a, b| a.1.total_cmp(&b.1));
    deepest.filter(|(_, depth)| *depth > 0.05).map(|(at, _)| at).ok_or(NoKnee::Straight)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<LoadPoint> {
        points
            .iter()
            .map(|(rate, response)| LoadPoint { rate: *rate, response: response.is_finite().then_some(*response) })
            .collect()
    }

    /// Two published curves and the values in their reports.
    #[test]
    fn published_curves_have_the_published_response_times() {
        let sfs2 = curve(&[
            (484.0, 2.2),
            (982.0, 2.7),
            (1979.0, 3.1),
            (3011.0, 3.7),
            (4000.0, 4.0),
            (4997.0, 4.6),
            (5987.0, 5.0),
            (6955.0, 5.4),
            (7934.0, 6.1),
            (8500.0, 6.8),
            (9032.0, 7.8),
            (9521.0, 8.6),
            (10046.0, 9.7),
            (10595.0, 11.6),
            (10919.0, 13.2),
            (10942.0, 15.5),
        ]);
        let found = overall_response(&sfs2, ResponseMethod::Sfs2).unwrap();
        assert!((found.ort - 5.37).abs() < 0.005 && found.peak == 10942.0, "{found:?}");
        assert!((8..13).contains(&knee(&sfs2).unwrap()), "{:?}", knee(&sfs2));
        let sfs3 = curve(&[
            (448.0, 1.6),
            (906.0, 1.7),
            (1372.0, 1.8),
            (1825.0, 1.9),
            (2263.0, 2.4),
            (2728.0, 3.5),
            (3193.0, 4.7),
            (3656.0, 6.4),
            (4097.0, 8.5),
            (4480.0, 11.5),
        ]);
        let found = overall_response(&sfs3, ResponseMethod::Sfs3).unwrap();
        assert!((found.ort - 3.72).abs() < 0.005, "{found:?}");
    }

    #[test]
    fn unusual_curves_have_the_documented_results() {
        let ort = |points: &[(f64, f64)], method| overall_response(&curve(points), method).map(|found| found.ort);
        let (sfs2, sfs3) = (ResponseMethod::Sfs2, ResponseMethod::Sfs3);
        assert_eq!((ort(&[], sfs2), ort(&[(0.0, 1.0)], sfs3), ort(&[(5.0, f64::NAN)], sfs2)), (None, None, None));
        assert_eq!((ort(&[(100.0, 4.0)], sfs2), ort(&[(100.0, 4.0)], sfs3)), (Some(4.0), Some(2.0)));
        // A point without a response time is ignored.
        let (whole, missing) = ([(100.0, 2.0), (200.0, 4.0)], [(100.0, 2.0), (150.0, f64::NAN), (200.0, 4.0)]);
        assert_eq!(ort(&whole, sfs2), ort(&missing, sfs2));
        // Points after the peak are ignored. The area of a dip before the peak is subtracted, then added again.
        assert_eq!(ort(&whole, sfs2), ort(&[(100.0, 2.0), (200.0, 4.0), (180.0, 9.0)], sfs2));
        assert_eq!(ort(&[(100.0, 2.0), (50.0, 4.0), (200.0, 4.0)], sfs2), Some((200.0 - 150.0 + 600.0) / 200.0));
        assert_eq!(knee(&curve(&whole)), Err(NoKnee::FewPoints));
        assert_eq!(knee(&curve(&[(1.0, 1.0), (2.0, 3.0), (1.5, 4.0), (0.5, 9.0)])), Err(NoKnee::NotRising));
        assert_eq!(
            knee(&curve(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)])),
            Err(NoKnee::Straight),
            "a straight line has no knee"
        );
        // The response time rises steeply at first, so it does not rise evenly.
        let concave = knee(&curve(&[(1.0, 1.0), (2.0, 8.0), (3.0, 9.0)])).map_err(NoKnee::about);
        assert_eq!(concave, Err("the response time does not rise more steeply at higher rates"));
    }
}
