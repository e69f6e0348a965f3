//! Exact decoding: serde reads the fields, this file checks what spans fields and words the error.

use super::{LaunchRequest, StdinMode};
use crate::error::{Code, Refusal};
use crate::limits::{
    ARGUMENTS_MAX, DEADLINE_MS_MAX, ENVIRONMENT_MAX, ENVIRONMENT_VALUE_BYTES_MAX, INTEGER_MAX,
    MEMORY_SPOOL_BYTES_MAX, REQUEST_BYTES_MAX, RESOURCES_MAX, SPOOL_BYTES_LIMIT, STDIN_BYTES_MAX,
};
use crate::request::Confine;
use crate::state::Mechanism;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;

/// Why a request is refused: the field and the rule, never the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct DecodeError {
    /// INVALID, or UNSUPPORTED for what this version does not offer.
    pub code: Code,
    /// The field, as a path such as `launch.argv[3]`.
    pub field: String,
    /// The rule that it breaks, in a fixed phrase.
    pub rule: String,
}

impl DecodeError {
    pub(super) fn not_json() -> Self {
        invalid("request", "is not a JSON object of a launch request")
    }
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        Self::new(error.code, error.to_string())
    }
}

fn invalid(field: impl Into<String>, rule: impl Into<String>) -> DecodeError {
    DecodeError { code: Code::Invalid, field: field.into(), rule: rule.into() }
}

fn unsupported(field: impl Into<String>) -> DecodeError {
    DecodeError {
        code: Code::Unsupported,
        field: field.into(),
        rule: "is not offered by this version".into(),
    }
}

/// Fields of the contract that this version refuses by name.
const LATER_FIELDS: &[&str] = &[
    "configuration_context",
    "configuration_digest",
    "executable",
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
const LATER_LAUNCH_FIELDS: &[&str] =
    &["home_ref", "login", "provider_home", "required_files", "session_end"];
const LATER_SUPERVISION_FIELDS: &[&str] = &["limits"];

pub(super) fn decode(bytes: &[u8]) -> Result<LaunchRequest, DecodeError> {
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(invalid("request", "is larger than 8 MiB"));
    }
    let deserializer = &mut serde_json::Deserializer::from_slice(bytes);
    let request: LaunchRequest = serde_path_to_error::deserialize(deserializer)
        .map_err(|error| worded(&error.path().to_string(), &error.inner().to_string()))?;
    check_trailing(bytes)?;
    check_launch(&request)?;
    check_environment(&request)?;
    check_resources(&request)?;
    check_supervision(&request)?;
    Ok(request)
}

/// Words a decoder's error without the value that it may quote.
fn worded(path: &str, text: &str) -> DecodeError {
    let text = text.split(" at line ").next().unwrap_or(text);
    let join = |name: &str| {
        if path == "." { name.to_owned() } else { format!("{path}.{name}") }
    };
    let quoted = |rest: &str| rest.split('`').nth(1).unwrap_or_default().to_owned();
    if text.starts_with("unknown field") {
        let name = quoted(text);
        let parent = path.strip_suffix(&name).and_then(|p| p.strip_suffix('.')).unwrap_or(path);
        let later = match parent {
            "" | "." => LATER_FIELDS,
            "launch" => LATER_LAUNCH_FIELDS,
            "supervision" => LATER_SUPERVISION_FIELDS,
            _ => &[],
        };
        let field = if path.ends_with(&name) { path.to_owned() } else { join(&name) };
        return if later.contains(&name.as_str()) {
            unsupported(field)
        } else {
            invalid(field, "is not a field of this object")
        };
    }
    if text.starts_with("missing field") {
        return invalid(join(&quoted(text)), "is missing");
    }
    if text.starts_with("duplicate field") {
        return invalid(join(&quoted(text)), "is given twice");
    }
    let field = if path == "." { "request" } else { path };
    if text.starts_with("unknown variant") {
        let known = text.split_once(", expected ").map_or("", |(_, known)| known);
        return invalid(field, format!("must be {}", known.replace('`', "")));
    }
    if text.starts_with("invalid type") || text.starts_with("invalid value") {
        let expected = text.rsplit_once(", expected ").map_or("another type", |(_, e)| e);
        return invalid(field, format!("has the wrong type, expected {expected}"));
    }
    if text.starts_with("must ") {
        return invalid(field, text);
    }
    DecodeError::not_json()
}

fn check_trailing(bytes: &[u8]) -> Result<(), DecodeError> {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
        .map(|_| ())
        .map_err(|_| DecodeError::not_json())
}

fn check_launch(request: &LaunchRequest) -> Result<(), DecodeError> {
    let launch = &request.launch;
    if launch.executable.as_str().is_empty() {
        return Err(invalid("launch.executable", "must not be empty"));
    }
    if launch.argv.len() > ARGUMENTS_MAX {
        return Err(invalid("launch.argv", "must have at most 128 items"));
    }
    if launch.stdin.as_ref().is_some_and(|text| text.len() > STDIN_BYTES_MAX) {
        return Err(invalid("launch.stdin", "must be at most 65536 bytes"));
    }
    if launch.stdin_eof && launch.stdin.is_none() {
        return Err(invalid("launch.stdin_eof", "needs launch.stdin"));
    }
    if launch.readiness.is_empty() || launch.readiness.len() > 256 {
        return Err(invalid("launch.readiness", "must be 1 to 256 bytes"));
    }
    if launch.environment.len() > ENVIRONMENT_MAX {
        return Err(invalid("launch.environment", "must have at most 64 items"));
    }
    let distinct: BTreeSet<_> = launch.environment.iter().collect();
    if distinct.len() != launch.environment.len() {
        return Err(invalid("launch.environment", "must not name a variable twice"));
    }
    if let Some(name) = &launch.working_directory_ref
        && !request.resources.iter().any(|grant| grant.name == *name)
    {
        return Err(invalid("launch.working_directory_ref", "must name a resource"));
    }
    Ok(())
}

fn check_environment(request: &LaunchRequest) -> Result<(), DecodeError> {
    if request.environment.len() > ENVIRONMENT_MAX {
        return Err(invalid("environment", "must have at most 64 names"));
    }
    if request.environment_refs.len() > ENVIRONMENT_MAX {
        return Err(invalid("environment_refs", "must have at most 64 names"));
    }
    for (name, value) in &request.environment {
        if value.len() > ENVIRONMENT_VALUE_BYTES_MAX || value.contains('\0') {
            let rule = "must be at most 16384 bytes without NUL";
            return Err(invalid(format!("environment.{name}"), rule));
        }
        if request.environment_refs.contains_key(name) {
            let rule = "must not be in environment and environment_refs";
            return Err(invalid(format!("environment.{name}"), rule));
        }
    }
    for name in &request.launch.environment {
        let supplied =
            request.environment.contains_key(name) || request.environment_refs.contains_key(name);
        if !supplied {
            return Err(invalid(format!("environment.{name}"), "is needed by the launch"));
        }
    }
    Ok(())
}

fn check_resources(request: &LaunchRequest) -> Result<(), DecodeError> {
    if request.resources.len() > RESOURCES_MAX {
        return Err(invalid("resources", "must have at most 16 items"));
    }
    let distinct: BTreeSet<_> = request.resources.iter().map(|grant| &grant.name).collect();
    if distinct.len() != request.resources.len() {
        return Err(invalid("resources", "must not use a name twice"));
    }
    Ok(())
}

fn check_supervision(request: &LaunchRequest) -> Result<(), DecodeError> {
    let supervision = &request.supervision;
    if supervision.confine == Confine::WriteRoots {
        return Err(unsupported("supervision.confine"));
    }
    if supervision.mechanism == Some(Mechanism::PidNamespace) {
        return Err(unsupported("supervision.mechanism"));
    }
    if supervision.deadline_ms.is_some_and(|ms| ms == 0 || ms > DEADLINE_MS_MAX) {
        return Err(invalid("supervision.deadline_ms", "must be 1 ms to 30 days"));
    }
    let spool = supervision.spool_bytes_max;
    if spool != 0 && !(MEMORY_SPOOL_BYTES_MAX..=SPOOL_BYTES_LIMIT).contains(&spool) {
        return Err(invalid("supervision.spool_bytes_max", "must be 0 or 256 KiB to 16 GiB"));
    }
    if supervision.transcript_bytes_max > SPOOL_BYTES_LIMIT {
        return Err(invalid("supervision.transcript_bytes_max", "must be at most 16 GiB"));
    }
    if supervision.stdin == StdinMode::Pipe && request.launch.stdin_eof {
        return Err(invalid("supervision.stdin", "must be none when launch.stdin_eof closes it"));
    }
    Ok(())
}

pub(super) fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = u64::deserialize(deserializer)?;
    if (1..=INTEGER_MAX).contains(&value) {
        Ok(value)
    } else {
        Err(serde::de::Error::custom("must be a whole number of at least 1"))
    }
}
