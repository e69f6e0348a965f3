//! TOML as a tree, and the changes of its text that leave the rest of it as it was written.

use crate::document::DocumentError;
use crate::tree::Tree;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

/// Reads a text with everything that belongs to its writing.
pub(crate) fn read(text: &str) -> Result<DocumentMut, DocumentError> {
    text.parse().map_err(|_| DocumentError::NotWellFormed)
}

/// Returns the values of a document; `nesting_max` bounds its lists and tables.
pub(crate) fn tree_of(document: &DocumentMut, nesting_max: usize) -> Result<Tree, DocumentError> {
    tree_of_table(document.as_table(), nesting_max)
}

fn tree_of_table(table: &dyn TableLike, nesting_left: usize) -> Result<Tree, DocumentError> {
    let nesting_left = below(nesting_left)?;
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let value = match item {
            Item::None => continue,
            Item::Value(value) => tree_of_value(value, nesting_left)?,
            Item::Table(table) => tree_of_table(table, nesting_left)?,
            Item::ArrayOfTables(tables) => {
                let nesting_left = below(nesting_left)?;
                let items = tables.iter().map(|table| tree_of_table(table, nesting_left));
                Tree::List(items.collect::<Result<_, _>>()?)
            }
        };
        entries.push((name.to_owned(), value));
    }
    Ok(Tree::Table(entries))
}

fn tree_of_value(value: &Value, nesting_left: usize) -> Result<Tree, DocumentError> {
    Ok(match value {
        Value::String(text) => Tree::Text(text.value().clone()),
        Value::Integer(number) => Tree::Scalar(number.value().to_string()),
        // Written with its point, so that none passes for an integer.
        Value::Float(number) => Tree::Scalar(format!("{:?}", number.value())),
        Value::Boolean(truth) => Tree::Scalar(truth.value().to_string()),
        Value::Datetime(moment) => Tree::Scalar(moment.value().to_string()),
        Value::Array(items) => {
            let nesting_left = below(nesting_left)?;
            let items = items.iter().map(|item| tree_of_value(item, nesting_left));
            Tree::List(items.collect::<Result<_, _>>()?)
        }
        Value::InlineTable(table) => tree_of_table(table, nesting_left)?,
    })
}

fn below(nesting_left: usize) -> Result<usize, DocumentError> {
    nesting_left.checked_sub(1).ok_or(DocumentError::TooDeep)
}

/// Returns what a path of names leads to.
pub(crate) fn find<'a>(document: &'a DocumentMut, names: &[&str]) -> Option<&'a Item> {
    names.iter().try_fold(document.as_item(), |item, name| item.as_table_like()?.get(name))
}

/// Puts an item at a place, making the tables on the way; `None` where one of those is no table.
///
/// New tables stand behind all others, in the order in which they were written. What lies in an
/// inline table or behind a dotted name is written inline, as nothing else may be there.
pub(crate) fn put(document: &mut DocumentMut, names: &[&str], item: Item) -> Option<()> {
    let behind = last_position(document.as_table()).map_or(0, |last| last + 1);
    let first = document.as_table().is_empty();
    let (name, parents) = names.split_last()?;
    let mut inline = false;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for parent in parents {
        if !table.contains_key(parent) {
            table.insert(parent, passage(inline));
        }
        let next = table.get_mut(parent)?;
        inline |= next.is_inline_table() || next.as_table().is_some_and(Table::is_dotted);
        table = next.as_table_like_mut()?;
    }
    let item = if inline { Item::Value(item.into_value().ok()?) } else { item };
    match (table.get_mut(name), item) {
        (Some(Item::Value(old)), Item::Value(new)) => replace_value(old, new),
        (Some(Item::Table(old)), Item::Table(mut new)) if !old.is_dotted() => {
            let position = old.position().unwrap_or(behind);
            *new.decor_mut() = old.decor().clone();
            stand_at(&mut new, position);
            *old = new;
        }
        (_, item) => {
            table.remove(name);
            table.insert(name, placed(item, behind, first));
        }
    }
    Some(())
}

/// Lengthens the list at a place by the items of another one; `None` where both do not go together.
pub(crate) fn lengthen(document: &mut DocumentMut, names: &[&str], item: Item) -> Option<()> {
    let behind = last_position(document.as_table()).map_or(0, |last| last + 1);
    let mut list = document.as_item_mut();
    for name in names {
        list = list.as_table_like_mut()?.get_mut(name)?;
    }
    match list {
        Item::ArrayOfTables(tables) => {
            for mut table in tables_of(item)? {
                stand_at(&mut table, behind);
                tables.push(table);
            }
        }
        Item::Value(Value::Array(items)) => {
            let Ok(Value::Array(more)) = item.into_value() else { return None };
            // As the last one stands, unless there is more than space before it.
            let before = items.iter().last().and_then(|last| last.decor().prefix()?.as_str());
            let before = before.filter(|text| !text.is_empty() && text.trim().is_empty());
            let (empty, before) = (items.is_empty(), before.unwrap_or(" ").to_owned());
            for (index, value) in more.into_iter().enumerate() {
                let before = if empty && index == 0 { "" } else { before.as_str() };
                items.push_formatted(value.decorated(before, ""));
            }
        }
        Item::None | Item::Value(_) | Item::Table(_) => return None,
    }
    Some(())
}

/// Makes a table that is only passed through.
fn passage(inline: bool) -> Item {
    if inline {
        return toml_edit::value(toml_edit::InlineTable::new());
    }
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Replaces a value and keeps what was written around it.
fn replace_value(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

/// Makes an item one that can stand in a document which it was not written for.
fn placed(mut item: Item, position: isize, first: bool) -> Item {
    match &mut item {
        Item::None => {}
        Item::Value(value) => value.decor_mut().clear(),
        Item::Table(table) => {
            head(table, first);
            stand_at(table, position);
        }
        Item::ArrayOfTables(tables) => {
            for (index, table) in tables.iter_mut().enumerate() {
                head(table, first && index == 0);
                stand_at(table, position);
            }
        }
    }
    item
}

/// Sets a table apart from what is before it.
fn head(table: &mut Table, first: bool) {
    table.decor_mut().clear();
    if first {
        table.decor_mut().set_prefix("");
    }
}

/// Gives a table and those in it one position, at which they keep their order, and headers of their
/// own.
fn stand_at(table: &mut Table, position: isize) {
    table.set_dotted(false);
    table.set_position(Some(position));
    for (_, item) in table.iter_mut() {
        match item {
            Item::None | Item::Value(_) => {}
            Item::Table(table) => stand_at(table, position),
            Item::ArrayOfTables(tables) => {
                tables.iter_mut().for_each(|table| stand_at(table, position));
            }
        }
    }
}

fn last_position(table: &Table) -> Option<isize> {
    let inner = table.iter().filter_map(|(_, item)| match item {
        Item::None | Item::Value(_) => None,
        Item::Table(table) => last_position(table),
        Item::ArrayOfTables(tables) => tables.iter().filter_map(last_position).max(),
    });
    inner.max().max(table.position())
}

fn tables_of(item: Item) -> Option<ArrayOfTables> {
    match item {
        Item::ArrayOfTables(tables) => Some(tables),
        Item::Value(Value::Array(items)) => items
            .into_iter()
            .map(|item| Some(item.as_inline_table()?.clone().into_table()))
            .collect(),
        Item::None | Item::Value(_) | Item::Table(_) => None,
    }
}
