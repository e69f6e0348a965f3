//! Which drivers are active, and what a driver is made of.

use crate::sample::{bytes, changed, reason};
use placement_contract::definition::{Activation, DriverEntry};
use serde_json::{Value, json};

fn driver() -> Value {
    json!({
        "kind": "contract.binding", "meta": { "type": "harness.driver" },
        "data": { "contracts": [
            { "contract": "bee.driver:locate_facet", "methods": { "locate": "d:locate" } },
            { "contract": "bee.driver:driver", "methods": {
                "prepare": "d:prepare", "dispatch": "d:dispatch", "normalize": "d:normalize",
                "configure": "d:configure",
            } },
        ] },
    })
}

#[test]
fn a_driver_has_four_functions() {
    let methods = DriverEntry::decode(&bytes(&driver())).unwrap().methods().unwrap();
    assert_eq!(methods.configure.as_str(), "d:configure");
}

#[test]
fn a_driver_without_one_of_them_is_none() {
    let rule = "data.contracts: must have prepare, dispatch, normalize and configure once";
    for name in ["prepare", "dispatch", "normalize", "configure"] {
        let without = changed(driver(), &format!("data/contracts/1/methods/{name}"), Value::Null);
        assert_eq!(
            reason(DriverEntry::decode(&bytes(&without)).unwrap().methods()),
            rule,
            "{name}"
        );
    }
    let twice = driver()["data"]["contracts"][1].clone();
    let twice = changed(driver(), "data/contracts/0", twice);
    assert_eq!(reason(DriverEntry::decode(&bytes(&twice)).unwrap().methods()), rule);
}

#[test]
fn another_entry_is_no_driver() {
    let other = changed(driver(), "meta/type", json!("placement"));
    assert_eq!(reason(DriverEntry::decode(&bytes(&other))), "meta.type: must be harness.driver");
    let many = changed(
        driver(),
        "data/contracts",
        json!(vec![driver()["data"]["contracts"][0].clone(); 17]),
    );
    let rule = "data.contracts: must have 1 to 16 items";
    assert_eq!(reason(DriverEntry::decode(&bytes(&many))), rule);
}

#[test]
fn an_activation_lists_at_most_64_bindings_once() {
    let activation = |bindings: Value| {
        let value = json!({ "schema_revision": "bee.harness-activation@1", "bindings": bindings });
        Activation::decode(&bytes(&value))
    };
    let names =
        |count: u32| json!((0..count).map(|number| format!("b{number}")).collect::<Vec<_>>());
    assert_eq!(activation(names(64)).unwrap().bindings.len(), 64);
    assert_eq!(reason(activation(names(65))), "bindings: must have at most 64 items");
    assert_eq!(reason(activation(json!(["a", "a"]))), "bindings: must not have an item twice");
    let other = json!({ "schema_revision": "other", "bindings": [] });
    let rule = "schema_revision: must be bee.harness-activation@1";
    assert_eq!(reason(Activation::decode(&bytes(&other))), rule);
}
