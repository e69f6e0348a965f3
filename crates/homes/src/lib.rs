//! Attempt homes under one private root, temporary directories, the spool and transcript log, and removal with a proof.
//!
//! It owns:
//! * [`Root`]: the one private directory of a host, checked before anything is kept in it;
//! * [`AttemptDir`]: what belongs to one attempt (its home, the lock that proves its runner alive,
//!   its sockets' names, its exit record, its output log);
//! * [`TemporaryDir`]: the attempt's private TMPDIR, on a short path where that can be had;
//! * the output log: [`LogWriter`] (one, the runner), [`LogReader`] (any number), [`Acknowledger`]
//!   (the service, after the runner's end). Beyond the acknowledged cursor it is the spool, before
//!   it the transcript.
//!
//! It never removes a home or a temporary directory without a
//! [`ScopeGone`](placement_transitions::ScopeGone), or an attempt's directory without a
//! [`Settled`](placement_transitions::Settled), never puts a caller's identifier into a path,
//! and never reads the environment: the base of temporary directories is handed in.
//!
//! Limitations: Linux only. A child of the same user can reach its own attempt directory and spoil
//! its own log; it cannot make a removal act elsewhere. The log survives the death of every
//! process; after power loss its newest records may be missing.
//!
//! Reading order: `key`, `root`, `attempt`, `alive`, `exit_record`, `temporary`, `log`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = placement_testkit::TempRoot::new();
//! # let path = scratch.join("root");
//! use placement_contract::{AttemptId, OwnerId, StreamName};
//! use placement_homes::{HomeKey, LogItem, LogLimits, LogReader, LogWriter, Root};
//!
//! let root = Root::open(&path)?; // created 0700 on first use
//! let key = HomeKey::of(&OwnerId::parse("ci")?, &AttemptId::parse("a-1")?);
//! let attempt = root.create_attempt(&key)?;
//! let home = attempt.create_home()?; // <root>/attempts/<key>/home
//!
//! let mut log = LogWriter::create(&attempt, LogLimits::default())?;
//! let sequence = log.append(StreamName::Stdout, b"hello\n")?;
//! log.acknowledge(sequence)?;
//!
//! let mut observer = LogReader::open(&attempt)?;
//! let Some(LogItem::Record(record)) = observer.next_item()? else { panic!("one was written") };
//! assert_eq!(record.bytes, b"hello\n");
//! # assert!(home.ends_with("home"));
//! # Ok(())
//! # }
//! ```

mod alive;
mod attempt;
mod exit_record;
mod key;
mod limits;
mod log;
mod root;
mod temporary;

pub use alive::{AliveError, AliveLock, RunnerAlive};
pub use attempt::{AttemptDir, CONTROL_SOCKET, CreateHomeError, DATA_SOCKET};
pub use key::{HomeKey, HomeKeyRefused};
pub use limits::{RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES, TAIL_BYTES_MAX};
pub use log::{
    AcknowledgeError, Acknowledger, AppendError, CreateLogError, Gap, LogItem, LogLimits,
    LogReader, LogWriter, ReadLogError, Record, RecordKind, StreamEnd, Waited,
};
pub use root::{
    CreateAttemptError, ListAttemptsError, OpenAttemptError, RemoveAttemptError, Root, RootError,
};
pub use temporary::{TemporaryDir, TemporaryDirError};
