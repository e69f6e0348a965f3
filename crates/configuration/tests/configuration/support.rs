//! Short ways to recipes, and what an error may not hold.

use placement_configuration::{ComposeError, compose};
use placement_contract::delivery::Composition;
use serde_json::{Value, json};

/// A value that no error may repeat.
pub(crate) const CANARY: &str = "canary-3b1e";

/// A recipe with operations, each as its kind and its place with dots between the keys.
pub(crate) fn patch(form: &str, operations: &[(&str, &str)]) -> Composition {
    let operations: Vec<Value> =
        operations.iter().map(|(kind, path)| json!({"kind": kind, "path": keys(path)})).collect();
    let recipe = json!({"kind": form, "base_path": "base", "operations": operations});
    serde_json::from_value(recipe).unwrap()
}

pub(crate) fn toml_insert(path: &str) -> Composition {
    let recipe = json!({"kind": "toml_insert", "base_path": "base", "path": keys(path)});
    serde_json::from_value(recipe).unwrap()
}

pub(crate) fn copy() -> Composition {
    serde_json::from_value(json!({"kind": "copy", "base_path": "base"})).unwrap()
}

pub(crate) fn composed(
    composition: &Composition,
    content: &str,
    base: &str,
) -> Result<String, ComposeError> {
    let outcome = compose(composition, content, Some(base.as_bytes()));
    if let Err(error) = &outcome {
        holds_no_canary(error);
    }
    outcome.map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Looks at an error and everything behind it.
pub(crate) fn holds_no_canary(error: &dyn std::error::Error) {
    let mut shown = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        shown.push_str(&error.to_string());
        next = error.source();
    }
    assert!(!shown.contains(CANARY), "{shown}");
}

fn keys(path: &str) -> Vec<&str> {
    path.split('.').collect()
}
