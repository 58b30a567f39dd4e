//! Dates: the current time as text, and the time that a text means.

use jiff::Timestamp;

/// Returns the current time as RFC 3339 in UTC.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the seconds since 1970 of a time in the format of [`now`], or `None` when it has another format.
pub fn seconds_of(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// Returns the day of a time in seconds since 1970, in UTC, as `2026-11-20`. `None` for a time that no date has.
pub fn day(seconds: i64) -> Option<String> {
    Some(Timestamp::from_second(seconds).ok()?.strftime("%Y-%m-%d").to_string())
}

/// Returns the current time in the format of the directory names of Filebench's batch mode, but in UTC:
/// `Nov_20_2026-11h_05m_09s`.
pub fn day_and_time() -> String {
    Timestamp::now().strftime("%b_%-d_%Y-%Hh_%Mm_%Ss").to_string()
}
