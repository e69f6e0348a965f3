#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod adopt_root;
mod attach;
mod capabilities;
mod check;
mod choice;
mod cleanup;
mod close_stdin;
mod control;
mod evidence;
mod from_log;
mod input;
mod item;
mod limits;
mod list;
mod measure;
mod observe;
mod outcome;
mod places;
mod prepare;
mod probe;
mod prune;
mod reconcile;
mod refusal;
mod resolve;
mod runner_command;
mod service;
mod session;
mod start;
mod status;
mod stop;
mod stop_revoked;
mod streams;
mod survivors;
mod sweep;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;
mod verify;
mod wait;
mod warden;

pub use adopt_root::adopt_root;
pub use attach::{Attached, HostPlace};
pub use capabilities::{Capabilities, MeasuringPrograms, RevocationEnforcement, SurvivesHost};
pub use check::StoreCheck;
pub use close_stdin::StdinClosing;
pub use evidence::EvidencePage;
pub use input::InputSender;
pub use item::Item;
pub use list::{AttemptList, LISTED_MAX, Listed, Unreadable};
pub use observe::Observer;
pub use outcome::outcome;
pub use placement_executable::{ExecutableMeasurement, Interpreter};
pub use placement_protocol::{InputRefused, ResizeRefused, StopMode};
pub use placement_store::{Adopted, SessionHolder};
pub use prepare::NotPrepared;
pub use prune::{Kept, PRUNED_MAX, Pruning};
pub use runner_command::RunnerCommand;
pub use service::{Service, ServiceConfig};
pub use start::Started;
pub use stop::IfUncertain;
pub use streams::Streams;
pub use sweep::{Reconciled, ReconciledAll, Sweep, Swept};
pub use verify::{Verified, VerifyFault};
pub use wait::Waited;
