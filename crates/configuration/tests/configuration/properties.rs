//! What holds for any base: a place becomes what its operation says, and everything else stays.
//!
//! Every run takes the same values, so that a failure is seen again.

use crate::support::patch;
use placement_configuration::{
    ComposeError, DeclaredFile, DeclaredPresence, Projection, TextFormat, compose, scan,
};
use placement_contract::Line;
use placement_contract::delivery::{Composition, OperationKind};
use placement_contract::request::RelativePath;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::{Map, Value};

/// Names, few enough to meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "\"d e\""]).prop_map(str::to_owned)
}

/// A place of one to three names.
fn place() -> impl Strategy<Value = String> {
    vec(prop::sample::select(vec!["a", "b", "c"]), 1..=3).prop_map(|names| names.join("."))
}

/// A value of TOML as it is spelled; most of them of JSON as well.
fn spelled() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec![
        "1",
        "0x1F",
        "1.50",
        "-0.0",
        "nan",
        "true",
        "'x'",
        "\"\\u00e9\"",
        "1979-05-27",
        "\"\"\"\nx\"\"\"",
    ]);
    plain.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let entry = (name(), inner.clone()).prop_map(|(name, value)| format!("{name} = {value}"));
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            vec(inner, 1..3).prop_map(|items| format!("[\n  {}, # in\n]", items.join(",\n  "))),
            vec(entry, 0..3).prop_map(|entries| format!("{{ {} }}", entries.join(", "))),
        ]
    })
}

/// Lines of a document; many documents are refused for a name that is there twice.
fn line() -> impl Strategy<Value = String> {
    let dotted = vec(name(), 1..=3).prop_map(|names| names.join(" . "));
    let headed = || vec(name(), 1..=3).prop_map(|names| names.join("."));
    prop_oneof![
        4 => (dotted, spelled()).prop_map(|(place, value)| format!("{place} = {value}")),
        2 => headed().prop_map(|place| format!("[{place}]")),
        1 => headed().prop_map(|place| format!("[[{place}]] # of")),
        1 => Just("# note".to_owned()),
        1 => Just(String::new()),
    ]
}

fn document() -> impl Strategy<Value = String> {
    // A line that breaks the document is left out, so that most documents are long enough to matter.
    vec(line(), 0..12).prop_map(|lines| {
        lines.into_iter().fold(String::new(), |document, line| {
            let longer = format!("{document}{line}\n");
            if longer.parse::<toml::Table>().is_ok() { longer } else { document }
        })
    })
}

fn kind() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["default", "insert", "append", "set"])
}

/// One or two operations at places that do not overlap.
fn operations() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    vec((kind(), place()), 1..=2).prop_map(|mut operations| {
        let within = |one: &str, two: &str| format!("{one}.").starts_with(&format!("{two}."));
        if let [(_, one), (_, two)] = operations.as_slice()
            && (within(one, two) || within(two, one))
        {
            operations.pop();
        }
        operations
    })
}

fn recipe(form: &str, operations: &[(&'static str, String)]) -> Composition {
    let borrowed: Vec<_> = operations.iter().map(|(kind, path)| (*kind, path.as_str())).collect();
    patch(form, &borrowed)
}

/// Content that has something at each place and nowhere else.
fn content(operations: &[(&'static str, String)], values: &[String]) -> String {
    let line = |((_, place), value): (&(_, String), &String)| format!("{place} = {value}\n");
    operations.iter().zip(values).map(line).collect()
}

/// What TOML says, as values that can be compared: a date or a number by its spelling.
fn values(text: &str) -> Value {
    fn of(value: &toml::Value) -> Value {
        match value {
            toml::Value::String(text) => Value::from(text.as_str()),
            toml::Value::Array(items) => items.iter().map(of).collect(),
            toml::Value::Table(table) => {
                table.iter().map(|(name, value)| (name.clone(), of(value))).collect()
            }
            toml::Value::Float(number) => Value::from(format!("float {number:?}")),
            toml::Value::Integer(_) | toml::Value::Boolean(_) | toml::Value::Datetime(_) => {
                Value::from(format!("{} {value}", value.type_str()))
            }
        }
    }
    of(&toml::Value::Table(text.parse().expect("it is TOML")))
}

/// The recipe a second time, by other means: on plain values.
fn expected(composition: &Composition, content: &Value, base: &Value) -> Option<Value> {
    let mut result = base.clone();
    for operation in composition.operations() {
        let names: Vec<&str> = operation.path.keys().iter().map(Line::as_str).collect();
        let new = content.pointer(&format!("/{}", names.join("/")))?;
        let (last, parents) = names.split_last()?;
        let mut table = result.as_object_mut()?;
        for parent in parents {
            let next = table.entry(*parent).or_insert_with(|| Value::Object(Map::new()));
            table = next.as_object_mut()?;
        }
        let old = table.get(*last).cloned();
        let value = match (operation.kind, old) {
            (OperationKind::Default, Some(old)) if old != *new => return None,
            (OperationKind::Insert, Some(_)) => return None,
            (OperationKind::Append, old) => {
                let mut items = old.map_or(Some(Vec::new()), |old| old.as_array().cloned())?;
                items.extend(new.as_array()?.iter().cloned());
                Value::from(items)
            }
            (OperationKind::Default | OperationKind::Insert | OperationKind::Set, _) => new.clone(),
        };
        table.insert((*last).to_owned(), value);
    }
    Some(result)
}

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn any_toml_becomes_what_the_recipe_says_and_nothing_else(
        base in document(),
        operations in operations(),
        new in vec(spelled(), 2),
    ) {
        let recipe = recipe("toml_patch", &operations);
        let content = content(&operations, &new);
        // Inline tables are spelled without regard to names that are there twice.
        prop_assume!(content.parse::<toml::Table>().is_ok());
        let (before, added) = (values(&base), values(&content));
        let result = compose(&recipe, &content, Some(base.as_bytes()));
        prop_assert_ne!(result.as_ref().err(), Some(&ComposeError::NotTheSame));
        match (result, expected(&recipe, &added, &before)) {
            (Ok(result), Some(expected)) => {
                let result = String::from_utf8(result).unwrap();
                prop_assert_eq!(values(&result), expected);
                if !operations.iter().any(|(kind, _)| *kind == "set") {
                    let comments = |text: &str| text.matches('#').count();
                    prop_assert!(comments(&result) >= comments(&base), "{}", result);
                }
            }
            // Items that are no tables do not go into a list that is written as tables.
            (Err(ComposeError::NotAList), Some(_)) => {
                prop_assert!(base.contains("[[") && content.contains('['));
            }
            (Err(_), None) => {}
            (result, expected) => prop_assert!(false, "{:?} and {:?}", result, expected),
        }
    }
}

/// What references are made of.
const PIECES: &[&str] = &[
    "~/",
    "{file:",
    "}",
    "${",
    "{env:",
    "/home/u",
    "/",
    "..",
    "k",
    "{file:~/k}",
    "{file:/home/u/k}",
    " ",
];

/// A value of JSON.
fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        vec(any::<char>(), 0..8).prop_map(|text| Value::from(text.into_iter().collect::<String>())),
        vec(prop::sample::select(PIECES.to_vec()), 0..4)
            .prop_map(|text| Value::from(text.concat())),
    ];
    plain.prop_recursive(4, 24, 4, |inner| {
        let name = prop::sample::select(vec!["a", "b", "c", "d\"e"]).prop_map(str::to_owned);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn any_json_becomes_what_the_recipe_says_and_nothing_else(
        base in value(),
        operations in operations(),
        new in vec(value(), 2),
        pretty in any::<bool>(),
    ) {
        let recipe = recipe("json_patch", &operations);
        let mut content = Value::Object(Map::new());
        for ((_, place), value) in operations.iter().zip(new) {
            let mut table = &mut content;
            for name in place.split('.') {
                table = &mut table[name];
            }
            *table = value;
        }
        let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
        let result = compose(&recipe, &write(&content).unwrap(), Some(write(&base).unwrap().as_bytes()));
        match (result, expected(&recipe, &content, &base)) {
            (Ok(result), Some(expected)) => {
                let read: Value = serde_json::from_slice(&result).unwrap();
                prop_assert_eq!(read, expected);
            }
            (Err(_), None) => {}
            (result, expected) => prop_assert!(false, "{:?} and {:?}", result, expected),
        }
    }

    #[test]
    fn what_passes_the_scan_refers_to_the_private_home_alone(document in value()) {
        let key = RelativePath::parse("k").unwrap();
        let file = DeclaredFile {
            source_path: &key,
            path: &key,
            presence: DeclaredPresence::Materialized,
        };
        let projection = Projection { host_home: "/home/u", private_home: "/p", files: &[file] };
        let text = document.to_string();
        if let Ok(result) = scan(TextFormat::Json, text.as_bytes(), &projection) {
            let read: Value = serde_json::from_slice(&result).unwrap();
            let mut led = document;
            lead(&mut led);
            prop_assert_eq!(&read, &led);
            let result = read.to_string().replace("{file:/p/k}", "led");
            for reference in ["${", "{env:", "{file:", "\"~/"] {
                prop_assert!(!result.contains(reference), "{}", result);
            }
        }
    }
}

/// Leads every reference that may be there, by other means.
fn lead(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = text
                .replace("{file:~/k}", "{file:/p/k}")
                .replace("{file:/home/u/k}", "{file:/p/k}");
        }
        Value::Array(items) => items.iter_mut().for_each(lead),
        Value::Object(entries) => entries.values_mut().for_each(lead),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
