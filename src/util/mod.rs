//! Small things without an opinion: sizes, durations, counts, tables of text.
