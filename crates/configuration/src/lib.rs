#![doc = include_str!("../README.md")]

mod compose;
mod document;
mod json;
mod limits;
mod scan;
mod secrets;
mod toml;
mod tree;

pub use compose::{ComposeError, compose};
pub use document::{DocumentError, TextFormat};
pub use limits::{NESTING_MAX, RENDERED_BYTES_MAX, SCANNED_NESTING_MAX};
pub use scan::{DeclaredFile, DeclaredPresence, Projection, ScanError, scan};
pub use secrets::{PlaceSecretsError, place_secrets};
