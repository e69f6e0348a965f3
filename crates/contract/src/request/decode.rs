//! Exact decoding: serde reads the fields, this file checks what spans fields.

use super::exact::Given;
use super::worded::worded;
use super::{LaunchRequest, Limits, StdinMode};
use crate::error::{Code, Refusal};
use crate::limits::{
    ARGUMENTS_MAX, CPU_MILLIS_MAX, CPU_MILLIS_MIN, DEADLINE_MS_MAX, ENVIRONMENT_MAX,
    ENVIRONMENT_VALUE_BYTES_MAX, INTEGER_MAX, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN,
    MEMORY_SPOOL_BYTES_MAX, PIDS_MAX, REQUEST_BYTES_MAX, RESOURCES_MAX, SPOOL_BYTES_LIMIT,
    STDIN_BYTES_MAX,
};
use crate::request::Confine;
use crate::state::ExitObservation;
use serde::de::IgnoredAny;
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

pub(super) fn invalid(field: impl Into<String>, rule: impl Into<String>) -> DecodeError {
    DecodeError { code: Code::Invalid, field: field.into(), rule: rule.into() }
}

pub(super) fn unsupported(field: impl Into<String>) -> DecodeError {
    DecodeError {
        code: Code::Unsupported,
        field: field.into(),
        rule: "is not offered by this version".into(),
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<LaunchRequest, DecodeError> {
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(invalid("request", "is larger than 8 MiB"));
    }
    // Well-formed from the first to the last byte: what fails from here on is a field's fault.
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(|_| DecodeError::not_json())?;
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(invalid("request", "has the wrong type, expected an object"));
    }
    let request: LaunchRequest = read(bytes)?;
    check_resources(&request)?;
    check_launch(&request)?;
    check_environment(&request)?;
    check_supervision(&request)?;
    check_exit_observation(&request)?;
    read::<Given>(bytes)?.reads_back(&request)?;
    Ok(request)
}

fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, DecodeError> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(bytes))
        .map_err(|error| worded(&error.path().to_string(), &error.inner().to_string()))
}

fn check_launch(request: &LaunchRequest) -> Result<(), DecodeError> {
    let launch = &request.launch;
    let executable = launch.executable.as_str();
    if executable.is_empty() {
        return Err(invalid("launch.executable", "must not be empty"));
    }
    if !executable.starts_with('/')
        && (executable.contains('/') || matches!(executable, "." | ".."))
    {
        let rule = "must be an absolute path or a name without a slash";
        return Err(invalid("launch.executable", rule));
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
    if launch.stdin_eof && launch.session_end.is_some() {
        return Err(invalid("launch.session_end", "must be left out with launch.stdin_eof"));
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
    if supervision.deadline_ms.is_some_and(|ms| ms == 0 || ms > DEADLINE_MS_MAX) {
        return Err(invalid("supervision.deadline_ms", "must be 1 ms to 30 days"));
    }
    check_limits(&supervision.limits)?;
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

fn check_limits(limits: &Limits) -> Result<(), DecodeError> {
    let out_of = |value: Option<u64>, min, max| value.is_some_and(|it| !(min..=max).contains(&it));
    if out_of(limits.memory_bytes, MEMORY_BYTES_MIN, MEMORY_BYTES_MAX) {
        return Err(invalid("supervision.limits.memory_bytes", "must be 1 MiB to 16 TiB"));
    }
    if out_of(limits.pids, 1, PIDS_MAX) {
        return Err(invalid("supervision.limits.pids", "must be 1 to 4194304"));
    }
    if out_of(limits.cpu_millis, CPU_MILLIS_MIN, CPU_MILLIS_MAX) {
        return Err(invalid("supervision.limits.cpu_millis", "must be 10 to 8192000"));
    }
    Ok(())
}

/// A simple command may learn of its end by the end of its output; a driven session may not.
fn check_exit_observation(request: &LaunchRequest) -> Result<(), DecodeError> {
    let gated = request.required_exit_observation == ExitObservation::EofGated;
    if gated && request.launch.session_end.is_some() {
        let rule = "must be independent for what a driver plans";
        return Err(invalid("required_exit_observation", rule));
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
