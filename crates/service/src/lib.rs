//! The operations of placement, one file each; given the command that starts a runner.
//!
//! **Owns** what happens between a caller and the receipts: admission ([`Service::prepare`]), the
//! start ([`Service::start`]), the looks ([`Service::status`], [`Service::evidence`],
//! [`Service::verify`], [`Service::list`]), the ways to an end ([`Service::stop`],
//! [`Service::reconcile`], [`Service::resolve`], [`Service::cleanup`], [`Service::prune`]) and the output for a recipient ([`Streams`]) or an
//! onlooker ([`Observer`]). Every operation answers with what is recorded or with a `Refusal`.
//! **Never** supervises a child, which is the runner's; decides anything against a runner that
//! lives; removes a home without a proof; or holds the store over a socket call. **Limits**: one
//! owner a service; sessions, credentials, gateways and preparers are refused by name. Stopping what
//! an authority has revoked (`stop_revoked`) is not offered: no authority outside the host grants.
//!
//! Reading order: `service`, `runner_command`, `prepare`, `choice`, `probe`, `start`, `control`,
//! `places`, `status`, `stop`, `reconcile`, `verdict`, `tree`, `survivors`, `resolve`,
//! `cleanup`, `outcome`, `prune`, `attach`,
//! `item`, `streams`, `from_log`, `input`, `close_stdin`, `observe`, `measure`,
//! `wait`, `warden`; then the small looks `list`,
//! `evidence`, `verify`, `capabilities`, and `refusal` and `limits`.
//!
//! ```
//! use placement_contract::{Clock, OwnerId, Timestamp};
//! use placement_policy::Snapshot;
//! use placement_service::{Listed, RunnerCommand, Service, ServiceConfig};
//! use std::sync::Arc;
//!
//! #[derive(Debug)]
//! struct Epoch;
//! impl Clock for Epoch {
//!     fn now(&self) -> Timestamp {
//!         Timestamp::from_unix_ms(0)
//!     }
//! }
//!
//! # let scratch = placement_testkit::TempRoot::new();
//! # let root = scratch.join("root");
//! let service = Service::open(ServiceConfig {
//!     root,
//!     owner: OwnerId::parse("local:example")?,
//!     snapshot: Snapshot::embedded(),
//!     runner: RunnerCommand::at("/usr/lib/placement/placement-runner"),
//!     clock: Arc::new(Epoch),
//!     temporary_base: None,
//! })?;
//! assert!(service.list(Listed::All)?.attempts.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod attach;
mod capabilities;
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
mod start;
mod status;
mod stop;
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

pub use attach::{Attached, HostPlace};
pub use capabilities::{Capabilities, MeasuringPrograms, RevocationEnforcement, SurvivesHost};
pub use close_stdin::StdinClosing;
pub use evidence::EvidencePage;
pub use input::InputSender;
pub use item::Item;
pub use list::{AttemptList, LISTED_MAX, Listed, Unreadable};
pub use observe::Observer;
pub use outcome::outcome;
pub use placement_executable::{ExecutableMeasurement, Interpreter};
pub use placement_protocol::{InputRefused, ResizeRefused, StopMode};
pub use prune::{Kept, PRUNED_MAX, Pruning};
pub use runner_command::RunnerCommand;
pub use service::{Service, ServiceConfig};
pub use start::Started;
pub use stop::IfUncertain;
pub use streams::Streams;
pub use sweep::{Reconciled, Sweep, Swept};
pub use verify::{Verified, VerifyFault};
pub use wait::Waited;
