//! Dates: the current time as text, and the time that a text means.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

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

/// Returns the day of a time in seconds since 1970 where the program runs. See [`day`].
pub fn local_day(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?.to_zoned(TimeZone::system());
    Some(time.strftime("%Y-%m-%d").to_string())
}

/// The number of days since a day such as `2026-11-20`, where the program runs. It is negative of a later one.
pub fn days_since(day: &str) -> Option<i64> {
    let day: Date = day.parse().ok()?;
    Some(Timestamp::now().to_zoned(TimeZone::system()).date().since(day).ok()?.get_days().into())
}

/// True if a text is a day, such as `2026-11-20`.
pub fn is_day(text: &str) -> bool {
    text.len() == "2026-11-20".len() && text.parse::<Date>().is_ok()
}

/// Returns the current time in the format of the directory names of Filebench's batch mode, but in UTC:
/// `Nov_20_2026-11h_05m_09s`.
pub fn day_and_time() -> String {
    Timestamp::now().strftime("%b_%-d_%Y-%Hh_%Mm_%Ss").to_string()
}
