//! Which process this is, and the three-valued answer present, absent or unknown for a leader and
//! its group.
//!
//! A pid is a number that the kernel gives to somebody else as soon as its owner is reaped. This
//! crate records who had it ([`ProcessIdentity`]: pid, group, start stamp, boot, pidfd inode, and
//! from where it was seen) and answers later, from any process, whether that one still runs. The
//! answer is never a guess: [`Presence::Absent`] carries the proof, [`Presence::Present`] carries a
//! handle that can reach nobody else, and everything in between is [`Presence::Unknown`].
//!
//! **It never** signals what it has not verified, starts a program to look around, or writes
//! anything.
//!
//! **Limitations.** Linux only. Where the kernel has no pidfd inodes (before 6.9) two processes
//! that had the same pid within one 10 ms tick look alike. A restricted `/proc` (`hidepid`,
//! `subset`), another PID or time namespace and another machine make answers unknown. A process can
//! overwrite its own environment, and so hide from [`scan_marker`].
//!
//! Reading order: `signal`, `pid`, `errno`, `machine`, `observer`, `stat`, `process`, `presence`,
//! `group`, `marker`.
//!
//! ```
//! use placement_identity::{Presence, ProcessIdentity, Signal};
//! # #[expect(clippy::disallowed_methods, reason = "an example needs a child")]
//! # fn child() -> std::io::Result<std::process::Child> {
//! #     std::process::Command::new("sleep").arg("60").spawn()
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut child = child()?;
//! let seen = ProcessIdentity::of(child.id())?; // serde: store it wherever you like
//! match seen.observe() {
//!     Presence::Present(it) => it.signal(Signal::Term)?, // to the verified process, never to a number
//!     Presence::Absent(proof) => println!("gone: {}", proof.because()),
//!     Presence::Unknown(why) => println!("keep everything: {why}"),
//! }
//! # child.wait()?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod decimal;
mod errno;
mod group;
mod limits;
mod machine;
mod marker;
mod observer;
mod pid;
mod presence;
mod process;
mod procfs_view;
mod signal;
mod stat;

pub use errno::Errno;
pub use group::{GroupAbsence, GroupPresence, observe_group};
pub use machine::{MachineError, boot_id, machine_id};
pub use marker::{Marker, MarkerDoubt, MarkerScan, MarkerTable, scan_marker, variable_of};
pub use observer::{Observer, Place, place};
pub use pid::{Pid, PidError};
pub use presence::{AbsenceProof, Presence, SignalError, UnknownWhy, Verified};
pub use process::{IdentityError, ProcessIdentity, number_of_pidfd};
pub use procfs_view::{ProcView, ProcessList, list_processes, proc_view};
pub use signal::Signal;
pub use stat::{ProcessState, Stat, StatError, read_stat};
