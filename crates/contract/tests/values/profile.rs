//! What a placement profile is measured by, and which binding it selects.

use crate::sample::{bytes, changed};
use placement_contract::PlacementProfileRef;
use placement_contract::definition::{NATIVE_BINDING, NATIVE_PROFILE, PlacementProfile};
use serde_json::{Value, json};

fn native() -> Value {
    json!({ "schema_revision": "bee.placement-profile@1", "placement_binding": NATIVE_BINDING })
}

fn container() -> Value {
    json!({
        "schema_revision": "bee.placement-profile@1", "placement_binding": "docker",
        "image_recipe_ref": "recipe", "user": "1000:1000", "network": "agents",
        "limits": { "memory": 16_777_216, "cpu": 1_000, "pids": 1 },
    })
}

fn name(text: &str) -> PlacementProfileRef {
    PlacementProfileRef::parse(text).unwrap()
}

fn decoded(profile: &Value) -> PlacementProfile {
    PlacementProfile::decode(&bytes(profile)).unwrap()
}

#[test]
fn the_native_profile_is_all_there_is_to_say() {
    let profile = decoded(&native());
    assert_eq!(profile, PlacementProfile::Native);
    assert_eq!(profile.binding().as_str(), NATIVE_BINDING);
    assert_eq!(decoded(&container()).binding().as_str(), "docker");
}

#[test]
fn a_profile_is_measured_with_its_name() {
    let digest = decoded(&native()).digest(&name(NATIVE_PROFILE));
    assert_ne!(digest, decoded(&native()).digest(&name("other")));
    let one = decoded(&container()).digest(&name("docker"));
    assert_ne!(
        one,
        decoded(&changed(container(), "user", json!("1001:1000"))).digest(&name("docker"))
    );
    // The default counts whether given or not.
    assert_eq!(one, decoded(&changed(container(), "mounts", json!([]))).digest(&name("docker")));
}
