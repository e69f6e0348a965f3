#![doc = include_str!("../README.md")]

mod alive;
mod attempt;
mod exit_record;
mod key;
mod limits;
mod log;
mod root;
mod session;
mod temporary;

pub use alive::{AliveError, AliveLock, RunnerAlive};
pub use attempt::{AttemptDir, CONTROL_SOCKET, CreateHomeError, DATA_SOCKET};
pub use key::{HomeKey, HomeKeyRefused, SessionKey};
pub use limits::{RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES, TAIL_BYTES_MAX};
pub use log::{
    AcknowledgeError, Acknowledger, AppendError, CreateLogError, Gap, LogItem, LogLimits,
    LogReader, LogWriter, ReadLogError, Record, RecordKind, StreamEnd, Waited,
};
pub use root::{
    CreateAttemptError, ListAttemptsError, OpenAttemptError, RemoveAttemptError, ReopenError, Root,
    RootError,
};
pub use session::{SessionHome, SessionHomeError};
pub use temporary::{TemporaryDir, TemporaryDirError};
