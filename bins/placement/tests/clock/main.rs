//! The wall clock is set forward and back, by years, while attempts run: every wait goes on as it was,
//! nothing is lost, and what is recorded stays in its order. And a place with clocks of its own.

#![expect(clippy::print_stdout, reason = "a test says what it does not cover here")]

mod namespace;
mod stepped;
mod steps;
