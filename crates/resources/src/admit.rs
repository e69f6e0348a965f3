//! Admitting grants against the host's roots.

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{
    Access, Code, Purpose, Refusal, ResourceGrant, ResourceName, RootRef, Subpath,
};
use placement_paths::{
    PhysicalDir, ResolveError, WithinError, directory_within, resolve_directory,
};
use placement_policy::{Snapshot, check_session_root};
use serde::{Deserialize, Serialize};

/// A grant as it was admitted, for the receipt and for materialization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedGrant {
    /// The grant's name within the launch.
    pub name: ResourceName,
    /// The root that it lies in.
    pub root_ref: RootRef,
    /// The physical path of the root; placement's own one for a session.
    pub root: Utf8PathBuf,
    /// The directory below the root, as the request names it.
    pub subpath: Subpath,
    /// The physical path of the granted directory; the root's own where the subpath is empty, and the
    /// home that the launch gets for a session.
    pub directory: Utf8PathBuf,
    /// What is allowed.
    pub access: Access,
    /// What it is for.
    pub purpose: Purpose,
}

/// The home that a launch gets, which may not be there yet, and placement's root, in which it lies.
#[derive(Debug, Clone, Copy)]
pub struct OwnHome<'a> {
    /// The physical path of placement's root.
    pub root: &'a Utf8Path,
    /// The path of the home.
    pub home: &'a Utf8Path,
}

/// Admits every grant or none, and resolves each to a directory physically inside its root.
///
/// A grant for a session resolves to the launch's own home without a look at it: who makes the home
/// checks it.
///
/// # Errors
/// FORBIDDEN for a root that the host does not admit, for writing below a root that it admits for
/// reading, for a subpath that leads out of its root, and for a session on another root than the
/// reserved one; INVALID for what is not a directory that can be reached; UNAVAILABLE if the file system
/// did not answer. Names the grant, never a path.
pub fn admit(
    grants: &[ResourceGrant],
    snapshot: &Snapshot,
    own: OwnHome<'_>,
) -> Result<Vec<ResolvedGrant>, Refusal> {
    grants.iter().map(|grant| admit_one(grant, snapshot, own)).collect()
}

fn admit_one(
    grant: &ResourceGrant,
    snapshot: &Snapshot,
    own: OwnHome<'_>,
) -> Result<ResolvedGrant, Refusal> {
    if check_session_root(grant)? {
        return Ok(resolved(grant, own.root, own.home));
    }
    let refuse =
        |code, phrase: &str| Refusal::new(code, format!("the resource {} {phrase}", grant.name));
    let Some(admitted) = snapshot.root(&grant.root_ref) else {
        return Err(refuse(Code::Forbidden, "names a root that the host does not admit"));
    };
    if grant.access > admitted.access {
        return Err(refuse(Code::Forbidden, "asks to write below a root admitted for reading"));
    }
    let root = resolve_directory(&admitted.directory).map_err(|error| {
        let (code, phrase) = explain(&error);
        refuse(code, &format!("has a root that {phrase}"))
    })?;
    let directory = within(&root, &grant.subpath)
        .map_err(|(code, phrase)| refuse(code, &format!("has a subpath that {phrase}")))?;
    // By where it lies now: a link may have been put in its place since it was admitted.
    snapshot.check_use(directory.as_path(), grant.access).map_err(|refusal| Refusal {
        message: format!("the resource {} {}", grant.name, refusal.message),
        ..refusal
    })?;
    Ok(resolved(grant, root.as_path(), directory.as_path()))
}

fn resolved(grant: &ResourceGrant, root: &Utf8Path, directory: &Utf8Path) -> ResolvedGrant {
    ResolvedGrant {
        name: grant.name.clone(),
        root_ref: grant.root_ref.clone(),
        root: root.to_owned(),
        subpath: grant.subpath.clone(),
        directory: directory.to_owned(),
        access: grant.access,
        purpose: grant.purpose,
    }
}

fn within(root: &PhysicalDir, subpath: &Subpath) -> Result<PhysicalDir, (Code, &'static str)> {
    directory_within(root, subpath.as_str()).map_err(|error| match error {
        WithinError::Subpath(_) => (Code::Invalid, "is not a safe relative path"),
        WithinError::Escapes => (Code::Forbidden, "leads out of its root"),
        WithinError::Resolve(error) => explain(&error),
    })
}

fn explain(error: &ResolveError) -> (Code, &'static str) {
    match error {
        ResolveError::NotAbsolute => (Code::Invalid, "is not absolute"),
        ResolveError::TooLong => (Code::Invalid, "is too long"),
        ResolveError::ControlCharacter => (Code::Invalid, "has a control character"),
        ResolveError::NotUtf8 => (Code::Invalid, "is not UTF-8"),
        ResolveError::Missing => (Code::Invalid, "does not exist"),
        ResolveError::NotADirectory => (Code::Invalid, "is not a directory"),
        ResolveError::LinkLoop => (Code::Invalid, "has links that lead in a circle"),
        ResolveError::Denied => (Code::Invalid, "may not be examined by this user"),
        ResolveError::Io(_) => (Code::Unavailable, "could not be examined"),
    }
}
