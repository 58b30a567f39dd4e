//! One file for each family of flowops, and the table of them all.
