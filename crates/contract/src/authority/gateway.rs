//! What a gateway hands out for one attempt.

use crate::clock::Timestamp;
use crate::exact::{self, DecodeError, Exact, Line, distinct, invalid, ranged};
use crate::id::{ActionId, AttemptId, HookEvent, Id, OwnerId, PolicyRef, ToolName};
use crate::limits::{
    DEFINITION_BYTES_MAX, GATEWAY_HOOKS_MAX, GATEWAY_TOOLS_MAX, INTEGER_MAX, TOKEN_BYTES_MAX,
};
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// What a gateway says with its tokens; the tokens themselves are beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaterializedGateway {
    /// What the tokens are bound to.
    pub binding: GatewayBinding,
    /// The generation of the tokens, at least 1; that of the binding.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub generation: u64,
}

/// What the tokens of a gateway are bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayBinding {
    /// The binding.
    pub binding_id: Id,
    /// For whom.
    pub subject: OwnerId,
    /// For which action.
    pub action_id: ActionId,
    /// For which attempt.
    pub attempt_id: AttemptId,
    /// For which thread.
    pub thread_id: Id,
    /// The incarnation of the owner, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub owner_incarnation: u64,
    /// The epoch of the carrier, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub carrier_epoch: u64,
    /// The tools, at most 16, each once.
    #[serde(deserialize_with = "distinct::<_, _, 0, GATEWAY_TOOLS_MAX>")]
    pub tools: Vec<ToolName>,
    /// The hook events, at most 8, each once.
    #[serde(deserialize_with = "distinct::<_, _, 0, GATEWAY_HOOKS_MAX>")]
    pub hooks: Vec<HookEvent>,
    /// Counts what the gateway revoked.
    #[serde(deserialize_with = "ranged::<_, 0, INTEGER_MAX>")]
    pub epoch: u64,
    /// The generation of the tokens, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub credential_generation: u64,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Whether it takes no further calls.
    pub sealed: bool,
    /// The launch policy that it was made under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_ref: Option<PolicyRef>,
    /// The workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<Id>,
    /// The name of the workspace, at most 80 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Line<80>>,
    /// From where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_view: Option<Id>,
}

/// The tokens of a gateway.
#[derive(Debug, Clone, Copy)]
pub struct GatewayTokens<'a> {
    /// The token for the tools, 1 to 128 bytes.
    pub token: &'a Secret,
    /// The token for the hooks, 1 to 128 bytes; there where there are hooks.
    pub hook_token: Option<&'a Secret>,
}

impl MaterializedGateway {
    /// Decodes an answer exactly and checks the tokens that came with it.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks, never a byte of a token.
    pub fn decode(bytes: &[u8], tokens: &GatewayTokens<'_>) -> Result<Self, DecodeError> {
        let said: Self = exact::decode(bytes)?;
        check_token("token", tokens.token)?;
        if tokens.hook_token.is_some() == said.binding.hooks.is_empty() {
            return Err(invalid(
                "hook_token",
                "must be given where there are hooks and only there",
            ));
        }
        if let Some(token) = tokens.hook_token {
            check_token("hook_token", token)?;
        }
        Ok(said)
    }

    /// Says whether the tokens are those of this attempt, carrier and binding.
    pub fn is_for(&self, attempt_id: &AttemptId, carrier_epoch: u64, binding_id: &Id) -> bool {
        self.binding.attempt_id == *attempt_id
            && self.binding.carrier_epoch == carrier_epoch
            && self.binding.binding_id == *binding_id
    }
}

fn check_token(field: &str, token: &Secret) -> Result<(), DecodeError> {
    if (1..=TOKEN_BYTES_MAX).contains(&token.expose().len()) {
        Ok(())
    } else {
        Err(invalid(field, "must be 1 to 128 bytes"))
    }
}

impl Exact for MaterializedGateway {
    const NAME: &str = "gateway";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.binding.credential_generation != self.generation {
            return Err(invalid("generation", "must be that of the binding"));
        }
        Ok(())
    }
}
