//! The operating system: descriptors, memory maps, the clock. Nearly all `unsafe` is here.
