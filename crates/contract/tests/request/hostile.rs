//! Bytes that nobody meant as a request: no panic, no hang, no quoting.

use crate::sample::{CANARY, complete};
use placement_contract::limits::REQUEST_BYTES_MAX;
use placement_contract::{Code, LaunchRequest, Refusal};
use placement_testkit::Random;
use serde_json::json;

const NOT_JSON: &str = "request: is not well-formed JSON";

#[track_caller]
fn refusal(bytes: &[u8]) -> String {
    let error = LaunchRequest::decode(bytes).unwrap_err();
    assert_eq!(Refusal::from(error.clone()).code, Code::Invalid);
    error.to_string()
}

#[test]
fn what_is_not_json_is_refused() {
    for bytes in [&b""[..], b" ", b"{", b"{]", b"nul", b"\xff\xfe", b"{\"a\":}", b"'x'", b"// x"] {
        assert_eq!(refusal(bytes), NOT_JSON, "{bytes:?}");
    }
}

#[test]
fn json_that_is_no_object_is_refused() {
    for bytes in [&b"null"[..], b"5", b"\"x\"", b"[]", b"[[]]", b"true"] {
        let expected = "request: has the wrong type, expected an object";
        assert_eq!(refusal(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let text = serde_json::to_vec(&complete()).unwrap();
    for end in 0..text.len() {
        assert_eq!(refusal(&text[..end]), NOT_JSON, "{end}");
    }
}

#[test]
fn anything_after_the_request_is_refused() {
    let text = serde_json::to_string(&complete()).unwrap();
    for tail in ["x", "{}", ",", "\0", "]", "null"] {
        assert_eq!(refusal(format!("{text}{tail}").as_bytes()), NOT_JSON, "{tail:?}");
    }
    assert!(LaunchRequest::decode(format!(" {text}\r\n\t ").as_bytes()).is_ok());
}

#[test]
fn a_byte_order_mark_is_refused() {
    let text = serde_json::to_string(&complete()).unwrap();
    assert_eq!(refusal(format!("\u{feff}{text}").as_bytes()), NOT_JSON);
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let text = serde_json::to_vec(&complete()).unwrap();
    let at = text.windows(5).position(|part| part == b"hello").unwrap();
    for bytes in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80"] {
        let broken = [&text[..at], bytes, &text[at..]].concat();
        let shown = refusal(&broken);
        assert!(shown.starts_with("launch.argv[1]: ") || shown == NOT_JSON, "{shown}");
    }
}

#[test]
fn a_lone_surrogate_is_refused() {
    let text = serde_json::to_string(&complete()).unwrap().replace("hello", r"\ud800");
    assert!(LaunchRequest::decode(text.as_bytes()).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [100, 1_000, 200_000] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let in_place = json!({ "launch": 0 }).to_string().replace('0', &nested);
            for text in [&nested, &in_place, &open.repeat(depth)] {
                assert!(LaunchRequest::decode(text.as_bytes()).is_err(), "{open} {depth}");
            }
        }
    }
}

#[test]
fn a_request_above_its_bound_is_refused_unread() {
    let mut text = serde_json::to_vec(&complete()).unwrap();
    text.resize(REQUEST_BYTES_MAX, b' ');
    assert!(LaunchRequest::decode(&text).is_ok());
    text.push(b' ');
    assert_eq!(refusal(&text), "request: is larger than 8 MiB");
}

#[test]
fn a_large_list_is_refused_by_its_count() {
    let many = vec![""; 2_000_000];
    let mut request = complete();
    request["launch"]["argv"] = json!(many);
    let text = serde_json::to_vec(&request).unwrap();
    assert!(text.len() < REQUEST_BYTES_MAX);
    assert_eq!(refusal(&text), "launch.argv: must have at most 128 items");
}

#[test]
fn a_number_out_of_range_is_refused() {
    let text = serde_json::to_string(&complete()).unwrap();
    let given = r#""owner_incarnation":3"#;
    assert!(text.contains(given));
    for number in ["1e999", "-1e999", "18446744073709551616", "3.0", "3e0", "-0", "03", "+3"] {
        let text = text.replace(given, &format!(r#""owner_incarnation":{number}"#));
        let shown = refusal(text.as_bytes());
        assert!(shown.starts_with("owner_incarnation: ") || shown == NOT_JSON, "{number}: {shown}");
    }
}

/// Bytes that mean something to a JSON reader.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "-",
    "1e9",
    "0.5",
    "18446744073709551616",
    "`",
    ", expected `",
    " at line 1",
    "must ",
    "\0",
    "\u{feff}",
];

fn mutated(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=random.below(3) {
        let length = u64::try_from(bytes.len()).unwrap();
        let at = usize::try_from(random.below(length + 1)).unwrap();
        let span = usize::try_from(random.below(24)).unwrap().min(bytes.len() - at);
        match random.below(5) {
            0 => drop(bytes.drain(at..at + span)),
            1 => {
                let copied = bytes[at..at + span].to_vec();
                let to = usize::try_from(random.below(length + 1)).unwrap();
                bytes.splice(to..to, copied);
            }
            2 => {
                let token = *random.pick(TOKENS);
                bytes.splice(at..at, token.bytes());
            }
            3 if at < bytes.len() => bytes[at] = random.bytes(1)[0],
            _ => bytes.truncate(at.max(1)),
        }
        if bytes.is_empty() {
            return bytes;
        }
    }
    bytes
}

#[test]
fn no_mutation_panics_or_is_quoted() {
    let mut request = complete();
    request["launch"]["stdin"] = json!(CANARY);
    let text = serde_json::to_vec(&request).unwrap();
    let mut accepted = 0;
    for seed in 0..10_000 {
        let bytes = mutated(&text, &mut Random::seeded(seed));
        match LaunchRequest::decode(&bytes) {
            Ok(decoded) => {
                accepted += 1;
                assert_eq!(decoded.clone().checked(), Ok(decoded), "seed {seed}");
            }
            Err(error) => {
                // A mutation can make the value a name; a name may be shown, a value may not.
                let named = error.field.contains(CANARY);
                assert!(named || !error.to_string().contains(CANARY), "seed {seed}: {error}");
                assert!(!error.rule.contains(CANARY), "seed {seed}: {error}");
                assert!(error.to_string().len() < 600, "seed {seed}");
            }
        }
    }
    assert!(accepted > 100, "only {accepted} mutations were accepted: the seeds prove little");
}

#[test]
fn random_bytes_are_refused() {
    for seed in 0..2_000 {
        let mut random = Random::seeded(seed);
        let length = usize::try_from(random.below(400)).unwrap();
        assert!(LaunchRequest::decode(&random.bytes(length)).is_err(), "seed {seed}");
    }
}
