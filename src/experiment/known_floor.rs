//! The stored noise floor of a comparison.

use super::floor::{Floors, place};
use crate::analysis::{MIN_SESSION_GAP, NoiseFloor};
use crate::import::{Metric, Observation};
use std::io;

/// The noise floor of a comparison of these sides, of which each has its own conditions. `None` if that of a side has not
/// been measured. An error if the floors can't be read.
pub fn known_floor<S: AsRef<[Observation]>>(sides: &[S], metric: &Metric) -> io::Result<Option<NoiseFloor>> {
    let places: Option<Vec<_>> = sides.iter().map(|side| place(side.as_ref())).collect();
    let (Some(places), Some(path)) = (places, Floors::path()) else { return Ok(None) };
    let floors = Floors::read(&path)?;
    // What was measured on the day of the later side may include what changed it.
    let starts = sides.iter().filter_map(|side| side.as_ref().iter().filter_map(|run| run.started).min());
    let (first, last) = (starts.clone().min(), starts.max());
    let until =
        first.zip(last).filter(|(first, last)| last - first >= MIN_SESSION_GAP).map(|(_, last)| last - MIN_SESSION_GAP);
    let of_sides = places.iter().map(|place| floors.of(&metric.to_string(), place, until)).collect::<Option<Vec<_>>>();
    Ok(of_sides.and_then(|floors| floors.into_iter().reduce(NoiseFloor::wider)))
}

/// Returns the note on sides of different days for which a noise floor is missing: where one would be stored, or why a
/// stored one does not apply. `None` if there is none of their script.
pub fn missing_floor<S: AsRef<[Observation]>>(sides: &[S], metric: &Metric) -> Option<String> {
    let Some(path) = Floors::path() else {
        return Some("no noise floor can be read: set HOME or XDG_STATE_HOME to an absolute path".to_owned());
    };
    let floors = Floors::read(&path).ok()?;
    let places = sides.iter().filter_map(|side| place(side.as_ref()));
    let differing = places.filter_map(|place| floors.differing(&metric.to_string(), &place)).max_by_key(Vec::len)?;
    Some(match &differing[..] {
        [] => {
            "a noise floor is stored, but was not measured at least twelve hours before the later side: it counts from \
             the next day on"
                .to_owned()
        }
        names => format!("the nearest stored noise floor was measured with another {}", names.join(", another ")),
    })
}
