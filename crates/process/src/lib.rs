//! One child: containment, exec gate, spawn, pipes or a terminal, signals and exit observation; the
//! only crate with unsafe code.
//!
//! Everything here happens in the small runner process, on its loop thread, and nothing but
//! [`Gated::open_gate`], the making of a PID namespace or of a session, and the calls that are given a
//! time wait. The order is: find the place
//! ([`CgroupSite`]), make the leaf, make the process behind its gate ([`spawn`]), record
//! [`Gated::identity`], open the gate, join leader and containment in a [`Tree`], and at the end turn
//! the tree into its proof ([`TreeGone`]).
//!
//! **It never** reports a signal as an exit, signals a number that may be somebody else's by now,
//! reaps the leader by accident, or runs a program that was not recorded.
//!
//! **Limitations.** Linux 5.9 or later; a leaf needs 5.14, and a container engine whose filter lets
//! `clone3` through. A control group contains against accident: a process of the same user can move
//! itself out. A subreaper proves nothing once it is gone. Inside a PID namespace numbers are others
//! than outside, and without privilege `su` and `sudo` do not work and other users' files look like
//! nobody's. Nothing contains what another daemon starts for the child (`systemd-run`, `docker run`,
//! `at`, a running `tmux` server).
//!
//! **Unsafe** is `clone3` and `clone`, what the new process does before exec (`child`, `init`,
//! `probe`), the group flag of `pidfd_send_signal`, `close_range`, and setting signal dispositions.
//!
//! Reading order: `site`, `leaf`, `controllers`, `spawn`, `child`, `init`, `namespace`, `gate`, `leader`, `tree`, `members`,
//! `descendants`, `proof`, `pipes`, `terminal`, `raw`, `own`, `start`, `probe`, `poll`, `sys`.
//!
//! ```
//! use std::os::fd::AsFd as _;
//!
//! use placement_process::{Birthplace, OnParentDeath, Pipe, Program, Session, Spawn, dev_null, spawn};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (null, output) = (dev_null()?, Pipe::from_child()?);
//! let root = std::fs::File::open("/")?;
//! let gated = spawn(&Spawn {
//!     program: Program::Path(c"/bin/echo"),
//!     argv: vec![c"echo".into(), c"hello".into()],
//!     environment: vec![],
//!     working_directory: root.as_fd(),
//!     stdin: null.as_fd(),
//!     stdout: output.theirs.as_fd(),
//!     stderr: null.as_fd(),
//!     birthplace: Birthplace::Here,
//!     on_parent_death: OnParentDeath::Die,
//!     session: Session::Inherited,
//! })?;
//! let identity = gated.identity()?; // to be recorded before anything runs
//! let mut leader = gated.open_gate()?.leader;
//! # while leader.observe_exit()?.is_none() { std::thread::yield_now(); }
//! println!("{}: {}", identity.pid, leader.reap()?);
//! # Ok(())
//! # }
//! ```

#![expect(unsafe_code, reason = "clone3, the new process before exec, and calls no library offers")]
#![cfg(target_os = "linux")]

mod child;
mod controllers;
mod descendants;
mod gate;
mod init;
mod leader;
mod leaf;
mod limits;
mod members;
mod namespace;
mod own;
mod pipes;
mod poll;
mod probe;
mod proof;
mod raw;
mod site;
mod spawn;
mod start;
mod sys;
mod terminal;
mod tree;

pub use child::ChildStep;
pub use controllers::LimitError;
pub use descendants::DescendantsError;
pub use gate::{ExecFailed, ExecOutcome, ExecWay, Gated, Opened, Released};
pub use init::NamespaceStep;
pub use leader::{GroupSignalError, Leader, WaitError, signal_group_through_pidfd};
pub use leaf::{CgroupLeaf, LeafDoubt, LeafError, LeafPresence, Population};
pub use namespace::{NamespacePresence, PidNamespace};
pub use own::{
    Arrived, OwnError, Signals, become_subreaper, close_all_but, new_session, set_non_dumpable,
    settle_signals,
};
pub use pipes::{Pipe, PipeError, dev_null};
pub use placement_identity::{Errno, Pid, Signal, SignalError};
pub use probe::{Probe, ProbeState, spawn_probe};
pub use proof::TreeGone;
pub use raw::{RawTerminal, SavedTerminal, terminal_size};
pub use site::{CgroupSite, SiteError};
pub use spawn::{Birthplace, OnParentDeath, Program, Session, Spawn, SpawnError, spawn};
pub use start::{StartError, Started, spawn_runner};
pub use terminal::{PseudoTerminal, TerminalError, resize};
pub use tree::{Containment, NotGone, Signalled, Tree, TreeError, TreeEvent, TreeState};

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

fn raw_pid(pid: Pid) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(pid.as_raw()).expect("a Pid is above zero")
}
