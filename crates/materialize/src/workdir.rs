//! The working directory: a grant's directory, or the home.

use crate::failed::Failed;
use placement_contract::{Code, EvidenceKind, LaunchRequest, Purpose};
use placement_paths::Dir;
use placement_resources::{ReopenError, ResolvedGrant, reopen};

/// Opens the granted working directory; the home where the launch names none, and where the grant is
/// the home's own.
///
/// # Errors
/// `workdir.failed` if the grant is not recorded, or its directory is not the one it was.
pub(crate) fn open(
    request: &LaunchRequest,
    grants: &[ResolvedGrant],
    home: &Dir,
) -> Result<Dir, Failed> {
    let failed = |code, detail: String| Failed::new(EvidenceKind::WorkdirFailed, code, detail);
    let own_home = || {
        home.try_clone().map_err(|error| {
            failed(Code::Unavailable, "the home cannot be opened again".into()).because(&error)
        })
    };
    let Some(name) = &request.launch.working_directory_ref else { return own_home() };
    let grant = grants.iter().find(|grant| grant.name == *name).ok_or_else(|| {
        failed(Code::Storage, format!("the grant {name} is not among the recorded ones"))
    })?;
    // Only placement's own home is admitted for a session, and it is held already.
    if grant.purpose == Purpose::Session {
        return own_home();
    }
    reopen(grant).map_err(|error| {
        let code = match error {
            ReopenError::Escapes | ReopenError::Moved => Code::Forbidden,
            ReopenError::Resolve(_) | ReopenError::Open(_) => Code::Unavailable,
        };
        failed(code, format!("{name}: {error}")).because(&error)
    })
}
