//! Taking over a root that was moved here from another machine.

use crate::places::{refuse_root, with_errno};
use crate::refusal::{conflict, unavailable};
use camino::Utf8Path;
use placement_contract::Refusal;
use placement_homes::{Root, RunnerAlive};
use placement_store::{Adopted, OpenError, StorePaths};

/// Binds a root to this machine, on the word of whoever moved it; durable.
///
/// Attempts that lived on the other machine cannot be observed from here: the next reconcile makes
/// them uncertain, and an operator's word settles them. A root of this machine is left as it is.
///
/// # Errors
/// CONFLICT where a runner of this machine lives in the root; INVALID and STORAGE for a root or a
/// store that cannot be used; UNAVAILABLE where it cannot be told whether a runner lives.
pub fn adopt_root(root: &Utf8Path) -> Result<Adopted, Refusal> {
    // Before the root is opened, which makes one where there is none.
    if !StorePaths::below(root).database.exists() {
        return Err(OpenError::Missing.into());
    }
    let root = Root::open(root).map_err(|error| refuse_root(&error))?;
    let paths = StorePaths::below(root.path());
    placement_store::adopt(&paths, || nothing_lives_in(&root))
}

fn nothing_lives_in(root: &Root) -> Result<(), Refusal> {
    for key in root.attempt_keys().map_err(|error| unavailable(with_errno(&error)))? {
        let directory = root.attempt(&key).map_err(|error| unavailable(with_errno(&error)))?;
        match directory.map(|directory| directory.observe_alive()) {
            Some(RunnerAlive::Held) => {
                let message = format!("a runner lives in the attempt directory {key}");
                let hint = "a root in which something lives was not moved; stop it where it runs";
                return Err(conflict(message).with_hint(hint));
            }
            Some(RunnerAlive::Unknown(_)) => {
                return Err(unavailable(format!("whether {key} has a runner cannot be told")));
            }
            Some(RunnerAlive::Released | RunnerAlive::Missing) | None => {}
        }
    }
    Ok(())
}
