//! What must agree between the fields of a request, and the bounds that serde does not read.

use super::home::check_host_files;
use super::{Access, LaunchRequest, Limits, Purpose, StdinMode};
use crate::exact::{DecodeError, Exact, invalid};
use crate::limits::{
    CPU_MILLIS_MAX, CPU_MILLIS_MIN, DEADLINE_MS_MAX, ENVIRONMENT_VALUE_BYTES_MAX, MEMORY_BYTES_MAX,
    MEMORY_BYTES_MIN, MEMORY_SPOOL_BYTES_MAX, PIDS_MAX, REQUEST_BYTES_MAX, SPOOL_BYTES_LIMIT,
    STDIN_BYTES_MAX,
};
use crate::state::ExitObservation;
use std::collections::BTreeSet;

impl Exact for LaunchRequest {
    const NAME: &str = "request";
    const BYTES_MAX: usize = REQUEST_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        check_measured(self)?;
        check_resources(self)?;
        check_launch(self)?;
        check_home(self)?;
        check_environment(self)?;
        self.preferences.check()?;
        if let Some(gateway) = &self.gateway {
            gateway.check()?;
        }
        check_supervision(self)?;
        check_exit_observation(self)
    }
}

fn check_measured(request: &LaunchRequest) -> Result<(), DecodeError> {
    let pairs = [
        (
            "placement_binding",
            request.placement_binding_ref.is_some(),
            request.placement_binding_digest.is_some(),
        ),
        (
            "placement_profile",
            request.placement_profile_ref.is_some(),
            request.placement_profile_digest.is_some(),
        ),
    ];
    for (role, named, measured) in pairs {
        if named && !measured {
            return Err(invalid(format!("{role}_digest"), format!("is needed by {role}_ref")));
        }
        if measured && !named {
            return Err(invalid(format!("{role}_digest"), format!("needs {role}_ref")));
        }
    }
    Ok(())
}

fn check_resources(request: &LaunchRequest) -> Result<(), DecodeError> {
    let distinct: BTreeSet<_> = request.resources.iter().map(|grant| &grant.name).collect();
    if distinct.len() != request.resources.len() {
        return Err(invalid("resources", "must not use a name twice"));
    }
    Ok(())
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
    if launch.stdin.as_ref().is_some_and(|text| text.len() > STDIN_BYTES_MAX) {
        return Err(invalid("launch.stdin", "must be at most 65536 bytes"));
    }
    if launch.stdin_eof && launch.stdin.is_none() {
        return Err(invalid("launch.stdin_eof", "needs launch.stdin"));
    }
    if launch.stdin_eof && launch.session_end.is_some() {
        return Err(invalid("launch.session_end", "must be left out with launch.stdin_eof"));
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

fn check_home(request: &LaunchRequest) -> Result<(), DecodeError> {
    let launch = &request.launch;
    match &launch.home_ref {
        None if request.session_ref.is_some() => {
            return Err(invalid("session_ref", "needs launch.home_ref"));
        }
        None => (),
        Some(name) => match request.resources.iter().find(|grant| grant.name == *name) {
            None => return Err(invalid("launch.home_ref", "must name a resource")),
            Some(home) if home.purpose != Purpose::Session || home.access != Access::Write => {
                let rule = "must name a resource for a session with write access";
                return Err(invalid("launch.home_ref", rule));
            }
            Some(_) => (),
        },
    }
    check_host_files("launch.required_files", &launch.required_files)?;
    if let Some(login) = &launch.login {
        login.check()?;
    }
    match &launch.provider_home {
        Some(home) => home.check(),
        None => Ok(()),
    }
}

fn check_environment(request: &LaunchRequest) -> Result<(), DecodeError> {
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

fn check_supervision(request: &LaunchRequest) -> Result<(), DecodeError> {
    let supervision = &request.supervision;
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
    check_window(request)
}

/// A window is all of the child's streams, and placement says what kind of terminal it is.
fn check_window(request: &LaunchRequest) -> Result<(), DecodeError> {
    if request.supervision.window.is_none() {
        return Ok(());
    }
    let launch = &request.launch;
    let taken = [
        ("supervision.stdin", request.supervision.stdin == StdinMode::Pipe),
        ("launch.stdin", launch.stdin.is_some()),
        ("launch.session_end", launch.session_end.is_some()),
    ];
    if let Some((field, _)) = taken.iter().find(|(_, given)| *given) {
        return Err(invalid(*field, "must be left out with supervision.window"));
    }
    let names = request.environment.keys().chain(request.environment_refs.keys());
    if names.into_iter().any(|name| name.as_str() == "TERM") {
        return Err(invalid("environment.TERM", "must be left out with supervision.window"));
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
