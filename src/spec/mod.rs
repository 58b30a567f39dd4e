//! Descriptors of commands, attributes and flowops as data. From them come checking, near misses, completion, lists and the manual.

pub mod dialect;
pub mod words;
