//! Words a decoder's error: the field and the rule, never the value that the decoder may quote.

use super::error::{DecodeError, invalid};

/// Longest field path in an error, in bytes: it may hold a name that the caller made up.
const FIELD_BYTES_MAX: usize = 256;

/// Words an error of text that is well-formed JSON; `.` is the path of the whole value.
///
/// A decoder's text is `what it found, expected what it wants`, where the first half may quote the
/// value. So only the last half is read, and only phrases that are known are repeated.
pub(super) fn worded(whole: &str, path: &str, text: &str) -> DecodeError {
    let text = text.rfind(" at line ").map_or(text, |end| &text[..end]);
    if text.starts_with("unknown field") {
        return unknown_field(path, name_in(text));
    }
    if text.starts_with("missing field") {
        return invalid(joined(path, name_in(text)), "is missing");
    }
    if text.starts_with("duplicate field") {
        return invalid(joined(path, name_in(text)), "is given twice");
    }
    let field = if path == "." { whole.to_owned() } else { bounded(path) };
    if text.starts_with("must ") {
        return invalid(field, text);
    }
    let expected = text.rsplit_once(", expected ").map_or("", |(_, expected)| expected);
    if text.starts_with("unknown variant") {
        return invalid(field, format!("must be {}", expected.replace('`', "")));
    }
    invalid(field, wrong_type(expected))
}

fn unknown_field(path: &str, name: &str) -> DecodeError {
    // A struct's decoder counts the unknown field as a part of the path, others do not.
    let counted =
        path.strip_suffix(name).is_some_and(|parent| matches!(parent, "") || parent.ends_with('.'));
    let field = if counted { bounded(path) } else { joined(path, name) };
    invalid(field, "is not a field of this object")
}

fn wrong_type(expected: &str) -> &'static str {
    match expected {
        "a string" => "has the wrong type, expected a string",
        "a boolean" => "has the wrong type, expected a boolean",
        "u64" => "has the wrong type, expected a whole number",
        "a sequence" => "has the wrong type, expected a list",
        "a text, a number or a boolean" => {
            "has the wrong type, expected a text, a number or a boolean"
        }
        "a map" => "has the wrong type, expected an object",
        _ if expected.starts_with("struct ") => "has the wrong type, expected an object",
        _ => "has the wrong type",
    }
}

/// Returns the name that an error puts in backticks; a name may hold some itself.
fn name_in(text: &str) -> &str {
    let quoted = text.rsplit_once(", expected ").map_or(text, |(found, _)| found);
    let quoted = quoted.split_once('`').map_or("", |(_, rest)| rest);
    quoted.rsplit_once('`').map_or(quoted, |(name, _)| name)
}

/// Appends a name to a path.
pub(super) fn joined(path: &str, name: &str) -> String {
    match path {
        "." | "" => bounded(name),
        _ => bounded(&format!("{path}.{name}")),
    }
}

fn bounded(field: &str) -> String {
    let mut field: String =
        field.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    crate::error::truncate_at_char(&mut field, FIELD_BYTES_MAX);
    field
}
