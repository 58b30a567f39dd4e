//! The calls that operations are made of: on a real file system, or on nothing.
