//! What holds for any value: one canonical text, and a decoder that accepts or gives a reason.
//!
//! Every run takes the same values, so that a failure is seen again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::authority::GrantReply;
use placement_contract::canonical::canonical_json;
use placement_contract::definition::{LaunchPolicy, PlacementProfile};
use placement_contract::delivery::Delivery;
use placement_contract::limits::INTEGER_MAX;
use placement_contract::{DecodeError, Digest, LaunchRequest};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// A value that no error may repeat.
const CANARY: &str = "canary-5d1f";

/// The accepted files: what each holds, and its text.
static ACCEPTED: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests/accepted");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let kind = name.split('.').next().unwrap().to_owned();
        // The canary marks values; what is mutated here marks its own.
        let text = std::fs::read_to_string(path).unwrap().replace(CANARY, "value");
        (kind, serde_json::from_str(&text).unwrap())
    };
    files.iter().map(read).collect()
});

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..24).prop_map(|chars| chars.into_iter().collect())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<f64>().prop_filter("reads back", |it| reads_back(*it)).prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

/// A finite float, and not one that is written like an integer above 2^53.
fn reads_back(float: f64) -> bool {
    float.is_finite() && !(9_007_199_254_740_992.0..1e21).contains(&float.abs())
}

fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(text(), inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A value that a mutation puts in the place of another; every text in it is the canary.
fn planted() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(CANARY)),
        Just(json!("")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([CANARY])),
        Just(json!({ "a": CANARY })),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (1_usize..40_000).prop_map(|length| json!(CANARY.repeat(length / CANARY.len() + 1))),
        (0_usize..200).prop_map(|count| json!(vec![CANARY; count])),
    ]
}

/// Changes one place of a value, found by walking down with a list of choices.
fn mutate(value: &mut Value, choices: &[usize], planted: &Value, how: u8) {
    let Some((choice, deeper)) = choices.split_first() else { return *value = planted.clone() };
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            let name = entries.keys().nth(choice % entries.len()).unwrap().clone();
            if !deeper.is_empty() {
                return mutate(entries.get_mut(&name).unwrap(), deeper, planted, how);
            }
            match how % 3 {
                0 => drop(entries.remove(&name)),
                1 => drop(entries.insert("added".to_owned(), planted.clone())),
                _ => drop(entries.insert(name, planted.clone())),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = choice % items.len();
            if !deeper.is_empty() {
                return mutate(&mut items[index], deeper, planted, how);
            }
            match how % 3 {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => items[index] = planted.clone(),
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => *value = planted.clone(),
    }
}

/// Decodes by kind; what was accepted is accepted again, and reads back as itself from what it is
/// written as.
fn decode(kind: &str, bytes: &[u8]) -> Result<(), DecodeError> {
    match kind {
        "launch" => LaunchRequest::decode(bytes).map(|it| {
            let digest = it.digest();
            let again = it.clone().checked().expect("what was accepted is accepted again");
            assert_eq!((again.digest(), &again), (digest.clone(), &it));
            let back = LaunchRequest::decode(&serde_json::to_vec(&it).unwrap()).unwrap();
            assert_eq!((back.digest(), back), (digest, it));
        }),
        "delivery" => Delivery::decode_stored(bytes).map(|it| {
            assert_eq!(it.clone().checked().as_ref(), Ok(&it));
            assert_eq!(Delivery::decode_stored(&serde_json::to_vec(&it).unwrap()), Ok(it));
        }),
        "policy" => LaunchPolicy::decode(bytes).map(|it| {
            assert_eq!(it.clone().checked().as_ref(), Ok(&it));
            assert_eq!(LaunchPolicy::decode(&serde_json::to_vec(&it).unwrap()), Ok(it));
        }),
        "grant" => GrantReply::decode(bytes).map(|it| {
            assert_eq!(GrantReply::decode(&serde_json::to_vec(&it).unwrap()), Ok(it));
        }),
        "profile" => PlacementProfile::decode(bytes).map(drop),
        _ => panic!("{kind} is not known"),
    }
}

fn assert_reasoned(error: &DecodeError) {
    assert!(!error.rule.is_empty() && error.rule.len() < 200, "{error}");
    assert!(error.field.len() <= 300, "{error}");
    assert!(!error.rule.contains(CANARY), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_values_have_equal_canonical_texts_and_read_back(value in tree()) {
        let text = canonical_json(&value).unwrap();
        let back: Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(&canonical_json(&back).unwrap(), &text);
        prop_assert_eq!(canonical_json(&reversed(&value)).unwrap(), text);
        prop_assert!(alike(&back, &value));
    }

    #[test]
    fn different_values_have_different_canonical_texts(one in tree(), other in tree()) {
        let same = canonical_json(&one).unwrap() == canonical_json(&other).unwrap();
        prop_assert_eq!(same, alike(&one, &other));
    }

    #[test]
    fn digests_are_equal_exactly_where_canonical_texts_are(one in tree(), other in tree()) {
        let texts = [&one, &other].map(|it| canonical_json(it).unwrap());
        let digests = [&one, &other].map(|it| Digest::of_value("value@1", it).unwrap());
        prop_assert_eq!(texts[0] == texts[1], digests[0] == digests[1]);
        prop_assert_eq!(&Digest::of_value("value@1", &reversed(&one)).unwrap(), &digests[0]);
        prop_assert_ne!(&Digest::of_value("value@2", &one).unwrap(), &digests[0]);
    }

    #[test]
    fn an_integer_that_would_be_rounded_has_no_canonical_text_wherever_it_stands(
        value in tree(),
        choices in vec(any::<usize>(), 0..5),
        integer in prop_oneof![
            (INTEGER_MAX + 1..).prop_map(Value::from),
            (i64::MIN..-9_007_199_254_740_991).prop_map(Value::from),
        ],
    ) {
        let mut value = value;
        mutate(&mut value, &choices, &integer, 2);
        prop_assert!(canonical_json(&value).is_err());
        prop_assert!(Digest::of_value("value@1", &value).is_err());
    }

    #[test]
    fn a_number_of_an_option_reads_back_as_itself(number in any::<f64>()) {
        let (_, launch) = ACCEPTED.iter().find(|(kind, _)| kind == "launch").unwrap();
        let mut launch = launch.clone();
        launch["preferences"] = json!({ "options": { "number": number } });
        // What is not a number is written as null, which is refused.
        let decoded = decode("launch", &serde_json::to_vec(&launch).unwrap());
        prop_assert!(decoded.is_ok() || !reads_back(number), "{:?}", decoded);
    }

    #[test]
    fn any_value_is_accepted_or_refused_with_a_reason(value in tree()) {
        let bytes = serde_json::to_vec(&value).unwrap();
        for kind in ["launch", "delivery", "policy", "grant", "profile"] {
            if let Err(error) = decode(kind, &bytes) {
                assert_reasoned(&error);
            }
        }
    }

    #[test]
    fn a_mutation_is_accepted_or_refused_with_a_reason(
        which in any::<prop::sample::Index>(),
        choices in vec(any::<usize>(), 1..6),
        planted in planted(),
        how in any::<u8>(),
    ) {
        let (kind, value) = which.get(&ACCEPTED);
        let mut value = value.clone();
        mutate(&mut value, &choices, &planted, how);
        if let Err(error) = decode(kind, &serde_json::to_vec(&value).unwrap()) {
            assert_reasoned(&error);
            prop_assert!(!error.field.contains(CANARY), "{}", error);
        }
    }

    #[test]
    fn changed_bytes_are_accepted_or_refused_with_a_reason(
        which in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (kind, value) = which.get(&ACCEPTED);
        let mut bytes = serde_json::to_vec(value).unwrap();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        if let Err(error) = decode(kind, &bytes) {
            assert_reasoned(&error);
        }
    }
}

/// The same value, its names given in the opposite order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let turned: Map<String, Value> =
                entries.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect();
            Value::Object(turned)
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Equality in which `1` is `1.0`, as it is in JSON.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| alike(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(a, b)| a.0 == b.0 && alike(a.1, b.1))
        }
        _ => one == other,
    }
}
