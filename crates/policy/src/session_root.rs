//! The reserved root of retained homes.

use placement_contract::{Code, Purpose, Refusal, ResourceGrant, RootRef};

/// The root of sessions' retained homes: a directory of placement's own, which every host admits for
/// the purpose `session` and for nothing else. No admitted directory has this name.
pub const SESSION_ROOT: &str = "placement:sessions";

/// Says whether a root is the one of retained homes.
pub fn is_session_root(root_ref: &RootRef) -> bool {
    root_ref.as_str() == SESSION_ROOT
}

/// Says whether a grant is one on the root of retained homes, and so needs no admitted directory.
///
/// # Errors
/// FORBIDDEN for a session on a directory of the caller's, and for another purpose on this root;
/// INVALID for a subpath of it: which home it is follows from the session alone.
pub fn check_session_root(grant: &ResourceGrant) -> Result<bool, Refusal> {
    let refuse =
        |code, phrase: &str| Refusal::new(code, format!("the resource {} {phrase}", grant.name));
    match (is_session_root(&grant.root_ref), grant.purpose) {
        (false, Purpose::Project | Purpose::Output | Purpose::Cache) => Ok(false),
        (false, Purpose::Session) => {
            Err(refuse(Code::Forbidden, "is for a session and names another root").with_hint(
                format!("name the root {SESSION_ROOT}; placement keeps sessions' homes"),
            ))
        }
        (true, Purpose::Project | Purpose::Output | Purpose::Cache) => {
            Err(refuse(Code::Forbidden, "names the root of sessions and is not for one"))
        }
        (true, Purpose::Session) if grant.subpath.as_str().is_empty() => Ok(true),
        (true, Purpose::Session) => {
            Err(refuse(Code::Invalid, "names the root of sessions with a subpath"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;
    use placement_contract::Access;
    use serde_json::json;

    fn checked(root: &str, subpath: &str, purpose: &str) -> Result<bool, Code> {
        let grant = serde_json::from_value(json!({
            "name": "home", "grant_ref": "g", "root_ref": root, "subpath": subpath,
            "access": "write", "purpose": purpose,
        }));
        check_session_root(&grant.unwrap()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn the_root_is_for_sessions_and_sessions_are_on_it() {
        assert_eq!(checked(SESSION_ROOT, "", "session"), Ok(true));
        assert_eq!(checked("dir:0", "", "session"), Err(Code::Forbidden));
        for purpose in ["project", "output", "cache"] {
            assert_eq!(checked("dir:0", "", purpose), Ok(false));
            assert_eq!(checked(SESSION_ROOT, "", purpose), Err(Code::Forbidden));
        }
    }

    #[test]
    fn a_session_is_no_part_of_another() {
        assert_eq!(checked(SESSION_ROOT, "other", "session"), Err(Code::Invalid));
    }

    #[test]
    fn no_directory_is_admitted_under_its_name() {
        let mut snapshot = Snapshot::embedded();
        let name = snapshot.admit(format!("/{SESSION_ROOT}"), Access::Write).unwrap();
        assert!(!is_session_root(&name));
        assert_eq!(snapshot.root(&RootRef::parse(SESSION_ROOT).unwrap()), None);
    }
}
