//! Threads that run a plan.
