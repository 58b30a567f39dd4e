//! File sets: trees, names, sizes, population, picking, ownership.
