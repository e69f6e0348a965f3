//! Joining a delivered file with one that is there.

use crate::document::{DocumentError, text_of};
use crate::limits::NESTING_MAX;
use crate::tree::Tree;
use crate::{json, toml};
use placement_contract::delivery::{Composition, KeyPath, Operation, OperationKind};
use placement_contract::limits::COMPOSED_BYTES_MAX;

/// Why a file was not composed. Says nothing of what is in either document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// The file to compose with is not there.
    #[error("the base is missing")]
    MissingBase,
    /// The file to compose with cannot be used.
    #[error("the base cannot be used")]
    Base(#[source] DocumentError),
    /// What was delivered cannot be used.
    #[error("the content cannot be used")]
    Content(#[source] DocumentError),
    /// A copy has content, or the content has something that no operation names.
    #[error("the content has something outside the places that are composed")]
    OutsideContent,
    /// An operation names a place at which the content has nothing.
    #[error("the content has nothing at a place that is composed")]
    NothingAtPlace,
    /// What is there already differs from a default.
    #[error("the base has another value at a place with a default")]
    Differs,
    /// There is something already where something new is inserted.
    #[error("the base has something at a place that must be empty")]
    Occupied,
    /// One of both at a place that is lengthened is no list, or they do not go together.
    #[error("a place that is lengthened does not hold lists of one kind")]
    NotAList,
    /// The way to a place leads through something that is no table.
    #[error("the way to a place leads through something that is no table")]
    NotATable,
    /// The result is above the bound.
    #[error("the result is larger than {COMPOSED_BYTES_MAX} bytes")]
    ResultTooLarge,
    /// The changed text would not read as what was composed; nothing like it is known.
    #[error("the result does not read as what was composed")]
    NotTheSame,
}

/// Composes a file from what was delivered and from what is there.
///
/// An empty base is an empty document; a copy is the base to the byte. Of TOML the comments, the
/// order and the spelling of what is not changed are kept. Of JSON the order of the names and the
/// spelling of the numbers are kept; it is written without spaces, with a line feed at its end.
///
/// # Errors
/// [`ComposeError`], which holds nothing of either document.
pub fn compose(
    composition: &Composition,
    content: &str,
    base: Option<&[u8]>,
) -> Result<Vec<u8>, ComposeError> {
    let base = base.ok_or(ComposeError::MissingBase)?;
    if content.len() > COMPOSED_BYTES_MAX {
        return Err(ComposeError::Content(DocumentError::TooLarge));
    }
    let result = match composition {
        Composition::Copy { .. } => return copy(content, base),
        Composition::TomlInsert { path, .. } => {
            patch_toml(&[(OperationKind::Insert, path)], content, base)?
        }
        Composition::TomlPatch { operations, .. } => patch_toml(&steps(operations), content, base)?,
        Composition::JsonPatch { operations, .. } => patch_json(&steps(operations), content, base)?,
    };
    if result.len() > COMPOSED_BYTES_MAX {
        return Err(ComposeError::ResultTooLarge);
    }
    Ok(result.into_bytes())
}

/// What is done at which place.
type Step<'a> = (OperationKind, &'a KeyPath);

fn steps(operations: &[Operation]) -> Vec<Step<'_>> {
    operations.iter().map(|operation| (operation.kind, &operation.path)).collect()
}

fn copy(content: &str, base: &[u8]) -> Result<Vec<u8>, ComposeError> {
    if !content.is_empty() {
        return Err(ComposeError::OutsideContent);
    }
    if base.len() > COMPOSED_BYTES_MAX {
        return Err(ComposeError::Base(DocumentError::TooLarge));
    }
    Ok(base.to_vec())
}

fn patch_json(steps: &[Step<'_>], content: &str, base: &[u8]) -> Result<String, ComposeError> {
    let content = json::read(content, NESTING_MAX).map_err(ComposeError::Content)?;
    let mut result = match text_of(base).map_err(ComposeError::Base)? {
        "" => Tree::Table(Vec::new()),
        text => json::read(text, NESTING_MAX).map_err(ComposeError::Base)?,
    };
    apply(steps, &content, &mut result)?;
    Ok(json::write(&result))
}

fn patch_toml(steps: &[Step<'_>], content: &str, base: &[u8]) -> Result<String, ComposeError> {
    let source = toml::read(content).map_err(ComposeError::Content)?;
    let text = text_of(base).map_err(ComposeError::Base)?;
    let mut document = toml::read(text).map_err(ComposeError::Base)?;
    // The values decide; the text is then changed so that it says the same.
    let content = toml::tree_of(&source, NESTING_MAX).map_err(ComposeError::Content)?;
    let mut expected = toml::tree_of(&document, NESTING_MAX).map_err(ComposeError::Base)?;
    let done = apply(steps, &content, &mut expected)?;
    for ((_, path), done) in steps.iter().zip(done) {
        let names = names(path);
        let item = toml::find(&source, &names).ok_or(ComposeError::NothingAtPlace)?.clone();
        match done {
            Done::Kept => {}
            Done::Put => {
                toml::put(&mut document, &names, item).ok_or(ComposeError::NotATable)?;
            }
            Done::Lengthened => {
                toml::lengthen(&mut document, &names, item).ok_or(ComposeError::NotAList)?;
            }
        }
    }
    let result = document.to_string();
    let read = toml::read(&result).and_then(|read| toml::tree_of(&read, NESTING_MAX));
    if read != Ok(expected) {
        return Err(ComposeError::NotTheSame);
    }
    Ok(result)
}

/// What became of a place.
#[derive(Clone, Copy)]
enum Done {
    Kept,
    Put,
    Lengthened,
}

/// Applies every step to the values of the base, or refuses one of them.
fn apply(steps: &[Step<'_>], content: &Tree, base: &mut Tree) -> Result<Vec<Done>, ComposeError> {
    let Tree::Table(_) = content else {
        return Err(ComposeError::Content(DocumentError::NotATable));
    };
    let Tree::Table(_) = base else { return Err(ComposeError::Base(DocumentError::NotATable)) };
    refuse_outside(steps, content, &mut Vec::new())?;
    steps.iter().map(|(kind, path)| apply_one(*kind, &names(path), content, base)).collect()
}

fn apply_one(
    kind: OperationKind,
    names: &[&str],
    content: &Tree,
    base: &mut Tree,
) -> Result<Done, ComposeError> {
    let new = names.iter().try_fold(content, |tree, name| tree.get(name));
    let new = new.ok_or(ComposeError::NothingAtPlace)?;
    if kind == OperationKind::Append && !matches!(new, Tree::List(_)) {
        return Err(ComposeError::NotAList);
    }
    let (name, parents) = names.split_last().ok_or(ComposeError::NothingAtPlace)?;
    let parent = parents.iter().try_fold(base, |tree, name| tree.enter(name));
    let parent = parent.ok_or(ComposeError::NotATable)?;
    let Tree::Table(_) = parent else { return Err(ComposeError::NotATable) };
    match (kind, parent.get(name)) {
        (OperationKind::Default, Some(old)) if old == new => return Ok(Done::Kept),
        (OperationKind::Default, Some(_)) => return Err(ComposeError::Differs),
        (OperationKind::Insert, Some(_)) => return Err(ComposeError::Occupied),
        (OperationKind::Append, Some(Tree::List(old))) => {
            let Tree::List(more) = new else { return Err(ComposeError::NotAList) };
            let joined = Tree::List(old.iter().chain(more).cloned().collect());
            parent.put(name, joined).ok_or(ComposeError::NotATable)?;
            return Ok(Done::Lengthened);
        }
        (OperationKind::Append, Some(_)) => return Err(ComposeError::NotAList),
        (OperationKind::Set, _)
        | (OperationKind::Default | OperationKind::Insert | OperationKind::Append, None) => {}
    }
    parent.put(name, new.clone()).ok_or(ComposeError::NotATable)?;
    Ok(Done::Put)
}

/// Refuses content that no step names. A table on the way to a place may hold nothing else.
fn refuse_outside<'a>(
    steps: &[Step<'_>],
    tree: &'a Tree,
    place: &mut Vec<&'a str>,
) -> Result<(), ComposeError> {
    if steps.iter().any(|(_, path)| names(path) == *place) {
        return Ok(());
    }
    let on_the_way = steps.iter().any(|(_, path)| names(path).starts_with(place));
    let Tree::Table(entries) = tree else { return Err(ComposeError::OutsideContent) };
    if !on_the_way {
        return Err(ComposeError::OutsideContent);
    }
    for (name, value) in entries {
        place.push(name);
        refuse_outside(steps, value, place)?;
        place.pop();
    }
    Ok(())
}

fn names(path: &KeyPath) -> Vec<&str> {
    path.keys().iter().map(placement_contract::Line::as_str).collect()
}
