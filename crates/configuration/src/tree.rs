//! A document as its values, whatever its form and spelling.

use std::collections::BTreeMap;

/// One value. Tables keep the order in which they were written, which does not count when two are
/// compared.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    /// A text.
    Text(String),
    /// A number, a truth value, a date or nothing, as it is spelled.
    Scalar(String),
    /// A list.
    List(Vec<Tree>),
    /// A table; no name is in it twice.
    Table(Vec<(String, Tree)>),
}

impl Tree {
    /// Returns what a name leads to; `None` also where this is no table.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Table(entries) => {
                entries.iter().find(|(other, _)| other == name).map(|(_, value)| value)
            }
            Self::Text(_) | Self::Scalar(_) | Self::List(_) => None,
        }
    }

    /// Returns the entry of a name, made with an empty table where there is none; `None` where this is
    /// no table.
    pub(crate) fn enter(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Table(entries) = self else { return None };
        let place = entries.iter().position(|(other, _)| other == name).unwrap_or_else(|| {
            entries.push((name.to_owned(), Self::Table(Vec::new())));
            entries.len() - 1
        });
        Some(&mut entries[place].1)
    }

    /// Puts a value under a name, in the place of what is there; `None` where this is no table.
    pub(crate) fn put(&mut self, name: &str, value: Self) -> Option<()> {
        *self.enter(name)? = value;
        Some(())
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) | (Self::Scalar(one), Self::Scalar(two)) => {
                one == two
            }
            (Self::List(one), Self::List(two)) => one == two,
            (Self::Table(one), Self::Table(two)) => {
                one.len() == two.len() && by_name(one) == by_name(two)
            }
            (Self::Text(_) | Self::Scalar(_) | Self::List(_) | Self::Table(_), _) => false,
        }
    }
}

fn by_name(entries: &[(String, Tree)]) -> BTreeMap<&str, &Tree> {
    entries.iter().map(|(name, value)| (name.as_str(), value)).collect()
}
