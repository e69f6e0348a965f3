#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod adopt;
mod authority;
mod chain;
mod check;
mod error;
mod evidence;
mod exit_record;
mod find;
mod intend;
mod ledger;
mod limits;
mod lock;
mod migrate;
#[cfg(test)]
mod migrate_killed;
mod open;
mod patience;
#[cfg(test)]
mod plans;
mod queue;
mod record;
mod row;
mod save;
mod session;
mod sql;
mod verify;
mod write;

pub use adopt::{Adopted, adopt};
pub use authority::AuthorityError;
pub use check::Soundness;
pub use error::StoreError;
pub use evidence::Page;
pub use exit_record::{ExitRecord, ExitRecordError, RecordedRow};
pub use find::{CorruptRow, Listing, Selection};
pub use intend::{IntendError, Intended, NewAttempt};
pub use ledger::{PruneError, SettledAfter, SettledPage};
pub use limits::EXIT_RECORD_BYTES_MAX;
pub use migrate::SCHEMA;
pub use open::{OpenError, Role, StorePaths};
pub use record::{Attachment, Change, Draft, Fields, RecordError, RunnerClaim};
pub use row::{ChildIdentity, Leaf, Row, RunnerRecord};
pub use session::{BindFileError, BoundFile, SessionHolder};
pub use sql::SqlError;
pub use verify::{Fault, Verdict};
pub use write::{Durability, Store};
