//! Receipts in SQLite: attempts, append-only evidence with its hash chain, and the guards as
//! transactions.
//!
//! **Owns** the file `placement.db` and its lock: who may write, when it is synced, and that a
//! state never runs ahead of its evidence. One call is one transaction; a call that fails changed
//! nothing. What is legal in which state is `placement-transitions`' to say, and everything that a
//! row of evidence tells (states, exit, its source, the proof of an empty tree, that the runner
//! finished) is taken from the row, never from the caller. **Never** updates evidence, deletes
//! it but for a receipt in the ledger, guesses a value that it cannot read, or starts a process. **Limits**: one machine, no network
//! file system. The chain shows damage and careless edits, not a writer who rewrites everything.
//!
//! No other code may open `placement.db` with the standard library in a process that uses the
//! store: closing any descriptor of the file drops SQLite's locks on it.
//!
//! Reading order: `open`, `write`, `row`, `intend`, `record`, `save`, `find`, `evidence`, `verify`,
//! `exit_record`, `ledger`, `authority`.
//!
//! ```
//! use placement_contract::{Clock, Timestamp};
//! use placement_store::{Role, Selection, Store, StorePaths};
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
//! # let root = placement_testkit::TempRoot::new();
//! # let root = root.path();
//! let store = Store::open(&StorePaths::below(root), Role::Service, Arc::new(Epoch))?;
//! assert_eq!(store.count(None, Selection::All)?, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod adopt;
mod authority;
mod chain;
mod error;
mod evidence;
mod exit_record;
mod find;
mod intend;
mod ledger;
mod limits;
mod lock;
mod migrate;
mod open;
mod record;
mod row;
mod save;
mod sql;
mod verify;
mod write;

pub use adopt::{Adopted, adopt};
pub use authority::AuthorityError;
pub use error::StoreError;
pub use evidence::Page;
pub use exit_record::{ExitRecord, ExitRecordError, RecordedRow};
pub use find::{CorruptRow, Listing, Selection};
pub use intend::{IntendError, Intended, NewAttempt};
pub use ledger::{PruneError, SettledAfter, SettledPage};
pub use migrate::SCHEMA;
pub use open::{OpenError, Role, StorePaths};
pub use record::{Attachment, Change, Draft, Fields, RecordError, RunnerClaim};
pub use row::{ChildIdentity, Leaf, Row, RunnerRecord};
pub use sql::SqlError;
pub use verify::{Fault, Verdict};
pub use write::{Durability, Store};
