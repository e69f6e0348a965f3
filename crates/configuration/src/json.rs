//! JSON as a tree, with its names in order and its numbers to the letter.
//!
//! `serde_json` says what is well-formed; what it accepted is then only cut into its pieces. Its own
//! tree would round numbers above 2^53, sort the names and keep the last of two equal ones.

use crate::document::DocumentError;
use crate::tree::Tree;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;

/// Reads a text; `nesting_max` bounds its lists and tables.
pub(crate) fn read(text: &str, nesting_max: usize) -> Result<Tree, DocumentError> {
    tree_of(well_formed(text)?, nesting_max)
}

/// Checks a text from its first to its last byte and returns its one value.
pub(crate) fn well_formed(text: &str) -> Result<&str, DocumentError> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|_| DocumentError::NotWellFormed)?;
    Ok(trimmed(text))
}

/// Returns the names of a well-formed object, each with its value; `None` for another value.
pub(crate) fn members(value: &str) -> Result<Option<Vec<(String, &str)>>, DocumentError> {
    let Some(inner) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Ok(None);
    };
    let mut members = Vec::new();
    let mut names = BTreeSet::new();
    for piece in pieces(inner) {
        let (name, rest) = piece.split_at(text_end(piece));
        let name = text(name)?;
        if !names.insert(name.clone()) {
            return Err(DocumentError::NameTwice);
        }
        let value = trimmed(rest).strip_prefix(':').ok_or(DocumentError::NotWellFormed)?;
        members.push((name, trimmed(value)));
    }
    Ok(Some(members))
}

/// Writes a tree without spaces, with a line feed at its end.
pub(crate) fn write(tree: &Tree) -> String {
    let mut out = String::new();
    write_value(tree, &mut out);
    out.push('\n');
    out
}

fn tree_of(value: &str, nesting_left: usize) -> Result<Tree, DocumentError> {
    if value.starts_with('"') {
        return text(value).map(Tree::Text);
    }
    if !value.starts_with(['{', '[']) {
        return Ok(Tree::Scalar(value.to_owned()));
    }
    let nesting_left = nesting_left.checked_sub(1).ok_or(DocumentError::TooDeep)?;
    if let Some(members) = members(value)? {
        let entries = members
            .into_iter()
            .map(|(name, value)| Ok((name, tree_of(value, nesting_left)?)))
            .collect::<Result<_, _>>()?;
        return Ok(Tree::Table(entries));
    }
    let items = pieces(&value[1..value.len() - 1]);
    items
        .into_iter()
        .map(|item| tree_of(item, nesting_left))
        .collect::<Result<_, _>>()
        .map(Tree::List)
}

/// Cuts what is between two brackets at the commas that belong to them.
fn pieces(inner: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth, mut place) = (0, 0_usize, 0);
    let bytes = inner.as_bytes();
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => {
                place += text_end(&inner[place..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                pieces.push(trimmed(&inner[start..place]));
                start = place + 1;
            }
            _ => {}
        }
        place += 1;
    }
    let last = trimmed(&inner[start..]);
    if !last.is_empty() {
        pieces.push(last);
    }
    pieces
}

/// Returns where a quoted text ends that begins here, its quotes included.
fn text_end(quoted: &str) -> usize {
    let bytes = quoted.as_bytes();
    let mut place = 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'"' => return place + 1,
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
    quoted.len()
}

/// Reads a quoted text; half of a surrogate pair is none.
fn text(quoted: &str) -> Result<String, DocumentError> {
    serde_json::from_str(quoted).map_err(|_| DocumentError::NotWellFormed)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn write_value(tree: &Tree, out: &mut String) {
    match tree {
        Tree::Text(text) => write_text(text, out),
        Tree::Scalar(text) => out.push_str(text),
        Tree::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                comma(index, out);
                write_value(item, out);
            }
            out.push(']');
        }
        Tree::Table(entries) => {
            out.push('{');
            for (index, (name, value)) in entries.iter().enumerate() {
                comma(index, out);
                write_text(name, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

fn comma(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a text has a form in JSON"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spelling_are_kept() {
        let text =
            r#" {"z" : [1.0, 9007199254740993, -0, 1E2 ,{}, [] ], "a,\"b" : {"c:}" :null}} "#;
        let tree = read(text, 64).unwrap();
        let expected = "{\"z\":[1.0,9007199254740993,-0,1E2,{},[]],\"a,\\\"b\":{\"c:}\":null}}\n";
        assert_eq!(write(&tree), expected);
    }

    #[test]
    fn a_text_that_ends_with_an_escape_ends_there() {
        let tree = read(r#"["\\","\"",","]"#, 64).unwrap();
        assert_eq!(tree, Tree::List(["\\", "\"", ","].map(|it| Tree::Text(it.into())).into()));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "{\"a\":1,}",
            "[1] 2",
            "{'a':1}",
            "// a\n{}",
            "\u{feff}{}",
            "\"\\ud800\"",
        ] {
            assert_eq!(read(text, 64), Err(DocumentError::NotWellFormed), "{text}");
        }
    }

    #[test]
    fn a_name_twice_is_refused_however_it_is_spelled() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"b":{"a":1,"a":1}}]"#] {
            assert_eq!(read(text, 64), Err(DocumentError::NameTwice), "{text}");
        }
    }

    #[test]
    fn the_bound_of_levels_is_exact() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&nested(3), 3).is_ok());
        assert_eq!(read(&nested(4), 3), Err(DocumentError::TooDeep));
        assert_eq!(read(&nested(60_000), 3), Err(DocumentError::TooDeep));
    }
}
