//! What authorities of the host answer: grants of directories, credential projections, a gateway.
//!
//! Answers are decoded exactly. A secret is never a part of their text: it is given beside it, as
//! a [`Secret`](crate::Secret).

mod format;
mod gateway;
mod grant;
mod materialized;
mod materialized_fields;
mod projection;

pub use format::{ContentFormat, CredentialFormat, FORMAT_REVISION, Initializer, LoginFile};
pub use gateway::{GatewayBinding, GatewayTokens, MaterializedGateway};
pub use grant::{GrantReply, RecordedGrant};
pub use materialized::{Encoding, MaterializedCredential, MaterializedFile};
pub use projection::{CheckedProjection, ProjectionKind, ProjectionScope};
