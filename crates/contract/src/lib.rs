//! The words of placement: ids, requests, attempts, evidence, capability and error values, exact
//! decoding and the canonical digest.
//!
//! **Owns** every value that crosses a boundary and the rules that need nothing but the value
//! itself: bounds, cross checks, canonical form. **Never** touches the operating system, a clock
//! or a file. **Limits**: the whole contract is decoded; what a launch asks for and this version
//! does not do is told by [`LaunchRequest::not_offered`], by name.
//!
//! Reading order: [`id`], [`state`], [`request`], [`attempt`], [`evidence`], [`capability`],
//! [`error`], [`canonical`], [`limits`]; then what a host defines ([`definition`]), what its
//! authorities answer ([`authority`]) and what a driver adds to a launch ([`delivery`]).
//!
//! ```
//! use placement_contract::{AttemptId, Code, Exit};
//!
//! let attempt = AttemptId::parse("build-17").expect("within bounds");
//! assert_eq!(attempt.as_str(), "build-17");
//! assert_eq!(Exit::Code { code: 3 }.to_string(), "code 3");
//! assert!(Code::Conflict.hint().len() > 10);
//! ```

pub mod attempt;
pub mod authority;
pub mod canonical;
pub mod capability;
pub mod clock;
pub mod definition;
pub mod delivery;
pub mod error;
pub mod evidence;
mod exact;
pub mod id;
pub mod limits;
pub mod request;
pub mod secret;
pub mod state;

pub use attempt::{Attempt, Liveness, Notice, NoticeCode, Pruned, Status};
pub use canonical::Digest;
pub use capability::{CapabilityReport, MechanismReport};
pub use clock::{Clock, Timestamp};
pub use error::{Code, Refusal};
pub use evidence::{Evidence, EvidenceKind};
pub use exact::{DecodeError, Line, Prose, decode_exactly};
pub use id::{
    ActionId, AttemptId, BindingRef, Generation, GrantRef, HookEvent, Id, IdError, IdempotencyKey,
    OwnerId, PlacementBindingRef, PlacementProfileRef, PolicyRef, ProfileId, ProjectionId,
    ProviderRef, RecipientId, ResourceName, RootRef, RunnerId, SessionRef, ToolName,
};
pub use request::{
    Access, EnvironmentName, ExecutableKind, Launch, LaunchRequest, Leftovers, Limits, OnHostLoss,
    PlannedExecutable, Purpose, ResourceGrant, SessionEnd, StdinMode, Subpath, Supervision,
    Timeouts, Window, WindowSize,
};
pub use secret::Secret;
pub use state::{
    AttemptState, CleanupScope, CleanupState, Controller, ExecutionState, Exit, ExitObservation,
    ExitSource, Mechanism, Outcome, StreamName,
};
