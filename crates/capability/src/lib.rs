//! What this machine can clean, measured with a probe child.
//!
//! A probe is a leader that ends at once and leaves a double-forked descendant in a session of its
//! own. A mechanism counts as available only when that descendant was counted, killed and proven
//! gone, in the very place where attempts would live: in a leaf of this process's own control group,
//! under this process as a subreaper, or in a PID namespace made by it.
//!
//! **It never** assumes anything from a version, a mount or a user id, and it starts no program: the
//! probe is built in.
//!
//! **Limitations.** It is to be called in a runner process that has no children yet: the process
//! becomes a child subreaper and stays one, and reaps what comes to it. A measurement holds for the
//! control group and the moment in which it was made. A PID namespace is reported and never chosen
//! unasked: the program sees other process numbers in it.
//!
//! Reading order: `measure`, `containment`, `group`, `failure`.
//!
//! ```no_run
//! let report = placement_capability::measure();
//! println!("{} by {:?}", report.capability, report.mechanism);
//! ```

#![cfg(target_os = "linux")]

mod containment;
mod failure;
mod group;
mod limits;
mod measure;

pub use measure::measure;
