//! Parses and formats sizes, durations, dates and counts, aligns tables of text, escapes control characters and
//! Markdown, and reads JSON of limited size.
//!
//! Input and output are numbers and text. Not in here: WML's notation of sizes (see `syntax`), and colours.
//! `size::format(3 << 30)` is `3.0 GiB`.

pub mod ascii;
pub mod batch_files;
pub mod bounded;
pub mod count;
pub mod csv;
pub mod duration;
pub mod go_bench;
pub mod hash;
pub mod json;
pub mod markdown;
mod named;
pub mod printable;
pub mod secrets;
pub mod size;
pub mod table;
pub mod timestamp;
pub mod visible_json;
pub mod wrap;
