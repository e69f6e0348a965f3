//! The gateway that a launch may talk to.

use super::environment::Destination;
use crate::exact::{DecodeError, Line, distinct, invalid};
use crate::id::{HookEvent, ToolName};
use crate::limits::{ENDPOINT_BYTES_MAX, GATEWAY_HOOKS_MAX, GATEWAY_TOOLS_MAX};
use serde::{Deserialize, Serialize};

/// The hook events that a gateway admits.
pub const HOOK_EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
];

/// The hook events that come while a program ends, which no gateway admits.
pub const SHUTDOWN_EVENTS: &[&str] = &["SessionEnd", "StopFailure"];

/// A gateway as the host's policy selects it; holds no token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Its address.
    pub endpoint: Line<ENDPOINT_BYTES_MAX>,
    /// The tools, at most 16, each once.
    #[serde(default, deserialize_with = "distinct::<_, _, 0, GATEWAY_TOOLS_MAX>")]
    pub tools: Vec<ToolName>,
    /// The variable that receives the token for the tools.
    pub destination: Destination,
    /// The hook events, at most 8, each once.
    #[serde(default, deserialize_with = "distinct::<_, _, 0, GATEWAY_HOOKS_MAX>")]
    pub hooks: Vec<HookEvent>,
    /// The variable that receives the token for the hooks; there where there are hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_destination: Option<Destination>,
}

impl Gateway {
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        if self.tools.is_empty() && self.hooks.is_empty() {
            return Err(invalid("gateway", "must have at least one tool or hook"));
        }
        match &self.hook_destination {
            None if self.hooks.is_empty() => Ok(()),
            None => Err(invalid("gateway.hook_destination", "is needed by gateway.hooks")),
            Some(_) if self.hooks.is_empty() => {
                Err(invalid("gateway.hook_destination", "needs gateway.hooks"))
            }
            Some(same) if *same == self.destination => {
                Err(invalid("gateway.hook_destination", "must not be gateway.destination"))
            }
            Some(_) => Ok(()),
        }
    }
}
