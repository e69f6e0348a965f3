//! Where the files of a delivery may come from.

use crate::sample::{bytes, changed, reason};
use placement_contract::delivery::{Admission, Delivery};
use placement_contract::request::Gateway;
use placement_contract::{Digest, ProviderRef};
use serde_json::{Value, json};

fn file(content: &str, source: &str) -> Value {
    json!({
        "revision": "r", "path": "a.json", "content": content,
        "digest": Digest::of_bytes(content.as_bytes()), "provider_ref": source,
    })
}

fn delivery(file: &Value) -> Delivery {
    Delivery::decode_stored(&bytes(&json!({ "files": [file] }))).unwrap()
}

fn gateway() -> Gateway {
    let gateway = json!({
        "endpoint": "http://127.0.0.1:1", "tools": ["read"], "destination": "TOKEN",
        "hooks": ["Stop"], "hook_destination": "HOOK_TOKEN",
    });
    serde_json::from_value(gateway).unwrap()
}

fn secret(content: &str, source: &str, environment: &str) -> Value {
    let fields = json!([{ "path": ["k"], "environment": environment }]);
    changed(file(content, source), "secret_fields", fields)
}

fn copy(source: &str) -> Value {
    changed(file("", source), "composition", json!({ "kind": "copy", "base_path": "base.json" }))
}

#[test]
fn a_file_has_a_source_that_the_host_selected() {
    let provider = ProviderRef::parse("provider").unwrap();
    let gateway = gateway();
    let selected = Admission {
        provider_ref: Some(&provider),
        gateway: Some(&gateway),
        instructions: Some("Be brief."),
        private_home: true,
    };
    let fine = [
        file("x", "provider"),
        file("x", "bee:profile_options"),
        file("Be brief.", "bee:profile_instructions"),
        copy("bee:provider_login"),
        secret(r#"{"k":""}"#, "bee:gateway_endpoint", "TOKEN"),
        secret(r#"{"k":""}"#, "bee:gateway_endpoint", "HOOK_TOKEN"),
    ];
    for file in fine {
        assert_eq!(delivery(&file).check_sources(&selected), Ok(()), "{file}");
    }
}

#[test]
fn a_file_of_another_source_is_refused() {
    let gateway = gateway();
    let nothing = Admission::default();
    let with_gateway = Admission { gateway: Some(&gateway), ..nothing };
    let private = Admission { private_home: true, ..nothing };
    let of = "files[0].provider_ref: ";
    let cases = [
        (file("x", "other"), nothing, format!("{of}must be a source that the host selected")),
        (file("x", "bee:gateway_endpoint"), nothing, format!("{of}needs a gateway")),
        (
            file("x", "bee:profile_instructions"),
            nothing,
            "files[0].content: must be the instructions".to_owned(),
        ),
        (copy("bee:provider_login"), nothing, format!("{of}needs a private home")),
        (file("x", "bee:provider_login"), private, format!("{of}is for a copy only")),
        (
            secret(r#"{"k":""}"#, "bee:profile_options", "TOKEN"),
            with_gateway,
            "files[0].secret_fields: are for gateway files only".to_owned(),
        ),
        (
            secret(r#"{"k":""}"#, "bee:gateway_endpoint", "OTHER"),
            with_gateway,
            "files[0].secret_fields[0].environment: must be a destination of the gateway"
                .to_owned(),
        ),
    ];
    for (file, admission, rule) in cases {
        assert_eq!(reason(delivery(&file).check_sources(&admission)), rule);
    }
}

#[test]
fn a_reply_cannot_choose_the_adapter() {
    let chosen = bytes(&json!({ "git_writable_roots_adapter": "claude_add_dir" }));
    assert!(Delivery::decode_stored(&chosen).is_ok());
    let rule = "git_writable_roots_adapter: is not a field of this object";
    assert_eq!(reason(Delivery::decode_reply(&chosen)), rule);
}

#[test]
fn a_stored_delivery_reads_back_and_shows_its_damage() {
    let whole = delivery(&file("one", "bee:profile_options"));
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(Delivery::decode_stored(text.as_bytes()), Ok(whole));
    let damaged = text.replace("one", "two");
    let rule = "files[0].digest: must be the digest of the content";
    assert_eq!(reason(Delivery::decode_stored(damaged.as_bytes())), rule);
}
