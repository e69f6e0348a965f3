#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod containment;
mod failure;
mod group;
mod limits;
mod measure;

pub use measure::measure;
