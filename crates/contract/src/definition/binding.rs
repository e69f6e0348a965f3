//! Placement bindings: which functions implement the contract.

use super::methods::MethodTargets;
use crate::canonical::Digest;
use crate::exact::{self, DecodeError, Exact, invalid};
use crate::id::PlacementBindingRef;
use crate::limits::DEFINITION_BYTES_MAX;
use crate::state::labels;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The binding of this implementation.
pub const NATIVE_BINDING: &str = "bee.placement.native.binding:binding";
/// The contract that a placement binding implements.
pub const PLACEMENT_CONTRACT: &str = "bee.placement:placement";
/// The name under which a binding is hashed.
pub const BINDING_REVISION: &str = "bee.placement-binding@1";

labels! {
    /// What runs the child.
    PlacementKind {
        /// A native process of this machine.
        Native = "native",
        /// A container.
        Docker = "docker",
    }
}

/// A binding as it is resolved: measured, with every target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementBinding {
    /// The binding.
    pub binding_id: PlacementBindingRef,
    /// Its measured digest.
    pub binding_digest: Digest,
    /// What runs the child.
    pub placement_kind: PlacementKind,
    /// The function behind each operation.
    pub methods: MethodTargets,
}

/// A binding as a host's registry holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingEntry {
    /// The kind of entry, `contract.binding`.
    pub kind: String,
    /// What it is for: `type` is `placement`, `placement_kind` says what runs the child.
    pub meta: Map<String, Value>,
    /// `contracts`, a list of contracts with their methods.
    pub data: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContractEntry {
    contract: String,
    methods: MethodTargets,
}

impl PlacementBinding {
    /// Decodes a resolved binding exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }
}

impl Exact for PlacementBinding {
    const NAME: &str = "placement_binding";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl BindingEntry {
    /// Decodes an entry of a registry.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Measures the entry: kind, meta and data, whatever its name.
    ///
    /// # Errors
    /// [`DecodeError`] where it has no canonical form.
    pub fn digest(&self) -> Result<Digest, DecodeError> {
        Digest::of_value(BINDING_REVISION, self)
            .map_err(|_| invalid(Self::NAME, "has no canonical form"))
    }

    /// Resolves the entry: measures it and finds every target.
    ///
    /// # Errors
    /// [`DecodeError`] for an entry that is no placement binding, implements the placement
    /// contract not exactly once, or lacks one of the eleven methods.
    pub fn resolve(
        &self,
        binding_id: PlacementBindingRef,
    ) -> Result<PlacementBinding, DecodeError> {
        let kind = self.meta.get("placement_kind").and_then(Value::as_str);
        let placement_kind = kind
            .and_then(PlacementKind::from_label)
            .ok_or_else(|| invalid("meta.placement_kind", "must be native or docker"))?;
        let Some(contracts) = self.data.get("contracts").and_then(Value::as_array) else {
            return Err(invalid("data.contracts", "must be a list of contracts"));
        };
        let ours = |entry: &&Value| {
            entry.get("contract").and_then(Value::as_str) == Some(PLACEMENT_CONTRACT)
        };
        let found: Vec<&Value> = contracts.iter().filter(ours).collect();
        let [entry] = found[..] else {
            return Err(invalid("data.contracts", "must have exactly one placement contract"));
        };
        let entry: ContractEntry = serde_json::from_value(entry.clone()).map_err(|_| {
            invalid("data.contracts", "must have the eleven methods of the placement contract")
        })?;
        let binding_digest = self.digest()?;
        Ok(PlacementBinding { binding_id, binding_digest, placement_kind, methods: entry.methods })
    }
}

impl Exact for BindingEntry {
    const NAME: &str = "binding";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.kind != "contract.binding" {
            return Err(invalid("kind", "must be contract.binding"));
        }
        if self.meta.get("type").and_then(Value::as_str) != Some("placement") {
            return Err(invalid("meta.type", "must be placement"));
        }
        Ok(())
    }
}
