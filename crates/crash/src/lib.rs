#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(all(feature = "points", not(debug_assertions)))]
compile_error!("crash points are for campaigns: a release build must not have them");

#[cfg(feature = "points")]
mod freeze;
#[cfg(debug_assertions)]
mod watch;

#[cfg(debug_assertions)]
pub use watch::watch;

use std::fmt;

/// Announces that this process is at a named point.
#[inline]
pub fn point(name: impl fmt::Display) {
    #[cfg(debug_assertions)]
    watch::tell(&name);
    #[cfg(feature = "points")]
    freeze::at(&name.to_string());
    drop(name);
}
