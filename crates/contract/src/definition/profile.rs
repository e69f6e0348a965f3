//! Placement profiles: where a launch is placed.

use super::binding::NATIVE_BINDING;
use super::container::ContainerProfile;
use crate::canonical::Digest;
use crate::exact::{self, DecodeError, Exact, invalid};
use crate::id::{PlacementBindingRef, PlacementProfileRef};
use crate::limits::DEFINITION_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// The form of a profile and the name under which it is hashed.
pub const PROFILE_REVISION: &str = "bee.placement-profile@1";
/// The profile of a native launch, which needs nothing said.
pub const NATIVE_PROFILE: &str = "bee.placement:native";

/// Where a launch is placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementProfile {
    /// As a native process.
    Native,
    /// In a container.
    Container(Box<ContainerProfile>),
}

/// A profile as it is written: the container's fields are all there or none of them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schema_revision: String,
    placement_binding: PlacementBindingRef,
}

impl PlacementProfile {
    /// Decodes a profile exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        // Which form it has is told by the binding; each form is then read by its own fields.
        if names_native(bytes) {
            exact::decode::<Written>(bytes)?;
            return Ok(Self::Native);
        }
        exact::decode(bytes).map(|profile| Self::Container(Box::new(profile)))
    }

    /// Measures the profile under its name.
    pub fn digest(&self, name: &PlacementProfileRef) -> Digest {
        #[derive(Serialize)]
        struct Measured<'a, T> {
            r#ref: &'a PlacementProfileRef,
            profile: &'a T,
        }
        let digest = match self {
            Self::Native => {
                let profile = Written {
                    schema_revision: PROFILE_REVISION.to_owned(),
                    placement_binding: native_binding(),
                };
                Digest::of_value(PROFILE_REVISION, &Measured { r#ref: name, profile: &profile })
            }
            Self::Container(profile) => {
                Digest::of_value(PROFILE_REVISION, &Measured { r#ref: name, profile })
            }
        };
        digest.expect("a decoded profile has text keys and whole numbers only")
    }

    /// Returns the binding that the profile selects.
    pub fn binding(&self) -> PlacementBindingRef {
        match self {
            Self::Native => native_binding(),
            Self::Container(profile) => profile.placement_binding.clone(),
        }
    }
}

fn native_binding() -> PlacementBindingRef {
    PlacementBindingRef::parse(NATIVE_BINDING).expect("a short printable text")
}

fn names_native(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Named {
        placement_binding: String,
    }
    serde_json::from_slice::<Named>(bytes).is_ok_and(|it| it.placement_binding == NATIVE_BINDING)
}

pub(super) fn check_revision(schema_revision: &str) -> Result<(), DecodeError> {
    if schema_revision == PROFILE_REVISION {
        Ok(())
    } else {
        Err(invalid("schema_revision", "must be bee.placement-profile@1"))
    }
}

impl Exact for Written {
    const NAME: &str = "placement_profile";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        check_revision(&self.schema_revision)
    }
}
