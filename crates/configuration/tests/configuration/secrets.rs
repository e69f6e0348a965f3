//! Secrets at their places.

use crate::support::{CANARY, holds_no_canary};
use placement_configuration::{
    DocumentError, PlaceSecretsError, RENDERED_BYTES_MAX, place_secrets,
};
use placement_contract::delivery::DeliveredFile;
use placement_contract::request::Destination;
use placement_contract::{Digest, Secret};
use serde_json::{Value, json};

/// A delivered file with places, each as its keys with dots between them and its prefix.
fn file(content: &str, places: &[(&str, &str)]) -> DeliveredFile {
    let fields: Vec<Value> = places
        .iter()
        .map(|(path, prefix)| {
            let keys: Vec<&str> = path.split('.').collect();
            json!({"path": keys, "environment": "TOKEN", "prefix": prefix})
        })
        .collect();
    let mut file = json!({
        "revision": "r@1",
        "path": "settings.json",
        "content": content,
        "digest": Digest::of_bytes(content.as_bytes()).as_str(),
        "provider_ref": "bee:gateway_endpoint",
    });
    if !fields.is_empty() {
        file["secret_fields"] = fields.into();
    }
    serde_json::from_value(file).unwrap()
}

fn placed(file: &DeliveredFile, secret: &[u8]) -> Result<String, PlaceSecretsError> {
    placed_in(file, None, secret)
}

fn placed_in(
    file: &DeliveredFile,
    composed: Option<&str>,
    secret: &[u8],
) -> Result<String, PlaceSecretsError> {
    let secret = Secret::new(secret.to_vec());
    let outcome = place_secrets(file, composed, |name: &Destination| {
        (name.as_str() == "TOKEN").then_some(&secret)
    });
    if let Err(error) = &outcome {
        holds_no_canary(error);
    }
    outcome.map(|whole| String::from_utf8(whole.expose().to_vec()).unwrap())
}

#[test]
fn a_secret_stands_behind_its_prefix_and_the_rest_is_as_it_was() {
    let content = r#"{ "h": {"Authorization" : "", "x": 1.0} }"#;
    let file = file(content, &[("h.Authorization", "Bearer ")]);
    let whole = placed(&file, CANARY.as_bytes()).unwrap();
    assert_eq!(
        whole,
        format!("{{ \"h\": {{\"Authorization\" : \"Bearer {CANARY}\", \"x\": 1.0}} }}\n")
    );
    assert_eq!(file.content, content, "what was delivered stays as it is");
}

#[test]
fn every_place_gets_its_secret_in_whatever_order_they_are_named() {
    let file = file(r#"{"a":"","b":{"c":""}}"#, &[("b.c", "2-"), ("a", "1-")]);
    assert_eq!(placed(&file, b"s").unwrap(), "{\"a\":\"1-s\",\"b\":{\"c\":\"2-s\"}}\n");
}

#[test]
fn a_secret_is_written_as_text_of_json_whatever_it_holds() {
    let secret = "a\"b\\c\u{1}\u{e9}";
    let whole = placed(&file(r#"{"t":""}"#, &[("t", "")]), secret.as_bytes()).unwrap();
    let read: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(read, json!({ "t": secret }));
}

#[test]
fn a_file_without_places_ends_with_one_line_feed() {
    for content in ["{}", "{}\n"] {
        assert_eq!(placed(&file(content, &[]), b"s").unwrap(), "{}\n");
    }
}

#[test]
fn a_composed_file_gets_its_secrets_at_the_same_places() {
    let file = file(r#"{"m":{"t":""}}"#, &[("m.t", "")]);
    let composed = format!(r#"{{"o":"{}","m":{{"t":""}}}}"#, "x".repeat(20_000));
    let whole = placed_in(&file, Some(&composed), b"s").unwrap();
    assert_eq!(whole, format!("{}\n", composed.replace("\"t\":\"\"", "\"t\":\"s\"")));
}

#[test]
fn only_an_empty_text_is_replaced() {
    let file = file(r#"{"m":{"t":""}}"#, &[("m.t", "")]);
    for composed in [r#"{"m":{"t":"x"}}"#, r#"{"m":{"t":null}}"#, r#"{"m":{"t":{}}}"#] {
        let refused = placed_in(&file, Some(composed), CANARY.as_bytes());
        assert_eq!(refused, Err(PlaceSecretsError::NotEmpty), "{composed}");
    }
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    let file = file(r#"{"m":{"t":""}}"#, &[("m.t", "")]);
    for composed in ["{}", r#"{"m":""}"#, r#"{"m":[{"t":""}]}"#, r#"{"t":""}"#] {
        let refused = placed_in(&file, Some(composed), CANARY.as_bytes());
        assert_eq!(refused, Err(PlaceSecretsError::NoSuchPlace), "{composed}");
    }
}

#[test]
fn a_file_that_is_no_document_is_refused() {
    let file = file(r#"{"t":""}"#, &[("t", "")]);
    for (composed, why) in [
        ("{", DocumentError::NotWellFormed),
        (r#"{"t":"","t":""}"#, DocumentError::NameTwice),
        (" ".repeat(131_073).as_str(), DocumentError::TooLarge),
    ] {
        let refused = placed_in(&file, Some(composed), CANARY.as_bytes());
        assert_eq!(refused, Err(PlaceSecretsError::Document(why)));
    }
}

#[test]
fn a_missing_secret_is_refused() {
    let file = file(r#"{"t":""}"#, &[("t", "")]);
    let refused = place_secrets(&file, None, |_| None).map(drop);
    assert_eq!(refused, Err(PlaceSecretsError::MissingSecret));
}

#[test]
fn a_secret_is_1_to_8192_bytes_of_text() {
    let file = file(r#"{"t":""}"#, &[("t", "")]);
    let large = CANARY.repeat(1_000);
    for secret in [&b""[..], large.as_bytes(), b"\xff"] {
        assert_eq!(placed(&file, secret), Err(PlaceSecretsError::SecretRefused));
    }
}

#[test]
fn two_secrets_for_one_place_are_refused() {
    let mut file = file(r#"{"t":""}"#, &[("t", "")]);
    file.secret_fields.push(file.secret_fields[0].clone());
    assert_eq!(placed(&file, CANARY.as_bytes()), Err(PlaceSecretsError::PlaceTwice));
}

#[test]
fn the_bound_of_what_was_delivered_counts_the_line_feed_and_escapes() {
    let file = file(r#"{"t":""}"#, &[("t", "")]);
    let fits = RENDERED_BYTES_MAX - "{\"t\":\"\"}\n".len();
    assert_eq!(placed(&file, &vec![b'x'; fits]).unwrap().len(), RENDERED_BYTES_MAX);
    assert_eq!(placed(&file, &vec![b'x'; fits + 1]), Err(PlaceSecretsError::ResultTooLarge));
    assert_eq!(placed(&file, &vec![1; fits / 6 + 1]), Err(PlaceSecretsError::ResultTooLarge));
    // It holds for the content also where it is composed.
    let refused = placed_in(&file, Some(r#"{"t":""}"#), &vec![b'x'; fits + 1]);
    assert_eq!(refused, Err(PlaceSecretsError::ResultTooLarge));
}

#[test]
fn the_bound_of_what_was_composed_is_its_own() {
    let file = file(r#"{"t":""}"#, &[("t", "")]);
    let composed = |length: usize| format!("{{\"o\":\"{}\",\"t\":\"\"}}", "x".repeat(length));
    let fits = 131_072 - "{\"o\":\"\",\"t\":\"s\"}\n".len();
    assert_eq!(placed_in(&file, Some(&composed(fits)), b"s").unwrap().len(), 131_072);
    let refused = placed_in(&file, Some(&composed(fits + 1)), b"s");
    assert_eq!(refused, Err(PlaceSecretsError::ResultTooLarge));
}
