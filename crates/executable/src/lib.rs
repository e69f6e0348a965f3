//! Measuring one executable file: digest, kind, interpreter and size, and handing its open descriptor on.
//!
//! **Owns** finding a program ([`search`]) and measuring it ([`Measuring`]): the file is opened
//! once, every byte that is hashed comes from that descriptor, and the descriptor is handed on, so
//! that what is executed is the file that was hashed. What goes by path all the same (a script, its
//! interpreter) is looked at again with [`Measured::seen_again`] right before. A digest that was
//! measured before is known again by the facts of its file ([`KnownDigests`]).
//!
//! **Never** executes anything, follows `PATH` into a relative directory, or reads a file that is
//! not a regular one. **Limitations**: what is promised is the same file, not that nobody wrote to
//! it meanwhile; only the first interpreter of a chain of scripts is measured, and with
//! `#!/usr/bin/env NAME` that is `/usr/bin/env`.
//!
//! Reading order: `search`, `measuring`, `content`, `measured`, `known`, `kind`, `facts`,
//! `open`, `limits`.
//!
//! ```
//! use placement_executable::{Measuring, Progress, search};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = search("sh", "/usr/local/bin:/usr/bin:/bin")?;
//! let mut measuring = Measuring::open(&path)?;
//! let measured = loop {
//!     match measuring.step(placement_executable::STEP_BYTES_MAX)? {
//!         Progress::More => {} // answer whoever is waiting
//!         Progress::Done(measured) => break measured,
//!     }
//! };
//! assert_eq!(measured.measurement().path, path);
//! measured.seen_again()?;
//! # Ok(())
//! # }
//! ```

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
pub use kind::Kind;
pub use known::KnownDigests;
pub use limits::{EXECUTABLE_BYTES_MAX, SEARCH_PATH_BYTES_MAX, STEP_BYTES_MAX};
pub use measured::{ExecutableMeasurement, Interpreter, MEASUREMENT_REVISION, Measured};
pub use measuring::{MeasureError, Measuring, Progress};
pub use open::{FileKind, OpenError};
pub use search::{SearchError, search};
