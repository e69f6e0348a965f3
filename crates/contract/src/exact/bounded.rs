//! Lists, maps and objects whose bounds are checked where they are read, so that an error names
//! them and a list above its bound is not read to its end.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

/// Reads a list of `MIN` to `MAX` items.
pub(crate) fn list<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(ListVisitor::<T, MIN, MAX>(PhantomData))
}

/// Reads a list of `MIN` to `MAX` items of an optional field; `null` is no list.
pub(crate) fn some_list<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list::<D, T, MIN, MAX>(deserializer).map(Some)
}

/// Reads a list of `MIN` to `MAX` items, each of them once.
pub(crate) fn distinct<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    let items = list::<D, T, MIN, MAX>(deserializer)?;
    if items.iter().collect::<BTreeSet<_>>().len() == items.len() {
        Ok(items)
    } else {
        Err(Error::custom("must not have an item twice"))
    }
}

/// Reads a list of `MIN` to `MAX` different items of an optional field; `null` is no list.
pub(crate) fn some_distinct<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord,
{
    distinct::<D, T, MIN, MAX>(deserializer).map(Some)
}

/// Reads an object of at most `MAX` names.
pub(crate) fn map<'de, D, K, V, const MAX: usize>(
    deserializer: D,
) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    let map = BTreeMap::deserialize(deserializer)?;
    if map.len() <= MAX {
        Ok(map)
    } else {
        Err(Error::custom(format_args!("must have at most {MAX} names")))
    }
}

/// Reads a struct from an object only; the derived decoders take a list as well.
///
/// Needed where the struct is left out when it equals its default: nothing would be left of the
/// list to compare with.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

struct ListVisitor<T, const MIN: usize, const MAX: usize>(PhantomData<T>);

impl<'de, T, const MIN: usize, const MAX: usize> Visitor<'de> for ListVisitor<T, MIN, MAX>
where
    T: Deserialize<'de>,
{
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut given: A) -> Result<Vec<T>, A::Error> {
        let wrong = || match MIN {
            0 => Error::custom(format_args!("must have at most {MAX} items")),
            _ => Error::custom(format_args!("must have {MIN} to {MAX} items")),
        };
        let mut items = Vec::new();
        while items.len() < MAX {
            match given.next_element()? {
                Some(item) => items.push(item),
                None if items.len() < MIN => return Err(wrong()),
                None => return Ok(items),
            }
        }
        match given.next_element::<serde::de::IgnoredAny>()? {
            Some(_) => Err(wrong()),
            None => Ok(items),
        }
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries))
    }
}
