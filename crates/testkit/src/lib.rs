//! Test support without anything of ours: temporary roots, a seeded generator and a fake clock.
