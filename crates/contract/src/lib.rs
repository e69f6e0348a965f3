#![doc = include_str!("../README.md")]

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
pub mod ports;
pub mod request;
pub mod secret;
pub mod state;

pub use attempt::{Attempt, Liveness, Notice, NoticeCode, Pruned, Status};
pub use canonical::Digest;
pub use capability::{CapabilityReport, MechanismReport, is_shortage};
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
