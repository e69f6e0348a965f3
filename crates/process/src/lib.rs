#![doc = include_str!("../README.md")]
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
mod memory;
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
pub use controllers::{LimitError, kills_in};
pub use descendants::DescendantsError;
pub use gate::{ExecFailed, ExecOutcome, ExecWay, Gated, Opened, Released};
pub use init::NamespaceStep;
pub use leader::{GroupSignalError, Leader, WaitError, signal_group_through_pidfd};
pub use leaf::{CgroupLeaf, LeafDoubt, LeafError, LeafPresence, Population};
pub use memory::{give_back_memory, use_one_heap};
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
