//! Commands one after another: what a script, a profile or a prompt does.
