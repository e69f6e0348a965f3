//! A TOML document that knows the line of each of its keys.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A parsed document beside its text.
#[derive(Debug)]
pub(super) struct Document<'a> {
    text: &'a str,
    table: DeTable<'a>,
}

/// Where and why a text is no document.
pub(super) struct Syntax {
    pub(super) line: Option<usize>,
    pub(super) rule: &'static str,
}

impl<'a> Document<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Syntax> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { text, table: table.into_inner() }),
            Err(error) => Err(Syntax {
                line: error.span().map(|span| line_at(text, span.start)),
                // Only the kind of the error is told: its text may quote what is there.
                rule: if error.message().starts_with("duplicate key") {
                    "has a key twice"
                } else {
                    "is not well-formed TOML"
                },
            }),
        }
    }

    /// Writes the document as JSON; the key of a date or a time is returned instead.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, String> {
        let value = table_to_json("", &self.table)?;
        Ok(serde_json::to_vec(&value).expect("text keys and finite numbers"))
    }

    /// Finds the line of a key such as `resources.admitted[0].access`, or that of what holds it.
    ///
    /// A key may have dots in it, so the longest key that fits is taken at each step.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let mut at = None;
        find(&self.table, key, &mut at);
        at.map(|offset| line_at(self.text, offset))
    }
}

fn find(table: &DeTable<'_>, rest: &str, at: &mut Option<usize>) {
    let fits = |name: &str| {
        rest.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let found = table
        .iter()
        .filter_map(|(name, value)| Some((name, value, fits(name.get_ref())?)))
        .max_by_key(|(name, ..)| name.get_ref().len());
    if let Some((name, value, rest)) = found {
        *at = Some(name.span().start);
        find_in(value, rest, at);
    }
}

fn find_in(value: &Spanned<DeValue<'_>>, rest: &str, at: &mut Option<usize>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            if let Some(rest) = rest.strip_prefix('.') {
                find(table, rest, at);
            }
        }
        DeValue::Array(items) => {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((Ok(index), rest)) = index.map(|(index, rest)| (index.parse::<usize>(), rest))
            else {
                return;
            };
            let items: &[Spanned<DeValue<'_>>] = items;
            if let Some(item) = items.get(index) {
                *at = Some(item.span().start);
                find_in(item, rest, at);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => (),
    }
}

fn table_to_json(key: &str, table: &DeTable<'_>) -> Result<Value, String> {
    let mut object = Map::new();
    for (name, value) in table {
        let key = if key.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{key}.{}", name.get_ref())
        };
        object.insert(name.get_ref().to_string(), to_json(&key, value.get_ref())?);
    }
    Ok(Value::Object(object))
}

fn to_json(key: &str, value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::from(text.as_ref())),
        DeValue::Boolean(flag) => Ok(Value::from(*flag)),
        // A number outside the range of JSON becomes null, which no key accepts.
        DeValue::Integer(number) => {
            Ok(i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Null, Value::from))
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            Ok(number.map_or(Value::Null, Value::Number))
        }
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| to_json(&format!("{key}[{index}]"), item.get_ref()))
            .collect(),
        DeValue::Table(table) => table_to_json(key, table),
        DeValue::Datetime(_) => Err(key.to_owned()),
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
}
