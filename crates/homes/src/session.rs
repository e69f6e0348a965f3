//! The retained home of a session: made on demand, checked each time, never removed.

use camino::{Utf8Path, Utf8PathBuf};
use placement_paths::{
    CreateError, Dir, IoFailure, OpenError, PrivateDir, PrivateError, ResolveError,
};

use crate::attempt::{HOME, fixed_name};
use crate::key::SessionKey;
use crate::root::Root;

const SESSIONS: &str = "sessions";
const DIRECTORY_MODE: u32 = 0o700;

/// The retained home of one session, held by descriptor: `<root>/sessions/<key>/home`.
///
/// Every directory on the way was found to be one, of this user and closed to others. What lies in
/// it is the launched programs' own, which run as this user: the next look may find it otherwise.
#[derive(Debug)]
pub struct SessionHome {
    home: PrivateDir,
    path: Utf8PathBuf,
    is_new: bool,
}

/// Why the retained home of a session cannot be used.
///
/// No link is followed on the way to it.
#[derive(Debug, thiserror::Error)]
pub enum SessionHomeError {
    /// A directory on the way is not ours alone, or cannot be opened.
    #[error(transparent)]
    Private(PrivateError),
    /// Something else stands in its place.
    #[error(transparent)]
    Open(OpenError),
    /// It could not be created.
    #[error(transparent)]
    Create(CreateError),
    /// What was created could not be made durable.
    #[error(transparent)]
    Sync(IoFailure),
    /// Its physical path cannot be told or is not UTF-8.
    #[error("the path of the session home cannot be used")]
    Path(#[source] ResolveError),
}

impl SessionHome {
    /// Returns the directory.
    pub fn dir(&self) -> &PrivateDir {
        &self.home
    }

    /// Returns its physical path.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Says whether it was made now.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Gives the directory away, without what was proven of it.
    pub fn into_dir(self) -> Dir {
        self.home.into_dir()
    }
}

impl Root {
    /// Returns where the retained home of a session is, or would be.
    pub fn session_home_path(&self, key: &SessionKey) -> Utf8PathBuf {
        self.path().join(SESSIONS).join(key.as_str()).join(HOME)
    }

    /// Looks at the retained home of a session, `None` when there is none; makes nothing.
    ///
    /// # Errors
    /// As [`Root::session_home`], but for what creating meets.
    pub fn find_session_home(
        &self,
        key: &SessionKey,
    ) -> Result<Option<SessionHome>, SessionHomeError> {
        let Some(sessions) = find(self.dir(), SESSIONS, "sessions")? else { return Ok(None) };
        let Some(session) = find(&sessions, key.as_str(), "session")? else { return Ok(None) };
        let Some(home) = find(&session, HOME, "session home")? else { return Ok(None) };
        let path = home.path().map_err(SessionHomeError::Path)?;
        Ok(Some(SessionHome { home, path, is_new: false }))
    }

    /// Opens the retained home of a session, making what is missing with mode 0700.
    ///
    /// What was made survives power loss. Meant for the one holder of the session; several sessions
    /// may be made at once.
    ///
    /// # Errors
    /// [`SessionHomeError`] where a link, something else than a directory, another user's directory
    /// or one that is open to others stands on the way. What is there is never changed.
    pub fn session_home(&self, key: &SessionKey) -> Result<SessionHome, SessionHomeError> {
        let (sessions, _) = find_or_make(self.dir(), SESSIONS, "sessions")?;
        let (session, _) = find_or_make(&sessions, key.as_str(), "session")?;
        let (home, is_new) = find_or_make(&session, HOME, "session home")?;
        let path = home.path().map_err(SessionHomeError::Path)?;
        Ok(SessionHome { home, path, is_new })
    }
}

fn find(
    parent: &Dir,
    name: &str,
    role: &'static str,
) -> Result<Option<PrivateDir>, SessionHomeError> {
    match parent.open_dir(&fixed_name(name)) {
        Ok(directory) => checked(directory, role).map(Some),
        Err(OpenError::Missing { .. }) => Ok(None),
        Err(error) => Err(SessionHomeError::Open(error)),
    }
}

fn find_or_make(
    parent: &Dir,
    name: &str,
    role: &'static str,
) -> Result<(PrivateDir, bool), SessionHomeError> {
    if let Some(found) = find(parent, name, role)? {
        return Ok((found, false));
    }
    // Another session may be made at once: its directory serves as well, and is checked like any.
    let made =
        parent.ensure_dir(&fixed_name(name), DIRECTORY_MODE).map_err(SessionHomeError::Create)?;
    parent.sync().map_err(SessionHomeError::Sync)?;
    Ok((checked(made, role)?, true))
}

fn checked(directory: Dir, role: &'static str) -> Result<PrivateDir, SessionHomeError> {
    PrivateDir::check(directory.with_role(role)).map_err(SessionHomeError::Private)
}
