//! The child's environment: what placement owns, what the policy lets through, what the request
//! supplies, and nothing else.

use crate::failed::Failed;
use crate::reserved::{ATTEMPT_MARKER, HOME, PATH, TERM, TMPDIR, is_reserved};
use camino::Utf8Path;
use placement_contract::{Code, EnvironmentName, EvidenceKind, LaunchRequest, Secret};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;

/// The environment of a child, sorted by name; prints names only.
pub struct Environment(BTreeMap<String, Secret>);

/// Where the values come from that placement does not make itself.
#[derive(Debug, Default)]
pub struct Values {
    /// What the launch policy lets through from the host's environment.
    pub passed: BTreeMap<EnvironmentName, String>,
    /// What the host resolved for the request's references.
    pub resolved: BTreeMap<EnvironmentName, Secret>,
}

/// The directories and the search path that placement owns.
pub(crate) struct Owned<'a> {
    pub(crate) search_path: &'a str,
    pub(crate) home: &'a Utf8Path,
    pub(crate) tmp: &'a Utf8Path,
}

/// Builds the environment; the later source wins, and placement's own names stand above all.
///
/// # Errors
/// `environment.refused` for a request that supplies a name of placement's, `environment.failed`
/// for a reference that the host did not resolve and for a value with a NUL. Both name the
/// variable, never its value.
pub(crate) fn build(
    request: &LaunchRequest,
    values: &Values,
    owned: &Owned<'_>,
) -> Result<Environment, Failed> {
    let mut all = BTreeMap::new();
    for (name, value) in values.passed.iter().filter(|(name, _)| !is_reserved(name)) {
        put(&mut all, name.as_str(), value.as_bytes())?;
    }
    for (name, value) in &request.environment {
        refuse_reserved(name)?;
        put(&mut all, name.as_str(), value.as_bytes())?;
    }
    for name in request.environment_refs.keys() {
        refuse_reserved(name)?;
        let value = values.resolved.get(name).ok_or_else(|| failed(name.as_str(), "is missing"))?;
        put(&mut all, name.as_str(), value.expose())?;
    }
    put(&mut all, PATH, owned.search_path.as_bytes())?;
    put(&mut all, HOME, owned.home.as_str().as_bytes())?;
    put(&mut all, TMPDIR, owned.tmp.as_str().as_bytes())?;
    if let Some(window) = &request.supervision.window {
        put(&mut all, TERM, window.term().as_bytes())?;
    }
    put(&mut all, ATTEMPT_MARKER, request.attempt_id.as_str().as_bytes())?;
    Ok(Environment(all))
}

fn put(all: &mut BTreeMap<String, Secret>, name: &str, value: &[u8]) -> Result<(), Failed> {
    if value.contains(&0) {
        return Err(failed(name, "has a NUL"));
    }
    all.insert(name.to_owned(), Secret::new(value.to_vec()));
    Ok(())
}

fn failed(name: &str, phrase: &str) -> Failed {
    let detail = format!("the value of {name} {phrase}");
    Failed::new(EvidenceKind::EnvironmentFailed, Code::Unavailable, detail)
}

fn refuse_reserved(name: &EnvironmentName) -> Result<(), Failed> {
    if !is_reserved(name) {
        return Ok(());
    }
    let detail = format!("{name} is set by placement and cannot be supplied");
    Err(Failed::new(EvidenceKind::EnvironmentRefused, Code::Invalid, detail))
}

impl Environment {
    /// Returns each name with its value, sorted by name; values have no NUL.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// Writes each pair as `NAME=value`, as `execve` takes them; these copies are not wiped.
    pub fn assignments(&self) -> Vec<CString> {
        let assignment = |(name, value): (&str, &[u8])| {
            let bytes = [name.as_bytes(), b"=", value].concat();
            CString::new(bytes).expect("names are plain and values were checked for NUL")
        };
        self.iter().map(assignment).collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}
