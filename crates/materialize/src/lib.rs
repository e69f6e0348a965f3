#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod environment;
mod failed;
mod materialization;
mod places;
mod program;
mod reserved;
mod workdir;

pub use environment::{Environment, Values};
pub use failed::Failed;
pub use materialization::{Inputs, Materialization, Progress, Ready};
pub use reserved::{ATTEMPT_MARKER, RESERVED_NAMES, reserved_conflict};
