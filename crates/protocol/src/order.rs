//! What the host asks of a runner, over the host port, and its first answer.

use crate::frame::Frame;
use crate::json::{self, MessageError};
use crate::kind::Kind;
use crate::limits::SEARCH_PATH_BYTES_MAX;
use crate::token::{self, Token};
use camino::Utf8PathBuf;
use placement_contract::limits::{ENVIRONMENT_MAX, ENVIRONMENT_VALUE_BYTES_MAX};
use placement_contract::{
    AttemptId, CapabilityReport, EnvironmentName, Generation, Id, OwnerId, RecipientId, Refusal,
    Secret,
};
use placement_identity::ProcessIdentity;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The first and only argument of a program that is started as a runner; its order comes on
/// descriptor 0.
pub const RUNNER_ARGUMENT: &str = "--placement-runner";

/// What a runner is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Run one attempt.
    Launch(Box<LaunchOrder>),
    /// Measure what can be cleaned in the place where the runner is.
    Probe,
}

/// Where the store of a root lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreLocation {
    /// The database file.
    pub database: Utf8PathBuf,
    /// The lock file beside it.
    pub lock: Utf8PathBuf,
}

/// Which directory a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootId {
    /// Device number of its file system.
    pub device: u64,
    /// Inode number within it.
    pub inode: u64,
}

/// What a runner needs to run one recorded attempt; the request itself is in the store.
///
/// Holds the attempt's token and resolved secret values; neither is printed, and the frame that
/// carries them is wiped.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchOrder {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its owner.
    pub owner_id: OwnerId,
    /// The private root.
    pub root: Utf8PathBuf,
    /// Which directory that is: whatever else its path leads to by then is not the root.
    pub root_id: RootId,
    /// The store.
    pub store: StoreLocation,
    /// The key of the attempt's home.
    pub home_key: Id,
    /// Where temporary directories go; below the root where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tmp_base: Option<Utf8PathBuf>,
    /// The token that the attempt's sockets ask for.
    #[serde(with = "token")]
    pub control_token: Token,
    /// PATH of the host's executor, at most 131 072 bytes.
    pub search_path: String,
    /// The resolved values of the request's environment references.
    #[serde(default)]
    pub environment: Environment,
    /// The host, whose loss the runner watches for.
    pub host: ProcessIdentity,
    /// The first attachment.
    pub generation: Generation,
    /// The first recipient.
    pub recipient: RecipientId,
    /// Time from start to the acknowledgment, in milliseconds.
    pub start_ms: u64,
}

/// Resolved environment values, at most 64 of at most 16 384 bytes without NUL each.
#[derive(Debug, Default)]
pub struct Environment(pub BTreeMap<EnvironmentName, Secret>);

impl Environment {
    fn check(&self) -> Result<(), MessageError> {
        let unfit = |value: &Secret| {
            value.expose().len() > ENVIRONMENT_VALUE_BYTES_MAX || value.expose().contains(&0)
        };
        if self.0.len() > ENVIRONMENT_MAX || self.0.values().any(unfit) {
            return Err(MessageError::Field("environment"));
        }
        Ok(())
    }
}

impl Serialize for Environment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Value<'a>(#[serde(serialize_with = "crate::hex::serialize")] &'a [u8]);
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Value(value.expose()))))
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Value(#[serde(deserialize_with = "crate::hex::deserialize")] Secret);
        let values = BTreeMap::<EnvironmentName, Value>::deserialize(deserializer)?;
        Ok(Self(values.into_iter().map(|(name, value)| (name, value.0)).collect()))
    }
}

impl Order {
    /// Writes the order as a frame.
    ///
    /// # Errors
    /// [`MessageError::Field`] if the environment or the search path is above its bound;
    /// [`MessageError::Frame`] if the order is.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        self.check()?;
        json::frame(Kind::Order, self)
    }

    /// Reads the order.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is another, or the order is not exactly one.
    pub fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        let order: Self = json::read(Kind::Order, frame)?;
        order.check()?;
        Ok(order)
    }

    fn check(&self) -> Result<(), MessageError> {
        let Self::Launch(launch) = self else { return Ok(()) };
        let path = &launch.search_path;
        if path.len() > SEARCH_PATH_BYTES_MAX || path.contains('\0') {
            return Err(MessageError::Field("search path"));
        }
        launch.environment.check()
    }
}

/// What the runner answers to its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderReply {
    /// The child runs and its identity is recorded.
    Started {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// There is no child, and why.
    Refused(Refusal),
    /// What the probe measured.
    Probed(CapabilityReport),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Started {
    attempt_id: AttemptId,
}

impl OrderReply {
    /// Writes the answer as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if a report or a hint is above the bound of a frame.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        match self {
            Self::Started { attempt_id } => {
                json::frame(Kind::Started, &Started { attempt_id: attempt_id.clone() })
            }
            Self::Refused(refusal) => json::frame(Kind::StartRefused, refusal),
            Self::Probed(report) => json::frame(Kind::ProbeReport, report),
        }
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is none or not exactly one.
    pub fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        if frame.kind() == Kind::StartRefused {
            return json::read(Kind::StartRefused, frame).map(Self::Refused);
        }
        if frame.kind() == Kind::ProbeReport {
            return json::read(Kind::ProbeReport, frame).map(Self::Probed);
        }
        let started: Started = json::read(Kind::Started, frame)?;
        Ok(Self::Started { attempt_id: started.attempt_id })
    }
}
