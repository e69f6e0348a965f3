//! Decoding launch requests: what is accepted, what is refused, and that no refusal quotes a value.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod digest;
mod fields;
mod hostile;
mod offered;
mod planned;
mod sample;
