//! The private home, the retained one of a session, and the private temporary directory.

use crate::failed::Failed;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Code, EvidenceKind};
use placement_homes::{AttemptDir, Root, SessionKey, TemporaryDir};
use placement_paths::{Dir, RelativePath};
use std::error::Error;

/// A home, by its path and by its descriptor.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: Utf8PathBuf,
    pub(crate) directory: Dir,
}

/// Makes the home in the attempt's directory; one that is there already is never adopted.
pub(crate) fn make_home(attempt: &AttemptDir) -> Result<Home, Failed> {
    let path = attempt.create_home().map_err(|error| failed(&error))?;
    let name = path.file_name().unwrap_or_default();
    let name = RelativePath::parse_name(name).expect("the home's name is a fixed one");
    let directory = attempt.dir().open_dir(&name).map_err(|error| failed(&error))?;
    Ok(Home { path, directory: directory.with_role("home") })
}

/// Takes the retained home of a session, making it for the first attempt; says which of the two it was.
///
/// The intent made this attempt the only holder of the session.
pub(crate) fn attach_session(
    root: &Root,
    key: &SessionKey,
) -> Result<(Home, &'static str), Failed> {
    let session = root.session_home(key).map_err(|error| {
        let kind = EvidenceKind::SessionFailed;
        Failed::new(kind, Code::Unavailable, error.to_string()).because(&error)
    })?;
    let detail = if session.is_new() { "a new retained home" } else { "the retained home" };
    let path = session.path().to_owned();
    Ok((Home { path, directory: session.into_dir().with_role("home") }, detail))
}

/// Makes the temporary directory below the base, or in the attempt's directory without one.
pub(crate) fn make_temporary(
    base: Option<&Utf8Path>,
    attempt: &AttemptDir,
) -> Result<TemporaryDir, Failed> {
    // An empty path names no directory, and a base that is none is passed over.
    let base = base.unwrap_or(Utf8Path::new(""));
    TemporaryDir::create(base, attempt).map_err(|error| failed(&error))
}

fn failed(error: &(dyn Error + 'static)) -> Failed {
    Failed::new(EvidenceKind::HomeFailed, Code::Unavailable, error.to_string()).because(error)
}
