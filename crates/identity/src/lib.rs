#![doc = include_str!("../README.md")]
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
pub use observer::{Here, Observer, Place, place};
pub use pid::{Pid, PidError};
pub use presence::{AbsenceProof, Presence, SignalError, UnknownWhy, Verified};
pub use process::{IdentityError, ProcessIdentity, number_of_pidfd};
pub use procfs_view::{ProcView, ProcessList, list_processes, proc_view};
pub use signal::Signal;
pub use stat::{ProcessState, Stat, StatError, read_stat};
