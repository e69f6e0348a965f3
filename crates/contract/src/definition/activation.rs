//! Which drivers a host activates, and which functions a driver is made of.

use crate::exact::{self, DecodeError, Exact, distinct, invalid, list};
use crate::id::{BindingRef, Id};
use crate::limits::DEFINITION_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The form of an activation.
pub const ACTIVATION_REVISION: &str = "bee.harness-activation@1";
/// Most driver bindings that a host activates.
const BINDINGS_MAX: usize = 64;
/// Most contracts of one driver binding.
const CONTRACTS_MAX: usize = 16;

/// The driver bindings that a host activates; without one nothing is active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// The form, `bee.harness-activation@1`.
    pub schema_revision: String,
    /// The bindings, at most 64, each once.
    #[serde(deserialize_with = "distinct::<_, _, 0, BINDINGS_MAX>")]
    pub bindings: Vec<BindingRef>,
}

/// The four functions of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverMethods {
    /// Declares a launch.
    pub prepare: Id,
    /// Declares the input of a further turn.
    pub dispatch: Id,
    /// Reads what the program says.
    pub normalize: Id,
    /// Renders its configuration.
    pub configure: Id,
}

/// A driver binding as a host's registry holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverEntry {
    /// The kind of entry, `contract.binding`.
    pub kind: String,
    /// What it is for: `type` is `harness.driver`.
    pub meta: Map<String, Value>,
    /// Its contracts.
    pub data: DriverContracts,
}

/// The contracts of a driver binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverContracts {
    /// The contracts, 1 to 16; exactly one has the four functions.
    #[serde(deserialize_with = "list::<_, _, 1, CONTRACTS_MAX>")]
    pub contracts: Vec<DriverContract>,
}

/// One contract of a driver binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverContract {
    /// The contract.
    pub contract: Id,
    /// Its functions by name.
    pub methods: Map<String, Value>,
}

impl Activation {
    /// Decodes an activation exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }
}

impl Exact for Activation {
    const NAME: &str = "activation";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.schema_revision == ACTIVATION_REVISION {
            return Ok(());
        }
        Err(invalid("schema_revision", "must be bee.harness-activation@1"))
    }
}

impl DriverEntry {
    /// Decodes an entry of a registry.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Finds the four functions.
    ///
    /// # Errors
    /// [`DecodeError`] where not exactly one contract has them.
    pub fn methods(&self) -> Result<DriverMethods, DecodeError> {
        let of = |contract: &DriverContract| {
            serde_json::from_value::<DriverMethods>(Value::Object(contract.methods.clone())).ok()
        };
        let mut found = self.data.contracts.iter().filter_map(of);
        match (found.next(), found.next()) {
            (Some(methods), None) => Ok(methods),
            (None, _) | (Some(_), Some(_)) => Err(invalid(
                "data.contracts",
                "must have prepare, dispatch, normalize and configure once",
            )),
        }
    }
}

impl Exact for DriverEntry {
    const NAME: &str = "driver";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.kind != "contract.binding" {
            return Err(invalid("kind", "must be contract.binding"));
        }
        if self.meta.get("type").and_then(Value::as_str) != Some("harness.driver") {
            return Err(invalid("meta.type", "must be harness.driver"));
        }
        Ok(())
    }
}
