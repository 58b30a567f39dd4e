//! The interactive shell.
