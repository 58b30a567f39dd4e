//! Random streams and distributions.
