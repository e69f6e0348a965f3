//! Test support without anything of ours: temporary roots, a seeded generator and a fake clock.
//!
//! **Owns** what every test needs and nothing of placement knows: [`TempRoot`], [`Random`],
//! [`FakeTime`], [`wait_until`], programs run as an ordinary user ([`demoted`]), a test in a process
//! ([`in_own_process`]) or in mounts ([`in_own_mounts`]) of its own, a count of syncs ([`rounds`]) and
//! examples ([`example`]). **Never** imports a crate of ours, so that any of them can use it.
//! **Limits**: Linux; failures panic, since the caller is a test.
//!
//! ```
//! use placement_testkit::{FakeTime, Random, TempRoot, wait_until};
//! use std::time::Duration;
//!
//! let root = TempRoot::new();
//! std::fs::write(root.join("note"), "here")?;
//! wait_until(Duration::from_secs(5), "the note", || root.join("note").exists());
//!
//! assert_eq!(Random::seeded(7).next_u64(), Random::seeded(7).next_u64());
//!
//! let time = FakeTime::at(1_000);
//! time.advance(Duration::from_millis(250));
//! assert_eq!(time.unix_ms(), 1_250);
//! # Ok::<(), std::io::Error>(())
//! ```

mod example;
mod own_process;
mod random;
mod root;
mod syncs;
mod time;
mod user;
mod wait;

pub use example::example;
pub use own_process::{in_own_mounts, in_own_process};
pub use random::Random;
pub use root::TempRoot;
pub use syncs::{MARK, Round, rounds};
pub use time::FakeTime;
pub use user::{ORDINARY_ID, demoted, is_root, run_as_ordinary_user, run_as_ordinary_user_with};
pub use wait::wait_until;
