//! Words a decoder's error: the field and the rule, never the value that the decoder may quote.

use super::decode::{DecodeError, invalid, unsupported};

/// Longest field path in an error, in bytes: it may hold a name that the caller made up.
const FIELD_BYTES_MAX: usize = 256;

/// Fields of the contract that this version refuses by name.
const LATER_FIELDS: &[&str] = &[
    "configuration_context",
    "configuration_digest",
    "gateway",
    "options",
    "placement_binding_digest",
    "placement_binding_ref",
    "placement_profile_digest",
    "placement_profile_ref",
    "preferences",
    "projections",
    "session_ref",
];
const LATER_LAUNCH_FIELDS: &[&str] = &["home_ref", "login", "provider_home", "required_files"];

/// Words an error of text that is well-formed JSON; `.` is the path of the request itself.
///
/// A decoder's text is `what it found, expected what it wants`, where the first half may quote the
/// value. So only the last half is read, and only phrases that are known are repeated.
pub(super) fn worded(path: &str, text: &str) -> DecodeError {
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
    let field = if path == "." { "request".to_owned() } else { bounded(path) };
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
    // The decoder counts the unknown field as a part of the path.
    let parent = path.strip_suffix(name).map_or(path, |parent| parent.trim_end_matches('.'));
    let later = match parent {
        "" => LATER_FIELDS,
        "launch" => LATER_LAUNCH_FIELDS,
        _ => &[],
    };
    let field = bounded(path);
    if later.contains(&name) {
        unsupported(field)
    } else {
        invalid(field, "is not a field of this object")
    }
}

fn wrong_type(expected: &str) -> &'static str {
    match expected {
        "a string" => "has the wrong type, expected a string",
        "a boolean" => "has the wrong type, expected a boolean",
        "u64" => "has the wrong type, expected a whole number",
        "a sequence" => "has the wrong type, expected a list",
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
