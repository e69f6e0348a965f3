//! Attempts whose recorded runner, leader and init have died, and whose numbers strangers have.

use super::Count;
use crate::command::{Failure, program};
use crate::crash::decoy::Decoy;
use crate::crash::processes::reap_orphans;
use camino::Utf8Path;
use placement::{AttemptId, EvidenceKind, Mechanism};
use placement_contract::ExecutionState;
use placement_identity::{Pid, ProcessIdentity};
use placement_service::{IfUncertain, StopMode};
use placement_store::Fields;
use placement_world::{Stage, World, contained};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

/// Attempts on one root: a store that grows makes all of it slower.
const ATTEMPTS_MAX: usize = 60;

/// Stages attempts on a fresh root, under each way of cleaning up in turn.
pub(super) fn round(runner: &Utf8Path, wanted: u64, count: &mut Count) -> Result<(), Failure> {
    let world = World::new(runner);
    let stage = world.stage();
    let ways: Vec<Option<Mechanism>> =
        world.mechanisms().into_iter().map(Some).chain([None]).collect();
    let aim = count.staged.saturating_add(wanted);
    for (number, mechanism) in (0..ATTEMPTS_MAX).zip(ways.into_iter().cycle()) {
        if count.staged >= aim {
            break;
        }
        one(&world, &stage, number, mechanism, count)?;
    }
    drop(stage);
    drop(world);
    reap_orphans(&[]);
    Ok(())
}

fn one(
    world: &World,
    stage: &Stage,
    number: usize,
    mechanism: Option<Mechanism>,
    count: &mut Count,
) -> Result<(), Failure> {
    let id = stage.prepare(&contained(stage.request(&format!("a{number}"), "true"), mechanism));
    let dead = [dead()?, dead()?, dead()?];
    let [runner, leader, init] = &dead;
    stage.claim(&id, runner);
    let has_init = mechanism == Some(Mechanism::PidNamespace);
    let identified = Fields {
        child: Some(leader.clone()),
        init: has_init.then(|| init.clone()),
        ..Fields::default()
    };
    stage.record(&id, &[(EvidenceKind::ChildCreating, "staged")], &Fields::default());
    stage.record(&id, &[(EvidenceKind::ChildIdentified, "staged")], &identified);
    stage.record(&id, &[(EvidenceKind::ChildStarted, "staged")], &Fields::default());
    let numbers = dead.iter().take(if has_init { 3 } else { 2 });
    let mut strangers: Vec<Decoy> =
        numbers.filter_map(|dead| Decoy::under(dead.pid.get(), &[])).collect();
    count.operations += do_everything(stage, &id)?;
    count.attempts += 1;
    count.staged += u64::try_from(strangers.len()).unwrap_or(u64::MAX);
    if strangers.iter_mut().all(Decoy::is_untouched) {
        return Ok(());
    }
    let way = mechanism.map_or("process_group", Mechanism::label);
    Err(Failure::found(format!(
        "strangers: a stranger under the number of a dead process was signalled ({way})\n{}",
        world.told(&id)
    )))
}

/// A process that was here and is reaped.
fn dead() -> Result<ProcessIdentity, Failure> {
    let mut command = program("true");
    command.env_clear().process_group(0).stdin(Stdio::null());
    let mut child = command.spawn().map_err(|e| Failure::new(format!("run true: {e}")))?;
    let pid = Pid::try_from(child.id()).expect("a process has a number");
    let identity = ProcessIdentity::of(pid);
    child.wait().map_err(|error| Failure::new(format!("wait for true: {error}")))?;
    identity.map_err(|error| Failure::new(format!("look at a process: {error}")))
}

/// Does everything to an attempt that might signal somebody, and returns how much that was.
fn do_everything(stage: &Stage, id: &AttemptId) -> Result<u64, Failure> {
    let service = stage.service();
    let reconcile = || {
        let settled = service.reconcile(id);
        settled.map_err(|refusal| Failure::new(format!("strangers: reconcile: {refusal}")))
    };
    // What these answer is another's question.
    service.stop(id, StopMode::Cooperative, IfUncertain::Leave).ok();
    service.stop(id, StopMode::Forced, IfUncertain::EndSurvivors).ok();
    let settled = reconcile()?;
    service.cleanup(id).ok();
    if settled.execution_state != ExecutionState::Uncertain {
        return Ok(4);
    }
    let operator = service.own_operator();
    let resolved = service.resolve(id, &operator, "the campaign knows");
    resolved.map_err(|refusal| Failure::new(format!("strangers: resolve: {refusal}")))?;
    service.stop(id, StopMode::Forced, IfUncertain::EndSurvivors).ok();
    reconcile()?;
    service.cleanup(id).ok();
    Ok(8)
}
