#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod content;
mod facts;
mod kind;
mod known;
mod limits;
mod measured;
mod measuring;
mod open;
mod search;

pub use facts::{Changed, Fact, Facts, Moment, Which};
pub use known::KnownDigests;
pub use limits::{EXECUTABLE_BYTES_MAX, SEARCH_PATH_BYTES_MAX, STEP_BYTES_MAX};
pub use measured::{ExecutableMeasurement, Interpreter, MEASUREMENT_REVISION, Measured};
pub use measuring::{MeasureError, Measuring, Progress};
pub use open::{FileKind, OpenError};
pub use search::{SearchError, search};
