//! Named points at which a campaign freezes a process to kill it; nothing at all without the
//! feature `points`.
//!
//! **Owns** the one call that announces a point. **Never** decides what becomes of a process: it
//! stops itself, and whoever drives the campaign kills it, its counterpart or both, or lets it go
//! on. **Limits**: Linux; for builds that are thrown away, so a release build refuses the feature.
//!
//! A point that was announced stands in the code as `point("who.what.became")`; `cargo xtask crash`
//! finds them there, and fails for one that no campaign comes by.
//!
//! With the feature, a program whose file has a neighbour of the same name that ends in `.points` is
//! under a campaign: each point is appended to the neighbour that ends in `.trace`, and the process
//! freezes the first time it comes to one whose name is a line of `.points`.
//!
//! ```
//! placement_crash::point("example.shown"); // does nothing here
//! ```

#[cfg(all(feature = "points", not(debug_assertions)))]
compile_error!("crash points are for campaigns: a release build must not have them");

#[cfg(feature = "points")]
mod freeze;

use std::fmt;

/// Announces that this process is at a named point.
#[inline]
pub fn point(name: impl fmt::Display) {
    #[cfg(feature = "points")]
    freeze::at(&name.to_string());
    #[cfg(not(feature = "points"))]
    drop(name);
}
