//! Making a validated intent real, in one visible order.
//!
//! **Owns** what happens between the claim and the spawn: the private home, the temporary
//! directory, the environment, the working directory, the measured program. [`Materialization`] is
//! that order, in steps that leave time to answer in between. **Never** overwrites what it did not
//! create, starts anything, or writes the store: evidence is handed to the caller. **Limitations**:
//! no login, provider file, gateway or preparer is made here.
//!
//! Reading order: `materialization`, `places`, `environment`, `reserved`, `workdir`, `program`,
//! `failed`.
//!
//! ```
//! use placement_contract::LaunchRequest;
//! use placement_homes::{HomeKey, Root};
//! use placement_materialize::{Inputs, Materialization, Progress, Values};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = placement_testkit::TempRoot::new();
//! # let digest = "0".repeat(64);
//! # let request = serde_json::json!({
//! #     "idempotency_key": "k", "owner_id": "ci", "owner_incarnation": 1, "action_id": "a",
//! #     "attempt_id": "a-1", "binding_ref": "b", "policy_ref": "p", "profile_id": "f",
//! #     "binding_digest": digest, "profile_digest": digest,
//! #     "launch": { "executable": "sh", "argv": ["-c", "pwd"], "readiness": "started" },
//! #     "resources": [], "required_cleanup": "process_group",
//! # });
//! let request = LaunchRequest::decode(request.to_string().as_bytes())?;
//! let root = Root::open(scratch.join("root"))?;
//! let attempt = root.create_attempt(&HomeKey::of(&request.owner_id, &request.attempt_id))?;
//! let mut materialization = Materialization::new(Inputs {
//!     request,
//!     grants: Vec::new(),
//!     temporary_base: None,
//!     search_path: "/usr/bin:/bin".to_owned(),
//!     values: Values::default(),
//!     known_digests: None,
//! });
//! let ready = loop {
//!     match materialization.step(&attempt)? {
//!         Progress::Working { .. } => {} // record the evidence, answer whoever asks
//!         Progress::Done(ready) => break ready,
//!     }
//! };
//! assert_eq!(ready.argv, ["sh", "-c", "pwd"]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod environment;
mod failed;
mod materialization;
mod places;
mod program;
mod reserved;
mod workdir;

pub use environment::{Environment, Values};
pub use failed::Failed;
pub use materialization::{Inputs, Materialization, Progress, Ready};
pub use reserved::{ATTEMPT_MARKER, RESERVED_NAMES, reserved_conflict};
