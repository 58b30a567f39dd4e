//! Small things without an opinion: sizes, durations, counts, tables of text, text without control characters.
//!
//! Goes in and comes out: numbers and text. Absent: WML's own notation of sizes (that is the language's), and colours.
//! `util::size::format(3 << 30)` is `3.0 GiB`.

pub mod count;
pub mod duration;
pub mod printable;
pub mod size;
pub mod table;
