//! Which fields there are, of which type, each once.

use crate::sample::{CANARY, assert_invalid, complete, decode, minimal, refused, set, with};
use placement_contract::{Code, LaunchRequest, Refusal};
use serde_json::{Value, json};

#[test]
fn a_complete_request_is_decoded() {
    let request = decode(&complete()).unwrap();
    assert_eq!(request.launch.argv.len(), 2);
    assert_eq!(request.resources[0].subpath.as_str(), "src");
    assert_eq!(request.timeouts.retain_ms, 600_000);
    assert_eq!(request.supervision.deadline_ms, Some(1));
}

#[test]
fn defaults_are_filled_in() {
    let request = decode(&minimal()).unwrap();
    assert_eq!(request.timeouts.start_ms, 15_000);
    assert_eq!(request.timeouts.stop_grace_ms, 5_000);
    assert_eq!(request.timeouts.drain_ms, 5_000);
    assert_eq!(request.timeouts.retain_ms, 30_000);
    assert_eq!(request.required_exit_observation.label(), "independent");
    assert_eq!(request.supervision.on_host_loss.label(), "stop");
    assert_eq!(request.supervision.leftovers.label(), "stop");
    assert!(!request.launch.stdin_eof);
}

#[test]
fn a_decoded_request_reads_back_as_itself() {
    for value in [complete(), minimal()] {
        let request = decode(&value).unwrap();
        assert_eq!(request.clone().checked(), Ok(request));
    }
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    // Names that end or begin like their parent are named whole as well.
    let cases = [
        ("/zz", "zz"),
        ("/launch/zz", "launch.zz"),
        ("/launch/h", "launch.h"),
        ("/launch/launch", "launch.launch"),
        ("/launch/delivery", "launch.delivery"),
        ("/resources/0/zz", "resources[0].zz"),
        ("/timeouts/zz", "timeouts.zz"),
        ("/supervision/zz", "supervision.zz"),
    ];
    for (pointer, field) in cases {
        assert_invalid(pointer, json!(CANARY), field, "is not a field of this object");
    }
}

#[test]
fn a_delivery_from_the_caller_is_an_unknown_field() {
    let delivery = json!({ "arguments": [CANARY] });
    assert_invalid("/delivery", delivery, "delivery", "is not a field of this object");
}

#[test]
fn a_name_with_backticks_or_control_characters_is_shown_bounded() {
    let long = "x".repeat(100_000);
    for name in ["a`b", "a, expected `b`", "a at line b", "a\u{1}b", "", long.as_str()] {
        let (code, field, _) = refused(&format!("/{name}"), json!(CANARY));
        assert_eq!(code, Code::Invalid, "{name}");
        assert!(field.len() <= 256, "{name}");
        assert!(!field.contains(char::is_control), "{field:?}");
    }
}

#[test]
fn a_name_of_another_place_is_unknown() {
    for pointer in ["/launch/gateway", "/timeouts/limits", "/resources/0/home_ref", "/limits"] {
        assert_eq!(refused(pointer, json!(1)).2, "is not a field of this object", "{pointer}");
    }
}

#[test]
fn a_missing_field_is_refused_by_name() {
    let value = minimal();
    for name in value.as_object().unwrap().keys() {
        let mut request = value.clone();
        request.as_object_mut().unwrap().remove(name);
        let error = decode(&request).unwrap_err();
        assert_eq!(error.to_string(), format!("{name}: is missing"));
    }
    for (object, name) in [("/launch", "readiness"), ("/launch", "argv"), ("/resources/0", "name")]
    {
        let mut request = complete();
        request.pointer_mut(object).unwrap().as_object_mut().unwrap().remove(name);
        let error = decode(&request).unwrap_err();
        assert_eq!(error.rule, "is missing");
        assert!(error.field.ends_with(&format!(".{name}")), "{error}");
    }
}

/// Every place of a value in the complete request.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    if !at.is_empty() {
        all.push(at.to_owned());
    }
    if let Some(object) = value.as_object() {
        for (name, value) in object {
            pointers(value, &format!("{at}/{name}"), all);
        }
    }
    if let Some(list) = value.as_array() {
        for (index, value) in list.iter().enumerate() {
            pointers(value, &format!("{at}/{index}"), all);
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

#[test]
fn a_value_of_another_type_is_refused_everywhere_without_quoting_it() {
    let request = complete();
    let mut all = Vec::new();
    pointers(&request, "", &mut all);
    assert!(all.len() > 40);
    let others = [
        json!(null),
        json!(true),
        json!(7_310_912),
        json!(-7_310_912),
        json!(7_310_912.5),
        json!(CANARY),
        json!([CANARY]),
        json!([[CANARY]]),
        json!({ "a": CANARY }),
    ];
    // The value of an option may be of several types.
    all.retain(|pointer| !pointer.starts_with("/preferences/options/"));
    for pointer in &all {
        let expected = kind(request.pointer(pointer).unwrap());
        for other in others.iter().filter(|other| kind(other) != expected) {
            let seen = with(pointer, other.clone());
            let error = seen.expect_err(&format!("{pointer} = {other} was accepted"));
            let top = pointer.split('/').nth(1).unwrap();
            assert!(error.field.starts_with(top), "{pointer} = {other}: {error}");
            let shown = format!("{error:?} {error}");
            assert!(!shown.contains(CANARY), "{shown}");
            assert!(!shown.contains("7310912"), "{shown}");
        }
    }
}

#[test]
fn a_value_that_imitates_a_decoders_text_is_not_quoted() {
    let imitations = [
        format!("x`, expected {CANARY}"),
        format!("x at line {CANARY}"),
        format!("`, expected `{CANARY}` at line 1 column 1"),
        format!("must {CANARY}"),
    ];
    for text in imitations {
        for pointer in ["/required_cleanup", "/resources/0/access", "/supervision/stdin"] {
            let seen = refused(pointer, json!(text));
            assert!(seen.2.starts_with("must be "), "{seen:?}");
            assert!(!format!("{seen:?}").contains(CANARY), "{seen:?}");
        }
        for pointer in ["/owner_incarnation", "/launch/argv", "/launch/stdin_eof", "/launch"] {
            let seen = refused(pointer, json!(text));
            assert!(!format!("{seen:?}").contains(CANARY), "{seen:?}");
        }
    }
}

#[test]
fn a_label_is_one_of_the_known_ones() {
    let rule = "must be one of direct_process, process_group, contained_tree";
    assert_invalid("/required_cleanup", json!(CANARY), "required_cleanup", rule);
    let rule = "must be independent or eof_gated";
    let field = "required_exit_observation";
    assert_invalid("/required_exit_observation", json!(CANARY), field, rule);
    let rule = "must be read or write";
    assert_invalid("/resources/0/access", json!(CANARY), "resources[0].access", rule);
}

#[test]
fn a_list_is_no_object() {
    let rule = "has the wrong type, expected an object";
    assert_invalid("/timeouts", json!([1, 2, 300, 400]), "timeouts", rule);
    assert_invalid("/launch", json!(["sh", [], "started"]), "launch", rule);
    let grant = json!(["project", "g", "r", "", "read", "project"]);
    assert_invalid("/resources/0", grant, "resources[0]", rule);
}

#[test]
fn an_object_is_no_label() {
    let rule = "has the wrong type, expected a string";
    let label = json!({ "process_group": null });
    assert_invalid("/required_cleanup", label, "required_cleanup", rule);
}

#[test]
fn null_is_no_value_of_an_optional_field() {
    let rule = "must be left out where it has no value";
    let mut request = minimal();
    set(&mut request, "/launch/stdin", Value::Null);
    assert_eq!(decode(&request).unwrap_err().to_string(), format!("launch.stdin: {rule}"));
    assert_invalid("/supervision/deadline_ms", Value::Null, "supervision.deadline_ms", rule);
}

#[test]
fn a_field_given_twice_is_refused() {
    let text = serde_json::to_string(&complete()).unwrap();
    let cases = [
        (r#""owner_id":"owner-1""#, "owner_id"),
        (r#""executable":"claude""#, "launch.executable"),
        (r#""access":"write""#, "resources[0].access"),
        (r#""start_ms":1"#, "timeouts.start_ms"),
        (r#""keep_home":true"#, "supervision.keep_home"),
        (r#""LEVEL":"debug""#, "environment.LEVEL"),
        (r#""REGION":"host:region""#, "environment_refs.REGION"),
    ];
    for (pair, field) in cases {
        assert!(text.contains(pair), "{pair}");
        let twice = text.replace(pair, &format!("{pair},{pair}"));
        let error = LaunchRequest::decode(twice.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("{field}: is given twice"));
    }
}

#[test]
fn a_name_escaped_differently_is_the_same_name() {
    let text = serde_json::to_string(&complete()).unwrap();
    let pair = r#""LEVEL":"debug""#;
    let twice = text.replace(pair, &format!(r#"{pair},"\u004cEVEL":"x""#));
    let error = LaunchRequest::decode(twice.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "environment.LEVEL: is given twice");
}

#[test]
fn an_error_becomes_a_refusal() {
    let refusal = Refusal::from(with("/gateway", json!([])).unwrap_err());
    assert_eq!(refusal.code, Code::Invalid);
    assert_eq!(refusal.message, "gateway: has the wrong type, expected an object");
    assert!(!refusal.hint().is_empty());
}
