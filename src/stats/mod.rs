//! Counting while a run goes on, and the result that is left of it.
