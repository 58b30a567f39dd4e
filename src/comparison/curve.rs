//! The overall response time of a load curve that was measured before, `wmlrun.curve/1`.

use crate::analysis::{LoadPoint, OverallResponse, ResponseMethod, knee, overall_response};
use crate::util::count::{exact, fixed, or_dash};
use crate::util::table::{Align, Table};
use serde::Serialize;

/// A load curve with its overall response time.
#[derive(Serialize)]
pub struct CurveDocument<'a> {
    schema: &'static str,
    method: ResponseMethod,
    #[serde(flatten)]
    found: OverallResponse,
    points: &'a [LoadPoint],
}

impl<'a> CurveDocument<'a> {
    /// `None` for a curve without a point that has a rate and a response time.
    pub(crate) fn of(points: &'a [LoadPoint], method: ResponseMethod) -> Option<Self> {
        let found = overall_response(points, method)?;
        Some(Self { schema: "wmlrun.curve/1", method, found, points })
    }

    /// A table with a line for each point, and the result.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new([("rate", Align::Right), ("response", Align::Right), ("", Align::Left)]);
        let knee = knee(self.points);
        let is_peak = |point: &LoadPoint| point.response.is_some() && point.rate >= self.found.peak;
        for (n, point) in self.points.iter().enumerate() {
            let response = or_dash(point.response, exact);
            let mark = match (is_peak(point), knee == Ok(n)) {
                (true, _) => "peak",
                (false, true) => "knee",
                (false, false) => "",
            };
            table.row([exact(point.rate), response, mark.to_owned()]);
        }
        let (ort, peak) = (fixed(self.found.ort, 2), exact(self.found.peak));
        format!("{}\noverall response time {ort} by {}, peak {peak}\n", table.render(), self.method.name())
    }
}
