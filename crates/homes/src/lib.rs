#![doc = include_str!("../README.md")]

mod alive;
mod attempt;
mod exit_record;
mod files;
mod key;
mod limits;
mod log;
mod login;
mod root;
mod session;
mod temporary;

pub use alive::{AliveError, AliveLock, RunnerAlive};
pub use attempt::{AttemptDir, CONTROL_SOCKET, CreateHomeError, DATA_SOCKET};
pub use files::{
    Content, HomeFiles, HomeFilesError, ParentError, PublishConfigurationError, ReadBaseError,
    Replay, WriteProtectedError, Written,
};
pub use key::{HomeKey, HomeKeyRefused, SessionKey};
pub use limits::{RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES, TAIL_BYTES_MAX};
pub use log::{
    AcknowledgeError, Acknowledger, AppendError, CreateLogError, Gap, LogItem, LogLimits,
    LogReader, LogWriter, ReadLogError, Record, RecordKind, StreamEnd, Waited,
};
pub use login::{
    LOGIN_MARKER, LoginPolicy, LoginSeed, LoginSeedError, RetainedSeed, SeedError, Seeded,
};
pub use root::{
    CreateAttemptError, ListAttemptsError, OpenAttemptError, RemoveAttemptError, ReopenError, Root,
    RootError,
};
pub use session::{SessionHome, SessionHomeError};
pub use temporary::{TemporaryDir, TemporaryDirError};
