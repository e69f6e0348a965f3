//! `races`: while a process of the same user exchanges a directory of an attempt with a link to a
//! canary, everything is done that opens, writes or removes below it. The canary stays as it is.
//!
//! One case is one place under attack and one operation. Each round counts how often the exchange
//! came during the operation: a case that it never met shows nothing and fails. What is refused under
//! attack works once the attack is over.

mod attacker;
mod canary;

use crate::command::Failure;
use crate::crash::sabotage::Change;
use crate::without_guard::must_find;
use crate::workspace::Workspace;
use attacker::Attacker;
use camino::{Utf8Path, Utf8PathBuf};
use canary::{Snapshot, mirror};
use clap::{Args, ValueEnum};
use placement::{AttemptHandle, AttemptId, CleanupState, ExecutionState, Launch, StopMode};
use placement_testkit::TempRoot;
use placement_world::World;
use std::fs;
use std::time::{Duration, Instant};

/// How a campaign is run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How often each operation is tried under each attack
    #[arg(long, default_value_t = 40, value_name = "N")]
    rounds: u32,
    /// Takes one guard out of a copy of the code, and fails unless that is found
    #[arg(long, value_enum, value_name = "GUARD")]
    sabotage: Option<RaceGuard>,
    /// Only places whose name holds this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// A guard that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RaceGuard {
    /// A removal follows no link
    Removal,
    /// What lies beneath a directory is opened without following a link
    Beneath,
    /// A runner works in the directory that its host has opened
    Root,
    /// A temporary directory is removed where it was made
    Base,
}

/// What is under attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Home,
    WithinHome,
    Attempt,
    Attempts,
    Log,
    Temporary,
    WithinTemporary,
    TemporaryOfUser,
    Root,
    AboveRoot,
}

/// What is done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Launch,
    Look,
    Cleanup,
    Prune,
}

/// Rounds more of a case that its attack has not met: on a busy machine it may not run meanwhile.
const UNMET_MAX: u32 = 60;

/// What the child leaves in both of its directories.
const FILL: &str = "for d in \"$HOME\" \"$TMPDIR\"; do cd \"$d\"; \
     for n in 0 1 2 3 4 5 6 7 8 9; do mkdir -p t$n/u/v; echo $n > t$n/f; echo $n > t$n/u/f; done; done; \
     echo out";

impl RaceGuard {
    const fn changes(self) -> &'static [Change] {
        match self {
            Self::Removal => &[
                Change {
                    file: "crates/paths/src/remove/level.rs",
                    from: "OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC)",
                    to: "OFlags::DIRECTORY.union(OFlags::CLOEXEC)",
                },
                Change {
                    file: "crates/paths/src/remove/level.rs",
                    from: "ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV",
                    to: "ResolveFlags::empty()",
                },
            ],
            Self::Beneath => &[Change {
                file: "crates/paths/src/beneath.rs",
                from: "ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS",
                to: "ResolveFlags::empty()",
            }],
            Self::Root => &[Change {
                file: "crates/homes/src/root.rs",
                from: "        if opened.facts().map_err(ReopenError::Io)?.id() != id {",
                to: "        if false && opened.facts().map_err(ReopenError::Io)?.id() != id {",
            }],
            Self::Base => &[Change {
                file: "crates/homes/src/temporary.rs",
                from: "noted.inode.is_none_or(|inode| inode == facts.inode)",
                to: "noted.inode.is_none_or(|_| true)",
            }],
        }
    }
}

/// Runs a campaign.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(guard) = arguments.sabotage {
        let name = format!("{guard:?}").to_lowercase();
        let campaign = ["races", "--rounds", "40"];
        return must_find(&Workspace::load()?, &name, guard.changes(), &campaign);
    }
    let begun = Instant::now();
    let runner =
        std::env::current_exe().ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
    let runner = runner.ok_or_else(|| Failure::new("races: this program has no path"))?;
    let (mut rounds, mut exchanges) = (0, 0);
    let wanted = |place: Place| format!("{place:?}").contains(&arguments.only);
    for (place, operation) in cases().filter(|(place, _)| wanted(*place)) {
        let met = case(&runner, place, operation, arguments.rounds)?;
        println!(
            "races: {place:?} against {operation:?}: {} rounds, {} exchanges during them, {} refused",
            met.rounds, met.exchanges, met.refused
        );
        if met.exchanges == 0 {
            return Err(Failure::new(format!(
                "races: {place:?} was never exchanged during a {operation:?}"
            )));
        }
        rounds += u64::from(met.rounds);
        exchanges += met.exchanges;
    }
    println!(
        "races: {rounds} operations under {exchanges} exchanges in {} s: nothing outside was touched",
        begun.elapsed().as_secs()
    );
    Ok(())
}

/// Each place with each operation that comes by it.
fn cases() -> impl Iterator<Item = (Place, Operation)> {
    use Operation::{Cleanup, Launch, Look, Prune};
    [
        (Place::Home, &[Look, Cleanup, Prune][..]),
        (Place::WithinHome, &[Cleanup, Prune]),
        (Place::Attempt, &[Look, Cleanup, Prune]),
        (Place::Attempts, &[Launch, Look, Cleanup, Prune]),
        (Place::Log, &[Look, Cleanup, Prune]),
        (Place::Temporary, &[Cleanup]),
        (Place::WithinTemporary, &[Cleanup]),
        (Place::TemporaryOfUser, &[Launch, Cleanup]),
        (Place::Root, &[Launch, Look, Cleanup, Prune]),
        // The base of temporary directories is here below it too, and its path is the host's to choose.
        (Place::AboveRoot, &[Look, Cleanup, Prune]),
    ]
    .into_iter()
    .flat_map(|(place, operations)| operations.iter().map(move |it| (place, *it)))
}

/// How far a case was met by its attack.
#[derive(Debug, Default)]
struct Met {
    rounds: u32,
    exchanges: u64,
    refused: u32,
}

fn case(
    runner: &Utf8Path,
    place: Place,
    operation: Operation,
    rounds: u32,
) -> Result<Met, Failure> {
    let mut met = Met::default();
    let world = World::new(runner);
    let outside = TempRoot::new();
    // So that what an attack keeps from being made is there before it.
    let first = ended(&world, operation)?;
    let place_of_first = under_attack(&world, &first, place);
    for round in 0..rounds.saturating_add(UNMET_MAX) {
        if round >= rounds && met.exchanges > 0 {
            break;
        }
        met.rounds += 1;
        let (id, at) = if operation == Operation::Launch {
            (first.clone(), place_of_first.clone())
        } else {
            let id = ended(&world, operation)?;
            let at = under_attack(&world, &id, place);
            (id, at)
        };
        let canary = outside.join(format!("canary-{round}"));
        mirror(above(&world), &canary)?;
        let before = Snapshot::of(&canary)?;
        let inside = at.strip_prefix(above(&world)).expect("it is below the world").to_owned();
        let to = if inside.as_str().is_empty() { canary.clone() } else { canary.join(&inside) };
        let attacker = Attacker::start(at, outside.join("link"), to);
        let (so_far, begun) = (attacker.exchanges(), Instant::now());
        let refused = act(&world, &id, operation, round);
        met.exchanges += attacker.exchanges() - so_far;
        let took = begun.elapsed();
        drop(attacker);
        met.refused += u32::from(refused.is_some());
        let now = Snapshot::of(&canary)?;
        let differences = before.differences(&now);
        if !differences.is_empty() {
            return Err(Failure::found(format!(
                "races: {place:?} against {operation:?}, round {round}, {took:?}, answered {refused:?}: of \
                 {} entries of the canary {} differ\n  {}\n{}",
                before.len(),
                differences.len(),
                differences.join("\n  "),
                world.told(&id),
            )));
        }
        settle(&world, &id, place, operation, refused.as_deref())?;
        remove(&canary)?;
    }
    Ok(met)
}

/// An attempt that has ended and is not cleaned up, or is and kept its home where that is pruned.
fn ended(world: &World, operation: Operation) -> Result<AttemptId, Failure> {
    let launch = Launch::program("/bin/sh").args(["-c", FILL]).write(world.work());
    let launch = if operation == Operation::Prune { launch.keep_home() } else { launch };
    let failed =
        |error: placement::Error| Failure::new(format!("races: without an attack: {error}"));
    let attempt = world.host().launch(launch).map_err(failed)?;
    let id = attempt.id().clone();
    if operation == Operation::Prune {
        attempt.finish().map_err(failed)?;
    } else {
        attempt.wait().map_err(failed)?;
    }
    Ok(id)
}

/// Does what is to be done under attack; the text of a refusal where it was refused.
fn act(world: &World, id: &AttemptId, operation: Operation, round: u32) -> Option<String> {
    let host = world.host();
    match operation {
        Operation::Launch => {
            // It writes nothing: where its directories lead is its own affair.
            let launch = Launch::program("/bin/true").key(format!("under-attack-{round}"));
            let ended = host.launch(launch.write(world.work())).and_then(AttemptHandle::finish);
            ended.err().map(|error| error.to_string())
        }
        Operation::Look => {
            let looked = host.reconcile(id).map(|_| ());
            let looked = looked
                .and_then(|()| host.attach(id))
                .and_then(|attempt| attempt.output().try_for_each(|chunk| chunk.map(|_| ())));
            let looked = looked.and_then(|()| host.sweep().map(|_| ()));
            looked.err().map(|error| error.to_string())
        }
        Operation::Cleanup => host.cleanup(id).err().map(|error| error.to_string()),
        Operation::Prune => match host.prune(Duration::ZERO) {
            Ok(pruning) => pruning.kept.first().map(|kept| kept.why.clone()),
            Err(error) => Some(error.to_string()),
        },
    }
}

/// After the attack everything works, whatever it was under it.
fn settle(
    world: &World,
    id: &AttemptId,
    place: Place,
    operation: Operation,
    refused: Option<&str>,
) -> Result<(), Failure> {
    let host = world.host();
    let broken = |what: &str| {
        Failure::found(format!(
            "races: {place:?} against {operation:?} ({refused:?}): afterwards {what}\n{}",
            world.told(id)
        ))
    };
    for attempt in host.attempts().all().map_err(|error| broken(&format!("{error}")))?.attempts {
        let id = &attempt.attempt_id;
        if attempt.execution_state == ExecutionState::Intended {
            let stopped = host.stop(id, StopMode::Forced);
            stopped.map_err(|error| broken(&format!("{id} is not stopped: {error}")))?;
        }
        let settled = host.wait(id, Some(Instant::now() + Duration::from_secs(10)));
        settled.map_err(|error| broken(&format!("{id} does not end: {error}")))?;
        let settled = host.reconcile(id).map_err(|error| broken(&format!("{id}: {error}")))?;
        if settled.execution_state.is_live() {
            return Err(broken(&format!("{id} is {}", settled.execution_state)));
        }
        let cleaned = host.cleanup(id).map_err(|error| broken(&format!("{id}: {error}")))?;
        if cleaned.cleanup_state != CleanupState::Complete {
            return Err(broken(&format!("{id} is not cleaned up")));
        }
        let verified = host.verify(id, None).map_err(|error| broken(&format!("{id}: {error}")))?;
        if !verified.sound {
            return Err(broken(&format!("{id} is not sound: {:?}", verified.faults)));
        }
    }
    let pruned = host.prune(Duration::ZERO).map_err(|error| broken(&error.to_string()))?;
    if let Some(kept) = pruned.kept.first() {
        return Err(broken(&format!("{} is kept: {}", kept.attempt_id, kept.why)));
    }
    Ok(())
}

/// The directory that has the root, the work and the temporary base in it.
fn above(world: &World) -> &Utf8Path {
    world.directory()
}

fn under_attack(world: &World, id: &AttemptId, place: Place) -> Utf8PathBuf {
    let home = world.home(id);
    let attempt = home.parent().expect("a home lies in the directory of its attempt").to_owned();
    let base = world.temporary_base();
    let user = base.read_dir_utf8().ok().and_then(|mut entries| entries.next()?.ok());
    let user = user.map_or_else(|| base.join("pl-nobody"), camino::Utf8DirEntry::into_path);
    let key = attempt.file_name().expect("it has a name").to_owned();
    let temporary = user.join(key.get(..12).unwrap_or(&key));
    match place {
        Place::Home => home,
        Place::WithinHome => home.join("t5"),
        Place::Attempts => attempt.parent().expect("it lies in a directory").to_owned(),
        Place::Log => attempt.join("log"),
        Place::Attempt => attempt,
        Place::WithinTemporary => temporary.join("t5"),
        Place::Temporary => temporary,
        Place::TemporaryOfUser => user,
        Place::Root => world.root(),
        Place::AboveRoot => above(world).to_owned(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a campaign removes its own canary")]
fn remove(canary: &Utf8Path) -> Result<(), Failure> {
    fs::remove_dir_all(canary).map_err(|error| Failure::io("remove", canary, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::read;

    #[test]
    fn what_is_taken_out_stands_in_the_code_once() {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for guard in RaceGuard::value_variants() {
            for change in guard.changes() {
                let text = read(&root.join(change.file)).unwrap();
                assert_ne!(change.apply(&text).unwrap(), text, "{guard:?}");
            }
        }
    }
}
