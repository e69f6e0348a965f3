//! Whether a value was given in the one form in which it would be written.
//!
//! The derived decoders are more generous than the contract: they take a list for an object, an
//! object for a label, `null` for an absent field, and the last of two equal names in a map.

use super::error::{DecodeError, invalid};
use super::worded::joined;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A JSON value in which no object has a name twice.
pub(super) struct Given(Value);

impl Given {
    /// Compares what was given with what was made of it; only what has a default may be missing.
    pub(super) fn reads_back<T: Serialize>(
        &self,
        whole: &str,
        value: &T,
    ) -> Result<(), DecodeError> {
        let made = serde_json::to_value(value).map_err(|_| invalid(whole, "cannot be written"))?;
        reads_back(whole, "", &self.0, &made)
    }
}

fn reads_back(whole: &str, path: &str, given: &Value, made: &Value) -> Result<(), DecodeError> {
    match (given, made) {
        (Value::Object(given), Value::Object(made)) => {
            for (name, value) in given {
                let path = joined(path, name);
                match made.get(name) {
                    Some(made) => reads_back(whole, &path, value, made)?,
                    None if is_empty(value) => (),
                    None => return Err(invalid(path, "must be left out where it has no value")),
                }
            }
            Ok(())
        }
        (Value::Array(given), Value::Array(made)) if given.len() == made.len() => {
            for (index, (value, made)) in given.iter().zip(made).enumerate() {
                reads_back(whole, &format!("{path}[{index}]"), value, made)?;
            }
            Ok(())
        }
        (given, made) if given == made => Ok(()),
        (_, made) => Err(invalid(if path.is_empty() { whole } else { path }, expected(made))),
    }
}

/// A list without anything in it, and an object without anything in it or in what it holds, are what
/// their field is by default.
fn is_empty(value: &Value) -> bool {
    let holds_nothing = |object: &Map<_, _>| object.values().all(is_empty);
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(holds_nothing)
}

fn expected(made: &Value) -> &'static str {
    match made {
        Value::Object(_) => "has the wrong type, expected an object",
        Value::Array(_) => "has the wrong type, expected a list",
        Value::String(_) => "has the wrong type, expected a string",
        Value::Null | Value::Bool(_) | Value::Number(_) => "has the wrong type",
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor).map(Self)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Given(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(Error::custom(format_args!("duplicate field `{name}`")));
            }
            let Given(value) = entries.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
