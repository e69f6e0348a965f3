#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod admit;
mod reopen;

pub use admit::{OwnHome, ResolvedGrant, admit};
pub use reopen::{ReopenError, reopen};
