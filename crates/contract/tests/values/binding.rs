//! Which entry is a placement binding, and what it is measured by.

use crate::sample::{bytes, changed, reason};
use placement_contract::PlacementBindingRef;
use placement_contract::definition::{
    BindingEntry, Method, NATIVE_BINDING, PlacementBinding, PlacementKind,
};
use serde_json::{Value, json};

fn entry() -> Value {
    let methods: serde_json::Map<String, Value> = Method::ALL
        .iter()
        .map(|method| (method.label().to_owned(), json!(format!("native:{method}"))))
        .collect();
    json!({
        "kind": "contract.binding",
        "meta": { "type": "placement", "placement_kind": "native" },
        "data": { "contracts": [{ "contract": "bee.placement:placement", "methods": methods }] },
    })
}

fn name() -> PlacementBindingRef {
    PlacementBindingRef::parse(NATIVE_BINDING).unwrap()
}

fn refused(path: &str, to: Value) -> String {
    match BindingEntry::decode(&bytes(&changed(entry(), path, to))) {
        Ok(entry) => reason(entry.resolve(name())),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_binding_has_eleven_targets() {
    let binding = BindingEntry::decode(&bytes(&entry())).unwrap().resolve(name()).unwrap();
    assert_eq!(binding.placement_kind, PlacementKind::Native);
    assert_eq!(Method::ALL.len(), 11);
    for method in Method::ALL {
        assert_eq!(binding.methods.target(*method).as_str(), format!("native:{method}"));
    }
    let text = serde_json::to_vec(&binding).unwrap();
    assert_eq!(PlacementBinding::decode(&text), Ok(binding));
}

#[test]
fn a_binding_lacks_no_method_and_has_no_other() {
    let rule = "data.contracts: must have the eleven methods of the placement contract";
    for method in Method::ALL {
        let path = format!("data/contracts/0/methods/{method}");
        assert_eq!(refused(&path, Value::Null), rule, "{method}");
    }
    assert_eq!(refused("data/contracts/0/methods/pause", json!("native:pause")), rule);
    assert_eq!(refused("data/contracts/0/methods/stop", json!("")), rule);
}

#[test]
fn a_binding_implements_the_placement_contract_once() {
    let rule = "data.contracts: must have exactly one placement contract";
    let contract = entry()["data"]["contracts"][0].clone();
    assert_eq!(refused("data/contracts", json!([contract, contract])), rule);
    assert_eq!(refused("data/contracts", json!([])), rule);
    let other = changed(contract.clone(), "contract", json!("other"));
    let both = changed(entry(), "data/contracts", json!([other, contract]));
    assert!(BindingEntry::decode(&bytes(&both)).unwrap().resolve(name()).is_ok());
    assert_eq!(refused("data/contracts", json!({})), "data.contracts: must be a list of contracts");
}

#[test]
fn another_entry_is_no_binding() {
    assert_eq!(refused("kind", json!("other")), "kind: must be contract.binding");
    assert_eq!(refused("meta/type", json!("other")), "meta.type: must be placement");
    let rule = "meta.placement_kind: must be native or docker";
    assert_eq!(refused("meta/placement_kind", json!("other")), rule);
}

#[test]
fn every_part_of_an_entry_counts_and_its_name_does_not() {
    let digest = |entry: &Value| BindingEntry::decode(&bytes(entry)).unwrap().digest().unwrap();
    let known = digest(&entry());
    for path in ["meta/title", "data/note", "data/contracts/0/methods/stop"] {
        assert_ne!(digest(&changed(entry(), path, json!("other"))), known, "{path}");
    }
    let decoded = BindingEntry::decode(&bytes(&entry())).unwrap();
    let other = PlacementBindingRef::parse("other").unwrap();
    assert_eq!(decoded.resolve(other).unwrap().binding_digest, known);
}

#[test]
fn a_number_that_would_be_rounded_has_no_digest() {
    let rounded = changed(entry(), "meta/size", json!(u64::MAX));
    let decoded = BindingEntry::decode(&bytes(&rounded)).unwrap();
    assert_eq!(reason(decoded.digest()), "binding: has no canonical form");
}
